//! SeaORM: migrations, tables from entities, models and their relations, pages, cursors, transactions.
mod entities;
mod migrations;

use std::env;
use std::time::Duration;

use entities::fish::{self, Size};
use entities::{kind, lake, lives_in, synced};
use futures_util::TryStreamExt;
use sea_orm::prelude::*;
use sea_orm::sea_query::{LockBehavior, LockType, OnConflict};
use sea_orm::{
    AccessMode, ActiveValue::NotSet, ActiveValue::Set, ConnectOptions, Database, ExprTrait, FromQueryResult, IsolationLevel, JoinType, QueryOrder, QuerySelect,
    Statement, TransactionTrait, TryInsertResult, TryIntoModel,
};
use sea_orm_migration::{MigratorTrait, SchemaManager};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Outcome {
    let mut options = ConnectOptions::new(env::var("DATABASE_URL")?);
    options.max_connections(4).acquire_timeout(Duration::from_secs(60)).sqlx_logging(false);
    let db = Database::connect(options).await?;
    db.ping().await?;
    migrate(&db).await?;
    synchronise(&db).await?;
    write(&db).await?;
    read(&db).await?;
    relations(&db).await?;
    transactions(&db).await?;
    errors(&db).await?;
    migrations::Migrator::down(&db, None).await?;
    db.close().await?;
    Ok(())
}

async fn migrate(db: &DatabaseConnection) -> Outcome {
    use migrations::Migrator;
    Migrator::up(db, Some(1)).await?;
    assert_eq!((Migrator::get_applied_migrations(db).await?.len(), Migrator::get_pending_migrations(db).await?.len()), (1, 1));
    Migrator::up(db, None).await?;
    Migrator::up(db, None).await?;
    let manager = SchemaManager::new(db);
    assert!(manager.has_table("fish").await? && !manager.has_table("bird").await?);
    assert!(manager.has_column("lake", "land").await? && !manager.has_column("lake", "country").await?);
    assert!(manager.has_index("fish", "by_weight").await?);
    Migrator::down(db, Some(1)).await?;
    assert!(!manager.has_column("lake", "land").await?);
    Migrator::refresh(db).await?;
    Migrator::fresh(db).await?;
    Migrator::reset(db).await?;
    Migrator::up(db, None).await?;
    Ok(())
}

/// Tables from entities; what is new in an entity comes to its table.
async fn synchronise(db: &DatabaseConnection) -> Outcome {
    db.get_schema_builder().register(synced::before::Entity).sync(db).await?;
    synced::before::ActiveModel { name: Set("Ark".into()), ..Default::default() }.insert(db).await?;
    for _ in 0..2 {
        db.get_schema_builder().register(synced::after::Entity).sync(db).await?;
    }
    let boat = synced::after::Entity::find().one(db).await?.ok_or("a boat")?;
    assert_eq!((boat.name.as_str(), boat.built, boat.home), ("Ark", None, None));
    let again = synced::after::ActiveModel { name: Set("Ark".into()), seats: Set(2), ..Default::default() }.insert(db).await;
    assert!(matches!(again.expect_err("a second Ark").sql_err(), Some(SqlErr::UniqueConstraintViolation(_))));
    db.execute_unprepared("DROP TABLE boat").await?;
    Ok(())
}

fn a_fish(n: u32, kind: &kind::Model) -> fish::ActiveModel {
    fish::ActiveModel {
        id: NotSet,
        kind_id: Set(kind.id),
        name: Set(format!("fish {n} 🐟")),
        size: Set(if n % 3 == 0 { Size::Large } else { Size::Small }),
        weight: Set(Some(Decimal::new(i64::from(n) * 1_000 + 125, 3))),
        seen: Set((n > 0).then(|| "2001-02-03T04:05:06.789".parse().expect("a time"))),
        noted: Set("2001-02-03T04:05:06Z".parse().expect("a time")),
        extra: Set(Some(sea_orm::JsonValue::from(vec![n, n + 1]))),
        tag: Set(Uuid::from_u128(u128::from(n))),
        data: Set(Some(vec![0, 255, n as u8])),
        edible: Set(n % 5 == 0),
    }
}

async fn write(db: &DatabaseConnection) -> Outcome {
    let bony = kind::ActiveModel { name: Set("bony".into()), ..Default::default() }.insert(db).await?;
    let flat = kind::ActiveModel { name: Set("flat".into()), ..Default::default() }.save(db).await?.try_into_model()?;
    assert_eq!((bony.id, flat.id), (1, 2));
    let many = (0..300).map(|n| a_fish(n, if n % 2 == 0 { &bony } else { &flat }));
    let made = fish::Entity::insert_many(many).exec(db).await?;
    assert!(made.last_insert_id.is_some_and(|id| id > 0));
    let mut last = fish::Entity::find().order_by_desc(fish::Column::Id).one(db).await?.ok_or("a fish")?;
    assert_eq!((last.kind_id, last.name.as_str(), last.size.clone(), last.weight), (2, "fish 299 🐟", Size::Small, Some(Decimal::new(299_125, 3))));
    assert_eq!(last.seen.map(|time| time.and_utc().timestamp_micros()), Some(981_173_106_789_000));
    assert_eq!(last.noted.timestamp(), 981_173_106);
    assert_eq!((last.extra.take(), last.tag), (Some(sea_orm::JsonValue::from(vec![299, 300])), Uuid::from_u128(299)));
    assert_eq!((last.data.take(), last.edible), (Some(vec![0, 255, 43]), false));
    let mut change: fish::ActiveModel = last.clone().into();
    change.weight = Set(None);
    change.size = Set(Size::Large);
    let changed = change.update(db).await?;
    assert_eq!((changed.weight, &changed.size), (None, &Size::Large));
    let raised = fish::Entity::update_many()
        .col_expr(fish::Column::Weight, Expr::col(fish::Column::Weight).mul(2))
        .filter(fish::Column::Edible.eq(true))
        .exec(db)
        .await?;
    assert_eq!(raised.rows_affected, 60);
    changed.delete(db).await?;
    assert_eq!(fish::Entity::delete_many().filter(fish::Column::Name.is_in(["fish 1 🐟", "fish 2 🐟"])).exec(db).await?.rows_affected, 2);
    // What is there already is changed, or left.
    let again = kind::ActiveModel { id: Set(1), name: Set("Bony".into()) };
    kind::Entity::insert(again).on_conflict(OnConflict::column(kind::Column::Id).update_column(kind::Column::Name).to_owned()).exec(db).await?;
    assert_eq!(kind::Entity::find_by_id(1_u32).one(db).await?.map(|kind| kind.name).as_deref(), Some("Bony"));
    let left = kind::Entity::insert(kind::ActiveModel { id: Set(1), name: Set("other".into()) })
        .on_conflict(OnConflict::column(kind::Column::Id).do_nothing_on([kind::Column::Id]).to_owned())
        .try_insert()
        .exec(db)
        .await?;
    assert!(matches!(left, TryInsertResult::Conflicted));
    Ok(())
}

#[derive(Debug, PartialEq, FromQueryResult)]
struct OfKind {
    kind: String,
    n: i64,
    heaviest: Option<Decimal>,
}

async fn read(db: &DatabaseConnection) -> Outcome {
    let pages = fish::Entity::find().order_by_asc(fish::Column::Id).paginate(db, 20);
    assert_eq!((pages.num_items().await?, pages.num_pages().await?), (297, 15));
    assert_eq!(pages.fetch_page(14).await?.len(), 17);
    let mut cursor = fish::Entity::find().cursor_by(fish::Column::Id);
    let first = cursor.first(5).all(db).await?;
    let next = cursor.after(first[4].id).first(3).all(db).await?;
    assert_eq!((first[0].name.as_str(), next[0].name.as_str(), next.len()), ("fish 0 🐟", "fish 7 🐟", 3));
    let groups = fish::Entity::find()
        .select_only()
        .column_as(kind::Column::Name, "kind")
        .column_as(fish::Column::Id.count(), "n")
        .column_as(fish::Column::Weight.max(), "heaviest")
        .join(JoinType::InnerJoin, fish::Relation::Kind.def())
        .group_by(kind::Column::Name)
        .having(fish::Column::Id.count().gt(10))
        .order_by_asc(kind::Column::Name)
        .into_model::<OfKind>()
        .all(db)
        .await?;
    assert_eq!(groups[0], OfKind { kind: "Bony".into(), n: 149, heaviest: Some(Decimal::new(580_250, 3)) });
    assert_eq!(groups[1].n, 148);
    let mut stream = fish::Entity::find().filter(fish::Column::Name.contains("🐟")).stream(db).await?;
    let mut n = 0;
    while stream.try_next().await?.is_some() {
        n += 1;
    }
    drop(stream);
    assert_eq!(n, 297);
    let statement = Statement::from_sql_and_values(db.get_database_backend(), "SELECT JSON_EXTRACT(extra, '$[1]') AS second FROM fish WHERE name = ?", ["fish 9 🐟".into()]);
    let row = db.query_one_raw(statement).await?.ok_or("a row")?;
    let second = if env::var("DB_PRODUCT")? == "mariadb" { row.try_get::<String>("", "second")? } else { row.try_get::<sea_orm::JsonValue>("", "second")?.to_string() };
    assert_eq!(second, "10");
    let rows = fish::Entity::find().limit(2).offset(3).into_json().all(db).await?;
    assert_eq!(rows.len(), 2);
    assert_eq!(fish::Entity::find().filter(fish::Column::Weight.between(10, 20)).filter(fish::Column::Size.eq(Size::Large)).count(db).await?, 2);
    Ok(())
}

async fn relations(db: &DatabaseConnection) -> Outcome {
    for (code, depth) in [("como", 425.0), ("garda", 346.25)] {
        lake::ActiveModel { code: Set(code.into()), depth: Set(depth) }.insert(db).await?;
    }
    let fish = fish::Entity::find().order_by_asc(fish::Column::Id).limit(10).all(db).await?;
    let homes = fish.iter().flat_map(|fish| ["como", "garda"].map(|code| lives_in::ActiveModel { fish_id: Set(fish.id), lake_code: Set(code.into()) }));
    lives_in::Entity::insert_many(homes).exec(db).await?;
    let both = fish::Entity::find_by_id(fish[0].id).find_also_related(kind::Entity).one(db).await?.ok_or("a fish")?;
    assert_eq!(both.1.map(|kind| kind.name).as_deref(), Some("Bony"));
    let kinds = kind::Entity::find().find_with_related(fish::Entity).order_by_asc(kind::Column::Id).all(db).await?;
    assert_eq!(kinds.iter().map(|(_, fish)| fish.len()).collect::<Vec<_>>(), [149, 148]);
    let lakes = fish.load_many_to_many(lake::Entity, lives_in::Entity, db).await?;
    assert!(lakes.len() == 10 && lakes.iter().all(|lakes| lakes.len() == 2));
    let kinds = fish.load_one(kind::Entity, db).await?;
    assert!(kinds.iter().all(Option::is_some));
    // A key of another table changes with its parent's.
    db.execute_unprepared("UPDATE lake SET code = 'lario' WHERE code = 'como'").await?;
    assert_eq!(fish[3].find_related(lake::Entity).filter(lake::Column::Code.eq("lario")).count(db).await?, 1);
    Ok(())
}

async fn transactions(db: &DatabaseConnection) -> Outcome {
    let outer = db.begin_with_config(Some(IsolationLevel::RepeatableRead), Some(AccessMode::ReadWrite)).await?;
    fish::Entity::delete_many().filter(fish::Column::Size.eq(Size::Large)).exec(&outer).await?;
    let inner = outer.begin().await?;
    fish::Entity::delete_many().exec(&inner).await?;
    assert_eq!(fish::Entity::find().count(&inner).await?, 0);
    inner.rollback().await?;
    assert_eq!(fish::Entity::find().count(&outer).await?, 197);
    drop(outer);
    assert_eq!(fish::Entity::find().count(db).await?, 297);
    let failed = db
        .transaction::<_, (), DbErr>(|txn| {
            Box::pin(async move {
                fish::Entity::delete_many().exec(txn).await?;
                Err(DbErr::Custom("back".into()))
            })
        })
        .await;
    assert!(failed.is_err());
    let locking = db.begin().await?;
    let held = fish::Entity::find().order_by_asc(fish::Column::Id).lock(LockType::Update).one(&locking).await?.ok_or("a fish")?;
    let beside = db.begin().await?;
    let next = fish::Entity::find().order_by_asc(fish::Column::Id).lock_with_behavior(LockType::Update, LockBehavior::SkipLocked).one(&beside).await?;
    assert!(next.is_some_and(|next| next.id > held.id));
    beside.commit().await?;
    locking.commit().await?;
    Ok(())
}

async fn errors(db: &DatabaseConnection) -> Outcome {
    let bony = kind::Model { id: 1, name: "Bony".into() };
    let unique = kind::ActiveModel { name: Set("flat".into()), ..Default::default() }.insert(db).await.expect_err("a second flat");
    assert!(matches!(unique.sql_err(), Some(SqlErr::UniqueConstraintViolation(_))), "{unique}");
    let lost = a_fish(1, &kind::Model { id: 99, ..bony.clone() }).insert(db).await.expect_err("no such kind");
    assert!(matches!(lost.sql_err(), Some(SqlErr::ForeignKeyConstraintViolation(_))), "{lost}");
    let mut nameless = a_fish(1, &bony);
    nameless.name = Set(String::new());
    assert!(nameless.insert(db).await.is_err());
    assert!(matches!(kind::ActiveModel { id: Set(77), name: Set("none".into()) }.update(db).await, Err(DbErr::RecordNotUpdated)));
    kind::Entity::delete_by_id(2_u32).exec(db).await?;
    // With its fish.
    assert_eq!(fish::Entity::find().count(db).await?, 149);
    Ok(())
}
