#!/usr/bin/env python3
"""docs/openapi.yaml names the routes and parameters that there are. tests/long/test_openapi.py asks them all."""

import json
import os
import re
import unittest
import urllib.error

from harness import ROOT, DaemonCase


def described():
    """{path: [parameter]} of the description."""
    paths, path = {}, None
    with open(os.path.join(ROOT, "docs/openapi.yaml"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("components:"):
                return paths
            if found := re.match(r"  (/\S+):$", line):
                path = found.group(1)
                paths[path] = []
            elif found := re.match(r'        - (?:name: |\$ref: "#/components/parameters/)(\w+)', line):
                paths[path].append(found.group(1))
    return paths


class DescriptionTest(DaemonCase):
    def test_every_route_is_described(self):
        with open(os.path.join(ROOT, "web/server.c"), encoding="utf-8") as file:
            routes = re.findall(r'\{"(/api/v1/\w+)",', file.read())
        self.assertGreater(len(routes), 5)
        self.assertEqual(sorted(routes), sorted(described()))

    def test_every_parameter_is_described(self):
        self.launch("--listen", "127.0.0.1:0")
        for path, parameters in described().items():
            with self.assertRaises(urllib.error.HTTPError) as refused:
                self.get(path + "?nonsense=1")
            with refused.exception as reply:
                self.assertEqual(400, reply.code)
                said = json.load(reply)["error"]
            known = re.search(r": there (?:are (.*)|is none)$", said)
            self.assertEqual(sorted(known.group(1).split(", ") if known.group(1) else []), sorted(parameters), path)
        self.stop()


if __name__ == "__main__":
    unittest.main()
