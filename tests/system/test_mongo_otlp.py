#!/usr/bin/env python3
"""Exponential histograms of OTLP in MongoDB: the documents have the buckets of their points, and so have the stored events.

The judge made the points, and reads documents by pymongo. TALLYD_MONGO names the server. The seed is printed; TALLYD_SEED repeats a run.
"""

import collections

import mongocase
import otel  # beside mongo
import process
from harness import draw_death, dying_at, failpoints
from test_mongo_sketches import KILLED, SketchCase
from test_otlp_histograms import MILLION, WIDE, config, draw_lines, slots_of

POINTS = 60
KINDS = {"hour": 16, "day": 13, "month": 10}  # of documents: letters of the times of their buckets


def cell_of(value):
    """The cell of a stored event, as test_otlp_histograms.draw_point() has it, without limits."""
    cell = collections.Counter({"points": 1, "zero": value["zero_count"], "count": value["count"], "sum": round(value["sum"] * MILLION)})
    for name, side in ("buckets", "positive"), ("negative", "negative"):
        counts = {value[side]["offset"] + i: count for i, count in enumerate(value[side]["bucket_counts"])} if side in value else {}
        cell.update({(name, index): count for index, count in slots_of(counts, value["scale"]).items()})
    return cell


class ManyAtOnce(SketchCase):
    def test_documents_by_dying_imports(self):
        lines, cells = draw_lines(self.dice, POINTS)
        self.write("tallyd.yaml", config(raw=", raw: all"))
        self.write("otlp.jsonl", lines)
        self.status = KILLED
        while self.status == KILLED:
            self.tallyd("import", "-q", "-c", "tallyd.yaml", "--store", self.store, "otlp.jsonl", status=None,
                        env=dying_at(draw_death(self.dice, failpoints("mongo."), 3)))
        self.assertEqual(0, self.status, self.err)
        for kind, letters in KINDS.items():
            expected = collections.defaultdict(collections.Counter)
            for (minute, path), cell in cells.items():
                expected[minute[:letters], path].update(cell)
            expected = {name: {key: n for key, n in cell.items() if n and key not in ("points", "limits") and key[0] != WIDE} for name, cell in expected.items()}
            self.assertEqual(expected, self.stored("pages", kind, "path"), kind)
        self.check_events(cells)
        self.assertIn(": 0 differences", self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, "otlp.jsonl"))
        self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, "--store-only")

    def check_events(self, cells):
        stored = collections.defaultdict(collections.Counter)
        for event in self.base["raw.otlp"].find({"name": "took"}):
            stored[event["time"].isoformat()[:16], event["path"]].update(cell_of(event["value"]))
        expected = {name: {key: n for key, n in cell.items() if n and key != "limits" and key[0] != WIDE} for name, cell in cells.items()}
        self.assertEqual(expected, {name: {key: n for key, n in cell.items() if n} for name, cell in stored.items()})


if __name__ == "__main__":
    process.provided(otel.provide)
    mongocase.main()
