//! What is left when all is over, and what it must be.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use hart_runtime::port::{EventScope, RunQuery, Store};
use hart_runtime::recording::Reel;
use hart_store::SqliteStore;
use hart_types::RunStatus;
use serde_json::Value;

use super::cell::{Cell, Role};
use super::fuse::Fuse;
use super::process::open;
use crate::told::{Spoken, Told, assert_same_but_for_unknown, is_unknown, sort_batches, told, transcript};

#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    /// Every message of the thread.
    pub(crate) transcript: Vec<Spoken>,
    /// The same as a reader of the streams puts it together.
    streamed: Vec<Spoken>,
    /// Whether whoever followed was told of a call that nobody knows the outcome of, also inside of others.
    tells_of_unknown: bool,
    effects: HashMap<String, usize>,
    workspace: Vec<(String, String)>,
    /// How often the model was shown a summary in place of what was said.
    pub(crate) compactions: usize,
    /// Steps and tool calls of each run, as its recording has them.
    recorded: Vec<(u32, u64)>,
}

impl Outcome {
    pub(crate) fn of(cell: &Cell) -> Self {
        assert!(cell.nobody_is_left(), "a command outlived its process");
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let role = cell.role("");
        let done = runtime.block_on(async {
            let store = SqliteStore::open(&role.home.join("hart.db")).unwrap();
            read(Arc::new(store), &role).await
        });
        Self { effects: cell.effects(), ..done }
    }

    /// Whether whoever followed the streams knows what the thread holds. Results of one batch are told as they come, and
    /// are in the thread in the order of their calls.
    pub(crate) fn is_told(&self) -> bool {
        let mut transcript = self.transcript.clone();
        sort_batches(&mut transcript);
        self.streamed == transcript
    }

    /// It is that of an undisturbed run, but for what is said to be unknown.
    pub(crate) fn assert_same(&self, place: &str, expected: &Self) {
        let has_unknown = self.transcript.iter().any(is_unknown);
        assert!(self.is_told(), "{place}: the stream has holes: {self:#?}");
        assert_eq!(self.compactions > 0, expected.compactions > 0, "{place}");
        // Of a command that was cut off, a file tells how far it came.
        let depends = |wanted: &Spoken| place.starts_with("command") && has_unknown && wanted.0 == "tool";
        assert_same_but_for_unknown(place, &self.transcript, &expected.transcript, depends);
        for (what, wanted) in &expected.effects {
            let found = self.effects.get(what).copied().unwrap_or(0);
            match what.split(' ').next() {
                Some("peek") => {}
                // Whoever is told of a run's end may be told twice, and is told.
                Some("letter") => assert!(found > 0, "{place}: {what} did not arrive"),
                _ => {
                    assert!(found <= *wanted, "{place}: {what} happened {found} times");
                    let excused = found == *wanted || self.tells_of_unknown;
                    assert!(excused, "{place}: {what} did not happen, and nobody said so");
                }
            }
        }
        assert_eq!(self.recorded, expected.recorded, "{place}: the recording holds every step once");
        if !has_unknown {
            assert_eq!(self.workspace, expected.workspace, "{place}");
        }
        let log = self.workspace.iter().find(|(name, _)| name == "log").map_or("", |(_, text)| text.as_str());
        assert!(log.matches("begun").count() <= 1, "{place}: the command ran twice: {log:?}");
    }
}

async fn read(store: Arc<dyn Store>, role: &Role) -> Outcome {
    let runs = store.runs(&RunQuery { limit: 9, ..RunQuery::default() }).await.unwrap();
    assert!(runs.iter().all(|run| run.status == RunStatus::Success), "{runs:#?}");
    let events = store.events(&EventScope::Thread("t".into()), 0, 1_000_000).await.unwrap();
    let of = |kind: &str| {
        let tells = |payload: &[u8]| String::from_utf8_lossy(payload).contains(kind);
        events.iter().filter(|event| tells(&event.payload)).count()
    };
    let (compactions, tells_of_unknown) = (of("context_compacted"), of("effect_unknown") > 0);
    let Told { messages: mut streamed, ended } = told(&events);
    assert_eq!(ended, runs.len(), "every run's log ends once");
    let mut recorded = Vec::new();
    for run in &runs {
        let sums = Reel::load(store.as_ref(), &run.id).await.unwrap().sums();
        recorded.push((sums.steps, sums.tool_calls));
    }
    let runtime = open(store, role, &Fuse::parse("")).await;
    let state = runtime.state(&"t".into(), None).await.unwrap();
    let values: Value = serde_json::from_slice(&state.values).unwrap();
    let transcript = transcript(&values);
    sort_batches(&mut streamed);
    let workspace = files(&role.home.join("users/default/threads/t/user-data/workspace"));
    Outcome {
        transcript,
        streamed,
        tells_of_unknown,
        effects: HashMap::new(),
        workspace,
        compactions,
        recorded,
    }
}

fn files(dir: &Path) -> Vec<(String, String)> {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().is_file())
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read_to_string(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}
