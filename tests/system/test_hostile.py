#!/usr/bin/env python3
"""Clients that mean harm: questions that take for ever, slow requests, slow readers, more streams than there are places.
Others are answered all the same, lines are counted, memory stays below what `check --print` says, and a stop is a stop.

A computer that is busy with other things answers late by itself. So a bare server is asked in turn with the daemon, and the daemon
may be late as it is. `make bench-hostile` has the load of all kinds go on for ten minutes.
"""

import collections
import json
import math
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import harness

LINES = 60_000
LOAD_S = 15
FED_LINES, FED_EACH_S = 500, 0.25  # while there is load
CONFIG = """
store: {{url: "sqlite:tallyd.db"}}
sources: {{access: {{type: stdin}}}}
reports:
  site:
  pages: {{by: [path]}}
query: {{timeout: {timeout}, rows_max: 1000000000}}
http: {{listen: "127.0.0.1:0"}}
"""
# Each path is tried by 300 alternatives, each of which goes back over all of the path.
ALTERNATIVES = "|".join(f".*(?i){chr(97 + i % 26)}.*{chr(97 + i // 26)}.*b" for i in range(300))
HEAVY = " or ".join([f'count(pages:hits{{path=~"({ALTERNATIVES}|.)"}})'])
# Refused at once; the first took 100 s of a core, once.
EVIL = [r"(?:(?=[^\pM]*+).)*", "(a*)*b|(.*)*x|((.*)*)*y"]
# 97,920 minutes, nearly 3 MB: sixty of them exceed the budget of all answers.
LARGE = "/api/v1/query?report=site&measure=all&step=minute&from=2000-01-01&to=2000-03-09"
HEALTH_MS = 100  # on a computer that has the time
AS_LATE = 6  # times as late as the bare server: it wakes up once for a request, the daemon several times
GREEDY_QUESTIONS = 150
# memory_max, the texts that are made and sent, and what malloc keeps of five threads; without memory_max it is twice as much.
GREEDY_MIB = 24 + 6 * 2 + 5 * 8
STOP_S = 10  # of a daemon that waited for its questions, 30 once


def question(expression):
    return "/prometheus/api/v1/query?" + urllib.parse.urlencode({"query": expression, "time": "2026-01-06T00:00:00Z"})


def cpu_s(pid):
    """Seconds of CPU that a process has taken."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def question_of_range(expression, steps):
    return "/prometheus/api/v1/query_range?" + urllib.parse.urlencode(
        {"query": expression, "start": "2026-01-05T00:00:00Z", "end": "2026-01-06T00:00:00Z", "step": 86400 / steps})


# Each takes all the memory that it gets: every series of a report at many steps, joined, sorted, listed, ranked.
GREEDY = [question_of_range("increase(pages:hits[1h])", 100),
          question_of_range("increase(pages:hits[1h]) * on(path) increase(pages:hits[2h])", 60),
          question_of_range('count_values("v", increase(pages:hits[1h]))', 100),
          question_of_range('label_replace(increase(pages:hits[1h]), "p", "$1$1$1$1", "path", "(.*)")', 100),
          question('sort(increase(pages:hits[1d]))'),
          "/prometheus/api/v1/series?match[]=pages:hits", "/prometheus/api/v1/query?query=pages:hits",
          "/api/v1/query?report=pages&measure=all&from=2026-01-01&to=2026-01-08&top=100000",
          "/api/v1/top?report=pages&from=2026-01-05&to=2026-01-06&limit=100000",
          "/api/v1/query?report=pages&measure=all&from=2000-01-01&to=2000-03-09&step=minute"]
SMALL = """
store: {url: "sqlite:tallyd.db"}
sources: {access: {type: stdin}}
reports: {pages: {by: [path], measures: {hits: count, slow: 'histogram(bytes)', all: 'sum(bytes)'}}}
query: {timeout: 30s, rows_max: 1000000000, series_max: 100000, memory_max: 24MiB, response_max: 2MiB}
aggregate: {series_max: 10000, cells_max: 16384, batch_size: 4MiB, keys_size: 4MiB, raw_size: 1MiB, sketches_size: 1MiB}
http: {listen: "127.0.0.1:0"}
"""


class Bare:
    """A server that does next to nothing, in a process of its own: it is as late as this computer is."""

    def __init__(self, folder):
        with open(os.path.join(folder, "healthz"), "w", encoding="ascii") as file:
            file.write("ok")
        self.process = subprocess.Popen([sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"], cwd=folder,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = "http://127.0.0.1:" + re.search(r"port (\d+)", self.process.stdout.readline()).group(1)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def answered_ms(url):
    """How long a new connection takes to get a 200; infinite: it was closed without an answer."""
    before = time.monotonic()
    try:
        with urllib.request.urlopen(url + "/healthz", timeout=harness.TIMEOUT_S) as reply:
            assert reply.status == 200 and reply.read()[:2] == b"ok"
    except ConnectionError:
        return math.inf
    except urllib.error.URLError as error:
        if not isinstance(error.reason, ConnectionError):
            raise
        return math.inf
    return (time.monotonic() - before) * 1000


def p99(times):
    return sorted(times)[min(len(times) - 1, len(times) * 99 // 100)]


class Hostile(harness.DaemonCase):
    def stated_mib(self):
        return int(re.search(r"in all +(\d+) MiB", self.tallyd("check", "-c", "c.yaml", "--print")).group(1))

    def launch_with(self, timeout="60s", config=CONFIG):
        self.write("access.log", harness.traffic(LINES))
        self.write("c.yaml", config.format(timeout=timeout).encode() if config is CONFIG else config.encode())
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
        return question(HEAVY)

    def ask(self, path):
        """Status and text of an answer, and how long it took."""
        before = time.monotonic()
        try:
            with urllib.request.urlopen(self.url + path, timeout=harness.TIMEOUT_S) as reply:
                return reply.status, reply.read().decode(), time.monotonic() - before
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), time.monotonic() - before

    def check_health(self, for_s=2.0, pause_s=0.02):
        """99 % of the answers come in time."""
        bare = Bare(self.dir)
        self.addCleanup(bare.stop)
        took, bare_took, end = [], [], time.monotonic() + for_s
        while time.monotonic() < end:
            took.append(answered_ms(self.url))
            bare_took.append(answered_ms(bare.url))
            self.memory_kib = max(self.memory_kib, self.anonymous_kib())
            time.sleep(pause_s)
        print(f"/healthz: {len(took)} times, p99 {p99(took):.1f} ms, at most {max(took):.1f} ms; a bare server: p99 {p99(bare_took):.1f} ms",
              flush=True)
        self.assertLess(p99(took), max(HEALTH_MS, AS_LATE * p99(bare_took)), sorted(took)[-20:])

    memory_kib = 0

    def anonymous_kib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"RssAnon:\s+(\d+)", status.read()).group(1))

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
        self.assertLess(seconds, STOP_S)
        self.assertLess(cpu_s(self.process.pid) - before, 1)

    def test_a_question_ends_when_its_client_leaves(self):
        self.launch_with()
        before = cpu_s(self.process.pid)
        sock = self.open(self.heavy())
        self.wait_for(lambda: cpu_s(self.process.pid) - before, lambda taken: taken > 0.3)
        sock.settimeout(0.1)
        with self.assertRaises(TimeoutError, msg="the question is too light for this test"):
            sock.recv(1)
        left_at = cpu_s(self.process.pid)
        sock.close()
        self.wait_for(self.cpu_in_half_a_second, lambda taken: taken < 0.05)
        self.assertLess(cpu_s(self.process.pid) - left_at, 1, "it went on for long")

    def cpu_in_half_a_second(self):
        before = cpu_s(self.process.pid)
        time.sleep(0.5)
        return cpu_s(self.process.pid) - before

    def test_heavy_questions_stop_nobody_else(self):
        self.launch_with()
        asked = [self.open(self.heavy()) for _ in range(8)]
        time.sleep(0.5)
        self.check_health()
        self.assertIn("tallyd_", self.get("/metrics"))
        self.stop_in_time()
        for sock in asked:
            self.assertRegex(sock.recv(16), rb"HTTP/1.1 503")

    def ask_greedily(self, ended, dice, counts):
        while not ended.is_set():
            counts[self.ask(dice.choice(GREEDY))[0]] += 1

    def test_greedy_questions_stay_within_what_is_stated(self):
        """Memory is what the kernel says; the limit is small, so that nothing else is large beside it."""
        self.launch_with(config=SMALL)
        seed = int(os.environ.get("TALLYD_SEED", time.time_ns()))
        print(f"TALLYD_SEED={seed}", flush=True)
        ended, counts = threading.Event(), collections.Counter()
        askers = [threading.Thread(target=self.ask_greedily, args=(ended, random.Random(seed + n), counts)) for n in range(6)]
        for path in GREEDY:
            self.ask(path)
        before_kib = self.anonymous_kib()  # with the store's pages of its readers
        for asker in askers:
            asker.start()
        try:
            while sum(counts.values()) < GREEDY_QUESTIONS:
                self.memory_kib = max(self.memory_kib, self.anonymous_kib())
                time.sleep(0.005)
        finally:
            ended.set()
            for asker in askers:
                asker.join()
        stated_mib = self.stated_mib()
        print(f"memory {before_kib >> 10}, then up to {self.memory_kib >> 10} of {stated_mib} MiB; {dict(counts)}", flush=True)
        self.assertLess(self.memory_kib >> 10, stated_mib)
        self.assertLess(self.memory_kib - before_kib >> 10, GREEDY_MIB)
        self.assertGreater(counts[422] + counts[503], 0, "no question was greedy enough")
        self.assertGreater(counts[200], 0)
        self.assertLessEqual(set(counts), {200, 422, 503})

    def feed_until(self, ended, fed):
        """Lines of one minute, so many a second; `fed` gets their number."""
        line = b'192.0.2.1 - - [06/Jan/2026:10:00:00 +0000] "GET /fed HTTP/1.1" 200 1 "-" "-"\n'
        while not ended.wait(FED_EACH_S):
            self.feed(line * FED_LINES)
            fed.append(FED_LINES)

    def test_load_of_all_kinds(self):
        self.launch_with(timeout="5s")
        paths = [LARGE, self.heavy(), *(question(f"count(pages:hits{{path=~{json.dumps(evil)}}})") for evil in EVIL)]
        stated_mib = self.stated_mib()
        ended, fed = threading.Event(), []
        feeder = threading.Thread(target=self.feed_until, args=(ended, fed))
        with subprocess.Popen([sys.executable, os.path.join(os.path.dirname(__file__), "attackers.py"), self.address[0],
                               str(self.address[1]), str(LOAD_S + 2)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as attackers:
            self.addCleanup(attackers.kill)
            attackers.stdin.write("\n".join(paths).encode())
            attackers.stdin.close()
            feeder.start()
            time.sleep(1)
            try:
                self.check_health(LOAD_S, 0.05)
                self.check_counted_within(fed, harness.TIMEOUT_S)
            finally:
                ended.set()
                feeder.join()
            self.stop_in_time()
            attacked = json.loads(attackers.stdout.read())
        print(f"memory {self.memory_kib >> 10} of {stated_mib} MiB; fed {sum(fed)} lines; {attacked}", flush=True)
        self.assertLess(self.memory_kib >> 10, stated_mib)
        self.assertGreater(attacked["question: 503"], 0)
        self.assertGreater(attacked["question: 400"], 0)
        day = ("2026-01-06T10:00", "2026-01-06T10:01")
        rows = self.query("pages", "--measure", "hits", "--filter", "path=/fed", span=day)
        self.assertEqual(sum(fed), int(rows[0]["value"]))

    def check_counted_within(self, fed, seconds):
        """Lines that were fed are counted, under load as well."""
        count, end = sum(fed), time.monotonic() + seconds
        while (consumed := int(re.search(r"^tallyd_lines_consumed_total (\d+)", self.get("/metrics"), re.M).group(1))) < count:
            self.assertLess(time.monotonic(), end, f"{consumed} of {count} lines are counted")
            time.sleep(0.05)


if __name__ == "__main__":
    unittest.main()
