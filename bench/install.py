#!/usr/bin/env python3
"""make bench-install: the time from the command that installs the Debian package to the first chart of a busy Apache, without an edited
file; writes a part of bench/RESULTS.md. Each round is a new machine with a real systemd (tests/servers/machine.py), so it needs root."""

import argparse
import csv
import io
import os
import shutil
import sys
import time

import measure

for folder in ("tests/long", "tests/system", "tests/servers"):
    sys.path.insert(0, os.path.join(measure.ROOT, folder))
import machine  # noqa: E402 (found only now)
import test_deb  # noqa: E402

NAME = "bench-install"
INSTALL = "apt-get -q -y install /shared/tallyd.deb"
ASK = "tallyd query http://127.0.0.1:8080 site --from -1h --step minute --format csv"
LOST_S = 60


def parse_arguments():
    parser = argparse.ArgumentParser(description="Time the first chart after the installation; write bench/RESULTS.md.")
    parser.add_argument("--rounds", type=int, default=5, help="new machines (default 5)")
    measure.add_arguments(parser)
    return parser.parse_args()


def has_chart(one):
    done = one.run(ASK, check=False)
    return done.returncode == 0 and any(int(row["value"] or 0) for row in csv.DictReader(io.StringIO(done.stdout)))


def run_round(work):
    """(seconds until the command has ended, seconds until the chart shows lines)"""
    with machine.Machine(shared=work) as one:
        one.run("rm -rf /var/log/apache2 /var/log/nginx")
        log = test_deb.Log(one, test_deb.APACHE)
        log.start()
        try:
            begun = time.monotonic()
            one.run(INSTALL)
            installed_s = time.monotonic() - begun
            while not has_chart(one):
                if time.monotonic() - begun > LOST_S:
                    raise measure.Failed(f"no chart after {LOST_S} s")
                time.sleep(0.05)
            return installed_s, time.monotonic() - begun
        finally:
            log.stop()


def run_all(arguments, work):
    shutil.copy(test_deb.build()[0], os.path.join(work, "tallyd.deb"))
    times = []
    for number in range(arguments.rounds):
        times.append(run_round(work))
        measure.say(NAME, f"round {number + 1}: installed in {times[-1][0]:.1f} s, first chart after {times[-1][1]:.1f} s")
    charts = [chart_s for _, chart_s in times]
    is_reached = max(charts) <= test_deb.FIRST_CHART_S
    rows = [["figure", "at most", f"median of {len(times)} (least–most)"],
            ["`apt install` ends", "", measure.spread([installed_s for installed_s, _ in times], digits=1)],
            ["first chart of a busy Apache, no file edited", f"{test_deb.FIRST_CHART_S} s",
             measure.verdict(measure.spread(charts, digits=1), is_reached)]]
    wrong = [] if is_reached else ["the first chart came late"]
    return wrong, f"\n{measure.table(rows)}\n\n## Machine\n\n{measure.about(work)}\n"


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all, (machine.MachineError,)))
