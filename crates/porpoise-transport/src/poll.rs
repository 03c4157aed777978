//! Waiting for several streams at once, of any kinds.
//!
//! ```text
//!   rings alone    look at all ── spin ── arm all ── poll their sockets
//!   sockets among  look at the rings ──── arm them ─ poll all sockets      something seen: the poll doesn't wait
//! ```
//!
//! Rings are seen to have something without the system, so that while replies come fast nothing is asked of it. Who looks and
//! finds nothing does what a reader of one stream does: it [spins](crate::spin), has the other ends [ring](crate::ring), and
//! sleeps. Sockets don't show anything: with one of them in the set nobody looks for long.

use crate::spin::Spin;
use crate::{Stream, timespec};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io;
use std::time::Duration;

/// Waits for streams. Who waits for the same ones again and again keeps it: it knows how long that took lately.
#[derive(Debug, Default)]
pub struct Poll {
    spin: Spin,
    ready: Vec<usize>,
    /// Whether each stream's socket had something, in their order.
    heard: Vec<bool>,
}

impl Poll {
    /// Waits until one of the streams that `stream_of` tells has something to read, or has ended: the places in `all` of
    /// those that have. None when `patience` ran out, or for no reason.
    pub fn wait<S>(
        &mut self,
        all: &mut [S],
        mut stream_of: impl FnMut(&mut S) -> Option<&mut dyn Stream>,
        patience: Option<Duration>,
    ) -> io::Result<&[usize]> {
        self.ready.clear();
        let (mut rings, mut sockets) = (false, false);
        for (place, each) in all.iter_mut().enumerate() {
            match stream_of(each).map(|stream| stream.is_readable()) {
                None => {}
                Some(Some(true)) => self.ready.push(place),
                Some(Some(false)) => rings = true,
                Some(None) => sockets = true,
            }
        }
        let seen = !self.ready.is_empty();
        if !sockets && (seen || !rings || patience == Some(Duration::ZERO)) {
            return Ok(&self.ready);
        }
        if seen {
            self.ask(all, &mut stream_of, Some(Duration::ZERO))?;
            return Ok(&self.ready);
        }
        if !sockets {
            let mut is_seen = |each: &mut S| {
                stream_of(each).is_some_and(|stream| stream.is_readable() == Some(true))
            };
            if self.spin.wait(|| all.iter_mut().any(&mut is_seen)) {
                let places = all.iter_mut().enumerate();
                let seen = places.filter_map(|(place, each)| is_seen(each).then_some(place));
                self.ready.extend(seen);
                return Ok(&self.ready);
            }
        }
        self.ask(all, &mut stream_of, patience)?;
        if !sockets {
            self.spin.woke();
        }
        Ok(&self.ready)
    }

    /// Asks the system, and has it wait if nothing is there; adds to what is ready what wasn't seen before.
    fn ask<S>(
        &mut self,
        all: &mut [S],
        stream_of: &mut impl FnMut(&mut S) -> Option<&mut dyn Stream>,
        mut patience: Option<Duration>,
    ) -> io::Result<()> {
        let seen = !self.ready.is_empty();
        // Of the others all that can be known is known.
        let asks = |stream: &dyn Stream| !seen || stream.is_readable().is_none();
        for each in &mut *all {
            if let Some(stream) = stream_of(each)
                && asks(stream)
                && stream.arm()
            {
                patience = Some(Duration::ZERO);
            }
        }
        let polled = {
            let streams = all.iter_mut().filter_map(&mut *stream_of);
            let mut polled: Vec<PollFd<'_>> = streams
                .map(|stream| &*stream)
                .filter(|stream| asks(*stream))
                .filter_map(|stream| stream.socket())
                .map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN))
                .collect();
            let polled_all = poll(&mut polled, patience.map(timespec).as_ref());
            self.heard.clear();
            let heard = polled.iter().map(|polled| !polled.revents().is_empty());
            self.heard.extend(heard);
            polled_all
        };
        let mut heard = self.heard.iter();
        for (place, each) in all.iter_mut().enumerate() {
            if let Some(stream) = stream_of(each)
                && asks(stream)
            {
                let is_heard = stream.socket().is_some() && heard.next() == Some(&true);
                if stream.disarm(is_heard) {
                    self.ready.push(place);
                }
            }
        }
        match polled {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
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

    type Near = Box<dyn Stream>;

    fn rings() -> (Near, ServerEnd) {
        let (near, far) = UnixStream::pair().unwrap();
        let far = ServerEnd::offer(far).unwrap();
        (Box::new(SharedMemory::accept(near, LONG).unwrap()), far)
    }

    fn socket() -> (Near, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        (Box::new(UnixSocket::from(near)), far)
    }

    fn wait(poll: &mut Poll, all: &mut [Near], patience: Option<Duration>) -> Vec<usize> {
        let ready = poll.wait(all, |near| Some(&mut **near), patience).unwrap();
        ready.to_vec()
    }

    /// Waits until something is there, however often it wakes for nothing.
    fn wait_long(poll: &mut Poll, all: &mut [Near]) -> Vec<usize> {
        let began = Instant::now();
        loop {
            let ready = wait(poll, all, LONG);
            if !ready.is_empty() {
                return ready;
            }
            assert!(began.elapsed() < LONG.unwrap());
        }
    }

    fn take(near: &mut Near) -> usize {
        let mut bytes = [0; 100];
        let count = near.read_now(&mut bytes).unwrap();
        let error = near.read_now(&mut bytes).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        count
    }

    #[test]
    fn rings_that_have_something_are_told_by_their_places() {
        let (mut all, mut far): (Vec<Near>, Vec<ServerEnd>) = (0..3).map(|_| rings()).unzip();
        let mut poll = Poll::default();
        assert!(wait(&mut poll, &mut all, Some(Duration::ZERO)).is_empty());
        let began = Instant::now();
        assert!(wait(&mut poll, &mut all, SHORT).is_empty());
        assert!(began.elapsed() >= SHORT.unwrap());
        far[0].write(b"a").unwrap();
        far[2].write(b"bc").unwrap();
        assert_eq!(wait(&mut poll, &mut all, LONG), [0, 2]);
        assert_eq!((take(&mut all[0]), take(&mut all[2])), (1, 2));
        assert!(wait(&mut poll, &mut all, Some(Duration::ZERO)).is_empty());
    }

    #[test]
    fn who_sleeps_is_woken_by_rings_and_by_their_ends() {
        let (mut all, mut far): (Vec<Near>, Vec<ServerEnd>) = (0..3).map(|_| rings()).unzip();
        let mut poll = Poll::default();
        for turn in 0..20 {
            let place = turn % far.len();
            let mut end = far.swap_remove(place);
            let writer = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(2));
                end.write(b"late").unwrap();
                end
            });
            assert_eq!(wait_long(&mut poll, &mut all), [place]);
            assert_eq!(take(&mut all[place]), 4);
            far.push(writer.join().unwrap());
            let last = far.len() - 1;
            far.swap(place, last);
        }
        drop(far.remove(1));
        assert_eq!(wait_long(&mut poll, &mut all), [1]);
        assert_eq!(all[1].read_now(&mut [0; 10]).unwrap(), 0);
    }

    #[test]
    fn rings_and_sockets_are_waited_for_together() {
        let ((ring, mut ring_far), (socket, mut socket_far)) = (rings(), socket());
        let mut all = [ring, socket];
        let mut poll = Poll::default();
        assert!(wait(&mut poll, &mut all, SHORT).is_empty());
        socket_far.write_all(b"one").unwrap();
        assert_eq!(wait(&mut poll, &mut all, LONG), [1]);
        ring_far.write(b"two!").unwrap();
        assert_eq!(wait(&mut poll, &mut all, LONG), [0, 1]);
        assert_eq!((take(&mut all[0]), take(&mut all[1])), (4, 3));
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(10));
            ring_far.write(b"late").unwrap();
            ring_far
        });
        assert_eq!(wait_long(&mut poll, &mut all), [0]);
        let _ring_far = writer.join().unwrap();
        assert_eq!(take(&mut all[0]), 4);
        drop(socket_far);
        assert_eq!(wait_long(&mut poll, &mut all), [1]);
    }

    #[test]
    fn only_those_that_are_asked_for_are_told() {
        let (mut all, mut far): (Vec<Near>, Vec<UnixStream>) = (0..3).map(|_| socket()).unzip();
        for far in &mut far {
            far.write_all(b"x").unwrap();
        }
        let mut poll = Poll::default();
        let mut places = 0;
        let ready = poll.wait(
            &mut all,
            |near| {
                places += 1;
                (places % 3 == 2).then_some(&mut **near)
            },
            LONG,
        );
        assert_eq!(ready.unwrap(), [1]);
        let nobody = poll.wait(&mut all, |_| None, None);
        assert!(nobody.unwrap().is_empty());
    }
}
