//! `read_file`, `write_file`, `str_replace`.

use hart_kernel::ToolError;
use hart_sandbox::SandboxConfig;
use serde_json::json;

use crate::place::Place;

const NOTES: &str = "/mnt/user-data/workspace/notes.txt";

#[tokio::test]
async fn what_is_written_is_read() {
    let place = Place::new();
    let text = "first\nsecond\r\n\tthird äöü 🦌";
    let written =
        place.ok("write_file", json!({"description": "note", "path": NOTES, "content": text})).await;
    assert_eq!(written, "OK");
    assert_eq!(place.get("workspace/notes.txt"), text);
    assert_eq!(place.ok("read_file", json!({"description": "look", "path": NOTES})).await, text);
}

#[tokio::test]
async fn a_missing_description_is_forgiven_and_a_relative_path_starts_in_the_workspace() {
    let place = Place::new();
    assert_eq!(place.ok("write_file", json!({"path": "deep/er/a.txt", "content": "x"})).await, "OK");
    assert_eq!(place.get("workspace/deep/er/a.txt"), "x");
    let null = json!({"description": null, "path": "deep/er/a.txt", "start_line": null, "end_line": "1"});
    assert_eq!(place.ok("read_file", null).await, "x");
}

#[tokio::test]
async fn appending_adds_and_writing_replaces() {
    let place = Place::new();
    for (content, append, then) in [("a\n", false, "a\n"), ("b\n", true, "a\nb\n"), ("c\n", false, "c\n")] {
        let args = json!({"description": "", "path": NOTES, "content": content, "append": append});
        assert_eq!(place.ok("write_file", args).await, "OK");
        assert_eq!(place.get("workspace/notes.txt"), then);
    }
}

#[tokio::test]
async fn too_much_at_once_is_to_be_written_in_parts() {
    let place = Place::new();
    let args = |length: usize| json!({"description": "", "path": NOTES, "content": "x".repeat(length)});
    assert_eq!(
        place.fails("write_file", args(81_921)).await,
        "the content has 81921 bytes, the limit of one call is 81920, and nothing was written; write it in \
         parts: the first with append=false, each further one with append=true"
    );
    assert!(!place.host("workspace/notes.txt").exists());
    assert_eq!(place.ok("write_file", args(81_920)).await, "OK");
}

#[tokio::test]
async fn lines_are_chosen_inclusively() {
    let place = Place::new();
    place.put("workspace/notes.txt", "1\n2\n3\n4\n");
    let read = |start: Option<u32>, end: Option<u32>| {
        json!({"description": "", "path": NOTES,
        "start_line": start, "end_line": end})
    };
    assert_eq!(place.ok("read_file", read(Some(2), Some(3))).await, "2\n3\n");
    assert_eq!(place.ok("read_file", read(Some(3), None)).await, "3\n4\n");
    assert_eq!(place.ok("read_file", read(None, Some(1))).await, "1\n");
    assert_eq!(place.ok("read_file", read(Some(4), Some(99))).await, "4\n");
    assert_eq!(
        place.fails("read_file", read(Some(5), None)).await,
        "start_line 5 is beyond the end: `/mnt/user-data/workspace/notes.txt` has 4 lines; ask for a range \
         from 1 to 4"
    );
    assert_eq!(
        place.fails("read_file", read(Some(0), None)).await,
        "lines are counted from 1; give start_line and end_line of at least 1"
    );
    assert_eq!(
        place.fails("read_file", read(Some(3), Some(2))).await,
        "end_line 2 is before start_line 3; swap them"
    );
}

#[tokio::test]
async fn an_empty_file_says_so() {
    let place = Place::new();
    place.put("workspace/notes.txt", "");
    assert_eq!(place.ok("read_file", json!({"description": "", "path": NOTES})).await, "(empty)");
}

#[tokio::test]
async fn long_files_are_cut_with_a_way_to_read_on() {
    let place = Place::new();
    place.put("workspace/notes.txt", "123456789\n".repeat(10_000));
    let text = place.ok("read_file", json!({"description": "", "path": NOTES})).await;
    assert!(text.chars().count() <= 50_000);
    assert!(
        text.ends_with(
            "123456789\n... [truncated: showing lines 1-4991 of 10000; read on with start_line=4992] ..."
        ),
        "{}",
        text.lines().last().unwrap()
    );
    let small = Place::with(SandboxConfig { read_file_output_max_chars: 200, ..SandboxConfig::default() });
    small.put("workspace/notes.txt", "123456789\n".repeat(100));
    let text = small.ok("read_file", json!({"description": "", "path": NOTES})).await;
    assert!(text.chars().count() <= 200, "the limit is the configured one");
}

#[tokio::test]
async fn what_is_not_text_is_refused_by_name() {
    let place = Place::new();
    let read = |name: &str| json!({"description": "", "path": name});
    place.put("workspace/a.png", b"\x89PNG\r\n\x1a\n\0\0\0\0");
    assert_eq!(
        place.fails("read_file", read("a.png")).await,
        "`/mnt/user-data/workspace/a.png` is not UTF-8 text but a PNG image, 12 bytes; look at it with a program \
         in bash (for example Python with Pillow), or show it to the user with present_files"
    );
    place.put("workspace/latin.txt", b"caf\xe9");
    assert_eq!(
        place.fails("read_file", read("latin.txt")).await,
        "`/mnt/user-data/workspace/latin.txt` is not UTF-8 text but text in another encoding, 4 bytes; \
         convert it in bash, for example with `iconv -f ISO-8859-1 -t UTF-8` (`file` may know the \
         encoding), then read the result"
    );
    place.put("workspace/blob", b"text\0text");
    assert!(
        place
            .fails("read_file", read("blob"))
            .await
            .contains(" is not UTF-8 text but binary data, 9 bytes; ")
    );
}

#[tokio::test]
async fn a_directory_is_no_file() {
    let place = Place::new();
    let directory = "`/mnt/user-data/workspace` is a directory, not a file; use ls to see what is in it, \
        then name a file";
    let path = "/mnt/user-data/workspace";
    assert_eq!(place.fails("read_file", json!({"description": "", "path": path})).await, directory);
    let edit = json!({"description": "", "path": path, "old_str": "a", "new_str": "b"});
    assert_eq!(place.fails("str_replace", edit).await, directory);
    std::fs::create_dir_all(place.host("workspace/sub")).unwrap();
    let write = json!({"description": "", "path": "/mnt/user-data/workspace/sub", "content": ""});
    assert_eq!(
        place.fails("write_file", write).await,
        "`/mnt/user-data/workspace/sub` is a directory, not a file; use ls to see what is in it, then name \
         a file"
    );
}

#[tokio::test]
async fn paths_that_lead_nowhere_are_explained_by_every_tool() {
    let place = Place::new();
    place.put("workspace/file", "text");
    let bad = [
        ("/etc/passwd", "outside the sandbox: `/etc/passwd`; use "),
        ("../../../etc/passwd", "outside the sandbox: `../../../etc/passwd`; use "),
        ("a\0b", "the path contains a NUL byte: `a\\0b`; remove it"),
        ("", "the path is empty; name a file or directory"),
    ];
    for tool in ["read_file", "write_file", "str_replace", "ls", "glob", "grep"] {
        for (path, message) in bad {
            let args = json!({
                "description": "", "path": path, "content": "", "old_str": "a", "new_str": "b",
                "pattern": "x",
            });
            let error = place.fails(tool, args).await;
            assert!(error.starts_with(message), "{tool} {path:?}: {error}");
        }
    }
    for tool in ["read_file", "str_replace", "ls", "glob", "grep"] {
        let args = json!({"description": "", "path": "gone", "old_str": "a", "new_str": "b", "pattern": "x"});
        let error = place.fails(tool, args).await;
        assert!(
            error.starts_with("no such file or directory: `/mnt/user-data/workspace/gone`; "),
            "{tool}: {error}"
        );
    }
    let through_file = json!({"description": "", "path": "file/below", "content": ""});
    let error = place.fails("write_file", through_file).await;
    assert_eq!(
        error,
        "`/mnt/user-data/workspace/file/below` is not a directory, or a part of it is a file; use ls on its \
         parent to see what is there"
    );
}

#[tokio::test]
async fn replacing_changes_the_one_place() {
    let place = Place::new();
    place.put("workspace/notes.txt", "a = 1\nb = 2\n");
    let args = json!({"description": "", "path": NOTES, "old_str": "b = 2", "new_str": "b = 3"});
    assert_eq!(place.ok("str_replace", args).await, "OK");
    assert_eq!(place.get("workspace/notes.txt"), "a = 1\nb = 3\n");
    let delete = json!({"description": "", "path": NOTES, "old_str": "a = 1\n", "new_str": ""});
    assert_eq!(place.ok("str_replace", delete).await, "OK");
    assert_eq!(place.get("workspace/notes.txt"), "b = 3\n");
}

#[tokio::test]
async fn an_ambiguous_text_is_refused_unless_all_are_meant() {
    let place = Place::new();
    place.put("workspace/notes.txt", "x\ny\nx\nz x\n");
    let args = |all: bool| {
        json!({"description": "", "path": NOTES, "old_str": "x", "new_str": "q",
        "replace_all": all})
    };
    assert_eq!(
        place.fails("str_replace", args(false)).await,
        "old_str occurs 3 times in `/mnt/user-data/workspace/notes.txt`, at lines 1, 3, 4, and nothing was \
         changed; include more of the text around the place you mean, or set replace_all to true"
    );
    assert_eq!(place.get("workspace/notes.txt"), "x\ny\nx\nz x\n");
    assert_eq!(place.ok("str_replace", args(true)).await, "OK: replaced 3 occurrences");
    assert_eq!(place.get("workspace/notes.txt"), "q\ny\nq\nz q\n");
}

#[tokio::test]
async fn a_text_that_is_not_there_is_hinted_at() {
    let place = Place::new();
    place.put("workspace/notes.txt", "if x:\n\treturn 1\n");
    let args = json!({"description": "", "path": NOTES, "old_str": "if x:\n    return 1", "new_str": ""});
    assert_eq!(
        place.fails("str_replace", args).await,
        "old_str was not found in `/mnt/user-data/workspace/notes.txt`, and nothing was changed. The same \
         text with different whitespace is at line 1; read the file from there and copy it exactly"
    );
    assert_eq!(place.get("workspace/notes.txt"), "if x:\n\treturn 1\n");
}

#[tokio::test]
async fn windows_line_ends_need_not_be_written() {
    let place = Place::new();
    place.put("workspace/notes.txt", "one\r\ntwo\r\nthree\r\n");
    let edit = async |old: &str, new: &str| {
        place.ok("str_replace", json!({"path": NOTES, "old_str": old, "new_str": new})).await
    };
    assert_eq!(edit("one\ntwo", "1\n2").await, "OK");
    assert_eq!(edit("three", "3\n4").await, "OK");
    assert_eq!(place.get("workspace/notes.txt"), "1\r\n2\r\n3\r\n4\r\n");
    // Who writes them is taken at his word, and a file with both keeps what it has.
    assert_eq!(edit("1\r\n", "1\n").await, "OK");
    assert_eq!(edit("1", "0\n1").await, "OK");
    assert_eq!(place.get("workspace/notes.txt"), "0\n1\n2\r\n3\r\n4\r\n");
}

#[tokio::test]
async fn a_file_of_the_same_name_elsewhere_is_named() {
    let place = Place::new();
    place.put("workspace/src/a.py", "x");
    let expected = "no such file or directory: `/mnt/user-data/workspace/scr/a.py`; list its parent directory to \
                    see what is there. There is `/mnt/user-data/workspace/src/a.py`";
    assert_eq!(place.fails("read_file", json!({"path": "scr/a.py"})).await, expected);
    let edit = json!({"path": "scr/a.py", "old_str": "x", "new_str": "y"});
    assert_eq!(place.fails("str_replace", edit).await, expected);
}

#[tokio::test]
async fn what_read_file_says_about_the_rest_of_a_line_is_true() {
    let Some(place) = Place::for_commands(SandboxConfig::default()) else { return };
    let line: String = (0..40_000).map(|index| if index % 3 == 0 { 'ä' } else { 'x' }).chain(['E']).collect();
    place.put("workspace/it's.txt", format!("first\n{}\nlast\n", line.repeat(2)));
    let text = place.ok("read_file", json!({"path": "it's.txt", "start_line": 2})).await;
    let (shown, note) = text.split_once('\n').unwrap();
    let command = note.split('`').nth(1).unwrap().replace("head -c 20000", "cat");
    let rest = place.ok("bash", json!({"command": format!("{command} > rest.txt; echo done")})).await;
    assert_eq!(rest, "done");
    assert_eq!(format!("{shown}{}", place.get("workspace/rest.txt")), format!("{}\n", line.repeat(2)));
    assert!(note.contains("; the line after it is start_line=3]"), "{note}");
    let last = place.ok("read_file", json!({"path": "it's.txt", "start_line": 3})).await;
    assert_eq!(last, "last\n");
}

#[tokio::test]
async fn edits_without_a_meaning_are_refused() {
    let place = Place::new();
    place.put("workspace/notes.txt", "x");
    let args =
        |old: &str, new: &str| json!({"description": "", "path": NOTES, "old_str": old, "new_str": new});
    assert_eq!(
        place.fails("str_replace", args("", "y")).await,
        "old_str is empty; give the text to replace, or use write_file (with append to add to the end)"
    );
    assert_eq!(
        place.fails("str_replace", args("x", "x")).await,
        "old_str and new_str are the same, so nothing would change; correct one of them"
    );
    place.put("workspace/notes.txt", b"caf\xe9");
    assert_eq!(
        place.fails("str_replace", args("caf", "y")).await,
        "`/mnt/user-data/workspace/notes.txt` is not UTF-8 text and was not changed; edit it with a program \
         in bash"
    );
}

#[tokio::test]
async fn edits_of_one_answer_do_not_undo_each_other() {
    let place = Place::new();
    let before: String = (0..40).map(|index| format!("<{index}>\n")).collect();
    place.put("workspace/notes.txt", before);
    let edits = (0..40).map(|index| {
        let args = json!({
            "description": "", "path": NOTES, "old_str": format!("<{index}>"),
            "new_str": format!("[{index}]"),
        });
        place.ok("str_replace", args)
    });
    for answer in futures_util::future::join_all(edits).await {
        assert_eq!(answer, "OK");
    }
    let after: String = (0..40).map(|index| format!("[{index}]\n")).collect();
    assert_eq!(place.get("workspace/notes.txt"), after);
}

#[tokio::test]
async fn arguments_that_make_no_sense_are_named() {
    let place = Place::new();
    match place.call("read_file", json!({"description": "", "path": NOTES, "start_line": "ten"})).await {
        Err(ToolError::Arguments(message)) => {
            assert_eq!(message, "expected a whole number from 0 up, not \"ten\"");
        }
        other => panic!("{other:?}"),
    }
    match place.call("write_file", json!({"description": "", "path": NOTES})).await {
        Err(ToolError::Arguments(message)) => assert_eq!(message, "missing field `content`"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn threads_do_not_see_each_other() {
    let mut place = Place::new();
    place.ok("write_file", json!({"description": "", "path": NOTES, "content": "mine"})).await;
    place.run.thread_id = "thread-2".into();
    let error = place.fails("read_file", json!({"description": "", "path": NOTES})).await;
    assert!(error.starts_with("no such file or directory"), "{error}");
}

#[tokio::test]
async fn a_range_of_a_huge_file_is_read_without_the_rest() {
    use std::io::{Seek, SeekFrom, Write};
    let place = Place::new();
    place.put("workspace/huge.log", "first\nsecond\n");
    // Sparse, so that it costs no disk: one line of 1.5 GB of nothing, then text again.
    let mut file = std::fs::OpenOptions::new().write(true).open(place.host("workspace/huge.log")).unwrap();
    file.seek(SeekFrom::Start(1_500_000_000)).unwrap();
    file.write_all(b"\nthe end\n").unwrap();
    let read = async |start: usize, end: usize| {
        let range = json!({"path": "huge.log", "start_line": start, "end_line": end});
        place.call("read_file", range).await
    };
    // The head of the file is not text all through: said as such.
    let error = read(1, 2).await.unwrap_err().to_string();
    assert!(error.contains("1500000009 bytes"), "{error}");
    place.put("workspace/text.log", "0123456789abcde\n".repeat(600_000));
    let range = json!({"path": "text.log", "start_line": 599_999, "end_line": 600_005});
    assert_eq!(place.ok("read_file", range).await, "0123456789abcde\n".repeat(2));
}

#[tokio::test]
async fn files_above_the_old_limit_can_be_read_in_ranges() {
    let place = Place::new();
    place.put("workspace/big.log", "0123456789abcde\n".repeat(7 << 20));
    let range = json!({"path": "big.log", "start_line": 7_000_000, "end_line": 7_000_001});
    assert_eq!(place.ok("read_file", range).await, "0123456789abcde\n".repeat(2));
    let text = place.ok("read_file", json!({"path": "big.log"})).await;
    assert!(
        text.ends_with(" of 7340032; read on with start_line=3120] ..."),
        "{}",
        text.lines().last().unwrap()
    );
}

#[tokio::test]
async fn the_words_of_other_harnesses_are_understood() {
    let place = Place::new();
    place.ok("write_file", json!({"file_path": NOTES, "content": "1\n2\n3\n4\n"})).await;
    assert_eq!(place.ok("read_file", json!({"file_path": NOTES, "offset": 1, "limit": 2})).await, "2\n3\n");
    let edit = json!({"file_path": NOTES, "old_string": "\n", "new_string": ";", "replace_all": true});
    assert_eq!(place.ok("str_replace", edit).await, "OK: replaced 4 occurrences");
    assert_eq!(place.get("workspace/notes.txt"), "1;2;3;4;");
    let deleted = place.ok("delete", json!({"file_path": NOTES})).await;
    assert_eq!(deleted, format!("Deleted {NOTES}"));
    assert!(!place.host("workspace/notes.txt").exists());
}

#[tokio::test]
async fn deleting_takes_one_thing_and_never_a_tree() {
    let place = Place::new();
    place.put("workspace/dir/file", "x");
    let fails = async |path: &str| place.fails("delete", json!({"path": path})).await;
    assert_eq!(
        fails("dir").await,
        "the directory `/mnt/user-data/workspace/dir` is not empty, and nothing was deleted; delete what is in \
         it first, or use `rm -r` in bash"
    );
    assert!(fails("missing").await.starts_with("no such file or directory"));
    assert!(fails(".").await.contains("belongs to the sandbox and cannot be deleted"));
    place.ok("delete", json!({"path": "dir/file"})).await;
    place.ok("delete", json!({"path": "dir"})).await;
}
