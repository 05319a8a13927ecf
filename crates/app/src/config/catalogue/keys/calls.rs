//! The keys of how models are called, whichever it is.
//!
//! Invariant: the defaults told here are those of the types that are read.

use super::{AMOUNT, COUNT, Key, Kind, key};

/// How models are called, whichever it is.
pub(super) fn calls() -> [Key; 13] {
    [
        key("llm_call", Kind::Section, "{}", "How models are called: how many at once, how often again."),
        key("llm_call.max_concurrent_calls", AMOUNT, "0", "Calls at once in the whole process; 0: no limit."),
        key(
            "llm_call.retry_max_attempts",
            COUNT,
            "3",
            "Attempts at a call that may succeed later; `max_retries` of a model goes before it.",
        ),
        key("llm_call.retry_base_delay_ms", AMOUNT, "1000", "The shortest pause before another attempt."),
        key("llm_call.retry_cap_delay_ms", AMOUNT, "8000", "The longest pause that no provider asked for."),
        key(
            "llm_call.burst_retry_base_delay_ms",
            AMOUNT,
            "5000",
            "The shortest pause after a provider said that requests come too fast.",
        ),
        key("circuit_breaker", Kind::Section, "{}", "Giving a model that keeps failing a rest."),
        key(
            "circuit_breaker.failure_threshold",
            AMOUNT,
            "5",
            "Failures in a row after which a model is not asked; 0: never.",
        ),
        key("circuit_breaker.recovery_timeout_sec", Kind::Seconds, "60", "How long it is not asked."),
        key("network", Kind::Section, "{}", "The way to models elsewhere; this machine is reached directly."),
        key(
            "network.proxy",
            Kind::Text,
            "$HTTPS_PROXY, $HTTP_PROXY, $ALL_PROXY",
            "The proxy for all models, `http://host:port`, or `none`.",
        ),
        key(
            "network.no_proxy",
            Kind::Text,
            "$NO_PROXY",
            "Hosts to reach without the proxy, with commas between.",
        ),
        key("network.ca_file", Kind::Text, "", "A PEM file of certificates to trust beside the system's."),
    ]
}
