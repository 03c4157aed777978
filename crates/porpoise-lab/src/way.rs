//! The ways into a server: over what its clients come, and what is done to the bytes.

use std::fmt;

use porpoise_client::{CompressionOptions, Options, TlsMode, TlsOptions, Transport};

/// How statements reach a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// TCP over loopback.
    Tcp,
    /// A Unix socket.
    Unix,
    /// Shared memory.
    SharedMemory,
    /// TCP that moves to shared memory if the server agrees.
    FastPath,
    /// Calls within one process.
    Embedded,
    /// TCP, encrypted by TLS 1.3. A connection resumes a session of an earlier one where the server
    /// permits it.
    Tls,
    /// The same, but each connection has a full handshake.
    FullTls,
    /// TCP, compressed by zlib.
    Zlib,
    /// TCP, compressed by zstd.
    Zstd,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 9] = [
        Way::Tcp,
        Way::Unix,
        Way::SharedMemory,
        Way::FastPath,
        Way::Embedded,
        Way::Tls,
        Way::FullTls,
        Way::Zlib,
        Way::Zstd,
    ];

    /// Those that neither encrypt nor compress.
    pub const PLAIN: [Way; 5] = [
        Way::Tcp,
        Way::Unix,
        Way::SharedMemory,
        Way::FastPath,
        Way::Embedded,
    ];

    /// Its name in experiment files and options.
    pub const fn key(self) -> &'static str {
        match self {
            Way::Tcp => "tcp",
            Way::Unix => "unix",
            Way::SharedMemory => "shm",
            Way::FastPath => "fast-path",
            Way::Embedded => "embedded",
            Way::Tls => "tls",
            Way::FullTls => "tls-full",
            Way::Zlib => "zlib",
            Way::Zstd => "zstd",
        }
    }

    /// The way into a MariaDB that comes nearest: itself, if MariaDB has it.
    pub fn of_mariadb(self) -> Way {
        match self {
            Way::SharedMemory | Way::FastPath | Way::Embedded => Way::Unix,
            Way::Zstd => Way::Zlib,
            way => way,
        }
    }

    /// Whether MariaDB has it.
    pub fn is_of_mariadb(self) -> bool {
        self.of_mariadb() == self
    }

    /// How clients come in so to a server that is reached by TCP and a Unix socket as these options
    /// say. `None` for the embedded way, which leads to no server.
    pub fn route(self, tcp: &Options, unix: &Options) -> Option<Options> {
        let encrypted = |always_full| Options {
            tls: TlsOptions {
                mode: Some(TlsMode::Required.max(tcp.tls.mode())),
                versions: Some("TLSv1.3".into()),
                always_full,
                ..tcp.tls.clone()
            },
            ..tcp.clone()
        };
        let compressed = |zlib| Options {
            compression: CompressionOptions {
                zlib,
                zstd: !zlib,
                uncompressed: false,
                ..tcp.compression
            },
            ..tcp.clone()
        };
        Some(match self {
            Way::Tcp => tcp.clone(),
            Way::Unix => unix.clone(),
            Way::SharedMemory => Options {
                transport: Transport::SharedMemory,
                ..unix.clone()
            },
            Way::FastPath => Options {
                loopback_fast_path: true,
                ..tcp.clone()
            },
            Way::Embedded => return None,
            Way::Tls => encrypted(false),
            Way::FullTls => encrypted(true),
            Way::Zlib => compressed(true),
            Way::Zstd => compressed(false),
        })
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Tcp => "TCP",
            Way::Unix => "Unix socket",
            Way::SharedMemory => "shared memory",
            Way::FastPath => "loopback fast path",
            Way::Embedded => "embedded",
            Way::Tls => "TLS",
            Way::FullTls => "full TLS",
            Way::Zlib => "zlib",
            Way::Zstd => "zstd",
        })
    }
}
