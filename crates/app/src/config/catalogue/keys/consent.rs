//! The keys of who may do what.
//!
//! Invariant: the defaults told here are those of the types that are read.

use super::{COUNT, Key, Kind, key, unused};

/// Who may do what.
pub(super) fn consent() -> [Key; 17] {
    [
        key(
            "interrupt_on",
            Kind::Map,
            "{}",
            "Tools a person is asked about: true, or {allowed_decisions, description, when}; see the guide on approval.",
        ),
        key("permissions", Kind::Section, "{}", "Which paths the file tools may read and write."),
        key(
            "permissions.rules",
            Kind::Sections,
            "[]",
            "The rules in order; the first that matches a path decides.",
        ),
        key("permissions.rules[].operations", Kind::Texts, "", "What the rule is about: read, write."),
        key(
            "permissions.rules[].paths",
            Kind::Texts,
            "",
            "Absolute globs, such as /mnt/user-data/uploads/**.",
        ),
        key(
            "permissions.rules[].mode",
            Kind::Choice(&["allow", "deny", "interrupt"]),
            "allow",
            "Whether it may, may not, or a person is asked.",
        ),
        key(
            "permissions.allow_bash",
            Kind::Bool,
            "false",
            "Whether the tool bash may stay beside rules that do not hold for commands.",
        ),
        key("guardrails", Kind::Section, "{}", "Checking tool calls before they run."),
        key("guardrails.enabled", Kind::Bool, "false", "Whether calls are checked."),
        key(
            "guardrails.fail_closed",
            Kind::Bool,
            "true",
            "Whether a provider that fails or does not answer means no.",
        ),
        key("guardrails.timeout_seconds", COUNT, "30", "How long a provider may take to answer."),
        key("guardrails.provider", Kind::Section, "{}", "Who decides."),
        key(
            "guardrails.provider.use",
            Kind::Text,
            "allowlist",
            "`allowlist`, or DeerFlow's class path of it.",
        ),
        key("guardrails.provider.config", Kind::Section, "{}", "The lists."),
        key(
            "guardrails.provider.config.allowed_tools",
            Kind::Texts,
            "all",
            "The only tools that may be called.",
        ),
        key("guardrails.provider.config.denied_tools", Kind::Texts, "[]", "Tools that may not be called."),
        unused("guardrails.passport", "DeerFlow's passport for external providers."),
    ]
}
