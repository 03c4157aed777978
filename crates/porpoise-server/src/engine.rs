//! What the server needs of an engine, with a stand-in behind it that answers a few statements.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, RwLock};
use porpoise_types::{Charset, Collation, CompactString, DataType, Value};

pub use porpoise_engine::{Error, Result, error, reply};
use reply::{Completion, Reply, ResultColumn};

pub mod storage {
    #[derive(Debug, Clone)]
    pub struct Error;
    pub type Result<T> = std::result::Result<T, Error>;
    impl std::fmt::Display for Error {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("storage")
        }
    }
    impl From<Error> for super::Error {
        fn from(_: Error) -> super::Error {
            super::Error::engine_error(1)
        }
    }
    pub struct Commit;
    impl Commit {
        pub fn is_durable(&self) -> bool {
            false
        }
        pub fn wait(&self) -> Result<()> {
            Ok(())
        }
        pub fn on_durable(&self, then: Box<dyn FnOnce(Result<()>) + Send>) {
            std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(5));
                then(Ok(()))
            });
        }
    }
}

pub mod accounts {
    use super::*;
    #[derive(Debug)]
    pub struct Account {
        pub user: CompactString,
        pub host: CompactString,
        pub plugin: CompactString,
        pub authentication_string: CompactString,
        pub admin: bool,
    }
    impl Account {
        pub fn is_administrator(&self) -> bool {
            self.admin
        }
    }
    #[derive(Default)]
    pub struct Accounts(pub RwLock<Vec<Arc<Account>>>);
    impl Accounts {
        pub fn lookup(
            &self,
            user: &str,
            _host: &str,
            _ip: Option<std::net::IpAddr>,
        ) -> Option<Arc<Account>> {
            self.0.read().iter().find(|a| a.user == user).cloned()
        }
    }
}
use accounts::*;

pub struct Login {
    pub connection_id: u64,
    pub account: Arc<Account>,
    pub user: CompactString,
    pub host: CompactString,
    pub peer: CompactString,
    pub schema: Option<CompactString>,
    pub collation: Collation,
    pub found_rows: bool,
    pub ignore_space: bool,
    pub interactive: bool,
    pub attributes: Vec<(String, String)>,
}

pub struct Globals {
    pub max_connections: AtomicU64,
    pub connect_timeout: AtomicU64,
    pub wait_timeout: AtomicU64,
}
impl Globals {
    pub fn max_connections(&self) -> u64 {
        self.max_connections.load(Ordering::Relaxed)
    }
    pub fn connect_timeout(&self) -> u64 {
        self.connect_timeout.load(Ordering::Relaxed)
    }
}

struct Inner {
    globals: Globals,
    accounts: Accounts,
    ids: AtomicU64,
    hook: RwLock<Option<Arc<dyn Fn() + Send + Sync>>>,
    lock: (Mutex<Option<u64>>, Condvar),
    controls: Mutex<Vec<Arc<session::Control>>>,
}

#[derive(Clone)]
pub struct Engine(Arc<Inner>);
impl Engine {
    pub fn stand_in() -> Engine {
        let accounts = Accounts::default();
        let stored = String::from_utf8(
            porpoise_protocol::auth::caching_sha2::Stored::of(b"secret").to_bytes(),
        );
        let account = |user: &str, plugin: &str, auth: &str, admin| {
            Arc::new(Account {
                user: user.into(),
                host: "%".into(),
                plugin: plugin.into(),
                authentication_string: auth.into(),
                admin,
            })
        };
        *accounts.0.write() = vec![
            account("root", "auth_socket", "", true),
            account(
                "sb",
                "mysql_native_password",
                &porpoise_protocol::auth::native::Stored::of(b"sb").to_text(),
                false,
            ),
            account("sha", "caching_sha2_password", &stored.unwrap(), false),
            account("empty", "caching_sha2_password", "", false),
        ];
        Engine(Arc::new(Inner {
            globals: Globals {
                max_connections: 151.into(),
                connect_timeout: 10.into(),
                wait_timeout: 28800.into(),
            },
            accounts,
            ids: 1.into(),
            hook: RwLock::default(),
            lock: Default::default(),
            controls: Mutex::default(),
        }))
    }
    pub fn variables(&self) -> &Globals {
        &self.0.globals
    }
    pub fn accounts(&self) -> &Accounts {
        &self.0.accounts
    }
    pub fn next_connection_id(&self) -> u64 {
        self.0.ids.fetch_add(1, Ordering::Relaxed)
    }
    pub fn connect(&self, login: Login) -> Result<Session> {
        let control = Arc::new(session::Control {
            id: login.connection_id,
            ..Default::default()
        });
        self.0.controls.lock().push(control.clone());
        Ok(Session {
            engine: self.clone(),
            control,
            vars: session::Variables {
                wait_timeout: self.0.globals.wait_timeout.load(Ordering::Relaxed),
            },
            holds_lock: false,
            statements: Default::default(),
        })
    }
    pub fn sync_pending(&self) -> storage::Result<bool> {
        Ok(true)
    }
    pub fn set_block_hook(&self, hook: Arc<dyn Fn() + Send + Sync>) {
        *self.0.hook.write() = Some(hook);
    }
    pub fn statistics(&self) -> String {
        "Uptime: 1".into()
    }
}

pub struct Session {
    engine: Engine,
    control: Arc<session::Control>,
    vars: session::Variables,
    holds_lock: bool,
    statements: std::collections::HashMap<u32, Vec<u8>>,
}
impl Drop for Session {
    fn drop(&mut self) {
        if self.holds_lock {
            *self.engine.0.lock.0.lock() = None;
            self.engine.0.lock.1.notify_all();
        }
        self.engine
            .0
            .controls
            .lock()
            .retain(|c| c.id != self.control.id);
    }
}
pub mod session {
    use super::*;
    #[derive(Default)]
    pub struct Control {
        pub id: u64,
        pub killed: AtomicBool,
        pub wake: Mutex<Option<Box<dyn Fn() + Send + Sync>>>,
    }
    impl Control {
        pub fn kill_connection(&self) {
            self.killed.store(true, Ordering::SeqCst);
            if let Some(wake) = &*self.wake.lock() {
                wake();
            }
        }
        pub fn is_connection_killed(&self) -> bool {
            self.killed.load(Ordering::SeqCst)
        }
        pub fn on_kill(&self, wake: Box<dyn Fn() + Send + Sync>) {
            *self.wake.lock() = Some(wake);
        }
    }
    pub struct Ran {
        pub rest: usize,
        pub commit: Option<storage::Commit>,
    }
    #[derive(Default)]
    pub struct Tracked {
        pub schema: Option<CompactString>,
        pub variables: Vec<(CompactString, CompactString)>,
        pub transaction_state: Option<CompactString>,
        pub transaction_characteristics: Option<CompactString>,
        pub state_changed: bool,
    }
    pub struct Prepared {
        pub id: u32,
        pub parameters: Vec<ResultColumn>,
        pub columns: Vec<ResultColumn>,
        pub warnings: u16,
    }
    pub struct Variables {
        pub wait_timeout: u64,
    }
    impl Variables {
        pub fn wait_timeout(&self) -> u64 {
            self.wait_timeout
        }
        pub fn net_read_timeout(&self) -> u64 {
            30
        }
        pub fn net_write_timeout(&self) -> u64 {
            60
        }
        pub fn max_allowed_packet(&self) -> u64 {
            64 << 20
        }
        pub fn results_charset(&self) -> Charset {
            Charset::Utf8mb4
        }
        pub fn client_charset(&self) -> Charset {
            Charset::Utf8mb4
        }
    }
}
use session::*;

impl Session {
    fn run(
        &mut self,
        sql: &str,
        values: &[Value],
        reply: &mut dyn Reply,
    ) -> Result<Option<storage::Commit>> {
        let sql = sql.trim();
        let columns = [ResultColumn::expression(sql, DataType::BIGINT, false)];
        let number = |text: &str| {
            text.trim_end_matches(')')
                .trim()
                .parse::<u64>()
                .unwrap_or(0)
        };
        let leave = || {
            if let Some(hook) = &*self.engine.0.hook.read() {
                hook()
            }
        };
        let lower = sql.to_ascii_lowercase();
        if lower.starts_with("select sleep(") {
            leave();
            let until = Instant::now() + Duration::from_millis(number(&sql[13..]));
            while Instant::now() < until && !self.control.is_connection_killed() {
                std::thread::sleep(Duration::from_millis(1));
            }
        } else if let Some(count) = lower.strip_prefix("rows ") {
            reply.begin_rows(&[ResultColumn::expression("t", DataType::varchar(100), false)])?;
            for _ in 0..number(count) {
                reply.begin_row();
                reply.bytes(&[b'x'; 100]);
                reply.end_row()?;
            }
            reply.end_rows(&Completion::default())?;
            return Ok(None);
        } else if lower == "lock" {
            let (lock, free) = &self.engine.0.lock;
            let mut holder = lock.lock();
            while holder.is_some() {
                leave();
                if self.control.is_connection_killed() {
                    return Err(Error::query_interrupted());
                }
                free.wait_for(&mut holder, Duration::from_millis(5));
            }
            *holder = Some(self.control.id);
            drop(holder);
            self.holds_lock = true;
            reply.ok(&Completion::default())?;
            return Ok(None);
        } else if let Some(id) = lower.strip_prefix("kill ") {
            let target = self
                .engine
                .0
                .controls
                .lock()
                .iter()
                .find(|c| c.id == number(id))
                .cloned();
            target
                .ok_or_else(|| Error::no_such_thread(id))?
                .kill_connection();
            reply.ok(&Completion::default())?;
            return Ok(None);
        } else if lower == "write" {
            reply.ok(&Completion {
                affected_rows: 1,
                ..Completion::default()
            })?;
            return Ok(Some(storage::Commit));
        } else if lower == "panic" {
            panic!("asked to");
        } else if let Some(seconds) = lower.strip_prefix("set wait_timeout=") {
            self.vars.wait_timeout = number(seconds);
            reply.ok(&Completion::default())?;
            return Ok(None);
        } else if !lower.starts_with("select") {
            return Err(Error::syntax_error(sql, 1));
        }
        reply.begin_rows(&columns)?;
        reply.begin_row();
        match values.first() {
            Some(Value::Int(v)) => reply.int(*v),
            _ => reply.int(1),
        }
        reply.end_row()?;
        reply.end_rows(&Completion::default())?;
        Ok(None)
    }
    pub fn id(&self) -> u64 {
        self.control.id
    }
    pub fn query(&mut self, sql: &[u8], reply: &mut dyn Reply) -> Result<Ran> {
        let end = sql.iter().position(|&b| b == b';').unwrap_or(sql.len());
        let text = String::from_utf8_lossy(&sql[..end]).into_owned();
        let commit = self.run(&text, &[], reply)?;
        Ok(Ran {
            rest: (end + 1).min(sql.len()),
            commit,
        })
    }
    pub fn prepare(&mut self, sql: &[u8]) -> Result<Prepared> {
        let id = self.statements.len() as u32 + 1;
        self.statements.insert(id, sql.to_vec());
        let parameters = sql
            .iter()
            .filter(|&&b| b == b'?')
            .map(|_| ResultColumn::expression("?", DataType::BIGINT, true));
        Ok(Prepared {
            id,
            parameters: parameters.collect(),
            columns: vec![ResultColumn::expression("1", DataType::BIGINT, false)],
            warnings: 0,
        })
    }
    pub fn execute(&mut self, id: u32, parameters: &[Value], reply: &mut dyn Reply) -> Result<Ran> {
        let sql = String::from_utf8_lossy(&self.statements[&id]).into_owned();
        let commit = self.run(&sql, parameters, reply)?;
        Ok(Ran { rest: 0, commit })
    }
    pub fn close_statement(&mut self, id: u32) {
        self.statements.remove(&id);
    }
    pub fn init_db(&mut self, _: &str) -> Result<()> {
        Ok(())
    }
    pub fn field_list(&mut self, _: &str, _: &str) -> Result<Vec<ResultColumn>> {
        Ok(Vec::new())
    }
    pub fn reset(&mut self) -> Result<()> {
        Ok(())
    }
    pub fn change_user(&mut self, _: Login) -> Result<()> {
        Ok(())
    }
    pub fn in_transaction(&self) -> bool {
        false
    }
    pub fn autocommit(&self) -> bool {
        true
    }
    pub fn no_backslash_escapes(&self) -> bool {
        false
    }
    pub fn take_tracked(&mut self) -> Tracked {
        Tracked::default()
    }
    pub fn variables(&self) -> &Variables {
        &self.vars
    }
    pub fn control(&self) -> &Arc<Control> {
        &self.control
    }
    pub fn set_multi_statements(&mut self, _: bool) {}
    pub fn require_shutdown(&self) -> Result<()> {
        Ok(())
    }
}
