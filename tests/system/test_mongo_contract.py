#!/usr/bin/env python3
"""The MongoDB store keeps what every store promises: the contract tests in C, with servers for them alone."""

import os
import shutil
import subprocess
import threading

from harness import ROOT, dice
from mongocase import MongoCase, main, mongo

# By server: it is they that take the time.
PROGRAMS = (("test_store_random", "test_query_random"),
            ("test_store_contract", "test_store_disk", "test_store_ranges", "test_store_series",
             "test_values", "test_ranking", "test_expire", "test_expire_watermarks", "test_audit", "test_remote_read"))
END_S = 600
KINDS = ("mongodb", "mongodb of hours", "mongodb of minutes")


class Contract(MongoCase):
    def setUp(self):
        super().setUp()
        self.ends = {}
        # On a slow server, what is random or of many series takes one of the layouts; which one is random, too.
        self.only = dice().choice(KINDS) if self.server.IS_SLOW else None

    def run_program(self, name, url):
        """(its exit status, what it said) with a server there."""
        environment = {**os.environ, "TALLYD_TEST_MONGODB": url, "TALLYD_TEST_REPLICA_SET": self.server.REPLICA_SET}
        if self.only is not None and name.endswith(("_random", "_series", "_values", "_ranking", "_expire", "_marks", "_audit")):
            environment["TALLYD_TEST_KIND"] = self.only
        done = subprocess.run([os.path.join(ROOT, "build", "tests", name)], stdin=subprocess.DEVNULL, cwd=self.dir,
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=END_S,
                              check=False)
        return done.returncode, done.stdout.decode(errors="replace")

    def run_programs(self, names, url):
        for name in names:
            self.ends[name] = self.run_program(name, url)

    def test_programs(self):
        home = mongo.new_home("tallyd-mongo-other-")
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        other = mongo.Server(home).start()
        self.addCleanup(other.kill)
        threads = [threading.Thread(target=self.run_programs, args=(names, server.url))
                   for names, server in zip(PROGRAMS, (self.server, other))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for names in PROGRAMS:
            for name in names:
                with self.subTest(program=name):
                    status, said = self.ends[name]
                    self.assertEqual(0, status, said)

    def test_programs_need_their_server(self):
        """Or else they would prove nothing."""
        nobody = mongo.Server(self.path("nobody"))
        for name in PROGRAMS[1]:
            with self.subTest(program=name):
                status, said = self.run_program(name, nobody.url)
                self.assertNotEqual(0, status)
                self.assertIn("refused", said)


if __name__ == "__main__":
    main()
