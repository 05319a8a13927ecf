//! The keys of what the model is shown of a conversation, and what a thread shows of itself.
//!
//! Invariant: the defaults told here are those of the types that are read.

use super::{AMOUNT, COUNT, Key, Kind, key, unused};

pub(super) fn keys() -> Vec<Key> {
    let mut keys = summarization().to_vec();
    keys.extend(editing());
    keys.extend(title());
    keys.extend(attachments());
    keys.extend(helpers());
    keys
}

fn summarization() -> [Key; 12] {
    [
        key(
            "summarization",
            Kind::Section,
            "{}",
            "Replacing the older part of a long conversation by a summary.",
        ),
        key("summarization.enabled", Kind::Bool, "true", "Whether long conversations are compacted."),
        key(
            "summarization.model_name",
            Kind::Text,
            "the model that answers",
            "The model that writes summaries, one of `models`.",
        ),
        key(
            "summarization.trigger",
            Kind::Any,
            "80 % of the model's window",
            "When to compact: {type: tokens, value: 32000}, {messages: 50}, {fraction: 0.8}, or a list of such.",
        ),
        key(
            "summarization.keep",
            Kind::Any,
            "a tenth of the window",
            "How much of the end stays as it is: {type: messages, value: 20}, {tokens: 8000} or {fraction: 0.1}.",
        ),
        key(
            "summarization.trim_tokens_to_summarize",
            COUNT,
            "",
            "How many tokens of the old part the summariser is shown; what fits into its window, without it.",
        ),
        key(
            "summarization.summary_prompt",
            Kind::Text,
            "",
            "Instead of hart's own words; `{messages}` stands for the old part.",
        ),
        key(
            "summarization.truncate_args_over",
            COUNT,
            "2000",
            "Longer arguments of old tool calls, in characters, are the first to be shortened.",
        ),
        unused("summarization.preserve_recent_skill_count", "How many skills DeerFlow keeps from summaries."),
        unused("summarization.preserve_recent_skill_tokens", "How long these may be together."),
        unused("summarization.preserve_recent_skill_tokens_per_skill", "How long one of them may be."),
        unused("summarization.skill_file_read_tool_names", "Tools with which DeerFlow's skills are read."),
    ]
}

fn editing() -> [Key; 16] {
    [
        key(
            "context_editing",
            Kind::Section,
            "{}",
            "Clearing old tool results from requests; the thread keeps them.",
        ),
        key("context_editing.enabled", Kind::Bool, "false", "Whether old results are cleared."),
        key("context_editing.trigger", COUNT, "100000", "From how many tokens on."),
        key("context_editing.keep", AMOUNT, "3", "How many of the newest results stay."),
        key(
            "context_editing.clear_at_least",
            AMOUNT,
            "0",
            "Tokens to gain before anything changes; at least a twentieth of `trigger`.",
        ),
        key(
            "context_editing.clear_tool_inputs",
            Kind::Bool,
            "false",
            "Whether the arguments of the calls are cleared too.",
        ),
        key("context_editing.exclude_tools", Kind::Texts, "[]", "Tools whose results stay."),
        key("context_editing.placeholder", Kind::Text, "[cleared]", "What stands for a result."),
        key("tool_selection", Kind::Section, "{}", "Showing the model only the tools that fit."),
        key("tool_selection.enabled", Kind::Bool, "false", "Whether tools are chosen."),
        key(
            "tool_selection.max_tools",
            COUNT,
            "20",
            "How many are chosen, beside those that stay in any case.",
        ),
        key("tool_selection.always_include", Kind::Texts, "[]", "Tools that are shown in any case."),
        key("dynamic_context", Kind::Section, "{}", "Telling the model what changes from day to day."),
        key("dynamic_context.enabled", Kind::Bool, "true", "Whether it is told anything."),
        key("dynamic_context.date", Kind::Bool, "true", "Whether it is told the date."),
        key(
            "dynamic_context.lines",
            Kind::Texts,
            "[]",
            "More that it is told, one line each: where you are, what holds in your house.",
        ),
    ]
}

fn title() -> [Key; 6] {
    [
        key("title", Kind::Section, "{}", "Giving threads a title."),
        key(
            "title.enabled",
            Kind::Bool,
            "true",
            "Whether threads get one; the user's first words, without a model.",
        ),
        key("title.model_name", Kind::Text, "", "The model that is asked for a better one, one of `models`."),
        key("title.max_words", COUNT, "6", "How many words a model's title may have."),
        key("title.max_chars", COUNT, "60", "How many characters a model's title may have."),
        key(
            "title.prompt_template",
            Kind::Text,
            "",
            "What the model is asked, with {max_words}, {user_msg} and {assistant_msg}.",
        ),
    ]
}

fn attachments() -> [Key; 11] {
    [
        key("uploads", Kind::Section, "{}", "Files that come with messages."),
        key("uploads.enabled", Kind::Bool, "true", "Whether the model is told of them."),
        key("uploads.max_files", COUNT, "10", "How many files may be uploaded at once."),
        key("uploads.max_file_size", COUNT, "52428800", "How large one may be, in bytes."),
        key("uploads.max_total_size", COUNT, "104857600", "How large all may be together, in bytes."),
        unused("uploads.auto_convert_documents", "Whether documents become Markdown."),
        unused("uploads.pdf_converter", "What reads PDFs."),
        key("view_image", Kind::Section, "{}", "Showing images to models that can see."),
        key("view_image.enabled", Kind::Bool, "true", "Whether there is the tool view_image."),
        key("view_image.max_images", COUNT, "20", "How many images one request shows."),
        key("view_image.max_total_bytes", COUNT, "29360128", "How much they may have together, as base64."),
    ]
}

fn helpers() -> [Key; 10] {
    [
        key("agents_api", Kind::Section, "{}", "Managing agents of one's own over HTTP."),
        key("agents_api.enabled", Kind::Bool, "true", "Whether a server makes, changes and deletes them."),
        key("suggestions", Kind::Section, "{}", "Follow-up questions for whoever has read an answer."),
        key("suggestions.enabled", Kind::Bool, "true", "Whether any are suggested."),
        key("suggestions.max_suggestions", COUNT, "3", "How many at most, up to 5."),
        key(
            "suggestions.model_name",
            Kind::Text,
            "the default model",
            "The model that is asked, one of `models`.",
        ),
        key("input_polish", Kind::Section, "{}", "Saying better what a user typed, on request."),
        key("input_polish.enabled", Kind::Bool, "true", "Whether words are polished."),
        key("input_polish.max_chars", COUNT, "4000", "How long they may be."),
        key(
            "input_polish.model_name",
            Kind::Text,
            "the default model",
            "The model that is asked, one of `models`.",
        ),
    ]
}
