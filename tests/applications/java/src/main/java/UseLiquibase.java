import java.sql.DriverManager;
import liquibase.Contexts;
import liquibase.LabelExpression;
import liquibase.Liquibase;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.diff.DiffGeneratorFactory;
import liquibase.diff.compare.CompareControl;
import liquibase.resource.ClassLoaderResourceAccessor;

/** Liquibase: changes, snapshots that find no difference, and roll-backs. */
public class UseLiquibase {
    public static void main(String[] arguments) throws Exception {
        var e = System.getenv();
        try (var connection = DriverManager.getConnection(e.get("DB_URL"), e.get("DB_USER"), e.get("DB_PASSWORD"))) {
            var database = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(connection));
            var liquibase = new Liquibase("changes.xml", new ClassLoaderResourceAccessor(), database);
            var contexts = new Contexts();
            liquibase.update(contexts);
            check(liquibase.listUnrunChangeSets(contexts, new LabelExpression()).isEmpty());
            try (var statement = connection.createStatement()) {
                var rows = statement.executeQuery("SELECT COUNT(*), SUM(inhabitants) FROM town JOIN capitals USING (name)");
                rows.next();
                check(rows.getInt(1) == 2 && rows.getLong(2) == 6_500_000);
            }
            liquibase.tag("all");
            liquibase.rollback(1, "");
            liquibase.update(contexts);
            check(DiffGeneratorFactory.getInstance().compare(database, database, CompareControl.STANDARD).areEqual());
            liquibase.dropAll();
        }
    }

    static void check(boolean holds) {
        if (!holds) throw new AssertionError();
    }
}
