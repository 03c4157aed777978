//! Lexer, parser and syntax tree of the MySQL dialect.

pub mod ast;
pub mod digest;
mod error;
pub mod keyword;
pub mod lexer;
pub mod parser;
mod print;

pub use digest::{Digest, LiteralToken, Literals, ParamMask, SourceMap, digest, parse_digested};
pub use error::{ParseError, ParseErrorKind};
pub use lexer::{LiteralKind, LiteralValue, Modes};
pub use parser::{Parsed, parse_expr, parse_statement};
