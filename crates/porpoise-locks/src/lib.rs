//! Reader-writer locks for metadata: readers are many, short and may recurse (statements on a table), writers are rare
//! (DDL).
//!
//! What it is: five locks behind one trait, [`ReaderWriter`], so that they can be measured against each other and put
//! in each other's place. What it is not: a lock around a value. A metadata lock is held by a session, which moves
//! between threads, so whoever says "unlock" need not be the thread that said "lock"; writers are known by an [`Owner`].
//!
//! | lock | made of | bytes | whom it prefers | recursion |
//! | --- | --- | --- | --- | --- |
//! | [`Portable`] | a mutex and two condition variables | 32 | readers | readers, owner |
//! | [`Native`] | the platform's own lock around the state | 44 | readers; scoped: whom the platform prefers | held: readers, owner; scoped: none |
//! | [`TwoMutex`] | two mutexes and an event | 36 | readers | readers, owner |
//! | [`Morrison`] | a spin lock around the state, events when needed | 32 | readers | readers, owner |
//! | [`PreferReader`] | one word | 8 | readers, or whoever came first | readers, owner |
//!
//! Preferring readers means: a reader enters whenever no writer is *inside*. So a reader that is in may enter again
//! without deadlock, and a waiting writer holds up nobody. The price is that writers starve while readers never
//! stop overlapping. [`PreferReader::fair`] takes the other side: newcomers wait behind a waiting writer.
//!
//! Who decides by a flag of their own beside a lock who may enter (as the engine does, so that DDL isn't starved) has
//! [`light_fence`] and [`heavy_fence`] for it: a reader enters or leaves, then looks at the flag; who raises the flag has the heavy
//! fence and then looks, by [`ReaderWriter::try_exclusive`], whether readers are inside.
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

mod any;
mod base;
mod event;
mod morrison;
mod native;
mod portable;
mod prefer_reader;
mod reader_writer;
mod spin;
mod two_mutex;

#[cfg(all(test, not(miri)))]
mod modelled;
#[cfg(test)]
mod tests;

pub use any::{AnyLock, Kind};
pub use base::{Deadline, heavy_fence, light_fence, prepare_fences};
pub use morrison::Morrison;
pub use native::Native;
pub use portable::Portable;
pub use prefer_reader::PreferReader;
pub use reader_writer::{Owner, ReaderWriter};
pub use two_mutex::TwoMutex;
