//! What a row and a key cost: `cargo bench -p porpoise-types`. One line a case, nanoseconds a call.

use porpoise_types::*;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The best of many short runs, so that a busy machine does not show.
fn measure(name: &str, mut call: impl FnMut()) {
    let mut best = Duration::MAX;
    let calls = 2000;
    for _ in 0..50 {
        let start = Instant::now();
        for _ in 0..calls {
            call();
        }
        best = best.min(start.elapsed());
    }
    println!(
        "{name:<44} {:>9.1} ns",
        best.as_nanos() as f64 / calls as f64
    );
}

fn main() {
    let c = Collation::UTF8MB4_0900_AI_CI;
    let types = [
        DataType::INT,
        DataType::INT,
        DataType::Char {
            length: 120,
            collation: c,
        },
        DataType::Char {
            length: 60,
            collation: c,
        },
        DataType::decimal(12, 2),
        DataType::DateTime { fsp: 0 },
    ];
    let text = "83868641912-28773972837-60736120486-75162659906-27563526494-20381887404-41576422241-93426793964-56405065102-33518432330";
    let values = [
        Value::Int(1),
        Value::Int(499_284),
        Value::text(text),
        Value::text(&text[..59]),
        Value::Decimal(Decimal::new(123_456, 2)),
        Value::DateTime(
            DateTime::new(Date::new(2024, 1, 31).expect("a date"), 10, 11, 12, 0)
                .expect("a moment"),
        ),
    ];
    let layout = RowLayout::new(&types);
    let mut row = Vec::new();
    layout.encode(&values, &mut row);
    let utc = TimeZone::utc();
    let mut out = Vec::with_capacity(4096);
    let mut key = KeyBuf::new();

    measure("row: encode sysbench-like", || {
        out.clear();
        layout.encode(black_box(&values), &mut out);
    });
    measure("row: one int, raw and typed", || {
        black_box(layout.raw(black_box(&row), 1).map(stored::signed));
    });
    measure("row: one char, raw", || {
        black_box(layout.raw(black_box(&row), 3));
    });
    for (i, name) in [
        "int",
        "int",
        "char(120)",
        "char(60)",
        "decimal(12,2)",
        "datetime",
    ]
    .iter()
    .enumerate()
    .skip(1)
    {
        measure(&format!("row: {name} as text"), || {
            out.clear();
            if let Some(raw) = layout.raw(black_box(&row), i) {
                stored::write_text(raw, &types[i], &utc, &mut out);
            }
        });
        measure(&format!("row: {name} as value"), || {
            black_box(layout.get(black_box(&row), i));
        });
        measure(&format!("key: {name}"), || {
            key.clear();
            encode_key_part(
                black_box(&values[i]),
                &types[i],
                true,
                false,
                None,
                &mut key,
            );
        });
    }
    measure("key: char(10) of ASCII", || {
        key.clear();
        encode_key_part(
            black_box(&Value::text("Porpoise!")),
            &types[2],
            true,
            false,
            None,
            &mut key,
        );
    });
    for name in [
        "utf8mb4_0900_ai_ci",
        "utf8mb4_general_ci",
        "utf8mb4_bin",
        "utf8mb4_0900_as_cs",
    ] {
        let c = Collation::by_name(name).expect("a collation");
        let other = text.replace("33518432330", "33518432331");
        measure(&format!("compare 120 ASCII, {name}"), || {
            black_box(c.compare(black_box(text.as_bytes()), black_box(other.as_bytes())));
        });
        measure(&format!("compare 20 of Czech, {name}"), || {
            black_box(c.compare(
                black_box("příliš žluťoučký kůň".as_bytes()),
                black_box("příliš žluťoučký kun".as_bytes()),
            ));
        });
    }
    measure("like '%6073%', 120 ASCII", || {
        black_box(like(black_box(text.as_bytes()), b"%6073%", Some('\\'), c));
    });
    let (a, b) = (Decimal::new(123_456, 2), Decimal::new(99, 3));
    measure("decimal: add", || {
        black_box(black_box(&a).checked_add(black_box(&b)));
    });
    measure("decimal: mul", || {
        black_box(black_box(&a).checked_mul(black_box(&b)));
    });
    measure("decimal: div", || {
        black_box(black_box(&a).checked_div(black_box(&b), 4));
    });
    measure("double to text", || {
        out.clear();
        number_text::write_double(black_box(1234.5678), &mut out);
    });
    measure("datetime from text", || {
        black_box(temporal::parse::datetime(
            black_box("2024-01-31 10:11:12"),
            DateMode::default(),
        ));
    });
}
