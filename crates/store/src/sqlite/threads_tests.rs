use hart_runtime::port::{Order, ThreadQuery, ThreadSort};
use rusqlite::params_from_iter;
use serde_json::{Map, Value};

use super::super::connection;
use super::{Filter, listing};

/// How SQLite means to answer it.
fn plan(query: &ThreadQuery) -> Vec<String> {
    let db = connection::memory().unwrap();
    let Filter { sql, values } = listing(&db, query).unwrap();
    let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let steps = statement.query_map(params_from_iter(values), |row| row.get("detail")).unwrap();
    steps.collect::<Result<_, _>>().unwrap()
}

/// Read in its order, an index gives the first page after as many rows as the page has.
#[test]
fn listings_are_read_in_the_order_of_an_index() {
    let tagged = Map::from_iter([("graph_id".to_owned(), Value::from("lead_agent"))]);
    for order in [Order::Descending, Order::Ascending] {
        for (query, index) in [
            (ThreadQuery::default(), "threads_by_update"),
            (ThreadQuery { user: Some("default".into()), ..ThreadQuery::default() }, "threads_by_update"),
            (ThreadQuery { sort: ThreadSort::Created, ..ThreadQuery::default() }, "threads_by_creation"),
            (ThreadQuery { sort: ThreadSort::Id, ..ThreadQuery::default() }, "sqlite_autoindex_threads_1"),
        ] {
            let plan = plan(&ThreadQuery { order, limit: 10, ..query.clone() });
            assert_eq!(plan, [format!("SCAN threads USING INDEX {index}")], "{query:?}");
        }
    }
    // A tag that few threads have is where its search begins; these few are sorted.
    let plan = plan(&ThreadQuery { metadata: tagged, limit: 10, ..ThreadQuery::default() });
    assert!(plan[0].starts_with("SEARCH threads USING INTEGER PRIMARY KEY"), "{plan:?}");
    assert!(
        plan.iter().any(|step| step.contains("thread_tags USING PRIMARY KEY (key=? AND value=?")),
        "{plan:?}"
    );
}
