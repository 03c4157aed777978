//! sqlx: migrations, types both ways, streams, transactions, what errors say, and each way in.
use std::env;
use std::time::Duration;

use futures_util::TryStreamExt;
use serde::{Deserialize, Serialize};
use sqlx::error::ErrorKind;
use sqlx::migrate::{MigrateDatabase, Migrator};
use sqlx::mysql::{MySql, MySqlConnectOptions, MySqlPool, MySqlPoolOptions, MySqlSslMode};
use sqlx::types::chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use sqlx::types::{Decimal, Json, Uuid};
use sqlx::{AssertSqlSafe, Column, ConnectOptions, Connection, Executor, QueryBuilder, Row, TypeInfo};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[derive(Debug, Clone, Copy, PartialEq, sqlx::Type)]
#[sqlx(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Extra {
    colours: Vec<String>,
    depth: Option<f64>,
}

#[derive(Debug, PartialEq, sqlx::FromRow)]
struct Fish {
    id: i64,
    kind: u32,
    name: String,
    size: Size,
    weight: Option<Decimal>,
    seen: Option<NaiveDateTime>,
    noted: Option<DateTime<Utc>>,
    extra: Option<Json<Extra>>,
    data: Option<Vec<u8>>,
    edible: bool,
    code: Option<String>,
}

fn url() -> String {
    env::var("DATABASE_URL").expect("the server")
}

fn is_mariadb() -> bool {
    env::var("DB_PRODUCT").as_deref() == Ok("mariadb")
}

#[tokio::main]
async fn main() -> Outcome {
    let pool = MySqlPoolOptions::new()
        .max_connections(4)
        .acquire_timeout(Duration::from_secs(60))
        .after_connect(|connection, _| {
            Box::pin(async move {
                connection.execute("SET @mine = 7").await?;
                Ok(())
            })
        })
        .connect(&url())
        .await?;
    assert_eq!(sqlx::query_scalar::<_, i64>("SELECT @mine").fetch_one(&pool).await?, 7);
    migrations(&pool).await?;
    records(&pool).await?;
    types(&pool).await?;
    descriptions(&pool).await?;
    streams(&pool).await?;
    transactions(&pool).await?;
    errors(&pool).await?;
    pool.close().await;
    connections().await?;
    databases().await?;
    any().await
}

async fn migrations(pool: &MySqlPool) -> Outcome {
    // Of several programs that start at once, one makes them: the others wait in GET_LOCK(…, -1), which MariaDB doesn't.
    if is_mariadb() {
        MIGRATIONS.run(pool).await?;
    } else {
        let (one, two) = tokio::join!(MIGRATIONS.run(pool), MIGRATIONS.run(pool));
        one?;
        two?;
    }
    MIGRATIONS.undo(pool, 1).await?;
    let made: Vec<(i64, bool)> = sqlx::query_as("SELECT version, success FROM _sqlx_migrations").fetch_all(pool).await?;
    assert_eq!(made, [(1, true)]);
    MIGRATIONS.run(pool).await?;
    // One whose text has changed since is refused.
    sqlx::query("UPDATE _sqlx_migrations SET checksum = UNHEX('00') WHERE version = 2").execute(pool).await?;
    assert!(matches!(MIGRATIONS.run(pool).await, Err(sqlx::migrate::MigrateError::VersionMismatch(2))));
    sqlx::query("DELETE FROM _sqlx_migrations WHERE version = 2").execute(pool).await?;
    sqlx::query("DROP TABLE fish").execute(pool).await?;
    MIGRATIONS.run(pool).await?;
    Ok(())
}

async fn records(pool: &MySqlPool) -> Outcome {
    let seen = NaiveDate::from_ymd_opt(2001, 2, 3).and_then(|day| day.and_hms_micro_opt(4, 5, 6, 789)).ok_or("a time")?;
    let extra = Extra { colours: vec!["red".into(), "🐟".into()], depth: Some(1.5) };
    let mut builder = QueryBuilder::<MySql>::new("INSERT INTO fish (kind, name, size, weight, seen, noted, extra, data, edible, code) ");
    builder.push_values(0..500_i32, |mut row, n| {
        row.push_bind(1 + n as u32 % 2)
            .push_bind(format!("fish {n} 🐟"))
            .push_bind(if n % 3 == 0 { Size::Large } else { Size::Small })
            .push_bind(Decimal::new(i64::from(n) * 1_000 + 125, 3))
            .push_bind((n > 0).then_some(seen))
            .push_bind(seen.and_utc())
            .push_bind(Json(&extra))
            .push_bind(vec![0, 255, n as u8])
            .push_bind(n % 5 == 0)
            .push_bind("🐟");
    });
    let made = builder.build().execute(pool).await?;
    assert_eq!(made.rows_affected(), 500);
    let first = i64::try_from(made.last_insert_id())?;
    let all: Vec<Fish> = sqlx::query_as("SELECT * FROM fish ORDER BY id").fetch_all(pool).await?;
    assert_eq!(all.len(), 500);
    let last = Fish {
        id: first + 499,
        kind: 2,
        name: "fish 499 🐟".into(),
        size: Size::Small,
        weight: Some(Decimal::new(499_125, 3)),
        seen: Some(seen),
        noted: DateTime::from_timestamp(981_173_106, 0),
        extra: Some(Json(extra)),
        data: Some(vec![0, 255, 243]),
        edible: false,
        code: Some("🐟".into()),
    };
    assert_eq!(all[499], last);
    assert_eq!((all[0].seen, all[0].size, all[0].edible), (None, Size::Large, true));
    let red: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM fish WHERE JSON_UNQUOTE(JSON_EXTRACT(extra, '$.colours[0]')) = ? AND weight BETWEEN ? AND ?")
        .bind("red")
        .bind(Decimal::from(100))
        .bind(Decimal::from(200))
        .fetch_one(pool)
        .await?;
    assert_eq!(red, 100);
    let mut builder = QueryBuilder::<MySql>::new("UPDATE fish SET edible = TRUE WHERE id IN (");
    let mut ids = builder.separated(", ");
    for id in [first, first + 1, first + 2] {
        ids.push_bind(id);
    }
    ids.push_unseparated(")");
    // The rows found, of which one was so already.
    assert_eq!(builder.build().execute(pool).await?.rows_affected(), 3);
    let kept = sqlx::query("INSERT INTO kinds (id, name) VALUES (1, 'bony') ON DUPLICATE KEY UPDATE name = 'Bony'").execute(pool).await?;
    assert_eq!(kept.rows_affected(), 2);
    sqlx::query("UPDATE kinds SET name = 'bony' WHERE id = 1").execute(pool).await?;
    Ok(())
}

async fn types(pool: &MySqlPool) -> Outcome {
    sqlx::query("DROP TABLE IF EXISTS every").execute(pool).await?;
    sqlx::raw_sql(
        "CREATE TABLE every (a TINYINT, b TINYINT UNSIGNED, c SMALLINT, d SMALLINT UNSIGNED, e MEDIUMINT, f INT, g INT UNSIGNED, \
         h BIGINT, i BIGINT UNSIGNED, j FLOAT, k DOUBLE, l DATE, m TIME(6), n YEAR, o CHAR(36), p BINARY(16), q LONGTEXT, r LONGBLOB, s BIT(12)); \
         CREATE TEMPORARY TABLE IF NOT EXISTS beside (a INT);",
    )
    .execute(pool)
    .await?;
    let uuid = Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
    let day = NaiveDate::from_ymd_opt(1999, 12, 31).ok_or("a day")?;
    let time = NaiveTime::from_hms_micro_opt(23, 59, 58, 123_456).ok_or("a time")?;
    let long = "ä🐟".repeat(400_000);
    for extreme in [false, true] {
        let pick = |low: i64, high: i64| if extreme { high } else { low };
        sqlx::query("INSERT INTO every VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
            .bind(pick(-128, 127) as i8)
            .bind(pick(0, 255) as u8)
            .bind(pick(-32_768, 32_767) as i16)
            .bind(pick(0, 65_535) as u16)
            .bind(pick(-8_388_608, 8_388_607) as i32)
            .bind(pick(i64::from(i32::MIN), i64::from(i32::MAX)) as i32)
            .bind(pick(0, i64::from(u32::MAX)) as u32)
            .bind(pick(i64::MIN, i64::MAX))
            .bind(if extreme { u64::MAX } else { 0 })
            .bind(1.5_f32)
            .bind(f64::MAX)
            .bind(day)
            .bind(time)
            .bind(2024_u16)
            .bind(uuid.hyphenated())
            .bind(uuid)
            .bind(&long)
            .bind(long.as_bytes())
            .bind(5_u64)
            .execute(pool)
            .await?;
    }
    let row = sqlx::query("SELECT * FROM every WHERE a = ?").bind(127_i8).fetch_one(pool).await?;
    assert_eq!((row.get::<i8, _>(0), row.get::<u8, _>(1), row.get::<i16, _>(2), row.get::<u16, _>(3)), (127, 255, 32_767, 65_535));
    assert_eq!((row.get::<i32, _>(4), row.get::<i32, _>(5), row.get::<u32, _>(6)), (8_388_607, i32::MAX, u32::MAX));
    assert_eq!((row.get::<i64, _>(7), row.get::<u64, _>(8)), (i64::MAX, u64::MAX));
    assert_eq!((row.get::<f32, _>(9), row.get::<f64, _>(10)), (1.5, f64::MAX));
    assert_eq!((row.get::<NaiveDate, _>(11), row.get::<NaiveTime, _>(12), row.get::<u16, _>(13)), (day, time, 2024));
    assert_eq!((row.get::<sqlx::types::uuid::fmt::Hyphenated, _>(14), row.get::<Uuid, _>(15)), (uuid.hyphenated(), uuid));
    assert_eq!((row.get::<&str, _>(16), row.get::<&[u8], _>(17)), (long.as_str(), long.as_bytes()));
    assert_eq!(row.get::<u64, _>(18), 5);
    // As text, too.
    let row = pool.fetch_one("SELECT h, i, k, l, m, n, s FROM every WHERE a = -128").await?;
    assert_eq!((row.get::<i64, _>(0), row.get::<u64, _>(1), row.get::<f64, _>(2)), (i64::MIN, 0, f64::MAX));
    assert_eq!((row.get::<NaiveDate, _>(3), row.get::<NaiveTime, _>(4), row.get::<u16, _>(5)), (day, time, 2024));
    assert_eq!(row.get::<u64, _>(6), 5);
    let (nothing, seven, sum): (Option<i32>, i64, Decimal) =
        sqlx::query_as("SELECT NULL, ? + 4, CAST(? AS DECIMAL(10,2)) * 2").bind(3).bind("1.25").fetch_one(pool).await?;
    assert_eq!((nothing, seven, sum), (None, 7, Decimal::new(250, 2)));
    sqlx::query("DROP TABLE every").execute(pool).await?;
    Ok(())
}

/// What the macros go by: types of columns, and which may be NULL.
async fn descriptions(pool: &MySqlPool) -> Outcome {
    let told = pool.describe(sqlx::SqlSafeStr::into_sql_str("SELECT fish.*, 1 + 1 AS sum, UPPER(name) AS loud FROM fish WHERE id = ? AND name = ?")).await?;
    let columns: Vec<(&str, &str, Option<bool>)> =
        told.columns().iter().enumerate().map(|(at, column)| (column.name(), column.type_info().name(), told.nullable(at))).collect();
    let json = if is_mariadb() { "BLOB" } else { "JSON" };
    let expected = [
        ("id", "BIGINT", Some(false)),
        ("kind", "INT UNSIGNED", Some(false)),
        ("name", "VARCHAR", Some(false)),
        ("size", "ENUM", Some(true)),
        ("weight", "DECIMAL", Some(true)),
        ("seen", "DATETIME", Some(true)),
        ("noted", "TIMESTAMP", Some(true)),
        ("extra", json, Some(true)),
        ("data", "VARBINARY", Some(true)),
        ("edible", "BOOLEAN", Some(false)),
        // Both servers flag a text of such a collation as binary.
        ("code", "VARBINARY", Some(true)),
    ];
    assert_eq!(columns[..11], expected);
    assert_eq!((columns[11].0, columns[11].2), ("sum", Some(false)));
    assert_eq!((columns[12].0, columns[12].1), ("loud", "VARCHAR"));
    assert!(told.parameters().is_some_and(|parameters| parameters.right() == Some(2)));
    Ok(())
}

async fn streams(pool: &MySqlPool) -> Outcome {
    let mut connection = pool.acquire().await?;
    {
        let mut rows = sqlx::query("SELECT a.id FROM fish a, fish b").fetch(&mut *connection);
        let mut n = 0;
        while let Some(row) = rows.try_next().await? {
            assert!(row.get::<i64, _>(0) > 0);
            n += 1;
            if n == 1_000 {
                break;
            }
        }
    }
    // What wasn't read is passed over.
    assert_eq!(sqlx::query_scalar::<_, i32>("SELECT 8").fetch_one(&mut *connection).await?, 8);
    let results: Vec<_> = sqlx::raw_sql("SELECT 1; UPDATE fish SET weight = 1 WHERE id < 0; SELECT 2 UNION SELECT 3; -- nothing more")
        .fetch_many(&mut *connection)
        .try_collect()
        .await?;
    assert_eq!(results.iter().filter_map(|item| item.as_ref().right()).count(), 3);
    // More statements than are kept prepared.
    for n in 0..150 {
        let text = format!("SELECT ? + {n}");
        assert_eq!(sqlx::query_scalar::<_, i64>(AssertSqlSafe(text)).bind(1).fetch_one(&mut *connection).await?, n + 1);
    }
    assert!(connection.cached_statements_size() <= 100);
    connection.clear_cached_statements().await?;
    Ok(())
}

async fn transactions(pool: &MySqlPool) -> Outcome {
    let count = "SELECT COUNT(*) FROM fish";
    let mut outer = pool.begin().await?;
    sqlx::query("DELETE FROM fish WHERE size = 'large'").execute(&mut *outer).await?;
    let mut inner = outer.begin().await?;
    sqlx::query("DELETE FROM fish").execute(&mut *inner).await?;
    inner.rollback().await?;
    assert_eq!(sqlx::query_scalar::<_, i64>(count).fetch_one(&mut *outer).await?, 333);
    let mut inner = outer.begin().await?;
    sqlx::query("DELETE FROM fish WHERE edible").execute(&mut *inner).await?;
    inner.commit().await?;
    // Dropped, and so rolled back before the connection is used again.
    drop(outer);
    assert_eq!(sqlx::query_scalar::<_, i64>(count).fetch_one(pool).await?, 500);
    let mut serial = pool.begin_with("START TRANSACTION READ ONLY").await?;
    let refused = sqlx::query("DELETE FROM fish").execute(&mut *serial).await.expect_err("a change in a transaction that reads");
    assert_eq!(refused.as_database_error().and_then(|error| error.code()).as_deref(), Some("25006"));
    serial.commit().await?;
    let mut locking = pool.begin().await?;
    let held: i64 = sqlx::query_scalar("SELECT id FROM fish ORDER BY id LIMIT 1 FOR UPDATE").fetch_one(&mut *locking).await?;
    let mut beside = pool.begin().await?;
    let next: i64 = sqlx::query_scalar("SELECT id FROM fish ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED").fetch_one(&mut *beside).await?;
    assert_eq!(next, held + 1);
    beside.rollback().await?;
    locking.rollback().await?;
    Ok(())
}

async fn errors(pool: &MySqlPool) -> Outcome {
    for (text, kind, code) in [
        ("INSERT INTO kinds (name) VALUES ('flat')", ErrorKind::UniqueViolation, "23000"),
        ("INSERT INTO fish (kind, name) VALUES (99, 'lost')", ErrorKind::ForeignKeyViolation, "23000"),
        ("DELETE FROM kinds WHERE id = 1", ErrorKind::ForeignKeyViolation, "23000"),
        ("INSERT INTO fish (kind, name) VALUES (1, NULL)", ErrorKind::NotNullViolation, "23000"),
        ("INSERT INTO kinds (name) VALUES ('')", ErrorKind::CheckViolation, "HY000"),
        ("SELECT nothing FROM fish", ErrorKind::Other, "42S22"),
        ("SELEC 1", ErrorKind::Other, "42000"),
    ] {
        let error = sqlx::query(text).execute(pool).await.expect_err(text);
        let error = error.as_database_error().expect(text);
        assert_eq!(error.kind(), kind, "{text}: {error}");
        let code = if is_mariadb() && kind == ErrorKind::CheckViolation { "23000" } else { code };
        assert_eq!(error.code().as_deref(), Some(code), "{text}: {error}");
    }
    assert!(matches!(sqlx::query("SELECT 1 FROM fish WHERE id = 0").fetch_one(pool).await, Err(sqlx::Error::RowNotFound)));
    Ok(())
}

/// TCP with and without TLS, and the Unix socket.
async fn connections() -> Outcome {
    let options: MySqlConnectOptions = url().parse()?;
    let on_socket = options.clone().socket(env::var("DB_SOCKET")?).ssl_mode(MySqlSslMode::Disabled);
    let ways = [
        (options.clone().ssl_mode(MySqlSslMode::Disabled), false),
        (options.clone().ssl_mode(MySqlSslMode::Preferred), true),
        (options.clone().ssl_mode(MySqlSslMode::Required), true),
        (options.clone().ssl_mode(MySqlSslMode::Required).charset("latin1").collation("latin1_swedish_ci"), true),
        (options.clone().timezone(Some("+02:00".to_owned())).pipes_as_concat(false), true),
        (on_socket, false),
    ];
    for (options, encrypted) in ways {
        let mut connection = options.connect().await?;
        let row = connection.fetch_one("SHOW STATUS LIKE 'Ssl_version'").await?;
        assert_eq!(row.get::<&str, _>(1).starts_with("TLS"), encrypted);
        connection.ping().await?;
        connection.close().await?;
    }
    // The authority is unknown.
    assert!(options.clone().ssl_mode(MySqlSslMode::VerifyCa).connect().await.is_err());
    let refused = options.clone().password("wrong").connect().await.expect_err("a wrong password");
    assert_eq!(refused.as_database_error().and_then(|error| error.code()).as_deref(), Some("28000"));
    Ok(())
}

async fn databases() -> Outcome {
    let other = format!("{}_other", url());
    assert!(!MySql::database_exists(&other).await?);
    MySql::create_database(&other).await?;
    assert!(MySql::database_exists(&other).await?);
    MySql::drop_database(&other).await?;
    MySql::drop_database(&other).await?;
    Ok(())
}

/// The driver that is chosen by the URL.
async fn any() -> Outcome {
    sqlx::any::install_default_drivers();
    let pool = sqlx::AnyPool::connect(&url()).await?;
    let (id, name): (i32, String) = sqlx::query_as("SELECT id, name FROM kinds WHERE name = ?").bind("flat").fetch_one(&pool).await?;
    assert_eq!((id, name.as_str()), (2, "flat"));
    pool.close().await;
    Ok(())
}
