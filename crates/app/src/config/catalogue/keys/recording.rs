//! The keys of recordings.
//!
//! Invariant: the defaults told here are those of the types that are read.

use super::{COUNT, Key, Kind, key};

pub(super) fn keys() -> [Key; 3] {
    [
        key("recording", Kind::Section, "{}", "What runs ask of models and tools, kept for `hart replay`."),
        key(
            "recording.enabled",
            Kind::Bool,
            "true",
            "Whether runs are recorded; kept as long as their streams (`server.keep_streams_days`).",
        ),
        key(
            "recording.max_mb_per_run",
            COUNT,
            "32",
            "What the recording of one run takes at most; behind it the run is recorded no further.",
        ),
    ]
}
