//! `porpoise lab idle`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use porpoise_client::Connection;
use porpoise_lab::idle::{self, Ended, IdleSession};

use super::Failure;

#[derive(Args)]
pub struct IdleOptions {
    /// The server: mysql://user:password@host:port/?socket=/path
    url: String,
    /// Sessions that have slept for so long: 60s, 5m, 2h, 1d
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    older_than: Duration,
    /// Only those of this user
    #[arg(long)]
    user: Option<String>,
    /// End them; without this they are only listed
    #[arg(long)]
    end: bool,
}

fn parse_time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is no time, such as 60s, 5m, 2h or 1d");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match &text[digits.len()..] {
        "s" | "" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86400,
        _ => return Err(wrong()),
    };
    let count: u64 = digits.parse().map_err(|_| wrong())?;
    let seconds = count.checked_mul(seconds).ok_or_else(wrong)?;
    Ok(Duration::from_secs(seconds))
}

pub fn run(options: &IdleOptions) -> Result<ExitCode, Failure> {
    let mut connection = Connection::open(&options.url)?;
    let mut sessions = idle::sessions(&mut connection, options.older_than)?;
    if let Some(user) = &options.user {
        sessions.retain(|session| session.user == *user);
    }
    println!(
        "{:>12} {:>10}  {:<16} {:<24} schema",
        "session", "idle s", "user", "host"
    );
    let mut ended = 0;
    for session in &sessions {
        let outcome = match options.end {
            false => "",
            true => match idle::end(&mut connection, session)? {
                Ended::Now => {
                    ended += 1;
                    "  ended"
                }
                Ended::NotIdle => "  is at work again, or gone",
            },
        };
        let IdleSession {
            id,
            user,
            host,
            schema,
            idle,
        } = session;
        println!(
            "{id:>12} {:>10}  {user:<16} {host:<24} {schema}{outcome}",
            idle.as_secs()
        );
    }
    // A proxy may not tell.
    if let Ok(false) = idle::sees_all(&mut connection) {
        println!(
            "Without the privilege PROCESS, an account sees its own sessions only: this one has no such grant."
        );
    }
    match options.end {
        true => println!("{ended} of {} sessions ended", sessions.len()),
        false => println!("{} sessions; --end ends them", sessions.len()),
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, seconds) in [
            ("60s", 60),
            ("5m", 300),
            ("2h", 7200),
            ("1d", 86400),
            ("7", 7),
        ] {
            assert_eq!(parse_time(text), Ok(Duration::from_secs(seconds)));
        }
        for wrong in [
            "",
            "s",
            "1w",
            "-1s",
            "99999999999999999999s",
            "9999999999999999999d",
        ] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }
}
