//! Puts the built page (`web/dist`) into the library, compressed.
//!
//! Invariant: without a built page the library builds too, and says so where the page would be.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "this is how a build script speaks with cargo"
)]

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../../web");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let built = root.join("dist");
    // The folder above is there in any case, so that a page built later is noticed and a missing one is not looked for
    // at every build.
    println!("cargo::rerun-if-changed={}", if built.is_dir() { &built } else { &root }.display());
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = Vec::new();
    if built.join("index.html").is_file() {
        collect(&built, &mut files)?;
        files.sort();
    }
    let mut table = String::from("static FILES: &[Asset] = &[\n");
    for (number, file) in files.iter().enumerate() {
        let name =
            file.strip_prefix(&built)?.to_str().ok_or("a file's name is not UTF-8")?.replace('\\', "/");
        let packed = out.join(format!("page-{number}.gz"));
        compress(file, &packed)?;
        writeln!(table, "    Asset {{ path: {:?}, gzip: include_bytes!({packed:?}) }},", format!("/{name}"))?;
    }
    table.push_str("];\n");
    fs::write(out.join("page.rs"), table)?;
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}

fn compress(file: &Path, packed: &Path) -> Result<(), Box<dyn Error>> {
    let mut encoder = GzEncoder::new(fs::File::create(packed)?, Compression::best());
    encoder.write_all(&fs::read(file)?)?;
    encoder.finish()?;
    Ok(())
}
