"""A schema with what SQLAlchemy's users have, and its use."""
import datetime
import decimal
import enum
import os

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, selectinload


class Base(DeclarativeBase):
    pass


class State(enum.Enum):
    draft = "draft"
    public = "public"


tagged = sa.Table(
    "tagged",
    Base.metadata,
    sa.Column("post_id", sa.ForeignKey("posts.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("tag_id", sa.ForeignKey("tags.id"), primary_key=True),
)


class Author(Base):
    __tablename__ = "authors"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(80), comment="as it is printed 🙂")
    posts: Mapped[list["Post"]] = relationship(back_populates="author", cascade="all, delete-orphan")
    __table_args__ = (sa.UniqueConstraint("name", name="name_once"), {"comment": "who writes"})


class Post(Base):
    __tablename__ = "posts"
    id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True)
    author_id: Mapped[int] = mapped_column(sa.ForeignKey("authors.id", name="by"))
    title: Mapped[str] = mapped_column(sa.String(200), index=True)
    body: Mapped[str | None] = mapped_column(sa.Text)
    state: Mapped[State] = mapped_column(sa.Enum(State), server_default="draft")
    price: Mapped[decimal.Decimal | None] = mapped_column(sa.Numeric(10, 2))
    extra: Mapped[dict | None] = mapped_column(sa.JSON)
    written: Mapped[datetime.datetime] = mapped_column(mysql.DATETIME(fsp=6), server_default=sa.text("CURRENT_TIMESTAMP(6)"))
    flags: Mapped[int] = mapped_column(mysql.TINYINT(unsigned=True), default=0)
    author: Mapped[Author] = relationship(back_populates="posts")
    tags: Mapped[list["Tag"]] = relationship(secondary=tagged)
    __table_args__ = (sa.Index("by_state", "state", "written"), {"mysql_charset": "utf8mb4"})


class Tag(Base):
    __tablename__ = "tags"
    id: Mapped[int] = mapped_column(primary_key=True)
    word: Mapped[str] = mapped_column(sa.String(30, collation="utf8mb4_bin"), unique=True)


def use():
    engine = sa.create_engine(os.environ["DB_URL"])
    with Session(engine) as session:
        tags = [Tag(word=word) for word in ("a", "A", "ä")]
        author = Author(name="Ann 🐬")
        for number in range(20):
            author.posts.append(
                Post(title=f"post {number}", price=decimal.Decimal(number) / 4, extra={"n": number, "list": [1, 2]}, tags=tags[: number % 4])
            )
        session.add_all([author, *tags])
        session.commit()
        assert author.posts[0].state is State.draft
        assert author.posts[0].written.microsecond is not None
    with Session(engine) as session:
        posts = session.scalars(
            sa.select(Post).options(selectinload(Post.tags)).join(Post.author).where(Author.name.like("Ann%")).order_by(Post.id).limit(5).offset(3)
        ).all()
        assert [p.title for p in posts] == [f"post {n}" for n in range(3, 8)]
        assert posts[0].price == decimal.Decimal("0.75") and posts[0].extra == {"n": 3, "list": [1, 2]}
        assert {t.word for t in posts[0].tags} == {"a", "A", "ä"}
        assert session.scalar(sa.select(sa.func.count()).select_from(Post).where(Post.extra["n"].as_integer() > 10)) == 9
        ranked = sa.select(Post.title, sa.func.row_number().over(order_by=Post.price.desc()).label("place")).cte("ranked")
        assert session.execute(sa.select(ranked.c.title).where(ranked.c.place == 1)).scalar_one() == "post 19"
        posts[0].state = State.public
        session.flush()
        session.rollback()
        assert session.scalar(sa.select(sa.func.count()).where(Post.state == State.public)) == 0
        insert = mysql.insert(Tag).values(word="a")
        session.execute(insert.on_duplicate_key_update(word=insert.inserted.word + "!"))
        assert session.scalar(sa.select(Tag.word).where(Tag.id == 1)) == "a!"
        try:
            session.add(Author(name="Ann 🐬"))
            session.flush()
            raise AssertionError("a second Ann")
        except sa.exc.IntegrityError as error:
            assert error.orig.args[0] == 1062
            session.rollback()
        session.delete(session.scalars(sa.select(Author)).one())
        session.commit()
        assert session.scalar(sa.select(sa.func.count()).select_from(tagged)) == 0


if __name__ == "__main__":
    use()
