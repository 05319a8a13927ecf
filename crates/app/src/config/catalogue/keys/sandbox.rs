//! The keys of the sandbox: where commands run and files are kept.
//!
//! Invariant: the defaults told here are those of the types that are read.

use super::{AMOUNT, Key, Kind, key};

/// Where commands run and files are kept.
pub(super) fn sandbox() -> [Key; 19] {
    [
        key("sandbox", Kind::Section, "{}", "Where commands run and files are kept."),
        key("sandbox.use", Kind::Text, "local", "The provider: `local`, or DeerFlow's class path of it."),
        key(
            "sandbox.allow_host_bash",
            Kind::Bool,
            "false",
            "Where isolation is unavailable, run commands unconfined instead of refusing them. Not a boundary.",
        ),
        key(
            "sandbox.bash_output_max_chars",
            AMOUNT,
            "20000",
            "How much of a command's output the model sees.",
        ),
        key(
            "sandbox.read_file_output_max_chars",
            AMOUNT,
            "50000",
            "How much of a file the model sees at once.",
        ),
        key("sandbox.ls_output_max_chars", AMOUNT, "20000", "How much of a listing the model sees."),
        key("sandbox.bash_command_timeout", Kind::Seconds, "600", "Seconds after which a command is ended."),
        key("sandbox.mounts", Kind::Sections, "[]", "More host directories that every thread sees."),
        key("sandbox.mounts[].host_path", Kind::Text, "", "The directory on the host, absolute."),
        key("sandbox.mounts[].container_path", Kind::Text, "", "Where it appears, for example /mnt/data."),
        key("sandbox.mounts[].read_only", Kind::Bool, "false", "Whether it can only be read."),
        key(
            "sandbox.environment",
            Kind::TextMap,
            "{}",
            "Variables every command gets; `$VAR` takes the value from the environment.",
        ),
        key(
            "sandbox.network",
            Kind::Any,
            "off",
            "What commands reach: `off`, `allow` (the host's network), or a list of hosts such as `*.example.org`.",
        ),
        key(
            "sandbox.memory_limit",
            Kind::Any,
            "half of the machine's",
            "Memory of one command and all it starts, such as `2g`; 0 is no limit.",
        ),
        key("sandbox.pids_limit", AMOUNT, "512", "Processes and threads of one command; 0 is no limit."),
        key("sandbox.cpus", Kind::Number, "0", "Processors' worth of time of one command; 0 is no limit."),
        key(
            "sandbox.disk_limit",
            Kind::Any,
            "8g",
            "What all files of a thread may take, such as `2g`; 0 is no limit.",
        ),
        key(
            "sandbox.disk_reserve",
            Kind::Any,
            "1g or a twentieth",
            "What must stay free on the disk of the threads' files; with less, nothing is written or run.",
        ),
        key("sandbox.run_as", AMOUNT, "65532", "The user id of commands where hart itself is root."),
    ]
}

pub(super) const DEERFLOW_SANDBOX_KEYS: &[&str] = &[
    "image",
    "port",
    "replicas",
    "overflow_policy",
    "acquire_timeout",
    "burst_limit",
    "container_prefix",
    "idle_timeout",
    "health_check_skip_seconds",
    "ownership",
    "thread_data_mounts",
    "provisioner_url",
    "provisioner_api_key",
];
