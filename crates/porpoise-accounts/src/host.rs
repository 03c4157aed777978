//! Host patterns: which of them a client matches, and which of several is the most specific.
//!
//! | pattern | matches |
//! | --- | --- |
//! | `localhost` | the Unix socket, shared memory, and connections whose name resolves to it |
//! | `192.0.2.7` | that address |
//! | `192.0.2.0/255.255.255.0`, `192.0.2.0/24`, `2001:db8::/32` | the addresses of a network |
//! | `192.0.2.%`, `%.example.com`, `%` | whatever LIKE says |
//!
//! MySQL 8.4 manual, 8.2.4 (Specifying Account Names), 8.2.6 (Connection Verification).

use std::net::IpAddr;

use porpoise_types::Collation;

/// LIKE on a name, with backslash as the escape; case counts.
pub fn like(name: &str, pattern: &str) -> bool {
    // Each statement asks this of its tables' schemas, and most patterns are a name: wildcards match
    // themselves.
    if name == pattern && !pattern.contains('\\') {
        return true;
    }
    porpoise_types::like(
        name.as_bytes(),
        pattern.as_bytes(),
        Some('\\'),
        Collation::UTF8MB4_BIN,
    )
}

/// Whether a client at `host` (its name, or its address as text) with address `ip` matches a host
/// pattern. `ip` is `None` for clients on this machine.
pub fn matches(pattern: &str, host: &str, ip: Option<IpAddr>) -> bool {
    if pattern.eq_ignore_ascii_case(host) || pattern == "%" || pattern.is_empty() {
        return true;
    }
    if let (Some((network, mask)), Some(ip)) = (pattern.split_once('/'), ip) {
        return in_network(ip, network, mask);
    }
    if let (Ok(pattern), Some(ip)) = (pattern.parse::<IpAddr>(), ip) {
        return pattern == ip;
    }
    if !pattern.contains(['%', '_']) {
        return false;
    }
    let pattern = pattern.to_ascii_lowercase();
    like(&host.to_ascii_lowercase(), &pattern)
        || ip.is_some_and(|ip| like(&ip.to_string(), &pattern))
}

fn in_network(ip: IpAddr, network: &str, mask: &str) -> bool {
    let Ok(network) = network.parse::<IpAddr>() else {
        return false;
    };
    match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) => {
            let mask = match (mask.parse::<u32>(), mask.parse::<IpAddr>()) {
                (Ok(bits @ 0..=32), _) => u32::MAX.checked_shl(32 - bits).unwrap_or(0),
                (_, Ok(IpAddr::V4(mask))) => u32::from(mask),
                _ => return false,
            };
            u32::from(ip) & mask == u32::from(network) & mask
        }
        (IpAddr::V6(ip), IpAddr::V6(network)) => {
            let Ok(bits @ 0..=128) = mask.parse::<u32>() else {
                return false;
            };
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            u128::from(ip) & mask == u128::from(network) & mask
        }
        _ => false,
    }
}

/// Sorts patterns: exact hosts first, then networks by their size, then patterns by where the first
/// wildcard stands, `%` and the empty one last.
pub fn specificity(pattern: &str) -> (u8, usize, String) {
    let name = pattern.to_ascii_lowercase();
    if pattern.is_empty() {
        return (4, 0, name);
    }
    if pattern == "%" {
        return (3, 0, name);
    }
    if let Some((_, mask)) = pattern.split_once('/') {
        let bits = match (mask.parse::<u32>(), mask.parse::<std::net::Ipv4Addr>()) {
            (Ok(bits), _) => bits,
            (_, Ok(mask)) => u32::from(mask).count_ones(),
            _ => 0,
        };
        return (1, 128usize.saturating_sub(bits as usize), name);
    }
    match pattern.find(['%', '_']) {
        None => (0, 0, name),
        Some(at) => (2, 1000usize.saturating_sub(at), name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_match_by_name_address_network_and_pattern() {
        let ip = |text: &str| text.parse::<IpAddr>().ok();
        for (pattern, host, address, expected) in [
            ("localhost", "localhost", None, true),
            ("LOCALHOST", "localhost", None, true),
            ("%", "anything", ip("192.0.2.1"), true),
            ("192.0.2.%", "192.0.2.1", ip("192.0.2.1"), true),
            ("192.0.2.%", "198.51.100.1", ip("198.51.100.1"), false),
            ("192.0.2.0/24", "x", ip("192.0.2.77"), true),
            ("192.0.2.0/255.255.255.0", "x", ip("192.0.3.77"), false),
            ("0.0.0.0/0", "x", ip("203.0.113.9"), true),
            ("2001:db8::/32", "x", ip("2001:db8::1"), true),
            ("%.example.com", "db.example.com", None, true),
            ("example.com", "db.example.com", None, false),
        ] {
            assert_eq!(
                matches(pattern, host, address),
                expected,
                "{pattern} {host}"
            );
        }
    }

    #[test]
    fn the_most_specific_host_comes_first() {
        let mut patterns = [
            "%",
            "",
            "192.0.2.%",
            "192.0.%",
            "192.0.2.0/24",
            "10.0.0.0/8",
            "localhost",
        ];
        patterns.sort_by_key(|pattern| specificity(pattern));
        assert_eq!(
            patterns,
            [
                "localhost",
                "192.0.2.0/24",
                "10.0.0.0/8",
                "192.0.2.%",
                "192.0.%",
                "%",
                ""
            ]
        );
    }
}
