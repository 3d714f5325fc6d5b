#!/usr/bin/env python3
"""Each loss that once was silent, played many times: it must end exact, or refused with the reason.

    tests/chaos/losses.py [--rounds=N] [--jobs=N] [--only=WORD,…] [--list] [--results=FILE]

LOSSES names for each loss the system tests that play it. A round of a loss is one run of each of its tests. Tests that draw random
numbers draw a new seed in each round and print it. A test checks every count against a recount, and the reason of every refusal,
so a round without a failure is exact or refused. A round with a failure counts as silent: its output is shown, and the status is 1.
A round whose server did not start is played again. TALLYD_SEED repeats a round. --only chooses losses that contain a word, in their text or in their tests' names.

With --results, rows of bench/RESULTS.md, or another FILE, say what was found.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import datetime
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))
from harness import ROOT  # noqa: E402 (found only now)
from results import commit, measure, rows_of  # noqa: E402

COMMAND = "make losses"
HEAD = ("loss", "played by", "rounds", "exact or refused", "silent", "date", "commit")
SKIPPED = 77
BROKEN_MAX = 5  # starts of servers that may fail before a loss is skipped
START_S, TEST_S = 300, 180  # timeouts: of a program's servers, and of one test
OUTPUT_ROWS = 200  # of a failed round
TEXT = """
## Losses that once were silent

{table}

A round plays each of the tests once, with random numbers of its own where a test draws any. Tests compare all counts with a recount,
and the reason of a refusal with the words expected. A round in which a test fails is *silent*.
"""


@dataclasses.dataclass(frozen=True)
class Loss:
    words: str
    program: str  # of tests/system, without test_ and .py
    group: str  # the class of its tests
    tests: tuple  # their names, without test_
    server: str = ""  # TALLYD_MONGO of the tests

    def names(self):
        return [f"{self.group}.test_{name}" for name in self.tests]

    def played_by(self):
        return f"{self.program}: {', '.join(self.tests)}" + (f" ({self.server})" if self.server else "")


LOSSES = (
    Loss("topic: re-created while the daemon is paused", "kafka_again", "Again",
         ("created_again_while_the_daemon_is_paused", "created_again_while_it_is_paused_and_accepted",
          "without_a_new_record_the_daemon_finds_out_by_itself")),
    Loss("topic: of a single record, re-created while the daemon is paused", "kafka_again", "Again",
         ("of_a_single_record_the_daemon_finds_out_by_itself",)),
    Loss("topic: re-created while a daemon of a group is paused", "mongo_kafka", "MongoKafka",
         ("topic_created_again_while_it_is_paused",), "ferretdb"),
    Loss("topic: re-created, and its first records are in a partition that had none", "kafka_again", "Again",
         ("partition_of_the_new_topic_that_had_no_record_before",)),
    Loss("topic: re-created while its broker is away", "kafka_again", "Again", ("created_again_while_its_broker_is_away",)),
    Loss("topic: the broker lost its last records and was refilled", "kafka_again", "Again",
         ("a_broker_that_lost_its_last_records_and_was_refilled",)),
    Loss("topic: re-created while the daemon is down, with a transaction marker at the last offset counted", "kafka_again", "Again",
         ("no_record_at_the_offset_of_the_last_one_that_was_counted",)),
    Loss("topic: retention in a partition that was added and not counted yet", "kafka_again", "Again",
         ("retention_of_a_new_partition_before_it_was_counted_is_said",)),
    Loss("database: put back under running daemons, or at rest", "mongo_identity", "PutBack",
         ("under_a_daemon", "at_rest", "another_database"), "secantus"),
    Loss("database: dump of a live one restored", "mongo_identity", "Ahead", ("of_a_copy_of_a_live_one", "of_another_slot"), "secantus"),
    Loss("database: failover that lost acknowledged writes", "mongo_identity", "Ahead",
         ("after_a_failover", "numbers_are_not_used_again"), "secantus"),
    Loss("clock: `keep: {minute: 48h}` and six days ahead, for seconds or from the start", "clock", "WrongClock",
         ("for_seconds", "at_its_start")),
    Loss("clock: one daemon of a fleet is six days ahead", "mongo_expire", "MongoExpire", ("one_clock_of_three_is_ahead",), "ferretdb"),
    Loss("group: two daemons of one kafka.instance, and a third", "mongo_kafka", "MongoKafka",
         ("two_of_one_name_beside_a_third",), "ferretdb"),
    Loss("group: two groups of a topic in one database", "mongo_peers", "Peers",
         ("second_group_of_a_topic_is_refused", "of_two_groups_that_come_at_once_one_is_let_in",
          "one_that_slept_while_another_group_came_ends"), "ferretdb"),
    Loss("group: two definitions of a report in one database", "mongo_peers", "Peers",
         ("second_generation_beside_the_first_is_refused", "one_that_slept_while_the_second_generation_came_ends"), "ferretdb"),
    Loss("SQLite file: removed under a running daemon", "store_file", "StoreFile",
         ("removed", "removed_while_nothing_is_counted", "log_removed")),
    Loss("SQLite file: replaced under a running daemon", "store_file", "StoreFile", ("replaced", "index_of_the_log_replaced")),
    Loss("SQLite file: hard-linked under a running daemon", "store_file", "StoreFile", ("linked",)),
    Loss("flipped bits: of an SQLite file and of its log", "flips", "Flips", ("file", "log_of_a_daemon_that_was_killed")),
    Loss("flipped bits: of a batch's log in MongoDB", "mongo_identity", "Damaged", ("the_log_of_a_batch",), "secantus"),
)

speaking = threading.Lock()


class Played:
    """The rounds of a loss."""

    def __init__(self, loss):
        self.loss, self.good, self.silent, self.broken, self.skipped, self.seeds = loss, 0, 0, 0, None, []

    def add(self, status, output, rounds):
        """The number of rounds that a program has played."""
        ran = re.search(r"(?m)^Ran (\d+) tests?", output)
        self.seeds += re.findall(r"TALLYD_SEED=(\d+)", output)
        if status == 0 and ran and int(ran[1]) == rounds * len(self.loss.tests):
            self.good += rounds
            return
        self.good += max(0, int(ran[1]) - 1) // len(self.loss.tests) if ran else 0
        if broken := re.search(r"(?m)^(?:skipped|process\.Missing): (.*)", output):
            self.broken += 1
            self.skipped = broken[1] if self.broken == BROKEN_MAX else None
            return
        self.silent += 1
        with speaking:
            print(f"SILENT? {self.loss.words}: a round failed", *(f"    | {row}" for row in output.splitlines()[-OUTPUT_ROWS:]), sep="\n")

    def row(self):
        return (self.loss.words, self.loss.played_by(), f"{self.good + self.silent}", f"{self.good}", f"{self.silent}",
                f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}", commit())


def run(loss, rounds):
    """(status, output) of a program that plays so many rounds, and ends at the first failure."""
    argv = [os.path.join(ROOT, f"tests/system/test_{loss.program}.py"), "--failfast", *loss.names() * rounds]
    environment = {**os.environ, **({"TALLYD_MONGO": loss.server} if loss.server else {})}
    limit_s = START_S + TEST_S * len(loss.tests) * rounds
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(argv, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            status = None
            output.write(f"\ntook longer than {limit_s} s\n".encode())
        with contextlib.suppress(ProcessLookupError):  # what a test left
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        output.seek(0)
        return status, output.read().decode(errors="replace")


def play(loss, rounds):
    """All rounds: after a failure, the next program plays what is left."""
    played, begun = Played(loss), time.monotonic()
    while played.skipped is None and (left := rounds - played.good - played.silent) > 0:
        played.add(*run(loss, left), left)
    with speaking:
        print(f"{loss.words}: {played.good} exact or refused, {played.silent} silent" +
              (f", {played.skipped}" if played.skipped else "") + f", {time.monotonic() - begun:.0f} s")
        print(*(f"    {loss.played_by()}", *(["    seeds " + " ".join(played.seeds)] if played.seeds else [])), sep="\n", flush=True)
    return played


def write(path, played):
    rows = {**rows_of(path, COMMAND, HEAD), **{one.loss.words: one.row() for one in played}}
    known = [rows[loss.words] for loss in LOSSES if loss.words in rows]
    measure.write_part(path, COMMAND, TEXT.format(table=measure.table([HEAD, *known])))


def arguments():
    parser = argparse.ArgumentParser(description="Losses that once were silent, again and again.")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="losses that are played side by side")
    parser.add_argument("--only", default="", help="words of losses or of their tests, with commas between them")
    parser.add_argument("--list", action="store_true", help="list the losses and their tests")
    parser.add_argument("--results", help="file of results to write rows of")
    return parser.parse_args()


def main():
    options = arguments()
    chosen = [loss for loss in LOSSES if any(word in loss.words or word in loss.played_by() for word in options.only.split(","))]
    if options.list or not chosen:
        print(*(f"{loss.words}\n    {loss.played_by()}" for loss in chosen or LOSSES), sep="\n")
        return 0 if chosen else 64
    with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        played = []
        for future in concurrent.futures.as_completed([pool.submit(play, loss, options.rounds) for loss in chosen]):
            played.append(future.result())
            if options.results and not played[-1].skipped:
                write(options.results, played[-1:])
    silent, skipped = sum(one.silent for one in played), [one.loss.words for one in played if one.skipped]
    print(f"\n{len(played)} losses, {sum(one.good for one in played)} rounds exact or refused, {silent} silent" +
          (f"; skipped: {', '.join(skipped)}" if skipped else ""))
    return 1 if silent else SKIPPED if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
