#!/usr/bin/env python3
"""A daemon between a real Kafka broker and a MongoDB server: whichever of them dies, each event is counted once.

TALLYD_MONGO names the server. TALLYD_ROUNDS (4 by default) says how often the daemon is killed by chance. The seed is printed; TALLYD_SEED repeats a run, as
far as the moments of a machine can be repeated.
"""

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time

import kafkacase
import mongocase
from harness import EX_CONFIG, EX_DATAERR, EX_OK, TIMEOUT_S, draw_death, failpoints, get_reply
from kafkacase import Feed, in_envelope
from mongokafkacase import MongoKafkaCase
from process import free_ports

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 4)


class MongoKafka(MongoKafkaCase):
    def setUp(self):
        super().setUp()
        self.feeds = (Feed(self, 3, "combined"), Feed(self, 2, "json:/message, combined", in_envelope))
        # A name in the group: else those killed would keep their partitions until their session ends.
        self.configure_mongo(member=", instance: one")

    def test_all_is_counted_once(self):
        self.send(1000)
        self.run_daemon()
        self.check_all(*self.feeds)

    def test_killed_at_every_failpoint(self):
        for name in failpoints("mongo."):
            with self.subTest(failpoint=name):
                process = self.run_daemon(failpoint=f"{name}:{1 + self.dice.randrange(2)}", consuming=False)
                until = time.monotonic() + TIMEOUT_S
                while process.poll() is None:
                    self.assertLess(time.monotonic(), until, f"failpoint {name} was not reached\n{self.said()}")
                    self.send(20)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(8 if name == "mongo.done" else 0.1)  # it comes when nothing else does for two seconds
                self.assertEqual(-signal.SIGKILL, process.returncode, self.said())
                self.check_prefix(*self.feeds)
        self.run_daemon()
        self.check_all(*self.feeds)

    def test_killed_anywhere(self):
        for _ in range(ROUNDS):
            self.send(self.dice.choice([20, 300]))
            self.run_daemon(failpoint=draw_death(self.dice, failpoints("mongo.", "slot.", "claim.", "ingest.", "offsets."), 4), consuming=False)
            with contextlib.suppress(subprocess.TimeoutExpired):
                for _ in range(5):
                    self.send(self.dice.choice([1, 200]))
                    self.process.wait(1)
            self.kill()  # it did not pass there so often
            self.check_prefix(*self.feeds)
        self.run_daemon()
        self.check_all(*self.feeds)

    def test_server_killed_and_restarted(self):
        self.run_daemon()
        for _ in range(2):
            self.send(300)
            time.sleep(self.dice.random() * 0.5)  # by time: the server has no failpoints
            self.server.kill()
            self.send(300)
            time.sleep(self.dice.random())
            self.server.start()
            self.wait_counted(*self.feeds)
        self.check_all(*self.feeds)

    def test_server_that_is_away_at_the_start_is_waited_for(self):
        self.send(100)
        self.server.kill()
        port, = free_ports(1)
        url = f"http://127.0.0.1:{port}"
        self.run_daemon("--listen", f"127.0.0.1:{port}", consuming=False)
        self.wait_for(lambda: get_reply(f"{url}/healthz"), lambda found: found == (200, "ok\n"))  # who probes it lets it live
        self.wait_for_log("event=store_away ")
        self.assertEqual(1, self.said().count("event=store_away"))
        self.wait_for(lambda: get_reply(f"{url}/readyz"), lambda found: found[0] == 503 and found[1].startswith("waiting for the store: "))
        self.assertEqual((200, "ok\n"), get_reply(f"{url}/healthz"))
        self.server.start()
        self.wait_for(lambda: get_reply(f"{url}/readyz"), lambda found: found == (200, "ok\n"))
        self.check_all(*self.feeds)

    def test_stopped_while_the_server_is_away(self):
        self.server.kill()
        self.run_daemon(consuming=False)
        self.wait_for_log("event=store_away")
        self.process.terminate()
        self.assertEqual(EX_OK, self.process.wait(TIMEOUT_S), self.said())
        self.server.start()

    def one_ends(self, *daemons):
        """If two have one name in the group, the first ends and says why, and the other goes on."""
        def ended():
            return [daemon for daemon in daemons if daemon.poll() is not None]
        gone = self.wait_for(ended, bool, alive=False)
        self.assertEqual([EX_CONFIG], [daemon.returncode for daemon in gone])
        self.process, = set(daemons) - set(gone)
        before = self.starts - len(daemons)
        self.log_name = f"log.{before + 1 + daemons.index(self.process)}"
        said = b"".join(self.read(f"log.{before + number}") for number in (1, 2)).decode()
        self.assertRegex(said, r"\ntallyd run: .*another tallyd has taken this one's place under the same kafka.instance, writer "
                         rf"w\d+ \(process {self.process.pid} on {socket.gethostname()}, group {self.group}, instance one, "
                         "since .*: give each its own")

    def test_second_daemon_of_one_name_takes_over(self):
        self.send(300)
        first = self.run_daemon()
        self.wait_counted(*self.feeds)
        second = self.run_daemon()
        self.send(300)
        self.one_ends(first, second)
        self.check_all(*self.feeds)

    def test_two_of_one_name_beside_a_third(self):
        """The third one takes partitions of each, so that they lose batches, too: yet one of the two ends, and stays so."""
        self.configure_mongo(member=", instance: other")
        third = self.run_daemon()
        self.configure_mongo(member=", instance: one")
        twins = [self.run_daemon(consuming=False) for _ in range(2)]
        for _ in range(20):
            self.send(30)
            time.sleep(self.dice.random() * 0.3)
        self.wait_for(lambda: [twin.poll() for twin in twins], lambda found: EX_CONFIG in found, alive=False)
        for _ in range(10):
            self.send(30)
            time.sleep(self.dice.random() * 0.3)
        self.assertEqual(sorted([EX_CONFIG, 0]), sorted(twin.poll() or 0 for twin in twins))
        self.assertIsNone(third.poll())
        self.process, self.log_name = third, "log.1"
        self.wait_counted(*self.feeds)
        for twin in twins:
            twin.terminate()
            twin.wait(TIMEOUT_S)
        self.check_all(*self.feeds)

    def test_one_that_was_thought_dead_is_woken(self):
        self.send(300)
        first = self.run_daemon()
        self.send(300)
        time.sleep(self.dice.random() * 0.3)
        first.send_signal(signal.SIGSTOP)
        second = self.run_daemon()
        self.send(300)
        self.wait_counted(*self.feeds)
        first.send_signal(signal.SIGCONT)
        self.send(300)
        self.one_ends(first, second)
        self.check_all(*self.feeds)

    def check_woken_at(self, request):
        """The first daemon is paused at a request to the server, which gets it when the second one has its place."""
        self.send(300)
        self.run_daemon()
        self.wait_counted(*self.feeds)
        self.stop()  # from now on the topics are known, and each partition begins when the group gives it
        held, released = threading.Event(), threading.Event()
        self.addCleanup(released.set)

        def answer(piece):
            if not held.is_set() and all(part in piece for part in request):
                held.set()
                released.wait(TIMEOUT_S)

        with mongocase.proxy.Proxy(self.server.port, answer=answer) as between:
            self.write("first.yaml", self.read("tallyd.yaml").replace(b":%d/" % self.server.port, b":%d/" % between.port))
            first = self.run_daemon("-c", "first.yaml", consuming=False)
            self.assertTrue(held.wait(TIMEOUT_S), self.said())
            first.send_signal(signal.SIGSTOP)
            second = self.run_daemon()
            self.send(300)
            self.wait_counted(*self.feeds)
            released.set()
            first.send_signal(signal.SIGCONT)
            self.send(300)
            self.one_ends(first, second)
            self.assertIs(second, self.process)
            self.check_all(*self.feeds)

    def test_one_that_is_woken_claims_once_more(self):
        self.check_woken_at((b"findAndModify", b".owner\0"))

    def test_one_that_is_woken_joins_once_more(self):
        """It had looked for others, and the last thing that it looked for before it joins is newer generations."""
        self.check_woken_at((b"\x02find\0", b"reports\0", b"projection\0", b"generation\0"))

    def test_one_name_in_two_databases(self):
        """Neither finds the other in its database. They take the place from each other, and that ends."""
        first = self.run_daemon()
        self.url += "b"
        self.configure_mongo(member=", instance: one")
        self.run_daemon()
        self.assertEqual(EX_CONFIG, first.wait(TIMEOUT_S))
        self.assertIn("another tallyd has joined the group under the same kafka.instance: give each its own", self.read("log.1").decode())
        self.stop()

    def test_topic_created_again_while_it_is_paused(self):
        """In a group, too: nothing of the new topic is counted as if it were the old one's."""
        feed = self.feeds[0]
        self.send(300)
        self.run_daemon()
        self.wait_counted(*self.feeds)
        before = self.nexts(feed.source)
        self.process.send_signal(signal.SIGSTOP)
        feed.create_anew()
        feed.send(3000, seconds=60)  # in each partition more than was counted of the old one
        feed.flush()
        self.process.send_signal(signal.SIGCONT)
        self.assertEqual(EX_DATAERR, self.process.wait(TIMEOUT_S), self.said())
        self.assertIn(f"tallyd run --accept {feed.topic}", self.said())
        self.assertEqual(before, self.nexts(feed.source))
        self.run_daemon("--accept", feed.topic)
        self.wait_for(lambda: self.nexts(f"{feed.source}~2"), lambda found: found == feed.lengths())
        self.stop()
        self.assertEqual(600, sum(self.book(of.source, "consumed") for of in self.feeds))
        self.assertEqual(3000, self.book(f"{feed.source}~2", "consumed"))
        self.check_books()


if __name__ == "__main__":
    mongocase.main(kafkacase.main)
