//! The workloads: what one transaction does. Statements and their mix are sysbench's.

use crate::table::{Table, c_value, pad_value};
use fastrand::Rng;
use porpoise_client::{Connection, Error, Options, Statement, Value};
use std::fmt::Write;
use std::str::FromStr;

/// Rows of a range.
const RANGE_ROWS: u64 = 100;
/// Point selects of one read-only or read-write transaction.
const POINT_SELECTS: usize = 10;

/// Errors that a transaction may end with as part of the game: a deadlock (1213), a lock not granted in time (1205), a
/// row changed since it was read (1020). The transaction is rolled back and another one begun.
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

/// Each workload and its name: sysbench's, but for `connect` and `simple_ranges`, which are no workloads of their own there.
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
        const WRITES: [(Step, usize); 3] = [
            (Step::UpdateIndex, 1),
            (Step::UpdateNonIndex, 1),
            (Step::DeleteInsert, 1),
        ];
        const BOTH: [(Step, usize); 8] = {
            let [a, b, c, d, e] = READS;
            let [f, g, h] = WRITES;
            [a, b, c, d, e, f, g, h]
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

    /// Whether its statements stand between BEGIN and COMMIT.
    fn is_transaction(self) -> bool {
        self.steps().len() > 1
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

/// A part of a transaction: a statement, or the two that delete a row and put it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Point,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    UpdateIndex,
    UpdateNonIndex,
    DeleteInsert,
    Insert,
}

/// The statements, `{}` for the table's name. Their numbers index the prepared ones.
const STATEMENTS: [&str; 9] = [
    "SELECT c FROM {} WHERE id=?",
    "SELECT c FROM {} WHERE id BETWEEN ? AND ?",
    "SELECT SUM(k) FROM {} WHERE id BETWEEN ? AND ?",
    "SELECT c FROM {} WHERE id BETWEEN ? AND ? ORDER BY c",
    "SELECT DISTINCT c FROM {} WHERE id BETWEEN ? AND ? ORDER BY c",
    "UPDATE {} SET k=k+1 WHERE id=?",
    "UPDATE {} SET c=? WHERE id=?",
    "DELETE FROM {} WHERE id=?",
    "INSERT INTO {} (id, k, c, pad) VALUES (?, ?, ?, ?)",
];
const DELETE: usize = 7;
const INSERT: usize = 8;

impl Step {
    fn statements(self) -> &'static [usize] {
        match self {
            Self::Point => &[0],
            Self::SimpleRange => &[1],
            Self::SumRange => &[2],
            Self::OrderRange => &[3],
            Self::DistinctRange => &[4],
            Self::UpdateIndex => &[5],
            Self::UpdateNonIndex => &[6],
            Self::DeleteInsert => &[DELETE, INSERT],
            Self::Insert => &[INSERT],
        }
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

/// One client of a workload: a connection and its statements.
pub(crate) struct Client {
    workload: Workload,
    options: Options,
    connection: Connection,
    tables: Vec<Table>,
    /// Each table's prepared statements; in text mode nothing is prepared.
    prepared: Vec<Vec<Option<Statement>>>,
    random: Rng,
    /// Statements sent so far, BEGIN and COMMIT among them.
    pub(crate) queries: u64,
    sql: String,
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
        let mut prepared = Vec::new();
        for table in tables {
            let mut statements = vec![None; STATEMENTS.len()];
            let needed = workload
                .steps()
                .iter()
                .flat_map(|(step, _)| step.statements());
            for &number in needed.filter(|_| mode == Mode::Prepared) {
                if statements[number].is_none() {
                    let sql = STATEMENTS[number].replace("{}", &table.name());
                    statements[number] = Some(connection.prepare(sql)?);
                }
            }
            prepared.push(statements);
        }
        Ok(Self {
            workload,
            options: options.clone(),
            connection,
            tables: tables.to_vec(),
            prepared,
            random,
            queries: 0,
            sql: String::new(),
        })
    }

    /// Runs one transaction.
    pub(crate) fn transact(&mut self) -> Result<Ending, Error> {
        match self.attempt() {
            Ok(()) => Ok(Ending::Done),
            Err(error)
                if error
                    .number()
                    .is_some_and(|number| CONFLICTS.contains(&number)) =>
            {
                self.connection.run("ROLLBACK")?;
                Ok(Ending::Conflict)
            }
            Err(error) => Err(error),
        }
    }

    fn attempt(&mut self) -> Result<(), Error> {
        if self.workload == Workload::Connect {
            self.queries += 1;
            return Connection::connect(&self.options)?.close();
        }
        let transaction = self.workload.is_transaction();
        if transaction {
            self.query("BEGIN")?;
        }
        for &(step, times) in self.workload.steps() {
            for _ in 0..times {
                self.step(step)?;
            }
        }
        if transaction {
            self.query("COMMIT")?;
        }
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<(), Error> {
        let at = self.random.usize(0..self.tables.len());
        let table = self.tables[at];
        let id = table.random_id(&mut self.random);
        match step {
            Step::Point | Step::UpdateIndex => self.send(at, step.statements()[0], &[id.into()]),
            Step::SimpleRange | Step::SumRange | Step::OrderRange | Step::DistinctRange => {
                let last = id + RANGE_ROWS - 1;
                self.send(at, step.statements()[0], &[id.into(), last.into()])
            }
            Step::UpdateNonIndex => {
                let c = c_value(&mut self.random);
                self.send(at, step.statements()[0], &[(&c).into(), id.into()])
            }
            Step::DeleteInsert => {
                self.send(at, DELETE, &[id.into()])?;
                self.insert(at, id)
            }
            // Zero lets AUTO_INCREMENT give the next id.
            Step::Insert => self.insert(at, 0),
        }
    }

    fn insert(&mut self, at: usize, id: u64) -> Result<(), Error> {
        let k = self.tables[at].random_id(&mut self.random);
        let (c, pad) = (c_value(&mut self.random), pad_value(&mut self.random));
        self.send(
            at,
            INSERT,
            &[id.into(), k.into(), (&c).into(), (&pad).into()],
        )
    }

    /// Runs a statement and reads each of its rows.
    fn send(&mut self, at: usize, number: usize, values: &[Value<'_>]) -> Result<(), Error> {
        self.queries += 1;
        let mut results = match &self.prepared[at][number] {
            Some(statement) => self.connection.execute(statement, values)?,
            None => {
                fill_in(&mut self.sql, STATEMENTS[number], &self.tables[at], values);
                self.connection.query(&self.sql)?
            }
        };
        while results.next_row()?.is_some() {}
        Ok(())
    }

    fn query(&mut self, sql: &str) -> Result<(), Error> {
        self.queries += 1;
        self.connection.run(sql).map(drop)
    }
}

/// Writes a statement with values in the places of its parameters. None of the workloads' strings needs escaping.
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
        let statements = |workload: Workload| -> usize {
            let each = workload
                .steps()
                .iter()
                .map(|(step, times)| step.statements().len() * times);
            each.sum::<usize>() + if workload.is_transaction() { 2 } else { 0 }
        };
        assert_eq!(statements(Workload::ReadOnly), 16);
        assert_eq!(statements(Workload::ReadWrite), 20);
        assert_eq!(statements(Workload::WriteOnly), 6);
        assert_eq!(statements(Workload::PointSelect), 1);
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
