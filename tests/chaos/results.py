"""The findings of rounds, as a row of bench/RESULTS.md: a later run replaces the row of its store."""

import collections
import datetime
import os
import re
import subprocess
import sys

from harness import ROOT

sys.path.insert(0, os.path.join(ROOT, "bench"))
import measure  # noqa: E402 (found only now)

COMMAND = "make chaos"
HEAD = ("store", "rounds", "seconds each", "first seed", "faults played", "events", "exact", "told", "silent", "date", "commit")
TEXT = """
## Faults by chance

{table}

Four daemons count a topic of a real Kafka broker and a file, while faults are played that the seed draws; then all events that were
produced are recounted. With SQLite each daemon has a store of its own, with the others they share one. Each store of a round is
*exact* (each event is counted once), *told* (what is missing, or counted again, is in the log as a warning or an error, or in the
books, or the daemon refused to go on; or the broker lost it before anybody counted it) or *silent* (anything else).
"""


class Results:
    """The sums over all rounds of a run."""

    def __init__(self, options, first):
        self.options, self.first = options, first
        self.played, self.words, self.events, self.broken = collections.Counter(), collections.Counter(), 0, 0

    def add(self, played, events, words):
        """No words: the round broke off."""
        self.played += played
        self.events += events
        self.words.update(words)
        self.broken += not words

    def row(self):
        faults = ", ".join(f"{count} {what}" for what, count in self.played.most_common())
        silent = f"{self.words['SILENT']}" + (f", and {self.broken} rounds broke off" if self.broken else "")
        return (self.options.store, f"{self.options.rounds}", f"{self.options.seconds}", f"{self.first}",
                f"{self.played.total():,}: {faults}", f"{self.events:,}", f"{self.words['exact']}", f"{self.words['told']}", silent,
                f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}", commit())

    def write(self, path):
        rows = {**rows_of(path), self.options.store: self.row()}
        measure.write_part(path, COMMAND, TEXT.format(table=measure.table([HEAD, *(rows[store] for store in sorted(rows))])))


def rows_of(path, command=COMMAND, head=HEAD):
    """{first column: row} that are there already."""
    try:
        with open(path, encoding="utf-8") as file:
            parts = re.split(r"(?m)^(?=# Results of )", file.read())
    except FileNotFoundError:
        return {}
    part = next((part for part in parts if part.startswith(f"# Results of `{command}`\n")), "")
    rows = [tuple(line[2:-2].split(" | ")) for line in part.splitlines() if line.startswith("| ")]
    return {row[0]: row for row in rows if len(row) == len(head) and row != head}


def commit():
    """The results themselves are no change of it."""
    changed = subprocess.run(["git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!bench/RESULTS.md"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    return measure.first_line("git", "-C", ROOT, "rev-parse", "--short", "HEAD") + (" and changes" if changed else "")
