//! A connection whose packets go in compressed frames, after its login.
//!
//! A frame is taken apart only when the packets of the one before are done with, straight into the
//! connection's reader: a client that sends many costs no more than the bytes that it sent.

use std::io;

use porpoise_protocol::compressed::{Algorithm, Compressor, Decompressor};
use porpoise_protocol::frame::PacketReader;

use crate::layer::Layer;
use crate::stream::{Received, Stream};

#[derive(Debug)]
pub(crate) struct CompressedStream {
    below: Stream,
    compressor: Compressor,
    decompressor: Decompressor,
    /// The last read took all that the stream below had.
    drained: bool,
    /// Frames that the stream below hasn't taken.
    pending: Vec<u8>,
    /// How many bytes of them it has.
    sent: usize,
}

impl CompressedStream {
    /// Over a stream from which `received` has come already. What is `unsent` goes before the first
    /// frame, as it is.
    pub fn new(
        below: Stream,
        algorithm: Algorithm,
        received: &[u8],
        unsent: Vec<u8>,
    ) -> CompressedStream {
        let mut decompressor = Decompressor::new(algorithm);
        decompressor.feed(received);
        CompressedStream {
            below,
            compressor: Compressor::new(algorithm),
            decompressor,
            drained: false,
            pending: unsent,
            sent: 0,
        }
    }

    /// Reads a frame into a reader that has no packet; `WouldBlock` when none has come.
    pub fn receive(&mut self, reader: &mut PacketReader) -> io::Result<Received> {
        let mut bytes = 0;
        if !self.decompressor.has_frame() {
            let room = self.decompressor.spare();
            let room_bytes = room.len();
            bytes = self.below.read(room)?;
            if bytes == 0 {
                return Ok(Received::End);
            }
            self.decompressor.filled(bytes);
            self.drained = bytes < room_bytes;
        }
        let took_frame = self.decompressor.next_frame(reader);
        if took_frame.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))? {
            // The reply's frames are numbered from there.
            self.compressor.set_sequence(self.decompressor.sequence());
        }
        Ok(Received::Bytes {
            count: bytes,
            drained: self.drained && !self.decompressor.has_frame(),
        })
    }

    /// A frame is here, of which the stream below doesn't tell.
    pub fn has_frame(&self) -> bool {
        self.decompressor.has_frame()
    }

    /// Frames wait for room in the stream below.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty() || self.below.has_pending()
    }
}

impl Layer for CompressedStream {
    // Whole packets are framed better than parts of them, and what waits is less than it was.
    const CHUNK_BYTES: usize = usize::MAX;

    fn encode(&mut self, packets: &[u8]) -> io::Result<()> {
        self.compressor.compress_packets(packets, &mut self.pending);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.sent < self.pending.len() {
            self.sent += self.below.write(&self.pending[self.sent..])?;
        }
        // A connection that waits for its next command has no buffers.
        self.pending = Vec::new();
        self.sent = 0;
        self.below.flush_pending()
    }

    fn below(&self) -> &Stream {
        &self.below
    }

    fn below_mut(&mut self) -> &mut Stream {
        &mut self.below
    }
}
