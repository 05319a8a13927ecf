//! Files that a client gives to a thread.
//!
//! Invariant: an upload is there whole or not at all, under a name that is safe and that no other file had.

use std::io;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use hart_kernel::async_trait;
use hart_runtime::{Thread, Workspace};
use serde_json::{Map, Value, json};

use super::files::{FileError, FileInfo, Files, Incoming};
use super::{artifacts, files, workspace};
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::multipart::Multipart;
use crate::openapi::{Table, delete, get, post};
use crate::parse::{Form, Path, thread_id};
use crate::settings::UploadLimits;

pub(super) fn table() -> Table {
    Table::default()
        .route("/api/threads/{thread}/uploads", post("Give files to a thread", upload))
        .route("/api/threads/{thread}/uploads/list", get("The files that were given to a thread", list))
        .route("/api/threads/{thread}/uploads/limits", get("How much may be uploaded at once", limits))
        .route("/api/threads/{thread}/uploads/{filename}", delete("Remove a file that was given", remove))
}

/// Where they are, as the agent sees it.
const UPLOADS: &str = "/mnt/user-data/uploads";

async fn upload(
    State(gateway): State<Gateway>,
    Path(thread): Path<String>,
    Form(headers, body): Form,
) -> ApiResult<Json<Value>> {
    let thread = thread_id(&thread)?;
    files(&gateway)?;
    let form = Multipart::new(&headers, body, gateway.settings.request_timeout)?;
    // Clients choose a thread's id and send its files before its first message.
    let row = Thread::new(thread, "default".into(), gateway.runtime.now());
    let (hart_runtime::port::Created::New(row) | hart_runtime::port::Created::Existing(row)) =
        gateway.runtime.store().create_thread(row).await?;
    let of = Workspace { thread: row.id, user: row.user };
    // In a task of its own, so that what was begun is undone also when the client has gone.
    let received = tokio::spawn(async move { Reception::new(&gateway, of)?.take(form).await });
    let received = received.await.map_err(|_| {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "the upload could not be received; try again")
    })?;
    Ok(Json(received?))
}

async fn list(State(gateway): State<Gateway>, Path(thread): Path<String>) -> ApiResult<Json<Value>> {
    let of = workspace(&gateway, &thread).await?;
    let found = files(&gateway)?.list(&of, UPLOADS).await;
    let found = found.map_err(|error| error.about("the uploads"))?;
    let listed: Vec<Value> = found.iter().map(|file| described(&of, file)).collect();
    Ok(Json(json!({"count": listed.len(), "files": listed})))
}

async fn limits(State(gateway): State<Gateway>, Path(thread): Path<String>) -> ApiResult<Json<Value>> {
    thread_id(&thread)?;
    let UploadLimits { max_files, max_file_size, max_total_size } = gateway.settings.uploads;
    Ok(Json(json!({
        "max_files": max_files, "max_file_size": max_file_size, "max_total_size": max_total_size,
    })))
}

async fn remove(
    State(gateway): State<Gateway>,
    Path((thread, filename)): Path<(String, String)>,
) -> ApiResult<Json<Value>> {
    let of = workspace(&gateway, &thread).await?;
    let name = safe_name(&filename).filter(|name| *name == filename);
    let name = name.ok_or_else(|| ApiError::not_found(format!("File not found: {filename}")))?;
    let removed = files(&gateway)?.remove(&of, &format!("{UPLOADS}/{name}")).await;
    removed.map_err(|error| error.about(&format!("the upload `{name}`")))?;
    Ok(Json(json!({"success": true, "message": format!("Deleted {name}")})))
}

/// One request that brings files.
struct Reception<'a> {
    files: &'a dyn Files,
    of: Workspace,
    limits: UploadLimits,
    /// What is there already; taken back if the request fails.
    received: Vec<(FileInfo, String)>,
    skipped: Vec<String>,
    total: u64,
}

impl<'a> Reception<'a> {
    fn new(gateway: &'a Gateway, of: Workspace) -> ApiResult<Self> {
        let limits = gateway.settings.uploads;
        let (received, skipped) = (Vec::new(), Vec::new());
        Ok(Self { files: files(gateway)?, of, limits, received, skipped, total: 0 })
    }

    async fn take(mut self, mut form: Multipart) -> ApiResult<Value> {
        if let Err(error) = self.take_all(&mut form).await {
            for (file, _) in &self.received {
                let removed = self.files.remove(&self.of, &format!("{UPLOADS}/{}", file.name)).await;
                if let Err(error) = removed {
                    tracing::warn!(thread = %self.of.thread, %error, "a part of a failed upload stays");
                }
            }
            return Err(error);
        }
        if self.received.is_empty() && self.skipped.is_empty() {
            return Err(ApiError::unprocessable("there is no file in the form; they go in `files`"));
        }
        let told: Vec<Value> = self
            .received
            .iter()
            .map(|(file, original)| {
                let mut told = described(&self.of, file);
                if let (true, Some(told)) = (file.name != *original, told.as_object_mut()) {
                    told.insert("original_filename".to_owned(), original.as_str().into());
                }
                told
            })
            .collect();
        let message = format!("Successfully uploaded {} file(s)", told.len());
        Ok(json!({
            "success": self.skipped.is_empty(), "files": told, "message": message,
            "skipped_files": self.skipped,
        }))
    }

    async fn take_all(&mut self, form: &mut Multipart) -> ApiResult<()> {
        while let Some(head) = form.next().await? {
            let Some(original) = head.filename.filter(|name| !name.is_empty()) else {
                self.pass_over(form).await?;
                continue;
            };
            if self.received.len() as u64 >= u64::from(self.limits.max_files) {
                let most = self.limits.max_files;
                return Err(too_large(format!("at most {most} files can be uploaded at once; send fewer")));
            }
            match safe_name(&original) {
                Some(name) => self.take_one(form, name, original).await?,
                None => {
                    self.pass_over(form).await?;
                    self.skipped.push(original);
                }
            }
        }
        Ok(())
    }

    /// What is no file still counts.
    async fn pass_over(&mut self, form: &mut Multipart) -> ApiResult<()> {
        while let Some(piece) = form.piece().await? {
            self.total = self.total.saturating_add(piece.len() as u64);
            self.check_total()?;
        }
        Ok(())
    }

    async fn take_one(&mut self, form: &mut Multipart, name: String, original: String) -> ApiResult<()> {
        let taken = self.files.list(&self.of, UPLOADS).await.map_err(|error| error.about("the uploads"))?;
        let name = free_name(&name, |name| taken.iter().any(|file| file.name == name));
        let room = self.limits.max_total_size.saturating_sub(self.total);
        let mut parts = Pieces { form, size: 0, room, limits: self.limits, name: &name, failed: None };
        let path = format!("{UPLOADS}/{name}");
        let size = self.files.receive(&self.of, &path, &mut parts).await;
        if let Some(failed) = parts.failed {
            return Err(failed);
        }
        let size = size.map_err(|error| match error {
            FileError::Exists => {
                ApiError::conflict(format!("`{name}` came from elsewhere meanwhile; try again"))
            }
            error => error.about(&format!("the upload `{name}`")),
        })?;
        self.total = self.total.saturating_add(size);
        let modified = jiff::Timestamp::now().as_second();
        self.received.push((FileInfo { name, size, modified }, original));
        Ok(())
    }

    fn check_total(&self) -> ApiResult<()> {
        match self.total > self.limits.max_total_size {
            true => Err(total_too_large(self.limits)),
            false => Ok(()),
        }
    }
}

/// The content of one file, as far as it may come.
struct Pieces<'a> {
    form: &'a mut Multipart,
    size: u64,
    room: u64,
    limits: UploadLimits,
    name: &'a str,
    /// Why it did not come to its end.
    failed: Option<ApiError>,
}

#[async_trait]
impl Incoming for Pieces<'_> {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let piece = match self.form.piece().await {
            Ok(Some(piece)) => piece,
            Ok(None) => return Ok(None),
            Err(error) => return Err(self.fail(error)),
        };
        self.size = self.size.saturating_add(piece.len() as u64);
        if self.size > self.limits.max_file_size {
            let most = in_words(self.limits.max_file_size);
            let why = format!("`{}` is larger than {most}, the most that one file may have", self.name);
            return Err(self.fail(too_large(why)));
        }
        if self.size > self.room {
            return Err(self.fail(total_too_large(self.limits)));
        }
        Ok(Some(piece))
    }
}

impl Pieces<'_> {
    fn fail(&mut self, error: ApiError) -> io::Error {
        self.failed = Some(error);
        io::ErrorKind::UnexpectedEof.into()
    }
}

fn too_large(detail: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

fn total_too_large(limits: UploadLimits) -> ApiError {
    let most = in_words(limits.max_total_size);
    too_large(format!("the files together are larger than {most}, the most for one upload; send fewer"))
}

fn in_words(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} bytes"),
        1_024..1_048_576 => format!("{} KB", bytes >> 10),
        _ => format!("{} MB", bytes >> 20),
    }
}

fn described(of: &Workspace, file: &FileInfo) -> Value {
    let path = format!("{UPLOADS}/{}", file.name);
    let mut told = Map::new();
    let mut tell = |key: &str, value: Value| told.insert(key.to_owned(), value);
    tell("filename", file.name.as_str().into());
    tell("size", file.size.into());
    tell("path", path.as_str().into());
    tell("artifact_url", artifacts::url(&of.thread, &path).into());
    tell("virtual_path", path.into());
    let extension = file.name.rsplit_once('.').map(|(_, extension)| format!(".{extension}"));
    tell("extension", extension.unwrap_or_default().into());
    tell("modified", file.modified.into());
    Value::Object(told)
}

/// How long a name may be, in bytes; file systems allow 255, and a number may be added.
const LONGEST: usize = 200;

/// The last part of what a client calls it, without what would be hidden, confuse a reader or lead elsewhere.
fn safe_name(original: &str) -> Option<String> {
    let last = original.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = |character: char| {
        let turns = matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        if character.is_control() || turns { '_' } else { character }
    };
    let name: String = last.trim().chars().map(plain).collect();
    if name.trim_matches(['.', ' ', '_']).is_empty() {
        return None;
    }
    // The names that hart's own unfinished files have.
    let name = if name.starts_with(".hart-") { format!("_{name}") } else { name };
    if name.len() <= LONGEST {
        return Some(name);
    }
    let (stem, extension) = split(&name);
    let keep = LONGEST.saturating_sub(extension.len().min(LONGEST / 2));
    let cut = |text: &str, most: usize| {
        let ends = text.char_indices().map(|(at, character)| at + character.len_utf8());
        let end = ends.take_while(|end| *end <= most).last().unwrap_or_default();
        text.get(..end).unwrap_or_default().to_owned()
    };
    Some(cut(stem, keep) + &cut(extension, LONGEST / 2))
}

/// The name itself, or with the first number that makes it a new one.
fn free_name(name: &str, taken: impl Fn(&str) -> bool) -> String {
    if !taken(name) {
        return name.to_owned();
    }
    let (stem, extension) = split(name);
    let numbered = (1_u32..).map(|number| format!("{stem}_{number}{extension}"));
    numbered.into_iter().find(|name| !taken(name)).unwrap_or_else(|| name.to_owned())
}

/// A name and its ending, with the dot.
fn split(name: &str) -> (&str, &str) {
    match name.rfind('.') {
        Some(at) if at > 0 => name.split_at(at),
        _ => (name, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, free_name, safe_name};

    #[test]
    fn names_are_made_safe() {
        for (original, name) in [
            ("a.txt", Some("a.txt")),
            ("../../etc/passwd", Some("passwd")),
            ("C:\\Users\\me\\a b.txt", Some("a b.txt")),
            ("line\nbreak\0.txt", Some("line_break_.txt")),
            ("gpj\u{202e}exe.txt", Some("gpj_exe.txt")),
            (".hart-1-2.tmp", Some("_.hart-1-2.tmp")),
            ("Größe 图.csv", Some("Größe 图.csv")),
            ("", None),
            (".", None),
            ("..", None),
            ("a/", None),
            (" \u{200b} ", None),
        ] {
            assert_eq!(safe_name(original).as_deref(), name, "{original:?}");
        }
        let long = safe_name(&format!("{}.tar.gz", "ä".repeat(300))).unwrap();
        assert!(long.len() <= LONGEST && long.ends_with(".gz"), "{long}");
        let long = safe_name(&format!("a.{}", "b".repeat(300))).unwrap();
        assert!(long.len() <= LONGEST, "{long}");
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let taken = ["a.txt", "a_1.txt", "b"];
        let free = |name| free_name(name, |name| taken.contains(&name));
        assert_eq!(free("c.txt"), "c.txt");
        assert_eq!(free("a.txt"), "a_2.txt");
        assert_eq!(free("b"), "b_1");
    }
}
