//! Whether a change of a file that was begun has happened: told by what the file holds.
//!
//! Invariant: a file holds what it held before, or what it was to hold; if it holds anything else, nobody knows.

use std::collections::BTreeMap;

use hart_kernel::{Command, Reconciled, ToolOutput, Update};
use hart_sandbox::{Sandbox, SandboxError, VPath, content_mark};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::read_marks::ReadMarks;

/// Of a larger file nothing is foreseen: reading it would cost more than the change.
const HASHED: u64 = 1 << 20;

/// Marks of a file before and after a change. A file that is not there has none.
#[derive(Serialize, Deserialize)]
pub(crate) struct Edit {
    before: Option<String>,
    after: Option<String>,
}

impl Edit {
    /// Notes down what `change` will make of the file; none where that cannot be told.
    pub(crate) async fn foresee(
        sandbox: &dyn Sandbox,
        path: &VPath,
        change: impl FnOnce(Vec<u8>) -> Option<Vec<u8>>,
    ) -> Option<Value> {
        if sandbox.stat(path).await.is_ok_and(|stat| stat.size > HASHED) {
            return None;
        }
        let before = match sandbox.read(path).await {
            Ok(content) => Some(content),
            Err(SandboxError::NotFound(_)) => None,
            Err(_) => return None,
        };
        let mark = before.as_deref().map(content_mark);
        // A change that is refused changes nothing.
        let after = change(before.unwrap_or_default());
        let after = after.as_deref().map(content_mark).or_else(|| mark.clone());
        serde_json::to_value(Self { before: mark, after }).ok()
    }

    pub(crate) async fn reconcile(
        sandbox: &dyn Sandbox,
        path: &VPath,
        foreseen: Option<&Value>,
        done: ToolOutput,
    ) -> Reconciled {
        let Some(edit) = foreseen.and_then(|edit| Self::deserialize(edit).ok()) else {
            return Reconciled::Unknown;
        };
        let now = match sandbox.read(path).await {
            Ok(content) => Some(content_mark(&content)),
            Err(SandboxError::NotFound(_)) => None,
            Err(_) => return Reconciled::Unknown,
        };
        match now {
            now if now == edit.before => Reconciled::NotDone,
            Some(now) if Some(&now) == edit.after.as_ref() => {
                // Whoever wrote it knows what is in it.
                let marks = BTreeMap::from([(path.as_str().to_owned(), now)]);
                let update = Update::none().set::<ReadMarks>(marks);
                Reconciled::Done(ToolOutput { command: Command::from(update), ..done })
            }
            _ => Reconciled::Unknown,
        }
    }
}
