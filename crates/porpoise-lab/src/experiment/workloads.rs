//! The workloads of an experiment's file: names, files, or tables of what they are made of.
//!
//! ```toml
//! workloads = [
//!   "oltp_point_select",                                  # of sysbench's family, built in
//!   "shop.toml",                                          # a workload file
//!   { tpcc = { warehouses = 2 } },
//!   { tpch = { scale = 0.1 }, name = "small TPC-H" },
//!   { bulk_load = { by = "load-data", rows = 10000 } },
//!   { sysbench = { script = "oltp_read_write", options = ["--tables=4"] } },
//! ]
//! ```

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::{WorkloadKind, WorkloadSpec};
use crate::bulk_load::{BulkLoad, LoadBy};
use crate::custom::Complaint;
use crate::scenario::Scenario;
use crate::sysbench::{LIBRARY, SysbenchScript, reserved_option};
use crate::tpcc::{Tpcc, TpccPlan};
use crate::tpch::TpchQueries;
use crate::workload::ScenarioRef;
use crate::{CustomWorkload, Workload};

/// As the file has it.
pub(super) enum WorkloadEntry {
    Name(String),
    Table(Box<TableEntry>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableEntry {
    name: Option<String>,
    #[serde(default)]
    fresh: bool,
    file: Option<Spanned<String>>,
    tpcc: Option<Spanned<TpccEntry>>,
    tpch: Option<Spanned<TpchEntry>>,
    bulk_load: Option<Spanned<BulkLoadEntry>>,
    sysbench: Option<Spanned<SysbenchEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TpccEntry {
    warehouses: Option<Spanned<u64>>,
    think_time: Option<Spanned<f64>>,
    items: Option<Spanned<u64>>,
    customers: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TpchEntry {
    scale: Spanned<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BulkLoadEntry {
    #[serde(default)]
    by: ByEntry,
    rows: Option<Spanned<u64>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
enum ByEntry {
    #[default]
    Insert,
    LoadData,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SysbenchEntry {
    script: Spanned<String>,
    #[serde(default)]
    options: Vec<Spanned<String>>,
    library: Option<Spanned<String>>,
}

impl<'de> Deserialize<'de> for WorkloadEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entry;
        impl<'de> Visitor<'de> for Entry {
            type Value = WorkloadEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a workload's name, or a table")
            }

            fn visit_str<E>(self, name: &str) -> Result<WorkloadEntry, E> {
                Ok(WorkloadEntry::Name(name.to_owned()))
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<WorkloadEntry, M::Error> {
                let table = TableEntry::deserialize(MapAccessDeserializer::new(map))?;
                Ok(WorkloadEntry::Table(Box::new(table)))
            }
        }
        deserializer.deserialize_any(Entry)
    }
}

/// Reads the files that workloads name, from a folder; they are put among `files`.
pub(super) struct Reader<'a> {
    pub folder: &'a Path,
    pub seed: u64,
    pub files: Vec<(String, String)>,
}

impl Reader<'_> {
    pub(super) fn workload(
        &mut self,
        entry: &Spanned<WorkloadEntry>,
    ) -> Result<WorkloadSpec, Complaint> {
        let span = entry.span();
        let table = match entry.get_ref() {
            WorkloadEntry::Name(name) => {
                let (name, kind) = match name.ends_with(".toml") {
                    true => self.file(&Spanned::new(span, name.clone()))?,
                    false => {
                        let workload = name.parse::<Workload>().map_err(|what| (what, span))?;
                        (workload.name().to_owned(), WorkloadKind::Oltp(workload))
                    }
                };
                return Ok(WorkloadSpec {
                    name,
                    kind,
                    is_fresh: false,
                });
            }
            WorkloadEntry::Table(table) => table,
        };
        let TableEntry {
            name,
            fresh,
            file,
            tpcc,
            tpch,
            bulk_load,
            sysbench,
        } = &**table;
        let named = name.as_deref();
        let (default_name, kind) = match (file, tpcc, tpch, bulk_load, sysbench) {
            (Some(file), None, None, None, None) => self.file(file)?,
            (None, Some(tpcc), None, None, None) => self.tpcc(tpcc.get_ref(), named)?,
            (None, None, Some(tpch), None, None) => self.tpch(tpch.get_ref(), named)?,
            (None, None, None, Some(load), None) => bulk(load.get_ref(), named)?,
            (None, None, None, None, Some(script)) => self.sysbench(script.get_ref(), named)?,
            _ => {
                let what = "a workload is one of file, tpcc, tpch, bulk_load, sysbench";
                return Err((what.into(), span));
            }
        };
        Ok(WorkloadSpec {
            name: name.clone().unwrap_or(default_name),
            kind,
            is_fresh: *fresh,
        })
    }

    fn file(&mut self, name: &Spanned<String>) -> Result<(String, WorkloadKind), Complaint> {
        let path = self.folder.join(name.get_ref());
        let read = std::fs::read_to_string(&path)
            .map_err(|error| (format!("{}: {error}", path.display()), name.span()))?;
        let workload = CustomWorkload::parse(&read)
            .map_err(|what| (format!("{}, {what}", path.display()), name.span()))?;
        self.files.push((name.get_ref().clone(), read));
        let stem = name.get_ref().trim_end_matches(".toml").to_owned();
        Ok((stem, scenario(workload)))
    }

    fn tpcc(
        &self,
        entry: &TpccEntry,
        name: Option<&str>,
    ) -> Result<(String, WorkloadKind), Complaint> {
        let plan = TpccPlan::default();
        let plan = TpccPlan {
            warehouses: within(&entry.warehouses, "warehouses", 1, 10_000, plan.warehouses)?,
            items: within(&entry.items, "items", 100, 100_000, plan.items)?,
            customers: within(&entry.customers, "customers", 10, 3_000, plan.customers)?,
            think_time: match &entry.think_time {
                None => plan.think_time,
                Some(time) if (0.0..=100.0).contains(time.get_ref()) => *time.get_ref(),
                Some(time) => {
                    let what = "'think_time' is what keying and think times are multiplied by: a number from 0 to 100";
                    return Err((what.into(), time.span()));
                }
            },
        };
        let name = name.unwrap_or("tpcc").to_owned();
        let tpcc = Tpcc::new(plan, database_of(&name), self.seed);
        Ok((name, scenario(tpcc)))
    }

    fn tpch(
        &self,
        entry: &TpchEntry,
        name: Option<&str>,
    ) -> Result<(String, WorkloadKind), Complaint> {
        let scale = *entry.scale.get_ref();
        if !(0.0001..=10_000.0).contains(&scale) {
            let what = "'scale' is a number from 0.0001 to 10000, of which 1 is about a gigabyte";
            return Err((what.into(), entry.scale.span()));
        }
        let name = name.unwrap_or("tpch").to_owned();
        let queries = TpchQueries::new(scale, database_of(&name), self.seed);
        Ok((name, scenario(queries)))
    }

    fn sysbench(
        &mut self,
        entry: &SysbenchEntry,
        name: Option<&str>,
    ) -> Result<(String, WorkloadKind), Complaint> {
        let script = entry.script.get_ref();
        let is_path = script.contains('/') || script.ends_with(".lua");
        let path = is_path.then(|| self.folder.join(script));
        if let Some(path) = &path {
            let failed = |error| (format!("{}: {error}", path.display()), entry.script.span());
            let read = std::fs::read_to_string(path).map_err(failed)?;
            self.files.push((script.clone(), read));
        }
        let mut options = Vec::new();
        for option in &entry.options {
            if let Some(instead) = reserved_option(option.get_ref()) {
                let what = format!("the experiment says this by {instead}");
                return Err((what, option.span()));
            }
            options.push(option.get_ref().clone());
        }
        let library = entry.library.as_ref().map(|library| {
            let folder = self.folder.join(library.get_ref());
            match folder.join(LIBRARY).exists() {
                true => Ok(folder),
                false => {
                    let what = format!("there is no libmariadb.so.3 in {}", folder.display());
                    Err((what, library.span()))
                }
            }
        });
        let stem = Path::new(script).file_stem().unwrap_or_default();
        let name = match name {
            Some(name) => name.to_owned(),
            None => format!("sysbench {}", stem.to_string_lossy()),
        };
        let script = SysbenchScript {
            script: path.map_or_else(|| script.clone(), |path| path.display().to_string()),
            options,
            library: library.transpose()?,
            database: database_of(&name),
        };
        Ok((name, WorkloadKind::Sysbench(Arc::new(script))))
    }
}

fn bulk(entry: &BulkLoadEntry, name: Option<&str>) -> Result<(String, WorkloadKind), Complaint> {
    let rows = within(&entry.rows, "rows", 1, 1_000_000, 1000)?;
    let (by, default_name) = match entry.by {
        ByEntry::Insert => (LoadBy::Insert, "bulk INSERT"),
        ByEntry::LoadData => (LoadBy::LoadData, "LOAD DATA"),
    };
    let name = name.unwrap_or(default_name).to_owned();
    let load = BulkLoad::new(by, rows, database_of(&name));
    Ok((name, scenario(load)))
}

fn scenario(scenario: impl Scenario + 'static) -> WorkloadKind {
    WorkloadKind::Scenario(ScenarioRef(Arc::new(scenario)))
}

/// The part of a database's name that says whose it is.
fn database_of(name: &str) -> String {
    let letter = |c: char| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_lowercase(),
        false => '_',
    };
    name.chars().map(letter).take(32).collect()
}

fn within(
    entry: &Option<Spanned<u64>>,
    name: &str,
    least: u64,
    most: u64,
    default: u64,
) -> Result<u64, Complaint> {
    match entry {
        None => Ok(default),
        Some(entry) if (least..=most).contains(entry.get_ref()) => Ok(*entry.get_ref()),
        Some(entry) => {
            let what = format!("'{name}' is a number from {least} to {most}");
            Err((what, entry.span()))
        }
    }
}
