//! `describe_skill`: what a skill is, and which files it has.
//!
//! Invariant: a name that is not there is answered with the names that were probably meant.

use std::fmt::Write as _;
use std::sync::Arc;

use hart_kernel::{Effect, ToolContext, ToolError, ToolOutput, TypedTool, async_trait};
use hart_knowledge::skills::{Catalogue, Skill};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::sandboxed::failed;

pub(crate) struct DescribeSkill(pub(crate) Arc<Catalogue>);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DescribeSkillArgs {
    /// The skill's name.
    #[serde(alias = "query")]
    name: String,
}

#[async_trait]
impl TypedTool for DescribeSkill {
    const NAME: &'static str = "describe_skill";
    const DESCRIPTION: &'static str = "\
Tell what a skill is for, what it needs and which files it has. Its method is in its SKILL.md: read that with read_file.";
    const EFFECT: Effect = Effect::Pure;
    type Args = DescribeSkillArgs;

    async fn run(&self, _cx: &ToolContext<'_>, args: DescribeSkillArgs) -> Result<ToolOutput, ToolError> {
        let name = args.name.trim().trim_start_matches('/');
        if let Some(skill) = self.0.usable(name) {
            return Ok(described(skill).into());
        }
        if self.0.get(name).is_some() {
            return Err(failed(format!("the skill `{name}` is switched off; do the work without it")));
        }
        let shown: String = name.chars().take(80).collect();
        Err(failed(match self.0.near(name).as_slice() {
            [] => format!("there is no skill `{}`; skill_search finds skills by topic", shown.escape_debug()),
            near => {
                format!("there is no skill `{}`; did you mean {}?", shown.escape_debug(), near.join(" or "))
            }
        }))
    }
}

const LISTED: usize = 60;

fn described(skill: &Skill) -> String {
    let manifest = &skill.manifest;
    let mut text = format!("{}: {}\nfile: {}\n", skill.name(), manifest.description, skill.location);
    // Writing to a string cannot fail.
    for (what, value) in
        [("version", &manifest.version), ("license", &manifest.license), ("needs", &manifest.compatibility)]
    {
        if let Some(value) = value {
            let _ = writeln!(text, "{what}: {value}");
        }
    }
    if let Some(tools) = &manifest.allowed_tools {
        let tools = if tools.is_empty() { "none".to_owned() } else { tools.join(", ") };
        let _ = writeln!(text, "tools while it is active: {tools}");
    }
    let _ = writeln!(text, "files in {}:", skill.shown_folder());
    for (path, size) in skill.files.iter().take(LISTED) {
        let _ = writeln!(text, "- {path} ({})", crate::in_bytes(*size));
    }
    let more = skill.files.len().saturating_sub(LISTED);
    if more > 0 {
        let _ = writeln!(text, "and {more} more");
    }
    text.trim_end().to_owned()
}
