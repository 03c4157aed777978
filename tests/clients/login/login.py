"""Logs in by PyMySQL or mysqlclient, a line of WAY USER PASSWORD each."""

import importlib
import os
import sys

driver = importlib.import_module(sys.argv[1])
ways = {
    "tcp": {"host": os.environ["DB_HOST"], "port": int(os.environ["DB_PORT"])},
    "unix": {"unix_socket": os.environ["DB_SOCKET"]},
}
for line in sys.stdin:
    way, user, password, *_ = line.split()
    try:
        db = driver.connect(user=user, password="" if password == "-" else password, **ways[way])
        cursor = db.cursor()
        cursor.execute("SELECT 1")
        print("in" if cursor.fetchone() == (1,) else "odd", flush=True)
        db.close()
    except driver.MySQLError as error:
        print(error.args[0], flush=True)
