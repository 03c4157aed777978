//! Expressions as steps, each of which makes a vector.

use porpoise_core::error::Result;
use porpoise_core::memory::Charge;
use porpoise_expr::{Arithmetic, CastKind, Expr, ExprKind, SlotId};
use porpoise_types::vector::{Elements, Kind, Vector};
use porpoise_types::{DataType, RowLayout, Value};

use super::condition::Condition;
use super::evaluator::Evaluator;
use super::kernels::{Operand, Truth, checked, combine, divided, either_null};
use super::{ROWS_MAX, is_repeatable, reads, silently};
use crate::Exec;
use crate::eval::Evaluate;

/// The number of the step that makes a vector.
pub(super) type Register = usize;

/// Steps over the rows of one slot.
pub(crate) struct Program<'p> {
    pub(super) slot: SlotId,
    steps: Vec<Step<'p>>,
    kinds: Vec<Kind>,
    charge: Charge,
}

enum Step<'p> {
    /// The same for all rows; not NULL.
    Constant(Value),
    /// The column at a position of the stored row.
    Column(usize),
    /// Whether the column at a position is NULL, whatever its type.
    NullsOf(usize),
    /// Exact arithmetic, once the operands have been multiplied by these.
    Exact {
        op: Arithmetic,
        operands: [Register; 2],
        factors: [i64; 2],
    },
    /// Approximate arithmetic.
    Double {
        op: Arithmetic,
        operands: [Register; 2],
    },
    Negate(Register),
    /// An integer as a double.
    ToDouble(Register),
    /// An integer as a decimal, which must be less than the bound.
    ToDecimal {
        operand: Register,
        factor: i64,
        bound: i64,
    },
    /// An integer as one that is signed, or not.
    ToInteger(Register),
    /// A date as its midnight.
    Midnight(Register),
    /// How many bytes a text has.
    Length(Register),
    /// A part of a packed date: what the mask leaves of it once it is shifted.
    DatePart {
        date: Register,
        shift: u32,
        mask: i64,
    },
    /// 1, 0 or NULL.
    Truth(Box<Condition<'p>>),
    /// The value behind the first condition that is true, or the last value, behind which there is
    /// none; `None` is NULL.
    Choice {
        conditions: Vec<Condition<'p>>,
        values: Vec<Option<Register>>,
    },
    /// By the row evaluator.
    Row(&'p Expr),
}

/// What steps have made of rows.
pub(super) struct Vectors<'r> {
    /// By register; of constants there is none.
    vectors: Vec<Option<Vector<'r>>>,
    pub(super) rows: usize,
}

/// The functions that count the bytes of a text.
const BYTE_LENGTHS: [&str; 2] = ["LENGTH", "OCTET_LENGTH"];

/// The functions that have a part of a date: how far it is shifted in a packed date, and its mask.
const DATE_PARTS: [(&str, u32, i64); 4] = [
    ("YEAR", 9, i64::MAX),
    ("MONTH", 5, 15),
    ("DAY", 0, 31),
    ("DAYOFMONTH", 0, 31),
];

/// The functions that choose the first of their arguments that isn't NULL.
const FIRST_NOT_NULL: [&str; 2] = ["COALESCE", "IFNULL"];

/// 10 to a power, if it fits.
pub(super) fn power(digits: u8) -> Option<i64> {
    10i64.checked_pow(u32::from(digits))
}

/// What the row evaluator makes of a batch may take so much memory, beside one value: longer values
/// are made one at a time.
const VALUES_BYTES_MAX: usize = 1 << 20;

/// What an element of a vector takes at most, and whether it is NULL.
const ELEMENT_BYTES_MAX: usize = size_of::<Value>() + size_of::<bool>();

/// The digits that a moment's packed integer has behind those of its date.
const MIDNIGHT_BITS: u32 = 37;

impl<'p> Program<'p> {
    pub(super) fn new(slot: SlotId) -> Program<'p> {
        Program {
            slot,
            steps: Vec::new(),
            kinds: Vec::new(),
            charge: Charge::default(),
        }
    }

    /// Charges what the vectors of a batch take at most. `false`: the statement may not have so much,
    /// and rows are to be gone through one by one.
    pub(super) fn charge(&mut self, exec: &Exec<'_>) -> bool {
        let by_rows = self.steps.iter().any(|step| matches!(step, Step::Row(_)));
        let values = if by_rows { VALUES_BYTES_MAX } else { 0 };
        let bytes = self.vectors_bytes() + values;
        self.charge.set(&exec.session.memory, bytes).is_ok()
    }

    /// What the vectors of a batch take at most, in bytes.
    pub(super) fn vectors_bytes(&self) -> usize {
        self.steps.len() * ROWS_MAX * ELEMENT_BYTES_MAX
    }

    /// The same without what it borrows of the plan, for another thread; `None` where the row
    /// evaluator computes a part. Nothing is charged for it.
    pub(super) fn detached(&self) -> Option<Program<'static>> {
        let steps = self.steps.iter().map(Step::detached);
        Some(Program {
            slot: self.slot,
            steps: steps.collect::<Option<_>>()?,
            kinds: self.kinds.clone(),
            charge: Charge::default(),
        })
    }

    pub(super) fn kind(&self, register: Register) -> Kind {
        self.kinds[register]
    }

    pub(super) fn constant(&self, register: Register) -> Option<&Value> {
        match &self.steps[register] {
            Step::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// The value of a constant as its kind's integer.
    pub(super) fn integer(&self, register: Register) -> Option<i64> {
        self.kinds[register].integer_of(self.constant(register)?)
    }

    /// Whether some step computes with vectors: without one there is nothing to gain.
    pub(super) fn has_loops(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| !matches!(step, Step::Row(_) | Step::Constant(_)))
    }

    fn push(&mut self, step: Step<'p>, kind: Kind) -> Register {
        let known = self.steps.iter().zip(&self.kinds);
        let same = known
            .into_iter()
            .position(|(known, of)| *of == kind && known.is_same(&step));
        same.unwrap_or_else(|| {
            self.steps.push(step);
            self.kinds.push(kind);
            self.steps.len() - 1
        })
    }

    /// Adds what makes an expression's vector; by the row evaluator, if there are no loops for it.
    /// `None` if it can't be computed in batches.
    pub(super) fn add(&mut self, exec: &mut Exec<'_>, expr: &'p Expr) -> Option<Register> {
        if !is_repeatable(expr) {
            return None;
        }
        if let Some(register) = self.attempt(|program| program.compile(exec, expr)) {
            return Some(register);
        }
        let kind = match &expr.ty {
            DataType::Int {
                unsigned: false, ..
            } => Kind::Int,
            DataType::Double { .. } => Kind::Double,
            _ => Kind::Any,
        };
        Some(self.push(Step::Row(expr), kind))
    }

    /// Adds what tells where an expression is NULL.
    pub(super) fn add_nulls(&mut self, exec: &mut Exec<'_>, expr: &'p Expr) -> Option<Register> {
        match self.position_of(exec, expr) {
            Some(position) => Some(self.push(Step::NullsOf(position), Kind::Int)),
            None => self.add(exec, expr),
        }
    }

    /// Where a column of the slot lies in the stored row.
    fn position_of(&self, exec: &Exec<'_>, expr: &Expr) -> Option<usize> {
        let (slot, column) = expr.as_column().filter(|(slot, _)| *slot == self.slot)?;
        let layout = &exec.layouts[slot.0 as usize];
        let position = layout.position(column);
        (position < layout.layout.types().len()).then_some(position)
    }

    /// Adds the loops for an expression; `None` where there are none.
    pub(super) fn compile(&mut self, exec: &mut Exec<'_>, expr: &'p Expr) -> Option<Register> {
        if !reads(expr, self.slot) {
            let value = silently(exec, |exec| expr.eval(exec))?;
            return self.add_constant(value);
        }
        if let Some(position) = self.position_of(exec, expr) {
            let layout = &exec.layouts[self.slot.0 as usize].layout;
            let kind = layout.column_kind(position)?;
            return Some(self.push(Step::Column(position), kind));
        }
        match &expr.kind {
            ExprKind::Arithmetic { op, left, right } => {
                let operands = [self.compile(exec, left)?, self.compile(exec, right)?];
                self.arithmetic(*op, operands, &expr.ty)
            }
            ExprKind::Negate(operand) => {
                let operand = self.compile(exec, operand)?;
                let kind = self.kinds[operand];
                match (kind, &expr.ty) {
                    (
                        Kind::Int,
                        DataType::Int {
                            unsigned: false, ..
                        },
                    )
                    | (Kind::Decimal(_), DataType::Decimal { .. })
                    | (Kind::Double, _) => Some(self.push(Step::Negate(operand), kind)),
                    _ => None,
                }
            }
            ExprKind::Cast { operand, kind } => {
                let from = self.compile(exec, operand)?;
                self.cast(from, &expr.ty, *kind)
            }
            ExprKind::Call {
                function,
                arguments,
            } if BYTE_LENGTHS.contains(&function.name) => {
                // The text's encoding, which is as it is stored.
                let [argument] = &arguments[..] else {
                    return None;
                };
                let ExprKind::Cast { operand, .. } = &argument.kind else {
                    return None;
                };
                let is_encoding = matches!(argument.ty, DataType::Varbinary(_) | DataType::Blob(_));
                let text = self.compile(exec, operand)?;
                let is_text = self.kinds[text] == Kind::Text && self.constant(text).is_none();
                let is_stored = is_text && operand.ty.collation().charset().is_utf8();
                (is_encoding && is_stored).then(|| self.push(Step::Length(text), Kind::Int))
            }
            ExprKind::Call {
                function,
                arguments,
            } if FIRST_NOT_NULL.contains(&function.name) => {
                let mut conditions = Vec::with_capacity(arguments.len());
                let mut values = Vec::with_capacity(arguments.len() + 1);
                for argument in arguments {
                    let value = self.value(exec, argument)?;
                    if let Some(value) = value {
                        conditions.push(Condition::is_not_null(value));
                        values.push(Some(value));
                    }
                }
                values.push(None);
                self.choice(conditions, values)
            }
            ExprKind::Call {
                function,
                arguments,
            } => {
                let mut parts = DATE_PARTS.iter();
                let (_, shift, mask) = parts.find(|(name, ..)| *name == function.name)?;
                let [argument] = &arguments[..] else {
                    return None;
                };
                let date = self.compile(exec, argument)?;
                let time_bits = match self.kinds[date] {
                    Kind::Date => 0,
                    Kind::DateTime => MIDNIGHT_BITS,
                    _ => return None,
                };
                let (shift, mask) = (shift + time_bits, *mask);
                let is_signed = matches!(
                    expr.ty,
                    DataType::Int {
                        unsigned: false,
                        ..
                    }
                );
                is_signed.then(|| self.push(Step::DatePart { date, shift, mask }, Kind::Int))
            }
            ExprKind::Case {
                branches,
                otherwise,
            } => {
                let mut conditions = Vec::with_capacity(branches.len());
                let mut values = Vec::with_capacity(branches.len() + 1);
                for (condition, value) in branches {
                    conditions.push(Condition::compile(self, exec, condition));
                    values.push(self.value(exec, value)?);
                }
                values.push(match otherwise {
                    Some(value) => self.value(exec, value)?,
                    None => None,
                });
                self.choice(conditions, values)
            }
            ExprKind::Not(_)
            | ExprKind::And(_)
            | ExprKind::Or(_)
            | ExprKind::Xor(..)
            | ExprKind::Compare { .. }
            | ExprKind::Between { .. }
            | ExprKind::InList { .. }
            | ExprKind::IsNull { .. }
            | ExprKind::IsTruth { .. }
            | ExprKind::Like { .. } => {
                let condition = Condition::compile(self, exec, expr);
                let has_loops = condition.has_loops();
                has_loops.then(|| self.push(Step::Truth(Box::new(condition)), Kind::Int))
            }
            _ => None,
        }
    }

    /// Adds the loops for a value that may be chosen; `Some(None)` for NULL.
    fn value(&mut self, exec: &mut Exec<'_>, expr: &'p Expr) -> Option<Option<Register>> {
        if !reads(expr, self.slot) && silently(exec, |exec| expr.eval(exec))?.is_null() {
            return Some(None);
        }
        self.compile(exec, expr).map(Some)
    }

    /// Adds a choice between values of one kind.
    fn choice(
        &mut self,
        conditions: Vec<Condition<'p>>,
        values: Vec<Option<Register>>,
    ) -> Option<Register> {
        let mut kinds = values.iter().flatten().map(|value| self.kinds[*value]);
        let kind = kinds.next()?;
        if !kinds.all(|other| other == kind) || matches!(kind, Kind::Text | Kind::Any) {
            return None;
        }
        Some(self.push(Step::Choice { conditions, values }, kind))
    }

    pub(super) fn add_constant(&mut self, value: Value) -> Option<Register> {
        let kind = match &value {
            Value::Int(_) => Kind::Int,
            Value::UInt(_) => Kind::UInt,
            Value::Decimal(value) => Kind::Decimal(value.scale()),
            Value::Date(_) => Kind::Date,
            Value::DateTime(_) => Kind::DateTime,
            Value::Double(_) => Kind::Double,
            Value::Text(_) => Kind::Text,
            _ => return None,
        };
        let fits = matches!(kind, Kind::Double | Kind::Text) || kind.integer_of(&value).is_some();
        fits.then(|| self.push(Step::Constant(value), kind))
    }

    fn arithmetic(
        &mut self,
        op: Arithmetic,
        operands: [Register; 2],
        ty: &DataType,
    ) -> Option<Register> {
        let kinds = operands.map(|operand| self.kinds[operand]);
        match ty {
            DataType::Int { unsigned, .. } => {
                let are_integers = kinds.iter().all(|kind| kind.scale() == Some(0))
                    && !kinds.contains(&Kind::Decimal(0));
                let is_plain = matches!(
                    op,
                    Arithmetic::Add
                        | Arithmetic::Subtract
                        | Arithmetic::Multiply
                        | Arithmetic::Modulo
                        | Arithmetic::IntegerDivide
                );
                let kind = if *unsigned { Kind::UInt } else { Kind::Int };
                let factors = [1, 1];
                let step = Step::Exact {
                    op,
                    operands,
                    factors,
                };
                (are_integers && is_plain).then(|| self.push(step, kind))
            }
            DataType::Decimal { .. } => {
                let (a, b) = (kinds[0].scale()?, kinds[1].scale()?);
                let (factors, scale) = match op {
                    Arithmetic::Add | Arithmetic::Subtract => {
                        let scale = a.max(b);
                        ([power(scale - a)?, power(scale - b)?], scale)
                    }
                    // A product of more digits after the point is rounded.
                    Arithmetic::Multiply if a + b <= porpoise_types::decimal::MAX_SCALE => {
                        ([1, 1], a + b)
                    }
                    _ => return None,
                };
                let step = Step::Exact {
                    op,
                    operands,
                    factors,
                };
                Some(self.push(step, Kind::Decimal(scale)))
            }
            DataType::Double { .. } | DataType::Float { .. } => {
                let operands = [self.double(operands[0])?, self.double(operands[1])?];
                let is_plain = matches!(
                    op,
                    Arithmetic::Add
                        | Arithmetic::Subtract
                        | Arithmetic::Multiply
                        | Arithmetic::Divide
                );
                is_plain.then(|| self.push(Step::Double { op, operands }, Kind::Double))
            }
            _ => None,
        }
    }

    fn cast(&mut self, operand: Register, ty: &DataType, kind: CastKind) -> Option<Register> {
        let from = self.kinds[operand];
        let is_integer = matches!(from, Kind::Int | Kind::UInt);
        match ty {
            DataType::Int { unsigned, .. } if is_integer => {
                let to = if *unsigned { Kind::UInt } else { Kind::Int };
                Some(match from == to {
                    true => operand,
                    false => self.push(Step::ToInteger(operand), to),
                })
            }
            DataType::Decimal {
                precision, scale, ..
            } if is_integer && kind != CastKind::Exact => {
                let step = Step::ToDecimal {
                    operand,
                    factor: power(*scale)?,
                    bound: power(precision - scale).unwrap_or(i64::MAX),
                };
                Some(self.push(step, Kind::Decimal(*scale)))
            }
            DataType::Double { .. } if is_integer || from == Kind::Double => self.double(operand),
            _ => None,
        }
    }

    /// A vector's doubles, of numbers that are doubles or integers.
    pub(super) fn double(&mut self, operand: Register) -> Option<Register> {
        match self.kinds[operand] {
            Kind::Double => Some(operand),
            Kind::Int | Kind::UInt => match self.integer(operand) {
                Some(constant) => self.add_constant(Value::Double(constant as f64)),
                None => Some(self.push(Step::ToDouble(operand), Kind::Double)),
            },
            _ => None,
        }
    }

    /// The midnights of dates.
    pub(super) fn midnight(&mut self, operand: Register) -> Option<Register> {
        match self.constant(operand) {
            Some(Value::Date(date)) => {
                let midnight = date.at_midnight();
                self.add_constant(Value::DateTime(midnight))
            }
            _ => Some(self.push(Step::Midnight(operand), Kind::DateTime)),
        }
    }

    /// Makes the vectors. `Ok(None)`: something is out of the ordinary, and nothing has happened.
    ///
    /// # Errors
    /// 1317.
    pub(super) fn run<'r>(
        &self,
        by: &mut dyn Evaluator,
        layout: &'r RowLayout,
        rows: &[&'r [u8]],
    ) -> Result<Option<Vectors<'r>>> {
        let mut vectors = Vectors {
            vectors: Vec::with_capacity(self.steps.len()),
            rows: rows.len(),
        };
        let mut by_rows = self.evaluate_rows(by, rows)?.into_iter();
        for (step, kind) in self.steps.iter().zip(&self.kinds) {
            let vector = match step {
                Step::Constant(_) => None,
                Step::Row(_) => match by_rows.next() {
                    Some(Some(vector)) => Some(vector),
                    _ => return Ok(None),
                },
                step => match self.step(by, step, *kind, layout, rows, &vectors)? {
                    Some(vector) => Some(vector),
                    None => return Ok(None),
                },
            };
            vectors.vectors.push(vector);
        }
        Ok(Some(vectors))
    }

    fn step<'r>(
        &self,
        by: &mut dyn Evaluator,
        step: &Step<'p>,
        kind: Kind,
        layout: &'r RowLayout,
        rows: &[&'r [u8]],
        vectors: &Vectors<'r>,
    ) -> Result<Option<Vector<'r>>> {
        let integers = |register| self.integers(vectors, register);
        Ok(match step {
            Step::Column(position) => layout.read_column(rows, *position),
            Step::NullsOf(position) => Some(Vector {
                kind,
                elements: Elements::Integers(vec![0; rows.len()]),
                nulls: layout.read_nulls(rows, *position),
            }),
            Step::Exact {
                op,
                operands,
                factors,
            } => self.exact(*op, *operands, *factors, kind, vectors),
            Step::Double { op, operands } => self.approximate(*op, *operands, vectors),
            Step::Negate(operand) if kind == Kind::Double => self
                .doubles(vectors, *operand)
                .map(|operand| {
                    let negated = combine(operand, Operand::Constant(0.0), rows.len(), |a, _| -a);
                    Elements::Doubles(negated)
                })
                .map(|elements| vectors.like(*operand, kind, elements)),
            Step::Negate(operand) => integers(*operand)
                .and_then(|operand| {
                    checked(operand, Operand::Constant(0), rows.len(), |a, _| {
                        a.overflowing_neg()
                    })
                })
                .map(|negated| vectors.like(*operand, kind, Elements::Integers(negated))),
            Step::ToDouble(operand) => integers(*operand).map(|operand_values| {
                let doubles = match operand_values {
                    Operand::Vector(values) => values.iter().map(|v| *v as f64).collect(),
                    Operand::Constant(value) => vec![value as f64; rows.len()],
                };
                vectors.like(*operand, kind, Elements::Doubles(doubles))
            }),
            Step::ToDecimal {
                operand,
                factor,
                bound,
            } => integers(*operand)
                .and_then(|operand| {
                    checked(
                        operand,
                        Operand::Constant(*factor),
                        rows.len(),
                        |a, factor| {
                            let (product, is_over) = a.overflowing_mul(factor);
                            (product, is_over || a <= -*bound || a >= *bound)
                        },
                    )
                })
                .map(|decimals| vectors.like(*operand, kind, Elements::Integers(decimals))),
            Step::ToInteger(operand) => integers(*operand)
                .and_then(|operand| {
                    let is_unsigned = kind == Kind::UInt;
                    checked(operand, Operand::Constant(0), rows.len(), |a, _| {
                        (a, is_unsigned && a < 0)
                    })
                })
                .map(|same| vectors.like(*operand, kind, Elements::Integers(same))),
            Step::Midnight(operand) => integers(*operand)
                .map(|operand| {
                    combine(operand, Operand::Constant(0), rows.len(), |a, _| {
                        a << MIDNIGHT_BITS
                    })
                })
                .map(|moments| vectors.like(*operand, kind, Elements::Integers(moments))),
            Step::DatePart { date, shift, mask } => integers(*date)
                .map(|dates| {
                    combine(dates, Operand::Constant(0), rows.len(), |date, _| {
                        date >> shift & mask
                    })
                })
                .map(|parts| vectors.like(*date, kind, Elements::Integers(parts))),
            Step::Choice { conditions, values } => {
                let mut chosen = Chosen::new(rows.len());
                for (condition, value) in conditions.iter().zip(values) {
                    let undecided = Some(&chosen.undecided[..]);
                    let truths = condition.truths(by, self, layout, rows, vectors, undecided)?;
                    let Some(truths) = truths else {
                        return Ok(None);
                    };
                    chosen.choose(*value, |row| truths[row] == Truth::Yes);
                }
                chosen.choose(values.last().copied().flatten(), |_| true);
                self.chosen(&chosen.values, kind, vectors)
            }
            Step::Length(text) => match self.texts(vectors, *text) {
                Some(Operand::Vector(texts)) => {
                    let lengths = texts.iter().map(|text| text.len() as i64).collect();
                    Some(vectors.like(*text, kind, Elements::Integers(lengths)))
                }
                _ => None,
            },
            Step::Truth(condition) => {
                let truths = condition.truths(by, self, layout, rows, vectors, None)?;
                truths.map(|truths| {
                    let is_null = |truth: &Truth| *truth == Truth::Unknown;
                    let nulls = match truths.iter().any(is_null) {
                        true => truths.iter().map(is_null).collect(),
                        false => Vec::new(),
                    };
                    let truths = truths.iter().map(|truth| i64::from(*truth == Truth::Yes));
                    Vector {
                        kind,
                        elements: Elements::Integers(truths.collect()),
                        nulls,
                    }
                })
            }
            Step::Constant(_) | Step::Row(_) => None,
        })
    }

    /// What the row evaluator makes of the expressions that are left to it, row by row; `None` for
    /// what isn't plain.
    fn evaluate_rows(
        &self,
        by: &mut dyn Evaluator,
        rows: &[&[u8]],
    ) -> Result<Vec<Option<Vector<'static>>>> {
        let exprs = self.steps.iter().zip(&self.kinds);
        let exprs = exprs.filter_map(|(step, kind)| match step {
            Step::Row(expr) => Some((*expr, *kind)),
            _ => None,
        });
        let exprs: Vec<(&Expr, Kind)> = exprs.collect();
        if exprs.is_empty() {
            return Ok(Vec::new());
        }
        let room = || Vec::with_capacity(rows.len());
        let mut columns: Vec<Vec<Value>> = exprs.iter().map(|_| room()).collect();
        let mut bytes = 0;
        for row in rows {
            by.check_interrupt()?;
            by.load(self.slot, row);
            for ((expr, _), column) in exprs.iter().zip(&mut columns) {
                match by.value(expr) {
                    Some(value) => {
                        bytes += value.heap_bytes();
                        column.push(value);
                    }
                    None => return Ok(vec![None]),
                }
            }
            if bytes > VALUES_BYTES_MAX {
                return Ok(vec![None]);
            }
        }
        let kinds = exprs.iter().map(|(_, kind)| *kind);
        Ok(columns.into_iter().zip(kinds).map(of_values).collect())
    }

    /// The vector of which each row's value is in another one; `None` is NULL.
    fn chosen<'r>(
        &self,
        chosen: &[Option<Register>],
        kind: Kind,
        vectors: &Vectors<'r>,
    ) -> Option<Vector<'r>> {
        let is_null = |(row, chosen): (usize, &Option<Register>)| match chosen {
            Some(register) => vectors.nulls(*register).get(row) == Some(&true),
            None => true,
        };
        let nulls: Vec<bool> = chosen.iter().enumerate().map(is_null).collect();
        let rows = chosen.iter().enumerate();
        let elements = match kind {
            Kind::Double => {
                let double = |(row, chosen): (usize, &Option<Register>)| match chosen {
                    Some(register) => self.doubles(vectors, *register).map(|of| of.get(row)),
                    None => Some(0.0),
                };
                Elements::Doubles(rows.map(double).collect::<Option<_>>()?)
            }
            _ => {
                let integer = |(row, chosen): (usize, &Option<Register>)| match chosen {
                    Some(register) => self.integers(vectors, *register).map(|of| of.get(row)),
                    None => Some(0),
                };
                Elements::Integers(rows.map(integer).collect::<Option<_>>()?)
            }
        };
        Some(Vector {
            kind,
            elements,
            nulls: match nulls.contains(&true) {
                true => nulls,
                false => Vec::new(),
            },
        })
    }

    fn exact<'r>(
        &self,
        op: Arithmetic,
        operands: [Register; 2],
        factors: [i64; 2],
        kind: Kind,
        vectors: &Vectors<'r>,
    ) -> Option<Vector<'r>> {
        let rows = vectors.rows;
        let nulls = vectors.nulls_of(operands);
        let (mut left, mut right) = (
            self.integers(vectors, operands[0])?,
            self.integers(vectors, operands[1])?,
        );
        let scaled = [
            multiplied(left, factors[0], rows)?,
            multiplied(right, factors[1], rows)?,
        ];
        if let Some(scaled) = &scaled[0] {
            left = scaled.operand();
        }
        if let Some(scaled) = &scaled[1] {
            right = scaled.operand();
        }
        let results = match op {
            Arithmetic::Add => checked(left, right, rows, i64::overflowing_add),
            Arithmetic::Subtract => checked(left, right, rows, i64::overflowing_sub),
            Arithmetic::Multiply => checked(left, right, rows, i64::overflowing_mul),
            Arithmetic::Modulo => divided(left, right, rows, &nulls, i64::checked_rem),
            Arithmetic::IntegerDivide => divided(left, right, rows, &nulls, i64::checked_div),
            _ => None,
        }?;
        let is_null = |row: usize| nulls.get(row).copied().unwrap_or(false);
        let mut numbered = results.iter().enumerate();
        if kind == Kind::UInt && numbered.any(|(row, result)| *result < 0 && !is_null(row)) {
            return None;
        }
        Some(Vector {
            kind,
            elements: Elements::Integers(results),
            nulls,
        })
    }

    fn approximate<'r>(
        &self,
        op: Arithmetic,
        operands: [Register; 2],
        vectors: &Vectors<'r>,
    ) -> Option<Vector<'r>> {
        let rows = vectors.rows;
        let nulls = vectors.nulls_of(operands);
        let (left, right) = (
            self.doubles(vectors, operands[0])?,
            self.doubles(vectors, operands[1])?,
        );
        let results = match op {
            Arithmetic::Add => combine(left, right, rows, |a, b| a + b),
            Arithmetic::Subtract => combine(left, right, rows, |a, b| a - b),
            Arithmetic::Multiply => combine(left, right, rows, |a, b| a * b),
            // A division by zero is not finite.
            Arithmetic::Divide => combine(left, right, rows, |a, b| a / b),
            _ => return None,
        };
        let is_null = |row: usize| nulls.get(row).copied().unwrap_or(false);
        let mut numbered = results.iter().enumerate();
        if numbered.any(|(row, result)| !result.is_finite() && !is_null(row)) {
            return None;
        }
        Some(Vector {
            kind: Kind::Double,
            elements: Elements::Doubles(results),
            nulls,
        })
    }

    /// A register's integers.
    pub(super) fn integers<'v>(
        &self,
        vectors: &'v Vectors<'_>,
        register: Register,
    ) -> Option<Operand<'v, i64>> {
        match &vectors.vectors[register] {
            None => self.integer(register).map(Operand::Constant),
            Some(Vector {
                elements: Elements::Integers(integers),
                ..
            }) => Some(Operand::Vector(integers)),
            Some(_) => None,
        }
    }

    /// A register's doubles.
    pub(super) fn doubles<'v>(
        &self,
        vectors: &'v Vectors<'_>,
        register: Register,
    ) -> Option<Operand<'v, f64>> {
        match (&vectors.vectors[register], self.constant(register)) {
            (None, Some(Value::Double(constant))) => Some(Operand::Constant(*constant)),
            (
                Some(Vector {
                    elements: Elements::Doubles(doubles),
                    ..
                }),
                _,
            ) => Some(Operand::Vector(doubles)),
            _ => None,
        }
    }

    /// A register's texts.
    pub(super) fn texts<'v>(
        &'v self,
        vectors: &'v Vectors<'_>,
        register: Register,
    ) -> Option<Operand<'v, &'v [u8]>> {
        match (&vectors.vectors[register], self.constant(register)) {
            (None, Some(Value::Text(constant))) => Some(Operand::Constant(constant.as_bytes())),
            (
                Some(Vector {
                    elements: Elements::Texts(texts),
                    ..
                }),
                _,
            ) => Some(Operand::Vector(texts)),
            _ => None,
        }
    }

    /// A register's vector; that of a constant is made. `None` where a constant makes none.
    fn output<'v>(
        &self,
        vectors: &'v mut Vectors<'_>,
        register: Register,
    ) -> Option<&'v Vector<'v>> {
        if let Some(value) = self.constant(register) {
            let vector = Vector::repeat(value, self.kinds[register], vectors.rows)?;
            vectors.vectors[register] = Some(vector);
        }
        vectors.vector(register)
    }

    /// As [`run`](Self::run), with these of the constants as vectors, too.
    ///
    /// # Errors
    /// 1317.
    pub(super) fn outputs<'r>(
        &self,
        registers: impl Iterator<Item = Register>,
        by: &mut dyn Evaluator,
        layout: &'r RowLayout,
        rows: &[&'r [u8]],
    ) -> Result<Option<Vectors<'r>>> {
        let Some(mut vectors) = self.run(by, layout, rows)? else {
            return Ok(None);
        };
        for register in registers {
            if self.output(&mut vectors, register).is_none() {
                return Ok(None);
            }
        }
        Ok(Some(vectors))
    }

    /// Adds what `add` adds, or nothing if it can't.
    pub(super) fn attempt<T>(&mut self, add: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let steps = self.steps.len();
        let added = add(self);
        if added.is_none() {
            self.steps.truncate(steps);
            self.kinds.truncate(steps);
        }
        added
    }
}

impl Step<'_> {
    /// As [`Program::detached`].
    fn detached(&self) -> Option<Step<'static>> {
        Some(match self {
            Step::Constant(value) => Step::Constant(value.clone()),
            Step::Column(position) => Step::Column(*position),
            Step::NullsOf(position) => Step::NullsOf(*position),
            Step::Exact {
                op,
                operands,
                factors,
            } => Step::Exact {
                op: *op,
                operands: *operands,
                factors: *factors,
            },
            Step::Double { op, operands } => Step::Double {
                op: *op,
                operands: *operands,
            },
            Step::Negate(operand) => Step::Negate(*operand),
            Step::ToDouble(operand) => Step::ToDouble(*operand),
            Step::ToDecimal {
                operand,
                factor,
                bound,
            } => Step::ToDecimal {
                operand: *operand,
                factor: *factor,
                bound: *bound,
            },
            Step::ToInteger(operand) => Step::ToInteger(*operand),
            Step::Midnight(operand) => Step::Midnight(*operand),
            Step::Length(text) => Step::Length(*text),
            Step::DatePart { date, shift, mask } => Step::DatePart {
                date: *date,
                shift: *shift,
                mask: *mask,
            },
            Step::Truth(condition) => Step::Truth(Box::new(condition.detached()?)),
            Step::Choice { conditions, values } => {
                let conditions = conditions.iter().map(Condition::detached);
                Step::Choice {
                    conditions: conditions.collect::<Option<_>>()?,
                    values: values.clone(),
                }
            }
            Step::Row(_) => return None,
        })
    }

    /// Whether another step makes the same vector.
    fn is_same(&self, other: &Step<'_>) -> bool {
        match (self, other) {
            (Step::Constant(a), Step::Constant(b)) => a == b,
            (Step::Column(a), Step::Column(b)) | (Step::NullsOf(a), Step::NullsOf(b)) => a == b,
            (
                Step::Exact {
                    op: a,
                    operands: x,
                    factors: f,
                },
                Step::Exact {
                    op: b,
                    operands: y,
                    factors: g,
                },
            ) => a == b && x == y && f == g,
            (Step::Double { op: a, operands: x }, Step::Double { op: b, operands: y }) => {
                a == b && x == y
            }
            (Step::Negate(a), Step::Negate(b))
            | (Step::ToDouble(a), Step::ToDouble(b))
            | (Step::ToInteger(a), Step::ToInteger(b))
            | (Step::Length(a), Step::Length(b))
            | (Step::Midnight(a), Step::Midnight(b)) => a == b,
            (
                Step::DatePart {
                    date: a,
                    shift: s,
                    mask: m,
                },
                Step::DatePart {
                    date: b,
                    shift: t,
                    mask: n,
                },
            ) => (a, s, m) == (b, t, n),
            (Step::Row(a), Step::Row(b)) => std::ptr::eq(*a, *b),
            _ => false,
        }
    }
}

impl<'r> Vectors<'r> {
    /// A vector that is NULL where another one is.
    fn like(&self, register: Register, kind: Kind, elements: Elements<'r>) -> Vector<'r> {
        Vector {
            kind,
            elements,
            nulls: self.nulls(register).to_vec(),
        }
    }

    /// Which rows of a register are NULL; empty where none is.
    pub(super) fn nulls(&self, register: Register) -> &[bool] {
        self.vectors[register].as_ref().map_or(&[], |v| &v.nulls)
    }

    fn nulls_of(&self, [left, right]: [Register; 2]) -> Vec<bool> {
        either_null(self.nulls(left), self.nulls(right))
    }

    pub(super) fn vector(&self, register: Register) -> Option<&Vector<'r>> {
        self.vectors[register].as_ref()
    }
}

/// Which register each row's value is in.
struct Chosen {
    values: Vec<Option<Register>>,
    /// The rows for which none was chosen yet.
    undecided: Vec<bool>,
}

impl Chosen {
    fn new(rows: usize) -> Chosen {
        Chosen {
            values: vec![None; rows],
            undecided: vec![true; rows],
        }
    }

    /// Chooses a value for the undecided rows that are told.
    fn choose(&mut self, value: Option<Register>, is_for: impl Fn(usize) -> bool) {
        let rows = self.values.iter_mut().zip(&mut self.undecided);
        for (row, (chosen, is_undecided)) in rows.enumerate() {
            if *is_undecided && is_for(row) {
                (*chosen, *is_undecided) = (value, false);
            }
        }
    }
}

/// Integers that were multiplied.
enum Multiplied {
    Vector(Vec<i64>),
    Constant(i64),
}

impl Multiplied {
    fn operand(&self) -> Operand<'_, i64> {
        match self {
            Multiplied::Vector(integers) => Operand::Vector(integers),
            Multiplied::Constant(integer) => Operand::Constant(*integer),
        }
    }
}

/// Multiplies by a factor; `Some(None)` where that changes nothing.
fn multiplied(operand: Operand<'_, i64>, factor: i64, rows: usize) -> Option<Option<Multiplied>> {
    if factor == 1 {
        return Some(None);
    }
    Some(Some(match operand {
        Operand::Constant(integer) => Multiplied::Constant(integer.checked_mul(factor)?),
        vector => {
            let factor = Operand::Constant(factor);
            Multiplied::Vector(checked(vector, factor, rows, i64::overflowing_mul)?)
        }
    }))
}

/// A vector of values of a kind; `None` if one isn't.
fn of_values((values, kind): (Vec<Value>, Kind)) -> Option<Vector<'static>> {
    let is_null: Vec<bool> = values.iter().map(Value::is_null).collect();
    let elements = match kind {
        Kind::Any => Elements::Values(values),
        Kind::Double => {
            let double = |value: &Value| match value {
                Value::Null => Some(0.0),
                Value::Double(value) => Some(*value),
                _ => None,
            };
            Elements::Doubles(values.iter().map(double).collect::<Option<_>>()?)
        }
        kind => {
            let integer = |value: &Value| match value {
                Value::Null => Some(0),
                value => kind.integer_of(value),
            };
            Elements::Integers(values.iter().map(integer).collect::<Option<_>>()?)
        }
    };
    Some(Vector {
        kind,
        elements,
        nulls: match is_null.contains(&true) {
            true => is_null,
            false => Vec::new(),
        },
    })
}
