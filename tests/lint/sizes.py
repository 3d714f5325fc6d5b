#!/usr/bin/env python3
"""Checks sizes: functions have at most 70 lines, files 600 lines, lines of C 110 columns: `sizes.py FOLDER…`.

In C a function's body is between a `{` and a `}` that are alone on their lines in column 1: `make format-check`
enforces that layout. A function's lines count from its first line to its closing brace, without comments before it.
"""

import ast
import os
import statistics
import sys

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600
COLUMNS_MAX = 110  # of C; comments are not reflowed, since most headers have tables
SUFFIXES = (".c", ".h", ".def", ".py", ".sh", ".js", ".css", ".html", ".awk", ".sql")


def c_functions(lines):
    """(name, first line, lines) of each function"""
    for brace, line in enumerate(lines):
        if line != "{":
            continue
        first = brace
        while first > 0 and lines[first - 1] and not lines[first - 1].startswith(("}", "#", "/", " *")):
            first -= 1
        yield lines[first], first + 1, lines.index("}", brace) - first + 1


def python_functions(lines):
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"def {node.name}", node.lineno, node.end_lineno - node.lineno + 1


def files(folders):
    for folder in folders:
        for where, _, names in os.walk(folder):
            yield from (os.path.join(where, name) for name in sorted(names) if name.endswith(SUFFIXES))


def main():
    problems, sizes = [], []
    for path in files(sys.argv[1:]):
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        if len(lines) - 1 > FILE_LINES_MAX:
            problems.append(f"{path}: {len(lines) - 1} lines, at most {FILE_LINES_MAX} are allowed")
        if path.endswith((".c", ".h")):
            problems += [f"{path}:{number}: {len(line)} columns, at most {COLUMNS_MAX} are allowed"
                         for number, line in enumerate(lines, 1) if len(line) > COLUMNS_MAX]
        functions = {".c": c_functions, ".h": c_functions, ".py": python_functions}.get(os.path.splitext(path)[1])
        for name, first, count in functions(lines) if functions else ():
            sizes.append(count)
            if count > FUNCTION_LINES_MAX:
                problems.append(f"{path}:{first}: {count} lines, at most {FUNCTION_LINES_MAX} are allowed: {name}")
    print("\n".join(problems) or f"{len(sizes)} functions: median {statistics.median(sizes):.0f} lines, "
                                 f"largest {max(sizes)}")
    return 1 if problems or not sizes else 0


if __name__ == "__main__":
    sys.exit(main())
