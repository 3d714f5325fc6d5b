#!/usr/bin/env python3
"""The page of metrics of a running daemon: its figures are right, and Prometheus' own tool finds nothing to say.

Needs promtool (Debian: prometheus); without it the test is skipped (exit 77).
"""

import re
import shutil
import subprocess
import sys
import unittest

from harness import TIMEOUT_S, DaemonCase

LINE = b'192.0.2.1 - - [05/Jan/2026:10:00:00 +0000] "GET /%d HTTP/1.1" 200 10\n'


class MetricsTest(DaemonCase):
    def setUp(self):
        super().setUp()
        self.launch("--listen", "127.0.0.1:0")
        self.feed(b"".join(LINE % (i % 7) for i in range(10)) + b"rubbish\n\n")
        self.wait_for_consumed(12)

    def test_figures_are_right(self):
        page = self.get("/metrics")
        for line in ("tallyd_lines_consumed_total 12", "tallyd_events_parsed_total 10", "tallyd_ready 1",
                     'tallyd_lines_rejected_total{reason="empty"} 1', 'tallyd_events_counted_total{report="pages"} 10',
                     "tallyd_last_batch_events 10", "tallyd_last_batch_cells 8", "tallyd_batches_applied_total 1",
                     'tallyd_apply_duration_seconds_bucket{le="+Inf"} 1', "tallyd_apply_duration_seconds_count 1"):
            self.assertIn(line + "\n", page)
        took, interval = (float(re.search(rf"(?m)^tallyd_{name} (\S+)$", page)[1])
                          for name in ("apply_duration_seconds_sum", "flush_interval_seconds"))
        # A file is written in far less than the interval, which stays: but where the disk is busy.
        self.assertAlmostEqual(min(max(1, 2 * took), 2), interval, delta=0.01)
        self.assertRegex(page, r"(?m)^tallyd_memory_anonymous_bytes [1-9]\d{5,}$")
        self.assertRegex(page, r"(?m)^tallyd_memory_shards_bytes [1-9]\d{3,}$")
        self.stop()

    def test_prometheus_finds_nothing_to_say(self):
        page = self.get("/metrics")
        done = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False,
                              timeout=TIMEOUT_S)
        self.assertEqual((0, "", ""), (done.returncode, done.stdout, done.stderr))
        self.stop()


if __name__ == "__main__":
    if shutil.which("promtool") is None:
        print("skipped: there is no promtool (Debian package prometheus)")
        sys.exit(77)
    unittest.main()
