//! A form of several parts, as browsers send files, read as it comes.
//!
//! Invariant: no more of it is in memory than one piece of the body; what is not a form is an error that says why.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::{HeaderMap, header};
use bytes::BytesMut;
use futures_util::StreamExt as _;
use memchr::memmem;

use crate::error::{ApiError, ApiResult};

pub(crate) struct Multipart {
    body: BodyDataStream,
    buffer: BytesMut,
    /// What stands before every part: a line's end, two dashes, the boundary.
    delimiter: Vec<u8>,
    /// How long the next piece may take.
    patience: Duration,
}

/// What is said of a part before its content.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PartHead {
    /// As the client wrote it; only files have one.
    pub(crate) filename: Option<String>,
}

/// How long what is said of a part may be.
const HEAD: usize = 16 * 1024;

impl Multipart {
    pub(crate) fn new(headers: &HeaderMap, body: Body, patience: Duration) -> ApiResult<Self> {
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let boundary = boundary(kind).ok_or_else(|| {
            ApiError::unprocessable(
                "the body must be multipart/form-data with a boundary; files go in `files`",
            )
        })?;
        // The first part has no line before it; with this one it is like the others.
        let buffer = BytesMut::from(&b"\r\n"[..]);
        let delimiter = format!("\r\n--{boundary}").into_bytes();
        Ok(Self { body: body.into_data_stream(), buffer, delimiter, patience })
    }

    /// The next part; what is left of the one before is passed over.
    pub(crate) async fn next(&mut self) -> ApiResult<Option<PartHead>> {
        while self.piece().await?.is_some() {}
        self.fill(self.delimiter.len() + 2).await?;
        let _ = self.buffer.split_to(self.delimiter.len());
        if self.buffer.starts_with(b"--") {
            return Ok(None);
        }
        let head = loop {
            match memmem::find(&self.buffer, b"\r\n\r\n") {
                Some(end) => break self.buffer.split_to(end + 4),
                None if self.buffer.len() > HEAD => {
                    return Err(ApiError::unprocessable("a part of the form has a head that is too long"));
                }
                None => self.more().await?,
            }
        };
        Ok(Some(PartHead::read(&String::from_utf8_lossy(&head))))
    }

    /// More of the part's content; `None` at its end.
    pub(crate) async fn piece(&mut self) -> ApiResult<Option<Bytes>> {
        loop {
            if let Some(at) = memmem::find(&self.buffer, &self.delimiter) {
                let piece = self.buffer.split_to(at).freeze();
                return Ok((!piece.is_empty()).then_some(piece));
            }
            // The delimiter may have begun.
            let sure = self.buffer.len().saturating_sub(self.delimiter.len() - 1);
            if sure > 0 {
                return Ok(Some(self.buffer.split_to(sure).freeze()));
            }
            self.more().await?;
        }
    }

    async fn fill(&mut self, len: usize) -> ApiResult<()> {
        while self.buffer.len() < len {
            self.more().await?;
        }
        Ok(())
    }

    async fn more(&mut self) -> ApiResult<()> {
        let next = tokio::time::timeout(self.patience, self.body.next()).await;
        let next = next.map_err(|_| {
            let detail = "nothing more of the upload came for too long; try again";
            ApiError::new(axum::http::StatusCode::REQUEST_TIMEOUT, detail)
        })?;
        match next {
            Some(Ok(piece)) => {
                self.buffer.extend_from_slice(&piece);
                Ok(())
            }
            Some(Err(_)) => Err(ApiError::bad_request("the upload broke off")),
            None => Err(ApiError::unprocessable("the form ends before its last boundary")),
        }
    }
}

impl PartHead {
    fn read(head: &str) -> Self {
        let disposition = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
        });
        let parameters = disposition.map(parameters).unwrap_or_default();
        let find = |wanted: &str| parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
        let extended =
            find("filename*").and_then(|value| value.rsplit_once('\'')).map(|(_, name)| decoded(name));
        Self { filename: extended.or_else(|| find("filename").map(|name| unescaped(name))) }
    }
}

fn boundary(kind: &str) -> Option<String> {
    let is_form =
        kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("multipart/form-data"));
    let found = parameters(kind).into_iter().find(|(name, _)| name == "boundary").map(|(_, value)| value);
    found.filter(|boundary| is_form && (1..=70).contains(&boundary.len()) && boundary.is_ascii())
}

/// `; name=value; name="value"`, names in lower case.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, behind)) = rest.split_once(';') {
        let Some((name, value)) = behind.split_once('=').filter(|(name, _)| !name.contains(';')) else {
            rest = behind;
            continue;
        };
        let value = value.trim_start();
        let (value, left) = match value.strip_prefix('"') {
            Some(quoted) => quoted_text(quoted),
            None => value.find(';').map_or((value.trim_end().to_owned(), ""), |end| {
                let (value, left) = value.split_at(end);
                (value.trim_end().to_owned(), left)
            }),
        };
        found.push((name.trim().to_ascii_lowercase(), value));
        rest = left;
    }
    found
}

/// Up to the closing quote, and what follows it.
fn quoted_text(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, text.get(at + 1..).unwrap_or_default()),
            // Only a quote is ever escaped: some browsers send whole Windows paths.
            '\\' if text.get(at + 1..).is_some_and(|rest| rest.starts_with('"')) => {
                characters.next();
                value.push('"');
            }
            other => value.push(other),
        }
    }
    (value, "")
}

/// Browsers write a quote and line ends in a name like this, and nothing else.
fn unescaped(name: &str) -> String {
    name.replace("%22", "\"").replace("%0D", "\r").replace("%0A", "\n")
}

/// Percent-encoded UTF-8.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let hex = behind.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
#[path = "multipart_tests.rs"]
mod tests;
