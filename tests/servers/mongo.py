#!/usr/bin/env python3
"""A server of the MongoDB wire protocol for tests: SecantusDB, on WiredTiger, installed once into a cache.

    tests/servers/mongo.py install                    make its virtual environment, if it is not there yet
    tests/servers/mongo.py start DIR [--test-commands]
                                                      start a server with its data in DIR; prints its URL
    tests/servers/mongo.py kill DIR                   SIGKILL; `start DIR` again keeps URL and data
    tests/servers/mongo.py stop DIR

The rest is for pymongo, which is in the same environment: run what needs it by PYTHON. As a module: Server. It listens
on a free loopback port, syncs each write to disk, and is ready about 1 s after start or SIGKILL. What cannot be had
raises Missing with the reason.
"""

import argparse
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys

from process import Missing, Program, run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VERSION = "0.7.0b3"
HOME = os.path.join(ROOT, ".cache", "servers", f"secantusdb-{VERSION}")
PYTHON = os.path.join(HOME, "bin", "python3")
INSTALL_S, ANSWER_S = 200, 2
OP_MSG = 2013


def install():
    """Make the environment if it is missing; of several processes that want to, one does."""
    os.makedirs(os.path.dirname(HOME), exist_ok=True)
    with open(HOME + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(HOME):
            return
        part = HOME + ".part"  # its programs name it in their first line: they are run by PYTHON
        shutil.rmtree(part, ignore_errors=True)
        python = shutil.which("python3")  # not the one of an environment that this may be run by
        if python is None or subprocess.run([python, "-c", "import ensurepip, venv"], stderr=subprocess.DEVNULL,
                                            check=False).returncode != 0:
            raise Missing("python3 -m venv cannot make an environment (Debian package python3-venv)")
        run([python, "-m", "venv", part], "making a virtual environment", INSTALL_S)
        run([f"{part}/bin/python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--pre",
             f"secantusdb=={VERSION}", "pymongo"], f"getting SecantusDB {VERSION} by pip", INSTALL_S)
        os.rename(part, HOME)


def hello():
    """The request by which every driver begins, as it goes over the wire."""
    body = b"\x10hello\0" + struct.pack("<i", 1) + b"\x02$db\0" + struct.pack("<i", 6) + b"admin\0"
    section = struct.pack("<IB", 0, 0) + struct.pack("<i", 4 + len(body) + 1) + body + b"\0"
    return struct.pack("<iiii", 16 + len(section), 1, 0, OP_MSG) + section


class Server(Program):
    """A server whose data and log are in `home`. Its URL stays the same until the directory is removed."""

    NAME = "MongoDB server"

    def __init__(self, home, test_commands=False):
        super().__init__(home)
        self.test_commands = test_commands

    @property
    def url(self):
        return f"mongodb://127.0.0.1:{self.port}"

    def start(self):
        """Begin or begin again, and wait until it answers."""
        options = ["--enable-test-commands"] if self.test_commands else []
        return self.launch([PYTHON, os.path.join(HOME, "bin", "secantusd-py"), "--host", "127.0.0.1",
                            "--port", str(self.port), "--storage-path", os.path.join(self.home, "data"),
                            "--sync-on-commit", "--log-level", "ERROR", *options])

    def ready(self):
        """Does it answer?"""
        try:
            with socket.create_connection(("127.0.0.1", self.port), ANSWER_S) as sock:
                sock.sendall(hello())
                head = sock.recv(16, socket.MSG_WAITALL)
                return len(head) == 16 and struct.unpack("<iiii", head)[3] == OP_MSG
        except OSError:
            return False


def main():
    parser = argparse.ArgumentParser(description="A server of the MongoDB wire protocol.")
    parser.add_argument("what", choices=["install", "start", "kill", "stop"])
    parser.add_argument("dir", nargs="?")
    parser.add_argument("--test-commands", action="store_true")
    arguments = parser.parse_args()
    if arguments.what != "install" and arguments.dir is None:
        parser.error("expected a directory")
    try:
        install()
        if arguments.what == "install":
            return 0
        server = Server(arguments.dir, arguments.test_commands)
        if arguments.what == "start":
            print(server.start().url)
        else:
            {"kill": server.kill, "stop": server.stop}[arguments.what]()
    except Missing as error:
        sys.exit(f"mongo.py: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
