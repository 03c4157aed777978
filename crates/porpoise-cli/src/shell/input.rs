//! What was typed, cut into statements and commands.
//!
//! A statement goes on over lines to the delimiter, `\g` or `\G`, outside of quotes and comments. A
//! command is a word at the beginning of a line while no statement has begun, or a backslash and a
//! letter anywhere outside of quotes.

use super::commands::{self, Command};

/// One thing to do.
#[derive(Debug, PartialEq)]
pub enum Item {
    Statement {
        sql: String,
        /// `\G`: a line a value.
        vertical: bool,
        /// The line it began in, from 1.
        line: usize,
    },
    Command {
        command: &'static Command,
        argument: String,
        line: usize,
    },
    /// A backslash and a letter that is no command's.
    Unknown { letter: char, line: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    Nothing,
    Quotes(char),
    Comment,
}

/// The statement that has begun, and what ends it.
#[derive(Debug)]
pub struct Input {
    pub delimiter: String,
    buffer: String,
    inside: Inside,
    line: usize,
    began: usize,
}

impl Input {
    pub fn new(delimiter: &str) -> Input {
        Input {
            delimiter: delimiter.into(),
            buffer: String::new(),
            inside: Inside::Nothing,
            line: 0,
            began: 0,
        }
    }

    /// A statement, a quote or a comment has begun and not ended.
    pub fn is_open(&self) -> bool {
        self.inside != Inside::Nothing || !self.buffer.trim().is_empty()
    }

    /// What has been typed of a statement.
    pub fn text(&self) -> &str {
        &self.buffer
    }

    pub fn clear(&mut self) {
        self.buffer.clear();
        self.inside = Inside::Nothing;
    }

    /// Takes one line, without its end; returns what it completes.
    pub fn feed(&mut self, line: &str) -> Vec<Item> {
        let mut items = Vec::new();
        self.line += 1;
        if !self.is_open()
            && let Some((command, argument)) = commands::named(line, &self.delimiter)
        {
            items.push(self.command(command, argument));
            return items;
        }
        let mut rest = line;
        while let Some(next) = rest.chars().next() {
            let mut taken = next.len_utf8();
            match self.inside {
                Inside::Comment => {
                    if rest.starts_with("*/") {
                        self.inside = Inside::Nothing;
                        taken = 2;
                    }
                    self.push(&rest[..taken]);
                }
                Inside::Quotes(quote) => {
                    if next == '\\' && quote != '`' {
                        taken += rest[taken..].chars().next().map_or(0, char::len_utf8);
                    } else if next == quote {
                        self.inside = Inside::Nothing;
                    }
                    self.push(&rest[..taken]);
                }
                Inside::Nothing if rest.starts_with(&self.delimiter) => {
                    taken = self.delimiter.len();
                    self.end(false, &mut items);
                }
                Inside::Nothing => match next {
                    '\\' => taken = self.backslash(rest, &mut items),
                    '#' => break,
                    '-' if is_comment(rest) => break,
                    '\'' | '"' | '`' => {
                        self.inside = Inside::Quotes(next);
                        self.push(&rest[..taken]);
                    }
                    // `/*!` and `/*+` hold statements' text: quotes and delimiters count there.
                    '/' if rest.starts_with("/*!") || rest.starts_with("/*+") => {
                        taken = 3;
                        self.push(&rest[..taken]);
                    }
                    '/' if rest.starts_with("/*") => {
                        self.inside = Inside::Comment;
                        taken = 2;
                        self.push("/*");
                    }
                    _ => self.push(&rest[..taken]),
                },
            }
            rest = &rest[taken..];
        }
        if self.is_open() {
            self.buffer.push('\n');
        }
        items
    }

    /// What is left at the end of all input is a statement, too.
    pub fn finish(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        self.end(false, &mut items);
        items
    }

    fn push(&mut self, text: &str) {
        if self.buffer.is_empty() {
            if text.trim().is_empty() {
                return;
            }
            self.began = self.line;
        }
        self.buffer.push_str(text);
    }

    fn end(&mut self, vertical: bool, items: &mut Vec<Item>) {
        let sql = self.buffer.trim().to_string();
        self.clear();
        if !sql.is_empty() {
            items.push(Item::Statement {
                sql,
                vertical,
                line: self.began,
            });
        }
    }

    fn command(&self, command: &'static Command, argument: &str) -> Item {
        Item::Command {
            command,
            argument: argument.to_string(),
            line: self.line,
        }
    }

    /// A backslash and what follows: how much of the line it takes.
    fn backslash(&mut self, rest: &str, items: &mut Vec<Item>) -> usize {
        let Some(letter) = rest[1..].chars().next() else {
            self.push("\\");
            return 1;
        };
        let taken = 1 + letter.len_utf8();
        match letter {
            'g' | 'G' => self.end(letter == 'G', items),
            'c' => self.clear(),
            letter => match commands::lettered(letter) {
                Some(command) if command.takes => {
                    let argument = commands::argument(command, &rest[taken..], &self.delimiter);
                    items.push(self.command(command, argument));
                    return rest.len();
                }
                Some(command) => items.push(self.command(command, "")),
                None => items.push(Item::Unknown {
                    letter,
                    line: self.line,
                }),
            },
        }
        taken
    }
}

/// `--` begins a comment when a space, or nothing, follows.
fn is_comment(rest: &str) -> bool {
    rest.strip_prefix("--")
        .is_some_and(|rest| rest.chars().next().is_none_or(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statements as they are, `\G` at their ends; commands in brackets.
    fn cut(text: &str) -> Vec<String> {
        let mut input = Input::new(";");
        let mut all = Vec::new();
        for line in text.lines() {
            for item in input.feed(line) {
                if let Item::Command {
                    command, argument, ..
                } = &item
                    && command.name == "delimiter"
                {
                    input.delimiter.clone_from(argument);
                }
                all.push(item);
            }
        }
        all.extend(input.finish());
        all.into_iter()
            .map(|item| match item {
                Item::Statement { sql, vertical, .. } => {
                    format!("{sql}{}", if vertical { "\\G" } else { "" })
                }
                Item::Command {
                    command, argument, ..
                } => format!("[{} {argument}]", command.name),
                Item::Unknown { letter, .. } => format!("[? {letter}]"),
            })
            .collect()
    }

    #[test]
    fn statements_end_at_delimiters_outside_of_quotes_and_comments() {
        assert_eq!(cut("SELECT 1; SELECT 2"), ["SELECT 1", "SELECT 2"]);
        assert_eq!(
            cut("SELECT ';', \"a\\\";\", `;`;"),
            ["SELECT ';', \"a\\\";\", `;`"]
        );
        assert_eq!(
            cut("SELECT 1 /* ; \n ; */ + 1;"),
            ["SELECT 1 /* ; \n ; */ + 1"]
        );
        assert_eq!(
            cut("/*!50003 SELECT '*/;' */;\nSELECT 2;"),
            ["/*!50003 SELECT '*/;' */", "SELECT 2"]
        );
        assert_eq!(cut("/*!50003 SELECT 1; */;"), ["/*!50003 SELECT 1", "*/"]);
        assert_eq!(cut("-- one; two\nSELECT 1 # three;\n;"), ["SELECT 1"]);
        assert_eq!(cut("SELECT 5--1;"), ["SELECT 5--1"]);
        assert_eq!(cut(";;\n  ;"), Vec::<String>::new());
        assert_eq!(cut("SELECT\n'two\nlines'\n;"), ["SELECT\n'two\nlines'"]);
    }

    #[test]
    fn backslashes_end_statements_or_are_commands() {
        assert_eq!(cut("SELECT 1\\G SELECT 2\\g"), ["SELECT 1\\G", "SELECT 2"]);
        assert_eq!(cut("SELECT oops\\c SELECT 3;"), ["SELECT 3"]);
        assert_eq!(cut("\\u shop;\nSELECT 1;"), ["[use shop]", "SELECT 1"]);
        assert_eq!(cut("\\s\n\\z"), ["[status ]", "[? z]"]);
        assert_eq!(cut("SELECT '\\G';"), ["SELECT '\\G'"]);
    }

    #[test]
    fn words_are_commands_at_the_beginning_only() {
        assert_eq!(cut("use shop\nUSE `a b`;"), ["[use shop]", "[use a b]"]);
        assert_eq!(cut("SELECT 1 AS\nstatus\n;"), ["SELECT 1 AS\nstatus"]);
        assert_eq!(cut("quit;"), ["[quit ]"]);
        assert_eq!(cut("status of things;"), ["status of things"]);
        assert_eq!(cut("source a file.sql"), ["[source a file.sql]"]);
    }

    #[test]
    fn another_delimiter_leaves_semicolons_inside() {
        let text = "DELIMITER //\nSELECT 1; SELECT 2//\ndelimiter ;\nSELECT 3;";
        assert_eq!(
            cut(text),
            [
                "[delimiter //]",
                "SELECT 1; SELECT 2",
                "[delimiter ;]",
                "SELECT 3"
            ]
        );
        assert_eq!(
            cut("DELIMITER 'end' of it\nSELECT 1; SELECT 2 end\nDELIMITER \"; ;\"\nSELECT 3; ;"),
            [
                "[delimiter end]",
                "SELECT 1; SELECT 2",
                "[delimiter ; ;]",
                "SELECT 3"
            ]
        );
    }

    #[test]
    fn a_statement_knows_the_line_it_began_in() {
        let mut input = Input::new(";");
        assert_eq!(input.feed("").len(), 0);
        assert_eq!(input.feed("SELECT").len(), 0);
        let items = input.feed("1; SELECT 2;");
        let lines: Vec<usize> = items
            .iter()
            .map(|item| match item {
                Item::Statement { line, .. } => *line,
                _ => 0,
            })
            .collect();
        assert_eq!(lines, [2, 3]);
    }
}
