//! What accounts require of their clients' connections: REQUIRE.
//!
//! Source: MySQL 8.4 Reference Manual, 15.7.1.3 "CREATE USER Statement", "CREATE USER SSL/TLS
//! Options".

use serde::{Deserialize, Serialize};

/// How a client's connection is encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientTls {
    /// `TLSv1.3`.
    pub version: &'static str,
    /// The cipher suite, by OpenSSL's name.
    pub cipher: &'static str,
    /// The handshake went on with a session of before.
    pub is_resumed: bool,
    /// The client has shown a certificate, which was verified.
    pub certificate: Option<CertificateNames>,
}

/// The names in a certificate, each on one line: `/C=SE/O=MySQL/CN=client`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateNames {
    /// Whom it is of.
    pub subject: String,
    /// Who has signed it.
    pub issuer: String,
}

/// What an account requires.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TlsRequirement {
    /// `REQUIRE NONE`
    #[default]
    None,
    /// `REQUIRE SSL`: an encrypted connection.
    Ssl,
    /// `REQUIRE X509`: also a certificate that is verified.
    X509,
    /// As X509, and what it names; an empty text is for nothing.
    Specified {
        /// The connection's cipher suite.
        cipher: String,
        /// The certificate's issuer.
        issuer: String,
        /// The certificate's subject.
        subject: String,
    },
}

impl TlsRequirement {
    /// Whether a client may log in whose connection is encrypted so, or isn't.
    pub fn is_met(&self, tls: Option<&ClientTls>) -> bool {
        let (requirement, tls) = match (self, tls) {
            (Self::None, _) => return true,
            (_, None) => return false,
            (requirement, Some(tls)) => (requirement, tls),
        };
        match requirement {
            Self::None | Self::Ssl => true,
            Self::X509 => tls.certificate.is_some(),
            Self::Specified {
                cipher,
                issuer,
                subject,
            } => {
                let is = |required: &str, actual: &str| required.is_empty() || required == actual;
                let names_are_right = match &tls.certificate {
                    Some(names) => is(issuer, &names.issuer) && is(subject, &names.subject),
                    // A cipher alone asks for no certificate.
                    None => issuer.is_empty() && subject.is_empty(),
                };
                names_are_right && is(cipher, tls.cipher)
            }
        }
    }

    /// `mysql.user`'s `ssl_cipher`, `x509_issuer` and `x509_subject`.
    pub fn specified(&self) -> [&str; 3] {
        match self {
            Self::Specified {
                cipher,
                issuer,
                subject,
            } => [cipher, issuer, subject],
            Self::None | Self::Ssl | Self::X509 => [""; 3],
        }
    }

    /// What SHOW CREATE USER prints behind REQUIRE; `quote` makes a literal of a text.
    pub fn clause(&self, quote: impl Fn(&str) -> String) -> String {
        match self {
            Self::None => "NONE".to_string(),
            Self::Ssl => "SSL".to_string(),
            Self::X509 => "X509".to_string(),
            Self::Specified {
                cipher,
                issuer,
                subject,
            } => {
                let named = [("SUBJECT", subject), ("ISSUER", issuer), ("CIPHER", cipher)];
                let named = named.iter().filter(|(_, text)| !text.is_empty());
                let clauses = named.map(|(word, text)| format!("{word} {}", quote(text)));
                clauses.collect::<Vec<_>>().join(" ")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tls(subject: Option<&str>) -> ClientTls {
        ClientTls {
            version: "TLSv1.3",
            cipher: "TLS_AES_128_GCM_SHA256",
            is_resumed: false,
            certificate: subject.map(|subject| CertificateNames {
                subject: subject.to_string(),
                issuer: "/CN=ca".to_string(),
            }),
        }
    }

    fn specified(cipher: &str, issuer: &str, subject: &str) -> TlsRequirement {
        TlsRequirement::Specified {
            cipher: cipher.to_string(),
            issuer: issuer.to_string(),
            subject: subject.to_string(),
        }
    }

    #[test]
    fn each_requirement_asks_for_more() {
        let (plain, anonymous, ann) = (None, tls(None), tls(Some("/CN=ann")));
        let meets = |requirement: &TlsRequirement| {
            [plain, Some(&anonymous), Some(&ann)].map(|tls| requirement.is_met(tls))
        };
        assert_eq!(meets(&TlsRequirement::None), [true, true, true]);
        assert_eq!(meets(&TlsRequirement::Ssl), [false, true, true]);
        assert_eq!(meets(&TlsRequirement::X509), [false, false, true]);
        let cipher = "TLS_AES_128_GCM_SHA256";
        assert_eq!(meets(&specified(cipher, "", "")), [false, true, true]);
        assert_eq!(meets(&specified("other", "", "")), [false; 3]);
        assert_eq!(meets(&specified("", "/CN=ca", "")), [false, false, true]);
        assert_eq!(meets(&specified("", "", "/CN=bob")), [false; 3]);
    }
}
