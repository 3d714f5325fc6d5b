#!/usr/bin/env python3
"""Checks that the compiler refuses to ignore a failure: `checked.py FOLDER…`.

A function of a header that takes a `struct err *` to say why it failed returns whether it did. So it is MUST_CHECK, unless it only writes
the error, and returns false always (FAILING).
"""

import os
import re
import sys

# Functions of headers begin in column 1; static ones are seen by the compiler's own warnings.
FUNCTION = re.compile(r"^(?!static|typedef|#|\s|/|\*)([a-z][\w \*]*?)(\w+)\(([^;{}]*?)\)([^;{}()]*(?:\([^;{}]*\))?[^;{}()]*);", re.M)
ERROR = re.compile(r"(?<!const )struct err \*")
FAILING = {"err_set", "err_set_retryable", "err_prefix", "share_fail", "options_complain", "kafka_fail", "budget_fail", "lex_fail",
           "unknown_name", "backfill_ahead", "backup_stopped", "sqlite_fail", "mongo_refuse", "mongo_refuse_document", "mongo_taken_over",
           "mongo_lose_slot", "mongo_miss_seat", "mongo_explain_full"}


def unchecked(text):
    """(line, name) of each function whose failure may be ignored"""
    for found in FUNCTION.finditer(text):
        result, name, parameters, attributes = found.groups()
        if (result.strip() != "void" and ERROR.search(parameters) and name not in FAILING and "MUST_CHECK" not in attributes):
            yield text.count("\n", 0, found.start(2)) + 1, name


def main():
    headers = [os.path.join(where, name) for folder in sys.argv[1:] for where, _, names in os.walk(folder) for name in sorted(names)
               if name.endswith(".h")]
    bad = 0
    for path in headers:
        with open(path, encoding="utf-8") as file:
            for line, name in unchecked(file.read()):
                print(f"{path}:{line}: {name}() can fail, and is not MUST_CHECK")
                bad += 1
    if not headers:
        sys.exit("checked.py: found no header")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
