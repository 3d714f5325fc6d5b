"""A `tallyd run` under measurement."""

import os
import re
import shutil
import signal
import subprocess
import time
import urllib.request

import measure

START_S, END_S = 30, 120


class Daemon:
    """In a directory of its own."""

    def __init__(self, build, directory, config):
        self.program, self.dir = os.path.join(build, "tallyd"), directory
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(self.dir)
        with open(os.path.join(self.dir, "tallyd.yaml"), "w", encoding="ascii") as file:
            file.write(config + 'http: {listen: "127.0.0.1:0"}\n')

    def start(self, stdin=subprocess.DEVNULL):
        with open(os.path.join(self.dir, "log"), "wb") as log:
            self.process = subprocess.Popen([self.program, "run", "-c", "tallyd.yaml"], cwd=self.dir, stdin=stdin,
                                            stdout=log, stderr=log)

    def said(self):
        with open(os.path.join(self.dir, "log"), encoding="utf-8", errors="replace") as log:
            return log.read()

    def check(self):
        if self.process.poll() is not None:
            tail = self.said().strip().splitlines()[-1:] or ["no message"]
            raise measure.Failed(f"the daemon ended with status {self.process.returncode}: {tail[0]}")

    def find_host(self):
        """Its address; None: it does not listen yet."""
        found = re.search(r"event=started .*listen=(\S+)", self.said())
        return found and found[1]

    def host(self):
        until = time.time() + START_S
        while not (host := self.find_host()):
            self.check()
            if time.time() > until:
                raise measure.Failed(f"the daemon did not start within {START_S} s")
            time.sleep(0.02)
        return host

    def metrics(self):
        """{name: value} of those without labels."""
        host = self.find_host()
        if not host:
            return {}
        with urllib.request.urlopen(f"http://{host}/metrics", timeout=10) as reply:
            return {name: float(value) for name, value in re.findall(r"(?m)^(\w+) (\S+)$", reply.read().decode())}

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(END_S)
        finally:
            self.process.kill()


def on_pipe(build, work, url, aggregate, store="", report="", more="", measures="hits: count"):
    """One that counts the pages of lines on standard input."""
    return Daemon(build, os.path.join(work, "daemon"),
                  f'sources: {{site: {{type: stdin, decode: [combined]}}}}\nstore: {{url: "{url}"{store}}}\n'
                  f"aggregate: {{{aggregate}}}\n"
                  f"reports: {{pages: {{by: [path], measures: {{{measures}}}{report}}}}}\n{more}")
