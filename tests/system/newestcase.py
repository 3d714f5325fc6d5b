"""The newest events of each series and day, by Python alone, written from aggregate/recent.h and recent_document.h: a reader of their
bytes, and a recount of logs."""

import calendar
import collections
import re
import struct
import time

LINE = re.compile(rb'(\S+) (\S+) (\S+) \[(\S+) \+0000\] "((?:\S+) (\S+) \S+)" (\d+) (\S+) "([^"]*)" "([^"]*)"\n')
NAMES = ("host", "logname", "user", "request", "status", "response_size", "referrer", "user_agent")
TEXT_BYTES = 256
DAY_MS = 86400000


def make_log(dice, lines, days=2, paths=5):
    """Lines of few seconds, so that many are of one; in no order. Some texts are long, absent or not ASCII."""
    out = []
    for _ in range(lines):
        second = dice.randrange(days) * 86400 + dice.randrange(2) * 43200 + dice.randrange(40)
        stamp = time.strftime("%d/%b/%Y:%H:%M:%S", time.gmtime(calendar.timegm((2026, 1, 5, 11, 59, 50)) + second))
        agent = dice.choice(["-", "Mozilla/5.0 (X11)", "é" * dice.randrange(1, 5), "x" * 2000, "y" * 256])
        out.append(f'192.0.2.{dice.randrange(9)} - {dice.choice(["-", "frank"])} [{stamp} +0000] '
                   f'"GET /{dice.randrange(paths)}?{dice.randrange(1000)} HTTP/1.1" {dice.choice([200, 404])} '
                   f'{dice.choice(["-", dice.randrange(9999)])} "-" "{agent}"\n')
    return "".join(out).encode()


def events_of(log, source, partition=""):
    """(series, day in ms, event) of each line. The event is a dictionary, in the order of its members."""
    offset = 0
    for line in log.splitlines(keepends=True):
        host, logname, user, stamp, request, target, status, size, referrer, agent = LINE.fullmatch(line).groups()
        ms = 1000 * calendar.timegm(time.strptime(stamp.decode(), "%d/%b/%Y:%H:%M:%S"))
        event = {"time": ms, "at": f"{source}/{partition}/{offset:019}"}
        for name, text in zip(NAMES, (host, logname, user, request, status, size, referrer, agent)):
            if text != b"-":
                event[name] = int(text) if name in ("status", "response_size") else text.decode()
        yield target.split(b"?")[0].decode(), ms - ms % DAY_MS, event
        offset += len(line)


def newest_of(events, newest, by_path=True):
    """{(series, day in ms): [events, the newest first]}"""
    found = collections.defaultdict(list)
    for path, day, event in events:
        found[path if by_path else "", day].append(event)
    return {key: sorted(some, key=lambda event: (event["time"], event["at"].encode()), reverse=True)[:newest]
            for key, some in found.items()}


def short(event):
    """The event with what is certain of texts that are cut: they end in ~ and a hash."""
    return {name: text[:200] if isinstance(text, str) and name != "at" and len(text.encode()) >= TEXT_BYTES - 1 else text
            for name, text in event.items()}


def shortened(found):
    return {key: [short(event) for event in events] for key, events in found.items()}


def read_document(data, at):
    """The document that begins there, and where it ends."""
    (length,) = struct.unpack_from("<i", data, at)
    end, at, out = at + length, at + 4, {}
    while data[at] != 0:
        kind, name_end = data[at], data.index(0, at + 1)
        name, at = data[at + 1:name_end].decode(), name_end + 1
        if kind == 0x02:
            (size,) = struct.unpack_from("<i", data, at)
            out[name], at = data[at + 4:at + 3 + size].decode(), at + 4 + size
        elif kind == 0x08:
            out[name], at = data[at] != 0, at + 1
        else:
            form = {0x01: "<d", 0x09: "<q", 0x10: "<i", 0x12: "<q"}[kind]
            (out[name],) = struct.unpack_from(form, data, at)
            at += struct.calcsize(form)
    return out, end


def read_packed(data):
    """(N, events)"""
    limit, shift, at = 0, 0, 0
    while True:
        byte, at = data[at], at + 1
        limit |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    events = []
    while at < len(data):
        event, at = read_document(data, at)
        events.append(event)
    return limit, events
