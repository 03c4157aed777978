//! What an UPDATE's plan says that follows from its assignments.

use std::sync::Arc;

use porpoise_catalog::{Relation, Table};
use porpoise_planner::column_changes::ColumnChanges;

use super::database::Db;

fn table() -> Arc<Table> {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b INT AS (a + 1), c INT AS (b * 2) STORED, \
         d TEXT, e DATETIME ON UPDATE CURRENT_TIMESTAMP, f INT AS (YEAR(e)), g INT, \
         CONSTRAINT positive CHECK (a > 0), CONSTRAINT even CHECK (c > 1), CONSTRAINT late CHECK (f > 1970), \
         CONSTRAINT asleep CHECK (a < 9) NOT ENFORCED, \
         KEY by_a (a), KEY by_c (c), KEY by_d (d(4)), KEY by_f (f), KEY by_g (g, id))",
    );
    let catalog = db.engine.shared.catalog.load_full();
    match catalog.relation("d", "t") {
        Some(Relation::Table(table)) => table,
        _ => panic!("the table"),
    }
}

/// The names of what follows.
fn told(table: &Table, changes: &ColumnChanges) -> String {
    let columns = |columns: &[usize]| {
        let names = columns
            .iter()
            .map(|column| table.columns[*column].name.as_str());
        names.collect::<Vec<_>>().join(" ")
    };
    let checks = changes
        .checks
        .iter()
        .map(|check| table.checks[*check].name.as_str());
    let indexes = changes
        .indexes
        .iter()
        .map(|index| table.indexes[*index].name.as_str());
    format!(
        "generated {}; stamped {}, then {}; checks {}; indexes {}",
        columns(&changes.generated),
        columns(&changes.stamped),
        columns(&changes.generated_of_stamped),
        checks.collect::<Vec<_>>().join(" "),
        indexes.collect::<Vec<_>>().join(" "),
    )
}

fn column(table: &Table, name: &str) -> usize {
    table.column_position(name).expect("a column")
}

#[test]
fn generated_columns_checks_and_indexes_follow_the_columns_that_they_read() {
    let table = table();
    let of = |names: &[&str]| {
        let columns: Vec<usize> = names.iter().map(|name| column(&table, name)).collect();
        ColumnChanges::of_assignments(&table, &columns)
    };
    let changes = of(&["a"]);
    assert_eq!(
        told(&table, &changes),
        "generated b c; stamped e, then f; checks positive even late; indexes by_a by_c by_f"
    );
    assert!(!changes.moves_rows && changes.auto_increment.is_none());
    assert!(changes.touches(&[column(&table, "d"), column(&table, "c")]));
    assert!(!changes.touches(&[column(&table, "d"), column(&table, "g")]));
    assert_eq!(
        told(&table, &of(&["d"])),
        "generated ; stamped e, then f; checks late; indexes by_d by_f"
    );
    assert_eq!(
        told(&table, &of(&["e", "g"])),
        "generated f; stamped , then ; checks late; indexes by_f by_g"
    );
}

#[test]
fn a_primary_key_that_changes_changes_every_index() {
    let table = table();
    let id = column(&table, "id");
    let changes = ColumnChanges::of_assignments(&table, &[id]);
    assert!(changes.moves_rows);
    assert_eq!(changes.auto_increment, Some(id));
    assert_eq!(
        told(&table, &changes),
        "generated ; stamped e, then f; checks late; indexes by_a by_c by_d by_f by_g"
    );
}

#[test]
fn a_cascade_stamps_nothing() {
    let table = table();
    let changes = ColumnChanges::of_cascade(&table, &[column(&table, "g")]);
    assert_eq!(
        told(&table, &changes),
        "generated ; stamped , then ; checks ; indexes by_g"
    );
}
