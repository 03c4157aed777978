//! A thread that serves one connection for a while, because its statements wait for the disk.
//!
//! ```text
//!   the loop's thread ── statement ── reads the disk ── replies ── waits for the next one ── reads the disk ── replies ── …
//!                                       │ loop
//!   another thread    ──────────────────┴──► loop ── …
//! ```
//!
//! To hand the loop over at each of the reads, and the connection back after it, is to wake two threads
//! more than the client and the disk do. So a thread whose loop was handed over as it read the disk
//! keeps its connection, if the connection's statements read it often, and waits for its next request
//! itself. Meanwhile the loop hears nothing of the connection but that its client is gone.
//!
//! The connection goes back to the loop when its client pauses, when it waits for anything else
//! (a commit, a reader of its reply), when its statements find what they want in memory or compute, and
//! now and then anyway: what else a loop does for a connection is done then.

use std::sync::atomic::Ordering;
use std::time::Duration;

use mio::Token;

use crate::connection::{Connection, NextState};
use crate::io_buffers::IoBuffers;
use crate::thread_pool::PoolThread;

use super::{Worker, give_back, serve};

/// How long the thread waits for the next request. An application beside the server that has one asks
/// within a fraction of it.
const PATIENCE: Duration = Duration::from_millis(2);

/// So many turns, and the connection goes back to the loop.
const TURNS_MAX: usize = 256;

impl Worker {
    /// Another thread has the loop by now, and this one has served a connection: goes on with it, or
    /// returns it.
    pub(super) fn leave_loop(
        &self,
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
        if is_for_a_thread(&connection, &next)
            && let Some(_place) = self.server.thread_pool.dedicate()
            && connection.watch_end(&self.registry, token)
        {
            buffers.holds_replies = false;
            for _ in 0..TURNS_MAX {
                if !connection.has_request_within(PATIENCE) {
                    break;
                }
                let interrupt = connection
                    .control()
                    .map(|control| control.interrupt.clone());
                thread.priority.begin_apart(interrupt, false);
                next = serve(&mut connection, buffers);
                connection.takes_long = thread.priority.is_computing();
                let turns = &self.inbox.traffic.dedicated_turns;
                turns.fetch_add(1, Ordering::Relaxed);
                if !is_for_a_thread(&connection, &next) {
                    break;
                }
            }
            if !connection.watch_requests(&self.registry, token) {
                next = NextState::Close;
            }
        }
        give_back(token, connection, next);
    }
}

fn is_for_a_thread(connection: &Connection, next: &NextState) -> bool {
    matches!(next, NextState::Idle) && !connection.takes_long && connection.often_reads_disk()
}
