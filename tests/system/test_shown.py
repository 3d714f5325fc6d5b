#!/usr/bin/env python3
"""Nothing that a log, a file name or a server says acts on a terminal; and a value `(other)` is told from the series beyond series_max.

The judge knows characters by Unicode's categories.
"""

import http.server
import json
import os
import pty
import re
import subprocess
import threading
import unicodedata
import unittest

from harness import TIMEOUT_S, Case, DaemonCase, command

EVIL = "\x1b[31m\u009b31m\u202e\u200b"
LINE = '192.0.2.1 - - [05/Jan/2026:10:00:00 +0000] "GET %s HTTP/1.1" 200 10 "-" "a%sb"\n'
CONFIG = """\
sources: {a: {path: "%s"}}
http: {listen: "127.0.0.1:0"}
reports:
  pages: {by: [path]}
  agents: {by: [agent]}
"""


def acts(text):
    """The characters in a text that act on a terminal, or turn or hide what is around them."""
    return [hex(ord(c)) for c in text if c not in "\n" and (unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") or c == "\ufffd")]


class Evil(http.server.BaseHTTPRequestHandler):
    """Answers errors and tables as a daemon might that somebody else runs."""

    def do_GET(self):
        status = 400 if "format=json" in self.path else 200
        body = json.dumps({"error": f"no {EVIL}\n"}) if status == 400 else f"path  hits\n{EVIL}  1\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if status == 400 else "text/plain")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


class Shown(DaemonCase):
    def said(self, *arguments, status=None):
        """All that a command prints, which must not act."""
        done = subprocess.run([*command(), *arguments], cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=TIMEOUT_S, check=False)
        text = done.stdout.decode(errors="replace")
        self.assertEqual([], acts(text), f"{arguments}: {text!r}")
        if status is not None:
            self.assertEqual(status, done.returncode, text)
        return text

    def test_commands(self):
        name = f"a{EVIL}.log"
        self.write(name, (LINE % ("/a\u009b\u202eb", EVIL.replace("\x1b", "\\x1b")) + "no line\x1b[31m\u202e\n").encode())
        self.write("tallyd.yaml", (CONFIG % "*.log").encode())
        self.write("bad.yaml", f'sources: {{a: {{path: b.log, d\u202e: 1}}}}\nstore: {{url: "x\u200b:/"}}\n'.encode())
        self.write("line", (LINE % ("/\u202e", EVIL)).encode())
        configured = ("-c", "tallyd.yaml")
        self.assertIn("\\x1b[31m", self.said("import", *configured, name, status=0))
        self.assertIn("/a\\xc2\\x9b\\xe2\\x80\\xaeb", self.said("query", *configured, "pages", "--top", "5", "--from", "2026-01-05",
                                                             "--to", "2026-01-06", status=0))
        self.said("query", *configured, "agents", "--top", "5", "--from", "2026-01-05", "--to", "2026-01-06", status=0)
        self.said("query", *configured, "pages", "--filter", f"path={EVIL}", "--step", f"{EVIL}")
        self.said("query", *configured, f"pages{EVIL}")
        self.said("explain", *configured, "--file", "line")
        self.said("explain", *configured, "--file", name)
        self.said("detect", name)
        self.said("check", "-c", "bad.yaml", status=78)
        self.said("check", "-c", f"no{EVIL}.yaml")
        self.said("run", "-c", f"no{EVIL}.yaml")
        self.said(f"what{EVIL}")
        self.said("import", f"--what{EVIL}")
        self.said("verify", *configured, name, status=0)
        self.append(name, (LINE % ("/c", "")).encode())
        self.said("verify", *configured)
        os.rename(self.path(name), self.path(name + ".1"))
        self.write(name, (LINE % ("/d", "")).encode() * 3)
        self.said("verify", *configured)
        self.said("verify", *configured, name)
        self.said("import", *configured, f"not there {EVIL}")
        self.said("backfill", *configured, "pages", name)
        self.said("forget", *configured, "--file", name + ".1", "--yes")
        self.said("forget", *configured, f"nothing{EVIL}")

    def test_answers_in_other_formats(self):
        """They stay as they are in a file, and are safe on a terminal."""
        self.write("a.log", (LINE % ("/a\u202eb", "")).encode())
        self.write("tallyd.yaml", (CONFIG % "*.log").encode())
        self.tallyd("import", "-c", "tallyd.yaml", "a.log")
        for name in "csv", "json":
            asked = ("query", "-c", "tallyd.yaml", "pages", "--top", "5", "--from", "2026-01-05", "--to", "2026-01-06", "--format", name)
            self.assertIn("/a\u202eb", self.tallyd(*asked))
            ours, theirs = pty.openpty()
            subprocess.run([*command(), *asked], cwd=self.dir, stdin=subprocess.DEVNULL, stdout=theirs, timeout=TIMEOUT_S, check=True)
            os.close(theirs)
            with open(ours, "rb", closefd=True) as terminal:
                said = terminal.read1().decode().replace("\r\n", "\n")
            self.assertEqual([], acts(said))
            self.assertIn("/a\\xe2\\x80\\xaeb", said)

    def test_daemon(self):
        name = f"a{EVIL}.log"
        self.write("tallyd.yaml", (CONFIG % "a*.log").encode())
        self.write(name, (LINE % ("/a\u009b", EVIL)).encode())
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(1)
        self.stop()
        self.assertEqual([], acts(self.read("log").decode(errors="replace")))

    def test_server_of_somebody_else(self):
        server = http.server.HTTPServer(("127.0.0.1", 0), Evil)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        self.assertIn("\\x1b[31m", self.said("query", url, "pages", status=0))
        self.assertIn("no \\x1b[31m", self.said("query", url, "pages", "--format", "json", status=64))
        self.said("top", "--url", url)


class Other(Case):
    def test_value_other_is_told_from_series_beyond_the_limit(self):
        self.write("tallyd.yaml", b"reports: {pages: {by: [path], series_max: 2}, both: {by: [path, method], series_max: 2}}\n")
        for path, times in (("(other)", 3), ("/a", 2), ("/b", 4), ("/c", 1)):
            self.write("log", (LINE % (path, "")).encode() * times)
            self.tallyd("import", "-c", "tallyd.yaml", "--source-id", re.sub(r"\W", "x", path), "log")
        found = self.tallyd("query", "-c", "tallyd.yaml", "pages", "--top", "9", "--format", "csv", "--from", "2026-01-05", "--to", "2026-01-06")
        self.assertEqual({"path,value", "%28other),3", "/a,2", "(other),5"}, set(found.split()))
        found = self.tallyd("query", "-c", "tallyd.yaml", "both", "--top", "9", "--format", "csv", "--from", "2026-01-05", "--to", "2026-01-06")
        self.assertEqual({"path,method,value", "%28other),GET,3", "/a,GET,2", "(other),(other),5"}, set(found.split()))
        found = self.tallyd("query", "-c", "tallyd.yaml", "pages", "--filter", "path=%28other)", "--step", "day", "--format", "csv",
                            "--from", "2026-01-05", "--to", "2026-01-06")
        self.assertIn(",3", found)
        for report, words, hits in ("pages", ["path=(other)"], 5), ("both", ["method=(other)"], 5), ("both", ["path=(other)", "method=(other)"], 5):
            found = self.tallyd("query", "-c", "tallyd.yaml", report, *(f"--filter={word}" for word in words), "--step", "day", "--format", "csv",
                                "--from", "2026-01-05", "--to", "2026-01-06")
            self.assertIn(f",{hits}", found, words)
            found = self.tallyd("query", "-c", "tallyd.yaml", report, *(f"--filter={word}" for word in words), "--top", "3", "--format", "csv",
                                "--from", "2026-01-05", "--to", "2026-01-06")
            self.assertEqual([f"(other),{hits}"], [line.removeprefix("(other),") if report == "both" else line for line in found.split()[1:]])


if __name__ == "__main__":
    unittest.main()
