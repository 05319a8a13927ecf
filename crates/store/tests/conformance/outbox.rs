//! The outbox: filled with the end of a run, emptied by one at a time.

use hart_runtime::Run;
use hart_runtime::port::RunEnd;
use hart_types::{MultitaskStrategy, RunStatus};
use serde_json::json;

use super::{admit, at, claim, make, map, run, stores};

fn ended(values: Option<&'static str>) -> RunEnd {
    RunEnd {
        status: RunStatus::Success,
        error: None,
        totals: hart_runtime::Totals::default(),
        at: at(9),
        base: None,
        values: values.map(Into::into),
        events: Vec::new(),
    }
}

#[tokio::test]
async fn the_end_of_a_run_with_a_webhook_is_a_letter_that_outlives_the_run() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        let kwargs = map(json!({"webhook": "https://example.org/hook"}));
        let told = Run { kwargs, ..run("told", &thread, MultitaskStrategy::Enqueue) };
        for run in [told, run("quiet", &thread, MultitaskStrategy::Enqueue)] {
            admit(store.as_ref(), run.clone()).await.unwrap();
            let lease = claim(store.as_ref(), &thread, 2).await.unwrap().lease;
            store.end_run(&run.id, ended(Some(r#"{"messages":[]}"#)), Some(&lease)).await.unwrap();
        }
        // A second end is none.
        store.end_run(&"told".into(), ended(None), None).await.unwrap();
        let run = store.run(&"told".into()).await.unwrap().unwrap();
        store.delete_thread(&thread).await.unwrap();
        assert!(store.due_letters(at(8), 9).await.unwrap().is_empty(), "{name}");
        assert_eq!(store.next_letter().await.unwrap(), Some(at(9)), "{name}");
        let letters = store.due_letters(at(9), 9).await.unwrap();
        let [letter] = letters.as_slice() else { panic!("{name}: {letters:?}") };
        assert_eq!((letter.url.as_str(), &letter.run), ("https://example.org/hook", &run), "{name}");
        assert_eq!(letter.values.as_deref(), Some(br#"{"messages":[]}"#.as_slice()), "{name}");

        // Of two who found it, one may try it.
        assert!(store.put_off(letter, 1, at(20)).await.unwrap(), "{name}");
        assert!(!store.put_off(letter, 1, at(20)).await.unwrap(), "{name}");
        assert!(store.due_letters(at(19), 9).await.unwrap().is_empty(), "{name}");
        let again = store.due_letters(at(20), 9).await.unwrap().remove(0);
        assert_eq!((again.attempts, again.due), (1, at(20)), "{name}");
        store.drop_letter(again.id).await.unwrap();
        assert_eq!(store.next_letter().await.unwrap(), None, "{name}");
        assert!(!store.put_off(&again, 2, at(30)).await.unwrap(), "{name}");
    }
}
