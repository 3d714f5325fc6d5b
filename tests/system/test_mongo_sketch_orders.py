#!/usr/bin/env python3
"""The same events in random orders, dealt to two writers on MongoDB that die: every document has the same buckets and registers.

tests/unit/test_sketch_orders.c plays them on SQLite and in memory. SQLite's answers are the judge. TALLYD_MONGO names the server
(tests/servers/mongo.py). The seed is printed; TALLYD_SEED repeats a run, TALLYD_ROUNDS plays more orders.
"""

import os

from mongocase import main
from test_mongo_sketches import LINES, REPORTS, SPANS_OF_DISTINCT, SketchCase, events_of, lines_of, ranks_of

ORDERS = int(os.environ.get("TALLYD_ROUNDS") or 2)


class Orders(SketchCase):
    def bits(self):
        """The counts of all buckets and the ranks of all registers, of every document."""
        buckets = {(report, kind): self.stored(report, kind, dimension) for report, (dimension, kinds) in REPORTS.items() for kind in kinds}
        texts = {(report, span): {name: (value["count"], ranks_of(value))
                                  for name, value in self.stored_distinct(report, span, REPORTS[report][0]).items()}
                 for report in {*REPORTS} - {"hours"} for span in SPANS_OF_DISTINCT}
        return buckets, texts

    def test_any_order_has_the_same_bits(self):
        events, found = events_of(self.dice, LINES, *self.span), []
        self.write("all.log", lines_of(events))
        expected = self.count_in_sqlite("all.log")
        for _ in range(ORDERS):
            self.anew()
            self.dice.shuffle(events)
            cut = self.dice.randrange(1, LINES)
            self.write("a.log", lines_of(events[:cut]))
            self.write("b.log", lines_of(events[cut:]))
            self.import_at_once_killed("a.log", "b.log")
            found.append(self.bits())
        self.assertEqual(ORDERS * found[:1], found)
        self.assert_same(expected, self.store)


if __name__ == "__main__":
    main()
