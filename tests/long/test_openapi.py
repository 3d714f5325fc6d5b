#!/usr/bin/env python3
"""The API against what docs/openapi.yaml says of it: Schemathesis makes requests from the description, with every
kind of right and wrong value, and holds the answers against it. No answer may be a 5xx.

The description is given to it as it is, which mostly meets refusals, and again with the names that the daemon knows.
"""

import os
import shutil
import subprocess
import sys
import unittest

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), name)
                for name in ("system", "servers")]
from harness import ROOT, DaemonCase, dice, traffic  # noqa: E402
from process import CACHE, Missing, making, run  # noqa: E402

VERSION = "4.32.5"
HOME = os.path.join(CACHE, f"schemathesis-{VERSION}")
INSTALL_S, FUZZ_S = 300, 900
EXAMPLES = os.environ.get("TALLYD_ROUNDS", "200")
CHECKS = ("not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
          "response_schema_conformance")
CONFIG = b"""sources: {access: {path: access.log}}
reports:
  site: {measures: {hits: count, most: max(bytes), typical: mean(bytes)}}
  pages: {by: [path]}
  clients: {by: [host, method, status], series_max: 50}
http: {listen: '127.0.0.1:0'}
query: {series_max: 30}
"""
# Texts that follow the name of a parameter, and its schema in their place, so that most questions are answered.
STRING = "schema: {type: string}"
NARROWER = {
    "report": (STRING, "schema: {enum: [site, pages, clients]}"),
    "measure": (STRING, "schema: {enum: [hits, all]}"),
    "where": ('items: {type: string, pattern: "^[^=<>!]+(=|!=|<|<=|>|>=)[^=<>]+$"}',
              "items: {enum: [path=/*, path!=/about, 'method=G*|POST', status>=300, 'status<abc']}"),
    "filter": ('items: {type: string, pattern: "^[^=]*="}', "items: {enum: [path=/, path=/about, method=GET, status=200]}"),
    "from": (STRING, 'schema: {enum: ["-1h", "-90d", "2026-01-05", "2026-01-05T10:05", "1767571200", "1970-01-01"]}'),
    "to": ("schema: {type: string, default: now}", 'schema: {enum: [now, "2026-01-06", "2026-01-05T12:00", "9999-12-31"]}'),
    "dimension": (STRING, "schema: {enum: [path, host, method, status]}"),
    "limit": ("schema: {type: integer, minimum: 1, maximum: 100000}", "schema: {type: integer, minimum: 1, maximum: 30}"),
}


def install():
    """An environment with Schemathesis."""
    with making(HOME) as part:
        if part is None:
            return
        run([shutil.which("python3") or sys.executable, "-m", "venv", part], "making a virtual environment", INSTALL_S)
        run([f"{part}/bin/python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
             f"schemathesis=={VERSION}"], "getting Schemathesis by pip", INSTALL_S)
        os.rename(part, HOME)


def description():
    with open(os.path.join(ROOT, "docs/openapi.yaml"), encoding="utf-8") as file:
        return file.read()


def narrowed(text):
    for name, (wide, narrow) in NARROWER.items():
        head, _, rest = text.partition(f"name: {name}\n")
        before, found, after = rest.partition(wide)
        assert found, f"docs/openapi.yaml: {name} has no {wide}"
        text = f"{head}name: {name}\n{before}{narrow}{after}"
    return text


class FuzzTest(DaemonCase):
    def fuzz(self, text):
        self.write("openapi.yaml", text.encode())
        seed = str(dice().randrange(2 ** 32))
        python = os.path.join(HOME, "bin", "python3")
        argv = [python, "-m", "schemathesis.cli", "run", self.path("openapi.yaml"), "--url", self.url, "--seed", seed,
                "--max-examples", EXAMPLES, "--checks", CHECKS, "--request-timeout", "30", "--exclude-path",
                "/api/v1/stream", "--no-color"]
        done = subprocess.run(argv, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=FUZZ_S, check=False)
        said = done.stdout.decode(errors="replace")
        self.assertEqual(0, done.returncode, said[-20000:])
        print(said[-2000:])

    def test_answers_are_as_described(self):
        install()
        self.write("tallyd.yaml", CONFIG)
        self.write("access.log", traffic(20000))
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(20000)
        self.fuzz(description())
        self.fuzz(narrowed(description()))
        self.assertIsNone(self.process.poll())
        self.assertEqual("ok\n", self.get("/healthz"))
        self.stop()


if __name__ == "__main__":
    try:
        unittest.main()
    except Missing as error:
        print(error)
        sys.exit(77)
