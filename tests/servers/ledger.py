"""The ledger of a database, as docs/LEDGER.md describes it: read and changed by pymongo, with nothing that tallyd has.

Judges and tests name each member as one document would: `writers.w0.seq`, `partitions.KEY.next`, `epoch`. Only this module knows where a
member is: in the ledger's own document, or in the seat of a slot.
"""

import copy as copies

LEDGER = "ledger"
OF_SEATS = "seq", "open", "gap"  # of a slot: where it has a seat, they are there
POSITION = "next", "held", "label", "tail_hash", "tail_len", "latest_ms", "witnesses"
MOVES = "epoch", "held", "fence", "from"  # what changes if a position moves to another document
READINGS_MAX = 100


def merge(documents):
    """All of them as one document: of each partition the position with the highest `held`, there or in a seat of `from`; of each slot the highest
    number."""
    found = next((copies.deepcopy(one) for one in documents if one["_id"] == LEDGER), {})
    for seat in [one for one in documents if found and one["_id"] != LEDGER]:
        slot = found.setdefault("writers", {}).setdefault(seat["_id"], {})
        is_later = seat.get("seq", 0) > slot.get("seq", 0)
        slot |= {name: seat[name] for name in ("seq", "gap") if is_later and name in seat}
        slot |= {"open": seat["open"]} if "open" in seat else {}
        lacking = {period: number for period, number in seat.get("unrolled", {}).items() if number > seat.get("rolled", 0)}
        slot |= {"unrolled": lacking} if lacking else {}
        for key, entry in seat.get("partitions", {}).items():
            partition = found.get("partitions", {}).get(key)
            is_from = partition is not None and seat["_id"] in partition.get("from", [])
            if is_from and entry.get("held", 0) > partition.get("held", 0):
                partition |= {name: entry[name] for name in POSITION if name in entry}
    return found


def moves(documents):
    """Two readings with the same answer are one picture."""
    return {(one["_id"], key, name): entry.get(name) for one in documents for key, entry in one.get("partitions", {}).items() for name in MOVES}


class Picture:
    """What a copy of a database says: {collection: its documents}."""

    def __init__(self, copy):
        self._copy = copy

    def copy(self):
        return self._copy

    def read(self):
        """All of it in one document; {} if there is none."""
        return merge(self.copy().get(LEDGER, []))

    def slots(self):
        """{slot: its members}"""
        return self.read().get("writers", {})

    def open_batches(self):
        """{slot: its open batch}"""
        return {slot: one["open"] for slot, one in self.slots().items() if "open" in one}

    def unrolled(self):
        """{slot: {period of which longer documents lack batches: the last of these}}"""
        return {slot: one["unrolled"] for slot, one in self.slots().items() if "unrolled" in one}

    def partitions(self):
        """{key: its members}. A partition that is claimed, and of which nothing is counted, has no `next`."""
        return self.read().get("partitions", {})

    def positions(self):
        """The partitions that have a position."""
        return [one for one in self.partitions().values() if "next" in one]


class Ledger(Picture):
    """What a database of pymongo says now."""

    def __init__(self, base):
        super().__init__({})
        self.documents = base[LEDGER]

    def copy(self):
        """The documents as of one moment: they are read until no position has moved between two readings."""
        before = list(self.documents.find())
        for _ in range(READINGS_MAX):
            now = list(self.documents.find())
            if moves(before) == moves(now):
                return {LEDGER: now}
            before = now
        raise RuntimeError(f"positions moved between each two of {READINGS_MAX} readings of the ledger")

    def put_back(self, copy):
        """Documents that the copy lacks are deleted."""
        self.documents.delete_many({"_id": {"$nin": [one["_id"] for one in copy[LEDGER]]}})
        for one in copy[LEDGER]:
            self.documents.replace_one({"_id": one["_id"]}, one, upsert=True)

    def drop(self):
        self.documents.delete_many({})

    def change(self, update):
        """By an update in the language of MongoDB."""
        seats, by_document = {one["_id"] for one in self.documents.find({}, {"_id": True})} - {LEDGER}, {}
        for operator, members in update.items():
            for path, value in members.items():
                document, path = place(path, seats)
                by_document.setdefault(document, {}).setdefault(operator, {})[path] = value
        for document, part in by_document.items():
            self.documents.update_one({"_id": document}, part, bypass_document_validation=True)

    def make_format_4(self):
        """As if a version that knew no seats had counted. But the log of an open batch has the updates of months apart."""
        ledger = self.read() | {"v": 4}
        for slot in ledger["writers"].values():
            slot.pop("unrolled", None)
            slot.get("open", {})["rolls_up"] = True
        for one in ledger["partitions"].values():
            one.pop("held", None)
            one.pop("from", None)
        self.put_back({LEDGER: [ledger]})

    def forget_slot(self, slot):
        self.change({"$unset": {f"writers.{slot}": ""}})
        self.documents.delete_one({"_id": slot})


def place(path, seats):
    """The document that has a member, and its path there."""
    names = path.split(".", 2)
    is_of_seat = names[0] == "writers" and names[1] in seats and len(names) == 3 and names[2].split(".")[0] in OF_SEATS
    return (names[1], names[2]) if is_of_seat else (LEDGER, path)
