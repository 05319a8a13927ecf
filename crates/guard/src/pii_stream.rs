//! Personal data in text that arrives in fragments: what may still become a finding is held back.
//!
//! The built-in kinds have no space in them, but for the groups of a card's number. So the last word is held until the
//! next one begins, and a reader is at most a word behind. A pattern of one's own may match anything: then the last 256
//! characters are held, and a match that is longer may have begun to show before it was one.
//!
//! Invariant: what is passed on, put together, is the whole text with all findings replaced.

use crate::{Finding, PiiDetector};

/// How far a pattern of one's own can look ahead, in bytes.
const WINDOW: usize = 256;
/// A card's number with a separator between any two digits, and some room.
const CARD: usize = 48;
/// A word that is longer is let go of but for its end: no address is that long.
const LONGEST_WORD: usize = 4096;
const KEPT_OF_IT: usize = 1024;
/// Of what was passed on: whether a finding stands alone depends on what is before it.
const BEFORE: usize = 16;

/// The state between two fragments.
#[derive(Clone, Debug, Default)]
pub struct PiiStream {
    /// The end of what was passed on, as it was.
    before: String,
    held: String,
    /// What is held is a finding that has not ended; looking again before its word does would only take time.
    growing: bool,
}

impl PiiStream {
    /// Takes a fragment and returns what can be passed on, with everything found in it replaced.
    pub fn push(
        &mut self,
        detector: &PiiDetector,
        fragment: &str,
        replacement: impl FnMut(usize, &str) -> String,
    ) -> String {
        self.held.push_str(fragment);
        if self.growing && !fragment.contains(char::is_whitespace) {
            return String::new();
        }
        self.release(detector, settled(&self.held, detector.has_own_patterns()), replacement)
    }

    /// There is no more: returns the rest.
    pub fn finish(
        &mut self,
        detector: &PiiDetector,
        replacement: impl FnMut(usize, &str) -> String,
    ) -> String {
        let rest = self.release(detector, self.held.len(), replacement);
        *self = Self::default();
        rest
    }

    fn release(
        &mut self,
        detector: &PiiDetector,
        end: usize,
        mut replacement: impl FnMut(usize, &str) -> String,
    ) -> String {
        if end == 0 {
            return String::new();
        }
        let text = format!("{}{}", self.before, self.held);
        let start = self.before.len();
        let found = detector.find_from(&text, start);
        let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
        let mut end = start + end;
        // What has begun to be a finding may still grow.
        let across = found.iter().find(|f| f.range.start < end && f.range.end > end);
        self.growing = across.is_some();
        if let Some(across) = across {
            end = across.range.start;
        }
        let (mut out, mut at) = (String::new(), start);
        for Finding { kind, range } in found.iter().filter(|finding| finding.range.end <= end) {
            out.push_str(part(at, range.start));
            out.push_str(&replacement(*kind, part(range.start, range.end)));
            at = range.end;
        }
        out.push_str(part(at, end));
        let before = part(floor(&text, end.saturating_sub(BEFORE)), end).to_owned();
        self.held = part(end, text.len()).to_owned();
        self.before = before;
        out
    }
}

/// Up to where no finding can reach any more.
fn settled(held: &str, own_patterns: bool) -> usize {
    let bytes = held.as_bytes();
    let is = |at: usize, test: fn(&u8) -> bool| bytes.get(at).is_some_and(test);
    let mut at = word_start(held, held.len());
    // A card's number may come in groups.
    while at >= 2
        && is(at - 1, |byte| *byte == b' ')
        && is(at - 2, u8::is_ascii_digit)
        && (at == held.len() || is(at, u8::is_ascii_digit))
        && held.len() - at < CARD
    {
        at = word_start(held, at - 1);
    }
    if own_patterns {
        at = at.min(floor(held, held.len().saturating_sub(WINDOW)));
    }
    if held.len() - at > LONGEST_WORD { floor(held, held.len() - KEPT_OF_IT) } else { at }
}

/// Where the word begins that ends at `end`.
fn word_start(text: &str, end: usize) -> usize {
    let head = text.get(..end).unwrap_or_default();
    head.char_indices().rev().find(|(_, c)| c.is_whitespace()).map_or(0, |(at, c)| at + c.len_utf8())
}

/// The nearest place at or before `at` where a character begins.
fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::{PiiKind, PiiStrategy, treat};

    fn whole(detector: &PiiDetector, text: &str) -> String {
        let replaced = detector.replace(text, |at, value| shown(detector, at, value));
        replaced.unwrap_or_else(|| text.to_owned())
    }

    fn shown(detector: &PiiDetector, at: usize, value: &str) -> String {
        treat(&detector.kinds()[at], PiiStrategy::Redact, value)
    }

    /// What a reader sees after each fragment.
    fn streamed(detector: &PiiDetector, fragments: &[&str]) -> Vec<String> {
        let mut stream = PiiStream::default();
        let mut seen = vec![String::new()];
        for fragment in fragments {
            let next = stream.push(detector, fragment, |at, value| shown(detector, at, value));
            seen.push(format!("{}{next}", seen.last().unwrap()));
        }
        let rest = stream.finish(detector, |at, value| shown(detector, at, value));
        seen.push(format!("{}{rest}", seen.last().unwrap()));
        seen
    }

    fn built_in() -> PiiDetector {
        PiiDetector::new(PiiKind::BUILT_IN.to_vec()).unwrap()
    }

    #[test]
    fn a_reader_is_a_word_behind_and_never_sees_a_part() {
        let fragments = ["Ask ", "ada@exa", "mple.or", "g, or ", "4111 11", "11 1111 ", "1111", " now."];
        assert_eq!(
            streamed(&built_in(), &fragments),
            [
                "",
                "Ask ",
                "Ask ",
                "Ask ",
                "Ask [REDACTED_EMAIL], or ",
                "Ask [REDACTED_EMAIL], or ",
                "Ask [REDACTED_EMAIL], or ",
                "Ask [REDACTED_EMAIL], or ",
                "Ask [REDACTED_EMAIL], or [REDACTED_CREDIT_CARD] ",
                "Ask [REDACTED_EMAIL], or [REDACTED_CREDIT_CARD] now.",
            ]
        );
    }

    #[test]
    fn a_number_whose_start_was_passed_on_is_not_taken_for_another() {
        let text = "378282246310005 4111 1111 1111 1111https://ada:pw@example.org/x?y=1.,";
        let fragments: Vec<&str> = text.split_inclusive(|c: char| !c.is_ascii_digit()).collect();
        let expected = whole(&built_in(), text);
        assert_eq!(streamed(&built_in(), &fragments).last(), Some(&expected));
        let single: Vec<String> = text.chars().map(String::from).collect();
        let single: Vec<&str> = single.iter().map(String::as_str).collect();
        assert_eq!(streamed(&built_in(), &single).last(), Some(&expected));
    }

    #[test]
    fn an_endless_word_is_not_held_for_ever() {
        let long = "x".repeat(3 * LONGEST_WORD);
        let seen = streamed(&built_in(), &[&long, &long, " ada@example.org"]);
        assert!(seen[1].len() >= long.len() - KEPT_OF_IT && seen[2].len() >= 2 * long.len() - KEPT_OF_IT);
        assert_eq!(seen.last().unwrap(), &format!("{long}{long} [REDACTED_EMAIL]"));
        // An address that has begun is held however long it gets.
        let url = format!("https://example.org/{long}");
        let seen = streamed(&built_in(), &[&url, &long, " end"]);
        assert_eq!(seen[2], "");
        assert_eq!(seen.last().unwrap(), "[REDACTED_URL] end");
    }

    /// Made once: the patterns take longer than the search.
    static BUILT_IN: LazyLock<PiiDetector> = LazyLock::new(built_in);
    static WITH_A_BADGE: LazyLock<PiiDetector> = LazyLock::new(|| {
        let badge = PiiKind::Custom { name: "badge".to_owned(), pattern: "B-[0-9]+ [a-z]".to_owned() };
        PiiDetector::new(PiiKind::BUILT_IN.into_iter().chain([badge]).collect()).unwrap()
    });

    fn piece() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("ada@example.org".to_owned()),
            Just("4111 1111 1111 1111".to_owned()),
            Just("378282246310005".to_owned()),
            Just("https://ada:pw@example.org/x?y=1.".to_owned()),
            Just("192.168.0.17".to_owned()),
            Just("fe80::1".to_owned()),
            Just("00:1a:2B:3c:4D:5e".to_owned()),
            Just("B-1234 x".to_owned()),
            Just("鹿 é\n".to_owned()),
            "[ -~]{0,12}",
            "[0-9 -]{0,24}",
        ]
    }

    proptest! {
        #[test]
        fn fragments_put_together_are_the_whole(
            pieces in prop::collection::vec((piece(), "[ ,.]{0,2}"), 0..12),
            cuts in prop::collection::vec(1_usize..9, 1..200),
            own in any::<bool>(),
        ) {
            let text: String = pieces.into_iter().map(|(piece, between)| piece + &between).collect();
            let detector: &PiiDetector = if own { &WITH_A_BADGE } else { &BUILT_IN };
            let mut fragments = Vec::new();
            let (mut rest, mut cuts) = (text.as_str(), cuts.into_iter().cycle());
            while !rest.is_empty() {
                let end = rest.char_indices().nth(cuts.next().unwrap()).map_or(rest.len(), |(at, _)| at);
                let (fragment, later) = rest.split_at(end);
                fragments.push(fragment);
                rest = later;
            }
            prop_assert_eq!(streamed(detector, &fragments).pop().unwrap(), whole(detector, &text));
        }
    }
}
