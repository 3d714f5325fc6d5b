"""Requests of tests to a Kafka cluster, by librdkafka itself through ctypes: topics, messages of any kind, offsets.

Nothing of tallyd is in here, so that it can judge. Calls wait until the cluster has done what was asked and raise Failed
where it has not. Not for threads, but one Cluster for each of them is well.
"""

import collections
import ctypes
import time

Message = collections.namedtuple("Message", "partition offset key value headers timestamp_ms")

LIBRARY = "librdkafka.so.1"
WAIT_MS = 60000
PRODUCER, CONSUMER = 0, 1
F_COPY = 2
ERR_NO_ERROR, ERR_PARTITION_EOF, ERR_QUEUE_FULL, ERR_FATAL, ERR_NOT_LEADER = 0, -191, -184, -150, 6
ERR_UNKNOWN_PARTITION = -190
VTYPE_TOPIC, VTYPE_PARTITION, VTYPE_VALUE, VTYPE_KEY = 1, 3, 4, 5
VTYPE_MSGFLAGS, VTYPE_TIMESTAMP, VTYPE_HEADER = 7, 8, 9
ADMIN_ANY = 0

pointer, size_t, int32, int64, c_int, text = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int32, ctypes.c_int64,
                                              ctypes.c_int, ctypes.c_char_p)


class Failed(Exception):
    """The cluster or the library refused; the text is theirs."""


class Lost(Failed):
    """Only a part of the producer's messages may be in its topic; it sends no more."""


class CMessage(ctypes.Structure):
    _fields_ = [("err", c_int), ("rkt", pointer), ("partition", int32), ("payload", pointer), ("len", size_t),
                ("key", pointer), ("key_len", size_t), ("offset", int64), ("private", pointer)]


class CPartition(ctypes.Structure):
    _fields_ = [("topic", text), ("partition", int32), ("offset", int64), ("metadata", pointer),
                ("metadata_size", size_t), ("opaque", pointer), ("err", c_int), ("private", pointer)]


class CPartitionList(ctypes.Structure):
    _fields_ = [("count", c_int), ("size", c_int), ("elements", ctypes.POINTER(CPartition))]


class CMetaPartition(ctypes.Structure):
    _fields_ = [("id", int32), ("err", c_int), ("leader", int32), ("replica_count", c_int), ("replicas", pointer),
                ("isr_count", c_int), ("isrs", pointer)]


class CMetaTopic(ctypes.Structure):
    _fields_ = [("topic", text), ("count", c_int), ("partitions", ctypes.POINTER(CMetaPartition)), ("err", c_int)]


class CMetadata(ctypes.Structure):
    _fields_ = [("broker_count", c_int), ("brokers", pointer), ("count", c_int),
                ("topics", ctypes.POINTER(CMetaTopic)), ("origin", int32), ("origin_name", text)]


class CMem(ctypes.Structure):
    _fields_ = [("ptr", text), ("size", size_t)]


class CHeader(ctypes.Structure):
    _fields_ = [("name", text), ("value", text), ("size", ctypes.c_ssize_t)]


class CValue(ctypes.Union):
    _fields_ = [("cstr", text), ("i32", int32), ("i64", int64), ("mem", CMem), ("header", CHeader),
                ("pad", ctypes.c_char * 64)]


class CArgument(ctypes.Structure):
    _fields_ = [("vtype", c_int), ("u", CValue)]


ON_DELIVERY = ctypes.CFUNCTYPE(None, pointer, ctypes.POINTER(CMessage), pointer)
LIST = ctypes.POINTER(CPartitionList)

# Name: what it returns, what it takes. Enumerations are ints.
FUNCTIONS = {
    "conf_new": (pointer, []),
    "conf_set": (c_int, [pointer, text, text, text, size_t]),
    "conf_set_dr_msg_cb": (None, [pointer, ON_DELIVERY]),
    "new": (pointer, [c_int, pointer, text, size_t]),
    "destroy": (None, [pointer]),
    "err2str": (text, [c_int]),
    "last_error": (c_int, []),
    "poll": (c_int, [pointer, c_int]),
    "poll_set_consumer": (c_int, [pointer]),
    "flush": (c_int, [pointer, c_int]),
    "topic_new": (pointer, [pointer, text, pointer]),
    "topic_destroy": (None, [pointer]),
    "produce": (c_int, [pointer, int32, c_int, text, size_t, text, size_t, pointer]),
    "produceva": (pointer, [pointer, ctypes.POINTER(CArgument), size_t]),
    "error_string": (text, [pointer]),
    "error_destroy": (None, [pointer]),
    "init_transactions": (pointer, [pointer, c_int]),
    "begin_transaction": (pointer, [pointer]),
    "commit_transaction": (pointer, [pointer, c_int]),
    "abort_transaction": (pointer, [pointer, c_int]),
    "assign": (c_int, [pointer, LIST]),
    "consumer_poll": (ctypes.POINTER(CMessage), [pointer, c_int]),
    "message_destroy": (None, [ctypes.POINTER(CMessage)]),
    "message_timestamp": (int64, [ctypes.POINTER(CMessage), pointer]),
    "message_headers": (c_int, [ctypes.POINTER(CMessage), ctypes.POINTER(pointer)]),
    "header_get_all": (c_int, [pointer, size_t, ctypes.POINTER(text), ctypes.POINTER(pointer),
                               ctypes.POINTER(size_t)]),
    "topic_partition_list_new": (LIST, [c_int]),
    "topic_partition_list_add": (ctypes.POINTER(CPartition), [LIST, text, int32]),
    "topic_partition_list_destroy": (None, [LIST]),
    "query_watermark_offsets": (c_int, [pointer, text, int32, ctypes.POINTER(int64), ctypes.POINTER(int64), c_int]),
    "committed": (c_int, [pointer, LIST, c_int]),
    "commit": (c_int, [pointer, LIST, c_int]),
    "metadata": (c_int, [pointer, c_int, pointer, ctypes.POINTER(ctypes.POINTER(CMetadata)), c_int]),
    "metadata_destroy": (None, [ctypes.POINTER(CMetadata)]),
    "queue_new": (pointer, [pointer]),
    "queue_destroy": (None, [pointer]),
    "queue_poll": (pointer, [pointer, c_int]),
    "event_error": (c_int, [pointer]),
    "event_destroy": (None, [pointer]),
    "AdminOptions_new": (pointer, [pointer, c_int]),
    "AdminOptions_destroy": (None, [pointer]),
    "AdminOptions_set_operation_timeout": (c_int, [pointer, c_int, text, size_t]),
    "NewTopic_new": (pointer, [text, c_int, c_int, text, size_t]),
    "NewTopic_set_replica_assignment": (c_int, [pointer, int32, ctypes.POINTER(int32), size_t, text, size_t]),
    "NewTopic_set_config": (c_int, [pointer, text, text]),
    "NewTopic_destroy": (None, [pointer]),
    "CreateTopics": (None, [pointer, ctypes.POINTER(pointer), size_t, pointer, pointer]),
    "event_CreateTopics_result": (pointer, [pointer]),
    "CreateTopics_result_topics": (ctypes.POINTER(pointer), [pointer, ctypes.POINTER(size_t)]),
    "DeleteTopic_new": (pointer, [text]),
    "DeleteTopic_destroy": (None, [pointer]),
    "DeleteTopics": (None, [pointer, ctypes.POINTER(pointer), size_t, pointer, pointer]),
    "event_DeleteTopics_result": (pointer, [pointer]),
    "DeleteTopics_result_topics": (ctypes.POINTER(pointer), [pointer, ctypes.POINTER(size_t)]),
    "NewPartitions_new": (pointer, [text, size_t, text, size_t]),
    "NewPartitions_destroy": (None, [pointer]),
    "CreatePartitions": (None, [pointer, ctypes.POINTER(pointer), size_t, pointer, pointer]),
    "event_CreatePartitions_result": (pointer, [pointer]),
    "CreatePartitions_result_topics": (ctypes.POINTER(pointer), [pointer, ctypes.POINTER(size_t)]),
    "topic_result_error": (c_int, [pointer]),
    "topic_result_error_string": (text, [pointer]),
    "DeleteRecords_new": (pointer, [LIST]),
    "DeleteRecords_destroy": (None, [pointer]),
    "DeleteRecords": (None, [pointer, ctypes.POINTER(pointer), size_t, pointer, pointer]),
    "event_DeleteRecords_result": (pointer, [pointer]),
    "DeleteRecords_result_offsets": (LIST, [pointer]),
}


class Library:
    """rd_kafka_NAME as .NAME."""

    def __init__(self):
        try:
            library = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise Failed(f"{error} (Debian package librdkafka1)") from None
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(library, "rd_kafka_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)


rk = Library()


def check(error):
    if error != ERR_NO_ERROR:
        raise Failed(rk.err2str(error).decode())


def check_object(error):
    if error:
        said = rk.error_string(error).decode()
        rk.error_destroy(error)
        raise Failed(said)


def client(kind, properties, on_delivery=None):
    conf, said = rk.conf_new(), ctypes.create_string_buffer(512)
    for name, value in properties.items():
        if rk.conf_set(conf, name.encode(), str(value).encode(), said, len(said)) != 0:
            raise Failed(said.value.decode())
    if on_delivery:
        rk.conf_set_dr_msg_cb(conf, on_delivery)
    handle = rk.new(kind, conf, said, len(said))
    if not handle:
        raise Failed(said.value.decode())
    return handle


class Partitions:
    """A list of a topic's partitions with an offset each, for a `with`."""

    def __init__(self, topic, offsets):
        self.list = rk.topic_partition_list_new(len(offsets))
        for partition, offset in offsets.items():
            rk.topic_partition_list_add(self.list, topic.encode(), partition).contents.offset = offset

    def __enter__(self):
        return self.list

    def __exit__(self, *_):
        rk.topic_partition_list_destroy(self.list)


def items(partitions):
    """The offsets in a list of partitions: {partition: offset}."""
    found = {}
    for index in range(partitions.contents.count):
        element = partitions.contents.elements[index]
        check(element.err)
        found[element.partition] = element.offset
    return found


class Producer:
    """Sends; what it was given is in the topic, in order and once, when flush() or commit() returns."""

    def __init__(self, address, **properties):
        self.failures = []
        self.on_delivery = ON_DELIVERY(self._on_delivery)  # kept: the library calls it
        self.handle = client(PRODUCER, {"bootstrap.servers": address, "enable.idempotence": "true", "linger.ms": 5,
                                        "reconnect.backoff.max.ms": 250, "delivery.report.only.error": "true",
                                        "queue.buffering.max.messages": 1000000, "log_level": 0,
                                        **{name.replace("_", "."): value for name, value in properties.items()}},
                             self.on_delivery)
        self.topics = {}
        if "transactional_id" in properties:
            check_object(rk.init_transactions(self.handle, WAIT_MS))

    def _on_delivery(self, _handle, message, _opaque):
        if message.contents.err:
            self.failures.append(message.contents.err)

    def _topic(self, name):
        if name not in self.topics:
            self.topics[name] = rk.topic_new(self.handle, name.encode(), None)
        return self.topics[name]

    def send(self, topic, partition, value, key=None):
        """`value` None is a tombstone."""
        handle = self._topic(topic)
        while rk.produce(handle, partition, F_COPY, value, len(value or b""), key, len(key or b""), None) != 0:
            if rk.last_error() == ERR_FATAL:
                self.failures.append(ERR_FATAL)
                raise Lost("the producer cannot go on")
            if rk.last_error() != ERR_QUEUE_FULL:
                check(rk.last_error())
            rk.poll(self.handle, 10)

    def send_full(self, topic, partition, value, key=None, headers=(), timestamp_ms=None):
        """Any message there can be; slower."""
        # The flags are needed for a copy: else the library takes the bytes for its own.
        arguments = [CArgument(VTYPE_TOPIC, CValue(cstr=topic.encode())),
                     CArgument(VTYPE_PARTITION, CValue(i32=partition)),
                     CArgument(VTYPE_MSGFLAGS, CValue(i32=F_COPY)),
                     CArgument(VTYPE_VALUE, CValue(mem=CMem(value, len(value or b""))))]
        if key is not None:
            arguments.append(CArgument(VTYPE_KEY, CValue(mem=CMem(key, len(key)))))
        if timestamp_ms is not None:
            arguments.append(CArgument(VTYPE_TIMESTAMP, CValue(i64=timestamp_ms)))
        for name, data in headers:
            arguments.append(CArgument(VTYPE_HEADER, CValue(header=CHeader(name.encode(), data, len(data)))))
        check_object(rk.produceva(self.handle, (CArgument * len(arguments))(*arguments), len(arguments)))

    def flush(self):
        check(rk.flush(self.handle, WAIT_MS))
        if self.failures:
            raise Lost(f"{len(self.failures)} messages were not delivered: {rk.err2str(self.failures[0]).decode()}")

    def begin(self):
        check_object(rk.begin_transaction(self.handle))

    def commit(self):
        check_object(rk.commit_transaction(self.handle, WAIT_MS))

    def abort(self):
        """Messages that were flushed before stay in the topic, hidden from read_committed."""
        check_object(rk.abort_transaction(self.handle, WAIT_MS))

    def close(self):
        for handle in self.topics.values():
            rk.topic_destroy(handle)
        rk.destroy(self.handle)


class Cluster:
    def __init__(self, address):
        self.address = address
        self.clients = {}

    def _client(self, group=""):
        """A consumer for questions, kept."""
        if group not in self.clients:
            self.clients[group] = client(CONSUMER, {"bootstrap.servers": self.address, "log_level": 0,
                                                    "reconnect.backoff.max.ms": 250,
                                                    "group.id": group or "tallyd-test-questions"})
        return self.clients[group]

    def close(self):
        for handle in self.clients.values():
            rk.destroy(handle)
        self.clients = {}

    def producer(self, **properties):
        return Producer(self.address, **properties)

    def _admin(self, request, new, destroy, result_of):
        """Have one thing done, and wait until it is."""
        handle, said = self._client(), ctypes.create_string_buffer(512)
        queue, options = rk.queue_new(handle), rk.AdminOptions_new(handle, ADMIN_ANY)
        rk.AdminOptions_set_operation_timeout(options, WAIT_MS, said, len(said))
        request(handle, (pointer * 1)(new), 1, options, queue)
        event = rk.queue_poll(queue, WAIT_MS)
        try:
            if not event:
                raise Failed(f"no answer within {WAIT_MS} ms")
            check(rk.event_error(event))
            result_of(event)
        finally:
            if event:
                rk.event_destroy(event)
            destroy(new)
            rk.AdminOptions_destroy(options)
            rk.queue_destroy(queue)

    @staticmethod
    def _topic_result(result_of, topics_of):
        def judge(event):
            count = size_t()
            result = topics_of(result_of(event), ctypes.byref(count))[0]
            if rk.topic_result_error(result):
                raise Failed((rk.topic_result_error_string(result) or b"refused").decode())

        return judge

    def create_topic(self, name, partitions=4, replicas=(), **config):
        """`config` is Kafka's, with _ for a dot or by dictionary: cleanup_policy="compact"; `replicas` are brokers, the preferred
        leader first. A broker that was slow to say that it lives is fenced for a moment."""
        until = time.monotonic() + WAIT_MS / 1000
        while True:
            try:
                self._create_topic(name, partitions, replicas, config)
                break
            except Failed as error:
                if "fenced" not in str(error) or time.monotonic() > until:
                    raise
            time.sleep(0.1)
        self.wait_for_leaders(name, partitions)

    def _create_topic(self, name, partitions, replicas, config):
        said = ctypes.create_string_buffer(512)
        new = rk.NewTopic_new(name.encode(), partitions, -1 if replicas else 1, said, len(said))
        if not new:
            raise Failed(said.value.decode())
        for partition in range(partitions if replicas else 0):
            check(rk.NewTopic_set_replica_assignment(new, partition, (ctypes.c_int32 * len(replicas))(*replicas),
                                                     len(replicas), said, len(said)))
        for key, value in config.items():
            check(rk.NewTopic_set_config(new, key.replace("_", ".").encode(), str(value).encode()))
        self._admin(rk.CreateTopics, new, rk.NewTopic_destroy,
                    self._topic_result(rk.event_CreateTopics_result, rk.CreateTopics_result_topics))

    def delete_topic(self, name):
        self._admin(rk.DeleteTopics, rk.DeleteTopic_new(name.encode()), rk.DeleteTopic_destroy,
                    self._topic_result(rk.event_DeleteTopics_result, rk.DeleteTopics_result_topics))
        self._wait(lambda: not self.leaders(name), f"topic {name} did not go")

    def add_partitions(self, name, count):
        """`count` in all."""
        said = ctypes.create_string_buffer(512)
        new = rk.NewPartitions_new(name.encode(), count, said, len(said))
        self._admin(rk.CreatePartitions, new, rk.NewPartitions_destroy,
                    self._topic_result(rk.event_CreatePartitions_result, rk.CreatePartitions_result_topics))
        self.wait_for_leaders(name, count)

    def delete_records(self, name, before):
        """As retention does: of each partition all that is before the offset given."""
        with Partitions(name, before) as offsets:
            new = rk.DeleteRecords_new(offsets)
        self._admin(rk.DeleteRecords, new, rk.DeleteRecords_destroy,
                    lambda event: items(rk.DeleteRecords_result_offsets(rk.event_DeleteRecords_result(event))))

    def leaders(self, name):
        """How many partitions of a topic have a leader."""
        found = ctypes.POINTER(CMetadata)()
        handle = self._client()
        topic = rk.topic_new(handle, name.encode(), None)
        error = rk.metadata(handle, 0, topic, ctypes.byref(found), 2000)
        rk.topic_destroy(topic)
        if error:
            return 0
        of = found.contents.topics[0]
        count = sum(of.partitions[i].leader >= 0 for i in range(of.count)) if not of.err else 0
        rk.metadata_destroy(found)
        return count

    @staticmethod
    def _wait(good, what):
        until = time.monotonic() + WAIT_MS / 1000
        while not good():
            if time.monotonic() > until:
                raise Failed(f"{what} within {WAIT_MS} ms")
            time.sleep(0.02)

    def wait_for_leaders(self, name, count):
        self._wait(lambda: self.leaders(name) == count, f"topic {name} had no {count} partitions")

    def watermarks(self, name):
        """{partition: (first offset, next offset)}"""
        found, low, high = {}, int64(), int64()

        def ask(partition):
            error = rk.query_watermark_offsets(self._client(), name.encode(), partition, ctypes.byref(low),
                                               ctypes.byref(high), WAIT_MS)
            # A topic that was just made again has no leader; a broker that was just started may not know the partition.
            if error not in (ERR_NOT_LEADER, ERR_UNKNOWN_PARTITION):
                check(error)
                found[partition] = (low.value, high.value)
            return error == ERR_NO_ERROR

        for partition in range(self.leaders(name)):
            self._wait(lambda p=partition: ask(p), f"partition {partition} of {name} had no leader")
        return found

    def committed(self, group, topic, partitions):
        """{partition: offset}; below 0 where there is none."""
        with Partitions(topic, dict.fromkeys(range(partitions), -1001)) as offsets:
            check(rk.committed(self._client(group), offsets, WAIT_MS))
            return items(offsets)

    def commit(self, group, topic, offsets):
        """Set a group's offsets, which must have no members."""
        with Partitions(topic, offsets) as wanted:
            check(rk.commit(self._client(group), wanted, 0))

    def read(self, topic, isolation="read_committed"):
        """All messages of a topic as it is now."""
        marks = {p: low for p, (low, high) in self.watermarks(topic).items() if high > low}
        handle = client(CONSUMER, {"bootstrap.servers": self.address, "group.id": "tallyd-test-read", "log_level": 0,
                                   "enable.partition.eof": "true", "enable.auto.commit": "false",
                                   "isolation.level": isolation, "fetch.wait.max.ms": 10})
        messages, left = [], set(marks)
        rk.poll_set_consumer(handle)
        with Partitions(topic, marks) as assigned:
            check(rk.assign(handle, assigned))
        until = time.monotonic() + WAIT_MS / 1000
        while left:
            if time.monotonic() > until:
                raise Failed(f"topic {topic} could not be read to its end within {WAIT_MS} ms")
            message = rk.consumer_poll(handle, 100)
            if not message:
                continue
            if message.contents.err == ERR_PARTITION_EOF:
                left.discard(message.contents.partition)
            elif message.contents.err == 0:
                messages.append(unpack(message))
            rk.message_destroy(message)
        rk.destroy(handle)
        return messages


def unpack(message):
    found = message.contents
    headers, handle, index = [], pointer(), 0
    if rk.message_headers(message, ctypes.byref(handle)) == 0:
        name, value, size = text(), pointer(), size_t()
        while rk.header_get_all(handle, index, ctypes.byref(name), ctypes.byref(value), ctypes.byref(size)) == 0:
            headers.append((name.value.decode(), ctypes.string_at(value, size.value)))
            index += 1
    value = ctypes.string_at(found.payload, found.len) if found.payload else None
    key = ctypes.string_at(found.key, found.key_len) if found.key else None
    return Message(found.partition, found.offset, key, value, tuple(headers), rk.message_timestamp(message, None))
