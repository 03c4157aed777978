//! The tables of a report.

use maud::{Markup, html};

use super::study::{StudiedPoint, Study};
use crate::Histogram;
use crate::report::{grouped, rate};
use crate::statistics::{Ratio, Summary, ratio};

/// All tables of a workload.
pub(super) fn of(study: &Study, workload: &str) -> Markup {
    html! {
        (throughput(study, workload))
        (figures(study, workload))
        (ratios(study, workload))
        (latencies(study, workload))
        (kinds(study, workload))
        (resources(study, workload))
    }
}

/// A table that can be moved sideways where there is little room, by keys as well.
pub(super) fn scrolled(caption: &str, content: Markup) -> Markup {
    html! {
        div.scroll role="region" tabindex="0" aria-label=(caption) {
            table { caption { (caption) } (content) }
        }
    }
}

/// A row for each point that has runs, in the order of series.
fn by_point(
    study: &Study,
    workload: &str,
    caption: &str,
    heads: &[&str],
    cells: impl Fn(&StudiedPoint) -> Vec<String>,
) -> Markup {
    let series = study.series(workload);
    let clients = study.clients(workload);
    scrolled(
        caption,
        html! {
            thead {
                tr {
                    th.text scope="col" { "series" }
                    th scope="col" { "clients" }
                    @for head in heads { th scope="col" { (head) } }
                }
            }
            tbody {
                @for series in &series {
                    @for clients in &clients {
                        @if let Some(point) = study.point(workload, series, *clients) {
                            tr {
                                th scope="row" { (series) }
                                td { (grouped(*clients)) }
                                @for cell in cells(point) { td { (cell) } }
                            }
                        }
                    }
                }
            }
        },
    )
}

fn throughput(study: &Study, workload: &str) -> Markup {
    let heads = [
        "runs",
        "mean",
        "± 95 %",
        "least",
        "most",
        "variation",
        "asked for",
        "rolled back",
    ];
    by_point(
        study,
        workload,
        &format!("{workload}: transactions a second"),
        &heads,
        |point| {
            let summary = point.summary();
            let runs = point.throughputs();
            let least = runs.iter().copied().fold(f64::INFINITY, f64::min);
            let most = runs.iter().copied().fold(0.0, f64::max);
            vec![
                summary.count.to_string(),
                rate(summary.mean),
                match summary.count {
                    1 => "–".into(),
                    _ => rate(summary.half_interval),
                },
                rate(least),
                rate(most),
                match summary.count {
                    1 => "–".into(),
                    _ => format!("{:.1} %", summary.variation() * 100.0),
                },
                point.rate.map_or("–".into(), rate),
                grouped(point.runs.iter().map(|run| run.conflicts).sum()),
            ]
        },
    )
}

/// What the workload has of its own: tpmC, rows a second, and the like.
fn figures(study: &Study, workload: &str) -> Markup {
    let points = study.points.iter();
    let runs = points
        .filter(|point| point.workload == workload)
        .flat_map(|point| &point.runs);
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in runs.flat_map(|run| &run.figures) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return html! {};
    }
    let heads: Vec<String> = names
        .iter()
        .flat_map(|name| [(*name).to_owned(), "± 95 %".to_owned()])
        .collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let caption = format!("{workload}: its own figures, means of the runs");
    by_point(study, workload, &caption, &heads, |point| {
        let cells = names
            .iter()
            .flat_map(|name| match Summary::of(&point.figures(name)) {
                None => ["–".to_owned(), "–".to_owned()],
                Some(summary) if summary.count == 1 => [rate(summary.mean), "–".to_owned()],
                Some(summary) => [rate(summary.mean), rate(summary.half_interval)],
            });
        cells.collect()
    })
}

/// Each kind of transaction, of workloads that have several.
fn kinds(study: &Study, workload: &str) -> Markup {
    let points = || {
        let series = study.series(workload).into_iter();
        let clients = study.clients(workload);
        series.flat_map(move |series| {
            let of = clients.clone().into_iter();
            of.filter_map(move |clients| study.point(workload, series, clients))
        })
    };
    if points().all(|point| point.kinds().is_empty()) {
        return html! {};
    }
    let heads = [
        "clients",
        "share",
        "rolled back",
        "mean",
        "50 %",
        "90 %",
        "99 %",
        "longest",
    ];
    let caption = format!("{workload}: kinds of transactions, latencies in milliseconds");
    scrolled(
        &caption,
        html! {
            thead {
                tr {
                    th.text scope="col" { "series" }
                    th.text scope="col" { "transaction" }
                    @for head in heads { th scope="col" { (head) } }
                }
            }
            tbody {
                @for point in points() {
                    @let all = point.latencies().count().max(1);
                    @for kind in point.kinds() {
                        tr {
                            th scope="row" { (point.series) }
                            td.text { (kind.name) }
                            td { (grouped(point.clients)) }
                            td { (format!("{:.1} %", kind.latencies.count() as f64 / all as f64 * 100.0)) }
                            td { (grouped(kind.conflicts)) }
                            @for latency in kind_latencies(&kind.latencies) { td { (latency) } }
                        }
                    }
                }
            }
        },
    )
}

fn kind_latencies(latencies: &Histogram) -> [String; 5] {
    let [half, most, nearly_all] = [0.5, 0.9, 0.99].map(|share| latencies.percentile(share));
    [latencies.mean(), half, most, nearly_all, latencies.max()].map(milliseconds)
}

fn milliseconds(latency: std::time::Duration) -> String {
    format!("{:.3}", latency.as_secs_f64() * 1e3)
}

/// Each series by the baseline, at each number of clients.
fn ratios(study: &Study, workload: &str) -> Markup {
    let series = study.series(workload);
    let [baseline, others @ ..] = &series[..] else {
        return html! {};
    };
    if others.is_empty() {
        return html! {};
    }
    let clients = study.clients(workload);
    let of = |series: &str, clients: u64| {
        let runs = study.point(workload, series, clients)?.throughputs();
        ratio(
            &runs,
            &study.point(workload, baseline, clients)?.throughputs(),
        )
    };
    scrolled(
        &format!("{workload}: throughput by that of {baseline}, with 95 % bootstrap intervals"),
        html! {
            thead {
                tr {
                    th.text scope="col" { "series" }
                    @for clients in &clients { th scope="col" { (grouped(*clients)) " clients" } }
                }
            }
            tbody {
                @for series in others {
                    tr {
                        th scope="row" { (series) }
                        @for clients in &clients { td { (in_words(of(series, *clients))) } }
                    }
                }
            }
        },
    )
}

fn in_words(ratio: Option<Ratio>) -> String {
    match ratio {
        None => "–".into(),
        Some(Ratio { ratio, low, high }) => format!("{ratio:.2} ({low:.2} to {high:.2})"),
    }
}

fn latencies(study: &Study, workload: &str) -> Markup {
    let heads = ["mean", "50 %", "95 %", "99 %", "99.9 %", "longest"];
    by_point(
        study,
        workload,
        &format!("{workload}: latency of all runs, in milliseconds"),
        &heads,
        |point| {
            let latencies = point.latencies();
            let shares = [0.5, 0.95, 0.99, 0.999].map(|share| latencies.percentile(share));
            let [a, b, c, d] = shares;
            [latencies.mean(), a, b, c, d, latencies.max()]
                .map(milliseconds)
                .into()
        },
    )
}

fn resources(study: &Study, workload: &str) -> Markup {
    let heads = [
        "server µs a transaction",
        "clients µs a transaction",
        "server switches a transaction",
        "server MiB",
        "warm-up s",
    ];
    let caption =
        format!("{workload}: processor time, context switches, memory; means of the runs");
    by_point(study, workload, &caption, &heads, |point| {
        let mean = |of: &dyn Fn(&super::study::StudiedRun) -> Option<f64>| {
            let values: Option<Vec<f64>> = point.runs.iter().map(of).collect();
            let values = values.filter(|values| !values.is_empty())?;
            Some(values.iter().sum::<f64>() / values.len() as f64)
        };
        let shown = |value: Option<f64>, digits: usize| {
            value.map_or("–".into(), |value| format!("{value:.digits$}"))
        };
        let a_transaction =
            |value: f64, transactions: u64| (transactions > 0).then(|| value / transactions as f64);
        vec![
            shown(
                mean(&|run| a_transaction(run.server_seconds? * 1e6, run.transactions)),
                1,
            ),
            shown(
                mean(&|run| a_transaction(run.client_seconds * 1e6, run.transactions)),
                1,
            ),
            shown(
                mean(&|run| a_transaction(run.server_switches? as f64, run.transactions)),
                2,
            ),
            shown(
                mean(&|run| Some(run.server_memory? as f64 / 1_048_576.0)),
                1,
            ),
            shown(mean(&|run| Some(run.warm_up_seconds)), 1),
        ]
    })
}
