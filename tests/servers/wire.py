"""Shared by the servers of the MongoDB wire protocol."""

import socket
import struct

from process import Program

ANSWER_S = 2
OP_MSG = 2013


def hello():
    """The request by which every driver begins, as it goes over the wire."""
    return message(b"\x10hello\0" + struct.pack("<i", 1) + b"\x02$db\0" + struct.pack("<i", 6) + b"admin\0")


def probe(collection):
    """Requests that use the storage: an insert, which creates the collection, and a find in it."""
    database = text(b"$db", b"probe")
    one = document(text(b"0", b"probe"))
    yield message(text(b"insert", collection) + b"\x04documents\0" + document(b"\x030\0" + one) + database)
    yield message(text(b"find", collection) + database)


def text(name, value):
    """A member of a document, in BSON."""
    return b"\x02" + name + b"\0" + struct.pack("<i", len(value) + 1) + value + b"\0"


def document(members):
    return struct.pack("<i", 4 + len(members) + 1) + members + b"\0"


def message(body):
    """The bytes of a command's members, in BSON."""
    section = struct.pack("<IB", 0, 0) + document(body)
    return struct.pack("<iiii", 16 + len(section), 1, 0, OP_MSG) + section


class MongoServer(Program):
    """A server whose data and log are in `home`. Its URL stays the same until the directory is removed."""

    NAME = "MongoDB server"
    REPLICA_SET = ""  # what it says that it is one of
    FAIL_COMMAND = False  # can it be told to refuse commands?
    IS_SLOW = False

    @staticmethod
    def install():
        raise NotImplementedError

    @property
    def url(self):
        return f"mongodb://127.0.0.1:{self.port}"

    def ask(self, request):
        """Its answer, without the header; None: it has none."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), ANSWER_S) as sock:
                sock.sendall(request)
                head = sock.recv(16, socket.MSG_WAITALL)
                if len(head) < 16 or struct.unpack("<iiii", head)[3] != OP_MSG:
                    return None
                return sock.recv(struct.unpack("<i", head[:4])[0] - 16, socket.MSG_WAITALL)
        except OSError:
            return None

    def ready(self):
        """Does it answer?"""
        return self.ask(hello()) is not None

    def is_broken(self):
        """Does it answer, and yet cannot use its own storage? Then no test of tallyd says anything any more."""
        return False
