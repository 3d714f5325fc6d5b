"""postgresql-hll, PostgreSQL's extension for distinct counts by HyperLogLog: Debian packages in a folder, as postgres.py gets them.

It is asked by PostgreSQL's single-user mode, so there is no server.
"""

import os
import re
import shutil

import postgres
from process import CACHE, Missing, making, new_home, run

PACKAGE = "postgresql-18-hll"
HOME = os.path.join(CACHE, f"{PACKAGE}-{postgres.RELEASE}")
ASK_S = 300


def run_single(data, statements):
    """The values of all rows, as texts."""
    said = run(postgres.unprivileged(os.path.join(HOME, postgres.BIN, "postgres"), "--single", "-D", data, "postgres"),
               "asking postgresql-hll", ASK_S, given="\n".join(statements) + "\n")
    if "ERROR:" in said:
        raise Missing(f"postgresql-hll: {said[said.index('ERROR:'):].splitlines()[0]}")
    return re.findall(r'(?m)^\s*\d+: .*? = "(.*?)"\t\(typeid', said)


def install():
    with making(HOME) as part:
        if part is not None:
            postgres.get_packages(part, PACKAGE)
            postgres.make_runnable(part)
            os.rename(part, HOME)


def ask(statements):
    """Run statements in an empty database that has the extension. Returns the values of all rows, as texts."""
    data = new_home("tallyd-hll-")
    try:
        postgres.give(data)
        run(postgres.unprivileged(os.path.join(HOME, postgres.BIN, "initdb"), "-D", data, "-U", "postgres", "--no-locale", "-E", "UTF8"),
            "making a PostgreSQL database", ASK_S)
        return run_single(data, ["CREATE EXTENSION hll", *statements])
    finally:
        shutil.rmtree(data)


def registers(text):
    """The registers of a value of the extension, which is written without explicit and sparse forms: STORAGE.md of its source."""
    data = bytes.fromhex(text.removeprefix("\\x"))
    if data[0] >> 4 != 1 or data[0] & 15 not in (1, 4):
        raise Missing(f"postgresql-hll wrote a value of another form, {data[:3].hex()}")
    width, count, body = (data[1] >> 5) + 1, 1 << (data[1] & 31), data[3:]
    if data[0] & 15 == 1:  # it is empty
        return [0] * count
    bits = int.from_bytes(body, "big") >> (len(body) * 8 - width * count)
    return [bits >> width * (count - 1 - number) & ((1 << width) - 1) for number in range(count)]
