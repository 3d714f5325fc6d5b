#!/usr/bin/env python3
"""Events of a real Kafka broker as they are, in MongoDB: each record's once, under its offset, whatever the daemon dies of.

TALLYD_MONGO names the server. TALLYD_ROUNDS (3 by default) says how often the daemon is killed by chance. The seed is printed.
"""

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


if __name__ == "__main__":
    mongocase.main(kafkacase.main)
