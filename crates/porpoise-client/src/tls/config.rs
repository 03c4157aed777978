//! What the options and their files come to.
//!
//! Configurations are kept by options: they hold what a session is resumed with. One whose files
//! have changed since is made anew.

use super::{TlsMode, TlsOptions, verify};
use crate::Error;
use porpoise_tls::{pem, suites};
use rustls::client::{Resumption, WebPkiServerVerifier, danger::ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// So many configurations are kept, those used last.
const KEPT_MAX: usize = 16;

/// The CAs that Debian's users trust, in one file.
const SYSTEM_CAS: &str = "/etc/ssl/certs/ca-certificates.crt";

/// When each file that the options name was last changed.
type Stamps = Vec<Option<SystemTime>>;

struct Kept {
    options: TlsOptions,
    stamps: Stamps,
    config: Arc<ClientConfig>,
}

static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

fn stamps(options: &TlsOptions) -> Stamps {
    let TlsOptions {
        ca,
        ca_path,
        cert,
        key,
        crl,
        crl_path,
        ..
    } = options;
    let changed = |path: &PathBuf| std::fs::metadata(path).ok()?.modified().ok();
    [ca, ca_path, cert, key, crl, crl_path]
        .into_iter()
        .map(|path| path.as_ref().and_then(changed))
        .collect()
}

/// The configuration for these options.
///
/// # Errors
/// [`Error::Tls`], in MySQL's words, for files that can't be used and names that aren't known.
pub(super) fn of(options: &TlsOptions) -> Result<Arc<ClientConfig>, Error> {
    let stamps = stamps(options);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(at) = kept.iter().position(|kept| kept.options == *options) {
        let known = kept.remove(at);
        if known.stamps == stamps {
            let config = Arc::clone(&known.config);
            kept.push(known);
            return Ok(config);
        }
    }
    let config = Arc::new(make(options).map_err(Error::Tls)?);
    if kept.len() == KEPT_MAX {
        kept.remove(0);
    }
    kept.push(Kept {
        options: options.clone(),
        stamps,
        config: Arc::clone(&config),
    });
    Ok(config)
}

fn make(options: &TlsOptions) -> Result<ClientConfig, String> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let cipher_suites = suites::parse(&text(&options.cipher), &text(&options.ciphersuites))
        .map_err(|_| "Failed to set ciphers to use")?;
    let mut versions =
        suites::parse_versions(&text(&options.versions)).map_err(|_| "TLS version is invalid")?;
    if versions.is_empty() {
        versions = rustls::ALL_VERSIONS.to_vec();
    }
    let provider = Arc::new(CryptoProvider {
        cipher_suites,
        ..ring::default_provider()
    });
    let verifier = verifier(options, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(|_| "TLS version is invalid")?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match own_certificate(options)? {
        Some((chain, key)) => builder
            .with_client_auth_cert(chain, key)
            .map_err(|_| "Private key does not match the certificate public key")?,
        None => builder.with_no_client_auth(),
    };
    // MySQL's clients name no server unless they are told to.
    config.enable_sni = false;
    config.resumption = match options.always_full {
        true => Resumption::disabled(),
        false => Resumption::in_memory_sessions(64),
    };
    Ok(config)
}

fn verifier(
    options: &TlsOptions,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    if !options.verifies() {
        let algorithms = provider.signature_verification_algorithms;
        return Ok(Arc::new(verify::Anyone(algorithms)));
    }
    let has_ca = options.ca.is_some() || options.ca_path.is_some();
    if !has_ca && !options.system_cas {
        return Err(
            "CA certificate is required if ssl-mode is VERIFY_CA or VERIFY_IDENTITY".into(),
        );
    }
    let unusable = |_: io::Error| "SSL_CTX_set_default_verify_paths failed";
    let mut roots = RootCertStore::empty();
    let authorities = in_file_and_folder(&options.ca, &options.ca_path, pem::certificates);
    roots.add_parsable_certificates(authorities.map_err(unusable)?);
    if !has_ca {
        let file = Some(PathBuf::from(SYSTEM_CAS)).filter(|file| file.exists());
        let authorities = in_file_and_folder(&file, &None, pem::certificates);
        roots.add_parsable_certificates(authorities.map_err(unusable)?);
    }
    if roots.is_empty() {
        return Err("certificate verify failed (there is no CA to trust)".into());
    }
    let lists = in_file_and_folder(&options.crl, &options.crl_path, pem::revocation_lists);
    let issuer = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .with_crls(lists.map_err(unusable)?)
        // OpenSSL, too, believes no list that is out of date.
        .enforce_revocation_expiration()
        .build()
        .map_err(|_| "SSL_CTX_set_default_verify_paths failed")?;
    Ok(Arc::new(verify::Issued {
        issuer,
        names: options.mode() == TlsMode::VerifyIdentity,
    }))
}

fn in_file_and_folder<T>(
    file: &Option<PathBuf>,
    folder: &Option<PathBuf>,
    read: impl Fn(&Path) -> io::Result<Vec<T>>,
) -> io::Result<Vec<T>> {
    let mut found = match file {
        Some(file) => read(file)?,
        None => Vec::new(),
    };
    if let Some(folder) = folder {
        found.extend(pem::each_in(folder, read)?);
    }
    Ok(found)
}

type Identity = (
    Vec<rustls::pki_types::CertificateDer<'static>>,
    rustls::pki_types::PrivateKeyDer<'static>,
);

/// This client's certificate and key. Where one file is named, it holds both.
fn own_certificate(options: &TlsOptions) -> Result<Option<Identity>, String> {
    let (cert, key) = match (&options.cert, &options.key) {
        (None, None) => return Ok(None),
        (Some(cert), Some(key)) => (cert, key),
        (Some(both), None) | (None, Some(both)) => (both, both),
    };
    let chain = pem::certificates(cert).map_err(|_| "Unable to get certificate")?;
    let key = pem::private_key(key).map_err(|_| "Unable to get private key")?;
    Ok(Some((chain, key)))
}
