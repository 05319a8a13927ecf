//! A conversation as the model shall see it, rewritten message by message.
//!
//! Invariant: a message is rewritten once a run. What was shown before is shown again as the very same message, so a
//! longer conversation costs only what is new in it, and a request begins as the one before it did.

use std::sync::{Arc, Mutex, PoisonError};

use hart_kernel::MessageList;
use hart_types::Message;

#[derive(Default)]
pub(crate) struct View(
    /// Never held across an await.
    Mutex<Seen>,
);

#[derive(Default)]
struct Seen {
    original: MessageList,
    shown: MessageList,
}

impl View {
    /// `rewrite` gives a message to show in another's place, or nothing to show it as it is.
    pub(crate) fn show<E>(
        &self,
        messages: &MessageList,
        mut rewrite: impl FnMut(&Message) -> Result<Option<Message>, E>,
    ) -> Result<MessageList, E> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.original.common_prefix(messages) < seen.original.len() {
            *seen = Seen::default();
        }
        let mut shown = seen.shown.clone();
        for message in messages.iter_from(seen.original.len()) {
            shown.push(rewrite(message)?.map_or_else(|| Arc::clone(message), Arc::new));
        }
        *seen = Seen { original: messages.clone(), shown: shown.clone() };
        Ok(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_is_rewritten() {
        let view = View::default();
        let mut rewritten = Vec::new();
        let mut show = |messages: &MessageList| {
            let mut count = 0;
            let shown = view.show(messages, |message| {
                count += 1;
                Ok::<_, ()>(
                    (message.text() != "as it is").then(|| Message::human(message.text().to_uppercase())),
                )
            });
            rewritten.push(count);
            shown.unwrap()
        };
        let mut messages: MessageList =
            ["a", "as it is"].map(Message::human).into_iter().map(Arc::new).collect();
        let first = show(&messages);
        messages.push(Arc::new(Message::human("b")));
        let second = show(&messages);
        let shorter: MessageList = messages.iter().skip(1).cloned().collect();
        let third = show(&shorter);
        assert_eq!(rewritten, [2, 1, 2]);
        assert_eq!(first.common_prefix(&second), 2, "the very same messages");
        let texts = |list: &MessageList| list.iter().map(|message| message.text()).collect::<Vec<_>>();
        assert_eq!(
            (texts(&second), texts(&third)),
            (vec!["A".into(), "as it is".into(), "B".into()], vec!["as it is".into(), "B".into()])
        );
    }
}
