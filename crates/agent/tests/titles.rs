//! The thread's title.

use hart_agent::Features;
use hart_agent::middleware::{Title, TitleConfig};
use hart_kernel::RunReport;
use hart_testkit::{Dialect, ModelServer, Turn};
use serde_json::json;

use crate::stage::Stage;
use crate::support::model;

async fn titled(config: TitleConfig, titles: &ModelServer, turns: impl IntoIterator<Item = Turn>) -> Stage {
    let title = Title::new(config).with_model(model(titles, Dialect::OpenAi));
    let features = Features { title: title.into(), ..Features::default() };
    Stage::with(Dialect::OpenAi, turns, |_| {}, |builder| builder.features(features)).await
}

fn title(report: &RunReport) -> String {
    report.values.to_json()["title"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_first_words_are_the_title_and_stay_it() {
    let stage = Stage::new(Dialect::OpenAi, (0..2).map(|_| Turn::new().text("ok"))).await;
    let report = stage.ask("Write a report about the market for heat pumps in Norway, please.").await;
    assert_eq!(title(&report), "Write a report about the market for heat pumps in…");
    let report = stage.ask("Something else entirely").await;
    assert_eq!(title(&report), "Write a report about the market for heat pumps in…");
    assert_eq!(stage.requests().len(), 2, "no model was asked for it");
}

#[tokio::test]
async fn a_failed_run_has_a_title_too() {
    let stage = Stage::new(Dialect::OpenAi, [Turn::status(401)]).await;
    let report = stage.ask("Hello there").await;
    assert!(report.outcome.is_err());
    assert_eq!(title(&report), "Hello there");
}

#[tokio::test]
async fn a_model_may_find_a_better_one_after_the_answer() {
    let titles = ModelServer::start().await;
    titles.push(Turn::new().text("\"Heat pumps in Norway: a market report of many words\""));
    let stage =
        titled(TitleConfig::default(), &titles, (0..2).map(|_| Turn::new().text("The report."))).await;
    let report = stage.ask("Write a report about heat pumps.").await;
    assert_eq!(title(&report), "Heat pumps in Norway: a market");
    let asked = titles.last_request();
    let said = asked.texts_of("user").remove(0);
    assert!(said.contains("at most 6 words") && said.contains("User: Write a report"), "{said}");
    assert!(said.contains("Assistant: The report."), "the answer was complete: {said}");
    assert!(asked.tool_names().is_empty());
    let report = stage.ask("More.").await;
    assert_eq!(title(&report), "Heat pumps in Norway: a market");
    assert_eq!(titles.requests().len(), 1, "only in the first exchange");
}

#[tokio::test]
async fn if_that_fails_the_local_one_stays() {
    for turn in [Turn::status(400), Turn::new().text("  \"\" ")] {
        let titles = ModelServer::start().await;
        titles.push(turn);
        let stage = titled(TitleConfig::default(), &titles, [Turn::new().text("ok")]).await;
        let report = stage.ask("Hello there").await;
        report.outcome.as_ref().unwrap();
        assert_eq!(title(&report), "Hello there");
        assert_eq!(titles.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_template_of_ones_own_is_filled_in_once() {
    let titles = ModelServer::start().await;
    titles.push(Turn::new().text("T"));
    let template = "{max_words}|{user_msg}|{assistant_msg}".to_owned();
    let config = TitleConfig { prompt_template: Some(template), max_words: 3, ..TitleConfig::default() };
    let stage = titled(config, &titles, [Turn::new().text("fine")]).await;
    stage.ask("say {assistant_msg}").await.outcome.unwrap();
    assert_eq!(titles.last_request().texts_of("user"), ["3|say {assistant_msg}|fine"]);
}

#[tokio::test]
async fn a_title_from_elsewhere_is_left_alone() {
    let stage = Stage::new(Dialect::OpenAi, [Turn::new().text("ok")]).await;
    let input = json!({"messages": ["Hello"], "title": "Mine"});
    let input = stage.agent.input(input.as_object().unwrap().clone()).unwrap();
    assert_eq!(title(&stage.run(input).await), "Mine");
}
