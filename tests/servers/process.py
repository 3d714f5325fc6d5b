"""Shared by the servers of the tests: a program that is run in a directory of its own, killed and started again.

What cannot be had raises Missing with the reason.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

CACHE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), ".cache", "servers")
READY_S, STOP_S = 180, 30
# Below the range from which the kernel takes ports for outgoing connections: a killed server's stays free.
PORTS = range(20000, 32000)


MEMORY, MEMORY_BYTES = "/dev/shm", 2 << 30


class Missing(Exception):
    """Something that is needed is not here; the text names it."""


def run(argv, what, timeout_s, given="", **env):
    """The output of a command that is run with `env` beside the environment."""
    try:
        done = subprocess.run(argv, input=given.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, **env}, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        raise Missing(f"{what} took longer than {timeout_s} s") from None
    said = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        lines = [line for line in said.splitlines() if line.strip()]
        lines = [line for line in lines if "error" in line.lower() or line.startswith("E: ")] or lines
        raise Missing(f"{what} failed: {lines[0] if lines else f'exit status {done.returncode}'}")
    return said


def new_home(prefix):
    """An empty directory for a server's data: in memory if there is room, where a sync costs nothing. SIGKILL loses nothing there."""
    room = 0
    if os.access(MEMORY, os.W_OK):
        memory = os.statvfs(MEMORY)
        room = memory.f_bavail * memory.f_frsize
    return tempfile.mkdtemp(prefix=prefix, dir=MEMORY if room >= MEMORY_BYTES else None)


@contextlib.contextmanager
def making(home):
    """For what is installed once: an empty folder, to be renamed to `home` when all is in it, or None where `home` is there
    already. If several processes want to make it, one does and the others wait."""
    os.makedirs(os.path.dirname(home), exist_ok=True)
    with open(home + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(home):
            yield None
            return
        part = home + ".part"
        shutil.rmtree(part, ignore_errors=True)
        os.mkdir(part)
        yield part


def go_install(home, program, name, timeout_s):
    """The program of a Go module, `path@version`, built into `home` once; `name` is what people call it."""
    with making(home) as part:
        if part is None:
            return
        if not shutil.which("go"):
            raise Missing(f"go is not installed: {name} needs Go 1.25 or later, which Debian 12 does not have")
        run(["go", "install", program], f"building {name} by go", timeout_s, GOBIN=part)
        os.rename(part, home)


def go_source(name):
    """The folder of a Go module of the tests, of one program main.go."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), name)


def go_home(name, version):
    """Where go_build() makes it: another folder for each version and program."""
    with open(os.path.join(go_source(name), "main.go"), "rb") as file:
        return os.path.join(CACHE, f"{name}-{version}-{hashlib.sha256(file.read()).hexdigest()[:8]}")


def go_build(name, version, what, timeout_s, tidy=True):
    """The program of a Go module of the tests, built once; `what` is what people call it. `tidy`: go.mod lacks what it needs."""
    home = go_home(name, version)
    with making(home) as part:
        if part is None:
            return
        if not shutil.which("go"):
            raise Missing(f"go is not installed: {what} needs Go 1.26 or later, which Debian 12 does not have")
        source = os.path.join(part, "source")
        shutil.copytree(go_source(name), source)
        if tidy:
            run(["go", "-C", source, "mod", "tidy"], f"getting the modules of {what} by go", timeout_s, GOFLAGS="")
        run(["go", "-C", source, "build", *([] if tidy else ["-mod=mod"]), "-o", os.path.join(part, name), "."],
            f"building {what} by go", timeout_s)
        shutil.rmtree(source)
        os.rename(part, home)


def provided(provide):
    """Call it, or end the test program as skipped (tests/run.py), with what is missing."""
    try:
        provide()
    except Missing as why:
        print(f"skipped: {why}")
        sys.exit(77)


def free_ports(count):
    sockets = []
    for port in random.SystemRandom().sample(PORTS, 1000):
        sock = socket.socket()
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            sock.close()
            continue
        sockets.append((sock, port))
        if len(sockets) == count:
            break
    for sock, _ in sockets:
        sock.close()
    return [port for _, port in sockets]


def is_running(pid):
    """A zombie is not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


class Program:
    """A program whose data and log are in `home`. Another Program of that directory is the same one:
    its port, and its process where it runs. A class of it says what to run, and when it is ready."""

    NAME, STATE = "server", "server.json"

    def __init__(self, home):
        self.home = os.path.abspath(home)
        self.process, self.pid = None, None
        state = os.path.join(self.home, self.STATE)
        if os.path.exists(state):
            with open(state, encoding="ascii") as file:
                saved = json.load(file)
            self.port, self.pid = saved["port"], saved["pid"]
        else:
            os.makedirs(self.home, exist_ok=True)
            self.port = self.prepare()

    def prepare(self):
        """Done once, in an empty directory. Returns its port."""
        return free_ports(1)[0]

    def ready(self):
        raise NotImplementedError

    def launch(self, argv):
        """Begin or begin again, and wait until it serves. One that runs is left as it is."""
        if self.pid is not None and is_running(self.pid):
            return self
        with open(os.path.join(self.home, "log"), "ab") as log:
            self.process = subprocess.Popen(argv, cwd=self.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.pid = self.process.pid
        with open(os.path.join(self.home, self.STATE), "w", encoding="ascii") as file:
            json.dump({"port": self.port, "pid": self.pid}, file)
        self.wait()
        return self

    def wait(self):
        until = time.monotonic() + READY_S
        while not self.ready():
            if not is_running(self.pid):
                raise Missing(f"the {self.NAME} ended at its start: see {self.home}/log")
            if time.monotonic() > until:
                raise Missing(f"the {self.NAME} was not ready within {READY_S} s: see {self.home}/log")
            time.sleep(0.05)

    def _end(self, number):
        if self.pid is not None and is_running(self.pid):
            os.kill(self.pid, number)
            until = time.monotonic() + STOP_S
            while is_running(self.pid):
                if time.monotonic() > until:
                    number = signal.SIGKILL
                    os.kill(self.pid, number)
                time.sleep(0.02)
        if self.process is not None:
            self.process.wait()
        self.process, self.pid = None, None

    def kill(self):
        self._end(signal.SIGKILL)

    def stop(self):
        self._end(signal.SIGTERM)
