//! CREATE TABLE from definitions and from a query. ([`create_like`](crate::create_like) has the third form.)

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::dictionary::{create_unclaimed, drop_unclaimed};
use porpoise_catalog::record::{ColumnRecord, DefaultRecord, TableRecord};
use porpoise_catalog::{CatalogChange, IndexKind, Relation, Table};
use porpoise_core::error::{Error, Level, Result};
use porpoise_core::reply::{Completion, ResultColumn};
use porpoise_executor::{Exec, View, insert};
use porpoise_expr::SlotId;
use porpoise_expr::typing::declared::{TypeContext, stored_type};
use porpoise_mdl::{HeldTables, MdlContext, MdlScope, MdlTicket, Mode};
use porpoise_planner::foreign_keys::{RowChange, foreign_key_graph};
use porpoise_planner::plan::{
    Insert, InsertSource, OnDuplicate, Plan, PlanKind, Query, SlotLayout,
};
use porpoise_session::SessionTransaction;
use porpoise_session::check;
use porpoise_session::plan_locks::lock_tables_of;
use porpoise_sql::ast;
use porpoise_types::{Collation, DataType};

use crate::column;
use crate::table::{self, Options};
use crate::{Ddl, Name, check_table_name, foreign_keys};

/// Whether CREATE has nothing to do, because the name is taken and IF NOT EXISTS was said.
pub(crate) fn exists(
    ddl: &mut Ddl<'_>,
    name: &Name,
    temporary: bool,
    if_not_exists: bool,
) -> Result<bool> {
    let catalog = ddl.shared.catalog.load_full();
    ddl.check_schema(&catalog, &name.schema)?;
    check_table_name(&name.table)?;
    let taken = match temporary {
        true => ddl.temporary(name).is_some(),
        false => catalog.relation(&name.schema, &name.table).is_some(),
    };
    if !taken {
        return Ok(false);
    }
    let error = Error::table_exists(&name.table);
    if !if_not_exists {
        return Err(error);
    }
    ddl.session.warn(Level::Note, error.into_condition());
    Ok(true)
}

/// Whether the table is to take the place of one of the server's own that the session has dropped.
/// It is a temporary table then, whatever was said: it takes the rows of a dump, and goes with the
/// session.
fn replaces_own_table(ddl: &mut Ddl<'_>, name: &Name, create: &ast::CreateTable) -> bool {
    if create.if_not_exists || create.query.is_some() || !ddl.is_set_aside(name) {
        return false;
    }
    ddl.warn_of_own_table(name);
    true
}

pub fn create(ddl: &mut Ddl<'_>, create: &ast::CreateTable) -> Result<Completion> {
    let name = ddl.resolve(&create.name)?;
    // A session that may not read what the query names gets that error, whether the table exists
    // or not.
    let query = match &create.query {
        Some(query) => Some(ddl.plan(&ast::Statement::Query(query.clone()))?),
        None => None,
    };
    let temporary = create.temporary || replaces_own_table(ddl, &name, create);
    if exists(ddl, &name, temporary, create.if_not_exists)? {
        return Ok(Completion::default());
    }
    if !temporary {
        let locked = &ddl.session.locked_tables;
        locked.admits_change(&name.schema, &name.table)?;
    }
    if create.partition_by.is_some() {
        return Err(Error::not_supported_yet("PARTITION BY"));
    }
    let options = Options::read(&create.options, &name.table, ddl.session)?;
    let schema = ddl.shared.catalog.load().schema(&name.schema).cloned();
    let schema = schema.as_ref().map(|entry| &entry.schema);
    options.check_placement(
        schema.is_some_and(|schema| schema.encrypted) && !temporary,
        ddl.session,
    )?;
    let schema_collation = schema.map_or(Collation::UTF8MB4_0900_AI_CI, |schema| schema.collation);
    let mut printed = Vec::new();
    options.print_into(&mut printed);
    let mut record = TableRecord {
        id: ddl.shared.dictionary.next_table_id(),
        version: ddl.shared.dictionary.next_version(),
        schema: name.schema.clone(),
        name: name.table.clone(),
        space: 0,
        columns: Vec::new(),
        dropped: Vec::new(),
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        collation: options.collation(schema_collation)?.id(),
        comment: options.comment.clone().unwrap_or_default(),
        options: printed,
        created_s: ddl.now_us() / 1_000_000,
        temporary,
    };
    let explicit_null = add_elements(ddl, &mut record, &create.elements)?;
    let keys = create.elements.iter().filter_map(|element| match element {
        ast::TableElement::ForeignKey(key) => Some(key),
        _ => None,
    });
    let parents = foreign_keys::named_parents(keys, &name.schema);
    let query = match query {
        Some(plan) => {
            let PlanKind::Query(output) = &plan.kind else {
                return Err(Error::not_supported_yet("this query in CREATE TABLE"));
            };
            let columns = add_query_columns(&mut record, output, ddl)?;
            Some((plan, columns))
        }
        None => None,
    };
    foreign_keys::complete(&mut record)?;
    table::complete(&mut record, &explicit_null, ddl.session)?;
    let _held = if record.temporary {
        MdlTicket::default()
    } else {
        let (_, held) = foreign_keys::lock(ddl, &name, false, &parents, Mode::Exclusive)?;
        foreign_keys::check_new(ddl, &record)?;
        foreign_keys::check_awaited(ddl, &record)?;
        held
    };
    // Whoever runs the statement fills a temporary table, in the transaction that may have begun
    // before.
    let query = query.filter(|_| !record.temporary);
    let mut read = HeldTables::default();
    let control = ddl.shared.locks.sessions.find(ddl.session.connection_id);
    if let (Some((plan, _)), Some(control)) = (&query, &control) {
        let requester = ddl.session.requester(&ddl.shared.locks);
        let context = MdlContext { requester, control };
        lock_tables_of(
            plan,
            ddl.session,
            context,
            &mut MdlScope::Transaction(&mut read),
        )?;
    }
    let finish = || {
        place(ddl, &mut record);
        let state = Arc::new(ddl.shared.dictionary.new_state());
        let table = Arc::new(table::bind(&record, state)?);
        let filled = query.map(|(plan, columns)| Filling {
            plan,
            columns,
            duplicates: create.duplicates,
        });
        publish(
            ddl,
            &record,
            table,
            options.auto_increment,
            filled,
            create.if_not_exists,
        )
    };
    let completion = finish();
    if let Some(control) = &control {
        read.release(control);
    }
    completion
}

/// Columns, then the keys that columns ask for, then keys and checks, in the order written.
/// Returns the columns that were written with NULL.
fn add_elements(
    ddl: &mut Ddl<'_>,
    record: &mut TableRecord,
    elements: &[ast::TableElement],
) -> Result<Vec<CompactString>> {
    let mut explicit_null = Vec::new();
    let collation = Collation::by_id(record.collation).unwrap_or(Collation::UTF8MB4_0900_AI_CI);
    let now_us = ddl.now_us();
    for element in elements {
        match element {
            ast::TableElement::Column(def) => {
                let mut cx = TypeContext {
                    session: ddl.session,
                    collation,
                    now_us,
                };
                record.columns.push(column::column(def, &mut cx)?);
                if def.nullable == Some(true) {
                    explicit_null.push(def.name.as_str().into());
                }
                table::add_column_keys(record, def)?;
                for check in &def.checks {
                    table::add_check(record, check);
                }
            }
            ast::TableElement::Index(def) => {
                table::add_index(record, def)?;
            }
            ast::TableElement::Check(check) => table::add_check(record, check),
            ast::TableElement::ForeignKey(key) => foreign_keys::add(record, key)?,
        }
    }
    Ok(explicit_null)
}

/// Gives the table and its indexes spaces of their own.
pub(crate) fn place(ddl: &Ddl<'_>, record: &mut TableRecord) {
    record.space = ddl.shared.store.allocate_space().0;
    for index in &mut record.indexes {
        index.space = match index.kind {
            IndexKind::Primary => record.space,
            _ => ddl.shared.store.allocate_space().0,
        };
    }
}

/// What a new table is filled with.
pub(crate) struct Filling {
    plan: Plan,
    /// The table's column for each of the query's.
    columns: Vec<usize>,
    duplicates: ast::Duplicates,
}

impl Filling {
    /// All of a query's columns, in the order of the table's.
    pub(crate) fn of_all(plan: Plan, columns: usize) -> Filling {
        Filling {
            plan,
            columns: (0..columns).collect(),
            duplicates: ast::Duplicates::Error,
        }
    }

    /// The query's plan, with its rows inserted into the new table.
    fn into_insert(self, table: &Arc<Table>) -> Result<(Plan, SlotId)> {
        let mut plan = self.plan;
        let PlanKind::Query(Query { node, output, .. }) = plan.take_kind() else {
            return Err(Error::not_supported_yet("this query in CREATE TABLE"));
        };
        let slot = SlotId(plan.slots.len() as u16);
        plan.slots
            .push(SlotLayout::of_rows(table.name.clone(), table));
        plan.kind = PlanKind::Insert(Insert {
            triggers: None,
            table: Arc::clone(table),
            slot,
            columns: self.columns,
            source: InsertSource::Query { node, output },
            reads_itself: false,
            duplicates: match self.duplicates {
                ast::Duplicates::Replace => OnDuplicate::Replace,
                ast::Duplicates::Error | ast::Duplicates::Ignore => OnDuplicate::Error,
            },
            ignore: self.duplicates == ast::Duplicates::Ignore,
            checks: Vec::new(),
        });
        Ok((plan, slot))
    }
}

/// Makes a finished table exist: its spaces, its rows, its name.
pub(crate) fn publish(
    ddl: &mut Ddl<'_>,
    record: &TableRecord,
    table: Arc<Table>,
    auto_increment: Option<u64>,
    filling: Option<Filling>,
    if_not_exists: bool,
) -> Result<Completion> {
    let spaces: Vec<_> = table.spaces().collect();
    let unclaimed = filling.is_some() || table.temporary;
    if unclaimed {
        create_unclaimed(&ddl.shared.store, &spaces)?;
    }
    let completion = match filling {
        Some(filling) => match fill(ddl, &table, filling) {
            Ok(completion) => completion,
            Err(error) => {
                drop_unclaimed(&ddl.shared.store, &spaces)?;
                return Err(error);
            }
        },
        None => Completion::default(),
    };
    if table.temporary {
        if let Some(next) = auto_increment {
            table.state.raise_auto_increment(next);
        }
        ddl.session
            .temporary_tables
            .insert((table.schema.clone(), table.name.clone()), table);
        return Ok(completion);
    }
    let mut change = CatalogChange::begin(ddl.shared.definitions());
    let schema = change.catalog().schema(&record.schema).cloned();
    let taken = schema
        .as_ref()
        .is_none_or(|entry| entry.relations.contains_key(&record.name));
    let refused = match schema {
        None => Some(Error::unknown_database(&record.schema)),
        Some(_) if taken => Some(Error::table_exists(&record.name)),
        Some(entry) => table::check_names_are_free(record, &entry)
            .and_then(|()| foreign_keys::check_names_are_free(record, &entry))
            .err(),
    };
    if let Some(error) = refused {
        std::mem::drop(change);
        if unclaimed {
            drop_unclaimed(&ddl.shared.store, &spaces)?;
        }
        if if_not_exists && taken {
            ddl.session.warn(Level::Note, error.into_condition());
            return Ok(Completion::default());
        }
        return Err(error);
    }
    for &space in &spaces {
        match unclaimed {
            true => change.claim_space(space),
            false => change.transaction().create_space(space),
        }
    }
    if let Some(next) = auto_increment {
        change.transaction().set_counter(table.space, next.max(1));
    }
    change.put_table(record, table)?;
    let name = Name {
        schema: record.schema.clone(),
        table: record.name.clone(),
    };
    foreign_keys::follow(
        ddl,
        &mut change,
        record,
        &name,
        &foreign_keys::Renames::default(),
    )?;
    change.commit()?;
    Ok(completion)
}

/// Fills the table, which no other session sees yet, with the query's rows.
pub(crate) fn fill(ddl: &mut Ddl<'_>, table: &Arc<Table>, filling: Filling) -> Result<Completion> {
    let (plan, slot) = filling.into_insert(table)?;
    let plan = check::plan(ddl.session, &ddl.shared.accounts, &plan)?;
    let PlanKind::Insert(insert) = &plan.get().kind else {
        return Err(Error::engine_error("a table's filling"));
    };
    let catalog = ddl.shared.catalog.load_full();
    let mut transaction = SessionTransaction::begin(ddl.shared, ddl.session);
    let mut exec = Exec::of_plan(
        ddl.session,
        ddl.shared,
        &catalog,
        View::Transaction(&mut transaction),
        plan,
        ddl.inputs.values,
    );
    if exec.session.foreign_key_checks {
        let change = RowChange {
            inserts: true,
            deletes: matches!(insert.duplicates, OnDuplicate::Replace),
            ..RowChange::default()
        };
        // Nothing refers to the new table but itself: no cascade needs a place for rows.
        let changes = [(Arc::clone(table), change)];
        exec.foreign_keys = foreign_key_graph(&catalog, &changes, &mut |_| slot).map(Arc::new);
    }
    let refers_to_itself = table
        .foreign_keys
        .iter()
        .any(|key| (&key.parent_schema, &key.parent_table) == (&table.schema, &table.name));
    if matches!(insert.duplicates, OnDuplicate::Error) && !insert.ignore && !refers_to_itself {
        exec.begin_filling_new(table)?;
    }
    let completion = insert::insert(&mut exec, insert)?;
    std::mem::drop(exec);
    transaction.commit()?.wait()?;
    Ok(completion)
}

/// Adds the query's columns that were not defined, and finds each of them in the table.
fn add_query_columns(record: &mut TableRecord, query: &Query, ddl: &Ddl<'_>) -> Result<Vec<usize>> {
    let mut defined = std::mem::take(&mut record.columns);
    for result in &query.columns {
        column::check_name(&result.name)?;
        let column = match defined
            .iter()
            .position(|column| column.name.eq_ignore_ascii_case(&result.name))
        {
            Some(position) => defined.remove(position),
            None => query_column(result, ddl)?,
        };
        record.columns.push(column);
    }
    // Columns that only the definition has come first.
    let given = record.columns.len();
    defined.append(&mut record.columns);
    record.columns = defined;
    let first = record.columns.len() - given;
    Ok((first..record.columns.len()).collect())
}

/// The column that keeps what a query's column gives: its source's type and attributes, or the
/// expression's.
fn query_column(result: &ResultColumn, ddl: &Ddl<'_>) -> Result<ColumnRecord> {
    let source = (!result.original_name.is_empty())
        .then(|| {
            ddl.shared
                .catalog
                .load()
                .relation(&result.schema, &result.original_table)
        })
        .flatten();
    let ty = match source {
        Some(_) => result.ty.clone(),
        None => stored_type(&result.ty),
    };
    let mut column = ColumnRecord::new(result.name.clone(), ty, result.nullable);
    if let Some(Relation::Table(table)) = source {
        if let Some(position) = table.column_position(&result.original_name) {
            let of = TableRecord::of(&table).columns.swap_remove(position);
            column.comment = of.comment;
            column.nullable |= of.nullable;
            match of.default {
                DefaultRecord::Expression(_) | DefaultRecord::None if column.nullable => {}
                default => column.default = default,
            }
            column.on_update_now = of.on_update_now;
            if of.auto_increment {
                column.default = DefaultRecord::literal(zero_of(&column.ty), &column.ty);
            }
        }
    } else if !column.nullable {
        column.default = match &column.ty {
            ty if ty.is_numeric() => DefaultRecord::literal(zero_of(ty), ty),
            DataType::Char { .. } | DataType::Varchar { .. } => {
                DefaultRecord::literal("".into(), &column.ty)
            }
            DataType::Binary(_) | DataType::Varbinary(_) => {
                DefaultRecord::literal(Vec::new().into(), &column.ty)
            }
            _ => DefaultRecord::None,
        };
    }
    Ok(column)
}

fn zero_of(ty: &DataType) -> porpoise_types::Value {
    let zero = porpoise_types::Value::Int(0);
    porpoise_types::store(zero.clone(), &DataType::BIGINT, ty, &Default::default())
        .map_or(zero, |(value, _)| value)
}
