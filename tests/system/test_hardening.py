#!/usr/bin/env python3
"""The program has every hardening that Debian's compilers offer, as readelf(1) and objdump(1) see it."""

import os
import platform
import re
import subprocess
import unittest

from harness import ROOT

PROGRAM = os.environ.get("TALLYD_PROGRAM", os.path.join(ROOT, "build/tallyd"))
FORTIFIED_MIN = 5  # functions of the C library whose checking twins are called
# How a large stack frame is touched page by page.
PROBES = {"x86_64": r"\bor[ql]\s+\$0x0,(0x[0-9a-f]+)?\(%[re]sp\)", "aarch64": r"\bstr\s+xzr, \[sp, #1024\]"}


def run(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout


class Hardening(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.header = run("readelf", "-hW", PROGRAM)
        cls.segments = run("readelf", "-lW", PROGRAM)
        cls.dynamic = run("readelf", "-dW", PROGRAM)
        cls.imported = set(re.findall(r"UND\s+(\w+)", run("readelf", "--dyn-syms", "-W", PROGRAM)))
        cls.machine = "aarch64" if "AArch64" in cls.header else platform.machine()

    def test_position_independent(self):
        self.assertRegex(self.header, r"Type:\s+DYN")
        self.assertRegex(self.dynamic, r"FLAGS_1.*\bPIE\b")

    def test_relocations_are_read_only_from_the_start(self):
        self.assertIn("GNU_RELRO", self.segments)
        self.assertRegex(self.dynamic, r"FLAGS_1.*\bNOW\b")

    def test_stack_is_guarded_and_not_executable(self):
        self.assertIn("__stack_chk_fail", self.imported)
        self.assertRegex(self.segments, r"GNU_STACK.*\bRW\s")

    def test_functions_of_the_library_are_fortified(self):
        self.assertGreaterEqual(len({name for name in self.imported if name.endswith("_chk")}), FORTIFIED_MIN)

    def disassembled(self, *options):
        disassembler = "objdump" if self.machine == platform.machine() else f"{self.machine}-linux-gnu-objdump"
        return run(disassembler, "-d", "--no-show-raw-insn", *options, PROGRAM)

    def test_large_frames_touch_each_page(self):
        self.assertRegex(self.disassembled(), PROBES[self.machine])

    def test_jumps_land_where_they_may(self):
        if self.machine != "x86_64":
            self.skipTest("CET is a property of x86")
        self.assertIn("endbr64", self.disassembled("--disassemble=main"))


if __name__ == "__main__":
    unittest.main()
