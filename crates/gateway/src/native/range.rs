//! Which part of a file a client wants.
//!
//! Invariant: what is not understood is the whole file, as HTTP has it.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    /// From `from` up to and without `to`, at least one byte of the file.
    Part { from: u64, to: u64 },
    /// The file has nothing there.
    Nothing,
}

impl Range {
    /// Of a file of this size. Several parts at once are none of ours.
    pub(super) fn parse(text: &str, size: u64) -> Option<Self> {
        let (first, last) = text.trim().strip_prefix("bytes=")?.trim().split_once('-')?;
        let number = |text: &str| text.trim().parse::<u64>();
        let (from, to) = match (first.trim(), last.trim()) {
            ("", last) => (size.saturating_sub(number(last).ok()?), size),
            (first, "") => (number(first).ok()?, size),
            (first, last) => {
                let (first, last) = (number(first).ok()?, number(last).ok()?);
                if last < first {
                    return None;
                }
                (first, last.saturating_add(1).min(size))
            }
        };
        Some(if from < to { Self::Part { from, to } } else { Self::Nothing })
    }
}

#[cfg(test)]
mod tests {
    use super::Range;

    #[test]
    fn ranges() {
        let part = |from, to| Some(Range::Part { from, to });
        for (text, expected) in [
            ("bytes=0-0", part(0, 1)),
            ("bytes=2-4", part(2, 5)),
            ("bytes=2-", part(2, 10)),
            ("bytes=-3", part(7, 10)),
            ("bytes=-300", part(0, 10)),
            ("bytes=8-300", part(8, 10)),
            ("bytes=10-", Some(Range::Nothing)),
            ("bytes=-0", Some(Range::Nothing)),
            ("bytes=18446744073709551615-18446744073709551615", Some(Range::Nothing)),
            ("bytes=4-2", None),
            ("bytes=0-1,4-5", None),
            ("lines=0-1", None),
            ("bytes=a-b", None),
            ("bytes=-", None),
            ("", None),
        ] {
            assert_eq!(Range::parse(text, 10), expected, "{text}");
        }
        assert_eq!(Range::parse("bytes=0-", 0), Some(Range::Nothing));
    }
}
