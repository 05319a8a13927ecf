//! Breaks what an agent stands on, and counts what holds: the agent as configured, in processes of its own.
//!
//! Invariant: nothing of the user's is touched: every trial has a data directory of its own, which goes with it, and
//! ends within its time. What could not be tried is said, never counted as good.

mod child;
mod proxy;
mod script;
mod settings;
mod trial;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;

use crate::config::{AppConfig, LoadOptions};
use crate::scratch::Scratch;
use crate::{App, ChooseError, choice};
use proxy::Proxy;
use settings::Subject;
use trial::{Outcome, Stage};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The process is killed (SIGKILL) and started again.
    Kill,
    /// The provider answers 429 or 503.
    #[serde(rename = "429")]
    RateLimit,
    /// The provider takes the request and says nothing.
    Timeout,
    /// The provider's stream is garbage, or ends in the middle.
    Malformed,
    /// The disk is full for a while.
    DiskFull,
    /// Somebody asks for the stream and does not read it.
    SlowReader,
}

impl Fault {
    pub const ALL: [Self; 6] =
        [Self::Kill, Self::RateLimit, Self::Timeout, Self::Malformed, Self::DiskFull, Self::SlowReader];

    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::RateLimit => "429",
            Self::Timeout => "timeout",
            Self::Malformed => "malformed",
            Self::DiskFull => "disk-full",
            Self::SlowReader => "slow-reader",
        }
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|fault| fault.name() == name)
            .ok_or_else(|| format!("the faults are {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// What to try.
#[derive(Clone, Debug)]
pub struct ChaosOptions<'a> {
    /// What the agent is asked; without it, a task whose effects can be counted.
    pub task: Option<String>,
    pub model: Option<String>,
    /// Of each fault.
    pub runs: u32,
    /// The same seed breaks at the same places.
    pub seed: u64,
    pub faults: Vec<Fault>,
    /// What a run may take.
    pub time_limit: Duration,
    /// The binary under test.
    pub program: PathBuf,
    /// Where the configuration of the agent is.
    pub config: LoadOptions<'a>,
}

/// What held.
#[derive(Clone, Debug, Serialize)]
pub struct ChaosReport {
    /// Who answered.
    pub model: String,
    /// Not a model but a fixed script.
    pub scripted: bool,
    pub seed: u64,
    pub rows: Vec<ChaosRow>,
}

impl ChaosReport {
    /// Whether every guarantee that was tried held.
    pub fn holds(&self) -> bool {
        self.rows.iter().all(|row| row.verdict != Verdict::Broken)
    }
}

/// What came of one fault.
#[derive(Clone, Debug, Serialize)]
pub struct ChaosRow {
    pub fault: Fault,
    pub runs: u32,
    pub finished: u32,
    /// Went on in another process.
    pub resumed: u32,
    /// Effects that happened more often than the agent asked for; none where nobody counts them.
    pub repeated_effects: Option<u64>,
    /// Events that a reader who stayed was not told, or was told twice.
    pub lost_events: u64,
    pub verdict: Verdict,
    /// What broke, or why it was not tried.
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Held,
    Broken,
    Skipped,
}

/// Why nothing could be tried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChaosError {
    #[error(transparent)]
    Model(#[from] ChooseError),
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    #[error("no temporary directory or port can be had")]
    Io(#[from] std::io::Error),
    #[error("the agent does not even finish the task when nothing is broken: {0}")]
    Baseline(String),
}

impl App {
    /// Runs the agent against faults. `progress` hears what is being tried.
    pub async fn chaos(
        &self,
        options: ChaosOptions<'_>,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<ChaosReport, ChaosError> {
        let chosen = choice::choose(&self.workshop, options.model.as_deref()).await?;
        let raw = AppConfig::raw(options.config.clone())?;
        let subject = Subject::new(&self.workshop, &chosen, raw).await?;
        let scratch = Scratch::new("chaos")?;
        let proxy = Proxy::start(subject.upstreams.clone()).await?;
        let stage = Stage { options: &options, subject: &subject, proxy: &proxy, scratch: &scratch };
        let mut random = Random::new(options.seed);

        progress("nothing: how the task goes by itself");
        let baseline = stage.trial(None, 0, &mut random).await?;
        if let Some(why) = &baseline.unfinished {
            return Err(ChaosError::Baseline(why.clone()));
        }
        let mut rows = Vec::new();
        for fault in &options.faults {
            rows.push(stage.row(*fault, &baseline, &mut random, progress).await?);
        }
        proxy.stop().await;
        let model = if subject.scripted { "a bundled script".to_owned() } else { chosen.name };
        Ok(ChaosReport { model, scripted: subject.scripted, seed: options.seed, rows })
    }
}

impl Stage<'_> {
    async fn row(
        &self,
        fault: Fault,
        baseline: &Outcome,
        random: &mut Random,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<ChaosRow, ChaosError> {
        let mut row = ChaosRow {
            fault,
            runs: 0,
            finished: 0,
            resumed: 0,
            repeated_effects: baseline.counted.then_some(0),
            lost_events: 0,
            verdict: Verdict::Held,
            notes: Vec::new(),
        };
        for nth in 1..=self.options.runs {
            progress(&format!("{} ({nth} of {})", fault.name(), self.options.runs));
            let outcome = self.trial(Some(fault), baseline.frames, random).await?;
            if let Some(why) = outcome.skipped {
                row.notes.push(why);
                row.verdict = Verdict::Skipped;
                break;
            }
            row.count(&outcome);
        }
        Ok(row)
    }
}

impl ChaosRow {
    fn count(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.finished += u32::from(outcome.unfinished.is_none());
        self.resumed += u32::from(outcome.resumed);
        self.lost_events += outcome.lost;
        if let Some(repeated) = &mut self.repeated_effects {
            *repeated += outcome.repeated;
        }
        let mut broke = |what: String| {
            self.verdict = Verdict::Broken;
            self.notes.push(format!("run {}: {what}", self.runs));
        };
        if let Some(why) = &outcome.unfinished {
            broke(format!("not finished: {why}"));
        }
        if outcome.lost > 0 {
            broke(format!("{} events lost or doubled", outcome.lost));
        }
        if outcome.repeated > 0 {
            broke(format!("{} effects repeated", outcome.repeated));
        }
    }
}

/// Chooses where to break; the same seed chooses the same.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        // Seeds that people choose are small and alike.
        let mut mixed = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            mixed.next();
        }
        mixed
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// From `least` to `most`, both of them possible.
    fn between(&mut self, least: usize, most: usize) -> usize {
        let span = most.saturating_sub(least) as u64 + 1;
        least + usize::try_from(self.next() % span).unwrap_or(0)
    }
}
