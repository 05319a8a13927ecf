use super::*;

fn fix(step: &str, errno: i32, knobs: &[(&str, &str)]) -> String {
    let failure = SetupFailure::for_test(step, errno);
    let value =
        |knob: &str| knobs.iter().find(|(name, _)| *name == knob).map(|(_, value)| format!("{value}\n"));
    fix_for(&failure, value)
}

#[test]
fn the_closed_knob_is_named() {
    let unshare = |knobs: &[(&str, &str)]| fix("unshare", libc::EPERM, knobs);
    assert!(unshare(&[("/proc/sys/user/max_user_namespaces", "0")]).contains("user.max_user_namespaces"));
    assert!(
        unshare(&[("/proc/sys/kernel/unprivileged_userns_clone", "0")])
            .contains("unprivileged_userns_clone=1")
    );
    let apparmor = [
        ("/proc/sys/user/max_user_namespaces", "15000"),
        ("/proc/sys/kernel/unprivileged_userns_clone", "1"),
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
    ];
    assert!(unshare(&apparmor).contains("AppArmor"));
    assert!(unshare(&[]).contains("allow_host_bash"));
}

#[test]
fn other_causes_are_told_apart() {
    assert!(fix("bind /usr", libc::ENOSYS, &[]).contains("Linux 5.12"));
    assert!(fix("mount /proc", libc::EPERM, &[]).contains("systempaths=unconfined"));
}

#[test]
fn a_failure_names_its_step() {
    let failure = SetupFailure::for_test("mount /proc", libc::EPERM);
    assert_eq!(failure.to_string(), "mount /proc failed: Operation not permitted (os error 1)");
}
