//! The sessions that are connected and what they run: SHOW PROCESSLIST and KILL.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use compact_str::CompactString;
use hashbrown::HashMap;
use parking_lot::Mutex;
use porpoise_storage::{Interrupt, InterruptCause};

use super::command_counts::CommandCounts;
use super::in_use::InUse;
use super::{Held, Waiter};

/// As much of a statement's text as the process list keeps.
const STATEMENT_BYTES_MAX: usize = 1024;
const SHARDS: usize = 16;
/// What the State column says of a statement that waits for nothing.
pub const EXECUTING: &str = "executing";

/// What others see of a session, and how they end it.
pub struct Control {
    /// The connection id.
    pub id: u64,
    /// The host its client came from.
    pub host: CompactString,
    command: AtomicU8,
    /// When the current command began, in UTC microseconds since 1970.
    since_us: AtomicI64,
    running: Mutex<Running>,
    killed: AtomicBool,
    /// Ends the running statement.
    pub interrupt: Arc<Interrupt>,
    wake: Mutex<Option<Box<dyn Fn() + Send + Sync>>>,
    /// Wakes it from waiting for a metadata lock.
    pub waiter: Arc<Waiter>,
    /// The metadata locks it holds.
    pub held: Held,
    /// The statements that it has begun.
    pub counts: CommandCounts,
    /// The plan that it executes, of a type that a higher layer knows.
    plan: OnceLock<Arc<dyn Any + Send + Sync>>,
}

#[derive(Default)]
struct Running {
    user: CompactString,
    schema: Option<CompactString>,
    sql: Vec<u8>,
    state: &'static str,
    attributes: Arc<[(String, String)]>,
}

/// What a session is doing, as the process list's Command column says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Command {
    /// It waits for its client.
    Sleep,
    /// It runs a statement that came as text.
    Query,
    /// It prepares a statement.
    Prepare,
    /// It executes a prepared statement.
    Execute,
    /// It runs an event.
    Connect,
    /// It is a thread of the server's.
    Daemon,
    /// KILL ended it; its worker is about to close it.
    Killed,
}

impl Command {
    /// As the process list spells it.
    pub fn name(self) -> &'static str {
        match self {
            Command::Sleep => "Sleep",
            Command::Query => "Query",
            Command::Prepare => "Prepare",
            Command::Execute => "Execute",
            Command::Connect => "Connect",
            Command::Daemon => "Daemon",
            Command::Killed => "Killed",
        }
    }
}

/// A row of the process list.
#[derive(Clone, Debug)]
pub struct Process {
    /// The connection id.
    pub id: u64,
    /// The user name that the client logged in with.
    pub user: CompactString,
    /// The host its client came from.
    pub host: CompactString,
    /// The current schema, if there is one.
    pub schema: Option<CompactString>,
    /// What it is doing.
    pub command: Command,
    /// When it began to do that, in UTC microseconds since 1970.
    pub since_us: i64,
    /// What its statement is doing or waits for; empty between statements.
    pub state: &'static str,
    /// The beginning of its statement; `None` between statements, and of a daemon.
    pub sql: Option<String>,
}

fn now_us() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(0))
}

impl Control {
    /// A session that has run nothing yet.
    pub fn new(id: u64, user: CompactString, host: CompactString) -> Control {
        Control {
            id,
            host,
            command: AtomicU8::new(Command::Sleep as u8),
            since_us: AtomicI64::new(now_us()),
            running: Mutex::new(Running {
                user,
                ..Running::default()
            }),
            killed: AtomicBool::new(false),
            interrupt: Arc::default(),
            wake: Mutex::new(None),
            waiter: Arc::default(),
            held: Held::default(),
            counts: CommandCounts::default(),
            plan: OnceLock::new(),
        }
    }

    /// Sets, once, where others find the plan that the session executes.
    pub fn set_plan<T: Sync + 'static>(&self, plan: Arc<InUse<T>>) {
        // The first one stays.
        let _ = self.plan.set(plan);
    }

    /// Has `look` look at the plan that the session executes at the moment; `None` if it executes
    /// none.
    pub fn look_at_plan<T: Sync + 'static, R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        let plan = self.plan.get()?.downcast_ref::<InUse<T>>()?;
        plan.look(look)
    }

    /// A command begins at `now_us` (UTC microseconds since 1970).
    pub fn begin(&self, command: Command, sql: &[u8], now_us: i64) {
        {
            let mut running = self.running.lock();
            running.sql.clear();
            running
                .sql
                .extend_from_slice(&sql[..sql.len().min(STATEMENT_BYTES_MAX)]);
            running.state = EXECUTING;
        }
        self.since_us.store(now_us, Ordering::Relaxed);
        self.command.store(command as u8, Ordering::Relaxed);
    }

    /// Whether a client is at the other end: events, and the thread that starts them, have none.
    pub fn has_client(&self) -> bool {
        let command = self.command.load(Ordering::Relaxed);
        command != Command::Connect as u8 && command != Command::Daemon as u8
    }

    /// The command has ended.
    pub fn end(&self, now_us: i64) {
        self.since_us.store(now_us, Ordering::Relaxed);
        self.command.store(Command::Sleep as u8, Ordering::Relaxed);
    }

    /// Whose session it is.
    pub fn user(&self) -> CompactString {
        self.running.lock().user.clone()
    }

    /// Another user has the session from now on (COM_CHANGE_USER), without a current schema.
    pub fn set_user(&self, user: CompactString) {
        let mut running = self.running.lock();
        running.user = user;
        running.schema = None;
    }

    /// What its client tells of itself, in the client's order: connection attributes.
    pub fn attributes(&self) -> Arc<[(String, String)]> {
        self.running.lock().attributes.clone()
    }

    /// Sets what [`Control::attributes`] gives.
    pub fn set_attributes(&self, attributes: Arc<[(String, String)]>) {
        self.running.lock().attributes = attributes;
    }

    /// USE: the schema that the process list shows.
    pub fn set_schema(&self, schema: Option<CompactString>) {
        self.running.lock().schema = schema;
    }

    /// What the statement is doing or waits for now.
    pub fn set_state(&self, state: &'static str) {
        self.running.lock().state = state;
    }

    /// Ends the running statement (KILL QUERY).
    pub fn kill_query(&self) {
        self.interrupt.set(InterruptCause::Killed);
        self.waiter.wake();
    }

    /// Ends the running statement, whose time is up.
    pub fn exceed_time(&self) {
        self.interrupt.set(InterruptCause::TimeExceeded);
        self.waiter.wake();
    }

    /// Ends the session (KILL CONNECTION): its statement now, itself as soon as its worker hears of
    /// it.
    pub fn kill_connection(&self) {
        self.killed.store(true, Ordering::SeqCst);
        self.interrupt.set(InterruptCause::Killed);
        self.waiter.wake();
        if let Some(wake) = &*self.wake.lock() {
            wake();
        }
    }

    /// Whether KILL CONNECTION has ended it.
    pub fn is_connection_killed(&self) -> bool {
        self.killed.load(Ordering::SeqCst)
    }

    /// What wakes the worker that has this session.
    pub fn on_kill(&self, wake: Box<dyn Fn() + Send + Sync>) {
        *self.wake.lock() = Some(wake);
    }

    /// When the current command began, in UTC microseconds since 1970.
    pub fn since_us(&self) -> i64 {
        self.since_us.load(Ordering::Relaxed)
    }

    /// The session's row, as it is at this moment.
    pub fn process(&self) -> Process {
        let running = self.running.lock();
        let command = match self.command.load(Ordering::Relaxed) {
            _ if self.is_connection_killed() => Command::Killed,
            1 => Command::Query,
            2 => Command::Prepare,
            3 => Command::Execute,
            4 => Command::Connect,
            5 => Command::Daemon,
            _ => Command::Sleep,
        };
        let sleeping = command == Command::Sleep;
        Process {
            id: self.id,
            user: running.user.clone(),
            host: self.host.clone(),
            schema: running.schema.clone(),
            command,
            since_us: self.since_us.load(Ordering::Relaxed),
            state: if sleeping { "" } else { running.state },
            sql: (!sleeping && !running.sql.is_empty())
                .then(|| String::from_utf8_lossy(&running.sql).into_owned()),
        }
    }
}

/// All sessions of a database.
#[derive(Default)]
pub struct Processes {
    shards: [Mutex<HashMap<u64, Arc<Control>>>; SHARDS],
    /// What sessions counted that have ended.
    past_counts: CommandCounts,
}

impl Processes {
    fn shard(&self, id: u64) -> &Mutex<HashMap<u64, Arc<Control>>> {
        &self.shards[id as usize % SHARDS]
    }

    /// A session has begun.
    pub fn add(&self, control: Arc<Control>) {
        self.shard(control.id).lock().insert(control.id, control);
    }

    /// A session has ended.
    pub fn remove(&self, id: u64) {
        let mut sessions = self.shard(id).lock();
        if let Some(control) = sessions.remove(&id) {
            control.counts.move_to(&self.past_counts);
        }
    }

    /// A session's counters begin anew (FLUSH STATUS). Only the thread that runs it calls this.
    pub fn reset_counts(&self, control: &Control) {
        control.counts.move_to(&self.past_counts);
    }

    /// The statements that all sessions have begun, in the order of
    /// [`super::command_counts::NAMES`].
    pub fn counts(&self) -> Vec<u64> {
        let mut sums = self.past_counts.values();
        for control in self.all() {
            let counts = control.counts.values();
            sums.iter_mut()
                .zip(counts)
                .for_each(|(sum, count)| *sum += count);
        }
        sums
    }

    /// The session of a connection id; `None` if it has ended.
    pub fn find(&self, id: u64) -> Option<Arc<Control>> {
        self.shard(id).lock().get(&id).cloned()
    }

    /// All of them, by connection id.
    pub fn all(&self) -> Vec<Arc<Control>> {
        let mut all: Vec<_> = self
            .shards
            .iter()
            .flat_map(|shard| shard.lock().values().cloned().collect::<Vec<_>>())
            .collect();
        all.sort_by_key(|control| control.id);
        all
    }
}
