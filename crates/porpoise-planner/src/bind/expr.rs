//! Expressions: from syntax to typed trees.

use compact_str::CompactString;
use porpoise_catalog::ColumnDefault;
use porpoise_core::error::{Error, Result};
use porpoise_core::variables::SessionVars;
use porpoise_expr::function::Want;
use porpoise_expr::typing::{self, compare, hidden, operate};
use porpoise_expr::{Arithmetic, Comparison, Expr, ExprKind, SubqueryKind};
use porpoise_sql::ast;
use porpoise_types::{Charset, Collation, DataType, Value};

use crate::bind::Binder;
use crate::bind::scope::{Columns, display};
use crate::query::Query;

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

impl Binder<'_> {
    pub(super) fn expr(&mut self, expr: &ast::Expr) -> Result<Expr> {
        self.nested(|binder| binder.bind(expr))
    }

    pub(super) fn exprs<'e>(
        &mut self,
        exprs: impl IntoIterator<Item = &'e ast::Expr>,
    ) -> Result<Vec<Expr>> {
        exprs.into_iter().map(|expr| self.expr(expr)).collect()
    }

    /// A condition, split at AND.
    pub(super) fn conditions(&mut self, expr: &ast::Expr) -> Result<Vec<Expr>> {
        let mut bound = self.expr(expr)?;
        if compare::width(&bound) != 1 {
            return Err(Error::operand_columns(1));
        }
        Ok(match bound.kind {
            ExprKind::And(parts) => parts,
            kind => {
                bound.kind = kind;
                vec![bound]
            }
        })
    }

    fn parameter(&mut self, number: usize) -> Expr {
        self.parameter_count = self.parameter_count.max(number + 1);
        let ty = self
            .cx
            .parameters
            .get(number)
            .cloned()
            .unwrap_or(DataType::Null);
        // A short hexadecimal literal is a number where one is wanted: its value has to be seen.
        if let Some(Value::Bytes(bytes)) = self.cx.literals.get(number)
            && bytes.len() <= size_of::<u64>()
        {
            self.fixed_parameters.push(number);
            return Expr::literal(Value::Bytes(bytes.clone()), ty);
        }
        let nullable = self.cx.literals.get(number).is_none_or(Value::is_null);
        Expr::new(ExprKind::Parameter(number), ty, nullable)
    }

    fn bind(&mut self, expr: &ast::Expr) -> Result<Expr> {
        let session = self.session();
        match expr {
            ast::Expr::Literal(literal) => typing::literal(literal, session),
            ast::Expr::Param(number) => Ok(self.parameter(*number as usize)),
            ast::Expr::Column(name) => self.resolve(name),
            ast::Expr::UserVariable(name) => {
                self.cacheable = false;
                let name = CompactString::new(name.to_lowercase());
                let ty = session
                    .user_variables
                    .get(&name)
                    .map_or(DataType::Null, |(_, ty)| ty.clone());
                Ok(Expr::new(ExprKind::UserVariable(name), ty, true))
            }
            ast::Expr::AssignVariable(assignment) => {
                self.cacheable = false;
                let (name, value) = &**assignment;
                let value = Box::new(self.expr(value)?);
                let (ty, nullable) = (value.ty.clone(), value.nullable);
                let name = CompactString::new(name.to_lowercase());
                Ok(Expr::new(
                    ExprKind::AssignUserVariable { name, value },
                    ty,
                    nullable,
                ))
            }
            ast::Expr::SystemVariable(variable) => self.system_variable(variable),
            ast::Expr::Unary(op, operand) => {
                let written = operand;
                let operand = self.expr(operand)?;
                match op {
                    ast::UnaryOp::Plus => Ok(operand),
                    ast::UnaryOp::Neg => {
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
                    ast::UnaryOp::Not => {
                        if compare::width(&operand) != 1 {
                            return Err(Error::operand_columns(1));
                        }
                        Ok(compare::not(operand))
                    }
                    ast::UnaryOp::BitNot => {
                        let ones = Expr::literal(Value::UInt(u64::MAX), DataType::BIGINT_UNSIGNED);
                        operate::arithmetic(Arithmetic::BitXor, operand, ones, session)
                    }
                }
            }
            ast::Expr::Binary(op, sides) => {
                let (left, right) = (self.expr(&sides.0)?, self.expr(&sides.1)?);
                if let Some(op) = comparison(*op) {
                    return self.compare(op, left, right);
                }
                if let Some(op) = arithmetic(*op) {
                    return operate::arithmetic(op, left, right, session);
                }
                let nullable = left.nullable || right.nullable;
                Ok(Expr::boolean(
                    ExprKind::Xor(Box::new(left), Box::new(right)),
                    nullable,
                ))
            }
            ast::Expr::And(parts) => Ok(compare::and(self.single(parts)?)),
            ast::Expr::Or(parts) => Ok(compare::or(self.single(parts)?)),
            ast::Expr::Is {
                expr,
                test,
                negated,
            } => {
                let operand = self.expr(expr)?;
                match test {
                    ast::IsTest::Null | ast::IsTest::Unknown => compare::is_null(operand, *negated),
                    ast::IsTest::True => compare::is_truth(operand, true, *negated),
                    ast::IsTest::False => compare::is_truth(operand, false, *negated),
                }
            }
            ast::Expr::Between { operands, negated } => {
                let [operand, low, high] = &**operands;
                compare::between(
                    self.expr(operand)?,
                    self.expr(low)?,
                    self.expr(high)?,
                    *negated,
                    session,
                )
            }
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
            } => {
                let operand = self.expr(expr)?;
                let (op, all) = if *negated {
                    (Comparison::Ne, true)
                } else {
                    (Comparison::Eq, false)
                };
                self.quantified(operand, op, all, query)
            }
            ast::Expr::Quantified(quantified) => {
                let operand = self.expr(&quantified.left)?;
                let op = comparison(quantified.op).ok_or_else(|| Error::wrong_arguments("ANY"))?;
                self.quantified(operand, op, quantified.all, &quantified.query)
            }
            ast::Expr::Exists(query) => {
                let query = self.subquery(query)?;
                Ok(self.subquery_expr(
                    query,
                    SubqueryKind::Exists { negated: false },
                    porpoise_expr::boolean_type(),
                    false,
                ))
            }
            ast::Expr::Subquery(query) => {
                let query = self.subquery(query)?;
                self.scalar(query)
            }
            ast::Expr::Like(like) => {
                let (operand, pattern) = (self.expr(&like.expr)?, self.expr(&like.pattern)?);
                let escape = self.escape(like.escape.as_ref())?;
                compare::like(operand, pattern, escape, like.negated, session)
            }
            ast::Expr::Regexp { operands, negated } => {
                let arguments = vec![self.expr(&operands.0)?, self.expr(&operands.1)?];
                let matches = call_function("REGEXP_LIKE", arguments, session)?;
                Ok(if *negated {
                    compare::not(matches)
                } else {
                    matches
                })
            }
            ast::Expr::MemberOf(sides) => {
                let arguments = vec![self.expr(&sides.0)?, self.expr(&sides.1)?];
                call_function("MEMBER OF", arguments, session)
            }
            ast::Expr::Case(case) => self.case(case),
            ast::Expr::Cast(cast) => {
                if cast.array || cast.time_zone.is_some() {
                    return Err(Error::not_supported_yet("CAST … ARRAY and AT TIME ZONE"));
                }
                let operand = self.expr(&cast.expr)?;
                if compare::width(&operand) != 1 {
                    return Err(Error::operand_columns(1));
                }
                let ty = typing::cast_type(&cast.to, &operand, session)?;
                Ok(typing::explicit(operand, ty))
            }
            ast::Expr::ConvertUsing(convert) => {
                let operand = self.expr(&convert.0)?;
                let charset = Charset::by_name(&convert.1)
                    .ok_or_else(|| Error::unknown_character_set(convert.1.as_str()))?;
                let chars = if operand.ty == DataType::Null {
                    0
                } else {
                    operand.ty.max_chars()
                };
                let ty = match charset {
                    Charset::Binary => typing::bytes_type(chars.saturating_mul(4)),
                    _ => typing::text_type(chars, charset.default_collation()),
                };
                Ok(typing::explicit(operand, ty))
            }
            ast::Expr::Collate(collate) => {
                let operand = self.expr(&collate.0)?;
                operate::collate(operand, &collate.1, session)
            }
            ast::Expr::DateArithmetic(arithmetic) => {
                let arguments = vec![
                    self.expr(&arithmetic.date)?,
                    self.expr(&arithmetic.amount)?,
                    typing::unit_literal(arithmetic.unit),
                ];
                call_function(
                    if arithmetic.subtract {
                        "DATE_SUB"
                    } else {
                        "DATE_ADD"
                    },
                    arguments,
                    session,
                )
            }
            ast::Expr::Extract(unit, operand) => {
                let arguments = vec![typing::unit_literal(*unit), self.expr(operand)?];
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
            ast::Expr::Trim(trim) => {
                let side = match trim.side {
                    ast::TrimSide::Both => "BOTH",
                    ast::TrimSide::Leading => "LEADING",
                    ast::TrimSide::Trailing => "TRAILING",
                };
                let text = self.expr(&trim.expr)?;
                let remove = match &trim.remove {
                    Some(remove) => self.expr(remove)?,
                    None => typing::text_literal(" "),
                };
                call_function(
                    "TRIM",
                    vec![text, remove, typing::text_literal(side)],
                    session,
                )
            }
            ast::Expr::Char(char) => {
                let (codes, charset) = &**char;
                let codes = self.exprs(codes)?;
                let bytes = call_function("CHAR", codes, session)?;
                match charset {
                    None => Ok(bytes),
                    Some(name) => {
                        let charset = Charset::by_name(name)
                            .ok_or_else(|| Error::unknown_character_set(name.as_str()))?;
                        let ty =
                            typing::text_type(bytes.ty.max_chars(), charset.default_collation());
                        Ok(typing::explicit(bytes, ty))
                    }
                }
            }
            ast::Expr::Function(function) => self.function(function),
            ast::Expr::Aggregate(aggregate) => self.aggregate(aggregate),
            ast::Expr::Window(call) => self.window_call(call),
            ast::Expr::Match(_) => Err(Error::not_supported_yet("full-text search")),
            ast::Expr::JsonValue(value) => self.json_value(value),
            ast::Expr::Row(items) => {
                let items = self.single(items)?;
                Ok(compare::row(items))
            }
            ast::Expr::Default => Err(Error::wrong_usage("DEFAULT", "expression")),
            ast::Expr::DefaultOf(name) => self.default_of(name),
            ast::Expr::InsertedValue(name) => self.inserted_value(name),
        }
    }

    /// Operands that must have one column each.
    fn single(&mut self, exprs: &[ast::Expr]) -> Result<Vec<Expr>> {
        let bound = self.exprs(exprs)?;
        if bound.iter().any(|expr| compare::width(expr) != 1) {
            return Err(Error::operand_columns(1));
        }
        Ok(bound)
    }

    fn compare(&mut self, op: Comparison, left: Expr, right: Expr) -> Result<Expr> {
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
                Some(operand) => {
                    let (operand, when) = compare::case_operands(operand.clone(), when);
                    compare::compare(Comparison::Eq, operand, when, self.session())?
                }
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
                .cx
                .literals
                .get(*number)
                .cloned()
                .unwrap_or(Value::Null),
            _ => return Err(Error::wrong_arguments("ESCAPE")),
        };
        match value {
            Value::Null => Ok(Some('\\')),
            Value::Text(text) => {
                let mut chars = text.chars();
                match (chars.next(), chars.next()) {
                    (first, None) => Ok(first),
                    _ => Err(Error::wrong_arguments("ESCAPE")),
                }
            }
            _ => Err(Error::wrong_arguments("ESCAPE")),
        }
    }

    fn function(&mut self, function: &ast::Function) -> Result<Expr> {
        if let Some(schema) = &function.schema {
            return Err(Error::function_does_not_exist(
                schema.as_str(),
                function.name.as_str(),
            ));
        }
        let mut arguments = self.exprs(&function.args)?;
        // JSON tells TRUE from 1.
        if function.name.to_ascii_lowercase().starts_with("json_") {
            for (argument, written) in arguments.iter_mut().zip(&function.args) {
                if let ast::Expr::Literal(ast::Literal::Bool(_)) = written {
                    *argument = typing::is_truth(argument.clone(), true, false)?;
                }
            }
        }
        if function.name.eq_ignore_ascii_case("grouping") {
            return Ok(Expr::new(
                ExprKind::Call {
                    function: &hidden::GROUPING,
                    arguments,
                },
                DataType::BIGINT,
                false,
            ));
        }
        call_function_as(&function.name, &function.written, arguments, self.session())
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
        let ty = VARIABLES[position].ty();
        Ok(Expr::new(
            ExprKind::SystemVariable { position, reads },
            ty,
            true,
        ))
    }

    fn json_value(&mut self, value: &ast::JsonValue) -> Result<Expr> {
        /// Without RETURNING it is a CHAR(512).
        const CHARS: u64 = 512;
        let session = self.session();
        let (doc, path) = (self.expr(&value.doc)?, self.expr(&value.path)?);
        let doc = operate::convert_to(doc, Want::Json, session)?;
        let ty = match &value.returning {
            None => typing::text_type(CHARS, Collation::UTF8MB4_0900_AI_CI),
            Some(to) => typing::cast_type(to, &doc, session)?,
        };
        let mut arguments = vec![doc, path];
        for response in [&value.on_empty, &value.on_error] {
            use porpoise_functions::json_scalar::JsonResponse as R;
            let (kind, default) = match response {
                None | Some(ast::JsonResponse::Null) => (R::Null, null()),
                Some(ast::JsonResponse::Error) => (R::Error, null()),
                Some(ast::JsonResponse::Default(value)) => {
                    (R::Default, typing::explicit(self.expr(value)?, ty.clone()))
                }
            };
            arguments.push(Expr::literal(Value::Int(kind as i64), DataType::BIGINT));
            arguments.push(default);
        }
        let mut call = operate::call_function(
            &porpoise_functions::json_scalar::JSON_VALUE,
            arguments,
            session,
        )?;
        call.ty = ty;
        Ok(call)
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

    /// A bound subquery's number.
    pub(super) fn keep_subquery(&mut self, query: Query) -> usize {
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

    /// `operand op ANY|ALL (subquery number)`: both sides' columns are brought to one type, pairwise.
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

/// A call of a function by name.
pub(super) fn call_function(
    name: &str,
    arguments: Vec<Expr>,
    session: &SessionVars,
) -> Result<Expr> {
    call_function_as(name, name, arguments, session)
}

/// A call of a function by the name it has here; messages name it as it was written.
fn call_function_as(
    name: &str,
    written: &str,
    arguments: Vec<Expr>,
    session: &SessionVars,
) -> Result<Expr> {
    let Some(function) = porpoise_functions::find(name) else {
        let schema = session.schema.as_deref().unwrap_or_default();
        return Err(if schema.is_empty() {
            Error::no_database_selected()
        } else {
            Error::function_does_not_exist(schema, written)
        });
    };
    if !function.arity.admits(arguments.len()) {
        return Err(Error::parameter_count(written));
    }
    operate::call_function(function, arguments, session)
}
