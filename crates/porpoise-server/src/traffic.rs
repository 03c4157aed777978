//! Counters of what goes over a worker's connections.

use std::sync::atomic::AtomicU64;

/// Each worker counts its own connections' traffic; the counters are added up when somebody asks.
#[derive(Debug, Default)]
pub(crate) struct TrafficCounters {
    pub bytes_sent: AtomicU64,
    pub bytes_received: AtomicU64,
    pub commands: AtomicU64,
    /// Connections that were handed to another worker.
    pub migrations: AtomicU64,
    /// Turns of connections that a thread of their own served, as their statements waited for the disk.
    pub dedicated_turns: AtomicU64,
    /// Turns that the loop left to a thread that may wait for the disk.
    pub disk_turns: AtomicU64,
    /// Connections over shared memory so far.
    pub ring_connections: AtomicU64,
    /// How often a sleeping client of shared memory was woken.
    pub wakeups: AtomicU64,
    /// Waits for rings in which spinning sufficed.
    pub spins_won: AtomicU64,
    /// Waits for rings that ended in sleep.
    pub spins_lost: AtomicU64,
}
