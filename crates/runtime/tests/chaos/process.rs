//! A process that does what it is told until it is killed, and what comes after it goes on.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use hart_kernel::{Clock, Timestamp, async_trait};
use hart_runtime::port::{Letter, RunQuery, Store};
use hart_runtime::*;
use hart_store::SqliteStore;
use hart_types::{RunStatus, ThreadStatus};
use serde_json::{Map, Value, json};

use super::agents::Agents;
use super::cell::{ROLE, Role};
use super::fuse::Fuse;
use crate::surrounded::Surrounded;

/// By itself it does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_be_killed() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let role: Role = serde_json::from_str(&role).unwrap();
    let fuse = Fuse::parse(&role.fuse);
    let inner = SqliteStore::open(&role.home.join("hart.db")).unwrap();
    let store: Arc<dyn Store> = Arc::new(Surrounded { inner, by: Arc::clone(&fuse) });
    let runtime = open(store, &role, &fuse).await;
    runtime.keep_outbox(Arc::new(ToOracle(role.oracle)));
    let plan = format!("PLAN {}", role.plan);
    let words = Input::Values(object(json!({"messages": [{"role": "user", "content": plan}]})));
    if role.leaves {
        runtime.start(request("words", words)).await.unwrap();
        while !fuse.counts().contains_key("begin_effect") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        return runtime.close(Duration::ZERO).await;
    }
    finish(&runtime, "words", words).await;
    let thread = runtime.store().thread(&"t".into()).await.unwrap().unwrap();
    let answered =
        runtime.store().runs(&RunQuery { limit: 9, ..RunQuery::default() }).await.unwrap().len() > 1;
    if thread.status == ThreadStatus::Interrupted || answered {
        finish(&runtime, "answer", Input::Resume { answer: json!("yes"), update: Map::new() }).await;
    }
    while runtime.store().next_letter().await.unwrap().is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    runtime.close(Duration::from_secs(20)).await;
    let counts = serde_json::to_vec(&fuse.counts()).unwrap();
    std::fs::write(role.home.join("counts.json"), counts).unwrap();
}

/// Asked again after a crash, the same key is the same run.
async fn finish(runtime: &Runtime, key: &str, input: Input) {
    let run = runtime.start(request(key, input)).await.unwrap();
    runtime.wait(&run.id).await;
    let run = runtime.store().run(&run.id).await.unwrap().unwrap();
    assert_eq!(run.status, RunStatus::Success, "{:?}", run.error);
}

fn request(key: &str, input: Input) -> StartRun {
    StartRun {
        thread: Some("t".into()),
        create_thread: true,
        idempotency_key: Some(key.to_owned()),
        kwargs: object(json!({"webhook": "http://oracle.test"})),
        ..StartRun::new("agent", "agent".into(), input)
    }
}

pub(crate) async fn open(store: Arc<dyn Store>, role: &Role, fuse: &Arc<Fuse>) -> Runtime {
    let agents = Agents {
        home: role.home.clone(),
        oracle: role.oracle,
        compact_at: role.compact_at,
        fuse: Arc::clone(fuse),
    };
    let parts = Parts {
        store,
        agents: Arc::new(agents),
        workspaces: Arc::new(NoWorkspaces),
        clock: Arc::new(Later(role.nth)),
    };
    Runtime::open(parts).await.unwrap()
}

/// Every process comes minutes behind the one before it: what was put off is due.
struct Later(u32);

impl Clock for Later {
    fn now(&self) -> Timestamp {
        Timestamp::now() + ATTEMPT * 3 * self.0
    }
}

/// Says which letters arrived.
struct ToOracle(u16);

#[async_trait]
impl Postman for ToOracle {
    async fn deliver(&self, letter: &Letter) -> Result<(), Undelivered> {
        let about = letter.run.idempotency_key.clone().unwrap();
        tell(self.0, format!("letter {about} {}\n", letter.run.id)).await;
        Ok(())
    }
}

/// Returns when it was heard.
pub(crate) async fn tell(oracle: u16, line: String) {
    let told = tokio::task::spawn_blocking(move || {
        let mut oracle = TcpStream::connect(("127.0.0.1", oracle)).unwrap();
        oracle.write_all(line.as_bytes()).unwrap();
        BufReader::new(oracle).read_line(&mut String::new()).unwrap();
    });
    told.await.unwrap();
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}
