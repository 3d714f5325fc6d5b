#!/usr/bin/env python3
"""A daemon is more than a counter: a good citizen under systemd, reloadable, measurable, askable by HTTP."""

import http.server
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import unittest
import urllib.error

from harness import EX_CONFIG, EX_OK, EX_PROTOCOL, EX_TEMPFAIL, EX_UNAVAILABLE, EX_USAGE, ROOT, TIMEOUT_S, DaemonCase, command, preload

sys.path.insert(0, os.path.join(ROOT, "tests", "servers"))
from process import free_ports  # noqa: E402 (found only now)

SPAN = ["--from", "2026-01-05", "--to", "2026-01-06"]
LINE = b'192.0.2.1 - - [05/Jan/2026:10:00:00 +0000] "GET /%d HTTP/1.1" 200 10\n'


def lines(count):
    return b"".join(LINE % (i % 7) for i in range(count))


class Manager:
    """systemd's end of NOTIFY_SOCKET."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.said = []  # (when, "NAME=VALUE")

    def listen(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                message = self.socket.recv(4096).decode()
            except TimeoutError:
                return
            self.said += [(time.monotonic(), line) for line in message.splitlines()]

    def wait_for(self, pattern, seconds=TIMEOUT_S):
        """The first thing said that matches, which is forgotten with all before it; None."""
        end = time.monotonic() + seconds
        while True:
            for i, (_, line) in enumerate(self.said):
                if re.match(pattern, line):
                    del self.said[:i + 1]
                    return line
            if time.monotonic() > end:
                return None
            self.listen(0.1)

    def count(self, what):
        return sum(line == what for _, line in self.said)


class ServiceTest(DaemonCase):
    def configure(self, **changes):
        """tallyd.yaml with these values for the words in capitals."""
        words = {"PATH": "access.log", "FLUSH": "200ms", "LEVEL": "info", "MORE": "", **changes}
        text = ("sources: {access: {path: PATH}}\nhttp: {listen: '127.0.0.1:0'}\naggregate: {flush: FLUSH}\n"
                "log: {level: LEVEL}\nMORE\n")
        for word, value in words.items():
            text = text.replace(word, value)
        self.write("tallyd.yaml", text.encode())

    def launch_managed(self, watchdog_s=None, ready=True, **environment):
        """With somebody who listens on NOTIFY_SOCKET."""
        self.manager = Manager(self.path("notify"))
        self.addCleanup(self.manager.socket.close)
        environment = {**os.environ, "NOTIFY_SOCKET": self.path("notify"), **environment}
        if watchdog_s is not None:
            environment["WATCHDOG_USEC"] = str(int(watchdog_s * 1e6))
        self.launch("-c", "tallyd.yaml", env=environment)
        if ready:
            self.assertIsNotNone(self.manager.wait_for("READY=1"), self.read("log"))

    def reload(self, event):
        self.process.send_signal(signal.SIGHUP)
        return self.wait_for_log(event)

    def code_of(self, path):
        """(status, body)"""
        try:
            return 200, self.get(path)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def lock_store(self):
        other = sqlite3.connect(self.path("tallyd.db"), isolation_level=None)
        self.addCleanup(other.close)
        other.execute("BEGIN EXCLUSIVE")
        return other

    # ---- systemd

    def test_start_and_stop_are_told(self):
        self.configure()
        self.append("access.log", b"")  # it consumes an empty file too
        self.launch_managed()
        self.append("access.log", lines(10))
        self.wait_for_consumed(10)
        self.assertRegex(self.manager.wait_for("STATUS=.*[1-9]"), r"STATUS=counting, \d+ lines/s")
        self.assertEqual(0, self.manager.count("WATCHDOG=1"))  # nobody asked for it
        self.stop()
        self.assertIsNotNone(self.manager.wait_for("STOPPING=1"))
        self.assertIsNotNone(self.manager.wait_for("EXTEND_TIMEOUT_USEC=30000000"))

    def test_cluster_that_is_away_is_waited_for(self):
        self.write("tallyd.yaml", b"sources: {access: {type: kafka}}\nkafka: {brokers: '127.0.0.1:1'}\n"
                   b"http: {listen: '127.0.0.1:0'}\n")
        self.launch_managed(watchdog_s=12, ready=False)  # one request is waited for longer than a tick
        self.wait_for_log("event=waiting")
        for _ in range(2):
            self.assertIsNotNone(self.manager.wait_for("WATCHDOG=1", 12), self.read("log"))
        self.assertIsNotNone(self.manager.wait_for("EXTEND_TIMEOUT_USEC=1800000000"))  # or TimeoutStartSec would end it
        self.assertEqual(0, self.manager.count("READY=1"))
        self.assertEqual((503, "not consuming yet: no partition is assigned\n"), self.code_of("/readyz"))
        self.assertEqual((200, "ok\n"), self.code_of("/healthz"))
        self.assertIn("tallyd_ready 0\n", self.get("/metrics"))
        self.stop()
        self.assertIsNotNone(self.manager.wait_for("STOPPING=1"))

    def test_store_that_is_away_is_waited_for(self):
        port, = free_ports(1)
        self.configure(MORE="store: {url: 'mongodb://127.0.0.1:1/t?serverSelectionTimeoutMS=200'}", PATH="-")
        self.manager = Manager(self.path("notify"))
        self.addCleanup(self.manager.socket.close)
        self.launch("-c", "tallyd.yaml", "--listen", f"127.0.0.1:{port}", started=False,
                    env={**os.environ, "NOTIFY_SOCKET": self.path("notify")})
        self.url = f"http://127.0.0.1:{port}"
        self.wait_for_log("event=store_away")
        self.assertEqual((200, "ok\n"), self.code_of("/healthz"))
        code, why = self.code_of("/readyz")
        self.assertEqual((503, "waiting for the store: "), (code, why[:23]))
        self.assertEqual("opening", json.loads(self.get("/api/v1/status"))["state"])
        self.assertIsNotNone(self.manager.wait_for("EXTEND_TIMEOUT_USEC=1800000000"))
        self.assertIsNotNone(self.manager.wait_for("STATUS=opening, .*the store is away"))
        self.assertEqual(0, self.manager.count("READY=1"))
        self.stop()

    def test_watchdog_is_fed_while_the_store_is_away(self):
        self.configure()
        self.append("access.log", lines(10))
        self.launch_managed(watchdog_s=7)  # SQLite itself waits for 5
        self.wait_for_consumed(10)
        other = self.lock_store()
        self.append("access.log", lines(5))
        self.wait_for_log("event=store_failed")
        self.wait_for(lambda: self.code_of("/readyz"), lambda found: found[0] == 503 and "store" in found[1])
        self.assertEqual((200, "ok\n"), self.code_of("/healthz"))
        begun, count = time.monotonic(), 15
        while time.monotonic() < begun + 12:
            self.append("access.log", lines(5))  # until the queue is full, and the ingest thread waits
            count += 5
            self.assertIsNotNone(self.manager.wait_for("WATCHDOG=1", 7), self.read("log"))
        self.assertNotIn(b"event=stuck", self.read("log"))
        other.execute("ROLLBACK")
        self.wait_for_log("event=retry_succeeded")
        self.wait_for_consumed(count)
        self.wait_for(lambda: self.code_of("/readyz"), lambda found: found == (200, "ok\n"))
        self.assertRegex(self.get("/metrics"), r"(?m)^tallyd_store_errors_total [1-9]")
        self.stop()

    def make_stuck(self):
        """Until one of the calls that hang from now on does."""
        met = self.path("hang.met")
        if os.path.exists(met):
            os.unlink(met)
        self.write("hang", b"")
        self.append("access.log", lines(5))
        self.wait_for(lambda: os.path.exists(met), bool)

    def check_starving(self, path, calls):
        """With a watchdog that is fed no more as long as such calls hang."""
        self.configure(MORE="run: {stop_timeout: 1s}")
        self.append("access.log", lines(10))
        self.launch_managed(watchdog_s=1, LD_PRELOAD=preload("faulty"), FAULTY_PATH=path,
                            FAULTY_CALLS=calls, FAULTY_AT="1", FAULTY_HOW="hang:" + self.path("hang"))
        self.wait_for_consumed(10)
        self.manager.said.clear()
        self.manager.listen(2)
        self.assertGreaterEqual(self.manager.count("WATCHDOG=1"), 2)
        self.make_stuck()
        self.manager.listen(2)  # a watchdog later it is noticed
        self.manager.said.clear()
        self.manager.listen(3)
        self.assertEqual(0, self.manager.count("WATCHDOG=1"))
        os.unlink(self.path("hang"))
        self.assertIsNotNone(self.manager.wait_for("WATCHDOG=1"))
        self.wait_for_consumed(15)

    def test_watchdog_of_a_stuck_reader_starves(self):
        self.check_starving("access.log", "read")
        self.assertIn(b"event=stuck thread=ingest", self.read("log"))
        self.stop()

    def test_watchdog_of_a_stuck_writer_starves(self):
        self.check_starving("tallyd.db", "write")
        # And the drain of one that is stuck has an end.
        self.make_stuck()
        self.process.terminate()
        self.assertEqual(EX_TEMPFAIL, self.process.wait(TIMEOUT_S))
        self.assertIn(b"event=stop_timeout", self.read("log"))

    def test_journal_gets_priorities(self):
        self.configure()
        self.append("access.log", b"")
        log = open(self.path("journal"), "wb")
        self.addCleanup(log.close)
        status = os.fstat(log.fileno())
        argv = [*command(), "run", "-c", "tallyd.yaml"]
        environment = {**os.environ, "JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
        process = subprocess.Popen(argv, cwd=self.dir, stdin=subprocess.DEVNULL, stderr=log, env=environment)
        self.addCleanup(process.kill)
        end = time.monotonic() + TIMEOUT_S
        while b"event=started" not in self.read("journal") and time.monotonic() < end:
            time.sleep(0.02)
        process.send_signal(signal.SIGHUP)
        while b"event=reloaded" not in self.read("journal") and time.monotonic() < end:
            time.sleep(0.02)
        process.terminate()
        self.assertEqual(EX_OK, process.wait(TIMEOUT_S))
        for line in self.read("journal").splitlines():
            self.assertRegex(line, rb"^<6>level=info event=")
        # Why it ends is an error there, also what is wrong in the configuration, line by line.
        self.write("bad.yaml", b"reports:\n  pages: {bye: [path]}\n  site: {bye: [path]}\n")
        for arguments in (["run", "-c", "bad.yaml"], ["run", "-c", "missing.yaml"], ["run", "--listen", "nonsense"],
                          ["run", "-c", "tallyd.yaml", "--store", "sqlite:missing/a.db", "--listen", "127.0.0.1:0"]):
            with self.subTest(arguments):
                log.truncate(0)
                log.seek(0)
                subprocess.run([*command(), *arguments], cwd=self.dir, stdin=subprocess.DEVNULL, stderr=log, env=environment,
                               timeout=TIMEOUT_S, check=False)
                said = [line for line in self.read("journal").splitlines() if not line.startswith(b"<6>")]
                self.assertGreaterEqual(len(said), 1)
                for line in said:
                    self.assertRegex(line, rb"^<3>[^<]")
        # Somebody else's journal is none.
        environment["JOURNAL_STREAM"] = "1:1"
        self.launch("-c", "tallyd.yaml", env=environment)
        self.assertRegex(self.read("log"), rb"^level=info event=")

    # ---- reload

    def test_reload_takes_what_can_be_taken(self):
        self.configure(FLUSH="1h")
        self.append("access.log", lines(1000))
        self.launch_managed()
        self.append("access.log", lines(10))
        self.wait_for_log("event=caught_up")
        self.assertEqual(0, json.loads(self.get("/api/v1/status"))["consumed"])  # nothing is flushed for an hour
        self.configure(FLUSH="100ms", LEVEL="warn", PATH="other.log",
                       MORE="query: {points_max: 100}\nlimits: {line_max: 16KiB}")  # not line_max: what is counted must not depend on when
        self.reload("event=reload_kept")
        self.assertIsNotNone(self.manager.wait_for("RELOADING=1"))
        self.assertRegex(self.manager.wait_for("MONOTONIC_USEC="), r"=\d+$")
        self.assertIsNotNone(self.manager.wait_for("READY=1"))
        self.wait_for_consumed(1010)
        self.append("access.log", lines(5))
        self.wait_for_consumed(1015)
        log = self.read("log").decode()
        self.assertRegex(log, r'keys="[^"]*sources.access.path')
        self.assertRegex(log, r'keys="[^"]*limits.line_max')
        self.assertNotIn("event=reloaded", log)  # which is not worth a warning
        code, body = self.code_of("/api/v1/query?report=site&step=minute&from=-1d")
        self.assertEqual(422, code, body)
        self.process.terminate()
        self.assertEqual(EX_OK, self.process.wait(TIMEOUT_S))
        self.assertEqual(1015, self.total(span=SPAN[1::2]))

    def test_reload_of_a_wrong_file_keeps_the_old(self):
        self.configure()
        self.append("access.log", lines(10))
        self.launch_managed()
        self.configure(FLUSH="1century", LEVEL="loud")
        self.reload("event=reload_failed")
        log = self.read("log").decode()
        self.assertIn("aggregate.flush: found", log)
        self.assertIn("log.level: found", log)
        self.assertIsNotNone(self.manager.wait_for("RELOADING=1"))
        self.assertIsNotNone(self.manager.wait_for("READY=1"))
        self.append("access.log", lines(5))
        self.wait_for_consumed(15)
        self.configure(FLUSH="300ms")
        self.reload('event=reloaded changed="aggregate.flush=300ms"')
        os.unlink(self.path("tallyd.yaml"))
        self.reload("cannot read")
        self.stop()
        self.assertEqual(15, self.total(span=SPAN[1::2]))

    def test_reloads_under_load_lose_nothing(self):
        self.configure()
        self.append("access.log", lines(10))
        self.launch_managed()
        for i in range(20):
            self.configure(FLUSH=f"{100 + i}ms", MORE=f"limits: {{future_max: {i}d}}")
            self.process.send_signal(signal.SIGHUP)
            self.append("access.log", lines(20000))
        self.wait_for_consumed(400010)
        self.stop()
        self.assertEqual(400010, self.total(span=SPAN[1::2]))
        self.tallyd("verify", "access.log")

    def test_reload_without_a_file_is_said(self):
        self.launch("--listen", "127.0.0.1:0")
        self.reload("event=reload_failed .*no configuration file")
        self.stop()

    def reload_by_command(self, status, pattern, folder="run"):
        environment = {name: value for name, value in os.environ.items() if name != "RUNTIME_DIRECTORY"}
        if folder is not None:
            environment["RUNTIME_DIRECTORY"] = self.path(folder)
        done = subprocess.run([*command(), "reload"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=TIMEOUT_S, check=False)
        self.assertEqual(status, done.returncode, done.stdout)
        self.assertRegex(done.stdout, pattern)

    def test_reload_by_the_command_says_what_came_of_it(self):
        os.mkdir(self.path("run"), 0o700)
        self.configure()
        self.append("access.log", lines(10))
        self.launch_managed(RUNTIME_DIRECTORY=self.path("run"))
        self.assertEqual(0o600, os.stat(self.path("run/reload")).st_mode & 0o777)
        for _ in range(2):
            self.configure(FLUSH="300ms")
            self.reload_by_command(EX_OK, "^$")
            self.configure(FLUSH="1century", LEVEL="loud")
            self.reload_by_command(EX_CONFIG, "(?s)aggregate.flush: found.*log.level: found.*tallyd reload: the configuration has mistakes")
        self.configure(PATH="other.log")
        self.reload_by_command(EX_OK, "^these keys need a restart: .*sources.access.path")
        self.process.kill()
        self.process.wait(TIMEOUT_S)
        self.reload_by_command(EX_UNAVAILABLE, "no daemon listens at .*/run/reload")
        self.configure()
        os.unlink(self.path("notify"))
        self.launch_managed(RUNTIME_DIRECTORY=self.path("run"))
        self.reload_by_command(EX_OK, "^$")
        self.stop()
        self.assertEqual([], os.listdir(self.path("run")))
        self.reload_by_command(EX_UNAVAILABLE, "no daemon listens at .*/run/reload")
        self.reload_by_command(EX_USAGE, "RUNTIME_DIRECTORY is not set", folder=None)

    def test_folder_that_is_missing_is_waited_for(self):
        self.configure(PATH="later/access.log")
        self.launch_managed()
        self.wait_for_log("event=file_away")
        time.sleep(1)
        self.assertEqual(1, self.read("log").count(b"event=file_away"))
        os.mkdir(self.path("later"))
        time.sleep(1)
        self.append("later/access.log", lines(10))
        self.wait_for_consumed(10)
        self.assertEqual(1, self.read("log").count(b"event=file_away"))
        self.stop()

    # ---- tallyd query http://…

    def test_query_asks_the_daemon(self):
        self.configure()
        self.append("access.log", lines(1000))
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(1000)
        self.append("access.log", LINE.replace(b"/%d", b"/a b?&=%").replace(b"a b", b"a+b") * 3)
        self.wait_for_consumed(1003)
        for question in (["site"], ["pages", "--top", "3"], ["pages", "--step", "hour", "--filter", "path=/1"],
                         ["pages", "--filter", "path=/a+b"], ["site", "--measure", "all"]):
            for form in ([], ["--format", "csv"], ["--format", "json"]):
                local = self.tallyd("query", *question, *SPAN, *form)
                self.assertEqual(local, self.tallyd("query", self.url, *question, *SPAN, *form))
        self.tallyd("query", self.url, "page", status=EX_USAGE)
        self.assertIn('did you mean "pages"?', self.err)
        self.tallyd("query", self.url, "site", "--step", "century", status=EX_USAGE)
        self.tallyd("query", self.url, "site", "--step", "minute", "--from", "1971-01-01", status=EX_UNAVAILABLE)
        self.assertIn("query.points_max", self.err)
        self.tallyd("query", self.url, "site", "--store", "sqlite:x.db", status=EX_USAGE)
        self.tallyd("query", self.url, status=EX_USAGE)
        self.stop()
        self.tallyd("query", self.url, "site", status=EX_UNAVAILABLE)
        self.assertIn("does not answer", self.err)
        self.tallyd("query", "http://", "site", status=EX_USAGE)

    def test_query_of_somebody_else_is_said(self):
        class Other(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200 if "great" in self.path else 404)
                self.send_header("Content-Type", "text/plain")
                self.end_headers()
                try:
                    for _ in range(80 if "great" in self.path else 1):
                        self.wfile.write(b" " * (1 << 20))
                except OSError:
                    pass  # it had enough

            def log_message(self, *arguments):
                pass

        other = http.server.HTTPServer(("127.0.0.1", 0), Other)
        self.addCleanup(other.server_close)
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(other.shutdown)
        url = f"http://127.0.0.1:{other.server_port}"
        self.tallyd("query", url, "site", status=EX_PROTOCOL)
        self.assertIn("check the address", self.err)
        self.assertEqual("", self.tallyd("query", url, "great", status=EX_UNAVAILABLE))
        self.assertIn("64 MiB", self.err)

    def test_status_says_that_it_is_ready(self):
        self.configure()
        self.append("access.log", lines(10))
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(10)
        status = json.loads(self.get("/api/v1/status"))
        self.assertEqual((True, 0, []), (status["ready"], status["lag"], status["partitions"]))
        self.assertEqual((200, "ok\n"), self.code_of("/readyz"))
        self.stop()


if __name__ == "__main__":
    unittest.main()
