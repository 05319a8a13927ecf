//! Keeps the documentation true: its runnable snippets run, its relative links lead somewhere.
//!
//! Invariant: prose and fenced code are told apart, so an example in a fence is never taken for a link.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Folders that hold what others wrote or what was built.
const NOT_OURS: [&str; 5] = ["target", "node_modules", ".git", ".hart", "dist"];

/// A fenced block; where nothing else is said, one whose info string is `sh run`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    pub file: PathBuf,
    /// The line of the opening fence, from 1.
    pub line: usize,
    pub code: String,
}

/// The runnable snippets of `README.md` and `docs/**/*.md`.
#[must_use]
pub fn snippets(root: &Path) -> Vec<Snippet> {
    let documented = |file: &PathBuf| *file == root.join("README.md") || file.starts_with(root.join("docs"));
    markdown_files(root)
        .into_iter()
        .filter(documented)
        .flat_map(|file| snippets_in(&file, &read(&file)))
        .collect()
}

/// The runnable snippets of one text.
#[must_use]
pub fn snippets_in(file: &Path, markdown: &str) -> Vec<Snippet> {
    let runs = |info: &str| {
        let mut words = info.split_whitespace();
        words.next() == Some("sh") && words.any(|word| word == "run")
    };
    fenced(file, markdown, runs)
}

/// The blocks of the Markdown files in `folder` whose info string begins with `language`.
#[must_use]
pub fn blocks(folder: &Path, language: &str) -> Vec<Snippet> {
    let is = |info: &str| info.split_whitespace().next() == Some(language);
    markdown_files(folder).into_iter().flat_map(|file| fenced(&file, &read(&file), is)).collect()
}

fn fenced(file: &Path, markdown: &str, wanted: impl Fn(&str) -> bool) -> Vec<Snippet> {
    let mut found: Vec<Snippet> = Vec::new();
    let mut running = false;
    for line in lines(markdown) {
        match line.kind {
            Kind::Open(info) => {
                running = wanted(info);
                if running {
                    found.push(Snippet { file: file.to_path_buf(), line: line.number, code: String::new() });
                }
            }
            Kind::Code if running => {
                let snippet = found.last_mut().expect("a wanted fence has begun a snippet");
                snippet.code.push_str(line.text);
                snippet.code.push('\n');
            }
            Kind::Code | Kind::Close | Kind::Prose => {}
        }
    }
    found
}

/// Runs a snippet with `bash -eu` in a new folder, which is its home, with the folder of `hart` first on the path.
///
/// # Errors
/// What it printed, when it fails.
#[expect(clippy::disallowed_methods, reason = "runs what the documentation tells a user to run")]
pub fn run(snippet: &Snippet, hart: &Path, env: &[(&str, &str)]) -> Result<String, String> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut path = hart.parent().expect("a binary lies in a folder").as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin")));
    let output = Command::new("bash")
        .args(["-eu", "-c", &snippet.code])
        .current_dir(dir.path())
        .env_clear()
        .env("PATH", path)
        .env("HOME", dir.path())
        .env("HART_HOME", dir.path().join(".hart"))
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("bash runs");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let (file, line) = (snippet.file.display(), snippet.line);
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("{file}:{line}: {}\n{}\nstdout:\n{stdout}\nstderr:\n{stderr}", output.status, snippet.code))
}

/// Every relative link of the Markdown files under `root` that leads to no file, one sentence each.
#[must_use]
pub fn broken_links(root: &Path) -> Vec<String> {
    let mut broken = Vec::new();
    for file in markdown_files(root) {
        for (line, target) in links(&read(&file)) {
            let Some(path) = local_path(&target) else { continue };
            let resolved = match path.strip_prefix('/') {
                Some(from_root) => root.join(from_root),
                None => file.parent().expect("a file lies in a folder").join(&path),
            };
            if !resolved.exists() {
                let shown = file.strip_prefix(root).unwrap_or(&file).display();
                broken.push(format!("{shown}:{line}: the link {target} leads to no file"));
            }
        }
    }
    broken
}

/// The targets of inline and reference links, with their lines.
#[must_use]
pub fn links(markdown: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for line in lines(markdown).filter(|line| matches!(line.kind, Kind::Prose)) {
        let text = without_code_spans(line.text);
        let definition = text.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        if let Some((_, target)) = definition {
            found.push((line.number, destination(target)));
        }
        for (at, _) in text.match_indices("](") {
            let rest = &text[at + 2..];
            let mut depth = 0;
            let end = rest.find(|c| {
                depth += i32::from(c == '(') - i32::from(c == ')');
                depth < 0
            });
            if let Some(end) = end {
                found.push((line.number, destination(&rest[..end])));
            }
        }
    }
    found
}

/// The link itself, without its title or angle brackets.
fn destination(inside: &str) -> String {
    let inside = inside.trim();
    match inside.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        Some((bracketed, _)) => bracketed.to_owned(),
        None => inside.split_whitespace().next().unwrap_or_default().to_owned(),
    }
}

/// The path a link names in this repository; `None` when it leads elsewhere or only within its page.
fn local_path(target: &str) -> Option<String> {
    let elsewhere = target.contains("://") || target.starts_with("mailto:") || target.starts_with("data:");
    let path = target.split(['#', '?']).next().unwrap_or_default();
    (!elsewhere && !path.is_empty()).then(|| path.replace("%20", " "))
}

fn without_code_spans(line: &str) -> String {
    // The odd pieces lie between backticks; a line with an odd number of them ends in prose.
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

struct Line<'a> {
    number: usize,
    text: &'a str,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Prose,
    /// An opening fence and its info string.
    Open(&'a str),
    Code,
    Close,
}

/// The lines of a text, each knowing whether a fence holds it.
fn lines(markdown: &str) -> impl Iterator<Item = Line<'_>> {
    let mut fence: Option<&str> = None;
    markdown.lines().enumerate().map(move |(index, text)| {
        let trimmed = text.trim_start();
        let ticks = trimmed.len() - trimmed.trim_start_matches('`').len();
        let tildes = trimmed.len() - trimmed.trim_start_matches('~').len();
        let (marker, info) = trimmed.split_at(ticks.max(tildes));
        let kind = match fence {
            Some(open) if marker.starts_with(open) && info.trim().is_empty() => {
                fence = None;
                Kind::Close
            }
            Some(_) => Kind::Code,
            // Backticks after the marker make it a code span within a line of prose.
            None if marker.len() >= 3 && !info.contains('`') => {
                fence = Some(marker);
                Kind::Open(info.trim())
            }
            None => Kind::Prose,
        };
        Line { number: index + 1, text, kind }
    })
}

fn markdown_files(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("cannot read {}: {e}", folder.display()))
        {
            let entry = entry.expect("a readable folder");
            let kind = entry.file_type().expect("a file has a type");
            let name = entry.file_name();
            let is_test_data = name == "data" && folder.ends_with("tests");
            if kind.is_dir() && !is_test_data && !NOT_OURS.iter().any(|skip| name == *skip) {
                folders.push(entry.path());
            } else if kind.is_file() && entry.path().extension().is_some_and(|ext| ext == "md") {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    files
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()))
}
