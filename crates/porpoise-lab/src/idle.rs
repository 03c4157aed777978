//! Sessions that sleep for long, of any MySQL-compatible server, and their end.
//!
//! For servers whose `wait_timeout` can't be trusted: because clients set it, because it is meant
//! for others, or because a pool forgets its connections. `SHOW PROCESSLIST` is what all servers
//! have, whatever their version.

use std::time::Duration;

use porpoise_client::{Connection, Error};

/// Error 1094: there is no such session any more.
const UNKNOWN_SESSION: u16 = 1094;

/// A session that waits for its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleSession {
    /// Its id, as KILL takes it.
    pub id: u64,
    /// The account's user.
    pub user: String,
    /// Where its client is.
    pub host: String,
    /// Its current schema; empty for none.
    pub schema: String,
    /// How long it has slept, in whole seconds.
    pub idle: Duration,
}

/// What became of a session that was to be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It is ended.
    Now,
    /// It had ended, or was at work again.
    NotIdle,
}

/// The sessions that have slept for `older_than` at least, the longest first: those that the account
/// may see, without its own.
pub fn sessions(
    connection: &mut Connection,
    older_than: Duration,
) -> Result<Vec<IdleSession>, Error> {
    let own = u64::from(connection.id());
    let rows = connection.rows("SHOW FULL PROCESSLIST")?;
    let mut sessions = Vec::new();
    for row in &rows {
        let id: u64 = row.get(0)?;
        let command: String = row.get(4)?;
        // MariaDB has it with decimals.
        let seconds: Option<f64> = row.get(5)?;
        let idle = Duration::from_secs(seconds.unwrap_or(0.0).max(0.0) as u64);
        if id != own && command == "Sleep" && idle >= older_than {
            sessions.push(IdleSession {
                id,
                user: row.get(1)?,
                host: row.get(2)?,
                schema: row.get::<Option<String>>(3)?.unwrap_or_default(),
                idle,
            });
        }
    }
    sessions.sort_by_key(|session| (std::cmp::Reverse(session.idle), session.id));
    Ok(sessions)
}

/// Whether the account's own grants let it see the sessions of others: not those of its roles.
pub fn sees_all(connection: &mut Connection) -> Result<bool, Error> {
    let grants = connection.rows("SHOW GRANTS")?;
    for row in &grants {
        let grant: String = row.get(0)?;
        let privileges = grant.split_once(" ON *.* ").map(|(before, _)| before);
        let Some(privileges) = privileges.and_then(|before| before.strip_prefix("GRANT ")) else {
            continue;
        };
        let mut names = privileges.split(", ");
        if names.any(|name| matches!(name, "ALL PRIVILEGES" | "PROCESS")) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Ends a session, if it still sleeps: its client may have come back since the list was made.
pub fn end(connection: &mut Connection, session: &IdleSession) -> Result<Ended, Error> {
    let still = sessions(connection, session.idle)?;
    if !still
        .iter()
        .any(|other| other.id == session.id && other.user == session.user)
    {
        return Ok(Ended::NotIdle);
    }
    match connection.run(format!("KILL CONNECTION {}", session.id)) {
        Ok(_) => Ok(Ended::Now),
        Err(error) if error.number() == Some(UNKNOWN_SESSION) => Ok(Ended::NotIdle),
        Err(error) => Err(error),
    }
}
