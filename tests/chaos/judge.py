"""Is every event counted once? If not, did anybody say so? Judged by what the broker itself had in its topic, event by event."""

import calendar
import collections
import re
import time

# Words by which a loss is told, at warn or error or as the reason of an end; never at info.
RECREATED = re.compile(r"^(?!level=info).*(?:re-created|topic_recreated)", re.M)
EXPIRED = re.compile(r"^(?!level=info).*(?:records_lost|deleted before they were counted|begins at|re-created)", re.M)
CLOCK = re.compile(r"^(?!level=info).*(?:clock|expir)", re.M)
UNPROVEN = re.compile(r"^level=(?:warn|error).*(?:topic_unproven|stored_unproven)", re.M)
MINUTE_S = 60
EXACT, TOLD, SILENT = "exact", "told", "SILENT"


class Verdict:
    """`silent`: what is wrong and nobody said; `told`: what is missing and somebody said why."""

    def __init__(self, store):
        self.store, self.silent, self.told, self.counted = store, [], [], 0

    def word(self):
        return SILENT if self.silent else TOLD if self.told else EXACT


def counted_of(blocks, verdict):
    """The identities that were counted; what was counted twice is noted."""
    counted, doubled = set(), collections.Counter()
    for path, (hits, total) in blocks.items():
        bits = [bit for bit in range(total.bit_length()) if total >> bit & 1]
        if len(bits) != hits:
            doubled[path] += hits - len(bits)
        counted.update((path, 1 << bit) for bit in bits)
    if doubled:
        verdict.silent.append(f"counted more than once: {sum(doubled.values())} or more, in {dict(doubled.most_common(5))}")
    return counted


def by_partition(there):
    """{(incarnation, partition): [(offset, identity)]}"""
    found = collections.defaultdict(list)
    for (incarnation, partition, offset), identity in sorted(there.items(), key=lambda one: one[0]):
        found[incarnation, partition].append((offset, identity))
    return found


def excuse(source, store, told, where, missing, last_counted):
    """Why these [(offset, identity)] of a partition may be missing: (those without a reason, reasons)."""
    incarnation, _ = where
    reasons, gone = [], source.gone.get(where, 0)
    if gone and store.told(EXPIRED) > told.get(("retention", incarnation), 0):
        excused = [one for one in missing if one[0] < gone]
        missing = [one for one in missing if one[0] >= gone]
        if excused:
            reasons.append(f"{len(excused)} deleted by retention")
    if ("unseen", incarnation) in told:  # nobody had looked at it yet
        return [], [*reasons, f"{len(missing)} of a topic that was deleted before its first was counted"]
    if store.told(UNPROVEN) > told.get(("unproven", incarnation - 1), 0) and incarnation > 1 and missing:
        return [], [*reasons, f"{len(missing)} of a topic that could not be told from the one before"]
    if incarnation < source.incarnation and store.told(RECREATED) > told.get(("recreate", incarnation), 0):
        excused = [one for one in missing if one[0] > last_counted]
        missing = [one for one in missing if one[0] <= last_counted]
        if excused:
            reasons.append(f"{len(excused)} of a topic that was deleted before they were counted")
    return missing, reasons


def judge_source(source, store, told, counted, verdict):
    """Its events against what was counted. Returns how many are missing without a reason, as [(where, count, of, offsets)]."""
    unexplained = []
    refused = [daemon.refusal for daemon in store.daemons if daemon.follows == source.name]
    for where, records in by_partition(source.there).items():
        missing = [(offset, identity) for offset, identity in records if identity is not None and identity not in counted]
        if not missing:
            continue
        last = max((offset for offset, identity in records if identity in counted), default=-1)
        left, reasons = excuse(source, store, told, where, missing, last)
        verdict.told += [f"{source.name}{where}: {reason}" for reason in reasons]
        if left and all(refused):
            verdict.told.append(f"{source.name}{where}: {len(left)} that everybody refused to go on with")
        elif left:
            unexplained.append((f"{source.name}{where}", len(left), len(records), f"{left[0][0]}..{left[-1][0]}"))
    return unexplained


def judge_spans(store, counted, times, verdict, begun_s):
    """What every other report says must follow from the events that `blocks` has."""
    minutes = collections.Counter(times[one] // MINUTE_S * MINUTE_S for one in counted if one in times)
    span = (begun_s // MINUTE_S * MINUTE_S - 2 * MINUTE_S, (int(time.time()) // MINUTE_S + 2) * MINUTE_S)
    recent = {at: hits for at, hits in minutes.items() if span[0] <= at < span[1]}
    for report in ("all", "kept", "moments") if store.NAME != "sqlite" else ("all", "kept"):
        answer = store.query(report, "--step", "minute", span=span)
        found = {at_of(row["time"]): int(row["hits"]) for row in answer.rows if row["hits"] not in ("", "0")}
        if found == recent:
            continue
        says = answer.error or f"{sum(found.values())} hits in the minutes of the round, expected {sum(recent.values())}"
        into = verdict.told if report == "kept" and store.told(CLOCK) > 0 else verdict.silent
        into.append(f"{report} by minutes: {says}")
    for step in ("month", "day"):
        rows = store.query("all", "--step", step).rows
        total = sum(int(row["hits"] or 0) for row in rows)
        if total != len(counted):
            verdict.silent.append(f"all by {step}: {total}, but blocks has {len(counted)}")


def at_of(text):
    return calendar.timegm(time.strptime(text[:16], "%Y-%m-%dT%H:%M"))


def judge_books(store, counted, times, verdict):
    """They balance, and nothing is late in them but what is too old: which it is once expiry has begun."""
    books = store.books()
    rejected = sum(value for name, value in books.items() if name.startswith("rejected."))
    if books["consumed"] != books["parsed"] + rejected:
        verdict.silent.append(f"books: consumed {books['consumed']}, parsed {books['parsed']}, rejected {rejected}")
    if books["blocks.counted"] != len(counted):
        verdict.silent.append(f"books: {books['blocks.counted']} counted in blocks, which has {len(counted)}")
    ancient = sum(times[one] < time.time() - 900 * 86400 for one in counted if one in times)
    late = books["kept.late"]
    if late > ancient and not store.told(CLOCK):
        verdict.silent.append(f"books: {late} late in kept, expected {ancient} at most")
    if books["kept.counted"] + late != len(counted):
        verdict.silent.append(f"books: {books['kept.counted']} counted and {late} late in kept, but blocks has {len(counted)}")
    return books


def judge_generations(store, books, counted, verdict):
    """Each event is in one generation of `shape`, and nobody counts into the first beside those who count into the second."""
    first, second = books["shape.counted"], books["shape~2.counted"]
    if first + second != len(counted):
        verdict.silent.append(f"shape: {first} in its first generation, {second} in its second, but blocks has {len(counted)}")
    found = sum(int(row["hits"]) for row in store.query("shape", "--top", "100000").rows)
    if found != (second or first) and (found or not first):  # of a second one that is there, and has nothing yet
        verdict.silent.append(f"shape: {found} in the query, by the books {first} and {second}")
    if second and len({daemon.variant for daemon in store.daemons}) > 1:
        verdict.silent.append(f"shape: split between two generations, {first} and {second}, and nobody refused")


def judge_documents(store, blocks, verdict):
    """All kinds of documents, and raw events, say the same."""
    for (kind, slot), found in store.documents().items():
        if found != blocks:
            off = {path: (blocks.get(path), found.get(path)) for path in {*blocks, *found} if blocks.get(path) != found.get(path)}
            verdict.silent.append(f"documents by {kind}, {slot}: {len(off)} paths differ from the query: {dict(list(off.items())[:3])}")


def judge_raw(store, topic, counted, verdict):
    raw = collections.Counter(one for one in store.raw(topic.topic) if one in topic.times)
    of_topic = {one for one in counted if one in topic.times}
    twice = [one for one, times in raw.items() if times > 1]
    if twice:
        verdict.silent.append(f"raw: {len(twice)} events are there twice")
    if missing := len(of_topic - set(raw)):
        verdict.silent.append(f"raw: {missing} events that were counted are not there")


def judge(store, sources, told, begun_s):
    """`told`: how often the store's daemons had said so when it happened, by ("recreate" or "retention", incarnation); and
    ("unseen", incarnation) of one that was deleted before the store had counted any of the topic."""
    verdict = Verdict(store)
    refusals = [daemon.refusal for daemon in store.daemons if daemon.refusal]
    blocks = store.blocks()
    counted = counted_of(blocks, verdict)
    times = {one: at for source in sources for one, at in source.times.items()}
    verdict.counted = len(counted)
    if unknown := [one for one in counted if one not in times]:
        verdict.silent.append(f"{len(unknown)} events were counted that nobody produced: {unknown[:3]}")
    books = judge_books(store, counted, times, verdict)
    unexplained = [one for source in sources for one in judge_source(source, store, told, counted, verdict)]
    missing, future = sum(one[1] for one in unexplained), books["rejected.future"]
    if missing and future >= missing:
        verdict.told.append(f"{missing} missing, {future} rejected as of the future")
    elif unexplained:
        verdict.silent.append(f"{missing} events are missing ({future} were of the future): {unexplained[:6]}")
    judge_generations(store, books, counted, verdict)
    judge_spans(store, counted, times, verdict, begun_s)
    if store.NAME != "sqlite":
        judge_documents(store, blocks, verdict)
        judge_raw(store, sources[0], counted, verdict)
    verdict.told += [f"refused: {refusal}" for refusal in refusals]
    if len(refusals) == len(store.daemons):  # nobody goes on with what is there
        verdict.told += [f"(then: {one})" for one in verdict.silent]
        verdict.silent = []
    return verdict
