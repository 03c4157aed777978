//! A drop-in for `libmariadb.so.3`: MySQL's C API over every way in, the embedded engine included.
//!
//! Programs that are linked to Debian's library load this one in its place, with `LD_LIBRARY_PATH`
//! or `LD_PRELOAD`, and reach Porpoise over TCP, Unix sockets and shared memory, run its engine in
//! their own process, or go on talking to MariaDB and MySQL. Nothing in them has to be built anew:
//! symbols, their versions and the layout of structures are the same.
//!
//! ```text
//!   program ─► exports ─► calls, result, statement ─► session: porpoise_client::Connection ─► a server
//!              symbols    what a call means             │                            └──────► embedded: porpoise::Database
//!                                                       └─ abi: structures that programs see
//! ```
//!
//! In the order a program meets them:
//!
//! 1. [`exports`]: the symbols and their versions. [`abi`]: the structures, and the contract at the
//!    border.
//! 2. [`calls`]: the functions on a `MYSQL`. [`session`]: what is behind one. [`settings`]:
//!    `mysql_options()` and option files.
//! 3. [`route`]: which way in, from arguments, options and the environment. [`embedded`]: the
//!    engine in this process.
//! 4. [`result`]: rows as text, over [`columns`]. [`statement`]: prepared statements; [`convert`]
//!    is values to and from buffers.
//! 5. [`nonblocking`]: calls that return where they would wait; [`nonblocking_calls`] are their
//!    functions.
//! 6. [`stack`]: where the engine runs. [`charset`], [`infile`], [`tracking`], [`failure`]: one
//!    subject each.
//!
//! `unsafe` is where pointers from C are followed, each place with its argument. No panic crosses
//! the border: every call that does more than read a field runs inside [`border`].

#![warn(missing_docs)]

mod abi;
mod calls;
mod charset;
mod columns;
mod convert;
mod embedded;
mod exports;
mod failure;
mod infile;
#[cfg(test)]
mod layout;
mod nonblocking;
mod nonblocking_calls;
mod result;
mod route;
mod session;
mod settings;
mod stack;
mod statement;
mod tracking;

/// Runs what a call does; should it panic, the call fails as `failed` and the program goes on.
#[inline]
fn border<T>(failed: T, call: impl FnOnce() -> T) -> T {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).unwrap_or(failed)
}
