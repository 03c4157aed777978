//! Which `Com_…` counter of SHOW STATUS a statement counts in.

use porpoise_mdl::command_counts::CountedCommand as C;
use porpoise_sql::ast::{self, ShowWhat, Statement as S};

/// The counter of a statement; `None` for what has none here.
pub(super) fn command_of(statement: &S) -> Option<C> {
    Some(match statement {
        S::Query(_) => C::Select,
        S::Insert(insert) => {
            let from_query = matches!(insert.source, ast::InsertSource::Query(_));
            match (insert.replace, from_query) {
                (false, false) => C::Insert,
                (false, true) => C::InsertSelect,
                (true, false) => C::Replace,
                (true, true) => C::ReplaceSelect,
            }
        }
        S::Update(update) => match &update.tables[..] {
            [ast::TableRef::Table(_)] => C::Update,
            _ => C::UpdateMulti,
        },
        S::Delete(delete) if delete.targets.is_empty() => C::Delete,
        S::Delete(_) => C::DeleteMulti,
        S::LoadData(_) => C::Load,
        S::Empty => C::EmptyQuery,
        S::Do(_) => C::Do,
        S::Call { .. } => C::CallProcedure,
        S::Show(show) => return shown(&show.what),
        S::Describe { .. } => C::ShowFields,
        S::Explain(_) => C::ExplainOther,
        S::Maintain { action, .. } => match action {
            ast::Maintenance::Analyze => C::Analyze,
            ast::Maintenance::Check => C::Check,
            ast::Maintenance::Optimize => C::Optimize,
            ast::Maintenance::Repair => C::Repair,
            ast::Maintenance::Checksum => C::Checksum,
        },
        S::Histogram(_) => C::Analyze,
        S::Unsupported { .. } => return None,
        statement => return of_definitions(statement).or_else(|| of_session(statement)),
    })
}

/// Statements that change definitions and accounts.
fn of_definitions(statement: &S) -> Option<C> {
    Some(match statement {
        S::CreateDatabase { .. } => C::CreateDb,
        S::AlterDatabase { .. } => C::AlterDb,
        S::DropDatabase { .. } => C::DropDb,
        S::CreateTable(_) | S::CreateTableLike { .. } => C::CreateTable,
        S::AlterTable(_) => C::AlterTable,
        S::DropTable { .. } => C::DropTable,
        S::Truncate(_) => C::Truncate,
        S::RenameTable(_) => C::RenameTable,
        S::CreateIndex { .. } => C::CreateIndex,
        S::DropIndex { .. } => C::DropIndex,
        S::CreateView(_) => C::CreateView,
        S::DropView { .. } => C::DropView,
        S::DropStored { kind, .. } => match *kind {
            "EVENT" => C::DropEvent,
            "FUNCTION" => C::DropFunction,
            "PROCEDURE" => C::DropProcedure,
            _ => C::DropTrigger,
        },
        S::CreateUser(_) => C::CreateUser,
        S::AlterUser(_) => C::AlterUser,
        S::DropUser { .. } => C::DropUser,
        S::RenameUser(_) => C::RenameUser,
        S::CreateRole { .. } => C::CreateRole,
        S::DropRole { .. } => C::DropRole,
        S::SetPassword { .. } => C::SetPassword,
        S::Grant(grant) => match **grant {
            ast::Grant::Roles { .. } => C::GrantRoles,
            _ => C::Grant,
        },
        S::Revoke(revoke) => match revoke.what {
            ast::RevokeWhat::Roles(_) => C::RevokeRoles,
            _ => C::Revoke,
        },
        _ => return None,
    })
}

/// The session's own statements, and those of the server.
fn of_session(statement: &S) -> Option<C> {
    Some(match statement {
        S::Begin { .. } => C::Begin,
        S::Commit(_) => C::Commit,
        S::Rollback(_) => C::Rollback,
        S::Savepoint(_) => C::Savepoint,
        S::RollbackTo(_) => C::RollbackToSavepoint,
        S::ReleaseSavepoint(_) => C::ReleaseSavepoint,
        S::Xa(xa) => match **xa {
            ast::Xa::Start { .. } => C::XaStart,
            ast::Xa::End { .. } => C::XaEnd,
            ast::Xa::Prepare(_) => C::XaPrepare,
            ast::Xa::Commit { .. } => C::XaCommit,
            ast::Xa::Rollback(_) => C::XaRollback,
            ast::Xa::Recover { .. } => C::XaRecover,
        },
        S::LockTables(_) => C::LockTables,
        S::UnlockTables => C::UnlockTables,
        S::LockInstance { lock: true } => C::LockInstance,
        S::LockInstance { lock: false } => C::UnlockInstance,
        S::SetTransaction { .. } | S::Set(_) => C::SetOption,
        S::SetRole(_) | S::SetDefaultRole { .. } => C::SetRole,
        S::Use(_) => C::ChangeDb,
        S::Help(_) => C::Help,
        S::Handler(handler) => match **handler {
            ast::Handler::Open { .. } => C::HaOpen,
            ast::Handler::Read(_) => C::HaRead,
            ast::Handler::Close(_) => C::HaClose,
        },
        S::Kill { .. } => C::Kill,
        S::Prepare { .. } => C::PrepareSql,
        S::Execute { .. } => C::ExecuteSql,
        S::Deallocate(_) => C::DeallocSql,
        S::Flush { .. } => C::Flush,
        S::Reset(_) | S::ResetPersist { .. } => C::Reset,
        _ => return None,
    })
}

fn shown(what: &ShowWhat) -> Option<C> {
    Some(match what {
        ShowWhat::Databases => C::ShowDatabases,
        ShowWhat::Tables { .. } => C::ShowTables,
        ShowWhat::TableStatus { .. } => C::ShowTableStatus,
        ShowWhat::OpenTables { .. } => C::ShowOpenTables,
        ShowWhat::Columns { .. } => C::ShowFields,
        ShowWhat::Indexes { .. } => C::ShowKeys,
        ShowWhat::Triggers { .. } => C::ShowTriggers,
        ShowWhat::Events { .. } => C::ShowEvents,
        ShowWhat::CreateDatabase { .. } => C::ShowCreateDb,
        ShowWhat::CreateTable(_) | ShowWhat::CreateView(_) => C::ShowCreateTable,
        ShowWhat::CreateRoutine(kind, _) => match *kind {
            "EVENT" => C::ShowCreateEvent,
            "FUNCTION" => C::ShowCreateFunc,
            "PROCEDURE" => C::ShowCreateProc,
            _ => C::ShowCreateTrigger,
        },
        ShowWhat::CreateUser(_) => C::ShowCreateUser,
        ShowWhat::Variables { .. } => C::ShowVariables,
        ShowWhat::Status { .. } => C::ShowStatus,
        ShowWhat::ProcessList { .. } => C::ShowProcesslist,
        ShowWhat::Grants { .. } => C::ShowGrants,
        ShowWhat::Warnings { .. } => C::ShowWarnings,
        ShowWhat::Errors { .. } => C::ShowErrors,
        ShowWhat::Engines => C::ShowStorageEngines,
        ShowWhat::Engine(..) => C::ShowEngineStatus,
        ShowWhat::Plugins => C::ShowPlugins,
        ShowWhat::Privileges => C::ShowPrivileges,
        ShowWhat::CharacterSets => C::ShowCharsets,
        ShowWhat::Collations => C::ShowCollations,
        ShowWhat::ProcedureStatus => C::ShowProcedureStatus,
        ShowWhat::FunctionStatus => C::ShowFunctionStatus,
        ShowWhat::Profiles => C::ShowProfiles,
        ShowWhat::Profile { .. } => C::ShowProfile,
        ShowWhat::BinaryLogs => C::ShowBinlogs,
        ShowWhat::BinaryLogStatus => C::ShowMasterStatus,
        ShowWhat::BinlogEvents => C::ShowBinlogEvents,
        ShowWhat::ReplicaStatus => C::ShowReplicaStatus,
        ShowWhat::Replicas => C::ShowReplicas,
        ShowWhat::RoutineCode(_) => return None,
    })
}
