#!/usr/bin/env python3
"""The Debian package for arm64: cross-built it is as that of this computer, and its program runs by qemu."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "long"))
import test_deb  # noqa: E402 (found only now)


class Arm64(test_deb.Package):
    ARCH = "arm64"
    RUN = ["qemu-aarch64-static", "-L", os.path.join(test_deb.ROOT, "build/arm64/root")]

    def test_needs_the_packages_that_this_computers_needs(self):
        other, _, _ = test_deb.build()
        self.assertEqual("arm64", test_deb.field(self.package, "Architecture"))
        for name in ("Depends", "Recommends", "Version"):
            needed = [[part.split()[0] for part in test_deb.field(package, name).split(",")] for package in (other, self.package)]
            self.assertEqual(*needed)


if __name__ == "__main__":
    unittest.main()
