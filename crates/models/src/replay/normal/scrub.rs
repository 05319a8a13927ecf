//! Replaces the parts of a text that change from run to run.
//!
//! Invariant: a replacement holds nothing that would be replaced again.

/// `text` with ids, times and places of this run made anonymous.
pub(super) fn scrub(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before: Option<char> = None;
    while let Some(first) = rest.chars().next() {
        let boundary = before.is_none_or(|c| !c.is_alphanumeric());
        let found = if boundary { variable(rest) } else { None };
        let taken = match found {
            Some((length, name)) if length > 0 => {
                out.push_str(name);
                length
            }
            _ => {
                out.push(first);
                first.len_utf8()
            }
        };
        before = out.chars().next_back();
        rest = rest.get(taken..).unwrap_or_default();
    }
    out
}

/// A changing part at the start of `text`: its length in bytes and what stands for it.
fn variable(text: &str) -> Option<(usize, &'static str)> {
    match text.bytes().next()? {
        b'/' => path(text),
        b'0'..=b'9' => date(text)
            .or_else(|| clock(text).map(|length| (length, "<time>")))
            .or_else(|| duration(text))
            .or_else(|| address(text))
            .or_else(|| identifier(text)),
        b'a'..=b'f' | b'A'..=b'F' => identifier(text),
        b'l' => address(text),
        b'.' => temporary(text),
        _ => None,
    }
}

/// UUIDs, and runs of eight or more hex digits that are neither a word nor a number.
fn identifier(text: &str) -> Option<(usize, &'static str)> {
    let groups = [8, 4, 4, 4, 12];
    let mut uuid = 0;
    for (position, length) in groups.into_iter().enumerate() {
        let rest = text.get(uuid..)?;
        let rest = if position == 0 { Some(rest) } else { rest.strip_prefix('-') };
        match rest {
            Some(rest) if hex(rest) == length => uuid += length + usize::from(position > 0),
            _ => {
                uuid = 0;
                break;
            }
        }
    }
    let length = if uuid > 0 { uuid } else { hex(text) };
    let run = text.get(..length)?;
    let mixed = run.bytes().any(|b| b.is_ascii_digit()) && run.bytes().any(|b| b.is_ascii_alphabetic());
    let is_id = uuid > 0 || length >= 32 || (length >= 8 && mixed);
    (is_id && ends(text, length)).then_some((length, "<id>"))
}

fn hex(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_hexdigit).count()
}

/// Whether a word ends at `at`.
fn ends(text: &str, at: usize) -> bool {
    text.get(at..).and_then(|rest| rest.chars().next()).is_none_or(|c| !c.is_alphanumeric())
}

/// Takes a shape such as `0000-00-00`, in which `0` is any digit; its length.
fn shape(text: &str, shape: &str) -> Option<usize> {
    let mut bytes = text.bytes();
    let fits = shape.bytes().all(|want| {
        bytes.next().is_some_and(|have| if want == b'0' { have.is_ascii_digit() } else { have == want })
    });
    fits.then_some(shape.len())
}

/// `2026-11-15`, with the time of day or the weekday that may follow.
fn date(text: &str) -> Option<(usize, &'static str)> {
    let length = shape(text, "0000-00-00")?;
    let rest = text.get(length..)?;
    if let Some(after) = rest.strip_prefix(['T', ' '])
        && let Some(time) = clock(after)
    {
        return Some((length + 1 + time, "<time>"));
    }
    let weekday = rest.trim_start_matches([',', ' ', '(']);
    let days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    if let Some(day) = days.iter().find(|day| weekday.starts_with(**day)) {
        return Some((length + rest.len() - weekday.len() + day.len(), "<date>"));
    }
    ends(text, length).then_some((length, "<date>"))
}

/// `12:34:56`, with fraction and zone.
fn clock(text: &str) -> Option<usize> {
    let mut length = shape(text, "00:00:00").or_else(|| shape(text, "00:00"))?;
    let digits =
        |from: usize| text.get(from..).map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    let next = |at: usize| text.as_bytes().get(at).copied();
    if next(length) == Some(b'.') && digits(length + 1) > 0 {
        length += 1 + digits(length + 1);
    }
    match next(length) {
        Some(b'Z') => length += 1,
        Some(b'+' | b'-') => {
            length += text.get(length + 1..).and_then(|r| shape(r, "00:00")).map_or(0, |n| n + 1)
        }
        _ => {}
    }
    ends(text, length).then_some(length)
}

/// `1.25s`, `300 ms`.
fn duration(text: &str) -> Option<(usize, &'static str)> {
    let number = text.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
    let rest = text.get(number..)?;
    let unit_at = rest.strip_prefix(' ').unwrap_or(rest);
    let unit = ["ms", "µs", "seconds", "second", "s"].into_iter().find(|unit| unit_at.starts_with(unit))?;
    let length = number + (rest.len() - unit_at.len()) + unit.len();
    ends(text, length).then_some((length, "<duration>"))
}

/// `127.0.0.1:49152` and `localhost:49152`: the port is given by chance.
fn address(text: &str) -> Option<(usize, &'static str)> {
    let host = ["127.0.0.1:", "localhost:"].into_iter().find(|host| text.starts_with(host))?;
    let port = text.get(host.len()..)?.bytes().take_while(u8::is_ascii_digit).count();
    (port > 0).then_some((host.len() + port, "<address>"))
}

/// Homes and temporary directories, up to the first part that is chosen by chance or by the user.
fn path(text: &str) -> Option<(usize, &'static str)> {
    let roots = [
        "/private/tmp/",
        "/private/var/folders/",
        "/var/folders/",
        "/var/tmp/",
        "/tmp/",
        "/home/",
        "/Users/",
    ];
    let root = roots.into_iter().find(|root| text.starts_with(root))?;
    let rest = text.get(root.len()..)?;
    let part =
        rest.find(|c: char| c == '/' || c.is_whitespace() || "\"'`,;:)<>".contains(c)).unwrap_or(rest.len());
    (part > 0).then_some((root.len() + part, "<path>"))
}

/// `.tmpAb12Cd`, as temporary files are called.
fn temporary(text: &str) -> Option<(usize, &'static str)> {
    let rest = text.strip_prefix(".tmp")?;
    let tail = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
    (tail == 6).then_some((".tmp".len() + tail, "<path>"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_changes_is_replaced_and_the_rest_stays() {
        let cases = [
            ("run 018f3c2a-9b1d-7c3e-8f00-0123456789ab ok", "run <id> ok"),
            ("commit 1a2b3c4d5e6f", "commit <id>"),
            ("deadbeef and 12345678 stay", "deadbeef and 12345678 stay"),
            ("at 2026-11-15T04:25:00.123Z, then", "at <time>, then"),
            ("at 2026-11-15 04:25:00+02:00", "at <time>"),
            ("<current_date>2026-11-15, Sunday</current_date>", "<current_date><date></current_date>"),
            ("on 2026-11-15 it", "on <date> it"),
            ("took 1.25s and 300 ms", "took <duration> and <duration>"),
            ("12 seconds, 3 apples", "<duration>, 3 apples"),
            ("http://127.0.0.1:49152/x and localhost:80", "http://<address>/x and <address>"),
            ("/tmp/hart-x1/a.txt and /home/ada/b", "<path>/a.txt and <path>/b"),
            ("/mnt/user-data/outputs/report.md", "/mnt/user-data/outputs/report.md"),
            ("see .tmpAb12Cd", "see <path>"),
            ("größe 5, ümlaut", "größe 5, ümlaut"),
        ];
        for (text, want) in cases {
            assert_eq!(scrub(text), want, "{text}");
        }
    }

    proptest! {
        #[test]
        fn scrubbing_twice_is_scrubbing_once(text in "[0-9a-fT:./ -]{0,60}|\\PC{0,60}") {
            let once = scrub(&text);
            prop_assert_eq!(scrub(&once), once);
        }
    }
}
