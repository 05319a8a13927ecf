//! Text that waits to be decided, taken from the front.
//!
//! Invariant: taking costs what is taken, however much is left.

/// Below this much, moving the rest to the front is not worth the while.
const SLACK: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Held {
    text: String,
    from: usize,
}

impl Held {
    pub(super) fn as_str(&self) -> &str {
        self.text.get(self.from..).unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.text.len() - self.from
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn push(&mut self, text: String) {
        if self.is_empty() {
            (self.text, self.from) = (text, 0);
        } else {
            self.text.push_str(&text);
        }
    }

    pub(super) fn clear(&mut self) {
        self.drop_front(self.len());
    }

    pub(super) fn drop_front(&mut self, bytes: usize) {
        self.from += bytes.min(self.len());
        if self.from == self.text.len() {
            self.text.clear();
            self.from = 0;
        } else if self.from > SLACK && self.from * 2 > self.text.len() {
            self.text.drain(..self.from);
            self.from = 0;
        }
    }

    pub(super) fn take_front(&mut self, bytes: usize) -> String {
        if self.from == 0 && bytes >= self.text.len() {
            return std::mem::take(&mut self.text);
        }
        let taken = self.as_str().get(..bytes).unwrap_or_default().to_owned();
        self.drop_front(bytes);
        taken
    }
}
