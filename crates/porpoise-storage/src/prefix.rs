//! The first bytes of a key as a number: nearly always enough to compare two keys, in one
//! instruction.

use std::cmp::Ordering;

/// The first eight bytes, big-endian; a shorter key is padded with zeros.
#[inline]
pub(crate) fn prefix(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    // Two halves that may overlap, so that no length takes a loop.
    if let (Some(first), Some(last)) = (key.first_chunk::<4>(), key.last_chunk::<4>()) {
        let behind = 8 * (8 - key.len() as u32);
        let high = u64::from(u32::from_be_bytes(*first)) << 32;
        return high | u64::from(u32::from_be_bytes(*last)) << behind;
    }
    let byte = |at: usize| u64::from(key.get(at).copied().unwrap_or(0));
    byte(0) << 56 | byte(1) << 48 | byte(2) << 40
}

/// A key to look for.
pub(crate) struct Probe<'k> {
    prefix: u64,
    key: &'k [u8],
}

impl Probe<'_> {
    #[inline]
    pub fn new(key: &[u8]) -> Probe<'_> {
        Probe {
            prefix: prefix(key),
            key,
        }
    }

    #[inline]
    pub fn prefix(&self) -> u64 {
        self.prefix
    }

    /// How a key compares with the probe's.
    #[inline]
    pub fn compare(&self, found: &[u8]) -> Ordering {
        self.compare_with(prefix(found), || found)
    }

    /// How the key of this prefix compares with the probe's.
    #[inline]
    pub fn compare_with<'f>(&self, prefix: u64, found: impl FnOnce() -> &'f [u8]) -> Ordering {
        prefix.cmp(&self.prefix).then_with(|| {
            let found = found();
            // Short keys of equal prefixes differ at most in the zeros at their ends.
            match found.len().max(self.key.len()) {
                0..=8 => found.len().cmp(&self.key.len()),
                _ => found.cmp(self.key),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![0u8..3, any::<u8>()], 0..12)
    }

    proptest! {
        #[test]
        fn keys_lie_to_each_other_as_their_bytes_do(found in key(), sought in key()) {
            prop_assert_eq!(Probe::new(&sought).compare(&found), found.cmp(&sought));
            let longer = [&found[..], &[0]].concat();
            prop_assert_eq!(Probe::new(&longer).compare(&found), Ordering::Less);
            prop_assert_eq!(Probe::new(&found).compare(&found), Ordering::Equal);
        }

        #[test]
        fn a_prefix_is_eight_bytes_with_zeros_behind(key in key()) {
            let mut bytes = [0; 8];
            let len = key.len().min(8);
            bytes[..len].copy_from_slice(&key[..len]);
            prop_assert_eq!(prefix(&key), u64::from_be_bytes(bytes));
        }
    }
}
