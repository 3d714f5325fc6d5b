#!/usr/bin/env python3
"""Faults that pass are waited for: a login that fails while a server restarts, a busy server, a name that is not in the DNS yet, a reply
that is late; and what one batch stopped for does not stop all daemons.

A proxy says what the server at hand would not. TALLYD_MONGO names that (tests/servers/mongo.py).
"""

import datetime
import os
import signal

from harness import EX_DATAERR, EX_NOPERM, EX_UNAVAILABLE, TIMEOUT_S, DaemonCase, dice, dying_at
from mongocase import FOLLOWING, REPORTS, SHORT, MongoCase, log, main, proxy

try:
    import bson
except ImportError:
    pass  # as in mongocase

KILLED = -signal.SIGKILL
LOGGED_IN = {"conversationId": 1, "done": True, "payload": b"", "ok": 1.0}
WRONG_PASSWORD = {"ok": 0.0, "errmsg": "Authentication failed.", "code": 18, "codeName": "AuthenticationFailed"}
# None: the connection ends.
NO_LOGIN = (None, {"ok": 0.0, "errmsg": "The server is in quiesce mode and will shut down", "code": 91},
            {"ok": 0.0, "errmsg": "not primary", "code": 11602})
# Of commands, …
BUSY = (82, 107, 150, 175, 215, 237, 239, 246, 249, 250, 272, 290, 314, 355, 358, 365, 371, 391, 402, 406, 407, 412, 433, 449,
        450, 453, 462, 10058, 46841, 91331)
BUSY_DOCUMENT = (82, 365, 112)  # … and of what they do to single documents
NOT_MET = {"code": 64, "errmsg": "waiting for replication timed out"}


def command_of(piece):
    """The command of a message that is sent whole; {}: it is none."""
    is_one = len(piece) > 25 and piece[12:16] == b"\xdd\x07\0\0" and piece[20] == 0
    length = int.from_bytes(piece[21:25], "little") if is_one else 0
    return bson.decode(piece[21:21 + length]) if 0 < length <= len(piece) - 21 else {}


def of_logins(reply, told):
    """The server knows no users: who logs in is told this, which is noted in `told`."""
    def answer(piece):
        if "saslStart" not in command_of(piece):
            return None
        told.append(reply)
        return b"" if reply is None else proxy.replied(piece, bson.encode(reply))
    return answer


class Passing(MongoCase, DaemonCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.lines = b""

    def add(self, count=5):
        lines = log(self.dice, count)
        self.lines += lines
        self.append("a.log", lines)

    def wait_for_counted(self):
        self.wait_for(lambda: self.nexts().get("a.log"), lambda found: found == len(self.lines))

    def follow(self):
        """By a daemon, through the proxy."""
        self.add()
        self.launch("-c", "tallyd.yaml")
        self.wait_for_counted()

    def check_end(self):
        self.wait_for_counted()
        self.stop()
        self.check(self.lines, files=["a.log"])

    def url(self, more=""):
        return f"mongodb://127.0.0.1:{self.between.port}/{self.name}{SHORT}{more}"


class Login(Passing):
    def setUp(self):
        super().setUp()
        self.put_between()
        self.told = []

    def url(self, more=""):
        return super().url("&authMechanism=PLAIN&authSource=$external" + more).replace("://", "://somebody:secret@")

    def test_wrong_password(self):
        self.add()
        self.between.answer = of_logins(WRONG_PASSWORD, self.told)
        self.count("a.log", url=self.url(), status=EX_NOPERM)
        self.assertIn("Authentication failed: check user, password and rights in store.url", self.err)
        self.assertNotIn("secret", self.err)

    def test_fails_otherwise(self):
        self.add()
        for reply in NO_LOGIN:
            with self.subTest(reply=reply):
                self.between.answer = of_logins(reply, self.told)
                self.count("a.log", url=self.url(), status=EX_UNAVAILABLE)
                self.assertIn("cannot log in: ", self.err)

    def test_fails_in_a_daemon_that_was_let_in(self):
        self.between.answer = of_logins(LOGGED_IN, self.told)
        self.write("tallyd.yaml", f"""\
{REPORTS}
store: {{url: "{self.url()}"}}
sources: {{access: {{path: a.log}}}}
http: {{listen: "127.0.0.1:0"}}
""".encode())
        self.follow()
        for reply in (*NO_LOGIN, WRONG_PASSWORD):
            self.between.answer = of_logins(reply, told := [])
            self.between.cut()
            self.add()
            self.wait_for(lambda told=told: len(told), lambda found: found > 1)
            self.between.answer = of_logins(LOGGED_IN, self.told)
            self.wait_for_counted()
        self.check_end()


class Busy(Passing):
    def setUp(self):
        super().setUp()
        self.put_between()
        self.follow()

    def refuse(self, name, collection, reply):
        """One command is; the server does not hear of it."""
        def answer(piece):
            if command_of(piece).get(name) != collection:
                return None
            self.between.answer = lambda _: None
            return proxy.replied(piece, bson.encode({"ok": 1.0, **reply}))
        self.between.answer = answer
        self.add()
        self.wait_for_counted()

    def test_commands(self):
        for code in BUSY:
            with self.subTest(code=code):
                self.refuse("update", self.dice.choice(["ledger", "pages.day", "books"]),
                            {"ok": 0.0, "code": code, "errmsg": "busy"})
        self.check_end()

    def test_documents(self):
        for code in BUSY_DOCUMENT:
            for name, collection in (("update", "pages.day"), ("update", "books"), ("update", "ledger"), ("insert", "batches")):
                with self.subTest(code=code, name=name, collection=collection):
                    self.refuse(name, collection, {"n": 0, "nModified": 0,
                                                   "writeErrors": [{"index": 0, "code": code, "errmsg": "busy"}]})
        self.assertIn(b"store_failed", self.read("log"))
        self.check_end()


class Log(Passing):
    def setUp(self):
        super().setUp()
        self.put_between()

    def logs(self):
        return {one["_id"].rsplit("/", 1)[0] for one in self.base.batches.find({}, {"_id": 1})}

    def test_replies_to_its_insert_are_lost(self):
        """It is inserted again under its name: the next tries make no copies of it."""
        self.follow()
        insert, tries = ("insert", "batches"), 4
        before, known = self.between.commands[insert], self.logs()
        lost = proxy.Fault(lose=insert)
        self.between.plan = lambda: proxy.FAITHFUL if self.between.commands[insert] >= before + tries else lost
        self.between.cut()
        self.add()
        self.wait_for(lambda: self.between.commands[insert], lambda found: found >= before + tries)
        self.assertEqual(1, len(self.logs() - known))
        self.wait_for_counted()
        self.assertGreater(self.between.commands["lost"], 1)
        self.check_end()
        self.check_at_rest()

    def test_its_time_is_over_before_that_of_the_reply(self):
        """So the user reads that the write concern was not met."""
        self.between.heard = []
        self.add()
        self.count("a.log", url=self.url())
        concerns = [found["writeConcern"] for found in map(command_of, self.between.heard) if "insert" in found]
        self.assertEqual([{"w": "majority", "j": True, "wtimeout": 750}] * len(concerns), concerns)
        self.assertNotEqual([], concerns)


class Names(Passing):
    RESOLVER = {**os.environ, "RES_OPTIONS": "timeout:1 attempts:1"}
    URL = "mongodb+srv://db.tallyd.invalid/t"

    def test_not_found(self):
        self.add()
        self.count("a.log", url=self.URL, status=EX_UNAVAILABLE, env=self.RESOLVER)
        self.assertIn("store.url: Failed to look up SRV record", self.err)

    def test_a_daemon_waits(self):
        self.write("tallyd.yaml", f'{REPORTS}\nstore: {{url: "{self.URL}"}}\nsources: {{access: {{path: a.log}}}}\n'.encode())
        process = self.start("run", "-c", "tallyd.yaml", env=self.RESOLVER)
        self.assertRegex(process.stderr.readline(), b"event=store_away .*Failed to look up SRV record")
        process.send_signal(signal.SIGTERM)
        process.wait(TIMEOUT_S)


class Left(Passing):
    """A batch that its writer left open."""

    def leave(self):
        self.write("b.log", other := log(self.dice, 20))
        self.end(self.begin("b.log", env=dying_at("mongo.committed")), KILLED)
        return other

    def damage(self, slot):
        """Open since long ago, and its log is gone."""
        opened = {"seq": 1, "inc": 1, "bytes": 1000, "ranges": [{"partition": "gone/0", "from": 0, "to": 1}]}
        self.ledger.change({"$set": {f"writers.{slot}": {
            "inc": 1, "seq": 1, "lease": datetime.datetime(2020, 1, 1), "host": "", "pid": 0, "open": opened}}})

    def test_a_damaged_one_stops_only_who_needs_it(self):
        """A daemon warns of it, and finishes the next one."""
        self.write("tallyd.yaml", (FOLLOWING % (REPORTS, self.server.port, self.name, SHORT)).encode())
        self.follow()
        self.ledger.change({"$set": {"writers.w1": {"inc": 1, "lease": datetime.datetime(2100, 1, 1)}}})
        other = self.leave()
        self.damage("w1")
        self.wait_for(self.ledger.slots, lambda found: "open" not in found["w2"])
        said = self.wait_for_log("event=batch_left_open writer=w1 error=(.*)").group(1)
        self.assertIn("of the log of a batch of w1, 0 bytes are left", said)
        self.write("c.log", another := log(self.dice, 20))
        self.count("c.log")
        self.add()
        self.wait_for_counted()
        self.stop()
        self.check(self.lines, other, another)

    def test_leaves_no_shared_memory(self):
        """The library's statistics would stay in a file of each process that is killed."""
        self.write("b.log", log(self.dice, 20))
        process = self.begin("b.log", env=dying_at("mongo.committed"))
        self.end(process, KILLED)
        self.assertEqual([], [name for name in os.listdir("/dev/shm") if name.endswith(f"-{process.pid}")])

    def test_one_who_needs_a_damaged_one(self):
        self.leave()
        self.base.batches.delete_many({"_id": {"$regex": "^w0/"}})
        self.count("b.log", status=EX_DATAERR)
        self.assertIn("of the log of a batch of w0, 0 bytes are left", self.err)

    def test_is_applied_when_its_seal_stays(self):
        """A seal that only this primary has may be gone with it."""
        lines = self.leave()
        refused = []

        def answer(piece):
            command = command_of(piece)
            if command.get("update") != "ledger" or b"open.seq" not in piece or "$unset" in command["updates"][0]["u"]:
                return None
            refused.append(command)
            return proxy.replied(piece, bson.encode({"ok": 1.0, "n": 1, "nModified": 0, "writeConcernError": NOT_MET}))

        with proxy.Proxy(self.server.port, answer=answer) as between:
            url = f"mongodb://127.0.0.1:{between.port}/{self.name}{SHORT}"
            self.count("b.log", url=url, status=EX_UNAVAILABLE)
        self.assertEqual(1, len(refused))
        self.assertIn(NOT_MET["errmsg"], self.err)
        self.assertEqual(0, self.base["pages.day"].count_documents({}))
        self.finish("b.log")
        self.check(lines, files=["b.log"])


if __name__ == "__main__":
    main()
