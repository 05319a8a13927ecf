//! `skill_manage`: lets the model keep what it learnt as a skill.
//!
//! Invariant: nothing is written that the scanner forbids or the review does not permit.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use hart_kernel::{ToolContext, ToolError, ToolOutput, TypedTool, async_trait};
use hart_knowledge::skills::{Change, Changed, Evolution, HistoryEntry, Level};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::lenient::Count;
use crate::sandboxed::failed;

pub(crate) struct SkillManage(pub(crate) Arc<Evolution>);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct SkillManageArgs {
    action: Action,
    /// The skill's name: small letters, digits and hyphens.
    name: String,
    /// For create and edit: the whole SKILL.md, with front matter (name, description). For write_file: the file.
    #[serde(default)]
    content: Option<String>,
    /// For patch, write_file and remove_file: the file in the skill's folder, such as references/style.md. A patch
    /// without it is one of SKILL.md.
    #[serde(default)]
    path: Option<String>,
    /// For patch: the text to replace, exactly as it is in the file.
    #[serde(default)]
    find: Option<String>,
    /// For patch: what to put in its place.
    #[serde(default)]
    replace: Option<String>,
    /// For patch: how often the text is in the file; 1 by default.
    #[serde(default)]
    expected_count: Option<Count>,
    /// For rollback: the version, from the history.
    #[serde(default)]
    version: Option<Count>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Create,
    Edit,
    Patch,
    WriteFile,
    RemoveFile,
    Delete,
    History,
    Rollback,
}

/// The review asks a model, perhaps several times.
const PATIENCE: Duration = Duration::from_secs(300);

#[async_trait]
impl TypedTool for SkillManage {
    const NAME: &'static str = "skill_manage";
    const DESCRIPTION: &'static str = "\
Keep a way of working as a skill of the user's, so that later conversations find it: create, edit (the whole SKILL.md), \
patch (one passage), write_file and remove_file (in references, templates, scripts, assets, tests), delete, history, \
rollback.

Use it when something took several attempts, when the user corrected the approach, or when the same work will come \
again. Ask the user before you create a skill. What is written is checked by a scanner and a reviewer, scripts more \
strictly than texts; a refusal says why. Changes count from the next run on.";
    type Args = SkillManageArgs;

    async fn run(&self, cx: &ToolContext<'_>, args: SkillManageArgs) -> Result<ToolOutput, ToolError> {
        let name = args.name.clone();
        let Some(change) = args.change()? else {
            let history = self.0.history(&name).map_err(|error| failed(error.to_string()))?;
            return Ok(told(&name, &history).into());
        };
        let applied = tokio::time::timeout(PATIENCE, self.0.apply(cx.run, &name, &change)).await;
        let applied = applied.map_err(|_| failed("the review takes too long; nothing was written"))?;
        let Changed { version, findings, review, .. } = applied.map_err(|error| failed(error.to_string()))?;
        let mut text = match change {
            Change::Delete => format!("The skill `{name}` is deleted; `rollback` brings it back."),
            _ => format!(
                "The skill `{name}` is written (version {version}); it is found from the next run on."
            ),
        };
        // Writing to a string cannot fail.
        for finding in findings.iter().filter(|finding| finding.level >= Level::Warn) {
            let _ = write!(text, "\nnoticed: {finding}; {}", finding.help);
        }
        if let Some(review) = review.filter(|review| !review.is_empty()) {
            let _ = write!(text, "\nreview: {review}");
        }
        Ok(text.into())
    }
}

impl SkillManageArgs {
    /// Nothing for one who only looks.
    fn change(self) -> Result<Option<Change>, ToolError> {
        let needs = |what: &str, value: Option<String>| {
            value.ok_or_else(|| ToolError::Arguments(format!("this action needs `{what}`")))
        };
        Ok(Some(match self.action {
            Action::Create => Change::Create { content: needs("content", self.content)? },
            Action::Edit => Change::Edit { content: needs("content", self.content)? },
            Action::Patch => Change::Patch {
                path: self.path,
                find: needs("find", self.find)?,
                replace: needs("replace", self.replace)?,
                expected: self.expected_count.map(|count| count.0),
            },
            Action::WriteFile => Change::WriteFile {
                path: needs("path", self.path)?,
                content: needs("content", self.content)?,
            },
            Action::RemoveFile => Change::RemoveFile { path: needs("path", self.path)? },
            Action::Delete => Change::Delete,
            Action::History => return Ok(None),
            Action::Rollback => {
                let version = self.version.and_then(|version| u32::try_from(version.0).ok());
                let version =
                    version.ok_or_else(|| ToolError::Arguments("this action needs `version`".to_owned()))?;
                Change::Rollback { version }
            }
        }))
    }
}

fn told(name: &str, history: &[HistoryEntry]) -> String {
    if history.is_empty() {
        return format!("`{name}` has no history: it was never changed with this tool.");
    }
    let line = |entry: &HistoryEntry| {
        let hash: String = entry.hash.chars().take(15).collect();
        format!(
            "- version {}: {} at {} {hash}",
            entry.version,
            entry.action,
            entry.at.strftime("%Y-%m-%d %H:%M")
        )
    };
    history.iter().map(line).collect::<Vec<_>>().join("\n")
}
