//! The known word a mistyped one was probably meant to be.
//!
//! Invariant: a suggestion is always one of the candidates, and a word unlike all of them gets none.

/// The candidate closest to `word`, if one is close enough to be worth suggesting.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    closest(word, candidates, |word, candidate| typo(word, candidate).or_else(|| part(word, candidate)))
}

/// The candidate that `word` is a misspelling of: what [`nearest`] finds, without words that only share a part.
pub(crate) fn misspelt<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    closest(word, candidates, typo)
}

fn closest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    measure: impl Fn(&[char], &[char]) -> Option<usize>,
) -> Option<&'a str> {
    // Nobody mistypes a word of this length by a letter or two, and the distance costs its square.
    const LONGEST: usize = 64;
    let word = plain(word);
    if word.is_empty() || word.len() > LONGEST {
        return None;
    }
    candidates
        .into_iter()
        .filter_map(|candidate| Some((measure(&word, &plain(candidate))?, candidate)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Case and separators are what people remember least: `allowHostBash`, `allow-host-bash`.
fn plain(word: &str) -> Vec<char> {
    word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn typo(word: &[char], candidate: &[char]) -> Option<usize> {
    let distance = distance(word, candidate);
    (distance <= (word.len().min(candidate.len()) / 3).clamp(1, 3)).then_some(distance)
}

/// `timeout` for `bash_command_timeout`, `allow_host` for `allow_host_bash`: close, but behind any typo.
fn part(word: &[char], candidate: &[char]) -> Option<usize> {
    let holds = |outer: &[char], inner: &[char]| {
        inner.len() >= 4 && (outer.starts_with(inner) || outer.ends_with(inner))
    };
    (holds(candidate, word) || holds(word, candidate)).then(|| 100 + candidate.len().abs_diff(word.len()))
}

/// Insertions, deletions, substitutions and swaps of neighbours that lead from `a` to `b`.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(last.len());
        let mut left = i + 1;
        row.push(left);
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX / 2);
            let mut best = (at(&last, j + 1) + 1).min(left + 1).min(at(&last, j) + usize::from(x != y));
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                best = best.min(at(&before, j - 1) + 1);
            }
            row.push(best);
            left = best;
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 5] = ["allow_host_bash", "bash_command_timeout", "mounts", "environment", "use"];

    #[test]
    fn typos_find_their_word() {
        for (typed, meant) in [
            ("allow_hostbash", "allow_host_bash"),
            ("allowHostBash", "allow_host_bash"),
            ("alow_host_bahs", "allow_host_bash"),
            ("mount", "mounts"),
            ("enviroment", "environment"),
            ("timeout", "bash_command_timeout"),
            ("sue", "use"),
        ] {
            assert_eq!(nearest(typed, KEYS), Some(meant), "{typed}");
        }
    }

    #[test]
    fn other_words_find_none() {
        for typed in ["", "frobnicate", "x", "---", "🦌", "tier"] {
            assert_eq!(nearest(typed, KEYS), None, "{typed}");
        }
        assert_eq!(nearest(&"a".repeat(10_000), KEYS), None);
        assert_eq!(misspelt("timeout", KEYS), None);
    }

    #[test]
    fn distances() {
        let of = |a: &str, b: &str| distance(&plain(a), &plain(b));
        assert_eq!((of("", "abc"), of("abc", ""), of("abc", "abc"), of("abcd", "acbd")), (3, 3, 0, 1));
        assert_eq!(of("kitten", "sitting"), 3);
    }
}
