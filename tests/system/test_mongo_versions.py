#!/usr/bin/env python3
"""A database of any earlier version opens in this one: as test_versions.py. TALLYD_MONGO names another server."""

import os
import tarfile

from mongocase import MongoCase, main
from test_versions import COUNTED, GOLDEN, Versions

FORMAT = 2


class Databases(Versions, MongoCase):
    check = Versions.check

    def test_restored_then_counted_on(self):
        self.read_log()
        for version in range(1, FORMAT + 1):
            with self.subTest(format=version):
                self.anew()
                self.restore_and_count_on(version)

    def restore_and_count_on(self, version):
        name = f"mongodb-{version}"
        with tarfile.open(os.path.join(GOLDEN, f"{name}.tar.gz")) as archive:
            archive.extractall(self.dir, filter="data")
        self.write("a.log", b"".join(self.lines[:COUNTED]))
        self.tallyd("admin", "restore", "--store", self.store, name)
        self.check(self.store, COUNTED)
        said = self.tallyd("admin", "upgrade", "--dry-run", "--store", self.store)
        self.assertIn("nothing to do" if version == FORMAT else f"format {version} would become", said)
        self.tallyd("admin", "copy", self.store, f"sqlite:copy-{version}.db")
        for store in self.store, f"copy-{version}.db":
            self.write("a.log", b"".join(self.lines[:COUNTED]))
            self.check(store, COUNTED)
            self.count_on(store)
        self.assertEqual(FORMAT, self.base.ledger.find_one()["v"])


if __name__ == "__main__":
    main()
