#!/usr/bin/env python3
"""Checks that every relative link of a page leads somewhere: `links.py PAGE…`.

A link must name an existing file or folder. Its fragment must name an <a name> or a heading of that page, as GitHub
writes it.
"""

import os
import re
import sys

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
NAME = re.compile(r'<a name="([^"]+)">')


def anchors(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    headings = (re.sub(r"<[^>]*>", "", heading) for heading in HEADING.findall(text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings} | set(NAME.findall(text))


def complaint(page, link):
    """The reason why a link leads nowhere, or None."""
    name, _, fragment = link.partition("#")
    target = os.path.join(os.path.dirname(page), name) if name else page
    if not os.path.exists(target):
        return f"there is no {target}"
    if fragment and fragment not in anchors(target):
        return f"{target} has no heading #{fragment}"
    return None


def main():
    problems = []
    for page in sys.argv[1:]:
        with open(page, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                found = (complaint(page, link) for link in LINK.findall(line) if ":" not in link)
                problems += [f"{page}:{number}: {what}" for what in found if what]
    print("\n".join(problems) or "every link of a page leads somewhere")
    return 1 if problems or len(sys.argv) == 1 else 0


if __name__ == "__main__":
    sys.exit(main())
