"""Runs a process and measures it, and a benchmark with what all have in common; says what machine this is."""

import contextlib
import dataclasses
import datetime
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

SAMPLE_EVERY_S = 0.004
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
CACHE = os.path.join(ROOT, ".cache", "bench")
LOAD_AVERAGE = os.getloadavg()[0]  # when it was started
CONCERN = "?w=majority&journal=true&retryWrites=false"  # of all writes to MongoDB


class Failed(Exception):
    """A process did not do what was asked; the message says which and why."""


@dataclasses.dataclass
class Run:
    wall_s: float
    cpu_s: float
    anon_kib_max: int  # peak RssAnon as sampled; 0 where not asked for
    write_bytes: int  # what the process caused to be sent to the disk
    wchar: int  # what it passed to write() and its like
    out: str


def proc_field(pid, file, name):
    try:
        with open(f"/proc/{pid}/{file}", encoding="ascii", errors="replace") as lines:
            for line in lines:
                if line.startswith(name + ":"):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0


@contextlib.contextmanager
def watching_memory(pid):
    """A list of one: peak RssAnon in KiB, as sampled until then."""
    ended, peak = threading.Event(), [0]

    def watch():
        while not ended.wait(SAMPLE_EVERY_S):
            peak[0] = max(peak[0], proc_field(pid, "status", "RssAnon"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()


def run(argv, watch_memory=False, env=None):
    """Runs `argv` to its end. The clock stops when the process has ended, but before it is reaped: until then the
    kernel still tells what it has written in all."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        try:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, close_fds=False, env=env
            )
        except OSError as error:
            raise Failed(f"{argv[0]}: {error.strerror}") from error
        with watching_memory(process.pid) if watch_memory else contextlib.nullcontext([0]) as peak:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            wall_s = time.perf_counter() - start
        write_bytes = proc_field(process.pid, "io", "write_bytes")
        wchar = proc_field(process.pid, "io", "wchar")
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode != 0:
            tail = err.read().decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
            raise Failed(f"{os.path.basename(argv[0])} ended with status {process.returncode}: {tail[0]}")
        cpu_s = usage.ru_utime + usage.ru_stime
        return Run(wall_s, cpu_s, peak[0], write_bytes, wchar, out.read().decode(errors="replace"))


def add_arguments(parser):
    """Those of every benchmark."""
    build, results = os.path.join(ROOT, "build"), os.path.join(HERE, "RESULTS.md")
    parser.add_argument("--build", default=build, help="where the programs are (default build)")
    parser.add_argument("--results", default=results, help="file to write a part of")


def say(name, text):
    """Tell a person who waits what the benchmark is doing."""
    print(f"{name}: {text}", file=sys.stderr, flush=True)


def run_bench(name, arguments, run_all, errors=()):
    """The exit status of a program that is one benchmark. `run_all(arguments, work)` returns what was found wrong, a list, and the
    text of its part of the results; `work` is a directory that goes with it. By `errors`, and those of processes and files, it ends
    with a message, and no result is written."""
    os.makedirs(CACHE, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=CACHE) as work:
            wrong, text = run_all(arguments, work)
    except (Failed, OSError, subprocess.SubprocessError, *errors) as error:
        sys.exit(f"{name}: {error}")
    print(text)
    write_part(arguments.results, f"make {name}", text)
    return 1 if wrong else 0


def warm(path):
    """Reads the file once, so that every round finds it in the page cache."""
    with open(path, "rb", buffering=0) as file:
        block = bytearray(1 << 20)
        while file.readinto(block):
            pass


def settle():
    """Has earlier rounds' writes finished, so that the disk does not work off one round during the next."""
    os.sync()


def spread(values, unit=" s", digits=3):
    """The median, the least and the most."""
    low, high = min(values), max(values)
    return f"{statistics.median(values):,.{digits}f}{unit} ({low:,.{digits}f}–{high:,.{digits}f})"


def percentile(values, share):
    """The quantile of sorted values."""
    return values[min(len(values) - 1, int(share * len(values)))]


def verdict(text, reached):
    return f"{text}, {'reached' if reached else '**missed**'}"


def equality(wrong, equal):
    """The sentence `equal`, or what is wrong instead."""
    return "**Not equal, or not known to be:**\n\n" + "\n".join(f"- {line}" for line in wrong) if wrong else equal


def table(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0])] + lines[1:])


def write_part(path, command, text):
    """Writes what a command measured into the file of all results. Its other parts stay, those with headings of their own too."""
    heading = f"# Results of `{command}`\n"
    try:
        with open(path, encoding="utf-8") as file:
            parts = re.split(r"(?m)^(?=# )", file.read())
    except FileNotFoundError:
        parts = []
    parts = [part.rstrip("\n") + "\n" for part in parts if part.strip() and not part.startswith(heading)]
    parts.append(heading + "\n" + text.strip("\n") + "\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(sorted(parts)))


def first_line(*argv):
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except OSError:
        return "not installed"
    return ((done.stdout or done.stderr).strip().splitlines() or ["unknown"])[0].strip()


def _field_of(path, name):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith(name):
                return line.split(":", 1)[1].strip()
    return "unknown"


def library(package):
    """Its version."""
    return first_line("pkg-config", "--modversion", package)


def about(store_dir, *more):
    """The table of what the figures depend on: the machine, `more` as (what, value), and when it was."""
    memory_gib = int(_field_of("/proc/meminfo", "MemTotal").split()[0]) / 2**20
    return table([
        ("what", "value"),
        ("processor", f"{_field_of('/proc/cpuinfo', 'model name')}, {os.cpu_count()} cores"),
        ("memory", f"{memory_gib:.0f} GiB"),
        ("file system of the store", first_line("stat", "-f", "-c", "%T", store_dir)),
        ("kernel", platform.release()),
        ("gcc", first_line("gcc", "-dumpfullversion")),
        ("Python", platform.python_version()),
        *more,
        ("load average when started", f"{LOAD_AVERAGE:.2f}"),
        ("date", f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC"),
    ])
