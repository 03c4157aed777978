//! REGEXP_LIKE and its family (MySQL 8.4 manual, 14.8.2), in the language of ICU.
//!
//! ```text
//! pattern ─► syntax ─► linear      no look-around, no back references: time linear in the text
//!                 └──► program ─► backtrack    all else, within regexp_time_limit and _stack_limit
//! ```
//!
//! Both find the same match: the first, and of those that begin there the one that comes first when
//! alternatives are tried in order. Either can be ended at any time. Case follows the collation
//! unless the match type says otherwise.

mod backtrack;
mod linear;
mod program;
mod syntax;

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use hashbrown::HashMap;
use porpoise_core::error::{Error, Result};
use porpoise_expr::function::Call;
use porpoise_types::{Value, convert};

use self::backtrack::{Limits, Matcher};
use self::linear::{Found, Linear};
use self::program::{NOWHERE, Program};
use self::syntax::{Flags, Parsed};
use crate::string::{bytes, string};

/// How many compiled patterns a thread keeps.
const COMPILED_MAX: usize = 64;
/// How many bytes they take, about; the last one is kept in any case, for the next row.
const COMPILED_BYTES_MAX: usize = 8 << 20;

thread_local! {
    static COMPILED: RefCell<Compiled> = RefCell::default();
}

/// Patterns that a thread keeps.
#[derive(Default)]
struct Compiled {
    patterns: HashMap<(Flags, Box<str>), Rc<Pattern>>,
    bytes: usize,
}

impl Compiled {
    fn keep(&mut self, key: (Flags, Box<str>), pattern: Rc<Pattern>) {
        let bytes = key.1.len() + pattern.parsed.bytes();
        if self.patterns.len() >= COMPILED_MAX || self.bytes + bytes > COMPILED_BYTES_MAX {
            *self = Compiled::default();
        }
        self.bytes += bytes;
        self.patterns.insert(key, pattern);
    }
}

fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Text(text) => Cow::Borrowed(text),
        value => String::from_utf8_lossy(bytes(value)),
    }
}

/// Looks whether the statement is to end.
type Look<'a> = &'a dyn Fn() -> Result<()>;

/// A compiled pattern.
struct Pattern {
    parsed: Parsed,
    linear: Option<Linear>,
    program: OnceCell<Program>,
}

impl Pattern {
    fn new(pattern: &str, flags: Flags) -> Result<Pattern> {
        let parsed = syntax::parse(pattern, flags)?;
        let pattern = Pattern {
            linear: Linear::new(&parsed.node),
            parsed,
            program: OnceCell::new(),
        };
        if pattern.linear.is_none() {
            pattern.program()?;
        }
        Ok(pattern)
    }

    fn program(&self) -> Result<&Program> {
        if let Some(program) = self.program.get() {
            return Ok(program);
        }
        let program = Program::new(&self.parsed)?;
        Ok(self.program.get_or_init(|| program))
    }
}

/// Searches in one text.
struct Search<'a> {
    pattern: &'a Pattern,
    linear: Option<&'a Linear>,
    text: &'a str,
    limits: Limits,
    look: Look<'a>,
    matcher: Option<Matcher<'a>>,
}

/// A match, from byte to byte, and its groups from the first on.
struct Match {
    start: usize,
    end: usize,
    groups: Vec<Option<(usize, usize)>>,
}

impl<'a> Search<'a> {
    fn new(pattern: &'a Pattern, text: &'a str, limits: Limits, look: Look<'a>) -> Search<'a> {
        let ends_plainly = || {
            !text.ends_with([
                '\n', '\u{b}', '\u{c}', '\r', '\u{85}', '\u{2028}', '\u{2029}',
            ])
        };
        let linear = pattern.linear.as_ref();
        Search {
            pattern,
            linear: linear.filter(|linear| !linear.wants_plain_end || ends_plainly()),
            text,
            limits,
            look,
            matcher: None,
        }
    }

    fn matcher(&mut self) -> Result<&mut Matcher<'a>> {
        if self.matcher.is_none() {
            let program = self.pattern.program()?;
            self.matcher = Some(Matcher::new(program, self.text, self.limits, self.look));
        }
        self.matcher
            .as_mut()
            .ok_or_else(|| Error::engine_error("a matcher was just made"))
    }

    fn is_match(&mut self) -> Result<bool> {
        match self.linear {
            Some(linear) if linear.is_quick(self.text.len()) => Ok(linear.is_match(self.text, 0)),
            _ => Ok(self.find(0, false)?.is_some()),
        }
    }

    /// The first match that begins at `from` or behind.
    fn find(&mut self, from: usize, with_groups: bool) -> Result<Option<Match>> {
        (self.look)()?;
        let with_groups = with_groups && self.pattern.parsed.groups > 0;
        let of = |(start, end)| Match {
            start,
            end,
            groups: Vec::new(),
        };
        let Some(linear) = self.linear else {
            return self.backtrack(from);
        };
        if linear.is_quick(self.text.len() - from) {
            if !with_groups {
                return Ok(linear.find(self.text, from).map(of));
            }
            return Ok(linear.captures(self.text, from).map(|mut groups| Match {
                groups: groups.split_off(1),
                ..of(groups[0].unwrap_or_default())
            }));
        }
        match linear.walk(self.text, from, self.look)? {
            Found::GaveUp => self.backtrack(from),
            Found::Span(None) => Ok(None),
            // The match that begins there is the one that the other matcher finds first.
            Found::Span(Some((start, _))) if with_groups => self.backtrack(start),
            Found::Span(Some(span)) => Ok(Some(of(span))),
        }
    }

    fn backtrack(&mut self, from: usize) -> Result<Option<Match>> {
        let found = self.matcher()?.find(from)?;
        Ok(found.map(|groups| {
            let span = |pair: &[usize; 2]| {
                let is_set = pair[0] != NOWHERE && pair[1] != NOWHERE;
                is_set.then_some((pair[0], pair[1]))
            };
            Match {
                start: groups[0],
                end: groups[1],
                groups: groups[2..].as_chunks().0.iter().map(span).collect(),
            }
        }))
    }

    /// Where to look for the next match: behind this one, and never in the same place twice.
    fn behind(&self, found: &Match) -> Option<usize> {
        if found.end > found.start {
            return Some(found.end);
        }
        let next = self.text[found.end..].chars().next()?;
        Some(found.end + next.len_utf8())
    }

    /// The match of a number, from 1 on.
    fn nth(&mut self, from: usize, number: usize) -> Result<Option<Match>> {
        let mut from = Some(from);
        for left in (0..number).rev() {
            let Some(start) = from else {
                return Ok(None);
            };
            let Some(found) = self.find(start, false)? else {
                return Ok(None);
            };
            if left == 0 {
                return Ok(Some(found));
            }
            from = self.behind(&found);
        }
        Ok(None)
    }
}

fn compile(call: &Call<'_>, pattern: &Value, match_type: Option<&Value>) -> Result<Rc<Pattern>> {
    let pattern = text(pattern);
    if pattern.is_empty() {
        return Err(Error::regexp_illegal_argument());
    }
    let collations = || call.arguments.iter().take(2).map(|argument| &argument.ty);
    let mut flags = Flags {
        ignore_case: !collations().any(|ty| {
            ty.is_binary_string()
                || ty.collation().name().ends_with("_bin")
                || ty.collation().name().ends_with("_cs")
        }),
        ..Flags::default()
    };
    for flag in match_type.map(text).unwrap_or_default().chars() {
        match flag {
            'c' => flags.ignore_case = false,
            'i' => flags.ignore_case = true,
            'm' => flags.multi_line = true,
            'n' => flags.dot_all = true,
            'u' => flags.unix_lines = true,
            _ => return Err(Error::wrong_arguments("regexp_like")),
        }
    }
    let key = (flags, Box::from(pattern));
    if let Some(known) = COMPILED.with_borrow(|compiled| compiled.patterns.get(&key).cloned()) {
        return Ok(known);
    }
    let pattern = Rc::new(Pattern::new(&key.1, flags)?);
    COMPILED.with_borrow_mut(|compiled| compiled.keep(key, Rc::clone(&pattern)));
    Ok(pattern)
}

fn limits(call: &Call<'_>) -> Limits {
    let (steps, stack_bytes) = call.context.vars().regexp_limits.get();
    Limits { steps, stack_bytes }
}

/// The byte offset of a position (1 is the first character).
fn start(source: &str, position: Option<&Value>) -> Result<usize> {
    let position = position.map_or(1, |position| convert::to_int(position).0);
    let before = usize::try_from(position - 1).map_err(|_| Error::regexp_index_out_of_bounds())?;
    if source.is_ascii() && before <= source.len() {
        return Ok(before);
    }
    let mut starts = source.char_indices().map(|(start, _)| start);
    let ends = [source.len()];
    starts
        .by_ref()
        .chain(ends)
        .nth(before)
        .ok_or_else(Error::regexp_index_out_of_bounds)
}

fn occurrence(value: Option<&Value>) -> usize {
    value.map_or(1, |value| convert::to_int(value).0).max(1) as usize
}

pub(super) fn like(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let pattern = compile(call, &values[1], values.get(2))?;
    let source = text(&values[0]);
    let look = || call.context.check_interrupt();
    let found = Search::new(&pattern, &source, limits(call), &look).is_match()?;
    Ok(Value::Int(found.into()))
}

pub(super) fn instr(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let pattern = compile(call, &values[1], values.get(5))?;
    let source = text(&values[0]);
    let from = start(&source, values.get(2))?;
    let look = || call.context.check_interrupt();
    let mut search = Search::new(&pattern, &source, limits(call), &look);
    let found = search.nth(from, occurrence(values.get(3)))?;
    let wants_end = values
        .get(4)
        .is_some_and(|option| convert::to_int(option).0 == 1);
    Ok(Value::Int(found.map_or(0, |found| {
        let offset = if wants_end { found.end } else { found.start };
        source[..offset].chars().count() as i64 + 1
    })))
}

pub(super) fn substr(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let pattern = compile(call, &values[1], values.get(4))?;
    let source = text(&values[0]);
    let from = start(&source, values.get(2))?;
    let look = || call.context.check_interrupt();
    let mut search = Search::new(&pattern, &source, limits(call), &look);
    let found = search.nth(from, occurrence(values.get(3)))?;
    Ok(found.map_or(Value::Null, |found| {
        string(call, source[found.start..found.end].into())
    }))
}

pub(super) fn replace(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let pattern = compile(call, &values[1], values.get(5))?;
    let (source, with) = (text(&values[0]), text(&values[2]));
    let from = start(&source, values.get(3))?;
    // 0 replaces all.
    let which = values
        .get(4)
        .map_or(0, |value| convert::to_int(value).0)
        .max(0) as usize;
    let with_groups = with.contains('$');
    let packet_max = call.context.vars().max_allowed_packet;
    let mut out = String::new();
    let (mut copied, mut number, mut next) = (0, 0, Some(from));
    let look = || call.context.check_interrupt();
    let mut search = Search::new(&pattern, &source, limits(call), &look);
    while let Some(from) = next
        && let Some(found) = search.find(from, with_groups)?
    {
        number += 1;
        next = search.behind(&found);
        if which != 0 && number != which {
            continue;
        }
        out.push_str(&source[copied..found.start]);
        expand(&pattern.parsed, &source, &found, &with, &mut out)?;
        copied = found.end;
        if number == which || out.len() as u64 > packet_max {
            break;
        }
    }
    if call.is_too_long(out.len()) {
        return Ok(Value::Null);
    }
    out.push_str(&source[copied..]);
    Ok(string(call, out.into_bytes()))
}

/// Appends the replacement of a match: `$1` and `${name}` are groups, `\` takes the next character
/// as it is.
fn expand(
    parsed: &Parsed,
    source: &str,
    found: &Match,
    with: &str,
    out: &mut String,
) -> Result<()> {
    let mut rest = with;
    while let Some(at) = rest.find(['$', '\\']) {
        out.push_str(&rest[..at]);
        let is_group = rest[at..].starts_with('$');
        rest = &rest[at + 1..];
        if !is_group {
            if let Some(next) = rest.chars().next() {
                out.push(next);
                rest = &rest[next.len_utf8()..];
            }
            continue;
        }
        let (group, behind) = group_of(parsed, rest)?;
        rest = behind;
        let span = match group.checked_sub(1) {
            None => Some((found.start, found.end)),
            Some(group) => found.groups.get(group as usize).copied().flatten(),
        };
        if let Some((start, end)) = span {
            out.push_str(&source[start..end]);
        }
    }
    out.push_str(rest);
    Ok(())
}

/// The group that a `$` is followed by, and what is behind it.
fn group_of<'w>(parsed: &Parsed, rest: &'w str) -> Result<(u32, &'w str)> {
    if let Some(named) = rest.strip_prefix('{') {
        let (name, behind) = named.split_once('}').ok_or_else(Error::regexp_group_name)?;
        let known = parsed.names.iter().find(|(known, _)| known == name);
        let (_, group) = known.ok_or_else(Error::regexp_group_name)?;
        return Ok((*group, behind));
    }
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Err(Error::regexp_group_name());
    }
    // As many digits as name a group that there is.
    for len in (1..=digits.min(9)).rev() {
        if let Ok(group) = rest[..len].parse()
            && group <= parsed.groups
        {
            return Ok((group, &rest[len..]));
        }
    }
    Err(Error::regexp_index_out_of_bounds())
}

#[cfg(test)]
mod tests;
