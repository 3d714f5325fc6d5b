#!/usr/bin/env python3
"""tallyd detect: the configuration that it proposes is one that `tallyd check` takes, and reads each field as it was written. Lines are
written here as Apache and nginx write them, in formats that it knows and in others that look alike, with hostile bytes. It may say that
no format is sure, or skip fields, but it must never read one field as another."""

import gzip
import json
import os
import unittest

from harness import EX_DATAERR, EX_NOINPUT, EX_OK, EX_USAGE, Case, dice

LINES = 60
TIME = "[10/Oct/2000:13:55:36 -0700]"
HOSTILE = ["", "Mozilla/5.0", "a b", "\\\"", "\\x1b[31m", "\u00e4", "\u202e", "\\\\", "- -", TIME,
           '\\" 200 5 \\"-\\" ', "http://a.example/", " 10.0.0.1 ", ", ", "'", "${x}", "{", "|", "\t"]

# Formats here are the names of fields() with literal text between them.
COMMON = "host logname user time request status bytes"
COMBINED = COMMON + " referrer agent"
NGINX = COMBINED.replace("logname", "-")

# A format, and the format that must be proposed; None: none. "auto": the fields behind the agent are skipped.
FORMATS = [
    (COMMON, "common"), (COMBINED, "combined"), (NGINX, "combined"), ("vhost:port " + COMBINED, "vhost_combined"),
    ("vhost:port " + COMMON, "apache:%v:%p"), ("vhost " + COMMON, "apache:%v %h"), ("vhost " + COMBINED, "apache:%v %h"),
    ("vhost " + COMBINED.replace("host", "name", 1), "apache:%v %h"),
    (COMBINED + " bytes_received bytes_sent", "apache:combinedio"),
    ("vhost " + COMBINED + " bytes_received bytes_sent", "apache:%v %h"),
    ("x_forwarded_for " + COMBINED, "apache:%{X-Forwarded-For}i %h"),
    (NGINX + ' "x_forwarded_for"', "nginx:main"), (NGINX + " request_time", "nginx:$remote_addr"),
    (NGINX + " request_time upstream", "nginx:$remote_addr"),
    (NGINX + ' "x_forwarded_for" request_time upstream', "nginx:$remote_addr"),
    ("vhost " + NGINX + " request_time upstream", "nginx:$server_name"),
    # These look like others, or like nothing.
    ("client_name " + COMBINED.replace("host", "client_address"), None),  # each name has one address
    ("one_address " + COMBINED, None), ("name " + COMBINED, None), ("micros " + COMBINED, None), ("seconds " + COMBINED, None),
    ("request_time " + COMBINED, None), ("pid vhost " + COMBINED, None), ("vhost vhost " + COMBINED, None),
    ("host - " + COMBINED, None), ("host one_address " + COMBINED, None), ("logname " + COMBINED, None),
    (COMBINED + " micros", "auto"), (COMBINED + " seconds", "auto"), (COMBINED + " micros seconds", "auto"),
    (COMBINED + " bytes_sent bytes_received", "auto"), (COMBINED + " bytes_received micros", "auto"),
    (COMBINED + " pid micros", "auto"), (COMBINED + " upstream", "auto"), (COMBINED + " upstream request_time", "auto"),
    (COMBINED + " msec", "auto"), (COMBINED + ' "header_host"', "auto"), (COMBINED + ' "agent"', "auto"),
    (COMBINED + " vhost", "auto"), (COMBINED + " request_time micros", "auto"), (COMMON + " micros", None),
    (COMMON + " agent referrer", None),
]


class Detect(Case):
    def setUp(self):
        super().setUp()
        self.dice = dice()

    # ---- lines

    def text(self):
        return "".join(self.dice.choice(HOSTILE) for _ in range(self.dice.randrange(4))) or "-"

    def address(self):
        return self.dice.choice([f"10.0.0.{self.dice.randrange(250)}", f"2001:db8::{self.dice.randrange(1, 9999):x}"])

    def fields(self, number):
        """The texts of all directives in one line."""
        pick, roll = self.dice.choice, self.dice.randrange
        path = pick(["/", "/a", "/a/\\x1b[31m", "/\\\""])
        size, took = roll(10 ** pick([2, 4, 6])), roll(1, 5000)
        upstream = pick([f"{max(took - 1, 0) / 1000:.3f}", "-", f"{took // 2 / 1000:.3f}, {took // 3 / 1000:.3f}"])
        target = path + pick(["", "?b=c d"])
        request = f"GET {target} HTTP/1.1"
        client = roll(8)
        lists = [self.address(), f"{self.address()}, {self.address()}"]
        made = {"host": self.address(), "name": f"h{number}.isp.example", "logname": pick(["-", "-", "joe"]),
                "user": pick(["-", "frank", "f r", '""']), "time": TIME, "request": request, "path": path, "target": target,
                "status": pick(["200", "404"]), "bytes": str(size) if size else "-", "referrer": pick([self.text(), "http://r.example/x"]),
                "agent": "Mozilla/5.0 " + self.text(), "vhost": pick(["w.example", "shop.example"]), "port": pick(["80", "443"]),
                "x_forwarded_for": lists[number % 2], "one_address": self.address(), "micros": str(took * 1000 + roll(1000)),
                "seconds": str(took // 1000), "request_time": f"{took / 1000:.3f}", "upstream": upstream,
                "bytes_received": str(len(request) + roll(40, 900)), "bytes_sent": str(size + roll(150, 600)), "pid": str(roll(300, 32000)),
                "msec": f"1600000000.{roll(1000):03}", "header_host": pick(["w.example", "10.0.0.1:8080"]),
                "method": "GET", "protocol": "HTTP/1.1", "client_name": f"c{client}.isp.example",
                "client_address": f"10.0.0.{client}"}
        if number == 0:  # large enough that no other number equals it by chance
            made.update(bytes="123456", bytes_sent="123900", logname="-", user="frank")
        return made

    @staticmethod
    def line(words, made):
        def write(word):
            quoted = word in ("request", "referrer", "agent") or word[0] == '"'
            text = ":".join(made.get(name, name) for name in word.strip('"').split(":"))
            return f'"{text}"' if quoted else text
        return " ".join(write(word) for word in words.split(" "))

    # ---- proposals

    def propose(self, name, *arguments, status=EX_OK):
        """The file of the configuration that is proposed, and the format, as --decode has it."""
        out = self.tallyd("detect", *arguments, name, status=status)
        self.assertEqual([], [c for c in out + self.err if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c in "\u202e\ufffd"])
        if status != EX_OK:
            self.assertNotIn("sources:", out)
            return None
        self.write("proposed.yaml", out.encode())
        self.tallyd("check", "-c", "proposed.yaml")
        return out

    def check_fields(self, words, name, made):
        """Each field that the proposal reads is the one that was written."""
        events = [json.loads(row) for row in self.tallyd("explain", "-c", "proposed.yaml", "--json", "-f", name, "-n", str(LINES))
                  .splitlines()]
        self.assertEqual([LINES, 0], [len(events), sum(event["result"] != "event" for event in events)])
        written = {name for word in words.replace('"', "").split() for name in word.split(":")}
        names = {"duration": "request_time", "upstream_duration": "upstream", "host": "host" if "host" in written else "name"}
        for event, texts in zip(events, made):
            for field in event["fields"]:
                of = names.get(field["name"], field["name"])
                self.assertIn(of, written | {"method", "target", "path", "protocol"})
                if of == "upstream":
                    self.assertAlmostEqual(sum(float(one) for one in texts[of].split(", ")), field["number"], 6)
                else:
                    self.assertEqual(texts[of], field["value"], (words, field))

    def test_no_field_is_read_as_another(self):
        for number, (words, wanted) in enumerate(FORMATS):
            made = [self.fields(i) for i in range(LINES)]
            for one in made:  # a list without quotes before it takes one word from a user of two
                one["user"] = one["user"].replace(" ", "_" if words.startswith("x_") else " ")
            name = f"log{number}.log"
            self.write(name, "".join(self.line(words, one) + "\n" for one in made).encode())
            with self.subTest(words):
                out = self.propose(name, status=EX_OK if wanted else EX_DATAERR)
                if not wanted:
                    continue
                step = out.split("decode: ")[1].strip().replace("[{", "[").replace(": '", ":")
                self.assertTrue(step.startswith("[" + wanted), f"{step} instead of {wanted}")
                self.assertEqual(wanted == "auto", "are skipped" in out)
                self.check_fields(words, name, made)

    def test_other_steps(self):
        combined = f'10.0.0.1 - - {TIME} "GET /a HTTP/1.1" 200 5 "-" "A"'
        for lines, wanted in [([f"<34>Oct 11 22:14:15 w nginx: {combined}"], "decode: [syslog, combined]\n"),
                              ([f"2026-01-05T10:00:01.5Z stdout F {combined}"], "decode: [cri, combined]\n"),
                              ([json.dumps({"message": combined, "@timestamp": "2020-01-01T00:00:00Z"})], "[json:/message, combined]"),
                              ([json.dumps({"log": combined + "\n", "stream": "stdout"})], "decode: [json:/log, combined]\n"),
                              (['{"time":"2020-01-01T00:00:00Z","path":"/a"}'], "decode: [json]\n"),
                              (['{"date":"2020-01-01T00:00:00Z","path":"/a"}'], "decode: [json]\n    time: /date\n"),
                              (['{"name":"a","value":1.5,"ts":1600000000}'], "decode: [metric]\n"),
                              (['time=2020-01-01T00:00:00Z path=/a'], "decode: [logfmt]\n"),
                              (["Time,Client Host,,Path,path", '2020-01-01T00:00:00Z,"a,b",x,/a,y'],
                               "decode: [{csv: 'time,client_host,-,path,-'}]\n"),
                              (["date\tpath", "2020-01-01T00:00:00Z\t/a,b"], "decode: [{tsv: 'date,path'}]\n    time: /date\n")]:
            self.write("a.log", "".join(line + "\n" for line in lines).encode())
            self.assertIn(wanted, self.propose("a.log"))
            self.assertIn("counted" if len(lines) == 1 else "rejected 1 + parsed 1",
                          self.tallyd("import", "-c", "proposed.yaml", "--dry-run", "a.log"))

    def test_members_with_other_names(self):
        """Proposed are fields that the events lack; they are then counted."""
        line = {"time_local": "05/Jan/2026:10:00:00 +0000", "remote_addr": "10.0.0.1", "remote_user": None, "uri": "/a", "request_uri": "/a?b",
                "status": "200", "body_bytes_sent": "5", "bytes": 7, "http_user_agent": "curl", "request_time": "0.25"}
        self.write("a.json", json.dumps(line).encode() + b"\n")
        self.assertIn("    decode: [json]\n    time: /time_local\n    fields: {host: /remote_addr, target: /request_uri, agent: /http_user_agent, "
                      "duration: /request_time}\n", self.propose("a.json"))
        event = json.loads(self.tallyd("explain", "-c", "proposed.yaml", "--json", "-f", "a.json"))
        self.assertEqual({"host": "10.0.0.1", "target": "/a?b", "path": "/a", "status": "200", "bytes": "7", "agent": "curl", "duration": "0.25"},
                         {field["name"]: field["value"] for field in event["fields"]})
        for known in {"request": "GET /a HTTP/1.1", "uri": "/a"}, {"path": "/a", "uri": "/a", "url": "/a"}, {"duration": 1, "request_time": 1}:
            self.write("a.json", json.dumps({"time": "2026-01-05T10:00:00Z", **known}).encode() + b"\n")
            proposed = self.propose("a.json")
            self.assertNotIn("fields", proposed)
            self.assertNotIn("caddy", proposed)  # which is JSON, too

    def test_columns_that_the_log_names(self):
        self.write("a.log", b"#Version: 1.0\n#Fields: date time c-ip\n2020-01-01 00:00:00 ::1\n")
        self.assertIn("decode: [w3c]\n", self.propose("a.log"))
        self.assertIn("rejected 0 + parsed 3", self.tallyd("import", "-c", "proposed.yaml", "--dry-run", "a.log"))

    def test_none_is_said_to_be_none(self):
        for data, said in [(b"", "has no lines"),
                           (b"\x1b[31m\xff odd\n", r"no format reads any of its lines. Line 1 is \"\\x1b\[31m\\xff odd\""),
                           (f"10.0.0.1 - - {TIME} \"GET / HTTP/1.1\" 200 5\nodd\n".encode(), "does not read line 2, column 4: "),
                           (f"10.0.0.9 10.0.0.1 - - {TIME} \"GET / HTTP/1.1\" 200 5\n".encode(), "no format is sure: an address stands"),
                           (b"path,host\n/a,b\n", "no format reads any"),
                           (b"time,path\n2020-01-01T00:00:00Z,/a,b\n", "no format reads any")]:
            self.write("odd.log", data)
            self.propose("odd.log", status=EX_DATAERR)
            self.assertRegex(self.err, said)

    def test_what_is_not_tried_is_told(self):
        """A library that cannot be loaded is as good as none."""
        self.write("proxy.log", b"Feb  6 12:14:14 w haproxy[1]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] a b/c 0/0/30/69/109 200 27 - - ---- 1/1/1/1/0 0/0 "
                                b'"GET / HTTP/1.1"\n')
        os.mkdir(os.path.join(self.dir, "lib"))
        self.write("lib/libpcre2-8.so.0", b"")
        without = {**os.environ, "LD_LIBRARY_PATH": os.path.join(self.dir, "lib")}
        for asked, status in (("detect", "proxy.log"), EX_DATAERR), (("explain", "--decode", "combined", "-f", "proxy.log"), EX_DATAERR):
            self.assertIn("libpcre2", self.tallyd(*asked, status=status, env=without) + self.err)
            self.assertNotIn("libpcre2", self.tallyd(*asked, status=None) + self.err)
        self.assertIn("haproxy", self.propose("proxy.log"))

    def test_refused_import_is_told_its_format(self):
        """As `explain` would say it of its first line; else who may know it."""
        combined = '10.0.0.1 - - [05/Jan/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 512 "-" "curl"'
        for line, said in [
                ('Feb  6 12:14:14 w haproxy[1]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] a b/c 0/0/30/69/109 200 27 - - ---- 1/1/1/1/0 0/0 '
                 '"GET / HTTP/1.1"', "Would fit: --decode 'haproxy', or insist by --force"),
                ("#Software: Microsoft Internet Information Services 10.0", "--decode 'w3c'"), ("#Version: 1.0", "--decode 'w3c'"),
                (json.dumps({"log": combined + "\n", "stream": "stdout"}), "--decode 'json:/log,combined'"),
                ("time=2026-01-05T10:00:00Z path=/a", "--decode 'logfmt'"),
                ("w.example " + combined, "--decode 'apache:%v %h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\"' "
                 "(if it begins with the server's name), or insist"),
                ('{"date": "2026-01-05T10:00:00Z"}', "Would fit: a source with decode: json, time: /date, or insist"),
                ("one word", "`tallyd detect FILE` tries all formats; say one by --decode, or insist by --force"),
                ("2026-01-05T10:00:01.5Z stdout F " + combined, "--decode 'cri,combined'"),
                ("#a comment", "`tallyd detect FILE`")]:
            with self.subTest(said):
                self.tallyd("import", "--dry-run", self.write("a.log", line.encode() + b"\n"), status=EX_DATAERR)
                self.assertIn(said, self.err)

    def test_long_format_is_not_cut(self):
        self.write("a.log", f'10.0.0.1 - - {TIME} "GET /a HTTP/1.1" 200 5 "-" "A" 99 0.012 [a-80] [] ::1 5 0.012 200 {"5" * 32}\n'.encode())
        self.tallyd("import", "--dry-run", "--decode", "combined", "a.log", status=EX_DATAERR)
        self.assertIn(". `tallyd detect FILE` shows the format that would fit; say it by --decode, or insist by --force\n", self.err)
        self.assertIn("$proxy_upstream_name", self.propose("a.log"))

    def test_files(self):
        line = f'10.0.0.1 - - {TIME} "GET /a HTTP/1.1" 200 5\n'.encode()
        for name in "v h*st{a}[b]'\"\\.log", "0.log", "Access-Log", "${HOME}.log":
            self.write(name, line)
            self.propose(name)
            self.write("pages.yaml", self.read("proposed.yaml"))
            said = self.tallyd("explain", "-c", "pages.yaml", "--file", name)
            self.assertIn("step 1: common", said)
        self.write("packed.gz", gzip.compress(line * 3 + b"odd\n"))
        self.assertIn("[common]", self.propose("packed.gz", "--lines", "3"))
        self.propose("packed.gz", status=EX_DATAERR)
        out = self.tallyd("detect", "-", input=line)
        self.assertIn("type: stdin\n    decode: [common]", out)

    def test_what_is_wrong_to_ask(self):
        for arguments, status in [([], EX_USAGE), (["a", "b"], EX_USAGE), (["-n", "x", "a"], EX_USAGE), (["nothing.log"], EX_NOINPUT)]:
            self.tallyd("detect", *arguments, status=status)
            self.assertIn("tallyd detect: ", self.err)


if __name__ == "__main__":
    unittest.main()
