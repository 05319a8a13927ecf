//! Reads what a command prints: keeps some of it, shows all of it.
//!
//! Invariant: it reads to the end, whoever listens, so that a command never waits for a reader that is gone.

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::exec::{Capture, OutputSink, Stream, TextStream};
use crate::host::{MaskStream, Masked};

/// One of the two streams: what is kept of it, and who sees it live.
pub(super) struct Tap<'a> {
    which: Stream,
    pub(super) capture: Capture,
    text: TextStream,
    mask: Option<MaskStream>,
    pub(super) sink: Option<&'a dyn OutputSink>,
}

impl<'a> Tap<'a> {
    pub(super) fn new(
        which: Stream,
        limit: usize,
        masked: Option<Masked>,
        sink: Option<&'a dyn OutputSink>,
    ) -> Self {
        let mask = masked.map(MaskStream::new);
        Self { which, capture: Capture::new(limit), text: TextStream::default(), mask, sink }
    }

    /// Reads until the end, whatever becomes of what was read.
    pub(super) async fn drain(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut buffer = vec![0; 32 << 10];
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            let bytes = buffer.get(..read).unwrap_or_default();
            match self.mask.as_mut().map(|mask| mask.push(bytes)) {
                Some(masked) => self.take(&masked),
                None => self.take(bytes),
            }
        }
        if let Some(mask) = self.mask.take() {
            self.take(&mask.finish());
        }
        if let Some(sink) = self.sink {
            std::mem::take(&mut self.text).finish(|text| sink.output(self.which, text));
        }
    }

    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.capture.push(bytes);
        if let Some(sink) = self.sink {
            self.text.push(bytes, |text| sink.output(self.which, text));
        }
    }
}
