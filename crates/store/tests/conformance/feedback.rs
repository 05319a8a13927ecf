//! Feedback: one opinion of each, gone with its run.

use hart_runtime::port::{Feedback, FeedbackScope};
use hart_types::MultitaskStrategy;

use super::{admit, at, make, run, stores};

fn opinion(id: &str, run: &str, rating: i8) -> Feedback {
    Feedback {
        id: id.to_owned(),
        thread: "t".into(),
        run: run.into(),
        user: "default".into(),
        message: None,
        rating,
        comment: None,
        created_at: at(5),
    }
}

#[tokio::test]
async fn a_second_opinion_takes_the_place_of_the_first() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        for id in ["r", "s"] {
            admit(store.as_ref(), run(id, &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        }
        let first = store.put_feedback(opinion("a", "r", 1)).await.unwrap().unwrap();
        assert_eq!(first, opinion("a", "r", 1), "{name}");
        let second = Feedback { comment: Some("no".to_owned()), ..opinion("b", "r", -1) };
        let second = store.put_feedback(second).await.unwrap().unwrap();
        assert_eq!((second.id.as_str(), second.rating), ("a", -1), "{name}: it is the same one");
        let about = Feedback { message: Some("m".to_owned()), ..opinion("c", "r", 1) };
        store.put_feedback(about.clone()).await.unwrap();
        store.put_feedback(opinion("d", "s", 1)).await.unwrap();
        let (run, all) = (FeedbackScope::Run("r".into()), FeedbackScope::Thread("t".into()));
        assert_eq!(store.feedback(&run).await.unwrap(), [second, about], "{name}");
        assert_eq!(store.feedback(&all).await.unwrap().len(), 3, "{name}");
        for missing in [opinion("e", "none", 1), Feedback { thread: "other".into(), ..opinion("e", "r", 1) }]
        {
            assert_eq!(store.put_feedback(missing).await.unwrap(), None, "{name}");
        }
        let one = FeedbackScope::One("r".into(), "c".to_owned());
        assert_eq!(store.delete_feedback(&one).await.unwrap(), 1, "{name}");
        assert_eq!(store.delete_feedback(&one).await.unwrap(), 0, "{name}");
        assert_eq!(store.delete_feedback(&run).await.unwrap(), 1, "{name}");
        store.delete_thread(&thread).await.unwrap();
        assert!(store.feedback(&FeedbackScope::Run("s".into())).await.unwrap().is_empty(), "{name}");
    }
}
