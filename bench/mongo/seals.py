"""make bench-seals: how many seals a second the ledger in MongoDB and its seats take, by writers and by documents; writes bench/RESULTS.md.

On each server, one after the other, seals.c: the slots and their partitions in one ledger, divided among several, or with a seat for each
slot. Besides the rate, it measures the processor time of the server's processes for a seal, which other work on the machine changes less.
The figures have a bound, but a missed one is no failure. Each slot is compared at the end with the seals that were acknowledged: if one
differs, the exit status is 1.
"""

import argparse
import collections
import functools
import glob
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "bench"), os.path.join(ROOT, "tests", "servers")]

import measure  # noqa: E402
import mongo  # noqa: E402
from measure import CONCERN, percentile, verdict  # noqa: E402

try:
    import pymongo
except ImportError:
    pymongo = None  # main() begins again by a Python that has it

SERVERS = {"ferretdb": "FerretDB 2", "secantus": "SecantusDB", "secantus-py": "SecantusDB in Python"}
SLOTS, PARTITIONS, SECONDS, BOUND, SYNCS, FEW = 64, 4, 8, 1000, 50, 8
SEATS = "seats"  # for the number of ledgers: a document for each slot, and a ledger that says whose the partitions are
# Writers, ledgers, partitions that nobody seals.
PLAN = [(1, 1, 0), (8, 1, 0), (64, 1, 0), (1, FEW, 0), (8, FEW, 0), (64, FEW, 0), (1, 64, 0), (8, 64, 0), (64, 64, 0), (1, 1, 10_000),
        (64, 1, 10_000), (64, 64, 10_000), (1, SEATS, 0), (8, SEATS, 0), (64, SEATS, 0), (1, SEATS, 10_000), (64, SEATS, 10_000)]
# Ledgers on which the parts of a seal are measured: ledgers, idle partitions.
PARTS, PART_S = [(64, 0), (1, 0), (1, 10_000)], 4
Found = collections.namedtuple("Found", "rate attempts errors unmatched p50 p99 kilobytes cpu_ms claim_p50 claim_max ledger_kilobytes")
NAME = "bench-seals"
say = functools.partial(measure.say, NAME)


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measure seals of the ledger in MongoDB; write bench/RESULTS.md.")
    parser.add_argument("--servers", nargs="+", choices=list(SERVERS), default=["ferretdb", "secantus"],
                        help="which (default ferretdb secantus)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"of each round (default {SECONDS})")
    measure.add_arguments(parser)
    return parser.parse_args()


def fields_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def cpu_s(roots):
    """The processor time of these processes and of all that they have started, also of those that have ended."""
    stats = {}
    for path in glob.glob("/proc/[0-9]*"):
        try:
            stats[int(os.path.basename(path))] = fields_of(os.path.basename(path))
        except OSError:  # it has ended
            continue
    found = {pid for pid in roots if pid in stats}
    while more := {pid for pid, stat in stats.items() if int(stat[1]) in found} - found:
        found |= more
    return sum(sum(map(int, stats[pid][11:15])) for pid in found) / os.sysconf("SC_CLK_TCK")


def sync_ms(work):
    """How long the disk takes for a page that is appended and synced: the median."""
    took = []
    with open(os.path.join(work, "synced"), "wb", buffering=0) as file:
        for _ in range(SYNCS):
            begun = time.monotonic()
            file.write(bytes(8192))
            os.fdatasync(file.fileno())
            took.append((time.monotonic() - begun) * 1000)
    return percentile(sorted(took), 0.5)


class Bench:
    """All that is measured on one server."""

    def __init__(self, arguments, name, work):
        self.arguments, self.label = arguments, SERVERS[name]
        self.server = mongo.Server(os.path.join(work, name), name)
        self.found, self.parts, self.wrong = {}, {}, []

    def roots(self):
        return [self.server.pid] + ([self.server.postgres.pid] if hasattr(self.server, "postgres") else [])

    def measure_parts(self, ledgers, idle):
        """The processor time in ms of each part of a seal, on a ledger that one writer has sealed into."""
        ledger = pymongo.MongoClient(f"{self.server.url}/{CONCERN}")[f"w1_l{ledgers}_i{idle}"].ledger
        slot = ledger.find_one({"_id": 0})["writers"]["w0"]
        same = {"_id": 0, "epoch": 1, "writers.w0.inc": 1, "writers.w0.seq": slot["seq"]}
        for i in range(PARTITIONS):
            same |= {f"partitions.visits:{i}.owner": 0, f"partitions.visits:{i}.epoch": 1, f"partitions.visits:{i}.next": slot["seq"]}
        steps = {"read a member by `_id`": lambda n: ledger.find_one({"_id": 0}, {"epoch": 1}),
                 "compare as a seal does": lambda n: ledger.find_one(same, {"epoch": 1}),
                 "set a number by `_id`": lambda n: ledger.update_one({"_id": 0}, {"$set": {"probe": n}})}
        for step, run in steps.items():
            say(f"{self.label}: {step}, {ledgers} ledgers, {idle} idle partitions")
            before, n, until = cpu_s(self.roots()), 0, time.monotonic() + PART_S
            while time.monotonic() < until:
                run(n)
                n += 1
            self.parts[step, ledgers, idle] = (cpu_s(self.roots()) - before) / n * 1000

    def measure(self, writers, ledgers, idle):
        say(f"{self.label}: {writers} writers, {ledgers} ledgers, {idle} idle partitions")
        program = [os.path.join(self.arguments.build, "mongo_seals"), f"{self.server.url}/w{writers}_l{ledgers}_i{idle}{CONCERN}"]
        measure.run([*program, "0", str(ledgers), str(idle)])
        before = cpu_s(self.roots())
        try:
            out = measure.run([*program, *map(str, (writers, ledgers, idle, self.arguments.seconds))]).out
        except measure.Failed as error:
            self.wrong.append(f"{self.label}, {writers} writers, {ledgers} ledgers: {error}")
            return
        spent = cpu_s(self.roots()) - before
        seals, seconds, every, errors, unmatched, p50, p99, size, claim_p50, claim_max, ledger = map(float, out.split())
        self.found[writers, ledgers, idle] = Found(seals / seconds, every + errors + unmatched, errors, unmatched, p50, p99,
                                                   size / 1000, spent / every * 1000, claim_p50, claim_max, ledger / 1000)

    def run(self):
        self.server.start()
        try:
            for case in PLAN:
                self.measure(*case)
            for case in PARTS:
                if (1, *case) in self.found:
                    self.measure_parts(*case)
        finally:
            self.server.kill()


def rows(bench):
    table = [["ledgers", "kB each", "writers", "seals/s", "p50, p99", "refused", "the server's processor time for a seal"]]
    for (writers, ledgers, idle), found in bench.found.items():
        refused = found.errors + found.unmatched
        table.append([f"{ledgers}{f', {idle:,} idle partitions' if idle else ''}", f"{found.kilobytes:,.0f}", str(writers),
                      f"{found.rate:,.0f}", f"{found.p50:,.1f}, {found.p99:,.1f} ms",
                      f"{refused / found.attempts:.1%} ({found.errors:.0f} errors)", f"{found.cpu_ms:.2f} ms"])
    return measure.table(table)


def claims(bench):
    """How long the claims took before the seals, by writers that all began at once."""
    table = [["a claim, with the first seal", "writers", "p50, the last", "kB of the ledger"]]
    for (writers, ledgers, idle), found in bench.found.items():
        if ledgers == SEATS:
            table.append([f"{idle:,} idle partitions", str(writers), f"{found.claim_p50:,.0f}, {found.claim_max:,.0f} ms",
                          f"{found.ledger_kilobytes:,.0f}"])
    return measure.table(table)


def parts(bench):
    """The processor time of a seal of one writer, and of what it consists of, by the size of the ledger."""
    cases = [case for case in PARTS if (1, *case) in bench.found]
    found = [bench.found[1, *case] for case in cases]
    table = [["the server's processor time, by the size of the ledger", *(f"{one.kilobytes:,.0f} kB" for one in found)]]
    for step in dict.fromkeys(step for step, _, _ in bench.parts):
        table.append([step, *(f"{bench.parts[step, *case]:.2f} ms" for case in cases)])
    table.append(["seal", *(f"{one.cpu_ms:.2f} ms" for one in found)])
    return measure.table(table)


def judge(bench):
    one, few, split, seats = (bench.found.get((SLOTS, ledgers, 0)) for ledgers in (1, FEW, SLOTS, SEATS))
    full = bench.found.get((SLOTS, SEATS, 10_000))
    if not one or not few or not split or not seats or not full:
        return ""
    next_text = verdict(f"Seats with {SLOTS} writers: {seats.rate:,.0f} seals/s of {BOUND:,}", seats.rate >= BOUND)
    full_text = verdict(f"With 10,000 idle partitions in the ledger: {full.rate:,.0f}", full.rate >= BOUND)
    text = verdict(f"One ledger with {SLOTS} writers: {one.rate:,.0f} seals/s of {BOUND:,}", one.rate >= BOUND)
    return f"""{text}. {FEW} ledgers take {few.rate / FEW:,.0f} seals/s each.
A ledger for each slot: {split.rate / one.rate:.1f} × as many in all, for {split.cpu_ms / one.cpu_ms:.2f} × the processor time of each.
{next_text}. {full_text}."""


def report(benches, wrong, work, disk_ms):
    tables = "\n\n".join(f"{bench.label}:\n\n{rows(bench)}\n\n{claims(bench)}\n\n{parts(bench)}\n\n{judge(bench)}" for bench in benches)
    return f"""
{tables}

A seal: the compare-and-set of a batch (docs/LEDGER.md, *commit*), `w: majority` and `j: true`, by `bench/mongo/seals.c`. {SLOTS} slots have
{PARTITIONS} partitions each, all of which a seal compares and moves; with several ledgers, slots are divided among them. Writers seal as
fast as they can, over a connection each. *Seats*: as tallyd has them, a document for each slot beside one ledger, which has the idle
partitions; each writer first claims its partitions, all at once, from seats that others left. With 64 ledgers, idle partitions are in
those. *Refused*: attempts that the server answered with an error, or by which it found nothing, though the numbers were right; they
were sent again. Processor time: of the server's processes, PostgreSQL included, and with seats that of the claims, too. It took the disk
{disk_ms:.2f} ms (median) to append a page of 8 KiB and sync it, before the servers began.

{measure.equality(wrong, "Each slot said at the end as many seals as had been acknowledged.")}

{measure.about(work, ("seconds of each round", f"{benches[0].arguments.seconds:g}"), ("libmongoc", measure.library("libmongoc-1.0")))}
"""


def run_all(arguments, work):
    mongo.begin()
    benches = []
    disk_ms = sync_ms(work)
    for name in arguments.servers:
        mongo.install(name)
        benches.append(Bench(arguments, name, work))
        benches[-1].run()
    wrong = [line for bench in benches for line in bench.wrong]
    return wrong, report(benches, wrong, work, disk_ms)


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all, mongo.ERRORS))
