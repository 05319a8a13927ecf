//! The wrapper that runs `hart`, tried on programs that exist without it.

use hart_testkit::binary::Hart;

fn shell(dir: &tempfile::TempDir, script: &str) -> Hart {
    Hart::with_bin("/bin/sh", dir.path()).args(["-c", script])
}

#[test]
fn a_run_sees_only_the_environment_it_was_given() {
    let dir = tempfile::tempdir().unwrap();
    let run = Hart::with_bin("/usr/bin/env", dir.path()).env("GIVEN", "yes").run().success();
    let mut names: Vec<_> = run.stdout.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["GIVEN", "HART_HOME", "HOME", "PATH"]);
    assert!(run.stdout.contains(&format!("HOME={}\n", dir.path().display())));
}

#[test]
fn input_output_and_code_are_collected() {
    let dir = tempfile::tempdir().unwrap();
    let run = shell(&dir, "cat; echo err >&2; exit 3").stdin("in").run();
    assert_eq!((run.code, run.signal), (Some(3), None));
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("in", "err\n"));
}

#[test]
fn much_output_never_blocks_and_unread_input_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let run = shell(&dir, "head -c 1000000 /dev/zero").stdin(vec![b'x'; 1_000_000]).run().success();
    assert_eq!(run.stdout.len(), 1_000_000);
}

#[test]
fn a_running_process_can_be_spoken_to_and_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let mut running = shell(&dir, "trap 'echo bye; exit 130' INT; read l; echo got $l; read m").spawn();
    running.write_line("hello");
    running.wait_for_stdout("got hello");
    assert_eq!((running.stdout_so_far().as_str(), running.stderr_so_far().as_str()), ("got hello\n", ""));
    running.interrupt();
    // Some shells run a trap only once the pending read has ended.
    running.close_stdin();
    let end = running.wait();
    assert_eq!((end.code, end.stdout.as_str()), (Some(130), "got hello\nbye\n"));
}

#[test]
fn a_killed_process_tells_its_signal() {
    let dir = tempfile::tempdir().unwrap();
    let running = shell(&dir, "echo up; read forever").spawn();
    running.wait_for_stdout("up");
    running.kill();
    let end = running.wait();
    assert_eq!((end.code, end.signal), (None, Some(9)));
}
