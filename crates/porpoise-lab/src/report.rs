//! What was measured, as a table.

use crate::steadiness::Spread;
use crate::workload::Workload;
use std::fmt;
use std::time::Duration;

/// One workload on one target with one number of clients: the median round by transactions a
/// second.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The workload.
    pub workload: Workload,
    /// The target's name.
    pub target: String,
    /// The name of the target that it is compared with.
    pub compared_with: Option<String>,
    /// Clients at a time.
    pub clients: usize,
    /// The threads that had them.
    pub jobs: usize,
    /// Transactions committed a second.
    pub transactions_per_second: f64,
    /// Statements a second.
    pub queries_per_second: f64,
    /// What 95 of 100 transactions took at most.
    pub latency_p95: Duration,
    /// Transactions rolled back because of a conflict.
    pub errors: u64,
    /// How far the rounds lie apart, by transactions a second.
    pub spread: Spread,
}

/// All that was measured, in the order of the plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// One for each workload, number of clients and target.
    pub measurements: Vec<Measurement>,
}

impl Report {
    /// A measurement's transactions a second by those of the target that it is compared with, in the
    /// same workload and number of clients.
    pub fn ratio(&self, measurement: &Measurement) -> Option<f64> {
        let beside = measurement.compared_with.as_deref()?;
        self.measurements
            .iter()
            .find(|other| {
                other.target == beside
                    && other.workload == measurement.workload
                    && other.clients == measurement.clients
            })
            .filter(|other| other.transactions_per_second > 0.0)
            .map(|other| measurement.transactions_per_second / other.transactions_per_second)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let compares = self
            .measurements
            .iter()
            .any(|one| one.compared_with.is_some());
        let mut header: Vec<&str> = vec![
            "workload",
            "way in",
            "clients",
            "threads",
            "transactions/s",
            "queries/s",
            "p95 ms",
            "errors",
        ];
        if compares {
            header.extend(["×", "beside"]);
        }
        let spreads = || self.measurements.iter().map(|one| one.spread);
        let has_rounds = spreads().any(Spread::is_known);
        if has_rounds {
            header.push("spread");
        }
        let header: Vec<String> = header.into_iter().map(str::to_owned).collect();
        let rows = self.measurements.iter().map(|measurement| {
            let mut row = vec![
                measurement.workload.to_string(),
                measurement.target.clone(),
                measurement.clients.to_string(),
                measurement.jobs.to_string(),
                rate(measurement.transactions_per_second),
                rate(measurement.queries_per_second),
                format!("{:.3}", measurement.latency_p95.as_secs_f64() * 1e3),
                grouped(measurement.errors),
            ];
            if compares {
                let ratio = self.ratio(measurement);
                row.push(ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")));
                row.push(measurement.compared_with.clone().unwrap_or_default());
            }
            if has_rounds {
                row.push(measurement.spread.to_string());
            }
            row
        });
        let table: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
        aligned(formatter, &table, 2)?;
        Spread::note(spreads(), formatter)
    }
}

/// Writes a table whose first columns hold names, and whose others figures.
pub(crate) fn aligned(
    formatter: &mut fmt::Formatter<'_>,
    table: &[Vec<String>],
    names: usize,
) -> fmt::Result {
    let width = |column: usize| {
        let widths = table
            .iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count());
        widths.max().unwrap_or(0)
    };
    for row in table {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = width(column);
            // Names to the left, figures to the right.
            line.push_str(&if column < names {
                format!("{cell:<width$}  ")
            } else {
                format!("{cell:>width$}  ")
            });
        }
        writeln!(formatter, "{}", line.trim_end())?;
    }
    Ok(())
}

/// A rate in whole numbers, or one that is below ten with two decimal places.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second < 10.0 {
        true => format!("{per_second:.2}"),
        false => grouped(per_second.round() as u64),
    }
}

/// A number with its digits in threes.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurement(target: &str, per_second: f64, beside: Option<&str>) -> Measurement {
        Measurement {
            workload: Workload::PointSelect,
            target: target.into(),
            compared_with: beside.map(str::to_owned),
            clients: 8,
            jobs: 2,
            transactions_per_second: per_second,
            queries_per_second: per_second,
            latency_p95: Duration::from_micros(212),
            errors: 0,
            spread: Spread::default(),
        }
    }

    #[test]
    fn rounds_that_disagree_are_told() {
        let with = |rounds: &[f64]| Measurement {
            spread: Spread::of(rounds),
            ..measurement("TCP", 100.0, None)
        };
        let report = Report {
            measurements: vec![with(&[100.0, 101.0]), with(&[100.0, 150.0])],
        };
        let text = report.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].ends_with("  spread") && lines[1].ends_with("  1 %"),
            "{text}"
        );
        assert!(lines[2].ends_with("  50 % !"), "{text}");
        assert!(
            lines[3].starts_with("Rounds disagree by more than 20 % in 1 of"),
            "{text}"
        );
    }

    #[test]
    fn one_target_is_shown_without_a_ratio() {
        let report = Report {
            measurements: vec![measurement("Unix socket", 1_234_567.4, None)],
        };
        assert_eq!(
            report.to_string(),
            "workload           way in       clients  threads  transactions/s  queries/s  p95 ms  errors\n\
             oltp_point_select  Unix socket        8        2       1,234,567  1,234,567   0.212       0\n"
        );
    }

    #[test]
    fn a_target_is_compared_with_the_one_that_it_names() {
        let report = Report {
            measurements: vec![
                measurement("MariaDB TCP", 1000.0, None),
                measurement("MariaDB TLS", 5.0, None),
                measurement("TCP", 2500.0, Some("MariaDB TCP")),
                measurement("TLS", 2.0, Some("MariaDB TLS")),
            ],
        };
        let text = report.to_string();
        let ends = |line: usize, end: &str| text.lines().nth(line).unwrap().ends_with(end);
        assert!(ends(0, "×       beside"), "{text}");
        assert!(ends(1, "0"), "{text}");
        assert!(ends(3, "2.50  MariaDB TCP"), "{text}");
        assert!(
            ends(4, "0.40  MariaDB TLS") && text.contains("  2.00  "),
            "{text}"
        );
    }
}
