//! Options the way `mysqld` takes them: option files, then the command line, the last one wins.
//!
//! ```text
//! [mysqld]                       --max-connections=500      --max_connections 500
//! max_connections = 500          --skip-name-resolve        --loose-no-such-thing=1
//! !include extra.cnf             --innodb-buffer-pool-size=1G
//! ```
//!
//! A file that nobody named may be missing, or be one that can't be read: the start isn't refused
//! for what lies in a home. A file that everybody may write is never read. Whatever is passed over
//! is told, except what isn't there.
//!
//! A name is the same with dashes and underscores. What a value means is left to whoever owns the variable;
//! this module only knows, from [`Known`], which names there are and whether they take a value.
//!
//! Source: MySQL 8.4 Reference Manual, 6.2.2.1 "Using Options on the Command Line", 6.2.2.2 "Using Option Files",
//! 6.2.2.4 "Program Option Modifiers".

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How an option's value is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// `--name=value` or `--name value`.
    Value,
    /// `--name`, `--name=ON`, `--skip-name`.
    Switch,
}

/// Which options there are: names have underscores, as variables do.
pub trait Known {
    fn takes(&self, name: &str) -> Option<Takes>;
}

impl<F: Fn(&str) -> Option<Takes>> Known for F {
    fn takes(&self, name: &str) -> Option<Takes> {
        self(name)
    }
}

/// Options that were given, in order; a later one overrules an earlier one of the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    given: Vec<(String, String)>,
    /// Things to tell the user that are no errors.
    pub warnings: Vec<String>,
}

/// What is wrong with the options, in `mysqld`'s words where it has some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionError {
    UnknownVariable(String),
    UnknownOption(String),
    NoValue(String),
    TooManyArguments(String),
    File(PathBuf, String),
    /// A line of an option file.
    Line(PathBuf, usize, String),
}

impl std::fmt::Display for OptionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OptionError::UnknownVariable(option) => write!(f, "unknown variable '{option}'."),
            OptionError::UnknownOption(option) => write!(f, "unknown option '{option}'."),
            OptionError::NoValue(option) => write!(f, "option '{option}' requires an argument."),
            OptionError::TooManyArguments(first) => {
                write!(f, "Too many arguments (first extra is '{first}').")
            }
            OptionError::File(path, why) => write!(
                f,
                "Could not open required defaults file: {}: {why}",
                path.display()
            ),
            OptionError::Line(path, line, what) => write!(
                f,
                "{what} in config file {} at line {line}!",
                path.display()
            ),
        }
    }
}

impl std::error::Error for OptionError {}

/// Folders within folders within files: deeper than this is a circle.
const INCLUDE_DEPTH_MAX: usize = 10;

impl Options {
    /// The last value given for a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.given
            .iter()
            .rev()
            .find(|(given, _)| given == name)
            .map(|(_, value)| value.as_str())
    }

    /// Takes out the last value given for a name.
    pub fn take(&mut self, name: &str) -> Option<String> {
        let value = self.get(name).map(str::to_string);
        self.given.retain(|(given, _)| given != name);
        value
    }

    /// Every option that is left, once, with the value that counts.
    pub fn into_pairs(self) -> Vec<(String, String)> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for (name, value) in self.given {
            pairs.retain(|(given, _)| *given != name);
            pairs.push((name, value));
        }
        pairs
    }

    /// Reads an option file's `groups`. A file that can't be read is an error only if it is
    /// `required`, as are those that it includes. What is wrong in a file that can be read is an
    /// error always.
    pub fn read_file(
        &mut self,
        path: &Path,
        groups: &[&str],
        required: bool,
        known: &dyn Known,
    ) -> Result<(), OptionError> {
        let mut reading = Reading {
            groups,
            required,
            lines: Vec::new(),
            warnings: Vec::new(),
        };
        reading.read(path, 0)?;
        self.warnings.append(&mut reading.warnings);
        for Line { name, value } in reading.lines {
            let words = match value {
                Some(value) => VecDeque::from([format!("--{name}={value}")]),
                None => VecDeque::from([format!("--{name}")]),
            };
            // In a file, a name alone never takes the next line for its value.
            self.take_words(words, known)?;
        }
        Ok(())
    }

    /// Reads the command line, without the program's own name and subcommand.
    pub fn read_arguments(
        &mut self,
        arguments: impl IntoIterator<Item = String>,
        known: &dyn Known,
    ) -> Result<(), OptionError> {
        self.take_words(arguments.into_iter().collect(), known)
    }

    fn take_words(
        &mut self,
        mut words: VecDeque<String>,
        known: &dyn Known,
    ) -> Result<(), OptionError> {
        while let Some(word) = words.pop_front() {
            let Some(option) = word.strip_prefix("--").filter(|option| !option.is_empty()) else {
                return Err(OptionError::TooManyArguments(word));
            };
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value.to_string())),
                None => (option, None),
            };
            let name = name.replace('-', "_").to_ascii_lowercase();
            let (name, loose) = match name.strip_prefix("loose_") {
                Some(rest) => (rest.to_string(), true),
                None => (name, false),
            };
            match resolve(&name, known) {
                Some((name, Form::Off)) => self.given.push((name, "OFF".to_string())),
                Some((name, Form::On)) => {
                    self.given
                        .push((name, value.unwrap_or_else(|| "ON".to_string())));
                }
                Some((name, Form::Value)) => {
                    let value = match value {
                        Some(value) => value,
                        None => words
                            .pop_front_if(|next| !next.starts_with("--"))
                            .ok_or_else(|| OptionError::NoValue(word.clone()))?,
                    };
                    self.given.push((name, value));
                }
                None if loose => self.warnings.push(match value {
                    Some(_) => format!("unknown variable '{option}'."),
                    None => format!("unknown option '--{option}'."),
                }),
                None => {
                    return Err(match value {
                        Some(_) => OptionError::UnknownVariable(option.to_string()),
                        None => OptionError::UnknownOption(word.clone()),
                    });
                }
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Value,
    On,
    Off,
}

/// The option a name stands for: itself, or switched on or off by a prefix.
fn resolve(name: &str, known: &dyn Known) -> Option<(String, Form)> {
    if let Some(takes) = known.takes(name) {
        return Some((
            name.to_string(),
            if takes == Takes::Switch {
                Form::On
            } else {
                Form::Value
            },
        ));
    }
    for (prefix, form) in [
        ("skip_", Form::Off),
        ("disable_", Form::Off),
        ("enable_", Form::On),
    ] {
        if let Some(rest) = name.strip_prefix(prefix)
            && known.takes(rest) == Some(Takes::Switch)
        {
            return Some((rest.to_string(), form));
        }
    }
    None
}

// ── Option files ─────────────────────────────────────────────────────────────────────────────

struct Line {
    name: String,
    value: Option<String>,
}

/// An option file being read, and those it includes.
struct Reading<'a> {
    groups: &'a [&'a str],
    /// The files have to be there.
    required: bool,
    lines: Vec<Line>,
    warnings: Vec<String>,
}

impl Reading<'_> {
    fn read(&mut self, path: &Path, depth: usize) -> Result<(), OptionError> {
        if is_world_writable(path) {
            let warning = format!(
                "World-writable config file '{}' is ignored.",
                path.display()
            );
            self.warnings.push(warning);
            return Ok(());
        }
        match fs::read(path) {
            Ok(text) => self.take(path, &String::from_utf8_lossy(&text), depth),
            Err(error) if self.required => {
                Err(OptionError::File(path.to_path_buf(), error.to_string()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => {
                let path = path.display();
                let warning =
                    format!("Config file '{path}' can't be read, and is ignored: {error}");
                self.warnings.push(warning);
                Ok(())
            }
        }
    }

    fn take(&mut self, path: &Path, text: &str, depth: usize) -> Result<(), OptionError> {
        let mut group: Option<&str> = None;
        for (at, line) in text.lines().enumerate() {
            let wrong =
                |what: &str| OptionError::Line(path.to_path_buf(), at + 1, what.to_string());
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(directive) = line.strip_prefix('!') {
                if depth >= INCLUDE_DEPTH_MAX {
                    return Err(wrong("Files are included in a circle"));
                }
                for file in self.included(path, directive, wrong)? {
                    self.read(&file, depth + 1)?;
                }
                continue;
            }
            if let Some(name) = line.strip_prefix('[') {
                let (name, _) = name
                    .split_once(']')
                    .ok_or_else(|| wrong("Wrong group definition"))?;
                group = Some(name.trim());
                continue;
            }
            let group = group.ok_or_else(|| wrong("Found option without preceding group"))?;
            if self.groups.contains(&group) {
                self.lines.push(Line::parse(line));
            }
        }
        Ok(())
    }

    /// The files that a line with `!` names.
    fn included(
        &mut self,
        path: &Path,
        directive: &str,
        wrong: impl Fn(&str) -> OptionError,
    ) -> Result<Vec<PathBuf>, OptionError> {
        match directive.split_once(char::is_whitespace) {
            Some(("include", file)) => Ok(vec![relative(path, file.trim())]),
            Some(("includedir", folder)) => {
                let folder = folder.trim();
                files_of(&relative(path, folder)).or_else(|error| {
                    let what = format!("Can't read directory '{folder}': {error}");
                    if self.required {
                        return Err(wrong(&what));
                    }
                    self.warnings.push(what);
                    Ok(Vec::new())
                })
            }
            _ => Err(wrong("Wrong '!' directive")),
        }
    }
}

impl Line {
    fn parse(line: &str) -> Line {
        let line = without_comment(line);
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim(), Some(unquote(value.trim()))),
            None => (line.trim(), None),
        };
        Line {
            name: name.to_string(),
            value,
        }
    }
}

/// A file that anybody may have written says nothing of what the server's owner wants.
fn is_world_writable(path: &Path) -> bool {
    const OTHERS_WRITE: u32 = 0o002;
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & OTHERS_WRITE != 0)
}

fn relative(from: &Path, to: &str) -> PathBuf {
    match from.parent() {
        Some(folder) if Path::new(to).is_relative() => folder.join(to),
        _ => PathBuf::from(to),
    }
}

/// The option files of a folder, in the order of their names.
fn files_of(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "cnf") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A comment may stand behind an option: `#` outside quotes, after a space.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, letter) in line.char_indices() {
        match (quote, letter) {
            (None, '#') if before.is_whitespace() => return line[..at].trim_end(),
            (None, '\'' | '"') if before.is_whitespace() || before == '=' => quote = Some(letter),
            (Some(open), letter) if open == letter && before != '\\' => quote = None,
            _ => {}
        }
        before = letter;
    }
    line
}

/// A value without the quotes around it, its escapes taken: `\b \t \n \r \\ \s`.
fn unquote(value: &str) -> String {
    let inner = ['\'', '"']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(value);
    let mut text = String::with_capacity(inner.len());
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            text.push(letter);
            continue;
        }
        match letters.next() {
            Some('b') => text.push('\u{8}'),
            Some('t') => text.push('\t'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('s') => text.push(' '),
            Some(quote @ ('\\' | '\'' | '"')) => text.push(quote),
            Some(other) => text.extend(['\\', other]),
            None => text.push('\\'),
        }
    }
    text
}

/// A number with MySQL's suffixes: K, M, G, T, P, E, of either case, powers of 1024.
pub fn number(text: &str) -> Option<u64> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, letter)) if letter.is_ascii_alphabetic() => {
            let power = "kmgtpe".find(letter.to_ascii_lowercase())? as u32 + 1;
            (&text[..at], 10 * power)
        }
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(name: &str) -> Option<Takes> {
        match name {
            "max_connections" | "socket" | "datadir" | "innodb_buffer_pool_size" | "port" => {
                Some(Takes::Value)
            }
            "skip_name_resolve" | "innodb_file_per_table" | "local_infile" => Some(Takes::Switch),
            _ => None,
        }
    }

    fn arguments(words: &[&str]) -> Result<Vec<(String, String)>, OptionError> {
        let mut options = Options::default();
        options.read_arguments(words.iter().map(|word| word.to_string()), &known)?;
        Ok(options.into_pairs())
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect()
    }

    #[test]
    fn dashes_and_underscores_are_the_same_and_a_value_follows_either_way() {
        for words in [
            &["--max-connections=500"][..],
            &["--max_connections", "500"],
            &["--Max-Connections=500"],
        ] {
            assert_eq!(arguments(words), Ok(pairs(&[("max_connections", "500")])));
        }
        assert_eq!(
            arguments(&["--port=1", "--socket=/s", "--port=2"]),
            Ok(pairs(&[("socket", "/s"), ("port", "2")]))
        );
    }

    #[test]
    fn switches_go_on_and_off() {
        for (word, value) in [
            ("--local-infile", "ON"),
            ("--local-infile=0", "0"),
            ("--skip-local-infile", "OFF"),
            ("--disable-local-infile", "OFF"),
            ("--enable-local-infile", "ON"),
        ] {
            assert_eq!(
                arguments(&[word]),
                Ok(pairs(&[("local_infile", value)])),
                "{word}"
            );
        }
        assert_eq!(
            arguments(&["--skip-name-resolve"]),
            Ok(pairs(&[("skip_name_resolve", "ON")]))
        );
    }

    #[test]
    fn unknown_names_are_errors_unless_loose() {
        let error = |words: &[&str]| arguments(words).unwrap_err().to_string();
        assert_eq!(
            error(&["--no-such-thing=1"]),
            "unknown variable 'no-such-thing=1'."
        );
        assert_eq!(
            error(&["--no-such-thing"]),
            "unknown option '--no-such-thing'."
        );
        assert_eq!(error(&["--port"]), "option '--port' requires an argument.");
        assert_eq!(
            error(&["stray"]),
            "Too many arguments (first extra is 'stray')."
        );
        let mut options = Options::default();
        options
            .read_arguments(["--loose-no-such-thing=1".to_string()], &known)
            .unwrap();
        assert_eq!(options.warnings.len(), 1);
    }

    #[test]
    fn an_option_file_is_read_by_group_with_includes_quotes_and_comments() {
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().join("my.cnf");
        fs::create_dir(folder.path().join("conf.d")).unwrap();
        fs::write(folder.path().join("conf.d/b.cnf"), "[mysqld]\nport=7\n").unwrap();
        fs::write(folder.path().join("conf.d/a.cnf"), "[mysqld]\nport=6\n").unwrap();
        fs::write(folder.path().join("conf.d/a.txt"), "[mysqld]\nport=5\n").unwrap();
        fs::write(
            folder.path().join("one.cnf"),
            "[porpoise]\nskip-local-infile\n",
        )
        .unwrap();
        fs::write(
            &main,
            "# a comment\n[client]\npassword=x\n[mysqld]\nmax-connections = 12 # twelve\n\
             socket=\"/tmp/a #b\\tc\\s.sock\"\nskip-name-resolve\n!include one.cnf\n!includedir conf.d\n",
        )
        .unwrap();
        let mut options = Options::default();
        options
            .read_file(&main, &["mysqld", "porpoise"], true, &known)
            .unwrap();
        assert_eq!(options.get("max_connections"), Some("12"));
        assert_eq!(options.get("socket"), Some("/tmp/a #b\tc .sock"));
        assert_eq!(options.get("skip_name_resolve"), Some("ON"));
        assert_eq!(options.get("local_infile"), Some("OFF"));
        assert_eq!(options.get("port"), Some("7"));
        assert_eq!(options.get("password"), None);
    }

    #[test]
    fn a_broken_option_file_is_told_by_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my.cnf");
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            Options::default()
                .read_file(&path, &["mysqld"], true, &known)
                .unwrap_err()
                .to_string()
        };
        assert!(
            read("port=1\n").starts_with("Found option without preceding group in config file")
        );
        assert!(read("[mysqld]\n\n[oops\n").contains("at line 3!"));
        assert!(read("!include my.cnf\n").contains("circle"));
        assert_eq!(
            read("[mysqld]\nnonsense=1\n"),
            "unknown variable 'nonsense=1'."
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_is_passed_over_unless_it_was_named() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let read = |name: &str, required| {
            let mut options = Options::default();
            let read = options.read_file(&path(name), &["mysqld"], required, &known);
            read.map(|()| options)
        };
        // What root can't read either: a folder, and a file whose place is no folder.
        fs::create_dir(path("folder")).unwrap();
        fs::write(
            path("file"),
            "[mysqld]\nport=1\n!include gone.cnf\n!include folder\n",
        )
        .unwrap();
        fs::write(
            path("odd"),
            b"[mysqld]\n# a caf\xE9\nport=2\n!includedir gone\n",
        )
        .unwrap();
        for name in ["folder", "file/within"] {
            let options = read(name, false).unwrap();
            let [warning] = &options.warnings[..] else {
                panic!("{name}: {:?}", options.warnings);
            };
            assert!(warning.starts_with("Config file '"), "{warning}");
            let error = read(name, true).unwrap_err().to_string();
            assert!(error.starts_with("Could not open required defaults file: "));
        }
        assert_eq!(read("gone", false).unwrap().warnings, Vec::<String>::new());
        assert!(read("gone", true).is_err());
        // The rest of a file that includes such files is read.
        let options = read("file", false).unwrap();
        assert_eq!(
            (options.get("port"), options.warnings.len()),
            (Some("1"), 1)
        );
        assert!(read("file", true).is_err());
        let options = read("odd", false).unwrap();
        assert_eq!(
            (options.get("port"), options.warnings.len()),
            (Some("2"), 1)
        );
        assert!(read("odd", true).is_err());
        // Anybody may have written it.
        fs::set_permissions(path("odd"), fs::Permissions::from_mode(0o666)).unwrap();
        for required in [true, false] {
            let options = read("odd", required).unwrap();
            assert_eq!(options.get("port"), None);
            assert!(options.warnings[0].starts_with("World-writable config file '"));
        }
    }

    #[test]
    fn suffixes_are_powers_of_1024() {
        assert_eq!(number("16K"), Some(16 << 10));
        assert_eq!(number("1g"), Some(1 << 30));
        assert_eq!(number("12"), Some(12));
        assert_eq!(number("1x"), None);
        assert_eq!(number("99999999999E"), None);
        assert_eq!(number(""), None);
    }
}
