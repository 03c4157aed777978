//! The syntax tree as SQL again, in the form `SHOW CREATE TABLE` and `SHOW CREATE VIEW` print.
//!
//! Words in lower case, names in backticks, every operator in parentheses, no space behind commas:
//!
//! ```text
//! a+1 > 2 AND b LIKE 'x%'     ((`a` + 1) > 2) and (`b` like 'x%'), in parentheses once more
//! ```
//!
//! What is printed parses to the tree it was printed from, with two exceptions. `COUNT(*)` prints as `count(0)`, as in MySQL;
//! and a string that is no UTF-8 prints in hexadecimal.
//!
//! Generated columns, checks and default expressions print their strings with a character set before them
//! (`_utf8mb4'x'`): see [`Expr::with_introducer`].

use crate::ast::*;
use crate::keyword;
use crate::parser::{AGGREGATES, RESERVED_FUNCTIONS};
use std::fmt::{self, Display, Formatter};

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

/// Prints a tree.
struct Printer<'f, 'g> {
    out: &'f mut Formatter<'g>,
    /// What stands before strings.
    introducer: Option<&'f str>,
}

macro_rules! put {
    ($printer:expr, $($arg:tt)*) => { write!($printer.out, $($arg)*) };
}

impl Expr {
    /// The expression as SQL, each string with `_charset` before it.
    ///
    /// ```
    /// let expr = porpoise_sql::parse_expr(b"a <> 'x'", porpoise_sql::Modes::NONE)?;
    /// assert_eq!(expr.to_string(), "(`a` <> 'x')");
    /// assert_eq!(expr.with_introducer("utf8mb4").to_string(), "(`a` <> _utf8mb4'x')");
    /// # Ok::<(), porpoise_sql::ParseError>(())
    /// ```
    pub fn with_introducer<'a>(&'a self, charset: &'a str) -> impl Display + 'a {
        fmt::from_fn(move |f| {
            Printer {
                out: f,
                introducer: Some(charset),
            }
            .expr(self)
        })
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Printer {
            out: f,
            introducer: None,
        }
        .expr(self)
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Printer {
            out: f,
            introducer: None,
        }
        .literal(self)
    }
}

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Printer {
            out: f,
            introducer: None,
        }
        .query(self)
    }
}

impl Display for DataType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Printer {
            out: f,
            introducer: None,
        }
        .data_type(self)
    }
}

impl Display for ObjectName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}

impl Display for ColumnRef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for qualifier in [&self.schema, &self.table].into_iter().flatten() {
            write!(f, "{qualifier}.")?;
        }
        write!(f, "{}", self.name)
    }
}

impl Display for Account {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Account::Named {
                user,
                host: Some(host),
            } => write!(f, "{user}@{host}"),
            Account::Named { user, host: None } => write!(f, "{user}@`%`"),
            Account::Current => write!(f, "CURRENT_USER"),
        }
    }
}

impl TableOption {
    /// Whether the option is one of [`TableOption::Other`] of that name.
    pub fn is_other(&self, name: &str) -> bool {
        matches!(self, TableOption::Other(known, _) if known.eq_ignore_ascii_case(name))
    }
}

/// `'text'`, escaped as MySQL prints it.
fn quote(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("'")?;
    for c in text.chars() {
        match c {
            '\'' => f.write_str("\\'")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\0' => f.write_str("\\0")?,
            '\u{1A}' => f.write_str("\\Z")?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("'")
}

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

impl GeometryKind {
    /// The type's name, lower case.
    pub fn name(self) -> &'static str {
        match self {
            GeometryKind::Geometry => "geometry",
            GeometryKind::Point => "point",
            GeometryKind::LineString => "linestring",
            GeometryKind::Polygon => "polygon",
            GeometryKind::MultiPoint => "multipoint",
            GeometryKind::MultiLineString => "multilinestring",
            GeometryKind::MultiPolygon => "multipolygon",
            GeometryKind::GeometryCollection => "geomcollection",
        }
    }
}

impl Printer<'_, '_> {
    fn word(&mut self, word: &str) -> fmt::Result {
        self.out.write_str(word)
    }

    fn list<T>(
        &mut self,
        items: &[T],
        mut item: impl FnMut(&mut Self, &T) -> fmt::Result,
    ) -> fmt::Result {
        for (n, one) in items.iter().enumerate() {
            if n > 0 {
                self.word(",")?;
            }
            item(self, one)?;
        }
        Ok(())
    }

    fn exprs(&mut self, exprs: &[Expr]) -> fmt::Result {
        self.list(exprs, Self::expr)
    }

    fn idents(&mut self, idents: &[Ident]) -> fmt::Result {
        self.list(idents, |p, ident| put!(p, "{ident}"))
    }

    /// `[ (a,b)]`
    fn column_names(&mut self, columns: &[Ident]) -> fmt::Result {
        if columns.is_empty() {
            return Ok(());
        }
        self.word(" (")?;
        self.idents(columns)?;
        self.word(")")
    }

    fn string(&mut self, bytes: &[u8]) -> fmt::Result {
        match std::str::from_utf8(bytes) {
            Ok(text) => quote(self.out, text),
            Err(_) => self.hex(bytes),
        }
    }

    fn hex(&mut self, bytes: &[u8]) -> fmt::Result {
        if bytes.is_empty() {
            return self.word("x''");
        }
        self.word("0x")?;
        bytes.iter().try_for_each(|b| put!(self, "{b:02x}"))
    }

    fn literal(&mut self, literal: &Literal) -> fmt::Result {
        match literal {
            Literal::Null => self.word("NULL"),
            Literal::Bool(true) => self.word("true"),
            Literal::Bool(false) => self.word("false"),
            Literal::Int(n) => put!(self, "{n}"),
            Literal::Decimal(text) => self.word(text),
            Literal::Double(n) if n.is_finite() => put!(self, "{n:e}"),
            Literal::Double(_) => self.word("1e999"),
            Literal::String(bytes) => {
                if let Some(charset) = self.introducer {
                    put!(self, "_{charset}")?;
                }
                self.string(bytes)
            }
            Literal::Introduced(introduced) => {
                put!(self, "_{}", introduced.charset.as_str())?;
                match introduced.binary_form || std::str::from_utf8(&introduced.bytes).is_err() {
                    true => {
                        self.word(" ")?;
                        self.hex(&introduced.bytes)
                    }
                    false => self.string(&introduced.bytes),
                }
            }
            Literal::Hex(bytes) => self.hex(bytes),
            Literal::Bit(bytes) => {
                self.word("b'")?;
                bytes.iter().try_for_each(|b| put!(self, "{b:08b}"))?;
                self.word("'")
            }
            Literal::Date(text) => self.dated("DATE", text),
            Literal::Time(text) => self.dated("TIME", text),
            Literal::Timestamp(text) => self.dated("TIMESTAMP", text),
        }
    }

    fn dated(&mut self, word: &str, text: &str) -> fmt::Result {
        self.word(word)?;
        quote(self.out, text)
    }

    fn negation(&mut self, negated: bool) -> fmt::Result {
        if negated { self.word(" not") } else { Ok(()) }
    }

    fn expr(&mut self, expr: &Expr) -> fmt::Result {
        match expr {
            Expr::Literal(literal) => self.literal(literal),
            Expr::Param(_) => self.word("?"),
            Expr::Column(column) => put!(self, "{column}"),
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
                self.word(" in (")?;
                self.query(query)?;
                self.word("))")
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
            Expr::Subquery(query) => self.subquery("(", query),
            Expr::Exists(query) => self.subquery("exists(", query),
            Expr::Quantified(quantified) => {
                self.word("(")?;
                self.expr(&quantified.left)?;
                put!(
                    self,
                    " {} {}",
                    symbol(quantified.op),
                    if quantified.all { "all " } else { "any " }
                )?;
                self.subquery("(", &quantified.query)?;
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
            ("weight_string", [Expr::Cast(cast)]) if function.schema.is_none() => {
                self.expr(&cast.expr)?;
                self.word(" as ")?;
                self.cast_type(&cast.to)?;
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

    fn window(&mut self, window: &Window) -> fmt::Result {
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

    fn responses(
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

    // -- Types --------------------------------------------------------------------------------------------

    fn length(&mut self, name: &str, length: Option<u32>) -> fmt::Result {
        match length {
            Some(length) => put!(self, "{name}({length})"),
            None => self.word(name),
        }
    }

    fn cast_type(&mut self, to: &CastType) -> fmt::Result {
        match to {
            CastType::Binary(length) => self.length("binary", *length),
            CastType::Char { length, charset } => {
                self.length("char", *length)?;
                match charset {
                    Some(charset) => put!(self, " charset {}", charset.as_str()),
                    None => Ok(()),
                }
            }
            CastType::NChar(length) => self.length("nchar", *length),
            CastType::Signed => self.word("signed"),
            CastType::Unsigned => self.word("unsigned"),
            CastType::Decimal(None) => self.word("decimal"),
            CastType::Decimal(Some((precision, None))) => put!(self, "decimal({precision})"),
            CastType::Decimal(Some((precision, Some(scale)))) => {
                put!(self, "decimal({precision},{scale})")
            }
            CastType::Float(bits) => self.length("float", *bits),
            CastType::Double => self.word("double"),
            CastType::Date => self.word("date"),
            CastType::Time(fraction) => self.length("time", *fraction),
            CastType::DateTime(fraction) => self.length("datetime", *fraction),
            CastType::Year => self.word("year"),
            CastType::Json => self.word("json"),
            CastType::Geometry(kind) => self.word(kind.name()),
        }
    }

    fn signs(&mut self, unsigned: bool, zerofill: bool) -> fmt::Result {
        self.word(if unsigned { " unsigned" } else { "" })?;
        self.word(if zerofill { " zerofill" } else { "" })
    }

    fn charset(&mut self, spec: &CharsetSpec) -> fmt::Result {
        if let Some(charset) = &spec.charset {
            put!(self, " CHARACTER SET {}", charset.as_str())?;
        }
        self.word(if spec.binary { " BINARY" } else { "" })
    }

    fn members(&mut self, name: &str, members: &[Box<[u8]>]) -> fmt::Result {
        put!(self, "{name}(")?;
        self.list(members, |p, member| match std::str::from_utf8(member) {
            // Members double their quotes, and escape nothing else but backslashes.
            Ok(text) => put!(p, "'{}'", text.replace('\\', "\\\\").replace('\'', "''")),
            Err(_) => p.hex(member),
        })?;
        self.word(")")
    }

    fn data_type(&mut self, data_type: &DataType) -> fmt::Result {
        match data_type {
            DataType::Integer {
                kind,
                width,
                unsigned,
                zerofill,
            } => {
                let name = match kind {
                    IntegerKind::TinyInt => "tinyint",
                    IntegerKind::SmallInt => "smallint",
                    IntegerKind::MediumInt => "mediumint",
                    IntegerKind::Int => "int",
                    IntegerKind::BigInt => "bigint",
                };
                self.length(name, *width)?;
                self.signs(*unsigned, *zerofill)
            }
            DataType::Bit(width) => self.length("bit", *width),
            DataType::Decimal {
                precision,
                scale,
                unsigned,
                zerofill,
            } => {
                match (precision, scale) {
                    (Some(precision), Some(scale)) => put!(self, "decimal({precision},{scale})")?,
                    (precision, _) => self.length("decimal", *precision)?,
                }
                self.signs(*unsigned, *zerofill)
            }
            DataType::Float {
                double,
                digits,
                unsigned,
                zerofill,
            } => {
                self.word(if *double { "double" } else { "float" })?;
                if let Some((digits, scale)) = digits {
                    put!(self, "({digits},{scale})")?;
                }
                self.signs(*unsigned, *zerofill)
            }
            DataType::Date => self.word("date"),
            DataType::Time(fraction) => self.length("time", *fraction),
            DataType::DateTime(fraction) => self.length("datetime", *fraction),
            DataType::Timestamp(fraction) => self.length("timestamp", *fraction),
            DataType::Year => self.word("year"),
            DataType::Char { length, charset } => {
                self.length("char", *length)?;
                self.charset(charset)
            }
            DataType::VarChar { length, charset } => {
                put!(self, "varchar({length})")?;
                self.charset(charset)
            }
            DataType::Text {
                size,
                length,
                charset,
            } => {
                let name = match size {
                    LobSize::Tiny => "tinytext",
                    LobSize::Normal => "text",
                    LobSize::Medium => "mediumtext",
                    LobSize::Long => "longtext",
                };
                self.length(name, *length)?;
                self.charset(charset)
            }
            DataType::Binary(length) => self.length("binary", *length),
            DataType::VarBinary(length) => put!(self, "varbinary({length})"),
            DataType::Blob { size, length } => {
                let name = match size {
                    LobSize::Tiny => "tinyblob",
                    LobSize::Normal => "blob",
                    LobSize::Medium => "mediumblob",
                    LobSize::Long => "longblob",
                };
                self.length(name, *length)
            }
            DataType::Enum { members, charset } => {
                self.members("enum", members)?;
                self.charset(charset)
            }
            DataType::Set { members, charset } => {
                self.members("set", members)?;
                self.charset(charset)
            }
            DataType::Json => self.word("json"),
            DataType::Geometry(kind) => self.word(kind.name()),
        }
    }

    // -- Queries ------------------------------------------------------------------------------------------

    fn subquery(&mut self, open: &str, query: &Query) -> fmt::Result {
        self.word(open)?;
        self.query(query)?;
        self.word(")")
    }

    fn query(&mut self, query: &Query) -> fmt::Result {
        if let Some(with) = &query.with {
            self.word(if with.recursive {
                "with recursive "
            } else {
                "with "
            })?;
            self.list(&with.tables, |p, table| {
                put!(p, "{}", table.name)?;
                p.column_names(&table.columns)?;
                p.subquery(" as (", &table.query)
            })?;
            self.word(" ")?;
        }
        self.body(&query.body)?;
        self.order_by(&query.order_by)?;
        if let Some(limit) = &query.limit {
            self.word(" limit ")?;
            if let Some(offset) = &limit.offset {
                self.expr(offset)?;
                self.word(",")?;
            }
            self.expr(&limit.count)?;
        }
        for locking in &query.locking {
            self.word(if locking.update {
                " for update"
            } else {
                " for share"
            })?;
            if !locking.of.is_empty() {
                self.word(" of ")?;
                self.list(&locking.of, |p, table| put!(p, "{table}"))?;
            }
            self.word(match locking.wait {
                LockWait::Wait => "",
                LockWait::NoWait => " nowait",
                LockWait::SkipLocked => " skip locked",
            })?;
        }
        match &query.into {
            Some(into) => self.into(into),
            None => Ok(()),
        }
    }

    fn into(&mut self, into: &SelectInto) -> fmt::Result {
        self.word(" into ")?;
        match into {
            SelectInto::Variables(targets) => self.list(targets, |p, target| match target {
                IntoTarget::User(name) => put!(p, "@{name}"),
                IntoTarget::Local(name) => put!(p, "{name}"),
            }),
            SelectInto::DumpFile(path) => {
                self.word("dumpfile ")?;
                self.string(path)
            }
            SelectInto::OutFile {
                path,
                charset,
                format,
            } => {
                self.word("outfile ")?;
                self.string(path)?;
                if let Some(charset) = charset {
                    put!(self, " character set {}", charset.as_str())?;
                }
                self.file_format(format)
            }
        }
    }

    fn file_format(&mut self, format: &FileFormat) -> fmt::Result {
        let enclosed = if format.optionally_enclosed {
            " optionally enclosed by "
        } else {
            " enclosed by "
        };
        let fields = [
            (" terminated by ", &format.fields_terminated),
            (enclosed, &format.fields_enclosed),
            (" escaped by ", &format.fields_escaped),
        ];
        let lines = [
            (" starting by ", &format.lines_starting),
            (" terminated by ", &format.lines_terminated),
        ];
        for (word, parts) in [(" fields", &fields[..]), (" lines", &lines[..])] {
            if parts.iter().any(|(_, value)| value.is_some()) {
                self.word(word)?;
            }
            for (name, value) in parts {
                if let Some(value) = value {
                    self.word(name)?;
                    self.string(value)?;
                }
            }
        }
        Ok(())
    }

    fn order_by(&mut self, items: &[OrderItem]) -> fmt::Result {
        if items.is_empty() {
            return Ok(());
        }
        self.word(" order by ")?;
        self.order_items(items)
    }

    fn order_items(&mut self, items: &[OrderItem]) -> fmt::Result {
        self.list(items, |p, item| {
            p.expr(&item.expr)?;
            p.word(if item.descending { " desc" } else { "" })
        })
    }

    fn body(&mut self, body: &QueryBody) -> fmt::Result {
        match body {
            QueryBody::Select(select) => self.select(select),
            QueryBody::Values(rows) => {
                self.word("values ")?;
                self.list(rows, |p, row| {
                    p.word("row(")?;
                    p.exprs(row)?;
                    p.word(")")
                })
            }
            QueryBody::Table(name) => put!(self, "table {name}"),
            QueryBody::SetOperation(operation) => {
                let left_needs_parens =
                    operation.op == SetOperator::Intersect && is_loose(&operation.left);
                self.operand(&operation.left, left_needs_parens)?;
                self.word(match operation.op {
                    SetOperator::Union => " union ",
                    SetOperator::Intersect => " intersect ",
                    SetOperator::Except => " except ",
                })?;
                self.word(if operation.all { "all " } else { "" })?;
                let right_needs_parens = matches!(&operation.right, QueryBody::SetOperation(right)
                    if right.op != SetOperator::Intersect || operation.op == SetOperator::Intersect);
                self.operand(&operation.right, right_needs_parens)
            }
            QueryBody::Query(query) => self.subquery("(", query),
        }
    }

    fn operand(&mut self, body: &QueryBody, parens: bool) -> fmt::Result {
        self.word(if parens { "(" } else { "" })?;
        self.body(body)?;
        self.word(if parens { ")" } else { "" })
    }

    fn select(&mut self, select: &Select) -> fmt::Result {
        self.word("select ")?;
        if let Some(hints) = &select.hints {
            put!(self, "/*+ {hints} */ ")?;
        }
        let options = &select.options;
        for (set, word) in [
            (select.distinct, "distinct "),
            (options.high_priority, "high_priority "),
            (options.straight_join, "straight_join "),
            (options.sql_small_result, "sql_small_result "),
            (options.sql_big_result, "sql_big_result "),
            (options.sql_buffer_result, "sql_buffer_result "),
            (options.sql_no_cache, "sql_no_cache "),
            (options.sql_calc_found_rows, "sql_calc_found_rows "),
        ] {
            self.word(if set { word } else { "" })?;
        }
        self.list(&select.items, |p, item| match item {
            SelectItem::Wildcard => p.word("*"),
            SelectItem::QualifiedWildcard(table) => put!(p, "{table}.*"),
            SelectItem::Expr { expr, alias, .. } => {
                p.expr(expr)?;
                match alias {
                    Some(alias) => put!(p, " AS {alias}"),
                    None => Ok(()),
                }
            }
        })?;
        if !select.from.is_empty() {
            self.word(" from ")?;
            self.list(&select.from, Self::table_ref)?;
        }
        if let Some(selection) = &select.selection {
            self.word(if select.from.is_empty() {
                " from dual where "
            } else {
                " where "
            })?;
            self.expr(selection)?;
        }
        if !select.group_by.is_empty() {
            self.word(" group by ")?;
            self.order_items(&select.group_by)?;
            self.word(if select.rollup { " with rollup" } else { "" })?;
        }
        if let Some(having) = &select.having {
            self.word(" having ")?;
            self.expr(having)?;
        }
        if !select.windows.is_empty() {
            self.word(" window ")?;
            self.list(&select.windows, |p, (name, window)| {
                put!(p, "{name} AS ")?;
                p.window(window)
            })?;
        }
        Ok(())
    }

    fn table_ref(&mut self, table: &TableRef) -> fmt::Result {
        match table {
            TableRef::Table(table) => {
                put!(self, "{}", table.name)?;
                if !table.partitions.is_empty() {
                    self.word(" partition (")?;
                    self.idents(&table.partitions)?;
                    self.word(")")?;
                }
                self.alias(&table.alias)?;
                table
                    .index_hints
                    .iter()
                    .try_for_each(|hint| self.index_hint(hint))
            }
            TableRef::Derived(derived) => {
                self.word(if derived.lateral { "lateral " } else { "" })?;
                self.subquery("(", &derived.query)?;
                if !derived.alias.is_empty() {
                    put!(self, " {}", derived.alias)?;
                }
                self.column_names(&derived.columns)
            }
            TableRef::JsonTable(table) => {
                self.word("json_table(")?;
                self.expr(&table.doc)?;
                self.word(", ")?;
                self.string(&table.path)?;
                self.json_columns(&table.columns)?;
                self.word(")")?;
                match table.alias.is_empty() {
                    true => Ok(()),
                    false => put!(self, " {}", table.alias),
                }
            }
            TableRef::Join(join) => self.join(join),
        }
    }

    fn alias(&mut self, alias: &Option<Ident>) -> fmt::Result {
        match alias {
            Some(alias) => put!(self, " {alias}"),
            None => Ok(()),
        }
    }

    fn index_hint(&mut self, hint: &IndexHint) -> fmt::Result {
        self.word(match hint.action {
            IndexHintAction::Use => " use index ",
            IndexHintAction::Force => " force index ",
            IndexHintAction::Ignore => " ignore index ",
        })?;
        self.word(match hint.scope {
            None => "(",
            Some(IndexHintScope::Join) => "for join (",
            Some(IndexHintScope::OrderBy) => "for order by (",
            Some(IndexHintScope::GroupBy) => "for group by (",
        })?;
        self.idents(&hint.indexes)?;
        self.word(")")
    }

    fn json_columns(&mut self, columns: &[JsonTableColumn]) -> fmt::Result {
        self.word(" columns (")?;
        self.list(columns, |p, column| match column {
            JsonTableColumn::Ordinality(name) => put!(p, "{name} for ordinality"),
            JsonTableColumn::Path {
                name,
                data_type,
                collation,
                exists,
                path,
                on_empty,
                on_error,
            } => {
                put!(p, "{name} {data_type}")?;
                if let Some(collation) = collation {
                    put!(p, " collate {}", collation.as_str())?;
                }
                p.word(if *exists { " exists path " } else { " path " })?;
                p.string(path)?;
                p.responses(on_empty, on_error)
            }
            JsonTableColumn::Nested { path, columns } => {
                p.word("nested path ")?;
                p.string(path)?;
                p.json_columns(columns)
            }
        })?;
        self.word(")")
    }

    fn join(&mut self, join: &Join) -> fmt::Result {
        self.word("(")?;
        self.table_ref(&join.left)?;
        self.word(if join.condition == JoinCondition::Natural {
            " natural"
        } else {
            ""
        })?;
        self.word(match join.kind {
            JoinKind::Inner => " join ",
            JoinKind::Straight => " straight_join ",
            JoinKind::Left => " left join ",
            JoinKind::Right => " right join ",
        })?;
        self.table_ref(&join.right)?;
        match &join.condition {
            JoinCondition::None | JoinCondition::Natural => {}
            JoinCondition::On(condition) => {
                self.word(" on(")?;
                self.expr(condition)?;
                self.word(")")?;
            }
            JoinCondition::Using(columns) => {
                self.word(" using (")?;
                self.idents(columns)?;
                self.word(")")?;
            }
        }
        self.word(")")
    }
}

/// Whether a body binds looser than INTERSECT.
fn is_loose(body: &QueryBody) -> bool {
    matches!(body, QueryBody::SetOperation(operation) if operation.op != SetOperator::Intersect)
}
