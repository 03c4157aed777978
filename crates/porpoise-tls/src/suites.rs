//! Cipher suites and protocols, by the names that OpenSSL and MySQL have for them.

use rustls::crypto::ring::cipher_suite as suite;
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, ProtocolVersion, SupportedCipherSuite, SupportedProtocolVersion};

/// A row a suite, best first; a name holds for those of TLS 1.3 in `tls_ciphersuites`, for others
/// in `ssl_cipher`.
const SUITES: &[(&str, SupportedCipherSuite)] = &[
    ("TLS_AES_128_GCM_SHA256", suite::TLS13_AES_128_GCM_SHA256),
    ("TLS_AES_256_GCM_SHA384", suite::TLS13_AES_256_GCM_SHA384),
    (
        "TLS_CHACHA20_POLY1305_SHA256",
        suite::TLS13_CHACHA20_POLY1305_SHA256,
    ),
    (
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    ),
    (
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "ECDHE-RSA-AES128-GCM-SHA256",
        suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    ),
    (
        "ECDHE-RSA-AES256-GCM-SHA384",
        suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    (
        "ECDHE-RSA-CHACHA20-POLY1305",
        suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
];

fn is_of_1_3(suite: SupportedCipherSuite) -> bool {
    suite.tls13().is_some()
}

/// OpenSSL's name of a suite; empty for one that isn't used here.
pub fn name(suite: CipherSuite) -> &'static str {
    let row = SUITES.iter().find(|(_, known)| known.suite() == suite);
    row.map_or("", |(name, _)| name)
}

/// MySQL's name of a protocol.
pub fn protocol_name(version: ProtocolVersion) -> &'static str {
    match version {
        ProtocolVersion::TLSv1_3 => "TLSv1.3",
        ProtocolVersion::TLSv1_2 => "TLSv1.2",
        _ => "unknown",
    }
}

/// The suites that the variables `ssl_cipher` and `tls_ciphersuites` name: lists with colons, an
/// empty one for all. What a list names beside is told of in a warning.
///
/// # Errors
/// If a list names none that there is.
pub fn parse(
    ssl_cipher: &str,
    tls_ciphersuites: &str,
) -> Result<Vec<SupportedCipherSuite>, String> {
    let mut suites = Vec::new();
    for (variable, list, of_1_3) in [
        ("tls_ciphersuites", tls_ciphersuites, true),
        ("ssl_cipher", ssl_cipher, false),
    ] {
        let all = SUITES
            .iter()
            .filter(|(_, suite)| is_of_1_3(*suite) == of_1_3);
        if list.is_empty() {
            suites.extend(all.map(|(_, suite)| *suite));
            continue;
        }
        let before = suites.len();
        for name in list.split(':').map(str::trim) {
            match all.clone().find(|(known, _)| *known == name) {
                Some((_, suite)) => suites.push(*suite),
                None => tracing::warn!("{variable} names a cipher that isn't known here: {name}"),
            }
        }
        if suites.len() == before {
            return Err(format!("{variable} names no cipher that is known here"));
        }
    }
    Ok(suites)
}

/// The names of suites, with colons between them.
pub fn list(suites: &[SupportedCipherSuite]) -> String {
    let names: Vec<&str> = suites.iter().map(|suite| name(suite.suite())).collect();
    names.join(":")
}

/// The protocols that `tls_version` names, a list with commas; empty for none.
///
/// # Errors
/// If it names none that there is.
pub fn parse_versions(list: &str) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let mut versions = Vec::new();
    for name in list.split(',').map(str::trim) {
        match name.to_ascii_lowercase().as_str() {
            "" => {}
            "tlsv1.2" => versions.push(&TLS12),
            "tlsv1.3" => versions.push(&TLS13),
            _ => tracing::warn!("tls_version names a protocol that isn't offered: {name}"),
        }
    }
    if versions.is_empty() && !list.trim().is_empty() {
        return Err(format!(
            "tls_version names no protocol that is offered: {list}"
        ));
    }
    Ok(versions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_openssl_reads_them() {
        let all = parse("", "").unwrap();
        assert_eq!(all.len(), SUITES.len());
        let some = parse(
            "DHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384",
            "TLS_AES_256_GCM_SHA384",
        );
        assert_eq!(
            list(&some.unwrap()),
            "TLS_AES_256_GCM_SHA384:ECDHE-RSA-AES256-GCM-SHA384"
        );
        assert!(parse("RC4-MD5", "").is_err());
        assert!(parse("", "ECDHE-RSA-AES256-GCM-SHA384").is_err());
    }

    #[test]
    fn protocols_that_nobody_offers_are_left_out() {
        assert_eq!(parse_versions("TLSv1,TLSv1.3").unwrap(), [&TLS13]);
        assert_eq!(parse_versions("").unwrap().len(), 0);
        assert!(parse_versions("TLSv1.1").is_err());
    }
}
