"""A judge of StatsD and Influx: Telegraf's own plugins, as a Go module. It is built once, in about a minute, and again if its program
telegraf/main.go changes."""

import os
import subprocess

from process import free_ports, go_build, go_home

VERSION = "1.32.0"  # as in telegraf/go.mod
HOME = go_home("telegraf", VERSION)
INSTALL_S, RUN_S = 900, 120


def install():
    # Not `go mod tidy`: it also wants the tests of all that Telegraf uses.
    go_build("telegraf", VERSION, "Telegraf's plugins", INSTALL_S, tidy=False)


def gather(lines):
    """The lines of Influx that Telegraf writes of lines of StatsD, as bytes."""
    address = f"127.0.0.1:{free_ports(1)[0]}"
    done = subprocess.run([os.path.join(HOME, "telegraf"), address], input=lines + b"done:1|c\n", stdout=subprocess.PIPE,
                          check=True, timeout=RUN_S)
    return done.stdout
