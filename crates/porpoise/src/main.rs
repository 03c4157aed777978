//! The command line of Porpoise.
//!
//! ```text
//! porpoise serve    a server, with mysqld's options and option files
//! porpoise bench    the OLTP read-write mix over every way in, against a server in a temporary folder
//! ```

mod bench;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Small blocks allocated and freed on the path of every query: mimalloc keeps them a thread's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Porpoise: a MySQL-compatible database for the machine its application runs on.
#[derive(Parser)]
#[command(name = "porpoise", version, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve a database to MySQL clients
    #[command(disable_help_flag = true)]
    Serve {
        /// Options as mysqld takes them; `porpoise serve --help` lists them
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "OPTIONS"
        )]
        options: Vec<String>,
    },
    /// Measure OLTP read-write over every way in, in a temporary folder
    Bench(bench::BenchOptions),
}

fn main() -> ExitCode {
    match CommandLine::parse().command {
        Command::Serve { options } => serve::run(options),
        Command::Bench(options) => bench::run(&options),
    }
}
