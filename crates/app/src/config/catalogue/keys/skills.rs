//! The keys of skills: where they are, how they are offered, who may write them.
//!
//! Invariant: the defaults told here are those of the types that are read.

use super::{COUNT, Key, Kind, key, unused};

pub(super) fn keys() -> [Key; 15] {
    [
        key("skills", Kind::Section, "{}", "Know-how for kinds of work, in folders with a SKILL.md."),
        key("skills.enabled", Kind::Bool, "true", "Whether agents are offered skills."),
        key(
            "skills.path",
            Kind::Text,
            "`skills` in the data directory",
            "A folder of yours with `public` and `custom` in it; hart reads it and changes nothing there.",
        ),
        key(
            "skills.prompt_tokens",
            COUNT,
            "3000",
            "How many tokens the list of skills in the prompt may take; beyond it the fitting ones are described.",
        ),
        key(
            "skills.deferred_discovery",
            Kind::Bool,
            "false",
            "Whether only names are listed, and tools tell the rest.",
        ),
        key(
            "skills.lock",
            Kind::Bool,
            "true",
            "Whether a package that changed behind hart's back is held back until it is approved.",
        ),
        unused("skills.use", "DeerFlow's way of storing skills."),
        unused("skills.container_path", "Where DeerFlow's sandboxes show skills; here it is /mnt/skills."),
        key("skill_scan", Kind::Section, "{}", "Scanning skills before they are taken."),
        key("skill_scan.enabled", Kind::Bool, "true", "Whether packages are scanned when they are new."),
        key("skill_evolution", Kind::Section, "{}", "Letting agents write skills of their user's."),
        key("skill_evolution.enabled", Kind::Bool, "false", "Whether there is the tool skill_manage."),
        key(
            "skill_evolution.moderation_model_name",
            Kind::Text,
            "the model that answers",
            "The model that reviews what is written, one of `models`.",
        ),
        key(
            "skill_evolution.security_fail_closed",
            Kind::Bool,
            "true",
            "Whether a text is refused too when the review cannot be had; scripts are in any case.",
        ),
        unused("skill_evolution.model_name", "An older name of the model that reviews."),
    ]
}
