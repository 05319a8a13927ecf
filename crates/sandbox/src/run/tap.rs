//! Reads what a command prints: keeps some of it, shows all of it, host paths masked in both.
//!
//! Invariant: it reads to the end, whoever listens, so that a command never waits for a reader that is gone.

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::exec::{Capture, OutputSink, Stream, TextStream};
use crate::mask::{HostMask, MaskStream};

/// One of the two streams: what is kept of it, and who sees it live.
pub(super) struct Tap<'a> {
    which: Stream,
    pub(super) capture: Capture,
    text: TextStream,
    mask: Option<MaskStream>,
    pub(super) sink: Option<&'a dyn OutputSink>,
}

impl<'a> Tap<'a> {
    pub(super) fn new(which: Stream, limit: usize, mask: HostMask, sink: Option<&'a dyn OutputSink>) -> Self {
        let mask = Some(MaskStream::new(mask));
        Self { which, capture: Capture::new(limit), text: TextStream::default(), mask, sink }
    }

    /// Reads until the end, whatever becomes of what was read.
    pub(super) async fn drain(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut buffer = vec![0; 32 << 10];
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            let bytes = buffer.get(..read).unwrap_or_default();
            let Self { which, capture, text, mask, sink } = self;
            if let Some(mask) = mask {
                mask.push(bytes, |bytes| take(bytes, *which, capture, text, *sink));
            }
        }
        self.flush();
    }

    /// Lets go of what was held back for a rest that does not come.
    pub(super) fn flush(&mut self) {
        let Self { which, capture, text, mask, sink } = self;
        if let Some(mask) = mask.take() {
            mask.finish(|bytes| take(bytes, *which, capture, text, *sink));
        }
        if let Some(sink) = sink {
            std::mem::take(text).finish(|text| sink.output(*which, text));
        }
    }

    /// Adds words of hart's own.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        take(bytes, self.which, &mut self.capture, &mut self.text, self.sink);
    }
}

fn take(
    bytes: &[u8],
    which: Stream,
    capture: &mut Capture,
    text: &mut TextStream,
    sink: Option<&dyn OutputSink>,
) {
    capture.push(bytes);
    if let Some(sink) = sink {
        text.push(bytes, |text| sink.output(which, text));
    }
}
