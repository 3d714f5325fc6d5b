"""Is every event counted once? If not, did anybody say so? Judged by what the broker itself had in its topic, event by event."""

import calendar
import collections
import re
import time

import samplecase
from world import BASE, BLOCK

# Words by which a loss is told, at warn or error or as the reason of an end; never at info.
RECREATED = re.compile(r"^(?!level=info).*(?:re-created|topic_recreated)", re.M)
EXPIRED = re.compile(r"^(?!level=info).*(?:records_lost|deleted before they were counted|begins at|re-created)", re.M)
CLOCK = re.compile(r"^(?!level=info).*(?:clock|expir)", re.M)
UNPROVEN = re.compile(r"^level=(?:warn|error).*(?:topic_unproven|stored_unproven)", re.M)
REFUSED = re.compile(r"^level=warn event=raw_refused .*another event has this _id", re.M)
MINUTE_S, HOUR_S = 60, 3600
ONE_IN = 3  # of the report `some`
EXACT_MAX = 600  # texts that a distinct count tells apart, but for a pair of 26 equal bits
SLOTS_A_PLACE = 32  # buckets of a histogram from one power of BASE to the next
KEPT_HOURS = 39 * 24  # fewer than the reports of stores.py keep
EXACT, TOLD, SILENT = "exact", "told", "SILENT"


class Verdict:
    """`silent`: what is wrong and nobody said; `told`: what is missing and somebody said why."""

    def __init__(self, store):
        self.store, self.silent, self.told, self.counted = store, [], [], 0

    def word(self):
        return SILENT if self.silent else TOLD if self.told else EXACT


def times_of(total):
    """How often each event of a block was counted, by the sum of their sizes."""
    return [total // BASE**place % BASE for place in range(BLOCK)]


def counted_of(blocks, verdict):
    """{identity: how often it was counted}; what does not fit together is noted."""
    counted, unfit = collections.Counter(), {}
    for path, (hits, total) in blocks.items():
        times = times_of(total)
        if sum(times) != hits or total >= BASE**BLOCK:
            unfit[path] = hits, total
        counted.update({(path, BASE**place): count for place, count in enumerate(times) if count})
    if unfit:
        verdict.silent.append(f"hits and bytes of {len(unfit)} blocks do not fit together: {dict(list(unfit.items())[:5])}")
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
    reasons, gone, was_cut = [], source.gone.get(where, 0), tail_was_told(store, told, incarnation)
    if gone and (was_cut or store.told(EXPIRED) > told.get(("retention", incarnation), 0)):
        excused = [one for one in missing if one[0] < gone]
        missing = [one for one in missing if one[0] >= gone]
        if excused:
            reasons.append(f"{len(excused)} deleted by retention")
    if ("unseen", incarnation) in told:  # nobody had looked at it yet
        return [], [*reasons, f"{len(missing)} of a topic that was deleted before its first was counted"]
    if store.told(UNPROVEN) > told.get(("unproven", incarnation - 1), 0) and incarnation > 1 and missing:
        return [], [*reasons, f"{len(missing)} of a topic that could not be told from the one before"]
    cut = source.cut_at.get(where)
    if cut is not None and store.told(UNPROVEN) > told[("tail unproven", incarnation)]:
        excused = [one for one in missing if one[0] >= cut]
        missing = [one for one in missing if one[0] < cut]
        if excused:
            reasons.append(f"{len(excused)} behind a lost tail, which could not be told")
    if incarnation < source.incarnation and store.told(RECREATED) > told.get(("recreate", incarnation), 0):
        excused = [one for one in missing if one[0] > last_counted]
        missing = [one for one in missing if one[0] <= last_counted]
        if excused:
            reasons.append(f"{len(excused)} of a topic that was deleted before they were counted")
    return missing, reasons


def tail_was_told(store, told, incarnation):
    return ("tail", incarnation) in told and store.told(RECREATED) > told["tail", incarnation]


def allowed_of(source, store, told):
    """{incarnation: how often an event of it may be counted}, for incarnations that somebody said are counted again."""
    return {incarnation: 1 + cuts for incarnation, cuts in source.cuts.items() if tail_was_told(store, told, incarnation)}


def lost_of(source, store, counted, verdict):
    """Events that the broker lost before they were counted. No daemon can know of them; but one that counted an event counted those before it.
    Returns those that were left out, as judge_source() does."""
    left_out = []
    for where, cuts in source.lost.items():
        for records in cuts:
            of = [(offset, one) for offset, one in records if one is not None]
            last = max((offset for offset, one in of if counted[one]), default=-1)
            never = [offset for offset, one in of if not counted[one] and offset > last]
            skipped = [offset for offset, one in of if not counted[one] and offset < last]
            if never:
                verdict.told.append(f"{source.name}{where}: {len(never)} that the broker lost before they were counted")
            if skipped:
                left_out.append((f"{source.name}{where}, lost", len(skipped), len(records), f"{skipped[0]}..{skipped[-1]}"))
    return left_out


def again_of(source, store, told, counted, verdict):
    """The events that were counted again, since a topic that lost its tail is counted from its beginning if an operator says so. An event
    is counted no less often than those behind it. Returns those that are, as judge_source() does."""
    left_out, allowed = [], allowed_of(source, store, told)
    again, over = 0, []
    for one, times in counted.items():
        if one in source.times and times > 1:
            again += times - 1
            over += [one] if times > allowed.get(incarnation_of(one), 1) else []
    if over:
        verdict.silent.append(f"{source.name}: {len(over)} were counted more often than anybody said: {over[:5]}")
    if again:
        verdict.told.append(f"{source.name}: {again} counted again after a lost tail, as was accepted")
    for where, records in by_partition(source.there).items():
        if where[0] not in allowed or store.told(UNPROVEN) > told["tail unproven", where[0]]:
            continue
        most, less = 0, []
        for offset, one in reversed([one for one in records if one[1] is not None and one[0] >= source.gone.get(where, 0)]):
            most = max(most, counted[one])
            less += [offset] if 0 < counted[one] < most else []
        if less:
            left_out.append((f"{source.name}{where}, again", len(less), len(records), f"{less[-1]}..{less[0]}"))
    return left_out


def incarnation_of(one):
    return int(one[0].split("/")[2][1:])


def judge_source(source, store, told, counted, verdict):
    """Its events against what was counted. Returns how many are missing without a reason, as [(where, count, of, offsets)]."""
    unexplained = []
    refused = [daemon.refusal for daemon in store.daemons if daemon.follows == source.name]
    for where, records in by_partition(source.there).items():
        missing = [(offset, identity) for offset, identity in records if identity is not None and not counted[identity]]
        if not missing:
            continue
        last = max((offset for offset, identity in records if counted[identity]), default=-1)
        left, reasons = excuse(source, store, told, where, missing, last)
        verdict.told += [f"{source.name}{where}: {reason}" for reason in reasons]
        if left and all(refused):
            verdict.told.append(f"{source.name}{where}: {len(left)} that everybody refused to go on with")
        elif left:
            unexplained.append((f"{source.name}{where}", len(left), len(records), f"{left[0][0]}..{left[-1][0]}"))
    return unexplained


def judge_spans(store, counted, times, verdict, begun_s):
    """The figures of every other report must follow from the events that `blocks` has."""
    minutes = collections.Counter()
    for one, count in counted.items():
        if one in times:
            minutes[times[one] // MINUTE_S * MINUTE_S] += count
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
        if total != counted.total():
            verdict.silent.append(f"all by {step}: {total}, but blocks has {counted.total()}")
    judge_kept(store, counted, times, verdict)


def judge_kept(store, counted, times, verdict):
    """The hours that `kept` has to have, also where the server itself ends documents."""
    end = int(time.time()) // HOUR_S * HOUR_S + 2 * HOUR_S
    begin = end - KEPT_HOURS * HOUR_S
    expected = collections.Counter()
    for one, count in counted.items():
        if begin <= times.get(one, 0) < end:
            expected[times[one] // HOUR_S * HOUR_S] += count
    answer = store.query("kept", "--step", "hour", span=(begin, end))
    found = {at_of(row["time"]): int(row["hits"]) for row in answer.rows if row["hits"] not in ("", "0")}
    if found != expected:
        off = [at for at in {*found, *expected} if found.get(at) != expected.get(at)]
        says = answer.error or f"{len(off)} differ, {sum(found.values())} hits for {expected.total()}"
        (verdict.told if store.told(CLOCK) > 0 else verdict.silent).append(f"kept by hours: {says}")


def at_of(text):
    return calendar.timegm(time.strptime(text[:16], "%Y-%m-%dT%H:%M"))


def judge_sketches(store, counted, verdict):
    """Histograms and distinct counts follow from the events that `blocks` has. Each power of BASE ends a bucket of its own."""
    places, paths, off = collections.defaultdict(collections.Counter), collections.defaultdict(set), []
    for (path, size), count in counted.items():
        segment = "/" + path.split("/")[1]
        places[segment][size.bit_length() // 2] += count
        paths[segment].add(path)

    def ask(measure):
        answer = store.query("drawn", "--top", "10", measure=measure)
        if answer.error:
            off.append(answer.error)
        return {row["path:1"]: float(row["value"]) for row in answer.rows}

    hits, different = ask("hits"), ask("paths")
    off += [f"{hits}, expected {[*places]}"] if {*hits} != {*places} else []
    shares = [ask(f"share(sizes<={BASE**place})") for place in range(BLOCK)] if not off else []
    for segment, of in places.items() if not off else ():
        expected = [sum(count for place, count in of.items() if place <= most) for most in range(BLOCK)]
        found = [round(share[segment] * hits[segment]) for share in shares]
        if (hits[segment], found) != (of.total(), expected):
            off.append(f"{segment}: {hits[segment]} hits, {found}, expected {of.total()}, {expected}")
        if abs(different[segment] - len(paths[segment])) > (1 if len(paths[segment]) <= EXACT_MAX else 0.08 * len(paths[segment])):
            off.append(f"{segment}: about {different[segment]} paths, expected {len(paths[segment])}")
    wanted = {segment: {place * SLOTS_A_PLACE: count for place, count in of.items()} for segment, of in places.items()}
    off += [f"{kind}: {found}, expected {wanted}" for kind, found in store.buckets().items() if found != wanted]
    if off:
        verdict.silent.append(f"drawn: {off[:4]}")


def judge_sample(store, sources, counted, verdict):
    """The report `some` has the events that their places draw. Left out: a source with several names, or with an offset given twice."""
    expected, judged = collections.Counter(), []
    for source in sources:
        names = [name for name in store.positions() if name.startswith(source.SCHEME)]
        if source.incarnation > 1 or source.cuts or len(names) != 1:
            continue
        judged.append(f"/{source.name}/")
        for one, (partition, offset) in source.places().items():
            if counted[one] and samplecase.draws(samplecase.salt(names[0], partition), offset, ONE_IN):
                expected[one[0]] += ONE_IN * counted[one]
    if not judged:
        print("some: no source could be judged")
    answer = store.query("some", "--top", "100000", measure="hits")
    found = {row["path"]: int(row["hits"]) for row in answer.rows if row["path"].startswith(tuple(judged))}
    if answer.error or found != {path: hits for path, hits in expected.items() if hits}:
        off = [(path, found.get(path), expected[path]) for path in {*found, *expected} if found.get(path, 0) != expected[path]]
        verdict.silent.append(f"some: {answer.error or off[:4]}")


def judge_books(store, counted, times, verdict):
    """They balance, and nothing is late in them but what is too old: which it is once expiry has begun."""
    books, total = store.books(), counted.total()
    rejected = sum(value for name, value in books.items() if name.startswith("rejected."))
    if books["consumed"] != books["parsed"] + rejected:
        verdict.silent.append(f"books: consumed {books['consumed']}, parsed {books['parsed']}, rejected {rejected}")
    if books["blocks.counted"] != total:
        verdict.silent.append(f"books: {books['blocks.counted']} counted in blocks, which has {total}")
    ancient = sum(count for one, count in counted.items() if times.get(one, 1 << 60) < time.time() - 900 * 86400)
    late = books["kept.late"]
    if late > ancient and not store.told(CLOCK):
        verdict.silent.append(f"books: {late} late in kept, expected {ancient} at most")
    if books["kept.counted"] + late != total:
        verdict.silent.append(f"books: {books['kept.counted']} counted and {late} late in kept, but blocks has {total}")
    return books


def judge_generations(store, books, counted, verdict):
    """Each event is in one generation of `shape`, and nobody counts into the first beside those who count into the second."""
    first, second = books["shape.counted"], books["shape~2.counted"]
    if first + second != counted.total():
        verdict.silent.append(f"shape: {first} in its first generation, {second} in its second, but blocks has {counted.total()}")
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


def judge_raw(store, topic, told, counted, verdict):
    """An event may be there as often as it was read: what is lost of a batch before it is counted stays."""
    allowed = allowed_of(topic, store, told)
    raw = collections.Counter(one for one in store.raw(topic.topic) if one in topic.times)
    of_topic = collections.Counter({one: times for one, times in counted.items() if one in topic.times})
    twice = [one for one, times in raw.items() if times > allowed.get(incarnation_of(one), 1)]
    if twice:
        verdict.silent.append(f"raw: {len(twice)} events are there more often than they were read")
    if missing := of_topic - raw:
        into = verdict.told if store.told(REFUSED) > 0 else verdict.silent
        into.append(f"raw: {missing.total()} events that were counted are not there: {list(missing)[:5]}")


def judge(store, sources, told, begun_s):
    """`told`: how often the store's daemons had said so when it happened, by ("recreate" or "retention", incarnation); and
    ("unseen", incarnation) of one that was deleted before the store had counted any of the topic."""
    verdict = Verdict(store)
    refusals = [daemon.refusal for daemon in store.daemons if daemon.refusal]
    blocks = store.blocks()
    counted = counted_of(blocks, verdict)
    times = {one: at for source in sources for one, at in source.times.items()}
    verdict.counted = counted.total()
    if unknown := [one for one in counted if one not in times]:
        verdict.silent.append(f"{len(unknown)} events were counted that nobody produced: {unknown[:3]}")
    if aborted := [one for source in sources for one in source.aborted if counted[one]]:
        verdict.silent.append(f"{len(aborted)} events of aborted transactions were counted: {aborted[:3]}")
    books = judge_books(store, counted, times, verdict)
    unexplained = [one for source in sources for one in judge_source(source, store, told, counted, verdict)]
    for source in sources:
        unexplained += lost_of(source, store, counted, verdict) + again_of(source, store, told, counted, verdict)
    missing, future = sum(one[1] for one in unexplained), books["rejected.future"]
    if missing and future >= missing:
        verdict.told.append(f"{missing} missing, {future} rejected as of the future")
    elif unexplained:
        verdict.silent.append(f"{missing} events are missing ({future} were of the future): {unexplained[:6]}")
    judge_generations(store, books, counted, verdict)
    judge_spans(store, counted, times, verdict, begun_s)
    judge_sketches(store, counted, verdict)
    judge_sample(store, sources, counted, verdict)
    if store.NAME != "sqlite":
        judge_documents(store, blocks, verdict)
        judge_raw(store, sources[0], told, counted, verdict)
    verdict.told += [f"refused: {refusal}" for refusal in refusals]
    if verdict.silent and store.is_torn():
        verdict.told.append("a copy that was taken while daemons wrote was put back, and the audit of the store finds that")
        verdict.told += [f"(so: {one})" for one in verdict.silent]
        verdict.silent = []
    if len(refusals) == len(store.daemons):  # nobody goes on with what is there
        verdict.told += [f"(then: {one})" for one in verdict.silent]
        verdict.silent = []
    return verdict
