//! What a command gets and what comes back.

use std::sync::Mutex;

use hart_sandbox::{Exec, Exit, SandboxError, Stream, WriteMode};
use tokio_util::sync::CancellationToken;

use crate::support::{PATIENCE, Place, path};

#[tokio::test]
async fn says_hello() {
    let Some(place) = Place::isolated().await else { return };
    let output = place.run("echo hello; echo trouble >&2").await;
    assert_eq!(output.stdout, "hello\n");
    assert_eq!(output.stderr, "trouble\n");
    assert_eq!(output.exit, Exit::Code(0));
    assert!(!output.stdout_truncated && !output.stderr_truncated);
}

#[tokio::test]
async fn exit_codes_and_signals_come_back() {
    let Some(place) = Place::isolated().await else { return };
    assert_eq!(place.run("exit 7").await.exit, Exit::Code(7));
    assert_eq!(place.run("no-such-program").await.exit, Exit::Code(127));
    assert_eq!(place.run("kill -TERM $$").await.exit, Exit::Signal(15));
    assert_eq!(place.run("kill -9 $$").await.exit, Exit::Signal(9));
}

#[tokio::test]
async fn shows_exactly_the_allowed_environment() {
    let Some(place) = Place::isolated_with(|config, _| {
        config.environment.insert("FROM_CONFIG".into(), "one".into());
        config.environment.insert("BOTH".into(), "config".into());
        None
    })
    .await
    else {
        return;
    };
    let exec =
        Exec::new("/usr/bin/env -0 | tr '\\0' '\\n' | cut -d= -f1 | sort | tr '\\n' ' '; echo \"$BOTH\"");
    let output = place.exec(exec.env("FROM_CALL", "two").env("BOTH", "call").timeout(PATIENCE)).await;
    // The last four are the shell's own.
    assert_eq!(
        output.stdout.trim(),
        "BOTH FROM_CALL FROM_CONFIG HOME LANG LOGNAME PATH PWD SHLVL TERM TMPDIR USER _ call"
    );
}

#[tokio::test]
async fn starts_in_the_workspace_or_where_told() {
    let Some(place) = Place::isolated().await else { return };
    assert_eq!(place.stdout("pwd; cd; pwd").await, "/mnt/user-data/workspace\n/mnt/user-data/workspace");
    let output = place.exec(Exec::new("pwd").cwd(path("/mnt/user-data/outputs"))).await;
    assert_eq!(output.stdout, "/mnt/user-data/outputs\n");
    let missing = Exec::new("pwd").cwd(path("nowhere"));
    let error = place.sandbox.exec(missing, None, &CancellationToken::new()).await.unwrap_err();
    assert!(matches!(error, SandboxError::NotFound(_)), "{error}");
}

#[tokio::test]
async fn commands_and_file_operations_see_the_same_files() {
    let Some(place) = Place::isolated().await else { return };
    place.sandbox.write(&path("in/a.txt"), b"from outside", WriteMode::Overwrite).await.unwrap();
    assert_eq!(
        place.stdout("cat in/a.txt; echo -n from inside > /mnt/user-data/outputs/b.txt").await,
        "from outside"
    );
    assert_eq!(place.sandbox.read(&path("/mnt/user-data/outputs/b.txt")).await.unwrap(), b"from inside");
}

#[tokio::test]
async fn ordinary_programs_work() {
    let Some(place) = Place::isolated().await else { return };
    assert_eq!(place.stdout("cat <(echo substitution) /dev/null").await, "substitution");
    assert_eq!(place.stdout("id -un; hostname 2>/dev/null || cat /etc/hostname").await, "user\nsandbox");
    assert_eq!(
        place.stdout("f=$(mktemp) && echo x > $f && wc -l < $f; head -c 4 /dev/urandom | wc -c").await,
        "1\n4"
    );
    if std::path::Path::new("/usr/bin/python3").exists() {
        let script =
            "import socket, ssl, json, multiprocessing as m, tempfile; m.Lock(); print(json.dumps([6*7]))";
        assert_eq!(place.stdout(&format!("/usr/bin/python3 -c '{script}'")).await, "[42]");
        let server = "import socket; s = socket.create_server((\"127.0.0.1\", 0)); \
                      socket.create_connection(s.getsockname()); print(\"own loopback\")";
        assert_eq!(place.stdout(&format!("/usr/bin/python3 -c '{server}'")).await, "own loopback");
    }
}

#[tokio::test]
async fn output_streams_while_the_command_runs() {
    let Some(place) = Place::isolated().await else { return };
    let seen = Mutex::new(Vec::new());
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    // The command ends only because its output was seen while it ran.
    let sink = |stream: Stream, text: &str| {
        seen.lock().unwrap().push((stream, text.to_owned()));
        stop.cancel();
    };
    let output = place.sandbox.exec(Exec::new("printf 'ü…'; sleep 600"), Some(&sink), &cancel).await.unwrap();
    assert_eq!(output.exit, Exit::Cancelled);
    assert_eq!(output.stdout, "ü…");
    assert_eq!(*seen.lock().unwrap(), [(Stream::Stdout, "ü…".to_owned())]);
}

#[tokio::test]
async fn a_flood_is_bounded_and_keeps_both_ends() {
    let Some(place) = Place::isolated().await else { return };
    let exec = Exec::new("echo first; head -c 50000000 /dev/zero | tr '\\0' x; echo; echo last; echo e >&2");
    let output = place.exec(exec.output_limit(1000).timeout(PATIENCE)).await;
    assert!(output.stdout_truncated && !output.stderr_truncated);
    assert!(output.stdout.len() < 1100, "{} bytes", output.stdout.len());
    assert!(output.stdout.starts_with("first\n") && output.stdout.ends_with("last\n"));
    assert!(output.stdout.contains("bytes omitted"));
    assert_eq!(output.exit, Exit::Code(0));
}

#[tokio::test]
async fn bytes_that_are_no_text_are_replaced() {
    let Some(place) = Place::isolated().await else { return };
    assert_eq!(place.run("printf 'a\\377b'").await.stdout, "a\u{fffd}b");
}

#[tokio::test]
async fn what_cannot_be_started_is_said_before_starting() {
    let place = Place::new().await;
    let fails =
        async |exec: Exec| place.sandbox.exec(exec, None, &CancellationToken::new()).await.unwrap_err();
    assert!(matches!(fails(Exec::new("echo \0")).await, SandboxError::NulInCommand));
    assert!(matches!(fails(Exec::new("x".repeat(200_000))).await, SandboxError::CommandTooLong { .. }));
    assert!(matches!(fails(Exec::new(":").env("A=B", "")).await, SandboxError::BadEnvironment { .. }));
    assert!(matches!(fails(Exec::new(":").env("A", "\0")).await, SandboxError::BadEnvironment { .. }));
}

#[tokio::test]
async fn a_long_command_is_no_problem() {
    let Some(place) = Place::isolated().await else { return };
    let filler = "x".repeat(120_000);
    assert_eq!(place.stdout(&format!("echo {filler} | wc -c")).await, "120001");
}

#[tokio::test]
async fn many_at_once() {
    let Some(place) = Place::isolated().await else { return };
    let place = std::sync::Arc::new(place);
    let mut running = tokio::task::JoinSet::new();
    for number in 0..24 {
        let place = std::sync::Arc::clone(&place);
        running.spawn(async move { (number, place.stdout(&format!("echo {number}")).await) });
    }
    while let Some(ended) = running.join_next().await {
        let (number, printed) = ended.unwrap();
        assert_eq!(printed, number.to_string());
    }
}

#[tokio::test]
async fn a_host_path_printed_in_two_pieces_is_masked() {
    let Some(place) = Place::isolated().await else { return };
    let seen = std::sync::Mutex::new(String::new());
    let sink = |_: Stream, text: &str| seen.lock().unwrap().push_str(text);
    // What the kernel says the workspace was mounted from, with a pause in the middle of it.
    let command = "p=$(grep -o ' [^ ]*/user-data/workspace ' /proc/self/mountinfo | head -n 1); \
                   for cut in 3 10 30; do printf %s \"${p:0:cut}\"; sleep 0.1; printf '%s\\n' \"${p:cut}\"; done";
    let exec = Exec::new(command).timeout(PATIENCE);
    let output = place.sandbox.exec(exec, Some(&sink), &CancellationToken::new()).await.unwrap();
    assert_eq!(output.stdout, " /mnt/user-data/workspace \n".repeat(3), "{output:?}");
    assert_eq!(*seen.lock().unwrap(), output.stdout);
}
