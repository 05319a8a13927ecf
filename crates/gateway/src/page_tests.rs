use super::*;

static BUILT: &[Asset] = &[
    Asset { path: "/index.html", gzip: b"" },
    Asset { path: "/assets/index-a1.js", gzip: b"" },
    Asset { path: "/frame/live.html", gzip: b"" },
];

fn found(path: &str, files: &'static [Asset]) -> Option<&'static str> {
    find(path, files).map(|found| match found {
        Found::File(asset) => asset.path,
        Found::NotBuilt => "not built",
    })
}

#[test]
fn only_a_pages_own_addresses_are_answered() {
    for (path, answered) in [
        ("/", Some("/index.html")),
        ("/chat/0190", Some("/index.html")),
        ("/assets/index-a1.js", Some("/assets/index-a1.js")),
        ("/assets/other.js", None),
        ("/chat/a/b", None),
        ("/threads", None),
        ("/api/langgraph/threads", None),
        ("/api/models", None),
        ("/info", None),
    ] {
        assert_eq!(found(path, BUILT), answered, "{path}");
    }
}

#[test]
fn without_a_page_its_addresses_say_how_to_build_it() {
    assert_eq!(found("/", &[]), Some("not built"));
    assert_eq!(found("/assets/index-a1.js", &[]), None);
    let response = not_built();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.headers().contains_key(header::CONTENT_SECURITY_POLICY));
}

#[test]
fn scripts_of_others_run_only_in_the_live_frame_and_reach_nothing() {
    for path in ["/index.html", "/assets/index-a1.js", "/frame/still.html", "/frame/diagram.html"] {
        let rules = policy(path);
        let scripts = rules.split(';').find(|rule| rule.trim().starts_with("script-src")).unwrap();
        assert_eq!(scripts.trim(), "script-src 'self'", "{path}");
    }
    for path in ["/frame/still.html", "/frame/live.html"] {
        let rules = policy(path);
        assert!(rules.contains("default-src 'none'") && rules.contains("sandbox allow-scripts"), "{path}");
        assert!(!rules.contains("allow-same-origin") && !rules.contains("http"), "{path}");
    }
}

#[test]
fn what_is_named_by_its_content_is_kept_and_the_rest_is_asked_for_again() {
    assert!(caching("/assets/index-a1.js").contains("immutable"));
    assert_eq!(caching("/index.html"), "no-cache");
    let mut headers = HeaderMap::new();
    assert!(!accepts_gzip(&headers));
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("br, gzip;q=0.8"));
    assert!(accepts_gzip(&headers));
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip;q=0"));
    assert!(!accepts_gzip(&headers));
}
