"""The cost of rolling up documents of months into those of years, against one bare pass of reading them, in turn."""

import os
import shutil
import statistics
import subprocess
import time

import measure

YEAR = 2024
CONFIG = """\
reports: {pages: {by: [path], measures: {hits: count}, keep: {minute: 1h, hour: 1d}}}
"""
LINE = '192.0.2.1 - - [%02d/%s/%d:12:00:00 +0000] "GET /page-%d.html HTTP/1.1" 200 10 "-" "-"\n'
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DAYS = 28  # of each month, that have a count


class Rollup:
    """The time for so many documents of so many months of one year, in a database of its own."""

    def __init__(self, arguments, work, server, client, label, months):
        self.arguments, self.label, self.months = arguments, label, months
        self.series = -(-arguments.documents // months)
        self.dir = os.path.join(work, "rollup")
        self.url, self.base = f"{server.url}/rollup{months}", client[f"rollup{months}"]
        self.read_s, self.decode_s, self.new_s, self.there_s = [], [], [], []

    def tallyd(self, *words):
        """Seconds that it takes, from its start to its end."""
        argv = [os.path.join(self.arguments.build, "tallyd"), *words, "-c", os.path.join(self.dir, "tallyd.yaml"), "--store", self.url]
        begun = time.monotonic()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - begun

    def prepare(self):
        """The hours of so long ago are not kept: there are documents of months only."""
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(self.dir)
        with open(os.path.join(self.dir, "tallyd.yaml"), "w", encoding="ascii") as file:
            file.write(CONFIG)
        log = os.path.join(self.dir, "a.log")
        with open(log, "w", encoding="ascii") as file:
            for month in MONTHS[:self.months]:
                for page in range(self.series):
                    file.writelines(LINE % (day, month, YEAR, page) for day in range(1, DAYS + 1))
        self.tallyd("import", "-q", log)
        os.remove(log)
        self.documents = self.base["pages.month"].count_documents({})
        if self.documents != self.series * self.months:
            raise measure.Failed(f"{self.label}: {self.documents:,} documents are there of {self.series * self.months:,}")

    def read(self):
        """Seconds that a bare pass takes: all of each document is sent, and nothing made of it."""
        begun = time.monotonic()
        self.bytes = sum(len(batch) for batch in self.base["pages.month"].find_raw_batches())
        return time.monotonic() - begun

    def decode(self):
        """Those of a pass that adds up what they count."""
        begun = time.monotonic()
        total = sum(sum(one["daily"].values()) for one in self.base["pages.month"].find())
        if total != self.documents * DAYS:
            raise measure.Failed(f"{self.label}: {total:,} are counted of {self.documents * DAYS:,}")
        return time.monotonic() - begun

    def roll(self):
        return self.tallyd("job", "run", "rollup", "--rebuild", f"{YEAR}-01-01", f"{YEAR + 1}-01-01")

    def check(self):
        """Each of the year's buckets is what its month has."""
        years = self.base["pages.year"].find({}, {"total": 1})
        found = [sum(one["total"].values()) for one in years]
        if len(found) != self.series or set(found) != {DAYS * self.months}:
            raise measure.Failed(f"{self.label}: {len(found):,} documents of years, of {self.series:,}, or with wrong counts")

    def measure(self):
        """Into years that are there, as all months but the first of a year are: once, where that takes minutes."""
        self.prepare()
        for _ in range(self.arguments.rounds):
            self.decode_s.append(self.decode())
            self.read_s.append(self.read())
            self.base["pages.year"].drop()
            self.new_s.append(self.roll())
            self.check()
        self.there_s.append(self.roll())
        self.check()
        return self

    def ratios(self):
        """The ratio for years that are made, against the pass just before."""
        return [roll / read for roll, read in zip(self.new_s, self.read_s)]

    def there_ratio(self):
        return self.there_s[0] / statistics.median(self.read_s)
