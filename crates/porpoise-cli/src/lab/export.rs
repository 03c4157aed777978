//! `porpoise lab export`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Args};
use porpoise_lab::Results;

use super::Failure;

#[derive(Args)]
#[command(group = ArgGroup::new("form").required(true).multiple(true))]
pub struct ExportOptions {
    /// The folder of the results
    results: PathBuf,
    /// Write each table as a CSV file into this folder
    #[arg(long, value_name = "FOLDER", group = "form")]
    csv: Option<PathBuf>,
    /// Print each run as sysbench reports one
    #[arg(long, group = "form")]
    sysbench: bool,
}

pub fn run(options: &ExportOptions) -> Result<ExitCode, Failure> {
    let results = Results::open(&options.results)?;
    if let Some(folder) = &options.csv {
        for file in results.export_csv(folder)? {
            println!("{}", file.display());
        }
    }
    if options.sysbench {
        print!("{}", results.sysbench_text()?);
    }
    Ok(ExitCode::SUCCESS)
}
