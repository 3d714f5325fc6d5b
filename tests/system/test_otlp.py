#!/usr/bin/env python3
"""OTLP as OpenTelemetry's own packages write it, in protobuf and JSON, over a real Kafka and from a file: each record of a log and each
data point is counted under its attributes. The judge made the messages, so it knows what they say. The seed is printed; TALLYD_SEED
repeats a run."""

import base64
import collections
import json
import struct
import subprocess

from harness import EX_DATAERR, dice
from kafkacase import KafkaCase, main

import otel  # beside kafka
import process

SPAN = ("2026-01-05", "2026-01-06")
BEGIN_NS = 1767571200 * 10**9
DAY_NS = 86400 * 10**9
REPORTS = """reports:
  requests: {where: ['name=-'], by: [service_name, method, path, status, severity], measures: {n: count, size: sum(bytes)}}
  values: {where: ['name!=-'], by: [name, service_name, path, type], measures: {n: count, total: sum(value)}}
"""
LINE = '198.51.100.7 - - [05/Jan/2026:10:00:00 +0000] "GET %s HTTP/1.1" 200 10 "-" "Mozilla/5.0"'


def any_of(value):
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue
    kinds = {bool: "bool_value", int: "int_value", float: "double_value", str: "string_value"}
    return AnyValue(**{kinds[type(value)]: value})


def pairs_of(attributes):
    from opentelemetry.proto.common.v1.common_pb2 import KeyValue
    return [KeyValue(key=key, value=any_of(value)) for key, value in attributes.items()]


def as_json(message):
    """As the specification of OTLP/JSON says: enums are numbers, identifiers hexadecimal."""
    from google.protobuf.json_format import MessageToDict
    made = MessageToDict(message, use_integers_for_enums=True)
    for resource in made.get("resourceLogs", []):
        for scope in resource.get("scopeLogs", []):
            for record in scope.get("logRecords", []):
                for name in {"traceId", "spanId"} & set(record):
                    record[name] = base64.b64decode(record[name]).hex()
    return json.dumps(made).encode()


class Otlp(KafkaCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.requests = collections.defaultdict(lambda: [0, 0])
        self.values = collections.defaultdict(lambda: [0, 0])
        self.rejects = collections.Counter()
        self.consumed = 0

    def encoded(self, message):
        return as_json(message) if self.dice.random() < 0.5 else message.SerializeToString()

    # ---- messages, and what they must count as

    def logs(self):
        from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
        dice, message = self.dice, LogsData()
        for _ in range(dice.randrange(3)):
            resource = message.resource_logs.add(schema_url="https://opentelemetry.io/schemas/1.30.0")
            service = dice.choice(["shop", "föö \"x\"\\", ""])
            resource.resource.attributes.extend(pairs_of({"service.name": service, "host.name": "web1", "n": 5}))
            for _ in range(dice.randrange(3)):
                scope = resource.scope_logs.add()
                scope.scope.name = "judge"
                for _ in range(dice.randrange(6)):
                    self.log(scope, service)
        return message

    def log(self, scope, service):
        dice, record = self.dice, scope.log_records.add()
        at, self.consumed = BEGIN_NS + dice.randrange(DAY_NS), self.consumed + 1
        if dice.random() < 0.1:
            record.severity_number = 9  # and no time
            self.rejects["member"] += 1
            return
        if dice.random() < 0.5:
            record.time_unix_nano, record.observed_time_unix_nano = at, at + DAY_NS
        else:
            record.observed_time_unix_nano = at
        is_old, has_query = dice.random() < 0.5, dice.random() < 0.5
        method, path, status, size = dice.choice(["GET", "POST"]), dice.choice(["/a", "/b c"]), dice.choice([200, 404]), dice.randrange(10**6)
        if is_old:
            found = {"http.method": method, "http.target": path + "?q=1" * has_query, "http.status_code": status,
                     "http.response_content_length": size}
        else:
            found = {"http.request.method": method, "url.path": path, "http.response.status_code": str(status),
                     "http.response.body.size": size, **({"url.query": "q=1"} if has_query else {})}
        items = list(found.items())
        dice.shuffle(items)
        record.attributes.extend(pairs_of(dict(items)))
        severity = dice.choice(["", "INFO", "Error"])
        record.severity_number, record.severity_text, record.trace_id = 17, severity, bytes(range(16))
        cell = self.requests[service, method, path, str(status), severity or "ERROR"]
        cell[0] += 1
        cell[1] += size

    def metrics(self):
        from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
        dice, message = self.dice, MetricsData()
        resource = message.resource_metrics.add()
        service = dice.choice(["shop", "bar"])
        resource.resource.attributes.extend(pairs_of({"service.name": service}))
        scope = resource.scope_metrics.add()
        for _ in range(dice.randrange(5)):
            kind = dice.choice(["gauge", "delta", "total", "level", "histogram"])
            metric = scope.metrics.add(name=f"my {kind}", unit="By")
            points = {"gauge": metric.gauge, "histogram": metric.histogram}.get(kind, metric.sum)
            if kind != "gauge":
                points.aggregation_temporality = 2 if kind in ("total", "level") else 1
            if kind in ("delta", "total"):
                points.is_monotonic = True
            self.points(points, kind, service)
            if kind == "total":
                self.rejects["cumulative"] += 1
                self.consumed += 1
        return message

    def points(self, metric, kind, service):
        dice = self.dice
        for _ in range(dice.randrange(1, 4)):
            path, micro = dice.choice(["/a", "-"]), dice.randrange(-10**9, 10**9)
            point = metric.data_points.add(time_unix_nano=BEGIN_NS + dice.randrange(DAY_NS))
            if path != "-":
                point.attributes.extend(pairs_of({"path": path}))
            if kind == "histogram":
                point.count, point.sum = 3, micro / 10**6
                self.value(f"my {kind}.count", service, path, kind, 3 * 10**6)
                self.value(f"my {kind}.sum", service, path, kind, micro)
                continue
            if dice.random() < 0.5:
                micro -= micro % 10**6
                point.as_int = micro // 10**6
            else:
                point.as_double = micro / 10**6
            if kind != "total":
                self.value(f"my {kind}", service, path, {"delta": "sum", "level": "gauge"}.get(kind, kind), micro)

    def value(self, name, service, path, kind, micro):
        self.consumed += 1
        cell = self.values[name, service, path, kind]
        cell[0] += 1
        cell[1] += micro

    # ---- what was counted

    def check(self):
        got = collections.defaultdict(list)
        by = ("service_name", "method", "path", "status", "severity")
        for measure in "n", "size":
            for row in self.query("requests", "--measure", measure, "--top", "1000", span=SPAN):
                got[tuple(row[name] for name in by)].append(int(row["value"]))
        self.assertEqual(dict(self.requests), dict(got))
        got = collections.defaultdict(list)
        for measure in "n", "total":
            for row in self.query("values", "--measure", measure, "--top", "1000", span=SPAN):
                got[row["name"], row["service_name"], row["path"], row["type"]].append(round(float(row["value"]) * (1 if measure == "n" else 10**6)))
        self.assertEqual(dict(self.values), dict(got))

    def check_rejects(self, source):
        for reason, count in self.rejects.items():
            self.assertEqual(count, self.book(source, f"rejected.{reason}"), reason)

    def test_records_and_points_over_kafka_are_counted_by_their_attributes(self):
        topic = self.new_topic(2)
        producer = self.broker.producer()
        for number in range(400):
            message = self.logs() if number % 2 else self.metrics()
            if number % 2 and not message.resource_logs:
                continue
            producer.send(topic, number % 2, self.encoded(message))
        producer.flush()
        producer.close()
        self.configure({topic: "decode: otlp"}, REPORTS)
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", self.consumed)
        self.stop()
        self.check_books()
        self.check_rejects(f"kafka:{topic}")
        self.check()
        self.verify()

    def test_lines_of_a_file_are_read_as_messages(self):
        lines = [as_json(message) for message in (self.logs() for _ in range(200)) if len(message.resource_logs) > 0]
        self.write("otlp.jsonl", b"\n".join(lines) + b"\n")
        self.write("tallyd.yaml", ("sources: {a: {path: otlp.jsonl, decode: otlp}}\n" + REPORTS).encode())
        said = self.tallyd("import", "-c", "tallyd.yaml", "otlp.jsonl")
        rejected = sum(self.rejects.values())
        self.assertIn(f"consumed {self.consumed:,} = rejected {rejected:,} + parsed {self.consumed - rejected:,}", said)
        self.check()
        self.assertIn(": 0 differences", self.tallyd("verify", "-c", "tallyd.yaml", "otlp.jsonl"))

    def test_files_of_messages_behind_their_lengths_are_refused(self):
        """As the Collector's file exporter writes them with `format: proto`, or with `compression: zstd`."""
        self.write("tallyd.yaml", b"sources: {otlp: {path: otlp.pb, decode: otlp}}\n" + REPORTS.encode())
        for _ in range(20):
            message = b""
            while not message:
                message = self.dice.choice([self.logs, self.metrics])().SerializeToString()
            self.write("otlp.pb", b"".join(struct.pack(">I", len(message)) + message for _ in range(3)))
            self.tallyd("import", "-c", "tallyd.yaml", "otlp.pb", status=EX_DATAERR)
            self.assertIn("has messages of OTLP in protobuf, expected lines: set format: json", self.err)
        packed = subprocess.run(["zstd", "-q"], input=message, stdout=subprocess.PIPE, check=True).stdout
        self.write("otlp.pb", struct.pack(">I", len(packed)) + packed)
        self.tallyd("import", "-c", "tallyd.yaml", "otlp.pb", status=EX_DATAERR)
        self.assertIn("remove compression, and set format: json", self.err)

    def test_what_an_sdk_exports_is_counted(self):
        """Deltas add up to what was counted; with its default, totals, nothing does."""
        from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
        from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
        from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
        from opentelemetry.sdk.resources import Resource
        topic, hits, seconds = self.new_topic(1), 0, 0
        producer = self.broker.producer()
        readers = [InMemoryMetricReader(preferred_temporality={kind: how for kind in (Counter, Histogram)})
                   for how in (AggregationTemporality.DELTA, AggregationTemporality.CUMULATIVE)]
        meter = MeterProvider(metric_readers=readers, resource=Resource({"service.name": "shop"})).get_meter("judge")
        counter, histogram = meter.create_counter("hits"), meter.create_histogram("seconds")
        for _ in range(5):
            for _ in range(self.dice.randrange(1, 10)):
                counter.add(2, {"path": "/a"})
                histogram.record(0.5)
                hits, seconds = hits + 2, seconds + 0.5
            for reader in readers:
                producer.send(topic, 0, encode_metrics(reader.get_metrics_data()).SerializeToString())
        producer.flush()
        producer.close()
        self.configure({topic: "decode: otlp"}, REPORTS + "limits: {future_max: 1d}\n")
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", 5 * (1 + 4) + 5 * 2)
        self.stop()
        self.assertEqual(10, self.book(f"kafka:{topic}", "rejected.cumulative"))
        rows = self.query("values", "--measure", "total", "--top", "100", span=("2020-01-01", "2100-01-01"))
        found = {row["name"]: float(row["value"]) for row in rows}
        self.assertEqual((hits, hits / 2, seconds), (found["hits"], found["seconds.count"], found["seconds.sum"]))

    def test_bodies_are_lines(self):
        from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
        topic, message = self.new_topic(1), LogsData()
        resource = message.resource_logs.add()
        resource.resource.attributes.extend(pairs_of({"service.name": "shop"}))
        scope = resource.scope_logs.add()
        for number in range(10):
            scope.log_records.add(time_unix_nano=BEGIN_NS, body=any_of(LINE % f"/{number % 2}"))
        producer = self.broker.producer()
        for value in message.SerializeToString(), as_json(message):
            producer.send(topic, 0, value)
        producer.flush()
        producer.close()
        self.configure({topic: "decode: [otlp, combined], fields: {service: 'tag:service.name'}"},
                       "reports: {pages: {by: [service, path]}}\n")
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", 20)
        self.stop()
        rows = self.query("pages", "--top", "10", span=SPAN)
        self.assertEqual({("shop", "/0"): 10, ("shop", "/1"): 10}, {(row["service"], row["path"]): int(row["value"]) for row in rows})


if __name__ == "__main__":
    process.provided(otel.provide)
    main()
