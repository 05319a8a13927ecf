//! A store that kills its process before or after one of its own operations: every write of a run is a named place to
//! die at, and the product knows nothing of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use hart_kernel::{Begun, EffectKey, Step, Timestamp, async_trait};
use hart_runtime::port::*;
use hart_runtime::*;
use hart_store::SqliteStore;
use hart_types::*;
use serde_json::Value;

/// Where to die: `(operation, before or after it, how manyth)`.
#[derive(Debug, Default)]
pub(crate) struct Fuse {
    at: Option<(String, bool, u32)>,
    seen: Mutex<HashMap<&'static str, u32>>,
}

impl Fuse {
    /// `before:append_steps:2`, or nothing.
    pub(crate) fn parse(text: &str) -> Arc<Self> {
        let mut parts = text.split(':');
        let at = match (parts.next(), parts.next(), parts.next()) {
            (Some(when), Some(operation), Some(nth)) => {
                Some((operation.to_owned(), when == "before", nth.parse().unwrap()))
            }
            _ => None,
        };
        Arc::new(Self { at, seen: Mutex::default() })
    }

    pub(crate) async fn around<T>(&self, operation: &'static str, work: impl Future<Output = T>) -> T {
        let nth = {
            let mut seen = self.seen.lock().unwrap();
            let nth = seen.entry(operation).or_default();
            *nth += 1;
            *nth
        };
        let is_here = |before| self.at.as_ref().is_some_and(|at| *at == (operation.to_owned(), before, nth));
        if is_here(true) {
            die();
        }
        let done = work.await;
        if is_here(false) {
            die();
        }
        done
    }

    /// How often each operation was met.
    pub(crate) fn counts(&self) -> HashMap<&'static str, u32> {
        self.seen.lock().unwrap().clone()
    }
}

/// SIGKILL: nothing is flushed, dropped or told.
fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort()
}

#[derive(Debug)]
pub(crate) struct Fragile {
    pub(crate) inner: SqliteStore,
    pub(crate) fuse: Arc<Fuse>,
}

#[async_trait]
impl Threads for Fragile {
    async fn create_thread(&self, thread: Thread) -> Result<Created, StoreError> {
        self.fuse.around("create_thread", self.inner.create_thread(thread)).await
    }
    async fn thread(&self, id: &ThreadId) -> Result<Option<Thread>, StoreError> {
        self.fuse.around("thread", self.inner.thread(id)).await
    }
    async fn patch_thread(&self, id: &ThreadId, patch: ThreadPatch) -> Result<Option<Thread>, StoreError> {
        self.fuse.around("patch_thread", self.inner.patch_thread(id, patch)).await
    }
    async fn delete_thread(&self, id: &ThreadId) -> Result<bool, StoreError> {
        self.fuse.around("delete_thread", self.inner.delete_thread(id)).await
    }
    async fn search_threads(&self, query: &ThreadQuery) -> Result<Vec<Thread>, StoreError> {
        self.fuse.around("search_threads", self.inner.search_threads(query)).await
    }
    async fn count_threads(&self, query: &ThreadQuery) -> Result<u64, StoreError> {
        self.fuse.around("count_threads", self.inner.count_threads(query)).await
    }
    async fn copy_thread(&self, from: &ThreadId, to: Thread) -> Result<Thread, StoreError> {
        self.fuse.around("copy_thread", self.inner.copy_thread(from, to)).await
    }
}

#[async_trait]
impl Runs for Fragile {
    async fn admit(&self, run: Run, request: StartRun, node: &NodeId) -> Result<Admission, StoreError> {
        self.fuse.around("admit", self.inner.admit(run, request, node)).await
    }
    async fn claim(
        &self,
        thread: &ThreadId,
        node: &NodeId,
        now: Timestamp,
    ) -> Result<Option<Claimed>, StoreError> {
        self.fuse.around("claim", self.inner.claim(thread, node, now)).await
    }
    async fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        self.fuse.around("run", self.inner.run(id)).await
    }
    async fn runs(&self, query: &RunQuery) -> Result<Vec<Run>, StoreError> {
        self.fuse.around("runs", self.inner.runs(query)).await
    }
    async fn end_run(
        &self,
        id: &RunId,
        end: RunEnd,
        lease: Option<&Lease>,
    ) -> Result<Option<Run>, StoreError> {
        self.fuse.around("end_run", self.inner.end_run(id, end, lease)).await
    }
    async fn undo_run(&self, id: &RunId, now: Timestamp, lease: Option<&Lease>) -> Result<bool, StoreError> {
        self.fuse.around("undo_run", self.inner.undo_run(id, now, lease)).await
    }
}

#[async_trait]
impl Leases for Fragile {
    async fn join(&self, node: &NodeId) -> Result<(), StoreError> {
        self.fuse.around("join", self.inner.join(node)).await
    }
    async fn beat(&self, node: &NodeId) -> Result<Vec<Held>, StoreError> {
        self.fuse.around("beat", self.inner.beat(node)).await
    }
    async fn holdings(&self, thread: Option<&ThreadId>) -> Result<Vec<Holding>, StoreError> {
        self.fuse.around("holdings", self.inner.holdings(thread)).await
    }
    async fn take_over(
        &self,
        from: &Lease,
        node: &NodeId,
        now: Timestamp,
    ) -> Result<Option<Claimed>, StoreError> {
        self.fuse.around("take_over", self.inner.take_over(from, node, now)).await
    }
    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.fuse.around("release", self.inner.release(lease)).await
    }
    async fn ask_to_stop(&self, run: &RunId, action: CancelAction) -> Result<bool, StoreError> {
        self.fuse.around("ask_to_stop", self.inner.ask_to_stop(run, action)).await
    }
    async fn numbers(&self) -> Result<u64, StoreError> {
        self.fuse.around("numbers", self.inner.numbers()).await
    }
}

#[async_trait]
impl Effects for Fragile {
    async fn effects(&self, run: &RunId) -> Result<Vec<Begun>, StoreError> {
        self.fuse.around("effects", self.inner.effects(run)).await
    }
    async fn begin_effect(&self, begun: Begun, lease: &Lease) -> Result<(), StoreError> {
        self.fuse.around("begin_effect", self.inner.begin_effect(begun, lease)).await
    }
    async fn finish_effect(&self, key: &EffectKey, outcome: Value, lease: &Lease) -> Result<(), StoreError> {
        self.fuse.around("finish_effect", self.inner.finish_effect(key, outcome, lease)).await
    }
    async fn withdraw_effect(&self, key: &EffectKey, lease: &Lease) -> Result<(), StoreError> {
        self.fuse.around("withdraw_effect", self.inner.withdraw_effect(key, lease)).await
    }
}

#[async_trait]
impl Steps for Fragile {
    async fn append_steps(
        &self,
        thread: &ThreadId,
        steps: Vec<Step>,
        lease: Option<&Lease>,
    ) -> Result<(), StoreError> {
        self.fuse.around("append_steps", self.inner.append_steps(thread, steps, lease)).await
    }
    async fn steps(&self, thread: &ThreadId, at: Option<&CheckpointId>) -> Result<Vec<Step>, StoreError> {
        self.fuse.around("steps", self.inner.steps(thread, at)).await
    }
    async fn append_child_steps(
        &self,
        thread: &ThreadId,
        call: &str,
        steps: Vec<Step>,
        lease: &Lease,
    ) -> Result<(), StoreError> {
        let appended = self.inner.append_child_steps(thread, call, steps, lease);
        self.fuse.around("append_child_steps", appended).await
    }
    async fn child_steps(&self, thread: &ThreadId, call: &str) -> Result<Vec<Step>, StoreError> {
        self.fuse.around("child_steps", self.inner.child_steps(thread, call)).await
    }
    async fn history(&self, thread: &ThreadId, query: &HistoryQuery) -> Result<Vec<StepInfo>, StoreError> {
        self.fuse.around("history", self.inner.history(thread, query)).await
    }
}

#[async_trait]
impl Events for Fragile {
    async fn append_events(&self, events: Vec<StoredEvent>, lease: &Lease) -> Result<(), StoreError> {
        self.fuse.around("append_events", self.inner.append_events(events, lease)).await
    }
    async fn events(
        &self,
        scope: &EventScope,
        after: u64,
        limit: u64,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        self.fuse.around("events", self.inner.events(scope, after, limit)).await
    }
    async fn event_bounds(&self, run: &RunId) -> Result<Option<(EventId, EventId)>, StoreError> {
        self.fuse.around("event_bounds", self.inner.event_bounds(run)).await
    }
    async fn forget_events(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.fuse.around("forget_events", self.inner.forget_events(before)).await
    }
}

#[async_trait]
impl Items for Fragile {
    async fn put_item(&self, item: Item) -> Result<(), StoreError> {
        self.fuse.around("put_item", self.inner.put_item(item)).await
    }
    async fn item(
        &self,
        namespace: &[String],
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Item>, StoreError> {
        self.fuse.around("item", self.inner.item(namespace, key, now)).await
    }
    async fn delete_item(&self, namespace: &[String], key: &str) -> Result<(), StoreError> {
        self.fuse.around("delete_item", self.inner.delete_item(namespace, key)).await
    }
    async fn search_items(&self, query: &ItemQuery, now: Timestamp) -> Result<Vec<Item>, StoreError> {
        self.fuse.around("search_items", self.inner.search_items(query, now)).await
    }
    async fn namespaces(&self, prefix: &[String], now: Timestamp) -> Result<Vec<Vec<String>>, StoreError> {
        self.fuse.around("namespaces", self.inner.namespaces(prefix, now)).await
    }
}

#[async_trait]
impl Assistants for Fragile {
    async fn create_assistant(&self, assistant: Assistant) -> Result<AssistantCreated, StoreError> {
        self.fuse.around("create_assistant", self.inner.create_assistant(assistant)).await
    }
    async fn assistant(&self, id: &AssistantId) -> Result<Option<Assistant>, StoreError> {
        self.fuse.around("assistant", self.inner.assistant(id)).await
    }
    async fn patch_assistant(
        &self,
        id: &AssistantId,
        patch: AssistantPatch,
    ) -> Result<Option<Assistant>, StoreError> {
        self.fuse.around("patch_assistant", self.inner.patch_assistant(id, patch)).await
    }
    async fn delete_assistant(&self, id: &AssistantId) -> Result<bool, StoreError> {
        self.fuse.around("delete_assistant", self.inner.delete_assistant(id)).await
    }
    async fn search_assistants(&self, query: &AssistantQuery) -> Result<Vec<Assistant>, StoreError> {
        self.fuse.around("search_assistants", self.inner.search_assistants(query)).await
    }
    async fn count_assistants(&self, query: &AssistantQuery) -> Result<u64, StoreError> {
        self.fuse.around("count_assistants", self.inner.count_assistants(query)).await
    }
    async fn assistant_versions(
        &self,
        id: &AssistantId,
        query: &VersionQuery,
    ) -> Result<Vec<Assistant>, StoreError> {
        self.fuse.around("assistant_versions", self.inner.assistant_versions(id, query)).await
    }
    async fn set_assistant_version(
        &self,
        id: &AssistantId,
        version: u64,
        at: Timestamp,
    ) -> Result<Option<Assistant>, StoreError> {
        self.fuse.around("set_assistant_version", self.inner.set_assistant_version(id, version, at)).await
    }
}

#[async_trait]
impl Crons for Fragile {
    async fn create_cron(&self, cron: Cron) -> Result<(), StoreError> {
        self.fuse.around("create_cron", self.inner.create_cron(cron)).await
    }
    async fn cron(&self, id: &CronId) -> Result<Option<Cron>, StoreError> {
        self.fuse.around("cron", self.inner.cron(id)).await
    }
    async fn replace_cron(&self, cron: Cron, seen: Timestamp) -> Result<bool, StoreError> {
        self.fuse.around("replace_cron", self.inner.replace_cron(cron, seen)).await
    }
    async fn delete_cron(&self, id: &CronId) -> Result<bool, StoreError> {
        self.fuse.around("delete_cron", self.inner.delete_cron(id)).await
    }
    async fn search_crons(&self, query: &CronQuery) -> Result<Vec<Cron>, StoreError> {
        self.fuse.around("search_crons", self.inner.search_crons(query)).await
    }
    async fn count_crons(&self, query: &CronQuery) -> Result<u64, StoreError> {
        self.fuse.around("count_crons", self.inner.count_crons(query)).await
    }
    async fn due_crons(&self, now: Timestamp, limit: u64) -> Result<Vec<Cron>, StoreError> {
        self.fuse.around("due_crons", self.inner.due_crons(now, limit)).await
    }
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.fuse.around("next_due", self.inner.next_due()).await
    }
}

#[async_trait]
impl Outbox for Fragile {
    async fn due_letters(&self, now: Timestamp, limit: u64) -> Result<Vec<Letter>, StoreError> {
        self.fuse.around("due_letters", self.inner.due_letters(now, limit)).await
    }
    async fn next_letter(&self) -> Result<Option<Timestamp>, StoreError> {
        self.fuse.around("next_letter", self.inner.next_letter()).await
    }
    async fn put_off(&self, letter: &Letter, attempts: u32, until: Timestamp) -> Result<bool, StoreError> {
        self.fuse.around("put_off", self.inner.put_off(letter, attempts, until)).await
    }
    async fn drop_letter(&self, id: u64) -> Result<(), StoreError> {
        self.fuse.around("drop_letter", self.inner.drop_letter(id)).await
    }
}

#[async_trait]
impl Vitals for Fragile {
    fn waiting_writes(&self) -> u64 {
        self.inner.waiting_writes()
    }
    async fn active_runs(&self) -> Result<ActiveRuns, StoreError> {
        self.inner.active_runs().await
    }
}
