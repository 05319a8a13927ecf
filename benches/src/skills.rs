//! Finding skills: what a run pays for 500 of them, the first time and when nothing has changed.
//!
//! Invariant: the floor reads the same files, or asks the file system about them, and makes nothing of it.

use std::fs;
use std::path::Path;
use std::time::Instant;

use hart_kernel::Timestamp;
use hart_knowledge::skills::{Library, LibraryConfig};

use crate::{Row, median};

const SKILLS: usize = 500;
const RUNS: usize = 15;

pub fn measure() -> anyhow::Result<Vec<Row>> {
    let home = tempfile::tempdir()?;
    let custom = home.path().join("skills/custom");
    for n in 0..SKILLS {
        let folder = custom.join(format!("skill-{n}"));
        fs::create_dir_all(&folder)?;
        let topic =
            "Does a kind of work that offices have, with care and in good order, when it is asked for.";
        let body = "A line of the method that is as long as such lines are, more or less.\n".repeat(40);
        let text = format!("---\nname: skill-{n}\ndescription: {topic} Number {n}.\n---\n{body}");
        fs::write(folder.join("SKILL.md"), text)?;
    }
    // Later than the files, so that their stamps are believed.
    let now: Timestamp = "2100-01-01T00:00:00Z".parse()?;
    let library = || {
        Library::new(LibraryConfig {
            skills: home.path().join("skills"),
            home: home.path().to_owned(),
            states: home.path().join("extensions_config.json"),
            own: true,
            scan: true,
            lock: true,
        })
    };
    // The first sight of all scans and locks them; that is paid once in a package's life.
    let begun = Instant::now();
    anyhow::ensure!(library().catalogue(None, now).all().len() == SKILLS, "not all skills were found");
    let first_sight = begun.elapsed().as_secs_f64() * 1e3;
    let cold = timed(|| library().catalogue(None, now).all().len());
    let known = library();
    known.catalogue(None, now);
    let warm = timed(|| known.catalogue(None, now).all().len());
    let read = timed(|| visit(&custom, &|path| fs::read(path).map_or(0, |bytes| bytes.len())));
    let stat =
        timed(|| visit(&custom, &|path| fs::symlink_metadata(path).map_or(0, |meta| meta.is_file().into())));
    let row = |measure: &str, hart: f64, floor: Option<f64>, target| Row {
        measure: measure.into(),
        hart: format!("{hart:.2} ms"),
        floor: floor.map_or_else(|| "–".to_owned(), |floor| format!("{floor:.2} ms")),
        target,
    };
    Ok(vec![
        row("500 skills, seen for the first time (scanned, locked)", first_sight, Some(read), "–"),
        row("500 skills, a process that begins", cold, Some(read), "≤ 50 ms"),
        row("500 skills, nothing changed", warm, Some(stat), "≤ 2 ms"),
    ])
}

fn timed(mut work: impl FnMut() -> usize) -> f64 {
    let millis = (0..RUNS).map(|_| {
        let begun = Instant::now();
        std::hint::black_box(work());
        begun.elapsed().as_secs_f64() * 1e3
    });
    median(millis.collect())
}

fn visit(custom: &Path, look: &dyn Fn(&Path) -> usize) -> usize {
    let folders = fs::read_dir(custom).into_iter().flatten().flatten();
    folders.map(|folder| look(&folder.path().join("SKILL.md"))).sum()
}
