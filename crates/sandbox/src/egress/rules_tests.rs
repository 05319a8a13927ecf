use super::*;

fn rules(entries: &[&str]) -> Rules {
    Rules::new(entries.iter().map(|entry| entry.parse().unwrap()).collect())
}

fn check(rules: &Rules, destination: &str) -> Result<(), &'static str> {
    Destination::parse(destination, None)
        .map_or(Err("egress.syntax"), |destination| rules.check(&destination))
}

#[test]
fn names_are_compared_whole() {
    let rules = rules(&["example.org", "*.example.net", "api.example.com:8443"]);
    for allowed in [
        "example.org:443",
        "EXAMPLE.org:80",
        "example.org.:443",
        "a.example.net:443",
        "a.b.example.net:80",
        "api.example.com:8443",
    ] {
        assert_eq!(check(&rules, allowed), Ok(()), "{allowed}");
    }
    for (refused, rule) in [
        ("www.example.org:443", "egress.host"),
        ("example.org.evil.net:443", "egress.host"),
        ("evilexample.org:443", "egress.host"),
        ("example.net:443", "egress.host"),
        ("evilexample.net:443", "egress.host"),
        ("example.org:22", "egress.port"),
        ("api.example.com:443", "egress.port"),
        ("1.1.1.1:443", "egress.host"),
    ] {
        assert_eq!(check(&rules, refused), Err(rule), "{refused}");
    }
    assert_eq!(check(&self::rules(&[]), "example.org:443"), Err("egress.host"), "an empty list fails closed");
}

#[test]
fn odd_spellings_are_no_destination() {
    let rules = rules(&["example.org", "*.example.org", "127.0.0.1"]);
    for odd in [
        "example.org\0.evil.net:443",
        "example.org@evil.net:443",
        "example.org:0443x",
        "example.org:",
        "example.org",
        "127.1:80",
        "0x7f000001:80",
        "2130706433:80",
        "0177.0.0.1:80",
        "127.0.0.1.:80",
        "[::1:80",
        "::1:80:80",
        "exa mple.org:80",
        "example。org:80",
        "example..org:80",
        ".example.org:80",
        ":80",
        "example.org:65536",
        "example.org:0",
        "example.org:+80",
        "a/b.example.org:80",
        "example.org\\@x:80",
        "[127.0.0.1]:80",
    ] {
        assert_eq!(check(&rules, odd), Err("egress.syntax"), "{odd:?}");
    }
}

#[test]
fn addresses_that_are_not_public_must_be_listed_themselves() {
    let rules = rules(&["localhost", "127.0.0.1:8080", "10.0.0.1"]);
    assert!(rules.vet("127.0.0.1:8080".parse().unwrap()));
    assert!(rules.vet("10.0.0.1:443".parse().unwrap()));
    assert!(rules.vet("93.184.216.34:443".parse().unwrap()));
    assert!(!rules.vet("127.0.0.1:80".parse().unwrap()), "another port of it");
    assert!(!rules.vet("127.0.0.2:8080".parse().unwrap()));
    assert!(!rules.vet("169.254.169.254:80".parse().unwrap()));
    assert!(!rules.vet("[::ffff:127.0.0.1]:8080".parse().unwrap()));
}

#[test]
fn the_configuration_is_read() {
    let read = |text: &str| serde_json::from_str::<Network>(text).map_err(|error| error.to_string());
    assert_eq!(read("\"off\""), Ok(Network::Off));
    assert_eq!(read("false"), Ok(Network::Off));
    assert_eq!(read("\"allow\""), Ok(Network::Allow));
    let Ok(Network::Hosts(hosts)) = read(r#"["a.org", "*.b.org:8080", "[::1]:80", "::1"]"#) else { panic!() };
    assert_eq!(hosts.len(), 4);
    for bad in
        ["\"on\"", "true", "7", "[\"*\"]", "[\"*.*.org\"]", "[\"a.org:x\"]", "[\"http://a.org\"]", "[\"\"]"]
    {
        assert!(read(bad).unwrap_err().contains("network: "), "{bad}");
    }
}
