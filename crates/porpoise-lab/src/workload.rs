//! The workloads: what one transaction does. Statements and their mix are sysbench's.
//!
//! A [`Client`] sends a statement and goes on when its reply is there, so that a thread may have
//! one client or many:
//!
//! ```text
//!   begin ─► BEGIN ─► a step ─► … ─► COMMIT ─► done         each arrow: the reply is taken, the next statement sent
//!                       └── conflict ─► ROLLBACK ─► conflict
//! ```

use crate::table::{Table, c_value, pad_value};
use fastrand::Rng;
use porpoise_client::{Connection, Error, Options, Statement, Value};
use std::fmt::Write;
use std::str::FromStr;

/// Rows of a range.
const RANGE_ROWS: u64 = 100;
/// Point selects of one read-only or read-write transaction.
const POINT_SELECTS: usize = 10;

/// Errors that a transaction may end with as part of the game: a deadlock (1213), a lock not
/// granted in time (1205), a row changed since it was read (1020). The transaction is rolled back
/// and another one begun.
const CONFLICTS: &[u16] = &[1213, 1205, 1020];

/// How statements are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Prepared once a connection, executed with parameters.
    #[default]
    Prepared,
    /// As text, values in it.
    Text,
}

/// What the clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Workload {
    /// One row by its primary key.
    PointSelect,
    /// 100 rows by a range of the primary key.
    SimpleRanges,
    /// Ten point selects and four ranges, in a transaction.
    ReadOnly,
    /// The same, and the changes of [`Workload::WriteOnly`].
    ReadWrite,
    /// An indexed and a non-indexed update, a delete and an insert, in a transaction.
    WriteOnly,
    /// One update of an indexed column.
    UpdateIndex,
    /// One update of a column without an index.
    UpdateNonIndex,
    /// One insert.
    Insert,
    /// Connect, log in, leave.
    Connect,
}

/// Each workload and its name: sysbench's, but for `connect` and `simple_ranges`, which are no
/// workloads of their own there.
const NAMES: &[(Workload, &str)] = &[
    (Workload::PointSelect, "oltp_point_select"),
    (Workload::SimpleRanges, "simple_ranges"),
    (Workload::ReadOnly, "oltp_read_only"),
    (Workload::ReadWrite, "oltp_read_write"),
    (Workload::WriteOnly, "oltp_write_only"),
    (Workload::UpdateIndex, "oltp_update_index"),
    (Workload::UpdateNonIndex, "oltp_update_non_index"),
    (Workload::Insert, "oltp_insert"),
    (Workload::Connect, "connect"),
];

impl Workload {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|&(workload, _)| workload)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|&&(workload, _)| workload == self)
            .map_or("", |&(_, name)| name)
    }

    fn steps(self) -> &'static [(Step, usize)] {
        const READS: [(Step, usize); 5] = [
            (Step::Point, POINT_SELECTS),
            (Step::SimpleRange, 1),
            (Step::SumRange, 1),
            (Step::OrderRange, 1),
            (Step::DistinctRange, 1),
        ];
        const WRITES: [(Step, usize); 4] = [
            (Step::UpdateIndex, 1),
            (Step::UpdateNonIndex, 1),
            (Step::Delete, 1),
            (Step::PutBack, 1),
        ];
        const BOTH: [(Step, usize); 9] = {
            let [a, b, c, d, e] = READS;
            let [f, g, h, i] = WRITES;
            [a, b, c, d, e, f, g, h, i]
        };
        match self {
            Self::PointSelect => &[(Step::Point, 1)],
            Self::SimpleRanges => &[(Step::SimpleRange, 1)],
            Self::ReadOnly => &READS,
            Self::ReadWrite => &BOTH,
            Self::WriteOnly => &WRITES,
            Self::UpdateIndex => &[(Step::UpdateIndex, 1)],
            Self::UpdateNonIndex => &[(Step::UpdateNonIndex, 1)],
            Self::Insert => &[(Step::Insert, 1)],
            Self::Connect => &[],
        }
    }

    /// The steps one by one, with BEGIN and COMMIT around them if there are several.
    fn script(self) -> Vec<Step> {
        let steps = self.steps().iter();
        let mut script: Vec<Step> = steps
            .flat_map(|&(step, times)| std::iter::repeat_n(step, times))
            .collect();
        if script.len() > 1 {
            script.insert(0, Step::Begin);
            script.push(Step::Commit);
        }
        script
    }
}

impl FromStr for Workload {
    type Err = String;

    /// By name, with or without `oltp_`.
    fn from_str(text: &str) -> Result<Self, String> {
        NAMES
            .iter()
            .find(|(_, name)| *name == text || name.strip_prefix("oltp_") == Some(text))
            .map(|&(workload, _)| workload)
            .ok_or_else(|| {
                let names: Vec<_> = NAMES.iter().map(|(_, name)| *name).collect();
                format!(
                    "unknown workload '{text}': it is one of {}",
                    names.join(", ")
                )
            })
    }
}

impl std::fmt::Display for Workload {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.name())
    }
}

/// One statement of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begin,
    Point,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    UpdateIndex,
    UpdateNonIndex,
    Delete,
    /// Inserts the row that was deleted last.
    PutBack,
    Insert,
    Commit,
}

/// The statements, `{}` for the table's name. Their numbers index the prepared ones.
const STATEMENTS: [&str; 11] = [
    "SELECT c FROM {} WHERE id=?",
    "SELECT c FROM {} WHERE id BETWEEN ? AND ?",
    "SELECT SUM(k) FROM {} WHERE id BETWEEN ? AND ?",
    "SELECT c FROM {} WHERE id BETWEEN ? AND ? ORDER BY c",
    "SELECT DISTINCT c FROM {} WHERE id BETWEEN ? AND ? ORDER BY c",
    "UPDATE {} SET k=k+1 WHERE id=?",
    "UPDATE {} SET c=? WHERE id=?",
    "DELETE FROM {} WHERE id=?",
    "INSERT INTO {} (id, k, c, pad) VALUES (?, ?, ?, ?)",
    "BEGIN",
    "COMMIT",
];

impl Step {
    /// Its statement's number.
    fn statement(self) -> usize {
        match self {
            Self::Point => 0,
            Self::SimpleRange => 1,
            Self::SumRange => 2,
            Self::OrderRange => 3,
            Self::DistinctRange => 4,
            Self::UpdateIndex => 5,
            Self::UpdateNonIndex => 6,
            Self::Delete => 7,
            Self::PutBack | Self::Insert => 8,
            Self::Begin => 9,
            Self::Commit => 10,
        }
    }

    /// Whether it has the same text whatever the table and the values.
    fn is_constant(self) -> bool {
        matches!(self, Self::Begin | Self::Commit)
    }
}

/// How one transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Committed, or nothing to commit.
    Done,
    /// In conflict with another one, and rolled back.
    Conflict,
}

/// One client of a workload: a connection, its statements, and where in its transaction it is. One
/// statement is in flight at a time.
pub(crate) struct Client {
    connection: Connection,
    options: Options,
    tables: Vec<Table>,
    /// Each table's prepared statements; in text mode nothing is prepared.
    prepared: Vec<Vec<Option<Statement>>>,
    script: Vec<Step>,
    /// The steps that were sent.
    sent: usize,
    /// The transaction is in conflict, and a ROLLBACK is in flight.
    rolls_back: bool,
    /// The table and id of the row that was deleted last.
    deleted: (usize, u64),
    random: Rng,
    /// Statements sent so far, BEGIN and COMMIT among them.
    pub(crate) queries: u64,
    sql: String,
}

impl AsMut<Connection> for Client {
    fn as_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

impl Client {
    /// Connects, and prepares what the workload needs.
    pub(crate) fn connect(
        workload: Workload,
        options: &Options,
        tables: &[Table],
        mode: Mode,
        random: Rng,
    ) -> Result<Self, Error> {
        let mut connection = Connection::connect(options)?;
        let script = workload.script();
        let mut prepared = Vec::new();
        for table in tables {
            let mut statements = vec![None; STATEMENTS.len()];
            for step in script.iter().filter(|step| !step.is_constant()) {
                let number = step.statement();
                if mode == Mode::Prepared && statements[number].is_none() {
                    let sql = STATEMENTS[number].replace("{}", &table.name());
                    statements[number] = Some(connection.prepare(sql)?);
                }
            }
            prepared.push(statements);
        }
        Ok(Self {
            connection,
            options: options.clone(),
            tables: tables.to_vec(),
            prepared,
            script,
            sent: 0,
            rolls_back: false,
            deleted: (0, 0),
            random,
            queries: 0,
            sql: String::new(),
        })
    }

    /// Begins a transaction: its first statement is sent, and [`go_on`](Self::go_on) is to be
    /// called for each reply. One that is without statements of its own ends here.
    pub(crate) fn begin(&mut self) -> Result<Option<Ending>, Error> {
        self.sent = 0;
        if self.script.is_empty() {
            self.queries += 1;
            Connection::connect(&self.options)?.close()?;
            return Ok(Some(Ending::Done));
        }
        self.send_next()?;
        Ok(None)
    }

    /// OptionKind the reply to the statement in flight, waiting for it if it isn't there, and sends the
    /// next one. How the transaction ended, if it has.
    pub(crate) fn go_on(&mut self) -> Result<Option<Ending>, Error> {
        match self.take_reply() {
            Ok(()) if self.rolls_back => {
                self.rolls_back = false;
                Ok(Some(Ending::Conflict))
            }
            Ok(()) if self.sent == self.script.len() => Ok(Some(Ending::Done)),
            Ok(()) => {
                self.send_next()?;
                Ok(None)
            }
            Err(error) if is_conflict(&error) && !self.rolls_back => {
                self.rolls_back = true;
                self.connection.send_query("ROLLBACK")?;
                self.connection.flush()?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads each row.
    fn take_reply(&mut self) -> Result<(), Error> {
        let mut results = self.connection.receive()?;
        while results.next_row()?.is_some() {}
        Ok(())
    }

    fn send_next(&mut self) -> Result<(), Error> {
        let step = self.script[self.sent];
        self.sent += 1;
        self.queries += 1;
        let (at, id) = match step {
            _ if step.is_constant() => (0, 0),
            Step::PutBack => self.deleted,
            _ => {
                let at = self.random.usize(0..self.tables.len());
                (at, self.tables[at].random_id(&mut self.random))
            }
        };
        match step {
            Step::Begin | Step::Commit => self.put(at, step, &[])?,
            Step::Point | Step::UpdateIndex => self.put(at, step, &[id.into()])?,
            Step::SimpleRange | Step::SumRange | Step::OrderRange | Step::DistinctRange => {
                self.put(at, step, &[id.into(), (id + RANGE_ROWS - 1).into()])?;
            }
            Step::UpdateNonIndex => {
                let c = c_value(&mut self.random);
                self.put(at, step, &[(&c).into(), id.into()])?;
            }
            Step::Delete => {
                self.deleted = (at, id);
                self.put(at, step, &[id.into()])?;
            }
            Step::PutBack | Step::Insert => {
                // Zero lets AUTO_INCREMENT give the next id.
                let id = if step == Step::Insert { 0 } else { id };
                let k = self.tables[at].random_id(&mut self.random);
                let (c, pad) = (c_value(&mut self.random), pad_value(&mut self.random));
                let values = [id.into(), k.into(), (&c).into(), (&pad).into()];
                self.put(at, step, &values)?;
            }
        }
        self.connection.flush()
    }

    fn put(&mut self, at: usize, step: Step, values: &[Value<'_>]) -> Result<(), Error> {
        let number = step.statement();
        match &self.prepared[at][number] {
            Some(statement) => self.connection.send_execute(statement, values),
            None => {
                fill_in(&mut self.sql, STATEMENTS[number], &self.tables[at], values);
                self.connection.send_query(&self.sql)
            }
        }
    }
}

/// A transaction may end with this error, and is to be begun again.
pub(crate) fn is_conflict(error: &Error) -> bool {
    error
        .number()
        .is_some_and(|number| CONFLICTS.contains(&number))
}

/// Writes a statement with values in the places of its parameters. None of the workloads' strings
/// needs escaping.
fn fill_in(sql: &mut String, statement: &str, table: &Table, values: &[Value<'_>]) {
    sql.clear();
    let mut values = values.iter();
    for (at, part) in statement.split("{}").enumerate() {
        if at > 0 {
            write!(sql, "sbtest{}", table.number).expect("a String takes every write");
        }
        for (at, part) in part.split('?').enumerate() {
            if at > 0 {
                match values.next() {
                    Some(Value::UInt(value)) => write!(sql, "{value}"),
                    Some(Value::Text(text)) => write!(sql, "'{}'", String::from_utf8_lossy(text)),
                    _ => write!(sql, "NULL"),
                }
                .expect("a String takes every write");
            }
            sql.push_str(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_found_by_name() {
        for workload in Workload::all() {
            assert_eq!(workload.name().parse(), Ok(workload));
        }
        assert_eq!("point_select".parse(), Ok(Workload::PointSelect));
        assert!(
            "oltp_dance"
                .parse::<Workload>()
                .unwrap_err()
                .contains("oltp_read_only")
        );
    }

    #[test]
    fn the_mix_of_a_transaction_is_that_of_sysbench() {
        let statements = |workload: Workload| workload.script().len();
        assert_eq!(statements(Workload::ReadOnly), 16);
        assert_eq!(statements(Workload::ReadWrite), 20);
        assert_eq!(statements(Workload::WriteOnly), 6);
        assert_eq!(statements(Workload::PointSelect), 1);
        assert_eq!(statements(Workload::Connect), 0);
    }

    #[test]
    fn a_statement_as_text_holds_its_values() {
        let mut sql = String::new();
        let table = Table {
            number: 2,
            rows: 10,
        };
        fill_in(
            &mut sql,
            STATEMENTS[6],
            &table,
            &["a-b".into(), 7u64.into()],
        );
        assert_eq!(sql, "UPDATE sbtest2 SET c='a-b' WHERE id=7");
    }
}
