//! Runs on a machine that is made of a seed: killed, stopped, without power, with a disk that is full or fails. What they
//! leave is what an undisturbed machine leaves.
//!
//! `HART_SIM_SEEDS` tries more of them, `HART_SIM_SEED` one again, with all that happened.

mod agents;
mod oracle;
mod plans;
mod world;

use std::time::Duration;

use hart_testkit::sim::{Cut, Fault, Machine, Random, Trouble, each_seed};

use self::plans::{Job, PLANS};
use self::world::World;

/// How many seeds are tried with the other tests.
const SEEDS: u64 = 2000;
/// How to have a seed again.
const AGAIN: &str = "cargo test -p hart-runtime --test main sim::whatever -- --nocapture";

/// What is asked of a machine, and what happens to it.
struct Fate {
    nodes: usize,
    jobs: Vec<Job>,
    troubles: Vec<(u64, Trouble)>,
}

impl Fate {
    fn of(random: &mut Random) -> Self {
        let threads = random.pick(&[1, 1, 2]);
        let jobs = (0..threads).map(|n| Job::of(n, random)).collect();
        let mut at = 0;
        // Five attempts that end with their process are enough for a run to be given up: fewer leave it no excuse.
        let troubles = (0..random.within(0..=4)).map(|_| {
            at += random.within(1..=120);
            (at, trouble(random))
        });
        let troubles = troubles.collect();
        Self { nodes: random.pick(&[1, 1, 2]), jobs, troubles }
    }

    /// Whether the disk fails at something.
    fn breaks(&self) -> bool {
        self.troubles.iter().any(|(_, trouble)| matches!(trouble, Trouble::Fault(_)))
    }
}

fn trouble(random: &mut Random) -> Trouble {
    match random.within(0..=9) {
        0..3 => Trouble::Kill,
        3..6 => Trouble::PowerCut(match random.within(0..=3) {
            0 => Cut::AfterSync,
            _ => Cut::BeforeWrite(random.within(0..=8)),
        }),
        6..8 => Trouble::Freeze(Duration::from_millis(random.within(100..=40_000))),
        8 => Trouble::Full(Duration::from_millis(random.within(100..=20_000))),
        _ => Trouble::Fault(random.pick(&[Fault::Read, Fault::Write, Fault::Sync])),
    }
}

/// The trace of a seed, if all is as it must be, and its story if that is wanted.
fn simulate(seed: u64, tell: bool) -> (u64, Vec<String>) {
    let mut random = Random::new(seed);
    let fate = Fate::of(&mut random);
    let Lived { trace, told, .. } = live(&fate, random, tell, |machine| machine);
    (trace, told)
}

/// What is left of a machine's life, if all is as it must be.
struct Lived {
    trace: u64,
    told: Vec<String>,
    longest_pause: Duration,
}

fn live(fate: &Fate, random: Random, tell: bool, made: impl Fn(Machine) -> Machine) -> Lived {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let machine = Machine::new(world::formatted(), random, fate.troubles.clone(), tell);
        let world = World::new(made(machine));
        let told = Telling(&world);
        world.live(fate).await;
        let longest_pause = oracle::judge(&world, fate).await;
        std::mem::forget(told);
        Lived { trace: world.machine.trace(), told: world.machine.told(), longest_pause }
    })
}

/// Prints what happened if it is dropped on the way.
struct Telling<'a>(&'a World);

impl Drop for Telling<'_> {
    #[expect(clippy::print_stderr, reason = "whoever replays a seed wants to read what happened")]
    fn drop(&mut self) {
        self.0.machine.told().iter().for_each(|line| eprintln!("{line}"));
    }
}

fn is_one_seed() -> bool {
    #[allow(clippy::disallowed_methods, reason = "a test is told by its environment what to show")]
    std::env::var("HART_SIM_SEED").is_ok()
}

#[test]
fn whatever_happens_to_a_machine_its_runs_end_as_on_an_undisturbed_one() {
    each_seed(SEEDS, AGAIN, |seed| {
        simulate(seed, is_one_seed());
    });
}

/// In the machine's own time, which passes only when nobody has anything to do.
#[test]
fn a_run_whose_process_is_killed_goes_on_within_ten_seconds() {
    each_seed(100, "cargo test -p hart-runtime --test main sim::a_run_whose", |seed| {
        let mut random = Random::new(seed);
        let troubles = vec![(random.within(1..=100), Trouble::Kill)];
        let jobs = vec![Job::of(0, &mut random), Job::of(1, &mut random)];
        let fate = Fate { nodes: random.pick(&[1, 2]), jobs, troubles };
        let Lived { longest_pause, told, .. } = live(&fate, random, is_one_seed(), Machine::prompt);
        let told = told.join("\n");
        assert!(longest_pause <= Duration::from_secs(10), "seed {seed}: {longest_pause:?}\n{told}");
    });
}

#[test]
fn the_same_seed_is_the_same_story() {
    each_seed(60, AGAIN, |seed| {
        let (one, other) = (simulate(seed, true), simulate(seed, true));
        let parting = one.1.iter().zip(&other.1).position(|(one, other)| one != other);
        let around = |story: &[String]| {
            parting.map(|at| story[at.saturating_sub(5)..(at + 3).min(story.len())].to_vec())
        };
        assert!(one.0 == other.0, "seed {seed}: {:#?}\n{:#?}", around(&one.1), around(&other.1));
    });
}

#[test]
fn every_plan_is_followed_where_nothing_happens() {
    for (name, _) in PLANS {
        let transcript = oracle::undisturbed(name);
        assert_eq!(transcript.last().unwrap().1, "all is done", "{name}");
    }
}
