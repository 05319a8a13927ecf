//! A hart in a process of its own, to be killed and started again.
//!
//! Invariant: it does not outlive its handle, and sees no data directory but the one it is given.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How to start it.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) program: PathBuf,
    pub(super) config: PathBuf,
    pub(super) home: PathBuf,
    pub(super) port: u16,
    pub(super) log: PathBuf,
    /// The data directory is a file system of that size, which no other process sees.
    pub(super) disk: Option<&'static str>,
}

#[derive(Debug)]
pub(super) struct Hart {
    child: Child,
    plan: Plan,
}

/// Until it must be ready.
const PATIENCE: Duration = Duration::from_secs(30);

impl Plan {
    /// Starts it and waits until it serves.
    pub(super) async fn start(self) -> io::Result<Hart> {
        let mut child = self.spawn()?;
        match ready(&mut child).await {
            Ok(()) => Ok(Hart { child, plan: self }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                let said = tail(&self.log);
                Err(io::Error::new(error.kind(), format!("{error}; it said: {said}")))
            }
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the process is hart itself, not an agent's")]
    fn spawn(&self) -> io::Result<Child> {
        const MOUNT: &str = r#"mount -t tmpfs -o size="$1" tmpfs "$2" && shift 2 && exec "$@""#;
        let mut command = match self.disk {
            None => Command::new(&self.program),
            Some(size) => {
                let mut command = Command::new("unshare");
                let alone = if rustix::process::geteuid().is_root() { "--mount" } else { "--map-root-user" };
                command.args([alone, "--mount", "sh", "-c", MOUNT, "sh", size]);
                command.arg(&self.home).arg(&self.program);
                command
            }
        };
        command
            .arg("serve")
            .args(["--port", &self.port.to_string(), "--config"])
            .arg(&self.config)
            .env("HART_HOME", &self.home)
            .env("HART_LOG", "warn")
            .env_remove("HART_TOKEN")
            .env_remove("HART_SERVER")
            .env_remove("OTEL_EXPORTER_OTLP_ENDPOINT")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::options().create(true).append(true).open(&self.log)?)
            .spawn()
    }
}

impl Hart {
    /// As a power cut does, and starts it again at the same place.
    pub(super) async fn kill_and_restart(mut self) -> io::Result<Self> {
        self.child.kill()?;
        self.child.wait()?;
        let Plan { program, config, home, port, log, disk } = &self.plan;
        let plan = Plan {
            program: program.clone(),
            config: config.clone(),
            home: home.clone(),
            port: *port,
            log: log.clone(),
            disk: *disk,
        };
        plan.start().await
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.plan.port)
    }

    pub(super) fn port(&self) -> u16 {
        self.plan.port
    }

    /// Its data directory, as this process can reach it.
    pub(super) fn home(&self) -> PathBuf {
        match self.plan.disk {
            None => self.plan.home.clone(),
            Some(_) => {
                let root = PathBuf::from(format!("/proc/{}/root", self.child.id()));
                root.join(self.plan.home.strip_prefix("/").unwrap_or(&self.plan.home))
            }
        }
    }

    pub(super) fn said(&self) -> String {
        tail(&self.plan.log)
    }
}

impl Drop for Hart {
    fn drop(&mut self) {
        // Fails only when it has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for the ready line. What comes behind it is read and thrown away, so that no pipe fills.
async fn ready(child: &mut Child) -> io::Result<()> {
    let Some(stdout) = child.stdout.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut lines = BufReader::new(stdout).lines();
        let first = lines.next();
        let _ = tell.send(matches!(first, Some(Ok(line)) if line.starts_with("ready:")));
        lines.for_each(drop);
    });
    match tokio::time::timeout(PATIENCE, told).await {
        Ok(Ok(true)) => Ok(()),
        Ok(_) => Err(io::Error::other("hart does not start")),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// The last lines of a log.
fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(4).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
}
