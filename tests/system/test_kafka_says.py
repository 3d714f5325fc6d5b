#!/usr/bin/env python3
"""A daemon's words at 3 a.m. are what is known: of a broker that closes connections, and of a partition that stands."""

import re
import socket
import threading

from kafkacase import LINE, KafkaCase, main

QUICKLY = ", properties: {statistics.interval.ms: 500}"


class Says(KafkaCase):
    def line(self, i):
        return LINE % (i % 256, 1, 2, 3, b"/x", 5)

    def open_for_s(self, topic):
        found = re.search(rf'^tallyd_partition_open_transaction_seconds{{source="{topic}",partition="0"}} (\d+)$',
                          self.get("/metrics"), re.M)
        return int(found[1]) if found else None

    def test_open_transaction(self):
        topic = self.new_topic(1)
        before, producer = self.broker.producer(), self.broker.producer(transactional_id=topic)
        for i in range(5):
            before.send(topic, 0, self.line(i))
        before.flush()
        producer.begin()
        for i in range(10):
            producer.send(topic, 0, self.line(i))
        producer.flush()
        for i in range(7):
            before.send(topic, 0, self.line(i))  # not of it, and held back all the same
        before.flush()
        self.configure({topic: "decode: [combined]"}, member=QUICKLY)
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", 5)
        self.wait_for_log(f"event=open_transaction topic={topic} partition=0 offset=5 held_back=17 seconds=1")
        self.wait_for(lambda: self.open_for_s(topic), lambda found: found >= 10)  # the status is noted now and then
        self.assertIn('"open_transaction_s":1', self.get("/api/v1/status"))
        producer.commit()
        self.wait_consumed(f"kafka:{topic}", 22)
        self.wait_for_log(f"event=transaction_ended topic={topic} partition=0 offset=5")
        self.wait_for(lambda: self.open_for_s(topic), lambda found: found == 0)
        self.assertEqual(1, self.said().count("event=open_transaction "))
        self.stop()
        self.verify()

    def test_broker_that_closes_connections_is_not_called_a_mistake(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def close_all():
            try:
                while True:
                    listener.accept()[0].close()
            except OSError:
                pass  # the end
        threading.Thread(target=close_all, daemon=True).start()
        topic = self.new_topic(1)
        self.configure({topic: "decode: [combined]"})
        text = self.read("tallyd.yaml").decode().replace(self.broker.address, f"127.0.0.1:{listener.getsockname()[1]}")
        self.write("tallyd.yaml", text.encode())
        self.run_daemon(consuming=False)
        self.wait_for_log("the broker closed the connection before it said anything: it is starting or stopping, or "
                          "this listener wants TLS or SASL")
        self.assertNotIn("SSL listener?", self.said())


if __name__ == "__main__":
    main()
