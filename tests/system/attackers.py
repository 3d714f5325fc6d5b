#!/usr/bin/env python3
"""Attackers of a daemon, all at once: `attackers.py HOST PORT SECONDS` with paths on standard input, one a line: first a large
answer, then heavy questions. At the end it prints as JSON how often each kind has tried, and how often it was answered."""

import asyncio
import collections
import json
import random
import socket
import sys
import time

SLOW_REQUESTS, SLOW_READERS, STREAMS, QUESTIONS = 150, 60, 300, 8
PAUSE_S = 0.5  # on average


class Attack:
    def __init__(self, address, seconds, paths):
        self.address = address
        self.end = time.monotonic() + seconds
        self.large, self.heavy = paths[0], paths[1:]
        self.counts = collections.Counter()

    async def open(self, data):
        loop = asyncio.get_running_loop()
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        try:
            await loop.sock_connect(sock, self.address)
            await loop.sock_sendall(sock, data)
        except OSError:
            sock.close()
            raise
        return sock

    async def repeat(self, kind, data, go_on):
        """Opens a connection, sends, and goes on with it, again and again."""
        while time.monotonic() < self.end:
            self.counts[kind] += 1
            try:
                sock = await self.open(data)
                with sock:
                    await go_on(kind, sock)
            except OSError:
                pass
            await asyncio.sleep(random.uniform(0, 2 * PAUSE_S))

    async def drip(self, kind, sock):
        """A byte of the request now and then."""
        while time.monotonic() < self.end:
            await asyncio.get_running_loop().sock_sendall(sock, b"o")
            await asyncio.sleep(random.uniform(0, 2 * PAUSE_S))

    async def sip(self, kind, sock):
        """Some bytes of the answer now and then."""
        while time.monotonic() < self.end:
            if not await asyncio.get_running_loop().sock_recv(sock, 512):
                return
            await asyncio.sleep(random.uniform(0, 2 * PAUSE_S))

    async def wait(self, kind, sock):
        """The whole answer."""
        first = await asyncio.get_running_loop().sock_recv(sock, 4096)
        self.counts[f"{kind}: {first[9:12].decode()}"] += 1

    async def run(self):
        def request(path):
            return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        tasks = [self.repeat("slow request", b"GET /healthz HTTP/1.1\r\nHost: l", self.drip) for _ in range(SLOW_REQUESTS)]
        tasks += [self.repeat("slow reader", request(self.large), self.sip) for _ in range(SLOW_READERS)]
        tasks += [self.repeat("stream", request("/api/v1/stream?report=site"), self.sip) for _ in range(STREAMS)]
        tasks += [self.repeat("question", request(self.heavy[i % len(self.heavy)]), self.wait) for i in range(QUESTIONS)]
        _, late = await asyncio.wait([asyncio.ensure_future(task) for task in tasks],
                                     timeout=self.end - time.monotonic() + 1)
        for task in late:
            task.cancel()


if __name__ == "__main__":
    attack = Attack((sys.argv[1], int(sys.argv[2])), float(sys.argv[3]), sys.stdin.read().split())
    asyncio.run(attack.run())
    print(json.dumps(attack.counts))
