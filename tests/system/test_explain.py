#!/usr/bin/env python3
"""tallyd explain: each field of a line with its value and its place, what counts it, and why a line is rejected. The places are
compared with the bytes of the line itself."""

import gzip
import json
import unittest

from harness import EX_CONFIG, EX_DATAERR, EX_NOINPUT, EX_OK, EX_USAGE, Case, DaemonCase

TIME = "[10/Oct/2000:13:55:36 -0700]"
COMBINED = f'10.0.0.1 - frank {TIME} "GET /a?b=c HTTP/1.0" 200 2326 "http://w.example/x" "Mozilla/5.0 (X11)"'
SHIFTED = f'w.example 10.0.0.1 - - {TIME} "GET /a HTTP/1.0" 200 5 "-" "Mozilla/5.0"'
REST, AGENT = f'{TIME} "GET /a HTTP/1.0" 200 5', '"-" "Mozilla/5.0"'
V, XFF = "apache:%v %h %l %u %t \"%r\" %>s %b", "apache:%{X-Forwarded-For}i %h %l %u %t \"%r\" %>s %b"
BEHIND = ' "%{Referer}i" "%{User-Agent}i"'
NGINX = 'nginx:$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'
CADDY = '{"level":"info","ts":1646861401.52,"logger":"http.log.access","request":{"remote_ip":"::1","method":"GET","uri":"/a"},"status":200}'
TRAEFIK_JSON = '{"ClientHost":"10.0.0.5","RequestMethod":"GET","RequestPath":"/api?x","DownstreamStatus":200,"time":"2026-03-01T10:00:00Z"}'
HAPROXY = ("Feb  6 12:14:14 w haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- "
           '1/1/1/1/0 0/0 "GET / HTTP/1.1"')
ELB = '2014-02-15T23:39:43.945958Z lb 10.0.0.2:2817 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 29 "GET http://a.example:80/ HTTP/1.1"'
S3 = '79a59 b [06/Feb/2019:00:00:38 +0000] 10.0.0.3 79a59 3E57 REST.GET - "GET /b?v HTTP/1.1" 200 - 113 - 7 - "-" "S3Console/0.4" -'
TRAEFIK = f'10.0.0.5 - - {REST} {AGENT} 4 "web@docker" "http://10.0.0.9" 0ms'

# How it is decoded, the line; column and reason of the reject, None if it is read; the format that fits better.
ODD = [
    # something before the host
    ("auto", f"w.example 10.0.0.1 - - {REST} {AGENT}", 20, "identity", V + BEHIND),
    ("combined", f"w.example 10.0.0.1 - - {REST} {AGENT}", None, None, V + BEHIND),
    ("common", f"w.example 10.0.0.1 - - {REST}", None, None, V),
    ("combined", f"w.example localhost - - {REST} {AGENT}", None, None, V + BEHIND),
    ("combined", f"w.example:80 10.0.0.1 - - {REST} {AGENT}", None, None, "vhost_combined"),
    ("vhost_combined", f"10.0.0.1 - - {REST} {AGENT}", 9, "host", "combined"),
    ("vhost_combined", f"w.example 10.0.0.1 - - {REST} {AGENT}", 10, "host", V + BEHIND),
    ("combined", f"10.1.1.1, 10.2.2.2 10.0.0.1 - - {REST} {AGENT}", None, None, XFF + BEHIND),
    ("auto", f"10.1.1.1, 10.2.2.2 10.0.0.1 - - {REST} {AGENT}", 20, "identity", XFF + BEHIND),
    ("auto", f"0.120 10.0.0.1 - - {REST} {AGENT}", 16, "identity", None),
    ("auto", f"- 10.0.0.1 - - {REST} {AGENT}", 12, "identity", None),
    ("combined", f"{TIME} 10.0.0.1 - - {REST[30:]} {AGENT}", 39, "time", None),
    # a logname, a user
    ("auto", f"10.0.0.1 10.0.0.2 - {REST} {AGENT}", 10, "identity", None),
    ("combined", f"10.0.0.1 frank - {REST} {AGENT}", None, None, None),
    ("combined", f"10.0.0.1 - anna b {REST} {AGENT}", None, None, None),
    # behind
    ("combined", f"10.0.0.1 - - {REST} {AGENT} 0.123", 85, "trailing", NGINX + " $request_time"),
    ("combined", f'10.0.0.1 - - {REST} {AGENT} "-"', 85, "trailing", "auto"),
    ("common", f"10.0.0.1 - - {REST} {AGENT}", 67, "trailing", "combined"),
    ("combined", f"10.0.0.1 - - {REST}", 66, "referrer", "common"),
    ("combined", TRAEFIK, 85, "trailing", "traefik"),
    # within
    ("combined", f'10.0.0.1 - - {TIME} "w.example" "GET /a HTTP/1.0" 200 5 {AGENT}', 55, "status", None),
    ("combined", f'10.0.0.1 - - {TIME} "GET /a HTTP/1.0" 200', 64, "bytes", None),
    ("combined", f'10.0.0.1 - - {TIME} "GET /a HTTP/1.0" 5 200 {AGENT}', 62, "status", None),
    ("combined", f'10.0.0.1 - - {TIME} "GET /a HTTP/1.0" 2000 200 {AGENT}', 64, "status", None),
    ("combined", f'10.0.0.1 - - {TIME} GET /a HTTP/1.0 200 5 {AGENT}', 43, "request", None),
    ("combined", f'10.0.0.1 - - {TIME} "GET /a HTTP/1.0 200 5 {AGENT}', 67, "status", None),
    ("combined", f'10.0.0.1 - - [2000-10-10T13:55:36-07:00] "GET / HTTP/1.0" 200 5 {AGENT}', 17, "time", None),
    ("combined", f'10.0.0.1 - - [10/10/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 5 {AGENT}', 21, "time", None),
    ("combined", f'"10.0.0.1" - - {REST} {AGENT}', 1, "host", None),
    ("combined", f"2026-01-05T10:00:01Z stdout F 10.0.0.1 - - {REST} {AGENT}", None, None, "cri,combined"),
    # other servers' lines
    ("combined", HAPROXY, 5, "identity", "haproxy"),
    ("combined", ELB, 46, "time", "elb"),
    ("combined", "h2 " + ELB + ' "curl/7" - - arn "Root=1"', 35, "time", "alb"),
    ("combined", S3, 9, "identity", "s3"),
    ("auto", CADDY, 132, "identity", "caddy"), ("combined", TRAEFIK_JSON, 124, "identity", "traefik_json"),
    ("auto", CADDY.replace("uri", "url"), 132, "identity", "json"),
    # other steps
    ("auto", "cpu,host=a usage=0.5 1422568543702900257", 41, "time", "influx"),
    ("auto", 'time=2026-03-01T10:00:00Z level=info msg="x y" path=/a', 45, "time", "logfmt"),
    ("auto", "#Fields: date time c-ip cs-uri-stem sc-status", 20, "time", "w3c"),
    ("json", '{"time":"yesterday","path":"/a"}', 9, "time", None),
    ("json", '{"path":"/a"}', 1, "no_time", None),
    ("logfmt", f"10.0.0.1 - - {REST} {AGENT}", 43, "logfmt", "combined"),
    ("syslog,combined", f"10.0.0.1 - - {REST} {AGENT}", 1, "syslog", "combined"),
    ("csv:time,path", f"10.0.0.1 - - {REST} {AGENT}", 84, "columns", "combined"),
    ("w3c", f"10.0.0.1 - - {REST} {AGENT}", 1, "fields", "combined"),
    ("influx", f"10.0.0.1 - - {REST} {AGENT}", 11, "influx", "combined"),
    ("haproxy", f"10.0.0.1 - - {REST} {AGENT}", 1, "regex", "combined"),
]
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


# By step: a line that it rejects. Together they have most reasons.
REJECTED = {"w3c:date time cs-uri-stem": "2000-10-10 25:00:00 /a", "logfmt": "time=now path=/a", "csv:time,path": "2000-10-10T20:55:36Z",
            "tsv:time,path": "now\t/a", r"regex:(?<host>\S+) (?<time>\S+)": "odd", "haproxy": "odd", "alb": ELB, "elb": "odd " + ELB,
            "s3": S3.replace("Feb", "Fxb"), "traefik": COMBINED, "caddy": '{"ts":"now"}', "traefik_json": '{"time":"now"}', "influx": "cpu usage=x 1",
            "otlp": '{"resourceLogs":1}', "metric": '{"name":"a","ts":1}', "json": "[]x", "auto": SHIFTED, "syslog,combined": "<34>x",
            'apache:%h %l %u %t "%r" %>s %b %D': f"10.0.0.1 - - {REST} fast", "nginx:main": COMBINED, "combined": f"10.0.0.1 - - {REST}"}


class Samples(DaemonCase):
    def test_samples_have_the_words_of_explain(self):
        config = "reports: {all: {}}\naggregate: {flush: 100ms}\nsources:\n"
        for i, step in enumerate(REJECTED):
            chain = ", ".join(json.dumps(part) for part in step.split(",")) if step.startswith("syslog") else json.dumps(step)
            name, _, argument = step.partition(":")
            if argument:
                chain = "{%s: %s}" % (name, json.dumps(argument))
            config += f"  s{i}: {{path: s{i}.log, decode: [{chain}]}}\n"
            self.write(f"s{i}.log", b"")
        self.write("tallyd.yaml", config.encode())
        self.launch("-c", "tallyd.yaml", "--listen", "127.0.0.1:0")
        reasons = set()
        for i, (step, line) in enumerate(REJECTED.items()):
            self.append(f"s{i}.log", line.encode() + b"\n")
            self.wait_for_consumed(i + 1)
            said = self.tallyd("explain", "-c", "tallyd.yaml", "--source", f"s{i}", "--json", "--", line, status=EX_DATAERR)
            wanted = json.loads(said.splitlines()[0])
            rejects = json.loads(self.get("/api/v1/rejects"))
            samples = {sample["line"]: (one["reason"], one["help"], sample["column"], (sample["fits"] or "").split(" (if")[0].split(", time")[0])
                       for one in rejects["reasons"] for sample in one["samples"] if sample["source"].endswith(f"s{i}.log")}
            self.assertEqual({line: (wanted["reason"], wanted["help"], wanted["column"], wanted.get("fits", {}).get("decode", ""))}, samples, step)
            reasons.add(wanted["reason"])
        self.assertGreater(len(reasons), 8, reasons)


class Moved(DaemonCase):
    """`combined` reads a line with another word for the host. The daemon and the import say so at the first line of each file."""

    def test_a_daemon_and_an_import_say_it(self):
        moved = f"w.example 10.0.0.1 - - {REST} {AGENT}\n".encode()
        self.write("moved.log", moved * 3)
        self.write("good.log", COMBINED.encode() + b"\n")
        self.write("odd.log", f"10.0.0.1 frank - {REST} {AGENT}\n".encode())
        self.write("tallyd.yaml", b"reports: {all: {}}\naggregate: {flush: 100ms}\n"
                   b"sources: {all: {path: [moved.log, good.log, odd.log], decode: [combined]}}\n")
        self.launch("-c", "tallyd.yaml", "--listen", "127.0.0.1:0")
        self.wait_for_consumed(5)
        told = [line for line in self.read("log").decode().splitlines() if "event=fields_moved" in line]
        self.assertEqual(1, len(told), told)
        self.assertIn('moved.log" decode=combined fits="apache:%v %h', told[0])
        for name, is_moved in (("moved.log", True), ("good.log", False), ("odd.log", False)):
            self.tallyd("import", "--store", f"sqlite:{name}.db", "--decode", "combined", name)
            self.assertEqual(is_moved, "apache:%v %h" in self.err, (name, self.err))


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
                ("auto", "odd", None), ("json", json.dumps({**pair, "value": "x"}), None),
                ("json", COMBINED.replace("2000", "2999"), {"decode": "combined"}), ("combined", COMBINED.replace("2000", "2999"), None)]:
            found, = self.explain("--decode", steps, line, status=EX_DATAERR)
            self.assertEqual(wanted, found.get("fits"), line)
            said = self.tallyd("explain", "--decode", steps, line, status=EX_DATAERR)
            self.assertEqual(wanted is not None, f"  would fit: {(wanted or {}).get('decode')}" in said)
            if wanted is not None and "time" not in wanted and "2999" not in line:  # then it does fit
                self.explain("--decode", wanted["decode"], line)

    def test_odd_lines(self):
        """A line is read, or refused with a column and a reason; and a format is named where one fits, also if what was read is moved."""
        for steps, line, column, reason, fits in ODD:
            found = self.explain("--decode", steps, "--", line, status=EX_DATAERR if reason else EX_OK)[0]
            self.assertEqual((column, reason, fits), (found.get("column"), found.get("reason"), found.get("fits", {}).get("decode")),
                             (steps, line))

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

    def test_totals_are_named_and_not_added_up(self):
        point = {"timeUnixNano": "1577836800000000000", "startTimeUnixNano": "1577836700000000000", "asInt": "5"}
        sums = {"aggregationTemporality": 2, "isMonotonic": True, "dataPoints": [point]}
        line = json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "m", "sum": sums}]}]}]})
        self.write("tallyd.yaml", "kafka: {brokers: 'localhost:1'}\nsources: {box: {type: kafka, decode: [{otlp: totals}]}}\nreports:\n"
                   "  m: {by: [name], measures: {all: sum(value), total: last(value), most: max(value)}}\n".encode())
        self.assertIn("step 1: otlp:totals reads", self.tallyd("explain", "-c", "tallyd.yaml", line))
        noted = [line for line in self.tallyd("check", "-c", "tallyd.yaml").splitlines() if "total" in line]
        self.assertEqual(["note: reports.m.measures.all: sum(value) counts a total of sources.box again with each sample; "
                          "last(value) keeps it"], noted)

    def test_a_message_may_be_several_events(self):
        line = '[{"time":"2020-01-01T00:00:00Z","path":"/a"},{"time":"2020-01-01T00:00:00Z","value":"x"}]'
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
