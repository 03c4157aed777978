import java.sql.Connection;
import org.flywaydb.core.Flyway;

/** Flyway: migrations, what it says of them, and a clean schema again. */
public class UseFlyway {
    public static void main(String[] arguments) throws Exception {
        var e = System.getenv();
        var flyway = Flyway.configure().dataSource(e.get("DB_URL"), e.get("DB_USER"), e.get("DB_PASSWORD")).cleanDisabled(false).load();
        check(flyway.migrate().migrationsExecuted == 3);
        check(flyway.migrate().migrationsExecuted == 0);
        flyway.validate();
        check(flyway.info().current() != null && flyway.info().pending().length == 0);
        try (Connection connection = flyway.getConfiguration().getDataSource().getConnection(); var statement = connection.createStatement()) {
            statement.execute("INSERT INTO person (name) VALUES ('  two ')");
            var rows = statement.executeQuery("SELECT GROUP_CONCAT(name ORDER BY id SEPARATOR '|') FROM people");
            rows.next();
            check("ONE;TWO|TWO".equals(rows.getString(1)), rows.getString(1));
        }
        flyway.repair();
        flyway.clean();
        check(flyway.info().applied().length == 0);
        flyway.baseline();
    }

    static void check(boolean holds, String seen) {
        if (!holds) throw new AssertionError(seen);
    }

    static void check(boolean holds) {
        if (!holds) throw new AssertionError();
    }
}
