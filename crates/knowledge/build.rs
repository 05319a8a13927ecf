//! Puts the bundled skills (`skills/public`) into the library.
//!
//! Invariant: without the folder the library builds too, and has no bundled skills.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "this is how a build script speaks with cargo"
)]

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../..").canonicalize()?;
    let skills = root.join("skills/public");
    println!("cargo::rerun-if-changed={}", if skills.is_dir() { &skills } else { &root }.display());
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = Vec::new();
    if skills.is_dir() {
        collect(&skills, &mut files)?;
        files.sort();
    }
    let mut table = String::from("static FILES: &[Bundled] = &[\n");
    for file in files {
        let path = file.strip_prefix(&skills)?.to_str().ok_or("a file's name is not UTF-8")?;
        let Some((skill, inside)) = path.split_once('/') else { continue };
        let executable = fs::metadata(&file)?.permissions().mode() & 0o111 != 0;
        writeln!(
            table,
            "    Bundled {{ skill: {skill:?}, path: {inside:?}, executable: {executable}, bytes: include_bytes!({file:?}) }},"
        )?;
    }
    table.push_str("];\n");
    fs::write(PathBuf::from(std::env::var("OUT_DIR")?).join("bundled.rs"), table)?;
    Ok(())
}

/// What running the scripts leaves behind is no part of them.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name == "__pycache__" || name == ".DS_Store") {
            continue;
        }
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
