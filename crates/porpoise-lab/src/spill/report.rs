//! What the spill experiment came to: seconds and peaks of memory of each statement.

use std::fmt;

use super::{QUERIES, Setting, SpillPlan};
use crate::queries::Reply;
use crate::report::{aligned, grouped, rate};

/// What was measured of a server with one limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpillRun {
    /// `in memory`, `to disk`, or the name of the server beside.
    pub name: String,
    /// What each statement took, as far as it came to it.
    pub seconds: Vec<Option<f64>>,
    /// The most bytes that were resident meanwhile.
    pub peaks: Vec<Option<u64>>,
    /// What went wrong.
    pub failures: Vec<String>,
    /// What each statement answered.
    pub(super) replies: Vec<Option<Reply>>,
    /// Peaks of memory are those since the server's start.
    pub(super) has_older_peaks: bool,
}

impl SpillRun {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            seconds: vec![None; QUERIES.len()],
            peaks: vec![None; QUERIES.len()],
            replies: vec![None; QUERIES.len()],
            ..Self::default()
        }
    }
}

/// All that was measured.
#[derive(Clone, Debug, Default)]
pub struct SpillReport {
    /// Porpoise in memory, then to disk, then the server beside, if there is one.
    pub runs: Vec<SpillRun>,
    plan: SpillPlan,
}

impl SpillReport {
    pub(super) fn new(plan: &SpillPlan) -> Self {
        Self {
            runs: Vec::new(),
            plan: plan.clone(),
        }
    }

    /// What went wrong: statements that failed, went to disk or didn't against the plan, and answers that
    /// differ.
    pub fn failures(&self) -> Vec<String> {
        let failures = self.runs.iter().flat_map(|run| &run.failures);
        let mut failures: Vec<String> = failures.cloned().collect();
        for pair in self.runs.windows(2) {
            let replies = pair[0].replies.iter().zip(&pair[1].replies);
            for (query, (one, other)) in QUERIES.iter().zip(replies) {
                if let (Some(one), Some(other)) = (one, other)
                    && !one.agrees(other, &[])
                {
                    let (name, beside) = (&pair[0].name, &pair[1].name);
                    let text = query.text;
                    failures.push(format!("{name} and {beside} answer differently: {text}"));
                }
            }
        }
        failures
    }

    fn run(&self, setting: Setting) -> Option<&SpillRun> {
        self.runs.iter().find(|run| run.name == setting.name())
    }
}

impl fmt::Display for SpillReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = &self.plan;
        writeln!(
            formatter,
            "{} rows of sysbench's table, {} MiB; a buffer pool of {} MiB; to disk: a statement may take {} MiB",
            grouped(plan.table().rows),
            grouped(plan.table_mib),
            plan.cache_mib,
            plan.limit_mib,
        )?;
        writeln!(formatter)?;
        let settings = Setting::all(plan.peer);
        let mut header = vec!["statement".to_owned()];
        header.extend(settings.iter().map(|of| format!("{} s", of.name())));
        header.push("speed to disk".to_owned());
        header.extend(plan.peer.then(|| "by MariaDB's".to_owned()));
        header.extend(settings.iter().map(|of| format!("{} MiB", of.name())));
        let mut table = vec![header];
        let dash = || "–".to_owned();
        for (at, query) in QUERIES.iter().enumerate() {
            let seconds = |setting| self.run(setting).and_then(|run| run.seconds[at]);
            let peak = |setting| self.run(setting).and_then(|run| run.peaks[at]);
            let quotient = |one: Option<f64>, other: Option<f64>| {
                let pair = one.zip(other.filter(|other| *other > 0.0));
                pair.map_or_else(dash, |(one, other)| format!("{:.2}", one / other))
            };
            let to_disk = seconds(Setting::ToDisk);
            let mut row = vec![query.name.to_owned()];
            row.extend(settings.iter().map(|&setting| {
                seconds(setting).map_or_else(dash, |seconds| format!("{seconds:.1}"))
            }));
            row.push(quotient(seconds(Setting::InMemory), to_disk));
            if plan.peer {
                row.push(quotient(to_disk, seconds(Setting::MariaDb)));
            }
            row.extend(settings.iter().map(|&setting| {
                peak(setting).map_or_else(dash, |bytes| rate(bytes as f64 / f64::from(1 << 20)))
            }));
            table.push(row);
        }
        aligned(formatter, &table, 1)?;
        if self.runs.iter().any(|run| run.has_older_peaks) {
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

    fn report(peer: bool) -> SpillReport {
        let mut report = SpillReport::new(&SpillPlan {
            peer,
            ..SpillPlan::default()
        });
        for (&setting, factor) in Setting::all(peer).iter().zip([1, 2, 4]) {
            let mut run = SpillRun::new(setting.name());
            for at in 0..QUERIES.len() {
                run.seconds[at] = Some(1.5 * factor as f64);
                run.peaks[at] = Some(factor * (100 << 20));
                run.replies[at] = Some(Reply::Digest(5, 6));
            }
            report.runs.push(run);
        }
        report
    }

    #[test]
    fn a_line_has_times_ratios_and_peaks() {
        let text = report(true).to_string();
        let line = text
            .lines()
            .find(|line| line.starts_with("GROUP BY c "))
            .unwrap();
        let cells: Vec<&str> = line.split_whitespace().skip(3).collect();
        assert_eq!(
            cells,
            ["1.5", "3.0", "6.0", "0.50", "0.50", "100", "200", "400"],
            "{text}"
        );
        let text = report(false).to_string();
        assert!(!text.contains("MariaDB"), "{text}");
        let line = text
            .lines()
            .find(|line| line.starts_with("GROUP BY c "))
            .unwrap();
        let cells: Vec<&str> = line.split_whitespace().skip(3).collect();
        assert_eq!(cells, ["1.5", "3.0", "0.50", "100", "200"], "{text}");
    }

    #[test]
    fn failures_and_answers_that_differ_are_told() {
        let mut report = report(true);
        assert_eq!(report.failures(), [""; 0]);
        report.runs[0].failures.push("it ended".into());
        report.runs[1].replies[0] = Some(Reply::Digest(5, 7));
        report.runs[2].replies[0] = Some(Reply::Digest(5, 7));
        report.runs[2].replies[1] = Some(Reply::Rows(Answer::default()));
        report.runs[2].replies[2] = None;
        report.runs[2].seconds[2] = None;
        let differ =
            |names: &str, at: usize| format!("{names} answer differently: {}", QUERIES[at].text);
        assert_eq!(
            report.failures(),
            [
                "it ended".to_owned(),
                differ("in memory and to disk", 0),
                differ("to disk and MariaDB", 1),
            ]
        );
        assert!(report.to_string().contains(" – "), "{report}");
    }
}
