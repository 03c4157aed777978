//! Subqueries in expressions: scalar ones, EXISTS, IN, and comparisons with ANY and ALL.
//!
//! A bound subquery waits in the binder's list, under the number that its expression names.

use porpoise_core::error::{Error, Result};
use porpoise_expr::typing::{self, compare};
use porpoise_expr::{Comparison, Expr, ExprKind, SubqueryKind};
use porpoise_sql::ast;
use porpoise_types::DataType;

use super::{comparison, null};
use crate::bind::Binder;
use crate::query::Query;

impl Binder<'_> {
    /// `operand [NOT] IN (query)`.
    pub(super) fn in_query(
        &mut self,
        operand: &ast::Expr,
        query: &ast::Query,
        negated: bool,
    ) -> Result<Expr> {
        let operand = self.expr(operand)?;
        let (op, all) = match negated {
            true => (Comparison::Ne, true),
            false => (Comparison::Eq, false),
        };
        self.quantified(operand, op, all, query)
    }

    /// `operand op ANY|ALL (query)`.
    pub(super) fn any_or_all(&mut self, quantified: &ast::Quantified) -> Result<Expr> {
        let operand = self.expr(&quantified.left)?;
        let op = comparison(quantified.op).ok_or_else(|| Error::wrong_arguments("ANY"))?;
        self.quantified(operand, op, quantified.all, &quantified.query)
    }

    pub(super) fn exists(&mut self, query: &ast::Query) -> Result<Expr> {
        let query = self.subquery(query)?;
        let kind = SubqueryKind::Exists { negated: false };
        Ok(self.subquery_expr(query, kind, porpoise_expr::boolean_type(), false))
    }

    /// A query as a value, or as a row of values.
    pub(super) fn scalar_subquery(&mut self, query: &ast::Query) -> Result<Expr> {
        let query = self.subquery(query)?;
        self.scalar(query)
    }

    /// A comparison of two expressions, one of which may be a subquery's row.
    pub(super) fn compare(&mut self, op: Comparison, left: Expr, right: Expr) -> Result<Expr> {
        // `(a, b) = (SELECT x, y …)`: a quantified comparison with the query's only row.
        for (row, query, op) in [(&left, &right, op), (&right, &left, op.flipped())] {
            let (ExprKind::Row(_), ExprKind::Row(columns)) = (&row.kind, &query.kind) else {
                continue;
            };
            let subquery = |column: &Expr| match column.kind {
                ExprKind::Subquery { number, .. } => Some(number),
                _ => None,
            };
            let Some(number) = columns.first().and_then(subquery) else {
                continue;
            };
            if columns
                .iter()
                .any(|column| subquery(column) != Some(number))
            {
                continue;
            }
            if matches!(op, Comparison::Eq | Comparison::Ne) {
                let all = op == Comparison::Ne;
                let operand = row.clone();
                return self.quantify(operand, op, all, number);
            }
            return Err(Error::not_supported_yet(
                "this comparison of a row with a subquery",
            ));
        }
        compare::compare(op, left, right, self.session())
    }

    /// A bound subquery's number.
    pub(in crate::bind) fn keep_subquery(&mut self, query: Query) -> usize {
        let number = self.subqueries.len();
        self.subqueries.push(Some(query));
        if self.derived_depth > 0 {
            self.subqueries_in_derived.push(number);
        }
        number
    }

    fn subquery_expr(
        &mut self,
        query: Query,
        kind: SubqueryKind,
        ty: DataType,
        nullable: bool,
    ) -> Expr {
        let number = self.keep_subquery(query);
        Expr::new(ExprKind::Subquery { number, kind }, ty, nullable)
    }

    fn scalar(&mut self, query: Query) -> Result<Expr> {
        if query.columns.len() != 1 {
            // A row: only a comparison with another one takes it.
            let items = query.columns.len();
            let column = self.subquery_expr(query, SubqueryKind::Scalar, DataType::Null, true);
            return Ok(compare::row(vec![column; items]));
        }
        let ty = typing::slot_type(&query.columns[0].expr.ty);
        Ok(self.subquery_expr(query, SubqueryKind::Scalar, ty, true))
    }

    fn quantified(
        &mut self,
        operand: Expr,
        op: Comparison,
        all: bool,
        query: &ast::Query,
    ) -> Result<Expr> {
        if query.limit.is_some() {
            return Err(Error::not_supported_yet("LIMIT & IN/ALL/ANY/SOME subquery"));
        }
        let query = self.subquery(query)?;
        let number = self.keep_subquery(query);
        self.quantify(operand, op, all, number)
    }

    /// `operand op ANY|ALL (subquery number)`: both sides' columns are brought to one type,
    /// pairwise.
    fn quantify(
        &mut self,
        operand: Expr,
        op: Comparison,
        all: bool,
        number: usize,
    ) -> Result<Expr> {
        let session = self.session();
        let Some(mut query) = self.subqueries.get_mut(number).and_then(Option::take) else {
            return Ok(null());
        };
        let operands = match operand.kind {
            ExprKind::Row(items) => items,
            _ => vec![operand],
        };
        if operands.len() != query.columns.len() {
            return Err(Error::operand_columns(operands.len()));
        }
        let mut domains = Vec::with_capacity(operands.len());
        let mut left = Vec::with_capacity(operands.len());
        let mut nullable = false;
        for (operand, column) in operands.into_iter().zip(&mut query.columns) {
            let domain = compare::domain(
                &operand,
                &column.expr,
                if all { "all" } else { "any" },
                session,
            )?;
            let right = std::mem::replace(&mut column.expr, null());
            let (operand, right) = compare::key_pair(operand, right, domain);
            nullable |= operand.nullable || right.nullable;
            column.expr = right;
            left.push(operand);
            domains.push(domain);
        }
        self.subqueries[number] = Some(query);
        let operand = match left.len() {
            1 => Box::new(left.remove(0)),
            _ => Box::new(compare::row(left)),
        };
        let kind = SubqueryKind::Quantified {
            operand,
            op,
            all,
            domains,
        };
        Ok(Expr::boolean(ExprKind::Subquery { number, kind }, nullable))
    }
}
