//! Results in forms that other tools read: CSV, and the report that sysbench prints.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::{Results, SCHEMA, tables};
use crate::{Error, Histogram};

impl Results {
    /// Writes each table as a CSV file (RFC 4180) with its columns' names, into a folder. NULL is an
    /// empty field, bytes are Base64. Returned are the files.
    pub fn export_csv(&self, folder: &Path) -> Result<Vec<PathBuf>, Error> {
        let unwritten = |path: &Path| {
            let path = path.display().to_string();
            move |error| Error::Plan(format!("{path}: {error}"))
        };
        crate::make_folder(folder)?;
        let mut files = Vec::new();
        for (table, _) in tables::TABLES {
            let path = folder.join(format!("{table}.csv"));
            let mut file = BufWriter::new(File::create(&path).map_err(unwritten(&path))?);
            let columns = self.columns(table)?;
            let names: Vec<String> = columns.iter().map(|(name, _)| field(name)).collect();
            write!(file, "{}\r\n", names.join(",")).map_err(unwritten(&path))?;
            let selected: Vec<&str> = columns
                .iter()
                .map(|(_, expression)| &**expression)
                .collect();
            let rows = self.query(&format!("SELECT {} FROM lab.{table}", selected.join(", ")))?;
            for row in &rows {
                let mut line = Vec::with_capacity(columns.len());
                for at in 0..columns.len() {
                    let text: Option<&str> =
                        row.get(at).map_err(|error| self.failed(error.message()))?;
                    line.push(text.map(field).unwrap_or_default());
                }
                write!(file, "{}\r\n", line.join(",")).map_err(unwritten(&path))?;
            }
            file.flush().map_err(unwritten(&path))?;
            files.push(path);
        }
        Ok(files)
    }

    /// A table's columns: each one's name, and what to select for its text.
    fn columns(&self, table: &str) -> Result<Vec<(String, String)>, Error> {
        let rows = self.query(&format!(
            "SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS
             WHERE TABLE_SCHEMA = '{SCHEMA}' AND TABLE_NAME = '{table}' ORDER BY ORDINAL_POSITION"
        ))?;
        let columns = rows.to_text().into_iter().map(|row| {
            let expression = match row[1].ends_with("blob") {
                // In lines of 76 characters, as MySQL has it.
                true => format!("REPLACE(TO_BASE64({0}), '\\n', '')", row[0]),
                false => format!("CAST(`{}` AS CHAR)", row[0]),
            };
            (row[0].clone(), expression)
        });
        Ok(columns.collect())
    }

    /// Each run as sysbench 1.0 would have reported it.
    pub fn sysbench_text(&self) -> Result<String, Error> {
        let rows = self.query(
            "SELECT p.series, p.workload, p.clients, r.repetition, r.seconds, r.transactions, r.statements,
                    COALESCE(r.conflicts, 0), r.latency_mean_ms, r.latency_p95_ms, r.latency_max_ms, r.latencies
             FROM lab.runs r JOIN lab.points p ON p.id = r.point WHERE r.state = 'done' ORDER BY r.point, r.repetition",
        )?;
        let mut text = String::new();
        for row in &rows {
            let read = || -> Result<String, porpoise::Error> {
                let seconds: f64 = row.get(4)?;
                let [transactions, statements, conflicts] =
                    [row.get::<u64>(5)?, row.get(6)?, row.get(7)?];
                let [mean, p95, max] = [row.get::<f64>(8)?, row.get(9)?, row.get(10)?];
                let latencies = Histogram::from_bytes(row.get(11)?).unwrap_or_default();
                let min = latencies.min().as_secs_f64() * 1e3;
                let rate = |count: u64| format!("({:.2} per sec.)", count as f64 / seconds);
                let mut one = String::new();
                let mut line = |text: std::fmt::Arguments<'_>| {
                    one.write_fmt(text).expect("a String takes every write");
                    one.push('\n');
                };
                line(format_args!(
                    "{}, {}, run {}",
                    row.get::<&str>(0)?,
                    row.get::<&str>(1)?,
                    row.get::<u32>(3)?
                ));
                line(format_args!("Number of threads: {}\n", row.get::<u32>(2)?));
                line(format_args!("SQL statistics:"));
                line(format_args!(
                    "    transactions:                        {transactions} {}",
                    rate(transactions)
                ));
                line(format_args!(
                    "    queries:                             {statements} {}",
                    rate(statements)
                ));
                line(format_args!(
                    "    ignored errors:                      {conflicts} {}\n",
                    rate(conflicts)
                ));
                line(format_args!("General statistics:"));
                line(format_args!(
                    "    total time:                          {seconds:.4}s"
                ));
                line(format_args!(
                    "    total number of events:              {transactions}\n"
                ));
                line(format_args!("Latency (ms):"));
                line(format_args!(
                    "         min:                            {min:>12.2}"
                ));
                line(format_args!(
                    "         avg:                            {mean:>12.2}"
                ));
                line(format_args!(
                    "         max:                            {max:>12.2}"
                ));
                line(format_args!(
                    "         95th percentile:                {p95:>12.2}"
                ));
                let sum = mean * transactions as f64;
                line(format_args!(
                    "         sum:                            {sum:>12.2}\n"
                ));
                Ok(one)
            };
            text += &read().map_err(|error| self.failed(error.message()))?;
        }
        Ok(text)
    }
}

/// A field, in quotes if it needs them.
fn field(text: &str) -> String {
    match text.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
