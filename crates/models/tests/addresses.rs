//! Addresses with more in them than a host and a path: a query, a name, a password.

use hart_models::{Dialect, ModelConfig, ModelEntry, build, reachability};
use hart_testkit::{ModelServer, Turn};
use serde_json::{Value, json};

use crate::support::{DIALECTS, ask, config, fails, http, human};

#[tokio::test]
async fn a_query_stays_behind_the_path() {
    for dialect in DIALECTS {
        let server = ModelServer::start().await;
        let plain = config(&server, dialect, json!({})).base_url;
        for base in [format!("{plain}?api-version=2"), format!("{plain}/?api-version=2")] {
            server.push(Turn::new().text("hello"));
            let model = build(&config(&server, dialect, json!({"base_url": base})), &http());
            assert_eq!(ask(&*model, human("hi")).await.text(), "hello", "{dialect:?} {base}");
            let requests = server.requests();
            let query = requests.last().unwrap().query.clone().unwrap_or_default();
            assert!(query.split('&').any(|pair| pair == "api-version=2"), "{dialect:?}: {query}");
            // Gemini has a query of its own.
            assert_eq!(query.contains("alt=sse"), dialect == Dialect::Gemini, "{dialect:?}: {query}");
        }
    }
}

#[test]
fn a_pasted_endpoint_loses_its_path_and_keeps_its_query() {
    for (provider, given, kept) in [
        ("openai-compatible", "https://h/v1/chat/completions?api-version=2", "https://h/v1?api-version=2"),
        ("openai-compatible", "https://h/v1/?a=b/", "https://h/v1?a=b/"),
        ("anthropic", "https://h/v1/messages?x=1", "https://h?x=1"),
        ("gemini", "https://h/v1beta?x=1#top", "https://h?x=1"),
        ("ollama", "http://h/api/chat?", "http://h"),
    ] {
        assert_eq!(resolve(json!({"use": provider, "base_url": given})).unwrap().base_url, kept, "{given}");
    }
}

#[tokio::test]
async fn what_an_address_may_hide_is_not_shown() {
    for dialect in DIALECTS {
        let server = ModelServer::start().await;
        let base = "http://ada:hunter22@127.0.0.1:9/v1?code=hunter33&hunter44";
        let config = config(&server, dialect, json!({"base_url": base}));
        let error = fails(&*build(&config, &http()), human("hi")).await;
        let found = reachability::check(&config, &http()).await;
        let shown = format!("{error} {error:?} {found:?} {config:?}");
        assert!(!shown.contains("hunter"), "{shown}");
        assert!(shown.contains("127.0.0.1:9/") && shown.contains("?code="), "{shown}");
    }
}

#[test]
fn an_address_that_is_refused_is_quoted_without_its_secrets() {
    for base in ["http://ada:hunter2/x@h/v1", "ftp://ada:hunter2@h?k=hunter2", "http://h:1234567?k=hunter2"] {
        let error = resolve(json!({"use": "openai", "base_url": base})).unwrap_err().to_string();
        assert!(error.contains("base_url") && !error.contains("hunter2"), "{error}");
    }
    let entry = json!({"use": "openai", "base_url": "http://ada:hunter2@h", "proxy": "http://a:hunter2@p"});
    let entry: ModelEntry = serde_json::from_value(entry).unwrap();
    assert!(!format!("{entry:?}").contains("hunter2"), "{entry:?}");
}

fn resolve(mut entry: Value) -> Result<ModelConfig, hart_models::ModelConfigError> {
    entry
        .as_object_mut()
        .unwrap()
        .extend([("model".to_owned(), json!("m")), ("api_key".to_owned(), json!("k"))]);
    ModelConfig::resolve(serde_json::from_value(entry).unwrap(), &|_| None)
}
