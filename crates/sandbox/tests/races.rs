//! Links swapped under the file layer while it works.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hart_sandbox::{GrepQuery, SandboxError, WriteMode};

use crate::support::{Place, path};

/// Exchanges two names at once, as `renameat2` does.
fn exchange(a: &Path, b: &Path) {
    let c = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap();
    rustix::fs::renameat_with(
        rustix::fs::CWD,
        c(a),
        rustix::fs::CWD,
        c(b),
        rustix::fs::RenameFlags::EXCHANGE,
    )
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_swaps_never_lead_outside() {
    let place = Place::new().await;
    let workspace = place.workspace();
    let secret = place.outside.join("d");
    std::fs::create_dir(&secret).unwrap();
    std::fs::write(secret.join("f"), "secret").unwrap();
    std::fs::create_dir_all(workspace.join("d")).unwrap();
    std::fs::write(workspace.join("d/f"), "mine").unwrap();
    symlink(&secret, workspace.join("link")).unwrap();
    let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    let (a, b) = (workspace.join("d"), workspace.join("link"));
    let mut outcomes = [0_u64; 2];
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                exchange(&a, &b);
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        let runtime = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| {
            runtime.block_on(async {
                let mut tries = 0_u64;
                while tries < 10_000 || swaps.load(Ordering::Relaxed) < 10_000 {
                    tries += 1;
                    match tries % 4 {
                        0 => match place.sandbox.read(&path("d/f")).await {
                            Ok(bytes) => {
                                assert!(!bytes.starts_with(b"secret"), "read outside");
                                outcomes[0] += 1;
                            }
                            Err(error) => {
                                assert!(
                                    matches!(
                                        error,
                                        SandboxError::Path(_)
                                            | SandboxError::NotFound(_)
                                            | SandboxError::Io { .. }
                                    ),
                                    "{error}"
                                );
                                outcomes[1] += 1;
                            }
                        },
                        1 => {
                            let _ = place.sandbox.write(&path("d/f"), b"mine", WriteMode::Overwrite).await;
                        }
                        2 => {
                            let _ = place.sandbox.write(&path("d/new/x"), b"mine", WriteMode::Append).await;
                        }
                        _ => {
                            let _ = place.sandbox.remove(&path("d/new/x")).await;
                        }
                    }
                    if tries.is_multiple_of(500) {
                        let found = place.sandbox.grep(GrepQuery::new(path("."), "secret")).await.unwrap();
                        assert_eq!(found.matches, [], "a search went outside");
                    }
                }
            });
        });
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(std::fs::read_to_string(secret.join("f")).unwrap(), "secret");
    let outside: Vec<_> =
        std::fs::read_dir(&secret).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(outside, ["f"]);
    assert!(outcomes[0] > 0 && outcomes[1] > 0, "the race was not one: {outcomes:?}");
}
