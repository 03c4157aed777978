//! A connection's stream, and the bytes that did not fit into it yet.
//!
//! A reply is written at once, without asking first whether there is room: there nearly always is.
//! What doesn't fit waits here, and the event loop is notified when there is room again. Only a
//! statement in the middle of a large result waits itself ([`SendBuffer::send_all`]): it spins for
//! room in a ring, which a client that reads makes within microseconds, and before it sleeps it hands
//! the event loop over to another thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use porpoise_engine::Control;
use porpoise_protocol::compressed::Algorithm;
use porpoise_protocol::frame::PacketWriter;

use crate::compressed_stream::CompressedStream;
use crate::placement::Placement;
use crate::stream::Stream;
use crate::thread_pool;
use crate::thread_priority::thread_cpu_time;
use crate::traffic::TrafficCounters;

/// How often a statement that waits for its client checks whether it was killed.
const INTERRUPT_CHECK_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) struct SendBuffer {
    pub stream: Stream,
    /// Bytes to send before any other, but after those that wait in a layer of the stream.
    unsent: Vec<u8>,
    /// How many of them are sent.
    sent: usize,
    traffic: Arc<TrafficCounters>,
    /// How a statement that waits for its client learns that it was killed.
    control: Option<Arc<Control>>,
    placement: Placement,
    /// Another worker may wake its client more cheaply.
    should_migrate: bool,
}

/// How far sending has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendProgress {
    Complete,
    /// The rest waits for room.
    Partial,
}

impl SendBuffer {
    pub fn new(stream: Stream, traffic: Arc<TrafficCounters>) -> SendBuffer {
        SendBuffer {
            stream,
            unsent: Vec::new(),
            sent: 0,
            traffic,
            control: None,
            placement: Placement::default(),
            should_migrate: false,
        }
    }

    /// Counts in another worker's counters from now on.
    pub fn set_counters(&mut self, traffic: Arc<TrafficCounters>) {
        self.traffic = traffic;
    }

    pub fn counters(&self) -> &TrafficCounters {
        &self.traffic
    }

    /// Sends for a session from now on, or for none.
    pub fn set_control(&mut self, control: Option<Arc<Control>>) {
        self.control = control;
    }

    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty() || self.stream.has_pending()
    }

    /// Keeps a reply back, until its commit is durable or the other replies of its turn are there.
    pub fn hold(&mut self, writer: &mut PacketWriter) {
        if self.unsent.is_empty() {
            self.unsent = writer.bytes().to_vec();
        } else {
            self.unsent.extend_from_slice(writer.bytes());
        }
        writer.clear();
    }

    /// Puts compression over the stream, from which `received` has come already. What is unsent,
    /// and what the writer holds, goes before the first frame.
    pub fn start_compression(
        &mut self,
        algorithm: Algorithm,
        received: &[u8],
        writer: &mut PacketWriter,
    ) {
        self.hold(writer);
        let unsent = std::mem::take(&mut self.unsent).split_off(std::mem::take(&mut self.sent));
        let below = self.stream.take();
        let frames = CompressedStream::new(below, algorithm, received, unsent);
        self.stream = Stream::Compressed(Box::new(frames));
    }

    /// Drops what wasn't sent.
    pub fn discard(&mut self) {
        self.unsent = Vec::new();
        self.sent = 0;
    }

    /// Sends a reply as far as there is room.
    pub fn send(&mut self, writer: &mut PacketWriter) -> io::Result<SendProgress> {
        if self.has_unsent() {
            self.hold(writer);
            return self.flush();
        }
        let written = match self.write(writer.bytes()) {
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => {
                writer.clear();
                return Err(error);
            }
        };
        if written == writer.len() && !self.stream.has_pending() {
            writer.clear();
            return Ok(SendProgress::Complete);
        }
        self.unsent = writer.bytes()[written..].to_vec();
        writer.clear();
        Ok(SendProgress::Partial)
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

    /// A ring holds what the connection waits for: the next command, or room for what is unsent.
    pub fn is_ready(&self) -> bool {
        self.stream.is_ready(self.has_unsent())
    }

    /// Has a ring's client ring for what the connection waits for. True if it is there already.
    pub fn arm(&mut self) -> bool {
        self.stream.arm(self.has_unsent())
    }

    /// Sends what is unsent, as far as there is room.
    pub fn flush(&mut self) -> io::Result<SendProgress> {
        let unsent = std::mem::take(&mut self.unsent);
        while self.sent < unsent.len() {
            match self.write(&unsent[self.sent..]) {
                Ok(written) => self.sent += written,
                Err(error) => {
                    self.unsent = unsent;
                    if error.kind() == io::ErrorKind::WouldBlock {
                        return Ok(SendProgress::Partial);
                    }
                    return Err(error);
                }
            }
        }
        self.sent = 0;
        match self.stream.flush_pending() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(SendProgress::Partial),
            result => result.map(|()| SendProgress::Complete),
        }
    }

    /// Writes as much as fits, and measures now and then what it costs to wake the client.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = if !self.stream.is_ring() && self.placement.is_sample_due() {
            let from = thread_cpu_time();
            let written = self.stream.write(bytes)?;
            let cost = thread_cpu_time().saturating_sub(from);
            self.should_migrate |= self.placement.record_cost(cost);
            written
        } else {
            self.stream.write(bytes)?
        };
        self.count(written);
        Ok(written)
    }

    /// Its sends have turned out expensive: another worker may send more cheaply. True once.
    pub fn take_should_migrate(&mut self) -> bool {
        std::mem::take(&mut self.should_migrate)
    }

    /// Sends everything, waiting on this thread while the client is slow, `timeout` at most without
    /// any progress. If that fails, what is left is unsent: it may begin in the midst of a packet.
    pub fn send_all(&mut self, writer: &mut PacketWriter, timeout: Duration) -> io::Result<()> {
        let mut rest = writer.bytes();
        let result = self.send_all_bytes(&mut rest, timeout);
        self.unsent.extend_from_slice(rest);
        writer.clear();
        result
    }

    fn send_all_bytes(&mut self, bytes: &mut &[u8], timeout: Duration) -> io::Result<()> {
        let mut last_progress = Instant::now();
        loop {
            let before = (self.sent, self.unsent.len(), bytes.len());
            // What waits already goes first.
            let mut progress = match self.has_unsent() {
                true => self.flush()?,
                false => SendProgress::Complete,
            };
            while progress == SendProgress::Complete && !bytes.is_empty() {
                match self.write(bytes) {
                    Ok(written) => *bytes = &bytes[written..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        progress = SendProgress::Partial;
                    }
                    Err(error) => return Err(error),
                }
            }
            if bytes.is_empty() && !self.has_unsent() {
                return Ok(());
            }
            self.check_interrupt()?;
            if (self.sent, self.unsent.len(), bytes.len()) != before {
                last_progress = Instant::now();
            } else if last_progress.elapsed() >= timeout {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.wait(true, timeout)?;
        }
    }

    /// Waits for the stream on this thread, until it has `room`, or bytes to read, or it is time to
    /// check for an interrupt.
    pub fn wait(&mut self, room: bool, timeout: Duration) -> io::Result<()> {
        // Who is at the other end of a ring is mostly ready sooner than the loop is given away.
        if !self.stream.spin_for(room) {
            thread_pool::hand_over_loop();
            self.stream
                .wait_for(room, INTERRUPT_CHECK_INTERVAL.min(timeout))?;
        }
        Ok(())
    }

    /// Fails with [`io::ErrorKind::Interrupted`] if the session's statement was killed.
    pub fn check_interrupt(&self) -> io::Result<()> {
        match &self.control {
            Some(control) if control.interrupt.is_set() => Err(io::ErrorKind::Interrupted.into()),
            _ => Ok(()),
        }
    }
}
