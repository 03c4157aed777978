//! Charts as SVG, drawn by plotters: curves with a dot for each value and intervals, and bars.
//!
//! ```text
//!  ┌ title ───────────────────────────────┐
//!  │ legend: ■ one  ■ two                 │     a dot is a measured value; a diamond, on the curve, a
//!  │ ┌ panel ───────┐  ┌ panel ───────┐   │     mean; an upright line its interval
//!  │ └──────────────┘  └──────────────┘   │
//!  └──────────────────────────────────────┘
//! ```
//!
//! A chart has few colours of its own, which rules of CSS replace where a page is dark
//! ([`DARK_RULES`]): an attribute of SVG gives way to any rule.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Text and axes, and the lines of the grid.
const INK: RGBColor = RGBColor(0x1F, 0x23, 0x28);
const GRID: RGBColor = RGBColor(0xD0, 0xD7, 0xDE);
/// Each has three times the contrast to white and to nearly black that WCAG asks of graphics, and
/// neighbours differ for people who see few colours.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0x1F, 0x77, 0xC4),
    RGBColor(0xC4, 0x5A, 0x00),
    RGBColor(0x0A, 0x8F, 0x6A),
    RGBColor(0xB8, 0x50, 0x8E),
    RGBColor(0x80, 0x70, 0x5A),
    RGBColor(0x7A, 0x68, 0xC8),
    RGBColor(0xC8, 0x45, 0x45),
    RGBColor(0x78, 0x7F, 0x00),
];
/// What a page that is dark makes of a chart's ink and grid.
pub(crate) const DARK_RULES: &str = r##"[fill="#1F2328"]{fill:#E6EDF3}[stroke="#1F2328"]{stroke:#E6EDF3}[stroke="#D0D7DE"]{stroke:#30363D}"##;

const FONT: &str = "system-ui, sans-serif";
const PANEL_WIDTH: u32 = 560;
const PANEL_HEIGHT: u32 = 330;
const TITLE_HEIGHT: u32 = 34;
const LEGEND_LINE: u32 = 22;
const BAR_HEIGHT: u32 = 30;
/// What a letter takes at most, in the legend and beside bars.
const LETTER_WIDTH: f64 = 7.2;
const TEXT_SIZE: f64 = 16.0;

/// A picture: panels with one legend.
#[derive(Clone, Debug, Default)]
pub(crate) struct Picture {
    pub title: String,
    /// What the axes show, with their units.
    pub x: String,
    pub y: String,
    pub x_scale: Scale,
    pub y_scale: Scale,
    pub panels: Vec<Panel>,
    /// Panels in a row.
    pub columns: usize,
}

/// One pair of axes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Panel {
    pub title: String,
    /// In all panels of a picture, a name has the same place: its colour is that.
    pub curves: Vec<Curve>,
}

/// A line through means, with what they are of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Curve {
    pub name: String,
    /// From left to right.
    pub line: Vec<(f64, f64)>,
    /// Measured values.
    pub dots: Vec<(f64, f64)>,
    /// Ends of intervals, at an x.
    pub intervals: Vec<(f64, f64, f64)>,
}

/// How an axis maps values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scale {
    /// From zero.
    #[default]
    Linear,
    /// Of positive values, with marks at 1, 2, 5, 10, ….
    Logarithmic,
    /// Logarithmic, with marks at the values that there are.
    Stops,
}

/// A bar of a bar chart, with its interval.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub name: String,
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Writing to memory doesn't fail, and all coordinates are finite.
const DRAWS: &str = "an SVG in memory takes all that is drawn";

fn colour(number: usize) -> RGBColor {
    COLOURS[number % COLOURS.len()]
}

fn text(size: f64, at: HPos) -> TextStyle<'static> {
    let style = (FONT, size).into_text_style(&(1000, 1000));
    style.color(&INK).pos(Pos::new(at, VPos::Center))
}

/// Marks of a logarithmic axis.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let mut ticks = Vec::new();
    let mut power = 10f64.powf(low.log10().floor());
    while power <= high * 1.001 {
        let steps = [1.0, 2.0, 5.0].map(|step| step * power);
        ticks.extend(
            steps
                .into_iter()
                .filter(|tick| (low * 0.999..=high * 1.001).contains(tick)),
        );
        power *= 10.0;
    }
    ticks
}

/// An axis' ends and marks for some values.
fn axis(scale: Scale, values: impl Iterator<Item = f64>) -> (f64, f64, Vec<f64>) {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    if scale != Scale::Linear {
        values.retain(|value| *value > 0.0);
    }
    values.sort_by(f64::total_cmp);
    values.dedup();
    let (low, high) = match values[..] {
        [] => (1.0, 10.0),
        [low, ..] => (low, values[values.len() - 1]),
    };
    match scale {
        Scale::Linear => (0.0, if high > 0.0 { high * 1.05 } else { 1.0 }, Vec::new()),
        Scale::Stops => (low / 1.15, high * 1.15, values),
        Scale::Logarithmic => {
            let all = ticks(low / 10.0, high * 10.0);
            let below = all.iter().rev().find(|tick| **tick <= low).copied();
            let above = all.iter().find(|tick| **tick >= high).copied();
            let (low, high) = (below.unwrap_or(low), above.unwrap_or(high));
            let high = if low == high { high * 2.0 } else { high };
            (low, high, ticks(low, high))
        }
    }
}

/// A number on an axis: 1,500 as 1.5k.
pub(crate) fn short(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e3 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    format!("{}{unit}", (scaled * 1e6).round() / 1e6)
}

impl Picture {
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for curve in self.panels.iter().flat_map(|panel| &panel.curves) {
            if !names.contains(&curve.name.as_str()) {
                names.push(&curve.name);
            }
        }
        names
    }

    /// How many circles its SVG has: one for each measured value.
    pub(crate) fn dots(&self) -> usize {
        let curves = self.panels.iter().flat_map(|panel| &panel.curves);
        curves.map(|curve| curve.dots.len()).sum()
    }

    /// The SVG.
    pub(crate) fn svg(&self) -> String {
        let columns = self.columns.clamp(1, self.panels.len().max(1)) as u32;
        let rows = (self.panels.len().max(1) as u32).div_ceil(columns);
        let width = PANEL_WIDTH * columns;
        let legend = self.legend(width);
        let lines = legend
            .iter()
            .map(|(_, y, _)| y / LEGEND_LINE + 1)
            .max()
            .unwrap_or(0);
        let head = TITLE_HEIGHT + lines * LEGEND_LINE;
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, (width, head + PANEL_HEIGHT * rows));
            let root = root.into_drawing_area();
            self.draw(&root, head, (rows, columns), &legend)
                .expect(DRAWS);
        }
        svg
    }

    /// Where each name stands: its left end and its line's upper end, below the title.
    fn legend(&self, width: u32) -> Vec<(u32, u32, &str)> {
        let mut place = (0, 0);
        let names = self.names().into_iter().map(|name| {
            let needs = (name.chars().count() as f64 * LETTER_WIDTH) as u32 + 34;
            if place.0 > 0 && place.0 + needs > width - 20 {
                place = (0, place.1 + LEGEND_LINE);
            }
            let at = (place.0 + 12, place.1, name);
            place.0 += needs;
            at
        });
        names.collect()
    }

    fn draw(
        &self,
        root: &Area<'_>,
        head: u32,
        grid: (u32, u32),
        legend: &[(u32, u32, &str)],
    ) -> Drawn {
        let (above, panels) = root.split_vertically(head);
        above.draw_text(
            &self.title,
            &text(19.0, HPos::Left),
            (12, TITLE_HEIGHT as i32 / 2),
        )?;
        for (number, (x, y, name)) in legend.iter().enumerate() {
            let (x, y) = (*x as i32, (TITLE_HEIGHT + y + LEGEND_LINE / 2) as i32);
            above.draw(&Rectangle::new(
                [(x, y - 5), (x + 12, y + 5)],
                colour(number).filled(),
            ))?;
            above.draw_text(name, &text(TEXT_SIZE, HPos::Left), (x + 18, y))?;
        }
        let names = self.names();
        let areas = panels.split_evenly((grid.0 as usize, grid.1 as usize));
        let points = || self.panels.iter().flat_map(|panel| &panel.curves);
        let xs =
            points().flat_map(|curve| curve.line.iter().chain(&curve.dots).map(|point| point.0));
        let (x_low, x_high, x_ticks) = axis(self.x_scale, xs);
        for (area, panel) in areas.iter().zip(&self.panels) {
            let ys = panel.curves.iter().flat_map(|curve| {
                let points = curve.line.iter().chain(&curve.dots).map(|point| point.1);
                points.chain(
                    curve
                        .intervals
                        .iter()
                        .flat_map(|(_, low, high)| [*low, *high]),
                )
            });
            let (y_low, y_high, y_ticks) = axis(self.y_scale, ys);
            let (x, y) = (x_low..x_high, y_low..y_high);
            let is_linear = |scale| scale == Scale::Linear;
            match (is_linear(self.x_scale), is_linear(self.y_scale)) {
                (true, true) => self.panel(area, panel, &names, x, y)?,
                (true, false) => {
                    let y = y.log_scale().with_key_points(y_ticks);
                    self.panel(area, panel, &names, x, y)?;
                }
                (false, true) => {
                    let x = x.log_scale().with_key_points(x_ticks.clone());
                    self.panel(area, panel, &names, x, y)?;
                }
                (false, false) => {
                    let x = x.log_scale().with_key_points(x_ticks.clone());
                    let y = y.log_scale().with_key_points(y_ticks);
                    self.panel(area, panel, &names, x, y)?;
                }
            }
        }
        root.present()?;
        Ok(())
    }

    fn panel<X, Y>(&self, area: &Area<'_>, panel: &Panel, names: &[&str], x: X, y: Y) -> Drawn
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let mut builder = ChartBuilder::on(area);
        builder.margin(10).margin_right(22);
        builder.x_label_area_size(46).y_label_area_size(64);
        if !panel.title.is_empty() {
            builder.caption(&panel.title, text(TEXT_SIZE, HPos::Left));
        }
        let mut chart = builder.build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(INK)
            .label_style(text(TEXT_SIZE - 1.0, HPos::Left))
            .axis_desc_style(text(TEXT_SIZE, HPos::Left))
            .x_desc(&*self.x)
            .y_desc(&*self.y)
            .x_labels(10)
            .y_labels(7)
            .x_label_formatter(&|value| short(*value))
            .y_label_formatter(&|value| short(*value))
            .draw()?;
        for curve in &panel.curves {
            let colour = colour(
                names
                    .iter()
                    .position(|name| *name == curve.name)
                    .unwrap_or(0),
            );
            let intervals = curve.intervals.iter().map(|&(x, low, high)| {
                PathElement::new([(x, low), (x, high)], colour.stroke_width(2))
            });
            chart.draw_series(intervals)?;
            chart.draw_series(LineSeries::new(
                curve.line.iter().copied(),
                colour.stroke_width(2),
            ))?;
            let dots = curve
                .dots
                .iter()
                .map(|&dot| Circle::new(dot, 3, colour.filled()));
            chart.draw_series(dots)?;
            if !curve.intervals.is_empty() {
                let means = curve.line.iter().map(|&mean| {
                    let corners = [(0, -6), (6, 0), (0, 6), (-6, 0)];
                    EmptyElement::at(mean) + Polygon::new(corners, colour)
                });
                chart.draw_series(means)?;
            }
        }
        Ok(())
    }
}

/// A bar chart as SVG, the bars below each other. `unit` is what they show.
pub(crate) fn bars(title: &str, unit: &str, bars: &[Bar]) -> String {
    let letters = bars
        .iter()
        .map(|bar| bar.name.chars().count())
        .max()
        .unwrap_or(0);
    let left = (letters as f64 * LETTER_WIDTH) as u32 + 24;
    let width = PANEL_WIDTH.max(left + 300);
    let height = TITLE_HEIGHT + bars.len() as u32 * BAR_HEIGHT + 46;
    let high = bars
        .iter()
        .map(|bar| bar.high.max(bar.value))
        .fold(0.0, f64::max);
    let high = if high > 0.0 { high * 1.05 } else { 1.0 };
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        draw_bars(&root, (title, unit), bars, left, high).expect(DRAWS);
    }
    svg
}

fn draw_bars(
    root: &Area<'_>,
    (title, unit): (&str, &str),
    bars: &[Bar],
    left: u32,
    high: f64,
) -> Drawn {
    root.draw_text(
        title,
        &text(19.0, HPos::Left),
        (12, TITLE_HEIGHT as i32 / 2),
    )?;
    let below = root.margin(TITLE_HEIGHT, 0, 0, 22);
    let mut chart = ChartBuilder::on(&below)
        .x_label_area_size(46)
        .y_label_area_size(left)
        .build_cartesian_2d(0.0..high, (bars.len().max(1) as f64)..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(text(TEXT_SIZE - 1.0, HPos::Left))
        .axis_desc_style(text(TEXT_SIZE, HPos::Left))
        .x_desc(unit)
        .x_labels(6)
        .x_label_formatter(&|value| short(*value))
        .draw()?;
    for (at, bar) in bars.iter().enumerate() {
        let top = at as f64;
        let ends = [(0.0, top + 0.18), (bar.value, top + 0.82)];
        chart.draw_series([Rectangle::new(ends, colour(at).filled())])?;
        let interval = [(bar.low.max(0.0), top + 0.5), (bar.high, top + 0.5)];
        chart.draw_series([PathElement::new(interval, INK.stroke_width(2))])?;
        let y = TITLE_HEIGHT as i32 + (BAR_HEIGHT as f64 * (top + 0.5)) as i32;
        root.draw_text(
            &bar.name,
            &text(TEXT_SIZE, HPos::Right),
            (left as i32 - 10, y),
        )?;
    }
    root.present()?;
    Ok(())
}

/// An SVG as a file of its own: on a ground, light or dark as the reader's system is.
pub(crate) fn standalone(svg: &str) -> String {
    let style = format!(
        "<style>svg{{background:#FFF}}@media(prefers-color-scheme:dark){{svg{{background:#0D1117}}{DARK_RULES}}}</style>"
    );
    match svg.find('>') {
        Some(end) => format!("{}\n{style}{}", &svg[..=end], &svg[end + 1..]),
        None => svg.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(x_scale: Scale, y_scale: Scale) -> Picture {
        let curve = |name: &str, factor: f64| Curve {
            name: name.into(),
            line: vec![(1.0, 10.0 * factor), (8.0, 70.0 * factor)],
            dots: vec![
                (1.0, 9.0 * factor),
                (1.0, 11.0 * factor),
                (8.0, 70.0 * factor),
            ],
            intervals: vec![(1.0, 8.0 * factor, 12.0 * factor)],
        };
        Picture {
            title: "a < b & c".into(),
            x: "clients".into(),
            y: "a second".into(),
            x_scale,
            y_scale,
            panels: vec![Panel {
                title: String::new(),
                curves: vec![curve("one", 1.0), curve("two", 3.0)],
            }],
            columns: 1,
        }
    }

    #[test]
    fn a_chart_has_a_mark_for_each_value_whatever_its_axes() {
        for x in [Scale::Linear, Scale::Logarithmic, Scale::Stops] {
            for y in [Scale::Linear, Scale::Logarithmic] {
                let picture = picture(x, y);
                let svg = picture.svg();
                assert_eq!(svg.matches("<circle").count(), 6, "{x:?} {y:?}");
                assert_eq!(picture.dots(), 6);
                assert_eq!(svg.matches("<polygon").count(), 4, "{x:?} {y:?}");
                assert!(svg.contains("a &lt; b &amp; c"));
                assert!(svg.contains(">\ntwo"), "{svg}");
            }
        }
    }

    #[test]
    fn larger_values_are_drawn_higher() {
        let svg = picture(Scale::Stops, Scale::Linear).svg();
        let places: Vec<i32> = svg
            .lines()
            .filter(|line| line.starts_with("<circle"))
            .filter_map(|line| line.split("cy=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        assert!(places[0] > places[1] && places[1] > places[2], "{places:?}");
    }

    #[test]
    fn nothing_is_drawn_as_nothing() {
        let nothing = Picture {
            x_scale: Scale::Stops,
            y_scale: Scale::Logarithmic,
            ..Picture::default()
        };
        assert!(nothing.svg().starts_with("<svg"));
        let empty = Picture {
            panels: vec![Panel::default()],
            ..nothing
        };
        assert!(empty.svg().trim_end().ends_with("</svg>"));
        assert!(bars("none", "x", &[]).contains("none"));
    }

    #[test]
    fn axes_have_round_marks() {
        assert_eq!(ticks(2.0, 50.0), [2.0, 5.0, 10.0, 20.0, 50.0]);
        let (low, high, _) = axis(Scale::Logarithmic, [3.1, 47.0].into_iter());
        assert_eq!((low, high), (2.0, 50.0));
        assert_eq!(
            [1500.0, 2e6, 0.25, 0.0].map(short),
            ["1.5k", "2M", "0.25", "0"]
        );
    }

    #[test]
    fn a_chart_that_stands_alone_has_a_ground_in_light_and_dark() {
        let svg = standalone(&picture(Scale::Stops, Scale::Linear).svg());
        assert!(
            svg.starts_with("<svg") && svg.contains("prefers-color-scheme:dark"),
            "{svg}"
        );
    }
}
