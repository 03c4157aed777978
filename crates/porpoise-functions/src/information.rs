//! What a statement may ask of its session and server (MySQL 8.4 manual, 14.15 and 14.23).

use std::borrow::Cow;
use std::time::Duration;

use porpoise_core::error::{Error, Result};
use porpoise_core::variables;
use porpoise_expr::function::{
    ArgumentKind, Call, Eval, Function, Returns, between, exactly, pure, stable, volatile,
};
use porpoise_expr::typing::collation::{self, Coercibility};
use porpoise_types::{Collation, DataType, Value, convert};

pub static TABLE: &[Function] = &[
    volatile(
        "BENCHMARK",
        exactly(2),
        &[ArgumentKind::Integer, ArgumentKind::Any],
        Returns::Int,
        Eval::Lazy(benchmark),
    ),
    pure(
        "CHARSET",
        exactly(1),
        &[ArgumentKind::Any],
        Returns::Fixed(name),
        Eval::Values(|call, _| Ok(Value::text(collation_of(call).charset().name()))),
    ),
    pure(
        "COERCIBILITY",
        exactly(1),
        &[ArgumentKind::Any],
        Returns::Int,
        Eval::Values(|call, _| Ok(Value::Int(coercibility(call)))),
    ),
    pure(
        "COLLATION",
        exactly(1),
        &[ArgumentKind::Any],
        Returns::Fixed(name),
        Eval::Values(|call, _| Ok(Value::text(collation_of(call).name()))),
    ),
    stable(
        "CONNECTION_ID",
        exactly(0),
        &[],
        Returns::UInt,
        Eval::Values(|call, _| Ok(Value::UInt(call.context.vars().connection_id))),
    ),
    stable(
        "CURRENT_ROLE",
        exactly(0),
        &[],
        Returns::Text(64),
        Eval::Values(|call, _| Ok(Value::text(call.context.current_role()))),
    ),
    stable(
        "CURRENT_USER",
        exactly(0),
        &[],
        Returns::Text(288),
        Eval::Values(|call, _| Ok(Value::text(call.context.current_user()))),
    ),
    stable(
        "VALIDATE_PASSWORD_STRENGTH",
        exactly(1),
        &[ArgumentKind::String],
        Returns::Int,
        Eval::Strict(password_strength),
    ),
    stable(
        "DATABASE",
        exactly(0),
        &[],
        Returns::Text(64),
        Eval::Values(|call, _| {
            Ok(call
                .context
                .vars()
                .schema
                .clone()
                .map_or(Value::Null, Value::Text))
        }),
    ),
    volatile(
        "FOUND_ROWS",
        exactly(0),
        &[],
        Returns::Int,
        Eval::Values(|call, _| Ok(Value::Int(call.context.vars().found_rows as i64))),
    ),
    volatile(
        "LAST_INSERT_ID",
        between(0, 1),
        &[ArgumentKind::Integer],
        Returns::UInt,
        Eval::Values(last_insert_id),
    ),
    volatile(
        "ROW_COUNT",
        exactly(0),
        &[],
        Returns::Int,
        Eval::Values(|call, _| Ok(Value::Int(call.context.vars().row_count))),
    ),
    stable(
        "SCHEMA",
        exactly(0),
        &[],
        Returns::Text(64),
        Eval::Values(|call, _| {
            Ok(call
                .context
                .vars()
                .schema
                .clone()
                .map_or(Value::Null, Value::Text))
        }),
    ),
    stable(
        "SESSION_USER",
        exactly(0),
        &[],
        Returns::Text(288),
        Eval::Values(user),
    ),
    volatile(
        "SLEEP",
        exactly(1),
        &[ArgumentKind::Double],
        Returns::Int,
        Eval::Values(sleep),
    ),
    stable(
        "SYSTEM_USER",
        exactly(0),
        &[],
        Returns::Text(288),
        Eval::Values(user),
    ),
    stable(
        "USER",
        exactly(0),
        &[],
        Returns::Text(288),
        Eval::Values(user),
    ),
    stable(
        "VERSION",
        exactly(0),
        &[],
        Returns::Text(60),
        Eval::Values(|_, _| Ok(Value::text(variables::VERSION))),
    ),
    volatile(
        "GET_LOCK",
        exactly(2),
        &[ArgumentKind::String, ArgumentKind::Double],
        Returns::Int,
        Eval::Values(get_lock),
    ),
    volatile(
        "IS_FREE_LOCK",
        exactly(1),
        &[ArgumentKind::String],
        Returns::Int,
        Eval::Values(|call, values| {
            let owner = call.context.lock_owner(&lock_name(values)?)?;
            Ok(Value::Int(owner.is_none().into()))
        }),
    ),
    volatile(
        "IS_USED_LOCK",
        exactly(1),
        &[ArgumentKind::String],
        Returns::UInt,
        Eval::Values(|call, values| {
            let owner = call.context.lock_owner(&lock_name(values)?)?;
            Ok(owner.map_or(Value::Null, Value::UInt))
        }),
    ),
    volatile(
        "RELEASE_ALL_LOCKS",
        exactly(0),
        &[],
        Returns::UInt,
        Eval::Values(|call, _| Ok(Value::UInt(call.context.release_all_locks()))),
    ),
    volatile(
        "RELEASE_LOCK",
        exactly(1),
        &[ArgumentKind::String],
        Returns::Int,
        Eval::Values(|call, values| {
            let released = call.context.release_lock(&lock_name(values)?)?;
            Ok(released.map_or(Value::Null, Value::from))
        }),
    ),
    volatile(
        "NAME_CONST",
        exactly(2),
        &[ArgumentKind::String, ArgumentKind::Any],
        Returns::Same(1),
        Eval::Values(|_, values| Ok(values[1].clone())),
    ),
];

/// A name, in utf8mb4 whatever it is the name for.
fn name() -> DataType {
    DataType::Varchar {
        length: 64,
        collation: Collation::UTF8MB4_0900_AI_CI,
    }
}

fn collation_of(call: &Call<'_>) -> Collation {
    match call.arguments.first().map(|argument| &argument.ty) {
        Some(ty)
            if ty.is_string()
                || matches!(ty, DataType::Enum(_) | DataType::Set(_) | DataType::Json) =>
        {
            ty.collation()
        }
        _ => Collation::BINARY,
    }
}

/// 2 for columns, 4 for literals and functions, 5 for numbers, 6 for NULL.
fn coercibility(call: &Call<'_>) -> i64 {
    let argument = call.arguments.first();
    argument.map_or(Coercibility::Ignorable, collation::coercibility) as i64
}

fn benchmark(call: &mut Call<'_>) -> Result<Value> {
    let count = call.context.evaluate(&call.arguments[0])?;
    if count.is_null() || convert::to_int(&count).0 < 0 {
        return Ok(Value::Null);
    }
    for _ in 0..convert::to_uint(&count).0 {
        call.context.check_interrupt()?;
        call.context.evaluate(&call.arguments[1])?;
    }
    Ok(Value::Int(0))
}

fn user(call: &mut Call<'_>, _: &[Value]) -> Result<Value> {
    let session = call.context.vars();
    Ok(Value::text(format!("{}@{}", session.user, session.host)))
}

/// With an argument: remembers it as the session's, which drivers use for UPDATE …
/// LAST_INSERT_ID(expr).
fn last_insert_id(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    if let Some(value) = values.first() {
        if value.is_null() {
            return Ok(Value::Null);
        }
        let id = match value {
            Value::Int(v) => *v as u64,
            other => convert::to_uint(other).0,
        };
        let vars = call.context.vars_mut();
        vars.last_insert_id = id;
        vars.statement.gave_insert_id = true;
    }
    Ok(Value::UInt(call.context.vars().last_insert_id))
}

fn lock_name(values: &[Value]) -> Result<Cow<'_, str>> {
    match values.first() {
        Some(Value::Text(name)) => Ok(Cow::Borrowed(name)),
        Some(Value::Bytes(name)) => Ok(String::from_utf8_lossy(name)),
        _ => Err(Error::wrong_user_lock_name("NULL")),
    }
}

/// Waits for a named lock; a negative timeout, for ever.
fn get_lock(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    /// Longer waits are endless.
    const SECONDS_MAX: f64 = 31_536_000.0;
    let name = lock_name(values)?;
    let timeout = match values[1] {
        Value::Double(seconds) if !(0.0..=SECONDS_MAX).contains(&seconds) => None,
        Value::Double(seconds) => Some(Duration::from_secs_f64(seconds)),
        _ => Some(Duration::ZERO),
    };
    let taken = call.context.get_lock(&name, timeout)?;
    Ok(Value::from(taken))
}

/// Sleeps; 1 if it was killed.
fn sleep(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    /// How long a sleeper takes to notice a KILL.
    const STEP: Duration = Duration::from_millis(20);
    let Value::Double(seconds) = values[0] else {
        return Err(Error::wrong_arguments("sleep"));
    };
    if seconds < 0.0 {
        return Err(Error::wrong_arguments("sleep"));
    }
    call.context.before_waiting("User sleep");
    let end = std::time::Instant::now() + Duration::from_secs_f64(seconds.min(31_536_000.0));
    while let Some(left) = end.checked_duration_since(std::time::Instant::now()) {
        call.context.check_interrupt()?;
        std::thread::sleep(left.min(STEP));
    }
    call.context.after_waiting();
    Ok(Value::Int(0))
}

/// VALIDATE_PASSWORD_STRENGTH(), which is there while its component is installed (1305).
fn password_strength(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let current = call.context.current_user();
    let current = current.rsplit_once('@').map_or("", |(user, _)| user);
    let vars = call.context.vars();
    let validation = &vars.password_validation;
    if !validation.is_installed() {
        let schema = vars.schema.clone().unwrap_or_default();
        return Err(Error::function_does_not_exist(schema, call.function.name));
    }
    let password = convert::to_text(&values[0], &DataType::varchar(0));
    let strength = validation.strength(&password, &[&*vars.user, current]);
    Ok(Value::Int(strength))
}
