#!/usr/bin/env python3
"""Checks that includes go one way only, and that every header compiles alone: `layers.py STAGE…`, the lowest first.

A file of a stage includes files of its own stage and of lower ones, named "stage/file.h", and nothing else of the
project. tests/ and bench/ may include anything; nothing includes them.

Includes form no circle, x.c and x.h counting as one file: so each file can be read, tested and replaced with those
below it. Parts of one module share a header of their own, which the public one does not include.
"""

import concurrent.futures
import glob
import os
import re
import subprocess
import sys

COMPILE = ["cc", "@build/packages.cflags", "-I.", "-D_GNU_SOURCE", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def includes(path):
    """(line number, included name) for each include of a file"""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            found = INCLUDE.match(line)
            if found:
                yield number, found.group(1)


def complaint(stages, stage, name):
    """The reason why a file of `stage` may not include `name`, or None."""
    target = os.path.dirname(name)
    if target not in stages:
        return f'"{name}" is not in one of {" < ".join(stages)}'
    if stages.index(target) > stages.index(stage):
        return f'"{name}" is above {stage}: {" < ".join(stages)}'
    if not os.path.exists(name) and not glob.glob(f"build*/**/{name}", recursive=True):
        return f'"{name}" does not exist'
    return None


def check_direction(stages):
    problems = []
    for stage in stages:
        for path in sorted(glob.glob(f"{stage}/*.[ch]") + glob.glob(f"{stage}/*.def")):
            for number, name in includes(path):
                what = complaint(stages, stage, name)
                if what:
                    problems.append(f"{path}:{number}: {what}")
    return problems


def graph(stages):
    """{file without its suffix: the other files that it includes}"""
    edges = {}
    for stage in stages:
        for path in glob.glob(f"{stage}/*.[ch]"):
            stem = os.path.splitext(path)[0]
            targets = {os.path.splitext(name)[0] for _, name in includes(path)}
            edges.setdefault(stem, set()).update(targets - {stem})
    return edges


def reachable(edges, start):
    """The files that a file includes, directly or through others."""
    seen, left = set(), [start]
    while left:
        new = edges.get(left.pop(), set()) - seen
        seen |= new
        left += new
    return seen


def check_circles(stages):
    edges = graph(stages)
    reach = {stem: reachable(edges, stem) for stem in edges}
    circles = {tuple(sorted(other for other in reach[stem] if stem in reach.get(other, ()))) for stem in edges}
    return [f"these include each other in a circle: {' '.join(circle)}" for circle in sorted(circles - {()})]


def compile_alone(header):
    argv = [*COMPILE, "-include", header, "-x", "c", os.devnull]
    done = subprocess.run(argv, stderr=subprocess.PIPE, text=True, check=False)
    return f"{header} does not compile alone:\n{done.stderr}" if done.returncode else None


def main():
    stages = sys.argv[1:]
    headers = [h for stage in stages for h in sorted(glob.glob(f"{stage}/*.h"))]
    problems = check_direction(stages)
    problems += check_circles(stages)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems += filter(None, pool.map(compile_alone, headers))
    print("\n".join(problems) or f"{len(headers)} headers: includes go one way, in no circle, and each compiles alone")
    return 1 if problems or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
