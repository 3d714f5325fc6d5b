#!/usr/bin/env python3
"""`tallyd top` in a terminal of its own: what it shows is what the daemon says, and the terminal is as it was
afterwards, however it ends."""

import datetime
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unicodedata
import unittest

from harness import EX_OK, EX_UNAVAILABLE, EX_USAGE, TIMEOUT_S, DaemonCase, command

TAKE, GIVE = b"\033[?1049h\033[?25l", b"\033[0m\033[?25h\033[?1049l"
STYLES = re.compile(rb"\033\[[0-9;]*m")
CONFIG = b"""\
sources: {in: {type: stdin, decode: [combined]}}
reports:
  site:
  pages: {by: [path]}
  status: {by: [status_class]}
  sizes: {by: [path], measures: {size: histogram(bytes), visitors: distinct(host)}}
query: {series_max: 40}
"""


def lines(count, path="/", status=200):
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%d/%b/%Y:%H:%M:%S +0000")
    return f'192.0.2.1 - - [{stamp}] "GET {path} HTTP/1.1" {status} 10 "-" "-"\n'.encode() * count


def width(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)


class Terminal:
    """A tallyd top on a terminal."""

    def __init__(self, url, *arguments, rows=24, columns=80):
        os.environ.update(TERM="xterm", LC_ALL="C.UTF-8")
        self.master, slave = pty.openpty()
        self.slave = slave  # kept, so that the terminal outlives the process
        self.resize(rows, columns)
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen([*command(), "top", "--url", url, *arguments], stdin=slave, stdout=slave,
                                        stderr=slave, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.drawn = b""

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        if select.select([self.master], [], [], 0.05)[0]:
            self.drawn += os.read(self.master, 1 << 16)

    def picture(self):
        """The lines of the last picture that is whole, since the next one has begun."""
        pictures = self.drawn.split(b"\033[H")[1:-1]
        text = re.sub(rb"\033\[[JK]", b"", STYLES.sub(b"", pictures[-1])) if pictures else b""
        return text.decode().removesuffix("\r\n").split("\r\n")

    def wait_for(self, good):
        """The picture, once it is good."""
        end = time.monotonic() + TIMEOUT_S
        while not good(self.picture()):
            if time.monotonic() > end:
                raise AssertionError("waited in vain; last:\n" + "\n".join(self.picture()) + repr(self.drawn[-300:]))
            self.read()
        return self.picture()

    def press(self, keys):
        os.write(self.master, keys)

    def end(self):
        """The exit status, once it has ended."""
        end = time.monotonic() + TIMEOUT_S
        while self.process.poll() is None:
            if time.monotonic() > end:
                raise AssertionError("it does not end")
            self.read()
        while select.select([self.master], [], [], 0)[0]:
            self.drawn += os.read(self.master, 1 << 16)
        return self.process.returncode


class TopTest(DaemonCase):
    def setUp(self):
        super().setUp()
        self.write("tallyd.yaml", CONFIG)
        self.launch("-c", "tallyd.yaml", "--listen", "127.0.0.1:0")

    def open(self, *arguments, **options):
        terminal = Terminal(self.url, *arguments, **options)
        self.addCleanup(terminal.close)
        return terminal

    def check_given_back(self, terminal):
        self.assertEqual(terminal.before, termios.tcgetattr(terminal.slave))
        self.assertEqual(terminal.drawn.count(TAKE), terminal.drawn.count(GIVE))
        self.assertTrue(terminal.drawn.endswith(GIVE), terminal.drawn[-60:])

    def once(self, *arguments, columns="200", status=EX_OK):
        environment = {**os.environ, "COLUMNS": columns, "LC_ALL": "C.UTF-8"}
        return self.tallyd("top", "--url", self.url, *arguments, status=status, env=environment).splitlines()

    def test_prints_once_where_there_is_no_terminal(self):
        self.feed(lines(30, "/a") + lines(15, "/b", 404) + lines(5, "/c", 500) + b"no line\n")
        self.wait_for_consumed(51)
        out = self.once()
        self.assertRegex(out[0], "^tallyd counting  standard input → sqlite:tallyd.db, up ")
        self.assertRegex(out[1], r" lines/s   51 lines   1 rejected$")
        self.assertRegex(out[2], "^hits of pages by minute, last hour   in all 50, ")
        self.assertIn("status   2xx 60.00 %   4xx 30.00 %   5xx 10.00 %", out)
        top = [re.split(r"\s{2,}", line.strip()) for line in out[-3:]]
        self.assertEqual([("30   60.00 %", "/a"), ("15   30.00 %", "/b"), ("5   10.00 %", "/c")],
                         [("   ".join(row[:2]), row[-1]) for row in top])
        self.assertNotIn("\033", "".join(out))

    def test_measure_and_report(self):
        self.feed(lines(30, "/a") + lines(5, "/b", 404))
        self.wait_for_consumed(35)
        out = self.once("--report", "status", "--measure", "bytes")
        self.assertRegex(out[2], "^bytes of status by minute, last hour   in all 350, ")
        self.assertRegex(out[-2], "^ +300 .* 2xx$")
        self.once("--report", "none", status=EX_USAGE)
        self.assertIn('unknown report "none": there are site, pages, status, sizes', self.err)
        out = self.once("--report", "sizes", "--measure", "p99.9(size)")
        self.assertRegex(out[2], "^p99.9.size. of sizes by minute, last hour   10, most in a minute 10")
        self.assertRegex(out[-1], "^ +10 +- .* /")
        self.once("--report", "sizes", "--measure", "p99.9(none)", status=EX_USAGE)
        self.assertIn("p99.9(none)", self.err)
        self.once("--measure", "none", status=EX_USAGE)
        self.assertIn('has no measure "none"', self.err)

    def test_a_histogram_has_p99_and_p50(self):
        self.feed(lines(30, "/a") + lines(5, "/b", 404) + lines(3, "/a").replace(b" 200 10 ", b" 200 5000 "))
        self.wait_for_consumed(38)
        for arguments in ((), ("--measure", "size")):
            out = self.once("--report", "sizes", *arguments)
            heads = [line for line in out if "by minute, last hour" in line]
            self.assertRegex(heads[0], r"^p99.size. of sizes by minute, last hour   4977.7, most in a minute ")
            self.assertRegex(heads[1], r"^p50.size. of sizes by minute, last hour   10, most in a minute ")
            self.assertRegex(out[-3], r"^ +p99.size. +p50 +trend$")
            self.assertRegex(out[-2], r"^ +4977.7 +10 +- .* /a$")
            self.assertRegex(out[-1], r"^ +10 +10 +- .* /b$")

    def test_visitors(self):
        self.feed(lines(30, "/a") + lines(5, "/a").replace(b"192.0.2.1 ", b"192.0.2.7 ") + lines(5, "/b", 404))
        self.wait_for_consumed(40)
        out = self.once("--report", "sizes", "--measure", "visitors")
        self.assertRegex(out[2], "^visitors of sizes by minute, last hour   2, most in a minute [12]$")
        self.assertRegex(out[-2], "^ +2 +- .* /a$")
        self.assertRegex(out[-1], "^ +1 +- .* /b$")

    def test_hostile_values_do_not_reach_the_terminal(self):
        self.feed(lines(3, "/\\x1b]0;owned\\x07\u202e\u009b31m\u65e5\u672c") + lines(2, "/" + "\u65e5" * 300))
        self.wait_for_consumed(5)
        out = self.once(columns="61")
        self.assertIn("/%1B]0;owned%07", "\n".join(out))
        self.assertFalse(re.search("[\u0000-\u001f\u007f-\u009f\u202e]", "".join(out)), out)
        self.assertLessEqual(max(map(width, out)), 61)

    def test_daemon_is_not_there(self):
        self.stop()
        self.once(status=EX_UNAVAILABLE)
        self.assertIn("does not answer", self.err)

    def test_moves_and_ends_by_q(self):
        terminal = self.open()
        for count in (4, 11):
            self.feed(lines(count, "/moves"))
            total = {4: 4, 11: 15}[count]
            terminal.wait_for(lambda picture: any(f"in all {total}," in line for line in picture))
        picture = terminal.picture()
        self.assertTrue(picture[-1].endswith("  /moves"), picture)
        self.assertRegex(picture[-1], "^ +15 +100.00 %")
        terminal.press(b"xq")
        self.assertEqual(EX_OK, terminal.end())
        self.check_given_back(terminal)

    def test_fits_any_window(self):
        self.feed(b"".join(lines(40 - i, f"/page/{'x' * i}") for i in range(40)))
        self.wait_for_consumed(820)
        terminal = self.open(rows=24, columns=80)
        self.assertEqual(24, len(terminal.wait_for(lambda picture: len(picture) > 1)))
        for rows, columns in ((50, 120), (10, 30), (3, 7), (1, 1), (24, 80)):
            terminal.resize(rows, columns)
            terminal.drawn = b""
            terminal.wait_for(lambda picture: terminal.drawn.count(b"\033[H") > 2)  # the first may be of before
            picture = terminal.picture()
            self.assertLessEqual(len(picture), rows)
            self.assertLessEqual(max(map(width, picture)), columns)
            if rows >= 24:
                self.assertGreater(len(picture), rows - 10)
        terminal.press(b"q")
        self.assertEqual(EX_OK, terminal.end())

    def test_signals_give_the_terminal_back(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT):
            with self.subTest(number.name):
                terminal = self.open()
                terminal.wait_for(lambda picture: len(picture) > 1)
                if number == signal.SIGINT:
                    terminal.press(b"\x03")
                else:
                    terminal.process.send_signal(number)
                self.assertEqual(-number, terminal.end())
                self.check_given_back(terminal)

    def test_paused_and_continued(self):
        terminal = self.open()
        terminal.wait_for(lambda picture: len(picture) > 1)
        terminal.press(b"\x1a")
        self.assertTrue(os.WIFSTOPPED(os.waitpid(terminal.process.pid, os.WUNTRACED)[1]))
        while select.select([terminal.master], [], [], 0)[0]:
            terminal.read()
        self.check_given_back(terminal)
        terminal.drawn = b""
        terminal.process.send_signal(signal.SIGCONT)
        terminal.wait_for(lambda picture: len(picture) > 1)
        terminal.press(b"q")
        self.assertEqual(EX_OK, terminal.end())
        self.check_given_back(terminal)

    def test_daemon_that_hangs_holds_nobody(self):
        terminal = self.open()
        terminal.wait_for(lambda picture: len(picture) > 1)
        self.process.send_signal(signal.SIGSTOP)
        terminal.wait_for(lambda picture: picture[0].startswith("tallyd no answer"))
        terminal.process.send_signal(signal.SIGTERM)
        self.assertEqual(-signal.SIGTERM, terminal.end())
        self.check_given_back(terminal)
        self.process.send_signal(signal.SIGCONT)

    def test_daemon_goes_away_and_comes_back(self):
        terminal = self.open()
        self.feed(lines(4))
        terminal.wait_for(lambda picture: any("in all 4," in line for line in picture))
        self.stop()
        terminal.wait_for(lambda picture: picture[0].startswith("tallyd no answer") and "does not answer" in picture[1])
        self.launch("-c", "tallyd.yaml", "--listen", self.url.removeprefix("http://"))
        self.feed(lines(3))
        terminal.wait_for(lambda picture: any("in all 7," in line for line in picture))
        terminal.press(b"q")
        self.assertEqual(EX_OK, terminal.end())
        self.check_given_back(terminal)

    def test_terminal_goes_away(self):
        terminal = self.open()
        terminal.wait_for(lambda picture: len(picture) > 1)
        os.close(terminal.slave)
        os.close(terminal.master)
        self.assertEqual(-signal.SIGHUP, terminal.process.wait(TIMEOUT_S))
        terminal.master, terminal.slave = os.pipe()  # to be closed


if __name__ == "__main__":
    unittest.main()
