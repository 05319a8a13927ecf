use proptest::prelude::*;

use super::*;

fn parsed(text: &str) -> String {
    VPath::parse(text).unwrap().to_string()
}

#[test]
fn relative_paths_start_in_the_workspace() {
    assert_eq!(parsed("a.txt"), "/mnt/user-data/workspace/a.txt");
    assert_eq!(parsed("."), WORKSPACE);
    assert_eq!(parsed("./a//b/./c/"), "/mnt/user-data/workspace/a/b/c");
    assert_eq!(parsed("../outputs/r.md"), "/mnt/user-data/outputs/r.md");
}

#[test]
fn roots_and_what_is_below_them_are_inside() {
    for text in [
        USER_DATA,
        WORKSPACE,
        UPLOADS,
        OUTPUTS,
        SKILLS,
        "/mnt/skills/public/x/SKILL.md",
        USER_SKILLS,
        "/mnt/user-skills/own/SKILL.md",
        LARGE_RESULTS,
        "/conversation_history/a.md",
    ] {
        assert_eq!(parsed(text), text);
    }
    assert_eq!(parsed("/mnt/user-data/"), USER_DATA);
}

#[test]
fn everything_else_is_outside() {
    let outside = [
        "/",
        "/mnt",
        "/etc/passwd",
        "../..",
        "../x",
        "/mnt/user-data/other",
        "/mnt/user-data/workspaces",
        "/mnt/skillset",
        "/mnt/user-skillset",
        "/mnt/user-skills/../user-data2",
        "/MNT/user-data/workspace",
        "/mnt/User-Data/workspace/x",
        "/mnt\\user-data\\workspace",
        "/c:/mnt/user-data/workspace",
        // Two dots that are one letter, and slashes that are none.
        "/mnt/user-data/\u{2025}/workspace",
        "/mnt\u{2215}user-data/workspace",
        "/mnt/user-data/workspace/../../../etc",
        "../../../../..",
        "/..",
        "/mnt/acp",
        "/large_tool_results2",
        "/conversation_history/../etc",
    ];
    for text in outside {
        assert!(matches!(VPath::parse(text), Err(PathError::Outside { .. })), "{text}");
    }
}

/// What another system would take for a drive, a directory or the name of another file.
#[test]
fn what_means_something_elsewhere_is_a_plain_name_here() {
    for name in [
        "C:",
        "c:\\windows\\win.ini",
        "C:etc",
        "..\\..\\etc\\passwd",
        "\\\\server\\share",
        "a\\..\\b",
        "con",
        "NUL.txt",
        "f:stream",
        "caf\u{e9}",
        "cafe\u{301}",
        "README",
        "readme",
        "\u{2025}",
        "%2e%2e%2fetc",
    ] {
        let path = VPath::parse(name).unwrap();
        assert_eq!(path.as_str(), format!("{WORKSPACE}/{name}"), "it is kept as it was written");
        assert_eq!(path.file_name(), name);
    }
    assert!(matches!(VPath::parse("C:/../../../x"), Err(PathError::Outside { .. })), "a slash is one");
}

#[test]
fn errors_say_what_to_do() {
    assert_eq!(
        VPath::parse("/etc/passwd").unwrap_err().to_string(),
        "outside the sandbox: `/etc/passwd`; use /mnt/user-data/workspace, /mnt/user-data/uploads, \
         /mnt/user-data/outputs, /mnt/skills or /mnt/user-skills"
    );
    assert_eq!(VPath::parse(""), Err(PathError::Empty));
    assert_eq!(
        VPath::parse("a\0b").unwrap_err().to_string(),
        "the path contains a NUL byte: `a\\0b`; remove it"
    );
    assert!(matches!(VPath::parse(&"x/".repeat(3000)), Err(PathError::TooLong { .. })));
    assert!(VPath::parse(&format!("/{}", "é".repeat(4000))).unwrap_err().to_string().len() < 1000);
}

#[test]
fn a_mount_is_a_root_for_who_knows_it() {
    let mounts = ["/mnt/data".to_owned()];
    assert!(VPath::parse("/mnt/data/x").is_err());
    assert_eq!(VPath::parse_with("/mnt/data/a/../x", &mounts).unwrap().as_str(), "/mnt/data/x");
    assert!(VPath::parse_with("/mnt/data/../x", &mounts).is_err());
}

#[test]
fn names_and_extensions() {
    let file = VPath::parse("a/report.tar.gz").unwrap();
    assert_eq!((file.file_name(), file.extension()), ("report.tar.gz", Some("gz")));
    assert_eq!(VPath::parse(".bashrc").unwrap().extension(), None);
    assert!(file.is_under(WORKSPACE) && !file.is_under(OUTPUTS));
}

proptest! {
    #[test]
    fn parsing_never_escapes_and_is_idempotent(
        text in prop_oneof![
            ".*",
            "(/|\\.|\\.\\.|mnt|user-data|workspace|outputs|skills|user-skills|etc|a|C:|\\\\|\0|\n| ){0,24}",
            "(/mnt/user-data/(workspace|uploads|outputs)|/mnt/(user-)?skills)?(/(\\.\\.|\\.|a|é|e\u{301}|\\\\))*/?",
        ]
    ) {
        if let Ok(path) = VPath::parse(&text) {
            let inside = path.as_str() == USER_DATA
                || THREAD_ROOTS.iter().chain([&SKILLS, &USER_SKILLS]).any(|root| path.is_under(root));
            prop_assert!(inside, "{path}");
            prop_assert!(!path.as_str().split('/').skip(1).any(|part| matches!(part, "" | "." | "..")));
            prop_assert!(!path.as_str().contains('\0') && path.as_str().len() <= MAX_LEN);
            prop_assert_eq!(VPath::parse(path.as_str()), Ok(path));
        }
    }
}
