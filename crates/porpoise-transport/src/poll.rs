//! Waiting for several streams at once, of any kinds.
//!
//! ```text
//!   rings alone    check all ── spin ── arm all ── poll their sockets
//!   sockets among  check the rings ──── arm them ─ poll all sockets     one is ready: the poll doesn't wait
//! ```
//!
//! Memory tells whether a ring has something, so while replies come fast the system isn't asked. If
//! no ring has anything, this does what a reader of one stream does: it [spins](crate::spin), has
//! the other ends [wake it](crate::ring), and sleeps. Memory doesn't tell of sockets: with one of
//! them in the set it doesn't spin.
//!
//! Of many rings each costs a system call at either end to be woken by. Where threads compute
//! beside, so that spinning isn't worth it, a poll of many rings naps a few times before it arms
//! them: a thread that wakes gets its core at once from one that computes.

use crate::Stream;
use crate::spin::Spin;
use crate::stream::timespec;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io;
use std::time::Duration;

/// To arm so many rings, and to be woken by them, takes longer than some naps.
const NAP_RINGS_MIN: usize = 32;

/// How long a nap takes, beside the system's own delay.
const NAP: Duration = Duration::from_micros(50);

/// So many naps find nothing: the rings are armed.
const NAPS_MAX: usize = 16;

/// Who waits for a shorter time doesn't nap.
const NAP_TIME_MAX: Duration = Duration::from_millis(5);

/// Waits for streams. A program that waits for the same ones again and again keeps it: it has
/// learned how long waits took lately.
#[derive(Debug, Default)]
pub struct Poll {
    spin: Spin,
    ready: Vec<usize>,
    /// Whether each polled socket had something, in their order.
    readable: Vec<bool>,
}

impl Poll {
    /// Waits until one of the streams that `stream_of` gives has something to read, or has ended.
    /// Returns the indices in `all` of those that have; none when `timeout` is over, and sometimes
    /// earlier. It skips an element for which `stream_of` gives `None`.
    pub fn wait<S>(
        &mut self,
        all: &mut [S],
        mut stream_of: impl FnMut(&mut S) -> Option<&mut dyn Stream>,
        timeout: Option<Duration>,
    ) -> io::Result<&[usize]> {
        self.ready.clear();
        let (mut rings, mut sockets) = (0, false);
        for (index, each) in all.iter_mut().enumerate() {
            match stream_of(each).map(|stream| stream.is_readable()) {
                None => {}
                Some(Some(true)) => self.ready.push(index),
                Some(Some(false)) => rings += 1,
                Some(None) => sockets = true,
            }
        }
        let has_ready = !self.ready.is_empty();
        if !sockets && (has_ready || rings == 0 || timeout == Some(Duration::ZERO)) {
            return Ok(&self.ready);
        }
        if has_ready {
            self.poll_sockets(all, &mut stream_of, Some(Duration::ZERO))?;
            return Ok(&self.ready);
        }
        if !sockets {
            let mut is_readable = |each: &mut S| {
                stream_of(each).is_some_and(|stream| stream.is_readable() == Some(true))
            };
            let mut is_any_readable = || all.iter_mut().any(&mut is_readable);
            let is_found = self.spin.wait(&mut is_any_readable)
                || (rings >= NAP_RINGS_MIN && timeout.is_none_or(|timeout| timeout > NAP_TIME_MAX))
                    && self.spin.is_yielding_dear()
                    && nap_until(&mut is_any_readable);
            if is_found {
                let indexed = all.iter_mut().enumerate();
                let ready = indexed.filter_map(|(index, each)| is_readable(each).then_some(index));
                self.ready.extend(ready);
                return Ok(&self.ready);
            }
        }
        self.poll_sockets(all, &mut stream_of, timeout)?;
        if !sockets {
            self.spin.woke();
        }
        Ok(&self.ready)
    }

    /// Polls sockets, waiting if nothing is ready yet; adds the streams that have something to
    /// `ready`.
    fn poll_sockets<S>(
        &mut self,
        all: &mut [S],
        stream_of: &mut impl FnMut(&mut S) -> Option<&mut dyn Stream>,
        mut timeout: Option<Duration>,
    ) -> io::Result<()> {
        let has_ready = !self.ready.is_empty();
        // If rings are ready, it is known of all rings whether they are.
        let is_polled = |stream: &dyn Stream| !has_ready || stream.is_readable().is_none();
        for each in &mut *all {
            if let Some(stream) = stream_of(each)
                && is_polled(stream)
                && stream.arm()
            {
                timeout = Some(Duration::ZERO);
            }
        }
        let result = {
            let streams = all.iter_mut().filter_map(&mut *stream_of);
            let mut polled: Vec<PollFd<'_>> = streams
                .map(|stream| &*stream)
                .filter(|stream| is_polled(*stream))
                .filter_map(|stream| stream.socket())
                .map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN))
                .collect();
            let result = poll(&mut polled, timeout.map(timespec).as_ref());
            self.readable.clear();
            let readable = polled.iter().map(|polled| !polled.revents().is_empty());
            self.readable.extend(readable);
            result
        };
        let mut readable = self.readable.iter();
        for (index, each) in all.iter_mut().enumerate() {
            if let Some(stream) = stream_of(each)
                && is_polled(stream)
            {
                let socket_readable = stream.socket().is_some() && readable.next() == Some(&true);
                if stream.disarm(socket_readable) {
                    self.ready.push(index);
                }
            }
        }
        match result {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Naps until `is_ready`; false if that isn't worth it any longer.
fn nap_until(is_ready: &mut impl FnMut() -> bool) -> bool {
    (0..NAPS_MAX).any(|_| {
        std::thread::sleep(NAP);
        is_ready()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ServerEnd, SharedMemory, UnixSocket};
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    const LONG: Option<Duration> = Some(Duration::from_secs(10));
    const SHORT: Option<Duration> = Some(Duration::from_millis(20));

    type LocalStream = Box<dyn Stream>;

    fn rings() -> (LocalStream, ServerEnd) {
        let (local, peer) = UnixStream::pair().unwrap();
        let peer = ServerEnd::offer(peer).unwrap();
        (Box::new(SharedMemory::accept(local, LONG).unwrap()), peer)
    }

    fn socket() -> (LocalStream, UnixStream) {
        let (local, peer) = UnixStream::pair().unwrap();
        (Box::new(UnixSocket::from(local)), peer)
    }

    fn wait(poll: &mut Poll, all: &mut [LocalStream], timeout: Option<Duration>) -> Vec<usize> {
        let ready = poll.wait(all, |local| Some(&mut **local), timeout).unwrap();
        ready.to_vec()
    }

    /// Waits until something is there, however often it wakes for nothing.
    fn wait_long(poll: &mut Poll, all: &mut [LocalStream]) -> Vec<usize> {
        let began = Instant::now();
        loop {
            let ready = wait(poll, all, LONG);
            if !ready.is_empty() {
                return ready;
            }
            assert!(began.elapsed() < LONG.unwrap());
        }
    }

    fn take(local: &mut LocalStream) -> usize {
        let mut bytes = [0; 100];
        let count = local.try_read(&mut bytes).unwrap();
        let error = local.try_read(&mut bytes).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        count
    }

    #[test]
    fn rings_that_have_something_are_reported_by_their_indices() {
        let (mut all, mut peer): (Vec<LocalStream>, Vec<ServerEnd>) =
            (0..3).map(|_| rings()).unzip();
        let mut poll = Poll::default();
        assert!(wait(&mut poll, &mut all, Some(Duration::ZERO)).is_empty());
        let began = Instant::now();
        assert!(wait(&mut poll, &mut all, SHORT).is_empty());
        assert!(began.elapsed() >= SHORT.unwrap());
        peer[0].write(b"a").unwrap();
        peer[2].write(b"bc").unwrap();
        assert_eq!(wait(&mut poll, &mut all, LONG), [0, 2]);
        assert_eq!((take(&mut all[0]), take(&mut all[2])), (1, 2));
        assert!(wait(&mut poll, &mut all, Some(Duration::ZERO)).is_empty());
    }

    #[test]
    fn a_sleeper_is_woken_by_rings_and_by_their_ends() {
        let (mut all, mut peer): (Vec<LocalStream>, Vec<ServerEnd>) =
            (0..3).map(|_| rings()).unzip();
        let mut poll = Poll::default();
        for turn in 0..20 {
            let index = turn % peer.len();
            let mut end = peer.swap_remove(index);
            let writer = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(2));
                end.write(b"late").unwrap();
                end
            });
            assert_eq!(wait_long(&mut poll, &mut all), [index]);
            assert_eq!(take(&mut all[index]), 4);
            peer.push(writer.join().unwrap());
            let last = peer.len() - 1;
            peer.swap(index, last);
        }
        drop(peer.remove(1));
        assert_eq!(wait_long(&mut poll, &mut all), [1]);
        assert_eq!(all[1].try_read(&mut [0; 10]).unwrap(), 0);
    }

    /// Where threads compute beside: nobody has to wake it meanwhile, and it sleeps in the end.
    #[test]
    fn many_rings_are_looked_at_between_naps() {
        let (mut all, mut peer): (Vec<LocalStream>, Vec<ServerEnd>) =
            (0..NAP_RINGS_MIN).map(|_| rings()).unzip();
        let mut looks = 0;
        assert!(!nap_until(&mut || {
            looks += 1;
            false
        }));
        assert_eq!(looks, NAPS_MAX);
        for (turn, delay) in [1, 100].into_iter().enumerate() {
            let mut poll = Poll {
                spin: Spin::beside_computing_threads(),
                ..Poll::default()
            };
            let mut end = peer.remove(turn);
            let writer = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(delay));
                end.write(b"late").unwrap();
                end
            });
            assert_eq!(wait_long(&mut poll, &mut all), [turn]);
            assert_eq!(take(&mut all[turn]), 4);
            peer.insert(turn, writer.join().unwrap());
        }
    }

    #[test]
    fn rings_and_sockets_are_waited_for_together() {
        let ((ring, mut ring_peer), (socket, mut socket_peer)) = (rings(), socket());
        let mut all = [ring, socket];
        let mut poll = Poll::default();
        assert!(wait(&mut poll, &mut all, SHORT).is_empty());
        socket_peer.write_all(b"one").unwrap();
        assert_eq!(wait(&mut poll, &mut all, LONG), [1]);
        ring_peer.write(b"two!").unwrap();
        assert_eq!(wait(&mut poll, &mut all, LONG), [0, 1]);
        assert_eq!((take(&mut all[0]), take(&mut all[1])), (4, 3));
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(10));
            ring_peer.write(b"late").unwrap();
            ring_peer
        });
        assert_eq!(wait_long(&mut poll, &mut all), [0]);
        let _ring_peer = writer.join().unwrap();
        assert_eq!(take(&mut all[0]), 4);
        drop(socket_peer);
        assert_eq!(wait_long(&mut poll, &mut all), [1]);
    }

    #[test]
    fn only_streams_that_are_given_are_reported() {
        let (mut all, mut peer): (Vec<LocalStream>, Vec<UnixStream>) =
            (0..3).map(|_| socket()).unzip();
        for peer in &mut peer {
            peer.write_all(b"x").unwrap();
        }
        let mut poll = Poll::default();
        let mut indexed = 0;
        let ready = poll.wait(
            &mut all,
            |local| {
                indexed += 1;
                (indexed % 3 == 2).then_some(&mut **local)
            },
            LONG,
        );
        assert_eq!(ready.unwrap(), [1]);
        let nobody = poll.wait(&mut all, |_| None, None);
        assert!(nobody.unwrap().is_empty());
    }
}
