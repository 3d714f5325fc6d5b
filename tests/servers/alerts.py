#!/usr/bin/env python3
"""What makes alerts of rules, and sends them: vmalert, as a Go module, and Debian's Alertmanager.

    tests/servers/alerts.py install    get vmalert into the cache, if it is not there yet: half a minute
"""

import os
import shutil
import sys

from process import CACHE, Missing, go_install
from prometheus import Web

VERSION = "1.130.0"  # of VictoriaMetrics: what Go 1.25 builds, as it builds FerretDB
HOME = os.path.join(CACHE, f"vmalert-{VERSION}")
INSTALL_S = 600


def install():
    go_install(HOME, f"github.com/VictoriaMetrics/VictoriaMetrics/app/vmalert@v{VERSION}", "vmalert", INSTALL_S)


def alertmanager():
    found = shutil.which("prometheus-alertmanager")
    if not found:
        raise Missing("Alertmanager is not installed: apt-get install prometheus-alertmanager")
    return found


class Alertmanager(Web):
    NAME = "Alertmanager"

    def start(self, config):
        return self.launch([alertmanager(), f"--config.file={config}", f"--storage.path={self.home}/data",
                            f"--web.listen-address=127.0.0.1:{self.port}", "--cluster.listen-address="])


class Vmalert(Web):
    NAME, READY = "vmalert", "/health"

    def start(self, rules, source, notifier):
        return self.launch([os.path.join(HOME, "vmalert"), f"-rule={rules}", f"-datasource.url={source}", f"-notifier.url={notifier}",
                            f"-httpListenAddr=127.0.0.1:{self.port}"])


def main():
    if sys.argv[1:] != ["install"]:
        print(__doc__)
        return 64
    try:
        install()
    except Missing as missing:
        sys.exit(f"alerts.py: {missing}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
