//! The few shapes every packet is made of: little-endian integers, length-encoded integers and
//! strings, strings that end in a zero byte.
//!
//! [`Fields`] takes them from bytes that the other end wrote: a field that isn't there is an
//! [`Error::Malformed`], never a panic. [`PutFields`] appends them to a buffer of ours.
//!
//! ```text
//! length-encoded integer     < 251   the byte itself
//!                            0xFB    NULL, in text rows only
//!                            0xFC    2 bytes follow
//!                            0xFD    3 bytes follow
//!                            0xFE    8 bytes follow
//! ```

use crate::Error;

/// Marks a NULL where a length-encoded string of a text row would begin.
pub const NULL_MARK: u8 = 0xFB;

/// A cursor over the fields of one payload, all borrowed from it.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Reads `payload` from its beginning.
    pub fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    /// What no field has taken yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Takes all that is left.
    pub fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (head, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(Error::Malformed("a field is cut short"))?;
        self.rest = rest;
        Ok(*head)
    }

    /// Takes `length` bytes.
    #[inline]
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (head, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(Error::Malformed("a field is cut short"))?;
        self.rest = rest;
        Ok(head)
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.array::<1>()?[0])
    }

    /// Two bytes.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Error> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Three bytes.
    #[inline]
    pub fn u24(&mut self) -> Result<u32, Error> {
        let [a, b, c] = self.array()?;
        Ok(u32::from_le_bytes([a, b, c, 0]))
    }

    /// Four bytes.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A length-encoded integer. The marks of NULL (0xFB) and of an error packet (0xFF) are
    /// malformed here.
    #[inline]
    pub fn lenenc(&mut self) -> Result<u64, Error> {
        match self.u8()? {
            0xFC => Ok(u64::from(self.u16()?)),
            0xFD => Ok(u64::from(self.u24()?)),
            0xFE => self.u64(),
            NULL_MARK | 0xFF => Err(Error::Malformed("not a length-encoded integer")),
            small => Ok(u64::from(small)),
        }
    }

    /// A length-encoded string.
    #[inline]
    pub fn lenenc_bytes(&mut self) -> Result<&'a [u8], Error> {
        let length = self.lenenc()?;
        self.bytes(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// A length-encoded string or the mark of NULL.
    #[inline]
    pub fn nullable_bytes(&mut self) -> Result<Option<&'a [u8]>, Error> {
        if let [NULL_MARK, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(None);
        }
        self.lenenc_bytes().map(Some)
    }

    /// A string that ends in a zero byte, which is taken but not returned.
    pub fn nul_bytes(&mut self) -> Result<&'a [u8], Error> {
        let length = self
            .rest
            .iter()
            .position(|&byte| byte == 0)
            .ok_or(Error::Malformed("a string has no end"))?;
        let head = self.bytes(length)?;
        self.bytes(1)?;
        Ok(head)
    }

    /// A string that ends in a zero byte or with the payload.
    pub fn nul_bytes_or_rest(&mut self) -> &'a [u8] {
        self.nul_bytes().unwrap_or_else(|_| self.take_rest())
    }
}

/// Appends fields to a buffer.
pub trait PutFields {
    /// Two bytes.
    fn put_u16(&mut self, value: u16);
    /// The low three bytes of `value`.
    fn put_u24(&mut self, value: u32);
    /// Four bytes.
    fn put_u32(&mut self, value: u32);
    /// Eight bytes.
    fn put_u64(&mut self, value: u64);
    /// A length-encoded integer.
    fn put_lenenc(&mut self, value: u64);
    /// A length-encoded string.
    fn put_lenenc_bytes(&mut self, bytes: &[u8]);
    /// A string and the zero byte after it; `bytes` has none within.
    fn put_nul_bytes(&mut self, bytes: &[u8]);
    /// `count` zero bytes.
    fn put_zeros(&mut self, count: usize);
}

impl PutFields for Vec<u8> {
    #[inline]
    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    fn put_u24(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes()[..3]);
    }

    #[inline]
    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    fn put_lenenc(&mut self, value: u64) {
        match value {
            0..=0xFA => self.push(value as u8),
            0xFB..=0xFFFF => {
                self.push(0xFC);
                self.put_u16(value as u16);
            }
            0x1_0000..=0xFF_FFFF => {
                self.push(0xFD);
                self.put_u24(value as u32);
            }
            _ => {
                self.push(0xFE);
                self.put_u64(value);
            }
        }
    }

    #[inline]
    fn put_lenenc_bytes(&mut self, bytes: &[u8]) {
        self.put_lenenc(bytes.len() as u64);
        self.extend_from_slice(bytes);
    }

    fn put_nul_bytes(&mut self, bytes: &[u8]) {
        debug_assert!(!bytes.contains(&0));
        self.extend_from_slice(bytes);
        self.push(0);
    }

    fn put_zeros(&mut self, count: usize) {
        self.resize(self.len() + count, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_encoded_integer_takes_the_fewest_bytes() {
        for (value, bytes) in [
            (0u64, &[0u8][..]),
            (250, &[250]),
            (251, &[0xFC, 251, 0]),
            (0xFFFF, &[0xFC, 0xFF, 0xFF]),
            (0x1_0000, &[0xFD, 0, 0, 1]),
            (0xFF_FFFF, &[0xFD, 0xFF, 0xFF, 0xFF]),
            (0x100_0000, &[0xFE, 0, 0, 0, 1, 0, 0, 0, 0]),
        ] {
            let mut out = Vec::new();
            out.put_lenenc(value);
            assert_eq!(out, bytes);
            let mut fields = Fields::new(&out);
            assert_eq!(fields.lenenc().unwrap(), value);
            assert!(fields.is_empty());
        }
    }

    #[test]
    fn a_length_beyond_the_payload_is_malformed() {
        let mut fields = Fields::new(&[0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]);
        assert!(fields.lenenc_bytes().is_err());
        assert!(Fields::new(&[5, 1, 2]).lenenc_bytes().is_err());
        assert!(Fields::new(b"abc").nul_bytes().is_err());
    }
}
