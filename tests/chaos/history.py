"""A history: a followed log is written and rotated, while its daemon is killed, paused, stopped and started; then the judge recounts."""

import collections
import dataclasses
import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request

from harness import EX_OK, ROOT, command
from rotation import Log, draw_habits, ranges

HURRY = os.path.join(ROOT, "build/hurry.so")
RENAMED_QUIET_S = 5  # how long tallyd waits for the last lines of a renamed file
START_S, STOP_S, CAUGHT_UP_S, TIMEOUT_S = 20, 20, 40, 20
IDLE_S = RENAMED_QUIET_S + 2.5  # without progress; for the newest rotated file, that time goes by the wall clock
SETTLE_S = 0.2
LOST = re.compile(rb"level=error event=file_lost ")
GOOD = ("exact", "told", "untellable", "told too much")
CONFIG = """sources: {{access: {{path: {path}, decode: [combined]{olddir}}}}}
reports: {{lines: {{by: [path]}}, site: {{}}}}
aggregate: {{flush: {flush}}}
query: {{series_max: 100000}}
http: {{listen: "127.0.0.1:0"}}
store: {{url: "sqlite:tallyd.db"}}
"""


class Ended(Exception):
    """A daemon ended, or did not when it had to; the message says how."""


def span():
    """The words of a query that finds all lines."""
    now = time.time()
    return [time.strftime("%Y-%m-%dT%H:%M", time.gmtime(now + days * 86400)) for days in (-2, 2)]


class Daemon:
    """A tallyd in `home`, started again and again; each run has a log of its own, run-N.log. `state`: down, running or paused."""

    def __init__(self, home, speed):
        self.home, self.state, self.process, self.url, self.runs = home, "down", None, None, 0
        self.environment = {**os.environ, **({"LD_PRELOAD": HURRY, "HURRY": f"{speed}"} if speed != 1 else {})}
        self.mute = []  # runs that told a loss in their log, and none in their metrics

    def log(self, run=None):
        with open(os.path.join(self.home, f"run-{run or self.runs}.log"), "rb") as file:
            return file.read()

    def has_told(self):
        """Has any run told a loss?"""
        return any(LOST.search(self.log(run)) for run in range(1, self.runs + 1))

    def start(self):
        self.runs += 1
        with open(os.path.join(self.home, f"run-{self.runs}.log"), "wb") as log:
            self.process = subprocess.Popen([*command(), "run", "-c", "tallyd.yaml"], cwd=self.home, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=log, env=self.environment)
        self.state, self.url = "running", None

    def wait_started(self):
        end = time.monotonic() + START_S
        while self.url is None:
            if found := re.search(rb"event=started .*listen=(\S+)", self.log()):
                self.url = "http://" + found[1].decode()
            self.check()
            if time.monotonic() > end:
                raise Ended("did not start in time")
            time.sleep(0.01)

    def check(self):
        if self.state != "down" and self.process.poll() is not None:
            self.state = "down"
            raise Ended(f"ended with status {self.process.returncode}: {self.last_words()}")

    def last_words(self):
        return (self.log().decode(errors="replace").strip().split("\n") or [""])[-1][:300]

    def get(self, path):
        self.wait_started()
        try:
            with urllib.request.urlopen(self.url + path, timeout=TIMEOUT_S) as reply:
                return reply.read().decode()
        except (urllib.error.URLError, OSError) as error:
            time.sleep(0.2)
            self.check()
            raise Ended(f"does not answer: {error}") from error

    def check_told(self):
        """The metrics must have what the log reports."""
        if self.state == "running" and self.url is not None and LOST.search(self.log()):
            found = re.search(r"(?m)^tallyd_files_lost_total\S* (\d+)$", self.get("/metrics"))
            if not found or int(found[1]) == 0:
                self.mute.append(self.runs)

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)
        self.state = "paused"

    def resume(self):
        self.process.send_signal(signal.SIGCONT)
        self.state = "running"

    def kill(self):
        if self.state != "down":
            self.check()
            self.state = "down"
            self.process.kill()
            self.process.wait()

    def kill_quietly(self):
        """At the end of a history, however it ended."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self):
        self.wait_started()
        self.check_told()
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired as error:
            raise Ended("did not end after SIGTERM") from error
        self.state = "down"
        if status != EX_OK:
            raise Ended(f"ended with status {status} after SIGTERM: {self.last_words()}")

    def total(self):
        """Lines counted."""
        first, last = span()
        reply = json.loads(self.get(f"/api/v1/query?report=site&from={first}Z&to={last}Z"))
        return sum(value for _, value in reply["values"])

    def counts(self):
        """({number: times that it was counted}, header lines counted), from the store."""
        first, last = span()
        argv = [*command(), "query", "lines", "-c", "tallyd.yaml", "--from", first, "--to", last, "--top", "100000", "--format", "json"]
        reply = subprocess.run(argv, cwd=self.home, stdout=subprocess.PIPE, check=True, timeout=TIMEOUT_S).stdout
        rows = {row["series"]["path"]: row["values"][0] for row in json.loads(reply)["top"]}
        header = rows.pop("/header", 0)
        return {int(path[len("/i/"):]): count for path, count in rows.items()}, header


@dataclasses.dataclass
class Verdict:
    word: str
    why: str = ""

    def is_good(self):
        return self.word in GOOD


class History:
    """`done`: counts moves by their names."""

    def __init__(self, home, dice, speed, habits=None):
        self.home, self.dice, self.habits, self.done = home, dice, habits or draw_habits(dice), collections.Counter()
        self.log = Log(home, dice, self.habits, RENAMED_QUIET_S / speed / 2)
        self.daemon, self.begun = Daemon(home, speed), time.monotonic()
        olddir = f", olddir: {self.log.old}" if self.habits.olddir else ""
        with open(os.path.join(home, "tallyd.yaml"), "w", encoding="utf-8") as file:
            path = os.path.join(self.log.folder, "*.log") if self.habits.glob else self.log.path
            file.write(CONFIG.format(path=path, olddir=olddir, flush=dice.choice(("200ms", "1s", "3s"))))

    def note(self, what):
        self.done[what.split()[0]] += 1
        with open(os.path.join(self.home, "moves"), "a", encoding="utf-8") as file:
            file.write(f"{time.monotonic() - self.begun:7.3f} {self.daemon.state:7} {what}: lines to {self.log.count}\n")

    def wait(self, condition, timeout_s):
        """False: it did not come true."""
        end = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.03)
        return True

    # ---- moves

    def some_lines(self):
        return self.dice.choice((1, self.dice.randrange(1, 10), self.dice.randrange(20, 300), self.dice.randrange(20, 300),
                                 6000 if self.dice.random() < 0.05 else 40))

    def write(self):
        if self.log.is_late():
            self.log.finish()
        for _ in range(self.dice.choice((1, 1, 4))):
            self.log.write(self.some_lines(), halves=self.dice.random() < 0.3)
        if self.dice.random() < 0.15:
            self.log.write_half()
        self.note("write")

    def rotate(self):
        """Once, a step at a time if the dice say so, or many times."""
        runs = self.daemon.state == "running"
        times = self.dice.choice((1, 1, 2, 3)) if runs else self.dice.choice((1, 1, 2, 3, self.dice.randrange(1, 21)))
        for number in range(times):
            self.log.begin()
            self.note(f"rotation {number + 1} of {times}")
            if number + 1 == times and self.dice.random() < 0.5:
                self.log.advance()
                return
            self.log.finish()
            if self.dice.random() < 0.8:
                self.log.write(self.dice.randrange(1, 30))

    def advance(self):
        self.log.advance()
        self.note("step of the rotation")

    def sleep(self):
        time.sleep(self.dice.random() ** 2 * 0.3)
        self.note("sleep")

    def lose(self):
        self.log.finish()
        paths = self.log.rotated()
        path = self.log.path if not paths or self.dice.random() < 0.25 else self.dice.choice(paths)
        self.log.lose(path)
        self.note(f"{'truncate' if path == self.log.path else 'delete'} {os.path.basename(path)} of {ranges(self.log.gone[-1].numbers)}")

    def copy(self):
        if not os.path.exists(self.log.path):
            self.log.finish()
        self.log.copy_by_hand()
        self.note("copy by hand")

    def start(self):
        self.daemon.start()
        self.note("start")
        if self.dice.random() < 0.8:
            self.daemon.wait_started()

    def stop(self):
        self.daemon.stop()
        self.note("stop")

    def kill(self):
        self.daemon.check_told()
        self.daemon.kill()
        self.note("kill")

    def pause(self):
        self.daemon.pause()
        self.note("pause")

    def resume(self):
        self.daemon.resume()
        self.note("resume")

    def moves(self, with_losses):
        """[(weight, move)] of what may be done now."""
        state = self.daemon.state
        found = [(6, self.write), (4, self.rotate), (0.4, self.copy), (3 if state == "running" else 0.5, self.sleep)]
        if self.log.rotation is not None:
            found.append((6, self.advance))
        if with_losses:
            found.append((3 if state == "down" else 0.8, self.lose))
        return found + {"down": [(3, self.start)], "running": [(1.5, self.kill), (1, self.stop), (1.2, self.pause)],
                        "paused": [(3, self.resume), (0.4, self.kill)]}[state]

    # ---- the whole

    def play(self):
        """The verdict."""
        try:
            self.begin()
            with_losses = self.dice.random() < 0.3
            for _ in range(self.dice.randrange(6, 16)):
                weights, moves = zip(*self.moves(with_losses))
                self.dice.choices(moves, weights)[0]()
                if self.daemon.state == "running":
                    self.daemon.check()
            self.finish()
        except Ended as error:
            return Verdict("ENDED", str(error))
        verdict, is_whole = self.judge(), not (self.log.free or self.log.gone or self.log.aged or self.habits.bare)
        return self.verify() or verdict if verdict.word == "exact" and is_whole else verdict

    def verify(self):
        """Bad if `tallyd verify` finds differences although all files are there."""
        done = subprocess.run([*command(), "verify", "-c", "tallyd.yaml", *self.log.rotated(), self.log.path], cwd=self.home,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=TIMEOUT_S)
        return Verdict("DIFFERS", done.stdout.decode(errors="replace")[-1000:]) if done.returncode != EX_OK else None

    def begin(self):
        """Until the daemon knows the log."""
        if self.dice.random() < 0.3:  # at first it is empty
            self.daemon.start()
            self.daemon.wait_started()
            self.log.write(self.some_lines())
        else:
            self.log.write(self.some_lines())
            self.daemon.start()
        self.note("begin")
        if not self.wait(self.daemon.total, CAUGHT_UP_S):
            raise Ended("counted nothing of its first log")

    def finish(self):
        """Let the daemon catch up, and perhaps start it once more, with nothing new."""
        self.log.finish()
        self.log.complete()
        if self.dice.random() < 0.5:
            self.log.write(self.some_lines())
        if self.daemon.state == "paused":
            self.resume()
        if self.daemon.state == "down":
            self.start()
        self.note("end")
        self.catch_up()
        self.daemon.stop()
        if self.dice.random() < 0.3:
            self.daemon.start()
            self.daemon.wait_started()
            time.sleep(SETTLE_S * 2)
            self.daemon.stop()
        self.log.close()

    def catch_up(self):
        """Until all that is there is counted, and what is missing is told; or until nothing moves any more."""
        total, since, end = -1, time.monotonic(), time.monotonic() + CAUGHT_UP_S
        present, headers, _ = self.log.present()
        required = len(set(present) - self.log.free) + sum(headers.values())
        while time.monotonic() < end and time.monotonic() - since < IDLE_S:
            before, total = total, self.daemon.total()
            if total != before:
                since = time.monotonic()
            elif total >= required and self.judge().is_good():
                break
            time.sleep(0.05)
        time.sleep(SETTLE_S)

    def judge(self):
        counted, header = self.daemon.counts()
        present, headers, open_ended = self.log.present()
        told = self.daemon.has_told()
        doubled = {number for number, count in counted.items() if count > 1}
        if doubled or header > self.log.headers:
            return Verdict("DOUBLED", f"lines {ranges(doubled)}; {header} of {self.log.headers} header lines; told: {told}")
        left = set(present) - set(counted) - self.log.free - open_ended
        wanted = 0 if self.habits.bare else sum(headers.values())  # files that are nothing but the same header are one
        if left or header < wanted:
            where = collections.Counter(present[number] for number in left)
            why = f"{dict(where)}, lines {ranges(left)}; {header} of {sum(headers.values())} header lines"
            return Verdict("LEFT" if told else "SILENT", f"not counted though there: {why}")
        missing = set(range(1, self.log.count + 1)) - set(present) - set(counted) - self.log.free - open_ended
        hidden = set().union(*(gone.numbers for gone in self.log.gone if self.log.hides(gone, counted)))
        unexplained = missing.difference(*(gone.numbers for gone in self.log.gone))
        if unexplained and not self.log.aged:
            raise RuntimeError(f"the harness does not know where lines {ranges(unexplained)} are")
        if missing - hidden and not told:
            gone = [f"{gone.what}: {ranges(gone.numbers & missing)}" for gone in self.log.gone if gone.numbers & missing]
            return Verdict("SILENT", f"deleted before they were counted: {ranges(missing - hidden)} ({'; '.join(gone) or 'aged'})")
        if self.daemon.mute:
            return Verdict("MUTE", f"a loss is in the log of runs {self.daemon.mute}, and not in their metrics")
        return self.judge_telling(told, missing)

    def judge_telling(self, told, missing):
        if told and not missing:
            # Of files that begin alike, nobody knows which one it was whose header alone was counted.
            was_lost = self.log.aged or self.log.gone or self.log.missed_by_copy or self.habits.header
            return Verdict("told too much") if was_lost else Verdict("FALSE ALARM", "nothing was deleted")
        return Verdict("told" if told else "untellable" if missing else "exact")
