"""The cost of keeping events beside the counts: an import with none of them, some fields, and all, in turn."""

import os
import shutil
import subprocess
import time

import ingest
import measure

WAYS = {"none": "raw: off", "five fields": "raw: [host, time, path, status, response_size]", "all": "raw: all"}


class Raw:
    """The time for so many lines, into an empty database each time."""

    def __init__(self, arguments, work, server, client, label):
        self.arguments, self.server, self.client, self.label = arguments, server, client, label
        self.dir = os.path.join(work, "raw")
        self.rates = {way: [] for way in WAYS}

    def import_log(self, way, log):
        name = "raw"
        self.client.drop_database(name)
        with open(os.path.join(self.dir, "tallyd.yaml"), "w", encoding="ascii") as config:
            config.write(f"sources: {{site: {{{WAYS[way]}}}}}\nreports: {{pages: {{by: [path], measures: {{hits: count}}}}}}\n")
        argv = [os.path.join(self.arguments.build, "tallyd"), "import", "-q", "-c", "tallyd.yaml", "--store", f"{self.server.url}/{name}", log]
        measure.settle()
        begun = time.monotonic()
        subprocess.run(argv, cwd=self.dir, check=True)
        self.rates[way].append(self.arguments.raw_lines / (time.monotonic() - begun))
        self.check(way, self.client[name])

    def check(self, way, base):
        """As many are kept as are counted."""
        counted = sum(one["total"] for one in base["pages.month"].find({}, {"total": 1}))
        kept = base["raw.site"].count_documents({}) if way != "none" else counted
        if counted != self.arguments.raw_lines or kept != counted:
            raise measure.Failed(f"{self.label}: of {self.arguments.raw_lines:,} lines {counted:,} are counted and {kept:,} kept")

    def measure(self):
        os.makedirs(self.dir)
        log = os.path.join(self.dir, "a.log")
        ingest.write_fed(log, int(time.time()), self.arguments.raw_lines)
        for _ in range(self.arguments.rounds):
            for way in WAYS:
                self.import_log(way, log)
        self.client.drop_database("raw")
        shutil.rmtree(self.dir)
        return self
