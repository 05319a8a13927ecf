//! Characters that a person does not see and a model does.
//!
//! Invariant: stripping twice is stripping once, and a character that shows is never stripped.
//!
//! Joiners and variation selectors are part of emoji and of several scripts, so they stay where they join something
//! that is not ASCII, one at a time; elsewhere they only hide text or split words.

pub(crate) fn strip(text: &str) -> String {
    let visible: Vec<char> = text.chars().filter(|c| !is_noise(*c)).collect();
    let mut out = String::with_capacity(text.len());
    let mut before: Option<char> = None;
    for (at, c) in visible.iter().copied().enumerate() {
        let keep = match c {
            '\u{200c}' | '\u{200d}' => {
                let after = visible.get(at + 1).copied();
                before.is_some_and(joins) && after.is_some_and(|after| joins(after) && !is_selector(after))
            }
            c if is_selector(c) => before
                .is_some_and(|before| !is_selector(before) && !is_joiner(before) && !before.is_whitespace()),
            _ => true,
        };
        if keep {
            out.push(c);
            before = Some(c);
        }
    }
    out
}

/// Never part of what is said: controls, bidi marks and overrides, zero-width and tag characters, fillers.
fn is_noise(c: char) -> bool {
    match c {
        '\n' | '\t' | '\r' => false,
        c if c.is_control() => true,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' => {
            true
        }
        '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' => true,
        '\u{e0000}'..='\u{e007f}' => true,
        _ => false,
    }
}

/// Whether a joiner next to it can mean something. Full-width forms stand for ASCII and need none.
fn joins(c: char) -> bool {
    !c.is_ascii()
        && !is_joiner(c)
        && !c.is_whitespace()
        && !matches!(c, '\u{ff00}'..='\u{ffef}' | '\u{fe50}'..='\u{fe6f}')
}

fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_goes_and_what_shows_stays() {
        for (given, stripped) in [
            ("a\u{200b}b\u{202e}c\u{0}\u{1b}[2Jd\u{9b}\u{7f}", "abc[2Jd"),
            ("ta\u{e0061}\u{e0067}g", "tag"),
            ("sys\u{200d}tem \u{ad}x\u{feff}", "system x"),
            ("line\r\n\tnext", "line\r\n\tnext"),
            // A family, a heart on fire, a keycap; Persian with its half-space.
            (
                "👩\u{200d}👩\u{200d}👧 ❤\u{fe0f}\u{200d}🔥 1\u{fe0f}\u{20e3}",
                "👩\u{200d}👩\u{200d}👧 ❤\u{fe0f}\u{200d}🔥 1\u{fe0f}\u{20e3}",
            ),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
            ("x\u{fe01}\u{fe02}\u{fe03}y", "x\u{fe01}y"),
            ("\u{fe0f}a", "a"),
            ("👩\u{200d}\u{200d}\u{200d}👧", "👩\u{200d}👧"),
            ("👩\u{200d}\u{fe0f}👧", "👩\u{fe0f}👧"),
        ] {
            assert_eq!(strip(given), stripped, "{given:?}");
            assert_eq!(strip(stripped), stripped);
        }
    }
}
