//! The report of an experiment: one page of HTML that needs nothing beside itself, no script and no
//! network.
//!
//! Each chart has its figures in a table beside: for who can't see it, and for who wants to copy
//! them. Charts are SVG within the page; as files of their own they say themselves what they are.
//!
//! ```text
//! results ──► study ──► figures ──► chart ──► SVG ──┐
//!               └─────► tables ─────────────────────┴──► page
//! ```

mod figures;
pub(crate) mod study;
mod tables;

use std::path::{Path, PathBuf};

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::chart::{DARK_RULES, standalone};
use crate::{Error, Results};

use figures::Figure;
use study::Study;

const STYLE: &str = include_str!("page.css");
/// Runs of a point that lie further apart than this are said to.
const VARIATION_MAX: f64 = 0.2;

/// A report.
pub struct Page {
    html: String,
    figures: Vec<Figure>,
}

impl Page {
    /// Of all that was measured so far. `baseline` is the series that others are compared with: that
    /// of the experiment's file by default, or the first.
    pub fn of(results: &Results, baseline: Option<&str>) -> Result<Self, Error> {
        let mut study = Study::read(results)?;
        if let Some(baseline) = baseline {
            let workloads = study.workloads().into_iter();
            let mut names: Vec<&str> = workloads
                .flat_map(|workload| study.series(workload))
                .collect();
            names.sort_unstable();
            names.dedup();
            if !names.contains(&baseline) {
                let what = format!("the baseline is one of: {}", names.join("; "));
                return Err(Error::Plan(what));
            }
            study.baseline = Some(baseline.to_owned());
        }
        let figures: Vec<(String, Vec<Figure>)> = study
            .workloads()
            .into_iter()
            .filter(|workload| study.has_runs(workload))
            .map(|workload| (workload.to_owned(), figures::of(&study, workload)))
            .collect();
        let html = page(&study, &figures).into_string();
        let figures = figures.into_iter().flat_map(|(_, figures)| figures);
        Ok(Self {
            html,
            figures: figures.collect(),
        })
    }

    /// The page.
    pub fn html(&self) -> &str {
        &self.html
    }

    /// Writes each chart as an SVG file into a folder. Returned are the files.
    pub fn write_figures(&self, folder: &Path) -> Result<Vec<PathBuf>, Error> {
        let unwritten = |path: &Path, error| Error::Plan(format!("{}: {error}", path.display()));
        crate::make_folder(folder)?;
        let mut files = Vec::new();
        for figure in &self.figures {
            let name: String = figure
                .name
                .chars()
                .map(|c| {
                    if c.is_ascii_alphanumeric() || c == '_' {
                        c
                    } else {
                        '-'
                    }
                })
                .collect();
            let mut path = folder.join(format!("{name}.svg"));
            // Names that differ in other characters.
            while files.contains(&path) {
                path.set_file_name(format!("{name}-{}.svg", files.len()));
            }
            std::fs::write(&path, standalone(&figure.svg))
                .map_err(|error| unwritten(&path, error))?;
            files.push(path);
        }
        Ok(files)
    }
}

fn page(study: &Study, figures: &[(String, Vec<Figure>)]) -> Markup {
    let body = html! {
        header {
            h1 { (study.title) }
            (summary(study))
        }
        main id="measured" {
            @for (workload, figures) in figures {
                section aria-label=(workload) {
                    h2 { (workload) }
                    div.figures {
                        @for figure in figures { (drawn_as(&figure.caption, &figure.svg)) }
                    }
                    (tables::of(study, workload))
                }
            }
            (failures(study))
        }
        (foot(study))
    };
    document(&study.title, body)
}

/// A page with a body, whose main part is called `measured`.
pub(crate) fn document(title: &str, body: Markup) -> Markup {
    let style = format!("{STYLE}@media(prefers-color-scheme:dark){{{DARK_RULES}}}");
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(style)) }
            }
            body {
                a.skip href="#measured" { "To the results" }
                (body)
            }
        }
    }
}

fn summary(study: &Study) -> Markup {
    let done: usize = study.points.iter().map(|point| point.runs.len()).sum();
    let unsteady = study
        .points
        .iter()
        .filter(|point| point.summary().variation() > VARIATION_MAX);
    let unsteady = unsteady.count();
    let runs = study.points.iter().flat_map(|point| &point.runs);
    let moving = runs.filter(|run| run.is_stationary == Some(false)).count();
    html! {
        p {
            (study.points.len()) " points, " (study.runs_a_point) " runs of each, " (study.seconds)
            " s a run, shuffled with seed " (study.seed) ": " (done) " runs are done."
        }
        @if !study.failures.is_empty() {
            p.note { (study.failures.len()) " runs came to nothing: why is told below." }
        }
        @if study.planned > 0 {
            p.note { (study.planned) " runs are still to come: these are the results so far." }
        }
        @if unsteady > 0 {
            p.note {
                "Of " (unsteady) " points, runs lie further apart than 20 % of their mean (standard deviation): the machine was busy, or the server is unsteady there."
            }
        }
        @if moving > 0 {
            p.note { "In " (moving) " runs throughput was not stationary yet when the warm-up had to end." }
        }
    }
}

/// A chart in a page, which says what it shows to who can't see it.
pub(crate) fn drawn_as(caption: &str, svg: &str) -> Markup {
    html! {
        figure {
            div.drawing role="img" tabindex="0" aria-label=(caption) { (PreEscaped(svg)) }
            figcaption { (caption) }
        }
    }
}

fn failures(study: &Study) -> Markup {
    html! {
        @if !study.failures.is_empty() {
            section aria-label="Runs that came to nothing" {
                h2 { "Runs that came to nothing" }
                (tables::scrolled("Why runs came to nothing", html! {
                    thead { tr { @for head in ["series", "workload", "clients", "why"] { th.text scope="col" { (head) } } } }
                    tbody {
                        @for failure in &study.failures {
                            tr { @for cell in failure { td.text { (cell) } } }
                        }
                    }
                }))
            }
        }
    }
}

fn foot(study: &Study) -> Markup {
    html! {
        footer {
            h2 { "Machine and servers" }
            @for (subject, facts) in &study.facts {
                (tables::scrolled(subject, html! {
                    tbody {
                        @for (name, value) in facts {
                            tr { th scope="row" { (name) } td.text { (value) } }
                        }
                    }
                }))
            }
            h2 { "How to do it again" }
            @for (number, (name, content)) in study.files.iter().enumerate() {
                @let file = Path::new(name).file_name().unwrap_or_default().to_string_lossy().into_owned();
                @if number == 0 { p { "Save this file and run " code { "porpoise lab run " (file) } ":" } }
                @else { p { "Beside it, " code { (name) } ":" } }
                pre tabindex="0" { code { (content) } }
            }
        }
    }
}
