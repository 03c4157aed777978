//! Reading little-endian integers out of bytes that may be too short for them.

/// The integer at an offset; `None` if the bytes end before it does.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// As [`u16_at`], of four bytes.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// As [`u16_at`], of eight bytes.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// As [`u16_at`], of sixteen bytes.
pub(crate) fn u128_at(bytes: &[u8], at: usize) -> Option<u128> {
    Some(u128::from_le_bytes(
        bytes.get(at..at + 16)?.try_into().ok()?,
    ))
}
