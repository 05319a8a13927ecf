use std::fs;

use super::*;

fn disk(dir: &std::path::Path, quota: u64) -> Arc<Disk> {
    Arc::new(Disk::new(vec![dir.to_owned()], DiskLimits { quota, reserve: Some(0) }))
}

/// Asks for room and says that it was filled.
fn fill(disk: &Arc<Disk>, bytes: u64) -> Result<()> {
    let mut claim = Disk::claim(disk);
    claim.grow(bytes)?;
    claim.landed();
    Ok(())
}

#[test]
fn a_tree_is_measured_by_what_it_takes() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), vec![1; 1 << 20]).unwrap();
    let sparse = fs::File::create(dir.path().join("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    fs::create_dir(dir.path().join("d")).unwrap();
    fs::hard_link(dir.path().join("a"), dir.path().join("d/again")).unwrap();
    std::os::unix::fs::symlink("/usr", dir.path().join("usr")).unwrap();
    let size = disk(dir.path(), 0).measure();
    assert!((1 << 20..(1 << 20) + 64 * 1024).contains(&size), "{size}");
    for index in 0..1000 {
        fs::write(dir.path().join(format!("d/{index}")), "").unwrap();
    }
    assert!(disk(dir.path(), 0).measure() >= size + 1000 * ENTRY, "empty files count too");
}

#[test]
fn depth_hides_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // 60 names of 200 letters are more than a path may have.
    let name = "x".repeat(200);
    let directory = OFlags::PATH | OFlags::DIRECTORY;
    let mut deep = openat(CWD, dir.path(), directory, Mode::empty()).unwrap();
    for _ in 0..60 {
        rustix::fs::mkdirat(&deep, &name, Mode::from(0o755)).unwrap();
        deep = openat(&deep, &name, directory, Mode::empty()).unwrap();
    }
    let file = openat(&deep, "f", OFlags::WRONLY | OFlags::CREATE, Mode::from(0o644)).unwrap();
    std::io::Write::write_all(&mut fs::File::from(file), &vec![1; 5_000_000]).unwrap();
    assert!(disk(dir.path(), 0).measure() > 5_000_000);
}

#[test]
fn what_was_removed_is_room_again() {
    let dir = tempfile::tempdir().unwrap();
    let disk = disk(dir.path(), 2 << 20);
    fill(&disk, 1 << 20).unwrap();
    fs::write(dir.path().join("a"), vec![1; 1 << 20]).unwrap();
    let error = fill(&disk, 3 << 20).unwrap_err();
    assert_eq!(error.rule(), Some("disk.quota"), "{error}");
    fill(&disk, 512 << 10).unwrap();
    fs::write(dir.path().join("b"), vec![1; 2 << 20]).unwrap();
    assert!(fill(&disk, 1).is_err() || disk.file_limit(9).unwrap() == 9);
    disk.measure();
    assert_eq!(disk.file_limit(9).unwrap(), 0, "a command may read and remove");
    fs::remove_file(dir.path().join("b")).unwrap();
    assert_eq!(disk.file_limit(9).unwrap(), 9);
    fill(&disk, 1).unwrap();
}

#[test]
fn a_full_disk_takes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let limits = DiskLimits { quota: 0, reserve: Some(u64::MAX) };
    let disk = Arc::new(Disk::new(vec![dir.path().to_owned()], limits));
    let error = fill(&disk, 1).unwrap_err();
    assert_eq!(error.rule(), Some("disk.reserve"), "{error}");
    assert_eq!(disk.file_limit(9).unwrap_err().rule(), Some("disk.reserve"));
    assert!(!error.to_string().contains(dir.path().to_str().unwrap()), "{error}");
}

#[test]
fn what_many_stage_at_once_is_counted_together() {
    let dir = tempfile::tempdir().unwrap();
    let disk = disk(dir.path(), 10 << 20);
    let mut claims: Vec<Claim> = (0..4).map(|_| Disk::claim(&disk)).collect();
    let mut given = 0;
    // Each asks in turn; a walk in between finds nothing of what the others were given.
    for turn in 0..40 {
        given += u64::from(claims[turn % 4].grow(1 << 20).is_ok());
        disk.measure();
    }
    assert_eq!(given, 10, "megabytes");
    // Who gives up makes room; who lands does not.
    let lands = claims.pop().unwrap();
    fs::write(dir.path().join("f"), vec![1; lands.bytes as usize]).unwrap();
    lands.landed();
    drop(claims);
    let mut rest = Disk::claim(&disk);
    let more = (0..20).take_while(|_| rest.grow(1 << 20).is_ok()).count();
    assert_eq!(more, 8, "the one that landed took two of the ten");
}
