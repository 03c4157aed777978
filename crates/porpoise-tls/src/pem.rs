//! Certificates, keys and revocation lists in PEM files.

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use std::fs;
use std::io;
use std::path::Path;

fn invalid(path: &Path, what: impl std::fmt::Display) -> io::Error {
    let words = format!("{}: {what}", path.display());
    io::Error::new(io::ErrorKind::InvalidData, words)
}

fn read_all<T: PemObject>(path: &Path) -> io::Result<Vec<T>> {
    let bytes = fs::read(path)?;
    let items = T::pem_slice_iter(&bytes).collect::<Result<Vec<T>, pem::Error>>();
    items.map_err(|error| invalid(path, error))
}

/// The certificates in a file, at least one.
///
/// # Errors
/// If the file can't be read, or has no certificate.
pub fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let found = read_all(path)?;
    if found.is_empty() {
        return Err(invalid(path, "no certificate"));
    }
    Ok(found)
}

/// The first key in a file.
///
/// # Errors
/// If the file can't be read, or has no key that isn't encrypted.
pub fn private_key(path: &Path) -> io::Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_slice(&fs::read(path)?).map_err(|error| match error {
        pem::Error::NoItemsFound => invalid(path, "no private key, or one under a passphrase"),
        error => invalid(path, error),
    })
}

/// The revocation lists in a file, at least one.
///
/// # Errors
/// If the file can't be read, or has no list.
pub fn revocation_lists(path: &Path) -> io::Result<Vec<CertificateRevocationListDer<'static>>> {
    let found = read_all(path)?;
    if found.is_empty() {
        return Err(invalid(path, "no revocation list"));
    }
    Ok(found)
}

/// What `read` makes of each file in a folder that has it; files with something else are passed
/// over, as OpenSSL passes over those without a hash for a name.
///
/// # Errors
/// If the folder can't be read.
pub fn each_in<T>(folder: &Path, read: impl Fn(&Path) -> io::Result<Vec<T>>) -> io::Result<Vec<T>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        found.extend(read(&entry?.path()).unwrap_or_default());
    }
    Ok(found)
}
