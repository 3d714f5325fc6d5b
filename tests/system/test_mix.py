#!/usr/bin/env python3
"""One daemon counts topics, files and standard input at once, each from its own position; a naive recount is the judge.

TALLYD_ROUNDS says how often it is killed (6 by default). The seed is printed; TALLYD_SEED repeats a run, as far as the
moments of a machine can be repeated.
"""

import collections
import contextlib
import json
import os
import subprocess
import time

from harness import EX_CONFIG, EX_DATAERR, DaemonCase, command, dice, draw_death, failpoints
from kafkacase import SPAN, Feed, KafkaCase, Recount, main

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 6)
FILES = [f"site{number}.log" for number in range(5)]
LINE = b'192.0.2.%d - - [05/Jan/2026:%02d:%02d:00 +0000] "GET /%s/%d HTTP/1.1" 200 10\n'


class Writer:
    """Lines of one virtual host."""

    def __init__(self, path, rolls):
        self.path, self.rolls, self.name = path, rolls, os.path.basename(path).split(".")[0].encode()
        self.pages, self.lines = collections.Counter(), 0

    def write(self, count):
        rows = []
        for _ in range(count):
            page = self.rolls.randrange(20)
            rows.append(LINE % (self.rolls.randrange(256), self.rolls.randrange(24), self.rolls.randrange(60), self.name, page))
            self.pages[f"/{self.name.decode()}/{page}"] += 1
        self.lines += count
        with open(self.path, "ab") as file:
            file.write(b"".join(rows))


class Mix(KafkaCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.feed = Feed(self)
        self.writers = [Writer(self.path(name), self.dice) for name in FILES]

    def begin(self, more="", **options):
        rows = "".join(f"  {name.split('.')[0]}: {{path: {name}}}\n" for name in FILES)
        self.configure([self.feed], more=more, **options)
        text = self.read("tallyd.yaml").replace(b"sources:\n", b"sources:\n" + rows.encode())
        self.write("tallyd.yaml", text)

    def lines(self):
        """The number of lines of the files that the store has counted."""
        rows = self.sql("SELECT sum(value) FROM book WHERE source LIKE 'file:%' AND report = 0 AND entry = 'consumed'")
        return (rows[0][0] or 0) if rows else 0

    def wait_for_files(self):
        self.wait_for(self.lines, lambda found: found >= sum(writer.lines for writer in self.writers))

    def check_mix(self):
        """Each line of each file and each record, once."""
        self.wait_for_files()
        self.wait_counted(self.feed)
        self.stop()
        self.check_books()
        expected = collections.Counter()
        for writer in self.writers:
            expected += writer.pages
        for page, (hits, _) in Recount(entry for log in self.feed.logs for entry in log).pages.items():
            expected[page] += hits
        found = {row["path"]: int(row["hits"])
                 for row in self.query("pages", "--top", "1000", "--measure", "all", span=SPAN)}
        self.assertEqual(dict(expected), found)
        self.verify()

    def test_killed_anywhere(self):
        places = failpoints("ingest.", "store.", "fold.", "offsets.")
        self.begin()
        for writer in self.writers:
            writer.write(self.dice.randrange(1, 300))
        for _ in range(ROUNDS):
            self.run_daemon(failpoint=draw_death(self.dice, places, 3), consuming=False)
            for _ in range(self.dice.randrange(4, 12)):
                self.feed.send(self.dice.randrange(300), 60)
                self.dice.choice(self.writers).write(self.dice.randrange(300))
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(0.2)
            self.kill()  # it did not pass there so often
        self.run_daemon()
        self.check_mix()

    def test_rotated_while_it_counts(self):
        self.begin()
        for writer in self.writers:
            writer.write(50)
        self.run_daemon()
        self.wait_for_files()
        old = self.writers[2]
        os.rename(old.path, old.path + ".1")
        with open(old.path + ".1", "ab") as file:
            file.write(LINE % (1, 1, 1, old.name, 1))
        old.pages[f"/{old.name.decode()}/1"] += 1
        old.lines += 1
        old.write(70)
        self.feed.send(100, 60)
        self.wait_for_files()
        self.wait_counted(self.feed)
        self.stop()
        found = sum(int(row["hits"]) for row in self.query("pages", "--top", "1000", "--measure", "all", span=SPAN))
        self.assertEqual(sum(writer.lines for writer in self.writers) + Recount(e for log in self.feed.logs for e in log).hits, found)

    def test_files_are_counted_while_the_broker_is_away(self):
        self.begin()
        for writer in self.writers:
            writer.write(10)
        self.run_daemon()
        self.broker.kill()
        try:
            for writer in self.writers:
                writer.write(10)
            self.wait_for_files()
            self.kill()
            self.run_daemon(consuming=False)  # nor can it begin
            for writer in self.writers:
                writer.write(10)
            self.wait_for_files()
        finally:
            self.broker.start()
        self.feed.send(100, 60)
        self.check_mix()

    def test_rejects_name_where_they_come_from(self):
        rejects = self.new_topic(1)
        self.begin(more=f"rejects: {{topic: {rejects}}}\n")
        for writer in self.writers:
            writer.write(3)
        bad = self.writers[1]
        with open(bad.path, "ab") as file:
            file.write(b"no line at all\n")
        self.run_daemon()
        messages = self.wait_for(lambda: list(self.broker.read(rejects)), bool)
        headers = {name: value.decode() for name, value in messages[0].headers}
        self.assertEqual((1, b"no line at all"), (len(messages), messages[0].value))
        self.assertEqual((bad.path, ""), (headers["tallyd.topic"], headers["tallyd.partition"]))
        self.stop()


class Files(DaemonCase):
    def test_files_and_standard_input(self):
        rolls = dice()
        writers = [Writer(self.path(name), rolls) for name in FILES]
        rows = "".join(f"  {name.split('.')[0]}: {{path: {name}}}\n" for name in FILES)
        self.write("tallyd.yaml", f"sources:\n{rows}  pipe: {{type: stdin}}\nreports: {{pages: {{by: [path]}}, site: {{}}}}\n"
                                  "aggregate: {flush: 100ms}\nhttp: {listen: '127.0.0.1:0'}\nrejects: {file: rejected}\n".encode())
        for writer in writers:
            writer.write(20)
        self.launch("-c", "tallyd.yaml")
        self.feed(LINE % (1, 2, 3, b"pipe", 4) + b"bad\n")
        self.wait_for_consumed(102)
        self.process.stdin.close()
        self.wait_for_log("event=source_ended")
        writers[0].write(5)
        self.wait_for_consumed(107)
        self.assertEqual("counting", json.loads(self.get("/api/v1/status"))["state"])
        self.stop()
        self.assertEqual(106, self.total())
        self.assertRegex(self.read("rejected"), rb"^standard input:\d+\t\w+\t\d+\tbad\n$")

    def test_logs_that_begin_alike(self):
        """Two hosts log the same request first: they are two sources, and neither takes the other's position."""
        alike = LINE % (1, 0, 0, b"health", 1)
        for name in "ab":
            self.write(f"{name}.log", alike)
        self.write("tallyd.yaml", b"sources: {a: {path: a.log}, b: {path: b.log}}\nreports: {pages: {by: [path]}, site: {}}\n"
                                  b"aggregate: {flush: 100ms}\nhttp: {listen: '127.0.0.1:0'}\n")
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(2)
        self.append("b.log", LINE % (2, 0, 0, b"b", 1))
        self.append("a.log", LINE % (3, 0, 0, b"a", 1))
        self.wait_for_consumed(4)
        for _ in range(2):
            self.stop()
            for name in "ab":
                self.append(f"{name}.log", LINE % (2, 0, 0, name.encode(), 2))
            self.launch("-c", "tallyd.yaml")
            self.wait_for_consumed(2)
        self.stop()
        found = {row["path"]: int(row["hits"]) for row in self.query("pages", "--top", "10", "--measure", "all", span=SPAN)}
        self.assertEqual({"/health/1": 2, "/a/1": 1, "/b/1": 1, "/a/2": 2, "/b/2": 2}, found)
        self.tallyd("verify", "-c", "tallyd.yaml")

    def test_a_new_log_that_begins_as_a_counted_one(self):
        """It is not taken for the other, though the other was counted from when it had as many bytes."""
        alike = LINE % (1, 0, 0, b"health", 1)
        self.write("a.log", alike)
        self.write("tallyd.yaml", b"sources: {a: {path: a.log}, b: {path: b.log}}\nreports: {pages: {by: [path]}, site: {}}\n"
                                  b"aggregate: {flush: 100ms}\nhttp: {listen: '127.0.0.1:0'}\n")
        self.write("b.log", b"")
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(1)
        self.append("a.log", LINE % (1, 0, 0, b"a", 1))
        self.append("b.log", alike + LINE % (1, 0, 0, b"b", 1))
        self.wait_for_consumed(4)
        self.stop()
        self.assertEqual(4, self.total(span=SPAN))
        self.tallyd("verify", "-c", "tallyd.yaml")

    def test_a_log_is_renamed_to_another_and_the_new_one_begins_alike(self):
        """However much of the beginning both have."""
        header = LINE % (1, 0, 0, b"health", 1)
        self.write("tallyd.yaml", b"sources: {logs: {path: '*.log'}}\nreports: {pages: {by: [path]}, site: {}}\n"
                                  b"aggregate: {flush: 100ms}\nhttp: {listen: '127.0.0.1:0'}\n")
        total = 0
        for number, copies in enumerate((1, 100)):  # one line, and more than is compared of a long file
            first, second = f"a{number}.log", f"b{number}.log"
            self.write(first, header)
            self.launch("-c", "tallyd.yaml")
            self.wait_for_consumed(1)
            self.append(first, header * (copies - 1) + LINE % (1, 0, 0, b"a", 1))
            total += copies + 1
            self.wait_for_consumed(copies + 1)
            self.stop()
            os.rename(self.path(first), self.path(second))
            self.write(first, header * copies + LINE % (1, 0, 0, b"a", 2))
            self.append(second, LINE % (1, 0, 0, b"b", 1))
            total += copies + 2
            self.launch("-c", "tallyd.yaml")
            self.wait_for_consumed(copies + 2)
            self.stop()
            self.assertEqual(total, self.total(span=SPAN))
        found = {row["path"]: int(row["hits"]) for row in self.query("pages", "--top", "10", "--measure", "all", span=SPAN)}
        self.assertEqual({"/health/1": 202, "/a/1": 2, "/a/2": 2, "/b/1": 2}, found)
        self.assertIn(" 0 differences", self.tallyd("verify", "-c", "tallyd.yaml"))

    def test_logs_of_the_same_bytes_one_of_them_rotated(self):
        """`verify` finds the file of each."""
        self.write("tallyd.yaml", b"sources: {logs: {path: '*/access.log'}}\nreports: {site: {}}\n"
                                  b"aggregate: {flush: 100ms}\nhttp: {listen: '127.0.0.1:0'}\n")
        same = (LINE % (1, 0, 0, b"health", 1)) * 3
        for name in "ab":
            os.mkdir(self.path(name))
        self.write("a/access.log", same)
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(3)
        self.write("b/access.log", same)
        self.wait_for_consumed(6)
        os.rename(self.path("a/access.log"), self.path("a/access.log.1"))
        self.write("a/access.log", LINE % (1, 0, 0, b"a", 1))
        self.wait_for_consumed(7)
        self.stop()
        self.assertRegex(self.tallyd("verify", "-c", "tallyd.yaml"), r"^7 events of 3 sources recounted, .*: 0 differences")

    def test_a_file_that_is_missing_for_a_while_is_waited_for(self):
        self.write("a.log", LINE % (1, 0, 0, b"a", 1))
        self.write("b.log", b"")
        self.write("tallyd.yaml", b"sources: {a: {path: a.log}, b: {path: b.log}}\nreports: {site: {}}\n"
                                  b"aggregate: {flush: 100ms}\nhttp: {listen: '127.0.0.1:0'}\n")
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(1)
        os.remove(self.path("b.log"))
        self.wait_for_log("event=file_away .*b.log")
        self.append("a.log", LINE % (1, 0, 0, b"a", 2))
        self.wait_for_consumed(2)
        self.write("b.log", LINE % (1, 0, 0, b"b", 1))
        self.wait_for_consumed(3)
        self.stop()

    def test_standard_input_is_stored_when_another_source_fails(self):
        """A pipe cannot be read again."""
        config = "sources: {a: {path: a.log}, pipe: {type: stdin}}\nreports: {site: {}}\n" \
                 "aggregate: {flush: %s, flush_max: %s}\nhttp: {listen: '127.0.0.1:0'}\n"
        self.write("a.log", line := LINE % (1, 0, 0, b"a", 1))
        self.write("tallyd.yaml", (config % ("100ms", "100ms")).encode())
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(1)
        self.append("a.log", line * 5)
        self.wait_for_consumed(6)
        self.stop()
        self.write("a.log", b"")
        self.write("tallyd.yaml", (config % ("1h", "1h")).encode())
        self.launch("-c", "tallyd.yaml")
        self.feed(LINE % (1, 0, 0, b"pipe", 1))
        time.sleep(1)  # it is read, and not flushed for an hour
        self.append("a.log", line)  # it is refused: it is shorter than what was counted
        self.assertEqual(EX_DATAERR, self.process.wait(60), self.read("log"))
        self.assertEqual(7, self.total(span=SPAN))

    def test_two_paths_of_one_file_are_refused(self):
        self.write("a.log", LINE % (1, 2, 3, b"a", 1))
        os.symlink("a.log", self.path("b.log"))
        self.write("tallyd.yaml", b"sources: {a: {path: a.log}, b: {path: b.log}}\nhttp: {enabled: false}\n")
        process = subprocess.run([*command(), "run", "-c", "tallyd.yaml"], cwd=self.dir, stderr=subprocess.PIPE, check=False,
                                 stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual(EX_CONFIG, process.returncode, process.stderr)
        self.assertIn(b"are one file", process.stderr)

    def test_a_path_twice_is_refused(self):
        self.write("tallyd.yaml", b"sources: {a: {path: a.log}, b: {path: a.log}}\n")
        self.tallyd("check", "-c", "tallyd.yaml", status=EX_CONFIG)
        self.assertIn("found the path of source a", self.err)


if __name__ == "__main__":
    main()
