//! Small statements: made of a seed, written as SQL, filled with other constants, and made smaller.

use fastrand::Rng;
use porpoise_expr::function::ArgumentKind;

use super::forms::{AGGREGATE_FORMS, Form, Place, SCALARS};
use super::literals::{self, SIMPLE};

/// An expression.
#[derive(Clone, Debug)]
enum Tree {
    /// A constant, and as what it is wanted.
    Literal(ArgumentKind, &'static str),
    /// A word of a form's grammar.
    Word(&'static str),
    /// A column of the rows that the statement reads.
    Column(usize),
    Node(&'static Form, Vec<Tree>),
}

/// Columns that rows have.
const WIDTH: usize = 2;
/// Most rows that a statement reads.
const ROWS_MAX: usize = 4;

/// A statement that needs no table.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    verb: &'static str,
    items: Vec<Tree>,
    /// Rows that are read, of constants; none: there is no FROM.
    rows: Vec<Vec<Tree>>,
    condition: Option<Tree>,
    grouping: Option<Tree>,
    order: Option<Tree>,
}

/// Makes expressions.
struct Maker<'r> {
    random: &'r mut Rng,
    /// Only these forms, if any are named.
    forms: &'r [&'static Form],
    has_columns: bool,
}

impl Maker<'_> {
    fn leaf(&mut self, kind: ArgumentKind) -> Tree {
        match self.has_columns && self.random.u8(0..10) < 6 {
            true => Tree::Column(self.random.usize(0..WIDTH)),
            false => Tree::Literal(kind, literals::draw(kind, self.random)),
        }
    }

    fn at(&mut self, place: Place, depth: u32) -> Tree {
        match place {
            Place::OneOf(words) => Tree::Word(words[self.random.usize(0..words.len())]),
            Place::Value(kind) if depth == 0 || self.random.u8(0..10) < 6 => self.leaf(kind),
            Place::Value(_) => self.node(depth - 1),
        }
    }

    fn node(&mut self, depth: u32) -> Tree {
        let form = self.forms[self.random.usize(0..self.forms.len())];
        self.filled(form, depth)
    }

    fn filled(&mut self, form: &'static Form, depth: u32) -> Tree {
        let count = self.random.usize(form.arity.0..=form.arity.1);
        let places = (0..count).map(|at| self.at(form.place(at), depth));
        Tree::Node(form, places.collect())
    }
}

impl Statement {
    /// The statement of a seed, with calls of these forms.
    pub(super) fn of(random: &mut Rng, forms: &[&'static Form], depth: u32) -> Statement {
        let has_rows = random.u8(0..10) < 2;
        let mut maker = Maker {
            random,
            forms,
            has_columns: false,
        };
        let mut rows = Vec::new();
        if has_rows {
            for _ in 0..maker.random.usize(1..=ROWS_MAX) {
                rows.push((0..WIDTH).map(|_| maker.leaf(ArgumentKind::Any)).collect());
            }
        }
        maker.has_columns = has_rows;
        let is_aggregated = has_rows && maker.random.u8(0..10) < 4;
        let count = if maker.random.u8(0..8) == 0 { 2 } else { 1 };
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(match is_aggregated {
                true => {
                    let form = &AGGREGATE_FORMS[maker.random.usize(0..AGGREGATE_FORMS.len())];
                    maker.filled(form, depth.saturating_sub(1))
                }
                false => maker.node(depth),
            });
        }
        let mut some = |percent: u8| {
            let wanted = has_rows && maker.random.u8(0..100) < percent;
            wanted.then(|| maker.node(depth.saturating_sub(1)))
        };
        let (condition, order) = (some(25), some(20));
        let grouping = if is_aggregated { some(40) } else { None };
        let verb = if !has_rows && random.u8(0..50) == 0 {
            "DO"
        } else {
            "SELECT"
        };
        Statement {
            verb,
            items,
            rows,
            condition,
            grouping,
            order,
        }
    }

    /// The same statement with other constants.
    pub(super) fn redraw(&mut self, random: &mut Rng) {
        for tree in self.trees_mut() {
            tree.redraw(random);
        }
    }

    fn trees_mut(&mut self) -> impl Iterator<Item = &mut Tree> {
        let clauses = [&mut self.condition, &mut self.grouping, &mut self.order];
        let rows = self.rows.iter_mut().flatten();
        self.items
            .iter_mut()
            .chain(rows)
            .chain(clauses.into_iter().flatten())
    }

    fn trees(&self) -> impl Iterator<Item = &Tree> {
        let clauses = [&self.condition, &self.grouping, &self.order];
        let rows = self.rows.iter().flatten();
        self.items
            .iter()
            .chain(rows)
            .chain(clauses.into_iter().flatten())
    }

    /// Whether it answers the same each time.
    pub(super) fn is_pure(&self) -> bool {
        // Which rows come first among equal ones isn't said.
        self.rows.len() < 2 && self.trees().all(Tree::is_pure)
    }

    /// The names of the forms in it, the outermost first.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for tree in self.trees() {
            tree.collect_names(&mut names);
        }
        names
    }

    /// As SQL; with an `alias`, which has the server plan it anew.
    pub(super) fn write(&self, alias: Option<u64>, sql: &mut String) {
        sql.push_str(self.verb);
        let mut separator = " ";
        for item in &self.items {
            sql.push_str(separator);
            item.write(sql);
            separator = ", ";
        }
        if let Some(alias) = alias {
            use std::fmt::Write;
            let _ = write!(sql, " AS q{alias}");
        }
        for (number, row) in self.rows.iter().enumerate() {
            sql.push_str(if number == 0 {
                " FROM (SELECT "
            } else {
                " UNION ALL SELECT "
            });
            for (at, value) in row.iter().enumerate() {
                sql.push_str(if at == 0 { "" } else { ", " });
                value.write(sql);
                if number == 0 {
                    sql.push_str([" AS c0", " AS c1"][at]);
                }
            }
        }
        if !self.rows.is_empty() {
            sql.push_str(") d");
        }
        let clauses = [
            (" WHERE ", &self.condition),
            (" GROUP BY ", &self.grouping),
            (" ORDER BY ", &self.order),
        ];
        for (words, tree) in clauses {
            if let Some(tree) = tree {
                sql.push_str(words);
                tree.write(sql);
            }
        }
    }

    /// As SQL.
    pub(super) fn sql(&self) -> String {
        let mut sql = String::new();
        self.write(None, &mut sql);
        sql
    }

    /// Whether an alias can be given.
    pub(super) fn is_query(&self) -> bool {
        self.verb == "SELECT"
    }

    /// Statements that are a step smaller, the largest steps first.
    pub(super) fn smaller(&self) -> Vec<Statement> {
        let mut all = Vec::new();
        let mut add = |change: &dyn Fn(&mut Statement)| {
            let mut other = self.clone();
            change(&mut other);
            all.push(other);
        };
        if self.verb != "SELECT" {
            add(&|other| other.verb = "SELECT");
        }
        if self.condition.is_some() {
            add(&|other| other.condition = None);
        }
        if self.grouping.is_some() {
            add(&|other| other.grouping = None);
        }
        if self.order.is_some() {
            add(&|other| other.order = None);
        }
        for at in 0..self.items.len() {
            if self.items.len() > 1 {
                add(&|other| drop(other.items.remove(at)));
            }
        }
        for at in 0..self.rows.len() {
            let reads_none = self.rows.len() == 1 && !self.items.iter().any(Tree::has_column);
            if self.rows.len() > 1 || reads_none {
                add(&|other| drop(other.rows.remove(at)));
            }
        }
        let count = self.trees().count();
        for at in 0..count {
            let Some(tree) = self.trees().nth(at) else {
                continue;
            };
            for smaller in tree.smaller() {
                add(&|other| {
                    if let Some(place) = other.trees_mut().nth(at) {
                        *place = smaller.clone();
                    }
                });
            }
        }
        all
    }
}

impl Tree {
    fn write(&self, sql: &mut String) {
        match self {
            Tree::Literal(_, text) | Tree::Word(text) => sql.push_str(text),
            Tree::Column(at) => sql.push_str(["c0", "c1"][*at]),
            Tree::Node(form, children) => {
                for (at, child) in children.iter().enumerate() {
                    form.text_at(at, children.len(), sql);
                    child.write(sql);
                }
                form.text_at(children.len(), children.len(), sql);
            }
        }
    }

    fn redraw(&mut self, random: &mut Rng) {
        match self {
            Tree::Literal(kind, text) => *text = literals::draw(*kind, random),
            Tree::Word(_) | Tree::Column(_) => {}
            Tree::Node(_, children) => children.iter_mut().for_each(|child| child.redraw(random)),
        }
    }

    fn is_pure(&self) -> bool {
        match self {
            Tree::Node(form, children) => form.is_pure && children.iter().all(Tree::is_pure),
            _ => true,
        }
    }

    fn has_column(&self) -> bool {
        match self {
            Tree::Column(_) => true,
            Tree::Node(_, children) => children.iter().any(Tree::has_column),
            _ => false,
        }
    }

    fn collect_names(&self, names: &mut Vec<&'static str>) {
        if let Tree::Node(form, children) = self {
            names.push(form.name);
            children.iter().for_each(|child| child.collect_names(names));
        }
    }

    fn smaller(&self) -> Vec<Tree> {
        let simple = |but: &str| -> Vec<Tree> {
            let shorter = SIMPLE
                .iter()
                .filter(|text| text.len() < but.len() || but == "node");
            shorter
                .map(|text| Tree::Literal(ArgumentKind::Any, text))
                .collect()
        };
        match self {
            Tree::Word(_) => Vec::new(),
            // As long as a column of a table: its name has two letters.
            Tree::Column(_) => simple("c0"),
            Tree::Literal(_, text) => simple(text),
            Tree::Node(form, children) => {
                let mut all = simple("node");
                let values = children
                    .iter()
                    .filter(|child| !matches!(child, Tree::Word(_)));
                all.extend(values.cloned());
                if children.len() > form.arity.0 {
                    all.push(Tree::Node(form, children[..children.len() - 1].to_vec()));
                }
                for (at, child) in children.iter().enumerate() {
                    for smaller in child.smaller() {
                        let mut children = children.clone();
                        children[at] = smaller;
                        all.push(Tree::Node(form, children));
                    }
                }
                all
            }
        }
    }
}

/// All scalar forms, or those whose names hold one of the given words.
pub(super) fn forms_named(words: &[String]) -> Vec<&'static Form> {
    let is_wanted = |form: &&'static Form| {
        let name = form.name.to_ascii_lowercase();
        words.is_empty()
            || words
                .iter()
                .any(|word| name.contains(&word.to_ascii_lowercase()))
    };
    SCALARS.iter().filter(is_wanted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(number: u64) -> Statement {
        Statement::of(&mut Rng::with_seed(number), &forms_named(&[]), 2)
    }

    #[test]
    fn a_seed_makes_one_statement_and_others_with_other_constants() {
        for number in 0..200 {
            assert_eq!(statement(number).sql(), statement(number).sql());
        }
        let texts: std::collections::HashSet<String> =
            (0..2000).map(|number| statement(number).sql()).collect();
        assert!(texts.len() > 1800, "{}", texts.len());
        let mut redrawn = statement(7);
        redrawn.redraw(&mut Rng::with_seed(9));
        assert_eq!(redrawn.names(), statement(7).names());
    }

    #[test]
    fn every_function_of_the_server_is_called_in_some_statement() {
        let mut called = std::collections::HashSet::new();
        for number in 0..20_000 {
            called.extend(statement(number).names());
        }
        let missing: Vec<&str> = SCALARS
            .iter()
            .chain(AGGREGATE_FORMS.iter())
            .map(|form| form.name)
            .filter(|name| !called.contains(name))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn a_smaller_statement_is_smaller() {
        for number in 0..300 {
            let statement = statement(number);
            let depth = statement.names().len();
            for smaller in statement.smaller() {
                assert!(
                    smaller.sql().len() < statement.sql().len()
                        || smaller.names().len() < depth
                        || smaller.verb != statement.verb
                );
            }
        }
    }
}
