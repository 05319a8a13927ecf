//! What every sandbox does, whatever stands behind it: one suite, run over each tier.
//!
//! A new provider joins by one more function here that hands its sandbox to [`suite`].

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hart_sandbox::{
    EntryKind, Exec, Exit, GlobQuery, GrepQuery, LineQuery, LocalSandboxProvider, Sandbox, SandboxConfig,
    SandboxError, SandboxProvider, Stream, Tier, WriteMode,
};
use hart_types::{ThreadId, UserId};
use tokio_util::sync::CancellationToken;

use crate::closed_kernel::in_a_closed_kernel;
use crate::streams::parts;
use crate::support::{PATIENCE, Place, path, private_skills, skills_are_read};

async fn suite(sandbox: Arc<dyn Sandbox>) {
    files(&*sandbox).await;
    streams(&*sandbox).await;
    skills_are_read(&*sandbox).await;
    archives(&*sandbox).await;
    searches(&*sandbox).await;
    commands(&*sandbox).await;
    endings(&*sandbox).await;
}

async fn run(sandbox: &dyn Sandbox, command: &str) -> hart_sandbox::ExecOutput {
    sandbox.exec(Exec::new(command).timeout(PATIENCE), None, &CancellationToken::new()).await.unwrap()
}

async fn files(sandbox: &dyn Sandbox) {
    let file = path("c/deep/file.bin");
    sandbox.write(&file, b"\0\xff one", WriteMode::Overwrite).await.unwrap();
    sandbox.write(&file, b" two", WriteMode::Append).await.unwrap();
    assert_eq!(sandbox.read(&file).await.unwrap(), b"\0\xff one two");
    let again = sandbox.write(&file, b"", WriteMode::CreateNew).await.unwrap_err();
    assert!(matches!(again, SandboxError::AlreadyExists(_)));
    assert!(matches!(sandbox.read_text(&file).await, Err(SandboxError::NotUtf8(_))));
    let stat = sandbox.stat(&file).await.unwrap();
    assert_eq!((stat.kind, stat.size, stat.read_only), (EntryKind::File, 10, false));
    let edited = sandbox.modify(&file, &mut |bytes| Some(bytes.to_ascii_uppercase())).await.unwrap();
    assert!(edited && sandbox.read(&file).await.unwrap().ends_with(b"ONE TWO"));
    let listing = sandbox.list(&path("c"), 2).await.unwrap();
    let names: Vec<_> = listing.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(names, ["/mnt/user-data/workspace/c/deep", "/mnt/user-data/workspace/c/deep/file.bin"]);
    assert!(matches!(sandbox.remove(&path("c")).await, Err(SandboxError::NotEmpty(_))));
    sandbox.remove(&file).await.unwrap();
    assert!(matches!(sandbox.read(&file).await, Err(SandboxError::NotFound(_))));
    for outside in ["/etc/passwd", "../../../etc/passwd", "/mnt/user-data/../x", ""] {
        assert!(sandbox.path(outside).is_err(), "{outside}");
    }
}

/// Files by their parts, and what is told about them.
async fn streams(sandbox: &dyn Sandbox) {
    let file = path("p/q.txt");
    assert_eq!(sandbox.receive(&file, &mut parts(&["one\ntwo\n", "three"]), false).await.unwrap(), 13);
    let again = sandbox.receive(&file, &mut parts(&["x"]), false).await.unwrap_err();
    assert!(matches!(again, SandboxError::AlreadyExists(_)), "{again}");
    let open = sandbox.open(&file).await.unwrap();
    let before = sandbox.mark(&file).await.unwrap();
    assert_eq!(sandbox.mark(&file).await.unwrap(), before);
    assert_eq!(sandbox.receive(&file, &mut parts(&["new\n", "lines\n"]), true).await.unwrap(), 10);
    assert_ne!(sandbox.mark(&file).await.unwrap(), before);
    assert_eq!((open.size(), open.read_at(4, 3).await.unwrap()), (13, "two".into()));
    let query = LineQuery { first: 2, last: 9, max_bytes: 100 };
    let lines = sandbox.read_lines(&file, query).await.unwrap();
    assert_eq!((lines.text.as_slice(), lines.total), (&b"lines\n"[..], Some(2)));
    assert_eq!(sandbox.resolve(&file).await.unwrap(), file);
    let read_only = sandbox.path("/mnt/skills/x").unwrap();
    let refused = sandbox.receive(&read_only, &mut parts(&["x"]), true).await.unwrap_err();
    assert!(matches!(refused, SandboxError::ReadOnly(_)), "{refused}");
    assert!(matches!(sandbox.open(&path("p")).await, Err(SandboxError::IsDirectory(_))));
    assert!(matches!(sandbox.mark(&path("p/none")).await, Err(SandboxError::NotFound(_))));
}

/// What hart keeps for the thread: read by tools and commands, written by neither.
async fn archives(sandbox: &dyn Sandbox) {
    for name in ["/large_tool_results/call_1", "/conversation_history/session.md"] {
        let file = sandbox.path(name).unwrap();
        sandbox.archive(&file, b"first\n", WriteMode::Overwrite).await.unwrap();
        sandbox.archive(&file, b"needle in it\n", WriteMode::Append).await.unwrap();
        assert_eq!(sandbox.read_text(&file).await.unwrap(), "first\nneedle in it\n");
        assert_eq!(sandbox.grep(GrepQuery::new(file.clone(), "needle")).await.unwrap().matches[0].line, 2);
        let refused = sandbox.write(&file, b"forged", WriteMode::Overwrite).await.unwrap_err();
        assert!(matches!(refused, SandboxError::ReadOnly(_)), "{refused}");
        assert!(matches!(sandbox.remove(&file).await, Err(SandboxError::ReadOnly(_))));
        let output =
            run(sandbox, &format!("grep -n needle {name}; cd {} && pwd", name.rsplit_once('/').unwrap().0))
                .await;
        assert_eq!(
            output.stdout,
            format!("2:needle in it\n{}\n", name.rsplit_once('/').unwrap().0),
            "{output:?}"
        );
        if sandbox.capabilities().tier != Tier::Host {
            let output = run(sandbox, &format!("echo forged > {name} || rm {name}")).await;
            assert_ne!(output.exit, Exit::Code(0));
            assert!(sandbox.read_text(&file).await.unwrap().starts_with("first"), "{output:?}");
        }
    }
    let elsewhere = sandbox.archive(&path("x.txt"), b"", WriteMode::Overwrite).await.unwrap_err();
    assert!(matches!(elsewhere, SandboxError::NotFound(_)), "{elsewhere}");
}

async fn searches(sandbox: &dyn Sandbox) {
    for (name, text) in [("s/a.md", "one\nTwo needle\n"), ("s/b/c.md", "needle\n"), ("s/b/d.txt", "needle\n")]
    {
        sandbox.write(&path(name), text.as_bytes(), WriteMode::Overwrite).await.unwrap();
    }
    let found = sandbox.glob(GlobQuery::new(path("s"), "**/*.md")).await.unwrap();
    assert_eq!(found.paths, [path("s/a.md"), path("s/b/c.md")]);
    let query = GrepQuery { glob: Some("*.md".to_owned()), ..GrepQuery::new(path("s"), "n[e]+dle$") };
    let found = sandbox.grep(query).await.unwrap();
    let lines: Vec<_> = found.matches.iter().map(|found| (found.path.file_name(), found.line)).collect();
    assert_eq!(lines, [("a.md", 2), ("c.md", 1)]);
}

/// Commands see the files and the files see the commands, under the same names.
async fn commands(sandbox: &dyn Sandbox) {
    sandbox.write(&path("in.txt"), b"from the tool\n", WriteMode::Overwrite).await.unwrap();
    let output = run(
        sandbox,
        "cat /mnt/user-data/workspace/in.txt; pwd; echo kept > /mnt/user-data/outputs/out.txt; \
         mkdir -p made && echo own > made/file && echo more >> in.txt; echo err >&2; exit 7",
    )
    .await;
    assert_eq!(output.exit, Exit::Code(7), "{output:?}");
    assert_eq!(
        (output.stdout.as_str(), output.stderr.as_str()),
        ("from the tool\n/mnt/user-data/workspace\n", "err\n")
    );
    let made = sandbox.path("/mnt/user-data/outputs/out.txt").unwrap();
    assert_eq!(sandbox.read_text(&made).await.unwrap(), "kept\n");
    assert_eq!(sandbox.read_text(&path("in.txt")).await.unwrap(), "from the tool\nmore\n");
    // What a command made is hart's to change and remove, and the other way round.
    sandbox.write(&path("made/file"), b"changed", WriteMode::Overwrite).await.unwrap();
    assert_eq!(
        run(sandbox, "cat made/file && echo again > made/file && rm -r made").await.exit,
        Exit::Code(0)
    );
    run(sandbox, "mkdir -m 700 shut && echo x > shut/f && chmod 600 shut/f").await;
    sandbox.remove(&path("shut/f")).await.unwrap();
    sandbox.remove(&path("shut")).await.unwrap();
    let cwd = Exec::new("pwd; echo $WORD $HOME")
        .cwd(sandbox.path("/mnt/user-data/outputs").unwrap())
        .env("WORD", "set");
    let output = sandbox.exec(cwd, None, &CancellationToken::new()).await.unwrap();
    assert_eq!(output.stdout, "/mnt/user-data/outputs\nset /mnt/user-data/workspace\n");
    let scratch = "f=$(mktemp /tmp/hart-XXXXXX) && echo t > $f && cat $f && rm $f; echo x > /dev/null; echo e > /dev/stderr";
    let output = run(sandbox, scratch).await;
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("t\n", "e\n"));
    assert_eq!(run(sandbox, "kill -TERM $$").await.exit, Exit::Signal(15));
    assert!(!run(sandbox, "env").await.stdout.contains("CARGO"), "hart's environment was passed on");
    let seen = Mutex::new(String::new());
    let sink = |stream, text: &str| seen.lock().unwrap().push_str(&format!("{stream:?}:{text}"));
    let live = Exec::new("echo /mnt/user-data/workspace/x");
    sandbox.exec(live, Some(&sink), &CancellationToken::new()).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), format!("{:?}:/mnt/user-data/workspace/x\n", Stream::Stdout));
}

async fn endings(sandbox: &dyn Sandbox) {
    let slow = Exec::new("echo up; trap '' TERM; sleep 600 & sleep 600").timeout(Duration::from_secs(2));
    let output = sandbox.exec(slow, None, &CancellationToken::new()).await.unwrap();
    assert_eq!((output.exit, output.stdout.as_str()), (Exit::TimedOut, "up\n"));
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let sink = move |_, _: &str| stop.cancel();
    let output = sandbox.exec(Exec::new("echo up; sleep 600"), Some(&sink), &cancel).await.unwrap();
    assert_eq!(output.exit, Exit::Cancelled);
    let flood = Exec::new("yes | head -c 5000000").output_limit(1000).timeout(PATIENCE);
    let output = sandbox.exec(flood, None, &CancellationToken::new()).await.unwrap();
    assert!(output.stdout_truncated && output.stdout.len() < 1100, "{}", output.stdout.len());
}

#[tokio::test]
async fn isolated() {
    let Some(place) = Place::isolated().await else { return };
    local(place.home.clone(), SandboxConfig::default(), Tier::Isolated).await;
}

async fn local(home: std::path::PathBuf, config: SandboxConfig, tier: Tier) {
    let skills = private_skills(&home, "u");
    let provider = LocalSandboxProvider::new(config, home, Some(skills)).unwrap();
    let sandbox = provider.acquire(&ThreadId::from("c"), &UserId::from("u")).await.unwrap();
    assert_eq!(sandbox.capabilities().tier, tier, "{}", provider.tier());
    suite(sandbox).await;
}

#[tokio::test]
async fn landlock() {
    let Some(home) = in_a_closed_kernel("conformance::landlock", true).await else { return };
    local(home, SandboxConfig::default(), Tier::Landlock).await;
}

#[tokio::test]
async fn host() {
    let Some(home) = in_a_closed_kernel("conformance::host", false).await else { return };
    local(home, SandboxConfig { allow_host_bash: true, ..SandboxConfig::default() }, Tier::Host).await;
}
