//! The rules: what is not run, what is run with a warning.
//!
//! Invariant: each rule says why it spoke and what to do instead, in words for the model.

use super::Verdict::{self, Block, Warn};
use super::matchers::{self, Seen};

#[derive(Debug)]
pub struct AuditRule {
    pub id: &'static str,
    pub verdict: Verdict,
    pub why: &'static str,
    pub instead: &'static str,
    matches: fn(&Seen<'_>) -> bool,
}

pub(super) fn worst(seen: &Seen<'_>) -> Option<&'static AuditRule> {
    // The first of equals, as the table has them.
    let speaking = AUDIT_RULES.iter().filter(|rule| (rule.matches)(seen));
    speaking.reduce(|worst, next| if next.verdict > worst.verdict { next } else { worst })
}

const fn rule(
    id: &'static str,
    verdict: Verdict,
    why: &'static str,
    instead: &'static str,
    matches: fn(&Seen<'_>) -> bool,
) -> AuditRule {
    AuditRule { id, verdict, why, instead, matches }
}

/// All rules. The ids are stable: they stand in audit logs.
pub static AUDIT_RULES: [AuditRule; 27] = [
    rule(
        "rm-root",
        Block,
        "it deletes the system or all of the user's files",
        "name the files or the \
        directory below /mnt/user-data/workspace that shall go",
        matchers::rm_root,
    ),
    rule(
        "find-delete-root",
        Block,
        "it deletes whatever it finds from the root on",
        "start the search in a \
        directory of /mnt/user-data",
        matchers::find_delete_root,
    ),
    rule(
        "download-to-shell",
        Block,
        "it runs what a server sends, unseen",
        "save it to a file, read it, \
        then run it",
        matchers::download_to_shell,
    ),
    rule(
        "decoded-to-shell",
        Block,
        "it runs a text that cannot be read",
        "decode it to a file, read it, \
        then run it",
        matchers::decoded_to_shell,
    ),
    rule(
        "fork-bomb",
        Block,
        "it starts copies of itself without end",
        "start a fixed number of processes",
        matchers::fork_bomb,
    ),
    rule(
        "device-write",
        Block,
        "it writes to a disk or to memory directly",
        "write to a file",
        matchers::device_write,
    ),
    rule(
        "format-disk",
        Block,
        "it formats or partitions a disk",
        "work with files; an image file can be \
        made with `dd of=disk.img`",
        matchers::format_disk,
    ),
    rule(
        "chmod-root",
        Block,
        "it changes the rights of system directories",
        "name files below \
        /mnt/user-data",
        matchers::chmod_root,
    ),
    rule(
        "shutdown",
        Block,
        "it stops the machine",
        "end single processes that you started",
        matchers::shutdown,
    ),
    rule("kill-all", Block, "it ends every process", "end a process by its id", matchers::kill_all),
    rule(
        "crypto-miner",
        Block,
        "it mines a cryptocurrency",
        "nothing: this is not done here",
        matchers::crypto_miner,
    ),
    rule(
        "system-file",
        Block,
        "it changes files that the system trusts",
        "keep configuration in the \
        workspace and pass it to the program",
        matchers::system_file,
    ),
    rule(
        "read-secrets",
        Block,
        "it reads passwords or keys",
        "ask the user for what the task needs",
        matchers::read_secrets,
    ),
    rule(
        "metadata-service",
        Block,
        "it asks the cloud's metadata service, which hands out keys",
        "ask the \
        user for what the task needs",
        matchers::metadata_service,
    ),
    rule(
        "reverse-shell",
        Block,
        "it gives someone else a shell here",
        "use a tool that moves files or data",
        matchers::reverse_shell,
    ),
    rule(
        "plant-key",
        Block,
        "it lets someone log in later",
        "ask the user to set up access",
        matchers::plant_key,
    ),
    rule("kernel", Block, "it changes the kernel", "do without: the sandbox cannot", matchers::kernel),
    rule(
        "escape",
        Block,
        "it enters other namespaces or another root",
        "work in the sandbox as it is",
        matchers::escape,
    ),
    rule(
        "container-socket",
        Block,
        "it controls the machine through its container engine",
        "run the \
        program directly",
        matchers::container_socket,
    ),
    rule("sudo", Warn, "there is no other user to become here", "run the command without it", matchers::sudo),
    rule(
        "rm-everything-here",
        Warn,
        "it deletes everything in the directory it runs in",
        "name what shall \
        go",
        matchers::rm_here,
    ),
    rule(
        "chmod-777",
        Warn,
        "it lets everyone write",
        "use 755 for programs and directories, 644 for files",
        matchers::chmod_777,
    ),
    rule(
        "secrets-file",
        Warn,
        "it shows a file that usually holds secrets",
        "do not repeat what is in it to \
        anyone",
        matchers::secrets_file,
    ),
    rule(
        "git-destructive",
        Warn,
        "it discards work that git cannot bring back",
        "make sure the user wants \
        it; `git stash` keeps it",
        matchers::git_destructive,
    ),
    rule(
        "preload",
        Warn,
        "it puts foreign code into every program",
        "configure the program itself",
        matchers::preload,
    ),
    rule(
        "scheduled-job",
        Warn,
        "it leaves something behind that runs later",
        "run it now; nothing of the \
        sandbox runs later",
        matchers::scheduled_job,
    ),
    rule(
        "cover-tracks",
        Warn,
        "it removes the record of what was done",
        "leave the record",
        matchers::cover_tracks,
    ),
];
