//! Files in a conversation.

use hart_models::{Dialect, build};
use hart_testkit::{ModelServer, Turn};
use hart_types::{Block, Message, ToolCallId, ToolStatus};
use serde_json::{Value, json};

use crate::support::{ask, config, http, human, model, request};

fn files() -> Vec<Block> {
    vec![
        Block::text("Read these."),
        Block::file_base64("application/pdf", "JVBE", "a.pdf"),
        Block::object(
            json!({"type": "file", "source_type": "url", "mime_type": "application/pdf", "url": "https://x/b.pdf"}),
        ),
        Block::object(json!({"type": "file", "source_type": "id", "id": "file_1"})),
        Block::object(
            json!({"type": "file", "base64": "YSxi", "mime_type": "text/csv", "filename": "c.csv"}),
        ),
        Block::object(json!({"type": "text-plain", "text": "plain"})),
        Block::file_base64("application/zip", "UEsD", "d.zip"),
    ]
}

async fn content(dialect: Dialect, more: Value) -> Value {
    let server = ModelServer::start().await;
    server.push(Turn::new().text("ok"));
    ask(&*build(&config(&server, dialect, more), &http()), request([Message::human(files())])).await;
    server.last_request().messages()[0]["content"].clone()
}

#[tokio::test]
async fn chat_completions_get_file_parts() {
    let want = json!([
        {"type": "text", "text": "Read these."},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}},
        {"type": "text", "text": "[file.pdf is at https://x/b.pdf]"},
        {"type": "file", "file": {"file_id": "file_1"}},
        {"type": "file", "file": {"filename": "c.csv", "file_data": "data:text/csv;base64,YSxi"}},
        {"type": "text", "text": "plain"},
        {"type": "file", "file": {"filename": "d.zip", "file_data": "data:application/zip;base64,UEsD"}},
    ]);
    assert_eq!(content(Dialect::OpenAi, json!({})).await, want);
    let router = content(Dialect::OpenAi, json!({"use": "openrouter"})).await;
    assert_eq!(router[2]["file"], json!({"filename": "file.pdf", "file_data": "https://x/b.pdf"}));
}

#[tokio::test]
async fn claude_gets_documents() {
    let want = json!([
        {"type": "text", "text": "Read these."},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}, "title": "a.pdf"},
        {"type": "document", "source": {"type": "url", "url": "https://x/b.pdf"}},
        {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a,b"}, "title": "c.csv"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "plain"}},
        {"type": "text", "text": "[d.zip (application/zip) cannot be shown to this model]"},
    ]);
    assert_eq!(content(Dialect::Anthropic, json!({})).await, want);
}

#[tokio::test]
async fn a_document_in_claudes_words_goes_as_it_came() {
    let server = ModelServer::start().await;
    server.push(Turn::new().text("ok"));
    let block = json!({
        "type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
        "context": "from the archive", "citations": {"enabled": true},
    });
    ask(&*model(&server, Dialect::Anthropic), request([Message::human(vec![Block::object(block.clone())])]))
        .await;
    assert_eq!(server.last_request().messages()[0]["content"], json!([block]));
}

#[tokio::test]
async fn a_file_that_a_tool_returns_is_seen_by_the_model() {
    let server = ModelServer::start().await;
    // The other dialects show it in their own tests.
    for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
        let model = model(&server, dialect);
        server.push(Turn::new().tool_call("c1", "fetch", json!({})));
        let answer = ask(&*model, human("get it")).await;
        server.push(Turn::new().text("read"));
        let shown = vec![Block::text("one file"), Block::file_base64("application/pdf", "JVBE", "a.pdf")];
        let result = Message::tool(&ToolCallId::from("c1"), "fetch", ToolStatus::Success, shown);
        ask(&*model, request([Message::human("get it"), answer, result])).await;
        let body = server.last_request().body.clone();
        match dialect {
            Dialect::OpenAi => assert_eq!(
                body["messages"][3]["content"][1]["file"]["file_data"],
                "data:application/pdf;base64,JVBE"
            ),
            Dialect::Anthropic => {
                assert_eq!(body["messages"][2]["content"][0]["content"][1]["source"]["data"], "JVBE");
            }
            other => unreachable!("{other:?}"),
        }
    }
}
