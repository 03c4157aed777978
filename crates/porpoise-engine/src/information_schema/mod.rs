//! `information_schema`, `performance_schema` and `mysql`: tables whose rows are made by code when a
//! statement reads them, with MySQL 8.4's names and columns.
//!
//! Adding a table is one [`VirtualTable`] in its family's list: its columns, and a function that
//! calls back once a row. SHOW statements are SELECTs on these tables ([`crate::show`]).
//!
//! | file | tables |
//! | --- | --- |
//! | [`objects`] | what the catalog holds: SCHEMATA, TABLES, COLUMNS, STATISTICS, constraints, views |
//! | [`server`] | what the server is: engines, collations, plugins, processes, keywords |
//! | [`locks`] | metadata locks held and waited for |
//! | [`privileges`] | who may do what, and `mysql.user` with its kin |
//! | [`variables`] | system variables and status counters |
//! | [`absent`] | what there is none of: routines, triggers, events, partitions |
//!
//! A row is shown only to who has a privilege on what it tells of (MySQL 8.4 manual, 28.1).

pub mod absent;
pub mod locks;
pub mod objects;
pub mod privileges;
pub mod server;
pub mod variables;

use compact_str::CompactString;
use porpoise_types::{BlobSize, Collation, DataType, Value, convert};

use crate::catalog::VirtualTable;
use crate::error::Result;
use crate::executor::Exec;
use crate::expr::{Comparison, Expr, ExprKind, Slot};

/// A column's name, type, and whether it can be NULL.
pub type ColumnRow = (&'static str, fn() -> DataType, bool);

/// Where rows go.
pub type Sink<'a> = &'a mut dyn FnMut(&mut Exec<'_>, &[Value]) -> Result<()>;

/// All families' tables.
const FAMILIES: &[&[VirtualTable]] = &[
    objects::TABLES,
    server::TABLES,
    locks::TABLES,
    privileges::TABLES,
    variables::TABLES,
    absent::TABLES,
];

/// Every virtual table.
pub fn all() -> impl Iterator<Item = &'static VirtualTable> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// What a statement's conditions say of the rows it wants, so that others need not be made.
#[derive(Clone, Debug, Default)]
pub struct Lookup {
    pub schema: Option<CompactString>,
    pub name: Option<CompactString>,
}

impl Lookup {
    pub fn wants_schema(&self, schema: &str) -> bool {
        self.schema
            .as_ref()
            .is_none_or(|wanted| wanted.eq_ignore_ascii_case(schema))
    }

    pub fn wants(&self, schema: &str, name: &str) -> bool {
        self.wants_schema(schema)
            && self
                .name
                .as_ref()
                .is_none_or(|wanted| wanted.eq_ignore_ascii_case(name))
    }
}

impl VirtualTable {
    /// Finds a table, in any case.
    pub fn find(schema: &str, name: &str) -> Option<&'static VirtualTable> {
        all().find(|table| {
            table.schema.eq_ignore_ascii_case(schema) && table.name.eq_ignore_ascii_case(name)
        })
    }

    /// Reads equalities on the schema's and the table's name out of a scan's conditions.
    pub fn lookup(&self, slot: Slot, filter: &[Expr], exec: &mut Exec<'_>) -> Result<Lookup> {
        const SCHEMA_COLUMNS: [&str; 5] = [
            "TABLE_SCHEMA",
            "CONSTRAINT_SCHEMA",
            "SCHEMA_NAME",
            "Db",
            "OBJECT_SCHEMA",
        ];
        const NAME_COLUMNS: [&str; 2] = ["TABLE_NAME", "Table_name"];
        let mut lookup = Lookup::default();
        for condition in filter {
            let ExprKind::Compare {
                op: Comparison::Eq,
                left,
                right,
                ..
            } = &condition.kind
            else {
                continue;
            };
            for (column, value) in [(left, right), (right, left)] {
                let Some(name) = self.column_of(slot, column) else {
                    continue;
                };
                if reads(slot, value) {
                    continue;
                }
                let value = value.eval(exec)?;
                let Value::Text(text) = value else { continue };
                if SCHEMA_COLUMNS.contains(&name) {
                    lookup.schema = Some(text);
                } else if NAME_COLUMNS.contains(&name) {
                    lookup.name = Some(text);
                }
            }
        }
        Ok(lookup)
    }

    fn column_of(&self, of: Slot, expr: &Expr) -> Option<&'static str> {
        match &expr.kind {
            ExprKind::Column { slot, column, .. } if *slot == of => self
                .columns
                .get(usize::from(*column))
                .map(|column| column.0),
            ExprKind::Cast { operand, .. } => self.column_of(of, operand),
            _ => None,
        }
    }
}

/// Whether an expression reads the slot, or anything whose value is not known before the scan.
fn reads(of: Slot, expr: &Expr) -> bool {
    let mut found = false;
    crate::catalog::expression::for_each(expr, &mut |node| {
        found |= match &node.kind {
            ExprKind::Column { slot, .. } => *slot == of,
            ExprKind::Subquery { .. } => true,
            _ => false,
        };
    });
    found
}

// ---------------------------------------------------------------------------------------------------------
// Types and values
// ---------------------------------------------------------------------------------------------------------

/// Names compare without case, as most of information_schema's do.
pub fn name() -> DataType {
    DataType::Varchar {
        length: 64,
        collation: Collation::UTF8MB3_GENERAL_CI,
    }
}

/// Names of schemas and tables compare with case.
pub fn exact() -> DataType {
    DataType::Varchar {
        length: 64,
        collation: Collation::UTF8MB3_BIN,
    }
}

pub fn word() -> DataType {
    DataType::Varchar {
        length: 255,
        collation: Collation::UTF8MB3_GENERAL_CI,
    }
}

pub fn wide() -> DataType {
    DataType::Varchar {
        length: 2048,
        collation: Collation::UTF8MB3_GENERAL_CI,
    }
}

pub fn long() -> DataType {
    DataType::Text {
        size: BlobSize::Long,
        collation: Collation::UTF8MB3_BIN,
    }
}

pub fn medium() -> DataType {
    DataType::Text {
        size: BlobSize::Medium,
        collation: Collation::UTF8MB3_BIN,
    }
}

pub fn yes_no() -> DataType {
    DataType::Varchar {
        length: 3,
        collation: Collation::UTF8MB3_GENERAL_CI,
    }
}

pub fn int() -> DataType {
    DataType::INT
}

pub fn uint() -> DataType {
    DataType::Int {
        width: porpoise_types::IntWidth::Int,
        unsigned: true,
        zerofill: false,
        display_width: None,
    }
}

pub fn big() -> DataType {
    DataType::BIGINT
}

pub fn ubig() -> DataType {
    DataType::BIGINT_UNSIGNED
}

pub fn double() -> DataType {
    DataType::DOUBLE
}

pub fn moment() -> DataType {
    DataType::DateTime { fsp: 0 }
}

/// A text value.
pub fn text(value: impl AsRef<str>) -> Value {
    Value::text(value)
}

pub fn yes(flag: bool) -> Value {
    Value::text(if flag { "YES" } else { "NO" })
}

pub fn some_text(value: Option<&str>) -> Value {
    value.map_or(Value::Null, Value::text)
}

/// A moment (seconds since 1970) in the session's time zone.
pub fn local_time(exec: &Exec<'_>, unix_s: i64) -> Value {
    Value::DateTime(exec.session.to_local(unix_s.saturating_mul(1_000_000)))
}

/// The text of a value of a column's type.
pub fn value_text(value: &Value, ty: &DataType) -> String {
    convert::to_text(value, ty)
}
