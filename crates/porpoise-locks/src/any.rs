//! One of the five locks, chosen while the program runs.

use super::base::Deadline;
use super::{Morrison, Native, Owner, Portable, PreferReader, ReaderWriter, TwoMutex};

/// Which lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// [`Portable`]
    Portable,
    /// [`Native`]
    Native,
    /// [`TwoMutex`]
    TwoMutex,
    /// [`Morrison`]
    Morrison,
    /// [`PreferReader`]
    #[default]
    PreferReader,
}

impl Kind {
    /// All of them, the oldest first.
    pub const ALL: [Kind; 5] = [
        Kind::Portable,
        Kind::Native,
        Kind::TwoMutex,
        Kind::Morrison,
        Kind::PreferReader,
    ];

    /// The names, in the order of [`Kind::ALL`].
    pub const NAMES: &'static [&'static str] = &[
        "portable",
        "native",
        "two_mutex",
        "morrison",
        "prefer_reader",
    ];

    /// Its name, as options spell it.
    pub fn name(self) -> &'static str {
        Kind::NAMES[self as usize]
    }

    /// The kind of a name, in any case.
    pub fn by_name(name: &str) -> Option<Kind> {
        Kind::ALL
            .into_iter()
            .find(|kind| kind.name().eq_ignore_ascii_case(name))
    }
}

/// A lock of any kind. Of the ordinary kind, [`PreferReader`], it costs one branch that is always foretold; the others are
/// for experiments, and lie elsewhere.
pub struct AnyLock(Either);

enum Either {
    PreferReader(PreferReader),
    Other(Kind, Box<dyn ReaderWriter>),
}

impl AnyLock {
    /// A free lock.
    pub fn new(kind: Kind) -> AnyLock {
        let other: Box<dyn ReaderWriter> = match kind {
            Kind::PreferReader => return AnyLock(Either::PreferReader(PreferReader::new())),
            Kind::Portable => Box::new(Portable::new()),
            Kind::Native => Box::new(Native::new()),
            Kind::TwoMutex => Box::new(TwoMutex::new()),
            Kind::Morrison => Box::new(Morrison::new()),
        };
        AnyLock(Either::Other(kind, other))
    }

    /// Which lock it is.
    pub fn kind(&self) -> Kind {
        match &self.0 {
            Either::PreferReader(_) => Kind::PreferReader,
            Either::Other(kind, _) => *kind,
        }
    }
}

impl Default for AnyLock {
    fn default() -> AnyLock {
        AnyLock::new(Kind::default())
    }
}

impl std::fmt::Debug for AnyLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AnyLock").field(&self.kind()).finish()
    }
}

impl ReaderWriter for AnyLock {
    #[inline]
    fn try_shared(&self) -> bool {
        match &self.0 {
            Either::PreferReader(lock) => lock.try_shared(),
            Either::Other(_, lock) => lock.try_shared(),
        }
    }

    fn shared_until(&self, deadline: &Deadline) -> bool {
        match &self.0 {
            Either::PreferReader(lock) => lock.shared_until(deadline),
            Either::Other(_, lock) => lock.shared_until(deadline),
        }
    }

    #[inline]
    fn unlock_shared(&self) {
        match &self.0 {
            Either::PreferReader(lock) => lock.unlock_shared(),
            Either::Other(_, lock) => lock.unlock_shared(),
        }
    }

    fn try_exclusive(&self, owner: Owner) -> bool {
        match &self.0 {
            Either::PreferReader(lock) => lock.try_exclusive(owner),
            Either::Other(_, lock) => lock.try_exclusive(owner),
        }
    }

    fn exclusive_until(&self, owner: Owner, deadline: &Deadline) -> bool {
        match &self.0 {
            Either::PreferReader(lock) => lock.exclusive_until(owner, deadline),
            Either::Other(_, lock) => lock.exclusive_until(owner, deadline),
        }
    }

    fn downgrade(&self) {
        match &self.0 {
            Either::PreferReader(lock) => lock.downgrade(),
            Either::Other(_, lock) => lock.downgrade(),
        }
    }

    fn unlock_exclusive(&self) {
        match &self.0 {
            Either::PreferReader(lock) => lock.unlock_exclusive(),
            Either::Other(_, lock) => lock.unlock_exclusive(),
        }
    }
}
