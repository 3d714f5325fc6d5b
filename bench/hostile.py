#!/usr/bin/env python3
"""make bench-hostile: a daemon that reads as fast as it can while clients mean it harm: questions that take for ever, slow requests, slow
readers, 300 streams; writes a part of bench/RESULTS.md. Stretches with them and without take turns, so that this computer's other work
is beside both. The attackers are as nice as can be, since they would be other computers. Even so, busy cores slow each other down, so a
third stretch has loops that do nothing, as nice as the attackers, for comparison. The exit status is 1 if memory exceeded what `check
--print` says; a missed figure of time is no failure."""

import argparse
import collections
import contextlib
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time

import daemon
import measure

sys.path.insert(0, os.path.join(measure.ROOT, "tests", "system"))
import test_hostile  # noqa: E402 (found only now)

NAME = "bench-hostile"
CALM_S, WARM_S, PAUSE_S = 10, 2, 0.05
LINES, FED_LINES = 60_000, 1_000_000
INGEST = 0.9


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measure a daemon under hostile load; write bench/RESULTS.md.")
    parser.add_argument("--seconds", type=int, default=600, help="of hostile load (default 600)")
    parser.add_argument("--rounds", type=int, default=20, help="stretches that these are cut into (default 20)")
    measure.add_arguments(parser)
    return parser.parse_args()


class Bench:
    def __init__(self, arguments, work):
        self.arguments = arguments
        config = test_hostile.CONFIG.format(timeout="5s")
        self.daemon = daemon.Daemon(arguments.build, os.path.join(work, "daemon"), re.sub(r"(?m)^http: .*\n", "", config))
        for name, lines in (("access.log", LINES), ("fed.log", FED_LINES)):
            with open(self.path(name), "wb") as log:
                subprocess.run([os.path.join(arguments.build, "traffic"), "--lines", str(lines)], stdout=log, check=True)
        self.took, self.bare_took, self.attacked = [], [], collections.Counter()
        self.loads = []

    def path(self, name):
        return os.path.join(self.daemon.dir, name)

    def tallyd(self, *arguments):
        return subprocess.run([self.daemon.program, *arguments, "-c", "tallyd.yaml"], cwd=self.daemon.dir, check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout

    @contextlib.contextmanager
    def running(self):
        """A daemon that is fed for ever, and a bare server."""
        self.tallyd("import", "access.log")
        self.stated_mib = int(re.search(r"in all +(\d+) MiB", self.tallyd("check", "--print")).group(1))
        feeder = subprocess.Popen(["bash", "-c", "while cat fed.log; do :; done"], cwd=self.daemon.dir, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL)
        self.daemon.start(stdin=feeder.stdout)
        feeder.stdout.close()
        self.bare = test_hostile.Bare(self.daemon.dir)
        try:
            self.url = "http://" + self.daemon.host()
            with measure.watching_memory(self.daemon.process.pid) as self.peak:
                yield
        finally:
            feeder.kill()
            feeder.wait()
            self.bare.stop()
            self.daemon.end()

    def rate(self, seconds, meanwhile=time.sleep):
        """Lines a second, as the daemon counts them."""
        def consumed():
            while True:
                with contextlib.suppress(ConnectionError):  # it is asked again; answered_ms() counts such failures
                    return self.daemon.metrics()["tallyd_lines_consumed_total"], time.monotonic()
        before, begun = consumed()
        meanwhile(seconds)
        after, ended = consumed()
        self.loads.append(os.getloadavg()[0])
        return (after - before) / (ended - begun)

    def ask_health(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.took.append(test_hostile.answered_ms(self.url))
            self.bare_took.append(test_hostile.answered_ms(self.bare.url))
            time.sleep(PAUSE_S)

    def attacked_rate(self, seconds):
        paths = [test_hostile.LARGE, test_hostile.question(test_hostile.HEAVY), *test_hostile.GREEDY,
                 *(test_hostile.question(f"count(pages:hits{{path=~{json.dumps(evil)}}})") for evil in test_hostile.EVIL)]
        host, port = self.url.split("//")[1].split(":")
        with subprocess.Popen(["nice", "-n", "19", sys.executable, os.path.join(measure.ROOT, "tests/system/attackers.py"), host, port,
                               str(seconds + WARM_S + 1)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              start_new_session=True) as attackers:  # else the kernel gives them and the daemon one share
            attackers.stdin.write("\n".join(paths).encode())
            attackers.stdin.close()
            time.sleep(WARM_S)
            rate = self.rate(seconds, self.ask_health)
            self.attacked.update(json.loads(attackers.stdout.read()))
        return rate

    def looped_rate(self):
        """With a loop for each core, as nice as the attackers."""
        loops = [subprocess.Popen(["nice", "-n", "19", sys.executable, "-c", "while True: pass"], start_new_session=True)
                 for _ in range(os.cpu_count())]
        time.sleep(WARM_S)
        rate = self.rate(CALM_S)
        for loop in loops:
            loop.kill()
            loop.wait()
        return rate

    def run(self):
        seconds = self.arguments.seconds / self.arguments.rounds
        self.shares, self.looped, self.calm = [], [], []
        with self.running():
            self.rate(WARM_S)
            before = self.rate(CALM_S)
            for number in range(self.arguments.rounds):
                attacked = self.attacked_rate(seconds)
                time.sleep(WARM_S)
                after = self.rate(CALM_S)
                self.shares.append(2 * attacked / (before + after))
                self.calm.append(after)
                self.looped.append(self.looped_rate() / after)
                before = after
                measure.say(NAME, f"round {number + 1}: ingest {self.shares[-1]:.2f} × {after:,.0f} lines/s, "
                                  f"/healthz p99 {test_hostile.p99(self.took):.1f} ms, RssAnon {self.peak[0] >> 10} MiB")


def report(bench, work):
    p99, bare_p99 = test_hostile.p99(bench.took), test_hostile.p99(bench.bare_took)
    share, peak_mib = statistics.median(bench.shares), bench.peak[0] >> 10
    rows = [["figure", "wanted", "measured"],
            ["`/healthz` under attack, p99", f"at most {test_hostile.HEALTH_MS} ms",
             measure.verdict(f"{p99:.1f} ms of {len(bench.took)} ({bench.took.count(math.inf)} closed unanswered)", p99 <= test_hostile.HEALTH_MS)],
            ["a bare server beside it, p99", "", f"{bare_p99:.1f} ms (at most {max(bench.bare_took):.1f})"],
            ["ingest under attack, as a share of that without", f"at least {INGEST}",
             measure.verdict(measure.spread(bench.shares, "", 2), share >= INGEST)],
            ["the same beside a loop for each core instead of an attack", "", measure.spread(bench.looped, "", 2)],
            ["lines a second without attack", "", measure.spread(bench.calm, "", 0)],
            ["peak of RssAnon", f"at most {bench.stated_mib} MiB (`check --print`)",
             measure.verdict(f"{peak_mib} MiB", peak_mib <= bench.stated_mib)]]
    attacks = ", ".join(f"{count:,} × {kind}" for kind, count in sorted(bench.attacked.items()))
    return (f"\n{bench.arguments.seconds} s of hostile load in {bench.arguments.rounds} stretches, with calm ones between. The bare server and the load "
            "average show how busy this computer was with other work.\n\n"
            f"{measure.table(rows)}\n\n"
            f"Attempts: {attacks}.\n\n## Machine\n\n" +
            measure.about(work, ("load average meanwhile", measure.spread(bench.loads, "", 1))) + "\n")


def run_all(arguments, work):
    bench = Bench(arguments, work)
    bench.run()
    return ["memory"] if bench.peak[0] >> 10 > bench.stated_mib else [], report(bench, work)


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all))
