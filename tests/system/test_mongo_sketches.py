#!/usr/bin/env python3
"""Histograms and distinct counts in MongoDB: their documents have what the lines say, however the lines were counted.

The judge reads documents by pymongo and finds the buckets of numbers by integers. SQLite's answers are the second judge.
TALLYD_MONGO names the server (tests/servers/mongo.py). The seed is printed; TALLYD_SEED repeats a run.
"""

import collections
import json
import math
import os
import re
import time
import urllib.parse

import test_prom_sketches
from buckets import index_of
from harness import EX_DATAERR, EX_OK, DaemonCase, dice, draw_death, dying_at, failpoints
from mongocase import LENGTHS, MEMBERS, SIGNS, SPANS, MongoCase, main
from test_sketches import (BEGIN, DAY, HOUR, MILLION, check_combinations, combination_written, config_of_combinations, draw,
                           draw_combinations, iso, written)

LINES = int(os.environ.get("TALLYD_LINES") or 300)
KILLED = -9
DAYS = 3
# By layout: the kinds of documents of a histogram, and which buckets each holds.
KINDS = {"hour": "minute", "day": "hour", "month": "day", "year": "month"}
SPANS_OF_DISTINCT = ("minute", "hour", "day", "month")
OWN_KINDS = {span: span for span in SPANS_OF_DISTINCT}  # of schemas above 4, too
REPORTS = {"site": (None, KINDS), "pages": ("path", KINDS), "hours": ("path", KINDS), "fine": ("path", OWN_KINDS),
           "moments": (None, {**KINDS, "minute": "second"})}
# Reports with other buckets, in longer time buckets or in all: their schemas.
WIDER, FINER = "histogram(duration, hour=3, day=1, month=-2)", "histogram(duration, schema=8, day=6)"
SCHEMAS = {"hours": {"hour": 3, "day": 1, "month": -2}, "fine": {"minute": 8, "hour": 8, "day": 6, "month": 6}}
VISITORS = ", visitors: distinct(host)"
QUESTIONS = ("all", "p99(latency)", "share(latency <= 0.25)", "count(latency)", "mean(latency)", "hits", "visitors",
             "count(visitors)")
REGISTERS, BEHIND_BITS, EXACT_MAX = 4096, 14, 700


def config(more="", keep="", moments=True):
    return f"""
sources: {{a: {{path: a.log, decode: [logfmt]}}}}
reports:
  site: {{measures: {{hits: count, latency: histogram(duration){VISITORS}}}{keep}}}
  pages: {{by: [path], measures: {{hits: count, latency: histogram(duration){VISITORS}}}{keep}{more}}}
  hours: {{by: [path], layout: hour, measures: {{latency: "{WIDER}", longest: max(duration)}}{keep}}}
  fine: {{by: [path], layout: hour, measures: {{latency: "{FINER}", longest: max(duration)}}{keep}}}
{"  moments: {layout: minute, measures: {latency: histogram(duration)" + VISITORS + "}}" if moments else ""}
aggregate: {{batch_size: 64KiB, flush: 100ms}}
store: {{validation: error}}
http: {{listen: "127.0.0.1:0"}}
""".encode()


def events_of(rolls, count, begin, end):
    """Some numbers are negative."""
    return sorted(((at, path, -number if number and rolls.random() < 0.1 else number, host)
                   for at, path, number, host in draw(rolls, count, begin, end)), key=str)


def lines_of(events):
    """An import reads 256 KiB at least before it writes: long lines make many batches of few of them."""
    return b"".join(written(event).replace(b"\n", b" agent=" + b"x" * 2000 + b"\n") if event[2] is None or event[2] >= 0 else
                    written((*event[:2], -event[2], event[3])).replace(b"duration=", b"duration=-") for event in events)


def bucket_of(millionths, schema=4):
    """As a document names it: up to schema 4 by the end in sixteenths of an octave."""
    if millionths == 0:
        return "zero"
    width = 2**max(0, 4 - schema)
    name = ("buckets" if millionths > 0 else "negative") + (f"_{schema}" if schema > 4 else "")
    return name, -(-index_of(abs(millionths), max(4, schema)) // width) * width


def recount(events, span, by_path, report=None):
    """{(time, path): Counter of buckets, of "count" and "sum"}"""
    schema = SCHEMAS.get(report, {}).get(span, 4)
    cells = collections.defaultdict(collections.Counter)
    for at, path, number, _ in events:
        cell = cells[iso(at)[:LENGTHS[SPANS.index(span)]], path if by_path else None]
        if number is not None:
            cell[bucket_of(number, schema)] += 1
            cell["count"] += 1
            cell["sum"] += number
    return {name: {key: value for key, value in cell.items() if value} for name, cell in cells.items()}


def counted(value):
    """The same of a bucket in a document."""
    cell = {"count": value["count"], "zero": value.get("zero", 0), "sum": int(value["units"].to_decimal() * MILLION)}
    for name in value:
        if name.startswith(("buckets", "negative")):
            cell.update({(name, int(index)): count for index, count in value[name].items()})
    return {key: value for key, value in cell.items() if value}


def ranks_of(value):
    """{register: rank} of the entries and registers in a document."""
    ranks = {int(number): rank for number, rank in value.get("registers", {}).items()}
    for bits, rank in value.get("entries", {}).items():
        number, behind = int(bits, 16) >> BEHIND_BITS, int(bits, 16) % (1 << BEHIND_BITS)
        rank = BEHIND_BITS + 1 - behind.bit_length() if behind else BEHIND_BITS + rank
        ranks[number] = max(rank, ranks.get(number, 0))
    return ranks


def estimate(ranks):
    """By the paper of HyperLogLog."""
    zeros = REGISTERS - len(ranks)
    raw = 0.7213 / (1 + 1.079 / REGISTERS) * REGISTERS**2 / (zeros + sum(2.0**-rank for rank in ranks.values()))
    return REGISTERS * math.log(REGISTERS / zeros) if raw <= 2.5 * REGISTERS and zeros else raw


def leaves(value, depth, path=()):
    if depth == 0:
        yield path, value
        return
    for key, below in value.items():
        yield from leaves(below, depth - 1, (*path, key))


class SketchCase(MongoCase, DaemonCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.span = BEGIN, BEGIN + DAYS * DAY
        self.write("tallyd.yaml", config())

    def stored(self, report, kind, dimension):
        """{(time, value of the dimension): counts} of the histograms in the documents of one kind."""
        cells, finest = {}, REPORTS[report][1][kind]
        signs = (*SIGNS[1:],) if kind == "year" else SIGNS[SPANS.index(kind) + 1:]
        for document in self.base[f"{report}.latency.{kind}"].find():
            self.assertLessEqual({*document}, {"_id", "metadata", "applied", "modified", "v", MEMBERS[finest]})
            date = document["metadata"]["date"].isoformat()[:4 if kind == "year" else LENGTHS[SPANS.index(kind)]]
            for keys, value in leaves(document[MEMBERS[finest]], int(finest != kind)):
                at = date + "".join(f"{sign}{int(key):02}" for sign, key in zip(signs, keys))
                cells[at, document["metadata"].get(dimension)] = counted(value)
        return cells

    def stored_distinct(self, report, span, dimension):
        """{(time, value of the dimension): the member in its document}"""
        return {(document["metadata"]["date"].isoformat()[:LENGTHS[SPANS.index(span)]], document["metadata"].get(dimension)):
                document[MEMBERS[span]] for document in self.base[f"{report}.visitors.{span}"].find()}

    def check_distinct(self, events, report, span):
        dimension, expected = REPORTS[report][0], collections.defaultdict(list)
        for at, path, _, host in events:
            expected[iso(at)[:LENGTHS[SPANS.index(span)]], path if dimension else None] += [] if host is None else [host]
        stored = self.stored_distinct(report, span, dimension)
        self.assertEqual({name: len(hosts) for name, hosts in expected.items()},
                         {name: value["count"] for name, value in stored.items()})
        for name, hosts in expected.items():
            count, value = len(set(hosts)), stored[name]
            if "registers" in value:
                self.assertGreater(count, EXACT_MAX, name)
                self.assertLess(abs(estimate(ranks_of(value)) - count), 0.06 * count, name)
            else:
                self.assertIn(len(value.get("entries", {})), (count, count - 1 if count > 50 else count), name)

    def check_documents(self, events, reports=REPORTS):
        for report in {*reports} - {*SCHEMAS}:
            for span in (*SPANS_OF_DISTINCT, *(["second"] if report == "moments" else [])):
                with self.subTest(report=report, distinct=span):
                    self.check_distinct(events, report, span)
        for report in reports:
            dimension, kinds = REPORTS[report]
            for kind, finest in kinds.items():
                with self.subTest(report=report, documents=kind):
                    expected = recount(events, finest, dimension is not None, report)
                    self.assertEqual(expected, self.stored(report, kind, dimension))

    def verify(self, *files, store=None):
        for more in ["--decode", "logfmt", *files], ["--store-only"]:
            if more[-1] != "logfmt":
                self.tallyd("verify", "-c", "tallyd.yaml", "--store", store or self.store, *more)

    def count_into(self, store, *files, **options):
        return self.tallyd("import", "-q", "-c", "tallyd.yaml", "--decode", "logfmt", "--store", store, *files, **options)

    def ask(self, store, report, *arguments, span=None):
        begin, end = span or self.span
        return self.tallyd("query", report, "--store", store, "--from", iso(begin), "--to", iso(end), "--format",
                           "csv-raw", *arguments, status=None) + self.err

    def answers(self, store, span=None):
        said = [self.ask(store, report, "--measure", measure, "--step", step, span=span) for report in ("site", "pages")
                for measure in QUESTIONS for step in ("minute", "hour", "day", "month")]
        said += [self.ask(store, "pages", "--measure", "p99(latency)", *how, span=span)
                 for how in (["--top", "5"], ["--filter", "path=/a", "--step", "hour"], ["--filter", "path=~/.*"])]
        said += [self.ask(store, report, "--measure", measure, *how, span=span)
                 for report in SCHEMAS for measure in ("p90(latency)", "max(latency)") for how in (["--step", "hour"], ["--step", "day"], ["--top", "5"])]
        return said

    def assert_same(self, expected, store, **options):
        for one, two in zip(expected, self.answers(store, **options)):
            self.assertEqual(one, two)

    def count_in_sqlite(self, *files, visitors=True):
        whole = self.read("tallyd.yaml")
        self.write("tallyd.yaml", config(moments=False).replace(b"" if visitors else VISITORS.encode(), b""))
        self.count_into("sqlite:judge.db", *files)
        expected = self.answers("sqlite:judge.db")
        self.write("tallyd.yaml", whole)
        return expected

    def import_at_once_killed(self, *names):
        """Imports of several files at once, each begun again when it dies."""
        waiting = list(names)
        while waiting:
            places = {name: draw_death(self.dice, failpoints("mongo."), 4) for name in waiting}
            writers = {name: self.start("import", "-c", "tallyd.yaml", "--decode", "logfmt", "--store", self.store, name,
                                        env=dying_at(place)) for name, place in places.items()}
            for name, writer in writers.items():
                self.end(writer, EX_OK, KILLED)
                if writer.returncode == EX_OK:
                    waiting.remove(name)


class Exact(SketchCase):
    def import_killed(self, name):
        """Imports of a file that die, until one does not. Returns how many died."""
        deaths = 0
        while True:
            place = "mongo.committed" if deaths == 0 else draw_death(self.dice, failpoints("mongo."), 3)
            self.count_into(self.store, name, status=None, env=dying_at(place))
            self.assertIn(self.status, (EX_OK, KILLED), f"{place}\n{self.err}")
            if self.status == EX_OK:
                return deaths
            deaths += 1

    def test_documents_by_dying_imports(self):
        events = events_of(self.dice, LINES, *self.span)
        self.write("a.log", lines_of(events))
        self.assertGreater(self.import_killed("a.log"), 0)
        self.check_documents(events)
        self.verify("a.log")
        self.assert_same(self.count_in_sqlite("a.log"), self.store)

    def test_combinations_of_fields_by_dying_imports(self):
        """distinct() of several fields."""
        self.write("tallyd.yaml", config_of_combinations())
        events = draw_combinations(self.dice, LINES, *self.span)
        self.write("a.log", b"".join(combination_written(event, " more=" + "x" * 2000) for event in events))
        self.assertGreater(self.import_killed("a.log"), 0)
        check_combinations(self, events, lambda report, measure, *how: self.ask(self.store, report, "--measure", measure, *how))
        self.verify("a.log")

    def test_two_writers_at_once(self):
        """Their lines are of the same documents."""
        parts = [events_of(self.dice, LINES // 2, *self.span) for _ in range(2)]
        for name, part in zip("ab", parts):
            self.write(f"{name}.log", lines_of(part))
        self.import_at_once_killed("a.log", "b.log")
        events = sum(parts, [])
        self.check_documents(events)
        self.verify("a.log", "b.log")

    def test_changed_document_is_found(self):
        self.write("a.log", lines_of(events_of(self.dice, 40, *self.span)))
        self.count_into(self.store, "a.log")
        document = next(one for one in self.base["pages.latency.day"].find()
                        if any("buckets" in value for value in one["hourly"].values()))
        hour, value = next((hour, value) for hour, value in document["hourly"].items() if "buckets" in value)
        index = next(iter(value["buckets"]))
        self.base["pages.latency.day"].update_one({"_id": document["_id"]}, {"$inc": {f"hourly.{hour}.buckets.{index}": 1}})
        for more in ["--decode", "logfmt", "a.log"], ["--store-only"]:
            self.assertIn("latency 2026-01-0", self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, *more, status=1))
        self.base["pages.latency.day"].update_one({"_id": document["_id"]},
                                                  {"$set": {f"hourly.{hour}.buckets": {"1009": document["v"]}}},
                                                  bypass_document_validation=True)
        self.tallyd("query", "pages", "--store", self.store, "--measure", "p99(latency)", "--from", iso(self.span[0]), "--to",
                    iso(self.span[1]), "--step", "hour", status=EX_DATAERR)
        self.assertIn("pages.latency.day has a damaged histogram(duration)", self.err)

    def test_days_of_hours_are_read_from_as_many_documents_as_counts(self):
        events = [(at + self.dice.randrange(60) * DAY, "/a", *more)
                  for at, _, *more in events_of(self.dice, LINES // 4, BEGIN, BEGIN + DAY)]
        self.write("a.log", lines_of(sorted(events, key=str)))
        self.count_into(self.store, "a.log")
        read = {}
        for measure in "hits", "p99(latency)":
            said = self.tallyd("query", "pages", "--explain", "--store", self.store, "--measure", measure, "--filter", "path=/a",
                               "--from", iso(BEGIN), "--to", iso(BEGIN + 60 * DAY), "--step", "hour")
            read[measure] = int(re.search(r"read ([\d,]+) rows", said + self.err)[1])
        self.assertGreater(read["hits"], 20)
        self.assertEqual(read["hits"], read["p99(latency)"])

    def test_other(self):
        """Series beyond the limit count together."""
        self.write("tallyd.yaml", config(", series_max: 3"))
        events = events_of(self.dice, LINES // 2, *self.span)
        self.write("a.log", lines_of(events))
        self.count_into(self.store, "a.log")
        paths = {one["metadata"]["path"] for one in self.base["pages.series"].find()}
        self.assertEqual(3, len(paths))
        self.check_documents([(at, path if path in paths else None, *more) for at, path, *more in events], ["pages"])
        found = self.ask(self.store, "pages", "--filter", "path=(other)", "--measure", "hits", "--step", "day").splitlines()[1:]
        self.assertEqual(sum(path not in paths for _, path, *_ in events), sum(int(line.split(",")[-1]) for line in found))
        self.verify("a.log")

    def test_there_and_back_again(self):
        events = events_of(self.dice, LINES // 2, *self.span)
        self.write("a.log", lines_of(events))
        expected = self.count_in_sqlite("a.log")
        self.tallyd("admin", "copy", "sqlite:judge.db", self.store)
        self.check_documents(events, ["site", "pages", "hours", "fine"])
        self.write("tallyd.yaml", config(moments=False))
        self.assert_same(expected, self.store)
        self.verify("a.log")
        self.tallyd("admin", "copy", self.store, "sqlite:back.db")
        self.assert_same(expected, "sqlite:back.db")
        self.verify("a.log", store="sqlite:back.db")

    def test_copy_begins_anew(self):
        """A killed copy leaves documents of histograms, too."""
        events = events_of(self.dice, LINES // 2, *self.span)
        self.write("a.log", lines_of(events))
        self.count_in_sqlite("a.log")
        self.tallyd("admin", "copy", "sqlite:judge.db", self.store, status=KILLED, env=dying_at("copy.filled:3"))
        self.assertGreater(self.base["site.latency.day"].count_documents({}), 0)
        self.tallyd("admin", "copy", "sqlite:judge.db", self.store)
        self.check_documents(events, ["site", "pages", "hours", "fine"])

    def test_forgotten_file(self):
        one, two = (events_of(self.dice, LINES // 4, *self.span) for _ in range(2))
        for name, part in ("a.log", one), ("b.log", two):
            self.write(name, lines_of(part))
        self.write("tallyd.yaml", config().replace(b", longest: max(duration)", b"").replace(VISITORS.encode(), b""))
        self.count_into(self.store, "a.log", "b.log")
        self.tallyd("forget", "--yes", "-c", "tallyd.yaml", "--decode", "logfmt", "--store", self.store, "b.log")
        expected = self.count_in_sqlite("a.log", visitors=False)
        self.assert_same(expected, self.store)
        self.verify("a.log")

    def test_backup_and_dropped_generation(self):
        events = events_of(self.dice, LINES // 4, *self.span)
        self.write("a.log", lines_of(events))
        self.count_into(self.store, "a.log")
        self.tallyd("admin", "backup", "-c", "tallyd.yaml", "--store", self.store, "copy")
        self.anew()
        self.tallyd("admin", "restore", "-c", "tallyd.yaml", "--store", self.store, "copy")
        self.check_documents(events)
        self.verify("a.log")
        self.write("tallyd.yaml", config(", generation: 2"))
        self.count_into(self.store, "a.log")
        self.tallyd("forget", "--yes", "--store", self.store, "pages~1")
        names = self.base.list_collection_names()
        self.assertEqual([], [name for name in names if name.startswith("pages.")])
        self.assertIn("hours.latency.day", names)

    def test_jobs_leave_answers_alone(self):
        """Rankings, years and weeks are made of counts; histograms need none of them."""
        events = events_of(self.dice, LINES // 4, *self.span)
        self.write("a.log", lines_of(events))
        self.write("tallyd.yaml", config(moments=False) + b"jobs: {weeks: true}\n")
        self.count_into(self.store, "a.log")
        for job in "rollup", "top":
            self.job("run", job, "--now")
        self.assertGreater(self.base["pages.year"].count_documents({}), 0)
        self.assertGreater(self.base["pages.week"].count_documents({}), 0)
        self.assert_same(self.count_in_sqlite("a.log"), self.store)
        self.verify("a.log")


class Many(SketchCase):
    """More texts than a document has entries for: registers take their place."""
    SITE = b"""
sources: {a: {path: a.log, decode: [logfmt]}}
reports: {site: {measures: {hits: count, visitors: distinct(host)}}}
aggregate: {batch_size: 64KiB}
store: {validation: error}
"""

    def setUp(self):
        super().setUp()
        self.write("tallyd.yaml", self.SITE)

    def hosts(self, first, count, hour=13):
        """An event of each host, in one minute."""
        return [(BEGIN + hour * HOUR + number % 60, "/", None, f"h{number}.example") for number in range(first, first + count)]

    def count_of(self, store):
        return self.ask(store, "site", "--measure", "visitors", "--step", "day")

    def state(self):
        """What the documents say, whatever they are like."""
        return {span: {name: ranks_of(value) for name, value in self.stored_distinct("site", span, None).items()}
                for span in SPANS_OF_DISTINCT}

    def test_writers_that_die_merge_to_the_same_registers(self):
        events = self.hosts(0, 500) + self.hosts(300, 700) + self.hosts(0, 900, 14)
        self.dice.shuffle(events)
        for name, part in ("a.log", events[::2]), ("b.log", events[1::2]), ("all.log", events):
            self.write(name, lines_of(part))
        self.count_into(self.store, "all.log")
        expected = self.state()
        self.anew()
        self.import_at_once_killed("a.log", "b.log")
        self.assertEqual(expected, self.state())
        for span in SPANS_OF_DISTINCT:
            self.check_size(span)
        self.verify("a.log", "b.log")
        self.count_into("sqlite:judge.db", "all.log")
        self.assertEqual(self.count_of("sqlite:judge.db"), self.count_of(self.store))

    def check_size(self, span, entries_max=2 * EXACT_MAX):
        for value in self.stored_distinct("site", span, None).values():
            self.assertLessEqual(len(value.get("entries", {})), entries_max)

    def test_entries_of_many_writers_are_condensed(self):
        """Each of them writes few, and none knows of the others."""
        step, events, names = 100, [], []
        for number in range(10):
            events.append(self.hosts(number * step, step))
            names.append(self.write(f"{number}.log", lines_of(events[-1])))
            self.count_into(self.store, names[-1])
            self.check_size("day", EXACT_MAX)
            self.check_size("month", EXACT_MAX)
            everything = sum(events, [])
            for span in "day", "month":
                value, = self.stored_distinct("site", span, None).values()
                self.assertEqual(len(everything) > EXACT_MAX + 1, "registers" in value, len(everything))
        self.verify(*names)
        self.count_into("sqlite:judge.db", *names)
        self.assertEqual(self.count_of("sqlite:judge.db"), self.count_of(self.store))
        self.tallyd("admin", "copy", self.store, "sqlite:back.db")
        self.assertEqual(self.count_of("sqlite:judge.db"), self.count_of("sqlite:back.db"))

    def test_documents_of_hours_are_bounded_too(self):
        """Each writer writes more texts than a third of the entries."""
        names = [self.write(f"{number}.log", lines_of(self.hosts(300 * number, 300))) for number in range(4)]
        for number, name in enumerate(names):
            self.count_into(self.store, name)
            for span in SPANS_OF_DISTINCT:
                value, = self.stored_distinct("site", span, None).values()
                self.assertEqual("registers" if number > 1 else "entries", "+".join(sorted({*value} - {"count"})), span)
        self.verify(*names)

    def test_documents_of_writers_that_forget_are_bounded_too(self):
        """Each of them writes fewer texts than the first step, as one does that has more documents than it remembers."""
        names = [self.write(f"{number}.log", lines_of(self.hosts(15 * number, 15))) for number in range(160)]
        for name in names:
            self.count_into(self.store, name)
        for span in SPANS_OF_DISTINCT:
            value, = self.stored_distinct("site", span, None).values()
            self.assertIn("registers", value, span)
            self.assertLess(len(value.get("entries", {})), 1500, span)
        self.verify(*names)

    def count_most(self):
        """Seven files: their texts are not more than a document has entries for. One more has too many."""
        names = [self.write(f"{number}.log", lines_of(self.hosts(100 * number, 100))) for number in range(9)]
        self.count_into(self.store, *names[:7])
        self.assertEqual(["entries", "entries"], self.members())
        return names

    def members(self, spans=("day", "month")):
        """Those of the documents of the day and the month."""
        values = [self.stored_distinct("site", span, None).popitem()[1] for span in spans]
        return ["+".join(sorted({*value} - {"count"})) for value in values]

    def test_condensing_that_dies_is_done_by_the_next_writer(self):
        """Between reading and the update of the first document, and of the second: that of an hour may be drawn."""
        names = self.count_most()
        for passed in 1, 2:
            self.count_into(self.store, names[7], status=KILLED, env=dying_at(f"condense.read:{passed}"))
            self.assertEqual(len(SPANS_OF_DISTINCT) - passed + 1, self.members(SPANS_OF_DISTINCT).count("entries"))
            self.count_into(self.store, names[8])
            self.assertEqual(["registers", "registers"], self.members())
            self.verify(*names)
            if passed == 1:
                self.anew()
                names = self.count_most()

    def test_batch_between_reading_and_the_update(self):
        """Its texts are no part of what was read, so the update must not remove them."""
        names = self.count_most()
        names[8] = self.write("few.log", lines_of(self.hosts(800, 10)))  # so few that its writer condenses nothing
        self.put_between()
        begun = []

        def answer(piece):
            if b"$unset" in piece and b"entries" in piece and not begun:
                begun.append(True)
                self.count_into(self.store, names[8])
        self.between.answer = answer
        self.write("tallyd.yaml", self.SITE)
        self.count_into(f"mongodb://127.0.0.1:{self.between.port}/{self.name}", names[7])
        self.assertTrue(begun)
        self.verify(*names)


class Expiry(SketchCase):
    KEEP = ", keep: {minute: 3h, hour: 2d, day: 40d}"

    def test_documents_expire_as_a_whole(self):
        now = int(time.time())
        self.span = now // DAY * DAY - 100 * DAY, now // HOUR * HOUR + HOUR
        events = [(now - self.dice.randrange(back), *more)
                  for back in (HOUR, 6 * HOUR, 5 * DAY, 60 * DAY, 99 * DAY)
                  for _, *more in events_of(self.dice, LINES // 10, *self.span)]
        self.write("a.log", lines_of(sorted(events, key=str)))
        self.write("tallyd.yaml", config(moments=False))
        for store in self.store, "sqlite:judge.db":
            self.write("tallyd.yaml", config(moments=False))
            self.count_into(store, "a.log")
            self.write("tallyd.yaml", config(keep=self.KEEP, moments=False))
            self.tallyd("job", "run", "expire", "-c", "tallyd.yaml", "--store", store)
        for report in "site", "pages", "hours":
            gone = self.base.reports.find_one({"_id": report})["expired"]
            for kind, finest in ("hour", "minute"), ("day", "hour"), ("month", "day"):
                first = self.base[f"{report}.latency.{kind}"].find_one(sort=[("_id", 1)])
                self.assertGreaterEqual(first["metadata"]["date"], gone[finest])
            for span in SPANS_OF_DISTINCT[:3] if report != "hours" else ():
                first = self.base[f"{report}.visitors.{span}"].find_one(sort=[("_id", 1)])
                self.assertGreaterEqual(first["metadata"]["date"], gone[span])
            stored = self.stored(report, "year", REPORTS[report][0])
            self.assertEqual(recount(events, "month", REPORTS[report][0] is not None, report), stored)
        begin = now // HOUR * HOUR - 2 * HOUR  # since when minutes are there in both
        for step, since in ("minute", begin), ("hour", now // DAY * DAY - DAY), ("day", now // DAY * DAY - 9 * DAY):
            one, two = (self.ask(store, "pages", "--measure", "p99(latency)", "--step", step, span=(since, self.span[1]))
                        for store in ("sqlite:judge.db", self.store))
            self.assertEqual(one, two)
        late = events_of(self.dice, 20, self.span[0], self.span[0] + DAY)
        self.write("b.log", lines_of(late))
        self.count_into(self.store, "b.log")
        self.verify()
        self.assertEqual(recount(events + late, "month", False), self.stored("site", "year", None))


    def test_only_sketches_expire(self):
        """A report without counts of its own in the documents that several spans share: nothing is removed from those."""
        now = int(time.time())
        events = events_of(self.dice, LINES, now // DAY * DAY - 9 * DAY, now // HOUR * HOUR)
        self.write("a.log", lines_of(events))
        only = "reports: {only: {by: [path], measures: {latency: histogram(duration)%s}, keep: {minute: 2d}}}" % VISITORS
        self.write("tallyd.yaml", f"sources: {{a: {{path: a.log, decode: [logfmt]}}}}\n{only}\nstore: {{validation: error}}\n".encode())
        self.count_into(self.store, "a.log")
        self.job("run", "expire")
        report = self.base.reports.find_one({"_id": "only"})
        self.assertNotIn("swept", report)  # an update that removes nothing has an empty $unset, which older servers refuse
        gone = report["expired"]["minute"]
        for kind in "latency.hour", "visitors.minute":
            self.assertEqual(0, self.base[f"only.{kind}"].count_documents({"metadata.date": {"$lt": gone}}))
            self.assertGreater(self.base[f"only.{kind}"].count_documents({}), 0)
        self.verify()

    def test_server_keeps_minutes_as_long_as_those_of_counts(self):
        """store.ttl: one watermark tells readers of all minutes, and it never splits a document of counts."""
        self.write("a.log", lines_of(events_of(self.dice, LINES // 10, *self.span)))
        self.write("tallyd.yaml", config(keep=", keep: {minute: 400d, hour: 500d}", moments=False).replace(
            b"{validation: error}", b"{validation: error, ttl: true}"))
        self.count_into(self.store, "a.log")
        for kind, days, period in (("pages.latency.hour", 400, DAY), ("pages.visitors.minute", 400, DAY), ("hours.latency.hour", 400, HOUR),
                                   ("pages.latency.day", 500, DAY), ("pages.visitors.hour", 500, DAY)):
            index = self.base[kind].index_information()["tallyd_ttl"]
            self.assertEqual(days * DAY + period + HOUR, index["expireAfterSeconds"], kind)


class Served(SketchCase):
    def test_answers_by_http(self):
        """A daemon on MongoDB and one on SQLite answer alike: /api/v1, rankings, and PromQL."""
        events = events_of(self.dice, LINES // 2, *self.span)
        self.write("a.log", lines_of(events))
        self.write("tallyd.yaml", config(moments=False))
        begin, end = (iso(at) for at in self.span)
        at = self.span[1]
        questions = [f"/api/v1/query?report=site&measure=all&step=hour&from={begin}&to={end}",
                     f"/api/v1/top?report=pages&measure=p99(latency)&from={begin}&to={end}",
                     f"/api/v1/top?report=pages&measure=visitors&from={begin}&to={end}"]
        for expression in ("increase(pages:latency[3d])", "histogram_quantile(0.9, sum(increase(pages:latency[1d])))",
                           "histogram_count(increase(site:latency[2d]))", "histogram_sum(increase(site:latency[2d]))",
                           "histogram_fraction(0, 0.3, increase(site:latency[3d]))", 'increase(site:latency_bucket{le="0.3"}[3d])'):
            questions.append(f"/prometheus/api/v1/query?time={at}&query={urllib.parse.quote(expression)}")
        said = []
        for store in "sqlite:served.db", self.store:
            self.launch("-c", "tallyd.yaml", "--store", store)
            self.wait_for_consumed(len(events))
            said.append([re.sub(r'"stats":\{.*?\},?', "", self.get(question)) for question in questions])
            self.stop()
        for question, one, two in zip(questions, *said):
            self.assertEqual(json.loads(one), json.loads(two), question)


class Prom(MongoCase, test_prom_sketches.Sketches):
    """What PromQL says of the numbers of lines, it says of MongoDB."""

    def launch(self, *arguments, **options):
        MongoCase.databases += 1
        self.counted_in = f"{self.server.url}/prom{self.databases}"
        return super().launch(*arguments, "--store", self.counted_in, **options)


del test_prom_sketches
if __name__ == "__main__":
    main()
