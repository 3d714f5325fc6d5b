"""tallyd under measurement: import, the cells it counted, how fast it answers, and its instructions per line."""

import csv
import glob
import itertools
import os
import random
import re

import measure

DAY = ("2026-01-05T00:00:00Z", "2026-01-06T00:00:00Z")
LAST_HOUR = ("2026-01-05T23:00:00Z", "2026-01-06T00:00:00Z")
QUERIES = 21
DIFFERENCES_SHOWN = 5


class Tallyd:
    name = "tallyd import"

    def __init__(self, build, work):
        self.program = os.path.join(build, "tallyd")
        self.hot_program = os.path.join(build, "bench_hot")
        self.json_program = os.path.join(build, "bench_json")
        self.schemas_program = os.path.join(build, "bench_schemas")
        self.store = os.path.join(work, "store.db")
        self.why_not = None if os.access(self.program, os.X_OK) else "tallyd is not built"
        self.runs = []

    def remove_store(self):
        for path in glob.glob(glob.escape(self.store) + "*"):
            os.remove(path)

    def store_bytes(self):
        """The bytes of all files of the store, but the shared memory, which is never on the disk."""
        paths = glob.glob(glob.escape(self.store) + "*")
        return sum(os.path.getsize(path) for path in paths if not path.endswith("-shm"))

    def count(self, log):
        """Imports into a fresh store. The store of the last round stays, to be asked afterwards."""
        self.remove_store()
        measure.settle()
        argv = [self.program, "import", "--store", f"sqlite:{self.store}", log]
        self.runs.append(measure.run(argv, watch_memory=True))
        return self.runs[-1].wall_s, None

    def _query(self, report, measure_name, span, step, path=None):
        argv = [self.program, "query", report, "--store", f"sqlite:{self.store}", "--measure", measure_name]
        argv += ["--from", span[0], "--to", span[1], "--step", step, "--format", "csv"]
        if path is not None:
            argv += ["--filter", f"path={path}"]
        return measure.run(argv)

    def series(self, report, measure_name, span, step, path=None):
        """{time: value} without the zeros; the time as in the peers' rows, YYYY-MM-DDTHH:MM."""
        rows = csv.DictReader(self._query(report, measure_name, span, step, path).out.splitlines())
        if rows.fieldnames != ["time", "value"]:
            raise measure.Failed(f"tallyd query: the header is {rows.fieldnames}, not time,value")
        return {row["time"][:16]: int(row["value"]) for row in rows if int(row["value"] or 0)}

    def latency_ms(self, path):
        """The times of whole processes that print one page's last hour by minute."""
        return [1000 * self._query("pages", "hits", LAST_HOUR, "minute", path).wall_s for _ in range(QUERIES)]

    def instructions_per_line(self, log, work, lines, apache=None):
        """The instructions of parse and coalesce, by the built-in format or by this of Apache, compiled."""
        return self._instructions_each([self.hot_program, *([apache] if apache else []), log], lines, work)

    def instructions_with(self, log, work, lines, *measures):
        """The same, with these measures added to the report of pages: latency=histogram(bytes)."""
        return self._instructions_each([self.hot_program, log], lines, work, after=measures)

    def instructions_per_json_event(self, work, events, function=None):
        """The instructions of the chain, or only of a function and its callees."""
        options = [f"--toggle-collect={function}"] if function else []
        return self._instructions_each([self.json_program, "json"], events, work, options)

    def instructions_per_message(self, argv, events, work):
        """The instructions of the chain; `argv`: a file with the message, and the steps."""
        return self._instructions_each([self.schemas_program, *argv], events, work)

    def instructions_per_message_event(self, work, events, steps, path):
        """The instructions of the chain for an event of the message in a file."""
        return self._instructions_each([self.json_program, steps], events, work, after=[path])

    def _instructions_each(self, argv, count, work, options=(), after=()):
        """The instructions of a harness for 2N less those for N: its start does not count."""
        if not os.access(argv[0], os.X_OK):
            raise measure.Failed(f"{os.path.basename(argv[0])} is not built")
        totals = [self._instructions(argv, n, work, options, after) for n in (count, 2 * count)]
        return (totals[1] - totals[0]) / count

    def _instructions(self, argv, count, work, options, after):
        out = os.path.join(work, "callgrind.out")
        done = measure.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *options, *argv, str(count), *after])
        counted = re.search(r"\d+", done.out)
        if not counted or int(counted.group()) != count:
            raise measure.Failed(f"{os.path.basename(argv[0])} was asked for {count} and printed {done.out.strip()!r}")
        with open(out, encoding="utf-8") as file:
            total = re.search(r"^(?:summary|totals): (\d+)", file.read(), re.MULTILINE)
        os.remove(out)
        if not total:
            raise measure.Failed("callgrind wrote no total")
        return int(total.group(1))


def read_cells(rows_path):
    """{path: {minute: (hits, bytes)}} of a peer's sorted rows."""
    cells = {}
    with open(rows_path, encoding="utf-8", newline="\n") as file:
        rows = (line.rstrip("\n").split("\t") for line in file)
        for path, group in itertools.groupby(rows, key=lambda row: row[0]):
            cells[path] = {minute: (int(hits), int(size)) for _, minute, hits, size in group}
    return cells


def by_minute(cells):
    """{minute: (hits, bytes)} over all paths."""
    totals = {}
    for minutes in cells.values():
        for minute, (hits, size) in minutes.items():
            before = totals.get(minute, (0, 0))
            totals[minute] = (before[0] + hits, before[1] + size)
    return totals


def paths_to_compare(cells, count):
    """The five busiest, and others by chance: always the same ones. All, where `count` is 0."""
    if count == 0 or count >= len(cells):
        return sorted(cells)
    busiest = sorted(cells, key=lambda path: -sum(hits for hits, _ in cells[path].values()))[:5]
    others = sorted(set(cells) - set(busiest))
    return busiest + random.Random(1).sample(others, count - len(busiest))


def differences(tallyd, cells, sample):
    """Compares what tallyd counted with a peer's cells; a list of what differs, and how many cells were compared.

    This is the one place that knows how cells are got out of a store: by one query for each path, until there is a
    way to print all of them."""
    found, compared = [], 0
    asked = [("site", None, by_minute(cells))]
    asked += [("pages", path, cells[path]) for path in paths_to_compare(cells, sample)]
    for report, path, expected in asked:
        for index, name in enumerate(("hits", "bytes")):
            got = tallyd.series(report, name, DAY, "minute", path)
            want = {minute: cell[index] for minute, cell in expected.items() if cell[index]}
            compared += len(want)
            for minute in sorted(want.keys() | got.keys()):
                if want.get(minute, 0) != got.get(minute, 0):
                    what = f"{report} {path or ''} {minute} {name}"
                    found.append(f"{what}: {got.get(minute, 0)} instead of {want.get(minute, 0)}")
    return found, compared
