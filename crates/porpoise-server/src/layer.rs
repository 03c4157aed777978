//! What layers of a stream have in common: they take bytes, make others of them, and keep what the
//! stream below doesn't take at once.

use std::io;

use crate::stream::Stream;

/// A layer on the way out.
pub(crate) trait Layer {
    /// How many bytes are changed before the stream below is tried: what waits for a slow client
    /// is no more, changed.
    const CHUNK_BYTES: usize;

    /// Changes bytes, which then wait for the stream below.
    ///
    /// # Errors
    /// If the layer is broken.
    fn encode(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Sends what waits; `WouldBlock` if the stream below doesn't take all of it.
    ///
    /// # Errors
    /// As of a stream.
    fn flush(&mut self) -> io::Result<()>;

    fn below(&self) -> &Stream;

    fn below_mut(&mut self) -> &mut Stream;

    /// Takes as much as the stream below takes, and perhaps a chunk more, which waits.
    ///
    /// # Errors
    /// As of a stream: `WouldBlock` if nothing is taken.
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let mut taken = 0;
        while taken < from.len() {
            match self.flush() {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && taken > 0 => break,
                Err(error) => return Err(error),
            }
            let end = from.len().min(taken.saturating_add(Self::CHUNK_BYTES));
            self.encode(&from[taken..end])?;
            taken = end;
        }
        match self.flush() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }
}
