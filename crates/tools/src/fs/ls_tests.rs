use hart_sandbox::{Entry, EntryKind, Listing, VPath};

use super::render;

fn listing(count: usize) -> Listing {
    let entry = |index| Entry {
        path: VPath::parse(&format!("/mnt/user-data/workspace/file-{index:04}")).unwrap(),
        kind: EntryKind::File,
        size: 1,
        depth: 1,
    };
    Listing { entries: (0..count).map(entry).collect(), truncated: false }
}

#[test]
fn long_listings_keep_whole_lines() {
    let text = render(&listing(1000), 1000);
    assert!(text.chars().count() <= 1000);
    let lines: Vec<&str> = text.lines().collect();
    let (note, shown) = lines.split_last().unwrap();
    assert_eq!(
        *note,
        format!(
            "... [truncated: showing first {} of 1000 entries; list a deeper path, or use glob] ...",
            shown.len()
        )
    );
    assert!(shown.iter().all(|line| line.len() == "/mnt/user-data/workspace/file-0000".len()));
}

#[test]
fn a_listing_the_sandbox_cut_short_says_so() {
    let text = render(&Listing { truncated: true, ..listing(2) }, 20_000);
    assert_eq!(
        text,
        "/mnt/user-data/workspace/file-0000\n/mnt/user-data/workspace/file-0001\n\
         ... [truncated: showing first 2 of more than 2 entries; list a deeper path, or use glob] ..."
    );
}

#[test]
fn zero_means_no_limit() {
    assert_eq!(render(&listing(5000), 0).lines().count(), 5000);
}
