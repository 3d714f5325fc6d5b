"""make bench-schemas: the instructions that a message takes in Avro and in Protobuf, by a schema, beside the same event in JSON; writes
a part of bench/RESULTS.md."""

import argparse
import json
import os
import struct
import sys

import measure
import tallyd as tallyd_module

NAME = "bench-schemas"
FIELDS = (("time", "long", 1795255200123), ("host", "string", "203.0.113.77"), ("method", "string", "GET"),
          ("request", "string", "GET /catalogue/item/4711?colour=red HTTP/1.1"), ("status", "int", 200), ("bytes", "long", 48213),
          ("referrer", "string", "https://www.example.com/catalogue/"),
          ("agent", "string", "Mozilla/5.0 (X11; Linux x86_64) Firefox/115.0"), ("level", "string", "info"))


def varint(number):
    out = b""
    while number > 0x7F:
        out += struct.pack("B", number & 0x7F | 0x80)
        number >>= 7
    return out + struct.pack("B", number)


def in_avro():
    """(schema, datum)"""
    fields = [{"name": name, "type": {"type": kind, **({"logicalType": "timestamp-millis"} if name == "time" else {})}}
              for name, kind, _ in FIELDS]
    datum = b"".join(varint(2 * len(value)) + value.encode() if kind == "string" else varint(2 * value) for _, kind, value in FIELDS)
    return json.dumps({"type": "record", "name": "Event", "fields": fields}), datum


def in_protobuf():
    """(.proto file, message)"""
    kinds = {"long": "int64", "int": "int32", "string": "string"}
    rows = "".join(f"  {kinds[kind]} {name} = {number};\n" for number, (name, kind, _) in enumerate(FIELDS, 1))
    datum = b"".join(varint(number << 3 | 2) + varint(len(value)) + value.encode() if kind == "string"
                     else varint(number << 3) + varint(value) for number, (_, kind, value) in enumerate(FIELDS, 1))
    return f'syntax = "proto3";\nmessage Event {{\n{rows}}}\n', datum


def run_all(arguments, work):
    ta = tallyd_module.Tallyd(arguments.build, work)
    text = json.dumps({name: value for name, _, value in FIELDS}, separators=(",", ":")).encode()
    rows = [["message", "bytes", "instructions", "of JSON"]]
    first = None
    for name, schema, message in (("JSON", None, text), ("Avro", *in_avro()), ("Protobuf", *in_protobuf())):
        measure.say(NAME, name)
        step = []
        if schema:
            path = os.path.join(work, name)
            step = [f"{name.lower()}:{path}"]
            with open(path, "w", encoding="ascii") as out:
                out.write(schema)
        with open(os.path.join(work, "message"), "wb") as out:
            out.write(message)
        found = ta.instructions_per_message([os.path.join(work, "message"), *step, "json"], arguments.events, work)
        first = first or found
        rows.append([name, f"{len(message)}", f"{found:,.0f}", f"{found / first:.2f} ×"])
    valgrind = measure.first_line("valgrind", "--version").removeprefix("valgrind-")
    return [], (f"\nAn event of {len(FIELDS)} fields, which the step `json` makes of each message: by itself, or of what `avro` or `protobuf` "
                f"makes of it.\n\n{measure.table(rows)}\n\n## Machine\n\n{measure.about(work, ('valgrind', valgrind))}\n")


def parse_arguments():
    parser = argparse.ArgumentParser(description="Count instructions by kind of schema; write bench/RESULTS.md.")
    parser.add_argument("--events", type=int, default=20_000, help="N of callgrind's N and 2N (default 20,000)")
    measure.add_arguments(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all))
