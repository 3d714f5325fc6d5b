"""make bench: measures tallyd and its peers on one generated day and writes the table, reached or not.

All programs are run in turn, round after round, on the same warm file, so that a change in the machine's mood meets
them all; medians are compared. Then what they counted is compared, cell by cell: a figure is worth nothing where the
results differ or could not be compared, and the exit status is then 1. A missed figure is no failure. What could not
be measured stands in the table with the reason.
"""

import argparse
import filecmp
import functools
import hashlib
import os
import sqlite3
import statistics
import subprocess
import sys

import measure
import peers
import tallyd as tallyd_module

HERE = os.path.dirname(os.path.abspath(__file__))
JSON_EVENTS = 4000
NAME = "bench"
say = functools.partial(measure.say, NAME)


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measure tallyd and its peers; write bench/RESULTS.md.")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of everything (default 5)")
    parser.add_argument("--lines", type=int, default=5_000_000, help="lines of the log (default 5,000,000)")
    parser.add_argument("--sample", type=int, default=200, help="paths compared by minute; 0 is all (default 200)")
    parser.add_argument("--hot-lines", type=int, default=200_000, help="N of callgrind's N and 2N (default 200,000)")
    measure.add_arguments(parser)
    arguments = parser.parse_args()
    for name in ("rounds", "lines", "hot_lines"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    return arguments


def log_file(build, lines):
    """The day's log. Its name holds the generator's hash, so that a changed generator makes a new file."""
    digest = hashlib.sha256()
    for name in ("site.c", "site.h", "traffic.c"):
        with open(os.path.join(HERE, name), "rb") as source:
            digest.update(source.read())
    path = os.path.join(measure.CACHE, f"traffic-{lines}-{digest.hexdigest()[:8]}.log")
    if not os.path.exists(path):
        say(f"generating {lines:,} lines")
        with open(path + ".part", "wb") as out:
            argv = [os.path.join(build, "traffic"), "--lines", str(lines), "--seed", "1", "--start"]
            subprocess.run(argv + [tallyd_module.DAY[0]], stdout=out, check=True)
        os.rename(path + ".part", path)
    return path


class Rounds:
    """The seconds of every program in every round, and the totals that each printed."""

    def __init__(self, programs):
        self.programs = programs
        self.seconds = {program: [] for program in programs}
        self.totals = {}

    def run(self, log, count):
        for number in range(1, count + 1):
            say(f"round {number} of {count}, load {os.getloadavg()[0]:.2f}")
            for program in self.programs:
                if program.why_not is None:
                    self._run_one(program, log)

    def _run_one(self, program, log):
        try:
            seconds, totals = program.count(log)
        except measure.Failed as error:
            program.why_not = str(error)
            say(f"{program.name}: {error}")
            return
        self.seconds[program].append(seconds)
        if totals:
            self.totals[program] = totals

    def median(self, program):
        return statistics.median(self.seconds[program]) if program.why_not is None else None


def attempt(function, *arguments):
    """(result, None), or (None, why there is none)."""
    try:
        return function(*arguments), None
    except (measure.Failed, OSError, ValueError, sqlite3.Error, subprocess.CalledProcessError) as error:
        return None, str(error)


def rows_agree(rounds, work, log):
    """Whether all peers that can print their cells print the same. Returns what was found wrong and a file of them."""
    wrong, first = [], None
    totals = {tuple(value) for value in rounds.totals.values()}
    if len(totals) > 1:
        wrong.append("the peers' totals differ: " + "; ".join(f"{p.name} {t}" for p, t in rounds.totals.items()))
    for number, program in enumerate(p for p in rounds.programs if p in rounds.totals and p.why_not is None):
        path = os.path.join(work, f"rows-{number}.tsv")
        _, why = attempt(program.write_rows, log, path)
        if why:
            wrong.append(f"the cells of {program.name} could not be had: {why}")
            continue
        if first is None:
            first = path
            continue
        if not filecmp.cmp(first, path, shallow=False):
            wrong.append(f"the cells of {program.name} differ from those of the first peer")
        os.remove(path)
    return wrong, first


def compare(rounds, ta, work, log, sample):
    """Returns (what is wrong, a sentence on what was compared, a page to ask for)."""
    say("comparing results")
    wrong, rows = rows_agree(rounds, work, log)
    if rows is None:
        return wrong + ["no peer was measured, so nothing was compared"], "", None
    cells = tallyd_module.read_cells(rows)
    os.remove(rows)
    hits = sum(hits for minutes in cells.values() for hits, _ in minutes.values())
    count = sum(len(minutes) for minutes in cells.values())
    sentence = f"All {count:,} cells ({hits:,} hits) of the {len(rounds.totals)} peers were compared with each other"
    busiest = tallyd_module.paths_to_compare(cells, 5)[0]
    if ta.why_not is not None:
        return wrong + [f"tallyd's cells were not compared: {ta.why_not}"], f"{sentence}.", busiest
    try:
        found, compared = tallyd_module.differences(ta, cells, sample)
    except measure.Failed as error:
        return wrong + [f"tallyd's cells could not be read: {error}"], f"{sentence}.", busiest
    wrong += found[: tallyd_module.DIFFERENCES_SHOWN]
    if len(found) > tallyd_module.DIFFERENCES_SHOWN:
        wrong.append(f"and {len(found) - tallyd_module.DIFFERENCES_SHOWN} more")
    of_paths = f"{sample} of {len(cells):,} paths" if 0 < sample < len(cells) else f"all {len(cells):,} paths"
    sentence += f"; tallyd's for the whole site and {of_paths}, hits and bytes by minute: {compared:,} values."
    return wrong, sentence, busiest


def ratio_row(rounds, figure, slow, fast, bound, at_most):
    missing = next((p for p in (slow, fast) if p.why_not is not None), None)
    least = f"{'≤' if at_most else '≥'} {bound:g} ×"
    if missing:
        return [figure, least, f"not measured: {missing.why_not}", ""]
    ratio = rounds.median(slow) / rounds.median(fast)
    return [figure, least, f"{ratio:.2f} ×", verdict(ratio, bound, at_most)]


def verdict(value, bound, at_most):
    return "reached" if (value <= bound if at_most else value >= bound) else "**missed**"


def value_row(figure, value, why_not, bound, unit, digits):
    least = f"≤ {bound:,g} {unit}".strip() if bound else "report it"
    if value is None:
        return [figure, least, f"not measured: {why_not}", ""]
    return [figure, least, f"{value:,.{digits}f} {unit}".strip(), verdict(value, bound, True) if bound else ""]


def figures(rounds, ta, wc, split, regex, mawk, others):
    anon = max((done.anon_kib_max for done in ta.runs), default=None)
    goaccess_s, goaccess_why = others["goaccess"]
    latency, latency_why = others["latency"]
    instructions, instructions_why = others["instructions"]
    return [
        ["figure", "at least", "measured", "verdict"],
        ratio_row(rounds, "`tallyd import` into SQLite, time, against `wc -l`", ta, wc, 10, True),
        ratio_row(rounds, "against ClickHouse local, `splitByChar(' ', line)`", split, ta, 1.5, False),
        ratio_row(rounds, "against ClickHouse local, regular expression", regex, ta, 5, False),
        ratio_row(rounds, "against mawk", mawk, ta, 10, False),
        [
            f"GoAccess on the first {peers.GOACCESS_LINES:,} lines, once",
            "report it",
            f"{goaccess_s:.2f} s" if goaccess_s else f"not measured: {goaccess_why}",
            "",
        ],
        value_row("instructions per line, parse + coalesce", instructions, instructions_why, 800, "", 0),
        value_row("instructions per JSON event of 293 bytes, its scanner", *others["scanner"], 1500, "", 0),
        value_row("the same, whole: scanner, fields, time, numbers", *others["json"], None, "", 0),
        value_row("peak anonymous memory (`RssAnon`)", anon and anon / 1024, ta.why_not, 256, "MiB", 1),
        value_row(
            "query of one page's last hour, whole process",
            latency and statistics.median(latency),
            latency_why,
            15,
            "ms",
            1,
        ),
    ]


def times(rounds):
    rows = [["program", "median (lowest–highest)", "whole process"]]
    for program in rounds.programs:
        if program.why_not is not None:
            rows.append([program.name, f"not measured: {program.why_not}", ""])
            continue
        whole = getattr(program, "whole_s", None)
        whole_text = measure.spread(whole) if whole else "the same"
        rows.append([program.name, measure.spread(rounds.seconds[program]), whole_text])
    return rows


def stored_rows(store):
    """Rows of each table of the store, as the database itself counts them."""
    base = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    try:
        names = base.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        count = 'SELECT count(*) FROM "{}"'
        return {
            name: base.execute(count.format(name)).fetchone()[0]
            for (name,) in names
            if not name.startswith("sqlite_")
        }
    finally:
        base.close()


def beside(rounds, ta, log, lines):
    """The circumstances of the figures."""
    size = os.path.getsize(log)
    rows = [["what", "value"], ["log", f"{lines:,} lines, {size:,} bytes, {size / lines:.1f} a line"]]
    for totals in list(rounds.totals.values())[:1]:
        rows.append(["cells (path, minute); hits; bytes", "; ".join(f"{total:,}" for total in totals)])
    if ta.why_not is not None:
        return rows + [["store", f"not measured: {ta.why_not}"]]
    last = ta.runs[-1]
    rows += [
        ["processor time of the import", measure.spread([done.cpu_s for done in ta.runs])],
        ["lines a second", f"{lines / rounds.median(ta):,.0f}"],
        ["store's files", f"{ta.store_bytes():,} bytes, {ta.store_bytes() / lines:.1f} a line"],
        ["written to the disk (`write_bytes`)", f"{last.write_bytes:,} bytes"],
        ["passed to `write()` (`wchar`)", f"{last.wchar:,} bytes"],
    ]
    counted, why = attempt(stored_rows, ta.store)
    if counted is None:
        return rows + [["rows", f"not measured: {why}"]]
    return rows + [["rows", "; ".join(f"{name} {count:,}" for name, count in sorted(counted.items()))]]


def about(rounds, work):
    clickhouse = {p.version for p in rounds.programs if getattr(p, "version", None)}
    return measure.about(
        work,
        ("SQLite", measure.library("sqlite3")),
        ("mawk", measure.first_line("mawk", "-W", "version").removeprefix("mawk ")),
        ("GoAccess", measure.first_line("goaccess", "--version").removeprefix("GoAccess - ").rstrip(".")),
        ("valgrind", measure.first_line("valgrind", "--version").removeprefix("valgrind-")),
        ("ClickHouse (chdb)", ", ".join(clickhouse) or "not measured"),
    )


def report(rounds, work, figure_rows, beside_rows, comparison, wrong):
    return f"""
{measure.table(figure_rows)}

## Times

Medians of {max(map(len, rounds.seconds.values()))} rounds, page cache warm, all programs in turn. ClickHouse's time is
that of the query alone, without the start of Python and the library; it may use all cores. `split_10` is the same query
as `split` but stops splitting a line after the bytes.

{measure.table(times(rounds))}

## Equality

{comparison} {measure.equality(wrong, "They are equal.")}

## Beside it

{measure.table(beside_rows)}

## Machine

{about(rounds, work)}
"""


def run_all(arguments, work):
    log = log_file(arguments.build, arguments.lines)
    ta = tallyd_module.Tallyd(arguments.build, work)
    wc, mawk = peers.Wc(), peers.Mawk()
    split, split_10, regex = (peers.ClickHouse(form, os.path.join(measure.ROOT, ".cache")) for form in ("split", "split_10", "regex"))
    rounds = Rounds([wc, ta, split, split_10, regex, mawk])
    measure.warm(log)
    rounds.run(log, arguments.rounds)
    wrong, comparison, page = compare(rounds, ta, work, log, arguments.sample)
    say("the rest: latency, instructions, GoAccess")
    others = {
        "latency": attempt(ta.latency_ms, page) if ta.why_not is None and page else (None, ta.why_not or "no page"),
        "instructions": attempt(ta.instructions_per_line, log, work, arguments.hot_lines),
        "scanner": attempt(ta.instructions_per_json_event, work, JSON_EVENTS, "json_read"),
        "json": attempt(ta.instructions_per_json_event, work, JSON_EVENTS),
        "goaccess": attempt(peers.goaccess, log, work),
    }
    figure_rows = figures(rounds, ta, wc, split, regex, mawk, others)
    beside_rows = beside(rounds, ta, log, arguments.lines)
    return wrong, report(rounds, work, figure_rows, beside_rows, comparison, wrong)


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all))
