//! The secrets that active skills ask for: which there are, which are missing, and how they stay secret.
//!
//! Invariant: a value goes into the environment of commands and nowhere else; what tools bring back of it is hidden.

use hart_knowledge::skills::Skill;
use hart_tools::without_secrets;
use hart_types::{Content, Message, Secrets};

/// What commands get, of what the run was given and these skills ask for.
pub(crate) fn bound<'a>(secrets: &Secrets, skills: impl Iterator<Item = &'a Skill>) -> Vec<(String, String)> {
    let asked = skills.flat_map(|skill| &skill.manifest.required_secrets);
    let mut bound: Vec<(String, String)> = asked
        .filter_map(|secret| Some((secret.name.clone(), secrets.get(&secret.name)?.to_owned())))
        .collect();
    bound.sort();
    bound.dedup();
    bound
}

/// A sentence about those a skill cannot do without and has not got. `again` is whether the run goes on after a crash,
/// which takes values with it.
pub(crate) fn missing(secrets: &Secrets, skill: &Skill, again: bool) -> Option<String> {
    let asked = skill.manifest.required_secrets.iter().filter(|secret| !secret.optional);
    let gone = |name: &str| !secrets.knows(name) || (again && secrets.get(name).is_none());
    let names: Vec<String> =
        asked.filter(|secret| gone(&secret.name)).map(|secret| format!("`{}`", secret.name)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "The skill `{}` needs secrets that did not come with this run: {}. Its commands will not find them in \
             their environment. Do what can be done without, and tell the user to send them in `context.secrets`; do \
             not ask for their values here.",
            skill.name(),
            names.join(", ")
        )
    })
}

/// The message without what must stay secret; `None` if there is nothing of it.
pub(crate) fn hidden(message: &Message, secrets: &Secrets) -> Option<Message> {
    secrets.values().next()?;
    let mut changed = false;
    let mut hide = |text: &str| {
        let hidden = without_secrets(text, secrets.values());
        changed |= hidden.is_some();
        hidden
    };
    let content = match &message.content {
        Content::Text(text) => Content::Text(hide(text).unwrap_or_else(|| text.clone())),
        Content::Blocks(blocks) => Content::Blocks(
            blocks
                .iter()
                .map(|block| match block.as_text().and_then(&mut hide) {
                    Some(text) => hart_types::Block::text(text),
                    None => block.clone(),
                })
                .collect(),
        ),
    };
    changed.then(|| {
        let mut message = message.clone();
        message.content = content;
        message
    })
}

/// The message with a sentence behind its text.
pub(crate) fn with_note(message: &mut Message, note: &str) {
    match &mut message.content {
        Content::Text(text) => {
            text.push_str("\n\n");
            text.push_str(note);
        }
        Content::Blocks(blocks) => blocks.push(hart_types::Block::text(note)),
    }
}
