//! `porpoise lab profile`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use porpoise_lab::profile::{
    Functions, Locks, Profile, ProfilePlan, Role, Sites, Subject, check_perf,
};
use porpoise_lab::{ServerKind, ServerSpec, Way};

use super::Failure;
use super::load::LoadOptions;
use crate::bench::serving;
use crate::ways::WayIn;

#[derive(Args)]
pub struct ProfileOptions {
    /// The way in; of two, the second is compared with the first
    #[arg(long, value_enum, value_delimiter = ',', default_value = "unix")]
    way: Vec<WayIn>,
    /// The server: a Porpoise program's path, 'mariadb', or a commit of --repository; of two, the
    /// second is compared with the first [default: this program]
    #[arg(long, value_delimiter = ',', value_name = "PROGRAM")]
    server: Vec<String>,
    /// The repository of servers that are commits
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    repository: PathBuf,
    #[command(flatten)]
    load: LoadOptions,
    /// Seconds that samples are taken by time; those of switches of context take this long at most
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Samples a second of each CPU
    #[arg(long, default_value_t = 199)]
    frequency: u32,
    /// Functions and sites that are shown
    #[arg(long, default_value_t = 15)]
    top: usize,
    /// Write folded stacks and flame graphs into this folder
    #[arg(long, value_name = "FOLDER", default_value = "profile")]
    output: PathBuf,
}

/// How long clients work before anything is recorded.
const WARM_UP: Duration = Duration::from_secs(1);

pub fn run(options: &ProfileOptions) -> Result<ExitCode, Failure> {
    options.load.check(options.seconds)?;
    if options.frequency == 0 {
        return Err("a recording has a frequency".into());
    }
    check_perf()?;
    let subjects = subjects(options)?;
    let plan = ProfilePlan {
        workload: options.load.workload,
        clients: options.load.clients,
        rows: options.load.rows,
        warm_up: WARM_UP,
        duration: Duration::from_secs_f64(options.seconds),
        frequency: options.frequency,
    };
    let stop = serving::ends_when_asked()?;
    crate::serve::raise_descriptor_limit(0);
    let mut profiles = Vec::new();
    for subject in &subjects {
        match Profile::of(subject, &plan, &stop)? {
            Some(profile) => profiles.push(profile),
            None => return Err("stopped before the samples were taken".into()),
        }
    }
    tell(&profiles, options.top);
    for profile in &profiles {
        for file in profile.write(&options.output)? {
            println!("{}", file.display());
        }
    }
    if let [first, second] = &profiles[..]
        && let Some(file) = second.write_difference(first, &options.output)?
    {
        println!("{}", file.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// One or two: what there are two of is what is compared.
fn subjects(options: &ProfileOptions) -> Result<Vec<Subject>, Failure> {
    let mut servers: Vec<ServerSpec> = match &options.server[..] {
        [] => vec![server("Porpoise".into(), ServerKind::Porpoise(None))],
        names => names.iter().map(|name| named(name, options)).collect(),
    };
    // Two builds may have one file name: each is called, and its files are, by its path then.
    if let [one, other] = &mut servers[..]
        && one.name == other.name
    {
        one.name.clone_from(&options.server[0]);
        other.name.clone_from(&options.server[1]);
    }
    let ways = &options.way;
    let count = servers.len().max(ways.len());
    if count > 2 || (servers.len() == 2 && ways.len() == 2) {
        return Err("two servers are compared over one way in, or two ways into one server".into());
    }
    let subjects: Vec<Subject> = (0..count)
        .map(|at| Subject {
            server: servers[at.min(servers.len() - 1)].clone(),
            way: ways[at.min(ways.len() - 1)].0,
        })
        .collect();
    for Subject { server, way } in &subjects {
        let own = server.kind == ServerKind::Porpoise(None);
        let of_others = way.is_of_mariadb();
        if (*way == Way::Embedded && !own) || (!of_others && server.kind == ServerKind::MariaDb) {
            return Err(format!("{} can't be reached over {way}", server.name).into());
        }
    }
    Ok(subjects)
}

fn named(name: &str, options: &ProfileOptions) -> ServerSpec {
    let path = PathBuf::from(name);
    let file = || path.file_name().unwrap_or_default().to_string_lossy();
    match name {
        "mariadb" => server("MariaDB".into(), ServerKind::MariaDb),
        _ if path.is_file() => server(
            file().into_owned(),
            ServerKind::Porpoise(Some(path.clone())),
        ),
        _ => server(
            name.to_owned(),
            ServerKind::Revision {
                revision: name.to_owned(),
                repository: options.repository.clone(),
            },
        ),
    }
}

fn server(name: String, kind: ServerKind) -> ServerSpec {
    ServerSpec {
        name,
        kind,
        options: Vec::new(),
    }
}

fn tell(profiles: &[Profile], top: usize) {
    for profile in profiles {
        println!(
            "{}: {:.0} transactions a second, {:.0} switches of context a second",
            profile.name, profile.throughput, profile.switches
        );
    }
    let each: Vec<&Profile> = profiles.iter().collect();
    for role in [Role::Server, Role::Clients] {
        let functions = Functions::of(role, &each, top);
        if !functions.is_empty() {
            println!("\n{functions}");
        }
    }
    for role in [Role::Server, Role::Clients] {
        for profile in profiles {
            let sites = Sites::waits(role, profile, top);
            if !sites.is_empty() {
                println!("{sites}\n{}", Locks::of(role, profile, top));
            }
        }
    }
}
