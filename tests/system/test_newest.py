#!/usr/bin/env python3
"""`newest: N`: a report keeps the newest events of each series and day, each once, whatever is killed and in whatever order it comes.

The judge recounts the logs and reads the store's bytes by Python (newestcase.py). The seed is printed; TALLYD_SEED repeats a run.
"""

import contextlib
import csv
import json
import os
import re
import sqlite3
import unittest

from harness import EX_CONFIG, EX_DATAERR, EX_OK, EX_UNAVAILABLE, EX_USAGE, DaemonCase, dice, draw_death, dying_at, failpoints
from newestcase import DAY_MS, events_of, make_log, newest_of, read_packed, shortened
from samplecase import draws, salt

NEWEST = {"pages": 7, "site": 20, "few": 150}
SMALL = "aggregate: {batch_size: 64KiB}\n"
REPORTS = """\
reports:
  whole: {}
  pages: {by: [path], newest: 7}
  site: {newest: 20}
  few: {by: [path], where: [status>=400], newest: 150}
"""
KILLED = -9
WORD = re.compile('[!#-<>-~]+')  # needs no quotes in a table


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def with_damaged_members(body):
    """Packed events whose lengths, times and places are right: the first one's third member has no type, or ends elsewhere."""
    place = 1 + 4 + len(b"\x09time\0") + 8 + len(b"\x02at\0")  # the length of the text in it
    third = place + 4 + int.from_bytes(body[place:place + 4], "little")
    length = third + 1 + len(b"host\0")
    yield body[:third] + b"\x7f" + body[third + 1:]
    yield body[:length] + bytes([body[length] + 1]) + body[length + 1:]


class Newest(DaemonCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.write("tallyd.yaml", (REPORTS + SMALL).encode())

    def run_on(self, *arguments, store="tallyd.db", config="tallyd.yaml", **options):
        return self.tallyd(arguments[0], "-c", config, "--store", f"sqlite:{store}", *arguments[1:], **options)

    # ---- the judge

    def rows(self, store="tallyd.db"):
        """{report: {(series, day): the bytes}}"""
        found = {}
        with contextlib.closing(sqlite3.connect(self.path(store))) as base:
            for number, name in base.execute("SELECT id, name FROM report").fetchall():
                if not base.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (f"recent_{number}",)).fetchall():
                    continue
                keys = "".join(row[0] for row in base.execute(f"SELECT keys FROM series_{number} ORDER BY block"))
                keys = keys.split("\n") if keys else [""]
                found[name] = {(keys[at & (1 << 26) - 1], (at >> 26) * DAY_MS): body
                               for at, body in base.execute(f"SELECT at, body FROM recent_{number}")}
        return found

    def sources(self, store="tallyd.db"):
        with contextlib.closing(sqlite3.connect(self.path(store))) as base:
            return {os.path.basename(label): source for label, source in base.execute("SELECT label, source FROM position")}

    def check(self, logs, store="tallyd.db", reports=NEWEST, files=True, config="tallyd.yaml"):
        """`logs`: {file: bytes}. Returns the rows."""
        rows, sources = self.rows(store), self.sources(store)
        events = [event for name, log in logs.items() for event in events_of(log, sources[name])]
        for report, newest in reports.items():
            passing = [one for one in events if report != "few" or one[2]["status"] >= 400]
            expected = newest_of(passing, newest, by_path=report != "site")
            stored = {key: read_packed(body) for key, body in rows[report].items()}
            self.assertEqual({newest}, {limit for limit, _ in stored.values()})
            self.assertEqual(shortened(expected), shortened({key: some for key, (_, some) in stored.items()}), report)
        for more in list(logs) if files else None, ["--store-only"]:
            if more:
                self.run_on("verify", *more, store=store, config=config)
        return rows

    # ---- the tests

    def test_any_order_and_kills(self):
        logs = {f"{name}.log": make_log(self.dice, 1200) for name in "abc"}
        for name, log in logs.items():
            self.write(name, log)
        self.run_on("import", "-q", *logs)
        whole = self.check(logs)
        kills = 0
        for number, threads in enumerate((1, 3)):
            store = f"killed{number}.db"
            names = self.dice.sample(list(logs), 3)
            for _ in range(6):
                self.run_on("import", "-q", "-j", str(threads), *names, store=store, status=None,
                            env=dying_at(draw_death(self.dice, failpoints("store."), 4)))
                self.assertIn(self.status, (EX_OK, KILLED), self.err)
                kills += self.status == KILLED
            self.run_on("import", "-q", *names, store=store)
            self.assertEqual(whole, self.check(logs, store=store))
        self.write("alone.yaml", b"reports: {whole: {}}\n")
        self.run_on("import", "-q", *logs, store="late.db", config="alone.yaml")
        for report in NEWEST:
            self.run_on("backfill", "-q", report, "--from", "2026-01-05T12:00", "--to", "2026-01-06T05:00", *logs, store="late.db")
            self.run_on("backfill", "-q", report, *logs, store="late.db")
        self.assertEqual(whole, self.check(logs, store="late.db"))
        self.tallyd("admin", "backup", "--store", "sqlite:late.db", "back.db")
        self.assertEqual(whole, self.check(logs, store="back.db"))
        for _ in range(3):
            self.tallyd("admin", "copy", "sqlite:late.db", "sqlite:copy.db", status=None,
                        env=dying_at(draw_death(self.dice, failpoints("copy."), 3)))
            kills += self.status == KILLED
        if self.status == KILLED:
            self.tallyd("admin", "copy", "sqlite:late.db", "sqlite:copy.db")
        self.assertEqual(whole, self.check(logs, store="copy.db"))
        self.append("a.log", more := make_log(self.dice, 300))
        self.run_on("import", "-q", "a.log")
        self.run_on("import", "-q", "a.log", store="copy.db")
        self.check({**logs, "a.log": logs["a.log"] + more}, store="copy.db")
        self.check({**logs, "a.log": logs["a.log"] + more})
        print(f"{kills} kills")

    def test_answers(self):
        logs = {"a.log": make_log(self.dice, 600, days=3)}
        self.write("a.log", logs["a.log"])
        self.run_on("import", "-q", "a.log")
        events = sorted(events_of(logs["a.log"], self.sources()["a.log"]), key=lambda one: (one[2]["time"], one[2]["at"]), reverse=True)
        of_one = [event for path, _, event in events if path == "/1"]

        def answered(*arguments):
            answer = json.loads(self.run_on("query", *arguments, "--format", "json"))
            return answer["newest"]

        self.assertEqual([event["at"] for _, _, event in events[:20]], [one["at"] for one in answered("site", "--newest", "20")])
        # Each day has 7 of the series: 30 are of several days, and more than 7 cannot be asked for.
        found = answered("pages", "--filter", "path=/1", "--newest", "7")
        self.assertEqual([event["at"] for event in of_one[:7]], [one["at"] for one in found])
        self.assertEqual({"path": "/1"}, found[0]["series"])
        first = {**of_one[0]}
        self.assertEqual(first.pop("at"), found[0]["at"])
        del first["time"]
        self.assertEqual({name: str(text)[:200] for name, text in first.items()},
                         {name: str(text)[:200] for name, text in found[0]["event"].items()})
        early = [event["at"] for event in of_one if event["time"] < 1767657600000]  # 2026-01-06
        self.assertEqual(early[:7], [one["at"] for one in answered("pages", "--filter", "path=/1", "--newest", "7", "--to", "2026-01-06")])
        from_ms = of_one[3]["time"]
        late = [event["at"] for event in of_one if event["time"] >= from_ms][:7]
        self.assertEqual(late, [one["at"] for one in answered("pages", "--filter", "path=/1", "--newest", "7", "--from", str(from_ms // 1000))])
        self.assertEqual([], answered("pages", "--filter", "path=/none", "--newest", "7"))
        self.run_on("query", "pages", "--newest", "7", "--to", "2020-01-01")
        self.assertIn("nothing was counted in this range. The newest", self.err)
        rare = answered("few", "--newest", "150", "--filter", "path=/2")
        rare_expected = [event["at"] for path, _, event in events if path == "/2" and event["status"] == 404]
        self.assertEqual(rare_expected[:150], [one["at"] for one in rare])  # of all days
        rows = list(csv.DictReader(self.run_on("query", "pages", "--newest", "5", "--format", "csv").splitlines()))
        self.assertEqual([event["at"] for _, _, event in events[:5]], [row["at"] for row in rows])
        self.assertEqual([path for path, _, _ in events[:5]], [row["path"] for row in rows])
        self.launch("-c", "tallyd.yaml", "--listen", "127.0.0.1:0")
        for path in "query?report=pages&newest=5&filter=path=/1", "query?report=pages&newest=5&filter=path=/1&format=json":
            served = json.loads(self.get("/api/v1/" + path))
            self.assertEqual([event["at"] for event in of_one[:5]], [one["at"] for one in served["newest"]])
        self.assertIn(7, [one.get("newest") for one in json.loads(self.get("/api/v1/reports"))])
        by_daemon = self.tallyd("query", self.url, "site", "--newest", "2")
        self.assertEqual(self.run_on("query", "site", "--newest", "2"), by_daemon)
        self.stop()
        lines = self.run_on("query", "site", "--newest", "2", "--tz", "Europe/Berlin").splitlines()
        self.assertEqual(2, len(lines))
        self.assertRegex(lines[0], r'^2026-01-0\dT\d\d:\d\d:\d\d\+01:00 host=192\.0\.2\.\d .*request="GET /\d\?\d+ HTTP/1\.1" status=\d+')

    def test_odd_texts_of_two_dimensions(self):
        """Times have milliseconds; in a table a text that is no word has quotes; an absent dimension is a hyphen."""
        self.write("tallyd.yaml", b"query: {rows_max: 1000}\nreports:\n  pages: {by: [host, path], newest: 50}\n")
        events = []
        for number in range(80):
            at = f"2026-01-{5 + number // 40:02}T10:{number % 4:02}:00{f'.{number % 1000:03}' if number % 3 else ''}Z"
            events.append((at, self.dice.choice(["192.0.2.1", "2001:db8::1"]), self.dice.choice(["/a b", "", "/x=1", '/q"', "/plain", "/\x7f", "/é"])))
        self.write("a.log", "".join(json.dumps({"time": at, "host": host, "path": path, "status": 200}) + "\n"
                                    for at, host, path in events).encode())
        self.run_on("import", "-q", "--decode", "json", "a.log")
        newest = sorted(enumerate(events), key=lambda one: (one[1][0].rstrip("Z").ljust(23, "."), one[0]), reverse=True)
        newest = [(at, host, path.replace("\x7f", "%7F") or "-") for _, (at, host, path) in newest]
        for limit, words in (50, ()), (1, ()), (50, ("--filter", "path=/plain")), (9, ("--where", "host=2001:*", "--where", "path!=/a b")):
            wanted = [(at, host, path) for at, host, path in newest if not words or (words[-1] == "path=/plain" and path == "/plain")
                      or (len(words) == 4 and host.startswith("2001:") and path != "/a b")][:limit]
            lines = [f"{at} host={host} path={path if WORD.fullmatch(path) else quoted(path)} status=200" for at, host, path in wanted]
            self.assertEqual(lines, self.run_on("query", "pages", "--newest", str(limit), *words).splitlines())
            found = json.loads(self.run_on("query", "pages", "--newest", str(limit), *words, "--format", "json"))["newest"]
            self.assertEqual(wanted, [(one["time"], one["series"]["host"], one["series"]["path"]) for one in found])
            rows = csv.DictReader(self.run_on("query", "pages", "--newest", str(limit), *words, "--format", "csv-raw").splitlines())
            self.assertEqual([(*event, "200") for event in wanted], [(row["time"], row["host"], row["path"], row["status"]) for row in rows])
        self.write("a.log", make_log(self.dice, 5000, days=1, paths=2000))
        self.run_on("import", "-q", "a.log")
        self.run_on("query", "pages", "--newest", "50", status=EX_UNAVAILABLE)
        self.assertIn("more than 1000 rows of the store (query.rows_max): give filters, or a later `from`", self.err)

    def test_refusals(self):
        self.write("a.log", make_log(self.dice, 100))
        self.run_on("import", "-q", "a.log")
        for status, says, arguments in (
                (EX_USAGE, "at most 7", ("query", "pages", "--newest", "8")),
                (EX_USAGE, "keeps no newest events: with `newest: 50`", ("query", "whole", "--newest", "1")),
                (EX_USAGE, "leave out step, top and measure", ("query", "pages", "--newest", "1", "--step", "day")),
                (EX_USAGE, "start of such a day", ("query", "pages", "--newest", "1", "--to", "2026-01-06T01:00")),
                (EX_USAGE, "from 1 to 150", ("query", "pages", "--newest", "151")),
                (EX_UNAVAILABLE, "keeps its newest events, and nothing brings back", ("forget", "--yes", "a.log"))):
            self.run_on(*arguments, status=status)
            self.assertIn(says, self.err)
        self.write("new.yaml", (REPORTS.replace("pages:", "pages2:") + SMALL).encode())
        self.run_on("backfill", "-q", "pages2", "a.log", config="new.yaml")
        self.run_on("backfill", "pages2", "--take", "pages", "--from", "2026-01-06", "--to", "2026-01-07", config="new.yaml",
                    status=EX_CONFIG)
        self.assertIn("leave out --from and --to", self.err)
        before = self.rows()
        self.run_on("backfill", "-q", "pages2", "--take", "pages", "--drop-old", config="new.yaml")
        self.assertEqual(before["pages"], self.rows()["pages"])
        self.run_on("forget", "--yes", "site")
        self.assertNotIn("site", self.rows())
        self.write("other.yaml", (REPORTS.replace("newest: 150", "newest: 140") + SMALL).encode())
        self.run_on("import", "a.log", config="other.yaml", status=EX_CONFIG)
        self.assertIn("generation", self.err)
        for text, says in (("{newest: 151}", "0 to 150"), ("{newest_fields: [host]}", "without newest"),
                           ("{newest: 5, newest_fields: [hots]}", "host"),
                           ("{newest: 5, measures: {newest: count}}", "expected another name")):
            self.write("bad.yaml", f"reports: {{pages: {text}}}\n".encode())
            self.tallyd("check", "-c", "bad.yaml", status=EX_CONFIG)
            self.assertIn(says, self.err)

    def test_verify_finds_what_is_missing(self):
        logs = {"a.log": make_log(self.dice, 300)}
        self.write("a.log", logs["a.log"])
        self.run_on("import", "-q", "a.log")
        with contextlib.closing(sqlite3.connect(self.path("tallyd.db"), isolation_level=None)) as base:
            (number,), = base.execute("SELECT id FROM report WHERE name = 'pages'").fetchall()
            (at, body), = base.execute(f"SELECT at, body FROM recent_{number} ORDER BY at LIMIT 1").fetchall()
            length = int.from_bytes(body[1:5], "little")
            second = 1 + length + int.from_bytes(body[1 + length:5 + length], "little")  # where it ends
            for bad in (body[:1] + body[1 + length:], body[:1] + body[1 + length:1 + 2 * length] + body[1:1 + length], b"\x07\x01",
                        body[:1] + 2 * body[1:1 + length] + body[second:], *with_damaged_members(body), None):
                if bad is None:
                    base.execute(f"DELETE FROM recent_{number} WHERE at = ?", (at,))
                else:
                    base.execute(f"UPDATE recent_{number} SET body = ? WHERE at = ?", (bad, at))
                base.execute("VACUUM")
                for arguments in ("verify", "a.log"), ("verify", "--store-only"):
                    with self.subTest(bad=bad and len(bad), arguments=arguments):
                        out = self.run_on(*arguments, status=1)
                        self.assertIn("newest events", out + self.err)
            base.execute(f"INSERT INTO recent_{number} VALUES (?, ?), (?, ?)", (at, body, at + (9 << 26), body))
            self.assertIn("7 newest events, but by its count 0\n", self.run_on("verify", "--store-only", status=1))
            self.assertEqual(1, self.run_on("verify", "a.log", status=1).count("stored ones are not those that were recounted"))

    def test_a_query_finds_damage(self):
        self.write("a.log", make_log(self.dice, 300))
        self.run_on("import", "-q", "a.log")
        with contextlib.closing(sqlite3.connect(self.path("tallyd.db"), isolation_level=None)) as base:
            (number,), = base.execute("SELECT id FROM report WHERE name = 'site'").fetchall()
            (at, body), = base.execute(f"SELECT at, body FROM recent_{number} ORDER BY at DESC LIMIT 1").fetchall()
            for bad in b"\0" + body[1:], b"\1" + body[1:], body[:-1], b"", *with_damaged_members(body):
                with self.subTest(bad=bad[:1], length=len(bad)):
                    base.execute(f"UPDATE recent_{number} SET body = ? WHERE at = ?", (bad, at))
                    self.run_on("query", "site", "--newest", "20", status=EX_DATAERR)
                    self.assertIn("newest events of report site do not decode", self.err)

    def test_other_sample_and_fields(self):
        self.write("tallyd.yaml", b"reports:\n  pages: {by: [path], newest: 4, series_max: 2}\n"
                                  b"  drawn: {newest: 9, sample: 1/3}\n  named: {newest: 3, newest_fields: [path, bytes]}\n"
                                  b"  hosts: {by: [host], newest: 3}\n")
        self.write("a.log", log := make_log(self.dice, 200, days=1))
        self.run_on("import", "-q", "-j", "1", "a.log")
        events = list(events_of(log, source := self.sources()["a.log"]))
        found = json.loads(self.run_on("query", "pages", "--newest", "4", "--format", "json"))["newest"]
        self.assertEqual(sorted((event["at"] for _, _, event in events), key=lambda at: next(
            (event["time"], event["at"]) for _, _, event in events if event["at"] == at))[:-5:-1], [one["at"] for one in found])
        other = json.loads(self.run_on("query", "pages", "--newest", "4", "--filter", "path=(other)", "--format", "json"))["newest"]
        self.assertEqual(4, len(other))
        drawn = [one for one in events if draws(salt(source), int(one[2]["at"].split("/")[-1]), 3)]
        self.assertEqual(shortened(newest_of(drawn, 9, by_path=False)),
                         shortened({key: read_packed(body)[1] for key, body in self.rows()["drawn"].items()}))
        for (_, _), body in self.rows()["named"].items():
            for event in read_packed(body)[1]:
                self.assertLessEqual(set(event), {"time", "at", "path", "response_size"})
                self.assertIn("path", event)
        head = self.run_on("query", "hosts", "--newest", "3", "--format", "csv").splitlines()[0].split(",")
        self.assertEqual(["time", "host", "at"], head[:3])
        self.assertEqual(len(set(head)), len(head))
        self.assertEqual([1] * 3, [line.count(" host=") for line in self.run_on("query", "hosts", "--newest", "3").splitlines()])
        self.run_on("verify", "a.log")
        self.run_on("verify", "--store-only")

    def test_expiry(self):
        old = make_log(self.dice, 100).replace(b"Jan/2026", b"Jun/2025")
        new = make_log(self.dice, 100)
        self.write("tallyd.yaml", b"reports:\n  pages: {by: [path], newest: 4, keep: {minute: 2d, hour: 20d, day: 40d}}\n")
        self.write("a.log", old)
        self.run_on("import", "-q", "a.log")
        self.append("a.log", new)
        self.run_on("import", "-q", "a.log")
        self.run_on("job", "run", "expire")
        rows = self.rows()["pages"]
        self.assertTrue(rows)
        self.assertGreater(min(day for _, day in rows), 1764547200000)  # 2025-12-01
        self.append("a.log", old)  # late: only months have it
        self.run_on("import", "-q", "a.log")
        self.assertEqual(rows, self.rows()["pages"])
        self.run_on("verify", "a.log")
        self.run_on("verify", "--store-only")


if __name__ == "__main__":
    unittest.main()
