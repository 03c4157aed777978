//! A client that can do what no well-behaved client does: send half a packet, not read, vanish.

#![allow(dead_code)]

pub mod test_server;
pub mod tls;

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use porpoise_protocol::auth;
use porpoise_protocol::compressed::{Algorithm, Compressor, Decompressor};
use porpoise_protocol::flags::{Capabilities, Status};
use porpoise_protocol::frame::{PacketReader, PacketWriter};
use porpoise_protocol::handshake::{AuthStep, Greeting, Login};
use porpoise_protocol::reply::{ErrPacket, OkPacket, is_end_of_rows, parse_end_of_rows};
use porpoise_protocol::row::TextRow;
use porpoise_transport::shared_memory::{BASE_NAME, path_of};
use porpoise_transport::{SharedMemory, Stream};
use rustls::ClientConfig;

/// Waits until `what` is so, or fails.
#[track_caller]
pub fn eventually(mut what: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !what() {
        assert!(Instant::now() < end, "it never came true");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The clients that are connected, a row each.
pub const CLIENTS: &str = "SELECT id FROM information_schema.processlist WHERE command <> 'Daemon'";

/// Which of the two test programs this is.
pub const OVER_SHARED_MEMORY: bool =
    matches!(env!("CARGO_CRATE_NAME").as_bytes(), b"shared_memory");

pub trait Wire: Read + Write + Send {
    fn set_timeout(&self, timeout: Duration);
}

impl Wire for UnixStream {
    fn set_timeout(&self, timeout: Duration) {
        self.set_read_timeout(Some(timeout)).unwrap();
    }
}

impl Wire for TcpStream {
    fn set_timeout(&self, timeout: Duration) {
        self.set_read_timeout(Some(timeout)).unwrap();
    }
}

impl Wire for SharedMemory {
    fn set_timeout(&self, timeout: Duration) {
        self.set_read_timeout(Some(timeout)).unwrap();
    }
}

pub struct RawClient {
    pub wire: Box<dyn Wire>,
    /// Encrypts before the login.
    pub tls: Option<Arc<ClientConfig>>,
    /// Packets go in frames, after the login.
    pub frames: Option<(Compressor, Decompressor)>,
    pub reader: PacketReader,
    pub capabilities: Capabilities,
    pub connection_id: u32,
    secure: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    Ok {
        affected: u64,
        status: Status,
    },
    Rows {
        rows: Vec<Vec<Option<String>>>,
        status: Status,
    },
    Error(u16, String),
}

impl Reply {
    pub fn value(&self) -> &str {
        match self {
            Reply::Rows { rows, .. } => rows[0][0].as_deref().unwrap_or("NULL"),
            other => panic!("no rows: {other:?}"),
        }
    }

    pub fn rows(&self) -> &[Vec<Option<String>>] {
        match self {
            Reply::Rows { rows, .. } => rows,
            other => panic!("no rows: {other:?}"),
        }
    }

    pub fn error_number(&self) -> u16 {
        match self {
            Reply::Error(number, _) => *number,
            other => panic!("no error: {other:?}"),
        }
    }

    pub fn is_ok(&self) -> bool {
        matches!(self, Reply::Ok { .. })
    }
}

pub const CAPABILITIES: Capabilities = Capabilities::PROTOCOL_41
    .union(Capabilities::SECURE_CONNECTION)
    .union(Capabilities::PLUGIN_AUTH)
    .union(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA)
    .union(Capabilities::TRANSACTIONS)
    .union(Capabilities::MULTI_STATEMENTS)
    .union(Capabilities::MULTI_RESULTS)
    .union(Capabilities::DEPRECATE_EOF);

impl RawClient {
    /// Over a Unix socket, or over the shared memory beside it.
    pub fn local(path: &Path) -> io::Result<RawClient> {
        let wire: Box<dyn Wire> = if OVER_SHARED_MEMORY {
            let socket = UnixStream::connect(path_of(path, BASE_NAME))?;
            Box::new(SharedMemory::accept(socket, None)?)
        } else {
            Box::new(UnixStream::connect(path)?)
        };
        Ok(RawClient::over(wire, true))
    }

    pub fn tcp(address: std::net::SocketAddr) -> io::Result<RawClient> {
        Ok(RawClient::over(
            Box::new(TcpStream::connect(address)?),
            false,
        ))
    }

    pub fn over(wire: Box<dyn Wire>, secure: bool) -> RawClient {
        wire.set_timeout(Duration::from_secs(20));
        RawClient {
            wire,
            tls: None,
            frames: None,
            reader: PacketReader::new(1 << 30),
            capabilities: CAPABILITIES,
            connection_id: 0,
            secure,
        }
    }

    pub fn send(&mut self, sequence: u8, payload: &[u8]) -> io::Result<()> {
        let mut writer = PacketWriter::with_buffer(Vec::new(), sequence);
        writer.write(payload);
        self.send_bytes(writer.bytes())
    }

    /// Sends packets.
    pub fn send_bytes(&mut self, packets: &[u8]) -> io::Result<()> {
        let Some((compressor, _)) = &mut self.frames else {
            return self.wire.write_all(packets);
        };
        let mut frames = Vec::new();
        compressor.set_sequence(0);
        compressor.compress(packets, &mut frames);
        self.wire.write_all(&frames)
    }

    /// The next packet: its number and payload.
    pub fn packet(&mut self) -> io::Result<(u8, Vec<u8>)> {
        loop {
            if let Some(packet) = self.reader.next_packet().map_err(io::Error::other)? {
                return Ok((packet.sequence, packet.payload.to_vec()));
            }
            let room = match &mut self.frames {
                Some((_, frames)) => {
                    if frames.next_frame(&mut self.reader).unwrap() {
                        continue;
                    }
                    frames.spare()
                }
                None => self.reader.spare(),
            };
            match self.wire.read(room) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => match &mut self.frames {
                    Some((_, frames)) => frames.filled(count),
                    None => self.reader.filled(count),
                },
                // The process was stopped and goes on.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the server has closed the connection, after whatever it still had to say.
    pub fn is_closed(&mut self) -> bool {
        loop {
            match self.packet() {
                Ok(_) => {}
                Err(error) => {
                    return matches!(
                        error.kind(),
                        io::ErrorKind::UnexpectedEof
                            | io::ErrorKind::ConnectionReset
                            | io::ErrorKind::BrokenPipe
                    );
                }
            }
        }
    }

    /// Greets and logs in; the error that refused it otherwise.
    pub fn login(mut self, user: &str, password: &str) -> Result<RawClient, (u16, String)> {
        let (_, greeting) = self.packet().unwrap();
        if let Ok(Some(error)) = ErrPacket::parse(&greeting) {
            return Err((
                error.number,
                String::from_utf8_lossy(error.message).into_owned(),
            ));
        }
        let greeting = Greeting::parse(&greeting).unwrap();
        self.connection_id = greeting.connection_id;
        let first_sequence = 1 + u8::from(self.tls.is_some());
        if let Some(config) = self.tls.take() {
            assert!(greeting.capabilities.contains(Capabilities::SSL));
            self = tls::start(self, config);
        }
        let greeting_capabilities = greeting.capabilities;
        let mut plugin = greeting.auth_plugin.to_vec();
        let mut nonce = greeting.nonce.to_vec();
        let answer = auth::respond(&plugin, password.as_bytes(), &nonce, self.secure).unwrap();
        let mut writer = PacketWriter::with_buffer(Vec::new(), first_sequence);
        Login {
            capabilities: self.capabilities,
            max_packet_bytes: 1 << 24,
            collation: 255,
            user: user.as_bytes(),
            auth_response: &answer,
            database: None,
            auth_plugin: Some(&plugin),
            attributes: Default::default(),
            zstd_level: None,
        }
        .write(&mut writer);
        // A certificate may be refused when the client believes that the handshake is over.
        let refused = |error: std::io::Error| (0, error.to_string());
        self.wire.write_all(writer.bytes()).map_err(refused)?;
        loop {
            let (sequence, packet) = self.packet().map_err(refused)?;
            if let Ok(Some(error)) = ErrPacket::parse(&packet) {
                return Err((
                    error.number,
                    String::from_utf8_lossy(error.message).into_owned(),
                ));
            }
            match AuthStep::parse(&packet).unwrap() {
                None => {
                    let agreed = self.capabilities & greeting_capabilities;
                    let algorithm = Algorithm::agreed(agreed, None);
                    self.frames = algorithm.map(|algorithm| {
                        (Compressor::new(algorithm), Decompressor::new(algorithm))
                    });
                    return Ok(self);
                }
                Some(AuthStep::Switch {
                    plugin: to,
                    nonce: with,
                }) => {
                    (plugin, nonce) = (to.to_vec(), with.to_vec());
                    let answer =
                        auth::respond(&plugin, password.as_bytes(), &nonce, self.secure).unwrap();
                    self.send(sequence + 1, &answer).unwrap();
                }
                Some(AuthStep::More(&[3])) => {}
                Some(AuthStep::More(&[4])) if self.secure => {
                    self.send(sequence + 1, &[password.as_bytes(), &[0]].concat())
                        .unwrap();
                }
                Some(AuthStep::More(&[4])) => self.send(sequence + 1, &[2]).unwrap(),
                Some(AuthStep::More(key)) => {
                    let hidden =
                        auth::public_key::encrypt(password.as_bytes(), &nonce, key).unwrap();
                    self.send(sequence + 1, &hidden).unwrap();
                }
            }
        }
    }

    pub fn send_query(&mut self, sql: &str) {
        self.send(0, &[&[3], sql.as_bytes()].concat()).unwrap();
    }

    pub fn query(&mut self, sql: &str) -> Reply {
        self.send_query(sql);
        self.receive()
    }

    pub fn receive(&mut self) -> Reply {
        let (_, first) = self.packet().unwrap();
        if let Ok(Some(error)) = ErrPacket::parse(&first) {
            return Reply::Error(
                error.number,
                String::from_utf8_lossy(error.message).into_owned(),
            );
        }
        if first[0] == 0 {
            let ok = OkPacket::parse(&first, self.capabilities).unwrap();
            return Reply::Ok {
                affected: ok.affected_rows,
                status: ok.status,
            };
        }
        for _ in 0..first[0] {
            self.packet().unwrap();
        }
        let mut rows = Vec::new();
        loop {
            let (_, packet) = self.packet().unwrap();
            if let Ok(Some(error)) = ErrPacket::parse(&packet) {
                return Reply::Error(
                    error.number,
                    String::from_utf8_lossy(error.message).into_owned(),
                );
            }
            if is_end_of_rows(&packet, self.capabilities) {
                let end = parse_end_of_rows(&packet, self.capabilities).unwrap();
                return Reply::Rows {
                    rows,
                    status: end.status,
                };
            }
            let row = TextRow::new(&packet).map(|value| {
                value
                    .unwrap()
                    .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            });
            rows.push(row.collect());
        }
    }
}
