//! Reader-writer locks for metadata: readers are many, short and may recurse (statements on a
//! table), writers are rare (DDL).
//!
//! [`PreferReader`] is the lock, of one word; [`ReaderWriter`] is what any such lock can do, so
//! that others can be measured against it. It isn't a lock around a value: a metadata lock is held
//! by a session, which moves between threads, so whoever says "unlock" need not be the thread that
//! said "lock"; writers are known by an [`Owner`].
//!
//! Preferring readers means: a reader enters whenever no writer is *inside*. So a reader that is in
//! may enter again without deadlock, and a waiting writer holds up nobody. The price is that
//! writers starve while readers never stop overlapping. [`PreferReader::fair`] takes the other
//! side: newcomers wait behind a waiting writer.
//!
//! [`Published`] lets others look at what a thread uses at the moment.
//!
//! [`light_fence`] and [`heavy_fence`] are for a flag beside a lock, which decides who may enter
//! (the engine has one, so that DDL isn't starved): a reader enters or leaves, has the light fence,
//! then looks at the flag; a writer raises the flag, has the heavy fence, then looks by
//! [`ReaderWriter::try_exclusive`] whether readers are inside.
//!
//! ```
//! use porpoise_locks::{Deadline, Owner, PreferReader, ReaderWriter};
//! use std::time::Duration;
//!
//! let lock = PreferReader::new();
//! let me = Owner::new(7);
//! lock.shared();
//! assert!(lock.try_shared(), "readers recurse");
//! assert!(!lock.exclusive_until(me, &Deadline::after(Duration::from_millis(1))));
//! lock.unlock_shared();
//! lock.unlock_shared();
//! lock.exclusive(me);
//! assert!(lock.try_exclusive(me), "the owner recurses");
//! assert!(!lock.try_exclusive(Owner::new(8)));
//! lock.unlock_exclusive();
//! lock.unlock_exclusive();
//! assert_eq!(lock.read(|| 42), 42);
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod base;
mod prefer_reader;
mod published;
mod reader_writer;

#[cfg(all(test, not(miri)))]
mod modelled;
#[cfg(test)]
mod tests;

pub use base::{Deadline, heavy_fence, light_fence, prepare_fences};
pub use prefer_reader::PreferReader;
pub use published::Published;
pub use reader_writer::{Owner, ReaderWriter};
