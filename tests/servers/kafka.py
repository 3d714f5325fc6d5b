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
import os
import re
import shutil
import subprocess
import sys

import rdkafka
from process import CACHE, Missing, Program, free_ports, making, run

VERSION = "4.3.1"
HOME = os.path.join(CACHE, f"kafka-{VERSION}")
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
CLUSTER = "dGFsbHlkLXRlc3QtYnJva2"  # any 16 bytes, in base64
INSTALL_S, FORMAT_S = 200, 60
QUICKLY, THOROUGHLY = "-XX:TieredStopAtLevel=1", "-XX:TieredStopAtLevel=4"  # how Java compiles

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
    with making(HOME) as part:
        if part is None:
            return
        if not shutil.which("mvn"):
            raise Missing("mvn is not installed (Debian package maven)")
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


class Broker(Program, rdkafka.Cluster):
    """A broker whose data, properties and log are in `home`. Its address stays the same until it is stopped."""

    NAME, STATE = "broker", "broker.json"
    number = 1

    def __init__(self, home, heap_mib=512):
        Program.__init__(self, home)
        self.heap_mib = heap_mib
        rdkafka.Cluster.__init__(self, f"127.0.0.1:{self.port}")

    def prepare(self):
        port, control = free_ports(2)
        properties = os.path.join(self.home, "server.properties")
        with open(properties, "w", encoding="ascii") as file:
            file.write(self.properties(port, control))
        shutil.copytree(os.path.join(self.format(properties), "data"), os.path.join(self.home, "data"))
        return port

    def properties(self, port, control):
        return PROPERTIES.format(port=port, control=control, dir=self.home)

    def format(self, properties):
        """A folder with the data that a broker of this number begins with: made once, since it takes a second of processor time."""
        home = f"{HOME}-node-{self.number}"
        with making(home) as part:
            if part is not None:
                with open(properties, encoding="ascii") as file, open(f"{part}/server.properties", "w", encoding="ascii") as there:
                    there.write(file.read().replace(self.home, part))
                run(java("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", f"{part}/server.properties"),
                    "formatting a broker's data", FORMAT_S)
                os.rename(part, home)
        return home

    def start(self, *options):
        """Begin or begin again, and wait until it serves. Without THOROUGHLY it is compiled QUICKLY, as suits a short run."""
        return self.launch(java(QUICKLY, *options, "kafka.Kafka", os.path.join(self.home, "server.properties"),
                                heap_mib=self.heap_mib))

    def ready(self):
        """Does it answer, and know itself as the broker?"""
        argv = ["kcat", "-L", "-b", self.address, "-m", "2"]
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        return done.returncode == 0 and b" 1 brokers:" in done.stdout

    def stop(self):
        self.close()
        super().stop()


class Member(Broker):
    """One more broker, of the cluster whose controller is `first`."""

    def __init__(self, home, number, first, heap_mib=256):
        self.number, self.first = number, first
        super().__init__(home, heap_mib)

    def properties(self, port, control):
        with open(os.path.join(self.first.home, "server.properties"), encoding="ascii") as file:
            control = re.search(r"quorum.voters=1@127.0.0.1:(\d+)", file.read()).group(1)
        text = PROPERTIES.format(port=port, control=control, dir=self.home).replace("node.id=1\n", f"node.id={self.number}\n")
        return (text.replace("roles=broker,controller", "roles=broker")
                .replace(f",CONTROLLER://127.0.0.1:{control}\nadvertised", "\nadvertised"))

    def ready(self):
        """Do the others know it?"""
        argv = ["kcat", "-L", "-b", self.address, "-m", "2"]
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        return f"broker {self.number} at {self.address}".encode() in done.stdout


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
