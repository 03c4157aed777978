//! Expressions as SQL.

use super::*;

/// Functions with a syntax of their own: a stored function of that name is quoted.
const SPECIAL: &[&str] = &[
    "adddate",
    "cast",
    "date_add",
    "date_sub",
    "extract",
    "json_value",
    "mid",
    "mod",
    "position",
    "subdate",
    "substring",
    "timestampadd",
    "timestampdiff",
    "trim",
];

fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::IntDiv => "DIV",
        BinaryOp::Mod => "%",
        BinaryOp::BitOr => "|",
        BinaryOp::BitAnd => "&",
        BinaryOp::BitXor => "^",
        BinaryOp::ShiftLeft => "<<",
        BinaryOp::ShiftRight => ">>",
        BinaryOp::Eq => "=",
        BinaryOp::NullSafeEq => "<=>",
        BinaryOp::Ne => "<>",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        BinaryOp::Xor => "xor",
    }
}

impl Printer<'_, '_> {
    pub(super) fn expr(&mut self, expr: &Expr) -> fmt::Result {
        match expr {
            Expr::Literal(literal) => self.literal(literal),
            Expr::Param(_) => self.word("?"),
            Expr::Column(column) => self.column(column),
            Expr::UserVariable(name) => put!(self, "@{name}"),
            Expr::AssignVariable(assignment) => {
                put!(self, "(@{}:=", assignment.0)?;
                self.expr(&assignment.1)?;
                self.word(")")
            }
            Expr::SystemVariable(variable) => self.system_variable(variable),
            Expr::Unary(UnaryOp::Not, operand) => {
                self.word("(not(")?;
                self.expr(operand)?;
                self.word("))")
            }
            Expr::Unary(op, operand) => {
                self.word(match op {
                    UnaryOp::Neg => "-",
                    UnaryOp::Plus => "+",
                    UnaryOp::BitNot | UnaryOp::Not => "~",
                })?;
                match **operand {
                    Expr::Literal(_) | Expr::Column(_) | Expr::Param(_) => self.expr(operand),
                    _ => {
                        self.word("(")?;
                        self.expr(operand)?;
                        self.word(")")
                    }
                }
            }
            Expr::Binary(op, operands) => self.infix(&operands.0, symbol(*op), &operands.1),
            Expr::And(operands) => self.joined(operands, " and "),
            Expr::Or(operands) => self.joined(operands, " or "),
            Expr::Is {
                expr,
                test,
                negated,
            } => {
                self.word("(")?;
                self.expr(expr)?;
                self.word(" is")?;
                self.negation(*negated)?;
                self.word(match test {
                    IsTest::Null => " null)",
                    IsTest::True => " true)",
                    IsTest::False => " false)",
                    IsTest::Unknown => " unknown)",
                })
            }
            Expr::Between { operands, negated } => {
                let [expr, low, high] = &**operands;
                self.word("(")?;
                self.expr(expr)?;
                self.negation(*negated)?;
                self.word(" between ")?;
                self.expr(low)?;
                self.word(" and ")?;
                self.expr(high)?;
                self.word(")")
            }
            Expr::In {
                expr,
                list,
                negated,
            } => {
                self.word("(")?;
                self.expr(expr)?;
                self.negation(*negated)?;
                self.word(" in (")?;
                self.exprs(list)?;
                self.word("))")
            }
            Expr::InQuery {
                expr,
                query,
                negated,
            } => {
                self.word("(")?;
                self.expr(expr)?;
                self.negation(*negated)?;
                self.value_subquery(" in (", query)?;
                self.word(")")
            }
            Expr::Like(like) => {
                self.word("(")?;
                self.expr(&like.expr)?;
                self.negation(like.negated)?;
                self.word(" like ")?;
                self.expr(&like.pattern)?;
                if let Some(escape) = &like.escape {
                    self.word(" escape ")?;
                    self.expr(escape)?;
                }
                self.word(")")
            }
            Expr::Regexp { operands, negated } => self.infix(
                &operands.0,
                if *negated { "not regexp" } else { "regexp" },
                &operands.1,
            ),
            Expr::MemberOf(operands) => {
                self.word("(")?;
                self.expr(&operands.0)?;
                self.word(" member of (")?;
                self.expr(&operands.1)?;
                self.word("))")
            }
            Expr::Case(case) => self.case(case),
            Expr::Cast(cast) => {
                self.word("cast(")?;
                self.expr(&cast.expr)?;
                if let Some(zone) = &cast.time_zone {
                    self.word(" at time zone ")?;
                    self.string(zone)?;
                }
                self.word(" as ")?;
                self.cast_type(&cast.to)?;
                self.word(if cast.array { " array)" } else { ")" })
            }
            Expr::ConvertUsing(convert) => {
                self.word("convert(")?;
                self.expr(&convert.0)?;
                put!(self, " using {})", convert.1.as_str())
            }
            Expr::Collate(collate) => {
                self.word("(")?;
                match &collate.0 {
                    // COLLATE binds tighter than a sign.
                    signed @ Expr::Unary(..) => {
                        self.word("(")?;
                        self.expr(signed)?;
                        self.word(")")?;
                    }
                    expr => self.expr(expr)?,
                }
                put!(self, " collate {})", collate.1.as_str())
            }
            Expr::DateArithmetic(arithmetic) => {
                self.word("(")?;
                self.expr(&arithmetic.date)?;
                self.word(if arithmetic.subtract {
                    " - interval "
                } else {
                    " + interval "
                })?;
                self.expr(&arithmetic.amount)?;
                put!(self, " {})", arithmetic.unit.name().to_ascii_lowercase())
            }
            Expr::Extract(unit, expr) => {
                put!(self, "extract({} from ", unit.name().to_ascii_lowercase())?;
                self.expr(expr)?;
                self.word(")")
            }
            Expr::TimestampDiff(unit, operands) => {
                put!(self, "timestampdiff({},", unit.name())?;
                self.expr(&operands.0)?;
                self.word(",")?;
                self.expr(&operands.1)?;
                self.word(")")
            }
            Expr::Trim(trim) => {
                self.word("trim(")?;
                let side = match trim.side {
                    TrimSide::Both if trim.remove.is_none() => "",
                    TrimSide::Both => "both ",
                    TrimSide::Leading => "leading ",
                    TrimSide::Trailing => "trailing ",
                };
                self.word(side)?;
                if let Some(remove) = &trim.remove {
                    self.expr(remove)?;
                    self.word(" ")?;
                }
                self.word(if side.is_empty() { "" } else { "from " })?;
                self.expr(&trim.expr)?;
                self.word(")")
            }
            Expr::Char(char) => {
                self.word("char(")?;
                self.exprs(&char.0)?;
                if let Some(charset) = &char.1 {
                    put!(self, " using {}", charset.as_str())?;
                }
                self.word(")")
            }
            Expr::Function(function) => self.function(function),
            Expr::Aggregate(aggregate) => self.aggregate(aggregate),
            Expr::Window(window) => self.window_call(window),
            Expr::Match(r#match) => {
                self.word("(match ")?;
                self.list(&r#match.columns, |p, column| put!(p, "{column}"))?;
                self.word(" against (")?;
                self.expr(&r#match.against)?;
                self.word(match r#match.mode {
                    MatchMode::Natural => "))",
                    MatchMode::Expansion => " with query expansion))",
                    MatchMode::Boolean => " in boolean mode))",
                })
            }
            Expr::JsonValue(value) => {
                self.word("json_value(")?;
                self.expr(&value.doc)?;
                self.word(", ")?;
                self.expr(&value.path)?;
                if let Some(returning) = &value.returning {
                    self.word(" returning ")?;
                    self.cast_type(returning)?;
                }
                self.responses(&value.on_empty, &value.on_error)?;
                self.word(")")
            }
            Expr::Row(exprs) => {
                self.word("(")?;
                self.exprs(exprs)?;
                self.word(")")
            }
            Expr::Subquery(query) => self.value_subquery("(", query),
            Expr::Exists(query) => self.value_subquery("exists(", query),
            Expr::Quantified(quantified) => {
                self.word("(")?;
                self.expr(&quantified.left)?;
                put!(
                    self,
                    " {} {}",
                    symbol(quantified.op),
                    if quantified.all { "all " } else { "any " }
                )?;
                self.value_subquery("(", &quantified.query)?;
                self.word(")")
            }
            Expr::Default => self.word("default"),
            Expr::DefaultOf(column) => put!(self, "default({column})"),
            Expr::InsertedValue(column) => put!(self, "values({column})"),
        }
    }

    fn system_variable(&mut self, variable: &SystemVariable) -> fmt::Result {
        self.word(match variable.scope {
            None => "@@",
            Some(VariableScope::Global) => "@@global.",
            Some(VariableScope::Session) => "@@session.",
            Some(VariableScope::Persist) => "@@persist.",
            Some(VariableScope::PersistOnly) => "@@persist_only.",
        })?;
        if let Some(component) = &variable.component {
            put!(self, "{component}.")?;
        }
        put!(self, "{}", variable.name)
    }

    fn infix(&mut self, left: &Expr, op: &str, right: &Expr) -> fmt::Result {
        self.word("(")?;
        self.expr(left)?;
        put!(self, " {op} ")?;
        self.expr(right)?;
        self.word(")")
    }

    fn joined(&mut self, operands: &[Expr], between: &str) -> fmt::Result {
        self.word("(")?;
        for (n, operand) in operands.iter().enumerate() {
            if n > 0 {
                self.word(between)?;
            }
            self.expr(operand)?;
        }
        self.word(")")
    }

    fn case(&mut self, case: &Case) -> fmt::Result {
        self.word("(case ")?;
        if let Some(operand) = &case.operand {
            self.expr(operand)?;
            self.word(" ")?;
        }
        for (condition, value) in &case.branches {
            self.word("when ")?;
            self.expr(condition)?;
            self.word(" then ")?;
            self.expr(value)?;
            self.word(" ")?;
        }
        if let Some(otherwise) = &case.otherwise {
            self.word("else ")?;
            self.expr(otherwise)?;
            self.word(" ")?;
        }
        self.word("end)")
    }

    fn function(&mut self, function: &Function) -> fmt::Result {
        let name = function.name.as_str();
        let keyword = keyword::lookup(name.as_bytes());
        let built_in = !SPECIAL.contains(&name)
            && !AGGREGATES.iter().any(|(aggregate, _)| *aggregate == name)
            && (!keyword.is_reserved()
                || keyword.text() == "INTERVAL"
                || RESERVED_FUNCTIONS.contains(&keyword.text()))
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        match &function.schema {
            Some(schema) => put!(self, "{schema}.{}", function.name)?,
            None if built_in => self.word(name)?,
            None => put!(self, "{}", function.name)?,
        }
        self.word("(")?;
        match (name, &function.args[..]) {
            ("get_format", [Expr::Literal(Literal::String(kind)), area])
                if function.schema.is_none() =>
            {
                self.word(&String::from_utf8_lossy(kind))?;
                self.word(", ")?;
                self.expr(area)?;
            }
            ("weight_string", [text, Expr::Literal(Literal::Int(chars))]) => {
                self.expr(text)?;
                put!(self, " as char({chars})")?;
            }
            (_, args) => self.exprs(args)?,
        }
        self.word(")")
    }

    fn aggregate(&mut self, aggregate: &Aggregate) -> fmt::Result {
        put!(
            self,
            "{}({}",
            aggregate.function.name(),
            if aggregate.distinct { "distinct " } else { "" }
        )?;
        match aggregate.args.is_empty() {
            true => self.word("0")?,
            false => self.exprs(&aggregate.args)?,
        }
        self.order_by(&aggregate.order_by)?;
        if let Some(separator) = &aggregate.separator {
            self.word(" separator ")?;
            self.string(separator)?;
        }
        self.word(")")
    }

    fn window_call(&mut self, call: &WindowCall) -> fmt::Result {
        match &call.function {
            WindowFunction::Aggregate(aggregate) => self.aggregate(aggregate)?,
            WindowFunction::Function(function) => self.function(function)?,
        }
        self.word(if call.from_last { " from last" } else { "" })?;
        self.word(if call.ignore_nulls {
            " ignore nulls"
        } else {
            ""
        })?;
        self.word(" OVER ")?;
        match &call.over {
            Over::Named(name) => put!(self, "{name}"),
            Over::Spec(window) => self.window(window),
        }
    }

    pub(super) fn window(&mut self, window: &Window) -> fmt::Result {
        self.word("(")?;
        if let Some(base) = &window.base {
            put!(self, "{base} ")?;
        }
        if !window.partition_by.is_empty() {
            self.word("PARTITION BY ")?;
            self.exprs(&window.partition_by)?;
        }
        self.order_by(&window.order_by)?;
        if let Some(frame) = &window.frame {
            self.word(match frame.unit {
                FrameUnit::Rows => " ROWS ",
                FrameUnit::Range => " RANGE ",
                FrameUnit::Groups => " GROUPS ",
            })?;
            match &frame.end {
                None => self.frame_bound(&frame.start)?,
                Some(end) => {
                    self.word("BETWEEN ")?;
                    self.frame_bound(&frame.start)?;
                    self.word(" AND ")?;
                    self.frame_bound(end)?;
                }
            }
        }
        self.word(")")
    }

    fn frame_bound(&mut self, bound: &FrameBound) -> fmt::Result {
        let (amount, unit, direction) = match bound {
            FrameBound::UnboundedPreceding => return self.word("UNBOUNDED PRECEDING"),
            FrameBound::UnboundedFollowing => return self.word("UNBOUNDED FOLLOWING"),
            FrameBound::CurrentRow => return self.word("CURRENT ROW"),
            FrameBound::Preceding(amount, unit) => (amount, unit, " PRECEDING"),
            FrameBound::Following(amount, unit) => (amount, unit, " FOLLOWING"),
        };
        self.word(if unit.is_some() { "INTERVAL " } else { "" })?;
        self.expr(amount)?;
        if let Some(unit) = unit {
            put!(self, " {}", unit.name())?;
        }
        self.word(direction)
    }

    pub(super) fn responses(
        &mut self,
        empty: &Option<JsonResponse>,
        error: &Option<JsonResponse>,
    ) -> fmt::Result {
        for (response, when) in [(empty, " on empty"), (error, " on error")] {
            match response {
                None => continue,
                Some(JsonResponse::Null) => self.word(" null")?,
                Some(JsonResponse::Error) => self.word(" error")?,
                Some(JsonResponse::Default(value)) => {
                    self.word(" default ")?;
                    self.expr(value)?;
                }
            }
            self.word(when)?;
        }
        Ok(())
    }
}
