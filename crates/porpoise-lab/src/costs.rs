//! What units of work of a query cost, in reads of a row in key order: the optimizer's constants,
//! measured.
//!
//! A unit's cost is the difference of two statements that differ in it alone, divided by how often
//! they do it. Both run in one round, so that what the machine does meanwhile hits both; the median
//! of all rounds' ratios to that round's read counts.
//!
//! | unit | slower statement | faster statement |
//! | --- | --- | --- |
//! | read | counts all rows in key order | counts a half |
//! | PASS | the same, with a condition that all pass | counts all rows |
//! | COVERED | counts all entries of a covering index | counts a half |
//! | FETCH | reads rows behind a secondary index, in another order | reads its entries |
//! | SEEK | looks a row up for each entry of an index | reads the entries |
//! | SORT | sends rows sorted | sends them in key order |
//! | HASH_PUT | joins with a hash table of all rows | of a half |
//! | HASH_GET | looks all rows up in a hash table | a half |

use std::time::Instant;

use porpoise_client::Connection;

use crate::statistics::median;

/// How to measure.
#[derive(Clone, Debug)]
pub struct CostsPlan {
    /// Rows of the table.
    pub rows: u64,
    /// Rounds of which the median counts.
    pub rounds: usize,
}

/// A unit of work, by the name of the optimizer's constant.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitCost {
    /// The constant's name.
    pub name: &'static str,
    /// What it costs: the median of the rounds.
    pub reads: f64,
    /// The least and the most of any round.
    pub range: (f64, f64),
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Costs {
    /// How long a read of a row in key order takes, in nanoseconds.
    pub read_ns: f64,
    /// The units, in reads.
    pub units: Vec<UnitCost>,
}

/// Two statements, and how often the first does what the second doesn't.
struct Pair {
    name: &'static str,
    slower: String,
    faster: String,
    times: f64,
    /// What the difference holds beside the unit, in units that are measured before, by name.
    beside: &'static [&'static str],
}

/// Measures, on the table that [`load`] has made with as many rows.
///
/// # Errors
/// If a statement is refused.
pub fn run(connection: &mut Connection, plan: &CostsPlan) -> Result<Costs, porpoise_client::Error> {
    let pairs = pairs(plan.rows);
    let mut rounds: Vec<Vec<f64>> = vec![Vec::new(); pairs.len()];
    // The first round brings everything into memory.
    for round in 0..=plan.rounds.max(1) {
        for (pair, differences) in pairs.iter().zip(&mut rounds) {
            let slower = seconds(connection, &pair.slower)?;
            let faster = seconds(connection, &pair.faster)?;
            if round > 0 {
                differences.push((slower - faster) / pair.times);
            }
        }
    }
    Ok(costs(&pairs, &rounds))
}

/// Makes a table in the connection's current schema and fills it with as many rows; `k` and `v` are
/// permutations of the numbers below it.
///
/// # Errors
/// If a statement is refused.
pub fn load(connection: &mut Connection, rows: u64) -> Result<(), porpoise_client::Error> {
    /// Rows of a statement.
    const ROWS: u64 = 5_000;
    connection.run(
        "CREATE TABLE costs (id INT PRIMARY KEY, k INT NOT NULL, v INT NOT NULL, pad CHAR(60) NOT NULL, \
         KEY by_k (k))",
    )?;
    // Multiples of a prime that doesn't divide the number of rows meet every number once.
    let permuted = |id: u64, prime: u64| id * prime % rows;
    let mut next = 0;
    while next < rows {
        let end = (next + ROWS).min(rows);
        let row = |id| {
            let (k, v) = (permuted(id, 1_000_003), permuted(id, 998_244_353));
            format!("({id},{k},{v},'{id:060}')")
        };
        let values: Vec<String> = (next..end).map(row).collect();
        connection.run(format!("INSERT INTO costs VALUES {}", values.join(",")))?;
        next = end;
    }
    connection.run("ANALYZE TABLE costs")?;
    Ok(())
}

fn pairs(rows: u64) -> Vec<Pair> {
    let half = rows / 2;
    let some = rows / 8;
    let n = rows as f64;
    let scan =
        |below: u64| format!("SELECT COUNT(*) FROM costs FORCE INDEX (PRIMARY) WHERE id < {below}");
    let entries =
        |below: u64| format!("SELECT COUNT(*) FROM costs FORCE INDEX (by_k) WHERE k < {below}");
    let sorted = |order: &str| {
        format!("SELECT v FROM costs FORCE INDEX (PRIMARY) WHERE id < {rows} {order}")
    };
    let hashed = |probing: u64, built: u64| {
        format!(
            "SELECT COUNT(*) FROM costs AS p FORCE INDEX (PRIMARY) \
             STRAIGHT_JOIN costs AS b FORCE INDEX (PRIMARY) ON b.v = p.v \
             WHERE p.id < {probing} AND b.id < {built}"
        )
    };
    let pair = |name, slower, faster, times, beside| Pair {
        name,
        slower,
        faster,
        times,
        beside,
    };
    vec![
        pair("read", scan(rows), scan(half), n / 2.0, &[]),
        pair(
            "PASS",
            format!("{} AND v >= 0", scan(rows)),
            scan(rows),
            n,
            &[],
        ),
        pair("COVERED", entries(rows), entries(half), n / 2.0, &[]),
        pair(
            "FETCH",
            format!("SELECT COUNT(pad) FROM costs FORCE INDEX (by_k) WHERE k < {some}"),
            format!("SELECT COUNT(id) FROM costs FORCE INDEX (by_k) WHERE k < {some}"),
            some as f64,
            &[],
        ),
        pair(
            "SEEK",
            format!(
                "SELECT COUNT(*) FROM costs AS a FORCE INDEX (by_k) \
                 STRAIGHT_JOIN costs AS b FORCE INDEX (PRIMARY) ON b.id = a.id WHERE a.k < {some}"
            ),
            entries(some),
            some as f64,
            &[],
        ),
        pair(
            "SORT",
            sorted("ORDER BY v"),
            sorted(""),
            n * n.max(2.0).log2(),
            &[],
        ),
        pair(
            "HASH_PUT",
            hashed(1, rows),
            hashed(1, half),
            n / 2.0,
            &["read"],
        ),
        pair(
            "HASH_GET",
            hashed(rows, some),
            hashed(half, some),
            n / 2.0,
            &["read"],
        ),
    ]
}

fn seconds(connection: &mut Connection, sql: &str) -> Result<f64, porpoise_client::Error> {
    let began = Instant::now();
    connection.rows(sql)?;
    Ok(began.elapsed().as_secs_f64())
}

/// The units, of each round's differences.
fn costs(pairs: &[Pair], rounds: &[Vec<f64>]) -> Costs {
    let of = |name: &str| pairs.iter().position(|pair| pair.name == name);
    let reads = of("read").map_or(&[][..], |at| &rounds[at]);
    let unit = |(pair, differences): (&Pair, &Vec<f64>)| {
        let beside = |round: usize| -> f64 {
            let others = pair.beside.iter().filter_map(|name| of(name));
            others.map(|at| rounds[at][round]).sum()
        };
        let ratio = |(round, (difference, read)): (usize, (&f64, &f64))| {
            (difference - beside(round)) / read.max(1e-12)
        };
        let ratios = differences.iter().zip(reads).enumerate().map(ratio);
        let mut ratios: Vec<f64> = ratios.collect();
        ratios.sort_by(f64::total_cmp);
        let median = median(&ratios);
        UnitCost {
            name: pair.name,
            reads: median,
            range: (
                ratios.first().copied().unwrap_or(median),
                ratios.last().copied().unwrap_or(median),
            ),
        }
    };
    let units = pairs.iter().zip(rounds).skip(1).map(unit).collect();
    Costs {
        read_ns: median(reads) * 1e9,
        units,
    }
}

impl Costs {
    /// A table of the units beside the constants that an optimizer has for them, by name.
    pub fn beside(&self, constants: &[(&str, f64)]) -> String {
        let mut lines = format!(
            "a read of a row in key order: {:.0} ns\n\n{:<10} {:>9} {:>17} {:>9}\n",
            self.read_ns, "unit", "measured", "of all rounds", "constant"
        );
        for unit in &self.units {
            let known = constants.iter().find(|(name, _)| *name == unit.name);
            let constant = known.map_or("-".into(), |(_, constant)| format!("{constant:.2}"));
            let (least, most) = unit.range;
            let range = format!("{least:.2} to {most:.2}");
            lines += &format!(
                "{:<10} {:>9.2} {range:>17} {constant:>9}\n",
                unit.name, unit.reads
            );
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &'static str, beside: &'static [&'static str]) -> Pair {
        Pair {
            name,
            slower: String::new(),
            faster: String::new(),
            times: 1.0,
            beside,
        }
    }

    #[test]
    fn units_are_medians_of_ratios_to_their_rounds_read() {
        let pairs = [
            pair("read", &[]),
            pair("SEEK", &[]),
            pair("HASH_PUT", &["read"]),
        ];
        // The machine was half as fast in the second round, and disturbed in the third.
        let rounds = [
            vec![1e-7, 2e-7, 1e-7],
            vec![6e-7, 12e-7, 99e-7],
            vec![3e-7, 6e-7, 2e-7],
        ];
        let costs = costs(&pairs, &rounds);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(near(costs.read_ns, 100.0));
        assert!(near(costs.units[0].reads, 6.0), "{costs:?}");
        assert!(near(costs.units[0].range.1, 99.0), "{costs:?}");
        assert!(near(costs.units[1].reads, 2.0), "{costs:?}");
        let table = costs.beside(&[("SEEK", 6.0)]);
        assert!(table.contains("SEEK            6.00"), "{table}");
    }
}
