//! [`Sink`]: destination of a title's bytes after the player has counted them.

use std::io;

use bytes::Bytes;

/// Takes the bytes of a title in order. A slow sink slows down reading, as a full player does.
pub trait Sink: Send {
    /// Takes the next bytes.
    fn write(&mut self, bytes: Bytes) -> impl Future<Output = io::Result<()>> + Send;

    /// Waits until all bytes have been written. The default suits a sink that buffers none.
    fn finish(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        std::future::ready(Ok(()))
    }
}

/// Drops the bytes: the player only needs their count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl Sink for Discard {
    async fn write(&mut self, _bytes: Bytes) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps the bytes in memory, for tests and small titles.
impl Sink for Vec<u8> {
    async fn write(&mut self, bytes: Bytes) -> io::Result<()> {
        self.extend_from_slice(&bytes);
        Ok(())
    }
}
