//! What a run may use, and what is left of it: tokens, money, calls, time, depth and children.
//!
//! Invariant: what is charged to a budget is charged to all that it is a slice of, so children together never use more
//! than their parent has.

mod limits;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

pub use limits::{Amount, Limits, Used};

/// Unlimited unless somebody says otherwise. A copy is the same budget.
///
/// ```
/// use hart_kernel::{Amount, Budget, Limits};
///
/// let budget = Budget::new(&Limits { tokens: Some(1000), ..Limits::default() });
/// let worst = Amount { input_tokens: 400, output_tokens: 500, model_calls: 1, ..Amount::default() };
/// let reserved = budget.reserve(worst).unwrap();
/// assert!(budget.reserve(worst).is_err());
/// reserved.settle(Amount { output_tokens: 20, ..worst });
/// assert_eq!(budget.remaining().tokens, Some(580));
/// ```
#[derive(Clone, Default)]
pub struct Budget(Arc<Account>);

/// Something that runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    Tokens,
    InputTokens,
    OutputTokens,
    Cost,
    ModelCalls,
    ToolCalls,
    Children,
    Depth,
    WallClock,
}

/// Something has run out. For money the numbers are millionths, for time milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted {
    pub resource: Resource,
    pub used: u64,
    pub limit: u64,
    /// What was to be taken.
    pub wanted: u64,
}

/// Set aside until it is known what was really used; dropped, it is given back.
#[derive(Debug)]
#[must_use = "settle it, or it is given back at once"]
pub struct Reservation {
    budget: Budget,
    amount: Amount,
}

struct Account {
    /// One for each of [`METERED`].
    meters: [Meter; METERED.len()],
    /// How many levels of children there may be below this one.
    depth: AtomicU64,
    clock: RunClock,
    parent: Option<Budget>,
    /// A child's limits from its first step on, whatever slice it has now.
    in_all: Option<Limits>,
}

const METERED: [Resource; 7] = [
    Resource::Tokens,
    Resource::InputTokens,
    Resource::OutputTokens,
    Resource::Cost,
    Resource::ModelCalls,
    Resource::ToolCalls,
    Resource::Children,
];

const UNLIMITED: u64 = u64::MAX;

/// What is used includes what is set aside.
struct Meter {
    used: AtomicU64,
    limit: AtomicU64,
}

struct RunClock {
    began: OnceLock<Instant>,
    /// Milliseconds that earlier parts of the run took, before it paused.
    before: AtomicU64,
    limit: AtomicU64,
    /// Whoever waits for the end looks again.
    changed: Notify,
}

impl Budget {
    pub fn new(limits: &Limits) -> Self {
        let budget = Self::default();
        budget.tighten(limits);
        budget
    }

    /// A slice for a child: at most `limits`, and at most what is left here. Depth and number of children count.
    pub fn child(&self, limits: &Limits) -> Result<Self, Exhausted> {
        self.slice(limits, &Limits::default(), false)
    }

    /// A part that several children share: what they use is counted here too, and nobody is sent by making it.
    #[must_use]
    pub fn part(&self, limits: &Limits) -> Self {
        let part = Self(Arc::new(Account { parent: Some(self.clone()), ..Account::default() }));
        part.tighten(&Limits { depth: self.0.depth(), ..Limits::default() });
        part.tighten(limits);
        part
    }

    /// As [`Budget::child`], with at most `in_all` from its first step on and at most `from_now` beyond what this budget
    /// has counted of it. One that `goes_on` is counted as a child already.
    pub(crate) fn slice(&self, in_all: &Limits, from_now: &Limits, goes_on: bool) -> Result<Self, Exhausted> {
        let depth = self.0.depth.load(Ordering::Relaxed);
        if depth == 0 {
            return Err(Exhausted { resource: Resource::Depth, used: 0, limit: 0, wanted: 1 });
        }
        if !goes_on {
            self.take(Amount { children: 1, ..Amount::default() })?;
        }
        let account = Account { parent: Some(self.clone()), in_all: Some(*in_all), ..Account::default() };
        let child = Self(Arc::new(account));
        let below = (depth != UNLIMITED).then(|| depth - 1);
        child.tighten(&Limits { depth: below, ..Limits::default() });
        child.tighten(in_all);
        child.tighten(from_now);
        child.start();
        Ok(child)
    }

    /// Sets the worst case aside, all of it or nothing.
    pub fn reserve(&self, amount: Amount) -> Result<Reservation, Exhausted> {
        self.take(amount)?;
        Ok(Reservation { budget: self.clone(), amount })
    }

    /// Counts what was used, whether or not it was there to be used.
    pub fn charge(&self, amount: Amount) {
        self.lineage().for_each(|account| account.charge(amount));
    }

    /// Lowers the limits to these, where they are higher.
    pub fn tighten(&self, limits: &Limits) {
        let meters = self.0.meters.iter().map(|meter| &meter.limit);
        let all = meters.chain([&self.0.depth, &self.0.clock.limit]);
        for (current, limit) in all.zip(limits.in_order()) {
            current.fetch_min(limit.unwrap_or(UNLIMITED), Ordering::Relaxed);
        }
        self.0.clock.changed.notify_waiters();
    }

    /// Raises the limits by these, where there are any.
    pub fn extend(&self, more: &Limits) {
        let meters = self.0.meters.iter().map(|meter| &meter.limit);
        let all = meters.chain([&self.0.depth, &self.0.clock.limit]);
        for (current, more) in all.zip(more.in_order()) {
            let raised =
                |limit: u64| (limit != UNLIMITED).then(|| limit.saturating_add(more.unwrap_or_default()));
            // It only refuses to raise what has no limit.
            let _ = current.fetch_update(Ordering::Relaxed, Ordering::Relaxed, raised);
        }
        self.0.clock.changed.notify_waiters();
    }

    /// Takes over what an earlier part of the same run has used. `counted` of it is in the books of whoever this is a
    /// slice for: the slice is of what that left, so it is not charged there, nor to the slice.
    pub fn carry(&self, earlier: &Used, counted: &Used) {
        if let Some(in_all) = &self.0.in_all {
            self.extend(&counted.as_limits());
            self.tighten(in_all);
        }
        let new = earlier.amount().less(counted.amount());
        self.lineage().skip(1).for_each(|account| account.charge(new));
        self.0.charge(earlier.amount());
        self.0.clock.before.fetch_add(millis(earlier.wall_clock()), Ordering::Relaxed);
        self.0.clock.changed.notify_waiters();
    }

    pub fn is_unlimited(&self) -> bool {
        self.lineage().all(|account| {
            account.meters.iter().all(|meter| meter.limit.load(Ordering::Relaxed) == UNLIMITED)
                && account.clock.limit.load(Ordering::Relaxed) == UNLIMITED
        })
    }

    /// What was used so far, set aside or not.
    pub fn used(&self) -> Used {
        let metered = self.0.meters.each_ref().map(|meter| meter.used.load(Ordering::Relaxed));
        Used::new(metered, self.0.clock.elapsed())
    }

    /// The limits in force here, those of parents left out.
    pub fn limits(&self) -> Limits {
        let metered = self.0.meters.each_ref().map(|meter| meter.limit.load(Ordering::Relaxed));
        Limits::new(metered.map(limited), self.0.depth(), self.0.clock.limit())
    }

    /// What is left, here and in what this is a slice of.
    pub fn remaining(&self) -> Limits {
        let mut left = [None; METERED.len()];
        for account in self.lineage() {
            for (left, meter) in left.iter_mut().zip(&account.meters) {
                *left = least(*left, meter.remaining());
            }
        }
        let deadline = self.deadline();
        let time = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        Limits::new(left, self.0.depth(), time)
    }

    /// When the time is over.
    pub fn deadline(&self) -> Option<Instant> {
        self.lineage().filter_map(|account| account.clock.deadline()).min()
    }

    /// The clock runs from here; a second start changes nothing.
    pub(crate) fn start(&self) {
        self.0.clock.began.get_or_init(Instant::now);
        self.0.clock.changed.notify_waiters();
    }

    /// Returns when the time is over, with the limit.
    pub(crate) async fn out_of_time(&self) -> Duration {
        loop {
            let mut changed = std::pin::pin!(self.0.clock.changed.notified());
            // What changes from here on is noticed.
            changed.as_mut().enable();
            let Some(deadline) = self.deadline() else {
                changed.await;
                continue;
            };
            if deadline <= Instant::now() {
                let over = self.lineage().filter(|account| account.clock.deadline() == Some(deadline));
                return over.filter_map(|account| account.clock.limit()).next().unwrap_or_default();
            }
            tokio::select! {
                () = tokio::time::sleep_until(deadline) => {}
                () = changed => {}
            }
        }
    }

    /// This budget and all that it is a slice of.
    fn lineage(&self) -> impl Iterator<Item = &Account> {
        std::iter::successors(Some(self.0.as_ref()), |account| Some(account.parent.as_ref()?.0.as_ref()))
    }

    fn take(&self, amount: Amount) -> Result<(), Exhausted> {
        let mut taken: Vec<(&Meter, u64)> = Vec::new();
        for account in self.lineage() {
            for ((meter, wanted), resource) in account.meters.iter().zip(amount.metered()).zip(METERED) {
                if wanted > 0
                    && let Err(exhausted) = meter.take(wanted, resource)
                {
                    for (meter, wanted) in taken {
                        meter.give_back(wanted);
                    }
                    return Err(exhausted);
                }
                taken.push((meter, wanted));
            }
        }
        Ok(())
    }
}

impl Reservation {
    /// Charges what was really used instead.
    pub fn settle(self, actual: Amount) {
        self.budget.charge(actual);
        // Dropping it gives the reservation back.
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        for account in self.budget.lineage() {
            for (meter, amount) in account.meters.iter().zip(self.amount.metered()) {
                meter.give_back(amount);
            }
        }
    }
}

impl Meter {
    fn take(&self, wanted: u64, resource: Resource) -> Result<(), Exhausted> {
        let limit = self.limit.load(Ordering::Relaxed);
        let fits = |used: u64| used.checked_add(wanted).filter(|sum| *sum <= limit);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .map(|_| ())
            .map_err(|used| Exhausted { resource, used, limit, wanted })
    }

    fn give_back(&self, amount: u64) {
        self.used.fetch_sub(amount, Ordering::Relaxed);
    }

    fn remaining(&self) -> Option<u64> {
        let limit = limited(self.limit.load(Ordering::Relaxed))?;
        Some(limit.saturating_sub(self.used.load(Ordering::Relaxed)))
    }
}

impl RunClock {
    fn limit(&self) -> Option<Duration> {
        limited(self.limit.load(Ordering::Relaxed)).map(Duration::from_millis)
    }

    fn elapsed(&self) -> Duration {
        let now = self.began.get().map(Instant::elapsed).unwrap_or_default();
        now + Duration::from_millis(self.before.load(Ordering::Relaxed))
    }

    fn deadline(&self) -> Option<Instant> {
        let before = Duration::from_millis(self.before.load(Ordering::Relaxed));
        // A limit beyond all clocks is none.
        self.began.get()?.checked_add(self.limit()?.saturating_sub(before))
    }
}

impl Account {
    fn charge(&self, amount: Amount) {
        for (meter, amount) in self.meters.iter().zip(amount.metered()) {
            meter.used.fetch_add(amount, Ordering::Relaxed);
        }
    }

    fn depth(&self) -> Option<u64> {
        limited(self.depth.load(Ordering::Relaxed))
    }
}

impl Default for Account {
    fn default() -> Self {
        let meter = || Meter { used: AtomicU64::new(0), limit: AtomicU64::new(UNLIMITED) };
        Self {
            meters: std::array::from_fn(|_| meter()),
            depth: AtomicU64::new(UNLIMITED),
            clock: RunClock {
                began: OnceLock::new(),
                before: AtomicU64::new(0),
                limit: AtomicU64::new(UNLIMITED),
                changed: Notify::new(),
            },
            parent: None,
            in_all: None,
        }
    }
}

fn limited(limit: u64) -> Option<u64> {
    (limit != UNLIMITED).then_some(limit)
}

fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(UNLIMITED)
}

impl Resource {
    /// Its field in [`Limits`] and [`Used`].
    pub fn name(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::InputTokens => "input_tokens",
            Self::OutputTokens => "output_tokens",
            Self::Cost => "cost",
            Self::ModelCalls => "model_calls",
            Self::ToolCalls => "tool_calls",
            Self::Children => "children",
            Self::Depth => "depth",
            Self::WallClock => "seconds",
        }
    }
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, used, limit, wanted } = *self;
        match resource {
            Resource::Depth => return f.write_str("no deeper nesting is allowed"),
            Resource::Cost => write!(f, "{:.4} of {:.4} is spent", used as f64 / 1e6, limit as f64 / 1e6)?,
            Resource::WallClock => write!(f, "{} of {} seconds have passed", used / 1000, limit / 1000)?,
            other => write!(f, "{used} of {limit} {} are used", other.name().replace('_', " "))?,
        }
        match resource {
            // Without it, a run that has used little would seem to stop for nothing.
            Resource::Tokens | Resource::InputTokens | Resource::OutputTokens => {
                write!(f, " and the next call may take {wanted}")
            }
            Resource::Cost => write!(f, " and the next call may cost {:.4}", wanted as f64 / 1e6),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Exhausted {}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("used", &self.used()).field("limits", &self.limits()).finish()
    }
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
