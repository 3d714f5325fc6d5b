#!/usr/bin/env python3
"""As test_builds.py, with a store in MongoDB; and a file is taken out by a forget that is killed, and counted on by another build.

TALLYD_ROUNDS says how often each is killed (10 by default). The seed is printed; TALLYD_SEED repeats a run.
"""

from harness import EX_OK, dice, draw_death, dying_at, failpoints
from mongocase import MongoCase, main
from test_builds import FIRST, KILLED, ROUNDS, Building


class Builds(Building, MongoCase):
    PLACES = ("mongo.",)

    def stretches(self, store, report=""):
        if "://" not in store:
            return super().stretches(store, report)
        entries = []
        key = next((one["_id"] for one in self.client[store.rsplit("/", 1)[1]].reports.find() if one["_id"].split("~")[0] == report), "")
        for book in self.client[store.rsplit("/", 1)[1]].books.find():
            entries += self.walk("", book.get("entries", {}) if report == "" else book.get("reports", {}).get(key, {}))
        return self.parsed(entries)

    def walk(self, name, value):
        if not isinstance(value, dict):
            return [(name, value)]
        return [found for key, below in value.items() for found in self.walk(f"{name}.{key}" if name else key, below)]

    def test_each_line_is_in_a_stretch_of_its_build(self):
        self.check_kills(self.store, ROUNDS)
        self.check_copy(self.store, "other.db")
        self.store, other = "other.db", self.store
        self.anew()
        self.check_copy("other.db", self.store)
        self.assertNotEqual(other, self.store)

    def test_a_backfill_has_its_own(self):
        self.check_backfill(self.store)

    def test_what_is_taken_out_has_none(self):
        self.dice = dice()
        self.configure()
        self.write("a.log", b"")
        places = [place for place in failpoints("forget.", "mongo.") if place != "forget.after_commit"]
        killed = 0
        for number in range(ROUNDS):
            self.write_build(number)
            self.append("a.log", self.lines(self.dice.choice([100, 200])))
            self.run_import(self.store, "a.log")
            self.check(self.store)
            if number % 3 == 2:  # all was counted by several: a recount by one finds other counts, and forgets nothing
                continue
            self.anew()
            self.run_import(self.store, "a.log")
            self.tallyd("forget", "-c", "tallyd.yaml", "--store", self.store, "a.log", env=dying_at(draw_death(self.dice, places, 3)), status=None)
            self.assertIn(self.status, (EX_OK, KILLED), self.err)
            killed += self.status == KILLED
            self.write_build(number + 1000)
            self.run_import(self.store, "a.log")
            self.check(self.store)
        print(f"{ROUNDS} rounds, {killed} killed; the first build was of {FIRST}")

    def test_what_is_taken_out_of_a_backfilled_report_has_none(self):
        """A forget dies between its batches; another build counts on from there."""
        self.dice = dice()
        self.configure()
        self.write_build(0)
        self.write("a.log", self.lines(1000))
        self.run_import(self.store, "a.log")
        self.configure(b"  later: {by: [country, agent_family]}\n")
        self.tallyd("backfill", "later", "-c", "tallyd.yaml", "--store", self.store, "a.log")
        whole = self.stretches(self.store, "later")
        self.assertEqual({"agents", "geo"}, {kind for kind, *_ in whole})
        self.tallyd("forget", "-c", "tallyd.yaml", "--store", self.store, "a.log", status=KILLED,
                    env=dying_at(f"mongo.committed:{self.dice.randrange(1, 4)}"))
        self.write_build(1)
        self.run_import(self.store, "a.log")
        cut = next(to for kind, build, _, to in self.stretches(self.store) if (kind, build) == ("geo", str(FIRST)))
        self.assertGreater(whole[0][3], cut)
        self.assertEqual([(kind, build, begin, cut) for kind, build, begin, _ in whole], self.stretches(self.store, "later"))


if __name__ == "__main__":
    main()
