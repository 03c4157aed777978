//! What a `MYSQL` is behind its public fields: a connection, its settings, and what was read last.
//!
//! ```text
//! MYSQL │ net.last_errno … │ affected_rows … status │ extension ─► Session: Connection, Settings, columns, open results
//! ```
//!
//! The public fields are written whenever a reply was read ([`Session::tell`]), as programs look at
//! them by macros or directly. `status` says what may be called next; out of turn is error 2014.
//!
//! [`Handle`] is the two together while a call lasts.

use crate::abi::{Mysql, Text, put_text, status, zeroed};
use crate::charset;
use crate::columns::ColumnSet;
use crate::embedded::{self, Instance};
use crate::failure::{self, Failure};
use crate::infile::{self, Infile};
use crate::nonblocking::{self, Waiter, WaitingStream};
use crate::result::ResultSet;
use crate::route::{Request, Route, cant_connect};
use crate::settings::Settings;
use crate::statement::Statement;
use parking_lot::Mutex;
use porpoise_client::flags::{Capabilities, Status};
use porpoise_client::{CompressionOptions, Connection, Options, TlsOptions};
use porpoise_transport::Endpoint;
use rustix::event::{EventfdFlags, eventfd};
use std::cell::UnsafeCell;
use std::ffi::{CString, c_char, c_uint, c_ulong};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// `~0`: what isn't known yet, or went wrong.
pub const COUNT_ERROR: u64 = !0;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// What `net.pvio` points to: the original's is opaque to programs.
struct Opaque(UnsafeCell<[usize; 64]>);

// SAFETY: nobody reads or writes it.
unsafe impl Sync for Opaque {}

static PVIO: Opaque = Opaque(UnsafeCell::new([0; 64]));

/// Texts that the public fields of a `MYSQL` point to.
#[derive(Default)]
struct Texts {
    host: Option<CString>,
    user: Option<CString>,
    password: Option<CString>,
    unix_socket: Option<CString>,
    schema: Option<CString>,
    server_version: Option<CString>,
    host_info: Option<CString>,
    info: Option<CString>,
    tls_cipher: Option<CString>,
    tls_version: Option<CString>,
}

pub struct Session {
    pub connection: Option<Connection>,
    pub settings: Settings,
    /// The columns of the result read last.
    pub columns: Arc<ColumnSet>,
    pub infile: Arc<Mutex<Infile>>,
    /// The result that is read row by row.
    pub unbuffered: *mut ResultSet,
    pub statements: Vec<*mut Statement>,
    pub tracked: Vec<(u32, CString, usize)>,
    pub tracked_next: usize,
    pub stat: Option<CString>,
    pub waiter: Arc<Waiter>,
    /// In the place of a socket where there is none, or none that tells of replies: it always has
    /// something to read, so that a program that waits for it goes on to read, which waits.
    always_ready: Option<OwnedFd>,
    request: Request,
    /// Beneath the connection: a database is let go after it.
    instance: Option<Arc<Instance>>,
    texts: Texts,
}

/// A `MYSQL` during a call.
pub struct Handle<'a> {
    pub mysql: &'a mut Mysql,
    pub session: &'a mut Session,
}

fn c_text(text: &str) -> Option<CString> {
    CString::new(text).ok()
}

fn pointer(text: &Option<CString>) -> *mut c_char {
    text.as_ref()
        .map_or(std::ptr::null_mut(), |text| text.as_ptr().cast_mut())
}

impl Mysql {
    /// A `MYSQL` without a connection. The caller gives its [`Session`] back with [`Mysql::end`].
    pub fn new() -> Mysql {
        let session = Box::new(Session {
            connection: None,
            settings: Settings::default(),
            columns: Arc::default(),
            infile: Arc::default(),
            unbuffered: std::ptr::null_mut(),
            statements: Vec::new(),
            tracked: Vec::new(),
            tracked_next: 0,
            stat: None,
            waiter: Arc::default(),
            always_ready: None,
            request: Request::default(),
            instance: None,
            texts: Texts::default(),
        });
        // SAFETY: a MYSQL is integers, pointers and optional functions.
        let mut mysql: Mysql = unsafe { zeroed() };
        session.settings.publish(&mut mysql.options);
        mysql.options.secure_auth = 1;
        mysql.charset = &charset::default().info;
        mysql.net.fd = -1;
        put_text(&mut mysql.net.sqlstate, "00000");
        mysql.extension = Box::into_raw(session);
        mysql
    }

    /// Its session; none after `mysql_close()`.
    pub fn session(&mut self) -> Option<Handle<'_>> {
        if self.extension.is_null() {
            return None;
        }
        // SAFETY: it is the pointer that `new` made, and `end` takes it away. Nobody else has it,
        // and by the border's contract no other thread uses this MYSQL now.
        let session = unsafe { &mut *self.extension };
        Some(Handle {
            mysql: self,
            session,
        })
    }

    /// Takes leave of the server and frees what lies behind the public fields.
    pub fn end(&mut self) {
        if let Some(handle) = self.session() {
            handle.disown();
        }
        let session = std::mem::replace(&mut self.extension, std::ptr::null_mut());
        if !session.is_null() {
            // SAFETY: `new` made it by Box::into_raw, and it was taken out of the only place that
            // has it.
            drop(unsafe { Box::from_raw(session) });
        }
    }

    pub fn fail(&mut self, failure: &Failure) {
        self.net.last_errno = failure.number;
        put_text(&mut self.net.last_error, &failure.message);
        put_text(
            &mut self.net.sqlstate,
            &String::from_utf8_lossy(&failure.sqlstate),
        );
    }

    #[inline]
    pub fn clear_error(&mut self) {
        if self.net.last_errno != 0 {
            self.net.last_errno = 0;
            self.net.last_error[0] = 0;
            put_text(&mut self.net.sqlstate, "00000");
        }
    }
}

impl Session {
    pub fn connection(&mut self) -> Result<&mut Connection, Failure> {
        self.connection
            .as_mut()
            .ok_or_else(|| Failure::of(failure::SERVER_GONE))
    }

    /// Which bytes of the connection's sets are what.
    /// The cipher that the connection is encrypted with; null if it isn't.
    pub fn tls_cipher(&self) -> *const c_char {
        let text = self.texts.tls_cipher.as_ref();
        text.map_or(std::ptr::null(), |text| text.as_ptr())
    }

    /// The protocol that it is encrypted with, `TLSv1.3`; null if it isn't.
    pub fn tls_version(&self) -> *const c_char {
        let text = self.texts.tls_version.as_ref();
        text.map_or(std::ptr::null(), |text| text.as_ptr())
    }

    fn options(&self, charset: &charset::Row, flags: u64) -> Result<Options, Failure> {
        let seconds = |seconds: c_uint| (seconds > 0).then(|| Duration::from_secs(seconds.into()));
        let settings = &self.settings;
        let asked = Capabilities::from_bits_truncate(flags as u32)
            & (Capabilities::NO_SCHEMA
                | Capabilities::ODBC
                | Capabilities::LOCAL_FILES
                | Capabilities::IGNORE_SPACE
                | Capabilities::INTERACTIVE
                | Capabilities::FOUND_ROWS
                | Capabilities::MULTI_STATEMENTS
                | Capabilities::CAN_HANDLE_EXPIRED_PASSWORDS);
        let bind_address = settings.bind_address.as_ref().map(|address| {
            let address = address.to_string_lossy();
            let invalid = |_| {
                let words = format!("Can't connect from '{address}': it is no address");
                Failure::new(failure::INVALID_PARAMETER, words)
            };
            address.parse().map_err(invalid)
        });
        Ok(Options {
            bind_address: bind_address.transpose()?,
            tls: settings.tls_options(flags)?,
            compression: settings.compression_options(flags)?,
            connect_timeout: seconds(settings.connect_timeout_s).or(Some(CONNECT_TIMEOUT)),
            read_timeout: seconds(settings.read_timeout_s),
            write_timeout: seconds(settings.write_timeout_s),
            max_allowed_packet: usize::try_from(settings.max_allowed_packet).unwrap_or(1 << 30),
            collation: charset.info.nr as u16,
            capabilities: asked,
            attributes: settings.attributes.clone(),
            ..Options::default()
        })
    }
}

impl Handle<'_> {
    /// Notes an error; what a call that returns an `int` returns.
    pub fn fail(&mut self, failure: &Failure) {
        self.mysql.fail(failure);
        if failure.is_lost() {
            self.mysql.net.pvio = std::ptr::null_mut();
        }
        self.mysql.affected_rows = COUNT_ERROR;
        // A call out of turn has sent nothing: what was pending still is.
        if failure.number == failure::COMMANDS_OUT_OF_SYNC {
            return;
        }
        self.mysql.server_status &= !c_uint::from(Status::MORE_RESULTS_EXISTS.bits());
    }

    /// Nothing is left to be read of the command before, so that the next can be sent.
    #[inline]
    pub fn ready(&mut self) -> Result<(), Failure> {
        self.mysql.clear_error();
        if self.mysql.status == status::READY && !self.has_more_results() {
            return Ok(());
        }
        Err(Failure::of(failure::COMMANDS_OUT_OF_SYNC))
    }

    pub fn has_more_results(&self) -> bool {
        self.mysql.server_status & c_uint::from(Status::MORE_RESULTS_EXISTS.bits()) != 0
    }

    /// Connects and logs in.
    pub fn connect(&mut self, mut request: Request) -> Result<(), Failure> {
        if self.session.connection.is_some() {
            return Err(Failure::of(failure::ALREADY_CONNECTED));
        }
        self.session
            .settings
            .read_option_files()
            .map_err(|message| Failure::new(failure::UNKNOWN, message))?;
        let settings = &self.session.settings;
        let named = |text: &Option<CString>| {
            text.as_ref()
                .map(|text| text.to_string_lossy().into_owned())
        };
        request.host = request.host.or_else(|| named(&settings.host));
        request.user = request.user.or_else(|| named(&settings.user));
        request.password = request.password.or_else(|| named(&settings.password));
        request.schema = request.schema.or_else(|| named(&settings.schema));
        request.unix_socket = request.unix_socket.or_else(|| named(&settings.unix_socket));
        if request.port == 0 {
            request.port = settings.port;
        }
        request.flags |= settings.flags;
        let charset = match &settings.charset {
            Some(name) if name.as_bytes() != b"auto" => {
                charset::Row::by_name(name.as_bytes()).ok_or_else(|| cant_read(name.as_bytes()))?
            }
            _ => charset::default(),
        };
        let again = request.clone();
        let options = self.session.options(charset, request.flags)?;
        let route = request.route(settings, options)?;
        let connection = self.open(&request, route, charset)?;
        self.mysql.charset = &charset.info;
        self.session.connection = Some(connection);
        self.session.request = again;
        self.introduce(&request);
        if charset.info.nr > 255 {
            self.run(format!("SET NAMES {}", charset_name(charset)).as_bytes())?;
        }
        for command in self.session.settings.init_commands.clone() {
            self.run(command.as_bytes())?;
        }
        Ok(())
    }

    fn open(
        &mut self,
        request: &Request,
        route: Route,
        charset: &charset::Row,
    ) -> Result<Connection, Failure> {
        let infile = self.session.infile.clone();
        let login = |options: Options| Options {
            user: request.user.clone().unwrap_or_else(login_name),
            password: request.password.clone().unwrap_or_default(),
            database: request.schema.clone().filter(|schema| !schema.is_empty()),
            ..options
        };
        let lost = |error: porpoise_client::Error| match Failure::from(error) {
            failure if failure.is_lost() => Failure::new(
                failure::SERVER_LOST,
                "Lost connection to server at 'handshake: reading initial communication packet', system error: 0",
            ),
            failure => failure,
        };
        let (stream, options): (Box<dyn porpoise_transport::Stream>, Options) = match route {
            Route::Embedded(config) => {
                let instance = embedded::open(&config)?;
                let stream = instance.connect(infile::source_in_process(infile.clone()))?;
                self.session.instance = Some(instance);
                self.mysql.port = 0;
                let options = Options {
                    tls: TlsOptions::default(),
                    compression: CompressionOptions::default(),
                    ..self.session.options(charset, request.flags)?
                };
                (Box::new(stream), login(options))
            }
            Route::Server(options) => {
                let mut options = login(*options);
                // Calls couldn't be suspended over a stream that the log-in moves to.
                options.loopback_fast_path &= !self.session.settings.nonblocking;
                let (mut stream, endpoint) = dial_first(&options, &self.session.waiter)?;
                if self.session.settings.nonblocking {
                    let waiter = Arc::clone(&self.session.waiter);
                    stream = Box::new(WaitingStream::new(stream, waiter));
                }
                self.session.texts.unix_socket = match &endpoint {
                    Endpoint::Unix(path) => c_text(&path.display().to_string()),
                    _ => None,
                };
                self.mysql.port = match endpoint {
                    Endpoint::Tcp { port, .. } => port.into(),
                    _ => 0,
                };
                (stream, options)
            }
        };
        let mut connection = Connection::over(stream, &options).map_err(lost)?;
        let own_socket = |connection: &Connection| {
            let socket = connection.stream().socket();
            socket.map(|socket| socket.as_raw_fd())
        };
        let socket = match connection.stream().kind() {
            "TCP/IP" | "UNIX socket" => own_socket(&connection),
            // A call that is suspended has the server write to it.
            "shared memory" if self.session.settings.nonblocking => own_socket(&connection),
            _ => {
                self.session.always_ready = eventfd(1, EventfdFlags::CLOEXEC).ok();
                self.session.always_ready.as_ref().map(AsRawFd::as_raw_fd)
            }
        };
        self.mysql.net.fd = socket.unwrap_or(-1);
        self.mysql.net.pvio = PVIO.0.get().cast();
        connection.set_file_source(Some(infile::source(infile)));
        Ok(connection)
    }

    /// Fills in what a new connection tells.
    fn introduce(&mut self, request: &Request) {
        let Session {
            connection: Some(connection),
            texts,
            ..
        } = &mut *self.session
        else {
            return;
        };
        let host = request.host.clone().unwrap_or_else(|| "localhost".into());
        let kind = connection.stream().kind();
        let host_info = match kind {
            "TCP/IP" => format!("{host} via TCP/IP"),
            "embedded" => "Embedded".to_owned(),
            kind => format!("Localhost via {kind}"),
        };
        texts.host = c_text(&host);
        texts.user = c_text(request.user.as_deref().unwrap_or_default());
        texts.password = c_text(request.password.as_deref().unwrap_or_default());
        texts.schema = request.schema.as_deref().and_then(c_text);
        texts.server_version = c_text(plain_version(connection.server_version()));
        texts.host_info = c_text(&host_info);
        let tls = connection.tls();
        texts.tls_cipher = tls.and_then(|tls| c_text(tls.cipher));
        texts.tls_version = tls.and_then(|tls| c_text(tls.version));
        let mysql = &mut *self.mysql;
        mysql.host = pointer(&texts.host);
        mysql.user = pointer(&texts.user);
        mysql.passwd = pointer(&texts.password);
        mysql.unix_socket = pointer(&texts.unix_socket);
        mysql.db = pointer(&texts.schema);
        mysql.server_version = pointer(&texts.server_version);
        mysql.host_info = pointer(&texts.host_info);
        mysql.thread_id = connection.id().into();
        mysql.protocol_version = 10;
        mysql.server_capabilities = connection.server_capabilities().bits().into();
        mysql.server_language = connection.server_collation().into();
        mysql.client_flag = c_ulong::from(connection.capabilities().bits());
        mysql.server_status = connection.status().bits().into();
        mysql.status = status::READY;
        mysql.net.compress = connection.compression().is_some().into();
        mysql.net.max_packet_size = self.session.settings.max_allowed_packet;
        self.session.settings.publish(&mut mysql.options);
    }

    /// The database that is the current one from now on.
    pub fn set_schema(&mut self, schema: &str) {
        self.session.texts.schema = c_text(schema);
        self.session.request.schema = Some(schema.to_owned());
        self.mysql.db = pointer(&self.session.texts.schema);
    }

    /// Who it is logged in as from now on.
    pub fn set_account(&mut self, user: &str, password: &str) {
        let Session { texts, request, .. } = &mut *self.session;
        texts.user = c_text(user);
        texts.password = c_text(password);
        self.mysql.user = pointer(&texts.user);
        self.mysql.passwd = pointer(&texts.password);
        request.user = Some(user.to_owned());
        request.password = Some(password.to_owned());
    }

    /// Connects again as before. Statements and results of the old connection are of no use.
    pub fn reconnect(&mut self) -> Result<(), Failure> {
        let request = self.session.request.clone();
        self.detach_statements();
        self.detach_result();
        self.session.connection = None;
        self.mysql.status = status::READY;
        self.mysql.server_status = 0;
        self.connect(request)
    }

    pub fn may_reconnect(&self) -> bool {
        let in_transaction = c_uint::from(Status::IN_TRANS.bits());
        self.mysql.options.reconnect != 0 && self.mysql.server_status & in_transaction == 0
    }

    /// Runs a statement whose rows, if any, don't matter.
    pub fn run(&mut self, sql: &[u8]) -> Result<(), Failure> {
        let outcome = self.session.connection()?.run(sql)?;
        self.mysql.server_status = outcome.status.bits().into();
        Ok(())
    }

    /// Fills in what the head of a reply told, and remembers its columns.
    #[inline]
    pub fn tell(&mut self) {
        let session = &mut *self.session;
        let Some(connection) = &mut session.connection else {
            return;
        };
        let columns = connection.results();
        let columns = columns.columns();
        if columns.is_empty() {
            return self.tell_ok();
        }
        let set = ColumnSet::renewed(std::mem::take(&mut session.columns), columns);
        self.tell_columns(&set, status::GET_RESULT);
        self.session.columns = set;
    }

    /// Rows of these columns are to come.
    #[inline]
    pub fn tell_columns(&mut self, columns: &Arc<ColumnSet>, status: c_uint) {
        let mysql = &mut *self.mysql;
        mysql.info = std::ptr::null_mut();
        mysql.fields = ColumnSet::pointer(columns);
        mysql.field_count = columns.count();
        mysql.affected_rows = COUNT_ERROR;
        mysql.status = status;
    }

    /// A statement without rows is over.
    #[inline]
    pub fn tell_ok(&mut self) {
        let mysql = &mut *self.mysql;
        mysql.info = std::ptr::null_mut();
        mysql.fields = std::ptr::null_mut();
        mysql.field_count = 0;
        mysql.status = status::READY;
        let session = &mut *self.session;
        let Some(connection) = &mut session.connection else {
            return;
        };
        let results = connection.results();
        let outcome = results.outcome();
        mysql.affected_rows = outcome.affected_rows;
        mysql.insert_id = outcome.last_insert_id;
        if !outcome.message.is_empty() {
            session.texts.info = c_text(&outcome.message);
            mysql.info = pointer(&session.texts.info);
        }
        self.tell_end();
    }

    /// Fills in what the end of a result told.
    #[inline]
    pub fn tell_end(&mut self) {
        let session = &mut *self.session;
        let Some(connection) = &mut session.connection else {
            return;
        };
        let results = connection.results();
        let outcome = results.outcome();
        self.mysql.server_status = outcome.status.bits().into();
        self.mysql.warning_count = outcome.warnings.into();
        if outcome.status.contains(Status::SESSION_STATE_CHANGED) {
            session.tracked = crate::tracking::changes(outcome);
            session.tracked_next = 0;
            if let Some(schema) = crate::tracking::schema(&session.tracked) {
                self.set_schema(&schema);
            }
        } else if !session.tracked.is_empty() {
            session.tracked.clear();
        }
    }

    /// After an error: a file that couldn't be read says more than the server's answer to that.
    pub fn first_failure(&mut self, failure: Failure) -> Failure {
        self.session.infile.lock().failure.take().unwrap_or(failure)
    }

    /// Its statements know that the connection they were prepared on is no more.
    pub fn detach_statements(&mut self) {
        for statement in &self.session.statements {
            // SAFETY: a statement takes itself out of this list before it is freed, and by the
            // border's contract no other thread uses it or this MYSQL now.
            unsafe { (**statement).lose_connection() };
        }
    }

    /// The result that is read row by row has no more rows.
    pub fn detach_result(&mut self) {
        let result = std::mem::replace(&mut self.session.unbuffered, std::ptr::null_mut());
        if !result.is_null() {
            // SAFETY: an unbuffered result takes itself out of here before it is freed, and by the
            // border's contract no other thread uses it now.
            unsafe { (*result).disown() };
        }
    }

    /// Before the session goes: what outlives it must not look for it.
    fn disown(mut self) {
        for statement in std::mem::take(&mut self.session.statements) {
            // SAFETY: as in `detach_statements`.
            unsafe { (*statement).disown() };
        }
        self.detach_result();
    }
}

fn cant_read(name: &[u8]) -> Failure {
    Failure::new(
        failure::CANT_READ_CHARSET,
        format!(
            "Can't initialize character set {} (path: compiled_in)",
            String::from_utf8_lossy(name)
        ),
    )
}

pub fn charset_name(charset: &charset::Row) -> String {
    Text(charset.info.csname).string().unwrap_or_default()
}

/// `mysql_set_character_set()`.
pub fn find_charset(name: &[u8]) -> Result<&'static charset::Row, Failure> {
    charset::Row::by_name(name).ok_or_else(|| cant_read(name))
}

/// MariaDB's servers put `5.5.5-` before their version for old replicas.
fn plain_version(version: &str) -> &str {
    version
        .strip_prefix("5.5.5-")
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        .unwrap_or(version)
}

/// A stream to the first of the endpoints that is open, or why the last one isn't.
fn dial_first(
    options: &Options,
    waiter: &Waiter,
) -> Result<(Box<dyn porpoise_transport::Stream>, Endpoint), Failure> {
    let mut failure = Failure::of(failure::CONNECTION);
    for endpoint in options.endpoints().map_err(Failure::from)? {
        let dialled = match &endpoint {
            Endpoint::Tcp { host, port } if waiter.suspends() => {
                let (local, timeout) = (options.bind_address, options.connect_timeout);
                nonblocking::connect_tcp(waiter, host, *port, local, timeout)
                    .map(|stream| Box::new(stream) as Box<dyn porpoise_transport::Stream>)
            }
            endpoint => porpoise_client::connect_stream(endpoint, options),
        };
        match dialled {
            Ok(stream) => return Ok((stream, endpoint)),
            Err(error) => failure = cant_connect(&endpoint, &error),
        }
    }
    Err(failure)
}

/// Who a program is that doesn't say: the operating system's user.
fn login_name() -> String {
    std::env::var("USER")
        .or_else(|_| std::env::var("LOGNAME"))
        .unwrap_or_else(|_| "root".into())
}
