//! Takes secrets out of a command line before it is written down.
//!
//! Invariant: it errs towards hiding; a record without a value is still a record.

const HIDDEN: &str = "[redacted]";

/// Parts of names whose values are nobody's business.
const NAMES: [&str; 9] =
    ["key", "token", "secret", "passw", "credential", "authorization", "bearer", "cookie", "dsn"];
/// How well-known kinds of keys begin.
const PREFIXES: [&str; 12] =
    ["sk-", "sk_", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "AIza", "eyJ"];

/// The same text with the values of secrets replaced.
pub fn redact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut hide_next = false;
    for piece in text.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end_matches(char::is_whitespace);
        let space = piece.get(word.len()..).unwrap_or_default();
        if word.is_empty() {
            out.push_str(piece);
            continue;
        }
        let bare = word.trim_matches(['"', '\'']);
        if hide_next && !is_scheme(bare) {
            out.push_str(HIDDEN);
            hide_next = false;
        } else if let Some(split) = bare.find(['=', ':']).filter(|_| !bare.contains("://")) {
            let (name, value) = bare.split_at_checked(split + 1).unwrap_or((bare, ""));
            hide_next = is_secret_name(name) && value.is_empty();
            let hidden = is_secret_name(name) && !value.is_empty() || is_secret(value);
            out.push_str(name);
            out.push_str(if hidden { HIDDEN } else { value });
        } else if is_secret(bare) {
            out.push_str(HIDDEN);
        } else {
            hide_next = hide_next || (bare.starts_with("--") && is_secret_name(bare));
            out.push_str(&without_login(word));
        }
        out.push_str(space);
    }
    out
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|part| name.contains(part))
}

/// The word between a header's name and its value.
fn is_scheme(word: &str) -> bool {
    ["bearer", "basic", "token"].contains(&word.to_ascii_lowercase().as_str())
}

fn is_secret(word: &str) -> bool {
    const SHORTEST: usize = 12;
    word.len() >= SHORTEST && PREFIXES.iter().any(|prefix| word.starts_with(prefix))
}

/// `https://user:password@host` without the password.
fn without_login(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    match authority.rsplit_once('@') {
        Some((login, host)) if login.contains(':') => format!("{scheme}://{HIDDEN}@{host}{path}"),
        _ => word.to_owned(),
    }
}
