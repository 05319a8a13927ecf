//! Below HTTP: connections that fail, the proxy, the certificates.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hart_kernel::ModelErrorKind as Kind;
use hart_kernel::TimeoutPhase;
use hart_models::{Context, Dialect, HttpSettings, LimitSettings, Limits, ModelConfig, Proxy, RetryPolicy};
use hart_testkit::{ModelServer, Turn};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::support::{DIALECTS, Heard, KEY, config, hear, human};

fn context(settings: HttpSettings) -> Context {
    let retry = RetryPolicy {
        base: Duration::from_millis(1),
        cap: Duration::from_millis(2),
        ..RetryPolicy::default()
    };
    let limits = Limits::new(LimitSettings { retry, failure_threshold: 0, ..LimitSettings::default() });
    Context::new(settings, limits).unwrap()
}

async fn ask(context: &Context, config: &ModelConfig) -> Heard {
    let heard = hear(&*context.model(config, []).unwrap(), human("hi")).await;
    assert!(!format!("{heard:?}").contains(KEY), "the key shows: {heard:?}");
    heard
}

fn at(config: &ModelConfig, base_url: impl Into<String>) -> ModelConfig {
    let mut config = config.clone();
    config.base_url = base_url.into().into();
    config
}

/// What a peer does with a connection once it has read the request.
#[derive(Clone, Copy, Debug)]
enum Peer {
    Closes,
    Resets,
    Says(&'static str),
}

/// Counts the connections, and remembers how they began.
struct Peers {
    port: u16,
    count: Arc<AtomicUsize>,
    first_bytes: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Peers {
    async fn start(peer: Peer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (count, first_bytes) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let mut tasks = JoinSet::new();
        let (counted, seen) = (Arc::clone(&count), Arc::clone(&first_bytes));
        tasks.spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                let request = head(&mut stream).await;
                seen.lock().unwrap().push(request);
                serve(stream, peer).await;
            }
        });
        Self { port, count, first_bytes, _tasks: tasks }
    }
}

async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = [0; 4096];
    let read = stream.read(&mut bytes).await.unwrap_or(0);
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

async fn serve(mut stream: TcpStream, peer: Peer) {
    match peer {
        Peer::Closes => {}
        Peer::Resets => stream.set_zero_linger().unwrap(),
        Peer::Says(text) => {
            stream.write_all(text.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    }
}

#[tokio::test]
async fn connections_that_fail() {
    let server = ModelServer::start().await;
    let context = context(HttpSettings::default());
    for dialect in DIALECTS {
        let good = config(&server, dialect, json!({}));
        for (peer, kind) in [
            (Peer::Closes, Kind::Interrupted),
            (Peer::Resets, Kind::Interrupted),
            (Peer::Says("SSH-2.0-OpenSSH_9.9\r\n"), Kind::Interrupted),
            (Peer::Says("HTTP/1.1 200 OK\r\ncontent-ty"), Kind::Interrupted),
            (Peer::Says("HTTP/1.1 200 OK\r\ncontent-length: 400\r\n\r\ndata: {"), Kind::Interrupted),
            (Peer::Says("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"), Kind::Interrupted),
        ] {
            let peers = Peers::start(peer).await;
            let heard = ask(&context, &at(&good, format!("http://127.0.0.1:{}/v1", peers.port))).await;
            let error = heard.answer.unwrap().expect_err("no answer");
            assert_eq!(error.kind, kind, "{dialect:?} {peer:?}: {error}");
            assert_eq!((peers.count.load(Ordering::SeqCst), heard.restarts.len()), (3, 2), "{peer:?}");
            server.push(Turn::new().text("next"));
            assert_eq!(ask(&context, &good).await.answer.unwrap().unwrap().text(), "next", "{peer:?}");
        }
        // Nobody listens; and somebody who does not speak TLS.
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let plain = Peers::start(Peer::Says("HTTP/1.1 400 Bad Request\r\n\r\n")).await;
        for url in [format!("http://127.0.0.1:{free}/v1"), format!("https://127.0.0.1:{}/v1", plain.port)] {
            let heard = ask(&context, &at(&good, url)).await;
            assert_eq!(heard.answer.unwrap().unwrap_err().kind, Kind::Network);
            assert_eq!(heard.restarts.len(), 2);
        }
    }
}

#[tokio::test]
async fn a_connection_that_is_never_accepted_times_out() {
    // The queue of a listener that accepts nothing is full after a few connections.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    for _ in 0..8 {
        held.extend(std::net::TcpStream::connect_timeout(&address, Duration::from_millis(50)).ok());
    }
    let server = ModelServer::start().await;
    let more = json!({"connect_timeout": 0.2, "max_retries": 0, "base_url": format!("http://{address}/v1")});
    let heard = ask(&context(HttpSettings::default()), &config(&server, Dialect::OpenAi, more)).await;
    let error = heard.answer.unwrap().unwrap_err();
    assert_eq!(error.kind, Kind::Timeout(TimeoutPhase::Connect), "{error}");
}

#[tokio::test]
async fn a_proxy_is_asked_for_what_is_elsewhere_and_only_that() {
    let proxy = ModelServer::start().await;
    let local = ModelServer::start().await;
    let through = |more: Value| {
        let proxy = Proxy::parse(&proxy.url().replace("http://", "http://ada:hunter22@")).unwrap();
        let settings = HttpSettings { no_proxy: Some("direct.invalid".into()), ..HttpSettings::default() };
        (context(settings.with_proxy(proxy)), config(&local, Dialect::OpenAi, more))
    };
    let (elsewhere, entry) = through(json!({"base_url": "http://models.invalid/v1"}));
    proxy.push(Turn::new().text("via proxy"));
    assert_eq!(ask(&elsewhere, &entry).await.answer.unwrap().unwrap().text(), "via proxy");
    let seen = proxy.last_request();
    assert_eq!(seen.header("host"), Some("models.invalid"));
    assert_eq!(seen.header("proxy-authorization"), Some("Basic YWRhOmh1bnRlcjIy"));
    assert!(!format!("{elsewhere:?}").contains("hunter22"));

    // This machine, whatever it is called. (All of 127/8 reaches a listener on 0.0.0.0 only, so some find nobody.)
    let port = local.url().rsplit(':').next().unwrap().to_owned();
    for host in ["127.0.0.1", "localhost", "LOCALHOST", "127.0.0.2", "0.0.0.0"] {
        let (context, entry) = through(json!({"base_url": format!("http://{host}:{port}/v1")}));
        local.push(Turn::new().text("direct"));
        match ask(&context, &entry).await.answer.unwrap() {
            Ok(answer) => assert_eq!(answer.text(), "direct", "{host}"),
            Err(error) => assert_eq!((error.kind, host), (Kind::Network, "127.0.0.2")),
        }
    }
    // Exempt by list, and by the entry itself; there is no such host, so that failing means not having asked.
    for more in [
        json!({"base_url": "http://direct.invalid/v1", "max_retries": 0}),
        json!({"base_url": "http://models.invalid/v1", "proxy": "none", "max_retries": 0}),
    ] {
        let (context, entry) = through(more);
        assert_eq!(ask(&context, &entry).await.answer.unwrap().unwrap_err().kind, Kind::Network);
    }
    assert_eq!(proxy.requests().len(), 1);
}

#[tokio::test]
async fn the_key_does_not_go_to_a_proxy_in_the_open() {
    let proxy = Peers::start(Peer::Says("HTTP/1.1 403 Forbidden\r\n\r\n")).await;
    let server = ModelServer::start().await;
    let more = json!({
        "base_url": "https://models.invalid/v1", "proxy": format!("127.0.0.1:{}", proxy.port), "max_retries": 0,
    });
    let heard = ask(&context(HttpSettings::default()), &config(&server, Dialect::OpenAi, more)).await;
    assert_eq!(heard.answer.unwrap().unwrap_err().kind, Kind::Network);
    let sent = proxy.first_bytes.lock().unwrap().clone();
    assert!(
        sent.iter().all(|head| head.starts_with("CONNECT models.invalid:443 ") && !head.contains(KEY)),
        "{sent:?}"
    );
    assert_eq!(sent.len(), 1);
}

#[tokio::test]
async fn a_certificate_is_trusted_when_it_is_given() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let tls = TlsAcceptor::from(Arc::new(tls_config()));
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = tls.accept(stream).await else { continue };
            head(&mut stream).await;
            let _ = stream.write_all(ANSWER.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    let server = ModelServer::start().await;
    let base_url = format!("https://localhost:{port}/v1");
    let more = |ca: Option<PathBuf>| json!({"base_url": base_url, "ca_file": ca, "max_retries": 0});

    let plain = context(HttpSettings::default());
    let unknown = ask(&plain, &config(&server, Dialect::OpenAi, more(None))).await;
    let error = unknown.answer.unwrap().unwrap_err();
    let why = format!("{error:?}");
    assert!(error.kind == Kind::Network && why.contains("UnknownIssuer"), "{why}");
    // By the entry, and by the network's settings.
    let heard = ask(&plain, &config(&server, Dialect::OpenAi, more(Some(pem("ca.pem"))))).await;
    assert_eq!(heard.answer.unwrap().unwrap().text(), "safe");
    let trusting = context(HttpSettings { ca_file: Some(pem("ca.pem")), ..HttpSettings::default() });
    let heard = ask(&trusting, &config(&server, Dialect::OpenAi, more(None))).await;
    assert_eq!(heard.answer.unwrap().unwrap().text(), "safe");
}

const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
    data: {\"choices\":[{\"delta\":{\"content\":\"safe\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn pem(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

/// A certificate of a made-up authority, for `localhost`, until 2126.
fn tls_config() -> ServerConfig {
    let certificate = CertificateDer::from_pem_file(pem("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(pem("server.key")).unwrap();
    ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key).unwrap()
}
