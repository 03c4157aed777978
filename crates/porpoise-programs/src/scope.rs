//! The variables that can be named at a place of a program.

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_planner::{Variable, Variables};
use porpoise_sql::ast;
use porpoise_types::DataType;

/// Names of variables. Each expression keeps the scope that it stands in: they share what they have
/// in common, as there may be thousands of either.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    innermost: Option<Arc<Declared>>,
    /// The columns of a trigger's rows: of OLD, or else of NEW.
    columns: Arc<Vec<(bool, Named)>>,
}

/// A variable, and those that were declared before it.
#[derive(Debug)]
struct Declared {
    variable: Named,
    /// How many there are up to this one.
    count: usize,
    before: Option<Arc<Declared>>,
}

impl Drop for Declared {
    /// One after the other: thousands would take too much of the stack.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(mut last) = next.and_then(Arc::into_inner) {
            next = last.before.take();
        }
    }
}

#[derive(Clone, Debug)]
struct Named {
    name: CompactString,
    number: usize,
    ty: DataType,
}

impl Scope {
    /// Adds a variable, which hides others of its name.
    pub fn declare(&mut self, name: &str, number: usize, ty: DataType) {
        let name = name.into();
        let declared = Declared {
            variable: Named { name, number, ty },
            count: self.len() + 1,
            before: self.innermost.take(),
        };
        self.innermost = Some(Arc::new(declared));
    }

    /// The variables, the innermost first.
    fn variables(&self) -> impl Iterator<Item = &Declared> {
        std::iter::successors(self.innermost.as_deref(), |declared| {
            declared.before.as_deref()
        })
    }

    /// Adds a column of a trigger's row.
    pub fn declare_column(&mut self, is_old: bool, name: &str, number: usize, ty: DataType) {
        let name = name.into();
        Arc::make_mut(&mut self.columns).push((is_old, Named { name, number, ty }));
    }

    fn find_column(&self, row: &str, name: &str) -> Option<&Named> {
        let is_old = match row {
            row if row.eq_ignore_ascii_case("OLD") => true,
            row if row.eq_ignore_ascii_case("NEW") => false,
            _ => return None,
        };
        let mut columns = self.columns.iter();
        let found = columns.find(|(old, column)| {
            *old == is_old && column.name.to_lowercase() == name.to_lowercase()
        });
        found.map(|(_, column)| column)
    }

    /// How many variables there are.
    pub fn len(&self) -> usize {
        self.innermost.as_ref().map_or(0, |declared| declared.count)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.innermost.is_none()
    }

    /// Forgets all but the first variables: a block ends.
    pub fn truncate(&mut self, len: usize) {
        while let Some(declared) = self.innermost.take_if(|declared| declared.count > len) {
            self.innermost.clone_from(&declared.before);
        }
    }

    /// The number of the variable of that name.
    pub fn number(&self, name: &str) -> Option<usize> {
        self.find_named(name).map(|variable| variable.number)
    }

    fn find_named(&self, name: &str) -> Option<&Named> {
        let mut variables = self.variables().map(|declared| &declared.variable);
        variables.find(|variable| variable.name.eq_ignore_ascii_case(name))
    }
}

impl Variables for Scope {
    fn find(&self, name: &ast::ColumnRef) -> Option<Variable> {
        let found = match (&name.schema, &name.table) {
            (None, None) => self.find_named(&name.name)?,
            (None, Some(row)) => self.find_column(row, &name.name)?,
            (Some(_), _) => return None,
        };
        Some(Variable {
            number: found.number,
            ty: found.ty.clone(),
        })
    }
}
