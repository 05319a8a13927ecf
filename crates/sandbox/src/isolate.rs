//! Runs a command in namespaces of its own, with the tools every Linux user has: no root, no daemon, no helper binary.
//!
//! Invariant: where any step of the set-up fails, the command does not run, and the failed step is named.

mod child;
mod filter;
mod plan;
mod report;
mod sys;

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) use plan::{HOME, Plan, USER};
pub(crate) use report::SetupFailure;
use report::{Message, Outcome};

use crate::exec::Exit;
use crate::files::Roots;

/// Name and `unshare` flag of what a command gets of its own.
pub(crate) const NAMESPACES: [(&str, i32); 6] = [
    ("user", libc::CLONE_NEWUSER),
    ("mount", libc::CLONE_NEWNS),
    ("pid", libc::CLONE_NEWPID),
    ("network", libc::CLONE_NEWNET),
    ("ipc", libc::CLONE_NEWIPC),
    ("uts", libc::CLONE_NEWUTS),
];

/// A command that runs isolated. Dropped, it ends.
pub(crate) struct Running {
    /// The waiter: it ends when the last process of the sandbox has.
    pub(crate) child: tokio::process::Child,
    pub(crate) link: Link,
}

/// hart's ends of the two pipes to the process that is pid 1 in the sandbox.
pub(crate) struct Link {
    report: PipeReader,
    /// Closed, by whatever means, it takes the whole tree with it: also when hart itself is killed.
    lifeline: Option<PipeWriter>,
    labels: Vec<String>,
}

/// What went wrong between asking and running.
pub(crate) enum LaunchError {
    Setup(SetupFailure),
    Io(io::Error),
}

impl From<io::Error> for LaunchError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Starts `command` in a shell. Blocks for the few milliseconds of the set-up; needs a tokio runtime around it.
pub(crate) fn launch(plan: Plan, command: &str, env: &[(String, String)]) -> Result<Running, LaunchError> {
    let (mut shell, link) = confined_shell(plan, command)?;
    shell.envs(env.iter().map(|(name, value)| (name, value)));
    shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    // Not `kill_on_drop`: closing the lifeline ends the tree from the inside and lets every parent reap its child.
    match tokio::process::Command::from(shell).spawn() {
        Ok(child) => Ok(Running { child, link }),
        Err(error) => Err(link.explain(error)),
    }
}

/// Does everything `launch` does, for no thread and no effect.
pub(crate) fn try_out() -> Result<(), SetupFailure> {
    let nothing = Roots(Vec::new());
    let plan = Plan::new(&nothing, Path::new("/nonexistent"), "/").map_err(SetupFailure::other)?;
    let (mut shell, link) = confined_shell(plan, ":").map_err(SetupFailure::other)?;
    shell.stdout(Stdio::null()).stderr(Stdio::null());
    match shell.status() {
        Ok(_) => match link.outcome()? {
            Exit::Code(0) => Ok(()),
            exit => {
                Err(SetupFailure::other(io::Error::other(format!("the trial command ended with {exit:?}"))))
            }
        },
        Err(error) => match link.explain(error) {
            LaunchError::Setup(failure) => Err(failure),
            LaunchError::Io(error) => Err(SetupFailure::other(error)),
        },
    }
}

/// Whether a process may make this one namespace (with a user namespace, without which none is to be had).
pub(crate) fn namespace_works(flag: i32) -> bool {
    let mut command = new_command("/bin/true");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).env_clear();
    let unshare = move || sys::unshare(libc::CLONE_NEWUSER | flag).map_err(io::Error::from_raw_os_error);
    #[expect(unsafe_code, reason = "runs between fork and exec")]
    // SAFETY: the closure makes one system call and touches no memory that another thread may hold.
    unsafe {
        command.pre_exec(unshare);
    }
    command.status().is_ok_and(|status| status.success())
}

fn confined_shell(mut plan: Plan, command: &str) -> io::Result<(Command, Link)> {
    let (report, report_to) = io::pipe()?;
    let (lifeline_from, lifeline) = io::pipe()?;
    let labels = plan.take_labels();
    let mut shell = new_command(plan.shell);
    shell.arg("-c").arg(command).env_clear().stdin(Stdio::null());
    // The closure owns the child's ends; they are closed here when the `Command` is dropped after spawning.
    let enter = move || {
        let ends = child::Ends { report: report_to.as_raw_fd(), lifeline: lifeline_from.as_raw_fd() };
        child::enter(&plan, ends);
        Ok(())
    };
    #[expect(unsafe_code, reason = "runs between fork and exec")]
    // SAFETY: `enter` allocates nothing, takes no lock and cannot panic: it makes system calls on what `plan` prepared.
    unsafe {
        shell.pre_exec(enter);
    }
    Ok((shell, Link { report, lifeline: Some(lifeline), labels }))
}

#[expect(clippy::disallowed_methods, reason = "this is the module that confines")]
fn new_command(program: &str) -> Command {
    Command::new(program)
}

impl Link {
    /// Ends the sandbox.
    pub(crate) fn cut(&mut self) {
        self.lifeline = None;
    }

    /// How the command ended. To be asked once the child has been waited for.
    pub(crate) fn outcome(&self) -> Result<Exit, SetupFailure> {
        match Message::receive(&self.report).map(|message| message.outcome(&self.labels)) {
            Some(Outcome::Ended(exit)) => Ok(exit),
            Some(Outcome::Failed(failure)) => Err(failure),
            // Pid 1 was killed before it could tell, and everything with it.
            None => Ok(Exit::Signal(libc::SIGKILL)),
        }
    }

    fn explain(&self, error: io::Error) -> LaunchError {
        match Message::receive(&self.report).map(|message| message.outcome(&self.labels)) {
            Some(Outcome::Failed(failure)) => LaunchError::Setup(failure),
            _ => LaunchError::Io(error),
        }
    }
}
