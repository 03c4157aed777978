import java.math.BigDecimal;
import java.math.BigInteger;
import java.sql.*;
import java.time.*;
import java.util.*;

/** MySQL Connector/J against a server. Exits non-zero at the first thing that is not as it should be. */
public class Client {
    static final Map<String, String> ENV = System.getenv();

    interface Step { void run() throws Exception; }

    static Connection connect(String user, String password, String more) throws SQLException {
        String url = "jdbc:mysql://" + ENV.get("DB_HOST") + ":" + ENV.get("DB_PORT") + "/" + ENV.get("DB_NAME")
            + "?sslMode=PREFERRED&allowPublicKeyRetrieval=true&connectionTimeZone=UTC&maxAllowedPacket=67108864" + more;
        return DriverManager.getConnection(url, user, password);
    }

    static Connection connect(String more) throws SQLException {
        return connect(ENV.get("DB_USER"), ENV.get("DB_PASSWORD"), more);
    }

    static void equal(Object expected, Object actual) {
        if (!Objects.deepEquals(expected, actual)) throw new AssertionError("expected " + expected + ", came " + actual);
    }

    static int number(Step step) throws Exception {
        try {
            step.run();
            return 0;
        } catch (SQLException e) {
            return e.getErrorCode();
        }
    }

    static void logins() throws Exception {
        for (String user : ENV.get("DB_USERS").split(" ")) {
            for (int turn = 0; turn < 2; turn++) {
                try (Connection db = connect(user, ENV.get("DB_PASSWORD"), ""); Statement s = db.createStatement();
                     ResultSet r = s.executeQuery("SELECT CURRENT_USER()")) {
                    r.next();
                    equal(user + "@%", r.getString(1));
                    equal(ENV.get("DB_NAME"), db.getCatalog());
                    equal(true, db.isValid(5));
                }
            }
            equal(1045, number(() -> connect(user, "wrong", "").close()));
        }
    }

    static void types(String mode) throws Exception {
        try (Connection db = connect(mode); Statement s = db.createStatement()) {
            s.execute("DROP TABLE IF EXISTS j_types");
            s.execute("CREATE TABLE j_types (id INT PRIMARY KEY AUTO_INCREMENT, ti TINYINT, i INT, bi BIGINT, ub BIGINT UNSIGNED, "
                + "de DECIMAL(20,5), f FLOAT, d DOUBLE, da DATE, tm TIME, dt DATETIME(6), y YEAR, bo BIT(1), v VARCHAR(50), "
                + "vb VARBINARY(50), tx TEXT, bl BLOB, e ENUM('x','y'), flag BOOLEAN)");
            byte[] bytes = new byte[256];
            for (int n = 0; n < 256; n++) bytes[n] = (byte) n;
            // MariaDB calls itself 5.5.5 at login, so the driver sends it no fractions of a second.
            int nanoseconds = "mariadb".equals(ENV.get("DB_PRODUCT")) ? 0 : 123456000;
            LocalDateTime when = LocalDateTime.of(2024, 2, 29, 23, 59, 59, nanoseconds);
            try (PreparedStatement p = db.prepareStatement("INSERT INTO j_types (ti,i,bi,ub,de,f,d,da,tm,dt,y,bo,v,vb,tx,bl,e,flag) "
                    + "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", Statement.RETURN_GENERATED_KEYS)) {
                p.setInt(1, -128);
                p.setInt(2, Integer.MAX_VALUE);
                p.setLong(3, Long.MIN_VALUE);
                p.setString(4, "18446744073709551615");
                p.setBigDecimal(5, new BigDecimal("12345.67891"));
                p.setFloat(6, 1.5f);
                p.setDouble(7, 0.1);
                p.setObject(8, LocalDate.of(2024, 2, 29));
                p.setObject(9, LocalTime.of(10, 11, 12));
                p.setObject(10, when);
                p.setInt(11, 2024);
                p.setBoolean(12, true);
                p.setString(13, "日本 'q' \\ \0 😀");
                p.setBytes(14, new byte[] {0, 1, -1});
                p.setString(15, "t".repeat(5000));
                p.setBytes(16, bytes);
                p.setString(17, "y");
                p.setBoolean(18, true);
                equal(1, p.executeUpdate());
                try (ResultSet keys = p.getGeneratedKeys()) {
                    keys.next();
                    equal(1L, keys.getLong(1));
                }
                for (int n = 1; n <= 18; n++) p.setNull(n, Types.VARCHAR);
                equal(1, p.executeUpdate());
            }
            try (PreparedStatement p = db.prepareStatement("SELECT ti,i,bi,ub,de,f,d,da,tm,dt,y,bo,v,vb,tx,bl,e,flag FROM j_types WHERE id = ?")) {
                p.setInt(1, 1);
                try (ResultSet r = p.executeQuery()) {
                    r.next();
                    equal(-128, r.getInt(1));
                    equal(Integer.MAX_VALUE, r.getInt(2));
                    equal(Long.MIN_VALUE, r.getLong(3));
                    equal(new BigInteger("18446744073709551615"), r.getObject(4));
                    equal(new BigDecimal("12345.67891"), r.getBigDecimal(5));
                    equal(1.5f, r.getFloat(6));
                    equal(0.1, r.getDouble(7));
                    equal(LocalDate.of(2024, 2, 29), r.getObject(8, LocalDate.class));
                    equal(LocalTime.of(10, 11, 12), r.getObject(9, LocalTime.class));
                    equal(when, r.getObject(10, LocalDateTime.class));
                    equal(2024, r.getInt(11));
                    equal(true, r.getBoolean(12));
                    equal("日本 'q' \\ \0 😀", r.getString(13));
                    equal(new byte[] {0, 1, -1}, r.getBytes(14));
                    equal(5000, r.getString(15).length());
                    equal(bytes, r.getBytes(16));
                    equal("y", r.getString(17));
                    equal(Boolean.TRUE, r.getObject(18, Boolean.class));
                    ResultSetMetaData m = r.getMetaData();
                    equal("BIGINT UNSIGNED", m.getColumnTypeName(4));
                    equal("j_types", m.getTableName(1));
                    equal(20, m.getPrecision(5));
                    equal(5, m.getScale(5));
                }
                p.setInt(1, 2);
                try (ResultSet r = p.executeQuery()) {
                    r.next();
                    for (int n = 1; n <= 18; n++) equal(null, r.getObject(n));
                }
            }
        }
    }

    static void batchesAndTransactions() throws Exception {
        try (Connection db = connect("&rewriteBatchedStatements=true"); Connection other = connect("&useServerPrepStmts=true");
             Statement s = db.createStatement(); Statement looks = other.createStatement()) {
            s.execute("DROP TABLE IF EXISTS j_t");
            s.execute("CREATE TABLE j_t (id INT PRIMARY KEY, v VARCHAR(20))");
            db.setAutoCommit(false);
            try (PreparedStatement p = db.prepareStatement("INSERT INTO j_t VALUES (?, ?)")) {
                for (int n = 0; n < 500; n++) {
                    p.setInt(1, n);
                    p.setString(2, "v" + n);
                    p.addBatch();
                }
                equal(500, p.executeBatch().length);
            }
            equal(0, count(looks));
            Savepoint mark = db.setSavepoint("mark");
            s.execute("DELETE FROM j_t");
            db.rollback(mark);
            db.commit();
            equal(500, count(looks));
            s.execute("DELETE FROM j_t WHERE id < 100");
            db.rollback();
            equal(500, count(s));
            db.setAutoCommit(true);
            db.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
            equal(Connection.TRANSACTION_READ_COMMITTED, db.getTransactionIsolation());
            equal(1062, number(() -> s.execute("INSERT INTO j_t VALUES (1, 'x')")));
            equal(1146, number(() -> s.execute("SELECT * FROM nothing")));
            equal(1064, number(() -> s.execute("SELEC")));
            try (PreparedStatement p = other.prepareStatement("SELECT v FROM j_t WHERE id = ?")) {
                for (int n = 0; n < 200; n++) {
                    p.setInt(1, n);
                    try (ResultSet r = p.executeQuery()) {
                        r.next();
                        equal("v" + n, r.getString(1));
                    }
                }
            }
        }
    }

    static int count(Statement s) throws SQLException {
        try (ResultSet r = s.executeQuery("SELECT COUNT(*) FROM j_t")) {
            r.next();
            return r.getInt(1);
        }
    }

    static void metadata() throws Exception {
        try (Connection db = connect("")) {
            DatabaseMetaData m = db.getMetaData();
            try (ResultSet r = m.getTables(ENV.get("DB_NAME"), null, "j\\_t", new String[] {"TABLE"})) {
                equal(true, r.next());
                equal("j_t", r.getString("TABLE_NAME"));
            }
            try (ResultSet r = m.getColumns(ENV.get("DB_NAME"), null, "j\\_t", "%")) {
                List<String> names = new ArrayList<>();
                while (r.next()) names.add(r.getString("COLUMN_NAME") + " " + r.getString("TYPE_NAME"));
                equal(List.of("id INT", "v VARCHAR"), names);
            }
            try (ResultSet r = m.getPrimaryKeys(ENV.get("DB_NAME"), null, "j_t")) {
                r.next();
                equal("id", r.getString("COLUMN_NAME"));
            }
            try (ResultSet r = m.getIndexInfo(ENV.get("DB_NAME"), null, "j_t", true, false)) {
                equal(true, r.next());
            }
        }
    }

    static void procedures(String mode) throws Exception {
        try (Connection db = connect(mode); Statement s = db.createStatement()) {
            s.execute("DROP PROCEDURE IF EXISTS jdbc_divide");
            s.execute("CREATE PROCEDURE jdbc_divide(IN a INT, INOUT b INT, OUT rest INT) "
                + "BEGIN SELECT a, b; SET rest = a % b; SET b = a DIV b; SELECT 'end'; END");
            s.execute("DROP FUNCTION IF EXISTS jdbc_twice");
            s.execute("CREATE FUNCTION jdbc_twice(a INT) RETURNS INT DETERMINISTIC NO SQL RETURN 2 * a");
            try (CallableStatement call = db.prepareCall("{CALL jdbc_divide(?, ?, ?)}")) {
                call.setInt(1, 20);
                call.setInt(2, 3);
                call.registerOutParameter(2, Types.INTEGER);
                call.registerOutParameter("rest", Types.INTEGER);
                equal(true, call.execute());
                call.getResultSet().next();
                equal(20, call.getResultSet().getInt(1));
                equal(true, call.getMoreResults());
                call.getResultSet().next();
                equal("end", call.getResultSet().getString(1));
                equal(6, call.getInt(2));
                equal(2, call.getInt("rest"));
            }
            try (CallableStatement call = db.prepareCall("{? = CALL jdbc_twice(?)}")) {
                call.registerOutParameter(1, Types.INTEGER);
                call.setInt(2, 21);
                call.execute();
                equal(42, call.getInt(1));
            }
            equal(1305, number(() -> s.execute("CALL no_such_procedure()")));
        }
    }

    static void manyStatementsLargePacketsCursors() throws Exception {
        try (Connection db = connect("&allowMultiQueries=true"); Statement s = db.createStatement()) {
            equal(true, s.execute("SELECT 1; SET @x = 2; SELECT @x"));
            equal(false, s.getMoreResults());
            equal(0, s.getUpdateCount());
            equal(true, s.getMoreResults());
            s.getResultSet().next();
            equal(2, s.getResultSet().getInt(1));
            for (int size : new int[] {(1 << 24) - 2, 1 << 24, 20_000_000}) {
                try (PreparedStatement p = db.prepareStatement("SELECT LENGTH(?), REPEAT('y', ?)")) {
                    p.setString(1, "x".repeat(size));
                    p.setInt(2, size);
                    try (ResultSet r = p.executeQuery()) {
                        r.next();
                        equal(size, r.getInt(1));
                        equal(size, r.getString(2).length());
                    }
                }
            }
        }
        try (Connection db = connect("&useServerPrepStmts=true&useCursorFetch=true");
             PreparedStatement p = db.prepareStatement("SELECT id FROM j_t ORDER BY id")) {
            p.setFetchSize(7);
            try (ResultSet r = p.executeQuery()) {
                for (int n = 0; n < 500; n++) {
                    equal(true, r.next());
                    equal(n, r.getInt(1));
                }
                equal(false, r.next());
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Map<String, Step> steps = new LinkedHashMap<>();
        steps.put("each user logs in", Client::logins);
        steps.put("every type, as text", () -> types(""));
        steps.put("every type, as binary", () -> types("&useServerPrepStmts=true"));
        steps.put("batches and transactions", Client::batchesAndTransactions);
        steps.put("metadata", Client::metadata);
        steps.put("procedures, as text", () -> procedures(""));
        steps.put("procedures, as binary", () -> procedures("&useServerPrepStmts=true"));
        steps.put("many statements, large packets, cursors", Client::manyStatementsLargePacketsCursors);
        for (Map.Entry<String, Step> step : steps.entrySet()) {
            System.out.println(step.getKey());
            step.getValue().run();
        }
        System.out.println("all ok");
    }
}
