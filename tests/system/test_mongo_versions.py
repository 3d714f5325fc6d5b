#!/usr/bin/env python3
"""A database of any earlier version opens in this one: as test_versions.py. TALLYD_MONGO names another server."""

import os
import tarfile

from mongocase import MongoCase, main
from test_versions import COUNTED, GOLDEN, Versions


class Databases(Versions, MongoCase):
    check = Versions.check

    def test_restored_then_counted_on(self):
        self.read_log()
        with tarfile.open(os.path.join(GOLDEN, "mongodb-1.tar.gz")) as archive:
            archive.extractall(self.dir, filter="data")
        self.tallyd("admin", "restore", "--store", self.store, "mongodb-1")
        self.check(self.store, COUNTED)
        self.assertIn("nothing to do", self.tallyd("admin", "upgrade", "--dry-run", "--store", self.store))
        self.tallyd("admin", "copy", self.store, "sqlite:copy.db")
        for store in self.store, "copy.db":
            self.write("a.log", b"".join(self.lines[:COUNTED]))
            self.check(store, COUNTED)
            self.count_on(store)


if __name__ == "__main__":
    main()
