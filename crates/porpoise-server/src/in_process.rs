//! A server for clients in its own process, which are served on their own threads.
//!
//! ```text
//!   client ── write(command) ──► InProcessStream: packet ─► dispatch_command ─► commit on disk ─┐   all of it in write()
//!   client ◄─ read(reply) ────── reply buffer ◄─────────────────────────────────────────────────┘
//! ```
//!
//! To a client an [`InProcessStream`] is a stream as any other: the whole protocol runs over it
//! unchanged, login included. But there is no thread at its other end. What the client writes is
//! carried out before `write` returns, and the reply waits to be read. A statement that has to
//! wait, for a lock or for the disk, makes its caller wait.
//!
//! A client that shares the process shares its memory, so it is asked for no password: every user
//! is let in with all privileges.
//!
//! A large result is made as a whole before its first row is read. A file for LOAD DATA LOCAL is
//! not requested over the stream, as its other end is busy; the client gives a
//! [`LocalInfileReader`] beforehand.

use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use porpoise_engine::{Engine, Error};
use porpoise_protocol::flags::Capabilities;
use porpoise_protocol::frame::{PacketReader, PacketWriter};

use crate::client_session::ClientSession;
use crate::connection::{LOGIN_BYTES_MAX, PacketOutcome};
use crate::error_packet::{wire_error, write_error};
use crate::handshake::{Handshake, HandshakeProgress};
use crate::host_names::ClientHost;
use crate::send_buffer::SendBuffer;
use crate::server_state::ServerState;
use crate::stream::{Peer, Stream};

/// Reply buffers that grew beyond this are freed once they were read.
const KEEP_BYTES_MAX: usize = 1 << 20;

/// Reads a whole file that a statement wants from its client: it takes the file's name, as the
/// statement spells it, and returns the content.
pub type LocalInfileReader = Box<dyn FnMut(&[u8]) -> io::Result<Vec<u8>> + Send>;

/// A server without listeners and threads, for the clients in its own process.
#[derive(Clone)]
pub struct InProcessServer {
    state: Arc<ServerState>,
}

impl InProcessServer {
    /// Serves an engine that this process has open.
    pub fn new(engine: Engine) -> InProcessServer {
        InProcessServer {
            state: Arc::new(ServerState::new(engine)),
        }
    }

    /// A client's end of a new connection, from which the greeting can be read. `files` reads the
    /// files that statements want from the client; without it such a statement fails.
    pub fn connect(&self, files: Option<LocalInfileReader>) -> InProcessStream {
        let mut writer = PacketWriter::new();
        let reply = PendingReply {
            bytes: Vec::new(),
            files,
        };
        let send_buffer = SendBuffer::new(Stream::InProcess(reply), self.state.traffic.clone());
        let phase = match self.state.take_slot() {
            Some(slot) => {
                let id = self.state.engine.next_connection_id();
                let host = ClientHost::Known(Peer::Unix.host().into());
                let layers = Capabilities::empty();
                let handshake = Handshake::begin(id, Peer::Unix, host, slot, layers, &mut writer);
                Phase::Handshake(Box::new(handshake))
            }
            None => {
                let error = Error::too_many_connections();
                write_error(&mut writer, &error, Capabilities::empty());
                Phase::Over
            }
        };
        InProcessStream {
            phase,
            server: self.state.clone(),
            send_buffer,
            reader: PacketReader::new(LOGIN_BYTES_MAX),
            writer,
            read: 0,
        }
    }
}

/// What a statement has sent of its reply before its end, and where it finds its client's files.
#[derive(Default)]
pub(crate) struct PendingReply {
    bytes: Vec<u8>,
    files: Option<LocalInfileReader>,
}

impl PendingReply {
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    /// The content of a client's file.
    pub fn read_file(&mut self, path: &[u8]) -> io::Result<Vec<u8>> {
        match &mut self.files {
            Some(files) => files(path),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl std::fmt::Debug for PendingReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingReply")
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

enum Phase {
    Handshake(Box<Handshake>),
    Session(Box<ClientSession>),
    Over,
}

/// A client's end of a connection in its own process. It never blocks but in `write`, which carries
/// out what is written.
pub struct InProcessStream {
    phase: Phase,
    server: Arc<ServerState>,
    send_buffer: SendBuffer,
    reader: PacketReader,
    writer: PacketWriter,
    /// How much of the reply was read.
    read: usize,
}

impl std::fmt::Debug for InProcessStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcessStream").finish_non_exhaustive()
    }
}

impl InProcessStream {
    fn pending_bytes(&mut self) -> &mut Vec<u8> {
        match &mut self.send_buffer.stream {
            Stream::InProcess(reply) => &mut reply.bytes,
            _ => unreachable!("it was made with a pending reply"),
        }
    }

    /// Carries out every command that has come as a whole.
    fn serve(&mut self) -> io::Result<()> {
        loop {
            if let Phase::Session(client) = &self.phase {
                if client.control().is_connection_killed() {
                    self.phase = Phase::Over;
                } else {
                    self.reader
                        .set_max_allowed_packet(client.max_allowed_packet());
                }
            }
            if let Phase::Over = self.phase {
                return Ok(());
            }
            let packet = match self.reader.next_packet() {
                Ok(Some(packet)) => packet,
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.writer.set_sequence(1);
                    let error = wire_error(error);
                    write_error(&mut self.writer, &error, Capabilities::PROTOCOL_41);
                    self.phase = Phase::Over;
                    return Ok(());
                }
            };
            self.writer.set_sequence(packet.sequence.wrapping_add(1));
            let (writer, send_buffer) = (&mut self.writer, &mut self.send_buffer);
            let outcome = match &mut self.phase {
                Phase::Session(client) => {
                    client.dispatch_command(packet.payload, writer, send_buffer)
                }
                Phase::Handshake(handshake) => {
                    let (payload, stream) = (packet.payload, &send_buffer.stream);
                    match handshake.handle_packet(payload, stream, &self.server, writer) {
                        HandshakeProgress::Continue => PacketOutcome::Reply,
                        HandshakeProgress::Refused | HandshakeProgress::StartTls => {
                            PacketOutcome::Close
                        }
                        HandshakeProgress::Authenticated(login) => {
                            let session = handshake.open_session(*login, &self.server, writer);
                            session.map_or(PacketOutcome::Close, PacketOutcome::Authenticated)
                        }
                    }
                }
                Phase::Over => PacketOutcome::Close,
            };
            match outcome {
                PacketOutcome::Reply => {}
                PacketOutcome::Committing(commit) => commit.wait().map_err(io::Error::other)?,
                PacketOutcome::Authenticated(client) => {
                    self.send_buffer.set_control(Some(client.control().clone()));
                    self.phase = Phase::Session(client);
                }
                PacketOutcome::Quit | PacketOutcome::Close | PacketOutcome::StartTls => {
                    self.phase = Phase::Over;
                }
            }
            if !self.pending_bytes().is_empty() {
                self.send_buffer.send(&mut self.writer)?;
            }
        }
    }
}

impl Write for InProcessStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Phase::Over = self.phase {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.reader.feed(bytes);
        let served = catch_unwind(AssertUnwindSafe(|| self.serve()))
            .unwrap_or_else(|_| Err(io::Error::other("the statement panicked")));
        if served.is_err() {
            self.phase = Phase::Over;
        }
        served.map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for InProcessStream {
    /// Reads what there is of the reply; `Ok(0)` where nothing is, as nothing more can come.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let is_pending = !self.pending_bytes().is_empty();
        let from = self.read;
        let reply = match &self.send_buffer.stream {
            Stream::InProcess(reply) if is_pending => &reply.bytes[..],
            _ => self.writer.bytes(),
        };
        let left = reply.get(from..).unwrap_or_default();
        let count = left.len().min(into.len());
        into[..count].copy_from_slice(&left[..count]);
        if count < left.len() {
            self.read += count;
            return Ok(count);
        }
        self.read = 0;
        if is_pending {
            let bytes = self.pending_bytes();
            bytes.clear();
            if bytes.capacity() > KEEP_BYTES_MAX {
                *bytes = Vec::new();
            }
        } else {
            self.writer.clear();
        }
        Ok(count)
    }
}

impl porpoise_transport::Stream for InProcessStream {
    fn set_read_timeout(&self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn set_write_timeout(&self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn is_private(&self) -> bool {
        true
    }

    fn is_local(&self) -> bool {
        true
    }

    fn kind(&self) -> &'static str {
        "embedded"
    }

    fn shutdown(&self) -> io::Result<()> {
        Ok(())
    }
}
