//! A server that does nothing: to what a real one was asked before, it says what that one said.
//!
//! ```text
//!   learn     client ──► [`Recording::of`] ──► server        one client, slowly: each request and the reply to it
//!   replay    clients ──► [`ReplayServer`]                        one thread: a look-up a request; no SQL, no table, no log
//!                            └── a commit ──► 4 KiB written and synced, for all commits that came meanwhile
//! ```
//!
//! What clients reach with it is what the way in, the clients themselves and the disk leave to any
//! server. Clients must say what was said when it was recorded: prepared statements, in the same
//! order; what their parameters are doesn't matter.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use porpoise_transport::shared_memory::{BASE_NAME, path_of};
use porpoise_transport::spin::Spin;
use porpoise_transport::{RingInterest, ServerEnd};
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::progress;

/// A reply that pauses for so long is complete.
const SILENCE: Duration = Duration::from_millis(20);
/// How long a server may take to say anything.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often those that wait look whether they are to end.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What a commit of some rows writes, at least.
const LOG_BLOCK: usize = 4096;
/// The log is written over from its beginning after so much, so that no sync has to grow it.
const LOG_BYTES: u64 = 16 << 20;

/// Clients that may wait at a listener.
const BACKLOG: i32 = 4096;

/// Turns that rings alone may have before the system is asked for events.
const TURNS_RINGS_ONLY_MAX: u32 = 64;

const HEADER_BYTES: usize = 4;
const COM_QUIT: u8 = 0x01;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
const COM_STMT_SEND_LONG_DATA: u8 = 0x18;
const COM_STMT_CLOSE: u8 = 0x19;
const UNKNOWN_ERROR: u16 = 1105;
const OK: u8 = 0x00;
const IN_TRANSACTION: u16 = 1;

/// A reply as it goes over the wire.
#[derive(Clone, Debug)]
struct Reply {
    bytes: Arc<[u8]>,
    /// A real server would have synced its log before it said this.
    is_durable: bool,
}

/// What a server has said, and to what.
#[derive(Debug, Default)]
pub struct Recording {
    greeting: Vec<u8>,
    /// To what a client says until it is logged in, in order.
    login: Vec<Vec<u8>>,
    /// By the command and its text.
    replies: HashMap<Vec<u8>, Reply>,
    /// To executions, by the statement's number.
    executed: HashMap<u32, Reply>,
}

/// Whether a command gets no reply.
fn is_silent(command: u8) -> bool {
    matches!(command, COM_QUIT | COM_STMT_CLOSE | COM_STMT_SEND_LONG_DATA)
}

fn statement_number(request: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(request.get(1..5)?.try_into().ok()?))
}

/// The payload of the first packet in `bytes`, and how many bytes it takes up with its header;
/// `None` if it isn't all there.
fn first_packet(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let &[low, middle, high, _] = bytes.first_chunk::<HEADER_BYTES>()?;
    let length = u32::from_le_bytes([low, middle, high, 0]) as usize;
    let end = HEADER_BYTES + length;
    Some((bytes.get(HEADER_BYTES..end)?, end))
}

/// The payload of the last packet in `bytes`.
fn last_packet(mut bytes: &[u8]) -> &[u8] {
    let mut last: &[u8] = &[];
    while let Some((payload, end)) = first_packet(bytes) {
        last = payload;
        bytes = &bytes[end..];
    }
    last
}

/// How many rows a statement has changed and the status after it, if this is the reply of one
/// without a result.
fn outcome(reply: &[u8]) -> Option<(u64, u16)> {
    let (payload, _) = first_packet(reply)?;
    let (&first, mut rest) = payload.split_first()?;
    let mut number = || {
        let (&first, after) = rest.split_first()?;
        let length = match first {
            0xFC => 2,
            0xFD => 3,
            0xFE => 8,
            small => {
                rest = after;
                return Some(u64::from(small));
            }
        };
        let mut bytes = [0; 8];
        bytes[..length].copy_from_slice(after.get(..length)?);
        rest = &after[length..];
        Some(u64::from_le_bytes(bytes))
    };
    if first != OK {
        return None;
    }
    let (changed, _insert_id) = (number()?, number()?);
    Some((changed, u16::from_le_bytes(*rest.first_chunk()?)))
}

impl Recording {
    /// Records what the server at the Unix socket `upstream` says while `clients` has its clients
    /// dial the socket in `folder` that it is given.
    pub fn of<E: From<io::Error>>(
        upstream: &Path,
        folder: &Path,
        clients: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<Recording, E> {
        let path = folder.join("recorded.sock");
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        let recording = Mutex::new(Recording::default());
        let is_stopped = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_stopped.load(Ordering::Relaxed) {
                    let Ok((client, _)) = listener.accept() else {
                        thread::sleep(LOOK_EVERY);
                        continue;
                    };
                    let recording = &recording;
                    scope.spawn(move || {
                        // Whoever loses its connection says so itself.
                        let _ = record(client, upstream, recording);
                    });
                }
            });
            let done = clients(&path);
            is_stopped.store(true, Ordering::Relaxed);
            done
        })?;
        Ok(recording.into_inner())
    }

    fn reply_to(&self, request: &[u8]) -> Option<&Reply> {
        if request.first() == Some(&COM_STMT_EXECUTE) {
            return self.executed.get(&statement_number(request)?);
        }
        self.replies.get(request)
    }

    /// To what wasn't asked when the replies were recorded.
    fn refusal() -> Reply {
        let mut bytes = vec![0, 0, 0, 1, 0xFF];
        bytes.extend_from_slice(&UNKNOWN_ERROR.to_le_bytes());
        bytes.extend_from_slice(b"#HY000This was not asked when the replies were recorded");
        bytes[0] = (bytes.len() - HEADER_BYTES) as u8;
        Reply {
            bytes: bytes.into(),
            is_durable: false,
        }
    }
}

/// Reads until a whole packet is there, or more; false at the end.
fn receive(stream: &mut UnixStream, into: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 16 << 10];
    while first_packet(into).is_none() {
        match stream.read(&mut buffer)? {
            0 => return Ok(false),
            count => into.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(true)
}

/// Reads until nothing has come for a moment.
fn receive_all(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.set_read_timeout(Some(PATIENCE))?;
    receive(stream, &mut bytes)?;
    stream.set_read_timeout(Some(SILENCE))?;
    let mut buffer = [0; 16 << 10];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(bytes),
            Err(error) => return Err(error),
        }
    }
}

/// Stands between a client and its server.
fn record(mut client: UnixStream, upstream: &Path, recording: &Mutex<Recording>) -> io::Result<()> {
    client.set_nonblocking(false)?;
    let mut server = UnixStream::connect(upstream)?;
    let greeting = receive_all(&mut server)?;
    client.write_all(&greeting)?;
    let mut login = Vec::new();
    let mut is_in = false;
    // What was changed since the last commit.
    let mut has_changed = false;
    let mut asked = Vec::new();
    while receive(&mut client, &mut asked)? {
        let Some((request, end)) = first_packet(&asked) else {
            break;
        };
        let request = request.to_vec();
        server.write_all(&asked[..end])?;
        asked.drain(..end);
        if is_in && request.first().copied().is_none_or(is_silent) {
            continue;
        }
        let bytes = receive_all(&mut server)?;
        client.write_all(&bytes)?;
        if !is_in {
            is_in = last_packet(&bytes).first() == Some(&OK);
            login.push(bytes);
            if is_in {
                let mut recording = recording.lock();
                recording.greeting.clone_from(&greeting);
                recording.login = std::mem::take(&mut login);
            }
            continue;
        }
        let mut is_durable = false;
        if request.first() != Some(&COM_STMT_PREPARE)
            && let Some((changed, status)) = outcome(&bytes)
        {
            has_changed |= changed > 0;
            is_durable = status & IN_TRANSACTION == 0 && std::mem::take(&mut has_changed);
        }
        let reply = Reply {
            bytes: bytes.into(),
            is_durable,
        };
        let mut recording = recording.lock();
        match (request.first(), statement_number(&request)) {
            (Some(&COM_STMT_EXECUTE), Some(number)) => {
                recording.executed.insert(number, reply);
            }
            _ => {
                recording.replies.insert(request, reply);
            }
        }
    }
    Ok(())
}

/// A commit that waits for its sync.
struct Commit {
    link: usize,
    /// Replies go out over sockets from the thread that syncs.
    socket: Option<Arc<OwnedFd>>,
    reply: Arc<[u8]>,
}

/// Commits over rings that were synced: the thread that has the rings answers them.
struct Synced {
    commits: Mutex<Vec<Commit>>,
    has_commits: AtomicBool,
    wake_up: OwnedFd,
}

/// Writes and syncs for all commits that have come, again and again.
fn sync(commits: &mpsc::Receiver<Commit>, synced: &Synced, log: &File) -> io::Result<()> {
    let block = [7; LOG_BLOCK];
    let mut at = 0;
    while let Ok(first) = commits.recv() {
        let batch: Vec<Commit> = std::iter::once(first).chain(commits.try_iter()).collect();
        log.write_all_at(&block, at)?;
        at = (at + LOG_BLOCK as u64) % LOG_BYTES;
        log.sync_data()?;
        let mut over_rings = Vec::new();
        for commit in batch {
            match &commit.socket {
                // Who has left needs no reply.
                Some(socket) => drop(send(socket, &commit.reply, SendFlags::NOSIGNAL)),
                None => over_rings.push(commit),
            }
        }
        if !over_rings.is_empty() {
            synced.commits.lock().append(&mut over_rings);
            synced.has_commits.store(true, Ordering::Release);
            rustix::io::write(&synced.wake_up, &1u64.to_ne_bytes())?;
        }
    }
    Ok(())
}

enum Route {
    Socket(Arc<OwnedFd>),
    Ring(Box<ServerEnd>),
}

/// A client, and how far it is.
struct Link {
    route: Route,
    /// Replies to its login that it has had.
    steps: usize,
    asked: Vec<u8>,
}

impl Link {
    /// A ring, with one of `wants`.
    fn is_ready(&self, wants: RingInterest) -> bool {
        matches!(&self.route, Route::Ring(end) if end.is_ready(wants))
    }

    /// Takes what has come; false at the end.
    fn receive(&mut self, buffer: &mut [u8]) -> bool {
        let count = match &mut self.route {
            Route::Socket(socket) => {
                recv(socket, &mut *buffer, RecvFlags::DONTWAIT).map(|(count, _)| count)
            }
            Route::Ring(end) => match end.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                read => read.map_err(|_| rustix::io::Errno::CONNRESET),
            },
        };
        match count {
            Ok(0) => false,
            Ok(count) => {
                self.asked.extend_from_slice(&buffer[..count]);
                true
            }
            Err(rustix::io::Errno::AGAIN) => true,
            Err(_) => false,
        }
    }

    fn answer(&mut self, mut reply: &[u8]) -> bool {
        while !reply.is_empty() {
            let sent = match &mut self.route {
                Route::Socket(socket) => send(socket, reply, SendFlags::NOSIGNAL).ok(),
                Route::Ring(end) => match end.write(reply) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        let room = RingInterest::WRITABLE;
                        let waited = end.spin_for(room)
                            || end.wait_for(room, PATIENCE).is_ok_and(|waited| waited);
                        waited.then_some(0)
                    }
                    written => written.ok(),
                },
            };
            match sent {
                Some(count) => reply = &reply[count..],
                None => return false,
            }
        }
        true
    }
}

/// A server that replays a [`Recording`]; it ends when dropped.
pub struct ReplayServer {
    socket: PathBuf,
    port: u16,
    is_stopped: Arc<AtomicBool>,
    wake_up: OwnedFd,
    threads: Vec<JoinHandle<()>>,
}

impl ReplayServer {
    /// Serves in `folder`: over a Unix socket, over shared memory beside it, over TCP. Commits are
    /// synced to a file there.
    pub fn start(recording: Arc<Recording>, folder: &Path) -> io::Result<ReplayServer> {
        let socket = folder.join("replay.sock");
        let listeners = Listeners::open(&socket)?;
        let port = listeners.tcp.local_addr()?.port();
        let log = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .open(folder.join("replay.log"))?;
        let blank = vec![0; LOG_BYTES as usize];
        log.write_all_at(&blank, 0)?;
        log.sync_all()?;
        let is_stopped = Arc::new(AtomicBool::new(false));
        let wake_up = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let synced = Arc::new(Synced {
            commits: Mutex::default(),
            has_commits: AtomicBool::new(false),
            wake_up: wake_up.try_clone()?,
        });
        let (commits, come) = mpsc::channel();
        let for_syncer = synced.clone();
        let syncer = thread::Builder::new().name("sync".into()).spawn(move || {
            if let Err(error) = sync(&come, &for_syncer, &log) {
                progress::tell(format_args!(
                    "the log of the server that does nothing: {error}"
                ));
            }
        })?;
        let mut replay = Replay::new(recording, listeners, synced, commits)?;
        let stopped = is_stopped.clone();
        let server = thread::Builder::new()
            .name("replay".into())
            .spawn(move || {
                if let Err(error) = replay.run(&stopped) {
                    progress::tell(format_args!("the server that does nothing: {error}"));
                }
            })?;
        Ok(ReplayServer {
            socket,
            port,
            is_stopped,
            wake_up,
            threads: vec![server, syncer],
        })
    }

    /// Its Unix socket; shared memory is offered beside it.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Its TCP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for ReplayServer {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Release);
        let _ = rustix::io::write(&self.wake_up, &1u64.to_ne_bytes());
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

struct Listeners {
    unix: UnixListener,
    memory: UnixListener,
    tcp: TcpListener,
}

impl Listeners {
    fn open(socket: &Path) -> io::Result<Listeners> {
        let memory = path_of(socket, BASE_NAME);
        for path in [socket, &memory] {
            let _ = std::fs::remove_file(path);
        }
        let listeners = Listeners {
            unix: UnixListener::bind(socket)?,
            memory: UnixListener::bind(&memory)?,
            tcp: TcpListener::bind("127.0.0.1:0")?,
        };
        listeners.unix.set_nonblocking(true)?;
        listeners.memory.set_nonblocking(true)?;
        listeners.tcp.set_nonblocking(true)?;
        for listener in listeners.descriptors() {
            rustix::net::listen(listener, BACKLOG)?;
        }
        Ok(listeners)
    }

    fn descriptors(&self) -> [BorrowedFd<'_>; 3] {
        [self.unix.as_fd(), self.memory.as_fd(), self.tcp.as_fd()]
    }

    /// Who waits at the listener of this number.
    fn accept(&self, number: usize) -> io::Result<Route> {
        let socket = match number {
            0 => OwnedFd::from(self.unix.accept()?.0),
            1 => {
                let end = ServerEnd::offer(self.memory.accept()?.0)?;
                return Ok(Route::Ring(Box::new(end)));
            }
            _ => {
                let stream: TcpStream = self.tcp.accept()?.0;
                stream.set_nodelay(true)?;
                OwnedFd::from(stream)
            }
        };
        Ok(Route::Socket(Arc::new(socket)))
    }
}

/// Events with numbers from here on are of the listeners and the wake-up descriptor.
const LISTENERS: u64 = 1 << 32;
const WAKE_UP: u64 = LISTENERS + 3;

struct Replay {
    recording: Arc<Recording>,
    listeners: Listeners,
    poll: OwnedFd,
    synced: Arc<Synced>,
    commits: mpsc::Sender<Commit>,
    links: Vec<Option<Link>>,
    rings: Vec<usize>,
    buffer: Vec<u8>,
}

impl Replay {
    fn new(
        recording: Arc<Recording>,
        listeners: Listeners,
        synced: Arc<Synced>,
        commits: mpsc::Sender<Commit>,
    ) -> io::Result<Replay> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let comes = epoll::EventFlags::IN;
        for (listener, number) in listeners.descriptors().iter().zip(LISTENERS..) {
            epoll::add(&poll, listener, epoll::EventData::new_u64(number), comes)?;
        }
        let edge = comes | epoll::EventFlags::ET;
        epoll::add(
            &poll,
            &synced.wake_up,
            epoll::EventData::new_u64(WAKE_UP),
            edge,
        )?;
        Ok(Replay {
            recording,
            listeners,
            poll,
            synced,
            commits,
            links: Vec::new(),
            rings: Vec::new(),
            buffer: vec![0; 64 << 10],
        })
    }

    fn run(&mut self, is_stopped: &AtomicBool) -> io::Result<()> {
        let mut spin = Spin::default();
        let mut events = Vec::with_capacity(256);
        let mut turns = 0;
        while !is_stopped.load(Ordering::Acquire) {
            let mut was_asked = self.serve_rings();
            if !self.rings.is_empty() {
                if was_asked && turns < TURNS_RINGS_ONLY_MAX {
                    turns += 1;
                    continue;
                }
                let (links, rings, synced) = (&self.links, &self.rings, &self.synced);
                was_asked = was_asked
                    || spin.wait(|| {
                        let mut ends = rings.iter().filter_map(|&at| links[at].as_ref());
                        synced.has_commits.load(Ordering::Acquire)
                            || ends.any(|link| link.is_ready(RingInterest::READABLE))
                    })
                    || self.arm();
            }
            turns = 0;
            let patience = rustix::event::Timespec::default();
            events.clear();
            epoll::wait(
                &self.poll,
                rustix::buffer::spare_capacity(&mut events),
                was_asked.then_some(&patience),
            )?;
            if !was_asked && !self.rings.is_empty() {
                spin.woke();
                self.disarm();
            }
            for event in &events {
                match event.data.u64() {
                    WAKE_UP => {}
                    listener @ LISTENERS.. => {
                        self.accept_client((listener - LISTENERS) as usize)?
                    }
                    link => self.serve(link as usize),
                }
            }
        }
        Ok(())
    }

    fn accept_client(&mut self, listener: usize) -> io::Result<()> {
        let route = match self.listeners.accept(listener) {
            Ok(route) => route,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        let at = self.links.len();
        let data = epoll::EventData::new_u64(at as u64);
        let comes = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
        match &route {
            Route::Socket(socket) => epoll::add(&self.poll, socket, data, comes)?,
            Route::Ring(end) => {
                let edge = comes | epoll::EventFlags::ET;
                epoll::add(&self.poll, end.doorbell(), data, edge)?;
                epoll::add(&self.poll, end.socket(), data, edge)?;
                self.rings.push(at);
            }
        }
        let mut link = Link {
            route,
            steps: 0,
            asked: Vec::new(),
        };
        let is_greeted = link.answer(&self.recording.greeting);
        self.links.push(is_greeted.then_some(link));
        Ok(())
    }

    /// Whether a ring had something, or a commit over one was synced.
    fn serve_rings(&mut self) -> bool {
        let mut was_asked = false;
        if self.synced.has_commits.swap(false, Ordering::AcqRel) {
            was_asked = true;
            let commits = std::mem::take(&mut *self.synced.commits.lock());
            for commit in commits {
                if let Some(link) = &mut self.links[commit.link]
                    && !link.answer(&commit.reply)
                {
                    self.links[commit.link] = None;
                }
            }
        }
        for number in 0..self.rings.len() {
            let at = self.rings[number];
            if self.links[at]
                .as_ref()
                .is_some_and(|link| link.is_ready(RingInterest::READABLE))
            {
                was_asked = true;
                self.serve(at);
            }
        }
        self.rings.retain(|&at| self.links[at].is_some());
        was_asked
    }

    /// Has the clients over rings ring. True: one has sent something just now.
    fn arm(&mut self) -> bool {
        let mut is_there = false;
        for &at in &self.rings {
            if let Some(Link {
                route: Route::Ring(end),
                ..
            }) = &mut self.links[at]
            {
                is_there |= end.arm(RingInterest::READABLE);
            }
        }
        is_there
    }

    fn disarm(&mut self) {
        for &at in &self.rings {
            if let Some(Link {
                route: Route::Ring(end),
                ..
            }) = &mut self.links[at]
            {
                end.disarm();
            }
        }
    }

    fn serve(&mut self, at: usize) {
        let Some(link) = self.links.get_mut(at).and_then(Option::as_mut) else {
            return;
        };
        let mut lives = link.receive(&mut self.buffer);
        let asked = std::mem::take(&mut link.asked);
        let mut rest = &asked[..];
        while let Some((request, end)) = first_packet(rest) {
            rest = &rest[end..];
            if let Some(reply) = self.recording.login.get(link.steps) {
                link.steps += 1;
                lives &= link.answer(reply);
                continue;
            }
            match request.first() {
                None | Some(&COM_QUIT) => lives = false,
                Some(&command) if is_silent(command) => {}
                Some(_) => {
                    let recorded = self.recording.reply_to(request).cloned();
                    let reply = recorded.unwrap_or_else(Recording::refusal);
                    if !reply.is_durable {
                        lives &= link.answer(&reply.bytes);
                        continue;
                    }
                    let socket = match &link.route {
                        Route::Socket(socket) => Some(socket.clone()),
                        Route::Ring(_) => None,
                    };
                    let commit = Commit {
                        link: at,
                        socket,
                        reply: reply.bytes,
                    };
                    lives &= self.commits.send(commit).is_ok();
                }
            }
        }
        link.asked.extend_from_slice(rest);
        if !lives {
            if let Route::Socket(socket) = &link.route {
                let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
            }
            self.links[at] = None;
        }
    }
}
