//! Expressions that belong to a table: defaults, generated columns, checks.
//!
//! They are kept as text, in the canonical form that SHOW CREATE TABLE prints, and bound over the
//! table's own columns when its definition is read.

use porpoise_core::error::{Error, Result};
use porpoise_core::variables::SessionVars;
use porpoise_expr::function::Purity;
use porpoise_expr::{Expr, ExprKind};
use porpoise_sql::ast;

use super::Table;

/// Parses a kept expression. The text doesn't depend on any session's sql_mode.
pub fn parse(sql: &str) -> Result<ast::Expr> {
    porpoise_sql::parse_expr(sql.as_bytes(), porpoise_sql::Modes::NONE).map_err(|error| {
        Error::engine_error(format!(
            "unreadable expression in the data dictionary: {sql} ({error})"
        ))
    })
}

/// Binds an expression over one table's row, which is in slot 0 of the frame; the clause is named
/// in error 1054. Names are resolved by the planner, in a layer above the catalog, which is handed
/// this function.
pub type BindExpression =
    fn(&ast::Expr, &Table, &'static str, &SessionVars) -> Result<Expr, Refusal>;

/// Why an expression can't be bound over its table.
#[derive(Debug)]
pub enum Refusal {
    /// It holds what no table's expression may hold.
    Disallowed(Disallowed),
    /// Any other error.
    Error(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Error(error)
    }
}

impl Refusal {
    /// The error, where `disallowed` names what the expression belongs to.
    pub fn into_error(self, disallowed: impl FnOnce(Disallowed) -> Error) -> Error {
        match self {
            Refusal::Disallowed(what) => disallowed(what),
            Refusal::Error(error) => error,
        }
    }
}

/// Parses a kept expression and binds it over its table.
pub fn bind(
    sql: &str,
    table: &Table,
    clause: &'static str,
    binder: BindExpression,
) -> Result<Expr, Refusal> {
    binder(&parse(sql)?, table, clause, &SessionVars::new(0))
}

/// Calls back for every node of a bound expression, subqueries' insides left out.
pub fn for_each(expr: &Expr, visit: &mut dyn FnMut(&Expr)) {
    visit(expr);
    expr.for_each_child(&mut |child| for_each(child, visit));
}

/// Positions of the table's columns that a bound expression reads.
pub fn columns(expr: &Expr) -> Vec<usize> {
    let mut found = Vec::new();
    for_each(expr, &mut |node| {
        if let ExprKind::Column { column, .. } = &node.kind {
            let column = usize::from(*column);
            if !found.contains(&column) {
                found.push(column);
            }
        }
    });
    found
}

/// What an expression that belongs to a table may not hold, or not everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disallowed {
    /// A function whose value isn't its arguments' alone.
    Function(String),
    /// A parameter of a prepared statement, or a subquery.
    Nameless,
    /// A user variable or system variable.
    Variable,
}

impl Disallowed {
    /// The error of a column's default that holds it.
    pub fn in_default(self, column: &str) -> Error {
        match self {
            Disallowed::Function(function) => Error::default_function_not_allowed(column, function),
            Disallowed::Nameless => Error::default_holds_disallowed(column),
            Disallowed::Variable => Error::default_uses_variable(column),
        }
    }

    /// The error of a generated column that holds it.
    pub fn in_generated(self, column: &str) -> Error {
        match self {
            Disallowed::Function(function) => {
                Error::generated_function_not_allowed(column, function)
            }
            Disallowed::Nameless => Error::generated_holds_disallowed(column),
            Disallowed::Variable => Error::generated_uses_variable(column),
        }
    }

    /// The error of a check that holds it.
    pub fn in_check(self, check: &str) -> Error {
        match self {
            Disallowed::Function(function) => Error::check_function_not_allowed(check, function),
            Disallowed::Nameless => Error::check_holds_disallowed(check),
            Disallowed::Variable => Error::check_uses_variable(check),
        }
    }
}

/// Functions of the session's settings (`time_zone`, `default_week_format`) that MySQL takes for
/// ones of their arguments alone.
const TAKEN_FOR_PURE: [&str; 2] = ["FROM_UNIXTIME", "WEEK"];

/// Functions that no default may call: they have effects, or tell of other statements, of files or
/// of the server.
const NEVER_A_DEFAULT: [&str; 12] = [
    "BENCHMARK",
    "FOUND_ROWS",
    "GET_LOCK",
    "IS_FREE_LOCK",
    "IS_USED_LOCK",
    "LAST_INSERT_ID",
    "LOAD_FILE",
    "RELEASE_ALL_LOCKS",
    "RELEASE_LOCK",
    "ROW_COUNT",
    "SLEEP",
    "VERSION",
];

/// The first thing in the expression that generated columns and checks may not hold.
pub fn disallowed(expr: &Expr) -> Option<Disallowed> {
    first(expr, |node| match &node.kind {
        ExprKind::Call { function, .. }
            if function.purity != Purity::Pure && !TAKEN_FOR_PURE.contains(&function.name) =>
        {
            disallowed_function(function.name)
        }
        _ => disallowed_everywhere(node),
    })
}

/// The first thing in the expression that a default may not hold.
pub fn disallowed_in_default(expr: &Expr) -> Option<Disallowed> {
    first(expr, |node| match &node.kind {
        ExprKind::Call { function, .. } if NEVER_A_DEFAULT.contains(&function.name) => {
            disallowed_function(function.name)
        }
        _ => disallowed_everywhere(node),
    })
}

/// Called as MySQL calls it in its error.
fn disallowed_function(name: &str) -> Option<Disallowed> {
    Some(Disallowed::Function(match name {
        "VERSION" => "version()".to_owned(),
        name => name.to_ascii_lowercase(),
    }))
}

fn disallowed_everywhere(node: &Expr) -> Option<Disallowed> {
    match &node.kind {
        ExprKind::Subquery { .. } | ExprKind::Parameter(_) => Some(Disallowed::Nameless),
        ExprKind::UserVariable(_)
        | ExprKind::AssignUserVariable { .. }
        | ExprKind::SystemVariable { .. } => Some(Disallowed::Variable),
        _ => None,
    }
}

/// What the callback finds first, in the order of the text.
fn first<T>(expr: &Expr, find: impl Fn(&Expr) -> Option<T>) -> Option<T> {
    let mut found = None;
    for_each(expr, &mut |node| {
        if found.is_none() {
            found = find(node);
        }
    });
    found
}

/// Whether the same row always gives the same value.
pub fn is_deterministic(expr: &Expr) -> bool {
    disallowed(expr).is_none()
}
