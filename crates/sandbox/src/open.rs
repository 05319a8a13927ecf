//! Files that are too large to be held in memory, on their way in and out.
//!
//! Invariant: no more of a file is in memory than the part that is being moved.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

/// A file on its way in.
#[async_trait]
pub trait Incoming: Send {
    /// The next part, `None` behind the last one. After an error the rest does not come.
    async fn next(&mut self) -> io::Result<Option<Bytes>>;
}

/// A file that parts are read of.
#[derive(Clone, Debug)]
pub struct OpenFile {
    content: Content,
    size: u64,
    modified: i64,
}

#[derive(Clone, Debug)]
enum Content {
    OnDisk(Arc<File>),
    Held(Bytes),
}

impl OpenFile {
    pub(crate) fn of(file: File, size: u64, modified: i64) -> Self {
        Self { content: Content::OnDisk(Arc::new(file)), size, modified }
    }

    pub(crate) fn held(content: Bytes, modified: i64) -> Self {
        Self { size: content.len() as u64, content: Content::Held(content), modified }
    }

    /// When it was opened.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Seconds since 1970.
    pub fn modified(&self) -> i64 {
        self.modified
    }

    /// At most `len` bytes from `offset` on; fewer only where the file ends.
    pub async fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        match &self.content {
            Content::Held(content) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
                Ok(content.slice(from..from.saturating_add(len).min(content.len())))
            }
            Content::OnDisk(file) => {
                let file = Arc::clone(file);
                let read = tokio::task::spawn_blocking(move || read_from(&file, offset, len)).await;
                read.unwrap_or_else(|error| Err(io::Error::other(error)))
            }
        }
    }
}

fn read_from(file: &File, offset: u64, len: usize) -> io::Result<Bytes> {
    let mut part = vec![0; len];
    let mut filled = 0;
    while let Some(rest) = part.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset.saturating_add(filled as u64)) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    part.truncate(filled);
    Ok(part.into())
}
