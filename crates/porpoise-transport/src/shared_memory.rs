//! A stream over a pair of rings, and how two processes come to share them.
//!
//! ```text
//!  client                                                       server
//!    │  connects to a Unix socket  ─────────────────────────────► │  makes a sealed memfd and a doorbell
//!    │  ◄────────── [`Offer`], with both descriptors ──────────── │
//!    │  checks size and seals, maps                               │
//!    │ ═══════════ bytes through the rings, both ways ═══════════ │
//!    │  sleeps? the server sends a byte over the socket           │
//!    │           the client adds to the doorbell (eventfd)        │  sleeps?
//!    │  dies?    the socket ends                                  │  dies?
//! ```
//!
//! Nothing but the rings' bytes, wake-ups and the end of the connection: what the bytes mean isn't known here.
//!
//! **Two kinds of bell.** The server waits for thousands of clients with one poll, and needs not even take an eventfd's ring
//! off it. But it must never block in ringing, and an eventfd does when its number is full and its holders have made it
//! blocking: both are in the hands of whoever it was given to. A byte to the socket never blocks, for this end of the socket
//! is the server's own. And who sleeps at the socket wakes when the other end dies, too, with one system call for both.
//!
//! **Rings may be kept** for the same client's next conversation, if the offer says so ([`kept`](crate::kept)).
//!
//! **The socket says who lives.** It carries nothing from the client. The kernel closes it when a process ends, however it ends.

use crate::kept::{self, Origin};
use crate::memory::{Mapped, Role, SHAPE, Shape};
use crate::ring::{Bell, End, Memory, Wants};
use crate::spin::Spin;
use crate::sys::{self, Heard};
use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where a server that listens at `socket` offers shared memory of this base name: beside the socket. A name with a slash in
/// it is the place itself.
pub fn path_of(socket: &Path, base_name: &str) -> PathBuf {
    if base_name.contains('/') {
        return PathBuf::from(base_name);
    }
    let mut path = socket.as_os_str().to_owned();
    path.push(".");
    path.push(base_name);
    PathBuf::from(path)
}

/// The base name of a server and a client that were told none.
pub const BASE_NAME: &str = "MYSQL";

/// What comes with the descriptors: enough to know the rings by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offer {
    shape: Shape,
    /// The server keeps its end after a conversation, for the next.
    keeps: bool,
}

const MAGIC: [u8; 8] = *b"porpoise";
const VERSION: u32 = 1;
const OFFER_BYTES: usize = 24;

impl Offer {
    fn to_bytes(self) -> [u8; OFFER_BYTES] {
        let mut bytes = [0; OFFER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        let fields = [
            VERSION,
            self.shape.up as u32,
            self.shape.down as u32,
            u32::from(self.keeps),
        ];
        for (place, field) in bytes[8..].as_chunks_mut::<4>().0.iter_mut().zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    fn parse(bytes: &[u8; OFFER_BYTES]) -> io::Result<Offer> {
        let field = |at: usize| {
            let bytes = bytes[at..at + 4].try_into().expect("four bytes");
            u32::from_le_bytes(bytes)
        };
        if bytes[..8] != MAGIC || field(8) != VERSION {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "what listens there offers no shared memory of a kind known here",
            ));
        }
        let shape = Shape {
            up: field(12) as usize,
            down: field(16) as usize,
        };
        shape.length()?;
        let keeps = field(20) & 1 != 0;
        Ok(Offer { shape, keeps })
    }
}

/// The socket, as the server's bell.
#[derive(Debug)]
pub struct SocketBell(UnixStream);

impl Bell for SocketBell {
    fn ring(&self) {
        sys::nudge(&self.0);
    }
}

/// The server's end. It never blocks but in [`wait_for_room`](Self::wait_for_room), and trusts nothing it reads.
#[derive(Debug)]
pub struct ServerEnd {
    end: End<Mapped, SocketBell>,
    doorbell: OwnedFd,
    is_reused: bool,
}

impl ServerEnd {
    /// Makes rings for whoever is at the other end of `socket`, and hands them over.
    pub fn offer(socket: UnixStream) -> io::Result<ServerEnd> {
        Self::offer_shaped(socket, SHAPE)
    }

    /// Makes rings as [`offer`](Self::offer) does, and tells the client that they may be kept for its next conversation.
    pub fn offer_to_keep(socket: UnixStream) -> io::Result<ServerEnd> {
        let keeps = true;
        Self::hand_over(
            socket,
            Offer {
                shape: SHAPE,
                keeps,
            },
        )
    }

    /// Rings of other capacities: powers of two, a page at least.
    pub fn offer_shaped(socket: UnixStream, shape: Shape) -> io::Result<ServerEnd> {
        let keeps = false;
        Self::hand_over(socket, Offer { shape, keeps })
    }

    fn hand_over(socket: UnixStream, offer: Offer) -> io::Result<ServerEnd> {
        let shape = offer.shape;
        socket.set_nonblocking(true)?;
        let memory = sys::create_memory(shape.length()?)?;
        let doorbell = sys::create_doorbell()?;
        let mapped = Mapped::new(&memory, shape, Role::Server)?;
        sys::hand_over(&socket, &offer.to_bytes(), [&memory, &doorbell])?;
        Ok(ServerEnd {
            end: End::new(mapped, SocketBell(socket)),
            doorbell,
            is_reused: false,
        })
    }

    /// Polls as readable when the client has died or closed the connection.
    pub fn socket(&self) -> &UnixStream {
        &self.end.bell().0
    }

    /// Has a new edge whenever the client rings. Needn't ever be read.
    pub fn doorbell(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    /// Takes bytes; [`io::ErrorKind::WouldBlock`] when there are none, `Ok(0)` when there are none and the client is gone.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.end.read(into)? {
            0 if into.is_empty() => Ok(0),
            0 => match sys::hear(self.socket(), false)? {
                // What it wrote last came before the end.
                Heard::Gone => Ok(self.end.read(into)?),
                Heard::Nothing => Err(io::ErrorKind::WouldBlock.into()),
                Heard::Nudges => Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a client of shared memory wrote to its socket",
                )),
            },
            count => Ok(count),
        }
    }

    /// Puts bytes; [`io::ErrorKind::WouldBlock`] when there is no room, [`io::ErrorKind::BrokenPipe`] when nobody is left
    /// to make any.
    pub fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self.end.write(from)? {
            0 if from.is_empty() => Ok(0),
            0 if sys::hear(self.socket(), false)? == Heard::Gone => {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    /// Whether one of `wants` is there, or the rings are broken.
    #[inline]
    pub fn is_ready(&self, wants: Wants) -> bool {
        self.end.is_ready(wants)
    }

    /// Another conversation begins. The system still tells who has dialled: the same process, perhaps as another user by now.
    pub fn reuse(&mut self) {
        self.is_reused = true;
    }

    /// It has carried a conversation before.
    pub fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// The client has taken every byte that was written.
    pub fn is_taken(&self) -> bool {
        self.end.writable() == Ok(self.end.memory().capacity_out())
    }

    /// Has the doorbell rung when one of `wants` is there. True: it is there already, and nobody will ring.
    pub fn arm(&mut self, wants: Wants) -> bool {
        self.end.arm(wants)
    }

    /// Needs no ring any more; one may still come.
    pub fn disarm(&mut self) {
        self.end.disarm();
    }

    /// How often the client was woken since this was last asked.
    pub fn take_rung(&mut self) -> u64 {
        self.end.take_rung()
    }

    /// Waits on this thread for room to write: true; false when `patience` ran out, or for no reason.
    pub fn wait_for_room(&mut self, patience: Duration) -> io::Result<bool> {
        self.wait_for(Wants::ROOM, patience)
    }

    /// Waits on this thread for bytes to read, or for room to write.
    pub fn wait_for(&mut self, wants: Wants, patience: Duration) -> io::Result<bool> {
        // A client that is reading takes half a ring in some microseconds.
        const LOOKS: u32 = 1000;
        for _ in 0..LOOKS {
            if self.end.is_ready(wants) {
                return Ok(true);
            }
            std::hint::spin_loop();
        }
        sys::hush_doorbell(&self.doorbell);
        if !self.end.arm(wants) {
            sys::wait_for(
                [self.doorbell.as_fd(), self.socket().as_fd()],
                Some(patience),
            )?;
            self.end.disarm();
        }
        if sys::hear(self.socket(), false)? == Heard::Gone {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(self.end.is_ready(wants))
    }
}

/// The doorbell, as the client's bell.
#[derive(Debug)]
struct Doorbell(OwnedFd);

impl Bell for Doorbell {
    fn ring(&self) {
        sys::ring_doorbell(&self.0);
    }
}

/// The client's end: a blocking stream.
#[derive(Debug)]
pub struct SharedMemory {
    end: End<Mapped, Doorbell>,
    socket: UnixStream,
    spin: Spin,
    write_timeout: Cell<Option<Duration>>,
    /// What was asked for, and what the socket was told: it is when there is something to wait for.
    read_timeout: Cell<Option<Duration>>,
    told_timeout: Cell<Option<Duration>>,
    /// Where the next conversation may find it; `None` if there is to be none.
    origin: Option<Origin>,
}

impl SharedMemory {
    /// Takes the rings that a server offers at the other end of `socket`, waiting for the offer no longer than `timeout`.
    pub fn accept(socket: UnixStream, timeout: Option<Duration>) -> io::Result<SharedMemory> {
        Self::accept_from(socket, None, timeout)
    }

    /// Takes the rings of the server that was dialled at `origin`.
    pub(crate) fn accept_from(
        socket: UnixStream,
        origin: Option<Origin>,
        timeout: Option<Duration>,
    ) -> io::Result<SharedMemory> {
        socket.set_read_timeout(timeout)?;
        let mut offer = [0; OFFER_BYTES];
        let [memory, doorbell] = sys::take_over(&socket, &mut offer)?;
        let Offer { shape, keeps } = Offer::parse(&offer)?;
        sys::check_memory(&memory, shape.length()?)?;
        let mapped = Mapped::new(&memory, shape, Role::Client)?;
        socket.set_read_timeout(None)?;
        Ok(SharedMemory {
            end: End::new(mapped, Doorbell(doorbell)),
            socket,
            spin: Spin::default(),
            write_timeout: Cell::new(None),
            read_timeout: Cell::new(None),
            told_timeout: Cell::new(None),
            origin: origin.filter(|_| keeps),
        })
    }

    pub(crate) fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// Begins the next conversation; true if the server takes it up.
    pub(crate) fn is_answered(&mut self, knock: &[u8], patience: Option<Duration>) -> bool {
        let is_there = loop {
            match sys::hear(&self.socket, false) {
                // Of the conversation before.
                Ok(Heard::Nudges) => {}
                heard => break heard.is_ok_and(|heard| heard == Heard::Nothing),
            }
        };
        let deadline = patience.map(|patience| Instant::now() + patience);
        self.write_timeout.set(patience);
        if !is_there || self.write_all(knock).is_err() {
            return false;
        }
        while self.end.readable() == Ok(0) {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if !self.wait_for(Wants::BYTES, left).is_ok_and(|waited| waited) {
                break;
            }
        }
        self.end.readable().is_ok_and(|count| count > 0)
    }

    /// Looks and then sleeps for one of `wants`, or for no reason; false when there was no time left to.
    fn wait_for(&mut self, wants: Wants, left: Option<Duration>) -> io::Result<bool> {
        let end = &self.end;
        if self.spin.wait(|| end.is_ready(wants)) || self.end.arm(wants) {
            return Ok(true);
        }
        let waited = sys::wait_for([self.socket.as_fd()], left);
        self.end.disarm();
        self.spin.woke();
        waited?;
        match sys::hear(&self.socket, false)? {
            Heard::Gone => Err(io::ErrorKind::BrokenPipe.into()),
            Heard::Nothing => Ok(left != Some(Duration::ZERO)),
            Heard::Nudges => Ok(true),
        }
    }

    /// Sleeps until its server nudges or is gone, or its patience ends.
    fn hear_in_time(&self) -> io::Result<Heard> {
        let timeout = self.read_timeout.get();
        if timeout != self.told_timeout.get() {
            self.socket.set_read_timeout(timeout)?;
            self.told_timeout.set(timeout);
        }
        sys::hear(&self.socket, true)
    }

    /// How its waits went.
    pub fn spin(&self) -> &Spin {
        &self.spin
    }
}

impl Read for SharedMemory {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            let count = self.end.read(into)?;
            if count > 0 {
                return Ok(count);
            }
            let end = &self.end;
            if self.spin.wait(|| end.is_ready(Wants::BYTES)) || self.end.arm(Wants::BYTES) {
                continue;
            }
            let heard = self.hear_in_time();
            self.end.disarm();
            self.spin.woke();
            match heard? {
                Heard::Nudges => {}
                // What was written last came before the end.
                Heard::Gone => return Ok(self.end.read(into)?),
                Heard::Nothing => return Err(io::ErrorKind::WouldBlock.into()),
            }
        }
    }
}

impl Write for SharedMemory {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let deadline = self.write_timeout.get().map(|time| Instant::now() + time);
        loop {
            let count = self.end.write(from)?;
            if count > 0 || from.is_empty() {
                return Ok(count);
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if !self.wait_for(Wants::ROOM, left)? {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl crate::Stream for SharedMemory {
    fn write_or_read(&mut self, from: &[u8], into: &mut [u8]) -> io::Result<(usize, usize)> {
        let deadline = self.write_timeout.get().map(|time| Instant::now() + time);
        loop {
            match (self.end.write(from)?, self.end.read(into)?) {
                (0, 0) => {}
                moved => return Ok(moved),
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if !self.wait_for(Wants::EITHER, left)? {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }

    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        if timeout == Some(Duration::ZERO) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.read_timeout.set(timeout);
        Ok(())
    }

    fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.write_timeout.set(timeout);
        Ok(())
    }

    fn is_private(&self) -> bool {
        true
    }

    fn is_local(&self) -> bool {
        true
    }

    fn kind(&self) -> &'static str {
        "shared memory"
    }

    fn shutdown(&self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Both)
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn read_now(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.end.read(into)? {
            0 if into.is_empty() => Ok(0),
            0 => match sys::hear(&self.socket, false)? {
                // What was written last came before the end.
                Heard::Gone => Ok(self.end.read(into)?),
                Heard::Nothing | Heard::Nudges => Err(io::ErrorKind::WouldBlock.into()),
            },
            count => Ok(count),
        }
    }

    #[inline]
    fn is_readable(&self) -> Option<bool> {
        Some(self.end.is_ready(Wants::BYTES))
    }

    fn arm(&mut self) -> bool {
        self.end.arm(Wants::BYTES)
    }

    fn disarm(&mut self, is_heard: bool) -> bool {
        self.end.disarm();
        // A nudge is taken, so that the next poll doesn't hear it. Whatever else is heard, a read finds out.
        let is_over = is_heard
            && !matches!(
                sys::hear(&self.socket, false),
                Ok(Heard::Nothing | Heard::Nudges)
            );
        is_over || self.end.is_ready(Wants::BYTES)
    }

    fn keep(self: Box<Self>) {
        if self.origin.is_some() && self.end.readable() == Ok(0) {
            kept::put(*self);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;
    use std::thread;

    fn pair() -> (SharedMemory, ServerEnd) {
        pair_shaped(SHAPE)
    }

    fn pair_shaped(shape: Shape) -> (SharedMemory, ServerEnd) {
        let (near, far) = UnixStream::pair().unwrap();
        let server = ServerEnd::offer_shaped(far, shape).unwrap();
        let client = SharedMemory::accept(near, Some(Duration::from_secs(5))).unwrap();
        (client, server)
    }

    /// As an event loop would wait.
    fn wait(server: &mut ServerEnd, wants: Wants) {
        if !server.arm(wants) {
            sys::wait_for(
                [server.doorbell.as_fd(), server.socket().as_fd()],
                Some(Duration::from_secs(10)),
            )
            .unwrap();
            sys::hush_doorbell(&server.doorbell);
        }
    }

    fn echo(mut server: ServerEnd) {
        let mut bytes = vec![0; 3000];
        loop {
            let count = match server.read(&mut bytes) {
                Ok(0) => return,
                Ok(count) => count,
                Err(_) => {
                    wait(&mut server, Wants::BYTES);
                    continue;
                }
            };
            let mut rest = &bytes[..count];
            while !rest.is_empty() {
                match server.write(rest) {
                    Ok(count) => rest = &rest[count..],
                    Err(_) => {
                        server.wait_for_room(Duration::from_secs(1)).unwrap();
                    }
                }
            }
        }
    }

    #[test]
    fn requests_are_answered_whether_anybody_sleeps_or_not() {
        let (mut client, server) = pair();
        let serving = thread::spawn(move || echo(server));
        for turn in 0..2000u32 {
            if turn % 500 == 0 {
                thread::sleep(Duration::from_millis(2));
            }
            let request = turn.to_le_bytes();
            client.write_all(&request).unwrap();
            let mut reply = [0; 4];
            client.read_exact(&mut reply).unwrap();
            assert_eq!(reply, request);
        }
        assert_eq!(client.kind(), "shared memory");
        assert!(client.is_private() && client.is_local());
        drop(client);
        serving.join().unwrap();
    }

    #[test]
    fn a_message_many_times_longer_than_the_rings_goes_through() {
        let (client, server) = pair_shaped(Shape {
            up: 4096,
            down: 4096,
        });
        let serving = thread::spawn(move || echo(server));
        let sent: Vec<u8> = (0..20_000_000u32).map(|n| ((n * 7) >> 3) as u8).collect();
        let mut client = client;
        let mut got = Vec::with_capacity(sent.len());
        let mut piece = vec![0; 9000];
        for chunk in sent.chunks(2500) {
            client.write_all(chunk).unwrap();
            let end = got.len() + chunk.len();
            while got.len() < end {
                let count = client.read(&mut piece).unwrap();
                got.extend_from_slice(&piece[..count]);
            }
        }
        assert!(got == sent);
        drop(client);
        serving.join().unwrap();
    }

    #[test]
    fn what_a_client_wrote_before_it_left_is_read_before_its_end() {
        let (mut client, mut server) = pair();
        client.write_all(b"goodbye").unwrap();
        drop(client);
        let mut bytes = [0; 20];
        assert_eq!(server.read(&mut bytes).unwrap(), 7);
        assert_eq!(server.read(&mut bytes).unwrap(), 0);
    }

    #[test]
    fn a_client_whose_server_is_gone_reads_the_end_at_once() {
        let (mut client, mut server) = pair();
        server.write(b"last words").unwrap();
        let leaving = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            drop(server);
        });
        let mut bytes = [0; 20];
        assert_eq!(client.read(&mut bytes).unwrap(), 10);
        assert_eq!(client.read(&mut bytes).unwrap(), 0);
        let long = vec![0; SHAPE.up + 1];
        let error = client.write_all(&long).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        leaving.join().unwrap();
    }

    #[test]
    fn a_client_waits_no_longer_than_its_timeouts() {
        let (mut client, server) = pair();
        let patience = Some(Duration::from_millis(20));
        client.set_read_timeout(patience).unwrap();
        client.set_write_timeout(patience).unwrap();
        let error = client.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        client.write_all(&vec![0; SHAPE.up]).unwrap();
        let error = client.write(&[0]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        drop(server);
    }

    #[test]
    fn a_server_waits_for_room_only_while_its_client_lives() {
        let (client, mut server) = pair();
        while server.write(&[0; 1000]).is_ok() {}
        assert!(!server.wait_for_room(Duration::from_millis(10)).unwrap());
        drop(client);
        let error = server.wait_for_room(Duration::from_secs(10)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn memory_that_could_shrink_or_has_another_size_is_refused() {
        let length = SHAPE.length().unwrap();
        let sealed = sys::create_memory(length).unwrap();
        sys::check_memory(&sealed, length).unwrap();
        assert!(sys::check_memory(&sealed, length + 4096).is_err());
        assert!(rustix::fs::ftruncate(&sealed, 0).is_err());
        let flags = rustix::fs::MemfdFlags::CLOEXEC | rustix::fs::MemfdFlags::ALLOW_SEALING;
        let loose = rustix::fs::memfd_create("loose", flags).unwrap();
        rustix::fs::ftruncate(&loose, length as u64).unwrap();
        assert!(sys::check_memory(&loose, length).is_err());
    }

    #[test]
    fn an_offer_of_nonsense_is_refused() {
        for keeps in [false, true] {
            let shape = SHAPE;
            let offer = Offer { shape, keeps };
            assert_eq!(Offer::parse(&offer.to_bytes()).unwrap(), offer);
        }
        let (shape, keeps) = (SHAPE, false);
        let offer = Offer { shape, keeps }.to_bytes();
        for (at, byte) in [(0, 0), (8, 9), (12, 1), (13, 0), (15, 0x80), (16, 3)] {
            let mut offer = offer;
            offer[at] = byte;
            assert!(Offer::parse(&offer).is_err(), "{at}");
        }
    }

    #[test]
    fn who_speaks_on_the_socket_breaks_the_rules() {
        let (client, mut server) = pair();
        (&client.socket).write_all(b"hello").unwrap();
        let error = server.read(&mut [0; 10]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_client_that_makes_its_doorbell_blocking_and_full_blocks_nobody() {
        let (client, mut server) = pair();
        let doorbell = &client.end.bell().0;
        rustix::fs::fcntl_setfl(doorbell, rustix::fs::OFlags::empty()).unwrap();
        // Silent and blocking: taking the ring off it mustn't wait.
        sys::hush_doorbell(&server.doorbell);
        rustix::io::write(doorbell, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        while server.write(&[0; 1000]).is_ok() {}
        assert!(!server.wait_for_room(Duration::from_millis(10)).unwrap());
        for _ in 0..100_000 {
            server.end.bell().ring();
        }
    }

    #[test]
    fn rings_are_kept_for_the_same_server_while_it_lives() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let endpoint = crate::Endpoint::SharedMemory(path.clone());
        let dial = |offer: fn(UnixStream) -> io::Result<ServerEnd>| {
            thread::scope(|scope| {
                let server = scope.spawn(|| offer(listener.accept().unwrap().0).unwrap());
                let client = crate::connect(&endpoint, None).unwrap();
                (client, server.join().unwrap())
            })
        };
        let patience = Some(Duration::from_secs(5));
        let kept = || crate::take_kept(&endpoint, b"knock", patience);
        assert!(kept().is_none());

        // A server that doesn't keep its end.
        let (client, _server) = dial(ServerEnd::offer);
        client.keep();
        assert!(kept().is_none());

        let (mut client, mut server) = dial(ServerEnd::offer_to_keep);
        client.write_all(b"one").unwrap();
        server.write(b"answer").unwrap();
        let mut bytes = [0; 10];
        assert_eq!(server.read(&mut bytes).unwrap(), 3);
        assert!(!server.is_taken());
        // Something is still to be read: not in good order.
        client.keep();
        assert!(kept().is_none());

        let (mut client, server) = dial(ServerEnd::offer_to_keep);
        let serving = thread::spawn(move || echo(server));
        for word in [&b"one"[..], b"two"] {
            client.write_all(word).unwrap();
            client.read_exact(&mut bytes[..3]).unwrap();
            assert_eq!(&bytes[..3], word);
            client.keep();
            client = kept().expect("the server answers");
            client.read_exact(&mut bytes[..5]).unwrap();
            assert_eq!(&bytes[..5], b"knock");
            assert!(kept().is_none());
        }
        client.shutdown().unwrap();
        serving.join().unwrap();
        // The server is gone.
        client.keep();
        assert!(kept().is_none());

        // It is there, and doesn't answer.
        let (client, _server) = dial(ServerEnd::offer_to_keep);
        client.keep();
        let patience = Some(Duration::from_millis(20));
        assert!(crate::take_kept(&endpoint, b"knock", patience).is_none());

        // Another server takes its place.
        let (client, _server) = dial(ServerEnd::offer_to_keep);
        client.keep();
        std::fs::rename(&path, folder.path().join("old")).unwrap();
        assert!(kept().is_none());
        let _other = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(kept().is_none());
    }
}
