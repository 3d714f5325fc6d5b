"""Logs of random lines, and a naive recount of them by Python, with which all answers of a store are compared."""

import calendar
import collections
import sqlite3
import time

from harness import Case, dice

SPAN = ("2026-01-01", "2026-03-01")
CONFIG = b"""
query: {series_max: 100000}
reports:
  site: {measures: {hits: count, bytes: sum(bytes)}}
  pages: {by: [path, status], measures: {hits: count, size: mean(bytes)}}
  errors: {by: [path], where: [status>=400]}
"""
# Many small parts, so that a kill falls between two of them, and a report's series are forgotten and met again.
SMALL = CONFIG + b"aggregate: {cells_max: 1024, series_max: 1024}\n"

ALONE = b"query: {series_max: 100000}\nreports: {site: {measures: {hits: count, bytes: sum(bytes)}}}\n"  # the others come later
LATER = "pages", "errors"


def log_line(minute, path, status, size):
    stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(1767225600 + 60 * minute))
    return f'192.0.2.1 - - [{stamp}] "GET {path} HTTP/1.1" {status} {size}\n'


def log(random, lines, minutes=(0, 60 * 24 * 40), paths=3000):
    """Lines of any minute of some weeks; one of twenty is no line of a log."""
    out = []
    for _ in range(lines):
        if random.random() < 0.05:
            out.append(random.choice(["nonsense\n", "\n", log_line(10**10, "/future", 200, 1)]))
            continue
        out.append(log_line(random.randrange(*minutes), f"/{int(random.paretovariate(0.6)) % paths}",
                            random.choice([200, 200, 304, 404, 500]), random.choice(["-", random.randrange(10**6)])))
    return "".join(out).encode()


def recount(*logs):
    """The counts that the three reports must have, by hour: {(report, time, path and status): [hits, bytes]}."""
    counts = collections.defaultdict(lambda: [0, 0])
    for line in b"".join(logs).decode().splitlines():
        if "[" not in line or "/future" in line:
            continue
        stamp, (path, status, size) = line.split("[")[1].split("]")[0], (line.split()[i] for i in (6, 8, 9))
        at = time.strptime(stamp, "%d/%b/%Y:%H:%M:%S +0000")
        hour = time.strftime("%Y-%m-%dT%H:00:00Z", at)
        keys = [("site", hour, ()), ("pages", hour, (path, status))]
        for key in keys + ([("errors", hour, (path,))] if int(status) >= 400 else []):
            counts[key][0] += 1
            counts[key][1] += 0 if size == "-" else int(size)
    return dict(counts)


def stamp(minute):
    return time.strftime("%Y-%m-%dT%H:%M:00Z", time.gmtime(1767225600 + 60 * minute))


def within(lines, *ranges):
    """The lines whose own time is in one of these ranges of minutes."""
    def minute(line):
        at = time.strptime(line.split(b"[")[1].split(b"]")[0].decode(), "%d/%b/%Y:%H:%M:%S +0000")
        return (calendar.timegm(at) - 1767225600) // 60
    kept = [line for line in lines.splitlines(keepends=True)
            if b"[" in line and b"/future" not in line and any(begin <= minute(line) < end for begin, end in ranges)]
    return b"".join(kept)


class RecountCase(Case):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.write("tallyd.yaml", CONFIG)

    def tallied(self, command, *arguments, store="tallyd.db", config="tallyd.yaml", **options):
        return self.tallyd(command, "-c", config, "--store", f"sqlite:{store}", *arguments, **options)

    def rows(self, report, *arguments, store="tallyd.db", span=SPAN):
        return self.query(report, "-c", "tallyd.yaml", *arguments, store=store, span=span)

    def check(self, *logs, store="tallyd.db"):
        """Do all hours of all series say what is in these logs, and nothing else?"""
        expected, paths = recount(*logs), collections.defaultdict(lambda: [0, 0])
        hours = {key[1]: value for key, value in expected.items() if key[0] == "site"}
        found = {row["time"]: [int(row["hits"]), int(row["bytes"])]
                 for row in self.rows("site", "--step", "hour", "--measure", "all", store=store) if row["hits"] != "0"}
        self.assertEqual(hours, found)
        for (report, _, series), (hits, size) in expected.items():
            paths[(report, *series)][0] += hits
            paths[(report, *series)][1] += size
        top = {("pages", row["path"], row["status"]): int(row["value"])
               for row in self.rows("pages", "--top", "10000", store=store)}
        self.assertEqual({key: hits for key, (hits, _) in paths.items() if key[0] == "pages"}, top)
        top = {("errors", row["path"]): [int(row["hits"]), int(row["bytes"])]
               for row in self.rows("errors", "--top", "10000", "--measure", "all", store=store)}
        self.assertEqual({key: value for key, value in paths.items() if key[0] == "errors"}, top)
        self.tallied("verify", "--store-only", store=store)

    def dump(self, store="tallyd.db"):
        """All of a store that counts, but for the order of its series."""
        with sqlite3.connect(self.path(store)) as db:
            tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {table: sorted(map(repr, db.execute(f"SELECT * FROM {table}"))) for table in tables}


class BackfillCase(RecountCase):
    def setUp(self):
        super().setUp()
        self.write("alone.yaml", ALONE)
        self.write("small.yaml", SMALL)

    def count(self, name, lines, config):
        self.append(name, lines)
        self.tallied("import", "-q", name, config=config)

    def backfill(self, *arguments, **options):
        return [self.tallied("backfill", report, *arguments, **options) for report in LATER]
