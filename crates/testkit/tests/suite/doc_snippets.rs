//! The documentation of the repository, and the reader of it.

use std::fs;
use std::path::Path;

use hart_testkit::binary::{existing_hart_bin, hart_bin, workspace_root};
use hart_testkit::{ModelServer, Turn, docs};

#[test]
fn runnable_snippets_run() {
    let snippets = docs::snippets(&workspace_root());
    if snippets.is_empty() {
        return;
    }
    let ci = std::env::var_os("CI").is_some();
    if existing_hart_bin().is_none() && !ci {
        eprintln!("skipped: no hart binary; build it, or set HART_BIN or CI");
        return;
    }
    // A reader of the documentation has a model; so have its snippets.
    let model = ModelServer::with_blocking(|_| Turn::new().text("Hello from the scripted model."));
    let (openai, anthropic) = (model.openai_base(), model.anthropic_base());
    let env = [
        ("OPENAI_BASE_URL", openai.as_str()),
        ("OPENAI_API_KEY", "test"),
        ("ANTHROPIC_BASE_URL", anthropic.as_str()),
        ("ANTHROPIC_API_KEY", "test"),
    ];
    let failures: Vec<_> =
        snippets.iter().filter_map(|snippet| docs::run(snippet, hart_bin(), &env).err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn relative_links_lead_to_files() {
    let broken = docs::broken_links(&workspace_root());
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn only_shell_fences_marked_run_are_snippets() {
    let text = "# T\n```sh run\necho a\n```\n```sh\nrm -rf x\n```\n~~~sh title=x run\necho b\n```\n~~~\n```rust run\n```\n";
    let found = docs::snippets_in(Path::new("x.md"), text);
    let brief: Vec<_> = found.iter().map(|s| (s.line, s.code.as_str())).collect();
    assert_eq!(brief, [(2, "echo a\n"), (8, "echo b\n```\n")]);
}

#[test]
fn a_snippet_stops_at_its_first_failure() {
    let snippet =
        |code: &str| docs::snippets_in(Path::new("x.md"), &format!("```sh run\n{code}\n```")).remove(0);
    let hart = Path::new("/nowhere/hart");
    assert_eq!(
        docs::run(&snippet("echo $GREETING > f\ncat f"), hart, &[("GREETING", "hi")]).unwrap(),
        "hi\n"
    );
    let failure = docs::run(&snippet("false\necho reached"), hart, &[]).unwrap_err();
    assert!(failure.starts_with("x.md:1:") && !failure.contains("stdout:\nreached"), "{failure}");
    assert!(docs::run(&snippet("echo $UNSET"), hart, &[]).is_err());
}

#[test]
fn links_are_read_from_prose_alone() {
    let text =
        "[a](b.md#x) ![i](<c d.png> \"t\") `[no](no.md)` [p](q(1).md)\n```\n[no](no.md)\n```\n[ref]: e.md\n";
    let targets: Vec<_> =
        docs::links(text).into_iter().map(|(line, target)| format!("{line} {target}")).collect();
    assert_eq!(targets, ["1 b.md#x", "1 c d.png", "1 q(1).md", "5 e.md"]);
}

#[test]
fn a_broken_link_is_told_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("docs")).unwrap();
    fs::create_dir(dir.path().join("target")).unwrap();
    fs::write(dir.path().join("README.md"), "[d](docs/a.md) [w](https://x.y/z) [h](#here)").unwrap();
    fs::write(dir.path().join("docs/a.md"), "[r](../README.md) [root](/README.md)\n[gone](b.md#part)")
        .unwrap();
    fs::write(dir.path().join("target/built.md"), "[gone](nowhere.md)").unwrap();
    assert_eq!(docs::broken_links(dir.path()), ["docs/a.md:2: the link b.md#part leads to no file"]);
}
