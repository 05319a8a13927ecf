//! Which `use:` means which provider.
//!
//! Invariant: a name or class path belongs to at most one preset.

use super::{MaxTokensKey, Switch};
use crate::text_calls::{CallsInText, TextOptions};

/// The protocols every provider here speaks one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Chat completions.
    OpenAi,
    /// Messages.
    Anthropic,
    /// OpenAI's successor of chat completions.
    Responses,
    /// Google's `streamGenerateContent`.
    Gemini,
    /// Ollama's `/api/chat`.
    Ollama,
}

/// What is known of a provider without any configuration.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    pub name: &'static str,
    /// Python class paths that mean it.
    pub classes: &'static [&'static str],
    pub dialect: Dialect,
    /// `None`: the user must say.
    pub base_url: Option<&'static str>,
    /// Environment variables that may hold the key, best first; empty: no key is needed.
    pub key_env: &'static [&'static str],
    /// The provider refuses, or answers worse, when it does not see its own `reasoning_content` again.
    pub send_reasoning: bool,
}

impl Preset {
    /// By short name, by class path, or by class name alone: Python re-exports classes from several modules.
    pub fn find(given: &str) -> Option<&'static Self> {
        let given = given.trim();
        let class = |path: &'static str| path.rsplit(':').next();
        let wanted = given.contains([':', '.']).then(|| given.rsplit([':', '.']).next()).flatten();
        PRESETS.iter().find(|p| p.name.eq_ignore_ascii_case(given) || p.classes.contains(&given)).or_else(
            || {
                PRESETS
                    .iter()
                    .find(|p| wanted.is_some() && p.classes.iter().any(|path| class(path) == wanted))
            },
        )
    }

    /// The protocol spoken at an address: two providers also have a door for OpenAI's clients.
    pub(super) fn dialect_at(&self, base_url: &str) -> Dialect {
        let url = base_url.trim_end_matches('/');
        let url = url.strip_suffix("/chat/completions").unwrap_or(url);
        match self.dialect {
            Dialect::Gemini if url.ends_with("/openai") => Dialect::OpenAi,
            Dialect::Ollama if url.ends_with("/v1") => Dialect::OpenAi,
            dialect => dialect,
        }
    }

    /// OpenAI's reasoning models refuse the old word; its imitators may not know the new one.
    pub(super) fn max_tokens_key(&self, model: &str) -> MaxTokensKey {
        let newer = ["o1", "o3", "o4", "gpt-5", "gpt-6"].iter().any(|prefix| model.starts_with(prefix));
        if self.name == "openai" && newer {
            MaxTokensKey::MaxCompletionTokens
        } else {
            MaxTokensKey::MaxTokens
        }
    }
}

impl Preset {
    /// What is read out of the text: `auto` looks for calls and reasoning where open models are served, not at the
    /// providers that tell both themselves.
    pub(super) fn text_options(&self, base_url: &str, calls: Switch, think: Switch) -> TextOptions {
        let names = ["ollama", "lmstudio", "llamacpp", "vllm", "openai-compatible", "openrouter"];
        // OpenAI's name with another address is how most people spell "a compatible server".
        let open = names.contains(&self.name)
            || (self.name == "openai" && self.base_url.is_some_and(|own| own != base_url));
        TextOptions {
            calls: match calls {
                Switch::Auto if open => CallsInText::UnlessNative,
                Switch::On => CallsInText::Always,
                Switch::Auto | Switch::Off => CallsInText::Off,
            },
            think: think == Switch::On || (think == Switch::Auto && (open || self.name == "groq")),
            opened: think == Switch::On,
        }
    }
}

pub(super) fn all_names() -> String {
    let names = PRESETS.iter().map(|preset| preset.name);
    let classes = PRESETS.iter().flat_map(|preset| preset.classes).copied();
    names.chain(classes).collect::<Vec<_>>().join(", ")
}

const fn openai(name: &'static str, base_url: &'static str, key_env: &'static [&'static str]) -> Preset {
    Preset {
        name,
        classes: &[],
        dialect: Dialect::OpenAi,
        base_url: Some(base_url),
        key_env,
        send_reasoning: false,
    }
}

/// Every provider that is known by name.
pub const PRESETS: &[Preset] = &[
    Preset {
        classes: &[
            "langchain_openai:ChatOpenAI",
            "deerflow.models.patched_openai:PatchedChatOpenAI",
            "deerflow.models.openai_codex_provider:CodexChatModel",
        ],
        ..openai("openai", "https://api.openai.com/v1", &["OPENAI_API_KEY"])
    },
    Preset {
        name: "anthropic",
        classes: &["langchain_anthropic:ChatAnthropic", "deerflow.models.claude_provider:ClaudeChatModel"],
        dialect: Dialect::Anthropic,
        base_url: Some("https://api.anthropic.com"),
        key_env: &["ANTHROPIC_API_KEY"],
        send_reasoning: false,
    },
    Preset {
        classes: &["langchain_deepseek:ChatDeepSeek", "deerflow.models.patched_deepseek:PatchedChatDeepSeek"],
        send_reasoning: true,
        ..openai("deepseek", "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"])
    },
    Preset {
        classes: &["langchain_google_genai:ChatGoogleGenerativeAI"],
        dialect: Dialect::Gemini,
        ..openai("gemini", "https://generativelanguage.googleapis.com", &["GEMINI_API_KEY", "GOOGLE_API_KEY"])
    },
    Preset {
        classes: &["langchain_openrouter:ChatOpenRouter"],
        ..openai("openrouter", "https://openrouter.ai/api/v1", &["OPENROUTER_API_KEY"])
    },
    Preset {
        classes: &["langchain_ollama:ChatOllama"],
        dialect: Dialect::Ollama,
        send_reasoning: true,
        ..openai("ollama", "http://127.0.0.1:11434", &[])
    },
    openai("lmstudio", "http://127.0.0.1:1234/v1", &[]),
    openai("llamacpp", "http://127.0.0.1:8080/v1", &[]),
    Preset {
        classes: &["deerflow.models.vllm_provider:VllmChatModel"],
        send_reasoning: true,
        ..openai("vllm", "http://127.0.0.1:8000/v1", &[])
    },
    Preset {
        classes: &["langchain_groq:ChatGroq"],
        ..openai("groq", "https://api.groq.com/openai/v1", &["GROQ_API_KEY"])
    },
    Preset {
        classes: &["langchain_mistralai:ChatMistralAI"],
        ..openai("mistral", "https://api.mistral.ai/v1", &["MISTRAL_API_KEY"])
    },
    Preset { classes: &["langchain_xai:ChatXAI"], ..openai("xai", "https://api.x.ai/v1", &["XAI_API_KEY"]) },
    Preset {
        send_reasoning: true,
        ..openai("moonshot", "https://api.moonshot.ai/v1", &["MOONSHOT_API_KEY"])
    },
    Preset {
        classes: &["deerflow.models.patched_minimax:PatchedChatMiniMax"],
        ..openai("minimax", "https://api.minimax.io/v1", &["MINIMAX_API_KEY"])
    },
    Preset {
        classes: &["deerflow.models.patched_mimo:PatchedChatMiMo"],
        send_reasoning: true,
        ..openai("mimo", "https://api.xiaomimimo.com/v1", &["MIMO_API_KEY"])
    },
    Preset {
        classes: &["deerflow.models.patched_stepfun:PatchedChatStepFun"],
        send_reasoning: true,
        ..openai("stepfun", "https://api.stepfun.com/v1", &["STEPFUN_API_KEY"])
    },
    openai("qwen", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", &["DASHSCOPE_API_KEY"]),
    Preset { send_reasoning: true, ..openai("zai", "https://api.z.ai/api/paas/v4", &["ZAI_API_KEY"]) },
    Preset {
        name: "openai-compatible",
        classes: &["deerflow.models.mindie_provider:MindIEChatModel"],
        dialect: Dialect::OpenAi,
        base_url: None,
        key_env: &[],
        send_reasoning: false,
    },
];
