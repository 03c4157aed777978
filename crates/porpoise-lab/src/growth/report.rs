//! What the growth experiment came to: a table, and a chart of each figure.

use std::fmt;
use std::path::{Path, PathBuf};

use super::GrowthPlan;
use crate::Error;
use crate::chart::{Curve, Panel, Picture, Scale, standalone};
use crate::report::{aligned, grouped, rate};

/// What was measured of a server with a number of rows; nothing where it didn't come to that.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GrowthFigures {
    /// Rows a second, by INSERTs of many.
    pub loads: Option<f64>,
    /// Bytes of the folder a row, beyond those that it had without rows, at rest after the load.
    pub loaded_bytes: Option<f64>,
    /// Point selects a second of any row.
    pub selects: Option<f64>,
    /// The same of rows that the cache holds.
    pub hot_selects: Option<f64>,
    /// Updates a second of any row.
    pub updates: Option<f64>,
    /// Updates in the worst second, by those of the second in the middle.
    pub worst_second: Option<f64>,
    /// Seconds that the slowest update took.
    pub longest_update: Option<f64>,
    /// Bytes of the folder a row, at rest after the updates.
    pub updated_bytes: Option<f64>,
    /// Bytes of the whole folder then.
    pub folder_bytes: Option<f64>,
    /// Rows a second that a sum of all reads.
    pub scans: Option<f64>,
    /// The most memory of the process that was resident.
    pub peak_bytes: Option<f64>,
    /// Seconds from SIGTERM until it has ended.
    pub stop: Option<f64>,
    /// Seconds until it answers a query, after it was stopped.
    pub start: Option<f64>,
    /// The same after SIGKILL amid updates.
    pub recovery: Option<f64>,
    /// Rows that then didn't hold what a client had been told.
    pub lost: Option<f64>,
}

/// A server with a number of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct GrowthLine {
    /// How many rows.
    pub rows: u64,
    /// The server's name.
    pub server: String,
    /// What was measured.
    pub figures: GrowthFigures,
    /// Why the rest wasn't.
    pub failure: Option<String>,
}

/// All that was measured.
#[derive(Clone, Debug, Default)]
pub struct GrowthReport {
    /// For each number of rows the server beside, if there is one, then Porpoise.
    pub lines: Vec<GrowthLine>,
    plan: GrowthPlan,
    /// Why the memory isn't limited.
    unlimited: Option<String>,
}

/// How a figure is written.
#[derive(Clone, Copy)]
enum Form {
    /// So many a second, in whole numbers.
    Rate,
    Count,
    /// With a decimal place.
    Tenths,
    /// With two.
    Hundredths,
    /// Seconds, as milliseconds.
    Milliseconds,
    /// With three decimal places.
    Seconds,
    /// Bytes, as MiB.
    Mib,
}

impl Form {
    /// In the unit that the table and the charts have.
    fn scaled(self, value: f64) -> f64 {
        match self {
            Self::Milliseconds => value * 1e3,
            Self::Mib => value / f64::from(1 << 20),
            _ => value,
        }
    }

    fn text(self, value: f64) -> String {
        let value = self.scaled(value);
        match self {
            Self::Rate => rate(value),
            Self::Count | Self::Mib => grouped(value.round() as u64),
            Self::Tenths | Self::Milliseconds => format!("{value:.1}"),
            Self::Hundredths => format!("{value:.2}"),
            Self::Seconds => format!("{value:.3}"),
        }
    }
}

/// A column of the table.
struct Kind {
    /// Of its chart's file.
    key: &'static str,
    head: &'static str,
    /// What its chart shows.
    title: &'static str,
    form: Form,
    scale: Scale,
    of: fn(&GrowthFigures) -> Option<f64>,
}

const RATES: &[Kind] = &[
    Kind {
        key: "load",
        head: "load rows/s",
        title: "Rows loaded a second",
        form: Form::Rate,
        scale: Scale::Linear,
        of: |figures| figures.loads,
    },
    Kind {
        key: "select",
        head: "selects/s",
        title: "Point selects a second, of any row",
        form: Form::Rate,
        scale: Scale::Linear,
        of: |figures| figures.selects,
    },
    Kind {
        key: "select-hot",
        head: "of the cache",
        title: "Point selects a second, of rows that the cache holds",
        form: Form::Rate,
        scale: Scale::Linear,
        of: |figures| figures.hot_selects,
    },
    Kind {
        key: "update",
        head: "updates/s",
        title: "Updates a second, of any row",
        form: Form::Rate,
        scale: Scale::Linear,
        of: |figures| figures.updates,
    },
    Kind {
        key: "worst-second",
        head: "worst second",
        title: "Updates in the worst second, by those of the second in the middle",
        form: Form::Hundredths,
        scale: Scale::Linear,
        of: |figures| figures.worst_second,
    },
    Kind {
        key: "longest-update",
        head: "longest ms",
        title: "The slowest update, ms",
        form: Form::Milliseconds,
        scale: Scale::Logarithmic,
        of: |figures| figures.longest_update,
    },
    Kind {
        key: "scan",
        head: "scan rows/s",
        title: "Rows scanned a second",
        form: Form::Rate,
        scale: Scale::Linear,
        of: |figures| figures.scans,
    },
];
const REST: &[Kind] = &[
    Kind {
        key: "bytes-loaded",
        head: "bytes/row",
        title: "Bytes of the folder a row, after the load",
        form: Form::Tenths,
        scale: Scale::Linear,
        of: |figures| figures.loaded_bytes,
    },
    Kind {
        key: "bytes-updated",
        head: "updated",
        title: "Bytes of the folder a row, after the updates",
        form: Form::Tenths,
        scale: Scale::Linear,
        of: |figures| figures.updated_bytes,
    },
    Kind {
        key: "folder",
        head: "folder MiB",
        title: "The whole folder after the updates, MiB",
        form: Form::Mib,
        scale: Scale::Linear,
        of: |figures| figures.folder_bytes,
    },
    Kind {
        key: "memory",
        head: "peak MiB",
        title: "The most memory that was resident, MiB",
        form: Form::Mib,
        scale: Scale::Linear,
        of: |figures| figures.peak_bytes,
    },
    Kind {
        key: "stop",
        head: "stop s",
        title: "Seconds to stop",
        form: Form::Seconds,
        scale: Scale::Logarithmic,
        of: |figures| figures.stop,
    },
    Kind {
        key: "start",
        head: "start s",
        title: "Seconds until an answer, after a stop",
        form: Form::Seconds,
        scale: Scale::Logarithmic,
        of: |figures| figures.start,
    },
    Kind {
        key: "recovery",
        head: "recovery s",
        title: "Seconds until an answer, after a kill amid updates",
        form: Form::Seconds,
        scale: Scale::Logarithmic,
        of: |figures| figures.recovery,
    },
];
const LOST: Kind = Kind {
    key: "lost",
    head: "lost",
    title: "Updates lost",
    form: Form::Count,
    scale: Scale::Linear,
    of: |figures| figures.lost,
};

impl GrowthReport {
    pub(super) fn new(plan: &GrowthPlan) -> Self {
        Self {
            plan: plan.clone(),
            ..Self::default()
        }
    }

    pub(super) fn is_not_limited(&mut self, why: &std::io::Error) {
        self.unlimited.get_or_insert_with(|| why.to_string());
    }

    /// What went wrong: steps that failed, and updates that were lost.
    pub fn failures(&self) -> Vec<String> {
        let failures = self.lines.iter().filter_map(|line| {
            let rows = grouped(line.rows);
            let lost = line.figures.lost.filter(|lost| *lost > 0.0);
            match (&line.failure, lost) {
                (Some(why), _) => Some(format!("{rows} rows, {}: {why}", line.server)),
                (None, Some(lost)) => {
                    let lost = LOST.form.text(lost);
                    let server = &line.server;
                    Some(format!(
                        "{rows} rows, {server}: {lost} rows don't hold what a client was told"
                    ))
                }
                (None, None) => None,
            }
        });
        failures.collect()
    }

    /// Writes a chart of each figure over the number of rows into a folder, as SVG; their paths.
    ///
    /// # Errors
    ///
    /// A file that can't be written.
    pub fn write_charts(&self, folder: &Path) -> Result<Vec<PathBuf>, Error> {
        let mut paths = Vec::new();
        for kind in RATES.iter().chain(REST) {
            let path = folder.join(format!("growth-{}.svg", kind.key));
            std::fs::write(&path, standalone(&self.picture(kind).svg()))
                .map_err(|error| Error::Plan(format!("{}: {error}", path.display())))?;
            paths.push(path);
        }
        Ok(paths)
    }

    fn picture(&self, kind: &Kind) -> Picture {
        let mut curves: Vec<Curve> = Vec::new();
        for line in &self.lines {
            let Some(value) = (kind.of)(&line.figures) else {
                continue;
            };
            let point = (line.rows as f64, kind.form.scaled(value));
            match curves.iter_mut().find(|curve| curve.name == line.server) {
                Some(curve) => curve.line.push(point),
                None => curves.push(Curve {
                    name: line.server.clone(),
                    line: vec![point],
                    ..Curve::default()
                }),
            }
        }
        for curve in &mut curves {
            curve.line.sort_by(|one, other| one.0.total_cmp(&other.0));
            curve.dots = curve.line.clone();
        }
        Picture {
            title: kind.title.to_owned(),
            x: "rows".to_owned(),
            y: kind.head.to_owned(),
            x_scale: Scale::Stops,
            y_scale: kind.scale,
            panels: vec![Panel {
                title: String::new(),
                curves,
            }],
            columns: 1,
        }
    }

    fn table(&self, kinds: &[&Kind]) -> Vec<Vec<String>> {
        let mut header = vec!["rows".to_owned(), "server".to_owned()];
        header.extend(kinds.iter().map(|kind| kind.head.to_owned()));
        let mut table = vec![header];
        let cell = |text: Option<String>| text.unwrap_or_else(|| "–".into());
        for (at, line) in self.lines.iter().enumerate() {
            let mut row = vec![grouped(line.rows), line.server.clone()];
            row.extend(kinds.iter().map(|kind| {
                let value = (kind.of)(&line.figures);
                cell(value.map(|value| kind.form.text(value)))
            }));
            table.push(row);
            // The server beside stands above.
            let beside = at.checked_sub(1).map(|before| &self.lines[before]);
            let Some(beside) = beside
                .filter(|one| one.rows == line.rows && one.server != line.server && self.plan.peer)
            else {
                continue;
            };
            let mut row = vec![String::new(), format!("× {}", beside.server)];
            row.extend(kinds.iter().map(|kind| {
                let (one, other) = ((kind.of)(&line.figures), (kind.of)(&beside.figures));
                let ratio = one.zip(other.filter(|other| *other > 0.0));
                cell(ratio.map(|(one, other)| format!("{:.2}", one / other)))
            }));
            table.push(row);
        }
        table
    }
}

impl fmt::Display for GrowthReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = &self.plan;
        let row = match plan.text_bytes {
            0 => "two integers".to_owned(),
            bytes => format!("two integers and a text of {bytes} bytes"),
        };
        write!(
            formatter,
            "Rows of {row}; {} clients on the Unix socket; a cache of {} MiB each, ",
            plan.clients, plan.cache_mib
        )?;
        match (&self.unlimited, plan.memory_mib) {
            (_, 0) => writeln!(formatter, "no limit of memory")?,
            (None, mib) => writeln!(formatter, "all memory at most {mib} MiB each")?,
            (Some(why), _) => writeln!(
                formatter,
                "no limit of memory, as a control group can't be made ({why})"
            )?,
        }
        let rates: Vec<&Kind> = RATES.iter().collect();
        let rest: Vec<&Kind> = REST.iter().chain([&LOST]).collect();
        for kinds in [rates, rest] {
            writeln!(formatter)?;
            aligned(formatter, &self.table(&kinds), 2)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(rows: u64, server: &str, factor: f64) -> GrowthLine {
        let figure = |value: f64| Some(value * factor);
        GrowthLine {
            rows,
            server: server.into(),
            figures: GrowthFigures {
                loads: figure(100_000.0),
                loaded_bytes: figure(84.24),
                selects: figure(40_000.0),
                hot_selects: figure(50_000.0),
                updates: figure(8_000.0),
                worst_second: Some(0.714),
                longest_update: figure(0.0123),
                updated_bytes: figure(100.0),
                folder_bytes: figure(f64::from(300 << 20)),
                scans: figure(5e6),
                peak_bytes: figure(f64::from(200 << 20)),
                stop: figure(0.5),
                start: figure(0.25),
                recovery: figure(0.75),
                lost: Some(0.0),
            },
            failure: None,
        }
    }

    fn report(peer: bool) -> GrowthReport {
        let mut report = GrowthReport::new(&GrowthPlan {
            peer,
            ..GrowthPlan::default()
        });
        for rows in [1_000, 20_000] {
            if peer {
                report.lines.push(line(rows, "MariaDB", 1.0));
            }
            report.lines.push(line(rows, "Porpoise", 2.0));
        }
        report
    }

    fn cells(text: &str) -> Vec<Vec<&str>> {
        text.lines()
            .map(|line| line.split_whitespace().collect())
            .collect()
    }

    #[test]
    fn each_size_has_a_line_a_server_and_one_of_ratios() {
        let text = report(true).to_string();
        let cells = cells(&text);
        let expected = [
            "1,000",
            "Porpoise",
            "200,000",
            "80,000",
            "100,000",
            "16,000",
            "0.71",
            "24.6",
            "10,000,000",
        ];
        assert_eq!(cells[4], expected, "{text}");
        let ratios = ["2.00", "2.00", "2.00", "2.00", "1.00", "2.00", "2.00"];
        assert_eq!(
            cells[5],
            [&["×", "MariaDB"], &ratios[..]].concat(),
            "{text}"
        );
        let rest = [
            "20,000", "MariaDB", "84.2", "100.0", "300", "200", "0.500", "0.250", "0.750", "0",
        ];
        assert_eq!(cells[14], rest, "{text}");
        assert!(text.contains("all memory at most 256 MiB each"), "{text}");
    }

    #[test]
    fn alone_there_are_no_ratios_and_what_is_missing_is_a_dash() {
        let mut report = report(false);
        report.lines[1].figures.scans = None;
        report.is_not_limited(&std::io::Error::other("read-only"));
        let text = report.to_string();
        assert!(!text.contains('×'), "{text}");
        assert_eq!(cells(&text)[4].last(), Some(&"–"), "{text}");
        assert!(text.contains("can't be made (read-only)"), "{text}");
    }

    #[test]
    fn failures_and_lost_updates_are_told() {
        let mut report = report(true);
        assert_eq!(report.failures(), [""; 0]);
        report.lines[0].failure = Some("it ended".into());
        report.lines[3].figures.lost = Some(2.0);
        assert_eq!(
            report.failures(),
            [
                "1,000 rows, MariaDB: it ended",
                "20,000 rows, Porpoise: 2 rows don't hold what a client was told"
            ]
        );
    }

    #[test]
    fn a_chart_has_a_curve_a_server_and_a_dot_a_size() {
        let folder = tempfile::tempdir().unwrap();
        let paths = report(true).write_charts(folder.path()).unwrap();
        assert_eq!(paths.len(), RATES.len() + REST.len());
        for path in paths {
            let svg = std::fs::read_to_string(path).unwrap();
            assert_eq!(svg.matches("<circle").count(), 4, "{svg}");
            assert!(svg.contains("MariaDB") && svg.contains("Porpoise"));
        }
        let missing = folder.path().join("missing");
        let error = report(true).write_charts(&missing).unwrap_err();
        assert!(error.to_string().contains("growth-load.svg"), "{error}");
    }
}
