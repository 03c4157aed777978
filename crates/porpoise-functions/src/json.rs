//! JSON functions (MySQL 8.4 manual, 14.17).
//!
//! Documents come as JSON values or as text that is parsed here, so that errors 3140 to 3149 can
//! name the argument and the function. Paths are text. Values that go *into* a document are not
//! parsed: a text becomes a JSON string, a truth value becomes `true` or `false`.

use porpoise_core::error::{Error, Level, Result};
use porpoise_expr::Pace;
use porpoise_expr::function::{
    ArgumentKind, Call, Eval, Function, Returns, at_least, between, exactly, pure,
};
use porpoise_expr::{Expr, ExprKind, SubqueryKind};
use porpoise_types::json::path::{Change, Leg};
use porpoise_types::json::{DEPTH_MAX, write_quoted};
use porpoise_types::{
    BlobSize, Collation, CompactString, DataType, Json, JsonPath, JsonValue, Value, convert,
};

use crate::string::bytes;

const ANY: &[ArgumentKind] = &[ArgumentKind::Any];
/// A document, then paths.
const PATHS: &[ArgumentKind] = &[ArgumentKind::Any, ArgumentKind::String];

const JSON: Returns = Returns::Fixed(|| DataType::Json);
const TEXT: Returns = Returns::Fixed(|| DataType::Text {
    size: BlobSize::Long,
    collation: Collation::UTF8MB4_BIN,
});

pub static TABLE: &[Function] = &[
    pure("JSON_ARRAY", at_least(0), ANY, JSON, Eval::Values(array)),
    pure(
        "JSON_ARRAY_APPEND",
        at_least(3),
        ANY,
        Returns::By(path_pairs),
        Eval::Values(|call, values| {
            change(call, values, "json_array_append", |path, root, value| {
                path.array_append(root, value);
                Ok(())
            })
        }),
    ),
    pure(
        "JSON_ARRAY_INSERT",
        at_least(3),
        ANY,
        Returns::By(path_pairs),
        Eval::Values(|call, values| {
            change(call, values, "json_array_insert", |path, root, value| {
                match path.legs().last() {
                    Some(Leg::Cell(_)) => path.array_insert(root, value),
                    _ => return Err(Error::json_path_not_cell()),
                }
                Ok(())
            })
        }),
    ),
    pure(
        "JSON_CONTAINS",
        between(2, 3),
        &[ArgumentKind::Any, ArgumentKind::Any, ArgumentKind::String],
        Returns::Bool,
        // Not strict: NULL where the path leads nowhere, though no argument is NULL.
        Eval::Values(contains),
    ),
    pure(
        "JSON_CONTAINS_PATH",
        at_least(3),
        PATHS,
        Returns::Bool,
        Eval::Strict(contains_path),
    ),
    pure(
        "JSON_DEPTH",
        exactly(1),
        ANY,
        Returns::Int,
        Eval::Strict(|_, values| {
            let doc = document(values, 0, "json_depth")?;
            Ok(Value::Int(doc.value().depth() as i64))
        }),
    ),
    pure(
        "JSON_EXTRACT",
        at_least(2),
        PATHS,
        JSON,
        Eval::Strict(extract),
    ),
    pure(
        "JSON_INSERT",
        at_least(3),
        ANY,
        Returns::By(path_pairs),
        Eval::Values(|call, values| put(call, values, "json_insert", Change::Insert)),
    ),
    pure("JSON_KEYS", between(1, 2), PATHS, JSON, Eval::Strict(keys)),
    pure(
        "JSON_LENGTH",
        between(1, 2),
        PATHS,
        Returns::Int,
        Eval::Strict(|_, values| {
            let doc = document(values, 0, "json_length")?;
            let found = plain_path(values, 1)?;
            let value = found
                .map_or(vec![doc.value()], |path| path.find(doc.value()))
                .pop();
            Ok(value.map_or(Value::Null, |value| Value::Int(value.length() as i64)))
        }),
    ),
    pure(
        "JSON_MERGE",
        at_least(2),
        ANY,
        JSON,
        Eval::Strict(|call, values| {
            let instead = "JSON_MERGE_PRESERVE/JSON_MERGE_PATCH";
            let warning = Error::deprecated_syntax("JSON_MERGE", instead);
            call.context
                .vars_mut()
                .warn(Level::Warning, warning.into_condition());
            merge_preserve(values, "json_merge")
        }),
    ),
    pure(
        "JSON_MERGE_PATCH",
        at_least(2),
        ANY,
        JSON,
        Eval::Values(merge_patch),
    ),
    pure(
        "JSON_MERGE_PRESERVE",
        at_least(2),
        ANY,
        JSON,
        Eval::Strict(|_, values| merge_preserve(values, "json_merge_preserve")),
    ),
    pure(
        "JSON_OBJECT",
        at_least(0),
        ANY,
        Returns::By(object_pairs),
        Eval::Values(object),
    ),
    pure(
        "JSON_OVERLAPS",
        exactly(2),
        ANY,
        Returns::Bool,
        Eval::Strict(|call, values| {
            let a = document(values, 0, "json_overlaps")?;
            let b = document(values, 1, "json_overlaps")?;
            let mut pace = Pace::default();
            let mut check = || pace.walk(call.context, 1);
            Ok(Value::from(a.value().overlaps(b.value(), &mut check)?))
        }),
    ),
    pure(
        "JSON_PRETTY",
        exactly(1),
        ANY,
        TEXT,
        Eval::Strict(|_, values| {
            let mut out = Vec::new();
            let doc = document(values, 0, "json_pretty")?;
            doc.value().write_pretty(&mut out);
            Ok(text(out))
        }),
    ),
    pure("JSON_QUOTE", exactly(1), ANY, TEXT, Eval::Strict(quote)),
    pure(
        "JSON_REMOVE",
        at_least(2),
        PATHS,
        JSON,
        Eval::Strict(remove),
    ),
    pure(
        "JSON_REPLACE",
        at_least(3),
        ANY,
        Returns::By(path_pairs),
        Eval::Values(|call, values| put(call, values, "json_replace", Change::Replace)),
    ),
    pure(
        "JSON_SEARCH",
        at_least(3),
        PATHS,
        JSON,
        Eval::Values(search),
    ),
    pure(
        "JSON_SET",
        at_least(3),
        ANY,
        Returns::By(path_pairs),
        Eval::Values(|call, values| put(call, values, "json_set", Change::Set)),
    ),
    pure(
        "JSON_STORAGE_FREE",
        exactly(1),
        ANY,
        Returns::Int,
        Eval::Strict(|_, values| {
            document(values, 0, "json_storage_free")?;
            Ok(Value::Int(0))
        }),
    ),
    pure(
        "JSON_STORAGE_SIZE",
        exactly(1),
        ANY,
        Returns::Int,
        Eval::Strict(|_, values| {
            let doc = document(values, 0, "json_storage_size")?;
            Ok(Value::Int(1 + binary_size(doc.value()) as i64))
        }),
    ),
    pure(
        "JSON_TYPE",
        exactly(1),
        ANY,
        Returns::Fixed(|| DataType::Varchar {
            length: 51,
            collation: Collation::UTF8MB4_0900_AI_CI,
        }),
        Eval::Strict(|_, values| {
            let doc = document(values, 0, "json_type")?;
            Ok(Value::text(doc.value().type_name()))
        }),
    ),
    pure("JSON_UNQUOTE", exactly(1), ANY, TEXT, Eval::Strict(unquote)),
    pure(
        "JSON_VALID",
        exactly(1),
        ANY,
        Returns::Bool,
        Eval::Strict(|_, values| {
            Ok(Value::from(match &values[0] {
                Value::Json(_) => true,
                Value::Text(text) => Json::parse(text).is_ok(),
                _ => false,
            }))
        }),
    ),
    pure(
        "MEMBER OF",
        exactly(2),
        ANY,
        Returns::Bool,
        Eval::Strict(|call, values| {
            let wanted = value_at(call, values, 0)?;
            let doc = document(values, 1, "member of")?;
            let equal = |item: &JsonValue| item.compare(&wanted).is_eq();
            Ok(Value::from(match doc.value() {
                JsonValue::Array(items) => items.iter().any(equal),
                other => equal(other),
            }))
        }),
    ),
];

/// Paths and values come in pairs after the document.
fn path_pairs(arguments: &[Expr]) -> Result<DataType> {
    if arguments.len().is_multiple_of(2) {
        return Err(Error::parameter_count("json_set"));
    }
    Ok(DataType::Json)
}

fn object_pairs(arguments: &[Expr]) -> Result<DataType> {
    if !arguments.len().is_multiple_of(2) {
        return Err(Error::parameter_count("JSON_OBJECT"));
    }
    Ok(DataType::Json)
}

/// A JSON document: parsed if it is text.
fn document(values: &[Value], at: usize, function: &str) -> Result<Json> {
    match &values[at] {
        Value::Json(json) => Ok(json.clone()),
        Value::Text(text) => Json::parse(text).map_err(|error| {
            Error::invalid_json_text_in_parameter(at + 1, function, error.message, error.position)
        }),
        Value::Bytes(_) => Err(Error::invalid_json_charset("binary")),
        _ => Err(Error::invalid_type_for_json(at + 1, function)),
    }
}

/// A path. `None` where the argument isn't there.
fn path(values: &[Value], at: usize) -> Result<Option<JsonPath>> {
    let Some(value) = values.get(at) else {
        return Ok(None);
    };
    let text = match value {
        Value::Text(text) => text.clone(),
        other => CompactString::from_utf8_lossy(bytes(other)),
    };
    match JsonPath::parse(&text) {
        Ok(path) => Ok(Some(path)),
        Err(error) => Err(Error::invalid_json_path(error.position)),
    }
}

/// A path that matches one value at most.
fn plain_path(values: &[Value], at: usize) -> Result<Option<JsonPath>> {
    match path(values, at)? {
        Some(path) if path.is_wild() => Err(Error::json_path_wild()),
        path => Ok(path),
    }
}

fn paths(values: &[Value], from: usize) -> Result<Vec<JsonPath>> {
    (from..values.len())
        .filter_map(|at| path(values, at).transpose())
        .collect()
}

/// Whether an expression is a truth value, which JSON tells from a number.
fn is_truth(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Not(_)
        | ExprKind::And(_)
        | ExprKind::Or(_)
        | ExprKind::Xor(..)
        | ExprKind::Compare { .. }
        | ExprKind::Between { .. }
        | ExprKind::InList { .. }
        | ExprKind::IsNull { .. }
        | ExprKind::IsTruth { .. }
        | ExprKind::Like { .. } => true,
        ExprKind::Subquery { kind, .. } => !matches!(kind, SubqueryKind::Scalar { .. }),
        ExprKind::Call { function, .. } => matches!(function.returns, Returns::Bool),
        _ => false,
    }
}

/// An argument as a part of a document.
fn value_at(call: &Call<'_>, values: &[Value], at: usize) -> Result<JsonValue> {
    let value = &values[at];
    let Some(argument) = call.arguments.get(at) else {
        return Ok(JsonValue::Null);
    };
    if is_truth(argument)
        && let Value::Int(truth) = value
    {
        return Ok(JsonValue::Bool(*truth != 0));
    }
    let json = convert::to_json(value, &argument.ty, false);
    Ok(json
        .map_err(|error| {
            Error::invalid_json_text_in_parameter(
                at + 1,
                "json_array",
                error.message,
                error.position,
            )
        })?
        .into_value())
}

/// A document that a function made: nested no deeper than one that is parsed may be.
fn made(value: JsonValue) -> Result<Value> {
    match value.depth() {
        depth if depth > DEPTH_MAX => Err(Error::json_too_deep()),
        _ => Ok(Value::Json(Json::new(value))),
    }
}

fn text(bytes: Vec<u8>) -> Value {
    Value::from(String::from_utf8_lossy(&bytes).into_owned())
}

fn array(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let (mut items, mut bytes) = (Vec::with_capacity(values.len()), 0);
    for at in 0..values.len() {
        let item = value_at(call, values, at)?;
        bytes += item.heap_bytes();
        if call.is_too_long(bytes) {
            return Ok(Value::Null);
        }
        items.push(item);
    }
    made(JsonValue::Array(items))
}

fn object(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let (mut members, mut bytes) = (Vec::with_capacity(values.len() / 2), 0);
    for at in (0..values.len().saturating_sub(1)).step_by(2) {
        if values[at].is_null() {
            return Err(Error::json_null_key());
        }
        let key = match &values[at] {
            Value::Text(key) => key.clone(),
            other => convert::to_text(other, &call.arguments[at].ty).into(),
        };
        let value = value_at(call, values, at + 1)?;
        bytes += key.len() + value.heap_bytes();
        if call.is_too_long(bytes) {
            return Ok(Value::Null);
        }
        members.push((key, value));
    }
    made(JsonValue::object(members))
}

fn quote(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let Value::Text(unquoted) = &values[0] else {
        return Err(Error::incorrect_argument_type(1, "json_quote"));
    };
    let mut out = Vec::with_capacity(unquoted.len() + 2);
    write_quoted(unquoted, &mut out);
    Ok(text(out))
}

/// A JSON string's own text. A text in double quotes is read as a JSON string; any other is itself.
fn unquote(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    match &values[0] {
        Value::Json(json) => Ok(Value::from(json.value().unquoted())),
        Value::Text(quoted) => {
            if quoted.len() < 2 || !quoted.starts_with('"') || !quoted.ends_with('"') {
                return Ok(values[0].clone());
            }
            let doc = document(values, 0, "json_unquote")?;
            Ok(Value::from(doc.value().unquoted()))
        }
        _ => Err(Error::incorrect_argument_type(1, "json_unquote")),
    }
}

/// What the paths match: one path that can match but once yields the value, all else an array of
/// values.
fn extract(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let doc = document(values, 0, "json_extract")?;
    let paths = paths(values, 1)?;
    let many = paths.len() > 1 || paths.iter().any(JsonPath::is_wild);
    let mut found: Vec<&JsonValue> = Vec::new();
    for path in &paths {
        found.extend(path.find(doc.value()));
    }
    match found.as_slice() {
        [] => Ok(Value::Null),
        [value] if std::ptr::eq(*value, doc.value()) && !many => Ok(Value::Json(doc.clone())),
        [value] if !many => made((*value).clone()),
        found => made(JsonValue::Array(found.iter().copied().cloned().collect())),
    }
}

/// A scalar as text. NULL for nothing, for many values, for arrays and objects.
fn contains(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    if values.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let target = document(values, 0, "json_contains")?;
    let candidate = document(values, 1, "json_contains")?;
    let found = plain_path(values, 2)?;
    let inside = found
        .map_or(vec![target.value()], |path| path.find(target.value()))
        .pop();
    let Some(inside) = inside else {
        return Ok(Value::Null);
    };
    let mut pace = Pace::default();
    let mut check = || pace.walk(call.context, 1);
    Ok(Value::from(inside.contains(candidate.value(), &mut check)?))
}

/// `one` or `all`: whether all is wanted.
fn wants_all(value: &Value, function: &str) -> Result<bool> {
    match bytes(value) {
        word if word.eq_ignore_ascii_case(b"one") => Ok(false),
        word if word.eq_ignore_ascii_case(b"all") => Ok(true),
        _ => Err(Error::json_one_or_all(function)),
    }
}

fn contains_path(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let doc = document(values, 0, "json_contains_path")?;
    let all = wants_all(&values[1], "json_contains_path")?;
    let paths = paths(values, 2)?;
    let exists = |path: &JsonPath| !path.find(doc.value()).is_empty();
    Ok(Value::from(if all {
        paths.iter().all(exists)
    } else {
        paths.iter().any(exists)
    }))
}

fn keys(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let doc = document(values, 0, "json_keys")?;
    let path = plain_path(values, 1)?;
    let found = path.map_or(vec![doc.value()], |path| path.find(doc.value()));
    match found.as_slice() {
        [JsonValue::Object(members)] => {
            let keys = members
                .iter()
                .map(|(key, _)| JsonValue::String(key.clone()));
            made(JsonValue::Array(keys.collect()))
        }
        _ => Ok(Value::Null),
    }
}

/// `JSON_SEARCH(document, one or all, pattern [, escape [, path] …])`.
fn search(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let escape_given = values.get(3).is_some_and(|escape| !escape.is_null());
    let nulls = values
        .iter()
        .enumerate()
        .any(|(at, value)| value.is_null() && at != 3);
    if nulls {
        return Ok(Value::Null);
    }
    let doc = document(values, 0, "json_search")?;
    let all = wants_all(&values[1], "json_search")?;
    let escape = match values.get(3).filter(|_| escape_given) {
        None => Some('\\'),
        Some(escape) => {
            let escape = String::from_utf8_lossy(bytes(escape));
            let mut chars = escape.chars();
            match (chars.next(), chars.next()) {
                (only, None) => only,
                _ => return Err(Error::wrong_arguments("ESCAPE")),
            }
        }
    };
    let pattern = bytes(&values[2]);
    let matches =
        |text: &str| porpoise_types::like(text.as_bytes(), pattern, escape, Collation::UTF8MB4_BIN);
    let mut roots = Vec::new();
    if values.len() <= 4 {
        roots.push(doc.value());
    }
    for path in paths(values, 4)? {
        roots.extend(path.find(doc.value()));
    }
    let mut found = doc.value().search_within(&roots, &matches);
    call.context.check_interrupt()?;
    if !all {
        found.truncate(1);
    }
    let mut found: Vec<JsonValue> = found
        .into_iter()
        .map(|path| JsonValue::String(path.into()))
        .collect();
    match found.len() {
        0 => Ok(Value::Null),
        1 => made(found.remove(0)),
        _ => made(JsonValue::Array(found)),
    }
}

/// Applies `apply` to the document for each pair of a path and a value. NULL if the document or a
/// path is NULL.
fn change(
    call: &mut Call<'_>,
    values: &[Value],
    function: &str,
    apply: impl Fn(&JsonPath, &mut JsonValue, JsonValue) -> Result<()>,
) -> Result<Value> {
    let paths = (1..values.len()).step_by(2);
    if values[0].is_null() || paths.clone().any(|at| values[at].is_null()) {
        return Ok(Value::Null);
    }
    let mut root = document(values, 0, function)?.into_value();
    for at in paths {
        let Some(path) = plain_path(values, at)? else {
            break;
        };
        let value = value_at(call, values, at + 1)?;
        apply(&path, &mut root, value)?;
        if root.depth() > DEPTH_MAX {
            return Err(Error::json_too_deep());
        }
    }
    made(root)
}

fn put(call: &mut Call<'_>, values: &[Value], function: &str, kind: Change) -> Result<Value> {
    change(call, values, function, |path, root, value| {
        path.change(root, value, kind);
        Ok(())
    })
}

fn remove(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let mut root = document(values, 0, "json_remove")?.into_value();
    for at in 1..values.len() {
        if let Some(path) = plain_path(values, at)? {
            if path.legs().is_empty() {
                return Err(Error::json_path_vacuous());
            }
            path.remove(&mut root);
        }
    }
    made(root)
}

fn merge_preserve(values: &[Value], function: &str) -> Result<Value> {
    let mut merged = document(values, 0, function)?.into_value();
    for at in 1..values.len() {
        merged = merged.merge_preserve(document(values, at, function)?.into_value());
    }
    made(merged)
}

/// A patch that is no object replaces whatever was there, NULL included; an object patched onto
/// NULL is NULL.
fn merge_patch(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let mut merged: Option<JsonValue> = None;
    for at in 0..values.len() {
        if values[at].is_null() {
            merged = None;
            continue;
        }
        let patch = document(values, at, "json_merge_patch")?.into_value();
        merged = match (merged, patch) {
            (Some(target), patch) => Some(target.merge_patch(patch)),
            (None, JsonValue::Object(_)) if at > 0 => None,
            (None, patch) => Some(patch),
        };
    }
    merged.map_or(Ok(Value::Null), made)
}

/// The largest offset of the small form of arrays and objects.
const SMALL_BYTES_MAX: usize = u16::MAX as usize;

/// How many bytes MySQL's binary form of a value takes, its type byte not counted.
fn binary_size(value: &JsonValue) -> usize {
    /// The length of a string or opaque value takes seven bits a byte.
    fn counted(bytes: usize) -> usize {
        let mut size = bytes + 1;
        let mut rest = bytes >> 7;
        while rest > 0 {
            size += 1;
            rest >>= 7;
        }
        size
    }
    match value {
        JsonValue::Null | JsonValue::Bool(_) => 1,
        JsonValue::Int(v) => match i16::try_from(*v) {
            Ok(_) => 2,
            Err(_) if i32::try_from(*v).is_ok() => 4,
            Err(_) => 8,
        },
        JsonValue::UInt(v) => match u16::try_from(*v) {
            Ok(_) => 2,
            Err(_) if u32::try_from(*v).is_ok() => 4,
            Err(_) => 8,
        },
        JsonValue::Double(_) => 8,
        JsonValue::String(text) => counted(text.len()),
        // A type byte, the length, and eight packed bytes.
        JsonValue::Date(_) | JsonValue::Time(_) | JsonValue::DateTime(_) => 1 + counted(8),
        JsonValue::Decimal(decimal) => {
            /// Bytes that so many digits take: nine in four.
            fn digits(count: usize) -> usize {
                const LEFT_OVER: [usize; 9] = [0, 1, 1, 2, 2, 3, 3, 4, 4];
                count / 9 * 4 + LEFT_OVER[count % 9]
            }
            let whole = decimal.integer_digits() as usize;
            1 + counted(2 + digits(whole) + digits(decimal.scale().into()))
        }
        JsonValue::Opaque { bytes, .. } => 1 + counted(bytes.len()),
        JsonValue::Array(items) => container_size(&[], items.iter()),
        JsonValue::Object(members) => {
            let keys: Vec<&str> = members.iter().map(|(key, _)| key.as_str()).collect();
            container_size(&keys, members.iter().map(|(_, value)| value))
        }
    }
}

/// Count and size, an entry a key (offset, length), an entry a value (type, offset or the value
/// itself), then keys and values. Offsets have two bytes while everything fits, else four.
fn container_size<'v>(keys: &[&str], values: impl Iterator<Item = &'v JsonValue>) -> usize {
    /// A value's bytes, and whether they may stand in the entry itself.
    type Sized = (usize, bool);
    let values: Vec<Sized> = values
        .map(|value| {
            let literal = matches!(
                value,
                JsonValue::Null | JsonValue::Bool(_) | JsonValue::Int(_) | JsonValue::UInt(_)
            );
            (binary_size(value), literal)
        })
        .collect();
    let keys_bytes: usize = keys.iter().map(|key| key.len()).sum();
    let sized = |offset: usize| {
        let outside = |&(size, literal): &Sized| match literal && size <= offset {
            true => 0,
            false => size,
        };
        let entries = 2 * offset + keys.len() * (offset + 2) + values.len() * (1 + offset);
        entries + keys_bytes + values.iter().map(outside).sum::<usize>()
    };
    match sized(2) {
        small if small <= SMALL_BYTES_MAX => small,
        _ => sized(4),
    }
}
