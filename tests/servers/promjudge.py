"""The judge of PromQL: the engine of Prometheus itself, as a Go module, over samples that the test gives.

It is built once, in about a minute. Its program is promjudge/main.go.
"""

import contextlib
import json
import os
import shutil
import subprocess

from process import CACHE, Missing, making, run

VERSION = "0.316.0"  # as in promjudge/go.mod; it is Prometheus 3.16
HOME = os.path.join(CACHE, f"promjudge-{VERSION}")
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "promjudge")
INSTALL_S = 900


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
    """A judge that knows `samples`: [(metric, {label: value}, [(ms, value), …]), …]"""

    def __init__(self, folder, samples):
        path = os.path.join(folder, "samples.json")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(series) + "\n" for series in samples)
        self.process = subprocess.Popen([os.path.join(HOME, "promjudge"), path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

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
