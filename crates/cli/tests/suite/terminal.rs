//! hart at a terminal: the spinner, the line editor, Ctrl-C as a key.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use hart_testkit::{Dialect, Turn};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;

use super::bench::Bench;
use super::errors::block_on;

/// Bounds a test that hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A hart whose three streams are one terminal.
pub(super) struct Seat {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    seen: String,
}

impl Seat {
    #[expect(clippy::disallowed_methods, reason = "the process under test is hart itself")]
    pub(super) fn take(bench: &Bench, args: &[&str]) -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let name = ptsname(&keyboard, Vec::new()).unwrap().into_string().unwrap();
        let side = || -> Stdio {
            Stdio::from(OwnedFd::from(OpenOptions::new().read(true).write(true).open(&name).unwrap()))
        };
        // `setsid` makes the terminal the controlling one, so that Ctrl-C is a signal.
        let child = Command::new("setsid")
            .args(["--ctty", "--wait", env!("CARGO_BIN_EXE_hart")])
            .args(args)
            .current_dir(bench.dir.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", bench.dir.path())
            .env("HART_HOME", bench.dir.path().join(".hart"))
            .env("HART_NO_PROBE", "1")
            .env("TERM", "xterm")
            .env("OPENAI_API_KEY", "sk-test")
            .env("OPENAI_BASE_URL", bench.server.openai_base())
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .spawn()
            .unwrap();
        let keyboard = File::from(keyboard);
        let mut reader = keyboard.try_clone().unwrap();
        let (sender, screen) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, keyboard, screen, seen: String::new() }
    }

    pub(super) fn type_keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen shows it, and forgets what came before it.
    pub(super) fn sees(&mut self, needle: &str) {
        while !self.seen.contains(needle) {
            match self.screen.recv_timeout(PATIENCE) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("no {needle:?} in {:?}", self.seen),
            }
        }
        let (_, rest) = self.seen.split_once(needle).unwrap();
        self.seen = rest.to_owned();
    }

    /// Everything until the end, and how it ended.
    pub(super) fn leave(mut self) -> (ExitStatus, String) {
        while let Ok(bytes) = self.screen.recv_timeout(PATIENCE) {
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
        (self.child.wait().unwrap(), self.seen.clone())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn bench(turns: impl IntoIterator<Item = Turn>) -> Bench {
    let bench = Bench::new(Dialect::OpenAi);
    bench.server.push_all(turns);
    bench
}

fn history(dir: &Path) -> String {
    fs::read_to_string(dir.join(".hart/history")).unwrap()
}

#[test]
fn a_run_shows_a_spinner_the_tools_and_the_answer() {
    let command = json!({"command": "echo working; sleep 1; echo done"});
    let bench = bench([Turn::new().tool_call("c1", "bash", command), Turn::new().text("It is done.")]);
    let mut seat = Seat::take(&bench, &["run", "work"]);
    seat.sees("waiting for the model");
    seat.sees("bash");
    seat.sees("│ working");
    seat.sees("✓");
    seat.sees("15 tokens");
    seat.sees("It is done.\r\n");
    let (status, rest) = seat.leave();
    assert_eq!(status.code(), Some(0));
    assert!(rest.contains("tokens: 20 in, 10 out"), "{rest}");
}

#[test]
fn ctrl_c_at_a_terminal_cancels_the_run() {
    let bench = bench([Turn::hang()]);
    let mut seat = Seat::take(&bench, &["run", "wait"]);
    block_on(bench.server.wait_for_requests(1));
    seat.type_keys("\x03");
    seat.sees("cancelling");
    assert_eq!(seat.leave().0.code(), Some(130));
}

#[test]
fn ctrl_c_ends_the_run_but_not_the_chat() {
    let bench = bench([Turn::hang(), Turn::new().text("Here I am.")]);
    let mut seat = Seat::take(&bench, &["chat"]);
    seat.sees("> ");
    seat.type_keys("first\r");
    block_on(bench.server.wait_for_requests(1));
    seat.type_keys("\x03");
    seat.sees("interrupted");
    seat.sees("> ");
    seat.type_keys("second\r");
    seat.sees("Here I am.");
    seat.sees("> ");
    seat.type_keys("\x04");
    let (status, rest) = seat.leave();
    assert_eq!(status.code(), Some(0));
    assert!(rest.contains("hart chat --thread"), "{rest}");
    let said = bench.server.last_request().texts_of("user").concat();
    assert!(said.contains("first") && said.contains("second"), "{said}");
}

#[test]
fn the_editor_keeps_lines_together_clears_on_ctrl_c_and_remembers() {
    let bench = bench([Turn::new().text("one"), Turn::new().text("two")]);
    let mut seat = Seat::take(&bench, &["chat"]);
    seat.sees("> ");
    seat.type_keys("never sent\x03");
    seat.sees("> ");
    seat.type_keys("a\\\rb\r");
    seat.sees("one");
    seat.sees("> ");
    seat.type_keys("\x1b[200~pasted\nlines\x1b[201~\r");
    seat.sees("two");
    seat.sees("> ");
    seat.type_keys("/quit\r");
    assert_eq!(seat.leave().0.code(), Some(0));
    let said = bench.server.last_request().texts_of("user");
    assert!(said[0].contains("a\nb") && said[1].contains("pasted\nlines"), "{said:?}");
    let history = history(bench.dir.path());
    assert!(history.contains("pasted") && !history.contains("never sent"), "{history}");
}

#[test]
fn an_answer_cannot_steer_the_terminal() {
    let bench = bench([Turn::new().text("a\x1b]0;owned\x07b")]);
    let mut seat = Seat::take(&bench, &["run", "hi"]);
    seat.sees("a␛]0;owned␇b");
    assert_eq!(seat.leave().0.code(), Some(0));
}

#[test]
fn a_chat_that_waits_at_its_prompt_can_be_terminated() {
    // The second time after a run, when signals are handled already.
    for lines in [0, 1] {
        let bench = bench([Turn::new().text("hello")]);
        let mut seat = Seat::take(&bench, &["chat"]);
        for _ in 0..lines {
            seat.sees("> ");
            seat.type_keys("hi\r");
            seat.sees("hello");
        }
        seat.sees("> ");
        let pid = Pid::from_child(&seat.child);
        kill_process(pid, Signal::TERM).unwrap();
        assert_eq!(seat.leave().0.code(), Some(130));
    }
}
