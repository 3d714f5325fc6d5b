"""Transactions into a topic, one at a time, each open while other faults happen."""

import rdkafka

TIMEOUT_MS = 120000  # longer than any stays open: the broker ends none by itself
NO_LINE = b"no line at all: it ends a transaction"


class Transaction:
    """`aborted`: the events that must never be counted. A commit that failed may have happened: its events are not among them."""

    def __init__(self, broker, topic, partitions):
        self.broker, self.topic, self.partitions = broker, topic, partitions
        self.producer, self.is_open, self.was_used = None, False, False
        self.pending, self.aborted = [], set()

    def begin(self):
        """The first of a producer aborts what the one before it left open."""
        if self.is_open:
            return
        try:
            if self.producer is None:
                self.producer = self.broker.producer(transactional_id=self.topic, transaction_timeout_ms=TIMEOUT_MS)
            self.producer.begin()
            self.is_open = self.was_used = True
        except rdkafka.Failed as error:
            self.give_up("begin", error)

    def send(self, partition, line, identity):
        self.pending.append(identity)
        try:
            self.producer.send(self.topic, partition, line)
        except rdkafka.Failed as error:
            self.abandon()
            print(f"  transaction: send: {error}", flush=True)

    def commit(self):
        if not self.is_open:
            return
        self.is_open, self.pending = False, []
        try:
            self.producer.commit()
        except rdkafka.Failed as error:
            self.give_up("commit", error)

    def abort(self):
        """All of it is in the log before: else nothing of it would be."""
        if not self.is_open:
            return
        self.note_aborted()
        try:
            self.producer.flush()
            self.producer.abort()
        except rdkafka.Failed as error:
            self.give_up("abort", error)

    def abandon(self):
        """As a producer that dies: the transaction stays open until there is another producer of its name."""
        if self.is_open:
            self.note_aborted()
            try:
                self.producer.flush()
            except rdkafka.Failed as error:
                print(f"  transaction: flush: {error}", flush=True)
        self.close()

    def settle(self):
        """Nothing stays open."""
        if self.producer is None and self.was_used:
            self.begin()
            self.abort()

    def mend(self):
        """A log that lost the end of a transaction holds back all that follows: another one of the same producer in each partition
        ends that, too. So what was committed may be aborted by this."""
        if not self.was_used:
            return
        self.close()
        self.begin()
        for partition in range(self.partitions) if self.is_open else ():
            self.send(partition, NO_LINE, None)
        self.abort()

    def note_aborted(self):
        self.is_open = False
        self.aborted.update(one for one in self.pending if one is not None)
        self.pending = []

    def give_up(self, what, error):
        print(f"  transaction: {what}: {error}", flush=True)
        self.close()

    def close(self):
        self.is_open, self.pending = False, []
        if self.producer is not None:
            self.producer.close()
            self.producer = None
