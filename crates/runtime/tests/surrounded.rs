//! A store whose every operation happens inside of something else, which may be slow, or never come out of it; the
//! product knows nothing of it.

use std::sync::Arc;

use hart_kernel::{Begun, EffectKey, Step, Timestamp, async_trait};
use hart_runtime::port::*;
use hart_runtime::*;
use hart_store::SqliteStore;
use hart_types::*;
use serde_json::Value;

/// What operations happen inside of.
pub(crate) trait Around: std::fmt::Debug + Send + Sync + 'static {
    /// Whether a run begins before its admission is on the disk. How far that is then is another thread's matter, so it
    /// is never twice the same.
    const AHEAD: bool = false;

    fn around<T: Send>(
        &self,
        operation: &'static str,
        work: impl Future<Output = T> + Send,
    ) -> impl Future<Output = T> + Send;
}

#[derive(Debug)]
pub(crate) struct Surrounded<A> {
    pub(crate) inner: SqliteStore,
    pub(crate) by: Arc<A>,
}

#[async_trait]
impl<A: Around> Threads for Surrounded<A> {
    async fn create_thread(&self, thread: Thread) -> Result<Created, StoreError> {
        self.by.around("create_thread", self.inner.create_thread(thread)).await
    }
    async fn thread(&self, id: &ThreadId) -> Result<Option<Thread>, StoreError> {
        self.by.around("thread", self.inner.thread(id)).await
    }
    async fn patch_thread(&self, id: &ThreadId, patch: ThreadPatch) -> Result<Option<Thread>, StoreError> {
        self.by.around("patch_thread", self.inner.patch_thread(id, patch)).await
    }
    async fn delete_thread(&self, id: &ThreadId) -> Result<bool, StoreError> {
        self.by.around("delete_thread", self.inner.delete_thread(id)).await
    }
    async fn left_behind(&self, before: Timestamp) -> Result<Vec<Thread>, StoreError> {
        self.by.around("left_behind", self.inner.left_behind(before)).await
    }
    async fn expire_threads(&self, now: Timestamp) -> Result<Vec<Thread>, StoreError> {
        self.by.around("expire_threads", self.inner.expire_threads(now)).await
    }
    async fn search_threads(&self, query: &ThreadQuery) -> Result<Vec<Thread>, StoreError> {
        self.by.around("search_threads", self.inner.search_threads(query)).await
    }
    async fn count_threads(&self, query: &ThreadQuery) -> Result<u64, StoreError> {
        self.by.around("count_threads", self.inner.count_threads(query)).await
    }
    async fn copy_thread(&self, from: &ThreadId, to: Thread) -> Result<Thread, StoreError> {
        self.by.around("copy_thread", self.inner.copy_thread(from, to)).await
    }
}

#[async_trait]
impl<A: Around> Runs for Surrounded<A> {
    async fn admit(&self, run: Run, request: StartRun, node: &NodeId) -> Result<Admission, StoreError> {
        self.by.around("admit", self.inner.admit(run, request, node)).await
    }
    async fn admit_at_once(&self, run: Run, request: StartRun, node: &NodeId) -> Result<AtOnce, StoreError> {
        let admitted = async {
            let at_once = self.inner.admit_at_once(run, request, node).await?;
            if A::AHEAD {
                return Ok::<_, StoreError>(at_once);
            }
            at_once.written.await?;
            Ok(AtOnce { written: Box::pin(std::future::ready(Ok(()))), ..at_once })
        };
        let AtOnce { admission, claimed, written } = self.by.around("admit", admitted).await?;
        let by = Arc::clone(&self.by);
        let written = Box::pin(async move { by.around("admitted", written).await });
        Ok(AtOnce { admission, claimed, written })
    }
    async fn claim(
        &self,
        thread: &ThreadId,
        node: &NodeId,
        now: Timestamp,
    ) -> Result<Option<Claimed>, StoreError> {
        self.by.around("claim", self.inner.claim(thread, node, now)).await
    }
    async fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        self.by.around("run", self.inner.run(id)).await
    }
    async fn runs(&self, query: &RunQuery) -> Result<Vec<Run>, StoreError> {
        self.by.around("runs", self.inner.runs(query)).await
    }
    async fn end_run(
        &self,
        id: &RunId,
        end: RunEnd,
        lease: Option<&Lease>,
    ) -> Result<Option<Run>, StoreError> {
        self.by.around("end_run", self.inner.end_run(id, end, lease)).await
    }
    async fn undo_run(&self, id: &RunId, now: Timestamp, lease: Option<&Lease>) -> Result<bool, StoreError> {
        self.by.around("undo_run", self.inner.undo_run(id, now, lease)).await
    }
    async fn thread_totals(&self, thread: &ThreadId) -> Result<(Totals, u64), StoreError> {
        self.by.around("thread_totals", self.inner.thread_totals(thread)).await
    }
    async fn usage(&self, since: Timestamp, east: i64) -> Result<Vec<Used>, StoreError> {
        self.by.around("usage", self.inner.usage(since, east)).await
    }
    async fn delete_run(&self, id: &RunId, now: Timestamp) -> Result<Deleted, StoreError> {
        self.by.around("delete_run", self.inner.delete_run(id, now)).await
    }
}

#[async_trait]
impl<A: Around> Leases for Surrounded<A> {
    async fn join(&self, node: &NodeId) -> Result<(), StoreError> {
        self.by.around("join", self.inner.join(node)).await
    }
    async fn beat(&self, node: &NodeId) -> Result<Vec<Held>, StoreError> {
        self.by.around("beat", self.inner.beat(node)).await
    }
    async fn holdings(&self, thread: Option<&ThreadId>) -> Result<Vec<Holding>, StoreError> {
        self.by.around("holdings", self.inner.holdings(thread)).await
    }
    async fn take_over(
        &self,
        from: &Lease,
        node: &NodeId,
        now: Timestamp,
    ) -> Result<Option<Claimed>, StoreError> {
        self.by.around("take_over", self.inner.take_over(from, node, now)).await
    }
    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.by.around("release", self.inner.release(lease)).await
    }
    async fn ask_to_stop(&self, run: &RunId, action: CancelAction) -> Result<bool, StoreError> {
        self.by.around("ask_to_stop", self.inner.ask_to_stop(run, action)).await
    }
    async fn numbers(&self) -> Result<u64, StoreError> {
        self.by.around("numbers", self.inner.numbers()).await
    }
}

#[async_trait]
impl<A: Around> Effects for Surrounded<A> {
    async fn effects(&self, run: &RunId) -> Result<Vec<Begun>, StoreError> {
        self.by.around("effects", self.inner.effects(run)).await
    }
    async fn begin_effect(&self, begun: Begun, lease: &Lease) -> Result<(), StoreError> {
        self.by.around("begin_effect", self.inner.begin_effect(begun, lease)).await
    }
    async fn finish_effect(&self, key: &EffectKey, outcome: Value, lease: &Lease) -> Result<(), StoreError> {
        self.by.around("finish_effect", self.inner.finish_effect(key, outcome, lease)).await
    }
    async fn withdraw_effect(&self, key: &EffectKey, lease: &Lease) -> Result<(), StoreError> {
        self.by.around("withdraw_effect", self.inner.withdraw_effect(key, lease)).await
    }
}

#[async_trait]
impl<A: Around> Steps for Surrounded<A> {
    async fn append_steps(&self, thread: &ThreadId, steps: Vec<Step>) -> Result<(), StoreError> {
        self.by.around("append_by_hand", self.inner.append_steps(thread, steps)).await
    }
    async fn append_progress(&self, progress: Progress, lease: &Lease) -> Result<(), StoreError> {
        let operation = if progress.call.is_some() { "append_child_steps" } else { "append_steps" };
        self.by.around(operation, self.inner.append_progress(progress, lease)).await
    }
    async fn steps(&self, thread: &ThreadId, at: Option<&CheckpointId>) -> Result<Vec<Step>, StoreError> {
        self.by.around("steps", self.inner.steps(thread, at)).await
    }
    async fn steps_since(
        &self,
        thread: &ThreadId,
        at: &CheckpointId,
        known: Option<&CheckpointId>,
    ) -> Result<Lineage, StoreError> {
        self.by.around("steps_since", self.inner.steps_since(thread, at, known)).await
    }
    async fn child_steps(&self, thread: &ThreadId, call: &str) -> Result<Vec<Step>, StoreError> {
        self.by.around("child_steps", self.inner.child_steps(thread, call)).await
    }
    async fn forget_history(&self, thread: &ThreadId, run: &RunId) -> Result<bool, StoreError> {
        self.by.around("forget_history", self.inner.forget_history(thread, run)).await
    }

    async fn history(&self, thread: &ThreadId, query: &HistoryQuery) -> Result<Vec<StepInfo>, StoreError> {
        self.by.around("history", self.inner.history(thread, query)).await
    }
}

#[async_trait]
impl<A: Around> Events for Surrounded<A> {
    async fn append_events(&self, events: Vec<StoredEvent>, lease: &Lease) -> Result<(), StoreError> {
        self.by.around("append_events", self.inner.append_events(events, lease)).await
    }
    async fn events(
        &self,
        scope: &EventScope,
        after: u64,
        limit: u64,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        self.by.around("events", self.inner.events(scope, after, limit)).await
    }
    async fn page_of_events(
        &self,
        scope: &EventScope,
        after: u64,
        room: usize,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        self.by.around("page_of_events", self.inner.page_of_events(scope, after, room)).await
    }
    async fn event_bounds(&self, run: &RunId) -> Result<Option<(EventId, EventId)>, StoreError> {
        self.by.around("event_bounds", self.inner.event_bounds(run)).await
    }
    async fn forget_events(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.by.around("forget_events", self.inner.forget_events(before)).await
    }
}

#[async_trait]
impl<A: Around> Items for Surrounded<A> {
    async fn put_item(&self, item: Item) -> Result<(), StoreError> {
        self.by.around("put_item", self.inner.put_item(item)).await
    }
    async fn item(
        &self,
        namespace: &[String],
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Item>, StoreError> {
        self.by.around("item", self.inner.item(namespace, key, now)).await
    }
    async fn delete_item(&self, namespace: &[String], key: &str) -> Result<(), StoreError> {
        self.by.around("delete_item", self.inner.delete_item(namespace, key)).await
    }
    async fn search_items(&self, query: &ItemQuery, now: Timestamp) -> Result<Vec<Item>, StoreError> {
        self.by.around("search_items", self.inner.search_items(query, now)).await
    }
    async fn namespaces(&self, prefix: &[String], now: Timestamp) -> Result<Vec<Vec<String>>, StoreError> {
        self.by.around("namespaces", self.inner.namespaces(prefix, now)).await
    }
}

#[async_trait]
impl<A: Around> Assistants for Surrounded<A> {
    async fn create_assistant(&self, assistant: Assistant) -> Result<AssistantCreated, StoreError> {
        self.by.around("create_assistant", self.inner.create_assistant(assistant)).await
    }
    async fn assistant(&self, id: &AssistantId) -> Result<Option<Assistant>, StoreError> {
        self.by.around("assistant", self.inner.assistant(id)).await
    }
    async fn patch_assistant(
        &self,
        id: &AssistantId,
        patch: AssistantPatch,
    ) -> Result<Option<Assistant>, StoreError> {
        self.by.around("patch_assistant", self.inner.patch_assistant(id, patch)).await
    }
    async fn delete_assistant(&self, id: &AssistantId) -> Result<bool, StoreError> {
        self.by.around("delete_assistant", self.inner.delete_assistant(id)).await
    }
    async fn search_assistants(&self, query: &AssistantQuery) -> Result<Vec<Assistant>, StoreError> {
        self.by.around("search_assistants", self.inner.search_assistants(query)).await
    }
    async fn count_assistants(&self, query: &AssistantQuery) -> Result<u64, StoreError> {
        self.by.around("count_assistants", self.inner.count_assistants(query)).await
    }
    async fn assistant_versions(
        &self,
        id: &AssistantId,
        query: &VersionQuery,
    ) -> Result<Vec<Assistant>, StoreError> {
        self.by.around("assistant_versions", self.inner.assistant_versions(id, query)).await
    }
    async fn set_assistant_version(
        &self,
        id: &AssistantId,
        version: u64,
        at: Timestamp,
    ) -> Result<Option<Assistant>, StoreError> {
        self.by.around("set_assistant_version", self.inner.set_assistant_version(id, version, at)).await
    }
}

#[async_trait]
impl<A: Around> Crons for Surrounded<A> {
    async fn create_cron(&self, cron: Cron) -> Result<(), StoreError> {
        self.by.around("create_cron", self.inner.create_cron(cron)).await
    }
    async fn cron(&self, id: &CronId) -> Result<Option<Cron>, StoreError> {
        self.by.around("cron", self.inner.cron(id)).await
    }
    async fn replace_cron(&self, cron: Cron, seen: Timestamp) -> Result<bool, StoreError> {
        self.by.around("replace_cron", self.inner.replace_cron(cron, seen)).await
    }
    async fn delete_cron(&self, id: &CronId) -> Result<bool, StoreError> {
        self.by.around("delete_cron", self.inner.delete_cron(id)).await
    }
    async fn search_crons(&self, query: &CronQuery) -> Result<Vec<Cron>, StoreError> {
        self.by.around("search_crons", self.inner.search_crons(query)).await
    }
    async fn count_crons(&self, query: &CronQuery) -> Result<u64, StoreError> {
        self.by.around("count_crons", self.inner.count_crons(query)).await
    }
    async fn due_crons(&self, now: Timestamp, limit: u64) -> Result<Vec<Cron>, StoreError> {
        self.by.around("due_crons", self.inner.due_crons(now, limit)).await
    }
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.by.around("next_due", self.inner.next_due()).await
    }
}

#[async_trait]
impl<A: Around> Outbox for Surrounded<A> {
    async fn due_letters(&self, now: Timestamp, limit: u64) -> Result<Vec<Letter>, StoreError> {
        self.by.around("due_letters", self.inner.due_letters(now, limit)).await
    }
    async fn next_letter(&self) -> Result<Option<Timestamp>, StoreError> {
        self.by.around("next_letter", self.inner.next_letter()).await
    }
    async fn put_off(&self, letter: &Letter, attempts: u32, until: Timestamp) -> Result<bool, StoreError> {
        self.by.around("put_off", self.inner.put_off(letter, attempts, until)).await
    }
    async fn drop_letter(&self, id: u64) -> Result<(), StoreError> {
        self.by.around("drop_letter", self.inner.drop_letter(id)).await
    }
}

#[async_trait]
impl<A: Around> Recordings for Surrounded<A> {
    fn append_records(&self, records: Vec<StoredRecord>, lease: &Lease) {
        self.inner.append_records(records, lease);
    }
    async fn recorded_bytes(&self, run: &RunId) -> Result<u64, StoreError> {
        self.by.around("recorded_bytes", self.inner.recorded_bytes(run)).await
    }
    async fn records(&self, run: &RunId) -> Result<Vec<StoredRecord>, StoreError> {
        self.by.around("records", self.inner.records(run)).await
    }
}

#[async_trait]
impl<A: Around> Vitals for Surrounded<A> {
    fn waiting_writes(&self) -> u64 {
        self.inner.waiting_writes()
    }
    fn is_full(&self) -> bool {
        self.inner.is_full()
    }
    async fn active_runs(&self) -> Result<ActiveRuns, StoreError> {
        self.inner.active_runs().await
    }
}

#[async_trait]
impl<A: Around> Feedbacks for Surrounded<A> {
    async fn put_feedback(&self, feedback: Feedback) -> Result<Option<Feedback>, StoreError> {
        self.inner.put_feedback(feedback).await
    }
    async fn feedback(&self, of: &FeedbackScope) -> Result<Vec<Feedback>, StoreError> {
        self.inner.feedback(of).await
    }
    async fn delete_feedback(&self, of: &FeedbackScope) -> Result<u64, StoreError> {
        self.inner.delete_feedback(of).await
    }
}
