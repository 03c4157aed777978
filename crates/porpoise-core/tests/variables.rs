//! The table of variables, the sources and docs/VARIABLES.md agree.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use porpoise_core::variables::unsupported::{UnsupportedOption, options};
use porpoise_core::variables::{Scope, Use, VARIABLES, Variable};

fn workspace() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap().to_path_buf()
}

// ── Whatever may be set is read ──────────────────────────────────────────────────────────────────

/// A Rust file of the workspace, without its unit tests.
struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    fn all() -> Vec<Source> {
        let mut sources = Vec::new();
        for package in fs::read_dir(workspace().join("crates")).unwrap() {
            Source::collect(&package.unwrap().path().join("src"), &mut sources);
        }
        sources
    }

    fn collect(folder: &Path, into: &mut Vec<Source>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                Source::collect(&path, into);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let end = text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len());
                let text = text[..end].to_string();
                into.push(Source { path, text });
            }
        }
    }

    fn is(&self, end: &str) -> bool {
        self.path.ends_with(end)
    }

    fn is_of_variables(&self) -> bool {
        let folder = workspace().join("crates/porpoise-core/src/variables");
        self.path.starts_with(folder)
    }

    /// Whether it asks for the value of a variable by its name.
    fn asks_for(&self, name: &str) -> bool {
        let quoted = format!("\"{name}\"");
        self.text.match_indices(&quoted).any(|(at, _)| {
            let before = self.text[..at].trim_end();
            let call = before.strip_suffix('(').unwrap_or_default();
            let function = call
                .rsplit(|c: char| !c.is_alphanumeric() && c != '_')
                .next();
            matches!(
                function,
                Some("get" | "get_u64" | "get_text" | "find" | "is_off" | "is_on" | "whole")
            )
        })
    }

    /// Whether a `match` has an arm for the name.
    fn has_arm_for(&self, name: &str) -> bool {
        let quoted = format!("\"{name}\"");
        self.text.lines().any(|line| {
            let arm = line.split_once("=>").map(|(names, _)| names);
            arm.is_some_and(|names| names.contains(&quoted))
        })
    }

    /// Whether it reads a field of that name.
    fn reads_field(&self, field: &str) -> bool {
        let access = format!(".{field}");
        self.text.match_indices(&access).any(|(at, _)| {
            let after = self.text[at + access.len()..].chars().next();
            after.is_none_or(|c| !c.is_alphanumeric() && c != '_')
        })
    }
}

/// What a row of the table does to a session's variables.
fn applied<'a>(table: &'a str, name: &str) -> Option<&'a str> {
    let row = table.split_once(&format!("\"{name}\","))?.1;
    let end = row
        .find("\n    row(")
        .into_iter()
        .chain(row.find("\n    applied("));
    let row = &row[..end.min()?];
    Some(row.split_once("|s, v|")?.1)
}

/// The field of a session's variables that a row of the table keeps up to date.
fn applied_field<'a>(table: &'a str, name: &str) -> Option<&'a str> {
    let assigned = applied(table, name)?.split_once(" = ")?.0;
    assigned.rsplit("s.").next().map(str::trim)
}

/// The method that a row of the table tells of a new value.
fn applied_method<'a>(table: &'a str, name: &str) -> Option<&'a str> {
    let called = applied(table, name)?.split_once("unsigned(v)")?.0;
    called.rsplit_once('(')?.0.rsplit('.').next()
}

#[test]
fn a_variable_that_may_be_set_is_read_somewhere() {
    let sources = Source::all();
    let table = sources
        .iter()
        .find(|source| source.is("variables/table.rs"));
    let table = &table.unwrap().text;
    let others = || {
        sources
            .iter()
            .filter(|source| !source.is("variables/table.rs"))
    };
    let is_read = |variable: &&Variable| {
        let name = variable.name;
        let field_is_read = applied_field(table, name)
            .is_some_and(|field| others().any(|source| source.reads_field(field)));
        let is_told = applied_method(table, name).is_some_and(|method| {
            let definition = format!("pub fn {method}(");
            others().any(|source| source.text.contains(&definition))
        });
        let mut core = others().filter(|source| source.is_of_variables());
        field_is_read
            || is_told
            || others().any(|source| source.asks_for(name))
            || core.any(|source| source.has_arm_for(name))
    };
    let claims = |variable: &&Variable| {
        matches!(
            variable.usage,
            Use::Settable | Use::SetGlobal | Use::AtStart
        )
    };
    let unread: Vec<&str> = VARIABLES
        .iter()
        .filter(claims)
        .filter(|variable| !is_read(variable))
        .map(|variable| variable.name)
        .collect();
    assert!(
        unread.is_empty(),
        "said to work, and nothing reads them: {unread:?}"
    );
}

// ── The document ─────────────────────────────────────────────────────────────────────────────────

const DOCUMENT: &str = "docs/VARIABLES.md";

const INTRODUCTION: &str = "\
# System variables and options

Every variable does what it says, or tells that it doesn't. What becomes of a value that is given to
it, by SET or when the server starts, is one of these:

| | SET | at start |
| --- | --- | --- |
| works | does what MySQL's manual says | as SET |
| works, global value | as above; SET SESSION is refused (1228, 1229) | as SET |
| works at start | refused (1238) | does what the manual says |
| shows what is so | refused (1238) | changes nothing; a warning names it |
| no effect | is kept and shown; a warning says that it has no effect (1235) | is kept and shown; a warning names it |
| no effect, fixed | refused (1238) | as no effect |
| only its default | another value is refused (1235) | another value refuses the start |
| only its default, fixed | refused (1238) | another value refuses the start |

";

const OPTIONS: &str = "
## Options of other servers

These options of MySQL and MariaDB are no variables here. An option file may hold them: they have no
effect, and one warning names those that were given.

";

const REFUSED: &str = "
Somebody may rely on these, so a value (other than OFF, 0 or nothing) refuses the start. Of the
plugins, those that Debian's MariaDB loads for compression (`provider_…`) have no effect.

";

fn kind(usage: Use) -> &'static str {
    match usage {
        Use::Settable => "works",
        Use::SetGlobal => "works, global value",
        Use::AtStart => "works at start",
        Use::ReadOnly => "shows what is so",
        Use::Inert => "no effect",
        Use::InertAtStart => "no effect, fixed",
        Use::DefaultOnly => "only its default",
        Use::DefaultAtStart => "only its default, fixed",
    }
}

fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Global => "global",
        Scope::Session => "session",
        Scope::Both => "both",
    }
}

/// Names with commas between, in lines of a document.
fn paragraph(names: impl Iterator<Item = &'static str>) -> String {
    const LINE_MAX: usize = 100;
    let mut lines = vec![String::new()];
    for name in names {
        let word = format!("`{name}`,");
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].len() + word.len() >= LINE_MAX {
            lines.push(word);
            continue;
        }
        if !lines[last].is_empty() {
            lines[last].push(' ');
        }
        lines[last].push_str(&word);
    }
    let text = lines.join("\n");
    format!("{}.\n", text.trim_end_matches(','))
}

fn document() -> String {
    let mut text = INTRODUCTION.to_string();
    text.push_str("| variable | scope | default | a value |\n| --- | --- | --- | --- |\n");
    for variable in VARIABLES {
        let default = match variable.show(&variable.default_value()) {
            shown if shown.is_empty() => String::new(),
            shown => format!("`{shown}`"),
        };
        let (scope, kind) = (scope(variable.scope), kind(variable.usage));
        writeln!(
            text,
            "| `{}` | {scope} | {default} | {kind} |",
            variable.name
        )
        .unwrap();
    }
    let refuses = |option: &UnsupportedOption| (option.refuses)("ON");
    text.push_str(OPTIONS);
    let harmless = options().filter(|option| !refuses(option));
    text.push_str(&paragraph(harmless.map(|option| option.name)));
    text.push_str(REFUSED);
    text.push_str(&paragraph(
        options().filter(refuses).map(|option| option.name),
    ));
    text
}

#[test]
fn the_document_of_variables_is_up_to_date() {
    let path = workspace().join(DOCUMENT);
    let expected = document();
    if std::env::var_os("PORPOISE_WRITE_DOCS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    let is_current = fs::read_to_string(&path).is_ok_and(|text| text == expected);
    assert!(
        is_current,
        "{DOCUMENT} is out of date. To write it anew:\n\
         PORPOISE_WRITE_DOCS=1 cargo test -p porpoise-core --test variables"
    );
}
