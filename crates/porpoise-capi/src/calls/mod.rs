//! The functions on a `MYSQL`: connecting, statements as text, the session, and facts.
//!
//! Each is thin: look whether it may be called now ([`Handle::ready`]), have the connection do it,
//! and note the outcome in the public fields. [`with`] does what all of them have in common.

mod charsets;
mod connection;
mod info;
mod options;
mod plugins;
mod query;
mod session;
mod unsupported;

pub use charsets::*;
pub use connection::*;
pub use info::*;
pub use options::*;
pub use plugins::*;
pub use query::*;
pub use session::*;
pub use unsupported::*;

use crate::abi::{Mysql, Text, bytes_of};
use crate::border;
use crate::failure::Failure;
use crate::session::Handle;
use std::ffi::{c_char, c_int, c_ulong};

/// Calls `work` on a connection; `failed` says what the call returns if that fails.
#[inline]
fn with<T: Copy>(
    mysql: Option<&mut Mysql>,
    failed: T,
    work: impl FnOnce(&mut Handle<'_>) -> Result<T, Failure>,
) -> T {
    border(failed, || {
        let Some(mut handle) = mysql.and_then(Mysql::session) else {
            return failed;
        };
        work(&mut handle).unwrap_or_else(|failure| {
            let failure = handle.first_failure(failure);
            handle.fail(&failure);
            failed
        })
    })
}

/// A command whose reply is OK.
fn command(
    mysql: Option<&mut Mysql>,
    work: impl FnOnce(&mut porpoise_client::Connection) -> Result<(), porpoise_client::Error>,
) -> c_int {
    with(mysql, 1, |handle| {
        handle.ready()?;
        work(handle.session.connection()?)?;
        handle.tell_end();
        Ok(0)
    })
}

/// A text with its length, or `-1` for one up to its zero byte.
pub fn text_of<'a>(sql: *const c_char, length: c_ulong) -> &'a [u8] {
    match length {
        c_ulong::MAX => Text(sql).bytes().unwrap_or_default(),
        length => bytes_of(sql, length as usize),
    }
}
