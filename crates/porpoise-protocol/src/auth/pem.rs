//! A public key between its BEGIN and END lines: base64 of DER (RFC 7468).

/// Characters of base64 in a line.
const LINE_CHARS: usize = 64;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const END: &str = "-----END PUBLIC KEY-----";

/// The text of a key, given its DER; lines end with LF.
pub(super) fn encode(der: &[u8]) -> String {
    let mut base64 = String::with_capacity(der.len().div_ceil(3) * 4);
    for group in der.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            base64.push(match at <= group.len() {
                true => char::from(ALPHABET[(bits >> (18 - 6 * at)) as usize & 63]),
                false => '=',
            });
        }
    }
    let mut text = format!("{BEGIN}\n");
    for (at, c) in base64.chars().enumerate() {
        if at > 0 && at % LINE_CHARS == 0 {
            text.push('\n');
        }
        text.push(c);
    }
    text.push_str(&format!("\n{END}\n"));
    text
}

/// The DER of a key's text. White space around and within the base64 means nothing. `None` for what is no such text.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let inner = text.trim().strip_prefix(BEGIN)?.strip_suffix(END)?;
    let digits: Vec<u8> = inner
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let mut der = Vec::with_capacity(digits.len() / 4 * 3);
    let groups = digits.chunks(4);
    let last = groups.len().checked_sub(1)?;
    for (number, group) in groups.enumerate() {
        let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
        if group.len() < 4 || padding > 2 || (padding > 0 && number < last) {
            return None;
        }
        let mut bits = 0u32;
        for digit in &group[..4 - padding] {
            let value = ALPHABET.iter().position(|known| known == digit)?;
            bits = bits << 6 | value as u32;
        }
        bits <<= 6 * padding;
        der.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    Some(der)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_as_it_was_written() {
        for length in 0..200u8 {
            let der: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(37)).collect();
            let text = encode(&der);
            assert!(text.lines().all(|line| line.len() <= LINE_CHARS), "{text}");
            if length > 0 {
                assert_eq!(decode(&text).as_deref(), Some(&der[..]), "{text}");
            }
            assert_eq!(decode(&text.replace('\n', "\r\n")), decode(&text));
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let damaged = [
            "".to_string(),
            "no key".to_string(),
            BEGIN.to_string(),
            format!("{BEGIN}\nAAA\n{END}"),
            format!("{BEGIN}\nA===\n{END}"),
            format!("{BEGIN}\nAA==AAAA\n{END}"),
            format!("{BEGIN}\nAA*A\n{END}"),
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----".to_string(),
        ];
        for text in damaged {
            assert_eq!(decode(&text), None, "{text}");
        }
    }
}
