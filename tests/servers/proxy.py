"""A TCP proxy that fails as networks do: it cuts, delays, falls silent or refuses, after a number of bytes.

    with Proxy(port_of_the_server, plan) as proxy: … proxy.port …

`plan()` is asked for a Fault for every connection, by the thread that accepts it. Bytes are counted exactly: those up
to the limit are still delivered, so that a request may have reached the server whole though no reply comes back. The
commands that go to a MongoDB server are counted, in `commands`: {("insert", "pages.day"): 2}; as "lost" the replies that were.
`heard`: a list that takes what clients send, piece by piece. `answer(piece)`: what a client gets in place of the server's reply;
b"" is an end of the connection, None leaves it to the server. replied() makes one.
"""

import collections
import re
import socket
import struct
import threading
import time

CHUNK = 16384
OP_MSG = 2013
# How a message begins: its head, flags and the kind and length of its only section, then the command and its collection.
# One is sent when the last one is answered: it comes in pieces of its own.
COMMAND = re.compile(rb".{25}\x02(insert|update|delete|find|findAndModify)\0.{4}([^\0]+)\0", re.DOTALL)
IDLE_S = 0.05  # to notice that it is over

# The fault of one connection. `up`, `down`: after so many bytes to and from the server (None: never) it happens; `how`: what.
#   reset   both ends see the connection break
#   close   both ends see it end
#   half    whoever would get more sees an end of it; the other direction goes on
#   silent  what would come after is dropped, in this direction; the connection stays
#   refuse  at once, before a byte
# `delay_s` before each piece of up to 16 KiB, in both directions. `lose`: a command, as ("insert", "pages.day"); the server
# carries it out, and instead of its reply the client gets an end of the connection (by `how`: reset or close).
Fault = collections.namedtuple("Fault", "how up down delay_s lose", defaults=("reset", None, None, 0, None))
FAITHFUL = Fault()


def replied(request, document):
    """An OP_MSG with an encoded document, to a request that came in one."""
    section = struct.pack("<IB", 0, 0) + document
    return struct.pack("<iiii", 16 + len(section), 1, struct.unpack("<iiii", request[:16])[1], OP_MSG) + section


def end(sock, by_reset=False):
    try:
        if by_reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.shutdown(socket.SHUT_RD)  # wakes who reads; the close then resets
        else:
            sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it has ended already


class Link:
    """One connection through the proxy."""

    def __init__(self, fault, client, server, of):
        self.fault, self.client, self.server = fault, client, server
        self.commands, self.heard, self.of = of.commands, of.heard, of
        self.is_losing = False
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self._pump, args=way, daemon=True)
                        for way in ((client, server, fault.up), (server, client, fault.down))]
        self.guard = threading.Thread(target=self._close_when_done, daemon=True)
        for thread in [*self.threads, self.guard]:
            thread.start()

    def _close_when_done(self):
        """Only when nobody uses them any more, lest a number be another's socket."""
        for thread in self.threads:
            thread.join()
        self.client.close()
        self.server.close()

    def cut(self, by_reset):
        self.over.set()
        end(self.client, by_reset)
        end(self.server, by_reset)

    def _note(self, data):
        if self.heard is not None:
            self.heard.append(data)
        found = COMMAND.match(data)
        if found:
            command = tuple(part.decode() for part in found.groups())
            self.commands[command] += 1
            self.is_losing = self.is_losing or command == self.fault.lose

    def _pump(self, source, target, left):
        silent = False
        try:
            while not self.over.is_set():
                data = source.recv(CHUNK)
                if not data:
                    break
                if source is self.client:
                    self._note(data)
                    said = self.of.answer(data)
                    if said == b"":
                        self.cut(by_reset=False)
                        return
                    if said is not None:
                        self.client.sendall(said)
                        continue
                elif self.is_losing:
                    self.commands["lost"] += 1
                    self.cut(self.fault.how == "reset")
                    return
                if self.fault.delay_s:
                    time.sleep(self.fault.delay_s)
                if not silent:
                    target.sendall(data if left is None else data[:left])
                if left is None or left > len(data):
                    left = None if left is None else left - len(data)
                    continue
                if self.fault.how == "half":
                    target.shutdown(socket.SHUT_WR)
                if self.fault.how in ("reset", "close"):
                    self.cut(self.fault.how == "reset")
                    return
                silent, left = True, 0
            if not silent:
                target.shutdown(socket.SHUT_WR)  # an end is handed on as one
        except OSError:
            self.cut(by_reset=False)


class Proxy:
    def __init__(self, port, plan=lambda: FAITHFUL, heard=None, answer=lambda _: None):
        self.to, self.plan, self.heard, self.answer = port, plan, heard, answer
        self.links, self.faults, self.commands = [], collections.Counter(), collections.Counter()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(IDLE_S)
        self.port = self.listener.getsockname()[1]
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.over.set()
        self.thread.join()
        self.listener.close()
        self.cut()

    def cut(self, by_reset=True):
        """All connections there are."""
        for link in self.links:
            link.cut(by_reset)
        self.links = []

    def _accept(self):
        while not self.over.is_set():
            try:
                client, _ = self.listener.accept()
            except TimeoutError:
                continue
            self._connect(client)

    def _connect(self, client):
        fault = self.plan()
        self.faults[fault.how if fault != FAITHFUL else "none"] += 1
        client.settimeout(None)
        try:
            if fault.how == "refuse":
                raise ConnectionRefusedError
            server = socket.create_connection(("127.0.0.1", self.to))
            server.settimeout(None)
        except OSError:
            end(client, by_reset=True)
            client.close()
            return
        self.links = [link for link in self.links if link.guard.is_alive()]
        self.links.append(Link(fault, client, server, self))


class Holding(Proxy):
    """Holds the first request for which chosen(piece) is true until let_go(), and sets `arrived` when it has it. Later requests pass."""

    def __init__(self, port, chosen):
        super().__init__(port, answer=self._hold)
        self.chosen, self.arrived, self.goes_on = chosen, threading.Event(), threading.Event()

    def _hold(self, piece):
        if not self.arrived.is_set() and self.chosen(piece):
            self.arrived.set()
            self.goes_on.wait()

    def let_go(self):
        self.goes_on.set()

    def close(self):
        self.let_go()
        super().close()
