//! What a history tells: changes of a metric of a point, and runs that came to nothing.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::ops::Range;
use std::path::Path;

use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::change_points::change_points;
use super::kept;
use crate::Error;
use crate::chart::{Curve, Panel, Picture};
use crate::page::study::{StudiedPoint, StudiedRun, Study};
use crate::page::{document, drawn_as};
use crate::statistics::median;

/// What is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Transactions a second: more is better.
    Throughput,
    /// The 95th percentile of the latency, in milliseconds: less is better.
    LatencyP95,
    /// Processor time that the server takes for a transaction, in microseconds: less is better. Who
    /// else uses the machine changes it least.
    ServerTime,
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Metric::Throughput => "transactions a second",
            Metric::LatencyP95 => "95th percentile, ms",
            Metric::ServerTime => "server µs a transaction",
        })
    }
}

impl Metric {
    /// All of them.
    const ALL: [Metric; 3] = [Metric::Throughput, Metric::LatencyP95, Metric::ServerTime];

    /// The median of a point's runs: one that something else on the machine disturbed moves nothing.
    /// Of a server whose process isn't known, there is no processor time.
    fn of(self, point: &StudiedPoint) -> Option<f64> {
        let of_run = |run: &StudiedRun| match self {
            Metric::Throughput => Some(run.per_second),
            Metric::LatencyP95 => Some(run.latencies.percentile(0.95).as_secs_f64() * 1e3),
            Metric::ServerTime => {
                let transactions = run.transactions.max(1) as f64;
                Some(run.server_seconds? * 1e6 / transactions)
            }
        };
        let values: Option<Vec<f64>> = point.runs.iter().map(of_run).collect();
        values.map(|values| median(&values))
    }
}

/// What findings call a point.
fn name_of(point: &StudiedPoint) -> String {
    format!(
        "{}, {}, {} clients",
        point.series, point.workload, point.clients
    )
}

/// The value of what has changed, in another study.
pub(super) fn value_of(study: &Study, change: &Finding) -> Option<f64> {
    let mut points = study.points.iter().filter(|point| !point.runs.is_empty());
    let point = points.find(|point| name_of(point) == change.point)?;
    change.metric.of(point)
}

/// What measuring between the revisions of changes has found, by [`Finding::key`]; `None` where that
/// can't tell.
pub(super) type Bisections = BTreeMap<String, Option<Narrowed>>;

/// A change of a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The point: its series, with workload and clients.
    pub point: String,
    /// What changed.
    pub metric: Metric,
    /// The last revision before the change that was measured.
    pub last_before: String,
    /// The first one after it.
    pub first_after: String,
    /// The means before and after.
    pub before: f64,
    /// The mean after it.
    pub after: f64,
    /// Of `after / before`: the 95 % interval's ends.
    pub ratio_low: f64,
    /// The interval's upper end.
    pub ratio_high: f64,
    /// The chance of such a difference without a change.
    pub p: f64,
    /// The standard deviation of a revision's value.
    #[serde(default)]
    pub spread: f64,
    /// Whether it is for the better.
    pub is_better: bool,
    /// What measuring between has found.
    #[serde(default)]
    pub narrowed: Option<Narrowed>,
}

/// Where a change is, once it was measured between.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Narrowed {
    /// The last revision that is as before.
    pub last_before: String,
    /// The first one that isn't.
    pub first_after: String,
    /// Whether nothing is between: then that one brought the change.
    pub is_single: bool,
}

impl Finding {
    /// What tells it from others, as long as no revision between is measured.
    pub(super) fn key(&self) -> String {
        format!("{}, {}: {}", self.point, self.metric, self.first_after)
    }

    /// Whether both are of one metric of one point.
    fn is_alike(&self, other: &Self) -> bool {
        self.point == other.point && self.metric == other.metric
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        write!(
            f,
            "{}: {}, {}: {:.4} to {:.4}, {:+.1} % ({:+.1} to {:+.1}), ",
            if self.is_better { "better" } else { "worse" },
            self.point,
            self.metric,
            self.before,
            self.after,
            percent(self.after / self.before),
            percent(self.ratio_low),
            percent(self.ratio_high),
        )?;
        let (before, after) = match &self.narrowed {
            Some(narrowed) if narrowed.is_single => {
                return write!(f, "by {}", short(&narrowed.first_after));
            }
            Some(narrowed) => (&narrowed.last_before, &narrowed.first_after),
            None => (&self.last_before, &self.first_after),
        };
        write!(f, "between {} and {}", short(before), short(after))
    }
}

/// A commit's name as it is written for people.
pub(super) fn short(name: &str) -> &str {
    let is_commit = name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_commit { &name[..12] } else { name }
}

/// Values that a change point may move by, and stay the same.
pub(super) const NEAR: usize = 4;

/// The values of a metric of a point, each with its revision's number.
#[derive(Clone, Debug)]
struct Series {
    point: String,
    metric: Metric,
    values: Vec<(usize, f64)>,
}

/// What `findings.json` has.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    changes: Vec<Finding>,
    failures: Vec<(String, String)>,
    /// Changes that were told, until later values refuted them: they aren't told again.
    #[serde(default)]
    withdrawn: Vec<Finding>,
}

/// All that a history tells.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Changes, in the order of points.
    pub changes: Vec<Finding>,
    /// Revisions of which something came to nothing, and why.
    pub failures: Vec<(String, String)>,
    revisions: Vec<String>,
    series: Vec<Series>,
}

impl Findings {
    pub(super) fn add_failure(&mut self, revision: &str, why: &str) {
        let failure = (revision.to_owned(), why.trim_end().to_owned());
        // A revision's runs fail alike.
        if !self.failures.contains(&failure) {
            self.failures.push(failure);
        }
    }

    /// Adds what was measured of a revision.
    pub(super) fn add(&mut self, revision: &str, study: &Study) {
        self.revisions.push(revision.to_owned());
        for [series, workload, clients, why] in &study.failures {
            self.add_failure(
                revision,
                &format!("{series}, {workload}, {clients} clients: {why}"),
            );
        }
        for point in study.points.iter().filter(|point| !point.runs.is_empty()) {
            let name = name_of(point);
            for metric in Metric::ALL {
                if let Some(value) = metric.of(point) {
                    self.add_value(&name, metric, value);
                }
            }
        }
    }

    fn add_value(&mut self, point: &str, metric: Metric, value: f64) {
        let at = self.revisions.len() - 1;
        let known = self
            .series
            .iter_mut()
            .find(|series| series.point == point && series.metric == metric);
        match known {
            Some(series) => series.values.push((at, value)),
            None => self.series.push(Series {
                point: point.to_owned(),
                metric,
                values: vec![(at, value)],
            }),
        }
    }

    /// Notes what measuring between has found.
    pub(super) fn narrow(&mut self, known: &Bisections) {
        for change in &mut self.changes {
            if let Some(narrowed) = known.get(&change.key()) {
                change.narrowed.clone_from(narrowed);
            }
        }
    }

    pub(super) fn find_changes(&mut self) {
        for series in &self.series {
            let values: Vec<f64> = series.values.iter().map(|(_, value)| *value).collect();
            for change in change_points(&values) {
                let revision = |at: usize| self.revisions[series.values[at].0].clone();
                let rises = change.after > change.before;
                self.changes.push(Finding {
                    point: series.point.clone(),
                    metric: series.metric,
                    last_before: revision(change.at - 1),
                    first_after: revision(change.at),
                    before: change.before,
                    after: change.after,
                    ratio_low: change.ratio.0,
                    ratio_high: change.ratio.1,
                    p: change.p,
                    spread: change.spread,
                    narrowed: None,
                    is_better: rises == (series.metric == Metric::Throughput),
                });
            }
        }
    }

    /// From where to where a change can be: between its neighbours.
    pub(super) fn neighbours(
        &self,
        number: usize,
        place: impl Fn(&str) -> Option<usize>,
        revisions: usize,
    ) -> Range<usize> {
        let own = &self.changes[number];
        let alike = |change: &&Finding| own.is_alike(change);
        let before = self.changes[..number].iter().rev().find(alike);
        let after = self.changes[number + 1..].iter().find(alike);
        let start = before.and_then(|change| place(&change.first_after));
        let end = after.and_then(|change| place(&change.first_after));
        start.unwrap_or(0)..end.unwrap_or(revisions)
    }

    /// Changes that aren't among these.
    pub(super) fn new_changes(&self, known: &[Finding]) -> Vec<&Finding> {
        let is_new = |own: &&Finding| !known.iter().any(|other| self.is_same(own, other));
        self.changes.iter().filter(is_new).collect()
    }

    /// Whether it is the same change: later values may move it a little.
    fn is_same(&self, one: &Finding, other: &Finding) -> bool {
        let series = self
            .series
            .iter()
            .find(|series| series.point == one.point && series.metric == one.metric);
        let place = |change: &Finding| {
            let mut values = series?.values.iter();
            values.position(|(at, _)| self.revisions[*at] == change.first_after)
        };
        let is_near = match (place(one), place(other)) {
            (Some(one), Some(other)) => one.abs_diff(other) <= NEAR,
            _ => one.first_after == other.first_after,
        };
        one.is_alike(other) && is_near
    }

    /// Failures that aren't among these.
    pub(super) fn new_failures(&self, known: &[(String, String)]) -> Vec<&(String, String)> {
        let is_new = |own: &&(String, String)| !known.contains(own);
        self.failures.iter().filter(is_new).collect()
    }

    /// Writes `findings.json` into a history's folder; true if something is in it that wasn't before.
    pub fn keep(&self, folder: &Path) -> Result<bool, Error> {
        let path = folder.join("findings.json");
        let known: Kept = kept::read(&path)?;
        let told = [known.changes, known.withdrawn].concat();
        let has_new =
            !self.new_changes(&told).is_empty() || !self.new_failures(&known.failures).is_empty();
        let is_gone = |one: &Finding| !self.changes.iter().any(|own| self.is_same(own, one));
        let now = Kept {
            changes: self.changes.clone(),
            failures: self.failures.clone(),
            withdrawn: told.into_iter().filter(is_gone).collect(),
        };
        kept::write(&path, &now)?;
        Ok(has_new)
    }

    /// All values: a line for each, of revision, point, metric and value, parted by tabs, below a
    /// heading.
    pub fn values(&self) -> String {
        let mut text = "revision\tpoint\tmetric\tvalue\n".to_owned();
        for Series {
            point,
            metric,
            values,
        } in &self.series
        {
            for (at, value) in values {
                let _ = writeln!(text, "{}\t{point}\t{metric}\t{value}", self.revisions[*at]);
            }
        }
        text
    }

    /// As a test's report: a suite with a case for each point and metric, in which a change for the
    /// worse is a failure, and a case for each revision that came to nothing.
    pub fn junit(&self) -> String {
        let escaped = |text: &str| {
            text.replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;")
                .replace('"', "&quot;")
        };
        let mut cases = String::new();
        let mut failed = 0;
        for series in &self.series {
            let worse: Vec<String> = self
                .changes
                .iter()
                .filter(|change| {
                    change.point == series.point
                        && change.metric == series.metric
                        && !change.is_better
                })
                .map(ToString::to_string)
                .collect();
            let name = format!("{}, {}", series.point, series.metric);
            cases += &format!(
                "  <testcase classname=\"porpoise lab watch\" name=\"{}\">",
                escaped(&name)
            );
            if !worse.is_empty() {
                failed += 1;
                cases += &format!("<failure message=\"{}\"/>", escaped(&worse.join("; ")));
            }
            cases += "</testcase>\n";
        }
        for (revision, why) in &self.failures {
            failed += 1;
            cases += &format!(
                "  <testcase classname=\"porpoise lab watch\" name=\"revision {}\"><error message=\"{}\"/></testcase>\n",
                escaped(revision),
                escaped(why)
            );
        }
        let tests = self.series.len() + self.failures.len();
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"porpoise lab watch\" tests=\"{tests}\" failures=\"{failed}\">\n{cases}</testsuite>\n"
        )
    }

    /// A page: each point's history, with its means between changes.
    pub fn page(&self, title: &str) -> String {
        let body = html! {
            header { h1 { (title) } p { (self.revisions.len()) " revisions, " (self.changes.len()) " changes." } }
            main id="measured" {
                @if !self.changes.is_empty() {
                    h2 { "Changes" }
                    ul { @for change in &self.changes { li { (change) } } }
                }
                @if !self.failures.is_empty() {
                    h2 { "What came to nothing" }
                    ul { @for (revision, why) in &self.failures { li { (short(revision)) ": " (why) } } }
                }
                h2 { "History" }
                div.figures { @for series in &self.series { (self.figure(series)) } }
                h2 { "Revisions" }
                ol { @for revision in &self.revisions { li { code { (revision) } } } }
            }
        };
        document(title, body).into_string()
    }

    fn figure(&self, series: &Series) -> Markup {
        let own =
            |change: &&Finding| change.point == series.point && change.metric == series.metric;
        let mut curves = Vec::new();
        let dots: Vec<(f64, f64)> = series
            .values
            .iter()
            .map(|(at, value)| (*at as f64 + 1.0, *value))
            .collect();
        let mut line = Vec::new();
        let mut from = 0;
        let starts = self
            .changes
            .iter()
            .filter(own)
            .map(|change| &change.first_after);
        let starts = starts.filter_map(|name| {
            series
                .values
                .iter()
                .position(|(at, _)| self.revisions[*at] == **name)
        });
        for to in starts.chain([dots.len()]) {
            let part = &dots[from..to];
            let mean = part.iter().map(|dot| dot.1).sum::<f64>() / part.len().max(1) as f64;
            line.extend(
                [part.first(), part.last()]
                    .into_iter()
                    .flatten()
                    .map(|dot| (dot.0, mean)),
            );
            from = to;
        }
        let changes = self.changes.iter().filter(own).count();
        curves.push(Curve {
            name: series.metric.to_string(),
            line,
            dots,
            intervals: Vec::new(),
        });
        let picture = Picture {
            title: series.point.clone(),
            x: "revision".into(),
            y: series.metric.to_string(),
            panels: vec![Panel {
                title: String::new(),
                curves,
            }],
            columns: 1,
            ..Picture::default()
        };
        let caption = format!(
            "{}, {}: {} revisions as dots, means between {changes} changes as a line.",
            series.point,
            series.metric,
            picture.dots()
        );
        drawn_as(&caption, &picture.svg())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(values: &[f64]) -> Findings {
        let mut findings = Findings::default();
        for (at, value) in values.iter().enumerate() {
            findings.revisions.push(format!("r{at}"));
            findings.add_value("P", Metric::Throughput, *value);
            findings.add_value("P", Metric::LatencyP95, 1000.0 / value);
        }
        findings.find_changes();
        findings
    }

    #[test]
    fn a_change_names_its_revisions_and_whether_it_is_for_the_better() {
        let noise = |at: usize| [0.0, 1.0, -1.0, 0.5][at % 4];
        let values: Vec<f64> = (0..20)
            .map(|at| if at < 12 { 100.0 } else { 90.0 } + noise(at))
            .collect();
        let mut found = findings(&values);
        assert_eq!(found.changes.len(), 2, "{:?}", found.changes);
        for change in &found.changes {
            assert_eq!((&*change.last_before, &*change.first_after), ("r11", "r12"));
            assert!(!change.is_better && found.is_same(change, change));
        }
        let [one, other] = &found.changes[..] else {
            panic!()
        };
        assert!(!found.is_same(one, other));
        let moved = |to: &str| Finding {
            first_after: to.into(),
            ..one.clone()
        };
        assert!(found.is_same(one, &moved("r14")) && !found.is_same(one, &moved("r17")));
        let text = found.changes[0].to_string();
        assert!(
            text.starts_with("worse: P, transactions a second: 100.1")
                && text.ends_with("between r11 and r12"),
            "{text}"
        );
        let folder = tempfile::tempdir().unwrap();
        assert!(found.keep(folder.path()).unwrap(), "it is new");
        assert!(!found.keep(folder.path()).unwrap(), "it was told");
        found.add_failure("r<9", "it & died");
        assert!(found.keep(folder.path()).unwrap(), "a failure is new");
        let junit = found.junit();
        assert!(
            junit.contains("tests=\"3\" failures=\"3\"") && junit.contains("it &amp; died"),
            "{junit}"
        );
        let page = found.page("History");
        assert_eq!(page.matches("<circle").count(), 40);
        assert!(page.contains("r&lt;9"));
    }

    #[test]
    fn a_commit_is_shortened_and_a_name_is_not() {
        assert_eq!(short(&"a1".repeat(20)), "a1a1a1a1a1a1");
        assert_eq!(short("2026-11-24"), "2026-11-24");
    }
}
