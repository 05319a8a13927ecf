//! Finding files and lines.

use hart_sandbox::{GlobQuery, GrepQuery, SandboxError, WriteMode};

use crate::support::{Place, path};

async fn project() -> Place {
    let place = Place::new().await;
    let files = [
        ("main.py", "import os\nprint('Hello')\n"),
        ("src/app.py", "def hello():\n    return 'HELLO world'\n"),
        ("src/deep/er/mod.py", "# nothing\n"),
        ("src/app.js", "console.log('hello')\n"),
        ("README.md", "Hello (world)\n"),
        ("node_modules/lib/index.js", "hello\n"),
        (".gitignore", "*.py\n"),
        (".hidden/note.md", "hello\n"),
    ];
    for (name, content) in files {
        place.sandbox.write(&path(name), content.as_bytes(), WriteMode::Overwrite).await.unwrap();
    }
    place
}

impl Place {
    async fn found(&self, base: &str, pattern: &str) -> Vec<String> {
        let result = self.sandbox.glob(GlobQuery::new(path(base), pattern)).await.unwrap();
        assert!(!result.truncated);
        let cut = |path: &hart_sandbox::VPath| path.as_str().replace("/mnt/user-data/workspace/", "");
        result.paths.iter().map(cut).collect()
    }

    async fn lines(&self, query: GrepQuery) -> Vec<String> {
        let result = self.sandbox.grep(query).await.unwrap();
        let show = |found: &hart_sandbox::GrepMatch| {
            format!(
                "{}:{}: {}",
                found.path.as_str().replace("/mnt/user-data/workspace/", ""),
                found.line,
                found.text
            )
        };
        result.matches.iter().map(show).collect()
    }
}

#[tokio::test]
async fn stars_mean_what_they_mean() {
    let place = project().await;
    assert_eq!(place.found(".", "*.py").await, ["main.py"]);
    assert_eq!(place.found(".", "**/*.py").await, ["main.py", "src/app.py", "src/deep/er/mod.py"]);
    assert_eq!(place.found(".", "src/*").await, ["src/app.js", "src/app.py"]);
    assert_eq!(place.found(".", "src/**").await, ["src/app.js", "src/app.py", "src/deep/er/mod.py"]);
    assert_eq!(place.found(".", "**/app.{js,py}").await, ["src/app.js", "src/app.py"]);
    assert_eq!(place.found("src", "*.js").await, ["src/app.js"]);
    assert_eq!(place.found(".", "/mnt/user-data/workspace/**/mod.py").await, ["src/deep/er/mod.py"]);
    assert_eq!(place.found(".", "./*.md").await, ["README.md"]);
    assert_eq!(place.found(".", "**/note.md").await, [".hidden/note.md"]);
    assert_eq!(place.found("/mnt/user-data", "workspace/*.md").await, ["README.md"]);
    assert_eq!(place.found("/mnt/user-data", "**/main.py").await, ["main.py"]);
}

#[tokio::test]
async fn noise_is_skipped_unless_named() {
    let place = project().await;
    assert_eq!(place.found(".", "**/index.js").await, [] as [&str; 0]);
    assert_eq!(place.found(".", "node_modules/**/*.js").await, ["node_modules/lib/index.js"]);
    assert_eq!(place.found("node_modules", "**/*.js").await, ["node_modules/lib/index.js"]);
}

#[tokio::test]
async fn directories_are_found_on_request() {
    let place = project().await;
    let mut query = GlobQuery::new(path("."), "**/deep");
    assert_eq!(place.sandbox.glob(query.clone()).await.unwrap().paths, []);
    query.include_dirs = true;
    assert_eq!(place.sandbox.glob(query).await.unwrap().paths, [path("src/deep")]);
}

#[tokio::test]
async fn results_are_cut_where_asked() {
    let place = project().await;
    let mut query = GlobQuery::new(path("."), "**/*.py");
    query.max_results = 2;
    let result = place.sandbox.glob(query.clone()).await.unwrap();
    assert_eq!((result.paths.len(), result.truncated), (2, true));
    query.max_results = 3;
    assert!(!place.sandbox.glob(query).await.unwrap().truncated);
    let mut query = GrepQuery::new(path("."), "hello");
    query.max_results = 2;
    let result = place.sandbox.grep(query).await.unwrap();
    assert_eq!((result.matches.len(), result.truncated), (2, true));
}

#[tokio::test]
async fn lines_are_found_with_their_number() {
    let place = project().await;
    assert_eq!(
        place.lines(GrepQuery::new(path("."), "hello")).await,
        [
            ".hidden/note.md:1: hello",
            "README.md:1: Hello (world)",
            "main.py:2: print('Hello')",
            "src/app.js:1: console.log('hello')",
            "src/app.py:1: def hello():",
            "src/app.py:2:     return 'HELLO world'",
        ]
    );
    let mut query = GrepQuery::new(path("src"), "HELLO");
    query.case_sensitive = true;
    assert_eq!(place.lines(query).await, ["src/app.py:2:     return 'HELLO world'"]);
    assert_eq!(place.lines(GrepQuery::new(path("src/app.py"), r"^\s+return")).await.len(), 1);
}

#[tokio::test]
async fn a_literal_is_not_a_regex() {
    let place = project().await;
    let mut query = GrepQuery::new(path("."), "(world)");
    query.literal = true;
    assert_eq!(place.lines(query.clone()).await, ["README.md:1: Hello (world)"]);
    query.literal = false;
    assert_eq!(place.lines(query).await.len(), 2);
}

#[tokio::test]
async fn a_glob_narrows_by_name_or_by_path() {
    let place = project().await;
    let mut query = GrepQuery::new(path("."), "hello");
    query.glob = Some("*.js".into());
    assert_eq!(place.lines(query.clone()).await, ["src/app.js:1: console.log('hello')"]);
    query.glob = Some("src/*.py".into());
    assert_eq!(place.lines(query).await.len(), 2);
}

#[tokio::test]
async fn binary_and_large_files_are_passed_over() {
    let place = Place::new().await;
    place.sandbox.write(&path("binary"), b"needle\0", WriteMode::Overwrite).await.unwrap();
    place
        .sandbox
        .write(&path("large"), "needle\n".repeat(200_000).as_bytes(), WriteMode::Overwrite)
        .await
        .unwrap();
    place.sandbox.write(&path("latin1"), b"needle caf\xe9\r\n", WriteMode::Overwrite).await.unwrap();
    assert_eq!(place.lines(GrepQuery::new(path("."), "needle")).await, ["latin1:1: needle caf\u{fffd}"]);
}

#[tokio::test]
async fn long_lines_are_cut_between_characters() {
    let place = Place::new().await;
    place.sandbox.write(&path("f"), "ü".repeat(500).as_bytes(), WriteMode::Overwrite).await.unwrap();
    let result = place.sandbox.grep(GrepQuery::new(path("."), "ü")).await.unwrap();
    assert_eq!(result.matches[0].text, format!("{}…", "ü".repeat(200)));
}

#[tokio::test]
async fn a_hostile_regex_ends() {
    let place = Place::new().await;
    place.sandbox.write(&path("f"), "a".repeat(100_000).as_bytes(), WriteMode::Overwrite).await.unwrap();
    place.sandbox.grep(GrepQuery::new(path("."), "(a*)*b")).await.unwrap();
    let huge = place.sandbox.grep(GrepQuery::new(path("."), "(a{1000}){1000}{1000}")).await;
    assert!(matches!(huge, Err(SandboxError::BadPattern { .. })), "{huge:?}");
}

#[tokio::test]
async fn bad_patterns_are_explained() {
    let place = Place::new().await;
    let error = place.sandbox.grep(GrepQuery::new(path("."), "foo(bar")).await.unwrap_err().to_string();
    assert!(error.starts_with("bad pattern `foo(bar`: ") && error.contains("unclosed group"), "{error}");
    let error = place.sandbox.grep(GrepQuery::new(path("."), "a\nb")).await.unwrap_err();
    assert!(matches!(error, SandboxError::BadPattern { .. }), "{error}");
    for glob in ["a[", "../*", "/etc/*", "", "{a"] {
        let error = place.sandbox.glob(GlobQuery::new(path("."), glob)).await.unwrap_err();
        assert!(matches!(error, SandboxError::BadPattern { .. }), "`{glob}`: {error}");
    }
    let missing = place.sandbox.glob(GlobQuery::new(path("missing"), "*")).await;
    assert!(matches!(missing, Err(SandboxError::NotFound(_))));
}
