//! Histograms: what they tell of values, against the truth.

use porpoise_catalog::Histogram;
use porpoise_catalog::statistics::{Buckets, HistogramSource};
use porpoise_types::{Collation, DataType, Date, DateTime, Decimal, Json, Time, Value};
use proptest::prelude::*;

fn of_values(ty: &DataType, values: Vec<Value>, buckets: u64) -> Histogram {
    Histogram::build(HistogramSource {
        ty,
        values,
        sampling_rate: 1.0,
        buckets,
        auto_update: false,
        now_us: 1_600_000_000_123_456,
    })
}

fn of_numbers(numbers: &[Option<i64>], buckets: u64) -> Histogram {
    let value = |number: &Option<i64>| number.map_or(Value::Null, Value::Int);
    of_values(&DataType::INT, numbers.iter().map(value).collect(), buckets)
}

/// The parts of rows with a smaller number, and with this one.
fn truth(numbers: &[Option<i64>], wanted: i64) -> (f64, f64) {
    let part = |is: &dyn Fn(i64) -> bool| {
        let rows = numbers.iter().filter(|n| n.is_some_and(is)).count();
        rows as f64 / numbers.len() as f64
    };
    (part(&|n| n < wanted), part(&|n| n == wanted))
}

fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

/// The part of the rows that are in the bucket of a value.
fn bucket_part(histogram: &Histogram, wanted: i64) -> f64 {
    let Buckets::EquiHeight(buckets) = &histogram.buckets else {
        return 0.0;
    };
    let mut before = 0.0;
    for bucket in buckets {
        if let (Value::Int(low), Value::Int(high)) = (&bucket.low, &bucket.high)
            && (*low..=*high).contains(&wanted)
        {
            return bucket.up_to - before;
        }
        before = bucket.up_to;
    }
    0.0
}

/// Numbers of which few are frequent, and NULLs.
fn skewed() -> impl Strategy<Value = Vec<Option<i64>>> {
    let number = prop_oneof![
        3 => Just(Some(7)),
        2 => (0..5i64).prop_map(|n| Some(n * 10)),
        6 => (-500..500i64).prop_map(Some),
        1 => Just(None),
    ];
    prop::collection::vec(number, 1..800)
}

proptest! {
    #[test]
    fn a_value_for_each_bucket_tells_the_truth(numbers in skewed(), wanted in -510..510i64) {
        let histogram = of_numbers(&numbers, 1024);
        prop_assert!(matches!(histogram.buckets, Buckets::Singleton(_)));
        let (below, equal) = histogram.below_and_equal(&Value::Int(wanted));
        let (truly_below, truly_equal) = truth(&numbers, wanted);
        prop_assert!(is_near(below, truly_below) && is_near(equal, truly_equal));
        let nulls = numbers.iter().filter(|number| number.is_none()).count();
        prop_assert!(is_near(histogram.null_part, nulls as f64 / numbers.len() as f64));
    }

    #[test]
    fn intervals_are_wrong_by_less_than_their_part(
        numbers in skewed(), wanted in -510..510i64, buckets in 2..40u64,
    ) {
        let histogram = of_numbers(&numbers, buckets);
        prop_assert!(histogram.len() as u64 <= buckets);
        let (below, equal) = histogram.below_and_equal(&Value::Int(wanted));
        let (truly_below, truly_equal) = truth(&numbers, wanted);
        let most = bucket_part(&histogram, wanted) + 1e-9;
        prop_assert!((below - truly_below).abs() <= most, "below {below}, truly {truly_below}");
        prop_assert!((equal - truly_equal).abs() <= most, "equal {equal}, truly {truly_equal}");
        prop_assert!(below + equal <= 1.0 - histogram.null_part + 1e-9);
    }

    #[test]
    fn an_interval_of_several_values_has_no_more_rows_than_its_share(
        numbers in skewed(), buckets in 4..40u64,
    ) {
        let Buckets::EquiHeight(made) = of_numbers(&numbers, buckets).buckets else {
            return Ok(());
        };
        let mut before = 0.0;
        for bucket in &made {
            if bucket.distinct > 1 {
                let share = 3.0 / buckets as f64 + 3.0 / numbers.len() as f64;
                prop_assert!(bucket.up_to - before <= share, "{bucket:?} after {before}");
            }
            before = bucket.up_to;
        }
    }

    #[test]
    fn a_histogram_is_the_same_when_it_is_read_again(numbers in skewed(), buckets in 1..600u64) {
        let histogram = of_numbers(&numbers, buckets);
        let text = histogram.to_json().to_string();
        let json = Json::parse(&text).expect("JSON");
        prop_assert_eq!(Histogram::of_json(json.value(), &DataType::INT), Some(histogram));
    }
}

#[test]
fn one_row_that_is_null_is_not_the_same_as_no_row() {
    assert_eq!(of_numbers(&[None], 1024).null_part, 1.0);
    assert_eq!(of_numbers(&[], 1024).null_part, 0.0);
}

#[test]
fn values_of_every_type_are_the_same_when_they_are_read_again() {
    let date = Date::new(2024, 2, 29).expect("a date");
    let time = Time::new(true, 12, 34, 56, 789_000).expect("a time");
    let moment = DateTime::new(date, 1, 2, 3, 4).expect("a moment");
    let text = DataType::Varchar {
        length: 50,
        collation: Collation::UTF8MB4_0900_AI_CI,
    };
    let cases = [
        (DataType::BIGINT, Value::Int(-5)),
        (DataType::BIGINT_UNSIGNED, Value::UInt(u64::MAX)),
        (DataType::DOUBLE, Value::Double(-1.5e300)),
        (
            DataType::decimal(10, 3),
            Value::Decimal(Decimal::new(-12_500, 3)),
        ),
        (DataType::Date, Value::Date(date)),
        (DataType::Time { fsp: 3 }, Value::Time(time)),
        (DataType::DateTime { fsp: 6 }, Value::DateTime(moment)),
        (text, Value::text("Kraké \"")),
        (DataType::Varbinary(9), Value::Bytes(vec![0, 255, 1, 2])),
    ];
    for (ty, value) in cases {
        let values = vec![value.clone(), Value::Null, value];
        let histogram = of_values(&ty, values, 5);
        let text = histogram.to_json().to_string();
        let json = Json::parse(&text).expect("JSON");
        let again = Histogram::of_json(json.value(), &ty);
        assert_eq!(again.as_ref(), Some(&histogram), "{text}");
    }
}

#[test]
fn a_histogram_looks_as_in_the_manual() {
    let histogram = of_numbers(&[Some(1), Some(2), Some(1), None], 10);
    assert_eq!(
        histogram.to_json().to_string(),
        r#"{"buckets": [[1, 0.5], [2, 0.75]], "data-type": "int", "auto-update": false, "null-values": 0.25, "collation-id": 8, "last-updated": "2020-09-13 12:26:40.123456", "sampling-rate": 1.0, "histogram-type": "singleton", "number-of-buckets-specified": 10}"#
    );
    let histogram = of_numbers(&[Some(1), Some(2), Some(3), Some(4)], 2);
    let text = histogram.to_json().to_string();
    assert!(text.starts_with(r#"{"buckets": [[1, 2, 0.5, 2], [3, 4, 1.0, 2]], "#));
}

#[test]
fn documents_that_are_no_histograms_are_refused() {
    let good = of_numbers(&[Some(1), Some(2)], 10).to_json().to_string();
    let read = |text: &str| {
        let json = Json::parse(text).expect("JSON");
        Histogram::of_json(json.value(), &DataType::INT).is_some()
    };
    assert!(read(&good));
    for (part, wrong) in [
        ("[1, 0.5]", "[1, 1.5]"),
        ("[1, 0.5]", "[3, 0.5]"),
        ("[1, 0.5]", "[1, 0.5, 2]"),
        ("[2, 1.0]", "[2, 0.5]"),
        ("singleton", "equi-height"),
        ("\"int\"", "\"uint\""),
        ("\"buckets\"", "\"bucket\""),
        ("2020-09-13", "2020-19-13"),
        ("specified\": 10", "specified\": 1"),
        ("specified\": 10", "specified\": 1025"),
    ] {
        assert!(good.contains(part), "{part}");
        assert!(!read(&good.replace(part, wrong)), "{wrong}");
    }
}

#[test]
fn long_texts_are_told_apart_by_their_beginnings() {
    let ty = DataType::Varchar {
        length: 100,
        collation: Collation::UTF8MB4_0900_AI_CI,
    };
    let long = |last: char| Value::text(format!("{}{last}", "ä".repeat(42)));
    let histogram = of_values(&ty, vec![long('x'), long('y')], 5);
    assert_eq!(histogram.len(), 1);
    assert_eq!(histogram.below_and_equal(&long('z')), (0.0, 1.0));
}
