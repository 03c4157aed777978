//! What running a program asks of its definition.

use std::sync::{Arc, LazyLock};

use porpoise_catalog::program::{ProgramKind, StoredProgram};
use porpoise_catalog::{Catalog, Table};
use porpoise_core::variables::{self, Position, SessionVars};
use porpoise_sql::ast::{TriggerEvent, TriggerTime};
use porpoise_types::{Collation, Value};

/// A program's definition.
pub type Routine = StoredProgram;

/// A procedure by name.
pub fn procedure(catalog: &Catalog, schema: &str, name: &str) -> Option<Arc<Routine>> {
    catalog.program(schema, ProgramKind::Procedure, name)
}

/// A function by name.
pub fn function(catalog: &Catalog, schema: &str, name: &str) -> Option<Arc<Routine>> {
    catalog.program(schema, ProgramKind::Function, name)
}

/// The triggers of a table, in the order in which they are fired.
pub fn triggers(
    catalog: &Catalog,
    table: &Table,
) -> Vec<(TriggerTime, TriggerEvent, Arc<Routine>)> {
    if table.temporary {
        return Vec::new();
    }
    let found = catalog.triggers(&table.schema, &table.name).into_iter();
    let fired = found.filter_map(|program| {
        let (time, event) = program.record.trigger.as_ref()?.fired();
        Some((time, event, program))
    });
    fired.collect()
}

/// The variables that a program has as they were when it was created.
static REMEMBERED: LazyLock<[Option<Position>; 6]> = LazyLock::new(|| {
    [
        "sql_mode",
        "character_set_client",
        "character_set_connection",
        "collation_connection",
        "character_set_database",
        "collation_database",
    ]
    .map(variables::find)
});

/// The values that the program's session is to have.
fn remembered(routine: &Routine) -> [&str; 6] {
    let record = &routine.record;
    let charset = connection_collation(routine).map_or("utf8mb4", |own| own.charset().name());
    let of_schema = collation(routine);
    [
        &record.sql_mode,
        &record.client_charset,
        charset,
        &record.connection_collation,
        of_schema.charset().name(),
        of_schema.name(),
    ]
}

fn connection_collation(routine: &Routine) -> Option<Collation> {
    Collation::by_name(&routine.record.connection_collation)
}

/// Whether a session has the settings that a program was created with. It is asked before and after
/// each call: the character sets are left out, as they are the collations'.
pub fn has_settings_of(routine: &Routine, session: &SessionVars) -> bool {
    let record = &routine.record;
    let [mode, client, _, connection, _, database] = &*REMEMBERED;
    let is_same = |position: &Option<Position>, value: &str| {
        position.is_none_or(|position| match &session.variables[position] {
            Value::Text(now) => now == value,
            _ => false,
        })
    };
    is_same(connection, &record.connection_collation)
        && is_same(database, collation(routine).name())
        && is_same(client, &record.client_charset)
        && is_same(mode, &record.sql_mode)
}

/// The settings that a program was created with.
pub fn settings(routine: &Routine) -> Vec<(Position, Value)> {
    let values = REMEMBERED.iter().zip(remembered(routine));
    values
        .filter_map(|(position, value)| Some(((*position)?, Value::text(value))))
        .collect()
}

/// The collation of texts whose type says none.
pub fn collation(routine: &Routine) -> Collation {
    let found = Collation::by_id(routine.record.collation);
    found.unwrap_or(Collation::UTF8MB4_0900_AI_CI)
}

/// User and host of the program's definer.
pub fn definer(routine: &Routine) -> (&str, &str) {
    let definer = &routine.record.definer;
    definer.rsplit_once('@').unwrap_or((definer, "%"))
}
