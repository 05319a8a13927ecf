//! Starts a command and stays with it until nothing of it is left.
//!
//! Invariant: output never blocks the command for longer than the sink takes, and no ending leaves a process behind.

use std::io;
use std::os::fd::RawFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::audit::{Audit, Denied};
use crate::cgroup::{Cgroups, Group};
use crate::disk::{Disk, Full};
use crate::egress::{self, Network, Rules};
use crate::error::{Result, SandboxError};
use crate::exec::{Capture, Exec, ExecOutput, Exit, OutputSink, Stream, TextStream};
use crate::files::{Root, Roots};
use crate::host::{self, MaskStream, Masked};
use crate::isolate::{
    self, BareOrder, BarePlan, Confinement, Descriptors, LaunchError, Order, Plan, SetupFailure, Watch,
    Writable,
};
use crate::path::VPath;
use crate::provider::Shared;
use crate::shell_audit::{Shown, named_outside};
use crate::tier::{Setting, Tier, fix_for};

/// A dead tree closes its pipes at once; this is for a kernel under load that is slow to bury it.
const BURIAL: Duration = Duration::from_secs(5);
/// On the host a process may leave its group and keep the pipes; nobody waits long for that.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Why a command is ended.
enum Stop {
    Exit(Exit),
    Full(Full),
}

/// How a shell says that a program of its own was ended because a file may not grow.
const FILE_TOO_LARGE: i32 = 128 + libc::SIGXFSZ;

pub(crate) struct Limits {
    pub(crate) timeout: Duration,
    pub(crate) output_limit: usize,
}

/// A command that is running.
pub(crate) enum Launched {
    Confined {
        running: isolate::Running,
        masked: Option<Masked>,
        group: Option<Grouped>,
        watch: Watch,
        /// What its text names that it cannot have.
        named: Vec<(&'static str, String)>,
    },
    Host(host::Running),
}

/// A control group that is removed whatever happens.
pub(crate) struct Grouped {
    all: Arc<Cgroups>,
    group: Option<Group>,
}

impl Grouped {
    fn new(setting: &Setting) -> Option<Self> {
        let group = setting.cgroups.group(setting.limits)?;
        Some(Self { all: Arc::clone(&setting.cgroups), group: Some(group) })
    }

    fn doors(this: Option<&Self>) -> Vec<RawFd> {
        this.and_then(|this| this.group.as_ref()).map(Group::doors).unwrap_or_default()
    }
}

impl Drop for Grouped {
    fn drop(&mut self) {
        if let Some(group) = self.group.take() {
            self.all.remove(group);
        }
    }
}

/// Blocks for the few milliseconds of the set-up.
pub(crate) fn launch(
    shared: &Shared,
    roots: &Roots,
    exec: &Exec,
    cwd: &VPath,
    disk: &Disk,
) -> Result<Launched> {
    let file_limit = disk.file_limit(isolate::FILE_LIMIT)?;
    let setting = shared.setting();
    let report = &setting.report;
    let mut env = environment(shared, exec);
    let could_not = |error: io::Error| SandboxError::Spawn { reason: error.to_string() };
    let network = &shared.config.network;
    let group = match report.tier {
        Tier::Isolated | Tier::Landlock => Grouped::new(setting),
        Tier::Host | Tier::Refused => None,
    };
    let shown = Shown::new(roots, &shared.home);
    let (confinement, command, masked, writable) = match report.tier {
        Tier::Isolated => {
            let order = Order {
                roots,
                hidden: &shared.home,
                cwd: cwd.as_str(),
                identity: &setting.identity,
                network,
                pids_limit: setting.limits.pids,
                landlock: setting.landlock,
                file_limit,
            };
            let mut plan = Plan::new(order).map_err(could_not)?;
            plan.join(Grouped::doors(group.as_ref()));
            let writable = roots.0.iter().filter(|root| root.writable).map(|root| root.shown_at.to_string());
            let writable = writable.chain(isolate::SCRATCH.map(str::to_owned)).collect();
            (Confinement::Namespaces(plan), exec.command.clone(), None, writable)
        }
        Tier::Landlock => {
            let scratch = scratch(roots, setting.identity.owner()).map_err(could_not)?;
            let masked = Masked::new(roots).also(&scratch, "/tmp");
            let (writable, readable): (Vec<_>, Vec<_>) = roots.0.iter().partition(|root| root.writable);
            let path = |root: &Root| root.host.as_path().to_owned();
            let writable: Vec<_> = writable.into_iter().map(path).chain([scratch]).collect();
            let readable: Vec<_> = readable.into_iter().map(path).collect();
            let cwd = host::host_directory(roots, cwd)?;
            let order = BareOrder {
                abi: setting.landlock,
                identity: &setting.identity,
                writable: &writable,
                readable: &readable,
                cwd: &cwd,
                network,
                file_limit,
            };
            let mut plan = BarePlan::new(order).map_err(could_not)?;
            plan.join(Grouped::doors(group.as_ref()));
            for (_, value) in &mut env {
                *value = masked.rewrite(value);
            }
            let writable = writable.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>();
            (Confinement::Bare(plan), masked.rewrite(&exec.command), Some(masked), writable)
        }
        Tier::Host => return host::launch(roots, &exec.command, cwd, &env).map(Launched::Host),
        Tier::Refused => {
            return Err(SandboxError::Unavailable {
                reason: report.reason.clone().unwrap_or_default(),
                fix: report.fix.clone().unwrap_or_default(),
            });
        }
    };
    match isolate::launch(confinement, &command, &env) {
        Ok(running) => {
            let ancestor = running.child.id();
            let watch = Watch { writable: Writable::new(writable), masked: masked.clone(), ancestor };
            let named = named_outside(&exec.command, &shown);
            Ok(Launched::Confined { running, masked, group, watch, named })
        }
        Err(LaunchError::Setup(failure)) => Err(unavailable(&failure)),
        Err(LaunchError::Io(error)) => Err(could_not(error)),
    }
}

/// What stands for `/tmp` where there is no private one: beside the thread's own directories.
pub(crate) fn scratch_of(roots: &Roots) -> Option<PathBuf> {
    let workspace = roots.of_thread().next()?.host.as_path();
    Some(workspace.parent()?.parent()?.join("tmp"))
}

fn scratch(roots: &Roots, owner: Option<u32>) -> io::Result<PathBuf> {
    let scratch = scratch_of(roots).ok_or_else(|| io::Error::other("the thread has no directory"))?;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&scratch)?;
    if owner.is_some() {
        std::os::unix::fs::lchown(&scratch, owner, owner)?;
    }
    Ok(scratch)
}

fn unavailable(failure: &SetupFailure) -> SandboxError {
    let fix = fix_for(failure, |knob| std::fs::read_to_string(knob).ok());
    SandboxError::Unavailable { reason: failure.to_string(), fix }
}

/// All a command gets: nothing of hart's own environment, which holds keys.
fn environment(shared: &Shared, exec: &Exec) -> Vec<(String, String)> {
    const BASE: [(&str, &str); 7] = [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", isolate::HOME),
        ("USER", isolate::USER),
        ("LOGNAME", isolate::USER),
        ("LANG", "C.UTF-8"),
        ("TERM", "dumb"),
        ("TMPDIR", "/tmp"),
    ];
    let base = BASE.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
    let configured = shared.config.environment.iter().map(|(name, value)| (name.clone(), value.clone()));
    let proxy = match &shared.config.network {
        Network::Hosts(_) if shared.tier().tier == Tier::Isolated => egress::environment(),
        _ => Vec::new(),
    };
    base.chain(proxy).chain(configured).chain(exec.env.iter().cloned()).collect()
}

/// Collects output until the command ends or is ended.
pub(crate) async fn supervise(
    launched: Launched,
    limits: Limits,
    sink: Option<&dyn OutputSink>,
    cancel: &CancellationToken,
    shared: &Shared,
    disk: &Arc<Disk>,
) -> Result<ExecOutput> {
    let stop = async {
        tokio::select! {
            () = cancel.cancelled() => Stop::Exit(Exit::Cancelled),
            () = shared.closing.cancelled() => Stop::Exit(Exit::Cancelled),
            () = sleep(limits.timeout) => Stop::Exit(Exit::TimedOut),
            full = Arc::clone(disk).fills_up() => Stop::Full(full),
        }
    };
    let streams = |masked: Option<&Masked>| {
        let tap = |which| Tap::new(which, limits.output_limit, masked.cloned(), sink);
        (tap(Stream::Stdout), tap(Stream::Stderr))
    };
    let (exit, (stdout, stderr)) = match launched {
        Launched::Confined { mut running, masked, group, watch, named } => {
            let descriptors = std::mem::take(&mut running.descriptors);
            let mut taps = streams(masked.as_ref());
            let (audit, denied) = Audit::new();
            for (rule, detail) in named {
                audit.denied(rule, detail);
            }
            let guards = guards(descriptors, watch, shared, audit.clone());
            let exit = confined(running, &mut taps, stop, guards, (audit, denied), group, disk).await?;
            (exit, taps)
        }
        Launched::Host(running) => {
            let mut taps = streams(Some(&running.masked));
            (on_host(running, &mut taps, stop).await?, taps)
        }
    };
    let ((stdout, stdout_truncated), (stderr, stderr_truncated)) =
        (stdout.capture.finish(), stderr.capture.finish());
    Ok(ExecOutput { stdout, stderr, stdout_truncated, stderr_truncated, exit })
}

/// What hart does for a command while it runs. Never ends by itself.
fn guards(
    descriptors: Descriptors,
    watch: Watch,
    shared: &Shared,
    audit: Audit,
) -> impl Future<Output = ()> + use<> {
    let Descriptors { reports, proxy } = descriptors;
    let rules = match &shared.config.network {
        Network::Hosts(hosts) => Arc::new(Rules::new(hosts.clone())),
        Network::Off | Network::Allow => Arc::new(Rules::new(Vec::new())),
    };
    if let Some(reports) = reports {
        isolate::answer_reports(reports, watch, audit.clone());
    }
    async move {
        let listener =
            proxy.map(std::net::TcpListener::from).and_then(|it| tokio::net::TcpListener::from_std(it).ok());
        let proxy = async {
            if let Some(listener) = listener {
                egress::serve(listener, rules, audit.clone()).await;
            }
        };
        proxy.await;
        std::future::pending().await
    }
}

async fn confined(
    running: isolate::Running,
    (out_tap, err_tap): &mut (Tap<'_>, Tap<'_>),
    stop: impl Future<Output = Stop>,
    guards: impl Future<Output = ()>,
    (audit, mut denied): (Audit, mpsc::Receiver<Denied>),
    group: Option<Grouped>,
    disk: &Disk,
) -> Result<Exit> {
    let isolate::Running { mut child, mut link, .. } = running;
    let sink = out_tap.sink;
    let tell = |denied: &Denied| {
        if let Some(sink) = sink {
            sink.denied(denied);
        }
    };
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let stopped = {
        // The waiter ends after the whole tree has, and with the tree everyone who could write to the pipes.
        let end = async { tokio::join!(out_tap.drain(out), err_tap.drain(err), child.wait()) };
        tokio::pin!(end, guards, stop);
        let stopped = loop {
            tokio::select! {
                biased;
                _ = &mut end => break None,
                stop = &mut stop => break Some(stop),
                Some(denied) = denied.recv() => tell(&denied),
                () = &mut guards => {}
            }
        };
        if stopped.is_some() {
            link.cut();
            if let Some(group) = group.as_ref().and_then(|group| group.group.as_ref()) {
                group.kill();
            }
            // The guards go on: a process may be waiting for an answer of theirs, and must be free to die.
            let burial = async {
                tokio::select! {
                    _ = &mut end => {}
                    () = &mut guards => {}
                }
            };
            if timeout(BURIAL, burial).await.is_err() {
                tracing::warn!("a command that was told to end has not ended yet");
            }
        }
        stopped
    };
    if let Some(group) = group.as_ref().and_then(|group| group.group.as_ref()) {
        for (rule, times) in group.exceeded() {
            audit.denied(rule, format!("the limit was run into {times} time(s)"));
        }
    }
    if let Some(Stop::Full(full)) = &stopped {
        audit.denied(full.rule(), full.words());
    }
    let exit = match stopped {
        Some(stop) => {
            // Without effect on a waiter that has ended; otherwise the kernel kills pid 1 together with it.
            let _ = child.start_kill();
            Ok(ended_by(stop, err_tap))
        }
        None => link.outcome().map_err(|failure| unavailable(&failure)),
    };
    if matches!(exit, Ok(Exit::Signal(libc::SIGXFSZ) | Exit::Code(FILE_TOO_LARGE))) {
        let (rule, words) = match disk.used_up() {
            Some(full) => (full.rule(), full.words()),
            None => ("rlimit.file-size", "a file grew to its limit".to_owned()),
        };
        err_tap.take(format!("hart: {words}\n").as_bytes());
        audit.denied(rule, words);
    }
    while let Ok(denied) = denied.try_recv() {
        tell(&denied);
    }
    exit
}

async fn on_host(
    running: host::Running,
    (out_tap, err_tap): &mut (Tap<'_>, Tap<'_>),
    stop: impl Future<Output = Stop>,
) -> Result<Exit> {
    let host::Running { mut child, group, .. } = running;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let exit = {
        let pumps = async {
            tokio::join!(out_tap.drain(out), err_tap.drain(err));
        };
        tokio::pin!(pumps);
        let mut stop = std::pin::pin!(stop);
        let mut drained = false;
        let exit = loop {
            tokio::select! {
                biased;
                status = child.wait() => {
                    break Ok(exit_of(status.map_err(|error| SandboxError::Spawn { reason: error.to_string() })?));
                }
                stop = &mut stop => break Err(stop),
                () = &mut pumps, if !drained => drained = true,
            }
        };
        group.kill();
        // A process that left the group may hold the pipes open for ever; what it prints now is nobody's.
        if !drained && timeout(LAST_WORDS, &mut pumps).await.is_err() {
            tracing::warn!("a process outlived its command");
        }
        exit
    };
    match exit {
        Ok(exit) => Ok(exit),
        Err(stop) => Ok(ended_by(stop, err_tap)),
    }
}

/// How it ended; what only hart knows is said where the command's own complaints are.
fn ended_by(stop: Stop, err_tap: &mut Tap<'_>) -> Exit {
    match stop {
        Stop::Exit(exit) => exit,
        Stop::Full(full) => {
            err_tap.take(format!("hart: the command was ended: {}\n", full.words()).as_bytes());
            Exit::Signal(libc::SIGKILL)
        }
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(libc::SIGKILL)),
    }
}

/// One of the two streams: what is kept of it, and who sees it live.
struct Tap<'a> {
    which: Stream,
    capture: Capture,
    text: TextStream,
    mask: Option<MaskStream>,
    sink: Option<&'a dyn OutputSink>,
}

impl<'a> Tap<'a> {
    fn new(which: Stream, limit: usize, masked: Option<Masked>, sink: Option<&'a dyn OutputSink>) -> Self {
        let mask = masked.map(MaskStream::new);
        Self { which, capture: Capture::new(limit), text: TextStream::default(), mask, sink }
    }

    /// Reads until the end, whatever becomes of what was read.
    async fn drain(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut buffer = vec![0; 32 << 10];
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            let bytes = buffer.get(..read).unwrap_or_default();
            match self.mask.as_mut().map(|mask| mask.push(bytes)) {
                Some(masked) => self.take(&masked),
                None => self.take(bytes),
            }
        }
        if let Some(mask) = self.mask.take() {
            self.take(&mask.finish());
        }
        if let Some(sink) = self.sink {
            std::mem::take(&mut self.text).finish(|text| sink.output(self.which, text));
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.capture.push(bytes);
        if let Some(sink) = self.sink {
            self.text.push(bytes, |text| sink.output(self.which, text));
        }
    }
}
