#!/usr/bin/env python3
"""`sample: 1/N` in MongoDB: the documents hold the scaled counts of the events that Python draws, whatever is killed.

TALLYD_ROUNDS says how many histories of kills are played (3 by default). The seed is printed; TALLYD_SEED repeats a run.
TALLYD_MONGO names the server (tests/servers/mongo.py).
"""

import os

import mongocase
from harness import EX_CONFIG, EX_OK, dice, draw_death, dying_at, failpoints
from mongocase import LINES_A_BATCH, MongoCase, add_up, busy, log, recount
from samplecase import drawn_lines

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 3)
ONE_IN = {"pages": 5, "segments": 3, "moments": 40}
SAMPLED = (mongocase.CONFIG.replace(b"pages: {by: [path]}", b"pages: {by: [path], sample: 1/5}")
           .replace(b"layout: hour}", b"layout: hour, sample: 1/3}").replace(b"layout: minute}", b"layout: minute, sample: 1/40}"))


class Sample(MongoCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.write("tallyd.yaml", SAMPLED)

    def check_drawn(self, lines):
        (source,) = [one["source"] for one in self.ledger.partitions().values()]
        expected = {report: recount(drawn_lines(source, lines, one_in)) for report, one_in in ONE_IN.items()}
        for (report, kind, bucket), _, stored in self.compared({}):
            one_in, (_, of_path) = ONE_IN.get(report, 1), mongocase.DIMENSIONS[report]
            drawn = add_up(expected.get(report) or recount(lines), bucket, of_path)
            with self.subTest(report=report, documents=kind, by=bucket):
                self.assertEqual({key: [one_in * figure for figure in cell] for key, cell in busy(drawn).items()}, stored)
        for more in ["a.log"], ["--store-only"]:
            self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, *more)

    def test_kills(self):
        kills = 0
        for n in range(ROUNDS):
            self.anew()
            lines = log(self.dice, 4 * LINES_A_BATCH)
            self.write("a.log", lines)
            self.write("site.yaml", mongocase.CONFIG.split(b"reports:")[0] + b"reports: {site: {}}\n")
            first = self.dice.choice(["site.yaml", "tallyd.yaml"])
            for _ in range(4):
                self.tallyd("import", "-q", "-c", first, "--store", self.store, "a.log", status=None,
                            env=dying_at(draw_death(self.dice, failpoints("mongo."), 4)))
                self.assertIn(self.status, (EX_OK, -9), self.err)
                kills += self.status == -9
            self.tallyd("import", "-q", "-c", first, "--store", self.store, "a.log")
            self.append("a.log", more := log(self.dice, LINES_A_BATCH))
            self.count("a.log")
            for report in ONE_IN:
                self.tallyd("backfill", "-q", "-c", "tallyd.yaml", "--store", self.store, report)
            with self.subTest(round=n, first=first):
                self.check_drawn(lines + more)
        print(f"{kills} kills")

    def test_copy_forget_and_generation(self):
        lines = log(self.dice, 2 * LINES_A_BATCH)
        self.write("a.log", lines)
        self.count("a.log")
        self.check_drawn(lines)
        self.write("other.yaml", SAMPLED.replace(b"1/5", b"1/6"))
        self.tallyd("import", "-c", "other.yaml", "--store", self.store, "a.log", status=EX_CONFIG)
        self.assertIn("generation", self.err)
        self.tallyd("admin", "copy", self.store, self.store + "copy")
        self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store + "copy", "a.log")
        for store in self.store, self.store + "copy":
            self.tallyd("forget", "-c", "tallyd.yaml", "--store", store, "a.log")
            self.tallyd("verify", "-c", "tallyd.yaml", "--store", store, "--store-only")
        self.assertTrue(all(stored == {} for _, _, stored in self.compared({})))


if __name__ == "__main__":
    mongocase.main()
