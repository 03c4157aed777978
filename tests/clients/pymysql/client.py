"""PyMySQL against a server: what its users do every day. Exits non-zero at the first thing that is not as it should be."""

import datetime
import decimal
import os

import pymysql
from pymysql.constants import CLIENT

NAME = os.environ["DB_NAME"]
PASSWORD = os.environ["DB_PASSWORD"]
WAYS = [
    {"host": os.environ["DB_HOST"], "port": int(os.environ["DB_PORT"])},
    {"unix_socket": os.environ["DB_SOCKET"]},
]


def connect(**options):
    settings = {"user": os.environ["DB_USER"], "password": PASSWORD, "database": NAME, "charset": "utf8mb4"}
    return pymysql.connect(**{**settings, **WAYS[0], **options})


def refused(number, action):
    try:
        action()
    except pymysql.MySQLError as error:
        assert error.args[0] == number, f"expected {number}, came {error.args}"
        return
    raise AssertionError(f"expected error {number}, none came")


def each_user_logs_in_over_each_way():
    for way in WAYS:
        for user in os.environ["DB_USERS"].split():
            for _ in range(2):  # the second login may take a shorter path
                with connect(user=user, **way) as db, db.cursor() as cursor:
                    cursor.execute("SELECT CURRENT_USER(), DATABASE()")
                    assert cursor.fetchone() == (f"{user}@%", NAME)
            refused(1045, lambda: connect(user=user, password="wrong", **way))
            refused(1045, lambda: connect(user=user, password="", **way))
            refused(1049, lambda: connect(user=user, database="no_such_database", **way))
        refused(1045, lambda: connect(user="no_such_user", **way))


def every_type_comes_back_as_it_went():
    with connect() as db, db.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS types")
        cursor.execute(
            """CREATE TABLE types (
                 id INT PRIMARY KEY AUTO_INCREMENT,
                 ti TINYINT, si SMALLINT, mi MEDIUMINT, i INT, bi BIGINT, ubi BIGINT UNSIGNED, de DECIMAL(30,10),
                 f FLOAT, d DOUBLE, da DATE, ti6 TIME(6), dt DATETIME(6), ts TIMESTAMP(3) NULL, y YEAR, b BIT(10),
                 c CHAR(5), v VARCHAR(50), bin BINARY(3), vb VARBINARY(50), tx TEXT, bl BLOB, e ENUM('x','y'),
                 s SET('p','q'), j JSON)"""
        )
        row = (
            -128, -32768, 8388607, -2147483648, -(2**63), 2**64 - 1, decimal.Decimal("12345678901234567890.0123456789"),
            1.5, 0.1, datetime.date(2024, 2, 29), datetime.timedelta(hours=100, microseconds=1),
            datetime.datetime(2024, 2, 29, 23, 59, 59, 999999), datetime.datetime(2024, 2, 29, 1, 2, 3, 456000), 2024,
            b"\x02\xff", "日本", "it's \"quoted\" \\ \n\t\0 😀 %s", b"\0\1\2", bytes(range(50)), "t" * 1000,
            bytes(range(256)) * 10, "y", "p,q", '{"a": [1, null]}',
        )  # fmt: skip
        columns = "ti,si,mi,i,bi,ubi,de,f,d,da,ti6,dt,ts,y,b,c,v,bin,vb,tx,bl,e,s,j"
        marks = ",".join(["%s"] * len(row))
        cursor.execute(f"INSERT INTO types ({columns}) VALUES ({marks})", row)
        assert cursor.lastrowid == 1 and cursor.rowcount == 1
        cursor.execute(f"SELECT {columns} FROM types WHERE id = %s", (1,))
        came = cursor.fetchone()
        for name, sent, back in zip(columns.split(","), row, came):
            assert sent == back and type(sent) is type(back), f"{name}: sent {sent!r}, came {back!r}"
        assert [d[0] for d in cursor.description] == columns.split(",")
        cursor.execute(f"INSERT INTO types ({columns}) VALUES ({marks})", (None,) * len(row))
        cursor.execute(f"SELECT {columns} FROM types WHERE id = 2")
        assert cursor.fetchone() == (None,) * len(row)


def a_client_in_latin1_reads_names_and_errors():
    with connect(charset="latin1") as db, db.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS `größe`")
        cursor.execute("CREATE TABLE `größe` (`höhe` VARCHAR(5) DEFAULT 'é', `art` ENUM('groß', 'klein'))")
        cursor.execute("INSERT INTO `größe` (`art`) VALUES ('groß')")
        cursor.execute("SELECT `höhe`, `art`, 'é' AS `ü` FROM `größe` WHERE `höhe` = 'é'")
        assert cursor.fetchall() == (("é", "groß", "é"),)
        assert [d[0] for d in cursor.description] == ["höhe", "art", "ü"]
        try:
            cursor.execute("SELECT `nä` FROM `größe`")
        except pymysql.MySQLError as error:
            # PyMySQL decodes messages as UTF-8, with replacements.
            assert error.args[0] == 1054 and "n\ufffd" in error.args[1], error.args
        cursor.execute("DROP TABLE `größe`")


def transactions_commit_and_roll_back():
    with connect() as db, db.cursor() as cursor, connect(autocommit=True) as other, other.cursor() as looks:
        cursor.execute("DROP TABLE IF EXISTS t")
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        assert not db.get_autocommit()
        cursor.execute("INSERT INTO t VALUES (1)")
        looks.execute("SELECT COUNT(*) FROM t")
        assert looks.fetchone() == (0,)
        db.commit()
        looks.execute("SELECT COUNT(*) FROM t")
        assert looks.fetchone() == (1,)
        cursor.execute("DELETE FROM t")
        db.rollback()
        cursor.execute("SELECT COUNT(*) FROM t")
        assert cursor.fetchone() == (1,)
        db.autocommit(True)
        cursor.executemany("INSERT INTO t VALUES (%s)", [(n,) for n in range(2, 102)])
        assert cursor.rowcount == 100
        looks.execute("SELECT COUNT(*) FROM t")
        assert looks.fetchone() == (101,)


def errors_have_their_numbers():
    with connect() as db, db.cursor() as cursor:
        for number, sql in [
            (1064, "SELEC 1"), (1146, "SELECT * FROM nothing"), (1054, "SELECT nothing"), (1062, "INSERT INTO t VALUES (1)"),
            (1049, "USE nothing"), (1690, "SELECT 9223372036854775807 + 1"),
        ]:  # fmt: skip
            refused(number, lambda: cursor.execute(sql))
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,), "the connection is of use after an error"


def many_statements_in_one_packet():
    with connect(client_flag=CLIENT.MULTI_STATEMENTS) as db, db.cursor() as cursor:
        cursor.execute("SELECT 1; SET @x = 5; SELECT @x, 'two'; DO 1")
        assert cursor.fetchall() == ((1,),)
        assert cursor.nextset() and cursor.nextset()
        assert cursor.fetchall() == ((5, "two"),)
        assert cursor.nextset() and not cursor.nextset()
        refused(1146, lambda: (cursor.execute("SELECT 1; SELECT * FROM nothing; SELECT 2"), cursor.nextset()))
        db.ping(reconnect=False)


def procedures_return_results_and_out_parameters():
    with connect() as db, db.cursor() as cursor:
        cursor.execute("DROP PROCEDURE IF EXISTS divide")
        cursor.execute(
            """CREATE PROCEDURE divide(IN a INT, INOUT b INT, OUT rest INT)
               BEGIN SELECT a, b; SET rest = a % b; SET b = a DIV b; SELECT 'end'; END"""
        )
        cursor.callproc("divide", (20, 3, 0))
        assert cursor.fetchall() == ((20, 3),)
        assert cursor.nextset() and cursor.fetchall() == (("end",),)
        assert cursor.nextset() and not cursor.nextset()
        cursor.execute("SELECT @_divide_1, @_divide_2")
        assert cursor.fetchone() == (6, 2)
        refused(1318, lambda: cursor.callproc("divide", (1,)))
        refused(1305, lambda: cursor.callproc("no_such_procedure"))


def packets_larger_than_16_mib():
    with connect() as db, db.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS large")
        cursor.execute("CREATE TABLE large (id INT PRIMARY KEY, v LONGBLOB)")
        for id, size in enumerate([2**24 - 2, 2**24 - 1, 2**24, 2**24 + 100, 20_000_000]):
            cursor.execute("SELECT LENGTH(%s)", ("x" * size,))
            assert cursor.fetchone() == (size,)
        value = bytes(range(256)) * 70_000
        cursor.execute("INSERT INTO large VALUES (1, %s)", (value,))
        cursor.execute("SELECT v FROM large")
        assert cursor.fetchone()[0] == value
        cursor.execute("DROP TABLE large")


def unbuffered_rows_and_dictionaries():
    with connect(cursorclass=pymysql.cursors.SSDictCursor) as db:
        with db.cursor() as cursor:
            cursor.execute("WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i, i * 2 AS twice FROM n")
            rows = cursor.fetchall()
            assert len(rows) == 1000 and rows[499] == {"i": 500, "twice": 1000}


def a_connection_pings_changes_database_and_ends():
    db = connect()
    db.ping()
    db.select_db("information_schema")
    with db.cursor() as cursor:
        cursor.execute("SELECT DATABASE()")
        assert cursor.fetchone() == ("information_schema",)
    id = db.thread_id()
    with connect() as killer, killer.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        assert cursor.fetchone() == (killer.thread_id(),)
        cursor.execute(f"KILL {id}")
    try:
        db.cursor().execute("SELECT 1")
        raise AssertionError("a killed connection answered")
    except pymysql.MySQLError:
        pass
    db.ping(reconnect=True)
    with db.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)
    db.close()


for check in [
    each_user_logs_in_over_each_way,
    every_type_comes_back_as_it_went,
    a_client_in_latin1_reads_names_and_errors,
    transactions_commit_and_roll_back,
    errors_have_their_numbers,
    many_statements_in_one_packet,
    procedures_return_results_and_out_parameters,
    packets_larger_than_16_mib,
    unbuffered_rows_and_dictionaries,
    a_connection_pings_changes_database_and_ends,
]:
    try:
        check()
    except BaseException:
        print(f"FAILED: {check.__name__}", flush=True)
        raise
    print(f"ok: {check.__name__}", flush=True)
