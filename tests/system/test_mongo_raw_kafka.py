#!/usr/bin/env python3
"""Events of a real Kafka broker as they are, in MongoDB: each record's once, under its offset, whatever the daemon dies of.

TALLYD_MONGO names the server. TALLYD_ROUNDS (3 by default) says how often the daemon is killed by chance. The seed is printed.
"""

import json
import os
import re
import time

import kafkacase
import mongocase
from kafkacase import Feed, in_envelope
from mongokafkacase import MongoKafkaCase

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 3)


class RawOfTopics(MongoKafkaCase):
    def setUp(self):
        super().setUp()
        self.feeds = (Feed(self, 3, "combined"), Feed(self, 2, "json:/message, combined", in_envelope))
        sources = {feed.topic: f"decode: [{feed.decode}], raw: [time, path, response_size]" for feed in self.feeds[:1]}
        sources[self.feeds[1].topic] = f"decode: [{self.feeds[1].decode}], raw: all, raw_growth: collection per month"
        self.configure(sources, f'store: {{url: "{self.url}"}}\n', member=", instance: one")

    def expected(self, feed):
        """{_id: (minute, path, size)} of the records of a topic."""
        return {f"kafka:{feed.topic}/{partition}/{offset:019}": (entry.minute, entry.path, entry.bytes)
                for partition, log in enumerate(feed.logs) for offset, entry in enumerate(log) if entry.minute is not None}

    def stored(self, pattern):
        found = {}
        for name in self.base.list_collection_names():
            if re.fullmatch(pattern, name):
                found.update((one["_id"], (60 * one["time"].hour + one["time"].minute, one["path"], one["response_size"]))
                             for one in self.base[name].find())
        return found

    def check_raw(self):
        plain, wrapped = self.feeds
        self.check_all(*self.feeds)
        self.assertEqual(self.expected(plain), self.stored(rf"raw\.{plain.topic}"))
        self.assertEqual(self.expected(wrapped), self.stored(rf"raw\.{wrapped.topic}\.\d{{6}}"))

    def test_killed(self):
        for number in range(ROUNDS):
            place = self.dice.choice(["raw.inserted", "mongo.logged", "mongo.committed", None])
            process = self.run_daemon(failpoint=place and f"{place}:{1 + self.dice.randrange(2)}", consuming=False)
            for _ in range(10 if place is None else 300):
                self.send(self.dice.choice([20, 300]))
                time.sleep(0.1)
                if process.poll() is not None:
                    break
            self.kill()
            print(f"round {number}: {place}")
        self.run_daemon()
        self.send(100)
        self.check_raw()

    def test_other_events_under_the_same_offsets_are_refused(self):
        """The broker has other records than those whose events are there already, which were never counted."""
        plain = self.feeds[0]
        self.run_daemon(failpoint="raw.inserted:1", consuming=False)
        plain.send(50)
        plain.flush()
        self.process.wait()
        there = self.stored(rf"raw\.{plain.topic}")
        self.assertTrue(there)
        plain.create_anew()
        plain.send(200)
        self.run_daemon()
        self.wait_counted(plain)
        self.stop()
        self.assertRegex(self.said(), rf"raw_refused source={plain.topic} id=\S+ error=.*another event has this _id")
        self.assertEqual({**self.expected(plain), **there}, self.stored(rf"raw\.{plain.topic}"))



class AnonymousRaw(MongoKafkaCase):
    """`anonymise: true` beside raw events: the judge looks for each address in every document of every collection."""

    LINE = ('{host} - - [05/Jan/2026:{at}:00 +0000] "GET /of/{host}/?ip={host} HTTP/1.1" 200 1 "http://{place}:80/{host}" '
            '"x {host}, {host}"')

    def address(self):
        """None ends in 0, as its network does."""
        dice = self.dice
        if dice.random() < 0.5:
            return f"203.0.{dice.randrange(100, 256)}.{dice.randrange(100, 256)}"
        return f"2001:db8:{dice.randrange(1, 1 << 16):x}:{dice.randrange(1, 1 << 16):x}::{dice.randrange(1, 1 << 16):x}"

    def produce(self, producer, topic, number, is_json):
        host = self.address()
        place, at = f"[{host}]" if ":" in host else host, f"{number // 60:02}:{number % 60:02}"
        value = self.LINE.format(host=host, place=place, at=at)
        if is_json:
            value = json.dumps({"time": f"2026-01-05T{at}:00Z", "host": host, "client": {"ip": host, "all": [host, f"{host}:80"]},
                                "x_forwarded_for": f"{host}, {host}", "agent": f"bot of {place}", "note": value})
        if number % 10 == 9:
            value = f"{host} is no line of {place}"
        producer.send_full(topic, 0, value.encode(), key=host.encode(), headers=[("ip", host.encode())])
        return host

    def test_no_address_is_in_the_store(self):
        origins = "fields: {of_key: key, of_header: 'header:ip'}, raw: all"
        topics = {self.new_topic(1): False, self.new_topic(1): True}
        sources = {topic: f"decode: [{'json' if is_json else 'combined'}], {origins}" for topic, is_json in topics.items()}
        dead = self.new_topic(1)
        self.configure(sources, f'store: {{url: "{self.url}"}}\nderive: {{anonymise: true}}\nrejects: {{topic: {dead}}}\n'
                       "reports:\n  hosts: {by: [host]}\n  others: {by: [of_key, of_header, agent, path, referrer]}\n")
        producer, addresses = self.broker.producer(), set()
        self.addCleanup(producer.close)
        for topic, is_json in topics.items():
            addresses |= {self.produce(producer, topic, number, is_json) for number in range(100)}
        producer.flush()
        self.run_daemon()
        for topic in topics:
            self.wait_for(lambda source=f"kafka:{topic}": self.nexts(source), lambda found: found == {0: 100})
        self.stop()
        raw = {topic: list(self.base[f"raw.{topic}"].find()) for topic in topics}
        for documents in raw.values():
            self.assertEqual(90, len(documents))
            self.assertTrue(all(one["host"].endswith((".0/24", "::/48")) for one in documents), documents[0])
        stored = b"".join(repr(one).encode() for name in self.base.list_collection_names() for one in self.base[name].find())
        stored += b"".join(message.value + (message.key or b"") for message in self.broker.read(dead)) + self.read(self.log_name)
        self.assertEqual([], [one for one in addresses if one.encode() in stored])

if __name__ == "__main__":
    mongocase.main(kafkacase.main)
