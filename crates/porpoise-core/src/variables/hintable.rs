//! The hint SET_VAR: variables that a statement sets for itself (MySQL 8.4 manual, 10.9.3).

use porpoise_types::Value;

use super::{GlobalVariables, Position, Reads, SessionVars, companion, find, set, store};
use crate::error::{Error, Result};
use crate::variables::VARIABLES;

/// The variables that the hint may set, in the order of their names.
const HINTABLE: &[&str] = &[
    "auto_increment_increment",
    "auto_increment_offset",
    "big_tables",
    "bulk_insert_buffer_size",
    "cte_max_recursion_depth",
    "default_tmp_storage_engine",
    "default_week_format",
    "div_precision_increment",
    "end_markers_in_json",
    "eq_range_index_dive_limit",
    "foreign_key_checks",
    "group_concat_max_len",
    "insert_id",
    "internal_tmp_mem_storage_engine",
    "join_buffer_size",
    "lock_wait_timeout",
    "max_error_count",
    "max_execution_time",
    "max_heap_table_size",
    "max_join_size",
    "max_length_for_sort_data",
    "max_points_in_geometry",
    "max_seeks_for_key",
    "max_sort_length",
    "min_examined_row_limit",
    "optimizer_prune_level",
    "optimizer_search_depth",
    "optimizer_switch",
    "range_alloc_block_size",
    "range_optimizer_max_mem_size",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "select_into_buffer_size",
    "select_into_disk_sync",
    "select_into_disk_sync_delay",
    "sort_buffer_size",
    "sql_auto_is_null",
    "sql_big_selects",
    "sql_buffer_result",
    "sql_mode",
    "sql_safe_updates",
    "sql_select_limit",
    "time_zone",
    "timestamp",
    "tmp_table_size",
    "unique_checks",
    "updatable_views_with_limit",
    "windowing_use_high_precision",
];

/// What a session's variables were before a statement set some for itself.
#[derive(Debug, Default)]
pub struct HeldVariables {
    values: Vec<(Position, Value)>,
    /// Those that changed with another.
    followers: Vec<(Position, Value)>,
    fixed_timestamp_us: Option<i64>,
    next_insert_id: u64,
}

impl HeldVariables {
    /// Before the first is set.
    pub fn of(state: &SessionVars) -> HeldVariables {
        HeldVariables {
            values: Vec::new(),
            followers: Vec::new(),
            fixed_timestamp_us: state.fixed_timestamp_us,
            next_insert_id: state.next_insert_id,
        }
    }

    /// Whether the statement has set a variable.
    pub fn has(&self, name: &str) -> bool {
        let mut held = self.values.iter();
        held.any(|(position, _)| VARIABLES[*position].name.eq_ignore_ascii_case(name))
    }

    /// Sets a variable for the statement.
    ///
    /// # Errors
    /// 3128 for an unknown name, 3637 for one that only SET may set, and those of SET.
    pub fn set(
        &mut self,
        name: &str,
        value: Value,
        state: &mut SessionVars,
        globals: &GlobalVariables,
    ) -> Result<()> {
        let unknown = || Error::hint_name_unresolved(format_args!("'{name}'"), "SET_VAR");
        let position = find(&name.to_ascii_lowercase()).ok_or_else(unknown)?;
        let variable = &VARIABLES[position];
        if HINTABLE.binary_search(&variable.name).is_err() {
            return Err(Error::variable_not_hintable(variable.name));
        }
        let before = state.variables[position].clone();
        if let Some((follower, _)) = companion(variable.name, &before) {
            let before = state.variables[follower].clone();
            self.followers.push((follower, before));
        }
        set(position, Reads::Session, Some(value), state, globals)?;
        if let Some(started_us) = state.fixed_timestamp_us
            && variable.name == "timestamp"
        {
            state.statement.started_us = started_us;
        }
        self.values.push((position, before));
        Ok(())
    }

    /// Gives the variables back what they were.
    pub fn restore(self, state: &mut SessionVars) {
        for (position, value) in self.values.into_iter().rev() {
            store(position, value, state);
        }
        for (position, value) in self.followers.into_iter().rev() {
            store(position, value, state);
        }
        state.fixed_timestamp_us = self.fixed_timestamp_us;
        state.next_insert_id = self.next_insert_id;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order() {
        assert!(HINTABLE.is_sorted());
    }

    #[test]
    fn what_was_set_is_as_before() {
        let globals = GlobalVariables::new(&[]).expect("defaults");
        let mut state = globals.begin_session(1, None);
        let mut held = HeldVariables::of(&state);
        let off = Value::text("semijoin=off");
        held.set("Optimizer_Switch", off, &mut state, &globals)
            .expect("a switch");
        assert!(held.has("optimizer_switch"));
        assert!(!state.planner.switches.semijoin());
        held.restore(&mut state);
        assert!(state.planner.switches.semijoin());
    }

    #[test]
    fn other_variables_are_refused() {
        let globals = GlobalVariables::new(&[]).expect("defaults");
        let mut state = globals.begin_session(1, None);
        let mut held = HeldVariables::of(&state);
        for (name, number) in [("nope", 3128), ("autocommit", 3637)] {
            let set = held.set(name, Value::Int(1), &mut state, &globals);
            assert_eq!(set.map_err(|error| error.number()), Err(number));
        }
    }
}
