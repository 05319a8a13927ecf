//! Which of many texts fit a question: a ranking by words, without a model.
//!
//! Invariant: the same words give the same order; of equals, the one that came first.

use std::collections::{BTreeSet, HashMap};

/// BM25 over texts that are given as their words.
///
/// ```
/// use hart_knowledge::ranking::{Ranking, words};
///
/// let texts = ["Charts from tables", "Letters to the editor"];
/// let ranking = Ranking::new(texts.iter().map(|text| words(text)));
/// assert_eq!(ranking.order("draw a chart"), [0, 1]);
/// ```
#[derive(Debug)]
pub struct Ranking {
    texts: Vec<HashMap<String, f64>>,
    lengths: Vec<f64>,
    average: f64,
    /// In how many texts a word occurs.
    spread: HashMap<String, f64>,
}

impl Ranking {
    pub fn new(texts: impl IntoIterator<Item = Vec<String>>) -> Self {
        let mut counted = Vec::new();
        let mut lengths = Vec::new();
        let mut spread: HashMap<String, f64> = HashMap::new();
        for words in texts {
            lengths.push(words.len() as f64);
            let mut counts: HashMap<String, f64> = HashMap::new();
            for word in words {
                *counts.entry(word).or_default() += 1.0;
            }
            for word in counts.keys() {
                *spread.entry(word.clone()).or_default() += 1.0;
            }
            counted.push(counts);
        }
        let average = lengths.iter().sum::<f64>() / (lengths.len().max(1) as f64);
        Self { texts: counted, lengths, average: average.max(1.0), spread }
    }

    /// How well the text at a place fits; 0 where no word is shared.
    pub fn score(&self, at: usize, asked: &BTreeSet<String>) -> f64 {
        const K: f64 = 1.2;
        const B: f64 = 0.75;
        let Some((text, length)) = self.texts.get(at).zip(self.lengths.get(at)) else { return 0.0 };
        let all = self.texts.len() as f64;
        let of = |word: &String| {
            let times = text.get(word)?;
            let spread = self.spread.get(word)?;
            let rare = ((all - spread + 0.5) / (spread + 0.5) + 1.0).ln();
            Some(rare * times * (K + 1.0) / (times + K * (1.0 - B + B * length / self.average)))
        };
        asked.iter().filter_map(of).sum()
    }

    /// The places of all texts, the best first.
    pub fn order(&self, question: &str) -> Vec<usize> {
        self.scored(question).into_iter().map(|(at, _)| at).collect()
    }

    /// The places with their scores, the best first.
    pub fn scored(&self, question: &str) -> Vec<(usize, f64)> {
        let asked: BTreeSet<String> = words(question).into_iter().collect();
        let mut scored: Vec<(usize, f64)> =
            (0..self.texts.len()).map(|at| (at, self.score(at, &asked))).collect();
        scored.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        scored
    }
}

/// Lower case, parted at everything that is no letter or digit and at capitals inside; scripts without spaces in pairs
/// of characters; endings of English taken off roughly, the same on both sides.
pub fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word = String::new();
    let mut lower_before = false;
    for c in text.chars().chain([' ']) {
        let parts = !c.is_alphanumeric() || (c.is_uppercase() && lower_before);
        if parts && !word.is_empty() {
            push(&mut found, std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        lower_before = c.is_lowercase();
    }
    found
}

fn push(found: &mut Vec<String>, word: String) {
    if word
        .chars()
        .any(|c| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'))
    {
        let chars: Vec<char> = word.chars().collect();
        found.extend(chars.windows(2).map(|pair| pair.iter().collect()));
        return;
    }
    let stem = ["ing", "ies", "es", "ed", "s", "e"].iter().find_map(|end| word.strip_suffix(end));
    match stem.filter(|stem| stem.chars().count() >= 3) {
        Some(stem) => found.push(stem.to_owned()),
        None => found.push(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_names_of_any_habit() {
        assert_eq!(words("list_openIssues: HTTPServer's"), ["list", "open", "issu", "httpserver", "s"]);
        assert_eq!(words("searching searches search"), ["search", "search", "search"]);
        assert_eq!(words("查询天气"), ["查询", "询天", "天气"]);
        assert_eq!(words("  … "), Vec::<String>::new());
    }

    #[test]
    fn of_equals_the_first() {
        let ranking = Ranking::new(["a b", "c", "c d"].map(words));
        assert_eq!(ranking.order("nothing of it"), [0, 1, 2]);
        assert_eq!(ranking.order("d")[0], 2);
    }
}
