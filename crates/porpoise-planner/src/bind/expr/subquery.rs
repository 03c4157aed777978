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
        let of_column = |column: &crate::query::OutputColumn| typing::slot_type(&column.expr.ty);
        let types: Vec<DataType> = query.columns.iter().map(of_column).collect();
        let number = self.keep_subquery(query);
        let mut values: Vec<Expr> = types
            .into_iter()
            .enumerate()
            .map(|(column, ty)| {
                let kind = SubqueryKind::Scalar { column };
                Expr::new(ExprKind::Subquery { number, kind }, ty, true)
            })
            .collect();
        match values.len() {
            1 => Ok(values.remove(0)),
            // Only a comparison with another row takes it.
            _ => Ok(compare::row(values)),
        }
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
        if operands.iter().any(|operand| compare::width(operand) != 1) {
            return Err(Error::operand_columns(1));
        }
        let mut domains = Vec::with_capacity(operands.len());
        let mut left = Vec::with_capacity(operands.len());
        let mut nullable = false;
        for (operand, column) in operands.into_iter().zip(&mut query.columns) {
            let right = std::mem::replace(&mut column.expr, null());
            let right = compare::selected(right, &operand);
            let quantifier = if all { "all" } else { "any" };
            let domain = compare::domain(&operand, &right, quantifier, session)?;
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
