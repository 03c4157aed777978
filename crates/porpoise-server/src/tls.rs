//! TLS: what the server's clients may encrypt their connections with.
//!
//! ```text
//!   start, ALTER INSTANCE RELOAD TLS ──► TlsFiles, from the variables ──► TlsContext::load ──► the current context
//!   a client's SSLRequest ──► the current context ──► TlsStream, over TCP or a Unix socket
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | [`context`] | what the files and the lists of protocols and ciphers come to |
//! | [`certificates`] | the files that are made at the first start |
//! | [`distinguished_name`] | the names in certificates, as accounts require them |
//! | [`stream`] | an encrypted connection |
//!
//! A connection keeps the context that it began with: a reload changes what later ones get.
//!
//! Source: MySQL 8.4 Reference Manual, 8.3 "Using Encrypted Connections", 15.1.5 "ALTER INSTANCE
//! Statement".

mod certificates;
mod context;
mod distinguished_name;
mod stream;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use compact_str::CompactString;
use porpoise_engine::Engine;

pub(crate) use context::{TlsContext, TlsFiles};
pub(crate) use stream::TlsStream;

/// A server's TLS: what it offers now, and what clients have made of it.
#[derive(Default)]
pub(crate) struct Tls {
    current: ArcSwapOption<TlsContext>,
    pub counters: Arc<TlsCounters>,
}

/// What SHOW STATUS counts.
#[derive(Debug, Default)]
pub(crate) struct TlsCounters {
    /// Clients that began a handshake.
    pub accepts: AtomicU64,
    /// Handshakes that were finished.
    pub finished_accepts: AtomicU64,
    /// Of these, those that went on with a session of before.
    pub sessions_reused: AtomicU64,
    /// Tickets that clients offered in vain.
    pub sessions_unknown: AtomicU64,
}

impl Tls {
    /// Reads what the variables name at the start; makes certificates where there are none and
    /// none are named.
    ///
    /// # Errors
    /// If a file that somebody has named can't be used, or a list of protocols or ciphers names
    /// none that there is. Where nobody has named one, the server starts without TLS.
    pub fn open(&self, engine: &Engine) -> Result<(), String> {
        let variables = engine.variables();
        let is_named = TlsFiles::NAMES
            .iter()
            .any(|name| !variables.get_text(name).is_empty());
        if !is_named {
            let folder = variables.get_text("datadir");
            if folder.is_empty() {
                return Ok(());
            }
            let makes = variables.get_u64("auto_generate_certs") != 0;
            match certificates::find_or_make(Path::new(folder.as_str()), makes) {
                Ok(true) => {
                    for (variable, file) in certificates::VARIABLES {
                        variables.learn(variable, file);
                    }
                }
                Ok(false) => return Ok(()),
                Err(error) => {
                    tracing::warn!("TLS is off: can't make certificates: {error}");
                    return Ok(());
                }
            }
        }
        match TlsContext::load(&TlsFiles::from_variables(engine), &self.counters) {
            Ok(context) => {
                self.set(engine, context);
                Ok(())
            }
            Err(error) if is_named => Err(error),
            Err(error) => {
                tracing::warn!("TLS is off: {error}");
                Ok(())
            }
        }
    }

    /// Reads the files anew, and the lists as they are now. After an error it is as it was, or
    /// with `disables_on_error` off.
    ///
    /// # Errors
    /// As [`open`](Self::open), whoever has named the files.
    pub fn reload(&self, engine: &Engine, disables_on_error: bool) -> Result<(), String> {
        match TlsContext::load(&TlsFiles::from_variables(engine), &self.counters) {
            Ok(context) => {
                tracing::info!("TLS was set up anew");
                self.set(engine, context);
                Ok(())
            }
            Err(error) => {
                if disables_on_error {
                    tracing::warn!("TLS is off: {error}");
                    self.set(engine, None);
                }
                Err(error)
            }
        }
    }

    /// The names of SHOW STATUS that tell what is offered, with their values.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let context = self.context();
        let files = context.as_ref().map(|context| &context.files);
        let of_files = |which: fn(&TlsFiles) -> &CompactString| {
            files.map_or(String::new(), |files| which(files).to_string())
        };
        let text = |which: fn(&TlsContext) -> String| {
            let context = context.as_deref();
            context.map_or(String::new(), which)
        };
        // SSL_VERIFY_PEER and SSL_VERIFY_CLIENT_ONCE, as OpenSSL's context has them.
        const VERIFY_PEER_ONCE: u8 = 5;
        let verify_mode = match context.as_ref().is_some_and(|it| it.verifies_clients) {
            true => VERIFY_PEER_ONCE,
            false => 0,
        };
        let (cache_mode, cache_timeout_s) = match &context {
            None => ("NONE", 0),
            Some(context) if context.resumes() => ("SERVER", context.resumption_timeout_s()),
            Some(context) => ("OFF", context.resumption_timeout_s()),
        };
        vec![
            ("Current_tls_ca", of_files(|files| &files.ca)),
            ("Current_tls_capath", of_files(|files| &files.capath)),
            ("Current_tls_cert", of_files(|files| &files.cert)),
            ("Current_tls_cipher", of_files(|files| &files.cipher)),
            (
                "Current_tls_ciphersuites",
                of_files(|files| &files.ciphersuites),
            ),
            ("Current_tls_crl", of_files(|files| &files.crl)),
            ("Current_tls_crlpath", of_files(|files| &files.crlpath)),
            ("Current_tls_key", of_files(|files| &files.key)),
            ("Current_tls_version", of_files(|files| &files.version)),
            (
                "Ssl_cipher_list",
                text(|context| context.cipher_list.clone()),
            ),
            ("Ssl_ctx_verify_mode", verify_mode.to_string()),
            ("Ssl_server_not_after", text(TlsContext::not_after)),
            ("Ssl_server_not_before", text(TlsContext::not_before)),
            ("Ssl_session_cache_mode", cache_mode.to_string()),
            ("Ssl_session_cache_timeout", cache_timeout_s.to_string()),
            ("Ssl_verify_mode", verify_mode.to_string()),
        ]
    }

    fn set(&self, engine: &Engine, context: Option<TlsContext>) {
        let have = match &context {
            Some(context) => {
                if let Some(warning) = context.validity_warning() {
                    tracing::warn!("{warning}");
                }
                "YES"
            }
            None => "DISABLED",
        };
        for name in ["have_ssl", "have_openssl"] {
            engine.variables().learn(name, have);
        }
        self.current.store(context.map(Arc::new));
    }

    /// What clients are offered now; `None` if nothing is.
    pub fn context(&self) -> Option<Arc<TlsContext>> {
        self.current.load_full()
    }

    /// Whether clients are offered TLS.
    pub fn is_on(&self) -> bool {
        self.current.load().is_some()
    }
}

impl TlsCounters {
    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
