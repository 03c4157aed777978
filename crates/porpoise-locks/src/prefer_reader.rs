//! `PreferReader`: one word, whose readers spread over lanes when many cores read at once.
//!
//! ```text
//! 63       45 44               13 12     7  6    5    4    3    2    1    0
//! ┌──────────┬───────────────────┬────────┬────┬────┬────┬────┬────┬────┬────┐
//! │ readers  │ owner or opening  │ lanes  │cln │hold│open│awak│ pR │ pW │ W  │     the whole lock
//! └──────────┴───────────────────┴───┬────┴────┴────┴────┴────┴────┴────┴────┘
//!                                    └─► ┌───────┬───────┬───────┬──     one set of 63 that all locks of the
//!                                        │ ±n    │ ±n    │ ±n    │ …     process share, a lane a thread
//!                                        └───────┴───────┴───────┴──
//! readers inside = the word's count + the sum of the lanes, modulo 2^19
//! ```
//!
//! A reader alone enters by one compare-and-swap on the word, which puts 1 on the count, and leaves
//! by one subtraction. When readers have been coming for a while without a writer, the lock borrows
//! a set of lanes and is *opened*:
//!
//! ```text
//! reader                                      writer
//! 1. own lane + 1      plain store            1. clears `open`
//!    light fence       nothing                   heavy fence              membarrier(2)
//! 2. still open? then it is in                2. count + lanes = 0, in a word that hasn't changed meanwhile?
//!    else own lane - 1, and by the word          then W, its owner and `cln` go into that word
//! ```
//!
//! Both do first what the other looks at second, so one of the two sees the other. The order costs
//! the reader nothing, since the writer has the kernel put a fence on every core that runs this
//! process. A reader then touches no line that another core writes, and runs no atomic change at
//! all.
//!
//! Leaving takes 1 from the leaving thread's lane, or from the word: only the sum counts, so who
//! leaves need not know where the reader entered. While the set is closed its lanes only sink (but
//! for those who step on one and off again), so a sum read lane by lane is never too low: a sum of
//! 0 was true. After that the lanes stay at 0 (`cln`: they are clean), and the word alone tells,
//! until it is opened again. A thread beyond the 128th with a lane uses the word.
//!
//! Each opening has a number, which the word carries until the lanes are clean, in the bits where a
//! writer has its owner. So a writer that was held up in the midst of its sum, while the lanes were
//! opened, stepped on and closed again, doesn't find its word unchanged.
//!
//! Who has to wait spins for a moment, then parks in one of 64 rooms, found by the lock's address;
//! the bits `pW` and `pR` say that writers and readers are parked. A writer is woken when the last
//! reader or the writer leaves; it must win the word again (`awak`: one is on its way, so nobody
//! else is woken meanwhile). The readers are woken all at once.
//!
//! - Fairness: prefers readers; writers starve while readers overlap, and whoever is on a core
//!   takes the lock before those who sleep. [`PreferReader::fair`] is the other policy, at no cost
//!   to readers: a waiting writer sets `hold`, which newcomers respect, so readers must not recurse
//!   there.
//! - Limits: 2^19 - 1 readers inside at a time.
//! - Size: 8 bytes. Neither entering nor opening allocates.
//! - Ideas: readers seen by place, not by name, are BRAVO's (Dice, Kogan, 2019); one word for the
//!   common case and a parking lot beside it are WebKit's and parking_lot's; one who is on its way
//!   is nsync's designated waker; the fence that only one side pays is userspace RCU's.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use super::base::{
    self, AtomicBool, AtomicU32, AtomicU64, Deadline, LANES, Mutex, MutexGuard, Thread,
};
use super::reader_writer::Leave;
use super::{Owner, ReaderWriter};

/// A writer is inside.
const WRITER: u64 = 1;
const PARKED_WRITERS: u64 = 1 << 1;
const PARKED_READERS: u64 = 1 << 2;
/// A writer was woken and hasn't tried yet.
const AWAKE: u64 = 1 << 3;
/// Readers enter by the lanes. Never together with `WRITER`.
const OPEN: u64 = 1 << 4;
/// A writer waits, and newcomers are to wait behind it.
const HOLD: u64 = 1 << 5;
/// The lanes are closed and sum to 0.
const CLEAN: u64 = 1 << 6;
/// Which set of lanes the lock has borrowed, from 1; 0: none.
const SET_SHIFT: u32 = 7;
const SET_MASK: u64 = 0x3f << SET_SHIFT;
/// Whose writer is inside. Without one, while the lanes are open or not known to sum to 0: which
/// opening that is. Else 0.
const OWNER_SHIFT: u32 = 13;
const OWNER_MASK: u64 = (u32::MAX as u64) << OWNER_SHIFT;
/// The count has the top bits, so that it wraps around without touching others. While a writer is
/// inside it counts how often the writer entered again.
const COUNT_SHIFT: u32 = 45;
const ONE: u64 = 1 << COUNT_SHIFT;
const COUNT_BITS: u32 = 64 - COUNT_SHIFT;

const _: () = assert!(base::LANE_SETS_MAX as u64 <= SET_MASK >> SET_SHIFT);
const _: () = assert!(OWNER_SHIFT + 32 == COUNT_SHIFT);

/// A set of lanes that one lock has at a time.
pub(super) struct LaneSet {
    pub(super) taken: AtomicBool,
    /// What the word counted when it was put in order for a writer.
    pub(super) drift: AtomicU32,
    /// How often it was opened, by whichever lock.
    pub(super) openings: AtomicU32,
    pub(super) lanes: [Lane; LANES],
}

/// A count that one thread changes, on a line of its own.
#[repr(align(64))]
pub(super) struct Lane(pub(super) AtomicU32);

impl Lane {
    /// Adds to the lane of the calling thread.
    #[inline]
    fn add(&self, change: u32) {
        let sum = self.0.load(Relaxed).wrapping_add(change);
        self.0.store(sum, Release);
    }
}

/// Where a reader entered.
enum Place {
    Word,
    Lane(&'static Lane),
}

/// Where those sleep who wait for any of the locks with this room.
pub(super) struct Room(pub(super) Mutex<Vec<Sleeper>>);

pub(super) struct Sleeper {
    /// The address of the lock it waits for.
    lock: usize,
    wants: Wants,
    /// A thread is in one room at a time, once.
    thread: Thread,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wants {
    Shared,
    Exclusive(Owner),
}

/// One word, with lanes for readers on many cores. See the module's text for the algorithm.
///
/// With `FAIR`, newcomers wait behind a waiting writer.
pub struct PreferReader<const FAIR: bool = false> {
    word: AtomicU64,
}

impl PreferReader {
    super::base::maybe_const_fn! {
        /// A free lock that prefers readers.
        pub fn new() -> PreferReader {
            PreferReader { word: AtomicU64::new(0) }
        }
    }
}

impl PreferReader<true> {
    super::base::maybe_const_fn! {
        /// A free lock whose newcomers wait behind a waiting writer. A reader must not enter twice.
        pub fn fair() -> PreferReader<true> {
            PreferReader { word: AtomicU64::new(0) }
        }
    }
}

impl<const FAIR: bool> PreferReader<FAIR> {
    /// The set of lanes that a state names.
    #[inline]
    fn set(state: u64) -> Option<&'static LaneSet> {
        let number = (state & SET_MASK) >> SET_SHIFT;
        base::lane_sets().get((number as usize).wrapping_sub(1))
    }

    /// How many readers are inside. Never too few, if the lanes are closed and a fence has passed
    /// since.
    fn readers(state: u64) -> u32 {
        let mut sum = (state >> COUNT_SHIFT) as u32;
        if let (Some(set), 0) = (Self::set(state), state & CLEAN) {
            sum = sum.wrapping_add(set.drift.load(Acquire));
            for lane in set.lanes.iter().take(base::lanes_in_use()) {
                sum = sum.wrapping_add(lane.0.load(Acquire));
            }
        }
        sum & ((1 << COUNT_BITS) - 1)
    }

    // --- readers -------------------------------------------------------------------------

    #[inline]
    fn enter_shared(&self, passes: bool) -> Option<Place> {
        let state = self.word.load(Acquire);
        if state & OPEN != 0 {
            return self.enter_lane(state).or_else(|| self.enter_word(passes));
        }
        if state & (WRITER | HOLD) == 0
            && !base::has_read_long(1)
            && self
                .word
                .compare_exchange_weak(state, state.wrapping_add(ONE), Acquire, Relaxed)
                .is_ok()
        {
            return Some(Place::Word);
        }
        self.enter_word(passes)
    }

    #[inline]
    fn enter_lane(&self, state: u64) -> Option<Place> {
        let lane = &Self::set(state)?.lanes[base::lane()?];
        lane.add(1);
        base::light_fence();
        if self.word.load(Acquire) & OPEN != 0 {
            return Some(Place::Lane(lane));
        }
        self.leave_lane(lane);
        None
    }

    /// Enters by the word, or by the lanes if this is a time to open them. With `passes`, past a
    /// writer that waits.
    #[cold]
    fn enter_word(&self, passes: bool) -> Option<Place> {
        /// Readers that meet there open the lanes the sooner.
        const MEETING: u32 = 16;
        let barred = if passes { WRITER } else { WRITER | HOLD };
        let mut may_open = base::is_time_to_open();
        let mut state = self.word.load(Acquire);
        loop {
            if state & barred != 0 {
                return None;
            }
            if may_open {
                self.open(state);
                may_open = false;
                state = self.word.load(Acquire);
                if state & OPEN != 0
                    && let Some(place) = self.enter_lane(state)
                {
                    return Some(place);
                }
                state = self.word.load(Acquire);
                continue;
            }
            match self
                .word
                .compare_exchange_weak(state, state.wrapping_add(ONE), Acquire, Relaxed)
            {
                Ok(_) => return Some(Place::Word),
                Err(now) => state = now,
            }
            may_open = base::has_read_long(MEETING) && base::is_time_to_open();
        }
    }

    /// Opens the lanes, borrowing a set if the lock has none. Another time, if anything is in the
    /// way.
    #[cold]
    fn open(&self, state: u64) {
        const BARRED: u64 = WRITER | HOLD | OPEN | AWAKE | PARKED_WRITERS | PARKED_READERS;
        if state & BARRED != 0 {
            return;
        }
        base::prepare_fences();
        let opened = |state: u64, set: &LaneSet| {
            let opening = u64::from(set.openings.fetch_add(1, Relaxed));
            state & !(CLEAN | OWNER_MASK) | OPEN | opening << OWNER_SHIFT
        };
        if let Some(set) = Self::set(state) {
            let opened = opened(state, set);
            let _ = self.word.compare_exchange(state, opened, SeqCst, Relaxed);
            return;
        }
        let sets = base::lane_sets().iter().zip(1u64..);
        let free = sets
            .filter(|(set, _)| !set.taken.load(Relaxed))
            .find(|(set, _)| {
                set.taken
                    .compare_exchange(false, true, Acquire, Relaxed)
                    .is_ok()
            });
        let Some((set, number)) = free else {
            return;
        };
        let opened = opened(state, set) | number << SET_SHIFT;
        let is_opened = self.word.compare_exchange(state, opened, SeqCst, Relaxed);
        if is_opened.is_err() {
            set.taken.store(false, Release);
        }
    }

    #[inline]
    fn leave_lane(&self, lane: &Lane) {
        lane.add(1u32.wrapping_neg());
        base::light_fence();
        let state = self.word.load(Relaxed);
        if state & (PARKED_WRITERS | AWAKE) == PARKED_WRITERS {
            self.wake_if_empty();
        }
    }

    #[inline]
    fn leave_shared(&self) {
        // Acquire: who leaves may be the first to see this set in this lock, at 0.
        let state = self.word.load(Acquire);
        if state & OPEN != 0
            && let (Some(set), Some(number)) = (Self::set(state), base::lane())
        {
            return self.leave_lane(&set.lanes[number]);
        }
        self.leave_word();
    }

    #[inline]
    fn leave_word(&self) {
        let before = self.word.fetch_sub(ONE, SeqCst);
        if before & (PARKED_WRITERS | AWAKE) == PARKED_WRITERS {
            self.wake_if_empty();
        }
    }

    #[cold]
    fn wake_if_empty(&self) {
        // Of two who leave at a time, one sees both gone.
        base::fence();
        let state = self.word.load(Relaxed);
        if state & WRITER == 0 && Self::readers(state) == 0 {
            self.wake();
        }
    }

    /// Opens the lanes at once, for scenarios that begin there.
    #[cfg(test)]
    pub(super) fn open_now(&self) {
        self.open(self.word.load(SeqCst));
    }

    // --- the writer ----------------------------------------------------------------------

    /// Enters as the writer; `done` are bits that its entry clears.
    #[inline]
    fn enter_exclusive(&self, owner: Owner, done: u64) -> bool {
        base::has_written();
        let own = u64::from(owner.number()) << OWNER_SHIFT;
        // An idle lock that was never opened is 0: no need to look first.
        if self
            .word
            .compare_exchange(0, WRITER | own, SeqCst, Relaxed)
            .is_ok()
        {
            return true;
        }
        let state = self.word.load(Relaxed);
        let is_told_by_word = state & CLEAN != 0 || state & SET_MASK == 0;
        if state >> COUNT_SHIFT == 0
            && state & (WRITER | OPEN) == 0
            && is_told_by_word
            && self
                .word
                .compare_exchange_weak(state, state & !done | WRITER | own, SeqCst, Relaxed)
                .is_ok()
        {
            return true;
        }
        self.enter_exclusive_slowly(own, done)
    }

    #[cold]
    fn enter_exclusive_slowly(&self, own: u64, done: u64) -> bool {
        let mut state = self.word.load(SeqCst);
        loop {
            let next = if state & WRITER != 0 {
                if state & OWNER_MASK != own {
                    return false;
                }
                state.wrapping_add(ONE)
            } else if state & OPEN != 0 {
                state & !OPEN
            } else if Self::readers(state) != 0 {
                return false;
            } else if state & CLEAN == 0 && state & SET_MASK != 0 {
                // Whose step on a lane isn't seen after this sees that the lanes are closed.
                base::heavy_fence();
                if Self::readers(state) != 0 {
                    return false;
                }
                state & !(done | OWNER_MASK) | WRITER | own | CLEAN
            } else {
                state & !done | WRITER | own
            };
            match self.word.compare_exchange(state, next, SeqCst, SeqCst) {
                Err(now) => state = now,
                Ok(_) if next & WRITER == 0 => state = next,
                Ok(_) => {
                    if state & WRITER == 0 {
                        self.clear_count(next);
                    }
                    return true;
                }
            }
        }
    }

    /// Moves what the word counts to the set: inside, the count is the writer's, and after it the
    /// lanes are clean.
    fn clear_count(&self, state: u64) {
        let count = (state >> COUNT_SHIFT) as u32;
        if count != 0
            && let Some(set) = Self::set(state)
        {
            set.drift.fetch_add(count, SeqCst);
            self.word.fetch_sub(u64::from(count) << COUNT_SHIFT, SeqCst);
        }
    }

    #[inline]
    fn leave_exclusive_of(&self, owner: Owner) {
        let own = u64::from(owner.number()) << OWNER_SHIFT;
        let is_undisturbed = self
            .word
            .compare_exchange(WRITER | own, 0, SeqCst, Relaxed)
            .is_ok();
        if !is_undisturbed {
            self.leave_exclusive();
        }
    }

    #[inline]
    fn leave_exclusive(&self) {
        let state = self.word.load(Relaxed);
        if state >> COUNT_SHIFT != 0 {
            self.word.fetch_sub(ONE, Relaxed);
            return;
        }
        let before = self.word.fetch_sub(state & (WRITER | OWNER_MASK), SeqCst);
        let readers_wait = before & PARKED_READERS != 0;
        let writers_wait = before & (PARKED_WRITERS | AWAKE) == PARKED_WRITERS;
        if readers_wait || writers_wait {
            self.wake();
        }
    }

    // --- waiting -------------------------------------------------------------------------

    #[inline]
    fn attempt(&self, wants: Wants, was_woken: bool) -> bool {
        match wants {
            Wants::Shared => self.enter_shared(was_woken).is_some(),
            Wants::Exclusive(owner) => {
                let done = if was_woken { AWAKE | HOLD } else { 0 };
                self.enter_exclusive(owner, done)
            }
        }
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn room(&self) -> &'static Room {
        base::room(self.address())
    }

    #[cold]
    fn wait(&self, wants: Wants, deadline: &Deadline) -> bool {
        if self.spin(wants) {
            return true;
        }
        let mut was_woken = false;
        loop {
            let mut room = base::lock(&self.room().0);
            self.announce(wants, was_woken);
            let state = self.word.load(Relaxed);
            if state & SET_MASK != 0 && state & CLEAN == 0 {
                base::heavy_fence();
            }
            // Whoever leaves from here on sees that somebody waits; who left before is seen now.
            if self.attempt(wants, was_woken) {
                self.tidy(room);
                return true;
            }
            room.push(Sleeper {
                lock: self.address(),
                wants,
                thread: base::current_thread(),
            });
            drop(room);
            was_woken = loop {
                let is_late = base::park(deadline);
                let mut room = base::lock(&self.room().0);
                let me = base::current_thread().id();
                let place = room.iter().position(|s| s.thread.id() == me);
                match place {
                    None => break true,
                    Some(place) if is_late => {
                        room.remove(place);
                        let entered = self.attempt(wants, false);
                        self.tidy(room);
                        return entered;
                    }
                    Some(_) => {}
                }
            };
            if self.attempt(wants, true) {
                return true;
            }
        }
    }

    /// Tries for as long as a short critical section takes, then gives the core away a few times,
    /// since whoever is inside may be waiting for it, and looks seldom.
    fn spin(&self, wants: Wants) -> bool {
        for round in 0..base::SPIN_ROUNDS + base::YIELDS {
            let pauses = if round < base::SPIN_ROUNDS {
                2 << round
            } else {
                base::yield_now();
                base::PAUSES
            };
            for _ in 0..pauses {
                base::spin_loop();
            }
            let state = self.word.load(Relaxed);
            let is_hopeless = match wants {
                Wants::Shared => state & (WRITER | HOLD) != 0,
                Wants::Exclusive(_) => state & WRITER != 0,
            };
            if !is_hopeless && self.attempt(wants, false) {
                return true;
            }
        }
        false
    }

    /// Says that somebody is about to park. One who was woken isn't on its way any more.
    fn announce(&self, wants: Wants, was_woken: bool) {
        let bit = match wants {
            Wants::Shared => PARKED_READERS,
            Wants::Exclusive(_) if FAIR => PARKED_WRITERS | HOLD,
            Wants::Exclusive(_) => PARKED_WRITERS,
        };
        let done = match wants {
            Wants::Exclusive(_) if was_woken => AWAKE,
            _ => 0,
        };
        let mut state = self.word.load(Relaxed);
        while let Err(now) =
            self.word
                .compare_exchange_weak(state, state & !done | bit, SeqCst, Relaxed)
        {
            state = now;
        }
    }

    /// Makes the bits tell who is parked, `set` beside them.
    fn tell(&self, room: &[Sleeper], set: u64) -> u64 {
        let mut parked = set;
        for sleeper in room.iter().filter(|s| s.lock == self.address()) {
            parked |= match sleeper.wants {
                Wants::Shared => PARKED_READERS,
                Wants::Exclusive(_) => PARKED_WRITERS,
            };
        }
        let mut state = self.word.load(Relaxed);
        loop {
            let is_writer_waiting = (parked & PARKED_WRITERS) | ((parked | state) & AWAKE) != 0;
            let hold = if FAIR && is_writer_waiting { HOLD } else { 0 };
            let next = state & !(PARKED_READERS | PARKED_WRITERS | HOLD) | parked | hold;
            match self
                .word
                .compare_exchange_weak(state, next, SeqCst, Relaxed)
            {
                Ok(_) => return next,
                Err(now) => state = now,
            }
        }
    }

    /// After somebody who was announced has entered or given up.
    fn tidy(&self, mut room: MutexGuard<'_, Vec<Sleeper>>) {
        let state = self.tell(&room, 0);
        // The writer that gave up may have been the one that newcomers were parked behind.
        if FAIR && state & (PARKED_READERS | WRITER | HOLD) == PARKED_READERS {
            self.wake_readers(&mut room);
        }
    }

    fn wake_readers(&self, room: &mut Vec<Sleeper>) {
        let mut woken = Vec::new();
        let mut at = 0;
        while at < room.len() {
            if room[at].lock == self.address() && room[at].wants == Wants::Shared {
                woken.push(room.remove(at).thread);
            } else {
                at += 1;
            }
        }
        self.tell(room, 0);
        for thread in woken {
            thread.unpark();
        }
    }

    /// Wakes who may enter next: the readers, else one writer. With `FAIR`, whoever came first.
    #[cold]
    fn wake(&self) {
        let mut room = base::lock(&self.room().0);
        let own = |sleeper: &Sleeper| sleeper.lock == self.address();
        let is_reader = |sleeper: &Sleeper| sleeper.wants == Wants::Shared;
        let first = if FAIR {
            room.iter().position(own)
        } else {
            let reader = room.iter().position(|s| own(s) && is_reader(s));
            reader.or_else(|| room.iter().position(own))
        };
        match first {
            None => {
                self.tell(&room, 0);
            }
            Some(place) if is_reader(&room[place]) => self.wake_readers(&mut room),
            Some(place) => {
                if self.word.load(SeqCst) & AWAKE == 0 {
                    let writer = room.remove(place);
                    self.tell(&room, AWAKE);
                    writer.thread.unpark();
                }
            }
        }
    }
}

impl Default for PreferReader {
    fn default() -> PreferReader {
        PreferReader::new()
    }
}

impl<const FAIR: bool> std::fmt::Debug for PreferReader<FAIR> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.word.load(Relaxed);
        f.debug_struct("PreferReader")
            .field("writer", &(state & WRITER != 0))
            .field("open", &(state & OPEN != 0))
            .finish_non_exhaustive()
    }
}

impl<const FAIR: bool> Drop for PreferReader<FAIR> {
    /// Gives the lanes back. Nobody is inside: whoever was had borrowed the lock.
    fn drop(&mut self) {
        if let Some(set) = Self::set(self.word.load(Relaxed)) {
            for lane in &set.lanes {
                lane.0.store(0, Relaxed);
            }
            set.drift.store(0, Relaxed);
            set.taken.store(false, Release);
        }
    }
}

impl<const FAIR: bool> ReaderWriter for PreferReader<FAIR> {
    #[inline]
    fn try_shared(&self) -> bool {
        self.enter_shared(false).is_some()
    }

    #[inline]
    fn shared_until(&self, deadline: &Deadline) -> bool {
        self.enter_shared(false).is_some() || self.wait(Wants::Shared, deadline)
    }

    #[inline]
    fn unlock_shared(&self) {
        self.leave_shared();
    }

    #[inline]
    fn try_exclusive(&self, owner: Owner) -> bool {
        self.enter_exclusive(owner, 0)
    }

    #[inline]
    fn exclusive_until(&self, owner: Owner, deadline: &Deadline) -> bool {
        self.enter_exclusive(owner, 0) || self.wait(Wants::Exclusive(owner), deadline)
    }

    fn downgrade(&self) {
        let writer = self.word.load(Relaxed) & (WRITER | OWNER_MASK);
        let before = self.word.fetch_add(ONE.wrapping_sub(writer), SeqCst);
        if before & PARKED_READERS != 0 {
            self.wake();
        }
    }

    #[inline]
    fn unlock_exclusive(&self) {
        self.leave_exclusive();
    }

    #[inline]
    fn read<R>(&self, f: impl FnOnce() -> R) -> R {
        match self.enter_shared(false) {
            // It stays on its thread, so it leaves where it entered.
            Some(Place::Lane(lane)) => {
                let _leave = Leave(|| self.leave_lane(lane));
                f()
            }
            Some(Place::Word) => {
                let _leave = Leave(|| self.leave_word());
                f()
            }
            None => {
                self.wait(Wants::Shared, &Deadline::Never);
                let _leave = Leave(|| self.leave_shared());
                f()
            }
        }
    }

    #[inline]
    fn write<R>(&self, owner: Owner, f: impl FnOnce() -> R) -> R {
        self.exclusive(owner);
        let _leave = Leave(|| self.leave_exclusive_of(owner));
        f()
    }
}
