//! `init_connect`: statements that run for each client that logs in, before its own.
//!
//! Clients with CONNECTION_ADMIN are spared, so that they can come in and mend a statement that
//! fails; and those that must change their password first, as nothing else runs for them.
//!
//! Source: MySQL 8.4 Reference Manual, 7.1.8, `init_connect`.

use porpoise_engine::reply::Unread;
use porpoise_engine::{Engine, Error, Result, Session};

/// Runs what `init_connect` says in a session that has just begun.
///
/// # Errors
/// 1184 if a statement fails: the connection ends.
pub(crate) fn run(engine: &Engine, session: &mut Session) -> Result<()> {
    let statements = engine.variables().get_text("init_connect");
    if statements.is_empty() || session.is_spared_init_connect() {
        return Ok(());
    }
    run_all(session, statements.as_bytes()).map_err(|error| {
        tracing::warn!(
            "connection {} ({}@{}) is closed, as init_connect failed: {}",
            session.id(),
            session.state.user,
            session.state.host,
            error.message()
        );
        Error::new_abort_warning(
            session.id(),
            session.current_schema().unwrap_or("unconnected"),
            &session.state.user,
            &session.state.host,
            "init_connect command failed",
        )
    })?;
    // The client begins with what they have left, which is no change to it.
    session.take_state_changes();
    Ok(())
}

fn run_all(session: &mut Session, statements: &[u8]) -> Result<()> {
    let mut rest = statements;
    while !rest.trim_ascii().is_empty() {
        let outcome = session.query(rest, &mut Unread)?;
        if let Some(commit) = outcome.commit {
            commit.wait()?;
        }
        rest = rest.get(outcome.rest..).unwrap_or_default();
    }
    Ok(())
}
