//! A thread that serves one connection for a while, because its statements wait for the disk.
//!
//! ```text
//!   the loop's thread ── statement ── reads the disk ── replies ── waits for the next one ── reads the disk ── replies ── …
//!                                       │ loop
//!   another thread    ──────────────────┴──► loop ── …
//! ```
//!
//! To leave each of the reads to another thread, and to give the connection back after it, is to wake two
//! threads more than the client and the disk do. So a thread that has a place at the disk
//! ([`DiskThreads`](crate::disk_threads::DiskThreads)) keeps its connection, if the connection's statements read it
//! often, and waits for its next request itself. Meanwhile the loop hears nothing of the connection but that
//! its client is gone.
//!
//! The connection goes back to the loop when its client pauses, when it waits for anything else
//! (a lock, a commit, a reader of its reply), when its statements find what they want in memory or compute,
//! when others queue for a place at the disk, and now and then anyway: what else a loop does for a connection is done then.

use std::sync::atomic::Ordering;
use std::time::Duration;

use mio::Token;

use crate::connection::{Connection, NextState};
use crate::io_buffers::IoBuffers;
use crate::thread_pool::{PoolThread, ThreadPool};

use super::{give_back, serve};

/// How long the thread waits for the next request. An application beside the server that has one asks
/// within a fraction of it.
const PATIENCE: Duration = Duration::from_millis(2);

/// So many turns, and the connection goes back to the loop.
const TURNS_MAX: usize = 256;

/// A thread without a loop serves a connection whose statements read the disk, and others of its turns.
pub(crate) fn serve_at_disk(
    pool: &ThreadPool,
    thread: &PoolThread,
    token: Token,
    mut connection: Box<Connection>,
    buffers: &mut IoBuffers,
) {
    let next = serve(&mut connection, buffers);
    go_on(pool, thread, token, connection, next, buffers);
}

/// A thread that has no loop, or has it no more, has served a connection: goes on with it, or returns it.
pub(super) fn go_on(
    pool: &ThreadPool,
    thread: &PoolThread,
    token: Token,
    mut connection: Box<Connection>,
    mut next: NextState,
    buffers: &mut IoBuffers,
) {
    connection.takes_long = thread.priority.is_computing();
    // The turn that the reply would be held back for is over.
    if matches!(next, NextState::ReplyHeld) {
        next = connection.send_held();
    }
    if may_go_on(pool, thread, &connection, &next) && connection.watch_end(token) {
        buffers.holds_replies = false;
        for _ in 0..TURNS_MAX {
            if !connection.has_request_within(PATIENCE) {
                break;
            }
            let control = connection.control();
            let interrupt = control.map(|control| control.interrupt.clone());
            thread.priority.begin_apart(interrupt, false);
            next = serve(&mut connection, buffers);
            connection.takes_long = thread.priority.is_computing();
            let turns = &connection.inbox().traffic.dedicated_turns;
            turns.fetch_add(1, Ordering::Relaxed);
            if !may_go_on(pool, thread, &connection, &next) {
                break;
            }
        }
        if !connection.watch_requests(token) {
            next = NextState::Close;
        }
    }
    give_back(token, connection, next);
}

/// Whether a thread may serve this connection alone.
fn may_go_on(
    pool: &ThreadPool,
    thread: &PoolThread,
    connection: &Connection,
    next: &NextState,
) -> bool {
    matches!(next, NextState::Idle)
        && !connection.takes_long
        && connection.often_reads_disk()
        && thread.is_at_disk()
        && !pool.disk.has_queue()
}
