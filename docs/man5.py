#!/usr/bin/env python3
"""Writes tallyd.yaml(5) from docs/CONFIG.md: `man5.py <docs/CONFIG.md >docs/tallyd.yaml.5`.

It knows the Markdown that `tallyd check --document` prints: headings, tables, indented blocks, `code`, *stress*,
[links](to). A table's rows become tagged paragraphs: the first column is the tag, the last one the text, and those
between follow in brackets under their headings' names.
"""

import re
import sys

HEAD = r'''.\" Written by docs/man5.py from docs/CONFIG.md; `make docs` writes it anew.
.TH TALLYD.YAML 5 2026-11-21 tallyd "File Formats"
.SH NAME
tallyd.yaml \- configuration of tallyd
.SH DESCRIPTION'''
TAIL = '''.SH SEE ALSO
.BR tallyd (8)'''


def escape(text):
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return r"\&" + text if text.startswith((".", "'")) else text


def inline(text):
    """Code in bold, stress in italics; of links, what is shown."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text.replace(r"\|", "|"))
    text = re.sub(r"`([^`]+)`", r"\\fB\1\\fR", escape(text))
    return re.sub(r"(?<![\w*])\*{1,2}([a-zA-Z ]+)\*{1,2}(?![\w*])", r"\\fI\1\\fR", text)


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def table(rows):
    names = cells(rows[0])
    for row in rows[2:]:
        tag, *between, text = cells(row)
        notes = [f"{name}: {inline(cell)}" for name, cell in zip(names[1:], between) if cell]
        yield ".TP"
        yield inline(tag)
        yield inline(text) + (f" ({'; '.join(notes)})" if notes else "")


def block(lines):
    if lines[0].startswith("|"):
        yield from table(lines)
    elif lines[0].startswith("    "):
        yield from (".PP", ".nf", ".RS 4", *(escape(line[4:]) for line in lines), ".RE", ".fi")
    elif lines[0].startswith("## "):
        yield f".SH {inline(lines[0][3:]).upper()}"
    elif not lines[0].startswith("# "):
        yield ".PP"
        yield from map(inline, lines)


def main():
    print(HEAD)
    before = ".SH"
    for lines in re.split(r"\n\n+", sys.stdin.read().strip("\n")):
        for line in block(lines.split("\n")):
            if line != ".PP" or not before.startswith(".SH"):
                print(line)
            before = line
    print(TAIL)


if __name__ == "__main__":
    main()
