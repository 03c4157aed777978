//! Options the way `mysqld` takes them: option files, then the command line; the last value wins.
//!
//! ```text
//! [mysqld]                       --max-connections=500      --max_connections 500
//! max_connections = 500          --skip-name-resolve        --loose-no-such-thing=1
//! !include extra.cnf             --innodb-buffer-pool-size=1G
//! ```
//!
//! A file that nobody named may be missing or unreadable: a server doesn't refuse to start because
//! of a file in a home directory. A file that everybody may write is never read. A warning tells of
//! each file that is skipped, unless it is missing.
//!
//! A name is the same with dashes and underscores. What a value means is left to the variable's
//! owner; this module only knows, from [`KnownOptions`], which names there are and whether they
//! take a value.
//!
//! Source: MySQL 8.4 Reference Manual, 6.2.2.1 "Using Options on the Command Line", 6.2.2.2 "Using
//! Option Files", 6.2.2.4 "Program Option Modifiers".

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

mod file;

pub use porpoise_engine::variables::OptionKind;

use file::{Line, OptionFileReader};

/// Which options there are.
pub trait KnownOptions {
    /// What the option of this name is called, which may be another name, and whether it takes a
    /// value; `None` if there is no such option. Names are in lower case, and have underscores as
    /// variables do.
    fn find(&self, name: &str) -> Option<(String, OptionKind)>;
}

impl<F: Fn(&str) -> Option<(String, OptionKind)>> KnownOptions for F {
    fn find(&self, name: &str) -> Option<(String, OptionKind)> {
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
    /// `name=value` of an unknown name.
    UnknownVariable(String),
    /// A name without a value, unknown.
    UnknownOption(String),
    /// An option without the value that it needs.
    NoValue(String),
    /// An argument that is no option: the first such.
    TooManyArguments(String),
    /// A required file that can't be read, and why.
    File(PathBuf, String),
    /// A line of an option file, from 1, and what is wrong with it.
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

    /// Reads an option file's `groups`.
    ///
    /// # Errors
    /// If the file, or one that it includes, can't be read and is `required`; if anything is wrong
    /// in a file that can be read.
    pub fn read_file(
        &mut self,
        path: &Path,
        groups: &[&str],
        required: bool,
        known: &dyn KnownOptions,
    ) -> Result<(), OptionError> {
        let mut file = OptionFileReader {
            groups,
            required,
            lines: Vec::new(),
            warnings: Vec::new(),
        };
        file.read(path, 0)?;
        self.warnings.append(&mut file.warnings);
        for Line { name, value } in file.lines {
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
    ///
    /// # Errors
    /// For an unknown option, one that lacks its value, and an argument that is none.
    pub fn read_arguments(
        &mut self,
        arguments: impl IntoIterator<Item = String>,
        known: &dyn KnownOptions,
    ) -> Result<(), OptionError> {
        self.take_words(arguments.into_iter().collect(), known)
    }

    fn take_words(
        &mut self,
        mut words: VecDeque<String>,
        known: &dyn KnownOptions,
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
                Some((name, OptionForm::Off)) => self.given.push((name, "OFF".to_string())),
                Some((name, OptionForm::On)) => {
                    let value = value.unwrap_or_else(|| "ON".to_string());
                    self.given.push((name, value));
                }
                Some((name, OptionForm::Value)) => {
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
enum OptionForm {
    Value,
    On,
    Off,
}

/// The option a name stands for: itself, or switched on or off by a prefix.
fn resolve(name: &str, known: &dyn KnownOptions) -> Option<(String, OptionForm)> {
    if let Some((name, kind)) = known.find(name) {
        return Some(match kind {
            OptionKind::Switch => (name, OptionForm::On),
            OptionKind::Value => (name, OptionForm::Value),
        });
    }
    for (prefix, form) in [
        ("skip_", OptionForm::Off),
        ("disable_", OptionForm::Off),
        ("enable_", OptionForm::On),
    ] {
        if let Some(rest) = name.strip_prefix(prefix)
            && let Some((name, OptionKind::Switch)) = known.find(rest)
        {
            return Some((name, form));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn known(name: &str) -> Option<(String, OptionKind)> {
        const KNOWN: &[(&str, OptionKind)] = &[
            ("max_connections", OptionKind::Value),
            ("socket", OptionKind::Value),
            ("port", OptionKind::Value),
            ("skip_name_resolve", OptionKind::Switch),
            ("local_infile", OptionKind::Switch),
        ];
        let (name, kind) = KNOWN.iter().find(|(known, _)| *known == name)?;
        Some((name.to_string(), *kind))
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
}
