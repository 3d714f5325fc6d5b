#!/usr/bin/env python3
"""A real Apache Kafka broker for tests and benchmarks: installed once into a cache, started on free loopback ports.

    tests/servers/kafka.py install                    get the jars, if they are not there yet
    tests/servers/kafka.py start DIR [--heap=MIB]     start a broker with its data in DIR; prints its address
    tests/servers/kafka.py topic DIR NAME [--partitions=N] [KEY=VALUE …]
    tests/servers/kafka.py kill DIR                   SIGKILL; `start DIR` again keeps address and data
    tests/servers/kafka.py stop DIR

The rest is for kcat, for instance `kcat -P -b ADDRESS -t NAME -l FILE`. As a module: Broker, and what rdkafka.py has. It
is one node in KRaft mode on Java 17 or later, with short timeouts, ready 2 to 3 s after start or SIGKILL. What cannot
be had raises Missing with the reason.
"""

import argparse
import fcntl
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

import rdkafka

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VERSION = "4.3.1"
HOME = os.path.join(ROOT, ".cache", "servers", f"kafka-{VERSION}")
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
CLUSTER = "dGFsbHlkLXRlc3QtYnJva2"  # any 16 bytes, in base64
INSTALL_S, READY_S, STOP_S = 200, 60, 30
# Below the range from which the kernel takes ports for outgoing connections: a killed broker's stays free.
PORTS = range(20000, 32000)

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{control}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={dir}/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=500
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
log.cleaner.dedupe.buffer.size=16777216
log.cleaner.backoff.ms=100
log.retention.check.interval.ms=500
log.initial.task.delay.ms=100
"""


class Missing(Exception):
    """What is needed is not here; the text says what."""


def run(argv, what, timeout_s):
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        raise Missing(f"{what} took longer than {timeout_s} s") from None
    if done.returncode != 0:
        said = [line for line in done.stdout.decode(errors="replace").splitlines() if line.strip()]
        raise Missing(f"{what} failed: {said[0] if said else f'exit status {done.returncode}'}")


def java(*arguments, heap_mib=512):
    """The command line of a Java with Kafka's classes, of which the frequent ones are mapped, not loaded, if they can."""
    archive = [f"-XX:SharedArchiveFile={HOME}/classes.jsa"] if os.path.exists(f"{HOME}/classes.jsa") else []
    return ["java", f"-Xms{heap_mib // 2}m", f"-Xmx{heap_mib}m", "-XX:+UseSerialGC", *archive, "-cp", f"{HOME}/jars/*",
            *arguments]


def install():
    """Get the jars if they are missing; of several processes that want to, one does."""
    for program, package in (("java", "default-jre-headless"), ("kcat", "kcat")):
        if not shutil.which(program):
            raise Missing(f"{program} is not installed (Debian package {package})")
    os.makedirs(os.path.dirname(HOME), exist_ok=True)
    with open(HOME + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(HOME):
            return
        if not shutil.which("mvn"):
            raise Missing("mvn is not installed (Debian package maven)")
        part = HOME + ".part"
        shutil.rmtree(part, ignore_errors=True)
        pom = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pom.xml")
        run(["mvn", "--batch-mode", "--quiet", "-f", pom, f"-Dkafka.version={VERSION}", COPY, "-DincludeScope=runtime",
             f"-DoutputDirectory={part}/jars"], f"getting Kafka {VERSION} by Maven", INSTALL_S)
        os.rename(part, HOME)
        archive_classes()


def archive_classes():
    """A first run that notes which classes a broker loads: all later ones start and restart a second sooner."""
    home = HOME + ".first"
    archive = os.path.join(HOME, "classes.jsa")
    shutil.rmtree(home, ignore_errors=True)
    os.mkdir(home)
    broker = Broker(home)
    try:
        broker.start(f"-XX:ArchiveClassesAtExit={archive}")
    finally:
        broker.stop()
        shutil.rmtree(home, ignore_errors=True)


def free_ports(count):
    sockets = []
    for port in random.SystemRandom().sample(PORTS, 1000):
        sock = socket.socket()
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            sock.close()
            continue
        sockets.append((sock, port))
        if len(sockets) == count:
            break
    for sock, _ in sockets:
        sock.close()
    return [port for _, port in sockets]


def is_running(pid):
    """A zombie is not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


class Broker(rdkafka.Cluster):
    """A broker whose data, properties and log are in `home`. Its address stays the same until it is stopped."""

    def __init__(self, home, heap_mib=512):
        self.home = os.path.abspath(home)
        self.heap_mib = heap_mib
        self.process, self.pid = None, None
        state = os.path.join(self.home, "broker.json")
        if os.path.exists(state):
            with open(state, encoding="ascii") as file:
                saved = json.load(file)
            self.port, self.pid = saved["port"], saved["pid"]
        else:
            self.port = self._format()
        super().__init__(f"127.0.0.1:{self.port}")

    def _format(self):
        os.makedirs(self.home, exist_ok=True)
        port, control = free_ports(2)
        properties = os.path.join(self.home, "server.properties")
        with open(properties, "w", encoding="ascii") as file:
            file.write(PROPERTIES.format(port=port, control=control, dir=self.home))
        run(java("kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", CLUSTER, "-c", properties),
            "formatting the broker's data", READY_S)
        return port

    def start(self, *options):
        """Begin or begin again, and wait until it serves."""
        argv = java(*options, "kafka.Kafka", os.path.join(self.home, "server.properties"), heap_mib=self.heap_mib)
        with open(os.path.join(self.home, "log"), "ab") as log:
            self.process = subprocess.Popen(argv, cwd=self.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.pid = self.process.pid
        with open(os.path.join(self.home, "broker.json"), "w", encoding="ascii") as file:
            json.dump({"port": self.port, "pid": self.pid}, file)
        self.wait()
        return self

    def wait(self):
        until = time.monotonic() + READY_S
        while not self.ready():
            if not is_running(self.pid):
                raise Missing(f"the broker ended at its start: see {self.home}/log")
            if time.monotonic() > until:
                raise Missing(f"the broker was not ready within {READY_S} s: see {self.home}/log")
            time.sleep(0.05)

    def ready(self):
        """Does it answer, and know itself as the broker?"""
        argv = ["kcat", "-L", "-b", self.address, "-m", "2"]
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        return done.returncode == 0 and b" 1 brokers:" in done.stdout

    def _end(self, number):
        if self.pid is not None and is_running(self.pid):
            os.kill(self.pid, number)
            until = time.monotonic() + STOP_S
            while is_running(self.pid):
                if time.monotonic() > until:
                    number = signal.SIGKILL
                    os.kill(self.pid, number)
                time.sleep(0.02)
        if self.process is not None:
            self.process.wait()
        self.process, self.pid = None, None

    def kill(self):
        self._end(signal.SIGKILL)

    def stop(self):
        self.close()
        self._end(signal.SIGTERM)


def main():
    parser = argparse.ArgumentParser(description="A real Apache Kafka broker.")
    parser.add_argument("what", choices=["install", "start", "topic", "kill", "stop"])
    parser.add_argument("dir", nargs="?")
    parser.add_argument("name", nargs="?")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--heap", type=int, default=512)
    parser.add_argument("--partitions", type=int, default=4)
    arguments = parser.parse_intermixed_args()
    if arguments.what != "install" and arguments.dir is None:
        parser.error("expected a directory")
    try:
        install()
        if arguments.what == "install":
            return 0
        broker = Broker(arguments.dir, arguments.heap)
        if arguments.what == "start":
            print(broker.start().address)
        elif arguments.what == "topic":
            broker.create_topic(arguments.name, arguments.partitions,
                                **dict(setting.split("=", 1) for setting in arguments.settings))
        else:
            {"kill": broker.kill, "stop": broker.stop}[arguments.what]()
    except (Missing, rdkafka.Failed) as error:
        sys.exit(f"kafka.py: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
