"""The suites that drivers and frameworks test themselves with, on MariaDB and on Porpoise.

  ./test suites                 all of them, and docs/compatibility.md
  ./test suites go rust         these
  ./test suites --list          their names
  ./test suites --only porpoise go
                                on one product alone; MariaDB's results are those of the last run

A folder here is a suite. `install FOLDER` fetches what its registry ships, into a folder that is
kept; `run FOLDER` runs it on one server, which `DB_HOST`, `DB_PORT`, `DB_SOCKET`, `DB_USER`,
`DB_PASSWORD`, `DB_NAME` and `DB_PRODUCT` describe, and writes lines to the file `RESULTS`. In the folder
`DB_LIBRARY` lies Porpoise's C library, as `libmariadb.so.3`:

    title go-sql-driver/mysql
    version 1.10.1
    ok|FAILED|skipped NAME OF A TEST

What a suite is told to leave out, its `run` says. `differences` has a line for each test whose
result isn't the same on both: a pattern of names, ` | `, and the reason. A difference without a
line there makes the command fail, and so does a line that nothing needs any more.

Results are in target/suites/NAME.PRODUCT, the output of a run beside them. docs/compatibility.md is
written from those that there are of both products; of other suites it keeps what it says, so that one
suite can be run without the rest.
"""
import fnmatch
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", TOP / "target")).absolute()
WORK = TARGET / "suites"
PAGE = TOP / "docs" / "compatibility.md"
PRODUCTS = ["mariadb", "porpoise"]
# A suite that takes longer hangs.
SUITE_SECONDS_MAX = 1800
USER, PASSWORD = "tester", "s3cret"
MYSQL_MODE = (
    "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,"
    "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server of its own for each run, in a temporary folder, with an account that may do all."""

    def __init__(self, product):
        self.product = product
        self.folder = Path(tempfile.mkdtemp(prefix="porpoise-suites-"))
        self.socket = self.folder / "sock"
        self.port = free_port()
        certificates = self.folder / "certificates"
        certificates.mkdir()
        subprocess.run([TOP / "tests/clients/tls/certificates", certificates], check=True)
        options = [
            "--no-defaults",
            f"--datadir={self.folder / 'data'}",
            f"--socket={self.socket}",
            f"--port={self.port}",
            "--local-infile=1",
            "--max-allowed-packet=64M",
            f"--ssl-ca={certificates / 'ca.pem'}",
            f"--ssl-cert={certificates / 'server-cert.pem'}",
            f"--ssl-key={certificates / 'server-key.pem'}",
        ]
        if product == "mariadb":
            command = self.mariadb(options)
        else:
            program = os.environ.get("PORPOISE_BIN", TARGET / "checks" / "porpoise")
            command = [program, "serve", *options]
        self.log = open(self.folder / "log", "w")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            self.prepare()
        except Exception:
            self.stop()
            raise

    def mariadb(self, options):
        subprocess.run(
            [
                "mariadb-install-db",
                "--no-defaults",
                f"--datadir={self.folder / 'data'}",
                "--user=root",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return [
            "mariadbd",
            *options,
            "--user=root",
            "--bind-address=127.0.0.1",
            "--skip-log-bin",
            "--skip-name-resolve",
            "--character-set-server=utf8mb4",
            f"--sql-mode={MYSQL_MODE}",
            "--innodb-flush-log-at-trx-commit=0",
        ]

    def sql(self, text, **options):
        command = ["mariadb", "--no-defaults", "-S", self.socket, "-u", "root", "-N", "-e", text]
        return subprocess.run(command, text=True, capture_output=True, **options)

    def prepare(self):
        until = time.monotonic() + 30
        while self.sql("SELECT 1").returncode != 0:
            if time.monotonic() > until or self.process.poll() is not None:
                sys.exit(f"{self.product} doesn't start:\n{(self.folder / 'log').read_text()}")
            time.sleep(0.1)
        self.version = self.sql("SELECT VERSION()", check=True).stdout.strip()
        self.sql(
            f"""CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}';
            GRANT ALL ON *.* TO {USER}@'%' WITH GRANT OPTION; CREATE DATABASE suite;""",
            check=True,
        )

    def environment(self):
        return {
            "DB_HOST": "127.0.0.1",
            "DB_PORT": str(self.port),
            "DB_SOCKET": str(self.socket),
            "DB_USER": USER,
            "DB_PASSWORD": PASSWORD,
            "DB_NAME": "suite",
            "DB_PRODUCT": self.product,
            "DB_LIBRARY": str(self.library()),
        }

    def library(self):
        """A folder with this build's C library under the name that programs load."""
        folder = self.folder / "library"
        if not folder.exists():
            folder.mkdir()
            built = os.environ.get("PORPOISE_CAPI", TARGET / "checks" / "libmariadb.so")
            (folder / "libmariadb.so.3").symlink_to(Path(built).absolute())
        return folder

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def run_script(command, environment, log):
    """Whether the script ends in time, by itself; its processes end with it."""
    process = subprocess.Popen(
        command,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return process.wait(timeout=SUITE_SECONDS_MAX) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def run_suite(name, product):
    """Runs a suite on a product; whether it ran to its end, however its tests ended."""
    results, log = WORK / f"{name}.{product}", WORK / f"{name}.{product}.log"
    partial = WORK / f"{name}.{product}.partial"
    partial.unlink(missing_ok=True)
    server = Server(product)
    began = time.monotonic()
    try:
        with open(log, "w") as out:
            environment = {**server.environment(), "RESULTS": str(partial)}
            ok = run_script([HERE / name / "run", WORK / name], environment, out)
        alive = server.process.poll() is None
    finally:
        server.stop()
    took = time.monotonic() - began
    if not partial.exists():
        print(f"{name} on {product}: no result; {log} tells why", flush=True)
        return False
    with open(partial, "a") as out:
        out.write(f"product {server.version}\nseconds {took:.0f}\n")
    partial.rename(results)
    ran = Results(name, product)
    print(f"{name} on {product}: {ran.count('ok')} of {ran.tried()} ok, {took:.0f} s", flush=True)
    if not alive:
        print(f"{name} on {product}: the server is gone", flush=True)
    if not ok:
        print(f"{name} on {product}: its script has failed; {log} tells why", flush=True)
    return ok and alive


class Results:
    """What a run wrote."""

    def __init__(self, name, product):
        self.tests, self.facts = {}, {}
        path = WORK / f"{name}.{product}"
        for line in path.read_text().splitlines() if path.exists() else []:
            word, _, rest = line.partition(" ")
            if word in ("ok", "FAILED", "skipped"):
                # A test with subtests has failed if one has.
                if self.tests.get(rest) != "FAILED":
                    self.tests[rest] = word
            else:
                self.facts[word] = rest

    def count(self, outcome):
        return sum(found == outcome for found in self.tests.values())

    def tried(self):
        return self.count("ok") + self.count("FAILED")


def reasons(name):
    """The patterns of `differences`, in their order, with the reasons."""
    path = HERE / name / "differences"
    lines = path.read_text().splitlines() if path.exists() else []
    found = {}
    for line in lines:
        if line.strip() and not line.startswith("#"):
            pattern, _, reason = line.partition(" | ")
            found[pattern.strip()] = reason.strip()
    return found


def matches(test, pattern):
    """Names have brackets of their own: only `*` and `?` are special."""
    return fnmatch.fnmatchcase(test, pattern.replace("[", "[[]"))


def compare(name):
    """What isn't the same on both, by reason, and complaints: differences that nothing explains,
    explanations that nothing needs."""
    ours, theirs = Results(name, "porpoise"), Results(name, "mariadb")
    explained, used, complaints = {}, set(), []
    patterns = reasons(name)
    if not ours.tests or not theirs.tests:
        return {}, []
    for test in sorted(set(ours.tests) | set(theirs.tests)):
        here, there = ours.tests.get(test, "absent"), theirs.tests.get(test, "absent")
        if here == there:
            continue
        pattern = next((found for found in patterns if matches(test, found)), None)
        if pattern is None:
            complaints.append(f"{name}: {test} is {here} on Porpoise, {there} on MariaDB")
            continue
        used.add(pattern)
        explained.setdefault(patterns[pattern], []).append((test, here, there))
    for pattern in patterns:
        if pattern not in used:
            complaints.append(f"{name}: no difference is called {pattern}")
    return explained, complaints


WORDS = {"ok": "passes", "FAILED": "fails", "skipped": "is skipped", "absent": "isn't there"}


def is_complete(name):
    """Whether there are results of a suite from both products."""
    return all(Results(name, product).tests for product in PRODUCTS)


class Page:
    """The page as it is: what it says of suites that have no results here, from both products, stays."""

    def __init__(self):
        text = PAGE.read_text() if PAGE.exists() else ""
        head, *sections = text.split("\n### ")
        self.rows = [line for line in head.splitlines() if line.startswith("| ")]
        self.sections = {title: rest for title, _, rest in (s.partition("\n") for s in sections)}

    def row(self, name):
        return [row for row in self.rows if f" (`{name}`) | " in row]

    def section(self, name):
        titles = [row[2 : row.index(f" (`{name}`) | ")] for row in self.row(name)]
        found = [(title, self.sections[title]) for title in titles if title in self.sections]
        return [line for title, rest in found for line in ["", f"### {title}", *rest.rstrip().splitlines()]]


def page(names):
    """The page: a table of all suites, and the differences by reason."""
    written = Page()
    complete = [name for name in names if is_complete(name)]
    versions = {p: next((Results(n, p).facts["product"] for n in complete), "?") for p in PRODUCTS}
    lines = [
        "# The suites of drivers and frameworks",
        "",
        "Drivers and frameworks test themselves. Here their own suites run on Porpoise and on MariaDB,",
        "as their registries ship them; `./test suites` runs them and writes this page.",
        "",
        f"Porpoise said `{versions['porpoise']}`, MariaDB `{versions['mariadb']}`.",
        "",
        "| suite | version | passed here | failed | on MariaDB | failed |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name in names:
        if name not in complete:
            lines += written.row(name)
            continue
        here, there = Results(name, "porpoise"), Results(name, "mariadb")
        title = here.facts.get("title", name)
        lines.append(
            f"| {title} (`{name}`) | {here.facts.get('version', '')} | {here.count('ok')} | {here.count('FAILED')} "
            f"| {there.count('ok')} | {there.count('FAILED')} |"
        )
    lines += [
        "",
        "A suite leaves tests out on a server that says it is MySQL, and others where it is MariaDB, so",
        "the numbers aren't of the same tests. Perl's and PHP's run over every way in: shm is shared memory,",
        "embedded the database in the program, on MariaDB both are its socket. Node's and Ruby's mysql2 have no",
        "suite here: their packages ship no tests. PHP's mysqli has none: it can't be built over the C library",
        "any more.",
        "",
        "## What differs, and why",
    ]
    for name in names:
        if name not in complete:
            lines += written.section(name)
            continue
        explained, _ = compare(name)
        if not explained:
            continue
        title = Results(name, "porpoise").facts.get("title", name)
        lines += ["", f"### {title}", "", "| tests | here | on MariaDB | reason |", "| --- | --- | --- | --- |"]
        for reason, tests in explained.items():
            by_outcome = {}
            for test, here, there in tests:
                by_outcome.setdefault((here, there), []).append(test)
            for (here, there), found in by_outcome.items():
                shown = f"`{found[0]}`".replace("|", "\\|")
                if len(found) > 1:
                    shown += f" and {len(found) - 1} more"
                lines.append(f"| {shown} | {WORDS[here]} | {WORDS[there]} | {reason} |")
    return "\n".join(lines) + "\n"


def all_names():
    return sorted(folder.name for folder in HERE.iterdir() if (folder / "run").exists())


def main(arguments):
    names = all_names()
    if "--list" in arguments:
        print("\n".join(names))
        return 0
    products = PRODUCTS
    if arguments[:1] == ["--only"] and len(arguments) > 1:
        products, arguments = [arguments[1]], arguments[2:]
    unknown = (set(arguments) - set(names)) | (set(products) - set(PRODUCTS))
    if unknown:
        print(__doc__)
        print(f"unknown: {', '.join(sorted(unknown))}")
        return 2
    WORK.mkdir(parents=True, exist_ok=True)
    ok, complaints = True, []
    for name in arguments or names:
        folder = WORK / name
        folder.mkdir(exist_ok=True)
        with open(WORK / f"{name}.install.log", "w") as log:
            if not run_script([HERE / name / "install", folder], {}, log):
                print(f"{name} can't be installed: {log.name}", flush=True)
                ok = False
                continue
        for product in products:
            ok &= run_suite(name, product)
        complaints += compare(name)[1]
    PAGE.write_text(page(names))
    for complaint in complaints:
        print(complaint)
    return 0 if ok and not complaints else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
