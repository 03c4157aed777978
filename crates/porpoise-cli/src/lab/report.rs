//! `porpoise lab report`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use porpoise_lab::{Page, Results};

use super::Failure;

#[derive(Args)]
pub struct ReportOptions {
    /// The folder of the results
    results: PathBuf,
    /// Where the page goes [default: RESULTS' name, with .html]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write each chart as an SVG file into this folder
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
    /// The series that others are compared with [default: the experiment's, or the first]
    #[arg(long, value_name = "SERIES")]
    baseline: Option<String>,
}

pub fn run(options: &ReportOptions) -> Result<ExitCode, Failure> {
    let results = Results::open(&options.results)?;
    let page = Page::of(&results, options.baseline.as_deref())?;
    let output = match &options.output {
        Some(output) => output.clone(),
        None => {
            let folder = std::path::absolute(&options.results)?;
            let stem = folder.file_stem().unwrap_or(folder.as_os_str());
            PathBuf::from(stem).with_added_extension("html")
        }
    };
    std::fs::write(&output, page.html())
        .map_err(|error| format!("{}: {error}", output.display()))?;
    println!("{}", output.display());
    if let Some(folder) = &options.svg {
        for file in page.write_figures(folder)? {
            println!("{}", file.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}
