//! What all locks can do.

use std::num::NonZeroU32;

use super::base::Deadline;

/// Who writes: a session, a thread, whatever the user numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner(NonZeroU32);

impl Owner {
    /// The owner of a number. Numbers are told apart modulo 2^32 - 1.
    pub const fn new(number: u64) -> Owner {
        let number = (number % u32::MAX as u64) as u32;
        match NonZeroU32::new(number) {
            Some(number) => Owner(number),
            None => Owner(NonZeroU32::MAX),
        }
    }

    /// The number, never 0.
    pub const fn number(self) -> u32 {
        self.0.get()
    }
}

/// A lock that many readers or one writer hold.
///
/// Any thread may unlock what any other has locked. A writer must not be among the readers when it
/// asks to write: there is no upgrade, which two could ask for at a time and neither get.
pub trait ReaderWriter: Send + Sync {
    /// Enters as a reader, if that needs no waiting.
    fn try_shared(&self) -> bool;

    /// Enters as a reader; false when the deadline passed first.
    fn shared_until(&self, deadline: &Deadline) -> bool;

    /// Leaves as a reader.
    fn unlock_shared(&self);

    /// Enters as the writer, if that needs no waiting. The writer inside may enter again.
    fn try_exclusive(&self, owner: Owner) -> bool;

    /// Enters as the writer; false when the deadline passed first.
    fn exclusive_until(&self, owner: Owner, deadline: &Deadline) -> bool;

    /// Leaves as the writer, as often as it entered.
    fn unlock_exclusive(&self);

    /// The writer, who entered once, becomes a reader; nobody else writes in between.
    fn downgrade(&self);

    /// Enters as a reader, however long it takes.
    fn shared(&self) {
        self.shared_until(&Deadline::Never);
    }

    /// Enters as the writer, however long it takes.
    fn exclusive(&self, owner: Owner) {
        self.exclusive_until(owner, &Deadline::Never);
    }

    /// Runs `f` as a reader.
    fn read<R>(&self, f: impl FnOnce() -> R) -> R
    where
        Self: Sized,
    {
        self.shared();
        let _leave = Leave(|| self.unlock_shared());
        f()
    }

    /// Runs `f` as the writer.
    fn write<R>(&self, owner: Owner, f: impl FnOnce() -> R) -> R
    where
        Self: Sized,
    {
        self.exclusive(owner);
        let _leave = Leave(|| self.unlock_exclusive());
        f()
    }
}

/// Leaves a lock at the end of a scope, panic or not.
pub(super) struct Leave<F: FnMut()>(pub(super) F);

impl<F: FnMut()> Drop for Leave<F> {
    #[inline]
    fn drop(&mut self) {
        (self.0)();
    }
}
