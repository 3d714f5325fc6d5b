#!/usr/bin/env python3
"""tallyd explain: each field of a line with its value and its place, what counts it, and why a line is rejected. The places are
compared with the bytes of the line itself."""

import gzip
import json
import unittest

from harness import EX_CONFIG, EX_DATAERR, EX_NOINPUT, EX_OK, EX_USAGE, Case

TIME = "[10/Oct/2000:13:55:36 -0700]"
COMBINED = f'10.0.0.1 - frank {TIME} "GET /a?b=c HTTP/1.0" 200 2326 "http://w.example/x" "Mozilla/5.0 (X11)"'
SHIFTED = f'w.example 10.0.0.1 - - {TIME} "GET /a HTTP/1.0" 200 5 "-" "Mozilla/5.0"'
CONFIG = b"""
sources:
  web: {path: "{vhost}.log", decode: [{nginx: '$remote_addr - - [$time_local] "$request" $status $body_bytes_sent $request_time'}]}
  box: {path: box.json, decode: ["json:/message", combined], fields: {level: /level}}
  topic: {type: kafka, topic: t, decode: [json], time: broker}
kafka: {brokers: "127.0.0.1:1"}
reports:
  pages: {by: [vhost, path], measures: {hits: count, seconds: sum(duration), worst: max(duration)}}
  errors: {by: [status_class, level], where: ["status>=400", "path=/a*"]}
"""


class Explain(Case):
    def explain(self, *arguments, status=EX_OK, **options):
        """The JSON that it prints for each event or reject."""
        return [json.loads(line) for line in self.tallyd("explain", "--json", *arguments, status=status, **options).splitlines()]

    def check_places(self, line, found):
        """Each value stands where it is said to stand. Returns the values by name."""
        for field in found["fields"]:
            self.assertEqual(line[field["from"] - 1:field["to"]], field["value"], field)
        return {field["name"]: field["value"] for field in found["fields"]}

    def test_fields_of_a_line_stand_where_it_says(self):
        found, = self.explain(COMBINED)
        self.assertEqual({"host": "10.0.0.1", "user": "frank", "request": "GET /a?b=c HTTP/1.0", "method": "GET", "target": "/a?b=c",
                          "path": "/a", "protocol": "HTTP/1.0", "status": "200", "bytes": "2326", "referrer": "http://w.example/x",
                          "agent": "Mozilla/5.0 (X11)"}, self.check_places(COMBINED, found))
        self.assertEqual(["2000-10-10T20:55:36.000Z", [{"name": "auto", "from": 1, "to": len(COMBINED)}]],
                         [found["time"], found["steps"]])
        self.assertEqual([{"name": "site", "counts": True, "series": {}, "measures": {"hits": 1, "bytes": 2326}},
                          {"name": "pages", "counts": True, "series": {"path": "/a"}, "measures": {"hits": 1, "bytes": 2326}}],
                         found["reports"])
        said = self.tallyd("explain", COMBINED)
        self.assertRegex(said, r"(?m)^  path +/a +columns 52 to 53$")
        self.assertRegex(said, r"(?m)^  report pages counts it as path=/a: hits 1, bytes 2326$")

    def test_what_is_explained_is_what_an_import_counts(self):
        self.write("tallyd.yaml", CONFIG)
        lines = [f'10.0.0.{i} - - {TIME} "GET /{path} HTTP/1.0" {status} 5 0.{i}25'.encode() for i, (path, status) in
                 enumerate([("a", 200), ("abc", 404), ("b", 500), ("a", 503)], 1)]
        self.write("shop.log", b"\n".join(lines) + b"\n")
        found = self.explain("-c", "tallyd.yaml", "--file", "shop.log")
        pages = {}
        for one in found:
            report = one["reports"][0]
            key = report["series"]["vhost"], report["series"]["path"]
            pages[key] = pages.get(key, 0) + report["measures"]["seconds"]
        self.tallyd("import", "-c", "tallyd.yaml", "shop.log")
        rows = self.query("pages", "--measure", "seconds", "--top", "9", span=("2000-10-10", "2000-10-11"))
        self.assertEqual({(row["vhost"], row["path"]): float(row["value"]) for row in rows}, pages)
        self.assertEqual([False, True, False, True], [one["reports"][1]["counts"] for one in found])
        self.assertEqual(["status>=400", "path=/a*"], [found[i]["reports"][1]["fails"] for i in (0, 2)])
        vhost = [field for field in found[0]["fields"] if field["name"] == "vhost"]
        self.assertEqual([{"name": "vhost", "value": "shop", "made_by": "path"}], vhost)

    def test_a_reject_has_its_column_and_its_reason(self):
        found, = self.explain(SHIFTED, status=EX_DATAERR)
        self.assertEqual(["reject", 1, 20, "identity"], [found[name] for name in ("result", "step", "column", "reason")])
        said = self.tallyd("explain", SHIFTED, status=EX_DATAERR).splitlines()
        marked = next(i for i, line in enumerate(said) if line.strip() == "^")
        self.assertEqual(SHIFTED.index("- -"), said[marked].index("^") - 4)
        self.assertTrue(said[marked - 1].startswith("    " + SHIFTED[:60]))

    def test_a_reject_names_the_format_that_would_fit(self):
        pair = {"time": "2020-01-01T00:00:00Z", "path": "/a"}
        for steps, line, wanted in [
                ("auto", SHIFTED, {"decode": 'apache:%v %h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"',
                                   "note": "if it begins with the server's name"}),
                ("auto", "<34>Oct 11 22:14:15 w nginx: " + COMBINED, {"decode": "syslog,combined"}),
                ("auto", json.dumps(pair), {"decode": "json"}), ("json", COMBINED, {"decode": "combined"}),
                ("combined", json.dumps({"message": COMBINED}), {"decode": "json:/message,combined"}),
                ("json", json.dumps({"date": pair["time"]}), {"decode": "json", "time": "/date"}),
                ("auto", "odd", None), ("json", json.dumps({**pair, "status": "x"}), None),
                ("json", COMBINED.replace("2000", "2999"), {"decode": "combined"}), ("combined", COMBINED.replace("2000", "2999"), None)]:
            found, = self.explain("--decode", steps, line, status=EX_DATAERR)
            self.assertEqual(wanted, found.get("fits"), line)
            said = self.tallyd("explain", "--decode", steps, line, status=EX_DATAERR)
            self.assertEqual(wanted is not None, f"  would fit: {(wanted or {}).get('decode')}" in said)
            if wanted is not None and "time" not in wanted and "2999" not in line:  # then it does fit
                self.explain("--decode", wanted["decode"], line)

    def test_steps_that_unwrap(self):
        line = "<34>Oct 11 22:14:15 w nginx: " + COMBINED
        found, = self.explain("--decode", "syslog,combined", line)
        self.check_places(line, found)
        self.assertEqual([1, 30], [step["from"] for step in found["steps"]])
        rejected, = self.explain("--decode", "syslog,combined", "<34>Oct 11 22:14:15 w nginx: " + SHIFTED.replace("GET", '"'),
                                 status=EX_DATAERR)
        self.assertEqual([2, 1], [rejected["step"], rejected["column_of_step"]])

        self.write("tallyd.yaml", CONFIG)
        line = json.dumps({"level": "wa\u00e4rn", "message": COMBINED}, ensure_ascii=True)
        found, = self.explain("-c", "tallyd.yaml", "--source", "box", line)
        fields = {field["name"]: field for field in found["fields"]}
        self.assertEqual({"name": "host", "value": "10.0.0.1", "step": 2, "from": 1, "to": 8}, fields["host"])
        self.assertEqual({"name": "level", "value": "wa\u00e4rn", "made_by_step": 2}, fields["level"])
        self.assertEqual({"name": "combined", "made_by_step": 1}, found["steps"][1])
        self.assertIn("made by step 1", self.tallyd("explain", "-c", "tallyd.yaml", "--source", "box", line))

    def test_a_message_may_be_several_events(self):
        line = '[{"time":"2020-01-01T00:00:00Z","path":"/a"},{"time":"2020-01-01T00:00:00Z","status":"x"}]'
        event, reject = self.explain("--decode", "json", line, status=EX_DATAERR)
        self.assertEqual([1, "event", 2, "reject"], [event["part"], event["result"], reject["part"], reject["result"]])
        self.check_places(line, event)
        self.assertEqual('"x"', line[reject["column"] - 1:][:3])

    def test_the_time_of_a_message_is_now_and_the_future_is_rejected(self):
        self.write("tallyd.yaml", CONFIG)
        found, = self.explain("-c", "tallyd.yaml", "--source", "topic", '{"path":"/a"}')
        self.assertGreater(found["time"], "2026")
        found, = self.explain(COMBINED.replace("2000", "2999"), status=EX_DATAERR)
        self.assertEqual("future", found["reason"])

    def test_lines_of_a_file_and_of_standard_input(self):
        self.write("access.log", (COMBINED + "\n").encode() * 30)
        self.write("access.log.gz", gzip.compress((COMBINED + "\n").encode() * 30))
        for name in "access.log", "access.log.gz":
            self.assertEqual(list(range(1, 11)), [one["line"] for one in self.explain("--file", name)])
            self.assertEqual(2, len(self.explain("-f", name, "-n", "2")))
        self.assertEqual(30, len(self.explain(input=self.read("access.log"))))
        self.assertEqual(1, len(self.explain(input=COMBINED.encode())))
        self.assertEqual([], self.explain(input=b""))
        statuses = [one["result"] for one in self.explain(input=b"odd\n" + COMBINED.encode(), status=EX_DATAERR)]
        self.assertEqual(["reject", "event"], statuses)

    def test_what_is_wrong_to_ask(self):
        self.write("access.log", b"x\n")
        for arguments, status, said in [(["--file", "nothing.log"], EX_NOINPUT, "nothing.log"),
                                        (["-c", "nothing.yaml", "x"], EX_NOINPUT, "nothing.yaml"),
                                        (["--source", "none", "x"], EX_USAGE, "no source none"),
                                        (["a", "b"], EX_USAGE, "single quotes"),
                                        (["access.log"], EX_USAGE, "say --file"),
                                        (["--file", "access.log", "x"], EX_USAGE, "a LINE, or"),
                                        (["--lines", "0", "x"], EX_USAGE, "--lines"),
                                        (["--decode", "apache:%h%l", "x"], EX_USAGE, "nothing between")]:
            self.tallyd("explain", *arguments, status=status)
            self.assertIn(said, self.err)
        self.write("bad.yaml", b"sources: 3\n")
        self.tallyd("explain", "-c", "bad.yaml", "x", status=EX_CONFIG)

    def test_hostile_bytes_do_nothing_to_a_terminal(self):
        hostile = b"\x1b[31m\x07\x00\x7f\xc2\x9b31m\xe2\x80\xae\xff\xc3\t\r"
        for line in (COMBINED.encode().replace(b"Mozilla", hostile), COMBINED.encode().replace(b"200", hostile), hostile,
                     b'{"time":"2020-01-01T00:00:00Z","path":"/\\u001b[31m\\u202e"}'):
            for steps in "auto", "json", "logfmt", "csv:time,host", "syslog,auto":
                out = self.tallyd("explain", "--decode", steps, input=line, status=None)
                self.assertEqual([], [c for c in out if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c in "\u202e\ufffd"])
                for row in self.tallyd("explain", "--json", "--decode", steps, input=line, status=None).splitlines():
                    json.loads(row)
                    self.assertFalse([c for c in row if ord(c) < 32 or ord(c) == 127])
        self.assertIn("\\x1b[31m", self.tallyd("explain", input=COMBINED.encode().replace(b"Mozilla", hostile)))


if __name__ == "__main__":
    unittest.main()
