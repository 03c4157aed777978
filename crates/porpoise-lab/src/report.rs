//! What was measured, as a table.

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
}

/// All that was measured, in the order of the plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// One for each workload, number of clients and target.
    pub measurements: Vec<Measurement>,
}

impl Report {
    /// The target that the others are compared with: the first.
    pub fn baseline(&self) -> Option<&str> {
        self.measurements
            .first()
            .map(|measurement| measurement.target.as_str())
    }

    /// A measurement's transactions a second by those of the baseline, in the same workload and
    /// number of clients.
    pub fn ratio(&self, measurement: &Measurement) -> Option<f64> {
        let baseline = self.baseline()?;
        self.measurements
            .iter()
            .find(|other| {
                other.target == baseline
                    && other.workload == measurement.workload
                    && other.clients == measurement.clients
            })
            .filter(|other| other.transactions_per_second > 0.0)
            .map(|other| measurement.transactions_per_second / other.transactions_per_second)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let compared = self.baseline().filter(|baseline| {
            self.measurements
                .iter()
                .any(|other| other.target != *baseline)
        });
        let mut header: Vec<String> = [
            "workload",
            "way in",
            "clients",
            "threads",
            "transactions/s",
            "queries/s",
            "p95 ms",
            "errors",
        ]
        .map(str::to_owned)
        .into();
        header.extend(compared.map(|baseline| format!("× {baseline}")));
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
            if compared.is_some() {
                row.push(
                    self.ratio(measurement)
                        .map_or("".into(), |ratio| format!("{ratio:.2}")),
                );
            }
            row
        });
        let table: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
        aligned(formatter, &table, 2)
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

/// A rate in whole numbers.
pub(crate) fn rate(per_second: f64) -> String {
    grouped(per_second.round() as u64)
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

    fn measurement(target: &str, per_second: f64) -> Measurement {
        Measurement {
            workload: Workload::PointSelect,
            target: target.into(),
            clients: 8,
            jobs: 2,
            transactions_per_second: per_second,
            queries_per_second: per_second,
            latency_p95: Duration::from_micros(212),
            errors: 0,
        }
    }

    #[test]
    fn one_target_is_shown_without_a_ratio() {
        let report = Report {
            measurements: vec![measurement("Unix socket", 1_234_567.4)],
        };
        assert_eq!(
            report.to_string(),
            "workload           way in       clients  threads  transactions/s  queries/s  p95 ms  errors\n\
             oltp_point_select  Unix socket        8        2       1,234,567  1,234,567   0.212       0\n"
        );
    }

    #[test]
    fn further_targets_are_compared_with_the_first() {
        let report = Report {
            measurements: vec![measurement("MariaDB", 1000.0), measurement("TCP", 2500.0)],
        };
        let text = report.to_string();
        assert!(
            text.lines().next().unwrap().ends_with("× MariaDB"),
            "{text}"
        );
        assert!(text.lines().nth(1).unwrap().ends_with("1.00"), "{text}");
        assert!(text.lines().nth(2).unwrap().ends_with("2.50"), "{text}");
    }
}
