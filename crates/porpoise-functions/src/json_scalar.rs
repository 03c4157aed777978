//! Scalars out of JSON documents: JSON_VALUE, and what JSON_TABLE's columns share with it (MySQL
//! 8.4 manual, 14.17).

use porpoise_core::error::{Error, Result};
use porpoise_expr::function::{ArgumentKind, Call, Eval, Function, Purity, Returns, exactly};
use porpoise_expr::typing::literal_type;
use porpoise_expr::{EvalContext, Expr};
use porpoise_types::json::path::JsonPath;
use porpoise_types::{DataType, Json, JsonValue, Loss, Value, convert};

/// What JSON_VALUE does without a value, or with one that doesn't fit, as its arguments say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonResponse {
    /// NULL.
    Null = 0,
    /// An error.
    Error = 1,
    /// DEFAULT's value.
    Default = 2,
}

/// `JSON_VALUE(doc, path RETURNING type … ON EMPTY … ON ERROR)`: the document, the path, and for
/// each of the two cases the response's number and its default, of the call's type.
pub static JSON_VALUE: Function = Function {
    name: "JSON_VALUE",
    arity: exactly(6),
    argument_kinds: &[
        ArgumentKind::Json,
        ArgumentKind::String,
        ArgumentKind::Integer,
        ArgumentKind::Any,
        ArgumentKind::Integer,
        ArgumentKind::Any,
    ],
    returns: Returns::Same(3),
    eval: Eval::Lazy(json_value),
    purity: Purity::Pure,
};

fn json_value(call: &mut Call<'_>) -> Result<Value> {
    let [doc, path, on_empty, empty_value, on_error, error_value] = call.arguments else {
        return Ok(Value::Null);
    };
    let context = &mut *call.context;
    let (doc, path) = (context.evaluate(doc)?, context.evaluate(path)?);
    let (Value::Json(doc), Value::Text(path)) = (doc, path) else {
        return Ok(Value::Null);
    };
    let path = JsonPath::parse(&path).map_err(|error| Error::invalid_json_path(error.position))?;
    let respond = |context: &mut dyn EvalContext, kind: &Expr, value: &Expr, error: Error| {
        match convert::to_int(&context.evaluate(kind)?).0 {
            kind if kind == JsonResponse::Error as i64 => Err(error),
            kind if kind == JsonResponse::Default as i64 => context.evaluate(value),
            _ => Ok(Value::Null),
        }
    };
    let found = path.find(doc.value());
    let found = match found.as_slice() {
        [] => {
            let error = Error::missing_json_value("json_value");
            return respond(context, on_empty, empty_value, error);
        }
        [found] => *found,
        _ => {
            let error = Error::multiple_json_values("json_value");
            return respond(context, on_error, error_value, error);
        }
    };
    let scalar = match (call.ty, scalar_of(found, call.ty)) {
        (_, Some(Value::Null)) => return Ok(Value::Null),
        (DataType::Json, _) => return Ok(Value::Json(Json::new(found.clone()))),
        (_, Some(scalar)) => scalar,
        // An array or object is shown as its text, which is no number.
        (_, None) => Value::text(found.to_string()),
    };
    stored(context, call.ty, scalar).or_else(|_| {
        let kind = cast_name(call.ty);
        let error = Error::invalid_json_value_for_cast(kind, "json_value", 1);
        respond(context, on_error, error_value, error)
    })
}

/// A scalar in a type that holds it; else what would be lost.
pub fn stored(context: &dyn EvalContext, ty: &DataType, scalar: Value) -> Result<Value, Loss> {
    let from = literal_type(&scalar, context.vars());
    match porpoise_types::store(scalar, &from, ty, &context.conversion()) {
        Ok((stored, Loss::None | Loss::Rounded | Loss::SpacesCut)) => Ok(stored),
        Ok((_, loss)) => Err(loss),
        Err(_) => Err(Loss::BadText),
    }
}

/// A JSON scalar as a plain value; `None` for what is no scalar.
pub fn scalar_of(value: &JsonValue, ty: &DataType) -> Option<Value> {
    Some(match value {
        JsonValue::Null => Value::Null,
        JsonValue::Array(_) | JsonValue::Object(_) => return None,
        JsonValue::Bool(truth) if ty.is_numeric() => Value::Int((*truth).into()),
        JsonValue::Int(v) => Value::Int(*v),
        JsonValue::UInt(v) => Value::UInt(*v),
        JsonValue::Double(v) => Value::Double(*v),
        JsonValue::Decimal(v) => Value::Decimal(v.clone()),
        JsonValue::Date(v) => Value::Date(*v),
        JsonValue::Time(v) => Value::Time(*v),
        JsonValue::DateTime(v) => Value::DateTime(*v),
        other => Value::text(other.unquoted()),
    })
}

/// How the error about a failed conversion names a type.
pub fn cast_name(ty: &DataType) -> &'static str {
    match ty {
        DataType::Decimal { .. } => "DECIMAL",
        DataType::Float { .. } | DataType::Double { .. } => "DOUBLE",
        DataType::Date => "DATE",
        DataType::Time { .. } => "TIME",
        DataType::DateTime { .. } | DataType::Timestamp { .. } => "DATETIME",
        ty if ty.is_numeric() => "INTEGER",
        _ => "CHAR",
    }
}
