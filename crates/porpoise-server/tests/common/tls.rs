//! A client that encrypts.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use porpoise_protocol::flags::Capabilities;
use porpoise_protocol::frame::PacketWriter;
use porpoise_protocol::handshake::SslRequest;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};

use super::{RawClient, Wire};

/// What it sends after its request for TLS, and receives, is encrypted.
struct TlsWire {
    below: Box<dyn Wire>,
    tls: ClientConnection,
}

impl Read for TlsWire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        rustls::Stream::new(&mut self.tls, &mut self.below).read(into)
    }
}

impl Write for TlsWire {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        rustls::Stream::new(&mut self.tls, &mut self.below).write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        rustls::Stream::new(&mut self.tls, &mut self.below).flush()
    }
}

impl Wire for TlsWire {
    fn set_timeout(&self, timeout: Duration) {
        self.below.set_timeout(timeout);
    }
}

/// Asks for TLS and begins it. The handshake goes on with what is written and read next.
pub fn start(mut client: RawClient, config: Arc<ClientConfig>) -> RawClient {
    request(&mut client);
    let name = "localhost".try_into().unwrap();
    let tls = ClientConnection::new(config, name).unwrap();
    let below = client.wire;
    client.wire = Box::new(TlsWire { below, tls });
    client
}

/// Asks for TLS.
pub fn request(client: &mut RawClient) {
    let mut writer = PacketWriter::with_buffer(Vec::new(), 1);
    SslRequest {
        capabilities: super::CAPABILITIES | Capabilities::SSL,
        max_packet_bytes: 1 << 24,
        collation: 45,
    }
    .write(&mut writer);
    client.wire.write_all(writer.bytes()).unwrap();
}

/// What a client knows that verifies the server whose certificates lie in `folder`. With
/// `with_certificate` it has the client's certificate of there.
pub fn client_config(
    folder: &Path,
    versions: &[&'static SupportedProtocolVersion],
    with_certificate: bool,
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(folder.join("ca.pem")).unwrap();
    roots.add(ca).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots);
    Arc::new(match with_certificate {
        true => {
            let certificate = CertificateDer::from_pem_file(folder.join("client-cert.pem"));
            let key = PrivateKeyDer::from_pem_file(folder.join("client-key.pem"));
            let chain = vec![certificate.unwrap()];
            builder.with_client_auth_cert(chain, key.unwrap()).unwrap()
        }
        false => builder.with_no_client_auth(),
    })
}
