//! `porpoise bench costs`: what units of a query's work cost on this machine, beside the constants
//! that the optimizer chooses plans by.

use clap::Args;
use porpoise::Database;
use porpoise_client::Connection;
use porpoise_lab::costs::{self, CostsPlan};
use porpoise_planner::cost;

use super::Failure;

#[derive(Args)]
pub struct CostsOptions {
    /// Rows of the table
    #[arg(long, default_value_t = 200_000)]
    rows: u64,
    /// Rounds of which the median counts
    #[arg(long, default_value_t = 7)]
    rounds: usize,
}

pub fn measure(options: &CostsOptions) -> Result<(), Failure> {
    if !(1_000..=10_000_000).contains(&options.rows) {
        return Err("between 1,000 and 10,000,000 rows can be measured".into());
    }
    let database = Database::options()
        .set("innodb_buffer_pool_size", 1u64 << 30)
        .in_memory()?;
    let options_of = "mysql://root@localhost/".parse()?;
    let mut connection = Connection::over(database.stream()?, &options_of)?;
    connection.run("CREATE DATABASE costs")?;
    connection.run("USE costs")?;
    let plan = CostsPlan {
        rows: options.rows,
        rounds: options.rounds,
    };
    let measured = costs::run(&mut connection, &plan)?;
    print!("{}", measured.beside(&cost::MEASURED));
    Ok(())
}
