"""TLS and compression by Python's drivers: `tls.py pymysql` or `tls.py connector`."""

import os
import sys

PEM = os.environ["DB_CERTIFICATES"]
CA, OTHER_CA = f"{PEM}/ca.pem", f"{PEM}/other.pem"
CERTIFICATE, KEY = f"{PEM}/client-cert.pem", f"{PEM}/client-key.pem"
BASE = {"host": "localhost", "port": int(os.environ["DB_PORT"]), "user": "encrypted", "password": "right"}
LENGTH = 3_000_000


def pymysql_ways():
    import pymysql

    verified = {"ssl_ca": CA, "ssl_verify_cert": True, "ssl_verify_identity": True}
    certificate = {"ssl_cert": CERTIFICATE, "ssl_key": KEY}
    return pymysql.connect, pymysql.MySQLError, {
        "plain": {"ssl_disabled": True},
        "encrypted": {"ssl": {"check_hostname": False}},
        "verified": verified,
        "other": {**verified, "ssl_ca": OTHER_CA},
        "certified": {**verified, **certificate},
        "compressed": None,
    }


def connector_ways():
    import mysql.connector

    verified = {"ssl_ca": CA, "ssl_verify_cert": True, "ssl_verify_identity": True}
    certificate = {"ssl_cert": CERTIFICATE, "ssl_key": KEY}

    def connect(**options):
        return mysql.connector.connect(use_pure=True, **options)

    return connect, mysql.connector.Error, {
        "plain": {"ssl_disabled": True},
        "encrypted": {},
        "verified": verified,
        "other": {**verified, "ssl_ca": OTHER_CA},
        "certified": {**verified, **certificate},
        "compressed": {"compress": True},
    }


connect, error, ways = {"pymysql": pymysql_ways, "connector": connector_ways}[sys.argv[1]]()


def status(db, name):
    cursor = db.cursor()
    cursor.execute(f"SHOW STATUS LIKE '{name}'")
    return cursor.fetchone()[1]


def refused(**options):
    try:
        connect(**{**BASE, **options})
    except error:
        return
    raise AssertionError(f"nothing refused {options}")


def exchange_much(db):
    cursor = db.cursor()
    cursor.execute(f"SELECT REPEAT('x', {LENGTH})")
    assert len(cursor.fetchone()[0]) == LENGTH
    cursor.execute("SELECT LENGTH(%s)", ("y" * LENGTH,))
    assert cursor.fetchone()[0] == LENGTH


refused(**ways["plain"])
for way in ("encrypted", "verified", "certified"):
    for _ in range(3):
        db = connect(**{**BASE, **ways[way]})
        assert status(db, "Ssl_cipher").startswith("TLS_AES_")
        exchange_much(db)
        db.close()
refused(**ways["other"])
for user in ("certified", "named"):
    refused(user=user, **ways["verified"])
    connect(**{**BASE, **ways["certified"], "user": user}).close()
if ways["compressed"]:
    db = connect(**{**BASE, **ways["compressed"]})
    assert status(db, "Compression") == "ON"
    exchange_much(db)
print("passed")
