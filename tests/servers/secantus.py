"""SecantusDB, a MongoDB server on WiredTiger, in both editions: ready 1 s after start or SIGKILL, and like mongod in most.

Python's is installed in seconds, has failCommand, and is slow. Rust's takes minutes to build, and is
five times as fast. Each syncs every write to disk: else Rust's loses what was acknowledged, j: true or not. They say
that they are a replica set's primary.
"""

import os
import shutil
import subprocess
import time

from process import CACHE, Missing, making, run
from wire import MongoServer, probe

PYTHON_VERSION, RUST_VERSION = "0.7.0b3", "0.5.3-beta.196"
PYTHON_HOME = os.path.join(CACHE, f"secantusdb-{PYTHON_VERSION}")
PYTHON = os.path.join(PYTHON_HOME, "bin", "python3")
PYTHON_INSTALL_S = 200
RUST_HOME = os.path.join(CACHE, f"secantus-mdb-{RUST_VERSION}")
STARTS = 3
# Its own profile optimizes across libraries, in one piece each, which takes long and which tests do not need.
QUICKLY = {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16"}
RUST_INSTALL_S = 1800  # it is half an hour's work for one core that others use, too


class SecantusPython(MongoServer):
    REPLICA_SET, FAIL_COMMAND, IS_SLOW = "secantus", True, True

    @staticmethod
    def install():
        """An environment that has pymongo besides."""
        with making(PYTHON_HOME) as part:  # its programs name it in their first line: they are run by PYTHON
            if part is None:
                return
            python = shutil.which("python3")  # not the one of an environment that this may be run by
            if python is None or subprocess.run([python, "-c", "import ensurepip, venv"], stderr=subprocess.DEVNULL,
                                                check=False).returncode != 0:
                raise Missing("python3 -m venv cannot make an environment (Debian package python3-venv)")
            run([python, "-m", "venv", part], "making a virtual environment", PYTHON_INSTALL_S)
            run([f"{part}/bin/python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--pre",
                 f"secantusdb=={PYTHON_VERSION}", "pymongo"], "getting SecantusDB by pip", PYTHON_INSTALL_S)
            os.rename(part, PYTHON_HOME)

    def start(self):
        """Begin or begin again, and wait until it answers."""
        return self.launch([PYTHON, os.path.join(PYTHON_HOME, "bin", "secantusd-py"), "--host", "127.0.0.1",
                            "--port", str(self.port), "--storage-path", os.path.join(self.home, "data"),
                            "--sync-on-commit", "--log-level", "ERROR", "--enable-test-commands"])


class SecantusRust(MongoServer):
    REPLICA_SET = "secantus"

    @staticmethod
    def install():
        with making(RUST_HOME) as part:
            if part is None:
                return
            if not shutil.which("cargo"):
                raise Missing("cargo is not installed: SecantusDB needs Rust 1.95 or later, which Debian 12 does not have")
            run(["cargo", "install", "secantus-mdb", "--version", RUST_VERSION, "--locked",
                 "--ignore-rust-version", "--root", part], "building SecantusDB by cargo", RUST_INSTALL_S, **QUICKLY)
            os.rename(part, RUST_HOME)

    def start(self):
        """Begin or begin again. After a SIGKILL it may answer, and yet fail all that uses its storage (WtError 22) until it is started
        once more, or for good."""
        for number in range(STARTS):
            if number > 0:
                print("the server cannot use its storage: it is started once more", flush=True)
                self.kill()
            self.launch([os.path.join(RUST_HOME, "bin", "secantusd-rs"), "--host", "127.0.0.1", "--port", str(self.port),
                         "--storage-path", os.path.join(self.home, "data"), "--sync-on-commit"])
            if not self.is_broken():
                return self
        raise Missing("SecantusDB cannot use its storage after a SIGKILL")

    def is_broken(self):
        answers = [self.ask(request) or b"" for request in probe(b"c%d" % time.time_ns())]
        return any(b"WiredTiger error" in answer or b"WtError" in answer for answer in answers)
