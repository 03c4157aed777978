//! Pictures of measurements: panels of curves, as SVG.
//!
//! ```text
//!  ┌ title ────────────────────────────────┐
//!  │ legend: ● one  ■ two  …               │      both axes are logarithmic: threads double, and
//!  │ ┌ panel ───────┐  ┌ panel ───────┐    │      locks differ by factors
//!  │ │              │  │              │    │
//!  │ └──────────────┘  └──────────────┘    │
//!  └───────────────────────────────────────┘
//! ```

use std::fmt;

/// Panels side by side, two in a row, with one legend.
pub(crate) struct Picture {
    pub title: String,
    /// What the axes show, with their units.
    pub x: String,
    pub y: String,
    pub panels: Vec<Panel>,
}

/// One pair of axes.
pub(crate) struct Panel {
    pub title: String,
    pub curves: Vec<Curve>,
}

/// A line through its points, from left to right. Values are positive.
pub(crate) struct Curve {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

const PANEL_WIDTH: f64 = 400.0;
const PANEL_HEIGHT: f64 = 260.0;
/// Around a panel: for the labels of its axes and its title.
const LEFT: f64 = 62.0;
const ABOVE: f64 = 34.0;
const BELOW: f64 = 52.0;
const RIGHT: f64 = 18.0;
/// Above all panels, for title and legend.
const HEAD: f64 = 66.0;
const COLUMNS: usize = 2;
const LEGEND_WIDTH: f64 = 118.0;

/// Colours that people who see few colours tell apart (Okabe and Ito); a marker beside, for print.
const COLOURS: [&str; 7] = [
    "#999999", "#56B4E9", "#009E73", "#CC79A7", "#E69F00", "#D55E00", "#0072B2",
];
const MARKERS: [Marker; 4] = [
    Marker::Circle,
    Marker::Square,
    Marker::Diamond,
    Marker::Triangle,
];

#[derive(Clone, Copy)]
enum Marker {
    Circle,
    Square,
    Diamond,
    Triangle,
}

impl Marker {
    fn draw(self, f: &mut fmt::Formatter<'_>, (x, y): (f64, f64), colour: &str) -> fmt::Result {
        let corners: &[(f64, f64)] = match self {
            Marker::Circle => {
                return writeln!(
                    f,
                    r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.5" fill="{colour}"/>"#
                );
            }
            Marker::Square => &[(-3.2, -3.2), (3.2, -3.2), (3.2, 3.2), (-3.2, 3.2)],
            Marker::Diamond => &[(0.0, -4.6), (4.6, 0.0), (0.0, 4.6), (-4.6, 0.0)],
            Marker::Triangle => &[(0.0, -4.4), (4.2, 3.4), (-4.2, 3.4)],
        };
        write!(f, r#"<polygon fill="{colour}" points=""#)?;
        for (dx, dy) in corners {
            write!(f, "{:.1},{:.1} ", x + dx, y + dy)?;
        }
        writeln!(f, r#""/>"#)
    }
}

/// How a curve looks, by its place.
fn look(number: usize) -> (&'static str, Marker) {
    (
        COLOURS[number % COLOURS.len()],
        MARKERS[number % MARKERS.len()],
    )
}

/// Maps values to positions, by their logarithm.
struct Scale {
    low: f64,
    high: f64,
    at_low: f64,
    at_high: f64,
}

impl Scale {
    fn place(&self, value: f64) -> f64 {
        let span = (self.high / self.low).ln();
        let part = if span > 0.0 {
            (value / self.low).ln() / span
        } else {
            0.5
        };
        self.at_low + part * (self.at_high - self.at_low)
    }
}

/// The figures on a logarithmic axis: 1, 2, 5, 10, 20, …
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let mut ticks = Vec::new();
    let mut power = 10f64.powf(low.log10().floor());
    while power <= high {
        ticks.extend(
            [1.0, 2.0, 5.0]
                .map(|step| step * power)
                .into_iter()
                .filter(|tick| (low * 0.999..=high * 1.001).contains(tick)),
        );
        power *= 10.0;
    }
    ticks
}

/// From the largest tick below all values to the smallest above.
fn bounds(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let least = values.clone().fold(f64::INFINITY, f64::min);
    let most = values.fold(0.0, f64::max);
    if !(least > 0.0 && least.is_finite()) {
        return (1.0, 10.0);
    }
    let all = ticks(least / 10.0, most * 10.0);
    let low = all.iter().rev().find(|tick| **tick <= least);
    let high = all.iter().find(|tick| **tick >= most);
    (*low.unwrap_or(&least), *high.unwrap_or(&most))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cell = (LEFT + PANEL_WIDTH + RIGHT, ABOVE + PANEL_HEIGHT + BELOW);
        let columns = self.panels.len().clamp(1, COLUMNS);
        let width = cell.0 * columns as f64;
        let height = HEAD + cell.1 * self.panels.len().div_ceil(columns) as f64;
        writeln!(
            f,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif" font-size="12">"#
        )?;
        writeln!(f, r##"<rect width="100%" height="100%" fill="#fff"/>"##)?;
        writeln!(
            f,
            r#"<text x="{LEFT}" y="26" font-size="17" font-weight="bold">{}</text>"#,
            escaped(&self.title)
        )?;
        for (number, curve) in self.panels.iter().flat_map(|p| &p.curves).enumerate() {
            if number >= self.panels[0].curves.len() {
                break;
            }
            let (colour, marker) = look(number);
            let x = LEFT + number as f64 * LEGEND_WIDTH;
            marker.draw(f, (x + 5.0, 50.0), colour)?;
            writeln!(
                f,
                r#"<text x="{:.1}" y="54">{}</text>"#,
                x + 14.0,
                escaped(&curve.name)
            )?;
        }
        for (number, panel) in self.panels.iter().enumerate() {
            let corner = (
                (number % columns) as f64 * cell.0 + LEFT,
                HEAD + (number / columns) as f64 * cell.1 + ABOVE,
            );
            self.draw_panel(f, panel, corner)?;
        }
        writeln!(f, "</svg>")
    }
}

impl Picture {
    fn draw_panel(
        &self,
        f: &mut fmt::Formatter<'_>,
        panel: &Panel,
        (left, top): (f64, f64),
    ) -> fmt::Result {
        let points = panel.curves.iter().flat_map(|curve| &curve.points);
        let mut stops: Vec<f64> = points.clone().map(|point| point.0).collect();
        stops.sort_by(f64::total_cmp);
        stops.dedup();
        let (right, bottom) = (left + PANEL_WIDTH, top + PANEL_HEIGHT);
        let x = Scale {
            low: stops.first().copied().unwrap_or(1.0),
            high: stops.last().copied().unwrap_or(1.0),
            at_low: left + 12.0,
            at_high: right - 12.0,
        };
        let (low, high) = bounds(points.map(|point| point.1));
        let y = Scale {
            low,
            high,
            at_low: bottom,
            at_high: top,
        };
        writeln!(
            f,
            r#"<text x="{left}" y="{:.1}" font-weight="bold">{}</text>"#,
            top - 10.0,
            escaped(&panel.title)
        )?;
        for tick in ticks(low, high) {
            let at = y.place(tick);
            writeln!(
                f,
                r##"<path d="M{left:.1} {at:.1}H{right:.1}" stroke="#ddd"/><text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"##,
                left - 7.0,
                at + 4.0,
                (tick * 1e6).round() / 1e6
            )?;
        }
        for &stop in &stops {
            let at = x.place(stop);
            writeln!(
                f,
                r##"<path d="M{at:.1} {bottom:.1}v5" stroke="#333"/><text x="{at:.1}" y="{:.1}" text-anchor="middle">{stop}</text>"##,
                bottom + 19.0
            )?;
        }
        writeln!(
            f,
            r##"<path d="M{left:.1} {top:.1}V{bottom:.1}H{right:.1}" fill="none" stroke="#333"/>"##
        )?;
        writeln!(
            f,
            r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            (left + right) / 2.0,
            bottom + 38.0,
            escaped(&self.x)
        )?;
        let (label_x, label_y) = (left - 44.0, (top + bottom) / 2.0);
        writeln!(
            f,
            r#"<text transform="translate({label_x:.1} {label_y:.1}) rotate(-90)" text-anchor="middle">{}</text>"#,
            escaped(&self.y)
        )?;
        for (number, curve) in panel.curves.iter().enumerate() {
            let (colour, marker) = look(number);
            let places: Vec<(f64, f64)> = curve
                .points
                .iter()
                .map(|point| (x.place(point.0), y.place(point.1)))
                .collect();
            write!(
                f,
                r#"<polyline fill="none" stroke="{colour}" stroke-width="2" points=""#
            )?;
            for (x, y) in &places {
                write!(f, "{x:.1},{y:.1} ")?;
            }
            writeln!(f, r#""/>"#)?;
            for place in places {
                marker.draw(f, place, colour)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_begin_and_end_on_round_figures() {
        assert_eq!(bounds([3.1, 47.0].into_iter()), (2.0, 50.0));
        assert_eq!(ticks(2.0, 50.0), [2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(bounds([0.0].into_iter()), (1.0, 10.0));
    }

    #[test]
    fn larger_values_are_drawn_higher() {
        let y = Scale {
            low: 1.0,
            high: 100.0,
            at_low: 200.0,
            at_high: 0.0,
        };
        assert_eq!([1.0, 10.0, 100.0].map(|v| y.place(v)), [200.0, 100.0, 0.0]);
    }

    #[test]
    fn text_is_escaped() {
        let picture = Picture {
            title: "a < b & c".into(),
            x: "x".into(),
            y: "y".into(),
            panels: Vec::new(),
        };
        assert!(picture.to_string().contains("a &lt; b &amp; c"));
    }
}
