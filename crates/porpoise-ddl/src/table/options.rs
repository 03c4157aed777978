//! Table options: ENGINE, character set, AUTO_INCREMENT, COMMENT, and those that are only kept and
//! printed.

use compact_str::CompactString;
use porpoise_core::error::{Error, Level, Result};
use porpoise_core::quote::text;
use porpoise_expr::typing::declared::resolve_collation;
use porpoise_session::session_state::SessionState;
use porpoise_sql::ast;
use porpoise_types::Collation;

/// Engines that MySQL has; all of them mean ours.
const KNOWN_ENGINES: [&str; 11] = [
    "InnoDB",
    "MyISAM",
    "MEMORY",
    "HEAP",
    "CSV",
    "ARCHIVE",
    "BLACKHOLE",
    "MRG_MYISAM",
    "MERGE",
    "Aria",
    "Porpoise",
];

/// Options that are kept and printed back; without effect, but for STATS_AUTO_RECALC.
const PRINTED_OPTIONS: [&str; 11] = [
    "MIN_ROWS",
    "MAX_ROWS",
    "AVG_ROW_LENGTH",
    "PACK_KEYS",
    "STATS_PERSISTENT",
    "STATS_AUTO_RECALC",
    "STATS_SAMPLE_PAGES",
    "CHECKSUM",
    "DELAY_KEY_WRITE",
    "ROW_FORMAT",
    "KEY_BLOCK_SIZE",
];

const TABLE_COMMENT_CHARS_MAX: usize = 2048;

/// What table options say together.
#[derive(Default)]
pub struct Options {
    pub charset: Option<CompactString>,
    pub collation: Option<CompactString>,
    pub auto_increment: Option<u64>,
    pub comment: Option<String>,
    pub engine: bool,
    /// As they are said.
    printed: Vec<(CompactString, String)>,
    /// `ENCRYPTION`.
    pub encrypted: Option<bool>,
    /// `DATA DIRECTORY` and `INDEX DIRECTORY`, as they are called.
    directories: Vec<CompactString>,
}

/// What `ENCRYPTION` says.
///
/// # Errors
/// 3184.
pub fn is_encrypted(option: &[u8]) -> Result<bool> {
    match option {
        [] | [b'N' | b'n'] => Ok(false),
        [b'Y' | b'y'] => Ok(true),
        _ => Err(Error::invalid_encryption()),
    }
}

impl Options {
    pub fn read<'a>(
        options: impl IntoIterator<Item = &'a ast::TableOption>,
        table: &str,
        session: &mut SessionState,
    ) -> Result<Options> {
        let mut read = Options::default();
        for option in options {
            match option {
                ast::TableOption::Engine(name) => {
                    check_engine(name, table, session)?;
                    read.engine = true;
                }
                ast::TableOption::Charset(name) if name.eq_ignore_ascii_case("default") => {}
                ast::TableOption::Charset(name) => read.charset = Some(name.as_str().into()),
                ast::TableOption::Collation(name) => read.collation = Some(name.as_str().into()),
                ast::TableOption::AutoIncrement(next) => read.auto_increment = Some(*next),
                ast::TableOption::Comment(comment) => {
                    let comment = text(Some(comment));
                    if comment.chars().count() > TABLE_COMMENT_CHARS_MAX {
                        return Err(Error::comment_too_long(
                            "table",
                            table,
                            TABLE_COMMENT_CHARS_MAX,
                        ));
                    }
                    read.comment = Some(comment);
                }
                ast::TableOption::RowFormat(format) => {
                    read.print("ROW_FORMAT", format.to_ascii_uppercase())
                }
                ast::TableOption::Other(name, value) => read.other(name, value)?,
            }
        }
        Ok(read)
    }

    fn other(&mut self, name: &str, value: &[u8]) -> Result<()> {
        match name.to_ascii_uppercase().as_str() {
            "ENCRYPTION" => self.encrypted = Some(is_encrypted(value)?),
            directory if directory.ends_with(" DIRECTORY") => {
                self.directories.push(directory.into());
            }
            _ => self.print(name, String::from_utf8_lossy(value).into_owned()),
        }
        Ok(())
    }

    /// Whether a new table's rows may be where the options say, and as they say. There is no keyring
    /// to encrypt with, and all tables are in one folder.
    ///
    /// # Errors
    /// 3185, 3121, 1478.
    pub fn check_placement(&self, encrypted: bool, session: &SessionState) -> Result<()> {
        if self.encrypted.unwrap_or(encrypted) {
            return Err(Error::no_master_key());
        }
        match self.directories.first() {
            Some(_) if session.sql_mode.no_dir_in_create() => Ok(()),
            Some(option) if option.starts_with("DATA") => Err(Error::unknown_directory()),
            Some(option) => Err(Error::unsupported_create_option(option.as_str())),
            None => Ok(()),
        }
    }

    /// ALTER TABLE moves nothing.
    pub fn warn_of_directories(&self, session: &mut SessionState) {
        for option in &self.directories {
            let ignored = Error::option_ignored(option.as_str());
            session.warn(Level::Warning, ignored.into_condition());
        }
    }

    /// Puts what was said into a table's options, which are printed in the order of their list.
    pub fn print_into(&self, options: &mut Vec<(CompactString, String)>) {
        for (name, value) in &self.printed {
            options.retain(|(known, _)| known != name);
            if !value.eq_ignore_ascii_case("default") {
                options.push((name.clone(), value.clone()));
            }
        }
        options.sort_by_key(|(name, _)| {
            let mut listed = PRINTED_OPTIONS.iter();
            listed.position(|known| *known == name.as_str())
        });
    }

    fn print(&mut self, name: &str, value: String) {
        if PRINTED_OPTIONS
            .iter()
            .any(|printed| printed.eq_ignore_ascii_case(name))
        {
            let name = CompactString::new(name.to_ascii_uppercase());
            self.printed.push((name, value));
        }
    }

    /// The table's collation, over the schema's or the table's old one.
    pub fn collation(&self, inherited: Collation) -> Result<Collation> {
        resolve_collation(
            self.charset.as_deref(),
            self.collation.as_deref(),
            inherited,
        )
    }
}

fn check_engine(name: &str, table: &str, session: &mut SessionState) -> Result<()> {
    if name.eq_ignore_ascii_case("InnoDB") {
        return Ok(());
    }
    let known = KNOWN_ENGINES
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name));
    if !known {
        let error = Error::unknown_storage_engine(name);
        if session.sql_mode.no_engine_substitution() {
            return Err(error);
        }
        session.warn(Level::Warning, error.into_condition());
    }
    session.warn(
        Level::Warning,
        Error::using_other_engine("InnoDB", table).into_condition(),
    );
    Ok(())
}
