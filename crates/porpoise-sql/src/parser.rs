//! Recursive descent from tokens to the [syntax tree](crate::ast).
//!
//! ```text
//! parse_statement ─► statement ─┬─► query ─► select ─► table references ─► expr
//!  one statement,    by its     ├─► rows: INSERT, UPDATE, DELETE, LOAD DATA
//!  where it ended    first word ├─► ddl: CREATE, ALTER, DROP … ─► table, column, data_type, alter
//!                               ├─► session: SET, transactions, PREPARE, KILL, EXPLAIN …
//!                               ├─► show: SHOW, DESCRIBE
//!                               └─► account: users, roles, GRANT
//! ```
//!
//! Expressions: `expr` has the operators and their precedence, `primary` what they are applied to,
//! `call`, `special_call` and `aggregate` the functions. Comments with optimizer hints are read by
//! [`crate::hint`].
//!
//! Rules that hold everywhere here:
//!
//! - **No backtracking.** Where a parenthesis may open two things, what it held decides how to go
//!   on. So time is linear in the text.
//! - **Bounded depth.** Recursion is counted ([`DEPTH_MAX`]), and so is the height of what
//!   left-recursive loops build ([`HEIGHT_MAX`]). The stack grows with it, and those who walk the
//!   tree later are told how much they need ([`crate::stack`]).
//! - **Shape before value.** No decision looks at a literal's value, only at its class. The
//!   statement cache relies on it: see [`crate::digest`].

mod account;
mod aggregate;
mod alter;
mod call;
mod column;
mod data_type;
mod ddl;
mod expr;
mod handler;
mod primary;
mod program;
mod query;
mod rows;
mod session;
mod show;
mod special_call;
mod table;
mod xa;

pub(crate) use aggregate::AGGREGATES;
pub(crate) use call::RESERVED_FUNCTIONS;
pub use call::SYNONYMS;
pub use session::is_explainable;

use crate::ast::*;
use crate::digest::ParamMask;
use crate::error::{ParseError, ParseErrorKind};
use crate::hint;
use crate::keyword::{self, Keyword};
use crate::lexer::{self, Lexer, LiteralKind, LiteralValue, Modes, Token, TokenKind};
use crate::stack;
use compact_str::CompactString;

/// How deeply expressions and queries may nest.
pub const DEPTH_MAX: u32 = 2_500;

/// How many SELECTs may stand in one another: planning them takes more than linear time.
pub const SELECTS_NESTED_MAX: u32 = 128;

/// How high an expression's tree may be, and how many joins or set operations a statement may have.
pub const HEIGHT_MAX: u32 = 2_500;

type Result<T> = std::result::Result<T, ParseError>;

/// A parsed statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The statement.
    pub statement: Statement,
    /// How many `?` it has.
    pub placeholders: u32,
    /// How many levels deep its tree is, at most: what [`stack::reserve`] wants to know for
    /// whatever recurses over it, its drop included.
    pub depth: u32,
    /// How many tokens it has: its tree is so large.
    pub tokens: usize,
    /// Its text, without comments and space around it and without the semicolon.
    pub span: Span,
    /// Where the next statement's text begins: behind the semicolon, or the text's end.
    pub next: usize,
}

/// Parses the statement that begins at byte `at` of `sql`; `None` when there is none, only space
/// and semicolons up to the end. Comments alone are a [`Statement::Empty`].
///
/// ```
/// use porpoise_sql::{Modes, parse_statement};
/// let sql = b"SELECT 1; SELECT 2";
/// let first = parse_statement(sql, 0, Modes::NONE)?.expect("a statement");
/// assert_eq!(first.next, 9);
/// let second = parse_statement(sql, first.next, Modes::NONE)?.expect("a statement");
/// assert_eq!((second.span.of(sql), second.next), (&b"SELECT 2"[..], sql.len()));
/// # Ok::<(), porpoise_sql::ParseError>(())
/// ```
pub fn parse_statement(sql: &[u8], at: usize, modes: Modes) -> Result<Option<Parsed>> {
    parse_metered(sql, at, modes, &mut |_| true)
}

/// Is told of every few thousand tokens how many they are, before there are more; says whether to go
/// on. A text of a megabyte can be a tree of seventy.
pub type Meter<'m> = dyn FnMut(usize) -> bool + 'm;

/// As [`parse_statement`], as long as the meter lets it.
pub fn parse_metered(
    sql: &[u8],
    at: usize,
    modes: Modes,
    meter: &mut Meter<'_>,
) -> Result<Option<Parsed>> {
    stack::for_text(sql.len().saturating_sub(at), || {
        let mut parser = Parser::new(sql, at, modes, meter);
        let parsed = parser.whole_statement();
        parsed.map_err(|error| error.placed(sql, parser.start))
    })
}

/// Parses a text that holds one expression and nothing else, such as a stored generated column or
/// check.
pub fn parse_expr(sql: &[u8], modes: Modes) -> Result<Expr> {
    stack::for_text(sql.len(), || {
        let mut meter = |_| true;
        let mut parser = Parser::new(sql, 0, modes, &mut meter);
        let parsed = parser
            .expr()
            .and_then(|expr| match parser.is(TokenKind::End) {
                true => Ok(expr),
                false => Err(parser.syntax_error()),
            });
        parsed.map_err(|error| error.placed(sql, parser.start))
    })
}

/// Parses the only statement of `sql`, its literals as [`Expr::Param`]s wherever that is allowed.
/// The mask says which literals became parameters; the others are in the tree by value.
pub(crate) fn parse_digested(
    sql: &[u8],
    modes: Modes,
    meter: &mut Meter<'_>,
) -> Result<Option<(Parsed, ParamMask)>> {
    stack::for_text(sql.len(), || {
        let mut parser = Parser::new(sql, 0, modes, meter);
        parser.params = Some(ParamMask::default());
        let parsed = parser.whole_statement();
        let parsed = parsed.map_err(|error| error.placed(sql, parser.start))?;
        let Some(parsed) = parsed else {
            return Ok(None);
        };
        match parser.params {
            Some(mask) if !parser.needs_values => Ok(Some((parsed, mask))),
            _ => {
                let parsed = parse_metered(sql, 0, modes, parser.meter)?;
                Ok(parsed.map(|parsed| (parsed, ParamMask::default())))
            }
        }
    })
}

/// A token with what the parser wants to know of it.
#[derive(Debug, Clone, Copy)]
struct LookaheadToken {
    token: Token,
    /// Of an unquoted word.
    keyword: Keyword,
    /// The how manieth literal, or placeholder, of the statement it is.
    ordinal: u32,
}

pub(crate) struct Parser<'a> {
    sql: &'a [u8],
    modes: Modes,
    meter: &'a mut Meter<'a>,
    /// The meter has said no: the text is taken to end here.
    is_refused: bool,
    /// Tokens consumed that the window has forgotten.
    forgotten: usize,
    lexer: Lexer<'a>,
    /// Tokens read so far, up to the end of the statement; forgotten from time to time.
    window: Vec<LookaheadToken>,
    /// The current token's place in the window.
    at: usize,
    /// Where the last consumed token ended.
    last_end: u32,
    /// Where the statement's text begins.
    start: usize,
    literals: u32,
    placeholders: u32,
    /// Recursion, now.
    depth: u32,
    /// The deepest so far, with the height of what was built there.
    deepest: u32,
    /// Of the tallest expression parsed since the enclosing one began.
    height: u32,
    /// SELECTs that enclose the current token.
    selects: u32,
    /// Joins and set operations so far.
    chained: u32,
    /// `Some`: literals become parameters, and are marked here.
    params: Option<ParamMask>,
    /// The literals met, while they become parameters.
    literal_tokens: Vec<Token>,
    /// The planner will need the literals' values after all.
    needs_values: bool,
    /// An INTO inside a SELECT, on its way to the query it belongs to.
    into: Option<SelectInto>,
    /// Optimizer hints, on their way to the statement.
    hint_comments: Vec<HintComment>,
    /// Query blocks so far.
    blocks: u32,
    /// The number of the next one, where that is not the next number.
    reserved_block: Option<u32>,
    /// Programs that enclose the current token: a semicolon doesn't end their statement.
    programs: u32,
}

/// Tokens consumed before the window is cut.
const WINDOW_MAX: usize = 4_096;

impl<'a> Parser<'a> {
    fn new(sql: &'a [u8], at: usize, modes: Modes, meter: &'a mut Meter<'a>) -> Parser<'a> {
        Parser {
            sql,
            modes,
            meter,
            is_refused: false,
            forgotten: 0,
            lexer: Lexer::new(sql, at, modes),
            window: Vec::with_capacity(32),
            at: 0,
            last_end: at as u32,
            start: at,
            literals: 0,
            placeholders: 0,
            depth: 0,
            deepest: 0,
            height: 0,
            selects: 0,
            chained: 0,
            params: None,
            literal_tokens: Vec::new(),
            needs_values: false,
            into: None,
            hint_comments: Vec::new(),
            blocks: 0,
            reserved_block: None,
            programs: 0,
        }
    }

    fn whole_statement(&mut self) -> Result<Option<Parsed>> {
        let parsed = self.metered_statement();
        match self.is_refused {
            true => Err(ParseError::unplaced(ParseErrorKind::Refused, self.start)),
            false => parsed,
        }
    }

    fn metered_statement(&mut self) -> Result<Option<Parsed>> {
        let first = self.tok(0).token;
        let statement = match first.kind {
            TokenKind::End | TokenKind::Semicolon
                if lexer::is_blank(self.sql, first.start as usize) =>
            {
                if !self.lexer.saw_comment() {
                    return Ok(None);
                }
                Statement::Empty
            }
            _ => self.statement()?,
        };
        let span = Span {
            start: first.start,
            end: self.last_end.max(first.start),
        };
        let last = self.tok(0).token;
        let next = match last.kind {
            TokenKind::End => self.sql.len(),
            TokenKind::Semicolon if lexer::is_blank(self.sql, last.end as usize) => self.sql.len(),
            TokenKind::Semicolon => last.end as usize,
            _ => return Err(self.syntax_error()),
        };
        Ok(Some(Parsed {
            statement,
            placeholders: self.placeholders,
            depth: self.deepest + self.chained,
            tokens: self.forgotten + self.at,
            span,
            next,
        }))
    }

    // -- Tokens
    // -------------------------------------------------------------------------------------------

    /// The token `ahead` of the current one.
    fn tok(&mut self, ahead: usize) -> LookaheadToken {
        while self.window.len() <= self.at + ahead {
            // A statement's tokens end with its semicolon: what is behind it is another's.
            if let Some(last) = self.window.last()
                && (last.token.kind == TokenKind::End
                    || self.programs == 0 && last.token.kind == TokenKind::Semicolon)
            {
                return *last;
            }
            let mut token = self.lexer.next();
            if self.is_refused {
                token.kind = TokenKind::End;
            }
            let mut tok = LookaheadToken {
                token,
                keyword: Keyword::NONE,
                ordinal: 0,
            };
            match token.kind {
                TokenKind::Word => tok.keyword = keyword::lookup(token.text(self.sql)),
                TokenKind::Literal(_) => {
                    tok.ordinal = self.literals;
                    self.literals += 1;
                    if self.params.is_some() {
                        self.literal_tokens.push(token);
                    }
                }
                TokenKind::Placeholder => {
                    tok.ordinal = self.placeholders;
                    self.placeholders += 1;
                }
                _ => {}
            }
            self.window.push(tok);
        }
        self.window[self.at + ahead]
    }

    fn kind(&mut self) -> TokenKind {
        self.tok(0).token.kind
    }

    /// The current keyword in upper case; empty when the token is none.
    fn keyword(&mut self) -> &'static str {
        self.tok(0).keyword.text()
    }

    /// Goes to the next token, and says which it left.
    fn advance(&mut self) -> LookaheadToken {
        let tok = self.tok(0);
        if tok.token.kind != TokenKind::End {
            self.last_end = tok.token.end;
        }
        let is_last = match tok.token.kind {
            TokenKind::End => true,
            TokenKind::Semicolon => self.programs == 0,
            _ => false,
        };
        if self.at + 1 < self.window.len() || !is_last {
            self.at += 1;
        }
        if self.at >= WINDOW_MAX {
            self.window.drain(..self.at);
            self.forgotten += self.at;
            self.is_refused |= !(self.meter)(self.at);
            self.at = 0;
        }
        tok
    }

    fn text(&mut self) -> &'a [u8] {
        self.tok(0).token.text(self.sql)
    }

    /// Whether the current token is the keyword `word`.
    fn at(&mut self, word: &str) -> bool {
        self.at_ahead(0, word)
    }

    fn at_ahead(&mut self, ahead: usize, word: &str) -> bool {
        debug_assert!(
            keyword::lookup(word.as_bytes()) != Keyword::NONE,
            "{word} is no keyword"
        );
        self.tok(ahead).keyword.text() == word
    }

    /// Whether the next tokens are these keywords.
    fn at_all(&mut self, words: &[&str]) -> bool {
        words
            .iter()
            .enumerate()
            .all(|(n, word)| self.at_ahead(n, word))
    }

    fn at_any(&mut self, words: &[&str]) -> bool {
        words.iter().any(|word| self.at(word))
    }

    /// Whether the current token is the word `word`, keyword or not.
    fn at_word(&mut self, word: &str) -> bool {
        self.kind() == TokenKind::Word && self.text().eq_ignore_ascii_case(word.as_bytes())
    }

    fn eat(&mut self, word: &str) -> bool {
        let found = self.at(word);
        if found {
            self.advance();
        }
        found
    }

    /// Consumes these keywords, all or none.
    fn eat_all(&mut self, words: &[&str]) -> bool {
        let found = self.at_all(words);
        if found {
            words.iter().for_each(|_| {
                self.advance();
            });
        }
        found
    }

    /// Consumes one of these keywords.
    fn eat_any(&mut self, words: &[&'static str]) -> Option<&'static str> {
        let found = words.iter().copied().find(|word| self.at(word))?;
        self.advance();
        Some(found)
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        match self.eat(word) {
            true => Ok(()),
            false => Err(self.syntax_error()),
        }
    }

    fn expect_all(&mut self, words: &[&str]) -> Result<()> {
        words.iter().try_for_each(|word| self.expect(word))
    }

    fn is(&mut self, kind: TokenKind) -> bool {
        self.kind() == kind
    }

    fn is_ahead(&mut self, ahead: usize, kind: TokenKind) -> bool {
        self.tok(ahead).token.kind == kind
    }

    fn take(&mut self, kind: TokenKind) -> bool {
        let found = self.is(kind);
        if found {
            self.advance();
        }
        found
    }

    fn need(&mut self, kind: TokenKind) -> Result<()> {
        match self.take(kind) {
            true => Ok(()),
            false => Err(self.syntax_error()),
        }
    }

    fn syntax_error(&mut self) -> ParseError {
        self.error(ParseErrorKind::Syntax)
    }

    fn error(&mut self, kind: ParseErrorKind) -> ParseError {
        let offset = self.tok(0).token.start as usize;
        ParseError::unplaced(kind, offset)
    }

    // -- Combinations
    // -------------------------------------------------------------------------------------

    /// `item, item, …`
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.take(TokenKind::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// `(inner)`
    fn parens<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.need(TokenKind::LeftParen)?;
        let inner = inner(self)?;
        self.need(TokenKind::RightParen)?;
        Ok(inner)
    }

    /// `(item, item, …)`
    fn paren_list<T>(&mut self, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.parens(|p| p.list(item))
    }

    /// Runs `inner` one level deeper.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEPTH_MAX {
            return Err(self.error(ParseErrorKind::TooDeep));
        }
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        let result = stack::at_level(self.depth, DEPTH_MAX, || inner(self));
        self.depth -= 1;
        result
    }

    /// Counts a join or set operation.
    fn chain(&mut self) -> Result<()> {
        self.chained += 1;
        match self.chained <= HEIGHT_MAX {
            true => Ok(()),
            false => Err(self.error(ParseErrorKind::TooDeep)),
        }
    }

    // -- Names
    // --------------------------------------------------------------------------------------------

    fn at_ident(&mut self) -> bool {
        self.at_ident_ahead(0)
    }

    fn at_ident_ahead(&mut self, ahead: usize) -> bool {
        let tok = self.tok(ahead);
        match tok.token.kind {
            TokenKind::QuotedName => true,
            TokenKind::Word => !tok.keyword.is_reserved(),
            _ => false,
        }
    }

    /// A name: quoted, or a word that is not reserved.
    fn ident(&mut self) -> Result<Ident> {
        match self.at_ident() {
            true => self.checked_name(),
            false => Err(self.syntax_error()),
        }
    }

    /// The current token as a name. Names are of characters that take up to three bytes in UTF-8
    /// (MySQL 8.4 manual, 11.2).
    fn checked_name(&mut self) -> Result<Ident> {
        /// What only the first byte of a character of four bytes reaches.
        const FOUR_BYTES: u8 = 0xF0;
        let text = self.tok(0).token.text(self.sql);
        match text.iter().any(|byte| *byte >= FOUR_BYTES) {
            true => {
                let name = lexer::name_text(self.tok(0).token.kind, text);
                let error = self.error(ParseErrorKind::SupplementaryInName);
                Err(ParseError {
                    near: name.into(),
                    ..error
                })
            }
            false => Ok(self.take_name()),
        }
    }

    /// A name where even reserved words are names: behind a dot.
    fn any_ident(&mut self) -> Result<Ident> {
        match self.kind() {
            TokenKind::QuotedName | TokenKind::Word => self.checked_name(),
            _ => Err(self.syntax_error()),
        }
    }

    /// The current token as a name, whatever it is.
    fn take_name(&mut self) -> Ident {
        let token = self.advance().token;
        Ident(lexer::name_text(token.kind, token.text(self.sql)))
    }

    /// The current word in upper case.
    fn take_upper(&mut self) -> Box<str> {
        self.take_name().to_ascii_uppercase().into()
    }

    fn opt_ident(&mut self) -> Result<Option<Ident>> {
        match self.at_ident() {
            true => self.ident().map(Some),
            false => Ok(None),
        }
    }

    /// A name or a string.
    fn ident_or_string(&mut self) -> Result<Ident> {
        match self.at_string() {
            true => Ok(Ident(CompactString::from_utf8_lossy(&self.string()?))),
            false => self.ident(),
        }
    }

    /// A schema's, table's or alias's name as it counts: in lower case where
    /// `lower_case_table_names` says so.
    fn folded(&self, name: Ident) -> Ident {
        match self.modes.has(Modes::LOWER_CASE_NAMES) {
            true => Ident(name.0.to_lowercase()),
            false => name,
        }
    }

    /// The name of a schema or table.
    fn table_ident(&mut self) -> Result<Ident> {
        if self.at_no_space_call() {
            return Err(self.syntax_error());
        }
        let name = self.ident()?;
        Ok(self.folded(name))
    }

    /// The name of a table behind its schema's.
    fn any_table_ident(&mut self) -> Result<Ident> {
        let name = self.any_ident()?;
        Ok(self.folded(name))
    }

    /// `[schema.]name`
    fn object_name(&mut self) -> Result<ObjectName> {
        // `.name` is a table of the current schema.
        if self.take(TokenKind::Dot) {
            return Ok(ObjectName {
                schema: None,
                name: self.any_table_ident()?,
            });
        }
        let name = self.table_ident()?;
        match self.take(TokenKind::Dot) {
            true => Ok(ObjectName {
                schema: Some(name),
                name: self.any_table_ident()?,
            }),
            false => Ok(ObjectName { schema: None, name }),
        }
    }

    /// `[[schema.]table.]column`
    fn column_ref(&mut self) -> Result<ColumnRef> {
        let first = match self.take(TokenKind::Dot) {
            true => self.any_ident()?,
            false => self.ident()?,
        };
        self.column_ref_from(first)
    }

    fn column_ref_from(&mut self, first: Ident) -> Result<ColumnRef> {
        if !self.take(TokenKind::Dot) {
            return Ok(ColumnRef {
                schema: None,
                table: None,
                name: first,
            });
        }
        let first = self.folded(first);
        let second = self.any_ident()?;
        if !self.take(TokenKind::Dot) {
            return Ok(ColumnRef {
                schema: None,
                table: Some(first),
                name: second,
            });
        }
        Ok(ColumnRef {
            schema: Some(first),
            table: Some(self.folded(second)),
            name: self.any_ident()?,
        })
    }

    /// `@name`
    fn variable(&mut self) -> Result<Ident> {
        match self.is(TokenKind::Variable) {
            true => Ok(self.take_name()),
            false => Err(self.syntax_error()),
        }
    }

    /// A character set or collation: a name, a string or `binary`.
    fn charset_name(&mut self) -> Result<Ident> {
        let name = match self.at("BINARY") {
            true => self.take_name(),
            false => self.ident_or_string()?,
        };
        Ok(Ident(name.0.to_ascii_lowercase()))
    }

    /// `CHARACTER SET`, `CHAR SET`, `CHARSET`
    fn eat_charset_words(&mut self) -> bool {
        self.eat("CHARSET") || self.eat_all(&["CHARACTER", "SET"]) || self.eat_all(&["CHAR", "SET"])
    }

    // -- Literals
    // -----------------------------------------------------------------------------------------

    fn at_string(&mut self) -> bool {
        self.kind() == TokenKind::Literal(LiteralKind::String)
    }

    /// A string where no expression may stand; strings side by side are one.
    fn string(&mut self) -> Result<Box<[u8]>> {
        if !self.at_string() {
            return Err(self.syntax_error());
        }
        let mut bytes = Vec::new();
        while self.at_string() {
            let token = self.advance().token;
            bytes.extend_from_slice(&lexer::unquote(token.text(self.sql), self.modes));
        }
        Ok(bytes.into())
    }

    fn lossy_string(&mut self) -> Result<Box<str>> {
        Ok(String::from_utf8_lossy(&self.string()?).into())
    }

    /// A string, or bytes as `0x…`.
    fn string_or_hex(&mut self) -> Result<Box<[u8]>> {
        match self.kind() {
            TokenKind::Literal(kind @ (LiteralKind::Hex | LiteralKind::Bit)) => {
                let token = self.advance().token;
                match lexer::literal_value(kind, token.text(self.sql), self.modes) {
                    LiteralValue::Hex(bytes) | LiteralValue::Bit(bytes) => Ok(bytes.into()),
                    _ => Err(self.syntax_error()),
                }
            }
            _ => self.string(),
        }
    }

    /// A whole number where no expression may stand.
    fn u64(&mut self) -> Result<u64> {
        let TokenKind::Literal(kind @ (LiteralKind::Int | LiteralKind::BigInt | LiteralKind::Hex)) =
            self.kind()
        else {
            return Err(self.syntax_error());
        };
        match lexer::literal_value(kind, self.text(), self.modes) {
            LiteralValue::Int(n) => {
                self.advance();
                Ok(n)
            }
            LiteralValue::Hex(bytes) if bytes.len() <= 8 => {
                self.advance();
                Ok(bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
            }
            _ => Err(self.syntax_error()),
        }
    }

    /// A whole number, or one whose fraction doesn't count.
    fn whole_part(&mut self) -> Result<u64> {
        let TokenKind::Literal(LiteralKind::Decimal { .. } | LiteralKind::Double) = self.kind()
        else {
            return self.u64();
        };
        let number: f64 = std::str::from_utf8(self.text())
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| self.syntax_error())?;
        self.advance();
        Ok(number as u64)
    }

    /// A whole number below 2³².
    fn u32(&mut self) -> Result<u32> {
        let error = self.syntax_error();
        u32::try_from(self.u64()?).map_err(|_| error)
    }

    /// `(n)`
    fn opt_length(&mut self) -> Result<Option<u32>> {
        match self.is(TokenKind::LeftParen) {
            true => self.parens(Self::u32).map(Some),
            false => Ok(None),
        }
    }

    /// `[=]`
    fn opt_eq(&mut self) {
        let _ = self.take(TokenKind::Eq) || self.take(TokenKind::Assign);
    }

    fn if_exists(&mut self) -> bool {
        self.eat_all(&["IF", "EXISTS"])
    }

    fn if_not_exists(&mut self) -> bool {
        self.eat_all(&["IF", "NOT", "EXISTS"])
    }

    /// Everything up to the end of the statement.
    fn rest_of_statement(&mut self) -> Box<str> {
        let start = self.tok(0).token.start as usize;
        while !matches!(self.kind(), TokenKind::End | TokenKind::Semicolon) {
            self.advance();
        }
        self.source(start)
    }

    /// Goes to the end of a statement that isn't known further. With a BEGIN in it, that is the end
    /// of the text: a stored program has semicolons of its own.
    fn skip_statement(&mut self) {
        let mut has_body = false;
        while !matches!(self.kind(), TokenKind::End | TokenKind::Semicolon) {
            has_body |= self.at("BEGIN");
            self.advance();
        }
        if has_body {
            let end = self.sql.len();
            self.lexer = Lexer::new(self.sql, end, self.modes);
            self.window.clear();
            self.at = 0;
            self.last_end = end as u32;
        }
    }

    /// The text from byte `start` to the last token consumed.
    fn source(&self, start: usize) -> Box<str> {
        String::from_utf8_lossy(self.sql.get(start..self.last_end as usize).unwrap_or(&[])).into()
    }

    // -- Statements
    // ---------------------------------------------------------------------------------------

    fn statement(&mut self) -> Result<Statement> {
        let mut statement = self.statement_without_hints()?;
        match &mut statement {
            Statement::Query(query) => query.hints = self.statement_hints(),
            Statement::Insert(insert) => insert.hints = self.statement_hints(),
            Statement::Update(update) => update.hints = self.statement_hints(),
            Statement::Delete(delete) => delete.hints = self.statement_hints(),
            _ => {}
        }
        Ok(statement)
    }

    fn statement_without_hints(&mut self) -> Result<Statement> {
        let word = match self.kind() {
            TokenKind::LeftParen => "SELECT",
            _ => self.keyword(),
        };
        match word {
            "SELECT" | "VALUES" | "TABLE" => Ok(Statement::Query(Box::new(self.query()?))),
            "WITH" => self.with_statement(),
            "INSERT" | "REPLACE" => self.insert(),
            "UPDATE" => self.update(None),
            "DELETE" => self.delete(None),
            "LOAD" => self.load(),
            "HANDLER" => self.handler(),
            "DO" => {
                self.advance();
                Ok(Statement::Do(self.list(Self::expr)?))
            }
            "CALL" => self.call(),
            "SIGNAL" | "RESIGNAL" => self.signal(),
            "GET" => self.get_diagnostics(),
            "CREATE" => self.create(),
            "ALTER" => self.alter(),
            "DROP" => self.drop(),
            "TRUNCATE" => {
                self.advance();
                self.eat("TABLE");
                Ok(Statement::Truncate(self.object_name()?))
            }
            "RENAME" => self.rename(),
            "START" | "BEGIN" | "COMMIT" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" => {
                self.transaction(word)
            }
            "XA" => self.xa(),
            "LOCK" | "UNLOCK" => self.lock(),
            "SET" => self.set(),
            "USE" => {
                self.advance();
                Ok(Statement::Use(self.table_ident()?))
            }
            "SHOW" => self.show(),
            "DESCRIBE" | "DESC" | "EXPLAIN" => self.explain(),
            "HELP" => {
                self.advance();
                Ok(Statement::Help(self.ident_or_string()?.as_bytes().into()))
            }
            "KILL" => {
                self.advance();
                let query = self.eat("QUERY");
                if !query {
                    self.eat("CONNECTION");
                }
                Ok(Statement::Kill {
                    query,
                    id: self.expr()?,
                })
            }
            "PREPARE" | "EXECUTE" | "DEALLOCATE" => self.prepared(word),
            "ANALYZE" | "CHECK" | "OPTIMIZE" | "REPAIR" | "CHECKSUM" => self.maintain(word),
            "FLUSH" => self.flush(),
            "RESET" => self.reset(),
            "INSTALL" | "UNINSTALL" if self.at_ahead(1, "COMPONENT") => self.component(),
            "GRANT" => self.grant(),
            "REVOKE" => self.revoke(),
            _ => match UNSUPPORTED
                .iter()
                .find(|(words, _)| words.contains(&word) && !word.is_empty())
            {
                Some((_, what)) => self.unsupported(if what.is_empty() { word } else { what }),
                None => Err(self.syntax_error()),
            },
        }
    }

    /// Swallows the rest of the statement.
    fn unsupported(&mut self, what: &'static str) -> Result<Statement> {
        let start = self.tok(0).token.start as usize;
        self.unsupported_from(start, what)
    }

    fn unsupported_from(&mut self, start: usize, what: &'static str) -> Result<Statement> {
        self.skip_statement();
        Ok(Statement::Unsupported {
            what,
            text: self.source(start),
        })
    }
}

/// First words of statements that are only recognised; an empty name stands for the word itself.
const UNSUPPORTED: &[(&[&str], &str)] = &[
    (
        &[
            "BINLOG",
            "CHANGE",
            "PURGE",
            "STOP",
            "CLONE",
            "CACHE",
            "INSTALL",
            "UNINSTALL",
        ],
        "",
    ),
    (&["IMPORT"], "IMPORT TABLE"),
    (&["RESTART", "SHUTDOWN"], ""),
];
