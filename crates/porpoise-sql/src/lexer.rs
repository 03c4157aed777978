//! From bytes to tokens.
//!
//! One scanner serves the parser and the [digest](crate::digest), so the two can't disagree about
//! where a literal begins or how many there are. It borrows the text, allocates nothing, and never
//! fails: what is no token is [`TokenKind::Invalid`], and the parser complains when it gets there.
//!
//! ```text
//! SELECT /*+ hint */ a.b, 'it''s' FROM /*!50000 t */ -- the rest is a comment
//! ^Word  skipped     ^Word ^String     ^text since the version is ours
//!                     ^Dot
//! ```
//!
//! Bytes above 0x7F are letters. Keywords are words here; [`crate::keyword`] knows them apart.

use crate::ast::Literal;
use compact_str::CompactString;
use std::borrow::Cow;

/// Executable comments `/*!80400 … */` of this version and older are text.
pub const VERSION: u32 = 80_400;

/// The SQL modes, and what else changes how text is read (MySQL 8.4 manual, 7.1.11 and 11.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Modes(u8);

impl Modes {
    /// MySQL's default.
    pub const NONE: Modes = Modes(0);
    /// `"a"` is an identifier, not a string.
    pub const ANSI_QUOTES: Modes = Modes(1);
    /// `||` concatenates.
    pub const PIPES_AS_CONCAT: Modes = Modes(2);
    /// A backslash in a string is a backslash.
    pub const NO_BACKSLASH_ESCAPES: Modes = Modes(4);
    /// `NOT` binds like `!`.
    pub const HIGH_NOT_PRECEDENCE: Modes = Modes(8);
    /// A space may stand between a function's name and its parenthesis.
    pub const IGNORE_SPACE: Modes = Modes(16);
    /// `REAL` is `FLOAT`.
    pub const REAL_AS_FLOAT: Modes = Modes(32);
    /// Names of schemas, tables and aliases are read in lower case (`lower_case_table_names=1`).
    pub const LOWER_CASE_NAMES: Modes = Modes(64);

    /// These and those.
    pub const fn with(self, other: Modes) -> Modes {
        Modes(self.0 | other.0)
    }

    /// Whether all of `other` are on.
    pub const fn has(self, other: Modes) -> bool {
        self.0 & other.0 == other.0
    }

    /// As a number, for hashing.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// The end of the text.
    End,
    /// A keyword or an unquoted name.
    Word,
    /// `` `name` ``, and `"name"` under ANSI_QUOTES.
    QuotedName,
    /// `@name`, `` @`name` ``, `@'name'`, `@"name"`; also the host of an account.
    Variable,
    /// `@@`
    AtAt,
    /// A literal of expressions.
    Literal(LiteralKind),
    /// `N'text'`
    NationalString,
    /// `?`
    Placeholder,
    /// What can't be lexed: an unterminated string or comment, a stray byte.
    Invalid,

    /// `.`
    Dot,
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// `(`
    LeftParen,
    /// `)`
    RightParen,
    /// `{`
    LeftBrace,
    /// `}`
    RightBrace,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Star,
    /// `/`
    Slash,
    /// `%`
    Percent,
    /// `~`
    Tilde,
    /// `^`
    Caret,
    /// `&`
    Ampersand,
    /// `|`
    Pipe,
    /// `||`
    PipePipe,
    /// `&&`
    AmpersandAmpersand,
    /// `!`
    Bang,
    /// `=`
    Eq,
    /// `<=>`
    NullSafeEq,
    /// `<>`, `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `:=`
    Assign,
    /// `:`
    Colon,
    /// `->`
    Arrow,
    /// `->>`
    ArrowText,
    /// `@`
    At,
}

/// The class of a literal. Statements whose literals differ in class never share a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LiteralKind {
    /// A whole number that fits `i64`.
    Int,
    /// A whole number that fits only `u64`.
    BigInt,
    /// A number with a point, or too large for `u64`: the digits in all, and behind the point.
    Decimal {
        /// Digits in all, at least one.
        precision: u8,
        /// Digits behind the point.
        scale: u8,
    },
    /// A number with an exponent.
    Double,
    /// `'text'`.
    String,
    /// `0x…`, `x'…'`.
    Hex,
    /// `0b…`, `b'…'`.
    Bit,
}

/// A token and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Offset of its first byte.
    pub start: u32,
    /// Offset after its last byte.
    pub end: u32,
}

impl Token {
    /// The token's bytes.
    pub fn text<'a>(&self, sql: &'a [u8]) -> &'a [u8] {
        sql.get(self.start as usize..self.end as usize)
            .unwrap_or(&[])
    }
}

const SPACE: u8 = 1;
const DIGIT: u8 = 2;
const LETTER: u8 = 4;
const NAME: u8 = DIGIT | LETTER;
const HEX: u8 = 8;

/// What each byte can be part of.
static CLASS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b' ' | 9..=13 => SPACE,
            b'0'..=b'9' => DIGIT | HEX,
            b'a'..=b'f' | b'A'..=b'F' => LETTER | HEX,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80..=0xFF => LETTER,
            _ => 0,
        };
        byte += 1;
    }
    table
};

/// Whether only semicolons and space follow from byte `at` on, which MySQL cuts off a text before it
/// looks at it. One NUL among them ends the text, as programs in C may send it (mysqlslap does).
pub(crate) fn is_blank(sql: &[u8], at: usize) -> bool {
    let rest = sql.get(at..).unwrap_or_default();
    let mut nuls = 0;
    rest.iter().all(|&byte| {
        nuls += u32::from(byte == 0);
        byte == b';' || is(byte, SPACE) || (byte == 0 && nuls == 1)
    })
}

fn is(byte: u8, class: u8) -> bool {
    CLASS[byte as usize] & class != 0
}

/// Whether only comments, semicolons and space follow from byte `at` on.
pub fn is_without_statement(sql: &[u8], at: usize, modes: Modes) -> bool {
    let mut lexer = Lexer::new(sql, at, modes);
    loop {
        match lexer.next().kind {
            TokenKind::End => return true,
            TokenKind::Semicolon => {}
            _ => return false,
        }
    }
}

/// Cuts text into tokens.
#[derive(Debug, Clone)]
pub struct Lexer<'a> {
    sql: &'a [u8],
    at: usize,
    modes: Modes,
    /// The last token was a name, so a dot right behind it qualifies a name even if digits follow.
    after_name: bool,
    /// That dot was just read: digits are a name.
    after_dot: bool,
    in_executable: bool,
    saw_executable: bool,
    saw_comment: bool,
}

impl<'a> Lexer<'a> {
    /// Starts at byte `at` of `sql`. Text beyond 4 GiB is not seen.
    pub fn new(sql: &'a [u8], at: usize, modes: Modes) -> Lexer<'a> {
        let sql = sql.get(..u32::MAX as usize).unwrap_or(sql);
        Lexer {
            sql,
            at,
            modes,
            after_name: false,
            after_dot: false,
            in_executable: false,
            saw_executable: false,
            saw_comment: false,
        }
    }

    /// Whether an executable comment was met, of whatever version.
    pub fn saw_executable_comment(&self) -> bool {
        self.saw_executable
    }

    /// Whether a comment of any kind was met.
    pub fn saw_comment(&self) -> bool {
        self.saw_comment
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.sql.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn rest(&self) -> &'a [u8] {
        self.sql.get(self.at..).unwrap_or(&[])
    }

    /// Moves behind the next `needle`, or returns false.
    fn skip_past(&mut self, needle: &[u8]) -> bool {
        match self.rest().windows(needle.len()).position(|w| w == needle) {
            Some(n) => {
                self.at += n + needle.len();
                true
            }
            None => false,
        }
    }

    fn skip_line(&mut self) {
        self.saw_comment = true;
        match self.rest().iter().position(|b| *b == b'\n') {
            Some(n) => self.at += n + 1,
            None => self.at = self.sql.len(),
        }
    }

    /// Skips space and comments; false at a comment without an end.
    fn skip_space(&mut self) -> bool {
        // Nearly always: one space, then a token that can't begin a comment.
        if let [b' ', next, ..] = self.rest()
            && is(*next, NAME)
        {
            self.at += 1;
            self.after_name = false;
            self.after_dot = false;
            return true;
        }
        loop {
            match self.peek(0) {
                b'/' if self.peek(1) == b'*' => {
                    if !self.skip_comment() {
                        return false;
                    }
                }
                b'*' if self.in_executable && self.peek(1) == b'/' => {
                    self.in_executable = false;
                    self.at += 2;
                }
                b'#' => self.skip_line(),
                b'-' if self.peek(1) == b'-' => match self.sql.get(self.at + 2) {
                    Some(b) if *b > b' ' && *b != 0x7F => return true,
                    _ => self.skip_line(),
                },
                b if is(b, SPACE) => self.at += 1,
                _ => return true,
            }
            self.after_name = false;
            self.after_dot = false;
        }
    }

    fn skip_comment(&mut self) -> bool {
        self.saw_comment = true;
        if self.peek(2) != b'!' {
            let start = self.at;
            self.at += 2;
            let closed = self.skip_past(b"*/");
            if !closed {
                self.at = start;
            }
            return closed;
        }
        self.saw_executable = true;
        let digits = (0..6)
            .take_while(|n| self.peek(3 + n).is_ascii_digit())
            .count();
        let version = match digits {
            5 | 6 => (0..digits).fold(0, |v, n| v * 10 + u32::from(self.peek(3 + n) - b'0')),
            _ => 0,
        };
        if version <= VERSION {
            self.in_executable = true;
            self.at += if version > 0 || digits >= 5 {
                3 + digits
            } else {
                3
            };
            return true;
        }
        // A comment of a later version: skipped whole, with the comments inside it.
        let start = self.at;
        self.at += 3;
        loop {
            match self.rest() {
                [b'*', b'/', ..] => {
                    self.at += 2;
                    return true;
                }
                [b'/', b'*', ..] => {
                    self.at += 2;
                    if !self.skip_past(b"*/") {
                        break;
                    }
                }
                [_, ..] => self.at += 1,
                [] => break,
            }
        }
        self.at = start;
        false
    }

    /// The next token; [`TokenKind::End`] for ever when there is no more.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Token {
        if !self.skip_space() {
            return self.invalid(self.at);
        }
        let start = self.at;
        if start >= self.sql.len() || (self.sql[start] == 0 && is_blank(self.sql, start)) {
            return Token {
                kind: TokenKind::End,
                start: start as u32,
                end: start as u32,
            };
        }
        let (after_name, after_dot) = (self.after_name, self.after_dot);
        self.after_name = false;
        self.after_dot = false;
        let byte = self.sql[start];
        use TokenKind::*;
        let kind = match byte {
            b if is(b, LETTER) && self.peek(1) != b'\'' => self.word(),
            b'n' | b'N' if self.peek(1) == b'\'' && !after_dot => {
                self.at += 1;
                if !self.skip_quoted(b'\'') {
                    return self.invalid(start);
                }
                NationalString
            }
            b'x' | b'X' if self.peek(1) == b'\'' && !after_dot => {
                return self.quoted_digits(start, LiteralKind::Hex);
            }
            b'b' | b'B' if self.peek(1) == b'\'' && !after_dot => {
                return self.quoted_digits(start, LiteralKind::Bit);
            }
            b if is(b, LETTER) => self.word(),
            b'0'..=b'9' if after_dot => self.word(),
            b'0'..=b'9' => self.number(),
            b'.' if !after_name && self.peek(1).is_ascii_digit() => self.number(),
            b'`' => {
                if !self.skip_quoted(b'`') {
                    return self.invalid(start);
                }
                self.after_name = true;
                QuotedName
            }
            b'\'' => {
                if !self.skip_quoted(b'\'') {
                    return self.invalid(start);
                }
                Literal(LiteralKind::String)
            }
            b'"' => {
                if !self.skip_quoted(b'"') {
                    return self.invalid(start);
                }
                if self.modes.has(Modes::ANSI_QUOTES) {
                    self.after_name = true;
                    QuotedName
                } else {
                    Literal(LiteralKind::String)
                }
            }
            b'@' => {
                self.at += 1;
                match self.peek(0) {
                    b'@' => {
                        self.at += 1;
                        AtAt
                    }
                    quote @ (b'`' | b'\'' | b'"') => {
                        if !self.skip_quoted(quote) {
                            return self.invalid(start);
                        }
                        Variable
                    }
                    b if is(b, NAME) || b == b'.' => {
                        while is(self.peek(0), NAME) || self.peek(0) == b'.' {
                            self.at += 1;
                        }
                        Variable
                    }
                    _ => At,
                }
            }
            _ => {
                let (kind, length) = match (byte, self.peek(1), self.peek(2)) {
                    (b'.', ..) => {
                        self.after_dot = after_name;
                        (Dot, 1)
                    }
                    (b',', ..) => (Comma, 1),
                    (b';', ..) => (Semicolon, 1),
                    (b'(', ..) => (LeftParen, 1),
                    (b')', ..) => (RightParen, 1),
                    (b'{', ..) => (LeftBrace, 1),
                    (b'}', ..) => (RightBrace, 1),
                    (b'+', ..) => (Plus, 1),
                    (b'-', b'>', b'>') => (ArrowText, 3),
                    (b'-', b'>', _) => (Arrow, 2),
                    (b'-', ..) => (Minus, 1),
                    (b'*', ..) => (Star, 1),
                    (b'/', ..) => (Slash, 1),
                    (b'%', ..) => (Percent, 1),
                    (b'~', ..) => (Tilde, 1),
                    (b'^', ..) => (Caret, 1),
                    (b'&', b'&', _) => (AmpersandAmpersand, 2),
                    (b'&', ..) => (Ampersand, 1),
                    (b'|', b'|', _) => (PipePipe, 2),
                    (b'|', ..) => (Pipe, 1),
                    (b'!', b'=', _) => (Ne, 2),
                    (b'!', ..) => (Bang, 1),
                    (b'=', ..) => (Eq, 1),
                    (b'<', b'=', b'>') => (NullSafeEq, 3),
                    (b'<', b'=', _) => (Le, 2),
                    (b'<', b'>', _) => (Ne, 2),
                    (b'<', b'<', _) => (ShiftLeft, 2),
                    (b'<', ..) => (Lt, 1),
                    (b'>', b'=', _) => (Ge, 2),
                    (b'>', b'>', _) => (ShiftRight, 2),
                    (b'>', ..) => (Gt, 1),
                    (b':', b'=', _) => (Assign, 2),
                    (b':', ..) => (Colon, 1),
                    (b'?', ..) => (Placeholder, 1),
                    _ => (Invalid, 1),
                };
                self.at += length;
                kind
            }
        };
        Token {
            kind,
            start: start as u32,
            end: self.at as u32,
        }
    }

    /// The rest of the text is no token.
    fn invalid(&mut self, start: usize) -> Token {
        self.at = self.sql.len();
        Token {
            kind: TokenKind::Invalid,
            start: start as u32,
            end: self.at as u32,
        }
    }

    fn word(&mut self) -> TokenKind {
        let rest = self.rest();
        self.at += rest
            .iter()
            .position(|b| !is(*b, NAME))
            .unwrap_or(rest.len());
        self.after_name = true;
        TokenKind::Word
    }

    /// From the opening quote to behind the closing one; false when there is none.
    fn skip_quoted(&mut self, quote: u8) -> bool {
        let escapes = quote != b'`'
            && !self.modes.has(Modes::NO_BACKSLASH_ESCAPES)
            && !(quote == b'"' && self.modes.has(Modes::ANSI_QUOTES));
        // Without escapes, the quote is searched for twice.
        let escape = if escapes { b'\\' } else { quote };
        let mut at = self.at + 1;
        loop {
            let rest = self.sql.get(at..).unwrap_or(&[]);
            let Some(n) = memchr::memchr2(quote, escape, rest) else {
                return false;
            };
            let doubled = rest.get(n + 1) == Some(&quote);
            if rest[n] == quote && !doubled {
                self.at = at + n + 1;
                return true;
            }
            // A doubled quote, or a backslash and what it escapes.
            at += n + 2;
        }
    }

    fn quoted_digits(&mut self, start: usize, kind: LiteralKind) -> Token {
        self.at += 2;
        let mut digits = 0;
        loop {
            let b = self.peek(0);
            let fits = if kind == LiteralKind::Hex {
                is(b, HEX)
            } else {
                b == b'0' || b == b'1'
            };
            if !fits {
                break;
            }
            digits += 1;
            self.at += 1;
        }
        if self.peek(0) != b'\'' || (kind == LiteralKind::Hex && digits % 2 == 1) {
            return self.invalid(start);
        }
        self.at += 1;
        Token {
            kind: TokenKind::Literal(kind),
            start: start as u32,
            end: self.at as u32,
        }
    }

    fn skip_digits(&mut self) -> usize {
        let start = self.at;
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> TokenKind {
        let start = self.at;
        // 0x…, 0b…: names when a letter follows that is no digit.
        let based = match (self.peek(0), self.peek(1)) {
            (b'0', b'x') => Some((LiteralKind::Hex, HEX)),
            (b'0', b'b') => Some((LiteralKind::Bit, 0)),
            _ => None,
        };
        if let Some((kind, class)) = based {
            self.at += 2;
            let digits = self.at;
            while if class == HEX {
                is(self.peek(0), HEX)
            } else {
                matches!(self.peek(0), b'0' | b'1')
            } {
                self.at += 1;
            }
            if self.at > digits && !is(self.peek(0), NAME) {
                return TokenKind::Literal(kind);
            }
            return self.word();
        }
        let whole = self.skip_digits();
        let mut point = false;
        let mut scale = 0;
        if self.peek(0) == b'.' {
            point = true;
            self.at += 1;
            scale = self.skip_digits();
        }
        if matches!(self.peek(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if self.peek(1 + sign).is_ascii_digit() {
                let mantissa_end = self.at;
                self.at += 1 + sign;
                self.skip_digits();
                if point || sign == 1 || !is(self.peek(0), NAME) {
                    return TokenKind::Literal(LiteralKind::Double);
                }
                self.at = mantissa_end;
            }
        }
        if !point && is(self.peek(0), NAME) {
            return self.word();
        }
        let kind = if point {
            decimal(whole, scale)
        } else {
            match parse_u64(self.sql.get(start..self.at).unwrap_or(&[])) {
                Some(n) if n <= i64::MAX as u64 => LiteralKind::Int,
                Some(_) => LiteralKind::BigInt,
                None => decimal(whole, 0),
            }
        };
        TokenKind::Literal(kind)
    }
}

fn decimal(whole: usize, scale: usize) -> LiteralKind {
    LiteralKind::Decimal {
        precision: (whole + scale).clamp(1, 255) as u8,
        scale: scale.min(255) as u8,
    }
}

fn parse_u64(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |n, d| {
        n.checked_mul(10)?
            .checked_add(u64::from(d.wrapping_sub(b'0')))
    })
}

// ---------------------------------------------------------------------------------------------------------
// Values of tokens
// ---------------------------------------------------------------------------------------------------------

/// A literal's value, borrowed from the text where its form allows.
#[derive(Debug, Clone, PartialEq)]
pub enum LiteralValue<'a> {
    /// A whole number.
    Int(u64),
    /// Digits with a point, or too many for `u64`.
    Decimal(&'a str),
    /// A number with an exponent; infinite when it is out of range.
    Double(f64),
    /// Bytes in the connection's character set.
    String(Cow<'a, [u8]>),
    /// Bytes.
    Hex(Vec<u8>),
    /// Bits, right-aligned in whole bytes.
    Bit(Vec<u8>),
}

impl From<LiteralValue<'_>> for Literal {
    fn from(value: LiteralValue<'_>) -> Literal {
        match value {
            LiteralValue::Int(n) => Literal::Int(n),
            LiteralValue::Decimal(text) => Literal::Decimal(CompactString::new(text)),
            LiteralValue::Double(n) => Literal::Double(n),
            LiteralValue::String(bytes) => Literal::String(bytes.into_owned().into()),
            LiteralValue::Hex(bytes) => Literal::Hex(bytes.into()),
            LiteralValue::Bit(bytes) => Literal::Bit(bytes.into()),
        }
    }
}

/// The value of a literal token whose bytes are `text`.
pub fn literal_value(kind: LiteralKind, text: &[u8], modes: Modes) -> LiteralValue<'_> {
    match kind {
        LiteralKind::Int | LiteralKind::BigInt => LiteralValue::Int(parse_u64(text).unwrap_or(0)),
        LiteralKind::Decimal { .. } => {
            LiteralValue::Decimal(std::str::from_utf8(text).unwrap_or("0"))
        }
        LiteralKind::Double => LiteralValue::Double(
            std::str::from_utf8(text)
                .ok()
                .and_then(|t| t.parse().ok())
                .unwrap_or(0.0),
        ),
        LiteralKind::String => LiteralValue::String(unquote(text, modes)),
        LiteralKind::Hex => {
            let digits = based_digits(text);
            let mut bytes = Vec::with_capacity(digits.len().div_ceil(2));
            let odd = digits.len() % 2;
            let nibble = |b: &u8| (*b as char).to_digit(16).unwrap_or(0) as u8;
            bytes.extend(digits.get(..odd).unwrap_or(&[]).iter().map(nibble));
            let pairs = digits.get(odd..).unwrap_or(&[]).as_chunks().0;
            let byte = |[high, low]: &[u8; 2]| nibble(high) << 4 | nibble(low);
            bytes.extend(pairs.iter().map(byte));
            LiteralValue::Hex(bytes)
        }
        LiteralKind::Bit => {
            let digits = based_digits(text);
            let byte = |bits: &[u8]| bits.iter().fold(0, |n, b| n << 1 | (b & 1));
            let mut bytes: Vec<u8> = digits.rchunks(8).map(byte).collect();
            bytes.reverse();
            LiteralValue::Bit(bytes)
        }
    }
}

/// The digits of `0x…`, `x'…'`, `0b…`, `b'…'`.
fn based_digits(text: &[u8]) -> &[u8] {
    match text {
        [_, b'\'', digits @ .., b'\''] => digits,
        [_, _, digits @ ..] => digits,
        _ => &[],
    }
}

/// The bytes of a quoted string or name: quotes taken off, escapes resolved (MySQL 8.4 manual,
/// 11.1.1).
pub fn unquote(text: &[u8], modes: Modes) -> Cow<'_, [u8]> {
    let [quote, inner @ .., _] = text else {
        return Cow::Borrowed(&[]);
    };
    let escapes = *quote != b'`'
        && !modes.has(Modes::NO_BACKSLASH_ESCAPES)
        && !(*quote == b'"' && modes.has(Modes::ANSI_QUOTES));
    if !inner
        .iter()
        .any(|b| *b == *quote || (escapes && *b == b'\\'))
    {
        return Cow::Borrowed(inner);
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied();
    while let Some(b) = bytes.next() {
        if b == *quote {
            bytes.next();
            out.push(b);
        } else if b == b'\\' && escapes {
            match bytes.next() {
                Some(b'0') => out.push(0),
                Some(b'b') => out.push(8),
                Some(b'n') => out.push(b'\n'),
                Some(b'r') => out.push(b'\r'),
                Some(b't') => out.push(b'\t'),
                Some(b'Z') => out.push(26),
                // For LIKE, where they mean themselves.
                Some(b @ (b'%' | b'_')) => out.extend([b'\\', b]),
                Some(b) => out.push(b),
                None => out.push(b'\\'),
            }
        } else {
            out.push(b);
        }
    }
    Cow::Owned(out)
}

/// The name in a `Word`, `QuotedName` or `Variable` token; bytes that are no UTF-8 become U+FFFD.
pub fn name_text(kind: TokenKind, text: &[u8]) -> CompactString {
    let text = if kind == TokenKind::Variable {
        text.get(1..).unwrap_or(&[])
    } else {
        text
    };
    let bytes = match text.first() {
        // In names a doubled quote is the only escape.
        Some(b'`' | b'"' | b'\'') => unquote(text, Modes::NO_BACKSLASH_ESCAPES),
        _ => Cow::Borrowed(text),
    };
    match bytes {
        Cow::Borrowed(b) => CompactString::from_utf8_lossy(b),
        Cow::Owned(b) => CompactString::from_utf8_lossy(&b),
    }
}
