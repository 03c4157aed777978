//! Exact decimal numbers: up to 65 digits, up to 30 of them after the point (MySQL 8.4 manual,
//! 14.24).
//!
//! A decimal is a mantissa and a scale: 12.50 is 1250 at scale 2. Mantissas that fit an `i64`
//! (every price anybody ever paid) live inline and are added and multiplied as machine integers;
//! longer ones are boxed big integers.
//!
//! ```text
//! Small { mantissa: 1250, scale: 2 }            "12.50"
//! Big   { (−123456789012345678901234, 5) }      "-1234567890123456789.01234"
//! ```
//!
//! Equality, order and hash go by the number (1.0 = 1.00); printing keeps the scale.

use num_bigint::{BigInt, Sign};
use num_traits::{Signed, ToPrimitive, Zero};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// The most digits a DECIMAL has.
pub const MAX_DIGITS: u32 = 65;
/// The most digits after the point.
pub const MAX_SCALE: u8 = 30;
/// How many digits a division adds to the dividend's scale (`div_precision_increment`) unless told
/// otherwise.
pub const DIV_PRECISION_INCREMENT: u8 = 4;

const POW10: [i64; 19] = {
    let mut t = [1i64; 19];
    let mut i = 1;
    while i < 19 {
        t[i] = t[i - 1] * 10;
        i += 1;
    }
    t
};

/// An exact decimal number.
#[derive(Clone)]
pub struct Decimal(Repr);

#[derive(Clone)]
enum Repr {
    Small { mantissa: i64, scale: u8 },
    Big(Box<(BigInt, u8)>),
}

const _: () = assert!(size_of::<Decimal>() <= 16);

/// How a decimal is cut to fewer digits after the point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// To the nearest; a half away from zero: 2.5 to 3, -2.5 to -3.
    HalfAwayFromZero,
    /// Towards zero.
    Truncate,
    /// Towards minus infinity.
    Floor,
    /// Towards plus infinity.
    Ceiling,
}

fn pow10(n: u32) -> BigInt {
    match POW10.get(n as usize) {
        Some(&p) => BigInt::from(p),
        None => BigInt::from(10u8).pow(n),
    }
}

/// `m / 10^digits`, rounded.
fn divide_pow10(m: &BigInt, digits: u32, rounding: Rounding) -> BigInt {
    divide_rounded(m, &pow10(digits), rounding)
}

fn divide_rounded(m: &BigInt, d: &BigInt, rounding: Rounding) -> BigInt {
    let q = m / d;
    let r = m - &q * d;
    if r.is_zero() {
        return q;
    }
    let negative = m.is_negative() != d.is_negative();
    let away = match rounding {
        Rounding::HalfAwayFromZero => (r.abs() * 2u8) >= d.abs(),
        Rounding::Truncate => false,
        Rounding::Floor => negative,
        Rounding::Ceiling => !negative,
    };
    match (away, negative) {
        (false, _) => q,
        (true, true) => q - 1,
        (true, false) => q + 1,
    }
}

fn count_digits(m: &BigInt) -> u32 {
    match m.to_i64() {
        Some(v) => v.unsigned_abs().checked_ilog10().map_or(1, |d| d + 1),
        None => m.magnitude().to_str_radix(10).len() as u32,
    }
}

impl Decimal {
    /// 0, at scale 0.
    pub const ZERO: Decimal = Decimal(Repr::Small {
        mantissa: 0,
        scale: 0,
    });
    /// 1, at scale 0.
    pub const ONE: Decimal = Decimal(Repr::Small {
        mantissa: 1,
        scale: 0,
    });

    /// `mantissa / 10^scale`; a scale above 30 is rounded away.
    pub fn new(mantissa: i64, scale: u8) -> Decimal {
        if scale <= MAX_SCALE {
            Decimal(Repr::Small { mantissa, scale })
        } else {
            Decimal::from_big(BigInt::from(mantissa), scale as u32)
        }
    }

    /// The number `mantissa` / 10^`scale`.
    pub fn from_i128(mantissa: i128, scale: u8) -> Decimal {
        match i64::try_from(mantissa) {
            Ok(m) => Decimal::new(m, scale),
            Err(_) => Decimal::from_big(BigInt::from(mantissa), scale as u32),
        }
    }

    /// Rounds a scale above 30 away and takes the inline form if the mantissa fits.
    fn from_big(mut mantissa: BigInt, mut scale: u32) -> Decimal {
        if scale > MAX_SCALE as u32 {
            mantissa = divide_pow10(
                &mantissa,
                scale - MAX_SCALE as u32,
                Rounding::HalfAwayFromZero,
            );
            scale = MAX_SCALE as u32;
        }
        match mantissa.to_i64() {
            Some(m) => Decimal(Repr::Small {
                mantissa: m,
                scale: scale as u8,
            }),
            None => Decimal(Repr::Big(Box::new((mantissa, scale as u8)))),
        }
    }

    /// The largest number of a DECIMAL(precision, scale): all nines.
    pub fn max(precision: u8, scale: u8) -> Decimal {
        Decimal::from_big(pow10(precision as u32) - 1, scale as u32)
    }

    fn parts(&self) -> (BigInt, u8) {
        match &self.0 {
            Repr::Small { mantissa, scale } => (BigInt::from(*mantissa), *scale),
            Repr::Big(b) => (b.0.clone(), b.1),
        }
    }

    /// The mantissa at this decimal's own scale, if it fits.
    pub fn mantissa_i128(&self) -> Option<i128> {
        match &self.0 {
            Repr::Small { mantissa, .. } => Some(*mantissa as i128),
            Repr::Big(b) => b.0.to_i128(),
        }
    }

    /// The mantissa as 32 little-endian bytes in two's complement.
    pub fn mantissa_le32(&self) -> [u8; 32] {
        let bytes = self.parts().0.to_signed_bytes_le();
        let fill = if self.is_negative() { 0xFF } else { 0 };
        let mut out = [fill; 32];
        let n = bytes.len().min(32);
        out[..n].copy_from_slice(&bytes[..n]);
        out
    }

    /// Appends the mantissa, little-endian in two's complement: 8 bytes, or more where it needs
    /// them.
    pub fn write_mantissa_le(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::Small { mantissa, .. } => out.extend_from_slice(&mantissa.to_le_bytes()),
            Repr::Big(b) => out.extend_from_slice(&b.0.to_signed_bytes_le()),
        }
    }

    /// The reverse of [`Decimal::mantissa_le32`] and [`Decimal::write_mantissa_le`].
    pub fn from_mantissa_le(bytes: &[u8], scale: u8) -> Decimal {
        Decimal::from_big(
            BigInt::from_signed_bytes_le(bytes),
            scale.min(MAX_SCALE) as u32,
        )
    }

    /// Digits after the point.
    pub fn scale(&self) -> u8 {
        match &self.0 {
            Repr::Small { scale, .. } => *scale,
            Repr::Big(b) => b.1,
        }
    }

    /// Digits of the number as printed, not counting a leading zero before the point; at least 1.
    pub fn digits(&self) -> u32 {
        match &self.0 {
            Repr::Small { mantissa, scale } => (mantissa
                .unsigned_abs()
                .checked_ilog10()
                .map_or(1, |d| d + 1))
            .max(*scale as u32),
            Repr::Big(b) => count_digits(&b.0).max(b.1 as u32),
        }
    }

    /// Digits before the point, none for numbers below 1.
    pub fn integer_digits(&self) -> u32 {
        self.digits() - self.scale() as u32
    }

    /// Whether the number needs more than 65 digits.
    pub fn overflows(&self) -> bool {
        matches!(&self.0, Repr::Big(_)) && self.digits() > MAX_DIGITS
    }

    /// Whether it is 0, at any scale.
    pub fn is_zero(&self) -> bool {
        matches!(&self.0, Repr::Small { mantissa: 0, .. })
    }

    /// Whether it is less than 0.
    pub fn is_negative(&self) -> bool {
        match &self.0 {
            Repr::Small { mantissa, .. } => *mantissa < 0,
            Repr::Big(b) => b.0.is_negative(),
        }
    }

    /// The number with the other sign.
    #[must_use]
    pub fn neg(&self) -> Decimal {
        match &self.0 {
            Repr::Small { mantissa, scale } if *mantissa != i64::MIN => Decimal(Repr::Small {
                mantissa: -mantissa,
                scale: *scale,
            }),
            _ => {
                let (m, s) = self.parts();
                Decimal::from_big(-m, s as u32)
            }
        }
    }

    /// The number without its sign.
    #[must_use]
    pub fn abs(&self) -> Decimal {
        if self.is_negative() {
            self.neg()
        } else {
            self.clone()
        }
    }

    /// Both mantissas at the larger of the two scales.
    fn aligned(&self, other: &Decimal) -> (BigInt, BigInt, u8) {
        let (mut a, sa) = self.parts();
        let (mut b, sb) = other.parts();
        if sa < sb {
            a *= pow10((sb - sa) as u32);
        } else if sb < sa {
            b *= pow10((sa - sb) as u32);
        }
        (a, b, sa.max(sb))
    }

    fn aligned_small(&self, other: &Decimal) -> Option<(i64, i64, u8)> {
        let (
            Repr::Small {
                mantissa: a,
                scale: sa,
            },
            Repr::Small {
                mantissa: b,
                scale: sb,
            },
        ) = (&self.0, &other.0)
        else {
            return None;
        };
        match sa.cmp(sb) {
            Ordering::Equal => Some((*a, *b, *sa)),
            Ordering::Less => Some((a.checked_mul(*POW10.get((sb - sa) as usize)?)?, *b, *sb)),
            Ordering::Greater => Some((*a, b.checked_mul(*POW10.get((sa - sb) as usize)?)?, *sa)),
        }
    }

    /// The sum, at the larger scale. `None` if it needs more than 65 digits.
    pub fn checked_add(&self, other: &Decimal) -> Option<Decimal> {
        if let Some((a, b, scale)) = self.aligned_small(other)
            && let Some(mantissa) = a.checked_add(b)
        {
            return Some(Decimal(Repr::Small { mantissa, scale }));
        }
        let (a, b, scale) = self.aligned(other);
        Decimal::from_big_checked(a + b, scale as u32)
    }

    /// The difference; `None` if it has too many digits.
    pub fn checked_sub(&self, other: &Decimal) -> Option<Decimal> {
        if let Some((a, b, scale)) = self.aligned_small(other)
            && let Some(mantissa) = a.checked_sub(b)
        {
            return Some(Decimal(Repr::Small { mantissa, scale }));
        }
        let (a, b, scale) = self.aligned(other);
        Decimal::from_big_checked(a - b, scale as u32)
    }

    /// The product, at the sum of the scales but no more than 30.
    pub fn checked_mul(&self, other: &Decimal) -> Option<Decimal> {
        if let (
            Repr::Small {
                mantissa: a,
                scale: sa,
            },
            Repr::Small {
                mantissa: b,
                scale: sb,
            },
        ) = (&self.0, &other.0)
            && sa + sb <= MAX_SCALE
            && let Some(mantissa) = a.checked_mul(*b)
        {
            return Some(Decimal(Repr::Small {
                mantissa,
                scale: sa + sb,
            }));
        }
        let ((a, sa), (b, sb)) = (self.parts(), other.parts());
        Decimal::from_big_checked(a * b, sa as u32 + sb as u32)
    }

    /// The quotient, at the dividend's scale plus `increment` (no more than 30), rounded half away
    /// from zero. `None` for a zero divisor or too many digits.
    pub fn checked_div(&self, other: &Decimal, increment: u8) -> Option<Decimal> {
        if other.is_zero() {
            return None;
        }
        let scale = self.scale().saturating_add(increment);
        self.divided(other, scale, Rounding::HalfAwayFromZero)
    }

    /// The quotient as `/` and AVG compute it, with so many digits after the point more than the
    /// dividend has. MySQL divides in groups of nine digits and keeps all digits of the last group,
    /// cut not rounded, for what is computed further: `1/7*100` is 14.2857. `None` for a zero
    /// divisor or overflow.
    pub fn quotient(&self, other: &Decimal, increment: u8) -> Option<Decimal> {
        const GROUP: u8 = 9;
        let grouped = |digits: u8| digits.div_ceil(GROUP) * GROUP;
        let (dividend, divisor) = (self.scale(), other.scale());
        let whole = grouped(dividend) + grouped(divisor);
        let padding = whole - dividend - divisor;
        let digits = grouped(whole + increment.saturating_sub(padding));
        // Of more digits than a decimal can have, the last is rounded.
        let rounding = match digits > MAX_SCALE {
            true => Rounding::HalfAwayFromZero,
            false => Rounding::Truncate,
        };
        self.divided(other, digits, rounding)
    }

    fn divided(&self, other: &Decimal, scale: u8, rounding: Rounding) -> Option<Decimal> {
        if other.is_zero() {
            return None;
        }
        let ((a, sa), (b, sb)) = (self.parts(), other.parts());
        let scale = scale.min(MAX_SCALE);
        // a/10^sa ÷ b/10^sb = (a·10^(scale − sa + sb) / b) / 10^scale
        let shift = scale as i32 - sa as i32 + sb as i32;
        let q = if shift >= 0 {
            divide_rounded(&(a * pow10(shift as u32)), &b, rounding)
        } else {
            divide_rounded(&a, &(b * pow10(-shift as u32)), rounding)
        };
        Decimal::from_big_checked(q, scale as u32)
    }

    /// The integer part of the quotient (`DIV`). `None` for a zero divisor.
    pub fn checked_div_integer(&self, other: &Decimal) -> Option<Decimal> {
        if other.is_zero() {
            return None;
        }
        let (a, b, _) = self.aligned(other);
        Decimal::from_big_checked(a / b, 0)
    }

    /// The remainder, with the dividend's sign, at the larger scale. `None` for a zero divisor.
    pub fn checked_rem(&self, other: &Decimal) -> Option<Decimal> {
        if other.is_zero() {
            return None;
        }
        let (a, b, scale) = self.aligned(other);
        Decimal::from_big_checked(a % b, scale as u32)
    }

    fn from_big_checked(m: BigInt, scale: u32) -> Option<Decimal> {
        let d = Decimal::from_big(m, scale);
        (!d.overflows()).then_some(d)
    }

    /// The number at another scale: zeros are added, or digits rounded away.
    #[must_use]
    pub fn rescale(&self, scale: u8, rounding: Rounding) -> Decimal {
        let scale = scale.min(MAX_SCALE);
        let own = self.scale();
        if scale == own {
            return self.clone();
        }
        if let Repr::Small { mantissa, .. } = &self.0
            && scale > own
            && let Some(m) = POW10
                .get((scale - own) as usize)
                .and_then(|p| mantissa.checked_mul(*p))
        {
            return Decimal(Repr::Small { mantissa: m, scale });
        }
        let (m, _) = self.parts();
        let m = if scale > own {
            m * pow10((scale - own) as u32)
        } else {
            divide_pow10(&m, (own - scale) as u32, rounding)
        };
        Decimal::from_big(m, scale as u32)
    }

    /// `ROUND(x, places)`: half away from zero; negative places round before the point.
    #[must_use]
    pub fn round(&self, places: i64) -> Decimal {
        self.cut(places, Rounding::HalfAwayFromZero)
    }

    /// `TRUNCATE(x, places)`.
    #[must_use]
    pub fn truncate(&self, places: i64) -> Decimal {
        self.cut(places, Rounding::Truncate)
    }

    fn cut(&self, places: i64, rounding: Rounding) -> Decimal {
        if places >= self.scale() as i64 {
            return self.rescale(places.min(MAX_SCALE as i64) as u8, rounding);
        }
        if places >= 0 {
            return self.rescale(places as u8, rounding);
        }
        let drop = places.unsigned_abs().min(100) as u32;
        let (m, s) = self.parts();
        Decimal::from_big(divide_pow10(&m, drop + s as u32, rounding) * pow10(drop), 0)
    }

    /// The greatest whole number that is not greater, at scale 0.
    #[must_use]
    pub fn floor(&self) -> Decimal {
        self.rescale(0, Rounding::Floor)
    }

    /// The least whole number that is not less, at scale 0.
    #[must_use]
    pub fn ceiling(&self) -> Decimal {
        self.rescale(0, Rounding::Ceiling)
    }

    /// Parses digits with an optional sign, point and exponent, after leading spaces. Returns the
    /// number and how many bytes were read; `None` if there is no digit. More than 30 digits after
    /// the point are rounded; more than 65 in all become the largest number, which
    /// [`ParsedDecimal::overflow`] tells.
    pub fn parse_prefix(text: &[u8]) -> Option<ParsedDecimal> {
        let mut at = text.iter().take_while(|b| b.is_ascii_whitespace()).count();
        let negative = match text.get(at) {
            Some(b'-') => {
                at += 1;
                true
            }
            Some(b'+') => {
                at += 1;
                false
            }
            _ => false,
        };
        let integer = digits_at(text, at);
        at += integer.len();
        let mut fraction: &[u8] = &[];
        if text.get(at) == Some(&b'.') {
            fraction = digits_at(text, at + 1);
            if !integer.is_empty() || !fraction.is_empty() {
                at += 1 + fraction.len();
            }
        }
        if integer.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut exponent: i64 = 0;
        if matches!(text.get(at), Some(b'e' | b'E')) {
            let sign_len = matches!(text.get(at + 1), Some(b'+' | b'-')) as usize;
            let digits = digits_at(text, at + 1 + sign_len);
            if !digits.is_empty() {
                for &d in digits {
                    exponent = (exponent * 10 + (d - b'0') as i64).min(100_000);
                }
                if text[at + 1] == b'-' {
                    exponent = -exponent;
                }
                at += 1 + sign_len + digits.len();
            }
        }
        let (value, overflow) = Decimal::from_digits(negative, integer, fraction, exponent);
        Some(ParsedDecimal {
            value,
            read: at,
            overflow,
        })
    }

    fn from_digits(
        negative: bool,
        integer: &[u8],
        fraction: &[u8],
        exponent: i64,
    ) -> (Decimal, bool) {
        let integer = &integer[integer.iter().take_while(|&&b| b == b'0').count()..];
        if exponent == 0 && integer.len() + fraction.len() <= 18 {
            let m = integer
                .iter()
                .chain(fraction)
                .fold(0i64, |m, &d| m * 10 + (d - b'0') as i64);
            return (
                Decimal(Repr::Small {
                    mantissa: if negative { -m } else { m },
                    scale: fraction.len() as u8,
                }),
                false,
            );
        }
        let nines = || {
            let max = Decimal::max(MAX_DIGITS as u8, 0);
            if negative { max.neg() } else { max }
        };
        // Digits further right than scale 31 can't change the rounded result; further left they
        // overflow.
        let digits: Vec<u8> = integer.iter().chain(fraction).copied().collect();
        let mut scale = fraction.len() as i64 - exponent;
        let keep = digits.len() as i64 - (scale - (MAX_SCALE as i64 + 1)).max(0);
        if keep <= 0 {
            return (
                Decimal::new(0, scale.clamp(0, MAX_SCALE as i64) as u8),
                false,
            );
        }
        let kept = &digits[..keep.min(digits.len() as i64) as usize];
        scale -= (digits.len() - kept.len()) as i64;
        let leading = kept.iter().take_while(|&&b| b == b'0').count();
        let kept = &kept[leading..];
        if kept.is_empty() {
            return (
                Decimal::new(0, scale.clamp(0, MAX_SCALE as i64) as u8),
                false,
            );
        }
        if kept.len() as i64 - scale > MAX_DIGITS as i64 {
            return (nines(), true);
        }
        let mut m = BigInt::parse_bytes(kept, 10).unwrap_or_default();
        if scale < 0 {
            m *= pow10(-scale as u32);
            scale = 0;
        }
        let mut d = Decimal::from_big(if negative { -m } else { m }, scale as u32);
        let excess = d.digits().saturating_sub(MAX_DIGITS);
        if excess > 0 {
            d = d.rescale(
                d.scale().saturating_sub(excess as u8),
                Rounding::HalfAwayFromZero,
            );
        }
        if d.overflows() {
            (nines(), true)
        } else {
            (d, false)
        }
    }

    /// The shortest decimal that reads as this double; `None` if it isn't finite or has too many
    /// digits.
    pub fn from_f64(v: f64) -> Option<Decimal> {
        if !v.is_finite() {
            return None;
        }
        if v == v.trunc() && v.abs() < 9e15 {
            return Some(Decimal::new(v as i64, 0));
        }
        let text = format!("{v:e}");
        Decimal::parse_prefix(text.as_bytes())
            .filter(|p| !p.overflow)
            .map(|p| p.value)
    }

    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        match &self.0 {
            // Both are exact in a double, so the quotient is correctly rounded.
            Repr::Small { mantissa, scale } if mantissa.unsigned_abs() < 1 << 53 && *scale < 19 => {
                *mantissa as f64 / POW10[*scale as usize] as f64
            }
            _ => self.to_string().parse().unwrap_or(0.0),
        }
    }

    /// Rounds half away from zero; `None` outside the range.
    pub fn to_i64(&self) -> Option<i64> {
        self.to_i128().and_then(|v| i64::try_from(v).ok())
    }

    /// The nearest whole number, a half away from zero; `None` if `u64` doesn't hold it.
    pub fn to_u64(&self) -> Option<u64> {
        self.to_i128().and_then(|v| u64::try_from(v).ok())
    }

    /// Rounds half away from zero.
    pub fn to_i128(&self) -> Option<i128> {
        match &self.0 {
            Repr::Small { mantissa, scale: 0 } => Some(*mantissa as i128),
            _ => self.rescale(0, Rounding::HalfAwayFromZero).mantissa_i128(),
        }
    }

    /// Prints with the scale's digits: `-0.50`.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        let scale = self.scale() as usize;
        let mut buffer = itoa::Buffer::new();
        let big;
        let digits: &str = match &self.0 {
            Repr::Small { mantissa, .. } => {
                if *mantissa < 0 {
                    out.push(b'-');
                }
                buffer.format(mantissa.unsigned_abs())
            }
            Repr::Big(b) => {
                if b.0.is_negative() {
                    out.push(b'-');
                }
                big = b.0.magnitude().to_str_radix(10);
                &big
            }
        };
        let digits = digits.as_bytes();
        if scale == 0 {
            out.extend_from_slice(digits);
        } else if digits.len() > scale {
            let (integer, fraction) = digits.split_at(digits.len() - scale);
            out.extend_from_slice(integer);
            out.push(b'.');
            out.extend_from_slice(fraction);
        } else {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + scale - digits.len(), b'0');
            out.extend_from_slice(digits);
        }
    }

    /// Appends bytes that sort as the numbers do and are equal for equal numbers, whatever their
    /// scales.
    ///
    /// ```text
    /// sign and exponent (1 byte)   significant digits, two a byte as (pair + 1)   0x00
    /// ```
    ///
    /// The exponent counts digit pairs before the point; all bytes of a negative number are
    /// inverted.
    pub fn write_key(&self, out: &mut impl Extend<u8>) {
        if self.is_zero() {
            out.extend([0x80]);
            return;
        }
        if let Repr::Small { mantissa, scale } = &self.0 {
            return write_small_key(*mantissa, *scale, out);
        }
        self.write_long_key(out);
    }

    /// As [`write_key`](Self::write_key), of any number but zero.
    fn write_long_key(&self, out: &mut impl Extend<u8>) {
        let mut text = Vec::with_capacity(72);
        self.write_text(&mut text);
        let negative = text[0] == b'-';
        let text = &text[negative as usize..];
        let point = text.iter().position(|&b| b == b'.').unwrap_or(text.len());
        // Digit i of the number without its point, zeros around it.
        let integer_pairs = point.div_ceil(2);
        let fraction_digits = text.len().saturating_sub(point + 1);
        let total_pairs = integer_pairs + fraction_digits.div_ceil(2);
        let digit = |place: usize| -> u8 {
            // `place` counts from the first digit of the first pair.
            let at = if place < 2 * integer_pairs {
                (place + point).checked_sub(2 * integer_pairs)
            } else {
                Some(place - 2 * integer_pairs + point + 1)
            };
            at.and_then(|at| text.get(at)).map_or(0, |d| d - b'0')
        };
        let pair = |i: usize| digit(2 * i) * 10 + digit(2 * i + 1);
        let leading = (0..total_pairs).take_while(|&i| pair(i) == 0).count();
        let mut end = total_pairs;
        while end > leading && pair(end - 1) == 0 {
            end -= 1;
        }
        let exponent = integer_pairs as i32 - leading as i32;
        let flip = if negative { 0xFF } else { 0 };
        out.extend([(0xC0 + exponent).clamp(0x81, 0xFE) as u8 ^ flip]);
        out.extend((leading..end).map(|i| (pair(i) + 1) ^ flip));
        out.extend([flip]);
    }

    /// The number of a key written by [`Decimal::write_key`], at a scale; `None` if the key is
    /// corrupt.
    pub fn read_key(key: &[u8], scale: u8) -> Option<Decimal> {
        let first = *key.first()?;
        if first == 0x80 {
            return Some(Decimal::new(0, scale));
        }
        let negative = first < 0x80;
        let flip = if negative { 0xFF } else { 0 };
        let exponent = (first ^ flip) as i64 - 0xC0;
        let mut digits = Vec::with_capacity(2 * key.len());
        for b in key.get(1..key.len().checked_sub(1)?)? {
            let pair = (b ^ flip).checked_sub(1)?;
            if pair > 99 {
                return None;
            }
            digits.extend([b'0' + pair / 10, b'0' + pair % 10]);
        }
        let (value, overflow) = Decimal::from_digits(negative, b"", &digits, 2 * exponent);
        (!overflow).then(|| value.rescale(scale, Rounding::HalfAwayFromZero))
    }

    /// The length of a key written by [`Decimal::write_key`] at the start of `bytes`.
    pub fn key_len(bytes: &[u8]) -> Option<usize> {
        let first = *bytes.first()?;
        if first == 0x80 {
            return Some(1);
        }
        let end = if first < 0x80 { 0xFF } else { 0 };
        Some(1 + bytes[1..].iter().position(|&b| b == end)? + 1)
    }
}

/// Of 64 bits: how many pairs of digits a mantissa has at most.
const PAIRS_MAX: usize = 11;

/// As [`Decimal::write_key`], of a mantissa that isn't zero: pair by pair from the last one.
fn write_small_key(mantissa: i64, scale: u8, out: &mut impl Extend<u8>) {
    let flip = if mantissa < 0 { 0xFF } else { 0 };
    let mut rest = mantissa.unsigned_abs();
    // The exponent and the pairs, in front of the byte that ends the key.
    let mut key = [flip; PAIRS_MAX + 2];
    let (mut begin, mut end) = (PAIRS_MAX + 1, PAIRS_MAX + 1);
    // An odd digit behind the point is the first of its pair.
    let (mut divisor, mut factor) = match scale % 2 {
        0 => (100, 1),
        _ => (10, 10),
    };
    while rest != 0 {
        let pair = (rest % divisor) as u8 * factor;
        rest /= divisor;
        (divisor, factor) = (100, 1);
        begin -= 1;
        key[begin] = (pair + 1) ^ flip;
        if pair == 0 && begin + 1 == end {
            end = begin;
        }
    }
    let pairs = (PAIRS_MAX + 1 - begin) as i32;
    let exponent = pairs - i32::from(scale.div_ceil(2));
    begin -= 1;
    key[begin] = (0xC0 + exponent).clamp(0x81, 0xFE) as u8 ^ flip;
    key[end] = flip;
    out.extend(key[begin..=end].iter().copied());
}

/// What [`Decimal::parse_prefix`] read.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedDecimal {
    /// The number.
    pub value: Decimal,
    /// Bytes read, leading spaces included.
    pub read: usize,
    /// The text has more than 65 digits: `value` is the largest number of its sign.
    pub overflow: bool,
}

fn digits_at(text: &[u8], at: usize) -> &[u8] {
    let rest = text.get(at..).unwrap_or_default();
    &rest[..rest.iter().take_while(|b| b.is_ascii_digit()).count()]
}

impl From<i64> for Decimal {
    fn from(v: i64) -> Decimal {
        Decimal(Repr::Small {
            mantissa: v,
            scale: 0,
        })
    }
}

impl From<u64> for Decimal {
    fn from(v: u64) -> Decimal {
        Decimal::from_i128(v as i128, 0)
    }
}

impl std::str::FromStr for Decimal {
    type Err = ();
    /// The whole text must be one number.
    fn from_str(s: &str) -> Result<Decimal, ()> {
        match Decimal::parse_prefix(s.as_bytes()) {
            Some(p) if p.read == s.len() && !p.overflow => Ok(p.value),
            _ => Err(()),
        }
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = Vec::with_capacity(24);
        self.write_text(&mut out);
        f.write_str(std::str::from_utf8(&out).unwrap_or("?"))
    }
}

impl std::fmt::Debug for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        if let Some((a, b, _)) = self.aligned_small(other) {
            return a.cmp(&b);
        }
        let (a, b, _) = self.aligned(other);
        a.cmp(&b)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Decimal {}

impl Hash for Decimal {
    /// Hashes the number with trailing zeros of the fraction removed.
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Repr::Small { mantissa, scale } => {
                let (mut m, mut s) = (*mantissa, *scale);
                while s > 0 && m % 10 == 0 {
                    m /= 10;
                    s -= 1;
                }
                m.hash(state);
                s.hash(state);
            }
            Repr::Big(b) => {
                let (mut m, mut s) = (b.0.clone(), b.1);
                let ten = BigInt::from(10u8);
                while s > 0 && (&m % &ten).is_zero() {
                    m /= &ten;
                    s -= 1;
                }
                match m.to_i64() {
                    Some(v) => v.hash(state),
                    None => {
                        (m.sign() == Sign::Minus).hash(state);
                        m.magnitude().to_bytes_le().hash(state);
                    }
                }
                s.hash(state);
            }
        }
    }
}

#[cfg(test)]
mod tests;
