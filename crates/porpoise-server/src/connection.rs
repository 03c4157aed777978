//! One connection, from its greeting to its end.
//!
//! ```text
//!   greet ─► Handshake ── right password ──► ClientSession ── command ─► reply ─► command ─► …
//!               │ wrong, or too slow              │ commit not on disk: the reply is held back
//!               ▼                                 ▼ quit, killed, idle too long, gone
//!             closed                            closed: its transaction is rolled back
//! ```
//!
//! A client of shared memory that has quit may come back: its rings are kept for a while, without a
//! session and without a connection slot, and when it asks for that they begin again with a
//! greeting. Nothing of the connection before is left: the client authenticates anew, by more than
//! the socket that was connected once. Only the rings of a client that had logged in are kept.
//!
//! What a connection can do depends on its phase: a [`Handshake`] has no session, and nothing that
//! takes one can be called on it. [`Connection`] is what all phases share: the stream, the packets
//! under way, the deadline. The thread that runs its event loop serves it, with that thread's
//! buffers.

mod serve;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::{Registry, Token};
use porpoise_engine::Control;
use porpoise_engine::Error;
use porpoise_protocol::flags::Capabilities;
use porpoise_protocol::frame::{PacketReader, PacketWriter};
use porpoise_storage::Commit;

use crate::client_session::{ClientSession, CommandOutcome};
use crate::connection_slots::ConnectionSlot;
use crate::error_packet::{wire_error, write_error};
use crate::handshake::Handshake;
use crate::io_buffers::IoBuffers;
use crate::send_buffer::{SendBuffer, SendProgress};
use crate::server_state::ServerState;
use crate::stream::{Peer, Stream};
use crate::traffic::TrafficCounters;
use crate::worker::{WorkerInbox, WorkerMessage};

/// Connections of no more packets (to log in, ask something, and quit) end with the worker that
/// accepted them.
const SHORT_LIVED_PACKETS_MAX: u32 = 6;

/// The longest packet of a client that has not logged in: before that, a client costs little. Most
/// of a login are the attributes by which a client tells of itself.
pub(crate) const LOGIN_BYTES_MAX: usize = 24 << 10;

/// How long rings wait for their client to come back.
const REUSE_WAIT_MAX: Duration = Duration::from_secs(5);

/// How long the last reply of a connection may take to be sent.
const FINAL_REPLY_WAIT_MAX: Duration = Duration::from_secs(1);

/// How long the ring of a connection that is idle keeps the memory that a large reply has needed.
const MEMORY_KEPT_FOR: Duration = Duration::from_secs(1);

/// Of eight turns, those in which statements wait for the disk, and so many are often: a turn in which
/// they don't costs little more on a thread of the connection's own, one in which they do costs far less.
/// Of 4,000,000 rows of which half were in memory, clients selected 9 % more a second than with 4.
const DISK_TURNS_MIN: u32 = 2;

/// What a connection waits for after it was served.
pub(crate) enum NextState {
    /// Its client's next packet.
    Idle,
    /// Its client to come back, over the same rings.
    AwaitingReuse,
    /// Its next turn: there is more to do.
    Again,
    /// Room in its stream.
    AwaitingRoom,
    /// Its commit on disk; the reply is held back.
    Committing(Commit),
    /// The other replies of this turn, to be sent with them.
    ReplyHeld,
    /// Nothing: it is over.
    Close,
}

enum Phase {
    Handshake(Box<Handshake>),
    Session(Box<ClientSession>),
    /// Between two connections over the same rings.
    AwaitingReuse,
    /// Only the stream is left.
    Over,
}

pub(crate) struct Connection {
    id: u64,
    peer: Peer,
    send_buffer: SendBuffer,
    /// A packet that has begun to come in.
    partial_packet: Option<Box<PacketReader>>,
    phase: Phase,
    server: Arc<ServerState>,
    /// The worker that has it, and its token there.
    worker: Option<(Token, Arc<WorkerInbox>)>,
    /// Its stream before it moved to rings, until the event loop watches these.
    previous_stream: Option<Stream>,
    /// Its client has closed the socket, or the socket is broken.
    peer_closed: bool,
    /// Its stream may hold more than the last read took; no event will tell.
    unread: bool,
    expired: bool,
    watches_writable: bool,
    /// Its final reply is written; when that is sent, the connection closes.
    is_closing: bool,
    /// Packets that its client has sent, counted until it is settled.
    packets: u32,
    /// The part of its pause after which its ring has given memory back.
    paused_for: Duration,
    /// It is no short-lived connection.
    is_settled: bool,
    /// Its last statements kept the event loop waiting, until another thread took that over: the
    /// next ones don't run on the loop's thread.
    pub takes_long: bool,
    /// Whether it waited for the disk in each of its last eight turns, a bit for each.
    disk_turns: u8,
    began: Instant,
}

/// What one packet has led to.
pub(crate) enum PacketOutcome {
    /// The writer holds the reply, if there is one.
    Reply,
    /// As `Reply`, with a commit that isn't on disk yet.
    Committing(Commit),
    Authenticated(Box<ClientSession>),
    /// TLS begins with what comes next.
    StartTls,
    /// The client quits.
    Quit,
    /// The connection ends after what the writer holds.
    Close,
}

impl Connection {
    /// Greets a client that has just connected; `None` if it is refused.
    pub fn greet(
        stream: Stream,
        peer: Peer,
        slot: Option<ConnectionSlot>,
        server: &Arc<ServerState>,
        traffic: Arc<TrafficCounters>,
        writer: &mut PacketWriter,
    ) -> Option<Box<Connection>> {
        let mut send_buffer = SendBuffer::new(stream, traffic);
        writer.set_sequence(0);
        let host = match server.admit_host(peer) {
            Ok(host) => host,
            Err(error) => {
                tracing::info!("{}: {}", peer.display(), error.message());
                write_error(writer, &error, Capabilities::empty());
                // It is refused whether it reads that or not.
                let _ = send_buffer.send(writer);
                return None;
            }
        };
        let Some(slot) = slot else {
            Connection::send_too_many_connections(&mut send_buffer, server, writer);
            return None;
        };
        let id = server.engine.next_connection_id();
        let layers = server.layers_of(&send_buffer.stream);
        let handshake = Handshake::begin(id, peer, host, slot, layers, writer);
        if send_buffer.send(writer).is_err() {
            server.handshake_failed(peer);
            return None;
        }
        Some(Box::new(Connection {
            id,
            peer,
            send_buffer,
            partial_packet: None,
            phase: Phase::Handshake(Box::new(handshake)),
            server: server.clone(),
            worker: None,
            previous_stream: None,
            peer_closed: false,
            unread: false,
            expired: false,
            watches_writable: false,
            is_closing: false,
            packets: 0,
            paused_for: Duration::ZERO,
            is_settled: false,
            takes_long: false,
            // Nobody knows yet.
            disk_turns: 1,
            began: Instant::now(),
        }))
    }

    /// Tells a client that there are too many connections.
    pub fn refuse_full(
        stream: Stream,
        server: &ServerState,
        traffic: Arc<TrafficCounters>,
        writer: &mut PacketWriter,
    ) {
        writer.set_sequence(0);
        let mut send_buffer = SendBuffer::new(stream, traffic);
        Connection::send_too_many_connections(&mut send_buffer, server, writer);
    }

    fn send_too_many_connections(
        send_buffer: &mut SendBuffer,
        server: &ServerState,
        writer: &mut PacketWriter,
    ) {
        server.refused_full.fetch_add(1, Ordering::Relaxed);
        let error = Error::too_many_connections();
        write_error(writer, &error, Capabilities::empty());
        // It is refused whether it reads that or not.
        let _ = send_buffer.send(writer);
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    /// The inbox of the worker that has it.
    pub fn inbox(&self) -> &Arc<WorkerInbox> {
        let (_, inbox) = self
            .worker
            .as_ref()
            .expect("a connection is served only after it was registered");
        inbox
    }

    /// How to interrupt its session, if it has one.
    pub fn control(&self) -> Option<&Arc<Control>> {
        match &self.phase {
            Phase::Session(client) => Some(client.control()),
            Phase::Handshake(_) | Phase::AwaitingReuse | Phase::Over => None,
        }
    }

    // ── The event loop that has it ───────────────────────────────────────────────────────────

    /// Enters a worker's event loop.
    pub fn register(
        &mut self,
        registry: &Registry,
        token: Token,
        inbox: Arc<WorkerInbox>,
    ) -> io::Result<()> {
        self.send_buffer.set_counters(inbox.traffic.clone());
        self.worker = Some((token, inbox));
        match &self.phase {
            Phase::Session(client) => self.notify_on_kill(client.control()),
            Phase::Handshake(handshake) => self.notify_on_host(handshake),
            Phase::AwaitingReuse | Phase::Over => {}
        }
        self.watches_writable = false;
        self.send_buffer.stream.register(registry, token)
    }

    /// Has a KILL of another session reported to the worker that has this connection.
    fn notify_on_kill(&self, control: &Control) {
        if let Some((token, inbox)) = &self.worker {
            let (token, inbox) = (*token, Arc::downgrade(inbox));
            control.on_kill(Box::new(move || {
                if let Some(inbox) = inbox.upgrade() {
                    inbox.send(WorkerMessage::Killed(token));
                }
            }));
        }
    }

    /// Has the worker that has this connection told when its client's host is looked up.
    fn notify_on_host(&self, handshake: &Handshake) {
        let (Some(lookup), Some((token, inbox))) = (handshake.pending_host(), &self.worker) else {
            return;
        };
        let (token, inbox) = (*token, Arc::downgrade(inbox));
        lookup.on_found(Box::new(move || {
            if let Some(inbox) = inbox.upgrade() {
                inbox.send(WorkerMessage::HostFound(token));
            }
        }));
    }

    /// Another worker may wake its client more cheaply. True once.
    pub fn take_should_migrate(&mut self) -> bool {
        self.send_buffer.take_should_migrate()
    }

    /// After a client has moved to rings: watches these, and no more the stream before. True if it
    /// has moved.
    pub fn watch_new_stream(&mut self, registry: &Registry, token: Token) -> io::Result<bool> {
        let Some(mut previous) = self.previous_stream.take() else {
            return Ok(false);
        };
        previous.deregister(registry)?;
        self.send_buffer.stream.register(registry, token)?;
        Ok(true)
    }

    /// Its stream is a pair of rings, which has to be polled.
    pub fn is_ring(&self) -> bool {
        self.send_buffer.stream.is_ring()
    }

    /// It is in the middle of something: a login, a packet, a reply, a transaction. What it has in
    /// hand after its turn (`next`) are commands sent ahead, not a packet that comes in.
    pub fn is_active(&self, next: &NextState) -> bool {
        self.partial_packet.is_some() && !matches!(next, NextState::Again)
            || self.send_buffer.has_unsent()
            || matches!(self.phase, Phase::Handshake(_))
            || self.is_in_transaction()
    }

    pub fn is_in_transaction(&self) -> bool {
        match &self.phase {
            Phase::Session(client) => client.is_in_transaction(),
            Phase::Handshake(_) | Phase::AwaitingReuse | Phase::Over => false,
        }
    }

    /// It logs in, or all that is left to do is to end it.
    pub fn is_urgent(&self) -> bool {
        self.peer_closed
            || self.expired
            || self.is_killed()
            || matches!(self.phase, Phase::Handshake(_))
    }

    /// Its ring holds what it waits for.
    pub fn is_ready(&self) -> bool {
        self.send_buffer.is_ready()
    }

    /// Has its client ring for what it waits for. True if it is there already.
    pub fn arm(&mut self) -> bool {
        self.send_buffer.arm()
    }

    /// Has the event loop notified when there is room in its stream.
    pub fn watch_writable(&mut self, registry: &Registry, token: Token) {
        if !self.watches_writable {
            self.watches_writable = true;
            let stream = &mut self.send_buffer.stream;
            if let Err(error) = stream.watch_writable(registry, token, true) {
                tracing::error!("can't watch a connection: {error}");
            }
        }
    }

    /// Has the event loop notified of its client's end only: a thread waits for its requests. False if
    /// it can't be.
    pub fn watch_end(&self, token: Token) -> bool {
        let (registry, stream) = (&self.inbox().registry, &self.send_buffer.stream);
        !self.watches_writable && stream.watch_end(registry, token).is_ok()
    }

    /// Has the event loop notified of its requests again. False if it can't be.
    pub fn watch_requests(&mut self, token: Token) -> bool {
        let inbox = self.inbox().clone();
        let stream = &mut self.send_buffer.stream;
        let watched = stream.watch_writable(&inbox.registry, token, false);
        if let Err(error) = &watched {
            tracing::error!("can't watch a connection: {error}");
        }
        watched.is_ok()
    }

    /// Waits on this thread for its client's next request, or its end.
    pub fn has_request_within(&mut self, patience: Duration) -> bool {
        let stream = &mut self.send_buffer.stream;
        stream.wait_for(false, patience).unwrap_or(false)
    }

    /// Its client has sent something.
    pub fn has_request(&mut self) -> bool {
        match self.is_ring() {
            true => self.is_ready(),
            false => self.has_request_within(Duration::ZERO),
        }
    }

    /// It was served, and did or didn't wait for the disk meanwhile.
    #[inline]
    pub fn record_turn(&mut self, has_read: bool) {
        self.disk_turns = self.disk_turns << 1 | u8::from(has_read);
    }

    /// It has waited for the disk in one of its last turns, or hasn't had so many.
    #[inline]
    pub fn may_read_disk(&self) -> bool {
        self.disk_turns != 0
    }

    /// Its statements wait for the disk often.
    pub fn often_reads_disk(&self) -> bool {
        self.disk_turns.count_ones() >= DISK_TURNS_MIN
    }

    /// Leaves the event loop for another worker's.
    pub fn unregister(&mut self, registry: &Registry) {
        // It fails for a stream that isn't watched any more, which is as good.
        let _ = self.send_buffer.stream.deregister(registry);
    }

    /// Leaves the event loop for good.
    pub fn close(mut self: Box<Self>, registry: &Registry) {
        let _ = self.send_buffer.stream.end(registry);
    }

    /// No worker has had it yet.
    pub fn is_new(&self) -> bool {
        self.worker.is_none()
    }

    /// It is no short-lived connection: its client has sent more packets than such a one does. True
    /// once.
    pub fn has_settled(&mut self) -> bool {
        !self.is_settled && self.packets >= SHORT_LIVED_PACKETS_MAX && {
            self.is_settled = true;
            true
        }
    }

    /// When it has waited too long, for whatever it waits for now.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        let timeout = match &self.phase {
            Phase::Handshake(handshake) => {
                let timeout = self.server.connect_timeout();
                // The rest is for the login that then goes on without a name.
                let waits = handshake.waits_for_host();
                return Some(self.began + if waits { timeout / 2 } else { timeout });
            }
            Phase::Session(client) if self.send_buffer.has_unsent() => client.net_write_timeout(),
            Phase::Session(client) if self.partial_packet.is_some() => client.net_read_timeout(),
            Phase::Session(client) if self.releases_memory_before(client.idle_timeout()) => {
                MEMORY_KEPT_FOR
            }
            Phase::Session(client) => client.idle_timeout().saturating_sub(self.paused_for),
            Phase::AwaitingReuse => REUSE_WAIT_MAX,
            Phase::Over => FINAL_REPLY_WAIT_MAX,
        };
        Some(now + timeout)
    }

    /// A ring gives memory back in the midst of a pause that may go on.
    fn releases_memory_before(&self, timeout: Duration) -> bool {
        self.send_buffer.stream.has_spare_memory() && MEMORY_KEPT_FOR < timeout
    }

    /// Its deadline is over: when it is served next, it ends.
    pub fn mark_expired(&mut self) {
        self.expired = true;
    }

    /// Its client is gone: when it is served next, it finds out by reading.
    pub fn note_peer_closed(&mut self) {
        self.peer_closed = true;
    }

    /// After a panic in its statement.
    pub fn close_after_panic(&mut self) -> NextState {
        self.phase = Phase::Over;
        NextState::Close
    }

    fn is_killed(&self) -> bool {
        self.control()
            .is_some_and(|control| control.is_connection_killed())
    }

    // ── Its end ──────────────────────────────────────────────────────────────────────────────

    fn time_out(&mut self, writer: &mut PacketWriter) -> NextState {
        let capabilities = match &self.phase {
            Phase::Handshake(_) => {
                self.server.handshake_failed(self.peer);
                return NextState::Close;
            }
            Phase::Session(client) => client.capabilities(),
            Phase::AwaitingReuse | Phase::Over => return NextState::Close,
        };
        let error = if self.partial_packet.is_some() {
            Error::net_read_interrupted()
        } else {
            Error::idle_timeout()
        };
        self.server.aborted_clients.fetch_add(1, Ordering::Relaxed);
        tracing::info!(
            "connection {} ({}): {}",
            self.id,
            self.peer.display(),
            error.message()
        );
        writer.set_sequence(0);
        write_error(writer, &error, capabilities);
        self.send_final_reply(writer)
    }

    /// Its client has sent what its stream can't be read from.
    fn refuse_bytes(&mut self, error: &io::Error, buffers: &mut IoBuffers) -> NextState {
        let inner = error.get_ref();
        match inner.and_then(|inner| inner.downcast_ref::<porpoise_protocol::Error>()) {
            Some(&error) => self.refuse_packet(error, buffers),
            None => self.abort(&error.to_string()),
        }
    }

    /// Its client has sent what is no packet.
    fn refuse_packet(
        &mut self,
        error: porpoise_protocol::Error,
        buffers: &mut IoBuffers,
    ) -> NextState {
        let writer = &mut buffers.writer;
        let capabilities = match &self.phase {
            Phase::Session(client) => client.capabilities(),
            Phase::Handshake(_) | Phase::AwaitingReuse | Phase::Over => Capabilities::empty(),
        };
        self.count_aborted();
        writer.set_sequence(match &self.phase {
            Phase::Handshake(handshake) => handshake.next_sequence(),
            Phase::Session(_) | Phase::AwaitingReuse | Phase::Over => {
                buffers.reader.reply_sequence()
            }
        });
        write_error(writer, &wire_error(error), capabilities);
        self.send_final_reply(writer)
    }

    /// Sends what the writer holds, and ends.
    fn send_final_reply(&mut self, writer: &mut PacketWriter) -> NextState {
        self.phase = Phase::Over;
        if writer.is_empty() {
            return NextState::Close;
        }
        self.is_closing = true;
        match self.send_buffer.send(writer) {
            Ok(SendProgress::Partial) if !self.peer_closed => NextState::AwaitingRoom,
            Ok(_) | Err(_) => NextState::Close,
        }
    }

    /// Its client has closed the stream.
    fn end_of_stream(&mut self) -> NextState {
        if matches!(self.phase, Phase::AwaitingReuse) {
            return NextState::Close;
        }
        self.abort("its client is gone")
    }

    fn abort(&mut self, why: &str) -> NextState {
        tracing::info!(
            "connection {} ({}) was aborted: {why}",
            self.id,
            self.peer.display()
        );
        self.count_aborted();
        self.send_buffer.discard();
        self.phase = Phase::Over;
        NextState::Close
    }

    fn count_aborted(&self) {
        match &self.phase {
            Phase::Handshake(_) => self.server.handshake_failed(self.peer),
            Phase::Session(_) => {
                self.server.aborted_clients.fetch_add(1, Ordering::Relaxed);
            }
            Phase::AwaitingReuse | Phase::Over => {}
        }
    }
}

impl From<CommandOutcome> for PacketOutcome {
    fn from(outcome: CommandOutcome) -> PacketOutcome {
        match outcome.commit {
            Some(commit) => PacketOutcome::Committing(commit),
            None => PacketOutcome::Reply,
        }
    }
}
