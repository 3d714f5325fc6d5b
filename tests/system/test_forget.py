#!/usr/bin/env python3
"""`tallyd forget`: a store that has forgotten a file answers as if it had never counted the file, whenever it is
killed meanwhile; and it refuses, with the reason, what it cannot take out exactly.

The judge is a recount of the other files by Python. TALLYD_ROUNDS says how often forget is killed (12 by default). The
seed is printed; TALLYD_SEED repeats a run.
"""

import gzip
import json
import os
import shutil
import sqlite3

import unittest

from harness import (EX_CONFIG, EX_DATAERR, EX_NOINPUT, EX_OK, EX_TEMPFAIL, EX_UNAVAILABLE, EX_USAGE, DaemonCase, dying_at, failpoints,
                     traffic)
from recountcase import CONFIG, SMALL, SPAN, RecountCase, log, log_line

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 12)


class ForgetCase(RecountCase):
    def refuse(self, status, said, *arguments, **options):
        before = self.dump(options.get("store", "tallyd.db"))
        self.tallied("forget", *arguments, status=status, **options)
        self.assertIn(said, self.err)
        self.assertEqual(before, self.dump(options.get("store", "tallyd.db")))


class Forget(ForgetCase):
    def test_rest_is_as_if_the_file_had_never_been_counted(self):
        """And a dry run changes nothing, and the file may be imported anew."""
        a, b = log(self.dice, 20000), log(self.dice, 20000)
        for config in "tallyd.yaml", "small.yaml":
            with self.subTest(config):
                self.write("small.yaml", SMALL)
                self.tallied("import", "-q", self.write("a.log", a), self.write("b.log", b), config=config)
                before = self.dump()
                self.assertIn("would take out 20,000 lines", self.tallied("forget", "--dry-run", "a.log", config=config))
                self.assertEqual(before, self.dump())
                self.assertIn("took out 20,000 lines", self.tallied("forget", "a.log", config=config))
                self.check(b)
                self.tallied("verify", "b.log", config=config)
                self.assertIn("counted 20,000 lines", self.tallied("import", "a.log", config=config))
                self.check(a, b)
                self.tallied("forget", "b.log", config=config)
                self.tallied("forget", "a.log", config=config)
                self.check()
                tables = self.dump()
                for name, rows in tables.items():
                    self.assertTrue(not rows or name.startswith(("format", "report", "series_", "lookup_")), name)

    def test_file_is_found_by_any_of_its_names(self):
        a, b = log(self.dice, 3000), log(self.dice, 3000)
        self.write("b.log", b)
        for where in (["a.log"], [self.path("a.log")], ["SOURCE"], ["--file", "moved.log", "a.log"],
                      ["--file", "a.log.gz", "SOURCE"], ["moved.log"], ["a.log.gz"], ["--file", "moved.log", "a.log.gz"]):
            with self.subTest(where):
                cut = a.index(b"\n", len(a) // 2) + 1
                self.tallied("import", "-q", self.write("a.log", a[:cut]), "b.log")
                self.tallied("import", "-q", self.write("a.log", a))
                source = [row for row in self.dump()["position"] if "a.log" in row][0].split("'")[1]
                self.append("a.log", log(self.dice, 500))
                self.write("a.log.gz", gzip.compress(self.read("a.log")))
                if "--file" in where or "moved.log" in where:
                    os.rename(self.path("a.log"), self.path("moved.log"))
                self.tallied("forget", *[source if word == "SOURCE" else word for word in where])
                self.check(b)
        self.tallied("import", "-q", "--source-id", "mine", self.write("c.log", a))
        self.tallied("forget", "mine")
        self.check(b)

    def test_unfinished_lines_are_taken_out_as_they_were_counted(self):
        a, b = log(self.dice, 300), log(self.dice, 300)
        self.tallied("import", "-q", "--last-line", self.write("a.log", a[:-1]), self.write("b.log", b))
        self.append("a.log", b"\n" + a)
        self.tallied("forget", "a.log")
        self.check(b)

    def test_sums_of_any_numbers(self):
        """Negative ones and fractions; a series whose sum is 0 stays."""
        self.write("tallyd.yaml", b"sources: {m: {path: /m, decode: [metric]}}\nreports:\n"
                   b"  gauges: {by: [name], measures: {n: count, sum: sum(value), mean: mean(value)}}\n"
                   b"  alone: {measures: {sum: sum(value)}}\n")
        def metrics(count):
            return "".join(json.dumps({"name": self.dice.choice("abc"), "ts": f"2026-01-0{self.dice.randrange(1, 9)}T10:00:00Z",
                                       "value": self.dice.choice([0, 1, -1, 0.25, -0.000001, 10**6 + 0.999999])}) + "\n"
                           for _ in range(count)).encode()
        self.write("a.json", metrics(500))
        self.write("b.json", metrics(500))
        answers = []
        for store, files in (("both.db", ["a.json", "b.json"]), ("one.db", ["b.json"])):
            self.tallied("import", "-q", *files, store=store)
            if len(files) == 2:
                self.tallied("forget", "a.json", store=store)
            answers.append([self.rows(report, "--step", "day", "--measure", "all", *more, store=store)
                            for report, *more in (["gauges"], ["alone"], ["gauges", "--filter", "name=a"])])
            self.tallied("verify", "b.json", store=store)
        self.assertEqual(*answers)

    def test_file_has_the_fields_of_the_name_under_which_it_was_counted(self):
        self.write("tallyd.yaml", b'sources: {web: {path: "{vhost}.log"}}\nreports: {vhosts: {by: [vhost]}}\n')
        for name, lines in ("shop.log", 30), ("blog.log", 40):
            self.tallied("import", "-q", self.write(name, log(self.dice, lines)))
        both = self.rows("vhosts", "--top", "10")
        os.rename(self.path("shop.log"), self.path("other.log"))
        self.tallied("forget", "--file", "other.log", "shop.log")
        self.assertEqual([row for row in both if row["vhost"] != "shop"],
                         [row for row in self.rows("vhosts", "--top", "10") if row["value"] != "0"])

    def test_what_has_expired_is_left_alone(self):
        config = b"reports: {site: {keep: {minute: 2d, hour: 5d}}, pages: {by: [path], keep: {minute: 2d}}}\n"
        self.write("tallyd.yaml", config)
        old, new = (0, 60 * 24 * 20), (60 * 24 * 15, 60 * 24 * 40)
        self.write("a.log", log(self.dice, 5000, old))
        self.write("b.log", log(self.dice, 5000, new))
        for files in ["a.log", "b.log"], ["b.log", "a.log"]:
            with self.subTest(files):
                answers = []
                for store, some in (("both.db", files), ("one.db", ["b.log"])):
                    self.tallied("import", "-q", *some, store=store)
                    if len(some) == 2:
                        self.tallied("forget", "a.log", store=store)
                    answers.append([self.rows(report, "--step", "day", "--measure", "all", store=store)
                                    for report in ("site", "pages")])
                    answers[-1].append(self.rows("site", "--step", "minute", store=store, span=("2026-02-08", "2026-02-10")))
                    self.tallied("verify", "b.log", store=store)
                    os.remove(self.path(store))
                self.assertEqual(*answers)


    def test_rows_that_have_expired_but_are_still_there_do_not_return(self):
        """Without the file, its watermark is ahead of all events, and a daemon moves it back."""
        self.write("tallyd.yaml", b"reports: {site: {keep: {minute: 1d, hour: 2d}}}\n")
        self.tallied("import", "-q", self.write("b.log", log(self.dice, 500, (0, 60 * 24 * 9))))
        self.write("a.log", log(self.dice, 500, (60 * 24 * 10, 60 * 24 * 40)))
        self.tallied("import", "-q", "a.log", status=-9, env=dying_at("expire.watermark_moved"))
        def rows(level, before=""):
            with sqlite3.connect(self.path("tallyd.db")) as db:
                return db.execute(f"SELECT count(*) FROM {level}_1 {before}").fetchone()[0]
        self.assertGreater(rows("hour"), 200)
        self.tallied("forget", "a.log")
        self.assertEqual(0, rows("hour"))
        self.assertLessEqual(rows("day"), 9)
        self.tallied("verify", "b.log")


class Kill(ForgetCase):
    def setUp(self):
        super().setUp()
        self.write("tallyd.yaml", SMALL)
        self.a, self.b = log(self.dice, 8000), log(self.dice, 8000)
        self.tallied("import", "-q", self.write("a.log", self.a), self.write("b.log", self.b), store="both.db")
        self.check(self.a, self.b, store="both.db")
        shutil.copy(self.path("both.db"), self.path("tallyd.db"))
        self.tallied("forget", "a.log")
        self.check(self.b)

    def forget_until_done(self, *kills):
        """Forget a copy of both, killed at these failpoints before."""
        for name in os.listdir(self.dir):
            if name.startswith("tallyd.db"):
                os.remove(self.path(name))
        shutil.copy(self.path("both.db"), self.path("tallyd.db"))
        done = 0
        for kill in kills:
            self.tallyd("forget", "-c", "tallyd.yaml", "a.log", status=None, env=dying_at(kill))
            self.assertIn(self.status, (EX_OK, -9) if done == 0 else (EX_NOINPUT, -9), self.err)
            known = any("a.log" in row for row in self.dump()["position"])
            done = not known
            self.assertTrue(done or self.status == -9)
            self.check(*([self.b] if done else [self.a, self.b]))
        if not done:
            self.tallied("forget", "a.log")
            self.check(self.b)
        return done

    def test_killed_anywhere_changes_all_or_nothing(self):
        places = [*failpoints("forget."), "forget.taken:2", "forget.taken:3"]  # the others are passed once
        done = 0
        for _ in range(ROUNDS):
            deaths = self.dice.randrange(1, 4)
            done += self.forget_until_done(*[self.dice.choice(places) for _ in range(deaths)])
        print(f"{ROUNDS} rounds, {done} of them killed after the commit")
        self.assertLess(done, ROUNDS, "the kills came too late to test anything")

    def test_killed_at_each_place(self):
        for place in failpoints("forget."):
            with self.subTest(place):
                self.assertEqual(place == "forget.after_commit", self.forget_until_done(place))
        self.forget_until_done("forget.taken:3", "forget.before_commit", "forget.taken:2")


class Refused(ForgetCase):
    """Nothing is changed, and the reason is told."""

    def setUp(self):
        super().setUp()
        self.a = log(self.dice, 2000)
        self.tallied("import", "-q", self.write("a.log", self.a), self.write("b.log", log(self.dice, 2000)))

    def test_file_that_is_away_or_another_one(self):
        self.refuse(EX_NOINPUT, "nothing was counted", "c.log")
        self.refuse(EX_NOINPUT, "nothing was counted", "file:4096:0000000000000000")
        self.refuse(EX_DATAERR, "another file has the same", "--file", "b.log", "a.log")
        self.refuse(EX_NOINPUT, "c.log", "--file", "c.log", "a.log")
        self.write("a.log", self.a[:-100])
        self.refuse(EX_DATAERR, "is shorter than", "a.log")
        self.refuse(EX_NOINPUT, "nothing was counted", self.write("c.log", log(self.dice, 10)))
        self.write("a.log", self.a[:-60] + b"x" + self.a[-59:])
        self.refuse(EX_DATAERR, "has changed before byte", "a.log")
        self.assertIn("--file PATH", self.err)
        os.remove(self.path("a.log"))
        self.refuse(EX_NOINPUT, "a.log: No such file or directory; `tallyd forget --file PATH` says where its lines are now", "a.log")

    def test_file_that_changed_where_no_hash_looks(self):
        """Its first and last 4 KiB and its length are the same, but one line is another: books or cells differ."""
        begin = self.a.index(b"/2026:", len(self.a) // 2)  # not one of the future
        begin = self.a.rindex(b"\n", 0, begin) + 1
        end = self.a.index(b"\n", begin)
        for line, status, said in ((b"x" * (end - begin), EX_CONFIG, "another configuration"),
                                   (self.a[begin:end].replace(b"/Jan/2026", b"/Mar/2026").replace(b"/Feb/2026", b"/Mar/2026"),
                                    EX_DATAERR, "has less than is to be taken out")):
            self.write("a.log", self.a[:begin] + line + self.a[end:])
            self.refuse(status, said, "a.log")

    def test_other_configuration(self):
        self.write("other.yaml", CONFIG + b"limits: {line_max: 16KiB}\n")
        self.tallied("import", "-q", self.write("c.log", self.a + log_line(1, "/" + 20000 * "x", 200, 1).encode()))
        self.refuse(EX_CONFIG, "another configuration", "c.log", config="other.yaml")
        self.refuse(EX_CONFIG, "another configuration", "--decode", "json", "c.log")
        self.tallied("forget", "c.log", "--decode", "common")

    def test_count_that_is_too_small(self):
        """Another program took some out of the store."""
        self.tallyd("import", "-q", "--store", "sqlite:c.db", self.write("c.log", self.a))
        with sqlite3.connect(self.path("c.db")) as db:
            db.execute("DELETE FROM hour_1 WHERE at = (SELECT max(at) FROM hour_1)")
        db.execute("VACUUM")  # accepts the change
        db.close()
        self.refuse(EX_DATAERR, "has less than is to be taken out", "c.log", store="c.db")

    def test_measures_that_cannot_be_subtracted(self):
        for measure in "min(bytes)", "max(bytes)", "last(bytes)":
            config = f"reports: {{site: {{measures: {{n: count, m: {measure}}}}}}}\n".encode()
            self.write("m.yaml", config)
            self.tallied("import", "-q", "a.log", config="m.yaml", store=f"{measure}.db")
            self.refuse(EX_UNAVAILABLE, f"m: {measure}", "a.log", config="m.yaml", store=f"{measure}.db")
            self.tallied("forget", "site", "--yes", store=f"{measure}.db")
            self.tallied("forget", "a.log", store=f"{measure}.db")

    def test_part_of_the_file_was_counted_by_another_definition(self):
        self.write("new.yaml", CONFIG.replace(b"where: [status>=400]", b"where: [status>=500], generation: 2"))
        self.append("a.log", log(self.dice, 100))
        self.tallied("import", "-q", "a.log", config="new.yaml")
        self.refuse(EX_UNAVAILABLE, 'report "errors" counted only a part of it', "a.log", config="new.yaml")
        self.refuse(EX_CONFIG, "forget errors~1", "b.log", config="new.yaml")
        self.assertIn("errors~1: dropped", self.tallied("forget", "errors~1"))
        self.assertIn("took out", self.tallied("forget", "b.log"))
        self.tallied("forget", "--yes", "errors")
        self.assertIn("took out", self.tallied("forget", "a.log"))
        self.assertEqual([], self.dump()["position"])

    def test_series_beyond_the_limit(self):
        self.write("few.yaml", b"reports: {site: {}, pages: {by: [path], series_max: 5}}\n")
        self.tallied("import", "-q", "a.log", config="few.yaml", store="few.db")
        self.refuse(EX_UNAVAILABLE, "series_max", "a.log", config="few.yaml", store="few.db")

    def test_late_events(self):
        self.write("late.yaml", b"reports: {site: {keep: {minute: 2d, hour: 2d, day: 31d, month: 31d}}}\n")
        older = log(self.dice, 100, (-60 * 24 * 800, -60 * 24 * 790))
        for name in "a.log", self.write("old.log", older):
            self.tallied("import", "-q", name, config="late.yaml", store="late.db")
        self.refuse(EX_UNAVAILABLE, "came too late", "old.log", config="late.yaml", store="late.db")
        self.tallied("forget", "a.log", config="late.yaml", store="late.db")

    def test_two_sources_of_one_name(self):
        os.remove(self.path("a.log"))
        self.tallied("import", "-q", self.write("a.log", traffic(10)))
        self.refuse(EX_USAGE, "2 sources were counted as a.log", "a.log")

    def test_wrong_usage(self):
        for arguments in [], ["a.log", "b.log"], ["--decode", "nonsense", "a.log"]:
            self.refuse(EX_USAGE, "", *arguments)
        self.tallyd("forget", "--store", "sqlite:missing.db", "a.log", status=EX_NOINPUT)


class Reports(ForgetCase):
    def setUp(self):
        super().setUp()
        self.a, self.b = log(self.dice, 2000), log(self.dice, 2000)
        self.tallied("import", "-q", self.write("a.log", self.a))
        self.write("tallyd.yaml", CONFIG.replace(b"[path, status]", b"[path, status], generation: 2"))
        self.tallied("import", "-q", self.write("b.log", self.b))

    def test_generation_is_dropped_whole(self):
        before = self.dump()
        self.assertIn("pages~1: would drop", self.tallied("forget", "--dry-run", "pages~1"))
        self.assertEqual(before, self.dump())
        out = self.tallied("forget", "pages~1")
        self.assertRegex(out, r"pages~1: dropped [1-9][\d,]* rows of counts, [1-9][\d,]* bytes, and [1-9][\d,]* series")
        for table, rows in self.dump().items():
            self.assertFalse(table.endswith("_2"), table)
            if table == "book":
                self.assertEqual([row for row in before[table] if ", 2, '" not in row], rows)
        self.tallied("verify", "a.log", "b.log")
        self.tallied("forget", "b.log")
        self.assertEqual([], self.rows("pages", "--top", "10"))
        self.refuse(EX_NOINPUT, "no generation 1", "pages~1")

    def test_newest_generation_needs_insistence(self):
        for name in "pages", "pages~2", "site":
            self.refuse(EX_USAGE, "--yes", name)
        self.refuse(EX_NOINPUT, "no generation 3", "pages~3")
        self.assertIn("site~1: would drop", self.tallied("forget", "--dry-run", "site"))
        self.tallied("forget", "--yes", "site")
        self.tallyd("query", "site", status=EX_USAGE)
        self.tallied("import", "-q", self.write("c.log", log(self.dice, 100)))
        self.tallied("verify", "a.log", "b.log", "c.log")

    def test_file_named_as_a_report(self):
        self.tallied("import", "-q", self.write("site", log(self.dice, 100)))
        self.refuse(EX_USAGE, "--yes", "site")
        self.tallied("forget", "./site")
        self.check_only_reports_are_whole()

    def check_only_reports_are_whole(self):
        self.tallied("verify", "a.log", "b.log")


class Beside(DaemonCase):
    def test_daemon_keeps_its_store(self):
        """And what it counted last, in rows that are not folded yet, is taken out as well."""
        self.write("a.log", b"".join(log_line(n, f"/{n % 7}", 200, n).encode() for n in range(300)))
        self.write("tallyd.yaml", CONFIG + b"sources: {a: {path: a.log}}\nstore: {url: 'sqlite:tallyd.db'}\n")
        self.launch("-c", "tallyd.yaml", "--listen", "127.0.0.1:0")
        self.wait_for_consumed(300)
        self.append("a.log", log_line(300, "/live", 200, 1).encode())
        self.wait_for_consumed(301)
        self.tallyd("forget", "-c", "tallyd.yaml", "a.log", status=EX_TEMPFAIL)
        self.assertIn("tallyd.db", self.err)
        self.stop()
        self.tallyd("forget", "-c", "tallyd.yaml", "a.log")
        self.assertEqual([], [row for row in self.query("pages", "--top", "10", span=SPAN) if row["value"] != "0"])
        self.assertEqual(0, self.total(span=SPAN))
        self.launch("-c", "tallyd.yaml", "--listen", "127.0.0.1:0")
        self.wait_for_consumed(301)
        self.stop()
        self.tallyd("verify", "-c", "tallyd.yaml")


if __name__ == "__main__":
    unittest.main()
