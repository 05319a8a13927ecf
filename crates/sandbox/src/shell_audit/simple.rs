//! A simple command: its words, where its input comes from and its output goes.
//!
//! Invariant: the program is the one that runs in the end, behind whatever stands before it.

#[derive(Clone, Debug, Default)]
pub(super) struct Simple {
    /// Without quotes; a substitution is `$(…)` with what stands in it.
    pub(super) words: Vec<String>,
    pub(super) redirects: Vec<Redirect>,
    /// What a here-document or here-string feeds it.
    pub(super) input: Option<String>,
    /// Texts of the substitutions in it.
    pub(super) substitutions: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Redirect {
    pub(super) operator: String,
    pub(super) target: String,
}

impl Redirect {
    pub(super) fn writes(&self) -> bool {
        self.operator.contains('>')
    }
}

/// Words that stand before a command without being one.
const RESERVED: [&str; 12] =
    ["if", "then", "elif", "else", "while", "until", "do", "!", "{", "time", "coproc", "function"];
const WRAPPERS: [&str; 16] = [
    "sudo", "doas", "env", "nohup", "nice", "ionice", "timeout", "stdbuf", "setsid", "exec", "command",
    "builtin", "xargs", "busybox", "time", "chrt",
];
pub(super) const SHELLS: [&str; 7] = ["sh", "bash", "zsh", "dash", "ksh", "ash", "fish"];

impl Simple {
    /// The program and its arguments, behind assignments, reserved words and wrappers such as `sudo` and `timeout`.
    pub(super) fn program(&self) -> Option<(&str, &[String])> {
        let mut words = self.words.as_slice();
        loop {
            let (first, rest) = words.split_first()?;
            let name = base_name(first);
            if RESERVED.contains(&first.as_str()) || is_assignment(first) {
                words = rest;
            } else if WRAPPERS.contains(&name) && !rest.is_empty() {
                words = skip_options(name, rest);
            } else {
                return Some((name, rest));
            }
        }
    }

    pub(super) fn assignments(&self) -> impl Iterator<Item = &str> {
        self.words
            .iter()
            .map(String::as_str)
            .take_while(|word| is_assignment(word) || RESERVED.contains(word))
    }

    /// What it hands to a shell: `sh -c '…'`, `eval …`, `bash <<EOF`.
    pub(super) fn script(&self) -> Option<String> {
        let (name, args) = self.program()?;
        if name == "eval" {
            return Some(args.join(" "));
        }
        if !SHELLS.contains(&name) {
            return None;
        }
        let is_flag = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.contains('c');
        match args.iter().position(is_flag) {
            Some(at) => args.iter().skip(at + 1).find(|word| !word.starts_with('-')).cloned(),
            None => self.input.clone(),
        }
    }
}

pub(super) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.trim_end_matches('+');
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

fn skip_options<'a>(wrapper: &str, mut words: &'a [String]) -> &'a [String] {
    // Options of wrappers that take their value as the next word.
    const WITH_VALUE: [&str; 14] =
        ["-n", "-u", "-g", "-k", "-s", "-I", "-L", "-P", "-d", "-c", "-a", "-i", "-o", "-e"];
    let mut positional = usize::from(matches!(wrapper, "timeout" | "chrt"));
    while let Some((first, rest)) = words.split_first() {
        if is_assignment(first) && wrapper == "env" {
            words = rest;
        } else if first.starts_with('-') && first.len() > 1 {
            let takes_value = WITH_VALUE.contains(&first.as_str())
                && rest
                    .first()
                    .is_some_and(|next| !next.starts_with('-') && (wrapper != "xargs" || first != "-i"))
                && !(wrapper == "env" && first == "-i");
            words = if takes_value && rest.len() > 1 { rest.get(1..).unwrap_or_default() } else { rest };
        } else if positional > 0 {
            positional -= 1;
            words = rest;
        } else {
            break;
        }
    }
    words
}
