//! What is asked of a server's certificate.
//!
//! rustls checks that a certificate is issued by a trusted CA, for this use and at this time. On
//! top of that MySQL's modes differ: `VERIFY_CA` doesn't ask for whom, `VERIFY_IDENTITY` takes the
//! Common Name of a certificate that has no alternative names, as OpenSSL does, and the modes below
//! ask for nothing.

use super::{TlsMode, TlsOptions};
use crate::Error;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{AlertDescription, CertificateError, DigitallySignedStruct, SignatureScheme};
use sha2::{Digest, Sha256, Sha384, Sha512};
use std::sync::Arc;
use x509_parser::prelude::{FromDer, X509Certificate};

/// MySQL's words for a certificate that isn't trusted.
const NOT_VERIFIED: &str = "error:0A000086:SSL routines::certificate verify failed";

/// What went wrong, as MySQL's clients say it where they have words for it.
pub(super) fn words(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(reason) => format!("{NOT_VERIFIED} ({reason})"),
        rustls::Error::AlertReceived(AlertDescription::ProtocolVersion) => {
            "error:0A00042E:SSL routines::tlsv1 alert protocol version".into()
        }
        rustls::Error::AlertReceived(AlertDescription::HandshakeFailure) => {
            "error:0A000410:SSL routines::sslv3 alert handshake failure".into()
        }
        error => error.to_string(),
    }
}

/// The name that a server's certificate has to have. A host that is no name a certificate can have
/// stands for none, where none is asked for.
pub(super) fn server_name(host: &str, options: &TlsOptions) -> Result<ServerName<'static>, Error> {
    match ServerName::try_from(host.to_owned()) {
        Ok(name) => Ok(name),
        Err(_) if options.mode() == TlsMode::VerifyIdentity => {
            Err(Error::Tls(format!("'{host}' is no name of a host")))
        }
        Err(_) => Ok(ServerName::try_from("localhost").expect("it is a name")),
    }
}

/// Asks for a CA's signature, and for the name if `names`.
#[derive(Debug)]
pub(super) struct Issued {
    pub issuer: Arc<WebPkiServerVerifier>,
    pub names: bool,
}

impl ServerCertVerifier for Issued {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let issued = self
            .issuer
            .verify_server_cert(certificate, intermediates, name, ocsp, now);
        match issued {
            // The name is looked at last: all else is as it should be.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.names || has_common_name(certificate, name) => {
                Ok(ServerCertVerified::assertion())
            }
            issued => issued,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.issuer
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.issuer
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.issuer.supported_verify_schemes()
    }
}

/// Whether a certificate without alternative names has this host for its Common Name.
fn has_common_name(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> bool {
    let ServerName::DnsName(host) = name else {
        return false;
    };
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else {
        return false;
    };
    if !matches!(certificate.subject_alternative_name(), Ok(None)) {
        return false;
    }
    let mut names = certificate.subject().iter_common_name();
    names.any(|common| {
        let common = common.as_str().unwrap_or_default();
        matches_host(common, host.as_ref())
    })
}

/// Whether the certificate has one of the hashes, or there are none.
pub(super) fn has_fingerprint(certificate: &[u8], hashes: &[String]) -> bool {
    hashes.is_empty()
        || hashes.iter().any(|hash| {
            let digits: String = hash.chars().filter(|digit| *digit != ':').collect();
            let own = match digits.len() {
                40 => sha1::Sha1::digest(certificate).to_vec(),
                64 => Sha256::digest(certificate).to_vec(),
                96 => Sha384::digest(certificate).to_vec(),
                128 => Sha512::digest(certificate).to_vec(),
                _ => return false,
            };
            let own: String = own.iter().map(|byte| format!("{byte:02x}")).collect();
            own.eq_ignore_ascii_case(&digits)
        })
}

/// Whether a name of a certificate covers a host: `*.` stands for one label, the first.
fn matches_host(name: &str, host: &str) -> bool {
    match name.strip_prefix("*.") {
        Some(parent) => host
            .split_once('.')
            .is_some_and(|(label, rest)| !label.is_empty() && rest.eq_ignore_ascii_case(parent)),
        None => name.eq_ignore_ascii_case(host),
    }
}

/// Asks for nothing but that the server has the key of the certificate that it shows. A certificate
/// that can't be read, as those of X.509's first version, is passed over: who asks for nothing may
/// be anyone's guest.
#[derive(Debug)]
pub(super) struct Anyone(pub WebPkiSupportedAlgorithms);

impl Anyone {
    fn signed(
        checked: Result<HandshakeSignatureValid, rustls::Error>,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match checked {
            Err(rustls::Error::InvalidCertificate(CertificateError::BadSignature)) | Ok(_) => {
                checked
            }
            Err(_) => Ok(HandshakeSignatureValid::assertion()),
        }
    }
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Self::signed(verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0,
        ))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Self::signed(verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0,
        ))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_told_by_its_length() {
        // SHA-1 and SHA-256 of "abc": FIPS 180-4's examples.
        let sha1 = "A9:99:3E:36:47:06:81:6A:BA:3E:25:71:78:50:C2:6C:9C:D0:D8:9D";
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        for hash in [sha1, sha256] {
            assert!(has_fingerprint(b"abc", &["00".into(), hash.into()]));
            assert!(!has_fingerprint(b"abd", &[hash.into()]));
        }
        assert!(has_fingerprint(b"abc", &[]));
        assert!(!has_fingerprint(b"abc", &["".into()]));
    }

    #[test]
    fn a_star_stands_for_one_label() {
        assert!(matches_host("*.example.org", "DB.example.org"));
        assert!(!matches_host("*.example.org", "a.b.example.org"));
        assert!(!matches_host("*.example.org", "example.org"));
        assert!(!matches_host("*.example.org", ".example.org"));
        assert!(matches_host("Localhost", "localhost"));
    }
}
