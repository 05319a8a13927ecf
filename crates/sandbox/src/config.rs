//! The `sandbox:` section of the configuration.
//!
//! Invariant: every key has a default, and an unknown key is an error rather than a setting without effect.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::egress::Network;
use crate::error::{Result, SandboxError};
use crate::path::{HISTORY, LARGE_RESULTS, SKILLS, USER_DATA, USER_SKILLS, VPath};

#[derive(Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxConfig {
    /// The provider, spelled as DeerFlow spells it (`deerflow.sandbox.local:LocalSandboxProvider`) or `local`.
    #[serde(rename = "use")]
    pub provider: Option<String>,
    /// Where isolation is unavailable, run commands unconfined instead of refusing them. Not a boundary.
    pub allow_host_bash: bool,
    pub bash_output_max_chars: usize,
    pub read_file_output_max_chars: usize,
    pub ls_output_max_chars: usize,
    /// In seconds.
    #[serde(deserialize_with = "seconds")]
    pub bash_command_timeout: Duration,
    /// More host directories that files and commands of every thread see.
    pub mounts: Vec<Mount>,
    /// Variables every command gets, beside the few the sandbox sets itself.
    pub environment: BTreeMap<String, String>,
    /// What commands reach outside: nothing, everything, or the listed hosts through hart's proxy.
    pub network: Network,
    /// In bytes, of one command and all it starts. `None` is half of the machine's memory, zero no limit.
    #[serde(deserialize_with = "bytes")]
    pub memory_limit: Option<u64>,
    /// Processes and threads of one command; zero is no limit.
    pub pids_limit: u32,
    /// How many processors' worth of time one command may use; zero is no limit.
    #[serde(deserialize_with = "processors")]
    pub cpus: f64,
    /// The user id commands get where hart itself is root.
    pub run_as: u32,
    /// In bytes, of all files of a thread; zero is no limit.
    #[serde(deserialize_with = "some_bytes")]
    pub disk_limit: u64,
    /// In bytes, what must stay free on the disk that holds the threads' files. `None` is a gigabyte or a twentieth of
    /// the disk, whichever is less; zero is nothing.
    #[serde(deserialize_with = "bytes")]
    pub disk_reserve: Option<u64>,
}

/// Written out because values of `environment` may be secrets, and this ends up in logs: it shows the names only.
impl fmt::Debug for SandboxConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Taken apart so that a new field cannot be forgotten here.
        let Self {
            provider,
            allow_host_bash,
            bash_output_max_chars,
            read_file_output_max_chars,
            ls_output_max_chars,
            bash_command_timeout,
            mounts,
            environment,
            network,
            memory_limit,
            pids_limit,
            cpus,
            run_as,
            disk_limit,
            disk_reserve,
        } = self;
        f.debug_struct("SandboxConfig")
            .field("provider", provider)
            .field("allow_host_bash", allow_host_bash)
            .field("bash_output_max_chars", bash_output_max_chars)
            .field("read_file_output_max_chars", read_file_output_max_chars)
            .field("ls_output_max_chars", ls_output_max_chars)
            .field("bash_command_timeout", bash_command_timeout)
            .field("mounts", mounts)
            .field("environment", &environment.keys())
            .field("network", network)
            .field("memory_limit", memory_limit)
            .field("pids_limit", pids_limit)
            .field("cpus", cpus)
            .field("run_as", run_as)
            .field("disk_limit", disk_limit)
            .field("disk_reserve", disk_reserve)
            .finish()
    }
}

/// A host directory shown in the sandbox at `container_path`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    pub host_path: PathBuf,
    pub container_path: String,
    #[serde(default)]
    pub read_only: bool,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self {
            provider: None,
            allow_host_bash: false,
            bash_output_max_chars: 20_000,
            read_file_output_max_chars: 50_000,
            ls_output_max_chars: 20_000,
            bash_command_timeout: Duration::from_secs(600),
            mounts: Vec::new(),
            environment: BTreeMap::new(),
            network: Network::Off,
            memory_limit: None,
            pids_limit: 512,
            cpus: 0.0,
            run_as: 65_532,
            disk_limit: 8 << 30,
            disk_reserve: None,
        }
    }
}

/// What a mount may neither cover nor lie in: the sandbox builds these itself.
const RESERVED: [&str; 18] = [
    USER_DATA,
    SKILLS,
    USER_SKILLS,
    LARGE_RESULTS,
    HISTORY,
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/proc",
    "/dev",
    "/sys",
    "/tmp",
    "/opt",
];

impl SandboxConfig {
    /// Says what cannot work before a thread finds out.
    pub fn validate(&self) -> Result<()> {
        if let Some(provider) = &self.provider {
            let class = provider.rsplit([':', '.']).next().unwrap_or_default();
            if class != "LocalSandboxProvider" && class != "local" {
                return Err(bad(
                    format!("`use: {provider}` is not a provider this build has"),
                    "write `use: local`, or leave the key out",
                ));
            }
        }
        let mut seen: Vec<&str> = Vec::new();
        for mount in &self.mounts {
            let path = mount.container_path.as_str();
            if VPath::parse_with(path, &[path.to_owned()]).is_ok_and(|normal| normal.as_str() == path)
                && path != "/"
            {
                if let Some(other) = RESERVED.iter().chain(&seen).find(|other| overlap(path, other)) {
                    return Err(bad(
                        format!("mount at `{path}` overlaps `{other}`"),
                        "choose a container_path of its own, for example `/mnt/data`",
                    ));
                }
            } else {
                return Err(bad(
                    format!("container_path `{path}` is not an absolute path in its plain form"),
                    "write it without `.`, `..` or a slash at the end, for example `/mnt/data`",
                ));
            }
            if !mount.host_path.is_absolute() {
                return Err(bad(
                    format!("host_path of the mount at `{path}` is not absolute"),
                    "write the full path of the host directory",
                ));
            }
            seen.push(path);
        }
        if self.run_as == 0 {
            return Err(bad(
                "`run_as: 0` would make commands root".to_owned(),
                "choose a user id that nothing else on the machine uses, or leave the key out",
            ));
        }
        self.environment.iter().try_for_each(|(name, value)| crate::exec::check_variable(name, value))
    }
}

fn overlap(a: &str, b: &str) -> bool {
    let under = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    under(a, b) || under(b, a)
}

fn bad(what: String, fix: &str) -> SandboxError {
    SandboxError::BadConfig { what, fix: fix.to_owned() }
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Duration, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| serde::de::Error::custom(format!("{seconds} is no number of seconds above zero")))
}

/// A number of bytes, or text such as `2g`, `512MiB`.
fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(u64),
        Text(String),
    }
    match Option::<Written>::deserialize(deserializer)? {
        None => Ok(None),
        Some(Written::Number(number)) => Ok(Some(number)),
        Some(Written::Text(text)) => parse_bytes(&text).map(Some).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "`{text}` is no amount of bytes; write for example `2g` or `512m`"
            ))
        }),
    }
}

fn some_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<u64, D::Error> {
    bytes(deserializer)?
        .ok_or_else(|| serde::de::Error::custom("an amount such as `8g` is missing; 0 is no limit"))
}

fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text.strip_prefix(digits)?.trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return None,
    };
    digits.trim_end().parse::<u64>().ok()?.checked_mul(1 << unit)
}

fn processors<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<f64, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if number == 0.0 || (number.is_finite() && number >= 0.01) {
        return Ok(number);
    }
    Err(serde::de::Error::custom(format!("{number} is no number of processors; write for example 1.5")))
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
