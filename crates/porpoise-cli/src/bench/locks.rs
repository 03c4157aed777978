//! `porpoise bench locks`: reader-writer locks against each other: turns a second through each
//! lock, by 1 to 64 threads, in four mixes of readers and writers; a table and a picture.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use porpoise_lab::locks::{self, LocksPlan};

#[derive(Args)]
pub struct LocksOptions {
    /// Numbers of threads
    #[arg(long, value_delimiter = ',')]
    threads: Vec<usize>,
    /// Milliseconds each round takes
    #[arg(long)]
    milliseconds: Option<u64>,
    /// Rounds of which the median counts
    #[arg(long)]
    rounds: Option<usize>,
    /// Where the picture goes
    #[arg(long, default_value = "porpoise-locks.svg")]
    picture: PathBuf,
}

pub fn measure(options: &LocksOptions) -> Result<(), Box<dyn std::error::Error>> {
    let mut plan = LocksPlan::default();
    if !options.threads.is_empty() {
        plan.threads.clone_from(&options.threads);
    }
    if let Some(milliseconds) = options.milliseconds {
        plan.duration = Duration::from_millis(milliseconds);
    }
    plan.rounds = options.rounds.unwrap_or(plan.rounds).max(1);
    plan.threads.retain(|&threads| threads > 0);
    let report = locks::run(&plan);
    print!("{report}");
    std::fs::write(&options.picture, report.picture())?;
    println!("picture: {}", options.picture.display());
    Ok(())
}
