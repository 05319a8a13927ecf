use std::sync::Arc;

use hart_types::Body;
use serde_json::{Map, json};

use super::*;
use crate::terminal::fake::{Closed, Written};

/// A transcript that is told events, and what it wrote.
struct Stage {
    transcript: Transcript,
    out: Written,
    err: Written,
    stop: CancellationToken,
}

fn stage(live: bool) -> Stage {
    let (terminal, out, err) = Terminal::fake(live);
    let stop = CancellationToken::new();
    Stage { transcript: Transcript::new(terminal, stop.clone()), out, err, stop }
}

impl Stage {
    fn tell(&mut self, event: Event) -> &mut Self {
        self.transcript.tell(&event);
        self
    }

    fn says(&mut self, id: &str, text: &str) -> &mut Self {
        self.tell(chunk(id, text))
    }

    fn starts(&mut self, id: &str, name: &str, args: Value) -> &mut Self {
        let Value::Object(args) = args else { panic!("arguments are an object") };
        self.tell(Event::ToolStarted(ToolCall::new(id, name, args)))
    }

    fn finishes(&mut self, id: &str, name: &str, status: ToolStatus, text: &str) -> &mut Self {
        self.tell(Event::ToolResult(Arc::new(Message::tool(&id.into(), name, status, text))))
    }

    /// A command that ran, and how it ended.
    fn ends(&mut self, id: &str, name: &str, ended: &str, text: &str) -> &mut Self {
        let mut message = Message::tool(&id.into(), name, ToolStatus::Success, text);
        if let Body::Tool(result) = &mut message.body {
            result.artifact = Some(json!({ "ended": ended }));
        }
        self.tell(Event::ToolResult(Arc::new(message)))
    }

    fn end(&mut self) -> Told {
        let (terminal, _, _) = Terminal::fake(false);
        let over = Transcript::new(terminal, CancellationToken::new());
        std::mem::replace(&mut self.transcript, over).finish().unwrap()
    }
}

fn chunk(id: &str, text: &str) -> Event {
    Event::Text { id: id.into(), text: text.to_owned() }
}

#[test]
fn fragments_become_one_answer_that_ends_its_line() {
    let mut stage = stage(false);
    stage.says("m1", "Hel").says("m1", "lo").end();
    assert_eq!((stage.out.text().as_str(), stage.err.text().as_str()), ("Hello\n", ""));
}

#[test]
fn text_before_a_tool_call_is_on_a_line_of_its_own() {
    let mut stage = stage(false);
    stage.says("m1", "Let me look.").starts("c1", "bash", json!({"command": "ls"}));
    stage.finishes("c1", "bash", ToolStatus::Success, "a\nb\n").says("m2", "Two files.").end();
    assert_eq!(stage.out.text(), "Let me look.\nTwo files.\n");
    assert_eq!(stage.err.text(), "● bash  ls\n  ✓ a (+1 lines)\n");
}

#[test]
fn two_messages_without_a_call_between_them_are_two_lines() {
    let mut stage = stage(false);
    stage.says("m1", "one").says("m2", "two").end();
    assert_eq!(stage.out.text(), "one\ntwo\n");
}

#[test]
fn a_call_shows_its_purpose_and_its_telling_argument() {
    let mut stage = stage(false);
    stage.starts("c1", "bash", json!({"description": "count the lines", "command": "wc -l *.md\necho done"}));
    stage.finishes("c1", "bash", ToolStatus::Success, "");
    stage.starts("c2", "present_files", json!({"filepaths": ["/mnt/a", "/mnt/b"]}));
    stage.finishes("c2", "present_files", ToolStatus::Error, "Error: no such file\nat all");
    let lines = "● bash  count the lines  wc -l *.md echo done\n  ✓ (nothing)\n\
                 ● present_files  /mnt/a, /mnt/b\n  ✗ Error: no such file (+1 lines)\n";
    assert_eq!(stage.err.text(), lines);
}

#[test]
fn a_command_that_failed_says_so_though_it_ran() {
    let mut stage = stage(false);
    stage.starts("c1", "bash", json!({"command": "false"}));
    stage.ends("c1", "bash", "exit code 3", "oops\nExit Code: 3");
    assert_eq!(stage.err.text(), "● bash  false\n  ✗ exit code 3: oops (+1 lines)\n");
}

#[test]
fn outcomes_of_parallel_calls_are_told_apart() {
    let mut stage = stage(false);
    stage.starts("c1", "bash", json!({"command": "one"})).starts("c2", "bash", json!({"command": "two"}));
    stage.finishes("c1", "bash", ToolStatus::Success, "1").finishes("c2", "bash", ToolStatus::Success, "2");
    assert_eq!(stage.err.text(), "● bash  one\n● bash  two\n  ✓ bash one: 1\n  ✓ bash two: 2\n");
}

#[test]
fn a_call_that_could_not_start_is_told_with_its_name() {
    let mut stage = stage(false);
    stage.finishes("c1", "bash", ToolStatus::Error, "Error: the arguments are no JSON");
    assert_eq!(stage.err.text(), "  ✗ bash: Error: the arguments are no JSON\n");
}

#[test]
fn a_long_line_is_cut_to_the_width_and_cannot_steer_the_terminal() {
    let mut stage = stage(false);
    stage.starts("c1", "bash", json!({"command": format!("echo \x1b[31m{}", "x".repeat(500))}));
    stage.finishes("c1", "bash", ToolStatus::Success, &format!("\x1b]0;{}\x07\n2", "y".repeat(500)));
    for line in stage.err.text().lines() {
        assert!(line.chars().count() <= 100 && !line.contains('\x1b'), "{line:?}");
    }
}

#[test]
fn output_of_a_running_tool_is_shown_by_whole_lines_where_somebody_watches() {
    let mut stage = stage(true);
    let progress = |text: &str| Event::ToolProgress { call: "c1".into(), text: text.to_owned() };
    stage.starts("c1", "bash", json!({"command": "make"}));
    stage.tell(progress("com")).tell(progress("piling\nlin")).tell(progress("king\r50%\r100%\n"));
    assert_eq!(stage.err.text(), "● bash  make\n  │ compiling\n  │ linking\n  │ 50%\n  │ 100%\n");
    stage.tell(progress(&"more\n".repeat(100)));
    assert_eq!(stage.err.text().lines().count(), 1 + LIVE_LINES);
}

#[test]
fn output_of_a_running_tool_is_not_logged() {
    let mut stage = stage(false);
    stage.starts("c1", "bash", json!({"command": "make"}));
    stage.tell(Event::ToolProgress { call: "c1".into(), text: "compiling\n".to_owned() });
    assert_eq!(stage.err.text(), "● bash  make\n");
}

#[test]
fn a_question_goes_to_stdout() {
    let mut stage = stage(false);
    stage.says("m1", "I wonder.").starts("c1", "ask_clarification", json!({"question": "Which?"}));
    stage.finishes("c1", "ask_clarification", ToolStatus::Success, "Which?\n1. A\n2. B");
    assert!(stage.end().asked);
    assert_eq!(stage.out.text(), "I wonder.\nWhich?\n1. A\n2. B\n");
    assert_eq!(stage.err.text(), "");
}

#[test]
fn a_question_that_was_refused_is_a_failed_call() {
    let mut stage = stage(false);
    stage.starts("c1", "ask_clarification", json!({}));
    stage.finishes("c1", "ask_clarification", ToolStatus::Error, "Error: the question is empty");
    assert!(!stage.end().asked);
    assert_eq!(stage.err.text(), "  ✗ ask_clarification: Error: the question is empty\n");
}

#[test]
fn tokens_of_all_calls_are_added_and_files_counted_once() {
    let mut stage = stage(false);
    for (input, output) in [(1000, 10), (2000, 20)] {
        stage.tell(Event::Usage { id: "m1".into(), usage: UsageMetadata::new(input, output) });
        let update = Map::from_iter([("artifacts".to_owned(), json!(["/mnt/a", "/mnt/b"]))]);
        stage.tell(Event::Updates { node: "tools".into(), update });
    }
    let told = stage.end();
    assert_eq!(told.usage.total_tokens, 3030);
    assert_eq!(told.presented, ["/mnt/a", "/mnt/b"]);
    let (terminal, _, _) = Terminal::fake(false);
    assert_eq!(tokens(&terminal, &told.usage).unwrap(), "tokens: 3.0k in, 30 out");
    assert_eq!(tokens(&terminal, &UsageMetadata::default()), None);
}

#[test]
fn thinking_is_not_part_of_the_answer() {
    let mut stage = stage(true);
    stage.tell(Event::Reasoning { id: "m1".into(), text: "hmm".to_owned() }).end();
    assert_eq!((stage.out.text().as_str(), stage.err.text().as_str()), ("", ""));
}

#[test]
fn a_reader_that_left_ends_the_run() {
    let terminal = Terminal::over(false, Box::new(Closed), Box::new(Written::default()));
    let stop = CancellationToken::new();
    let mut transcript = Transcript::new(terminal, stop.clone());
    transcript.tell(&chunk("m1", "one"));
    assert!(stop.is_cancelled());
    transcript.tell(&chunk("m1", "two"));
    assert_eq!(transcript.finish().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn nothing_stops_a_run_that_is_read() {
    let mut stage = stage(false);
    stage.says("m1", "one").end();
    assert!(!stage.stop.is_cancelled());
}

#[test]
fn counts_are_short() {
    let shown = [999, 1_000, 1_999, 123_456, 1_000_000, 12_345_678].map(count);
    assert_eq!(shown, ["999", "1.0k", "1.9k", "123.4k", "1.0M", "12.3M"]);
}

#[test]
fn a_model_that_is_asked_again_is_one_line_between_its_answers() {
    let mut stage = stage(false);
    let event =
        json!({"type": "llm_retry", "message": "`m` is overloaded, trying again in 2 s (attempt 2 of 3)"});
    stage.says("m1", "Hel").tell(Event::Custom(event)).says("m2", "Hello").end();
    assert_eq!(stage.out.text(), "Hel\nHello\n");
    assert_eq!(stage.err.text(), "`m` is overloaded, trying again in 2 s (attempt 2 of 3)\n");
    stage.tell(Event::Custom(json!({"type": "something_else", "message": "no"})));
    assert!(!stage.err.text().contains("no\n"));
}

#[test]
fn an_answer_that_begins_anew_is_not_glued_to_what_was_cut_off() {
    let mut stage = stage(false);
    stage.says("m1", "Hel").tell(Event::Withdrawn { id: "m1".into() }).says("m1", "Hello").end();
    assert_eq!(stage.out.text(), "Hel\nHello\n");
    assert_eq!(stage.err.text(), "the server was cut off; the answer begins anew\n");
}
