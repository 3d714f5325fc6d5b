#!/usr/bin/env python3
"""Events as they are, in MongoDB: typed, each once whatever dies, and asked for as anybody would.

The judge reads a log by a regular expression of its own, and compares every document. TALLYD_MONGO names the server. TALLYD_ROUNDS (4 by default) says how often what happens by chance is tried. The seed is
printed.
"""

import collections
import datetime
import json
import os
import re

from harness import EX_CONFIG, EX_NOPERM, EX_OK, DaemonCase, dice, draw_death, dying_at, failpoints
from mongocase import PASSING, SHORT, MongoCase, main, mongo, proxy
from test_mongo import KILLED

try:
    import bson
    import pymongo
except ImportError:
    bson = pymongo = None  # main() begins again by a Python that has them

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 4)
CHUNKED_LINES = 5500  # of 3 kB at most: what a batch of default size has, and some more
IS_FERRET = mongo.CHOSEN == "ferretdb"
BOOK = ('127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 '
        '"http://www.example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)"\n')
LOGGED = re.compile(r'(\S+) (\S+) (\S+) \[(\d+)/(\w+)/(\d+):(\d+):(\d+):(\d+) ([+-]\d\d)(\d\d)\] "((?:\S+ )?([^ ?"]*)[^"]*)" '
                    r'(\d+) (\d+|-) "([^"]*)" "([^"]*)"$')
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
CONFIG = """\
sources: {access: {raw: %s%s}}
reports: {pages: {by: [path], where: [status<400]}}
aggregate: {batch_size: 64KiB, raw_size: 64KiB}
"""
LINE = '198.51.100.%d - %s [%02d/%s/%d:%02d:%02d:%02d +0000] "GET %s HTTP/1.1" %d %s "%s" "%s"\n'

# The outcomes for a document: it passes, it stays, or nobody knows.
PASSING_CODE, FINAL_CODE, UNKNOWN_CODE = 365, 121, 99999
TRIES = 3  # of the last


def document_of(line):
    """As it is to be stored, by nothing that tallyd has."""
    (host, logname, user, day, month, year, hour, minute, second, zone, zone_minutes, request, path, status, size,
     referrer, agent) = LOGGED.match(line).groups()
    at = datetime.datetime(int(year), MONTHS.index(month) + 1, int(day), int(hour), int(minute), int(second))
    at -= datetime.timedelta(hours=int(zone), minutes=int(zone[0] + zone_minutes))
    none = {"-": None, "": None}
    return {"host": host, "logname": none.get(logname, logname), "user": none.get(user, user), "time": at,
            "request": request, "path": path, "status": int(status),
            "response_size": None if size == "-" else int(size), "referrer": none.get(referrer, referrer),
            "user_agent": none.get(agent, agent), "v": 1}


def documents_of(log):
    """[(offset, document)]"""
    found, offset = [], 0
    for line in log.decode().splitlines(keepends=True):
        if LOGGED.match(line.rstrip("\n")):
            found.append((offset, document_of(line.rstrip("\n"))))
        offset += len(line.encode())
    return found


def traffic(random, lines, days=3, pages=20, agent="x" * 600):
    """Lines of few hosts and pages, now and then late; some without a size, user or referrer."""
    out = []
    for number in range(lines):
        at = datetime.datetime(2026, 1, 5) + datetime.timedelta(
            seconds=max(0, number * days * 86400 // lines - (random.randrange(86400) if random.random() < 0.05 else 0)))
        out.append(LINE % (random.randrange(20), random.choice(["-", "ann"]), at.day, MONTHS[at.month - 1], at.year, at.hour,
                           at.minute, at.second, f"/{random.randrange(pages)}.html", random.choice([200, 304, 404, 500]),
                           random.choice(["-", random.randrange(1 << 33)]), random.choice(["-", "http://a.example/"]),
                           agent))
    return "".join(out).encode()


def commands_in(heard):
    """The commands that went through a proxy whole."""
    found = []
    for piece in heard:
        if len(piece) > 25 and piece[12:16] == b"\xdd\x07\0\0" and piece[20] == 0:
            length = int.from_bytes(piece[21:25], "little")
            if 21 + length <= len(piece):
                found.append((int.from_bytes(piece[16:20], "little"), bson.decode(piece[21:21 + length])))
    return found


class RawCase(MongoCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()

    def configure(self, raw="all", **more):
        self.write("tallyd.yaml", (CONFIG % (raw, "".join(f", raw_{key}: {value}" for key, value in more.items()))).encode())

    def stored(self, collection="raw.access"):
        """{(label of the source, offset): document}, of the documents that are there."""
        found = {}
        for one in self.base[collection].find():
            offset = int(one.pop("_id").rsplit("/", 1)[1])
            self.assertNotIn(offset, found)
            found[offset] = one
        return found

    def check_raw(self, log, collection="raw.access"):
        self.assertEqual(dict(documents_of(log)), self.stored(collection))


class Documents(RawCase):
    def test_types(self):
        self.configure()
        self.write("a.log", (BOOK + '::1 x - [29/Feb/2024:23:59:59 +0530] "-" 408 - "-" "-"\n'
                             'rubbish\n'
                             'h - - [01/Jan/2026:00:00:00 +0000] "GET /a?b=c HTTP/1.1" 999 70368744177664 "" ""\n').encode())
        out = self.count("a.log")
        self.assertRegex(out, r"raw\.access +documents stored 3, refused 0")
        book, slow, last = (one for one in self.base["raw.access"].find().sort("_id"))
        self.assertRegex(book.pop("_id"), "^file:[0-9]+:[0-9a-f]{16}//0{19}$")
        self.assertEqual({"host": "127.0.0.1", "logname": None, "user": "frank",
                          "time": datetime.datetime(2000, 10, 10, 20, 55, 36), "request": "GET /apache_pb.gif HTTP/1.0",
                          "path": "/apache_pb.gif", "status": 200, "response_size": 2326,
                          "referrer": "http://www.example.com/start.html",
                          "user_agent": "Mozilla/4.08 [en] (Win98; I ;Nav)", "v": 1}, book)
        self.assertEqual(["host", "logname", "user", "time", "request", "path", "status", "response_size", "referrer",
                          "user_agent", "v"], list(book))
        self.assertIs(int, type(book["status"]))
        self.assertEqual("Int64", type(book["response_size"]).__name__)
        self.assertEqual((None, None, None, datetime.datetime(2024, 2, 29, 18, 29, 59)),
                         (slow["request"], slow["path"], slow["referrer"], slow["time"]))
        self.assertEqual(("/a", 999, 70368744177664, None),
                         (last["path"], last["status"], last["response_size"], last["referrer"]))

    def test_odd_bytes(self):
        self.configure()
        self.write("a.log", b'h - - [01/Jan/2026:00:00:00 +0000] "GET /\xc3\xbc\\xc3\\xa9\xff\\"% HTTP/1.1" 200 1 "\\t\\x00" "'
                   + b"\xf0" * 9000 + b'"\n')
        self.count("a.log")
        one = self.base["raw.access"].find_one()
        self.assertEqual("/\u00fc\u00e9%FF\"%", one["path"])
        self.assertEqual("%09%00", one["referrer"])
        self.assertEqual("%F0" * 9000, one["user_agent"])

    def test_chosen_fields(self):
        log = traffic(self.dice, 50)
        self.configure("[host, time, path, referrer, user_agent]")
        self.write("a.log", log)
        self.count("a.log")
        chosen = {"host", "time", "path", "referrer", "user_agent", "v"}
        self.assertEqual({offset: {name: value for name, value in one.items() if name in chosen}
                          for offset, one in documents_of(log)}, self.stored())

    def test_metric_events(self):
        events = [[{"name": "load", "ts": 1286720242.5, "value": 0.25, "tags": {"userid": "rick", "zip": "00123", "n": "-17", "r": "1.10"}},
                   {"name": "load", "ts": 1286720243, "value": -3, "tags": {}}],
                  {"name": "\u00fc\n", "ts": 1286720244, "value": 1e3, "tags": {"userid": "ann"}}]
        self.write("tallyd.yaml", b"sources: {m: {decode: [metric], raw: all}}\n"
                   b"reports: {gauges: {by: [name, userid, zip, n, r], measures: {now: last(value)}}}\n")
        self.write("m.json", "".join(json.dumps(one) + "\n" for one in events).encode())
        self.count("m.json")
        at = datetime.datetime(2010, 10, 10, 14, 17, 22, 500000)
        after = json.dumps(events[0]).__len__() + 1
        found = {one.pop("_id").split("//")[1]: one for one in self.base["raw.m"].find()}
        self.assertEqual({"0" * 19: {"name": "load", "value": 0.25, "userid": "rick", "zip": "00123", "n": -17, "r": "1.10", "time": at, "v": 1},
                          "0" * 19 + ".000001": {"name": "load", "value": -3, "v": 1,
                                                 "time": at + datetime.timedelta(seconds=0.5)},
                          f"{after:019}": {"name": "\u00fc%0A", "value": 1000, "userid": "ann", "v": 1,
                                           "time": at + datetime.timedelta(seconds=1.5)}}, found)

    def test_late_and_filtered_events_are_there_and_a_dry_run_stores_none(self):
        log = traffic(self.dice, 40)
        self.configure()
        self.write("a.log", log)
        self.tallyd(*self.arguments("a.log"), "--dry-run")
        self.assertEqual([], self.base.list_collection_names())
        self.count("a.log")
        self.check_raw(log)
        self.count("a.log")
        self.check_raw(log)

    def test_another_store_is_refused(self):
        self.configure()
        self.write("a.log", BOOK.encode())
        for store in ("sqlite:tallyd.db", "mem:"):
            self.tallyd("import", "-c", "tallyd.yaml", "--store", store, "a.log", status=EX_CONFIG)
            self.assertRegex(self.err, r"sources\.access\.raw.*store\.url")


class Admin(RawCase):
    def admin(self, *arguments):
        return self.tallyd("admin", *arguments, "-c", "tallyd.yaml", "--store", self.store)

    def test_indexes(self):
        """The printed commands are those that are carried out, once."""
        self.configure(growth="ttl 7d")
        out = self.admin("indexes")
        for row in ('{ "path" : 1 }, { "name" : "tallyd_path" }', '{ "host" : 1, "time" : 1 }, { "name" : "tallyd_host_time" }',
                    '{ "time" : 1 }, { "name" : "tallyd_time", "expireAfterSeconds" : 604800 }'):
            self.assertIn(f'.getCollection("raw.access").createIndex({row})\n', out)
        self.assertEqual(3, self.admin("indexes", "--apply").count("raw.access: tallyd_"))
        made = self.base["raw.access"].index_information()
        self.assertEqual({"_id_", "tallyd_path", "tallyd_host_time", "tallyd_time"}, set(made))
        self.assertEqual(604800, made["tallyd_time"]["expireAfterSeconds"])
        self.assertEqual(3, len(re.findall("^// raw.access: .*; is there$", self.admin("indexes"), re.M)))
        self.write("a.log", BOOK.encode())
        self.count("a.log")
        self.assertEqual(made, self.base["raw.access"].index_information())

    def test_only_of_fields_that_are_kept(self):
        self.configure("[time, status]")
        self.admin("indexes", "--apply")
        self.assertEqual({"_id_", "tallyd_time"}, set(self.base["raw.access"].index_information()))

    def test_shard_keys(self):
        self.configure()
        self.assertIn(f'sh.shardCollection("{self.name}.raw.access", {{ "host" : 1, "time" : 1 }})', self.admin("shard"))
        self.configure("[path]")
        self.assertIn(f'sh.shardCollection("{self.name}.raw.access", {{ "_id" : "hashed" }})', self.admin("shard"))
        self.configure(growth="capped 1MiB")
        self.assertIn("// raw.access: not sharded: a capped collection cannot be", self.admin("shard"))
        self.assertIn("// raw.access: with its indexes made by `run`", self.admin("indexes"))


class Exact(RawCase, DaemonCase):
    """Each parsed event is there once."""

    def test_killed_at_every_place(self):
        log = traffic(self.dice, 1000)
        self.write("a.log", log)
        self.configure(w="majority")
        for place in ("raw.inserted", "mongo.logged", "mongo.committed", "mongo.applying", "mongo.applied", "mongo.done"):
            with self.subTest(place=place):
                self.anew()
                for times in (1, 2):
                    process = self.begin("a.log", env=dying_at(f"{place}:{times}"))
                    self.end(process, EX_OK, KILLED)
                self.finish("a.log")
                self.check_raw(log)

    def test_killed_anywhere(self):
        log = traffic(self.dice, 4000)
        self.write("a.log", log)
        self.configure()
        for _ in range(ROUNDS):
            self.anew()
            for _ in range(3):
                place = draw_death(self.dice, failpoints("raw.", "mongo."), 8)
                self.end(self.begin("a.log", env=dying_at(place)), EX_OK, KILLED)
            self.finish("a.log")
            self.check_raw(log)

    def test_broken_connections(self):
        log = traffic(self.dice, 1500)
        self.write("a.log", log)
        self.configure()
        with proxy.Proxy(self.server.port) as between:
            self.count("a.log", url=f"mongodb://127.0.0.1:{between.port}/{self.name}")
            sent = between.commands["insert", "raw.access"]
        self.assertGreater(sent, 3)
        for lost in (("insert", "raw.access"), None):
            self.anew()
            url = f"/{self.name}{SHORT}"
            plan = ((lambda: proxy.Fault(lose=lost)) if lost else
                    (lambda: proxy.Fault(self.dice.choice(["reset", "close"]), up=self.dice.randrange(400_000))))
            with proxy.Proxy(self.server.port, plan) as between:
                for _ in range(4):
                    process = self.begin("a.log", url=f"mongodb://127.0.0.1:{between.port}{url}")
                    self.end(process, EX_OK, *PASSING)
            self.finish("a.log")
            self.check_raw(log)

    def test_a_server_that_refuses_for_a_while(self):
        if not self.FAIL_COMMAND:
            self.skipTest("the server cannot be told to fail")
        log = traffic(self.dice, 300)
        self.write("a.log", log)
        self.configure()
        for failure in ({"errorCode": 10107}, {"writeConcernError": {"code": 64, "errmsg": "waiting for replication timed out"}}):
            self.anew()
            self.client.admin.command({"configureFailPoint": "failCommand", "mode": {"times": 1},
                                       "data": {"failCommands": ["insert"], **failure}})
            self.assertNotEqual(EX_OK, self.tallyd(*self.arguments("a.log"), status=None) and self.status)
            self.finish("a.log")
            self.check_raw(log)

    def lose_before(self, command, collection):
        """Documents are lost while this command is refused."""
        def answer(piece):
            if not any(one.get(command) == collection for _, one in commands_in([piece])):
                return None
            return proxy.replied(piece, bson.encode({"ok": 0.0, "code": 10107, "errmsg": "not primary"}))

        self.anew()
        self.put_between()
        self.write("tallyd.yaml", self.read("tallyd.yaml").replace(b"path: a.log", b"path: a.log, raw: all"))
        log = traffic(self.dice, 21)
        first = log.index(b"\n") + 1
        self.write("a.log", log[:first])
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(1)
        self.between.answer = answer
        self.append("a.log", log[first:])
        self.wait_for(lambda: self.base["raw.access"].count_documents({}), lambda found: found == 21)
        self.base["raw.access"].delete_many({})
        self.wait_for(lambda: self.base["raw.access"].count_documents({}), lambda found: found == 20)
        self.between.answer = lambda _: None
        self.wait_for_consumed(21)
        self.stop()
        self.assertEqual(dict(documents_of(log)[1:]), self.stored())

    def test_lost_before_the_seal(self):
        """As with a primary that alone had them, and is gone: they are there again before the next try."""
        for command in (("insert", "batches"), ("update", "ledger")):
            with self.subTest(command=command):
                self.lose_before(*command)

    def test_many_chunks(self):
        """A batch of more chunks than connections, of default sizes: they end by their length, or by a later period."""
        lines = []
        for number in range(CHUNKED_LINES):
            at = datetime.datetime(2026, 1, 5) + datetime.timedelta(seconds=number * 9 * 86400 // CHUNKED_LINES)
            lines.append(LINE % (number % 20, "-", at.day, "Jan", at.year, at.hour, at.minute, at.second, f"/{number % 20}.html", 200,
                                 number, "-", "x" * self.dice.randrange(3000)))
        log = "".join(lines).encode()
        self.write("a.log", log)
        expected, days = dict(documents_of(log)), collections.defaultdict(dict)
        for offset, one in expected.items():
            days[f"raw.access.{one['time']:%Y%m%d}"][offset] = one
        for growth, collections_of in (("forever", {"raw.access": expected}), ("collection per day", days)):
            self.anew()
            self.write("tallyd.yaml", f"""\
sources: {{access: {{raw: all, raw_growth: {growth}}}}}
reports: {{site: {{}}}}
aggregate: {{batch_time: 1h}}
""".encode())
            self.count("a.log")
            for name, documents in collections_of.items():
                self.assertTrue(documents == self.stored(name), f"{growth}: {name} has other documents")  # too many to print


class Concern(RawCase):
    def heard(self, **more):
        """The inserts of raw events that reach a server, as (flags, command)."""
        self.anew()
        self.configure(**more)
        heard = []
        with proxy.Proxy(self.server.port, heard=heard) as between:
            self.count("a.log", url=f"mongodb://127.0.0.1:{between.port}/{self.name}")
        found = [one for one in commands_in(heard) if one[1].get("insert") == "raw.access"]
        self.assertEqual(1, len(found))
        self.wait_until(lambda: self.base["raw.access"].count_documents({}) == 3)
        return found[0]

    def test_reaches_the_server(self):
        self.write("a.log", traffic(self.dice, 3))
        for more, expected in (({}, (1, True)), ({"w": "majority"}, ("majority", True)), ({"w": 1, "j": "false"}, (1, False))):
            _, command = self.heard(**more)
            self.assertEqual(expected, (command["writeConcern"]["w"], command["writeConcern"]["j"]))
            self.assertIs(False, command["ordered"])

    def test_more_members_than_there_are(self):
        """Found at start, before anything is counted."""
        self.write("a.log", BOOK.encode())
        self.configure(w=50)
        if IS_FERRET:
            self.skipTest("FerretDB takes any number")
        self.tallyd(*self.arguments("a.log"), status=EX_CONFIG)
        self.assertRegex(self.err, r"sources\.access\.raw_w: 50")
        self.assertEqual({}, self.nexts())

    def test_no_right_to_write(self):
        if not self.FAIL_COMMAND:
            self.skipTest("the server cannot be told to fail")
        self.write("a.log", BOOK.encode())
        self.configure(growth="collection per day")
        self.client.admin.command({"configureFailPoint": "failCommand", "mode": {"times": 1},
                                   "data": {"failCommands": ["delete"], "errorCode": 13}})
        self.tallyd(*self.arguments("a.log"), status=EX_NOPERM)
        self.assertEqual([], [name for name in self.base.list_collection_names() if name.startswith("raw.")])

    def test_none_is_not_waited_for(self):
        self.write("a.log", traffic(self.dice, 3))
        if IS_FERRET:  # it answers
            self.configure(w=0)
            self.tallyd(*self.arguments("a.log"), status=EX_CONFIG)
            self.assertIn("raw_w", self.err)
            return
        flags, command = self.heard(w=0)
        self.assertEqual({"w": 0}, command["writeConcern"])
        self.assertEqual(2, flags & 2, "it asks for a reply")


class Refused(RawCase, DaemonCase):
    """Documents that the server refuses are counted, and stop nothing. The log names the first few, and says why."""

    def refused(self, log, bad):
        """The events of `bad` offsets are refused, all others are there, and all are counted."""
        for offset in bad:
            self.assertRegex(self.err, rf"raw_refused source=access id=\S*{offset:019}\S* error=.*\S")
        expected = dict(documents_of(log))
        self.assertEqual({offset: one for offset, one in expected.items() if offset not in bad}, self.stored())
        self.assertEqual(1, self.base["books"].count_documents({"entries.parsed": len(expected)}))

    def test_by_a_validator(self):
        log = traffic(self.dice, 60)
        status = [offset for offset, one in documents_of(log) if one["status"] == 500]
        self.write("a.log", log)
        self.configure()
        self.base.create_collection("raw.access", validator={"$jsonSchema": {"properties": {"status": {"maximum": 499}}}})
        if IS_FERRET:
            self.skipTest("FerretDB checks nothing that is inserted")
        out = self.count("a.log")
        self.assertRegex(out, rf"stored {60 - len(status)}, refused {len(status)},")
        self.assertEqual(60 - len(status), self.base["raw.access"].count_documents({}))
        self.assertEqual(0, self.base["raw.access"].count_documents({"status": 500}))

    def test_by_a_unique_index(self):
        first, second = "a" * 30, "b" * 30
        log = b"".join(traffic(self.dice, 1, agent=agent) for agent in (first, second, first, second, "c", first))
        self.write("a.log", log)
        self.configure()
        self.base["raw.access"].create_index("user_agent", unique=True)
        self.assertRegex(self.count("a.log"), "stored 3, refused 3,")
        self.refused(log, [offset for offset, _ in documents_of(log)][2:4] + [documents_of(log)[5][0]])

    def count_by_code(self, code, times):
        """An import of three events. The first is not taken, for this reason, so many times; the server does not hear of them. How
        often it was said."""
        said = []

        def answer(piece):
            if len(said) == times or not any(one.get("insert") == "raw.access" for _, one in commands_in([piece])):
                return None
            said.append(code)
            return proxy.replied(piece, bson.encode({
                "n": 2, "ok": 1.0, "writeErrors": [{"index": 0, "code": code, "errmsg": "not now"}]}))

        self.anew()
        with proxy.Proxy(self.server.port, answer=answer) as between:
            process = self.begin("a.log", url=f"mongodb://127.0.0.1:{between.port}/{self.name}")
            self.out = self.end(process, EX_OK, *PASSING)
        return len(said)

    def test_a_code_that_passes(self):
        """Known to pass or not, the document is there in the end."""
        log = traffic(self.dice, 3)
        self.write("a.log", log)
        self.configure()
        for code in (PASSING_CODE, UNKNOWN_CODE):
            with self.subTest(code=code):
                self.assertEqual(1, self.count_by_code(code, 1))
                self.finish("a.log")
                self.check_raw(log)

    def test_a_code_that_stays(self):
        """Known to stay or not, it stops nothing."""
        self.write("a.log", traffic(self.dice, 3))
        self.configure()
        for code, tries in ((FINAL_CODE, 1), (UNKNOWN_CODE, TRIES)):
            with self.subTest(code=code):
                self.assertEqual(tries, self.count_by_code(code, 100))
                self.assertRegex(self.out, "stored 2, refused 1,")
                self.assertRegex(self.out, f"event=raw_refused source=access .*not now .code {code}")

    def test_many_are_shown_by_a_few(self):
        """The log has some of them, and how many it does not show."""
        log = traffic(self.dice, 12, agent="same")
        self.write("a.log", log)
        self.configure()
        self.base["raw.access"].create_index("user_agent", unique=True)
        self.assertRegex(self.count("a.log"), "stored 1, refused 11,")
        self.assertEqual(1, self.base["raw.access"].count_documents({}))
        self.assertEqual(5, len(re.findall("event=raw_refused ", self.err)))
        self.assertIn("event=raw_refused_in_batch source=access refused=11 shown=5", self.err)

    def test_a_batch_that_is_repeated_refuses_the_same(self):
        log = b"".join(traffic(self.dice, 1, agent=agent) for agent in "abacc")
        self.write("a.log", log)
        self.configure()
        self.base["raw.access"].create_index("user_agent", unique=True)
        process = self.begin("a.log", env=dying_at("raw.inserted"))
        self.end(process, KILLED)
        self.assertRegex(self.count("a.log"), "stored 3, refused 2,")
        self.assertEqual(3, self.base["raw.access"].count_documents({}))

    def test_metrics(self):
        self.write("tallyd.yaml", f'''store: {{url: "{self.store}"}}
sources: {{access: {{path: a.log, raw: all}}}}
http: {{listen: "127.0.0.1:0"}}
aggregate: {{flush: 100ms}}
'''.encode())
        log = b"".join(traffic(self.dice, 1, agent=agent) for agent in "abacc")
        self.write("a.log", log)
        self.base["raw.access"].create_index("user_agent", unique=True)
        self.launch("-c", "tallyd.yaml")
        self.wait_for(lambda: self.base["raw.access"].count_documents({}), lambda found: found == 3)
        self.wait_for(lambda: self.get("/metrics"), lambda text: 'tallyd_raw_refused_total{source="access"} 2' in text)
        self.assertIn('tallyd_raw_stored_total{source="access"} 3', self.get("/metrics"))
        self.assertIn('tallyd_raw_expired_total{source="access"} 0', self.get("/metrics"))
        self.stop()


class Questions(RawCase):
    """Those of the literature, as anybody would ask them."""

    def setUp(self):
        super().setUp()
        log = traffic(self.dice, 600, agent="-")
        self.write("a.log", log)
        self.configure()
        self.count("a.log")
        self.events = [one for _, one in documents_of(log)]
        self.raw = self.base["raw.access"]

    def times(self, found):
        return sorted((one["time"], one["host"], one["path"]) for one in found)

    def test_by_path(self):
        self.assertEqual(self.times(one for one in self.events if one["path"] == "/7.html"),
                         self.times(self.raw.find({"path": "/7.html"})))

    def test_by_time_and_host(self):
        begin, end = datetime.datetime(2026, 1, 5, 12), datetime.datetime(2026, 1, 6, 18)
        within = [one for one in self.events if begin <= one["time"] < end]
        self.assertEqual(self.times(within), self.times(self.raw.find({"time": {"$gte": begin, "$lt": end}})))
        of_host = [one for one in within if one["host"] == "198.51.100.7"]
        question = {"host": "198.51.100.7", "time": {"$gte": begin, "$lt": end}}
        self.assertEqual(self.times(of_host), self.times(self.raw.find(question)))

    def test_requests_per_path_and_day(self):
        begin, end = datetime.datetime(2026, 1, 5), datetime.datetime(2026, 1, 7)
        expected = collections.Counter((one["path"], one["time"].day) for one in self.events if begin <= one["time"] < end)
        found = self.raw.aggregate([
            {"$match": {"time": {"$gte": begin, "$lt": end}}},
            {"$group": {"_id": {"path": "$path", "day": {"$dayOfMonth": "$time"}}, "hits": {"$sum": 1}}}])
        self.assertEqual(dict(expected), {(one["_id"]["path"], one["_id"]["day"]): one["hits"] for one in found})

    def test_fewer_entries_where_equality_comes_first(self):
        """The index {host, time} has those of the answer together; where the server says what it looked at."""
        question = {"host": "198.51.100.7", "time": {"$gte": datetime.datetime(2026, 1, 5, 12)}}
        explain = {"explain": {"find": "raw.access", "filter": question}, "verbosity": "executionStats"}
        try:
            stats = self.base.command(explain).get("executionStats", {})
        except pymongo.errors.PyMongoError as error:
            self.skipTest(f"the server does not explain: {error}")
        if "totalKeysExamined" not in stats or stats["nReturned"] != self.raw.count_documents(question):
            self.skipTest(f"the server does not say how many entries it looked at: {stats}")
        self.assertLessEqual(stats["totalKeysExamined"], stats["nReturned"] + 2)

    def test_indexes(self):
        found = {tuple(key for key, _ in index["key"]) for index in self.raw.index_information().values()}
        self.assertEqual({("_id",), ("path",), ("host", "time"), ("time",)}, found)


if __name__ == "__main__":
    main()
