//! The keys of what is done to text before a model reads it.
//!
//! Invariant: the defaults told here are those of the types that are read.

use super::{Key, Kind, key};

pub(super) fn keys() -> [Key; 16] {
    [
        key("input_sanitization", Kind::Section, "{}", "Neutralising what users write, in requests only."),
        key(
            "input_sanitization.enabled",
            Kind::Bool,
            "true",
            "Whether it is neutralised and put between markers.",
        ),
        key("untrusted_content", Kind::Section, "{}", "Sealing what tools bring in from outside."),
        key(
            "untrusted_content.enabled",
            Kind::Bool,
            "true",
            "Whether it is neutralised and put between markers.",
        ),
        key(
            "untrusted_content.tools",
            Kind::Texts,
            "[web_fetch, web_search, image_search, web_capture]",
            "The tools whose results are foreign text.",
        ),
        key(
            "unsupported_content",
            Kind::Section,
            "{}",
            "Asking again in words when a model refuses images or files.",
        ),
        key(
            "unsupported_content.enabled",
            Kind::Bool,
            "true",
            "Whether it is asked again; if not, the refusal ends the run.",
        ),
        key(
            "pii",
            Kind::Section,
            "{}",
            "Keeping personal data from the model; nothing is looked for without rules.",
        ),
        key("pii.enabled", Kind::Bool, "true", "Whether the rules hold."),
        key("pii.rules", Kind::Sections, "[]", "What is looked for, where, and what becomes of it."),
        key(
            "pii.rules[].type",
            Kind::Text,
            "",
            "email, credit_card, ip, mac_address, url, or a name of your own together with `detector`.",
        ),
        key("pii.rules[].detector", Kind::Text, "", "A regular expression."),
        key(
            "pii.rules[].strategy",
            Kind::Choice(&["block", "redact", "mask", "hash"]),
            "redact",
            "What becomes of it; `block` fails the run.",
        ),
        key("pii.rules[].apply_to_input", Kind::Bool, "true", "In users' messages, as the model gets them."),
        key("pii.rules[].apply_to_output", Kind::Bool, "false", "In answers, as the thread keeps them."),
        key("pii.rules[].apply_to_tool_results", Kind::Bool, "false", "In what tools return."),
    ]
}
