//! The command line of Porpoise.
//!
//! ```text
//! porpoise serve    a server, with mysqld's options and option files
//! porpoise sql      a shell on a folder, in memory, or over any way in to a server
//! porpoise recover  what can be read of a damaged folder, saved into a new one
//! porpoise lab      experiments that are files, into a database of results, into a report
//! porpoise bench    the OLTP read-write mix over every way in, against a server in a temporary folder; locks and connections alone
//! ```

#![warn(missing_docs)]

#[macro_use]
mod printing;

mod bench;
mod lab;
mod recover;
mod serve;
mod server_files;
mod shell;
mod ways;

use std::ffi::OsString;
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
    #[command(disable_help_flag = true)]
    Sql(shell::SqlOptions),
    /// Save what can be read of a damaged database into a new folder
    Recover(recover::RecoverOptions),
    /// Measure OLTP read-write over every way in, in a temporary folder
    Bench(bench::BenchOptions),
    /// Run experiments that are files, and report on them
    Lab(lab::LabOptions),
}

/// Has the allocator give memory back to the system soon, unless MIMALLOC_PURGE_DELAY says
/// otherwise: a database beside its application keeps little for later. At once would be dear: what
/// is given back and taken again costs up to a tenth of the throughput, to have 2 MB less.
fn give_memory_back_soon() {
    /// `mi_option_purge_delay` of mimalloc's `mi_option_t`, in milliseconds.
    const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
    // SAFETY: the option is a number that mimalloc reads and writes atomically; any value is valid.
    unsafe { libmimalloc_sys::mi_option_set_default(PURGE_DELAY, 100) }
    // Of a huge page some is in use, and all of it resident. A kernel without them refuses, which
    // is as well.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Has the allocator give back what this thread has freed: by itself it does so only while the
/// thread allocates, so that a thread that sleeps keeps what its last hour of work took. 10 µs if
/// it is little, 2 ms for 20 MB.
fn give_memory_back() {
    // SAFETY: any thread may ask for it at any time, and it touches nothing but what is free.
    unsafe { libmimalloc_sys::mi_collect(false) }
}

/// What the program was called with, in clap's words.
fn arguments() -> Vec<OsString> {
    let mut given = std::env::args_os();
    let mut first: Vec<OsString> = given.by_ref().take(2).collect();
    match first.get(1) {
        Some(command) if command == "sql" => first.extend(shell::spelled_out(given)),
        _ => first.extend(given),
    }
    first
}

fn main() -> ExitCode {
    give_memory_back_soon();
    printing::end(match CommandLine::parse_from(arguments()).command {
        Command::Serve { options } => serve::run(options),
        Command::Sql(options) => shell::run(&options),
        Command::Recover(options) => recover::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Lab(options) => lab::run(&options),
    })
}
