"""A real Prometheus in front of a daemon: Debian's package, or the one that TALLYD_PROMETHEUS names."""

import os
import shutil
import urllib.error
import urllib.request

from process import Missing, Program


class Web(Program):
    """A program that says by HTTP when it is ready."""

    READY = "/-/ready"

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def ready(self):
        try:
            with urllib.request.urlopen(self.url + self.READY, timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False


class Prometheus(Web):
    NAME = "Prometheus"

    @staticmethod
    def binary():
        found = os.environ.get("TALLYD_PROMETHEUS") or shutil.which("prometheus")
        if not found:
            raise Missing("Prometheus is not installed: apt-get install prometheus")
        return found

    def start(self, config, *options):
        return self.launch([self.binary(), f"--config.file={os.path.abspath(config)}", f"--storage.tsdb.path={self.home}/data",
                            f"--web.listen-address=127.0.0.1:{self.port}", *options])
