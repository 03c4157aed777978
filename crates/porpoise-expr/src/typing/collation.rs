//! Which collation a mix of strings is compared and concatenated in (MySQL 8.4 manual, 12.8.4).
//!
//! Each operand has a collation and a coercibility; the least coercible decides. Two columns that
//! differ decide nothing: error 1267.

use porpoise_core::error::{Error, Result};
use porpoise_types::{Charset, Collation, DataType};
use smallvec::SmallVec;

use crate::function::{ArgumentKind, Returns};
use crate::typing::hidden;
use crate::typing::{Class, class};
use crate::{CastKind, Expr, ExprKind};

/// How easily an operand gives way: the lower, the less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coercibility {
    /// 0: `COLLATE`.
    Explicit,
    /// Two collations of the same strength met, in a text that is made of both.
    None,
    /// 2: a column.
    Implicit,
    /// 3: a constant of the server, such as USER()'s result.
    SystemConstant,
    /// 4: a literal.
    Coercible,
    /// 5: a number or a moment that is read as a text.
    Numeric,
    /// 6: NULL.
    Ignorable,
}

impl Coercibility {
    fn name(self) -> &'static str {
        match self {
            Coercibility::Explicit => "EXPLICIT",
            Coercibility::None => "NONE",
            Coercibility::Implicit => "IMPLICIT",
            Coercibility::SystemConstant => "SYSCONST",
            Coercibility::Coercible => "COERCIBLE",
            Coercibility::Numeric => "NUMERIC",
            Coercibility::Ignorable => "IGNORABLE",
        }
    }
}

/// How easily an expression's collation gives way (MySQL 8.4 manual, 12.8.4).
pub fn coercibility(expr: &Expr) -> Coercibility {
    strength(expr).1
}

/// The collation that an operand brings into a mix, and how easily it gives way.
fn strength(expr: &Expr) -> (Collation, Coercibility) {
    let collation = expr.ty.collation();
    match class(&expr.ty) {
        Class::Null => return (collation, Coercibility::Ignorable),
        Class::Text | Class::Bytes | Class::Member | Class::Json => {}
        // Bits are bytes to whoever wants text.
        _ if matches!(expr.ty, DataType::Bit(_)) => {}
        _ => return (collation, Coercibility::Numeric),
    }
    match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Parameter(_) => (collation, Coercibility::Coercible),
        ExprKind::Column { strength, .. } => (collation, *strength),
        // What an expression converts by itself is as strong as what it was.
        ExprKind::Cast {
            operand,
            kind: CastKind::Implicit | CastKind::Exact,
        } => match class(&operand.ty) {
            Class::Json => (collation, Coercibility::Implicit),
            _ => (collation, strength(operand).1),
        },
        ExprKind::Call { function, .. } if std::ptr::eq(*function, &hidden::COLLATE) => {
            (collation, Coercibility::Explicit)
        }
        ExprKind::Call {
            function,
            arguments,
        } => {
            if matches!(
                function.name,
                "USER"
                    | "CURRENT_USER"
                    | "SESSION_USER"
                    | "SYSTEM_USER"
                    | "VERSION"
                    | "DATABASE"
                    | "SCHEMA"
            ) {
                return (collation, Coercibility::SystemConstant);
            }
            if matches!(function.returns, Returns::OwnText(_)) {
                return (collation, Coercibility::Coercible);
            }
            // What such a function reads as bytes has no say in the result's collation.
            let is_text = matches!(function.returns, Returns::Text(_) | Returns::TextOf(_));
            let strings = arguments.iter().enumerate().filter(|(at, argument)| {
                class(&argument.ty).is_string()
                    && !(is_text && function.argument_kind(*at) == ArgumentKind::Bytes)
            });
            let strings = strings.map(|(_, argument)| argument);
            (collation, computed_strength(strings))
        }
        ExprKind::Case {
            branches,
            otherwise,
        } => {
            let values = branches
                .iter()
                .map(|branch| &branch.1)
                .chain(otherwise.as_deref());
            (collation, computed_strength(values))
        }
        _ => (collation, Coercibility::Implicit),
    }
}

/// The strength of a text before it was brought into the collation of what it is mixed with.
fn own_strength(expr: &Expr) -> (Collation, Coercibility) {
    match &expr.kind {
        ExprKind::Cast {
            operand,
            kind: CastKind::Implicit | CastKind::Exact,
        } if class(&expr.ty) == Class::Text && class(&operand.ty) == Class::Text => {
            own_strength(operand)
        }
        _ => strength(expr),
    }
}

/// Refuses to look for the least or the greatest of texts that have no collation to be compared in.
pub fn comparable(expr: &Expr, operation: &str) -> Result<()> {
    let (collation, strength) = strength(expr);
    match strength {
        Coercibility::None => Err(refused(&[(collation, strength); 2], operation)),
        _ => Ok(()),
    }
}

/// The strength of what is made of some operands, or takes their values: the column of a derived
/// table, of a view, of a set operation. Numbers that were written out are the connection's text.
pub fn computed_strength<'e>(operands: impl IntoIterator<Item = &'e Expr>) -> Coercibility {
    let mixed = operands.into_iter().map(own_strength).reduce(blend);
    match mixed.map_or(Coercibility::Coercible, |(_, strength)| strength) {
        Coercibility::Numeric | Coercibility::Ignorable => Coercibility::Coercible,
        strength => strength,
    }
}

/// Those of some operands that have a say: numbers, dates and NULL don't.
fn strings_among<'e>(
    operands: impl IntoIterator<Item = &'e Expr>,
) -> SmallVec<[(Collation, Coercibility); 4]> {
    let brought = operands.into_iter().map(strength);
    brought
        .filter(|(_, strength)| *strength < Coercibility::Numeric)
        .collect()
}

/// The common collation of some operands that are compared; `operation` names them in error 1267.
/// `default` where none is a string.
pub fn aggregate<'e>(
    operands: impl IntoIterator<Item = &'e Expr>,
    operation: &str,
    default: Collation,
) -> Result<Collation> {
    let strings = strings_among(operands);
    let mut common: Option<(Collation, Coercibility)> = None;
    for next in &strings {
        common = match common {
            None => Some(*next),
            Some(held) => Some(combine(held, *next).ok_or_else(|| refused(&strings, operation))?),
        };
    }
    match common {
        Some((_, Coercibility::None)) if strings.len() > 1 => Err(refused(&strings, operation)),
        common => Ok(common.map_or(default, |(collation, _)| collation)),
    }
}

/// The collation of what is put together of some operands, which may have none in common: only a
/// comparison minds that. `default` where none is a string.
pub fn mixed<'e>(
    operands: impl IntoIterator<Item = &'e Expr>,
    operation: &str,
    default: Collation,
) -> Result<Collation> {
    let strings = strings_among(operands);
    let mut explicit = strings
        .iter()
        .filter(|held| held.1 == Coercibility::Explicit);
    if let Some(first) = explicit.next()
        && explicit.any(|held| held.0 != first.0)
    {
        return Err(refused(&strings, operation));
    }
    let mut common: Option<(Collation, Coercibility)> = None;
    for next in strings.iter().copied() {
        common = Some(match common {
            None => next,
            // Characters of two sets of which neither holds the other can't be put together at all.
            Some(held) if combine(held, next).is_none() && held.0.charset() != next.0.charset() => {
                return Err(refused(&strings, operation));
            }
            Some(held) => blend(held, next),
        });
    }
    Ok(common.map_or(default, |(collation, _)| collation))
}

/// Error 1267 names two operands, 1270 three, 1271 none.
fn refused(operands: &[(Collation, Coercibility)], operation: &str) -> Error {
    let shown = |at: usize| (operands[at].0.name(), operands[at].1.name());
    match operands.len() {
        2 => {
            let ((a, x), (b, y)) = (shown(0), shown(1));
            Error::cannot_aggregate_collations(a, x, b, y, operation)
        }
        3 => {
            let ((a, x), (b, y), (c, z)) = (shown(0), shown(1), shown(2));
            Error::cannot_aggregate_three_collations(a, x, b, y, c, z, operation)
        }
        _ => Error::cannot_aggregate_many_collations(operation),
    }
}

/// Two operands' collation, which is none of their own if they can't be compared.
fn blend(a: (Collation, Coercibility), b: (Collation, Coercibility)) -> (Collation, Coercibility) {
    combine(a, b).unwrap_or_else(|| {
        let charset = a.0.charset();
        let binary = Collation::by_name(&format!("{}_bin", charset.name()));
        (binary.unwrap_or(a.0), Coercibility::None)
    })
}

/// Whether values of one of Unicode's character sets become another's: utf8mb3 is part of utf8mb4,
/// and what is written out can be written in wide units.
fn yields(from: Charset, to: Charset, strength: Coercibility) -> bool {
    match (from.is_utf8(), to.is_utf8()) {
        (true, true) => from == Charset::Utf8mb3,
        (true, false) => strength == Coercibility::Coercible,
        (false, _) => false,
    }
}

fn combine(
    a: (Collation, Coercibility),
    b: (Collation, Coercibility),
) -> Option<(Collation, Coercibility)> {
    if a.0 == b.0 {
        return Some((a.0, a.1.min(b.1)));
    }
    let (stronger, weaker) = if b.1 < a.1 { (b, a) } else { (a, b) };
    // Binary strings take whatever isn't stronger down to bytes.
    if weaker.0 == Collation::BINARY && weaker.1 == stronger.1 {
        return Some(weaker);
    }
    if stronger.1 < weaker.1 || stronger.0 == Collation::BINARY {
        return Some(stronger);
    }
    if stronger.1 == Coercibility::Explicit {
        return None;
    }
    let (x, y) = (stronger.0.charset(), weaker.0.charset());
    if x != y {
        // The wider character set holds the other.
        return match (x.is_unicode(), y.is_unicode()) {
            (true, false) => Some(stronger),
            (false, true) => Some(weaker),
            (true, true) if yields(y, x, weaker.1) => Some(stronger),
            (true, true) if yields(x, y, stronger.1) => Some(weaker),
            (true, true) => None,
            _ if x == Charset::Ascii => Some(weaker),
            _ if y == Charset::Ascii => Some(stronger),
            _ => None,
        };
    }
    let is_bin = |collation: Collation| collation.name().ends_with("_bin");
    match (is_bin(stronger.0), is_bin(weaker.0)) {
        (true, false) => Some(stronger),
        (false, true) => Some(weaker),
        _ if stronger.1 >= Coercibility::SystemConstant => Some(stronger),
        _ => None,
    }
}
