//! Finds the built `hart` and runs it as a user would, in a home of its own.
//!
//! Invariant: a process started here sees no environment but what the test gave it, and never outlives its handle.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Bounds a test that hangs; generous, because a loaded machine must not fail one that does not.
const PATIENCE: Duration = Duration::from_secs(120);

/// A grandchild may hold the pipes open for ever; what hart itself wrote is in them when it has ended.
const LINGER: Duration = Duration::from_secs(10);

/// The binary: `HART_BIN`, else the one beside the test executable, else freshly built.
///
/// # Panics
/// When it has to be built and cannot be.
pub fn hart_bin() -> &'static Path {
    static BIN: OnceLock<PathBuf> = OnceLock::new();
    BIN.get_or_init(|| existing_hart_bin().unwrap_or_else(build))
}

/// The binary, if it exists already.
#[must_use]
pub fn existing_hart_bin() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("HART_BIN") {
        let path = PathBuf::from(path);
        assert!(path.is_file(), "HART_BIN is {}, which is no file", path.display());
        return Some(path);
    }
    let beside = profile_dir().join("hart");
    beside.is_file().then_some(beside)
}

/// The cargo that runs the tests, or the one on the path.
pub(crate) fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

/// The root of the workspace.
#[must_use]
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("the crate lies in crates/").to_path_buf()
}

/// `target/<profile>`: a test executable lies in its `deps`.
fn profile_dir() -> PathBuf {
    let exe = std::env::current_exe().expect("the path of the test executable");
    let dir = exe.parent().expect("an executable lies in a folder");
    let dir = if dir.ends_with("deps") || dir.ends_with("examples") { dir.parent() } else { Some(dir) };
    dir.expect("deps lies in a folder").to_path_buf()
}

#[expect(clippy::disallowed_methods, reason = "asks the toolchain to build; no thread is involved")]
fn build() -> PathBuf {
    let profile_dir = profile_dir();
    let profile = match profile_dir.file_name().and_then(OsStr::to_str) {
        None | Some("debug") => "dev",
        Some(other) => other,
    };
    let status = Command::new(cargo())
        .args(["build", "-p", "hart-cli", "--bin", "hart", "--offline", "--profile", profile])
        .arg("--target-dir")
        .arg(profile_dir.parent().expect("a profile folder lies in the target folder"))
        .current_dir(workspace_root())
        .status()
        .expect("cargo runs");
    assert!(status.success(), "cannot build hart");
    profile_dir.join("hart")
}

/// A `hart` command to be run in one folder, which is also its home.
#[derive(Clone, Debug)]
#[must_use]
pub struct Hart {
    bin: PathBuf,
    dir: PathBuf,
    args: Vec<OsString>,
    env: BTreeMap<OsString, OsString>,
    stdin: Option<Vec<u8>>,
}

impl Hart {
    /// Runs in `dir`, with nothing in the environment but `PATH`, `HOME=dir` and `HART_HOME=dir/.hart`.
    pub fn new(dir: impl AsRef<Path>) -> Self {
        Self::with_bin(hart_bin(), dir)
    }

    /// The same for another binary, such as `env!("CARGO_BIN_EXE_hart")`.
    pub fn with_bin(bin: impl Into<PathBuf>, dir: impl AsRef<Path>) -> Self {
        let dir = dir.as_ref().to_path_buf();
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let env = BTreeMap::from([
            ("PATH".into(), path),
            ("HOME".into(), dir.clone().into_os_string()),
            ("HART_HOME".into(), dir.join(".hart").into_os_string()),
        ]);
        Self { bin: bin.into(), dir, args: Vec::new(), env, stdin: None }
    }

    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub fn args<T: Into<OsString>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// What the process reads, to the end. Without it, `run` gives it nothing and `spawn` keeps the pipe open.
    pub fn stdin(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(text.into());
        self
    }

    /// Gives it a file system of that size at `home`, which no other process sees but through `/proc/PID/root`.
    pub fn on_a_disk_of(self, home: &Path, size: &str) -> Self {
        self.mounting("", home, size)
    }

    /// The same, with what is at `home` already and a file `filler` that takes all that is left.
    pub fn on_a_full_disk_of(self, home: &Path, size: &str) -> Self {
        self.mounting(r#"cp -a "$2/." "$3"; cat /dev/zero >"$3/filler" 2>/dev/null;"#, home, size)
    }

    fn mounting(mut self, fill: &str, home: &Path, size: &str) -> Self {
        let mount = format!(
            r#"mount -t tmpfs -o size="$1" tmpfs "$3" && {{ {fill} mount --move "$3" "$2"; }} && shift 3 && exec "$@""#
        );
        let beside = home.with_extension("disk");
        std::fs::create_dir_all(&beside).expect("a place to mount at");
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0);
        let alone = if is_root { "--mount" } else { "--map-root-user" };
        let bin = std::mem::replace(&mut self.bin, "unshare".into());
        let wrap = [alone, "--mount", "sh", "-c", &mount, "sh", size].map(OsString::from);
        let places = [home.into(), beside.into(), bin.into()];
        self.args = wrap.into_iter().chain(places).chain(self.args).collect();
        self
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it cannot start, or does not end within two minutes.
    #[must_use]
    pub fn run(mut self) -> Finished {
        self.stdin.get_or_insert_default();
        self.spawn().wait()
    }

    /// Starts it.
    ///
    /// # Panics
    /// When it cannot start.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the process under test is hart itself")]
    pub fn spawn(self) -> Running {
        let mut child = Command::new(&self.bin)
            .args(&self.args)
            .current_dir(&self.dir)
            .env_clear()
            .envs(&self.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", self.bin.display()));
        let stdout = Capture::of(child.stdout.take().expect("a piped stdout"));
        let stderr = Capture::of(child.stderr.take().expect("a piped stderr"));
        let mut stdin = child.stdin.take();
        if let Some(text) = self.stdin {
            let mut pipe = stdin.take().expect("a piped stdin");
            // On its own thread, since a process may write before it has read everything.
            thread::spawn(move || {
                // A process that ends without reading its input is not an error of the test.
                let _ = pipe.write_all(&text);
            });
        }
        Running { child, stdin, stdout, stderr }
    }
}

/// A started `hart`; dropping it kills it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Capture,
    stderr: Capture,
}

/// How a process ended, and what it said.
#[derive(Clone, Debug)]
pub struct Finished {
    /// `None` when a signal ended it.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// Asserts that it ended well, showing what it said when it did not.
    ///
    /// # Panics
    /// When it did not.
    #[must_use]
    pub fn success(self) -> Self {
        assert_eq!(self.code, Some(0), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

impl Running {
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// As Ctrl-C does.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// As a power cut does: nothing gets to clean up.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Writes a line to its input.
    ///
    /// # Panics
    /// When its input is closed.
    pub fn write_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("the input is open");
        writeln!(stdin, "{line}").and_then(|()| stdin.flush()).expect("the process reads its input");
    }

    /// Ends its input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// What it has written to stdout so far.
    #[must_use]
    pub fn stdout_so_far(&self) -> String {
        self.stdout.text()
    }

    /// What it has written to stderr so far.
    #[must_use]
    pub fn stderr_so_far(&self) -> String {
        self.stderr.text()
    }

    /// Waits until stdout holds `needle`.
    ///
    /// # Panics
    /// When stdout ends, or two minutes pass, without it.
    pub fn wait_for_stdout(&self, needle: &str) {
        let found = self.stdout.wait(PATIENCE, |text| text.contains(needle));
        assert!(found, "no {needle:?} in stdout:\n{}\nstderr:\n{}", self.stdout.text(), self.stderr.text());
    }

    /// Waits until it ends.
    ///
    /// # Panics
    /// When it does not within two minutes.
    #[must_use]
    pub fn wait(mut self) -> Finished {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                break status;
            }
            let (out, err) = (self.stdout.text(), self.stderr.text());
            assert!(Instant::now() < deadline, "hart does not end; stdout:\n{out}\nstderr:\n{err}");
            thread::sleep(Duration::from_millis(5));
        };
        for capture in [&self.stdout, &self.stderr] {
            capture.wait(LINGER, |_| false);
        }
        let (stdout, stderr) = (self.stdout.text(), self.stderr.text());
        Finished { code: status.code(), signal: status.signal(), stdout, stderr }
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        // The child is not reaped before `wait` takes it, so the id cannot have passed to another process.
        kill_process(pid, signal).expect("the process can be signalled");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails only when it has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a pipe has delivered so far, read by a thread so that no pipe ever fills.
#[derive(Clone, Debug)]
struct Capture(Arc<(Mutex<Captured>, Condvar)>);

#[derive(Debug, Default)]
struct Captured {
    bytes: Vec<u8>,
    ended: bool,
}

impl Capture {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let capture = Self(Arc::default());
        let writer = capture.clone();
        thread::spawn(move || {
            let mut buffer = [0; 8192];
            loop {
                let read = pipe.read(&mut buffer).unwrap_or(0);
                writer.update(|captured| {
                    captured.bytes.extend_from_slice(&buffer[..read]);
                    captured.ended = read == 0;
                });
                if read == 0 {
                    return;
                }
            }
        });
        capture
    }

    fn update(&self, change: impl FnOnce(&mut Captured)) {
        change(&mut self.0.0.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.1.notify_all();
    }

    fn text(&self) -> String {
        let captured = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&captured.bytes).into_owned()
    }

    /// Whether the text comes to satisfy `enough` before the pipe ends and patience does.
    fn wait(&self, patience: Duration, enough: impl Fn(&str) -> bool) -> bool {
        let captured = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting =
            |captured: &mut Captured| !captured.ended && !enough(&String::from_utf8_lossy(&captured.bytes));
        let waited = self.0.1.wait_timeout_while(captured, patience, waiting);
        let (captured, _) = waited.unwrap_or_else(PoisonError::into_inner);
        enough(&String::from_utf8_lossy(&captured.bytes))
    }
}
