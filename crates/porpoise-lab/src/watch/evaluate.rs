//! How well changes are found under the noise that a machine really has: how many of them, how
//! late, and how often an alarm is false.
//!
//! ```text
//! values of one build ──► histories: blocks drawn anew ──► × 0.98, 0.95, 0.9 from a day on
//!                                                               │ one value more a day
//!                              alarms of change points ◄────────┴────────► alarms of thresholds
//! ```
//!
//! Noise isn't independent from day to day: neighbours stay busy for a while. Blocks of successive
//! values keep that (a stationary bootstrap: Politis and Romano, 1994).

use std::fmt;

use fastrand::Rng;

use super::change_points::change_points;
use super::findings::NEAR;
use crate::Error;
use crate::statistics::{Summary, median};

/// How long blocks of successive values are, in the mean.
const BLOCK: f64 = 10.0;
/// Values before a change.
const BEFORE: usize = 40;
/// Days in which a change has to be found.
const DAYS: usize = 30;
/// Days of a history without a change, those at its beginning not counted.
const YEAR: usize = 365;
/// Values that a threshold compares with: the median of the last ones.
const WINDOW: usize = 7;
/// Sizes of changes.
const CHANGES: [f64; 3] = [0.02, 0.05, 0.1];
/// Thresholds beside.
const THRESHOLDS: [f64; 4] = [0.02, 0.05, 0.1, 0.2];
/// The fewest values that say anything of noise.
const VALUES_MIN: usize = 30;

/// Values of one thing, in the order in which they were measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Noise {
    /// What was measured.
    pub name: String,
    /// What came of it.
    pub values: Vec<f64>,
}

impl Noise {
    /// Reads what [`super::Findings::values`] has written: a line for each value, of revision, point,
    /// metric and value, parted by tabs, below a heading.
    pub fn parse(text: &str) -> Result<Vec<Self>, Error> {
        let mut all: Vec<Self> = Vec::new();
        for (number, line) in text.lines().enumerate().skip(1) {
            let fields: Vec<&str> = line.split('\t').collect();
            let wrong = || {
                let number = number + 1;
                Error::Plan(format!(
                    "line {number} isn't a revision, a point, a metric and a value, parted by tabs"
                ))
            };
            let [_, point, metric, value] = fields[..] else {
                return Err(wrong());
            };
            let value: f64 = value.parse().map_err(|_| wrong())?;
            if !value.is_finite() || value < 0.0 {
                return Err(wrong());
            }
            let name = format!("{point}, {metric}");
            match all.iter_mut().find(|noise| noise.name == name) {
                Some(noise) => noise.values.push(value),
                None => all.push(Self {
                    name,
                    values: vec![value],
                }),
            }
        }
        if all.is_empty() {
            return Err(Error::Plan("it has no values".into()));
        }
        match all.iter().find(|noise| noise.values.len() < VALUES_MIN) {
            Some(short) => Err(Error::Plan(format!(
                "{}: {} values are too few, {VALUES_MIN} the least",
                short.name,
                short.values.len()
            ))),
            None => Ok(all),
        }
    }

    /// So many values, drawn in blocks.
    fn history(&self, days: usize, random: &mut Rng) -> Vec<f64> {
        let count = self.values.len();
        let mut at = random.usize(0..count);
        let next = |_| {
            at = match random.f64() < 1.0 / BLOCK {
                true => random.usize(0..count),
                false => (at + 1) % count,
            };
            self.values[at]
        };
        (0..days).map(next).collect()
    }
}

/// What gives an alarm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Detector {
    /// As `lab watch` does.
    ChangePoints,
    /// A value that is so much away from the median of the last seven.
    Threshold(f64),
}

impl fmt::Display for Detector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Detector::ChangePoints => f.write_str("change points"),
            Detector::Threshold(share) => write!(f, "threshold of {:.0} %", share * 100.0),
        }
    }
}

/// An alarm: when, and of which value.
struct Alarm {
    day: usize,
    place: usize,
}

impl Detector {
    /// All of a history to which each day adds a value, from a day on.
    fn alarms(self, values: &[f64], from: usize) -> Vec<Alarm> {
        let mut alarms: Vec<Alarm> = Vec::new();
        for day in from..values.len() {
            match self {
                Detector::ChangePoints => {
                    for change in change_points(&values[..=day]) {
                        let is_told = |alarm: &Alarm| alarm.place.abs_diff(change.at) <= NEAR;
                        if !alarms.iter().any(is_told) {
                            let place = change.at;
                            alarms.push(Alarm { day, place });
                        }
                    }
                }
                Detector::Threshold(share) => {
                    let usual = median(&values[day - WINDOW..day]);
                    if (values[day] / usual - 1.0).abs() > share {
                        alarms.push(Alarm { day, place: day });
                    }
                }
            }
        }
        alarms
    }
}

/// What a detector makes of one noise.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The detector.
    pub detector: Detector,
    /// For each size of a change: the share that was found, and the median of days until it was.
    pub found: Vec<(f64, Option<f64>)>,
    /// False alarms a year, of one metric of one point.
    pub false_alarms: f64,
}

/// What all detectors make of one noise.
#[derive(Clone, Debug)]
pub struct Evaluation {
    noise: Noise,
    /// Change points first, then thresholds.
    pub judged: Vec<Judged>,
}

impl Evaluation {
    /// Of so many histories of each kind.
    pub fn of(noise: &Noise, histories: usize, seed: u64) -> Self {
        let thresholds = THRESHOLDS.iter().map(|share| Detector::Threshold(*share));
        let detectors = [Detector::ChangePoints].into_iter().chain(thresholds);
        let judged = detectors.map(|detector| judge(noise, detector, histories, seed));
        Self {
            noise: noise.clone(),
            judged: judged.collect(),
        }
    }
}

fn judge(noise: &Noise, detector: Detector, histories: usize, seed: u64) -> Judged {
    let found = CHANGES.map(|size| {
        // The same histories for each detector and size.
        let mut random = Rng::with_seed(seed);
        let mut delays = Vec::new();
        for _ in 0..histories {
            let mut values = noise.history(BEFORE + DAYS, &mut random);
            for value in &mut values[BEFORE..] {
                *value *= 1.0 - size;
            }
            let alarms = detector.alarms(&values, BEFORE);
            let first = alarms
                .iter()
                .find(|alarm| is_of_the_change(detector, alarm));
            delays.extend(first.map(|alarm| (alarm.day - BEFORE + 1) as f64));
        }
        let share = delays.len() as f64 / histories as f64;
        (share, (!delays.is_empty()).then(|| median(&delays)))
    });
    let mut random = Rng::with_seed(seed);
    let false_alarms: usize = (0..histories)
        .map(|_| {
            let values = noise.history(BEFORE + YEAR, &mut random);
            detector.alarms(&values, BEFORE).len()
        })
        .sum();
    Judged {
        detector,
        found: found.to_vec(),
        false_alarms: false_alarms as f64 / histories as f64,
    }
}

/// A change point lies near the change; a threshold's alarm comes while it still compares with values
/// before.
fn is_of_the_change(detector: Detector, alarm: &Alarm) -> bool {
    match detector {
        Detector::ChangePoints => alarm.place.abs_diff(BEFORE) <= NEAR,
        Detector::Threshold(_) => alarm.place < BEFORE + WINDOW.div_ceil(2),
    }
}

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = &self.noise.values;
        let variation = Summary::of(values).map_or(0.0, |summary| summary.variation());
        writeln!(
            f,
            "{}: {} values, coefficient of variation {:.1} %",
            self.noise.name,
            values.len(),
            variation * 100.0
        )?;
        write!(f, "{:<18}", "")?;
        for size in CHANGES {
            write!(f, "  {:>18}", format!("change of {:.0} %", size * 100.0))?;
        }
        writeln!(f, "  false alarms a year")?;
        for judged in &self.judged {
            write!(f, "{:<18}", judged.detector.to_string())?;
            for (share, delay) in &judged.found {
                let delay = delay.map_or("-".to_owned(), |days| format!("day {days:.0}"));
                write!(f, "  {:>7.0} %  {:>7}", share * 100.0, delay)?;
            }
            writeln!(f, "  {:>19.1}", judged.false_alarms)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(share: f64) -> Noise {
        let mut random = Rng::with_seed(7);
        let mut normal = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        Noise {
            name: "P".into(),
            values: (0..100)
                .map(|_| 1000.0 * (1.0 + share * normal()))
                .collect(),
        }
    }

    #[test]
    fn what_is_found_depends_on_noise_and_size() {
        let told = Evaluation::of(&noise(0.01), 10, 1);
        let [small, middle, large] = told.judged[0].found[..] else {
            panic!("{told}");
        };
        assert!(
            small.0 <= middle.0 && middle.0 >= 0.9 && large.0 >= 0.9,
            "{told}"
        );
        // A change point needs four values behind it; a threshold has its answer at once, and
        // says as much where nothing changes.
        assert!(large.1 >= Some(4.0), "{told}");
        let threshold = &told.judged[1];
        assert_eq!(threshold.detector, Detector::Threshold(0.02));
        assert_eq!(threshold.found[2], (1.0, Some(1.0)));
        assert!(
            threshold.false_alarms > 10.0 * told.judged[0].false_alarms,
            "{told}"
        );
        assert!(
            told.to_string()
                .contains("100 values, coefficient of variation 1.")
        );
    }

    #[test]
    fn values_are_read_as_they_are_written() {
        let line = |at: usize| format!("r{at}\tP, one\tms\t{}\n", at + 1);
        let text: String = (0..40).map(line).collect();
        let all = Noise::parse(&format!("revision\tpoint\tmetric\tvalue\n{text}")).unwrap();
        assert_eq!((all.len(), &*all[0].name), (1, "P, one, ms"));
        assert_eq!(all[0].values[39], 40.0);
        for (text, why) in [
            ("h\nr\tP\tm\t-1", "line 2 isn't"),
            ("h\nr\tP\tm\tx", "line 2 isn't"),
            ("h\nr\tP\t1", "line 2 isn't"),
            ("h\n", "no values"),
            ("h\nr\tP\tm\t1", "1 values are too few"),
        ] {
            let told = Noise::parse(text).unwrap_err().to_string();
            assert!(told.contains(why), "{told}");
        }
    }
}
