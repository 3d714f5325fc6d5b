"""The judge of PromQL: the engine of Prometheus itself, as a Go module, over samples that the test gives, or over those that a
daemon gives by remote_read.

It is built once, in some minutes, and again if its program promjudge/main.go changes.
"""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess

from process import CACHE, Missing, making, run

VERSION = "0.316.0"  # as in promjudge/go.mod; it is Prometheus 3.16
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "promjudge")
INSTALL_S = 900


def home():
    """A folder of this version and program."""
    with open(os.path.join(SOURCE, "main.go"), "rb") as file:
        return os.path.join(CACHE, f"promjudge-{VERSION}-{hashlib.sha256(file.read()).hexdigest()[:8]}")


HOME = home()


def install():
    with making(HOME) as part:
        if part is None:
            return
        if not shutil.which("go"):
            raise Missing("go is not installed: the judge of PromQL needs Go 1.26 or later, which Debian 12 does not have")
        source = os.path.join(part, "source")
        shutil.copytree(SOURCE, source)
        run(["go", "-C", source, "mod", "tidy"], "getting Prometheus by go", INSTALL_S, GOFLAGS="")
        run(["go", "-C", source, "build", "-o", os.path.join(part, "promjudge"), "."], "building the judge by go", INSTALL_S)
        shutil.rmtree(source)
        os.rename(part, HOME)


class Judge:
    """A judge that reads `source`: a file of samples, or the URL of a remote_read."""

    def __init__(self, source):
        self.process = subprocess.Popen([os.path.join(HOME, "promjudge"), source], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    @classmethod
    def of_samples(cls, folder, samples):
        """`samples`: [(metric, {label: value}, [(ms, value), …]), …]; a value is a number, or a histogram as main.go has it."""
        path = os.path.join(folder, "samples.json")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(series) + "\n" for series in samples)
        return cls(path)

    def ask(self, query, start_ms, end_ms, step_ms):
        """{"type", "result": [{"metric", "values"}]}, or {"error"}; step 0: at one instant."""
        question = {"query": query, "start": start_ms, "end": end_ms, "step": step_ms}
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
