"""A real Prometheus in front of a daemon: Debian's package, or the one that TALLYD_PROMETHEUS names."""

import os
import shutil
import urllib.error
import urllib.request

from process import Missing, Program


class Prometheus(Program):
    """It reads nothing but what remote_read gives it, and scrapes nothing unless `config` says so."""

    NAME = "Prometheus"

    def __init__(self, home, config, *options):
        super().__init__(home)
        self.options = options
        with open(os.path.join(self.home, "prometheus.yml"), "w", encoding="ascii") as file:
            file.write(config)
        self.url = f"http://127.0.0.1:{self.port}"

    @staticmethod
    def binary():
        found = os.environ.get("TALLYD_PROMETHEUS") or shutil.which("prometheus")
        if not found:
            raise Missing("Prometheus is not installed: apt-get install prometheus")
        return found

    def ready(self):
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def start(self):
        return self.launch([self.binary(), f"--config.file={self.home}/prometheus.yml", f"--storage.tsdb.path={self.home}/data",
                            f"--web.listen-address=127.0.0.1:{self.port}", *self.options])
