//! `recording`: whether runs are recorded, and how much of them.
//!
//! Invariant: how long recordings are kept is said in one place, with the streams of their runs.

use hart_runtime::recording::RecordingLimits;
use serde::Deserialize;

use super::node::Node;
use super::problem::Findings;
use super::section::{Invalid, checked};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordingConfig {
    pub enabled: bool,
    pub limits: RecordingLimits,
}

impl RecordingConfig {
    pub(super) fn read(tree: &Node, findings: &mut Findings) -> Self {
        let Section { enabled, max_mb_per_run } =
            checked(tree, "recording", findings, |section: &Section| match section.max_mb_per_run {
                0 => Err(Invalid {
                    key: "max_mb_per_run",
                    what: "`max_mb_per_run` is 0".to_owned(),
                    help: Some("write 1 or more, or `enabled: false` to record nothing".to_owned()),
                }),
                _ => Ok(()),
            });
        Self { enabled, limits: RecordingLimits { max_bytes: u64::from(max_mb_per_run) << 20 } }
    }
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Section {
    enabled: bool,
    max_mb_per_run: u32,
}

impl Default for Section {
    fn default() -> Self {
        Self { enabled: true, max_mb_per_run: 32 }
    }
}
