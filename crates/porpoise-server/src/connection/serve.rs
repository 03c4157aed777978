//! Serving a connection: packets in, replies out, until there is no more or it has to wait.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use porpoise_protocol::compressed::Algorithm;
use porpoise_protocol::frame::{PacketReader, PacketWriter};
use porpoise_protocol::handshake::REUSE_REQUEST;

use crate::handshake::{Handshake, HandshakeProgress, WaitingLogin};
use crate::host_names::ClientHost;
use crate::io_buffers::IoBuffers;
use crate::send_buffer::SendProgress;
use crate::stream::{Peer, Received, Stream};
use crate::tls::TlsStream;
use crate::traffic::TrafficCounters;

use super::{Connection, LOGIN_BYTES_MAX, MEMORY_KEPT_FOR, NextState, PacketOutcome, Phase};

/// Commands served in a row before other connections have their turn.
const COMMANDS_PER_TURN_MAX: usize = 32;

/// How long commands are served in a row, if the client has sent several at once. It doesn't end a
/// command that takes longer.
const TURN_MAX: Duration = Duration::from_micros(500);

/// A reply that is longer is sent at once: it is worth a system call of its own.
const HELD_REPLY_BYTES_MAX: usize = 16 << 10;

impl Connection {
    /// Takes what its client sent, and replies, until there is no more or it has to wait.
    pub fn serve(&mut self, buffers: &mut IoBuffers) -> NextState {
        if self.send_buffer.has_unsent() {
            match self.send_buffer.flush() {
                Ok(SendProgress::Complete) if self.is_closing => return NextState::Close,
                Ok(SendProgress::Complete) => {}
                Ok(SendProgress::Partial) if self.expired || self.is_killed() => {
                    return self.abort("no reader for its reply");
                }
                Ok(SendProgress::Partial) => return self.wait_for_room(),
                Err(_) => return self.abort("its client is gone"),
            }
        }
        if self.is_closing || self.is_killed() {
            return NextState::Close;
        }
        if std::mem::take(&mut self.expired) && !self.gives_up_host() && !self.releases_memory() {
            return self.time_out(&mut buffers.writer);
        }
        if let Some(partial_packet) = self.partial_packet.take() {
            buffers.reader = *partial_packet;
        }
        let resumed = match &mut self.phase {
            Phase::Handshake(handshake) => handshake.take_waiting_login(),
            _ => None,
        };
        if let Some(login) = resumed
            && let Some(next) = self.resume_login(&login, buffers)
        {
            return next;
        }
        buffers.reader.set_max_allowed_packet(match &self.phase {
            Phase::Session(client) => client.max_allowed_packet(),
            Phase::Handshake(_) | Phase::AwaitingReuse | Phase::Over => LOGIN_BYTES_MAX,
        });
        let next = self.serve_packets(buffers);
        if matches!(next, NextState::Close) {
            buffers.reader.clear();
        } else if buffers.reader.is_mid_packet() {
            let reader = std::mem::replace(&mut buffers.reader, PacketReader::new(0));
            self.partial_packet = Some(Box::new(reader));
        }
        next
    }

    /// The lookup of its client's host takes too long: the login goes on by the address. False if
    /// that isn't what has expired.
    fn gives_up_host(&mut self) -> bool {
        let peer = self.peer;
        match &mut self.phase {
            Phase::Handshake(handshake) => handshake.give_up_host(peer),
            _ => false,
        }
    }

    /// It has been idle for so long that its ring gives memory back. False if that isn't what has
    /// expired.
    fn releases_memory(&mut self) -> bool {
        let is_idle = match &self.phase {
            Phase::Session(client) if self.partial_packet.is_none() => {
                self.releases_memory_before(client.idle_timeout())
            }
            _ => false,
        };
        if is_idle {
            self.send_buffer.stream.release_memory();
            self.paused_for = MEMORY_KEPT_FOR;
        }
        is_idle
    }

    /// Takes the login that has waited for its client's host.
    fn resume_login(&mut self, login: &WaitingLogin, buffers: &mut IoBuffers) -> Option<NextState> {
        let writer = &mut buffers.writer;
        writer.set_sequence(login.reply_sequence);
        let outcome = self.handle_handshake_packet(&login.packet, writer);
        self.finish_packet(outcome, buffers, false)
    }

    fn serve_packets(&mut self, buffers: &mut IoBuffers) -> NextState {
        let mut commands = 0;
        // When the second command began: a client that sends one at a time costs no look at a
        // clock.
        let mut second_began: Option<Instant> = None;
        // The last read took everything that had come.
        let mut drained = false;
        loop {
            loop {
                if commands >= COMMANDS_PER_TURN_MAX
                    || second_began.is_some_and(|began| began.elapsed() >= TURN_MAX)
                {
                    return NextState::Again;
                }
                let packet = match buffers.reader.next_packet() {
                    Ok(Some(packet)) => packet,
                    Ok(None) => break,
                    Err(error) => return self.refuse_packet(error, buffers),
                };
                if commands == 1 {
                    second_began = Some(Instant::now());
                }
                commands += 1;
                self.packets = self.packets.saturating_add(1);
                self.paused_for = Duration::ZERO;
                self.count(|traffic| &traffic.commands, 1);
                let writer = &mut buffers.writer;
                writer.set_sequence(packet.sequence.wrapping_add(1));
                let outcome = self.handle_packet(packet.payload, writer);
                if let Some(next) = self.finish_packet(outcome, buffers, drained) {
                    return next;
                }
            }
            if drained && !self.peer_closed {
                return self.idle();
            }
            match self.send_buffer.stream.receive(&mut buffers.reader) {
                Ok(Received::End) => return self.end_of_stream(),
                Ok(Received::Bytes {
                    count,
                    drained: took_all,
                }) => {
                    self.count(|traffic| &traffic.bytes_received, count as u64);
                    drained = took_all;
                }
                // A handshake of TLS has replies that no packet asks for.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return match self.send_buffer.stream.has_pending() {
                        true => self.wait_for_room(),
                        false => self.idle(),
                    };
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    return self.refuse_bytes(&error, buffers);
                }
                Err(_) => return self.end_of_stream(),
            }
        }
    }

    /// Carries out what one packet asks for.
    #[inline]
    fn handle_packet(&mut self, payload: &[u8], writer: &mut PacketWriter) -> PacketOutcome {
        match &mut self.phase {
            Phase::Session(client) => {
                client.dispatch_command(payload, writer, &mut self.send_buffer)
            }
            Phase::Handshake(_) => self.handle_handshake_packet(payload, writer),
            Phase::AwaitingReuse if payload == REUSE_REQUEST => self.restart(writer),
            Phase::AwaitingReuse | Phase::Over => PacketOutcome::Close,
        }
    }

    fn handle_handshake_packet(
        &mut self,
        payload: &[u8],
        writer: &mut PacketWriter,
    ) -> PacketOutcome {
        let Phase::Handshake(handshake) = &mut self.phase else {
            return PacketOutcome::Close;
        };
        let mut decision = handshake.take_rings_decision(payload, &self.server);
        if let Some(rings) = decision.as_mut().and_then(|decision| decision.rings.take()) {
            // The client has taken them: the connection goes on over them.
            let rings = Stream::SharedMemory(Box::new(rings));
            let previous = std::mem::replace(&mut self.send_buffer.stream, rings);
            self.previous_stream = Some(previous);
            // What was known of the other stream doesn't hold for this one.
            self.peer_closed = false;
        }
        let payload = decision
            .as_ref()
            .map_or(payload, |decision| &decision.login);
        let began = Instant::now();
        let stream = &self.send_buffer.stream;
        let progress = handshake.handle_packet(payload, stream, &self.server, writer);
        // The time that this server takes (to generate its key, above all) isn't its client's.
        self.began += began.elapsed();
        match progress {
            HandshakeProgress::Continue => PacketOutcome::Reply,
            HandshakeProgress::StartTls => PacketOutcome::StartTls,
            HandshakeProgress::Authenticated(login) => {
                match handshake.open_session(*login, &self.server, writer) {
                    Some(client) => PacketOutcome::Authenticated(client),
                    None => PacketOutcome::Close,
                }
            }
            HandshakeProgress::Refused => PacketOutcome::Close,
        }
    }

    /// Sends the reply to a packet, or holds it back. `None` if the next packet can be taken.
    #[inline]
    fn finish_packet(
        &mut self,
        outcome: PacketOutcome,
        buffers: &mut IoBuffers,
        drained: bool,
    ) -> Option<NextState> {
        match outcome {
            PacketOutcome::Reply => {}
            PacketOutcome::Authenticated(client) => {
                self.notify_on_kill(client.control());
                self.send_buffer.set_control(Some(client.control().clone()));
                buffers
                    .reader
                    .set_max_allowed_packet(client.max_allowed_packet());
                let compression = client.compression();
                self.phase = Phase::Session(client);
                if let Some(algorithm) = compression {
                    return self.start_compression(algorithm, buffers);
                }
            }
            PacketOutcome::StartTls => return self.start_tls(buffers),
            PacketOutcome::Committing(commit) => {
                self.send_buffer.hold(&mut buffers.writer);
                self.unread = !drained;
                return Some(NextState::Committing(commit));
            }
            PacketOutcome::Quit if self.can_be_reused() => self.await_reuse(),
            PacketOutcome::Quit | PacketOutcome::Close => {
                return Some(self.send_final_reply(&mut buffers.writer));
            }
        }
        if buffers.writer.is_empty() {
            return None;
        }
        let is_small =
            buffers.writer.len() <= HELD_REPLY_BYTES_MAX && !self.send_buffer.stream.is_ring();
        if buffers.holds_replies && is_small && !buffers.reader.is_mid_packet() {
            self.send_buffer.hold(&mut buffers.writer);
            self.unread = !drained;
            return Some(NextState::ReplyHeld);
        }
        match self.send_buffer.send(&mut buffers.writer) {
            Ok(SendProgress::Complete) => None,
            Ok(SendProgress::Partial) => Some(self.wait_for_room()),
            Err(_) => Some(self.abort("its client is gone")),
        }
    }

    /// TLS takes the stream over, and with it what has come of the client's part. `None` if the
    /// next bytes can be read.
    fn start_tls(&mut self, buffers: &mut IoBuffers) -> Option<NextState> {
        let Some(context) = self.server.tls.context() else {
            return Some(self.abort("TLS was turned off"));
        };
        let below = self.send_buffer.stream.take();
        let counters = self.server.tls.counters.clone();
        let first = buffers.reader.unread();
        match TlsStream::accept(below, &context, counters, first) {
            Ok(tls) => self.send_buffer.stream = Stream::Tls(Box::new(tls)),
            Err(error) => return Some(self.abort(&error.to_string())),
        }
        buffers.reader.clear();
        match self.send_buffer.has_unsent() {
            true => Some(self.wait_for_room()),
            false => None,
        }
    }

    /// Packets come in frames from here on. The reply to the login isn't in one.
    fn start_compression(
        &mut self,
        algorithm: Algorithm,
        buffers: &mut IoBuffers,
    ) -> Option<NextState> {
        let received = buffers.reader.unread();
        self.send_buffer
            .start_compression(algorithm, received, &mut buffers.writer);
        let has_more = !received.is_empty();
        buffers.reader.clear();
        match self.send_buffer.flush() {
            Ok(SendProgress::Complete) if has_more => Some(NextState::Again),
            Ok(SendProgress::Complete) => None,
            Ok(SendProgress::Partial) => Some(self.wait_for_room()),
            Err(_) => Some(self.abort("its client is gone")),
        }
    }

    fn idle(&self) -> NextState {
        match self.phase {
            Phase::AwaitingReuse => NextState::AwaitingReuse,
            Phase::Handshake(_) | Phase::Session(_) | Phase::Over => NextState::Idle,
        }
    }

    #[inline]
    fn count(&self, which: impl FnOnce(&TrafficCounters) -> &AtomicU64, amount: u64) {
        if let Some((_, inbox)) = &self.worker {
            which(&inbox.traffic).fetch_add(amount, Ordering::Relaxed);
        }
    }

    /// The rest of its reply doesn't fit now. It never will if nobody is left to read: that is
    /// reported once, and may have been while the reply was made.
    pub(super) fn wait_for_room(&mut self) -> NextState {
        if self.peer_closed {
            return self.abort("no reader for its reply");
        }
        NextState::AwaitingRoom
    }

    // ── Held replies ─────────────────────────────────────────────────────────────────────────

    /// The commit that its reply waited for is durable, or failed.
    pub fn commit_durable(&mut self, result: porpoise_storage::Result<()>) -> NextState {
        if let Err(error) = result {
            // A promise is broken: no reply to this client could be relied on now.
            tracing::error!("connection {}: its commit failed: {error}", self.id);
            self.send_buffer.discard();
            return NextState::Close;
        }
        self.send_held()
    }

    /// Sends the reply that was held back.
    pub fn send_held(&mut self) -> NextState {
        let has_more = self.peer_closed || self.unread || self.partial_packet.is_some();
        match self.send_buffer.flush() {
            Ok(SendProgress::Complete) if has_more => NextState::Again,
            Ok(SendProgress::Complete) => NextState::Idle,
            Ok(SendProgress::Partial) => self.wait_for_room(),
            Err(_) => self.abort("its client is gone"),
        }
    }

    // ── Reuse of rings ───────────────────────────────────────────────────────────────────────

    /// Its rings may be kept: the server's offer has said so, and the client has taken everything
    /// that was sent.
    fn can_be_reused(&self) -> bool {
        self.peer == Peer::Unix
            && !self.send_buffer.has_unsent()
            && self.send_buffer.stream.can_be_reused()
    }

    /// Its client has quit, and may come back.
    fn await_reuse(&mut self) {
        self.phase = Phase::AwaitingReuse;
        self.send_buffer.set_control(None);
        self.send_buffer.stream.release_memory();
    }

    /// Its client is back, and is greeted like a new one.
    fn restart(&mut self, writer: &mut PacketWriter) -> PacketOutcome {
        // No error is sent: the client connects anew, and may wait for a slot there.
        let Some(slot) = self.server.take_ordinary_slot() else {
            return PacketOutcome::Close;
        };
        self.id = self.server.engine.next_connection_id();
        self.send_buffer.stream.reuse();
        self.count(|traffic| &traffic.ring_connections, 1);
        writer.set_sequence(0);
        let host = ClientHost::Known(self.peer.host().into());
        let layers = self.server.layers_of(&self.send_buffer.stream);
        let handshake = Handshake::begin(self.id, self.peer, host, slot, layers, writer);
        self.phase = Phase::Handshake(Box::new(handshake));
        self.packets = 0;
        self.is_settled = false;
        self.takes_long = false;
        self.began = Instant::now();
        PacketOutcome::Reply
    }
}
