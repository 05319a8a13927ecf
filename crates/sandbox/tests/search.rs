//! Finding files and lines.

use hart_sandbox::{GlobQuery, GrepOutput, GrepQuery, SandboxError, WriteMode};

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
    let all = ["main.py", "src/app.py", "src/deep/er/mod.py"];
    assert_eq!(place.found(".", "*.py").await, all, "a name is looked for at any depth");
    assert_eq!(place.found(".", "**/*.py").await, all);
    for here in ["./*.py", "/*.py", "/mnt/user-data/workspace/*.py"] {
        assert_eq!(place.found(".", here).await, ["main.py"], "{here}");
    }
    assert_eq!(place.found(".", "*/*.py").await, ["src/app.py"]);
    assert_eq!(place.found(".", "/src/**/*.py").await, ["src/app.py", "src/deep/er/mod.py"]);
    assert_eq!(place.found(".", "src/**/er/*").await, ["src/deep/er/mod.py"]);
    assert_eq!(place.found(".", "s*/deep/**").await, ["src/deep/er/mod.py"]);
    assert_eq!(place.found(".", "**/deep/**/*.py").await, ["src/deep/er/mod.py"]);
    assert_eq!(place.found(".", "m?d.[p]y").await, ["src/deep/er/mod.py"]);
    assert_eq!(place.found(".", "{src/app,main}.py").await, ["main.py", "src/app.py"]);
    assert_eq!(place.found(".", "!*.py").await, [] as [&str; 0], "there is no negation");
    assert_eq!(place.found(".", "src/*").await, ["src/app.js", "src/app.py"]);
    assert_eq!(place.found(".", "src/**").await, ["src/app.js", "src/app.py", "src/deep/er/mod.py"]);
    assert_eq!(place.found(".", "**/app.{js,py}").await, ["src/app.js", "src/app.py"]);
    assert_eq!(place.found("src", "*.js").await, ["src/app.js"]);
    assert_eq!(place.found(".", "/mnt/user-data/workspace/**/mod.py").await, ["src/deep/er/mod.py"]);
    assert_eq!(place.found(".", "./*.md").await, ["README.md"]);
    assert_eq!(place.found(".", "**/note.md").await, [".hidden/note.md"], "hidden names are names");
    assert_eq!(place.found(".", "*ignore").await, [".gitignore"]);
    assert_eq!(place.found(".", "**").await.len(), 7);
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
async fn the_end_of_a_line_is_found_in_files_of_both_kinds() {
    let place = Place::new().await;
    for (text, pattern, lines) in [
        ("line\n", "^line$", 1),
        ("line", "line$", 1),
        ("a\nline\nb", "^line$", 1),
        ("a\r\nline\r\nb\r\n", "^line$", 1),
        ("a\r\nline\r\nb\r\n", "^.$", 2),
        ("a\n\nb\n", "^$", 1),
        ("a\r\n\r\nb\r\n", "^$", 1),
        ("price $5\r\n", r"\$5", 1),
    ] {
        place.sandbox.write(&path("dir/f"), text.as_bytes(), WriteMode::Overwrite).await.unwrap();
        for base in ["dir", "dir/f"] {
            let found = place.sandbox.grep(GrepQuery::new(path(base), pattern)).await.unwrap();
            assert_eq!(found.matches.len(), lines, "{text:?} {pattern} in {base}");
        }
    }
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
    assert!(result.matches[0].cut);
    // What was found is what is shown.
    let line = format!("{}needle{}", "ü".repeat(500), "x".repeat(500));
    place.sandbox.write(&path("g"), line.as_bytes(), WriteMode::Overwrite).await.unwrap();
    let result = place.sandbox.grep(GrepQuery::new(path("."), "needle")).await.unwrap();
    assert_eq!(result.matches[0].text, format!("…{}needle{}…", "ü".repeat(50), "x".repeat(144)));
}

#[tokio::test]
async fn lines_come_with_what_is_around_them() {
    let place = Place::new().await;
    let text: String = (1..=30).map(|line| format!("line {line}\r\n")).collect();
    place.sandbox.write(&path("f"), text.as_bytes(), WriteMode::Overwrite).await.unwrap();
    let around = async |pattern: &str, before, after, max_results| {
        let query = GrepQuery { before, after, max_results, ..GrepQuery::new(path("."), pattern) };
        let result = place.sandbox.grep(query).await.unwrap();
        let show = |hit: hart_sandbox::GrepMatch| {
            format!("{} [{}] {}", hit.before.join(","), hit.line, hit.after.join(",")).replace("line ", "")
        };
        (result.matches.into_iter().map(show).collect::<Vec<_>>(), result.truncated)
    };
    assert_eq!(around("line 5$", 2, 1, 100).await.0, ["3,4 [5] 6"]);
    // No line twice: what lies between two matches comes after the first.
    assert_eq!(
        around("line (5|7|8|12)$", 2, 1, 100).await.0,
        ["3,4 [5] 6", " [7] ", " [8] 9", "10,11 [12] 13"]
    );
    assert_eq!(around("line (1|30)$", 3, 3, 100).await.0, [" [1] 2,3,4", "27,28,29 [30] "]);
    // The last that fits has its context too, and it is known that there are more.
    assert_eq!(around("line (5|20)$", 1, 1, 1).await, (vec!["4 [5] 6".to_owned()], true));
    assert_eq!(around("line 15$", 99, 99, 1).await.0[0].matches(',').count(), 14 - 1 + 15 - 1);
}

#[tokio::test]
async fn files_can_be_named_or_counted_instead() {
    let place = project().await;
    let files = async |output, max_results| {
        let query = GrepQuery { output, max_results, before: 3, ..GrepQuery::new(path("."), "hello") };
        let result = place.sandbox.grep(query).await.unwrap();
        assert_eq!(result.matches, []);
        let show = |file: &hart_sandbox::GrepFile| (file.path.file_name().to_owned(), file.lines);
        (result.files.iter().map(show).collect::<Vec<_>>(), result.truncated)
    };
    let names = ["note.md", "README.md", "main.py", "app.js", "app.py"];
    let expected = |lines: [Option<u64>; 5]| {
        names.iter().zip(lines).map(|(name, lines)| ((*name).to_owned(), lines)).collect::<Vec<_>>()
    };
    assert_eq!(files(GrepOutput::Files, 5).await, (expected([None; 5]), false));
    assert_eq!(files(GrepOutput::Counts, 5).await, (expected([1, 1, 1, 1, 2].map(Some)), false));
    assert_eq!(files(GrepOutput::Counts, 2).await, (expected([1, 1, 1, 1, 2].map(Some))[..2].to_vec(), true));
}

#[tokio::test]
async fn a_file_that_is_named_is_searched_however_large() {
    let place = Place::new().await;
    let text = format!("{}\nneedle\n{}", "x".repeat(3 << 20), "line\n".repeat(50_000));
    place.sandbox.write(&path("large.log"), text.as_bytes(), WriteMode::Overwrite).await.unwrap();
    assert_eq!(place.lines(GrepQuery::new(path("large.log"), "needle")).await, ["large.log:2: needle"]);
    let count = GrepQuery { output: GrepOutput::Counts, ..GrepQuery::new(path("large.log"), "^line$") };
    assert_eq!(place.sandbox.grep(count).await.unwrap().files[0].lines, Some(50_000));
    let among_others = place.sandbox.grep(GrepQuery::new(path("."), "needle")).await.unwrap();
    assert_eq!((among_others.matches.len(), among_others.skipped_large), (0, 1));
    place.sandbox.write(&path("binary"), b"needle\0", WriteMode::Overwrite).await.unwrap();
    let binary = place.sandbox.grep(GrepQuery::new(path("binary"), "needle")).await.unwrap();
    assert_eq!((binary.matches.len(), binary.skipped_binary), (0, 1));
}

/// The first results in path order, whichever thread was faster; so is what is said about files passed over.
#[tokio::test]
async fn a_search_cut_short_gives_the_same_every_time() {
    let place = Place::new().await;
    for index in 0..600 {
        // Many directories, and one with many files.
        let dir = if index % 3 == 0 { "flat".to_owned() } else { format!("d{}/e{}", index % 7, index % 11) };
        let file = place.workspace().join(dir).join(format!("f{index}.txt"));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, if index % 5 == 0 { "needle\0" } else { "needle\nneedle\n" }).unwrap();
    }
    let all: Vec<String> = {
        let mut query = GlobQuery::new(path("."), "*.txt");
        query.max_results = 1000;
        place.sandbox.glob(query).await.unwrap().paths.iter().map(|path| path.to_string()).collect()
    };
    assert_eq!(all.len(), 600);
    for limit in [1, 7, 40, 150] {
        let query = GrepQuery { max_results: limit, ..GrepQuery::new(path("."), "needle") };
        let expected = place.sandbox.grep(query.clone()).await.unwrap();
        assert_eq!((expected.matches.len(), expected.truncated), (limit, true));
        let last = expected.matches.last().unwrap().path.to_string();
        let before_last = all.iter().take_while(|path| **path != last).filter(|path| {
            let number = path.rsplit_once("/f").unwrap().1.trim_end_matches(".txt").parse::<usize>().unwrap();
            number.is_multiple_of(5)
        });
        assert_eq!(expected.skipped_binary, before_last.count(), "limit {limit}");
        for _ in 0..20 {
            assert_eq!(place.sandbox.grep(query.clone()).await.unwrap(), expected, "limit {limit}");
            let mut glob = GlobQuery::new(path("."), "*.txt");
            glob.max_results = limit;
            let found = place.sandbox.glob(glob).await.unwrap();
            let found: Vec<String> = found.paths.iter().map(|path| path.to_string()).collect();
            assert_eq!(found, all[..limit], "limit {limit}");
        }
    }
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
    for glob in ["a[", "../*", "/mnt/user-data/outputs/*", "", "/", "{a"] {
        let error = place.sandbox.glob(GlobQuery::new(path("."), glob)).await.unwrap_err();
        assert!(matches!(error, SandboxError::BadPattern { .. }), "`{glob}`: {error}");
    }
    let missing = place.sandbox.glob(GlobQuery::new(path("missing"), "*")).await;
    assert!(matches!(missing, Err(SandboxError::NotFound(_))));
}
