//! How many tokens a text is: exactly in OpenAI's vocabulary, or quickly by the kinds of its characters.
//!
//! Invariant: nothing is ever downloaded. The vocabulary lies in the binary and is unpacked at the first exact count.

/// A run of one kind of character longer than this is counted in pieces: merging a megabyte of `====` as one piece
/// takes half a second, and a cut adds at most one token.
const LONGEST_RUN: usize = 2048;

/// The count in `o200k_base`, the vocabulary of OpenAI's current models.
pub fn exact(text: &str) -> u64 {
    let Some(vocabulary) = tiktoken::get_encoding("o200k_base") else { return estimate(text) };
    let (mut rest, mut tokens) = (text, 0);
    while let Some(cut) = long_run(rest) {
        let (run, after) = rest.split_at(cut);
        tokens += vocabulary.count(run);
        rest = after;
    }
    (tokens + vocabulary.count(rest)) as u64
}

/// Where to cut the first run that is too long.
fn long_run(text: &str) -> Option<usize> {
    let mut kind = Run::Digit;
    let mut start = 0;
    for (at, byte) in text.bytes().enumerate() {
        let this = run(byte);
        if this != kind || this == Run::Digit {
            (kind, start) = (this, at);
        } else if at - start >= LONGEST_RUN && text.is_char_boundary(at) {
            return Some(at);
        }
    }
    None
}

/// What may stand together in one piece; digits are taken three at a time anyway.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    Letter,
    Digit,
    Blank,
    Sign,
}

fn run(byte: u8) -> Run {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => Run::Letter,
        b'0'..=b'9' => Run::Digit,
        b' ' | b'\t' | b'\r' | b'\n' => Run::Blank,
        _ => Run::Sign,
    }
}

/// What a character costs, in thousandths of a token. The weights are a least-squares fit against [`exact`] over
/// prose, code, JSON, Chinese, Japanese and Korean; each of them comes out within a tenth.
mod weight {
    pub(super) const WORD: u64 = 954;
    /// A letter of a word beyond the sixth.
    pub(super) const FURTHER_LETTER: u64 = 91;
    /// An upper-case letter after a lower-case one.
    pub(super) const HUMP: u64 = 1524;
    /// An upper-case letter after another.
    pub(super) const CAPITAL: u64 = 118;
    /// Up to three digits.
    pub(super) const DIGITS: u64 = 1355;
    pub(super) const SIGN: u64 = 554;
    /// A sign after another.
    pub(super) const FURTHER_SIGN: u64 = 232;
    /// White space with a line end in it.
    pub(super) const LINE: u64 = 1805;
    pub(super) const HAN: u64 = 780;
    pub(super) const KANA: u64 = 678;
    pub(super) const HANGUL: u64 = 700;
    /// Characters of two, three and four bytes: accents and Cyrillic, other scripts and symbols, emoji.
    pub(super) const TWO: u64 = 1237;
    pub(super) const THREE: u64 = 2355;
    pub(super) const FOUR: u64 = 1500;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lower,
    Upper,
    Digit,
    Sign,
    Space,
    Line,
    Wide,
}

/// The count by the kinds of characters: a few times faster than [`exact`], and without the vocabulary's memory.
pub fn estimate(text: &str) -> u64 {
    let (mut sum, mut before, mut length) = (0, Kind::Line, 0_u64);
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        let (kind, cost) = match byte {
            b'a'..=b'z' => {
                let within = matches!(before, Kind::Lower | Kind::Upper);
                length = if within { length + 1 } else { 1 };
                let further = if length > 6 { weight::FURTHER_LETTER } else { 0 };
                (Kind::Lower, if within { further } else { weight::WORD })
            }
            b'A'..=b'Z' => {
                length = if before == Kind::Upper { length + 1 } else { 1 };
                let cost = match before {
                    Kind::Upper => weight::CAPITAL,
                    Kind::Lower => weight::HUMP,
                    _ => weight::WORD,
                };
                (Kind::Upper, cost)
            }
            b'0'..=b'9' => {
                length = if before == Kind::Digit { length + 1 } else { 1 };
                (Kind::Digit, if length % 3 == 1 { weight::DIGITS } else { 0 })
            }
            b' ' | b'\t' => (if before == Kind::Line { Kind::Line } else { Kind::Space }, 0),
            b'\n' | b'\r' => (Kind::Line, if before == Kind::Line { 0 } else { weight::LINE }),
            0x80..=0xbf => continue,
            0xc0..=0xdf => (Kind::Wide, weight::TWO),
            0xe3 if matches!(bytes.peek(), Some(0x81..=0x83)) => (Kind::Wide, weight::KANA),
            0xe3..=0xe9 | 0xef => (Kind::Wide, weight::HAN),
            0xea..=0xed => (Kind::Wide, weight::HANGUL),
            0xe0..=0xee => (Kind::Wide, weight::THREE),
            0xf0.. => (Kind::Wide, weight::FOUR),
            _ => (Kind::Sign, if before == Kind::Sign { weight::FURTHER_SIGN } else { weight::SIGN }),
        };
        sum += cost;
        before = kind;
    }
    sum.div_ceil(1000)
}

/// How much of a text is Chinese, Japanese or Korean, by bytes, from 0 to 1.
pub(super) fn east_asian(text: &str) -> f64 {
    let characters = text.bytes().filter(|byte| matches!(byte, 0xe3..=0xed | 0xef)).count();
    if text.is_empty() { 0.0 } else { (3 * characters) as f64 / text.len() as f64 }
}
