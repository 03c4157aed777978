//! What the rivals promise, on real threads.

use porpoise_locks::{Deadline, Owner, ReaderWriter};

use super::{Morrison, Native, Portable, TwoMutex};

#[path = "../../../porpoise-locks/src/promises.rs"]
mod promises;

/// Tests of each rival.
macro_rules! of_each {
    ($($name:ident $lock:ident;)*) => {
        $(mod $name {
            use super::*;

            #[test]
            fn readers_recurse_and_a_writer_waits_for_the_last() {
                promises::readers_recurse_and_a_writer_waits_for_the_last(&$lock::new());
            }

            #[test]
            fn a_writer_is_the_owner_on_any_thread() {
                promises::a_writer_is_the_owner_on_any_thread(&$lock::new());
            }

            #[test]
            fn many_threads_never_see_half_a_change() {
                promises::stress(&$lock::new(), stringify!($lock), || ());
            }
        })*
    };
}

of_each! {
    of_portable Portable;
    of_native Native;
    of_two_mutex TwoMutex;
    of_morrison Morrison;
}

#[test]
fn sizes_are_as_documented() {
    assert_eq!(size_of::<Portable>(), 32);
    assert_eq!(size_of::<Native>(), 44);
    assert_eq!(size_of::<TwoMutex>(), 36);
    assert_eq!(size_of::<Morrison>(), 32);
}
