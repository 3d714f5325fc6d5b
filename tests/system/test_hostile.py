#!/usr/bin/env python3
"""Clients that mean harm: questions that take for ever. Others are answered all the same, and the daemon ends when it is told to.

`python3 tests/system/test_hostile.py --seconds=600` has the load of all kinds go on for so long.
"""

import os
import socket
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import harness

LINES = 60_000
CONFIG = """
store: {{url: "sqlite:tallyd.db"}}
sources: {{access: {{type: stdin}}}}
reports:
  site:
  pages: {{by: [path]}}
query: {{timeout: {timeout}, rows_max: 1000000000}}
http: {{listen: "127.0.0.1:0"}}
"""
# Each text of 12,000 is tried by 300 alternatives, each of which goes back over all of the text.
ALTERNATIVES = "|".join(f".*(?i){chr(97 + i % 26)}.*{chr(97 + i // 26)}.*b" for i in range(300))
HEAVY = " or ".join([f'count(pages:hits{{path=~"({ALTERNATIVES}|.)"}})'])
HEALTH_MS = 100
STOP_S = 2


def cpu_s(pid):
    """Seconds of CPU that a process has taken."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Hostile(harness.DaemonCase):
    def launch_with(self, timeout="60s"):
        self.write("access.log", harness.traffic(LINES))
        self.write("c.yaml", CONFIG.format(timeout=timeout).encode())
        self.tallyd("import", "access.log", "-c", "c.yaml")
        self.launch("-c", "c.yaml")
        self.address = self.url.split("//")[1].split(":")
        self.address = (self.address[0], int(self.address[1]))

    def open(self, path, **headers):
        """A socket on which a request was sent."""
        sock = socket.create_connection(self.address, timeout=harness.TIMEOUT_S)
        self.addCleanup(sock.close)
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n".encode())
        return sock

    def heavy(self):
        return "/prometheus/api/v1/query?" + urllib.parse.urlencode({"query": HEAVY, "time": "2026-01-06T00:00:00Z"})

    def ask(self, path):
        """Status and text of an answer, and how long it took."""
        before = time.monotonic()
        try:
            with urllib.request.urlopen(self.url + path, timeout=harness.TIMEOUT_S) as reply:
                return reply.status, reply.read().decode(), time.monotonic() - before
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), time.monotonic() - before

    def check_health(self, times=50):
        took = []
        for _ in range(times):
            status, _, seconds = self.ask("/healthz")
            self.assertEqual(200, status)
            took.append(seconds * 1000)
        self.assertLess(sorted(took)[int(times * 0.98)], HEALTH_MS, took)

    def stop_in_time(self):
        before = time.monotonic()
        self.stop()
        self.assertLess(time.monotonic() - before, STOP_S)

    def test_a_question_ends_with_its_time(self):
        self.launch_with(timeout="300ms")
        before = cpu_s(self.process.pid)
        status, text, seconds = self.ask(self.heavy())
        self.assertEqual(503, status, text)
        self.assertIn('"errorType":"timeout"', text)
        self.assertIn("longer than 300 ms (query.timeout)", text)
        self.assertLess(seconds, 1)
        self.assertLess(cpu_s(self.process.pid) - before, 1)

    def test_a_question_ends_when_its_client_leaves(self):
        self.launch_with()
        sock = self.open(self.heavy())
        time.sleep(0.3)
        before = cpu_s(self.process.pid)
        time.sleep(0.3)
        self.assertGreater(cpu_s(self.process.pid) - before, 0.1, "the question is too light for this test")
        sock.close()
        time.sleep(0.3)
        before = cpu_s(self.process.pid)
        time.sleep(0.5)
        self.assertLess(cpu_s(self.process.pid) - before, 0.1)

    def test_heavy_questions_stop_nobody_else(self):
        self.launch_with()
        asked = [self.open(self.heavy()) for _ in range(8)]
        time.sleep(0.5)
        self.check_health()
        self.assertIn("tallyd_", self.get("/metrics"))
        self.stop_in_time()
        for sock in asked:
            self.assertRegex(sock.recv(16), rb"HTTP/1.1 503")


if __name__ == "__main__":
    unittest.main()
