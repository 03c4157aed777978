//! `porpoise lab affinity`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use porpoise_lab::affinity::{Placement, Topology, Tried, list, placements, search};
use porpoise_lab::{Probe, ServerKind, ServerSpec, Way};

use super::Failure;
use super::load::LoadOptions;
use crate::bench::serving;
use crate::ways::WayIn;

#[derive(Args)]
pub struct AffinityOptions {
    /// The way in
    #[arg(long, value_enum, default_value = "unix")]
    way: WayIn,
    #[command(flatten)]
    load: LoadOptions,
    /// Seconds that one run takes
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// The standard deviation, in percent of the mean, that the best placement may have
    #[arg(long, default_value_t = 5.0)]
    variation: f64,
    /// The order of runs comes from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Measure MariaDB instead of this Porpoise
    #[arg(long)]
    mariadb: bool,
}

pub fn run(options: &AffinityOptions) -> Result<ExitCode, Failure> {
    options.load.check(options.seconds)?;
    if !(options.variation > 0.0 && options.variation.is_finite()) {
        return Err("variation has a bound above 0".into());
    }
    let way = options.way.0;
    if way == Way::Embedded {
        return Err("embedded has no server to give CPUs to".into());
    }
    if options.mariadb && !way.is_of_mariadb() {
        return Err(format!("MariaDB has no {way}").into());
    }
    let topology = Topology::of_this_machine()?;
    let count = placements(&topology).len();
    let cores: usize = topology.groups.iter().map(Vec::len).sum();
    println!(
        "{} CPUs, {cores} cores, {} groups that share a cache: {count} placements to try first",
        topology.cpus().len(),
        topology.groups.len()
    );
    let stop = serving::ends_when_asked()?;
    crate::serve::raise_descriptor_limit(0);
    let (name, kind) = match options.mariadb {
        true => ("MariaDB", ServerKind::MariaDb),
        false => ("Porpoise", ServerKind::Porpoise(None)),
    };
    let spec = ServerSpec {
        name: name.into(),
        kind,
        options: Vec::new(),
    };
    let probe = Probe::start(
        &spec,
        way,
        options.load.workload,
        options.load.rows,
        options.load.clients,
        &stop,
    )?;
    let (began, mut runs) = (Instant::now(), 0);
    let tried = search(
        &topology,
        options.variation / 100.0,
        options.seed,
        |placement, field| {
            runs += 1;
            let duration = Duration::from_secs_f64(options.seconds);
            let per_second = probe.throughput(&placement.affinity(), duration, runs, &stop)?;
            let per_second = per_second.ok_or("stopped")?;
            if runs % 10 == 0 {
                let seconds = began.elapsed().as_secs();
                eprintln!("run {runs}, {seconds} s, {field} placements left");
            }
            Ok::<_, Failure>(per_second)
        },
    )?;
    tell(options, name, runs, &tried);
    Ok(ExitCode::SUCCESS)
}

fn tell(options: &AffinityOptions, name: &str, runs: u64, tried: &[Tried]) {
    println!(
        "\n{:<16} {:<16} {:>5} {:>16} {:>10}",
        "server", "clients", "runs", "transactions/s", "variation"
    );
    for one in tried {
        let Placement { server, clients } = &one.placement;
        let summary = one.summary();
        println!(
            "{:<16} {:<16} {:>5} {:>16.0} {:>8.1} %",
            list(server),
            list(clients),
            summary.count,
            summary.mean,
            summary.variation() * 100.0
        );
    }
    let Some(best) = tried.first() else {
        return;
    };
    if best.summary().variation() * 100.0 > options.variation {
        println!(
            "\nNone varies by less than {} %: this is the fastest.",
            options.variation
        );
    }
    let (server, clients) = (list(&best.placement.server), list(&best.placement.clients));
    let command = match name {
        "Porpoise" => "porpoise serve",
        _ => "mariadbd",
    };
    println!("\nOf {runs} runs, the best. To use it:\n");
    println!("  taskset -c {server} {command} …\n  taskset -c {clients} CLIENT …\n");
    println!(
        "and in an experiment:\n\n[[affinities]]\nname = \"found\"\nserver = \"{server}\"\nclients = \"{clients}\""
    );
}
