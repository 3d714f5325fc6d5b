#!/usr/bin/env python3
"""The page in a real browser: its figures are the store's, and what a log says never runs.

Needs Debian's chromium; without it the test is skipped (exit 77). The screenshot stays, as build/page.png.
"""

import csv
import datetime
import html.parser
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

from harness import ROOT, command

SHOT = pathlib.Path(ROOT, "build", "page.png")
WAIT_S = 30
MARK = "data-hostile"

# What would leave a mark on the document, if anything of it ran.
SCRIPT = f"/<script>document.body.setAttribute('{MARK}',1)</script>"
IMAGE = f"/<img/src=x/onerror=document.body.setAttribute('{MARK}',2)>"
QUOTES = "/'\"><b>&amp;%00"

MINUTE = datetime.timedelta(minutes=1)


class Page(html.parser.HTMLParser):
    """Texts by id, rows of tables by the table's id, and every tag met."""

    VOID = {"meta", "link", "img", "br", "input"}

    def __init__(self, source):
        super().__init__()
        self.texts, self.tables, self.minutes, self.tags, self.path = {}, {}, [], [], []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if tag in self.VOID:
            return
        self.path.append((tag, attrs.get("id")))
        if "id" in attrs:
            self.texts.setdefault(attrs["id"], "")
        if tag == "table":
            self.tables[attrs["id"]] = []
        if tag == "tr":
            self.tables[self.table()].append([])
            if "data-minute" in attrs:
                self.minutes.append(attrs["data-minute"])
        if tag == "td":
            self.tables[self.table()][-1].append("")

    def handle_endtag(self, tag):
        while self.path and self.path.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for _, name in self.path:
            if name:
                self.texts[name] += data
        if any(tag == "td" for tag, _ in self.path):
            self.tables[self.table()][-1][-1] += data

    def table(self):
        return next(name for tag, name in reversed(self.path) if tag == "table")

    def rows(self, table):
        return [row for row in self.tables[table] if row]


def number(text):
    return int(text.replace(",", ""))


def line(at, path, size=100):
    stamp = at.strftime("%d/%b/%Y:%H:%M:%S +0000")
    path = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'192.0.2.1 - - [{stamp}] "GET {path} HTTP/1.1" 200 {size} "-" "test"\n'


def traffic(now):
    """Lines of the last hour, away from its ends, so that a minute that passes meanwhile changes no sum."""
    out = []
    for i in range(400):
        at = now - datetime.timedelta(minutes=10 + i % 40)
        out.append(line(at, f"/page/{int(i ** 0.5)}", 10 + i))
    for path, times in ((SCRIPT, 90), (IMAGE, 80), (QUOTES, 70)):
        out += [line(now - 20 * MINUTE, path)] * times
    out += ["this is no log line\n", "nor this\n"]
    return out


class Daemon:
    """tallyd run, fed by hand."""

    def __init__(self, directory):
        self.store = f"sqlite:{directory}/page.db"
        self.log = open(pathlib.Path(directory) / "log", "w+")
        self.process = subprocess.Popen(
            [*command(), "run", "--store", self.store, "--listen", "127.0.0.1:0"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self.log, text=True)
        self.consumed = 0
        found = self.wait_for(lambda: re.search(r"event=started .*listen=(\S+)", self.logged()))
        self.url = f"http://{found.group(1)}/"

    def logged(self):
        return pathlib.Path(self.log.name).read_text()

    def wait_for(self, what):
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end and self.process.poll() is None:
            found = what()
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"waited in vain; tallyd said: {self.logged()}")

    def status(self):
        with urllib.request.urlopen(self.url + "api/v1/status", timeout=WAIT_S) as reply:
            return json.load(reply)

    def feed(self, lines):
        self.process.stdin.write("".join(lines))
        self.process.stdin.flush()
        self.consumed += len(lines)
        self.wait_for(lambda: self.status()["consumed"] == self.consumed)

    def query(self, report, *options):
        """Rows of the answer, without its header, from the command line."""
        out = subprocess.run([*command(), "query", report, "--store", self.store, "--format", "csv", *options],
                             check=True, capture_output=True, text=True).stdout
        return list(csv.reader(io.StringIO(out)))[1:]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.log.close()


class Browser:
    def __init__(self, program, directory):
        self.command = [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--hide-scrollbars", "--enable-logging=stderr", f"--user-data-dir={directory}/browser",
            "--window-size=1100,1080", "--virtual-time-budget=3000"]

    def run(self, *arguments):
        done = subprocess.run([*self.command, *arguments], capture_output=True, text=True, timeout=120, check=True)
        return done.stdout, [text for text in done.stderr.splitlines() if "CONSOLE" in text]

    def open(self, url):
        source, complaints = self.run("--dump-dom", url)
        if complaints:
            raise AssertionError("\n".join(complaints))
        return Page(source)


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="tallyd-test-")
        cls.addClassCleanup(cls.directory.cleanup)
        cls.browser = Browser(CHROMIUM, cls.directory.name)
        cls.daemon = Daemon(cls.directory.name)
        cls.addClassCleanup(cls.daemon.kill)
        cls.daemon.feed(traffic(datetime.datetime.now(datetime.timezone.utc)))
        cls.page = cls.browser.open(cls.daemon.url)

    def range_of(self, page):
        newest = datetime.datetime.fromisoformat(page.minutes[0].replace("Z", "+00:00"))
        return ["--from", page.minutes[-1], "--to", (newest + MINUTE).isoformat()]

    def check_minutes(self, page, report, *options):
        stored = self.daemon.query(report, "--step", "minute", *options, *self.range_of(page))
        shown = [number(row[1]) for row in page.rows("minutes")]
        self.assertEqual(len(shown), 60)
        self.assertEqual(shown, [int(value) for _, value in reversed(stored)])
        self.assertEqual(number(page.texts["last-hour"]), sum(shown))
        self.assertEqual(number(page.texts["this-minute"]), shown[0])
        return sum(shown)

    def check_harmless(self, page):
        tags = [tag for tag, _ in page.tags]
        scripts = [attrs.get("src") for tag, attrs in page.tags if tag == "script"]
        self.assertEqual(scripts, ["dygraph.min.js", "page.js"])
        self.assertEqual(tags.count("img"), 1)
        self.assertFalse(any(MARK in attrs for _, attrs in page.tags))

    def test_figures_are_those_of_the_store(self):
        self.assertEqual(self.check_minutes(self.page, "site"), 400 + 90 + 80 + 70)
        self.assertEqual(number(self.page.texts["consumed"]), self.daemon.consumed)
        self.assertEqual(number(self.page.texts["rejected"]), 2)
        self.assertEqual(self.page.texts["state"], "counting")

    def test_top_is_that_of_the_store(self):
        stored = self.daemon.query("pages", "--top", "10", *self.range_of(self.page))
        shown = [[row[0], str(number(row[1]))] for row in self.page.rows("top")]
        self.assertEqual(len(shown), 10)
        self.assertEqual(shown, stored)

    def test_hostile_paths_are_text(self):
        paths = [row[0] for row in self.page.rows("top")]
        self.assertEqual(paths[:3], [SCRIPT, IMAGE, QUOTES])
        self.check_harmless(self.page)

    def test_one_page_by_address(self):
        view = [("report", "pages"), ("measure", "bytes"), ("filter", "path=" + SCRIPT)]
        page = self.browser.open(self.daemon.url + "?" + urllib.parse.urlencode(view))
        self.assertEqual(self.check_minutes(page, "pages", "--measure", "bytes", "--filter", "path=" + SCRIPT), 9000)
        self.assertIn("path = " + SCRIPT, page.texts["filters"])
        self.check_harmless(page)

    def test_this_minute_moves(self):
        self.daemon.feed([line(datetime.datetime.now(datetime.timezone.utc), "/now")] * 5)
        page = self.browser.open(self.daemon.url)
        shown = [number(row[1]) for row in page.rows("minutes")]
        self.check_minutes(page, "site")
        self.assertEqual(sum(shown[:3]), 5)  # a slow machine: in this minute or just before

    def test_screenshot(self):
        self.browser.run(f"--screenshot={SHOT}", self.daemon.url)
        self.assertEqual(SHOT.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")


if __name__ == "__main__":
    CHROMIUM = shutil.which("chromium")
    if CHROMIUM is None:
        print("skipped: there is no chromium (Debian package chromium)")
        sys.exit(77)
    unittest.main()
