//! A sandbox that keeps to rules about paths.
//!
//! Invariant: no file operation reaches a path that a rule denies, under whatever name or through whatever link, and
//! no listing or search tells of one. Commands are not covered: what `exec` runs sees all of the sandbox.

use std::sync::Arc;

use async_trait::async_trait;
use hart_types::{SandboxId, ThreadId, UserId};
use tokio_util::sync::CancellationToken;

use crate::contract::{
    Capabilities, EntryKind, GlobQuery, GlobResult, GrepQuery, GrepResult, Layout, LineQuery, Lines, Listing,
    Sandbox, SandboxProvider, Shows, Stat, WriteMode,
};
use crate::error::Result;
use crate::exec::{Exec, ExecOutput, OutputSink};
use crate::open::{Incoming, OpenFile};
use crate::path::{PathError, VPath};
use crate::permissions::{Operation, PermissionMode, Permissions};
use crate::tier::TierReport;

/// Gives out the sandboxes of another provider, restricted.
#[derive(Debug)]
pub struct RestrictedSandboxes {
    inner: Arc<dyn SandboxProvider>,
    permissions: Arc<Permissions>,
}

impl RestrictedSandboxes {
    pub fn new(inner: Arc<dyn SandboxProvider>, permissions: Permissions) -> Self {
        Self { inner, permissions: Arc::new(permissions) }
    }

    fn restrict(&self, inner: Arc<dyn Sandbox>) -> Arc<dyn Sandbox> {
        Arc::new(Restricted { inner, permissions: Arc::clone(&self.permissions) })
    }
}

#[async_trait]
impl SandboxProvider for RestrictedSandboxes {
    async fn acquire(&self, thread: &ThreadId, user: &UserId) -> Result<Arc<dyn Sandbox>> {
        Ok(self.restrict(self.inner.acquire(thread, user).await?))
    }

    async fn get(&self, id: &SandboxId) -> Option<Arc<dyn Sandbox>> {
        self.inner.get(id).await.map(|sandbox| self.restrict(sandbox))
    }

    async fn release(&self, id: &SandboxId) -> Result<()> {
        self.inner.release(id).await
    }

    async fn shutdown(&self) {
        self.inner.shutdown().await;
    }

    fn tier(&self) -> TierReport {
        self.inner.tier()
    }

    fn layout(&self) -> Layout {
        self.inner.layout()
    }
}

#[derive(Debug)]
struct Restricted {
    inner: Arc<dyn Sandbox>,
    permissions: Arc<Permissions>,
}

impl Restricted {
    /// Both names count: the one that was given and the one that links lead to.
    async fn check(&self, operation: Operation, path: &VPath) -> Result<()> {
        self.permissions.check(operation, path)?;
        self.permissions.check(operation, &self.inner.resolve(path).await?)
    }

    fn shows(&self, path: &VPath) -> bool {
        shows(&self.permissions, path)
    }

    fn narrowed(&self, to: Shows) -> Shows {
        let permissions = Arc::clone(&self.permissions);
        to.narrowed(move |path| shows(&permissions, path))
    }
}

fn shows(permissions: &Permissions, path: &VPath) -> bool {
    permissions.decide(Operation::Read, path) != PermissionMode::Deny
}

#[async_trait]
impl Sandbox for Restricted {
    fn id(&self) -> &SandboxId {
        self.inner.id()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn path(&self, text: &str) -> Result<VPath, PathError> {
        self.inner.path(text)
    }

    async fn resolve(&self, path: &VPath) -> Result<VPath> {
        self.inner.resolve(path).await
    }

    async fn exec(
        &self,
        exec: Exec,
        on_output: Option<&dyn OutputSink>,
        cancel: &CancellationToken,
    ) -> Result<ExecOutput> {
        self.inner.exec(exec, on_output, cancel).await
    }

    async fn read(&self, path: &VPath) -> Result<Vec<u8>> {
        self.check(Operation::Read, path).await?;
        self.inner.read(path).await
    }

    async fn read_lines(&self, path: &VPath, query: LineQuery) -> Result<Lines> {
        self.check(Operation::Read, path).await?;
        self.inner.read_lines(path, query).await
    }

    async fn mark(&self, path: &VPath) -> Result<String> {
        self.check(Operation::Read, path).await?;
        self.inner.mark(path).await
    }

    async fn write(&self, path: &VPath, content: &[u8], mode: WriteMode) -> Result<()> {
        self.check(Operation::Write, path).await?;
        self.inner.write(path, content, mode).await
    }

    async fn receive(&self, path: &VPath, parts: &mut dyn Incoming, replace: bool) -> Result<u64> {
        self.check(Operation::Write, path).await?;
        self.inner.receive(path, parts, replace).await
    }

    async fn open(&self, path: &VPath) -> Result<OpenFile> {
        self.check(Operation::Read, path).await?;
        self.inner.open(path).await
    }

    /// By hart itself, not by the model: its rules are about what the model may do.
    async fn archive(&self, path: &VPath, content: &[u8], mode: WriteMode) -> Result<()> {
        self.inner.archive(path, content, mode).await
    }

    async fn modify(
        &self,
        path: &VPath,
        edit: &mut (dyn for<'a> FnMut(&'a [u8]) -> Option<Vec<u8>> + Send),
    ) -> Result<bool> {
        // Whether a text is in a file is told by the edit.
        self.check(Operation::Read, path).await?;
        self.check(Operation::Write, path).await?;
        self.inner.modify(path, edit).await
    }

    async fn stat(&self, path: &VPath) -> Result<Stat> {
        self.check(Operation::Read, path).await?;
        self.inner.stat(path).await
    }

    async fn list(&self, path: &VPath, depth: usize) -> Result<Listing> {
        self.check(Operation::Read, path).await?;
        let mut listing = self.inner.list(path, depth).await?;
        listing.entries.retain(|entry| self.shows(&entry.path));
        Ok(listing)
    }

    async fn glob(&self, mut query: GlobQuery) -> Result<GlobResult> {
        self.check(Operation::Read, &query.base).await?;
        query.shows = self.narrowed(query.shows);
        self.inner.glob(query).await
    }

    async fn grep(&self, mut query: GrepQuery) -> Result<GrepResult> {
        self.check(Operation::Read, &query.base).await?;
        query.shows = self.narrowed(query.shows);
        self.inner.grep(query).await
    }

    async fn remove(&self, path: &VPath) -> Result<()> {
        self.permissions.check(Operation::Write, path)?;
        // The link goes, not its target; but the directory it is in may itself be reached through one.
        if let Some((parent, name)) = path.parent() {
            let parent = self.inner.resolve(&parent).await?;
            self.permissions.check(Operation::Write, &parent.child(name))?;
        }
        let is_directory = self.inner.stat(path).await.is_ok_and(|stat| stat.kind == EntryKind::Directory);
        if is_directory {
            self.permissions.check_below(Operation::Write, path)?;
        }
        self.inner.remove(path).await
    }

    async fn keep_receipt(&self, key: &str, content: Vec<u8>) -> Result<bool> {
        self.inner.keep_receipt(key, content).await
    }

    async fn receipt(&self, key: &str) -> Result<Option<Vec<u8>>> {
        self.inner.receipt(key).await
    }

    async fn forget_receipt(&self, key: &str) -> Result<()> {
        self.inner.forget_receipt(key).await
    }
}
