//! The keys of `hart serve`.
//!
//! Invariant: the defaults told here are those of the types that are read.

use super::{AMOUNT, COUNT, Key, Kind, key};

pub(super) fn keys() -> [Key; 13] {
    [
        key("server", Kind::Section, "{}", "Where `hart serve` listens, and who may ask it."),
        key(
            "server.host",
            Kind::Text,
            "127.0.0.1",
            "The address to listen on; beyond loopback a token is needed.",
        ),
        key("server.port", Kind::Int { min: 0, max: 65535 }, "2026", "The port; 0: any that is free."),
        key(
            "server.token",
            Kind::Text,
            "$HART_TOKEN",
            "What clients must present: `Authorization: Bearer …`.",
        ),
        key("server.allowed_hosts", Kind::Texts, "[]", "Names the server goes by, beside those of loopback."),
        key(
            "server.allowed_origins",
            Kind::Texts,
            "[]",
            "Origins of web pages that may call it, beside those of loopback.",
        ),
        key("server.drain_seconds", AMOUNT, "10", "How long runs may go on when the server is told to stop."),
        key(
            "server.otlp_endpoint",
            Kind::Text,
            "$OTEL_EXPORTER_OTLP_ENDPOINT",
            "Where traces of runs are sent: a collector's address, such as http://127.0.0.1:4318.",
        ),
        key("server.max_body_mb", COUNT, "64", "How large a request may be."),
        key("server.request_seconds", COUNT, "60", "How long a request may take until its answer begins."),
        key(
            "server.private_webhooks",
            Kind::Bool,
            "false",
            "Whether webhooks may go to this machine and to private networks.",
        ),
        key(
            "server.keep_streams_days",
            AMOUNT,
            "7",
            "How long the stream of a run that ended can be read again.",
        ),
        key("server.resume", Kind::Bool, "true", "Whether runs that a crash cut off go on by themselves."),
    ]
}
