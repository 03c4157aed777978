"""Python's mysqlclient: CALL, its results and OUT parameters. The driver's own tests have none."""

import os

import MySQLdb
import MySQLdb.constants.CLIENT

options = {"user": os.environ["DB_USER"], "passwd": os.environ["DB_PASSWORD"], "db": os.environ["DB_NAME"]}
if os.environ.get("DB_SOCKET"):
    options["unix_socket"] = os.environ["DB_SOCKET"]
else:
    options |= {"host": os.environ["DB_HOST"], "port": int(os.environ["DB_PORT"])}


def refused(number, name, arguments=()):
    try:
        cursor.callproc(name, arguments)
    except MySQLdb.Error as error:
        assert error.args[0] == number, f"expected {number}, came {error.args}"
        return
    raise AssertionError(f"expected error {number}, none came")


db = MySQLdb.connect(charset="utf8mb4", **options)
cursor = db.cursor()
for name in ("divide", "fails"):
    cursor.execute(f"DROP PROCEDURE IF EXISTS {name}")
cursor.execute(
    """CREATE PROCEDURE divide(IN a INT, INOUT b INT, OUT rest INT)
       BEGIN SELECT a, b; SET rest = a % b; SET b = a DIV b; SELECT 'end' UNION SELECT 'of all'; END"""
)
cursor.execute("CREATE PROCEDURE fails() BEGIN SELECT 1; SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 4711; END")
cursor.callproc("divide", (20, 3, 0))
assert cursor.fetchall() == ((20, 3),)
assert cursor.nextset() and sorted(cursor.fetchall()) == [("end",), ("of all",)]
assert cursor.nextset() and cursor.fetchall() == () and not cursor.nextset()
cursor.execute("SELECT @_divide_0, @_divide_1, @_divide_2")
assert cursor.fetchone() == (20, 6, 2)
refused(1318, "divide", (1,))
refused(1305, "no_such_procedure")
# The error comes where the second result would.
cursor.callproc("fails")
assert cursor.fetchall() == ((1,),)
try:
    cursor.nextset()
    raise AssertionError("no error")
except MySQLdb.Error as error:
    assert error.args[0] == 4711, error.args
cursor.execute("SELECT 1")
assert cursor.fetchone() == (1,)
# Results that nobody reads are in nobody's way.
cursor.callproc("divide", (20, 3, 0))
cursor.close()
cursor = db.cursor()
cursor.execute("SELECT 2")
assert cursor.fetchone() == (2,)
db.close()
# A query out of turn is refused, and takes nothing away of the results that are still to come.
db = MySQLdb.connect(charset="utf8mb4", client_flag=MySQLdb.constants.CLIENT.MULTI_STATEMENTS, **options)
db.query("SELECT 1; SELECT 2")
db.store_result()
for _ in range(2):
    try:
        db.query("SELECT 3")
        raise AssertionError("no error")
    except MySQLdb.Error as error:
        assert error.args[0] == 2014, error.args
assert db.next_result() == 0
assert db.store_result().fetch_row() == ((2,),)
assert db.next_result() == -1
db.query("SELECT 3")
assert db.store_result().fetch_row() == ((3,),)
db.close()
print("ok")
