//! The workloads: what one transaction does. Statements and their mix are sysbench's.
//!
//! A [`Client`] sends a statement and goes on when its reply is there, so that a thread may have
//! one client or many:
//!
//! ```text
//!   begin ─► BEGIN ─► a step ─► … ─► COMMIT ─► done         each arrow: the reply is taken, the next statement sent
//!                       └── conflict ─► ROLLBACK ─► conflict
//! ```

use smallvec::SmallVec;
use std::sync::Arc;

use crate::scenario::Scenario;
use crate::table::{Table, c_value, pad_value};
use fastrand::Rng;
use porpoise_client::{Connection, Error, FileSource, Options, Row, Statement, Value};
use std::fmt::Write;
use std::str::FromStr;
use std::time::Duration;

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
    /// All rows of a table: with 500,000 of them 100 MB.
    WholeTable,
    /// Connect, log in, leave.
    Connect,
    /// Connect, log in, ask for one row by its primary key, leave.
    ConnectQuery,
}

/// Each workload and its name: sysbench's, but for `connect`, `connect_query`, `simple_ranges` and
/// `whole_table`, which are no workloads of their own there.
const NAMES: &[(Workload, &str)] = &[
    (Workload::PointSelect, "oltp_point_select"),
    (Workload::SimpleRanges, "simple_ranges"),
    (Workload::ReadOnly, "oltp_read_only"),
    (Workload::ReadWrite, "oltp_read_write"),
    (Workload::WriteOnly, "oltp_write_only"),
    (Workload::UpdateIndex, "oltp_update_index"),
    (Workload::UpdateNonIndex, "oltp_update_non_index"),
    (Workload::Insert, "oltp_insert"),
    (Workload::WholeTable, "whole_table"),
    (Workload::Connect, "connect"),
    (Workload::ConnectQuery, "connect_query"),
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

    /// Whether each transaction has a connection of its own.
    pub fn connects(self) -> bool {
        matches!(self, Self::Connect | Self::ConnectQuery)
    }

    /// Whether the tables have more rows after it than before it.
    pub fn grows_tables(self) -> bool {
        self.steps()
            .iter()
            .any(|&(step, _)| matches!(step, Step::Insert))
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
            Self::PointSelect | Self::ConnectQuery => &[(Step::Point, 1)],
            Self::SimpleRanges => &[(Step::SimpleRange, 1)],
            Self::ReadOnly => &READS,
            Self::ReadWrite => &BOTH,
            Self::WriteOnly => &WRITES,
            Self::UpdateIndex => &[(Step::UpdateIndex, 1)],
            Self::UpdateNonIndex => &[(Step::UpdateNonIndex, 1)],
            Self::Insert => &[(Step::Insert, 1)],
            Self::WholeTable => &[(Step::WholeTable, 1)],
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
    WholeTable,
    Commit,
}

/// The statements, `{}` for the table's name. Their numbers index the prepared ones.
const STATEMENTS: [&str; 12] = [
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
    "SELECT id, k, c, pad FROM {}",
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
            Self::WholeTable => 11,
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
    /// In conflict with another one, by the error's number, and rolled back.
    Conflict(u16),
}

/// What the clients of a load do.
#[derive(Clone, Debug)]
pub enum Script {
    /// One of the OLTP workloads, on these tables.
    Oltp(Workload, Vec<Table>),
    /// The transactions of a scenario.
    Of(ScenarioRef),
}

/// A scenario that clients share.
#[derive(Clone)]
pub struct ScenarioRef(pub(crate) Arc<dyn Scenario>);

impl std::fmt::Debug for ScenarioRef {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("ScenarioRef").finish_non_exhaustive()
    }
}

impl Script {
    /// The texts of all its statements, with `?` for values.
    fn statements(&self) -> Vec<String> {
        match self {
            Self::Oltp(_, tables) => {
                let of = |table: &Table| STATEMENTS.map(|text| text.replace("{}", &table.name()));
                tables.iter().flat_map(of).collect()
            }
            Self::Of(scenario) => scenario.0.statements(),
        }
    }

    /// The numbers of those that are worth preparing.
    fn to_prepare(&self) -> Vec<usize> {
        match self {
            Self::Oltp(workload, tables) => {
                let steps = workload.steps().iter().map(|(step, _)| step.statement());
                (0..tables.len())
                    .flat_map(|at| steps.clone().map(move |step| at * STATEMENTS.len() + step))
                    .collect()
            }
            Self::Of(scenario) => scenario.0.to_prepare(),
        }
    }

    /// The names of its kinds of transactions; none if there is one kind.
    pub(crate) fn kinds(&self) -> Vec<String> {
        match self {
            Self::Oltp(..) => Vec::new(),
            Self::Of(scenario) => scenario.0.kinds(),
        }
    }

    /// A client's way through it.
    fn course(&self, client: usize) -> Box<dyn Course> {
        match self {
            Self::Oltp(workload, tables) => Box::new(OltpCourse {
                tables: tables.clone(),
                script: workload.script(),
                sent: 0,
                deleted: (0, 0),
            }),
            Self::Of(scenario) => scenario.0.clone().course(client),
        }
    }

    fn connects(&self) -> bool {
        matches!(self, Self::Oltp(workload, _) if workload.connects())
    }
}

/// A value of a statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Filled {
    Null,
    UInt(u64),
    Int(i64),
    Text(String),
}

impl Filled {
    fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::UInt(value) => Value::UInt(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Text(text) => Value::from(text),
        }
    }

    /// Appends the literal that stands for it in SQL.
    fn write_literal(&self, sql: &mut String) {
        let written = match self {
            Self::Null => write!(sql, "NULL"),
            Self::UInt(value) => write!(sql, "{value}"),
            Self::Int(value) => write!(sql, "{value}"),
            Self::Text(text) if text.contains(['\'', '\\']) => {
                let text = text.replace('\\', "\\\\").replace('\'', "''");
                write!(sql, "'{text}'")
            }
            Self::Text(text) => write!(sql, "'{text}'"),
        };
        written.expect("a String takes every write");
    }
}

/// A client's way through its transactions, statement by statement.
pub(crate) trait Course: Send {
    /// Chooses a transaction; returned is how long the client waits before it begins it.
    fn begin(&mut self, random: &mut Rng) -> Duration;

    /// The number of the transaction's next statement, whose values are put into `values`; nothing
    /// if there is no further one.
    fn next(&mut self, random: &mut Rng, values: &mut Vec<Filled>) -> Option<usize>;

    /// The text of the statement that `next` gave, if it is made anew each time.
    fn text(&self) -> Option<&str> {
        None
    }

    /// Sees a row of the reply to the statement that `next` gave.
    fn row(&mut self, _row: &Row<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// The number of the transaction's kind, of those that the script names.
    fn kind(&self) -> usize {
        0
    }

    /// Where files come from that a statement has the server ask for.
    fn files(&mut self) -> Option<FileSource> {
        None
    }
}

struct OltpCourse {
    tables: Vec<Table>,
    script: Vec<Step>,
    /// The steps that were taken.
    sent: usize,
    /// The table and id of the row that was deleted last.
    deleted: (usize, u64),
}

impl Course for OltpCourse {
    fn begin(&mut self, _: &mut Rng) -> Duration {
        self.sent = 0;
        Duration::ZERO
    }

    fn next(&mut self, random: &mut Rng, values: &mut Vec<Filled>) -> Option<usize> {
        use Filled::{Text, UInt};
        let step = *self.script.get(self.sent)?;
        self.sent += 1;
        let (at, id) = match step {
            _ if step.is_constant() => (0, 0),
            Step::PutBack => self.deleted,
            _ => {
                let at = random.usize(0..self.tables.len());
                (at, self.tables[at].random_id(random))
            }
        };
        match step {
            Step::Begin | Step::Commit | Step::WholeTable => {}
            Step::Point | Step::UpdateIndex => values.push(UInt(id)),
            Step::SimpleRange | Step::SumRange | Step::OrderRange | Step::DistinctRange => {
                values.extend([UInt(id), UInt(id + RANGE_ROWS - 1)]);
            }
            Step::UpdateNonIndex => values.extend([Text(c_value(random)), UInt(id)]),
            Step::Delete => {
                self.deleted = (at, id);
                values.push(UInt(id));
            }
            Step::PutBack | Step::Insert => {
                // Zero lets AUTO_INCREMENT give the next id.
                let id = if step == Step::Insert { 0 } else { id };
                let k = self.tables[at].random_id(random);
                let (c, pad) = (c_value(random), pad_value(random));
                values.extend([UInt(id), UInt(k), Text(c), Text(pad)]);
            }
        }
        Some(at * STATEMENTS.len() + step.statement())
    }
}

/// Statements are sent by clients that have a connection.
const CONNECTED: &str = "a client whose transactions have statements is connected";

/// One client of a load: a connection, its statements, and where in its transaction it is. One
/// statement is in flight at a time.
pub(crate) struct Client {
    /// None while transactions have connections of their own, and there is none.
    connection: Option<Connection>,
    /// Each transaction has one.
    reconnects: bool,
    options: Options,
    texts: Vec<String>,
    /// Those that are prepared; in text mode none is.
    prepared: Vec<Option<Statement>>,
    course: Box<dyn Course>,
    values: Vec<Filled>,
    /// The transaction is in conflict, by the error's number, and a ROLLBACK is in flight.
    rolls_back: Option<u16>,
    random: Rng,
    /// Statements sent so far, BEGIN and COMMIT among them.
    pub(crate) queries: u64,
    sql: String,
}

impl AsMut<Connection> for Client {
    fn as_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().expect(CONNECTED)
    }
}

impl Client {
    /// Connects, and prepares what the script needs.
    pub(crate) fn connect(
        script: &Script,
        options: &Options,
        mode: Mode,
        client: usize,
        random: Rng,
    ) -> Result<Self, Error> {
        let mut course = script.course(client);
        let reconnects = script.connects();
        let mut connection = match reconnects {
            true => None,
            false => Some(Connection::connect(options)?),
        };
        if let Some(connection) = &mut connection {
            connection.set_file_source(course.files());
        }
        let texts = script.statements();
        let mut prepared = vec![None; texts.len()];
        if let Some(connection) = connection.as_mut().filter(|_| mode == Mode::Prepared) {
            for number in script.to_prepare() {
                prepared[number] = Some(connection.prepare(&texts[number])?);
            }
        }
        Ok(Self {
            connection,
            reconnects,
            options: options.clone(),
            texts,
            prepared,
            course,
            values: Vec::new(),
            rolls_back: None,
            random,
            queries: 0,
            sql: String::new(),
        })
    }

    /// Random numbers of this client's own for another purpose.
    pub(crate) fn fork_random(&mut self) -> Rng {
        self.random.fork()
    }

    /// Chooses a transaction; returned is how long to wait before it begins.
    pub(crate) fn choose(&mut self) -> Duration {
        self.course.begin(&mut self.random)
    }

    /// The number of the chosen transaction's kind.
    pub(crate) fn kind(&self) -> usize {
        self.course.kind()
    }

    /// Begins the transaction that was chosen: its first statement is sent, and
    /// [`go_on`](Self::go_on) is to be called for each reply. One without statements ends here.
    pub(crate) fn begin(&mut self) -> Result<Option<Ending>, Error> {
        if self.reconnects {
            self.connection = Some(Connection::connect(&self.options)?);
        }
        if self.send_next()? {
            return Ok(None);
        }
        self.queries += u64::from(self.reconnects);
        self.done().map(Some)
    }

    /// Whether a statement is in flight.
    pub(crate) fn is_waiting(&self) -> bool {
        let connection = self.connection.as_ref();
        connection.is_some_and(|connection| connection.pending() > 0)
    }

    fn done(&mut self) -> Result<Ending, Error> {
        if self.reconnects
            && let Some(connection) = self.connection.take()
        {
            connection.close()?;
        }
        Ok(Ending::Done)
    }

    /// Takes the reply to the statement in flight, waiting for it if it isn't there, and sends the
    /// next one. How the transaction ended, if it has.
    pub(crate) fn go_on(&mut self) -> Result<Option<Ending>, Error> {
        match self.take_reply() {
            Ok(()) => {
                if let Some(number) = self.rolls_back.take() {
                    return Ok(Some(Ending::Conflict(number)));
                }
                match self.send_next()? {
                    true => Ok(None),
                    false => self.done().map(Some),
                }
            }
            Err(error) if is_conflict(&error) && self.rolls_back.is_none() => {
                self.rolls_back = error.number();
                let connection = self.as_mut();
                connection.send_query("ROLLBACK")?;
                connection.flush()?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads each row.
    fn take_reply(&mut self) -> Result<(), Error> {
        let connection = self.connection.as_mut().expect(CONNECTED);
        let mut results = connection.receive()?;
        while let Some(row) = results.next_row()? {
            // That of a ROLLBACK in flight has none.
            self.course.row(&row)?;
        }
        Ok(())
    }

    /// False if the transaction has no further statement.
    fn send_next(&mut self) -> Result<bool, Error> {
        self.values.clear();
        let Some(number) = self.course.next(&mut self.random, &mut self.values) else {
            return Ok(false);
        };
        self.queries += 1;
        let connection = self.connection.as_mut().expect(CONNECTED);
        match &self.prepared[number] {
            Some(statement) => {
                let values: SmallVec<[Value<'_>; 4]> =
                    self.values.iter().map(Filled::value).collect();
                connection.send_execute(statement, &values)?;
            }
            None => match self.course.text() {
                Some(text) => connection.send_query(text)?,
                None => {
                    fill_in(&mut self.sql, &self.texts[number], &self.values);
                    connection.send_query(&self.sql)?;
                }
            },
        }
        connection.flush()?;
        Ok(true)
    }
}

/// A transaction may end with this error, and is to be begun again.
pub(crate) fn is_conflict(error: &Error) -> bool {
    error
        .number()
        .is_some_and(|number| CONFLICTS.contains(&number))
}

/// Writes a statement with values in the places of its parameters.
fn fill_in(sql: &mut String, statement: &str, values: &[Filled]) {
    sql.clear();
    for (at, part) in statement.split('?').enumerate() {
        if at > 0 {
            values
                .get(at - 1)
                .unwrap_or(&Filled::Null)
                .write_literal(sql);
        }
        sql.push_str(part);
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
        let values = [Filled::Text("a-b".into()), Filled::UInt(7)];
        fill_in(&mut sql, "UPDATE sbtest2 SET c=? WHERE id=?", &values);
        assert_eq!(sql, "UPDATE sbtest2 SET c='a-b' WHERE id=7");
        let values = [
            Filled::Text("it's \\".into()),
            Filled::Int(-7),
            Filled::Null,
        ];
        fill_in(&mut sql, "SELECT ?, ?, ?", &values);
        assert_eq!(sql, "SELECT 'it''s \\\\', -7, NULL");
    }
}
