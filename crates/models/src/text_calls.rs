//! Makes tool calls and reasoning out of what local and open models write as text.
//!
//! Invariant: an answer that holds neither passes through byte for byte, and the fragments put together are the
//! finished message, but for an answer that closes a reasoning it never opened (see [`TextCalls`]).

mod answer;
mod capture;
mod coerce;
mod form;
mod harmony;
mod held;
mod literal;
mod markdown;
mod nesting;
mod offered;
mod params;
mod python;
mod scanner;

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use futures_util::Stream;
use hart_kernel::{
    ChatChunk, ChatModel, ChatRequest, ChatStream, ModelError, ModelProfile, OutputFormat, Reasoning,
    ToolChoice, ToolSpec,
};
use hart_types::Message;
use tokio_util::sync::CancellationToken;

use capture::Ending;
use offered::Offered;
use scanner::{Piece, Rules, Scanner};

/// What to look for in a model's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    pub calls: CallsInText,
    /// Whether `<think>` and its like become reasoning.
    pub think: bool,
    /// The model's template opens the reasoning, so that an answer begins inside it.
    pub opened: bool,
}

/// Whether calls are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallsInText {
    Off,
    /// Unless the provider tells a call itself.
    UnlessNative,
    /// Also next to calls that the provider tells.
    Always,
}

/// A model around a model that may write its calls and its reasoning as text.
///
/// Some templates open the reasoning themselves, so that the answer only closes it. The first such answer has been
/// passed on as text by then, and only its finished message is right; from the next one on it is known.
pub struct TextCalls {
    inner: Arc<dyn ChatModel>,
    options: TextOptions,
    opened: Arc<AtomicBool>,
}

impl TextCalls {
    pub fn new(inner: Arc<dyn ChatModel>, options: TextOptions) -> Self {
        Self { inner, options, opened: Arc::new(AtomicBool::new(options.opened)) }
    }

    fn rules(&self, request: &ChatRequest) -> Rules {
        let calls = self.options.calls != CallsInText::Off
            && !request.tools.is_empty()
            && request.settings.tool_choice != ToolChoice::None;
        let opened = self.opened.load(Ordering::Relaxed) && request.settings.reasoning != Reasoning::Off;
        let bare = calls && request.settings.output == OutputFormat::Text;
        Rules { calls, bare, think: self.options.think, opened }
    }
}

impl fmt::Debug for TextCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextCalls").field("options", &self.options).finish_non_exhaustive()
    }
}

#[async_trait]
impl ChatModel for TextCalls {
    fn profile(&self) -> &ModelProfile {
        self.inner.profile()
    }

    fn count_text(&self, text: &str) -> u64 {
        self.inner.count_text(text)
    }

    fn count_request(&self, request: &ChatRequest) -> u64 {
        self.inner.count_request(request)
    }

    async fn stream(
        &self,
        request: ChatRequest,
        cancel: &CancellationToken,
    ) -> Result<ChatStream, ModelError> {
        let rules = self.rules(&request);
        let offered = Offered::new(request.tools.clone());
        let inner = self.inner.stream(request, cancel).await?;
        if !rules.calls && !rules.think {
            return Ok(inner);
        }
        Ok(Box::pin(Watched {
            inner: Some(inner),
            native_wins: self.options.calls == CallsInText::UnlessNative,
            opened: self.opened.clone(),
            scanner: Scanner::new(rules, offered.clone()),
            rules,
            offered,
            pieces: Vec::new(),
            ready: VecDeque::new(),
        }))
    }
}

/// The stream of one answer.
struct Watched {
    inner: Option<ChatStream>,
    native_wins: bool,
    opened: Arc<AtomicBool>,
    rules: Rules,
    offered: Offered,
    scanner: Scanner,
    pieces: Vec<Piece>,
    ready: VecDeque<Result<ChatChunk, ModelError>>,
}

impl Watched {
    fn take(&mut self, chunk: ChatChunk) {
        match chunk {
            ChatChunk::Text(text) => {
                self.scanner.push(text, &mut self.pieces);
                self.pass_on();
            }
            ChatChunk::ToolCall(_) if self.native_wins => {
                self.scanner.give_up_calls();
                self.scanner.push(String::new(), &mut self.pieces);
                self.pass_on();
                self.ready.push_back(Ok(chunk));
            }
            ChatChunk::Done(message) => {
                let message = self.finish(*message, false);
                self.ready.push_back(Ok(ChatChunk::Done(Box::new(message))));
            }
            ChatChunk::Restart(_) => {
                self.scanner = Scanner::new(self.rules, self.offered.clone());
                self.ready.push_back(Ok(chunk));
            }
            other => self.ready.push_back(Ok(other)),
        }
    }

    fn pass_on(&mut self) {
        let chunk = |piece| match piece {
            Piece::Text(text) => ChatChunk::Text(text),
            Piece::Reasoning(text) => ChatChunk::Reasoning(text),
        };
        self.ready.extend(self.pieces.drain(..).map(|piece| Ok(chunk(piece))));
    }

    /// The answer is over: what was held back goes out, and the message is put right.
    fn finish(&mut self, message: Message, broke_off: bool) -> Message {
        let cut = broke_off || answer::is_cut(&message);
        self.scanner.finish(if cut { Ending::Cut } else { Ending::Stop }, &mut self.pieces);
        self.pass_on();
        if self.rules.opened || self.scanner.unopened {
            self.opened.store(self.scanner.unopened, Ordering::Relaxed);
        }
        let (message, chunks) = answer::finished(&mut self.scanner, message, self.native_wins);
        self.ready.extend(chunks.into_iter().map(Ok));
        message
    }

    fn fail(&mut self, mut error: ModelError) {
        let partial = error.take_partial().map(|partial| self.finish(partial, true));
        self.ready.push_back(Err(error.partial(partial)));
        self.inner = None;
    }
}

impl Stream for Watched {
    type Item = Result<ChatChunk, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Poll::Ready(Some(chunk));
            }
            let Some(inner) = &mut self.inner else { return Poll::Ready(None) };
            match ready!(inner.as_mut().poll_next(cx)) {
                Some(Ok(chunk)) => self.take(chunk),
                Some(Err(error)) => self.fail(error),
                None => self.inner = None,
            }
        }
    }
}

/// What the text in `chunks` comes to, for tests and fuzzing.
#[doc(hidden)]
pub fn scan<'a>(
    tools: &[Arc<ToolSpec>],
    chunks: impl IntoIterator<Item = &'a str>,
    options: TextOptions,
    cut: bool,
) -> (String, Message) {
    let rules = Rules {
        calls: options.calls != CallsInText::Off,
        bare: options.calls != CallsInText::Off,
        think: options.think,
        opened: options.opened,
    };
    let mut scanner = Scanner::new(rules, Offered::new(tools.into()));
    let (mut whole, mut pieces) = (String::new(), Vec::new());
    for chunk in chunks {
        whole.push_str(chunk);
        scanner.push(chunk.to_owned(), &mut pieces);
    }
    scanner.finish(if cut { Ending::Cut } else { Ending::Stop }, &mut pieces);
    let (message, _) = answer::finished(&mut scanner, Message::ai(whole), true);
    let mut said = String::new();
    for piece in pieces {
        if let Piece::Text(text) = piece {
            said.push_str(&text);
        }
    }
    (said, message)
}
