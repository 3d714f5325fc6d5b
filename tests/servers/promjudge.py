"""The judge of PromQL: the engine of Prometheus itself, as a Go module, over samples that the test gives, or over those that a
daemon gives by remote_read.

It is built once, in some minutes, and again if its program promjudge/main.go changes.
"""

import contextlib
import json
import os
import subprocess

from process import go_build, go_home

VERSION = "0.316.0"  # as in promjudge/go.mod; it is Prometheus 3.16
HOME = go_home("promjudge", VERSION)
INSTALL_S = 900


def install():
    go_build("promjudge", VERSION, "the judge of PromQL", INSTALL_S)


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
