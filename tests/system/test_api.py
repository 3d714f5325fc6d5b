#!/usr/bin/env python3
"""The HTTP API of a running daemon, beyond what tests/unit/test_web.c asks it: streams, packing, caching, access."""

import base64
import datetime
import gzip
import http.client
import http.server
import json
import os
import signal
import socket
import ssl
import subprocess
import threading
import time
import unittest
import urllib.error
import urllib.request
import warnings

from harness import EX_CONFIG, EX_NOINPUT, EX_NOPERM, EX_OK, EX_PROTOCOL, EX_UNAVAILABLE, EX_USAGE, TIMEOUT_S, DaemonCase

CONFIG = b"""sources: {access: {path: access.log}}
reports:
  site: {}
  pages: {by: [path]}
http: {listen: '127.0.0.1:0', streams_max: 10, connections_max: 32, timeout: 2s}
aggregate: {flush: 200ms}
"""


def line(path, at=None):
    at = at or datetime.datetime.now(datetime.timezone.utc)
    return b'192.0.2.1 - - [%s] "GET %s HTTP/1.1" 200 10\n' % (at.strftime("%d/%b/%Y:%H:%M:%S +0000").encode(), path)


class Stream:
    """Server-sent events as they come."""

    def __init__(self, case, words, method="GET", headers=None):
        self.connection = http.client.HTTPConnection(case.url[len("http://"):], timeout=TIMEOUT_S)
        case.addCleanup(self.connection.close)
        self.connection.request(method, "/api/v1/stream?" + words, headers=headers or {})
        self.reply = self.connection.getresponse()
        self.status = self.reply.status

    def lines(self):
        """Those of the next event, or comment; [] at the end."""
        found = []
        while (text := self.reply.readline().decode().rstrip("\n")) or not found:
            if not text:
                return found
            found.append(text)
        return found

    def next(self, name):
        """The data of the next event of this name; None at the end."""
        while lines := self.lines():
            if lines[0] == "event: " + name:
                assert len(lines) == 2 and lines[1].startswith("data: "), lines
                return json.loads(lines[1][len("data: "):])
        return None


class Refusal(http.server.BaseHTTPRequestHandler):
    """Answers every question with 422 and the body that its server has."""

    def do_GET(self):
        self.send_response(422)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_):
        pass


class ApiTest(DaemonCase):
    def setUp(self):
        super().setUp()
        self.write("tallyd.yaml", CONFIG)
        self.append("access.log", line(b"/a") * 3)
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(3)

    # ---- /api/v1/stream

    def sum_of(self, stream):
        return sum(row[1] for row in stream.next("rows")["values"])

    def test_stream_shows_what_is_counted(self):
        stream = Stream(self, "report=pages&filter=path=/a")
        self.assertEqual((200, "text/event-stream"), (stream.status, stream.reply.getheader("Content-Type")))
        rows = stream.next("rows")
        self.assertEqual(("pages", ["hits"], "minute", 3),
                         (rows["report"], rows["measures"], rows["step"], len(rows["values"])))
        self.assertEqual(3, sum(row[1] for row in rows["values"]))
        self.assertEqual(3, stream.next("status")["consumed"])
        self.append("access.log", line(b"/a") * 5 + line(b"/b") * 7)
        self.wait_for(lambda: self.sum_of(stream), lambda found: found == 8)
        self.assertEqual(15, stream.next("status")["consumed"])
        self.stop()

    def test_stream_comes_each_second_and_outlives_the_timeout(self):
        stream = Stream(self, "report=site&step=hour")
        begun = [stream.next("status")["uptime_ms"] for _ in range(6)]
        gaps = [after - before for before, after in zip(begun, begun[1:])]
        self.assertTrue(all(gap >= 750 for gap in gaps), gaps)
        self.assertTrue(all(gap >= 900 for gap in gaps[1:]), gaps)
        self.assertLess(min(gaps), 1500, gaps)
        self.stop()

    def test_streams_of_one_question_share_it(self):
        streams = [Stream(self, "report=site") for _ in range(10)]
        seen = [set() for _ in streams]
        while len(set.intersection(*seen)) < 2:  # each may have begun some frames later than another
            self.assertLess(len(seen[0]), 20, seen)
            for stream, frames in zip(streams, seen):
                frames.add((stream.next("rows")["to"], stream.next("status")["uptime_ms"]))
        full = Stream(self, "report=site")
        self.assertEqual((503, "1"), (full.status, full.reply.getheader("Retry-After")))
        self.assertIn("http.streams_max", full.reply.read().decode())
        self.assertEqual("ok\n", self.get("/healthz"))
        for stream in streams:
            stream.connection.close()
        self.wait_for(lambda: Stream(self, "report=pages").status, lambda found: found == 200)
        self.stop()

    def test_wrong_streams_are_refused_at_once(self):
        for words, said in (("report=page", 'did you mean "pages"?'), ("report=site&from=-1h", "unknown parameter"),
                            ("report=site&step=century", "unknown step"), ("report=site&step=second", "no seconds")):
            stream = Stream(self, words)
            self.assertEqual(400, stream.status, words)
            self.assertIn(said, json.loads(stream.reply.read())["error"])
        self.stop()

    def test_head_of_a_stream_ends(self):
        for _ in range(20):  # more than there may be streams
            stream = Stream(self, "report=site", "HEAD")
            self.assertEqual((200, b""), (stream.status, stream.reply.read()))
            stream.connection.close()
        self.stop()

    def test_streams_end_with_the_daemon(self):
        streams = [Stream(self, "report=site") for _ in range(8)]
        for stream in streams:
            stream.next("status")
        begun = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(EX_OK, self.process.wait(TIMEOUT_S))
        self.assertLess(time.monotonic() - begun, 10)
        for stream in streams:
            try:
                while stream.lines():
                    pass
            except http.client.IncompleteRead:
                pass

    def test_clients_that_vanish_make_room(self):
        address = self.url[len("http://"):].split(":")
        for _ in range(40):
            client = socket.create_connection((address[0], int(address[1])), TIMEOUT_S)
            client.sendall(b"GET /api/v1/stream?report=site HTTP/1.1\r\nHost: localhost\r\n\r\n")
            client.recv(100)
            client.close()
        self.wait_for(lambda: Stream(self, "report=site").status, lambda found: found == 200)
        self.stop()


    # ---- what holds for every answer

    def ask(self, target, url=None, context=None, **headers):
        """(status, headers, body)"""
        request = urllib.request.Request((url or self.url) + target, headers={k.replace("_", "-"): v for k, v in headers.items()})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context) as reply:
                return reply.status, reply.headers, reply.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read()

    def test_long_answers_are_packed_for_who_takes_it(self):
        target = "/api/v1/query?report=site&step=minute&from=2026-01-05T00:00&to=2026-01-05T02:00"
        _, plain_headers, plain = self.ask(target)
        _, headers, packed = self.ask(target, Accept_Encoding="br, gzip;q=0.8")
        self.assertIsNone(plain_headers["Content-Encoding"])
        self.assertEqual(("gzip", "Accept-Encoding"), (headers["Content-Encoding"], headers["Vary"]))
        self.assertEqual(plain, gzip.decompress(packed))
        self.assertLess(len(packed), len(plain) / 4)
        _, headers, _ = self.ask(target, Accept_Encoding="gzip;q=0")
        self.assertIsNone(headers["Content-Encoding"])
        _, headers, short = self.ask("/api/v1/reports", Accept_Encoding="gzip")
        self.assertLess(len(short), 1024)
        self.assertIsNone(headers["Content-Encoding"])
        _, plain_headers, plain = self.ask("/page.js")
        _, headers, packed = self.ask("/page.js", Accept_Encoding="gzip")
        self.assertEqual(plain, gzip.decompress(packed))
        self.assertEqual("W/" + plain_headers["ETag"], headers["ETag"])
        self.assertLessEqual(len(packed), len(gzip.compress(plain, 9)) + 32)  # once, and so as well as it gets
        self.assertEqual(304, self.ask("/page.js", Accept_Encoding="gzip", If_None_Match=headers["ETag"])[0])
        stream = Stream(self, "report=site", headers={"Accept-Encoding": "gzip"})
        self.assertIsNone(stream.reply.getheader("Content-Encoding"))
        self.stop()

    def test_closed_periods_are_sent_once(self):
        for question in ("query?report=pages&filter=path=/a&step=hour", "top?report=pages"):
            target = f"/api/v1/{question}&from=2026-01-05&to=2026-01-06"
            code, headers, body = self.ask(target)
            self.assertEqual((200, "private, no-cache"), (code, headers["Cache-Control"]))
            tag = headers["ETag"]
            code, headers, again = self.ask(target, If_None_Match=tag)
            self.assertEqual((304, tag, b""), (code, headers["ETag"], again))
            # A late event changes it.
            self.append("access.log", line(b"/a", datetime.datetime(2026, 1, 5, 10, 5)))
            self.wait_for(lambda target=target, tag=tag: self.ask(target, If_None_Match=tag)[0], lambda found: found == 200)
            self.assertNotEqual(body, self.ask(target)[2])
            _, headers, _ = self.ask(f"/api/v1/{question}")
            self.assertEqual(("no-store", None), (headers["Cache-Control"], headers["ETag"]))
        code, headers, _ = self.ask("/api/v1/top?report=nothing&from=2026-01-05&to=2026-01-06")
        self.assertEqual((400, "no-store", None), (code, headers["Cache-Control"], headers["ETag"]))
        self.stop()

    def test_reasons_are_the_daemons_words(self):
        self.tallyd("query", "<a>&\t\"b\\\x7f", "--store", "sqlite:tallyd.db", status=EX_USAGE)
        said = self.err
        self.assertIn('"<a>&', said)
        self.tallyd("query", self.url, "<a>&\t\"b\\\x7f", status=EX_USAGE)
        self.assertEqual(said, self.err)
        self.stop()

    def test_reasons_are_any_json(self):
        with http.server.HTTPServer(("127.0.0.1", 0), Refusal) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{server.server_port}"
            for body, said in ((b'{"error":"\\u003ca\\u0026b\\u003e \\u00e4\\ud83d\\ude00\\ud83d!"}\n', "<a&b> ä😀\ufffd!"),
                               (b'{ "code": [1, {}], "error": "one\\ntwo\\u001b[0m\\u009b1m\\/" }', "one two\\x1b[0m\\xc2\\x9b1m/")):
                server.body = body
                self.tallyd("query", url, "site", status=EX_UNAVAILABLE)
                self.assertEqual(f"tallyd query: {said}\n", self.err)
            for body in (b"", b'{"error":"cut', b'{"error":7}', b"[" * 1000, b"too dear"):
                server.body = body
                self.tallyd("query", url, "site", status=EX_PROTOCOL)
                self.assertIn("is not tallyd (status 422)", self.err)
            server.shutdown()
        self.stop()

    # ---- who may ask

    TOKEN = "0123456789-._~+/="

    def relaunch(self, http_keys, *arguments, **options):
        self.stop()
        self.write("tallyd.yaml", CONFIG.replace(b"http: {", b"http: {" + http_keys.encode()))
        self.launch("-c", "tallyd.yaml", *arguments, **options)

    def test_token_is_asked_for(self):
        self.write("token", self.TOKEN.encode() + b"\n")
        self.relaunch("token: 'file:token', ")
        basic = base64.b64encode(b"any:" + self.TOKEN.encode()).decode()
        for target in ("/", "/api/v1/status", "/api/v1/query?report=site", "/api/v1/stream?report=site", "/metrics",
                       "/nothing"):
            code, headers, body = self.ask(target)
            self.assertEqual(401, code, target)
            self.assertEqual(["Bearer", "Basic"], [found.split()[0] for found in headers.get_all("WWW-Authenticate")])
            self.assertIn("http.token", json.loads(body)["error"])
            self.assertEqual(401, self.ask(target, Authorization="Bearer " + self.TOKEN[:-1])[0])
            if "stream" not in target:
                for good in ("Bearer " + self.TOKEN, "Basic " + basic):
                    self.assertEqual(404 if target == "/nothing" else 200, self.ask(target, Authorization=good)[0])
        self.assertEqual(200, Stream(self, "report=site", headers={"Authorization": "Basic " + basic}).status)
        self.assertEqual(200, self.ask("/healthz")[0])
        self.assertNotEqual(401, self.ask("/readyz")[0])
        self.tallyd("query", self.url, "site", status=EX_NOPERM)
        self.tallyd("query", self.url, "site", env={**os.environ, "TALLYD_TOKEN": self.TOKEN})
        self.assertNotIn(self.TOKEN, self.tallyd("check", "-c", "tallyd.yaml", "--print"))
        self.write("plain.yaml", f"http: {{token: {self.TOKEN}}}\nkafka: {{properties: {{sasl.password: geheim}}}}\n".encode())
        for secret in self.TOKEN, "geheim":
            self.assertNotIn(secret, self.tallyd("check", "-c", "plain.yaml", "--print"))
            self.assertIn(secret, self.tallyd("check", "-c", "plain.yaml", "--print", "--secrets"))
        self.process.terminate()
        self.assertEqual(EX_OK, self.process.wait(TIMEOUT_S))

    def test_open_address_without_token_is_warned_about(self):
        self.assertNotIn(b"http_is_open", self.read("log"))
        self.stop()
        self.launch("-c", "tallyd.yaml", "--listen", "0.0.0.0:0")
        self.assertEqual(1, self.read("log").count(b"event=http_is_open"))
        self.url = self.url.replace("0.0.0.0", "127.0.0.1")
        self.stop()
        self.write("tallyd.yaml", CONFIG.replace(b"http: {", b"http: {token: 0123456789abcdef, "))
        self.launch("-c", "tallyd.yaml", "--listen", "0.0.0.0:0")
        self.assertNotIn(b"http_is_open", self.read("log"))

    def test_closed_network_is_warned_about(self):
        """The units say by a variable that they allow this computer's own addresses only."""
        for network, listen, times in ("localhost", "127.0.0.1:0", 0), ("localhost", "0.0.0.0:0", 1), ("any", "0.0.0.0:0", 0):
            self.stop()
            self.launch("-c", "tallyd.yaml", "--listen", listen, env={**os.environ, "TALLYD_NETWORK": network})
            self.assertEqual(times, self.read("log").count(b"event=network_closed key=http.listen"), (network, listen))
            self.url = self.url.replace("0.0.0.0", "127.0.0.1")
        self.write("far.yaml", b"store: {url: 'mongodb://u:geheim@db.example.org/x'}\nhttp: {listen: '0.0.0.0:8080'}\n")
        for prefix, words in ("note: ", []), ("# note: ", ["--print"]):
            said = [line for line in self.tallyd("check", "-c", "far.yaml", *words).splitlines() if "network.conf" in line]
            self.assertEqual([f"{prefix}store.url has db.example.org", f"{prefix}http.listen has 0.0.0.0"],
                             [line.rsplit(": ", 1)[0] for line in said])

    def certificate(self, name):
        done = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                               "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
                               "-keyout", self.path(name + ".key"), "-out", self.path(name + ".pem")],
                              capture_output=True, check=False, timeout=TIMEOUT_S)
        self.assertEqual(0, done.returncode, done.stderr)

    def test_tls(self):
        self.certificate("one")
        self.certificate("two")
        self.relaunch("tls_cert: one.pem, tls_key: one.key, ")
        url = self.url.replace("http://", "https://")
        context = ssl.create_default_context(cafile=self.path("one.pem"))
        self.assertEqual((200, b"ok\n"), self.ask("/healthz", url, context)[::2])
        self.check_commands_by_tls(url)
        self.assertLess(1000, len(self.ask("/", url, context)[2]))
        connection = http.client.HTTPSConnection(url[len("https://"):], timeout=TIMEOUT_S, context=context)
        connection.request("GET", "/api/v1/stream?report=site")
        reply = connection.getresponse()
        self.assertEqual(b"event: rows\n", reply.readline())
        for _ in range(20):
            self.assertNotEqual(b"", reply.readline())
        connection.close()
        with self.assertRaises(ssl.SSLError):
            self.ask_strictly(url, self.path("two.pem"))
        with self.assertRaises((http.client.HTTPException, OSError)):
            self.get("/healthz")  # not by plain HTTP
        self.process.terminate()
        self.assertEqual(EX_OK, self.process.wait(TIMEOUT_S))

    def tls_answers(self, version, ciphers):
        """Does the server take this version and these ciphers?"""
        context = ssl.create_default_context(cafile=self.path("one.pem"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of old versions
            context.minimum_version = context.maximum_version = version
        context.set_ciphers(ciphers + ":@SECLEVEL=0")
        try:
            return self.ask("/healthz", self.url.replace("http://", "https://"), context)[0] == 200
        except OSError:
            return False

    def test_tls_is_new_and_authenticated(self):
        self.certificate("one")
        self.relaunch("tls_cert: one.pem, tls_key: one.key, ")
        for version, ciphers, good in (
                (ssl.TLSVersion.TLSv1_3, "ALL", True), (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-GCM-SHA256", True),
                (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-CHACHA20-POLY1305", True),
                (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-SHA", False),
                (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES256-SHA384", False),
                (ssl.TLSVersion.TLSv1_1, "ALL", False), (ssl.TLSVersion.TLSv1, "ALL", False)):
            self.assertEqual(good, self.tls_answers(version, ciphers), (version, ciphers))

    def check_commands_by_tls(self, url):
        for command in (("query", url, "site"), ("top", "--url", url)):
            self.tallyd(*command, "--cacert", "one.pem")
            self.tallyd(*command, status=EX_UNAVAILABLE)
            self.assertIn("is not trusted: ", self.err)
            self.assertIn("--cacert FILE", self.err)
            self.tallyd(*command, "--cacert", "two.pem", status=EX_UNAVAILABLE)
            for file in ("none.pem", "access.log"):
                self.tallyd(*command, "--cacert", file, status=EX_NOINPUT)
                self.assertIn(f"cannot read certificates from {file} (--cacert FILE)", self.err)
        self.tallyd("query", "site", "--cacert", "one.pem", status=EX_USAGE)

    def ask_strictly(self, url, cafile):
        host, port = url[len("https://"):].split(":")
        with socket.create_connection((host, int(port)), TIMEOUT_S) as plain:
            ssl.create_default_context(cafile=cafile).wrap_socket(plain, server_hostname=host).close()

    def test_wrong_certificates_are_said(self):
        self.stop()
        self.certificate("one")
        self.certificate("two")
        for keys, said in (("tls_cert: one.pem, ", "there is no http.tls_key"),
                           ("tls_key: one.key, ", "there is no http.tls_cert"),
                           ("tls_cert: none.pem, tls_key: one.key, ", "cannot read"),
                           ("tls_cert: access.log, tls_key: one.key, ", "is no PEM file"),
                           ("tls_cert: one.pem, tls_key: two.key, ", "is the key of")):
            self.write("tallyd.yaml", CONFIG.replace(b"http: {", b"http: {" + keys.encode()))
            self.tallyd("run", "-c", "tallyd.yaml", status=EX_CONFIG)
            self.assertIn(said, self.err)


if __name__ == "__main__":
    unittest.main()
