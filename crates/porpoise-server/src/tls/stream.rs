//! An encrypted connection: a TCP or Unix socket, and TLS over it.
//!
//! ```text
//!   read:   the socket ──► records ──► plain bytes       until the room is full, or the socket has no more
//!   write:  plain bytes ──► records ──► the socket       what it doesn't take waits, and nothing more is taken
//! ```
//!
//! A read that gives less than there was room for has taken all that the socket had, as from a
//! socket itself: so the event loop need not know that bytes may wait here.
//!
//! The handshake is part of reading and writing. It costs the server no more than a statement does,
//! and is served as one: by the event loop, which goes to another thread if it takes long.
//!
//! Before the handshake is over, a client costs little: it may send [`HANDSHAKE_BYTES_MAX`], and
//! what it doesn't read of the server's part is a few kilobytes.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use porpoise_engine::tls::ClientTls;
use rustls::{HandshakeKind, ServerConnection};

use porpoise_tls::suites;

use super::{TlsContext, TlsCounters, distinguished_name};
use crate::layer::Layer;
use crate::stream::Stream;

/// The most that a client may send for its handshake: a chain of certificates has a few kilobytes.
const HANDSHAKE_BYTES_MAX: usize = 32 << 10;

#[derive(Debug)]
pub(crate) struct TlsStream {
    below: Stream,
    tls: ServerConnection,
    counters: Arc<TlsCounters>,
    /// What the client has sent for its handshake.
    handshake_bytes: usize,
    /// What the handshake came to, once it is over.
    client: Option<Arc<ClientTls>>,
    /// The last read filled its room: more may wait here.
    may_have_more: bool,
}

/// The socket, as the library reads and writes it.
struct Socket<'a> {
    stream: &'a mut Stream,
    /// The last read took all that there was.
    drained: bool,
    bytes: usize,
}

impl Read for Socket<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(into)?;
        self.drained = read < into.len();
        self.bytes += read;
        Ok(read)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.stream.write(from)
    }

    fn write_vectored(&mut self, from: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.stream.write_vectored(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl TlsStream {
    /// Begins a handshake over a socket. `first` is what has come of it already.
    ///
    /// # Errors
    /// If these bytes begin no handshake.
    pub fn accept(
        below: Stream,
        context: &TlsContext,
        counters: Arc<TlsCounters>,
        mut first: &[u8],
    ) -> io::Result<TlsStream> {
        TlsCounters::count(&counters.accepts);
        let mut tls = ServerConnection::new(context.config.clone()).map_err(invalid)?;
        tls.set_buffer_limit(None);
        let mut stream = TlsStream {
            below,
            tls,
            counters,
            handshake_bytes: first.len(),
            client: None,
            may_have_more: false,
        };
        while !first.is_empty() {
            stream.tls.read_tls(&mut first)?;
            stream.process()?;
        }
        // No event tells of bytes that are here.
        stream.may_have_more = true;
        Ok(stream)
    }

    /// Who the client is, once the handshake is over.
    pub fn client(&self) -> Option<&Arc<ClientTls>> {
        self.client.as_ref()
    }

    /// Reads plain bytes; `WouldBlock` when there are none, `Ok(0)` when the client has ended the
    /// stream.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        let mut drained = false;
        loop {
            match self.tls.reader().read(&mut into[filled..]) {
                Ok(0) => return self.end_of_stream(filled),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The socket ended without a word. A packet that is cut short doesn't count.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(filled),
                Err(error) => return Err(error),
            }
            self.may_have_more = filled == into.len();
            if self.may_have_more {
                return Ok(filled);
            }
            if drained {
                break;
            }
            drained = match self.receive() {
                Ok(drained) => drained,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
                Err(error) => return Err(error),
            };
        }
        match filled {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            filled => Ok(filled),
        }
    }

    /// The client has said that it sends no more. If bytes came before that, the event loop learns
    /// of the end by an event, as it does of a socket's.
    fn end_of_stream(&mut self, filled: usize) -> io::Result<usize> {
        if filled > 0 {
            self.below.shut_down(Shutdown::Read);
        }
        Ok(filled)
    }

    /// Takes some records from the socket. True if it has no more.
    fn receive(&mut self) -> io::Result<bool> {
        let mut socket = Socket {
            stream: &mut self.below,
            drained: false,
            bytes: 0,
        };
        self.tls.read_tls(&mut socket)?;
        let (drained, bytes) = (socket.drained, socket.bytes);
        if self.client.is_none() {
            self.handshake_bytes += bytes;
            if self.handshake_bytes > HANDSHAKE_BYTES_MAX {
                let why = "the handshake is too long";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
        }
        self.process()?;
        Ok(drained && bytes > 0)
    }

    /// Decrypts what has come, and goes on with the handshake.
    fn process(&mut self) -> io::Result<()> {
        let result = self.tls.process_new_packets();
        let error = result.err().map(invalid);
        if self.tls.wants_write() {
            // Of an error, the client is told.
            match self.flush() {
                Err(blocked) if blocked.kind() == io::ErrorKind::WouldBlock => {}
                result if error.is_none() => result?,
                _ => {}
            }
        }
        if let Some(error) = error {
            return Err(error);
        }
        if self.client.is_none() && !self.tls.is_handshaking() {
            self.finish_handshake();
        }
        Ok(())
    }

    fn finish_handshake(&mut self) {
        TlsCounters::count(&self.counters.finished_accepts);
        let is_resumed = self.tls.handshake_kind() == Some(HandshakeKind::Resumed);
        if is_resumed {
            TlsCounters::count(&self.counters.sessions_reused);
        }
        let suite = self.tls.negotiated_cipher_suite();
        let version = self.tls.protocol_version();
        let certificates = self.tls.peer_certificates().unwrap_or_default();
        self.client = Some(Arc::new(ClientTls {
            version: version.map_or("", suites::protocol_name),
            cipher: suite.map_or("", |suite| suites::name(suite.suite())),
            is_resumed,
            certificate: certificates.first().and_then(distinguished_name::names),
        }));
    }

    /// Records wait for room in the socket.
    pub fn has_pending(&self) -> bool {
        self.tls.wants_write()
    }

    /// Plain bytes may wait here, of which the socket doesn't tell.
    pub fn may_have_more(&self) -> bool {
        self.may_have_more
    }

    /// Tells the client that no more is sent.
    pub fn end(&mut self) {
        if self.tls.is_handshaking() {
            return;
        }
        self.tls.send_close_notify();
        // It is over whether the client hears it or not.
        let _ = self.flush();
    }
}

impl Layer for TlsStream {
    const CHUNK_BYTES: usize = 64 << 10;

    fn encode(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.tls.writer().write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut socket = Socket {
            stream: &mut self.below,
            drained: false,
            bytes: 0,
        };
        while self.tls.wants_write() {
            if self.tls.write_tls(&mut socket)? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    fn below(&self) -> &Stream {
        &self.below
    }

    fn below_mut(&mut self) -> &mut Stream {
        &mut self.below
    }
}

impl TlsCounters {
    /// As SHOW STATUS shows them. Sessions are in their clients' tickets: of those that OpenSSL
    /// would keep in a cache there are none, so none is lost for lack of room. The server renegotiates
    /// nothing and is nobody's client.
    pub fn values(&self) -> [(&'static str, u64); 13] {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let reused = load(&self.sessions_reused);
        [
            ("Ssl_accept_renegotiates", 0),
            ("Ssl_accepts", load(&self.accepts)),
            ("Ssl_callback_cache_hits", 0),
            ("Ssl_client_connects", 0),
            ("Ssl_connect_renegotiates", 0),
            ("Ssl_finished_accepts", load(&self.finished_accepts)),
            ("Ssl_finished_connects", 0),
            ("Ssl_session_cache_hits", reused),
            ("Ssl_session_cache_misses", load(&self.sessions_unknown)),
            ("Ssl_session_cache_overflows", 0),
            ("Ssl_session_cache_size", 0),
            ("Ssl_sessions_reused", reused),
            ("Ssl_used_session_cache_entries", 0),
        ]
    }
}
