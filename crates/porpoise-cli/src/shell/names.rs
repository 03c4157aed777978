//! Completion: keywords, and the names of databases, tables and columns.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use porpoise_client::Connection;
use porpoise_sql::keyword::{NONRESERVED, RESERVED};
use reedline::{Completer, CompletionResult, Span, Suggestion};

use super::commands::COMMANDS;

/// The names that are there now.
#[derive(Default)]
pub struct Names {
    databases: Vec<String>,
    /// Of the current database, with their columns.
    tables: BTreeMap<String, Vec<String>>,
}

impl Names {
    /// As the server tells them.
    pub fn read(connection: &mut Connection) -> Result<Names, porpoise_client::Error> {
        let mut names = Names::default();
        for row in connection.rows("SHOW DATABASES")?.to_text() {
            names.databases.extend(row.into_iter().take(1));
        }
        let columns = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = DATABASE()
                       ORDER BY table_name, ordinal_position";
        for row in connection.rows(columns)?.to_text() {
            if let [table, column] = &row[..] {
                let columns = names.tables.entry(table.clone()).or_default();
                columns.push(column.clone());
            }
        }
        Ok(names)
    }

    /// What a word can become. Behind a dot it is a column of that table, or a table of that
    /// database.
    fn candidates(&self, word: &str) -> Vec<String> {
        let fits = |name: &str, typed: &str| {
            name.get(..typed.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(typed))
        };
        let mut found = Vec::new();
        if let Some((before, typed)) = word.rsplit_once('.') {
            let owner = before
                .rsplit('.')
                .next()
                .unwrap_or(before)
                .trim_matches('`');
            let columns = self
                .tables
                .iter()
                .filter(|(table, _)| table.eq_ignore_ascii_case(owner))
                .flat_map(|(_, columns)| columns);
            found.extend(
                columns
                    .filter(|name| fits(name, typed))
                    .map(|name| format!("{before}.{name}")),
            );
            return found;
        }
        let tables = self.tables.keys();
        let columns = self.tables.values().flatten();
        let names = tables.chain(columns).chain(&self.databases);
        found.extend(names.filter(|name| fits(name, word)).cloned());
        found.sort();
        found.dedup();
        let is_lower = word.chars().any(char::is_lowercase);
        let keywords = RESERVED
            .iter()
            .chain(NONRESERVED)
            .filter(|keyword| fits(keyword, word));
        found.extend(keywords.map(|keyword| {
            if is_lower {
                keyword.to_ascii_lowercase()
            } else {
                (*keyword).to_string()
            }
        }));
        found
    }
}

/// Completes what the cursor stands behind.
pub struct NameCompleter(pub Arc<Mutex<Names>>);

impl Completer for NameCompleter {
    fn complete(&mut self, line: &str, position: usize) -> CompletionResult {
        let typed = line.get(..position).unwrap_or(line);
        let is_of_a_name = |letter: char| letter.is_alphanumeric() || "_$.`".contains(letter);
        let start = typed
            .char_indices()
            .rev()
            .take_while(|(_, letter)| is_of_a_name(*letter))
            .last()
            .map_or(typed.len(), |(at, _)| at);
        let word = &typed[start..];
        let mut found = Vec::new();
        if !word.is_empty() {
            if typed[..start].trim().is_empty() {
                let commands = COMMANDS.iter().map(|command| command.name);
                found.extend(
                    commands
                        .filter(|name| name.starts_with(&word.to_ascii_lowercase()))
                        .map(str::to_string),
                );
            }
            let candidates = self.0.lock().candidates(word);
            found.extend(candidates);
        }
        let suggestions: Vec<Suggestion> = found
            .into_iter()
            .map(|value| Suggestion {
                value,
                span: Span::new(start, position),
                append_whitespace: true,
                ..Suggestion::default()
            })
            .collect();
        CompletionResult::fresh(suggestions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(line: &str) -> Vec<String> {
        let mut names = Names::default();
        names.databases.push("shop".into());
        names
            .tables
            .insert("fish".into(), vec!["id".into(), "weight".into()]);
        let mut completer = NameCompleter(Arc::new(Mutex::new(names)));
        let result = completer.complete(line, line.len());
        let values = result.suggestions().iter();
        values.map(|suggestion| suggestion.value.clone()).collect()
    }

    #[test]
    fn names_come_before_keywords_which_follow_the_case_typed() {
        assert_eq!(completed("SELECT wei"), ["weight", "weight_string"]);
        assert_eq!(completed("SELECT * FROM fi")[0], "fish");
        assert!(completed("sele").contains(&"select".to_string()));
        assert!(completed("SELE").contains(&"SELECT".to_string()));
        assert_eq!(completed("SELECT fish.w"), ["fish.weight"]);
        assert!(completed("USE sh").contains(&"shop".to_string()));
        assert!(completed("sta").contains(&"status".to_string()));
        assert_eq!(completed("SELECT "), Vec::<String>::new());
        assert_eq!(completed("SELECT ü"), Vec::<String>::new());
    }
}
