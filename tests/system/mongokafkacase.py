"""Shared by the tests of daemons between a real Kafka broker and a MongoDB server: KafkaCase, reading documents."""

import mongocase
from harness import TIMEOUT_S, dice
from kafkacase import SPAN, KafkaCase
from mongocase import Ledger, pymongo


def flat(document, stem=""):
    """{"rejected.time": 1} of { rejected: { time: 1 } }"""
    found = {}
    for name, value in document.items():
        if isinstance(value, dict):
            found.update(flat(value, f"{stem}{name}."))
        else:
            found[stem + name] = value
    return found


class MongoKafkaCase(KafkaCase):
    databases = 0

    def setUp(self):
        super().setUp()
        self.dice, self.server = dice(), mongocase.MongoCase.server
        MongoKafkaCase.databases += 1
        name = f"k{MongoKafkaCase.databases}"
        self.url = f"{self.server.url}/{name}"
        self.client = pymongo.MongoClient(self.server.url, serverSelectionTimeoutMS=1000 * TIMEOUT_S)
        self.addCleanup(self.client.close)
        self.base = self.client[name]
        self.ledger = Ledger(self.base)
        self.write("empty.log", b"")
        self.feeds = ()

    def configure_mongo(self, name="tallyd.yaml", member="", more="", **options):
        self.configure(self.feeds, f"store: {{url: \"{self.url}\"}}\n{more}", member=member, name=name, **options)

    # ---- what KafkaCase reads from a file

    def query(self, report, *arguments, span=SPAN, store=None):
        return super().query(report, *arguments, span=span, store=store or self.url)

    def total(self, measure="hits", report="site", span=SPAN, store=None):
        return super().total(measure, report, span, store or self.url)

    def nexts(self, source):
        return {int(one["partition"]): one["next"] for one in self.ledger.positions()
                if one["source"] == source and one["next"] > 0}

    def book(self, source, entry):
        return sum(flat(book.get("entries", {})).get(entry, 0) for book in self.base.books.find({"source": source}))

    def check_books(self):
        for book in self.base.books.find({"source": {"$gt": ""}}):
            entries = flat(book.get("entries", {}))
            rejected = sum(count for entry, count in entries.items() if entry.startswith("rejected."))
            self.assertEqual(entries.get("consumed", 0), entries.get("parsed", 0) + rejected, book)
            for report in book["reports"].values():
                self.assertEqual(report.get("parsed", 0), report.get("counted", 0) + report.get("filtered", 0), book)

    def check_prefix(self, *feeds):
        """The next program that opens the store counts what was sealed."""
        self.tallyd("import", "-c", "tallyd.yaml", "empty.log")
        super().check_prefix(*feeds)

    # ---- what is fed

    def send(self, lines):
        for feed in self.feeds:
            feed.send(lines, seconds=60)
            feed.flush()
