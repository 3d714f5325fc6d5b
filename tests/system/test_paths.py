#!/usr/bin/env python3
"""A source with several paths, globs and captures: `import` and `verify` give the events of each file the fields of its
name, whatever the lines say and however the file is named on the command line."""

import os
import unittest

from harness import Case

DIFFERENCES, NOT_GIVEN = 1, 2
CONFIG = b"""
sources:
  app: {path: "app/*.json", decode: json}
  access:
    path: ["sites/{vhost}/{kind}.log", 'odd \\[1\\].log', "sites/{vhost}.log"]
reports:
  vhosts: {by: [vhost, kind]}
"""
LINE = b'198.51.100.%d - - [05/Jan/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "curl"\n'


def lines(count, before=b""):
    """No two counts begin alike: files are known by their content."""
    return (before + LINE % count) * count


class Paths(Case):
    def setUp(self):
        super().setUp()
        self.write("tallyd.yaml", CONFIG)
        for folder in "app", "sites", "sites/www.example.org", "sites/blog":
            os.mkdir(self.path(folder))
        self.write("sites/www.example.org/access.log", lines(3, b"other.example.org:80 "))
        self.write("sites/blog/access.log", lines(4))
        self.write("sites/blog/error-\u00e4 1.log", lines(5))
        self.write("sites/shop.log", lines(6))
        self.write("odd [1].log", lines(7, b"line.example.org:80 "))
        self.write("app/a.json", b'{"time": "2026-01-05T10:00:00Z", "vhost": "app", "kind": "x"}\n' * 8)
        self.files = ["sites/www.example.org/access.log", "sites/../sites/blog/access.log",
                      self.path("sites/blog/error-\u00e4 1.log"), "./sites/shop.log", "odd [1].log", "app/a.json"]

    def counts(self):
        rows = self.query("vhosts", "--top", "100", span=("2026-01-05", "2026-01-06"))
        return {(row["vhost"], row["kind"]): int(row["value"]) for row in rows}

    def test_files_have_the_fields_of_their_names(self):
        self.tallyd("import", "-c", "tallyd.yaml", *self.files)
        self.assertEqual({("www.example.org", "access"): 3, ("blog", "access"): 4, ("blog", "error-\u00e4 1"): 5, ("shop", "-"): 6,
                          ("line.example.org", "-"): 7, ("app", "x"): 8}, self.counts())
        for given in [], self.files:
            said = self.tallyd("verify", "-c", "tallyd.yaml", *given)
            self.assertRegex(said, r"^33 events of 6 sources recounted, ")

    def test_a_rotated_file_keeps_the_fields_of_its_old_name(self):
        self.tallyd("import", "-c", "tallyd.yaml", *self.files)
        os.rename(self.path("sites/shop.log"), self.path("sites/shop.log.1"))
        self.tallyd("verify", "-c", "tallyd.yaml")  # it finds the rotated file
        self.files[3] = "sites/shop.log.1"
        self.tallyd("verify", "-c", "tallyd.yaml", *self.files)

    def test_a_wrong_field_is_a_difference(self):
        self.tallyd("import", "-c", "tallyd.yaml", *self.files)
        self.write("tallyd.yaml", CONFIG.replace(b"sites/{vhost}.log", b"sites/{kind}.log"))
        said = self.tallyd("verify", "-c", "tallyd.yaml", *self.files, status=DIFFERENCES)
        self.assertIn("shop", said)

    def test_the_name_wins_beside_another_decoding(self):
        self.tallyd("import", "-c", "tallyd.yaml", "--decode", "vhost_combined", "sites/www.example.org/access.log")
        self.assertEqual({("www.example.org", "access"): 3}, self.counts())
        self.tallyd("verify", "-c", "tallyd.yaml", "--decode", "vhost_combined", "sites/www.example.org/access.log")


if __name__ == "__main__":
    unittest.main(verbosity=2)
