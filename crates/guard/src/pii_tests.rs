//! Kinds, strategies, and what must not be mistaken.

use super::*;

fn detector() -> PiiDetector {
    PiiDetector::new(PiiKind::BUILT_IN.to_vec()).unwrap()
}

fn found(text: &str) -> Vec<(String, &str)> {
    let detector = detector();
    detector
        .find(text)
        .into_iter()
        .map(|f| (detector.kinds()[f.kind].name().to_owned(), text.get(f.range).unwrap()))
        .collect()
}

#[test]
fn one_pass_finds_every_kind() {
    let text = "Write to ada@example.org or https://ada:pw@example.org/x?y=1. From 192.168.0.17 (fe80::1, \
                00:1a:2B:3c:4D:5e), paid with 4111 1111 1111 1111, 378282246310005.";
    let expected = [
        ("email", "ada@example.org"),
        ("url", "https://ada:pw@example.org/x?y=1"),
        ("ip", "192.168.0.17"),
        ("ip", "fe80::1"),
        ("mac_address", "00:1a:2B:3c:4D:5e"),
        ("credit_card", "4111 1111 1111 1111"),
        ("credit_card", "378282246310005"),
    ];
    assert_eq!(found(text), expected.map(|(kind, value)| (kind.to_owned(), value)));
}

#[test]
fn what_only_looks_like_it_is_left_alone() {
    for text in [
        "4111 1111 1111 1112",
        "0000000000000000",
        "version 1.2.3.4.5 and 999.1.1.1",
        "12:34:56 std::fmt::Display a::b ::",
        "user@localhost @ada me@",
        "http:// and www",
        "order 12345",
    ] {
        let found = found(text);
        assert!(found.is_empty(), "{text}: {found:?}");
    }
}

#[test]
fn each_strategy_leaves_what_it_says() {
    let table = [
        (PiiKind::Email, "ada@example.org", "[REDACTED_EMAIL]", "a***@example.org"),
        (PiiKind::CreditCard, "4111-1111-1111-1111", "[REDACTED_CREDIT_CARD]", "****-****-****-1111"),
        (PiiKind::Ip, "192.168.0.17", "[REDACTED_IP]", "***.17"),
        (PiiKind::MacAddress, "00:1a:2b:3c:4d:5e", "[REDACTED_MAC_ADDRESS]", "**:**:**:**:**:5e"),
        (PiiKind::Url, "https://ada@example.org/secret", "[REDACTED_URL]", "example.org/***"),
    ];
    for (kind, value, redacted, masked) in table {
        assert_eq!(treat(&kind, PiiStrategy::Redact, value), redacted);
        assert_eq!(treat(&kind, PiiStrategy::Mask, value), masked);
        let hash = treat(&kind, PiiStrategy::Hash, value);
        assert!(
            hash.starts_with(&format!("<{}_hash:", kind.name())) && hash.len() == kind.name().len() + 16,
            "{hash}"
        );
        assert_eq!(hash, treat(&kind, PiiStrategy::Hash, value));
    }
}

#[test]
fn a_kind_of_one_s_own() {
    let ticket = PiiKind::Custom { name: "ticket".into(), pattern: r"TCK-\d{4,}".into() };
    let detector = PiiDetector::new(vec![ticket.clone(), PiiKind::Email]).unwrap();
    let text = "TCK-20261 of ö@x and b@c.de";
    let replaced =
        detector.replace(text, |kind, value| treat(&detector.kinds()[kind], PiiStrategy::Mask, value));
    assert_eq!(replaced.unwrap(), "****0261 of ö@x and b***@c.de");
    assert_eq!(detector.replace("nothing here", |_, _| String::new()), None);
    for (pattern, reason) in [("(", "unclosed"), ("a*", "empty"), ("(?P<x>a)", "names a group")] {
        let error = PiiDetector::new(vec![PiiKind::Custom { name: "mine".into(), pattern: pattern.into() }]);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("`mine`") && error.contains(reason), "{error}");
    }
    assert!(PiiDetector::new(Vec::new()).unwrap().find("ada@example.org").is_empty());
}
