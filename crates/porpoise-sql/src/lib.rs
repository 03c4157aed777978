//! Lexer, parser and syntax tree of the MySQL 8.4 dialect.
//!
//! What it is: text in, tree out, and the way back. It knows every statement MySQL has, its
//! operators and their precedence, its comments that execute, the SQL modes that change how text is
//! read, and where in the text an error is. It also gives the statement cache its key, from the
//! lexer alone.
//!
//! What it is not: it knows no table, no function's arguments, no type's rules.
//! `SELECT nope(1) FROM nowhere` parses. Of Porpoise's other crates it uses `porpoise-types` alone,
//! for the units of `INTERVAL`.
//!
//! # The life of a statement here
//!
//! 1. [`digest()`] runs the [`lexer`] over the text once, allocating nothing: a [`Digest`], and the
//!    [`Literals`] with their places and classes. With a plan in the cache, that was all. The
//!    [`digest`](mod@digest) module says how.
//! 2. [`parse_digested`] parses a statement the cache doesn't have yet, its literals as
//!    [`Expr::Param`](ast::Expr::Param)s; [`parse_statement`] parses any other, one statement of
//!    perhaps several, and says where the next begins.
//! 3. The tree is an [`ast::Statement`]. Forms that mean the same are one node; the table in
//!    [`ast`] says which.
//! 4. What is no statement is a [`ParseError`]: its `Display` is MySQL's message of error 1064.
//! 5. [`ast::Expr`], [`ast::Query`] and [`ast::DataType`] print as SQL in the form `SHOW CREATE`
//!    has.
//!
//! A statement may nest deeper than a thread's stack goes: [`stack`] makes room.
//!
//! The main types, in the order a statement meets them: [`Modes`], [`lexer::Token`], [`Digest`],
//! [`LiteralToken`], [`ParamMask`], [`Parsed`], [`ast::Statement`], [`ParseError`].
//!
//! # One example
//!
//! ```
//! use porpoise_sql::ast::{Expr, QueryBody, Statement};
//! use porpoise_sql::{LiteralValue, Literals, Modes, digest, parse_digested};
//!
//! // A statement comes; the cache doesn't know its shape.
//! let sql = b"SELECT name FROM customers WHERE id = 7 AND vip ORDER BY 1";
//! let mut literals = Literals::new();
//! let first = digest(sql, Modes::NONE, &mut literals).expect("a statement for the cache");
//! let (parsed, mask) = parse_digested(sql, Modes::NONE)?.expect("a statement");
//!
//! // Its first literal is a parameter, its second is part of what it is.
//! assert!(mask.has(0) && !mask.has(1));
//! let Statement::Query(query) = parsed.statement else { panic!("a query") };
//! let QueryBody::Select(select) = &query.body else { panic!("a SELECT") };
//! let condition = select.selection.as_ref().expect("a WHERE");
//! assert!(matches!(condition, Expr::And(both) if both.len() == 2));
//! assert_eq!(condition.to_string(), "((`id` = ?) and `vip`)");
//!
//! // The same again with another literal: one pass of the lexer, and the plan's parameter.
//! let again = b"SELECT name FROM customers WHERE id = 12345 AND vip ORDER BY 1";
//! let mut values = Literals::new();
//! let second = digest(again, Modes::NONE, &mut values).expect("a statement for the cache");
//! assert_eq!(first.key(sql, &literals, &mask), second.key(again, &values, &mask));
//! assert_eq!(values[0].value(again, Modes::NONE), LiteralValue::Int(12345));
//! # Ok::<(), porpoise_sql::ParseError>(())
//! ```

#![warn(missing_docs)]

pub mod ast;
pub mod digest;
mod error;
mod hint;
pub mod keyword;
pub mod lexer;
mod names;
pub mod parser;
mod print;
pub mod stack;

pub use digest::{
    Digest, LiteralToken, Literals, ParamMask, SourceMap, digest, parse_digested,
    parse_digested_metered,
};
pub use error::{ParseError, ParseErrorKind};
pub use lexer::{LiteralKind, LiteralValue, Modes};
pub use names::{NamedItem, ResolvedNames};
pub use parser::{Meter, Parsed, parse_expr, parse_metered, parse_statement};
