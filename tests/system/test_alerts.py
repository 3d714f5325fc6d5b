#!/usr/bin/env python3
"""The alert rules in docs/examples/alerts, as they are shipped, by the real vmalert, Prometheus and Alertmanager: they fire when
the log has errors, and resolve when it is over. Only intervals are shortened, ranges of counts made long, and addresses those of the
test: however slow the computer is, what was counted stays in its range.

Needs vmalert (tests/servers/alerts.py install), and Debian's prometheus and prometheus-alertmanager; else exit 77.
"""

import http.server
import json
import os
import re
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

from harness import ROOT, TIMEOUT_S, DaemonCase

sys.path.insert(0, os.path.join(ROOT, "tests", "servers"))
import alerts  # noqa: E402 (found only now)
from process import Missing, free_ports  # noqa: E402
from prometheus import Prometheus  # noqa: E402

EXAMPLES = os.path.join(ROOT, "docs/examples/alerts")
MINUTE, DAY = 60, 86400
CONFIG = b"""
sources: {access: {path: access.log}}
reports:
  site: {}
  statuses: {by: [status_class]}
"""
# Every time that a file names, but for those in expressions.
RANGES = re.compile(r"\[(5|10)m\]")
INTERVALS = re.compile(r"\b(interval|scrape_interval|evaluation_interval|group_wait|group_interval|for): \w+")


def line(at, status):
    stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(at))
    return f'192.0.2.1 - - [{stamp}] "GET / HTTP/1.1" {status} 10 "-" "test"\n'.encode()


class Webhook(http.server.BaseHTTPRequestHandler):
    """Notes what each alert is by now."""

    def do_POST(self):
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        for alert in told["alerts"]:
            self.server.told[alert["labels"]["alertname"]] = alert
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


class Alerts(DaemonCase):
    def setUp(self):
        super().setUp()
        self.webhook = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
        self.webhook.told = {}
        threading.Thread(target=self.webhook.serve_forever, daemon=True).start()
        self.addCleanup(self.webhook.server_close)
        self.addCleanup(self.webhook.shutdown)
        self.port, = free_ports(1)
        self.write("tallyd.yaml", CONFIG)
        old = line(int(time.time()) - DAY, 200)
        self.write("access.log", old)
        self.lines = 1
        self.run_tallyd()
        self.alertmanager = alerts.Alertmanager(self.path("alertmanager"))
        self.addCleanup(self.alertmanager.stop)
        self.alertmanager.start(self.example("alertmanager.yml"))

    def run_tallyd(self):
        self.launch("-c", "tallyd.yaml", "--listen", f"127.0.0.1:{self.port}")
        self.wait_for_consumed(self.lines)

    def example(self, name):
        """A copy with the addresses of the test, in which everything happens each second."""
        with open(os.path.join(EXAMPLES, name), encoding="utf-8") as file:
            text = INTERVALS.sub(lambda found: found.group(1) + (": 0s" if found.group(1) == "for" else ": 1s"), file.read())
        if name == "counts.yml":
            text = RANGES.sub("[1h]", text)
        text = text.replace("127.0.0.1:8080", f"127.0.0.1:{self.port}")
        text = text.replace("127.0.0.1:9094", f"127.0.0.1:{self.webhook.server_port}")
        if name == "prometheus.yml":
            text = text.replace("127.0.0.1:9093", f"127.0.0.1:{self.alertmanager.port}")
        self.write(name, text.encode())
        return self.path(name)

    def count(self, status, number):
        """Requests of the minute before the last, as vmalert asks for a time that is half a minute ago."""
        self.append("access.log", line(int(time.time()) - 2 * MINUTE, status) * number)
        self.lines += number
        self.wait_for_consumed(self.lines)

    def wait_until(self, alert, status):
        told = self.webhook.told
        end = time.monotonic() + TIMEOUT_S
        while told.get(alert, {}).get("status") != status:
            self.assertLess(time.monotonic(), end, f"{alert} is not {status}: {told}")
            time.sleep(0.05)
        return told[alert]["annotations"]["summary"]

    def wait_until_calm(self, alert):
        """It may have fired, as while the daemon started or this computer was slow, and does not fire now."""
        if alert in self.webhook.told:
            self.wait_until(alert, "resolved")

    def rule(self, name):
        """What the one who evaluates the rules says of one."""
        with urllib.request.urlopen(self.evaluator.url + "/api/v1/rules", timeout=TIMEOUT_S) as reply:
            groups = json.load(reply)["data"]["groups"]
        return next(rule for group in groups for rule in group["rules"] if rule["name"] == name)

    def check_stays_calm(self, alert):
        """It is evaluated anew, twice, by what was counted until now, and does not fire."""
        for _ in range(2):
            before = self.rule(alert)["lastEvaluation"]
            end = time.monotonic() + TIMEOUT_S
            while (rule := self.rule(alert))["lastEvaluation"] == before:
                self.assertLess(time.monotonic(), end, rule)
                time.sleep(0.05)
            self.assertEqual(("ok", "inactive"), (rule["health"], rule["state"]), rule)

    def start_vmalert(self):
        vmalert = alerts.Vmalert(self.path("vmalert"))
        self.addCleanup(vmalert.stop)
        vmalert.start(self.example("counts.yml"), f"{self.url}/prometheus", self.alertmanager.url)
        self.evaluator = vmalert

    def start_prometheus(self):
        self.example("counts.yml")
        self.example("daemon.yml")
        server = Prometheus(self.path("prometheus"))
        self.addCleanup(server.stop)
        server.start(self.example("prometheus.yml"), "--rules.alert.resend-delay=1s")
        self.evaluator = server

    def check_counts(self, few, share):
        """What there is in counts.yml: nothing is asked, requests come, too many fail, others do not."""
        self.wait_until("NoRequests", "firing")
        self.count(200, 100 - few)
        self.wait_until("NoRequests", "resolved")
        self.count(503, few)
        self.check_stays_calm("ManyServerErrors")
        self.count(500, 25)
        said = self.wait_until("ManyServerErrors", "firing")
        self.assertRegex(said, f"^{share}% of the requests of the last 5 minutes failed$")
        self.count(200, 1000)
        self.wait_until("ManyServerErrors", "resolved")

    def test_vmalert_asks_tallyd(self):
        self.start_vmalert()
        self.check_counts(5, "24")

    def test_prometheus_reads_tallyd(self):
        """The rules on counts by remote_read, and those on the daemon's own metrics."""
        self.start_prometheus()
        self.check_counts(4, r"2[345](\.\d+)?")  # Prometheus extrapolates
        self.assertNotIn("TallydRejects", self.webhook.told)
        self.append("access.log", b"what is this\n" * 50)
        self.lines += 50
        self.wait_for_consumed(self.lines)
        self.assertRegex(self.wait_until("TallydRejects", "firing"), "of the records of source [a-z]+ cannot be read by tallyd at 127.0.0.1")
        self.wait_until_calm("TallydDown")
        self.stop()
        self.assertRegex(self.wait_until("TallydDown", "firing"), "does not answer")
        self.lines = 0  # a daemon counts what it has consumed itself
        self.run_tallyd()
        self.wait_until("TallydDown", "resolved")
        self.wait_until_calm("TallydNotReady")
        self.assertNotIn("TallydLostFile", self.webhook.told)

    def test_files_are_valid(self):
        """As the tools of their own check them, as shipped."""
        for argv in (["promtool", "check", "rules", "counts.yml", "daemon.yml"], ["promtool", "check", "config", "prometheus.yml"],
                     ["amtool", "check-config", "alertmanager.yml"]):
            done = subprocess.run(argv, cwd=EXAMPLES, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
            self.assertEqual(0, done.returncode, done.stdout + done.stderr)


if __name__ == "__main__":
    try:
        Prometheus.binary()
        alerts.alertmanager()
        alerts.install()
    except Missing as reason:
        print(reason)
        sys.exit(77)
    unittest.main()
