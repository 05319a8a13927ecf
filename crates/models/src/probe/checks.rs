//! The questions a probe asks, and what follows from the answers.
//!
//! Invariant: a fact is noted only where the answer shows it; what is unclear stays unknown.

use hart_kernel::{Effort, ModelErrorKind, OutputFormat, Reasoning, ToolChoice};
use hart_types::{Block, Message, ToolCallId, ToolStatus};
use serde_json::{Value, json};

use super::ask::{Answer, NoAnswer, quoted, request, with_tool};
use super::{Outcome, Probing};
use crate::catalogue::{Choice, ThinkingMode};

/// A red square of 32 by 32 pixels; some servers refuse anything much smaller.
const RED: &str = "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAJ0lEQVR42u3NsQkAAAjAsP7/tF7hIASyp6lTCQQCgUAgEAgEgi/BAjLD/C5w/SM9AAAAAElFTkSuQmCC";
const NO_PLACE: &str = "the protocol has no place for it";
const CODE: &str = "7319";
const NEEDLE: &str = "HELIOTROPE-4417";

type Verdict = (Outcome, String);

impl Probing<'_> {
    pub(super) async fn run(&mut self, context: u32) {
        let Some(reasons) = self.answers().await else { return };
        self.tools().await;
        self.tool_choice().await;
        self.reasoning(reasons).await;
        self.systems().await;
        self.image().await;
        self.schema().await;
        self.stop().await;
        self.temperature().await;
        self.long_context(context).await;
        self.cancellation().await;
    }

    /// Whether it answers at all; if so, whether it reasoned without being asked to.
    async fn answers(&mut self) -> Option<bool> {
        let asked = request([Message::human("Count from one to ten in words, separated by spaces.")]);
        let answer = match self.asker.ask(asked).await {
            Ok(answer) => answer,
            Err(NoAnswer::Refused(error) | NoAnswer::Failed(error)) => {
                self.note("answers", (Outcome::No, error.to_string()));
                return None;
            }
            Err(slow @ NoAnswer::Slow) => {
                self.note("answers", (Outcome::No, slow.verdict().1));
                return None;
            }
        };
        self.note("answers", (Outcome::Yes, quoted(&answer.message.text())));
        self.note(
            "streaming",
            match answer.text_pieces {
                0 => (Outcome::Unclear, "the answer has no text".to_owned()),
                1 => (Outcome::No, "the text came in one piece".to_owned()),
                pieces => (Outcome::Yes, format!("{pieces} pieces")),
            },
        );
        self.note(
            "usage_in_stream",
            match counted(&answer) {
                Some(tokens) => (Outcome::Yes, format!("{tokens} tokens in")),
                None => (Outcome::No, "the stream does not say how many tokens were used".to_owned()),
            },
        );
        Some(answer.reasoned)
    }

    async fn tools(&mut self) {
        let question = || Message::human("What is the secret code of Oslo? Use the tool.");
        let answer = self.asker.ask(with_tool(request([question()]))).await;
        let verdict = answer.as_ref().map_or_else(NoAnswer::verdict, called);
        let outcome = self.note("tool_calls", verdict);
        let (Ok(answer), Outcome::Yes) = (answer, outcome) else {
            if outcome == Outcome::No {
                self.profile.facts.text_tool_calls = Some(true);
            }
            return;
        };
        self.profile.facts.text_tool_calls = Some(false);
        self.tool_result(question(), answer.message).await;
        let both = "What are the secret codes of Oslo and of Cairo? Call the tool for both cities at once.";
        let verdict = match self.asker.ask(with_tool(request([Message::human(both)]))).await {
            Ok(answer) => match answer.message.tool_calls().len() {
                0 | 1 => (Outcome::Unclear, "it made one call at a time, though asked for two".to_owned()),
                calls => (Outcome::Yes, format!("{calls} calls in one answer")),
            },
            Err(error) => error.verdict(),
        };
        if self.note("parallel_calls", verdict) == Outcome::Yes {
            self.profile.facts.parallel_calls = Some(true);
        }
    }

    async fn tool_result(&mut self, question: Message, answer: Message) {
        let ids: Vec<ToolCallId> = answer.tool_calls().iter().filter_map(|call| call.id.clone()).collect();
        let results = ids.iter().map(|id| {
            Message::tool(id, "get_code", ToolStatus::Success, format!("The secret code is {CODE}."))
        });
        let talk = [question, answer].into_iter().chain(results);
        let verdict = match self.asker.ask(with_tool(request(talk))).await {
            Ok(answer) if answer.message.text().contains(CODE) => {
                (Outcome::Yes, quoted(&answer.message.text()))
            }
            Ok(answer) => {
                (Outcome::Unclear, format!("the result is not in {}", quoted(&answer.message.text())))
            }
            Err(error) => error.verdict(),
        };
        self.note("tool_results", verdict);
    }

    async fn tool_choice(&mut self) {
        let mut taken = vec![Choice::Auto, Choice::None];
        let mut clear = true;
        let choices = [
            ("tool_choice_required", Choice::Required, ToolChoice::Required),
            ("tool_choice_named", Choice::Named, ToolChoice::Named("get_code".to_owned())),
        ];
        for (name, kind, choice) in choices {
            if !self.asker.has_tool_choice {
                self.note(name, (Outcome::No, NO_PLACE.to_owned()));
                clear = false;
                continue;
            }
            let mut asked = with_tool(request([Message::human("Good morning, Oslo!")]));
            asked.settings.tool_choice = choice;
            let verdict = match self.asker.ask(asked).await {
                Ok(answer) if !answer.message.tool_calls().is_empty() => {
                    (Outcome::Yes, "it called the tool".to_owned())
                }
                Ok(answer) => (Outcome::No, format!("ignored: {}", quoted(&answer.message.text()))),
                Err(error) => error.verdict(),
            };
            match self.note(name, verdict) {
                Outcome::Yes => taken.push(kind),
                Outcome::No => {}
                Outcome::Unclear => clear = false,
            }
        }
        if clear {
            self.profile.facts.tool_choice = Some(taken);
        }
    }

    async fn reasoning(&mut self, by_itself: bool) {
        let question = || Message::human("What is 17 times 23? Answer with the number only.");
        let thinking = |messages: Vec<Message>, reasoning| {
            let mut asked = request(messages);
            asked.settings.reasoning = reasoning;
            asked
        };
        let low = Reasoning::On(Effort::Low);
        let answer = self.asker.ask_thinking(thinking(vec![question()], low)).await;
        let verdict = match &answer {
            Ok(answer) => reasoned(answer, by_itself),
            Err(error) if by_itself => (Outcome::Yes, format!("without being asked; {}", error.verdict().1)),
            Err(error) => error.verdict(),
        };
        let outcome = self.note("reasoning", verdict);
        if let Err(NoAnswer::Refused(error)) = &answer
            && error.message.to_ascii_lowercase().contains("effort")
        {
            self.profile.facts.effort = Some(Vec::new());
        }
        match outcome {
            Outcome::Yes if by_itself => {
                let off = self.asker.ask_thinking(thinking(vec![question()], Reasoning::Off)).await;
                self.profile.facts.thinking = match off {
                    Ok(answer) if answer.reasoned => Some(ThinkingMode::Always),
                    Ok(_) => Some(ThinkingMode::Optional),
                    Err(_) => None,
                };
            }
            Outcome::Yes => self.profile.facts.thinking = Some(ThinkingMode::Optional),
            Outcome::No => self.profile.facts.thinking = Some(ThinkingMode::None),
            Outcome::Unclear => {}
        }
        let verdict = match answer {
            Ok(answer) if answer.reasoned => {
                let talk = vec![question(), answer.message, Message::human("And twice that?")];
                match self.asker.ask_thinking(thinking(talk, low)).await {
                    Ok(_) => (Outcome::Yes, "it takes its own reasoning back".to_owned()),
                    Err(error) => error.verdict(),
                }
            }
            _ => (Outcome::Unclear, "there was no reasoning to send back".to_owned()),
        };
        if self.note("reasoning_replay", verdict) == Outcome::No {
            self.profile.facts.send_reasoning = Some(false);
        }
    }

    async fn systems(&mut self) {
        let mut asked = request([Message::human("What is the capital of France?")]);
        asked.system = Some("Whatever you are asked, your whole answer is the word PINEAPPLE.".into());
        let verdict = match self.asker.ask(asked).await {
            Ok(answer) if answer.message.text().to_ascii_lowercase().contains("pineapple") => {
                (Outcome::Yes, quoted(&answer.message.text()))
            }
            Ok(answer) => (Outcome::Unclear, format!("not followed: {}", quoted(&answer.message.text()))),
            Err(error) => error.verdict(),
        };
        self.note("system_message", verdict);
        let mut asked = request([
            Message::human("My name is Ada."),
            Message::ai("Noted."),
            Message::system("From now on be very polite."),
            Message::human("What is my name?"),
        ]);
        asked.system = Some("Be brief.".into());
        let verdict = match self.asker.ask(asked).await {
            Ok(_) => (Outcome::Yes, "a second one is accepted".to_owned()),
            Err(error) => error.verdict(),
        };
        self.profile.facts.single_system_message = match self.note("several_system_messages", verdict) {
            Outcome::Yes => Some(false),
            Outcome::No => Some(true),
            Outcome::Unclear => None,
        };
    }

    async fn image(&mut self) {
        let shown = vec![
            Block::text("What colour is this picture? Answer with one word."),
            Block::image_base64("image/png", RED),
        ];
        let verdict = match self.asker.ask(request([Message::human(shown)])).await {
            Ok(answer) if answer.message.text().to_ascii_lowercase().contains("red") => {
                (Outcome::Yes, quoted(&answer.message.text()))
            }
            Ok(answer) => {
                (Outcome::Unclear, format!("accepted, but it saw {}", quoted(&answer.message.text())))
            }
            Err(error) => error.verdict(),
        };
        let outcome = self.note("images", verdict);
        self.profile.facts.vision = known(outcome);
    }

    async fn schema(&mut self) {
        let schema = json!({
            "type": "object",
            "properties": {"city": {"type": "string"}, "population": {"type": "integer"}},
            "required": ["city", "population"],
            "additionalProperties": false,
        });
        let mut asked = request([Message::human("Tell me about the capital of France.")]);
        asked.settings.output = OutputFormat::Json { name: "city".to_owned(), schema };
        let verdict = match self.asker.ask(asked).await {
            Ok(answer) => {
                let text = answer.message.text();
                let value: Value = serde_json::from_str(text.trim()).unwrap_or_default();
                let fits = value.get("city").is_some_and(Value::is_string)
                    && value.get("population").is_some_and(Value::is_i64);
                let (outcome, before) = if fits { (Outcome::Yes, "") } else { (Outcome::No, "ignored: ") };
                (outcome, format!("{before}{}", quoted(&text)))
            }
            Err(error) => error.verdict(),
        };
        let outcome = self.note("structured_output", verdict);
        self.profile.facts.structured_output = known(outcome);
    }

    async fn stop(&mut self) {
        if !self.asker.has_stop {
            self.note("stop_sequences", (Outcome::No, NO_PLACE.to_owned()));
            return;
        }
        let mut asked =
            request([Message::human("Write exactly this line and nothing else: 1 2 3 4 5 6 7 8 9")]);
        asked.settings.stop = vec!["6".to_owned()];
        let verdict = match self.asker.ask(asked).await {
            Ok(answer) => {
                let text = answer.message.text();
                let outcome = match (text.contains('4'), text.contains('8')) {
                    (_, true) => Outcome::No,
                    (true, false) => Outcome::Yes,
                    (false, false) => Outcome::Unclear,
                };
                (outcome, quoted(&text))
            }
            Err(error) => error.verdict(),
        };
        let outcome = self.note("stop_sequences", verdict);
        self.profile.facts.stop = known(outcome);
    }

    async fn temperature(&mut self) {
        let mut asked = request([Message::human("Say hello.")]);
        asked.settings.temperature = Some(0.2);
        let verdict = match self.asker.ask(asked).await {
            Ok(_) => (Outcome::Yes, "accepted".to_owned()),
            Err(error) => error.verdict(),
        };
        let outcome = self.note("temperature", verdict);
        self.profile.facts.temperature = known(outcome);
    }

    async fn long_context(&mut self, tokens: u32) {
        let (prompt, estimate) = haystack(tokens);
        let answer = self.asker.ask_long(request([Message::human(prompt)]), tokens).await;
        let verdict = match answer {
            Ok(answer) => self.remembered(&answer, estimate),
            Err(NoAnswer::Refused(error)) => {
                if let ModelErrorKind::ContextOverflow { limit: Some(limit), .. } = error.kind {
                    self.profile.facts.context_window = u32::try_from(limit).ok();
                }
                NoAnswer::Refused(error).verdict()
            }
            Err(error) => error.verdict(),
        };
        self.note("long_context", verdict);
    }

    fn remembered(&mut self, answer: &Answer, estimate: u64) -> Verdict {
        let counted = counted(answer);
        let size = counted.map_or_else(|| format!("about {estimate} tokens"), |n| format!("{n} tokens"));
        if answer.message.text().contains(NEEDLE) {
            return (Outcome::Yes, format!("the first of {size} is remembered"));
        }
        match counted {
            // Nobody's tokens are that much longer than ours: the rest was thrown away unsaid.
            Some(counted) if counted * 5 < estimate * 3 => {
                self.profile.facts.context_window = u32::try_from(counted).ok();
                (Outcome::No, format!("cut without a word: {counted} of about {estimate} tokens were read"))
            }
            _ => (Outcome::Unclear, format!("read {size}, but forgot the first")),
        }
    }

    async fn cancellation(&mut self) {
        let asked = request([Message::human("Count from one to three hundred in words.")]);
        let verdict = match self.asker.cancels(asked).await {
            Ok(Some(true)) => (Outcome::Yes, "the stream closed at once".to_owned()),
            Ok(Some(false)) => (Outcome::No, "the stream ended without saying why".to_owned()),
            Ok(None) => (Outcome::Unclear, "the answer was complete before".to_owned()),
            Err(error) => error.verdict(),
        };
        self.note("cancellation", verdict);
    }
}

fn called(answer: &Answer) -> Verdict {
    let text = answer.message.text();
    match answer.message.tool_calls() {
        [call, ..] if call.name == "get_code" && call.args.get("city").is_some() => {
            (Outcome::Yes, format!("{}({})", call.name, Value::Object(call.args.clone())))
        }
        [call, ..] => {
            let args = Value::Object(call.args.clone());
            (Outcome::Unclear, format!("a call of {}({args})", quoted(&call.name)))
        }
        [] if text.contains("get_code") && text.contains("Oslo") => {
            (Outcome::No, format!("written as text: {}", quoted(&text)))
        }
        [] => (Outcome::Unclear, format!("no call: {}", quoted(&text))),
    }
}

fn reasoned(answer: &Answer, by_itself: bool) -> Verdict {
    let hidden = answer.message.as_ai().and_then(|ai| ai.usage.as_ref()).and_then(|usage| {
        usage.output_token_details.as_ref().and_then(|details| details.reasoning).filter(|count| *count > 0)
    });
    match (answer.reasoned, hidden) {
        (true, _) if by_itself => (Outcome::Yes, "visible, asked for or not".to_owned()),
        (true, _) => (Outcome::Yes, "visible when asked for".to_owned()),
        (false, Some(tokens)) => (Outcome::Yes, format!("hidden: {tokens} tokens of it")),
        (false, None) if by_itself => (Outcome::Yes, "now and then".to_owned()),
        (false, None) => (Outcome::No, "none is seen".to_owned()),
    }
}

fn counted(answer: &Answer) -> Option<u64> {
    let usage = answer.message.as_ai()?.usage.as_ref()?;
    Some(usage.input_tokens).filter(|tokens| *tokens > 0)
}

fn known(outcome: Outcome) -> Option<bool> {
    match outcome {
        Outcome::Yes => Some(true),
        Outcome::No => Some(false),
        Outcome::Unclear => None,
    }
}

/// A prompt of about that many tokens with the needle at its start, and how many we think they are.
fn haystack(tokens: u32) -> (String, u64) {
    let wanted = tokens as usize * 4;
    let mut text = format!("The code word is {NEEDLE}. Keep it in mind.\n\n");
    let mut line = 0;
    while text.len() < wanted {
        line += 1;
        text.push_str(&format!(
            "Entry {line}: calm weather, light wind, and nothing of note on the water.\n"
        ));
    }
    text.push_str("\nWhat is the code word from the very beginning? Answer with the code word only.");
    let estimate = text.len() as u64 / 4;
    (text, estimate)
}
