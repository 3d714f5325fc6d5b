#!/usr/bin/env python3
"""`tallyd run` end to end: a stream or a growing file is counted once, served while it lasts, and ends in order."""

import gzip
import json
import os
import pty
import re
import signal
import subprocess
import time
import unittest

from harness import EX_CONFIG, EX_TEMPFAIL, EX_UNAVAILABLE, EX_USAGE, TIMEOUT_S, DaemonCase, command, preload

SPAN = ("2026-01-05", "2026-01-06")
CONFIG = b"sources:\n  access:\n    path: access.log\nhttp:\n  listen: 127.0.0.1:0\n"
HOSTS = b"sources:\n  logs: {path: '{vhost}.log'}\nreports:\n  hosts: {by: [vhost]}\nhttp:\n  listen: 127.0.0.1:0\n"


def lines(count):
    return b'192.0.2.1 - - [05/Jan/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 10\n' * count


class RunTest(DaemonCase):
    def check_total(self, count):
        self.assertEqual(count, self.total(span=SPAN))

    def test_stream_is_counted_and_served_while_it_lasts(self):
        self.launch("--listen", "127.0.0.1:0")
        for count in (1, 3, 1003):
            self.feed(lines({1: 1, 3: 2, 1003: 1000}[count]))
            self.wait_for_consumed(count)
            query = "/api/v1/query?report=site&format=csv&from=%s&to=%s" % SPAN
            self.assertEqual(f"time,value\n{SPAN[0]}T00:00:00Z,{count}\n", self.get(query))
        self.assertEqual("ok\n", self.get("/healthz"))
        self.stop()
        self.check_total(1003)

    def test_stream_that_ends_is_served_on(self):
        self.launch("--listen", "127.0.0.1:0")
        self.feed(lines(5) + lines(1)[:-1])  # the last line has no line feed
        self.process.stdin.close()
        self.wait_for_log("event=source_ended")
        self.assertEqual("ended", json.loads(self.get("/api/v1/status"))["state"])
        self.assertEqual("ok\n", self.get("/healthz"))
        self.stop(signal.SIGINT)
        self.check_total(6)

    def test_each_stream_is_a_source_of_its_own(self):
        for _ in range(2):
            self.launch("--listen", "127.0.0.1:0")
            self.feed(lines(10))
            self.wait_for_consumed(10)
            self.stop()
        self.check_total(20)

    def test_file_is_followed_and_continued(self):
        self.write("tallyd.yaml", CONFIG)
        self.append("access.log", lines(100) + b"unfin")
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(100)
        self.wait_for_log("event=caught_up")
        self.append("access.log", b"ished\n" + lines(50))
        self.wait_for_consumed(151)
        self.stop()
        self.append("access.log", lines(7))
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(7)
        self.stop()
        self.check_total(157)
        self.assertIn("nothing new", self.tallyd("import", "access.log"))

    def test_file_is_followed_through_rotation(self):
        self.write("tallyd.yaml", CONFIG)
        self.append("access.log", lines(10))
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(10)
        os.rename(self.path("access.log"), self.path("access.log.1"))
        self.append("access.log.1", lines(5))  # its writer has not noticed yet
        self.wait_for_consumed(15)
        self.append("access.log", b'192.0.2.9 - - [05/Jan/2026:11:00:00 +0000] "GET /new HTTP/1.1" 200 10\n' + lines(2))
        time.sleep(1)
        with open(self.path("access.log.1"), "ab") as old:
            old.write(lines(3))  # another one has not, though the new log is written
        self.wait_for_consumed(21)
        with open(self.path("access.log"), "wb") as file:  # copied and truncated
            file.write(b'192.0.2.7 - - [05/Jan/2026:12:00:00 +0000] "GET /cut HTTP/1.1" 200 10\n')
        self.wait_for_consumed(22)
        self.stop()
        self.check_total(22)

    def test_lines_none_of_which_is_understood_are_told(self):
        self.write("tallyd.yaml", CONFIG)
        self.append("access.log", b'{"path": "/"}\n' * 20)
        self.launch("-c", "tallyd.yaml")
        self.wait_for_log('event=all_rejected source="[^ ]*/access.log" lines=20 reason=.* next="check sources.*decode')
        self.stop()

    def test_a_source_of_which_all_is_rejected_is_told_beside_a_good_one(self):
        self.write("tallyd.yaml", CONFIG.replace(b"http:", b"  api: {path: api.log, decode: logfmt}\nhttp:"))
        self.append("access.log", lines(4000))
        self.append("api.log", b'{"time":"2026-01-05T10:00:00Z","path":"/a"}\n' * 4000)
        self.launch("-c", "tallyd.yaml")
        self.wait_for_log('event=all_rejected source="[^ ]*/api.log" lines=4000 reason=.* fits="json" next=')
        self.wait_for_consumed(8000)
        self.assertRegex(self.get("/readyz"), "^ok\nwarning: source api: all 4000 records of a file or topic since .* are rejected: .*\n$")
        page = self.get("/metrics")
        for line in ('consumed_total{source="access"} 4000', 'rejected_total{source="access"} 0', 'consumed_total{source="api"} 4000',
                     'rejected_total{source="api"} 4000'):
            self.assertIn(f"tallyd_source_{line}\n", page)
        self.append("api.log", b"time=2026-01-05T10:00:00Z path=/a\n")
        self.wait_for_consumed(8001)
        self.assertEqual("ok\n", self.get("/readyz"))
        self.assertEqual(1, self.read("log").count(b"event=all_rejected"))
        self.stop()

    def test_a_log_whose_format_changes_is_told_after_a_minute(self):
        self.write("tallyd.yaml", CONFIG)
        self.append("access.log", lines(3000) + b'{"time":"2026-01-05T10:00:00Z"}\n' * 20000)  # in one delivery
        self.launch("-c", "tallyd.yaml", env={**os.environ, "LD_PRELOAD": preload("hurry"), "HURRY": "30"})
        self.wait_for_consumed(23000)
        told = self.wait_for_log('event=all_rejected source="[^ ]*/access.log" lines=([0-9]+) reason=.* fits="json" next=')
        self.assertLessEqual(int(told.group(1)), 20000)
        self.stop()

    def open_files(self):
        """The files that the daemon has open, by the names that they have now."""
        directory = f"/proc/{self.process.pid}/fd"
        return [os.path.realpath(os.path.join(directory, name)) for name in os.listdir(directory)]

    def test_file_is_followed_through_many_rotations(self):
        """Also by what has been renamed before it was read; and back to what took the path again."""
        self.write("tallyd.yaml", CONFIG)
        self.append("access.log", lines(4))
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(4)
        for number in range(1, 7):
            os.rename(self.path("access.log"), self.path(f"access.log.{number}"))
            self.append("access.log", b'192.0.2.%d - - [05/Jan/2026:11:00:00 +0000] "GET /new HTTP/1.1" 200 10\n' % number + lines(number))
            self.wait_for(self.open_files, lambda found: self.path("access.log") in found)
        os.remove(self.path("access.log.6"))
        os.rename(self.path("access.log.1"), self.path("access.log"))
        self.append("access.log", lines(2))
        self.wait_for_consumed(4 + 6 + 21 + 2)
        self.stop()
        self.check_total(33)

    def test_file_that_only_its_time_makes_history_is_told_once(self):
        """The clock was ahead, and was put right while no daemon ran."""
        self.write("tallyd.yaml", CONFIG)
        self.append("access.log", lines(3))
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(3)
        self.stop()
        os.rename(self.path("access.log"), self.path("access.log.2"))
        self.append("access.log.1", b'192.0.2.9 - - [05/Jan/2026:11:00:00 +0000] "GET /x HTTP/1.1" 200 10\n')
        self.append("access.log", b'192.0.2.9 - - [05/Jan/2026:12:00:00 +0000] "GET /x HTTP/1.1" 200 10\n')
        for name, ahead_s in ("access.log.2", 3600), ("access.log.1", -600):
            os.utime(self.path(name), (time.time() + ahead_s,) * 2)
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(1)
        self.stop()
        self.assertEqual([b"access.log.1"], re.findall(rb'event=file_skipped .* files=1 error="\S*/(\S+) was never seen', self.read("log")))
        self.check_total(4)

    def publish(self, hour, count):
        """A packed log, in one step: other lines each time."""
        line = b'192.0.2.%d - - [05/Jan/2026:%02d:00:00 +0000] "GET / HTTP/1.1" 200 10\n' % (hour, hour)
        self.write("new", gzip.compress(line * count))
        os.rename(self.path("new"), self.path("access.log.gz"))

    def hosts(self):
        rows = self.query("hosts", "--top", "9", span=SPAN)
        return {row["vhost"]: int(row["value"]) for row in rows}

    def test_logs_that_begin_alike_are_counted_each_after_one_was_rotated(self):
        """One monitor asks all virtual hosts in the same second."""
        self.write("tallyd.yaml", HOSTS)
        self.append("a.log", lines(1))
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(1)
        os.rename(self.path("a.log"), self.path("a.log.1"))
        self.append("a.log", lines(1).replace(b"GET", b"PUT"))
        self.wait_for_consumed(2)
        for name, count in ("b", 2), ("c", 3):
            self.append("made", lines(1) + lines(count).replace(b"GET", name.encode()))
            os.rename(self.path("made"), self.path(name + ".log"))
        self.wait_for_consumed(2 + 3 + 4)
        for name in "bc":
            self.append(name + ".log", lines(5))
        self.wait_for_consumed(9 + 10)
        self.stop()
        self.assertEqual({"a": 2, "b": 8, "c": 9}, self.hosts())
        ids = re.findall(r"event=source_opened .* id=(\S+)", self.read("log").decode())
        self.assertEqual(4, len(set(ids)), ids)

    def test_logs_of_the_same_lines_are_rotated_while_the_daemon_is_down(self):
        self.write("tallyd.yaml", HOSTS)
        for name in "abc":
            self.append(name + ".log", lines(5))
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(15)
        self.stop()
        for name in "abc":
            self.append(name + ".log", lines(2))
            os.rename(self.path(name + ".log"), self.path(name + ".log.1"))
            self.append(name + ".log", lines(1).replace(b"GET", b"PUT"))
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(9)
        self.stop()
        self.assertEqual(dict.fromkeys("abc", 8), self.hosts())
        self.assertNotIn("file_lost", self.read("log").decode())
        self.tallyd("verify", "-c", "tallyd.yaml")

    def test_a_file_that_looks_rotated_and_is_written_to_is_told(self):
        self.write("tallyd.yaml", HOSTS)
        for name in "node", "node.1", "node.2":
            self.append(name + ".log", lines(len(name)))
        self.launch("-c", "tallyd.yaml", env={**os.environ, "LD_PRELOAD": preload("hurry"), "HURRY": "30"})
        self.wait_for_consumed(4)
        time.sleep(5)
        self.append("node.1.log", lines(1))
        self.append("node.log", lines(1))
        told = self.wait_for_log('event=looks_rotated file="?([^" ]*)"? source="logs" ')
        self.assertEqual(self.path("node.1.log"), told.group(1))
        self.wait_for_consumed(5)
        self.stop()
        self.assertEqual(1, self.read("log").count(b"looks_rotated"))

    def test_packed_file_is_followed_by_others_of_its_name(self):
        self.write("tallyd.yaml", CONFIG.replace(b"access.log", b"access.log.gz"))
        self.publish(1, 200)
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(200)
        self.publish(2, 30)
        self.wait_for_consumed(230)
        self.stop()
        self.launch("-c", "tallyd.yaml")
        self.wait_for_log("event=caught_up")
        self.publish(3, 4)
        self.wait_for_consumed(4)
        self.stop()
        self.check_total(234)

    def test_empty_file_is_waited_for(self):
        self.write("tallyd.yaml", CONFIG)
        self.append("access.log", b"")
        self.launch("-c", "tallyd.yaml")
        self.wait_for(lambda: json.loads(self.get("/api/v1/status"))["state"], lambda found: found == "waiting")
        self.append("access.log", lines(3))
        self.wait_for_consumed(3)
        self.stop()
        self.check_total(3)

    def test_empty_file_can_be_given_up(self):
        self.write("tallyd.yaml", CONFIG)
        self.append("access.log", b"")
        self.launch("-c", "tallyd.yaml")
        self.stop()

    def test_killed_and_continued_counts_once(self):
        self.write("tallyd.yaml", CONFIG)
        total = 0
        for _ in range(5):
            self.append("access.log", lines(20000))
            total += 20000
            self.launch("-c", "tallyd.yaml")
            time.sleep(0.05)
            self.process.kill()
            self.process.wait()
        self.launch("-c", "tallyd.yaml")
        self.wait_for_log("event=caught_up")
        self.stop()
        self.check_total(total)

    def test_troubles_are_said(self):
        self.launch("--listen", "127.0.0.1:0")
        self.tallyd("run", "--listen", "127.0.0.1:0", status=EX_TEMPFAIL)
        self.assertIn("written by another tallyd", self.err)
        self.tallyd("run", "--store", "sqlite:b.db", "--listen", self.url[len("http://"):], status=EX_UNAVAILABLE)
        self.assertIn("--listen", self.err)
        self.tallyd("run", "--store", "mem:", status=EX_CONFIG)
        self.assertIn("mem: cannot be served", self.err)
        self.tallyd("run", "--listen", "here", status=EX_USAGE)
        self.tallyd("run", "access.log", status=EX_USAGE)
        self.stop()

    def test_a_log_that_is_missing_at_the_start_is_waited_for(self):
        self.wait_for_missing("access.log")

    def test_a_folder_that_is_missing_at_the_start_is_waited_for(self):
        self.wait_for_missing("none/access.log")

    def test_patterns_that_match_no_file_are_told_once(self):
        self.write("tallyd.yaml", CONFIG.replace(b"access.log", b"['*.log', 'a*.log', 'none/*.log', '[x]*.log']"))
        self.write("access.log", lines(4))
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(4)
        time.sleep(3)  # of some looks
        told = re.findall(rb"event=no_file_matches source=(\S+) path=(\S+) next=", self.read("log"))
        self.assertEqual([(b'"access"', b'"none/*.log"'), (b'"access"', b'"[x]*.log"')], told)
        os.mkdir(self.path("none"))
        self.append("none/b.log", lines(4))
        self.wait_for_consumed(8)
        self.assertEqual(2, self.read("log").count(b"event=no_file_matches"))

    def wait_for_missing(self, log):
        self.write("tallyd.yaml", CONFIG.replace(b"access.log", log.encode()))
        self.launch("-c", "tallyd.yaml")
        self.wait_for_log("event=file_away")
        time.sleep(3)  # of some looks
        self.assertEqual(1, self.read("log").count(b"event=file_away"))
        os.makedirs(os.path.dirname(self.path(log)), exist_ok=True)
        self.append(log, lines(4))
        self.wait_for_consumed(4)
        self.stop()

    def test_terminal_is_no_source(self):
        master, terminal = pty.openpty()
        self.addCleanup(os.close, master)
        self.addCleanup(os.close, terminal)
        done = subprocess.run([*command(), "run"], cwd=self.dir, stdin=terminal, capture_output=True, check=False,
                              timeout=TIMEOUT_S)
        self.assertEqual(EX_USAGE, done.returncode)
        self.assertIn(b"tail -F access.log | tallyd run", done.stderr)
        self.assertFalse(os.path.exists(self.path("tallyd.db")))


if __name__ == "__main__":
    unittest.main()
