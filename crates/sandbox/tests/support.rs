//! A sandbox in a directory of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hart_sandbox::{
    Exec, ExecOutput, LocalSandboxProvider, Sandbox, SandboxConfig, SandboxError, SandboxProvider, Tier,
    VPath, WriteMode,
};
use hart_types::{ThreadId, UserId};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Long enough for any machine; only a failing test waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Place {
    pub(crate) provider: LocalSandboxProvider,
    pub(crate) sandbox: Arc<dyn Sandbox>,
    pub(crate) home: PathBuf,
    /// Beside the home: what a sandbox must not reach.
    pub(crate) outside: PathBuf,
    _temporary: TempDir,
}

/// Says what a machine lacks; where tests count, that is a failure.
pub(crate) fn skipped(reason: impl std::fmt::Display) {
    assert!(std::env::var_os("CI").is_none(), "this must not be skipped here: {reason}");
    eprintln!("skipped: {reason}");
}

impl Place {
    pub(crate) async fn new() -> Self {
        Self::with(|_, _| None).await
    }

    /// `setup` gets the configuration and a directory beside the home, and may return a skills directory.
    pub(crate) async fn with(setup: impl FnOnce(&mut SandboxConfig, &PathBuf) -> Option<PathBuf>) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let (home, outside) = (temporary.path().join("home"), temporary.path().join("outside"));
        std::fs::create_dir_all(&home).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        let mut config = SandboxConfig::default();
        let skills = setup(&mut config, &outside);
        let provider = LocalSandboxProvider::new(config, home.clone(), skills).unwrap();
        let sandbox = provider.acquire(&ThreadId::from("thread"), &UserId::from("user")).await.unwrap();
        Self { provider, sandbox, home, outside, _temporary: temporary }
    }

    /// A sandbox that can run commands, or `None` (said aloud) where the kernel does not allow it.
    pub(crate) async fn isolated() -> Option<Self> {
        Self::isolated_with(|_, _| None).await
    }

    pub(crate) async fn isolated_with(
        setup: impl FnOnce(&mut SandboxConfig, &PathBuf) -> Option<PathBuf>,
    ) -> Option<Self> {
        let place = Self::with(setup).await;
        let report = place.provider.tier();
        if report.tier == Tier::Isolated {
            return Some(place);
        }
        skipped(&report);
        None
    }

    pub(crate) async fn run(&self, command: &str) -> ExecOutput {
        self.exec(Exec::new(command).timeout(PATIENCE)).await
    }

    pub(crate) async fn exec(&self, exec: Exec) -> ExecOutput {
        self.sandbox.exec(exec, None, &CancellationToken::new()).await.unwrap()
    }

    /// Standard output of a command that must succeed.
    pub(crate) async fn stdout(&self, command: &str) -> String {
        let output = self.run(command).await;
        assert!(output.exit.success(), "`{command}` ended with {output:?}");
        output.stdout.trim_end().to_owned()
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.home.join("users/user/threads/thread/user-data/workspace")
    }
}

/// Skills of all and of a user, for hart alone, as hart makes them; returns where those of all are.
pub(crate) fn private_skills(home: &Path, user: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let of_user = home.join("users").join(user).join("skills");
    std::fs::create_dir_all(home.join("skills/public/one")).unwrap();
    std::fs::create_dir_all(of_user.join("own")).unwrap();
    let files = [home.join("skills/public/one/SKILL.md"), of_user.join("own/SKILL.md")];
    for (file, text) in files.iter().zip(["for all\n", "for one\n"]) {
        std::fs::write(file, text).unwrap();
    }
    let secret = home.join("hart.db");
    std::fs::write(&secret, "database").unwrap();
    let dirs = ["skills/public/one", "skills/public", "skills"].map(|dir| home.join(dir));
    let all = files.into_iter().chain([secret]).map(|file| (file, 0o600));
    for (path, mode) in
        all.chain(dirs.into_iter().chain([of_user.join("own"), of_user]).map(|dir| (dir, 0o700)))
    {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
    home.join("skills")
}

/// Tools and commands read what [`private_skills`] made, and change nothing of it.
pub(crate) async fn skills_are_read(sandbox: &dyn Sandbox) {
    let names = ["/mnt/skills/public/one/SKILL.md", "/mnt/user-skills/own/SKILL.md"];
    for (name, text) in names.iter().zip(["for all\n", "for one\n"]) {
        let file = sandbox.path(name).unwrap();
        assert_eq!(sandbox.read_text(&file).await.unwrap(), text);
        let refused = sandbox.write(&file, b"forged", WriteMode::Overwrite).await.unwrap_err();
        assert!(matches!(refused, SandboxError::ReadOnly(_)), "{refused}");
    }
    let shown = format!("ls {} && cat {}", names[0].trim_end_matches("SKILL.md"), names.join(" "));
    let output = sandbox.exec(Exec::new(shown), None, &CancellationToken::new()).await.unwrap();
    assert_eq!(output.stdout, "SKILL.md\nfor all\nfor one\n", "{output:?}");
    if sandbox.capabilities().tier != Tier::Host {
        for name in names {
            let forge = format!("echo forged > {name} || rm {name}");
            let output = sandbox.exec(Exec::new(forge), None, &CancellationToken::new()).await.unwrap();
            assert!(!output.exit.success(), "{name}: {output:?}");
        }
    }
}

/// What others may do with the rest of the home is what they might before.
pub(crate) fn only_skills_were_opened(home: &Path) {
    use std::os::unix::fs::MetadataExt;
    let secret = std::fs::metadata(home.join("hart.db")).unwrap();
    assert_eq!((secret.mode() & 0o777, secret.gid()), (0o600, 0));
    let skill = std::fs::metadata(home.join("skills/public/one/SKILL.md")).unwrap();
    assert_eq!((skill.uid(), skill.mode() & 0o007), (0, 0), "hart's, and closed to everyone else");
}

pub(crate) fn path(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

/// Waits until `condition` holds.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..600 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what} did not happen");
}

/// Host processes whose command line contains `marker`.
pub(crate) fn processes_with(marker: &str) -> Vec<u32> {
    let own = std::process::id();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if pid != own && String::from_utf8_lossy(&line).contains(marker) {
            found.push(pid);
        }
    }
    found
}

/// A process and all that descend from it.
pub(crate) fn tree_of(root: u32) -> Vec<u32> {
    let mut tree = vec![root];
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let pid = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        // The name in it may hold anything, so counting starts behind it.
        let parent =
            stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        parents.extend(pid.zip(parent));
    }
    while let Some((pid, _)) =
        parents.iter().find(|(pid, parent)| tree.contains(parent) && !tree.contains(pid))
    {
        tree.push(*pid);
    }
    tree
}
