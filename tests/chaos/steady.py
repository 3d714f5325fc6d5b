"""A log gets lines at a steady rate, and is rotated by the real logrotate with `copytruncate`, which keeps its copies.

logrotate loses what is written between its last read and the truncation. So the judge goes by the files: each line of a copy or of
the log is counted once. A line that is in none of them may be counted, but not twice.
"""

import dataclasses
import threading
import time

from history import History
from rotation import Habits

RATE, PUT_S = 2000, 0.005  # lines a second; pause of the writer
HEAD = ("rotations", "lines a second", "lines written", "lost by logrotate", "in the copies and the log", "counted of these",
        "counted twice", "losses told")
TEXT = """
## copytruncate by logrotate

{table}

A log gets 2,000 lines a second, and the real logrotate rotates it with `copytruncate`; its copies are kept. *Lost by logrotate*: lines
that are in no file any more, written between its last read and the truncation. All others are recounted from the files.
"""


@dataclasses.dataclass
class Steady:
    """`gone`: lines that logrotate lost."""
    rotations: int
    rate: float
    written: int
    gone: int
    present: int
    counted: int
    doubled: int
    told: int
    verdict: object

    def is_exact(self):
        """With more than a twentieth gone, the judge did not find the copies."""
        return (self.verdict.is_good() and 20 * self.gone < self.written and self.present == self.counted and self.doubled == 0
                and (self.told == 0 or self.gone > 0))

    def row(self):
        return (f"{self.rotations}", f"{self.rate:,.0f}", *(f"{n:,}" for n in (self.written, self.gone, self.present, self.counted,
                                                                                self.doubled, self.told)))


class Writer(threading.Thread):
    def __init__(self, log):
        super().__init__()
        self.log, self.over, self.first = log, threading.Event(), log.count
        self.begun = time.monotonic()

    def run(self):
        while not self.over.wait(PUT_S):
            due = int((time.monotonic() - self.begun) * RATE) - (self.log.count - self.first)
            if due > 0:
                self.log.write(due)

    def end(self):
        """Lines a second."""
        self.over.set()
        self.join()
        return (self.log.count - self.first) / (time.monotonic() - self.begun)


def play(home, dice, rotations, between_s):
    history = History(home, dice, 1, Habits(mode="copytruncate", real=True))
    log, daemon = history.log, history.daemon
    try:
        history.begin()
        writer = Writer(log)
        writer.start()
        for _ in range(rotations):
            time.sleep(between_s)
            log.begin()
            log.finish()
        time.sleep(between_s)
        rate = writer.end()
        present = set(log.present()[0])
        gone = set(range(1, log.count + 1)) - present
        log.free |= gone
        log.missed_by_copy = bool(gone)
        history.finish()
        verdict, (counted, _) = history.judge(), daemon.counts()
    finally:
        daemon.kill_quietly()
    present = set(log.present()[0])  # a line may have come at the end
    told = sum(daemon.log(run).count(b"event=file_lost ") for run in range(1, daemon.runs + 1))
    return Steady(rotations, rate, log.count, len(gone), len(present), len(present & set(counted)),
                  sum(count > 1 for count in counted.values()), told, verdict)
