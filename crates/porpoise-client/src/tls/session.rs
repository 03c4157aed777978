//! The handshake, and what encrypts afterwards.

use super::{TlsOptions, TlsSession, config, verify};
use crate::Error;
use crate::filter::{Filter, FilteredStream};
use porpoise_protocol::byte_queue::ByteQueue;
use porpoise_tls::suites;
use porpoise_transport::Stream;
use rustls::{ClientConnection, HandshakeKind, ProtocolVersion};
use std::io::{self, Read, Write};
use std::sync::Arc;

/// The room for one read: a record holds 16 KiB.
const READ_BYTES: usize = 20 << 10;

/// How much is encrypted at once: rustls makes records of 16 KiB of it.
const WRITE_BYTES: usize = 64 << 10;

/// Encrypts `stream`, to the server of this `host`, as the options say.
///
/// # Errors
/// [`Error::Tls`]; and [`Error::Io`] for a stream that ended or a server that took too long.
pub(crate) fn start(
    mut stream: Box<dyn Stream>,
    host: &str,
    options: &TlsOptions,
) -> Result<(Box<dyn Stream>, TlsSession), Error> {
    let config = config::of(options)?;
    let name = verify::server_name(host, options)?;
    let mut connection = ClientConnection::new(Arc::clone(&config), name).map_err(refused)?;
    while connection.is_handshaking() {
        match connection.complete_io(&mut stream) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    let certificates = connection.peer_certificates();
    let certificate = certificates.and_then(<[_]>::first);
    let session = TlsSession {
        version: suites::protocol_name(
            connection
                .protocol_version()
                .unwrap_or(ProtocolVersion::Unknown(0)),
        ),
        cipher: connection
            .negotiated_cipher_suite()
            .map_or("", |suite| suites::name(suite.suite())),
        is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        certificate: certificate.map_or(Vec::new(), |certificate| certificate.to_vec()),
    };
    if !verify::has_fingerprint(&session.certificate, &options.fingerprints) {
        return Err(Error::Tls(
            "Fingerprint verification of server certificate failed".into(),
        ));
    }
    let filter = Encryption {
        connection,
        received: ByteQueue::default(),
        readable: 0,
    };
    Ok((Box::new(FilteredStream::new(stream, filter)), session))
}

fn refused(error: rustls::Error) -> Error {
    Error::Tls(verify::words(&error))
}

fn failed(error: io::Error) -> Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(error) => Error::Tls(verify::words(error)),
        None => Error::Io(error),
    }
}

fn broken(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[derive(Debug)]
struct Encryption {
    connection: ClientConnection,
    /// What came and rustls hasn't taken.
    received: ByteQueue,
    /// How many decrypted bytes rustls has.
    readable: usize,
}

impl Encryption {
    /// Has rustls decrypt some of what came, as long as nothing of it is there to be read.
    fn decrypt(&mut self) -> io::Result<()> {
        while self.readable == 0 && !self.received.is_empty() {
            let mut unread = self.received.unread();
            let count = self.connection.read_tls(&mut unread)?;
            if count == 0 {
                return Ok(());
            }
            self.received.take(count);
            let state = self.connection.process_new_packets().map_err(broken)?;
            self.readable = state.plaintext_bytes_to_read();
        }
        Ok(())
    }
}

impl Filter for Encryption {
    fn spare(&mut self) -> &mut [u8] {
        self.received.room(READ_BYTES)
    }

    fn filled(&mut self, count: usize) {
        self.received.filled(count);
    }

    fn take_in(&mut self, plain: &mut ByteQueue) -> io::Result<bool> {
        if self.readable == 0 {
            // What came along with the handshake's end counts as well.
            let state = self.connection.process_new_packets().map_err(broken)?;
            self.readable = state.plaintext_bytes_to_read();
        }
        self.decrypt()?;
        if self.readable == 0 {
            return Ok(false);
        }
        let room = &mut plain.room(self.readable)[..self.readable];
        self.connection.reader().read_exact(room)?;
        plain.filled(self.readable);
        self.readable = 0;
        // So that what is left is known to be less than a record.
        self.decrypt()?;
        Ok(true)
    }

    fn has_more(&self) -> bool {
        self.readable > 0
    }

    fn put_out(&mut self, from: &[u8], outgoing: &mut ByteQueue) -> io::Result<usize> {
        let from = &from[..from.len().min(WRITE_BYTES)];
        let count = self.connection.writer().write(from)?;
        while self.connection.wants_write() {
            self.connection.write_tls(&mut Appended(outgoing))?;
        }
        Ok(count)
    }

    fn encrypts(&self) -> bool {
        true
    }
}

struct Appended<'a>(&'a mut ByteQueue);

impl Write for Appended<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.feed(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
