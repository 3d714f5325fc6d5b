#!/usr/bin/env python3
"""`make bench-figures` in its quick form: it measures, draws, and says so where a document was not counted into as it was to be."""

import os
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree

from harness import ROOT, TIMEOUT_S, Case

sys.path.insert(0, os.path.join(ROOT, "tests", "servers"))
import mongo  # noqa: E402 (found only now)

OTHER = "# Results of `make bench-other`\n\nas they were\n"
SHAPES, HOURS = 5, 24
# Every other update is left out.
CARELESS = f'#!/bin/sh\nexec {ROOT}/build/mongo_figures "$1" "$2" $(($3 * 2))\n'


class Figures(Case):
    def figures(self, *arguments):
        """(exit status, what it said)"""
        done = subprocess.run(["python3", os.path.join(ROOT, "bench", "mongo", "figures.py"), "--quick", "--servers", mongo.CHOSEN,
                               "--results", self.path("RESULTS.md"), *arguments], cwd=self.dir, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=TIMEOUT_S, check=False)
        return done.returncode, done.stdout.decode()

    def test_quick(self):
        self.write("RESULTS.md", OTHER.encode())
        status, said = self.figures()
        self.assertEqual(0, status, said)
        results = self.read("RESULTS.md").decode()
        self.assertIn(OTHER, results)
        self.assertIn("# Results of `make bench-figures`", results)
        self.assertEqual(SHAPES, len(re.findall(r"µs: [0-9.]+ ×; [1-9][0-9]* µs", results)), results)
        drawing = xml.etree.ElementTree.parse(self.path("figures.svg")).getroot()
        lines = drawing.findall("{http://www.w3.org/2000/svg}polyline")
        self.assertEqual([HOURS] * SHAPES, [len(line.get("points").split()) for line in lines])

    def test_an_update_left_out_is_told(self):
        with open(self.path("mongo_figures"), "w", encoding="ascii") as program:
            program.write(CARELESS)
        os.chmod(self.path("mongo_figures"), 0o755)
        status, said = self.figures("--build", self.dir)
        self.assertEqual(1, status, said)
        self.assertIn("**Not equal", said)


if __name__ == "__main__":
    try:
        mongo.install()
    except mongo.Missing as error:
        print(f"skipped: {error}")
        sys.exit(77)
    unittest.main()
