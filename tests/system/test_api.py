#!/usr/bin/env python3
"""The HTTP API of a running daemon, beyond what tests/unit/test_web.c asks it: streams."""

import datetime
import http.client
import json
import signal
import socket
import time
import unittest

from harness import EX_OK, TIMEOUT_S, DaemonCase

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

    def __init__(self, case, words, method="GET"):
        self.connection = http.client.HTTPConnection(case.url[len("http://"):], timeout=TIMEOUT_S)
        case.addCleanup(self.connection.close)
        self.connection.request(method, "/api/v1/stream?" + words)
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


class ApiTest(DaemonCase):
    def setUp(self):
        super().setUp()
        self.write("tallyd.yaml", CONFIG)
        self.append(line(b"/a") * 3)
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(3)

    def append(self, data):
        with open(self.path("access.log"), "ab") as file:
            file.write(data)

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
        self.append(line(b"/a") * 5 + line(b"/b") * 7)
        self.wait_for(lambda: self.sum_of(stream), lambda found: found == 8)
        self.assertEqual(15, stream.next("status")["consumed"])
        self.stop()

    def test_stream_comes_each_second_and_outlives_the_timeout(self):
        stream = Stream(self, "report=site&step=hour")
        begun = [stream.next("status")["uptime_ms"] for _ in range(6)]
        gaps = [after - before for before, after in zip(begun, begun[1:])]
        self.assertTrue(all(gap >= 900 for gap in gaps[1:]), gaps)
        self.assertLess(min(gaps), 1500, gaps)
        self.stop()

    def test_streams_of_one_question_share_it(self):
        streams = [Stream(self, "report=site") for _ in range(10)]
        seen = [[] for _ in streams]
        for _ in range(4):
            for stream, frames in zip(streams, seen):
                frames.append((stream.next("rows")["to"], stream.next("status")["uptime_ms"]))
        # Each may have begun one frame later than another.
        together = [set(frames) for frames in seen]
        self.assertGreaterEqual(len(set.intersection(*together)), 2, seen)
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


if __name__ == "__main__":
    unittest.main()
