//! TPC-C (revision 5.11): the orders of a wholesale supplier with many warehouses.
//!
//! ```text
//!   warehouse ─┬─ 10 districts ── 3,000 customers each ── orders ── 5 to 15 order lines each
//!              └─ stock of 100,000 items                     └── new orders: those not yet delivered
//! ```
//!
//! Each client is a terminal with a home warehouse. It deals itself a deck of 23 cards, which makes
//! the mix: ten New-Orders, ten Payments, one of each other kind. Before a transaction it keys the
//! input, after it it thinks, for the times of clause 5.2.5 multiplied by
//! [`think_time`](TpccPlan::think_time); with 0 it does neither, and what is measured is what the
//! server does at most. After a run the twelve consistency conditions must hold.
//!
//! Not as in the specification: a Delivery is executed at once instead of from a queue; the tables
//! declare no foreign keys; and what is measured is this much, without the specification's pricing
//! and audit: figures are tpmC by count, and no TPC results.

mod population;
mod transactions;

use std::sync::Arc;

use fastrand::Rng;
use porpoise_client::{Connection, Error};

use crate::Measured;
use crate::queries::load::fill;
use crate::scenario::{Check, Scenario};
use crate::workload::Course;

use transactions::{KINDS, STATEMENTS, Terminal};

/// Districts of a warehouse.
const DISTRICTS: u64 = 10;
/// What it is at most, without thinking: 12.86 a warehouse (clause 4.1).
const TPMC_OF_WAREHOUSE: f64 = 12.86;
/// Of the initial orders of a district, those that are not delivered yet: 900 of 3,000.
const NEW_PERCENT: u64 = 30;
/// Names that customers have.
const NAMES: u64 = 1000;

/// How large the tables are, and how hurried the terminals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TpccPlan {
    pub warehouses: u64,
    /// What keying and think times are multiplied by.
    pub think_time: f64,
    /// The specification's is 100,000. Fewer make smaller tables, and no TPC-C.
    pub items: u64,
    /// Of a district: 3,000 in the specification.
    pub customers: u64,
}

impl Default for TpccPlan {
    fn default() -> Self {
        Self {
            warehouses: 1,
            think_time: 0.0,
            items: 100_000,
            customers: 3_000,
        }
    }
}

impl TpccPlan {
    /// The initial orders of a district that are delivered.
    fn delivered(&self) -> u64 {
        self.customers - self.customers * NEW_PERCENT / 100
    }
}

/// TPC-C at a size.
#[derive(Debug)]
pub(crate) struct Tpcc {
    plan: TpccPlan,
    /// The database of its tables.
    database: String,
    constants: Constants,
}

impl Tpcc {
    pub(crate) fn new(plan: TpccPlan, database: String, seed: u64) -> Self {
        Self {
            plan,
            database,
            constants: Constants::draw(seed),
        }
    }
}

/// The constants of non-uniform random numbers (clause 2.1.6).
#[derive(Clone, Copy, Debug)]
struct Constants {
    /// For names while loading, and while running.
    name_loaded: u64,
    name: u64,
    customer: u64,
    item: u64,
}

impl Constants {
    fn draw(seed: u64) -> Self {
        let random = &mut Rng::with_seed(seed);
        let name_loaded = random.u64(0..=255);
        // Clause 2.1.6.1: how far the two lie apart.
        let name = loop {
            let name = random.u64(0..=255);
            let apart = name.abs_diff(name_loaded);
            if (65..=119).contains(&apart) && apart != 96 && apart != 112 {
                break name;
            }
        };
        Self {
            name_loaded,
            name,
            customer: random.u64(0..=1023),
            item: random.u64(0..=8191),
        }
    }
}

/// NURand(`a`, `from`, `to`) of clause 2.1.6.
fn non_uniform(random: &mut Rng, a: u64, constant: u64, from: u64, to: u64) -> u64 {
    let both = random.u64(0..=a) | random.u64(from..=to);
    (both + constant) % (to - from + 1) + from
}

/// A customer's name of its number below [`NAMES`], of three syllables (clause 4.3.2.3).
fn last_name(number: u64) -> String {
    const SYLLABLES: [&str; 10] = [
        "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
    ];
    let syllable = |place: u64| SYLLABLES[(number / place % 10) as usize];
    [100, 10, 1].map(syllable).concat()
}

impl Scenario for Tpcc {
    fn database(&self) -> Option<&str> {
        Some(&self.database)
    }

    fn load(
        &self,
        connection: &mut Connection,
        seed: u64,
        show: &mut dyn FnMut(&str),
    ) -> Result<(), Error> {
        let mut names = Vec::new();
        for definition in crate::queries::read_statements(include_str!("schema.sql")) {
            let name = definition.split("CREATE TABLE ").nth(1).unwrap_or_default();
            let name = name.split(' ').next().unwrap_or_default();
            connection.run(format!("DROP TABLE IF EXISTS {name}"))?;
            connection.run(definition)?;
            names.push(name);
        }
        for table in population::tables(&self.plan, &self.constants, seed) {
            let name = table.name;
            fill(connection, table, |rows| {
                show(&format!("{rows} rows of {name}"));
            })?;
        }
        connection.run(format!("ANALYZE TABLE {}", names.join(", ")))?;
        Ok(())
    }

    fn statements(&self) -> Vec<String> {
        STATEMENTS.iter().map(|text| (*text).to_owned()).collect()
    }

    fn to_prepare(&self) -> Vec<usize> {
        let has_values = |number: &usize| STATEMENTS[*number].contains('?');
        (0..STATEMENTS.len()).filter(has_values).collect()
    }

    fn kinds(&self) -> Vec<String> {
        KINDS.iter().map(|kind| kind.name.to_owned()).collect()
    }

    fn course(self: Arc<Self>, client: usize) -> Box<dyn Course> {
        Box::new(Terminal::new(&self.plan, &self.constants, client))
    }

    fn has_pauses(&self) -> bool {
        self.plan.think_time > 0.0
    }

    fn checks(&self) -> Vec<Check> {
        let checks = include_str!("checks.sql").split("-- check ").skip(1);
        let delivered = self.plan.delivered().to_string();
        let check = |text: &str| {
            let (name, query) = text.split_once('\n')?;
            let query = query.trim().trim_end_matches(';');
            Some(Check {
                name: format!("consistency condition {name}"),
                query: query.replace("{delivered}", &delivered),
            })
        };
        checks.filter_map(check).collect()
    }

    fn figures(&self, measured: &Measured) -> Vec<(String, f64)> {
        let Some(new_orders) = measured.kinds.first() else {
            return Vec::new();
        };
        let tpmc = new_orders.latencies.count() as f64 / measured.seconds * 60.0;
        let mut figures = vec![("tpmC".to_owned(), tpmc)];
        if self.plan.think_time == 1.0 {
            let most = TPMC_OF_WAREHOUSE * self.plan.warehouses as f64;
            figures.push(("tpmC, % of the most".to_owned(), tpmc / most * 100.0));
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_syllables() {
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(371), "PRICALLYOUGHT");
    }

    #[test]
    fn constants_lie_as_far_apart_as_they_must() {
        for seed in 0..50 {
            let constants = Constants::draw(seed);
            let apart = constants.name.abs_diff(constants.name_loaded);
            assert!((65..=119).contains(&apart) && apart != 96 && apart != 112);
        }
    }

    #[test]
    fn non_uniform_numbers_are_in_their_range_and_not_uniform() {
        let random = &mut Rng::with_seed(3);
        let mut seen = vec![0u32; 3001];
        for _ in 0..300_000 {
            seen[non_uniform(random, 1023, 259, 1, 3000) as usize] += 1;
        }
        assert_eq!(seen[0], 0);
        let (least, most) = (seen[1..].iter().min(), seen[1..].iter().max());
        assert!(most > least.map(|least| least * 4).as_ref());
    }

    #[test]
    fn there_are_twelve_consistency_conditions() {
        let tpcc = Tpcc::new(TpccPlan::default(), "tpcc".into(), 1);
        let checks = tpcc.checks();
        assert_eq!(checks.len(), 12);
        assert!(checks[0].name.starts_with("consistency condition 1: W_YTD"));
        assert!(checks[10].query.contains("deliveries + 2100"));
        assert!(checks.iter().all(|check| check.query.starts_with("SELECT")));
    }

    /// A change, and the condition that it violates among others.
    const VIOLATIONS: [(usize, &str); 12] = [
        (1, "UPDATE warehouse SET w_ytd = w_ytd + 1"),
        (
            2,
            "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 3",
        ),
        (
            3,
            "DELETE FROM new_order WHERE no_d_id = 2 AND no_o_id = 25",
        ),
        (
            4,
            "DELETE FROM order_line WHERE ol_d_id = 1 AND ol_o_id = 7 AND ol_number = 2",
        ),
        (
            5,
            "UPDATE orders SET o_carrier_id = 1 WHERE o_d_id = 1 AND o_id = 30",
        ),
        (
            6,
            "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_d_id = 9 AND o_id = 1",
        ),
        (
            7,
            "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 4 AND ol_o_id = 3",
        ),
        (
            8,
            "INSERT INTO history SELECT * FROM history WHERE h_c_id = 4 AND h_d_id = 1",
        ),
        (
            9,
            "UPDATE district SET d_ytd = d_ytd - 0.01 WHERE d_id = 10",
        ),
        (
            10,
            "UPDATE customer SET c_balance = c_balance + 1 WHERE c_d_id = 2 AND c_id = 5",
        ),
        (
            11,
            "UPDATE customer SET c_delivery_cnt = 1 WHERE c_d_id = 2 AND c_id = 5",
        ),
        (
            12,
            "UPDATE customer SET c_ytd_payment = 0 WHERE c_d_id = 2 AND c_id = 5",
        ),
    ];

    #[test]
    fn each_condition_holds_at_first_and_finds_what_violates_it() {
        porpoise::provide_to_clients();
        let mut connection = Connection::open("porpoise::memory:").unwrap();
        for sql in ["CREATE DATABASE tpcc", "USE tpcc"] {
            connection.run(sql).unwrap();
        }
        let plan = TpccPlan {
            items: 100,
            customers: 30,
            ..TpccPlan::default()
        };
        let tpcc = Tpcc::new(plan, "tpcc".into(), 1);
        tpcc.load(&mut connection, 1, &mut |_| {}).unwrap();
        let checks = tpcc.checks();
        let violated = |connection: &mut Connection| -> Vec<usize> {
            let mut finds = |check: &Check| !connection.rows(&check.query).unwrap().is_empty();
            let numbers = (1..).zip(&checks);
            numbers
                .filter_map(|(number, check)| finds(check).then_some(number))
                .collect()
        };
        assert_eq!(violated(&mut connection), [0; 0]);
        for (number, change) in VIOLATIONS {
            connection.run("BEGIN").unwrap();
            connection.run(change).unwrap();
            let found = violated(&mut connection);
            assert!(found.contains(&number), "{change}: {found:?}");
            connection.run("ROLLBACK").unwrap();
        }
        assert_eq!(violated(&mut connection), [0; 0]);
    }
}
