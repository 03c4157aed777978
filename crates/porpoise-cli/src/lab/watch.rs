//! `porpoise lab watch`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use clap::Args;
use porpoise_lab::watch::evaluate::{Evaluation, Noise};
use porpoise_lab::watch::{Findings, History, Receiver, Revision, builds_of, revisions_of};
use porpoise_lab::{Experiment, RunOptions};

use super::Failure;
use crate::bench::serving;

#[derive(Args)]
pub struct WatchOptions {
    /// The experiment that is run for each revision; its servers of the kind porpoise are that
    /// revision
    #[arg(required_unless_present = "evaluate")]
    file: Option<PathBuf>,
    /// The folder that keeps the history [default: FILE's name, with .history]
    #[arg(long, value_name = "FOLDER")]
    history: Option<PathBuf>,
    /// The revisions, as git has them: v1.0..main
    #[arg(long, value_name = "A..B", required_unless_present_any = ["builds", "evaluate"])]
    range: Option<String>,
    /// A folder of the repository
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    repository: PathBuf,
    /// Only commits that touch this file or folder of the repository
    #[arg(long, value_name = "PATH")]
    path: Vec<String>,
    /// The programs of this folder instead, in the order of their names
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["range", "path"])]
    builds: Option<PathBuf>,
    /// Have a shell's command make each revision of the range instead of building Porpoise: called in
    /// --repository, with the revision in $REVISION, its last line is a program that takes the options
    /// of 'porpoise serve', or the URL of a server that runs
    #[arg(long, value_name = "COMMAND", requires = "range")]
    command: Option<String>,
    /// Measure each n-th revision only, and the last
    #[arg(long, value_name = "N", default_value = "1")]
    every: NonZeroUsize,
    /// Measure between the revisions of each change until it is known which one brought it
    #[arg(long)]
    bisect: bool,
    /// Write what was found as JUnit's XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write what was found as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the history's values as text, parted by tabs
    #[arg(long, value_name = "FILE")]
    values: Option<PathBuf>,
    /// Measure nothing, but tell what is found of changes of 2, 5 and 10 %, and how many alarms a
    /// year are false, under the noise of such values of one build
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "range", "builds"])]
    evaluate: Option<PathBuf>,
    #[command(flatten)]
    alerts: AlertOptions,
    /// Don't tell what is going on
    #[arg(long)]
    quiet: bool,
}

/// Who is told of what is new.
#[derive(Args)]
struct AlertOptions {
    /// POST what is new as JSON to this URL (also PORPOISE_WEBHOOK, which no list of processes shows)
    #[arg(long, value_name = "URL")]
    webhook: Vec<String>,
    /// Send what is new to this mail address
    #[arg(long, value_name = "ADDRESS", requires = "mail_from")]
    mail_to: Vec<String>,
    /// The address that mails come from
    #[arg(long, value_name = "ADDRESS", requires = "mail_to")]
    mail_from: Option<String>,
    /// The server that takes mails: smtp://HOST, smtp://USER:PASSWORD@HOST:587,
    /// smtps://USER:PASSWORD@HOST (also PORPOISE_SMTP); encrypted where HOST offers it, always so
    /// if a password goes to another machine, and as '?tls=none', '?tls=opportunistic' or
    /// '?tls=required' says
    /// [default: smtp://localhost]
    #[arg(long, value_name = "URL")]
    smtp: Option<String>,
}

impl AlertOptions {
    fn receivers(&self) -> Result<Vec<Receiver>, Failure> {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let webhooks = self.webhook.iter().cloned().chain(set("PORPOISE_WEBHOOK"));
        let mut receivers: Vec<Receiver> = webhooks
            .map(|url| Receiver::webhook(&url))
            .collect::<Result<_, _>>()?;
        if let Some(from) = &self.mail_from {
            let server = self.smtp.clone().or_else(|| set("PORPOISE_SMTP"));
            let server = server.unwrap_or_else(|| "smtp://localhost".into());
            receivers.push(Receiver::mail(&server, from, &self.mail_to)?);
        }
        Ok(receivers)
    }
}

/// Exit code where revisions are left to measure.
const INCOMPLETE: u8 = 2;
/// Exit code where somebody couldn't be told.
const UNDELIVERED: u8 = 4;
/// Exit code where something is found that wasn't told before.
const FOUND: u8 = 3;

pub fn run(options: &WatchOptions) -> Result<ExitCode, Failure> {
    let file = match (&options.evaluate, &options.file) {
        (Some(values), _) => return evaluate(values),
        (None, Some(file)) => file,
        (None, None) => return Err("there is no experiment to run".into()),
    };
    let experiment = Experiment::read(file)?;
    let receivers = options.alerts.receivers()?;
    let revisions = match (&options.builds, &options.range) {
        (Some(folder), _) => builds_of(folder)?,
        (None, Some(range)) => {
            let command = options.command.as_deref();
            revisions_of(&options.repository, range, &options.path, command)?
        }
        (None, None) => Vec::new(),
    };
    if revisions.is_empty() {
        return Err("there are no revisions to measure".into());
    }
    let stop = serving::ends_when_asked()?;
    crate::serve::raise_descriptor_limit(0);
    let stem = Path::new(file.file_stem().unwrap_or_default());
    let folder = options.history.clone();
    let folder = folder.unwrap_or_else(|| stem.with_added_extension("history"));
    let history = History::open(&folder)?;
    let run_options = RunOptions {
        retry_failed: false,
        stop: &stop,
        progress: !options.quiet,
    };
    let last = revisions.len() - 1;
    let chosen = revisions.iter().enumerate();
    let chosen = chosen.filter(|(at, _)| at % options.every.get() == 0 || *at == last);
    let chosen: Vec<&Revision> = chosen.map(|(_, revision)| revision).collect();
    let total = chosen.len();
    history.measure(&experiment, chosen, run_options, |revision, at| {
        if !options.quiet {
            eprintln!("revision {} of {total}: {}", at + 1, revision.name);
        }
    })?;
    let mut findings = history.findings(&revisions)?;
    if options.bisect {
        history.bisect(
            &experiment,
            &revisions,
            &mut findings,
            run_options,
            |revision| {
                if !options.quiet {
                    eprintln!("narrowing: {}", revision.name);
                }
            },
        )?;
    }
    let page = folder.join("history.html");
    write(&page, findings.page(&experiment.title))?;
    if let Some(junit) = &options.junit {
        write(junit, findings.junit())?;
    }
    if let Some(json) = &options.json {
        write(json, findings.json(&experiment.title, &page))?;
    }
    if let Some(values) = &options.values {
        write(values, findings.values())?;
    }
    let is_new = findings.keep(&folder)?;
    tell(&findings, &page);
    let undelivered = findings.alert(&experiment.title, &folder, &page, &receivers)?;
    for (receiver, why) in &undelivered {
        eprintln!("porpoise lab: {receiver}: {why}; it is tried again next time");
    }
    let is_stopped = stop.load(Ordering::Relaxed);
    if is_stopped {
        println!("Stopped before all was measured: the same command goes on.");
    }
    Ok(match (undelivered.is_empty(), is_new, is_stopped) {
        (false, _, _) => ExitCode::from(UNDELIVERED),
        (true, true, _) => ExitCode::from(FOUND),
        (true, false, true) => ExitCode::from(INCOMPLETE),
        (true, false, false) => ExitCode::SUCCESS,
    })
}

fn write(path: &Path, text: String) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// Histories of each kind that are drawn.
const HISTORIES: usize = 100;

fn evaluate(values: &Path) -> Result<ExitCode, Failure> {
    let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", values.display());
    let text = std::fs::read_to_string(values).map_err(|error| failed(&error))?;
    for noise in Noise::parse(&text).map_err(|error| failed(&error))? {
        println!("{}", Evaluation::of(&noise, HISTORIES, 1));
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(findings: &Findings, page: &Path) {
    for change in &findings.changes {
        println!("{change}");
    }
    for (revision, why) in &findings.failures {
        println!("failed: {revision}: {why}");
    }
    let (changes, failures) = (findings.changes.len(), findings.failures.len());
    println!("{}: {changes} changes, {failures} failures", page.display());
}
