use std::time::Duration;

use hart_sandbox::{ExecOutput, Exit, SandboxError, SavedOutput, VPath};

use super::{cannot_run, render, shorten};

fn shown(stdout: &str, stderr: &str, exit: Exit) -> String {
    render(&output(stdout, stderr, exit), Duration::from_millis(1500))
}

fn shortened(output: &ExecOutput) -> String {
    let saved = SavedOutput::new(VPath::parse("x.log").unwrap(), 1 << 20);
    shorten(render(output, Duration::ZERO), 20_000, output, &saved)
}

fn output(stdout: &str, stderr: &str, exit: Exit) -> ExecOutput {
    ExecOutput {
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
        stdout_truncated: false,
        stderr_truncated: false,
        exit,
    }
}

#[test]
fn each_part_has_its_place() {
    assert_eq!(shown("out\n", "", Exit::Code(0)), "out");
    assert_eq!(shown("", "warning\n", Exit::Code(0)), "Std Error:\nwarning");
    assert_eq!(shown("out\n", "oops\n", Exit::Code(2)), "out\nStd Error:\noops\nExit Code: 2");
    assert_eq!(shown("", "", Exit::Code(3)), "Exit Code: 3");
    assert_eq!(shown("", "", Exit::Code(0)), "(no output)");
    assert_eq!(shown("\n", "", Exit::Code(0)), "(no output)");
    assert_eq!(shown("", "", Exit::Signal(9)), "Exit Code: 137 (killed by signal 9)");
    assert_eq!(
        shown("half", "", Exit::Cancelled),
        "half\nCancelled: the command was stopped before it ended."
    );
}

#[test]
fn a_timeout_says_how_long_and_what_was_printed() {
    assert_eq!(
        shown("half\n", "", Exit::TimedOut),
        "half\nTimed Out: the command was stopped after 1.5 seconds, with everything it had started. What \
         it had printed is above. Split the work into shorter commands, or have it save what it has done \
         and continue from there."
    );
    let silent = shown("", "", Exit::TimedOut);
    assert!(silent.starts_with("Timed Out: ") && silent.contains(" It had printed nothing. "), "{silent}");
}

#[test]
fn the_middle_of_long_output_is_left_out_and_the_exit_code_is_not() {
    let long = "a".repeat(15_000) + &"z".repeat(15_000);
    let text = shortened(&output(&long, "", Exit::Code(1)));
    assert_eq!(text.chars().count(), 20_000);
    assert!(text.starts_with("aaaa") && text.ends_with("zzzz\nExit Code: 1"));
    let (head, rest) = text.split_once("\n... [middle truncated: ").unwrap();
    let (skipped, rest) = rest.split_once(" chars skipped; redirect the output to a file").unwrap();
    let (_, tail) = rest.split_once("] ...\n").unwrap();
    assert_eq!(
        head.len() + skipped.parse::<usize>().unwrap() + tail.len(),
        long.len() + "\nExit Code: 1".len(),
        "what is shown and what is skipped make up the whole"
    );
}

#[test]
fn what_the_capture_left_out_is_not_hidden() {
    let mut output = output(&"x".repeat(30_000), "", Exit::Code(0));
    output.stdout_truncated = true;
    assert!(shortened(&output).contains("[middle truncated: more than "));
}

#[test]
fn where_commands_are_refused_the_user_is_to_be_told_why_and_what_helps() {
    let refused =
        SandboxError::Unavailable { reason: "no user namespaces".into(), fix: "set the sysctl".into() };
    assert_eq!(
        cannot_run(refused).to_string(),
        "commands cannot run here: no user namespaces. Trying again will not help; tell the user, with this \
         remedy: set the sysctl. The file tools still work"
    );
    assert_eq!(
        cannot_run(SandboxError::Spawn { reason: "no shell".into() }).to_string(),
        "the command could not be started: no shell. If it fails again, tell the user; the cause lies \
         outside your reach"
    );
}
