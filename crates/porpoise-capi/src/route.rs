//! Which way in: from what the program asked for, and what the environment says instead.
//!
//! | asked for | way |
//! | --- | --- |
//! | `PORPOISE_URL=mysql://host:port/?transport=…` | as the URL says; user, password and database are the program's unless it names them |
//! | `PORPOISE_URL=porpoise:///folder?variable=value` | the engine in this process, in that folder; `porpoise::memory:` in memory |
//! | `mysql_server_init()` with `--datadir=…`, host none or `localhost` | the engine in this process |
//! | `MYSQL_PROTOCOL_MEMORY` | shared memory, at the server's `shared-memory-base-name` |
//! | a base name, and a socket's path | shared memory, or the Unix socket where there is none |
//! | `MYSQL_PROTOCOL_SOCKET`, a socket's path, host none or `localhost` | the Unix socket |
//! | any other host, `MYSQL_PROTOCOL_TCP` | TCP |

use crate::embedded::{self, EmbeddedConfig};
use crate::failure::{self, Failure};
use crate::settings::{PROTOCOL_MEMORY, PROTOCOL_PIPE, PROTOCOL_SOCKET, PROTOCOL_TCP, Settings};
use porpoise_client::{Options, Transport};
use porpoise_transport::Endpoint;
use std::path::Path;

/// The environment variable for programs that can't be changed.
const URL: &str = "PORPOISE_URL";

/// Debian's server has its socket here.
const SOCKET_DEFAULT: &str = "/run/mysqld/mysqld.sock";

/// What `mysql_real_connect()` was called with, completed by the options set before.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub host: Option<String>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub schema: Option<String>,
    pub port: u32,
    pub unix_socket: Option<String>,
    pub flags: u64,
}

#[derive(Clone, Debug)]
pub enum Route {
    Embedded(EmbeddedConfig),
    /// To the first of its endpoints that is open.
    Server(Box<Options>),
}

impl Request {
    fn is_local(&self) -> bool {
        self.host
            .as_deref()
            .is_none_or(|host| host.is_empty() || host == "localhost")
    }

    /// The way to go. `options` are whatever else the connection is to be opened with.
    pub fn route(&mut self, settings: &Settings, options: Options) -> Result<Route, Failure> {
        if let Some(url) = std::env::var(URL).ok().filter(|url| !url.is_empty()) {
            return self.route_of_url(&url, options);
        }
        if !settings.remote_only
            && (settings.embedded_only || self.is_local())
            && let Some(config) = embedded::default_config()
        {
            return Ok(Route::Embedded(config));
        }
        self.route_of_arguments(settings, options)
    }

    fn route_of_url(&mut self, url: &str, options: Options) -> Result<Route, Failure> {
        let named: Options = url.parse().map_err(Failure::from)?;
        if url.starts_with("mysql:") {
            self.take_over(&named);
        } else if named.database.is_some() {
            self.schema.clone_from(&named.database);
        }
        if named.transport == Transport::Embedded {
            return Ok(Route::Embedded(EmbeddedConfig {
                folder: named.folder,
                variables: named.variables,
            }));
        }
        let options = Options {
            host: named.host,
            port: named.port,
            socket: named.socket,
            transport: named.transport,
            shared_memory_base_name: named.shared_memory_base_name,
            loopback_fast_path: named.loopback_fast_path,
            multi_statements: options.multi_statements || named.multi_statements,
            found_rows: options.found_rows || named.found_rows,
            ..options
        };
        self.host = Some(options.host.clone());
        self.port = options.port.into();
        Ok(Route::Server(Box::new(options)))
    }

    /// What the URL names counts, not what the program asks for.
    fn take_over(&mut self, named: &Options) {
        if !named.user.is_empty() {
            self.user = Some(named.user.clone());
            self.password = Some(named.password.clone());
        }
        if named.database.is_some() {
            self.schema = named.database.clone();
        }
    }

    fn route_of_arguments(
        &self,
        settings: &Settings,
        mut options: Options,
    ) -> Result<Route, Failure> {
        if let Some(host) = self.host.as_deref().filter(|host| !host.is_empty()) {
            options.host = host.to_owned();
        }
        if self.port != 0 {
            options.port = u16::try_from(self.port)
                .map_err(|_| Failure::new(failure::INVALID_PARAMETER, "Invalid port"))?;
        } else if let Some(port) = std::env::var("MYSQL_TCP_PORT")
            .ok()
            .and_then(|port| port.parse().ok())
        {
            options.port = port;
        }
        let named_socket = self
            .unix_socket
            .clone()
            .or_else(|| std::env::var("MYSQL_UNIX_PORT").ok());
        options.socket = named_socket.map(Into::into);
        let base_name = settings
            .shared_memory_base_name
            .as_ref()
            .map(|name| name.to_string_lossy().into_owned());
        if let Some(name) = &base_name {
            options.shared_memory_base_name.clone_from(name);
        }
        let over_socket = settings.protocol == PROTOCOL_SOCKET
            || (settings.protocol == 0 && (self.unix_socket.is_some() || self.is_local()));
        options.transport = match settings.protocol {
            PROTOCOL_MEMORY => Transport::SharedMemory,
            PROTOCOL_TCP => Transport::Tcp,
            PROTOCOL_PIPE => {
                return Err(Failure::new(
                    failure::UNKNOWN_PROTOCOL,
                    "Wrong or unknown protocol",
                ));
            }
            _ if over_socket => Transport::Unix,
            _ => Transport::Tcp,
        };
        if options.transport == Transport::Unix {
            if options.endpoints().is_err() {
                options.socket = Some(SOCKET_DEFAULT.into());
            }
            if settings.protocol == 0 && base_name.is_some() && options.socket.is_some() {
                options.transport = Transport::Auto;
            }
        }
        Ok(Route::Server(Box::new(options)))
    }
}

/// Why dialling failed, in the original's words.
pub fn cant_connect(endpoint: &Endpoint, error: &std::io::Error) -> Failure {
    let code = error.raw_os_error().unwrap_or(0);
    match endpoint {
        Endpoint::Unix(path) => Failure::new(
            failure::CONNECTION,
            format!(
                "Can't connect to local server through socket '{}' ({code})",
                shown(path)
            ),
        ),
        Endpoint::SharedMemory(path) => Failure::new(
            failure::SHARED_MEMORY,
            format!(
                "Can't open shared memory; client could not reach the server at '{}' ({error})",
                shown(path)
            ),
        ),
        Endpoint::Tcp { host, .. }
            if error.raw_os_error().is_none() && error.kind() != std::io::ErrorKind::TimedOut =>
        {
            Failure::new(
                failure::UNKNOWN_HOST,
                format!("Unknown server host '{host}' (-2)"),
            )
        }
        Endpoint::Tcp { host, .. } => Failure::new(
            failure::CONNECTION,
            format!("Can't connect to server on '{host}' ({code})"),
        ),
    }
}

fn shown(path: &Path) -> std::path::Display<'_> {
    path.display()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(route: Route) -> Vec<Endpoint> {
        match route {
            Route::Server(options) => options.endpoints().unwrap(),
            Route::Embedded(config) => panic!("{config:?}"),
        }
    }

    #[test]
    fn the_arguments_choose_the_way() {
        let tcp = |host: &str| Endpoint::Tcp {
            host: host.into(),
            port: 3306,
        };
        let unix = || Endpoint::Unix("/a".into());
        let memory = |path: &str| Endpoint::SharedMemory(path.into());
        for (host, socket, protocol, base_name, route) in [
            ("localhost", Some("/a"), 0, None, vec![unix()]),
            ("127.0.0.1", None, 0, None, vec![tcp("127.0.0.1")]),
            (
                "localhost",
                Some("/a"),
                PROTOCOL_TCP,
                None,
                vec![tcp("localhost")],
            ),
            (
                "localhost",
                Some("/a"),
                PROTOCOL_MEMORY,
                None,
                vec![memory("/a.MYSQL")],
            ),
            (
                "localhost",
                Some("/a"),
                0,
                Some(c"fish"),
                vec![memory("/a.fish"), unix()],
            ),
        ] {
            let request = Request {
                host: Some(host.into()),
                unix_socket: socket.map(Into::into),
                ..Request::default()
            };
            let settings = Settings {
                protocol,
                shared_memory_base_name: base_name.map(Into::into),
                ..Settings::default()
            };
            let chosen = request.route_of_arguments(&settings, Options::default());
            assert_eq!(endpoints(chosen.unwrap()), route);
        }
    }

    #[test]
    fn a_url_overrules_the_arguments_but_for_what_it_does_not_name() {
        let mut request = Request {
            host: Some("elsewhere".into()),
            user: Some("jo".into()),
            ..Request::default()
        };
        let url = "mysql:///shop?transport=shm&socket=/b";
        let route = request.route_of_url(url, Options::default()).unwrap();
        assert_eq!(
            endpoints(route),
            [Endpoint::SharedMemory("/b.MYSQL".into())]
        );
        assert_eq!(request.user.as_deref(), Some("jo"));
        assert_eq!(request.schema.as_deref(), Some("shop"));
    }

    #[test]
    fn a_folder_in_the_url_is_the_engine_in_this_process() {
        for url in [
            "porpoise:///data/a%20b?innodb_flush_log_at_trx_commit=2",
            "mysql://localhost/?transport=embedded&folder=/data/a%20b&innodb_flush_log_at_trx_commit=2",
        ] {
            let route = Request::default().route_of_url(url, Options::default());
            let Route::Embedded(config) = route.unwrap() else {
                panic!("{url}")
            };
            assert_eq!(config.folder.as_deref(), Some(Path::new("/data/a b")));
            assert_eq!(
                config.variables,
                [("innodb_flush_log_at_trx_commit".into(), "2".into())]
            );
        }
    }
}
