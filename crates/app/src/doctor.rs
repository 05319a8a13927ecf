//! `hart doctor`: looks at everything a run depends on, and says how to mend what is wrong.
//!
//! Invariant: a finding that is not good has a fix.

use hart_models::reachability::{self, Reachability};
use hart_sandbox::{SandboxProvider, Tier};

use crate::agent_folders::Broken;
use crate::choice;
use crate::wire;
use crate::workshop::Workshop;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub area: &'static str,
    pub health: Health,
    pub summary: String,
    pub fix: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    Good,
    /// It works, but not as well as it could.
    Warning,
    Bad,
}

impl Finding {
    fn good(area: &'static str, summary: impl Into<String>) -> Self {
        Self { area, health: Health::Good, summary: summary.into(), fix: None }
    }

    fn warning(area: &'static str, summary: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { area, health: Health::Warning, summary: summary.into(), fix: Some(fix.into()) }
    }

    fn bad(area: &'static str, summary: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { area, health: Health::Bad, summary: summary.into(), fix: Some(fix.into()) }
    }
}

pub(crate) async fn examine(workshop: &Workshop) -> Vec<Finding> {
    let mut findings = config(workshop);
    findings.push(data_directory(workshop).await);
    findings.push(sandbox(workshop).await);
    findings.push(model(workshop).await);
    findings.extend(agents(workshop).await);
    findings
}

/// The user's own; nothing is said where there are none.
async fn agents(workshop: &Workshop) -> Vec<Finding> {
    let (mut usable, mut findings) = (Vec::new(), Vec::new());
    for agent in workshop.agents.all() {
        let chosen = match &agent.config.model {
            Some(model) => choice::choose(workshop, Some(model)).await.map(|_| ()),
            None => Ok(()),
        };
        match chosen {
            Ok(()) => usable.push(agent.name.clone()),
            Err(error) => {
                let summary = format!("no run of {} can begin: {error}", agent.name);
                findings.push(Finding::bad("agents", summary, "correct `model` in its config.yaml"));
            }
        }
    }
    if !usable.is_empty() {
        findings.insert(0, Finding::good("agents", usable.join(", ")));
    }
    findings.extend(workshop.agents.broken().into_iter().map(|Broken { folder, why }| {
        let summary = format!("{} is not used: {why}", folder.display());
        Finding::bad("agents", summary, "correct it, or move it out of `agents`")
    }));
    findings
}

fn config(workshop: &Workshop) -> Vec<Finding> {
    let mut findings = vec![match &workshop.config.source {
        Some(path) => Finding::good("config", path.display().to_string()),
        None => Finding::good("config", "no config.yaml: defaults (`hart config init` writes one)"),
    }];
    let warnings = workshop.config.warnings.iter();
    findings.extend(
        warnings.map(|warning| Finding::warning("config", warning.to_string(), "see `hart config check`")),
    );
    findings
}

async fn data_directory(workshop: &Workshop) -> Finding {
    let home = &workshop.config.home;
    // A check makes nothing: where the directory is not there yet, the one it would be made in counts.
    let existing = home.ancestors().find(|dir| dir.exists()).unwrap_or(home);
    let probe = existing.join(".hart-doctor");
    let written = std::fs::write(&probe, b"ok");
    // Also what was half written.
    let removed = std::fs::remove_file(&probe);
    if let Err(error) = written.and(removed) {
        let fix = match error.kind() {
            std::io::ErrorKind::StorageFull => "free some space on its disk",
            _ => "set HART_HOME to a directory you may write to",
        };
        return Finding::bad("data", format!("{} cannot be written to: {error}", home.display()), fix);
    }
    let is_writable = format!("{} is writable", home.display());
    match wire::examine_store(home.clone()).await {
        Ok(()) => Finding::good("data", is_writable),
        Err(error) => Finding::bad(
            "data",
            format!("{is_writable}, but what it remembers cannot be used: {error}"),
            "do what it says, or set HART_HOME to another directory",
        ),
    }
}

async fn sandbox(workshop: &Workshop) -> Finding {
    let sandboxes = workshop.sandboxes.clone();
    let Ok(report) = tokio::task::spawn_blocking(move || sandboxes.tier()).await else {
        return Finding::bad("sandbox", "the check itself failed", "run it again with --verbose");
    };
    let layers = report.layers.iter().map(|(layer, state)| format!("; {layer}: {state}")).collect::<String>();
    let reason = report.reason.unwrap_or_default();
    let fix = report.fix.unwrap_or_else(|| "see the kernel's log".to_owned());
    match report.tier {
        _ if report.disk_full => {
            let summary = format!("nothing is run or written: the disk is nearly full{layers}");
            let fix = "make room on the disk of hart's data directory, or lower `sandbox.disk_reserve`";
            Finding::bad("sandbox", summary, fix)
        }
        Tier::Isolated => {
            Finding::good("sandbox", format!("isolated: commands run in namespaces of their own{layers}"))
        }
        Tier::Landlock => {
            let summary = format!("commands are confined by Landlock and seccomp only ({reason}){layers}");
            Finding::warning("sandbox", summary, fix)
        }
        Tier::Host => Finding::warning("sandbox", format!("commands run unconfined ({reason})"), fix),
        Tier::Refused => Finding::bad("sandbox", format!("`bash` is refused: {reason}"), fix),
    }
}

async fn model(workshop: &Workshop) -> Finding {
    let (config, reason) = match choice::default_config(workshop).await {
        Ok(Some(found)) => found,
        Ok(None) => {
            return Finding::warning(
                "model",
                "no model is connected; hart plays its recorded demo tasks",
                "set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY, start Ollama, or run `hart config init`",
            );
        }
        Err(error) => return Finding::bad("model", error.to_string(), "correct the variable, or unset it"),
    };
    let name = format!("{} ({reason})", config.name);
    let http = match workshop.calls.client(&config) {
        Ok(http) => http,
        Err(error) => {
            return Finding::bad("model", format!("{name}: {error}"), "correct the entry in config.yaml");
        }
    };
    match reachability::check(&config, &http).await {
        Reachability::Ok { models } if !models.is_empty() && !models.contains(&config.model) => {
            Finding::warning(
                "model",
                format!("{name} answers, but does not list `{}`", config.model),
                format!("check `model`; it lists: {}", shortened(&models)),
            )
        }
        Reachability::Ok { .. } => Finding::good("model", format!("{name} answers")),
        Reachability::Unauthorized { status } => Finding::bad(
            "model",
            format!("{name} refuses the key (HTTP {status})"),
            "check the key in the environment variable or in config.yaml",
        ),
        Reachability::Unreachable { url, reason } => Finding::bad(
            "model",
            format!("{name} cannot be reached at {url}: {reason}"),
            "check the address, the network, and that the server is running",
        ),
        Reachability::Odd { status } => Finding::warning(
            "model",
            format!("{name} answers with HTTP {status}"),
            "it may still work; try `hart run --model …` with a short prompt",
        ),
    }
}

fn shortened(models: &[String]) -> String {
    let shown = models.iter().take(8).map(String::as_str).collect::<Vec<_>>().join(", ");
    if models.len() > 8 { format!("{shown}, … ({} in all)", models.len()) } else { shown }
}
