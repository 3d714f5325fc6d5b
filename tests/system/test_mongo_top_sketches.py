#!/usr/bin/env python3
"""Rankings by quantiles, means and numbers of different texts, each in the document of its hour, day or month: whatever is
killed or comes late, one that is taken for valid is what a naive recount of the log says, and answers from it are those of a
scan, byte for byte.

The judge sorts numbers, and finds their buckets by integers. TALLYD_MONGO names the server (tests/servers/mongo.py). The seed
is printed; TALLYD_SEED repeats a run.
"""

import calendar
import collections
import fractions
import os
import time
import urllib.parse

from buckets import index_of
from harness import EX_DATAERR, EX_OK, EX_TEMPFAIL, TIMEOUT_S, dice, draw_death, dying_at, failpoints
from mongocase import Decimal128, main
from test_mongo_sketches import KILLED, SketchCase, events_of, lines_of
from test_sketches import DAY, HOUR, MILLION, iso

ROUNDS = int(os.environ.get("TALLYD_ROUNDS", "2"))
REPORTS = """\
sources: {a: {path: a.log, decode: [logfmt]}}
reports:
  pages: {by: [path], measures: {hits: count, latency: histogram(duration), visitors: distinct(host)}}
  hours: {by: [path], layout: hour, measures: {latency: "histogram(duration, schema=2, zero=0.001)"}}
  few: {by: [path], series_max: 3, measures: {visitors: distinct(host), latency: histogram(duration)}}
"""
CONFIG = REPORTS + 'aggregate: {batch_size: 64KiB}\nstore: {validation: error}\nhttp: {listen: "127.0.0.1:0"}\n'
RANKED = {"pages": ("latency", "visitors"), "hours": ("latency",), "few": ("visitors", "latency")}
SCHEMAS = {"hours": (4, 1000)}  # slots of a bucket, and millionths that count as zero
QUANTILES = {"p50": 500000, "p90": 900000, "p95": 950000, "p99": 990000, "p99_9": 999000, "max": MILLION}
FIGURES = {"latency": (*QUANTILES, "mean", "count"), "visitors": ("value", "count")}
LENGTHS = {"hour": 13, "day": 10, "month": 7}  # of a time in ISO 8601
SURE = 50  # so few texts are counted exactly


def key_of(report, number):
    """The place of a number's bucket in the order of all buckets."""
    width, zero = SCHEMAS.get(report, (1, 0))
    if abs(number) <= zero:
        return (0, 0)
    index = -(-index_of(abs(number), 4) // width) * width
    return (1, index) if number > 0 else (-1, -index)


def mean_of(numbers):
    """In millionths, rounded half away from 0."""
    mean = fractions.Fraction(sum(numbers), len(numbers))
    return int(abs(mean) + fractions.Fraction(1, 2)) * (1 if mean >= 0 else -1)


class Period:
    """A series in a period, or all of them."""

    def __init__(self):
        self.numbers, self.hosts = [], []

    def add(self, event):
        self.numbers += [] if event[2] is None else [event[2]]
        self.hosts += [] if event[3] is None else [event[3]]

    def rank(self, report, measure, figure):
        """What decides its place, the greatest first; None: there is no value."""
        if measure == "visitors":
            return (len(set(self.hosts)) if figure == "value" else len(self.hosts)) or None
        if figure == "count" or not self.numbers:
            return len(self.numbers) or None
        if figure == "mean":
            return mean_of(self.numbers)
        return key_of(report, sorted(self.numbers)[max(1, -(-QUANTILES[figure] * len(self.numbers) // MILLION)) - 1])


class TopCase(SketchCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.write("tallyd.yaml", CONFIG.encode())
        self.events = []

    def count_events(self, count):
        self.events += events_of(self.dice, count, *self.span)
        self.write("a.log", lines_of(self.events))
        self.count_into(self.store, "a.log")

    def valid(self, report):
        return {one["_id"]: one for one in self.base[f"{report}.top"].find() if one.get("ranked") == one["written"]}

    # ---- the judge

    def known(self):
        return {one["metadata"]["path"] for one in self.base["few.series"].find()}

    def recount(self, report, known):
        """{_id: {path, None for `other`: Period}} and {_id: Period of all}"""
        found, totals = collections.defaultdict(lambda: collections.defaultdict(Period)), collections.defaultdict(Period)
        for event in self.events:
            path = event[1] if report != "few" or event[1] in known else None
            for span, length in LENGTHS.items():
                name = f"{span}/" + iso(event[0])[:length].replace("-", "").replace("T", "")
                found[name][path].add(event)
                totals[name].add(event)
        return found, totals

    def check_valid(self, every=True):
        """Each that is valid is right; `every`: and all are."""
        for report, measures in RANKED.items():
            found, (expected, totals) = self.valid(report), self.recount(report, self.known())
            if every:
                self.assertEqual(set(expected), set(found), report)
            for name, document in found.items():
                self.assertEqual({*measures, *(["hits"] if report == "pages" else [])}, {*document["measures"]})
                for measure in measures:
                    stored = document["measures"][measure]
                    self.assertEqual({"total", *FIGURES[measure]}, {*stored})
                    self.check_total(report, measure, totals[name], stored["total"])
                    for figure in FIGURES[measure]:
                        with self.subTest(report=report, period=name, measure=measure, figure=figure):
                            self.check_list(report, measure, figure, expected[name], stored[figure])

    def check_total(self, report, measure, expected, total):
        if measure == "visitors":
            self.assertEqual(len(expected.hosts), total["count"])
            return
        cells = collections.Counter(key_of(report, number) for number in expected.numbers)
        stored = {(1, int(index)): count for index, count in total.get("buckets", {}).items()}
        stored.update({(-1, -int(index)): count for index, count in total.get("negative", {}).items()})
        stored.update({(0, 0): total["zero"]} if "zero" in total else {})
        self.assertEqual(dict(cells), stored)
        self.assertEqual((len(expected.numbers), sum(expected.numbers)),
                         (total["count"], int(total["units"].to_decimal() * MILLION)))

    def check_list(self, report, measure, figure, expected, found):
        ranks = {path: one.rank(report, measure, figure) for path, one in expected.items()}
        there = [path for path, rank in ranks.items() if rank is not None]
        there.sort(key=lambda path: (path or "(other)").encode())
        there.sort(key=lambda path: ranks[path], reverse=True)
        listed = [None if "other" in one["metadata"] else one["metadata"]["path"] for one in found["top"]]
        is_amount = figure in ("value", "count")
        self.assertEqual(len(there) if is_amount else len(expected), found["series"])
        self.check_order(measure, figure, {path: expected[path] for path in there}, there, listed)
        for path, one in zip(listed, found["top"]):
            period, value = expected[path], one["value"]
            self.assertEqual(len(period.hosts if measure == "visitors" else period.numbers), one["count"])
            if figure == "mean":
                self.assertEqual(ranks[path], value.to_decimal() * MILLION)
            elif is_amount and not (figure == "value" and ranks[path] >= SURE):
                self.assertEqual(ranks[path], value)
            elif not is_amount:
                numbers = sorted(period.numbers)
                number = numbers[max(1, -(-QUANTILES[figure] * len(numbers) // MILLION)) - 1]
                width, zero = SCHEMAS.get(report, (1, 0))
                error = 0.022 if width == 1 else 0.09
                self.assertLessEqual(abs(int(value.to_decimal() * MILLION) - number), error * abs(number) + 1 + zero)

    def check_order(self, measure, figure, expected, there, listed):
        """Of more than some texts, a count may be 1 too small, so that the next one is before it."""
        if (measure, figure) == ("visitors", "value") and max((len(one.hosts) for one in expected.values()), default=0) >= SURE:
            self.assertEqual({*there}, {*listed})
        else:
            self.assertEqual(there, listed)

    # ---- answers

    def questions(self):
        names = {"p99_9": "p99.9", "value": None}
        for report, measures in RANKED.items():
            for measure in measures:
                for figure in (*FIGURES[measure], *(["min", "p75"] if measure == "latency" else [])):
                    span = self.dice.choice((HOUR, DAY))
                    start = self.dice.choice(self.events)[0] // span * span + self.dice.choice([0, 0, 0, span])
                    name = names.get(figure, figure)
                    words = {"report": report, "measure": measure if name is None else f"{name}({measure})", "from": iso(start),
                             "to": iso(start + span), "limit": self.dice.choice([1, 2, 3, 20]),
                             "format": self.dice.choice(["json", "csv"])}
                    yield "/api/v1/top?" + urllib.parse.urlencode(words)
                    words["top"] = words.pop("limit")
                    yield "/api/v1/query?" + urllib.parse.urlencode(words)

    def serve(self, config=CONFIG, rollup_after="1h"):
        self.write("empty.log", b"")
        self.write("run.yaml", (config.replace("a.log", "empty.log").replace("error}", f'error, url: "{self.store}"}}') +
                                f"jobs: {{rollup_after: {rollup_after}}}\n").encode())
        self.launch("-c", "run.yaml")

    def rows_read(self, figure, top):
        self.tallyd("query", "pages", "--explain", "--store", self.store, "--measure", figure, "--top", str(top), "--from",
                    iso(self.span[0]), "--to", iso(self.span[0] + DAY))
        return int(self.err.split("read ")[-1].split()[0])


class Rankings(TopCase):
    def test_answers_are_those_of_a_scan(self):
        self.count_events(300)
        self.assertEqual({}, self.valid("pages"))
        self.rank()
        self.check_valid()
        self.serve()
        self.check_scans(list(self.questions()), RANKED)
        self.count_events(5)  # late ones
        self.check_valid(every=False)
        self.check_scans(list(self.questions()), RANKED)
        self.rank()
        self.check_valid()
        self.check_scans(list(self.questions()), RANKED)
        self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, "--store-only")

    def test_copied_store(self):
        self.events = events_of(self.dice, 150, *self.span)
        self.write("a.log", lines_of(self.events))
        self.count_into("sqlite:judge.db", "a.log")
        self.tallyd("admin", "copy", "sqlite:judge.db", self.store)
        self.rank()
        self.check_valid()

    def test_what_is_read(self):
        """A day needs one document; other figures, and more series than have values, need every series."""
        self.count_events(200)
        self.rank()
        for figure in "p50(latency)", "p99.9(latency)", "max(latency)", "quantile(0.95, latency)", "visitors", "mean(latency)":
            self.assertEqual(1, self.rows_read(figure, 2), figure)
        for figure in "p75(latency)", "share(latency <= 0.3)", "all":
            self.assertLess(1, self.rows_read(figure, 2), figure)

    def test_what_is_told(self):
        """The value that the document has is the one that is shown."""
        self.count_events(100)
        self.rank()
        name = "day/" + iso(self.span[0])[:10].replace("-", "")
        document = self.valid("pages")[name]
        path = document["measures"]["visitors"]["value"]["top"][0]["metadata"]["path"]
        self.base["pages.top"].update_one({"_id": name}, {"$set": {"measures.visitors.value.top.0.value": 4711}},
                                          bypass_document_validation=True)
        said = self.tallyd("query", "pages", "--store", self.store, "--measure", "visitors", "--top", "1", "--format", "csv-raw",
                           "--from", iso(self.span[0]), "--to", iso(self.span[0] + DAY))
        self.assertEqual(f"path,value\n{path},4711\n", said)

    def test_more_series_than_there_is_room_for(self):
        begin = self.span[0]
        self.events = [(begin + number, f"/{number:04}" + "x" * 200, 1000 * (number * 7919 % 1009), f"h{number}")
                       for number in range(600)]
        self.write("a.log", lines_of(self.events))
        self.count_into(self.store, "a.log")
        self.rank()
        document = self.valid("pages")["day/" + iso(begin)[:10].replace("-", "")]
        listed = document["measures"]["latency"]["p99"]
        self.assertEqual(600, listed["series"])
        self.assertLess(150, len(listed["top"]))
        self.assertGreater(300, len(listed["top"]))
        self.assertEqual(1, self.rows_read("p99(latency)", len(listed["top"])))
        self.assertLess(1, self.rows_read("p99(latency)", len(listed["top"]) + 1))

    def test_damage_is_not_ranked(self):
        self.count_events(100)
        document = self.base["pages.latency.month"].find_one()
        day = next(iter(document["daily"]))
        self.base["pages.latency.month"].update_one({"_id": document["_id"]}, {"$set": {f"daily.{day}.buckets": {"5000": 1}}},
                                                    bypass_document_validation=True)
        self.rank()
        found = self.valid("pages")[f"day/202601{int(day):02}"]["measures"]
        self.assertEqual({"hits", "visitors"}, {*found})
        self.assertIn("latency", self.valid("pages")["month/202601"]["measures"])

    def test_damage_of_one_period_leaves_the_others(self):
        """Days cannot be read; hours and months are ranked all the same, and the daemon says how many periods wait."""
        self.count_events(100)
        document = self.base["pages.latency.month"].find_one()
        day = next(iter(document["daily"]))
        self.base["pages.latency.month"].update_one({"_id": document["_id"]}, {"$set": {f"daily.{day}.units": Decimal128("Infinity")}},
                                                    bypass_document_validation=True)
        days = self.base["pages.top"].count_documents({"_id": {"$regex": "^day/"}})
        self.serve(rollup_after="1s")
        self.wait_for(lambda: f"tallyd_job_periods_waiting {days}\n" in self.get("/metrics"), bool)
        self.stop()
        self.assertIn("damaged", self.rank("--now", status=EX_DATAERR) + self.err)
        self.assertEqual({"day"}, {one["_id"].split("/")[0] for one in self.base["pages.top"].find() if one.get("ranked") != one["written"]})

    def test_the_period_before_has_wider_buckets(self):
        """Hours of it have expired, so both are read by day, from documents as from a scan."""
        config = CONFIG.replace("latency: histogram(duration)", 'latency: "histogram(duration, hour=3, day=0)"', 1)
        config = config.replace("pages: {by: [path]", "pages: {by: [path], keep: {minute: 1d, hour: 2d}", 1)
        self.write("tallyd.yaml", config.encode())
        today = int(time.time()) // DAY * DAY
        mark = today - 2 * DAY  # what is kept of hours begins here
        for self.span, count in ((mark, mark + HOUR), 30), ((today - 3 * DAY, today), 300):  # the first hour has something to be ranked
            self.count_events(count)
        self.job("run", "expire", "--now")
        self.rank("--now")
        self.assertEqual(mark, calendar.timegm(self.base.reports.find_one({"_id": "pages"})["expired"]["hour"].timetuple()))
        question = "/api/v1/top?" + urllib.parse.urlencode({"report": "pages", "measure": "p90(latency)", "from": iso(mark),
                                                            "to": iso(mark + HOUR)})
        self.serve(config)
        ranked, = self.check_scans([question], ["pages"])
        self.assertNotIn('"series":[]', ranked)
        self.assertIn("by day", ranked)


class Faults(TopCase):
    def test_killed_before_it_says_so(self):
        self.count_events(60)
        for place in ("top.ranked", "top.ranked:5"):
            self.rank(status=KILLED, env=dying_at(place))
            self.check_valid(every=False)
            self.forget_leases()
        self.rank()
        self.check_valid()

    def test_killed_anywhere_while_it_counts(self):
        """Late events all the time, a writer and two jobs that die anywhere."""
        self.count_events(20)
        for _ in range(ROUNDS):
            self.events += events_of(self.dice, 60, *self.span)
            self.write("a.log", lines_of(self.events))
            going = [self.start("import", "-q", "-c", "tallyd.yaml", "--decode", "logfmt", "--store", self.store, "a.log",
                                env=dying_at(draw_death(self.dice, failpoints("mongo."), 3)))]
            for _ in range(2):
                going.append(self.begin_job("top", "--now", env=dying_at(draw_death(self.dice, failpoints("top."), 8))))
            for one in going:
                said = b"".join(one.communicate(timeout=TIMEOUT_S))
                self.assertIn(one.returncode, (EX_OK, EX_TEMPFAIL, KILLED), said)
            self.forget_leases()
            self.count_into(self.store, "a.log")
            self.check_valid(every=False)
        self.forget_leases()
        self.rank("--now")
        self.check_valid()
        self.serve()
        self.check_scans(list(self.questions()), RANKED)


if __name__ == "__main__":
    main()
