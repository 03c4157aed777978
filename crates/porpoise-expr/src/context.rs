//! What a function may ask of the statement that calls it.

use std::time::Duration;

use porpoise_core::error::{Error, Result};
use porpoise_core::variables::SessionVars;
use porpoise_types::{ConvertContext, DateTime, Value};

use super::Expr;

/// The statement that an expression is evaluated for. Functions see it as `dyn`, inside a call;
/// evaluation itself knows its type.
pub trait EvalContext {
    /// The session's variables, its warnings, and what LAST_INSERT_ID() and its kin read.
    fn vars(&self) -> &SessionVars;
    /// The same, to warn or to change one.
    fn vars_mut(&mut self) -> &mut SessionVars;
    /// The value of an expression over the statement's current rows.
    ///
    /// # Errors
    /// Whatever evaluating it meets.
    fn evaluate(&mut self, expr: &Expr) -> Result<Value>;
    /// When the statement began, in UTC microseconds since 1970.
    fn started_us(&self) -> i64;
    /// The next number of RAND(seed)'s sequence, at least 0 and less than 1; `call` tells calls of
    /// a statement apart, each of which has a sequence of its own.
    fn seeded_random(&mut self, seed: u64, call: usize) -> f64;
    /// CURRENT_USER(): `user@host` of the account that the session is checked as.
    fn current_user(&self) -> String;
    /// CURRENT_ROLE(): the active roles, or `NONE`.
    fn current_role(&self) -> String;
    /// The statement is about to wait: its thread's other work goes elsewhere, and the process list
    /// shows the state.
    fn before_waiting(&self, state: &'static str);
    /// It waits no longer.
    fn after_waiting(&self);
    /// GET_LOCK(): waits for a named lock, without end if there is no timeout. Whether it was
    /// taken.
    ///
    /// # Errors
    /// 3058 where the wait would close a cycle, 1317 after a KILL, 4163 for a name that can't be
    /// one.
    fn get_lock(&self, name: &str, timeout: Option<Duration>) -> Result<bool>;
    /// The connection that has a named lock.
    ///
    /// # Errors
    /// 4163 for a name that can't be one.
    fn lock_owner(&self, name: &str) -> Result<Option<u64>>;
    /// RELEASE_LOCK(): whether the session had it; `None` if nobody has.
    ///
    /// # Errors
    /// 4163 for a name that can't be one.
    fn release_lock(&self, name: &str) -> Result<Option<bool>>;
    /// RELEASE_ALL_LOCKS(): how many there were.
    fn release_all_locks(&self) -> u64;

    /// LOAD_FILE(): a file of the server of at most so many bytes; `None` if the session may not
    /// read it, or it is longer.
    fn server_file(&self, path: &[u8], most: u64) -> Option<Vec<u8>>;

    /// NOW() in the session's time zone, with microseconds.
    fn now(&self) -> DateTime {
        self.vars().to_local(self.started_us())
    }

    /// What conversions need to know of the session.
    fn conversion(&self) -> ConvertContext {
        self.vars().conversion(self.started_us())
    }

    /// What the conversion of a value needs to know: today is added to a TIME only, and takes a look
    /// at the time zone.
    fn conversion_of(&self, value: &Value) -> ConvertContext {
        match value {
            Value::Time(_) | Value::Json(_) => self.conversion(),
            _ => self.vars().conversion_without_today(),
        }
    }

    /// Ends a statement that was killed, or whose time is up, and has one pause that computes by
    /// turns with others. Called once a row, and by every loop whose count nothing bounds.
    ///
    /// # Errors
    /// 1317.
    #[inline]
    fn check_interrupt(&self) -> Result<()> {
        check_interrupt(self.vars())
    }
}

/// As [`EvalContext::check_interrupt`], for what runs between statements.
///
/// # Errors
/// 1317.
#[inline]
pub fn check_interrupt(vars: &SessionVars) -> Result<()> {
    if vars.interrupt.is_signalled() {
        heed(vars)
    } else {
        Ok(())
    }
}

/// Pauses while the statement is to, and tells whether it is to end.
#[cold]
fn heed(vars: &SessionVars) -> Result<()> {
    vars.interrupt.wait_while_paused();
    match vars.interrupt.is_set() {
        true => Err(Error::query_interrupted()),
        false => Ok(()),
    }
}

/// How many steps of a loop over a long text are made between two looks whether the statement is to
/// end.
const STEPS: usize = 1 << 16;

/// Lets a loop over a long text be ended without a look at each of its steps.
#[derive(Debug, Default)]
pub struct Pace {
    steps: usize,
}

impl Pace {
    /// The loop has made so many steps.
    ///
    /// # Errors
    /// As [`EvalContext::check_interrupt`].
    #[inline]
    pub fn walk(&mut self, context: &dyn EvalContext, steps: usize) -> Result<()> {
        self.steps += steps;
        if self.steps < STEPS {
            return Ok(());
        }
        self.steps = 0;
        context.check_interrupt()
    }
}
