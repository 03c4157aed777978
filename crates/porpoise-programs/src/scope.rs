//! The variables that can be named at a place of a program.

use compact_str::CompactString;
use porpoise_planner::{Variable, Variables};
use porpoise_sql::ast;
use porpoise_types::DataType;

/// Names of variables, the innermost last.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    variables: Vec<Named>,
    /// The columns of a trigger's rows: of OLD, or else of NEW.
    columns: Vec<(bool, Named)>,
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
        self.variables.push(Named {
            name: name.into(),
            number,
            ty,
        });
    }

    /// Adds a column of a trigger's row.
    pub fn declare_column(&mut self, is_old: bool, name: &str, number: usize, ty: DataType) {
        let name = name.into();
        self.columns.push((is_old, Named { name, number, ty }));
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
        self.variables.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty()
    }

    /// Forgets all but the first variables: a block ends.
    pub fn truncate(&mut self, len: usize) {
        self.variables.truncate(len);
    }

    /// Whether one of the variables after the first `from` has that name.
    pub fn declares(&self, name: &str, from: usize) -> bool {
        let mut declared = self.variables[from..].iter();
        declared.any(|variable| variable.name.eq_ignore_ascii_case(name))
    }

    /// The number of the variable of that name.
    pub fn number(&self, name: &str) -> Option<usize> {
        self.find_named(name).map(|variable| variable.number)
    }

    fn find_named(&self, name: &str) -> Option<&Named> {
        let mut variables = self.variables.iter().rev();
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
