//! The pattern language, ICU's (ICU User Guide, Regular Expressions), as a tree.
//!
//! What depends on flags is resolved here: `.`, `^` and `$` become sets and assertions that say
//! what they mean, and where case is ignored a letter becomes the set of its forms. Neither `\X`
//! nor `\N{name}` is known, which error 3690 says.

use std::str::Chars;

use porpoise_core::error::{Error, Result};
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange, HirKind};

/// How deep groups and sets may nest.
const NESTING_MAX: usize = 200;
/// The largest count of a repetition.
const REPETITIONS_MAX: u32 = 1 << 24;
/// How many elements a pattern may have: its program has an instruction for each, at least.
const ELEMENTS_MAX: usize = super::program::INSTRUCTIONS_MAX;
/// How many ranges of characters its sets may have together.
const RANGES_MAX: usize = 1 << 21;

/// What the match type and `(?flags)` say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Flags {
    /// `i`
    pub ignore_case: bool,
    /// `m`: `^` and `$` match at each line.
    pub multi_line: bool,
    /// `n`, within a pattern `s`: `.` matches line ends.
    pub dot_all: bool,
    /// `u`, within a pattern `d`: only a newline ends a line.
    pub unix_lines: bool,
    /// `x`: spaces and `#` comments in the pattern mean nothing.
    pub comments: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repetition {
    Greedy,
    Lazy,
    Possessive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assertion {
    StartOfText,
    EndOfText,
    /// The end, or before a line end that ends the text.
    BeforeFinalLineEnd {
        unix: bool,
    },
    StartOfLine {
        unix: bool,
    },
    EndOfLine {
        unix: bool,
    },
    WordBoundary,
    NotWordBoundary,
    /// Where the search began.
    StartOfSearch,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    Empty,
    Set(ClassUnicode),
    Concat(Vec<Node>),
    Alternate(Vec<Node>),
    Repeat {
        node: Box<Node>,
        min: u32,
        max: Option<u32>,
        kind: Repetition,
    },
    Capture(u32, Box<Node>),
    Atomic(Box<Node>),
    Look {
        behind: bool,
        negated: bool,
        node: Box<Node>,
    },
    BackReference {
        group: u32,
        ignore_case: bool,
    },
    Assert(Assertion),
}

/// A parsed pattern.
pub(super) struct Parsed {
    pub node: Node,
    /// How many groups capture.
    pub groups: u32,
    pub names: Vec<(String, u32)>,
    elements: usize,
    ranges: usize,
}

impl Parsed {
    /// The memory that it takes, about.
    pub fn bytes(&self) -> usize {
        self.elements * (size_of::<Node>() + size_of::<ClassUnicode>()) + self.ranges * 8
    }
}

pub(super) fn parse(pattern: &str, flags: Flags) -> Result<Parsed> {
    let mut parser = Parser {
        pattern,
        rest: pattern.chars(),
        flags,
        groups: 0,
        names: Vec::new(),
        references_max: 0,
        depth: 0,
        elements: 0,
        ranges: 0,
    };
    let node = parser.alternatives()?;
    if parser.peek().is_some() {
        return Err(Error::regexp_mismatched_parenthesis());
    }
    if parser.references_max > parser.groups {
        return Err(Error::regexp_invalid_back_reference());
    }
    Ok(Parsed {
        node,
        groups: parser.groups,
        names: parser.names,
        elements: parser.elements,
        ranges: parser.ranges,
    })
}

struct Parser<'p> {
    pattern: &'p str,
    rest: Chars<'p>,
    flags: Flags,
    groups: u32,
    names: Vec<(String, u32)>,
    references_max: u32,
    depth: usize,
    elements: usize,
    ranges: usize,
}

/// The set that a class or property of the pattern language stands for.
fn class_of(text: &str) -> Result<ClassUnicode> {
    let hir = regex_syntax::Parser::new()
        .parse(text)
        .map_err(|_| Error::regexp_illegal_argument())?;
    match hir.kind() {
        HirKind::Class(regex_syntax::hir::Class::Unicode(class)) => Ok(class.clone()),
        // A set of one character comes as a literal.
        HirKind::Literal(literal) => {
            let chars = std::str::from_utf8(&literal.0).unwrap_or_default().chars();
            Ok(set_of(chars.map(|c| (c, c))))
        }
        _ => Err(Error::regexp_illegal_argument()),
    }
}

/// Characters that belong to the one before them, such as accents.
pub(super) fn marks() -> ClassUnicode {
    class_of(r"\p{M}").unwrap_or_else(|_| ClassUnicode::empty())
}

fn set_of(ranges: impl IntoIterator<Item = (char, char)>) -> ClassUnicode {
    let range = |(low, high)| ClassUnicodeRange::new(low, high);
    ClassUnicode::new(ranges.into_iter().map(range))
}

fn negated(mut set: ClassUnicode) -> ClassUnicode {
    set.negate();
    set
}

/// What ends a line.
fn line_ends(unix: bool) -> ClassUnicode {
    match unix {
        true => set_of([('\n', '\n')]),
        false => set_of([('\n', '\r'), ('\u{85}', '\u{85}'), ('\u{2028}', '\u{2029}')]),
    }
}

/// The POSIX classes, with Unicode's properties.
fn posix_class(name: &str) -> Result<ClassUnicode> {
    let text = match name {
        "alpha" => r"\p{Alphabetic}",
        "lower" => r"\p{Lowercase}",
        "upper" => r"\p{Uppercase}",
        "digit" => r"\p{Nd}",
        "xdigit" => r"[\p{Nd}\p{Hex_Digit}]",
        "alnum" => r"[\p{Alphabetic}\p{Nd}]",
        "punct" => r"\p{P}",
        "space" => r"\p{White_Space}",
        "blank" => r"[\p{Zs}\t]",
        "cntrl" => r"\p{Cc}",
        "graph" => r"[^\p{White_Space}\p{Cc}\p{Cn}]",
        "print" => r"[[^\p{White_Space}\p{Cc}\p{Cn}]\p{Zs}]",
        "word" => r"\w",
        "ascii" => r"[\x00-\x7F]",
        name => return property(name),
    };
    class_of(text)
}

fn property(name: &str) -> Result<ClassUnicode> {
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ' ' | '-' | '=' | ':');
    match !name.is_empty() && name.chars().all(known) {
        true => class_of(&format!(r"\p{{{name}}}")),
        false => Err(Error::regexp_illegal_argument()),
    }
}

/// The set that a letter behind `\` stands for.
fn escaped_class(letter: char) -> Result<Option<ClassUnicode>> {
    let set = match letter.to_ascii_lowercase() {
        'd' => class_of(r"\p{Nd}")?,
        's' => class_of(r"\p{White_Space}")?,
        'w' => class_of(r"\w")?,
        'h' => class_of(r"[\t\p{Zs}]")?,
        'v' => line_ends(false),
        _ => return Ok(None),
    };
    Ok(Some(match letter.is_ascii_uppercase() {
        true => negated(set),
        false => set,
    }))
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.rest.next();
        }
        found
    }

    fn take_text(&mut self, wanted: &str) -> bool {
        match self.rest.as_str().strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest.chars();
                true
            }
            None => false,
        }
    }

    /// A syntax error where the parser is.
    fn syntax_error(&self) -> Error {
        let read = &self.pattern[..self.pattern.len() - self.rest.as_str().len()];
        let line = read.matches('\n').count() + 1;
        let column = read
            .rsplit('\n')
            .next()
            .map_or(0, |last| last.chars().count());
        Error::regexp_rule_syntax(line, column.max(1))
    }

    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        match self.depth > NESTING_MAX {
            true => Err(Error::regexp_too_big()),
            false => Ok(()),
        }
    }

    /// Passes over what means nothing in a pattern with comments.
    fn skip_comments(&mut self) {
        while self.flags.comments {
            match self.peek() {
                Some('#') => while self.rest.next().is_some_and(|c| c != '\n') {},
                Some(c) if c.is_whitespace() => {
                    self.rest.next();
                }
                _ => return,
            }
        }
    }

    /// Counts an element, as long as there may be more: a parsed pattern takes a hundred times what
    /// its text takes, and nobody has counted that as the statement's memory.
    fn count(&mut self, node: &Node) -> Result<()> {
        self.elements += 1;
        if let Node::Set(set) = node {
            self.ranges += set.ranges().len();
        }
        match self.elements > ELEMENTS_MAX || self.ranges > RANGES_MAX {
            true => Err(Error::regexp_too_big()),
            false => Ok(()),
        }
    }

    fn one_of(&self, mut set: ClassUnicode) -> Node {
        if self.flags.ignore_case {
            set.case_fold_simple();
        }
        Node::Set(set)
    }

    fn literal(&self, c: char) -> Node {
        self.one_of(set_of([(c, c)]))
    }

    fn alternatives(&mut self) -> Result<Node> {
        self.enter()?;
        let flags = self.flags;
        let mut arms = vec![self.sequence()?];
        while self.take('|') {
            self.count(&Node::Empty)?;
            arms.push(self.sequence()?);
        }
        self.flags = flags;
        self.depth -= 1;
        Ok(match arms.len() {
            1 => arms.remove(0),
            _ => Node::Alternate(arms),
        })
    }

    fn sequence(&mut self) -> Result<Node> {
        let mut nodes = Vec::new();
        loop {
            self.skip_comments();
            if matches!(self.peek(), None | Some('|' | ')')) {
                break;
            }
            if self.take_text("\\Q") {
                self.quoted(&mut nodes)?;
                continue;
            }
            let Some(node) = self.term()? else {
                continue;
            };
            self.count(&node)?;
            let node = self.repeated(node)?;
            nodes.push(node);
        }
        Ok(match nodes.len() {
            0 => Node::Empty,
            1 => nodes.remove(0),
            _ => Node::Concat(nodes),
        })
    }

    /// `\Q…\E`: as it stands. A repetition behind it is of its last character.
    fn quoted(&mut self, nodes: &mut Vec<Node>) -> Result<()> {
        while !self.take_text("\\E") {
            let Some(c) = self.rest.next() else {
                return Ok(());
            };
            let node = self.literal(c);
            self.count(&node)?;
            nodes.push(node);
        }
        if let Some(last) = nodes.pop() {
            let last = self.repeated(last)?;
            nodes.push(last);
        }
        Ok(())
    }

    /// One element; `None` for what matches nothing by itself, such as flags.
    fn term(&mut self) -> Result<Option<Node>> {
        let Some(c) = self.rest.next() else {
            return Ok(None);
        };
        let unix = self.flags.unix_lines;
        Ok(Some(match c {
            '(' => return self.group(),
            '[' => {
                let set = self.set()?;
                self.one_of(set)
            }
            '.' if self.flags.dot_all => Node::Set(set_of([('\0', char::MAX)])),
            '.' => Node::Set(negated(line_ends(unix))),
            '^' if self.flags.multi_line => Node::Assert(Assertion::StartOfLine { unix }),
            '^' => Node::Assert(Assertion::StartOfText),
            '$' if self.flags.multi_line => Node::Assert(Assertion::EndOfLine { unix }),
            '$' => Node::Assert(Assertion::BeforeFinalLineEnd { unix }),
            '\\' => self.escape()?,
            '*' | '+' | '?' | '{' | '}' => return Err(self.syntax_error()),
            c => self.literal(c),
        }))
    }

    /// The node with the repetition that follows it, if one does.
    fn repeated(&mut self, node: Node) -> Result<Node> {
        self.skip_comments();
        let (min, max) = match self.peek() {
            _ if matches!(node, Node::Assert(_)) => return Ok(node),
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                self.rest.next();
                self.interval()?
            }
            _ => return Ok(node),
        };
        // The sign, or the brace that ends the interval.
        self.rest.next();
        let kind = match self.peek() {
            Some('?') => Repetition::Lazy,
            Some('+') => Repetition::Possessive,
            _ => Repetition::Greedy,
        };
        if kind != Repetition::Greedy {
            self.rest.next();
        }
        Ok(Node::Repeat {
            node: Box::new(node),
            min,
            max,
            kind,
        })
    }

    /// `min`, `min,` or `min,max`, up to the brace that follows.
    fn interval(&mut self) -> Result<(u32, Option<u32>)> {
        let min = self.number()?;
        let max = match self.take(',') {
            false => Some(min),
            true if self.peek() == Some('}') => None,
            true => Some(self.number()?),
        };
        if self.peek() != Some('}') {
            return Err(Error::regexp_bad_interval());
        }
        match max {
            Some(max) if max < min => Err(Error::regexp_interval_max_below_min()),
            max => Ok((min, max)),
        }
    }

    fn number(&mut self) -> Result<u32> {
        let mut number = None;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            self.rest.next();
            let value = number.unwrap_or(0u32) * 10 + digit;
            if value > REPETITIONS_MAX {
                return Err(Error::regexp_too_big());
            }
            number = Some(value);
        }
        number.ok_or_else(Error::regexp_bad_interval)
    }

    /// What follows `(`.
    fn group(&mut self) -> Result<Option<Node>> {
        let look = |behind, negated| {
            move |node| Node::Look {
                behind,
                negated,
                node: Box::new(node),
            }
        };
        if !self.take('?') {
            let number = self.next_group();
            return self.rest_of_group(|node| Node::Capture(number, Box::new(node)));
        }
        match self.rest.next() {
            Some(':') => self.rest_of_group(|node| node),
            Some('>') => self.rest_of_group(|node| Node::Atomic(Box::new(node))),
            Some('=') => self.rest_of_group(look(false, false)),
            Some('!') => self.rest_of_group(look(false, true)),
            Some('#') => loop {
                match self.rest.next() {
                    None => return Err(Error::regexp_mismatched_parenthesis()),
                    Some(')') => return Ok(None),
                    Some(_) => {}
                }
            },
            Some('<') => match self.peek() {
                Some('=') => {
                    self.rest.next();
                    self.rest_of_group(look(true, false))
                }
                Some('!') => {
                    self.rest.next();
                    self.rest_of_group(look(true, true))
                }
                _ => {
                    let name = self.name()?;
                    if self.names.iter().any(|(known, _)| *known == name) {
                        return Err(Error::regexp_group_name());
                    }
                    let number = self.next_group();
                    self.names.push((name, number));
                    self.rest_of_group(|node| Node::Capture(number, Box::new(node)))
                }
            },
            Some(c) => self.flags_of_group(c),
            None => Err(Error::regexp_mismatched_parenthesis()),
        }
    }

    fn next_group(&mut self) -> u32 {
        self.groups += 1;
        self.groups
    }

    fn rest_of_group(&mut self, make: impl FnOnce(Node) -> Node) -> Result<Option<Node>> {
        let node = self.alternatives()?;
        match self.take(')') {
            true => Ok(Some(make(node))),
            false => Err(Error::regexp_mismatched_parenthesis()),
        }
    }

    /// A group's name, with the `>` behind it.
    fn name(&mut self) -> Result<String> {
        let mut name = String::new();
        loop {
            match self.rest.next() {
                Some('>') if !name.is_empty() => return Ok(name),
                Some(c) if c.is_ascii_alphabetic() => name.push(c),
                Some(c) if c.is_ascii_digit() && !name.is_empty() => name.push(c),
                _ => return Err(Error::regexp_group_name()),
            }
        }
    }

    /// `(?flags)`, to the end of the group around it, or `(?flags:…)`.
    fn flags_of_group(&mut self, first: char) -> Result<Option<Node>> {
        let outer = self.flags;
        let (mut letter, mut on) = (Some(first), true);
        loop {
            match letter {
                Some('i') => self.flags.ignore_case = on,
                Some('m') => self.flags.multi_line = on,
                Some('s') => self.flags.dot_all = on,
                Some('d') => self.flags.unix_lines = on,
                Some('x') => self.flags.comments = on,
                Some('w') => return Err(Error::regexp_unimplemented("(?w)")),
                Some('-') if on => on = false,
                Some(')') => return Ok(None),
                Some(':') => {
                    let node = self.rest_of_group(|node| node)?;
                    self.flags = outer;
                    return Ok(node);
                }
                Some(_) => return Err(self.syntax_error()),
                None => return Err(Error::regexp_mismatched_parenthesis()),
            }
            letter = self.rest.next();
        }
    }

    /// What follows `\`, outside of a set.
    fn escape(&mut self) -> Result<Node> {
        let Some(c) = self.peek() else {
            return Err(Error::regexp_bad_escape());
        };
        let unix = self.flags.unix_lines;
        let assertion = match c {
            'A' => Some(Assertion::StartOfText),
            'z' => Some(Assertion::EndOfText),
            'Z' => Some(Assertion::BeforeFinalLineEnd { unix }),
            'b' => Some(Assertion::WordBoundary),
            'B' => Some(Assertion::NotWordBoundary),
            'G' => Some(Assertion::StartOfSearch),
            _ => None,
        };
        if let Some(assertion) = assertion {
            self.rest.next();
            return Ok(Node::Assert(assertion));
        }
        match c {
            '1'..='9' => Ok(self.numbered_reference()),
            'k' => {
                self.rest.next();
                if !self.take('<') {
                    return Err(Error::regexp_bad_escape());
                }
                let name = self.name()?;
                let known = self.names.iter().find(|(known, _)| *known == name);
                let group = known.ok_or_else(Error::regexp_invalid_back_reference)?.1;
                Ok(self.reference(group))
            }
            'R' => {
                self.rest.next();
                let pair = Node::Concat(vec![
                    Node::Set(set_of([('\r', '\r')])),
                    Node::Set(set_of([('\n', '\n')])),
                ]);
                let ends = Node::Set(line_ends(false));
                Ok(Node::Atomic(Box::new(Node::Alternate(vec![pair, ends]))))
            }
            'X' => Err(Error::regexp_unimplemented("\\X")),
            _ => {
                let set = self.escaped_set()?;
                Ok(self.one_of(set))
            }
        }
    }

    fn reference(&self, group: u32) -> Node {
        Node::BackReference {
            group,
            ignore_case: self.flags.ignore_case,
        }
    }

    /// `\12` is group 12 where that many have been opened, and else group 1 before a 2.
    fn numbered_reference(&mut self) -> Node {
        let mut group = 0;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            let longer = group * 10 + digit;
            if group > 0 && longer > self.groups {
                break;
            }
            group = longer;
            self.rest.next();
        }
        self.references_max = self.references_max.max(group);
        self.reference(group)
    }

    /// What follows `\` and is one character, or any of a set.
    fn escaped_set(&mut self) -> Result<ClassUnicode> {
        let c = self.rest.next().ok_or_else(Error::regexp_bad_escape)?;
        if let Some(set) = escaped_class(c)? {
            return Ok(set);
        }
        let one = match c {
            'a' => '\u{7}',
            'e' => '\u{1b}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'c' => match self.rest.next() {
                Some(c) if c.is_ascii() => char::from(c as u8 & 0x1F),
                _ => return Err(Error::regexp_bad_escape()),
            },
            '0' => self.code(8, 1, 3)?,
            'u' => self.code(16, 4, 4)?,
            'U' => self.code(16, 8, 8)?,
            'x' if self.take('{') => {
                let c = self.code(16, 1, 6)?;
                match self.take('}') {
                    true => c,
                    false => return Err(Error::regexp_bad_escape()),
                }
            }
            'x' => self.code(16, 1, 2)?,
            'p' | 'P' => {
                let set = self.braced_property()?;
                return Ok(match c {
                    'P' => negated(set),
                    _ => set,
                });
            }
            'N' => return Err(Error::regexp_unimplemented("\\N{name}")),
            c if c.is_ascii_alphanumeric() => return Err(Error::regexp_bad_escape()),
            c => c,
        };
        Ok(set_of([(one, one)]))
    }

    /// A character by its number.
    fn code(&mut self, radix: u32, least: usize, most: usize) -> Result<char> {
        let (mut code, mut digits) = (0, 0);
        while digits < most
            && let Some(digit) = self.peek().and_then(|c| c.to_digit(radix))
        {
            self.rest.next();
            code = code * radix + digit;
            digits += 1;
        }
        match char::from_u32(code) {
            Some(c) if digits >= least => Ok(c),
            _ => Err(Error::regexp_bad_escape()),
        }
    }

    fn braced_property(&mut self) -> Result<ClassUnicode> {
        if !self.take('{') {
            return Err(Error::regexp_illegal_argument());
        }
        let is_negated = self.take('^');
        let rest = self.rest.as_str();
        let end = rest.find('}').ok_or_else(Error::regexp_illegal_argument)?;
        let set = property(&rest[..end])?;
        self.rest = rest[end + 1..].chars();
        Ok(match is_negated {
            true => negated(set),
            false => set,
        })
    }

    /// What follows `[`, with the `]` that ends it. Elements add up; `&&` and `--` apply to all
    /// before them and the operand behind them.
    fn set(&mut self) -> Result<ClassUnicode> {
        self.enter()?;
        let is_negated = self.take('^');
        let mut set = set_of([]);
        let mut first = true;
        loop {
            if self.rest.as_str().is_empty() {
                return Err(Error::regexp_unclosed_bracket());
            }
            if !first && self.take(']') {
                break;
            }
            if !first && self.take_text("&&") {
                let operand = self.operand()?;
                set.intersect(&operand);
            } else if !first && self.take_text("--") {
                let operand = self.operand()?;
                set.difference(&operand);
            } else {
                let element = self.element()?;
                set.union(&element);
            }
            first = false;
        }
        self.depth -= 1;
        if self.flags.ignore_case {
            set.case_fold_simple();
        }
        Ok(match is_negated {
            true => negated(set),
            false => set,
        })
    }

    /// What stands behind an operator: the elements up to the next operator or the end.
    fn operand(&mut self) -> Result<ClassUnicode> {
        let mut set = self.element()?;
        loop {
            let rest = self.rest.as_str();
            if rest.is_empty() {
                return Err(Error::regexp_unclosed_bracket());
            }
            if rest.starts_with(']') || rest.starts_with("&&") || rest.starts_with("--") {
                return Ok(set);
            }
            let element = self.element()?;
            set.union(&element);
        }
    }

    fn element(&mut self) -> Result<ClassUnicode> {
        if self.take_text("[:") {
            return self.posix();
        }
        if self.take('[') {
            return self.set();
        }
        let low = self.set_item()?;
        let rest = self.rest.as_str();
        let is_range = rest.starts_with('-')
            && !rest.starts_with("--")
            && !rest.starts_with("-]")
            && !rest.starts_with("-[");
        let ([one], true) = (low.ranges(), is_range) else {
            return Ok(low);
        };
        if one.start() != one.end() {
            return Ok(low);
        }
        self.rest.next();
        let high = self.set_item()?;
        match high.ranges() {
            [high] if high.start() == high.end() => match one.start() <= high.start() {
                true => Ok(set_of([(one.start(), high.start())])),
                false => Err(Error::regexp_invalid_range()),
            },
            _ => Err(Error::regexp_invalid_range()),
        }
    }

    /// A character of a set, or what `\` makes one of.
    fn set_item(&mut self) -> Result<ClassUnicode> {
        match self.rest.next() {
            None => Err(Error::regexp_unclosed_bracket()),
            Some('\\') if self.take('b') => Ok(set_of([('\u{8}', '\u{8}')])),
            Some('\\') => self.escaped_set(),
            Some(c) => Ok(set_of([(c, c)])),
        }
    }

    fn posix(&mut self) -> Result<ClassUnicode> {
        let rest = self.rest.as_str();
        let end = rest.find(":]").ok_or_else(Error::regexp_unclosed_bracket)?;
        let name = &rest[..end];
        self.rest = rest[end + 2..].chars();
        match name.strip_prefix('^') {
            Some(name) => Ok(negated(posix_class(name)?)),
            None => posix_class(name),
        }
    }
}
