//! The thread that runs events (MySQL 8.4 manual, 27.4).
//!
//! It sleeps until the next event is due, or until it is told that something has changed
//! ([`EventBell`]). Each run has a thread and a session of its own, with the privileges of the
//! event's definer; an event that takes longer than its interval runs beside itself. Runs that are
//! due while nobody looks (the server is down, `event_scheduler` is off) are left out, but for an
//! event's only run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use compact_str::CompactString;
use hashbrown::HashMap;
use porpoise_catalog::event::EventStatus;
use porpoise_catalog::program::{ProgramKind, ProgramRecord};
use porpoise_catalog::{CatalogChange, StoredProgram};
use porpoise_core::error::{Error, Level, Result};
use porpoise_core::variables::WriteProtection;
use porpoise_mdl::process::{Command, Control};
use porpoise_session::event_bell::EventBell;
use porpoise_session::shared::Shared;

use crate::session::{Login, Session};

/// How long it sleeps at most: the clock may be set meanwhile.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// How many events run at once, at most; what is due then waits for one to end.
const RUNNING_MAX: usize = 64;

/// What ends the thread when it is dropped.
pub(crate) struct Ending(Arc<EventBell>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Starts the thread. A database without one doesn't run events.
pub(crate) fn start(shared: &Arc<Shared>) -> Arc<Ending> {
    let bell = Arc::clone(&shared.events);
    let weak = Arc::downgrade(shared);
    let thread = std::thread::Builder::new().name("porpoise-events".into());
    let heard = Arc::clone(&bell);
    if let Err(error) = thread.spawn(move || Scheduler::default().run(&weak, &heard)) {
        tracing::warn!(%error, "events don't run");
    }
    Arc::new(Ending(bell))
}

/// An event's schema and name.
type EventName = (CompactString, CompactString);

#[derive(Default)]
struct Scheduler {
    /// Its row of the process list, while it is on.
    process: Option<Arc<Control>>,
    /// No run that was due before is made up for: since when it is on, in seconds since 1970.
    since_s: i64,
    /// Up to when each event has run.
    ran: HashMap<EventName, i64>,
    running: Arc<AtomicUsize>,
}

fn now_us() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| {
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    })
}

impl Scheduler {
    fn run(&mut self, weak: &Weak<Shared>, bell: &EventBell) {
        let mut sleep = Duration::ZERO;
        while sleep.is_zero() || bell.wait(sleep) {
            let Some(shared) = weak.upgrade() else {
                return;
            };
            sleep = match self.is_on(&shared) {
                true => self.run_due(&shared),
                false => SLEEP_MAX,
            };
        }
        if let (Some(shared), Some(process)) = (weak.upgrade(), self.process.take()) {
            shared.locks.sessions.remove(process.id);
        }
    }

    /// Whether events run; its row of the process list comes and goes with that.
    fn is_on(&mut self, shared: &Shared) -> bool {
        let is_killed = |process: &Arc<Control>| process.is_connection_killed();
        if self.process.as_ref().is_some_and(is_killed) {
            shared.variables.learn("event_scheduler", "OFF");
        }
        let is_on = shared.variables.get_text("event_scheduler") == "ON";
        let is_on = is_on && !shared.store.is_closed();
        match (is_on, &self.process) {
            (true, None) => {
                let id = shared.connection_ids.fetch_add(1, Ordering::Relaxed);
                let process = Control::new(id, "event_scheduler".into(), "localhost".into());
                process.begin(Command::Daemon, b"", now_us());
                let bell = Arc::clone(&shared.events);
                process.on_kill(Box::new(move || bell.ring()));
                let process = Arc::new(process);
                shared.locks.sessions.add(Arc::clone(&process));
                self.process = Some(process);
                self.since_s = now_us() / 1_000_000;
                self.ran.clear();
            }
            (false, Some(process)) => {
                shared.locks.sessions.remove(process.id);
                self.process = None;
            }
            _ => {}
        }
        is_on
    }

    /// Begins what is due; returns how long nothing else is.
    fn run_due(&mut self, shared: &Arc<Shared>) -> Duration {
        let catalog = shared.catalog.load_full();
        let events = catalog.events();
        self.ran
            .retain(|name, _| events.iter().any(|event| named(&event.record) == *name));
        let now_s = now_us() / 1_000_000;
        let mut next_s = i64::MAX;
        for event in &events {
            let Some(due_s) = self.next_run(event) else {
                continue;
            };
            if due_s > now_s {
                next_s = next_s.min(due_s);
                continue;
            }
            if self.running.load(Ordering::Relaxed) >= RUNNING_MAX {
                continue;
            }
            self.ran.insert(named(&event.record), now_s);
            self.begin(shared, event, now_s);
            if let Some(following_s) = self.next_run(event) {
                next_s = next_s.min(following_s);
            }
        }
        if let Some(process) = &self.process {
            process.set_state(match next_s {
                i64::MAX => "Waiting on empty queue",
                _ => "Waiting for next activation",
            });
        }
        let until_us = next_s.saturating_mul(1_000_000).saturating_sub(now_us());
        let until = Duration::from_micros(u64::try_from(until_us).unwrap_or(0));
        until.clamp(Duration::from_millis(1), SLEEP_MAX)
    }

    fn next_run(&self, event: &StoredProgram) -> Option<i64> {
        let schedule = event.record.event.as_ref()?;
        let ran_s = self.ran.get(&named(&event.record)).copied();
        if ran_s >= Some(schedule.changed_s) && schedule.is_only_run() {
            return None;
        }
        let from_s = ran_s.map_or(i64::MIN, |ran_s| ran_s + 1);
        let last_s = schedule
            .last_executed_s
            .map_or(i64::MIN, |last_s| last_s + 1);
        schedule.next_run(from_s.max(last_s).max(schedule.changed_s.max(self.since_s)))
    }

    /// Runs an event in a thread of its own.
    fn begin(&self, shared: &Arc<Shared>, event: &Arc<StoredProgram>, now_s: i64) {
        let (shared, event) = (Arc::clone(shared), Arc::clone(event));
        let running = Arc::clone(&self.running);
        running.fetch_add(1, Ordering::Relaxed);
        let bell = Arc::clone(&shared.events);
        let thread = std::thread::Builder::new().name("porpoise-event".into());
        let spawned = thread.spawn(move || {
            run_once(&shared, &event.record, now_s);
            drop(shared);
            running.fetch_sub(1, Ordering::Relaxed);
            bell.ring();
        });
        if let Err(error) = spawned {
            self.running.fetch_sub(1, Ordering::Relaxed);
            tracing::error!(%error, "an event doesn't run");
        }
    }
}

fn named(record: &ProgramRecord) -> EventName {
    (record.schema.clone(), record.name.clone())
}

/// Runs an event, tells the log what went wrong, and drops it if that was its last run.
fn run_once(shared: &Arc<Shared>, record: &ProgramRecord, now_s: i64) {
    let (user, host) = record
        .definer
        .rsplit_once('@')
        .unwrap_or((&record.definer, "%"));
    let event = format!("{}.{}", record.schema, record.name);
    let ran = note_run(shared, record, now_s).and_then(|is_over| {
        let ran = run_body(shared, record, (user, host), &event);
        match is_over {
            true => ran.and(drop_event(shared, record, now_s)),
            false => ran,
        }
    });
    if let Err(error) = ran
        && !shared.store.is_closed()
    {
        tracing::error!(
            "Event Scheduler: [{user}@{host}][{event}] {}",
            error.message()
        );
        tracing::info!("Event Scheduler: [{user}@{host}].[{event}] event execution failed.");
    }
}

/// Keeps when the event began to run. Whether that is its last run, and it isn't to stay.
fn note_run(shared: &Shared, record: &ProgramRecord, now_s: i64) -> Result<bool> {
    if shared.variables.write_protection() == Some(WriteProtection::SuperReadOnly) {
        return Ok(false);
    }
    let mut change = CatalogChange::begin(shared.definitions());
    let found = change
        .catalog()
        .program(&record.schema, ProgramKind::Event, &record.name);
    let Some(found) = found else {
        return Ok(false);
    };
    let mut noted = found.record.clone();
    let Some(event) = &mut noted.event else {
        return Ok(false);
    };
    event.last_executed_s = Some(now_s);
    let is_over = event.is_over(now_s);
    if is_over {
        event.status = EventStatus::Disabled;
    }
    let is_dropped = is_over && !event.preserve;
    change.put_program(noted)?;
    change.commit()?;
    Ok(is_dropped)
}

/// Drops an event that has run for the last time, unless somebody has changed it meanwhile.
fn drop_event(shared: &Shared, record: &ProgramRecord, now_s: i64) -> Result<()> {
    let mut change = CatalogChange::begin(shared.definitions());
    let found = change
        .catalog()
        .program(&record.schema, ProgramKind::Event, &record.name);
    let is_over = found.is_some_and(|found| {
        let event = found.record.event.as_ref();
        event.is_some_and(|event| event.changed_s <= now_s && event.is_over(now_s))
    });
    if is_over && change.drop_program(&record.schema, ProgramKind::Event, &record.name) {
        change.commit()?;
    }
    Ok(())
}

fn run_body(
    shared: &Arc<Shared>,
    record: &ProgramRecord,
    (user, host): (&str, &str),
    event: &str,
) -> Result<()> {
    let account = shared.accounts.get(user, host);
    let account = account.ok_or_else(|| Error::no_such_definer(user, host))?;
    let mut session = Session::open(
        Arc::clone(shared),
        Login {
            connection_id: shared.connection_ids.fetch_add(1, Ordering::Relaxed),
            user: user.into(),
            host: "localhost".into(),
            peer: "localhost".into(),
            account: Some(account),
            schema: Some(record.schema.clone()),
            ..Login::default()
        },
    )?;
    let ran = session.run_event(record);
    for (level, condition) in &session.state.warnings {
        if *level != Level::Note {
            let message = &condition.message;
            tracing::warn!("Event Scheduler: [{user}@{host}][{event}] {message}");
        }
    }
    ran
}
