//! The catalogue of keys a model entry may have.
//!
//! Invariant: every key that `ModelEntry` reads is listed here, and nothing else is.

/// One key of an entry, for error messages and reference pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyDoc {
    pub name: &'static str,
    /// Other spellings that mean the same.
    pub aliases: &'static [&'static str],
    pub doc: &'static str,
    pub default: &'static str,
}

const fn key(name: &'static str, default: &'static str, doc: &'static str) -> KeyDoc {
    KeyDoc { name, aliases: &[], doc, default }
}

const fn also(key: KeyDoc, aliases: &'static [&'static str]) -> KeyDoc {
    KeyDoc { aliases, ..key }
}

/// Every key of a model entry.
pub const ENTRY_KEYS: &[KeyDoc] = &[
    key("name", "the value of `model`", "What this model is called in requests and in the interface."),
    key("use", "required", "The provider: a short name such as `openai`, or DeerFlow's class path."),
    key("model", "required", "What the provider calls the model."),
    key("display_name", "the name", "What the interface shows."),
    key("description", "none", "One sentence for the model menu."),
    also(
        key("api_key", "the provider's environment variable", "The API key, or `$VARIABLE`."),
        &["openai_api_key", "anthropic_api_key", "google_api_key"],
    ),
    also(
        key("base_url", "the provider's own address", "Where the API answers."),
        &["api_base", "openai_api_base", "anthropic_api_url"],
    ),
    also(
        key("max_tokens", "the provider's default; 8192 for Anthropic", "The longest answer, in tokens."),
        &["max_output_tokens", "num_predict"],
    ),
    key("max_completion_tokens", "none", "The same, sent under this name."),
    key("temperature", "the provider's default", "How much chance plays in an answer."),
    also(
        key("timeout", "`stream_chunk_timeout`", "Seconds to wait for an answer to begin."),
        &["request_timeout", "default_request_timeout"],
    ),
    key("max_retries", "2", "How often a failed call is repeated."),
    key("stream_chunk_timeout", "240", "Seconds of silence after which an answer counts as hanging."),
    key("connect_timeout", "10", "Seconds to wait for a connection."),
    key("total_timeout", "7200", "Seconds for a whole call, with its repetitions and pauses."),
    key("fallbacks", "[]", "Names of models that are asked, in order, when this one fails."),
    key("max_concurrent_calls", "no limit", "How many calls there may be at once at this address."),
    key("requests_per_minute", "no limit", "How many requests a minute the provider takes."),
    key("tokens_per_minute", "no limit", "How many tokens a minute, read and written, the provider takes."),
    key("proxy", "that of `network`", "The proxy to go through, `http://host:port`, or `none`."),
    key("ca_file", "that of `network`", "A PEM file of certificates to trust beside the system's."),
    key("supports_thinking", "what hart knows", "Whether thinking can be switched on."),
    key("supports_reasoning_effort", "what hart knows", "Whether `reasoning_effort` is understood."),
    key("supports_vision", "what hart knows", "Whether images are understood."),
    key("when_thinking_enabled", "{}", "Merged into the request when thinking is on."),
    key("when_thinking_disabled", "{}", "Merged into the request when thinking is off."),
    key("thinking", "{}", "Short for `when_thinking_enabled: {thinking: …}`."),
    also(key("context_window", "what hart knows", "How many tokens fit into a conversation."), &["num_ctx"]),
    key("extra_body", "{}", "Merged into every request."),
    key("model_kwargs", "{}", "The same, as LangChain spells it; `extra_body` wins."),
    key("default_headers", "{}", "HTTP headers sent with every request."),
    key(
        "pricing",
        "what hart knows",
        "`currency`, `input_per_million`, `output_per_million`, `input_cache_hit_per_million`.",
    ),
    key("send_reasoning", "by provider", "Whether the model is shown its earlier `reasoning_content`."),
    key(
        "use_responses_api",
        "true for `openai` at its own address",
        "Whether to speak OpenAI's Responses API instead of chat completions.",
    ),
    key("max_tokens_key", "by model", "`max_tokens` or `max_completion_tokens`: the word the server knows."),
    key(
        "capabilities",
        "{}",
        "What the model can do, against what hart knows; `hart models show` lists the names.",
    ),
    key(
        "text_tool_calls",
        "`auto`: on where open models are served (Ollama, LM Studio, llama.cpp, vLLM, OpenRouter, compatible servers)",
        "`auto`, `on` or `off`: whether tool calls that the model writes as text are recognised.",
    ),
    key(
        "think_tags",
        "`auto`: on where open models are served, and at Groq",
        "`auto`, `on` or `off`: whether `<think>` in the text becomes reasoning. `on` also says that answers may \
         begin inside it.",
    ),
    also(
        key("prompt_caching", "true for Anthropic", "Whether the unchanging start of a request is cached."),
        &["enable_prompt_caching"],
    ),
    key("structured_output", "by provider", "How JSON is asked for: `schema`, `object`, `prompt` or `tool`."),
    key("top_p", "the provider's default", "Nucleus sampling."),
    key("top_k", "the provider's default", "Samples from that many tokens."),
    key("frequency_penalty", "the provider's default", "Discourages repetition."),
    key("presence_penalty", "the provider's default", "Encourages new subjects."),
    key("seed", "none", "Asks for repeatable answers."),
    key("stop", "none", "Texts that end an answer."),
    key("stop_sequences", "none", "The same in Anthropic's spelling."),
    key(
        "reasoning_effort",
        "the provider's default",
        "`low`, `medium` or `high`, whether or not thinking is on.",
    ),
    key("reasoning", "none", "OpenRouter's settings of reasoning."),
    key("service_tier", "none", "The provider's service class."),
    key("logit_bias", "none", "Makes single tokens more or less likely."),
    key("parallel_tool_calls", "the provider's default", "Whether several tools may be called at once."),
    key("chat_template_kwargs", "none", "Arguments of the chat template, for vLLM and llama.cpp."),
    key(
        "thinking_budget",
        "the provider's default",
        "Gemini 2.5: tokens of thought; 0 is none, -1 as many as it likes.",
    ),
    key("thinking_level", "the provider's default", "Gemini 3: `minimal`, `low`, `medium` or `high`."),
    key("include_thoughts", "when thinking is on", "Gemini: whether thoughts are shown."),
    key("safety_settings", "the provider's default", "Gemini: thresholds by category of harm."),
    key(
        "keep_alive",
        "the server's default",
        "Ollama: how long the model stays in memory, such as `30m` or -1.",
    ),
    key("min_p", "the server's default", "Leaves out tokens less likely than this share of the likeliest."),
    key("repeat_penalty", "the server's default", "Discourages repetition, for local servers."),
    key("num_gpu", "the server's default", "Ollama: layers that run on the GPU."),
    key("num_thread", "the server's default", "Ollama: threads of the CPU."),
];

/// Keys of an entry that are parameters of the request itself.
pub(super) const REQUEST_KEYS: &[&str] = &[
    "top_p",
    "top_k",
    "frequency_penalty",
    "presence_penalty",
    "seed",
    "stop",
    "stop_sequences",
    "reasoning_effort",
    "reasoning",
    "service_tier",
    "logit_bias",
    "parallel_tool_calls",
    "chat_template_kwargs",
    "thinking_budget",
    "thinking_level",
    "include_thoughts",
    "safety_settings",
    "keep_alive",
    "min_p",
    "repeat_penalty",
    "num_gpu",
    "num_thread",
];
