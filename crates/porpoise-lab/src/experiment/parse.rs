//! Experiment files. What is wrong with one is told with its line.
//!
//! The file is read into the `…Entry` types, which have its keys and refuse others; then the entries
//! are checked together and become an [`Experiment`].

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::workloads::{Reader, WorkloadEntry};
use super::{
    Affinity, Experiment, Point, ServerKind, ServerSpec, WarmUp, Way, WorkloadKind, WorkloadSpec,
};
use crate::bench::CLIENTS_MAX;
use crate::custom::{Complaint, CustomWorkload};
use crate::resources::parse_cpus;
use crate::runner::{commit_of, is_program};
use crate::{Mode, Table};

/// The longest that anything in an experiment may take.
const SECONDS_MAX: f64 = 24.0 * 3600.0;
const POINTS_MAX: usize = 100_000;
/// The most runs of a point, and of all points together.
const RUNS_MAX: u32 = 10_000;
const ALL_RUNS_MAX: usize = 1_000_000;
const TABLES_MAX: u32 = 1_000;
/// What the column of their ids holds.
const ROWS_MAX: u64 = i32::MAX as u64;
/// Characters of a name: a series has those of a server and of an affinity.
const NAME_MAX: usize = 100;
const TITLE_MAX: usize = 200;
/// What the results have facts of beside servers.
const SUBJECTS: [&str; 2] = ["machine", "program"];
/// Transactions that begin a second.
const RATES: std::ops::RangeInclusive<f64> = 0.001..=1e9;

/// What is wrong with an experiment's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1; none if it is about the whole.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// The line's text.
    pub text: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match self.line {
            None => write!(f, ": {}", self.what),
            Some(line) => write!(f, ", line {line}: {}\n    {}", self.what, self.text.trim()),
        }
    }
}

impl std::error::Error for FileError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: Option<Spanned<String>>,
    baseline: Option<Spanned<String>>,
    #[serde(default = "default_runs")]
    runs: Spanned<u32>,
    #[serde(default = "default_seconds")]
    seconds: Spanned<f64>,
    #[serde(default)]
    warm_up: Option<Spanned<WarmUpEntry>>,
    #[serde(default = "one")]
    seed: u64,
    #[serde(default)]
    statements: StatementsEntry,
    threads: Option<Spanned<usize>>,
    #[serde(default)]
    data: DataEntry,
    servers: Spanned<Vec<Spanned<ServerEntry>>>,
    ways: Option<Vec<Spanned<String>>>,
    workloads: Spanned<Vec<Spanned<WorkloadEntry>>>,
    clients: Spanned<Vec<Spanned<usize>>>,
    #[serde(default)]
    rates: Vec<Spanned<f64>>,
    #[serde(default)]
    affinities: Vec<Spanned<AffinityEntry>>,
}

fn default_runs() -> Spanned<u32> {
    Spanned::new(0..0, 5)
}

fn default_seconds() -> Spanned<f64> {
    Spanned::new(0..0, 10.0)
}

fn one() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WarmUpEntry {
    #[serde(default = "min_seconds")]
    min_seconds: f64,
    #[serde(default = "max_seconds")]
    max_seconds: f64,
}

fn min_seconds() -> f64 {
    2.0
}

fn max_seconds() -> f64 {
    30.0
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum StatementsEntry {
    #[default]
    Prepared,
    Text,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DataEntry {
    #[serde(default = "one_table")]
    tables: Spanned<u32>,
    #[serde(default = "many_rows")]
    rows: Spanned<u64>,
}

fn one_table() -> Spanned<u32> {
    Spanned::new(0..0, 1)
}

fn many_rows() -> Spanned<u64> {
    Spanned::new(0..0, 100_000)
}

impl Default for DataEntry {
    fn default() -> Self {
        Self {
            tables: one_table(),
            rows: many_rows(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerEntry {
    name: Spanned<String>,
    kind: Option<Spanned<String>>,
    program: Option<Spanned<PathBuf>>,
    revision: Option<Spanned<String>>,
    repository: Option<Spanned<PathBuf>>,
    url: Option<Spanned<String>>,
    #[serde(default)]
    options: Vec<String>,
    ways: Option<Vec<Spanned<String>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AffinityEntry {
    name: Spanned<String>,
    server: Option<Spanned<String>>,
    clients: Option<Spanned<String>>,
}

/// Reads an experiment.
pub(super) fn read(path: &Path) -> Result<Experiment, FileError> {
    let whole = |what: String| FileError {
        path: path.to_owned(),
        line: None,
        what,
        text: String::new(),
    };
    let text = std::fs::read_to_string(path).map_err(|error| whole(error.to_string()))?;
    let at = |what: String, span: Option<Range<usize>>| {
        let Some(span) = span.filter(|span| !span.is_empty()) else {
            return whole(what);
        };
        let line = text[..span.start.min(text.len())].matches('\n').count();
        FileError {
            path: path.to_owned(),
            line: Some(line + 1),
            what,
            text: text.lines().nth(line).unwrap_or_default().to_owned(),
        }
    };
    let file: File = toml::from_str(&text).map_err(|error| {
        if CustomWorkload::parse(&text).is_ok() {
            let what = "it is a workload's file, which an experiment names among its 'workloads'";
            return whole(what.into());
        }
        at(in_words(error.message()), place_of(&error, &text))
    })?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let read = Reading {
        folder,
        file: (path.display().to_string(), text.clone()),
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    read.experiment(file, &stem)
        .map_err(|(what, span)| at(what, Some(span)))
}

/// Where a file is wrong; `None` if it is about the whole. Where something is missing, the place is
/// behind what comes before.
pub(crate) fn place_of(error: &toml::de::Error, text: &str) -> Option<Range<usize>> {
    let span = error.span()?;
    if !span.is_empty() {
        return Some(span);
    }
    let before = text.get(..span.start)?.trim_end().len();
    (before > 0).then_some(before..before + 1)
}

/// What serde says of a number that is none: without the types of a language.
pub(crate) fn in_words(message: &str) -> String {
    let numbers = [
        ("expected usize", "expected a number from 0"),
        ("expected u64", "expected a number from 0"),
        ("expected u32", "expected a number from 0 to 4294967295"),
        ("expected f64", "expected a number"),
    ];
    let words = |message: String, (of_rust, words)| message.replace(of_rust, words);
    numbers.into_iter().fold(message.to_owned(), words)
}

/// Whether the results' tables take two names for one.
fn is_same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

fn is_short(name: &str, most: usize, span: Range<usize>) -> Result<(), Complaint> {
    match name.chars().count() > most {
        true => Err((format!("a name has at most {most} characters"), span)),
        false => Ok(()),
    }
}

struct Reading<'a> {
    folder: &'a Path,
    /// The experiment's own name and text.
    file: (String, String),
}

impl Reading<'_> {
    fn experiment(self, file: File, stem: &str) -> Result<Experiment, Complaint> {
        let seconds = file.seconds.span();
        let duration = time(*file.seconds.get_ref(), "seconds", &seconds)?;
        if duration.is_zero() {
            return Err(("a run takes more than 0 seconds".into(), seconds));
        }
        if !(1..=RUNS_MAX).contains(file.runs.get_ref()) {
            let what = format!("a point has 1 to {RUNS_MAX} runs");
            return Err((what, file.runs.span()));
        }
        if let Some(threads) = &file.threads
            && *threads.get_ref() == 0
        {
            return Err(("clients need at least 1 thread".into(), threads.span()));
        }
        if let Some(title) = &file.title {
            is_short(title.get_ref(), TITLE_MAX, title.span())?;
        }
        let mut reader = Reader {
            folder: self.folder,
            seed: file.seed,
            files: vec![self.file.clone()],
        };
        let mut workloads: Vec<WorkloadSpec> = Vec::new();
        for entry in file.workloads.get_ref() {
            let workload = reader.workload(entry)?;
            is_short(&workload.name, NAME_MAX, entry.span())?;
            if workloads
                .iter()
                .any(|known| is_same(&known.name, &workload.name))
            {
                let what = format!(
                    "two workloads have the name '{}': give one a 'name'",
                    workload.name
                );
                return Err((what, entry.span()));
            }
            workloads.push(workload);
        }
        let servers = file.servers.get_ref();
        let mut specs = Vec::new();
        for server in servers {
            specs.push(self.server(server)?);
            let name = server.get_ref().name.get_ref();
            if specs
                .iter()
                .filter(|spec| is_same(&spec.name, name))
                .count()
                > 1
            {
                let what = format!("two servers have the name '{name}'");
                return Err((what, server.get_ref().name.span()));
            }
        }
        let (tables, rows) = (*file.data.tables.get_ref(), *file.data.rows.get_ref());
        if !(1..=TABLES_MAX).contains(&tables) {
            let what = format!("'tables' is a number from 1 to {TABLES_MAX}");
            return Err((what, file.data.tables.span()));
        }
        if !(1..=ROWS_MAX).contains(&rows) {
            let what = format!("'rows' is a number from 1 to {ROWS_MAX}");
            return Err((what, file.data.rows.span()));
        }
        let mut experiment = Experiment {
            title: match &file.title {
                Some(title) => title.get_ref().clone(),
                None => stem.chars().take(TITLE_MAX).collect(),
            },
            files: reader.files,
            servers: specs,
            workloads,
            points: Vec::new(),
            runs: *file.runs.get_ref(),
            duration,
            warm_up: warm_up(&file)?,
            seed: file.seed,
            mode: match file.statements {
                StatementsEntry::Prepared => Mode::Prepared,
                StatementsEntry::Text => Mode::Text,
            },
            jobs: file.threads.as_ref().map(|threads| *threads.get_ref()),
            tables: (1..=tables).map(|number| Table { number, rows }).collect(),
            baseline: None,
        };
        experiment.points = points(&file, &experiment)?;
        if let Some(baseline) = &file.baseline {
            let series = experiment
                .points
                .iter()
                .map(|point| experiment.series(point));
            let series: BTreeSet<String> = series.collect();
            if !series.contains(baseline.get_ref()) {
                let names: Vec<String> = series.into_iter().collect();
                let what = format!("the baseline is one of: {}", names.join("; "));
                return Err((what, baseline.span()));
            }
            experiment.baseline = Some(baseline.get_ref().clone());
        }
        Ok(experiment)
    }

    fn server(&self, entry: &Spanned<ServerEntry>) -> Result<ServerSpec, Complaint> {
        let server = entry.get_ref();
        let name = &server.name;
        is_short(name.get_ref(), NAME_MAX, name.span())?;
        if name.get_ref().trim().is_empty() {
            return Err(("a server has a name".into(), name.span()));
        }
        if let Some(subject) = SUBJECTS
            .iter()
            .find(|subject| is_same(subject, name.get_ref()))
        {
            let what = format!("'{subject}' is no server's name: results have facts of it");
            return Err((what, name.span()));
        }
        let sole = |given: bool, key: &str, kind: &str, span: Range<usize>| match given {
            true => Err((format!("'{key}' is for servers of the kind '{kind}'"), span)),
            false => Ok(()),
        };
        let kind = match &server.kind {
            Some(kind) => kind.get_ref().as_str(),
            None if server.url.is_some() => "url",
            None => "porpoise",
        };
        if kind != "porpoise" {
            for (key, span) in [
                ("program", server.program.as_ref().map(Spanned::span)),
                ("revision", server.revision.as_ref().map(Spanned::span)),
                ("repository", server.repository.as_ref().map(Spanned::span)),
            ] {
                sole(span.is_some(), key, "porpoise", span.unwrap_or_default())?;
            }
        }
        let url = server.url.as_ref();
        if kind != "url" {
            sole(
                url.is_some(),
                "url",
                "url",
                url.map(Spanned::span).unwrap_or_default(),
            )?;
        }
        let kind = match kind {
            "porpoise" => match (&server.program, &server.revision) {
                (Some(_), Some(revision)) => {
                    let what = "a server has a program or a revision, not both";
                    return Err((what.into(), revision.span()));
                }
                (Some(program), None) => {
                    let path = self.folder.join(program.get_ref());
                    if !is_program(&path) {
                        let what = format!("there is no program at {}", path.display());
                        return Err((what, program.span()));
                    }
                    ServerKind::Porpoise(Some(path))
                }
                (None, Some(revision)) => {
                    let repository = match &server.repository {
                        Some(repository) => self.folder.join(repository.get_ref()),
                        None => self.folder.to_owned(),
                    };
                    let known = commit_of(revision.get_ref(), &repository);
                    known.map_err(|error| (error.to_string(), revision.span()))?;
                    let revision = revision.get_ref().clone();
                    ServerKind::Revision {
                        revision,
                        repository,
                    }
                }
                (None, None) => ServerKind::Porpoise(None),
            },
            "mariadb" => ServerKind::MariaDb,
            "url" => {
                let Some(url) = url else {
                    return Err((
                        "a server that runs already needs a 'url'".into(),
                        entry.span(),
                    ));
                };
                let parsed: Result<porpoise_client::Options, _> = url.get_ref().parse();
                if let Err(error) = parsed {
                    return Err((error.to_string(), url.span()));
                }
                if !server.options.is_empty() {
                    let what = "a server that runs already takes no options";
                    return Err((what.into(), entry.span()));
                }
                ServerKind::Url(url.get_ref().clone())
            }
            other => {
                let what = format!("unknown kind '{other}': it is one of porpoise, mariadb, url");
                let span = server.kind.as_ref().map(Spanned::span);
                return Err((what, span.unwrap_or_default()));
            }
        };
        Ok(ServerSpec {
            name: server.name.get_ref().clone(),
            kind,
            options: server.options.clone(),
        })
    }
}

fn time(seconds: f64, what: &str, span: &Range<usize>) -> Result<Duration, Complaint> {
    if !(0.0..=SECONDS_MAX).contains(&seconds) {
        return Err((
            format!("'{what}' is a number from 0 to a day's 86400"),
            span.clone(),
        ));
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn warm_up(file: &File) -> Result<WarmUp, Complaint> {
    let Some(entry) = &file.warm_up else {
        return Ok(WarmUp {
            min: Duration::from_secs_f64(min_seconds()),
            max: Duration::from_secs_f64(max_seconds()),
        });
    };
    let span = entry.span();
    let min = time(entry.get_ref().min_seconds, "min_seconds", &span)?;
    let max = time(entry.get_ref().max_seconds, "max_seconds", &span)?;
    if min > max {
        return Err(("'min_seconds' is above 'max_seconds'".into(), span));
    }
    Ok(WarmUp { min, max })
}

fn way(name: &Spanned<String>) -> Result<Way, Complaint> {
    let known = Way::ALL.into_iter().find(|way| way.key() == name.get_ref());
    known.ok_or_else(|| {
        let what = format!(
            "unknown way in '{}': it is one of {}",
            name.get_ref(),
            Way::ALL.map(Way::key).join(", ")
        );
        (what, name.span())
    })
}

/// Why a server can't be reached in this way, if it can't.
fn is_impossible(server: &ServerSpec, way: Way, jobs: Option<usize>) -> Option<String> {
    let name = &server.name;
    match (&server.kind, way) {
        (ServerKind::MariaDb, _) if !way.is_of_mariadb() => Some(format!(
            "{name} is a MariaDB, which has no {way}: give it 'ways' of its own"
        )),
        (ServerKind::Porpoise(None), Way::Embedded) if jobs.is_some() => Some(format!(
            "embedded, statements run on the thread that sends them: without 'threads', or give {name} 'ways' without it"
        )),
        (ServerKind::Porpoise(None), _) => None,
        (_, Way::Embedded) => Some(format!(
            "embedded is this program's own database, which {name} is not: give it 'ways' of its own"
        )),
        (ServerKind::Url(url), Way::Unix | Way::SharedMemory) if !url.contains("socket=") => Some(
            format!("the URL of {name} names no socket, which {way} needs"),
        ),
        _ => None,
    }
}

/// Why a workload can't have this way in, if it can't.
fn has_no_way(workload: &WorkloadSpec, way: Way) -> Option<String> {
    let name = &workload.name;
    let script = match &workload.kind {
        WorkloadKind::Oltp(_) => return None,
        WorkloadKind::Scenario(scenario) => {
            let why = scenario.0.has_no_way(way)?;
            return Some(format!("{name}, {way}: {why}"));
        }
        WorkloadKind::Sysbench(script) => script,
    };
    match way {
        Way::Tcp | Way::Unix => None,
        Way::Embedded => Some(format!(
            "{name} is another program, which has nothing embedded"
        )),
        Way::Tls | Way::FullTls | Way::Zlib | Way::Zstd => Some(format!(
            "{name} is another program, whose client library neither encrypts nor compresses here"
        )),
        // Another library would come by a socket, and be measured as what it isn't.
        _ if script.has_library_of_porpoise() => None,
        _ => Some(format!(
            "{name} comes by {way} with Porpoise's libmariadb.so.3: give its folder as 'library'"
        )),
    }
}

/// Every combination.
fn points(file: &File, experiment: &Experiment) -> Result<Vec<Point>, Complaint> {
    let affinities = affinities(file)?;
    let rates = rates(file, experiment)?;
    for clients in file.clients.get_ref() {
        if !(1..=CLIENTS_MAX).contains(clients.get_ref()) {
            let what = format!("a number of clients is from 1 to {CLIENTS_MAX}");
            return Err((what, clients.span()));
        }
    }
    only_once(file.clients.get_ref())?;
    for workload in &experiment.workloads {
        if let (Some(threads), Some(why)) = (&file.threads, workload.needs_threads()) {
            return Err((format!("{}: {why}", workload.name), threads.span()));
        }
    }
    let mut points = Vec::new();
    for (server, entry) in file.servers.get_ref().iter().enumerate() {
        let spec = &experiment.servers[server];
        let named = entry.get_ref().ways.as_ref().or(file.ways.as_ref());
        let Some(named) = named.filter(|named| !named.is_empty()) else {
            let what = format!(
                "{} has no 'ways', and there are none for all servers",
                spec.name
            );
            return Err((what, entry.span()));
        };
        only_once(named)?;
        for name in named {
            let way = way(name)?;
            if let Some(why) = is_impossible(spec, way, experiment.jobs) {
                return Err((why, name.span()));
            }
            let pinned = file.affinities.iter().find_map(|affinity| {
                let server = affinity.get_ref().server.as_ref()?;
                (way == Way::Embedded).then(|| server.span())
            });
            if let Some(span) = pinned {
                let what = format!(
                    "embedded has no server to give CPUs to: give {} 'ways' without it, or the affinity no 'server'",
                    spec.name
                );
                return Err((what, span));
            }
            for (workload, of) in experiment.workloads.iter().enumerate() {
                if let Some(why) = has_no_way(of, way) {
                    return Err((why, name.span()));
                }
                for clients in file.clients.get_ref() {
                    for affinity in &affinities {
                        for &rate in &rates {
                            points.push(Point {
                                server,
                                way,
                                workload,
                                clients: *clients.get_ref(),
                                affinity: affinity.clone(),
                                rate,
                            });
                        }
                    }
                }
            }
        }
    }
    match points.len() {
        0 => {
            let lists = [
                (
                    file.servers.get_ref().is_empty(),
                    "servers",
                    file.servers.span(),
                ),
                (
                    file.workloads.get_ref().is_empty(),
                    "workloads",
                    file.workloads.span(),
                ),
            ];
            let empty = lists.into_iter().find(|(is_empty, ..)| *is_empty);
            let (_, name, span) = empty.unwrap_or((true, "clients", file.clients.span()));
            Err((
                format!("'{name}' is empty: there is nothing to measure"),
                span,
            ))
        }
        many if many > POINTS_MAX => {
            Err((format!("{many} points are too many"), file.clients.span()))
        }
        many if many * *file.runs.get_ref() as usize > ALL_RUNS_MAX => {
            let what = format!("{many} points have at most {ALL_RUNS_MAX} runs together");
            Err((what, file.runs.span()))
        }
        _ => Ok(points),
    }
}

/// Refuses what a list has twice: it would be one point of the report, measured more often.
fn only_once<T: PartialEq + fmt::Display>(list: &[Spanned<T>]) -> Result<(), Complaint> {
    for (at, entry) in list.iter().enumerate() {
        let before = list[..at].iter();
        if before
            .map(Spanned::get_ref)
            .any(|one| one == entry.get_ref())
        {
            return Err((format!("{} is there twice", entry.get_ref()), entry.span()));
        }
    }
    Ok(())
}

fn rates(file: &File, experiment: &Experiment) -> Result<Vec<Option<f64>>, Complaint> {
    let mut rates = Vec::new();
    for rate in &file.rates {
        if !RATES.contains(rate.get_ref()) {
            let (least, most) = (RATES.start(), RATES.end());
            let what = format!("a rate is a number from {least} to {most}");
            return Err((what, rate.span()));
        }
        if experiment.jobs.is_some() {
            let what = "with 'rates' each client waits for its time, on a thread of its own: without 'threads'";
            return Err((what.into(), rate.span()));
        }
        let has_pauses = |workload: &&WorkloadSpec| match &workload.kind {
            WorkloadKind::Scenario(scenario) => scenario.0.has_pauses(),
            _ => false,
        };
        if let Some(workload) = experiment.workloads.iter().find(has_pauses) {
            let what = format!(
                "the clients of {} wait for times of their own: without 'rates'",
                workload.name
            );
            return Err((what, rate.span()));
        }
        rates.push(Some(*rate.get_ref()));
    }
    only_once(&file.rates)?;
    if rates.is_empty() {
        rates.push(None);
    }
    Ok(rates)
}

fn affinities(file: &File) -> Result<Vec<Option<Affinity>>, Complaint> {
    let mut affinities: Vec<Option<Affinity>> = Vec::new();
    for entry in &file.affinities {
        let name = entry.get_ref().name.get_ref();
        let span = entry.get_ref().name.span();
        is_short(name, NAME_MAX, span.clone())?;
        if affinities
            .iter()
            .flatten()
            .any(|other| is_same(&other.name, name))
        {
            return Err((format!("two affinities have the name '{name}'"), span));
        }
        let cpus = |list: &Option<Spanned<String>>| match list {
            None => Ok(Vec::new()),
            Some(list) => {
                let cpus = parse_cpus(list.get_ref()).map_err(|what| (what, list.span()))?;
                let there_are = crate::machine::online_cpus();
                match cpus.iter().find(|cpu| !there_are.contains(cpu)) {
                    Some(cpu) => {
                        let what = format!("this machine has no CPU {cpu}: it has {there_are:?}");
                        Err((what, list.span()))
                    }
                    None => Ok(cpus),
                }
            }
        };
        affinities.push(Some(Affinity {
            name: name.clone(),
            server: cpus(&entry.get_ref().server)?,
            clients: cpus(&entry.get_ref().clients)?,
        }));
    }
    if affinities.is_empty() {
        affinities.push(None);
    }
    Ok(affinities)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAYS: &str = r#"title = "Ways in"
runs = 3
seconds = 0.5
ways = ["tcp", "unix"]
workloads = ["oltp_point_select", "shop.toml"]
clients = [1, 8]

[[servers]]
name = "Porpoise"
ways = ["shm", "embedded"]

[[servers]]
name = "MariaDB"
kind = "mariadb"
"#;

    const SHOP: &str = "[[transactions]]\nname = 'one'\nstatements = ['SELECT 1']\n";

    fn parsed(text: &str) -> Result<Experiment, FileError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ways.toml");
        std::fs::write(&path, text).unwrap();
        std::fs::write(folder.path().join("shop.toml"), SHOP).unwrap();
        Experiment::read(&path)
    }

    /// What is told of the file with a part replaced, without the file's name.
    fn told(from: &str, to: &str) -> String {
        assert!(WAYS.contains(from), "{from}");
        let error = parsed(&WAYS.replacen(from, to, 1)).unwrap_err();
        let line = error.line.map_or("?".into(), |line| line.to_string());
        format!("{line}: {}", error.what)
    }

    #[test]
    fn a_point_is_every_combination() {
        let experiment = parsed(WAYS).unwrap();
        assert_eq!(experiment.points.len(), 2 * (2 * 2 * 2));
        assert_eq!(experiment.files.len(), 2);
        assert_eq!(experiment.duration, Duration::from_millis(500));
        let series: BTreeSet<_> = experiment
            .points
            .iter()
            .map(|p| experiment.series(p))
            .collect();
        let series: Vec<_> = series.iter().map(String::as_str).collect();
        assert_eq!(
            series,
            [
                "MariaDB TCP",
                "MariaDB Unix socket",
                "Porpoise embedded",
                "Porpoise shared memory"
            ]
        );
    }

    #[test]
    fn every_repetition_has_each_point_once_in_an_order_that_the_seed_gives() {
        let experiment = parsed(WAYS).unwrap();
        let schedule = experiment.schedule();
        assert_eq!(schedule.len(), 3 * experiment.points.len());
        let mut orders = BTreeSet::new();
        for (at, round) in schedule.chunks(experiment.points.len()).enumerate() {
            assert!(round.iter().all(|run| run.repetition as usize == at + 1));
            let order: Vec<usize> = round.iter().map(|run| run.point).collect();
            let all: BTreeSet<usize> = order.iter().copied().collect();
            assert_eq!(all.len(), experiment.points.len());
            orders.insert(order);
        }
        assert_eq!(orders.len(), 3, "each repetition has an order of its own");
        assert_eq!(schedule, parsed(WAYS).unwrap().schedule());
        let other = parsed(&WAYS.replacen("runs", "seed = 2\nruns", 1)).unwrap();
        assert_ne!(schedule, other.schedule());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        assert!(told("seconds = 0.5", "secs = 1").starts_with("3: unknown field `secs`"));
        assert!(told("seconds = 0.5", "seconds = -1").starts_with("3: 'seconds' is a number"));
        assert!(told("runs = 3", "runs = 0").starts_with("2: a point has 1 to 10000 runs"));
        assert!(told("runs = 3", "runs = three").starts_with("2: "));
        assert!(told("runs = 3", "runs = 4294967295").starts_with("2: a point has 1 to 10000"));
        assert!(told("runs = 3", "runs = -1").ends_with("expected a number from 0 to 4294967295"));
        for (data, words) in [
            ("tables = 0", "'tables' is"),
            ("tables = 4000000000", "'tables' is"),
            ("rows = 0", "'rows' is"),
            ("rows = 3000000000", "'rows' is"),
        ] {
            let told = told("[1, 8]", &format!("[1]\n[data]\n{data}"));
            assert!(
                told.starts_with(&format!("8: {words} a number from 1")),
                "{told}"
            );
        }
        assert!(told("\"MariaDB\"", "\" \"").starts_with("13: a server has a name"));
        assert!(told("[1, 8]", "[1, 8, 1]").starts_with("6: 1 is there twice"));
        assert!(told("\"unix\"]", "\"tcp\"]").starts_with("4: tcp is there twice"));
        for rate in ["0", "nan", "1e-300", "1e300"] {
            let told = told("runs = 3", &format!("rates = [5, {rate}]"));
            assert!(
                told.starts_with("2: a rate is a number from 0.001"),
                "{told}"
            );
        }
        assert!(told("runs = 3", "rates = [5.0, 5]").starts_with("2: 5 is there twice"));
        assert!(told("\"MariaDB\"", "\"porpoise\"").starts_with("13: two servers have the name"));
        assert!(told("\"MariaDB\"", "\"machine\"").starts_with("13: 'machine' is no server's"));
        let long = format!("\"{}\"", "é".repeat(101));
        assert!(told("\"MariaDB\"", &long).starts_with("13: a name has at most 100"));
        let affinities = "[1]\n[[affinities]]\nname = 'a'\n[[affinities]]\nname = 'A'";
        let twice = told("[1, 8]", affinities);
        assert!(
            twice.starts_with("10: two affinities have the name 'A'"),
            "{twice}"
        );
        assert!(told("[1, 8]", "[1, 0]").starts_with("6: a number of clients"));
        assert!(told("[1, 8]", "[]").starts_with("6: 'clients' is empty"));
        assert!(
            told("\"oltp_point_select\"", "\"dance\"").starts_with("5: unknown workload 'dance'")
        );
        assert!(told("shop.toml", "missing.toml").starts_with("5: "));
        assert!(told("\"mariadb\"", "\"oracle\"").starts_with("14: unknown kind 'oracle'"));
        assert!(told("\"MariaDB\"", "\"Porpoise\"").starts_with("13: two servers have the name"));
        assert!(
            told("[\"tcp\", \"unix\"]", "[\"tcp\", \"pigeon\"]").starts_with("4: unknown way in")
        );
        let error = parsed(SHOP).unwrap_err();
        assert!(error.what.starts_with("it is a workload's file"), "{error}");
        assert!(told("[\"tcp\", \"unix\"]", "[\"tcp\"").starts_with("4: missing comma"));
        assert!(told("kind = \"mariadb\"\n", "[[servers]]").starts_with("14: "));
        let error = parsed("title = 'nothing'").unwrap_err();
        assert!(error.what.contains("missing field"), "{error}");
    }

    #[test]
    fn impossible_combinations_are_told_with_their_line() {
        assert!(
            told("[\"tcp\", \"unix\"]", "[\"tcp\", \"shm\"]")
                .starts_with("4: MariaDB is a MariaDB, which has no shared memory")
        );
        assert!(
            told("runs = 3", "threads = 2")
                .starts_with("10: embedded, statements run on the thread")
        );
        assert!(
            told(
                "name = \"Porpoise\"",
                "name = \"Porpoise\"\nprogram = \"/bin/sh\""
            )
            .contains("embedded is this program's own")
        );
        assert!(
            told(
                "name = \"Porpoise\"",
                "name = \"Porpoise\"\nrevision = \"no such\""
            )
            .starts_with("10: revision no such:")
        );
        assert!(
            told(
                "clients = [1, 8]",
                "clients = [1, 8]\naffinities = [{ name = \"half\", server = \"0\" }]"
            )
            .starts_with("7: embedded has no server to give CPUs to")
        );
        assert!(
            told(
                "name = \"Porpoise\"",
                "name = \"Porpoise\"\nurl = \"mysql://h/d\""
            )
            .contains("names no socket")
        );
        assert!(
            told("kind = \"mariadb\"", "kind = \"mariadb\"\nprogram = \"x\"")
                .starts_with("15: 'program' is for")
        );
        assert!(
            told("kind = \"mariadb\"", "kind = \"porpoise\"\nprogram = \"x\"")
                .starts_with("15: there is no program")
        );
        assert!(told("kind = \"mariadb\"", "url = \"mysql://h/d\"").contains("names no socket"));
        assert!(
            told("title = \"Ways in\"", "baseline = \"DB\"")
                .starts_with("1: the baseline is one of")
        );
        let cpu = told(
            "clients = [1, 8]",
            "clients = [1]\n[[affinities]]\nname = 'far'\nserver = '4000'",
        );
        assert!(cpu.starts_with("9: this machine has no CPU 4000"), "{cpu}");
        let rates = told(
            "clients = [1, 8]",
            "clients = [1]\nthreads = 1\nrates = [10.0]",
        );
        assert!(rates.starts_with("8: with 'rates'"), "{rates}");
    }

    #[test]
    fn workloads_may_be_tables_whose_keys_are_checked() {
        let list = "[\"oltp_point_select\", \"shop.toml\"]";
        let of = |entry: &str| {
            let text = WAYS.replacen(list, &format!("[{entry}]"), 1);
            parsed(&text.replacen(", \"embedded\"]", "]", 1))
        };
        let told = |entry: &str| of(entry).unwrap_err().what;
        let names = |entry: &str| -> Vec<String> {
            let workloads = of(entry).unwrap().workloads.into_iter();
            workloads.map(|workload| workload.name).collect()
        };
        let tables = "{ tpcc = { warehouses = 2 } }, { tpch = { scale = 0.1 }, name = \"small\" }, { bulk_load = {} }, \
                      { bulk_load = { by = \"load-data\" } }, { file = \"shop.toml\", fresh = true }";
        assert_eq!(
            names(tables),
            ["tpcc", "small", "bulk INSERT", "LOAD DATA", "shop"]
        );
        let embedded = WAYS.replacen(list, "[{ bulk_load = { by = \"load-data\" } }]", 1);
        let embedded = parsed(&embedded).unwrap_err();
        assert!(
            embedded.what.contains("LOAD DATA, embedded: "),
            "{embedded}"
        );
        assert!(told("{ tpcc = {} }, { tpcc = {} }").starts_with("two workloads have the name"));
        assert!(told("{ tpcc = { houses = 2 } }").starts_with("unknown field `houses`"));
        assert!(told("{ tpcc = {}, size = 2 }").starts_with("unknown field `size`"));
        assert!(
            told("{ tpcc = { warehouses = 0 } }").starts_with("'warehouses' is a number from 1")
        );
        assert!(told("{ tpcc = { think_time = -1.0 } }").starts_with("'think_time' is"));
        assert!(told("{ tpch = { scale = 0.0 } }").starts_with("'scale' is a number"));
        assert!(told("{ tpch = {} }").starts_with("missing field `scale`"));
        assert!(told("{ bulk_load = { by = \"hand\" } }").contains("`hand`"));
        assert!(told("{ name = \"nothing\" }").starts_with("a workload is one of file, tpcc"));
        assert!(told("{ tpcc = {}, tpch = { scale = 1.0 } }").starts_with("a workload is one of"));
        assert!(told("7").contains("a workload's name, or a table"));
        let thinks = "workloads = [{ tpcc = { think_time = 1.0 } }]\nrates = [1.0]";
        let error = parsed(&WAYS.replacen(&format!("workloads = {list}"), thinks, 1)).unwrap_err();
        assert!(
            error.what.contains("wait for times of their own"),
            "{error}"
        );
    }

    #[test]
    fn a_script_of_sysbench_has_the_ways_and_options_that_it_can_have() {
        let list = "[\"oltp_point_select\", \"shop.toml\"]";
        let of = |entry: &str| {
            let text = WAYS.replacen(list, &format!("[{entry}]"), 1);
            parsed(&text.replacen("ways = [\"shm\", \"embedded\"]\n", "", 1))
        };
        let script =
            of("{ sysbench = { script = \"oltp_read_write\", options = [\"--tables=2\"] } }");
        assert_eq!(
            script.unwrap().workloads[0].name,
            "sysbench oltp_read_write"
        );
        let told = |entry: &str| of(entry).unwrap_err().to_string();
        let threads = told("{ sysbench = { script = \"a\", options = [\"--threads=2\"] } }");
        assert!(
            threads.contains("line 5: the experiment says this by 'clients'"),
            "{threads}"
        );
        assert!(told("{ sysbench = { script = \"no/script.lua\" } }").contains("no/script.lua: "));
        let library = told("{ sysbench = { script = \"a\", library = \"nowhere\" } }");
        assert!(
            library.contains("there is no libmariadb.so.3 in"),
            "{library}"
        );
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libmariadb.so.3");
        let of_library = format!(
            "{{ sysbench = {{ script = \"a\", library = \"{}\" }} }}",
            folder.path().display()
        );
        let by_memory = |entry: &str| {
            let text = WAYS.replacen(list, &format!("[{entry}]"), 1);
            parsed(&text.replacen(", \"embedded\"]", "]", 1))
        };
        std::fs::write(&library, "of somebody else").unwrap();
        for entry in ["{ sysbench = { script = \"a\" } }", &of_library] {
            let memory = by_memory(entry).unwrap_err().to_string();
            assert!(memory.contains("give its folder as 'library'"), "{memory}");
            assert!(of(entry).is_ok(), "over sockets it may be");
        }
        std::fs::write(&library, "reads PORPOISE_URL of the environment").unwrap();
        assert!(by_memory(&of_library).is_ok());
    }

    #[test]
    fn the_experiments_of_the_repository_can_be_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let mut read = 0;
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            let is_experiment = path
                .extension()
                .is_some_and(|extension| extension == "toml")
                && !std::fs::read_to_string(&path)
                    .unwrap()
                    .contains("[[transactions]]");
            if is_experiment {
                let experiment = Experiment::read(&path).unwrap_or_else(|error| panic!("{error}"));
                assert!(!experiment.points.is_empty());
                read += 1;
            }
        }
        assert!(read >= 5);
    }
}
