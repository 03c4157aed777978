//! Statements of functions and triggers that have no plan of their own: SET, and temporary tables.
//!
//! They act on the session, whose statement runs the program; nothing of them ends its transaction.

use porpoise_core::error::{Error, Result};
use porpoise_core::variables::{self, Reads};
use porpoise_programs::compile::refuse_in_function;
use porpoise_session::check;
use porpoise_session::session_state::StatementInputs;
use porpoise_session::set_variable::Assigned;
use porpoise_sql::ast;
use porpoise_types::{Charset, Collation, Value};

use crate::Exec;

/// SET of a system variable; without a value to its default.
///
/// # Errors
/// 1193, 1227, 1231; 1568 and 1695 for what can't change within a statement.
pub(crate) fn set_variable(
    exec: &mut Exec<'_>,
    variable: &ast::SystemVariable,
    value: Option<Value>,
) -> Result<()> {
    let assigned = Assigned::find(exec.session, variable)?;
    match (assigned.name(), assigned.scope) {
        ("transaction_isolation" | "transaction_read_only", Reads::Session) => {
            return Err(Error::transaction_characteristics());
        }
        ("sql_log_bin", _) => return Err(Error::log_changed_in_function("sql_log_bin")),
        ("autocommit", Reads::Session) => {
            return Err(Error::not_settable_in_function("autocommit"));
        }
        ("read_only" | "super_read_only", _) => return Err(Error::locked_or_in_transaction()),
        _ => {}
    }
    assigned.check(exec.session)?;
    assigned.set(value, exec.session, exec.engine)
}

/// SET NAMES, SET CHARACTER SET.
///
/// # Errors
/// 1115, 1253, 1273.
pub(crate) fn set_names(
    exec: &mut Exec<'_>,
    charset: Option<&ast::Ident>,
    collation: Option<&ast::Ident>,
) -> Result<()> {
    let charset = match charset {
        Some(name) => {
            Charset::by_name(name).ok_or_else(|| Error::unknown_character_set(&**name))?
        }
        None => Charset::Utf8mb4,
    };
    let collation = match collation {
        Some(name) => Collation::by_name(name).ok_or_else(|| Error::unknown_collation(&**name))?,
        None => charset.default_collation(),
    };
    if collation.charset() != charset {
        let (collation, charset) = (collation.name(), charset.name());
        return Err(Error::collation_charset_mismatch(collation, charset));
    }
    variables::set_names(charset, collation, exec.session);
    Ok(())
}

/// CREATE and DROP TEMPORARY TABLE. A table that is made from a query is empty yet.
///
/// # Errors
/// 1442 for a table that the statement around the program uses, 1422 for what would commit, and
/// what the statement fails with.
pub(crate) fn define(
    exec: &mut Exec<'_>,
    statement: &ast::Statement,
    sql: &[u8],
    inputs: StatementInputs<'_>,
) -> Result<()> {
    use ast::Statement as S;
    match statement {
        S::CreateTable(create) if create.temporary => {}
        S::CreateTableLike {
            temporary: true, ..
        } => {}
        S::DropTable {
            temporary: true,
            tables,
            ..
        } => tables
            .iter()
            .try_for_each(|name| check_unused(exec, name))?,
        statement => return Err(refuse_in_function(statement)),
    }
    check::statement(exec.session, statement)?;
    (exec.session.define)(exec.engine, exec.session, sql, statement, inputs)?;
    Ok(())
}

fn check_unused(exec: &Exec<'_>, name: &ast::ObjectName) -> Result<()> {
    let session = &exec.session;
    let schema = session.schema_or_current(name.schema.as_ref())?;
    let found = session.temporary_tables.get(&(schema, name.name.0.clone()));
    match found {
        Some(table) if session.tables_in_use.contains(&table.id) => {
            Err(Error::table_used_by_caller(&table.name))
        }
        _ => Ok(()),
    }
}
