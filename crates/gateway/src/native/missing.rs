//! What DeerFlow has and this server does not.
//!
//! Invariant: it is refused by its name, whatever is asked of it; an address that neither has is not found.

/// The first parts of its addresses, and its name.
const SUBSYSTEMS: &[(&str, &str)] = &[
    ("/api/memory", "memory"),
    ("/api/mcp", "MCP"),
    ("/api/channels", "channels"),
    ("/api/integrations", "integrations"),
    ("/api/webhooks", "webhooks of channels"),
    ("/api/scheduled-tasks", "scheduler"),
    ("/api/console", "console"),
    ("/api/user-profile", "user profile"),
];

/// The same, behind `/api/threads/{thread}`.
const OF_THREADS: &[(&str, &str)] =
    &[("/mcp-tasks", "MCP"), ("/scheduled-tasks", "scheduler"), ("/browser", "browser")];

/// The subsystem that an address is of, if there is none here.
pub(crate) fn subsystem(path: &str) -> Option<&'static str> {
    let within = |table: &'static [(&str, &'static str)], path: &str| {
        let found = table.iter().find(|(start, _)| {
            path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        found.map(|(_, name)| *name)
    };
    let of_thread =
        path.strip_prefix("/api/threads/").and_then(|rest| rest.find('/').and_then(|at| rest.get(at..)));
    within(SUBSYSTEMS, path).or_else(|| within(OF_THREADS, of_thread?))
}

#[cfg(test)]
mod tests {
    use super::subsystem;

    #[test]
    fn addresses_and_their_subsystems() {
        for (path, name) in [
            ("/api/memory", Some("memory")),
            ("/api/memory/facts/1", Some("memory")),
            ("/api/mcp/config", Some("MCP")),
            ("/api/channels/", Some("channels")),
            ("/api/threads/t/goal", None),
            ("/api/threads/t/browser/navigate", Some("browser")),
            ("/api/memoryless", None),
            ("/api/threads/t/browsers", None),
            ("/api/threads/t", None),
            ("/memory", None),
        ] {
            assert_eq!(subsystem(path), name, "{path}");
        }
    }
}
