//! The Star Schema Benchmark (O'Neil, O'Neil, Chen, revision 3): TPC-H's business as one table of
//! facts with four dimensions, and 13 queries in four flights.
//!
//! ```text
//!   customer 30,000·s ◄─┐           ┌─► dates: 7 years of days
//!   supplier  2,000·s ◄─┴ lineorder ┴─► part 200,000·(1 + log2 s)
//!                         1 to 7 for each of 1,500,000·s orders           s: the scale
//! ```
//!
//! Below a scale of 1, where the formula for parts would have fewer than none, they shrink like the
//! others.

use fastrand::Rng;

use super::data::{Day, Value, pick, row_random};
use super::tpch::words::{
    COLOURS, CONTAINERS, MODES, NATIONS, PRIORITIES, REGIONS, SEGMENTS, TYPES, address, phone,
    words,
};
use super::tpch::{DELIVERY_DAYS_MAX, END_DATE, START_DATE, retail_price};
use super::{Query, Row, Suite, Table, read_queries, read_statements};

/// Section 2.4: the date table has this many rows.
const DAYS: i64 = 2_556;
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
/// A Sunday.
const FIRST_WEEK: Day = Day::of(1991, 12, 29);
/// Months and days of the month that are holidays.
const HOLIDAYS: [(i64, i64); 10] = [
    (1, 1),
    (2, 20),
    (4, 20),
    (5, 20),
    (7, 20),
    (8, 20),
    (9, 20),
    (10, 20),
    (11, 20),
    (12, 24),
];

/// The benchmark at a scale.
pub struct Ssb {
    seed: u64,
    parts: u64,
    suppliers: u64,
    customers: u64,
    orders: u64,
}

impl Ssb {
    /// At a scale, of which 1 is 6 million rows of facts.
    pub fn new(scale: f64, seed: u64) -> Self {
        let scaled = |rows: f64| ((rows * scale).round() as u64).max(1);
        let parts = match scale {
            small if small < 1.0 => scaled(200_000.0),
            scale => (200_000.0 * (1.0 + scale.log2())) as u64,
        };
        Self {
            seed,
            parts,
            suppliers: scaled(2_000.0),
            customers: scaled(30_000.0),
            orders: scaled(1_500_000.0),
        }
    }

    fn random(&self, table: &str, row: u64) -> Rng {
        row_random(self.seed, table, row)
    }

    fn part(&self, key: u64) -> Row {
        let random = &mut self.random("part", key);
        let (maker, category) = (random.u32(1..=5), random.u32(1..=5));
        let brand = random.u32(1..=40);
        vec![
            key.into(),
            words(random, &[&COLOURS, &COLOURS]).into(),
            format!("MFGR#{maker}").into(),
            format!("MFGR#{maker}{category}").into(),
            format!("MFGR#{maker}{category}{brand}").into(),
            pick(random, &COLOURS).into(),
            words(random, &TYPES).into(),
            random.u64(1..=50).into(),
            words(random, &CONTAINERS).into(),
        ]
    }

    fn supplier(&self, key: u64) -> Row {
        let random = &mut self.random("supplier", key);
        let mut row = vec![key.into(), format!("Supplier#{key:09}").into()];
        row.extend(place(random));
        row
    }

    fn customer(&self, key: u64) -> Row {
        let random = &mut self.random("customer", key);
        let mut row = vec![key.into(), format!("Customer#{key:09}").into()];
        row.extend(place(random));
        row.push(pick(random, &SEGMENTS).into());
        row
    }

    fn order(&self, key: u64) -> Vec<Row> {
        let random = &mut self.random("lineorder", key);
        let customer = random.u64(1..=self.customers);
        let last_day = END_DATE.plus(-DELIVERY_DAYS_MAX).since(START_DATE);
        let date = START_DATE.plus(random.i64(0..=last_day));
        let priority = pick(random, &PRIORITIES);
        let count = random.u64(1..=7);
        let mut total = 0;
        let mut line = |number: u64| {
            let part = random.u64(1..=self.parts);
            let quantity = random.i64(1..=50);
            let (discount, tax) = (random.i64(0..=10), random.i64(0..=8));
            let price = quantity * retail_price(part);
            let revenue = price * (100 - discount) / 100;
            total += revenue * (100 + tax) / 100;
            vec![
                key.into(),
                number.into(),
                customer.into(),
                part.into(),
                random.u64(1..=self.suppliers).into(),
                date_key(date).into(),
                priority.into(),
                "0".into(),
                Value::Int(quantity),
                Value::Int(price),
                Value::Null,
                Value::Int(discount),
                Value::Int(revenue),
                Value::Int(retail_price(part) * 6 / 10),
                Value::Int(tax),
                date_key(date.plus(random.i64(30..=90))).into(),
                pick(random, &MODES).into(),
            ]
        };
        const TOTAL: usize = 10;
        let mut lines: Vec<Row> = (1..=count).map(&mut line).collect();
        for line in &mut lines {
            line[TOTAL] = Value::Int(total);
        }
        lines
    }
}

/// Address, city, nation, region and phone of a customer or supplier. A city is the first nine
/// characters of its nation, and a digit.
fn place(random: &mut Rng) -> [Value; 5] {
    let nation = random.u64(0..NATIONS.len() as u64);
    let (name, region) = NATIONS[nation as usize];
    [
        address(random).into(),
        format!("{name:<9.9}{}", random.u32(0..10)).into(),
        name.into(),
        REGIONS[region as usize].into(),
        phone(random, nation).into(),
    ]
}

fn date_key(day: Day) -> u64 {
    let (year, month, day) = day.civil();
    (year * 10_000 + month * 100 + day) as u64
}

fn date(number: i64) -> Row {
    let day = START_DATE.plus(number);
    let (year, month, of_month) = day.civil();
    let of_year = day.since(Day::of(year, 1, 1)) + 1;
    let of_week = day.since(FIRST_WEEK) % 7;
    let month_name = MONTHS[month as usize - 1];
    let weekday = WEEKDAYS[of_week as usize];
    let season = match month {
        1..=2 => "Winter",
        3..=4 => "Spring",
        5..=8 => "Summer",
        9..=10 => "Fall",
        _ => "Christmas",
    };
    let (_, next_month, _) = day.plus(1).civil();
    let flag = |is_so: bool| Value::Int(is_so.into());
    vec![
        date_key(day).into(),
        format!("{month_name} {of_month}, {year}").into(),
        weekday.into(),
        month_name.into(),
        Value::Int(year),
        Value::Int(year * 100 + month),
        format!("{month_name:.3}{year}").into(),
        Value::Int(of_week + 1),
        Value::Int(of_month),
        Value::Int(of_year),
        Value::Int(month),
        Value::Int((of_year - 1) / 7 + 1),
        season.into(),
        flag(of_week == 6),
        flag(next_month != month),
        flag(HOLIDAYS.contains(&(month, of_month))),
        flag((1..=5).contains(&of_week)),
    ]
}

impl Suite for Ssb {
    fn name(&self) -> &'static str {
        "ssb"
    }

    fn definitions(&self) -> Vec<&'static str> {
        read_statements(include_str!("schema.sql"))
    }

    fn tables(&self) -> Vec<Table<'_>> {
        vec![
            Table::new("part", (1..=self.parts).map(|key| self.part(key))),
            Table::new(
                "supplier",
                (1..=self.suppliers).map(|key| self.supplier(key)),
            ),
            Table::new(
                "customer",
                (1..=self.customers).map(|key| self.customer(key)),
            ),
            Table::new("dates", (0..DAYS).map(date)),
            Table::new(
                "lineorder",
                (1..=self.orders).flat_map(|key| self.order(key)),
            ),
        ]
    }

    fn queries(&self) -> Vec<Query> {
        read_queries(include_str!("queries.sql"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn tables_have_the_cardinalities_of_the_scale() {
        let counts = |suite: &Ssb| -> Vec<usize> {
            let tables = suite.tables().into_iter();
            tables.map(|table| table.rows.count()).collect()
        };
        let suite = Ssb::new(0.001, 1);
        assert_eq!(counts(&suite)[..4], [200, 2, 30, 2_556]);
        assert!((5_700..6_300).contains(&counts(&suite)[4]));
        assert_eq!(Ssb::new(4.0, 1).parts, 600_000);
        assert_eq!(suite.order(7), Ssb::new(0.001, 1).order(7));
        assert_ne!(suite.order(7), Ssb::new(0.001, 2).order(7));
        assert_eq!(suite.queries().len(), 13);
    }

    #[test]
    fn dates_are_what_calendars_say() {
        let first = date(0);
        let shown = |row: &Row, column: usize| match &row[column] {
            Value::Text(text) => text.clone(),
            Value::Int(number) => number.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            [0, 1, 2, 6, 7, 9, 15].map(|column| shown(&first, column)),
            [
                "19920101",
                "January 1, 1992",
                "Wednesday",
                "Jan1992",
                "4",
                "1",
                "1"
            ]
        );
        let leap_day = date(59);
        assert_eq!(
            [0, 2, 5, 9, 11, 14].map(|column| shown(&leap_day, column)),
            ["19920229", "Saturday", "199202", "60", "9", "1"]
        );
        assert_eq!(shown(&date(DAYS - 1), 0), "19981230");
    }

    #[test]
    fn facts_refer_to_dimensions_and_add_up() {
        let suite = Ssb::new(0.001, 1);
        let dates: HashSet<String> = (0..DAYS).map(|day| format!("{:?}", date(day)[0])).collect();
        for key in 1..=suite.orders {
            let lines = suite.order(key);
            let int = |line: &Row, column: usize| match line[column] {
                Value::Int(number) => number,
                ref other => panic!("{other:?}"),
            };
            let mut total = 0;
            for line in &lines {
                assert!((1..=suite.customers as i64).contains(&int(line, 2)));
                assert!((1..=suite.suppliers as i64).contains(&int(line, 4)));
                assert!(dates.contains(&format!("{:?}", line[5])));
                assert!(dates.contains(&format!("{:?}", line[15])));
                let price = int(line, 8) * retail_price(int(line, 3) as u64);
                assert_eq!(int(line, 9), price);
                assert_eq!(int(line, 12), price * (100 - int(line, 11)) / 100);
                total += int(line, 12) * (100 + int(line, 14)) / 100;
            }
            assert!(lines.iter().all(|line| int(line, 10) == total));
        }
    }

    #[test]
    fn cities_are_cut_from_their_nations() {
        let suite = Ssb::new(0.01, 1);
        for key in 1..=suite.customers {
            let row = suite.customer(key);
            let (Value::Text(city), Value::Text(nation)) = (&row[3], &row[4]) else {
                panic!("{row:?}");
            };
            assert_eq!(city.len(), 10);
            assert!(
                format!("{nation:<9}").starts_with(&city[..9]),
                "{city} {nation}"
            );
        }
    }
}
