#!/usr/bin/env python3
"""Includes go one way only, and every header compiles alone: `layers.py STAGE…`, the lowest first.

A file of a stage includes files of its own stage and of lower ones, named "stage/file.h", and nothing else of the
project. tests/ and bench/ may include anything; nothing includes them.
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
    """(line number, what is included) of a file"""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            found = INCLUDE.match(line)
            if found:
                yield number, found.group(1)


def complaint(stages, stage, name):
    """What is wrong with including `name` in a file of `stage`, or None."""
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


def compile_alone(header):
    argv = [*COMPILE, "-include", header, "-x", "c", os.devnull]
    done = subprocess.run(argv, stderr=subprocess.PIPE, text=True, check=False)
    return f"{header} does not compile alone:\n{done.stderr}" if done.returncode else None


def main():
    stages = sys.argv[1:]
    headers = [h for stage in stages for h in sorted(glob.glob(f"{stage}/*.h"))]
    problems = check_direction(stages)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems += filter(None, pool.map(compile_alone, headers))
    print("\n".join(problems) or f"{len(headers)} headers: includes go one way, each compiles alone")
    return 1 if problems or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
