//! Compressed connections: what to ask for, and the stream that compresses.

use crate::Error;
use crate::filter::{Filter, FilteredStream};
use porpoise_protocol::byte_queue::ByteQueue;
use porpoise_protocol::compressed::{Algorithm, Compressor, Decompressor};
use porpoise_protocol::flags::Capabilities;
use porpoise_protocol::frame;
use porpoise_transport::Stream;
use std::io;

/// How a connection may be compressed: `--compression-algorithms` of MySQL's clients.
///
/// Of what both ends permit, the server takes zlib before zstd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressionOptions {
    /// By zlib.
    pub zlib: bool,
    /// By zstd.
    pub zstd: bool,
    /// Not at all, if the server doesn't know what is permitted beside.
    pub uncompressed: bool,
    /// How hard zstd tries, 1 to 22: for what the server sends as well.
    pub zstd_level: u8,
}

impl Default for CompressionOptions {
    /// Not compressed.
    fn default() -> Self {
        Self {
            zlib: false,
            zstd: false,
            uncompressed: true,
            zstd_level: Algorithm::ZSTD_LEVEL_DEFAULT,
        }
    }
}

impl CompressionOptions {
    /// Compressed by what the server knows, if it knows any: `--compress` of MySQL's clients.
    pub fn if_possible() -> Self {
        Self {
            zlib: true,
            zstd: true,
            ..Self::default()
        }
    }

    /// Permits what a list names: `zlib`, `zstd`, `uncompressed`, with commas between them.
    ///
    /// # Errors
    /// [`Error::Compression`] for a list that is empty or names anything else.
    pub fn set_algorithms(&mut self, list: &str) -> Result<(), Error> {
        let mut named = Self {
            zlib: false,
            zstd: false,
            uncompressed: false,
            zstd_level: self.zstd_level,
        };
        for name in list.split(',') {
            match name.trim().to_ascii_lowercase().as_str() {
                "zlib" => named.zlib = true,
                "zstd" => named.zstd = true,
                "uncompressed" => named.uncompressed = true,
                _ => return Err(Error::Compression),
            }
        }
        *self = named;
        Ok(())
    }

    /// What to ask a server for that offers `offered`.
    ///
    /// # Errors
    /// [`Error::Compression`] if it offers nothing that is permitted.
    pub(crate) fn requested(&self, offered: Capabilities) -> Result<Capabilities, Error> {
        let mut asked = Capabilities::empty();
        asked.set(Capabilities::COMPRESS, self.zlib);
        asked.set(Capabilities::ZSTD_COMPRESSION, self.zstd);
        let both = asked & offered;
        if both.is_empty() && !self.uncompressed {
            return Err(Error::Compression);
        }
        Ok(both)
    }
}

/// Compresses what goes over `stream` from now on.
pub(crate) fn start(stream: Box<dyn Stream>, algorithm: Algorithm) -> Box<dyn Stream> {
    let filter = Compression {
        compressor: Compressor::new(algorithm),
        decompressor: Decompressor::new(algorithm),
        next_packet: None,
        frames: Vec::new(),
    };
    Box::new(FilteredStream::new(stream, filter))
}

#[derive(Debug)]
struct Compression {
    compressor: Compressor,
    decompressor: Decompressor,
    /// The number of the packet that would go on with the last one sent, until a reply comes.
    next_packet: Option<u8>,
    frames: Vec<u8>,
}

impl Compression {
    /// Where in whole packets the exchange ends that they begin with: behind them, or before the
    /// next command. A packet of number 0 begins a command, unless it is the 257th of an answer.
    fn exchange(&mut self, packets: &[u8]) -> usize {
        let mut at = 0;
        while let Some(&[a, b, c, number]) = packets[at..].first_chunk::<{ frame::HEADER_BYTES }>()
        {
            let goes_on = self.next_packet == Some(number);
            if number == 0 && !goes_on {
                if at > 0 {
                    return at;
                }
                self.compressor.set_sequence(0);
            } else if self.next_packet.is_none() {
                self.compressor.set_sequence(self.decompressor.sequence());
            }
            self.next_packet = Some(number.wrapping_add(1));
            let length = u32::from_le_bytes([a, b, c, 0]) as usize;
            at = packets.len().min(at + frame::HEADER_BYTES + length);
        }
        packets.len()
    }
}

impl Filter for Compression {
    fn spare(&mut self) -> &mut [u8] {
        self.decompressor.spare()
    }

    fn filled(&mut self, count: usize) {
        self.decompressor.filled(count);
    }

    fn take_in(&mut self, plain: &mut ByteQueue) -> io::Result<bool> {
        let taken = self.decompressor.next_frame_into(plain);
        let taken = taken.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if taken {
            self.next_packet = None;
        }
        Ok(taken)
    }

    fn has_more(&self) -> bool {
        self.decompressor.has_frame()
    }

    fn put_out(&mut self, from: &[u8], outgoing: &mut ByteQueue) -> io::Result<usize> {
        let end = self.exchange(from);
        self.frames.clear();
        self.compressor.compress(&from[..end], &mut self.frames);
        outgoing.feed(&self.frames);
        Ok(end)
    }

    fn encrypts(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use porpoise_protocol::frame::PacketWriter;

    fn compression() -> Compression {
        Compression {
            compressor: Compressor::new(Algorithm::Zlib),
            decompressor: Decompressor::new(Algorithm::Zlib),
            next_packet: None,
            frames: Vec::new(),
        }
    }

    /// The numbers of the frames that packets of these numbers go in.
    fn numbers(filter: &mut Compression, packets: &[u8]) -> Vec<u8> {
        let mut writer = PacketWriter::new();
        for &number in packets {
            writer.set_sequence(number);
            writer.write(b"x");
        }
        let mut outgoing = ByteQueue::default();
        let mut rest = writer.bytes();
        while !rest.is_empty() {
            let taken = filter.put_out(rest, &mut outgoing).unwrap();
            rest = &rest[taken..];
        }
        let mut numbers = Vec::new();
        let mut frames = outgoing.unread();
        while let Some(&[length, _, _, number, ..]) = frames.first_chunk::<7>() {
            numbers.push(number);
            frames = &frames[7 + usize::from(length)..];
        }
        numbers
    }

    fn reply(filter: &mut Compression, number: u8) {
        let frame = [5, 0, 0, number, 0, 0, 0, 1, 0, 0, 1, b'x'];
        filter.spare()[..frame.len()].copy_from_slice(&frame);
        filter.filled(frame.len());
        assert!(filter.take_in(&mut ByteQueue::default()).unwrap());
    }

    #[test]
    fn each_command_has_a_frame_of_its_own_that_begins_with_0() {
        let mut filter = compression();
        assert_eq!(numbers(&mut filter, &[0]), [0]);
        assert_eq!(numbers(&mut filter, &[0, 0, 0]), [0, 0, 0]);
        // Pieces of a long one go on.
        assert_eq!(numbers(&mut filter, &[0, 1, 2]), [0]);
        assert_eq!(numbers(&mut filter, &[3]), [1]);
    }

    #[test]
    fn an_answer_goes_on_where_the_server_ended_however_many_packets_it_has() {
        let mut filter = compression();
        assert_eq!(numbers(&mut filter, &[0]), [0]);
        reply(&mut filter, 1);
        let mut frame = 2u8;
        for packet in 2..600u32 {
            assert_eq!(numbers(&mut filter, &[packet as u8]), [frame]);
            frame = frame.wrapping_add(1);
        }
        reply(&mut filter, frame);
        assert_eq!(numbers(&mut filter, &[0]), [0]);
    }

    #[test]
    fn a_frame_that_is_not_as_announced_breaks_the_stream() {
        let mut filter = compression();
        let frame = [3, 0, 0, 1, 9, 0, 0, b'b', b'a', b'd'];
        filter.spare()[..frame.len()].copy_from_slice(&frame);
        filter.filled(frame.len());
        assert!(filter.has_more());
        let error = filter.take_in(&mut ByteQueue::default()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
