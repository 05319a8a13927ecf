//! `ls`, `glob`, `grep`.

use hart_sandbox::SandboxConfig;
use serde_json::json;

use crate::place::Place;

fn project() -> Place {
    let place = Place::new();
    place.put("workspace/README.md", "# Title\nSee a.b(c).\n");
    place.put("workspace/src/main.py", "import os\nTODO = 1\n# todo: more\n");
    place.put("workspace/src/deep/er/far.py", "x = 'aXbYc'\n");
    place.put("workspace/node_modules/pkg/index.js", "todo\n");
    place
}

#[tokio::test]
async fn ls_shows_two_levels() {
    let place = project();
    assert_eq!(
        place.ok("ls", json!({"description": "look", "path": "/mnt/user-data/workspace"})).await,
        "/mnt/user-data/workspace/README.md\n\
         /mnt/user-data/workspace/src/\n\
         /mnt/user-data/workspace/src/deep/\n\
         /mnt/user-data/workspace/src/main.py"
    );
    let outputs = json!({"description": "look", "path": "/mnt/user-data/outputs/"});
    assert_eq!(place.ok("ls", outputs).await, "(empty)");
}

#[tokio::test]
async fn ls_of_the_top_shows_where_things_are() {
    let place = Place::new();
    let text = place.ok("ls", json!({"description": "look", "path": "/mnt/user-data"})).await;
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["/mnt/user-data/outputs/", "/mnt/user-data/uploads/", "/mnt/user-data/workspace/"]);
}

#[tokio::test]
async fn ls_of_a_file_says_what_to_use() {
    let place = project();
    assert_eq!(
        place.fails("ls", json!({"description": "", "path": "README.md"})).await,
        "`/mnt/user-data/workspace/README.md` is not a directory; use read_file to read a file, or ls on \
         its parent"
    );
}

#[tokio::test]
async fn ls_keeps_to_its_limit() {
    let place = Place::with(SandboxConfig { ls_output_max_chars: 300, ..SandboxConfig::default() });
    for index in 0..100 {
        place.put(&format!("workspace/{index}.txt"), "");
    }
    let text = place.ok("ls", json!({"description": "", "path": "."})).await;
    assert!(text.chars().count() <= 300);
    assert!(text.lines().last().unwrap().starts_with("... [truncated: showing first "), "{text}");
}

#[tokio::test]
async fn glob_numbers_what_it_finds() {
    let place = project();
    let args = json!({"description": "find", "pattern": "**/*.py", "path": "/mnt/user-data/workspace"});
    assert_eq!(
        place.ok("glob", args).await,
        "Found 2 paths under /mnt/user-data/workspace\n\
         1. /mnt/user-data/workspace/src/deep/er/far.py\n\
         2. /mnt/user-data/workspace/src/main.py"
    );
    let args = json!({"description": "", "pattern": "./*", "path": "src", "include_dirs": "true"});
    assert_eq!(
        place.ok("glob", args).await,
        "Found 2 paths under /mnt/user-data/workspace/src\n\
         1. /mnt/user-data/workspace/src/deep\n\
         2. /mnt/user-data/workspace/src/main.py"
    );
    let args = json!({"description": "", "pattern": "*.rs", "path": "/mnt/user-data/workspace"});
    assert_eq!(place.ok("glob", args).await, "No files matched under /mnt/user-data/workspace");
}

#[tokio::test]
async fn glob_says_when_there_is_more() {
    let place = project();
    let args = json!({"description": "", "pattern": "**/*.py", "path": "/mnt/user-data/workspace",
        "max_results": 1});
    assert_eq!(
        place.ok("glob", args).await,
        "Found 1 paths under /mnt/user-data/workspace (showing first 1)\n\
         1. /mnt/user-data/workspace/src/deep/er/far.py\n\
         There are more. Narrow the pattern or the path, or raise max_results."
    );
}

#[tokio::test]
async fn glob_says_what_may_have_been_meant() {
    let place = project();
    assert_eq!(
        place.ok("glob", json!({"pattern": "dee*"})).await,
        "No files matched under /mnt/user-data/workspace, but directories did: \
         /mnt/user-data/workspace/src/deep/. Use ls, or include_dirs."
    );
    assert_eq!(
        place.ok("glob", json!({"pattern": "/etc/*.conf"})).await,
        "No files matched under /mnt/user-data/workspace. A leading `/` stands for that directory."
    );
}

#[tokio::test]
async fn glob_explains_what_it_cannot_do() {
    let place = project();
    assert_eq!(
        place.fails("glob", json!({"description": "", "pattern": " ", "path": "."})).await,
        "the pattern is empty; use `**/*` for every file"
    );
    let error = place.fails("glob", json!({"description": "", "pattern": "[", "path": "."})).await;
    assert!(error.starts_with("bad pattern `[`: "), "{error}");
    assert_eq!(
        place.fails("glob", json!({"description": "", "pattern": "*", "path": "README.md"})).await,
        "`/mnt/user-data/workspace/README.md` is not a directory; name the directory to search in"
    );
}

#[tokio::test]
async fn grep_names_file_and_line() {
    let place = project();
    let args = json!({"description": "find", "pattern": "todo", "path": "/mnt/user-data/workspace"});
    assert_eq!(
        place.ok("grep", args).await,
        "Found 2 matches under /mnt/user-data/workspace\n\
         /mnt/user-data/workspace/src/main.py:2: TODO = 1\n\
         /mnt/user-data/workspace/src/main.py:3: # todo: more"
    );
    let args = json!({"description": "", "pattern": "todo", "path": ".", "case_sensitive": true});
    assert_eq!(
        place.ok("grep", args).await,
        "Found 1 matches under /mnt/user-data/workspace\n/mnt/user-data/workspace/src/main.py:3: # todo: more"
    );
    let args = json!({"description": "", "pattern": "absent", "path": "."});
    assert_eq!(place.ok("grep", args).await, "No matches found under /mnt/user-data/workspace");
}

#[tokio::test]
async fn grep_takes_plain_text_a_glob_and_a_single_file() {
    let place = project();
    let literal = json!({"description": "", "pattern": "a.b(c)", "path": ".", "literal": true});
    assert_eq!(
        place.ok("grep", literal).await,
        "Found 1 matches under /mnt/user-data/workspace\n/mnt/user-data/workspace/README.md:2: See a.b(c)."
    );
    let globbed = json!({"description": "", "pattern": "a.b.c", "path": ".", "glob": "*.py"});
    assert_eq!(
        place.ok("grep", globbed).await,
        "Found 1 matches under /mnt/user-data/workspace\n\
         /mnt/user-data/workspace/src/deep/er/far.py:1: x = 'aXbYc'"
    );
    let file = json!({"description": "", "pattern": "^import", "path": "src/main.py", "glob": ""});
    assert_eq!(
        place.ok("grep", file).await,
        "Found 1 matches under /mnt/user-data/workspace/src/main.py\n\
         /mnt/user-data/workspace/src/main.py:1: import os"
    );
}

#[tokio::test]
async fn grep_shows_what_is_around_a_line() {
    let place = project();
    place.put("workspace/log.txt", (1..=20).map(|line| format!("entry {line}\n")).collect::<String>());
    let args = json!({"description": "", "pattern": "todo|entry (3|5|15)$", "path": ".", "context": 1,
        "before": "0"});
    assert_eq!(
        place.ok("grep", args).await,
        "Found 5 matches under /mnt/user-data/workspace\n\
         /mnt/user-data/workspace/log.txt:\n  3: entry 3\n  4- entry 4\n  5: entry 5\n  6- entry 6\n--\n  \
         15: entry 15\n  16- entry 16\n\
         /mnt/user-data/workspace/src/main.py:\n  2: TODO = 1\n  3: # todo: more"
    );
    // As other harnesses write it.
    let args = json!({"pattern": "entry 15", "path": "log.txt", "-B": 1, "-A": 2, "head_limit": 5});
    assert_eq!(
        place.ok("grep", args).await,
        "Found 1 matches under /mnt/user-data/workspace/log.txt\n\
         /mnt/user-data/workspace/log.txt:\n  14- entry 14\n  15: entry 15\n  16- entry 16\n  17- entry 17"
    );
}

#[tokio::test]
async fn grep_names_or_counts_files() {
    let place = project();
    let mode = |mode: &str| json!({"description": "", "pattern": "o", "path": ".", "output_mode": mode});
    assert_eq!(
        place.ok("grep", mode("files_with_matches")).await,
        "Found 1 files with matches under /mnt/user-data/workspace\n/mnt/user-data/workspace/src/main.py"
    );
    assert_eq!(
        place.ok("grep", mode("count")).await,
        "Found 1 files with matches under /mnt/user-data/workspace\n/mnt/user-data/workspace/src/main.py: 3"
    );
    let none = json!({"pattern": "absent", "path": ".", "output_mode": "count"});
    assert_eq!(place.ok("grep", none).await, "No matches found under /mnt/user-data/workspace");
    match place.call("grep", mode("all")).await {
        Err(hart_kernel::ToolError::Arguments(message)) => assert_eq!(
            message,
            "unknown variant `all`, expected one of `content`, `files_with_matches`, `count`"
        ),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn without_a_path_the_workspace_is_meant() {
    let place = project();
    assert!(place.ok("ls", json!({})).await.starts_with("/mnt/user-data/workspace/README.md\n"));
    let found = place.ok("glob", json!({"pattern": "far.py", "path": null})).await;
    assert!(found.starts_with("Found 1 paths under /mnt/user-data/workspace\n"), "{found}");
    let found = place.ok("grep", json!({"pattern": "aXbYc"})).await;
    assert!(found.starts_with("Found 1 matches under /mnt/user-data/workspace\n"), "{found}");
}

#[tokio::test]
async fn grep_says_what_of_a_line_it_shows() {
    let place = Place::new();
    place.put("workspace/min.js", format!("{}needle();{}\n", "a".repeat(5000), "b".repeat(5000)));
    assert_eq!(
        place.ok("grep", json!({"pattern": "needle", "path": "."})).await,
        format!(
            "Found 1 matches under /mnt/user-data/workspace\n\
             /mnt/user-data/workspace/min.js:1: …{}needle();{}…\n\
             Lines with … are longer than shown; see all of one with read_file.",
            "a".repeat(50),
            "b".repeat(141)
        )
    );
}

#[tokio::test]
async fn grep_says_when_there_is_more() {
    let place = project();
    let args = json!({"description": "", "pattern": "todo", "path": ".", "max_results": 1});
    assert_eq!(
        place.ok("grep", args).await,
        "Found 1 matches under /mnt/user-data/workspace (showing first 1)\n\
         /mnt/user-data/workspace/src/main.py:2: TODO = 1\n\
         There are more. Narrow the pattern or the path, add a glob, or raise max_results."
    );
}

#[tokio::test]
async fn grep_explains_what_it_cannot_do() {
    let place = project();
    assert_eq!(
        place.fails("grep", json!({"description": "", "pattern": "", "path": "."})).await,
        "the pattern is empty; say what to look for, or use read_file or glob"
    );
    let error = place.fails("grep", json!({"description": "", "pattern": "(", "path": "."})).await;
    assert!(error.starts_with("bad pattern `(`: "), "{error}");
    assert!(error.ends_with("Correct it, or set literal to true to find the text as it is"), "{error}");
    let error = place.fails("grep", json!({"pattern": "a\\nb"})).await;
    assert_eq!(
        error,
        "bad pattern `a\\nb`: it holds a line end, and matching is by line; look for one of the lines, with the \
         lines around it"
    );
    let nothing = json!({"pattern": "todo", "path": ".", "glob": "*.rb"});
    assert_eq!(
        place.ok("grep", nothing).await,
        "No matches found under /mnt/user-data/workspace in files that match `*.rb`"
    );
    let error =
        place.fails("grep", json!({"description": "", "pattern": "x", "path": ".", "glob": "["})).await;
    assert!(error.starts_with("bad pattern `[`: ") && !error.contains("literal"), "{error}");
}
