//! Option files: lines of groups, and files that include others.
//!
//! Source: MySQL 8.4 Reference Manual, 6.2.2.2 "Using Option Files".

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::OptionError;

/// Files within files: deeper than this is a circle.
const INCLUDE_DEPTH_MAX: usize = 10;

/// A line that sets an option.
pub(super) struct Line {
    pub name: String,
    pub value: Option<String>,
}

/// Reads an option file, and those that it includes.
pub(super) struct OptionFileReader<'a> {
    pub groups: &'a [&'a str],
    /// A file that can't be read is an error.
    pub required: bool,
    pub lines: Vec<Line>,
    /// Things to tell the user that are no errors.
    pub warnings: Vec<String>,
}

impl OptionFileReader<'_> {
    /// Reads a file; `depth` is how many files include it.
    pub fn read(&mut self, path: &Path, depth: usize) -> Result<(), OptionError> {
        if is_world_writable(path) {
            let warning = format!(
                "World-writable config file '{}' is ignored.",
                path.display()
            );
            self.warnings.push(warning);
            return Ok(());
        }
        match fs::read(path) {
            Ok(text) => self.parse_text(path, &String::from_utf8_lossy(&text), depth),
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

    fn parse_text(&mut self, path: &Path, text: &str, depth: usize) -> Result<(), OptionError> {
        let mut group: Option<&str> = None;
        for (at, line) in text.lines().enumerate() {
            let line_error =
                |what: &str| OptionError::Line(path.to_path_buf(), at + 1, what.to_string());
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(directive) = line.strip_prefix('!') {
                if depth >= INCLUDE_DEPTH_MAX {
                    return Err(line_error("Files are included in a circle"));
                }
                for file in self.included(path, directive, line_error)? {
                    self.read(&file, depth + 1)?;
                }
                continue;
            }
            if let Some(name) = line.strip_prefix('[') {
                let (name, _) = name
                    .split_once(']')
                    .ok_or_else(|| line_error("Wrong group definition"))?;
                group = Some(name.trim());
                continue;
            }
            let group = group.ok_or_else(|| line_error("Found option without preceding group"))?;
            if self.groups.contains(&group) {
                self.lines.push(Line::parse(line));
            }
        }
        Ok(())
    }

    /// The files that a line with `!include` or `!includedir` names.
    fn included(
        &mut self,
        path: &Path,
        directive: &str,
        line_error: impl Fn(&str) -> OptionError,
    ) -> Result<Vec<PathBuf>, OptionError> {
        match directive.split_once(char::is_whitespace) {
            Some(("include", file)) => Ok(vec![relative(path, file.trim())]),
            Some(("includedir", folder)) => {
                let folder = folder.trim();
                files_of(&relative(path, folder)).or_else(|error| {
                    let what = format!("Can't read directory '{folder}': {error}");
                    if self.required {
                        return Err(line_error(&what));
                    }
                    self.warnings.push(what);
                    Ok(Vec::new())
                })
            }
            _ => Err(line_error("Wrong '!' directive")),
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

/// A file that anybody may have written doesn't say what the server's owner wants.
fn is_world_writable(path: &Path) -> bool {
    const OTHERS_WRITE: u32 = 0o002;
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & OTHERS_WRITE != 0)
}

/// A path in an option file is relative to the file.
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

/// A line without the comment behind its option: `#` outside quotes, after a space.
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

/// A value without the quotes around it, its escapes replaced: `\b \t \n \r \\ \s`.
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
