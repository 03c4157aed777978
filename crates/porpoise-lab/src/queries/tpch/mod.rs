//! TPC-H: the wholesale supplier of TPC-H 3.0.1, its data (clauses 4.2 and 4.3) and its 22 queries.
//!
//! ```text
//!   region ◄─ nation ◄─┬─ customer ◄── orders ◄─┐
//!       5        25    │  150,000·s   1,500,000·s│
//!                      └─ supplier ◄─┐           lineitem, 1 to 7 an order
//!                          10,000·s  partsupp ◄─┘
//!                             part ◄─┘ 4 a part          s: the scale
//!                         200,000·s
//! ```
//!
//! Values have the ranges, distributions and vocabularies of the specification; the random numbers
//! are not those of TPC's program, so answers differ from the published ones.

mod grammar;

use fastrand::Rng;

use super::data::{Day, Value, pick, random_text, row_random};
use super::{Query, Row, Suite, Table, read_queries, read_statements};
use grammar::Sentences;

/// Order keys: of every 32 the first 8 are used (clause 4.2.3).
const KEYS_USED: u64 = 8;
const KEYS_GAP: u64 = 32;
const START_DATE: Day = Day::of(1992, 1, 1);
const CURRENT_DATE: Day = Day::of(1995, 6, 17);
const END_DATE: Day = Day::of(1998, 12, 31);
/// An order's last line is shipped and received this many days later at most.
const DELIVERY_DAYS_MAX: i64 = 151;
const SUPPLIERS_OF_PART: u64 = 4;

const REGIONS: [&str; 5] = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];
/// Nations and their regions, in the order of their keys.
const NATIONS: [(&str, u64); 25] = [
    ("ALGERIA", 0),
    ("ARGENTINA", 1),
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("EGYPT", 4),
    ("ETHIOPIA", 0),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("INDONESIA", 2),
    ("IRAN", 4),
    ("IRAQ", 4),
    ("JAPAN", 2),
    ("JORDAN", 4),
    ("KENYA", 0),
    ("MOROCCO", 0),
    ("MOZAMBIQUE", 0),
    ("PERU", 1),
    ("CHINA", 2),
    ("ROMANIA", 3),
    ("SAUDI ARABIA", 4),
    ("VIETNAM", 2),
    ("RUSSIA", 3),
    ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
];
const SEGMENTS: [&str; 5] = [
    "AUTOMOBILE",
    "BUILDING",
    "FURNITURE",
    "MACHINERY",
    "HOUSEHOLD",
];
const PRIORITIES: [&str; 5] = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"];
const INSTRUCTIONS: [&str; 4] = [
    "DELIVER IN PERSON",
    "COLLECT COD",
    "NONE",
    "TAKE BACK RETURN",
];
const MODES: [&str; 7] = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"];
const TYPES: [&[&str]; 3] = [
    &["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"],
    &["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"],
    &["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"],
];
const CONTAINERS: [&[&str]; 2] = [
    &["SM", "LG", "MED", "JUMBO", "WRAP"],
    &["CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"],
];
const COLOURS: [&str; 92] = [
    "almond",
    "antique",
    "aquamarine",
    "azure",
    "beige",
    "bisque",
    "black",
    "blanched",
    "blue",
    "blush",
    "brown",
    "burlywood",
    "burnished",
    "chartreuse",
    "chiffon",
    "chocolate",
    "coral",
    "cornflower",
    "cornsilk",
    "cream",
    "cyan",
    "dark",
    "deep",
    "dim",
    "dodger",
    "drab",
    "firebrick",
    "floral",
    "forest",
    "frosted",
    "gainsboro",
    "ghost",
    "goldenrod",
    "green",
    "grey",
    "honeydew",
    "hot",
    "indian",
    "ivory",
    "khaki",
    "lace",
    "lavender",
    "lawn",
    "lemon",
    "light",
    "lime",
    "linen",
    "magenta",
    "maroon",
    "medium",
    "metallic",
    "midnight",
    "mint",
    "misty",
    "moccasin",
    "navajo",
    "navy",
    "olive",
    "orange",
    "orchid",
    "pale",
    "papaya",
    "peach",
    "peru",
    "pink",
    "plum",
    "powder",
    "puff",
    "purple",
    "red",
    "rose",
    "rosy",
    "royal",
    "saddle",
    "salmon",
    "sandy",
    "seashell",
    "sienna",
    "sky",
    "slate",
    "smoke",
    "snow",
    "spring",
    "steel",
    "tan",
    "thistle",
    "tomato",
    "turquoise",
    "violet",
    "wheat",
    "white",
    "yellow",
];
const COLOURS_OF_PART: usize = 5;

/// The benchmark at a scale.
pub struct Tpch {
    scale: f64,
    seed: u64,
    sentences: Sentences,
    parts: u64,
    suppliers: u64,
    customers: u64,
    orders: u64,
    clerks: u64,
}

struct Order {
    key: u64,
    customer: u64,
    date: Day,
    lines: Vec<Line>,
}

/// A line of an order; amounts in hundredths.
struct Line {
    part: u64,
    supplier: u64,
    quantity: i64,
    price: i64,
    discount: i64,
    tax: i64,
    ships: Day,
    due: Day,
    arrives: Day,
}

impl Tpch {
    /// At a scale, of which 1 is about a gigabyte.
    pub fn new(scale: f64, seed: u64) -> Self {
        let scaled = |rows: f64| ((rows * scale).round() as u64).max(1);
        let parts = scaled(200_000.0);
        Self {
            scale,
            seed,
            sentences: Sentences::write(seed),
            parts,
            suppliers: enough_suppliers(scaled(10_000.0), parts),
            customers: scaled(150_000.0).max(3),
            orders: scaled(1_500_000.0),
            clerks: scaled(1_000.0),
        }
    }

    fn random(&self, table: &str, row: u64) -> Rng {
        row_random(self.seed, table, row)
    }

    fn region(&self, key: u64) -> Row {
        let random = &mut self.random("region", key);
        vec![
            key.into(),
            REGIONS[key as usize].into(),
            self.sentences.text(random, 31..=115).into(),
        ]
    }

    fn nation(&self, key: u64) -> Row {
        let random = &mut self.random("nation", key);
        let (name, region) = NATIONS[key as usize];
        vec![
            key.into(),
            name.into(),
            region.into(),
            self.sentences.text(random, 31..=114).into(),
        ]
    }

    fn supplier(&self, key: u64) -> Row {
        let random = &mut self.random("supplier", key);
        let nation = random.u64(0..NATIONS.len() as u64);
        vec![
            key.into(),
            format!("Supplier#{key:09}").into(),
            address(random).into(),
            nation.into(),
            phone(random, nation).into(),
            Value::Hundredths(random.i64(-99_999..=999_999)),
            self.supplier_comment(random, key).into(),
        ]
    }

    /// Customers complain of 5 suppliers in 10,000, and recommend as many (clause 4.2.3).
    fn supplier_comment(&self, random: &mut Rng, key: u64) -> String {
        const OF_TEN_THOUSAND: u64 = 5;
        const WHO: &str = "Customer";
        let text = self.sentences.text(random, 25..=100);
        let each = ((self.suppliers * OF_TEN_THOUSAND) as f64 / 10_000.0).ceil() as u64;
        let what = match self.suppliers_place(key) {
            place if place < each => "Complaints",
            place if place < 2 * each => "Recommends",
            _ => return text,
        };
        let gaps_max = text.len() - WHO.len() - what.len();
        let gap = random.usize(0..=gaps_max);
        let begin = random.usize(0..=gaps_max - gap);
        let (first, second) = (begin + WHO.len(), begin + WHO.len() + gap);
        let end = second + what.len();
        [
            &text[..begin],
            WHO,
            &text[first..second],
            what,
            &text[end..],
        ]
        .concat()
    }

    /// Where a supplier stands in an order of all that has nothing to do with their keys.
    fn suppliers_place(&self, key: u64) -> u64 {
        // A prime above every number of suppliers makes it a permutation.
        const PRIME: u64 = 2_147_483_647;
        (key * PRIME + self.seed % self.suppliers) % self.suppliers
    }

    fn part(&self, key: u64) -> Row {
        let random = &mut self.random("part", key);
        let mut colours: Vec<&str> = Vec::with_capacity(COLOURS_OF_PART);
        while colours.len() < COLOURS_OF_PART {
            let colour = pick(random, &COLOURS);
            if !colours.contains(&colour) {
                colours.push(colour);
            }
        }
        let maker = random.u32(1..=5);
        let brand = random.u32(1..=5);
        let words = |random: &mut Rng, lists: &[&[&str]]| {
            let words: Vec<&str> = lists.iter().map(|list| pick(random, list)).collect();
            words.join(" ")
        };
        vec![
            key.into(),
            colours.join(" ").into(),
            format!("Manufacturer#{maker}").into(),
            format!("Brand#{maker}{brand}").into(),
            words(random, &TYPES).into(),
            random.u64(1..=50).into(),
            words(random, &CONTAINERS).into(),
            Value::Hundredths(retail_price(key)),
            self.sentences.text(random, 5..=22).into(),
        ]
    }

    fn part_supplier(&self, part: u64, place: u64) -> Row {
        let random = &mut self.random("partsupp", part * SUPPLIERS_OF_PART + place);
        vec![
            part.into(),
            supplier_of(part, place, self.suppliers).into(),
            random.u64(1..=9_999).into(),
            Value::Hundredths(random.i64(100..=100_000)),
            self.sentences.text(random, 49..=198).into(),
        ]
    }

    fn customer(&self, key: u64) -> Row {
        let random = &mut self.random("customer", key);
        let nation = random.u64(0..NATIONS.len() as u64);
        vec![
            key.into(),
            format!("Customer#{key:09}").into(),
            address(random).into(),
            nation.into(),
            phone(random, nation).into(),
            Value::Hundredths(random.i64(-99_999..=999_999)),
            pick(random, &SEGMENTS).into(),
            self.sentences.text(random, 29..=116).into(),
        ]
    }

    /// An order by its place, from 0.
    fn order(&self, place: u64) -> Order {
        let random = &mut self.random("orders and lines", place);
        let customer = loop {
            let customer = random.u64(1..=self.customers);
            // A third of the customers never orders.
            if !customer.is_multiple_of(3) {
                break customer;
            }
        };
        let last_day = END_DATE.plus(-DELIVERY_DAYS_MAX).since(START_DATE);
        let date = START_DATE.plus(random.i64(0..=last_day));
        let lines = random.usize(1..=7);
        Order {
            key: place / KEYS_USED * KEYS_GAP + place % KEYS_USED + 1,
            customer,
            date,
            lines: (0..lines).map(|_| self.line(random, date)).collect(),
        }
    }

    fn line(&self, random: &mut Rng, ordered: Day) -> Line {
        let part = random.u64(1..=self.parts);
        let supplier = supplier_of(part, random.u64(0..SUPPLIERS_OF_PART), self.suppliers);
        let quantity = random.i64(1..=50);
        let ships = ordered.plus(random.i64(1..=121));
        Line {
            part,
            supplier,
            quantity,
            price: quantity * retail_price(part),
            discount: random.i64(0..=10),
            tax: random.i64(0..=8),
            ships,
            due: ordered.plus(random.i64(30..=90)),
            arrives: ships.plus(random.i64(1..=30)),
        }
    }

    fn order_row(&self, place: u64) -> Row {
        let random = &mut self.random("orders", place);
        let order = self.order(place);
        let shipped = order.lines.iter().filter(|line| line.is_shipped()).count();
        let status = match shipped {
            0 => "O",
            all if all == order.lines.len() => "F",
            _ => "P",
        };
        vec![
            order.key.into(),
            order.customer.into(),
            status.into(),
            Value::Hundredths(order.lines.iter().map(Line::total).sum()),
            order.date.into(),
            pick(random, &PRIORITIES).into(),
            format!("Clerk#{:09}", random.u64(1..=self.clerks)).into(),
            Value::Int(0),
            self.sentences.text(random, 19..=78).into(),
        ]
    }

    fn line_rows(&self, place: u64) -> Vec<Row> {
        let mut random = self.random("lineitem", place);
        let order = self.order(place);
        let row = |(line, number): (Line, u64)| {
            let flag = match line.arrives <= CURRENT_DATE {
                true => pick(&mut random, &["R", "A"]),
                false => "N",
            };
            vec![
                order.key.into(),
                line.part.into(),
                line.supplier.into(),
                number.into(),
                Value::Hundredths(line.quantity * 100),
                Value::Hundredths(line.price),
                Value::Hundredths(line.discount),
                Value::Hundredths(line.tax),
                flag.into(),
                if line.is_shipped() { "F" } else { "O" }.into(),
                line.ships.into(),
                line.due.into(),
                line.arrives.into(),
                pick(&mut random, &INSTRUCTIONS).into(),
                pick(&mut random, &MODES).into(),
                self.sentences.text(&mut random, 10..=43).into(),
            ]
        };
        order.lines.into_iter().zip(1..).map(row).collect()
    }
}

impl Line {
    fn is_shipped(&self) -> bool {
        self.ships <= CURRENT_DATE
    }

    /// What it costs, in hundredths, rounded.
    fn total(&self) -> i64 {
        (self.price * (100 - self.discount) * (100 + self.tax) + 5_000) / 10_000
    }
}

/// Clause 4.2.3: P_RETAILPRICE, in hundredths.
fn retail_price(part: u64) -> i64 {
    (90_000 + (part / 10) % 20_001 + 100 * (part % 1_000)) as i64
}

/// Clause 4.2.3: PS_SUPPKEY, of the four suppliers of a part, which `place` counts from 0.
fn supplier_of(part: u64, place: u64, suppliers: u64) -> u64 {
    (part + place * (suppliers / SUPPLIERS_OF_PART + (part - 1) / suppliers)) % suppliers + 1
}

/// The next number of suppliers for which the formula finds four of them for each part, as it does
/// for each scale that the specification allows, but not for small fractions.
fn enough_suppliers(suppliers: u64, parts: u64) -> u64 {
    let are_distinct = |suppliers: u64| {
        (0..=(parts - 1) / suppliers).all(|turn| {
            let step = suppliers / SUPPLIERS_OF_PART + turn;
            (1..SUPPLIERS_OF_PART).all(|places| !(step * places).is_multiple_of(suppliers))
        })
    };
    let mut enough = suppliers;
    while !are_distinct(enough) {
        enough += 1;
    }
    enough
}

fn address(random: &mut Rng) -> String {
    let length = random.usize(10..=40);
    random_text(random, length)
}

fn phone(random: &mut Rng, nation: u64) -> String {
    let (area, exchange, line) = (
        random.u32(100..=999),
        random.u32(100..=999),
        random.u32(1_000..=9_999),
    );
    format!("{}-{area}-{exchange}-{line}", nation + 10)
}

impl Suite for Tpch {
    fn name(&self) -> &'static str {
        "tpch"
    }

    fn definitions(&self) -> Vec<&'static str> {
        read_statements(include_str!("schema.sql"))
    }

    fn tables(&self) -> Vec<Table<'_>> {
        let part_suppliers = (1..=self.parts).flat_map(move |part| {
            (0..SUPPLIERS_OF_PART).map(move |place| self.part_supplier(part, place))
        });
        vec![
            Table::new(
                "region",
                (0..REGIONS.len() as u64).map(|key| self.region(key)),
            ),
            Table::new(
                "nation",
                (0..NATIONS.len() as u64).map(|key| self.nation(key)),
            ),
            Table::new(
                "supplier",
                (1..=self.suppliers).map(|key| self.supplier(key)),
            ),
            Table::new("part", (1..=self.parts).map(|key| self.part(key))),
            Table::new("partsupp", part_suppliers),
            Table::new(
                "customer",
                (1..=self.customers).map(|key| self.customer(key)),
            ),
            Table::new(
                "orders",
                (0..self.orders).map(|place| self.order_row(place)),
            ),
            Table::new(
                "lineitem",
                (0..self.orders).flat_map(|place| self.line_rows(place)),
            ),
        ]
    }

    fn queries(&self) -> Vec<Query> {
        // Clause 2.4.11.3: FRACTION is 0.0001 / SF.
        let fraction = format!("{:.10}", 0.0001 / self.scale);
        read_queries(include_str!("queries.sql"), &[("{fraction}", &fraction)])
    }
}
