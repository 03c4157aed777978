//! What a table says of how far its figures can be trusted: how far the rounds of each lie apart, and
//! whether something else ran on the machine.

use std::fmt;
use std::time::Duration;

/// Rounds that lie further apart, and a machine of whose processor time others take more, are said to.
const LIMIT: f64 = 0.2;
/// How long the machine is looked at while nothing is measured.
const LOOK: Duration = Duration::from_millis(300);

/// How far the rounds of a figure lie apart: the most less the least, of the median. Nothing for a
/// single round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread(Option<f64>);

impl Spread {
    /// Of the rounds, in any order.
    pub(crate) fn of(rounds: &[f64]) -> Self {
        let mut sorted = rounds.to_vec();
        sorted.sort_by(f64::total_cmp);
        match sorted[..] {
            [least, .., most] => {
                let median = sorted[(sorted.len() - 1) / 2];
                let spread = (most - least) / median.abs();
                // All of nothing, or nothing in most rounds.
                Self(Some(match spread.is_nan() {
                    true => 0.0,
                    false => spread,
                }))
            }
            _ => Self(None),
        }
    }

    /// The widest.
    pub(crate) fn widest(all: impl IntoIterator<Item = Self>) -> Self {
        let known = all.into_iter().filter_map(|spread| spread.0);
        Self(known.max_by(f64::total_cmp))
    }

    pub(crate) fn is_known(self) -> bool {
        self.0.is_some()
    }

    fn is_wide(self) -> bool {
        self.0.is_some_and(|spread| spread > LIMIT)
    }

    /// A line below a table whose rows have such spreads, if there is something to say.
    pub(crate) fn note(
        all: impl IntoIterator<Item = Self>,
        formatter: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        match all.into_iter().filter(|spread| spread.is_wide()).count() {
            0 => Ok(()),
            rows => writeln!(
                formatter,
                "Rounds disagree by more than {:.0} % in {rows} of the rows (!): the machine was busy, or the server is unsteady.",
                LIMIT * 100.0
            ),
        }
    }
}

/// As a cell of a table.
impl fmt::Display for Spread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => formatter.write_str("-"),
            Some(spread) => {
                let mark = if self.is_wide() { " !" } else { "" };
                match spread * 100.0 {
                    percent if percent < 1000.0 => write!(formatter, "{percent:.0} %{mark}"),
                    // A round may have had nothing at all.
                    _ => write!(formatter, ">999 %{mark}"),
                }
            }
        }
    }
}

/// What share of the machine's processor time is taken while whoever asks sleeps; nothing where the
/// system doesn't tell.
pub fn taken_by_others() -> Option<f64> {
    let before = Ticks::now()?;
    std::thread::sleep(LOOK);
    Ticks::now()?.share_since(&before)
}

/// What to say of a machine that was looked at before and after measuring, if it wasn't idle.
pub fn busy_note(looks: &[Option<f64>]) -> Option<String> {
    let most = looks.iter().flatten().copied().max_by(f64::total_cmp)?;
    (most > LIMIT).then(|| {
        format!(
            "The machine was busy: before or after measuring, other programs took {:.0} % of its processor time.",
            most * 100.0
        )
    })
}

/// Processor time of the whole machine since it started.
#[derive(Debug, PartialEq)]
struct Ticks {
    busy: u64,
    idle: u64,
}

impl Ticks {
    fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// The line of all CPUs: user, nice, system, idle, iowait, irq, softirq, steal; what follows is
    /// among them.
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line
            .split_whitespace()
            .take(8)
            .map_while(|ticks| ticks.parse().ok())
            .collect();
        let idle = ticks.get(3)? + ticks.get(4).unwrap_or(&0);
        let all: u64 = ticks.iter().sum();
        Some(Self {
            busy: all - idle,
            idle,
        })
    }

    fn share_since(&self, before: &Self) -> Option<f64> {
        let busy = self.busy.saturating_sub(before.busy) as f64;
        let all = busy + self.idle.saturating_sub(before.idle) as f64;
        (all > 0.0).then(|| busy / all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_that_lie_apart_are_marked() {
        let of = |rounds: &[f64]| Spread::of(rounds).to_string();
        assert_eq!(of(&[]), "-");
        assert_eq!(of(&[7.0]), "-");
        assert_eq!(of(&[110.0, 100.0, 95.0]), "15 %");
        assert_eq!(of(&[100.0, 90.0, 120.0]), "30 % !");
        assert_eq!(of(&[0.0, 0.0]), "0 %");
        assert!(Spread::of(&[0.0, 0.0, 5.0]).is_wide());
        let spreads = [Spread::of(&[1.0]), Spread::of(&[1.0, 1.1])];
        assert_eq!(Spread::widest(spreads).to_string(), "10 %");
    }

    #[test]
    fn a_machine_is_busy_by_what_its_processors_did() {
        let before = Ticks::parse("cpu  100 0 50 800 50 0 0 0 7 7\ncpu0 1 1 1 1\n").unwrap();
        assert_eq!(
            before,
            Ticks {
                busy: 150,
                idle: 850
            }
        );
        let after = Ticks::parse("cpu  130 0 50 860 60 0 0 0 7 7\n").unwrap();
        let share = after.share_since(&before).unwrap();
        assert!((share - 0.3).abs() < 1e-9, "{share}");
        assert_eq!(before.share_since(&before), None);
        assert_eq!(Ticks::parse("cpux 1"), None);

        assert_eq!(busy_note(&[None, Some(0.2)]), None);
        let note = busy_note(&[Some(0.1), Some(0.35)]).unwrap();
        assert!(note.contains("35 %"), "{note}");
    }
}
