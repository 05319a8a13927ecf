//! Starts a command and stays with it until nothing of it is left.
//!
//! Invariant: output never blocks the command for longer than the sink takes, and no ending leaves a process behind.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::error::{Result, SandboxError};
use crate::exec::{Capture, Exec, ExecOutput, Exit, OutputSink, Stream, TextStream};
use crate::files::Roots;
use crate::host::{self, Masked};
use crate::isolate::{self, LaunchError, Plan, SetupFailure};
use crate::path::VPath;
use crate::provider::Shared;
use crate::tier::{Tier, fix_for};

/// A dead tree closes its pipes at once; this is for a kernel under load that is slow to bury it.
const BURIAL: Duration = Duration::from_secs(5);
/// On the host a process may leave its group and keep the pipes; nobody waits long for that.
const LAST_WORDS: Duration = Duration::from_millis(500);

pub(crate) struct Limits {
    pub(crate) timeout: Duration,
    pub(crate) output_limit: usize,
}

/// A command that is running.
pub(crate) enum Launched {
    Isolated(isolate::Running),
    Host(host::Running),
}

/// Blocks for the few milliseconds of the set-up.
pub(crate) fn launch(shared: &Shared, roots: &Roots, exec: &Exec, cwd: &VPath) -> Result<Launched> {
    let tier = shared.tier();
    let env = environment(shared, exec);
    match tier.tier {
        Tier::Isolated => {
            let could_not = |error: std::io::Error| SandboxError::Spawn { reason: error.to_string() };
            let plan = Plan::new(roots, &shared.home, cwd.as_str()).map_err(could_not)?;
            match isolate::launch(plan, &exec.command, &env) {
                Ok(running) => Ok(Launched::Isolated(running)),
                Err(LaunchError::Setup(failure)) => Err(unavailable(&failure)),
                Err(LaunchError::Io(error)) => Err(could_not(error)),
            }
        }
        Tier::Host => host::launch(roots, &exec.command, cwd, &env).map(Launched::Host),
        Tier::Refused => Err(SandboxError::Unavailable {
            reason: tier.reason.clone().unwrap_or_default(),
            fix: tier.fix.clone().unwrap_or_default(),
        }),
    }
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
    base.chain(configured).chain(exec.env.iter().cloned()).collect()
}

/// Collects output until the command ends or is ended.
pub(crate) async fn supervise(
    launched: Launched,
    limits: Limits,
    sink: Option<&dyn OutputSink>,
    cancel: &CancellationToken,
    closing: &CancellationToken,
) -> Result<ExecOutput> {
    let mut stdout = Capture::new(limits.output_limit);
    let mut stderr = Capture::new(limits.output_limit);
    let stop = async {
        tokio::select! {
            () = cancel.cancelled() => Exit::Cancelled,
            () = closing.cancelled() => Exit::Cancelled,
            () = sleep(limits.timeout) => Exit::TimedOut,
        }
    };
    let (exit, masked) = match launched {
        Launched::Isolated(running) => (isolated(running, &mut stdout, &mut stderr, sink, stop).await?, None),
        Launched::Host(running) => {
            let masked = running.masked.clone();
            let masking = sink.map(|sink| masked.sink(sink));
            let sink = masking.as_ref().map(|sink| sink as &dyn OutputSink);
            (on_host(running, &mut stdout, &mut stderr, sink, stop).await?, Some(masked))
        }
    };
    let text = |capture: Capture| {
        let (text, truncated) = capture.finish();
        (masked.as_ref().map_or_else(|| text.clone(), |masked: &Masked| masked.apply(&text)), truncated)
    };
    let ((stdout, stdout_truncated), (stderr, stderr_truncated)) = (text(stdout), text(stderr));
    Ok(ExecOutput { stdout, stderr, stdout_truncated, stderr_truncated, exit })
}

async fn isolated(
    running: isolate::Running,
    stdout: &mut Capture,
    stderr: &mut Capture,
    sink: Option<&dyn OutputSink>,
    stop: impl Future<Output = Exit>,
) -> Result<Exit> {
    let isolate::Running { mut child, mut link } = running;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let stopped = {
        // The waiter ends after the whole tree has, and with the tree everyone who could write to the pipes.
        let end = async {
            tokio::join!(
                pump(out, Stream::Stdout, stdout, sink),
                pump(err, Stream::Stderr, stderr, sink),
                child.wait()
            )
        };
        tokio::pin!(end);
        tokio::select! {
            biased;
            _ = &mut end => None,
            exit = stop => {
                link.cut();
                if timeout(BURIAL, &mut end).await.is_err() {
                    tracing::warn!("a command that was told to end has not ended yet");
                }
                Some(exit)
            }
        }
    };
    match stopped {
        Some(exit) => {
            // Without effect on a waiter that has ended; otherwise the kernel kills pid 1 together with it.
            let _ = child.start_kill();
            Ok(exit)
        }
        None => link.outcome().map_err(|failure| unavailable(&failure)),
    }
}

async fn on_host(
    running: host::Running,
    stdout: &mut Capture,
    stderr: &mut Capture,
    sink: Option<&dyn OutputSink>,
    stop: impl Future<Output = Exit>,
) -> Result<Exit> {
    let host::Running { mut child, group, .. } = running;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let pumps = async {
        tokio::join!(pump(out, Stream::Stdout, stdout, sink), pump(err, Stream::Stderr, stderr, sink));
    };
    tokio::pin!(pumps);
    let mut stop = std::pin::pin!(stop);
    let mut drained = false;
    let exit = loop {
        tokio::select! {
            biased;
            status = child.wait() => {
                break exit_of(status.map_err(|error| SandboxError::Spawn { reason: error.to_string() })?);
            }
            exit = &mut stop => break exit,
            () = &mut pumps, if !drained => drained = true,
        }
    };
    group.kill();
    // A process that left the group may hold the pipes open for ever; what it prints now is nobody's.
    if !drained && timeout(LAST_WORDS, &mut pumps).await.is_err() {
        tracing::warn!("a process outlived its command");
    }
    Ok(exit)
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(libc::SIGKILL)),
    }
}

/// Reads until the end, whatever becomes of what was read.
async fn pump(
    stream: Option<impl AsyncRead + Unpin>,
    which: Stream,
    capture: &mut Capture,
    sink: Option<&dyn OutputSink>,
) {
    let Some(mut stream) = stream else { return };
    let mut buffer = vec![0; 32 << 10];
    let mut text = TextStream::default();
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        let bytes = buffer.get(..read).unwrap_or_default();
        capture.push(bytes);
        if let Some(sink) = sink {
            text.push(bytes, |text| sink.output(which, text));
        }
    }
    if let Some(sink) = sink {
        text.finish(|text| sink.output(which, text));
    }
}
