//! A pair of byte rings between two ends that don't trust each other.
//!
//! Each end owns one [`ControlBlock`]: four words on a cache line of its own, which only it writes,
//! but for `interest`, which the other end clears when it wakes it. Bytes go through two rings, one
//! a direction.
//!
//! ```text
//!            ┌ ControlBlock of A ───────┐            ┌ ControlBlock of B ───────┐
//!   end A    │ sent   origin   taken    │            │ sent   origin   taken    │    end B
//!            │ interest                 │            │ interest                 │
//!            └──────────────────────────┘            └──────────────────────────┘
//!              A.sent ─►  ░░░░░████████░░░░░░░░░  ring A to B  ◄─ B.taken
//!              A.taken ─► ░░░░░░░░░░░░░░░░░░░░░░  ring B to A  ◄─ B.sent
//! ```
//!
//! **Cursors only grow.** `sent` counts the bytes ever put into a ring, `taken` those taken out of
//! it; the difference is what lies in it. Byte number n lies at `(n - origin) mod capacity`. An end
//! that writes into an empty ring moves its `origin`, so that short messages always go through the
//! same few cache lines, and an idle connection has touched one page.
//!
//! **Neither end trusts the other.** Each end counts for itself and reads the other's cursor only
//! to learn the difference, which must lie between 0 and the capacity: anything else is
//! [`CorruptRing`], and the connection is over. Positions are taken modulo the capacity, so that no
//! cursor, whatever its value, points outside the ring.
//!
//! **An end announces that it sleeps.** An end that finds nothing to do [`arm`](RingEnd::arm)s: it
//! stores in `interest` what it waits for, and checks once more. An end that publishes a cursor
//! loads the other's `interest` afterwards, and [wakes](Wake) it if it waits for that. Between the
//! store and the load each has a sequentially consistent fence, so at least one of the two sees
//! what the other did: no wake-up is lost. While both are busy neither makes a system call.
//!
//! ```text
//!   sleeper:  interest = READABLE ── fence ── load sent: nothing ─────── sleep
//!   sender:   sent += n           ── fence ── load interest: READABLE ── interest = 0, wake
//! ```
//!
//! `taken` isn't published for every read but together with the next reply, when a quarter of the
//! ring was taken or a long message to its end, and before sleeping: it shares its cache line with
//! `sent`, so that a request and its reply move one line each way.

use std::sync::atomic::Ordering;

/// A 64-bit word in shared memory.
pub trait Word64 {
    /// Loads its value.
    fn load(&self, order: Ordering) -> u64;
    /// Stores a value.
    fn store(&self, value: u64, order: Ordering);
}

/// A 32-bit word in shared memory.
pub trait Word32 {
    /// Loads its value.
    fn load(&self, order: Ordering) -> u32;
    /// Stores a value.
    fn store(&self, value: u32, order: Ordering);
}

/// Implements the words by the atomics of a library, which have methods of the same names.
macro_rules! impl_words {
    ($word64:ty, $word32:ty) => {
        impl $crate::ring::Word64 for $word64 {
            #[inline]
            fn load(&self, order: Ordering) -> u64 {
                <$word64>::load(self, order)
            }

            #[inline]
            fn store(&self, value: u64, order: Ordering) {
                <$word64>::store(self, value, order);
            }
        }

        impl $crate::ring::Word32 for $word32 {
            #[inline]
            fn load(&self, order: Ordering) -> u32 {
                <$word32>::load(self, order)
            }

            #[inline]
            fn store(&self, value: u32, order: Ordering) {
                <$word32>::store(self, value, order);
            }
        }
    };
}
pub(crate) use impl_words;

/// The atomics that a ring is made of: the processor's, or a model checker's.
pub trait Atomics {
    /// A 64-bit word.
    type Word64: Word64;
    /// A 32-bit word.
    type Word32: Word32;
    /// A sequentially consistent fence.
    fn fence();
}

/// The words that one end publishes to the other.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct ControlBlock<A: Atomics> {
    /// Bytes it has put into its ring, ever.
    pub sent: A::Word64,
    /// The byte number that lies at its ring's beginning.
    pub origin: A::Word64,
    /// Bytes it has taken out of the other's ring, ever.
    pub taken: A::Word64,
    /// What it waits for: [`RingInterest`], or 0.
    pub interest: A::Word32,
}

/// The memory that both ends share, as one of them sees it. An index plus a length never exceeds
/// the capacity.
pub trait RingMemory {
    /// The kind of its words.
    type Atomics: Atomics;
    /// This end's words.
    fn own(&self) -> &ControlBlock<Self::Atomics>;
    /// The other end's words.
    fn peers(&self) -> &ControlBlock<Self::Atomics>;
    /// Bytes in the ring that this end writes; a power of two.
    fn capacity_out(&self) -> usize;
    /// Bytes in the ring that the other end writes; a power of two.
    fn capacity_in(&self) -> usize;
    /// Writes `bytes` at `index` of this end's ring.
    fn put(&mut self, index: usize, bytes: &[u8]);
    /// Reads bytes from `index` of the other end's ring.
    fn get(&self, index: usize, bytes: &mut [u8]);
}

/// How an end wakes the other one. It must be safe to wake an end that isn't asleep.
pub trait Wake {
    /// Wakes the other end. A failure isn't reported: an end that is gone is noticed by other
    /// means.
    fn wake(&self);
}

/// The other end has stored cursors that are impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorruptRing;

impl std::fmt::Display for CorruptRing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the other end of the shared memory broke its rules")
    }
}

impl std::error::Error for CorruptRing {}

impl From<CorruptRing> for std::io::Error {
    fn from(broken: CorruptRing) -> Self {
        std::io::Error::new(std::io::ErrorKind::InvalidData, broken)
    }
}

/// Who has taken so many bytes, and all there were, says so at once: the other end may begin at the
/// beginning of its ring again, or give memory back, while this one is at something else.
const LONG_MESSAGE_BYTES: u64 = 32 << 10;

/// What an end waits for: a set of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingInterest(u32);

impl RingInterest {
    /// Bytes to read.
    pub const READABLE: RingInterest = RingInterest(1);
    /// Room to write: half of the ring.
    pub const WRITABLE: RingInterest = RingInterest(2);
    /// Bytes or room, whichever comes first.
    pub const EITHER: RingInterest = RingInterest(3);

    fn includes(self, other: RingInterest) -> bool {
        self.0 & other.0 != 0
    }
}

/// One end of the pair of rings. It never blocks.
#[derive(Debug)]
pub struct RingEnd<M: RingMemory, B: Wake> {
    memory: M,
    waker: B,
    sent: u64,
    origin: u64,
    taken: u64,
    /// As much of `taken` as the other end knows.
    published_taken: u64,
    wakeups: u64,
}

impl<M: RingMemory, B: Wake> RingEnd<M, B> {
    /// An end of new rings, whose words are all 0.
    pub fn new(memory: M, waker: B) -> Self {
        debug_assert!(memory.capacity_in().is_power_of_two());
        debug_assert!(memory.capacity_out().is_power_of_two());
        Self {
            memory,
            waker,
            sent: 0,
            origin: 0,
            taken: 0,
            published_taken: 0,
            wakeups: 0,
        }
    }

    /// What it wakes the other end with.
    pub fn waker(&self) -> &B {
        &self.waker
    }

    /// The memory it lies in.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// How far from its beginning bytes have lain in this end's ring since it was empty last: more
    /// than the capacity if they have gone round.
    pub fn extent(&self) -> u64 {
        self.sent.wrapping_sub(self.origin)
    }

    /// How often it woke the other end since the last call.
    pub fn take_wakeups(&mut self) -> u64 {
        std::mem::take(&mut self.wakeups)
    }

    /// The number of bytes there are to read.
    pub fn readable(&self) -> Result<usize, CorruptRing> {
        let sent = self.memory.peers().sent.load(Ordering::Acquire);
        check_difference(sent.wrapping_sub(self.taken), self.memory.capacity_in())
    }

    /// The number of bytes there is room for.
    pub fn writable(&self) -> Result<usize, CorruptRing> {
        let capacity = self.memory.capacity_out();
        let taken = self.memory.peers().taken.load(Ordering::Acquire);
        Ok(capacity - check_difference(self.sent.wrapping_sub(taken), capacity)?)
    }

    /// Whether one of `interest` is there. True for a corrupt ring: a read or a write tells.
    pub fn is_ready(&self, interest: RingInterest) -> bool {
        (interest.includes(RingInterest::READABLE) && self.readable() != Ok(0))
            || (interest.includes(RingInterest::WRITABLE)
                && self
                    .writable()
                    .map_or(true, |room| room >= self.memory.capacity_out() / 2))
    }

    /// Takes bytes: as many as there are, up to the length of `into`; 0 if there are none.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, CorruptRing> {
        let capacity = self.memory.capacity_in();
        let readable = self.readable()?;
        let count = readable.min(into.len());
        if count == 0 {
            return Ok(0);
        }
        // As new as the bytes: the other end moves it only while everything is taken.
        let origin = self.memory.peers().origin.load(Ordering::Relaxed);
        let index = position(self.taken, origin, capacity);
        let (first, rest) = into[..count].split_at_mut(count.min(capacity - index));
        self.memory.get(index, first);
        if !rest.is_empty() {
            self.memory.get(0, rest);
        }
        self.taken = self.taken.wrapping_add(count as u64);
        let ends_long_message =
            count == readable && self.taken.wrapping_sub(origin) >= LONG_MESSAGE_BYTES;
        if ends_long_message
            || self.taken.wrapping_sub(self.published_taken) >= (capacity / 4) as u64
        {
            self.publish_taken();
        }
        Ok(count)
    }

    /// Puts bytes: as many as there is room for; 0 if there is none.
    pub fn write(&mut self, from: &[u8]) -> Result<usize, CorruptRing> {
        let capacity = self.memory.capacity_out();
        let room = self.writable()?;
        let count = room.min(from.len());
        if count == 0 {
            return Ok(0);
        }
        if room == capacity {
            self.origin = self.sent;
            self.memory
                .own()
                .origin
                .store(self.origin, Ordering::Relaxed);
        }
        let index = position(self.sent, self.origin, capacity);
        let (first, rest) = from[..count].split_at(count.min(capacity - index));
        self.memory.put(index, first);
        if !rest.is_empty() {
            self.memory.put(0, rest);
        }
        self.sent = self.sent.wrapping_add(count as u64);
        let own = self.memory.own();
        let mut published = RingInterest::READABLE;
        if self.taken != self.published_taken {
            self.published_taken = self.taken;
            own.taken.store(self.taken, Ordering::Release);
            published = RingInterest::EITHER;
        }
        own.sent.store(self.sent, Ordering::Release);
        self.wake_peer(published);
        Ok(count)
    }

    /// Announces that this end is about to sleep until one of `interest` is there. True if it is
    /// there already: then nobody wakes this end for it.
    pub fn arm(&mut self, interest: RingInterest) -> bool {
        self.publish_taken();
        self.memory
            .own()
            .interest
            .store(interest.0, Ordering::Relaxed);
        M::Atomics::fence();
        let ready = self.is_ready(interest);
        if ready {
            self.disarm();
        }
        ready
    }

    /// Announces that this end is awake. It may be woken once more.
    pub fn disarm(&mut self) {
        self.memory.own().interest.store(0, Ordering::Relaxed);
    }

    fn publish_taken(&mut self) {
        if self.taken != self.published_taken {
            self.published_taken = self.taken;
            self.memory.own().taken.store(self.taken, Ordering::Release);
            self.wake_peer(RingInterest::WRITABLE);
        }
    }

    /// After publishing: wakes the other end if it sleeps for what was published.
    fn wake_peer(&mut self, published: RingInterest) {
        M::Atomics::fence();
        let peers = self.memory.peers();
        let interest = RingInterest(peers.interest.load(Ordering::Relaxed));
        let wakes = (published.includes(RingInterest::READABLE)
            && interest.includes(RingInterest::READABLE))
            || (published.includes(RingInterest::WRITABLE)
                && interest.includes(RingInterest::WRITABLE)
                && self.has_freed_half());
        if wakes {
            // It may have woken and armed again meanwhile: then it is woken for nothing, but it is
            // woken.
            peers.interest.store(0, Ordering::Relaxed);
            self.wakeups += 1;
            self.waker.wake();
        }
    }

    /// Half of the other end's ring is free, as far as it knows: worth waking it for.
    fn has_freed_half(&self) -> bool {
        let sent = self.memory.peers().sent.load(Ordering::Relaxed);
        sent.wrapping_sub(self.published_taken) <= (self.memory.capacity_in() / 2) as u64
    }
}

fn check_difference(difference: u64, capacity: usize) -> Result<usize, CorruptRing> {
    if difference <= capacity as u64 {
        Ok(difference as usize)
    } else {
        Err(CorruptRing)
    }
}

fn position(cursor: u64, origin: u64, capacity: usize) -> usize {
    (cursor.wrapping_sub(origin) as usize) & (capacity - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{MappedRings, NativeAtomics, RingSizes, Role};
    use crate::sys;
    use proptest::prelude::*;
    use std::cell::Cell;
    use std::collections::VecDeque;
    use std::rc::Rc;

    const DEFAULT_SIZES: RingSizes = RingSizes {
        to_server: 4096,
        to_client: 8192,
    };

    #[derive(Default, Clone)]
    struct CountingWaker(Rc<Cell<u32>>);

    impl Wake for CountingWaker {
        fn wake(&self) {
            self.0.set(self.0.get() + 1);
        }
    }

    type TestRingEnd = RingEnd<MappedRings, CountingWaker>;

    fn pair() -> (TestRingEnd, TestRingEnd) {
        let [client, server] = if cfg!(miri) {
            MappedRings::pair_in_heap(DEFAULT_SIZES)
        } else {
            let memory = sys::create_memory(DEFAULT_SIZES.length().unwrap()).unwrap();
            [Role::Client, Role::Server]
                .map(|role| MappedRings::new(&memory, DEFAULT_SIZES, role).unwrap())
        };
        (
            RingEnd::new(client, CountingWaker::default()),
            RingEnd::new(server, CountingWaker::default()),
        )
    }

    struct SilentWaker;

    impl Wake for SilentWaker {
        fn wake(&self) {}
    }

    /// Under miri, which reports a byte that one thread writes while the other reads it.
    #[test]
    fn two_threads_pass_bytes_without_a_race() {
        let turns = if cfg!(miri) { 100 } else { 500 };
        let [client, server] = MappedRings::pair_in_heap(DEFAULT_SIZES);
        let (mut client, mut server) = (
            RingEnd::new(client, SilentWaker),
            RingEnd::new(server, SilentWaker),
        );
        let answering = std::thread::spawn(move || {
            let mut got = 0;
            while got < turns * 300 {
                let mut bytes = [0; 500];
                let count = server.read(&mut bytes).unwrap();
                got += count;
                let mut rest = &bytes[..count];
                while !rest.is_empty() {
                    let written = server.write(rest).unwrap();
                    rest = &rest[written..];
                    std::thread::yield_now();
                }
            }
        });
        for turn in 0..turns {
            assert_eq!(client.write(&[turn as u8; 300]).unwrap(), 300);
            let mut reply = [0; 300];
            let mut got = 0;
            while got < reply.len() {
                got += client.read(&mut reply[got..]).unwrap();
                std::thread::yield_now();
            }
            assert_eq!(reply, [turn as u8; 300]);
        }
        answering.join().unwrap();
    }

    /// Miri takes a thousand times as long: fewer steps there, which still go round the rings.
    const STEPS: usize = if cfg!(miri) { 20 } else { 200 };
    const CASES: u32 = if cfg!(miri) { 4 } else { 256 };

    #[derive(Clone, Debug)]
    enum Step {
        Write(usize),
        Read(usize),
        Arm(u32),
        Disarm,
    }

    fn step() -> impl Strategy<Value = (bool, Step)> {
        let step = prop_oneof![
            4 => (0usize..10_000).prop_map(Step::Write),
            4 => (0usize..10_000).prop_map(Step::Read),
            1 => (0u32..4).prop_map(Step::Arm),
            1 => Just(Step::Disarm),
        ];
        (any::<bool>(), step)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]
        #[test]
        fn bytes_come_out_as_they_went_in(steps in prop::collection::vec(step(), 1..STEPS)) {
            let (mut client, mut server) = pair();
            let (mut up, mut down) = (VecDeque::new(), VecDeque::new());
            let mut next = 0u8;
            for (by_client, step) in steps {
                let (end, out, into, room) = if by_client {
                    (&mut client, &mut up, &mut down, DEFAULT_SIZES.to_server)
                } else {
                    (&mut server, &mut down, &mut up, DEFAULT_SIZES.to_client)
                };
                match step {
                    Step::Write(length) => {
                        let bytes: Vec<u8> = (0..length).map(|_| { next = next.wrapping_add(1); next }).collect();
                        let count = end.write(&bytes).unwrap();
                        prop_assert!(count <= length.min(room - out.len()));
                        out.extend(&bytes[..count]);
                    }
                    Step::Read(length) => {
                        let mut bytes = vec![0; length];
                        let count = end.read(&mut bytes).unwrap();
                        prop_assert_eq!(count, length.min(into.len()));
                        prop_assert!(bytes[..count].iter().copied().eq(into.drain(..count)));
                    }
                    Step::Arm(interest) => {
                        let ready = end.arm(RingInterest(interest));
                        prop_assert!(!ready || interest != 0);
                    }
                    Step::Disarm => end.disarm(),
                }
                prop_assert_eq!(client.readable().unwrap(), down.len());
                prop_assert_eq!(server.readable().unwrap(), up.len());
            }
        }

        /// Whatever a peer writes into its words and into the rings: an end answers with bytes or
        /// with [`CorruptRing`], and never moves more bytes than its rings hold.
        #[test]
        fn a_peer_that_writes_anything_gets_bytes_or_an_error(
            words in prop::collection::vec((0usize..5, prop_oneof![any::<u64>(), 0u64..20_000]), 1..STEPS / 2),
            lengths in prop::collection::vec(0usize..20_000, 1..STEPS / 2),
        ) {
            let (mut hostile, mut server) = pair();
            for ((word, value), length) in words.into_iter().zip(lengths) {
                let peers = hostile.memory().own();
                match word {
                    0 => peers.sent.store(value, Ordering::Relaxed),
                    1 => peers.taken.store(value, Ordering::Relaxed),
                    2 => peers.origin.store(value, Ordering::Relaxed),
                    3 => peers.interest.store(value as u32, Ordering::Relaxed),
                    // The server's own words are in its reach, too.
                    _ => {
                        let own = hostile.memory().peers();
                        own.sent.store(value, Ordering::Relaxed);
                        own.taken.store(value, Ordering::Relaxed);
                        own.interest.store(value as u32, Ordering::Relaxed);
                    }
                }
                let _ = hostile.write(&[7; 100]);
                let mut bytes = vec![0; length];
                if let Ok(count) = server.read(&mut bytes) {
                    prop_assert!(count <= length.min(DEFAULT_SIZES.to_server));
                }
                if let Ok(count) = server.write(&bytes) {
                    prop_assert!(count <= length.min(DEFAULT_SIZES.to_client));
                }
                server.arm(RingInterest(value as u32 & 3));
                server.is_ready(RingInterest::EITHER);
                prop_assert!(server.take_wakeups() <= 4);
            }
        }
    }

    #[test]
    fn a_cursor_beyond_the_ring_is_an_error() {
        let (client, mut server) = pair();
        let peers = client.memory().own();
        peers
            .sent
            .store(DEFAULT_SIZES.to_server as u64 + 1, Ordering::Relaxed);
        assert_eq!(server.read(&mut [0; 10]), Err(CorruptRing));
        assert!(server.is_ready(RingInterest::READABLE));
        peers.taken.store(1, Ordering::Relaxed);
        assert_eq!(server.write(&[0; 10]), Err(CorruptRing));
        assert!(server.is_ready(RingInterest::WRITABLE));
    }

    #[test]
    fn only_a_sleeper_is_woken_and_only_for_what_it_waits_for() {
        let (mut client, mut server) = pair();
        let wakeups = client.waker().0.clone();
        client.write(&[1; 100]).unwrap();
        assert_eq!(wakeups.get(), 0, "the server is awake");
        assert!(
            server.arm(RingInterest::READABLE),
            "there are bytes already"
        );
        server.read(&mut [0; 200]).unwrap();
        assert!(!server.arm(RingInterest::READABLE));
        client.write(&[1; 100]).unwrap();
        assert_eq!(wakeups.get(), 1);
        client.write(&[1; 100]).unwrap();
        assert_eq!(wakeups.get(), 1, "once is enough");
        assert_eq!(client.take_wakeups(), 1);
    }

    #[test]
    fn a_writer_is_woken_when_half_of_the_ring_is_free() {
        let (mut client, mut server) = pair();
        assert_eq!(client.write(&[1; 5000]).unwrap(), 4096);
        assert_eq!(client.write(&[1; 1]).unwrap(), 0);
        assert!(!client.arm(RingInterest::WRITABLE));
        let wakeups = server.waker().0.clone();
        server.read(&mut [0; 1500]).unwrap();
        assert_eq!(wakeups.get(), 0);
        server.read(&mut [0; 1500]).unwrap();
        assert_eq!(wakeups.get(), 1);
    }

    #[test]
    fn short_messages_keep_to_the_beginning_of_the_ring() {
        let (mut client, mut server) = pair();
        for turn in 0..1000u32 {
            client.write(&[turn as u8; 100]).unwrap();
            server.read(&mut [0; 100]).unwrap();
            server.write(&[turn as u8; 200]).unwrap();
            client.read(&mut [0; 200]).unwrap();
        }
        let mut bytes = [0u8; 4096];
        server.memory().get(0, &mut bytes);
        assert!(bytes[..100].iter().all(|&byte| byte == 231));
        assert!(bytes[100..].iter().all(|&byte| byte == 0));
    }

    /// The processor's words are the default; a model checker's are used below.
    #[test]
    fn a_side_has_a_cache_line_of_its_own() {
        assert_eq!(size_of::<ControlBlock<NativeAtomics>>(), 128);
    }
}

/// Every interleaving of two ends that sleep and wake each other, by the model checker.
#[cfg(test)]
mod interleavings {
    use super::*;
    use loom::sync::atomic::{AtomicU32, AtomicU64, fence};
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    #[derive(Debug, Default)]
    struct ModelAtomics;

    impl Atomics for ModelAtomics {
        type Word64 = AtomicU64;
        type Word32 = AtomicU32;

        fn fence() {
            fence(Ordering::SeqCst);
        }
    }

    impl_words!(AtomicU64, AtomicU32);

    const CAPACITY: usize = 4;

    #[derive(Default)]
    struct Shared {
        controls: [ControlBlock<ModelAtomics>; 2],
        /// A byte a cell: touching one that the other end may touch is a race that the checker
        /// reports.
        rings: [[loom::cell::UnsafeCell<u8>; CAPACITY]; 2],
    }

    // SAFETY: the checker watches every access to the cells.
    #[allow(unsafe_code)]
    unsafe impl Sync for Shared {}

    struct View(Arc<Shared>, usize);

    #[allow(unsafe_code)]
    impl RingMemory for View {
        type Atomics = ModelAtomics;

        fn own(&self) -> &ControlBlock<ModelAtomics> {
            &self.0.controls[self.1]
        }

        fn peers(&self) -> &ControlBlock<ModelAtomics> {
            &self.0.controls[1 - self.1]
        }

        fn capacity_out(&self) -> usize {
            CAPACITY
        }

        fn capacity_in(&self) -> usize {
            CAPACITY
        }

        fn put(&mut self, index: usize, bytes: &[u8]) {
            for (cell, &byte) in self.0.rings[self.1][index..].iter().zip(bytes) {
                // SAFETY: the checker would report that it isn't.
                cell.with_mut(|cell| unsafe { *cell = byte });
            }
        }

        fn get(&self, index: usize, bytes: &mut [u8]) {
            for (cell, byte) in self.0.rings[1 - self.1][index..].iter().zip(bytes) {
                // SAFETY: the checker would report that it isn't.
                cell.with(|cell| *byte = unsafe { *cell });
            }
        }
    }

    /// Stays woken until an end waits for it.
    #[derive(Default)]
    struct ModelWaker(Mutex<bool>, Condvar);

    impl ModelWaker {
        fn wait(&self) {
            let mut is_woken = self.0.lock().unwrap();
            while !*is_woken {
                is_woken = self.1.wait(is_woken).unwrap();
            }
            *is_woken = false;
        }
    }

    impl Wake for Arc<ModelWaker> {
        fn wake(&self) {
            *self.0.lock().unwrap() = true;
            self.1.notify_one();
        }
    }

    type ModelRingEnd = RingEnd<View, Arc<ModelWaker>>;

    fn pair() -> [(ModelRingEnd, Arc<ModelWaker>); 2] {
        let shared = Arc::new(Shared::default());
        let wakers = [
            Arc::new(ModelWaker::default()),
            Arc::new(ModelWaker::default()),
        ];
        [0, 1].map(|me| {
            let end = RingEnd::new(View(shared.clone(), me), wakers[1 - me].clone());
            (end, wakers[me].clone())
        })
    }

    fn read(end: &mut ModelRingEnd, waker: &ModelWaker, into: &mut [u8]) -> usize {
        loop {
            match end.read(into).unwrap() {
                0 if end.arm(RingInterest::READABLE) => {}
                // A wake-up that is lost leaves it here for ever, which the checker reports as a
                // deadlock.
                0 => {
                    waker.wait();
                    end.disarm();
                }
                count => return count,
            }
        }
    }

    fn write_all(end: &mut ModelRingEnd, waker: &ModelWaker, mut from: &[u8]) {
        while !from.is_empty() {
            match end.write(from).unwrap() {
                0 if end.arm(RingInterest::WRITABLE) => {}
                0 => {
                    waker.wait();
                    end.disarm();
                }
                count => from = &from[count..],
            }
        }
    }

    fn check(test: impl Fn() + Sync + Send + 'static) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(test);
    }

    #[test]
    fn a_request_and_its_reply_are_never_slept_through() {
        check(|| {
            let [(mut client, client_waker), (mut server, server_waker)] = pair();
            let serving = thread::spawn(move || {
                for _ in 0..2 {
                    let mut request = [0];
                    read(&mut server, &server_waker, &mut request);
                    write_all(&mut server, &server_waker, &[request[0] + 100]);
                }
            });
            for turn in 0..2 {
                write_all(&mut client, &client_waker, &[turn]);
                let mut reply = [0];
                read(&mut client, &client_waker, &mut reply);
                assert_eq!(reply, [turn + 100]);
            }
            serving.join().unwrap();
        });
    }

    #[test]
    fn a_message_longer_than_the_ring_goes_through_with_both_ends_sleeping_for_each_other() {
        check(|| {
            let [(mut writer, writer_waker), (mut reader, reader_waker)] = pair();
            let writing = thread::spawn(move || {
                write_all(&mut writer, &writer_waker, &[1, 2, 3, 4, 5, 6, 7]);
            });
            let mut got = Vec::new();
            while got.len() < 7 {
                let mut bytes = [0; 3];
                let count = read(&mut reader, &reader_waker, &mut bytes);
                got.extend_from_slice(&bytes[..count]);
            }
            assert_eq!(got, [1, 2, 3, 4, 5, 6, 7]);
            writing.join().unwrap();
        });
    }
}
