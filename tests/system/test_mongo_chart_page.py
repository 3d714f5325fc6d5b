#!/usr/bin/env python3
"""The charts of docs/mongodb-charts.md run as they are on that page, and say what a recount of the log does.

The judge knows the lines that were written, and nothing of tallyd or its documents. TALLYD_MONGO names the server.
"""

import collections
import datetime
import math
import os
import re
from decimal import Decimal

from harness import ROOT, dice
from mongocase import MongoCase, main, mongo
from test_mongo_charts import DAY, HOUR, MINUTE, ChartCase, floor

try:
    from bson import Decimal128, json_util
except ImportError:
    Decimal128 = json_util = None  # main() begins again by a Python that has it

FORMAT = '$remote_addr - - [$time_local] "$request" $status $body_bytes_sent $request_time'
LINE = '%s - - [%s +0000] "GET %s HTTP/1.1" %d %d %s\n'
PAGE = "/index.html"
BLOCK = re.compile(r'^## (.*?)\n.*?^```js\ndb\.getCollection\("(.*?)"\)\.aggregate\((.*?)\)\n```$', re.DOTALL | re.MULTILINE)
CONFIG = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXACT_HOSTS = 700
# All other charts have an $expr in $match, or add a duration to a date, which SecantusDB's Rust edition does not know.
ON_SECANTUS = {"Top 20 pages", "Weekday and hour", "Visitors by day"}
WEEK = 7 * DAY

with open(os.path.join(ROOT, "docs/mongodb-charts.md"), encoding="utf-8") as text:
    TEXT = text.read()
BLOCKS = {title: (collection, pipeline) for title, collection, pipeline in BLOCK.findall(TEXT)}

Hit = collections.namedtuple("Hit", "at host path status size took")  # `took`: milliseconds


def month(at):
    return at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def rows_of(counted, **columns):
    """Rows in order of time, of {time: value of columns}."""
    return [{"time": at, **{name: value(counted[at]) for name, value in columns.items()}} for at in sorted(counted)]


class Charts(ChartCase):
    CONFIG = (f"sources: {{access: {{path: a.log, decode: [{{nginx: '{FORMAT}'}}]}}}}\n"
              "store: {validation: error}\n" + CONFIG.search(TEXT).group(1)).encode()
    first, days = datetime.datetime(2026, 1, 20), 16  # into the next month
    hits = []

    def make(self):
        pages = [PAGE, *(f"/page-{i}" for i in range(30))]
        for number in range(self.days):
            crowd = 2 * EXACT_HOSTS if number == 9 else self.dice.randrange(1, 60)
            for visit in range(1500 if number == 9 else 200):
                at = self.first + number * DAY + datetime.timedelta(seconds=self.dice.randrange(86400))
                took = self.dice.choice([0, self.dice.randrange(400), int(self.dice.lognormvariate(4, 2))])
                self.hits.append(Hit(at, f"10.0.{visit % crowd // 250}.{visit % crowd % 250}", self.dice.choice(pages[:1] * 10 + pages),
                                     self.dice.choice([200] * 20 + [404, 499, 500, 503]), self.dice.randrange(10**6), took))
        lines = [LINE % (hit.host, hit.at.strftime("%d/%b/%Y:%H:%M:%S"), hit.path, hit.status, hit.size, f"{hit.took / 1000:.3f}")
                 for hit in self.hits]
        self.dice.shuffle(lines)
        for part in lines[::2], lines[1::2]:  # what comes second is added to the same documents
            self.write("a.log", "".join(part).encode())
            self.count("a.log")

    def chart(self, title, begin, end):
        collection, pipeline = BLOCKS[title]
        for macro, at in ("From", begin), ("To", end):
            pipeline = pipeline.replace(f'"$__time{macro}"', '{"$date": "%sZ"}' % at.isoformat())
        return list(self.base[collection].aggregate(json_util.loads(pipeline)))

    def within(self, begin, end, span=None, path=None):
        """{start of a bucket: its hits} within a range of time."""
        found = collections.defaultdict(list)
        for hit in self.hits:
            if begin <= floor(hit.at, span) < end and path in (None, hit.path):
                found[floor(hit.at, span)].append(hit)
        return found

    # ---- what each chart has to say of a range

    @staticmethod
    def size(hits):
        return sum(hit.size for hit in hits)

    @staticmethod
    def percentile(hits):
        """The upper bound of the bucket with the number that 99 % are no greater than."""
        took = sorted(hit.took for hit in hits)[math.ceil(0.99 * len(hits)) - 1] / 1000
        return 0 if took == 0 else 2 ** (math.ceil(round(16 * math.log2(took), 9)) / 16)

    def expected(self, begin, end):
        page = self.within(begin, end, HOUR, PAGE)
        hours, days = self.within(begin, end, HOUR), self.within(begin, end, DAY)
        of_days = [hit for hits in days.values() for hit in hits]
        paths = collections.defaultdict(list)
        for hit in of_days:
            paths[hit.path].append(hit)
        grid = collections.Counter((hit.at.isoweekday(), hit.at.hour) for hit in of_days)
        months = collections.Counter(floor(hit.at, DAY) for hit in self.hits if hit.path == PAGE and begin <= month(hit.at) < end)
        before = self.within(begin - WEEK, end - WEEK, HOUR)
        return {
            "Hits by minute": rows_of(self.within(begin, end, MINUTE, PAGE), hits=len),
            "Top 20 pages": sorted(({"path": path, "hits": len(hits), "bytes": self.size(hits)} for path, hits in paths.items()),
                                   key=lambda row: (-row["hits"], row["path"]))[:20],
            "Bytes by hour": rows_of(hours, bytes=self.size),
            "Share of errors": rows_of(hours, share=lambda hits: sum(hit.status >= 500 for hit in hits) / len(hits)),
            "Mean and longest duration": rows_of(
                page, mean=lambda hits: sum(Decimal(hit.took) for hit in hits) / 1000 / len(hits),
                longest=lambda hits: Decimal(max(hit.took for hit in hits)) / 1000),
            "Weekday and hour": [{"weekday": weekday, "hour": hour, "hits": grid[weekday, hour]} for weekday, hour in sorted(grid)],
            "Month by day": rows_of(months, hits=int),
            "99th percentile": rows_of(page, p99=self.percentile),
            "Visitors by day": rows_of(days, visitors=lambda hits: len({hit.host for hit in hits})),
            "Compared with last week": [
                {"time": at, "hits": len(hours.get(at, ())), "week_before": len(before.get(at - WEEK, ()))}
                for at in sorted({*hours, *(at + WEEK for at in before)})],
        }

    # ---- are they what the page's pipelines say?

    def compare(self, title, expected, found):
        self.assertEqual([row.keys() for row in expected], [row.keys() for row in found])
        for row, other in zip(expected, found):
            for name, value in row.items():
                said = other[name].to_decimal() if isinstance(other[name], Decimal128) else other[name]
                if name == "visitors" and value > EXACT_HOSTS:
                    self.assertLess(abs(said - value) / value, 5 * 1.04 / 64, title)
                elif name in ("share", "p99", "mean"):
                    self.assertAlmostEqual(float(value), float(said), 9, (title, row))
                else:
                    self.assertEqual(value, said, (title, row))

    def test_the_page_s_charts_are_a_recount_s(self):
        first, end = self.first, self.first + self.days * DAY
        ranges = [(first, end), (month(first), end), (first + 9 * DAY, first + 10 * DAY)]
        for _ in range(3):
            begin = first + self.dice.randrange(self.days * 1440 - 100) * MINUTE
            ranges.append((begin, begin + self.dice.randrange(1, 5 * 1440) * MINUTE))
        self.assertEqual(10, len(BLOCKS))
        for begin, end in ranges:
            expected = self.expected(begin, end)
            self.assertEqual(expected.keys(), BLOCKS.keys())
            for title, rows in expected.items():
                if mongo.CHOSEN == "secantus" and title not in ON_SECANTUS:
                    continue
                with self.subTest(chart=title, begin=begin, end=end):
                    self.compare(title, rows, self.chart(title, begin, end))

    def test_numbers_stand_in_their_own_unit(self):
        at = self.first + 3 * DAY
        document = self.base["pages.day"].find_one({"metadata.path": PAGE, "metadata.date": at}, {"applied": 0})
        took = [hit.took for hit in self.hits if hit.path == PAGE and floor(hit.at, DAY) == at]
        self.assertEqual((Decimal128(str(Decimal(max(took)) / 1000)), len(took)), (document["worst"]["daily"], document["daily"]))
        self.assertEqual({"units", "count"}, set(document["usual"]["daily"]))
        self.assertEqual(Decimal(sum(took)) / 1000, document["usual"]["daily"]["units"].to_decimal())
        self.assertNotIn("applied", document)


class Decimals(MongoCase):
    def test_the_server_adds_and_compares_them_exactly(self):
        """As far as sums of int64 reach, with millionths."""
        rolled = dice()
        numbers = [Decimal(rolled.randrange(-10**digits, 10**digits)) / 10**6 for digits in range(1, 26) for _ in range(8)]
        rolled.shuffle(numbers)
        for number in numbers:
            value = Decimal128(number)
            self.base.numbers.update_one({}, {"$inc": {"sum": value}, "$min": {"least": value}, "$max": {"most": value}}, upsert=True)
        found = self.base.numbers.find_one()
        self.assertEqual((sum(numbers), min(numbers), max(numbers)),
                         tuple(found[name].to_decimal() for name in ("sum", "least", "most")))


if __name__ == "__main__":
    main()
