//! Whether a model's server answers and takes the key, without paying for an answer.
//!
//! Invariant: a check asks once, for the list of models, and waits a few seconds at most.

use std::time::Duration;

use serde_json::Value;

use crate::address;
use crate::anthropic;
use crate::config::{Dialect, ModelConfig};
use crate::discover::model_ids;
use crate::http;

const PATIENCE: Duration = Duration::from_secs(10);

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reachability {
    /// It answers; these are its models, if it says.
    Ok {
        models: Vec<String>,
    },
    Unauthorized {
        status: u16,
    },
    /// Nothing answers there.
    Unreachable {
        url: String,
        reason: String,
    },
    /// It answers, but not as a model server does.
    Odd {
        status: u16,
    },
}

/// Asks the model's server for its models.
pub async fn check(config: &ModelConfig, http: &reqwest::Client) -> Reachability {
    let (path, auth) = match config.dialect {
        Dialect::OpenAi | Dialect::Responses => ("/models", http::BEARER),
        Dialect::Anthropic => ("/v1/models", anthropic::KEY),
        Dialect::Gemini => ("/v1beta/models?pageSize=1000", crate::gemini::KEY),
        Dialect::Ollama => ("/api/tags", http::BEARER),
    };
    let url = config.base_url.at(path);
    let mut request = http.get(&url).headers(http::authorized(config, auth)).timeout(PATIENCE);
    if config.dialect == Dialect::Anthropic {
        let (name, value) = anthropic::VERSION;
        request = request.header(name, value);
    }
    let answered = async {
        let response = request.send().await?;
        Ok::<_, reqwest::Error>((response.status().as_u16(), response.bytes().await?))
    };
    match answered.await {
        Err(error) => {
            Reachability::Unreachable { url: address::shown(&url), reason: http::chain(&error.without_url()) }
        }
        Ok((status @ (401 | 403), _)) => Reachability::Unauthorized { status },
        Ok((status @ 200..300, body)) => {
            let list: Value = serde_json::from_slice(&body).unwrap_or_default();
            match model_ids(&list) {
                Some(models) => Reachability::Ok { models: models.map(str::to_owned).collect() },
                None => Reachability::Odd { status },
            }
        }
        Ok((status, _)) => Reachability::Odd { status },
    }
}
