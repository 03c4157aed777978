//! Stacks with counts, and what they say of functions, waits and locks.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Role;

/// What the folder of `perf`'s text writes behind functions of the kernel.
const KERNEL: &str = "_[k]";
/// What libraries have between a program and its wait: beginnings of names.
const LIBRARIES: &[&str] = &[
    "_",
    "[",
    "std::",
    "core::",
    "alloc::",
    "parking_lot",
    "lock_api",
    "mio::",
    "rustix::",
    "libc::",
    "crossbeam",
    "pthread_",
    "syscall",
    "epoll_",
    "poll",
    "ppoll",
    "select",
    "futex",
    "recv",
    "read",
    "write",
    "send",
    "nanosleep",
    "clock_nanosleep",
    "sched_yield",
    "fdatasync",
    "fsync",
    "clone",
    "start_thread",
    "eventfd",
];
/// Functions that are called only where a lock isn't free: parts of names.
const CONTENDED: &[&str] = &[
    "::lock_slow",
    "::lock_shared_slow",
    "::lock_exclusive_slow",
    "::lock_upgradable_slow",
    "::lock_contended",
    "::read_contended",
    "::write_contended",
    "lll_lock_wait",
    "___pthread_rwlock_rdlock_full",
    "___pthread_rwlock_wrlock_full",
];
/// The same of our own lock.
const OWN_LOCK: &str = "PreferReader";
const OWN_CONTENDED: &[&str] = &["::wait", "::spin", "::announce", "_slowly"];
/// Locks whose owners are transactions and sessions, of rows and of tables: who asks for one sleeps
/// beneath these.
const QUEUES: &[&str] = &["porpoise_storage::locks::", "porpoise_mdl::"];
const SLEEP: &str = "Condvar";

/// Stacks, from the outermost function to the innermost, and how often each was seen.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    all: Vec<(Vec<String>, u64)>,
}

impl Stacks {
    /// Of folded text: functions, parted by semicolons, and a count.
    pub(super) fn parse(folded: &str) -> Self {
        let mut names: BTreeMap<&str, String> = BTreeMap::new();
        let mut all: BTreeMap<Vec<String>, u64> = BTreeMap::new();
        for line in folded.lines() {
            let Some((frames, count)) = line.rsplit_once(' ') else {
                continue;
            };
            let frames = frames.split(';').map(|frame| {
                names
                    .entry(frame)
                    .or_insert_with(|| readable(frame))
                    .clone()
            });
            *all.entry(frames.collect()).or_default() += count.parse::<u64>().unwrap_or(0);
        }
        Self {
            all: all.into_iter().collect(),
        }
    }

    /// One of several processes, each under its role.
    pub(super) fn under_roles(each: &[(Role, Stacks)]) -> Self {
        let all = each.iter().flat_map(|(role, stacks)| {
            let role = role.to_string();
            let under = move |(frames, count): &(Vec<String>, u64)| {
                ([std::slice::from_ref(&role), frames].concat(), *count)
            };
            stacks.all.iter().map(under)
        });
        Self { all: all.collect() }
    }

    /// As folded text.
    pub fn folded(&self) -> String {
        let mut text = String::new();
        for (frames, count) in &self.all {
            let _ = writeln!(text, "{} {count}", frames.join(";"));
        }
        text
    }

    /// Whether nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many samples there are.
    pub fn total(&self) -> u64 {
        self.all.iter().map(|(_, count)| count).sum()
    }

    /// Samples by what `name` makes of a stack; those that it has no name for are left out.
    fn counted<'s>(&'s self, name: impl Fn(&'s [String]) -> Option<String>) -> Vec<(String, u64)> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (frames, count) in &self.all {
            if let Some(name) = name(frames) {
                *counts.entry(name).or_default() += count;
            }
        }
        let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
        counts.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        counts
    }

    /// Functions by the samples in which they were the innermost, most first.
    pub fn functions(&self) -> Vec<(String, u64)> {
        self.counted(|frames| frames.last().cloned())
    }

    /// The program's own functions by the samples in which they were the innermost of its own.
    pub fn waiting_sites(&self) -> Vec<(String, u64)> {
        self.counted(|frames| {
            let user = &frames[..user_frames(frames)];
            let own = user.iter().rposition(|frame| is_own(frame));
            match own {
                Some(at) => {
                    let through = user.get(at + 1).map(|frame| format!(", in {frame}"));
                    Some(format!("{}{}", user[at], through.unwrap_or_default()))
                }
                None => Some(user.last()?.clone()),
            }
        })
    }

    /// Whoever asked for a lock that wasn't free, by samples within its slow path.
    pub fn contended_locks(&self) -> Vec<(String, u64)> {
        self.counted(|frames| {
            let at = (0..frames.len()).find(|&at| is_contended(&frames[at..]))?;
            let own = frames[..at]
                .iter()
                .rev()
                .find(|frame| is_own(frame) && !frame.contains(OWN_LOCK));
            Some(format!(
                "{}, in {}",
                own.map_or("?", |frame| frame),
                frames[at]
            ))
        })
    }
}

/// How many of the outermost frames are the program's; the rest is the kernel's.
fn user_frames(frames: &[String]) -> usize {
    frames
        .iter()
        .rposition(|frame| !frame.ends_with(KERNEL))
        .map_or(0, |at| at + 1)
}

fn is_own(frame: &str) -> bool {
    // A method of a type, or of a reference to one, is that type's.
    let of = frame.trim_start_matches(['<', '&']);
    let of = of.strip_prefix("mut ").unwrap_or(of);
    !frame.ends_with(KERNEL) && !LIBRARIES.iter().any(|start| of.starts_with(start))
}

/// Whether the outermost of these functions is a lock's that isn't free.
fn is_contended(frames: &[String]) -> bool {
    let [frame, inner @ ..] = frames else {
        return false;
    };
    let has = |parts: &[&str]| parts.iter().any(|part| frame.contains(part));
    has(CONTENDED)
        || (frame.contains(OWN_LOCK) && has(OWN_CONTENDED))
        || (has(QUEUES) && inner.iter().any(|frame| frame.contains(SLEEP)))
}

/// A function as its source names it, without what tells versions of a crate apart.
fn readable(frame: &str) -> String {
    let (name, kernel) = match frame.strip_suffix(KERNEL) {
        Some(name) => (name, KERNEL),
        None => (frame, ""),
    };
    match rustc_demangle::try_demangle(name) {
        // Semicolons part functions.
        Ok(name) => format!("{name:#}{kernel}")
            .replace("; ", ", ")
            .replace(';', ","),
        Err(_) => frame.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDED: &str = "\
worker;start_thread;porpoise_server::serve;porpoise_engine::run;core::slice::sort 30
worker;start_thread;porpoise_server::serve;porpoise_engine::run;core::slice::sort;asm_irq_[k] 5
worker;start_thread;porpoise_server::serve;mio::poll::Poll::poll;epoll_wait;do_epoll_wait_[k];schedule_[k] 12
worker;porpoise_engine::commit;parking_lot::raw_mutex::RawMutex::lock_slow;syscall;futex_wait_[k];schedule_[k] 7
worker;porpoise_ddl::alter;<porpoise_locks::PreferReader<_> as porpoise_locks::ReaderWriter>::exclusive_until;porpoise_locks::PreferReader<_>::wait;std::thread::park;syscall 3
worker;porpoise_executor::update;<porpoise_storage::locks::LockTable>::lock;<parking_lot::condvar::Condvar>::wait_until_internal;syscall 4
worker;porpoise_executor::update;<porpoise_storage::locks::LockTable>::lock 6
[unknown];syscall_exit_[k] 2
";

    #[test]
    fn functions_are_counted_where_they_are_innermost() {
        let stacks = Stacks::parse(FOLDED);
        assert_eq!(stacks.total(), 69);
        let functions = stacks.functions();
        assert_eq!(functions[0], ("core::slice::sort".to_owned(), 30));
        assert_eq!(functions[1], ("schedule_[k]".to_owned(), 19));
        assert_eq!(Stacks::parse(&stacks.folded()).folded(), stacks.folded());
    }

    #[test]
    fn a_wait_is_that_of_the_program_and_a_lock_that_of_who_asked() {
        let stacks = Stacks::parse(FOLDED);
        let sites = stacks.waiting_sites();
        let of = |name: &str| sites.iter().find(|site| site.0 == name).map(|site| site.1);
        assert_eq!(
            of("porpoise_server::serve, in mio::poll::Poll::poll"),
            Some(12)
        );
        assert_eq!(of("[unknown]"), Some(2));
        let locks = stacks.contended_locks();
        let expected = [
            (
                "porpoise_engine::commit, in parking_lot::raw_mutex::RawMutex::lock_slow",
                7,
            ),
            (
                "porpoise_executor::update, in <porpoise_storage::locks::LockTable>::lock",
                4,
            ),
            (
                "porpoise_ddl::alter, in porpoise_locks::PreferReader<_>::wait",
                3,
            ),
        ];
        assert_eq!(
            locks,
            expected.map(|(name, count)| (name.to_owned(), count))
        );
    }

    #[test]
    fn names_are_those_of_the_source() {
        assert_eq!(
            readable("_RNvNtCs1234_7mycrate3foo3bar"),
            "mycrate::foo::bar"
        );
        assert_eq!(readable("schedule_[k]"), "schedule_[k]");
    }
}
