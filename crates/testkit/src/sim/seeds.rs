//! Seed after seed, on all cores; one that fails is named.
//!
//! Invariant: whoever reads the failure can have it again.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Tries the seeds from 0 on, `HART_SIM_SEEDS` of them instead of `count` if that is set, or the one seed
/// `HART_SIM_SEED`. The first that fails ends it; `test` says how to have it again.
#[allow(clippy::disallowed_methods, reason = "how long a test goes on is told by its environment")]
pub fn each_seed(count: u64, test: &str, work: impl Fn(u64) + Sync) {
    let asked = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    if let Some(seed) = asked("HART_SIM_SEED") {
        return work(seed);
    }
    let count = asked("HART_SIM_SEEDS").unwrap_or(count);
    let next = AtomicU64::new(0);
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    std::thread::scope(|scope| {
        let one_by_one = || {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= count {
                    return;
                }
                if let Err(failure) = catch_unwind(AssertUnwindSafe(|| work(seed))) {
                    next.store(count, Ordering::Relaxed);
                    eprintln!("seed {seed} fails; to have it again: HART_SIM_SEED={seed} {test}");
                    resume_unwind(failure);
                }
            }
        };
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(one_by_one)).collect();
        for worker in workers {
            if let Err(failure) = worker.join() {
                resume_unwind(failure);
            }
        }
    });
}
