//! Runs a command in namespaces of its own, with the tools every Linux user has: no root, no daemon, no helper binary.
//!
//! Invariant: where any step of the set-up fails, the command does not run, and the failed step is named.

mod bare;
mod child;
mod filter;
mod identity;
mod landlock;
mod notify;
mod plan;
mod report;
mod sys;
mod watch;

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) use bare::{BareOrder, BarePlan};
pub(crate) use identity::Identity;
pub(crate) use landlock::abi as landlock_abi;
pub(crate) use notify::answer_reports;
pub(crate) use plan::{FILE_LIMIT, HOME, Order, Plan, SCRATCH, USER, system_paths};
pub(crate) use report::SetupFailure;
use report::{Message, Outcome};
pub(crate) use watch::plain;
pub(crate) use watch::{Watch, Writable};

use crate::egress::Network;
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
    pub(crate) descriptors: Descriptors,
}

/// What the inside handed to hart.
#[derive(Default)]
pub(crate) struct Descriptors {
    /// Refused system calls are read and answered here.
    pub(crate) reports: Option<OwnedFd>,
    /// A socket that listens inside, for the proxy.
    pub(crate) proxy: Option<OwnedFd>,
}

/// How a command is confined, worked out before fork.
pub(crate) enum Confinement {
    Namespaces(Plan),
    Bare(BarePlan),
}

/// hart's ends of the two pipes to the process that is pid 1 in the sandbox.
pub(crate) struct Link {
    report: PipeReader,
    /// Closed, by whatever means, it takes the whole tree with it: also when hart itself is killed.
    lifeline: Option<PipeWriter>,
    descriptors: UnixDatagram,
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
pub(crate) fn launch(
    confinement: Confinement,
    command: &str,
    env: &[(String, String)],
) -> Result<Running, LaunchError> {
    let (mut shell, link) = confined_shell(confinement, command)?;
    shell.envs(env.iter().map(|(name, value)| (name, value)));
    shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    // Not `kill_on_drop`: closing the lifeline ends the tree from the inside and lets every parent reap its child.
    match tokio::process::Command::from(shell).spawn() {
        Ok(child) => Ok(Running { child, descriptors: link.receive_descriptors(), link }),
        Err(error) => Err(link.explain(error)),
    }
}

/// Does everything `launch` does with this identity, for no thread and no effect.
pub(crate) fn try_out(identity: &Identity, landlock: u32) -> Result<(), SetupFailure> {
    let nothing = Roots(Vec::new());
    let hidden = Path::new("/nonexistent");
    let network = &Network::Off;
    let order = Order {
        roots: &nothing,
        hidden,
        cwd: "/",
        identity,
        network,
        pids_limit: 0,
        landlock,
        file_limit: FILE_LIMIT,
    };
    try_confinement(Confinement::Namespaces(Plan::new(order).map_err(SetupFailure::other)?), ":")
}

/// The same for confinement without namespaces.
pub(crate) fn try_out_bare(identity: &Identity, abi: u32, home: &Path) -> Result<(), SetupFailure> {
    // The home may not have been made yet.
    let cwd = home.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/"));
    let (writable, readable) = (&[], &[]);
    let network = &Network::Off;
    let hidden = home;
    let order = BareOrder { abi, identity, writable, readable, hidden, cwd, network, file_limit: FILE_LIMIT };
    let plan = BarePlan::new(order).map_err(SetupFailure::other)?;
    // Whoever the command is, it must be able to pass through what lies above the home.
    try_confinement(Confinement::Bare(plan), "cd -P \"$(pwd -P)\"")
}

fn try_confinement(confinement: Confinement, command: &str) -> Result<(), SetupFailure> {
    let (mut shell, link) = confined_shell(confinement, command).map_err(SetupFailure::other)?;
    shell.stdout(Stdio::null()).stderr(Stdio::null());
    let ended = shell.spawn().and_then(|mut child| {
        // Nobody is there to answer reports; without a reader, the kernel answers.
        drop(link.receive_descriptors());
        child.wait()
    });
    match ended {
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

fn confined_shell(confinement: Confinement, command: &str) -> io::Result<(Command, Link)> {
    let (report, report_to) = io::pipe()?;
    let (lifeline_from, lifeline) = io::pipe()?;
    let (descriptors, descriptors_to) = UnixDatagram::pair()?;
    let (shell, labels, confinement) = match confinement {
        Confinement::Namespaces(mut plan) => (plan.shell, plan.take_labels(), Confinement::Namespaces(plan)),
        Confinement::Bare(plan) => (plan.shell, Vec::new(), Confinement::Bare(plan)),
    };
    let mut shell = new_command(shell);
    shell.arg("-c").arg(command).env_clear().stdin(Stdio::null());
    let line = sys::command_line();
    // The closure owns the child's ends; they are closed here when the `Command` is dropped after spawning.
    let enter = move || {
        let ends = child::Ends {
            report: report_to.as_raw_fd(),
            lifeline: lifeline_from.as_raw_fd(),
            descriptors: descriptors_to.as_raw_fd(),
        };
        match &confinement {
            Confinement::Namespaces(plan) => child::enter(plan, ends, line.as_ref()),
            Confinement::Bare(plan) => bare::enter(plan, ends, line.as_ref()),
        }
        Ok(())
    };
    #[expect(unsafe_code, reason = "runs between fork and exec")]
    // SAFETY: `enter` allocates nothing, takes no lock and cannot panic: it makes system calls on what the plan prepared.
    unsafe {
        shell.pre_exec(enter);
    }
    Ok((shell, Link { report, lifeline: Some(lifeline), descriptors, labels }))
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

    /// Everything was sent before the command began, so nothing is waited for.
    fn receive_descriptors(&self) -> Descriptors {
        use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
        let mut received = Descriptors::default();
        loop {
            let mut what = [0];
            let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let data = &mut [io::IoSliceMut::new(&mut what)];
            if !recvmsg(&self.descriptors, data, &mut control, flags).is_ok_and(|message| message.bytes == 1)
            {
                return received;
            }
            let fd = control.drain().find_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
                _ => None,
            });
            match what {
                [child::SECCOMP_REPORTS] => received.reports = fd,
                [child::PROXY_LISTENER] => received.proxy = fd,
                _ => {}
            }
        }
    }

    fn explain(&self, error: io::Error) -> LaunchError {
        match Message::receive(&self.report).map(|message| message.outcome(&self.labels)) {
            Some(Outcome::Failed(failure)) => LaunchError::Setup(failure),
            _ => LaunchError::Io(error),
        }
    }
}
