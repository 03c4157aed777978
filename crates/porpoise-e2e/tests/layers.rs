//! Whether dependencies point down only.
//!
//! The order is the table under "Layers" in `ARCHITECTURE.md`, bottom up: a crate, or a module of a crate,
//! a row. A crate may depend on crates of rows above its own in that table (as tests' helpers, on any); a
//! module may name modules of rows above its own. What breaks the order today is listed in `OFFENCES`, each
//! with how many files do it: a new offence fails the test, and so does one that is gone and still listed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use porpoise_e2e::{files_below, repository};
use regex::Regex;

/// `from -> to`, and how many files of `from` name `to`.
type Offences = BTreeMap<(String, String), usize>;

/// The layers, lowest first.
struct Order(Vec<String>);

impl Order {
    fn read() -> Order {
        let map = std::fs::read_to_string(repository("ARCHITECTURE.md")).expect("the map is there");
        let (_, section) = map
            .split_once("\n## Layers\n")
            .expect("it has a section on layers");
        let section = section.split("\n## ").next().unwrap_or_default();
        let row = Regex::new(r"(?m)^\| `([a-z0-9_:-]+)` \|").expect("a pattern");
        let layers: Vec<String> = row
            .captures_iter(section)
            .map(|c| c[1].to_string())
            .collect();
        let distinct: BTreeSet<&String> = layers.iter().collect();
        assert_eq!(distinct.len(), layers.len(), "a layer has two rows");
        Order(layers)
    }

    fn position(&self, layer: &str) -> usize {
        let found = self.0.iter().position(|known| known == layer);
        found.unwrap_or_else(|| panic!("`{layer}` has no row in ARCHITECTURE.md's table of layers"))
    }

    fn points_down(&self, from: &str, to: &str) -> bool {
        self.position(to) < self.position(from)
    }

    /// The crates whose modules have rows of their own.
    fn parted_crates(&self) -> BTreeSet<&str> {
        let modules = self.0.iter().filter_map(|layer| layer.split_once("::"));
        modules.map(|(of, _)| of).collect()
    }
}

/// Each crate with the crates of the workspace that it needs to be built.
fn crates() -> Vec<(String, Vec<String>)> {
    let output = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(repository(""))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
    let packages = metadata["packages"].as_array().expect("packages");
    let needs = |package: &serde_json::Value| {
        let all = package["dependencies"].as_array().expect("dependencies");
        let built = all
            .iter()
            .filter(|needed| needed["kind"].as_str() != Some("dev"));
        built
            .map(|needed| text(&needed["name"]))
            .filter(|name| name.starts_with("porpoise"))
            .collect()
    };
    packages
        .iter()
        .map(|package| (text(&package["name"]), needs(package)))
        .collect()
}

/// The paths into its own crate that a file names, tests' parts left out.
fn paths_named(file: &Path) -> BTreeSet<String> {
    let source = std::fs::read_to_string(file).expect("a source file");
    let code = source
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    let path = Regex::new(r"\bcrate::(\w+(?:::\w+)*)").expect("a pattern");
    let group = Regex::new(r"(?s)\bcrate::\{(.*?)\};").expect("a pattern");
    let head = Regex::new(r"(?:^|,)\s*([a-z_]\w*)").expect("a pattern");
    let mut named = BTreeSet::new();
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    named.extend(path.captures_iter(&code).map(|found| found[1].to_string()));
    for found in group.captures_iter(&code) {
        // What stands in inner braces belongs to the module before them.
        let mut depth = 0;
        let outer = found[1].chars().filter(|c| {
            depth += i32::from(*c == '{');
            let is_outer = depth == 0;
            depth -= i32::from(*c == '}');
            is_outer
        });
        let outer: String = outer.collect();
        named.extend(head.captures_iter(&outer).map(|found| found[1].to_string()));
    }
    named
}

/// The layer within a parted crate that a path of modules belongs to: the longest that has a row.
fn layer_of(order: &Order, of: &str, path: &[&str]) -> Option<String> {
    (1..=path.len()).rev().find_map(|len| {
        let layer = format!("{of}::{}", path[..len].join("::"));
        order.0.contains(&layer).then_some(layer)
    })
}

fn offences_within(order: &Order, of: &str, found: &mut Offences) {
    let root: PathBuf = repository(&format!("crates/{of}/src"));
    let roots: BTreeSet<String> = std::fs::read_dir(&root)
        .expect("a crate's sources")
        .flatten()
        .map(|entry| {
            entry
                .path()
                .with_extension("")
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    for file in files_below(&root, "rs") {
        let inner = file.strip_prefix(&root).expect("below").with_extension("");
        let path: Vec<&str> = inner.iter().filter_map(|part| part.to_str()).collect();
        let is_test = path
            .iter()
            .any(|part| *part == "tests" || *part == "forbidden");
        if is_test || path == ["lib"] {
            continue;
        }
        let Some(from) = layer_of(order, of, &path) else {
            panic!(
                "{} has no row in ARCHITECTURE.md's table of layers",
                inner.display()
            );
        };
        let mut above = BTreeSet::new();
        for named in paths_named(&file) {
            let path: Vec<&str> = named.split("::").collect();
            if !roots.contains(path[0]) {
                continue;
            }
            let to = layer_of(order, of, &path);
            let to =
                to.unwrap_or_else(|| panic!("{of}::{named} has no row in the table of layers"));
            if to != from && !order.points_down(&from, &to) {
                above.insert(to);
            }
        }
        for to in above {
            *found.entry((from.clone(), to)).or_default() += 1;
        }
    }
}

/// What is known to point up, as `from -> to files`, a line each.
fn listed() -> Offences {
    let list = repository("crates/porpoise-e2e/tests/layers.offences");
    let text = std::fs::read_to_string(list).unwrap_or_default();
    let entry = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [from, "->", to, count] => (
                (from.to_string(), to.to_string()),
                count.parse().expect("a count"),
            ),
            _ => panic!("not `from -> to files`: {line}"),
        }
    };
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(entry)
        .collect()
}

#[test]
fn dependencies_point_down() {
    let order = Order::read();
    let mut found = Offences::new();
    for (name, needed) in crates() {
        for to in needed {
            if !order.points_down(&name, &to) {
                found.insert((name.clone(), to), 1);
            }
        }
    }
    for parted in order.parted_crates() {
        offences_within(&order, parted, &mut found);
    }
    let shown: Vec<String> = found
        .iter()
        .map(|((from, to), files)| format!("{from} -> {to} {files}"))
        .collect();
    assert_eq!(
        found,
        listed(),
        "what points up differs from tests/layers.offences; it is now:\n{}",
        shown.join("\n")
    );
}
