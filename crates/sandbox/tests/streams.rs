//! Files that come and go in parts.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use hart_sandbox::{Incoming, SandboxError, WriteMode};

use crate::support::{PATIENCE, Place, path};

/// Parts, and then the end or an error.
struct Parts(Vec<io::Result<&'static [u8]>>);

#[async_trait]
impl Incoming for Parts {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        match self.0.is_empty() {
            true => Ok(None),
            false => self.0.remove(0).map(|part| Some(Bytes::from_static(part))),
        }
    }
}

/// Texts, and then the end.
pub(crate) fn parts(texts: &[&'static str]) -> impl Incoming {
    Parts(texts.iter().map(|text| Ok(text.as_bytes())).collect())
}

#[tokio::test]
async fn a_file_is_there_whole_or_not_at_all() {
    let place = Place::new().await;
    let sandbox = &place.sandbox;
    let size = sandbox.receive(&path("in/a"), &mut Parts(vec![Ok(b"one "), Ok(b"two")]), false).await;
    assert_eq!(size.unwrap(), 7);
    assert_eq!(sandbox.read(&path("in/a")).await.unwrap(), b"one two");
    let again = sandbox.receive(&path("in/a"), &mut Parts(vec![Ok(b"three")]), false).await;
    assert!(matches!(again, Err(SandboxError::AlreadyExists(_))), "{again:?}");
    let broken = || Parts(vec![Ok(b"four"), Err(io::ErrorKind::ConnectionReset.into())]);
    for replace in [false, true] {
        let cut = sandbox.receive(&path("in/b"), &mut broken(), replace).await;
        assert!(matches!(cut, Err(SandboxError::Io { .. })), "{cut:?}");
    }
    sandbox.receive(&path("in/a"), &mut broken(), true).await.unwrap_err();
    assert_eq!(sandbox.read(&path("in/a")).await.unwrap(), b"one two", "the old one stays");
    sandbox.receive(&path("in/a"), &mut Parts(vec![]), true).await.unwrap();
    assert_eq!(sandbox.read(&path("in/a")).await.unwrap(), b"");
    assert_eq!(std::fs::read_dir(place.workspace().join("in")).unwrap().count(), 1);
}

/// It is not in any directory until it is whole, so no walk would find it.
#[tokio::test]
async fn what_comes_in_counts_before_it_is_there() {
    let place = Place::with(|config, _| {
        config.disk_limit = 1 << 20;
        None
    })
    .await;
    static PART: [u8; 400 << 10] = [7; 400 << 10];
    let parts = |count| Parts((0..count).map(|_| Ok(&PART[..])).collect());
    let full = place.sandbox.receive(&path("large"), &mut parts(3), false).await;
    assert!(matches!(full, Err(SandboxError::DiskFull { .. })), "{full:?}");
    place.sandbox.receive(&path("small"), &mut parts(2), false).await.unwrap();
}

#[tokio::test]
async fn what_comes_in_at_once_is_counted_together() {
    const LIMIT: u64 = 8 << 20;
    const PART: usize = 256 << 10;
    let place = Place::with(|config, _| {
        config.disk_limit = LIMIT;
        None
    })
    .await;
    static BYTES: [u8; PART] = [7; PART];
    let receive = |number: usize| {
        let sandbox = Arc::clone(&place.sandbox);
        async move {
            let mut parts = Parts((0..12).map(|_| Ok(&BYTES[..])).collect());
            sandbox.receive(&path(&format!("in/{number}")), &mut parts, false).await
        }
    };
    let outcomes = (0..8).map(receive).collect::<tokio::task::JoinSet<_>>().join_all().await;
    let landed: u64 = outcomes.iter().flatten().sum();
    assert!(landed <= LIMIT, "{landed} bytes");
    for failed in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert_eq!(failed.rule(), Some("disk.quota"), "{failed}");
    }
    // Those that gave up have given back what was promised to them.
    let mut parts = Parts((0..4).map(|_| Ok(&BYTES[..])).collect());
    place.sandbox.receive(&path("after"), &mut parts, false).await.unwrap();
}

/// One part, and then nothing for ever.
struct Stalled(Arc<AtomicUsize>, bool);

#[async_trait]
impl Incoming for Stalled {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        if !std::mem::replace(&mut self.1, true) {
            return Ok(Some(Bytes::from_static(b"the first part")));
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        std::future::pending().await
    }
}

#[test]
fn senders_that_stall_hold_nobody_up() {
    const SENDERS: usize = 40;
    // Fewer threads for blocking work than there are senders, as on any machine with enough of them.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().max_blocking_threads(4).build();
    let runtime = runtime.unwrap();
    let work = async {
        let place = Place::new().await;
        let stalled = Arc::new(AtomicUsize::new(0));
        for number in 0..SENDERS {
            let (sandbox, stalled) = (Arc::clone(&place.sandbox), Arc::clone(&stalled));
            tokio::spawn(async move {
                let file = path(&format!("in/{number}"));
                sandbox.receive(&file, &mut Stalled(stalled, false), true).await
            });
        }
        crate::support::eventually("all senders have stalled", || stalled.load(Ordering::Relaxed) == SENDERS)
            .await;
        // Another may write what one of them would have sent.
        place.sandbox.write(&path("in/0"), b"x", WriteMode::Overwrite).await.unwrap();
        assert_eq!(place.sandbox.read(&path("in/0")).await.unwrap(), b"x");
        if place.sandbox.capabilities().tier == hart_sandbox::Tier::Isolated {
            assert_eq!(place.stdout("ls in").await, "0", "nothing of the others is seen");
        }
    };
    let ended = runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await });
    runtime.shutdown_background();
    ended.expect("nothing else gets done");
}

#[tokio::test]
async fn parts_are_of_the_file_that_was_opened() {
    let place = Place::new().await;
    place.sandbox.write(&path("a"), b"0123456789", WriteMode::Overwrite).await.unwrap();
    let file = place.sandbox.open(&path("a")).await.unwrap();
    place.sandbox.write(&path("a"), b"new", WriteMode::Overwrite).await.unwrap();
    assert_eq!(file.size(), 10);
    assert_eq!(file.read_at(3, 4).await.unwrap(), b"3456"[..]);
    assert_eq!(file.read_at(8, 10).await.unwrap(), b"89"[..]);
    assert_eq!(file.read_at(99, 10).await.unwrap(), b""[..]);
    for (name, kind) in [("none", "no such"), ("/mnt/user-data/workspace", "directory")] {
        let error = place.sandbox.open(&path(name)).await.unwrap_err();
        assert!(error.to_string().contains(kind), "{error}");
    }
}
