//! Servers on this machine, real and pretended.

use std::time::Duration;

use hart_models::Dialect;
use hart_models::discover::probe_ports;
use hart_models::reachability::{Reachability, check};
use hart_testkit::ModelServer;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::{DIALECTS, config, http};

/// A server that answers everything with `response`, or with nothing. Returns its port.
async fn pretend(tasks: &mut tokio::task::JoinSet<()>, response: Option<String>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tasks.spawn(async move {
        let mut open = Vec::new();
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut buffer = [0; 4096];
            let _ = socket.read(&mut buffer).await;
            if let Some(response) = &response {
                let _ = socket.write_all(response.as_bytes()).await;
            } else {
                open.push(socket);
            }
        }
    });
    port
}

fn answer(status: &str, body: &str) -> Option<String> {
    Some(format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()))
}

#[tokio::test]
async fn only_a_model_list_counts_and_embedders_are_passed_over() {
    let mut tasks = tokio::task::JoinSet::new();
    let list =
        json!({"object": "list", "data": [{"id": "nomic-embed-text"}, {"id": "qwen3:8b"}, {"id": "x"}]});
    let good = pretend(&mut tasks, answer("200 OK", &list.to_string())).await;
    // What it answers to everything is no description of a model, and so changes nothing.
    let tags = json!({"models": [{"name": "nomic-embed-text:latest"}, {"name": "qwen3:8b"}]});
    let native = pretend(&mut tasks, answer("200 OK", &tags.to_string())).await;
    let page = pretend(&mut tasks, answer("200 OK", "<html>hello</html>")).await;
    let refusing = pretend(&mut tasks, answer("401 Unauthorized", "{}")).await;
    let silent = pretend(&mut tasks, None).await;
    let empty = pretend(&mut tasks, answer("200 OK", "{\"data\":[]}")).await;
    let ports = [
        ("vllm", page),
        ("lmstudio", refusing),
        ("llamacpp", silent),
        ("vllm", empty),
        ("lmstudio", good),
        ("ollama", page),
        ("ollama", native),
    ];
    let found = probe_ports(&http(), &ports, Duration::from_secs(3)).await;
    let told: Vec<_> =
        found.iter().map(|found| (found.provider, found.model.as_str(), found.dialect)).collect();
    let want = [("lmstudio", "qwen3:8b", Dialect::OpenAi), ("ollama", "qwen3:8b", Dialect::Ollama)];
    assert_eq!(told, want);
    assert_eq!(found[0].base_url.as_str(), format!("http://127.0.0.1:{good}/v1"));
    assert_eq!(found[1].base_url.as_str(), format!("http://127.0.0.1:{native}"));
    assert_eq!((found[1].context_window, found[1].supports_thinking), (Some(32_768), false));
}

#[tokio::test]
async fn ollama_tells_what_its_model_can_do() {
    let mut tasks = tokio::task::JoinSet::new();
    // One answer to both questions: the list, and the description.
    for (length, window) in [(8192, 8192), (262_144, 32_768)] {
        let both = json!({
            "models": [{"name": "qwen3-vl:8b"}],
            "capabilities": ["completion", "tools", "vision", "thinking"],
            "model_info": {"general.architecture": "qwen3vl", "qwen3vl.context_length": length},
        });
        let port = pretend(&mut tasks, answer("200 OK", &both.to_string())).await;
        let found = probe_ports(&http(), &[("ollama", port)], Duration::from_secs(3)).await;
        assert!(found[0].supports_vision && found[0].supports_thinking);
        assert_eq!(found[0].context_window, Some(window));
    }
}

#[tokio::test]
async fn a_check_tells_what_is_there() {
    let server = ModelServer::start().await;
    for dialect in DIALECTS {
        let found = check(&config(&server, dialect, json!({})), &http()).await;
        assert_eq!(found, Reachability::Ok { models: vec!["mock".to_owned()] });
    }
    let mut tasks = tokio::task::JoinSet::new();
    let mut at = async |response: Option<String>| {
        let mut config = config(&server, Dialect::OpenAi, json!({}));
        config.base_url = format!("http://127.0.0.1:{}/v1", pretend(&mut tasks, response).await).into();
        check(&config, &http()).await
    };
    assert_eq!(at(answer("401 Unauthorized", "{}")).await, Reachability::Unauthorized { status: 401 });
    assert_eq!(at(answer("200 OK", "<html>")).await, Reachability::Odd { status: 200 });
    assert_eq!(at(answer("404 Not Found", "{}")).await, Reachability::Odd { status: 404 });
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut config = config(&server, Dialect::OpenAi, json!({}));
    config.base_url = format!("http://{nobody}/v1").into();
    assert!(matches!(check(&config, &http()).await, Reachability::Unreachable { .. }));
}
