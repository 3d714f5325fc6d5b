#!/usr/bin/env python3
"""Histograms and distinct counts say what sorted numbers and sets say, however their lines were counted.

The judge knows the log and the answers only. The log is imported in pieces by imports that die at random failpoints,
then followed by a daemon that dies, too. The seed is printed; TALLYD_SEED repeats a run.
"""

import bisect
import collections
import contextlib
import csv
import json
import os
import signal
import sqlite3
import time
import unittest
import urllib.parse

from harness import EX_CONFIG, EX_UNAVAILABLE, DaemonCase, dice, draw_death, dying_at, failpoints

LINES = int(os.environ.get("TALLYD_LINES") or 12000)
MINUTE, HOUR, DAY = 60, 3600, 86400
BEGIN = 1767571200  # 2026-01-05
DAYS = 3
MILLION = 10**6
JITTER_S = 60
FED = 100  # lines: of some minutes in the busy hours, few enough for SQLite's fresh rows, which are folded later
STEPS = {"minute": MINUTE, "hour": HOUR, "day": DAY, None: None}
PATHS = ["/", "/a", "/a/b", "/c x", "/rare", "/d", "/e"]
EXACT_MAX, EXACT_SURE = 600, 50  # texts: exact, but for one count in 300 that is 1 too small; and surely exact, about
QUANTILES = {"p50": 500000, "p90": 900000, "p99": 990000, "p99.9": 999000}
DIFFERENCES = 1  # the status of verify


def config(pages="", keep=""):
    return f"""
sources:
  a: {{path: a.log, decode: [logfmt]}}
reports:
  site: {{measures: {{hits: count, latency: histogram(duration), visitors: distinct(host)}}{keep}}}
  pages: {{by: [path], measures: {{hits: count, latency: histogram(duration), visitors: distinct(host)}}{pages}}}
aggregate: {{batch_size: 64KiB, flush: 100ms}}
query: {{points_max: 100000}}
http: {{listen: "127.0.0.1:0"}}
""".encode()


def iso(at):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def draw(rolls, count, begin, end):
    """Events: (time, path, duration in millionths or None, host or None). Half of them are of two hours."""
    events, busy = [], begin + (end - begin) // HOUR // 2 * HOUR
    for _ in range(count):
        at = busy + rolls.randrange(2 * HOUR) if rolls.random() < 0.5 else rolls.randrange(begin, end)
        path = PATHS[min(int(rolls.expovariate(0.7)), len(PATHS) - 1)]
        seconds = rolls.choice([rolls.lognormvariate(-2, 1.5), rolls.random() * 0.01, rolls.choice([0, 0.25, 3])])
        host = f"h{rolls.randrange(40 if path == '/rare' else 4000)}.example"
        events.append((at, path, None if rolls.random() < 0.05 else round(seconds * MILLION),
                       None if rolls.random() < 0.05 else host))
    return events


def written(event):
    at, path, duration, host = event
    return (f'time={iso(at)} path="{path}"' + ("" if host is None else f" host={host}") +
            ("" if duration is None else f" duration={duration // MILLION}.{duration % MILLION:06}") + "\n").encode()


class Bucket:
    """The events of a time bucket, or all of them."""

    def __init__(self):
        self.hits, self.hosts_seen, self.numbers, self.hosts = 0, 0, [], set()

    def add(self, event):
        self.hits += 1
        if event[2] is not None:
            self.numbers.append(event[2])
        if event[3] is not None:
            self.hosts.add(event[3])
            self.hosts_seen += 1

    def share(self, limit):
        return bisect.bisect_right(self.numbers, limit) / len(self.numbers)


def buckets(events, step, path=None):
    """{begin of the bucket: what was in it}, of all paths or of one; without a step by None."""
    found = collections.defaultdict(Bucket)
    for event in events:
        if path in (None, event[1]):
            found[None if step is None else iso(event[0] // step * step)].add(event)
    for bucket in found.values():
        bucket.numbers.sort()
    return found


# Texts that are the same if they are written one behind the other, or with some separator between them.
PARTS = ["a", "ab", "abc", "b", "bc", "c", "a b", "b c", "a,b", "b,c", "a\\tb", "b\\tc"]
# Measures, and the positions of their fields in an event.
COMBINATIONS = {"pairs": ("distinct(host, agent)", (2, 3)), "triples": ("distinct( zone,host , agent)", (2, 3, 4)),
                "areas": ("distinct(path:1, host)", (5, 2))}


def config_of_combinations(more=""):
    measures = ", ".join(f'{name}: "{expression}"' for name, (expression, _) in COMBINATIONS.items())
    return f"""
sources: {{a: {{path: a.log, decode: [logfmt]}}}}
reports:
  site: {{measures: {{hits: count, {measures}}}}}
  pages: {{by: [path], measures: {{hits: count, {measures}}}}}
{more}
aggregate: {{batch_size: 64KiB}}
""".encode()


def draw_combinations(rolls, count, begin, end):
    """Events: (time, path, host, agent, zone, first segment of the path); the middle three may be None."""
    events = []
    for _ in range(count):
        path = rolls.choice(PATHS)
        texts = [None if rolls.random() < 0.1 else rolls.choice(PARTS) for _ in range(3)]
        events.append((rolls.randrange(begin, end), path, *texts, "/" + path.split("/")[1]))
    return sorted(events, key=lambda event: event[0])


def combination_written(event, more=""):
    fields = [f' {name}="{text}"' for name, text in zip(("host", "agent", "zone"), event[2:5]) if text is not None]
    return f'time={iso(event[0])} path="{event[1]}"{"".join(fields)}{more}\n'.encode()


def check_combinations(case, events, ask):
    """ask(report, measure, *arguments) gives rows of CSV; a naive look at the events is the judge."""
    for report, how, name in (("site", ["--step", "hour"], lambda event: iso(event[0] // HOUR * HOUR)),
                              ("site", [], lambda event: None), ("pages", ["--top", "9"], lambda event: event[1])):
        for measure, (_, positions) in COMBINATIONS.items():
            tuples = collections.defaultdict(list)
            for event in events:
                texts = tuple(event[position] for position in positions)
                tuples[name(event)] += [] if None in texts else [texts]
            for figure in (measure, f"count({measure})"):
                found = {row.get("path") or row.get("time") if how else None: int(row["value"])
                         for row in csv.DictReader(ask(report, figure, *how).splitlines())}
                case.assertLessEqual({key for key, those in tuples.items() if those}, {*found})
                for key, value in found.items():
                    count, those = len(set(tuples[key])), tuples[key]
                    if figure != measure:
                        case.assertEqual(len(those), value, f"{figure} of {key}")
                    elif count < EXACT_MAX:
                        case.assertIn(value, (count, count - (count > EXACT_SURE)), f"{figure} of {key}")
                    else:
                        case.assertLessEqual(abs(value - count), 0.06 * count, f"{figure} of {key}")


class Combinations(DaemonCase):
    """distinct() of several fields: how many different combinations of texts."""

    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.span = BEGIN, BEGIN + DAY
        self.write("tallyd.yaml", config_of_combinations())
        self.events = draw_combinations(self.dice, LINES // 2, *self.span)
        self.write("a.log", b"".join(map(combination_written, self.events)))

    def ask(self, report, measure, *arguments, store="tallyd.db"):
        return self.tallyd("query", report, "-c", "tallyd.yaml", "--store", f"sqlite:{store}", "--measure", measure, "--from",
                           iso(self.span[0]), "--to", iso(self.span[1]), "--format", "csv-raw", *arguments)

    def check(self, store="tallyd.db"):
        check_combinations(self, self.events, lambda *question: self.ask(*question, store=store))
        self.tallyd("verify", "-c", "tallyd.yaml", "--store", f"sqlite:{store}", "--store-only")

    def test_counted_by_dying_imports_and_copied(self):
        arguments = "import", "-q", "-c", "tallyd.yaml", "a.log"
        self.tallyd(*arguments, status=-9, env=dying_at("store.before_commit"))
        self.tallyd(*arguments)
        self.check()
        self.tallyd("verify", "-c", "tallyd.yaml")
        self.tallyd("admin", "copy", "sqlite:tallyd.db", "sqlite:copy.db")
        self.check("copy.db")
        self.tallyd("forget", "--yes", "-c", "tallyd.yaml", "a.log", status=EX_UNAVAILABLE)
        self.assertIn("distinct(agent, host)", self.err)

    def test_definitions_are_the_same_in_any_order_of_fields(self):
        self.tallyd("import", "-q", "-c", "tallyd.yaml", "a.log")
        self.write("tallyd.yaml", config_of_combinations().replace(b"distinct(host, agent)", b"distinct(agent,host)"))
        self.append("a.log", combination_written(self.events[-1]))
        self.events.append(self.events[-1])
        self.tallyd("import", "-q", "-c", "tallyd.yaml", "a.log")
        self.check()
        self.assertIn('pairs: "distinct(agent, host)"', self.tallyd("check", "--print", "-c", "tallyd.yaml"))
        with contextlib.closing(sqlite3.connect(self.path("tallyd.db"))) as base:
            definitions = [text for text, in base.execute("SELECT definition FROM report")]
        self.assertEqual(2, len(definitions))
        for text in definitions:
            self.assertIn("measure pairs distinct(agent, host)\n", text)
            self.assertIn("measure triples distinct(agent, host, zone)\n", text)

    def test_backfill_counts_what_a_report_missed(self):
        whole = config_of_combinations()
        self.write("tallyd.yaml", b"".join(line for line in whole.splitlines(True) if not line.startswith(b"  pages:")))
        self.tallyd("import", "-q", "-c", "tallyd.yaml", "a.log")
        self.write("tallyd.yaml", whole)
        self.tallyd("backfill", "-q", "-c", "tallyd.yaml", "pages", "a.log")
        self.check()

    def test_wrong_ones_are_refused(self):
        for expression, word in (("distinct(host, host)", "twice"), ("distinct(host, bytes)", '"bytes"'),
                                 ("distinct(host, agent, path, zone, status)", "at most 4")):
            more = f"  wrong: {{measures: {{n: '{expression}'}}}}"
            self.write("tallyd.yaml", config_of_combinations(more))
            said = self.tallyd("check", "-c", "tallyd.yaml", status=EX_CONFIG) + self.err
            self.assertIn(word, said)
            self.assertIn("tallyd.yaml:6:", said)


class Sketches(DaemonCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.write("tallyd.yaml", config())
        self.span = (BEGIN, BEGIN + DAYS * DAY)

    def ask(self, report, measure, *arguments, store="tallyd.db", form="csv-raw", span=None):
        begin, end = span or self.span
        return self.tallyd("query", report, "-c", "tallyd.yaml", "--store", f"sqlite:{store}", "--measure", measure, "--from",
                           iso(begin), "--to", iso(end), "--format", form, *arguments)

    # ---- the judge

    def near(self, expected, found, what):
        """Both are in millionths."""
        self.assertLessEqual(abs(found - expected), 0.022 * abs(expected) + 0.5, f"{what}: {found}, expected {expected}")

    def judge_quantile(self, bucket, millionths, found, what):
        rank = max(1, -(-millionths * len(bucket.numbers) // MILLION))
        self.near(bucket.numbers[rank - 1], found, what)

    def judge_distinct(self, bucket, found, what):
        count = len(bucket.hosts)
        if count < EXACT_MAX:
            self.assertIn(found, (count, count - (count > EXACT_SURE)), what)
        else:
            self.assertLessEqual(abs(found - count), 0.06 * count, what)

    def judge(self, measure, bucket, value, what):
        name, numbers = measure.split("(")[0], bucket.numbers
        if measure == "hits":
            self.assertEqual(bucket.hits, int(value), what)
        elif measure == "visitors":
            self.judge_distinct(bucket, int(value), what)
        elif measure == "count(visitors)":
            self.assertEqual(bucket.hosts_seen, int(value), what)
        elif name == "count":
            self.assertEqual(len(numbers), int(value), what)
        elif not numbers:
            self.assertEqual("", value, what)
        elif name == "mean":
            self.assertAlmostEqual(sum(numbers) / len(numbers), float(value) * MILLION, delta=1, msg=what)
        elif name == "share":
            limit = float(measure.split("<=")[1].rstrip(")")) * MILLION
            self.assertLessEqual(bucket.share(limit / 1.045 - 1) - 2e-6, float(value), what)
            self.assertGreaterEqual(bucket.share(limit * 1.045 + 1) + 2e-6, float(value), what)
        elif name in ("min", "max"):
            self.near(numbers[0 if name == "min" else -1], float(value) * MILLION, what)
        else:
            quantile = QUANTILES.get(name) or round(float(measure.split("(")[1].split(",")[0]) * MILLION)
            self.judge_quantile(bucket, quantile, float(value) * MILLION, what)

    def check_figure(self, events, measure, step, path=None, store="tallyd.db", span=None, report=None):
        expected = buckets(events, STEPS[step], path)
        arguments = (["--step", step] if step else []) + ([] if path is None else ["--filter", f"path={path}"])
        report = report or ("site" if path is None else "pages")
        rows = list(csv.DictReader(self.ask(report, measure, *arguments, store=store, span=span).splitlines()))
        for row in rows:
            at = row["time"] if step else None
            self.judge(measure, expected.get(at, Bucket()), row["value"], f"{measure} of {path} by {step} at {at}")
        self.assertLessEqual(set(expected), {row["time"] for row in rows} if step else {None})

    def check(self, events, store="tallyd.db", steps=tuple(STEPS), paths=(None, "/", "/rare"), span=None):
        some = f"quantile(0.{self.dice.randrange(1, 1000):03}, latency)", f"share(latency <= {self.dice.random():.3f})"
        for measure in (*(f"{name}(latency)" for name in QUANTILES), "quantile(0.123, latency)", "min(latency)", *some,
                        "share(latency <= 0.25)", "max(latency)", "mean(latency)", "count(latency)", "visitors",
                        "count(visitors)", "hits"):
            for path in paths:
                for step in steps:
                    if path is None or step in ("hour", None):
                        self.check_figure(events, measure, step, path, store, span)

    def top_of_command(self, measure):
        answer = json.loads(self.ask("pages", measure, "--top", "9", form="json"))
        return [(row["series"]["path"], row["values"][0]) for row in answer["top"]]

    def top_of_daemon(self, measure):
        answer = json.loads(self.get("/api/v1/top?" + urllib.parse.urlencode(
            {"report": "pages", "measure": measure, "from": iso(self.span[0]), "to": iso(self.span[1])})))
        self.judge(measure, buckets(self.events, None)[None], answer["total"], f"{measure} of all in the ranking")
        return [(row["series"]["path"], row["value"]) for row in answer["series"]]

    def check_top(self, events, top):
        for measure in ("p99(latency)", "visitors"):
            found = top(measure)
            self.assertEqual(sorted(PATHS), sorted(path for path, _ in found))
            self.assertEqual(sorted((value for _, value in found), reverse=True), [value for _, value in found])
            for path, value in found:
                self.judge(measure, buckets(events, None, path)[None], value, f"{measure} of {path} in the ranking")

    # ---- ways to count

    def import_killed(self, *arguments):
        """Import a.log, by imports that die until one does not. Returns how many died."""
        deaths = 0
        while True:
            place = "store.before_commit" if deaths == 0 else draw_death(self.dice, failpoints("store."), 3)
            self.tallyd("import", "-q", "-c", "tallyd.yaml", *arguments, "a.log", status=None, env=dying_at(place))
            self.assertIn(self.status, (0, -9), f"{place}\n{self.err}")
            if self.status == 0:
                return deaths
            deaths += 1

    def follow_killed(self, lines):
        """Append lines while a daemon follows them, which is killed and begun again in the midst."""
        third = len(lines) // 3
        for part in lines[:third], lines[third:2 * third], lines[2 * third:]:
            process = self.launch("-c", "tallyd.yaml")
            for at in range(0, len(part), FED):
                self.append("a.log", b"".join(part[at:at + FED]))
                time.sleep(self.dice.random() * 0.2)
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.launch("-c", "tallyd.yaml")
        self.wait_for(self.booked, lambda booked: booked == (LINES, LINES))

    def verify(self, *arguments, status=0):
        return self.tallyd("verify", "-c", "tallyd.yaml", *arguments, status=status)

    def test_counted_by_dying_imports_and_daemons(self):
        events = draw(self.dice, LINES, *self.span)
        events = self.events = sorted(events, key=lambda event: event[0] + self.dice.random() * JITTER_S)
        lines = [written(event) for event in events]
        cuts = [0, *sorted(self.dice.sample(range(1, LINES // 4), 2)), LINES // 4]
        deaths = 0
        for begin, end in zip(cuts, cuts[1:]):
            self.append("a.log", b"".join(lines[begin:end]))
            deaths += self.import_killed()
        self.follow_killed(lines[LINES // 4:])
        self.check_top(events, self.top_of_daemon)
        for measure in "p99(latency)", "visitors", "all":
            self.assertEqual(json.loads(self.ask("site", measure, "--step", "hour", form="json")), json.loads(self.get(
                "/api/v1/query?" + urllib.parse.urlencode({"report": "site", "measure": measure, "step": "hour",
                                                          "from": iso(self.span[0]), "to": iso(self.span[1])}))))
        self.stop()
        self.check(events)
        self.check_top(events, self.top_of_command)
        self.verify()
        self.verify("--store-only")
        print(f"{deaths} imports died")
        self.change_histogram()
        self.assertIn("site \"\" latency 2026-01-0", self.verify(status=DIFFERENCES))
        self.assertIn("site \"\" latency 2026-01-0", self.verify("--store-only", status=DIFFERENCES))

    def change_histogram(self):
        """Move the numbers of an hour to the next buckets, beside the store (store/sqlite/tight.h)."""
        with contextlib.closing(sqlite3.connect(self.path("tallyd.db"))) as base, base:
            at, body = base.execute("SELECT at, body FROM day_1 ORDER BY at LIMIT 1").fetchone()
            here = 0
            for _ in range(3 + 5 + 1):  # series, length, slot; the columns; the histogram's length
                while body[here] & 0x80:
                    here += 1
                here += 1
            bits = int.from_bytes(body[here:], "little")

            def after_gamma(begin):
                return begin + 2 * ((bits >> begin & -(bits >> begin)).bit_length() - 1) + 1
            slot = after_gamma(after_gamma(0)) + 4  # behind how many buckets there are, and the shifts
            changed = (bits ^ 2 << slot).to_bytes(len(body) - here, "little")
            base.execute("UPDATE day_1 SET body = ? WHERE at = ?", (body[:here] + changed, at))
            base.commit()
            base.execute("VACUUM")  # else the page's checksum tells of the change

    def answers(self, store):
        questions = [("site", "all", "--step", step) for step in ("minute", "hour", "day")]
        questions += [("pages", measure, "--top", "9") for measure in ("p99(latency)", "visitors", "hits")]
        questions += [("pages", "all", "--filter", f"path={path}", "--step", "hour") for path in PATHS]
        return [self.ask(*question, store=store, form="json") for question in questions]

    def assert_same(self, expected, found):
        """Compare two lists of long answers; unittest would compute for minutes how they differ."""
        self.assertEqual(len(expected), len(found))
        for one, two in zip(expected, found):
            if one != two:
                at = len(os.path.commonprefix([one, two]))
                self.fail(f"…{one[max(0, at - 60):at + 60]}… is …{two[max(0, at - 60):at + 60]}…")

    def test_any_order_and_any_number_of_threads_give_the_same_answers(self):
        lines = [written(event) for event in draw(self.dice, LINES, *self.span)]
        expected = None
        for threads in 1, 2, 2:
            store = f"store{self.dice.random()}.db"
            self.dice.shuffle(lines)
            cut = self.dice.randrange(LINES)
            for number, part in enumerate((lines[:cut], lines[cut:])):
                name = self.write(f"part{number}.log", b"".join(part))
                self.tallyd("import", "-q", "-c", "tallyd.yaml", "--decode", "logfmt", "--store", f"sqlite:{store}",
                            "-j", str(threads), name)
            expected = expected or self.answers(store)
            self.assert_same(expected, self.answers(store))

    def test_longer_resolutions_outlive_expired_minutes(self):
        self.write("tallyd.yaml", config(keep=", keep: {minute: 3h, hour: 2d, day: 40d}"))
        today = int(time.time()) // DAY * DAY
        self.span = today - 8 * DAY, today
        events = draw(self.dice, LINES // 2, *self.span)
        self.write("a.log", b"".join(map(written, events)))
        self.tallyd("import", "-c", "tallyd.yaml", "a.log")
        self.tallyd("job", "run", "expire", "-c", "tallyd.yaml")
        self.check(events, steps=("day", None), paths=(None,))
        self.assertIn("expired", self.tallyd("query", "site", "-c", "tallyd.yaml", "--from", iso(self.span[0]), "--to",
                                             iso(self.span[1]), "--step", "hour", status=None) + self.err)
        self.verify()
        self.verify("--store-only")

    def test_series_beyond_the_limit_are_in_other(self):
        self.write("tallyd.yaml", config(pages=", series_max: 3"))
        events = draw(self.dice, LINES // 2, *self.span)
        self.write("a.log", b"".join(map(written, events)))
        self.tallyd("import", "-c", "tallyd.yaml", "a.log")
        top = json.loads(self.ask("pages", "visitors", "--top", "9", form="json"))["top"]
        paths = {row["series"]["path"] for row in top}
        self.assertEqual(4, len(paths))
        self.assertIn("(other)", paths)
        other = [("(other)" if event[1] not in paths else event[1]) for event in events]
        moved = [(event[0], path, *event[2:]) for event, path in zip(events, other)]
        for measure in "p50(latency)", "max(latency)", "count(latency)", "visitors":
            self.check_figure(events, measure, "hour", report="pages")
            for row in csv.DictReader(self.ask("pages", measure, "--top", "9").splitlines()):
                self.judge(measure, buckets(moved, None, row["path"])[None], row["value"], f"{measure} of {row['path']}")
        self.verify()
        self.verify("--store-only")

    def test_zeros_do_not_make_a_ranking_too_large(self):
        """Each page has a zero beside its other numbers, as pages do that are also asked by HEAD."""
        self.write("tallyd.yaml", config().replace(b"points_max: 100000", b"sketches_max: 1MiB"))
        durations = [0, 6 * MILLION, 8 * MILLION, 12 * MILLION, 16 * MILLION, 20 * MILLION]
        self.import_all([(self.span[0], f"/{page}", duration, None) for page in range(1000) for duration in durations])
        top = json.loads(self.ask("pages", "p99(latency)", "--top", "2", form="json"))["top"]
        self.assertEqual(2, len(top))
        for row in top:
            self.near(20 * MILLION, float(row["values"][0]) * MILLION, row["series"]["path"])

    def import_all(self, *events, store="tallyd.db"):
        """Import a file for each list of events. Returns the files' names."""
        names = [self.write(f"{chr(ord('a') + number)}.log", b"".join(map(written, those))) for number, those in enumerate(events)]
        self.tallyd("import", "-q", "-c", "tallyd.yaml", "--decode", "logfmt", "--store", f"sqlite:{store}", *names)
        return names

    def test_a_copy_gives_the_same_answers(self):
        self.import_all(draw(self.dice, LINES // 2, *self.span))
        self.tallyd("admin", "copy", "sqlite:tallyd.db", "sqlite:copy.db")
        self.assert_same(self.answers("tallyd.db"), self.answers("copy.db"))
        self.verify("--store-only", "--store", "sqlite:copy.db")

    def test_a_forgotten_file_leaves_what_the_other_one_had(self):
        one, two = (draw(self.dice, LINES // 4, *self.span) for _ in range(2))
        self.import_all(one, two)
        self.tallyd("forget", "--yes", "-c", "tallyd.yaml", "--decode", "logfmt", "b.log", status=EX_UNAVAILABLE)
        self.assertIn("distinct(host)", self.err)
        self.write("tallyd.yaml", config().replace(b", visitors: distinct(host)", b""))
        self.import_all(one, two, store="both.db")
        self.import_all(one, store="one.db")
        self.tallyd("forget", "--yes", "-c", "tallyd.yaml", "--decode", "logfmt", "--store", "sqlite:both.db", "b.log")
        for report, *how in ("site", "--step", "minute"), ("site", "--step", "day"), ("pages", "--filter", "path=/"):
            self.assertEqual(*(self.ask(report, "all", *how, store=store, form="json") for store in ("one.db", "both.db")))
        self.verify("--store-only", "--store", "sqlite:both.db")

    def test_backfill_counts_what_a_report_missed(self):
        events = draw(self.dice, LINES // 2, *self.span)
        self.import_all(events, store="whole.db")
        whole = config()
        self.write("tallyd.yaml", b"".join(line for line in whole.splitlines(True) if not line.startswith(b"  pages:")))
        self.import_all(events)
        self.write("tallyd.yaml", whole)
        self.tallyd("backfill", "-q", "-c", "tallyd.yaml", "--decode", "logfmt", "pages", "a.log")
        self.assert_same(self.answers("whole.db"), self.answers("tallyd.db"))


if __name__ == "__main__":
    unittest.main()
