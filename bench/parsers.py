#!/usr/bin/env python3
"""make bench-parsers LOGS=folder: what tallyd reads as independent parsers do. Real nginx and Apache log fuzzed requests twice; examples of
public parsers are read; and so is each line of the logs in a folder, if one is given. Writes tables into bench/RESULTS.md.

A log NAME may have a file NAME.decode beside it, which has its steps as of --decode. Otherwise `tallyd detect` says them. Lines of Apache's
or nginx's formats are judged by apachelogs (`pip install apachelogs`), others by Python's own csv."""

import argparse
import bz2
import collections
import csv
import datetime
import gzip
import json
import os
import re
import subprocess
import sys

import measure

sys.path[:0] = [os.path.join(measure.ROOT, "tests", "system")]

import test_formats  # noqa: E402
import test_parsers  # noqa: E402

NAME = "bench-parsers"
COMMON = '%h %l %u %t "%r" %>s %b'
COMBINED = COMMON + ' "%{Referer}i" "%{User-Agent}i"'
SHIPPED = {"common": COMMON, "combined": COMBINED, "nginx:combined": COMBINED, "nginx:main": COMBINED + ' "%{X-Forwarded-For}i"',
           "vhost_combined": "%v:%p " + COMBINED}
FIELDS = {"%h": "host", "%l": "logname", "%u": "user", "%r": "request", "%>s": "status", "%b": "bytes", "%{Referer}i": "referrer",
          "%{User-Agent}i": "agent", "%{X-Forwarded-For}i": "x_forwarded_for", "%v": "vhost", "%p": "port"}
W3C = {"c-ip": "host", "cs-username": "user", "cs-method": "method", "cs-uri-stem": "path", "sc-status": "status", "sc-bytes": "bytes",
       "s-port": "port", "cs(Referer)": "referrer"}


class Refused(Exception):
    """By the judge."""


# ---- judges: a line, as bytes without its end, becomes {field: bytes}; absent fields are not in it

def apache_judge(text):
    try:
        import apachelogs
    except ImportError as error:
        raise measure.Failed("apachelogs is missing: pip install apachelogs") from error
    parser = apachelogs.LogParser(text, encoding="iso-8859-1")

    def judge(line):
        try:
            entry = parser.parse(line.decode("latin-1"))
        except (apachelogs.InvalidEntryError, ValueError) as error:
            raise Refused from error
        found = {FIELDS[name]: str(value).encode("latin-1") for name, value in entry.directives.items()
                 if name in FIELDS and value not in (None, "", "-")}
        found["at"] = entry.request_time.astimezone(datetime.timezone.utc)
        if "request" in found:
            found.update(zip(("method", "target", "path", "protocol"), test_formats.split_request(found["request"])))
        return {name: value for name, value in found.items() if value not in (b"", b"-")}

    return judge


def w3c_judge():
    names = []

    def judge(line):
        if line.startswith(b"#"):
            if line.startswith(b"#Fields:"):
                names[:] = line.decode().split()[1:]
            return None
        text = line.decode("latin-1")
        words = next(csv.reader([text], delimiter="\t" if "\t" in text else " "), [])
        row = dict(zip(names, words))
        if len(words) != len(names) or not {"date", "time"} <= set(row):
            raise Refused
        found = {W3C[name]: word.encode("latin-1") for name, word in row.items() if name in W3C and word not in ("", "-")}
        found["at"] = datetime.datetime.fromisoformat(f"{row['date']}T{row['time']}+00:00")
        if "path" in found:
            found["path"] = found["path"].partition(b"?")[0]
        return found

    return judge


def tsv_judge(names):
    def judge(line):
        row = next(csv.reader([line.decode("latin-1")], delimiter="\t", quoting=csv.QUOTE_NONE), [])
        found = {name: value.encode("latin-1") for name, value in zip(names, row) if name != "-" and value not in ("", "-")}
        if not found.get("time", b"").isdigit():
            raise Refused
        found["at"] = datetime.datetime.fromtimestamp(int(found.pop("time")), datetime.timezone.utc)
        if "target" in found:
            found["path"] = found["target"].partition(b"?")[0]
        return found

    return judge


def judge_of(decode):
    """(the judge, its name)."""
    if decode in SHIPPED or decode.startswith("apache:"):
        return apache_judge(SHIPPED.get(decode) or decode.removeprefix("apache:")), "apachelogs"
    if decode == "w3c":
        return w3c_judge(), "Python's csv"
    if decode.startswith("tsv:"):
        return tsv_judge(decode.removeprefix("tsv:").split(",")), "Python's csv"
    return None, "none"


# ---- logs

def read_lines(path):
    with {".gz": gzip.open, ".bz2": bz2.open}.get(os.path.splitext(path)[1], open)(path, "rb") as file:
        return [line.removesuffix(b"\n").removesuffix(b"\r") for line in file.read().removesuffix(b"\n").split(b"\n")]


def decode_of(tallyd, path):
    """The steps of a log, as of --decode; None: nobody knows."""
    if os.path.exists(path + ".decode"):
        with open(path + ".decode", encoding="utf-8") as file:
            return file.read().strip()
    done = subprocess.run([tallyd, "detect", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    found = re.search(r"^    decode: \[(?:\{(\w+): '(.*)'\}|(\S+))\]$", done.stdout.decode(), re.MULTILINE)
    return found and (found[3] or f"{found[1]}:{found[2]}")


def explain(tallyd, decode, path, count):
    """What becomes of each line: [{…}, …]."""
    argv = [tallyd, "explain", "--json", "--decode", decode, "--file", path, "--lines", str(count)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode not in (0, 65):
        raise measure.Failed(f"{path}: {done.stderr.decode().strip()}")
    return {found["line"]: found for found in map(json.loads, done.stdout.splitlines())}


def values_of(found, line, unescape):
    """The values of an event: bytes of the line itself, if it says where they stand."""
    values = {field["name"]: line[field["from"] - 1:field["to"]] if "from" in field else field["value"].encode() for field in found["fields"]}
    values = {name: test_formats.unescape_apache(value) if unescape else value for name, value in values.items()}
    values["at"] = datetime.datetime.fromisoformat(found["time"].replace("Z", "+00:00"))
    return {name: value for name, value in values.items() if value not in (b"", b"-")}


def differing(wanted, values, known):
    return [name for name in sorted(known | set(wanted)) if wanted.get(name) != values.get(name)]


def compare(tallyd, path):
    """A row of the table, and the lines that differ."""
    lines = read_lines(path)
    decode = decode_of(tallyd, path)
    if decode is None:
        return [f"{len(lines):,}", "`tallyd detect` knows none", "", "", "", "", ""], []
    judge, by = judge_of(decode)
    found = explain(tallyd, decode, path, len(lines))
    counts, reasons, wrong = collections.Counter(), collections.Counter(), []
    known = set(FIELDS.values()) | {"at", "path", "method", "target", "protocol"} if by == "apachelogs" else set()
    for number, line in enumerate(lines, 1):
        own = found.get(number, {"result": "directive"})
        try:
            wanted = judge(line) if judge else {}
        except Refused:
            wanted = "refused"
        if own["result"] == "reject":
            counts["both" if wanted == "refused" else "tallyd"] += 1
            reasons[own["reason"]] += 1
        elif wanted is None or own["result"] != "event":
            counts["directive" if wanted is None and own["result"] != "event" else "different"] += 1
        elif wanted == "refused":
            counts["judge"] += 1
        else:
            names = differing(wanted, values_of(own, line, by == "apachelogs"), known) if judge else []
            counts["different" if names else "same"] += 1
            if names:
                wrong.append((number, names))
    told = "; ".join(f"{count:,} `{reason}`" for reason, count in reasons.most_common())
    refused = f"{counts['both'] + counts['tallyd']:,}" + (f" ({counts['tallyd']:,} by tallyd alone)" if told and judge else "")
    refused += f": {told}" if told else ""
    row = [f"{len(lines):,}", f"`{decode}`", by, f"{counts['same'] + counts['directive']:,}", refused, f"{counts['judge']:,}",
           f"{counts['different']:,}" if judge else "not judged"]
    return row, wrong


def log_table(arguments):
    rows = [["log", "lines", "steps", "judge", "the same", "refused", "refused by the judge alone", "different"]]
    bad = []
    for folder, _, names in sorted(os.walk(arguments.logs)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.endswith(".decode"):
                continue
            measure.say(NAME, path)
            row, wrong = compare(os.path.join(arguments.build, "tallyd"), path)
            rows.append([os.path.relpath(path, arguments.logs), *row])
            bad += [f"{path}:{number}: {', '.join(fields)}" for number, fields in wrong]
    return measure.table(rows), bad


# ---- all

def fuzzed(arguments):
    """The text of the servers' part; a difference ends the bench."""
    environment = {**os.environ, "REQUESTS": str(arguments.requests), "TALLYD": os.path.join(arguments.build, "tallyd")}
    done = subprocess.run([os.path.join(measure.ROOT, "tests/system/test_formats.py")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, env=environment)
    said = done.stdout.decode(errors="replace")
    logged = re.findall(r"^(\w+): ([\d,]+) of ([\d,]+) requests logged", said, re.MULTILINE)
    if done.returncode != 0 or len(logged) != 2:
        raise measure.Failed("tests/system/test_formats.py:\n" + said)
    seeds = ", ".join(re.findall(r"TALLYD_SEED=(\d+)", said))
    versions = [re.search(r"\S+/([\d.]+)", subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True).stdout.decode())[1]
                for argv in (["apache2", "-v"], ["nginx", "-v"])]
    rows = [["server", "requests sent", "logged", "formats", "fields that differ", "at most"]]
    for (name, count, sent), version in zip(logged, versions):
        rows.append([f"{name} {version}", sent, count, "2", "0", "0"])
    return (f"Fuzzed requests through real servers, by `tests/system/test_formats.py` (seed {seeds}). The server logs each by the format under test, "
            "and for the judge by another one; request line, referrer, agent, user and headers have hostile bytes.\n\n" + measure.table(rows))


def run_all(arguments, work):
    del work
    measure.say(NAME, f"{arguments.requests:,} requests through each server")
    text = fuzzed(arguments)
    examples = test_parsers.read_examples()
    text += (f"\n\nExamples of public parsers: {len(examples)}, as `tests/system/test_parsers.py` compares them; their table is in "
             "[docs/parsers.md](../docs/parsers.md).")
    bad = []
    if arguments.logs:
        logs, bad = log_table(arguments)
        text += "\n\nWhole logs, line by line; both mean the same by absent, `-` and an empty text.\n\n" + logs
        for line in bad[:20]:
            measure.say(NAME, "different: " + line)
    return bad, f"{text}\n\n{datetime.date.today()}"


def parse_arguments():
    parser = argparse.ArgumentParser(description="Compare with independent parsers; write bench/RESULTS.md.")
    parser.add_argument("--logs", help="folder of logs")
    parser.add_argument("--requests", type=int, default=10_000, help="requests for each server (default 10,000)")
    measure.add_arguments(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all))
