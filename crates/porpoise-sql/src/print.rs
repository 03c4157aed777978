//! The syntax tree as SQL again, in the form `SHOW CREATE TABLE` and `SHOW CREATE VIEW` print.
//!
//! Words in lower case, names in backticks, every operator in parentheses, no space behind commas:
//!
//! ```text
//! a+1 > 2 AND b LIKE 'x%'     ((`a` + 1) > 2) and (`b` like 'x%'), in parentheses once more
//! ```
//!
//! What is printed parses to the tree it was printed from, with two exceptions. `COUNT(*)` prints
//! as `count(0)`, as in MySQL; and a string that is no UTF-8 prints in hexadecimal.
//!
//! Generated columns, checks and default expressions print their strings with a character set
//! before them (`_utf8mb4'x'`): see [`Expr::with_introducer`].

use crate::ResolvedNames;
use crate::ast::*;
use crate::keyword;
use crate::parser::{AGGREGATES, RESERVED_FUNCTIONS};
use std::cell::Cell;
use std::fmt::{self, Display, Formatter};

macro_rules! put {
    ($printer:expr, $($arg:tt)*) => { write!($printer.out, $($arg)*) };
}

mod data_type;
mod expr;
mod query;

/// Prints a tree.
struct Printer<'f, 'g> {
    out: &'f mut Formatter<'g>,
    /// What stands before strings.
    introducer: Option<&'f str>,
    /// What names mean, where it is known: they are printed in full.
    names: Option<&'f ResolvedNames>,
    /// Items of the select list that is printed get the names of their columns: it is no
    /// subquery's in an expression.
    names_items: bool,
    /// A schema that is left out.
    left_out: Option<&'f str>,
    /// A table of another schema has been printed.
    leaves_schema: bool,
}

impl<'f, 'g> Printer<'f, 'g> {
    fn new(out: &'f mut Formatter<'g>) -> Printer<'f, 'g> {
        Printer {
            out,
            introducer: None,
            names: None,
            names_items: true,
            left_out: None,
            leaves_schema: false,
        }
    }
}

impl Query {
    /// The query as SQL with every name in full and every column named: a view's definition.
    pub fn with_names<'a>(&'a self, names: &'a ResolvedNames) -> impl Display + 'a {
        fmt::from_fn(move |f| {
            let mut printer = Printer::new(f);
            printer.names = Some(names);
            printer.query(self)
        })
    }

    /// The query as SQL without the schema's name before its tables; `None` where it names a table
    /// of another schema.
    pub fn within_schema(&self, schema: &str) -> Option<String> {
        let leaves_schema = Cell::new(false);
        let text = fmt::from_fn(|f| {
            let mut printer = Printer::new(f);
            printer.left_out = Some(schema);
            printer.query(self)?;
            leaves_schema.set(printer.leaves_schema);
            Ok(())
        })
        .to_string();
        (!leaves_schema.get()).then_some(text)
    }
}

impl Expr {
    /// The expression as SQL, each string with `_charset` before it.
    ///
    /// ```
    /// let expr = porpoise_sql::parse_expr(b"a <> 'x'", porpoise_sql::Modes::NONE)?;
    /// assert_eq!(expr.to_string(), "(`a` <> 'x')");
    /// assert_eq!(expr.with_introducer("utf8mb4").to_string(), "(`a` <> _utf8mb4'x')");
    /// # Ok::<(), porpoise_sql::ParseError>(())
    /// ```
    pub fn with_introducer<'a>(&'a self, charset: &'a str) -> impl Display + 'a {
        fmt::from_fn(move |f| {
            let mut printer = Printer::new(f);
            printer.introducer = Some(charset);
            printer.expr(self)
        })
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Printer::new(f).expr(self)
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Printer::new(f).literal(self)
    }
}

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Printer::new(f).query(self)
    }
}

impl Display for DataType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Printer::new(f).data_type(self)
    }
}

impl Display for ObjectName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}

impl Display for ColumnRef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for qualifier in [&self.schema, &self.table].into_iter().flatten() {
            write!(f, "{qualifier}.")?;
        }
        write!(f, "{}", self.name)
    }
}

impl Display for Account {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Account::Named {
                user,
                host: Some(host),
            } => write!(f, "{user}@{host}"),
            Account::Named { user, host: None } => write!(f, "{user}@`%`"),
            Account::Current => write!(f, "CURRENT_USER"),
        }
    }
}

impl TableOption {
    /// Whether the option is one of [`TableOption::Other`] of that name.
    pub fn is_other(&self, name: &str) -> bool {
        matches!(self, TableOption::Other(known, _) if known.eq_ignore_ascii_case(name))
    }
}

/// `'text'`, escaped as MySQL prints it.
fn quote(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("'")?;
    for c in text.chars() {
        match c {
            '\'' => f.write_str("\\'")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\0' => f.write_str("\\0")?,
            '\u{1A}' => f.write_str("\\Z")?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("'")
}

impl Printer<'_, '_> {
    fn word(&mut self, word: &str) -> fmt::Result {
        self.out.write_str(word)
    }

    fn list<T>(
        &mut self,
        items: &[T],
        mut item: impl FnMut(&mut Self, &T) -> fmt::Result,
    ) -> fmt::Result {
        for (n, one) in items.iter().enumerate() {
            if n > 0 {
                self.word(",")?;
            }
            item(self, one)?;
        }
        Ok(())
    }

    fn exprs(&mut self, exprs: &[Expr]) -> fmt::Result {
        self.list(exprs, Self::expr)
    }

    /// Whether a schema's name is left out.
    fn leaves_out(&mut self, schema: &Ident) -> bool {
        let is_left_out = self.left_out == Some(schema.as_str());
        self.leaves_schema |= !is_left_out;
        is_left_out
    }

    fn column(&mut self, written: &ColumnRef) -> fmt::Result {
        let column = self.names.map_or(written, |names| names.column(written));
        if let (Some(schema), Some(table)) = (&column.schema, &column.table)
            && self.leaves_out(schema)
        {
            return put!(self, "{table}.{}", column.name);
        }
        put!(self, "{column}")
    }

    fn table_name(&mut self, written: &ObjectName) -> fmt::Result {
        let table = self.names.map_or(written, |names| names.table(written));
        match &table.schema {
            Some(schema) if self.leaves_out(schema) => put!(self, "{}", table.name),
            _ => put!(self, "{table}"),
        }
    }

    fn idents(&mut self, idents: &[Ident]) -> fmt::Result {
        self.list(idents, |p, ident| put!(p, "{ident}"))
    }

    /// `[ (a,b)]`
    fn column_names(&mut self, columns: &[Ident]) -> fmt::Result {
        if columns.is_empty() {
            return Ok(());
        }
        self.word(" (")?;
        self.idents(columns)?;
        self.word(")")
    }

    fn string(&mut self, bytes: &[u8]) -> fmt::Result {
        match std::str::from_utf8(bytes) {
            Ok(text) => quote(self.out, text),
            Err(_) => self.hex(bytes),
        }
    }

    fn hex(&mut self, bytes: &[u8]) -> fmt::Result {
        if bytes.is_empty() {
            return self.word("x''");
        }
        self.word("0x")?;
        bytes.iter().try_for_each(|b| put!(self, "{b:02x}"))
    }

    fn literal(&mut self, literal: &Literal) -> fmt::Result {
        match literal {
            Literal::Null => self.word("NULL"),
            Literal::Bool(true) => self.word("true"),
            Literal::Bool(false) => self.word("false"),
            Literal::Int(n) => put!(self, "{n}"),
            Literal::Decimal(text) => self.word(text),
            Literal::Double(n) if n.is_finite() => put!(self, "{n:e}"),
            Literal::Double(_) => self.word("1e999"),
            Literal::String(bytes) => {
                if let Some(charset) = self.introducer {
                    put!(self, "_{charset}")?;
                }
                self.string(bytes)
            }
            Literal::Introduced(introduced) => {
                put!(self, "_{}", introduced.charset.as_str())?;
                match introduced.binary_form || std::str::from_utf8(&introduced.bytes).is_err() {
                    true => {
                        self.word(" ")?;
                        self.hex(&introduced.bytes)
                    }
                    false => self.string(&introduced.bytes),
                }
            }
            Literal::Hex(bytes) => self.hex(bytes),
            Literal::Bit(bytes) => {
                self.word("b'")?;
                bytes.iter().try_for_each(|b| put!(self, "{b:08b}"))?;
                self.word("'")
            }
            Literal::Date(text) => self.date_literal("DATE", text),
            Literal::Time(text) => self.date_literal("TIME", text),
            Literal::Timestamp(text) => self.date_literal("TIMESTAMP", text),
        }
    }

    fn date_literal(&mut self, word: &str, text: &str) -> fmt::Result {
        self.word(word)?;
        quote(self.out, text)
    }

    fn negation(&mut self, negated: bool) -> fmt::Result {
        if negated { self.word(" not") } else { Ok(()) }
    }
}
