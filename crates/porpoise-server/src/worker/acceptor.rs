//! Accepts clients from the listeners ([`Listener`]), each worker for itself.
//!
//! ```text
//!  a client ──► a connection slot is free ──► greeted, with the slot
//!          └──► all are taken ──► listeners are unwatched for EXHAUSTED_PAUSE, repeatedly; clients
//!                            │    wait in the backlog
//!                            └──► still taken after EXHAUSTED_WAIT_MAX ──► greeted, with the slot
//!                                 beyond `max_connections`, or, if that is taken too, refused: 1040
//! ```
//!
//! When a client has disconnected, its worker may not have noticed yet. So a client is refused only
//! if all slots stay taken for a while. The slot beyond `max_connections` is for an administrator:
//! whether the client is one turns out at the login.
//!
//! Other workers take slots, too. A client that was accepted while a slot was free, which another
//! worker has taken meanwhile, becomes the *pending client*, and gets the next slot.
//!
//! When `accept` fails, the listeners are unwatched for ACCEPT_PAUSE. But where the process has no
//! descriptor left, the client is refused at once, with the descriptor that is held for that
//! ([`SpareDescriptor`](crate::descriptors::SpareDescriptor)): otherwise it would stay in the
//! backlog.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::{Registry, Token};
use porpoise_protocol::frame::PacketWriter;

use crate::connection::Connection;
use crate::descriptors;
use crate::listener::Listener;
use crate::server_state::ServerState;
use crate::stream::{Peer, Stream};
use crate::traffic::TrafficCounters;

use super::FIRST_LISTENER;

/// After an `accept` that failed, the time to the next one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long clients wait in the backlog while all slots are taken, before they are refused.
const EXHAUSTED_WAIT_MAX: Duration = Duration::from_millis(100);
/// How often slots are checked in that time at least: a worker that got no core has checked
/// nothing.
const EXHAUSTED_CHECKS_MIN: u32 = 20;
/// The time from one check to the next.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(1);

/// The shortest time between two warnings that `accept` failed.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);

/// All slots were taken at each check.
#[derive(Clone, Copy)]
struct Exhausted {
    since: Instant,
    last_check: Instant,
    checks: u32,
}

pub(super) struct Acceptor {
    server: Arc<ServerState>,
    listeners: Arc<[Listener]>,
    traffic: Arc<TrafficCounters>,
    /// No listener is watched until then.
    resume_at: Option<Instant>,
    exhausted: Option<Exhausted>,
    /// Was accepted when a slot was free that another worker has taken meanwhile: it gets the next.
    pending_client: Option<(Stream, Peer)>,
    writer: PacketWriter,
    /// When a warning that `accept` failed was last logged.
    warned_at: Option<Instant>,
}

/// No other client waits at the listener, or none can be accepted for now.
pub(super) struct NothingToAccept;

impl Acceptor {
    /// Watches the listeners from here on; events have tokens from [`FIRST_LISTENER`] up.
    pub fn open(
        server: Arc<ServerState>,
        listeners: Arc<[Listener]>,
        traffic: Arc<TrafficCounters>,
        registry: &Registry,
    ) -> io::Result<Acceptor> {
        let acceptor = Acceptor {
            server,
            listeners,
            traffic,
            resume_at: None,
            exhausted: None,
            pending_client: None,
            writer: PacketWriter::new(),
            warned_at: None,
        };
        acceptor.watch_listeners(registry)?;
        Ok(acceptor)
    }

    /// Accepts no more clients.
    pub fn close(&mut self, registry: &Registry) {
        if self.resume_at.take().is_none() {
            self.unwatch_listeners(registry);
        }
        self.listeners = Arc::default();
        self.pending_client = None;
    }

    fn watch_listeners(&self, registry: &Registry) -> io::Result<()> {
        for (at, listener) in self.listeners.iter().enumerate() {
            listener.watch(registry, Token(FIRST_LISTENER + at))?;
        }
        Ok(())
    }

    fn unwatch_listeners(&self, registry: &Registry) {
        for listener in self.listeners.iter() {
            if let Err(error) = listener.unwatch(registry) {
                tracing::error!("can't unwatch a listener: {error}");
            }
        }
    }

    /// How long until listeners that are unwatched are to be [watched again](Self::resume).
    pub fn time_to_resume(&self, now: Instant) -> Option<Duration> {
        self.resume_at.map(|at| at.saturating_duration_since(now))
    }

    /// Watches the listeners again if it is time. True if there is a pending client, of which no
    /// event tells.
    pub fn resume(&mut self, registry: &Registry, now: Instant) -> bool {
        if self.resume_at.is_none_or(|at| at > now) {
            return false;
        }
        self.resume_at = None;
        if let Err(error) = self.watch_listeners(registry) {
            tracing::error!("can't watch the listeners: {error}");
        }
        self.pending_client.is_some()
    }

    /// The next client of the listener at this index, greeted; `Ok(None)` if it has left already or
    /// was refused.
    pub fn accept(
        &mut self,
        at: usize,
        registry: &Registry,
        now: Instant,
    ) -> Result<Option<Box<Connection>>, NothingToAccept> {
        let (stream, peer) = match self.pending_client.take() {
            Some(client) => client,
            None => {
                if self.server.is_full() && self.waits_for_slots(registry, now) {
                    return Err(NothingToAccept);
                }
                match self.accept_at(at, registry, now)? {
                    Some(client) => client,
                    None => return Ok(None),
                }
            }
        };
        let slot = match self.server.take_ordinary_slot() {
            None if self.waits_for_slots(registry, now) => {
                self.pending_client = Some((stream, peer));
                return Err(NothingToAccept);
            }
            None => self.server.take_slot(),
            slot => {
                self.exhausted = None;
                slot
            }
        };
        let (traffic, writer) = (self.traffic.clone(), &mut self.writer);
        Ok(Connection::greet(
            stream,
            peer,
            slot,
            &self.server,
            traffic,
            writer,
        ))
    }

    /// The next client of the listener at this index; `Ok(None)` if it has left already or was
    /// refused.
    fn accept_at(
        &mut self,
        at: usize,
        registry: &Registry,
        now: Instant,
    ) -> Result<Option<(Stream, Peer)>, NothingToAccept> {
        let listener = self.listeners.get(at).ok_or(NothingToAccept)?;
        let spare = &self.server.spare_descriptor;
        let (accepted, is_held) = spare.while_held(|| listener.accept());
        let error = match accepted {
            Ok(client) if is_held || spare.restore() => return Ok(Some(client)),
            Ok((stream, _)) => {
                let (traffic, writer) = (self.traffic.clone(), &mut self.writer);
                Connection::refuse_full(stream, &self.server, traffic, writer);
                spare.restore();
                return Ok(None);
            }
            Err(error) => error,
        };
        match error.kind() {
            io::ErrorKind::WouldBlock => return Err(NothingToAccept),
            io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => return Ok(None),
            _ => self.server.accept_errors.fetch_add(1, Ordering::Relaxed),
        };
        let is_recent = |at: Instant| now.saturating_duration_since(at) < WARNING_INTERVAL;
        if !self.warned_at.is_some_and(is_recent) {
            self.warned_at = Some(now);
            tracing::warn!("can't accept a connection: {error}");
        }
        if descriptors::are_exhausted(&error) && self.refuse_at(at) {
            return Ok(None);
        }
        self.unwatch_listeners(registry);
        self.resume_at = Some(now + ACCEPT_PAUSE);
        Err(NothingToAccept)
    }

    /// Tells the next client of a listener that there are too many connections, though there is no
    /// descriptor for it. False if that couldn't be done.
    fn refuse_at(&mut self, at: usize) -> bool {
        let Some(listener) = self.listeners.get(at) else {
            return false;
        };
        let (server, writer) = (&self.server, &mut self.writer);
        let accepted = server.spare_descriptor.while_released(|| {
            let client = listener.accept_to_refuse();
            client.map(|client| {
                if let Some((stream, _)) = client {
                    Connection::refuse_full(stream, server, self.traffic.clone(), writer);
                }
            })
        });
        match accepted {
            Ok(()) => true,
            // It has left, another worker has refused it, or it was accepted and its rings couldn't
            // be made.
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }

    /// All slots are taken: unwatches the listeners for a moment, as a client that has left may not
    /// have been noticed yet. False when that was done for long enough.
    fn waits_for_slots(&mut self, registry: &Registry, now: Instant) -> bool {
        let passed = |since: Instant| now.saturating_duration_since(since);
        // A check that was long ago tells nothing of the time since.
        let lately = |exhausted: &Exhausted| passed(exhausted.last_check) < EXHAUSTED_WAIT_MAX;
        let mut exhausted = self.exhausted.filter(lately).unwrap_or(Exhausted {
            since: now,
            last_check: now,
            checks: 0,
        });
        exhausted.last_check = now;
        exhausted.checks = exhausted.checks.saturating_add(1);
        self.exhausted = Some(exhausted);
        let is_enough = exhausted.checks >= EXHAUSTED_CHECKS_MIN;
        if is_enough && passed(exhausted.since) >= EXHAUSTED_WAIT_MAX {
            return false;
        }
        self.unwatch_listeners(registry);
        self.resume_at = Some(now + EXHAUSTED_PAUSE);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::Read;
    use std::net::TcpStream;

    use porpoise_engine::{Engine, EngineOptions};
    use porpoise_storage::Location;

    use crate::connection_slots::ConnectionSlot;
    use crate::worker::EventLoop;

    /// A loop of a server with one connection slot, which another worker has taken between the
    /// loop's look at it and its `accept`; and the client that was accepted.
    fn accepted_too_late() -> (EventLoop, ConnectionSlot, TcpStream) {
        let engine = Engine::open(EngineOptions {
            location: Location::Memory,
            variables: vec![("max_connections".into(), "1".into())],
        });
        let server = Arc::new(ServerState::new(engine.unwrap()));
        let listener = Listener::tcp(([127, 0, 0, 1], 0).into(), 8).unwrap();
        let client = TcpStream::connect(listener.tcp_address().unwrap()).unwrap();
        client
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let accepted = listener.accept().unwrap();
        let slot = server.take_ordinary_slot().unwrap();
        let (poll, inbox) = EventLoop::open().unwrap();
        let listeners = vec![listener].into();
        let mut worker = EventLoop::with_listeners(server, poll, inbox, listeners).unwrap();
        worker.acceptor.pending_client = Some(accepted);
        worker.accept(0);
        assert!(worker.acceptor.pending_client.is_some() && worker.connections.len() == 0);
        (worker, slot, client)
    }

    /// Lets so much time pass for the loop, and has it do what is due.
    fn pass(worker: &mut EventLoop, time: Duration) {
        worker.now += time;
        worker.expire();
    }

    fn first_packet(mut client: &TcpStream) -> Vec<u8> {
        let mut header = [0; 4];
        client.read_exact(&mut header).unwrap();
        let mut payload = vec![0; usize::from(header[0])];
        client.read_exact(&mut payload).unwrap();
        payload
    }

    #[test]
    fn a_pending_client_gets_the_next_slot() {
        let (mut worker, slot, client) = accepted_too_late();
        pass(&mut worker, EXHAUSTED_PAUSE);
        assert!(worker.acceptor.pending_client.is_some());
        // A client that comes later has to wait.
        let address = client.peer_addr().unwrap();
        let later = TcpStream::connect(address).unwrap();
        drop(slot);
        pass(&mut worker, EXHAUSTED_PAUSE);
        assert!(worker.acceptor.pending_client.is_none());
        assert_eq!(worker.connections.len(), 1);
        assert_eq!(first_packet(&client)[0], 10);
        later.set_nonblocking(true).unwrap();
        let silence = (&later).read(&mut [0]).unwrap_err();
        assert_eq!(silence.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_pending_client_does_not_wait_for_ever() {
        let (mut worker, _slot, client) = accepted_too_late();
        // The administrator's slot is the last that is given: it is taken, too.
        let _reserved = worker.server.take_slot().unwrap();
        let checks = EXHAUSTED_WAIT_MAX.as_millis() / EXHAUSTED_PAUSE.as_millis();
        for _ in 0..checks {
            assert!(worker.acceptor.pending_client.is_some());
            pass(&mut worker, EXHAUSTED_PAUSE);
        }
        assert!(worker.acceptor.pending_client.is_none() && worker.connections.len() == 0);
        let refusal = first_packet(&client);
        assert_eq!(refusal[..3], [0xFF, 0x10, 0x04], "1040");
    }

    #[test]
    fn a_pending_client_is_disconnected_when_the_server_stops() {
        let (mut worker, _slot, mut client) = accepted_too_late();
        worker.stop();
        assert!(worker.has_ended());
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }
}
