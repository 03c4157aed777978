//! What a program sets before it connects: `mysql_options()`, and the same by name in option files.
//!
//! Each option is one row of [`TABLE`]: its number in `mysql.h`, its name in option files, and
//! where its value goes. Options that have no meaning here (plugins) are rows too: they are taken
//! and change nothing, as programs set them without looking.
//!
//! TLS is asked for by a file, a cipher or a fingerprint that is named, and then required:
//! Connector/C 3.3 has no mode in between. Option files may also name MySQL's `ssl-mode` and the options of compression that MySQL's
//! clients have.

use crate::abi::{PublicOptions, Text, take};
use crate::failure::{self, Failure};
use std::borrow::Cow;
use std::ffi::{CString, OsStr, c_uint, c_ulong, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use porpoise_client::{CompressionOptions, TlsMode, TlsOptions};
use porpoise_engine::variables::parse_size;
use porpoise_server::options::{OptionKind, Options as OptionFiles};

pub const PROTOCOL_TCP: c_uint = 1;
pub const PROTOCOL_SOCKET: c_uint = 2;
pub const PROTOCOL_PIPE: c_uint = 3;
pub const PROTOCOL_MEMORY: c_uint = 4;

/// Options that `mysql_ssl_set()` sets.
pub const SSL_KEY: u32 = 25;
pub const SSL_CERT: u32 = 26;
pub const SSL_CA: u32 = 27;
pub const SSL_CAPATH: u32 = 28;
pub const SSL_CIPHER: u32 = 29;

/// `CLIENT_…` bits that a program can ask for.
pub mod client {
    pub const FOUND_ROWS: u64 = 2;
    pub const COMPRESS: u64 = 32;
    pub const LOCAL_FILES: u64 = 128;
    pub const INTERACTIVE: u64 = 1024;
    pub const SSL: u64 = 2048;
    pub const MULTI_STATEMENTS: u64 = 1 << 16;
    pub const MULTI_RESULTS: u64 = 1 << 17;
    pub const SSL_VERIFY_SERVER_CERT: u64 = 1 << 30;
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub connect_timeout_s: c_uint,
    pub read_timeout_s: c_uint,
    pub write_timeout_s: c_uint,
    pub port: c_uint,
    pub protocol: c_uint,
    pub max_allowed_packet: c_ulong,
    pub net_buffer_length: c_ulong,
    pub reconnect: bool,
    pub report_truncation: bool,
    /// The program wants what it says to be encrypted, whatever else it says.
    pub tls_enforced: bool,
    /// It has called `mysql_ssl_set()`, if only with nulls.
    pub tls_set: bool,
    pub tls_verified: bool,
    pub tls_key: Option<CString>,
    pub tls_cert: Option<CString>,
    pub tls_ca: Option<CString>,
    pub tls_ca_path: Option<CString>,
    pub tls_cipher: Option<CString>,
    pub tls_crl: Option<CString>,
    pub tls_crl_path: Option<CString>,
    pub tls_version: Option<CString>,
    pub tls_fingerprint: Option<CString>,
    pub tls_fingerprint_file: Option<CString>,
    pub tls_passphrase: Option<CString>,
    pub tls_mode: Option<CString>,
    pub compress: bool,
    pub compression_algorithms: Option<CString>,
    pub zstd_level: c_uint,
    pub bind_address: Option<CString>,
    pub remote_only: bool,
    pub embedded_only: bool,
    /// Calls may be suspended.
    pub nonblocking: bool,
    pub host: Option<CString>,
    pub user: Option<CString>,
    pub password: Option<CString>,
    pub schema: Option<CString>,
    pub unix_socket: Option<CString>,
    pub shared_memory_base_name: Option<CString>,
    pub charset: Option<CString>,
    pub default_file: Option<CString>,
    pub default_group: Option<CString>,
    pub plugin_dir: Option<CString>,
    pub default_auth: Option<CString>,
    pub user_data: usize,
    /// `CLIENT_…` bits.
    pub flags: u64,
    pub init_commands: Vec<CString>,
    pub attributes: Vec<(String, String)>,
    /// Where values go that change nothing.
    pub ignored_text: Option<CString>,
    pub ignored_bool: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            connect_timeout_s: 0,
            read_timeout_s: 0,
            write_timeout_s: 0,
            port: 0,
            protocol: 0,
            max_allowed_packet: 1 << 30,
            net_buffer_length: 8192,
            reconnect: false,
            report_truncation: true,
            tls_enforced: false,
            tls_set: false,
            tls_verified: false,
            tls_key: None,
            tls_cert: None,
            tls_ca: None,
            tls_ca_path: None,
            tls_cipher: None,
            tls_crl: None,
            tls_crl_path: None,
            tls_version: None,
            tls_fingerprint: None,
            tls_fingerprint_file: None,
            tls_passphrase: None,
            tls_mode: None,
            compress: false,
            compression_algorithms: None,
            zstd_level: 0,
            bind_address: None,
            remote_only: false,
            embedded_only: false,
            nonblocking: false,
            host: None,
            user: None,
            password: None,
            schema: None,
            unix_socket: None,
            shared_memory_base_name: None,
            charset: None,
            default_file: None,
            default_group: None,
            plugin_dir: None,
            default_auth: None,
            user_data: 0,
            flags: client::LOCAL_FILES,
            init_commands: Vec::new(),
            attributes: Vec::new(),
            ignored_text: None,
            ignored_bool: false,
        }
    }
}

type S = Settings;

/// Where an option's value goes, and by that what type it has.
#[derive(Clone, Copy)]
enum Kind {
    /// `unsigned int *`
    Number(fn(&mut S) -> &mut c_uint),
    /// `unsigned long *`
    Size(fn(&mut S) -> &mut c_ulong),
    /// `my_bool *`
    Truth(fn(&mut S) -> &mut bool),
    /// `const char *`
    Text(fn(&mut S) -> &mut Option<CString>),
    /// `void *`
    Pointer(fn(&mut S) -> &mut usize),
    /// Without a value: it is set.
    Set(fn(&mut S)),
    /// A `CLIENT_…` bit, on unless a `my_bool *` says no.
    Flag(u64),
    /// `mysql_options()` and `init-command`: one more.
    InitCommand,
    AttributesReset,
    AttributeAdd,
    AttributeDelete,
    /// A function that nobody will call.
    Callback,
}

struct Row {
    option: u32,
    /// In option files, with dashes; none for what can't stand there.
    name: &'static str,
    kind: Kind,
}

const fn row(option: u32, name: &'static str, kind: Kind) -> Row {
    Row { option, name, kind }
}

const NO_TEXT: Kind = Kind::Text(|s| &mut s.ignored_text);
const NO_TRUTH: Kind = Kind::Truth(|s| &mut s.ignored_bool);

/// Every option of `enum mysql_option`.
#[rustfmt::skip]
static TABLE: &[Row] = &[
    row(0,    "connect-timeout",         Kind::Number(|s| &mut s.connect_timeout_s)),
    row(1,    "compress",                Kind::Set(|s| s.compress = true)),
    row(2,    "pipe",                    Kind::Set(|s| s.protocol = PROTOCOL_PIPE)),
    row(3,    "init-command",            Kind::InitCommand),
    row(4,    "",                        Kind::Text(|s| &mut s.default_file)),
    row(5,    "",                        Kind::Text(|s| &mut s.default_group)),
    row(6,    "character-sets-dir",      NO_TEXT),
    row(7,    "default-character-set",   Kind::Text(|s| &mut s.charset)),
    row(8,    "local-infile",            Kind::Flag(client::LOCAL_FILES)),
    row(9,    "protocol",                Kind::Number(|s| &mut s.protocol)),
    row(10,   "shared-memory-base-name", Kind::Text(|s| &mut s.shared_memory_base_name)),
    row(11,   "net-read-timeout",        Kind::Number(|s| &mut s.read_timeout_s)),
    row(12,   "net-write-timeout",       Kind::Number(|s| &mut s.write_timeout_s)),
    row(13,   "",                        Kind::Set(|_| {})),
    row(14,   "",                        Kind::Set(|s| s.remote_only = true)),
    row(15,   "",                        Kind::Set(|s| s.embedded_only = true)),
    row(16,   "",                        Kind::Set(|s| (s.remote_only, s.embedded_only) = (false, false))),
    row(17,   "",                        NO_TEXT),
    row(18,   "secure-auth",             NO_TRUTH),
    row(19,   "report-data-truncation",  Kind::Truth(|s| &mut s.report_truncation)),
    row(20,   "reconnect",               Kind::Truth(|s| &mut s.reconnect)),
    row(21,   "ssl-verify-server-cert",  Kind::Truth(|s| &mut s.tls_verified)),
    row(22,   "plugin-dir",              Kind::Text(|s| &mut s.plugin_dir)),
    row(23,   "default-auth",            Kind::Text(|s| &mut s.default_auth)),
    row(24,   "bind-address",            Kind::Text(|s| &mut s.bind_address)),
    row(SSL_KEY,   "ssl-key",                 Kind::Text(|s| &mut s.tls_key)),
    row(SSL_CERT,   "ssl-cert",                Kind::Text(|s| &mut s.tls_cert)),
    row(SSL_CA,   "ssl-ca",                  Kind::Text(|s| &mut s.tls_ca)),
    row(SSL_CAPATH,   "ssl-capath",              Kind::Text(|s| &mut s.tls_ca_path)),
    row(SSL_CIPHER,   "ssl-cipher",              Kind::Text(|s| &mut s.tls_cipher)),
    row(30,   "ssl-crl",                 Kind::Text(|s| &mut s.tls_crl)),
    row(31,   "ssl-crlpath",             Kind::Text(|s| &mut s.tls_crl_path)),
    row(32,   "",                        Kind::AttributesReset),
    row(33,   "",                        Kind::AttributeAdd),
    row(34,   "",                        Kind::AttributeDelete),
    row(35,   "server-public-key",       NO_TEXT),
    row(36,   "enable-cleartext-plugin", NO_TRUTH),
    row(37,   "",                        NO_TRUTH),
    row(38,   "ssl-enforce",             Kind::Truth(|s| &mut s.tls_enforced)),
    row(39,   "max-allowed-packet",      Kind::Size(|s| &mut s.max_allowed_packet)),
    row(40,   "net-buffer-length",       Kind::Size(|s| &mut s.net_buffer_length)),
    row(41,   "tls-version",             Kind::Text(|s| &mut s.tls_version)),
    row(42,   "zstd-compression-level",  Kind::Number(|s| &mut s.zstd_level)),
    row(5999, "",                        Kind::Callback),
    row(6000, "",                        Kind::Set(|s| s.nonblocking = true)),
    row(7000, "",                        NO_TEXT),
    row(7001, "ssl-fp",                  Kind::Text(|s| &mut s.tls_fingerprint)),
    row(7002, "ssl-fplist",              Kind::Text(|s| &mut s.tls_fingerprint_file)),
    row(7003, "tls-passphrase",          Kind::Text(|s| &mut s.tls_passphrase)),
    row(7004, "",                        Kind::Callback),
    row(7005, "",                        Kind::Text(|s| &mut s.tls_version)),
    row(7006, "tls-fp",                  Kind::Text(|s| &mut s.tls_fingerprint)),
    row(7007, "tls-fplist",              Kind::Text(|s| &mut s.tls_fingerprint_file)),
    row(7008, "",                        NO_TRUTH),
    row(7009, "",                        Kind::Callback),
    row(7010, "",                        Kind::Pointer(|s| &mut s.user_data)),
    row(7011, "connection-handler",      NO_TEXT),
    row(7012, "port",                    Kind::Number(|s| &mut s.port)),
    row(7013, "socket",                  Kind::Text(|s| &mut s.unix_socket)),
    row(7014, "password",                Kind::Text(|s| &mut s.password)),
    row(7015, "host",                    Kind::Text(|s| &mut s.host)),
    row(7016, "user",                    Kind::Text(|s| &mut s.user)),
    row(7017, "database",                Kind::Text(|s| &mut s.schema)),
    row(7018, "",                        NO_TEXT),
    row(7019, "",                        Kind::Flag(client::FOUND_ROWS)),
    row(7020, "multi-results",           Kind::Flag(client::MULTI_RESULTS)),
    row(7021, "multi-statements",        Kind::Flag(client::MULTI_STATEMENTS)),
    row(7022, "interactive-timeout",     Kind::Flag(client::INTERACTIVE)),
    row(7023, "",                        Kind::Callback),
    row(7024, "",                        Kind::Callback),
    row(7025, "",                        NO_TRUTH),
    row(7026, "restricted-auth",         NO_TEXT),
    row(7027, "",                        Kind::Callback),
    row(7028, "",                        Kind::Callback),
    row(7029, "",                        Kind::Callback),
    // In option files alone: MySQL's clients have them, Connector/C has no number for them.
    row(NO_NUMBER, "ssl-mode",               Kind::Text(|s| &mut s.tls_mode)),
    row(NO_NUMBER, "compression-algorithms", Kind::Text(|s| &mut s.compression_algorithms)),
];

/// Of options that `mysql_options()` doesn't have.
const NO_NUMBER: u32 = u32::MAX;

/// Other names that option files may use.
const ALIASES: &[(&str, &str)] = &[("timeout", "connect-timeout"), ("db", "database")];

const PROTOCOLS: &[(&str, c_uint)] = &[
    ("default", 0),
    ("tcp", PROTOCOL_TCP),
    ("socket", PROTOCOL_SOCKET),
    ("pipe", PROTOCOL_PIPE),
    ("memory", PROTOCOL_MEMORY),
];

fn truth(text: &str) -> bool {
    !matches!(
        text.to_ascii_lowercase().as_str(),
        "0" | "off" | "false" | "no"
    )
}

impl Settings {
    fn row(option: u32) -> Option<&'static Row> {
        let mut rows = TABLE.iter();
        rows.find(|row| row.option == option && option != NO_NUMBER)
    }

    /// `mysql_options()` and its relatives: false for an option there isn't.
    pub fn set(&mut self, option: u32, first: *const c_void, second: *const c_void) -> bool {
        let Some(row) = Self::row(option) else {
            return false;
        };
        let text = |value: *const c_void| Text(value.cast()).get().map(|text| text.to_owned());
        match row.kind {
            Kind::Number(place) => *place(self) = take(first.cast()).unwrap_or(0),
            Kind::Size(place) => *place(self) = take(first.cast()).unwrap_or(0),
            Kind::Truth(place) => *place(self) = take(first.cast::<u8>()).is_some_and(|on| on != 0),
            Kind::Text(place) => *place(self) = text(first),
            Kind::Pointer(place) => *place(self) = first as usize,
            Kind::Set(set) => set(self),
            Kind::Flag(flag) => self.flag(flag, take(first.cast::<u8>()).is_none_or(|on| on != 0)),
            Kind::InitCommand => self.init_commands.extend(text(first)),
            Kind::AttributesReset => self.attributes.clear(),
            Kind::AttributeAdd => {
                let (Some(name), Some(value)) =
                    (Text(first.cast()).string(), Text(second.cast()).string())
                else {
                    return false;
                };
                if self.attributes.iter().any(|(known, _)| *known == name) {
                    return false;
                }
                self.attributes.push((name, value));
            }
            Kind::AttributeDelete => {
                let name = Text(first.cast()).string();
                self.attributes
                    .retain(|(known, _)| Some(known) != name.as_ref());
            }
            Kind::Callback => {}
        }
        true
    }

    fn flag(&mut self, flag: u64, on: bool) {
        if on {
            self.flags |= flag;
        } else {
            self.flags &= !flag;
        }
    }

    /// `mysql_get_option()`: writes the value where `to` points; false for what can't be asked for.
    pub fn get(&mut self, option: u32, to: *mut c_void) -> bool {
        let Some(row) = Self::row(option) else {
            return false;
        };
        use crate::abi::put;
        match row.kind {
            Kind::Number(place) => put(to.cast(), *place(self)),
            Kind::Size(place) => put(to.cast(), *place(self)),
            Kind::Truth(place) => put(to.cast(), u8::from(*place(self))),
            Kind::Text(place) => {
                let text = place(self).as_ref();
                put(
                    to.cast(),
                    text.map_or(std::ptr::null(), |text| text.as_ptr()),
                );
            }
            Kind::Pointer(place) => put(to.cast(), *place(self)),
            Kind::Flag(flag) => put(to.cast(), u8::from(self.flags & flag != 0)),
            Kind::Set(_)
            | Kind::InitCommand
            | Kind::AttributesReset
            | Kind::AttributeAdd
            | Kind::AttributeDelete
            | Kind::Callback => return false,
        }
        true
    }

    /// An option by its name in option files; names that aren't known are none of ours.
    fn set_named(&mut self, name: &str, value: &str) {
        let name = name.replace('_', "-");
        let name = ALIASES
            .iter()
            .find(|(alias, _)| *alias == name)
            .map_or(name.as_str(), |(_, name)| name);
        let Some(row) = TABLE
            .iter()
            .find(|row| !row.name.is_empty() && row.name == name)
        else {
            return;
        };
        let text = || CString::new(value).ok();
        match row.kind {
            Kind::Number(place) if name == "protocol" => {
                let protocol = PROTOCOLS
                    .iter()
                    .find(|(known, _)| known.eq_ignore_ascii_case(value));
                *place(self) = protocol.map_or(0, |&(_, protocol)| protocol);
            }
            Kind::Number(place) => *place(self) = parse_size(value).unwrap_or(0) as c_uint,
            Kind::Size(place) => *place(self) = parse_size(value).unwrap_or(0),
            Kind::Truth(place) => *place(self) = truth(value),
            Kind::Text(place) => *place(self) = text(),
            Kind::Flag(flag) => self.flag(flag, truth(value)),
            Kind::Set(set) => set(self),
            Kind::InitCommand => self.init_commands.extend(text()),
            Kind::Pointer(_)
            | Kind::AttributesReset
            | Kind::AttributeAdd
            | Kind::AttributeDelete
            | Kind::Callback => {}
        }
    }

    /// Reads the option files, if the program asked for one or for a group of its own.
    pub fn read_option_files(&mut self) -> Result<(), String> {
        let (file, group) = (self.default_file.take(), self.default_group.take());
        if file.is_none() && group.is_none() {
            return Ok(());
        }
        let text = |text: Option<CString>| text.and_then(|text| text.into_string().ok());
        let group = text(group).unwrap_or_default();
        let mut groups = vec!["client", "client-server", "client-mariadb"];
        if !group.is_empty() {
            groups.push(&group);
        }
        let file = text(file).filter(|file| !file.is_empty());
        let given = match &file {
            Some(file) => read(&[file], &groups)?,
            None => {
                let home = std::env::var("HOME").unwrap_or_default() + "/.my.cnf";
                read(&["/etc/my.cnf", "/etc/mysql/my.cnf", &home], &groups)?
            }
        };
        for (name, value) in given {
            self.set_named(&name, &value);
        }
        Ok(())
    }

    /// Whether anything that was set asks for encryption.
    fn wants_tls(&self) -> bool {
        let named = [
            &self.tls_key,
            &self.tls_cert,
            &self.tls_ca,
            &self.tls_ca_path,
            &self.tls_cipher,
            &self.tls_crl,
            &self.tls_crl_path,
            &self.tls_fingerprint,
            &self.tls_fingerprint_file,
        ];
        let is_named = named.iter().any(|text| text.is_some());
        self.tls_enforced || self.tls_set || self.tls_verified || is_named
    }

    /// How to encrypt, with the `CLIENT_…` bits that a program asked for.
    pub fn tls_options(&self, flags: u64) -> Result<TlsOptions, Failure> {
        let path = |text: &Option<CString>| {
            let text = text.as_ref().filter(|text| !text.is_empty())?;
            Some(PathBuf::from(OsStr::from_bytes(text.as_bytes())))
        };
        fn text(text: &Option<CString>) -> Option<Cow<'_, str>> {
            text.as_ref().map(|text| text.to_string_lossy())
        }
        let mode = match text(&self.tls_mode) {
            Some(name) => Some(TlsMode::named(&name).ok_or_else(|| {
                Failure::new(
                    failure::INVALID_PARAMETER,
                    format!("Unknown ssl-mode '{name}'"),
                )
            })?),
            None => None,
        };
        let verified = self.tls_verified || flags & client::SSL_VERIFY_SERVER_CERT != 0;
        let wanted = self.wants_tls() || flags & client::SSL != 0;
        let has_ca = path(&self.tls_ca).is_some() || path(&self.tls_ca_path).is_some();
        let implied = match (wanted, verified, has_ca) {
            (_, true, _) => TlsMode::VerifyIdentity,
            (true, false, true) => TlsMode::VerifyCa,
            (true, false, false) => TlsMode::Required,
            (false, false, _) => TlsMode::Disabled,
        };
        // One list names the ciphers of all protocols.
        let ciphers = text(&self.tls_cipher).unwrap_or_default();
        let (of_1_3, older): (Vec<&str>, Vec<&str>) = ciphers
            .split([':', ','])
            .filter(|name| !name.is_empty())
            .partition(|name| name.starts_with("TLS_"));
        let list = |names: Vec<&str>| Some(names.join(":")).filter(|list| !list.is_empty());
        let mut fingerprints: Vec<String> = Vec::new();
        fingerprints.extend(text(&self.tls_fingerprint).map(Into::into));
        if let Some(file) = path(&self.tls_fingerprint_file) {
            let listed = std::fs::read_to_string(&file).map_err(|error| {
                let words = format!("TLS/SSL error: {}: {error}", file.display());
                Failure::new(failure::SSL_CONNECTION, words)
            })?;
            fingerprints.extend(listed.lines().map(|line| line.trim().to_owned()));
        }
        Ok(TlsOptions {
            mode: Some(mode.unwrap_or(implied)),
            ca: path(&self.tls_ca),
            ca_path: path(&self.tls_ca_path),
            cert: path(&self.tls_cert),
            key: path(&self.tls_key),
            crl: path(&self.tls_crl),
            crl_path: path(&self.tls_crl_path),
            cipher: list(older),
            ciphersuites: list(of_1_3),
            versions: text(&self.tls_version).map(Into::into),
            fingerprints,
            system_cas: true,
            always_full: false,
        })
    }

    /// How to compress, with the `CLIENT_…` bits that a program asked for.
    pub fn compression_options(&self, flags: u64) -> Result<CompressionOptions, Failure> {
        let mut options = CompressionOptions::default();
        if self.compress || flags & client::COMPRESS != 0 {
            options = CompressionOptions::if_possible();
        }
        if let Some(list) = &self.compression_algorithms {
            options.set_algorithms(&list.to_string_lossy())?;
        }
        // Programs give it as a byte or as a number of four.
        if let level @ 1..=22 = self.zstd_level as u8 {
            options.zstd_level = level;
        }
        Ok(options)
    }

    /// Shows C programs what they look at in the structure itself.
    pub fn publish(&self, public: &mut PublicOptions) {
        public.connect_timeout = self.connect_timeout_s;
        public.read_timeout = self.read_timeout_s;
        public.write_timeout = self.write_timeout_s;
        public.port = self.port;
        public.protocol = self.protocol;
        public.client_flag = self.flags;
        public.max_allowed_packet = self.max_allowed_packet;
        public.compress = self.compress.into();
        public.use_ssl = self.wants_tls().into();
        let text =
            |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
        public.ssl_key = text(&self.tls_key);
        public.ssl_cert = text(&self.tls_cert);
        public.ssl_ca = text(&self.tls_ca);
        public.ssl_capath = text(&self.tls_ca_path);
        public.ssl_cipher = text(&self.tls_cipher);
        public.reconnect = self.reconnect.into();
        public.report_data_truncation = self.report_truncation.into();
    }
}

/// The options of `groups` in these files, as far as they are there.
fn read(files: &[&str], groups: &[&str]) -> Result<Vec<(String, String)>, String> {
    let takes_value = |name: &str| {
        let name = name.replace('_', "-");
        let row = TABLE.iter().find(|row| row.name == name)?;
        matches!(
            row.kind,
            Kind::Number(_) | Kind::Size(_) | Kind::Text(_) | Kind::InitCommand
        )
        .then_some(OptionKind::Value)
    };
    // A name that isn't known is another program's.
    let known = |name: &str| {
        let kind = takes_value(name).unwrap_or(OptionKind::Switch);
        Some((name.to_string(), kind))
    };
    let mut options = OptionFiles::default();
    for file in files {
        options
            .read_file(Path::new(file), groups, false, &known)
            .map_err(|error| error.to_string())?;
    }
    Ok(options.into_pairs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set<T>(settings: &mut Settings, option: u32, value: &T) -> bool {
        settings.set(option, std::ptr::from_ref(value).cast(), std::ptr::null())
    }

    #[test]
    fn options_go_where_their_row_says_and_come_back() {
        let mut settings = Settings::default();
        assert!(set(&mut settings, 0, &7u32));
        assert!(set(&mut settings, 9, &PROTOCOL_MEMORY));
        assert!(set(&mut settings, 20, &1u8));
        assert!(settings.set(10, c"fish".as_ptr().cast(), std::ptr::null()));
        assert!(set(&mut settings, 8, &0u32));
        assert_eq!(
            (settings.connect_timeout_s, settings.protocol),
            (7, PROTOCOL_MEMORY)
        );
        assert!(settings.reconnect && settings.flags & client::LOCAL_FILES == 0);
        let mut name: *const std::ffi::c_char = std::ptr::null();
        assert!(settings.get(10, std::ptr::from_mut(&mut name).cast()));
        assert_eq!(Text(name).bytes(), Some(&b"fish"[..]));
    }

    #[test]
    fn whoever_names_a_certificate_wants_tls() {
        let mut settings = Settings::default();
        settings.set(27, std::ptr::null(), std::ptr::null());
        assert_eq!(settings.tls_options(0).unwrap().mode(), TlsMode::Disabled);
        let required = settings.tls_options(client::SSL).unwrap();
        assert_eq!(required.mode(), TlsMode::Required);
        settings.set(27, c"/ca.pem".as_ptr().cast(), std::ptr::null());
        settings.set(29, c"A:TLS_B:C".as_ptr().cast(), std::ptr::null());
        let options = settings.tls_options(0).unwrap();
        assert_eq!(options.mode(), TlsMode::VerifyCa);
        assert_eq!(options.ca.as_deref(), Some(Path::new("/ca.pem")));
        assert_eq!(options.cipher.as_deref(), Some("A:C"));
        assert_eq!(options.ciphersuites.as_deref(), Some("TLS_B"));
        assert!(set(&mut settings, 21, &1u8));
        let verified = settings.tls_options(0).unwrap();
        assert_eq!(verified.mode(), TlsMode::VerifyIdentity);
        settings.set_named("ssl_mode", "required");
        let named = settings.tls_options(0).unwrap();
        assert_eq!(named.mode(), TlsMode::Required);
        let mut ca: *const std::ffi::c_char = std::ptr::null();
        assert!(settings.get(27, std::ptr::from_mut(&mut ca).cast()));
        assert_eq!(Text(ca).bytes(), Some(&b"/ca.pem"[..]));
    }

    #[test]
    fn compression_is_asked_for_by_an_option_a_flag_or_a_file() {
        let mut settings = Settings::default();
        let none = settings.compression_options(0).unwrap();
        assert_eq!(none, CompressionOptions::default());
        let flagged = settings.compression_options(client::COMPRESS).unwrap();
        assert_eq!(flagged, CompressionOptions::if_possible());
        settings.set(1, std::ptr::null(), std::ptr::null());
        assert_eq!(settings.compression_options(0).unwrap(), flagged);
        settings.set_named("compression-algorithms", "zstd");
        settings.set_named("zstd-compression-level", "9");
        let named = settings.compression_options(0).unwrap();
        assert!(named.zstd && !named.zlib && !named.uncompressed && named.zstd_level == 9);
        settings.set_named("compression-algorithms", "none");
        assert!(settings.compression_options(0).is_err());
    }

    #[test]
    fn an_option_that_does_not_exist_is_refused() {
        assert!(!set(&mut Settings::default(), 12_345, &1u32));
    }

    #[test]
    fn option_files_set_options_by_name_in_their_groups_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("my.cnf");
        std::fs::write(
            &file,
            "[client]\nuser=jo\nno-such-thing=1\n[mine]\nprotocol=memory\nport=3307\n[other]\nuser=no\n",
        )
        .unwrap();
        let mut settings = Settings {
            default_file: CString::new(file.to_str().unwrap()).ok(),
            default_group: CString::new("mine").ok(),
            ..Settings::default()
        };
        settings.read_option_files().unwrap();
        assert_eq!(settings.user.as_deref(), Some(c"jo"));
        assert_eq!((settings.port, settings.protocol), (3307, PROTOCOL_MEMORY));
    }
}
