#!/usr/bin/env python3
"""Totals of Prometheus in MongoDB, as test_totals.py has them in SQLite. In documents by second all samples are kept, so rates are those that
the engine of Prometheus says of all samples, however often targets are scraped.

TALLYD_MONGO names the server. Needs Go (to build the judge, once). TALLYD_ROUNDS is the number of random expressions. The seed is printed;
TALLYD_SEED repeats a run.
"""

import kafkacase
import mongocase
import totalscase
from mongokafkacase import MongoKafkaCase


class Totals(totalscase.TotalsCase, MongoKafkaCase):
    store_places = "mongo."

    def count(self, scrape_ms, more=""):
        return super().count(scrape_ms, more, f'store: {{url: "{self.url}"}}\n')

    def test_minutes(self):
        self.check(self.count(15000), False)

    def test_seconds(self):
        self.check(self.count(15000, "layout: minute"), True)
        self.stop()
        self.check_books()
        self.verify()


if __name__ == "__main__":
    totalscase.main(lambda: mongocase.main(kafkacase.main))
