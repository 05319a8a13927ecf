use super::*;

fn config(json: &str) -> serde_json::Result<SandboxConfig> {
    serde_json::from_str(json)
}

#[test]
fn nothing_is_required() {
    let config = config("{}").unwrap();
    assert!(!config.allow_host_bash);
    assert_eq!(config.bash_output_max_chars, 20_000);
    assert_eq!(config.read_file_output_max_chars, 50_000);
    assert_eq!(config.ls_output_max_chars, 20_000);
    assert_eq!(config.bash_command_timeout, Duration::from_secs(600));
    config.validate().unwrap();
}

#[test]
fn the_usual_section_is_understood() {
    let config = config(
        r#"{"use": "deerflow.sandbox.local:LocalSandboxProvider", "allow_host_bash": true,
            "bash_command_timeout": 1.5, "environment": {"A": "b"},
            "mounts": [{"host_path": "/srv/data", "container_path": "/mnt/data", "read_only": true},
                       {"host_path": "/srv/more", "container_path": "/mnt/more"}]}"#,
    )
    .unwrap();
    config.validate().unwrap();
    assert_eq!(config.bash_command_timeout, Duration::from_millis(1500));
    assert!(config.mounts[0].read_only && !config.mounts[1].read_only);
}

#[test]
fn what_has_no_effect_is_an_error() {
    assert!(config(r#"{"allow_host_bsh": true}"#).unwrap_err().to_string().contains("allow_host_bsh"));
    assert!(config(r#"{"mounts": [{"host_path": "/a", "container_path": "/b", "ro": true}]}"#).is_err());
    assert!(config(r#"{"bash_command_timeout": 0}"#).is_err());
    assert!(config(r#"{"bash_command_timeout": -1}"#).is_err());
    let other = config(r#"{"use": "deerflow.community.aio_sandbox:AioSandboxProvider"}"#).unwrap();
    assert!(other.validate().unwrap_err().to_string().contains("AioSandboxProvider"));
}

#[test]
fn mounts_keep_off_what_the_sandbox_builds() {
    let with = |paths: &[&str]| SandboxConfig {
        mounts: paths
            .iter()
            .map(|path| Mount {
                host_path: "/srv".into(),
                container_path: (*path).to_owned(),
                read_only: false,
            })
            .collect(),
        ..SandboxConfig::default()
    };
    for good in ["/mnt/data", "/data", "/home/user/x"] {
        with(&[good]).validate().unwrap();
    }
    let bad = [
        "",
        "/",
        "data",
        "/mnt",
        "/mnt/user-data",
        "/mnt/user-data/workspace/x",
        "/usr/share/x",
        "/etc/ssl",
        "/proc",
        "/mnt/data/",
        "/mnt/../etc",
        "/mnt//x",
        "/tmp",
        "/mnt/skills/mine",
    ];
    for path in bad {
        assert!(with(&[path]).validate().is_err(), "{path}");
    }
    assert!(with(&["/mnt/a", "/mnt/a/b"]).validate().is_err());
}

#[test]
fn impossible_variables_are_refused() {
    let environment = BTreeMap::from([("A=B".to_owned(), String::new())]);
    assert!(SandboxConfig { environment, ..SandboxConfig::default() }.validate().is_err());
}

#[test]
fn debug_output_names_variables_without_their_values() {
    let environment = BTreeMap::from([("API_KEY".to_owned(), "hunter2".to_owned())]);
    let config = SandboxConfig { environment, ..SandboxConfig::default() };
    for shown in [format!("{config:?}"), format!("{config:#?}")] {
        assert!(shown.contains("API_KEY") && !shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn limits_are_read_as_people_write_them() {
    let read = |text: &str| serde_json::from_str::<SandboxConfig>(text).map_err(|error| error.to_string());
    for (written, bytes) in
        [("\"2g\"", 2 << 30), ("\"512MiB\"", 512 << 20), ("\"64 k\"", 64 << 10), ("1000", 1000), ("\"0\"", 0)]
    {
        let config = read(&format!("{{\"memory_limit\": {written}}}")).unwrap();
        assert_eq!(config.memory_limit, Some(bytes), "{written}");
    }
    for bad in ["\"2x\"", "\"g\"", "-1", "\"1.5g\"", "\"99999999999g\""] {
        assert!(read(&format!("{{\"memory_limit\": {bad}}}")).is_err(), "{bad}");
    }
    assert_eq!(read("{\"cpus\": 1.5, \"pids_limit\": 7}").unwrap().pids_limit, 7);
    assert!(read("{\"cpus\": -1}").unwrap_err().contains("processors"));
    assert!(read("{\"run_as\": 0}").unwrap().validate().unwrap_err().to_string().contains("run_as"));
}

#[test]
fn the_disk_has_a_limit_unless_it_is_taken_away() {
    assert_eq!(config("{}").unwrap().disk_limit, 8 << 30);
    assert_eq!(config(r#"{"disk_limit": "512m", "disk_reserve": 0}"#).unwrap().disk_limit, 512 << 20);
    assert_eq!(config(r#"{"disk_limit": 0, "disk_reserve": "2g"}"#).unwrap().disk_reserve, Some(2 << 30));
    assert!(config(r#"{"disk_limit": null}"#).unwrap_err().to_string().contains("0 is no limit"));
    assert!(config(r#"{"disk_limit": "much"}"#).unwrap_err().to_string().contains("`much`"));
}
