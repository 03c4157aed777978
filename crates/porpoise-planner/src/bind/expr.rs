//! Expressions: from syntax to typed trees.
//!
//! Operators, predicates, variables and conversions are here; [`call`] has functions, [`subquery`]
//! the expressions with a query in them.

mod call;
mod subquery;

use compact_str::CompactString;
use porpoise_catalog::ColumnDefault;
use porpoise_core::error::{Error, Result};
use porpoise_core::variables::user_variable_type;
use porpoise_expr::typing::{self, compare, operate};
use porpoise_expr::{Arithmetic, Comparison, Expr, ExprKind, SlotId};
use porpoise_sql::ast;
use porpoise_types::{Charset, DataType, Value};

pub(super) use call::call_function;

use crate::bind::Binder;
use crate::bind::scope::{Columns, display};

fn comparison(op: ast::BinaryOp) -> Option<Comparison> {
    Some(match op {
        ast::BinaryOp::Eq => Comparison::Eq,
        ast::BinaryOp::NullSafeEq => Comparison::NullSafeEq,
        ast::BinaryOp::Ne => Comparison::Ne,
        ast::BinaryOp::Lt => Comparison::Lt,
        ast::BinaryOp::Le => Comparison::Le,
        ast::BinaryOp::Gt => Comparison::Gt,
        ast::BinaryOp::Ge => Comparison::Ge,
        _ => return None,
    })
}

fn arithmetic(op: ast::BinaryOp) -> Option<Arithmetic> {
    Some(match op {
        ast::BinaryOp::Add => Arithmetic::Add,
        ast::BinaryOp::Sub => Arithmetic::Subtract,
        ast::BinaryOp::Mul => Arithmetic::Multiply,
        ast::BinaryOp::Div => Arithmetic::Divide,
        ast::BinaryOp::IntDiv => Arithmetic::IntegerDivide,
        ast::BinaryOp::Mod => Arithmetic::Modulo,
        ast::BinaryOp::BitOr => Arithmetic::BitOr,
        ast::BinaryOp::BitAnd => Arithmetic::BitAnd,
        ast::BinaryOp::BitXor => Arithmetic::BitXor,
        ast::BinaryOp::ShiftLeft => Arithmetic::ShiftLeft,
        ast::BinaryOp::ShiftRight => Arithmetic::ShiftRight,
        _ => return None,
    })
}

fn null() -> Expr {
    Expr::literal(Value::Null, DataType::Null)
}

fn charset_named(name: &str) -> Result<Charset> {
    Charset::by_name(name).ok_or_else(|| Error::unknown_character_set(name))
}

/// The parts of a conjunction.
fn split(condition: Expr) -> Vec<Expr> {
    let Expr { kind, ty, nullable } = condition;
    match kind {
        ExprKind::And(parts) => parts,
        kind => vec![Expr { kind, ty, nullable }],
    }
}

impl Binder<'_> {
    /// Binds an expression and all in it.
    pub(super) fn expr(&mut self, expr: &ast::Expr) -> Result<Expr> {
        self.nested(|binder| binder.bind(expr))
    }

    pub(super) fn exprs<'e>(
        &mut self,
        exprs: impl IntoIterator<Item = &'e ast::Expr>,
    ) -> Result<Vec<Expr>> {
        exprs.into_iter().map(|expr| self.expr(expr)).collect()
    }

    /// A condition on rows, split at AND.
    pub(super) fn conditions(&mut self, expr: &ast::Expr) -> Result<Vec<Expr>> {
        let bound = self.condition(expr)?;
        let is_declared_not_null = |slot: SlotId, column: usize| {
            let draft = self.slots.get(slot.0 as usize);
            let table = draft.and_then(|draft| draft.table.as_ref());
            let definition = table.and_then(|table| table.columns.get(column));
            definition.is_some_and(|definition| !definition.nullable)
        };
        Ok(split(compare::row_condition(bound, &is_declared_not_null)))
    }

    /// What an outer join asks of a pair of rows, split at AND: IS NULL finds NULL alone there.
    pub(super) fn outer_join_conditions(&mut self, expr: &ast::Expr) -> Result<Vec<Expr>> {
        Ok(split(compare::truth(self.condition(expr)?)))
    }

    fn condition(&mut self, expr: &ast::Expr) -> Result<Expr> {
        let bound = self.expr(expr)?;
        match compare::width(&bound) {
            1 => Ok(bound),
            _ => Err(Error::operand_columns(1)),
        }
    }

    fn parameter(&mut self, number: usize) -> Expr {
        self.parameter_count = self.parameter_count.max(number + 1);
        let ty = self
            .context
            .parameters
            .get(number)
            .cloned()
            .unwrap_or(DataType::Null);
        // A hexadecimal or bit literal that was lifted out of the text; one of a string is VARBINARY.
        let ty = match ty {
            DataType::Binary(length) => {
                let ty = DataType::Varbinary(length);
                // A short one is a number where one is wanted: its value has to be seen.
                if let Some(Value::Bytes(bytes)) = self.context.literals.get(number)
                    && bytes.len() <= size_of::<u64>()
                {
                    self.fixed_parameters.push(number);
                    return Expr::literal(Value::Bytes(bytes.clone()), ty);
                }
                ty
            }
            ty => ty,
        };
        let nullable = self.context.literals.get(number).is_none_or(Value::is_null);
        Expr::new(ExprKind::Parameter(number), ty, nullable)
    }

    fn bind(&mut self, expr: &ast::Expr) -> Result<Expr> {
        let session = self.session();
        match expr {
            ast::Expr::Literal(literal) => typing::literal(literal, session),
            ast::Expr::Param(number) => Ok(self.parameter(*number as usize)),
            ast::Expr::Column(name) => self.resolve(name),
            ast::Expr::UserVariable(name) => Ok(self.user_variable(name)),
            ast::Expr::AssignVariable(assignment) => {
                self.assign_variable(&assignment.0, &assignment.1)
            }
            ast::Expr::SystemVariable(variable) => self.system_variable(variable),
            ast::Expr::Unary(op, operand) => self.unary(*op, operand),
            ast::Expr::Binary(op, sides) => self.binary(*op, &sides.0, &sides.1),
            ast::Expr::And(parts) => Ok(compare::and(self.single(parts)?)),
            ast::Expr::Or(parts) => Ok(compare::or(self.single(parts)?)),
            ast::Expr::Is {
                expr,
                test,
                negated,
            } => self.is_test(expr, test, *negated),
            ast::Expr::Between { operands, negated } => self.between(operands, *negated),
            ast::Expr::In {
                expr,
                list,
                negated,
            } => {
                let operand = self.expr(expr)?;
                let list = self.exprs(list)?;
                compare::in_list(operand, list, *negated, session)
            }
            ast::Expr::InQuery {
                expr,
                query,
                negated,
            } => self.in_query(expr, query, *negated),
            ast::Expr::Quantified(quantified) => self.any_or_all(quantified),
            ast::Expr::Exists(query) => self.exists(query),
            ast::Expr::Subquery(query) => self.scalar_subquery(query),
            ast::Expr::Like(like) => self.like(like),
            ast::Expr::Regexp { operands, negated } => {
                self.regexp(&operands.0, &operands.1, *negated)
            }
            ast::Expr::MemberOf(sides) => {
                let arguments = vec![self.expr(&sides.0)?, self.expr(&sides.1)?];
                call_function("MEMBER OF", arguments, session)
            }
            ast::Expr::Case(case) => self.case(case),
            ast::Expr::Cast(cast) => self.cast(cast),
            ast::Expr::ConvertUsing(convert) => self.convert_using(&convert.0, &convert.1),
            ast::Expr::Collate(collate) => {
                let operand = self.expr(&collate.0)?;
                operate::collate(operand, &collate.1, session)
            }
            ast::Expr::DateArithmetic(arithmetic) => self.date_arithmetic(arithmetic),
            ast::Expr::Extract(unit, operand) => {
                let operand = operate::extracted(self.expr(operand)?, *unit);
                let arguments = vec![typing::unit_literal(*unit), operand];
                call_function("EXTRACT", arguments, session)
            }
            ast::Expr::TimestampDiff(unit, sides) => {
                let arguments = vec![
                    typing::unit_literal(*unit),
                    self.expr(&sides.0)?,
                    self.expr(&sides.1)?,
                ];
                call_function("TIMESTAMPDIFF", arguments, session)
            }
            ast::Expr::Trim(trim) => self.trim(trim),
            ast::Expr::Char(char) => self.char(&char.0, char.1.as_deref()),
            ast::Expr::Function(function) => self.function(function),
            ast::Expr::Aggregate(aggregate) => self.aggregate(aggregate),
            ast::Expr::Window(call) => self.window_call(call),
            ast::Expr::Match(_) => Err(Error::not_supported_yet("full-text search")),
            ast::Expr::JsonValue(value) => self.json_value(value),
            ast::Expr::Row(items) => {
                let items = self.exprs(items)?;
                Ok(compare::row(items))
            }
            ast::Expr::Default => Err(Error::wrong_usage("DEFAULT", "expression")),
            ast::Expr::DefaultOf(name) => self.default_of(name),
            ast::Expr::InsertedValue(name) => self.inserted_value(name),
        }
    }

    /// `@name`, of the type that its value has now.
    fn user_variable(&mut self, name: &str) -> Expr {
        let name = CompactString::new(name.to_lowercase());
        let ty = self.session().user_variable_type(&name).clone();
        self.user_variables.push((name.clone(), ty.clone()));
        Expr::new(ExprKind::UserVariable(name), ty, true)
    }

    /// `@name := value`.
    fn assign_variable(&mut self, name: &str, value: &ast::Expr) -> Result<Expr> {
        self.cacheable = false;
        let value = Box::new(self.expr(value)?);
        let (ty, nullable) = (user_variable_type(&value.ty), value.nullable);
        let name = CompactString::new(name.to_lowercase());
        Ok(Expr::new(
            ExprKind::AssignUserVariable { name, value },
            ty,
            nullable,
        ))
    }

    fn unary(&mut self, op: ast::UnaryOp, written: &ast::Expr) -> Result<Expr> {
        let session = self.session();
        let operand = self.expr(written)?;
        match op {
            ast::UnaryOp::Plus => Ok(operand),
            ast::UnaryOp::Neg => self.negate(operand, written),
            ast::UnaryOp::Not => {
                if compare::width(&operand) != 1 {
                    return Err(Error::operand_columns(1));
                }
                Ok(compare::not(operand))
            }
            ast::UnaryOp::BitNot => {
                if let Some(of_bytes) = typing::byte_bits::complement(&operand) {
                    return Ok(of_bytes);
                }
                let ones = Expr::literal(Value::UInt(u64::MAX), DataType::BIGINT_UNSIGNED);
                operate::arithmetic(Arithmetic::BitXor, operand, ones, session)
            }
        }
    }

    fn negate(&mut self, operand: Expr, written: &ast::Expr) -> Result<Expr> {
        // Whether a number beyond BIGINT fits it when negated is seen by its value alone.
        let beyond = matches!(operand.kind, ExprKind::Parameter(_))
            && operand.ty.is_integer()
            && operand.ty.is_unsigned();
        let operand = match self.literal_value(written) {
            Some(value) if beyond => {
                self.fix_parameters(&operand);
                Expr::literal(value, operand.ty)
            }
            _ => operand,
        };
        operate::negate(operand)
    }

    fn binary(&mut self, op: ast::BinaryOp, left: &ast::Expr, right: &ast::Expr) -> Result<Expr> {
        let session = self.session();
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        if let Some(op) = comparison(op) {
            return compare::compare(op, left, right, session);
        }
        if let Some(op) = arithmetic(op) {
            return operate::arithmetic(op, left, right, session);
        }
        if [&left, &right].iter().any(|side| compare::width(side) != 1) {
            return Err(Error::operand_columns(1));
        }
        Ok(compare::xor(left, right))
    }

    fn cast(&mut self, cast: &ast::Cast) -> Result<Expr> {
        let session = self.session();
        if cast.array || cast.time_zone.is_some() {
            return Err(Error::not_supported_yet("CAST … ARRAY and AT TIME ZONE"));
        }
        let operand = self.expr(&cast.expr)?;
        if compare::width(&operand) != 1 {
            return Err(Error::operand_columns(1));
        }
        let ty = typing::cast_type(&cast.to, &operand, session)?;
        Ok(match &cast.to {
            ast::CastType::Binary(None)
            | ast::CastType::NChar(None)
            | ast::CastType::Char { length: None, .. } => typing::whole(operand, ty),
            _ => typing::explicit(operand, ty),
        })
    }

    /// `CONVERT(operand USING charset)`.
    fn convert_using(&mut self, operand: &ast::Expr, charset: &str) -> Result<Expr> {
        let operand = self.expr(operand)?;
        let charset = charset_named(charset)?;
        let chars = if operand.ty == DataType::Null {
            0
        } else {
            typing::spelled_octets(&operand.ty)
        };
        let ty = match charset {
            Charset::Binary => typing::bytes_type(chars.saturating_mul(4)),
            _ => typing::text_type(chars, charset.default_collation()),
        };
        Ok(typing::whole(operand, ty))
    }

    fn is_test(&mut self, expr: &ast::Expr, test: &ast::IsTest, negated: bool) -> Result<Expr> {
        let operand = self.expr(expr)?;
        match test {
            ast::IsTest::Null | ast::IsTest::Unknown => compare::is_null(operand, negated),
            ast::IsTest::True => compare::is_truth(operand, true, negated),
            ast::IsTest::False => compare::is_truth(operand, false, negated),
        }
    }

    fn between(&mut self, operands: &[ast::Expr; 3], negated: bool) -> Result<Expr> {
        let [operand, low, high] = operands;
        let (operand, low, high) = (self.expr(operand)?, self.expr(low)?, self.expr(high)?);
        compare::between(operand, low, high, negated, self.session())
    }

    fn like(&mut self, like: &ast::Like) -> Result<Expr> {
        let (operand, pattern) = (self.expr(&like.expr)?, self.expr(&like.pattern)?);
        let escape = self.escape(like.escape.as_ref())?;
        compare::like(operand, pattern, escape, like.negated, self.session())
    }

    fn regexp(&mut self, text: &ast::Expr, pattern: &ast::Expr, negated: bool) -> Result<Expr> {
        let arguments = vec![self.expr(text)?, self.expr(pattern)?];
        let matches = call_function("REGEXP_LIKE", arguments, self.session())?;
        Ok(match negated {
            true => compare::not(matches),
            false => matches,
        })
    }

    /// Operands that must have one column each.
    fn single(&mut self, exprs: &[ast::Expr]) -> Result<Vec<Expr>> {
        let bound = self.exprs(exprs)?;
        if bound.iter().any(|expr| compare::width(expr) != 1) {
            return Err(Error::operand_columns(1));
        }
        Ok(bound)
    }

    fn case(&mut self, case: &ast::Case) -> Result<Expr> {
        let operand = case
            .operand
            .as_ref()
            .map(|operand| self.expr(operand))
            .transpose()?;
        let mut branches = Vec::with_capacity(case.branches.len());
        for (when, then) in &case.branches {
            let when = self.expr(when)?;
            let condition = match &operand {
                None => when,
                Some(operand) => compare::case_condition(operand.clone(), when, self.session())?,
            };
            branches.push((condition, self.expr(then)?));
        }
        let otherwise = case
            .otherwise
            .as_ref()
            .map(|otherwise| self.expr(otherwise))
            .transpose()?;
        operate::case(branches, otherwise, self.session())
    }

    /// LIKE's escape character must be known when the pattern is planned.
    fn escape(&mut self, escape: Option<&ast::Expr>) -> Result<Option<char>> {
        let Some(escape) = escape else {
            return Ok((!self.session().sql_mode.no_backslash_escapes()).then_some('\\'));
        };
        let bound = self.expr(escape)?;
        self.fix_parameters(&bound);
        let value = match &bound.kind {
            ExprKind::Literal(value) => value.clone(),
            ExprKind::Parameter(number) => self
                .context
                .literals
                .get(*number)
                .cloned()
                .unwrap_or(Value::Null),
            _ => return Err(Error::wrong_arguments("ESCAPE")),
        };
        match value {
            Value::Null => Ok(Some('\\')),
            value => {
                let text = porpoise_types::convert::to_text(&value, &bound.ty);
                let mut chars = text.chars();
                match (chars.next(), chars.next()) {
                    (first, None) => Ok(first),
                    _ => Err(Error::wrong_arguments("ESCAPE")),
                }
            }
        }
    }

    fn system_variable(&mut self, variable: &ast::SystemVariable) -> Result<Expr> {
        use porpoise_core::variables::{Reads, VARIABLES, resolve};
        let scope = match variable.scope {
            None => None,
            Some(ast::VariableScope::Session) => Some(Reads::Session),
            Some(_) => Some(Reads::Global),
        };
        let mut name = variable
            .component
            .as_ref()
            .map_or(String::new(), |component| {
                format!("{}.", component.as_str())
            });
        name.push_str(&variable.name);
        let (position, reads) = resolve(&name, scope)?;
        if !VARIABLES[position].is_there(self.session()) {
            return Err(Error::unknown_system_variable(name));
        }
        let ty = VARIABLES[position].ty();
        Ok(Expr::new(
            ExprKind::SystemVariable { position, reads },
            ty,
            true,
        ))
    }

    /// `DEFAULT(column)`.
    fn default_of(&mut self, name: &ast::ColumnRef) -> Result<Expr> {
        self.resolve(name)?;
        let scope = self
            .scopes
            .iter()
            .rev()
            .find_map(|scope| scope.find(name).ok().flatten().map(|at| (scope, at)));
        let Some((scope, (relation, column))) = scope else {
            return Err(Error::unknown_column(display(name), "field list"));
        };
        let Columns::Table { table, .. } = &scope.relations[relation].columns else {
            return Err(Error::no_default_for_field(name.name.as_str()));
        };
        let definition = &table.columns[column];
        Ok(match &definition.default {
            ColumnDefault::Literal(value) => Expr::literal(value.clone(), definition.ty.clone()),
            ColumnDefault::None if definition.nullable => {
                Expr::literal(Value::Null, definition.ty.clone())
            }
            ColumnDefault::Now => call_function("NOW", Vec::new(), self.session())?,
            ColumnDefault::None | ColumnDefault::Expression { .. } => {
                return Err(Error::no_default_for_field(name.name.as_str()));
            }
        })
    }
}
