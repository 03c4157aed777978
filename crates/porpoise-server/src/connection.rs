//! One connection, from its greeting to its end.
//!
//! ```text
//!   greet ─► Newcomer ── right password ──► Client ── command ─► reply ─► command ─► …
//!               │ wrong, or too slow                    │ commit not on disk: the reply is held back
//!               ▼                                       ▼ quit, killed, idle too long, gone
//!             closed                                  closed: its transaction is rolled back
//! ```
//!
//! A client of shared memory that has quit may come back: its rings are kept for a while, without a session and without a seat, and
//! when it knocks they begin again with a greeting. Nothing of the connection before is left: whoever comes proves anew who
//! they are, by more than the socket that was dialled once. Only who has been let in is kept.
//!
//! What a connection can do depends on who it is: a [`Newcomer`] has no session, and nothing that takes
//! one can be called on it. [`Connection`] is what both share: the socket, the packets under way, the
//! deadline. It is served by whichever thread runs its event loop, on that thread's buffers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mio::{Registry, Token};
use porpoise_engine::Control;
use porpoise_engine::Error;
use porpoise_protocol::flags::Capabilities;
use porpoise_protocol::frame::{PacketReader, PacketWriter};
use porpoise_protocol::handshake::KNOCK;
use porpoise_protocol::reply::ErrPacket;
use porpoise_storage::Commit;
use porpoise_transport::ServerEnd;

use crate::client::{Client, Done};
use crate::newcomer::{Newcomer, Progress};
use crate::outlet::{Outlet, Sent, Traffic};
use crate::server::{Seat, Shared};
use crate::stream::{Peer, Stream};
use crate::worker::{Desk, Letter, Mailbox};

/// Commands served in a row before other connections have their turn.
const TURN_COMMANDS_MAX: usize = 32;

/// Connections that say no more than so much (to log in, ask something, and leave) end with the worker that let them in.
const PASSING_PACKETS_MAX: u32 = 6;

/// What a login may take before anybody has said who they are.
const LOGIN_BYTES_MAX: usize = 1 << 20;

/// How long rings wait for their client to come back.
const KEPT_FOR: Duration = Duration::from_secs(5);

/// A reply that is longer is worth a system call of its own at once.
const HELD_BYTES_MAX: usize = 16 << 10;

/// What a connection waits for after it was served.
pub(crate) enum Next {
    /// Its client's next packet.
    Idle,
    /// Its client to come back.
    Kept,
    /// Its next turn: there is more to do.
    Again,
    /// Room in its socket.
    Full,
    /// Its commit on disk; the reply is held back.
    Committing(Commit),
    /// The other replies of this turn, to be sent with them.
    Held,
    /// Nothing: it is over.
    Close,
}

enum Phase {
    Newcomer(Box<Newcomer>),
    Client(Box<Client>),
    /// Between two connections over the same rings.
    Kept,
    /// The socket is all that is left.
    Over,
}

pub(crate) struct Connection {
    id: u64,
    peer: Peer,
    outlet: Outlet,
    /// A packet that has begun to come in.
    leftover: Option<Box<PacketReader>>,
    phase: Phase,
    server: Arc<Shared>,
    home: Option<(Token, Arc<Mailbox>)>,
    /// Where it was before it moved to rings, until the event loop watches these.
    moved_from: Option<Stream>,
    /// Its client has closed the socket, or the socket is broken.
    gone: bool,
    /// Its socket may hold more than the last read took; no event will tell.
    unread: bool,
    expired: bool,
    watches_room: bool,
    /// What else is to be said is said; when it is sent, the connection closes.
    last_words: bool,
    /// Packets that it has sent, up to those that tell who is here to stay.
    packets: u32,
    is_rooted: bool,
    began: Instant,
}

/// How one packet went.
pub(crate) enum Step {
    Reply,
    Committing(Commit),
    Admitted(Box<Client>),
    /// The client takes leave.
    Quit,
    Close,
}

impl Connection {
    /// Says hello to a client that has just connected; nothing if it is turned away.
    pub fn greet(
        stream: Stream,
        peer: Peer,
        seat: Option<Seat>,
        server: &Arc<Shared>,
        traffic: Arc<Traffic>,
        writer: &mut PacketWriter,
    ) -> Option<Box<Connection>> {
        let mut outlet = Outlet::new(stream, traffic);
        writer.set_sequence(0);
        if let Err(error) = server.hears(peer) {
            tracing::info!("{}: {}", peer.display(), error.message());
            write_error(writer, &error, Capabilities::empty());
            // It is turned away whether it listens or not.
            let _ = outlet.send(writer);
            return None;
        }
        let Some(seat) = seat else {
            Connection::say_full(&mut outlet, server, writer);
            return None;
        };
        let id = server.engine.next_connection_id();
        let newcomer = Newcomer::greet(id, peer, seat, writer);
        if outlet.send(writer).is_err() {
            server.handshake_failed(peer);
            return None;
        }
        Some(Box::new(Connection {
            id,
            peer,
            outlet,
            leftover: None,
            phase: Phase::Newcomer(Box::new(newcomer)),
            server: server.clone(),
            home: None,
            moved_from: None,
            gone: false,
            unread: false,
            expired: false,
            watches_room: false,
            last_words: false,
            packets: 0,
            is_rooted: false,
            began: Instant::now(),
        }))
    }

    /// Tells a client that there is no place for it.
    pub fn turn_away(
        stream: Stream,
        server: &Shared,
        traffic: Arc<Traffic>,
        writer: &mut PacketWriter,
    ) {
        writer.set_sequence(0);
        Connection::say_full(&mut Outlet::new(stream, traffic), server, writer);
    }

    fn say_full(outlet: &mut Outlet, server: &Shared, writer: &mut PacketWriter) {
        server.turned_away.fetch_add(1, Ordering::Relaxed);
        write_error(
            writer,
            &Error::too_many_connections(),
            Capabilities::empty(),
        );
        // It is turned away whether it listens or not.
        let _ = outlet.send(writer);
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn mailbox(&self) -> &Arc<Mailbox> {
        &self
            .home
            .as_ref()
            .expect("a connection is served only after it was registered")
            .1
    }

    pub fn control(&self) -> Option<&Arc<Control>> {
        match &self.phase {
            Phase::Client(client) => Some(client.control()),
            Phase::Newcomer(_) | Phase::Kept | Phase::Over => None,
        }
    }

    pub fn register(
        &mut self,
        registry: &Registry,
        token: Token,
        mailbox: Arc<Mailbox>,
    ) -> io::Result<()> {
        self.outlet.count_in(mailbox.traffic.clone());
        self.home = Some((token, mailbox));
        if let Phase::Client(client) = &self.phase {
            self.be_woken_by(client.control());
        }
        self.watches_room = false;
        self.outlet.stream.register(registry, token)
    }

    /// A KILL from another session reaches the worker that has this connection.
    fn be_woken_by(&self, control: &Control) {
        if let Some((token, mailbox)) = &self.home {
            let (token, mailbox) = (*token, Arc::downgrade(mailbox));
            control.on_kill(Box::new(move || {
                if let Some(mailbox) = mailbox.upgrade() {
                    mailbox.send(Letter::Killed(token));
                }
            }));
        }
    }

    /// It waits for its client's next packet, and another worker may wake that client more cheaply. Asked once.
    pub fn take_misplaced(&mut self) -> bool {
        self.outlet.take_misplaced()
    }

    /// After a client has moved: watches where it is now, and no more where it was. True if it has.
    pub fn follow(&mut self, registry: &Registry, token: Token) -> io::Result<bool> {
        let Some(mut left) = self.moved_from.take() else {
            return Ok(false);
        };
        left.deregister(registry)?;
        self.outlet.stream.register(registry, token)?;
        Ok(true)
    }

    /// Goes on over rings that its client has taken.
    fn move_to(&mut self, rings: ServerEnd) {
        let rings = Stream::SharedMemory(Box::new(rings));
        self.moved_from = Some(std::mem::replace(&mut self.outlet.stream, rings));
        // What was heard of the other stream doesn't tell of this one.
        self.gone = false;
    }

    /// Its stream is a pair of rings, which has to be looked at.
    pub fn is_ring(&self) -> bool {
        self.outlet.stream.is_ring()
    }

    /// It is in the middle of something: a login, a packet, a reply, a transaction.
    pub fn is_under_way(&self) -> bool {
        self.leftover.is_some()
            || self.outlet.has_waiting()
            || match &self.phase {
                Phase::Newcomer(_) => true,
                Phase::Client(client) => client.is_in_transaction(),
                Phase::Kept | Phase::Over => false,
            }
    }

    /// All that is left to do is to end it.
    pub fn is_over(&self) -> bool {
        self.gone || self.expired || self.is_killed()
    }

    /// Its ring holds what it waits for.
    pub fn is_ready(&self) -> bool {
        self.outlet.is_ready()
    }

    /// Has its client ring for what it waits for. True: it is there already.
    pub fn arm(&mut self) -> bool {
        self.outlet.arm()
    }

    pub fn watch_writable(&mut self, registry: &Registry, token: Token) {
        if !self.watches_room {
            self.watches_room = true;
            if let Err(error) = self.outlet.stream.watch_writable(registry, token, true) {
                tracing::error!("can't watch a connection: {error}");
            }
        }
    }

    /// Leaves the event loop for another one's.
    pub fn leave(&mut self, registry: &Registry) {
        // What isn't watched any more can be left just the same.
        let _ = self.outlet.stream.deregister(registry);
    }

    /// Leaves the event loop for good.
    pub fn close(mut self: Box<Self>, registry: &Registry) {
        let _ = self.outlet.stream.end_watch(registry);
    }

    /// No worker has had it yet.
    pub fn is_new(&self) -> bool {
        self.home.is_none()
    }

    /// It is here to stay: it has said more than those that connect for a statement. Asked once.
    pub fn takes_root(&mut self) -> bool {
        !self.is_rooted && self.packets >= PASSING_PACKETS_MAX && {
            self.is_rooted = true;
            true
        }
    }

    /// When it has waited too long, for whatever it waits for now.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        let patience = match &self.phase {
            Phase::Newcomer(_) => return Some(self.began + self.server.connect_timeout()),
            Phase::Client(client) if self.outlet.has_waiting() => client.net_write_timeout(),
            Phase::Client(client) if self.leftover.is_some() => client.net_read_timeout(),
            Phase::Client(client) => client.idle_timeout(),
            Phase::Kept => KEPT_FOR,
            Phase::Over => Duration::from_secs(1),
        };
        Some(now + patience)
    }

    pub fn expire(&mut self) {
        self.expired = true;
    }

    pub fn hang_up(&mut self) {
        self.gone = true;
    }

    /// After a panic in its statement.
    pub fn fail(&mut self) -> Next {
        self.phase = Phase::Over;
        Next::Close
    }

    /// The rest of its reply doesn't fit now. It never will if nobody is left to read: that is told once, and may have been
    /// told while the reply was made.
    fn wait_for_room(&mut self) -> Next {
        if self.gone {
            return self.abort("no reader for its reply");
        }
        Next::Full
    }

    fn is_killed(&self) -> bool {
        self.control()
            .is_some_and(|control| control.is_connection_killed())
    }

    /// Takes what its client sent, and answers, until there is no more or it has to wait.
    pub fn serve(&mut self, desk: &mut Desk) -> Next {
        if self.outlet.has_waiting() {
            match self.outlet.send_waiting() {
                Ok(Sent::All) if self.last_words => return Next::Close,
                Ok(Sent::All) => {}
                Ok(Sent::Some) if self.expired || self.is_killed() => {
                    return self.abort("no reader for its reply");
                }
                Ok(Sent::Some) => return self.wait_for_room(),
                Err(_) => return self.abort("its client is gone"),
            }
        }
        if self.last_words || self.is_killed() {
            return Next::Close;
        }
        if std::mem::take(&mut self.expired) {
            return self.time_out(&mut desk.writer);
        }
        if let Some(leftover) = self.leftover.take() {
            desk.reader = *leftover;
        }
        desk.reader.set_max_allowed_packet(match &self.phase {
            Phase::Client(client) => client.max_allowed_packet(),
            Phase::Newcomer(_) | Phase::Kept | Phase::Over => LOGIN_BYTES_MAX,
        });
        let next = self.converse(desk);
        if matches!(next, Next::Close) {
            desk.reader.clear();
        } else if desk.reader.is_mid_packet() {
            let reader = std::mem::replace(&mut desk.reader, PacketReader::new(0));
            self.leftover = Some(Box::new(reader));
        }
        next
    }

    fn converse(&mut self, desk: &mut Desk) -> Next {
        let mut commands = 0;
        let mut drained = false;
        loop {
            loop {
                if commands >= TURN_COMMANDS_MAX {
                    return Next::Again;
                }
                let packet = match desk.reader.next_packet() {
                    Ok(Some(packet)) => packet,
                    Ok(None) => break,
                    Err(error) => return self.refuse(&wire_error(error), &mut desk.writer),
                };
                commands += 1;
                self.packets = self.packets.saturating_add(1);
                if let Some((_, mailbox)) = &self.home {
                    mailbox.traffic.commands.fetch_add(1, Ordering::Relaxed);
                }
                let writer = &mut desk.writer;
                writer.set_sequence(packet.sequence.wrapping_add(1));
                let mut login = match &mut self.phase {
                    Phase::Newcomer(newcomer) => newcomer.moves(packet.payload, &self.server),
                    Phase::Client(_) | Phase::Kept | Phase::Over => None,
                };
                let mut payload = packet.payload;
                if let Some((rings, login)) = &mut login {
                    payload = login;
                    if let Some(rings) = rings.take() {
                        self.move_to(rings);
                    }
                }
                let step = match &mut self.phase {
                    Phase::Client(client) => client.obey(payload, writer, &mut self.outlet),
                    Phase::Newcomer(newcomer) => {
                        let asked = Instant::now();
                        let progress =
                            newcomer.answer(payload, &self.outlet.stream, &self.server, writer);
                        // What this server takes (to make its key, above all) isn't its client's time.
                        self.began += asked.elapsed();
                        match progress {
                            Progress::Continue => Step::Reply,
                            Progress::Admitted(login) => {
                                match newcomer.sit_down(*login, &self.server, writer) {
                                    Some(client) => Step::Admitted(client),
                                    None => Step::Close,
                                }
                            }
                            Progress::Refused => Step::Close,
                        }
                    }
                    Phase::Kept if payload == KNOCK => self.begin_anew(writer),
                    Phase::Kept | Phase::Over => Step::Close,
                };
                match step {
                    Step::Reply => {}
                    Step::Admitted(client) => {
                        self.be_woken_by(client.control());
                        self.outlet.set_control(client.control().clone());
                        desk.reader
                            .set_max_allowed_packet(client.max_allowed_packet());
                        self.phase = Phase::Client(client);
                    }
                    Step::Committing(commit) => {
                        self.outlet.hold(writer);
                        self.unread = !drained;
                        return Next::Committing(commit);
                    }
                    Step::Quit if self.may_be_kept() => self.part(),
                    Step::Quit | Step::Close => return self.say_last_words(writer),
                }
                if writer.is_empty() {
                    continue;
                }
                let is_small = writer.len() <= HELD_BYTES_MAX && !self.outlet.stream.is_ring();
                if desk.holds_replies && is_small && !desk.reader.is_mid_packet() {
                    self.outlet.hold(&mut desk.writer);
                    self.unread = !drained;
                    return Next::Held;
                }
                match self.outlet.send(&mut desk.writer) {
                    Ok(Sent::All) => {}
                    Ok(Sent::Some) => return self.wait_for_room(),
                    Err(_) => return self.abort("its client is gone"),
                }
            }
            if drained && !self.gone {
                return self.idle();
            }
            let room = desk.reader.spare();
            let asked = room.len();
            match self.outlet.stream.read(room) {
                Ok(0) => return self.left(),
                Ok(count) => {
                    desk.reader.filled(count);
                    self.count(|traffic| &traffic.bytes_received, count as u64);
                    drained = count < asked;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.idle(),
                Err(_) => return self.left(),
            }
        }
    }

    fn idle(&self) -> Next {
        match self.phase {
            Phase::Kept => Next::Kept,
            Phase::Newcomer(_) | Phase::Client(_) | Phase::Over => Next::Idle,
        }
    }

    /// Its rings may be kept: the door that they were offered at has said so. The client has taken all that was sent.
    fn may_be_kept(&self) -> bool {
        self.peer == Peer::Unix && !self.outlet.has_waiting() && self.outlet.stream.may_be_kept()
    }

    /// Its client has quit, and may come back.
    fn part(&mut self) {
        self.phase = Phase::Kept;
        self.outlet.clear_control();
    }

    /// Its client is back, and is greeted as a newcomer.
    fn begin_anew(&mut self, writer: &mut PacketWriter) -> Step {
        // Without a word: at the door it may wait for one.
        let Some(seat) = self.server.take_ordinary_seat() else {
            return Step::Close;
        };
        self.id = self.server.engine.next_connection_id();
        self.outlet.stream.reuse();
        self.count(|traffic| &traffic.rings, 1);
        writer.set_sequence(0);
        let newcomer = Newcomer::greet(self.id, self.peer, seat, writer);
        self.phase = Phase::Newcomer(Box::new(newcomer));
        self.packets = 0;
        self.is_rooted = false;
        self.began = Instant::now();
        Step::Reply
    }

    fn count(&self, which: impl FnOnce(&Traffic) -> &AtomicU64, amount: u64) {
        if let Some((_, mailbox)) = &self.home {
            which(&mailbox.traffic).fetch_add(amount, Ordering::Relaxed);
        }
    }

    /// The commit that its reply waited for is durable, or failed.
    pub fn commit_is_durable(&mut self, result: porpoise_storage::Result<()>) -> Next {
        if let Err(error) = result {
            // What was promised to be kept isn't: nothing that this connection is told now could be relied on.
            tracing::error!("connection {}: its commit failed: {error}", self.id);
            self.outlet.forget();
            return Next::Close;
        }
        self.send_held()
    }

    /// Sends the reply that was held back.
    pub fn send_held(&mut self) -> Next {
        match self.outlet.send_waiting() {
            Ok(Sent::All) if self.gone || self.unread || self.leftover.is_some() => Next::Again,
            Ok(Sent::All) => Next::Idle,
            Ok(Sent::Some) => self.wait_for_room(),
            Err(_) => self.abort("its client is gone"),
        }
    }

    fn time_out(&mut self, writer: &mut PacketWriter) -> Next {
        let capabilities = match &self.phase {
            Phase::Newcomer(_) => {
                self.server.handshake_failed(self.peer);
                return Next::Close;
            }
            Phase::Client(client) => client.capabilities(),
            Phase::Kept | Phase::Over => return Next::Close,
        };
        let error = if self.leftover.is_some() {
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
        self.say_last_words(writer)
    }

    /// Its client broke the protocol.
    fn refuse(&mut self, error: &Error, writer: &mut PacketWriter) -> Next {
        let capabilities = match &self.phase {
            Phase::Client(client) => client.capabilities(),
            Phase::Newcomer(_) | Phase::Kept | Phase::Over => Capabilities::empty(),
        };
        self.count_aborted();
        writer.set_sequence(match &self.phase {
            Phase::Newcomer(newcomer) => newcomer.next_sequence(),
            Phase::Client(_) | Phase::Kept | Phase::Over => 1,
        });
        write_error(writer, error, capabilities);
        self.say_last_words(writer)
    }

    fn say_last_words(&mut self, writer: &mut PacketWriter) -> Next {
        self.phase = Phase::Over;
        if writer.is_empty() {
            return Next::Close;
        }
        self.last_words = true;
        match self.outlet.send(writer) {
            Ok(Sent::Some) if !self.gone => Next::Full,
            Ok(_) | Err(_) => Next::Close,
        }
    }

    /// Its client closed the socket without saying goodbye.
    fn left(&mut self) -> Next {
        if matches!(self.phase, Phase::Kept) {
            return Next::Close;
        }
        self.abort("its client is gone")
    }

    fn abort(&mut self, why: &str) -> Next {
        tracing::info!(
            "connection {} ({}) was aborted: {why}",
            self.id,
            self.peer.display()
        );
        self.count_aborted();
        self.outlet.forget();
        self.phase = Phase::Over;
        Next::Close
    }

    fn count_aborted(&self) {
        match &self.phase {
            Phase::Newcomer(_) => self.server.handshake_failed(self.peer),
            Phase::Client(_) => {
                self.server.aborted_clients.fetch_add(1, Ordering::Relaxed);
            }
            Phase::Kept | Phase::Over => {}
        }
    }
}

pub(crate) fn write_error(writer: &mut PacketWriter, error: &Error, capabilities: Capabilities) {
    let mut sqlstate = ErrPacket::GENERAL;
    if let Ok(state) = <[u8; 5]>::try_from(error.sqlstate().as_bytes()) {
        sqlstate = state;
    }
    ErrPacket {
        number: error.number(),
        sqlstate,
        message: error.message().as_bytes(),
    }
    .write(writer, capabilities);
}

/// What a client got wrong, as MySQL tells it.
pub(crate) fn wire_error(error: porpoise_protocol::Error) -> Error {
    use porpoise_protocol::Error as Wire;
    match error {
        Wire::PacketTooLarge | Wire::PacketInPieces => Error::packet_too_large(),
        Wire::PacketsOutOfOrder => Error::packets_out_of_order(),
        Wire::UnsupportedHandshake => Error::not_supported_auth_mode(),
        Wire::UnknownCommand(_) => Error::unknown_command(),
        Wire::NoSuchParameter => Error::wrong_arguments("mysqld_stmt_execute"),
        Wire::Malformed(_) | Wire::UnknownAuthPlugin | Wire::InsecureChannel | Wire::PublicKey => {
            Error::malformed_packet()
        }
    }
}

impl From<Done> for Step {
    fn from(done: Done) -> Step {
        match done.commit {
            Some(commit) => Step::Committing(commit),
            None => Step::Reply,
        }
    }
}
