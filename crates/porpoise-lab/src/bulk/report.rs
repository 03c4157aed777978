//! What the bulk experiment came to: a table of seconds, and one of memory and the folder.

use std::collections::BTreeMap;
use std::fmt;

use super::{BulkChange, BulkPlan, QUERIES, Step};
use crate::own_server::Product;
use crate::queries::Reply;
use crate::report::{aligned, grouped, rate};

/// Something that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BulkFigure {
    /// Seconds of the INSERTs of many rows that fill the table.
    Inserts,
    /// Seconds of LOAD DATA LOCAL INFILE into an empty copy.
    LoadData,
    /// Seconds of INSERT … SELECT into an empty copy.
    InsertSelect,
    /// Seconds of a SELECT on a server that has just been started, by its place in the report.
    Cold(usize),
    /// Seconds of a SELECT when it is asked again.
    Warm(usize),
    /// Seconds of a change.
    Change(BulkChange),
    /// Bytes that were resident before a change.
    Before(BulkChange),
    /// The most bytes that were resident in a change.
    Peak(BulkChange),
    /// Bytes of the folder at the end, at rest.
    Folder,
}

impl BulkFigure {
    /// Seconds, in the order of the report.
    fn seconds() -> Vec<Self> {
        let mut figures = vec![Self::Inserts, Self::LoadData, Self::InsertSelect];
        for (at, query) in QUERIES.iter().enumerate() {
            if query.is_cold {
                figures.push(Self::Cold(at));
            }
            figures.push(Self::Warm(at));
        }
        figures.extend([BulkChange::AddIndex, BulkChange::Update].map(Self::Change));
        figures
    }

    /// Bytes, in the order of the report.
    fn bytes() -> Vec<Self> {
        let changes = [BulkChange::AddIndex, BulkChange::Update];
        let of_change = |change| [Self::Before(change), Self::Peak(change)];
        let mut figures: Vec<Self> = changes.into_iter().flat_map(of_change).collect();
        figures.push(Self::Folder);
        figures
    }

    fn name(self) -> String {
        match self {
            Self::Inserts => Step::Inserts.name().to_owned(),
            Self::LoadData => Step::LoadData.name().to_owned(),
            Self::InsertSelect => Step::InsertSelect.name().to_owned(),
            Self::Cold(at) => format!("{}, cold", QUERIES[at].name),
            Self::Warm(at) => format!("{}, warm", QUERIES[at].name),
            Self::Change(change) => change.name().to_owned(),
            Self::Before(change) => format!("memory before {}", change.name()),
            Self::Peak(change) => format!("peak in {}", change.name()),
            Self::Folder => "folder at the end".to_owned(),
        }
    }
}

/// What was measured of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BulkServer {
    /// Its name.
    pub name: String,
    /// Seconds and bytes, as far as it came to them.
    pub figures: BTreeMap<BulkFigure, f64>,
    /// What went wrong.
    pub failures: Vec<String>,
    /// What each of the SELECTs answered.
    pub(super) replies: Vec<Option<Reply>>,
    /// Peaks of memory are those since the server's start.
    pub(super) has_older_peaks: bool,
}

impl BulkServer {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            replies: vec![None; QUERIES.len()],
            ..Self::default()
        }
    }
}

/// All that was measured.
#[derive(Clone, Debug, Default)]
pub struct BulkReport {
    /// The server beside, if there is one, then Porpoise.
    pub servers: Vec<BulkServer>,
    plan: BulkPlan,
}

impl BulkReport {
    pub(super) fn new(plan: &BulkPlan) -> Self {
        Self {
            plan: plan.clone(),
            ..Self::default()
        }
    }

    /// What went wrong: steps that failed, and answers that differ.
    pub fn failures(&self) -> Vec<String> {
        let failures = self.servers.iter().flat_map(|server| &server.failures);
        let mut failures: Vec<String> = failures.cloned().collect();
        for pair in self.servers.windows(2) {
            let replies = pair[0].replies.iter().zip(&pair[1].replies);
            for (query, (one, other)) in QUERIES.iter().zip(replies) {
                if let (Some(one), Some(other)) = (one, other)
                    && !one.agrees(other, query.ordered_by)
                {
                    let (name, beside) = (&pair[0].name, &pair[1].name);
                    failures.push(format!(
                        "{name} and {beside} answer differently: {}",
                        query.text
                    ));
                }
            }
        }
        failures
    }

    fn value(&self, product: Product, figure: BulkFigure) -> Option<f64> {
        let server = self
            .servers
            .iter()
            .find(|server| server.name == product.name())?;
        server.figures.get(&figure).copied()
    }

    /// Lines of figures; the ratio is Porpoise's by MariaDB's.
    fn table(
        &self,
        head: &str,
        unit: &str,
        figures: &[BulkFigure],
        text: fn(f64) -> String,
    ) -> Vec<Vec<String>> {
        let products: &[Product] = match self.plan.peer {
            true => &[Product::Porpoise, Product::MariaDb],
            false => &[Product::Porpoise],
        };
        let mut header = vec![head.to_owned()];
        header.extend(
            products
                .iter()
                .map(|product| format!("{}{unit}", product.name())),
        );
        if self.plan.peer {
            header.push("ratio".to_owned());
        }
        let cell = |text: Option<String>| text.unwrap_or_else(|| "–".into());
        let mut table = vec![header];
        for &figure in figures {
            let values: Vec<Option<f64>> = products
                .iter()
                .map(|&product| self.value(product, figure))
                .collect();
            let mut row = vec![figure.name()];
            row.extend(values.iter().map(|value| cell(value.map(text))));
            if let [one, other] = values[..] {
                let ratio = one.zip(other.filter(|other| *other > 0.0));
                row.push(cell(
                    ratio.map(|(one, other)| format!("{:.2}", one / other)),
                ));
            }
            table.push(row);
        }
        table
    }
}

impl fmt::Display for BulkReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = &self.plan;
        writeln!(
            formatter,
            "{} rows of sysbench's table; a buffer pool of {} MiB each; one client on the Unix socket; \
             SELECTs: median of {}",
            grouped(plan.rows),
            plan.memory_mib,
            plan.rounds
        )?;
        writeln!(
            formatter,
            "Cold: asked first after a restart of the server; what the kernel keeps of its files stays. \
             Warm: asked again"
        )?;
        writeln!(formatter)?;
        let seconds = |value: f64| format!("{value:.3}");
        let figures = BulkFigure::seconds();
        let table = self.table("statement", " s", &figures, seconds);
        aligned(formatter, &table, 1)?;
        writeln!(formatter)?;
        let mib = |bytes: f64| rate(bytes / f64::from(1 << 20));
        let table = self.table("memory and folder", " MiB", &BulkFigure::bytes(), mib);
        aligned(formatter, &table, 1)?;
        if self.servers.iter().any(|server| server.has_older_peaks) {
            writeln!(
                formatter,
                "Peaks are those since the server's start: the kernel doesn't let them be reset"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::Answer;

    fn server(name: &str, factor: f64) -> BulkServer {
        let mut server = BulkServer::new(name);
        for figure in BulkFigure::seconds() {
            server.figures.insert(figure, 1.5 * factor);
        }
        for figure in BulkFigure::bytes() {
            let bytes = f64::from(100 << 20) * factor;
            server.figures.insert(figure, bytes);
        }
        server.replies = vec![Some(Reply::Digest(7, 7)); QUERIES.len()];
        server
    }

    fn report(peer: bool) -> BulkReport {
        let mut report = BulkReport::new(&BulkPlan {
            peer,
            ..BulkPlan::default()
        });
        if peer {
            report.servers.push(server("MariaDB", 1.0));
        }
        report.servers.push(server("Porpoise", 2.0));
        report
    }

    #[test]
    fn each_statement_has_a_line_with_a_ratio() {
        let text = report(true).to_string();
        assert!(
            text.starts_with("2,000,000 rows of sysbench's table; a buffer pool of 1024 MiB each"),
            "{text}"
        );
        for (begins, ends) in [
            ("statement ", "Porpoise s  MariaDB s  ratio"),
            ("INSERTs of many rows ", " 3.000      1.500   2.00"),
            ("SELECT SUM(LENGTH(c)), cold ", " 3.000      1.500   2.00"),
            (
                "SELECT * ORDER BY k, pad, warm ",
                " 3.000      1.500   2.00",
            ),
            ("peak in UPDATE k = k + 1 ", " 200          100   2.00"),
            ("folder at the end ", " 200          100   2.00"),
        ] {
            let mut lines = text.lines();
            assert!(
                lines.any(|line| line.starts_with(begins) && line.ends_with(ends)),
                "{begins}: {text}"
            );
        }
        assert_eq!(text.lines().count(), 3 + 15 + 1 + 6, "{text}");
    }

    #[test]
    fn alone_there_are_no_ratios_and_what_is_missing_is_a_dash() {
        let mut report = report(false);
        report.servers[0].figures.remove(&BulkFigure::Folder);
        report.servers[0].has_older_peaks = true;
        let text = report.to_string();
        assert!(
            !text.contains("ratio") && !text.contains("MariaDB"),
            "{text}"
        );
        let folder = text.lines().find(|line| line.starts_with("folder"));
        assert!(folder.unwrap().ends_with(" –"), "{text}");
        assert!(
            text.ends_with("the kernel doesn't let them be reset\n"),
            "{text}"
        );
    }

    #[test]
    fn failures_and_answers_that_differ_are_told() {
        let mut report = report(true);
        assert_eq!(report.failures(), [""; 0]);
        report.servers[0].failures.push("it ended".into());
        report.servers[0].replies[3] = None;
        report.servers[1].replies[0] = Some(Reply::Rows(Answer::default()));
        report.servers[1].replies[5] = Some(Reply::Digest(7, 8));
        assert_eq!(
            report.failures(),
            [
                "it ended",
                "MariaDB and Porpoise answer differently: SELECT SUM(LENGTH(c)) FROM sbtest1",
                "MariaDB and Porpoise answer differently: SELECT * FROM sbtest1 ORDER BY k, pad"
            ]
        );
    }
}
