//! The way out: a connection's socket and the bytes that did not fit into it yet.
//!
//! A reply is written at once, without asking first whether there is room: there nearly always is.
//! What doesn't fit waits here, and the event loop is told when there is room again. Only a statement in
//! the middle of a large result waits itself ([`Outlet::send_all`]), after leaving the event loop to
//! another thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use porpoise_engine::Control;
use porpoise_protocol::frame::{PacketReader, PacketWriter};

use crate::crew;
use crate::placement::Placement;
use crate::stream::Stream;

/// How often a statement that waits for its client looks whether it was killed.
const LOOK_UP: Duration = Duration::from_millis(100);

/// The longest packet that a client may send of a file: the most that `max_allowed_packet` can be.
const FILE_PACKET_BYTES_MAX: usize = 1 << 30;

/// What went over a worker's connections. Each worker counts its own; they are added up when somebody asks.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub bytes_sent: AtomicU64,
    pub bytes_received: AtomicU64,
    pub commands: AtomicU64,
    /// Connections that went to another worker.
    pub moves: AtomicU64,
    /// Connections over shared memory so far.
    pub rings: AtomicU64,
    /// How often a sleeping client of shared memory was woken.
    pub wakeups: AtomicU64,
    /// Waits for rings that a look sufficed for, and those that ended in sleep.
    pub spins_won: AtomicU64,
    pub spins_lost: AtomicU64,
}

pub(crate) struct Outlet {
    pub stream: Stream,
    /// Bytes to send before any other.
    waiting: Vec<u8>,
    sent: usize,
    traffic: Arc<Traffic>,
    /// How a statement that waits for its reader learns that it was killed.
    control: Option<Arc<Control>>,
    placement: Placement,
    /// Another worker may wake its client more cheaply.
    is_misplaced: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    All,
    /// The rest waits for room.
    Some,
}

impl Outlet {
    pub fn new(stream: Stream, traffic: Arc<Traffic>) -> Outlet {
        Outlet {
            stream,
            waiting: Vec::new(),
            sent: 0,
            traffic,
            control: None,
            placement: Placement::default(),
            is_misplaced: false,
        }
    }

    /// Counts for another worker from now on.
    pub fn count_in(&mut self, traffic: Arc<Traffic>) {
        self.traffic = traffic;
    }

    /// Sends for a session from now on.
    pub fn set_control(&mut self, control: Arc<Control>) {
        self.control = Some(control);
    }

    /// Sends for no session any more.
    pub fn clear_control(&mut self) {
        self.control = None;
    }

    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Keeps a reply back until its commit is durable.
    pub fn hold(&mut self, writer: &mut PacketWriter) {
        if self.waiting.is_empty() {
            self.waiting = writer.bytes().to_vec();
        } else {
            self.waiting.extend_from_slice(writer.bytes());
        }
        writer.clear();
    }

    /// Drops what was held back.
    pub fn forget(&mut self) {
        self.waiting = Vec::new();
        self.sent = 0;
    }

    /// Sends a reply as far as there is room.
    pub fn send(&mut self, writer: &mut PacketWriter) -> io::Result<Sent> {
        if self.has_waiting() {
            self.hold(writer);
            return self.send_waiting();
        }
        let written = match self.write(writer.bytes()) {
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => {
                writer.clear();
                return Err(error);
            }
        };
        if written == writer.len() {
            writer.clear();
            return Ok(Sent::All);
        }
        self.waiting = writer.bytes()[written..].to_vec();
        writer.clear();
        Ok(Sent::Some)
    }

    fn count(&mut self, written: usize) {
        self.traffic
            .bytes_sent
            .fetch_add(written as u64, Ordering::Relaxed);
        let wakeups = self.stream.take_wakeups();
        if wakeups > 0 {
            self.traffic.wakeups.fetch_add(wakeups, Ordering::Relaxed);
        }
    }

    /// A ring holds what it waits for: the next command, or room for what didn't fit.
    pub fn is_ready(&self) -> bool {
        self.stream.is_ready(self.has_waiting())
    }

    /// Has a ring's client ring for what it waits for. True: it is there already.
    pub fn arm(&mut self) -> bool {
        self.stream.arm(self.has_waiting())
    }

    /// Sends what waits, as far as there is room.
    pub fn send_waiting(&mut self) -> io::Result<Sent> {
        let waiting = std::mem::take(&mut self.waiting);
        while self.sent < waiting.len() {
            match self.write(&waiting[self.sent..]) {
                Ok(written) => self.sent += written,
                Err(error) => {
                    self.waiting = waiting;
                    if error.kind() == io::ErrorKind::WouldBlock {
                        return Ok(Sent::Some);
                    }
                    return Err(error);
                }
            }
        }
        self.sent = 0;
        Ok(Sent::All)
    }

    /// Writes as much as fits, and learns now and then what it costs to wake the client.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = if !self.stream.is_ring() && self.placement.takes_sample() {
            let from = cpu_time();
            let written = self.stream.write(bytes)?;
            self.is_misplaced |= self.placement.cost(cpu_time().saturating_sub(from));
            written
        } else {
            self.stream.write(bytes)?
        };
        self.count(written);
        Ok(written)
    }

    /// Its sends have turned out dear: it had better go to another worker. Asked once.
    pub fn take_misplaced(&mut self) -> bool {
        std::mem::take(&mut self.is_misplaced)
    }

    /// Takes the packets of a file that the client was asked for, up to the empty one that ends it, waiting on this
    /// thread, `patience` at most without any progress. With it comes the last packet's sequence number.
    pub fn receive_file(&mut self, patience: Duration) -> io::Result<(Vec<u8>, u8)> {
        let mut reader = PacketReader::new(FILE_PACKET_BYTES_MAX);
        let mut content = Vec::new();
        let mut since = Instant::now();
        loop {
            let odd = |_| io::Error::from(io::ErrorKind::InvalidData);
            while let Some(packet) = reader.next_packet().map_err(odd)? {
                if packet.payload.is_empty() {
                    let sequence = packet.sequence;
                    // A client that says more before it has the answer can't be followed.
                    return match reader.is_mid_packet() {
                        true => Err(io::ErrorKind::InvalidData.into()),
                        false => Ok((content, sequence)),
                    };
                }
                content.extend_from_slice(packet.payload);
            }
            match self.stream.read(reader.spare()) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    reader.filled(count);
                    self.traffic
                        .bytes_received
                        .fetch_add(count as u64, Ordering::Relaxed);
                    since = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    crew::leave_loop();
                    self.stream.wait_readable(LOOK_UP.min(patience))?;
                    if self
                        .control
                        .as_ref()
                        .is_some_and(|control| control.interrupt.is_set())
                    {
                        return Err(io::ErrorKind::Interrupted.into());
                    }
                    if since.elapsed() >= patience {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends everything, waiting on this thread while the client is slow, `patience` at most without any progress.
    pub fn send_all(&mut self, writer: &mut PacketWriter, patience: Duration) -> io::Result<()> {
        let mut sent = self.send(writer)?;
        let mut since = Instant::now();
        while sent == Sent::Some {
            crew::leave_loop();
            let before = self.sent;
            self.stream.wait_writable(LOOK_UP.min(patience))?;
            sent = self.send_waiting()?;
            if self
                .control
                .as_ref()
                .is_some_and(|control| control.interrupt.is_set())
            {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if self.sent != before {
                since = Instant::now();
            } else if since.elapsed() >= patience {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }
}

/// The processor time that this thread has spent.
fn cpu_time() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        spent.tv_sec.try_into().unwrap_or(0),
        spent.tv_nsec.try_into().unwrap_or(0),
    )
}
