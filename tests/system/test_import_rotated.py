#!/usr/bin/env python3
"""`tallyd import` of rotated files: each is read as its log is, or the user is asked."""

import glob
import gzip
import os
import unittest

from harness import EX_USAGE, Case


class Rotated(Case):
    """The rotated files of a log are counted as the log itself is."""

    NGINX = """'$remote_addr - - [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $request_time'"""
    TWO = f"""sources:
  shop: {{path: l/shop.log}}
  api: {{path: l/api.log, olddir: old, decode: [{{nginx: {NGINX}}}]}}
reports: {{slow: {{by: [path], measures: {{hits: count, seconds: sum(duration)}}}}}}
"""
    VHOSTS = b'sources: {a: {path: "l/{vhost}.log"}}\nreports: {r: {by: [vhost]}}\n'

    def setUp(self):
        super().setUp()
        os.makedirs(self.path("l/old"))

    def lines(self, first, count, end=" 0.5"):
        return b"".join(b'9.9.9.9 - - [05/Jan/2026:12:00:%02d +0000] "GET /%d HTTP/1.1" 200 2 "-" "x"%s\n' % (i, i, end.encode())
                        for i in range(first, first + count))

    def count(self, report, measure, *by):
        rows = self.query(report, "--top", "50", "--measure", "all", span=("2026-01-05", "2026-01-06"))
        return {row[by[0]]: float(row[measure]) for row in rows} if by else sum(float(row[measure]) for row in rows)

    def test_a_rotated_file_is_read_as_its_log(self):
        self.write("tallyd.yaml", self.TWO.encode())
        self.write("l/shop.log", self.lines(0, 1, ""))
        self.write("l/api.log", self.lines(1, 1))
        names = "api.log.1", "api.log.2.gz", "api.log-20260101", "api.log-20260102.gz", "api-20260103.log", "api.log.old", "old/api.log.7"
        for i, name in enumerate(names):
            lines = self.lines(2 + i, 1)
            self.write("l/" + name, gzip.compress(lines) if name.endswith(".gz") else lines)
        self.tallyd("import", "-c", "tallyd.yaml", "l/shop.log", "l/api.log", *["l/" + name for name in names])
        self.assertNotIn("no source", self.err)
        self.assertEqual(0.5 * 8, self.count("slow", "seconds"))
        self.tallyd("verify", "-c", "tallyd.yaml", *["l/" + name for name in names], "l/api.log", "l/shop.log")

    def test_a_rotated_file_has_the_captures_of_its_log(self):
        self.write("tallyd.yaml", self.VHOSTS)
        for name, lines in ("shop.log", self.lines(0, 1)), ("shop.log.1", self.lines(1, 1)), ("shop-20260104.log", self.lines(2, 1)):
            self.write("l/" + name, lines)
        self.write("l/shop.log.2.gz", gzip.compress(self.lines(3, 1)))
        self.write("l/site-2.log", self.lines(4, 1))
        self.write("l/other-20260104.log", self.lines(5, 1))  # no other.log is there
        self.tallyd("import", "-c", "tallyd.yaml", *sorted(glob.glob(self.path("l/*.*"))))
        counts = {"shop": 4.0, "site-2": 1.0, "other-20260104": 1.0}
        self.assertEqual(counts, self.count("r", "hits", "vhost"))
        self.assertIn(" 0 differences", self.tallyd("verify", "-c", "tallyd.yaml"))

    def test_a_known_file_is_read_as_it_was_counted(self):
        self.write("tallyd.yaml", self.TWO.encode())
        self.write("l/api.log", self.lines(0, 5))
        self.tallyd("import", "-c", "tallyd.yaml", "l/api.log")
        os.rename(self.path("l/api.log"), self.path("kept"))
        self.write("kept", self.lines(0, 9))
        self.tallyd("import", "-c", "tallyd.yaml", "kept")
        self.assertEqual(0.5 * 9, self.count("slow", "seconds"))
        self.write("kept", self.lines(0, 11))
        self.tallyd("import", "-c", "tallyd.yaml", "kept")
        self.assertEqual(0.5 * 11, self.count("slow", "seconds"))
        self.tallyd("verify", "-c", "tallyd.yaml", "kept")

    def test_a_file_of_no_source_is_not_read_by_chance(self):
        self.write("tallyd.yaml", self.TWO.encode())
        self.write("x", self.lines(0, 3))
        self.tallyd("import", "-c", "tallyd.yaml", "x", status=EX_USAGE)
        self.assertIn("x matches the path of no source, and their decodes differ: say --decode, as `--decode auto`", self.err)
        self.tallyd("import", "-c", "tallyd.yaml", "--decode", "auto", "x")
        self.write("same.yaml", b"sources: {a: {path: l/a.log}, b: {path: l/b.log}}\n")
        self.write("y", self.lines(10, 3, ""))
        self.tallyd("import", "--store", "sqlite:other.db", "-c", "same.yaml", "y")
        self.assertIn("matches the path of no source: it is counted as a file of the source a (--decode says otherwise)", self.err)
        self.write("free.yaml", self.TWO.replace("path: l/shop.log", "type: file").encode())
        self.write("z", self.lines(20, 3, ""))
        self.tallyd("import", "--store", "sqlite:third.db", "-c", "free.yaml", "z")
        self.assertNotIn("no source", self.err)


if __name__ == "__main__":
    unittest.main()
