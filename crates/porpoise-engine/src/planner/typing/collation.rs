//! Which collation a mix of strings is compared and concatenated in (MySQL 8.4 manual, 12.8.4).
//!
//! Each operand has a collation and a coercibility; the least coercible decides. Two columns that differ
//! decide nothing: error 1267.

use porpoise_types::{Charset, Collation};

use crate::error::{Error, Result};
use crate::expr::{Expr, ExprKind};
use crate::functions::{Returns, Want};
use crate::planner::typing::hidden;
use crate::planner::typing::{Class, class};

/// How easily an operand gives way: the lower, the less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coercibility {
    Explicit,
    /// Two collations of the same strength met.
    None,
    Implicit,
    SystemConstant,
    Coercible,
    Numeric,
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

pub fn coercibility(expr: &Expr) -> Coercibility {
    match class(&expr.ty) {
        Class::Null => return Coercibility::Ignorable,
        Class::Text | Class::Bytes | Class::Member | Class::Json => {}
        _ => return Coercibility::Numeric,
    }
    match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Parameter(_) => Coercibility::Coercible,
        ExprKind::Call { function, .. } if std::ptr::eq(*function, &hidden::COLLATE) => {
            Coercibility::Explicit
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
                return Coercibility::SystemConstant;
            }
            if matches!(function.returns, Returns::OwnText(_)) {
                return Coercibility::Coercible;
            }
            // What such a function reads as bytes has no say in the result's collation.
            let is_text = matches!(function.returns, Returns::Text(_));
            let strings = arguments.iter().enumerate().filter(|(at, argument)| {
                let want = function.wants.get(*at).or(function.wants.last());
                class(&argument.ty).is_string() && !(is_text && want == Some(&Want::Bytes))
            });
            strings
                .map(|(_, argument)| coercibility(argument))
                .min()
                .unwrap_or(Coercibility::Coercible)
        }
        ExprKind::Case {
            branches,
            otherwise,
        } => {
            let values = branches
                .iter()
                .map(|branch| &branch.1)
                .chain(otherwise.as_deref());
            values
                .map(coercibility)
                .min()
                .unwrap_or(Coercibility::Coercible)
        }
        _ => Coercibility::Implicit,
    }
}

/// The common collation of some operands; `operation` names them in error 1267. `default` where none is a string.
pub fn aggregate<'e>(
    operands: impl IntoIterator<Item = &'e Expr>,
    operation: &str,
    default: Collation,
) -> Result<Collation> {
    let mut best: Option<(Collation, Coercibility)> = None;
    for operand in operands {
        let strength = coercibility(operand);
        if strength >= Coercibility::Numeric {
            continue;
        }
        let collation = operand.ty.collation();
        best = Some(match best {
            None => (collation, strength),
            Some(held) => combine(held, (collation, strength)).ok_or_else(|| {
                Error::cannot_aggregate_collations(
                    held.0.name(),
                    held.1.name(),
                    collation.name(),
                    strength.name(),
                    operation,
                )
            })?,
        });
    }
    Ok(best.map_or(default, |(collation, _)| collation))
}

fn is_unicode(charset: Charset) -> bool {
    matches!(charset, Charset::Utf8mb4 | Charset::Utf8mb3)
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
        return match (is_unicode(x), is_unicode(y)) {
            (true, false) => Some(stronger),
            (false, true) => Some(weaker),
            (true, true) => Some(if x == Charset::Utf8mb4 {
                stronger
            } else {
                weaker
            }),
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
