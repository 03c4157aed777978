//! What clients tell of themselves when they connect (MySQL 8.4 manual, 29.12.9).

use porpoise_mdl::process::Control;

use super::*;

const COLUMNS: &[ColumnRow] = &[
    ("PROCESSLIST_ID", ubig, false),
    ("ATTR_NAME", attribute_name, false),
    ("ATTR_VALUE", attribute_value, true),
    ("ORDINAL_POSITION", int, true),
];

pub const TABLES: &[VirtualSource] = &[
    VirtualSource {
        schema: "performance_schema",
        name: "session_connect_attrs",
        columns: COLUMNS,
        rows: of_all,
    },
    VirtualSource {
        schema: "performance_schema",
        name: "session_account_connect_attrs",
        columns: COLUMNS,
        rows: of_account,
    },
];

fn attribute_name() -> DataType {
    DataType::Varchar {
        length: 32,
        collation: Collation::UTF8MB4_BIN,
    }
}

fn attribute_value() -> DataType {
    DataType::Varchar {
        length: 1024,
        collation: Collation::UTF8MB4_BIN,
    }
}

/// Every session's.
fn of_all(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    attributes(exec, |_| true, row)
}

/// Those of the sessions that the session's own user has.
fn of_account(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    let user = exec.session.user.clone();
    attributes(exec, |control| control.user() == user, row)
}

fn attributes(
    exec: &mut Exec<'_>,
    is_shown: impl Fn(&Control) -> bool,
    row: Sink<'_>,
) -> Result<()> {
    for control in exec.engine.locks.sessions.all() {
        if !is_shown(&control) {
            continue;
        }
        for (position, (name, value)) in control.attributes().iter().enumerate() {
            let values = [
                Value::UInt(control.id),
                text(name),
                text(value),
                Value::Int(position as i64),
            ];
            row(exec, &values)?;
        }
    }
    Ok(())
}
