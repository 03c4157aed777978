//! A pair of byte rings between two ends that don't trust each other.
//!
//! Each end owns one [`Side`]: four words on a cache line of its own, which it alone writes, but for `wants`, which
//! the other end clears when it rings. Bytes go through two rings, one a direction.
//!
//! ```text
//!            ┌ Side of A ───────────────┐            ┌ Side of B ───────────────┐
//!   end A    │ sent   origin   taken    │            │ sent   origin   taken    │    end B
//!            │ wants                    │            │ wants                    │
//!            └──────────────────────────┘            └──────────────────────────┘
//!              A.sent ─►  ░░░░░████████░░░░░░░░░  ring A to B  ◄─ B.taken
//!              A.taken ─► ░░░░░░░░░░░░░░░░░░░░░░  ring B to A  ◄─ B.sent
//! ```
//!
//! **Cursors only grow.** `sent` counts the bytes ever put into a ring, `taken` those taken out of it; the difference is
//! what lies in it. Byte number n lies at `(n - origin) mod capacity`. Whoever writes into an empty ring moves its `origin`, so
//! that short messages always go through the same few cache lines, and an idle connection has touched one page.
//!
//! **Nobody trusts anybody.** Each end counts for itself and reads the other's cursor only to learn the difference, which
//! must lie between 0 and the capacity: anything else is [`Broken`], and the connection is over. Positions are taken modulo
//! the capacity, so that no cursor, whatever it says, points outside the ring.
//!
//! **Who sleeps says so first.** An end that finds nothing to do [`arm`](End::arm)s: it writes into `wants` what it waits
//! for, and looks once more. An end that publishes a cursor looks at the other's `wants` afterwards, and rings its [`Bell`] if
//! this is what it waits for. Between the store and the look each has a sequentially consistent fence, so at least one of the two
//! sees what the other did: no wake-up is lost. While both are busy nobody makes a system call.
//!
//! ```text
//!   sleeper:  wants = BYTES ── fence ── look at sent: nothing ── sleep
//!   sender:   sent += n     ── fence ── look at wants: BYTES  ── wants = 0, ring
//! ```
//!
//! `taken` isn't published for every read but together with the next reply, when a quarter of the ring was taken, and before
//! sleeping: it shares its cache line with `sent`, so that a request and its reply move one line each way.

use std::sync::atomic::Ordering;

/// A 64-bit word in shared memory.
pub trait Cursor {
    /// Reads it.
    fn load(&self, order: Ordering) -> u64;
    /// Writes it.
    fn store(&self, value: u64, order: Ordering);
}

/// A 32-bit word in shared memory.
pub trait Flags {
    /// Reads it.
    fn load(&self, order: Ordering) -> u32;
    /// Writes it.
    fn store(&self, value: u32, order: Ordering);
}

/// The kind of atomic words a ring is made of: the processor's, or a model checker's.
pub trait Atomics {
    /// 64 bits.
    type Cursor: Cursor;
    /// 32 bits.
    type Flags: Flags;
    /// A sequentially consistent fence.
    fn fence();
}

/// What one end tells the other.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Side<A: Atomics> {
    /// Bytes it has put into its ring, ever.
    pub sent: A::Cursor,
    /// The byte number that lies at its ring's beginning.
    pub origin: A::Cursor,
    /// Bytes it has taken out of the other's ring, ever.
    pub taken: A::Cursor,
    /// What it waits for: [`Wants`], or 0.
    pub wants: A::Flags,
}

/// The memory both ends share, as one of them sees it. Indices are below the capacity, and so are their sums with lengths.
pub trait Memory {
    /// What its words are.
    type Atomics: Atomics;
    /// This end's words.
    fn mine(&self) -> &Side<Self::Atomics>;
    /// The other end's words.
    fn theirs(&self) -> &Side<Self::Atomics>;
    /// Bytes in the ring that this end writes; a power of two.
    fn capacity_out(&self) -> usize;
    /// Bytes in the ring that the other end writes; a power of two.
    fn capacity_in(&self) -> usize;
    /// Writes `bytes` at `index` of this end's ring.
    fn put(&mut self, index: usize, bytes: &[u8]);
    /// Reads bytes from `index` of the other end's ring.
    fn get(&self, index: usize, bytes: &mut [u8]);
}

/// Wakes the other end. It must be safe to ring for nothing.
pub trait Bell {
    /// Wakes it. Failing to is nothing to report: an end that is gone is noticed by other means.
    fn ring(&self);
}

/// The other end wrote cursors that can't be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the other end of the shared memory broke its rules")
    }
}

impl std::error::Error for Broken {}

impl From<Broken> for std::io::Error {
    fn from(broken: Broken) -> Self {
        std::io::Error::new(std::io::ErrorKind::InvalidData, broken)
    }
}

/// What an end waits for; a set of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants(u32);

impl Wants {
    /// Bytes to read.
    pub const BYTES: Wants = Wants(1);
    /// Room to write: half of the ring.
    pub const ROOM: Wants = Wants(2);
    /// Whichever comes first.
    pub const EITHER: Wants = Wants(3);

    fn includes(self, other: Wants) -> bool {
        self.0 & other.0 != 0
    }
}

/// One end of the pair of rings. It never blocks.
#[derive(Debug)]
pub struct End<M: Memory, B: Bell> {
    memory: M,
    bell: B,
    sent: u64,
    origin: u64,
    taken: u64,
    /// As much of `taken` as the other end knows.
    taken_published: u64,
    rung: u64,
}

impl<M: Memory, B: Bell> End<M, B> {
    /// An end of new rings, whose words are all 0.
    pub fn new(memory: M, bell: B) -> Self {
        debug_assert!(memory.capacity_in().is_power_of_two());
        debug_assert!(memory.capacity_out().is_power_of_two());
        Self {
            memory,
            bell,
            sent: 0,
            origin: 0,
            taken: 0,
            taken_published: 0,
            rung: 0,
        }
    }

    /// What it wakes the other end with.
    pub fn bell(&self) -> &B {
        &self.bell
    }

    /// The memory it lies in.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// How often it woke the other end since this was last asked.
    pub fn take_rung(&mut self) -> u64 {
        std::mem::take(&mut self.rung)
    }

    /// Bytes there are to read.
    pub fn readable(&self) -> Result<usize, Broken> {
        let sent = self.memory.theirs().sent.load(Ordering::Acquire);
        within(sent.wrapping_sub(self.taken), self.memory.capacity_in())
    }

    /// Bytes there is room for.
    pub fn writable(&self) -> Result<usize, Broken> {
        let capacity = self.memory.capacity_out();
        let taken = self.memory.theirs().taken.load(Ordering::Acquire);
        Ok(capacity - within(self.sent.wrapping_sub(taken), capacity)?)
    }

    /// Whether one of `wants` is there. A broken ring is: who looks closer finds out.
    pub fn is_ready(&self, wants: Wants) -> bool {
        (wants.includes(Wants::BYTES) && self.readable() != Ok(0))
            || (wants.includes(Wants::ROOM)
                && self
                    .writable()
                    .map_or(true, |room| room >= self.memory.capacity_out() / 2))
    }

    /// Takes bytes: as many as there are, up to the length of `into`; 0 if there are none.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Broken> {
        let capacity = self.memory.capacity_in();
        let count = self.readable()?.min(into.len());
        if count == 0 {
            return Ok(0);
        }
        // As new as the bytes: the other end moves it only while everything is taken.
        let origin = self.memory.theirs().origin.load(Ordering::Relaxed);
        let index = position(self.taken, origin, capacity);
        let (first, rest) = into[..count].split_at_mut(count.min(capacity - index));
        self.memory.get(index, first);
        if !rest.is_empty() {
            self.memory.get(0, rest);
        }
        self.taken = self.taken.wrapping_add(count as u64);
        if self.taken.wrapping_sub(self.taken_published) >= (capacity / 4) as u64 {
            self.publish_taken();
        }
        Ok(count)
    }

    /// Puts bytes: as many as there is room for; 0 if there is none.
    pub fn write(&mut self, from: &[u8]) -> Result<usize, Broken> {
        let capacity = self.memory.capacity_out();
        let room = self.writable()?;
        let count = room.min(from.len());
        if count == 0 {
            return Ok(0);
        }
        if room == capacity {
            self.origin = self.sent;
            self.memory
                .mine()
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
        let mine = self.memory.mine();
        let mut news = Wants::BYTES;
        if self.taken != self.taken_published {
            self.taken_published = self.taken;
            mine.taken.store(self.taken, Ordering::Release);
            news = Wants::EITHER;
        }
        mine.sent.store(self.sent, Ordering::Release);
        self.wake(news);
        Ok(count)
    }

    /// Says that this end is about to sleep until one of `wants`. True: it is there already, and nobody will ring for it.
    pub fn arm(&mut self, wants: Wants) -> bool {
        self.publish_taken();
        self.memory.mine().wants.store(wants.0, Ordering::Relaxed);
        M::Atomics::fence();
        let ready = self.is_ready(wants);
        if ready {
            self.disarm();
        }
        ready
    }

    /// Says that this end is awake. It may be rung for once more.
    pub fn disarm(&mut self) {
        self.memory.mine().wants.store(0, Ordering::Relaxed);
    }

    fn publish_taken(&mut self) {
        if self.taken != self.taken_published {
            self.taken_published = self.taken;
            self.memory
                .mine()
                .taken
                .store(self.taken, Ordering::Release);
            self.wake(Wants::ROOM);
        }
    }

    /// After publishing: rings if the other end sleeps for what is new.
    fn wake(&mut self, news: Wants) {
        M::Atomics::fence();
        let theirs = self.memory.theirs();
        let wants = Wants(theirs.wants.load(Ordering::Relaxed));
        let wakes = (news.includes(Wants::BYTES) && wants.includes(Wants::BYTES))
            || (news.includes(Wants::ROOM) && wants.includes(Wants::ROOM) && self.has_made_room());
        if wakes {
            // It may have woken and armed again meanwhile: then it is rung for nothing. Rung it is, after this.
            theirs.wants.store(0, Ordering::Relaxed);
            self.rung += 1;
            self.bell.ring();
        }
    }

    /// Half of the other end's ring is free, as far as it knows: worth waking it for.
    fn has_made_room(&self) -> bool {
        let sent = self.memory.theirs().sent.load(Ordering::Relaxed);
        sent.wrapping_sub(self.taken_published) <= (self.memory.capacity_in() / 2) as u64
    }
}

fn within(difference: u64, capacity: usize) -> Result<usize, Broken> {
    if difference <= capacity as u64 {
        Ok(difference as usize)
    } else {
        Err(Broken)
    }
}

fn position(cursor: u64, origin: u64, capacity: usize) -> usize {
    (cursor.wrapping_sub(origin) as usize) & (capacity - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Mapped, Native, Role, Shape};
    use crate::sys;
    use proptest::prelude::*;
    use std::cell::Cell;
    use std::collections::VecDeque;
    use std::rc::Rc;

    const SHAPE: Shape = Shape {
        up: 4096,
        down: 8192,
    };

    #[derive(Default, Clone)]
    struct Counting(Rc<Cell<u32>>);

    impl Bell for Counting {
        fn ring(&self) {
            self.0.set(self.0.get() + 1);
        }
    }

    type TestEnd = End<Mapped, Counting>;

    fn pair() -> (TestEnd, TestEnd) {
        let [client, server] = if cfg!(miri) {
            Mapped::pair_in_heap(SHAPE)
        } else {
            let memory = sys::create_memory(SHAPE.length().unwrap()).unwrap();
            [Role::Client, Role::Server].map(|role| Mapped::new(&memory, SHAPE, role).unwrap())
        };
        (
            End::new(client, Counting::default()),
            End::new(server, Counting::default()),
        )
    }

    struct Silent;

    impl Bell for Silent {
        fn ring(&self) {}
    }

    /// Under miri, which reports a byte that one thread writes while the other reads it.
    #[test]
    fn two_threads_pass_bytes_without_a_race() {
        let turns = if cfg!(miri) { 100 } else { 500 };
        let [client, server] = Mapped::pair_in_heap(SHAPE);
        let (mut client, mut server) = (End::new(client, Silent), End::new(server, Silent));
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
                    (&mut client, &mut up, &mut down, SHAPE.up)
                } else {
                    (&mut server, &mut down, &mut up, SHAPE.down)
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
                    Step::Arm(wants) => {
                        let ready = end.arm(Wants(wants));
                        prop_assert!(!ready || wants != 0);
                    }
                    Step::Disarm => end.disarm(),
                }
                prop_assert_eq!(client.readable().unwrap(), down.len());
                prop_assert_eq!(server.readable().unwrap(), up.len());
            }
        }

        /// Whatever a peer writes into its words and into the rings: an end answers with bytes or with [`Broken`], and never
        /// moves more bytes than its rings hold.
        #[test]
        fn a_peer_that_writes_anything_gets_bytes_or_an_error(
            words in prop::collection::vec((0usize..5, prop_oneof![any::<u64>(), 0u64..20_000]), 1..STEPS / 2),
            lengths in prop::collection::vec(0usize..20_000, 1..STEPS / 2),
        ) {
            let (mut hostile, mut server) = pair();
            for ((word, value), length) in words.into_iter().zip(lengths) {
                let theirs = hostile.memory().mine();
                match word {
                    0 => theirs.sent.store(value, Ordering::Relaxed),
                    1 => theirs.taken.store(value, Ordering::Relaxed),
                    2 => theirs.origin.store(value, Ordering::Relaxed),
                    3 => theirs.wants.store(value as u32, Ordering::Relaxed),
                    // The server's own words are in its reach, too.
                    _ => {
                        let mine = hostile.memory().theirs();
                        mine.sent.store(value, Ordering::Relaxed);
                        mine.taken.store(value, Ordering::Relaxed);
                        mine.wants.store(value as u32, Ordering::Relaxed);
                    }
                }
                let _ = hostile.write(&[7; 100]);
                let mut bytes = vec![0; length];
                if let Ok(count) = server.read(&mut bytes) {
                    prop_assert!(count <= length.min(SHAPE.up));
                }
                if let Ok(count) = server.write(&bytes) {
                    prop_assert!(count <= length.min(SHAPE.down));
                }
                server.arm(Wants(value as u32 & 3));
                server.is_ready(Wants::EITHER);
                prop_assert!(server.take_rung() <= 4);
            }
        }
    }

    #[test]
    fn a_cursor_beyond_the_ring_is_told() {
        let (client, mut server) = pair();
        let theirs = client.memory().mine();
        theirs.sent.store(SHAPE.up as u64 + 1, Ordering::Relaxed);
        assert_eq!(server.read(&mut [0; 10]), Err(Broken));
        assert!(server.is_ready(Wants::BYTES));
        theirs.taken.store(1, Ordering::Relaxed);
        assert_eq!(server.write(&[0; 10]), Err(Broken));
        assert!(server.is_ready(Wants::ROOM));
    }

    #[test]
    fn only_a_sleeper_is_woken_and_only_for_what_it_waits_for() {
        let (mut client, mut server) = pair();
        let rings = client.bell().0.clone();
        client.write(&[1; 100]).unwrap();
        assert_eq!(rings.get(), 0, "the server is awake");
        assert!(server.arm(Wants::BYTES), "there are bytes already");
        server.read(&mut [0; 200]).unwrap();
        assert!(!server.arm(Wants::BYTES));
        client.write(&[1; 100]).unwrap();
        assert_eq!(rings.get(), 1);
        client.write(&[1; 100]).unwrap();
        assert_eq!(rings.get(), 1, "once is enough");
        assert_eq!(client.take_rung(), 1);
    }

    #[test]
    fn a_writer_is_woken_when_half_of_the_ring_is_free() {
        let (mut client, mut server) = pair();
        assert_eq!(client.write(&[1; 5000]).unwrap(), 4096);
        assert_eq!(client.write(&[1; 1]).unwrap(), 0);
        assert!(!client.arm(Wants::ROOM));
        let rings = server.bell().0.clone();
        server.read(&mut [0; 1500]).unwrap();
        assert_eq!(rings.get(), 0);
        server.read(&mut [0; 1500]).unwrap();
        assert_eq!(rings.get(), 1);
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
        assert_eq!(size_of::<Side<Native>>(), 128);
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
    struct Modelled;

    impl Atomics for Modelled {
        type Cursor = AtomicU64;
        type Flags = AtomicU32;

        fn fence() {
            fence(Ordering::SeqCst);
        }
    }

    impl Cursor for AtomicU64 {
        fn load(&self, order: Ordering) -> u64 {
            AtomicU64::load(self, order)
        }

        fn store(&self, value: u64, order: Ordering) {
            AtomicU64::store(self, value, order);
        }
    }

    impl Flags for AtomicU32 {
        fn load(&self, order: Ordering) -> u32 {
            AtomicU32::load(self, order)
        }

        fn store(&self, value: u32, order: Ordering) {
            AtomicU32::store(self, value, order);
        }
    }

    const CAPACITY: usize = 4;

    #[derive(Default)]
    struct Shared {
        sides: [Side<Modelled>; 2],
        /// A byte a cell: touching one that the other end may touch is a race that the checker reports.
        rings: [[loom::cell::UnsafeCell<u8>; CAPACITY]; 2],
    }

    // SAFETY: the checker watches every access to the cells.
    #[allow(unsafe_code)]
    unsafe impl Sync for Shared {}

    struct View(Arc<Shared>, usize);

    #[allow(unsafe_code)]
    impl Memory for View {
        type Atomics = Modelled;

        fn mine(&self) -> &Side<Modelled> {
            &self.0.sides[self.1]
        }

        fn theirs(&self) -> &Side<Modelled> {
            &self.0.sides[1 - self.1]
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

    /// Stays rung until somebody waits for it.
    #[derive(Default)]
    struct Gong(Mutex<bool>, Condvar);

    impl Gong {
        fn wait(&self) {
            let mut rung = self.0.lock().unwrap();
            while !*rung {
                rung = self.1.wait(rung).unwrap();
            }
            *rung = false;
        }
    }

    impl Bell for Arc<Gong> {
        fn ring(&self) {
            *self.0.lock().unwrap() = true;
            self.1.notify_one();
        }
    }

    type ModelEnd = End<View, Arc<Gong>>;

    fn pair() -> [(ModelEnd, Arc<Gong>); 2] {
        let shared = Arc::new(Shared::default());
        let bells = [Arc::new(Gong::default()), Arc::new(Gong::default())];
        [0, 1].map(|me| {
            let end = End::new(View(shared.clone(), me), bells[1 - me].clone());
            (end, bells[me].clone())
        })
    }

    fn read(end: &mut ModelEnd, bell: &Gong, into: &mut [u8]) -> usize {
        loop {
            match end.read(into).unwrap() {
                0 if end.arm(Wants::BYTES) => {}
                // A wake-up that is lost leaves it here for ever, which the checker reports as a deadlock.
                0 => {
                    bell.wait();
                    end.disarm();
                }
                count => return count,
            }
        }
    }

    fn write_all(end: &mut ModelEnd, bell: &Gong, mut from: &[u8]) {
        while !from.is_empty() {
            match end.write(from).unwrap() {
                0 if end.arm(Wants::ROOM) => {}
                0 => {
                    bell.wait();
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
            let [(mut client, client_bell), (mut server, server_bell)] = pair();
            let serving = thread::spawn(move || {
                for _ in 0..2 {
                    let mut request = [0];
                    read(&mut server, &server_bell, &mut request);
                    write_all(&mut server, &server_bell, &[request[0] + 100]);
                }
            });
            for turn in 0..2 {
                write_all(&mut client, &client_bell, &[turn]);
                let mut reply = [0];
                read(&mut client, &client_bell, &mut reply);
                assert_eq!(reply, [turn + 100]);
            }
            serving.join().unwrap();
        });
    }

    #[test]
    fn a_message_longer_than_the_ring_goes_through_with_both_ends_sleeping_for_each_other() {
        check(|| {
            let [(mut writer, writer_bell), (mut reader, reader_bell)] = pair();
            let writing = thread::spawn(move || {
                write_all(&mut writer, &writer_bell, &[1, 2, 3, 4, 5, 6, 7]);
            });
            let mut got = Vec::new();
            while got.len() < 7 {
                let mut bytes = [0; 3];
                let count = read(&mut reader, &reader_bell, &mut bytes);
                got.extend_from_slice(&bytes[..count]);
            }
            assert_eq!(got, [1, 2, 3, 4, 5, 6, 7]);
            writing.join().unwrap();
        });
    }
}
