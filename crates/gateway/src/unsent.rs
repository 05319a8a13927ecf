//! What a connection was given and has not sent yet.
//!
//! Invariant: it is at most [`ROOM`] bytes, or one frame where that is longer, however much there is to send and however
//! slow whoever reads it is.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Of the 64 KiB that a reader who stands still may cost; the rest is what it reads next and the connection itself.
const ROOM: u16 = 8 << 10;

/// The server's HTTP would take sixteen frames, up to 400 KB of them, from whoever has so much.
#[derive(Debug)]
pub(crate) struct Unsent(Arc<Semaphore>);

impl Default for Unsent {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ROOM.into())))
    }
}

impl Unsent {
    /// The same bytes, once there is room for them. They take it until they are sent, or the connection is gone.
    pub(crate) async fn add(&self, bytes: Bytes) -> Bytes {
        let size = u16::try_from(bytes.len()).map_or(ROOM, |size| size.min(ROOM));
        match Arc::clone(&self.0).acquire_many_owned(size.into()).await {
            Ok(taken) => Bytes::from_owner(Taking { bytes, _taken: taken }),
            // Nobody closes it.
            Err(_) => bytes,
        }
    }
}

struct Taking {
    bytes: Bytes,
    _taken: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Taking {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    #[tokio::test]
    async fn more_is_taken_when_what_was_is_gone() {
        let unsent = Unsent::default();
        let frame = |size: usize| Bytes::from(vec![b'x'; size]);
        let (half, whole) = (usize::from(ROOM) / 2, usize::from(ROOM));
        let first = unsent.add(frame(half)).await;
        let second = unsent.add(frame(half)).await;
        assert_eq!(first.len() + second.len(), whole);
        // One that is larger than all of the room comes when nothing else is there.
        let mut large = pin!(unsent.add(frame(5 * whole)));
        for gone in [first, second.slice(9..), second] {
            assert!(poll_fn(|cx| Poll::Ready(large.as_mut().poll(cx).is_pending())).await);
            drop(gone);
        }
        assert_eq!(large.await, frame(5 * whole));
    }
}
