"""The programs tallyd is measured against. Each has a name, a reason why it cannot be measured here (or none), a way to
count the log by path and minute that returns (seconds, totals), and a way to write all its cells to a file."""

import json
import os
import shutil
import subprocess
import sys

import measure

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.path.join(HERE, "peers")
CHDB = "chdb==4.4.0"
C_LOCALE = {**os.environ, "LC_ALL": "C"}
GOACCESS_LINES = 500_000


def sort_rows(path):
    """One order for the rows of all, so that equal results are equal files."""
    subprocess.run(["sort", "-o", path, path], env=C_LOCALE, check=True)


class Wc:
    name = "wc -l"
    why_not = None
    whole_s = None

    def count(self, log):
        return measure.run(["wc", "-l", log]).wall_s, None


class Mawk:
    name = "mawk"

    def __init__(self):
        self.why_not = None if shutil.which("mawk") else "mawk is not installed"
        self.argv = ["mawk", "-f", os.path.join(PEERS, "path_minute.awk")]

    def count(self, log):
        done = measure.run(self.argv + [log], env=C_LOCALE)
        return done.wall_s, [int(field) for field in done.out.split()]

    def write_rows(self, log, path):
        with open(path, "wb") as out:
            argv = self.argv[:1] + ["-v", "rows=1"] + self.argv[1:] + [log]
            subprocess.run(argv, stdout=out, env=C_LOCALE, check=True)
        sort_rows(path)


class ClickHouse:
    """ClickHouse local, by the Python package chdb in an environment of its own. The time that counts is that of the
    query alone, without the start of Python and the library: what is best for the peer."""

    def __init__(self, form, cache, more=()):
        """`more`: further columns of its query, which are calculated, too."""
        self.name, self.more = f"ClickHouse, {form}", more
        self.python = os.path.join(cache, "chdb-venv", "bin", "python")
        self.sql = os.path.join(PEERS, f"clickhouse_{form}.sql")
        self.why_not = self._install(cache)
        self.version = None
        self.whole_s = []

    def _install(self, cache):
        venv = os.path.join(cache, "chdb-venv")
        installed = [self.python, "-c", "import chdb"]
        if os.path.exists(self.python) and subprocess.run(installed, capture_output=True).returncode == 0:
            return None
        print(f"bench: installing {CHDB} into an environment of its own", file=sys.stderr)
        pip = [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", CHDB]
        for argv in ([sys.executable, "-m", "venv", venv], pip, installed):
            done = subprocess.run(argv, capture_output=True, text=True)
            if done.returncode != 0:
                tail = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no message"]
                return f"{CHDB} could not be installed: {tail[0]}"
        return None

    def _argv(self, log):
        return [self.python, os.path.join(PEERS, "clickhouse.py"), self.sql, log]

    def count(self, log):
        done = measure.run(self._argv(log) + (["--with", ",".join(self.more)] if self.more else []))
        answer = json.loads(done.out)
        self.version = answer["version"]
        self.whole_s.append(done.wall_s)
        return answer["query_s"], answer["totals"]

    def write_rows(self, log, path):
        subprocess.run(self._argv(log) + ["--rows", path], check=True)
        sort_rows(path)


def goaccess(log, work):
    """Seconds GoAccess takes for the first lines of the log; it keeps all in memory, hence not the whole file."""
    if not shutil.which("goaccess"):
        raise measure.Failed("goaccess is not installed")
    head, report = os.path.join(work, "goaccess.log"), os.path.join(work, "goaccess.json")
    try:
        with open(head, "wb") as out:
            subprocess.run(["head", "-n", str(GOACCESS_LINES), log], stdout=out, check=True)
        measure.settle()
        argv = ["goaccess", head, "--log-format=COMBINED", "--no-global-config", "--no-progress", "-o", report]
        seconds = measure.run(argv).wall_s
        with open(report, encoding="utf-8") as file:
            general = json.load(file)["general"]
        if general["valid_requests"] != GOACCESS_LINES:
            raise measure.Failed(f"goaccess accepted {general['valid_requests']} of {GOACCESS_LINES} lines")
        return seconds
    finally:
        for path in (head, report):
            if os.path.exists(path):
                os.remove(path)
