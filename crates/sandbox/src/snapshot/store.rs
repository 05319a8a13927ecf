//! The store: manifests, packs and objects on disk.
//!
//! Invariant: a manifest appears last and whole, so a snapshot exists with all it needs or not at all.

use std::collections::{HashMap, HashSet};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock, fstat};
use sha2::{Digest, Sha256};

use super::manifest::{Content, Entries, Entry, Manifest, Stamp, What, escape};
use super::tree::{self, Kind, Tree};
use super::{Result, SnapshotError, SnapshotId, Taken};
use crate::files::{OpenRoot, hex};

/// Smaller files go into a pack: there the copy costs less than the making of a file.
const PACKED: u64 = 256 << 10;
/// Larger ones are left out: they would cost more than they are worth.
const MAX_FILE: u64 = 512 << 20;
const MAX_WORKERS: usize = 4;
/// A file that is written while it is read is read again so often.
const ATTEMPTS: usize = 3;

pub(super) struct Store {
    root: PathBuf,
    /// Held as long as this lives: one process at a time changes the store.
    _lock: File,
}

/// A file whose content is to be read.
struct Job<'a> {
    path: &'a [u8],
    root: &'a OpenRoot,
    stamp: Stamp,
}

/// What one worker made.
#[derive(Default)]
struct Made {
    contents: Vec<(Vec<u8>, Stamp, Content)>,
}

impl Store {
    pub(super) fn open(root: &Path) -> Result<Self> {
        let doing = SnapshotError::io("opening the store");
        for dir in [root.to_owned(), root.join("objects"), root.join("packs")] {
            DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(&doing)?;
        }
        let lock =
            private().create(true).write(true).truncate(false).open(root.join("lock")).map_err(&doing)?;
        flock(&lock, FlockOperation::LockExclusive).map_err(io::Error::from).map_err(&doing)?;
        Ok(Self { root: root.to_owned(), _lock: lock })
    }

    pub(super) fn list(&self) -> Result<Vec<SnapshotId>> {
        let doing = SnapshotError::io("listing snapshots");
        let mut ids = Vec::new();
        for entry in std::fs::read_dir(&self.root).map_err(&doing)? {
            let name = entry.map_err(&doing)?.file_name();
            ids.extend(name.to_str().and_then(|name| name.strip_suffix(".manifest")).map(str::to_owned));
        }
        ids.sort_unstable();
        Ok(ids.into_iter().map(SnapshotId).collect())
    }

    pub(super) fn load(&self, id: &SnapshotId) -> Result<Manifest> {
        if !id.0.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(SnapshotError::NotFound { id: id.0.clone() });
        }
        match std::fs::read(self.manifest_path(&id.0)) {
            Ok(bytes) => {
                Manifest::decode(&bytes).map_err(|what| SnapshotError::Damaged { id: id.0.clone(), what })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(SnapshotError::NotFound { id: id.0.clone() })
            }
            Err(error) => Err(SnapshotError::io("reading a snapshot")(error)),
        }
    }

    pub(super) fn take(&self, tree: &Tree) -> Result<Taken> {
        let ids = self.list()?;
        // A damaged one only costs time: everything is read again.
        let last = ids.last().and_then(|id| self.load(id).ok()).unwrap_or_default();
        self.take_after(tree, &ids, &last)
    }

    /// The last snapshot, if nothing has changed since; a new one otherwise.
    pub(super) fn take_if_changed(&self, tree: &Tree) -> Result<SnapshotId> {
        let ids = self.list()?;
        let last = ids.last().and_then(|id| Some((id, self.load(id).ok()?)));
        match last {
            Some((id, manifest)) if manifest.is_of(tree) => Ok(id.clone()),
            Some((_, manifest)) => Ok(self.take_after(tree, &ids, &manifest)?.id),
            None => Ok(self.take_after(tree, &ids, &Manifest::default())?.id),
        }
    }

    fn take_after(&self, tree: &Tree, ids: &[SnapshotId], last: &Manifest) -> Result<Taken> {
        // By the clock, so that an id is not given twice even after all were pruned; and never before the last one.
        let after_last = ids.last().and_then(|id| id.0.parse::<u64>().ok()).map_or(0, |id| id + 1);
        let now = u64::try_from(tree.began / 1000).unwrap_or_default();
        let id = format!("{:020}", now.max(after_last));

        let mut entries = Entries::new();
        let mut jobs = Vec::new();
        for (path, seen) in &tree.found {
            let what = match &seen.kind {
                Kind::Directory { closed } => What::Directory { closed: *closed },
                Kind::Link(target) => What::Link(target.clone()),
                Kind::Other => What::Other,
                Kind::File => match last.unchanged(path, &seen.stamp) {
                    Some(Entry { what: What::File(content), .. }) => What::File(content.clone()),
                    _ => {
                        let (name, _) = tree::split(path);
                        let root = tree.roots.iter().find(|(root, _)| root.as_bytes() == name);
                        if let Some((_, root)) = root {
                            jobs.push(Job { path, root, stamp: seen.stamp });
                        }
                        continue;
                    }
                },
            };
            entries
                .insert(path.clone(), Entry { mode: seen.mode, owner: seen.owner, stamp: seen.stamp, what });
        }
        let read = jobs.len();
        for (path, stamp, content) in self.read_all(&id, &jobs, last)? {
            let Some(seen) = tree.found.get(&path) else { continue };
            let what = What::File(content);
            entries.insert(path, Entry { mode: seen.mode, owner: seen.owner, stamp, what });
        }
        let is_file = |entry: &&Entry| matches!(entry.what, What::File(_));
        let files = entries.values().filter(is_file).count();
        let left_out = entries.iter().filter_map(|(path, entry)| match &entry.what {
            What::File(Content::LeftOut { reason }) => Some(format!("{}: {reason}", escape(path))),
            What::Directory { closed: true } => Some(format!("{}: not readable", escape(path))),
            _ => None,
        });
        let left_out = left_out.collect();
        self.write_manifest(&id, &Manifest { began: tree.began, entries })?;
        Ok(Taken { id: SnapshotId(id), files, read, left_out })
    }

    fn write_manifest(&self, id: &str, manifest: &Manifest) -> Result<()> {
        let doing = SnapshotError::io("writing the snapshot");
        let bytes = manifest.encode().map_err(io::Error::from).map_err(&doing)?;
        let temporary = self.root.join("manifest.tmp");
        private()
            .create(true)
            .write(true)
            .truncate(true)
            .open(&temporary)
            .and_then(|mut file| file.write_all(&bytes))
            .and_then(|()| std::fs::rename(&temporary, self.manifest_path(id)))
            .map_err(&doing)
    }

    /// Reads the files, side by side, into packs and objects.
    fn read_all(
        &self,
        id: &str,
        jobs: &[Job<'_>],
        last: &Manifest,
    ) -> Result<Vec<(Vec<u8>, Stamp, Content)>> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        // What the last snapshot has need not be stored again, under whatever name it is now.
        let contents = last.entries.values().filter_map(|entry| match &entry.what {
            What::File(content) => Some((content.hash()?, content)),
            _ => None,
        });
        let known: HashMap<&str, &Content> = contents.collect();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = processors.min(MAX_WORKERS).min(jobs.len().div_ceil(64));
        let share = jobs.len().div_ceil(workers.max(1));
        let made: Vec<Result<Made>> = std::thread::scope(|scope| {
            let handles: Vec<_> = jobs
                .chunks(share)
                .enumerate()
                .map(|(number, jobs)| {
                    let known = &known;
                    scope.spawn(move || Worker::new(self, format!("{id}-{number}"), known).run(jobs))
                })
                .collect();
            let joined = handles.into_iter().map(|handle| handle.join());
            joined
                .map(|made| {
                    made.unwrap_or_else(|_| {
                        Err(SnapshotError::io("reading")(io::Error::other("a worker died")))
                    })
                })
                .collect()
        });
        let mut all = Vec::with_capacity(jobs.len());
        for made in made {
            all.extend(made?.contents);
        }
        Ok(all)
    }

    /// Writes a kept content to `out`.
    pub(super) fn copy_to(&self, content: &Content, size: u64, out: &mut File) -> io::Result<()> {
        match content {
            Content::Packed { pack, offset, .. } => {
                let bytes = self.packed(pack, *offset, size)?;
                out.write_all(&bytes)
            }
            Content::Object { hash } => {
                let mut object = File::open(self.object_path(hash)?)?;
                if rustix::fs::ioctl_ficlone(&*out, &object).is_err() {
                    io::copy(&mut object, out)?;
                }
                Ok(())
            }
            Content::LeftOut { reason } => Err(io::Error::other(format!("it was left out: {reason}"))),
        }
    }

    /// At most `limit` bytes of a kept content.
    pub(super) fn read(&self, content: &Content, size: u64, limit: u64) -> io::Result<Vec<u8>> {
        match content {
            Content::Packed { pack, offset, .. } => self.packed(pack, *offset, size.min(limit)),
            Content::Object { hash } => {
                let mut bytes = Vec::new();
                File::open(self.object_path(hash)?)?.take(limit).read_to_end(&mut bytes)?;
                Ok(bytes)
            }
            Content::LeftOut { reason } => Err(io::Error::other(reason.clone())),
        }
    }

    fn packed(&self, pack: &str, offset: u64, size: u64) -> io::Result<Vec<u8>> {
        let size = usize::try_from(size.min(PACKED)).unwrap_or_default();
        let mut bytes = vec![0; size];
        File::open(self.pack_path(pack)?)?.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    pub(super) fn prune(&self, keep: usize) -> Result<usize> {
        let doing = SnapshotError::io("pruning");
        let ids = self.list()?;
        let dropped = ids.len().saturating_sub(keep);
        for id in ids.iter().take(dropped) {
            std::fs::remove_file(self.manifest_path(&id.0)).map_err(&doing)?;
        }
        let mut needed: HashSet<String> = HashSet::new();
        for id in ids.iter().skip(dropped) {
            for entry in self.load(id)?.entries.into_values() {
                match entry.what {
                    What::File(Content::Packed { pack, .. }) => needed.insert(format!("{pack}.pack")),
                    What::File(Content::Object { hash }) => needed.insert(hash),
                    _ => false,
                };
            }
        }
        for folder in ["objects", "packs"] {
            for entry in std::fs::read_dir(self.root.join(folder)).map_err(&doing)? {
                let entry = entry.map_err(&doing)?;
                if !entry.file_name().to_str().is_some_and(|name| needed.contains(name)) {
                    std::fs::remove_file(entry.path()).map_err(&doing)?;
                }
            }
        }
        Ok(dropped)
    }

    fn manifest_path(&self, id: &str) -> PathBuf {
        self.root.join(format!("{id}.manifest"))
    }

    /// What a manifest names is a name and no path.
    fn pack_path(&self, pack: &str) -> io::Result<PathBuf> {
        let plain = pack.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if plain {
            Ok(self.root.join("packs").join(format!("{pack}.pack")))
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    }

    fn object_path(&self, hash: &str) -> io::Result<PathBuf> {
        let plain = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        if plain { Ok(self.root.join("objects").join(hash)) } else { Err(io::ErrorKind::InvalidData.into()) }
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

struct Worker<'a> {
    store: &'a Store,
    pack: String,
    out: Option<io::BufWriter<File>>,
    offset: u64,
    known: &'a HashMap<&'a str, &'a Content>,
    buffer: Vec<u8>,
}

impl<'a> Worker<'a> {
    fn new(store: &'a Store, pack: String, known: &'a HashMap<&'a str, &'a Content>) -> Self {
        Self { store, pack, out: None, offset: 0, known, buffer: Vec::new() }
    }

    fn run(mut self, jobs: &[Job<'_>]) -> Result<Made> {
        let mut made = Made::default();
        for job in jobs {
            match self.file(job) {
                Ok(Some((stamp, content))) => made.contents.push((job.path.to_vec(), stamp, content)),
                Ok(None) => {}
                Err(error) => return Err(SnapshotError::io("copying a file")(error)),
            }
        }
        if let Some(mut out) = self.out {
            out.flush().map_err(SnapshotError::io("writing a pack"))?;
        }
        Ok(made)
    }

    /// `None` if it vanished. Errors are the store's; what the file itself refuses leaves it out.
    fn file(&mut self, job: &Job<'_>) -> io::Result<Option<(Stamp, Content)>> {
        let left_out = |reason: String| Ok(Some((job.stamp, Content::LeftOut { reason })));
        for attempt in 1..=ATTEMPTS {
            let (_, below) = tree::split(job.path);
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
            let mut file = match job.root.beneath_without_links(below, flags) {
                Ok(fd) => File::from(fd),
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
                    return Ok(None);
                }
                Err(errno) => return left_out(format!("not readable ({})", io::Error::from(errno).kind())),
            };
            let before = tree::stamp(&fstat(&file)?);
            if !file.metadata()?.is_file() {
                return Ok(None);
            }
            if before.size > MAX_FILE {
                return left_out(format!("larger than {} MiB", MAX_FILE >> 20));
            }
            let content = if before.size < PACKED { self.small(&mut file)? } else { self.large(&mut file)? };
            let after = tree::stamp(&fstat(&file)?);
            match content {
                Some((size, content)) if after == before && size == after.size || attempt == ATTEMPTS => {
                    // Its stamp is no proof if it would not stand still: the next snapshot reads it again.
                    let stamp = Stamp { size, ..if after == before { after } else { Stamp::default() } };
                    return Ok(Some((stamp, content)));
                }
                _ => {}
            }
        }
        left_out("it would not stand still".to_owned())
    }

    /// `None` if it grew beyond what is packed.
    fn small(&mut self, file: &mut File) -> io::Result<Option<(u64, Content)>> {
        self.buffer.clear();
        file.take(PACKED).read_to_end(&mut self.buffer)?;
        let size = self.buffer.len() as u64;
        if size >= PACKED {
            return Ok(None);
        }
        let hash = hex(&Sha256::digest(&self.buffer));
        if let Some(known) = self.known.get(hash.as_str()) {
            return Ok(Some((size, Content::clone(known))));
        }
        let out = match &mut self.out {
            Some(out) => out,
            None => {
                let path = self.store.pack_path(&self.pack)?;
                let file = private().create(true).write(true).truncate(true).open(path)?;
                self.out.insert(io::BufWriter::with_capacity(1 << 20, file))
            }
        };
        out.write_all(&self.buffer)?;
        let offset = self.offset;
        self.offset += size;
        Ok(Some((size, Content::Packed { pack: self.pack.clone(), offset, hash })))
    }

    fn large(&mut self, file: &mut File) -> io::Result<Option<(u64, Content)>> {
        let temporary = self.store.root.join("objects").join(format!("{}.tmp", self.pack));
        self.large_by_way_of(&temporary, file).inspect_err(|_| {
            // Half a copy only takes the space that was too little for it.
            let _ = std::fs::remove_file(&temporary);
        })
    }

    fn large_by_way_of(&mut self, temporary: &Path, file: &mut File) -> io::Result<Option<(u64, Content)>> {
        let mut copy = private().create(true).read(true).write(true).truncate(true).open(temporary)?;
        // A clone is one copy in no time; what is hashed is then the clone, which nobody writes to.
        let cloned = rustix::fs::ioctl_ficlone(&copy, &*file).is_ok();
        let mut hash = Sha256::new();
        let mut size = 0;
        self.buffer.resize(1 << 20, 0);
        loop {
            let read = if cloned { copy.read(&mut self.buffer)? } else { file.read(&mut self.buffer)? };
            let bytes = self.buffer.get(..read).unwrap_or_default();
            if bytes.is_empty() {
                break;
            }
            size += read as u64;
            if size > MAX_FILE {
                std::fs::remove_file(temporary)?;
                return Ok(Some((size, Content::LeftOut { reason: "it grew too large".to_owned() })));
            }
            hash.update(bytes);
            if !cloned {
                // Holes stay holes.
                if bytes.iter().all(|byte| *byte == 0) {
                    copy.seek(SeekFrom::Current(bytes.len() as i64))?;
                } else {
                    copy.write_all(bytes)?;
                }
            }
        }
        copy.set_len(size)?;
        let hash = hex(&hash.finalize());
        std::fs::rename(temporary, self.store.object_path(&hash)?)?;
        Ok(Some((size, Content::Object { hash })))
    }
}
