//! The names in certificates, as REQUIRE SUBJECT and REQUIRE ISSUER compare them.

use porpoise_engine::tls::CertificateNames;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate, X509Name};

/// OpenSSL's short names of what names are made of; for others it prints the identifier.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
    ("1.2.840.113549.1.9.2", "unstructuredName"),
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.15", "businessCategory"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.41", "name"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.46", "dnQualifier"),
    ("2.5.4.65", "pseudonym"),
];

/// A certificate's subject and issuer; `None` if it can't be read.
pub(super) fn names(certificate: &CertificateDer<'_>) -> Option<CertificateNames> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    Some(CertificateNames {
        subject: one_line(certificate.subject()),
        issuer: one_line(certificate.issuer()),
    })
}

/// A name as OpenSSL prints it on one line, which is what MySQL compares with:
/// `/C=SE/ST=Stockholm/O=MySQL/CN=client`. Bytes that aren't printable ASCII are escaped.
fn one_line(name: &X509Name<'_>) -> String {
    let mut line = String::new();
    for attribute in name.iter_attributes() {
        let oid = attribute.attr_type().to_id_string();
        let known = SHORT_NAMES.iter().find(|(known, _)| *known == oid);
        line.push('/');
        line.push_str(known.map_or(&oid, |(_, short)| short));
        line.push('=');
        for &byte in attribute.attr_value().data {
            match byte {
                b' '..=b'~' => line.push(char::from(byte)),
                _ => line.push_str(&format!("\\x{byte:02X}")),
            }
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    #[test]
    fn names_are_printed_as_openssl_prints_them() {
        let mut name = DistinguishedName::new();
        name.push(DnType::CountryName, "SE");
        name.push(DnType::StateOrProvinceName, "Västra");
        name.push(DnType::OrganizationName, "a/b");
        name.push(DnType::CommonName, "ann");
        name.push(DnType::CustomDnType(vec![1, 2, 3, 4]), "x");
        let mut params = CertificateParams::default();
        params.distinguished_name = name;
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let names = names(certificate.der()).unwrap();
        // openssl x509 -subject -nameopt compat
        let printed = "/C=SE/ST=V\\xC3\\xA4stra/O=a/b/CN=ann/1.2.3.4=x";
        assert_eq!(names.subject, printed);
        assert_eq!(names.issuer, printed);
    }
}
