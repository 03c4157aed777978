//! Results as a report needs them: read once, in the order of the experiment.

use std::collections::HashMap;

use crate::machine::Fact;
use crate::statistics::Summary;
use crate::{Error, Histogram, MeasuredKind, Results};

/// All that is known of an experiment.
pub(crate) struct Study {
    pub title: String,
    pub seed: u64,
    pub runs_a_point: u64,
    pub seconds: f64,
    pub baseline: Option<String>,
    /// Names and contents; the experiment's own is the first.
    pub files: Vec<(String, String)>,
    pub points: Vec<StudiedPoint>,
    /// Of the last session: who they are about, and what they say.
    pub facts: Vec<(String, Vec<Fact>)>,
    pub planned: u64,
    /// What came to nothing: series, workload, clients, and why.
    pub failures: Vec<[String; 4]>,
}

/// A point with what its runs came to.
pub(crate) struct StudiedPoint {
    pub series: String,
    pub workload: String,
    pub clients: u64,
    pub rate: Option<f64>,
    pub runs: Vec<StudiedRun>,
}

/// A run that is done.
pub(crate) struct StudiedRun {
    pub per_second: f64,
    pub transactions: u64,
    pub conflicts: u64,
    /// Unknown of some.
    pub is_stationary: Option<bool>,
    pub warm_up_seconds: f64,
    pub latencies: Histogram,
    pub kinds: Vec<MeasuredKind>,
    /// The workload's own, by name.
    pub figures: Vec<(String, f64)>,
    /// Processor time, of server and clients.
    pub server_seconds: Option<f64>,
    pub client_seconds: f64,
    pub server_switches: Option<u64>,
    pub server_memory: Option<u64>,
    /// When each second ended, and its throughput.
    pub seconds: Vec<(f64, f64)>,
}

impl Study {
    pub(crate) fn read(results: &Results) -> Result<Self, Error> {
        let failed = |error: porpoise::Error| Error::Results(error.message().to_owned());
        let rows = results
            .query("SELECT title, seed, runs_a_point, seconds, baseline FROM lab.experiment")?;
        let row = rows.get(0);
        let row = row.ok_or_else(|| Error::Results("the results name no experiment".into()))?;
        let mut study = Self {
            title: row.get(0).map_err(failed)?,
            seed: row.get(1).map_err(failed)?,
            runs_a_point: row.get(2).map_err(failed)?,
            seconds: row.get(3).map_err(failed)?,
            baseline: row.get(4).map_err(failed)?,
            files: Vec::new(),
            points: Vec::new(),
            facts: Vec::new(),
            planned: 0,
            failures: Vec::new(),
        };
        let files = results.query("SELECT name, content FROM lab.files ORDER BY number")?;
        for row in files.to_text() {
            if let [name, content] = &row[..] {
                study.files.push((name.clone(), content.clone()));
            }
        }
        study.read_points(results).map_err(|error| match error {
            Read::Store(error) => error,
            Read::Value(error) => failed(error),
        })?;
        study.read_facts(results)?;
        let failures = results.query(
            "SELECT p.series, p.workload, p.clients, r.failure FROM lab.runs r JOIN lab.points p ON p.id = r.point
             WHERE r.state = 'failed' ORDER BY r.id",
        )?;
        let failures = failures.to_text().into_iter();
        study.failures = failures.filter_map(|row| row.try_into().ok()).collect();
        study.planned = results.counts()?.planned;
        Ok(study)
    }

    fn read_points(&mut self, results: &Results) -> Result<(), Read> {
        let points =
            results.query("SELECT series, workload, clients, rate FROM lab.points ORDER BY id")?;
        for row in &points {
            self.points.push(StudiedPoint {
                series: row.get(0)?,
                workload: row.get(1)?,
                clients: row.get(2)?,
                rate: row.get(3)?,
                runs: Vec::new(),
            });
        }
        let mut seconds = Vec::new();
        for row in &results.query(
            "SELECT run, at, transactions_per_second FROM lab.seconds ORDER BY run, second",
        )? {
            seconds.push((row.get::<u32>(0)?, (row.get(1)?, row.get(2)?)));
        }
        let mut kinds = kinds_of_runs(results)?;
        let mut figures = figures_of_runs(results)?;
        let runs = results.query(
            "SELECT point, id, transactions_per_second, transactions, conflicts, stationary, warm_up_seconds, latencies,
                    server_user_seconds + server_system_seconds, client_user_seconds + client_system_seconds,
                    server_voluntary_switches + server_involuntary_switches, server_memory_bytes
             FROM lab.runs WHERE state = 'done' ORDER BY point, repetition",
        )?;
        for row in &runs {
            let (point, id): (u64, u32) = (row.get(0)?, row.get(1)?);
            let first = seconds.partition_point(|(run, _)| *run < id);
            let own = seconds[first..].iter().take_while(|(run, _)| *run == id);
            let run = StudiedRun {
                per_second: row.get(2)?,
                transactions: row.get(3)?,
                conflicts: row.get(4)?,
                is_stationary: row.get::<Option<u8>>(5)?.map(|stationary| stationary != 0),
                warm_up_seconds: row.get(6)?,
                latencies: Histogram::from_bytes(row.get(7)?).unwrap_or_default(),
                kinds: kinds.remove(&id).unwrap_or_default(),
                figures: figures.remove(&id).unwrap_or_default(),
                server_seconds: row.get(8)?,
                client_seconds: row.get(9)?,
                server_switches: row.get(10)?,
                server_memory: row.get(11)?,
                seconds: own.map(|(_, second)| *second).collect(),
            };
            if let Some(point) = self.points.get_mut(point as usize) {
                point.runs.push(run);
            }
        }
        Ok(())
    }

    fn read_facts(&mut self, results: &Results) -> Result<(), Error> {
        let facts = results.query(
            "SELECT subject, name, value FROM lab.facts WHERE session = (SELECT MAX(session) FROM lab.facts)
             ORDER BY subject = 'machine' DESC, subject, name",
        )?;
        for row in facts.to_text() {
            let [subject, name, value] = &row[..] else {
                continue;
            };
            if self.facts.last().is_none_or(|(last, _)| last != subject) {
                self.facts.push((subject.clone(), Vec::new()));
            }
            if let Some((_, facts)) = self.facts.last_mut() {
                facts.push((name.clone(), value.clone()));
            }
        }
        Ok(())
    }

    /// The workloads that were measured, in order.
    pub(crate) fn workloads(&self) -> Vec<&str> {
        distinct(self.points.iter().map(|point| point.workload.as_str()))
    }

    /// Whether some run of a workload is done.
    pub(crate) fn has_runs(&self, workload: &str) -> bool {
        let mut points = self.points.iter();
        points.any(|point| point.workload == workload && !point.runs.is_empty())
    }

    /// The series of a workload, in order; the baseline is the first.
    pub(crate) fn series(&self, workload: &str) -> Vec<&str> {
        let own = self
            .points
            .iter()
            .filter(|point| point.workload == workload);
        let mut series = distinct(own.map(|point| point.series.as_str()));
        if let Some(at) = series
            .iter()
            .position(|name| Some(*name) == self.baseline.as_deref())
        {
            series[..=at].rotate_right(1);
        }
        series
    }

    /// The numbers of clients of a workload.
    pub(crate) fn clients(&self, workload: &str) -> Vec<u64> {
        let own = self
            .points
            .iter()
            .filter(|point| point.workload == workload);
        let mut clients: Vec<u64> = own.map(|point| point.clients).collect();
        clients.sort_unstable();
        clients.dedup();
        clients
    }

    /// A point that has runs.
    pub(crate) fn point(
        &self,
        workload: &str,
        series: &str,
        clients: u64,
    ) -> Option<&StudiedPoint> {
        let mut points = self.points.iter().filter(|point| !point.runs.is_empty());
        points.find(|point| {
            point.workload == workload && point.series == series && point.clients == clients
        })
    }
}

fn kinds_of_runs(results: &Results) -> Result<HashMap<u32, Vec<MeasuredKind>>, Read> {
    let mut kinds: HashMap<u32, Vec<MeasuredKind>> = HashMap::new();
    for row in &results
        .query("SELECT run, name, conflicts, latencies FROM lab.kinds ORDER BY run, number")?
    {
        kinds.entry(row.get(0)?).or_default().push(MeasuredKind {
            name: row.get(1)?,
            conflicts: row.get(2)?,
            latencies: Histogram::from_bytes(row.get(3)?).unwrap_or_default(),
        });
    }
    Ok(kinds)
}

fn figures_of_runs(results: &Results) -> Result<HashMap<u32, Vec<(String, f64)>>, Read> {
    let mut figures: HashMap<u32, Vec<(String, f64)>> = HashMap::new();
    for row in &results.query("SELECT run, name, value FROM lab.figures ORDER BY run, name")? {
        let figure = (row.get(1)?, row.get(2)?);
        figures.entry(row.get(0)?).or_default().push(figure);
    }
    Ok(figures)
}

impl StudiedPoint {
    /// Transactions a second of each run.
    pub(crate) fn throughputs(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.per_second).collect()
    }

    pub(crate) fn summary(&self) -> Summary {
        Summary::of(&self.throughputs()).unwrap_or_default()
    }

    /// A figure of each run that has it.
    pub(crate) fn figures(&self, name: &str) -> Vec<f64> {
        let figures = self.runs.iter().flat_map(|run| &run.figures);
        let of_name = figures.filter(|(known, _)| known == name);
        of_name.map(|(_, value)| *value).collect()
    }

    /// Each kind of transaction, of all runs.
    pub(crate) fn kinds(&self) -> Vec<MeasuredKind> {
        let mut all: Vec<MeasuredKind> = Vec::new();
        for kind in self.runs.iter().flat_map(|run| &run.kinds) {
            match all.iter_mut().find(|known| known.name == kind.name) {
                Some(known) => {
                    known.conflicts += kind.conflicts;
                    known.latencies.merge(&kind.latencies);
                }
                None => all.push(kind.clone()),
            }
        }
        all
    }

    /// Latencies of all runs.
    pub(crate) fn latencies(&self) -> Histogram {
        let mut all = Histogram::default();
        for run in &self.runs {
            all.merge(&run.latencies);
        }
        all
    }
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut distinct = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}

/// Why reading failed.
enum Read {
    Store(Error),
    Value(porpoise::Error),
}

impl From<Error> for Read {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<porpoise::Error> for Read {
    fn from(error: porpoise::Error) -> Self {
        Self::Value(error)
    }
}
