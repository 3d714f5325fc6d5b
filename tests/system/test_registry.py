#!/usr/bin/env python3
"""Messages of Avro by a schema registry, between a real Kafka broker and a store: each is counted once, whoever dies, and whether
the registry is there or not. fastavro writes them; a recount in Python judges.

TALLYD_ROUNDS (3 by default) says how often the daemon is killed by chance.
"""

import base64
import collections
import datetime
import decimal
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import uuid

import kafkacase
import process
import schemas
from harness import EX_CONFIG, EX_NOINPUT, EX_USAGE, dice
from kafkacase import Feed, KafkaCase, main
from registrycase import VERSIONS, AvroFeed, encoded

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 3)
MIDNIGHT = datetime.datetime(2026, 1, 5, tzinfo=datetime.timezone.utc)

EVENT = {"type": "record", "name": "Event", "namespace": "org.example", "fields": [
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "request", "type": {"type": "record", "name": "Request", "fields": [
        {"name": "uri", "type": "string"}, {"name": "method", "type": {"type": "enum", "name": "Method",
                                                                       "symbols": ["GET", "POST", "PUT"]}}]}},
    {"name": "shop", "type": ["null", "string"], "default": None},
    {"name": "price", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}]},
    {"name": "ratio", "type": "double"},
    {"name": "small", "type": "float"},
    {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "labels", "type": {"type": "map", "values": "string"}},
    {"name": "codes", "type": {"type": "array", "items": "int"}},
    {"name": "parent", "type": ["null", "Event"], "default": None},
    {"name": "mark", "type": {"type": "fixed", "name": "Mark", "size": 2}},
    {"name": "ok", "type": "boolean"}]}
EVENT_SOURCE = ("decode: [avro, json], time: /at, fields: {path: /request/uri, method: /request/method, shop: /shop, price: /price, "
                "ratio: /ratio, small: /small, id: /id, day: /day, kind: /labels/kind, code: /codes/1, above: /parent/request/uri, "
                "mark: /mark, ok: /ok}")
DIMENSIONS = {"one": ["path", "method", "shop", "id", "day"], "two": ["kind", "code", "above", "mark", "ok"]}
EVENT_REPORTS = "reports:\n" + "".join(
    f"  {name}: {{by: [{', '.join(by)}], measures: {{hits: count, price: sum(price), ratio: sum(ratio), small: sum(small)}}}}\n"
    for name, by in DIMENSIONS.items())


class Registered(KafkaCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.registry = schemas.Registry()
        self.addCleanup(self.registry.close)

    def configure_registry(self, sources, more="", options="retry_max: 300ms", **rest):
        self.configure(sources, f"registry: {{url: \"{self.registry.url}\", {options}}}\n{more}", **rest)

    def metric(self, name):
        return int(re.search(rf"^tallyd_{name} (\d+)$", self.get_reply("/metrics")[1], re.M)[1])

    def wait_ready(self, status):
        return self.wait_for(lambda: self.get_reply("/readyz"), lambda found: found[0] == status)[1]


class Exact(Registered):
    """The counts, and the position."""

    def test_three_versions(self):
        feed = AvroFeed(self, self.registry, bad=0.05)
        feed.send(3000, seconds=600)
        self.configure_registry([feed])
        self.run_daemon()
        self.check_all(feed)
        self.assertEqual(sorted(set(self.registry.asked)), [f"/schemas/ids/{number}" for number in feed.ids])
        self.assertNotIn("schema_waits", self.said())
        rejected = {entry: self.book(feed.source, f"rejected.{entry}") for entry in ("schema", "host", "avro")}
        self.assertTrue(rejected["schema"] > 0 and rejected["avro"] == 0, rejected)

    def test_killed_while_the_registry_comes_and_goes(self):
        feed, plain = AvroFeed(self, self.registry), Feed(self, 2)
        self.configure_registry([feed, plain])
        for _ in range(ROUNDS):
            self.registry.go()
            feed.send(self.dice.choice([20, 2000]), seconds=60)
            plain.send(200, seconds=60)
            feed.flush()
            self.run_daemon()
            self.wait_counted(plain)  # it does not wait for others
            self.wait_for_log("event=schema_waits ")
            if self.dice.random() < 0.3:
                self.kill()
                self.check_prefix(feed, plain)
                self.run_daemon()
            self.registry.come()
            time.sleep(self.dice.random() * 0.6)
            feed.send(self.dice.choice([1, 300]), seconds=60)
            time.sleep(self.dice.random() * 0.3)
            self.kill()
            self.check_prefix(feed, plain)
        self.run_daemon()
        self.check_all(feed, plain)

    def test_unknown_id(self):
        """It holds back its own partition, which is told; the others go on."""
        feed = AvroFeed(self, self.registry, partitions=3)
        feed.send(300, seconds=60)
        feed.flush()
        late = self.registry.schemas.pop(3)
        first = {partition: next((at for at, entry in enumerate(log) if entry.raw.startswith(b"\0\0\0\0\3")), len(log))
                 for partition, log in enumerate(feed.logs)}
        self.configure_registry([feed])
        self.run_daemon()
        self.wait_for(lambda: self.nexts(feed.source), lambda found: found == {p: at for p, at in first.items() if at})
        why = self.wait_ready(503)
        self.assertRegex(why, r"messages wait for their schema: schema 3 \(topic=\S+ partition=\d offset=\d+\): \S+ answers with "
                              r"status 404: Schema not found")
        self.assertEqual(1, self.metric("schemas_waiting"))
        self.assertGreater(self.metric("schema_failures_total"), 0)
        self.assertIn("messages wait for their schema", self.get_reply("/api/v1/status")[1])
        time.sleep(1)  # several attempts
        self.assertEqual(1, self.said().count("event=schema_waits "))
        self.assertEqual(first, {**dict.fromkeys(first, 0), **self.nexts(feed.source)})
        self.assertEqual(0, self.book(feed.source, "rejected.schema") - sum(
            entry.raw.startswith(b"no") for partition, log in enumerate(feed.logs) for entry in log[:first[partition]]))
        self.registry.schemas[3] = late
        self.wait_for_log(r"event=schema_came id=3 .*waited_ms=\d+")
        self.wait_counted(feed)
        self.wait_ready(200)
        self.assertEqual(0, self.metric("schemas_waiting"))
        self.check_all(feed)

    def test_stopped_while_it_waits(self):
        feed = AvroFeed(self, self.registry)
        feed.send(500, seconds=60)
        feed.flush()
        self.registry.delay_s = 60
        self.configure_registry([feed], options="timeout: 10m")
        self.run_daemon()
        self.wait_for(lambda: self.registry.asked, bool)
        begun = time.monotonic()
        self.stop()
        self.assertLess(time.monotonic() - begun, 20)  # not once the registry answers
        self.check_prefix(feed)
        self.registry.delay_s = 0
        self.run_daemon()
        self.check_all(feed)

    def test_failing_in_every_way(self):
        feed = AvroFeed(self, self.registry)
        feed.send(500, seconds=60)
        feed.flush()
        self.registry.status = 500
        self.configure_registry([feed], options="timeout: 300ms, retry_max: 300ms")
        self.run_daemon()
        self.wait_for(lambda: self.get_reply("/readyz")[1], lambda found: "status 500: in trouble" in found)
        self.registry.status, self.registry.delay_s = None, 1
        self.wait_for(lambda: self.get_reply("/readyz")[1], lambda found: "does not answer" in found)
        self.registry.delay_s, good = 0, self.registry.schemas[2]
        self.registry.schemas[2] = {"schema": '{"type": "record"'}
        self.wait_for(lambda: self.get_reply("/readyz")[1], lambda found: "the Avro schema cannot be used" in found)
        self.registry.schemas[2] = {"nothing": 1}
        self.wait_for(lambda: self.get_reply("/readyz")[1], lambda found: "answers without a schema" in found)
        self.registry.schemas[2] = good
        self.check_all(feed)

    def test_schema_of_another_kind(self):
        topic = self.new_topic(1)
        self.registry.add(7, 'syntax = "proto3"; message A {}', kind="PROTOBUF")
        producer = self.broker.producer()
        producer.send(topic, 0, schemas.framed(7, b"\0"))
        producer.flush()
        self.configure_registry({topic: "decode: [avro, json]"})
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", 1)
        self.assertEqual(1, self.book(f"kafka:{topic}", "rejected.schema_kind"))
        self.stop()
        self.verify()


class Fields(Registered):
    def event(self):
        dice = self.dice
        request = {"uri": dice.choice(["/a", "/b?x=1", "/ü \"q\" \\"]), "method": dice.choice(["GET", "POST", "PUT"])}
        value = {"at": MIDNIGHT + datetime.timedelta(microseconds=dice.randrange(86400 * 10 ** 6)), "request": request,
                 "shop": dice.choice([None, "one", "two\n"]), "ratio": dice.choice([0.25, -3.0, 1e6]), "small": dice.choice([0.5, -2.25]),
                 "price": dice.choice([None, decimal.Decimal("-0.05"), decimal.Decimal("1234567.89"), decimal.Decimal(0)]),
                 "id": uuid.UUID(int=dice.randrange(3)), "day": datetime.date(2026, 1, 1 + dice.randrange(3)),
                 "labels": dice.choice([{}, {"kind": "k", "other": "o"}]), "codes": [1, dice.randrange(2), 3][:dice.randrange(4)],
                 "parent": None, "mark": b"ab", "ok": dice.random() < 0.5}
        if dice.random() < 0.3:
            value["parent"] = {**value, "request": {"uri": "/parent", "method": "GET"}}
        return value

    def settled(self, value):
        """The dimensions of an event, as reports have them."""
        return {"path": value["request"]["uri"].split("?")[0], "method": value["request"]["method"], "shop": value["shop"] and value["shop"].replace("\n", "%0A"),
                "id": str(value["id"]), "day": value["day"].isoformat(), "kind": value["labels"].get("kind"),
                "code": str(value["codes"][1]) if len(value["codes"]) > 1 else None,
                "above": value["parent"]["request"]["uri"] if value["parent"] else None,
                "mark": "ab", "ok": str(value["ok"]).lower()}

    def check_report(self, report, values):
        expected = collections.defaultdict(lambda: [0, 0, 0, 0])
        for value in values:
            settled = self.settled(value)
            row = expected[tuple(settled[name] or "-" for name in DIMENSIONS[report])]
            for i, more in enumerate((1, value["price"] or 0, decimal.Decimal(value["ratio"]), decimal.Decimal(value["small"]))):
                row[i] += more
        found = {tuple(row[name] for name in DIMENSIONS[report]):
                 [decimal.Decimal(row[name]) for name in ("hits", "price", "ratio", "small")]
                 for row in self.query(report, "--top", "1000", "--measure", "all", span=kafkacase.SPAN)}
        self.assertEqual(dict(expected), found)

    def test_every_type(self):
        topic = self.new_topic(2)
        values = [self.event() for _ in range(400)]
        self.registry.add(70000, EVENT)
        producer = self.broker.producer()
        for number, value in enumerate(values):
            producer.send(topic, number % 2, schemas.framed(70000, encoded(EVENT, value)))
        producer.flush()
        self.configure_registry({topic: EVENT_SOURCE}, EVENT_REPORTS)
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", len(values))
        self.assertEqual(len(values), self.book(f"kafka:{topic}", "parsed"))
        self.stop()
        self.verify()
        for report in DIMENSIONS:
            self.check_report(report, values)


    def test_reference(self):
        """A type that another subject defines; and that one refers on."""
        first, topic = EVENT["fields"][1]["type"], self.new_topic(1)
        whole = {**EVENT, "fields": [{**field, "type": "org.example.Request"} if field["name"] == "request" else field
                                     for field in EVENT["fields"]]}
        method = {**first["fields"][1]["type"], "namespace": "org.example"}
        request = {**first, "namespace": "org.example", "fields": [first["fields"][0], {"name": "method", "type": "Method"}]}
        self.registry.add_subject("of method/1", 3, method)
        self.registry.add_subject("request", 1, request, references=[("Method", "of method/1", 3)])
        self.registry.add(1, whole, references=[("Method", "of method/1", 3), ("Request", "request", 1)])
        values = [self.event() for _ in range(20)]
        producer = self.broker.producer()
        for value in values:
            producer.send(topic, 0, schemas.framed(1, encoded(EVENT, value)))
        producer.flush()
        self.configure_registry({topic: EVENT_SOURCE}, EVENT_REPORTS)
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", len(values))
        self.stop()
        self.check_report("one", values)
        self.assertEqual(3, len(self.registry.asked), self.registry.asked)

    def test_file(self):
        """A schema of a file, and messages that are data alone."""
        topic = self.new_topic(1)
        values = [self.event() for _ in range(20)]
        self.write("event.avsc", json.dumps(EVENT).encode())
        producer = self.broker.producer()
        for value in values:
            producer.send(topic, 0, encoded(EVENT, value))
        producer.send(topic, 0, encoded(EVENT, values[0]) + b"x")
        producer.flush()
        self.configure({topic: EVENT_SOURCE.replace("[avro, json]", "[{avro: event.avsc}, json]")}, EVENT_REPORTS)
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", len(values) + 1)
        self.assertEqual(1, self.book(f"kafka:{topic}", "rejected.avro"))
        self.stop()
        self.check_report("two", values)
        self.verify()


COMMON_PROTO = """syntax = "proto3";
package shop.common;
enum Method { GET = 0; POST = 1; PUT = 2; }
message Request { string uri = 1; Method method = 2; }
"""
# Fields are out of order, and there is each kind of comment, option and nesting.
EVENT_PROTO = """// shop
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "common.proto"; /* Request */
option java_package = "org.example; }";
message Outer {
  message First { reserved 2, 4 to 6; reserved "a"; string x = 1; }
  message Event {
    option deprecated = false;
    bool ok = 13;
    google.protobuf.Timestamp at = 1 [deprecated = true, json_name = "]"];
    common.Request request = 2;
    optional string shop = 3;
    optional double price = 4;
    double ratio = 5;
    float small = 6;
    google.protobuf.StringValue id = 7;
    oneof of_day { string day = 8; sint32 other_day = 300; }
    map<string, string> labels = 9;
    repeated int32 codes = 10;
    repeated string names = 14;
    Event parent = 11;
    bytes mark = 12;
    map<int32, Event> more = 15;
    uint64 large = 16;
    sint64 negative = 17;
    fixed32 fixed = 18;
    repeated sfixed64 fixeds = 19;
  }
  Event event = 1;
}
service Nothing { rpc Of (Outer) returns (Outer) {} }
"""
PROTO_SOURCE = EVENT_SOURCE.replace("[avro, json]", "[protobuf, json]")


class Protobuf(Fields):
    """The same events in Protobuf. Google's library for Python writes them, and Confluent's serialiser."""

    test_every_type = test_reference = test_file = None  # of Avro

    def setUp(self):
        super().setUp()
        try:
            schemas.install_confluent()
        except process.Missing as missing:
            self.skipTest(str(missing))
        self.write("common.proto", COMMON_PROTO.encode())
        self.write("event.proto", EVENT_PROTO.encode())
        if "event_pb2" not in sys.modules:  # a process may define a message once
            Protobuf.folder = tempfile.mkdtemp(prefix="tallyd-proto-")
            self.addClassCleanup(shutil.rmtree, Protobuf.folder)
            for name in "common.proto", "event.proto":
                shutil.copy(self.path(name), Protobuf.folder)
            schemas.compile_proto(Protobuf.folder, "common.proto", "event.proto")
        import event_pb2
        self.pb2 = event_pb2

    def message(self, value):
        message = self.pb2.Outer.Event(ratio=value["ratio"], small=value["small"], labels=value["labels"], codes=value["codes"],
                                       mark=value["mark"], ok=value["ok"], day=value["day"].isoformat(), names=["n", "m"],
                                       large=2 ** 64 - 1, negative=-2 ** 63, fixed=7, fixeds=[-1, 2])
        message.at.FromDatetime(value["at"])
        message.request.uri = value["request"]["uri"]
        message.request.method = ("GET", "POST", "PUT").index(value["request"]["method"])
        message.id.value = str(value["id"])
        if value["shop"] is not None:
            message.shop = value["shop"]
        if value["price"] is not None:
            message.price = float(value["price"])
        if value["parent"]:
            message.parent.CopyFrom(self.message({**value["parent"], "parent": None}))
            message.more[-5].CopyFrom(message.parent)
        return message

    def count(self, topic, values, sources, more, rejected=0):
        self.configure_registry(sources, EVENT_REPORTS + more)
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", len(values) + rejected)
        self.assertEqual((len(values), rejected),
                         (self.book(f"kafka:{topic}", "parsed"), self.book(f"kafka:{topic}", "rejected.protobuf")))
        self.stop()
        self.verify()
        for report in DIMENSIONS:
            self.check_report(report, values)

    def test_text_and_descriptor(self):
        """Text with a reference, as most registries have it; and what serialisers for Python register."""
        topic, values = self.new_topic(1), [self.event() for _ in range(300)]
        self.registry.add_subject("common.proto", 1, COMMON_PROTO)
        self.registry.add(1, EVENT_PROTO, kind="PROTOBUF", references=[("common.proto", "common.proto", 1)])
        packed = base64.b64encode(self.pb2.DESCRIPTOR.serialized_pb).decode()
        common = base64.b64encode(self.pb2.common__pb2.DESCRIPTOR.serialized_pb).decode()
        self.registry.add_subject("packed", 1, common)
        self.registry.add(2, packed, kind="PROTOBUF", references=[("common.proto", "packed", 1)])
        producer = self.broker.producer()
        for number, value in enumerate(values):
            producer.send(topic, 0, schemas.framed(1 + number % 2, b"\4\0\2" + self.message(value).SerializeToString()))
        for bad in b"\4\0\x08", b"", b"\4\0\2\xff", b"\4\0\2\x08\1", b"\1":
            producer.send(topic, 0, schemas.framed(1, bad))
        producer.flush()
        self.count(topic, values, {topic: PROTO_SOURCE}, "", rejected=5)

    def test_file(self):
        topic, values = self.new_topic(1), [self.event() for _ in range(50)]
        self.write("flat.proto", (EVENT_PROTO.replace("common.Request", "Request") + COMMON_PROTO.split(";", 2)[2]).encode())
        producer = self.broker.producer()
        for value in values:
            producer.send(topic, 0, self.pb2.Outer(event=self.message(value)).SerializeToString())
        producer.flush()
        source = PROTO_SOURCE.replace("[protobuf,", "[{protobuf: flat.proto},").replace(": /", ": /event/")
        self.count(topic, values, {topic: source}, "")

    def test_confluent_serialiser_and_apicurio(self):
        from confluent_kafka import schema_registry, serialization
        from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
        schemas.Apicurio.install()
        registry = schemas.Apicurio(self.path("registry")).start()
        self.addCleanup(registry.kill)
        self.registry.close()
        topic, values = self.new_topic(1), [self.event() for _ in range(50)]
        client = schema_registry.SchemaRegistryClient({"url": registry.url})
        write = ProtobufSerializer(self.pb2.Outer.Event, client, {"use.deprecated.format": False})
        context = serialization.SerializationContext(topic, serialization.MessageField.VALUE)
        producer = self.broker.producer()
        for value in values:
            producer.send(topic, 0, write(self.message(value), context))
        producer.flush()
        self.configure({topic: PROTO_SOURCE}, f"registry: {{url: \"{registry.url}\"}}\n" + EVENT_REPORTS)
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", len(values))
        self.stop()
        for report in DIMENSIONS:
            self.check_report(report, values)


class Settings(Registered):
    """Credentials of the registry, and the words of `check`."""

    def count_one(self, options, more=""):
        topic = self.new_topic(1)
        self.registry.add(9, EVENT)
        producer = self.broker.producer()
        value = Fields.event(self)
        producer.send(topic, 0, schemas.framed(9, encoded(EVENT, value)))
        producer.flush()
        self.configure_registry({topic: EVENT_SOURCE}, EVENT_REPORTS + more, options=options)
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", 1)
        self.assertNotIn("schema_waits", self.said())
        self.stop()

    def test_basic_authentication(self):
        self.registry.user, self.registry.password = "key", "Secret: of %/registry"
        self.write("password", b"Secret: of %/registry\n")
        self.count_one("user: key, password: file:password")
        self.write("password", b"another")
        self.assertIn("refuses the credentials (status 401)", self.tallyd("check", "-c", "tallyd.yaml"))
        shown = self.tallyd("check", "-c", "tallyd.yaml", "--print")
        self.assertIn('password: "file:password"', shown)

    def test_token(self):
        self.registry.token = "a.token-of" * 100
        self.count_one(f"token: {self.registry.token}")
        self.assertNotIn(self.registry.token, self.said() + self.tallyd("check", "-c", "tallyd.yaml", "--print"))

    def test_tls(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.path("key.pem"), "-out",
                        self.path("cert.pem")], check=True, stderr=subprocess.DEVNULL)
        self.registry = schemas.Registry((self.path("cert.pem"), self.path("key.pem")))
        self.addCleanup(self.registry.close)
        self.count_one("cacert: cert.pem")
        topic = self.configured[0]
        self.configure_registry({topic: EVENT_SOURCE}, EVENT_REPORTS)
        self.assertIn("is not trusted", self.tallyd("check", "-c", "tallyd.yaml"))

    def test_check_names_what_is_missing(self):
        topic = self.new_topic(1)
        self.configure_registry({topic: EVENT_SOURCE}, EVENT_REPORTS)
        self.assertNotIn("note", self.tallyd("check", "-c", "tallyd.yaml"))
        self.registry.go()
        self.assertIn("note: the schema registry cannot be reached", self.tallyd("check", "-c", "tallyd.yaml"))
        self.configure({topic: EVENT_SOURCE}, EVENT_REPORTS)
        self.tallyd("check", "-c", "tallyd.yaml", status=EX_CONFIG)
        self.assertIn("expected registry.url to say where it is", self.err)
        self.configure({topic: EVENT_SOURCE.replace("[avro,", "[{avro: none.avsc},")}, EVENT_REPORTS)
        self.tallyd("check", "-c", "tallyd.yaml", status=EX_NOINPUT)
        self.assertIn("cannot read the schema none.avsc", self.err)
        self.configure_registry({topic: EVENT_SOURCE}, EVENT_REPORTS)
        self.tallyd("explain", "-c", "tallyd.yaml", "a line", status=EX_USAGE)
        self.assertIn("has messages of avro, and a line is none", self.err)


class Real(KafkaCase):
    """With a registry that no one here wrote."""

    def test_apicurio(self):
        try:
            schemas.Apicurio.install()
            registry = schemas.Apicurio(self.path("registry")).start()
        except process.Missing as missing:
            self.skipTest(str(missing))
        self.addCleanup(registry.kill)
        self.dice = dice()
        ids = [registry.register(f"lines{number}", version) for number, version in enumerate(VERSIONS)]
        registry.register("request", {**EVENT["fields"][1]["type"], "namespace": "org.example"})
        by_reference = registry.register("event", {"type": "record", "name": "Of", "fields": [
            {"name": "request", "type": "org.example.Request"}]}, references=[("org.example.Request", "request", 1)])
        feed, topic = AvroFeed(self, None, ids=ids), self.new_topic(1)
        feed.send(1000, seconds=60)
        producer = self.broker.producer()
        producer.send(topic, 0, schemas.framed(by_reference, encoded(EVENT["fields"][1]["type"], {"uri": "/x", "method": "PUT"})))
        producer.flush()
        sources = {feed.topic: f"decode: [{feed.decode}]",
                   topic: "decode: [avro, json], time: broker, fields: {path: /request/uri}"}
        self.configure(sources, f"registry: {{url: \"{registry.url}\"}}\nreports: {{pages: {{by: [path], where: [path=/x]}}}}\n")
        self.run_daemon()
        self.wait_counted(feed)
        self.wait_consumed(f"kafka:{topic}", 1)
        self.stop()
        self.assertEqual(1, self.book(f"kafka:{topic}", "parsed"))
        recount = kafkacase.Recount(entry for log in feed.logs for entry in log)
        self.assertEqual(recount.hits, self.book(feed.source, "parsed"))
        self.verify()


if __name__ == "__main__":
    main()
