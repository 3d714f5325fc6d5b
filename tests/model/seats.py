#!/usr/bin/env python3
"""Play the rules of divided.pml on a real server: `seats.py [--server ferretdb] [--seconds 20] [--seed N] [--without RULE]`.

The model takes each request for one step of the server. Here the requests are those that a program would send, `$max` of a fence and
`$not: {$gt}` of one that may be missing included. Threads seal, claim from each other, and die between any two requests; two have one
name; clerks without a seat bring positions home and count there. Some requests are carried out late, or twice.

Each seal notes its offsets in its document, in the update that seals. At the end there must be some notes. Those of each partition must
follow each other without a gap and without an overlap, up to the position that counts. The exit status is 1 if not. A rule can be taken
away, and then it should be.
"""

import argparse
import os
import random
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "servers"))

import mongo  # noqa: E402 (found only now)

try:
    import pymongo
except ImportError:
    pymongo = None  # main() begins again by a Python that has it

CONCERN = "?w=majority&journal=true&retryWrites=false"
NAMES, PARTITIONS, CLERKS = ["w0", "w1", "w2", "w2"], ["p0", "p1", "p2"], 2  # two writers have one name
RULES = ["fence", "rising", "recalling-all", "highest", "settling", "holding", "resuming", "cleaning"]
LATE_S = 0.3


class Died(Exception):
    """A writer was killed, or lost its slot: what it knew is gone."""


class World:
    """The server's documents, and by what chance things happen."""

    def __init__(self, url, seed, without):
        self.documents = pymongo.MongoClient(url).seats.ledger
        self.chance, self.without = random.Random(seed), without
        self.ends, self.late, self.broken, self.done = threading.Event(), [], [], dict.fromkeys(("seals", "claims", "deaths", "late", "refused"), 0)
        self.documents.insert_one({"_id": "ledger", "writers": {}, "partitions": {}})
        for name in dict.fromkeys(NAMES):
            self.documents.insert_one({"_id": name, "inc": 0, "seq": 0, "partitions": {}})

    def has(self, rule):
        return rule != self.without

    def count(self, what):
        self.done[what] += 1

    def send(self, query, update, may_be_lost=False):
        """The document after one update, or None. Now and then it is carried out once more, later; or only later, without a reply."""
        if self.chance.random() < 0.02:
            self.count("deaths")
            raise Died
        fate = self.chance.random()
        if fate < 0.15:
            self.count("late")
            timer = threading.Timer(self.chance.random() ** 3 * LATE_S, self.documents.find_one_and_update, (query, update))
            self.late.append(timer)
            timer.start()
            if fate < 0.05 and may_be_lost:
                return None
        return self.documents.find_one_and_update(query, update, return_document=pymongo.ReturnDocument.AFTER)


class Writer:
    """One life of a writer with a seat, or of a clerk, whose slot is in the ledger."""

    def __init__(self, world, name, is_clerk=False):
        self.world, self.name, self.is_clerk, self.claims, self.own = world, name, is_clerk, 0, {}
        document = world.send({"_id": "ledger"}, {"$inc": {f"writers.{name}.inc": 1}})
        slot = document["writers"][name]
        self.inc, self.seq = slot["inc"], slot.get("seq", 0)
        if is_clerk:
            return
        useless = [p for p in PARTITIONS if not world.has("cleaning") or name not in document["partitions"].get(p, {}).get("from", [])]
        update = {"$set": {"inc": self.inc}} | ({"$unset": {f"partitions.{p}": "" for p in useless}} if useless else {})
        seat = world.send({"_id": name, "inc": {"$lt": self.inc}}, update) or world.documents.find_one({"_id": name})
        if seat["inc"] != self.inc:
            raise Died
        self.seq = seat["seq"]

    def holds(self, p):
        """The conditions by which a claim holds."""
        own = self.own[p]
        if not self.world.has("holding"):
            return {"_id": "ledger"}
        return {"_id": "ledger", f"writers.{self.name}.inc": self.inc, f"partitions.{p}.owner": self.name,
                f"partitions.{p}.epoch": own["epoch"], f"partitions.{p}.claim": own["claim"]}

    def claim(self, p):
        self.claims += 1
        update = {"$inc": {f"partitions.{p}.epoch": 1}, "$set": {f"partitions.{p}.owner": self.name, f"partitions.{p}.claim": self.claims}}
        if not self.is_clerk:
            update["$addToSet"] = {f"partitions.{p}.from": self.name}
        # It adds itself: so it recalls its own seat, too, whether it was there before or not.
        ledger = self.world.send({"_id": "ledger", f"writers.{self.name}.inc": self.inc}, update)
        if ledger is None:
            raise Died
        entry = ledger["partitions"][p]
        epoch, best, position = entry["epoch"], entry.get("held", 0), entry.get("next", 0)
        seats = entry.get("from", [])
        for seat in seats if self.world.has("recalling-all") else seats[-1:]:
            operator = "$max" if self.world.has("rising") else "$set"
            found = self.world.send({"_id": seat}, {operator: {f"partitions.{p}.fence": epoch}})["partitions"][p]
            if found["fence"] > epoch:
                return
            if found.get("held", 0) > best or (found.get("held", 0) > 0 and not self.world.has("highest")):
                best, position = found["held"], found["next"]
        self.own[p] = {"epoch": epoch, "claim": self.claims, "next": position, "is_first": True}
        self.world.count("claims")

    def bring_home(self, p):
        own = self.own[p]
        query = self.holds(p) | {f"partitions.{p}.held": {"$not": {"$gte": own["epoch"]}}}
        update = {"$set": {f"partitions.{p}.{member}": value for member, value in (("next", own["next"]), ("held", own["epoch"]), ("from", []))}}
        if self.world.send(query, update) is None:
            del self.own[p]

    def settle(self, p):
        if not self.own[p]["is_first"] or not self.world.has("settling"):
            self.world.send(self.holds(p), {"$set": {f"partitions.{p}.from": [self.name]}})

    def seal(self, partitions):
        """Seals a batch of these partitions, in the seat or, as a clerk, in the ledger."""
        slot = f"writers.{self.name}." if self.is_clerk else ""
        query = {"_id": "ledger" if self.is_clerk else self.name, f"{slot}inc": self.inc, f"{slot}seq": self.seq or {"$in": [None, 0]}}
        number = max(self.seq, self.own.get("last", 0)) + 1
        self.own["last"] = number
        values, notes = {f"{slot}seq": number, f"{slot}by": self.inc}, []
        for p in partitions:
            own, at = self.own[p], f"partitions.{p}."
            if self.is_clerk:
                query |= self.holds(p) | {f"{at}held": own["epoch"], f"{at}next": own["next"]}
            elif self.world.has("fence"):
                query[f"{at}fence"] = {"$not": {"$gt": own["epoch"]}}
            own["to"] = own["next"] + self.world.chance.randint(1, 3)
            values |= {f"{at}next": own["to"], f"{at}held": own["epoch"]}
            notes.append({"p": p, "from": own["next"], "to": own["to"]})
        after = self.world.send(query, {"$set": values, "$push": {"notes": {"$each": notes}}}, may_be_lost=True)
        if after is None:
            self.world.count("refused")
            return self.look_again(query["_id"], number, partitions)
        return self.keep(number, partitions)

    def keep(self, number, partitions):
        self.seq = number
        self.world.count("seals")
        for p in partitions:
            self.own[p] |= {"next": self.own[p]["to"], "is_first": False}

    def look_again(self, document, number, partitions):
        """Is the batch sealed all the same? If not, resume where the document says."""
        found = self.world.documents.find_one({"_id": document})
        slot = found["writers"][self.name] if self.is_clerk else found
        if slot["inc"] != self.inc:
            raise Died
        if slot.get("seq", 0) == number and slot["by"] == self.inc:
            self.keep(number, partitions)
            return
        self.seq = slot.get("seq", 0)
        for p in [p for p in PARTITIONS if p in self.own]:
            entry, own = found["partitions"].get(p, {}), self.own[p]
            is_lost = entry["epoch"] != own["epoch"] if self.is_clerk else entry.get("fence", 0) > own["epoch"]
            if is_lost:
                del self.own[p]
            elif entry.get("held") == own["epoch"] and self.world.has("resuming"):
                own |= {"next": entry["next"], "is_first": False}

    def step(self):
        p = self.world.chance.choice(PARTITIONS)
        owned = [q for q in PARTITIONS if q in self.own]
        if p not in self.own:
            if self.world.chance.random() < 0.1:
                self.claim(p)
                if self.is_clerk and p in self.own:
                    self.bring_home(p)
        elif self.world.chance.random() < 0.25 and not self.is_clerk:
            self.settle(p)
        else:
            self.seal(self.world.chance.sample(owned, self.world.chance.randint(1, len(owned))))
        if self.is_clerk:
            time.sleep(0.05)


def live(world, name, is_clerk):
    while not world.ends.is_set():
        try:
            writer = Writer(world, name, is_clerk)
            while not world.ends.is_set():
                writer.step()
        except Died:
            continue
        except Exception as error:  # pylint: disable=broad-except; it is what is wrong
            world.broken.append(f"{name}: {error!r}")
            return


def judge(world):
    """What is wrong: by all that was sealed, and by the position of the highest epoch."""
    documents = list(world.documents.find())
    wrong = [] if any(document.get("notes") for document in documents) else ["nothing was sealed, so nothing was judged"]
    for p in PARTITIONS:
        notes = sorted((note["from"], note["to"]) for document in documents for note in document.get("notes", []) if note["p"] == p)
        entries = [document["partitions"].get(p, {}) for document in documents]
        position = max((entry.get("held", 0), entry.get("next", 0)) for entry in entries)[1]
        for (_, end), (begin, _) in zip([(0, 0), *notes], [*notes, (position, position)]):
            if begin != end:
                wrong.append(f"{p}: one batch ends at {end}, and the next begins at {begin}")
    return wrong


def run(arguments, work):
    server = mongo.Server(os.path.join(work, arguments.server), arguments.server).start()
    try:
        world = World(f"{server.url}/{CONCERN}", arguments.seed, arguments.without)
        players = [(name, False) for name in NAMES] + [(f"c{i}", True) for i in range(CLERKS)]
        threads = [threading.Thread(target=live, args=(world, *player), daemon=True) for player in players]
        for thread in threads:
            thread.start()
        time.sleep(arguments.seconds)
        world.ends.set()
        for thread in threads:
            thread.join()
        for timer in world.late:  # of threads that have ended: no more are added
            timer.join()
        print(f"{arguments.server}, seed {arguments.seed}: " + ", ".join(f"{n} {what}" for what, n in world.done.items()))
        return world.broken + judge(world)
    finally:
        server.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", choices=list(mongo.SERVERS), default="ferretdb")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("TALLYD_SEED") or random.randrange(10 ** 6)))
    parser.add_argument("--without", choices=RULES, help="the rule to take away")
    arguments = parser.parse_args()
    mongo.begin(arguments.server)
    with tempfile.TemporaryDirectory() as work:
        wrong = run(arguments, work)
    for line in wrong[:5]:
        print(line)
    print(f"{len(wrong)} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
