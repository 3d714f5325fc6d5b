#!/usr/bin/env python3
"""The primary changes while a daemon counts: each request is refused, or carried out and refused, or carried out and not
acknowledged by a majority; and a former primary answers reads. What is counted stays exact, and the daemon goes on.

A proxy plays the servers of a replica set: it hands a request to the server, or does not, and answers by itself. docs/mongodb.md
says which pages of the manual these answers are from. The seed is printed; TALLYD_SEED repeats a run. TALLYD_MONGO names the server
(tests/servers/mongo.py).
"""

import collections
import os
import socket
import struct

import mongocase
from harness import DaemonCase, dice
from mongocase import MongoCase, log, proxy

try:
    import bson
except ImportError:
    bson = None  # mongocase.main() begins again by a Python that has it

REPLIES = int(os.environ.get("TALLYD_ROUNDS") or 2)  # for each kind of request
HEAD = 16 + 4 + 1  # of an OP_MSG, before its document
PRIMARY_IS_GONE = {10107: "NotWritablePrimary", 189: "PrimarySteppedDown", 11602: "InterruptedDueToReplStateChange",
                   13436: "NotPrimaryOrSecondary", 13435: "NotPrimaryNoSecondaryOk", 91: "ShutdownInProgress"}
NOT_BY_A_MAJORITY = {64: "WriteConcernTimeout", 100: "UnsatisfiableWriteConcern", 91: "ShutdownInProgress",
                     189: "PrimarySteppedDown"}
# What a flush sends: the log, the commit, the documents, the books.
REQUESTS = ("insert", "batches"), ("update", "ledger"), ("update", "pages.day"), ("update", "books")


def refusal(code):
    return {"ok": 0.0, "code": code, "codeName": PRIMARY_IS_GONE[code], "errmsg": "not primary",
            "errorLabels": ["RetryableWriteError"]}


class Failover(MongoCase, DaemonCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.lines, self.answers, self.wants = b"", collections.Counter(), {}
        self.write("a.log", b"")
        self.put_between()
        self.between.answer = self.answer
        self.launch("-c", "tallyd.yaml")

    def answer(self, request):
        found = proxy.COMMAND.match(request)
        if not found or struct.unpack("<i", request[:4])[0] != len(request):
            return None
        command = tuple(part.decode() for part in found.groups())
        play = self.wants.get(command)
        return play(command, request) if play else None

    def carry_out(self, request):
        """The server's own reply."""
        with socket.create_connection(("127.0.0.1", self.server.port)) as server:
            server.sendall(request)
            reply = b""
            while len(reply) < 4 or len(reply) < struct.unpack("<i", reply[:4])[0]:
                piece = server.recv(65536)
                self.assertTrue(piece)
                reply += piece
        return bson.decode(reply[HEAD:])

    def once(self, command, reply):
        """Play it for one request of this command."""
        def play(_, request):
            del self.wants[command]
            document = reply(request)
            self.answers[command] += 1
            return proxy.replied(request, bson.encode(document))

        self.wants[command] = play

    def add(self, count=30):
        """Lines of a day of their own, so that each flush makes new documents, too."""
        lines = log(self.dice, count, days=1 + len(self.answers) % 20)
        self.lines += lines
        self.append("a.log", lines)

    def count_on(self):
        self.add()
        self.wait_for(lambda: self.nexts().get("a.log"), lambda found: found == len(self.lines))

    def play_each(self, replies):
        """`replies`: {name: reply(request)}, some for each kind of request."""
        self.count_on()
        for command in REQUESTS:
            for name, reply in self.dice.sample(sorted(replies.items(), key=str), min(REPLIES, len(replies))):
                before = self.answers[command]
                self.once(command, reply)
                for _ in range(20):
                    self.count_on()
                    if self.answers[command] > before:
                        break
                self.wants.clear()
                self.assertIsNone(self.process.poll(), (command, name))
        self.assertEqual(set(REQUESTS), set(self.answers))
        print(f"{sum(self.answers.values())} answers: {dict(self.answers)}")
        self.stop()
        self.check(self.lines, files=["a.log"])
        self.check_at_rest()

    def test_refused(self):
        self.play_each({name: lambda _, code=code: refusal(code) for code, name in PRIMARY_IS_GONE.items()})

    def test_refused_though_carried_out(self):
        """The primary steps down between the write and its reply."""
        def refuse(request, code):
            self.carry_out(request)
            return refusal(code)

        self.play_each({name: lambda request, code=code: refuse(request, code) for code, name in PRIMARY_IS_GONE.items()})

    def test_carried_out_but_not_by_a_majority(self):
        """`wtimeout`: the reply has the write's result, and an error of the write concern."""
        def not_yet(request, code):
            error = {"code": code, "codeName": NOT_BY_A_MAJORITY[code], "errmsg": "waiting for replication timed out",
                     "errInfo": {"wtimeout": True}}
            return {**self.carry_out(request), "writeConcernError": error}

        self.play_each({name: lambda request, code=code: not_yet(request, code) for code, name in NOT_BY_A_MAJORITY.items()})

    def test_former_primary_answers_reads(self):
        """A member that does not know yet that it is no primary any more has an older ledger. A commit loses its reply, so the
        daemon has to find out whether it happened."""
        self.count_on()
        old = self.ledger.copy()["ledger"]
        for _ in range(3):
            self.count_on()
        stale = {"cursor": {"firstBatch": old, "id": bson.Int64(0), "ns": f"{self.name}.ledger"}, "ok": 1.0}
        self.wants["find", "ledger"] = lambda _, request: proxy.replied(request, bson.encode(stale))
        for _ in range(4):
            def lose(request):
                self.carry_out(request)
                return refusal(189)

            before = self.answers["update", "ledger"]
            self.once(("update", "ledger"), lose)
            self.count_on()
            self.wait_for(lambda: self.answers["update", "ledger"], lambda found, before=before: found > before)
        self.count_on()
        self.stop()
        self.wants.clear()
        self.check(self.lines, files=["a.log"])
        self.check_at_rest()


if __name__ == "__main__":
    mongocase.main()
