//! What the files and the lists come to: a configuration, and what is shown of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use compact_str::CompactString;
use porpoise_engine::Engine;
use rustls::crypto::{CryptoProvider, GetRandomFailed};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ProducesTickets, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::ticketer::TicketRotator;
use rustls::{InconsistentKeys, RootCertStore, ServerConfig, SupportedProtocolVersion};
use x509_parser::prelude::{ASN1Time, FromDer, X509Certificate};

use porpoise_tls::suites;

use super::TlsCounters;

/// What the variables name. A path that isn't absolute is one in the data folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct TlsFiles {
    folder: PathBuf,
    pub ca: CompactString,
    pub capath: CompactString,
    pub cert: CompactString,
    pub key: CompactString,
    pub crl: CompactString,
    pub crlpath: CompactString,
    pub cipher: CompactString,
    pub ciphersuites: CompactString,
    pub version: CompactString,
    /// Whether sessions can be resumed.
    resumes: bool,
    /// For how long, in seconds.
    resumption_timeout_s: u32,
}

impl TlsFiles {
    /// The variables that name files or folders.
    pub const NAMES: [&str; 6] = [
        "ssl_ca",
        "ssl_capath",
        "ssl_cert",
        "ssl_key",
        "ssl_crl",
        "ssl_crlpath",
    ];

    pub fn from_variables(engine: &Engine) -> TlsFiles {
        let variables = engine.variables();
        let timeout_s = variables.get_u64("ssl_session_cache_timeout");
        TlsFiles {
            folder: PathBuf::from(variables.get_text("datadir").as_str()),
            ca: variables.get_text("ssl_ca"),
            capath: variables.get_text("ssl_capath"),
            cert: variables.get_text("ssl_cert"),
            key: variables.get_text("ssl_key"),
            crl: variables.get_text("ssl_crl"),
            crlpath: variables.get_text("ssl_crlpath"),
            cipher: variables.get_text("ssl_cipher"),
            ciphersuites: variables.get_text("tls_ciphersuites"),
            version: variables.get_text("tls_version"),
            resumes: variables.get_u64("ssl_session_cache_mode") != 0,
            resumption_timeout_s: u32::try_from(timeout_s).unwrap_or(u32::MAX),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// What a server offers its clients.
#[derive(Debug)]
pub(crate) struct TlsContext {
    pub config: Arc<ServerConfig>,
    pub files: TlsFiles,
    /// Names of suites, with colons between them.
    pub cipher_list: String,
    /// Whether clients are asked for certificates.
    pub verifies_clients: bool,
    /// When the server's certificate begins and ends to be valid; `None` if it can't be read.
    validity: Option<(ASN1Time, ASN1Time)>,
}

impl TlsContext {
    /// Reads the files. `None` if TLS is to be off: no protocol is named.
    ///
    /// # Errors
    /// Which file can't be used, and why.
    pub fn load(
        files: &TlsFiles,
        counters: &Arc<TlsCounters>,
    ) -> Result<Option<TlsContext>, String> {
        let versions = suites::parse_versions(&files.version)?;
        if versions.is_empty() {
            return Ok(None);
        }
        let mut provider = rustls::crypto::ring::default_provider();
        provider.cipher_suites = suites::parse(&files.cipher, &files.ciphersuites)?;
        let cipher_list = suites::list(&provider.cipher_suites);
        let provider = Arc::new(provider);
        let certified = load_key(files, &provider)?;
        let validity = certified
            .end_entity_cert()
            .ok()
            .and_then(|cert| X509Certificate::from_der(cert).ok())
            .map(|(_, cert)| (cert.validity().not_before, cert.validity().not_after));
        let verifier = client_verifier(files, &provider)?;
        let verifies_clients = verifier.is_some();
        let mut config = configure(files, provider, &versions, certified, verifier)?;
        if files.resumes {
            config.ticketer = Arc::new(CountedTickets::new(files, counters)?);
        }
        Ok(Some(TlsContext {
            config: Arc::new(config),
            files: files.clone(),
            cipher_list,
            verifies_clients,
            validity,
        }))
    }

    /// Whether sessions can be resumed.
    pub fn resumes(&self) -> bool {
        self.files.resumes
    }

    /// For how long they can, in seconds.
    pub fn resumption_timeout_s(&self) -> u32 {
        self.files.resumption_timeout_s
    }

    /// When the server's certificate begins to be valid, as OpenSSL prints it.
    pub fn not_before(&self) -> String {
        self.validity.map_or(String::new(), |(from, _)| print(from))
    }

    /// When the server's certificate ends to be valid.
    pub fn not_after(&self) -> String {
        self.validity
            .map_or(String::new(), |(_, until)| print(until))
    }

    /// What to tell the administrator if clients won't take the certificate now.
    pub fn validity_warning(&self) -> Option<String> {
        let (from, until) = self.validity?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let now = i64::try_from(now.as_secs()).ok()?;
        let file = &self.files.cert;
        if now > until.timestamp() {
            return Some(format!("the server's certificate {file} has expired"));
        }
        (now < from.timestamp()).then(|| format!("the server's certificate {file} isn't valid yet"))
    }
}

/// `Nov  3 07:05:09 2026 GMT`.
fn print(time: ASN1Time) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let time = time.to_datetime();
    let month = MONTHS[usize::from(u8::from(time.month())) - 1];
    let (day, year) = (time.day(), time.year());
    let (hour, minute, second) = time.to_hms();
    format!("{month} {day:2} {hour:02}:{minute:02}:{second:02} {year} GMT")
}

/// What a variable names can't be used.
fn unusable(variable: &str, path: &Path, why: impl std::fmt::Display) -> String {
    format!("{variable}={}: {why}", path.display())
}

/// The items of a PEM file, one at least.
fn read_items<T: PemObject>(variable: &str, path: &Path) -> Result<Vec<T>, String> {
    let unusable = |why: &dyn std::fmt::Display| unusable(variable, path, why);
    let items = T::pem_file_iter(path).map_err(|error| unusable(&error))?;
    let items: Result<Vec<T>, _> = items.collect();
    let items = items.map_err(|error| unusable(&error))?;
    match items.is_empty() {
        true => Err(unusable(&"there is nothing of that kind in the file")),
        false => Ok(items),
    }
}

/// The items of a PEM file and of all PEM files of a folder, where these are named.
fn read_all<T: PemObject>(
    files: &TlsFiles,
    (file_variable, file): (&str, &str),
    (folder_variable, folder): (&str, &str),
) -> Result<Vec<T>, String> {
    let mut items = Vec::new();
    if !file.is_empty() {
        items.extend(read_items(file_variable, &files.path(file))?);
    }
    if !folder.is_empty() {
        let folder = files.path(folder);
        let refuse = |error| unusable(folder_variable, &folder, error);
        for entry in std::fs::read_dir(&folder).map_err(refuse)? {
            let path = entry.map_err(refuse)?.path();
            // What isn't of that kind may lie there, too.
            items.extend(read_items(folder_variable, &path).unwrap_or_default());
        }
        if items.is_empty() {
            let why = "there is nothing of that kind in the folder";
            return Err(unusable(folder_variable, &folder, why));
        }
    }
    Ok(items)
}

/// The server's certificates and its key, which fit.
fn load_key(files: &TlsFiles, provider: &CryptoProvider) -> Result<CertifiedKey, String> {
    for (variable, name) in [("ssl_cert", &files.cert), ("ssl_key", &files.key)] {
        if name.is_empty() {
            return Err(format!("{variable} names no file"));
        }
    }
    let (cert_path, key_path) = (files.path(&files.cert), files.path(&files.key));
    let chain: Vec<CertificateDer<'static>> = read_items("ssl_cert", &cert_path)?;
    let key = PrivateKeyDer::from_pem_file(&key_path)
        .map_err(|error| unusable("ssl_key", &key_path, error))?;
    let key = provider
        .key_provider
        .load_private_key(key)
        .map_err(|error| unusable("ssl_key", &key_path, error))?;
    if X509Certificate::from_der(&chain[0]).is_err() {
        let why = "it can't be read as an X.509 certificate";
        return Err(unusable("ssl_cert", &cert_path, why));
    }
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => Err(unusable(
            "ssl_key",
            &key_path,
            "the key isn't that of the certificate",
        )),
        // A certificate of version 1 can't be compared with its key; clients may take it.
        Ok(()) | Err(_) => Ok(certified),
    }
}

/// What checks the clients' certificates; `None` if clients aren't asked for any. A client need not
/// have one: an account may require it.
fn client_verifier(
    files: &TlsFiles,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, String> {
    if files.ca.is_empty() && files.capath.is_empty() {
        return Ok(None);
    }
    let authorities: Vec<CertificateDer<'static>> =
        read_all(files, ("ssl_ca", &files.ca), ("ssl_capath", &files.capath))?;
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        let path = files.path(&files.ca);
        let added = roots.add(authority);
        added.map_err(|error| unusable("ssl_ca", &path, error))?;
    }
    let revocations: Vec<CertificateRevocationListDer<'static>> = read_all(
        files,
        ("ssl_crl", &files.crl),
        ("ssl_crlpath", &files.crlpath),
    )?;
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .with_crls(revocations)
        // OpenSSL, too, believes no list that is out of date.
        .enforce_revocation_expiration()
        .allow_unauthenticated();
    let verifier = builder.build();
    verifier
        .map(Some)
        .map_err(|error| format!("ssl_ca or ssl_crl: {error}"))
}

fn configure(
    files: &TlsFiles,
    provider: Arc<CryptoProvider>,
    versions: &[&'static SupportedProtocolVersion],
    certified: CertifiedKey,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
) -> Result<ServerConfig, String> {
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(|error| format!("tls_version, tls_ciphersuites or ssl_cipher: {error}"))?;
    let builder = match verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    // The list of ciphers is in the order in which they are wanted.
    config.ignore_client_order = true;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = usize::from(files.resumes);
    Ok(config)
}

/// Tickets under one key: what a [`TicketRotator`] makes anew from time to time.
#[derive(Debug)]
struct Tickets(Arc<dyn ProducesTickets>);

fn make_tickets() -> Result<Box<dyn ProducesTickets>, GetRandomFailed> {
    let tickets = rustls::crypto::ring::Ticketer::new().map_err(|_| GetRandomFailed)?;
    Ok(Box::new(Tickets(tickets)))
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        self.0.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.0.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.0.encrypt(plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.0.decrypt(cipher)
    }
}

/// Tickets under keys that change; those that no key opens are counted.
#[derive(Debug)]
struct CountedTickets {
    tickets: TicketRotator,
    counters: Arc<TlsCounters>,
}

impl CountedTickets {
    fn new(files: &TlsFiles, counters: &Arc<TlsCounters>) -> Result<CountedTickets, String> {
        let tickets = TicketRotator::new(files.resumption_timeout_s, make_tickets);
        Ok(CountedTickets {
            tickets: tickets.map_err(|error| error.to_string())?,
            counters: Arc::clone(counters),
        })
    }
}

impl ProducesTickets for CountedTickets {
    fn enabled(&self) -> bool {
        self.tickets.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.tickets.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.tickets.encrypt(plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let session = self.tickets.decrypt(cipher);
        if session.is_none() {
            TlsCounters::count(&self.counters.sessions_unknown);
        }
        session
    }
}
