//! The file of LOAD DATA LOCAL INFILE, as the client sends it.
//!
//! Source: MySQL's protocol documentation, "LOCAL INFILE Request".

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use porpoise_protocol::frame::PacketReader;

use crate::send_buffer::SendBuffer;
use crate::stream::Received;

/// The longest packet that a client may send of a file: the most that `max_allowed_packet` can be.
const FILE_PACKET_BYTES_MAX: usize = 1 << 30;

/// A file that was received.
pub(crate) struct ReceivedFile {
    pub content: Vec<u8>,
    /// The number of the packet that ended it.
    pub sequence: u8,
}

/// Receives the packets of a file that the client was asked for, up to the empty one that ends it,
/// waiting on this thread, `timeout` at most without any progress.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] for what isn't such packets, [`io::ErrorKind::UnexpectedEof`] if
/// the client is gone, [`io::ErrorKind::TimedOut`], [`io::ErrorKind::Interrupted`] if the statement
/// was killed.
pub(crate) fn receive_file(
    connection: &mut SendBuffer,
    timeout: Duration,
) -> io::Result<ReceivedFile> {
    let mut reader = PacketReader::new(FILE_PACKET_BYTES_MAX);
    let mut content = Vec::new();
    let mut last_progress = Instant::now();
    loop {
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidData);
        while let Some(packet) = reader.next_packet().map_err(invalid)? {
            if packet.payload.is_empty() {
                let sequence = packet.sequence;
                // A client that sends more before it has the reply can't be followed.
                return match reader.is_mid_packet() {
                    true => Err(io::ErrorKind::InvalidData.into()),
                    false => Ok(ReceivedFile { content, sequence }),
                };
            }
            content.extend_from_slice(packet.payload);
        }
        match connection.stream.receive(&mut reader) {
            Ok(Received::End) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(Received::Bytes { count, .. }) => {
                let received = &connection.counters().bytes_received;
                received.fetch_add(count as u64, Ordering::Relaxed);
                last_progress = Instant::now();
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                connection.wait(false, timeout)?;
                connection.check_interrupt()?;
                if last_progress.elapsed() >= timeout {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            Err(error) => return Err(error),
        }
    }
}
