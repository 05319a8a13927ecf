//! The lines about refusals, as an operator reads them.

use std::io;
use std::sync::{Arc, Mutex};

use hart_sandbox::{Background, Exec};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::support::{PATIENCE, Place, eventually};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// The lines with `word`, once there is one.
    async fn lines(&self, word: &str) -> Vec<serde_json::Value> {
        let find = || {
            let log = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
            log.lines().filter(|line| line.contains(word)).map(str::to_owned).collect::<Vec<_>>()
        };
        eventually(word, || !find().is_empty()).await;
        find().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The kernel is heard on a thread of its own, the proxy and commands in the background in tasks of theirs.
#[tokio::test]
async fn a_refusal_names_its_run_and_thread() {
    let network = serde_json::from_str(r#"["example.org"]"#).unwrap();
    let Some(place) = Place::isolated_with(|config, _| {
        config.network = network;
        None
    })
    .await
    else {
        return;
    };
    // For the whole process, as hart sets it: a subscriber of one thread would not hear the others.
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing::Level::WARN)
        .with_writer(move || writer.clone())
        .init();
    let span = tracing::error_span!("run", id = "run-of-this-test", thread = "thread-of-this-test");
    let refused = "mkdir /usr/made-up-71; mkdir /made-up-72; cat /root/made-up-73; \
                   exec 3<>/dev/tcp/127.0.0.1/${http_proxy##*:} && printf 'CONNECT made-up-74:443 HTTP/1.1\\r\\n\\r\\n' >&3 \
                   && cat <&3";
    let exec = Exec::new(refused).timeout(PATIENCE);
    let cancel = CancellationToken::new();
    place.sandbox.exec(exec, None, &cancel).instrument(span.clone()).await.unwrap();
    let background = Background::default();
    let later = Exec::new("mkdir /usr/made-up-75; sleep 600");
    span.in_scope(|| background.start(Arc::clone(&place.sandbox), later)).unwrap();
    for (word, rule, message) in [
        ("made-up-71", "file.write", "denied"),
        ("made-up-72", "file.write", "denied"),
        ("made-up-73", "text.hidden-path", "named"),
        ("made-up-74", "egress.host", "denied"),
        ("made-up-75", "file.write", "denied"),
    ] {
        for line in log.lines(word).await {
            assert_eq!(line["span"]["id"], "run-of-this-test", "{line}");
            assert_eq!(line["span"]["thread"], "thread-of-this-test", "{line}");
            assert_eq!(
                (&line["fields"]["rule"], &line["fields"]["message"]),
                (&rule.into(), &message.into())
            );
        }
    }
    background.stop().await;
}
