//! `porpoise lab run`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use porpoise_lab::{Error, Experiment, Results, RunCounts, run_experiment};

use super::{Failure, results_of};
use crate::bench::serving;

#[derive(Args)]
pub struct RunOptions {
    /// The experiment's file
    file: PathBuf,
    /// The folder of the results; one that was begun is gone on with [default: FILE's name, with .lab]
    #[arg(long, value_name = "FOLDER")]
    results: Option<PathBuf>,
    /// Do runs again that came to nothing
    #[arg(long)]
    retry_failed: bool,
    /// Don't tell what is going on
    #[arg(long)]
    quiet: bool,
    /// Check the file, and tell how many runs there are and how long they take
    #[arg(long)]
    check: bool,
}

/// Exit code of an experiment of which not all runs are done.
const INCOMPLETE: u8 = 2;

pub fn run(options: &RunOptions) -> Result<ExitCode, Failure> {
    let experiment = Experiment::read(&options.file)?;
    if options.check {
        return Ok(tell(&experiment));
    }
    let stop = serving::ends_when_asked()?;
    // A client over shared memory has four descriptors.
    crate::serve::raise_descriptor_limit(0);
    let folder = options.results.clone();
    let folder = folder.unwrap_or_else(|| results_of(&options.file));
    let is_begun = folder.is_dir();
    let done = Results::open_for(&folder, &experiment).and_then(|results| {
        let options = porpoise_lab::RunOptions {
            retry_failed: options.retry_failed,
            stop: &stop,
            progress: !options.quiet,
        };
        run_experiment(&experiment, &results, options)
    });
    let counts = match done {
        Err(Error::Results(what)) if is_begun => {
            return Err(format!(
                "{what}\nResults that were written before are kept; the same command goes on with them."
            )
            .into());
        }
        done => done?,
    };
    let shown = folder.display();
    let RunCounts {
        planned,
        done,
        failed,
    } = counts;
    println!("{shown}: {done} runs done, {failed} failed, {planned} left");
    if failed > 0 {
        println!(
            "Why: porpoise sql {shown} -e \"SELECT id, failure FROM lab.runs WHERE state = 'failed'\"; --retry-failed does them again."
        );
    }
    if planned > 0 {
        println!("The same command goes on with the others.");
    }
    Ok(match (planned, failed) {
        (0, 0) => ExitCode::SUCCESS,
        (0, _) => ExitCode::FAILURE,
        _ => ExitCode::from(INCOMPLETE),
    })
}

fn tell(experiment: &Experiment) -> ExitCode {
    let runs = experiment.points.len() as u64 * u64::from(experiment.runs);
    let seconds = |warm_up: std::time::Duration| {
        let one = (experiment.duration + warm_up).as_secs_f64();
        (one * runs as f64 / 60.0).ceil()
    };
    println!(
        "{}: {} points, {} runs of each, {} to {} minutes",
        experiment.title,
        experiment.points.len(),
        experiment.runs,
        seconds(experiment.warm_up.min),
        seconds(experiment.warm_up.max)
    );
    ExitCode::SUCCESS
}
