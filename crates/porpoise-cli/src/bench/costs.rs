//! `porpoise bench costs`: what units of a query's work cost on this machine, beside the constants
//! that the optimizer chooses plans by.

use clap::Args;
use porpoise::Database;
use porpoise_client::Connection;
use porpoise_lab::costs::{self, CostsPlan};
use porpoise_planner::cost;

use super::{Failure, temporary_folder};

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
    let folder = temporary_folder()?;
    let data = folder.path().join("data");
    let open = || {
        Database::options()
            .set("innodb_buffer_pool_size", 1u64 << 30)
            .open(&data)
    };
    // What is measured is in the tree and in blocks, where most rows of a database are, and not
    // among the versions that wait for a checkpoint: closing the database writes one.
    let database = open()?;
    let mut connection = connect(&database, "")?;
    connection.run("CREATE DATABASE costs")?;
    connection.run("USE costs")?;
    costs::load(&mut connection, options.rows)?;
    drop((connection, database));
    let database = open()?;
    let plan = CostsPlan {
        rows: options.rows,
        rounds: options.rounds,
    };
    let measured = costs::run(&mut connect(&database, "costs")?, &plan)?;
    print!("{}", measured.beside(&cost::MEASURED));
    Ok(())
}

fn connect(database: &Database, schema: &str) -> Result<Connection, Failure> {
    let options = format!("mysql://root@localhost/{schema}").parse()?;
    Ok(Connection::over(database.stream()?, &options)?)
}
