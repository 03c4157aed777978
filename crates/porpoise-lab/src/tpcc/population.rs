//! What the tables hold before the first run (clause 4.3.3).

use fastrand::Rng;

use super::{Constants, DISTRICTS, NAMES, TpccPlan, last_name, non_uniform};
use crate::queries::data::row_random;
use crate::queries::{Row, Table, Value};

/// Of a hundred items, and of a hundred of a warehouse's stock, those that are originals.
const ORIGINAL_PERCENT: u64 = 10;
/// Of a hundred customers, those with bad credit.
const BAD_CREDIT_PERCENT: u64 = 10;

/// The tables in the order of loading, with their rows.
pub(super) fn tables<'a>(
    plan: &'a TpccPlan,
    constants: &'a Constants,
    seed: u64,
) -> Vec<Table<'a>> {
    let now = jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S").to_string();
    let rows = Population {
        plan,
        constants,
        seed,
        now,
    };
    let of = |name, rows: Box<dyn Iterator<Item = Row> + 'a>| Table { name, rows };
    let districts = || (1..=plan.warehouses).flat_map(|w| (1..=DISTRICTS).map(move |d| (w, d)));
    let customers =
        move || districts().flat_map(move |(w, d)| (1..=plan.customers).map(move |c| (w, d, c)));
    let stock = (1..=plan.warehouses).flat_map(|w| (1..=plan.items).map(move |i| (w, i)));
    let orders = |rows: Population<'a>| {
        districts().flat_map(move |(w, d)| {
            let customers = rows.order_of_customers(w, d);
            (1..).zip(customers).map(move |(o, c)| (w, d, o, c))
        })
    };
    let first_new = plan.delivered() + 1;
    let [a, b, c, d, e, f, g, h] = std::array::from_fn(|_| rows.clone());
    let new_orders = districts().flat_map(move |(w, d)| {
        (first_new..=plan.customers).map(move |o| vec![o.into(), d.into(), w.into()])
    });
    vec![
        of("item", Box::new((1..=plan.items).map(move |i| a.item(i)))),
        of(
            "warehouse",
            Box::new((1..=plan.warehouses).map(move |w| b.warehouse(w))),
        ),
        of(
            "district",
            Box::new(districts().map(move |(w, d)| c.district(w, d))),
        ),
        of("stock", Box::new(stock.map(move |(w, i)| d.stock(w, i)))),
        of(
            "customer",
            Box::new(customers().map(move |(w, d, c)| e.customer(w, d, c))),
        ),
        of(
            "history",
            Box::new(customers().map(move |(w, d, c)| f.history(w, d, c))),
        ),
        of(
            "orders",
            Box::new(orders(rows.clone()).map(move |(w, d, o, c)| g.order(w, d, o, c))),
        ),
        of(
            "order_line",
            Box::new(orders(rows).flat_map(move |(w, d, o, _)| h.lines(w, d, o))),
        ),
        of("new_order", Box::new(new_orders)),
    ]
}

#[derive(Clone)]
struct Population<'a> {
    plan: &'a TpccPlan,
    constants: &'a Constants,
    seed: u64,
    now: String,
}

impl Population<'_> {
    fn item(&self, i: u64) -> Row {
        let random = &mut row_random(self.seed, "item", i);
        vec![
            i.into(),
            random.u64(1..=10_000).into(),
            text(random, 14, 24).into(),
            Value::Hundredths(random.i64(100..=10_000)),
            data(random).into(),
        ]
    }

    fn warehouse(&self, w: u64) -> Row {
        let random = &mut row_random(self.seed, "warehouse", w);
        let mut row = vec![w.into(), text(random, 6, 10).into()];
        row.extend(address(random));
        let ytd = self.ytd_of_district() * DISTRICTS as i64;
        row.extend([fraction(random, 2000), Value::Hundredths(ytd)]);
        row
    }

    /// Each customer has paid ten once.
    fn ytd_of_district(&self) -> i64 {
        self.plan.customers as i64 * 1000
    }

    fn district(&self, w: u64, d: u64) -> Row {
        let random = &mut row_random(self.seed, "district", w * DISTRICTS + d);
        let mut row = vec![d.into(), w.into(), text(random, 6, 10).into()];
        row.extend(address(random));
        row.extend([
            fraction(random, 2000),
            Value::Hundredths(self.ytd_of_district()),
            (self.plan.customers + 1).into(),
        ]);
        row
    }

    fn stock(&self, w: u64, i: u64) -> Row {
        let random = &mut row_random(self.seed, "stock", w * self.plan.items + i);
        let mut row = vec![i.into(), w.into(), random.u64(10..=100).into()];
        row.extend((0..DISTRICTS).map(|_| Value::from(text(random, 24, 24))));
        row.extend([0u64.into(), 0u64.into(), 0u64.into(), data(random).into()]);
        row
    }

    fn customer(&self, w: u64, d: u64, c: u64) -> Row {
        let random = &mut row_random(self.seed, "customer", self.key(w, d, c));
        let name = match c {
            1..=NAMES => c - 1,
            _ => non_uniform(random, 255, self.constants.name_loaded, 0, NAMES - 1),
        };
        let mut row: Row = vec![
            c.into(),
            d.into(),
            w.into(),
            text(random, 8, 16).into(),
            "OE".into(),
            last_name(name).into(),
        ];
        row.extend(address(random));
        let is_bad = random.u64(0..100) < BAD_CREDIT_PERCENT;
        row.extend([
            digits(random, 16).into(),
            self.now.clone().into(),
            if is_bad { "BC" } else { "GC" }.into(),
            Value::Hundredths(5_000_000),
            fraction(random, 5000),
            Value::Hundredths(-1000),
            Value::Hundredths(1000),
            1u64.into(),
            0u64.into(),
            text(random, 300, 500).into(),
        ]);
        row
    }

    fn history(&self, w: u64, d: u64, c: u64) -> Row {
        let random = &mut row_random(self.seed, "history", self.key(w, d, c));
        vec![
            c.into(),
            d.into(),
            w.into(),
            d.into(),
            w.into(),
            self.now.clone().into(),
            Value::Hundredths(1000),
            text(random, 12, 24).into(),
        ]
    }

    /// Each customer of a district has one order; in what order they came.
    fn order_of_customers(&self, w: u64, d: u64) -> Vec<u64> {
        let mut customers: Vec<u64> = (1..=self.plan.customers).collect();
        row_random(self.seed, "orders", w * DISTRICTS + d).shuffle(&mut customers);
        customers
    }

    fn order(&self, w: u64, d: u64, o: u64, c: u64) -> Row {
        let random = &mut row_random(self.seed, "order", self.key(w, d, o));
        let lines = random.u64(5..=15);
        let carrier = match self.is_delivered(o) {
            true => random.u64(1..=10).into(),
            false => Value::Null,
        };
        vec![
            o.into(),
            d.into(),
            w.into(),
            c.into(),
            self.now.clone().into(),
            carrier,
            lines.into(),
            1u64.into(),
        ]
    }

    fn lines(&self, w: u64, d: u64, o: u64) -> Vec<Row> {
        // As many as the order says, whose numbers begin with that.
        let lines = row_random(self.seed, "order", self.key(w, d, o)).u64(5..=15);
        let random = &mut row_random(self.seed, "order_line", self.key(w, d, o));
        let line = |number: u64| {
            let (delivered, amount) = match self.is_delivered(o) {
                true => (self.now.clone().into(), 0),
                false => (Value::Null, random.i64(1..=999_999)),
            };
            vec![
                o.into(),
                d.into(),
                w.into(),
                number.into(),
                random.u64(1..=self.plan.items).into(),
                w.into(),
                delivered,
                5u64.into(),
                Value::Hundredths(amount),
                text(random, 24, 24).into(),
            ]
        };
        (1..=lines).map(line).collect()
    }

    fn is_delivered(&self, o: u64) -> bool {
        o <= self.plan.delivered()
    }

    fn key(&self, w: u64, d: u64, number: u64) -> u64 {
        (w * DISTRICTS + d) * (self.plan.customers + 1) + number
    }
}

/// Letters and digits, of a length between two.
pub(super) fn text(random: &mut Rng, least: usize, most: usize) -> String {
    let length = random.usize(least..=most);
    (0..length).map(|_| random.alphanumeric()).collect()
}

fn digits(random: &mut Rng, length: usize) -> String {
    (0..length).map(|_| random.digit(10)).collect()
}

/// Two streets, city, state and zip code.
fn address(random: &mut Rng) -> [Value; 5] {
    let state: String = (0..2).map(|_| random.uppercase()).collect();
    [
        text(random, 10, 20).into(),
        text(random, 10, 20).into(),
        text(random, 10, 20).into(),
        state.into(),
        (digits(random, 4) + "11111").into(),
    ]
}

/// From 0 to so many ten-thousandths.
fn fraction(random: &mut Rng, most: u64) -> Value {
    format!("0.{:04}", random.u64(0..=most)).into()
}

/// A text that says ORIGINAL somewhere, now and then.
fn data(random: &mut Rng) -> String {
    let mut data = text(random, 26, 50);
    if random.u64(0..100) < ORIGINAL_PERCENT {
        const ORIGINAL: &str = "ORIGINAL";
        let at = random.usize(0..=data.len() - ORIGINAL.len());
        data.replace_range(at..at + ORIGINAL.len(), ORIGINAL);
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_the_cardinalities_of_the_plan() {
        let plan = TpccPlan {
            warehouses: 2,
            items: 50,
            customers: 30,
            ..TpccPlan::default()
        };
        let constants = Constants::draw(1);
        let tables = tables(&plan, &constants, 1);
        let rows: std::collections::BTreeMap<&str, Vec<Row>> = tables
            .into_iter()
            .map(|table| (table.name, table.rows.collect()))
            .collect();
        let counts = [
            ("item", 50),
            ("warehouse", 2),
            ("district", 20),
            ("stock", 100),
            ("customer", 600),
            ("history", 600),
            ("orders", 600),
            ("new_order", 180),
        ];
        for (table, count) in counts {
            assert_eq!(rows[table].len(), count, "{table}");
        }
        let promised: i64 = rows["orders"]
            .iter()
            .map(|row| match row[6] {
                Value::Int(lines) => lines,
                _ => 0,
            })
            .sum();
        assert_eq!(rows["order_line"].len() as i64, promised);
    }
}
