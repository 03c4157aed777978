//! Results as people and programs expect them: in a box, a line a value, or separated by tabs.

use std::fs::File;
use std::io::{self, Write};
use std::time::Duration;

use porpoise_client::codes::{BINARY, ColumnType};
use porpoise_client::{ColumnDefinition, Columns, Outcome, Results, Row};
use unicode_width::UnicodeWidthStr;

/// How rows are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A table drawn with lines, and a summary behind it.
    Box,
    /// A line a value.
    Vertical,
    /// Values separated by tabs, for other programs.
    Tabs,
}

/// Where output goes: to stdout, and to the file of `tee`.
pub struct Output {
    pub tee: Option<File>,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = io::stdout().write(bytes)?;
        if let Some(file) = &mut self.tee {
            file.write_all(&bytes[..count])?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

/// What to leave out, and how to show bytes.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub form: Form,
    /// Names of columns go before the rows.
    pub names: bool,
    /// Bytes that are no text are shown in hexadecimal.
    pub hexadecimal: bool,
    /// How many rows and how long, for people.
    pub summary: bool,
}

fn is_number(column: &ColumnDefinition<'_>) -> bool {
    use ColumnType as T;
    matches!(
        column.column_type,
        T::Tiny
            | T::Short
            | T::Int24
            | T::Long
            | T::LongLong
            | T::Float
            | T::Double
            | T::NewDecimal
            | T::Year
    )
}

fn is_bytes(column: &ColumnDefinition<'_>) -> bool {
    use ColumnType as T;
    match column.column_type {
        T::Bit | T::Geometry => true,
        T::TinyBlob | T::Blob | T::MediumBlob | T::LongBlob | T::VarString | T::String => {
            column.collation == BINARY
        }
        _ => false,
    }
}

/// How a column is shown.
struct Shape {
    name: String,
    is_number: bool,
    in_hexadecimal: bool,
}

fn shapes(columns: &Columns, style: Style) -> Vec<Shape> {
    columns
        .iter()
        .map(|column| Shape {
            name: String::from_utf8_lossy(column.name).into_owned(),
            is_number: is_number(&column),
            in_hexadecimal: style.hexadecimal && is_bytes(&column),
        })
        .collect()
}

fn text(row: &Row<'_>, at: usize, shape: &Shape) -> String {
    match row.raw(at) {
        None => "NULL".to_string(),
        Some(bytes) if shape.in_hexadecimal => bytes
            .iter()
            .fold("0x".to_string(), |text, byte| text + &format!("{byte:02X}")),
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Why rows couldn't be shown.
pub enum Failure {
    /// Nobody reads what is written.
    Output,
    Server(porpoise_client::Error),
}

impl From<io::Error> for Failure {
    fn from(_: io::Error) -> Failure {
        Failure::Output
    }
}

impl From<porpoise_client::Error> for Failure {
    fn from(error: porpoise_client::Error) -> Failure {
        Failure::Server(error)
    }
}

/// Shows the rows of the result that `results` stands at, and returns how many there were.
pub fn rows(
    results: &mut Results<'_>,
    style: Style,
    out: &mut impl Write,
) -> Result<usize, Failure> {
    let shapes = shapes(results.columns(), style);
    match style.form {
        Form::Box => boxed(results, &shapes, style, out),
        Form::Vertical => vertical(results, &shapes, style, out),
        Form::Tabs => tabs(results, &shapes, style, out),
    }
}

fn boxed(
    results: &mut Results<'_>,
    shapes: &[Shape],
    style: Style,
    out: &mut impl Write,
) -> Result<usize, Failure> {
    let rows = results.rows()?;
    if rows.is_empty() {
        return Ok(0);
    }
    let texts: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let cells = shapes.iter().enumerate();
            cells.map(|(at, shape)| text(&row, at, shape)).collect()
        })
        .collect();
    let width = |at: usize| {
        let name = style.names.then(|| shapes[at].name.width());
        let widths = texts.iter().map(|row| row[at].width()).chain(name);
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..shapes.len()).map(width).collect();
    let mut line = String::from("+");
    for width in &widths {
        line.push_str(&"-".repeat(width + 2));
        line.push('+');
    }
    line.push('\n');
    let draw = |cells: &mut dyn Iterator<Item = (&str, bool)>| {
        let mut row = String::from("|");
        for ((cell, to_the_right), width) in cells.zip(&widths) {
            let room = " ".repeat(width.saturating_sub(cell.width()));
            let (before, behind) = if to_the_right {
                (&*room, "")
            } else {
                ("", &*room)
            };
            row.push_str(&format!(" {before}{cell}{behind} |"));
        }
        row.push('\n');
        row
    };
    out.write_all(line.as_bytes())?;
    if style.names {
        let names = draw(&mut shapes.iter().map(|shape| (&*shape.name, false)));
        out.write_all(names.as_bytes())?;
        out.write_all(line.as_bytes())?;
    }
    for row in &texts {
        let cells = row.iter().zip(shapes);
        let drawn = draw(&mut cells.map(|(cell, shape)| (&**cell, shape.is_number)));
        out.write_all(drawn.as_bytes())?;
    }
    out.write_all(line.as_bytes())?;
    Ok(rows.len())
}

fn vertical(
    results: &mut Results<'_>,
    shapes: &[Shape],
    style: Style,
    out: &mut impl Write,
) -> Result<usize, Failure> {
    let widest = shapes.iter().map(|shape| shape.name.width()).max();
    let mut count = 0;
    while let Some(row) = results.next_row()? {
        count += 1;
        let stars = "*".repeat(27);
        let mut shown = format!("{stars} {count}. row {stars}\n");
        for (at, shape) in shapes.iter().enumerate() {
            if style.names {
                let room = widest.unwrap_or(0) - shape.name.width();
                shown.push_str(&format!("{}{}: ", " ".repeat(room), shape.name));
            }
            shown.push_str(&text(&row, at, shape));
            shown.push('\n');
        }
        out.write_all(shown.as_bytes())?;
    }
    Ok(count)
}

fn tabs(
    results: &mut Results<'_>,
    shapes: &[Shape],
    style: Style,
    out: &mut impl Write,
) -> Result<usize, Failure> {
    let mut count = 0;
    let mut line = Vec::new();
    while let Some(row) = results.next_row()? {
        line.clear();
        if count == 0 && style.names {
            for (at, shape) in shapes.iter().enumerate() {
                escape(at, shape.name.as_bytes(), &mut line);
            }
            line.push(b'\n');
        }
        count += 1;
        for (at, shape) in shapes.iter().enumerate() {
            match row.raw(at) {
                Some(bytes) if !shape.in_hexadecimal => escape(at, bytes, &mut line),
                _ => escape(at, text(&row, at, shape).as_bytes(), &mut line),
            }
        }
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(count)
}

/// A value in a line of tab-separated ones: what would break the line apart is written with a
/// backslash.
fn escape(at: usize, bytes: &[u8], line: &mut Vec<u8>) {
    if at > 0 {
        line.push(b'\t');
    }
    for &byte in bytes {
        match byte {
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\t' => line.extend_from_slice(b"\\t"),
            b'\\' => line.extend_from_slice(b"\\\\"),
            0 => line.extend_from_slice(b"\\0"),
            byte => line.push(byte),
        }
    }
}

/// `(0.01 sec)`, with minutes, hours and days from a minute on.
pub fn took(time: Duration) -> String {
    let mut seconds = time.as_secs_f64();
    let mut text = String::from("(");
    for (unit, length) in [("day", 86_400.0), ("hour", 3_600.0), ("min", 60.0)] {
        let whole = (seconds / length).floor();
        if whole >= 1.0 || text.len() > 1 {
            let plural = if whole == 1.0 || unit == "min" {
                ""
            } else {
                "s"
            };
            text.push_str(&format!("{whole} {unit}{plural} "));
            seconds -= whole * length;
        }
    }
    text + &format!("{seconds:.2} sec)")
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn warnings(count: u16) -> String {
    match count {
        0 => String::new(),
        count => format!(", {}", counted(count.into(), "warning")),
    }
}

/// What is said of rows that were shown.
pub fn rows_summary(count: usize, outcome: &Outcome, time: Duration) -> String {
    let set = match count {
        0 => "Empty set".to_string(),
        count => format!("{} in set", counted(count as u64, "row")),
    };
    format!("{set}{} {}\n\n", warnings(outcome.warnings), took(time))
}

/// What is said of a statement without rows.
pub fn done_summary(outcome: &Outcome, time: Duration) -> String {
    let mut text = format!(
        "Query OK, {} affected{} {}\n",
        counted(outcome.affected_rows, "row"),
        warnings(outcome.warnings),
        took(time)
    );
    if !outcome.message.is_empty() {
        text.push_str(&outcome.message);
        text.push('\n');
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_units_that_people_read() {
        for (seconds, shown) in [
            (0.004, "(0.00 sec)"),
            (1.5, "(1.50 sec)"),
            (61.25, "(1 min 1.25 sec)"),
            (3_600.0, "(1 hour 0 min 0.00 sec)"),
            (180_000.0, "(2 days 2 hours 0 min 0.00 sec)"),
        ] {
            assert_eq!(took(Duration::from_secs_f64(seconds)), shown);
        }
    }

    #[test]
    fn a_line_of_tabs_holds_one_row_whatever_is_in_it() {
        let mut line = Vec::new();
        escape(0, b"a\tb\\", &mut line);
        escape(1, b"c\nd\0", &mut line);
        assert_eq!(line, b"a\\tb\\\\\tc\\nd\\0");
    }
}
