//! The key under which the statement cache finds a statement's plan, without parsing it.
//!
//! Applications send the same few texts over and over, with other literals. One pass of the
//! [lexer](crate::lexer) hashes the text with each literal replaced by its class, and notes where
//! the literals are:
//!
//! ```text
//! SELECT c FROM sbtest1 WHERE id=4711           shape = hash("SELECT c FROM sbtest1 WHERE id=" ⟨int⟩)
//!                                ^^^^ literal 0
//! ```
//!
//! The text is hashed as it stands: case, space and comments inside the statement count, so a
//! program that writes a statement in two ways has two entries. That costs an entry and buys
//! exactness: equal shapes are equal texts but for literals, and [`SourceMap`] can find any piece
//! of the cached statement in the current one. Comments and space before the first token and behind
//! the last are left out, and a final semicolon.
//!
//! **Not every literal is a parameter.** `ORDER BY 2`, `ROUND(x, 2)`, an alias in quotes or an
//! introduced string are part of what the statement is. Which ones those are, only the parser
//! knows. It says so in a [`ParamMask`] when it parses a digested statement; since it never decides
//! by a literal's value, the mask holds for every statement of that shape. The values of the other
//! literals go into the second key:
//!
//! 1. [`digest`] gives the [`Digest`] and fills the caller's [`Literals`].
//! 2. The cache looks up the shape, and finds the mask. (None: [`parse_digested`], keep the mask
//!    under the shape.)
//! 3. [`Digest::key`] joins shape and unmasked literals; under that key lies the plan. A mask that
//!    covers every literal, the usual case, makes the key the shape itself.
//! 4. The plan runs with literal *n* as the value of [`Expr::Param(n)`](crate::ast::Expr::Param);
//!    see [`LiteralToken::value`]. Numbers have gaps where literals are not parameters.
//!
//! So two statements of one key parse to one tree but for the values of the parameters, which agree
//! in number, order and class. Only `SELECT`, `INSERT`, `REPLACE`, `UPDATE`, `DELETE`, `WITH` and
//! `(` are digested, without placeholders and executable comments, one statement a text.
//!
//! **Names of columns.** `SELECT a+1` names its column `a+1`: the current text's, not the cached
//! one's. The select item's span, put through a [`SourceMap`], is the name. An item that is a lone
//! string parameter is named by its value.
//!
//! The hash is keyed anew in each process, so nobody can prepare texts that collide.

use crate::ast::{Span, Statement};
use crate::error::ParseError;
use crate::lexer::{Lexer, LiteralKind, LiteralValue, Modes, TokenKind, is_blank, literal_value};
use crate::parser::{self, Meter, Parsed};
use smallvec::SmallVec;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// Statements with more literals are not digested: parsing them costs little beside running them.
pub const LITERALS_MAX: usize = 4_096;

/// A literal of a digested statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiteralToken {
    /// Its class.
    pub kind: LiteralKind,
    /// Offset of its first byte.
    pub start: u32,
    /// Offset after its last byte.
    pub end: u32,
}

impl LiteralToken {
    /// The literal as written.
    pub fn text<'a>(&self, sql: &'a [u8]) -> &'a [u8] {
        Span {
            start: self.start,
            end: self.end,
        }
        .of(sql)
    }

    /// Whether it is a hexadecimal or bit literal of more than eight bytes, which is no number.
    fn is_long_number(&self, sql: &[u8]) -> bool {
        let most = match self.kind {
            LiteralKind::Hex => 16,
            LiteralKind::Bit => 64,
            _ => return false,
        };
        // 0x…, or x'…'.
        let marks = if self.text(sql).starts_with(b"0") {
            2
        } else {
            3
        };
        (self.end - self.start) as usize > most + marks
    }

    /// The literal's value; borrowed from the text, when it holds no escapes.
    pub fn value<'a>(&self, sql: &'a [u8], modes: Modes) -> LiteralValue<'a> {
        literal_value(self.kind, self.text(sql), modes)
    }
}

/// The literals of a statement, in order.
pub type Literals = SmallVec<[LiteralToken; 16]>;

/// What a statement looks like without its literals' values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest {
    /// The hash of the text without the literals' values, and of the modes.
    pub shape: u128,
    /// Where the statement begins, behind leading space and comments.
    pub start: u32,
}

impl Digest {
    /// The exact key: the shape, and the literals that are not parameters.
    pub fn key(&self, sql: &[u8], literals: &[LiteralToken], mask: &ParamMask) -> u128 {
        if mask.count() == literals.len() {
            return self.shape;
        }
        let mut hash = Hash::resume(self.shape);
        for (_, literal) in literals
            .iter()
            .enumerate()
            .filter(|(n, _)| !mask.has(*n as u32))
        {
            hash.update(literal.text(sql));
        }
        hash.finish()
    }
}

/// Which literals of a statement are parameters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParamMask {
    bits: SmallVec<[u64; 2]>,
}

impl ParamMask {
    /// Whether literal `n` is a parameter.
    pub fn has(&self, n: u32) -> bool {
        self.bits
            .get(n as usize / 64)
            .is_some_and(|word| word & (1 << (n % 64)) != 0)
    }

    /// How many are.
    pub fn count(&self) -> usize {
        self.bits
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    pub(crate) fn set(&mut self, n: u32) {
        let word = n as usize / 64;
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        self.bits[word] |= 1 << (n % 64);
    }

    pub(crate) fn clear(&mut self, n: u32) {
        if let Some(word) = self.bits.get_mut(n as usize / 64) {
            *word &= !(1 << (n % 64));
        }
    }
}

/// The digest of the only statement of `sql`, and its literals; `None` when the statement is not
/// for the cache.
///
/// ```
/// use porpoise_sql::{Literals, Modes, digest};
/// let (mut one, mut two) = (Literals::new(), Literals::new());
/// let a = digest(b"SELECT * FROM t WHERE id = 1", Modes::NONE, &mut one);
/// let b = digest(b"SELECT * FROM t WHERE id = 22", Modes::NONE, &mut two);
/// assert_eq!(a, b);
/// assert_eq!((one[0].start, one[0].end, two[0].end), (27, 28, 29));
/// assert_eq!(digest(b"DROP TABLE t", Modes::NONE, &mut one), None);
/// ```
pub fn digest(sql: &[u8], modes: Modes, literals: &mut Literals) -> Option<Digest> {
    literals.clear();
    let mut lexer = Lexer::new(sql, 0, modes);
    let first = lexer.next();
    let cached = match first.kind {
        TokenKind::LeftParen => true,
        TokenKind::Word => is_cached_kind(first.text(sql)),
        _ => false,
    };
    if !cached {
        return None;
    }
    let mut hash = Hash::new(modes);
    // The text between `hashed` and `end` is still to be hashed.
    let (mut hashed, mut end) = (first.start as usize, first.end as usize);
    loop {
        let token = lexer.next();
        match token.kind {
            TokenKind::Literal(kind) => {
                if literals.len() == LITERALS_MAX {
                    return None;
                }
                hash.update(sql.get(hashed..token.start as usize)?);
                let literal = LiteralToken {
                    kind,
                    start: token.start,
                    end: token.end,
                };
                hash.update_class(kind, literal.is_long_number(sql));
                literals.push(literal);
                hashed = token.end as usize;
            }
            TokenKind::End => break,
            // A comment behind it is a statement of its own.
            TokenKind::Semicolon if is_blank(sql, token.end as usize) => break,
            TokenKind::Semicolon => return None,
            TokenKind::Placeholder | TokenKind::Invalid => return None,
            _ => {}
        }
        end = token.end as usize;
    }
    if lexer.saw_executable_comment() {
        return None;
    }
    hash.update(sql.get(hashed..end.max(hashed))?);
    Some(Digest {
        shape: hash.finish(),
        start: first.start,
    })
}

fn is_cached_kind(word: &[u8]) -> bool {
    let words: &[&[u8]] = match word.len() {
        4 => &[b"WITH"],
        6 => &[b"SELECT", b"INSERT", b"UPDATE", b"DELETE"],
        7 => &[b"REPLACE"],
        _ => return false,
    };
    words.iter().any(|w| w.eq_ignore_ascii_case(word))
}

/// Parses the only statement of `sql`, which [`digest`] accepted. Literals that may be parameters
/// are [`Expr::Param`](crate::ast::Expr::Param), numbered as in [`Literals`]; the mask says which.
/// `None`: only space and comments.
pub fn parse_digested(sql: &[u8], modes: Modes) -> Result<Option<(Parsed, ParamMask)>, ParseError> {
    parse_digested_metered(sql, modes, &mut |_| true)
}

/// As [`parse_digested`], as long as the meter lets it.
pub fn parse_digested_metered(
    sql: &[u8],
    modes: Modes,
    meter: &mut Meter<'_>,
) -> Result<Option<(Parsed, ParamMask)>, ParseError> {
    parser::parse_digested(sql, modes, meter)
}

/// Finds pieces of a cached statement's text in another text of the same shape.
#[derive(Debug, Clone, Copy)]
pub struct SourceMap<'a> {
    /// The cached statement.
    pub from: (Digest, &'a [LiteralToken]),
    /// The current one.
    pub to: (Digest, &'a [LiteralToken]),
}

impl SourceMap<'_> {
    /// Where the piece at `span` of the cached statement is in the current one.
    pub fn map(&self, span: Span) -> Span {
        Span {
            start: self.position(span.start),
            end: self.position(span.end),
        }
    }

    /// Between literals the texts are the same: a position is as far behind the literal before it
    /// as ever.
    fn position(&self, at: u32) -> u32 {
        let (from, to) = (&self.from, &self.to);
        let before = from.1.partition_point(|literal| literal.end <= at);
        let (from_base, to_base) = match before.checked_sub(1) {
            Some(n) => (
                from.1.get(n).map_or(0, |l| l.end),
                to.1.get(n).map_or(0, |l| l.end),
            ),
            None => (from.0.start, to.0.start),
        };
        to_base + at.saturating_sub(from_base)
    }
}

// ---------------------------------------------------------------------------------------------------------
// The hash
// ---------------------------------------------------------------------------------------------------------

/// Two lanes of folded multiplication, keyed for the process.
struct Hash {
    a: u64,
    b: u64,
    keys: &'static [u64; 4],
}

static KEYS: LazyLock<[u64; 4]> = LazyLock::new(|| {
    let random = RandomState::new();
    [0u64, 1, 2, 3].map(|n| random.hash_one(n) | 1)
});

fn fold(x: u64, y: u64) -> u64 {
    let product = u128::from(x) * u128::from(y);
    product as u64 ^ (product >> 64) as u64
}

fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

impl Hash {
    fn new(modes: Modes) -> Hash {
        let keys = &*KEYS;
        Hash {
            a: keys[2] ^ u64::from(modes.bits()),
            b: keys[3],
            keys,
        }
    }

    fn resume(shape: u128) -> Hash {
        Hash {
            a: shape as u64,
            b: (shape >> 64) as u64,
            keys: &KEYS,
        }
    }

    fn mix(&mut self, x: u64, y: u64) {
        let (a, b) = (self.a, self.b);
        self.a = fold(a ^ x, self.keys[0] ^ y);
        self.b = fold(b ^ y, self.keys[1] ^ x.rotate_left(32)) ^ a;
    }

    fn update(&mut self, bytes: &[u8]) {
        let (blocks, rest) = bytes.as_chunks::<16>();
        for block in blocks {
            self.mix(word(&block[..8]), word(&block[8..]));
        }
        let mut last = [0; 16];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(word(&last[..8]), word(&last[8..]));
        self.mix(bytes.len() as u64, 1);
    }

    fn update_class(&mut self, kind: LiteralKind, is_long: bool) {
        let class = match kind {
            LiteralKind::Hex | LiteralKind::Bit if is_long => 6,
            LiteralKind::Int => 0,
            LiteralKind::BigInt => 1,
            LiteralKind::Double => 2,
            LiteralKind::String => 3,
            LiteralKind::Hex => 4,
            LiteralKind::Bit => 5,
            LiteralKind::Decimal { precision, scale } => {
                0x1_0000 | u64::from(precision) << 8 | u64::from(scale)
            }
        };
        self.mix(class, 2);
    }

    fn finish(mut self) -> u128 {
        self.mix(0, 3);
        self.mix(0, 4);
        u128::from(self.a) | u128::from(self.b) << 64
    }
}

// ---------------------------------------------------------------------------------------------------------
// The reported digest
// ---------------------------------------------------------------------------------------------------------

/// A statement as `performance_schema` reports it: literals are `?`, lists of them `...`, names
/// quoted, one space between tokens, keywords in upper case (MySQL 8.4 manual, 29.10).
///
/// Unlike the shape it doesn't depend on case, space or comments, and it is the same in every
/// process.
pub fn normalized_text(sql: &[u8], modes: Modes) -> String {
    let mut out: Vec<(TokenKind, String)> = Vec::new();
    let mut lexer = Lexer::new(sql, 0, modes);
    loop {
        let token = lexer.next();
        let text = match token.kind {
            TokenKind::End | TokenKind::Semicolon | TokenKind::Invalid => break,
            TokenKind::Literal(_) | TokenKind::NationalString | TokenKind::Placeholder => {
                "?".to_owned()
            }
            TokenKind::Word => {
                let keyword = crate::keyword::lookup(token.text(sql));
                match keyword.text() {
                    "NULL" => "?".to_owned(),
                    "" => quoted(token.kind, token.text(sql)),
                    text if keyword.is_reserved() => text.to_owned(),
                    // A name or a keyword: only the grammar could tell, so words of the language it
                    // is.
                    text => text.to_owned(),
                }
            }
            TokenKind::QuotedName => quoted(token.kind, token.text(sql)),
            _ => String::from_utf8_lossy(token.text(sql)).into_owned(),
        };
        let kind = if text == "?" {
            TokenKind::Placeholder
        } else {
            token.kind
        };
        out.push((kind, text));
        collapse(&mut out);
    }
    let words: Vec<&str> = out.iter().map(|(_, text)| text.as_str()).collect();
    words.join(" ")
}

/// The stable 128-bit hash of a [`normalized_text`].
pub fn normalized_hash(text: &str) -> u128 {
    // FNV-1a, 128 bits.
    text.bytes()
        .fold(0x6C62_272E_07BB_0142_62B8_2175_6295_C58D, |h: u128, b| {
            (h ^ u128::from(b)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013B)
        })
}

fn quoted(kind: TokenKind, text: &[u8]) -> String {
    format!(
        "`{}`",
        crate::lexer::name_text(kind, text).replace('`', "``")
    )
}

/// `?, ?` becomes `...`, `(...)`, `(...)` becomes `(...) /* , ... */`.
fn collapse(out: &mut Vec<(TokenKind, String)>) {
    use TokenKind::{Comma, LeftParen, Placeholder, RightParen};
    let kinds: SmallVec<[TokenKind; 8]> = out.iter().rev().take(7).map(|(kind, _)| *kind).collect();
    match kinds[..] {
        [Placeholder, Comma, Placeholder, ..] => {
            out.truncate(out.len() - 3);
            out.push((Placeholder, "...".to_owned()));
        }
        [
            RightParen,
            Placeholder,
            LeftParen,
            Comma,
            RightParen,
            Placeholder,
            LeftParen,
        ] => {
            let one = |out: &[(TokenKind, String)], back: usize| {
                out.len()
                    .checked_sub(back)
                    .and_then(|n| out.get(n))
                    .map(|(_, text)| text.clone())
            };
            if one(out, 2) == one(out, 6) {
                out.truncate(out.len() - 4);
                if let Some(last) = out.last_mut() {
                    last.1 = ") /* , ... */".to_owned();
                }
            }
        }
        _ => {}
    }
}

/// Whether a statement's plan may be cached at all: what [`digest`] accepts, as a tree.
pub fn is_cacheable(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)
    )
}
