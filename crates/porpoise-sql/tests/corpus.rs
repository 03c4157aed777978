//! Every statement of the corpus parses.

use porpoise_sql::{Modes, parse_statement};

/// The statements of a file, each with its text; a `DELIMITER` line belongs to the shell and is
/// passed over.
fn statements(file: &str) -> Vec<String> {
    let bytes = std::fs::read(format!(
        "{}/tests/corpus/{file}",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap();
    let lines = bytes
        .split_inclusive(|b| *b == b'\n')
        .filter(|line| !line.starts_with(b"DELIMITER"));
    let sql: Vec<u8> = lines.flatten().copied().collect();
    // What DELIMITER makes the end of a statement.
    let sql = String::from_utf8_lossy(&sql)
        .replace(";;", ";")
        .into_bytes();
    let after_semicolon = |at: usize| {
        sql[at..]
            .iter()
            .position(|b| *b == b';')
            .map_or(sql.len(), |n| at + n + 1)
    };
    let (mut at, mut found, mut failures) = (0, Vec::new(), Vec::new());
    while at < sql.len() {
        match parse_statement(&sql, at, Modes::NONE) {
            Ok(Some(parsed)) => {
                found.push(String::from_utf8_lossy(parsed.span.of(&sql)).into_owned());
                at = parsed.next;
            }
            Ok(None) => at = after_semicolon(at),
            Err(error) => {
                failures.push(error.to_string());
                at = after_semicolon(error.offset);
            }
        }
    }
    assert!(failures.is_empty(), "{file}:\n{}", failures.join("\n"));
    found
}

#[test]
fn statements_of_connectors_and_shells_parse() {
    assert!(statements("connectors.sql").len() > 150);
}

#[test]
fn statements_of_object_mappers_parse() {
    assert!(statements("orm.sql").len() > 80);
}

#[test]
fn statements_of_sysbench_parse() {
    assert!(statements("sysbench.sql").len() > 15);
}

#[test]
fn the_corners_of_the_grammar_parse() {
    assert!(statements("manual.sql").len() > 150);
}

#[test]
fn dumps_parse() {
    assert!(statements("dump.sql").len() > 30);
    assert!(statements("dump2.sql").len() > 30);
}
