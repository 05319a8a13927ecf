//! What was said to be written is on the disk: a loss of power takes nothing of it.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use hart_sandbox::WriteMode;

use crate::support::{Place, path, skipped};

/// The number of `cachestat` on every machine.
const CACHESTAT: libc::c_long = 451;

/// How many pages of a file are in memory alone, as the kernel counts them; none where it does not tell.
fn unsaved(file: &Path) -> Option<u64> {
    let file = File::open(file).unwrap();
    // Offset and length; a length of zero means up to the end.
    let range = [0_u64; 2];
    // Pages in memory, of those changed, being written, and two more.
    let mut found = [0_u64; 5];
    // SAFETY: both are as large as the call wants, and outlive it.
    #[expect(unsafe_code, reason = "system call")]
    let done = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), range.as_ptr(), found.as_mut_ptr(), 0) };
    (done == 0).then(|| found[1] + found[2])
}

#[tokio::test]
async fn a_file_is_on_the_disk_when_that_is_said() {
    let place = Place::new().await;
    // One that nobody has asked the disk to keep: whether this machine can tell at all.
    let loose = place.outside.join("loose");
    std::fs::write(&loose, vec![b'x'; 64 << 10]).unwrap();
    if unsaved(&loose).is_none_or(|pages| pages == 0) {
        return skipped("the kernel or the file system does not tell what is on the disk");
    }
    let (file, host) = (path("below/file"), place.workspace().join("below/file"));
    let text = vec![b'y'; 64 << 10];
    for mode in [WriteMode::CreateNew, WriteMode::Overwrite, WriteMode::Append] {
        place.sandbox.write(&file, &text, mode).await.unwrap();
        assert_eq!(unsaved(&host), Some(0), "{mode:?}");
    }
    let mut edit = |old: &[u8]| Some(old.repeat(2));
    assert!(place.sandbox.modify(&file, &mut edit).await.unwrap());
    assert_eq!(unsaved(&host), Some(0), "an edit");
    // With a second name it is appended to in place.
    std::fs::hard_link(&host, place.workspace().join("other")).unwrap();
    place.sandbox.write(&file, &text, WriteMode::Append).await.unwrap();
    assert_eq!(unsaved(&host), Some(0), "in place");
}
