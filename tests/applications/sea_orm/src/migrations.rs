//! The tables' migrations.
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(Tables), Box::new(Later)]
    }
}

struct Tables;

impl MigrationName for Tables {
    fn name(&self) -> &str {
        "m1_tables"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Tables {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let kind = Table::create().table("kind").if_not_exists().comment("kinds 🐬").col(pk_auto("id").unsigned()).col(string_len_uniq("name", 80)).to_owned();
        manager.create_table(kind).await?;
        let fish = Table::create()
            .table("fish")
            .col(big_pk_auto("id"))
            .col(unsigned("kind_id"))
            .col(string_len("name", 60).check(Expr::col("name").ne("")))
            .col(enumeration("size", Alias::new("size"), ["small", "large"].map(Alias::new)).default("small"))
            .col(decimal_len_null("weight", 12, 3))
            .col(ColumnDef::new("seen").custom(Alias::new("DATETIME(6)")))
            .col(timestamp("noted").default(Expr::current_timestamp()))
            .col(json_null("extra"))
            .col(uuid("tag"))
            .col(var_binary_null("data", 300))
            .col(boolean("edible").default(false))
            .foreign_key(ForeignKey::create().name("of_kind").from("fish", "kind_id").to("kind", "id").on_delete(ForeignKeyAction::Cascade))
            .to_owned();
        manager.create_table(fish).await?;
        manager.create_index(Index::create().name("by_weight").table("fish").col(("weight", IndexOrder::Desc)).col("name").to_owned()).await?;
        manager.create_table(Table::create().table("lake").col(string_len("code", 20).primary_key()).col(double("depth")).to_owned()).await?;
        let lives_in = Table::create()
            .table("lives_in")
            .col(big_integer("fish_id"))
            .col(string_len("lake_code", 20))
            .primary_key(Index::create().col("fish_id").col("lake_code"))
            .foreign_key(ForeignKey::create().name("of_fish").from("lives_in", "fish_id").to("fish", "id").on_delete(ForeignKeyAction::Cascade))
            .foreign_key(ForeignKey::create().name("of_lake").from("lives_in", "lake_code").to("lake", "code"))
            .to_owned();
        manager.create_table(lives_in).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["lives_in", "lake", "fish", "kind"] {
            manager.drop_table(Table::drop().table(table).to_owned()).await?;
        }
        Ok(())
    }
}

struct Later;

impl MigrationName for Later {
    fn name(&self) -> &str {
        "m2_later"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Later {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .alter_table(Table::alter().table("lake").add_column(string_null("country")).modify_column(double("depth").default(1.5)).to_owned())
            .await?;
        manager.alter_table(Table::alter().table("lake").rename_column("country", "land").to_owned()).await?;
        manager.create_index(Index::create().unique().name("lands").table("lake").col("land").col("code").to_owned()).await?;
        manager.alter_table(Table::alter().table("lives_in").drop_foreign_key("of_lake").to_owned()).await?;
        let again = ForeignKey::create().name("in_lake").from("lives_in", "lake_code").to("lake", "code").on_update(ForeignKeyAction::Cascade).to_owned();
        manager.create_foreign_key(again).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_foreign_key(ForeignKey::drop().name("in_lake").table("lives_in").to_owned()).await?;
        let again = ForeignKey::create().name("of_lake").from("lives_in", "lake_code").to("lake", "code").to_owned();
        manager.create_foreign_key(again).await?;
        manager.drop_index(Index::drop().name("lands").table("lake").to_owned()).await?;
        manager.alter_table(Table::alter().table("lake").drop_column("land").to_owned()).await
    }
}
