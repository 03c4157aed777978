//! Packets in a stream of bytes.
//!
//! ```text
//! ┌────────────┬──────────┬─────────────────┐
//! │ length, 3  │ sequence │ payload         │   a payload of 16 MiB - 1 bytes or more goes in pieces: each
//! └────────────┴──────────┴─────────────────┘   full one is followed by another, the last may be empty
//! ```
//!
//! [`PacketReader`] is given bytes as they come and lends out payloads: straight from its buffer
//! when the packet is whole in there, joined in another buffer when it came in pieces.
//! [`split_packet`] does the same without a buffer, for bytes that already lie in memory (a ring).
//! [`PacketWriter`] appends packets to one buffer: a packet's header is reserved, its payload
//! written in place behind it, the length patched at the end.
//!
//! ```
//! use porpoise_protocol::frame::{PacketReader, PacketWriter};
//!
//! let mut writer = PacketWriter::new();
//! writer.packet(|payload| payload.extend_from_slice(b"\x03SELECT 1"));
//!
//! let mut reader = PacketReader::new(64 << 20);
//! reader.feed(writer.bytes());
//! let packet = reader.next_packet()?.expect("a whole packet was fed");
//! assert_eq!((packet.sequence, packet.payload), (0, &b"\x03SELECT 1"[..]));
//! # Ok::<(), porpoise_protocol::Error>(())
//! ```

use crate::Error;
use crate::byte_queue::{ByteQueue, KEEP_BYTES_MAX};

/// The bytes before a payload.
pub const HEADER_BYTES: usize = 4;

/// The longest payload of one piece; one of just this length is followed by another piece.
pub const PIECE_BYTES_MAX: usize = 0xFF_FFFF;

/// `max_allowed_packet` unless set: 64 MiB for MySQL 8.4's server.
pub const MAX_ALLOWED_PACKET_DEFAULT: usize = 64 << 20;

/// The least room [`PacketReader::spare`] offers.
const READ_BYTES_MIN: usize = 8 << 10;

/// One packet, its pieces joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The sequence number of its last piece; the reply begins with the next one.
    pub sequence: u8,
    /// What it carries.
    pub payload: &'a [u8],
}

/// Where in the buffers of a [`PacketReader`] its latest packet lies.
#[derive(Clone, Copy, Debug)]
pub struct PacketRange {
    sequence: u8,
    joined: bool,
    start: usize,
    end: usize,
}

#[derive(Clone, Copy)]
struct Header {
    length: usize,
    sequence: u8,
}

fn header(bytes: &[u8]) -> Option<Header> {
    let &[a, b, c, sequence] = bytes.first_chunk::<HEADER_BYTES>()?;
    let length = u32::from_le_bytes([a, b, c, 0]) as usize;
    Some(Header { length, sequence })
}

/// The first packet in `bytes` and the number of bytes it took, or nothing while it isn't whole.
///
/// Payloads of 16 MiB - 1 and more come in pieces that have to be joined, so they are
/// [`Error::PacketInPieces`] here: feed the bytes to a [`PacketReader`].
#[inline]
pub fn split_packet(
    bytes: &[u8],
    max_allowed_packet: usize,
) -> Result<Option<(Packet<'_>, usize)>, Error> {
    let Some(Header { length, sequence }) = header(bytes) else {
        return Ok(None);
    };
    if length > max_allowed_packet {
        return Err(Error::PacketTooLarge);
    }
    if length == PIECE_BYTES_MAX {
        return Err(Error::PacketInPieces);
    }
    let end = HEADER_BYTES + length;
    Ok(bytes
        .get(HEADER_BYTES..end)
        .map(|payload| (Packet { sequence, payload }, end)))
}

/// Takes bytes as they come, lends out packets as they become whole.
///
/// Bytes come in by [`feed`](Self::feed), or without a copy: read into [`spare`](Self::spare), then
/// tell how many by [`filled`](Self::filled).
#[derive(Debug)]
pub struct PacketReader {
    /// What no packet has taken.
    held: ByteQueue,
    /// The pieces so far of a packet that comes in pieces, and the sequence number its next piece
    /// must have.
    pieces: Vec<u8>,
    next_piece: Option<u8>,
    /// Whether `pieces` was lent out by the last call.
    joined_taken: bool,
    max_allowed_packet: usize,
}

impl Default for PacketReader {
    /// A reader with MySQL's own limit.
    fn default() -> Self {
        Self::new(MAX_ALLOWED_PACKET_DEFAULT)
    }
}

impl PacketReader {
    /// A reader that refuses payloads of more than `max_allowed_packet` bytes.
    pub fn new(max_allowed_packet: usize) -> Self {
        Self {
            held: ByteQueue::default(),
            pieces: Vec::new(),
            next_piece: None,
            joined_taken: false,
            max_allowed_packet,
        }
    }

    /// Bytes that it holds memory for.
    pub fn capacity(&self) -> usize {
        self.held.capacity() + self.pieces.capacity()
    }

    /// Changes the limit, for packets not yet lent out.
    pub fn set_max_allowed_packet(&mut self, max_allowed_packet: usize) {
        self.max_allowed_packet = max_allowed_packet;
    }

    /// Room for the next read: what the packet under way still needs, at most as much as it has,
    /// and some kilobytes at least.
    pub fn spare(&mut self) -> &mut [u8] {
        let held = self.held.unread();
        let wanted = match header(held) {
            Some(Header { length, .. }) if length <= self.max_allowed_packet => {
                // A header alone gets no memory: room doubles with the bytes that really come.
                (HEADER_BYTES + length)
                    .saturating_sub(held.len())
                    .min(held.len())
            }
            _ => 0,
        }
        .max(READ_BYTES_MIN);
        self.held.room(wanted)
    }

    /// What no packet has taken.
    pub(crate) fn held(&mut self) -> &mut ByteQueue {
        &mut self.held
    }

    /// The first `count` bytes of [`spare`](Self::spare) were filled.
    pub fn filled(&mut self, count: usize) {
        self.held.filled(count);
    }

    /// Copies `bytes` in.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.held.feed(bytes);
    }

    /// Bytes that came in and that no packet has taken, as when a stream changes to TLS or to a
    /// ring.
    pub fn unread(&self) -> &[u8] {
        self.held.unread()
    }

    /// Whether a packet has begun and isn't whole.
    pub fn is_mid_packet(&self) -> bool {
        !self.held.unread().is_empty() || self.next_piece.is_some()
    }

    /// Whether a packet has come, or the first piece of one that comes in pieces; or what is no
    /// packet, which taking it tells.
    #[inline]
    pub fn has_packet(&self) -> bool {
        match header(self.unread()) {
            None => false,
            Some(Header { length, .. }) => {
                length > self.max_allowed_packet || self.unread().len() >= HEADER_BYTES + length
            }
        }
    }

    /// Whether what came in ends within a packet, or between two pieces of one. It looks at every
    /// packet that wasn't taken.
    pub(crate) fn ends_mid_packet(&self) -> bool {
        let mut mid_packet = self.next_piece.is_some();
        let mut rest = self.held.unread();
        while let Some(Header { length, .. }) = header(rest) {
            match rest.get(HEADER_BYTES + length..) {
                Some(behind) => rest = behind,
                None => return true,
            }
            mid_packet = length == PIECE_BYTES_MAX;
        }
        mid_packet || !rest.is_empty()
    }

    /// The number of a reply to the packet, or the piece of one, that comes next: where it was refused,
    /// of the error. 1 as long as its header hasn't come.
    pub fn reply_sequence(&self) -> u8 {
        header(self.held.unread()).map_or(1, |next| next.sequence.wrapping_add(1))
    }

    /// Forgets what came in.
    pub fn clear(&mut self) {
        self.held.clear();
        self.pieces.clear();
        self.next_piece = None;
        self.joined_taken = false;
    }

    /// The next packet, or nothing until more bytes have come.
    ///
    /// Errors are [`Error::PacketTooLarge`] and, between the pieces of one packet,
    /// [`Error::PacketsOutOfOrder`]; the stream is of no use after either.
    #[inline]
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Error> {
        let range = self.take_packet()?;
        Ok(range.map(|range| self.packet_at(range)))
    }

    /// Takes the next packet as [`next_packet`](Self::next_packet) does, but returns only where it
    /// lies, so that this reader isn't borrowed meanwhile.
    #[inline]
    pub fn take_packet(&mut self) -> Result<Option<PacketRange>, Error> {
        if self.joined_taken || self.next_piece.is_some() {
            return self.take_joined();
        }
        match split_packet(self.held.unread(), self.max_allowed_packet) {
            Ok(Some((Packet { sequence, .. }, used))) => {
                let range = PacketRange {
                    sequence,
                    joined: false,
                    start: self.held.start() + HEADER_BYTES,
                    end: self.held.start() + used,
                };
                self.held.take(used);
                Ok(Some(range))
            }
            Ok(None) => Ok(None),
            Err(Error::PacketInPieces) => self.take_joined(),
            Err(error) => Err(error),
        }
    }

    /// The packet at `range`, which the last [`take_packet`](Self::take_packet) returned; an older
    /// range gives other bytes.
    #[inline]
    pub fn packet_at(&self, range: PacketRange) -> Packet<'_> {
        let from = if range.joined {
            &self.pieces
        } else {
            self.held.bytes()
        };
        Packet {
            sequence: range.sequence,
            payload: from.get(range.start..range.end).unwrap_or_default(),
        }
    }

    fn take_joined(&mut self) -> Result<Option<PacketRange>, Error> {
        if self.joined_taken {
            self.joined_taken = false;
            self.pieces = Vec::new();
            return self.take_packet();
        }
        while let Some(Header { length, sequence }) = header(self.held.unread()) {
            if self.pieces.len() + length > self.max_allowed_packet {
                return Err(Error::PacketTooLarge);
            }
            if self.next_piece.is_some_and(|expected| expected != sequence) {
                return Err(Error::PacketsOutOfOrder);
            }
            let piece = HEADER_BYTES..HEADER_BYTES + length;
            let Some(piece) = self.held.unread().get(piece) else {
                return Ok(None);
            };
            self.pieces.extend_from_slice(piece);
            self.held.take(HEADER_BYTES + length);
            if length < PIECE_BYTES_MAX {
                self.next_piece = None;
                self.joined_taken = true;
                return Ok(Some(PacketRange {
                    sequence,
                    joined: true,
                    start: 0,
                    end: self.pieces.len(),
                }));
            }
            self.next_piece = Some(sequence.wrapping_add(1));
        }
        Ok(None)
    }
}

/// Appends packets to one buffer, numbering them.
#[derive(Debug, Default)]
pub struct PacketWriter {
    out: Vec<u8>,
    sequence: u8,
}

/// A place between two packets to come back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    length: usize,
    sequence: u8,
}

impl PacketWriter {
    /// An empty buffer; the first packet is number 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends to what `out` holds; the next packet is number `sequence`.
    pub fn with_buffer(out: Vec<u8>, sequence: u8) -> Self {
        Self { out, sequence }
    }

    /// The number of the next packet.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Numbers the next packet: a reply begins one after the command's last piece.
    pub fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// Every packet so far, ready to send.
    pub fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// How many bytes there are to send.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Empties the buffer, as after it was sent; the numbering goes on.
    pub fn clear(&mut self) {
        self.out.clear();
        if self.out.capacity() > KEEP_BYTES_MAX {
            self.out = Vec::new();
        }
    }

    /// Drops the first `count` bytes, as after a write that took only those.
    pub fn consume(&mut self, count: usize) {
        if count >= self.out.len() {
            self.clear();
        } else {
            self.out.drain(..count);
        }
    }

    /// Takes the buffer, leaving an empty one; the numbering goes on.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// A place to [roll back](Self::rollback) to.
    pub fn mark(&self) -> Mark {
        Mark {
            length: self.out.len(),
            sequence: self.sequence,
        }
    }

    /// Takes back every packet written since `mark`; nothing may have been sent or cleared since.
    pub fn rollback(&mut self, mark: Mark) {
        self.out.truncate(mark.length);
        self.sequence = mark.sequence;
    }

    /// Writes one packet: `payload` appends to the buffer it is given and leaves what is in it
    /// alone.
    #[inline]
    pub fn packet<R>(&mut self, payload: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let start = self.begin();
        let result = payload(&mut self.out);
        self.end(start);
        result
    }

    /// Writes one packet whose payload is at hand.
    pub fn write(&mut self, payload: &[u8]) {
        self.packet(|out| out.extend_from_slice(payload));
    }

    /// Reserves a header. The packet is what is appended to [`open`](Self::open) until
    /// [`end`](Self::end).
    #[inline]
    pub(crate) fn begin(&mut self) -> usize {
        let start = self.out.len();
        self.out.extend_from_slice(&[0; HEADER_BYTES]);
        start
    }

    /// The buffer, while a packet is open.
    #[inline]
    pub(crate) fn open(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Forgets the packet begun at `start`.
    pub(crate) fn abandon(&mut self, start: usize) {
        self.out.truncate(start);
    }

    /// Closes the packet begun at `start`.
    #[inline]
    pub(crate) fn end(&mut self, start: usize) {
        let length = self.out.len() - start - HEADER_BYTES;
        if length >= PIECE_BYTES_MAX {
            self.end_in_pieces(start, length);
        } else {
            self.patch(start, length);
        }
    }

    #[inline]
    fn patch(&mut self, at: usize, length: usize) {
        let [a, b, c, _] = (length as u32).to_le_bytes();
        self.out[at..at + HEADER_BYTES].copy_from_slice(&[a, b, c, self.sequence]);
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Moves the pieces after the first apart, last one first, to let a header in before each.
    #[cold]
    fn end_in_pieces(&mut self, start: usize, length: usize) {
        let full = length / PIECE_BYTES_MAX;
        self.out.resize(self.out.len() + full * HEADER_BYTES, 0);
        let payload = start + HEADER_BYTES;
        for piece in (1..=full).rev() {
            let from = payload + piece * PIECE_BYTES_MAX;
            let until = payload + length.min((piece + 1) * PIECE_BYTES_MAX);
            self.out
                .copy_within(from..until, from + piece * HEADER_BYTES);
        }
        for piece in 0..=full {
            let at = start + piece * (HEADER_BYTES + PIECE_BYTES_MAX);
            self.patch(at, PIECE_BYTES_MAX.min(length - piece * PIECE_BYTES_MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at % 251) as u8).collect()
    }

    #[test]
    fn a_packet_is_lent_when_its_last_byte_is_in() {
        let mut writer = PacketWriter::new();
        writer.write(b"one");
        writer.write(b"");
        writer.write(b"three");
        assert_eq!(&writer.bytes()[..7], b"\x03\0\0\0one");
        let mut reader = PacketReader::new(1 << 20);
        let mut seen = Vec::new();
        for byte in writer.bytes() {
            reader.feed(std::slice::from_ref(byte));
            let before = seen.len();
            let had_one = reader.has_packet();
            while let Some(packet) = reader.next_packet().unwrap() {
                seen.push((packet.sequence, packet.payload.to_vec()));
            }
            assert_eq!(had_one, seen.len() > before);
        }
        assert_eq!(
            seen,
            [(0, b"one".to_vec()), (1, vec![]), (2, b"three".to_vec())]
        );
        assert!(!reader.is_mid_packet());
    }

    #[test]
    fn payloads_around_16_mib_are_split_and_joined() {
        for length in [
            PIECE_BYTES_MAX - 1,
            PIECE_BYTES_MAX,
            PIECE_BYTES_MAX + 1,
            2 * PIECE_BYTES_MAX,
            2 * PIECE_BYTES_MAX + 5,
        ] {
            let payload = pattern(length);
            let mut writer = PacketWriter::with_buffer(Vec::new(), 255);
            writer.write(&payload);
            writer.write(b"next");
            assert_eq!(
                writer.len(),
                length + 4 * (length / PIECE_BYTES_MAX + 1) + 8
            );
            let mut reader = PacketReader::new(64 << 20);
            for chunk in writer.bytes().chunks(5 << 20) {
                reader.feed(chunk);
            }
            let last = 255u8.wrapping_add((length / PIECE_BYTES_MAX) as u8);
            let packet = reader.next_packet().unwrap().unwrap();
            assert_eq!(packet.sequence, last);
            assert!(packet.payload == payload, "length {length}");
            let packet = reader.next_packet().unwrap().unwrap();
            assert_eq!(
                (packet.sequence, packet.payload),
                (last.wrapping_add(1), &b"next"[..])
            );
            assert!(reader.next_packet().unwrap().is_none());
        }
    }

    #[test]
    fn pieces_must_be_numbered_one_after_another() {
        let mut writer = PacketWriter::new();
        writer.write(&pattern(PIECE_BYTES_MAX + 3));
        let mut bytes = writer.take();
        bytes[HEADER_BYTES + PIECE_BYTES_MAX + 3] = 7;
        let mut reader = PacketReader::new(64 << 20);
        reader.feed(&bytes);
        assert_eq!(reader.next_packet(), Err(Error::PacketsOutOfOrder));
    }

    #[test]
    fn a_payload_over_the_limit_is_refused_by_its_header_alone() {
        let mut reader = PacketReader::new(1024);
        reader.feed(&[0x01, 0x04, 0x00, 0x00]);
        assert_eq!(reader.next_packet(), Err(Error::PacketTooLarge));
        let mut reader = PacketReader::new(1024);
        reader.feed(&[0x00, 0x04, 0x00, 0x00]);
        assert_eq!(reader.next_packet(), Ok(None));
        assert!(reader.spare().len() >= READ_BYTES_MIN);
    }

    #[test]
    fn joined_pieces_over_the_limit_are_refused() {
        let mut writer = PacketWriter::new();
        writer.write(&pattern(PIECE_BYTES_MAX + 100));
        let mut reader = PacketReader::new(PIECE_BYTES_MAX + 99);
        reader.feed(writer.bytes());
        assert_eq!(reader.next_packet(), Err(Error::PacketTooLarge));
        assert_eq!(reader.reply_sequence(), 2);
    }

    #[test]
    fn a_reply_can_be_taken_back_to_a_mark() {
        let mut writer = PacketWriter::with_buffer(Vec::new(), 1);
        writer.write(b"kept");
        let mark = writer.mark();
        writer.write(b"dropped");
        writer.rollback(mark);
        writer.write(b"error");
        assert_eq!(writer.bytes(), b"\x04\0\0\x01kept\x05\0\0\x02error");
    }

    proptest::proptest! {
        #[test]
        fn any_packets_survive_any_cutting(
            payloads in proptest::collection::vec(proptest::collection::vec(proptest::num::u8::ANY, 0..300), 0..8),
            cut in 1usize..64,
        ) {
            let mut writer = PacketWriter::new();
            for payload in &payloads {
                writer.write(payload);
            }
            let mut reader = PacketReader::new(1 << 20);
            let mut seen = Vec::new();
            for chunk in writer.bytes().chunks(cut) {
                let spare = reader.spare();
                spare[..chunk.len()].copy_from_slice(chunk);
                reader.filled(chunk.len());
                while let Some(packet) = reader.next_packet().unwrap() {
                    seen.push(packet.payload.to_vec());
                }
            }
            proptest::prop_assert_eq!(seen, payloads);
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..2000)) {
            let mut reader = PacketReader::new(1 << 20);
            reader.feed(&bytes);
            while let Ok(Some(_)) = reader.next_packet() {}
            reader.spare();
        }
    }
}
