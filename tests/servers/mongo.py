#!/usr/bin/env python3
"""Servers of the MongoDB wire protocol for tests and benchmarks: each installed once into a cache.

    tests/servers/mongo.py install [--server=NAME]    get it, if it is not there yet
    tests/servers/mongo.py start DIR [--server=NAME]  start a server with its data in DIR; prints its URL
    tests/servers/mongo.py kill DIR [--server=NAME]   SIGKILL; `start DIR` again keeps URL and data
    tests/servers/mongo.py stop DIR [--server=NAME]

    secantus-py     SecantusDB's Python edition, there in seconds, and slow
    secantus        SecantusDB's Rust edition: needs cargo, and five minutes
    ferretdb        FerretDB on PostgreSQL: needs go, and three minutes
    all             of `install`: all of them

Without --server it is what TALLYD_MONGO names, or else secantus-py. As a module: install() and Server(), and for what needs pymongo
begin(). A server listens on a free loopback port, and what it acknowledged stays when it is killed. What cannot be had raises Missing
with the reason.
"""

import argparse
import os
import sys

from ferretdb import FerretDB
from process import Missing, new_home  # noqa: F401 (of the tests)
from secantus import PYTHON, SecantusPython, SecantusRust

try:
    from pymongo.errors import PyMongoError
except ImportError:
    PyMongoError = None

ERRORS = (Missing, PyMongoError) if PyMongoError else (Missing,)  # of programs that use a server
SERVERS = {"secantus-py": SecantusPython, "secantus": SecantusRust, "ferretdb": FerretDB}
CHOSEN = os.environ.get("TALLYD_MONGO") or "secantus-py"
if CHOSEN not in SERVERS:
    sys.exit(f'TALLYD_MONGO: found "{CHOSEN}", expected one of {", ".join(SERVERS)}')


def install(name=CHOSEN):
    """It, and the environment of PYTHON."""
    SecantusPython.install()
    SERVERS[name].install()


def begin(name=CHOSEN):
    """install(), and the program begins again by PYTHON where this one has no pymongo."""
    install(name)
    if PyMongoError is None:
        sys.stdout.flush()
        os.execv(PYTHON, [PYTHON, *sys.argv])


def Server(home, name=CHOSEN):
    """A server that is installed, with its data in `home`."""
    return SERVERS[name](home)


def main():
    parser = argparse.ArgumentParser(description="A server of the MongoDB wire protocol.")
    parser.add_argument("what", choices=["install", "start", "kill", "stop"])
    parser.add_argument("dir", nargs="?")
    parser.add_argument("--server", choices=[*SERVERS, "all"], default=CHOSEN)
    arguments = parser.parse_args()
    if arguments.what != "install" and (arguments.dir is None or arguments.server == "all"):
        parser.error("expected a directory, and one server")
    try:
        for name in SERVERS if arguments.server == "all" else [arguments.server]:
            install(name)
        if arguments.what == "install":
            return 0
        server = Server(arguments.dir, arguments.server)
        if arguments.what == "start":
            print(server.start().url)
        else:
            {"kill": server.kill, "stop": server.stop}[arguments.what]()
    except Missing as error:
        sys.exit(f"mongo.py: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
