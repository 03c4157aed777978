//! The way in without a way: a client in this process, served on its own thread.
//!
//! ```text
//!   client ── write(command) ──► Visitor: packet ─► Client::obey ─► commit on disk ─┐      all of it inside write()
//!   client ◄─ read(reply) ────── reply buffer ◄─────────────────────────────────────┘
//! ```
//!
//! A [`Visitor`] is a stream as any other to a client: the whole protocol runs over it unchanged, login included. But
//! there is no thread at its other end. What the client writes is carried out before `write` returns, and
//! the reply waits to be read. A statement that has to wait, for a lock or for the disk, makes its caller wait.
//!
//! Who shares the process shares its memory, so nobody is asked for a password: every user is let in with all rights.
//!
//! A large result is made as a whole before its first row is read. A file for LOAD DATA LOCAL is not asked for over the
//! stream, as its other end is busy; the client gives a [`FileSource`] beforehand.

use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use porpoise_engine::{Engine, Error};
use porpoise_protocol::flags::Capabilities;
use porpoise_protocol::frame::{PacketReader, PacketWriter};

use crate::client::Client;
use crate::connection::{Step, wire_error, write_error};
use crate::newcomer::{Newcomer, Progress};
use crate::outlet::Outlet;
use crate::server::Shared;
use crate::stream::{Peer, Stream};

/// What a login may take before anybody has said who they are.
const LOGIN_BYTES_MAX: usize = 1 << 20;

/// Reply buffers that grew beyond this are given back once they were read.
const KEEP_BYTES_MAX: usize = 1 << 20;

/// Gives the content of a file that a statement wants from its client.
pub type FileSource = Box<dyn FnMut(&[u8]) -> io::Result<Vec<u8>> + Send>;

/// A server without doors and threads, for the clients in its own process.
#[derive(Clone)]
pub struct Inside {
    shared: Arc<Shared>,
}

impl Inside {
    /// Of an engine that this process has open.
    pub fn new(engine: Engine) -> Inside {
        Inside {
            shared: Arc::new(Shared::new(engine)),
        }
    }

    /// A client's end of a new connection; the greeting is there to be read.
    pub fn connect(&self, files: Option<FileSource>) -> Visitor {
        let mut writer = PacketWriter::new();
        let outlet = Outlet::new(
            Stream::Inside(Pocket {
                bytes: Vec::new(),
                files,
            }),
            self.shared.traffic.clone(),
        );
        let phase = match self.shared.take_seat() {
            Some(seat) => {
                let id = self.shared.engine.next_connection_id();
                Phase::Newcomer(Box::new(Newcomer::greet(id, Peer::Unix, seat, &mut writer)))
            }
            None => {
                write_error(
                    &mut writer,
                    &Error::too_many_connections(),
                    Capabilities::empty(),
                );
                Phase::Over
            }
        };
        Visitor {
            phase,
            server: self.shared.clone(),
            outlet,
            reader: PacketReader::new(LOGIN_BYTES_MAX),
            writer,
            read: 0,
        }
    }
}

/// What a statement has sent of its reply before its end, and where it finds its client's files.
#[derive(Default)]
pub(crate) struct Pocket {
    bytes: Vec<u8>,
    files: Option<FileSource>,
}

impl Pocket {
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    pub fn file(&mut self, path: &[u8]) -> io::Result<Vec<u8>> {
        match &mut self.files {
            Some(files) => files(path),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl std::fmt::Debug for Pocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pocket")
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

enum Phase {
    Newcomer(Box<Newcomer>),
    Client(Box<Client>),
    Over,
}

/// A client's end of a connection in its own process.
pub struct Visitor {
    phase: Phase,
    server: Arc<Shared>,
    outlet: Outlet,
    reader: PacketReader,
    writer: PacketWriter,
    /// How much of the reply was read.
    read: usize,
}

impl std::fmt::Debug for Visitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Visitor").finish_non_exhaustive()
    }
}

impl Visitor {
    fn pocket(&mut self) -> &mut Vec<u8> {
        match &mut self.outlet.stream {
            Stream::Inside(pocket) => &mut pocket.bytes,
            _ => unreachable!("a visitor's outlet is its pocket"),
        }
    }

    /// Carries out every command that is whole.
    fn serve(&mut self) -> io::Result<()> {
        loop {
            if let Phase::Client(client) = &self.phase {
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
                    write_error(
                        &mut self.writer,
                        &wire_error(error),
                        Capabilities::PROTOCOL_41,
                    );
                    self.phase = Phase::Over;
                    return Ok(());
                }
            };
            self.writer.set_sequence(packet.sequence.wrapping_add(1));
            let step = match &mut self.phase {
                Phase::Client(client) => {
                    client.obey(packet.payload, &mut self.writer, &mut self.outlet)
                }
                Phase::Newcomer(newcomer) => {
                    match newcomer.answer(
                        packet.payload,
                        &self.outlet.stream,
                        &self.server,
                        &mut self.writer,
                    ) {
                        Progress::Continue => Step::Reply,
                        Progress::Refused => Step::Close,
                        Progress::Admitted(login) => {
                            match newcomer.sit_down(*login, &self.server, &mut self.writer) {
                                Some(client) => Step::Admitted(client),
                                None => Step::Close,
                            }
                        }
                    }
                }
                Phase::Over => Step::Close,
            };
            match step {
                Step::Reply => {}
                Step::Committing(commit) => commit.wait().map_err(io::Error::other)?,
                Step::Admitted(client) => {
                    self.outlet.set_control(client.control().clone());
                    self.phase = Phase::Client(client);
                }
                Step::Quit | Step::Close => self.phase = Phase::Over,
            }
            if !self.pocket().is_empty() {
                self.outlet.send(&mut self.writer)?;
            }
        }
    }
}

impl Write for Visitor {
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

impl Read for Visitor {
    /// What there is of the reply; `Ok(0)` where nothing is, as nothing more can come.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let in_pocket = !self.pocket().is_empty();
        let from = self.read;
        let reply = match &self.outlet.stream {
            Stream::Inside(pocket) if in_pocket => &pocket.bytes[..],
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
        if in_pocket {
            let pocket = self.pocket();
            pocket.clear();
            if pocket.capacity() > KEEP_BYTES_MAX {
                *pocket = Vec::new();
            }
        } else {
            self.writer.clear();
        }
        Ok(count)
    }
}

impl porpoise_transport::Stream for Visitor {
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
