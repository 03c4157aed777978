//! Walks over plans: the nodes below a node, the expressions of a node, the plans of subqueries.

use porpoise_expr::{Expr, ExprKind};

use super::{Access, InsertSource, KeyRange, Node, Plan, PlanKind, Subplan, Window};

impl Node {
    /// The nodes directly below the node.
    pub(crate) fn children(&self) -> Vec<&Node> {
        match self {
            Node::One
            | Node::Empty
            | Node::Scan(_)
            | Node::Values { .. }
            | Node::JsonTable { .. }
            | Node::Virtual { .. }
            | Node::Working { .. } => Vec::new(),
            Node::Derived { input, .. }
            | Node::Filter { input, .. }
            | Node::Project { input, .. }
            | Node::Sort { input, .. }
            | Node::Batch { input, .. }
            | Node::Distinct { input, .. }
            | Node::Limit { input, .. }
            | Node::Measured { input, .. } => vec![input],
            Node::Recursive { seed, step, .. } => vec![seed, step],
            Node::NestedLoop { left, right, .. } | Node::HashJoin { left, right, .. } => {
                vec![left, right]
            }
            Node::Group(group) => vec![&group.input],
            Node::SetOperation { inputs, .. } => inputs.iter().map(|(node, _)| node).collect(),
            Node::Window(window) => vec![&window.input],
        }
    }

    /// How many nodes there are, with those below.
    pub(crate) fn len(&self) -> usize {
        let (mut count, mut rest) = (0, vec![self]);
        while let Some(node) = rest.pop() {
            count += 1;
            rest.extend(node.children());
        }
        count
    }

    /// The nodes directly below the node, to be changed.
    pub(crate) fn children_mut(&mut self) -> Vec<&mut Node> {
        match self {
            Node::One
            | Node::Empty
            | Node::Scan(_)
            | Node::Values { .. }
            | Node::JsonTable { .. }
            | Node::Virtual { .. }
            | Node::Working { .. } => Vec::new(),
            Node::Derived { input, .. }
            | Node::Filter { input, .. }
            | Node::Project { input, .. }
            | Node::Sort { input, .. }
            | Node::Batch { input, .. }
            | Node::Distinct { input, .. }
            | Node::Limit { input, .. }
            | Node::Measured { input, .. } => vec![input],
            Node::Recursive { seed, step, .. } => vec![seed, step],
            Node::NestedLoop { left, right, .. } | Node::HashJoin { left, right, .. } => {
                vec![left, right]
            }
            Node::Group(group) => vec![&mut group.input],
            Node::SetOperation { inputs, .. } => inputs.iter_mut().map(|(node, _)| node).collect(),
            Node::Window(window) => vec![&mut window.input],
        }
    }

    /// The expressions of the node itself, without those of the nodes below it.
    pub(crate) fn exprs(&self) -> Vec<&Expr> {
        match self {
            Node::Scan(scan) => {
                let of_entries = scan.index_condition.iter();
                let of_entries = of_entries.flat_map(|condition| &condition.conditions);
                let exprs = of_entries.chain(&scan.filter);
                exprs.chain(scan.access.exprs()).collect()
            }
            Node::Virtual { filter, .. } => filter.iter().collect(),
            Node::Values { rows, .. } => rows.iter().flatten().collect(),
            Node::JsonTable { doc, .. } => vec![doc],
            Node::Derived { output, .. } | Node::Project { output, .. } => output.iter().collect(),
            Node::Filter { conditions, .. } => conditions.iter().collect(),
            Node::NestedLoop { condition, .. } => condition.iter().collect(),
            Node::HashJoin {
                condition,
                left_keys,
                right_keys,
                ..
            } => condition
                .iter()
                .chain(left_keys)
                .chain(right_keys)
                .collect(),
            Node::Group(group) => group
                .keys
                .iter()
                .chain(
                    group
                        .aggregates
                        .iter()
                        .flat_map(|aggregate| &aggregate.arguments),
                )
                .collect(),
            Node::Sort { keys, .. } | Node::Batch { keys, .. } => {
                keys.iter().map(|key| &key.expr).collect()
            }
            Node::Distinct { keys, .. } => keys.iter().collect(),
            Node::Limit { offset, count, .. } => {
                offset.iter().chain(count).map(|expr| &**expr).collect()
            }
            Node::Recursive {
                seed_output,
                step_output,
                ..
            } => seed_output.iter().chain(step_output).collect(),
            Node::Window(window) => window.exprs(),
            Node::SetOperation { inputs, .. } => {
                inputs.iter().flat_map(|(_, output)| output).collect()
            }
            Node::One | Node::Empty | Node::Working { .. } | Node::Measured { .. } => Vec::new(),
        }
    }
}

impl Access {
    /// The values that keys are compared with.
    pub(crate) fn exprs(&self) -> Vec<&Expr> {
        match self {
            Access::Full => Vec::new(),
            Access::Point { key, .. } => key.iter().collect(),
            Access::Index { ranges, .. } => ranges.iter().flat_map(KeyRange::exprs).collect(),
            Access::Merge { sources, .. } => {
                let ranges = sources.iter().flat_map(|source| &source.ranges);
                ranges.flat_map(KeyRange::exprs).collect()
            }
            Access::Skip(skip) => {
                let ranges = skip.ranges.iter().chain(&skip.inner);
                ranges.flat_map(KeyRange::exprs).collect()
            }
        }
    }
}

impl KeyRange {
    fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let equal = self.equal.iter().map(|part| &part.value);
        let bounds = self.lower.iter().chain(&self.upper);
        equal.chain(bounds.map(|bound| &bound.value))
    }
}

impl Window {
    fn exprs(&self) -> Vec<&Expr> {
        let arguments = self.functions.iter().flat_map(|call| &call.arguments);
        let order = self.order.iter().map(|key| &key.expr);
        self.partition
            .iter()
            .chain(order)
            .chain(arguments)
            .collect()
    }
}

impl Plan {
    /// The topmost node, and the expressions over its rows; `None` for an INSERT of given values or
    /// of a file, which has no node.
    pub(crate) fn root(&self) -> Option<(&Node, Vec<&Expr>)> {
        match &self.kind {
            PlanKind::Query(query) => Some((&query.node, query.output.iter().collect())),
            PlanKind::Update(update) => {
                let values = update
                    .targets
                    .iter()
                    .flat_map(|target| &target.assignments)
                    .filter_map(|assignment| assignment.value.as_ref());
                Some((&update.node, values.collect()))
            }
            PlanKind::Delete(delete) => Some((&delete.node, Vec::new())),
            PlanKind::Insert(insert) => match &insert.source {
                InsertSource::Query { node, output } => Some((node, output.iter().collect())),
                InsertSource::Values(_) | InsertSource::Load(_) => None,
            },
        }
    }

    /// The plans of the subqueries in expressions, the outermost first; those inside them are not
    /// among them.
    pub(crate) fn subplans_in<'p, 'e>(
        &'p self,
        exprs: impl IntoIterator<Item = &'e Expr>,
    ) -> Vec<&'p Subplan> {
        let mut found = Vec::new();
        for expr in exprs {
            self.add_subplans(expr, &mut found);
        }
        found
    }

    fn add_subplans<'p>(&'p self, expr: &Expr, found: &mut Vec<&'p Subplan>) {
        if let ExprKind::Subquery { number, .. } = expr.kind {
            found.extend(self.subplan(number));
        }
        expr.for_each_child(&mut |child| self.add_subplans(child, found));
    }

    /// Calls `visit` with every node, those of subqueries included.
    pub(crate) fn for_each_node<'p>(&'p self, visit: &mut dyn FnMut(&'p Node)) {
        if let Some((node, output)) = self.root() {
            self.visit_below(node, visit);
            for subplan in self.subplans_in(output) {
                self.visit_below(&subplan.node, visit);
            }
        }
    }

    fn visit_below<'p>(&'p self, node: &'p Node, visit: &mut dyn FnMut(&'p Node)) {
        visit(node);
        for subplan in self.subplans_in(node.exprs()) {
            self.visit_below(&subplan.node, visit);
        }
        for child in node.children() {
            self.visit_below(child, visit);
        }
    }
}
