//! After a run: whether what must hold does.

use porpoise_client::{Connection, Error};

use crate::queries::{Answer, Query};
use crate::scenario::Scenario;

/// The answers that others are compared with.
pub(super) struct Reference {
    /// Whose they are.
    pub server: String,
    pub answers: Vec<Answer>,
}

/// What the scenario's checks find.
pub(super) fn violation(
    scenario: &dyn Scenario,
    connection: &mut Connection,
) -> Result<Option<String>, Error> {
    for check in scenario.checks() {
        let rows = connection.rows(&check.query)?;
        if let Some(row) = rows.to_text().first() {
            let found = row.join(", ");
            return Ok(Some(format!("{} is violated: {found}", check.name)));
        }
    }
    Ok(None)
}

/// What a server answers.
pub(super) fn answers(
    queries: &[Query],
    connection: &mut Connection,
) -> Result<Vec<Answer>, Error> {
    let mut answers = Vec::with_capacity(queries.len());
    for query in queries {
        answers.push(Answer::of(&connection.rows(&query.text)?));
    }
    Ok(answers)
}

/// Which answers are not those of the reference.
pub(super) fn difference(
    queries: &[Query],
    answers: &[Answer],
    reference: &Reference,
) -> Option<String> {
    let pairs = queries.iter().zip(answers.iter().zip(&reference.answers));
    let differ = pairs.filter(|(query, (own, other))| !own.agrees(other, &query.ordered_by));
    let names: Vec<&str> = differ.map(|(query, _)| &*query.name).collect();
    let whose = &reference.server;
    match &names[..] {
        [] => None,
        [one] => Some(format!("the answer to query {one} is not that of {whose}")),
        several => {
            let names = several.join(", ");
            Some(format!(
                "the answers to queries {names} are not those of {whose}"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_differ_are_told_with_whose_they_are_not() {
        porpoise::provide_to_clients();
        let mut connection = Connection::open("porpoise::memory:").unwrap();
        let mut ask = |texts: [&str; 3]| {
            let queries: Vec<Query> = (1..)
                .zip(texts)
                .map(|(number, text)| Query {
                    name: number.to_string(),
                    text: text.to_owned(),
                    ordered_by: Vec::new(),
                })
                .collect();
            let answers = answers(&queries, &mut connection).unwrap();
            (queries, answers)
        };
        let (queries, answers) = ask(["SELECT 1", "SELECT 2.5", "SELECT 'a' UNION SELECT 'b'"]);
        let mut told = |texts| {
            let reference = Reference {
                server: "MariaDB TCP".into(),
                answers: ask(texts).1,
            };
            difference(&queries, &answers, &reference)
        };
        let same = ["SELECT 1", "SELECT 2.5", "SELECT 'b' UNION SELECT 'a'"];
        assert_eq!(told(same), None);
        let one = told(["SELECT 1", "SELECT 2.7", same[2]]).unwrap();
        assert_eq!(one, "the answer to query 2 is not that of MariaDB TCP");
        let several = told(["SELECT 0", "SELECT 2.5", "SELECT 'a'"]).unwrap();
        assert_eq!(
            several,
            "the answers to queries 1, 3 are not those of MariaDB TCP"
        );
    }
}
