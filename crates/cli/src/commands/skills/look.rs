//! `hart skills lint` and `scan`: what is wrong with packages, and what speaks against them.
//!
//! Invariant: without a target every package is looked at, those that are not offered too.

use std::path::Path;

use hart_app::App;
use hart_app::knowledge::skills::{Inspected, InstallError, Trouble, TroubleKind};
use serde_json::json;

use super::{tell_findings, tell_mistakes, unknown};
use crate::failure::{Exit, Failure};
use crate::terminal::{Terminal, Tone};

/// What is to be told of a package.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Mistakes,
    Findings,
}

pub(super) fn run(args: &LookArgs, what: What, app: &App, terminal: &Terminal) -> Result<Exit, Failure> {
    let mut bad = false;
    let mut told = Vec::new();
    for (label, inspected) in inspected(args, app)? {
        let inspected = match inspected {
            Ok(inspected) => inspected,
            Err(error) => {
                bad = true;
                told.push(json!({"target": label, "error": error.to_string()}));
                if !args.json {
                    terminal.note(&format!("{} {error}", terminal.err.paint(Tone::Bad, "error:")));
                }
                continue;
            }
        };
        let broken = inspected.manifest.is_none();
        match what {
            What::Mistakes => {
                bad |= broken;
                told.push(json!({"target": label, "ok": !broken, "mistakes": inspected.mistakes}));
                if !args.json {
                    tell_mistakes(&inspected.mistakes, terminal);
                    let count = inspected.mistakes.len();
                    terminal.line(&format!(
                        "{label}: {}",
                        if count == 0 { "no mistakes".to_owned() } else { format!("{count} to mend") }
                    ))?;
                }
            }
            What::Findings => {
                let scan = &inspected.scan;
                bad |= scan.blocked();
                told.push(json!({"target": label, "ok": !scan.blocked(), "scan": scan}));
                if !args.json {
                    tell_findings(scan.findings.iter(), terminal);
                    let verdict = if scan.blocked() { "not to be used" } else { "nothing speaks against it" };
                    terminal
                        .line(&format!("{label}: {verdict} ({} files, {} bytes)", scan.files, scan.bytes))?;
                }
            }
        }
    }
    if args.json {
        terminal.line(&json!(told).to_string())?;
    }
    Ok(if bad { Exit::Failed } else { Exit::Done })
}

type Looked = (String, Result<Inspected, InstallError>);

/// What is there as a file counts before a skill of that name. One that is not offered is looked at where it lies.
fn inspected(args: &LookArgs, app: &App) -> Result<Vec<Looked>, Failure> {
    let skills = app.skills();
    let offered = |name: &str| {
        let skill = skills.get(name)?;
        let package = skill.package().map_err(|source| InstallError::Io { name: name.to_owned(), source });
        let failed = |source| InstallError::NoPackage { place: name.to_owned(), source };
        Some(package.and_then(|package| Inspected::of(package, Some(name)).map_err(failed)))
    };
    let not_offered = || {
        skills
            .troubles()
            .iter()
            .filter(|trouble| trouble.kind != TroubleKind::Setup && Path::new(&trouble.place).exists())
    };
    if args.targets.is_empty() {
        let all = skills.all().filter_map(|skill| Some((skill.name().to_owned(), offered(skill.name())?)));
        let others =
            not_offered().map(|Trouble { place, .. }| (place.clone(), Inspected::read(Path::new(place))));
        return Ok(all.chain(others).collect());
    }
    let looked = args.targets.iter().map(|target| {
        let path = Path::new(target);
        if path.exists() {
            return Ok((target.clone(), Inspected::read(path)));
        }
        let of_name = || {
            Some(Inspected::read(Path::new(&not_offered().find(|trouble| trouble.name == *target)?.place)))
        };
        let looked = offered(target).or_else(of_name).map(|looked| (target.clone(), looked));
        looked.ok_or_else(|| unknown(&skills, target, ", and no file or folder of that name"))
    });
    looked.collect()
}

#[derive(Debug, clap::Args)]
pub(super) struct LookArgs {
    /// A folder, an archive, or the name of a skill; all skills without one.
    #[arg(value_name = "PATH|NAME")]
    targets: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}
