"""One round: servers, daemons and sources, the faults of the schedule, and the end, in which all that is left is counted."""

import collections
import os
import re
import signal
import time

import judge
import proxy
import schedule
from schedule import DAEMONS, PARTITIONS, TURN_S
from stores import Mongo, Sqlite
from world import AGAIN_TURNS, DEFINITION, Daemon, LogFile, Topic

RATE = 400  # events a second, into the topic; into the file a quarter of that
DRAIN_S, STOP_S = 60, 40
CLOCK_TURNS = 80
FIRST = 40  # events that are there before the daemons
BEGUN = re.compile("event=(?:consuming|source_opened)")


def generation_of(source):
    """2 of kafka:access~2, which is what an accepted topic is counted as."""
    return int(source.partition("~")[2] or 1)


class Round:
    rounds = 0

    def __init__(self, home, broker, server, dice, options):
        Round.rounds += 1
        self.home, self.broker, self.server = home, broker, server
        self.is_mongo = server is not None
        self.faults = schedule.draw(dice, options.seconds, self.is_mongo, [one for one in options.only.split(",") if one])
        self.turns, self.turn, self.begun_s = round(options.seconds / TURN_S), 0, int(time.time())
        self.topic = Topic(dice, broker, f"chaos{Round.rounds}_{os.getpid()}", PARTITIONS)
        self.file = LogFile(dice, os.path.join(home, "followed.log"))
        self.flush = 100
        self.daemons = [Daemon(home, number, self.configure, self.topic) for number in range(DAEMONS)]
        self.between = proxy.Proxy(server.port) if self.is_mongo else None
        self.ends_by_server = dice.random() < 0.5
        self.stores = self.make_stores(f"chaos{Round.rounds}")
        self.ends = []  # (turn, what to do then)
        self.told = {id(store): {} for store in self.stores}
        self.played = collections.Counter()

    def make_stores(self, name):
        if self.is_mongo:
            return [Mongo(self.home, self.daemons, self.server, name, self.between.port, self.ends_by_server)]
        return [Sqlite(daemon.home, daemon) for daemon in self.daemons]

    def store_of(self, daemon):
        return next(store for store in self.stores if daemon in store.daemons)

    def sources_of(self, store):
        return [source for source in (self.topic, self.file)
                if any(daemon.follows == source.name for daemon in store.daemons)]

    def configure(self, daemon):
        """The file of a daemon."""
        raw = ", raw: [time, path, response_size]" if self.is_mongo else ""
        kafka = (f'kafka: {{brokers: "{self.broker.address}", group: {self.topic.topic}, instance: d{daemon.number}, properties: '
                 "{session.timeout.ms: 4000, heartbeat.interval.ms: 300}}\n"
                 f"sources: {{{self.topic.topic}: {{type: kafka, decode: [combined]{raw}}}}}\n")
        if daemon.follows == self.file.name:
            kafka = f'sources: {{followed: {{path: "{self.file.path}", decode: [combined]}}}}\n'
        return (f'{kafka}{self.store_of(daemon).configured(daemon)}aggregate: {{flush: {self.flush}ms}}\n'
                'rejects: {file: disk/rejected}\nhttp: {listen: "127.0.0.1:0"}\n')

    # ---- faults

    def later(self, turns, what):
        self.ends.append((self.turn + turns, what))

    def mark(self, what):
        """How often each store had told of such a thing before it happened."""
        pattern = judge.EXPIRED if what == "retention" else judge.RECREATED
        for store in self.stores:
            told = self.told[id(store)]
            told.setdefault((what, self.topic.incarnation), store.told(pattern))
            told.setdefault(("unproven", self.topic.incarnation), store.told(judge.UNPROVEN))
            told.setdefault((what + " unproven", self.topic.incarnation), store.told(judge.UNPROVEN))
            of_topic = [at for name, found in store.positions().items() if name.startswith("kafka:") for at in found.values()]
            if what == "recreate" and not any(of_topic):
                told["unseen", self.topic.incarnation] = 1

    def pause_all(self, paused):
        for daemon in self.daemons[:-1]:
            daemon.signal(signal.SIGSTOP if paused else signal.SIGCONT)

    def kill(self, daemon, _):
        daemon.kill()

    def die(self, daemon, fault):
        """By its own hand, at a place in the code."""
        daemon.kill()
        daemon.failpoint = fault.more

    def pause(self, daemon, fault):
        daemon.signal(signal.SIGSTOP)
        self.later(fault.turns, lambda: daemon.signal(signal.SIGCONT))

    def broker_fault(self, *_):
        self.topic.restart_broker()

    def recreate(self, _, fault):
        paused, burst = fault.more
        self.topic.note()
        self.mark("recreate")
        before = self.topic.length()
        if paused:
            self.pause_all(True)
        self.topic.recreate()
        self.topic.produce(int(before * burst))
        self.topic.producer.flush()
        if paused:
            self.pause_all(False)

    def tail(self, _, fault):
        left, paused, burst = fault.more
        self.topic.note()
        self.mark("tail")
        before = self.topic.length()
        if paused:
            self.pause_all(True)
        self.topic.lose_tail(left)
        self.topic.produce(int(before * burst))
        self.topic.producer.flush()
        if paused:
            self.pause_all(False)

    def transaction(self, _, fault):
        """Some records are sent in it while it is open."""
        of = self.topic.transaction
        of.begin()
        self.later(fault.turns, getattr(of, fault.more))
        if fault.more == "abandon":
            self.later(2 * fault.turns, of.settle)

    def retention(self, _, fault):
        share, paused = fault.more
        self.mark("retention")
        if paused:
            self.pause_all(True)
            self.topic.produce(RATE)
        self.topic.expire(share)
        if paused:
            self.pause_all(False)

    def clock(self, daemon, fault):
        daemon.advance(fault.more)
        self.later(CLOCK_TURNS, lambda: daemon.advance(0))

    def reload(self, daemon, _):
        """Another interval; and SIGHUP only once it is there to take it."""
        self.flush = 100 if self.flush > 100 else 300
        if daemon.status() is not None:
            with open(daemon.path("tallyd.yaml"), "w", encoding="utf-8") as file:
                file.write(self.configure(daemon))
            daemon.signal(signal.SIGHUP)

    def redefine(self, daemon, fault):
        """Another generation of a report: of all daemons of a store, one after the other, or of one that nobody told of the rest."""
        for number, one in enumerate(self.store_of(daemon).daemons if fault.more else [daemon]):
            self.later(1 + 15 * number, one.redefine)

    def roll_out(self, daemon):
        """It refuses to count beside another definition: an operator gives all daemons of the store the new one."""
        if daemon.refusal is not None and DEFINITION.search(daemon.refusal):
            for one in self.store_of(daemon).daemons:
                one.redefine()
                if one.refusal is not None:
                    one.refusal, one.again_at = None, self.turn + AGAIN_TURNS

    def dump(self, daemon, _):
        self.store_of(daemon).dump()

    def restore(self, daemon, fault):
        store = self.store_of(daemon)
        if store.dumped:
            store.restore(fault.more)

    def disk(self, daemon, fault):
        daemon.fill_disk(True)
        self.later(fault.turns, lambda: daemon.fill_disk(False))

    def cut(self, *_):
        self.between.cut()

    def server_fault(self, *_):
        self.server.kill()
        self.server.start()

    def apply(self, fault):
        print(f"  turn {self.turn}: {fault.what} d{fault.daemon} for {fault.turns}: {fault.more}", flush=True)
        self.played[fault.what] += 1
        does = {"broker": self.broker_fault, "server": self.server_fault}.get(fault.what) or getattr(self, fault.what)
        does(self.daemons[fault.daemon], fault)

    # ---- the round

    def begin(self):
        """All daemons, until each has seen its source."""
        for source in (self.topic, self.file):
            source.produce(FIRST)
        self.topic.producer.flush()
        for daemon in self.daemons:
            daemon.start()
        until = time.monotonic() + DRAIN_S
        while not all(BEGUN.search(daemon.said()) for daemon in self.daemons) and time.monotonic() < until:
            time.sleep(TURN_S)

    def play(self):
        self.begin()
        while self.turn < self.turns:
            until = time.monotonic() + TURN_S
            self.topic.produce(round(RATE * TURN_S))
            self.file.produce(round(RATE * TURN_S / 4))
            self.take_turn()
            while self.faults and self.faults[0].at <= self.turn:
                self.apply(self.faults.pop(0))
            time.sleep(max(0, until - time.monotonic()))
        self.drain()
        self.stop()
        self.topic.note()
        for store in self.stores:
            store.settle()
        return [(self.name_of(store), judge.judge(store, self.sources_of(store), self.told[id(store)], self.begun_s))
                for store in self.stores]

    def events(self):
        """How many were produced."""
        return len(self.topic.times) + len(self.file.times)

    def name_of(self, store):
        return "store" if self.is_mongo else f"store of d{store.daemons[0].number}"

    def take_turn(self):
        self.turn += 1
        due = [one for one in self.ends if one[0] <= self.turn]
        self.ends = [one for one in self.ends if one[0] > self.turn]
        for _, what in due:
            what()
        for daemon in self.daemons:
            daemon.supervise(self.turn)
            self.roll_out(daemon)

    def is_drained(self, store):
        """Is each of its sources counted up to its end? In a group, some partitions may go on where others begin again."""
        positions = store.positions()
        for source in self.sources_of(store):
            stem = "kafka:" + self.topic.topic if source is self.topic else "file:"
            found = {}
            for name in sorted((name for name in positions if name.startswith(stem)), key=generation_of):
                found.update({partition: at for partition, at in positions[name].items() if at > 0})
            if found != {partition: end for partition, end in source.ends().items() if end > 0}:
                return False
        return True

    def drain(self):
        """Nothing more goes wrong, and what is there is counted; a store all of whose daemons refused needs not."""
        self.ends.sort(key=lambda one: one[0])
        for _, what in self.ends:
            what()
        self.ends = []
        self.topic.transaction.abandon()
        self.topic.transaction.settle()
        self.topic.producer.flush()
        for daemon in self.daemons:
            daemon.heal()
        until = time.monotonic() + DRAIN_S
        left = list(self.stores)
        while left and time.monotonic() < until:
            self.take_turn()
            left = [store for store in left if not all(daemon.refusal for daemon in store.daemons) and not self.is_drained(store)]
            time.sleep(TURN_S)
        for store in left:
            print(f"  {self.name_of(store)} is not drained: {dict(store.positions())}, {[source.ends() for source in self.sources_of(store)]}",
                  flush=True)

    def stop(self):
        for daemon in self.daemons:
            daemon.signal(signal.SIGTERM)
        until = time.monotonic() + STOP_S
        for daemon in self.daemons:
            while daemon.process is not None and daemon.process.poll() is None and time.monotonic() < until:
                time.sleep(0.02)
            daemon.kill()

    def close(self):
        for daemon in self.daemons:
            daemon.kill()
        for closing in (self.between, self.topic, self.file, *self.stores):
            if closing is not None:
                closing.close()
