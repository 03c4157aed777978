//! `porpoise lab`: experiments that are files, whose results are a database, whose report is a page.

mod affinity;
mod export;
mod fuzz;
mod idle;
mod load;
mod profile;
mod report;
mod run;
mod watch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

#[derive(Args)]
pub struct LabOptions {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run an experiment, or go on with it where it was stopped
    Run(run::RunOptions),
    /// Make a page of the results
    Report(report::ReportOptions),
    /// Write results as CSV, or as sysbench reports
    Export(export::ExportOptions),
    /// Run an experiment for each revision, and find where its figures change
    Watch(watch::WatchOptions),
    /// Sample where the time goes, and what differs between two servers or two ways in
    Profile(profile::ProfileOptions),
    /// Ask random statements, and look whether the answers can be
    Fuzz(fuzz::FuzzOptions),
    /// Find by experiment which CPUs server and clients should have
    Affinity(affinity::AffinityOptions),
    /// List sessions of a server that sleep for long, and end them
    Idle(idle::IdleOptions),
}

type Failure = Box<dyn std::error::Error>;

/// The end of the name of a results folder that nobody has named.
const RESULTS: &str = "lab";

pub fn run(options: &LabOptions) -> ExitCode {
    crate::serve::start_log();
    let done = match &options.command {
        Command::Run(options) => run::run(options),
        Command::Report(options) => report::run(options),
        Command::Export(options) => export::run(options),
        Command::Watch(options) => watch::run(options),
        Command::Affinity(options) => affinity::run(options),
        Command::Profile(options) => profile::run(options),
        Command::Fuzz(options) => fuzz::run(options),
        Command::Idle(options) => idle::run(options),
    };
    match done {
        Ok(code) => code,
        Err(why) => {
            eprintln!("porpoise lab: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Where the results of an experiment's file lie, if nobody says: `ways-in.lab`, in the folder that
/// the program is called in.
fn results_of(file: &Path) -> PathBuf {
    Path::new(file.file_stem().unwrap_or(file.as_os_str())).with_added_extension(RESULTS)
}
