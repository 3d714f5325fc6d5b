"""Which fault comes when: all of it drawn beforehand from one seed.

Time is counted in turns of TURN_S, in each of which the same number of events is produced: a fault that takes long moves all that
follows, and the same seed has the same events around the same faults.
"""

import collections

TURN_S = 0.1
DAEMONS = 4  # the last one follows a file, the others a topic
PARTITIONS = 4  # of the topic
# `what` happens to `daemon` at the turn `at`, for `turns`; `more` is what else it needs.
Fault = collections.namedtuple("Fault", "at what daemon turns more")

# How often each is drawn, and how many times at most.
OF_ANY = {"kill": (4, 99), "die": (4, 99), "pause": (3, 99), "broker": (1, 2), "recreate": (2, 3), "retention": (2, 2),
          "tail": (2, 2), "transaction": (4, 99), "clock": (2, 3), "reload": (2, 99), "redefine": (1, 1), "restore": (2, 2)}
OF_SQLITE = {"disk": (3, 99)}
OF_MONGO = {"cut": (3, 99), "server": (1, 2)}
DIES_ANYWHERE = ("ingest.sealed", "rejects.before_write", "rejects.after_write", "expire.before_watermark", "expire.watermark_moved")
DIES_IN_SQLITE = ("store.begun", "store.rows_written", "store.before_commit", "store.after_commit", "fold.before_commit",
                  "fold.after_commit")
DIES_IN_MONGO = ("raw.inserted", "mongo.logged", "mongo.committed", "mongo.applying", "mongo.applied", "mongo.done", "rollup.sent",
                 "top.ranked", "offsets.before_commit")
DAY_S = 86400


def more_of(dice, what, is_mongo):
    """The arguments of a fault beside its daemon and its time."""
    if what == "die":
        return f"{dice.choice(DIES_ANYWHERE + (DIES_IN_MONGO if is_mongo else DIES_IN_SQLITE))}:{1 + dice.randrange(3)}"
    if what == "recreate":  # is everybody paused meanwhile, and is the new topic longer at once?
        return dice.choice([(False, 0), (True, 0), (True, 1.3), (False, 1.3)])
    if what == "retention":  # of what is there; are the daemons paused meanwhile?
        return dice.choice([0.3, 0.9, 1.0]), dice.random() < 0.5
    if what == "tail":  # so much is left of one partition or of all; are the daemons paused meanwhile, and is it refilled at once?
        left = {partition: dice.choice([0, 0.3 + 0.69 * dice.random()]) for partition in range(PARTITIONS)}
        one = dice.randrange(PARTITIONS)
        return dice.choice([left, {one: left[one]}]), dice.random() < 0.5, dice.choice([0, 1.3])
    if what == "transaction":
        return dice.choice(["commit", "commit", "abort", "abandon"])
    if what == "clock":
        return dice.choice([6 * DAY_S, 6 * DAY_S, 40 * DAY_S, -3 * DAY_S, 3600])
    if what in ("restore", "redefine"):  # under running daemons? of all daemons?
        return dice.random() < 0.5
    return None


def draw(dice, seconds, is_mongo, only=()):
    """The faults of one round, in their order. Of `only` each comes once at least."""
    table = {**OF_ANY, **(OF_MONGO if is_mongo else OF_SQLITE)}
    only = [name for name in only if name in table]
    names = only or list(table)
    turns, left, faults = round(seconds / TURN_S), {name: table[name][1] for name in names}, []
    for number in range(max(3, round(seconds / 2.5))):
        names = [name for name in names if left[name] > 0]
        if not names:
            break
        what = only[number] if number < len(only) else dice.choices(names, [table[name][0] for name in names])[0]
        left[what] -= 1
        at = dice.randrange(15, max(16, round(turns * 0.9)))
        faults.append(Fault(at, what, dice.randrange(DAEMONS), dice.randrange(3, 60), more_of(dice, what, is_mongo)))
        if what == "restore":  # of what was dumped before, while it ran
            faults.append(Fault(dice.randrange(5, at), "dump", faults[-1].daemon, 0, None))
    return sorted(faults, key=lambda fault: fault[:3])
