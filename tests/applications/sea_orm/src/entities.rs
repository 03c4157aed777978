//! The tables as SeaORM's entities.

pub mod kind {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "kind")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: u32,
        #[sea_orm(unique)]
        pub name: String,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {
        #[sea_orm(has_many = "super::fish::Entity")]
        Fish,
    }

    impl Related<super::fish::Entity> for Entity {
        fn to() -> RelationDef {
            Relation::Fish.def()
        }
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub mod fish {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, EnumIter, DeriveActiveEnum)]
    #[sea_orm(rs_type = "String", db_type = "Enum", enum_name = "size")]
    pub enum Size {
        #[sea_orm(string_value = "small")]
        Small,
        #[sea_orm(string_value = "large")]
        Large,
    }

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "fish")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i64,
        pub kind_id: u32,
        #[sea_orm(column_type = "String(StringLen::N(60))")]
        pub name: String,
        pub size: Size,
        #[sea_orm(column_type = "Decimal(Some((12, 3)))", nullable)]
        pub weight: Option<Decimal>,
        pub seen: Option<DateTime>,
        pub noted: DateTimeUtc,
        pub extra: Option<Json>,
        pub tag: Uuid,
        #[sea_orm(column_type = "VarBinary(StringLen::N(300))", nullable)]
        pub data: Option<Vec<u8>>,
        pub edible: bool,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {
        #[sea_orm(belongs_to = "super::kind::Entity", from = "Column::KindId", to = "super::kind::Column::Id", on_delete = "Cascade")]
        Kind,
    }

    impl Related<super::kind::Entity> for Entity {
        fn to() -> RelationDef {
            Relation::Kind.def()
        }
    }

    impl Related<super::lake::Entity> for Entity {
        fn to() -> RelationDef {
            super::lives_in::Relation::Lake.def()
        }

        fn via() -> Option<RelationDef> {
            Some(super::lives_in::Relation::Fish.def().rev())
        }
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub mod lake {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "lake")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub code: String,
        pub depth: f64,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

pub mod lives_in {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "lives_in")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub fish_id: i64,
        #[sea_orm(primary_key, auto_increment = false)]
        pub lake_code: String,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {
        #[sea_orm(belongs_to = "super::fish::Entity", from = "Column::FishId", to = "super::fish::Column::Id", on_delete = "Cascade")]
        Fish,
        #[sea_orm(belongs_to = "super::lake::Entity", from = "Column::LakeCode", to = "super::lake::Column::Code")]
        Lake,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Tables that are made from their entities, and a later version of one of them.
pub mod synced {
    pub mod before {
        use sea_orm::entity::prelude::*;

        #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
        #[sea_orm(table_name = "boat")]
        pub struct Model {
            #[sea_orm(primary_key)]
            pub id: i32,
            pub name: String,
        }

        #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
        pub enum Relation {}

        impl ActiveModelBehavior for ActiveModel {}
    }

    pub mod after {
        use sea_orm::entity::prelude::*;

        #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
        #[sea_orm(table_name = "boat")]
        pub struct Model {
            #[sea_orm(primary_key)]
            pub id: i32,
            #[sea_orm(unique)]
            pub name: String,
            #[sea_orm(indexed)]
            pub built: Option<Date>,
            #[sea_orm(default_value = 4)]
            pub seats: i16,
            pub home: Option<String>,
        }

        #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
        pub enum Relation {
            #[sea_orm(belongs_to = "super::super::lake::Entity", from = "Column::Home", to = "super::super::lake::Column::Code")]
            Lake,
        }

        impl ActiveModelBehavior for ActiveModel {}
    }
}
