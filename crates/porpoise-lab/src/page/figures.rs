//! The charts of a report.

use super::study::{StudiedPoint, Study};
use crate::chart::{Bar, Curve, Panel, Picture, Scale, bars};
use crate::report::grouped;

/// Runs of which a second is too short to see: throughput is shown by the minute.
const LONG_SECONDS: f64 = 180.0;

/// A chart with its name as a file, and what it says to who can't see it.
pub(super) struct Figure {
    pub name: String,
    pub caption: String,
    pub svg: String,
}

/// All charts of a workload.
pub(super) fn of(study: &Study, workload: &str) -> Vec<Figure> {
    let mut figures = vec![throughput_bars(study, workload)];
    if study.clients(workload).len() > 1 {
        figures.push(throughput(study, workload));
    }
    if study.runs_a_point > 1 {
        figures.push(variation(study, workload));
    }
    for clients in study.clients(workload) {
        figures.push(percentiles(study, workload, clients));
        figures.push(over_time(study, workload, clients));
    }
    figures
}

fn clients_in_words(clients: u64) -> String {
    match clients {
        1 => "1 client".to_owned(),
        many => format!("{} clients", grouped(many)),
    }
}

/// A curve for each series, of what is asked of its points.
fn curves(
    study: &Study,
    workload: &str,
    add: impl Fn(&mut Curve, f64, &StudiedPoint),
) -> Vec<Curve> {
    let of_series = |series: &&str| {
        let mut curve = Curve {
            name: (*series).to_owned(),
            ..Curve::default()
        };
        for clients in study.clients(workload) {
            if let Some(point) = study.point(workload, series, clients) {
                add(&mut curve, clients as f64, point);
            }
        }
        curve
    };
    study.series(workload).iter().map(of_series).collect()
}

fn by_clients(workload: &str, what: &str, y: &str, y_scale: Scale, curves: Vec<Curve>) -> Picture {
    Picture {
        title: format!("{workload}: {what}"),
        x: "clients".into(),
        y: y.into(),
        x_scale: Scale::Stops,
        y_scale,
        panels: vec![Panel {
            title: String::new(),
            curves,
        }],
        columns: 1,
    }
}

fn figure(name: String, caption: String, picture: &Picture) -> Figure {
    Figure {
        name,
        caption,
        svg: picture.svg(),
    }
}

fn throughput(study: &Study, workload: &str) -> Figure {
    let curves = curves(study, workload, |curve, clients, point| {
        let summary = point.summary();
        curve.line.push((clients, summary.mean));
        if summary.count > 1 {
            let low = (summary.mean - summary.half_interval).max(0.0);
            curve
                .intervals
                .push((clients, low, summary.mean + summary.half_interval));
        }
        let dots = point.throughputs().into_iter();
        curve
            .dots
            .extend(dots.map(|per_second| (clients, per_second)));
    });
    let picture = by_clients(
        workload,
        "throughput",
        "transactions a second",
        Scale::Linear,
        curves,
    );
    let caption = format!(
        "Throughput of {workload} by number of clients: {} runs as dots, means as diamonds with their 95 % intervals. The table below has the figures.",
        picture.dots()
    );
    figure(format!("{workload}-throughput"), caption, &picture)
}

fn throughput_bars(study: &Study, workload: &str) -> Figure {
    let clients = study.clients(workload).into_iter().max().unwrap_or(1);
    let series = study.series(workload).into_iter();
    let all: Vec<Bar> = series
        .filter_map(|series| {
            let summary = study.point(workload, series, clients)?.summary();
            Some(Bar {
                name: series.to_owned(),
                value: summary.mean,
                low: summary.mean - summary.half_interval,
                high: summary.mean + summary.half_interval,
            })
        })
        .collect();
    let words = clients_in_words(clients);
    Figure {
        name: format!("{workload}-bars"),
        caption: format!("Throughput of {workload} with {words}: means with their 95 % intervals."),
        svg: bars(
            &format!("{workload}: {words}"),
            "transactions a second",
            &all,
        ),
    }
}

fn variation(study: &Study, workload: &str) -> Figure {
    let curves = curves(study, workload, |curve, clients, point| {
        let summary = point.summary();
        if summary.count > 1 {
            let percent = summary.variation() * 100.0;
            curve.line.push((clients, percent));
            curve.dots.push((clients, percent));
        }
    });
    let picture = by_clients(
        workload,
        "variation between runs",
        "standard deviation, % of mean",
        Scale::Linear,
        curves,
    );
    let caption = format!(
        "Coefficient of variation of {workload}: how far its runs lie apart. Lower is steadier."
    );
    figure(format!("{workload}-variation"), caption, &picture)
}

/// Latency against percentile.
fn percentiles(study: &Study, workload: &str, clients: u64) -> Figure {
    const SHARES: [f64; 9] = [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999];
    let of_series = |series: &str| {
        let latencies = study.point(workload, series, clients)?.latencies();
        // A percentile that no transaction is beyond says nothing.
        let is_told = |share: &&f64| (1.0 - **share) * latencies.count() as f64 >= 1.0;
        let points: Vec<(f64, f64)> = SHARES
            .iter()
            .filter(is_told)
            .map(|share| {
                let latency = latencies.percentile(*share).as_secs_f64() * 1e3;
                (1.0 / (1.0 - share), latency)
            })
            .collect();
        Some(Curve {
            name: series.to_owned(),
            line: points.clone(),
            dots: points,
            intervals: Vec::new(),
        })
    };
    let series = study.series(workload).into_iter();
    let words = clients_in_words(clients);
    let picture = Picture {
        title: format!("{workload}, {words}: latency"),
        x: "one of so many transactions is slower".into(),
        y: "milliseconds".into(),
        x_scale: Scale::Logarithmic,
        y_scale: Scale::Logarithmic,
        panels: vec![Panel {
            title: String::new(),
            curves: series.filter_map(of_series).collect(),
        }],
        columns: 1,
    };
    let caption = format!(
        "Latency of {workload} with {words} by percentile, of all runs together: at 100, one of a hundred transactions is slower (99th percentile)."
    );
    figure(format!("{workload}-latency-{clients}"), caption, &picture)
}

/// Throughput in the course of the runs: each run's seconds as dots, the mean of the runs as a line;
/// of long runs, minutes.
fn over_time(study: &Study, workload: &str, clients: u64) -> Figure {
    let is_long = study.seconds >= LONG_SECONDS;
    let (unit, of_run): (_, fn(&[(f64, f64)]) -> _) = match is_long {
        true => ("minutes", minutes),
        false => ("seconds", each),
    };
    let of_series = |series: &str| {
        let point = study.point(workload, series, clients)?;
        let runs = point.runs.iter();
        let dots: Vec<(f64, f64)> = runs.flat_map(|run| of_run(&run.seconds)).collect();
        Some(Curve {
            name: series.to_owned(),
            line: means(&dots),
            dots,
            intervals: Vec::new(),
        })
    };
    let series = study.series(workload).into_iter();
    let words = clients_in_words(clients);
    let picture = Picture {
        title: format!("{workload}, {words}: throughput over time"),
        x: format!("{unit} since measuring began"),
        y: "transactions a second".into(),
        panels: vec![Panel {
            title: String::new(),
            curves: series.filter_map(of_series).collect(),
        }],
        columns: 1,
        ..Picture::default()
    };
    let caption = format!(
        "Throughput of {workload} with {words} over time: {} {unit} of all runs as dots, their means as lines.",
        picture.dots()
    );
    figure(format!("{workload}-time-{clients}"), caption, &picture)
}

/// Seconds as they are.
fn each(seconds: &[(f64, f64)]) -> Vec<(f64, f64)> {
    // One ends a little late, in each run otherwise.
    let rounded = |at: f64| (at * 10.0).round() / 10.0;
    seconds
        .iter()
        .map(|&(at, rate)| (rounded(at), rate))
        .collect()
}

/// The mean throughput of each minute, at its number.
fn minutes(seconds: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let minute = |at: f64| (each(&[(at, 0.0)])[0].0 / 60.0).ceil().max(1.0);
    let in_minutes: Vec<(f64, f64)> = seconds
        .iter()
        .map(|&(at, rate)| (minute(at), rate))
        .collect();
    means(&in_minutes)
}

/// The mean of all dots with the same x.
fn means(dots: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut sorted = dots.to_vec();
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
    let at_one_x = sorted.chunk_by(|one, other| one.0 == other.0);
    at_one_x
        .map(|dots| {
            (
                dots[0].0,
                dots.iter().map(|dot| dot.1).sum::<f64>() / dots.len() as f64,
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_minutes() {
        let seconds: Vec<(f64, f64)> = (1..=120)
            .map(|s| (f64::from(s) + 0.01, f64::from(s)))
            .collect();
        assert_eq!(minutes(&seconds), [(1.0, 30.5), (2.0, 90.5)]);
        assert_eq!(each(&seconds).len(), 120);
        assert_eq!(
            means(&[(2.0, 1.0), (1.0, 5.0), (2.0, 3.0)]),
            [(1.0, 5.0), (2.0, 2.0)]
        );
    }
}
