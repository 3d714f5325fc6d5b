#!/usr/bin/env python3
"""Examples of public parsers, from tests/golden/public.txt: tallyd reads each line as its parser does, or as the file says. The table in
docs/parsers.md is counted from the same file."""

import collections
import decimal
import json
import os
import re
import unittest

from harness import ROOT, Case

EXAMPLES = "tests/golden/public.txt"
CONFIG = "sources:\n  a: {path: /nowhere/a.log, %s}\nreports:\n  all: {by: [path, query], measures: {seconds: sum(duration)}}\n"


class Example:
    def __init__(self, source, name):
        self.source, self.name = source, name
        self.decode, self.line = None, None
        self.before, self.facts = [], {}
        self.is_refused = False  # by the public parser
        self.refusal = None  # by tallyd: (reason, why)
        self.other = {}  # by tallyd: {field: (value, why)}

    def take(self, word, rest):
        if word == "before":
            self.before.append(unescape(rest))
        elif word == "line":
            self.line = unescape(rest)
        elif word == "refused":
            self.is_refused = True
        elif word == "but":
            text, _, why = rest.partition("| ")
            first, _, value = text.partition(" ")
            if first == "refused":
                self.refusal = value.strip(), why
            else:
                self.other[first] = value.strip(), why
        else:
            self.facts[word] = rest

    def lines(self):
        return [*self.before, self.line]

    def wanted(self):
        return {**self.facts, **{field: value for field, (value, _) in self.other.items()}}


def unescape(text):
    return re.sub(rb"\{([0-9A-F]{2})\}", lambda m: bytes([int(m[1], 16)]), text.encode())


def shown(text):
    """A value as JSON has it: a byte that is no UTF-8 is U+FFFD."""
    return re.sub("[\udc80-\udcff]", "\ufffd", unescape(text).decode("utf-8", "surrogateescape"))


def read_examples():
    examples, source, decode = [], None, None
    with open(os.path.join(ROOT, EXAMPLES), encoding="utf-8") as file:
        for line in file:
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "source":
                source = rest
            elif word == "case":
                examples.append(Example(source, rest))
                examples[-1].decode = decode
            elif word == "decode":
                examples[-1].decode = decode = rest
            elif word not in ("", "#"):
                examples[-1].take(word, rest)
    return examples


def same_value(field, wanted, value):
    if field == "at":
        return wanted.replace("Z", ".000Z") == value if "." not in wanted else wanted == value
    try:
        return decimal.Decimal(wanted) == decimal.Decimal(value)
    except decimal.InvalidOperation:
        return (shown(wanted) if wanted != "-" else "") == value


def difference(example, found):
    """How tallyd's result differs from the example, as a text; None: not at all."""
    if found["result"] == "reject":
        wanted = example.refusal[0] if example.refusal else "" if example.is_refused else None
        return None if wanted == "" or wanted == found["reason"] else f"refused: {found['reason']} in column {found['column']}"
    if example.is_refused or example.refusal:
        return "not refused"
    values = {field["name"]: "" if field["value"] == "-" else field["value"] for field in found["fields"]}
    values["at"] = found["time"]
    wrong = [f"{field}: {values.get(field, '')}" for field, wanted in example.wanted().items()
             if not same_value(field, wanted, values.get(field, ""))]
    return "; ".join(wrong) or None


def table(examples):
    """The rows of docs/parsers.md."""
    rows = ["| parser | examples | read the same | refused, and why | different, and why |", "|---|---|---|---|---|"]
    for source in dict.fromkeys(example.source for example in examples):
        own = [example for example in examples if example.source == source]
        refused = collections.Counter(example.refusal[1] for example in own if example.refusal)
        both = sum(example.is_refused for example in own)
        other = [example for example in own if example.other]
        same = len(own) - sum(refused.values()) - len(other)
        whys = list(dict.fromkeys(f"`{field}`: {why}" for example in other for field, (_, why) in example.other.items()))
        rows.append(f"| {source.partition(' | ')[0]} | {len(own)} | {same}{f', {both} of them refused by both' if both else ''} | "
                    f"{'; '.join(f'{count} × {why}' for why, count in refused.items())} | "
                    f"{f'{len(other)}: ' if other else ''}{'; '.join(whys)} |")
    return "\n".join(rows)


class Parsers(Case):
    maxDiff = None

    def explain(self, decode, lines):
        """{number of a line: what becomes of it}."""
        arguments = ["--decode", decode]
        if decode.startswith("source "):
            self.write("tallyd.yaml", (CONFIG % decode.removeprefix("source {").removesuffix("}")).encode())
            arguments = ["-c", "tallyd.yaml", "--source", "a"]
        out = self.tallyd("explain", "--json", *arguments, input=b"".join(line + b"\n" for line in lines), status=None)
        self.assertIn(self.status, (0, 65), self.err)
        return {found["line"]: found for found in map(json.loads, out.splitlines())}

    def test_lines_are_read_as_public_parsers_read_them(self):
        wrong, by_decode = [], collections.defaultdict(list)
        for example in read_examples():
            by_decode[example.decode].append(example)
        for decode, examples in by_decode.items():
            found, number = self.explain(decode, [line for example in examples for line in example.lines()]), 0
            for example in examples:
                number += len(example.lines())
                differs = difference(example, found[number])
                if differs is not None:
                    wrong.append(f"{example.source.partition(' | ')[0]}, {example.name} ({decode}): {differs}")
        self.assertEqual("", "\n".join(wrong))

    def test_the_table_of_the_docs_is_counted(self):
        with open(os.path.join(ROOT, "docs/parsers.md"), encoding="utf-8") as file:
            self.assertIn(table(read_examples()), file.read())


if __name__ == "__main__":
    unittest.main()
