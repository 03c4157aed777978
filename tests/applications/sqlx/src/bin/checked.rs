//! Queries that the compiler has asked the server about: what they take, what they return, what may be NULL.
use sqlx::mysql::MySqlPool;
use sqlx::types::chrono::{DateTime, NaiveDateTime, Utc};
use sqlx::types::{Decimal, Json};

#[derive(Debug)]
struct Fish {
    id: i64,
    kind: u32,
    name: String,
    weight: Option<Decimal>,
    seen: Option<NaiveDateTime>,
    noted: Option<DateTime<Utc>>,
    extra: Option<Json<Vec<i32>>>,
    data: Option<Vec<u8>>,
    edible: bool,
}

#[tokio::main]
async fn main() -> Result<(), sqlx::Error> {
    let pool = MySqlPool::connect(&std::env::var("DATABASE_URL").expect("the server")).await?;
    sqlx::query!("DELETE FROM fish").execute(&pool).await?;
    let made = sqlx::query!(
        "INSERT INTO fish (kind, name, weight, seen, extra, data, edible) VALUES (?, ?, ?, ?, ?, ?, ?)",
        1,
        "cod 🐟",
        Decimal::new(1_250, 3),
        "2001-02-03T04:05:06.789".parse::<NaiveDateTime>().expect("a time"),
        Json(vec![1, 2]) as _,
        &[0_u8, 255][..],
        true
    )
    .execute(&pool)
    .await?;
    let id = i64::try_from(made.last_insert_id()).expect("a key");
    let fish = sqlx::query_as!(
        Fish,
        r#"SELECT id, kind, name, weight, seen, noted, extra AS "extra: _", data, edible AS "edible: bool" FROM fish WHERE id = ?"#,
        id
    )
    .fetch_one(&pool)
    .await?;
    assert_eq!((fish.id, fish.kind, fish.name.as_str()), (id, 1, "cod 🐟"));
    assert_eq!(fish.weight, Some(Decimal::new(1_250, 3)));
    assert_eq!(fish.seen.map(|time| time.and_utc().timestamp_micros()), Some(981_173_106_789_000));
    assert!(fish.noted.is_some_and(|time| (Utc::now() - time).num_minutes() < 10));
    assert_eq!(fish.extra, Some(Json(vec![1, 2])));
    assert_eq!((fish.data, fish.edible), (Some(vec![0, 255]), true));
    // The macro takes what can't be NULL as it is, and the rest as an option.
    let joined = sqlx::query!(
        "SELECT kinds.name AS kind, fish.name AS fish, COUNT(*) AS n FROM kinds LEFT JOIN fish ON fish.kind = kinds.id \
         GROUP BY kinds.name, fish.name ORDER BY kinds.name LIMIT ?",
        5
    )
    .fetch_all(&pool)
    .await?;
    let rows: Vec<(String, Option<String>, i64)> = joined.into_iter().map(|row| (row.kind, row.fish, row.n)).collect();
    assert_eq!(rows, [("bony".into(), Some("cod 🐟".into()), 1), ("flat".into(), None, 1)]);
    let total: Option<Decimal> = sqlx::query_scalar!("SELECT SUM(weight) FROM fish").fetch_one(&pool).await?;
    assert_eq!(total, Some(Decimal::new(1_250, 3)));
    let none = sqlx::query!("SELECT id, name FROM fish WHERE name = ? AND kind IN (?, ?)", "eel", 1, 2).fetch_optional(&pool).await?;
    assert!(none.is_none());
    Ok(())
}
