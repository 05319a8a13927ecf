//! One run against one fault, and what came of it.
//!
//! Invariant: what is counted is seen from outside: by a reader of the stream, in the thread's files, in its state.

use std::collections::HashSet;
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use hart_client::{Ask, Client as _, ClientError, HttpClient, RunStream};
use hart_types::{EventId, RunId, RunStatus, ThreadId};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::child::{Hart, Plan};
use super::proxy::{Break, Proxy};
use super::script::{LEDGER, MARKS, command, task};
use super::settings::Subject;
use super::{ChaosError, ChaosOptions, Fault, Random};
use crate::scratch::Scratch;

/// What all trials share.
pub(super) struct Stage<'a> {
    pub(super) options: &'a ChaosOptions<'a>,
    pub(super) subject: &'a Subject,
    pub(super) proxy: &'a Proxy,
    pub(super) scratch: &'a Scratch,
}

#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Why it did not come to its end.
    pub(super) unfinished: Option<String>,
    /// Why it was not tried.
    pub(super) skipped: Option<String>,
    pub(super) resumed: bool,
    pub(super) repeated: u64,
    /// Whether the task left any marks to count.
    pub(super) counted: bool,
    pub(super) lost: u64,
    /// How much there was to read.
    pub(super) frames: usize,
}

/// How large the disk is that is going to be full: enough for a thread, quickly filled.
const DISK: &str = "24m";
/// How long it stays full.
const FULL: Duration = Duration::from_secs(2);

impl Stage<'_> {
    /// `frames` is what a run without a fault tells, about.
    pub(super) async fn trial(
        &self,
        fault: Option<Fault>,
        frames: usize,
        random: &mut Random,
    ) -> Result<Outcome, ChaosError> {
        let dir = self.scratch.path().join(RunId::generate().as_str());
        std::fs::create_dir(&dir)?;
        let silence = if self.subject.scripted { 2 } else { 20 };
        let slow = (fault == Some(Fault::Timeout)).then_some(silence);
        self.proxy.arm(breaks(fault, Duration::from_secs(silence * 2), random));
        let plan = self.plan(dir.clone(), slow, (fault == Some(Fault::DiskFull)).then_some(DISK))?;
        let hart = match plan.start().await {
            Ok(hart) => hart,
            Err(error) if fault == Some(Fault::DiskFull) => {
                let skipped = Some(format!("no small file system can be made here: {error}"));
                return Ok(Outcome { skipped, ..Outcome::default() });
            }
            Err(error) => return Err(error.into()),
        };
        let within = self.options.time_limit;
        let outcome = match tokio::time::timeout(within, self.run(hart, fault, frames, random)).await {
            Ok(outcome) => outcome?,
            Err(_) => {
                let unfinished = Some(format!("it took longer than {} s", within.as_secs()));
                Outcome { unfinished, ..Outcome::default() }
            }
        };
        // Frees the disk between trials; the rest goes at the end.
        let _ = std::fs::remove_dir_all(&dir);
        Ok(outcome)
    }

    fn plan(&self, dir: PathBuf, silence: Option<u64>, disk: Option<&'static str>) -> io::Result<Plan> {
        let (config, home) = (dir.join("config.yaml"), dir.join("home"));
        std::fs::create_dir(&home)?;
        std::fs::write(&config, self.subject.file(&self.proxy.url(), silence))?;
        // Free now, and nobody else's business to take it until it is used.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let program = self.options.program.clone();
        Ok(Plan { program, config, home, port, log: dir.join("hart.log"), disk })
    }

    async fn run(
        &self,
        hart: Hart,
        fault: Option<Fault>,
        frames: usize,
        random: &mut Random,
    ) -> Result<Outcome, ChaosError> {
        let client = match HttpClient::new(&hart.url(), None) {
            Ok(client) => client,
            Err(error) => return Ok(failed(&error, &hart)),
        };
        let thread = ThreadId::generate();
        let words = self.options.task.clone().unwrap_or_else(task);
        let ask = Ask::new(words).thread(thread.clone()).model(self.subject.model());
        let mut stream = match client.start(ask).await {
            Ok(stream) => stream,
            Err(error) => return Ok(failed(&error, &hart)),
        };
        let run = stream.run().clone();
        let mut seen = Seen::default();
        let hart = match fault {
            Some(Fault::Kill) => {
                let at = random.between(2, frames.saturating_sub(2).max(2));
                seen.read(&mut stream, Some(at)).await;
                hart.kill_and_restart().await?
            }
            Some(Fault::DiskFull) => {
                self.proxy.called(1).await;
                let ballast = hart.home().join("ballast");
                fill(&ballast)?;
                tokio::time::sleep(FULL).await;
                std::fs::remove_file(&ballast)?;
                hart
            }
            _ => hart,
        };
        let _deaf = match fault {
            Some(Fault::SlowReader) => Some(deaf_reader(&hart, &thread, &run).await?),
            _ => None,
        };
        seen.read(&mut stream, None).await;
        let unfinished = match (&seen.error, stream.record().await) {
            (Some(error), _) => Some(format!("{error}; hart said: {}", hart.said())),
            (None, Ok(Some(record))) if record.status == RunStatus::Success => None,
            (None, Ok(Some(record))) => {
                Some(format!("{}: {}", record.status, record.error.unwrap_or_default()))
            }
            (None, Ok(None)) => Some("the run is gone".to_owned()),
            (None, Err(error)) => Some(error.to_string()),
        };
        let told = all(&client, &run).await;
        let ledger = ledger(&hart, &thread);
        let repeated = match (&self.options.task, client.thread(&thread).await) {
            (None, Ok(state)) => repeated(&ledger, &Value::Object(state.values.to_json())),
            _ => 0,
        };
        let hit = match fault {
            Some(Fault::RateLimit | Fault::Timeout | Fault::Malformed) => self.proxy.calls() > 1,
            _ => true,
        };
        Ok(Outcome {
            unfinished: unfinished.or((!hit).then(|| "the fault was never met".to_owned())),
            skipped: None,
            resumed: told.resumed,
            repeated,
            counted: self.options.task.is_none() && !ledger.is_empty(),
            lost: seen.lost(&told),
            frames: seen.ids.len(),
        })
    }
}

/// What goes wrong with which call.
fn breaks(fault: Option<Fault>, silence: Duration, random: &mut Random) -> Vec<Option<Break>> {
    let pick = |random: &mut Random, of: &[Break]| of.get(random.between(0, of.len() - 1)).copied();
    let broken = match fault {
        Some(Fault::RateLimit) => pick(random, &[Break::Status(429), Break::Status(503), Break::Status(529)]),
        Some(Fault::Timeout) => Some(Break::Silence(silence)),
        Some(Fault::Malformed) => pick(random, &[Break::Garbage, Break::CutOff, Break::Page]),
        _ => None,
    };
    let spared = if broken.is_some() { random.between(0, 1) } else { 0 };
    std::iter::repeat_n(None, spared).chain([broken]).collect()
}

/// What a reader was told.
#[derive(Default)]
struct Seen {
    ids: Vec<EventId>,
    resumed: bool,
    error: Option<String>,
}

impl Seen {
    /// Reads on: until it has so many frames, or to the end.
    async fn read(&mut self, stream: &mut RunStream, until: Option<usize>) {
        while until.is_none_or(|until| self.ids.len() < until) {
            match stream.next_frame().await {
                None => return,
                Some(Ok(frame)) => {
                    self.ids.extend(frame.id);
                    let resumed = || frame.json().get("type").is_some_and(|kind| kind == "run_resumed");
                    self.resumed |= frame.event == "custom" && resumed();
                    if frame.event == "gap" {
                        self.error = Some("a gap in the stream".to_owned());
                    }
                }
                Some(Err(error)) => {
                    self.error = Some(error.to_string());
                    return;
                }
            }
        }
    }

    /// What was in the log and not told, or told twice.
    fn lost(&self, told: &Self) -> u64 {
        let mine: HashSet<&EventId> = self.ids.iter().collect();
        let missing = told.ids.iter().filter(|id| !mine.contains(id)).count();
        (missing + self.ids.len() - mine.len()) as u64
    }
}

/// The whole log, read anew.
async fn all(client: &HttpClient, run: &RunId) -> Seen {
    let mut told = Seen::default();
    if let Ok(mut stream) = client.join(run).await {
        told.read(&mut stream, None).await;
    }
    told
}

/// The marks that commands left in the thread's workspace.
fn ledger(hart: &Hart, thread: &ThreadId) -> String {
    let of_thread = hart.home().join("users").join("default").join("threads").join(thread.as_str());
    std::fs::read_to_string(of_thread.join("user-data").join("workspace").join(LEDGER)).unwrap_or_default()
}

/// How often the commands took effect beyond what the agent asked for.
fn repeated(ledger: &str, values: &Value) -> u64 {
    let marks = |mark: &str| ledger.lines().filter(|line| line.trim() == mark).count() as u64;
    let messages = values.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let calls = messages.iter().filter_map(|message| message.get("tool_calls")?.as_array()).flatten();
    let asked: Vec<&str> =
        calls.filter_map(|call| call.pointer("/args/command").and_then(Value::as_str)).collect();
    let asked = |mark: &str| asked.iter().map(|text| text.matches(&command(mark)).count() as u64).sum();
    MARKS.iter().map(|mark| marks(mark).saturating_sub(asked(mark))).sum()
}

/// Asks for the stream and never reads it.
async fn deaf_reader(hart: &Hart, thread: &ThreadId, run: &RunId) -> io::Result<TcpStream> {
    let mut line = TcpStream::connect(("127.0.0.1", hart.port())).await?;
    let path = format!("/threads/{thread}/runs/{run}/stream");
    let request = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nlast-event-id: -1\r\n\r\n");
    line.write_all(request.as_bytes()).await?;
    Ok(line)
}

/// Writes until there is no room.
fn fill(path: &std::path::Path) -> io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    let mut block = vec![0_u8; 1 << 20];
    while !block.is_empty() {
        if file.write_all(&block).is_err() {
            // The last bytes, too.
            block.truncate(block.len() / 8);
        }
    }
    Ok(())
}

fn failed(error: &ClientError, hart: &Hart) -> Outcome {
    Outcome { unfinished: Some(format!("{error}; hart said: {}", hart.said())), ..Outcome::default() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mark_that_nobody_asked_for_again_is_a_repeated_effect() {
        let call = |mark: &str| json!({"tool_calls": [{"name": "bash", "args": {"command": command(mark)}}]});
        let values = json!({"messages": [call("one"), call("two"), call("two"), {"content": "done"}]});
        assert_eq!(repeated("one\ntwo\ntwo\n", &values), 0);
        assert_eq!(repeated("one\none\ntwo\n", &values), 1);
        assert_eq!(repeated("two\n", &values), 0, "what did not happen is not repeated");
        assert_eq!(repeated("three\n", &values), 1);
    }

    #[test]
    fn events_that_are_missing_or_doubled_are_lost() {
        let id = |seq| EventId { ms: 1, seq };
        let seen = |ids: &[u64]| Seen { ids: ids.iter().map(|seq| id(*seq)).collect(), ..Seen::default() };
        let log = seen(&[8, 16, 24]);
        assert_eq!(seen(&[8, 16, 24]).lost(&log), 0);
        assert_eq!(seen(&[8, 16, 20, 24]).lost(&log), 0, "what a crash took back was seen, too");
        assert_eq!(seen(&[8, 24]).lost(&log), 1);
        assert_eq!(seen(&[8, 16, 16, 24]).lost(&log), 1);
    }
}
