//! The files of threads, for whoever asks over HTTP.
//!
//! Invariant: only what is a thread's own is reached, through its sandbox, within its quota.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use hart_gateway::{FileError, FileInfo, Files};
use hart_kernel::async_trait;
use hart_runtime::Workspace;
use hart_sandbox::{EntryKind, Sandbox, SandboxProvider, VPath};

use super::{OWN, of_file};
use crate::workshop::Workshop;

#[async_trait]
impl Files for Workshop {
    async fn open(&self, of: &Workspace, path: &str) -> Result<Arc<dyn hart_gateway::OpenFile>, FileError> {
        let (sandbox, path) = reach(self, of, path).await?;
        let file = sandbox.open(&path).await.map_err(of_file)?;
        Ok(Arc::new(Opened(file)))
    }

    async fn receive(
        &self,
        of: &Workspace,
        path: &str,
        parts: &mut dyn hart_gateway::Incoming,
    ) -> Result<u64, FileError> {
        let (sandbox, path) = reach(self, of, path).await?;
        sandbox.receive(&path, &mut Parts(parts), false).await.map_err(of_file)
    }

    async fn list(&self, of: &Workspace, directory: &str) -> Result<Vec<FileInfo>, FileError> {
        let (sandbox, directory) = reach(self, of, directory).await?;
        let listing = sandbox.list(&directory, 1).await.map_err(of_file)?;
        let mut found = Vec::new();
        for entry in listing.entries.into_iter().filter(|entry| entry.kind == EntryKind::File) {
            // What has gone meanwhile is not there.
            let Ok(stat) = sandbox.stat(&entry.path).await else { continue };
            let name = entry.path.as_str().rsplit('/').next().unwrap_or_default().to_owned();
            found.push(FileInfo { name, size: stat.size, modified: stat.modified });
        }
        Ok(found)
    }

    async fn remove(&self, of: &Workspace, path: &str) -> Result<(), FileError> {
        let (sandbox, path) = reach(self, of, path).await?;
        sandbox.remove(&path).await.map_err(of_file)
    }

    async fn edit(
        &self,
        of: &Workspace,
        path: &str,
        edit: &mut (dyn for<'a> FnMut(&'a [u8]) -> Option<Vec<u8>> + Send),
    ) -> Result<(), FileError> {
        let (sandbox, path) = reach(self, of, path).await?;
        sandbox.modify(&path, edit).await.map(|_| ()).map_err(of_file)
    }
}

/// The sandbox of a thread and a path in what is its own.
pub(super) async fn reach(
    workshop: &Workshop,
    of: &Workspace,
    path: &str,
) -> Result<(Arc<dyn Sandbox>, VPath), FileError> {
    let path = VPath::parse(path).ok().filter(|path| path.to_string().starts_with(OWN));
    let path = path.ok_or(FileError::NotFound)?;
    let sandbox = workshop.sandboxes.acquire(&of.thread, &of.user).await.map_err(of_file)?;
    Ok((sandbox, path))
}

struct Opened(hart_sandbox::OpenFile);

#[async_trait]
impl hart_gateway::OpenFile for Opened {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn modified(&self) -> i64 {
        self.0.modified()
    }

    async fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        self.0.read_at(offset, len).await
    }
}

struct Parts<'a>(&'a mut dyn hart_gateway::Incoming);

#[async_trait]
impl hart_sandbox::Incoming for Parts<'_> {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        self.0.next().await
    }
}
