#!/usr/bin/env python3
"""Messages that wait for their schema, in a consumer group: it keeps its members, may take partitions away all the same, and each
message is counted once.
"""

import time

import kafkacase
import mongocase
import schemas
from harness import EX_OK, TIMEOUT_S
from kafkacase import Feed
from mongokafkacase import MongoKafkaCase
from registrycase import AvroFeed

POLL_MAX_S = 6


class MongoRegistry(MongoKafkaCase):
    def setUp(self):
        super().setUp()
        self.registry = schemas.Registry()
        self.addCleanup(self.registry.close)
        self.feeds = (AvroFeed(self, self.registry, partitions=4), Feed(self, 2))
        self.configure_mongo(more=f"registry: {{url: \"{self.registry.url}\", retry_max: 300ms}}\n",
                             member=f", properties: {{max.poll.interval.ms: {POLL_MAX_S}000, session.timeout.ms: {POLL_MAX_S}000}}")
        self.send(500)
        self.registry.go()

    def test_member_stays(self):
        self.run_daemon()
        self.wait_counted(self.feeds[1])
        time.sleep(1.5 * POLL_MAX_S)
        self.send(100)
        self.wait_counted(self.feeds[1])
        self.registry.come()
        self.check_all(*self.feeds)
        self.assertEqual(1, self.said().count("event=partitions_given "), self.said())
        self.assertNotRegex(self.said(), "event=partitions_(taken|lost)")

    def test_partitions_are_taken_from_one_that_waits(self):
        first, log = self.run_daemon(), self.log_name
        self.wait_for_log("event=schema_waits ")
        self.run_daemon()
        self.wait_for(lambda: self.read(log), lambda said: b"event=partitions_taken" in said)
        self.send(100)
        self.registry.come()
        self.wait_counted(*self.feeds)
        first.terminate()
        self.assertEqual(EX_OK, first.wait(TIMEOUT_S), self.read(log).decode())
        self.check_all(*self.feeds)


if __name__ == "__main__":
    mongocase.main(kafkacase.main)
