//! A conversation as a request shows it, where that differs from what the thread holds.
//!
//! Invariant: a message is judged once per run, and what it was shown as is what it is shown as again: the same value,
//! so that encodings and caches of the start of a conversation stay good.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use hart_kernel::MessageList;
use hart_types::Message;

#[derive(Default)]
pub(crate) struct View {
    source: MessageList,
    shown: MessageList,
    /// Whether they differ. Until they do, `shown` is not kept.
    differs: bool,
}

/// What a request has in the place of a message.
pub(crate) enum Shown {
    AsItIs,
    Instead(Arc<Message>),
    FollowedBy(Arc<Message>),
}

impl View {
    /// `messages` as `show` shows them. What has been shown before is not asked about again.
    pub(crate) fn of(
        &mut self,
        messages: &MessageList,
        mut show: impl FnMut(&Arc<Message>) -> Shown,
    ) -> MessageList {
        let Ok(shown) = self.try_of(messages, |message| Ok::<_, Infallible>(show(message)));
        shown
    }

    /// As [`View::of`]; after an error the next request is judged from its start.
    pub(crate) fn try_of<E>(
        &mut self,
        messages: &MessageList,
        mut show: impl FnMut(&Arc<Message>) -> Result<Shown, E>,
    ) -> Result<MessageList, E> {
        let known = self.source.len();
        if self.source.common_prefix(messages) < known {
            *self = Self::default();
        }
        let known = self.source.len();
        for (at, message) in (known..).zip(messages.iter_from(known)) {
            let shown = show(message).inspect_err(|_| self.forget())?;
            if !self.differs && !matches!(shown, Shown::AsItIs) {
                self.differs = true;
                self.shown = messages.iter().take(at).cloned().collect();
            }
            if self.differs {
                match shown {
                    Shown::AsItIs => self.shown.push(Arc::clone(message)),
                    Shown::Instead(other) => self.shown.push(other),
                    Shown::FollowedBy(next) => self.shown.extend([Arc::clone(message), next]),
                }
            }
        }
        self.source = messages.clone();
        Ok(if self.differs { self.shown.clone() } else { messages.clone() })
    }

    /// The next request is judged from its start.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}

/// A view that lies in a run's scratch space.
#[derive(Default)]
pub(crate) struct SharedView(
    /// Never held across an await.
    Mutex<View>,
);

impl SharedView {
    /// `rewrite` gives a message to show in another's place, or nothing to show it as it is.
    pub(crate) fn show<E>(
        &self,
        messages: &MessageList,
        mut rewrite: impl FnMut(&Message) -> Result<Option<Message>, E>,
    ) -> Result<MessageList, E> {
        let mut view = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        view.try_of(messages, |message| {
            Ok(rewrite(message)?.map_or(Shown::AsItIs, |shown| Shown::Instead(Arc::new(shown))))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(messages: &MessageList) -> String {
        messages.iter().map(|message| message.text()).collect::<Vec<_>>().join(" ")
    }

    fn show(message: &Arc<Message>) -> Shown {
        match message.text().as_str() {
            "x" => Shown::Instead(Arc::new(Message::human("X"))),
            "y" => Shown::FollowedBy(Arc::new(Message::human("Y"))),
            _ => Shown::AsItIs,
        }
    }

    #[test]
    fn only_what_is_new_is_judged_and_the_rest_stays_the_same_value() {
        let mut view = View::default();
        let mut judged = 0;
        let mut messages = MessageList::default();
        let mut last = MessageList::default();
        for text in ["a", "x", "b", "y", "c"] {
            messages.push(Arc::new(Message::human(text)));
            let shown = view.of(&messages, |message| {
                judged += 1;
                show(message)
            });
            assert_eq!(shown.common_prefix(&last), last.len(), "{text}");
            last = shown;
        }
        assert_eq!(judged, 5);
        assert_eq!(texts(&last), "a X b y Y c");
    }

    #[test]
    fn a_conversation_that_is_another_one_is_judged_anew() {
        let mut view = View::default();
        let list = |texts: &[&str]| texts.iter().map(|text| Arc::new(Message::human(*text))).collect();
        assert_eq!(texts(&view.of(&list(&["a", "x"]), show)), "a X");
        assert_eq!(texts(&view.of(&list(&["x", "b"]), show)), "X b");
        let plain: MessageList = list(&["a", "b"]);
        assert_eq!(view.of(&plain, show).common_prefix(&plain), 2, "left alone, it is the very list");
    }
}
