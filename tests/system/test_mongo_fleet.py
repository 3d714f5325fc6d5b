#!/usr/bin/env python3
"""Many daemons in one consumer group, into one database: whoever joins, leaves, dies or sleeps, each event is counted once.

TALLYD_ROUNDS (6 by default) says how often the fleet is changed by chance. The seed is printed; TALLYD_SEED repeats a run, as
far as the moments of a machine can be repeated. TALLYD_KILLS (8 by default): how many daemons die at a step that is drawn.
"""

import collections

import json
import os
import re
import signal
import time

import kafkacase
import mongocase
from harness import EX_DATAERR, EX_OK, TIMEOUT_S, draw_death, failpoints, get
from kafkacase import Feed, Recount
from mongokafkacase import MongoKafkaCase

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 6)
KILLS = int(os.environ.get("TALLYD_KILLS") or 8)
STEPS = failpoints("mongo.", "roll_up.", "replay.", "slot.", "claim.", "rollup.", "top.")
FLEET, PARTITIONS = 8, 12
SESSION_S = 3
LIFE_S = 8  # of a daemon that does not come to its step
COOPERATIVE, EAGER, RANGE = "cooperative-sticky", "roundrobin", "range"


class Fleet(MongoKafkaCase):
    def setUp(self):
        super().setUp()
        self.feeds = (Feed(self, PARTITIONS, "combined"),)
        self.daemons = []
        self.begin()

    def begin(self, strategy=COOPERATIVE, more="", flush="100ms", session_s=SESSION_S, jobs=""):
        self.configure_mongo(flush=flush, more=jobs, member=f", properties: {{session.timeout.ms: {1000 * session_s}, heartbeat.interval.ms: 200, "
                                    f"partition.assignment.strategy: \"{strategy}\"}}{more}")

    # ---- daemons: each knows the name of its log

    def join(self, *arguments, **options):
        daemon = self.run_daemon(*arguments, **options)
        daemon.log_name = self.log_name
        self.daemons.append(daemon)
        return daemon

    def leave(self, daemon, number):
        """SIGTERM: all that it read is stored; SIGKILL: its session ends by and by."""
        self.daemons.remove(daemon)
        if number == signal.SIGTERM:  # which, before, ends it as any process
            self.wait_for(lambda: self.read(daemon.log_name), lambda said: b"event=started " in said, alive=False)
        daemon.send_signal(number)
        daemon.wait(TIMEOUT_S)
        if number == signal.SIGTERM:
            self.assertEqual(EX_OK, daemon.returncode, self.read(daemon.log_name).decode())

    def of(self, daemon):
        """How many partitions it consumes."""
        return self.figure(daemon, "partitions")

    def figure(self, daemon, name):
        address = re.search(r"listen=(\S+)", self.read(daemon.log_name).decode())
        text = get(f"http://{address[1]}/metrics") if address else ""
        found = re.search(rf"^tallyd_{name} (\d+)$", text, re.M)
        return int(found[1]) if found else 0

    def wait_balanced(self):
        """Until each has its share."""
        self.wait_for(lambda: sorted(self.of(daemon) for daemon in self.daemons),
                      lambda found: sum(found) == PARTITIONS and found[-1] - found[0] <= 1, alive=False)

    def check_fleet(self):
        """All of it is counted; the last one standing is asked."""
        self.process = self.daemons[-1]
        self.log_name = self.process.log_name
        self.wait_counted(*self.feeds)
        while len(self.daemons) > 1:
            self.leave(self.daemons[0], signal.SIGTERM)
        self.check_all(*self.feeds)

    def create_anew(self, feed):
        """The topic, with other records, while nobody consumes it; all that was counted before."""
        while self.daemons:
            self.leave(self.daemons[0], signal.SIGTERM)
        before = self.total()
        feed.create_anew()
        self.send(300)
        feed.source = f"kafka:{feed.topic}~2"
        return before

    def take_place(self, name, *arguments):
        """A daemon of that name, which the group expects back when it stops, with the same partitions."""
        self.begin(RANGE, f", instance: {name}", session_s=30)
        return self.join(*arguments, consuming=not arguments)

    def create_anew_of_places(self, feed):
        """The same, when two daemons have their places."""
        for name in "first", "second":
            self.take_place(name)
        self.wait_balanced()
        self.wait_counted(feed)
        return self.create_anew(feed)

    def wait_beside(self, feed, before):
        """Until its records are counted beside those."""
        self.wait_counted(feed)
        self.wait_for(self.total, lambda found: found == before + Recount(entry for log in feed.logs for entry in log).hits)

    def feed(self, rounds=1):
        for _ in range(rounds):
            self.send(40)
            time.sleep(self.dice.random() * 0.2)

    # ----

    def test_two_eight_one(self):
        self.grow_and_shrink(COOPERATIVE)

    def test_two_eight_one_eagerly(self):
        self.grow_and_shrink(EAGER)

    def grow_and_shrink(self, strategy):
        self.begin(strategy)
        self.send(200)
        for count in 2, FLEET:
            while len(self.daemons) < count:
                self.join(consuming=False)
                self.feed()
            self.wait_balanced()
            self.feed(3)
        while len(self.daemons) > 1:
            self.leave(self.dice.choice(self.daemons), self.dice.choice([signal.SIGTERM, signal.SIGKILL]))
            self.feed()
        self.check_fleet()

    def test_changed_at_random_moments(self):
        self.join()
        for _ in range(ROUNDS):
            self.feed()
            what = self.dice.choice(["join", "leave", "kill", "sleep"])
            if what == "join" or len(self.daemons) == 1:
                self.join(consuming=False)
            elif what == "sleep":
                sleeper = self.dice.choice(self.daemons)
                sleeper.send_signal(signal.SIGSTOP)
                self.feed(int(self.dice.random() * 2 * SESSION_S / 0.1))
                sleeper.send_signal(signal.SIGCONT)
            else:
                number = signal.SIGTERM if what == "leave" else signal.SIGKILL
                self.leave(self.dice.choice(self.daemons), number)
        self.check_fleet()

    def test_four_killed_at_any_step(self):
        """Each dies at a step that is drawn, of a batch, a roll-up, a claim or a job, and another takes its place."""
        self.begin(jobs="jobs: {rollup_after: 1s}\n")
        born, died = {}, collections.Counter()
        while died.total() < KILLS:
            while len(self.daemons) < 4:
                step = draw_death(self.dice, STEPS, 4)
                born[self.join(failpoint=step, consuming=False)] = (time.monotonic(), step.split(":")[0])
            self.feed()
            for daemon in list(self.daemons):
                since, step = born[daemon]
                if daemon.poll() is None and time.monotonic() - since > LIFE_S:
                    step = "any moment"
                    daemon.kill()
                    daemon.wait(TIMEOUT_S)
                if daemon.poll() is not None:
                    self.assertEqual(-signal.SIGKILL, daemon.returncode, self.read(daemon.log_name).decode())
                    self.daemons.remove(daemon)
                    died[step] += 1
        print(f"{died.total()} deaths: " + ", ".join(f"{count} {step}" for step, count in died.most_common()))
        while self.daemons:
            self.leave(self.daemons[0], signal.SIGKILL)
        self.join()
        self.check_fleet()
        self.base.jobs.update_many({}, {"$unset": {"until": ""}})  # leases of the dead
        self.tallyd("job", "run", "rollup", "--now", "-c", "tallyd.yaml")
        for report in "site", "pages":
            self.assertEqual(self.by_month(report, "day", "daily"), self.by_month(report, "month", "total"))
            self.assertEqual(self.by_month(report, "day", "daily"), self.by_month(report, "year", "total", of_months=True))

    def by_month(self, report, kind, member, of_months=False):
        """{(month, path): [hits, bytes]} of the documents of a kind."""
        found = collections.defaultdict(lambda: [0, 0])
        for document in self.base[f"{report}.{kind}"].find():
            date, path = document["metadata"]["date"], document["metadata"].get("path")
            for column, counts in enumerate((document, document.get("bytes", {}))):
                values = counts.get(member, {})
                for month, value in values.items() if of_months else [(date.month, values or 0)]:
                    found[date.year, int(month), path][column] += value
        return dict(found)

    def test_one_asleep_beyond_its_session_goes_on_afterwards(self):
        for _ in range(2):
            self.join()
        self.wait_balanced()
        sleeper, other = self.daemons
        self.feed()
        sleeper.send_signal(signal.SIGSTOP)
        self.send(200)
        self.wait_for(lambda: self.of(other), lambda found: found == PARTITIONS)
        self.wait_counted(*self.feeds)
        sleeper.send_signal(signal.SIGCONT)
        self.feed(3)
        self.wait_balanced()
        self.assertIsNone(sleeper.poll())
        self.assertIn(b"event=session_ended", self.read(sleeper.log_name))
        self.check_fleet()

    def test_stopped_when_others_went_on_with_its_batch(self):
        """It has nothing left to store: that is no failure."""
        self.begin(flush="2s")
        for _ in range(2):
            self.join()
        self.wait_balanced()
        sleeper, other = self.daemons
        self.send(200)
        sleeper.send_signal(signal.SIGSTOP)
        self.wait_for(lambda: self.of(other), lambda found: found == PARTITIONS)
        self.wait_counted(*self.feeds)
        sleeper.send_signal(signal.SIGTERM)
        sleeper.send_signal(signal.SIGCONT)
        self.daemons.remove(sleeper)
        sleeper.wait(TIMEOUT_S)
        said = self.read(sleeper.log_name).decode()
        self.assertEqual(EX_OK, sleeper.returncode, said)
        # Whichever it hears first: the store's word for its batch, or the group's.
        self.assertRegex(said, rf"another tallyd took over .*: writer w\d+ \(process {other.pid} on .*, group {self.group}, since .*\), "
                         "to which the group assigned it: start again|the group gave the partitions to others")
        self.check_fleet()

    def test_taken_while_the_store_is_away(self):
        """A daemon releases partitions whose records it could not store in time; their next owner counts them."""
        self.begin(EAGER, ", revoke_timeout: 300ms")
        for _ in range(2):
            self.join()
        self.wait_balanced()
        first, second = self.daemons
        taken = self.read(first.log_name).count(b"event=partitions_taken")  # when the second one came
        self.server.process.send_signal(signal.SIGSTOP)
        self.addCleanup(lambda: self.server.process.send_signal(signal.SIGCONT))
        self.feed(3)
        self.leave(second, signal.SIGKILL)
        self.wait_for(lambda: self.read(first.log_name).count(b"event=partitions_taken"), lambda found: found > taken,
                      alive=False)
        time.sleep(1)
        self.server.process.send_signal(signal.SIGCONT)
        self.wait_for(lambda: self.read(first.log_name), lambda said: b"(kafka.revoke_timeout)" in said, alive=False)
        self.wait_balanced()
        self.feed(2)
        self.check_fleet()

    def test_restart_of_an_instance_disturbs_nobody(self):
        self.begin(more=", instance: first", session_s=30)  # within which it is back, however slowly it starts
        first = self.join()
        self.begin(more=", instance: second", session_s=30)
        second = self.join()
        self.wait_balanced()
        before = self.figure(second, "rebalances_total")
        self.feed()
        self.leave(first, signal.SIGTERM)
        self.begin(more=", instance: first", session_s=30)
        self.join()
        self.feed()
        self.wait_balanced()
        self.wait_counted(*self.feeds)
        self.assertEqual(before, self.figure(second, "rebalances_total"))
        self.check_fleet()

    def test_more_daemons_than_partitions(self):
        self.feeds = (Feed(self, 1, "combined"),)
        self.begin()
        for _ in range(2):
            self.join()
        self.wait_for(lambda: sorted(self.of(daemon) for daemon in self.daemons), lambda found: found == [0, 1])
        self.send(50)
        for daemon in self.daemons:
            address = re.search(r"listen=(\S+)", self.read(daemon.log_name).decode())[1]
            self.wait_for(lambda address=address: json.loads(get(f"http://{address}/api/v1/status"))["ready"], bool)
        self.check_fleet()

    def test_new_partitions(self):
        self.configure_mongo(member=", properties: {topic.metadata.refresh.interval.ms: 300}")
        for _ in range(2):
            self.join()
        self.feed()
        feed, = self.feeds
        feed.add_partitions(4)
        self.send(200)
        self.check_fleet()

    def test_a_topic_created_anew(self):
        """It is refused by each, until it is accepted; then it is counted beside the old one."""
        feed, = self.feeds
        self.send(200)
        for _ in range(2):
            self.join()
        self.wait_counted(feed)
        before = self.create_anew(feed)
        self.refused(EX_DATAERR, "re-created", f"--accept {feed.topic}")
        for _ in range(2):
            self.join("--accept", feed.topic, consuming=False)
        self.wait_balanced()  # so both found out, and neither took the other's incarnation for the old one
        self.wait_beside(feed, before)
        self.wait_for(lambda: self.book(feed.source, "consumed"), lambda found: found == 300)
        for daemon in self.daemons:
            self.assertNotIn(b"~3", self.read(daemon.log_name))

    def test_a_topic_created_anew_in_partitions_that_were_empty(self):
        """A daemon that has only these asks the others; else it would count records of the new topic as the old one's."""
        feed, = self.feeds
        feed.send(200, 60, PARTITIONS // 2)
        before = self.create_anew_of_places(feed)
        self.take_place("second", "--accept", feed.topic)
        self.wait_for(lambda: self.nexts(feed.source), lambda found: len(found) == PARTITIONS // 2)
        self.take_place("first", "--accept", feed.topic)
        self.wait_beside(feed, before)

    def test_two_find_out_that_a_topic_was_created_anew(self):
        """The second one does not take for the old one what the first has begun meanwhile."""
        feed, = self.feeds
        self.send(200)
        before = self.create_anew_of_places(feed)
        second = self.take_place("second", "--accept", feed.topic)
        self.wait_for_log("event=session_ended .*re-created")  # it sleeps for a second then
        second.send_signal(signal.SIGSTOP)
        self.take_place("first", "--accept", feed.topic)
        self.wait_for(lambda: self.nexts(feed.source), bool)
        second.send_signal(signal.SIGCONT)
        self.wait_beside(feed, before)
        self.assertNotIn(b"~3", self.read(second.log_name))

    def test_first_start_at_the_latest(self):
        """The first daemon decides for all partitions, and the next one does not begin them elsewhere."""
        self.send(100)
        feed, = self.feeds
        self.configure({feed.topic: "decode: [combined], start: latest"}, f"store: {{url: \"{self.url}\"}}\n")
        before = feed.lengths()
        first, second = self.join(consuming=False), self.join(consuming=False)
        for daemon in first, second:
            self.wait_for(lambda daemon=daemon: self.read(daemon.log_name),
                          lambda said: b"event=consuming" in said, alive=False)
        self.assertEqual(before, self.nexts(feed.source))
        self.assertEqual(0, self.book(feed.source, "consumed"))
        self.send(100)
        self.wait_counted(feed)
        self.wait_for(lambda: self.book(feed.source, "consumed"), lambda found: found == 100)


if __name__ == "__main__":
    mongocase.main(kafkacase.main)
