//! Processes over one simulated disk, whoever starts them again, and clients that ask until they are answered.

use std::collections::HashSet;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use hart_kernel::{Clock, Timestamp};
use hart_runtime::{NoWorkspaces, Parts, Run, Runtime, StartRun};
use hart_store::{OpenError, SqliteStore};
use hart_testkit::sim::{Disk, Loss, Machine, Process, Random};
use hart_types::{RunId, RunStatus, ThreadStatus};
use tokio::time::{Instant, sleep, timeout};

use super::Fate;
use super::agents::{Agents, Book};
use super::plans::{Job, Planned};
use crate::surrounded::{Around, Surrounded};

const FILE: &str = "hart.db";
/// In the machine's own time.
const FOR_EVER: Duration = Duration::from_secs(900);
/// How long a client waits for an answer before it asks again.
const ANSWER: Duration = Duration::from_secs(5);

pub(super) struct World {
    pub(super) machine: Machine,
    pub(super) book: Book,
    /// What clients were told was accepted.
    pub(super) accepted: Mutex<Vec<(Planned, RunId)>>,
    clock: Arc<MachineClock>,
    slots: Mutex<Vec<Slot>>,
    root: tempfile::TempDir,
}

/// One process after the other.
#[derive(Default)]
struct Slot {
    process: Option<Process>,
    runtime: Option<Runtime>,
    /// By which others see that it lives.
    signs: HashSet<PathBuf>,
}

/// A disk with an empty database of hart's on it.
pub(super) fn formatted() -> Disk {
    static DISK: LazyLock<Disk> = LazyLock::new(|| {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::default();
        let mount = hart_testkit::sim::Mount::new(&disk, dir.path());
        let store = SqliteStore::open(&dir.path().join(FILE)).unwrap();
        // Little memory: what is large reaches the disk in the middle of a statement, and may find it full there.
        mount.give_little_memory(FILE, 16).unwrap();
        mount.checkpoint(FILE).unwrap();
        let formatted = disk.image();
        drop(store);
        formatted
    });
    DISK.image()
}

impl World {
    pub(super) fn new(machine: Machine) -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("disk")).unwrap();
        Self {
            machine,
            book: Book::default(),
            accepted: Mutex::default(),
            clock: Arc::new(MachineClock(Instant::now())),
            slots: Mutex::default(),
            root,
        }
    }

    /// Until all is done that was asked.
    pub(super) async fn live(&self, fate: &Fate) {
        self.slots.lock().unwrap().extend((0..fate.nodes).map(|_| Slot::default()));
        let clients = futures_util::future::join_all(fate.jobs.iter().map(|job| self.client(job)));
        tokio::select! {
            biased;
            done = timeout(FOR_EVER, clients) => if done.is_err() {
                panic!("what was accepted does not end: {:#?}", self.unended().await);
            },
            () = self.supervise(fate.nodes) => {}
        }
        self.machine.calm();
        self.machine.stop();
        // What was told to be done must not hang on anything that was not synced.
        self.machine.disk().cut_now();
        self.machine.disk().power_on(Loss::Everything, &mut Random::new(0));
    }

    /// The store as somebody finds it who comes when all is over.
    pub(super) async fn left(&self) -> Runtime {
        let dir = self.dir();
        let process = self.machine.start(&dir);
        let store = SqliteStore::open(&dir.join(FILE)).unwrap();
        std::mem::forget(process);
        let agents = Agents { machine: self.machine.clone(), process: None, book: Book::default() };
        let parts = Parts {
            store: Arc::new(Surrounded { inner: store, by: Arc::new(Still) }),
            agents: Arc::new(agents),
            workspaces: Arc::new(NoWorkspaces),
            clock: self.clock.clone(),
        };
        Runtime::open(parts).await.unwrap()
    }

    /// What stands still, as the others see it.
    async fn unended(&self) -> Vec<hart_runtime::port::Holding> {
        self.left().await.store().holdings(None).await.unwrap()
    }

    async fn supervise(&self, nodes: usize) {
        loop {
            let mut again = false;
            for n in 0..nodes {
                if self.is_dead(n) {
                    again |= !self.boot(n).await;
                }
            }
            if !again {
                self.machine.accident().await;
            }
            let pause = self.machine.random(|random| random.within(0..=2000));
            sleep(Duration::from_millis(pause)).await;
        }
    }

    fn is_dead(&self, n: usize) -> bool {
        self.slots.lock().unwrap()[n].process.as_ref().is_none_or(Process::is_dead)
    }

    /// Whether a process is there in place of the one that is no more.
    async fn boot(&self, n: usize) -> bool {
        let buried = std::mem::take(&mut self.slots.lock().unwrap()[n]);
        self.bury(&buried.signs);
        if self.machine.disk().is_dark() {
            let (loss, mut random) = self.machine.random(|random| {
                (random.pick(&[Loss::Nothing, Loss::Everything, Loss::Torn]), random.fork())
            });
            self.machine.note(&format!("power is back, lost: {loss:?}"));
            self.machine.disk().power_on(loss, &mut random);
        }
        let dir = self.dir();
        let process = self.machine.start(&dir);
        let others = self.signs();
        let opened = timeout(ANSWER * 3, self.open(&dir, &process)).await;
        let runtime = opened.ok().flatten();
        if runtime.is_none() && !process.is_dead() {
            process.die();
        }
        let is_there = runtime.is_some();
        let signs = self.signs().difference(&others).cloned().collect();
        self.slots.lock().unwrap()[n] = Slot { process: Some(process), runtime, signs };
        is_there
    }

    async fn open(&self, dir: &std::path::Path, process: &Process) -> Option<Runtime> {
        let inner = match SqliteStore::open(&dir.join(FILE)) {
            Ok(store) => store,
            Err(error @ (OpenError::Damaged { .. } | OpenError::Newer { .. })) => panic!("{error}"),
            Err(error) => {
                self.machine.note(&format!("cannot be opened: {error}"));
                return None;
            }
        };
        let agents = Agents {
            machine: self.machine.clone(),
            process: Some(process.clone()),
            book: Arc::clone(&self.book),
        };
        let parts = Parts {
            store: Arc::new(Surrounded { inner, by: Arc::new(Simulated(process.clone())) }),
            agents: Arc::new(agents),
            workspaces: Arc::new(NoWorkspaces),
            clock: self.clock.clone(),
        };
        Runtime::open(parts).await.ok()
    }

    /// A directory of its own for each process, all of them the same to the system.
    fn dir(&self) -> PathBuf {
        let dir =
            (0..).map(|n| self.root.path().join(format!("process-{n}"))).find(|dir| !dir.exists()).unwrap();
        std::os::unix::fs::symlink(self.root.path().join("disk"), &dir).unwrap();
        dir
    }

    /// The files by which processes see each other live.
    fn signs(&self) -> HashSet<PathBuf> {
        let dir = self.root.path().join("disk").join(format!("{FILE}-nodes"));
        std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    }

    /// The kernel lets go of a dead process's locks; on another machine nobody sees that.
    fn bury(&self, signs: &HashSet<PathBuf>) {
        let seen = self.machine.random(|random| random.chance(70));
        for sign in signs {
            if std::fs::remove_file(sign).is_ok() && seen {
                File::create(sign).unwrap();
            }
        }
    }

    /// Any of the processes; it may be dead, and nobody knows yet.
    async fn somebody(&self) -> Runtime {
        loop {
            let there: Vec<_> =
                self.slots.lock().unwrap().iter().filter_map(|slot| slot.runtime.clone()).collect();
            if !there.is_empty() {
                return self.machine.random(|random| random.pick(&there));
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    async fn client(&self, job: &Job) {
        let mut asked = Vec::new();
        for planned in &job.runs {
            let run = self.ask(planned.request(&job.thread)).await;
            self.accepted.lock().unwrap().push((planned.clone(), run.id.clone()));
            asked.push((planned, run));
        }
        for (planned, run) in asked {
            let run = self.ended(&run.id).await;
            if planned.asks() && run.status == RunStatus::Success {
                let thread = self.until_known(|runtime| thread_of(runtime, &run)).await;
                if thread == ThreadStatus::Interrupted {
                    let answered = self.ask(planned.answer(&job.thread)).await;
                    self.accepted.lock().unwrap().push((planned.clone(), answered.id.clone()));
                    self.ended(&answered.id).await;
                }
            }
        }
    }

    async fn ask(&self, request: StartRun) -> Run {
        self.until_known(|runtime| {
            let request = request.clone();
            async move { runtime.start(request).await.ok() }
        })
        .await
    }

    async fn ended(&self, id: &RunId) -> Run {
        self.until_known(|runtime| async move {
            let run = runtime.store().run(id).await.ok()?.expect("what was accepted is known");
            (!run.status.is_active()).then_some(run)
        })
        .await
    }

    /// Asks one process after the other until one of them answers.
    async fn until_known<T, F: Future<Output = Option<T>>>(&self, ask: impl Fn(Runtime) -> F) -> T {
        // Less and less often, so that what takes a machine minutes takes the test no longer.
        for pause in (100..).step_by(200) {
            let runtime = self.somebody().await;
            if let Ok(Some(answer)) = timeout(ANSWER, ask(runtime)).await {
                return answer;
            }
            sleep(Duration::from_millis(pause)).await;
        }
        unreachable!("it is asked for ever")
    }
}

async fn thread_of(runtime: Runtime, run: &Run) -> Option<ThreadStatus> {
    Some(runtime.store().thread(&run.thread).await.ok()??.status)
}

/// Time is the machine's.
struct MachineClock(Instant);

impl Clock for MachineClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_700_000_000).unwrap() + self.0.elapsed()
    }
}

#[derive(Debug)]
struct Simulated(Process);

impl Around for Simulated {
    async fn around<T: Send>(&self, operation: &'static str, work: impl Future<Output = T> + Send) -> T {
        self.0.at_once(operation, work).await
    }
}

/// Nothing happens any more.
#[derive(Debug)]
struct Still;

impl Around for Still {
    async fn around<T: Send>(&self, _: &'static str, work: impl Future<Output = T> + Send) -> T {
        work.await
    }
}
