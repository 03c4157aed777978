//! How many statements of each kind sessions have begun: the `Com_…` counters of SHOW STATUS.
//!
//! Each session counts in words of its own, which nobody else writes, so that counting takes a load
//! and a store. They are added up when somebody asks; those of sessions that have ended are kept
//! together ([`super::process::Processes`]).
//!
//! Source: MySQL 8.4 Reference Manual, 7.1.10 "Server Status Variables".

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! commands {
    ($($variant:ident $name:literal,)*) => {
        /// What a counter counts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum CountedCommand {
            $(
                #[doc = concat!("`Com_", $name, "`")]
                $variant,
            )*
        }

        /// The counters' names, in the order of [`CountedCommand`].
        pub const NAMES: &[&str] = &[$(concat!("Com_", $name),)*];

        const COUNT: usize = NAMES.len();
    };
}

commands! {
    AdminCommands "admin_commands",
    AlterDb "alter_db",
    AlterTable "alter_table",
    AlterUser "alter_user",
    Analyze "analyze",
    Begin "begin",
    CallProcedure "call_procedure",
    ChangeDb "change_db",
    Check "check",
    Checksum "checksum",
    Commit "commit",
    CreateDb "create_db",
    CreateIndex "create_index",
    CreateRole "create_role",
    CreateTable "create_table",
    CreateUser "create_user",
    CreateView "create_view",
    DeallocSql "dealloc_sql",
    Delete "delete",
    DeleteMulti "delete_multi",
    Do "do",
    DropDb "drop_db",
    DropEvent "drop_event",
    DropFunction "drop_function",
    DropIndex "drop_index",
    DropProcedure "drop_procedure",
    DropRole "drop_role",
    DropTable "drop_table",
    DropTrigger "drop_trigger",
    DropUser "drop_user",
    DropView "drop_view",
    EmptyQuery "empty_query",
    ExecuteSql "execute_sql",
    ExplainOther "explain_other",
    Flush "flush",
    Grant "grant",
    GrantRoles "grant_roles",
    HaClose "ha_close",
    HaOpen "ha_open",
    HaRead "ha_read",
    Help "help",
    Insert "insert",
    InsertSelect "insert_select",
    Kill "kill",
    Load "load",
    LockInstance "lock_instance",
    LockTables "lock_tables",
    Optimize "optimize",
    PrepareSql "prepare_sql",
    ReleaseSavepoint "release_savepoint",
    RenameTable "rename_table",
    RenameUser "rename_user",
    Repair "repair",
    Replace "replace",
    ReplaceSelect "replace_select",
    Reset "reset",
    Revoke "revoke",
    RevokeRoles "revoke_roles",
    Rollback "rollback",
    RollbackToSavepoint "rollback_to_savepoint",
    Savepoint "savepoint",
    Select "select",
    SetOption "set_option",
    SetPassword "set_password",
    SetRole "set_role",
    ShowBinlogEvents "show_binlog_events",
    ShowBinlogs "show_binlogs",
    ShowCharsets "show_charsets",
    ShowCollations "show_collations",
    ShowCreateDb "show_create_db",
    ShowCreateEvent "show_create_event",
    ShowCreateFunc "show_create_func",
    ShowCreateProc "show_create_proc",
    ShowCreateTable "show_create_table",
    ShowCreateTrigger "show_create_trigger",
    ShowCreateUser "show_create_user",
    ShowDatabases "show_databases",
    ShowEngineStatus "show_engine_status",
    ShowErrors "show_errors",
    ShowEvents "show_events",
    ShowFields "show_fields",
    ShowFunctionStatus "show_function_status",
    ShowGrants "show_grants",
    ShowKeys "show_keys",
    ShowMasterStatus "show_master_status",
    ShowOpenTables "show_open_tables",
    ShowPlugins "show_plugins",
    ShowPrivileges "show_privileges",
    ShowProcedureStatus "show_procedure_status",
    ShowProcesslist "show_processlist",
    ShowProfile "show_profile",
    ShowProfiles "show_profiles",
    ShowReplicas "show_replicas",
    ShowReplicaStatus "show_replica_status",
    ShowStatus "show_status",
    ShowStorageEngines "show_storage_engines",
    ShowTableStatus "show_table_status",
    ShowTables "show_tables",
    ShowTriggers "show_triggers",
    ShowVariables "show_variables",
    ShowWarnings "show_warnings",
    StmtClose "stmt_close",
    StmtExecute "stmt_execute",
    StmtFetch "stmt_fetch",
    StmtPrepare "stmt_prepare",
    StmtReprepare "stmt_reprepare",
    StmtReset "stmt_reset",
    StmtSendLongData "stmt_send_long_data",
    Truncate "truncate",
    UnlockInstance "unlock_instance",
    UnlockTables "unlock_tables",
    Update "update",
    UpdateMulti "update_multi",
    XaCommit "xa_commit",
    XaEnd "xa_end",
    XaPrepare "xa_prepare",
    XaRecover "xa_recover",
    XaRollback "xa_rollback",
    XaStart "xa_start",
}

/// A counter for each command.
pub struct CommandCounts([AtomicU64; COUNT]);

impl Default for CommandCounts {
    fn default() -> CommandCounts {
        CommandCounts([const { AtomicU64::new(0) }; COUNT])
    }
}

impl CommandCounts {
    /// Counts one more. Only the thread that runs the session calls this.
    #[inline]
    pub fn count(&self, command: CountedCommand) {
        let counter = &self.0[command as usize];
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Moves all that was counted to `others`, which other threads may add to as well. Only the
    /// thread that runs the session calls this.
    pub fn move_to(&self, others: &CommandCounts) {
        for (own, other) in self.0.iter().zip(&others.0) {
            let count = own.load(Ordering::Relaxed);
            if count > 0 {
                own.store(0, Ordering::Relaxed);
                other.fetch_add(count, Ordering::Relaxed);
            }
        }
    }

    /// The counts, in the order of [`NAMES`].
    pub fn values(&self) -> Vec<u64> {
        let counters = self.0.iter();
        counters
            .map(|count| count.load(Ordering::Relaxed))
            .collect()
    }
}
