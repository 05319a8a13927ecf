//! Stays with a command until nothing of it is left.
//!
//! Invariant: output never blocks the command for longer than the sink takes, and no ending leaves a process behind.

mod launch;
mod tap;

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use launch::{Grouped, unavailable};
pub(crate) use launch::{Launched, launch, scratch_of};
use tap::Tap;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::audit::{Audit, Denied};
use crate::disk::{Disk, Full};
use crate::egress::{self, Network, Rules};
use crate::error::{Result, SandboxError};
use crate::exec::{ExecOutput, Exit, OutputSink, Stream};
use crate::host;
use crate::isolate::{self, Descriptors, Watch};
use crate::mask::HostMask;
use crate::provider::Shared;

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
    let streams = |mask: &HostMask| {
        let tap = |which| Tap::new(which, limits.output_limit, mask.clone(), sink);
        (tap(Stream::Stdout), tap(Stream::Stderr))
    };
    let (exit, (mut stdout, mut stderr)) = match launched {
        Launched::Confined { mut running, mask, group, watch, named } => {
            let descriptors = std::mem::take(&mut running.descriptors);
            let mut taps = streams(&mask);
            let (audit, denied) = Audit::new();
            for (rule, detail) in named {
                audit.named(rule, detail);
            }
            let guards = guards(descriptors, watch, shared, audit.clone());
            let exit = confined(running, &mut taps, stop, guards, (audit, denied), group, disk).await?;
            (exit, taps)
        }
        Launched::Host(running) => {
            let mut taps = streams(&running.mask);
            (on_host(running, &mut taps, stop).await?, taps)
        }
    };
    // Whoever was cut off in the middle of reading has still something to say.
    stdout.flush();
    stderr.flush();
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
