//! `bash`: runs a command in the thread's sandbox.
//!
//! Invariant: a command that ran is a result, however it ended; only one that could not run is an error.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hart_kernel::{Effect, Reconciled, ToolContext, ToolError, ToolOutput, TypedTool, async_trait};
use hart_sandbox::{
    Background, Exec, ExecOutput, Exit, OutputSink, RESULTS, Sandbox, SandboxError, Saved, SavedOutput,
    Stream, result_path,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::background::{self, render_job};
use crate::command_env::CommandEnv;
use crate::cut;
use crate::lenient::{Flag, Purpose};
use crate::sandboxed::{Sandboxed, explain, failed};

pub(crate) struct Bash(pub(crate) Arc<Sandboxed>);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct BashArgs {
    #[serde(default)]
    #[schemars(!default)]
    #[expect(dead_code, reason = "read by clients, from the call")]
    description: Purpose,
    /// The command line, as you would type it. Several lines are fine; so are pipes, `&&` and here-documents.
    command: String,
    /// Return at once and let the command run on: for work that takes minutes while you do something else.
    #[serde(default)]
    background: Flag,
}

#[async_trait]
impl TypedTool for Bash {
    const NAME: &'static str = "bash";
    const DESCRIPTION: &'static str = "\
Run a shell command in the sandbox of this conversation and get what it prints.

Use it to run programs and scripts, to convert, compute, test, move and copy. To look at or change single \
files prefer ls, glob, grep, read_file, write_file and str_replace: their answers are shorter and clearer.

- It starts in /mnt/user-data/workspace; uploads are in /mnt/user-data/uploads; what the user shall get \
belongs in /mnt/user-data/outputs.
- Every call is a new shell: variables and `cd` do not carry over, files do.
- There may be no network: work with what is installed, and tell the user when something is missing.
- Nobody can type: a program that asks reads an empty input. Pass flags such as `-y`.
- When the call returns, everything it started is ended. With background the call returns at once with an \
id for the tool background, and the command ends with your answer at the latest. It shares files with other \
commands, not processes or network: start a server and what talks to it in one command.
- The result is the standard output, then a `Std Error:` block, then `Exit Code: N` if that is not 0. Of \
long output the middle is left out here and all of it is in a file whose path is given.";
    const ALIASES: &'static [&'static str] = &["execute"];
    const EFFECT: Effect = Effect::Once;
    type Args = BashArgs;

    async fn run(&self, cx: &ToolContext<'_>, args: BashArgs) -> Result<ToolOutput, ToolError> {
        if args.command.trim().is_empty() {
            return Err(failed("the command is empty; say what to run"));
        }
        let sandbox = self.0.acquire(cx).await?;
        let secrets = cx.run.scratch.get_or_default::<CommandEnv>();
        let env = secrets.get();
        // A file would have what the result hides.
        let saved = saved_output(cx, self.0.limits.bash_chars).filter(|_| env.is_empty());
        if args.background.0 {
            return start(cx, sandbox, args.command, env, saved).await;
        }
        let timeout = self.0.limits.bash_timeout;
        let mut exec = Exec::new(args.command).timeout(timeout);
        exec.env = env;
        exec.save = saved.clone();
        let progress = Progress::default();
        // Side by side, so that a slow listener does not keep the command from being watched.
        let (output, ()) = tokio::join!(
            async {
                let output = sandbox.exec(exec, Some(&progress), &cx.run.cancel).await;
                progress.close();
                output
            },
            progress.forward(cx),
        );
        let output = output.map_err(cannot_run)?;
        let text = secrets.hide(render(&output, timeout));
        let limit = self.0.limits.bash_chars;
        let mut artifact = json!({"ended": ended(output.exit)});
        let content = match saved {
            Some(saved) if text.chars().count() > limit => {
                artifact = json!({"ended": ended(output.exit), "output_file": saved.path().as_str()});
                shorten(text, limit, &output, &saved)
            }
            Some(saved) => {
                if saved.outcome() != Saved::NotNeeded {
                    // Many bytes but few characters: all of it is shown. A file that stays is no harm.
                    let _ = sandbox.remove(saved.path()).await;
                }
                text
            }
            None if limit > 0 && text.chars().count() > limit => cut::middle(text, limit, |skipped| {
                format!("\n... [middle truncated: {skipped} chars skipped; print less of it] ...\n")
            }),
            None => text,
        };
        if let Some(key) = cx.effect {
            // Before anything else that may fail: whoever comes after a crash finds the command done.
            let receipt = json!({"content": content, "artifact": artifact}).to_string();
            // Without it a crash in the next moment leaves the call unknown, which is no worse than before.
            let _ = sandbox.keep_receipt(key.as_str(), receipt.into_bytes()).await;
        }
        Ok(ToolOutput { content: content.into(), artifact: Some(artifact), ..ToolOutput::default() })
    }

    async fn reconcile(&self, cx: &ToolContext<'_>, args: BashArgs, _: Option<&Value>) -> Reconciled {
        if args.command.trim().is_empty() {
            return Reconciled::NotDone;
        }
        let (Some(key), Ok(sandbox)) = (cx.effect, self.0.acquire(cx).await) else {
            return Reconciled::Unknown;
        };
        let receipt = sandbox.receipt(key.as_str()).await.ok().flatten();
        match receipt.and_then(|receipt| serde_json::from_slice(&receipt).ok()) {
            Some(Receipt { content, artifact }) => {
                Reconciled::Done(ToolOutput { content: content.into(), artifact, ..ToolOutput::default() })
            }
            // It was ended with the hart that had started it.
            None => Reconciled::Unknown,
        }
    }

    async fn settled(&self, cx: &ToolContext<'_>) {
        if let (Some(key), Ok(sandbox)) = (cx.effect, self.0.acquire(cx).await) {
            // One that stays takes room and does no harm.
            let _ = sandbox.forget_receipt(key.as_str()).await;
        }
    }
}

/// What a command gave, as it is kept beside the thread until the journal has it.
#[derive(Deserialize)]
struct Receipt {
    content: String,
    artifact: Option<Value>,
}

/// What the model does not see of a command's output is for it to read in a file. Without a limit it sees all.
fn saved_output(cx: &ToolContext<'_>, limit: usize) -> Option<Arc<SavedOutput>> {
    let seed = format!("{}:{}", cx.run.run_id, cx.call_id);
    let path = result_path(RESULTS, Bash::NAME, &seed, "log").ok().filter(|_| limit > 0)?;
    // The names of the parts of a result count as well.
    const PARTS: usize = 100;
    Some(SavedOutput::new(path, limit.saturating_sub(PARTS)))
}

async fn start(
    cx: &ToolContext<'_>,
    sandbox: Arc<dyn Sandbox>,
    command: String,
    env: Vec<(String, String)>,
    saved: Option<Arc<SavedOutput>>,
) -> Result<ToolOutput, ToolError> {
    let background = cx.run.scratch.get_or_default::<Background>();
    let mut exec = Exec::new(command);
    exec.env = env;
    exec.save = saved;
    let id = background.start(sandbox, exec).map_err(cannot_run)?;
    // What fails at once is told at once.
    let report = background.look(&id, background::FIRST_LOOK).await;
    let report = report.ok_or_else(|| failed("the command was forgotten; start it again"))?;
    let text = cx.run.scratch.get_or_default::<CommandEnv>().hide(render_job(&report));
    Ok(format!("Started in the background.\n{text}").into())
}

fn cannot_run(error: SandboxError) -> ToolError {
    match error {
        SandboxError::Unavailable { reason, fix } => failed(format!(
            "commands cannot run here: {reason}. Trying again will not help; tell the user, with this \
             remedy: {fix}. The file tools still work"
        )),
        other => explain(other),
    }
}

/// How the command ended, for clients: the text of the result is for the model.
fn ended(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("killed by signal {signal}"),
        Exit::TimedOut => "timed out".to_owned(),
        Exit::Cancelled => "cancelled".to_owned(),
    }
}

fn render(output: &ExecOutput, timeout: Duration) -> String {
    let mut blocks = Vec::new();
    let (stdout, stderr) = (output.stdout.trim_end_matches('\n'), output.stderr.trim_end_matches('\n'));
    if !stdout.is_empty() {
        blocks.push(stdout.to_owned());
    }
    if !stderr.is_empty() {
        blocks.push(format!("Std Error:\n{stderr}"));
    }
    match output.exit {
        Exit::Code(0) => {}
        Exit::Code(code) => blocks.push(format!("Exit Code: {code}")),
        // As a shell would report it.
        Exit::Signal(signal) => {
            blocks.push(format!("Exit Code: {} (killed by signal {signal})", 128 + signal))
        }
        Exit::TimedOut => {
            let printed =
                if blocks.is_empty() { "It had printed nothing." } else { "What it had printed is above." };
            blocks.push(format!(
                "Timed Out: the command was stopped after {} seconds, with everything it had started. \
                 {printed} Split the work into shorter commands, or have it save what it has done and \
                 continue from there.",
                timeout.as_secs_f64()
            ));
        }
        Exit::Cancelled => blocks.push("Cancelled: the command was stopped before it ended.".to_owned()),
    }
    if blocks.is_empty() {
        return "(no output)".to_owned();
    }
    blocks.join("\n")
}

/// Keeps the beginning and the end, and says where the rest is.
fn shorten(text: String, limit: usize, output: &ExecOutput, saved: &SavedOutput) -> String {
    // What the capture left out on its own is not in the count.
    let more = if output.stdout_truncated || output.stderr_truncated { "more than " } else { "" };
    let path = saved.path();
    let rest = match saved.outcome() {
        Saved::InFile { dropped: 0, .. } => format!(
            "the whole output is in {path}: read it with read_file (start_line, end_line) or search it with grep"
        ),
        Saved::InFile { written, .. } => format!(
            "the first {written} bytes are in {path}: read them with read_file (start_line, end_line) or search \
             them with grep"
        ),
        Saved::NotNeeded => "redirect the output to a file and read that in parts".to_owned(),
        Saved::Failed { reason } => format!(
            "it could not be kept in a file ({reason}); redirect the output to a file and read that in parts"
        ),
    };
    cut::middle(text, limit, |skipped| {
        format!("\n... [middle truncated: {more}{skipped} chars skipped; {rest}] ...\n")
    })
}

/// What one call streams at most; a command that prints without end must not fill its listeners' logs.
const MAX_STREAMED: usize = 1 << 20;

/// Carries output from the sandbox's callback, which cannot wait, to the event sink, which may make us wait.
#[derive(Default)]
struct Progress {
    pending: Mutex<Pending>,
    changed: Notify,
}

#[derive(Default)]
struct Pending {
    text: String,
    streamed: usize,
    closed: bool,
}

impl OutputSink for Progress {
    fn output(&self, _stream: Stream, text: &str) {
        let mut pending = self.lock();
        if pending.streamed > MAX_STREAMED {
            return;
        }
        pending.streamed += text.len();
        if pending.streamed > MAX_STREAMED {
            let _ = write!(pending.text, "\n... [the rest is not streamed] ...\n");
        } else {
            pending.text.push_str(text);
        }
        drop(pending);
        self.changed.notify_one();
    }
}

impl Progress {
    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    async fn forward(&self, cx: &ToolContext<'_>) {
        loop {
            let (text, closed) = {
                let mut pending = self.lock();
                (std::mem::take(&mut pending.text), pending.closed)
            };
            if !text.is_empty() {
                cx.progress(text).await;
            } else if closed {
                return;
            } else {
                self.changed.notified().await;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "bash_tests.rs"]
mod tests;
