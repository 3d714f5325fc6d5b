#!/usr/bin/env python3
"""Search ledger.pml, divided.pml, backfill.pml, rollup.pml, stages.pml and live.pml for a way to count an event twice or never: `model.py [--deep]`.

The protocols must hold in every world of WORLDS, and must fail in the world given wherever a rule is taken away:
a model that cannot fail proves nothing. `--deep` searches worlds of more than 10^7 states, which take minutes.
Needs spin and a C compiler.
"""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LEDGER, DIVIDED, BACKFILL, ROLLUP, STAGES, LIVE = (
    os.path.join(HERE, f"{name}.pml") for name in ("ledger", "divided", "backfill", "rollup", "stages", "live"))
DEPTH = 1_000_000
MEGABYTES = 6000
SECONDS = 600  # for one search; without --deep they take a few
AT_ONCE = 2  # searches; each may take MEGABYTES

WORLDS = [
    "CRASHES=1 LOST_REPLIES=1 REBALANCES=1",
    "CRASHES=2",
    "LATE_COMMITS=1 LOST_REPLIES=1 RESETS=1",
    "TWINS=1 LOST_REPLIES=1",
    "MOVES=1 CRASHES=1 REBALANCES=1 FEW=0",
    "MOVES=2 LATE_MOVES=1 REBALANCES=1",
    "MOVES=1 LATE_COMMITS=1 REBALANCES=1",
]

DEEP_WORLDS = [
    "CRASHES=2 LOST_REPLIES=1 REBALANCES=1",
    "CRASHES=1 LATE_COMMITS=1 REBALANCES=1",
    "TWINS=1 CRASHES=1",
]

DIVIDED_WORLDS = [
    "CRASHES=1 REBALANCES=1 LOST_REPLIES=1",
    "CRASHES=2 REBALANCES=1 EVENTS=2",
    "LATE=1 CRASHES=1 REBALANCES=1 EVENTS=2",
    "TWINS=1 LOST_REPLIES=1",
    "TWINS=1 LATE=1 EVENTS=2",
    "CLERKS=1 CRASHES=1 EVENTS=2",
    "CLERKS=1 RESETS=1 REBALANCES=1 EVENTS=2",
    "CLERKS=1 MOVES=1 CRASHES=1 EVENTS=2",
    "CLERKS=2 MOVES=1 EVENTS=2",
    "PICTURES=1 REBALANCES=1 EVENTS=2",
]

DEEP_DIVIDED_WORLDS = [
    "LATE=1 REBALANCES=3",
    "SLOTS=3 REBALANCES=1 CRASHES=1 EVENTS=2",
    "TWINS=1 CRASHES=1 REBALANCES=1 EVENTS=2",
    "CLERKS=1 REBALANCES=1 LATE=1 EVENTS=2",
    "PICTURES=1 CLERKS=1 EVENTS=2",
]

BACKFILL_WORLDS = [
    "CRASHES=1",
    "LIVES=2",
    "FILLERS=2",
    "START=3 END=4",
    "SEATS=1 CRASHES=1",
    "SEATS=1 START=3 END=4",
]

DEEP_BACKFILL_WORLDS = [
    "LIVES=2 CRASHES=1",
    "FILLERS=2 CRASHES=1",
    "START=3 END=5 CRASHES=1",
    "SEATS=1 LIVES=2",
    "SEATS=1 FILLERS=2",
]

ROLLUP_WORLDS = ["TURNS=1"]

DEEP_ROLLUP_WORLDS = ["TURNS=2"]

STAGES_WORLDS = [
    "BATCHES=3",
    "DAEMONS=2",
    "REPLAYERS=1",
    "EXPIRES=1",
    "SLOTS=2 EVENTS=1 DAEMONS=2",
    "REPLAYERS=1 WITHOUT_COMPARING_ROLLED",  # comparing `seq` is enough
]

DEEP_STAGES_WORLDS = [
    "BATCHES=3 DAEMONS=2",
    "BATCHES=3 REPLAYERS=1",
    "DAEMONS=2 REPLAYERS=1",
    "DAEMONS=2 EXPIRES=1",
]

LIVE_WORLDS = ["BATCHES=1", "SLOTS=1 BATCHES=3"]

# The subject of an assertion of the model, by a word in it.
MEANING = [
    ("sealed_as", "a picture lacks a batch, or has one too many"),
    ("has_sum", "a series may be larger than the bound says"),
    ("!(counted", "an event is counted twice"),
    ("is_counted", "an event is lost, or the books do not have it"),
    ("failed<=", "recovery does not end"),
    ("<=1", "a batch is found twice"),
    ("&170", "an event is counted twice"),
    ("were_done", "a chart misses a batch that was done"),
    ("rolled[s]>=", "a replay lacks a log"),
    ("unrolled", "a period stays unrolled"),
    ("sealed", "a document has a number that was never committed"),
    ("applied", "a document has a number that the ledger never gave"),
    ("todo", "a committed batch has no log"),
    ("", "an event is lost"),
]

# The rule taken away, and where it is missed.
VARIANTS = [
    ("GUARD", "CRASHES=1"),
    ("INCARNATION", "TWINS=1 LOST_REPLIES=1"),
    ("FINISHING_ITS_OWN", "CRASHES=1"),
    ("SEQ_AT_DONE", "CRASHES=1 REBALANCES=1"),
    ("DUPLICATE_KEY_RULE", ""),
    ("EPOCH", "LATE_COMMITS=1 RESETS=1"),
    ("ONE_OPEN_BATCH", "CRASHES=1"),
    ("CLAIM_FIRST", "CRASHES=1 REBALANCES=1"),
    ("APPLIED_KEPT", "REBALANCES=1"),
    ("IDENTICAL_COMMITS", "LOST_REPLIES=1"),
    ("FRESH_NUMBERS", "LATE_COMMITS=1"),
    ("LOG_FIRST", "CRASHES=1"),
    ("PAST_FIRST", "MOVES=1 CRASHES=1"),
    ("COMPARING_AT_REMOVAL", "MOVES=1 REBALANCES=1"),
    ("LEDGER_FIRST", "MOVES=1 CRASHES=1"),
    ("LOOK_AFTER_CLAIM", "MOVES=1 REBALANCES=1"),
    ("NEWER_PAST", "MOVES=2 LATE_MOVES=1 REBALANCES=1"),
    ("CLAIM_NUMBER", "MOVES=1 LATE_COMMITS=1 REBALANCES=1"),
]

DIVIDED_VARIANTS = [
    ("GUARD", "CRASHES=1"),
    ("FENCE", "REBALANCES=1"),
    ("RISING_FENCE", "LATE=1 REBALANCES=3"),
    ("INCARNATION", "TWINS=1 LOST_REPLIES=1 REBALANCES=1 EVENTS=2"),
    ("GROWING_INCARNATION", "TWINS=1"),
    ("INCARNATION_AT_THE_CLAIM", "TWINS=1 REBALANCES=1 EVENTS=2"),
    ("RESUMING_AT_THE_SEAT", "LATE=1"),
    ("RECALLING_ALL", "CRASHES=1 REBALANCES=1"),
    ("HIGHEST_EPOCH", "REBALANCES=2"),
    ("RECOVERING_AT_THE_RECALL", "CRASHES=1 REBALANCES=1"),
    ("FROM_KEPT", "CRASHES=1 REBALANCES=1"),
    ("SETTLING_AFTER_THE_SEAL", "CRASHES=1 REBALANCES=1"),
    ("CLAIM_WHEN_SETTLED", "LATE=1 REBALANCES=2"),
    ("FROM_WHEN_CLEANED", "CRASHES=1"),
    ("CLAIM_AT_HOME", "CLERKS=1 REBALANCES=1 LATE=1 EVENTS=2"),
    ("NEWER_AT_HOME", "CLERKS=1 REBALANCES=1 LATE=1 EVENTS=2"),
    ("CLAIM_NUMBER", "CLERKS=2 MOVES=1 EVENTS=2"),
    ("ITS_OWN_EPOCH", "CLERKS=2 MOVES=1 EVENTS=2"),
    ("SUM_OF_EPOCHS", "CLERKS=1 MOVES=1 CRASHES=1"),
    ("ASKING_PAST_ALWAYS", "CLERKS=1 MOVES=1 CRASHES=1"),
    ("READING_TWICE", "PICTURES=1 REBALANCES=1 EVENTS=2"),
]

BACKFILL_VARIANTS = [
    ("FILLS", "FILLERS=2"),
    ("EPOCH", ""),
    ("CLAIMING_FOR_UNTIL", ""),
    ("RECOVERING_FIRST", "FILLERS=2"),
    ("RECOVERING_AT_THE_CLAIM", ""),
    ("FILLS", "SEATS=1 FILLERS=2"),
    ("EPOCH", "SEATS=1"),
    ("CLAIMING_FOR_UNTIL", "SEATS=1"),
    ("RECALLING_FOR_UNTIL", "SEATS=1"),
    ("RECOVERING_FIRST", "SEATS=1 FILLERS=2"),
    ("RECOVERING_AT_THE_CLAIM", "SEATS=1"),
]

ROLLUP_VARIANTS = [
    "MARKING_BEFORE_DONE",
    "RAISING_THE_FENCE",
    "LOOKING_AFTER_N",
    "WAITING",
    "GUARD",
    "SETTING",
    "DUPLICATE_KEY_RULE",
    "FENCE_AT_THE_END",
    "N_AS_IT_BEGAN",
    "WRITTEN_KEPT",
    "FENCE_KEPT",
    "MARKS_FIRST",
]

STAGES_VARIANTS = [
    ("GUARD", ""),
    ("ROLLED_IN_THE_GUARD", "REPLAYERS=1"),
    ("LOOKING_AT_NUMBERS", "REPLAYERS=1"),
    ("ORDER", ""),
    ("PREV", "DAEMONS=2"),
    ("REPLAYING_FIRST", "DAEMONS=2"),
    ("INCARNATION", "DAEMONS=2"),
    ("SEQ_AT_DONE", "REPLAYERS=1"),
    ("SUMS_AFTER_THE_COMMIT", "EXPIRES=1"),
    ("ROLLED_AFTER_ALL", ""),
    ("KEEPING_LOGS", ""),
    ("THE_SEATS_ROLLED", "REPLAYERS=1"),
    ("THE_LOGS_NUMBER", "REPLAYERS=1"),
    ("LOOKING_AFTER_LISTING", "DAEMONS=2 REPLAYERS=1 READERS=0"),
    ("DELETING_ONES_OWN", "BATCHES=3 REPLAYERS=1"),
    ("COMPARING_WHEN_REPLAYED", "REPLAYERS=1"),
    ("COMPARING_SEQ", "REPLAYERS=1"),
    ("COMPARING_WHEN_TOLD", "DAEMONS=2"),
    ("UNROLLED_WITH_THE_COMMIT", "REPLAYERS=1"),
    ("LONGER_BEFORE_DONE", ""),
    ("SEATS_FIRST", ""),
    ("EXPIRY_WAITS", "EXPIRES=1"),
    ("MARGIN", "EXPIRES=1"),
    ("LOOKING_AGAIN", "EXPIRES=1"),
]

LIVE_VARIANTS = [
    ("COMPARING", "BATCHES=1"),
    ("OPEN_IS_NOT_DONE", "BATCHES=1"),
    ("LEDGER_FIRST", "BATCHES=1"),
    ("WHOLE_SUMS", "SLOTS=1 BATCHES=3"),
    ("LEAVING_WHAT_TAKES", "SLOTS=1 BATCHES=3"),
]


def search(model, definitions, is_deep):
    """The output of spin's verifier for the model with these definitions."""
    flags = ["-D" + d for d in definitions.split()]
    # To optimise takes 10 s of processor time, and saves 4 s of a search of 5 * 10^6 states. Most searches have far fewer.
    optimise = "-O2" if is_deep else "-O0"
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(["spin", "-a", *flags, model], cwd=work, check=True, stdout=subprocess.DEVNULL)
        # HC4 keeps of each state a hash long enough that two of 10^8 states are never expected to share one.
        subprocess.run(["cc", optimise, "-w", "-DSAFETY", "-DHC4", f"-DMEMLIM={MEGABYTES}", "-o", "pan", "pan.c"],
                       cwd=work, check=True)
        return subprocess.run(["./pan", f"-m{DEPTH}"], cwd=work, capture_output=True, text=True, check=False,
                              timeout=SECONDS).stdout


def judge(model, name, definitions, must_hold, is_deep):
    """One line about this search, and whether it is as expected."""
    start = time.monotonic()
    out = search(model, definitions, is_deep)
    states = float(re.search(r"(\S+) states, stored", out).group(1))
    errors = int(re.search(r"errors: (\d+)", out).group(1))
    whole = "Search not completed" not in out and "max search depth too small" not in out
    good = errors == 0 and whole if must_hold else errors > 0
    what = "holds"
    if errors > 0:
        violated = re.search(r"assertion violated (.*)", out).group(1)
        what = "fails: " + next(meaning for part, meaning in MEANING if part in violated)
    if errors == 0 and not whole:
        what = "was not searched to the end"
    line = f"{'PASS' if good else 'FAIL'}  {time.monotonic() - start:6.1f} s  {states:>11,.0f} states  {name}: {what}"
    return line if good else line + "\n" + out, good


def searches(with_deep):
    """[(model, name, definitions, must it hold?, is it deep?)]"""
    runs = []

    def add(model, prefix, worlds, deep_worlds=()):
        """Worlds in which the model holds."""
        for world in [*worlds, *(deep_worlds if with_deep else ())]:
            runs.append((model, prefix + world, world, True, world not in worlds))

    def add_failing(model, prefix, variants):
        """Worlds in which it does not hold without a rule."""
        for rule, world in variants:
            seats = " with seats" if "SEATS" in world else ""
            runs.append((model, f"{prefix}without {rule.lower().replace('_', ' ')}{seats}", f"WITHOUT_{rule} {world}", False, False))

    add(LEDGER, "", WORLDS, DEEP_WORLDS)
    add_failing(LEDGER, "", VARIANTS)
    add(DIVIDED, "divided: ", DIVIDED_WORLDS, DEEP_DIVIDED_WORLDS)
    add_failing(DIVIDED, "divided: ", DIVIDED_VARIANTS)
    add(BACKFILL, "backfill: ", BACKFILL_WORLDS, DEEP_BACKFILL_WORLDS)
    add_failing(BACKFILL, "backfill: ", BACKFILL_VARIANTS)
    add(ROLLUP, "rolling up: ", ROLLUP_WORLDS, DEEP_ROLLUP_WORLDS)
    add_failing(ROLLUP, "rolling up: ", [(rule, "") for rule in ROLLUP_VARIANTS])
    add(STAGES, "longer documents: ", STAGES_WORLDS, DEEP_STAGES_WORLDS)
    add_failing(STAGES, "longer documents: ", STAGES_VARIANTS)
    add(LIVE, "open periods: ", LIVE_WORLDS)
    add_failing(LIVE, "open periods: ", LIVE_VARIANTS)
    return runs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deep", action="store_true", help="larger worlds, too; takes minutes")
    runs = searches(parser.parse_args().deep)
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for line, good in pool.map(lambda run: judge(*run), runs):
            print(line, flush=True)
            bad += not good
    print(f"{len(runs)} searches, {bad} not as expected")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
