//! `hart skills`: which there are, and taking one in.
//!
//! Invariant: looking changes nothing; what speaks against a package is told before anything is written.

mod look;

use std::path::PathBuf;

use hart_app::App;
use hart_app::knowledge::skills::{
    Catalogue, Finding, InstallError, InstallOptions, Level, Mistake, NotInLibrary, Severity, Trouble,
    TroubleKind,
};
use serde_json::{Value, json};

use self::look::{LookArgs, What};
use crate::args::GlobalArgs;
use crate::failure::{Exit, Failure};
use crate::session::Session;
use crate::terminal::{Terminal, Tone, cut};

const EXAMPLES: &str = "\
Examples:
  hart skills
  hart skills show chart-making
  hart skills install ./my-skill          a folder with a SKILL.md
  hart skills install notes.skill         an archive of one
  hart skills lint ./my-skill
  hart skills scan notes.skill --json
  hart skills disable slide-making
  hart skills approve notes               after it changed and was held back

To use one: hart run \"/chart-making draw …\", or let the agent choose.
Exit code: 0, or 1 if something speaks against a package.";

/// List the skills, look at one, take one in, switch one off.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct SkillsArgs {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// All there are, and what is not offered and why.
    List(ListArgs),
    /// What one is, with its text.
    Show(ShowArgs),
    /// Check a folder or a .skill archive and take it in.
    Install(InstallArgs),
    /// Offer them to agents.
    Enable(SwitchArgs),
    /// Keep them from agents.
    Disable(SwitchArgs),
    /// Mistakes in SKILL.md and agents.yaml.
    Lint(LookArgs),
    /// What speaks against a package, over all of its bytes.
    Scan(LookArgs),
    /// Let one be used that was held back, as it is now.
    Approve(ApproveArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    name: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct InstallArgs {
    /// A folder with a SKILL.md, or an archive of one.
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Take the place of one of the same name.
    #[arg(long)]
    replace: bool,
    /// Install it although the scanner would not.
    #[arg(long)]
    despite_findings: bool,
    /// Install it without asking a model about it; the scanner looks at it all the same.
    #[arg(long)]
    no_review: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct SwitchArgs {
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ApproveArgs {
    name: String,
    /// Approve it although the scanner would not.
    #[arg(long)]
    despite_findings: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &SkillsArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let session = Session::open(global, terminal)?;
    let app = &session.app;
    match &args.action {
        None => list(&args.list, app, terminal),
        Some(Action::List(args)) => list(args, app, terminal),
        Some(Action::Show(args)) => show(args, app, terminal),
        Some(Action::Install(args)) => install(args, &session, terminal),
        Some(Action::Enable(args)) => switch(args, true, app, terminal),
        Some(Action::Disable(args)) => switch(args, false, app, terminal),
        Some(Action::Lint(args)) => look::run(args, What::Mistakes, app, terminal),
        Some(Action::Scan(args)) => look::run(args, What::Findings, app, terminal),
        Some(Action::Approve(args)) => approve(args, app, terminal),
    }
}

fn list(args: &ListArgs, app: &App, terminal: &Terminal) -> Result<Exit, Failure> {
    let skills = app.skills();
    if args.json {
        let all: Vec<_> = skills.all().collect();
        terminal.line(&json!({"skills": all, "not_offered": skills.troubles()}).to_string())?;
        return Ok(Exit::Done);
    }
    if skills.all().len() == 0 {
        terminal.note("there are no skills; `hart skills install PATH` takes one in");
    }
    let width = skills.all().map(|skill| skill.name().len()).max().unwrap_or(0);
    for skill in skills.all() {
        let name = format!("{:<width$}", skill.name());
        let (name, state) = match skill.enabled {
            true => (terminal.out.paint(Tone::Strong, name), ""),
            false => (terminal.out.paint(Tone::Dim, name), "off  "),
        };
        let root = terminal.out.paint(Tone::Dim, format!("{:<9}", skill.root.name()));
        let description = skill.manifest.description.split_whitespace().collect::<Vec<_>>().join(" ");
        terminal.line(&format!("{name}  {root}  {state}{}", cut(&description, 90)))?;
    }
    tell_troubles(&skills, terminal);
    Ok(Exit::Done)
}

fn tell_troubles(skills: &Catalogue, terminal: &Terminal) {
    for Trouble { name, place, kind, message, help } in skills.troubles() {
        let what = match kind {
            TroubleKind::Malformed => "not a skill",
            TroubleKind::Shadowed => "not used",
            TroubleKind::Held => "held back",
            TroubleKind::Setup => "setup",
        };
        let heading = terminal.err.paint(Tone::Warn, format!("{what}:"));
        let name = if name.is_empty() { place.clone() } else { format!("{name} ({place})") };
        terminal.note(&format!("{heading} {name}: {message}"));
        terminal.note(&format!("  {} {help}", terminal.err.paint(Tone::Good, "help:")));
    }
}

fn show(args: &ShowArgs, app: &App, terminal: &Terminal) -> Result<Exit, Failure> {
    let skills = app.skills();
    let skill = skills.get(&args.name).ok_or_else(|| not_there(&skills, &args.name))?;
    let body = skill.body()?;
    if args.json {
        let mut json = json!(skill);
        if let Value::Object(map) = &mut json {
            map.insert("body".to_owned(), body.into());
        }
        terminal.line(&json.to_string())?;
        return Ok(Exit::Done);
    }
    let manifest = &skill.manifest;
    terminal.line(&terminal.out.paint(Tone::Strong, skill.name()))?;
    terminal.line(&manifest.description)?;
    let state = if skill.enabled { "on" } else { "off" };
    let tools = manifest.allowed_tools.as_ref().map(|tools| tools.join(", "));
    let folder = skill.folder.as_ref().map(|folder| folder.display().to_string());
    let agents: Vec<&str> = skill.agents.iter().map(|agent| agent.name.as_str()).collect();
    for (what, value) in [
        ("from", Some(skill.root.name().to_owned())),
        ("state", Some(state.to_owned())),
        ("version", manifest.version.clone()),
        ("author", manifest.author.clone()),
        ("license", manifest.license.clone()),
        ("needs", manifest.compatibility.clone()),
        ("tools", tools),
        ("agents", (!agents.is_empty()).then(|| agents.join(", "))),
        ("folder", folder),
        ("seen at", Some(skill.shown_folder().to_owned())),
        ("hash", Some(skill.hash.clone())),
    ] {
        if let Some(value) = value {
            terminal.line(&format!("{} {value}", terminal.out.paint(Tone::Dim, format!("{what:<8}"))))?;
        }
    }
    for (path, size) in &skill.files {
        terminal.line(&terminal.out.paint(Tone::Dim, format!("  {path}  {size} bytes")))?;
    }
    terminal.line("")?;
    terminal.line(&body)?;
    Ok(Exit::Done)
}

fn install(args: &InstallArgs, session: &Session, terminal: &Terminal) -> Result<Exit, Failure> {
    let options = InstallOptions {
        replace: args.replace,
        despite_findings: args.despite_findings,
        without_review: args.no_review,
    };
    let installed = match session.block_on(session.app.install_skill(&args.path, options))? {
        Ok(installed) => installed,
        Err(error) => return Err(not_installed(error, terminal)),
    };
    if args.json {
        terminal.line(&json!(installed).to_string())?;
        return Ok(Exit::Done);
    }
    tell_mistakes(&installed.mistakes, terminal);
    tell_findings(installed.findings.iter().filter(|finding| finding.level > Level::Note), terminal);
    match &installed.review {
        Some(said) => terminal.note(&format!("reviewed: {said}")),
        None if args.no_review => {}
        None => terminal.note("not reviewed: no model is connected; the scanner found nothing against it"),
    }
    let verb = if installed.replaced { "replaced" } else { "installed" };
    let files = if installed.files == 1 { "file" } else { "files" };
    terminal.line(&format!("{verb} {} ({} {files})", installed.name, installed.files))?;
    terminal.note(&format!("to use it: hart run \"/{} …\"", installed.name));
    Ok(Exit::Done)
}

fn not_installed(error: InstallError, terminal: &Terminal) -> Failure {
    match &error {
        InstallError::Malformed { mistakes, .. } => {
            tell_mistakes(mistakes, terminal);
            Failure::failed(error)
        }
        InstallError::Findings { findings, .. } => {
            tell_findings(findings.iter(), terminal);
            Failure::failed(error).help("look at these places; `--despite-findings` installs it all the same")
        }
        InstallError::Review { .. } => Failure::failed(error)
            .help("look at it yourself; `--no-review` installs it without a model's review"),
        InstallError::Exists { .. } => {
            Failure::new(Exit::Usage, error.into()).help("`--replace` puts this one in its place")
        }
        InstallError::NoPackage { .. } => Failure::new(Exit::Usage, error.into())
            .help("name a folder with a SKILL.md, or a .skill archive (a zip) of one"),
        InstallError::Io { .. } => Failure::failed(error),
    }
}

fn switch(args: &SwitchArgs, on: bool, app: &App, terminal: &Terminal) -> Result<Exit, Failure> {
    for name in &args.names {
        app.enable_skill(name, on).map_err(|error| match error {
            NotInLibrary::Unknown { .. } => not_there(&app.skills(), name),
            other => refused(other),
        })?;
        if !args.json {
            terminal.note(&format!(
                "`{name}` is {} for runs that begin from now on",
                if on { "on" } else { "off" }
            ));
        }
    }
    if args.json {
        let switched: Vec<_> = args.names.iter().map(|name| json!({"name": name, "enabled": on})).collect();
        terminal.line(&json!(switched).to_string())?;
    }
    Ok(Exit::Done)
}

fn approve(args: &ApproveArgs, app: &App, terminal: &Terminal) -> Result<Exit, Failure> {
    // What is new is looked at first.
    app.skills();
    let folder = app.approve_skill(&args.name, args.despite_findings).map_err(|error| {
        if let NotInLibrary::Findings { findings, .. } = &error {
            tell_findings(findings.iter(), terminal);
        }
        refused(error)
    })?;
    match args.json {
        true => terminal.line(&json!({"name": args.name, "folder": folder}).to_string())?,
        false => terminal.note(&format!("`{}` may be used: {}", args.name, folder.display())),
    }
    Ok(Exit::Done)
}

fn refused(error: NotInLibrary) -> Failure {
    match &error {
        NotInLibrary::Unknown { .. } | NotInLibrary::NotHeld { .. } => {
            Failure::new(Exit::Usage, error.into())
        }
        _ => Failure::failed(error),
    }
}

/// Why a skill cannot be shown or switched: it is not offered, or nobody knows it.
fn not_there(skills: &Catalogue, name: &str) -> Failure {
    match skills.troubles().iter().find(|trouble| trouble.name == name && trouble.kind != TroubleKind::Setup)
    {
        Some(Trouble { place, message, help, .. }) => {
            Failure::usage(format!("`{name}` is not offered ({place}): {message}")).help(help.clone())
        }
        None => unknown(skills, name, ""),
    }
}

fn unknown(skills: &Catalogue, name: &str, nor: &str) -> Failure {
    let failure = Failure::usage(format!("there is no skill `{name}`{nor}"));
    match skills.near(name).as_slice() {
        [] => failure.help("`hart skills list` shows those there are"),
        near => failure.help(format!("did you mean {}?", near.join(" or "))),
    }
}

fn tell_mistakes(mistakes: &[Mistake], terminal: &Terminal) {
    for Mistake { severity, file, line, message, help, .. } in mistakes {
        let heading = match severity {
            Severity::Error => terminal.err.paint(Tone::Bad, "error:"),
            Severity::Warning => terminal.err.paint(Tone::Warn, "warning:"),
        };
        terminal.note(&format!("{heading} {message}"));
        terminal.note(&format!("  --> {file}:{line}"));
        terminal.note(&format!("  {} {help}", terminal.err.paint(Tone::Good, "help:")));
    }
}

fn tell_findings<'a>(findings: impl Iterator<Item = &'a Finding>, terminal: &Terminal) {
    for finding in findings {
        let heading = match finding.level {
            Level::Block => terminal.err.paint(Tone::Bad, "refused:"),
            Level::Warn => terminal.err.paint(Tone::Warn, "warning:"),
            Level::Note => terminal.err.paint(Tone::Dim, "note:"),
        };
        terminal.note(&format!("{heading} {finding}"));
        terminal.note(&format!("  {} {}", terminal.err.paint(Tone::Good, "help:"), finding.help));
    }
}
