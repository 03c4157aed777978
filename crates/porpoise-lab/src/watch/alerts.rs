//! Who is told of findings: programs over HTTP, people by mail.
//!
//! ```text
//! findings ──► those that this receiver hasn't got ──► POST, or a mail ──► alerts.json
//!                        ▲                                                     │
//!                        └──────────── what each has got already ◄─────────────┘
//! ```
//!
//! A receiver gets each finding once. What couldn't be delivered isn't written down, and so it is
//! delivered by the next call. A receiver that is new gets all findings at first.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::fmt::{self, Write};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lettre::message::header::ContentType;
use lettre::message::{Attachment, Mailbox, MultiPart, SinglePart};
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{Message, SmtpTransport, Transport};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ureq::Agent;
use ureq::http::Uri;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::findings::{Finding, Findings, short};
use super::kept;
use crate::Error;

/// Where it stands what each receiver has got.
const FILE: &str = "alerts.json";
/// How long a receiver has to take an alert.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of a receiver's refusal that are told.
const REFUSAL_BYTES: u64 = 500;

/// Somebody who is told of findings.
#[derive(Clone)]
pub enum Receiver {
    /// A program, by an HTTP request.
    Webhook(Uri),
    /// People, by mail.
    Mail(Mail),
}

/// A mail's way.
#[derive(Clone)]
pub struct Mail {
    server: String,
    from: Mailbox,
    to: Vec<Mailbox>,
}

impl Receiver {
    /// Whoever takes `POST` requests at a URL.
    pub fn webhook(url: &str) -> Result<Self, Error> {
        let uri = url.parse().ok().filter(|uri: &Uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()
        });
        // It isn't repeated: chats' URLs are secrets.
        let why = "the webhook's URL isn't one that begins with http:// or https:// and a host";
        uri.map(Self::Webhook)
            .ok_or_else(|| Error::Plan(why.into()))
    }

    /// Whoever has these addresses, by a server's URL: `smtp://host:25`,
    /// `smtp://user:password@host:587`, `smtps://user:password@host`; [`Encryption`] has what it says
    /// of that.
    pub fn mail(server: &str, from: &str, to: &[String]) -> Result<Self, Error> {
        let address = |text: &str| -> Result<Mailbox, Error> {
            text.parse()
                .map_err(|error| Error::Plan(format!("the mail address '{text}': {error}")))
        };
        let mail = Mail {
            server: server.to_owned(),
            from: address(from)?,
            to: to.iter().map(|to| address(to)).collect::<Result<_, _>>()?,
        };
        mail.transport()?;
        Ok(Self::Mail(mail))
    }

    /// How `alerts.json` knows it: without what is secret.
    fn key(&self) -> String {
        match self {
            Self::Webhook(uri) => {
                let digest = Sha256::digest(uri.to_string());
                let digest = digest.iter().take(8).fold(String::new(), |mut text, byte| {
                    let _ = write!(text, "{byte:02x}");
                    text
                });
                format!("{self} {digest}")
            }
            Self::Mail(_) => self.to_string(),
        }
    }

    fn send(&self, alert: &Alert<'_>) -> Result<(), String> {
        match self {
            Self::Webhook(uri) => post(uri, alert),
            Self::Mail(mail) => mail.send(alert),
        }
    }
}

impl fmt::Display for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Webhook(uri) => {
                let host = uri.host().unwrap_or_default();
                write!(f, "webhook {host}")?;
                uri.port().map_or(Ok(()), |port| write!(f, ":{port}"))
            }
            Self::Mail(mail) => {
                let to: Vec<String> = mail.to.iter().map(|to| to.email.to_string()).collect();
                write!(f, "mail to {}", to.join(", "))
            }
        }
    }
}

/// What a receiver gets, and what a file of findings has.
#[derive(Serialize)]
struct Alert<'a> {
    /// In words, a line for each: what chats show.
    text: String,
    experiment: &'a str,
    /// The page with the history.
    page: &'a Path,
    changes: Vec<&'a Finding>,
    failures: Vec<Failure<'a>>,
}

#[derive(Clone, Copy, Serialize)]
struct Failure<'a> {
    revision: &'a str,
    why: &'a str,
}

impl<'a> Alert<'a> {
    fn of(
        experiment: &'a str,
        page: &'a Path,
        changes: Vec<&'a Finding>,
        failures: Vec<&'a (String, String)>,
    ) -> Self {
        let failure = |(revision, why): &'a (String, String)| Failure { revision, why };
        let mut alert = Self {
            text: String::new(),
            experiment,
            page,
            changes,
            failures: failures.into_iter().map(failure).collect(),
        };
        let mut text = alert.head();
        for change in &alert.changes {
            let _ = write!(text, "\n{change}");
        }
        for Failure { revision, why } in &alert.failures {
            let _ = write!(text, "\nfailed: {}: {why}", short(revision));
        }
        alert.text = text;
        alert
    }

    fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.failures.is_empty()
    }

    /// How many there are of what.
    fn head(&self) -> String {
        let worse = self.changes.iter().filter(|change| !change.is_better);
        let worse = worse.count();
        format!(
            "{}: {worse} worse, {} better, {} failed",
            self.experiment,
            self.changes.len() - worse,
            self.failures.len()
        )
    }
}

fn post(uri: &Uri, alert: &Alert<'_>) -> Result<(), String> {
    let system = rustls_native_certs::load_native_certs().certs;
    let system = system
        .iter()
        .map(|one| Certificate::from_der(one).to_owned());
    let roots = RootCerts::from(system);
    let roots = TlsConfig::builder().root_certs(roots).build();
    let agent: Agent = Agent::config_builder()
        .tls_config(roots)
        .timeout_global(Some(TIMEOUT))
        .http_status_as_error(false)
        .user_agent(concat!("porpoise-lab/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let body = serde_json::to_string(alert).map_err(|error| error.to_string())?;
    let answer = agent.post(uri).content_type("application/json").send(body);
    let mut answer = answer.map_err(|error| error.to_string())?;
    if answer.status().is_success() {
        return Ok(());
    }
    let words = answer.body_mut().with_config().limit(REFUSAL_BYTES);
    let words = words.lossy_utf8(true).read_to_string().unwrap_or_default();
    Err(format!("it answered {}: {}", answer.status(), words.trim()))
}

impl Mail {
    fn transport(&self) -> Result<SmtpTransport, Error> {
        let failed =
            |error: &dyn fmt::Display| Error::Plan(format!("the mail server's URL: {error}"));
        let (url, encryption) = Encryption::of(&self.server);
        let transport = SmtpTransport::from_url(url).map_err(|error| failed(&error))?;
        let parameters = |is_checked: bool| {
            TlsParameters::builder(host_of(url).to_owned())
                .dangerous_accept_invalid_certs(!is_checked)
                .dangerous_accept_invalid_hostnames(!is_checked)
                .build()
                .map_err(|error| failed(&error))
        };
        let transport = match encryption {
            Encryption::AsUrlSays => transport,
            Encryption::WhereOffered => transport.tls(Tls::Opportunistic(parameters(false)?)),
            Encryption::Required => transport.tls(Tls::Required(parameters(true)?)),
        };
        Ok(transport.timeout(Some(TIMEOUT)).build())
    }

    fn send(&self, alert: &Alert<'_>) -> Result<(), String> {
        let message = self.message(alert)?;
        let transport = self.transport().map_err(|error| error.to_string())?;
        let sent = transport.send(&message);
        sent.map(drop).map_err(|error| match is_late(&error) {
            true => format!("it hasn't answered for {} seconds", TIMEOUT.as_secs()),
            false => error.to_string(),
        })
    }

    /// The findings as text, the history's page beside them.
    fn message(&self, alert: &Alert<'_>) -> Result<Message, String> {
        let mut message = Message::builder().from(self.from.clone());
        for to in &self.to {
            message = message.to(to.clone());
        }
        let text = SinglePart::plain(format!("{}\n\n{}\n", alert.text, alert.page.display()));
        let mut parts = MultiPart::mixed().singlepart(text);
        if let Ok(page) = std::fs::read(alert.page) {
            let page = Attachment::new("history.html".into()).body(page, ContentType::TEXT_HTML);
            parts = parts.singlepart(page);
        }
        message
            .subject(alert.head())
            .multipart(parts)
            .map_err(|error| error.to_string())
    }
}

/// Whether the way to a mail server is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encryption {
    /// `smtps://`, or a `tls=` of the URL.
    AsUrlSays,
    /// By STARTTLS where the server offers it, whatever its certificate, as mail servers do among
    /// themselves (RFC 7435): the alternative is none.
    WhereOffered,
    /// By STARTTLS, with a certificate that is trusted: a password would go over the network.
    Required,
}

impl Encryption {
    /// What holds for a URL, and the URL as the library takes it: `tls=none` is ours.
    fn of(url: &str) -> (&str, Self) {
        match url.split_once('?') {
            Some((rest, "tls=none")) if rest.starts_with("smtp://") => (rest, Self::AsUrlSays),
            Some(_) => (url, Self::AsUrlSays),
            None if !url.starts_with("smtp://") => (url, Self::AsUrlSays),
            None => {
                let host = host_of(url);
                let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
                let is_local =
                    host == "localhost" || address.is_ok_and(|address| address.is_loopback());
                match user_of(url).is_some() && !is_local {
                    true => (url, Self::Required),
                    false => (url, Self::WhereOffered),
                }
            }
        }
    }
}

/// `user:password@host:port` of a URL.
fn authority_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

fn user_of(url: &str) -> Option<&str> {
    authority_of(url).rsplit_once('@').map(|(user, _)| user)
}

fn host_of(url: &str) -> &str {
    let authority = authority_of(url);
    let place = authority.rsplit_once('@').map_or(authority, |(_, at)| at);
    match place.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => place,
    }
}

/// Whether a mail server didn't answer in time: a read that takes too long ends like one that would
/// block.
fn is_late(error: &lettre::transport::smtp::Error) -> bool {
    let mut source = error.source();
    while let Some(inner) = source {
        if let Some(io) = inner.downcast_ref::<io::Error>() {
            return matches!(
                io.kind(),
                io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock
            );
        }
        source = inner.source();
    }
    false
}

/// What a receiver has got.
#[derive(Default, Serialize, Deserialize)]
struct Got {
    changes: Vec<Finding>,
    failures: Vec<(String, String)>,
}

impl Findings {
    /// Tells each receiver what it hasn't got yet. Returned is whom it couldn't be delivered to, and
    /// why; the next call tells them.
    pub fn alert(
        &self,
        experiment: &str,
        folder: &Path,
        page: &Path,
        receivers: &[Receiver],
    ) -> Result<Vec<(Receiver, String)>, Error> {
        let path = folder.join(FILE);
        let mut all: BTreeMap<String, Got> = kept::read(&path)?;
        let page: PathBuf = page.canonicalize().unwrap_or_else(|_| page.to_owned());
        let mut undelivered = Vec::new();
        for receiver in receivers {
            let got = all.entry(receiver.key()).or_default();
            let alert = Alert::of(
                experiment,
                &page,
                self.new_changes(&got.changes),
                self.new_failures(&got.failures),
            );
            if alert.is_empty() {
                continue;
            }
            match receiver.send(&alert) {
                Ok(()) => {
                    let changes: Vec<Finding> = alert.changes.into_iter().cloned().collect();
                    let failures = self.new_failures(&got.failures);
                    let failures: Vec<_> = failures.into_iter().cloned().collect();
                    got.changes.extend(changes);
                    got.failures.extend(failures);
                    // At once: whoever has it gets it once, whatever happens to the others.
                    kept::write(&path, &all)?;
                }
                Err(why) => undelivered.push((receiver.clone(), why)),
            }
        }
        Ok(undelivered)
    }

    /// All findings as JSON, in the form that webhooks get.
    pub fn json(&self, experiment: &str, page: &Path) -> String {
        let page = page.canonicalize().unwrap_or_else(|_| page.to_owned());
        let changes = self.changes.iter().collect();
        let alert = Alert::of(experiment, &page, changes, self.failures.iter().collect());
        serde_json::to_string_pretty(&alert).expect("texts and numbers are JSON") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_crosses_no_network_unencrypted_unless_the_url_says_so() {
        for (url, encryption) in [
            ("smtp://localhost", Encryption::WhereOffered),
            ("smtp://mail.example.com:25", Encryption::WhereOffered),
            (
                "smtp://user:p%40ss@mail.example.com:587",
                Encryption::Required,
            ),
            (
                "smtp://user:a@b@127.0.0.1.example.com/",
                Encryption::Required,
            ),
            (
                "smtp://user:127.0.0.1@mail.example.com",
                Encryption::Required,
            ),
            ("smtp://user:pass@127.0.0.1:2525", Encryption::WhereOffered),
            ("smtp://user:pass@[::1]:25", Encryption::WhereOffered),
            ("smtp://user:pass@[2001:db8::1]", Encryption::Required),
            (
                "smtp://user:pass@h?tls=opportunistic",
                Encryption::AsUrlSays,
            ),
            ("smtps://user:pass@h", Encryption::AsUrlSays),
        ] {
            assert_eq!(Encryption::of(url), (url, encryption), "{url}");
        }
        assert_eq!(
            Encryption::of("smtp://user:pass@h?tls=none"),
            ("smtp://user:pass@h", Encryption::AsUrlSays)
        );
        assert!(Receiver::mail("smtp://u:p@h", "a@example.com", &["b@example.com".into()]).is_ok());
    }
}
