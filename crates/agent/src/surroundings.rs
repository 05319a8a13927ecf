//! What an agent is told of the place it works in.
//!
//! Invariant: it says what the sandbox has and how its commands are confined, nothing else, and the same each time.

use hart_kernel::Toggle;
use hart_sandbox::{HISTORY, LARGE_RESULTS, Layout, SKILLS, Tier, USER_SKILLS};

use crate::Features;
use crate::prompt::escape;

/// The folders beside the thread's own three, and what commands can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkingDirectory {
    layout: Layout,
    skills: bool,
    large_results: bool,
    history: bool,
}

impl WorkingDirectory {
    /// `None` for an agent without files.
    pub(crate) fn of(features: &Features) -> Option<Self> {
        let layout = features.sandbox.as_ref()?.provider().layout();
        let on = |toggle: &Toggle| !toggle.is_off();
        Some(Self {
            layout,
            skills: features.skills.is_some(),
            large_results: on(&features.tool_output),
            history: on(&features.summarization),
        })
    }

    /// One line each.
    pub(crate) fn places(&self) -> String {
        let mut lines = Vec::new();
        if self.skills {
            lines.push(format!("- `{SKILLS}`, `{USER_SKILLS}` (the user's own): know-how you may read."));
        }
        let archives = [(self.large_results, LARGE_RESULTS), (self.history, HISTORY)];
        let archives = archives.into_iter().filter(|(there, _)| *there).map(|(_, path)| format!("`{path}`"));
        let archives: Vec<_> = archives.collect();
        if !archives.is_empty() {
            lines.push(format!("- {}: what did not fit here, kept for you to read.", archives.join(", ")));
        }
        for mount in &self.layout.mounts {
            let use_of = if mount.read_only { "you may read" } else { "you may read and change" };
            lines.push(format!("- `{}`: shared with you; {use_of} it.", escape(&mount.path)));
        }
        lines.join("\n")
    }

    /// One sentence.
    pub(crate) fn commands(&self) -> &'static str {
        match (self.layout.capabilities.tier, self.layout.capabilities.network) {
            (Tier::Isolated | Tier::Landlock, false) => "Commands run isolated and without a network.",
            (Tier::Isolated | Tier::Landlock, true) => {
                "Commands run isolated; they reach the network as far as it is allowed."
            }
            (Tier::Host, _) => {
                "Commands are not confined: they run on the user's own machine, with its network. Touch nothing \
                 else there."
            }
            (Tier::Refused, _) => "Commands cannot be run here.",
        }
    }
}

#[cfg(test)]
impl WorkingDirectory {
    pub(crate) fn example() -> Self {
        let capabilities = hart_sandbox::Capabilities::new(Tier::Isolated, false);
        let layout = Layout { capabilities, mounts: Vec::new() };
        Self { layout, skills: true, large_results: true, history: true }
    }
}

#[cfg(test)]
mod tests {
    use hart_sandbox::{Capabilities, MountPoint};

    use super::*;

    fn place(tier: Tier, network: bool) -> WorkingDirectory {
        let layout = Layout { capabilities: Capabilities::new(tier, network), mounts: Vec::new() };
        WorkingDirectory { layout, skills: false, large_results: false, history: false }
    }

    #[test]
    fn only_what_is_there_is_named() {
        let mut it = place(Tier::Isolated, false);
        assert_eq!(it.places(), "");
        it.skills = true;
        it.large_results = true;
        let mount = |path: &str, read_only| MountPoint { path: path.to_owned(), read_only };
        it.layout.mounts = vec![mount("/mnt/data", false), mount("/mnt/<b>", true)];
        assert_eq!(
            it.places(),
            "- `/mnt/skills`, `/mnt/user-skills` (the user's own): know-how you may read.\n\
             - `/large_tool_results`: what did not fit here, kept for you to read.\n\
             - `/mnt/data`: shared with you; you may read and change it.\n\
             - `/mnt/&lt;b&gt;`: shared with you; you may read it."
        );
    }

    /// Two crates that must not know each other name them.
    #[test]
    fn skills_are_where_their_catalogue_says() {
        use hart_knowledge::skills::{SHOWN_AT, USER_SHOWN_AT};
        assert_eq!((SKILLS, USER_SKILLS), (SHOWN_AT, USER_SHOWN_AT));
    }

    #[test]
    fn commands_are_as_they_are() {
        assert!(place(Tier::Isolated, false).commands().contains("without a network"));
        for open in [place(Tier::Isolated, true), place(Tier::Landlock, true), place(Tier::Host, true)] {
            assert!(!open.commands().contains("without"), "{}", open.commands());
        }
        assert!(!place(Tier::Host, true).commands().contains("isolated"));
        assert!(place(Tier::Refused, false).commands().contains("cannot"));
    }
}
