//! Every suite of queries at a tiny scale: on Porpoise in this process, and beside MariaDB.

use std::time::Duration;

use porpoise::{Database, Listen, Listening};
use porpoise_lab::queries::{self, Joins, Outcome, QueriesPlan, Report, Ssb, Suite, Tpch};
use porpoise_lab::{Peer, Target};
use tempfile::TempDir;

fn suites() -> Vec<Box<dyn Suite>> {
    vec![
        Box::new(Tpch::new(0.001, 1)),
        Box::new(Ssb::new(0.001, 1)),
        Box::new(Joins::new(0.001, 1)),
    ]
}

/// Porpoise in memory, with a schema, at a Unix socket in the folder.
fn serve(folder: &TempDir, schema: &str) -> (Target, (Database, Listening)) {
    let database = Database::in_memory().unwrap();
    let connection = database.connect().unwrap();
    for sql in [
        format!("CREATE DATABASE {schema}"),
        "CREATE USER sb".to_owned(),
        format!("GRANT ALL ON {schema}.* TO sb"),
    ] {
        connection.execute(&sql, ()).unwrap();
    }
    let socket = folder.path().join("porpoise.sock");
    let listening = database.listen(Listen::unix(&socket)).unwrap();
    let socket = socket.display();
    let url = format!("mysql://sb@localhost/{schema}?transport=unix&socket={socket}");
    (
        Target::new("Porpoise", &url).unwrap(),
        (database, listening),
    )
}

fn measure(targets: &[Target], suite: &dyn Suite, explain: &TempDir) -> Report {
    for target in targets {
        queries::load(target, suite, false).unwrap();
    }
    let plan = QueriesPlan {
        rounds: 1,
        timeout: Duration::from_secs(600),
        explain: Some(explain.path().join("plans")),
        progress: false,
        ..QueriesPlan::default()
    };
    let report = queries::run(targets, suite, &plan).unwrap();
    println!("{report}");
    assert_eq!(report.queries.len(), suite.queries().len());
    for one in &report.queries {
        let name = &one.query.name;
        for outcome in &one.outcomes {
            assert!(
                matches!(outcome, Outcome::Answered(..)),
                "{name}: {outcome:?}"
            );
        }
        let plans = explain.path().join(format!("plans/{name}.txt"));
        let plans = std::fs::read_to_string(plans).unwrap();
        assert!(plans.contains("== Porpoise\n->"), "{plans}");
    }
    report
}

#[test]
fn every_query_of_every_suite_answers() {
    for suite in suites() {
        let folder = tempfile::tempdir().unwrap();
        let (target, _served) = serve(&folder, suite.name());
        let report = measure(&[target], &*suite, &folder);
        assert!(report.mean_ratio().is_none());
    }
}

#[test]
fn every_answer_is_mariadbs() {
    for suite in suites() {
        let folder = tempfile::tempdir().unwrap();
        let schema = suite.name();
        let (porpoise, _served) = serve(&folder, schema);
        let peer = Peer::start(folder.path(), 8, &[]).unwrap();
        let mut root = peer.connect().unwrap();
        root.run(format!("CREATE DATABASE {schema}")).unwrap();
        let socket = peer.socket().display();
        let url = format!("mysql://root@localhost/{schema}?transport=unix&socket={socket}");
        let mariadb = Target::new("MariaDB", &url).unwrap();
        let report = measure(&[porpoise, mariadb], &*suite, &folder);
        for one in &report.queries {
            assert_eq!(one.agrees(), Some(true), "{schema} {}", one.query.name);
        }
        assert_eq!(report.mean_ratio().unwrap().1, report.queries.len());
    }
}

#[test]
fn a_query_that_takes_too_long_is_killed_and_the_next_one_runs() {
    struct Slow;
    impl Suite for Slow {
        fn name(&self) -> &'static str {
            "slow"
        }
        fn definitions(&self) -> Vec<&'static str> {
            vec!["CREATE TABLE t (a INT)"]
        }
        fn tables(&self) -> Vec<queries::Table<'_>> {
            let rows = (0..7).map(|a| vec![queries::Value::Int(a)]);
            vec![queries::Table {
                name: "t",
                rows: Box::new(rows),
            }]
        }
        fn queries(&self) -> Vec<queries::Query> {
            let texts = [
                "SELECT SLEEP(600) FROM t",
                "SELECT b FROM t",
                "SELECT a FROM t",
            ];
            let query = |(place, text): (usize, &str)| queries::Query {
                name: place.to_string(),
                text: text.to_owned(),
                ordered_by: Vec::new(),
            };
            texts.into_iter().enumerate().map(query).collect()
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (target, _served) = serve(&folder, "slow");
    queries::load(&target, &Slow, false).unwrap();
    let plan = QueriesPlan {
        timeout: Duration::from_secs(3),
        progress: false,
        ..QueriesPlan::default()
    };
    let targets = [target];
    let report = queries::run(&targets, &Slow, &plan).unwrap();
    let [slow, wrong, right] = &report.queries[..] else {
        panic!("{report}");
    };
    assert_eq!(slow.outcomes, [Outcome::TimedOut]);
    assert!(matches!(&wrong.outcomes[..], [Outcome::Refused(words)] if words.contains("b")));
    assert!(
        matches!(&right.outcomes[..], [Outcome::Answered(answer, times)]
        if answer.len() == 7 && times.len() == 3)
    );
    let plan = QueriesPlan {
        queries: vec!["9".into()],
        ..plan
    };
    let error = queries::run(&targets, &Slow, &plan).unwrap_err();
    assert!(
        error.to_string().contains("slow has no query 9, but 0 1 2"),
        "{error}"
    );
}
