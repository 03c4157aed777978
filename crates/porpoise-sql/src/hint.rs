//! Reads optimizer hints (MySQL 8.4 manual, 10.9.3).
//!
//! [`DEFINITIONS`] has a row a hint: its name, what it is about, and what stands between its
//! parentheses. What a comment holds is read up to the first thing that is no hint; the statement
//! runs all the same.
//!
//! ```text
//! /*+ QB_NAME(outer) JOIN_ORDER(a, b@inner) NO_ICP(@inner t idx1, idx2) SET_VAR(sort_buffer_size=1M) */
//! ```

use compact_str::CompactString;

use crate::Modes;
use crate::ast::{Hint, HintArguments, HintError, HintKind, HintTable, HintValue, Ident};

/// What stands between a hint's parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `[@block]`
    Block,
    /// `[@block] [table[@block], …]`
    Tables,
    /// `[@block] table[@block], …`
    SomeTables,
    /// `[@block] [table[@block] [index, …]]`, or several tables.
    Indexes,
    /// `[@block] [word, …]`, of these.
    Words(&'static [&'static str]),
    /// `[@block] word`, of these.
    Word(&'static [&'static str]),
    /// `name`
    Name,
    /// `milliseconds`
    Number,
    /// `variable = value`
    Assignment,
}

struct Definition {
    name: &'static str,
    kind: HintKind,
    is_on: bool,
    form: Form,
}

const fn hint(name: &'static str, kind: HintKind, form: Form) -> Definition {
    Definition {
        name,
        kind,
        is_on: true,
        form,
    }
}

const fn off(name: &'static str, kind: HintKind, form: Form) -> Definition {
    Definition {
        is_on: false,
        ..hint(name, kind, form)
    }
}

const SEMIJOINS: &[&str] = &["DUPSWEEDOUT", "FIRSTMATCH", "LOOSESCAN", "MATERIALIZATION"];
const SUBQUERIES: &[&str] = &["INTOEXISTS", "MATERIALIZATION"];

/// All hints, by name.
static DEFINITIONS: &[Definition] = {
    use Form::{Assignment, Block, Indexes, Name, Number, SomeTables, Tables, Word, Words};
    use HintKind as K;
    &[
        hint("BKA", K::BatchedKeyAccess, Tables),
        hint("BNL", K::BlockNestedLoop, Tables),
        hint(
            "DERIVED_CONDITION_PUSHDOWN",
            K::DerivedConditionPushdown,
            Tables,
        ),
        hint("GROUP_INDEX", K::GroupIndex, Indexes),
        hint("HASH_JOIN", K::HashJoin, Tables),
        hint("INDEX", K::Index, Indexes),
        hint("INDEX_MERGE", K::IndexMerge, Indexes),
        hint("JOIN_FIXED_ORDER", K::JoinFixedOrder, Block),
        hint("JOIN_INDEX", K::JoinIndex, Indexes),
        hint("JOIN_ORDER", K::JoinOrder, SomeTables),
        hint("JOIN_PREFIX", K::JoinPrefix, SomeTables),
        hint("JOIN_SUFFIX", K::JoinSuffix, SomeTables),
        hint("MAX_EXECUTION_TIME", K::MaxExecutionTime, Number),
        hint("MERGE", K::Merge, Tables),
        hint("MRR", K::MultiRangeRead, Indexes),
        off("NO_BKA", K::BatchedKeyAccess, Tables),
        off("NO_BNL", K::BlockNestedLoop, Tables),
        off(
            "NO_DERIVED_CONDITION_PUSHDOWN",
            K::DerivedConditionPushdown,
            Tables,
        ),
        off("NO_GROUP_INDEX", K::GroupIndex, Indexes),
        off("NO_HASH_JOIN", K::HashJoin, Tables),
        off("NO_ICP", K::IndexConditionPushdown, Indexes),
        off("NO_INDEX", K::Index, Indexes),
        off("NO_INDEX_MERGE", K::IndexMerge, Indexes),
        off("NO_JOIN_INDEX", K::JoinIndex, Indexes),
        off("NO_MERGE", K::Merge, Tables),
        off("NO_MRR", K::MultiRangeRead, Indexes),
        off("NO_ORDER_INDEX", K::OrderIndex, Indexes),
        off("NO_RANGE_OPTIMIZATION", K::RangeOptimization, Indexes),
        off("NO_SEMIJOIN", K::SemiJoin, Words(SEMIJOINS)),
        off("NO_SKIP_SCAN", K::SkipScan, Indexes),
        hint("ORDER_INDEX", K::OrderIndex, Indexes),
        hint("QB_NAME", K::QueryBlockName, Name),
        hint("RESOURCE_GROUP", K::ResourceGroup, Name),
        hint("SEMIJOIN", K::SemiJoin, Words(SEMIJOINS)),
        hint("SET_VAR", K::SetVariable, Assignment),
        hint("SKIP_SCAN", K::SkipScan, Indexes),
        hint("SUBQUERY", K::Subquery, Word(SUBQUERIES)),
    ]
};

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A word that is not quoted, a name in backticks or in double quotes.
    Name {
        text: CompactString,
        quoted: bool,
    },
    /// `@name`
    Block(CompactString),
    /// `'…'`
    Text(Box<str>),
    /// Digits, perhaps with a suffix, a sign or a decimal point.
    Number(CompactString),
    Sign(u8),
    End,
}

struct Reader<'a> {
    text: &'a [u8],
    /// Behind the current token.
    at: usize,
    /// Where the current token begins.
    start: usize,
    token: Token,
    /// Names of tables are read in lower case.
    lowers_names: bool,
}

/// What is between `/*+` and `*/`, which is `sql[from..to]`.
pub(crate) fn read(
    sql: &[u8],
    from: usize,
    to: usize,
    modes: Modes,
) -> (Vec<Hint>, Option<HintError>) {
    let mut reader = Reader {
        text: sql.get(..to).unwrap_or(sql),
        at: from,
        start: from,
        token: Token::End,
        lowers_names: modes.has(Modes::LOWER_CASE_NAMES),
    };
    reader.advance();
    let mut hints = Vec::new();
    while reader.token != Token::End {
        match reader.hint() {
            Some(hint) => hints.push(hint),
            None => return (hints, Some(error_at(sql, reader.start))),
        }
    }
    (hints, None)
}

/// The place where a hint was expected.
fn error_at(sql: &[u8], at: usize) -> HintError {
    /// How much of the rest of the statement a message shows.
    const NEAR_CHARS_MAX: usize = 80;
    let (before, rest) = sql.split_at(at.min(sql.len()));
    let lines = before.iter().filter(|byte| **byte == b'\n').count();
    let near: String = String::from_utf8_lossy(rest)
        .chars()
        .take(NEAR_CHARS_MAX)
        .collect();
    HintError {
        near: near.into(),
        line: lines as u32 + 1,
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

impl Reader<'_> {
    /// Goes to the next token. Where there is none, the sign 0 is.
    fn advance(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.start = self.at;
        self.token = match self.text.get(self.at) {
            None => Token::End,
            Some(b'@') => {
                self.at += 1;
                match self.name() {
                    Some((text, _)) => Token::Block(text),
                    None => Token::Sign(0),
                }
            }
            Some(b'\'') => self
                .quoted(b'\'')
                .map_or(Token::Sign(0), |text| Token::Text(text.into())),
            Some(byte) if byte.is_ascii_digit() || *byte == b'-' => Token::Number(self.number()),
            Some(byte) if is_word_byte(*byte) || matches!(byte, b'`' | b'"') => match self.name() {
                Some((text, quoted)) => Token::Name { text, quoted },
                None => Token::Sign(0),
            },
            Some(byte) => {
                self.at += 1;
                Token::Sign(*byte)
            }
        };
    }

    fn name(&mut self) -> Option<(CompactString, bool)> {
        match self.text.get(self.at)? {
            quote @ (b'`' | b'"') => self.quoted(*quote).map(|text| (text, true)),
            byte if is_word_byte(*byte) => Some((self.word(), false)),
            _ => None,
        }
    }

    fn word(&mut self) -> CompactString {
        let rest = &self.text[self.at..];
        let length = rest.iter().take_while(|byte| is_word_byte(**byte)).count();
        self.at += length;
        CompactString::from_utf8_lossy(&rest[..length])
    }

    fn number(&mut self) -> CompactString {
        let from = self.at;
        self.at += 1;
        while (self.text.get(self.at)).is_some_and(|byte| is_word_byte(*byte) || *byte == b'.') {
            self.at += 1;
        }
        CompactString::from_utf8_lossy(&self.text[from..self.at])
    }

    /// What is in quotes, which are doubled inside.
    fn quoted(&mut self, quote: u8) -> Option<CompactString> {
        let mut bytes = Vec::new();
        self.at += 1;
        loop {
            let byte = *self.text.get(self.at)?;
            self.at += 1;
            if byte == quote {
                if self.text.get(self.at) != Some(&quote) {
                    return (!bytes.is_empty() || quote == b'\'')
                        .then(|| CompactString::from_utf8_lossy(&bytes));
                }
                self.at += 1;
            }
            bytes.push(byte);
        }
    }

    fn take(&mut self, sign: u8) -> Option<()> {
        let is_it = self.token == Token::Sign(sign);
        if is_it {
            self.advance();
        }
        is_it.then_some(())
    }

    fn take_name(&mut self) -> Option<Ident> {
        let Token::Name { text, .. } = &self.token else {
            return None;
        };
        let name = Ident(text.clone());
        self.advance();
        Some(name)
    }

    fn take_block(&mut self) -> Option<Ident> {
        let Token::Block(text) = &self.token else {
            return None;
        };
        let name = Ident(text.clone());
        self.advance();
        Some(name)
    }

    /// `NAME(arguments)`; `None`: something else, at which the reader stays.
    fn hint(&mut self) -> Option<Hint> {
        let Token::Name {
            text,
            quoted: false,
        } = &self.token
        else {
            return None;
        };
        let mut all = DEFINITIONS.iter();
        let definition = all.find(|definition| definition.name.eq_ignore_ascii_case(text))?;
        self.advance();
        self.take(b'(')?;
        let block = match definition.form {
            Form::Name | Form::Number | Form::Assignment => None,
            _ => self.take_block(),
        };
        let arguments = self.arguments(definition.form)?;
        self.take(b')')?;
        Some(Hint {
            kind: definition.kind,
            is_on: definition.is_on,
            name: definition.name,
            block,
            arguments,
        })
    }

    fn arguments(&mut self, form: Form) -> Option<HintArguments> {
        let tables = |tables| HintArguments::Tables {
            tables,
            indexes: Vec::new(),
        };
        Some(match form {
            Form::Block => tables(Vec::new()),
            Form::Tables => tables(self.tables()?),
            Form::SomeTables => tables(self.tables().filter(|tables| !tables.is_empty())?),
            Form::Indexes => {
                let tables = self.tables()?;
                let mut indexes = Vec::new();
                if tables.len() == 1 && self.token != Token::Sign(b')') {
                    indexes.push(self.take_name()?);
                    while self.take(b',').is_some() {
                        indexes.push(self.take_name()?);
                    }
                }
                HintArguments::Tables { tables, indexes }
            }
            Form::Words(known) if self.token != Token::Sign(b')') => {
                let mut words = vec![self.word_of(known)?];
                while self.take(b',').is_some() {
                    words.push(self.word_of(known)?);
                }
                HintArguments::Words(words)
            }
            Form::Words(_) => HintArguments::Words(Vec::new()),
            Form::Word(known) => HintArguments::Words(vec![self.word_of(known)?]),
            Form::Name => HintArguments::Words(vec![self.take_name()?]),
            Form::Number => {
                let Token::Number(digits) = &self.token else {
                    return None;
                };
                let number = digits.parse().ok()?;
                self.advance();
                HintArguments::Number(number)
            }
            Form::Assignment => {
                let variable = self.take_name()?;
                self.take(b'=')?;
                let value = self.value()?;
                HintArguments::Assignment { variable, value }
            }
        })
    }

    fn tables(&mut self) -> Option<Vec<HintTable>> {
        let mut tables = Vec::new();
        while let Token::Name { .. } = self.token {
            let mut name = self.take_name()?;
            if self.lowers_names {
                name = Ident(name.0.to_lowercase());
            }
            let block = self.take_block();
            tables.push(HintTable { name, block });
            if self.token != Token::Sign(b',') {
                break;
            }
            self.advance();
            if !matches!(self.token, Token::Name { .. }) {
                return None;
            }
        }
        Some(tables)
    }

    fn word_of(&mut self, known: &[&'static str]) -> Option<Ident> {
        let Token::Name {
            text,
            quoted: false,
        } = &self.token
        else {
            return None;
        };
        let word = known.iter().find(|word| word.eq_ignore_ascii_case(text))?;
        self.advance();
        Some(Ident(CompactString::new(word)))
    }

    fn value(&mut self) -> Option<HintValue> {
        let value = match &self.token {
            Token::Name { text, .. } => HintValue::Text(text.as_str().into()),
            Token::Text(text) => HintValue::Text(text.clone()),
            Token::Number(text) => number_with_suffix(text)?,
            _ => return None,
        };
        self.advance();
        Some(value)
    }
}

/// `16M` is a number of bytes.
fn number_with_suffix(text: &str) -> Option<HintValue> {
    let (digits, shift) = match text.as_bytes().last()?.to_ascii_uppercase() {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    if let Ok(number) = digits.parse::<u64>() {
        return number.checked_mul(1 << shift).map(HintValue::Number);
    }
    text.parse::<f64>().ok()?;
    Some(HintValue::Real(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &str) -> (Vec<Hint>, Option<HintError>) {
        read(text.as_bytes(), 0, text.len(), Modes::NONE)
    }

    fn tables_of(hint: &Hint) -> (Vec<String>, Vec<&str>) {
        let HintArguments::Tables { tables, indexes } = &hint.arguments else {
            panic!("tables");
        };
        let name = |table: &HintTable| match &table.block {
            Some(block) => format!("{}@{}", table.name.as_str(), block.as_str()),
            None => table.name.as_str().to_string(),
        };
        let indexes = indexes.iter().map(Ident::as_str).collect();
        (tables.iter().map(name).collect(), indexes)
    }

    #[test]
    fn tables_indexes_and_blocks_are_told_apart() {
        let text = "bka(@q t1, `t 2`) NO_ICP(t1@q i1, i2) JOIN_ORDER(a,b@`select#2`) BNL() \
                    JOIN_FIXED_ORDER(@q)";
        let (hints, error) = read_all(text);
        assert_eq!(error, None);
        let names: Vec<&str> = hints.iter().map(|hint| hint.name).collect();
        assert_eq!(
            names,
            ["BKA", "NO_ICP", "JOIN_ORDER", "BNL", "JOIN_FIXED_ORDER"]
        );
        assert_eq!(hints[0].block, Some(Ident("q".into())));
        assert_eq!(
            tables_of(&hints[0]),
            (vec!["t1".into(), "t 2".into()], vec![])
        );
        assert_eq!(
            tables_of(&hints[1]),
            (vec!["t1@q".into()], vec!["i1", "i2"])
        );
        assert!(!hints[1].is_on);
        assert_eq!(
            tables_of(&hints[2]),
            (vec!["a".into(), "b@select#2".into()], vec![])
        );
    }

    #[test]
    fn values_of_variables_are_numbers_words_and_strings() {
        let text = "SET_VAR(a=16M) SET_VAR(b = OFF) SET_VAR(c='x''y') SET_VAR(d=1.5) SET_VAR(e=-1)";
        let (hints, error) = read_all(text);
        assert_eq!(error, None);
        let value = |hint: &Hint| match &hint.arguments {
            HintArguments::Assignment { value, .. } => value.clone(),
            other => panic!("{other:?}"),
        };
        let values: Vec<HintValue> = hints.iter().map(value).collect();
        assert_eq!(
            values,
            [
                HintValue::Number(16 << 20),
                HintValue::Text("OFF".into()),
                HintValue::Text("x'y".into()),
                HintValue::Real("1.5".into()),
                HintValue::Real("-1".into()),
            ]
        );
    }

    #[test]
    fn what_is_no_hint_ends_the_comment() {
        for (text, read, near) in [
            ("BNL(t) NOT_A_HINT(t) BKA(t)", 1, "NOT_A_HINT(t) BKA(t)"),
            ("JOIN_ORDER()", 0, ")"),
            ("BNL(t,)", 0, ")"),
            ("SEMIJOIN(FIRSTMATCH, SLOWLY)", 0, "SLOWLY)"),
            ("SUBQUERY()", 0, ")"),
            ("MAX_EXECUTION_TIME(x)", 0, "x)"),
            ("BNL(t", 0, ""),
            ("QB_NAME(``)", 0, "``)"),
        ] {
            let (hints, error) = read_all(text);
            assert_eq!(hints.len(), read, "{text}");
            let error = error.unwrap_or_else(|| panic!("{text}"));
            assert_eq!(&*error.near, near, "{text}");
        }
    }

    #[test]
    fn definitions_are_in_order() {
        let sorted = DEFINITIONS.is_sorted_by_key(|definition| definition.name);
        assert!(sorted);
    }
}
