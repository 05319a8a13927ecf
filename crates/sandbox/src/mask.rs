//! Takes host paths out of what a command prints.
//!
//! A command cannot reach them, but it can see some: `/proc/self/mountinfo` names what its directories were mounted
//! from. This is cosmetics for the model and the user, no boundary.
//!
//! Invariant: text without a host path comes back as it was, without a copy.

use std::borrow::Cow;

use crate::files::Roots;
use crate::path::{USER_DATA, WORKSPACE};

#[derive(Clone, Debug, Default)]
pub(crate) struct HostMask(Vec<Needle>);

#[derive(Clone, Debug)]
struct Needle {
    text: String,
    shown: String,
    /// The kernel shows paths from the root of their file system, so what stands before the needle varies.
    reaches_back: bool,
}

impl HostMask {
    pub(crate) fn new(roots: &Roots) -> Self {
        let mut needles = Vec::new();
        for root in &roots.0 {
            let Some(host) = root.host.as_path().to_str() else { continue };
            if root.shown_at.as_str() == WORKSPACE {
                let above = host.rsplit_once('/').map_or(host, |(above, _)| above);
                needles.push(Needle::of_thread(above, USER_DATA));
            } else if root.is_archive() {
                needles.push(Needle::of_thread(host, root.shown_at.as_str()));
            } else if !root.shown_at.is_under(USER_DATA) && host.len() > 1 {
                let (text, shown) = (host.to_owned(), root.shown_at.to_string());
                needles.push(Needle { text, shown, reaches_back: false });
            }
        }
        Self(needles)
    }

    pub(crate) fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut masked = Cow::Borrowed(text);
        for needle in &self.0 {
            if masked.contains(&needle.text) {
                masked = Cow::Owned(needle.replace(&masked));
            }
        }
        masked
    }
}

impl Needle {
    /// `/users/{user}/threads/{thread}/user-data` and its like: enough to know the thread's directories by.
    fn of_thread(host: &str, shown: &str) -> Self {
        const OWN: usize = 5;
        let at = host.rmatch_indices('/').nth(OWN - 1).map_or(0, |(at, _)| at);
        let text = host.get(at..).unwrap_or(host).to_owned();
        Self { text, shown: shown.to_owned(), reaches_back: true }
    }

    fn replace(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(&self.text) {
            let ends = after.is_empty() || after.starts_with(|c: char| !is_part_of_name(c));
            let kept = if self.reaches_back && ends {
                before.trim_end_matches(|c: char| c == '/' || is_part_of_name(c))
            } else {
                before
            };
            out.push_str(kept);
            out.push_str(if ends { &self.shown } else { &self.text });
            rest = after;
        }
        out.push_str(rest);
        out
    }
}

fn is_part_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '@')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Root;
    use crate::path::{HostPath, VPath};

    #[test]
    fn host_paths_become_what_the_model_knows() {
        let root = |shown: &str, host: &str| Root {
            shown_at: VPath::root(shown),
            host: HostPath::new(host.into()),
            writable: true,
        };
        let mask = HostMask::new(&Roots(vec![
            root(WORKSPACE, "/srv/hart/users/u/threads/t/user-data/workspace"),
            root("/mnt/user-data/uploads", "/srv/hart/users/u/threads/t/user-data/uploads"),
            root("/mnt/skills", "/srv/hart/skills"),
            root("/conversation_history", "/srv/hart/users/u/threads/t/conversation_history"),
        ]));
        for (text, masked) in [
            ("/srv/hart/users/u/threads/t/user-data/workspace/a b", "/mnt/user-data/workspace/a b"),
            ("1 2 /hart/users/u/threads/t/user-data/uploads /mnt rw", "1 2 /mnt/user-data/uploads /mnt rw"),
            ("x='/srv/hart/users/u/threads/t/user-data'", "x='/mnt/user-data'"),
            ("/srv/hart/users/u/threads/t/user-data2", "/srv/hart/users/u/threads/t/user-data2"),
            ("/srv/hart/skills/x /srv/hart/skills", "/mnt/skills/x /mnt/skills"),
            ("/mnt/user-data/workspace", "/mnt/user-data/workspace"),
            ("3 4 /hart/users/u/threads/t/conversation_history /x ro", "3 4 /conversation_history /x ro"),
        ] {
            assert_eq!(mask.apply(text), masked);
        }
        assert!(matches!(mask.apply("plain"), Cow::Borrowed("plain")));
    }
}
