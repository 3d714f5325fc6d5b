"""Messages of Prometheus' remote write, by hand: as its .proto files say, and by nothing that tallyd has. Also a server to which a real
Prometheus sends them."""

import http.server
import struct
import threading

UNKNOWN, COUNTER, GAUGE, HISTOGRAM, GAUGE_HISTOGRAM, SUMMARY = range(6)
NO_HINT, RESET, NO_RESET, GAUGE_HINT = range(4)
CUSTOM = -53
STALE = struct.pack("<Q", 0x7ff0000000000002)


# ---- Protocol Buffers

def varint(value):
    out = b""
    value &= (1 << 64) - 1
    while value >= 0x80:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def zigzag(value):
    return value << 1 ^ value >> 63


def part(number, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def integer(number, value):
    return varint(number << 3) + varint(value) if value else b""


def double(number, value):
    """A float, or its 8 bytes."""
    data = value if isinstance(value, bytes) else struct.pack("<d", value)
    return varint(number << 3 | 1) + data if any(data) else b""


# ---- Snappy

def packed(data):
    """A Snappy block, by literals and copies of 8 bytes."""
    out, at, literal, seen = [varint(len(data))], 0, 0, {}

    def flush(to):
        for begin in range(literal, to, 60):
            piece = data[begin:min(to, begin + 60)]
            out.append(bytes([len(piece) - 1 << 2]) + piece)

    while at + 8 <= len(data):
        piece = data[at:at + 8]
        offset = at - seen.get(piece, at)
        seen[piece] = at
        if not 0 < offset < 1 << 16:
            at += 1
            continue
        flush(at)
        out.append(bytes([8 - 1 << 2 | 2]) + struct.pack("<H", offset))
        at = literal = at + 8
    flush(len(data))
    return b"".join(out)


def unpacked(data):
    at = next(i for i, byte in enumerate(data) if byte < 0x80) + 1
    out = bytearray()
    while at < len(data):
        kind, length = data[at] & 3, data[at] >> 2
        at += 1
        if kind == 0:
            if length >= 60:
                size = length - 59
                length = int.from_bytes(data[at:at + size], "little")
                at += size
            out += data[at:at + length + 1]
            at += length + 1
            continue
        if kind == 1:
            offset, length, at = (data[at - 1] >> 5) << 8 | data[at], (length & 7) + 4, at + 1
        else:
            size = 2 if kind == 2 else 4
            offset, length, at = int.from_bytes(data[at:at + size], "little"), length + 1, at + size
        for _ in range(length):
            out.append(out[-offset])
    return bytes(out)


# ---- messages

def side_of(counts, spans, deltas, floats=None):
    """Spans and counts of {index: count}; floats: the field of counts that are floats."""
    before, last, runs, values = None, 0, [], []
    for index in sorted(counts):
        if before is None or index != before + 1:
            runs.append([index - (0 if before is None else before + 1), 0])
        runs[-1][1] += 1
        before = index
        values.append(struct.pack("<d", counts[index]) if floats else varint(zigzag(counts[index] - last)))
        last = counts[index]
    out = b"".join(part(spans, integer(1, zigzag(offset)) + integer(2, length)) for offset, length in runs)
    return out + (part(floats or deltas, b"".join(values)) if values else b"")


def sides(histogram, is_float):
    """The fields of both sides; histogram: {"positive": {index: count}, "negative": …}."""
    return b"".join(side_of(histogram.get(name, {}), spans, deltas, is_float and floats)
                    for name, spans, deltas, floats in (("negative", 8, 9, 10), ("positive", 11, 12, 13)))


def histogram(at_ms, schema, zeros=0, total=0.0, count=None, hint=GAUGE_HINT, is_float=False, custom=(), **buckets):
    if count is None:
        count = zeros + sum(sum(side.values()) for side in buckets.values())
    counts = double(2, float(count)) + double(7, float(zeros)) if is_float else integer(1, count) + integer(6, zeros)
    if is_float and not count:
        counts = varint(2 << 3 | 1) + bytes(8)
    bounds = part(16, b"".join(struct.pack("<d", bound) for bound in custom)) if custom else b""
    return counts + double(3, total) + integer(4, zigzag(schema)) + double(5, 1e-128) + sides(buckets, is_float) + integer(14, hint) + \
        integer(15, at_ms) + bounds


def sample(at_ms, value):
    return double(1, value) + integer(2, at_ms)


def request_1(series):
    """Of [(labels, samples, histograms, type)], as 1.0 has them: without types."""
    out = b""
    for labels, samples, histograms, _ in series:
        out += part(1, b"".join(part(1, part(1, name) + part(2, text)) for name, text in labels.items()) +
                    b"".join(part(2, one) for one in samples) + part(3, part(1, part(1, "trace_id") + part(2, "x")) + double(2, 1.0)) +
                    b"".join(part(4, one) for one in histograms))
    return out + part(3, integer(1, COUNTER) + part(2, "up"))


def request_2(series):
    """The same as 2.0: with symbols and metadata."""
    symbols, rows = [""], b""

    def ref(text):
        if text not in symbols:
            symbols.append(text)
        return symbols.index(text)

    for labels, samples, histograms, kind in series:
        refs = b"".join(varint(ref(text)) for pair in labels.items() for text in pair)
        rows += part(5, part(1, refs) + b"".join(part(2, one) for one in samples) + b"".join(part(3, one) for one in histograms) +
                     part(5, integer(1, kind) + integer(4, ref("seconds"))))
    return b"".join(part(4, symbol) for symbol in symbols) + rows


# ---- a target that Prometheus scrapes, and a server to which it sends

class Target:
    """Answers each scrape with the same metrics, in the one format that has native histograms: {name: (type, [(labels, metric)])}."""

    COUNTER, GAUGE, HISTOGRAM, GAUGE_HISTOGRAM = 0, 1, 4, 5

    def __init__(self, families):
        self.scrapes = 0
        body = b""
        for name, (kind, metrics) in families.items():
            rows = b"".join(part(4, b"".join(part(1, part(1, key) + part(2, text)) for key, text in labels.items()) + metric)
                            for labels, metric in metrics)
            family = part(1, name) + part(2, "A metric.") + integer(3, kind) + rows
            body += varint(len(family)) + family
        target = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                target.scrapes += 1

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    @staticmethod
    def value(kind, number):
        return part({Target.COUNTER: 3, Target.GAUGE: 2}[kind], varint(1 << 3 | 1) + struct.pack("<d", number))

    @staticmethod
    def histogram(schema, zeros, total, **buckets):
        """As client_model has it: the fields of spans and deltas are two less or more than in remote write."""
        count = zeros + sum(sum(side.values()) for side in buckets.values())
        out = integer(1, count) + double(2, total) + integer(5, zigzag(schema)) + double(6, 1e-128) + integer(7, zeros)
        for name, spans, deltas in ("negative", 9, 10), ("positive", 12, 13):
            out += side_of(buckets.get(name, {}), spans, deltas)
        return part(7, out)


class Receiver:
    """Keeps the bodies that are posted to `url`."""

    def __init__(self):
        bodies = self.bodies = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                bodies.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/write"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
