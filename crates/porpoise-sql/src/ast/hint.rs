//! Optimizer hints: what a statement asks of the planner (MySQL 8.4 manual, 10.9.3).

use super::name::Ident;

/// The optimizer hints of a statement, those of its subqueries included.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StatementHints {
    /// A comment each query block that has one, in the order of the text.
    pub comments: Vec<HintComment>,
    /// How many query blocks the statement has; they are numbered from 1.
    pub blocks: u32,
}

/// The hints between `/*+` and `*/`.
#[derive(Debug, Clone, PartialEq)]
pub struct HintComment {
    /// The number of the query block that it was written in.
    pub block: u32,
    /// Those that could be read.
    pub hints: Vec<Hint>,
    /// Where the rest could not be.
    pub error: Option<HintError>,
}

/// A place in a statement's text where a hint was expected and something else was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HintError {
    /// The text from there on.
    pub near: Box<str>,
    /// The line, from 1.
    pub line: u32,
}

/// One hint.
#[derive(Debug, Clone, PartialEq)]
pub struct Hint {
    /// Which.
    pub kind: HintKind,
    /// Its name has no `NO_`.
    pub is_on: bool,
    /// Its name, in upper case.
    pub name: &'static str,
    /// `@name`, before its arguments: the query block it is for, if not the one it is written in.
    pub block: Option<Ident>,
    /// What it is about.
    pub arguments: HintArguments,
}

/// What a hint is about.
#[derive(Debug, Clone, PartialEq)]
pub enum HintArguments {
    /// Tables; none: all of the query block. The indexes are those of the only table; none: all.
    Tables {
        /// In the order written.
        tables: Vec<HintTable>,
        /// Of the only table.
        indexes: Vec<Ident>,
    },
    /// Words: strategies; the name of a query block, of a resource group.
    Words(Vec<Ident>),
    /// A number of milliseconds.
    Number(u64),
    /// `variable = value`, the value as a text.
    Assignment {
        /// The variable's name.
        variable: Ident,
        /// What it is to be.
        value: HintValue,
    },
}

/// What SET_VAR gives a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HintValue {
    /// A number, whose suffix (K, M, G) is applied.
    Number(u64),
    /// A number with a sign or a decimal point.
    Real(Box<str>),
    /// A word or a string.
    Text(Box<str>),
}

impl std::fmt::Display for HintValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HintValue::Number(number) => write!(f, "{number}"),
            HintValue::Real(text) => f.write_str(text),
            HintValue::Text(text) => write!(f, "'{text}'"),
        }
    }
}

impl StatementHints {
    /// Whether a hint is SET_VAR.
    pub fn sets_variables(&self) -> bool {
        let mut hints = self.comments.iter().flat_map(|comment| &comment.hints);
        hints.any(|hint| hint.kind == HintKind::SetVariable)
    }
}

/// A table that a hint names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HintTable {
    /// Its alias, or its name where it has none.
    pub name: Ident,
    /// `@name`: the query block that it is in.
    pub block: Option<Ident>,
}

/// What hints are about. Most have a name, and the same with `NO_` before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HintKind {
    /// `BKA`: batched key access.
    BatchedKeyAccess,
    /// `BNL`: hash joins, which have taken the place of block nested loops.
    BlockNestedLoop,
    /// `DERIVED_CONDITION_PUSHDOWN`.
    DerivedConditionPushdown,
    /// `GROUP_INDEX`: indexes for grouping.
    GroupIndex,
    /// `HASH_JOIN`.
    HashJoin,
    /// `INDEX`: indexes for anything.
    Index,
    /// `INDEX_MERGE`: several indexes for one table.
    IndexMerge,
    /// `JOIN_FIXED_ORDER`: tables in the order of FROM.
    JoinFixedOrder,
    /// `JOIN_INDEX`: indexes for finding rows.
    JoinIndex,
    /// `JOIN_ORDER`: the order of some tables.
    JoinOrder,
    /// `JOIN_PREFIX`: the first tables.
    JoinPrefix,
    /// `JOIN_SUFFIX`: the last tables.
    JoinSuffix,
    /// `MAX_EXECUTION_TIME`.
    MaxExecutionTime,
    /// `MERGE`: derived tables become part of the query around them.
    Merge,
    /// `MRR`: reads of rows in the order of their keys.
    MultiRangeRead,
    /// `NO_ICP`: conditions are not checked on index entries.
    IndexConditionPushdown,
    /// `NO_RANGE_OPTIMIZATION`: no ranges of an index.
    RangeOptimization,
    /// `ORDER_INDEX`: indexes for sorting.
    OrderIndex,
    /// `QB_NAME`: a name for the query block.
    QueryBlockName,
    /// `RESOURCE_GROUP`.
    ResourceGroup,
    /// `SEMIJOIN`.
    SemiJoin,
    /// `SKIP_SCAN`.
    SkipScan,
    /// `SET_VAR`.
    SetVariable,
    /// `SUBQUERY`: how a subquery that is no semi-join is evaluated.
    Subquery,
}
