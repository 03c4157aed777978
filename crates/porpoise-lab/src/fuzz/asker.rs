//! Threads that ask, each over a connection of its own, until all is asked, somebody stops them, or
//! the server is gone.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use fastrand::Rng;
use porpoise_client::{Connection, Options, TlsMode};
use serde::{Deserialize, Serialize};

use super::child::is_usable;
use super::forms::Form;
use super::reply::{Fault, Reply, ask, receive};
use super::statement::{Statement, forms_named};
use crate::Error;

/// So many statements have one shape, and other constants.
pub(super) const VARIANTS: u64 = 8;
/// One of so many statements is asked again, to be planned for its own constants: a multiple of
/// [`VARIANTS`], so that it is the last one of a shape.
const PLANNED_AGAIN: u64 = 2 * VARIANTS;
/// A statement's time.
const STATEMENT_SECONDS: u32 = 30;
/// Between two looks at what goes on.
pub(super) const LOOK: Duration = Duration::from_millis(50);
/// A statement that hasn't ended after so many looks, 75 seconds, doesn't heed its limit. The clock
/// isn't asked, which goes on while a machine sleeps.
pub(super) const STUCK_LOOKS: u32 = 1500;

/// How an answer is named that a kept plan gave.
pub(super) const BY_KEPT_PLAN: &str = "by a kept plan";

/// What is asked, and by how many.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Recipe {
    /// Statements come from it.
    pub seed: u64,
    /// How deep expressions nest.
    pub depth: u32,
    /// Only forms whose names hold one of these words; all, if there are none.
    pub functions: Vec<String>,
    /// Connections at a time.
    pub threads: usize,
    /// Statements of a shape that a connection sends before it waits for the first one's reply.
    pub ahead: usize,
    /// The URL of a second server, whose answers have to be the same.
    pub oracle: Option<String>,
}

/// Statements, known by their numbers.
pub(super) struct Statements {
    pub recipe: Recipe,
    forms: Vec<&'static Form>,
}

impl Statements {
    pub(super) fn of(recipe: Recipe) -> Statements {
        let forms = forms_named(&recipe.functions);
        Statements { recipe, forms }
    }

    /// Whether there is nothing that statements could be made of.
    pub(super) fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// The first statement of a shape, and what makes the constants of its others.
    fn first_of(&self, shape: u64) -> (Rng, Statement) {
        // Neighbouring seeds begin alike.
        let mut random =
            Rng::with_seed(self.recipe.seed ^ shape.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let statement = Statement::of(&mut random, &self.forms, self.recipe.depth);
        (random, statement)
    }

    /// The statements that may be under way where the reply to one is awaited.
    pub(super) fn suspects(&self, awaited: u64) -> Range<u64> {
        match self.recipe.ahead {
            0 | 1 => awaited..awaited + 1,
            _ => awaited..(awaited / VARIANTS + 1) * VARIANTS,
        }
    }

    /// The statement of a number.
    pub(super) fn numbered(&self, number: u64) -> Statement {
        let (mut random, mut statement) = self.first_of(number / VARIANTS);
        for _ in 0..number % VARIANTS {
            statement.redraw(&mut random);
        }
        statement
    }
}

/// What threads share.
pub(super) struct Asking<'a> {
    statements: &'a Statements,
    options: &'a Options,
    oracle: Option<Options>,
    /// The next shape.
    next: AtomicU64,
    end: u64,
    stop: AtomicBool,
    places: Vec<Place>,
    refused: AtomicU64,
    /// Where shapes that are under way are noted, to be known when this process is gone.
    under_way: Option<UnderWay>,
    /// Is told what is found.
    found: &'a (dyn Fn(u64, Fault) + Sync),
}

/// What a thread does, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Place {
    asked: AtomicU64,
    /// The number of the statement whose reply is awaited, plus one.
    number: AtomicU64,
}

/// How far things are.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Counts {
    pub asked: u64,
    pub refused: u64,
}

/// What came of asking.
pub(super) struct Asked {
    pub counts: Counts,
    /// The shape to go on with.
    pub next: u64,
    /// Statements that were under way when the server was gone.
    pub suspects: Vec<u64>,
}

/// Shapes that are under way, in a file: the kernel keeps what a process wrote before it ended.
pub(super) struct UnderWay(File);

impl UnderWay {
    pub(super) fn create(path: &Path) -> io::Result<UnderWay> {
        File::create(path).map(UnderWay)
    }

    fn set(&self, place: usize, shape: u64) {
        // Less is known of a crash then, nothing else.
        let _ = self
            .0
            .write_all_at(&(shape + 1).to_le_bytes(), place as u64 * 8);
    }

    /// What a process that is gone left under way.
    pub(super) fn left(path: &Path) -> Vec<u64> {
        let bytes = std::fs::read(path).unwrap_or_default();
        let mut shapes: Vec<u64> = bytes
            .as_chunks()
            .0
            .iter()
            .filter_map(|chunk| u64::from_le_bytes(*chunk).checked_sub(1))
            .collect();
        shapes.sort_unstable();
        shapes.dedup();
        shapes
    }
}

impl<'a> Asking<'a> {
    pub(super) fn new(
        statements: &'a Statements,
        options: &'a Options,
        shapes: Range<u64>,
        under_way: Option<UnderWay>,
        found: &'a (dyn Fn(u64, Fault) + Sync),
    ) -> Result<Self, Error> {
        let threads = statements.recipe.threads;
        Ok(Self {
            statements,
            options,
            oracle: oracle_options(&statements.recipe)?,
            next: AtomicU64::new(shapes.start),
            end: shapes.end,
            stop: AtomicBool::new(false),
            places: (0..threads).map(|_| Place::default()).collect(),
            refused: AtomicU64::new(0),
            under_way,
            found,
        })
    }

    /// Has all threads ask. `look` is called now and then, with the number of a statement that
    /// doesn't end if there is one, and stops them by giving true.
    pub(super) fn go(
        &self,
        mut look: impl FnMut(Counts, Option<u64>) -> bool,
    ) -> Result<Asked, Error> {
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for place in 0..self.places.len() {
                threads.push(scope.spawn(move || Asker::new(self, place)?.go()));
            }
            let mut watch = vec![(0, 0); self.places.len()];
            while threads.iter().any(|thread| !thread.is_finished()) {
                std::thread::sleep(LOOK);
                if look(self.counts(), self.stuck(&mut watch)) {
                    self.stop.store(true, Relaxed);
                }
            }
            let results = threads
                .into_iter()
                .map(|thread| thread.join().expect("an asker doesn't panic"));
            let result = results.collect::<Result<Vec<()>, Error>>();
            let numbers = self.places.iter().map(|place| place.number.load(Relaxed));
            let awaited = numbers.filter_map(|number| number.checked_sub(1));
            let suspects: Vec<u64> = awaited
                .flat_map(|awaited| self.statements.suspects(awaited))
                .collect();
            // Where the server is gone, some don't even begin.
            if suspects.is_empty() {
                result?;
            }
            Ok(Asked {
                counts: self.counts(),
                next: self.next.load(Relaxed).min(self.end),
                suspects,
            })
        })
    }

    fn counts(&self) -> Counts {
        let asked = self.places.iter().map(|place| place.asked.load(Relaxed));
        Counts {
            asked: asked.sum(),
            refused: self.refused.load(Relaxed),
        }
    }

    /// A statement whose reply has been awaited for longer than it may take.
    fn stuck(&self, watch: &mut [(u64, u32)]) -> Option<u64> {
        let mut stuck = None;
        for (place, (seen, looks)) in self.places.iter().zip(watch) {
            let number = place.number.load(Relaxed);
            if number != *seen {
                (*seen, *looks) = (number, 0);
            }
            *looks += 1;
            if number != 0 && *looks > STUCK_LOOKS {
                stuck = Some(number - 1);
            }
        }
        stuck
    }
}

/// A thread with its connections.
struct Asker<'a> {
    asking: &'a Asking<'a>,
    place: usize,
    connection: Connection,
    oracle: Option<Connection>,
    /// The statements of a shape.
    texts: [String; VARIANTS as usize],
    asked: u64,
    refused: u64,
}

impl<'a> Asker<'a> {
    fn new(asking: &'a Asking<'a>, place: usize) -> Result<Self, Error> {
        let oracle = asking.oracle.as_ref();
        Ok(Self {
            asking,
            place,
            connection: connect(asking.options, "the server")?,
            oracle: oracle
                .map(|options| connect(options, "the oracle"))
                .transpose()?,
            texts: Default::default(),
            asked: 0,
            refused: 0,
        })
    }

    fn go(&mut self) -> Result<(), Error> {
        let asking = self.asking;
        let place = &asking.places[self.place];
        while !asking.stop.load(Relaxed) {
            let shape = asking.next.fetch_add(1, Relaxed);
            if shape >= asking.end {
                break;
            }
            if let Some(under_way) = &asking.under_way {
                under_way.set(self.place, shape);
            }
            if !self.ask_shape(shape) {
                return Ok(());
            }
            place.asked.store(self.asked, Relaxed);
            asking.refused.fetch_add(self.refused, Relaxed);
            self.refused = 0;
        }
        place.number.store(0, Relaxed);
        Ok(())
    }

    /// Asks all statements of a shape; false if the server is gone.
    fn ask_shape(&mut self, shape: u64) -> bool {
        let asking = self.asking;
        let (mut random, mut statement) = asking.statements.first_of(shape);
        for (variant, text) in self.texts.iter_mut().enumerate() {
            if variant > 0 {
                statement.redraw(&mut random);
            }
            text.clear();
            statement.write(None, text);
        }
        let number = |variant: usize| shape * VARIANTS + variant as u64;
        let awaited = &asking.places[self.place].number;
        let (mut at, mut ahead) = (0, asking.statements.recipe.ahead.max(1));
        while at < self.texts.len() {
            let end = self.texts.len().min(at + ahead);
            for text in &self.texts[at..end] {
                // Whether it can be sent is seen where its reply is received.
                let _ = self.connection.send_query(text);
            }
            while at < end {
                awaited.store(number(at) + 1, Relaxed);
                match self.take_reply(&statement, number(at), at) {
                    Ok(()) => at += 1,
                    // By which of them is seen where each is asked by itself.
                    Err(Fault::Lost(_)) if end - at > 1 => {
                        if !self.reconnected() {
                            return false;
                        }
                        ahead = 1;
                        break;
                    }
                    Err(fault) => {
                        let is_connected = is_usable(&fault);
                        if !is_connected && !self.reconnected() {
                            return false;
                        }
                        (asking.found)(number(at), fault);
                        at += 1;
                        if !is_connected {
                            break;
                        }
                    }
                }
            }
        }
        true
    }

    /// Takes the reply to the oldest statement that was sent, and compares it where that is due.
    /// `statement` is the last one of its shape.
    fn take_reply(
        &mut self,
        statement: &Statement,
        number: u64,
        variant: usize,
    ) -> Result<(), Fault> {
        // It is the last one of a shape: no other reply is on its way.
        let is_planned_again = number % PLANNED_AGAIN == PLANNED_AGAIN - 1 && statement.is_query();
        let is_compared = (self.oracle.is_some() || is_planned_again) && statement.is_pure();
        let reply = receive(&mut self.connection, is_compared)?;
        self.asked += 1;
        self.refused += u64::from(matches!(reply, Reply::Refused(..)));
        if !is_compared {
            return Ok(());
        }
        if is_planned_again {
            self.asked += 1;
            let anew = planned_anew(statement, 0);
            compare_with_new_plan(&mut self.connection, &anew, &reply)?;
        }
        match &mut self.oracle {
            Some(oracle) => compare_with_oracle(oracle, &self.texts[variant], &reply),
            None => Ok(()),
        }
    }

    /// Connects anew; false if the server is gone.
    fn reconnected(&mut self) -> bool {
        match connect(self.asking.options, "the server") {
            Ok(connection) => self.connection = connection,
            Err(_) => {
                self.asking.stop.store(true, Relaxed);
                return false;
            }
        }
        true
    }
}

/// A statement to be tried by itself, in every way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Trial {
    sql: String,
    /// Other statements of its shape, asked before it, for which plans are made and kept.
    pub primers: Vec<String>,
    /// The same in a form that is planned anew; its answer has to be the same.
    planned_anew: Option<String>,
    /// Whether the oracle's answer has to be the same.
    is_compared: bool,
}

impl Trial {
    pub(super) fn of(statement: &Statement) -> Trial {
        /// Aliases that no asker gives.
        const OWN: u64 = 1 << 40;
        let is_pure = statement.is_pure();
        let is_planned_again = is_pure && statement.is_query();
        let mut primers = Vec::new();
        if is_planned_again {
            let mut random = Rng::with_seed(1);
            let mut other = statement.clone();
            for _ in 1..VARIANTS {
                other.redraw(&mut random);
                primers.push(other.sql());
            }
        }
        Trial {
            sql: statement.sql(),
            primers,
            planned_anew: is_planned_again.then(|| planned_anew(statement, OWN)),
            is_compared: is_pure,
        }
    }

    /// What is wrong with the answer.
    pub(super) fn fault(
        &self,
        connection: &mut Connection,
        oracle: Option<&mut Connection>,
    ) -> Result<(), Fault> {
        for primer in &self.primers {
            ask(connection, primer, false)?;
        }
        let reply = ask(connection, &self.sql, true)?;
        if let Some(planned_anew) = &self.planned_anew {
            compare_with_new_plan(connection, planned_anew, &reply)?;
        }
        match oracle {
            Some(oracle) if self.is_compared => compare_with_oracle(oracle, &self.sql, &reply),
            _ => Ok(()),
        }
    }
}

/// With a column's name that the server hasn't seen, which has a plan of its own.
fn planned_anew(statement: &Statement, beside: u64) -> String {
    static ALIASES: AtomicU64 = AtomicU64::new(0);
    let mut sql = String::new();
    statement.write(Some(beside + ALIASES.fetch_add(1, Relaxed)), &mut sql);
    sql
}

fn compare_with_new_plan(
    connection: &mut Connection,
    sql: &str,
    reply: &Reply,
) -> Result<(), Fault> {
    let planned = ask(connection, sql, true)?;
    match planned.agrees_with(reply) {
        true => Ok(()),
        false => Err(Fault::Differs {
            one: format!("{BY_KEPT_PLAN} {}", reply.shown()),
            other: format!("by a new plan {}", planned.shown()),
        }),
    }
}

/// Errors that say that the second server hasn't got something: no syntax for it, no such function,
/// not yet, no such character set or collation.
const LACKING: &[u16] = &[1064, 1305, 1235, 1115, 1273, 4079, 1128, 1046, 1370];

fn compare_with_oracle(oracle: &mut Connection, sql: &str, reply: &Reply) -> Result<(), Fault> {
    let expected = match ask(oracle, sql, true) {
        Ok(expected) => expected,
        // Its own faults are not what is looked for.
        Err(Fault::Lost(why)) => return Err(Fault::Lost(format!("of the oracle: {why}"))),
        Err(_) => return Ok(()),
    };
    let lacks =
        |reply: &Reply| matches!(reply, Reply::Refused(number, _) if LACKING.contains(number));
    if lacks(&expected) || lacks(reply) || expected.agrees_with(reply) {
        return Ok(());
    }
    Err(Fault::Differs {
        one: format!("the server {}", reply.shown()),
        other: format!("the oracle {}", expected.shown()),
    })
}

/// The options to connect to a recipe's oracle.
pub(super) fn oracle_options(recipe: &Recipe) -> Result<Option<Options>, Error> {
    let of = |url: &String| -> Result<Options, Error> {
        let mut options: Options = url.parse().map_err(|error| Error::Target {
            target: "the oracle".into(),
            doing: "reading its URL".into(),
            error,
        })?;
        options.tls.mode.get_or_insert(TlsMode::Disabled);
        Ok(options)
    };
    recipe.oracle.as_ref().map(of).transpose()
}

/// Logs in, and bounds the time of statements.
pub(super) fn connect(options: &Options, target: &str) -> Result<Connection, Error> {
    let failed = |error| Error::Target {
        target: target.into(),
        doing: "connecting".into(),
        error,
    };
    let mut connection = Connection::connect(options).map_err(failed)?;
    connection.run("SET time_zone = '+00:00'").map_err(failed)?;
    let limits = [
        format!("SET max_execution_time = {}", STATEMENT_SECONDS * 1000),
        format!("SET max_statement_time = {STATEMENT_SECONDS}"),
    ];
    // MySQL has the one, MariaDB the other.
    for limit in limits {
        match connection.run(limit) {
            Ok(_) => break,
            Err(error) if error.is_fatal() => return Err(failed(error)),
            Err(_) => {}
        }
    }
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_that_were_under_way_are_known_from_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("under-way");
        let under_way = UnderWay::create(&path).expect("a file");
        assert_eq!(UnderWay::left(&path), [] as [u64; 0]);
        under_way.set(2, 0);
        under_way.set(0, 71);
        under_way.set(0, 72);
        assert_eq!(UnderWay::left(&path), [0, 72]);
    }
}
