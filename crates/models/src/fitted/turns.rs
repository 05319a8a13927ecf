//! Lets the sides of a conversation take turns, as many servers and chat templates insist on.
//!
//! Invariant: what is said stays in its order and at its place, so a request still begins as the last one did; and of a
//! conversation that grows only the new end is looked at.

use std::collections::VecDeque;
use std::sync::Arc;

use hart_kernel::{ChatRequest, MessageList};
use hart_types::{Block, Body, Content, Message};

/// Conversations that one model keeps in mind.
const KEPT: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The most recent last.
    recent: VecDeque<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    source: MessageList,
    /// How many of its messages `shown` stands for: all but the last turn, which may go on.
    settled: usize,
    shown: MessageList,
    differs: bool,
}

impl Turns {
    /// Instructions at the start become one. Later ones are added to what was said before them by the user or a tool:
    /// pulled to the front, each would change the start of the request and with it all that a provider has cached;
    /// left as they are, many templates refuse them. The user's messages in a row become one.
    pub(super) fn take(&mut self, request: &mut ChatRequest) {
        let leading = request.messages.iter().take_while(|message| is_system(message)).count();
        if leading > 0 {
            let said = request.messages.iter().take(leading).map(|message| message.text());
            let texts: Vec<String> = request.system.iter().map(|text| text.to_string()).chain(said).collect();
            request.system = Some(texts.join("\n\n").into());
        }
        let mut kept = self.known(&request.messages);
        if kept.settled < leading {
            kept = Kept { settled: leading, differs: true, ..Kept::default() };
        }
        let shown = kept.continued(&request.messages);
        request.messages = shown;
        if self.recent.len() >= KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back(kept);
    }

    fn known(&mut self, messages: &MessageList) -> Kept {
        let fits = |kept: &Kept| kept.source.common_prefix(messages) >= kept.settled;
        let best = self.recent.iter().enumerate().filter(|(_, kept)| fits(kept));
        let best = best.max_by_key(|(_, kept)| kept.settled).map(|(at, _)| at);
        best.and_then(|at| self.recent.remove(at)).unwrap_or_default()
    }
}

impl Kept {
    fn continued(&mut self, messages: &MessageList) -> MessageList {
        let mut turn: Option<Arc<Message>> = None;
        let mut turn_differs = false;
        for (at, message) in (self.settled..).zip(messages.iter_from(self.settled)) {
            if let Some(said) = &turn
                && let Some(joined) = joined(said, message)
            {
                turn = Some(Arc::new(joined));
                turn_differs = true;
                continue;
            }
            if let Some(said) = turn.take() {
                self.settle(messages, at, said, turn_differs);
            }
            turn_differs = is_system(message);
            turn = Some(if turn_differs { Arc::new(spoken(message)) } else { Arc::clone(message) });
        }
        self.source = messages.clone();
        if !self.differs && !turn_differs {
            return messages.clone();
        }
        let mut all = self.shown(messages);
        all.extend(turn);
        all
    }

    /// All before the message at `end` is now certain, and its last turn is `said`.
    fn settle(&mut self, messages: &MessageList, end: usize, said: Arc<Message>, differs: bool) {
        if differs && !self.differs {
            self.shown = self.shown(messages);
            self.differs = true;
        }
        if self.differs {
            self.shown.push(said);
        }
        self.settled = end;
    }

    fn shown(&self, messages: &MessageList) -> MessageList {
        match self.differs {
            true => self.shown.clone(),
            false => messages.iter().take(self.settled).cloned().collect(),
        }
    }
}

fn is_system(message: &Message) -> bool {
    matches!(message.body, Body::System)
}

fn spoken(message: &Message) -> Message {
    let mut message = message.clone();
    message.body = Body::Human;
    message
}

/// What was said and what follows it as one message, if they belong to one turn.
fn joined(said: &Message, next: &Message) -> Option<Message> {
    let belongs = matches!(
        (&said.body, &next.body),
        (Body::Human, Body::Human | Body::System) | (Body::Tool(_), Body::System)
    );
    belongs.then(|| {
        let mut message = said.clone();
        message.content = match (&said.content, &next.content) {
            (Content::Text(said), Content::Text(next)) => Content::Text(format!("{said}\n\n{next}")),
            (said, next) => {
                let mut blocks = said.to_blocks();
                // Some dialects put texts side by side.
                blocks.push(Block::text("\n\n"));
                blocks.extend(next.to_blocks());
                Content::Blocks(blocks)
            }
        };
        message
    })
}

#[cfg(test)]
mod tests {
    use hart_kernel::ModelSettings;
    use hart_types::ToolStatus;

    use super::*;

    /// `h`, `s`, `a` or `t`, and what is said.
    fn conversation(words: &str) -> MessageList {
        let message = |word: &str| match word.split_at(1) {
            ("h", text) => Message::human(text),
            ("s", text) => Message::system(text),
            ("a", text) => Message::ai(text),
            (_, text) => Message::tool(&text.into(), "ls", ToolStatus::Success, text),
        };
        words.split_whitespace().map(|word| Arc::new(message(word))).collect()
    }

    fn words(request: &ChatRequest) -> String {
        let word = |message: &Arc<Message>| {
            let text = message.text().replace("\n\n", "+");
            format!("{}{text}", message.kind().get(..1).unwrap())
        };
        request.messages.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    fn asked(messages: &MessageList) -> ChatRequest {
        ChatRequest {
            caller: "test".into(),
            system: Some("S".into()),
            messages: messages.clone(),
            tools: Arc::new([]),
            settings: ModelSettings::default(),
        }
    }

    #[test]
    fn sides_take_turns() {
        for (said, heard) in [
            ("h1 a2 h3", "h1 a2 h3"),
            ("h1 s2 a3 h4 h5 s6", "h1+2 a3 h4+5+6"),
            ("h1 a2 t3 t4 s5 a6", "h1 a2 t3 t4+5 a6"),
            ("h1 a2 s3 s4 h5", "h1 a2 h3+4+5"),
            ("s0 h1 s2", "h1+2"),
        ] {
            let mut request = asked(&conversation(said));
            Turns::default().take(&mut request);
            assert_eq!(words(&request), heard);
            let system = if said.starts_with('s') { "S\n\n0" } else { "S" };
            assert_eq!(request.system.as_deref(), Some(system));
        }
    }

    #[test]
    fn growing_is_as_good_as_at_once_and_keeps_the_start() {
        let all = conversation("h1 s2 a3 t4 s5 a6 h7 h8 a9 s0 h1 a2 h3 a4 h5");
        let (mut turns, mut list, mut last) =
            (Turns::default(), MessageList::default(), MessageList::default());
        for message in &all {
            list.push(Arc::clone(message));
            let (mut grown, mut fresh) = (asked(&list), asked(&list));
            turns.take(&mut grown);
            Turns::default().take(&mut fresh);
            assert_eq!(words(&grown), words(&fresh));
            assert!(grown.messages.common_prefix(&last) + 1 >= last.len().saturating_sub(1));
            last = grown.messages;
        }
        let plain = conversation("h1 a2 h3");
        let mut request = asked(&plain);
        turns.take(&mut request);
        assert_eq!(request.messages.common_prefix(&plain), 3, "left alone, it is the very list");
    }
}
