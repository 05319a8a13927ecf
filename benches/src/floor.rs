//! The floor: what any client must do at least, namely send the bytes and read the bytes.
//!
//! Invariant: it parses nothing.

use bytes::Bytes;
use futures_util::StreamExt;

/// Sends a recorded request body and reads the answer to its end.
pub async fn exchange(http: &reqwest::Client, base_url: &str, body: Bytes) -> anyhow::Result<()> {
    stream(http, base_url, body, |_| ()).await
}

/// The same, showing each piece as it arrives.
pub async fn stream(
    http: &reqwest::Client,
    base_url: &str,
    body: Bytes,
    mut seen: impl FnMut(&[u8]),
) -> anyhow::Result<()> {
    let request =
        http.post(format!("{base_url}/chat/completions")).header("content-type", "application/json");
    let mut answer = request.body(body).send().await?.error_for_status()?.bytes_stream();
    while let Some(piece) = answer.next().await {
        seen(&piece?);
    }
    Ok(())
}
