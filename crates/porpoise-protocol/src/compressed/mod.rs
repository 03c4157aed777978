//! Packets in compressed frames: what a connection carries after a log-in with COMPRESS or
//! ZSTD_COMPRESSION.
//!
//! ```text
//! ┌───────────┬──────────┬─────────────────┬─────────┐
//! │ length, 3 │ sequence │ uncompressed, 3 │ payload │   a length of 0 uncompressed: the payload is as it was
//! └───────────┴──────────┴─────────────────┴─────────┘
//! ```
//!
//! What a frame's payload holds is a part of the stream of packets (see [`frame`](crate::frame)):
//! several packets, or a part of one that goes on in the next frame. Frames have numbers of their
//! own, which go on from one end to the other as those of packets do: a command's first frame is
//! number 0, the reply's first frame is one more than the command's last.
//!
//! [`Compressor`] appends the frames of what a [`PacketWriter`](crate::frame::PacketWriter) holds to
//! a buffer. [`Decompressor`] is given bytes as they come and puts what each frame held into a
//! [`PacketReader`], one frame at a time, so that of what nobody
//! asked for yet, a reader holds the rest of one frame at most.
//!
//! Each frame is compressed by itself, so nothing of a connection's past is needed to read it, and
//! what compressing needs (some hundred kilobytes) belongs to the thread, not to the connection.
//!
//! ```
//! use porpoise_protocol::compressed::{Algorithm, Compressor, Decompressor};
//! use porpoise_protocol::frame::{PacketReader, PacketWriter};
//!
//! let mut writer = PacketWriter::new();
//! writer.write(&[b'a'; 1000]);
//! let mut frames = Vec::new();
//! Compressor::new(Algorithm::Zlib).compress(writer.bytes(), &mut frames);
//! assert!(frames.len() < 100);
//!
//! let mut decompressor = Decompressor::new(Algorithm::Zlib);
//! let mut reader = PacketReader::new(64 << 20);
//! decompressor.feed(&frames);
//! while !reader.has_packet() && decompressor.next_frame(&mut reader)? {}
//! let packet = reader.next_packet()?.expect("a whole packet came");
//! assert_eq!((packet.sequence, packet.payload), (0, &[b'a'; 1000][..]));
//! # Ok::<(), porpoise_protocol::Error>(())
//! ```

mod codec;

use crate::Error;
use crate::byte_queue::ByteQueue;
use crate::flags::Capabilities;
use crate::frame::{HEADER_BYTES, PIECE_BYTES_MAX, PacketReader};
use codec::CODECS;

/// The bytes before a frame's payload.
pub const FRAME_HEADER_BYTES: usize = 7;

/// What is shorter goes as it is (MySQL's MIN_COMPRESS_LENGTH).
pub const COMPRESS_BYTES_MIN: usize = 50;

/// The most that this end puts into one frame. The protocol lets a frame hold 16 MiB - 1, which gains
/// little: zlib looks back 32 KiB, and zstd's memory at its highest levels grows with the frame.
const FRAME_BYTES_MAX: usize = 128 << 10;

/// The least room [`Decompressor::spare`] offers.
const READ_BYTES_MIN: usize = 16 << 10;

/// How frames are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// zlib, at its usual level, 6: no client can ask for another.
    Zlib,
    /// zstd, at a level from 1 to 22; others are taken for the nearest.
    Zstd {
        /// The level.
        level: u8,
    },
}

impl Algorithm {
    /// zstd's level unless a client asks for another.
    pub const ZSTD_LEVEL_DEFAULT: u8 = 3;

    /// What `protocol_compression_algorithms` and the status variable `Compression_algorithm` call
    /// it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zlib => "zlib",
            Self::Zstd { .. } => "zstd",
        }
    }

    /// What both ends take after a log-in with `capabilities`, those that both have; none for packets
    /// without frames. With both flags it is zlib (MySQL's documentation of the protocol,
    /// "Compression").
    pub fn agreed(capabilities: Capabilities, zstd_level: Option<u8>) -> Option<Self> {
        if capabilities.contains(Capabilities::COMPRESS) {
            Some(Self::Zlib)
        } else if capabilities.contains(Capabilities::ZSTD_COMPRESSION) {
            let level = zstd_level.unwrap_or(Self::ZSTD_LEVEL_DEFAULT);
            Some(Self::Zstd { level })
        } else {
            None
        }
    }
}

/// Puts packets into frames.
#[derive(Debug)]
pub struct Compressor {
    algorithm: Algorithm,
    sequence: u8,
}

impl Compressor {
    /// Its first frame is number 0.
    pub fn new(algorithm: Algorithm) -> Self {
        Self {
            algorithm,
            sequence: 0,
        }
    }

    /// How it compresses.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The number of the next frame.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Numbers the next frame: a command begins with 0, a reply with what
    /// [`Decompressor::sequence`] tells.
    pub fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// Appends `packets` in frames to `out`. They may begin and end anywhere in a packet.
    pub fn compress(&mut self, packets: &[u8], out: &mut Vec<u8>) {
        for content in packets.chunks(FRAME_BYTES_MAX) {
            self.frame(content, out);
        }
    }

    /// Appends whole packets in frames to `out`. A frame ends with a packet, and a long packet has
    /// one to itself: some clients (Connector/Python) take a packet out of two frames at most, and
    /// no header out of two.
    pub fn compress_packets(&mut self, mut packets: &[u8], out: &mut Vec<u8>) {
        while !packets.is_empty() {
            let (some, rest) = packets.split_at(whole_packets(packets));
            for content in some.chunks(PIECE_BYTES_MAX) {
                self.frame(content, out);
            }
            packets = rest;
        }
    }

    fn frame(&mut self, content: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
        let shrank = content.len() >= COMPRESS_BYTES_MIN
            && CODECS.with_borrow_mut(|codecs| codecs.compress(self.algorithm, content, out));
        if !shrank {
            out.truncate(start + FRAME_HEADER_BYTES);
            out.extend_from_slice(content);
        }
        let length = out.len() - start - FRAME_HEADER_BYTES;
        let [a, b, c, _] = (length as u32).to_le_bytes();
        let uncompressed = if shrank { content.len() } else { 0 };
        let [d, e, f, _] = (uncompressed as u32).to_le_bytes();
        let header = [a, b, c, self.sequence, d, e, f];
        out[start..start + FRAME_HEADER_BYTES].copy_from_slice(&header);
        self.sequence = self.sequence.wrapping_add(1);
    }
}

/// How many of the bytes are the packets of one frame: as many as it holds, one at least.
fn whole_packets(packets: &[u8]) -> usize {
    if packets.len() <= FRAME_BYTES_MAX {
        return packets.len();
    }
    let mut end = 0;
    while let Some(&[a, b, c, _]) = packets[end..].first_chunk::<HEADER_BYTES>() {
        let next = end + HEADER_BYTES + u32::from_le_bytes([a, b, c, 0]) as usize;
        if next > packets.len() || end > 0 && next > FRAME_BYTES_MAX {
            break;
        }
        end = next;
    }
    match end {
        0 => packets.len(),
        end => end,
    }
}

/// Takes frames out of bytes as they come, and packets out of frames.
///
/// Bytes come in by [`feed`](Self::feed), or without a copy: read into [`spare`](Self::spare), then
/// tell how many by [`filled`](Self::filled).
#[derive(Debug)]
pub struct Decompressor {
    algorithm: Algorithm,
    held: ByteQueue,
    /// The number the next frame has, if it goes on where the last ended.
    sequence: u8,
}

#[derive(Clone, Copy)]
struct FrameHeader {
    length: usize,
    sequence: u8,
    uncompressed: usize,
}

fn frame_header(bytes: &[u8]) -> Option<FrameHeader> {
    let &[a, b, c, sequence, d, e, f] = bytes.first_chunk::<FRAME_HEADER_BYTES>()?;
    Some(FrameHeader {
        length: u32::from_le_bytes([a, b, c, 0]) as usize,
        sequence,
        uncompressed: u32::from_le_bytes([d, e, f, 0]) as usize,
    })
}

impl Decompressor {
    /// For a stream of frames from their beginning.
    pub fn new(algorithm: Algorithm) -> Self {
        Self {
            algorithm,
            held: ByteQueue::default(),
            sequence: 0,
        }
    }

    /// Bytes that it holds memory for.
    pub fn capacity(&self) -> usize {
        self.held.capacity()
    }

    /// One more than the number of the last frame: the number with which the other direction
    /// answers it.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Room for the next read: what the frame under way still needs, at most as much as came of it,
    /// and some kilobytes at least.
    pub fn spare(&mut self) -> &mut [u8] {
        let held = self.held.unread();
        let missing = match frame_header(held) {
            Some(header) => (FRAME_HEADER_BYTES + header.length).saturating_sub(held.len()),
            None => 0,
        };
        let wanted = missing.min(held.len()).max(READ_BYTES_MIN);
        self.held.room(wanted)
    }

    /// The first `count` bytes of [`spare`](Self::spare) were filled.
    pub fn filled(&mut self, count: usize) {
        self.held.filled(count);
    }

    /// Copies `bytes` in: those behind the log-in's last packet in its reader, for one.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.held.feed(bytes);
    }

    /// Whether a frame has begun whose packets weren't taken.
    pub fn is_mid_frame(&self) -> bool {
        !self.held.unread().is_empty()
    }

    /// Whether a whole frame is there to be taken.
    pub fn has_frame(&self) -> bool {
        let held = self.held.unread();
        frame_header(held).is_some_and(|header| held.len() >= FRAME_HEADER_BYTES + header.length)
    }

    /// Puts what the next frame held into `reader`; false until a whole frame has come. Call it when
    /// `reader` has no packet, so that frames that nobody waits for stay compressed.
    ///
    /// Errors are [`Error::Uncompress`] for what isn't compressed as it should be, or isn't as long
    /// as announced, and [`Error::PacketsOutOfOrder`] within one packet; the stream is of no use
    /// after either.
    pub fn next_frame(&mut self, reader: &mut PacketReader) -> Result<bool, Error> {
        // Between packets a new command or reply may begin. A client that sends many commands at
        // once numbers each of them anew.
        let goes_on =
            frame_header(self.held.unread()).is_none_or(|header| header.sequence == self.sequence);
        if !goes_on && reader.ends_mid_packet() {
            return Err(Error::PacketsOutOfOrder);
        }
        self.next_frame_into(reader.held())
    }

    /// As [`next_frame`](Self::next_frame), for who doesn't look at packets, nor at the numbers of
    /// frames.
    pub fn next_frame_into(&mut self, queue: &mut ByteQueue) -> Result<bool, Error> {
        let held = self.held.unread();
        let Some(header) = frame_header(held) else {
            return Ok(false);
        };
        let end = FRAME_HEADER_BYTES + header.length;
        let Some(payload) = held.get(FRAME_HEADER_BYTES..end) else {
            return Ok(false);
        };
        if header.uncompressed == 0 {
            queue.feed(payload);
        } else {
            let room = &mut queue.room(header.uncompressed)[..header.uncompressed];
            CODECS
                .with_borrow_mut(|codecs| codecs.decompress(self.algorithm, payload, room))
                .ok_or(Error::Uncompress)?;
            queue.filled(header.uncompressed);
        }
        self.held.take(end);
        self.sequence = header.sequence.wrapping_add(1);
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
