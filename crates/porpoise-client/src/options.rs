//! Where to connect and as whom.
//!
//! ```text
//! mysql://user:password@host:port/database?transport=auto|shm|unix|tcp|embedded&socket=/path&…
//! porpoise:///folder?database=name&…
//! porpoise::memory:
//! ```
//!
//! | parameter | meaning |
//! | --- | --- |
//! | `transport` | `auto`: the ways of [`Options::endpoints`], one after the other |
//! |  | `shm`: shared memory, offered beside the Unix socket; `unix`; `tcp` |
//! |  | `embedded`: the database in `folder`, in this process; `porpoise:///folder` says the same |
//! | `socket` | the path of the Unix socket |
//! | `folder` | for `embedded`: where the database lies; `:memory:`, the default, for one that is kept nowhere |
//! | `database` | the database to use, as the URL's path says it |
//! | `loopback_fast_path` | `true`: a TCP connection within this machine moves to shared memory if its server agrees |
//! | `bind_address` | the address of this machine to connect from, over TCP |
//! | `shared_memory_base_name` | the server's option of that name; `MYSQL` by default |
//! | `keep` | `false`: a stream of its own for each connection, that ends with it ([`Options::reuse_streams`]) |
//! | `connect_timeout`, `read_timeout`, `write_timeout` | seconds, with decimals; none by default but 10 for connecting |
//! | `max_allowed_packet` | the longest reply packet, in bytes |
//! | `multi_statements` | `true`: a query may hold several statements |
//! | `ssl_mode`, `ssl_ca`, `ssl_capath`, `ssl_cert`, `ssl_key`, `ssl_crl`, `ssl_crlpath`, `ssl_cipher`, `tls_version`, `tls_ciphersuites` | as MySQL's clients have them; `ssl_mode` is `PREFERRED` by default ([`TlsMode`]) |
//! | `compression_algorithms` | `zlib`, `zstd`, `uncompressed`, with commas between them; the last by default |
//! | `zstd_compression_level` | 1 to 22; 3 by default |
//! | `found_rows` | `true`: affected rows are those found, not those changed |
//!
//! Behind `transport=embedded`, and in `porpoise:` URLs, any other parameter is a system variable
//! to open the database with. Names may be written with dashes as well. User, password and database may have percent-encoded bytes.

use crate::{CompressionOptions, Error, TlsMode, TlsOptions};
use porpoise_protocol::codes::{CollationId, UTF8MB4_GENERAL_CI};
use porpoise_protocol::flags::Capabilities;
use porpoise_transport::Endpoint;
use porpoise_transport::shared_memory::{BASE_NAME, path_of};
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

const PORT_DEFAULT: u16 = 3306;

/// Stands for a folder: no folder, but memory.
const MEMORY: &str = ":memory:";

/// Where servers put their socket by default.
const SOCKETS: &[&str] = &[
    "/tmp/mysql.sock",
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
];

/// Which way to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Shared memory or a Unix socket where there is one, otherwise TCP.
    #[default]
    Auto,
    /// TCP.
    Tcp,
    /// A Unix socket.
    Unix,
    /// Shared memory, with a server on this machine that offers it.
    SharedMemory,
    /// No server: the database in [`Options::folder`], in this process. For programs that link the
    /// database and have [set how it is opened](crate::embedded::set_opener).
    Embedded,
}

/// Where to connect and as whom.
#[derive(Clone, PartialEq, Eq)]
pub struct Options {
    /// The user; empty for the anonymous user.
    pub user: String,
    /// The password; empty for none.
    pub password: String,
    /// The host.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// The Unix socket.
    pub socket: Option<PathBuf>,
    /// What the server calls its shared memory; with a slash, the path where it is offered.
    pub shared_memory_base_name: String,
    /// Which way.
    pub transport: Transport,
    /// For [`Transport::Embedded`], where the database lies; nothing for one in memory.
    pub folder: Option<PathBuf>,
    /// System variables to open that database with, by name.
    pub variables: Vec<(String, String)>,
    /// Whether to ask the server of a TCP connection within this machine to move it to shared
    /// memory. If the server doesn't, the connection stays on TCP, without an error.
    pub loopback_fast_path: bool,
    /// Whether shared memory is kept, when a connection ends, for this process's next connection to
    /// the server, and taken from the connection before. On by default.
    pub reuse_streams: bool,
    /// The address of this machine that TCP connections come from; any by default.
    pub bind_address: Option<IpAddr>,
    /// The database to use from the beginning.
    pub database: Option<String>,
    /// How long connecting and logging in may take, each.
    pub connect_timeout: Option<Duration>,
    /// How long to wait for a reply.
    pub read_timeout: Option<Duration>,
    /// How long to wait until the server takes more bytes.
    pub write_timeout: Option<Duration>,
    /// The longest packet to accept.
    pub max_allowed_packet: usize,
    /// The collation of what this client sends and wants to be sent.
    pub collation: CollationId,
    /// Whether a query may hold several statements.
    pub multi_statements: bool,
    /// Whether affected rows are the rows found, not the rows changed.
    pub found_rows: bool,
    /// What to ask the server for beside what this client always asks for: `IGNORE_SPACE`,
    /// `INTERACTIVE`, `LOCAL_FILES` and the like.
    pub capabilities: Capabilities,
    /// Whether to trust a public key that the server sends over a channel that others can reach. To
    /// a server on this machine it is always trusted.
    pub get_server_public_key: bool,
    /// Whether and how to encrypt.
    pub tls: TlsOptions,
    /// Whether and how to compress.
    pub compression: CompressionOptions,
    /// What to tell the server of this program: names and values.
    pub attributes: Vec<(String, String)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            user: String::new(),
            password: String::new(),
            host: "localhost".into(),
            port: PORT_DEFAULT,
            socket: None,
            shared_memory_base_name: BASE_NAME.into(),
            transport: Transport::Auto,
            folder: None,
            variables: Vec::new(),
            loopback_fast_path: false,
            reuse_streams: true,
            bind_address: None,
            database: None,
            connect_timeout: Some(Duration::from_secs(10)),
            read_timeout: None,
            write_timeout: None,
            max_allowed_packet: 1 << 30,
            collation: UTF8MB4_GENERAL_CI,
            multi_statements: false,
            found_rows: false,
            capabilities: Capabilities::empty(),
            get_server_public_key: false,
            tls: TlsOptions::default(),
            compression: CompressionOptions::default(),
            attributes: Vec::new(),
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Options")
            .field("user", &self.user)
            .field("host", &self.host)
            .field("port", &self.port)
            .field("socket", &self.socket)
            .field("transport", &self.transport)
            .field("folder", &self.folder)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// What to connect to, the best first: if one can't be reached, the next is tried. None for
    /// [`Transport::Embedded`].
    ///
    /// | transport | tried |
    /// | --- | --- |
    /// | auto, host `localhost` or a socket named | shared memory, the Unix socket; without a socket named, TCP |
    /// | auto, another host | TCP |
    /// | any other | that alone |
    ///
    /// Where the connection has to be encrypted, `auto` leaves shared memory out.
    pub fn endpoints(&self) -> Result<Vec<Endpoint>, Error> {
        let socket = || {
            let usual = || SOCKETS.iter().map(PathBuf::from).find(|path| path.exists());
            self.socket.clone().or_else(usual)
        };
        let unix = || socket().map(Endpoint::Unix);
        let shared_memory = || {
            let path = if self.shared_memory_base_name.contains('/') {
                PathBuf::from(&self.shared_memory_base_name)
            } else {
                path_of(&socket()?, &self.shared_memory_base_name)
            };
            Some(Endpoint::SharedMemory(path))
        };
        let tcp = || Endpoint::Tcp {
            host: self.host.clone(),
            port: self.port,
        };
        let found = match self.transport {
            Transport::Embedded => return Ok(Vec::new()),
            Transport::Tcp => Some(tcp()),
            Transport::Unix => unix(),
            Transport::SharedMemory => shared_memory(),
            Transport::Auto if self.socket.is_none() && self.host != "localhost" => Some(tcp()),
            Transport::Auto => {
                let last = self.socket.is_none().then(tcp);
                let first = (!self.tls.is_required()).then(shared_memory).flatten();
                return Ok([first, unix(), last].into_iter().flatten().collect());
            }
        };
        let missing =
            || Error::Options("no Unix socket named, and none where servers put theirs".into());
        found.map(|endpoint| vec![endpoint]).ok_or_else(missing)
    }

    /// What follows `porpoise:`: `///folder`, `:memory:`, and parameters.
    fn embedded(rest: &str) -> Result<Self, Error> {
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let place = decoded(place.strip_prefix("//").unwrap_or(place))?;
        let folder = match &*place {
            MEMORY => None,
            folder if folder.starts_with('/') => Some(PathBuf::from(folder)),
            _ => {
                let words = format!("porpoise:{rest} names neither a folder from / nor :memory:");
                return Err(Error::Options(words));
            }
        };
        let mut options = Self {
            user: "root".into(),
            transport: Transport::Embedded,
            folder,
            ..Self::default()
        };
        options.set_all(query)?;
        Ok(options)
    }

    fn set_all(&mut self, query: &str) -> Result<(), Error> {
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, "true"));
            self.set(name, &decoded(value)?)?;
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let invalid = || Error::Options(format!("'{value}' is no value for '{name}'"));
        let truth = || -> Result<bool, Error> {
            match value {
                "true" | "1" | "on" => Ok(true),
                "false" | "0" | "off" => Ok(false),
                _ => Err(invalid()),
            }
        };
        let seconds = || -> Result<Option<Duration>, Error> {
            let seconds: f64 = value.parse().map_err(|_| invalid())?;
            let duration = Duration::try_from_secs_f64(seconds).map_err(|_| invalid())?;
            Ok((!duration.is_zero()).then_some(duration))
        };
        let name = &*name.replace('-', "_");
        if self.set_tls(name, value)? {
            return Ok(());
        }
        match name {
            "compression_algorithms" => self.compression.set_algorithms(value)?,
            "zstd_compression_level" => {
                let level = value.parse().ok().filter(|level| (1..=22).contains(level));
                self.compression.zstd_level = level.ok_or_else(invalid)?;
            }
            "transport" => {
                self.transport = match value {
                    "auto" => Transport::Auto,
                    "tcp" => Transport::Tcp,
                    "unix" => Transport::Unix,
                    "shm" => Transport::SharedMemory,
                    "embedded" => Transport::Embedded,
                    _ => return Err(invalid()),
                }
            }
            "socket" => self.socket = Some(value.into()),
            "folder" => {
                self.folder = Some(PathBuf::from(value)).filter(|f| f.as_os_str() != MEMORY)
            }
            "database" => {
                self.database = Some(value.into()).filter(|name: &String| !name.is_empty())
            }
            "loopback_fast_path" => self.loopback_fast_path = truth()?,
            "keep" => self.reuse_streams = truth()?,
            "bind_address" => self.bind_address = Some(value.parse().map_err(|_| invalid())?),
            "shared_memory_base_name" => self.shared_memory_base_name = value.into(),
            "connect_timeout" => self.connect_timeout = seconds()?,
            "read_timeout" => self.read_timeout = seconds()?,
            "write_timeout" => self.write_timeout = seconds()?,
            "max_allowed_packet" => {
                self.max_allowed_packet = value.parse().map_err(|_| invalid())?
            }
            "multi_statements" => self.multi_statements = truth()?,
            "found_rows" => self.found_rows = truth()?,
            "get_server_public_key" => self.get_server_public_key = truth()?,
            _ if self.transport == Transport::Embedded => {
                self.variables.push((name.to_owned(), value.to_owned()));
            }
            _ => return Err(Error::Options(format!("unknown option '{name}'"))),
        }
        Ok(())
    }

    /// Sets an option of TLS, if `name` is one.
    fn set_tls(&mut self, name: &str, value: &str) -> Result<bool, Error> {
        let tls = &mut self.tls;
        let (file, list) = match name {
            "ssl_mode" => {
                let mode = TlsMode::named(value)
                    .ok_or_else(|| Error::Options(format!("'{value}' is no value for '{name}'")))?;
                tls.mode = Some(mode);
                return Ok(true);
            }
            "ssl_ca" => (Some(&mut tls.ca), None),
            "ssl_capath" => (Some(&mut tls.ca_path), None),
            "ssl_cert" => (Some(&mut tls.cert), None),
            "ssl_key" => (Some(&mut tls.key), None),
            "ssl_crl" => (Some(&mut tls.crl), None),
            "ssl_crlpath" => (Some(&mut tls.crl_path), None),
            "ssl_cipher" => (None, Some(&mut tls.cipher)),
            "tls_ciphersuites" => (None, Some(&mut tls.ciphersuites)),
            "tls_version" => (None, Some(&mut tls.versions)),
            _ => return Ok(false),
        };
        if let Some(file) = file {
            *file = (!value.is_empty()).then(|| value.into());
        }
        if let Some(list) = list {
            *list = (!value.is_empty()).then(|| value.to_owned());
        }
        Ok(true)
    }
}

impl FromStr for Options {
    type Err = Error;

    fn from_str(url: &str) -> Result<Self, Error> {
        if let Some(rest) = url.strip_prefix("porpoise:") {
            return Self::embedded(rest);
        }
        let rest = url
            .strip_prefix("mysql://")
            .ok_or_else(|| Error::Options("a URL begins with mysql:// or with porpoise:".into()))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (account, address) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = account.split_once(':').unwrap_or((account, ""));

        let mut options = Self {
            user: decoded(user)?,
            password: decoded(password)?,
            database: Some(decoded(database)?).filter(|name| !name.is_empty()),
            ..Self::default()
        };
        let (host, port) = split_port(address)?;
        if !host.is_empty() {
            options.host = decoded(host)?;
        }
        if let Some(port) = port {
            options.port = port
                .parse()
                .map_err(|_| Error::Options(format!("'{port}' is no port")))?;
        }
        options.set_all(query)?;
        Ok(options)
    }
}

/// Host and port of `host:port`, `[IPv6]:port`, or either without a port.
fn split_port(address: &str) -> Result<(&str, Option<&str>), Error> {
    let Some(rest) = address.strip_prefix('[') else {
        return Ok(match address.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        });
    };
    match rest.split_once(']') {
        Some((host, "")) => Ok((host, None)),
        Some((host, port)) if port.starts_with(':') => Ok((host, Some(&port[1..]))),
        _ => Err(Error::Options(format!("'{address}' is no address"))),
    }
}

/// `text` with its percent-encoded bytes.
fn decoded(text: &str) -> Result<String, Error> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |at: usize| {
            tail.get(at)
                .and_then(|&digit| char::from(digit).to_digit(16))
        };
        let (Some(high), Some(low)) = (digit(0), digit(1)) else {
            return Err(Error::Options(format!(
                "'%' without two hexadecimal digits in '{text}'"
            )));
        };
        bytes.push((high << 4 | low) as u8);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| Error::Options(format!("'{text}' isn't UTF-8")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_url_is_read() {
        let options: Options =
            "mysql://jo%40x:p%3A%2Fw@db.example:3307/shop?transport=tcp&read_timeout=1.5&multi_statements"
                .parse()
                .unwrap();
        assert_eq!((&*options.user, &*options.password), ("jo@x", "p:/w"));
        assert_eq!(options.database.as_deref(), Some("shop"));
        assert_eq!(options.read_timeout, Some(Duration::from_millis(1500)));
        assert!(options.multi_statements);
        let endpoint = Endpoint::Tcp {
            host: "db.example".into(),
            port: 3307,
        };
        assert_eq!(options.endpoints().unwrap(), [endpoint]);
    }

    fn ways(url: &str) -> Vec<String> {
        let endpoints = url.parse::<Options>().unwrap().endpoints().unwrap();
        let name = |endpoint: &Endpoint| match endpoint {
            Endpoint::Tcp { .. } => format!("tcp {endpoint}"),
            Endpoint::Unix(_) => format!("unix {endpoint}"),
            Endpoint::SharedMemory(_) => format!("shm {endpoint}"),
        };
        endpoints.iter().map(name).collect()
    }

    #[test]
    fn on_this_machine_shared_memory_is_tried_before_the_socket_and_tcp_last() {
        let named = ["shm /tmp/a.sock.MYSQL", "unix /tmp/a.sock"];
        assert_eq!(ways("mysql://localhost/?socket=/tmp/a.sock"), named);
        assert_eq!(ways("mysql://127.0.0.1/?socket=/tmp/a.sock"), named);
        let usual = ways("mysql://localhost:33/");
        assert_eq!(usual.last().unwrap(), "tcp localhost:33");
        let base_name = "mysql://localhost/?shared_memory_base_name=/run/fish";
        assert_eq!(ways(base_name)[0], "shm /run/fish");
        assert_eq!(ways("mysql://127.0.0.1/"), ["tcp 127.0.0.1:3306"]);
        assert_eq!(ways("mysql://db.example/"), ["tcp db.example:3306"]);
    }

    #[test]
    fn a_transport_that_is_named_is_the_only_one() {
        let tcp = "mysql://[::1]:33/?transport=tcp&socket=/tmp/a.sock";
        assert_eq!(ways(tcp), ["tcp ::1:33"]);
        let unix = "mysql://localhost/?transport=unix&socket=/tmp/a.sock";
        assert_eq!(ways(unix), ["unix /tmp/a.sock"]);
        for (parameters, path) in [
            ("", "shm /tmp/a.sock.MYSQL"),
            ("&shared_memory_base_name=fish", "shm /tmp/a.sock.fish"),
            ("&shared_memory_base_name=/run/fish", "shm /run/fish"),
        ] {
            let url =
                format!("mysql://root@localhost/?transport=shm&socket=/tmp/a.sock{parameters}");
            assert_eq!(ways(&url), [path]);
        }
    }

    #[test]
    fn tls_and_compression_have_mysqls_names() {
        let url = "mysql://db/?ssl-mode=verify_ca&ssl_ca=/a%20b&ssl-cipher=X:Y&tls_version=TLSv1.3\
                   &compression_algorithms=zstd,uncompressed&zstd-compression-level=7";
        let options: Options = url.parse().unwrap();
        let tls = TlsOptions {
            mode: Some(TlsMode::VerifyCa),
            ca: Some("/a b".into()),
            cipher: Some("X:Y".into()),
            versions: Some("TLSv1.3".into()),
            ..TlsOptions::default()
        };
        assert_eq!(options.tls, tls);
        let compression = CompressionOptions {
            zlib: false,
            zstd: true,
            uncompressed: true,
            zstd_level: 7,
        };
        assert_eq!(options.compression, compression);
        let wrong = "mysql://db/?compression_algorithms=lz4".parse::<Options>();
        assert!(matches!(wrong, Err(Error::Compression)));
    }

    #[test]
    fn what_has_to_be_encrypted_does_not_go_over_shared_memory() {
        let socket = "mysql://localhost/?socket=/tmp/a.sock&ssl_mode=REQUIRED";
        assert_eq!(ways(socket), ["unix /tmp/a.sock"]);
    }

    #[test]
    fn a_folder_or_memory_is_embedded() {
        for (url, folder, database) in [
            ("porpoise:///var/lib/shop", Some("/var/lib/shop"), None),
            (
                "porpoise:///a%20b?database=shop",
                Some("/a b"),
                Some("shop"),
            ),
            ("porpoise::memory:", None, None),
            ("porpoise://:memory:", None, None),
            (
                "mysql:///shop?transport=embedded&folder=/x",
                Some("/x"),
                Some("shop"),
            ),
            ("mysql://?transport=embedded&folder=:memory:", None, None),
        ] {
            let options: Options = url.parse().unwrap();
            assert_eq!(options.transport, Transport::Embedded, "{url}");
            assert_eq!(
                options.folder.as_deref(),
                folder.map(std::path::Path::new),
                "{url}"
            );
            assert_eq!(options.database.as_deref(), database, "{url}");
            assert_eq!(options.endpoints().unwrap(), []);
        }
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for url in [
            "http://localhost",
            "mysql://localhost:port/",
            "mysql://localhost/?transport=pigeon",
            "mysql://localhost/?colour=red",
            "mysql://a%4@localhost/",
            "mysql://[::1/",
            "mysql://localhost/?read_timeout=-1",
            "mysql://localhost/?ssl_mode=maybe",
            "mysql://localhost/?zstd_compression_level=23",
            "porpoise:relative/folder",
            "porpoise:",
        ] {
            assert!(
                matches!(url.parse::<Options>(), Err(Error::Options(_))),
                "{url}"
            );
        }
    }
}
