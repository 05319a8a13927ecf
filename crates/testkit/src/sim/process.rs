//! Processes of one machine: whatever they do passes a place where they may be slow, stopped or dead.
//!
//! Invariant: a process that is dead does nothing more, and nobody hears from it; it is not told.

use std::collections::VecDeque;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Cut, Disk, Fault, Mount, Random};

/// A copy is the same machine.
#[derive(Clone, Debug)]
pub struct Machine(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    disk: Disk,
    began: Instant,
    state: Mutex<State>,
    accidents: Notify,
}

#[derive(Debug)]
struct State {
    random: Random,
    /// How many places were passed.
    passed: u64,
    troubles: VecDeque<(u64, Trouble)>,
    full_until: Option<Instant>,
    /// Nothing takes seconds by itself.
    prompt: bool,
    hash: u64,
    told: Option<Vec<String>>,
    processes: Vec<Weak<One>>,
}

/// What happens to a machine, at some place that one of its processes passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The process that passes dies.
    Kill,
    /// The process that passes stands still for a while, and goes on as if nothing had been.
    Freeze(Duration),
    /// All processes die, in the middle of what the disk does next.
    PowerCut(Cut),
    /// Nothing can be written for a while.
    Full(Duration),
    Fault(Fault),
}

/// A copy is the same process.
#[derive(Clone, Debug)]
pub struct Process(Arc<One>);

#[derive(Debug)]
struct One {
    n: usize,
    machine: Machine,
    mount: Mount,
    life: Mutex<Life>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Alive,
    Frozen(Instant),
    Dead,
}

impl Machine {
    /// `troubles` are told by how many places were passed before them, in order. With `tell` what happens is kept in
    /// words.
    pub fn new(disk: Disk, random: Random, troubles: Vec<(u64, Trouble)>, tell: bool) -> Self {
        let state = State {
            random,
            passed: 0,
            troubles: troubles.into(),
            full_until: None,
            prompt: false,
            hash: 0xcbf2_9ce4_8422_2325,
            told: tell.then(Vec::new),
            processes: Vec::new(),
        };
        let (began, accidents) = (Instant::now(), Notify::new());
        Self(Arc::new(Shared { disk, began, state: Mutex::new(state), accidents }))
    }

    /// Its disk is never slow, for what is about time. The numbers of a seed stay as they are.
    pub fn prompt(self) -> Self {
        self.state().prompt = true;
        self
    }

    pub fn disk(&self) -> &Disk {
        &self.0.disk
    }

    /// A process that has the disk at `dir`.
    pub fn start(&self, dir: &Path) -> Process {
        let mut state = self.state();
        let (n, machine) = (state.processes.len() + 1, self.clone());
        let mount = Mount::new(&self.0.disk, dir);
        let one = Arc::new(One { n, machine, mount, life: Mutex::new(Life::Alive) });
        state.processes.push(Arc::downgrade(&one));
        Process(one)
    }

    /// All processes die.
    pub fn stop(&self) {
        let all: Vec<_> = self.state().processes.iter().filter_map(Weak::upgrade).map(Process).collect();
        all.iter().filter(|process| !process.is_dead()).for_each(Process::die);
    }

    /// A number from the seed.
    pub fn random<T>(&self, choose: impl FnOnce(&mut Random) -> T) -> T {
        choose(&mut self.state().random)
    }

    /// How many places were passed; also a number that nobody else gets before the next one is.
    pub fn passed(&self) -> u64 {
        self.state().passed
    }

    /// Returns when a process has died since it was last asked.
    pub async fn accident(&self) {
        self.0.accidents.notified().await;
    }

    /// No trouble from now on.
    pub fn calm(&self) {
        let mut state = self.state();
        state.troubles.clear();
        state.full_until = None;
        drop(state);
        self.0.disk.set_full(false);
    }

    /// Into the trace, at this moment.
    pub fn note(&self, what: &str) {
        let line = format!("{:>9} {what}", self.0.began.elapsed().as_micros());
        let mut state = self.state();
        for byte in line.bytes().chain([b'\n']) {
            state.hash = (state.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if let Some(told) = &mut state.told {
            told.push(line);
        }
    }

    /// Of all that happened, in its order and at its times.
    pub fn trace(&self) -> u64 {
        self.state().hash
    }

    pub fn told(&self) -> Vec<String> {
        self.state().told.clone().unwrap_or_default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Process {
    /// Something that a disk does: all at once for everybody else, and not heard of by a process that dies of it.
    pub async fn at_once<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        self.pass(what).await;
        let done = block_on(tokio::task::unconstrained(work));
        if self.0.machine.0.disk.is_dark() {
            self.0.machine.stop();
        }
        self.pass("  done").await;
        done
    }

    /// A place where something may happen to the process.
    pub async fn pass(&self, what: &str) {
        let Machine(shared) = &self.0.machine;
        let trouble = {
            let mut state = self.0.machine.state();
            state.passed += 1;
            if state.full_until.take_if(|until| *until <= Instant::now()).is_some() {
                shared.disk.set_full(false);
            }
            let passed = state.passed;
            state.troubles.pop_front_if(|(at, _)| *at <= passed).map(|(_, trouble)| trouble)
        };
        self.stand().await;
        self.0.machine.note(&format!("{} {what}", self.0.n));
        if let Some(trouble) = trouble {
            self.suffer(trouble);
        }
        let is_prompt = self.0.machine.state().prompt;
        let (yields, delay) = self.0.machine.random(|random| match random.within(0..=99) {
            0..60 => (0, Duration::ZERO),
            60..80 => (random.within(1..=3), Duration::ZERO),
            80..99 => (0, Duration::from_millis(random.within(1..=30))),
            _ => {
                let slow = random.within(100..=3000);
                (0, Duration::from_millis(if is_prompt { 0 } else { slow }))
            }
        });
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        self.stand().await;
    }

    pub fn is_dead(&self) -> bool {
        *self.life() == Life::Dead
    }

    pub fn die(&self) {
        self.0.mount.kill();
        *self.life() = Life::Dead;
        self.0.machine.note(&format!("{} dies", self.0.n));
        self.0.machine.0.accidents.notify_one();
    }

    pub fn mount(&self) -> &Mount {
        &self.0.mount
    }

    fn suffer(&self, trouble: Trouble) {
        let Machine(shared) = &self.0.machine;
        self.0.machine.note(&format!("{} {trouble:?}", self.0.n));
        match trouble {
            Trouble::Kill => self.die(),
            Trouble::Freeze(time) => *self.life() = Life::Frozen(Instant::now() + time),
            Trouble::PowerCut(cut) => shared.disk.cut(cut),
            Trouble::Fault(fault) => shared.disk.break_once(fault),
            Trouble::Full(time) => {
                shared.disk.set_full(true);
                self.0.machine.state().full_until = Some(Instant::now() + time);
            }
        }
    }

    /// As long as it is stopped, or for ever.
    async fn stand(&self) {
        let life = *self.life();
        match life {
            Life::Alive => {}
            Life::Frozen(until) => {
                tokio::time::sleep_until(until).await;
                self.life_after(until);
                if self.is_dead() {
                    std::future::pending::<()>().await;
                }
            }
            Life::Dead => std::future::pending().await,
        }
    }

    fn life_after(&self, until: Instant) {
        let mut life = self.life();
        if *life == Life::Frozen(until) {
            *life = Life::Alive;
        }
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.0.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits where it stands: what other threads do for it takes no time.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    struct Bell(std::thread::Thread);
    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Bell(std::thread::current())));
    let mut work = pin!(work);
    loop {
        if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
            return done;
        }
        std::thread::park();
    }
}
