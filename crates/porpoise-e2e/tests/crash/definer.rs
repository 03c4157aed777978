//! A connection that runs DDL: after a crash, each statement has taken effect whole or not at all.
//!
//! The schema `shape` is the definer's own, and its model holds the tables there with their
//! columns, indexes and rows. It also adds and drops a column and an index of the table that the
//! writers fill.

use std::collections::BTreeMap;

use crate::victim::{Client, Trouble};

const NAMES: &[&str] = &["cod", "eel", "ray", "tuna", "pike"];
const ADDED_COLUMNS: &[&str] = &["x1", "x2", "x3"];
const FISH: &str = "crash.fish";
const EVENT: &str = "crash.event";
const ROWS_MAX: i64 = 400;

#[derive(Clone, Debug, Default, PartialEq)]
struct Table {
    /// Name and type, in the table's order; the first is `id`.
    columns: Vec<(String, String)>,
    /// Name, column, whether unique; beside the primary key.
    indexes: BTreeMap<String, (String, bool)>,
    has_primary: bool,
    rows: BTreeMap<i64, Vec<i64>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    tables: BTreeMap<String, Table>,
    fish_has_column: bool,
    fish_has_index: bool,
    /// An AUTO_INCREMENT counter survives the change of its table.
    event_has_column: bool,
}

pub struct Definer {
    state: State,
    in_doubt: Option<State>,
    last: String,
    pub acknowledged: u64,
}

/// The value of a column that is added later in the rows that exist.
fn default_of(column: &str) -> i64 {
    column.bytes().map(i64::from).sum()
}

impl Definer {
    pub fn new() -> Definer {
        Definer {
            state: State::default(),
            in_doubt: None,
            last: String::new(),
            acknowledged: 0,
        }
    }

    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.state.tables.keys().map(String::as_str)
    }

    /// Runs statements until the server dies. An error is something that must not happen.
    pub fn work(&mut self, client: &mut Client) -> Result<(), String> {
        match client.run("USE shape") {
            Ok(()) => {}
            Err(Trouble::Lost) => return Ok(()),
            Err(other) => return Err(format!("definer: {other:?}")),
        }
        loop {
            let mut after = self.state.clone();
            let Some(sql) = step(&mut after) else {
                continue;
            };
            self.last.clone_from(&sql);
            match client.run(&sql) {
                Ok(()) => {
                    self.state = after;
                    self.acknowledged += 1;
                }
                Err(Trouble::Lost) => {
                    self.in_doubt = Some(after);
                    return Ok(());
                }
                Err(Trouble::Refused) => {}
                Err(Trouble::Wrong(what)) => return Err(format!("definer: {what}")),
            }
        }
    }

    /// Compares what the server holds with what it has acknowledged.
    pub fn settle(&mut self, client: &mut Client) -> Result<(), String> {
        let found = read(client).map_err(|what| format!("after {}: {what}", self.last))?;
        let in_doubt = self.in_doubt.take();
        if found != self.state && Some(&found) != in_doubt.as_ref() {
            return Err(format!(
                "definitions differ; the last was {}\nwithout it: {}\nwith it: {}",
                self.last,
                difference(&self.state, &found),
                in_doubt.map_or("it was acknowledged".to_owned(), |s| difference(&s, &found))
            ));
        }
        self.state = found;
        Ok(())
    }
}

/// Picks a statement and applies it to the state. `None` if it doesn't fit the state.
fn step(state: &mut State) -> Option<String> {
    let kinds: &[fn(&mut State) -> Option<String>] = &[
        create,
        create,
        create_like,
        create_as_select,
        insert,
        insert,
        insert,
        add_column,
        add_column_and_index,
        drop_column,
        modify_column,
        rename_column,
        add_index,
        add_index,
        add_unique,
        drop_index,
        truncate,
        rename,
        swap,
        drop_table,
        drop_two,
        alter_fish_column,
        alter_fish_index,
        alter_event,
    ];
    kinds[fastrand::usize(..kinds.len())](state)
}

fn some_table(state: &State) -> Option<String> {
    let names: Vec<&String> = state.tables.keys().collect();
    Some(fastrand::choice(names)?.clone())
}

fn free_name(state: &State) -> Option<&'static str> {
    let free = NAMES.iter().filter(|n| !state.tables.contains_key(**n));
    fastrand::choice(free.collect::<Vec<_>>()).copied()
}

fn create(state: &mut State) -> Option<String> {
    let name = free_name(state)?;
    let column = |name: &str| (name.to_owned(), "int".to_owned());
    state.tables.insert(
        name.to_owned(),
        Table {
            columns: vec![column("id"), column("u"), column("v")],
            indexes: BTreeMap::from([("by_v".to_owned(), ("v".to_owned(), false))]),
            has_primary: true,
            rows: BTreeMap::new(),
        },
    );
    Some(format!(
        "CREATE TABLE {name} (id INT NOT NULL PRIMARY KEY, u INT NOT NULL, v INT NOT NULL, KEY by_v (v))"
    ))
}

fn create_like(state: &mut State) -> Option<String> {
    let (model, name) = (some_table(state)?, free_name(state)?);
    let mut table = state.tables[&model].clone();
    table.rows.clear();
    state.tables.insert(name.to_owned(), table);
    Some(format!("CREATE TABLE {name} LIKE {model}"))
}

fn create_as_select(state: &mut State) -> Option<String> {
    let (model, name) = (some_table(state)?, free_name(state)?);
    let mut table = state.tables[&model].clone();
    table.indexes.clear();
    table.has_primary = false;
    state.tables.insert(name.to_owned(), table);
    Some(format!("CREATE TABLE {name} AS SELECT * FROM {model}"))
}

fn insert(state: &mut State) -> Option<String> {
    let name = some_table(state)?;
    let table = state.tables.get_mut(&name)?;
    let first = table.rows.keys().next_back().copied().unwrap_or(0) + 1;
    if first > ROWS_MAX {
        table.rows.clear();
        return Some(format!("DELETE FROM {name}"));
    }
    let mut rows = Vec::new();
    for id in first..first + fastrand::i64(1..120) {
        let value = |(column, _): &(String, String)| match column.as_str() {
            "id" => id,
            "u" => id * 3,
            _ => (id * 7 + default_of(column)) % 50,
        };
        let values: Vec<i64> = table.columns.iter().map(value).collect();
        let words: Vec<String> = values.iter().map(i64::to_string).collect();
        rows.push(format!("({})", words.join(", ")));
        table.rows.insert(id, values);
    }
    Some(format!("INSERT INTO {name} VALUES {}", rows.join(", ")))
}

fn add_to(table: &mut Table) -> Option<&'static str> {
    let there = |name: &str| table.columns.iter().any(|(c, _)| c == name);
    let column = *fastrand::choice(
        ADDED_COLUMNS
            .iter()
            .filter(|c| !there(c))
            .collect::<Vec<_>>(),
    )?;
    table.columns.push((column.to_owned(), "int".to_owned()));
    for row in table.rows.values_mut() {
        row.push(default_of(column));
    }
    Some(column)
}

fn add_column(state: &mut State) -> Option<String> {
    let name = some_table(state)?;
    let column = add_to(state.tables.get_mut(&name)?)?;
    Some(format!(
        "ALTER TABLE {name} ADD COLUMN {column} INT NOT NULL DEFAULT {}",
        default_of(column)
    ))
}

fn add_column_and_index(state: &mut State) -> Option<String> {
    let name = some_table(state)?;
    let table = state.tables.get_mut(&name)?;
    let column = add_to(table)?;
    let index = format!("both_{column}");
    if table.indexes.contains_key(&index) {
        return None;
    }
    table
        .indexes
        .insert(index.clone(), (column.to_owned(), false));
    Some(format!(
        "ALTER TABLE {name} ADD COLUMN {column} INT NOT NULL DEFAULT {}, ADD INDEX {index} ({column})",
        default_of(column)
    ))
}

fn drop_column(state: &mut State) -> Option<String> {
    let name = some_table(state)?;
    let table = state.tables.get_mut(&name)?;
    let at = (1..table.columns.len())
        .find(|&at| ADDED_COLUMNS.contains(&table.columns[at].0.as_str()))?;
    let (column, _) = table.columns.remove(at);
    for row in table.rows.values_mut() {
        row.remove(at);
    }
    // Its indexes are dropped with it.
    table.indexes.retain(|_, (of, _)| *of != column);
    Some(format!("ALTER TABLE {name} DROP COLUMN {column}"))
}

fn modify_column(state: &mut State) -> Option<String> {
    let name = some_table(state)?;
    let table = state.tables.get_mut(&name)?;
    let (_, kind) = table.columns.iter_mut().find(|(c, _)| c == "v")?;
    *kind = if kind == "int" { "bigint" } else { "int" }.to_owned();
    Some(format!(
        "ALTER TABLE {name} MODIFY COLUMN v {kind} NOT NULL"
    ))
}

fn rename_column(state: &mut State) -> Option<String> {
    let name = some_table(state)?;
    let table = state.tables.get_mut(&name)?;
    let from = ["x1", "x2"]
        .into_iter()
        .find(|x| table.columns.iter().any(|(c, _)| c == x))?;
    if table.columns.iter().any(|(c, _)| c == "x3") {
        return None;
    }
    table.columns.iter_mut().find(|(c, _)| c == from)?.0 = "x3".to_owned();
    for (of, _) in table.indexes.values_mut() {
        if of == from {
            *of = "x3".to_owned();
        }
    }
    Some(format!("ALTER TABLE {name} RENAME COLUMN {from} TO x3"))
}

fn add_index(state: &mut State) -> Option<String> {
    let name = some_table(state)?;
    let table = state.tables.get_mut(&name)?;
    let (column, _) = fastrand::choice(&table.columns[1..])?.clone();
    let index = format!("by_{column}");
    if table.indexes.contains_key(&index) {
        return None;
    }
    table.indexes.insert(index.clone(), (column.clone(), false));
    Some(match fastrand::bool() {
        true => format!("CREATE INDEX {index} ON {name} ({column})"),
        false => format!("ALTER TABLE {name} ADD INDEX {index} ({column})"),
    })
}

fn add_unique(state: &mut State) -> Option<String> {
    let name = some_table(state)?;
    let table = state.tables.get_mut(&name)?;
    if table.indexes.contains_key("once_u") {
        return None;
    }
    table
        .indexes
        .insert("once_u".to_owned(), ("u".to_owned(), true));
    Some(format!("CREATE UNIQUE INDEX once_u ON {name} (u)"))
}

fn drop_index(state: &mut State) -> Option<String> {
    let name = some_table(state)?;
    let table = state.tables.get_mut(&name)?;
    let index = fastrand::choice(table.indexes.keys().collect::<Vec<_>>())?.clone();
    table.indexes.remove(&index);
    Some(format!("DROP INDEX {index} ON {name}"))
}

fn truncate(state: &mut State) -> Option<String> {
    let name = some_table(state)?;
    state.tables.get_mut(&name)?.rows.clear();
    Some(format!("TRUNCATE TABLE {name}"))
}

fn rename(state: &mut State) -> Option<String> {
    let (from, to) = (some_table(state)?, free_name(state)?);
    let table = state.tables.remove(&from)?;
    state.tables.insert(to.to_owned(), table);
    Some(match fastrand::bool() {
        true => format!("RENAME TABLE {from} TO {to}"),
        false => format!("ALTER TABLE {from} RENAME TO {to}"),
    })
}

fn swap(state: &mut State) -> Option<String> {
    let (one, other) = (some_table(state)?, some_table(state)?);
    if one == other {
        return None;
    }
    let first = state.tables.remove(&one)?;
    let second = state.tables.insert(other.clone(), first)?;
    state.tables.insert(one.clone(), second);
    Some(format!(
        "RENAME TABLE {one} TO spare, {other} TO {one}, spare TO {other}"
    ))
}

fn drop_table(state: &mut State) -> Option<String> {
    let name = some_table(state)?;
    state.tables.remove(&name);
    Some(format!("DROP TABLE {name}"))
}

fn drop_two(state: &mut State) -> Option<String> {
    let (one, other) = (some_table(state)?, some_table(state)?);
    if one == other || fastrand::bool() {
        return None;
    }
    state.tables.remove(&one);
    state.tables.remove(&other);
    Some(format!("DROP TABLE {one}, {other}"))
}

fn alter_fish_column(state: &mut State) -> Option<String> {
    state.fish_has_column = !state.fish_has_column;
    Some(match state.fish_has_column {
        true => format!("ALTER TABLE {FISH} ADD COLUMN extra INT NOT NULL DEFAULT 5"),
        false => format!("ALTER TABLE {FISH} DROP COLUMN extra"),
    })
}

fn alter_fish_index(state: &mut State) -> Option<String> {
    state.fish_has_index = !state.fish_has_index;
    Some(match state.fish_has_index {
        true => format!("CREATE INDEX by_all ON {FISH} (stamp, weight, name)"),
        false => format!("DROP INDEX by_all ON {FISH}"),
    })
}

fn alter_event(state: &mut State) -> Option<String> {
    state.event_has_column = !state.event_has_column;
    Some(match state.event_has_column {
        true => format!("ALTER TABLE {EVENT} ADD COLUMN extra INT NOT NULL DEFAULT 5"),
        false => format!("ALTER TABLE {EVENT} DROP COLUMN extra"),
    })
}

/// Reads the state from the server.
fn read(client: &mut Client) -> Result<State, String> {
    let mut state = State::default();
    for row in client.must_rows("SHOW TABLES FROM shape")? {
        let name = &row[0];
        let mut table = Table::default();
        for column in client.must_rows(&format!("SHOW COLUMNS FROM shape.{name}"))? {
            // MariaDB shows a display width.
            let kind = column[1].split('(').next().unwrap_or("").to_owned();
            table.columns.push((column[0].clone(), kind));
        }
        for index in client.must_rows(&format!("SHOW INDEX FROM shape.{name}"))? {
            if index[2] == "PRIMARY" {
                table.has_primary = true;
            } else {
                let unique = index[1] == "0";
                table
                    .indexes
                    .insert(index[2].clone(), (index[4].clone(), unique));
            }
        }
        for row in client.must_rows(&format!("SELECT * FROM shape.{name}"))? {
            let values: Result<Vec<i64>, _> = row.iter().map(|text| text.parse()).collect();
            let values = values.map_err(|e| format!("{name}: {row:?}: {e}"))?;
            table.rows.insert(values[0], values);
        }
        state.tables.insert(name.clone(), table);
    }
    for row in client.must_rows(&format!("SHOW INDEX FROM {FISH}"))? {
        state.fish_has_index |= row[2] == "by_all";
    }
    state.fish_has_column = has_extra(client, FISH)?;
    state.event_has_column = has_extra(client, EVENT)?;
    Ok(state)
}

/// Whether the column exists, with its default in every row.
fn has_extra(client: &mut Client, table: &str) -> Result<bool, String> {
    let columns = client.must_rows(&format!("SHOW COLUMNS FROM {table}"))?;
    if !columns.iter().any(|row| row[0] == "extra") {
        return Ok(false);
    }
    match client.number(&format!("SELECT COUNT(*) FROM {table} WHERE extra <> 5"))? {
        0 => Ok(true),
        odd => Err(format!(
            "{odd} rows of {table} lack the default of an added column"
        )),
    }
}

fn difference(expected: &State, found: &State) -> String {
    let mut words = Vec::new();
    let shared = |s: &State| (s.fish_has_column, s.fish_has_index, s.event_has_column);
    let (one, other) = (shared(expected), shared(found));
    if one != other {
        words.push(format!(
            "column and index of {FISH}, column of {EVENT}: expected {one:?}, found {other:?}"
        ));
    }
    for name in NAMES.iter().copied().chain(["spare"]) {
        let (one, other) = (expected.tables.get(name), found.tables.get(name));
        if one != other {
            let brief = |table: Option<&Table>| {
                table.map(|t| format!("{:?} {:?} {} rows", t.columns, t.indexes, t.rows.len()))
            };
            words.push(format!(
                "{name}: expected {:?}, found {:?}",
                brief(one),
                brief(other)
            ));
        }
    }
    words.join("; ")
}
