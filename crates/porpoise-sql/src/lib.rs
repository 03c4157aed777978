//! Lexer, parser and syntax tree of the MySQL dialect.

pub mod ast;
