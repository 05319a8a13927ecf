//! The network as configured: off, the host's, or the listed hosts through the proxy.

use std::sync::Mutex;

use hart_sandbox::{Denied, Exec, Network, OutputSink, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::support::{PATIENCE, Place};

#[derive(Default)]
struct Rules(Mutex<Vec<String>>);

impl OutputSink for Rules {
    fn output(&self, _: Stream, _: &str) {}

    fn denied(&self, denied: &Denied) {
        self.0.lock().unwrap().push(format!("{} {}", denied.rule, denied.detail));
    }
}

/// Answers every connection with what it was sent first.
async fn echo_server() -> (u16, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 4096];
            let read = stream.read(&mut buffer).await.unwrap_or(0);
            let body = &buffer[..read];
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {read}\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(body).await;
        }
    };
    (port, tokio::task::spawn(serve))
}

async fn place_with(hosts: &[String]) -> Option<Place> {
    let hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
    Place::isolated_with(|config, _| {
        config.network = Network::Hosts(hosts);
        None
    })
    .await
}

async fn ask(place: &Place, rules: &Rules, request: &str) -> String {
    let command = format!(
        "exec 3<>/dev/tcp/127.0.0.1/${{http_proxy##*:}} && printf '{}' >&3 && cat <&3",
        request.replace('\n', "\\r\\n")
    );
    let exec = Exec::new(command).timeout(PATIENCE);
    place.sandbox.exec(exec, Some(rules), &CancellationToken::new()).await.unwrap().stdout
}

#[tokio::test]
async fn listed_hosts_are_reached_and_no_others() {
    let (port, server) = echo_server().await;
    let (other, other_server) = echo_server().await;
    let Some(place) = place_with(&[format!("127.0.0.1:{port}"), format!("localhost:{other}")]).await else {
        return;
    };
    assert!(place.sandbox.capabilities().network);
    let rules = Rules::default();
    let answer = ask(&place, &rules, &format!("GET http://127.0.0.1:{port}/x HTTP/1.1\n\n")).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("GET /x HTTP/1.1"), "{answer}");
    let answer = ask(&place, &rules, &format!("CONNECT 127.0.0.1:{port} HTTP/1.1\n\nhello")).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 Connection established") && answer.ends_with("hello"),
        "{answer}"
    );
    assert_eq!(*rules.0.lock().unwrap(), [] as [String; 0]);
    for (target, rule) in [
        (format!("127.0.0.1:{other}"), "egress.port"),
        (format!("127.0.0.2:{port}"), "egress.host"),
        ("example.org:443".to_owned(), "egress.host"),
        // The name is listed, the address it stands for is not.
        (format!("localhost:{other}"), "egress.address"),
        (format!("127.1:{port}"), "egress.syntax"),
        (format!("127.0.0.1%%00.example.org:{port}"), "egress.syntax"),
        ("169.254.169.254:80".to_owned(), "egress.host"),
    ] {
        let rules = Rules::default();
        let answer = ask(&place, &rules, &format!("CONNECT {target} HTTP/1.1\n\n")).await;
        assert!(answer.starts_with("HTTP/1.1 40"), "{target}: {answer}");
        assert!(
            rules.0.lock().unwrap().iter().any(|denied| denied.starts_with(rule)),
            "{target}: {:?}",
            rules.0
        );
    }
    // Past the proxy there is nothing.
    assert!(!place.run(&format!("exec 3<>/dev/tcp/127.0.0.1/{port}")).await.exit.success());
    server.abort();
    other_server.abort();
}

#[tokio::test]
async fn an_empty_list_allows_nothing() {
    let (port, server) = echo_server().await;
    let Some(place) = place_with(&[]).await else { return };
    let rules = Rules::default();
    let answer = ask(&place, &rules, &format!("CONNECT 127.0.0.1:{port} HTTP/1.1\n\n")).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    server.abort();
}

#[tokio::test]
async fn programs_find_the_proxy() {
    let (port, server) = echo_server().await;
    let Some(place) = place_with(&[format!("127.0.0.1:{port}"), format!("localhost:{port}")]).await else {
        return;
    };
    if !std::path::Path::new("/usr/bin/curl").exists() {
        crate::support::skipped("needs curl");
        return;
    }
    for host in ["127.0.0.1", "localhost"] {
        let output = place.run(&format!("curl -sS http://{host}:{port}/path")).await;
        assert!(
            output.stdout.starts_with(&format!("GET /path HTTP/1.1\r\nHost: {host}")),
            "{host}: {output:?}"
        );
    }
    server.abort();
}

#[tokio::test]
async fn what_is_the_sandboxs_own_goes_around_the_proxy() {
    let Some(place) = place_with(&["127.0.0.1:18777".to_owned(), "*.localhost".to_owned()]).await else {
        return;
    };
    assert_eq!(place.stdout("echo $no_proxy $NO_PROXY").await, "localhost,::1 localhost,::1");
    let Some(place) = place_with(&["example.org".to_owned()]).await else { return };
    assert_eq!(place.stdout("echo $no_proxy").await, "localhost,127.0.0.1,::1");
}

#[tokio::test]
async fn allow_is_the_network_of_the_host() {
    let (port, server) = echo_server().await;
    let Some(place) = Place::isolated_with(|config, _| {
        config.network = Network::Allow;
        None
    })
    .await
    else {
        return;
    };
    let output = place.run(&format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo hi >&3 && cat <&3")).await;
    assert!(output.stdout.ends_with("hi\n"), "{output:?}");
    server.abort();
}
