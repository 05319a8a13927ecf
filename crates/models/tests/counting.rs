//! How a model counts what it is asked, before it is asked.

use std::sync::Arc;

use hart_kernel::ChatModel;
use hart_models::{Cassette, Context, LimitSettings, Limits, Recorder, Replay};
use hart_testkit::{ModelServer, Turn};
use serde_json::json;

use crate::support::{DIALECTS, ask, config, hear, human, model};

/// Many signs: more tokens than a quarter of its bytes.
fn table() -> String {
    (0..200).map(|row| format!("|{row}|{}|[x]|\n", row * 7919)).collect()
}

#[tokio::test]
async fn the_providers_own_count_corrects_ours() {
    for dialect in DIALECTS {
        let server = ModelServer::start().await;
        let model = model(&server, dialect);
        let request = human(&table());
        let counted = model.count_request(&request);
        assert!(counted > table().len() as u64 / 3, "{dialect:?}: {counted} tokens by bytes alone");
        server.push(Turn::new().text("ok").usage(counted * 3 / 2, 1));
        ask(&*model, request.clone()).await;
        assert_eq!(
            model.count_request(&request),
            counted * 3 / 2,
            "{dialect:?}: the first answer is believed"
        );
        let before = model.count_text("some words of a sentence");
        server.push(Turn::new().text("ok").usage(10, 1));
        ask(&*model, request).await;
        assert_eq!(
            model.count_text("some words of a sentence"),
            before,
            "{dialect:?}: nobody counts that little"
        );
    }
}

#[tokio::test]
async fn what_was_learnt_of_an_endpoint_outlives_the_model_that_learnt_it() {
    let server = ModelServer::start().await;
    let context = Context::new(Default::default(), Limits::new(LimitSettings::default())).unwrap();
    let config = config(&server, DIALECTS[0], json!({}));
    let request = human(&table());
    let counted = {
        let model = context.model(&config, []).unwrap();
        let counted = model.count_request(&request);
        server.push(Turn::new().text("ok").usage(counted * 2, 1));
        hear(&*model, request.clone()).await.answer.unwrap().unwrap();
        counted
    };
    assert_eq!(context.model(&config, []).unwrap().count_request(&request), counted * 2);
}

#[tokio::test]
async fn recordings_count_as_models_do() {
    let server = ModelServer::start().await;
    let folder = tempfile::tempdir().unwrap();
    let model = model(&server, DIALECTS[0]);
    let (text, request) = (table(), human(&table()));
    let counted = (model.count_text(&text), model.count_request(&request));
    let recorder = Recorder::new(Arc::clone(&model), &folder.path().join("tape.json")).unwrap();
    assert_eq!((recorder.count_text(&text), recorder.count_request(&request)), counted);
    let replay = Replay::new(Cassette::default());
    assert_eq!((replay.count_text(&text), replay.count_request(&request)), counted);
}
