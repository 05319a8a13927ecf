//! Files that a thread's agent can see: shown, kept, edited.
//!
//! Invariant: a file goes out as something to keep, never as a page of this server; an edit replaces what its author
//! has seen and nothing else.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body as HttpBody, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use futures_util::stream;
use hart_runtime::port::RunQuery;
use hart_types::{RunStatus, ThreadId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::files::{FileError, OpenFile};
use super::range::Range;
use super::{archive, files, workspace};
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Table, get};
use crate::parse::{Body, Path, Query};

pub(super) fn table() -> Table {
    Table::default().route(
        "/api/threads/{thread}/artifacts/{*path}",
        get("A file that the agent of a thread can see, or a part of it", read)
            .query(&[("download", "boolean")])
            .put("Replace the text of a file that has not changed since it was read", edit),
    )
}

/// Where a client reads it.
pub(super) fn url(thread: &ThreadId, path: &str) -> String {
    format!("/api/threads/{thread}/artifacts{}", encoded(path, b"/"))
}

async fn read(
    State(gateway): State<Gateway>,
    Path((thread, path)): Path<(String, String)>,
    query: Query,
    headers: HeaderMap,
) -> ApiResult<Response<HttpBody>> {
    let of = workspace(&gateway, &thread).await?;
    let path = format!("/{path}");
    let missing = format!("Artifact not found: {path}");
    let files = files(&gateway)?;
    let (kind, active) = kind_of(&path);
    let attached = active || query.flag("download");
    let file = match files.open(&of, &path).await {
        Ok(file) => file,
        Err(FileError::NotFound) => {
            let member = archive::member(files, &of, &path).await?;
            let member = member.ok_or_else(|| ApiError::not_found(missing))?;
            let size = member.len() as u64;
            let mut answer = headed(Response::new(HttpBody::from(member)), kind, attached.then_some(&path));
            answer.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(size));
            return Ok(answer);
        }
        Err(error) => return Err(error.about(&format!("the artifact `{path}`"))),
    };
    let size = file.size();
    // Without a validator nobody can say that a part is of the same file: then it is sent whole.
    let wanted = headers.get(header::RANGE).filter(|_| !headers.contains_key(header::IF_RANGE));
    let range = wanted.and_then(|wanted| Range::parse(wanted.to_str().ok()?, size));
    let (status, from, to) = match range {
        None => (StatusCode::OK, 0, size),
        Some(Range::Part { from, to }) => (StatusCode::PARTIAL_CONTENT, from, to),
        Some(Range::Nothing) => {
            let refused =
                ApiError::new(StatusCode::RANGE_NOT_SATISFIABLE, format!("the file has {size} bytes"));
            let mut answer = axum::response::IntoResponse::into_response(refused);
            insert(answer.headers_mut(), header::CONTENT_RANGE, format!("bytes */{size}"));
            return Ok(answer);
        }
    };
    let mut answer = headed(Response::new(content(file, from, to)), kind, attached.then_some(&path));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(to - from));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if status == StatusCode::PARTIAL_CONTENT {
        let last = to.saturating_sub(1);
        insert(headers, header::CONTENT_RANGE, format!("bytes {from}-{last}/{size}"));
    }
    Ok(answer)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ArtifactEdit")]
struct Edit {
    content: String,
    /// Of the content that the edit was made from, in hexadecimal.
    expected_sha256: String,
}

async fn edit(
    State(gateway): State<Gateway>,
    Path((thread, path)): Path<(String, String)>,
    Body(edit): Body<Edit>,
) -> ApiResult<Json<Value>> {
    let of = workspace(&gateway, &thread).await?;
    if edit.content.len() > LONGEST_EDIT {
        let detail = format!("a text of at most {LONGEST_EDIT} bytes can be edited here");
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    let active = RunQuery {
        thread: Some(of.thread.clone()),
        status: vec![RunStatus::Pending, RunStatus::Running],
        limit: 1,
        ..RunQuery::default()
    };
    // What is changed under a run would count as its work, and be undone with it.
    if !gateway.runtime.store().runs(&active).await?.is_empty() {
        return Err(ApiError::conflict(
            "a run works on this thread; wait for it or cancel it, then save again",
        ));
    }
    let path = format!("/{path}");
    let Edit { content, expected_sha256 } = edit;
    let (size, sha256) = (content.len(), sha256_of(content.as_bytes()));
    let mut refused = None;
    let mut content = Some(content);
    let mut replace = |old: &[u8]| {
        refused = refusal(old, &expected_sha256);
        if refused.is_some() { None } else { content.take().map(String::into_bytes) }
    };
    let edited = files(&gateway)?.edit(&of, &path, &mut replace).await;
    edited.map_err(|error| error.about(&format!("the artifact `{path}`")))?;
    match refused {
        Some(error) => Err(error),
        None => Ok(Json(json!({"path": path, "sha256": sha256, "size": size}))),
    }
}

/// How large a text may be that is edited here, in bytes.
const LONGEST_EDIT: usize = 2 << 20;

fn refusal(old: &[u8], expected: &str) -> Option<ApiError> {
    if std::str::from_utf8(old).is_err() {
        let detail = "only text can be edited, and this file is none";
        return Some(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    let now = sha256_of(old);
    (!now.eq_ignore_ascii_case(expected)).then(|| {
        let detail = format!("the file has changed since it was read (it is {now} now); read it again");
        ApiError::new(StatusCode::PRECONDITION_FAILED, detail)
    })
}

fn sha256_of(content: &[u8]) -> String {
    Sha256::digest(content).iter().fold(String::with_capacity(64), |text, byte| format!("{text}{byte:02x}"))
}

/// How much of a file is read at once.
const PIECE: u64 = 256 << 10;

/// The bytes from `from` up to `to`, read as they are taken.
fn content(file: Arc<dyn OpenFile>, from: u64, to: u64) -> HttpBody {
    HttpBody::from_stream(stream::try_unfold((file, from), move |(file, at)| async move {
        let wanted = usize::try_from(to.saturating_sub(at).min(PIECE)).unwrap_or_default();
        if wanted == 0 {
            return Ok::<_, std::io::Error>(None);
        }
        let piece: Bytes = file.read_at(at, wanted).await?;
        if piece.is_empty() {
            // It was cut off meanwhile; a shorter answer would be taken for all of it.
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let next = at + piece.len() as u64;
        Ok(Some((piece, (file, next))))
    }))
}

fn headed(
    mut answer: Response<HttpBody>,
    kind: &'static str,
    attached: Option<&String>,
) -> Response<HttpBody> {
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    // It may be another one the next time.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    if let Some(path) = attached {
        let name = encoded(path.rsplit('/').next().unwrap_or(path), b"");
        insert(headers, header::CONTENT_DISPOSITION, format!("attachment; filename*=UTF-8''{name}"));
    }
    answer
}

fn insert(headers: &mut HeaderMap, name: header::HeaderName, value: String) {
    if let Ok(value) = HeaderValue::from_str(&value) {
        headers.insert(name, value);
    }
}

/// Percent-encoded, but for letters, digits and `also`.
fn encoded(text: &str, also: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || also.contains(&byte);
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        match plain(byte) {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
        encoded
    })
}

/// What a browser may take it for, and whether it could act there.
fn kind_of(path: &str) -> (&'static str, bool) {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
    match ending.as_str() {
        "txt" | "md" | "log" | "py" | "rs" | "js" | "ts" | "sh" | "yaml" | "yml" | "toml" => {
            ("text/plain; charset=utf-8", false)
        }
        "csv" => ("text/csv; charset=utf-8", false),
        "json" => ("application/json", false),
        "png" => ("image/png", false),
        "jpg" | "jpeg" => ("image/jpeg", false),
        "gif" => ("image/gif", false),
        "webp" => ("image/webp", false),
        "mp3" => ("audio/mpeg", false),
        "wav" => ("audio/wav", false),
        "ogg" => ("audio/ogg", false),
        "mp4" => ("video/mp4", false),
        "webm" => ("video/webm", false),
        "pdf" => ("application/pdf", false),
        "html" | "htm" => ("text/html; charset=utf-8", true),
        "xhtml" => ("application/xhtml+xml", true),
        "svg" => ("image/svg+xml", true),
        "xml" => ("application/xml", true),
        _ => ("application/octet-stream", true),
    }
}

#[cfg(test)]
mod tests {
    use super::{encoded, kind_of, sha256_of};

    #[test]
    fn what_could_act_in_a_browser_is_kept_instead() {
        for (path, active) in [
            ("/mnt/user-data/outputs/a.png", false),
            ("/a.TXT", false),
            ("/page.HTML", true),
            ("/drawing.svg", true),
            ("/no.ending/file", true),
        ] {
            assert_eq!(kind_of(path).1, active, "{path}");
        }
    }

    #[test]
    fn names_and_hashes() {
        assert_eq!(encoded("/a b/ä\"\n.txt", b"/"), "/a%20b/%C3%A4%22%0A.txt");
        assert_eq!(encoded("a/b", b""), "a%2Fb");
        assert_eq!(sha256_of(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
