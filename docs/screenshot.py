#!/usr/bin/env python3
"""Takes the README's picture of the page, docs/page.png: `docs/screenshot.py [FILE]`.

A daemon counts two hours of made-up traffic and then goes on live; the picture is taken once it has caught up.
Needs chromium, build/tallyd and build/traffic.
"""

import os
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
from browser import Browser  # noqa: E402

TIMEOUT_S = 120
RATE = 100
CONFIG = """\
sources: {access: {type: stdin, decode: [combined]}}
reports: {site: {}, pages: {by: [path]}, status: {by: [status_class]}}
"""
CAUGHT_UP = (f"Number(document.getElementById('rate').textContent.replace(',', '')) < {2 * RATE} && "
             "document.querySelectorAll('#classes li').length > 2 && document.querySelectorAll('#top a').length > 9")


def launch(directory):
    """The processes of the producer and the daemon, and the daemon's URL."""
    with open(f"{directory}/tallyd.yaml", "w", encoding="utf-8") as config:
        config.write(CONFIG)
    traffic = subprocess.Popen([f"{ROOT}/build/traffic", "--live", "--rate", str(RATE), "--backfill", "7200"],
                               stdout=subprocess.PIPE)
    with open(f"{directory}/log", "w", encoding="utf-8") as log:
        daemon = subprocess.Popen([f"{ROOT}/build/tallyd", "run", "-c", "tallyd.yaml", "--listen", "127.0.0.1:0"],
                                  cwd=directory, stdin=traffic.stdout, stderr=log)
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end and daemon.poll() is None:
        with open(f"{directory}/log", encoding="utf-8") as log:
            found = re.search(r"event=started .*listen=(\S+)", log.read())
        if found:
            return traffic, daemon, f"http://{found.group(1)}/"
        time.sleep(0.05)
    raise SystemExit("tallyd did not start")


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else f"{ROOT}/docs/page.png"
    with tempfile.TemporaryDirectory(prefix="tallyd-page-") as directory:
        traffic, daemon, url = launch(directory)
        browser = Browser(f"{directory}/browser")
        try:
            page = browser.open(url, width=1100, height=1000)
            page.wait_for(CAUGHT_UP)
            page.screenshot(path)
        finally:
            browser.close()
            for process in (traffic, daemon):
                process.kill()
                process.wait()
    print(f"{path}: {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
