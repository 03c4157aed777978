//! What both ends of an encrypted connection need beside rustls.
//!
//! | module | holds |
//! | --- | --- |
//! | [`suites`] | cipher suites and protocols, by the names that OpenSSL and MySQL have for them |
//! | [`pem`] | certificates, keys and revocation lists in files |

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod pem;
pub mod suites;
