//! The status variables that the server counts: a row each.
//!
//! Source: MySQL 8.4 Reference Manual, 7.1.10 "Server Status Variables". Those about moved
//! connections, threads that wait for the disk, shared memory and the loopback fast path are Porpoise's own.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::server_state::ServerState;
use crate::traffic::TrafficCounters;

/// The names of SHOW STATUS that the server adds to the engine's, with their values.
pub(crate) fn status_variables(server: &ServerState) -> Vec<(&'static str, u64)> {
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let sum = |which: fn(&TrafficCounters) -> &AtomicU64| {
        let workers = server.inboxes().iter().map(|inbox| &inbox.traffic);
        let all = workers.chain([&server.traffic]);
        all.map(|traffic| load(which(traffic))).sum()
    };
    let threads = server.thread_pool.counts();
    let commands = sum(|traffic| &traffic.commands);
    let mut values = vec![
        ("Aborted_clients", load(&server.aborted_clients)),
        ("Aborted_connects", load(&server.aborted_connects)),
        ("Bytes_received", sum(|traffic| &traffic.bytes_received)),
        ("Bytes_sent", sum(|traffic| &traffic.bytes_sent)),
        ("Connection_errors_accept", load(&server.accept_errors)),
        ("Connection_errors_internal", 0),
        (
            "Connection_errors_max_connections",
            load(&server.refused_full),
        ),
        ("Connection_errors_peer_address", 0),
        ("Connection_errors_select", 0),
        ("Connection_errors_tcpwrap", 0),
        ("Dedicated_turns", sum(|traffic| &traffic.dedicated_turns)),
        ("Disk_turns", sum(|traffic| &traffic.disk_turns)),
        ("Locked_connects", load(&server.locked_connects)),
        (
            "Loopback_fast_path_connections",
            load(&server.fast_path_accepted),
        ),
        (
            "Loopback_fast_path_fallbacks",
            load(&server.fast_path_declined),
        ),
        ("Max_used_connections", server.slots.max_used() as u64),
        ("Max_used_connections_time", server.slots.max_used_at()),
        ("Moved_connections", sum(|traffic| &traffic.migrations)),
        ("Queries", commands),
        ("Questions", commands),
        (
            "Shared_memory_connections",
            sum(|traffic| &traffic.ring_connections),
        ),
        (
            "Shared_memory_spins_lost",
            sum(|traffic| &traffic.spins_lost),
        ),
        ("Shared_memory_spins_won", sum(|traffic| &traffic.spins_won)),
        ("Shared_memory_wakeups", sum(|traffic| &traffic.wakeups)),
        ("Slow_queries", load(&server.query_logs.slow_statements)),
        ("Threads_cached", threads.standbys),
        ("Threads_created", threads.created),
    ];
    values.extend(server.tls.counters.values());
    values
}
