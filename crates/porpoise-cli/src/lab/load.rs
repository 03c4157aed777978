//! What clients do, as several commands ask for it.

use clap::Args;
use porpoise_lab::Workload;
use porpoise_lab::bench::CLIENTS_MAX;

use super::Failure;

#[derive(Args)]
pub struct LoadOptions {
    /// What the clients do
    #[arg(long, default_value = "oltp_point_select")]
    pub workload: Workload,
    /// Clients at a time
    #[arg(long, default_value_t = 8)]
    pub clients: usize,
    /// Rows of the table
    #[arg(long, default_value_t = 100_000)]
    pub rows: u64,
}

impl LoadOptions {
    /// Refuses what can't be, with the seconds that one run takes.
    pub fn check(&self, seconds: f64) -> Result<(), Failure> {
        let is_time = seconds > 0.0 && seconds <= 3600.0;
        let has_load = (1..=CLIENTS_MAX).contains(&self.clients) && self.rows > 0;
        match is_time && has_load {
            true => Ok(()),
            false => Err(format!(
                "a run has seconds (up to 3600), clients (up to {CLIENTS_MAX}) and rows"
            )
            .into()),
        }
    }
}
