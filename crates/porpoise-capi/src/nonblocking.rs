//! The non-blocking calls: `mysql_…_start()` and `mysql_…_cont()`.
//!
//! Where a call would wait it returns to the program, which waits as it likes and then has the call
//! go on:
//!
//! ```text
//!   program                         │ the call's own stack
//!   mysql_query_start() ────────────┼─► mysql_query ─► write ─► read: nothing has come
//!        MYSQL_WAIT_READ ◄──────────┼─────────────────────────── suspend
//!   poll(mysql_get_socket())        │
//!   mysql_query_cont() ─────────────┼─────────────────────────► read ─► the reply
//!        0, and *ret ◄──────────────┼─ returns
//! ```
//!
//! So each is the blocking call, on a stack of its own, over a [`WaitingStream`]: the one place
//! that knows of suspending. Such a stream lies under connections of programs that set
//! `MYSQL_OPT_NONBLOCK`; without the option, and embedded, `…_start()` does all of it.
//!
//! What a call waits for is its socket. Shared memory has one, too, by which its server wakes a
//! client that sleeps; a statement that is larger than the room left there is written as by the
//! blocking call.
//!
//! While a call is suspended, its stack has the `MYSQL` mutably borrowed. So what belongs to the
//! call is found by the addresses that the program gives, and nothing follows them meanwhile.

use crate::abi::{Mysql, put};
use crate::failure::{self, Failure};
use crate::result::ResultSet;
use crate::statement::Statement;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use parking_lot::Mutex;
use porpoise_transport::loopback::TcpAddresses;
use porpoise_transport::{Stream, connect_to_any};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socket_with, sockopt};
use std::any::Any;
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_int, c_uint};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// `MYSQL_WAIT_…`.
const WAIT_READ: c_int = 1;
const WAIT_WRITE: c_int = 2;
const WAIT_TIMEOUT: c_int = 8;

/// Of a call's stack; the system gives memory as far as it is used.
const STACK_BYTES: usize = 1 << 20;

/// What a suspended call waits for.
#[derive(Clone, Copy, Debug)]
struct Wait {
    socket: RawFd,
    events: c_int,
    timeout: Option<Duration>,
}

type CallYielder = Yielder<c_int, Wait>;

/// How the streams of a connection suspend the call that uses them.
#[derive(Default)]
pub struct Waiter {
    /// Of the call that is running on a stack of its own; null while there is none.
    yielder: AtomicPtr<CallYielder>,
    is_cancelled: AtomicBool,
    /// Of the last call, for the next.
    stack: Mutex<Option<DefaultStack>>,
}

impl std::fmt::Debug for Waiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Waiter");
        shown.field("suspends", &self.suspends()).finish()
    }
}

impl Waiter {
    /// Whether a non-blocking call is running.
    pub fn suspends(&self) -> bool {
        !self.yielder.load(Ordering::Relaxed).is_null()
    }

    /// Returns to the program until it says that one of `events` has come.
    fn wait(
        &self,
        socket: BorrowedFd<'_>,
        events: c_int,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let aborted = || Err(io::ErrorKind::ConnectionAborted.into());
        if self.is_cancelled.load(Ordering::Relaxed) {
            return aborted();
        }
        let yielder = self.yielder.swap(std::ptr::null_mut(), Ordering::Relaxed);
        let wait = Wait {
            socket: socket.as_raw_fd(),
            events,
            timeout,
        };
        // SAFETY: it isn't null, for callers have asked `suspends`. The call that put it there has
        // neither returned nor been suspended since: both take it away. So this is that call, on
        // its stack.
        let come = unsafe { (*yielder).suspend(wait) };
        self.yielder.store(yielder, Ordering::Relaxed);
        if self.is_cancelled.load(Ordering::Relaxed) {
            return aborted();
        }
        if come & WAIT_TIMEOUT != 0 && come & events == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}

/// A call that has begun and isn't over.
struct Call {
    body: Coroutine<c_int, Wait, Box<dyn Any>>,
    waiter: Arc<Waiter>,
    /// The address of what it was called on.
    on: usize,
    wait: Wait,
}

// SAFETY: what lies on its stack is the program's pointers and what belongs to one connection,
// which may go from one thread to another; by the border's contract no two use it at a time.
unsafe impl Send for Call {}

/// The calls that are suspended.
#[derive(Default)]
struct Suspended {
    /// By their connection's address: each has one at most.
    calls: HashMap<usize, Call>,
    /// The connections of what they were called on.
    connections: HashMap<usize, usize>,
}

static SUSPENDED: LazyLock<Mutex<Suspended>> = LazyLock::new(Mutex::default);

impl Suspended {
    fn take(&mut self, connection: usize) -> Option<Call> {
        let call = self.calls.remove(&connection)?;
        self.connections.remove(&call.on);
        Some(call)
    }
}

/// What non-blocking calls are on.
pub trait Object {
    /// Its connection, or null.
    fn connection(this: *mut Self) -> *mut Mysql;

    /// Notes an error of a call on it.
    fn refuse(this: *mut Self, failure: &Failure);
}

impl Object for Mysql {
    fn connection(this: *mut Mysql) -> *mut Mysql {
        this
    }

    fn refuse(this: *mut Mysql, failure: &Failure) {
        // SAFETY: by the border's contract it is null or a MYSQL that nobody else uses.
        if let Some(mysql) = unsafe { this.as_mut() } {
            mysql.fail(failure);
        }
    }
}

impl Object for Statement {
    fn connection(this: *mut Statement) -> *mut Mysql {
        // SAFETY: by the border's contract it is null or a MYSQL_STMT that nobody else uses.
        unsafe { this.as_ref() }.map_or(std::ptr::null_mut(), Statement::mysql)
    }

    fn refuse(this: *mut Statement, failure: &Failure) {
        // SAFETY: as in `connection`.
        if let Some(statement) = unsafe { this.as_mut() } {
            statement.fail(failure);
        }
    }
}

impl Object for ResultSet {
    fn connection(this: *mut ResultSet) -> *mut Mysql {
        // SAFETY: by the border's contract it is null or a MYSQL_RES that nobody else uses.
        unsafe { this.as_ref() }.map_or(std::ptr::null_mut(), |result| result.public.handle)
    }

    fn refuse(_: *mut ResultSet, _: &Failure) {}
}

/// Begins a call: 0 if it is over and its answer is in `to`, else what to wait for.
pub fn start<T: Copy + 'static, O: Object>(
    to: *mut T,
    on: *mut O,
    failed: T,
    call: impl FnOnce() -> T + 'static,
) -> c_int {
    let connection = on_connection_of(on);
    if SUSPENDED.lock().calls.contains_key(&connection.addr()) {
        put(to, failed);
        return 0;
    }
    // SAFETY: by the border's contract it is null or a MYSQL, which no call uses.
    let waiter = unsafe { connection.as_mut() }
        .and_then(Mysql::session)
        .filter(|handle| handle.session.settings.nonblocking)
        .map(|handle| Arc::clone(&handle.session.waiter));
    let stack = waiter.as_ref().and_then(|waiter| {
        let kept = waiter.stack.lock().take();
        kept.or_else(|| DefaultStack::new(STACK_BYTES).ok())
    });
    let (Some(waiter), Some(stack)) = (waiter, stack) else {
        put(to, call());
        return 0;
    };
    let suspending = Arc::clone(&waiter);
    let body = Coroutine::with_stack(stack, move |yielder: &CallYielder, _| {
        let yielder = std::ptr::from_ref(yielder).cast_mut();
        suspending.yielder.store(yielder, Ordering::Relaxed);
        let answer: Box<dyn Any> = Box::new(call());
        let none = std::ptr::null_mut();
        suspending.yielder.store(none, Ordering::Relaxed);
        answer
    });
    let call = Call {
        body,
        waiter,
        on: on.addr(),
        wait: Wait {
            socket: -1,
            events: 0,
            timeout: None,
        },
    };
    answer(to, failed, resume(call, connection.addr(), 0))
}

/// Goes on with the call that is suspended on `on`.
pub fn proceed<T: Copy + 'static, O: Object>(
    to: *mut T,
    on: *mut O,
    failed: T,
    come: c_int,
) -> c_int {
    let taken = {
        let mut suspended = SUSPENDED.lock();
        let connection = suspended.connections.get(&on.addr()).copied();
        connection.and_then(|connection| Some((suspended.take(connection)?, connection)))
    };
    match taken {
        Some((call, connection)) => answer(to, failed, resume(call, connection, come)),
        None => {
            O::refuse(on, &Failure::of(failure::COMMANDS_OUT_OF_SYNC));
            put(to, failed);
            0
        }
    }
}

/// The connection of what a call is on, whose own fields may be in use by a call that is suspended.
fn on_connection_of<O: Object>(on: *mut O) -> *mut Mysql {
    let known = SUSPENDED.lock().connections.get(&on.addr()).copied();
    known.map_or_else(|| O::connection(on), std::ptr::without_provenance_mut)
}

fn answer<T: Copy + 'static>(to: *mut T, failed: T, came: Result<Box<dyn Any>, c_int>) -> c_int {
    match came {
        // It is of another type if the program went on with another call than it began.
        Ok(answer) => {
            put(to, answer.downcast_ref().copied().unwrap_or(failed));
            0
        }
        Err(events) => events,
    }
}

/// The call's answer, or what it waits for.
fn resume(mut call: Call, connection: usize, come: c_int) -> Result<Box<dyn Any>, c_int> {
    match call.body.resume(come) {
        CoroutineResult::Return(answer) => {
            *call.waiter.stack.lock() = Some(call.body.into_stack());
            Ok(answer)
        }
        CoroutineResult::Yield(wait) => {
            call.wait = wait;
            let mut suspended = SUSPENDED.lock();
            suspended.connections.insert(call.on, connection);
            suspended.calls.insert(connection, call);
            let timed = wait.timeout.map_or(0, |_| WAIT_TIMEOUT);
            Err(wait.events | timed)
        }
    }
}

/// Ends the call that is suspended on a connection, which is to be closed: it fails.
pub fn cancel(connection: *const Mysql) {
    let Some(call) = SUSPENDED.lock().take(connection.addr()) else {
        return;
    };
    call.waiter.is_cancelled.store(true, Ordering::Relaxed);
    // It doesn't wait again, so it has an answer, which nobody asks for.
    let _ = resume(call, connection.addr(), 0);
}

/// The socket that the suspended call of a connection waits for.
pub fn awaited_socket(connection: *const Mysql) -> Option<RawFd> {
    let suspended = SUSPENDED.lock();
    Some(suspended.calls.get(&connection.addr())?.wait.socket)
}

/// How many milliseconds the suspended call of a connection waits at most.
pub fn patience_ms(connection: *const Mysql) -> Option<c_uint> {
    let suspended = SUSPENDED.lock();
    let patience = suspended.calls.get(&connection.addr())?.wait.timeout?;
    Some(c_uint::try_from(patience.as_millis()).unwrap_or(c_uint::MAX))
}

/// A stream that suspends a non-blocking call where it would wait. Any other call waits.
#[derive(Debug)]
pub struct WaitingStream {
    inner: Box<dyn Stream>,
    waiter: Arc<Waiter>,
    read_timeout: Cell<Option<Duration>>,
    write_timeout: Cell<Option<Duration>>,
}

impl WaitingStream {
    pub fn new(inner: Box<dyn Stream>, waiter: Arc<Waiter>) -> Self {
        Self {
            inner,
            waiter,
            read_timeout: Cell::new(None),
            write_timeout: Cell::new(None),
        }
    }

    /// Waits for something to read, and where `events` say so for room to write.
    fn wait(&mut self, events: c_int) -> io::Result<()> {
        if self.inner.arm() {
            self.inner.disarm(false);
            return Ok(());
        }
        let timeout = match events {
            WAIT_READ => self.read_timeout.get(),
            _ => self.write_timeout.get(),
        };
        let waited = match self.inner.socket() {
            Some(socket) => self.waiter.wait(socket, events, timeout),
            None => Ok(()),
        };
        self.inner.disarm(true);
        waited
    }

    /// Writes what there is room for; `None` if there is none.
    fn try_write(&self, from: &[u8]) -> io::Result<Option<usize>> {
        let socket = self.inner.socket().ok_or(io::ErrorKind::NotConnected)?;
        match send(socket, from, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Err(Errno::AGAIN) => Ok(None),
            sent => Ok(Some(sent?)),
        }
    }
}

/// What a read gave, or `None` if it would wait.
fn unless_waiting(read: io::Result<usize>) -> io::Result<Option<usize>> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        read => read.map(Some),
    }
}

impl Read for WaitingStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !self.waiter.suspends() {
            return self.inner.read(into);
        }
        loop {
            if let Some(count) = unless_waiting(self.inner.try_read(into))? {
                return Ok(count);
            }
            self.wait(WAIT_READ)?;
        }
    }
}

impl Write for WaitingStream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        if !self.waiter.suspends() || !self.inner.is_socket() {
            return self.inner.write(from);
        }
        loop {
            if let Some(count) = self.try_write(from)? {
                return Ok(count);
            }
            self.wait(WAIT_WRITE)?;
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Stream for WaitingStream {
    fn write_or_read(&mut self, from: &[u8], into: &mut [u8]) -> io::Result<(usize, usize)> {
        if !self.waiter.suspends() || !self.inner.is_socket() {
            return self.inner.write_or_read(from, into);
        }
        loop {
            if let Some(written) = self.try_write(from)? {
                return Ok((written, 0));
            }
            match unless_waiting(self.inner.try_read(into))? {
                Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Some(read) => return Ok((0, read)),
                None => self.wait(WAIT_READ | WAIT_WRITE)?,
            }
        }
    }

    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.read_timeout.set(timeout);
        self.inner.set_read_timeout(timeout)
    }

    fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.write_timeout.set(timeout);
        self.inner.set_write_timeout(timeout)
    }

    fn is_private(&self) -> bool {
        self.inner.is_private()
    }

    fn is_local(&self) -> bool {
        self.inner.is_local()
    }

    fn is_socket(&self) -> bool {
        self.inner.is_socket()
    }

    fn kind(&self) -> &'static str {
        self.inner.kind()
    }

    fn shutdown(&self) -> io::Result<()> {
        self.inner.shutdown()
    }

    fn tcp_addresses(&self) -> Option<TcpAddresses> {
        self.inner.tcp_addresses()
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.inner.socket()
    }

    fn try_read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.inner.try_read(into)
    }

    fn is_readable(&self) -> Option<bool> {
        self.inner.is_readable()
    }

    fn arm(&mut self) -> bool {
        self.inner.arm()
    }

    fn disarm(&mut self, socket_readable: bool) -> bool {
        self.inner.disarm(socket_readable)
    }

    fn return_to_pool(self: Box<Self>) {
        self.inner.return_to_pool();
    }
}

/// Connects over TCP without waiting for the peer; for its name's address it does.
pub fn connect_tcp(
    waiter: &Waiter,
    host: &str,
    port: u16,
    local: Option<IpAddr>,
    timeout: Option<Duration>,
) -> io::Result<TcpStream> {
    connect_to_any(host, port, timeout, |address, left| {
        connect_address(waiter, address, local, left)
    })
}

fn connect_address(
    waiter: &Waiter,
    peer: SocketAddr,
    local: Option<IpAddr>,
    timeout: Option<Duration>,
) -> io::Result<TcpStream> {
    let family = match peer {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    if let Some(local) = local {
        // A port whose last connection has ended may be taken again.
        sockopt::set_socket_reuseaddr(&socket, true)?;
        rustix::net::bind(&socket, &SocketAddr::new(local, 0))?;
    }
    match rustix::net::connect(&socket, &peer) {
        Err(Errno::INPROGRESS) => waiter.wait(socket.as_fd(), WAIT_WRITE, timeout)?,
        connected => connected?,
    }
    sockopt::socket_error(&socket)??;
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
