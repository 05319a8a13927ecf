//! Files that come and go in parts.

use std::io;

use async_trait::async_trait;
use bytes::Bytes;
use hart_sandbox::{Incoming, SandboxError, WriteMode};

use crate::support::{Place, path};

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
