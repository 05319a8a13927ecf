//! Real processes killed at every named place and at any moment: what they leave is what an undisturbed one leaves.
//!
//! A few cells of the matrix run with the other tests; `make chaos` runs all of them.
#![allow(
    clippy::disallowed_methods,
    reason = "a test is a process of its own, and told so by its environment"
)]

mod agents;
mod cell;
mod fuse;
mod outcome;
mod process;
mod scenarios;

use std::collections::HashMap;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hart_testkit::sim::Random;

use self::cell::{Cell, Role};
use self::outcome::Outcome;
use self::scenarios::{Scenario, long, scenarios};

/// The operations a run's life is made of. What only happens behind a crash, or when a process leaves, is below.
const PLACES: [&str; 17] = [
    "create_thread",
    "admit",
    "admitted",
    "claim",
    "append_steps",
    "append_child_steps",
    "append_events",
    "begin_effect",
    "effect",
    "finish_effect",
    "withdraw_effect",
    "end_run",
    "numbers",
    "join",
    "beat",
    "put_off",
    "drop_letter",
];

/// Which of them a scenario must pass, so that none is left out unseen.
const PASSED: [(&str, &str); 6] = [
    ("question", "withdraw_effect"),
    ("delegation", "append_child_steps"),
    ("delegation", "withdraw_effect"),
    ("command", "beat"),
    ("linear", "put_off"),
    ("linear", "drop_letter"),
];

/// Which of them are passed once or more often, as time will have it: events are written in groups, and whoever has
/// executed a run looks for the next one, which may have been claimed by then; a process may end before it has delivered
/// its last letter. Who survives is as an undisturbed one.
const TIMED: [&str; 3] = [":append_events:", ":claim:", ":drop_letter:"];

/// All of the matrix, or a few cells of it.
fn is_long() -> bool {
    std::env::var("HART_CHAOS").is_ok_and(|how| how == "long")
}

fn scenario(name: &str) -> Scenario {
    scenarios().into_iter().find(|scenario| scenario.name == name).unwrap()
}

/// An undisturbed run: what must come out, how often each place is passed, and how long it takes here and now.
fn undisturbed(scenario: &Scenario) -> (Outcome, HashMap<String, u32>, Duration) {
    let (cell, begun) = (Cell::new(scenario), Instant::now());
    assert!(!cell.run(""), "{}", scenario.name);
    let took = begun.elapsed();
    let (counts, outcome) = (cell.counts(), Outcome::of(&cell));
    assert!(outcome.is_told(), "{outcome:#?}");
    assert_eq!(outcome.transcript.last().unwrap().1, "all is done", "{outcome:#?}");
    (outcome, counts, took)
}

fn killed_everywhere(name: &str) {
    let scenario = scenario(name);
    let (expected, counts, _) = undisturbed(&scenario);
    assert_eq!(expected.compactions > 0, name == "compaction");
    for (_, place) in PASSED.iter().filter(|(of, _)| *of == name) {
        assert!(counts.contains_key(*place), "{name} does not pass {place}");
    }
    let mut cells = Vec::new();
    for place in PLACES {
        let passed = match counts.get(place) {
            // Whether a process has to show that it lives is a matter of time: here it is sure to, once.
            Some(_) if place == "beat" => u32::from(PASSED.contains(&(name, place))),
            passed => passed.copied().unwrap_or(0),
        };
        for nth in 1..=passed {
            // In the short matrix one passage of each place, another one for each scenario.
            let picked = 1 + u32::try_from(name.len() + place.len()).unwrap() % passed;
            if is_long() || nth == picked {
                let sides = if is_long() {
                    vec!["before", "after"]
                } else {
                    vec![["before", "after"][(place.len() + name.len()) % 2]]
                };
                cells.extend(sides.into_iter().map(|when| format!("{when}:{place}:{nth}")));
            }
        }
    }
    each(cells, |place| {
        let cell = Cell::new(&scenario);
        let killed = cell.run(&place);
        // Nothing is left to wait for once the only letter is gone.
        let may_survive = place.starts_with("after:drop_letter:")
            || (TIMED.iter().any(|timed| place.contains(timed)) && !place.ends_with(":1"));
        assert!(killed || may_survive, "{name} {place}: it survived");
        goes_on(&cell, &format!("{name} {place}"), &expected);
    });
}

/// All of them, two at a time; those that fail are named in the end. One alone can be had again with its name.
fn each<T: Display + Send>(cells: Vec<T>, check: impl Fn(T) + Sync) {
    let only = std::env::var("HART_CHAOS_CELL").ok();
    let asked = |cell: &T| only.as_ref().is_none_or(|only| cell.to_string() == *only);
    let left = Mutex::new(cells.into_iter().filter(asked).collect::<Vec<_>>());
    let failed = Mutex::new(Vec::new());
    let next = || left.lock().unwrap().pop();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(cell) = next() {
                    let name = cell.to_string();
                    if catch_unwind(AssertUnwindSafe(|| check(cell))).is_err() {
                        failed.lock().unwrap().push(format!("HART_CHAOS_CELL={name}"));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "see above; to have one again: {failed:#?}");
}

/// Somebody comes who is left alone.
fn goes_on(cell: &Cell, place: &str, expected: &Outcome) {
    for attempt in 0.. {
        assert!(attempt < 3, "{place}: it does not end");
        if !cell.run("") {
            break;
        }
    }
    Outcome::of(cell).assert_same(place, expected);
}

#[test]
fn a_linear_run_is_killed_everywhere() {
    killed_everywhere("linear");
}

#[test]
fn a_run_with_parallel_calls_is_killed_everywhere() {
    killed_everywhere("parallel");
}

#[test]
fn a_run_with_a_question_is_killed_everywhere() {
    killed_everywhere("question");
}

#[test]
fn a_run_that_edits_files_is_killed_everywhere() {
    killed_everywhere("edit");
}

#[test]
fn a_run_that_is_compacted_is_killed_everywhere() {
    killed_everywhere("compaction");
}

#[test]
fn a_run_with_a_command_is_killed_everywhere() {
    killed_everywhere("command");
}

#[test]
fn a_run_with_a_subagent_is_killed_everywhere() {
    killed_everywhere("delegation");
}

/// Whoever takes a run over may die of it, too.
#[test]
fn a_run_is_killed_again_where_it_is_taken_over() {
    let names: Vec<_> = scenarios().into_iter().map(|scenario| scenario.name).collect();
    for name in if is_long() { names } else { vec!["delegation"] } {
        let scenario = scenario(name);
        let (expected, ..) = undisturbed(&scenario);
        each(vec!["before:take_over:1".to_owned(), "after:take_over:1".to_owned()], |place| {
            let cell = Cell::new(&scenario);
            assert!(cell.run("after:begin_effect:1"), "{name}");
            assert!(cell.run(&place), "{name} {place}: it survived");
            goes_on(&cell, &format!("{name} {place}"), &expected);
        });
    }
}

/// A process that ends in order leaves its run to the next one, and may be killed while it does.
#[test]
fn a_run_is_killed_where_it_is_let_go_of() {
    let scenario = scenario("command");
    let (expected, ..) = undisturbed(&scenario);
    each(["", "before:release:1", "after:release:1"].map(str::to_owned).to_vec(), |place| {
        let cell = Cell::new(&scenario);
        let killed = cell.play(&Role { leaves: true, ..cell.role(&place) });
        assert_eq!(killed, !place.is_empty(), "{place}");
        goes_on(&cell, &format!("command {place}"), &expected);
    });
}

/// Many steps, several summaries, subagents all the way, and a crash every so often.
#[test]
fn a_long_run_is_killed_again_and_again() {
    let (rounds, compact_at, crashes, steps) = if is_long() { (63, 160, 5, 90) } else { (6, 20, 2, 20) };
    let scenario = long(rounds, compact_at);
    let (expected, counts, _) = undisturbed(&scenario);
    assert!(expected.compactions > crashes / 2, "{}", expected.compactions);
    // One for its words, two for each of four answers and their results, and the last answer.
    assert!(counts["append_steps"] as usize > 8 * rounds, "{counts:?}");
    let cell = Cell::new(&scenario);
    for _ in 0..crashes {
        assert!(cell.run(&format!("after:append_steps:{steps}")), "it survived");
    }
    goes_on(&cell, "long", &expected);
}

/// Kills at moments that nobody chose, until the run is through.
#[test]
fn runs_are_killed_at_any_moment() {
    let rounds = if is_long() { 300 } else { scenarios().len() };
    let plans: Vec<_> = scenarios().into_iter().map(|scenario| (undisturbed(&scenario), scenario)).collect();
    let kills = AtomicU32::new(0);
    // The moments can be had again with the seed, the machine's own timing cannot.
    let seed = match std::env::var("HART_CHAOS_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => uuid::Uuid::now_v7().as_u128() as u64,
    };
    println!("HART_CHAOS_SEED={seed}");
    each((0..rounds).collect(), |round| {
        let ((expected, _, takes), scenario) = &plans[round % plans.len()];
        let mut random = Random::new(seed.wrapping_add(round as u64));
        let cell = Cell::new(scenario);
        let mut killed = 0;
        // Any moment of its life, however slow the machine is. Not for ever: a run that gets nowhere five times is
        // given up.
        while killed < 4 && cell.run_for(takes.mul_f64(random.within(0..=1200) as f64 / 1000.0)) {
            killed += 1;
        }
        kills.fetch_add(killed, Ordering::Relaxed);
        let place = format!("{}, round {round} of seed {seed}, killed {killed} times", scenario.name);
        goes_on(&cell, &place, expected);
    });
    println!("{rounds} runs, killed {} times", kills.into_inner());
}
