//! The buffers with which a thread serves connections.

use porpoise_protocol::frame::{PacketReader, PacketWriter};

/// What a thread needs to serve any connection, one at a time: a buffer for each direction. A
/// connection that waits for its next command has no buffers of its own.
pub(crate) struct IoBuffers {
    pub reader: PacketReader,
    pub writer: PacketWriter,
    /// More connections are ready: a small reply waits for theirs.
    pub holds_replies: bool,
}

impl Default for IoBuffers {
    fn default() -> IoBuffers {
        IoBuffers {
            reader: PacketReader::new(0),
            writer: PacketWriter::new(),
            holds_replies: false,
        }
    }
}

impl IoBuffers {
    /// Frees the memory that a large statement took.
    pub fn reset(&mut self) {
        *self = IoBuffers::default();
    }
}
