//! Crons: found when they are due, changed by one at a time, gone with what they belong to.

use hart_runtime::port::{Assistant, Cron, CronQuery, CronSort, Order};
use serde_json::{Map, json};

use super::{at, make, map, stores};

fn cron(id: &str, due: Option<i64>) -> Cron {
    Cron {
        id: id.into(),
        assistant: "a".into(),
        thread: None,
        user: "default".into(),
        schedule: "* * * * *".into(),
        timezone: "Europe/Paris".into(),
        end_time: Some(at(1000)),
        payload: map(json!({"assistant_id": "a", "input": {"k": ["ü"]}})),
        metadata: map(json!({"id": id})),
        keep_threads: false,
        enabled: true,
        next_run: due.map(at),
        created_at: at(0),
        updated_at: at(0),
    }
}

fn ids(crons: &[Cron]) -> Vec<&str> {
    crons.iter().map(|cron| cron.id.as_str()).collect()
}

#[tokio::test]
async fn those_that_are_due_are_found_the_oldest_first() {
    for (name, store, _dir) in stores() {
        assert_eq!(store.next_due().await.unwrap(), None, "{name}");
        let off = Cron { enabled: false, ..cron("off", Some(1)) };
        for cron in [cron("late", Some(9)), cron("early", Some(5)), cron("ended", None), off] {
            store.create_cron(cron).await.unwrap();
        }
        assert_eq!(store.cron(&"late".into()).await.unwrap(), Some(cron("late", Some(9))), "{name}");
        assert_eq!(store.next_due().await.unwrap(), Some(at(5)), "{name}");
        assert!(store.due_crons(at(4), 9).await.unwrap().is_empty(), "{name}");
        assert_eq!(ids(&store.due_crons(at(5), 9).await.unwrap()), ["early"], "{name}");
        assert_eq!(ids(&store.due_crons(at(9), 9).await.unwrap()), ["early", "late"], "{name}");
        assert_eq!(ids(&store.due_crons(at(9), 1).await.unwrap()), ["early"], "{name}");
    }
}

#[tokio::test]
async fn of_two_changes_to_the_same_cron_one_is_told_to_look_again() {
    for (name, store, _dir) in stores() {
        store.create_cron(cron("c", Some(5))).await.unwrap();
        let first = Cron { next_run: Some(at(6)), updated_at: at(1), ..cron("c", None) };
        let second = Cron { enabled: false, updated_at: at(2), ..cron("c", Some(5)) };
        assert!(store.replace_cron(first.clone(), at(0)).await.unwrap(), "{name}");
        assert!(!store.replace_cron(second, at(0)).await.unwrap(), "{name}");
        assert_eq!(store.cron(&"c".into()).await.unwrap(), Some(first), "{name}");
        assert!(store.delete_cron(&"c".into()).await.unwrap(), "{name}");
        assert!(!store.delete_cron(&"c".into()).await.unwrap(), "{name}");
        assert!(!store.replace_cron(cron("c", None), at(1)).await.unwrap(), "{name}");
    }
}

#[tokio::test]
async fn a_search_filters_sorts_and_pages() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        let rows = [
            Cron { created_at: at(3), ..cron("1", Some(7)) },
            Cron { created_at: at(2), enabled: false, ..cron("2", Some(8)) },
            Cron {
                created_at: at(1),
                thread: Some(thread.clone()),
                assistant: "b".into(),
                ..cron("3", Some(9))
            },
        ];
        for row in rows {
            store.create_cron(row).await.unwrap();
        }
        let all = CronQuery { limit: 10, ..CronQuery::default() };
        let table = [
            (all.clone(), vec!["1", "2", "3"]),
            (CronQuery { sort: CronSort::NextRun, ..all.clone() }, vec!["3", "2", "1"]),
            (CronQuery { order: Order::Ascending, ..all.clone() }, vec!["3", "2", "1"]),
            (CronQuery { limit: 1, offset: 1, ..all.clone() }, vec!["2"]),
            (CronQuery { enabled: Some(false), ..all.clone() }, vec!["2"]),
            (CronQuery { assistant: Some("b".into()), ..all.clone() }, vec!["3"]),
            (CronQuery { thread: Some(thread.clone()), ..all.clone() }, vec!["3"]),
            (CronQuery { metadata: map(json!({"id": "1"})), ..all.clone() }, vec!["1"]),
        ];
        for (query, expected) in table {
            assert_eq!(ids(&store.search_crons(&query).await.unwrap()), expected, "{name} {query:?}");
        }
        assert_eq!(store.count_crons(&CronQuery { limit: 1, ..all.clone() }).await.unwrap(), 3, "{name}");
        // They go with their thread and with their assistant.
        store.delete_thread(&thread).await.unwrap();
        assert_eq!(ids(&store.search_crons(&all).await.unwrap()), ["1", "2"], "{name}");
        let assistant = Assistant {
            id: "a".into(),
            graph: "agent".into(),
            name: String::new(),
            description: None,
            config: Map::new(),
            context: Map::new(),
            metadata: Map::new(),
            version: 1,
            system: false,
            created_at: at(0),
            updated_at: at(0),
        };
        store.create_assistant(assistant).await.unwrap();
        store.delete_assistant(&"a".into()).await.unwrap();
        assert_eq!(store.count_crons(&all).await.unwrap(), 0, "{name}");
    }
}
