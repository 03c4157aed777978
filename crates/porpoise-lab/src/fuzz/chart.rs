//! Statements a second: a bar a way in, and a line of every minute.

use std::fmt;

use super::{FuzzPlan, FuzzReport};
use crate::Error;
use crate::chart::{Bar, Curve, Panel, Picture, standalone};
use crate::report::grouped;

/// Letters of the longest bar.
const WIDTH: usize = 50;
/// Eighths of a letter.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Bars for a terminal, where there is something to compare.
pub(super) fn bars(report: &FuzzReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if report.ways.len() < 2 {
        return Ok(());
    }
    let most = report.ways.iter().map(|way| way.per_second());
    let most = most.fold(1e-9, f64::max);
    writeln!(f)?;
    for way in &report.ways {
        let rate = way.per_second();
        let eighths = (rate / most * (WIDTH * 8) as f64).round() as usize;
        let bar = "█".repeat(eighths / 8) + EIGHTHS[eighths % 8];
        let rate = grouped(rate.round() as u64);
        writeln!(f, "{:<20} {bar} {rate}/s", way.way.to_string())?;
    }
    Ok(())
}

/// Writes both charts as SVG, and the minutes as a table, into the folder of findings.
pub(super) fn write(plan: &FuzzPlan, report: &FuzzReport) -> Result<(), Error> {
    let mut text = String::from("way,minute,statements_per_second\n");
    for way in &report.ways {
        for (at, rate) in way.minutes.iter().enumerate() {
            text += &format!("{},{},{rate:.1}\n", way.way.key(), at + 1);
        }
    }
    std::fs::write(plan.folder.join("minutes.csv"), text)?;
    let title = "Random statements a second";
    let bars: Vec<Bar> = report
        .ways
        .iter()
        .map(|way| {
            let rate = way.per_second();
            let low = way.minutes.iter().copied().fold(rate, f64::min);
            let high = way.minutes.iter().copied().fold(rate, f64::max);
            Bar {
                name: way.way.to_string(),
                value: rate,
                low,
                high,
            }
        })
        .collect();
    let svg = crate::chart::bars(title, "statements a second", &bars);
    std::fs::write(plan.folder.join("ways.svg"), standalone(&svg))?;
    let curves: Vec<Curve> = report
        .ways
        .iter()
        .filter(|way| way.minutes.len() > 1)
        .map(|way| Curve {
            name: way.way.to_string(),
            line: (1..)
                .map(f64::from)
                .zip(way.minutes.iter().copied())
                .collect(),
            ..Curve::default()
        })
        .collect();
    if curves.is_empty() {
        return Ok(());
    }
    let picture = Picture {
        title: title.into(),
        x: "minute".into(),
        y: "statements a second".into(),
        panels: vec![Panel {
            title: String::new(),
            curves,
        }],
        columns: 1,
        ..Picture::default()
    };
    std::fs::write(plan.folder.join("minutes.svg"), standalone(&picture.svg()))?;
    Ok(())
}
