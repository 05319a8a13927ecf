//! A small mutation runner for parsers: replays a corpus, then deforms it, the same way for the same seed.
//!
//! Invariant: an iteration depends only on the corpus, the dictionary, the seed and its own number.

use std::fmt::Write as _;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

/// Repetition must not grow an input without bound.
const MAX_LEN: usize = 64 * 1024;

/// Gives `check` every file of `corpus_dir`, then `iterations` mutations of them.
///
/// When `check` panics, the input is printed to stderr so that it can join the corpus, and the panic goes on.
///
/// # Panics
/// When `check` does, or when the corpus is missing or empty: a mistyped path must not look like success.
pub fn run(
    corpus_dir: &Path,
    iterations: u32,
    seed: u64,
    dictionary: &[&[u8]],
    mut check: impl FnMut(&[u8]),
) {
    let corpus = load(corpus_dir);
    for (name, input) in &corpus {
        attempt(input, &mut check, || format!("corpus file {name}"));
    }
    let inputs: Vec<&[u8]> = corpus.iter().map(|(_, input)| input.as_slice()).collect();
    for iteration in 0..iterations {
        let mut random = Random::new(seed, iteration);
        let input = mutated(&mut random, &inputs, dictionary);
        attempt(&input, &mut check, || format!("seed {seed}, iteration {iteration}"));
    }
}

fn load(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("no corpus at {}: {error}", dir.display()));
    let paths = entries.map(|entry| entry.expect("a readable directory").path());
    let mut files: Vec<_> = paths
        .filter(|path| path.is_file())
        .map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let input = fs::read(&path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()));
            (name, input)
        })
        .collect();
    assert!(!files.is_empty(), "the corpus at {} is empty", dir.display());
    // The order of a directory is not the same everywhere; that of an iteration must be.
    files.sort();
    files
}

fn attempt(input: &[u8], check: &mut impl FnMut(&[u8]), origin: impl Fn() -> String) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(input))) {
        let hex = input.iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("a String takes any text");
            hex
        });
        eprintln!("fuzz: panicked on {}, {} bytes", origin(), input.len());
        eprintln!("fuzz: text b\"{}\"", input.escape_ascii());
        eprintln!("fuzz: hex  {hex}");
        eprintln!("fuzz: keep it: printf %s {hex} | xxd -r -p > <corpus>/<what-was-wrong>");
        resume_unwind(panic);
    }
}

fn mutated(random: &mut Random, inputs: &[&[u8]], dictionary: &[&[u8]]) -> Vec<u8> {
    let mut bytes = inputs[random.below(inputs.len())].to_vec();
    for _ in 0..=random.below(6) {
        mutate(&mut bytes, random, inputs, dictionary);
        bytes.truncate(MAX_LEN);
    }
    bytes
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random, inputs: &[&[u8]], dictionary: &[&[u8]]) {
    let at = random.below(bytes.len() + 1);
    match random.below(8) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 => bytes.insert(at, random.byte()),
        2 => {
            let end = (at + 1 + random.below(8)).min(bytes.len());
            bytes.drain(at..end);
        }
        3 => {
            let other = inputs[random.below(inputs.len())];
            bytes.truncate(at);
            bytes.extend_from_slice(&other[random.below(other.len() + 1)..]);
        }
        4 if !dictionary.is_empty() => {
            let token = dictionary[random.below(dictionary.len())];
            bytes.splice(at..at, token.iter().copied());
        }
        5 => bytes.truncate(at),
        6 => {
            let end = (at + 1 + random.below(32)).min(bytes.len());
            let piece = bytes[at..end].repeat(1 + random.below(64));
            bytes.splice(at..at, piece);
        }
        7 if at < bytes.len() => bytes[at] = random.byte(),
        // The chosen mutation does not apply here; an insertion always does.
        _ => bytes.insert(at, random.byte()),
    }
}

/// `SplitMix64`: the whole state is one number, so seed and iteration make a generator of their own.
struct Random(u64);

impl Random {
    fn new(seed: u64, iteration: u32) -> Self {
        let mut mixed = Self(seed);
        Self(mixed.next() ^ u64::from(iteration).wrapping_mul(0xD6E8_FEB8_6659_FD93))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % (bound as u64)).expect("less than a usize")
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}
