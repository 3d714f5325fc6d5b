#!/usr/bin/env python3
"""Histories of a followed log that a seed draws: rotated in every way, while its daemon is killed, paused, stopped and started.

    tests/chaos/histories.py [--rounds=N] [--seed=N] [--jobs=N] [--speed=N] [--results=FILE] [--keep] [--verbose]

History k of seed N is history 1 of seed N+k-1. Each line has a number of its own, so the judge knows which lines are in a file that is
still there, and compares that with the store (history.py, rotation.py). A history is

    exact          each line is counted once
    told           lines are missing, all of which were deleted before they were counted, and the daemon told a loss
    told too much  the daemon told a loss since something was deleted, or all files begin alike; but it had counted all lines
    untellable     lines are missing that were deleted, in a file of which nobody can know: no name and no count shows it
    SILENT         lines are missing, and nothing tells it
    LEFT           lines are missing that are in a file still; a loss was told
    DOUBLED        a line was counted more than once
    FALSE ALARM    a loss was told, and nothing was ever deleted
    MUTE           a loss is told in the log, and not in the metrics
    DIFFERS        each line is counted once, but `tallyd verify` with all files says otherwise
    ENDED          the daemon ended with an unexpected status, or did not answer

The last seven are bad: the status is 1, and the folder with logs, store and moves is kept. With --speed=N the daemon's monotonic clock
runs N times as fast (build/hurry.so), since it waits some seconds for the last lines of each renamed file. With --results rows of
bench/RESULTS.md, or another FILE, say what was found; and one more history is played, of a log that the real logrotate truncates at
2,000 lines a second (steady.py).
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import datetime
import os
import random
import shutil
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))
from history import GOOD, History, Verdict  # noqa: E402 (found only now)
import steady  # noqa: E402
from results import commit, measure, rows_of  # noqa: E402

COMMAND = "make histories"
ROTATIONS, BETWEEN_S = 20, 2  # of the steady one
HEAD = ("rotated by", "histories", "first seed", "played", "lines", *GOOD, "silent", "doubled", "other failures", "date", "commit")
WORDS = (*GOOD, "SILENT", "LEFT", "DOUBLED", "FALSE ALARM", "MUTE", "DIFFERS", "ENDED", "BROKEN")
TEXT = """
## Random histories of a followed log

{table}

In a history a log is written, and rotated by logrotate or as logrotate does it, also up to 20 times while the daemon is down. The
daemon is killed, paused, stopped and started at random. Then each line is recounted. A history is *exact* (each line is counted
once), *told* (lines were deleted before they were counted, and the daemon said so), *told too much* (the daemon told a loss, since a
file was deleted, but had counted all of it), *untellable* (a file came and was deleted while nobody looked) or a failure.
"""


@dataclasses.dataclass
class Played:
    """A history that is over."""
    seed: int
    habits: object
    verdict: Verdict
    done: collections.Counter
    lines: int
    seconds: float
    home: str


def play(seed, options):
    home, begun, one = tempfile.mkdtemp(prefix=f"tallyd-history-{seed}-"), time.monotonic(), None
    try:
        one = History(home, random.Random(seed), options.speed)
        verdict = one.play()
    except Exception:  # noqa: BLE001 (the next histories are worth playing)
        verdict = Verdict("BROKEN", traceback.format_exc())
    finally:
        if one is not None:
            one.daemon.kill_quietly()
    if verdict.is_good() and not options.keep:
        shutil.rmtree(home, ignore_errors=True)
    return Played(seed, one and one.habits, verdict, one.done if one else collections.Counter(), one.log.count if one else 0,
                  time.monotonic() - begun, home)


def tell(one, options):
    if one.verdict.is_good() and not options.verbose:
        return
    where = "" if one.verdict.is_good() and not options.keep else f"\n    see {one.home}"
    print(f"seed {one.seed}: {one.verdict.word} ({one.habits.words() if one.habits else '?'}; {one.seconds:.1f} s)"
          f" {one.verdict.why[:800]}{where}", flush=True)


def play_all(options, first):
    """All histories, as they end."""
    played = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        seeds = range(first, first + options.rounds)
        for future in concurrent.futures.as_completed([pool.submit(play, seed, options) for seed in seeds]):
            played.append(future.result())
            tell(played[-1], options)
    return sorted(played, key=lambda one: one.seed)


def groups_of(played):
    """{what rotated: histories}"""
    groups = collections.defaultdict(list)
    for one in played:
        habits = one.habits
        groups["?" if habits is None else habits.mode + (" by logrotate" if habits.real else "")].append(one)
    return dict(sorted(groups.items()))


def row(name, group, first):
    words, done = collections.Counter(one.verdict.word for one in group), sum((one.done for one in group), collections.Counter())
    others = sum(count for word, count in words.items() if word not in (*GOOD, "SILENT", "DOUBLED"))
    moves = ", ".join(f"{done[what]:,} {word}" for what, word in (("rotation", "rotations"), ("kill", "kills"), ("stop", "stops"),
                                                                   ("pause", "pauses"), ("delete", "deletions")))
    today = f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}"
    return (name, f"{len(group):,}", f"{first}", moves, f"{sum(one.lines for one in group):,}", *(f"{words[word]}" for word in GOOD),
            f"{words['SILENT']}", f"{words['DOUBLED']}", f"{others}", today, commit())


def play_steady():
    with tempfile.TemporaryDirectory(prefix="tallyd-steady-") as home:
        one = steady.play(home, random.Random(1), ROTATIONS, BETWEEN_S)
    print(f"{one}", flush=True)
    return one


def write(path, played, first, one):
    rows = {**rows_of(path, COMMAND, HEAD), **{name: row(name, group, first) for name, group in groups_of(played).items()}}
    tables = TEXT.format(table=measure.table([HEAD, *(rows[name] for name in sorted(rows))])), steady.TEXT.format(
        table=measure.table([steady.HEAD, one.row()]))
    measure.write_part(path, COMMAND, "".join(tables) + "\n" + measure.about(tempfile.gettempdir()))


def summarize(played, seconds):
    print(f"\n{'rotated by':24}" + "".join(f"{word:>15}" for word in WORDS))
    for name, group in [*groups_of(played).items(), ("all", played)]:
        words = collections.Counter(one.verdict.word for one in group)
        print(f"{name:24}" + "".join(f"{words[word] or '-':>15}" for word in WORDS))
    bad = [one.seed for one in played if not one.verdict.is_good()]
    done = sum((one.done for one in played), collections.Counter())
    print(f"\n{len(played)} histories in {seconds:.0f} s, {sum(one.seconds for one in played) / max(1, len(played)):.1f} s each; "
          f"{sum(one.lines for one in played):,} lines; " + ", ".join(f"{count} {what}" for what, count in done.most_common()))
    print(f"seeds that failed: {bad or 'none'}")


def arguments():
    parser = argparse.ArgumentParser(description="Random histories of a followed log, and an independent judge.")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--jobs", type=int, default=8 * os.cpu_count(), help="histories that are played side by side; they mostly wait")
    parser.add_argument("--speed", type=int, default=8, help="of the daemon's monotonic clock")
    parser.add_argument("--results", help="file of results to write rows of")
    parser.add_argument("--keep", action="store_true", help="keep the folders of good histories, too")
    parser.add_argument("--verbose", action="store_true", help="a line for each good history, too")
    return parser.parse_args()


def main():
    options, begun = arguments(), time.monotonic()
    first = options.seed if options.seed is not None else time.time_ns() // 1000000
    print(f"histories of seeds {first} to {first + options.rounds - 1}", flush=True)
    played = play_all(options, first)
    summarize(played, time.monotonic() - begun)
    are_good = all(one.verdict.is_good() for one in played)
    if options.results:
        one = play_steady()
        are_good &= one.is_exact()
        write(options.results, played, first, one)
    return 0 if are_good else 1


if __name__ == "__main__":
    sys.exit(main())
