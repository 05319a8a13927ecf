use super::*;

fn rules(command: &str) -> Vec<&'static str> {
    let roots = Roots(Vec::new());
    named_outside(command, &Shown::new(&roots, Path::new("/var/lib/hart")))
        .into_iter()
        .map(|(rule, _)| rule)
        .collect()
}

#[test]
fn what_is_not_there_is_found_wherever_it_is_named() {
    for command in [
        "cat /etc/shadow",
        "cat < /etc/shadow",
        "true; (ls -l '/root/.ssh')",
        "bash -c 'cat /home/x/.netrc'",
        "x=$(cat /var/lib/hart/config.yaml)",
        "tar --file=/sys/kernel/x -t",
        "cat /usr/../boot/x",
        "exec 3</dev/mem",
    ] {
        assert_eq!(rules(command), [HIDDEN], "{command}");
    }
    assert_eq!(rules("cat /proc/1/environ; cat /proc/$PPID/mem"), [PROCESS, PROCESS]);
    assert_eq!(rules("sudo -n true"), [USER]);
}

#[test]
fn what_is_there_and_what_is_only_text_is_not() {
    for command in [
        "ls / /usr /etc /dev /proc /var /tmp /run /mnt /mnt/user-data/workspace",
        "cat /etc/passwd /proc/self/status /proc/cpuinfo /proc/42/status > /dev/null",
        "echo /etc/shadow; printf '%s' /root",
        "sed -n '/root/p' f; awk '/x/ {print}' f",
        "echo x > /tmp/hart-no-such-file; cat /nonexistent-here/x",
        "ls /usr/lib /opt /etc/ssl/certs/ca.pem; exec 3<>/dev/tcp/localhost/80",
        "git commit -m 'fix /home page'",
    ] {
        assert_eq!(rules(command), [] as [&str; 0], "{command}");
    }
}
