#!/usr/bin/env python3
"""A database is copied while imports count into it, put back under another name, and gone on from: each line counts once.

The judge reads the documents and recounts the logs, by nothing that tallyd has. TALLYD_ROUNDS (2 by default) says how often a
copy is taken at a random moment. The seed is printed; TALLYD_SEED repeats a run, as far as the moments of a machine can be
repeated.
"""

import json
import os
import re
import shutil
import signal
import time

from harness import EX_CANTCREAT, EX_DATAERR, EX_NOINPUT, EX_OK, EX_TEMPFAIL, dice, failpoints
from mongocase import LINES_A_BATCH, SHORT, MongoCase, log, main, mongo

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 2)
BATCHES = 8  # of each log, of which there are two


class BackupCase(MongoCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.logs = [log(self.dice, BATCHES * LINES_A_BATCH) for _ in range(2)]
        for name, data in zip(("a.log", "b.log"), self.logs):
            self.write(name, data)

    def admin(self, *arguments, **options):
        return self.tallyd("admin", *arguments, "-c", "tallyd.yaml", "--store", self.store, **options)

    def restore(self, copy, *arguments, **options):
        """Into a database of its own, which is the one from then on."""
        self.anew()
        return self.admin("restore", copy, *arguments, **options)

    def ledger(self):
        return self.base.ledger.find_one({"_id": "ledger"})

    def check_all(self):
        for name in "a.log", "b.log":
            self.count(name)
        self.check(*self.logs, files=["a.log", "b.log"])
        self.check_at_rest()
        self.tallyd("job", "run", "rollup", "--now", "-c", "tallyd.yaml", "--store", self.store)
        self.check_years()

    def check_years(self):
        """Documents of years are those of their only month."""
        months = {one["_id"].removeprefix("202601"): {"1": one["total"]} for one in self.base["pages.month"].find()}
        self.assertEqual(months, {one["_id"].removeprefix("2026"): one["total"] for one in self.base["pages.year"].find()})


class Beside(BackupCase):
    def begin_both(self):
        return [self.begin(name) for name in ("a.log", "b.log")]

    def play_round(self, number, whole_s):
        """A copy taken while two imports go on; True if something was counted while it was taken."""
        self.anew()
        imports = self.begin_both()
        self.wait_until(lambda: self.base.ledger.find_one({"_id": "ledger"}) is not None and
                        any("seq" in slot for slot in self.ledger().get("writers", {}).values()))
        time.sleep(self.dice.random() * whole_s * 0.5)
        out = self.admin("backup", f"copy-{number}")
        for process in imports:
            if self.dice.random() < 0.5:
                process.send_signal(signal.SIGKILL)
            process.communicate()
        self.assertEqual({}, self.ledger()["backups"])
        batches = int(re.search(r"and (\d+) batches", out)[1])
        self.restore(f"copy-{number}")
        self.check_all()
        return batches

    def test_at_random_moments(self):
        whole_s = self.timed("a.log", "b.log")
        batches = [self.play_round(number, whole_s) for number in range(ROUNDS)]
        print(f"batches that were counted while they were copied: {batches}")


if __name__ == "__main__":
    main()
