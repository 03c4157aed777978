//! Optimizer hints: which query block, table and index each is for (MySQL 8.4 manual, 10.9.3).
//!
//! The parser has read them ([`ast::StatementHints`]). [`Hints`] sorts them by query block before
//! the statement is bound; the names of tables and indexes are looked up as FROM is bound
//! ([`Hints::of_table`]). What a hint can't be used for is a warning when the statement is planned.
//! A view's text has query blocks of its own, which come after those known so far.

use std::cell::Cell;
use std::num::NonZeroU64;

use compact_str::CompactString;
use porpoise_catalog::Table;
use porpoise_core::error::{Condition, Error};
use porpoise_core::quote::name as quote_name;
use porpoise_core::variables::Switches;
use porpoise_sql::ast::{self, HintArguments, HintKind, HintTable};

use crate::query::{IndexChoice, IndexHints, SubqueryStrategies, TableSwitch};
use crate::slot_set::SlotSet;

/// The hints of a statement, and of the views in it.
pub struct Hints {
    blocks: Vec<BlockHints>,
    /// How many blocks come before those of the text that is being bound; [`NO_BLOCKS`] where that
    /// has no hints.
    base: usize,
    /// Whether there are hints at all.
    is_used: bool,
    /// Orders of tables that are asked for.
    orders: Vec<Order>,
    /// MAX_EXECUTION_TIME.
    pub max_execution_time_ms: Option<NonZeroU64>,
    /// SET_VAR: planning and execution go by values of its own.
    pub sets_variables: bool,
    warnings: Vec<Condition>,
}

/// Of a text without hints no block is found, whatever its number.
const NO_BLOCKS: usize = usize::MAX;

impl Default for Hints {
    /// Those of a text that has none.
    fn default() -> Hints {
        Hints {
            blocks: Vec::new(),
            base: NO_BLOCKS,
            is_used: false,
            orders: Vec::new(),
            max_execution_time_ms: None,
            sets_variables: false,
            warnings: Vec::new(),
        }
    }
}

/// Those for one query block.
#[derive(Default)]
struct BlockHints {
    /// As warnings name it.
    name: CompactString,
    /// It is in a view's text, of whose hints nothing is told.
    is_in_view: bool,
    is_fixed_order: bool,
    tables: Vec<TableHint>,
    semijoin: Option<(bool, Vec<CompactString>)>,
    subquery: Option<CompactString>,
    /// The slots of the tables in its FROM, by alias.
    slots: Vec<(CompactString, SlotSet)>,
}

/// A hint for a table, or for all tables of a block.
struct TableHint {
    kind: HintKind,
    is_on: bool,
    name: &'static str,
    /// `None`: all tables of the block.
    alias: Option<CompactString>,
    /// None: all.
    indexes: Vec<CompactString>,
    is_found: bool,
}

/// An order of tables.
struct Order {
    kind: HintKind,
    name: &'static str,
    /// The block, from 0, and the alias.
    tables: Vec<(usize, CompactString)>,
    /// It can't be kept.
    is_refused: Cell<bool>,
}

/// An order of tables, by their slots.
#[derive(Clone)]
pub struct TableOrder {
    /// What comes before these, or behind them.
    pub others: Others,
    /// The tables, in order.
    pub tables: Vec<SlotSet>,
    /// Its number among the statement's hints; `None`: STRAIGHT_JOIN.
    pub number: Option<usize>,
}

/// Where tables stand that an order doesn't name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    Anywhere,
    Behind,
    Before,
}

impl Hints {
    /// Those of a statement.
    pub fn of_statement(hints: Option<&ast::StatementHints>, is_query: bool) -> Hints {
        let mut found = Hints::default();
        if let Some(hints) = hints {
            found.base = 0;
            found.add(hints, false, is_query);
        }
        found
    }

    /// The hints of a view's text, which is bound next; what [`Hints::leave_view`] needs.
    pub fn enter_view(&mut self, hints: Option<&ast::StatementHints>) -> usize {
        let outer = std::mem::replace(&mut self.base, NO_BLOCKS);
        if let Some(hints) = hints {
            self.base = self.blocks.len();
            self.add(hints, true, true);
        }
        outer
    }

    pub fn leave_view(&mut self, outer: usize) {
        self.base = outer;
    }

    /// The warnings, those about names that were nowhere found included.
    pub fn take_warnings(&mut self) -> Vec<Condition> {
        for block in self.blocks.iter().filter(|block| !block.is_in_view) {
            for hint in block.tables.iter().filter(|hint| !hint.is_found) {
                if let Some(alias) = &hint.alias {
                    let name = table_name(alias, &block.name);
                    let warning = Error::hint_name_unresolved(name, hint.name);
                    self.warnings.push(warning.into_condition());
                }
            }
        }
        for order in &self.orders {
            if order.is_refused.get() {
                let warning = Error::hint_conflict(self.order_text(order));
                self.warnings.push(warning.into_condition());
            }
            for (block, alias) in &order.tables {
                let block = &self.blocks[*block];
                if block.is_in_view || block.slots.iter().any(|(known, _)| same(known, alias)) {
                    continue;
                }
                let name = table_name(alias, &block.name);
                let warning = Error::hint_name_unresolved(name, order.name);
                self.warnings.push(warning.into_condition());
            }
        }
        std::mem::take(&mut self.warnings)
    }

    fn add(&mut self, hints: &ast::StatementHints, is_in_view: bool, is_query: bool) {
        self.is_used = true;
        let base = self.base;
        self.blocks
            .extend((1..=hints.blocks).map(|number| BlockHints {
                name: format!("select#{number}").into(),
                is_in_view,
                ..BlockHints::default()
            }));
        let told = self.warnings.len();
        for comment in &hints.comments {
            self.name_block(base, comment);
        }
        for comment in &hints.comments {
            let own = base + comment.block as usize - 1;
            for hint in &comment.hints {
                self.add_hint(hint, base, own, is_query);
            }
            if let Some(error) = &comment.error {
                self.warn(Error::hint_syntax(&error.near, error.line));
            }
        }
        if is_in_view {
            self.warnings.truncate(told);
        }
    }

    fn warn(&mut self, warning: Error) {
        self.warnings.push(warning.into_condition());
    }

    fn conflict(&mut self, hint: &ast::Hint, block: usize) {
        let text = self.text(hint, block);
        self.warn(Error::hint_conflict(text));
    }

    /// QB_NAME. A block has one name, and a name one block.
    fn name_block(&mut self, base: usize, comment: &ast::HintComment) {
        let own = base + comment.block as usize - 1;
        let mut is_named = false;
        for hint in &comment.hints {
            let (HintKind::QueryBlockName, HintArguments::Words(words)) =
                (hint.kind, &hint.arguments)
            else {
                continue;
            };
            let Some(name) = words.first() else { continue };
            let mut blocks = self.blocks[base..].iter();
            if is_named || blocks.any(|block| same(&block.name, &name.0)) {
                self.conflict(hint, own);
                continue;
            }
            is_named = true;
            self.blocks[own].name = name.0.clone();
        }
    }

    /// The block that `@name` is.
    fn find_block(&mut self, base: usize, name: &ast::Ident, hint: &ast::Hint) -> Option<usize> {
        let number = || {
            let digits = name.0.strip_prefix("select#")?;
            let number: usize = digits.parse().ok()?;
            let at = base + number.checked_sub(1)?;
            (at < self.blocks.len()).then_some(at)
        };
        let mut blocks = self.blocks[base..].iter();
        let named = blocks.position(|block| same(&block.name, &name.0));
        let found = named.map(|at| base + at).or_else(number);
        if found.is_none() {
            let warning = Error::hint_block_unknown(quote_name(&name.0), hint.name);
            self.warn(warning);
        }
        found
    }

    fn add_hint(&mut self, hint: &ast::Hint, base: usize, own: usize, is_query: bool) {
        let at = match &hint.block {
            None => own,
            Some(name) => match self.find_block(base, name, hint) {
                Some(at) => at,
                None => return,
            },
        };
        match (hint.kind, &hint.arguments) {
            (HintKind::QueryBlockName, _) => {}
            (HintKind::MaxExecutionTime, HintArguments::Number(limit_ms)) => {
                if !is_query || own != base {
                    self.warn(Error::unsupported_max_execution_time());
                } else if self.max_execution_time_ms.is_some() {
                    self.conflict(hint, own);
                } else {
                    self.max_execution_time_ms = NonZeroU64::new(*limit_ms);
                }
            }
            (HintKind::SetVariable, _) => self.sets_variables = true,
            (HintKind::ResourceGroup, _) => self.warn(Error::feature_unsupported(
                "Resource Groups",
                "Porpoise has none",
            )),
            (HintKind::JoinFixedOrder, _) => match self.blocks[at].is_fixed_order {
                true => self.conflict(hint, at),
                false => self.blocks[at].is_fixed_order = true,
            },
            (HintKind::SemiJoin, HintArguments::Words(words)) => {
                self.add_semijoin(hint, at, words);
            }
            (HintKind::Subquery, HintArguments::Words(words)) => {
                let block = &mut self.blocks[at];
                match block.semijoin.is_some() || block.subquery.is_some() {
                    true => self.conflict(hint, at),
                    false => block.subquery = words.first().map(|word| word.0.clone()),
                }
            }
            (
                HintKind::JoinOrder | HintKind::JoinPrefix | HintKind::JoinSuffix,
                HintArguments::Tables { tables, .. },
            ) => self.add_order(hint, base, at, tables),
            (_, HintArguments::Tables { tables, indexes }) => {
                self.add_table_hints(hint, base, at, tables, indexes);
            }
            _ => {}
        }
    }

    fn add_semijoin(&mut self, hint: &ast::Hint, at: usize, words: &[ast::Ident]) {
        let block = &mut self.blocks[at];
        if block.semijoin.is_some() || block.subquery.is_some() {
            self.conflict(hint, at);
            return;
        }
        let words: Vec<CompactString> = words.iter().map(|word| word.0.clone()).collect();
        let is_known = |word: &CompactString| {
            matches!(&**word, "FIRSTMATCH" | "MATERIALIZATION" | "DUPSWEEDOUT")
        };
        if hint.is_on && !words.is_empty() && !words.iter().any(is_known) {
            let text = self.text(hint, at);
            self.warn(Error::hint_has_no_effect(text));
            return;
        }
        self.blocks[at].semijoin = Some((hint.is_on, words));
    }

    fn add_order(&mut self, hint: &ast::Hint, base: usize, at: usize, tables: &[HintTable]) {
        // A block has one first table and one last.
        let is_single = hint.kind != HintKind::JoinOrder;
        let mut others = self.orders.iter();
        let is_again = others.any(|order| {
            order.kind == hint.kind && order.tables.first().is_some_and(|first| first.0 == at)
        });
        if self.blocks[at].is_fixed_order || (is_single && is_again) {
            self.conflict(hint, at);
            return;
        }
        let mut found = Vec::with_capacity(tables.len());
        for table in tables {
            let block = match &table.block {
                None => at,
                Some(name) => match self.find_block(base, name, hint) {
                    Some(block) => block,
                    None => return,
                },
            };
            found.push((block, table.name.0.clone()));
        }
        self.orders.push(Order {
            kind: hint.kind,
            name: hint.name,
            tables: found,
            is_refused: Cell::new(false),
        });
    }

    fn add_table_hints(
        &mut self,
        hint: &ast::Hint,
        base: usize,
        at: usize,
        tables: &[HintTable],
        indexes: &[ast::Ident],
    ) {
        /// What never happens, so that asking for it has no effect.
        const NEVER: &[HintKind] = &[HintKind::MultiRangeRead];
        if hint.is_on && NEVER.contains(&hint.kind) {
            let text = self.text(hint, at);
            self.warn(Error::hint_has_no_effect(text));
        }
        let indexes: Vec<CompactString> = indexes.iter().map(|index| index.0.clone()).collect();
        let whole = [None];
        let named: Vec<Option<&HintTable>> = tables.iter().map(Some).collect();
        for table in if named.is_empty() { &whole[..] } else { &named } {
            let block = match table.and_then(|table| table.block.as_ref()) {
                None => at,
                Some(name) => match self.find_block(base, name, hint) {
                    Some(block) => block,
                    None => continue,
                },
            };
            let new = TableHint {
                kind: hint.kind,
                is_on: hint.is_on,
                name: hint.name,
                alias: table.map(|table| table.name.0.clone()),
                indexes: indexes.clone(),
                is_found: false,
            };
            let mut others = self.blocks[block].tables.iter();
            match others.any(|other| other.meets(&new)) {
                true => self.conflict(hint, at),
                false => self.blocks[block].tables.push(new),
            }
        }
    }

    /// A hint as warnings name it.
    fn text(&self, hint: &ast::Hint, block: usize) -> String {
        let own = &self.blocks[block].name;
        let arguments = match &hint.arguments {
            HintArguments::Tables { tables, .. } if tables.is_empty() => {
                format!("@{}", quote_name(own))
            }
            HintArguments::Tables { tables, indexes } => {
                let name = |table: &HintTable| {
                    let block = table.block.as_ref().map_or(own, |block| &block.0);
                    table_name(&table.name.0, block)
                };
                let tables: Vec<String> = tables.iter().map(name).collect();
                let indexes = indexes.iter().map(|index| quote_name(&index.0));
                let indexes: Vec<String> = indexes.collect();
                format!("{} {}", tables.join(","), indexes.join(","))
            }
            HintArguments::Words(words) if hint.kind == HintKind::QueryBlockName => {
                let names = words.iter().map(|word| quote_name(&word.0));
                names.collect::<Vec<_>>().join(",")
            }
            HintArguments::Words(words) => {
                let words: Vec<&str> = words.iter().map(ast::Ident::as_str).collect();
                format!("@{} {}", quote_name(own), words.join(","))
            }
            HintArguments::Number(number) => number.to_string(),
            HintArguments::Assignment { variable, value } => {
                format!("{}={value}", variable.as_str())
            }
        };
        format!("{}({})", hint.name, arguments.trim_end())
    }

    fn block(&self, number: u32) -> Option<&BlockHints> {
        if !self.is_used {
            return None;
        }
        self.blocks.get(self.position(number)?)
    }

    fn position(&self, number: u32) -> Option<usize> {
        self.base.checked_add(number.checked_sub(1)? as usize)
    }

    /// JOIN_FIXED_ORDER.
    pub fn is_fixed_order(&self, number: u32) -> bool {
        self.block(number).is_some_and(|block| block.is_fixed_order)
    }

    /// Notes where a table of a block's FROM puts its rows.
    pub fn note_slots(&mut self, number: u32, alias: &CompactString, slots: SlotSet) {
        if !self.is_used {
            return;
        }
        let at = self.position(number);
        if let Some(block) = at.and_then(|at| self.blocks.get_mut(at)) {
            block.slots.push((alias.clone(), slots));
        }
    }

    /// The orders asked for whose tables were found.
    pub fn orders(&self) -> impl Iterator<Item = TableOrder> + '_ {
        let orders = self.orders.iter().enumerate();
        orders.filter_map(|(number, order)| {
            let tables = order.tables.iter().map(|(block, alias)| {
                let slots = &self.blocks[*block].slots;
                let found = slots.iter().find(|(known, _)| same(known, alias));
                found.map(|(_, slots)| slots.clone())
            });
            let others = match order.kind {
                HintKind::JoinPrefix => Others::Behind,
                HintKind::JoinSuffix => Others::Before,
                _ => Others::Anywhere,
            };
            Some(TableOrder {
                others,
                tables: tables.collect::<Option<Vec<_>>>()?,
                number: Some(number),
            })
        })
    }

    /// Notes that an order can't be kept.
    pub fn refuse_order(&self, number: usize) {
        self.orders[number].is_refused.set(true);
    }

    /// The hint of an order as warnings name it.
    fn order_text(&self, order: &Order) -> String {
        let names = order.tables.iter().map(|(block, alias)| {
            let block = &self.blocks[*block].name;
            table_name(alias, block)
        });
        let names: Vec<String> = names.collect();
        format!("{}({})", order.name, names.join(","))
    }

    /// What hints say of a table, added to what USE, FORCE and IGNORE INDEX do.
    pub fn of_table(
        &mut self,
        number: u32,
        alias: &str,
        table: Option<&Table>,
        written: IndexHints,
    ) -> IndexHints {
        if !self.is_used {
            return written;
        }
        let at = self.position(number);
        let Some(block) = at.and_then(|at| self.blocks.get_mut(at)) else {
            return written;
        };
        let mut hints = written;
        let mut replaces = true;
        for hint in &mut block.tables {
            if hint.alias.as_ref().is_some_and(|of| !same(of, alias)) {
                continue;
            }
            hint.is_found = true;
            let mut positions = Vec::new();
            for name in &hint.indexes {
                match table.and_then(|table| table.index_position(name)) {
                    Some(position) => positions.push(position),
                    None if block.is_in_view => {}
                    None => {
                        let name =
                            format!("{} {}", table_name(alias, &block.name), quote_name(name));
                        let warning = Error::hint_name_unresolved(name, hint.name);
                        self.warnings.push(warning.into_condition());
                    }
                }
            }
            if !hint.indexes.is_empty() && positions.is_empty() {
                continue;
            }
            if !hint.chooses_indexes() {
                hints.switches.push(TableSwitch {
                    kind: hint.kind,
                    is_on: hint.is_on,
                    indexes: positions,
                });
                continue;
            }
            // These take the place of USE, FORCE and IGNORE INDEX.
            if std::mem::take(&mut replaces) {
                hints.rows = IndexChoice::default();
                hints.grouping = IndexChoice::default();
                hints.sorting = IndexChoice::default();
            }
            let count = table.map_or(0, |table| table.indexes.len());
            for choice in hints.choices_of(hint.kind) {
                choice.choose(hint.is_on, &positions, count);
            }
        }
        hints
    }

    /// How the subquery that a block is may be evaluated.
    pub fn subquery(&self, number: u32, switches: Switches) -> SubqueryStrategies {
        let mut found = SubqueryStrategies {
            semijoin: switches.semijoin(),
            first_match: switches.firstmatch(),
            materialization: switches.materialization(),
            duplicate_weedout: switches.duplicateweedout(),
            into_exists: !switches.materialization(),
        };
        let Some(block) = self.block(number) else {
            return found;
        };
        if let Some(strategy) = &block.subquery {
            found.semijoin = false;
            found.into_exists = strategy == "INTOEXISTS";
        }
        match &block.semijoin {
            None => {}
            Some((is_on, words)) if words.is_empty() => found.semijoin = *is_on,
            Some((is_on, words)) => {
                let names = |strategy: &str| words.iter().any(|word| word == strategy);
                found.semijoin |= *is_on;
                found.first_match = names("FIRSTMATCH") == *is_on;
                found.materialization = names("MATERIALIZATION") == *is_on;
                found.duplicate_weedout = names("DUPSWEEDOUT") == *is_on;
            }
        }
        found
    }
}

impl TableHint {
    /// Whether two hints are about the same.
    fn meets(&self, other: &TableHint) -> bool {
        let is_same_table = match (&self.alias, &other.alias) {
            (Some(a), Some(b)) => same(a, b),
            (None, None) => true,
            _ => false,
        };
        let has = |index: &CompactString| other.indexes.iter().any(|known| same(known, index));
        self.kind == other.kind
            && is_same_table
            && (self.indexes.is_empty() || other.indexes.is_empty() || self.indexes.iter().any(has))
    }

    fn chooses_indexes(&self) -> bool {
        matches!(
            self.kind,
            HintKind::Index | HintKind::JoinIndex | HintKind::GroupIndex | HintKind::OrderIndex
        )
    }
}

fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

fn table_name(alias: &str, block: &str) -> String {
    format!("{}@{}", quote_name(alias), quote_name(block))
}
