//! The sandbox on this machine: files in the thread's directories, commands in namespaces over the same ones.
//!
//! Invariant: blocking file work runs on the blocking pool, and writes to one path happen one after another.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use hart_types::SandboxId;
use tokio_util::sync::CancellationToken;

use crate::contract::{
    Capabilities, GlobQuery, GlobResult, GrepQuery, GrepResult, LineQuery, Lines, Listing, Sandbox, Stat,
    WriteMode,
};
use crate::disk::{Disk, DiskLimits};
use crate::error::{Result, SandboxError};
use crate::exec::{Exec, ExecOutput, Exit, OutputSink};
use crate::files::{self, Change, Place, Roots};
use crate::locks::{Held, LockKey};
use crate::open::{Incoming, OpenFile};
use crate::path::{PathError, VPath, WORKSPACE};
use crate::provider::Shared;
use crate::receipts::Receipts;
use crate::run;
use crate::save::OutputFilter;
use crate::tier::Tier;

#[derive(Debug)]
pub(crate) struct LocalSandbox {
    id: SandboxId,
    roots: Arc<Roots>,
    /// The archives, as hart itself may write them.
    archives: Arc<Roots>,
    shared: Arc<Shared>,
    disk: Arc<Disk>,
}

impl LocalSandbox {
    pub(crate) fn new(id: SandboxId, roots: Roots, shared: Arc<Shared>) -> Self {
        let mut dirs: Vec<_> = roots.of_thread().map(|root| root.host.as_path().to_owned()).collect();
        dirs.extend(run::scratch_of(&roots));
        let disk = Arc::new(Disk::new(dirs, DiskLimits::of(&shared.config)));
        let archives = Arc::new(roots.archives());
        Self { disk, id, roots: Arc::new(roots), archives, shared }
    }

    async fn with_roots<T: Send + 'static>(
        &self,
        path: &VPath,
        work: impl FnOnce(&Roots, &VPath) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.with(&self.roots, path, work).await
    }

    async fn with<T: Send + 'static>(
        &self,
        roots: &Arc<Roots>,
        path: &VPath,
        work: impl FnOnce(&Roots, &VPath) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (roots, owned) = (Arc::clone(roots), path.clone());
        let done = self.shared.at_the_disk(move || work(&roots, &owned)).await;
        done.map_err(|_| SandboxError::io(path, io::Error::other("the file operation was aborted")))?
    }

    /// Where there are receipts: an unconfined command could write its own.
    async fn with_receipts<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Receipts) -> io::Result<T> + Send + 'static,
    ) -> Result<Option<T>> {
        let trusted = matches!(self.shared.tier().tier, Tier::Isolated | Tier::Landlock);
        let Some(receipts) = Receipts::of(&self.roots).filter(|_| trusted) else { return Ok(None) };
        let done = tokio::task::spawn_blocking(move || work(&receipts));
        done.await
            .unwrap_or_else(|error| Err(io::Error::other(error)))
            .map(Some)
            .map_err(|source| SandboxError::io(&VPath::root(WORKSPACE), source))
    }

    /// Waits until nobody else changes the file.
    async fn hold(&self, roots: &Arc<Roots>, path: &VPath, change: Change) -> Result<Held> {
        let locks = &self.shared.locks;
        let name = locks.lock(LockKey::Name(self.id.clone(), path.clone())).await;
        let key = self.with(roots, path, move |roots, path| Ok(files::key(roots, path, change))).await?;
        let file = match key {
            Some(key) => Some(locks.lock(LockKey::File(key)).await),
            None => None,
        };
        Ok(Held { _file: file, _name: name })
    }

    /// The work keeps the file to itself until it is done, even if its caller goes away meanwhile.
    async fn write_held(
        &self,
        roots: &Arc<Roots>,
        held: Held,
        path: &VPath,
        content: Vec<u8>,
        mode: WriteMode,
    ) -> Result<()> {
        let disk = Arc::clone(&self.disk);
        self.with(roots, path, move |roots, path| {
            let _held = held;
            let mut claim = Disk::claim(&disk);
            claim.grow(content.len() as u64)?;
            match mode {
                WriteMode::Append => files::append(roots, path, &content)?,
                WriteMode::Overwrite => files::create_or_replace(roots, path, &content, true)?,
                WriteMode::CreateNew => files::create_or_replace(roots, path, &content, false)?,
            }
            claim.landed();
            Ok(())
        })
        .await
    }

    /// A command starts in a directory the sandbox shows; saying so here beats a shell's error.
    async fn check_cwd(&self, exec: &Exec) -> Result<VPath> {
        let cwd = exec.cwd.clone().unwrap_or_else(|| VPath::root(WORKSPACE));
        self.with_roots(&cwd, |roots, cwd| match roots.locate(cwd)? {
            Place::UserData => Ok(()),
            Place::In { .. } => match files::stat(roots, cwd)?.kind {
                crate::contract::EntryKind::Directory => Ok(()),
                _ => Err(SandboxError::NotADirectory(cwd.clone())),
            },
        })
        .await?;
        Ok(cwd)
    }
}

async fn next_part(parts: &mut dyn Incoming, path: &VPath) -> Result<Option<bytes::Bytes>> {
    parts.next().await.map_err(|source| SandboxError::io(path, source))
}

#[async_trait]
impl Sandbox for LocalSandbox {
    fn id(&self) -> &SandboxId {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        self.shared.capabilities()
    }

    fn path(&self, text: &str) -> Result<VPath, PathError> {
        VPath::parse_with(text, &self.shared.mounted_at)
    }

    async fn resolve(&self, path: &VPath) -> Result<VPath> {
        self.with_roots(path, files::resolve).await
    }

    async fn exec(
        &self,
        exec: Exec,
        on_output: Option<&dyn OutputSink>,
        cancel: &CancellationToken,
    ) -> Result<ExecOutput> {
        exec.check()?;
        if cancel.is_cancelled() || self.shared.closing.is_cancelled() {
            return Ok(ExecOutput {
                stdout: String::new(),
                stderr: String::new(),
                stdout_truncated: false,
                stderr_truncated: false,
                exit: Exit::Cancelled,
            });
        }
        let cwd = self.check_cwd(&exec).await?;
        let (shared, roots) = (Arc::clone(&self.shared), Arc::clone(&self.roots));
        let save = exec.save.clone();
        let filter = OutputFilter { roots: &self.roots, save: save.as_deref(), inner: on_output };
        let limits = run::Limits { timeout: exec.timeout, output_limit: exec.output_limit };
        let disk = Arc::clone(&self.disk);
        let launched = tokio::task::spawn_blocking(move || run::launch(&shared, &roots, &exec, &cwd, &disk))
            .await
            .map_err(|_| SandboxError::Spawn { reason: "the start was aborted".to_owned() })??;
        // Without a listener the text need not be cut into whole characters at all.
        let listens = filter.save.is_some() || filter.inner.is_some();
        let sink = listens.then_some(&filter as &dyn OutputSink);
        run::supervise(launched, limits, sink, cancel, &self.shared, &self.disk).await
    }

    async fn read(&self, path: &VPath) -> Result<Vec<u8>> {
        self.with_roots(path, files::read).await
    }

    async fn read_lines(&self, path: &VPath, query: LineQuery) -> Result<Lines> {
        self.with_roots(path, move |roots, path| files::read_lines(roots, path, query)).await
    }

    async fn mark(&self, path: &VPath) -> Result<String> {
        self.with_roots(path, files::mark).await
    }

    async fn write(&self, path: &VPath, content: &[u8], mode: WriteMode) -> Result<()> {
        let held = self.hold(&self.roots, path, Change::Write).await?;
        self.write_held(&self.roots, held, path, content.to_vec(), mode).await
    }

    async fn receive(&self, path: &VPath, parts: &mut dyn Incoming, replace: bool) -> Result<u64> {
        // A sender may stall for ever. While it does, it takes neither a thread nor the file's lock, and before its
        // first part no descriptor either.
        let mut part = next_part(parts, path).await?;
        let mut reception =
            self.with_roots(path, move |roots, path| files::Reception::begin(roots, path, replace)).await?;
        let mut claim = Disk::claim(&self.disk);
        while let Some(bytes) = part {
            (reception, claim) = self
                .with_roots(path, move |_, _| {
                    claim.grow(bytes.len() as u64)?;
                    reception.take(&bytes)?;
                    Ok((reception, claim))
                })
                .await?;
            part = next_part(parts, path).await?;
        }
        let held = self.hold(&self.roots, path, Change::Write).await?;
        self.with_roots(path, move |_, _| {
            let _held = held;
            let size = reception.finish()?;
            claim.landed();
            Ok(size)
        })
        .await
    }

    async fn open(&self, path: &VPath) -> Result<OpenFile> {
        self.with_roots(path, files::open).await
    }

    async fn archive(&self, path: &VPath, content: &[u8], mode: WriteMode) -> Result<()> {
        let held = self.hold(&self.archives, path, Change::Write).await?;
        self.write_held(&self.archives, held, path, content.to_vec(), mode).await
    }

    async fn modify(
        &self,
        path: &VPath,
        edit: &mut (dyn for<'a> FnMut(&'a [u8]) -> Option<Vec<u8>> + Send),
    ) -> Result<bool> {
        let held = self.hold(&self.roots, path, Change::Edit).await?;
        let content = self.with_roots(path, files::modify_read).await?;
        match edit(&content) {
            Some(edited) => {
                let written = self.write_held(&self.roots, held, path, edited, WriteMode::Overwrite);
                written.await.map(|()| true)
            }
            None => Ok(false),
        }
    }

    async fn stat(&self, path: &VPath) -> Result<Stat> {
        self.with_roots(path, files::stat).await
    }

    async fn list(&self, path: &VPath, depth: usize) -> Result<Listing> {
        self.with_roots(path, move |roots, path| files::list(roots, path, depth)).await
    }

    async fn glob(&self, query: GlobQuery) -> Result<GlobResult> {
        let base = query.base.clone();
        self.with_roots(&base, move |roots, _| crate::search::glob(roots, &query)).await
    }

    async fn grep(&self, query: GrepQuery) -> Result<GrepResult> {
        let base = query.base.clone();
        self.with_roots(&base, move |roots, _| crate::search::grep(roots, &query)).await
    }

    async fn remove(&self, path: &VPath) -> Result<()> {
        let held = self.hold(&self.roots, path, Change::Remove).await?;
        self.with_roots(path, move |roots, path| {
            let _held = held;
            files::remove(roots, path)
        })
        .await
    }

    async fn keep_receipt(&self, key: &str, content: Vec<u8>) -> Result<bool> {
        let key = key.to_owned();
        self.with_receipts(move |receipts| receipts.keep(&key, &content)).await.map(|kept| kept.is_some())
    }

    async fn receipt(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let key = key.to_owned();
        Ok(self.with_receipts(move |receipts| receipts.get(&key)).await?.flatten())
    }

    async fn forget_receipt(&self, key: &str) -> Result<()> {
        let key = key.to_owned();
        self.with_receipts(move |receipts| receipts.forget(&key)).await.map(|_| ())
    }
}
