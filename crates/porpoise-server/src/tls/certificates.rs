//! The certificates of a server that was given none: made at its first start, in the data folder.
//!
//! ```text
//!   ca.pem, ca-key.pem ── signs ──► server-cert.pem, server-key.pem    what the server shows its clients
//!                           └─────► client-cert.pem, client-key.pem    for accounts that REQUIRE X509
//! ```
//!
//! The files have the names that MySQL gives them. Keys are ECDSA keys on P-256, which every client
//! that speaks TLS 1.2 takes, and with which a handshake costs the server a tenth of what it costs
//! with RSA. Nothing that is there is ever overwritten: if some of the files are there, the others
//! aren't made.
//!
//! Source: MySQL 8.4 Reference Manual, 8.3.3.1 "Creating SSL and RSA Certificates and Keys using
//! MySQL".

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SanType, SerialNumber,
};

/// The variables that name the files which the server itself uses.
pub(super) const VARIABLES: [(&str, &str); 3] = [
    ("ssl_ca", CA),
    ("ssl_cert", SERVER),
    ("ssl_key", SERVER_KEY),
];

const CA: &str = "ca.pem";
const CA_KEY: &str = "ca-key.pem";
const SERVER: &str = "server-cert.pem";
const SERVER_KEY: &str = "server-key.pem";
const CLIENT: &str = "client-cert.pem";
const CLIENT_KEY: &str = "client-key.pem";

/// For how long they are valid: ten years, as MySQL's.
const VALIDITY: Duration = Duration::from_secs(3650 * 24 * 60 * 60);

/// How long before now they begin to be: for clients whose clocks are behind.
const CLOCK_SKEW: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether the files that the server needs are in its folder, made just now where none was and
/// `makes` says so.
pub(super) fn find_or_make(folder: &Path, makes: bool) -> io::Result<bool> {
    let is_there = |name: &&str| folder.join(name).exists();
    if [CA, SERVER, SERVER_KEY].iter().all(is_there) {
        return Ok(true);
    }
    let all = [CA, CA_KEY, SERVER, SERVER_KEY, CLIENT, CLIENT_KEY];
    // A database in memory has no folder.
    if !makes || !folder.is_dir() || all.iter().any(is_there) {
        return Ok(false);
    }
    make(folder)?;
    tracing::info!("made certificates for TLS in {}", folder.display());
    Ok(true)
}

/// A certificate and its key, as PEM.
struct Pair {
    certificate: String,
    key: String,
}

fn make(folder: &Path) -> io::Result<()> {
    let Made { ca, server, client } = generate().map_err(io::Error::other)?;
    // The server's own come last: it uses them only when all are there.
    for (pair, certificate, key) in [
        (client, CLIENT, CLIENT_KEY),
        (ca, CA, CA_KEY),
        (server, SERVER, SERVER_KEY),
    ] {
        write(&folder.join(key), &pair.key, 0o600)?;
        write(&folder.join(certificate), &pair.certificate, 0o644)?;
    }
    File::open(folder)?.sync_all()
}

/// Writes a file that isn't there yet, with these permissions whatever the umask.
fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(mode & 0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

struct Made {
    ca: Pair,
    server: Pair,
    client: Pair,
}

fn generate() -> Result<Made, rcgen::Error> {
    let mut params = params("CA", 1);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    let signed = |role, serial, purpose| {
        let mut params = self::params(role, serial);
        if purpose == ExtendedKeyUsagePurpose::ServerAuth {
            params.subject_alt_names = own_names()?;
        }
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![purpose];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &ca)?;
        Ok::<_, rcgen::Error>(Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    };
    Ok(Made {
        server: signed("Server", 2, ExtendedKeyUsagePurpose::ServerAuth)?,
        client: signed("Client", 3, ExtendedKeyUsagePurpose::ClientAuth)?,
        ca: Pair {
            certificate: ca.pem(),
            key: ca.key().serialize_pem(),
        },
    })
}

/// By which names this machine itself reaches the server. MySQL's certificates have none, so that
/// no client can verify the server's identity; by these one on this machine can.
fn own_names() -> Result<Vec<SanType>, rcgen::Error> {
    Ok(vec![
        SanType::DnsName("localhost".try_into()?),
        SanType::IpAddress(Ipv4Addr::LOCALHOST.into()),
        SanType::IpAddress(Ipv6Addr::LOCALHOST.into()),
    ])
}

fn params(role: &str, serial: u64) -> CertificateParams {
    let mut params = CertificateParams::default();
    let version = crate::SERVER_VERSION;
    let name = format!("MySQL_Server_{version}_Auto_Generated_{role}_Certificate");
    // X.509's limit of a common name.
    let name = name.get(..64).unwrap_or(&name);
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.serial_number = Some(SerialNumber::from(serial));
    let now = SystemTime::now();
    params.not_before = (now - CLOCK_SKEW).into();
    params.not_after = (now + VALIDITY).into();
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(folder: &Path, name: &str) -> u32 {
        let metadata = std::fs::metadata(folder.join(name)).unwrap();
        metadata.permissions().mode() & 0o777
    }

    #[test]
    fn they_are_made_once_and_keys_are_the_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert!(!find_or_make(folder, false).unwrap());
        assert!(find_or_make(folder, true).unwrap());
        let before = std::fs::read(folder.join(SERVER)).unwrap();
        assert!(find_or_make(folder, true).unwrap());
        assert_eq!(std::fs::read(folder.join(SERVER)).unwrap(), before);
        for name in [CA_KEY, SERVER_KEY, CLIENT_KEY] {
            assert_eq!(mode(folder, name), 0o600);
        }
        for name in [CA, SERVER, CLIENT] {
            assert_eq!(mode(folder, name), 0o644);
        }
    }

    #[test]
    fn nothing_is_made_beside_what_somebody_has_put_there() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(CA), "mine").unwrap();
        assert!(!find_or_make(folder.path(), true).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
