//! What makes the rows of virtual tables.
//!
//! `information_schema` and its kin register their tables at start ([`register`]): the definitions
//! with the catalog, the functions that make rows here.

use std::sync::OnceLock;

use compact_str::CompactString;
use hashbrown::HashMap;
use porpoise_catalog::virtual_table::{self, VirtualColumn, VirtualTable};
use porpoise_core::error::{Error, Result};
use porpoise_expr::{Comparison, Expr, ExprKind, SlotId};
use porpoise_types::{Collation, Value, like};

use crate::Exec;
use crate::eval::Evaluate;

/// Where rows go: a value a column, in the table's order.
pub type Sink<'a> = &'a mut dyn FnMut(&mut Exec<'_>, &[Value]) -> Result<()>;

/// Makes a virtual table's rows, at least those that the lookup wants.
pub type RowMaker = fn(&mut Exec<'_>, &Lookup, Sink<'_>) -> Result<()>;

/// A virtual table with what makes its rows.
pub struct VirtualSource {
    /// The schema's name.
    pub schema: &'static str,
    /// The table's name, as its definition spells it.
    pub name: &'static str,
    /// The columns, in order.
    pub columns: &'static [VirtualColumn],
    /// Gives the rows, in the order of `columns`, to a sink.
    pub rows: RowMaker,
}

/// The makers of rows, by schema and name as the definition spells them.
static MAKERS: OnceLock<HashMap<(&str, &str), RowMaker>> = OnceLock::new();

/// Makes virtual tables known, to the catalog too. The first call counts: they are the same for all
/// databases of a process.
pub fn register(families: &[&'static [VirtualSource]]) {
    let sources = || families.iter().flat_map(|family| family.iter());
    MAKERS.get_or_init(|| {
        sources()
            .map(|source| ((source.schema, source.name), source.rows))
            .collect()
    });
    virtual_table::register(sources().map(|source| VirtualTable {
        schema: source.schema,
        name: source.name,
        columns: source.columns,
    }));
}

/// What makes a table's rows.
pub(crate) fn row_maker(table: &VirtualTable) -> Result<RowMaker> {
    let known = MAKERS
        .get()
        .and_then(|makers| makers.get(&(table.schema, table.name)));
    known
        .copied()
        .ok_or_else(|| Error::engine_error("a virtual table whose rows nothing makes"))
}

/// What a statement's conditions say of the rows it wants, so that others need not be made.
#[derive(Clone, Debug, Default)]
pub struct Lookup {
    /// The schema that the query asks for; `None` if it may be any.
    pub schema: Option<CompactString>,
    /// The table or other object that the query asks for; `None` if it may be any.
    pub name: Option<CompactString>,
    /// The pattern of LIKE, with its escape, that the names of variables match which the query asks
    /// for; `None` if they may be any.
    pub variable: Option<(CompactString, Option<char>)>,
}

impl Lookup {
    /// Whether rows about this schema may be part of the result. Case doesn't count.
    pub fn wants_schema(&self, schema: &str) -> bool {
        self.schema
            .as_ref()
            .is_none_or(|wanted| wanted.eq_ignore_ascii_case(schema))
    }

    /// Whether rows about this object may be part of the result. Case doesn't count.
    pub fn wants(&self, schema: &str, name: &str) -> bool {
        self.wants_schema(schema)
            && self
                .name
                .as_ref()
                .is_none_or(|wanted| wanted.eq_ignore_ascii_case(name))
    }
}

impl Lookup {
    /// Whether the row of this variable may be part of the result.
    pub fn wants_variable(&self, name: &str) -> bool {
        self.variable.as_ref().is_none_or(|(pattern, escape)| {
            let (name, pattern) = (name.as_bytes(), pattern.as_bytes());
            like(name, pattern, *escape, Collation::UTF8MB4_0900_AI_CI)
        })
    }

    /// Reads the pattern of LIKE on a variable's name, or the name that it is to be equal to, which
    /// matches itself if it is taken for a pattern.
    fn of_variable(
        table: &VirtualTable,
        slot: SlotId,
        condition: &Expr,
        exec: &mut Exec<'_>,
    ) -> Result<Option<(CompactString, Option<char>)>> {
        let (name, pattern, escape) = match &condition.kind {
            ExprKind::Like {
                operand,
                pattern,
                escape,
                negated: false,
                ..
            } => (operand, pattern, *escape),
            ExprKind::Compare {
                op: Comparison::Eq,
                left,
                right,
                ..
            } => (left, right, None),
            _ => return Ok(None),
        };
        if column_of(table, slot, name) != Some("VARIABLE_NAME") || reads(slot, pattern) {
            return Ok(None);
        }
        Ok(match pattern.eval(exec)? {
            Value::Text(text) => Some((text.as_str().into(), escape)),
            _ => None,
        })
    }

    /// Reads equalities on the schema's and the table's name out of a scan's conditions, and what
    /// they say of a variable's.
    pub(crate) fn of(
        table: &VirtualTable,
        slot: SlotId,
        filter: &[Expr],
        exec: &mut Exec<'_>,
    ) -> Result<Lookup> {
        const SCHEMA_COLUMNS: [&str; 8] = [
            "TABLE_SCHEMA",
            "CONSTRAINT_SCHEMA",
            "SCHEMA_NAME",
            "Db",
            "OBJECT_SCHEMA",
            "ROUTINE_SCHEMA",
            "SPECIFIC_SCHEMA",
            "TRIGGER_SCHEMA",
        ];
        const NAME_COLUMNS: [&str; 2] = ["TABLE_NAME", "Table_name"];
        let mut lookup = Lookup::default();
        for condition in filter {
            if lookup.variable.is_none() {
                lookup.variable = Lookup::of_variable(table, slot, condition, exec)?;
            }
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
                let Some(name) = column_of(table, slot, column) else {
                    continue;
                };
                if reads(slot, value) {
                    continue;
                }
                let value = value.eval(exec)?;
                let Value::Text(text) = value else { continue };
                let text = CompactString::from(exec.session.folded(&text));
                if SCHEMA_COLUMNS.contains(&name) {
                    lookup.schema = Some(text);
                } else if NAME_COLUMNS.contains(&name) {
                    lookup.name = Some(text);
                }
            }
        }
        Ok(lookup)
    }
}

fn column_of(table: &VirtualTable, of: SlotId, expr: &Expr) -> Option<&'static str> {
    match &expr.kind {
        ExprKind::Column { slot, column, .. } if *slot == of => table
            .columns
            .get(usize::from(*column))
            .map(|column| column.0),
        ExprKind::Cast { operand, .. } => column_of(table, of, operand),
        _ => None,
    }
}

/// Whether an expression reads the slot, or anything whose value is not known before the scan.
fn reads(of: SlotId, expr: &Expr) -> bool {
    let mut found = false;
    porpoise_catalog::expression::for_each(expr, &mut |node| {
        found |= match &node.kind {
            ExprKind::Column { slot, .. } => *slot == of,
            ExprKind::Subquery { .. } => true,
            _ => false,
        };
    });
    found
}
