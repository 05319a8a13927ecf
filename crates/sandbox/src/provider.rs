//! Gives each thread its sandbox on this machine.
//!
//! Invariant: while anyone holds a thread's sandbox, everyone who asks gets the same one; all have the same locks.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use hart_types::{SandboxId, ThreadId, UserId};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::config::{Mount, SandboxConfig};
use crate::contract::{Capabilities, Layout, MountPoint, Sandbox, SandboxProvider};
use crate::dirs::{ThreadDirs, let_read, safe_name};
use crate::egress::Network;
use crate::error::{Result, SandboxError};
use crate::files::{Place, Root, Roots};
use crate::local::LocalSandbox;
use crate::locks::FileLocks;
use crate::mounts::MountTable;
use crate::path::{
    HISTORY, HostPath, LARGE_RESULTS, OUTPUTS, SKILLS, UPLOADS, USER_SKILLS, VPath, WORKSPACE,
};
use crate::tier::{Setting, Tier, TierReport};

/// Sandboxes that nobody holds are forgotten beyond this many; their files stay.
const KEPT: usize = 256;

#[derive(Debug)]
pub struct LocalSandboxProvider {
    shared: Arc<Shared>,
    skills: Option<PathBuf>,
    sandboxes: Mutex<HashMap<SandboxId, Arc<LocalSandbox>>>,
}

/// What all sandboxes of a provider have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: SandboxConfig,
    /// Never visible to a command, wherever it lies.
    pub(crate) home: PathBuf,
    pub(crate) mounted_at: Vec<String>,
    pub(crate) closing: CancellationToken,
    pub(crate) locks: FileLocks,
    hands: Arc<Semaphore>,
    setting: OnceLock<Setting>,
    mounts: OnceLock<MountTable>,
}

/// How many threads work on files at a time. Hundreds of runs that each look at a folder would have as many threads,
/// which cost memory and do not make the disk faster.
const HANDS: usize = 32;

impl Shared {
    /// Does what waits for the disk on a thread of its own.
    pub(crate) async fn at_the_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let hand = Arc::clone(&self.hands).acquire_owned().await.map_err(io::Error::other)?;
        let working = tokio::task::spawn_blocking(move || {
            // Held until it is done, also where nobody waits for it any more.
            let _hand = hand;
            work()
        });
        working.await.map_err(io::Error::other)
    }

    /// Found out by the first who asks, which blocks for a few milliseconds.
    pub(crate) fn setting(&self) -> &Setting {
        self.setting.get_or_init(|| Setting::find(&self.config, &self.home))
    }

    pub(crate) fn tier(&self) -> &TierReport {
        &self.setting().report
    }

    /// Whose the files of threads must become, where commands are run by somebody who is not hart.
    fn new_owner(&self) -> Option<u32> {
        let is_root = rustix::process::geteuid().is_root();
        is_root.then(|| self.setting().identity.owner()).flatten()
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        let tier = self.tier().tier;
        let network = match (tier, &self.config.network) {
            (Tier::Host, _) | (Tier::Isolated | Tier::Landlock, Network::Allow) => true,
            (Tier::Isolated, Network::Hosts(hosts)) => !hosts.is_empty(),
            _ => false,
        };
        Capabilities::new(tier, network)
    }

    /// Read once: what lies where does not change below a running hart.
    pub(crate) fn mounts(&self) -> &MountTable {
        self.mounts.get_or_init(MountTable::read)
    }
}

impl LocalSandboxProvider {
    /// `home` is the directory of hart's data; `skills` is shown read-only at `/mnt/skills`.
    pub fn new(config: SandboxConfig, home: PathBuf, skills: Option<PathBuf>) -> Result<Self> {
        config.validate()?;
        let home = std::path::absolute(home).map_err(|source| SandboxError::BadConfig {
            what: format!("the home directory has no absolute form: {source}"),
            fix: "name an existing directory".to_owned(),
        })?;
        refuse_to_show(&home, &config, skills.as_deref())?;
        // What is in the home is made when it is first needed.
        let is_missing = |mount: &&Mount| !mount.host_path.is_dir() && !mount.host_path.starts_with(&home);
        for mount in config.mounts.iter().filter(is_missing) {
            tracing::warn!(
                at = mount.container_path,
                "a configured mount has no directory on the host; not shown"
            );
        }
        let mounted_at = config.mounts.iter().map(|mount| mount.container_path.clone()).collect();
        let shared = Shared {
            config,
            home,
            mounted_at,
            closing: CancellationToken::new(),
            locks: FileLocks::default(),
            hands: Arc::new(Semaphore::new(HANDS)),
            setting: OnceLock::new(),
            mounts: OnceLock::new(),
        };
        Ok(Self { shared: Arc::new(shared), skills, sandboxes: Mutex::default() })
    }

    pub fn thread_dirs(&self, thread: &ThreadId, user: &UserId) -> ThreadDirs {
        ThreadDirs::new(&self.shared.home, user, thread)
    }

    /// Deletes all files of a thread. Nothing there is no error.
    pub async fn delete_files(&self, thread: &ThreadId, user: &UserId) -> io::Result<()> {
        let dirs = self.thread_dirs(thread, user);
        self.shared.at_the_disk(move || dirs.delete()).await?
    }

    /// Where a path of a thread is on this machine: for showing it to the user, not for opening it.
    pub fn host_path(&self, thread: &ThreadId, user: &UserId, path: &VPath) -> Option<HostPath> {
        match self.roots(&self.thread_dirs(thread, user)).locate(path) {
            Ok(Place::In { root, relative }) => Some(HostPath::new(root.host.as_path().join(relative))),
            Ok(Place::UserData) | Err(_) => None,
        }
    }

    fn roots(&self, dirs: &ThreadDirs) -> Roots {
        let own = [
            (WORKSPACE, dirs.workspace(), true),
            (UPLOADS, dirs.uploads(), true),
            (OUTPUTS, dirs.outputs(), true),
            (LARGE_RESULTS, dirs.large_results(), false),
            (HISTORY, dirs.history(), false),
            (USER_SKILLS, dirs.of_user().skills(), false),
        ];
        let mut roots: Vec<Root> = own
            .into_iter()
            .map(|(shown_at, host, writable)| Root { shown_at: VPath::root(shown_at), host, writable })
            .collect();
        let skills = self.skills.iter().map(|host| (SKILLS, host, false));
        let mounts = self.shared.config.mounts.iter();
        let mounts = mounts.map(|mount| (mount.container_path.as_str(), &mount.host_path, !mount.read_only));
        roots.extend(skills.chain(mounts).map(|(shown_at, host, writable)| Root {
            shown_at: VPath::root(shown_at),
            host: HostPath::new(host.clone()),
            writable,
        }));
        Roots(roots)
    }
}

/// What contains the home, or lies among the users' files, would show every thread the files of all others.
fn refuse_to_show(home: &Path, config: &SandboxConfig, skills: Option<&Path>) -> Result<()> {
    let (home, users) = (real(home), real(&home.join("users")));
    let mounts = config.mounts.iter().map(|mount| (mount.container_path.as_str(), mount.host_path.as_path()));
    for (shown_at, host) in mounts.chain(skills.map(|skills| (SKILLS, skills))) {
        let host = real(host);
        let what = if home.starts_with(&host) {
            "contains the home directory of hart"
        } else if host.starts_with(&users) {
            "lies among the files of threads, in the home directory of hart"
        } else {
            continue;
        };
        return Err(SandboxError::BadConfig {
            what: format!("what `{shown_at}` shall show {what}"),
            fix: "name a directory that holds only what all threads may see".to_owned(),
        });
    }
    Ok(())
}

/// Where a path leads, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let found = path.ancestors().find_map(|above| Some((above, std::fs::canonicalize(above).ok()?)));
    found.map_or_else(
        || path.to_owned(),
        |(above, real)| match path.strip_prefix(above) {
            Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
            _ => real,
        },
    )
}

#[async_trait]
impl SandboxProvider for LocalSandboxProvider {
    async fn acquire(&self, thread: &ThreadId, user: &UserId) -> Result<Arc<dyn Sandbox>> {
        if self.shared.closing.is_cancelled() {
            return Err(SandboxError::Unavailable {
                reason: "the sandbox provider is shutting down".to_owned(),
                fix: "try again once hart has restarted".to_owned(),
            });
        }
        let dirs = self.thread_dirs(thread, user);
        let id =
            SandboxId::from(format!("local:{}:{}", safe_name(user.as_str()), safe_name(thread.as_str())));
        if let Some(known) = self.get(&id).await
            && self.shared.new_owner().is_none()
            && dirs.are_there()
        {
            return Ok(known);
        }
        let roots = self.roots(&dirs);
        let shared = Arc::clone(&self.shared);
        // What hart made itself. A folder of the operator's own stays as it is.
        let skills = self.skills.iter().filter(|skills| skills.starts_with(&self.shared.home)).cloned();
        let skills: Vec<_> = skills.chain([dirs.of_user().skills().as_path().to_owned()]).collect();
        let create = move || {
            dirs.create()?;
            if let Some(owner) = shared.new_owner() {
                dirs.give_to(owner)?;
                for skills in skills {
                    match let_read(&skills, owner) {
                        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                            tracing::warn!(%error, "commands cannot read all skills");
                        }
                        _ => {}
                    }
                }
                if shared.tier().tier == Tier::Landlock {
                    dirs.let_pass()?;
                }
            }
            Ok(())
        };
        self.shared
            .at_the_disk(create)
            .await
            .and_then(|created| created)
            .map_err(|source| SandboxError::io(&VPath::root(WORKSPACE), source))?;
        let mut sandboxes = self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        if sandboxes.len() >= KEPT {
            sandboxes.retain(|_, sandbox| Arc::strong_count(sandbox) > 1);
        }
        let sandbox = sandboxes
            .entry(id.clone())
            .or_insert_with(|| Arc::new(LocalSandbox::new(id, roots, Arc::clone(&self.shared))));
        Ok(Arc::clone(sandbox) as Arc<dyn Sandbox>)
    }

    async fn get(&self, id: &SandboxId) -> Option<Arc<dyn Sandbox>> {
        let sandboxes = self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        sandboxes.get(id).map(|sandbox| Arc::clone(sandbox) as Arc<dyn Sandbox>)
    }

    async fn release(&self, id: &SandboxId) -> Result<()> {
        let mut sandboxes = self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        // Another run of the thread may still hold it; then it must stay the one that everyone gets.
        if sandboxes.get(id).is_some_and(|sandbox| Arc::strong_count(sandbox) == 1) {
            sandboxes.remove(id);
        }
        Ok(())
    }

    async fn shutdown(&self) {
        self.shared.closing.cancel();
        self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn tier(&self) -> TierReport {
        self.shared.tier().clone()
    }

    fn layout(&self) -> Layout {
        let mounts = self.shared.config.mounts.iter().filter(|mount| mount.host_path.is_dir());
        let mounts =
            mounts.map(|mount| MountPoint { path: mount.container_path.clone(), read_only: mount.read_only });
        Layout { capabilities: self.shared.capabilities(), mounts: mounts.collect() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn only_so_many_are_at_the_disk_at_once() {
        let home = tempfile::tempdir().unwrap();
        let provider =
            LocalSandboxProvider::new(SandboxConfig::default(), home.path().to_owned(), None).unwrap();
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut visits = tokio::task::JoinSet::new();
        for _ in 0..4 * HANDS {
            let (shared, now, most) = (Arc::clone(&provider.shared), Arc::clone(&now), Arc::clone(&most));
            let visit = move || {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // Long enough for all to come whom nobody keeps out.
                std::thread::sleep(Duration::from_millis(20));
                now.fetch_sub(1, Ordering::SeqCst);
            };
            visits.spawn(async move { shared.at_the_disk(visit).await });
        }
        assert!(visits.join_all().await.iter().all(Result::is_ok));
        let most = most.load(Ordering::SeqCst);
        assert!((2..=HANDS).contains(&most), "{most} at once");
    }
}
