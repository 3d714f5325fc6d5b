"""A judge of StatsD and Influx: Telegraf's own plugins, as a Go module. Its program is telegraf/main.go, built once in about a minute."""

import os
import shutil
import subprocess

from process import CACHE, Missing, free_ports, making, run

VERSION = "1.32.0"  # as in telegraf/go.mod
HOME = os.path.join(CACHE, f"telegraf-{VERSION}")
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "telegraf")
INSTALL_S, RUN_S = 900, 120


def install():
    with making(HOME) as part:
        if part is None:
            return
        if not shutil.which("go"):
            raise Missing("go is not installed: Telegraf needs Go 1.25 or later, which Debian 12 does not have")
        source = os.path.join(part, "source")
        shutil.copytree(SOURCE, source)
        # Not `go mod tidy`: it also wants the tests of all that Telegraf uses.
        run(["go", "-C", source, "build", "-mod=mod", "-o", os.path.join(part, "telegraf"), "."], "building Telegraf's plugins by go", INSTALL_S)
        shutil.rmtree(source)
        os.rename(part, HOME)


def gather(lines):
    """The lines of Influx that Telegraf writes of lines of StatsD, as bytes."""
    address = f"127.0.0.1:{free_ports(1)[0]}"
    done = subprocess.run([os.path.join(HOME, "telegraf"), address], input=lines + b"done:1|c\n", stdout=subprocess.PIPE,
                          check=True, timeout=RUN_S)
    return done.stdout
