//! Bytes that came in and weren't taken yet.
//!
//! ```text
//! ┌───────┬─────────────┬───────────────┐
//! │ taken │ unread      │ room          │
//! └───────┴─────────────┴───────────────┘
//!         start         end             buffer.len()
//! ```

/// Buffers that grew beyond this are given back once they are empty.
pub(crate) const KEEP_BYTES_MAX: usize = 1 << 20;

/// One buffer, filled at its end and taken from at its beginning.
#[derive(Debug, Default)]
pub struct ByteQueue {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl ByteQueue {
    /// Bytes that it holds memory for.
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// How many bytes have been taken since the buffer began: places in [`bytes`](Self::bytes)
    /// count from there.
    #[inline]
    pub fn start(&self) -> usize {
        self.start
    }

    /// The buffer, with what was taken from it. Places in it hold until [`room`](Self::room) or
    /// [`feed`](Self::feed).
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// What wasn't taken.
    #[inline]
    pub fn unread(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Takes the first `count` bytes.
    #[inline]
    pub fn take(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.end, "more than there is");
    }

    /// All the room behind what is unread, at least `wanted` bytes.
    pub fn room(&mut self, wanted: usize) -> &mut [u8] {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            if self.buffer.len() > KEEP_BYTES_MAX && wanted <= KEEP_BYTES_MAX {
                self.buffer = Vec::new();
            }
        }
        if self.buffer.len() - self.end < wanted {
            self.make_room(wanted);
        }
        &mut self.buffer[self.end..]
    }

    fn make_room(&mut self, wanted: usize) {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < wanted {
            self.buffer.resize(self.end + wanted, 0);
        }
    }

    /// Whether nothing is unread.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Takes what has room in `into`; how many bytes that is.
    #[inline]
    pub fn take_into(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.end - self.start);
        into[..count].copy_from_slice(&self.unread()[..count]);
        self.take(count);
        count
    }

    /// The first `count` bytes of the room were filled.
    pub fn filled(&mut self, count: usize) {
        assert!(
            count <= self.buffer.len() - self.end,
            "more than the room there was"
        );
        self.end += count;
    }

    /// Copies `bytes` in.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }

    /// Forgets what is unread.
    pub fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
    }
}
