//! The thread that refreshes the statistics of tables that have changed (`innodb_stats_auto_recalc`).
//!
//! It looks every few seconds, if anything was committed since it last looked. Statements don't take
//! part: what has changed is counted by storage, when it keeps versions of rows. The thread holds
//! the database no longer than it is at work, so that it doesn't keep it open.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use porpoise_core::error::Result;
use porpoise_ddl::statistics;
use porpoise_session::shared::Shared;

/// How often it looks.
const INTERVAL: Duration = Duration::from_secs(10);

/// What ends the thread when it is dropped.
pub(crate) type Ending = SyncSender<()>;

/// Starts the thread. A database without one is served as well, by statistics that get old.
pub(crate) fn start(shared: &Arc<Shared>) -> Ending {
    let (ending, ended) = sync_channel(0);
    let shared = Arc::downgrade(shared);
    let thread = std::thread::Builder::new().name("porpoise-stats".into());
    if let Err(error) = thread.spawn(move || run(&shared, &ended)) {
        tracing::warn!(%error, "statistics of tables are refreshed by ANALYZE TABLE alone");
    }
    ending
}

fn run(shared: &Weak<Shared>, ended: &Receiver<()>) {
    let mut commits_seen = 0;
    while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let commits = shared.store.stats().commits;
        if commits == commits_seen || shared.variables.get_u64("innodb_stats_auto_recalc") == 0 {
            continue;
        }
        commits_seen = commits;
        if let Err(error) = refresh(&shared) {
            tracing::warn!("statistics of tables are not refreshed: {}", error.cause());
        }
    }
}

/// Refreshes what is outdated, until the database is closed.
fn refresh(shared: &Shared) -> Result<()> {
    match statistics::refresh(shared, &|| shared.store.is_closed()) {
        Err(_) if shared.store.is_closed() => Ok(()),
        refreshed => refreshed,
    }
}
