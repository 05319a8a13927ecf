//! `skill_search`: finds skills by what a task is about.
//!
//! Invariant: only skills that are switched on are named.

use std::fmt::Write as _;
use std::sync::Arc;

use hart_kernel::{Effect, ToolContext, ToolError, ToolOutput, TypedTool, async_trait};
use hart_knowledge::skills::Catalogue;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::lenient::Count;

pub(crate) struct SkillSearch(pub(crate) Arc<Catalogue>);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct SkillSearchArgs {
    /// What the task is about, in a few words.
    query: String,
    /// How many to show; 5 by default.
    #[serde(default)]
    limit: Option<Count>,
}

const USUAL: usize = 5;
const MOST: usize = 20;

#[async_trait]
impl TypedTool for SkillSearch {
    const NAME: &'static str = "skill_search";
    const DESCRIPTION: &'static str = "\
Find skills (know-how for particular kinds of work) by what the task is about. Use it when none of the listed skills \
fits: not all of them are listed. The answer names each skill's file; read it with read_file before you begin.";
    const EFFECT: Effect = Effect::Pure;
    type Args = SkillSearchArgs;

    async fn run(&self, _cx: &ToolContext<'_>, args: SkillSearchArgs) -> Result<ToolOutput, ToolError> {
        let limit = args.limit.map_or(USUAL, |limit| limit.0).clamp(1, MOST);
        let found = self.0.ranked(&args.query).into_iter().filter(|(_, score)| *score > 0.0);
        let mut text = String::new();
        for (skill, _) in found.filter(|(skill, _)| !skill.manifest.user_only).take(limit) {
            let description = skill.manifest.description.split_whitespace().collect::<Vec<_>>().join(" ");
            // Writing to a string cannot fail.
            let _ = writeln!(text, "- {}: {description} ({})", skill.name(), skill.location);
        }
        if text.is_empty() {
            let all = self.0.enabled().count();
            return Ok(
                format!("No results: none of the {all} skills is about that. Go on without one.").into()
            );
        }
        Ok(text.trim_end().to_owned().into())
    }
}
