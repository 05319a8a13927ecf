use std::os::unix::fs::PermissionsExt;

use super::*;

const HYBRID_MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

#[test]
fn a_hybrid_layout_has_a_place_a_controller() {
    let own = "4:memory:/box/a\n9:name=systemd:/x\n1:cpu:/\n0::/y\n";
    let found = find::candidates(HYBRID_MOUNTS, own);
    let dirs: Vec<Vec<PathBuf>> = found.into_iter().map(|place| place.dirs).collect();
    let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
    assert_eq!(
        dirs,
        [
            paths(&["/sys/fs/cgroup/cpu"]),
            paths(&["/sys/fs/cgroup/memory/box/a"]),
            paths(&["/sys/fs/cgroup/unified/y", "/sys/fs/cgroup/unified"])
        ]
    );
}

#[test]
fn a_container_sees_its_part_of_the_hierarchy_only() {
    let mounts = "35 31 0:32 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw,nsdelegate\n";
    let found = find::candidates(mounts, "0::/docker/abc/inner\n");
    assert_eq!(found[0].dirs, [PathBuf::from("/sys/fs/cgroup/inner"), PathBuf::from("/sys/fs/cgroup")]);
}

/// A directory that looks like a group of version 2; what is written to it can be read back.
fn fake_v2(dir: &Path) {
    for file in ["memory.max", "memory.swap.max", "pids.max", "cpu.max", "cgroup.procs", "cgroup.kill"] {
        fs::write(dir.join(file), "").unwrap();
    }
}

#[test]
fn version_2_is_written_as_it_is_read_by_the_kernel() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    fake_v2(dir);
    let limits = Limits { memory: 64 << 20, pids: 20, cpus: 1.5 };
    for controller in [Controller::Memory, Controller::Pids, Controller::Cpu, Controller::Kill] {
        group::limit(dir, 2, controller, limits).unwrap();
    }
    let read = |file: &str| fs::read_to_string(dir.join(file)).unwrap();
    assert_eq!(
        [read("memory.max"), read("memory.swap.max"), read("pids.max"), read("cpu.max"), read("cgroup.kill")],
        ["67108864", "0", "20", "150000 100000", ""]
    );
    group::kill(dir);
    assert_eq!(read("cgroup.kill"), "1");
}

#[test]
fn no_file_is_made_where_there_is_no_cgroup() {
    let place = tempfile::tempdir().unwrap();
    let limits = Limits { memory: 1 << 20, pids: 1, cpus: 0.0 };
    assert!(group::limit(place.path(), 2, Controller::Memory, limits).is_err());
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn only_dead_harts_are_cleared_away() {
    let place = tempfile::tempdir().unwrap();
    let me = Owner::of_this_process();
    let namespace = me.namespace;
    let own = format!("{}7", me.prefix());
    let recycled = format!("hart-{namespace}-{}-{}-0", me.pid, me.started + 1);
    let foreign = format!("hart-{}-4194305-1-0", namespace + 1);
    let dead = format!("hart-{namespace}-4194305-1-0");
    let others = ["user.slice", "hart-x", "hart-1-2-3", "hart-1-2-3-4-5", "hart-main"];
    for name in [&own, &recycled, &foreign, &dead].map(String::as_str).into_iter().chain(others) {
        fs::create_dir(place.path().join(name)).unwrap();
    }
    me.sweep(place.path());
    let left = |name: &str| place.path().join(name).exists();
    assert!(left(&own) && left(&foreign) && others.iter().all(|name| left(name)));
    assert!(!left(&dead) && !left(&recycled));
}

#[test]
fn where_nothing_can_be_made_there_are_no_groups() {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let mounts = format!("1 1 0:1 / {} rw - cgroup2 cgroup2 rw\n", place.path().display());
    // As root the directory can be made, but it is no group: there is nothing to write a limit to.
    let found: Vec<_> =
        find::candidates(&mounts, "0::/\n").iter().filter_map(|place| place.try_out("hart-0-0-0-")).collect();
    assert_eq!(found, []);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn half_of_the_memory_is_the_default() {
    assert_eq!(half_of("MemTotal:       24682416 kB\nMemFree: 1 kB\n"), 24_682_416 * 512);
    assert_eq!(half_of(""), 0);
}
