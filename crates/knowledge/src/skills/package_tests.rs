use super::*;

#[test]
fn only_plain_paths_are_taken() {
    for path in ["SKILL.md", "scripts/a b.py", "références/größe.md", "a/.keep", "console/x"] {
        assert!(check_path(path, 16).is_ok(), "{path}");
    }
    let deep = vec!["d"; 17].join("/");
    let long = "x".repeat(241);
    for path in [
        "",
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a//b",
        "./a",
        "C:/x",
        "a\\b",
        "a\0b",
        "a\nb",
        "a\u{200b}b",
        "e\u{301}.md",
        "nul",
        "COM1.txt",
        "a/aux.py",
        "x.",
        "x ",
        deep.as_str(),
        long.as_str(),
    ] {
        assert!(check_path(path, 16).is_err(), "{path:?}");
    }
}

#[test]
fn the_hash_knows_every_byte_path_and_right() {
    let file = |bytes: &[u8], executable| PackagedFile { bytes: bytes.to_vec(), executable };
    let of = |files: &[(&str, PackagedFile)]| {
        let files = files.iter().map(|(path, file)| ((*path).to_owned(), file.clone()));
        Package::from_files(files, &Limits::default()).unwrap().hash()
    };
    let base = of(&[("a", file(b"1", false)), ("b", file(b"2", false))]);
    assert_eq!(base, of(&[("b", file(b"2", false)), ("a", file(b"1", false))]));
    for other in [
        of(&[("a", file(b"1", true)), ("b", file(b"2", false))]),
        of(&[("a", file(b"12", false)), ("b", file(b"", false))]),
        of(&[("ab", file(b"1", false)), ("b", file(b"2", false))]),
        of(&[("a", file(b"1", false))]),
    ] {
        assert_ne!(base, other);
    }
}

#[test]
fn a_folder_is_read_whole_and_links_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("scripts")).unwrap();
    fs::create_dir_all(dir.path().join(".git")).unwrap();
    fs::write(dir.path().join(".git/config"), "x").unwrap();
    fs::write(dir.path().join(MANIFEST), "---\nname: a\ndescription: b\n---\n").unwrap();
    fs::write(dir.path().join("scripts/run.sh"), "#!/bin/sh\n").unwrap();
    let package = Package::read_folder(dir.path(), &Limits::default()).unwrap();
    assert_eq!(package.files().map(|(path, _)| path).collect::<Vec<_>>(), [MANIFEST, "scripts/run.sh"]);
    assert_eq!(package.document(None).unwrap().manifest.unwrap().name, "a");
    let copy = dir.path().join("copy/of");
    package.write_to(&copy, true).unwrap();
    assert_eq!(Package::read_folder(&copy, &Limits::default()).unwrap(), package);
    assert!(package.write_to(&copy, true).is_err(), "what is there is left alone");
    fs::remove_dir_all(dir.path().join("copy")).unwrap();

    let tight = Limits { files: 1, ..Limits::default() };
    assert!(matches!(Package::read_folder(dir.path(), &tight), Err(PackageError::TooMany(1))));
    let small = Limits { file_bytes: 5, ..Limits::default() };
    assert!(matches!(Package::read_folder(dir.path(), &small), Err(PackageError::TooLarge { .. })));
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
    assert!(matches!(Package::read_folder(dir.path(), &Limits::default()), Err(PackageError::Link(_))));
}

#[test]
fn errors_name_no_path_of_the_machine() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("skill");
    let gone = Package::read_folder(&folder, &Limits::default()).unwrap_err();
    assert_eq!(gone.to_string(), "its folder cannot be read");
    fs::create_dir_all(folder.join("scripts")).unwrap();
    fs::write(folder.join(MANIFEST), "---\nname: skill\ndescription: d\n---\n").unwrap();
    fs::write(folder.join("scripts").join(std::ffi::OsStr::from_bytes(b"a\xff")), "").unwrap();
    let odd = Package::read_folder(&folder, &Limits::default()).unwrap_err().to_string();
    assert!(odd.contains("scripts/a") && !odd.contains(dir.path().to_str().unwrap()), "{odd}");
}
