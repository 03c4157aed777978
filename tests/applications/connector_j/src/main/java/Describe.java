import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.sql.*;
import java.util.*;

/** Prints what every method of DatabaseMetaData returns, and what a CallableStatement does, by several options of the driver. */
public class Describe {
    static final String[] SCHEMA = {
        "CREATE TABLE country (code CHAR(2) NOT NULL, name VARCHAR(50) NOT NULL COMMENT 'in English', PRIMARY KEY (code), UNIQUE KEY by_name (name)) COMMENT='all of them'",
        "CREATE TABLE town (id INT UNSIGNED NOT NULL AUTO_INCREMENT, country CHAR(2), `name` VARCHAR(100) NOT NULL DEFAULT 'x', people BIGINT UNSIGNED, area DECIMAL(10,2),"
            + " kind ENUM('a','b') DEFAULT 'a', tags SET('x','y'), about TEXT, picture MEDIUMBLOB, founded DATE, noon TIME(3), seen DATETIME(6), changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,"
            + " since YEAR, ok TINYINT(1), few TINYINT, some SMALLINT UNSIGNED, more MEDIUMINT, share FLOAT, weight DOUBLE, bits BIT(5), one BIT(1), raw BINARY(4), bytes VARBINARY(10), doc JSON,"
            + " twice INT GENERATED ALWAYS AS (few * 2) STORED, half INT AS (few DIV 2) VIRTUAL,"
            + " PRIMARY KEY (id), KEY by_country (country, name), CONSTRAINT of_country FOREIGN KEY (country) REFERENCES country (code) ON DELETE SET NULL ON UPDATE CASCADE)",
        "CREATE TABLE twin (a INT NOT NULL, b INT NOT NULL, c INT, PRIMARY KEY (b, a), KEY down (c DESC))",
        "CREATE TABLE part (x INT, y INT, CONSTRAINT of_twin FOREIGN KEY (y, x) REFERENCES twin (b, a))",
        "CREATE VIEW big AS SELECT id, name, people FROM town WHERE people > 1000000",
        "CREATE PROCEDURE add_up(IN a INT, INOUT b DECIMAL(10,2), OUT c VARCHAR(20)) COMMENT 'adds' BEGIN SET c = CONCAT('sum ', a + b); SET b = a + b; SELECT a AS first, b AS second; SELECT c; END",
        "CREATE FUNCTION twice(n BIGINT UNSIGNED) RETURNS BIGINT UNSIGNED DETERMINISTIC NO SQL RETURN n * 2",
        "CREATE FUNCTION greet(who VARCHAR(30)) RETURNS VARCHAR(40) CHARSET utf8mb4 DETERMINISTIC COMMENT 'says hello' RETURN CONCAT('hello ', who)",
        "CREATE PROCEDURE nothing() SET @nothing = 1",
        "CREATE PROCEDURE dates(INOUT d DATE, INOUT t TIME, INOUT ts DATETIME(3), INOUT f DOUBLE, INOUT b TINYINT(1), INOUT raw VARBINARY(5)) SET d = d + INTERVAL 1 DAY, t = ADDTIME(t, '01:00:00'), ts = ts + INTERVAL 1 SECOND, f = f * 2, b = NOT b, raw = CONCAT(raw, 0x21)",
    };
    /** What tells of the server alone, or of the connection. */
    static final Set<String> OF_SERVER = Set.of(
        "getConnection", "getURL", "getUserName", "getDatabaseProductName", "getDatabaseProductVersion",
        "getDatabaseMajorVersion", "getDatabaseMinorVersion", "getCatalogs", "getSchemas");
    static final String[] OPTIONS = {
        "&useInformationSchema=true",
        "&useInformationSchema=true&tinyInt1isBit=false&yearIsDateType=false&useServerPrepStmts=true&getProceduresReturnsFunctions=false",
        "&useInformationSchema=true&databaseTerm=SCHEMA",
    };
    static String database;

    static String show(Object value) throws Exception {
        if (value instanceof ResultSet rows) {
            try (rows) {
                return rows(rows);
            }
        }
        if (value instanceof byte[] bytes) return HexFormat.of().formatHex(bytes);
        return String.valueOf(value).replace(database, "DB");
    }

    static String rows(ResultSet rows) throws Exception {
        ResultSetMetaData meta = rows.getMetaData();
        StringBuilder text = new StringBuilder();
        List<String> names = new ArrayList<>();
        for (int c = 1; c <= meta.getColumnCount(); c++) names.add(meta.getColumnLabel(c) + ":" + meta.getColumnTypeName(c));
        text.append(names);
        while (rows.next()) {
            StringBuilder row = new StringBuilder("\n    ");
            for (int c = 1; c <= names.size(); c++) row.append(c > 1 ? " | " : "").append(show(rows.getObject(c)));
            text.append(row);
        }
        return text.toString();
    }

    static void call(DatabaseMetaData meta, String name, Object... arguments) throws Exception {
        for (Method method : DatabaseMetaData.class.getMethods()) {
            if (!method.getName().equals(name) || method.getParameterCount() != arguments.length) continue;
            String result;
            try {
                result = show(method.invoke(meta, arguments));
            } catch (InvocationTargetException e) {
                result = failed(e.getCause());
            }
            StringBuilder shown = new StringBuilder();
            for (Object argument : arguments) {
                shown.append(shown.isEmpty() ? "" : ", ");
                shown.append(argument instanceof Object[] list ? Arrays.toString(list) : argument instanceof int[] list ? Arrays.toString(list) : show(argument));
            }
            System.out.println(name + "(" + shown + ") = " + result);
        }
    }

    static String failed(Throwable e) {
        return e instanceof SQLException sql ? "ERROR " + sql.getErrorCode() + " " + sql.getSQLState() + " " + sql.getMessage().replace(database, "DB") : e.toString();
    }

    interface Step { Object run() throws Exception; }

    static void step(String name, Step step) throws Exception {
        try {
            System.out.println(name + " = " + show(step.run()));
        } catch (SQLException e) {
            System.out.println(name + " = " + failed(e));
        }
    }

    static void metadata(Connection db) throws Exception {
        DatabaseMetaData meta = db.getMetaData();
        Method[] methods = DatabaseMetaData.class.getMethods();
        Arrays.sort(methods, Comparator.comparing(Method::getName));
        for (Method method : methods)
            if (method.getParameterCount() == 0 && !OF_SERVER.contains(method.getName())) call(meta, method.getName());
        // One of the two is the database, by the option databaseTerm.
        String c = db.getCatalog(), s = db.getSchema();
        for (String table : new String[] {"town", "country", "twin", "part", "big", "none"}) {
            call(meta, "getColumns", c, s, table, null);
            call(meta, "getPrimaryKeys", c, s, table);
            call(meta, "getImportedKeys", c, s, table);
            call(meta, "getExportedKeys", c, s, table);
            call(meta, "getBestRowIdentifier", c, s, table, DatabaseMetaData.bestRowSession, true);
            call(meta, "getVersionColumns", c, s, table);
            call(meta, "getTablePrivileges", c, s, table);
            call(meta, "getColumnPrivileges", c, s, table, "%");
            call(meta, "getPseudoColumns", c, s, table, "%");
            call(meta, "getSuperTables", c, s, table);
            // The number of rows is an estimate.
            for (boolean unique : new boolean[] {true, false}) call(meta, "getIndexInfo", c, s, table, unique, false);
        }
        call(meta, "getColumns", c, s, "t%", "%a%");
        call(meta, "getColumns", c, s, "t_wn", "id");
        call(meta, "getCrossReference", c, s, "country", c, s, "town");
        call(meta, "getCrossReference", c, s, "twin", c, s, "part");
        call(meta, "getCrossReference", c, s, "town", c, s, "country");
        call(meta, "getTables", c, s, null, null);
        call(meta, "getTables", c, s, "%", new String[] {"TABLE"});
        call(meta, "getTables", c, s, "%", new String[] {"VIEW"});
        call(meta, "getTables", s == null ? "information_schema" : null, s == null ? null : "information_schema", "TABLES", null);
        call(meta, "getSchemas", null, "su%");
        call(meta, "getProcedures", c, s, null);
        call(meta, "getProcedures", c, s, "add%");
        call(meta, "getProcedureColumns", c, s, "%", null);
        call(meta, "getProcedureColumns", c, s, "add_up", "b");
        call(meta, "getFunctions", c, s, "%");
        call(meta, "getFunctionColumns", c, s, "%", "%");
        call(meta, "getUDTs", c, s, "%", new int[] {Types.STRUCT});
        call(meta, "getSuperTypes", c, s, "%");
        call(meta, "getAttributes", c, s, "%", "%");
        call(meta, "supportsConvert", Types.INTEGER, Types.VARCHAR);
        for (String question : new String[] {"deletesAreDetected", "insertsAreDetected", "updatesAreDetected", "othersDeletesAreVisible", "othersInsertsAreVisible", "othersUpdatesAreVisible", "ownDeletesAreVisible", "ownInsertsAreVisible", "ownUpdatesAreVisible", "supportsResultSetType"})
            call(meta, question, ResultSet.TYPE_SCROLL_INSENSITIVE);
        call(meta, "supportsResultSetConcurrency", ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_UPDATABLE);
        call(meta, "supportsResultSetHoldability", ResultSet.HOLD_CURSORS_OVER_COMMIT);
        call(meta, "supportsTransactionIsolationLevel", Connection.TRANSACTION_SERIALIZABLE);
    }

    static String parameters(CallableStatement statement) throws Exception {
        ParameterMetaData meta = statement.getParameterMetaData();
        StringBuilder text = new StringBuilder();
        for (int p = 1; p <= meta.getParameterCount(); p++)
            text.append("\n    ").append(meta.getParameterMode(p)).append(' ').append(meta.getParameterType(p)).append(' ').append(meta.getParameterTypeName(p)).append(' ').append(meta.getPrecision(p)).append(',').append(meta.getScale(p)).append(' ').append(meta.isSigned(p)).append(' ').append(meta.isNullable(p)).append(' ').append(meta.getParameterClassName(p));
        return text.toString();
    }

    static void calls(Connection db) throws Exception {
        try (CallableStatement add = db.prepareCall("{CALL add_up(?, ?, ?)}")) {
            step("add_up parameters", () -> parameters(add));
            add.setInt(1, 3);
            add.setBigDecimal(2, new java.math.BigDecimal("4.50"));
            add.registerOutParameter(2, Types.DECIMAL, 2);
            add.registerOutParameter(3, Types.VARCHAR);
            step("add_up execute", add::execute);
            step("add_up first result", add::getResultSet);
            step("add_up has more", add::getMoreResults);
            step("add_up second result", add::getResultSet);
            step("add_up has more", add::getMoreResults);
            step("add_up count", add::getUpdateCount);
            step("add_up has more", add::getMoreResults);
            step("add_up count", add::getUpdateCount);
            step("add_up 2", () -> add.getBigDecimal(2));
            step("add_up 3", () -> add.getString(3));
            step("add_up wasNull", add::wasNull);
            step("add_up b", () -> add.getDouble("b"));
            step("add_up c", () -> add.getObject("c"));
            step("add_up 1", () -> add.getInt(1));
            add.setNull(1, Types.INTEGER);
            step("add_up NULL", add::execute);
            step("add_up NULL 3", () -> add.getString(3));
            step("add_up NULL wasNull", add::wasNull);
            add.clearParameters();
            step("add_up without", add::execute);
        }
        try (CallableStatement add = db.prepareCall("{call add_up(?, ?, ?)}")) {
            add.setInt("a", 7);
            add.setString("b", "1.25");
            add.registerOutParameter("b", Types.VARCHAR);
            add.registerOutParameter("c", Types.CHAR);
            step("by name", add::executeQuery);
            step("by name b", () -> add.getString("b"));
            step("by name c", () -> add.getString("c"));
            step("by a wrong name", () -> add.getString("d"));
        }
        for (String call : new String[] {"{? = CALL twice(?)}", "{?=call twice(21)}"}) {
            try (CallableStatement twice = db.prepareCall(call)) {
                step(call + " parameters", () -> parameters(twice));
                twice.registerOutParameter(1, Types.BIGINT);
                if (call.endsWith("(?)}")) twice.setLong(2, 21);
                step(call, twice::execute);
                step(call + " result", () -> twice.getLong(1));
            }
        }
        try (CallableStatement greet = db.prepareCall("{? = CALL greet(?)}")) {
            greet.registerOutParameter(1, Types.VARCHAR);
            greet.setString("who", "w\u00f6rld \ud83d\udc2c");
            step("greet", greet::execute);
            step("greet result", () -> greet.getString(1));
        }
        try (CallableStatement nothing = db.prepareCall("CALL nothing()")) {
            step("nothing", nothing::execute);
            step("nothing count", nothing::getUpdateCount);
            step("nothing batch", () -> { nothing.addBatch(); nothing.addBatch(); return Arrays.toString(nothing.executeBatch()); });
        }
        try (CallableStatement dates = db.prepareCall("CALL dates(?, ?, ?, ?, ?, ?)")) {
            step("dates parameters", () -> parameters(dates));
            dates.setDate(1, java.sql.Date.valueOf("2024-02-28"));
            dates.setTime(2, Time.valueOf("10:11:12"));
            dates.setTimestamp(3, Timestamp.valueOf("2024-02-28 23:59:59.125"));
            dates.setDouble(4, 0.75);
            dates.setBoolean(5, true);
            dates.setBytes(6, new byte[] {1, (byte) 255});
            int[] types = {Types.DATE, Types.TIME, Types.TIMESTAMP, Types.DOUBLE, Types.BOOLEAN, Types.VARBINARY};
            for (int p = 1; p <= 6; p++) dates.registerOutParameter(p, types[p - 1]);
            step("dates", dates::execute);
            step("dates 1", () -> dates.getDate(1));
            step("dates 2", () -> dates.getTime(2));
            step("dates 3", () -> dates.getTimestamp(3));
            step("dates 4", () -> dates.getDouble(4));
            step("dates 5", () -> dates.getBoolean(5));
            step("dates 6", () -> dates.getBytes(6));
            for (int p = 1; p <= 6; p++) {
                int at = p;
                step("dates object " + p, () -> { Object o = dates.getObject(at); return o == null ? null : o.getClass().getName() + " " + show(o); });
            }
        }
        step("no such procedure", () -> db.prepareCall("{CALL absent()}").execute());
        step("too few parameters", () -> { CallableStatement s = db.prepareCall("{CALL add_up(?)}"); s.setInt(1, 1); return s.execute(); });
    }

    public static void main(String[] arguments) throws Exception {
        for (String options : OPTIONS) {
            try (Connection db = DriverManager.getConnection(System.getenv("DB_URL") + options, System.getenv("DB_USER"), System.getenv("DB_PASSWORD"))) {
                database = System.getenv("DB_NAME");
                System.out.println("== " + options);
                try (Statement statement = db.createStatement()) {
                    if (options.equals(OPTIONS[0])) for (String sql : SCHEMA) statement.execute(sql);
                }
                metadata(db);
                calls(db);
            }
        }
    }
}
