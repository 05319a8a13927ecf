//! Effects: begun, finished or withdrawn by whoever holds the run, and gone with its end.

use hart_kernel::{Begun, EffectKey};
use hart_runtime::Totals;
use hart_runtime::port::{RunEnd, StoreError};
use hart_types::{MultitaskStrategy, RunStatus};
use serde_json::json;

use super::{admit, at, claim, make, run, stores};

fn begun(key: &str) -> Begun {
    Begun {
        key: EffectKey::from(key.to_owned()),
        tool: "send".into(),
        call: "c".into(),
        foreseen: Some(json!({"before": null})),
        outcome: None,
    }
}

#[tokio::test]
async fn effects_are_kept_in_order_until_the_run_ends() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        admit(store.as_ref(), run("r", &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        let stale = claim(store.as_ref(), &thread, 2).await.unwrap().lease;
        for key in ["b", "a", "c"] {
            store.begin_effect(begun(key), &stale).await.unwrap();
        }
        store.begin_effect(Begun { foreseen: None, ..begun("a") }, &stale).await.unwrap();
        store.withdraw_effect(&begun("c").key, &stale).await.unwrap();
        let outcome = json!({"message": "done", "n": 1.5});
        store.finish_effect(&begun("a").key, outcome.clone(), &stale).await.unwrap();
        let kept = [begun("b"), Begun { outcome: Some(outcome), ..begun("a") }];
        assert_eq!(store.effects(&"r".into()).await.unwrap(), kept, "{name}");

        let lease = store.take_over(&stale, &"two".into(), at(3)).await.unwrap().unwrap().lease;
        let lost = |error: StoreError| assert!(matches!(error, StoreError::Lost(_)), "{name}: {error}");
        lost(store.begin_effect(begun("d"), &stale).await.unwrap_err());
        lost(store.finish_effect(&begun("b").key, json!(1), &stale).await.unwrap_err());
        lost(store.withdraw_effect(&begun("b").key, &stale).await.unwrap_err());
        assert_eq!(store.effects(&"r".into()).await.unwrap(), kept, "{name}");

        let end = RunEnd {
            status: RunStatus::Success,
            error: None,
            totals: Totals::default(),
            at: at(9),
            base: None,
            events: Vec::new(),
            values: None,
        };
        store.end_run(&"r".into(), end, Some(&lease)).await.unwrap().unwrap();
        assert!(store.effects(&"r".into()).await.unwrap().is_empty(), "{name}");
    }
}
