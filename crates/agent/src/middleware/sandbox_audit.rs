//! Looks at each command before it runs: blocks some, warns about some, and writes a line about every one.
//!
//! Invariant: a blocked command does not reach the sandbox, and no command passes without its line.

use std::fmt;
use std::sync::Arc;

use hart_kernel::{
    Command, HookError, Middleware, RunContext, ToolNext, ToolOutcome, ToolRequest, async_trait,
};
use hart_sandbox::{AuditRule, CommandAudit, Verdict, audit_command, redact};
use hart_types::{Block, Content, Message, ToolCall, ToolStatus};
use serde_json::json;

/// Where audit lines are kept, beside the log.
pub trait AuditLog: Send + Sync {
    /// `line` is one JSON object, without its line end.
    fn record(&self, line: &str);
}

#[derive(Clone, Default)]
pub struct SandboxAudit {
    log: Option<Arc<dyn AuditLog>>,
}

impl SandboxAudit {
    /// Lines go to `tracing` (target `hart::audit`) only.
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn with_log(mut self, log: Arc<dyn AuditLog>) -> Self {
        self.log = Some(log);
        self
    }

    fn record(&self, cx: &RunContext, call: &ToolCall, command: &str, audit: &CommandAudit) {
        let line = line(cx, call, command, audit);
        match audit.verdict {
            Verdict::Pass => tracing::debug!(target: "hart::audit", "{line}"),
            Verdict::Warn => tracing::info!(target: "hart::audit", "{line}"),
            Verdict::Block => tracing::warn!(target: "hart::audit", "{line}"),
        }
        if let Some(log) = &self.log {
            log.record(&line);
        }
    }
}

impl fmt::Debug for SandboxAudit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxAudit").field("log", &self.log.is_some()).finish()
    }
}

#[async_trait]
impl Middleware for SandboxAudit {
    async fn wrap_tool_call(
        &self,
        cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        let call = Arc::clone(&request.call);
        let command = call.args.get("command").and_then(|command| command.as_str());
        let Some(command) = command.filter(|_| call.name == "bash") else { return next.run(request).await };
        let audit = audit_command(command);
        self.record(cx, &call, command, &audit);
        let rules = audit.rules();
        if audit.verdict == Verdict::Block {
            return Ok(blocked(&call, &rules));
        }
        let mut outcome = next.run(request).await?;
        if audit.verdict == Verdict::Warn {
            warn(&mut outcome.message, &rules);
        }
        Ok(outcome)
    }
}

fn blocked(call: &ToolCall, rules: &[&AuditRule]) -> ToolOutcome {
    let reasons = rules.iter().filter(|rule| rule.verdict == Verdict::Block);
    let reasons: Vec<_> =
        reasons.map(|rule| format!("{} (rule {}); instead: {}", rule.why, rule.id, rule.instead)).collect();
    let text = format!("Error: Command blocked, nothing was run: {}", reasons.join(". Also: "));
    let id = call.id.clone().unwrap_or_else(|| "".into());
    ToolOutcome { message: Message::tool(&id, &call.name, ToolStatus::Error, text), command: Command::none() }
}

fn warn(message: &mut Message, rules: &[&AuditRule]) {
    let warnings =
        rules.iter().map(|rule| format!("Warning (rule {}): {}; {}", rule.id, rule.why, rule.instead));
    let note = warnings.collect::<Vec<_>>().join("\n");
    match &mut message.content {
        Content::Text(text) => {
            text.push_str("\n\n");
            text.push_str(&note);
        }
        Content::Blocks(blocks) => blocks.push(Block::text(note)),
    }
}

/// Bounded, whatever the command is, and without the secrets in it.
fn line(cx: &RunContext, call: &ToolCall, command: &str, audit: &CommandAudit) -> String {
    const SHOWN: usize = 2000;
    const PARTS: usize = 50;
    let shown: String = redact(command).chars().take(SHOWN).collect();
    let parts = audit.parts.iter().take(PARTS);
    let parts: Vec<_> = parts
        .map(|part| json!({"text": part.text, "verdict": part.verdict.name(), "rule": part.rule.map(|rule| rule.id)}))
        .collect();
    json!({
        "time": cx.clock.now().to_string(),
        "user": cx.user_id.as_str(),
        "thread": cx.thread_id.as_str(),
        "run": cx.run_id.as_str(),
        "call": call.id.as_ref().map(|id| id.as_str()),
        "verdict": audit.verdict.name(),
        "rules": audit.rules().iter().map(|rule| rule.id).collect::<Vec<_>>(),
        "command": shown,
        "length": command.len(),
        "parts": parts,
    })
    .to_string()
}
