//! Tells the model about the files that came with a message.
//!
//! Invariant: a file is announced as there only if it is, with the size it has; what is in it is quoted, not spoken.

use std::fmt::Write as _;
use std::sync::Arc;

use hart_kernel::{
    Command, HookResult, MessageWrites, Middleware, ReduceError, RunContext, Schema, Scope, State,
    StateError, StateKey, Tool, Update, async_trait,
};
use hart_sandbox::{EntryKind, SandboxProvider, UPLOADS};
use hart_tools::{UploadedFile, UploadedFiles, in_bytes, outline};
use hart_types::{Body, Message, MessageId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::escape;
use crate::reminder::{background, is_from_user};

/// Announces the files listed in the newest message's `additional_kwargs.files`, or passed as `uploaded_files` with the
/// run's input: name, size, path, and for Markdown, CSV and other text an outline (headings with their lines, columns,
/// the first lines). A file that is not where it should be is said to be missing, so that the model tells the user
/// instead of guessing. At most ten are listed; the tool `list_uploaded_files` shows all, also those of earlier
/// messages.
///
/// The announcement is a hidden message behind the user's. As in DeerFlow it names only the files of this message; what
/// came earlier was announced then, and is still there to be listed. Needs a sandbox.
#[derive(Clone, Debug)]
pub struct Uploads {
    sandboxes: Arc<dyn SandboxProvider>,
}

impl Uploads {
    pub fn new(sandboxes: Arc<dyn SandboxProvider>) -> Self {
        Self { sandboxes }
    }

    /// The entry of one file, and the file as the state holds it.
    async fn look(&self, cx: &RunContext, mut file: UploadedFile) -> (String, UploadedFile) {
        let name = escape(&file.filename);
        let place = escape(&file.place());
        let missing =
            |why: &str| format!("- {name}: {why}; tell the user, and do not guess what is in it ({place})\n");
        let sandbox = match self.sandboxes.acquire(&cx.thread_id, &cx.user_id).await {
            Ok(sandbox) => sandbox,
            Err(error) => {
                return (missing(&format!("cannot be reached, {}", escape(&error.to_string()))), file);
            }
        };
        let path = match sandbox.path(&file.place()) {
            Ok(path) if path.is_under(UPLOADS) => path,
            _ => return (missing("is not among the uploads"), file),
        };
        let size = match sandbox.stat(&path).await {
            Ok(stat) if stat.kind == EntryKind::File => stat.size,
            _ => return (missing("did not arrive, there is no such file"), file),
        };
        file.size = Some(size);
        file.path = Some(path.as_str().to_owned());
        let mut entry = format!("- {name} ({}): {}\n", in_bytes(size), escape(path.as_str()));
        if let Some(outline) = outline(sandbox.as_ref(), &path).await {
            for line in outline.lines() {
                // Writing to a string cannot fail.
                let _ = writeln!(entry, "  {}", escape(line));
            }
        }
        (entry, file)
    }
}

const NAME: &str = "current_uploads";
/// More are counted, not listed.
const MAX_LISTED: usize = 10;

#[async_trait]
impl Middleware for Uploads {
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<UploadedFiles>()?.declare::<Announced>()?;
        Ok(())
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![hart_tools::list_uploaded_files(Arc::clone(&self.sandboxes))]
    }

    async fn before_agent(&self, cx: &RunContext, state: &State) -> HookResult {
        let mut announced = state.get::<Announced>().cloned().unwrap_or_default();
        let Some(message) = newest_question(state) else { return Ok(Command::none()) };
        let files = new_files(state, &message, &announced);
        if files.is_empty() {
            return Ok(Command::none());
        }
        let count = files.len();
        let mut text = String::new();
        let mut found = Vec::with_capacity(count);
        for file in files {
            if found.len() < MAX_LISTED {
                let (entry, file) = self.look(cx, file).await;
                text.push_str(&entry);
                found.push(file);
            } else {
                found.push(file);
            }
        }
        if count > MAX_LISTED {
            let _ = writeln!(text, "and {} more; list_uploaded_files shows them", count - MAX_LISTED);
        }
        let text = format!("<{NAME}>\nFiles that came with the message above:\n{text}</{NAME}>");
        announced.message.clone_from(&message.id);
        announced.places = found.iter().map(UploadedFile::place).collect();
        let update = Update::none()
            .messages(MessageWrites::append([background(NAME, text)]))
            .set::<UploadedFiles>(found)
            .set::<Announced>(announced);
        Ok(update.into())
    }
}

/// The user's words that nobody has answered yet.
fn newest_question(state: &State) -> Option<Arc<Message>> {
    let unanswered = state
        .messages()
        .iter()
        .rev()
        .take_while(|message| matches!(message.body, Body::Human | Body::System));
    unanswered.into_iter().find(|message| is_from_user(message)).cloned()
}

/// What the message lists, unless it was announced already; and what the input brought.
fn new_files(state: &State, message: &Message, announced: &AnnouncedFiles) -> Vec<UploadedFile> {
    let mut files: Vec<UploadedFile> = Vec::new();
    if announced.message.is_none() || announced.message != message.id {
        let listed = message.additional_kwargs.get("files").and_then(Value::as_array);
        let listed = listed.into_iter().flatten();
        files.extend(listed.filter_map(|file| UploadedFile::deserialize(file).ok()));
    }
    for file in state.get::<UploadedFiles>().into_iter().flatten() {
        let place = file.place();
        let known = announced.places.contains(&place) || files.iter().any(|have| have.place() == place);
        if !known {
            files.push(file.clone());
        }
    }
    files
}

/// What the model has been told of.
#[derive(Debug)]
struct Announced;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct AnnouncedFiles {
    message: Option<MessageId>,
    places: Vec<String>,
}

impl StateKey for Announced {
    type Value = AnnouncedFiles;
    type Update = AnnouncedFiles;
    const NAME: &'static str = "announced_uploads";
    const SCOPE: Scope = Scope::Private;

    fn reduce(_: Option<AnnouncedFiles>, update: AnnouncedFiles) -> Result<AnnouncedFiles, ReduceError> {
        Ok(update)
    }
}
