//! The command line of Porpoise.
//!
//! ```text
//! porpoise serve    a server, with mysqld's options and option files
//! porpoise sql      a shell on a folder, in memory, or over any way in to a server
//! porpoise bench    the OLTP read-write mix over every way in, against a server in a temporary folder
//! ```

mod bench;
mod serve;
mod shell;

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
    /// Talk to a database in a folder, in memory or behind a URL
    Sql(shell::SqlOptions),
    /// Measure OLTP read-write over every way in, in a temporary folder
    Bench(bench::BenchOptions),
}

/// Has the allocator give memory back to the system at once, unless MIMALLOC_PURGE_DELAY says otherwise: a database
/// beside its application keeps little for later.
fn give_memory_back_at_once() {
    /// `mi_option_purge_delay` of mimalloc's `mi_option_t`, in milliseconds.
    const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
    // SAFETY: the option is a number that mimalloc reads and writes atomically; any value is valid.
    unsafe { libmimalloc_sys::mi_option_set_default(PURGE_DELAY, 0) }
}

fn main() -> ExitCode {
    give_memory_back_at_once();
    match CommandLine::parse().command {
        Command::Serve { options } => serve::run(options),
        Command::Sql(options) => shell::run(&options),
        Command::Bench(options) => bench::run(&options),
    }
}
