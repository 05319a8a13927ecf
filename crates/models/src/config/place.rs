//! Where a model is, and what is spoken there.
//!
//! Invariant: an address that is accepted can be asked: it has a scheme, a host, and no path of the API itself.

use super::{Dialect, ModelConfigError, Preset};
use crate::address::{self, Address};

/// The address without a slash at the end, and the dialect that its path speaks of.
pub(super) fn base_url(
    given: Option<&str>,
    preset: &Preset,
    name: &str,
) -> Result<(Address, Dialect), ModelConfigError> {
    let invalid = |message| ModelConfigError::Invalid { name: name.to_owned(), message };
    let url = given.map(str::trim).filter(|url| !url.is_empty()).or(preset.base_url);
    let Some(url) = url else {
        return Err(invalid(format!(
            "`use: {}` needs `base_url`, such as http://localhost:8000/v1",
            preset.name
        )));
    };
    let quoted = format!("`base_url: {}`", address::shown(url));
    let parsed = reqwest::Url::parse(url).map_err(|error| invalid(format!("{quoted}: {error}")))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(invalid(format!("{quoted} must start with http:// or https://")));
    }
    // A part of a page is nothing that a server gets to see.
    let (url, query) = address::halves(url.split('#').next().unwrap_or_default());
    // People paste what their provider's page shows, which may be the whole endpoint.
    let url = url.trim_end_matches('/');
    let dialect = preset.dialect_at(url);
    let endings: &[&str] = match dialect {
        Dialect::OpenAi | Dialect::Responses => &["/chat/completions", "/responses"],
        Dialect::Anthropic => &["/v1/messages", "/v1"],
        Dialect::Gemini => &["/v1beta/models", "/v1beta", "/v1"],
        Dialect::Ollama => &["/api/chat", "/api"],
    };
    let url = endings.iter().find_map(|ending| url.strip_suffix(ending)).unwrap_or(url);
    let url = url.trim_end_matches('/');
    let mark = if query.is_empty() { "" } else { "?" };
    Ok((format!("{url}{mark}{query}").into(), dialect))
}

/// OpenAI's newer models refuse tools together with reasoning in chat completions. Its imitators may know nothing else.
pub(super) fn dialect(
    responses: Option<bool>,
    preset: &Preset,
    spoken: Dialect,
    base_url: &str,
    name: &str,
) -> Result<Dialect, ModelConfigError> {
    match (spoken, responses) {
        (Dialect::OpenAi, Some(true)) => Ok(Dialect::Responses),
        (Dialect::Responses, Some(false)) => Ok(Dialect::OpenAi),
        (Dialect::OpenAi, None) if preset.name == "openai" && preset.base_url == Some(base_url) => {
            Ok(Dialect::Responses)
        }
        (Dialect::OpenAi | Dialect::Responses, _) | (_, None | Some(false)) => Ok(spoken),
        (_, Some(true)) => {
            let message = format!("`use_responses_api` has no meaning for `use: {}`; remove it", preset.name);
            Err(ModelConfigError::Invalid { name: name.to_owned(), message })
        }
    }
}
