#!/usr/bin/env python3
"""The image of the Containerfile: built from the Debian package by buildah without an engine, it counts a log and counts on later.

Its base is a Debian by debootstrap, called as the Containerfile calls it, with the package sources of this computer. Needs root, and
some two minutes; build/image keeps the base.
"""

import csv
import glob
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "servers"))
from harness import ROOT, TIMEOUT_S  # noqa: E402 (found only now)
from process import free_ports  # noqa: E402

WORK = os.path.join(ROOT, "build/image")
BASE = os.path.join(WORK, "base")
BASE_NAME, NAME = "docker.io/library/debian:bookworm-slim", "tallyd"
UID, GID = 8080, 4  # of the image's user; 4 is adm
LINE = '198.51.100.7 - - [05/Jan/2026:10:00:00 +0000] "GET /%d HTTP/1.1" 200 10\n'
# How apt reaches its packages, whatever is special to this computer.
APT = ("/etc/apt", "/etc/ssl/certs/ca-certificates.crt")


def run(*argv, **options):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    assert done.returncode == 0, f"{argv}: status {done.returncode}\n{done.stdout[-3000:]}"
    return done.stdout.strip()


def buildah(*argv):
    return run("buildah", "--root", f"{WORK}/store", "--runroot", f"{WORK}/run", "--storage-driver", "vfs", *argv)


def mirror():
    """The Debian mirror that apt uses here."""
    for line in run("apt-cache", "policy", "libc6").splitlines():
        words = line.split()
        if len(words) > 2 and words[1].startswith("http") and words[2] == "bookworm/main":
            return words[1]
    raise AssertionError("apt has no source of bookworm/main")


def make_base():
    if not os.path.exists(f"{BASE}/etc/debian_version"):
        run("debootstrap", "--variant=minbase", "bookworm", BASE, mirror())
    for path in APT:
        at = BASE + path
        if os.path.isdir(path):
            shutil.rmtree(at)
            shutil.copytree(path, at, symlinks=True)
        else:
            os.makedirs(os.path.dirname(at), exist_ok=True)
            shutil.copy(path, at)
    empty = buildah("from", "scratch")
    buildah("add", "-q", empty, BASE, "/")
    buildah("commit", "-q", "--rm", empty, BASE_NAME)


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(f"{WORK}/store", ignore_errors=True)
        os.makedirs(WORK, exist_ok=True)
        run("make", "--silent", "deb", cwd=ROOT)
        make_base()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.dir = folder.name
        for package in glob.glob(f"{ROOT}/build/deb/tallyd_*.deb"):
            shutil.copy(package, cls.dir)
        buildah("bud", "--isolation", "chroot", "--pull-never", "-t", NAME, "-f", f"{ROOT}/Containerfile", cls.dir)
        cls.addClassCleanup(shutil.rmtree, f"{WORK}/store", ignore_errors=True)
        cls.config = json.loads(buildah("inspect", "--type", "image", NAME))["OCIv1"]["config"]

    def setUp(self):
        self.container = buildah("from", "--pull-never", NAME)
        self.addCleanup(buildah, "rm", self.container)
        self.port = free_ports(1)[0]
        os.makedirs(f"{self.dir}/log", exist_ok=True)
        os.chmod(self.dir, 0o755)
        configuration = buildah("run", "--isolation", "chroot", self.container, "--", "cat", "/etc/tallyd.yaml")
        self.assertIn("127.0.0.1:8080", configuration)
        with open(f"{self.dir}/tallyd.yaml", "w", encoding="utf-8") as file:
            file.write(configuration.replace(":8080", f":{self.port}") + "\n")
        self.written = 0

    def add(self, lines):
        with open(f"{self.dir}/log/access.log", "a", encoding="ascii") as log:
            log.writelines(LINE % (self.written + n) for n in range(lines))
        os.chown(log.name, 0, GID)
        os.chmod(log.name, 0o640)  # as Apache's
        self.written += lines

    def start(self):
        """Run the image's program, as its user."""
        volumes = (f"{self.dir}/log:/var/log/apache2:ro", f"{self.dir}/tallyd.yaml:/etc/tallyd.yaml:ro")
        argv = ["buildah", "--root", f"{WORK}/store", "--runroot", f"{WORK}/run", "--storage-driver", "vfs", "run", "--isolation", "chroot",
                *(f"--volume={volume}" for volume in volumes), self.container, "--", *self.config["Entrypoint"], *self.config["Cmd"]]
        with open(f"{self.dir}/said", "wb") as said:
            return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said)

    def counted(self):
        done = subprocess.run([f"{ROOT}/build/tallyd", "query", f"http://127.0.0.1:{self.port}", "site", "--from", "2026-01-05", "--to",
                               "2026-01-06", "--step", "day", "--format", "csv"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, check=False)
        return sum(int(row["value"] or 0) for row in csv.DictReader(io.StringIO(done.stdout)))

    @staticmethod
    def find_daemon(pid):
        """The process of tallyd below this one, or None."""
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii") as comm:
                if comm.read().strip() == "tallyd":
                    return pid
            children = []
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                    children += map(int, file.read().split())
        except OSError:
            return None
        return next(filter(None, map(Image.find_daemon, children)), None)

    def test_counts_as_its_user_and_counts_on(self):
        for _ in range(2):
            self.add(1000)
            running = self.start()
            try:
                end = time.monotonic() + TIMEOUT_S
                while self.counted() != self.written and running.poll() is None and time.monotonic() < end:
                    time.sleep(0.1)
                with open(f"{self.dir}/said", encoding="utf-8") as said:
                    self.assertEqual(self.written, self.counted(), said.read())
                daemon = self.find_daemon(running.pid)
                self.assertEqual(UID, os.stat(f"/proc/{daemon}").st_uid)
            finally:
                os.kill(self.find_daemon(running.pid) or running.pid, signal.SIGTERM)
                self.assertEqual(0, running.wait(TIMEOUT_S))
            os.remove(f"{self.dir}/log/access.log")  # so that only the store, in the image's volume, knows these lines


if __name__ == "__main__":
    unittest.main()
