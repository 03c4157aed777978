//! REGEXP_LIKE and its family (MySQL 8.4 manual, 14.8.2), on the `regex` crate.
//!
//! The crate's language is ICU's without look-around and back references, which it refuses: the
//! error is MySQL's 3690. Case follows the collation unless the match type says otherwise.

use std::cell::RefCell;

use hashbrown::HashMap;
use porpoise_core::error::{Error, Result};
use porpoise_expr::function::Call;
use porpoise_types::{Value, convert};
use regex::{Regex, RegexBuilder};

use crate::string::{Units, bytes};

/// How many compiled patterns a thread keeps.
const COMPILED_MAX: usize = 64;

thread_local! {
    static COMPILED: RefCell<HashMap<(String, bool, bool, bool), Regex>> = RefCell::default();
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(bytes(value)).into_owned()
}

/// Why a pattern can't be compiled, as MySQL tells it; what is not told apart is a syntax error.
fn refused(error: &regex::Error) -> Error {
    let said = error.to_string();
    let says = |words: &str| said.contains(words);
    if says("unclosed group") || says("unopened group") {
        Error::regexp_mismatched_parenthesis()
    } else if says("unclosed character class") {
        Error::regexp_unclosed_bracket()
    } else if says("unclosed counted repetition")
        || says("repetition quantifier expects a valid decimal")
    {
        Error::regexp_bad_interval()
    } else if says("invalid repetition count range") {
        Error::regexp_interval_max_below_min()
    } else if says("invalid character class range") {
        Error::regexp_invalid_range()
    } else if says("unrecognized escape sequence") || says("incomplete escape sequence") {
        Error::regexp_bad_escape()
    } else if says("backreferences are not supported") {
        Error::regexp_unimplemented("back references")
    } else if says("look-around") {
        Error::regexp_unimplemented("look-around")
    } else {
        Error::regexp_illegal_argument()
    }
}

fn compile(call: &Call<'_>, pattern: &Value, match_type: Option<&Value>) -> Result<Regex> {
    let pattern = text(pattern);
    if pattern.is_empty() {
        return Err(Error::regexp_illegal_argument());
    }
    let collations = || call.arguments.iter().take(2).map(|argument| &argument.ty);
    let mut ignore_case = !collations().any(|ty| {
        ty.is_binary_string()
            || ty.collation().name().ends_with("_bin")
            || ty.collation().name().ends_with("_cs")
    });
    let (mut multi_line, mut dot_all) = (false, false);
    for flag in match_type.map(text).unwrap_or_default().chars() {
        match flag {
            'c' => ignore_case = false,
            'i' => ignore_case = true,
            'm' => multi_line = true,
            'n' => dot_all = true,
            'u' => {}
            _ => return Err(Error::wrong_arguments("regexp_like")),
        }
    }
    let key = (pattern, ignore_case, multi_line, dot_all);
    if let Some(known) = COMPILED.with_borrow(|compiled| compiled.get(&key).cloned()) {
        return Ok(known);
    }
    let regex = RegexBuilder::new(&key.0)
        .case_insensitive(ignore_case)
        .multi_line(multi_line)
        .dot_matches_new_line(dot_all)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => Error::regexp_timeout(),
            error => refused(&error),
        })?;
    COMPILED.with_borrow_mut(|compiled| {
        if compiled.len() >= COMPILED_MAX {
            compiled.clear();
        }
        compiled.insert(key, regex.clone());
    });
    Ok(regex)
}

/// The byte offset of a position (1 is the first character).
fn start(source: &Value, position: Option<&Value>) -> Result<usize> {
    let position = position.map_or(1, |position| convert::to_int(position).0);
    let units = Units::of(source);
    if position < 1 || position as u64 > units.len() as u64 + 1 {
        return Err(Error::regexp_index_out_of_bounds());
    }
    Ok(units.offset(position as usize - 1))
}

fn occurrence(value: Option<&Value>) -> usize {
    value.map_or(1, |value| convert::to_int(value).0).max(1) as usize
}

pub(super) fn like(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let regex = compile(call, &values[1], values.get(2))?;
    Ok(Value::Int(regex.is_match(&text(&values[0])).into()))
}

pub(super) fn instr(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let regex = compile(call, &values[1], values.get(5))?;
    let source = text(&values[0]);
    let from = start(&values[0], values.get(2))?;
    let found = regex
        .find_iter(&source[from..])
        .nth(occurrence(values.get(3)) - 1);
    let end = values
        .get(4)
        .is_some_and(|option| convert::to_int(option).0 == 1);
    Ok(Value::Int(found.map_or(0, |found| {
        let offset = from + if end { found.end() } else { found.start() };
        source[..offset].chars().count() as i64 + 1
    })))
}

pub(super) fn substr(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let regex = compile(call, &values[1], values.get(4))?;
    let source = text(&values[0]);
    let from = start(&values[0], values.get(2))?;
    let found = regex
        .find_iter(&source[from..])
        .nth(occurrence(values.get(3)) - 1);
    Ok(found.map_or(Value::Null, |found| Value::text(found.as_str())))
}

pub(super) fn replace(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let regex = compile(call, &values[1], values.get(5))?;
    let (source, with) = (text(&values[0]), text(&values[2]));
    let from = start(&values[0], values.get(3))?;
    // 0 replaces all.
    let which = values
        .get(4)
        .map_or(0, |value| convert::to_int(value).0)
        .max(0) as usize;
    let mut out = source[..from].to_owned();
    let rest = &source[from..];
    let mut copied = 0;
    for (number, captures) in regex.captures_iter(rest).enumerate() {
        let Some(whole) = captures.get(0) else {
            continue;
        };
        if which != 0 && number + 1 != which {
            continue;
        }
        out.push_str(&rest[copied..whole.start()]);
        captures.expand(&with, &mut out);
        copied = whole.end();
        call.context.check_interrupt()?;
        if call.is_too_long(out.len()) {
            return Ok(Value::Null);
        }
    }
    out.push_str(&rest[copied..]);
    Ok(Value::text(out))
}
