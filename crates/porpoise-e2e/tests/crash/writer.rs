//! A connection that commits, and remembers what the server has acknowledged.
//!
//! Each writer owns rows in tables that all writers share, and counts its transactions in a row of
//! its own and in one that all share. Its [`State`] is what these rows hold. A transaction works on
//! a copy, which becomes the state when COMMIT is acknowledged. If the server dies before its
//! answer to COMMIT (or to a statement in autocommit mode), both are possible, and
//! [`Writer::settle`] asks the next server which one it is. Nothing in between is allowed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::victim::{Attempt, Client, Trouble};

const IDS_PER_WRITER: i64 = 1_000_000_000;
/// Above so many rows, a writer deletes more than it inserts.
const FISH_MAX: usize = 150;
const EVENTS_MAX: usize = 150;
const PAD_LEN_MAX: usize = 2500;
const DUPLICATE_ENTRY: u16 = 1062;

#[derive(Clone, Debug, PartialEq)]
struct Fish {
    name: String,
    weight: i64,
    stamp: i64,
    pad: String,
}

#[derive(Clone, Debug, PartialEq)]
struct Event {
    /// What AUTO_INCREMENT gave, if the server lived to return it.
    id: Option<i64>,
    place: i64,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    fish: BTreeMap<i64, Fish>,
    events: BTreeMap<i64, Event>,
    stamp: i64,
    counted: i64,
}

pub struct Writer {
    worker: i64,
    state: State,
    /// The state if the last COMMIT took effect.
    in_doubt: Option<State>,
    next_fish: i64,
    next_event: i64,
    /// The highest `event.id` given in this transaction.
    given: i64,
    pub acknowledged: u64,
    pub refused: u64,
}

impl Writer {
    pub fn new(worker: i64) -> Writer {
        Writer {
            worker,
            state: State::default(),
            in_doubt: None,
            next_fish: worker * IDS_PER_WRITER,
            next_event: 1,
            given: 0,
            acknowledged: 0,
            refused: 0,
        }
    }

    pub fn counted(&self) -> i64 {
        self.state.counted
    }

    /// Runs transactions until the server dies. An error is something that must not happen.
    pub fn work(&mut self, client: &mut Client, highest: &AtomicI64) -> Result<(), String> {
        client.run("USE crash").or_else(unless_lost)?;
        loop {
            self.given = 0;
            let attempt = match fastrand::u8(..4) {
                0 => self.statement(client, highest),
                _ => self.transaction(client, highest),
            };
            match attempt {
                Ok(()) => {
                    self.acknowledged += 1;
                    highest.fetch_max(self.given, Ordering::SeqCst);
                }
                Err(Trouble::Lost) => return Ok(()),
                Err(Trouble::Wrong(what)) => return Err(format!("writer {}: {what}", self.worker)),
                Err(Trouble::Refused) => {
                    self.refused += 1;
                    client.run("ROLLBACK").or_else(unless_lost)?;
                }
            }
        }
    }

    /// One statement in autocommit mode.
    fn statement(&mut self, client: &mut Client, highest: &AtomicI64) -> Attempt {
        let mut after = self.state.clone();
        let floor = highest.load(Ordering::SeqCst);
        let operation = self.operation(&mut after, self.state.stamp + 1);
        match operation.run(client) {
            Ok(()) => self.state = after,
            Err(Trouble::Lost) => {
                self.in_doubt = Some(after);
                return Err(Trouble::Lost);
            }
            Err(other) => return Err(other),
        }
        self.given = learn_ids(client, &operation, &mut self.state, floor)?;
        Ok(())
    }

    fn transaction(&mut self, client: &mut Client, highest: &AtomicI64) -> Attempt {
        let mut after = self.state.clone();
        let stamp = after.stamp + 1;
        client.run("START TRANSACTION")?;
        self.operations(client, &mut after, stamp, highest)?;
        if fastrand::u8(..3) == 0 {
            let kept = after.clone();
            client.run("SAVEPOINT here")?;
            self.operations(client, &mut after, stamp, highest)?;
            if fastrand::bool() {
                client.run("ROLLBACK TO SAVEPOINT here")?;
                after = kept;
            }
            if fastrand::bool() {
                self.operations(client, &mut after, stamp, highest)?;
            }
        }
        after.stamp = stamp;
        let counts = i64::from(fastrand::bool());
        after.counted += counts;
        client.run(&format!(
            "UPDATE progress SET stamp = {stamp}, counted = counted + {counts} WHERE worker = {}",
            self.worker
        ))?;
        if counts == 1 {
            client.run("UPDATE total SET transactions = transactions + 1 WHERE id = 1")?;
        }
        if fastrand::u8(..10) == 0 {
            self.given = 0;
            return client.run("ROLLBACK");
        }
        match client.run("COMMIT") {
            Ok(()) => {
                self.state = after;
                Ok(())
            }
            Err(Trouble::Lost) => {
                self.in_doubt = Some(after);
                Err(Trouble::Lost)
            }
            Err(other) => Err(other),
        }
    }

    fn operations(
        &mut self,
        client: &mut Client,
        after: &mut State,
        stamp: i64,
        highest: &AtomicI64,
    ) -> Attempt {
        for _ in 0..fastrand::u8(1..5) {
            let floor = highest.load(Ordering::SeqCst);
            let operation = self.operation(after, stamp);
            operation.run(client)?;
            self.given = self.given.max(learn_ids(client, &operation, after, floor)?);
        }
        Ok(())
    }

    /// Picks a statement and applies it to the state.
    fn operation(&mut self, state: &mut State, stamp: i64) -> Operation {
        let kinds: &[fn(&mut Writer, &mut State, i64) -> Operation] = &[
            Writer::insert_fish,
            Writer::insert_fish,
            Writer::insert_duplicate,
            Writer::replace,
            Writer::insert_or_update,
            Writer::update_one,
            Writer::update_range,
            Writer::hand_over_name,
            Writer::delete_some,
            Writer::delete_heavy,
            Writer::insert_events,
            Writer::delete_events,
        ];
        if state.fish.len() < 5 {
            return self.insert_fish(state, stamp);
        }
        if state.fish.len() > FISH_MAX {
            return self.delete_some(state, stamp);
        }
        if state.events.len() > EVENTS_MAX {
            return self.delete_events(state, stamp);
        }
        kinds[fastrand::usize(..kinds.len())](self, state, stamp)
    }

    fn new_fish(&mut self, stamp: i64) -> (i64, Fish) {
        self.next_fish += 1;
        let id = self.next_fish;
        let letter = (b'a' + fastrand::u8(..26)) as char;
        let fish = Fish {
            name: format!("{letter}-{id}"),
            weight: fastrand::i64(0..100),
            stamp,
            pad: letter.to_string().repeat(fastrand::usize(..PAD_LEN_MAX)),
        };
        (id, fish)
    }

    fn values(&self, id: i64, fish: &Fish) -> String {
        let worker = self.worker;
        let Fish {
            name,
            weight,
            stamp,
            pad,
        } = fish;
        format!("({id}, {worker}, '{name}', {weight}, {stamp}, '{pad}')")
    }

    fn insert_fish(&mut self, state: &mut State, stamp: i64) -> Operation {
        let mut rows = Vec::new();
        for _ in 0..fastrand::u8(1..6) {
            let (id, fish) = self.new_fish(stamp);
            rows.push(self.values(id, &fish));
            state.fish.insert(id, fish);
        }
        Operation::plain(format!(
            "INSERT INTO fish {FISH_COLUMNS} VALUES {}",
            rows.join(", ")
        ))
    }

    /// The last row is refused, so that none may stay.
    fn insert_duplicate(&mut self, state: &mut State, stamp: i64) -> Operation {
        let (id, fish) = self.new_fish(stamp);
        let (other_id, mut other) = self.new_fish(stamp);
        let taken = pick(state);
        let second = if fastrand::bool() {
            self.values(taken, &other)
        } else {
            other.name.clone_from(&state.fish[&taken].name);
            self.values(other_id, &other)
        };
        Operation {
            refusal: Some(DUPLICATE_ENTRY),
            ..Operation::plain(format!(
                "INSERT INTO fish {FISH_COLUMNS} VALUES {}, {second}",
                self.values(id, &fish)
            ))
        }
    }

    fn replace(&mut self, state: &mut State, stamp: i64) -> Operation {
        let (_, fish) = self.new_fish(stamp);
        let id = pick(state);
        let sql = format!(
            "REPLACE INTO fish {FISH_COLUMNS} VALUES {}",
            self.values(id, &fish)
        );
        state.fish.insert(id, fish);
        Operation::plain(sql)
    }

    fn insert_or_update(&mut self, state: &mut State, stamp: i64) -> Operation {
        let (id, fish) = self.new_fish(stamp);
        let (_, never) = self.new_fish(stamp);
        let taken = pick(state);
        let sql = format!(
            "INSERT INTO fish {FISH_COLUMNS} VALUES {}, {} ON DUPLICATE KEY UPDATE weight = weight + 7, stamp = {stamp}",
            self.values(id, &fish),
            self.values(taken, &never)
        );
        state.fish.insert(id, fish);
        if let Some(updated) = state.fish.get_mut(&taken) {
            updated.weight += 7;
            updated.stamp = stamp;
        }
        Operation::plain(sql)
    }

    fn update_one(&mut self, state: &mut State, stamp: i64) -> Operation {
        let id = pick(state);
        let (_, fresh) = self.new_fish(stamp);
        let sql = format!(
            "UPDATE fish SET name = '{}', weight = {}, stamp = {stamp}, pad = '{}' WHERE id = {id}",
            fresh.name, fresh.weight, fresh.pad
        );
        state.fish.insert(id, fresh);
        Operation::plain(sql)
    }

    fn update_range(&mut self, state: &mut State, stamp: i64) -> Operation {
        let (one, other) = (pick(state), pick(state));
        let (low, high) = (one.min(other), one.max(other));
        for fish in state.fish.range_mut(low..=high).map(|(_, fish)| fish) {
            fish.weight += 3;
            fish.stamp = stamp;
        }
        Operation::plain(format!(
            "UPDATE fish SET weight = weight + 3, stamp = {stamp} WHERE id BETWEEN {low} AND {high}"
        ))
    }

    /// A row is deleted, and another takes its unique name: the index entry leads to another row.
    fn hand_over_name(&mut self, state: &mut State, stamp: i64) -> Operation {
        let (goes, stays) = (pick(state), pick(state));
        let gone = state.fish.remove(&goes);
        let (Some(gone), Some(heir)) = (gone, state.fish.get_mut(&stays)) else {
            return Operation::plain(format!("DELETE FROM fish WHERE id = {goes}"));
        };
        heir.name = gone.name;
        heir.stamp = stamp;
        // REPLACE deletes every row that has one of its keys: the old one of this id, and the one
        // with the name.
        let heir = heir.clone();
        Operation::plain(format!(
            "REPLACE INTO fish {FISH_COLUMNS} VALUES {}",
            self.values(stays, &heir)
        ))
    }

    fn delete_some(&mut self, state: &mut State, _: i64) -> Operation {
        let ids: Vec<i64> = (0..fastrand::u8(1..12)).map(|_| pick(state)).collect();
        state.fish.retain(|id, _| !ids.contains(id));
        let list: Vec<String> = ids.iter().map(i64::to_string).collect();
        Operation::plain(format!(
            "DELETE FROM fish WHERE id IN ({})",
            list.join(", ")
        ))
    }

    fn delete_heavy(&mut self, state: &mut State, _: i64) -> Operation {
        let limit = fastrand::i64(70..120);
        state.fish.retain(|_, fish| fish.weight < limit);
        Operation::plain(format!(
            "DELETE FROM fish WHERE worker = {} AND weight >= {limit}",
            self.worker
        ))
    }

    fn insert_events(&mut self, state: &mut State, _: i64) -> Operation {
        let first = self.next_event;
        let mut rows = Vec::new();
        for _ in 0..fastrand::u8(1..6) {
            let number = self.next_event;
            self.next_event += 1;
            let place = fastrand::i64(0..20);
            rows.push(format!("({}, {number}, {place})", self.worker));
            state.events.insert(number, Event { id: None, place });
        }
        Operation {
            events: Some(first),
            ..Operation::plain(format!(
                "INSERT INTO event (worker, number, place) VALUES {}",
                rows.join(", ")
            ))
        }
    }

    /// Deletes the newest events: a counter that is taken from the rows would go back.
    fn delete_events(&mut self, state: &mut State, _: i64) -> Operation {
        let newest = state.events.keys().next_back().copied().unwrap_or(0);
        let from = newest - fastrand::i64(0..60);
        state.events.retain(|number, _| *number < from);
        Operation::plain(format!(
            "DELETE FROM event WHERE worker = {} AND number >= {from}",
            self.worker
        ))
    }

    /// Compares what the server holds with what it has acknowledged to this writer.
    pub fn settle(&mut self, client: &mut Client) -> Result<(), String> {
        let found = self.read(client)?;
        let in_doubt = self.in_doubt.take();
        let possible = [Some(&self.state), in_doubt.as_ref()];
        if !possible.iter().flatten().any(|state| state.holds(&found)) {
            return Err(format!(
                "writer {}: what was acknowledged is not there, or not all of it.\nwithout its last commit: {}\nwith it: {}",
                self.worker,
                self.state.difference(&found),
                in_doubt.map_or("there was none under way".to_owned(), |s| s
                    .difference(&found)),
            ));
        }
        self.state = found;
        Ok(())
    }

    fn read(&self, client: &mut Client) -> Result<State, String> {
        let number = |text: &String| text.parse::<i64>().map_err(|e| format!("{text}: {e}"));
        let mut state = State::default();
        let worker = self.worker;
        for row in client.must_rows(&format!(
            "SELECT id, name, weight, stamp, pad FROM crash.fish WHERE worker = {worker} ORDER BY id"
        ))? {
            let fish = Fish {
                name: row[1].clone(),
                weight: number(&row[2])?,
                stamp: number(&row[3])?,
                pad: row[4].clone(),
            };
            state.fish.insert(number(&row[0])?, fish);
        }
        for row in client.must_rows(&format!(
            "SELECT number, id, place FROM crash.event WHERE worker = {worker} ORDER BY number"
        ))? {
            let event = Event {
                id: Some(number(&row[1])?),
                place: number(&row[2])?,
            };
            state.events.insert(number(&row[0])?, event);
        }
        for row in client.must_rows(&format!(
            "SELECT stamp, counted FROM crash.progress WHERE worker = {worker}"
        ))? {
            (state.stamp, state.counted) = (number(&row[0])?, number(&row[1])?);
        }
        Ok(state)
    }
}

const FISH_COLUMNS: &str = "(id, worker, name, weight, stamp, pad)";

fn pick(state: &State) -> i64 {
    let nth = fastrand::usize(..state.fish.len().max(1));
    state.fish.keys().nth(nth).copied().unwrap_or(0)
}

fn unless_lost(trouble: Trouble) -> Result<(), String> {
    match trouble {
        Trouble::Lost | Trouble::Refused => Ok(()),
        Trouble::Wrong(what) => Err(what),
    }
}

/// A statement and its expected outcome.
struct Operation {
    sql: String,
    /// The error with which it must be refused.
    refusal: Option<u16>,
    /// The number of the first event that it inserts.
    events: Option<i64>,
}

impl Operation {
    fn plain(sql: String) -> Operation {
        Operation {
            sql,
            refusal: None,
            events: None,
        }
    }

    fn run(&self, client: &mut Client) -> Attempt {
        match self.refusal {
            Some(number) => client.refused(&self.sql, number),
            None => client.run(&self.sql),
        }
    }
}

/// After an insert of events: reads their ids, and returns the highest.
fn learn_ids(
    client: &mut Client,
    insert: &Operation,
    state: &mut State,
    floor: i64,
) -> Attempt<i64> {
    let Some(number) = insert.events else {
        return Ok(0);
    };
    let rows = client.rows("SELECT LAST_INSERT_ID()")?;
    let first: i64 = rows[0][0]
        .parse()
        .map_err(|e| Trouble::Wrong(format!("LAST_INSERT_ID() is {rows:?}: {e}")))?;
    if first <= floor {
        return Err(Trouble::Wrong(format!(
            "AUTO_INCREMENT gave {first} after {floor}"
        )));
    }
    let mut highest = first;
    for (event, id) in state
        .events
        .range_mut(number..)
        .map(|(_, event)| event)
        .zip(first..)
    {
        event.id = Some(id);
        highest = id;
    }
    Ok(highest)
}

impl State {
    /// Whether the states are the same, as far as this one is known.
    fn holds(&self, found: &State) -> bool {
        self.difference(found).is_empty()
    }

    /// The first differences, in words.
    fn difference(&self, found: &State) -> String {
        let mut words = Vec::new();
        let mut differ = |what: &str, expected: String, found: String| {
            words.push(format!(
                "{what}: expected {expected:.200}, found {found:.200}"
            ));
        };
        if (self.stamp, self.counted) != (found.stamp, found.counted) {
            differ(
                "progress",
                format!("{:?}", (self.stamp, self.counted)),
                format!("{:?}", (found.stamp, found.counted)),
            );
        }
        let ids = self
            .fish
            .keys()
            .chain(found.fish.keys().filter(|id| !self.fish.contains_key(id)));
        for id in ids {
            let (one, other) = (self.fish.get(id), found.fish.get(id));
            if one != other {
                differ(
                    &format!("fish {id}"),
                    format!("{one:?}"),
                    format!("{other:?}"),
                );
            }
        }
        let numbers = self
            .events
            .keys()
            .chain(found.events.keys().filter(|n| !self.events.contains_key(n)));
        for number in numbers {
            let (one, other) = (self.events.get(number), found.events.get(number));
            let same = match (one, other) {
                (Some(one), Some(other)) => {
                    one.place == other.place && (one.id.is_none() || one.id == other.id)
                }
                _ => false,
            };
            if !same {
                differ(
                    &format!("event {number}"),
                    format!("{one:?}"),
                    format!("{other:?}"),
                );
            }
        }
        words.truncate(10);
        words.join("; ")
    }
}
