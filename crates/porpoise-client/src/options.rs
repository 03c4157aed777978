//! Where to connect and as whom.
//!
//! ```text
//! mysql://user:password@host:port/database?transport=auto|shm|unix|tcp&socket=/path&…
//! ```
//!
//! | parameter | meaning |
//! | --- | --- |
//! | `transport` | `auto`: a Unix socket if one was named or the host is `localhost` and has one, otherwise TCP |
//! |  | `shm`: shared memory, offered beside that Unix socket; `unix`; `tcp` |
//! | `socket` | the path of the Unix socket |
//! | `shared_memory_base_name` | the server's option of that name; `MYSQL` by default |
//! | `connect_timeout`, `read_timeout`, `write_timeout` | seconds, with decimals; none by default but 10 for connecting |
//! | `max_allowed_packet` | the longest reply packet, in bytes |
//! | `multi_statements` | `true`: a query may hold several statements |
//! | `found_rows` | `true`: affected rows are those found, not those changed |
//!
//! User, password and database may have percent-encoded bytes.

use crate::Error;
use porpoise_protocol::codes::{CollationId, UTF8MB4_GENERAL_CI};
use porpoise_transport::Endpoint;
use porpoise_transport::shared_memory::{BASE_NAME, path_of};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

const PORT_DEFAULT: u16 = 3306;

/// Where servers put their socket if nobody says otherwise.
const SOCKETS: &[&str] = &[
    "/tmp/mysql.sock",
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
];

/// Which way to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// A Unix socket where there is one, otherwise TCP.
    #[default]
    Auto,
    /// TCP.
    Tcp,
    /// A Unix socket.
    Unix,
    /// Shared memory, with a server on this machine that offers it.
    SharedMemory,
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
    /// The database to use from the beginning.
    pub database: Option<String>,
    /// How long connecting and logging in may take, each.
    pub connect_timeout: Option<Duration>,
    /// How long a reply may keep us waiting.
    pub read_timeout: Option<Duration>,
    /// How long the server may take no more bytes.
    pub write_timeout: Option<Duration>,
    /// The longest packet to accept.
    pub max_allowed_packet: usize,
    /// The collation of what this client sends and wants to be sent.
    pub collation: CollationId,
    /// Whether a query may hold several statements.
    pub multi_statements: bool,
    /// Whether affected rows are the rows found, not the rows changed.
    pub found_rows: bool,
    /// Whether to trust a public key that the server sends over a channel that others can reach. To a server on this
    /// machine it is always trusted.
    pub get_server_public_key: bool,
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
            database: None,
            connect_timeout: Some(Duration::from_secs(10)),
            read_timeout: None,
            write_timeout: None,
            max_allowed_packet: 1 << 30,
            collation: UTF8MB4_GENERAL_CI,
            multi_statements: false,
            found_rows: false,
            get_server_public_key: false,
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
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// What to dial.
    pub fn endpoint(&self) -> Result<Endpoint, Error> {
        let tcp = || Endpoint::Tcp {
            host: self.host.clone(),
            port: self.port,
        };
        let local = || {
            SOCKETS
                .iter()
                .map(Path::new)
                .find(|path| path.exists())
                .map(PathBuf::from)
        };
        let missing =
            || Error::Options("no Unix socket named, and none where servers put theirs".into());
        match (self.transport, &self.socket) {
            (Transport::SharedMemory, _) if self.shared_memory_base_name.contains('/') => {
                let path = PathBuf::from(&self.shared_memory_base_name);
                Ok(Endpoint::SharedMemory(path))
            }
            (Transport::SharedMemory, socket) => {
                let socket = socket.clone().or_else(local).ok_or_else(missing)?;
                let path = path_of(&socket, &self.shared_memory_base_name);
                Ok(Endpoint::SharedMemory(path))
            }
            (Transport::Tcp, _) => Ok(tcp()),
            (_, Some(path)) => Ok(Endpoint::Unix(path.clone())),
            (Transport::Unix, None) => local().map(Endpoint::Unix).ok_or_else(missing),
            (Transport::Auto, None) if self.host == "localhost" => {
                Ok(local().map_or_else(tcp, Endpoint::Unix))
            }
            (Transport::Auto, None) => Ok(tcp()),
        }
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
        match name {
            "transport" => {
                self.transport = match value {
                    "auto" => Transport::Auto,
                    "tcp" => Transport::Tcp,
                    "unix" => Transport::Unix,
                    "shm" => Transport::SharedMemory,
                    _ => return Err(invalid()),
                }
            }
            "socket" => self.socket = Some(value.into()),
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
            _ => return Err(Error::Options(format!("unknown option '{name}'"))),
        }
        Ok(())
    }
}

impl FromStr for Options {
    type Err = Error;

    fn from_str(url: &str) -> Result<Self, Error> {
        let rest = url
            .strip_prefix("mysql://")
            .ok_or_else(|| Error::Options("a URL begins with mysql://".into()))?;
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
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, "true"));
            options.set(name, &decoded(value)?)?;
        }
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
        assert_eq!(
            options.endpoint().unwrap(),
            Endpoint::Tcp {
                host: "db.example".into(),
                port: 3307
            }
        );
    }

    #[test]
    fn a_named_socket_is_taken_before_the_host() {
        let options: Options = "mysql://root@localhost:1/?socket=/tmp/a.sock"
            .parse()
            .unwrap();
        assert_eq!(
            options.endpoint().unwrap(),
            Endpoint::Unix("/tmp/a.sock".into())
        );
        let options: Options = "mysql://[::1]:33/?transport=tcp&socket=/tmp/a.sock"
            .parse()
            .unwrap();
        assert_eq!(
            options.endpoint().unwrap(),
            Endpoint::Tcp {
                host: "::1".into(),
                port: 33
            }
        );
    }

    #[test]
    fn shared_memory_is_beside_the_socket_or_where_its_name_says() {
        let endpoint = |url: &str| url.parse::<Options>().unwrap().endpoint().unwrap();
        for (parameters, path) in [
            ("", "/tmp/a.sock.MYSQL"),
            ("&shared_memory_base_name=fish", "/tmp/a.sock.fish"),
            ("&shared_memory_base_name=/run/fish", "/run/fish"),
        ] {
            let url =
                format!("mysql://root@localhost/?transport=shm&socket=/tmp/a.sock{parameters}");
            assert_eq!(endpoint(&url), Endpoint::SharedMemory(path.into()));
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
        ] {
            assert!(
                matches!(url.parse::<Options>(), Err(Error::Options(_))),
                "{url}"
            );
        }
    }
}
