//! FORMAT: a number as a locale writes it (MySQL 8.4 manual, 14.8).

use porpoise_core::error::Result;
use porpoise_expr::function::{ArgumentKind, Call, Eval, Function, Returns, between, pure};
use porpoise_types::{Decimal, Value, convert};

use crate::string::bytes;

/// How a locale writes numbers: what stands between groups of digits and before the fraction.
/// Groups have three digits; in `en_IN` those beyond the first have two.
struct NumberStyle {
    locales: &'static [&'static str],
    group: &'static str,
    point: char,
}

const NUMBER_STYLES: &[NumberStyle] = &[
    NumberStyle {
        locales: &[
            "da_DK", "de_BE", "de_DE", "de_LU", "es_ES", "hu_HU", "id_ID", "nb_NO", "ro_RO",
            "ru_RU", "tr_TR", "uk_UA", "vi_VN",
        ],
        group: ".",
        point: ',',
    },
    NumberStyle {
        locales: &[
            "de_AT", "el_GR", "fr_BE", "fr_CA", "fr_CH", "fr_FR", "fr_LU", "hr_HR", "it_IT",
            "nl_BE", "nl_NL", "pl_PL", "pt_BR", "pt_PT",
        ],
        group: "",
        point: ',',
    },
    NumberStyle {
        locales: &["cs_CZ", "fi_FI", "sk_SK", "sv_SE"],
        group: " ",
        point: ',',
    },
    NumberStyle {
        locales: &["de_CH"],
        group: "'",
        point: '.',
    },
    NumberStyle {
        locales: &["ar_SA"],
        group: "",
        point: '.',
    },
];

/// The style of `en_US` and of all locales not in the table.
const DEFAULT_STYLE: NumberStyle = NumberStyle {
    locales: &[],
    group: ",",
    point: '.',
};

pub static TABLE: &[Function] = &[pure(
    "FORMAT",
    between(2, 3),
    &[
        ArgumentKind::Number,
        ArgumentKind::Integer,
        ArgumentKind::String,
    ],
    Returns::Text(128),
    Eval::Strict(format),
)];

/// A number with thousands separated, rounded to so many decimals.
fn format(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let places = convert::to_int(&values[1]).0.clamp(0, 30) as u8;
    let locale = values.get(2).map_or(&b"en_US"[..], bytes);
    let style = NUMBER_STYLES
        .iter()
        .find(|style| {
            let mut names = style.locales.iter();
            names.any(|name| name.as_bytes().eq_ignore_ascii_case(locale))
        })
        .unwrap_or(&DEFAULT_STYLE);
    let pairs = locale.eq_ignore_ascii_case(b"en_IN");
    let decimal = match &values[0] {
        Value::Double(v) => Decimal::from_f64(*v).unwrap_or(Decimal::ZERO),
        other => convert::to_decimal(other).0,
    };
    let mut text = Vec::new();
    decimal
        .rescale(places, porpoise_types::Rounding::HalfAwayFromZero)
        .write_text(&mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    let (sign, digits) = text
        .strip_prefix('-')
        .map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut out = String::from(sign);
    for (position, digit) in whole.chars().enumerate() {
        let left = whole.len() - position;
        let begins_group = match pairs {
            true if left > 3 => (left - 3).is_multiple_of(2),
            _ => left.is_multiple_of(3),
        };
        if position > 0 && begins_group {
            out.push_str(style.group);
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push(style.point);
        out.push_str(fraction);
    }
    Ok(Value::text(out))
}
