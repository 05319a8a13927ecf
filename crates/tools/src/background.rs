//! `background`: looks after commands that `bash` started in the background.
//!
//! Invariant: what a command prints is told once, in order, and how it ended is told as `bash` tells it.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use hart_kernel::{Effect, ToolContext, ToolError, ToolOutput, TypedTool, async_trait};
use hart_sandbox::{Background, Exit, JobReport, JobState, MAX_BACKGROUND};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::command_env::CommandEnv;
use crate::cut;
use crate::lenient::{Count, Purpose};
use crate::sandboxed::{Sandboxed, failed};

/// How long a start waits for the first words of its command.
pub(crate) const FIRST_LOOK: Duration = Duration::from_millis(300);
/// A longer wait would hide from the user that nothing happens.
const MAX_WAIT: u64 = 120;
/// Of a command line, in a list.
const SHOWN: usize = 200;

pub(crate) struct BackgroundTool(pub(crate) Arc<Sandboxed>);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct BackgroundArgs {
    #[serde(default)]
    #[schemars(!default)]
    #[expect(dead_code, reason = "read by clients, from the call")]
    description: Purpose,
    /// `list` shows all commands, `status` one with what it printed since the last look, `kill` ends one.
    action: Action,
    /// The id of the command, as `bash` gave it, for example `bg-1`; not needed for `list`.
    id: Option<String>,
    /// With `status`: wait up to so many seconds (at most 120) until it prints something or ends.
    wait_seconds: Option<Count>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    List,
    Status,
    Kill,
}

#[async_trait]
impl TypedTool for BackgroundTool {
    const NAME: &'static str = "background";
    const DESCRIPTION: &'static str = "\
Look after the commands you started with bash and background: list them, see how one is doing, end one.

They run while you work and end with your answer, so look at the status of what you need before you finish. \
Prefer one status with wait_seconds over many without.";
    const EFFECT: Effect = Effect::Idempotent;
    type Args = BackgroundArgs;

    async fn run(&self, cx: &ToolContext<'_>, args: BackgroundArgs) -> Result<ToolOutput, ToolError> {
        // Where there is no sandbox there is nothing to look after, and that is what the model should hear.
        self.0.acquire(cx).await?;
        let background = cx.run.scratch.get_or_default::<Background>();
        let list = background.list();
        if matches!(args.action, Action::List) {
            return Ok(render_list(&list).into());
        }
        let known = || match list.as_slice() {
            [] => "there are none; start one with bash and background=true".to_owned(),
            some => {
                format!("there is {}", some.iter().map(|job| job.id.as_str()).collect::<Vec<_>>().join(", "))
            }
        };
        let id = args.id.ok_or_else(|| failed(format!("say which command: give its id; {}", known())))?;
        let wait = args.wait_seconds.map_or(0, |Count(seconds)| (seconds as u64).min(MAX_WAIT));
        let report = match args.action {
            Action::Kill => background.kill(&id).await,
            Action::Status | Action::List => {
                tokio::select! {
                    () = cx.run.cancel.cancelled() => background.look(&id, Duration::ZERO).await,
                    report = background.look(&id, Duration::from_secs(wait)) => report,
                }
            }
        };
        let report = report
            .ok_or_else(|| failed(format!("no command in the background is called `{id}`; {}", known())))?;
        let text = cx.run.scratch.get_or_default::<CommandEnv>().hide(render_job(&report));
        Ok(fit(text, self.0.limits.bash_chars).into())
    }
}

/// What is left out here may be in the command's file, which the text names at its end.
fn fit(text: String, limit: usize) -> String {
    cut::middle(text, limit, |skipped| format!("\n... [middle truncated: {skipped} chars skipped] ...\n"))
}

fn render_list(jobs: &[JobReport]) -> String {
    if jobs.is_empty() {
        return format!(
            "No commands in the background. bash with background=true starts one, up to {MAX_BACKGROUND} at once."
        );
    }
    let line = |job: &JobReport| {
        let first = job.command.lines().next().unwrap_or_default();
        let dots = if first.len() < job.command.trim_end().len() || first.chars().count() > SHOWN {
            "…"
        } else {
            ""
        };
        format!("{} ({}): {}{dots}", job.id, state(&job.state), cut::first_chars(first, SHOWN))
    };
    jobs.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The state first: what follows is as long as the command likes.
pub(crate) fn render_job(job: &JobReport) -> String {
    let mut text = format!("{}: {}", job.id, state(&job.state));
    match job.output.trim_end_matches('\n') {
        "" => text.push_str("\n(no new output)"),
        new => {
            let _ = write!(text, "\nNew output:\n{new}");
        }
    }
    if let Some(path) = &job.saved_at {
        let _ = write!(text, "\n[all of its output is in {path}]");
    }
    text
}

fn state(state: &JobState) -> String {
    match state {
        JobState::Running => "running".to_owned(),
        JobState::Ended(Exit::Code(0)) => "ended, Exit Code: 0".to_owned(),
        JobState::Ended(Exit::Code(code)) => format!("ended, Exit Code: {code}"),
        JobState::Ended(Exit::Signal(signal)) => {
            format!("ended, Exit Code: {} (killed by signal {signal})", 128 + signal)
        }
        JobState::Ended(Exit::TimedOut) => "stopped: it took too long".to_owned(),
        JobState::Ended(Exit::Cancelled) => "killed".to_owned(),
        JobState::Failed(reason) => format!("could not run: {reason}"),
    }
}
