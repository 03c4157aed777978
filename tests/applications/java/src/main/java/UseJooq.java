import static org.jooq.impl.DSL.*;

import java.sql.DriverManager;
import java.math.BigDecimal;
import java.time.LocalDateTime;
import org.jooq.JSON;
import org.jooq.SQLDialect;
import org.jooq.exception.DataAccessException;
import org.jooq.impl.SQLDataType;

/** jOOQ: definitions, queries of every kind that it writes for MySQL, and what it reads of a schema. */
public class UseJooq {
    public static void main(String[] arguments) throws Exception {
        var e = System.getenv();
        try (var connection = DriverManager.getConnection(e.get("DB_URL") + "&allowMultiQueries=true", e.get("DB_USER"), e.get("DB_PASSWORD"))) {
            var db = using(connection, SQLDialect.MYSQL);
            var ID = field(name("id"), SQLDataType.BIGINT.identity(true));
            var NAME = field(name("name"), SQLDataType.VARCHAR(60).nullable(false));
            var PRICE = field(name("price"), SQLDataType.DECIMAL(10, 2));
            var AT = field(name("at"), SQLDataType.LOCALDATETIME(6));
            var EXTRA = field(name("extra"), SQLDataType.JSON);
            var GOODS = table(name("goods"));
            db.createTable(GOODS).column(ID).column(NAME).column(PRICE).column(AT).column(EXTRA)
                .constraints(constraint("goods_key").primaryKey(ID), constraint("name_once").unique(NAME), constraint("positive").check(PRICE.ge(BigDecimal.ZERO)))
                .comment("what is sold").execute();
            db.createIndex("by_price").on(GOODS, PRICE.desc()).execute();
            var insert = db.insertInto(GOODS, NAME, PRICE, AT, EXTRA);
            for (int n = 0; n < 100; n++)
                insert = insert.values("good " + n, BigDecimal.valueOf(n, 1), LocalDateTime.of(2024, 1, 1, 0, 0, n % 60, 123_456_000), JSON.valueOf("{\"n\": " + n + "}"));
            check(insert.execute() == 100);
            var first = db.insertInto(GOODS).set(NAME, "last").returning(ID).fetchOne();
            check(first != null && first.get(ID) == 101);
            check(db.insertInto(GOODS, NAME, PRICE).values("last", BigDecimal.ONE).onDuplicateKeyUpdate().set(PRICE, BigDecimal.TEN).execute() == 2);
            check(db.mergeInto(GOODS).columns(ID, NAME).key(ID).values(101L, "the last").execute() > 0);
            try {
                db.insertInto(GOODS, NAME).values("good 1").execute();
                throw new AssertionError("twice");
            } catch (DataAccessException error) {
                check(error.sqlStateClass().name().equals("C23_INTEGRITY_CONSTRAINT_VIOLATION"));
            }
            var place = rowNumber().over(partitionBy(PRICE.mod(inline(2))).orderBy(PRICE.desc(), ID)).as("place");
            check(db.select().from(select(NAME, PRICE, place).from(GOODS).where(PRICE.isNotNull())).where(field(name("place"), Integer.class).eq(1)).fetch().size() > 1);
            check(db.fetchCount(select(ID).from(GOODS).where(PRICE.between(BigDecimal.ONE, BigDecimal.valueOf(2))).union(select(ID).from(GOODS).where(NAME.like("good 9%")))) == 22);
            check(db.select(jsonArrayAgg(NAME)).from(GOODS).where(ID.le(3L)).fetchOne().value1().data().contains("good 2"));
            check(db.select(multiset(select(NAME).from(GOODS).where(ID.le(2L)).orderBy(ID))).fetchOne().value1().size() == 2);
            var tree = name("t").fields("n").as(select(inline(1)).unionAll(select(field(name("n"), Integer.class).plus(1)).from(name("t")).where(field(name("n"), Integer.class).lt(10))));
            check(db.withRecursive(tree).select(sum(field(name("n"), Integer.class))).from(tree).fetchOne().value1().intValue() == 55);
            check(db.update(GOODS).set(PRICE, PRICE.plus(1)).orderBy(PRICE.desc()).limit(5).execute() == 5);
            check(db.selectFrom(GOODS).where(row(ID, NAME).in(row(1L, "good 0"), row(2L, "no"))).forUpdate().skipLocked().fetch().size() == 1);
            try {
                db.transaction(outer -> {
                    outer.dsl().deleteFrom(GOODS).execute();
                    throw new IllegalStateException("back");
                });
            } catch (IllegalStateException expected) {
                check(db.fetchCount(GOODS) == 101);
            }
            var schema = db.meta().getSchemas(e.get("DB_NAME")).get(0);
            var read = schema.getTable("goods");
            check(read.fields().length == 5 && read.getPrimaryKey().getName() != null && read.getUniqueKeys().size() == 1 && read.getIndexes().size() >= 1);
            check(read.field("price").getDataType().precision() == 10);
            db.alterTable(GOODS).alter(NAME).set(SQLDataType.VARCHAR(90).nullable(false)).execute();
            db.alterTable(GOODS).renameColumn(AT).to("moment").execute();
            db.dropTable(GOODS).execute();
        }
    }

    static void check(boolean holds) {
        if (!holds) throw new AssertionError();
    }
}
