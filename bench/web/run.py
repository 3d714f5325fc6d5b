"""make bench-web: what a browser feels while tallyd counts; writes the table, reached or not.

A year of 100,000 pages is imported into SQLite. Then `tallyd run` is fed in time, and asked over HTTP: charts of a year at a
steady rate of requests, each late from the moment at which it was due; the largest pages; streams, held open while it reads as
fast as it can, in turn with none; and the page, by chromium. On FerretDB charts of a year are asked in turn with a bare find
of the same documents. The exit status is 1 where an answer was not what was counted; a missed figure is no failure.
"""

import argparse
import contextlib
import datetime
import functools
import glob
import http.client
import json
import os
import random
import re
import statistics
import subprocess
import sys
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "bench"), os.path.join(ROOT, "tests", "servers"), os.path.join(ROOT, "tests", "system")]

import browser  # noqa: E402
import daemon  # noqa: E402
import measure  # noqa: E402
import mongo  # noqa: E402
from measure import percentile, verdict  # noqa: E402

try:
    import pymongo
except ImportError:
    pymongo = None  # main() begins again by a Python that has it

UTC = datetime.timezone.utc
MONTHS, LINES, MONGO_LINES = 11, 1_000_000, 20_000  # so many months back, each with a day of so many lines,
DAYS, DAY_LINES = 90, 500  # and the last days before this month
HOUR_LEFT_S = 600  # of the hour at hand, so that what is counted stays in it
EVENTS, REQUESTS, SECONDS, CONNECTIONS = 100_000, 200, 30, 4
WARM_S = 5  # of the feed, before the first question
PAGE, PAGES = "/index.html", 100  # the first of the site; the largest, of which charts are asked
TOPS, ROUNDS, STREAMS, LOADS, CHARTS = 50, 7, 50, 20, 300
STREAM_COPIES = 15  # of a month's lines, which a round of streams reads
BOUND_YEAR_MS, BOUND_TOP_MS, BOUND_FIND, BOUND_STREAMS, BOUND_BYTES, BOUND_PAINT_MS = 10, 10, 1.5, 0.95, 200_000, 300
# Charts of one page, by what, and how little is to be read for one.
CHARTS_READ = (("hour", "minute", 2), ("day", "hour", 2), ("year", "month", 2), ("90 days", "hour", 91))
NAME = "bench-web"
say = functools.partial(measure.say, NAME)


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measure what is asked of tallyd over HTTP; write bench/RESULTS.md.")
    measure.add_arguments(parser)
    return parser.parse_args()


def first_of_month(now, back):
    month = now.year * 12 + now.month - 1 - back
    return datetime.datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC)


class Asker:
    """A connection that stays."""

    def __init__(self, host):
        self.connection = http.client.HTTPConnection(host, timeout=30)

    def ask(self, path, **words):
        self.connection.request("GET", path + "?" + urllib.parse.urlencode(words))
        reply = self.connection.getresponse()
        body = reply.read()
        if reply.status != 200:
            raise measure.Failed(f"{path} {words}: {reply.status} {body[:200].decode(errors='replace')}")
        return json.loads(body)

    def time_ms(self, path, **words):
        begun = time.perf_counter()
        answer = self.ask(path, **words)
        return 1000 * (time.perf_counter() - begun), answer


def ask_steadily(host, questions):
    """The lateness in ms of each answer, sorted: from when it was due, over CONNECTIONS connections."""
    late_ms, failed = [], []
    begin = time.perf_counter() + 0.1

    def one(first):
        asker = Asker(host)
        try:
            for number in range(first, len(questions), CONNECTIONS):
                due = begin + number / REQUESTS
                time.sleep(max(0, due - time.perf_counter()))
                asker.ask("/api/v1/query", **questions[number])
                late_ms.append(1000 * (time.perf_counter() - due))
        except (OSError, measure.Failed) as error:
            failed.append(error)

    threads = [threading.Thread(target=one, args=(first,)) for first in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise measure.Failed(str(failed[0]))
    return sorted(late_ms)


def consumed(tallyd):
    return tallyd.metrics().get("tallyd_lines_consumed_total", 0)


@contextlib.contextmanager
def running(tallyd, argv):
    """The daemon, fed by what `argv` prints; its host."""
    feed = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        tallyd.start(feed.stdout)
        feed.stdout.close()  # it is the daemon's
        yield tallyd.host()
        tallyd.check()
    finally:
        feed.kill()
        feed.wait()
        tallyd.end()


class Bench:
    def __init__(self, arguments, work):
        self.arguments, self.work, self.wrong = arguments, work, []
        self.now = datetime.datetime.now(UTC)
        self.year = {"report": "pages", "measure": "hits", "step": "month", "from": f"{first_of_month(self.now, MONTHS):%Y-%m-%d}"}

    def program(self, name):
        return os.path.join(self.arguments.build, name)

    def logs(self, lines):
        """The first day of each month, and a little of each of the last days before this one, in order of time."""
        end = first_of_month(self.now, 0)
        days = [(first_of_month(self.now, back), lines) for back in range(MONTHS + 1)]
        days += [(end - datetime.timedelta(days=back), DAY_LINES) for back in range(1, DAYS + 1)]
        paths = []
        for seed, (day, count) in enumerate(sorted(days)):
            paths.append(os.path.join(self.work, f"{seed}.log"))
            with open(paths[-1], "wb") as log:
                subprocess.run([self.program("traffic"), "--lines", str(count), "--seed", str(seed), "--start",
                                f"{day:%Y-%m-%dT00:00:00Z}"], stdout=log, check=True)
        return paths

    def imported(self, url, lines, aggregate="flush: 1s"):
        tallyd = daemon.on_pipe(self.arguments.build, self.work, url, aggregate)
        paths = self.logs(lines)
        measure.run([tallyd.program, "import", "-q", "-c", os.path.join(tallyd.dir, "tallyd.yaml"), *paths])
        return tallyd, paths

    def read(self, tallyd):
        """How many rows or documents each chart of one page takes, of times that are over."""
        end, day = first_of_month(self.now, 0), first_of_month(self.now, 1)
        spans = {"hour": (day + datetime.timedelta(hours=12), day + datetime.timedelta(hours=13)),
                 "day": (day, day + datetime.timedelta(days=1)), "year": (first_of_month(self.now, MONTHS), end),
                 "90 days": (end - datetime.timedelta(days=DAYS), end)}
        counts = []
        for span, step, _ in CHARTS_READ:
            begin, end = (f"{at:%Y-%m-%dT%H:%M}" for at in spans[span])
            asked = subprocess.run([tallyd.program, "query", "pages", "-c", "tallyd.yaml", "--filter", f"path={PAGE}",
                                    "--from", begin, "--to", end, "--step", step, "--explain"], cwd=tallyd.dir,
                                   capture_output=True, text=True, check=True)
            counts.append(int(re.search(r"(?m)^read (\d+) rows", asked.stderr)[1]))
        return counts

    # ---- SQLite

    def measure_years(self, tallyd):
        left_s = 3600 - time.time() % 3600
        if left_s < HOUR_LEFT_S:
            say(f"waiting {left_s:.0f} s for the next hour")
            time.sleep(left_s)
        with running(tallyd, [self.program("mongo_feed"), str(EVENTS), str(WARM_S + SECONDS + 60)]) as host:
            top = Asker(host).ask("/api/v1/top", report="pages", measure="hits", limit=PAGES, **self.closed_day())["series"]
            self.pages, draw = [row["series"]["path"] for row in top], random.Random(1)
            time.sleep(WARM_S)
            before, begun = consumed(tallyd), time.perf_counter()
            self.year_ms = ask_steadily(host, [{**self.year, "filter": f"path={draw.choice(self.pages)}"}
                                                   for _ in range(REQUESTS * SECONDS)])
            self.fed = (consumed(tallyd) - before) / (time.perf_counter() - begun)
            say(f"years while {self.fed:,.0f} events/s come in: p50 {percentile(self.year_ms, 0.5):.2f} ms, "
                f"p99 {percentile(self.year_ms, 0.99):.2f} ms")
            self.top_live_ms = self.measure_top(host, "hour")

    def measure_still(self, tallyd):
        with running(tallyd, ["sleep", "600"]) as host:
            self.top_open_ms, self.top_day_ms = self.measure_top(host, "hour"), self.measure_top(host, "day")
            self.measure_page(host)
        self.rows = self.read(tallyd)

    def closed_day(self):
        day = first_of_month(self.now, 1)
        return {"from": f"{day:%Y-%m-%d}", "to": f"{day + datetime.timedelta(days=1):%Y-%m-%d}"}

    def measure_top(self, host, what):
        """A query of the present hour, or of a day long ago."""
        span = {"from": f"{datetime.datetime.now(UTC):%Y-%m-%dT%H:00:00Z}"} if what == "hour" else self.closed_day()
        asker = Asker(host)
        times = []
        for _ in range(TOPS):
            spent_ms, answer = asker.time_ms("/api/v1/top", report="pages", measure="hits", limit=20, **span)
            if len(answer["series"]) != 20:
                raise measure.Failed(f"top of the {what}: {len(answer['series'])} series, expected 20")
            times.append(spent_ms)
        times.sort()
        say(f"top 20 of the {what}: {percentile(times, 0.5):.2f} ms")
        return times

    def measure_page(self, host):
        chrome = browser.Browser(os.path.join(self.work, "chromium"))
        try:
            page = chrome.open("about:blank")
            page.send("Network.setCacheDisabled", cacheDisabled=True)
            self.painted_ms = []
            for _ in range(LOADS):
                page.wire_bytes = 0
                page.go(f"http://{host}/")
                self.painted_ms.append(page.wait_for("performance.getEntriesByName('chart-painted')[0].startTime"))
                page.wait_for("!document.getElementById('top-section').hidden")
                self.page_bytes = page.wire_bytes
        finally:
            chrome.close()
        self.painted_ms.sort()
        say(f"first load: {self.page_bytes:,} bytes, painted after {percentile(self.painted_ms, 0.5):.0f} ms")

    def measure_streams(self, log):
        """Rounds in turn: without streams, with them."""
        self.rates = {0: [], STREAMS: []}
        for _ in range(ROUNDS):
            for streams, rates in self.rates.items():
                rates.append(self.rate_with(streams, log))
        self.streams_ratio = statistics.median(b / a for a, b in zip(*self.rates.values()))
        say(f"ingest with {STREAMS} streams against none: {self.streams_ratio:.3f}")

    def rate_with(self, streams, log):
        store = os.path.join(self.work, "streams.db")
        for path in glob.glob(glob.escape(store) + "*"):
            os.remove(path)
        measure.settle()
        tallyd = daemon.on_pipe(self.arguments.build, self.work, f"sqlite:{store}", "flush: 1s")
        gate = os.path.join(self.work, "gate")
        with contextlib.suppress(FileNotFoundError):
            os.remove(gate)
        script = f'while [ ! -e "$0" ]; do sleep 0.01; done; cat {" ".join(["$1"] * STREAM_COPIES)}; exec sleep 600'
        with running(tallyd, ["sh", "-c", script, gate, log]) as host:
            readers = [open_stream(host, page) for page in self.pages[:streams]]
            ended, failed = threading.Event(), []
            thread = threading.Thread(target=drain, args=(readers, ended, failed))
            thread.start()
            begun = time.perf_counter()
            open(gate, "wb").close()
            while consumed(tallyd) < STREAM_COPIES * LINES:
                tallyd.check()
                time.sleep(0.02)
            seconds = time.perf_counter() - begun
            ended.set()
            thread.join()
            if failed:
                raise measure.Failed(failed[0])
        return STREAM_COPIES * LINES / seconds

    # ---- FerretDB

    def measure_mongo(self):
        server = mongo.Server(os.path.join(self.work, "ferretdb"), "ferretdb")
        server.start()
        try:
            tallyd, _ = self.imported(f"{server.url}/tallyd", MONGO_LINES)
            for job in ("rollup", "top"):
                subprocess.run([tallyd.program, "job", "run", job, "-c", "tallyd.yaml"], cwd=tallyd.dir, check=True,
                               stdout=subprocess.DEVNULL)
            with running(tallyd, ["sleep", "600"]) as host:
                self.compare_finds(Asker(host), pymongo.MongoClient(server.url)["tallyd"])
                self.top_mongo_ms = self.measure_top(host, "day")
            self.documents = self.read(tallyd)
        finally:
            server.kill()

    def compare_finds(self, asker, database):
        """The documents are those of two years, and of the month that is not over."""
        ids = {name: [found["_id"] for found in database[name].find({"metadata.path": PAGE}, {"_id": 1})]
               for name in ("pages.year", "pages.month")}
        ids["pages.month"] = [max(ids["pages.month"])]
        fields = {"pages.year": "total", "pages.month": "daily"}
        chart_ms, find_ms = [], []
        for _ in range(CHARTS):
            spent_ms, answer = asker.time_ms("/api/v1/query", filter=f"path={PAGE}", **self.year)
            chart_ms.append(spent_ms)
            begun = time.perf_counter()
            found = {name: list(database[name].find({"_id": {"$in": ids[name]}}, {fields[name]: 1})) for name in ids}
            find_ms.append(1000 * (time.perf_counter() - begun))
        told, stored = sum(value or 0 for _, value in answer["values"]), sum(
            sum(document[fields[name]].values()) for name, documents in found.items() for document in documents)
        if told != stored or not stored:
            self.wrong.append(f"a year on FerretDB: told {told:,}, stored {stored:,}")
        self.chart_ms, self.find_ms = statistics.median(chart_ms), statistics.median(find_ms)
        say(f"a year on FerretDB {self.chart_ms:.2f} ms, find {self.find_ms:.2f} ms")

    def run(self):
        tallyd, logs = self.imported(f"sqlite:{os.path.join(self.work, 'site.db')}", LINES)
        self.measure_years(tallyd)
        self.measure_still(tallyd)
        self.measure_streams(max(logs, key=os.path.getsize))
        self.measure_mongo()


def open_stream(host, page):
    """Each of another page, so that no two are one question; by year, so that the lines are in its range."""
    connection = http.client.HTTPConnection(host, timeout=30)
    words = {"report": "pages", "step": "year", "filter": f"path={page}"}
    connection.request("GET", "/api/v1/stream?" + urllib.parse.urlencode(words))
    reply = connection.getresponse()
    if reply.status != 200:
        raise measure.Failed(f"a stream: {reply.status} {reply.read(200).decode(errors='replace')}")
    return reply


def drain(readers, ended, failed):
    """Take what the streams send, as browsers do."""
    try:
        while not ended.is_set():
            for reader in readers:
                if not reader.read1(1 << 16):
                    failed.append("a stream ended")
                    return
    except OSError as error:
        failed.append(f"a stream: {error}")


# ---- the tables


def figures(bench):
    rows = [["figure", "at least", "measured"]]
    for (span, step, most), counts in zip(CHARTS_READ, zip(bench.rows, bench.documents)):
        rows.append([f"rows of SQLite; documents of MongoDB: a page's {span} by {step}", f"≤ {most}",
                     "; ".join(verdict(str(count), count <= most) for count in counts)])
    year, ratio = percentile(bench.year_ms, 0.99), bench.chart_ms / bench.find_ms
    tops = bench.top_open_ms, bench.top_live_ms, bench.top_day_ms
    rows += [
        [f"a page's year, p99 at {REQUESTS} requests/s while {EVENTS:,} events/s come in", f"≤ {BOUND_YEAR_MS} ms",
         verdict(f"{year:.2f} ms", year <= BOUND_YEAR_MS and bench.fed > 0.99 * EVENTS)],
        ["a page's year on FerretDB over HTTP, against bare finds, medians", f"≤ {BOUND_FIND} ×",
         verdict(f"{ratio:.2f} × ({bench.chart_ms:.2f} and {bench.find_ms:.2f} ms)", ratio <= BOUND_FIND)],
        ["top 20 of 100,000 pages: the open hour; the same under those events; a closed day; medians", f"≤ {BOUND_TOP_MS} ms",
         "; ".join(verdict(f"{percentile(times, 0.5):.2f} ms", percentile(times, 0.5) <= BOUND_TOP_MS) for times in tops)],
        ["top 20 of a closed day on FerretDB, from its document, median", f"≤ {BOUND_TOP_MS} ms",
         verdict(f"{percentile(bench.top_mongo_ms, 0.5):.2f} ms", percentile(bench.top_mongo_ms, 0.5) <= BOUND_TOP_MS)],
        [f"events/s with {STREAMS} streams, against none", f"≥ {BOUND_STREAMS} ×",
         verdict(f"{bench.streams_ratio:.3f} ×", bench.streams_ratio >= BOUND_STREAMS)],
        ["first load of the page over the wire", f"≤ {BOUND_BYTES // 1000} kB",
         verdict(f"{bench.page_bytes / 1000:.1f} kB", bench.page_bytes <= BOUND_BYTES)],
        ["until its first chart is painted, median", f"≤ {BOUND_PAINT_MS} ms",
         verdict(f"{percentile(bench.painted_ms, 0.5):.0f} ms", percentile(bench.painted_ms, 0.5) <= BOUND_PAINT_MS)],
    ]
    return rows


def beside(bench):
    def shares(times):
        return ", ".join(f"p{100 * share:g} {percentile(times, share):.2f} ms" for share in (0.5, 0.9, 0.99, 1))

    return [
        ["what", "measured"],
        [f"a page's year, {len(bench.year_ms):,} answers", shares(bench.year_ms)],
        ["events that came in meanwhile", f"{bench.fed:,.0f}/s"],
        ["top 20 of the open hour", shares(bench.top_open_ms)],
        ["top 20 of the open hour under those events", shares(bench.top_live_ms)],
        ["top 20 of a closed day", shares(bench.top_day_ms)],
        ["top 20 of a closed day on FerretDB", shares(bench.top_mongo_ms)],
        ["events/s without streams, with them", "; ".join(measure.spread(rates, "", 0) for rates in bench.rates.values())],
        [f"until its first chart is painted, {LOADS} loads", shares(bench.painted_ms)],
    ]


def report(bench):
    about = ("SQLite", measure.library("sqlite3")), ("chromium", measure.first_line("chromium", "--version"))
    return f"""
{measure.table(figures(bench))}

SQLite has {LINES:,} lines on the first day of this month and of {MONTHS} before it, by Zipf's law (1.0) over 100,000 paths, {DAY_LINES} on each
of the last {DAYS} days before this month, and what comes in; FerretDB the same with {MONGO_LINES:,} on those days. The years are those of
pages drawn from the {PAGES} largest, by {CONNECTIONS} connections; each answer is timed from when it was due, by Python on the same
machine, as are the largest pages. Ingest: {ROUNDS} rounds in turn, in which `tallyd run` reads {STREAM_COPIES * LINES / 1e6:.0f} million lines from a pipe;
each stream asks for another page. The bare finds, by pymongo, are of the same documents by `_id`, those of
years and the one of this month, projected on what the chart shows, {CHARTS} times in turn. The page is loaded by chromium without its cache, {LOADS} times.

{measure.equality(bench.wrong, "What FerretDB's documents say is what the chart said.")}

{measure.table(beside(bench))}

{measure.about(bench.work, *about)}
"""


def run_all(arguments, work):
    mongo.begin("ferretdb")
    bench = Bench(arguments, work)
    bench.run()
    return bench.wrong, report(bench)


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all, (*mongo.ERRORS, ValueError, AssertionError)))
