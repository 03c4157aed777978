"""SQLAlchemy over PyMySQL against a server: tables from classes, reflection, relations, transactions. Exits non-zero at the
first thing that is not as it should be."""

import datetime
import decimal
import os

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects.mysql import insert

URL = sa.URL.create(
    "mysql+pymysql",
    username=os.environ["DB_USER"],
    password=os.environ["DB_PASSWORD"],
    host=os.environ["DB_HOST"],
    port=int(os.environ["DB_PORT"]),
    database=os.environ["DB_NAME"],
    query={"charset": "utf8mb4"},
)
IS_PORPOISE = os.environ["DB_PRODUCT"] == "porpoise"


class Base(orm.DeclarativeBase):
    pass


class Harbour(Base):
    __tablename__ = "harbour"
    __table_args__ = (
        sa.UniqueConstraint("name", "country", name="uq_harbour"),
        sa.CheckConstraint("depth > 0", name="ck_depth"),
        {"comment": "where boats lie", "mysql_engine": "InnoDB"},
    )

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(50), comment="as on charts")
    country: orm.Mapped[str] = orm.mapped_column(sa.String(2), server_default="DK")
    depth: orm.Mapped[decimal.Decimal | None] = orm.mapped_column(sa.Numeric(6, 2))
    boats: orm.Mapped[list["Boat"]] = orm.relationship(back_populates="harbour", cascade="all, delete-orphan")


class Boat(Base):
    __tablename__ = "boat"
    __table_args__ = (sa.Index("ix_boat_kind", "kind", "length"),)

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    harbour_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("harbour.id", name="fk_harbour", ondelete="CASCADE"))
    name: orm.Mapped[str] = orm.mapped_column(sa.String(50), unique=True)
    kind: orm.Mapped[str | None] = orm.mapped_column(sa.Enum("sail", "motor", name="kind"))
    length: orm.Mapped[float | None]
    built: orm.Mapped[datetime.date | None]
    seen: orm.Mapped[datetime.datetime] = orm.mapped_column(server_default=sa.func.now())
    papers: orm.Mapped[dict | None] = orm.mapped_column(sa.JSON)
    is_sold: orm.Mapped[bool] = orm.mapped_column(default=False)
    harbour: orm.Mapped[Harbour] = orm.relationship(back_populates="boats")


def refused(kind, number, action):
    try:
        action()
    except kind as error:
        assert error.orig.args[0] == number, f"expected {number}, came {error.orig.args}"
        return
    raise AssertionError(f"expected error {number}, none came")


def tables_come_from_classes_and_back(engine):
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    Base.metadata.create_all(engine)  # looks first, and finds them
    inspector = sa.inspect(engine)
    assert inspector.get_table_names() == ["boat", "harbour"]
    assert inspector.get_table_comment("harbour") == {"text": "where boats lie"}
    assert inspector.get_pk_constraint("boat")["constrained_columns"] == ["id"]
    assert inspector.get_unique_constraints("harbour") == [
        {"name": "uq_harbour", "column_names": ["name", "country"], "duplicates_index": "uq_harbour"}
    ]
    assert [check["name"] for check in inspector.get_check_constraints("harbour")] == ["ck_depth"]
    (key,) = inspector.get_foreign_keys("boat")
    assert (key["name"], key["referred_table"], key["options"]) == ("fk_harbour", "harbour", {"ondelete": "CASCADE"}), key
    indexes = {index["name"]: index["column_names"] for index in inspector.get_indexes("boat")}
    assert indexes["ix_boat_kind"] == ["kind", "length"], indexes

    reflected = sa.MetaData()
    reflected.reflect(engine)
    for name, table in Base.metadata.tables.items():
        same = reflected.tables[name]
        assert list(same.columns.keys()) == list(table.columns.keys())
        assert [column.nullable for column in same.columns] == [column.nullable for column in table.columns]
    assert reflected.tables["harbour"].c.name.comment == "as on charts"
    assert reflected.tables["boat"].c.kind.type.enums == ["sail", "motor"]
    assert reflected.tables["harbour"].c.depth.type.scale == 2


def what_is_stored_is_found_again(engine):
    with orm.Session(engine) as session:
        svendborg = Harbour(name="Svendborg", depth=decimal.Decimal("5.40"))
        svendborg.boats = [
            Boat(name="Ægir", kind="sail", length=9.5, built=datetime.date(1971, 4, 1), papers={"flag": "DK", "crew": [1, None]}),
            Boat(name="Fulton 🐬", kind="sail", length=34.25, papers={"flag": None}),
            Boat(name="Hjortø", kind="motor", is_sold=True),
        ]
        session.add(svendborg)
        session.commit()
        assert svendborg.country == "DK"
        assert abs(svendborg.boats[0].seen - datetime.datetime.now()) < datetime.timedelta(days=2)

    with orm.Session(engine) as session:
        boats = sa.select(Boat).join(Boat.harbour).options(orm.joinedload(Boat.harbour))
        found = session.scalars(boats.where(Harbour.name == "svendborg").order_by(Boat.length.desc()).limit(2)).all()
        assert [boat.name for boat in found] == ["Fulton 🐬", "Ægir"]
        assert found[1].papers == {"flag": "DK", "crew": [1, None]} and found[1].harbour.depth == decimal.Decimal("5.40")
        assert found[1].built == datetime.date(1971, 4, 1) and found[0].is_sold is False

        kinds = sa.select(Boat.kind, sa.func.count(), sa.func.max(Boat.length)).group_by(Boat.kind).order_by(Boat.kind)
        assert session.execute(kinds).all() == [("sail", 2, 34.25), ("motor", 1, None)]
        rank = sa.func.row_number().over(partition_by=Boat.kind, order_by=Boat.length.desc())
        longest = sa.select(Boat.name, rank.label("rank")).subquery()
        names = session.scalars(sa.select(longest.c.name).where(longest.c.rank == 1).order_by(longest.c.name)).all()
        assert names == ["Fulton 🐬", "Hjortø"]
        if IS_PORPOISE:  # MariaDB's JSON is text
            flag = Boat.papers["flag"].as_string()
            assert session.scalars(sa.select(flag).order_by(Boat.id)).all() == ["DK", None, None]
            assert session.scalars(sa.select(Boat.name).where(flag == "DK")).all() == ["Ægir"]


def transactions_savepoints_and_isolation(engine):
    with orm.Session(engine) as session:
        harbour = session.scalars(sa.select(Harbour).with_for_update()).one()
        session.add(Boat(name="kept", harbour=harbour))
        session.flush()
        savepoint = session.begin_nested()
        session.add(Boat(name="dropped", harbour=harbour))
        session.flush()
        savepoint.rollback()
        duplicate = session.begin_nested()
        session.add(Boat(name="kept", harbour=harbour))
        refused(sa.exc.IntegrityError, 1062, session.flush)
        duplicate.rollback()
        session.commit()
    names = sa.select(Boat.name).where(Boat.name.in_(["kept", "dropped"]))
    with engine.connect().execution_options(isolation_level="READ COMMITTED") as reader:
        assert reader.get_isolation_level() == "READ COMMITTED"
        assert reader.scalars(names).all() == ["kept"]
        with engine.begin() as writer:
            writer.execute(sa.update(Boat).where(Boat.name == "kept").values(length=Boat.length + 1, name="dropped"))
        assert reader.scalars(names).all() == ["dropped"]
    with orm.Session(engine) as session:
        session.execute(sa.delete(Boat).where(Boat.name == "dropped"))
        session.rollback()
        assert session.scalars(names).all() == ["dropped"]


def upserts_and_many_rows(engine):
    with engine.begin() as connection:
        upsert = insert(Boat).values(name="Ægir", harbour_id=1, length=10, is_sold=False)
        upsert = upsert.on_duplicate_key_update(length=upsert.inserted.length, is_sold=True)
        connection.execute(upsert)
        assert connection.execute(sa.select(Boat.length, Boat.is_sold).where(Boat.name == "Ægir")).one() == (10, True)
        harbour = connection.scalar(sa.select(Harbour.id))
        rows = [{"name": f"boat {n}", "harbour_id": harbour, "length": n, "is_sold": n % 2 == 0} for n in range(500)]
        connection.execute(sa.insert(Boat), rows)
        total = sa.select(sa.func.count(), sa.func.sum(Boat.length)).where(Boat.name.like("boat %"))
        assert connection.execute(total).one() == (500, 124750)
        streamed = connection.execution_options(yield_per=100).execute(sa.select(Boat.id))
        assert sum(1 for _ in streamed) == 504
    orphan = sa.insert(Boat).values(name="orphan", harbour_id=0, is_sold=False)
    with engine.connect() as connection:
        refused(sa.exc.IntegrityError, 1452, lambda: connection.execute(orphan))
    with orm.Session(engine) as session:
        session.delete(session.scalars(sa.select(Harbour)).one())
        session.commit()
        assert session.scalar(sa.select(sa.func.count()).select_from(Boat)) == 0


def tables_change(engine):
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE VIEW long_boats AS SELECT id, name FROM boat WHERE length > 10"))
        assert sa.inspect(connection).get_view_names() == ["long_boats"]
        connection.execute(sa.text("DROP VIEW long_boats"))
        if IS_PORPOISE:
            sa.Index("ix_lower_name", sa.func.lower(Boat.name)).create(connection)
            assert "ix_lower_name" in {index["name"] for index in sa.inspect(connection).get_indexes("boat")}
    Base.metadata.drop_all(engine)
    assert sa.inspect(engine).get_table_names() == []


engine = sa.create_engine(URL, pool_pre_ping=True)
for check in [
    tables_come_from_classes_and_back,
    what_is_stored_is_found_again,
    transactions_savepoints_and_isolation,
    upserts_and_many_rows,
    tables_change,
]:
    check(engine)
    print("ok:", check.__name__)
