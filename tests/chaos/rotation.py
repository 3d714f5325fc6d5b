"""A log of known lines, its writer, and its rotation as logrotate does it: by the real one, or by the same renames and copies.

Each line has a number of its own in its path, /i/NUMBER. present() says which lines are in which file, from the files alone.
"""

import bz2
import collections
import contextlib
import dataclasses
import datetime
import gzip
import lzma
import os
import re
import shutil
import subprocess
import threading
import time

NAME = "access.log"
LINE = '192.0.2.%d - - [%s] "GET /i/%d HTTP/1.1" 200 %d "-" "Mozilla/5.0"\n'
HEADER = b'192.0.2.1 - - [%s] "GET /header HTTP/1.1" 200 1 "-" "check"\n'
NUMBER = re.compile(rb'"GET /i/(\d+) HTTP/1\.1" 200 \d+ "-" "Mozilla/5\.0"$')
PACKED = {"gzip": ".gz", "zstd": ".zst", "bzip2": ".bz2", "xz": ".xz"}
UNPACK = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress,
          ".zst": lambda data: subprocess.run(["zstd", "-dcq"], input=data, stdout=subprocess.PIPE, check=True).stdout}
ROTATED = re.compile(r"access\.log(?:\.\d+|-\d{8}(?:-\d+)?)?(\.gz|\.zst|\.bz2|\.xz)?")


@dataclasses.dataclass(frozen=True)
class Habits:
    """How a log is written and rotated, for the whole of a history."""
    mode: str = "create"  # or copytruncate
    pack: str = ""  # a key of PACKED; empty: not packed
    dates: str = ""  # the dateformat of names; empty: numbers
    keep: int = 99  # rotated files, before the oldest is deleted
    delay: bool = False  # the newest rotated file is not packed yet
    olddir: bool = False
    real: bool = False  # by the real logrotate
    header: bool = False  # each log begins with the same line
    bare: bool = False  # at times, that is its only one for a while
    window: bool = False  # lines may be written between a copy and the truncation
    absent: bool = False  # the writer makes the new log, a moment after the old one was renamed
    breaks: bool = False  # at times a packer is killed: what it has written stays beside the file, for ever
    glob: bool = False  # the configuration names the log by a pattern

    def words(self):
        flags = [name for name, value in dataclasses.asdict(self).items() if value is True]
        return " ".join([self.mode, self.pack or "plain", *(["dates"] if self.dates else []), *flags, f"keep={self.keep}"])


def draw_habits(dice):
    header = dice.random() < 0.3
    mode = "copytruncate" if dice.random() < 0.35 else "create"
    pack = dice.choice(["", *PACKED]) if dice.random() < 0.7 else ""
    real = mode == "create" and dice.random() < 0.4 and shutil.which("logrotate") is not None
    return Habits(mode=mode, pack=pack, delay=bool(pack) and dice.random() < 0.5,
                  dates=dice.choice(("-%Y%m%d", "-%Y%m%d-%s")) if not real and dice.random() < 0.4 else "",
                  olddir=dice.random() < 0.25, keep=3 if dice.random() < 0.25 else 99, real=real, header=header,
                  bare=header and dice.random() < 0.15,
                  window=mode == "copytruncate" and dice.random() < 0.4,
                  absent=mode == "create" and not real and dice.random() < 0.2, breaks=bool(pack) and not real and dice.random() < 0.15,
                  glob=dice.random() < 0.15)


@dataclasses.dataclass
class Gone:
    """Lines that were deleted with a file."""
    what: str
    numbers: set
    can_hide: bool  # no gap in the names shows that the file was there, if nothing of it was counted


class Log:
    """`free`: numbers of lines that may be counted or not, but never twice; `gone`: what was deleted by hand; `copies`: the lines of
    copies made by hand, which may be taken for a file that is gone; `aged`: rotations deleted the oldest; `missed_by_copy`: lines were
    in the log between a copy and the truncation, and nowhere else. `lock` keeps the writer's thread out while nothing may be
    written."""

    def __init__(self, home, dice, habits, linger_s):
        self.dice, self.habits, self.linger_s, self.lock = dice, habits, linger_s, threading.RLock()
        self.folder, self.state = os.path.join(home, "logs"), os.path.join(home, "logrotate.state")
        self.old = os.path.join(home, "old") if habits.olddir else self.folder
        for folder in {self.folder, self.old}:
            os.mkdir(folder, 0o700)
        self.path, self.rotation, self.rotations, self.renamed_at = os.path.join(self.folder, NAME), None, 0, None
        self.count = self.headers = 0
        self.half, self.in_window, self.aged, self.missed_by_copy = None, False, False, False
        self.free, self.gone, self.copies, self.day = set(), [], [], datetime.datetime.now() - datetime.timedelta(days=400)
        self.header_line = HEADER % time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime()).encode()
        self.file = self.open()

    def open(self):
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def close(self):
        os.close(self.file)

    # ---- the writer

    def line(self):
        now = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime())
        self.count += 1
        if self.in_window:
            self.free.add(self.count)
            self.missed_by_copy = True
        return (LINE % (self.dice.randrange(256), now, self.count, self.dice.randrange(10 ** self.dice.randrange(1, 9)))).encode()

    def put(self, data):
        os.write(self.file, data)

    def write(self, count, halves=False):
        """So many whole lines, after the rest of an unfinished one; perhaps in two parts."""
        with self.lock:
            self.complete()
            head = b""
            if self.habits.header and os.fstat(self.file).st_size == 0:
                head, self.headers = self.header_line, self.headers + 1
            bare = head and self.habits.bare and not self.in_window and self.dice.random() < 0.5
            data = head + b"".join(self.line() for _ in range(0 if bare else count))
            cut = self.dice.randrange(len(data)) if halves and not self.in_window else 0
            self.put(data[:cut])
            if cut:
                time.sleep(self.dice.random() * 0.03)
            self.put(data[cut:])

    def write_half(self):
        """The begin of a line, which complete() completes."""
        with self.lock:
            self.write(1)
            data = self.line()
            cut = self.dice.randrange(1, len(data))
            self.put(data[:cut])
            self.half = self.count, data[cut:]

    def complete(self):
        if self.half is not None:
            number, rest = self.half
            if self.in_window:
                self.free.add(number)
            self.put(rest)
            self.half = None

    def is_late(self):
        """Has the writer held a renamed file longer than a server may?"""
        return self.renamed_at is not None and time.monotonic() - self.renamed_at > self.linger_s

    def linger(self):
        """The writer writes its last lines to a file that was renamed."""
        first = self.count + 1
        half = self.half[0] if self.half else None
        if not self.is_late():
            for _ in range(self.dice.choice((0, 0, 1, 3))):
                self.write(self.dice.randrange(1, 5), halves=self.dice.random() < 0.3)
                if self.dice.random() < 0.3:
                    time.sleep(self.dice.random() * self.linger_s * 0.3)
        self.complete()
        if self.is_late():  # this machine was slow
            self.free.update(range(first, self.count + 1))
            if half is not None:
                self.free.add(half)

    def reopen(self):
        os.close(self.file)
        self.file, self.renamed_at = self.open(), None

    # ---- rotation, step by step: the caller may do something else at each yield

    def rotate(self):
        """A generator that rotates once."""
        self.rotations += 1
        if self.habits.mode == "copytruncate" and not self.habits.real:
            yield from self.shift()
            yield from self.copy_and_truncate()
        elif self.habits.real:
            yield from self.run_logrotate()
        else:
            yield from self.shift()
            self.renamed_at = time.monotonic()
            os.rename(self.path, self.newest())
            if not self.habits.absent:
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600))
            yield
            yield
            self.linger()
            self.reopen()
            yield
        if self.habits.pack and not self.habits.delay and not self.habits.real:
            yield from self.pack(self.newest())

    def begin(self):
        self.finish()
        self.rotation = self.rotate()

    def advance(self):
        """One step of the rotation that has begun."""
        if self.rotation is not None and next(self.rotation, self) is self:
            self.rotation = None

    def finish(self):
        while self.rotation is not None:
            self.advance()
            if self.dice.random() < 0.2:
                time.sleep(self.dice.random() ** 2 * 0.05)

    def newest(self):
        """The name of the newest rotated file."""
        if not self.habits.dates:
            return os.path.join(self.old, f"{NAME}.1")
        return os.path.join(self.old, NAME + self.day.strftime(self.habits.dates))

    def rotated(self):
        """Paths of what was rotated, the newest first; without what packers have left."""
        paths = self.all_rotated()
        return [path for path in paths if os.path.splitext(path)[0] not in paths]

    def all_rotated(self):
        names = [name for name in os.listdir(self.old) if ROTATED.fullmatch(name) and name != NAME]
        if self.habits.dates:
            return [os.path.join(self.old, name) for name in sorted(names, reverse=True)]
        return [os.path.join(self.old, name) for name in sorted(names, key=lambda name: int(name.split(".")[2]))]

    def shift(self):
        """Make room for the next rotated file, and delete the oldest."""
        if self.habits.pack and self.habits.delay:
            for path in self.rotated():
                if path.endswith(".log.1") or self.habits.dates and not path.endswith(tuple(PACKED.values())):
                    yield from self.pack(path)
        if self.habits.dates:
            self.day += datetime.timedelta(days=1)
        else:
            for path in reversed(self.all_rotated()):
                head, number, *tail = os.path.basename(path)[len("access."):].split(".")
                os.rename(path, os.path.join(self.old, ".".join(["access", head, str(int(number) + 1), *tail])))
        room = self.habits.keep - (1 if self.habits.dates else 0)
        for place, path in enumerate(self.rotated()):
            if place >= room if self.habits.dates else int(os.path.basename(path).split(".")[2]) > room:
                self.remove(path)
                self.aged = True
        yield

    def remove(self, path):
        os.remove(path)
        for suffix in PACKED.values():
            with contextlib.suppress(FileNotFoundError):
                os.remove(path + suffix)

    def copy_and_truncate(self):
        with open(self.path, "rb") as source, open(self.newest(), "wb", buffering=0) as copy:
            copy.write(source.read(self.dice.randrange(1, max(2, os.path.getsize(self.path)))))
            yield
            with self.lock:
                while data := source.read(1 << 16):
                    copy.write(data)
                self.in_window = self.habits.window
                if not self.in_window:
                    self.truncate()
                    return
        yield
        with self.lock:
            self.in_window = False
            self.truncate()

    def truncate(self):
        if self.half is not None:  # it is torn
            self.free.add(self.half[0])
        os.truncate(self.path, 0)

    def pack(self, path):
        """As logrotate does, which lets the packed file be seen while it grows, and deletes the other one then."""
        packed = path + PACKED[self.habits.pack]
        if os.path.exists(packed):  # a packer has left it
            return
        with open(path, "rb") as source:
            data = subprocess.run([self.habits.pack, "-c"], stdin=source, stdout=subprocess.PIPE, check=True).stdout
        status = os.stat(path)
        with open(packed, "xb", buffering=0) as file:
            half = self.dice.randrange(len(data) + 1)
            file.write(data[:half])
            yield
            if self.habits.breaks and self.dice.random() < 0.4:
                return
            file.write(data[half:])
        os.utime(packed, ns=(status.st_atime_ns, status.st_mtime_ns))
        yield
        os.remove(path)

    def run_logrotate(self):
        habits = self.habits
        rows = [habits.mode, "ifempty", f"rotate {habits.keep}", *([f"olddir {self.old}"] if habits.olddir else [])]
        if habits.pack:
            rows += ["compress", f"compresscmd {shutil.which(habits.pack)}", f"compressext {PACKED[habits.pack]}",
                     *(["delaycompress"] if habits.delay else [])]
        config = self.state + ".conf"
        with open(config, "w", encoding="utf-8") as file:
            file.write("%s {\n%s}\n" % (self.path, "".join(f"  {row}\n" for row in rows)))
        os.chmod(config, 0o600)
        packs_now = habits.pack and not habits.delay
        if packs_now:  # then a postrotate script has told the writer, who writes no more to the old file
            self.complete()
        self.aged |= len(self.rotated()) >= habits.keep
        self.renamed_at = time.monotonic() if habits.mode == "create" else None
        subprocess.run(["logrotate", "-f", "-s", self.state, config], stderr=subprocess.PIPE, check=True)
        if habits.mode == "create" and not packs_now:
            yield
            self.linger()
        if habits.mode == "create":
            self.reopen()
        yield

    # ---- what people do

    def lose(self, path):
        """Delete a rotated file, or empty the log without a copy."""
        numbers, _ = numbers_of(path)
        if path == self.path:
            self.complete()
            numbers, _ = numbers_of(path)
            os.truncate(path, 0)
        else:
            self.remove(path)
        self.gone.append(Gone(os.path.basename(path), set(numbers), path == self.path or self.habits.dates))

    def copy_by_hand(self):
        path = self.path + self.dice.choice((".bak", ".old.txt", "_copy", ".2026-backup"))
        shutil.copy(self.path, path)
        self.copies.append(set(numbers_of(path)[0]))

    # ---- the judge's side

    def hides(self, gone, counted):
        """Can nobody know that the file was there, or that it had more lines?"""
        known = gone.numbers & set(counted)
        return any(known <= copy for copy in self.copies) if known else gone.can_hide

    def present(self):
        """({number: file} of the whole lines, {file: its header lines}, numbers of last lines without a line feed)."""
        found, headers, open_ended = {}, {}, set()
        for path in [*self.rotated(), self.path]:
            numbers, last = numbers_of(path)
            name = os.path.basename(path)
            for number in numbers:
                if number in found:
                    raise RuntimeError(f"the harness has line {number} both in {found[number]} and in {name}")
                found[number] = name
            open_ended |= last
            headers[name] = read(path).count(self.header_line)
        return found, headers, open_ended


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    unpack = UNPACK.get(os.path.splitext(path)[1])
    return unpack(data) if unpack else data


def numbers_of(path):
    """(numbers of the whole lines, in order; those of a last line without a line feed)."""
    *whole, last = read(path).split(b"\n")
    found = [NUMBER.search(line) for line in whole]
    end = NUMBER.search(last)
    return [int(one[1]) for one in found if one], {int(end[1])} if end else set()


def ranges(numbers):
    """"1-7 9" of a set."""
    runs = collections.deque()
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(f"{first}-{last}" if first != last else f"{first}" for first, last in runs)
