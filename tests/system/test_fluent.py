#!/usr/bin/env python3
"""MessagePack over a real Kafka, as Fluent Bit writes it there: [time, record], with the time of Fluentd's own logger. The encoder is
MessagePack's own. The judge made the records, so it knows what they say. The seed is printed; TALLYD_SEED repeats a run."""

import collections

from harness import dice
from kafkacase import KafkaCase, main

import fluentd  # beside kafka
import process

SPAN = ("2026-01-05", "2026-01-06")
BEGIN_NS, SOME_NS, S_NS = 1767571200 * 10**9, 8 * 3600 * 10**9, 10**9
REPORTS = """reports:
  requests: {by: [path, status, user, region, hour_of_day], measures: {n: count, size: sum(bytes), seconds: sum(duration)}}
"""
BY = ["path", "status", "user", "region", "hour_of_day"]


class Fluent(KafkaCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.wanted = collections.defaultdict(lambda: [0, 0, 0])
        self.broken = 0

    def record(self):
        """(a record, its row, its sizes and its millionths of seconds)."""
        choice = self.dice.choice
        path, status, user, region = choice(["/a", "/b c", "/\u00e4\"\\"]), choice([200, 404, 503]), choice(["-", "anna", "x\ny"]), choice(["-", "eu"])
        size, micro = choice([0, 127, 128, 70000, 1 << 33]), choice([0, 250000, -1500000, 3000000])
        record = {"path": path, "status": choice([status, str(status)]), "bytes": size, "duration": micro / 10**6,
                  "log": {"deep": [None, True, 1.5, {"a": b"\xff"}]}, "n" * choice([1, 40, 300]): "x" * choice([0, 40, 300, 70000])}
        if user != "-":
            record["user"] = choice([user, user.encode()])
        if region != "-":
            record["region"] = region
        items = list(record.items())
        self.dice.shuffle(items)
        return dict(items), [path, str(status), user.replace("\n", "%0A"), region], size, micro

    def message(self):
        from fluent import sender
        import msgpack
        record, row, size, micro = self.record()
        at = BEGIN_NS + self.dice.randrange(SOME_NS)
        second = at // S_NS
        event_time = sender.EventTime.from_unix_nano(at)
        value = self.dice.choice([[event_time, record], [[event_time, {}], record], [[event_time, {"meta": 1}], record], [second, record],
                                  [float(second), record], [msgpack.Timestamp(second, at % S_NS), record]])
        packed = msgpack.packb(value, use_bin_type=self.dice.random() < 0.8)
        if self.dice.random() < 0.05:
            self.broken += 1
            return packed[:self.dice.randrange(1, len(packed))]
        cell = self.wanted[(*row, f"{at // (3600 * S_NS) % 24:02}")]
        for place, more in enumerate([1, size, micro]):
            cell[place] += more
        return packed

    def test_records_are_counted_by_their_members(self):
        topic, count = self.new_topic(2), 2000
        producer = self.broker.producer()
        for number in range(count):
            producer.send(topic, number % 2, self.message())
        producer.flush()
        producer.close()
        self.configure({topic: "decode: [msgpack, json], time: '/@timestamp'"}, REPORTS)
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", count)
        self.stop()
        self.check_books()
        self.assertEqual(self.broken, self.book(f"kafka:{topic}", "rejected.msgpack"))
        got = collections.defaultdict(lambda: [0, 0, 0])  # a ranking has no zeros
        for place, (measure, scale) in enumerate([("n", 1), ("size", 1), ("seconds", 10**6)]):
            for row in self.query("requests", "--measure", measure, "--top", "1000", span=SPAN):
                got[tuple(row[name] for name in BY)][place] = round(float(row["value"]) * scale)
        self.assertEqual(dict(self.wanted), dict(got))
        self.verify()


if __name__ == "__main__":
    process.provided(fluentd.provide)
    main()
