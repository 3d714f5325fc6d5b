#!/usr/bin/env python3
"""Open hours, days and months ranked by group sums and a few documents: whatever is killed or comes late, an answer is that of a
recount of the logs and that of a scan, and while batches are applied it lies between what documents said before and after it.

TALLYD_MONGO names the server (tests/servers/mongo.py). The seed is printed; TALLYD_SEED repeats a run.
"""

import collections
import datetime
import itertools
import json
import os
import re
import signal
import time
import urllib.parse

from harness import EX_OK, TIMEOUT_S, DaemonCase, dice, draw_death, dying_at, failpoints, other_day
from mongocase import PASSING, Int64, MongoCase, main

KILLED = -signal.SIGKILL
ROUNDS = int(os.environ.get("TALLYD_ROUNDS", "3"))
REPORTS = """\
reports:
  pages: {by: [path], measures: {hits: count, bytes: sum(bytes), most: max(bytes)}}
  kinds: {by: [method, path], layout: hour}
  moments: {by: [path], layout: minute}
  few: {by: [path], series_max: 3}
"""
# By one connection, a batch's sums are there before any of its documents, so a judge may rely on them at once.
STORE = "aggregate: {batch_size: 64KiB}\nstore: {validation: error, connections: 1}\n"
RUN = "http: {listen: '127.0.0.1:0'}\nsources: {access: {path: empty.log}}\njobs: {rollup_after: 1h}\n"
MEASURES = {"pages": ("hits", "bytes"), "kinds": ("hits",), "moments": ("hits",), "few": ("hits",)}
KEYS = {"pages": lambda event: (event.path,), "kinds": lambda event: (event.method, event.path),
        "moments": lambda event: (event.path,), "few": lambda event: (event.path,)}
HOUR, MINUTE, DAY = datetime.timedelta(hours=1), datetime.timedelta(minutes=1), datetime.timedelta(days=1)
FLOORS = {"hour": lambda at: at.replace(minute=0, second=0), "day": lambda at: at.replace(hour=0, minute=0, second=0),
          "month": lambda at: at.replace(day=1, hour=0, minute=0, second=0)}
LEFT_S = 40  # of the day, at least, when a test begins: its documents are of a day that goes on
Event = collections.namedtuple("Event", "at method path size")


def now():
    return datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None, microsecond=0)


def iso(at):
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def end_of(span, start):
    return start + HOUR if span == "hour" else start + DAY if span == "day" else (start + 31 * DAY).replace(day=1)


def lines_of(events, pad=300):
    return "".join(f'192.0.2.1 - - [{event.at:%d/%b/%Y:%H:%M:%S} +0000] "{event.method} {event.path} HTTP/1.1" 200 '
                   f'{event.size} "-" "{"x" * pad}"\n' for event in events).encode()


class LiveCase(MongoCase, DaemonCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        left_s = (end_of("day", FLOORS["day"](now())) - now()).total_seconds()
        if left_s < LEFT_S:
            time.sleep(left_s + 1)
        self.begun = now()
        self.define(REPORTS, MEASURES)
        self.write("empty.log", b"")
        self.events = collections.defaultdict(list)  # by log

    def define(self, text, measures):
        self.text, self.reports = text, measures
        self.write("tallyd.yaml", (text + STORE).encode())

    def draw(self, count, pages, hours=2, span=None):
        """Pages by Zipf's law, in the last hours, and in the period of `span` that goes on; many have equal values."""
        seconds = int(hours * 3600)
        if span:
            seconds = min(seconds, 1 + int((self.begun - FLOORS[span](self.begun)).total_seconds()))
        paths = self.dice.choices([f"/{page}" for page in range(pages)], [1 / (1 + page) for page in range(pages)], k=count)
        return [Event(self.begun - datetime.timedelta(seconds=self.dice.randrange(seconds)), self.dice.choice(["GET", "POST"]),
                      path, self.dice.choice([0, 7, 500])) for path in paths]

    def add(self, events, log="a.log"):
        self.events[log] += events
        self.write(log, lines_of(self.events[log]))

    def count_events(self, events, log="a.log"):
        self.add(events, log)
        self.count(log)

    def serve(self):
        self.write("run.yaml", (self.text + RUN + f'store: {{url: "{self.store}"}}\n').encode())
        self.launch("-c", "run.yaml")

    def document(self, span, report="pages"):
        form = {"hour": "%Y%m%d%H", "day": "%Y%m%d", "month": "%Y%m"}[span]
        return {"_id": f"{span}/{self.begun.strftime(form)}"}

    # ---- the judge

    def recount(self, report, measure, start, end):
        known = None if report != "few" else {(one["metadata"]["path"],) for one in self.base["few.series"].find()}
        found = collections.Counter()
        for event in itertools.chain(*self.events.values()):
            series = KEYS[report](event)
            if start <= event.at < end:
                found[series if known is None or series in known else ("(other)",)] += 1 if measure == "hits" else event.size
        return found

    def check_answer(self, words):
        answer = json.loads(self.get("/api/v1/top?" + urllib.parse.urlencode(words)))
        start, end = (datetime.datetime.fromisoformat(answer[name].rstrip("Z")) for name in ("from", "to"))
        expected = self.recount(words["report"], words["measure"], start, end)
        ranked = sorted((series for series in expected if expected[series]),
                        key=lambda series: (-expected[series], "\t".join(series).encode()))[:words["limit"]]
        listed = [(tuple(row["series"].values()), int(row["value"])) for row in answer["series"]]
        self.assertEqual([(series, expected[series]) for series in ranked],
                         [(("(other)",) if None in series else series, value) for series, value in listed], words)
        self.assertEqual(sum(expected.values()), int(answer["total"]), words)
        before = answer["before"]
        if before is not None:
            start = datetime.datetime.fromisoformat(before["from"].rstrip("Z"))
            end = datetime.datetime.fromisoformat(before["to"].rstrip("Z"))
            past = self.recount(words["report"], words["measure"], start, end)
            self.assertEqual(sum(past.values()), int(before["total"] or 0), (words, before["from"], before["to"]))
            for row, series in zip(answer["series"], ranked):
                self.assertEqual(past[series], int(row["before"] or 0), (words, series))
        return answer

    def questions(self):
        for report, measures in self.reports.items():
            for measure in measures:
                for span, floor in FLOORS.items():
                    start = floor(self.begun)
                    words = {"report": report, "measure": measure, "limit": self.dice.choice([1, 2, 3, 5, 20, 200]), "from": iso(start)}
                    yield words
                    yield {**words, "to": iso(end_of(span, start))}
                    if self.begun - start > 2 * MINUTE:  # counts are behind it
                        yield {**words, "to": iso(self.begun.replace(second=0) - MINUTE)}

    def promql(self):
        for report, measures in self.reports.items():
            end = FLOORS["hour"](self.begun) + HOUR
            query = f"topk({self.dice.choice([1, 2, 5])}, increase({report}:{self.dice.choice(measures)}[3600s]))"
            yield "/prometheus/api/v1/query?" + urllib.parse.urlencode({"query": query, "time": iso(end)})

    def check_all(self):
        """Twice, since the first question may teach the handle; then by scans, because no sums are whole any more."""
        for _ in range(2):
            for words in self.questions():
                self.check_answer(words)
        asked = list(self.promql())
        found = [self.get(question) for question in asked]
        for report in self.reports:
            self.base[f"{report}.top"].update_many({}, {"$inc": {"written": 1000}})
        self.assertEqual([self.get(question) for question in asked], found)
        for report in self.reports:
            self.base[f"{report}.top"].update_many({}, {"$inc": {"written": -1000}})

    def read_rows(self, *words, span="day"):
        """An answer of a process without memory, and how many documents it read."""
        start = FLOORS[span](self.begun)
        found = self.tallyd("query", "pages", "--store", self.store, "--explain", "--format", "csv", "--measure", "hits", "--from",
                            iso(start), "--to", iso(end_of(span, start)), *words)
        return found, int(re.search(r"(?m)^read (\d+) rows", self.err)[1])


class Answers(LiveCase):
    def test_answers_are_those_of_a_recount(self):
        self.count_events(self.draw(600, 80))
        self.serve()
        self.check_all()
        self.count_events(self.draw(200, 120))  # new pages, too
        self.check_all()

    def test_few_documents_are_read(self):
        """And all of them, if a batch is not in the sums, or a document has more than they."""
        self.count_events(self.draw(3000, 300, span="day"))
        self.rank("--now")
        self.count_events(self.draw(100, 300, span="day"))
        expected, rows = self.read_rows("--top", "5")
        self.assertLess(rows, 60)
        series = self.base["pages.series"].count_documents({})
        self.assertGreater(series, 200)
        top = self.base["pages.top"]
        for span in "month", "day":
            self.assertLess(self.read_rows("--top", "5", span=span)[1], 60, span)
        for damage, repair in (({"$inc": {"written": 1}}, {"$inc": {"written": -1}}),
                               ({"$inc": {"open.batches": -1}}, {"$inc": {"open.batches": 1}})):
            self.assertEqual(1, top.update_one(self.document("day"), damage).modified_count)
            found, rows = self.read_rows("--top", "5")
            self.assertEqual(expected, found)
            self.assertGreater(rows, series * 0.6)
            top.update_one(self.document("day"), repair)
        self.assertEqual(expected, self.read_rows("--top", "5")[0])
        self.base["pages.day"].update_one({"_id": f"{self.begun:%Y%m%d}/%2F0"}, {"$inc": {"daily": 1000}})
        found, rows = self.read_rows("--top", "5")
        self.assertGreater(rows, series * 0.6)
        self.assertEqual(expected, found)  # by the documents of months

    def test_totals_of_the_time_before(self):
        """They are read by minute from documents of hours, if these have every batch."""
        self.count_events([Event(self.begun - number * MINUTE / 2, "GET", "/a", 7) for number in range(400)])
        self.serve()
        start = FLOORS["hour"](self.begun)
        top, name = self.base["pages.top"], f"hour/{start - HOUR:%Y%m%d%H}"
        words = {"report": "pages", "measure": "hits", "limit": 3, "from": iso(start)}
        for damage in {"minutes.batches": -1, "minutes.totals.hits.59": 1000}, {"minutes.batches": 1}:
            self.check_answer(words)
            self.assertEqual(1, top.update_one({"_id": name}, {"$inc": damage}).modified_count)
        said = json.loads(self.get("/api/v1/top?" + urllib.parse.urlencode(words)))["before"]["total"]
        self.assertLess(1000, int(said))  # this is where it is read
        for damage in {"x": Int64(1)}, {"7x": Int64(1)}, {"60": Int64(1)}, {"59": Int64(-1)}, {"59": 1.0}:
            with self.subTest(damage=damage):  # by another program: it scans
                top.update_one({"_id": name}, {"$set": {"minutes.totals.hits": damage}})
                self.check_answer(words)
        top.delete_one({"_id": name})  # as a version without rankings leaves it
        self.check_answer(words)

    def test_a_page_that_no_ranking_knows(self):
        """It is in no hint: its group's sum shows that somebody is missing."""
        self.count_events(self.draw(2000, 200))
        self.rank("--now")
        self.count_events([Event(self.begun, "GET", "/new", 7)] * 5000)
        found, rows = self.read_rows("--top", "1")
        self.assertIn("/new,5000", found)
        self.serve()
        for _ in range(2):
            self.check_answer({"report": "pages", "measure": "hits", "limit": 3, "from": iso(FLOORS["day"](self.begun))})

    def test_what_is_taken_out(self):
        """Nobody relies on sums from which something was taken out."""
        reports = REPORTS.replace("  few: {by: [path], series_max: 3}\n", "").replace(", most: max(bytes)", "")
        self.define(reports, {name: MEASURES[name] for name in ("pages", "kinds", "moments")})
        self.count_events(self.draw(300, 50))
        self.count_events(self.draw(100, 50), "b.log")
        self.tallyd("forget", "-c", "tallyd.yaml", "--store", self.store, "b.log")
        del self.events["b.log"]
        one = self.base["pages.top"].find_one(self.document("month"))
        self.assertLess(one["open"]["batches"], one["written"])
        self.serve()
        self.check_all()

    def test_a_copy_has_no_sums(self):
        """Where minutes have expired it gets cells of whole days or months, which say nothing of the last minute that has counts."""
        reports = REPORTS.replace("  moments: {by: [path], layout: minute}\n", "")
        self.define(reports, {name: MEASURES[name] for name in ("pages", "kinds", "few")})
        self.add(self.draw(300, 50))
        self.tallyd("import", "-q", "-c", "tallyd.yaml", "--store", "sqlite:judge.db", "a.log")
        self.tallyd("admin", "copy", "sqlite:judge.db", self.store)
        one = self.base["pages.top"].find_one(self.document("month"))
        self.assertEqual((False, False), ("open" in one, "minutes" in one))
        self.serve()
        self.check_all()
        self.stop()
        self.add(self.draw(20, 50), "b.log")
        self.count("b.log")
        self.serve()
        self.check_all()

    def test_a_period_that_is_over_has_no_sums(self):
        self.count_events(self.draw(50, 20, span="day"))
        self.assertIn("open", self.base["pages.top"].find_one(self.document("day")))
        self.rank(env=other_day(40 * 86400))
        self.assertEqual(0, self.base["pages.top"].count_documents({"open": {"$exists": True}}))
        self.count_events(self.draw(20, 20), "b.log")  # late: these sums are not whole
        self.serve()
        self.check_all()


class Moments(LiveCase):
    def colliding(self):
        """Two pages of one group, and one of another: sums of sizes tell which pages are in a group."""
        sizes = {f"/p{page}": self.dice.randrange(10**6, 10**12) for page in range(300)}
        pairs = {a[1] + b[1]: (a[0], b[0]) for a, b in itertools.combinations(sizes.items(), 2)}
        self.count_events([Event(self.begun, "GET", path, size) for path, size in sizes.items()])
        sums = self.base["pages.top"].find_one(self.document("day"))["open"]["sums"]["bytes"].values()
        one, two = next(pairs[found] for found in sums if found in pairs)
        three = next(path for path, size in sizes.items() if size in sums)
        self.events.clear()
        self.anew()
        return one, two, three

    def test_sums_that_lack_a_batch_of_a_document(self):
        """A batch is open, and the period's document lacks it: the page that nobody read has more than the sums leave."""
        known, unknown, other = self.colliding()
        top = self.base["pages.top"]
        for counts in {known: 100, other: 50}, {unknown: 60}:
            self.count_events([Event(self.begun, "GET", path, 7) for path, count in counts.items() for _ in range(count)])
            if unknown not in counts:
                self.rank("--now")
        expected = ["path,value", f"{known},100", f"{unknown},60"]
        self.assertEqual(expected, self.read_rows("--top", "2")[0].split())
        before, seq = top.find_one(self.document("day")), self.ledger.slots()["w0"]["seq"]
        self.count_events([Event(self.begun, "GET", known, 7)] * 50)
        expected[1] = f"{known},150"
        self.assertEqual(expected, self.read_rows("--top", "2")[0].split())
        top.replace_one(self.document("day"), before)
        writer = self.ledger.slots()["w0"]
        self.assertGreater(writer["seq"], seq)
        self.ledger.change({"$set": {"writers.w0.open": {"seq": writer["seq"], "inc": writer["inc"], "prev": seq}}})
        self.assertEqual(expected, self.read_rows("--top", "2")[0].split())

    def test_documents_with_batches_of_other_periods(self):
        """A writer counted for a page only long ago: by the ledger its batch is done, so the sums have what concerns them."""
        self.count_events(self.draw(2000, 200))
        self.rank("--now")
        self.count_events([Event(self.begun.replace(day=1) if self.begun.day > 1 else self.begun - 40 * DAY, "GET", f"/{page}", 7)
                           for page in range(200)], "b.log")
        self.count_events(self.draw(10, 200), "c.log")
        expected = self.recount("pages", "hits", FLOORS["day"](self.begun), FLOORS["day"](self.begun) + DAY)
        found, rows = self.read_rows("--top", "3")
        self.assertEqual([value for _, value in expected.most_common(3)], [int(line.rsplit(",", 1)[1]) for line in found.split()[1:]])
        self.assertLess(rows, 60)

    # ---- while batches are applied

    def values(self, span, longer):
        """{path: what documents say}: of days, or `longer` of months, which get their counts later."""
        kind, path = {"hour": ("day", f"hourly.{self.begun.hour}"), "day": ("month", f"daily.{self.begun.day}") if longer else ("day", "daily"),
                      "month": ("month", "total") if longer else ("day", "daily")}[span]
        found = collections.Counter()
        of_month = span == "month" and not longer
        floor = FLOORS["day" if kind == "day" and not of_month else "month"](self.begun)
        dates = {"$gte": floor, "$lt": end_of("month", floor)} if of_month else floor
        for one in self.base[f"pages.{kind}"].find({"metadata.date": dates}):
            value = one
            for name in path.split("."):
                value = value.get(name, {}) if isinstance(value, dict) else {}
            if value:
                found[one["metadata"]["path"]] += int(value)
        return found

    def check_between(self):
        """The documents only grow, so each value lies between what they said before the question and after it."""
        span, limit = self.dice.choice(["hour", "day", "month"]), self.dice.choice([1, 3, 10])
        start = FLOORS[span](self.begun)
        low = self.values(span, longer=True)
        answer = json.loads(self.get("/api/v1/top?" + urllib.parse.urlencode(
            {"report": "pages", "measure": "hits", "limit": limit, "from": iso(start), "to": iso(end_of(span, start))})))
        high = self.values(span, longer=False)
        shown = {row["series"]["path"]: int(row["value"]) for row in answer["series"]}
        for path, value in shown.items():
            self.assertLessEqual(low.get(path, 0), value, (span, path))
            self.assertLessEqual(value, high[path], (span, path))
        self.assertLessEqual(min(limit, len(low)), len(shown))
        least = min(shown.values(), default=0) if len(shown) == limit else 0
        for path, value in low.items():
            if path not in shown:
                self.assertLessEqual(value, least, (span, path))

    def test_validators_of_ferretdb_only_warn(self):
        """FerretDB loses updates of two writers under validators that refuse. So tallyd asks for none, nor counts where others do."""
        is_ferretdb = "ferretdb" in self.base.client.server_info()
        self.count_events(self.draw(20, 5))  # its configuration asks for errors
        found = {one["options"].get("validationAction") for one in self.base.list_collections()
                 if one["name"].startswith("pages.") and "validator" in one.get("options", {})}
        self.assertEqual({"warn" if is_ferretdb else "error"}, found)
        if is_ferretdb:
            other = {"$jsonSchema": {"properties": {"hits": {"bsonType": "long"}}}}
            self.base.command("collMod", "pages.day", validator=other, validationAction="error", validationLevel="moderate")
            self.add(self.draw(20, 5))
            self.assertIn("loses updates", self.begin("a.log").communicate(timeout=TIMEOUT_S)[1].decode())

    def test_two_writers_that_die_anywhere(self):
        self.count_events(self.draw(100, 50))
        self.serve()
        for _ in range(ROUNDS):
            going = []
            for log in "a.log", "b.log":
                self.add(self.draw(400, 200, hours=self.dice.choice([1, 2, 30])), log)
                going.append(self.begin(log, env=dying_at(draw_death(self.dice, failpoints("mongo."), 3))))
            while any(one.poll() is None for one in going):
                self.check_between()
            for one in going:
                out, err = one.communicate(timeout=TIMEOUT_S)
                self.assertIn(one.returncode, (EX_OK, *PASSING, KILLED), (out + err).decode())
            self.check_between()
            for log in "a.log", "b.log":
                self.count(log)
            self.check_between()
        self.check_all()


if __name__ == "__main__":
    main()
