//! Variables that are lists of flags, `optimizer_switch` before all; and what of the variables the
//! planner reads.
//!
//! Source: MySQL 8.4 Reference Manual, 10.9.2 (Switchable Optimizations), 7.1.8.

/// A flag of such a variable.
#[derive(Debug)]
pub struct Flag {
    /// As it is written.
    pub name: &'static str,
    /// Whether it is on by default.
    pub is_on: bool,
    /// The only value that does what it says, where the other has no effect.
    pub only: Option<bool>,
}

/// The flags of a variable: bit *n* is flag *n*.
#[derive(Debug)]
pub struct FlagSet(pub &'static [Flag]);

/// A variable's kind holds a reference to its flags; there is one list each.
impl PartialEq for FlagSet {
    fn eq(&self, other: &FlagSet) -> bool {
        std::ptr::eq(self, other)
    }
}

impl FlagSet {
    /// The flags that are on by default.
    pub const fn default_bits(&self) -> u64 {
        let (mut bits, mut at) = (0, 0);
        while at < self.0.len() {
            bits |= (self.0[at].is_on as u64) << at;
            at += 1;
        }
        bits
    }

    /// Whether a flag is on in a value of the variable.
    pub fn is_on(&self, name: &str, value: &str) -> bool {
        let bits = self.changed(0, value).unwrap_or(0);
        let at = self.0.iter().position(|flag| flag.name == name);
        at.is_some_and(|at| bits >> at & 1 == 1)
    }

    /// As the variable's value shows them.
    pub fn text(&self, bits: u64) -> String {
        let shown = self.0.iter().enumerate().map(|(at, flag)| {
            let is_on = bits >> at & 1 == 1;
            format!("{}={}", flag.name, if is_on { "on" } else { "off" })
        });
        shown.collect::<Vec<_>>().join(",")
    }

    /// What a list of commands makes of the flags: `default`, then `name=on|off|default` in any
    /// order. `None` for another word, and for a flag named twice.
    pub fn changed(&self, bits: u64, commands: &str) -> Option<u64> {
        let mut bits = bits;
        let mut set = 0u64;
        let mut values = 0u64;
        let mut is_default = false;
        let commands = commands.split(',').map(str::trim);
        for command in commands.filter(|command| !command.is_empty()) {
            let Some((name, value)) = command.split_once('=') else {
                if is_default || !command.eq_ignore_ascii_case("default") {
                    return None;
                }
                is_default = true;
                continue;
            };
            let (name, value) = (name.trim(), value.trim());
            let at = self
                .0
                .iter()
                .position(|flag| flag.name.eq_ignore_ascii_case(name))?;
            let is_on = match value.to_ascii_lowercase().as_str() {
                "on" => true,
                "off" => false,
                "default" => self.0[at].is_on,
                _ => return None,
            };
            if set >> at & 1 == 1 {
                return None;
            }
            set |= 1 << at;
            values |= u64::from(is_on) << at;
        }
        if is_default {
            bits = self.default_bits();
        }
        Some(bits & !set | values)
    }

    /// The flags that a change gives a value which has no effect.
    pub fn without_effect(&self, before: u64, after: u64) -> impl Iterator<Item = &'static str> {
        let flags = self.0.iter().enumerate();
        let idle = flags.filter(move |(at, flag)| {
            let is_on = |bits: u64| bits >> at & 1 == 1;
            is_on(before) != is_on(after) && flag.only.is_some_and(|only| only != is_on(after))
        });
        idle.map(|(_, flag)| flag.name)
    }
}

const fn flag(name: &'static str, is_on: bool) -> Flag {
    Flag {
        name,
        is_on,
        only: None,
    }
}

/// A flag that only has its default's effect.
const fn fixed(name: &'static str, is_on: bool) -> Flag {
    Flag {
        name,
        is_on,
        only: Some(is_on),
    }
}

/// `optimizer_switch`'s flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Switches(pub u64);

macro_rules! switches {
    ($($method:ident = $bit:literal $flag:expr;)*) => {
        impl Switches {
            /// In the order in which `@@optimizer_switch` prints them.
            pub const FLAGS: &'static FlagSet = &FlagSet(&[$($flag),*]);
            $(
                #[doc = concat!("Whether `", stringify!($method), "` is on.")]
                pub const fn $method(self) -> bool {
                    self.0 & (1 << $bit) != 0
                }
            )*
        }
    };
}

impl Switches {
    /// Those of a value of the variable.
    pub fn of(value: &str) -> Switches {
        let bits = Switches::FLAGS.changed(0, value);
        Switches(bits.unwrap_or(Switches::FLAGS.default_bits()))
    }
}

// Off, a flag whose optimisation never happens says what is so: that needs no warning.
switches! {
    index_merge = 0 flag("index_merge", true);
    index_merge_union = 1 flag("index_merge_union", true);
    index_merge_sort_union = 2 flag("index_merge_sort_union", true);
    index_merge_intersection = 3 flag("index_merge_intersection", true);
    engine_condition_pushdown = 4 flag("engine_condition_pushdown", true);
    index_condition_pushdown = 5 flag("index_condition_pushdown", true);
    mrr = 6 flag("mrr", true);
    mrr_cost_based = 7 flag("mrr_cost_based", true);
    block_nested_loop = 8 flag("block_nested_loop", true);
    batched_key_access = 9 flag("batched_key_access", false);
    materialization = 10 flag("materialization", true);
    semijoin = 11 flag("semijoin", true);
    loosescan = 12 flag("loosescan", true);
    firstmatch = 13 flag("firstmatch", true);
    duplicateweedout = 14 flag("duplicateweedout", true);
    subquery_materialization_cost_based = 15 fixed("subquery_materialization_cost_based", true);
    use_index_extensions = 16 flag("use_index_extensions", true);
    condition_fanout_filter = 17 flag("condition_fanout_filter", true);
    derived_merge = 18 flag("derived_merge", true);
    use_invisible_indexes = 19 flag("use_invisible_indexes", false);
    skip_scan = 20 flag("skip_scan", true);
    hash_join = 21 flag("hash_join", true);
    subquery_to_derived = 22 fixed("subquery_to_derived", false);
    prefer_ordering_index = 23 flag("prefer_ordering_index", true);
    hypergraph_optimizer = 24 fixed("hypergraph_optimizer", false);
    derived_condition_pushdown = 25 flag("derived_condition_pushdown", true);
    hash_set_operations = 26 fixed("hash_set_operations", true);
}

/// `optimizer_trace`'s flags.
pub static TRACE_FLAGS: FlagSet = FlagSet(&[flag("enabled", false), flag("one_line", false)]);

/// `optimizer_trace_features`'s flags.
pub static TRACE_FEATURES: FlagSet = FlagSet(&[
    flag("greedy_search", true),
    flag("range_optimizer", true),
    fixed("dynamic_range", true),
    fixed("repeated_subselect", true),
]);

/// What the planner goes by beside a statement and its tables. A plan is made for one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlannerSettings {
    /// `optimizer_switch`.
    pub switches: Switches,
    /// `optimizer_search_depth`: of more tables than these not every order is tried; 0: as many as
    /// the planner finds good.
    pub search_depth: u8,
    /// `optimizer_prune_level`: orders that seem bad are not tried.
    pub prunes: bool,
    /// `eq_range_index_dive_limit`: the entries of so many single keys and more are told by the
    /// statistics of the index; 0: of none.
    pub index_dive_limit: u32,
    /// `range_optimizer_max_mem_size`: where the ranges of a table's indexes would take more, none
    /// are made; 0: there is no limit.
    pub range_bytes_max: u64,
}

impl Default for PlannerSettings {
    /// MySQL 8.4's defaults.
    fn default() -> PlannerSettings {
        PlannerSettings {
            switches: Switches(Switches::FLAGS.default_bits()),
            search_depth: 62,
            prunes: true,
            index_dive_limit: 200,
            range_bytes_max: 8_388_608,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: u64 = 0;

    #[test]
    fn commands_change_the_flags_they_name() {
        let flags = Switches::FLAGS;
        let default = flags.default_bits();
        let off = flags.changed(default, "semijoin=off, mrr=OFF");
        let off = off.expect("two flags");
        assert!(!Switches(off).semijoin() && !Switches(off).mrr() && Switches(off).hash_join());
        assert_eq!(flags.changed(off, "semijoin=default,mrr=on"), Some(default));
        // `default` is first wherever it stands.
        let again = flags.changed(NOTHING, "semijoin=off,default").map(Switches);
        assert!(again.is_some_and(|again| !again.semijoin() && again.hash_join()));
        assert_eq!(flags.changed(default, ""), Some(default));
    }

    #[test]
    fn other_words_and_repetitions_are_refused() {
        for wrong in [
            "semijoin",
            "semijoin=maybe",
            "nope=on",
            "semijoin=on,semijoin=on",
            "default,default",
        ] {
            assert_eq!(Switches::FLAGS.changed(NOTHING, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn values_without_effect_are_told() {
        let told = |commands| {
            let default = Switches::FLAGS.default_bits();
            let after = Switches::FLAGS.changed(default, commands).expect(commands);
            let flags = Switches::FLAGS.without_effect(default, after);
            flags.collect::<Vec<_>>()
        };
        assert!(told("semijoin=off,mrr=off").is_empty());
        let idle = told("subquery_to_derived=on,hash_set_operations=off");
        assert_eq!(idle, ["subquery_to_derived", "hash_set_operations"]);
    }
}
