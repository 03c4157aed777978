//! Lexer, parser and syntax tree of the MySQL dialect.
