//! What was found out about a join tree while its order is searched for: each part is looked into
//! once, however many searches come by it. Semi-joins nest, and each level's search asks for all
//! levels below it.

use std::cell::RefCell;
use std::rc::Rc;

use hashbrown::HashMap;
use porpoise_sql::ast::HintKind;

use crate::bind::Binder;
use crate::optimize::add_slots;
use crate::plan::RowLock;
use crate::query::{JoinTree, Source, SourceKind};
use crate::slot_set::SlotSet;

/// A part of a tree, which stays where it is while something is known of it, and the slots filled
/// before that conditions on it read.
type Opening = (*const JoinTree, SlotSet);

/// What is known of the parts of one tree.
#[derive(Default)]
pub struct Parts {
    /// What opening a part costs, and how many rows come.
    costs: RefCell<HashMap<Opening, (f64, f64)>>,
    insides: RefCell<HashMap<*const JoinTree, Rc<Inside>>>,
}

/// What the order of a join asks of a part of its tree.
#[derive(Clone)]
pub struct Inside {
    /// What its sources fill.
    pub slots: SlotSet,
    /// What its expressions and planned tables read, of its own and of others.
    pub reads: SlotSet,
    /// BNL and HASH_JOIN let it be joined by a hash table.
    pub may_hash: bool,
    /// Hints let it be a semi-join that keeps its rows.
    pub may_materialize: bool,
    /// Hints let it be a semi-join that looks for the first match.
    pub may_match_first: bool,
    /// Hints let it be joined as by an inner join, and duplicates be weeded out.
    pub may_weed_out: bool,
    /// It yields the same rows whenever it is read.
    pub is_stable: bool,
}

impl Default for Inside {
    fn default() -> Inside {
        Inside {
            slots: SlotSet::default(),
            reads: SlotSet::default(),
            may_hash: true,
            may_materialize: true,
            may_match_first: true,
            may_weed_out: true,
            is_stable: true,
        }
    }
}

impl Inside {
    fn add(&mut self, other: &Inside) {
        self.slots.add(&other.slots);
        self.reads.add(&other.reads);
        self.may_hash &= other.may_hash;
        self.may_materialize &= other.may_materialize;
        self.may_match_first &= other.may_match_first;
        self.may_weed_out &= other.may_weed_out;
        self.is_stable &= other.is_stable;
    }

    fn add_source(&mut self, binder: &Binder<'_>, source: &Source) {
        self.slots.insert(source.slot);
        if let SourceKind::Planned { free, .. } = &source.kind {
            self.reads.add(free);
        }
        let (switches, hints) = (binder.switches(), &source.hints);
        let is_on = |hint, switch| hints.is_on(hint, None, switch);
        self.may_hash &= is_on(HintKind::BlockNestedLoop, switches.block_nested_loop())
            && is_on(HintKind::HashJoin, switches.hash_join());
        if let Some(joined) = hints.joined_as {
            self.may_materialize &= joined.materialization;
            self.may_match_first &= joined.first_match;
            self.may_weed_out &= joined.duplicate_weedout;
        }
        self.is_stable &=
            source.lock == RowLock::None && !matches!(source.kind, SourceKind::Working { .. });
    }
}

impl Parts {
    pub fn inside(&self, binder: &Binder<'_>, tree: &JoinTree) -> Rc<Inside> {
        let key = std::ptr::from_ref(tree);
        if let Some(known) = self.insides.borrow().get(&key) {
            return Rc::clone(known);
        }
        let mut inside = Inside::default();
        match tree {
            JoinTree::One => {}
            JoinTree::Leaf(_) => {
                tree.for_each_expr(&mut |expr| add_slots(binder, expr, &mut inside.reads));
                tree.for_each_source(&mut |source| inside.add_source(binder, source));
            }
            JoinTree::Filtered { tree, conditions } => {
                inside.add(&self.inside(binder, tree));
                for condition in conditions {
                    add_slots(binder, condition, &mut inside.reads);
                }
            }
            JoinTree::Join {
                left, right, on, ..
            } => {
                inside.add(&self.inside(binder, left));
                inside.add(&self.inside(binder, right));
                for condition in on {
                    add_slots(binder, condition, &mut inside.reads);
                }
            }
        }
        let inside = Rc::new(inside);
        self.insides.borrow_mut().insert(key, Rc::clone(&inside));
        inside
    }

    pub fn cost(&self, opening: &Opening) -> Option<(f64, f64)> {
        self.costs.borrow().get(opening).copied()
    }

    pub fn note_cost(&self, opening: Opening, cost: (f64, f64)) {
        self.costs.borrow_mut().insert(opening, cost);
    }
}
