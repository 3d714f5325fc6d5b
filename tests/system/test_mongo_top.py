#!/usr/bin/env python3
"""Rankings of hours, days and months, each in a document: whatever is killed, comes late, or goes on at once, one that is taken
for valid is what a recount of the logs says, and answers from it are those of a scan, byte for byte.

TALLYD_MONGO names the server (tests/servers/mongo.py). The seed is printed; TALLYD_SEED repeats a run.
"""

import collections
import datetime
import json
import os
import re
import signal
import subprocess
import time
import urllib.parse

from harness import EX_OK, EX_TEMPFAIL, EX_USAGE, TIMEOUT_S, DaemonCase, command, dice, draw_death, dying_at, failpoints
from mongocase import FOLLOWING, MongoCase, main, proxy

KILLED = -signal.SIGKILL
ROUNDS = int(os.environ.get("TALLYD_ROUNDS", "4"))
REPORTS = """\
reports:
  pages: {by: [path], measures: {hits: count, bytes: sum(bytes), most: max(bytes)}}
  kinds: {by: [method, path], layout: hour}
  moments: {by: [path], layout: minute}
  few: {by: [path], series_max: 3}
  site: {}
  sizes: {by: [path], measures: {least: min(bytes)}}
"""
CONFIG = REPORTS + "aggregate: {batch_size: 64KiB}\nstore: {validation: error}\n"
RUN = "http: {listen: '127.0.0.1:0'}\nsources: {access: {path: empty.log}}\njobs: {rollup_after: 1h}\n"
RANKED = {"pages": ("hits", "bytes"), "kinds": ("hits",), "moments": ("hits",), "few": ("hits",)}
KEYS = {"pages": lambda event: (event.path,), "kinds": lambda event: (event.method, event.path),
        "moments": lambda event: (event.path,), "few": lambda event: (event.path,)}
PATHS = ["/", "/a", "/a.b", "/(other)", "/a/b", "/a%2Fb", "/$gt", "/é", "/😀", "/~", "/b", "/c"]
BEGIN = datetime.datetime(2026, 1, 30, 20)  # into the next month
MINUTE, HOUR, DAY = datetime.timedelta(minutes=1), datetime.timedelta(hours=1), datetime.timedelta(days=1)
SPANS = {"hour": ("%Y%m%d%H", lambda at: at.replace(minute=0, second=0)),
         "day": ("%Y%m%d", lambda at: at.replace(hour=0, minute=0, second=0)),
         "month": ("%Y%m", lambda at: at.replace(day=1, hour=0, minute=0, second=0))}
Event = collections.namedtuple("Event", "at method path size")


def after(span, at):
    return at + HOUR if span == "hour" else at + DAY if span == "day" else (at + 31 * DAY).replace(day=1)


def events_of(dice, count, days=3, paths=PATHS):
    """Few values, so that many series have the same."""
    return [Event((BEGIN + dice.choice([HOUR, 6 * HOUR, days * DAY]) * dice.random()).replace(microsecond=0),
                  dice.choice(["GET", "POST"]), dice.choice(paths), dice.choice([0, 0, 7, 500])) for _ in range(count)]


def lines_of(events):
    return "".join(f'192.0.2.1 - - [{event.at:%d/%b/%Y:%H:%M:%S} +0000] "{event.method} {event.path} HTTP/1.1" 200 '
                   f'{event.size} "-" "{"x" * 300}"\n' for event in events).encode()


class TopCase(MongoCase, DaemonCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.write("tallyd.yaml", CONFIG.encode())
        self.events = []

    def add(self, events):
        self.events += events
        self.write("a.log", lines_of(self.events))

    def count_events(self, events):
        self.add(events)
        self.count("a.log")

    def documents(self, report):
        return {one["_id"]: one for one in self.base[f"{report}.top"].find()}

    def valid(self, report):
        return {name: one for name, one in self.documents(report).items() if one.get("ranked") == one["written"]}

    def waiting(self, report):
        return {name for name, one in self.documents(report).items() if "waiting" in one}

    # ---- the judge

    def recount(self, report, measure, known):
        """{_id: {series: value}} of all periods; of series beyond those that are known, `other` has the counts."""
        found = collections.defaultdict(collections.Counter)
        for event in self.events:
            series = KEYS[report](event)
            series = series if known is None or series in known else None
            for span, (form, floor) in SPANS.items():
                found[f"{span}/{floor(event.at):{form}}"][series] += 1 if measure == "hits" else event.size
        return found

    def known(self, report):
        if report != "few":
            return None
        return {(one["metadata"]["path"],) for one in self.base["few.series"].find()}

    def check_valid(self, every=True):
        """Each that is valid is right; `every`: and all are."""
        for report, measures in RANKED.items():
            found = self.valid(report)
            for measure in measures:
                expected = self.recount(report, measure, self.known(report))
                if every:
                    self.assertEqual(set(expected), set(found), report)
                    self.assertFalse(any("waiting" in one for one in found.values()), report)
                for name in found:
                    self.check_ranking(expected[name], found[name]["measures"][measure], (report, measure, name))

    def check_ranking(self, expected, found, name):
        def key(series):
            return (-expected[series], "\t".join(series or ("(other)",)).encode())

        ranked = sorted((series for series in expected if expected[series]), key=key)
        listed = [(None if "other" in one["metadata"] else tuple(one["metadata"].values()), one["value"]) for one in found["top"]]
        self.assertEqual([(series, expected[series]) for series in ranked], listed, name)
        self.assertEqual((sum(expected.values()), len(ranked)), (found["total"], found["series"]), name)

    # ---- answers

    def questions(self):
        for report, measures in RANKED.items():
            for measure in (*measures, *(["most"] if report == "pages" else [])):
                for span, (_, floor) in SPANS.items():
                    starts = {floor(event.at) for event in self.events}
                    starts |= {after(span, at) for at in starts}
                    for at in self.dice.sample(sorted(starts), min(len(starts), 4)):
                        words = {"report": report, "measure": measure, "limit": self.dice.choice([1, 2, 3, 5, 20, 1000]),
                                 "from": f"{at:%Y-%m-%dT%H:%M:%SZ}", "to": f"{after(span, at):%Y-%m-%dT%H:%M:%SZ}",
                                 "format": self.dice.choice(["json", "csv"]), "tz": self.dice.choice(["UTC", "Asia/Kolkata"])}
                        yield "/api/v1/top?" + urllib.parse.urlencode(words)
                        if measure != "most":
                            yield self.promql(report, measure, at, after(span, at), words["limit"])
                            yield self.promql_range(report, measure)

    def promql(self, report, measure, start, end, limit):
        query = f"topk({limit}, {self.dice.choice(['increase', 'sum_over_time', 'rate'])}({report}:{measure}"
        query += "{path=~\".*\"}" if self.dice.random() < 0.5 else ""
        words = {"query": f"{query}[{int((end - start).total_seconds())}s]))", "time": f"{end:%Y-%m-%dT%H:%M:%SZ}"}
        return "/prometheus/api/v1/query?" + urllib.parse.urlencode(words)

    def promql_range(self, report, measure):
        """Steps of one whole hour or day each, some of them of part of one or of several: those are scanned."""
        length = self.dice.choice([HOUR, HOUR, DAY, DAY, HOUR / 2, 2 * HOUR])
        step = length * self.dice.choice([1, 1, 1, 2, 0.5])
        start = (BEGIN if length < DAY else BEGIN.replace(hour=0)) + self.dice.randrange(5) * step + self.dice.choice([0, 0, 0, 60]) * MINUTE
        query = f"{self.dice.choice(['increase', 'sum_over_time', 'rate'])}({report}:{measure}[{int(length.total_seconds())}s])"
        k = self.dice.choice([1, 2, 3, 5, 20, 1000])
        changing = f"{k} {'-' if k == 1000 else '+'} time() / 3600 % 3"  # query.series_max allows 1,000
        words = {"query": f"topk({self.dice.choice([k, changing])}, {query})",
                 "start": f"{start:%Y-%m-%dT%H:%M:%SZ}", "end": f"{start + self.dice.randrange(30) * step:%Y-%m-%dT%H:%M:%SZ}",
                 "step": int(step.total_seconds())}
        return "/prometheus/api/v1/query_range?" + urllib.parse.urlencode(words)

    def serve(self):
        self.write("empty.log", b"")
        self.write("run.yaml", (REPORTS + RUN + f'store: {{url: "{self.store}"}}\n').encode())
        self.launch("-c", "run.yaml")


class Rankings(TopCase):
    def test_answers_are_those_of_a_scan(self):
        self.count_events(events_of(self.dice, 150))
        self.assertEqual({}, self.valid("pages"))
        waiting = self.rank("--dry-run").count("waits")
        self.assertEqual(waiting, self.rank().count("series ranked"))
        self.check_valid()
        self.assertIn("nothing waits", self.rank())
        self.serve()
        self.check_scans(list(self.questions()), RANKED)
        self.count_events(events_of(self.dice, 5))
        self.check_valid(every=False)
        self.check_scans(list(self.questions()), RANKED)
        again = self.rank().count("series ranked")
        self.assertLess(0, again)
        self.assertLess(again, waiting)
        self.check_valid()
        self.check_scans(list(self.questions()), RANKED)

    def greatest(self, k, **times):
        """By step, the values of topk, the greatest first."""
        words = {"query": f"topk({k}, increase(pages:hits[1h]))", **times}
        found = json.loads(self.get("/prometheus/api/v1/query_range?" + urllib.parse.urlencode(words)))["data"]["result"]
        steps = collections.defaultdict(list)
        for series in found:
            for at, value in series["values"]:
                steps[at].append(int(value))
        return [sorted(steps[at], reverse=True) for at in sorted(steps)]

    def test_topk_reads_them(self):
        """The greatest of each ranking is made to say 1000 more, so its answers are known by that; the hour that a line came to
        again is scanned."""
        hits = (1, 2, 3, 3, 5, 8)
        hours = [BEGIN + number * HOUR for number in range(4)]
        self.count_events([Event(hour + HOUR / 2, "GET", f"/{page}", 1) for hour in hours for page, count in enumerate(hits)
                           for _ in range(count)])
        self.rank()
        self.count_events([Event(hours[2] + HOUR / 2, "GET", "/late", 1)])
        self.base["pages.top"].update_many({"_id": {"$regex": "^hour/"}}, {"$inc": {"measures.hits.top.0.value": 1000}},
                                           bypass_document_validation=True)
        self.serve()
        first = int(hours[0].replace(tzinfo=datetime.timezone.utc).timestamp())
        for k in 1, 2, 3, 4, 9:
            ranked, scanned = ([most, 5, 3, 3, 2, 1][:k] for most in (1008, 8))
            scanned += [1] * (k > len(hits))
            times = {"start": first + 3600, "end": first + 4 * 3600, "step": 3600}
            self.assertEqual([ranked, ranked, scanned, ranked], self.greatest(k, **times), k)
            self.assertEqual([ranked], self.greatest(k, **{**times, "end": first + 3600}), k)
            # Windows that begin within an hour, or overlap, are scanned.
            self.assertEqual([scanned[:len(hits)]], self.greatest(k, start=first + 3660, end=first + 3660, step=3600), k)

    def test_a_ranking_with_the_date_of_another_is_scanned(self):
        """Both together are longer than the one that was asked for."""
        hours = [BEGIN + number * HOUR for number in range(2)]
        self.count_events([Event(hour + HOUR / 2, "GET", f"/{page}", 1) for hour in hours for page in range(60)])
        self.rank()
        self.serve()
        first = int(hours[0].replace(tzinfo=datetime.timezone.utc).timestamp())
        times = {"start": first + 3600, "end": first + 2 * 3600, "step": 3600}
        before = self.greatest(1, **times)
        done = self.base["pages.top"].update_one({"_id": f"hour/{hours[0]:%Y%m%d%H}"}, {"$set": {"metadata.date": hours[1]}},
                                                 bypass_document_validation=True)
        self.assertEqual(1, done.modified_count)
        self.assertEqual([[1], [1]], before)
        self.assertEqual(before, self.greatest(1, **times))

    def test_topk_does_not_know_equals_beyond_a_ranking(self):
        """A hundred series equal the k-th one, and topk takes the first by labels among them."""
        at = BEGIN + HOUR / 2
        self.count_events([Event(at, "GET", f"/{page:03}", 1) for page in range(100)] + [Event(at, "GET", "/most", 1)] * 2)
        self.rank()
        self.base["pages.top"].update_many({}, {"$inc": {"measures.hits.top.0.value": 1000}}, bypass_document_validation=True)
        self.serve()
        first = int(BEGIN.replace(tzinfo=datetime.timezone.utc).timestamp())
        for k, most in ((1, 1002), (2, 2), (30, 2), (90, 1002)):
            found = self.greatest(k, start=first + 3600, end=first + 3600, step=3600)
            self.assertEqual([[most] + [1] * (k - 1)], found, k)

    def test_more_series_than_are_kept(self):
        paths = [f"/{number:04}.html" for number in range(1100)]
        self.dice.shuffle(paths)
        at = BEGIN + HOUR / 2
        self.count_events([Event(at, "GET", path, size) for path in paths for size in [self.dice.randrange(2)]]
                          + [Event(at, "GET", path, 1) for path in self.dice.sample(paths, 50)])
        self.rank()
        found = self.valid("pages")[f"hour/{at:%Y%m%d%H}"]["measures"]["hits"]
        self.assertEqual((1000, 1100, 1150), (len(found["top"]), found["series"], found["total"]))
        self.serve()
        self.check_scans(list(self.questions()), RANKED)

    def test_what_is_read(self):
        """A day needs one document; a part of a day needs every series."""
        self.count_events(events_of(self.dice, 100))
        self.rank()
        day = BEGIN.replace(hour=0)
        words = ["query", "pages", "--top", "3", "--store", self.store, "--explain", "--from", f"{day:%Y-%m-%d}", "--to"]
        self.tallyd(*words, f"{day + DAY:%Y-%m-%d}")
        self.assertIn("read 1 rows", self.err)
        whole = self.tallyd(*words, f"{day + DAY:%Y-%m-%d}", "--format", "csv")
        self.base["pages.top"].update_one({"_id": f"day/{day:%Y%m%d}"}, {"$inc": {"written": 1}})
        self.assertEqual(whole, self.tallyd(*words, f"{day + DAY:%Y-%m-%d}", "--format", "csv"))
        self.assertNotIn("read 1 rows", self.err)
        self.base["pages.top"].update_one({"_id": f"day/{day:%Y%m%d}"}, {"$inc": {"ranked": 1, "measures.hits.total": 5000}})
        self.serve()
        answer = json.loads(self.get(f"/api/v1/top?report=pages&from={day:%Y-%m-%d}&to={day + DAY:%Y-%m-%d}"))
        self.assertLess(5000, answer["total"])

    def test_reports_that_are_not_ranked_have_no_documents(self):
        self.count_events(events_of(self.dice, 20))
        self.assertEqual(0, self.base["site.top"].count_documents({}) + self.base["sizes.top"].count_documents({}))
        self.assertNotRegex(self.job("list"), r"top +(site|sizes)")

    def test_a_period_that_goes_on_waits(self):
        now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None, microsecond=0)
        self.count_events([Event(now, "GET", "/a", 7)])
        self.assertNotIn(f"{now:%Y-%m} ", self.rank("--dry-run"))
        self.assertIn(f"pages {now:%Y-%m}: 1 series ranked", self.rank("--now"))
        self.check_valid()

    def test_a_lease_is_left_to_who_has_it(self):
        self.count_events(events_of(self.dice, 30))
        soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=60)
        self.base.jobs.update_one({"_id": "top/pages"}, {"$set": {"fence": 7, "until": soon, "owner": "another 42"}}, upsert=True)
        self.assertIn("pages: another 42 works on it", self.rank(status=EX_TEMPFAIL))
        self.assertRegex(self.job("list"), r"top +pages .* another 42")
        self.assertRegex(self.job("list"), r"top +kinds +0 ")
        self.forget_leases()
        self.rank()
        self.check_valid()

    def test_words(self):
        for words in (["run", "tops"], ["run", "top", "--rebuild", "2026-01-01"], ["run", "top", "now"]):
            self.job(*words, status=EX_USAGE)
        self.write("empty.yaml", b"{}")
        self.tallyd("import", "-q", "-c", "empty.yaml", "--store", "sqlite:embedded.db", self.write("empty.log", b""))
        self.assertIn("nothing waits", self.tallyd("job", "run", "top", "-c", "empty.yaml", "--store", "sqlite:embedded.db"))

    def test_damage_is_scanned(self):
        self.count_events(events_of(self.dice, 60))
        self.rank()
        self.serve()
        self.base["pages.top"].insert_one({"_id": "hour/x", "waiting": True}, bypass_document_validation=True)
        for damage in ({"$unset": {"measures": ""}}, {"$set": {"measures.hits": 3}}, {"$set": {"measures": {"hits": {"total": 1}}}},
                       {"$set": {"measures": {"hits": {"total": 1, "series": 9, "top": [4]}}}}):
            day = BEGIN.replace(hour=0)
            question = (f"/api/v1/top?report=pages&measure=hits&from={day:%Y-%m-%d}&to={day + DAY:%Y-%m-%d}")
            before = self.get(question)
            self.base["pages.top"].update_many({}, damage, bypass_document_validation=True)
            self.assertEqual(before, self.get(question), damage)
        self.assertIn("nothing waits", self.rank())


class Faults(TopCase):
    def test_the_holder_of_a_lease_is_named_on_a_host_with_a_long_name(self):
        self.count_events(events_of(self.dice, 60))
        host, words = "web-17.frankfurt.example.net", ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"']
        job = [*command(), "job", "run", "top", "-c", "tallyd.yaml", "--store", self.store]
        killed = subprocess.run([*words, host, *job], cwd=self.dir, env=dying_at("top.ranked"), capture_output=True, check=False)
        if b"unshare" in killed.stderr:
            self.skipTest(killed.stderr.decode())
        self.assertIn(f"{host} ", self.job("list"))

    def test_killed_before_it_says_so(self):
        self.count_events(events_of(self.dice, 60))
        for place in ("top.ranked", "top.ranked:5"):
            killed = self.begin_job("top", env=dying_at(place))
            self.assertEqual(KILLED, self.ended(killed), self.output)
            self.check_valid(every=False)
            self.forget_leases()
        self.rank()
        self.check_valid()

    def test_one_that_was_stopped_and_goes_on_changes_nothing(self):
        self.count_events(events_of(self.dice, 100))
        for _ in range(3):
            sleeper = self.begin_job("top")
            time.sleep(self.dice.random() * 0.5)
            sleeper.send_signal(signal.SIGSTOP)
            self.forget_leases()
            self.count_events(events_of(self.dice, 20))
            if self.dice.random() < 0.5:
                self.rank()
            self.check_valid(every=False)
            sleeper.send_signal(signal.SIGCONT)
            self.assertEqual(EX_OK, self.ended(sleeper), self.output)
            self.check_valid(every=False)
        self.rank()
        self.check_valid()

    def test_a_writer_killed_while_it_applies(self):
        """The job waits for the batch that it sealed: no ranking is valid that lacks a part of it."""
        self.count_events(events_of(self.dice, 40))
        self.rank()
        self.add(events_of(self.dice, 40))
        place = self.dice.choice(["mongo.committed", "mongo.applying", "mongo.applied"])
        killed = self.begin("a.log", env=dying_at(place))
        killed.communicate(timeout=TIMEOUT_S)
        self.assertEqual(KILLED, killed.returncode, place)
        job = self.begin_job("top", "--now")
        time.sleep(self.dice.random() * 0.5)
        self.count("a.log")
        self.assertEqual(EX_OK, self.ended(job), self.output)
        self.check_valid(every=False)
        self.rank()
        self.check_valid()

    def test_it_waits_for_a_batch_that_is_applied_in_part(self):
        """The writer died after some of its requests: the job finishes its batch before it reads any document."""
        self.count_events(events_of(self.dice, 20))
        for passes in range(1, 9):
            self.add(events_of(self.dice, 20))
            self.assertEqual(KILLED, self.ended(self.begin("a.log", env=dying_at(f"mongo.applying:{passes}"))), self.output)
            self.rank("--now")
            with self.subTest(passes=passes):
                self.check_valid(every=False)
                self.assertLess(0, len(self.valid("pages")))

    def test_killed_anywhere_while_it_counts(self):
        """Late events all the time, a writer and two jobs that die anywhere."""
        self.count_events(events_of(self.dice, 20))
        for _ in range(ROUNDS):
            self.add(events_of(self.dice, 60))
            going = [self.begin("a.log", env=dying_at(draw_death(self.dice, failpoints("mongo."), 3)))]
            for _ in range(2):
                going.append(self.begin_job("top", "--now", env=dying_at(draw_death(self.dice, failpoints("top."), 8))))
            for one in going:
                self.assertIn(self.ended(one), (EX_OK, EX_TEMPFAIL, KILLED), self.output)
            self.forget_leases()
            self.count("a.log")
            self.check_valid(every=False)
        self.rank("--now")
        self.check_valid()
        self.serve()
        self.check_scans(list(self.questions()), RANKED)


class Again(TopCase):
    def test_rebuild_ranks_what_no_batch_said(self):
        self.count_events(events_of(self.dice, 100))
        self.rank()
        for report in RANKED:
            self.base[f"{report}.top"].delete_many({})  # as a version without rankings leaves it
        self.assertIn("nothing waits", self.rank())
        self.rank("--rebuild", "2026-01-30", "2026-02-04")
        for report in RANKED:
            emptied = self.base[f"{report}.top"].delete_many({"measures.hits.total": 0}).deleted_count
            self.assertGreater(emptied, 0)  # hours of which nothing is known are ranked, too
        self.check_valid()
        month = self.base["pages.month"].find_one({"metadata.date": datetime.datetime(2026, 1, 1)})
        day = min(month["daily"], key=int)
        before = self.valid("pages")[f"day/202601{int(day):02}"]["measures"]["hits"]["total"]
        self.base["pages.month"].update_one({"_id": month["_id"]}, {"$inc": {f"daily.{day}": 5}})
        self.rank("--rebuild", f"2026-01-{day}T12:00", f"2026-01-{day}T12:01")
        self.assertEqual(before + 5, self.valid("pages")[f"day/202601{int(day):02}"]["measures"]["hits"]["total"])

    def test_rebuild_asks_for_many_periods_at_once(self):
        self.count_events(events_of(self.dice, 100))
        self.rank()
        between = proxy.Proxy(self.server.port)
        self.addCleanup(between.close)
        said = self.tallyd("job", "run", "top", "--rebuild", "2026-01-30", "2026-02-04", "-c", "tallyd.yaml",
                           "--store", f"mongodb://127.0.0.1:{between.port}/{self.name}")
        ranked = sum(line.startswith("pages ") for line in said.splitlines())
        self.assertGreater(ranked, 5 * 24)
        self.assertLess(between.commands["update", "pages.top"], ranked + 10)  # each is set by one, and a month marked
        for report in RANKED:
            self.base[f"{report}.top"].delete_many({"measures.hits.total": 0})
        self.check_valid()

    def test_rebuild_ranks_what_was_deleted_by_hand(self):
        self.count_events(events_of(self.dice, 100))
        self.rank()
        for kind in "day", "month":
            self.base[f"pages.{kind}"].delete_many({"metadata.date": {"$lt": datetime.datetime(2026, 2, 1)}})
        kept = {name: one["written"] for name, one in self.valid("pages").items() if name.split("/")[1] >= "202602"}
        self.rank("--rebuild", "2026-01-01", "2026-02-01")
        found = self.valid("pages")
        totals = {one["measures"]["hits"]["total"] for name, one in found.items() if name.split("/")[1] < "202602"}
        self.assertEqual({0}, totals)
        self.assertEqual(kept, {name: found[name]["written"] for name in kept})
        self.assertEqual(set(), self.waiting("pages"))


class Daemon(TopCase):
    def test_the_daemon_does_it_and_lets_go(self):
        now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None, microsecond=0)
        old, lately = now.replace(minute=0, second=0) - 30 * DAY, now - 26 * HOUR
        times = old, lately - HOUR, lately  # two hours in turn, since expiry does not believe one alone
        self.events = [Event(at, "GET", path, 7) for at in times for path in self.dice.sample(PATHS, 5)]
        following = FOLLOWING % (REPORTS, self.server.port, self.name, "")
        self.write("a.log", lines_of(self.events))
        self.write("tallyd.yaml", (following + "jobs: {rollup_after: 1s}\n").encode())
        self.launch("-c", "tallyd.yaml")
        name = f"hour/{lately:%Y%m%d%H}"
        self.wait_for_job(lambda: name in self.valid("pages") and name in self.valid("moments"))
        self.append("a.log", lines_of([Event(lately, "GET", "/late", 7)]))
        self.wait_for_job(lambda: any(one["metadata"] == {"path": "/late"} for one in
                                      self.valid("pages").get(name, {"measures": {"hits": {"top": []}}})["measures"]["hits"]["top"]))
        self.wait_for_job(lambda: f"hour/{old:%Y%m%d%H}" in self.valid("pages"))
        self.assertRegex(self.get("/metrics"), r"(?m)^tallyd_top_periods_total [1-9]")
        self.wait_for_job(lambda: "tallyd_job_periods_waiting 0\n" in self.get("/metrics"))
        self.stop()
        kept = following.replace("most: max(bytes)}}", "most: max(bytes)}, keep: {minute: 48h, hour: 7d, day: forever}}")
        self.write("tallyd.yaml", (kept + "jobs: {rollup_after: 1h}\n").encode())
        self.append("a.log", lines_of([Event(lately, "GET", "/later", 7)]))
        self.launch("-c", "tallyd.yaml")
        self.wait_for_job(lambda: f"hour/{old:%Y%m%d%H}" not in self.documents("pages"))
        self.wait_for_job(lambda: name not in self.valid("pages"))
        waits = lambda: sum(map(int, re.findall(r"(?m)^(?:rollup|top) +\S+ +(\d+)", self.tallyd("job", "list", "-c", "tallyd.yaml"))))
        self.assertGreater(waits(), 0)
        self.wait_for_job(lambda: f"tallyd_job_periods_waiting {waits()}\n" in self.get("/metrics"))
        self.stop()
        left = set(self.documents("pages"))
        self.assertLessEqual({name, f"day/{old:%Y%m%d}", f"month/{old:%Y%m}"}, left)
        self.assertFalse([one for one in left if one.startswith(f"hour/{old:%Y%m%d}")])


if __name__ == "__main__":
    main()
