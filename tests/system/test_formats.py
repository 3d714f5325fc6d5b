#!/usr/bin/env python3
"""Formats as nginx and Apache themselves write them. Each request is logged twice: in the format under test, which tallyd reads, and
in one that Python reads here: JSON by nginx, fields between tabs by Apache. Request, agent, referrer and user have hostile bytes.
Every field of every request must agree."""

import base64
import collections
import csv
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import time
import unittest

from harness import Case, dice

REQUESTS = int(os.environ.get("REQUESTS", "2000"))
SPAN = ("2020-01-01", "2100-01-01")
PIECES = [b'"', b"\\", b"\\x22", b'\\"', b" ", b"  ", b"?", b"%", b"%41", b"'", b"|", b"}", b"[", b"]", b"-", b", ", b" : ", b"&a=b", b"/",
          b"\xc3\xa4", b"\xe2\x82\xac", b"\xff", b"\xc3", b"\x80", b"[10/Oct/2000:13:55:36 -0700]", b'" 200 5 "', b"\\n", b"\\u0041", b"${x}"]
CONTROLS = [b"\t", b"\x01", b"\x1b", b"\x7f"]

# The fields of the two reports, by the names that both judges use; the first tells requests apart.
REPORTS = {"lines": ["x_n", "method", "target", "path", "protocol", "status", "request"],
           "texts": ["x_n", "referrer", "agent", "user", "x_forwarded_for", "host", "x_odd", "vhost"]}

NGINX_FORMATS = {
    "plain": "'$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\" '\n"
             "'$request_time \"$http_x_forwarded_for\" \"$http_x_odd\" $server_name $upstream_response_time \"$http_x_n\"'",
    "json": "escape=json '{\"t\":\"$msec\",\"a\":\"$remote_addr\",\"u\":\"$remote_user\",\"r\":\"$request\",\"s\":$status,"
            "\"b\":$body_bytes_sent,\"f\":\"$http_referer\",\"g\":\"$http_user_agent\",\"x\":\"$http_x_forwarded_for\","
            "\"o\":\"$http_x_odd\",\"n\":\"$http_x_n\",\"v\":\"$server_name\"}'",
}
NGINX_JUDGE = {"x_n": "http_x_n", "request": "request", "status": "status", "bytes": "body_bytes_sent", "referrer": "http_referer",
               "agent": "http_user_agent", "user": "remote_user", "x_forwarded_for": "http_x_forwarded_for", "host": "remote_addr",
               "x_odd": "http_x_odd", "vhost": "server_name"}

APACHE_FORMAT = ('%v %h %l \\"%u\\" %{sec}t.%{msec_frac}t \\"%r\\" %>s %B \\"%{Referer}i\\" \\"%{User-Agent}i\\" %D %{ms}T '
                 '\\"%{X-Forwarded-For}i\\" \\"%{X-Odd}i\\" \\"%{X-N}i\\"')
APACHE_USUAL = ('%v:%p %h %l %u %t \\"%r\\" %>s %B \\"%{Referer}i\\" \\"%{User-Agent}i\\" \\"%{X-Forwarded-For}i\\"\t'
                '%{X-Odd}i\t%{X-N}i')
APACHE_JUDGE = {"x_n": "%{X-N}i", "request": "%r", "status": "%>s", "bytes": "%B", "referrer": "%{Referer}i", "agent": "%{User-Agent}i",
                "user": "%u", "x_forwarded_for": "%{X-Forwarded-For}i", "host": "%h", "x_odd": "%{X-Odd}i", "vhost": "%v"}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def settle(raw):
    """The text of a dimension, as aggregate/dimension.h has it: UTF-8 stays, any other odd byte is %XX; "-" is absent."""
    text = raw.decode("utf-8", "surrogateescape")
    return re.sub("[\x00-\x1f\x7f\udc80-\udcff]", lambda m: f"%{ord(m.group()) & 0xff:02X}", text) or "-"


def split_request(request):
    """method, target, path, protocol of a request line, as bytes, by the words of ingest/decode/clf_request.h."""
    found = re.fullmatch(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) (.+)", request, re.DOTALL)
    if not found:
        return b"", b"", b"", b""
    method, rest = found.groups()
    target, space, protocol = rest.rpartition(b" ")
    if not (space and target and protocol.startswith(b"HTTP/")):
        target, protocol = rest, b""
        if not target.startswith(b"/"):
            return b"", b"", b"", b""
    path = target.partition(b"?")[0]
    absolute = re.fullmatch(rb"[A-Za-z][A-Za-z0-9+.-]*://[^/]*(/.*)?", path, re.DOTALL)
    return method, target, (absolute[1] or b"/") if absolute else path, protocol


def unescape_apache(text):
    """Undoes ap_escape_logitem()."""
    names = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"v": b"\v", b'"': b'"', b"\\": b"\\"}
    return re.sub(rb"\\(?:x([0-9a-fA-F]{2})|(.))", lambda m: bytes([int(m[1], 16)]) if m[1] else names[m[2]], text, flags=re.DOTALL)


@unittest.skipUnless(shutil.which("nginx") and shutil.which("apache2"), "nginx and apache2 are missing: ./packages.sh all")
class Formats(Case):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.port = free_port()
        os.chmod(self.dir, 0o755)
        os.makedirs(self.path("root/private"), mode=0o755)
        self.write("root/index.html", b"hello\n" * 100)
        self.write("empty", b"")

    # ---- requests

    def odd_text(self, words=(b"abc", b"Mozilla/5.0", b"https://a.example/x?y=z"), controls=()):
        pieces = [*PIECES, *controls]
        return b"".join(self.dice.choice(pieces if self.dice.random() < 0.6 else words) for _ in range(self.dice.randrange(6)))

    def request(self, number):
        method = self.dice.choice([b"GET", b"GET", b"GET", b"HEAD", b"POST", b"PROPFIND", b"G|T", b"get"])
        target = self.dice.choice([b"/", b"/index.html", b"/private/", b"/nothing", b"*", b"http://other.example/a", b""])
        if self.dice.random() < 0.6:
            target += self.odd_text((b"a", b"b=c", b"index.html"), CONTROLS if self.dice.random() < 0.1 else ())
        protocol = self.dice.choice([b" HTTP/1.1", b" HTTP/1.1", b" HTTP/1.1", b" HTTP/1.0", b"", b" HTTP/9.9", b" FTP/1"])
        lines = [method + b" " + target + protocol, b"Host: w.example", b"Connection: close", b"X-N: %d" % number]
        for name in b"Referer", b"User-Agent", b"X-Forwarded-For", b"X-Odd":
            if self.dice.random() < 0.8:
                lines.append(name + b": " + self.odd_text(controls=[b"\t"]))
        if self.dice.random() < 0.3:
            lines.append(b"Authorization: Basic " + base64.b64encode(self.odd_text((b"frank", b"anna")) + b":secret"))
        if self.dice.random() < 0.03:
            return self.dice.randbytes(self.dice.randrange(1, 60)).replace(b"\n", b"") + b"\r\n\r\n"
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def send(self, data):
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as s:
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                while s.recv(65536):
                    pass
            except (ConnectionError, BrokenPipeError):
                pass

    def wait_until_up(self, process):
        for _ in range(200):
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                    return
            except OSError:
                self.assertIsNone(process.poll(), "the server ended")
                time.sleep(0.05)
        self.fail("the server does not listen")

    def check_logged(self, events):
        print(f"{self.id().rpartition('_')[2]}: {len(events):,} of {REQUESTS:,} requests logged", flush=True)
        self.assertGreater(len(events), REQUESTS * 0.9)

    def log_requests(self, argv):
        with subprocess.Popen(argv, cwd=self.dir, stdin=subprocess.DEVNULL, start_new_session=True) as process:
            try:
                self.wait_until_up(process)
                for number in range(REQUESTS):
                    self.send(self.request(number))
                time.sleep(1)
            finally:
                process.terminate()
                process.wait(20)

    # ---- judges

    def rows(self, name, step):
        """Counters of each report's rows, as tallyd reads the log."""
        config = "store: {url: \"sqlite:%s.db\"}\nquery: {series_max: 100000}\nlimits: {dimension_max: 4KiB}\nsources:\n" % name
        config += "  a: {path: %s, decode: [%s]}\nreports:\n" % (self.path(name + ".log"), step)
        config += "".join(f"  {report}: {{by: [{', '.join(fields)}], measures: {{hits: count, size: sum(bytes)}}}}\n" for report, fields in REPORTS.items())
        self.write(name + ".yaml", config.encode())
        said = self.tallyd("import", "-c", name + ".yaml", "--last-line", name + ".log")
        consumed, parsed = self.booked(name + ".db")
        self.assertEqual(consumed, parsed, said)
        counted = {}
        for report, measure in itertools.product(REPORTS, ["hits", "size"]):
            out = self.tallyd("query", report, "-c", name + ".yaml", "--from", SPAN[0], "--to", SPAN[1], "--format", "csv-raw",
                              "--measure", measure, "--top", "100000")
            counted[report, measure] = collections.Counter()
            for row in csv.DictReader(out.split("\n")):
                counted[report, measure][tuple(row[field] or "-" for field in REPORTS[report])] += int(row["value"])
        return counted

    def compare(self, events, counted):
        for (report, measure), got in counted.items():
            want = collections.Counter()
            for event in events:
                count = 1 if measure == "hits" else int(event["bytes"] or 0)
                want[tuple(settle(event[field]) for field in REPORTS[report])] += count
            self.assertEqual([], list((want - got).items())[:3] + list((got - want).items())[:3], (report, measure))

    @staticmethod
    def complete(event):
        event = {name: b"" if value == b"-" else value for name, value in event.items()}
        event.update(zip(("method", "target", "path", "protocol"), split_request(event["request"])))
        return event

    def test_nginx(self):
        judge = ",".join(f'"{name}":"${variable}"' for name, variable in NGINX_JUDGE.items())
        formats = "".join(f"log_format {name} {text};\n" for name, text in NGINX_FORMATS.items())
        logs = "".join(f"access_log {self.path(name)}.log {name};\n" for name in NGINX_FORMATS)
        self.write("nginx.conf", f"""
{"user root;" if os.getuid() == 0 else ""}
daemon off; worker_processes 1; pid {self.path("nginx.pid")}; error_log {self.path("error.log")} crit;
events {{ worker_connections 64; }}
http {{
log_format judge escape=json '{{{judge}}}';
{formats} {logs} access_log {self.path("judge.log")} judge;
client_body_temp_path {self.path("t1")}; proxy_temp_path {self.path("t2")}; fastcgi_temp_path {self.path("t3")};
uwsgi_temp_path {self.path("t4")}; scgi_temp_path {self.path("t5")};
server {{ listen 127.0.0.1:{self.port}; server_name w.example; root {self.path("root")}; ignore_invalid_headers off; }}
}}""".encode())
        self.log_requests(["nginx", "-c", self.path("nginx.conf"), "-e", self.path("error.log")])
        events = []
        for line in self.read("judge.log").splitlines():
            event = json.loads(line.decode("latin-1"))
            events.append(self.complete({name: value.encode("latin-1") for name, value in event.items()}))
        self.check_logged(events)
        for name, text in NGINX_FORMATS.items():
            counted = self.rows(name, "{nginx: %s}" % json.dumps(f"log_format {name} {text};"))
            self.compare(events, counted)

    def test_apache(self):
        judge = "\t".join(APACHE_JUDGE.values())
        modules = "mpm_prefork authn_core authz_core auth_basic authn_file authz_user mime dir"
        loads = "".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n" for name in modules.split())
        user = "User www-data\nGroup www-data\n" if os.getuid() == 0 else ""
        quoted = {"fine": APACHE_FORMAT, "usual": APACHE_USUAL}
        formats = "".join(f'LogFormat "{text}" {name}\nCustomLog {self.path(name)}.log {name}\n' for name, text in quoted.items())
        self.write("apache.conf", f"""
ServerRoot {self.dir}
ServerName w.example
Listen 127.0.0.1:{self.port}
PidFile {self.path("apache.pid")}
Mutex file:{self.dir}
{loads}{user}
StartServers 1
MinSpareServers 1
MaxSpareServers 1
MaxRequestWorkers 1
TypesConfig {self.path("empty")}
ErrorLog {self.path("error.log")}
LogLevel crit
HttpProtocolOptions Unsafe
DocumentRoot {self.path("root")}
{formats}
LogFormat "{judge}" judge
CustomLog {self.path("judge.log")} judge
<Location /private>
AuthType Basic
AuthName x
AuthUserFile {self.path("empty")}
Require valid-user
</Location>
""".encode())
        self.log_requests(["apache2", "-D", "FOREGROUND", "-f", self.path("apache.conf")])
        events = []
        for line in self.read("judge.log").splitlines():
            event = dict(zip(APACHE_JUDGE, line.split(b"\t"), strict=True))
            event["user"] = event["user"] if event["user"] != b'""' else b""  # Apache writes an empty user so
            events.append(self.complete({name: unescape_apache(value) for name, value in event.items()}))
        self.check_logged(events)
        for name, text in quoted.items():
            counted = self.rows(name, "{apache: %s}" % json.dumps(f'LogFormat "{text}" {name}'))
            self.compare(events, counted)


if __name__ == "__main__":
    unittest.main()
