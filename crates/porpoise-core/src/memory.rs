//! How much memory statements' buffers take, and how much they may take.
//!
//! Whatever a statement keeps of many rows is charged: sorted rows, hash tables, groups, distinct
//! values, derived tables, partitions of window functions, what aggregates collect, long IN lists.
//! So is what a transaction has changed and locked and not committed, which statements after it
//! inherit: against their own limit it doesn't count.
//!
//! What a session keeps beyond its statements is charged by another name ([`Kept`]): user variables,
//! prepared statements, open cursors. No statement's limit counts it; together it may be as large as
//! one statement's buffers.
//!
//! A buffer that can go to disk asks [`MemoryAccount::is_to_spill`] as it grows: it is told to when
//! it has a quarter of what the statement may take, or when the statement's buffers together have
//! half of it, or those of all sessions three quarters of theirs. A buffer that can't, and would take
//! the statement beyond its limit, makes it fail. MySQL's sizes of buffers ([`Buffer`]) count where they
//! are set.
//!
//! ```text
//! buffer: Charge ──64 KiB at a time──► MemoryAccount ──chunks──► MemoryPool
//!                                      of a session              of the server
//! ```
//!
//! A buffer counts by itself and asks its session's account for more memory before it grows; the
//! account asks the server's pool, which is the only thing here that sessions share. A buffer that
//! is dropped gives everything back. Small buffers are not counted at all: a statement of few rows
//! touches no account.
//!
//! | limit | refuses with |
//! | --- | --- |
//! | `statement_memory_limit`, a quarter of the machine's memory where it is 0 | 1037 |
//! | the same, for what a session keeps | 1037 |
//! | half of the machine's memory for all sessions, or a larger `statement_memory_limit` | 1037 |
//! | `connection_memory_limit`, of sessions without CONNECTION_ADMIN | 4082, and the connection is closed |
//! | `global_connection_memory_limit`, of those with `global_connection_memory_tracking` alone | 4081, and the connection is closed |
//!
//! Sessions with CONNECTION_ADMIN count among all, and are refused by the first three limits alone.
//! `Global_connection_memory` is what sessions with `global_connection_memory_tracking` take.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

pub use porpoise_storage::reclaim::reclaim;

use crate::error::{Error, Result};
use crate::temporary_space::{ServerSpace, SessionSpace};

/// The row locks of a transaction have one of so many parts of what a statement may take, at most.
const ROW_LOCKS: u64 = 8;
/// How much of each buffer isn't counted.
const UNCOUNTED_BYTES: usize = 64 << 10;
/// What a buffer takes of the account at a time, at least.
const STEP_BYTES: usize = 64 << 10;
/// A buffer that can go to disk has one of so many parts of what its statement may take, at most.
const BUFFERS: u64 = 4;
/// Where memory is short, buffers smaller than both stay: the part of the limit, and the bytes.
const PARTS_SPILLED_MIN: u64 = 64;
const SPILLED_BYTES_MIN: usize = 1 << 20;
/// What is kept is counted as so many bytes too much, at most.
const KEPT_SPARE_BYTES: usize = 256 << 10;
/// The size of an arena's chunks.
const CHUNK_BYTES: usize = 1 << 20;
/// So many chunks are freed by another thread: returning them to the system takes milliseconds.
const CHUNKS_MANY: usize = 32;
/// A vector that is larger grows by a quarter at a time; a smaller one doubles.
const DOUBLED_BYTES_MAX: usize = 64 << 20;

/// A statement hands collections of more items than these to [`reclaim`], if the items are
/// allocations.
pub const ITEMS_MANY: usize = 4096;

/// The memory that the system, or the control group that the process runs in, has: in bytes.
pub fn machine_bytes() -> u64 {
    /// Assumed where the system doesn't tell.
    const UNKNOWN_BYTES: u64 = 4 << 30;
    static BYTES: LazyLock<u64> = LazyLock::new(|| {
        let limits = [physical_bytes(), group_bytes()];
        let least = limits.into_iter().flatten().min();
        least.unwrap_or(UNKNOWN_BYTES)
    });
    *BYTES
}

fn physical_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The least limit of the control groups (version 2) around the process.
fn group_bytes() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let own = std::path::Path::new(own);
    let limits = own.ancestors().filter_map(|group| {
        let file = std::path::Path::new("/sys/fs/cgroup")
            .join(group)
            .join("memory.max");
        std::fs::read_to_string(file).ok()?.trim().parse().ok()
    });
    limits.min()
}

/// A buffer that can go to disk, by the variable that says how large it may be in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// Of a sort: `sort_buffer_size`.
    Sort,
    /// Of a hash join: `join_buffer_size`.
    Join,
    /// Rows and groups that a statement makes: `tmp_table_size`, and `temptable_max_ram` for those of
    /// all sessions.
    Table,
}

impl Buffer {
    /// The variable's default: a statement's buffers are then as large as its memory allows.
    pub const fn usual_bytes(self) -> u64 {
        match self {
            Buffer::Sort | Buffer::Join => 256 << 10,
            Buffer::Table => 16 << 20,
        }
    }
}

/// `temptable_max_ram` unless set, which is no limit.
pub const TABLES_USUAL_BYTES: u64 = 1 << 30;

/// What the sessions of a server take together, and may take.
#[derive(Debug)]
pub struct MemoryPool {
    used: AtomicU64,
    /// What of it sessions with `global_connection_memory_tracking` have taken.
    tracked: AtomicU64,
    /// `global_connection_memory_limit`.
    connections_limit: AtomicU64,
    /// `temptable_max_ram`: with so much in use, intermediate tables go to disk.
    tables_limit: AtomicU64,
    /// The share of the machine that statements' buffers may have.
    share: AtomicU64,
    /// What is on disk.
    space: ServerSpace,
}

impl Default for MemoryPool {
    fn default() -> MemoryPool {
        MemoryPool {
            used: AtomicU64::new(0),
            tracked: AtomicU64::new(0),
            connections_limit: AtomicU64::new(u64::MAX),
            tables_limit: AtomicU64::new(u64::MAX),
            share: AtomicU64::new(machine_bytes() / 2),
            space: ServerSpace::default(),
        }
    }
}

impl MemoryPool {
    /// Sets the limits: `global_connection_memory_limit`, and the global `statement_memory_limit`,
    /// which one statement can have whatever the share of all is.
    pub fn set_limits(&self, connections: u64, statement: u64) {
        self.connections_limit.store(connections, Ordering::Relaxed);
        let share = statement.max(machine_bytes() / 2);
        self.share.store(share, Ordering::Relaxed);
    }

    /// `temptable_max_ram`.
    pub fn set_tables_limit(&self, bytes: u64) {
        let limit = if bytes == TABLES_USUAL_BYTES {
            u64::MAX
        } else {
            bytes
        };
        self.tables_limit.store(limit, Ordering::Relaxed);
    }

    /// How many bytes are taken.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// How many bytes sessions with `global_connection_memory_tracking` have taken.
    pub fn tracked(&self) -> u64 {
        self.tracked.load(Ordering::Relaxed)
    }

    /// The temporary files of all sessions.
    pub fn space(&self) -> &ServerSpace {
        &self.space
    }

    /// What all sessions may take.
    fn limit(&self) -> u64 {
        let connections = self.connections_limit.load(Ordering::Relaxed);
        connections.min(self.share.load(Ordering::Relaxed))
    }

    fn take(&self, bytes: u64, session: Tracking) -> Result<()> {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let share = self.share.load(Ordering::Relaxed);
        if used > share {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(Error::server_memory_limit(share));
        }
        if !session.is_tracked {
            return Ok(());
        }
        let tracked = self.tracked.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let limit = self.connections_limit.load(Ordering::Relaxed);
        if tracked > limit && session.is_limited {
            self.give_back(bytes, true);
            return Err(Error::global_connection_memory_limit(limit, tracked));
        }
        Ok(())
    }

    fn give_back(&self, bytes: u64, is_tracked: bool) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if is_tracked {
            self.tracked.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// How the pool counts a session.
#[derive(Clone, Copy)]
struct Tracking {
    /// It has `global_connection_memory_tracking`.
    is_tracked: bool,
    /// It hasn't CONNECTION_ADMIN.
    is_limited: bool,
}

/// Whose a charge is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Owner {
    #[default]
    Statement,
    /// The session, beyond its statements.
    Session,
}

/// What a session's statement takes, and may take.
#[derive(Debug)]
pub struct MemoryAccount {
    pool: Arc<MemoryPool>,
    used: AtomicU64,
    /// What of it was taken before the statement began: its transaction's changes.
    inherited: AtomicU64,
    /// What of it the session keeps beyond its statements.
    kept: AtomicU64,
    /// What was taken from the pool for it.
    taken: AtomicU64,
    /// `global_connection_memory_tracking`: the pool counts what is taken apart.
    is_tracked: AtomicBool,
    /// `connection_memory_limit` and `global_connection_memory_limit` are not for this session.
    is_exempt: AtomicBool,
    /// `connection_memory_chunk_size`: how much is taken from the pool at a time.
    chunk: AtomicU64,
    /// `connection_memory_limit`.
    connection_limit: AtomicU64,
    /// `statement_memory_limit`, or what stands for 0.
    statement_limit: AtomicU64,
    /// How large a buffer of each kind may be in memory, at most.
    buffers: [AtomicU64; 3],
    /// What is on disk.
    space: SessionSpace,
}

impl Default for MemoryAccount {
    fn default() -> MemoryAccount {
        MemoryAccount::new(Arc::default())
    }
}

impl MemoryAccount {
    /// An account of a pool, with the limits that variables have by default.
    pub fn new(pool: Arc<MemoryPool>) -> MemoryAccount {
        MemoryAccount {
            pool,
            used: AtomicU64::new(0),
            inherited: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            is_tracked: AtomicBool::new(false),
            is_exempt: AtomicBool::new(false),
            chunk: AtomicU64::new(8192),
            connection_limit: AtomicU64::new(u64::MAX),
            statement_limit: AtomicU64::new(machine_bytes() / 4),
            buffers: std::array::from_fn(|_| AtomicU64::new(u64::MAX)),
            space: SessionSpace::default(),
        }
    }

    /// Another session's account: the same pool and the same limits.
    pub fn with_same_limits(&self) -> MemoryAccount {
        let same = |limit: &AtomicU64| AtomicU64::new(limit.load(Ordering::Relaxed));
        MemoryAccount {
            pool: Arc::clone(&self.pool),
            used: AtomicU64::new(0),
            inherited: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            is_tracked: AtomicBool::new(self.is_tracked.load(Ordering::Relaxed)),
            is_exempt: AtomicBool::new(self.is_exempt.load(Ordering::Relaxed)),
            chunk: same(&self.chunk),
            connection_limit: same(&self.connection_limit),
            statement_limit: same(&self.statement_limit),
            buffers: std::array::from_fn(|kind| same(&self.buffers[kind])),
            space: self.space.with_same_limit(),
        }
    }

    /// The pool that it is an account of.
    pub fn pool(&self) -> &MemoryPool {
        &self.pool
    }

    /// The session's temporary files.
    pub fn space(&self) -> &SessionSpace {
        &self.space
    }

    /// `connection_memory_chunk_size`: how much is taken from the pool at a time.
    pub fn set_chunk(&self, bytes: u64) {
        self.chunk.store(bytes, Ordering::Relaxed);
    }

    /// `connection_memory_limit`.
    pub fn set_connection_limit(&self, bytes: u64) {
        self.connection_limit.store(bytes, Ordering::Relaxed);
    }

    /// How large a buffer of a kind may be in memory; by default it is what the other limits allow.
    pub fn set_buffer_bytes(&self, buffer: Buffer, bytes: u64) {
        let most = if bytes == buffer.usual_bytes() {
            u64::MAX
        } else {
            bytes
        };
        self.buffers[buffer as usize].store(most, Ordering::Relaxed);
    }

    /// `global_connection_memory_tracking`: whether the pool counts what the session takes apart.
    pub fn set_tracked(&self, is_tracked: bool) {
        if self.is_tracked.swap(is_tracked, Ordering::Relaxed) == is_tracked {
            return;
        }
        let taken = self.taken.load(Ordering::Relaxed);
        match is_tracked {
            true => self.pool.tracked.fetch_add(taken, Ordering::Relaxed),
            false => self.pool.tracked.fetch_sub(taken, Ordering::Relaxed),
        };
    }

    /// Whether the limits that close connections are not for this session: its account has
    /// CONNECTION_ADMIN.
    pub fn set_exempt(&self, is_exempt: bool) {
        self.is_exempt.store(is_exempt, Ordering::Relaxed);
    }

    /// `statement_memory_limit`; 0 for a quarter of the machine's memory.
    pub fn set_statement_limit(&self, bytes: u64) {
        let limit = match bytes {
            0 => machine_bytes() / 4,
            bytes => bytes,
        };
        self.statement_limit.store(limit, Ordering::Relaxed);
    }

    /// How many bytes are taken.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// What the session keeps beyond its statements.
    pub fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// `connection_memory_limit`, where it is for this session.
    fn connection_limit(&self) -> u64 {
        match self.is_exempt.load(Ordering::Relaxed) {
            true => u64::MAX,
            false => self.connection_limit.load(Ordering::Relaxed),
        }
    }

    /// What a statement may take, whatever it inherits and others take.
    fn limit(&self) -> u64 {
        let statement = self.statement_limit.load(Ordering::Relaxed);
        statement.min(self.connection_limit())
    }

    /// What of so many bytes is the statement's own.
    fn own(&self, used: u64) -> u64 {
        let inherited = self.inherited.load(Ordering::Relaxed);
        used.saturating_sub(inherited + self.kept())
    }

    /// How much a buffer of a kind may have in memory: in bytes.
    pub fn buffer_bytes_max(&self, buffer: Buffer) -> usize {
        let share = self.limit().min(self.pool.limit()) / BUFFERS;
        let own = self.buffers[buffer as usize].load(Ordering::Relaxed);
        usize::try_from(share.min(own))
            .unwrap_or(usize::MAX)
            .max(UNCOUNTED_BYTES)
    }

    /// How much the row locks of a transaction may have, beyond which it locks whole tables and
    /// indexes instead: in bytes.
    pub fn row_lock_bytes_max(&self) -> usize {
        let share = self.limit().min(self.pool.limit()) / ROW_LOCKS;
        usize::try_from(share)
            .unwrap_or(usize::MAX)
            .max(UNCOUNTED_BYTES)
    }

    /// Whether the statement may take so many bytes more for what it can do without: neither does it fail
    /// for them later, nor do its buffers go to disk sooner.
    pub fn can_spare(&self, bytes: usize) -> bool {
        let in_use = |used: u64| used.saturating_add(bytes as u64);
        in_use(self.own(self.used())) <= self.limit() / 4
            && in_use(self.pool.used()) <= self.pool.limit() / 2
    }

    /// Whether a buffer of so many bytes is to go to disk.
    pub fn is_to_spill(&self, buffer: Buffer, bytes: usize) -> bool {
        if bytes > self.buffer_bytes_max(buffer) {
            return true;
        }
        let limit = self.limit();
        let least = usize::try_from(limit / PARTS_SPILLED_MIN).unwrap_or(usize::MAX);
        if bytes < least.clamp(UNCOUNTED_BYTES, SPILLED_BYTES_MIN) {
            return false;
        }
        let in_use = self.pool.used();
        let tables_limit = self.pool.tables_limit.load(Ordering::Relaxed);
        self.own(self.used()) > limit / 2
            || in_use > self.pool.limit() / 4 * 3
            || buffer == Buffer::Table && in_use > tables_limit
    }

    fn take(&self, bytes: u64, owner: Owner) -> Result<()> {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if owner == Owner::Session {
            self.kept.fetch_add(bytes, Ordering::Relaxed);
        }
        let admitted = self.admit(used, owner);
        if admitted.is_err() {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            if owner == Owner::Session {
                self.kept.fetch_sub(bytes, Ordering::Relaxed);
            }
        }
        admitted
    }

    fn admit(&self, used: u64, owner: Owner) -> Result<()> {
        let statement_limit = self.statement_limit.load(Ordering::Relaxed);
        match owner {
            Owner::Statement if self.own(used) > statement_limit => {
                return Err(Error::statement_memory_limit(statement_limit));
            }
            Owner::Session if self.kept() > statement_limit => {
                return Err(Error::session_memory_limit(statement_limit));
            }
            _ => {}
        }
        let connection_limit = self.connection_limit();
        if used > connection_limit {
            return Err(Error::connection_memory_limit(connection_limit, used));
        }
        let taken = self.taken.load(Ordering::Relaxed);
        if used > taken {
            let chunk = self.chunk.load(Ordering::Relaxed).max(1);
            let bytes = (used - taken).div_ceil(chunk).saturating_mul(chunk);
            let session = Tracking {
                is_tracked: self.is_tracked.load(Ordering::Relaxed),
                is_limited: !self.is_exempt.load(Ordering::Relaxed),
            };
            self.pool.take(bytes, session)?;
            self.taken.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    fn give_back(&self, bytes: u64, owner: Owner) {
        let used = self.used.fetch_sub(bytes, Ordering::Relaxed) - bytes;
        if owner == Owner::Session {
            self.kept.fetch_sub(bytes, Ordering::Relaxed);
        }
        let of_statements = used.saturating_sub(self.kept());
        if of_statements < self.inherited.load(Ordering::Relaxed) {
            self.inherited.store(of_statements, Ordering::Relaxed);
        }
        let chunk = self.chunk.load(Ordering::Relaxed);
        let taken = self.taken.load(Ordering::Relaxed);
        let spare = taken.saturating_sub(used);
        if used == 0 || spare > chunk {
            self.taken.fetch_sub(spare, Ordering::Relaxed);
            let is_tracked = self.is_tracked.load(Ordering::Relaxed);
            self.pool.give_back(spare, is_tracked);
        }
    }
}

/// The memory of one buffer, or of several that end together.
#[derive(Debug, Default)]
pub struct Charge {
    account: Option<Arc<MemoryAccount>>,
    used: usize,
    taken: usize,
    owner: Owner,
}

impl Charge {
    /// The buffer is about to take so many bytes more.
    ///
    /// # Errors
    /// 1037, 4081 and 4082 beyond a limit.
    #[inline]
    pub fn add(&mut self, account: &Arc<MemoryAccount>, bytes: usize) -> Result<()> {
        let used = self.used.saturating_add(bytes);
        if used > self.taken + UNCOUNTED_BYTES {
            self.take(account, used - UNCOUNTED_BYTES)?;
        }
        self.used = used;
        Ok(())
    }

    #[cold]
    fn take(&mut self, account: &Arc<MemoryAccount>, counted: usize) -> Result<()> {
        let more = (counted - self.taken).max(STEP_BYTES);
        account.take(more as u64, self.owner)?;
        self.taken += more;
        if self.account.is_none() {
            self.account = Some(Arc::clone(account));
        }
        Ok(())
    }

    /// Makes room in a vector for so many items more, which are charged first.
    ///
    /// # Errors
    /// As [`Charge::add`].
    #[inline]
    pub fn reserve<T>(
        &mut self,
        account: &Arc<MemoryAccount>,
        items: &mut Vec<T>,
        more: usize,
    ) -> Result<()> {
        match items.capacity() - items.len() >= more {
            true => Ok(()),
            false => self.grow(account, items, more),
        }
    }

    #[cold]
    fn grow<T>(
        &mut self,
        account: &Arc<MemoryAccount>,
        items: &mut Vec<T>,
        more: usize,
    ) -> Result<()> {
        let (before, needed) = (items.capacity(), items.len().saturating_add(more));
        let growth = match before * size_of::<T>() > DOUBLED_BYTES_MAX {
            true => before / 4,
            false => before.max(4),
        };
        let capacity = needed.max(before + growth);
        self.add(account, (capacity - before).saturating_mul(size_of::<T>()))?;
        items.reserve_exact(capacity - items.len());
        Ok(())
    }

    /// How many bytes the buffer has.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.used
    }

    /// The buffer has freed so many bytes. They stay its own until it is cleared or dropped.
    #[inline]
    pub fn sub(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
    }

    /// The buffer takes so many bytes now: more than before, or less.
    ///
    /// # Errors
    /// As [`Charge::add`].
    #[inline]
    pub fn set(&mut self, account: &Arc<MemoryAccount>, bytes: usize) -> Result<()> {
        if bytes > self.taken + UNCOUNTED_BYTES {
            self.take(account, bytes - UNCOUNTED_BYTES)?;
        }
        self.used = bytes;
        Ok(())
    }

    /// The buffer takes no more than so many bytes now, and what was taken beyond is given back.
    pub fn shrink(&mut self, bytes: usize) {
        self.used = bytes;
        let spare = self.taken.saturating_sub(bytes);
        if let Some(account) = &self.account {
            account.give_back(spare as u64, self.owner);
            self.taken -= spare;
        }
    }

    /// A statement begins, which inherits the buffer: its own limit doesn't count it.
    #[inline]
    pub fn hand_down(&self) {
        if let Some(account) = &self.account {
            account
                .inherited
                .store(self.taken as u64, Ordering::Relaxed);
        }
    }

    /// Gives everything back: the buffer is freed.
    pub fn clear(&mut self) {
        if let Some(account) = self.account.take() {
            account.give_back(self.taken as u64, self.owner);
        }
        (self.used, self.taken) = (0, 0);
    }
}

/// The memory of what a session keeps beyond its statements.
#[derive(Debug)]
pub struct Kept(Charge);

impl Default for Kept {
    fn default() -> Kept {
        let mut charge = Charge::default();
        charge.owner = Owner::Session;
        Kept(charge)
    }
}

impl Kept {
    /// The session is about to keep so many bytes more.
    ///
    /// # Errors
    /// As [`Charge::add`].
    #[inline]
    pub fn add(&mut self, account: &Arc<MemoryAccount>, bytes: usize) -> Result<()> {
        self.0.add(account, bytes)
    }

    /// The session keeps so many bytes less.
    #[inline]
    pub fn sub(&mut self, bytes: usize) {
        self.0.sub(bytes);
        if self.0.taken > self.0.used + KEPT_SPARE_BYTES {
            self.0.shrink(self.0.used);
        }
    }

    /// One thing is kept in place of another.
    ///
    /// # Errors
    /// As [`Charge::add`]: the other is still charged.
    #[inline]
    pub fn exchange(
        &mut self,
        account: &Arc<MemoryAccount>,
        (before, now): (usize, usize),
    ) -> Result<()> {
        match now > before {
            true => self.add(account, now - before),
            false => {
                self.sub(before - now);
                Ok(())
            }
        }
    }

    /// Nothing is kept any more.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl Drop for Charge {
    #[inline]
    fn drop(&mut self) {
        // Of a small buffer nothing was taken.
        if self.account.is_some() {
            self.clear();
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if !self.others.is_empty() {
            self.take_buffer();
        }
    }
}

/// Where bytes lie in an [`Arena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u64);

/// Many byte strings that go all at once.
///
/// They lie in chunks that don't move: as it grows nothing is copied, and freeing it takes no time
/// for each string.
#[derive(Debug, Default)]
pub struct Arena {
    /// Grows to a chunk's size before there are others: most arenas stay small.
    first: Vec<u8>,
    others: Vec<Vec<u8>>,
    charge: Charge,
}

impl Arena {
    /// An arena that uses a buffer's memory for its first bytes.
    pub fn in_buffer(mut buffer: Vec<u8>) -> Arena {
        buffer.clear();
        let mut arena = Arena::default();
        arena.first = buffer;
        arena
    }

    /// The first buffer, emptied; all else is freed.
    pub fn take_buffer(&mut self) -> Vec<u8> {
        let others = std::mem::take(&mut self.others);
        if others.len() > CHUNKS_MANY {
            reclaim(others);
        }
        self.charge.clear();
        let mut buffer = std::mem::take(&mut self.first);
        buffer.clear();
        buffer
    }

    /// Forgets all bytes, and keeps the memory of the first ones.
    pub fn clear(&mut self) {
        let buffer = self.take_buffer();
        if buffer.capacity() <= UNCOUNTED_BYTES {
            self.first = buffer;
        }
    }

    /// Where the next `len` bytes will lie, and the buffer that they are to be appended to.
    ///
    /// # Errors
    /// As [`Charge::add`].
    #[inline]
    pub fn room(
        &mut self,
        account: &Arc<MemoryAccount>,
        len: usize,
    ) -> Result<(Place, &mut Vec<u8>)> {
        let last = self.others.last().unwrap_or(&self.first);
        if last.capacity() - last.len() < len {
            self.add_room(account, len)?;
        }
        let number = self.others.len() as u64;
        let chunk = self.others.last_mut().unwrap_or(&mut self.first);
        Ok((Place(number << 32 | chunk.len() as u64), chunk))
    }

    #[cold]
    fn add_room(&mut self, account: &Arc<MemoryAccount>, len: usize) -> Result<()> {
        if self.others.is_empty() && self.first.len() + len <= CHUNK_BYTES {
            return self.charge.reserve(account, &mut self.first, len);
        }
        let mut chunk = Vec::new();
        let bytes = len.max(CHUNK_BYTES);
        self.charge.reserve(account, &mut chunk, bytes)?;
        self.others.push(chunk);
        Ok(())
    }

    /// How many bytes it takes.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.charge.bytes()
    }

    /// Keeps bytes.
    ///
    /// # Errors
    /// As [`Charge::add`].
    pub fn push(&mut self, account: &Arc<MemoryAccount>, bytes: &[u8]) -> Result<Place> {
        let (place, chunk) = self.room(account, bytes.len())?;
        chunk.extend_from_slice(bytes);
        Ok(place)
    }

    /// The bytes from a place on, and what else lies behind them.
    #[inline]
    pub fn from(&self, place: Place) -> &[u8] {
        let chunk = match (place.0 >> 32) as usize {
            0 => &self.first,
            number => &self.others[number - 1],
        };
        &chunk[(place.0 & u64::from(u32::MAX)) as usize..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    const MIB: usize = 1 << 20;

    fn account() -> Arc<MemoryAccount> {
        let account = MemoryAccount::new(Arc::default());
        account.set_statement_limit(16 << 20);
        Arc::new(account)
    }

    #[test]
    fn small_buffers_are_not_counted_and_large_ones_until_they_go() {
        let account = account();
        let mut small = Charge::default();
        small.add(&account, 1000).unwrap();
        assert_eq!(account.used(), 0);
        let mut large = Charge::default();
        large.add(&account, MIB).unwrap();
        let used = account.used() as usize;
        assert!((MIB - UNCOUNTED_BYTES..=MIB).contains(&used), "{used}");
        assert!(account.pool.used() >= account.used());
        drop(large);
        assert_eq!((account.used(), account.pool.used()), (0, 0));
    }

    #[test]
    fn each_limit_refuses_with_its_own_error_and_takes_nothing() {
        let account = account();
        let mut charge = Charge::default();
        let refused = charge.add(&account, 17 * MIB).unwrap_err();
        assert!(refused.is(ErrorKind::StatementMemoryLimit), "{refused}");
        account.set_connection_limit(8 << 20);
        let refused = charge.add(&account, 9 * MIB).unwrap_err();
        assert!(refused.is(ErrorKind::ConnectionMemoryLimit), "{refused}");
        account.set_tracked(true);
        let beside = Arc::new(account.with_same_limits());
        let mut others = Charge::default();
        others.add(&beside, 5 * MIB).unwrap();
        account.pool.set_limits(8 << 20, 0);
        let refused = charge.add(&account, 5 * MIB).unwrap_err();
        assert!(
            refused.is(ErrorKind::GlobalConnectionMemoryLimit),
            "{refused}"
        );
        assert_eq!(account.used(), 0);
        drop(others);
        charge.add(&account, 5 * MIB).unwrap();
    }

    #[test]
    fn what_a_statement_inherits_counts_for_the_connection_but_not_for_it() {
        let account = account();
        let mut changes = Charge::default();
        changes.set(&account, 10 * MIB).unwrap();
        changes.hand_down();
        account.set_connection_limit(24 << 20);
        let mut own = Charge::default();
        own.add(&account, 8 * MIB).unwrap();
        let refused = own.add(&account, 7 * MIB).unwrap_err();
        assert!(refused.is(ErrorKind::ConnectionMemoryLimit), "{refused}");
        account.set_connection_limit(u64::MAX);
        let refused = own.add(&account, 9 * MIB).unwrap_err();
        assert!(refused.is(ErrorKind::StatementMemoryLimit), "{refused}");
        changes.shrink(MIB);
        drop(own);
        assert_eq!(account.used() as usize, MIB);
        drop(changes);
        assert_eq!((account.used(), account.pool.used()), (0, 0));
        // The next transaction's changes are the statement's own.
        let mut changes = Charge::default();
        let refused = changes.set(&account, 17 * MIB).unwrap_err();
        assert!(refused.is(ErrorKind::StatementMemoryLimit), "{refused}");
    }

    #[test]
    fn an_arena_gives_back_what_was_put_into_it() {
        let account = account();
        let mut arena = Arena::default();
        let of = |n: usize| vec![n as u8; n * 37 % 5000];
        let places: Vec<Place> = (0..2000)
            .map(|n| arena.push(&account, &of(n)).unwrap())
            .collect();
        assert!(account.used() > 4 << 20);
        for (n, place) in places.into_iter().enumerate() {
            let bytes = of(n);
            assert_eq!(arena.from(place)[..bytes.len()], bytes);
        }
        let long = vec![7; 3 * MIB];
        let place = arena.push(&account, &long).unwrap();
        assert_eq!(arena.from(place), long);
        arena.clear();
        assert_eq!(account.used(), 0);
        assert!(arena.push(&account, &vec![0; 20 * MIB]).is_err());
    }

    #[test]
    fn the_machine_has_some_memory() {
        assert!(machine_bytes() > 64 << 20);
    }
}
