//! Lets clients in that knock at the doors ([`Listener`]), each worker for itself.
//!
//! ```text
//!  a knock ──► a seat is free ─────────────────────────────────► greeted, with the seat
//!         └──► all are taken ──► the doors are left for FULL_PAUSE, again and again, while clients wait outside
//!                           └──► still taken after FULL_PATIENCE ──► greeted, with the seat beyond `max_connections`,
//!                                                                   or, if that is taken too, turned away: error 1040
//! ```
//!
//! Who has left may not have been noticed yet when the next one comes, so that full seats are looked at for a while before
//! anybody is turned away. The seat beyond `max_connections` is for an administrator: whether the client is one turns out at the login.
//!
//! Other workers give seats away, too. A client who was accepted for a seat that another worker has meanwhile given away waits
//! *at the door*, inside, and goes before all who come later.
//!
//! When `accept` fails, the doors are left for ACCEPT_PAUSE; but where only the descriptors are
//! used up, the client is turned away at once, with the one that is held for that
//! ([`Spare`](crate::descriptors::Spare)): its connection would be at the door for as long as it
//! waits.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::{Registry, Token};
use porpoise_protocol::frame::PacketWriter;

use crate::connection::Connection;
use crate::descriptors;
use crate::listener::Listener;
use crate::outlet::Traffic;
use crate::server::Shared;
use crate::stream::{Peer, Stream};

use super::FIRST_LISTENER;

/// After an `accept` that failed, the time to the next one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// While all seats are taken: how long clients wait at the doors before they are turned away, how many looks that is at least
/// (a worker that gets no core to look with has seen nothing), and how often it is looked whether somebody has left. Those who
/// have may not have been noticed yet.
const FULL_PATIENCE: Duration = Duration::from_millis(100);
const FULL_LOOKS: u32 = 20;
const FULL_PAUSE: Duration = Duration::from_millis(1);

/// So often the log tells that there are no descriptors.
const COMPLAINT_PAUSE: Duration = Duration::from_secs(10);

/// All seats were taken whenever a client came.
#[derive(Clone, Copy)]
struct Full {
    since: Instant,
    last: Instant,
    looks: u32,
}

pub(super) struct Acceptor {
    server: Arc<Shared>,
    listeners: Arc<[Listener]>,
    traffic: Arc<Traffic>,
    /// No door is watched until then.
    accept_again: Option<Instant>,
    full: Option<Full>,
    /// Came in when a seat was free that another worker gave away meanwhile: the next goes to it.
    at_the_door: Option<(Stream, Peer)>,
    greetings: PacketWriter,
    /// When the log was last told that there are no descriptors.
    complained: Option<Instant>,
}

/// Nobody else waits at the door, or nobody can be let in for now.
pub(super) struct Nobody;

impl Acceptor {
    /// Watches the doors from here on; events have tokens from [`FIRST_LISTENER`] up.
    pub fn open(
        server: Arc<Shared>,
        listeners: Arc<[Listener]>,
        traffic: Arc<Traffic>,
        registry: &Registry,
    ) -> io::Result<Acceptor> {
        let acceptor = Acceptor {
            server,
            listeners,
            traffic,
            accept_again: None,
            full: None,
            at_the_door: None,
            greetings: PacketWriter::new(),
            complained: None,
        };
        acceptor.watch_doors(registry)?;
        Ok(acceptor)
    }

    /// Lets nobody in any more.
    pub fn close(&mut self, registry: &Registry) {
        if self.accept_again.take().is_none() {
            self.leave_doors(registry);
        }
        self.listeners = Arc::default();
        self.at_the_door = None;
    }

    fn watch_doors(&self, registry: &Registry) -> io::Result<()> {
        for (at, listener) in self.listeners.iter().enumerate() {
            listener.watch(registry, Token(FIRST_LISTENER + at))?;
        }
        Ok(())
    }

    fn leave_doors(&self, registry: &Registry) {
        for listener in self.listeners.iter() {
            if let Err(error) = listener.unwatch(registry) {
                tracing::error!("can't leave a door: {error}");
            }
        }
    }

    /// How long until it [`returns`](Self::returns) to doors that it has left.
    pub fn patience(&self, now: Instant) -> Option<Duration> {
        self.accept_again
            .map(|at| at.saturating_duration_since(now))
    }

    /// Watches the doors that it has left again if it is time. True: somebody who is already inside waits to be accepted.
    pub fn returns(&mut self, registry: &Registry, now: Instant) -> bool {
        if self.accept_again.is_none_or(|at| at > now) {
            return false;
        }
        self.accept_again = None;
        if let Err(error) = self.watch_doors(registry) {
            tracing::error!("can't watch the doors: {error}");
        }
        self.at_the_door.is_some()
    }

    /// The next client, greeted; `Ok(None)` if it has left already or was turned away.
    pub fn accept(
        &mut self,
        at: usize,
        registry: &Registry,
        now: Instant,
    ) -> Result<Option<Box<Connection>>, Nobody> {
        let (stream, peer) = match self.at_the_door.take() {
            Some(client) => client,
            None => {
                if self.server.is_full() && self.waits_for_seats(registry, now) {
                    return Err(Nobody);
                }
                match self.accept_at(at, registry, now)? {
                    Some(client) => client,
                    None => return Ok(None),
                }
            }
        };
        let seat = match self.server.take_ordinary_seat() {
            None if self.waits_for_seats(registry, now) => {
                self.at_the_door = Some((stream, peer));
                return Err(Nobody);
            }
            None => self.server.take_seat(),
            seat => {
                self.full = None;
                seat
            }
        };
        let (traffic, writer) = (self.traffic.clone(), &mut self.greetings);
        Ok(Connection::greet(
            stream,
            peer,
            seat,
            &self.server,
            traffic,
            writer,
        ))
    }

    /// Who waits at a door; nobody if it has left already.
    fn accept_at(
        &mut self,
        at: usize,
        registry: &Registry,
        now: Instant,
    ) -> Result<Option<(Stream, Peer)>, Nobody> {
        let listener = self.listeners.get(at).ok_or(Nobody)?;
        let spare = &self.server.spare_descriptor;
        let (accepted, is_whole) = spare.beside(|| listener.accept());
        let error = match accepted {
            Ok(client) if is_whole || spare.restore() => return Ok(Some(client)),
            Ok((stream, _)) => {
                let (traffic, writer) = (self.traffic.clone(), &mut self.greetings);
                Connection::turn_away(stream, &self.server, traffic, writer);
                spare.restore();
                return Ok(None);
            }
            Err(error) => error,
        };
        match error.kind() {
            io::ErrorKind::WouldBlock => return Err(Nobody),
            io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => return Ok(None),
            _ => self.server.accept_errors.fetch_add(1, Ordering::Relaxed),
        };
        let is_silent = |last: Instant| now.saturating_duration_since(last) < COMPLAINT_PAUSE;
        if !self.complained.is_some_and(is_silent) {
            self.complained = Some(now);
            tracing::warn!("can't accept a connection: {error}");
        }
        if descriptors::are_used_up(&error) && self.turns_away(at) {
            return Ok(None);
        }
        self.leave_doors(registry);
        self.accept_again = Some(now + ACCEPT_PAUSE);
        Err(Nobody)
    }

    /// Tells the client at a door that there are too many connections, though there is no
    /// descriptor for it. False: that couldn't be done.
    fn turns_away(&mut self, at: usize) -> bool {
        let Some(listener) = self.listeners.get(at) else {
            return false;
        };
        let (server, writer) = (&self.server, &mut self.greetings);
        let accepted = server.spare_descriptor.lend(|| {
            let client = listener.accept_to_refuse();
            client.map(|client| {
                if let Some((stream, _)) = client {
                    Connection::turn_away(stream, server, self.traffic.clone(), writer);
                }
            })
        });
        match accepted {
            Ok(()) => true,
            // It has left, another worker has told it, or it was accepted before its rings couldn't
            // be made.
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }

    /// All seats are taken, and somebody who has left may not have been noticed yet: the doors are left for a moment.
    fn waits_for_seats(&mut self, registry: &Registry, now: Instant) -> bool {
        let lately = |full: &Full| now.saturating_duration_since(full.last) < FULL_PATIENCE;
        // A look that was long ago tells nothing of the time since.
        let mut full = self.full.filter(lately).unwrap_or(Full {
            since: now,
            last: now,
            looks: 0,
        });
        full.last = now;
        full.looks = full.looks.saturating_add(1);
        self.full = Some(full);
        if now.saturating_duration_since(full.since) >= FULL_PATIENCE && full.looks >= FULL_LOOKS {
            return false;
        }
        self.leave_doors(registry);
        self.accept_again = Some(now + FULL_PAUSE);
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

    use crate::server::Seat;
    use crate::worker::EventLoop;

    /// A loop of a server with one seat, which somebody else has; and a client that came in when it was still free, by the
    /// reckoning of a moment ago: between the look and the hand another worker has given it away.
    fn beaten_to_the_last_seat() -> (Box<EventLoop>, Seat, TcpStream) {
        let engine = Engine::open(EngineOptions {
            location: Location::Memory,
            variables: vec![("max_connections".into(), "1".into())],
        });
        let server = Arc::new(Shared::new(engine.unwrap()));
        let listener = Listener::tcp(([127, 0, 0, 1], 0).into(), 8).unwrap();
        let client = TcpStream::connect(listener.tcp_address().unwrap()).unwrap();
        client
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let beaten = listener.accept().unwrap();
        let seat = server.take_ordinary_seat().unwrap();
        let (poll, mailbox) = EventLoop::open().unwrap();
        let listeners = vec![listener].into();
        let mut worker = EventLoop::with_listeners(server, poll, mailbox, listeners).unwrap();
        worker.acceptor.at_the_door = Some(beaten);
        worker.accept(0);
        assert!(worker.acceptor.at_the_door.is_some() && worker.slots.is_empty());
        (worker, seat, client)
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
    fn who_was_beaten_to_the_last_seat_gets_the_next() {
        let (mut worker, seat, client) = beaten_to_the_last_seat();
        pass(&mut worker, FULL_PAUSE);
        assert!(worker.acceptor.at_the_door.is_some());
        // One who comes later stays behind.
        let address = client.peer_addr().unwrap();
        let later = TcpStream::connect(address).unwrap();
        drop(seat);
        pass(&mut worker, FULL_PAUSE);
        assert!(worker.acceptor.at_the_door.is_none());
        assert_eq!(worker.slots.len(), 1);
        assert_eq!(first_packet(&client)[0], 10);
        later.set_nonblocking(true).unwrap();
        let silence = (&later).read(&mut [0]).unwrap_err();
        assert_eq!(silence.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn who_was_beaten_to_the_last_seat_does_not_wait_for_ever() {
        let (mut worker, _seat, client) = beaten_to_the_last_seat();
        // The administrator's seat is the last that is given away: it is taken, too.
        let _reserved = worker.server.take_seat().unwrap();
        let looks = FULL_PATIENCE.as_millis() / FULL_PAUSE.as_millis();
        for _ in 0..looks {
            assert!(worker.acceptor.at_the_door.is_some());
            pass(&mut worker, FULL_PAUSE);
        }
        assert!(worker.acceptor.at_the_door.is_none() && worker.slots.is_empty());
        let refusal = first_packet(&client);
        assert_eq!(refusal[..3], [0xFF, 0x10, 0x04], "1040");
    }

    #[test]
    fn who_was_beaten_to_the_last_seat_is_let_go_at_the_end() {
        let (mut worker, _seat, mut client) = beaten_to_the_last_seat();
        worker.stop(Instant::now());
        assert!(worker.has_ended());
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }
}
