"""Applications, object mappers and migration tools that people run on MySQL, on Porpoise.

  ./test applications                 all of them
  ./test applications django knex     these
  ./test applications --list          their names
  ./test applications --on mariadb knex
                                      on MariaDB: what an application does there it should do here

A folder here is an application. `install FOLDER` fetches it from Debian's packages or its registry,
into a folder that is kept; `run FOLDER` uses it, as its users would, and asserts what it sees. It is
told of a server of its own as a suite is (tests/suites/suites.py): `DB_HOST`, `DB_PORT`, `DB_SOCKET`,
`DB_USER`, `DB_PASSWORD`, `DB_NAME` and `DB_PRODUCT`. Its status says whether all went as it should.

What a run printed is in target/applications/NAME.PRODUCT.log.
"""
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "suites"))

import suites  # noqa: E402

WORK = suites.TARGET / "applications"
PRODUCTS = ["porpoise", "mariadb"]


def all_names():
    return sorted(folder.name for folder in HERE.iterdir() if (folder / "run").exists())


def installed(name, folder):
    """Whether the application is there now."""
    path = WORK / f"{name}.install.log"
    with open(path, "w") as log:
        if suites.run_script([HERE / name / "install", folder], {}, log):
            return True
    print(f"{name} can't be installed: {path} tells why", flush=True)
    return False


def works(name, product, folder):
    """Whether the application does on the product what its script asserts."""
    path = WORK / f"{name}.{product}.log"
    server = suites.Server(product)
    began = time.monotonic()
    try:
        with open(path, "w") as log:
            ok = suites.run_script([HERE / name / "run", folder], server.environment(), log)
        alive = server.process.poll() is None
    finally:
        server.stop()
    word = "ok" if ok and alive else "FAILED"
    print(f"{name} on {product}: {word}, {time.monotonic() - began:.0f} s", flush=True)
    if not alive:
        print(f"{name} on {product}: the server is gone", flush=True)
    elif not ok:
        print("\n".join(path.read_text(errors="replace").splitlines()[-15:]), flush=True)
    return ok and alive


def main(arguments):
    names = all_names()
    if "--list" in arguments:
        print("\n".join(names))
        return 0
    product = PRODUCTS[0]
    if arguments[:1] == ["--on"] and len(arguments) > 1:
        product, arguments = arguments[1], arguments[2:]
    unknown = (set(arguments) - set(names)) | ({product} - set(PRODUCTS))
    if unknown:
        print(__doc__)
        print(f"unknown: {', '.join(sorted(unknown))}")
        return 2
    passed = failed = 0
    for name in arguments or names:
        folder = WORK / name
        folder.mkdir(parents=True, exist_ok=True)
        ok = installed(name, folder) and works(name, product, folder)
        passed, failed = passed + ok, failed + (not ok)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
