//! ALTER TABLE, and CREATE INDEX and DROP INDEX, which are the same.
//!
//! 1. Every action edits the table's record, in the order written ([`edit`]). Other sessions go on
//!    reading and writing, but none alters the table (SHARED_UPGRADABLE).
//! 2. [`Work::of`] compares the result with the table, and says what must be done to the rows.
//! 3. Nothing (names, defaults, comments, longer VARCHARs, columns that are dropped or moved, or new and
//!    of the same value in all rows): the new definition takes the old spaces. New indexes only: they are built beside the table. Otherwise every row moves into new
//!    spaces. Where rows are looked at, writers wait from here on (SHARED_NO_WRITE).
//! 4. When the last reader has left (EXCLUSIVE), one catalog change puts the new definition in
//!    place and drops the spaces that it no longer needs.

mod edit;
mod work;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use compact_str::CompactString;
use porpoise_catalog::dictionary::{create_unclaimed, drop_unclaimed};
use porpoise_catalog::record::{AddedRecord, ColumnRecord, TableRecord};
use porpoise_catalog::{CatalogChange, Check, Statistics, Table, virtual_table};
use porpoise_core::error::{Error, Result};
use porpoise_core::reply::Completion;
use porpoise_mdl::{MdlTicket, Mode};
use porpoise_planner::bind_table_expression;
use porpoise_sql::ast;
use porpoise_storage::SpaceId;
use porpoise_types::ROW_VERSIONS_MAX;

use crate::table;
use crate::{Ddl, Name, copy, foreign_keys, lock, rename};
use edit::{apply_options, edit, follow_columns};
use work::{Work, copies_rows, do_work, keep_places, next_step, place};

/// What the actions ask for that the edited record does not hold.
#[derive(Default)]
struct AlterSpec {
    /// Columns that are written as NULL: they must not be part of a primary key.
    explicit_null: Vec<CompactString>,
    rename_to: Option<Name>,
    /// The counter's next value: AUTO_INCREMENT = n.
    auto_increment: Option<u64>,
    /// FORCE: the rows move even if nothing else asks for it.
    force: bool,
    /// With COPY the rows are copied, and count as affected.
    algorithm: Algorithm,
    renames: foreign_keys::Renames,
}

/// `ALGORITHM = …`: how the rows get their new form.
#[derive(Clone, Copy, Default, PartialEq)]
enum Algorithm {
    #[default]
    Default,
    /// Without a look at the rows.
    Instant,
    InPlace,
    Copy,
}

impl Algorithm {
    fn named(name: Option<&ast::Ident>) -> Result<Algorithm> {
        Ok(match name.map(|name| name.as_str()) {
            None | Some("DEFAULT") => Algorithm::Default,
            Some("INSTANT") => Algorithm::Instant,
            Some("INPLACE") => Algorithm::InPlace,
            Some("COPY") => Algorithm::Copy,
            Some(other) => return Err(Error::unknown_alter_algorithm(other)),
        })
    }
}

/// A new definition that is ready to be filled and installed.
struct Altered {
    record: TableRecord,
    table: Arc<Table>,
    work: Work,
    /// Spaces that were allocated for it, not yet claimed by a definition.
    fresh: Vec<SpaceId>,
    /// Whether old rows have to satisfy a new CHECK.
    checks_rows: bool,
    /// Whether rows have to satisfy a new foreign key.
    checks_keys: bool,
    /// Whether the rows count as affected.
    copies: bool,
}

/// Executes the actions of an ALTER TABLE, in the order written (MySQL 8.4 manual, 15.1.9).
pub fn alter(
    ddl: &mut Ddl<'_>,
    name: &ast::ObjectName,
    actions: &[ast::AlterAction],
    algorithm: Option<&ast::Ident>,
) -> Result<Completion> {
    let algorithm = Algorithm::named(algorithm)?;
    let name = ddl.resolve(name)?;
    let own = virtual_table::find(&name.schema, &name.table);
    if own.is_some_and(|own| ddl.shared.is_logged_to(own)) && ddl.temporary(&name).is_none() {
        return Err(Error::bad_log_statement("ALTER"));
    }
    let (table, mut held) = lock_table(ddl, &name, actions)?;
    let (mut record, mut spec) = edit_record(ddl, &table, actions)?;
    spec.algorithm = algorithm;
    record.version = ddl.shared.dictionary.next_version();
    if spec.auto_increment.is_some() {
        // The counter is compared while nobody counts.
        ddl.upgrade(&mut held, Mode::SharedNoWrite)?;
    }
    let mut altered = plan_work(ddl, &table, record, &spec)?;
    if altered.work != Work::Nothing || altered.checks_rows || altered.checks_keys {
        // Others go on reading. What they write would be lost.
        ddl.upgrade(&mut held, Mode::SharedNoWrite)?;
    }
    if !altered.fresh.is_empty() {
        create_unclaimed(&ddl.shared.store, &altered.fresh)?;
    }
    let outcome = fill(ddl, &table, &altered, &spec).and_then(|rows| {
        ddl.upgrade(&mut held, Mode::Exclusive)?;
        install(ddl, &table, &mut altered, &spec).map(|()| rows)
    });
    match outcome {
        Ok(rows) => {
            let rows = if altered.copies { rows } else { 0 };
            let warnings = ddl.session.warning_count();
            let message = format!("Records: {rows}  Duplicates: 0  Warnings: {warnings}");
            Ok(Completion {
                affected_rows: rows,
                message,
                warnings,
                ..Completion::default()
            })
        }
        Err(error) => {
            if !altered.fresh.is_empty() {
                drop_unclaimed(&ddl.shared.store, &altered.fresh)?;
            }
            Err(error)
        }
    }
}

/// Locks the table against other ALTER TABLEs, with the tables that foreign keys tie to it if the
/// actions may concern them.
fn lock_table(
    ddl: &mut Ddl<'_>,
    name: &Name,
    actions: &[ast::AlterAction],
) -> Result<(Arc<Table>, MdlTicket)> {
    let keys = actions.iter().filter_map(|action| match action {
        ast::AlterAction::AddForeignKey(key) => Some(key),
        _ => None,
    });
    let mut parents = foreign_keys::named_parents(keys, &name.schema);
    for action in actions {
        // Keys may have waited for a table of the new name.
        if let ast::AlterAction::RenameTable(new) = action {
            let new = ddl.resolve(new)?;
            let waiting = ddl.shared.catalog.load().children(&new.schema, &new.table);
            parents.extend(waiting.iter().map(|child| Name {
                schema: child.schema.clone(),
                table: child.name.clone(),
            }));
        }
    }
    if !ddl.table(name)?.temporary {
        let locked = &ddl.session.locked_tables;
        locked.admits_change(&name.schema, &name.table)?;
    }
    let first = std::slice::from_ref(name);
    let (tables, held) = match reaches_others(actions) && ddl.temporary(name).is_none() {
        true => foreign_keys::lock(ddl, name, true, &parents, Mode::SharedUpgradable)?,
        false => lock::tables(ddl, first, Mode::SharedUpgradable)?,
    };
    match tables.into_iter().next() {
        Some(table) => Ok((table, held)),
        None => Err(Error::no_such_table(&name.schema, &name.table)),
    }
}

/// The table's record after all actions, complete and checked.
fn edit_record(
    ddl: &mut Ddl<'_>,
    table: &Arc<Table>,
    actions: &[ast::AlterAction],
) -> Result<(TableRecord, AlterSpec)> {
    let mut record = TableRecord::of(table);
    let mut spec = AlterSpec::default();
    let options: Vec<&ast::TableOption> = actions
        .iter()
        .filter_map(|action| match action {
            ast::AlterAction::Option(option) => Some(option),
            _ => None,
        })
        .collect();
    apply_options(ddl, &mut record, &mut spec, &options)?;
    for action in actions {
        edit(ddl, table, &mut record, &mut spec, action)?;
    }
    if record.columns.iter().all(|column| column.hidden) {
        return Err(Error::cannot_remove_all_fields());
    }
    follow_columns(table, &mut record, &spec);
    foreign_keys::complete(&mut record)?;
    table::complete(&mut record, &spec.explicit_null, ddl.session)?;
    foreign_keys::check_altered(ddl, table, &record, &spec.renames)?;
    foreign_keys::check_new(ddl, &record)?;
    Ok((record, spec))
}

/// Decides what has to be done to the rows, and allocates the spaces for it.
fn plan_work(
    ddl: &mut Ddl<'_>,
    table: &Arc<Table>,
    mut record: TableRecord,
    spec: &AlterSpec,
) -> Result<Altered> {
    let counter = ddl
        .shared
        .store
        .counter(table.space)
        .max(table.state.auto_increment.load(Ordering::Relaxed));
    let lowers_counter = spec.auto_increment.is_some_and(|next| next < counter);
    let copies = spec.algorithm == Algorithm::Copy;
    let work = if spec.force || copies || lowers_counter {
        Work::Rebuild
    } else {
        Work::of(table, &record)
    };
    let work = match work {
        Work::Rebuild => Work::Rebuild,
        work if leave_rows(ddl, table, &mut record)? => work,
        _ => Work::Rebuild,
    };
    if work == Work::Rebuild {
        record.forget_alterations();
    }
    check_algorithm(table, &record, &work, spec)?;
    let fresh = place(ddl, &mut record, &work);
    let new = Arc::new(table::bind(&record, Arc::clone(&table.state))?);
    let is_old = |check: &Check| {
        let mut checks = table.checks.iter().filter(|old| old.enforced);
        checks.any(|old| old.name == check.name && old.sql == check.sql)
    };
    let mut enforced = new.checks.iter().filter(|check| check.enforced);
    let checks_rows = work != Work::Rebuild && enforced.any(|check| !is_old(check));
    let has_new_keys = record.foreign_keys.iter().any(|key| !key.is_old);
    let checks_keys = ddl.session.foreign_key_checks && has_new_keys;
    Ok(Altered {
        checks_keys,
        copies: checks_rows || checks_keys || copies_rows(table, &record) || copies,
        record,
        table: new,
        work,
        fresh,
        checks_rows,
    })
}

/// Has the rows stay as they are, though columns come, go and move: new ones have their value in all of
/// the rows. `false` if that can't be.
fn leave_rows(ddl: &mut Ddl<'_>, table: &Table, record: &mut TableRecord) -> Result<bool> {
    for column in &mut record.columns {
        // A column that is declared anew is the one that rows may be without.
        let added = column
            .origin
            .and_then(|at| table.columns[at].added.as_ref());
        column.added = added.map(|added| AddedRecord::of(added, &column.ty));
    }
    let places = table.columns.len() + table.dropped.len() + record.columns.len();
    if places > usize::from(u16::MAX) {
        return Ok(false);
    }
    keep_places(table, record);
    let is_new = |column: &ColumnRecord| column.origin.is_none();
    if record.columns.iter().any(is_new) {
        let step = next_step(record);
        let bound = Arc::new(table::bind(record, Arc::clone(&table.state))?);
        let values = copy::values_of_added(ddl, &bound, |at| is_new(&record.columns[at]));
        // A copy says which row has no value, if there is one.
        let Ok(values) = values else {
            return Ok(false);
        };
        for (at, value) in values {
            let column = &mut record.columns[at];
            column.added = Some(AddedRecord::new(step, value, &column.ty));
        }
    }
    Ok(record.row_versions() <= ROW_VERSIONS_MAX)
}

/// Refuses what the named algorithm can't do (MySQL 8.4 manual, 15.1.9).
fn check_algorithm(
    table: &Table,
    record: &TableRecord,
    work: &Work,
    spec: &AlterSpec,
) -> Result<()> {
    let (what, instead) = match spec.algorithm {
        Algorithm::Instant if copies_rows(table, record) => ("ALGORITHM=INSTANT", "ALGORITHM=COPY"),
        Algorithm::Instant if *work != Work::Nothing => {
            ("ALGORITHM=INSTANT", "ALGORITHM=COPY/INPLACE")
        }
        Algorithm::InPlace if copies_rows(table, record) => ("ALGORITHM=INPLACE", "ALGORITHM=COPY"),
        _ => return Ok(()),
    };
    Err(Error::alter_operation_not_supported(what, instead))
}

/// Fills the new spaces, and checks rows against new constraints. Returns how many rows were read.
fn fill(ddl: &mut Ddl<'_>, old: &Arc<Table>, altered: &Altered, spec: &AlterSpec) -> Result<u64> {
    let rows = do_work(
        ddl,
        old,
        &altered.table,
        &altered.record,
        &altered.work,
        altered.checks_rows,
        spec.auto_increment,
    )?;
    if !altered.checks_keys {
        return Ok(rows);
    }
    let keys = altered.record.foreign_keys.iter();
    let names: Vec<&str> = keys
        .filter(|key| !key.is_old)
        .map(|key| key.name.as_str())
        .collect();
    Ok(rows.max(copy::check_foreign_keys(ddl, &altered.table, &names)?))
}

/// Whether actions may concern tables that foreign keys tie to the altered one.
fn reaches_others(actions: &[ast::AlterAction]) -> bool {
    use ast::AlterAction as A;
    let stays_here = |action: &A| {
        matches!(
            action,
            A::AddColumn { .. }
                | A::SetDefault(..)
                | A::DropDefault(..)
                | A::SetColumnVisible(..)
                | A::AddIndex(..)
                | A::SetIndexVisible(..)
                | A::AddCheck(..)
                | A::SetEnforced(..)
                | A::DropCheck(..)
                | A::Force
                | A::Option(..)
                | A::OrderBy(..)
                | A::SetKeys { .. }
                | A::Validation(..)
        )
    };
    !actions.iter().all(stays_here)
}

/// Puts the new definition in place of the old one, and drops the spaces that it doesn't use.
fn install(
    ddl: &mut Ddl<'_>,
    old: &Arc<Table>,
    altered: &mut Altered,
    spec: &AlterSpec,
) -> Result<()> {
    let new = Arc::clone(&altered.table);
    let unused: Vec<SpaceId> = old
        .spaces()
        .filter(|space| !new.spaces().any(|used| used == *space))
        .collect();
    let record = &mut altered.record;
    let target = spec
        .rename_to
        .as_ref()
        .filter(|name| name.table != record.name || name.schema != record.schema);
    let mut table = Arc::clone(&new);
    if let Some(name) = target {
        rename::rename_record(record, name);
        table = Arc::new(record.bind(Arc::clone(&new.state), bind_table_expression)?);
    }
    match old.temporary {
        true => install_temporary(ddl, old, table, target, &unused)?,
        false => publish(ddl, old, table, altered, target, &unused, spec)?,
    }
    new.state
        .statistics
        .store(Arc::new(statistics_after(old, &new, spec)));
    let fresh = &altered.fresh;
    if !fresh.is_empty() {
        let newest = ddl.shared.store.snapshot().ts();
        new.state.rebuilt_ts.store(newest.0, Ordering::Release);
    }
    if fresh.contains(&new.space) {
        // The counters are read again from the new space.
        new.state.auto_increment.store(0, Ordering::Relaxed);
        new.state.row_number.store(0, Ordering::Relaxed);
    }
    if let Some(next) = spec.auto_increment {
        if !fresh.contains(&new.space) {
            new.state.raise_auto_increment(next);
        } else if old.temporary {
            new.state.auto_increment.store(next, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// What is known of a table's contents, as far as it is true of the altered table.
fn statistics_after(old: &Table, new: &Table, spec: &AlterSpec) -> Statistics {
    let known = old.state.statistics.load();
    known.after_alter(old, new, |name| spec.renames.now(name))
}

/// Replaces a temporary table in the session, under its new name if it has one.
fn install_temporary(
    ddl: &mut Ddl<'_>,
    old: &Table,
    table: Arc<Table>,
    target: Option<&Name>,
    unused: &[SpaceId],
) -> Result<()> {
    if let Some(name) = target
        && ddl.temporary(name).is_some()
    {
        return Err(Error::table_exists(&name.table));
    }
    let tables = &mut ddl.session.temporary_tables;
    tables.remove(&(old.schema.clone(), old.name.clone()));
    tables.insert((table.schema.clone(), table.name.clone()), table);
    drop_unclaimed(&ddl.shared.store, unused)
}

/// Replaces a table in the catalog, durably: one storage transaction claims the new spaces, drops
/// the unused ones, and takes the new name to the tables that foreign keys tie to it.
fn publish(
    ddl: &mut Ddl<'_>,
    old: &Table,
    table: Arc<Table>,
    altered: &mut Altered,
    target: Option<&Name>,
    unused: &[SpaceId],
    spec: &AlterSpec,
) -> Result<()> {
    let record = &mut altered.record;
    let mut change = CatalogChange::begin(ddl.shared.definitions());
    if let Some(name) = target {
        ddl.check_schema(change.catalog(), &name.schema)?;
        let taken = change.catalog().relation(&name.schema, &name.table);
        if taken.is_some() {
            return Err(Error::table_exists(&name.table));
        }
    }
    change.detach_relation(&old.schema, &old.name);
    if let Some(entry) = change.catalog().schema(&record.schema).cloned() {
        table::check_names_are_free(record, &entry)?;
        foreign_keys::check_names_are_free(record, &entry)?;
    }
    for &space in &altered.fresh {
        change.claim_space(space);
    }
    for &space in unused {
        change.transaction().drop_space(space);
    }
    if let Some(next) = spec.auto_increment {
        change.transaction().set_counter(table.space, next);
    }
    let statistics = statistics_after(old, &table, spec);
    if statistics.is_known() {
        change.put_statistics(&table, &statistics)?;
    }
    change.put_table(record, table)?;
    rename::move_triggers(&mut change, old, record)?;
    let old_name = Name {
        schema: old.schema.clone(),
        table: old.name.clone(),
    };
    foreign_keys::follow(ddl, &mut change, record, &old_name, &spec.renames)?;
    change.commit()
}
