//! Everything hart writes: the answer to stdout, all else to stderr, a spinner where somebody watches.
//!
//! Invariant: one lock guards both streams and the spinner, so that no two of them ever share a line of the screen.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::ColorChoice;

/// A handle to both streams; clones write to the same ones.
#[derive(Clone)]
pub(crate) struct Terminal {
    pub(crate) out: Look,
    pub(crate) err: Look,
    screen: Arc<Mutex<Screen>>,
}

/// How a stream is written to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Look {
    /// Somebody watches.
    pub(crate) live: bool,
    color: bool,
    /// Columns; lines meant as one line are cut to it.
    pub(crate) width: usize,
}

/// What a piece of text is, for the eye.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Strong,
    Dim,
    Good,
    Warn,
    Bad,
    Accent,
}

struct Screen {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    /// The last character on stdout was not a newline.
    line_open: bool,
    spinner: Spinner,
}

#[derive(Default)]
struct Spinner {
    /// `None`: nobody watches.
    target: Option<fn() -> ProgressDrawTarget>,
    color: bool,
    /// Since when, and what it says, while something is going on.
    going_on: Option<(Instant, String)>,
    bar: Option<ProgressBar>,
}

const TICK: Duration = Duration::from_millis(100);

/// For streams without a width.
const DEFAULT_WIDTH: usize = 100;

impl Terminal {
    pub(crate) fn of_process(color: ColorChoice) -> Self {
        let (out, err) = (Look::new(&io::stdout(), color), Look::new(&io::stderr(), color));
        let target = err.live.then_some(ProgressDrawTarget::stderr as fn() -> _);
        let spinner = Spinner { target, color: err.color, ..Spinner::default() };
        let screen =
            Screen { out: Box::new(io::stdout()), err: Box::new(io::stderr()), line_open: false, spinner };
        Self { out, err, screen: Arc::new(Mutex::new(screen)) }
    }

    /// Writes a piece of an answer to stdout, at once.
    pub(crate) fn answer(&self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let safe;
        let text = if self.out.live {
            safe = harmless(text);
            &safe
        } else {
            text
        };
        let mut screen = self.screen();
        screen.spinner.clear_for(self.out.live);
        screen.out.write_all(text.as_bytes())?;
        screen.out.flush()?;
        screen.line_open = !text.ends_with('\n');
        if !screen.line_open {
            screen.spinner.show();
        }
        Ok(())
    }

    /// Ends the line of the answer, if one is open.
    pub(crate) fn end_line(&self) -> io::Result<()> {
        if self.screen().line_open { self.answer("\n") } else { Ok(()) }
    }

    /// Writes a line of a result to stdout.
    pub(crate) fn line(&self, line: &str) -> io::Result<()> {
        let mut screen = self.screen();
        screen.spinner.clear_for(self.out.live);
        screen.out.write_all(line.as_bytes())?;
        screen.out.write_all(b"\n")?;
        screen.line_open = false;
        screen.spinner.show();
        Ok(())
    }

    /// Writes bytes as they are to stdout.
    pub(crate) fn raw(&self, bytes: &[u8]) -> io::Result<()> {
        let mut screen = self.screen();
        screen.out.write_all(bytes)?;
        screen.out.flush()
    }

    /// Writes a line to stderr. That nobody may read it is no reason to stop.
    pub(crate) fn note(&self, line: &str) {
        self.note_on(&mut self.screen(), line);
    }

    /// As [`Terminal::note`], unless a write is under way that may block for ever.
    pub(crate) fn note_if_free(&self, line: &str) {
        // A write that does not block is over in a moment.
        for _ in 0..20 {
            if let Ok(mut screen) = self.screen.try_lock() {
                return self.note_on(&mut screen, line);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn note_on(&self, screen: &mut Screen, line: &str) {
        screen.spinner.clear();
        if self.out.live && self.err.live && screen.line_open {
            let _ = screen.out.write_all(b"\n").and_then(|()| screen.out.flush());
            screen.line_open = false;
        }
        let _ = screen.err.write_all(format!("{line}\n").as_bytes()).and_then(|()| screen.err.flush());
        screen.spinner.show();
    }

    /// Says what is going on, until [`Terminal::rest`].
    pub(crate) fn busy(&self, message: &str) {
        let mut screen = self.screen();
        let covered = self.out.live && screen.line_open;
        screen.spinner.say(message, self.err.width);
        if !covered {
            screen.spinner.show();
        }
    }

    /// Nothing is going on.
    pub(crate) fn rest(&self) {
        let mut screen = self.screen();
        screen.spinner.clear();
        screen.spinner.going_on = None;
    }

    fn screen(&self) -> MutexGuard<'_, Screen> {
        // A panic elsewhere must not keep its own message from being shown.
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spinner {
    fn say(&mut self, message: &str, width: usize) {
        if self.target.is_none() {
            return;
        }
        // Room for the spinner itself and the time.
        let message = cut(message, width.saturating_sub(12));
        if let Some(bar) = &self.bar {
            bar.set_message(message.clone());
        }
        let since = self.going_on.take().map_or_else(Instant::now, |(since, _)| since);
        self.going_on = Some((since, message));
    }

    fn show(&mut self) {
        let (None, Some(target), Some((since, message))) = (&self.bar, self.target, &self.going_on) else {
            return;
        };
        let bar = ProgressBar::with_draw_target(None, target()).with_elapsed(since.elapsed());
        let template =
            if self.color { "{spinner:.cyan} {elapsed} {msg:.dim}" } else { "{spinner} {elapsed} {msg}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(message.clone());
        bar.enable_steady_tick(TICK);
        self.bar = Some(bar);
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Text on another screen than the spinner's does not disturb it.
    fn clear_for(&mut self, same_screen: bool) {
        if same_screen {
            self.clear();
        }
    }
}

/// Lets others that write lines to stderr (the log) keep clear of the spinner.
#[derive(Clone)]
pub(crate) struct Notes(pub(crate) Terminal);

impl Write for Notes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.0.note(text.trim_end_matches('\n'));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Look {
    fn new(stream: &(impl IsTerminal + std::os::fd::AsFd), color: ColorChoice) -> Self {
        let live = stream.is_terminal();
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let color = match color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => live && !set("NO_COLOR") && !dumb(),
        };
        let columns = rustix::termios::tcgetwinsize(stream).map_or(0, |size| usize::from(size.ws_col));
        Self { live, color, width: if columns == 0 { DEFAULT_WIDTH } else { columns } }
    }

    pub(crate) fn is_colored(self) -> bool {
        self.color
    }

    pub(crate) fn paint(self, tone: Tone, text: impl Display) -> String {
        if !self.color {
            return text.to_string();
        }
        let code = match tone {
            Tone::Strong => "1",
            Tone::Dim => "2",
            Tone::Good => "32",
            Tone::Warn => "33",
            Tone::Bad => "31",
            Tone::Accent => "36",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// The text with every control character but newline and tab made visible: foreign text must not steer a terminal.
pub(crate) fn harmless(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => Some(c),
        '\r' => None,
        '\u{7f}' => Some('\u{2421}'),
        c if c.is_ascii_control() => char::from_u32(0x2400 + u32::from(c)),
        // Single-character escapes, and marks that reorder what is read.
        '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            Some(char::REPLACEMENT_CHARACTER)
        }
        c => Some(c),
    };
    text.chars().filter_map(shown).collect()
}

/// The text on one line of at most `width` characters, without what could steer a terminal.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let mut line: String = harmless(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = line.char_indices().nth(width) {
        line.truncate(at);
        line.pop();
        line.push('…');
    }
    line
}

#[cfg(test)]
pub(crate) mod fake {
    use super::*;

    /// What was written to a stream.
    #[derive(Clone, Default)]
    pub(crate) struct Written(Arc<Mutex<Vec<u8>>>);

    impl Written {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A reader that has left.
    pub(crate) struct Closed;

    impl Write for Closed {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Terminal {
        pub(crate) fn fake(live: bool) -> (Self, Written, Written) {
            let (out, err) = (Written::default(), Written::default());
            (Self::over(live, Box::new(out.clone()), Box::new(err.clone())), out, err)
        }

        pub(crate) fn over(live: bool, out: Box<dyn Write + Send>, err: Box<dyn Write + Send>) -> Self {
            let look = Look { live, color: false, width: DEFAULT_WIDTH };
            let target = live.then_some(ProgressDrawTarget::hidden as fn() -> _);
            let spinner = Spinner { target, ..Spinner::default() };
            let screen = Screen { out, err, line_open: false, spinner };
            Self { out: look, err: look, screen: Arc::new(Mutex::new(screen)) }
        }

        pub(crate) fn spinner_is_shown(&self) -> bool {
            self.screen().spinner.bar.is_some()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_does_not_land_in_the_middle_of_an_answer_on_one_screen() {
        let (terminal, out, err) = Terminal::fake(true);
        terminal.answer("half").unwrap();
        terminal.note("note");
        terminal.answer("rest").unwrap();
        terminal.end_line().unwrap();
        assert_eq!(out.text(), "half\nrest\n");
        assert_eq!(err.text(), "note\n");
    }

    #[test]
    fn a_note_leaves_a_redirected_answer_alone() {
        let (terminal, out, _) = Terminal::fake(false);
        terminal.answer("half").unwrap();
        terminal.note("note");
        terminal.answer(" rest").unwrap();
        terminal.end_line().unwrap();
        terminal.end_line().unwrap();
        assert_eq!(out.text(), "half rest\n");
    }

    #[test]
    fn the_spinner_gives_way_to_an_open_line_and_comes_back() {
        let (terminal, _, _) = Terminal::fake(true);
        terminal.busy("working");
        assert!(terminal.spinner_is_shown());
        terminal.answer("half").unwrap();
        terminal.busy("writing");
        assert!(!terminal.spinner_is_shown());
        terminal.end_line().unwrap();
        assert!(terminal.spinner_is_shown());
        terminal.rest();
        terminal.note("done");
        assert!(!terminal.spinner_is_shown());
    }

    #[test]
    fn no_spinner_where_nobody_watches() {
        let (terminal, _, err) = Terminal::fake(false);
        terminal.busy("working");
        assert!(!terminal.spinner_is_shown());
        assert_eq!(err.text(), "");
    }

    #[test]
    fn foreign_text_cannot_steer_a_terminal() {
        assert_eq!(harmless("a\x1b[2Jb\r\n\tc\u{9b}\u{202e}"), "a␛[2Jb\n\tc\u{fffd}\u{fffd}");
        let (terminal, out, _) = Terminal::fake(true);
        terminal.answer("\x1b]0;title\x07").unwrap();
        assert_eq!(out.text(), "␛]0;title␇");
    }

    #[test]
    fn a_redirected_answer_is_the_model_s_bytes() {
        let (terminal, out, _) = Terminal::fake(false);
        terminal.answer("\x1b[1mbold\r\n").unwrap();
        assert_eq!(out.text(), "\x1b[1mbold\r\n");
    }

    #[test]
    fn lines_are_cut_between_characters() {
        assert_eq!(cut("äöü\n  x", 99), "äöü x");
        assert_eq!(cut("äöüß", 3), "äö…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abc", 0), "…");
    }
}
