"""make bench-formats: the instructions that a line takes by formats of Apache, compiled, beside the built-in combined format; writes
a part of bench/RESULTS.md. Each line is decoded and coalesced into the two built-in reports. Beside it, the instructions of an
event of OTLP and of remote write, decoded alone."""

import argparse
import itertools
import json
import os
import re
import struct
import subprocess
import sys

import measure
import tallyd as tallyd_module

sys.path.insert(0, os.path.join(measure.ROOT, "tests", "servers"))
import remotewrite  # noqa: E402 (found only now)

NAME = "bench-formats"
COMBINED = '%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"'
AT_MOST = 1.5

COMBINED_LINE = re.compile(rb'(\S+) (\S+) (\S+) (\[[^]]*\]) ("(?:[^"\\]|\\.)*") (\S+) (\S+) ("(?:[^"\\]|\\.)*") ("(?:[^"\\]|\\.)*")')
OTHERS = {"%v": b"www.example.org", "%D": b"1234", '"%{X-Forwarded-For}i"': b'"10.1.2.3"', '"%{Host}i"': b'"www.example.org"'}

# What it is, the format (None: the built-in one), and whether AT_MOST counts.
FORMATS = (("combined, built in", None, False),
           ("combined, compiled", COMBINED, True),
           ("the time first", '%t %h %l %u "%r" %>s %b "%{Referer}i" "%{User-Agent}i"', True),
           ("`%v` before combined", "%v " + COMBINED, True),
           ("the request behind its status and size", '%h %l %u %t %>s %b "%r" "%{Referer}i" "%{User-Agent}i"', True),
           ("backwards, from the agent to the host", '"%{User-Agent}i" "%{Referer}i" %b %>s "%r" %t %u %l %h', True),
           ("combined and two quoted fields", COMBINED + ' "%{X-Forwarded-For}i" "%{Host}i"', False),
           ("combined and `%D`, made seconds", COMBINED + " %D", False),
           ("`%D` before combined", "%D " + COMBINED, False))


# A request as OpenTelemetry's conventions have it; MESSAGE_RECORDS of them are in a message.
MESSAGE_RECORDS = 100
RESOURCE = {"service.name": "shop", "host.name": "web1"}
REQUEST = {"http.request.method": "GET", "url.path": "/catalogue/item/4711", "url.query": "colour=red", "url.scheme": "https",
           "http.response.status_code": "200", "http.response.body.size": "48213", "client.address": "203.0.113.77",
           "network.protocol.version": "1.1", "server.address": "www.example.com",
           "user_agent.original": "Mozilla/5.0 (X11; Linux x86_64) Firefox/115.0"}
AT_NS = 1767571200 * 10**9


def protobuf_part(number, content):
    size, length = len(content), b""
    while size >= 0x80:
        length, size = length + bytes([size & 0x7f | 0x80]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def protobuf_attributes(number, attributes):
    return b"".join(protobuf_part(number, protobuf_part(1, key.encode()) + protobuf_part(2, protobuf_part(1, value.encode())))
                    for key, value in attributes.items())


def otlp_messages():
    """The same message in protobuf and in JSON."""
    def pairs(attributes):
        return [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    record = b"\x09" + struct.pack("<Q", AT_NS) + b"\x10\x09" + protobuf_attributes(6, REQUEST)
    scope = protobuf_part(2, record) * MESSAGE_RECORDS
    in_json = {"timeUnixNano": str(AT_NS), "severityNumber": 9, "attributes": pairs(REQUEST)}
    return {"protobuf": protobuf_part(1, protobuf_part(1, protobuf_attributes(1, RESOURCE)) + protobuf_part(2, scope)),
            "JSON": json.dumps({"resourceLogs": [{"resource": {"attributes": pairs(RESOURCE)}, "scopeLogs": [
                {"logRecords": [in_json] * MESSAGE_RECORDS}]}]}, separators=(",", ":")).encode()}


def remote_messages():
    """Messages of Prometheus' remote write, packed: gauges with ten labels, and native histograms of 40 buckets with one more."""
    gauges, histograms = [], []
    for number in range(MESSAGE_RECORDS):
        labels = {"__name__": "process_resident_memory_bytes", "cluster": "fra-1", "container": "app", "endpoint": "http",
                  "instance": f"10.0.0.{number}:9100", "job": "node", "namespace": "default", "node": f"node-{number % 40}",
                  "pod": f"app-7d9c5b-{number:05}", "region": "eu"}
        at_ms = AT_NS // 10**6 + number
        gauges.append((labels, [remotewrite.sample(at_ms, 10**6 * number + 0.5)], [], remotewrite.GAUGE))
        counts = {index: 1 + index * number % 9 for index in range(-20, 20)}
        histograms.append(({**labels, "__temporality__": "delta"}, [], [remotewrite.histogram(at_ms, 3, 1, 5.25, positive=counts)],
                           remotewrite.UNKNOWN))
    return {"a sample of remote write 1.0, ten labels": remotewrite.packed(remotewrite.request_1(gauges)),
            "the same of 2.0": remotewrite.packed(remotewrite.request_2(gauges)),
            "a native histogram of 2.0, 40 buckets": remotewrite.packed(remotewrite.request_2(histograms))}


def measure_messages(ta, arguments, work):
    rows = [["an event of a message", "bytes", "instructions to decode it"]]
    messages = [(f"a log's record of OTLP, ten attributes, in {name}", "otlp", message) for name, message in otlp_messages().items()]
    messages += [(name, "remote_write", message) for name, message in remote_messages().items()]
    for name, step, message in messages:
        measure.say(NAME, name)
        path = os.path.join(work, "message")
        with open(path, "wb") as out:
            out.write(message)
        events = arguments.hot_lines // 10 // MESSAGE_RECORDS * MESSAGE_RECORDS
        found = ta.instructions_per_message_event(work, events, step, path)
        rows.append([name, f"{len(message) // MESSAGE_RECORDS}", f"{found:,.0f}"])
    return rows


def parse_arguments():
    parser = argparse.ArgumentParser(description="Count instructions by format; write bench/RESULTS.md.")
    parser.add_argument("--lines", type=int, default=5_000_000, help="lines of the day that begins so (default 5,000,000)")
    parser.add_argument("--hot-lines", type=int, default=200_000, help="N of callgrind's N and 2N (default 200,000)")
    measure.add_arguments(parser)
    return parser.parse_args()


def write_log(path, arguments, text):
    """The lines with which a day of `make bench` begins, laid out by this format."""
    argv = [os.path.join(arguments.build, "traffic"), "--lines", str(arguments.lines), "--seed", "1", "--start", tallyd_module.DAY[0]]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as traffic, open(path, "wb") as out:
        for line in itertools.islice(traffic.stdout, 2 * arguments.hot_lines):
            found = dict(zip(COMBINED.split(" "), COMBINED_LINE.fullmatch(line[:-1]).groups()), **OTHERS)
            out.write(b" ".join(found[directive] for directive in text.split(" ")) + b"\n")
        traffic.kill()


def run_all(arguments, work):
    ta = tallyd_module.Tallyd(arguments.build, work)
    path = os.path.join(work, "log")
    rows, first, wrong = [["format", "instructions a line", "of the built-in", f"at most {AT_MOST} ×"]], None, []
    for name, text, is_bound in FORMATS:
        measure.say(NAME, name)
        write_log(path, arguments, text or COMBINED)
        found = ta.instructions_per_line(path, work, arguments.hot_lines, text)
        first = first or found
        verdict = "" if not is_bound else "reached" if found <= AT_MOST * first else "missed"
        wrong += [name] if verdict == "missed" else []
        rows.append([name, f"{found:,.0f}", f"{found / first:.2f} ×", verdict])
    valgrind = measure.first_line("valgrind", "--version").removeprefix("valgrind-")
    machine = measure.about(work, ("valgrind", valgrind))
    return wrong, f"\n{measure.table(rows)}\n\n{measure.table(measure_messages(ta, arguments, work))}\n\n## Machine\n\n{machine}\n"


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all))
