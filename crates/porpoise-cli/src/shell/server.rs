//! `-u`, `-p`, `-h`, `-P`, `-S` and `--protocol`: which server, and as whom, in `mysql`'s own
//! words; and how to encrypt and compress.
//!
//! ```text
//! porpoise sql -u ann -p shop                  a server on this machine; `shop` is the database, as for mysql
//! porpoise sql -p mysql://ann@localhost/shop   a URL, with parts of it said anew
//! ```

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use porpoise_client::{CompressionOptions, Error, Options, TlsMode, Transport};

use super::SqlOptions;
use super::password;

#[derive(Args)]
#[command(next_help_heading = "A server's options")]
pub struct ServerOptions {
    /// User to log in as; by default, whoever runs this
    #[arg(short, long, value_name = "NAME")]
    user: Option<String>,
    /// Password, without a space before it after -p; without one it is asked for at the terminal
    #[arg(short, long, num_args = 0..=1, require_equals = true, value_name = "PASSWORD")]
    password: Option<Option<String>>,
    /// Host of the server
    #[arg(short, long, value_name = "NAME")]
    host: Option<String>,
    /// TCP port; alone, it means TCP
    #[arg(short = 'P', long)]
    port: Option<u16>,
    /// Unix socket, beside which shared memory is offered
    #[arg(short = 'S', long, value_name = "PATH")]
    socket: Option<String>,
    /// The way in; by default, the fastest there is
    #[arg(long, ignore_case = true)]
    protocol: Option<Protocol>,
    #[command(flatten)]
    wire: WireOptions,
}

/// How what passes between the ends is encrypted and compressed.
#[derive(Args, Default, PartialEq)]
struct WireOptions {
    /// Whether to encrypt: DISABLED, PREFERRED (the default, over TCP), REQUIRED, VERIFY_CA or
    /// VERIFY_IDENTITY
    #[arg(long, value_name = "MODE", value_parser = tls_mode)]
    ssl_mode: Option<TlsMode>,
    /// File of certificates of the CAs to trust
    #[arg(long, value_name = "FILE")]
    ssl_ca: Option<PathBuf>,
    /// Folder of such files
    #[arg(long, value_name = "FOLDER")]
    ssl_capath: Option<PathBuf>,
    /// File with this client's certificate
    #[arg(long, value_name = "FILE")]
    ssl_cert: Option<PathBuf>,
    /// File with its key
    #[arg(long, value_name = "FILE")]
    ssl_key: Option<PathBuf>,
    /// File of certificates that were revoked
    #[arg(long, value_name = "FILE")]
    ssl_crl: Option<PathBuf>,
    /// Folder of such files
    #[arg(long, value_name = "FOLDER")]
    ssl_crlpath: Option<PathBuf>,
    /// Ciphers for TLS 1.2, with colons between them
    #[arg(long, value_name = "LIST")]
    ssl_cipher: Option<String>,
    /// Ciphers for TLS 1.3, with colons between them
    #[arg(long, value_name = "LIST")]
    tls_ciphersuites: Option<String>,
    /// TLSv1.2, TLSv1.3, or both with a comma between them
    #[arg(long, value_name = "LIST")]
    tls_version: Option<String>,
    /// Compress by what the server knows
    #[arg(short = 'C', long)]
    compress: bool,
    /// zlib, zstd, uncompressed, with commas between them
    #[arg(long, value_name = "LIST")]
    compression_algorithms: Option<String>,
    /// How hard zstd tries
    #[arg(long, value_name = "1-22", value_parser = clap::value_parser!(u8).range(1..=22))]
    zstd_compression_level: Option<u8>,
}

fn tls_mode(name: &str) -> Result<TlsMode, String> {
    TlsMode::named(name).ok_or_else(|| {
        let names = TlsMode::NAMES.map(|(name, _)| format!("'{name}'"));
        format!("Alternatives are: {}", names.join(","))
    })
}

impl WireOptions {
    fn apply(&self, options: &mut Options) -> Result<(), Error> {
        fn set<T: Clone>(place: &mut Option<T>, given: &Option<T>) {
            if given.is_some() {
                place.clone_from(given);
            }
        }
        let tls = &mut options.tls;
        set(&mut tls.mode, &self.ssl_mode);
        set(&mut tls.ca, &self.ssl_ca);
        set(&mut tls.ca_path, &self.ssl_capath);
        set(&mut tls.cert, &self.ssl_cert);
        set(&mut tls.key, &self.ssl_key);
        set(&mut tls.crl, &self.ssl_crl);
        set(&mut tls.crl_path, &self.ssl_crlpath);
        set(&mut tls.cipher, &self.ssl_cipher);
        set(&mut tls.ciphersuites, &self.tls_ciphersuites);
        set(&mut tls.versions, &self.tls_version);
        if self.compress {
            options.compression = CompressionOptions::if_possible();
        }
        if let Some(list) = &self.compression_algorithms {
            options.compression.set_algorithms(list)?;
        }
        if let Some(level) = self.zstd_compression_level {
            options.compression.zstd_level = level;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Protocol {
    Tcp,
    Socket,
    Memory,
}

impl ServerOptions {
    fn are_given(&self) -> bool {
        self.user.is_some()
            || self.password.is_some()
            || self.host.is_some()
            || self.port.is_some()
            || self.socket.is_some()
            || self.protocol.is_some()
            || self.wire != WireOptions::default()
    }

    /// What the shell connects with, for a target that is a server. None: a folder, or memory. It
    /// may ask for a password.
    pub fn options(&self, target: Option<&str>) -> Result<Option<Options>, Error> {
        let mut options: Options = match target {
            Some(url) if url.contains("://") => url.parse()?,
            Some(":memory:") | None if !self.are_given() => return Ok(None),
            Some(_) if !self.are_given() => return Ok(None),
            Some(name) if name == ":memory:" || name.contains('/') => {
                let words =
                    format!("{name} is opened without a server: the options of one say nothing");
                return Err(Error::Options(words));
            }
            Some(database) => Options {
                database: Some(database.into()),
                ..Options::default()
            },
            None => Options::default(),
        };
        if options.transport == Transport::Embedded {
            if self.are_given() {
                let words = "a porpoise: URL names no server: the options of one say nothing";
                return Err(Error::Options(words.into()));
            }
            return Ok(Some(options));
        }
        if let Some(user) = &self.user {
            options.user.clone_from(user);
        }
        if options.user.is_empty() {
            options.user = std::env::var("USER").unwrap_or_else(|_| "root".to_string());
        }
        if let Some(host) = &self.host {
            options.host.clone_from(host);
        }
        if let Some(port) = self.port {
            options.port = port;
        }
        if let Some(socket) = &self.socket {
            options.socket = Some(socket.into());
        }
        match self.protocol {
            Some(Protocol::Tcp) => options.transport = Transport::Tcp,
            Some(Protocol::Socket) => options.transport = Transport::Unix,
            Some(Protocol::Memory) => options.transport = Transport::SharedMemory,
            // Who names a port doesn't mean the socket that happens to be there.
            None if self.port.is_some() && options.socket.is_none() => {
                options.transport = Transport::Tcp;
            }
            None => {}
        }
        self.wire.apply(&mut options)?;
        match &self.password {
            None => {}
            Some(Some(password)) => options.password.clone_from(password),
            Some(None) => {
                let asked = password::ask("Enter password: ");
                let refused = |error| Error::Options(format!("no password was given: {error}"));
                options.password = asked.map_err(refused)?;
            }
        }
        Ok(Some(options))
    }
}

/// Spells out a `-p`, alone or behind other letters: `-Bpsecret` becomes `-B --password=secret`.
/// What follows the letter is the password, and what follows a space is not, which is `mysql`'s
/// rule for this option and not for others.
pub fn spelled_out(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let known = SqlOptions::augment_args(clap::Command::new("sql"));
    let takes_value = |is_it: &dyn Fn(&clap::Arg) -> bool| {
        let found = known.get_arguments().find(|argument| is_it(argument));
        found.is_some_and(|argument| argument.get_action().takes_values())
    };
    let mut spelled = Vec::new();
    // Whether options may come yet, and whether the next argument is the last one's value.
    let (mut are_options, mut is_value) = (true, false);
    for argument in arguments {
        let text = argument.to_str().unwrap_or_default();
        let is_option = are_options && !std::mem::take(&mut is_value);
        are_options &= !(is_option && text == "--");
        if let (true, Some(name)) = (is_option, text.strip_prefix("--")) {
            is_value = name != "password" && takes_value(&|a| a.get_long() == Some(name));
        } else if let (true, Some(letters)) = (is_option, text.strip_prefix('-')) {
            let end = letters.find(|letter| takes_value(&|a| a.get_short() == Some(letter)));
            match end.map(|end| (&letters[..end], &letters[end..])) {
                Some((before, rest)) if rest.starts_with('p') => {
                    if !before.is_empty() {
                        spelled.push(format!("-{before}").into());
                    }
                    let password = &rest[1..];
                    spelled.push(match password {
                        "" => "--password".into(),
                        password => format!("--password={password}").into(),
                    });
                    continue;
                }
                Some((_, rest)) => is_value = rest.chars().count() == 1,
                None => {}
            }
        }
        spelled.push(argument);
    }
    spelled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spell(line: &str) -> String {
        let spelled = spelled_out(line.split(' ').map(OsString::from));
        let words: Vec<_> = spelled.iter().map(|word| word.to_str().unwrap()).collect();
        words.join(" ")
    }

    #[test]
    fn a_password_follows_its_letter_at_once() {
        for (line, spelled) in [
            ("-p shop", "--password shop"),
            ("-psecret shop", "--password=secret shop"),
            ("-p=secret", "--password==secret"),
            ("-Bp", "-B --password"),
            ("-BtNpö-x", "-BtN --password=ö-x"),
            ("-uann -pfish", "-uann --password=fish"),
            ("-upat", "-upat"),
            ("-u -pat -P 3306", "-u -pat -P 3306"),
            ("--user -pat -e -p", "--user -pat -e -p"),
            ("--user=pat -p", "--user=pat --password"),
            ("--password -p", "--password --password"),
            ("-P3306 -Dp -- -p", "-P3306 -Dp -- -p"),
        ] {
            assert_eq!(spell(line), spelled, "{line}");
        }
    }
}
