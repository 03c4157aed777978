//! A suite's queries with their times, as a table.
//!
//! The ratio is the first target's time by the last one's: below 1 the first is faster. A query
//! that was ended counts as taking the timeout, so its ratio is a bound.

use std::fmt;
use std::time::Duration;

use porpoise_client::Rows;

use super::{Answer, Query};
use crate::report::aligned;

/// What came of a query on a target.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It answered: the answer of the first round, and how long each round took.
    Answered(Answer, Vec<Duration>),
    /// It took longer than it may.
    TimedOut,
    /// The server's words.
    Refused(String),
}

impl Default for Outcome {
    fn default() -> Self {
        Self::Answered(Answer::default(), Vec::new())
    }
}

impl Outcome {
    /// Whether there is no reason to ask again.
    pub(super) fn is_settled(&self) -> bool {
        !matches!(self, Self::Answered(..))
    }

    pub(super) fn answered(&mut self, rows: &Rows, took: Duration) {
        if let Self::Answered(answer, times) = self {
            if times.is_empty() {
                *answer = Answer::of(rows);
            }
            times.push(took);
        }
    }

    fn answer(&self) -> Option<&Answer> {
        match self {
            Self::Answered(answer, _) => Some(answer),
            Self::TimedOut | Self::Refused(_) => None,
        }
    }

    /// The median of the rounds.
    pub fn time(&self) -> Option<Duration> {
        match self {
            Self::Answered(_, times) => {
                let mut times = times.clone();
                times.sort_unstable();
                times.get(times.len() / 2).copied()
            }
            Self::TimedOut | Self::Refused(_) => None,
        }
    }

    fn shown(&self, timeout: Duration) -> String {
        match (self, self.time()) {
            (_, Some(time)) => format!("{:.4}", time.as_secs_f64()),
            (Self::Refused(_), None) => "refused".into(),
            (_, None) => format!("> {}", timeout.as_secs()),
        }
    }
}

/// A query, measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The query.
    pub query: Query,
    /// What came of it on each target.
    pub outcomes: Vec<Outcome>,
}

impl Measured {
    /// Whether the targets agree, if each has answered.
    pub fn agrees(&self) -> Option<bool> {
        let answers: Vec<&Answer> = self
            .outcomes
            .iter()
            .map(Outcome::answer)
            .collect::<Option<_>>()?;
        let mut pairs = answers.windows(2);
        Some(pairs.all(|pair| pair[0].agrees(pair[1], &self.query.ordered_by)))
    }

    fn rows(&self) -> Option<usize> {
        let answer = self.outcomes.iter().find_map(Outcome::answer);
        answer.map(Answer::len)
    }

    /// The first target's time by the last one's; at least one of them has answered.
    fn ratio(&self, timeout: Duration) -> Option<Ratio> {
        let [first, .., last] = &self.outcomes[..] else {
            return None;
        };
        let time = |outcome: &Outcome| match outcome {
            Outcome::Refused(_) => None,
            _ => Some(outcome.time().unwrap_or(timeout).as_secs_f64()),
        };
        let value = time(first)? / time(last)?;
        Some(match (first, last) {
            (Outcome::TimedOut, Outcome::TimedOut) => return None,
            (Outcome::TimedOut, _) => Ratio::Above(value),
            (_, Outcome::TimedOut) => Ratio::Below(value),
            _ => Ratio::Is(value),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ratio {
    Is(f64),
    Above(f64),
    Below(f64),
}

impl Ratio {
    fn value(self) -> f64 {
        match self {
            Self::Is(value) | Self::Above(value) | Self::Below(value) => value,
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self {
            Self::Is(_) => "",
            Self::Above(_) => "> ",
            Self::Below(_) => "< ",
        };
        write!(formatter, "{sign}{:.2}", self.value())
    }
}

/// All queries that were measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The targets' names.
    pub targets: Vec<String>,
    /// How long a query was allowed to take.
    pub timeout: Duration,
    /// The queries in the order of the suite.
    pub queries: Vec<Measured>,
}

impl Report {
    /// The geometric mean of the ratios, and of how many.
    pub fn mean_ratio(&self) -> Option<(f64, usize)> {
        let ratios = self.queries.iter();
        let ratios: Vec<Ratio> = ratios.filter_map(|one| one.ratio(self.timeout)).collect();
        let sum: f64 = ratios.iter().map(|ratio| ratio.value().ln()).sum();
        let count = ratios.len();
        (count > 0).then(|| ((sum / count as f64).exp(), count))
    }

    /// The table's rows, its head first.
    fn table(&self) -> Vec<Vec<String>> {
        let mut head = vec!["query".to_owned(), "rows".to_owned()];
        head.extend(self.targets.iter().map(|target| format!("{target} s")));
        let is_compared = self.targets.len() > 1;
        if is_compared {
            head.extend(["ratio", "answers"].map(str::to_owned));
        }
        let row = |one: &Measured| {
            let mut row = vec![
                one.query.name.clone(),
                one.rows().map_or("".into(), |rows| rows.to_string()),
            ];
            let outcomes = one.outcomes.iter();
            row.extend(outcomes.map(|outcome| outcome.shown(self.timeout)));
            if is_compared {
                let ratio = one.ratio(self.timeout);
                row.push(ratio.map_or("".into(), |ratio| ratio.to_string()));
                row.push(match one.agrees() {
                    Some(true) => "equal".into(),
                    Some(false) => "DIFFER".into(),
                    None => "".into(),
                });
            }
            row
        };
        let mut table = vec![head];
        table.extend(self.queries.iter().map(row));
        table
    }

    /// The table as Markdown has tables.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for (place, row) in self.table().iter().enumerate() {
            text += &format!("| {} |\n", row.join(" | "));
            if place == 0 {
                text += &format!("|{}\n", " --- |".repeat(row.len()));
            }
        }
        text + &self.summary()
    }

    /// What follows the table: the mean, and what servers refused.
    fn summary(&self) -> String {
        let mut text = String::new();
        if let Some((mean, count)) = self.mean_ratio() {
            text += &format!("\ngeometric mean of {count} ratios: {mean:.2}\n");
        }
        for one in &self.queries {
            for (outcome, target) in one.outcomes.iter().zip(&self.targets) {
                if let Outcome::Refused(words) = outcome {
                    text += &format!("query {} on {target}: {words}\n", one.query.name);
                }
            }
        }
        text
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        aligned(formatter, &self.table(), 1)?;
        formatter.write_str(&self.summary())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(milliseconds: &[u64]) -> Outcome {
        let times = milliseconds.iter().copied().map(Duration::from_millis);
        Outcome::Answered(Answer::default(), times.collect())
    }

    fn report(outcomes: impl IntoIterator<Item = [Outcome; 2]>) -> Report {
        let measured = |(place, outcomes): (usize, [Outcome; 2])| Measured {
            query: Query {
                name: place.to_string(),
                text: String::new(),
                ordered_by: Vec::new(),
            },
            outcomes: outcomes.into(),
        };
        Report {
            targets: vec!["Porpoise".into(), "MariaDB".into()],
            timeout: Duration::from_secs(2),
            queries: outcomes.into_iter().enumerate().map(measured).collect(),
        }
    }

    #[test]
    fn the_median_counts_and_a_timeout_is_a_bound() {
        let report = report([
            [answered(&[900, 100, 200]), answered(&[400, 300, 500])],
            [Outcome::TimedOut, answered(&[250])],
            [answered(&[500]), Outcome::TimedOut],
            [Outcome::TimedOut, Outcome::TimedOut],
            [Outcome::Refused("no".into()), answered(&[1])],
        ]);
        let ratios: Vec<_> = report
            .queries
            .iter()
            .map(|one| one.ratio(report.timeout))
            .collect();
        let expected = [
            Some(Ratio::Is(0.5)),
            Some(Ratio::Above(8.0)),
            Some(Ratio::Below(0.25)),
            None,
            None,
        ];
        assert_eq!(ratios, expected);
        let (mean, count) = report.mean_ratio().unwrap();
        assert_eq!(count, 3);
        assert!((mean - 1.0).abs() < 1e-9, "{mean}");
        assert_eq!(report.queries[0].agrees(), Some(true));
        assert_eq!(report.queries[1].agrees(), None);
        let text = report.to_string();
        assert!(text.contains("> 8.00") && text.contains("> 2"), "{text}");
        assert!(text.contains("query 4 on Porpoise: no"), "{text}");
        let markdown = report.markdown();
        assert!(
            markdown.starts_with(
                "| query | rows | Porpoise s | MariaDB s | ratio | answers |\n| --- |"
            ),
            "{markdown}"
        );
    }

    #[test]
    fn without_a_peer_there_are_times_alone() {
        let mut report = report([[answered(&[5]), answered(&[5])]]);
        report.targets.truncate(1);
        report.queries[0].outcomes.truncate(1);
        let text = report.to_string();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(
            text.lines().next().unwrap().ends_with("Porpoise s"),
            "{text}"
        );
    }
}
