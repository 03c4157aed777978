//! MIN and MAX of an indexed column.

use porpoise_expr::aggregate::Aggregate;
use porpoise_expr::{Expr, ExprKind};
use porpoise_types::{DataType, Value};

use crate::bind::Binder;
use crate::optimize::order::{self, InterestingOrder};
use crate::optimize::ranges::IndexRanges;
use crate::plan::{Access, KeyRange, Node, RowLock};

/// `SELECT MIN(k)` over an index on k needs its first row alone, `MAX(k)` its last.
pub fn first_row(binder: &Binder<'_>, node: Node, aggregates: &[Aggregate]) -> Node {
    let Node::Scan(scan) = &node else { return node };
    let [aggregate] = aggregates else { return node };
    let last = match aggregate.function.name {
        "MIN" => false,
        "MAX" => true,
        _ => return node,
    };
    let [argument] = &aggregate.arguments[..] else {
        return node;
    };
    let Some((slot, column)) = argument.as_column() else {
        return node;
    };
    if slot != scan.slot || scan.lock != RowLock::None {
        return node;
    }
    let table = &scan.table;
    let wanted = InterestingOrder {
        keys: vec![(slot, column, last)],
        whole: true,
        rows: Some(1.0),
        ..InterestingOrder::default()
    };
    let everything = IndexRanges::all();
    let (access, reverse) = match &scan.access {
        Access::Index { index, ranges, .. } if ranges.len() == 1 => {
            let found = IndexRanges {
                ranges: ranges.clone(),
                ..everything
            };
            match order::of_index(table, slot, *index, &found, &wanted, true) {
                Some(reverse) => (scan.access.clone(), reverse),
                None => return node,
            }
        }
        Access::Full => {
            let of_index = |position: usize| {
                order::of_index(table, slot, position, &everything, &wanted, true)
            };
            let hints = &binder.slots[slot.0 as usize].indexes;
            match (0..table.indexes.len())
                .filter(|at| binder.sees(&table.indexes[*at]) && hints.allows(*at))
                .find_map(|position| Some((position, of_index(position)?)))
            {
                Some((position, reverse)) => {
                    let ranges = vec![KeyRange::ALL];
                    (
                        Access::Index {
                            index: position,
                            ranges,
                            covering: false,
                        },
                        reverse,
                    )
                }
                None => return node,
            }
        }
        _ => return node,
    };
    let mut scan = scan.clone();
    scan.access = access;
    scan.reverse = reverse;
    if argument.nullable {
        scan.filter.push(Expr::boolean(
            ExprKind::IsNull {
                operand: Box::new(argument.clone()),
                negated: true,
            },
            false,
        ));
    }
    let one = Expr::literal(Value::Int(1), DataType::BIGINT);
    Node::Limit {
        input: Box::new(Node::Scan(scan)),
        offset: None,
        count: Some(Box::new(one)),
    }
}
