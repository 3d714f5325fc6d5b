#!/usr/bin/env python3
"""`tallyd backfill` from the topics of a real Kafka broker: a report that came later has all that the topics still hold, once, up to
where it began to count by itself; beside a running daemon and without one, and whenever either is killed.

The judge is a recount by Python of what was produced, and `tallyd verify`. TALLYD_ROUNDS says how many kills are played (8 by
default). The seed is printed; TALLYD_SEED repeats a run.
"""

import collections
import contextlib
import os
import threading

from harness import EX_NOINPUT, EX_OK, EX_TEMPFAIL, EX_UNAVAILABLE, dice, draw_death, dying_at, failpoints
from kafkacase import LINE, SPAN, Feed, KafkaCase, in_envelope, main

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 8)
SITE = "reports:\n  site: {measures: {hits: count, bytes: sum(bytes)}}\n"
PAGES = SITE + "  pages: {by: [path], measures: {hits: count, bytes: sum(bytes)}}\n"
WHOLE = "has counted all"


class TopicBackfill(KafkaCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()

    def count(self, reports, *feeds, **options):
        """A daemon counts all that is in the topics, with these reports."""
        self.begin(reports, *feeds, **options)
        self.wait_counted(*feeds)
        self.stop()

    def begin(self, reports, *feeds, **options):
        self.configure(list(feeds), reports, **options)
        self.run_daemon()

    def backfill(self, *arguments, report="pages", **options):
        return self.tallyd("backfill", "-c", "tallyd.yaml", report, *arguments, **options)

    def paths(self, *entries):
        pages = collections.defaultdict(lambda: [0, 0])
        for entry in entries:
            if entry.minute is not None:
                pages[entry.path][0] += 1
                pages[entry.path][1] += entry.bytes
        return dict(pages)

    def check_pages(self, entries):
        found = {row["path"]: [int(row["hits"]), int(row["bytes"])]
                 for row in self.query("pages", "--top", "1000", "--measure", "all", span=SPAN)}
        self.assertEqual(self.paths(*entries), found)

    def spans(self, feed, report="pages"):
        """{partition: [since, until]} of a report."""
        rows = self.sql("SELECT CAST(part AS INTEGER), entry, value FROM book JOIN report ON report.id = book.report "
                        "WHERE source = ? AND name = ? AND entry IN ('since', 'until')", feed.source, report)
        spans = collections.defaultdict(dict)
        for part, entry, value in rows:
            spans[part][entry] = value
        return {part: [span["since"], span["until"]] for part, span in spans.items()}

    def test_report_that_came_later_has_all(self):
        """Two topics, of which one has its lines in JSON; the report comes, goes, and comes again."""
        feeds = Feed(self), Feed(self, 2, decode='"json:/message", combined', wrap=in_envelope)
        for reports in SITE, PAGES, SITE, PAGES:
            for feed in feeds:
                feed.send(400, 3600)
            self.count(reports, *feeds)
        said = self.backfill("--dry-run")
        self.assertIn(f"{feeds[0].source}/0: offsets 0 to ", said)
        said = self.backfill()
        self.assertIn(WHOLE, said)
        self.assertEqual({n: [0, count] for n, count in feeds[0].lengths().items()}, self.spans(feeds[0]))
        before = self.sql("SELECT * FROM book ORDER BY source, part, report, entry")
        self.assertNotIn("offsets", self.backfill())
        self.assertEqual(before, self.sql("SELECT * FROM book ORDER BY source, part, report, entry"))
        for feed in feeds:
            feed.send(100, 60)
        self.run_daemon()
        self.check_all(*feeds)

    def test_daemon_counts_beside_its_own_records(self):
        feed = Feed(self)
        feed.send(20000, 3600)
        self.count(SITE, feed)
        self.begin(PAGES, feed)
        end = threading.Event()

        def grow():
            while not end.wait(0.01):
                feed.send(50, 1)
                feed.flush()

        thread = threading.Thread(target=grow)
        thread.start()
        try:
            said = self.backfill()
        finally:
            end.set()
            thread.join()
        self.assertIn("a daemon writes this store", self.err)
        self.assertIn("records read", said)
        self.assertIn(WHOLE, said)
        self.assertNotIn("offsets", self.backfill())
        self.check_all(feed)

    def test_what_the_topic_does_not_hold_is_told(self):
        """By retention: the books say `since`, and answers have a note."""
        feed = Feed(self, 2)
        feed.send(2000, 3600)
        self.count(SITE, feed)
        lengths = feed.lengths()
        feed.send(500, 3600)
        self.count(PAGES, feed)
        self.broker.delete_records(feed.topic, {0: 300})
        said = self.backfill(status=EX_NOINPUT)
        self.assertIn(f"{feed.source}/0: offsets 0 to 300: the topic does not hold them any more", said)
        self.assertIn(f"{feed.source}/0: offsets 0 to 300\n", self.err)
        self.assertNotIn(f"{feed.source}/1: offsets", self.err)
        self.assertGreater(lengths[0], 300)
        self.assertEqual([300, 0], [self.spans(feed)[n][0] for n in (0, 1)])
        self.check_pages(feed.logs[0][300:] + feed.logs[1])
        self.tallyd("query", "pages", "--store", "sqlite:tallyd.db", "--from", "2026-01-04", "--to", SPAN[1], "--step", "day")
        self.assertIn("pages was not configured when 300 bytes (of a topic: records) of 1 source were counted", self.err)
        self.tallyd("verify", "--store-only", "-c", "tallyd.yaml")
        self.tallyd("verify", "-c", "tallyd.yaml", status=3)
        self.backfill(status=EX_NOINPUT)  # and nothing is counted twice
        self.check_pages(feed.logs[0][300:] + feed.logs[1])

    def compacted_topic(self):
        """A topic, and a function that fills it: a record for each key."""
        topic = self.new_compacted_topic()
        producer = self.broker.producer()
        self.addCleanup(producer.close)

        def fill(keys):
            for key in keys:
                producer.send(topic, 0, LINE % (1, 10, 0, 0, b"/", 1), key.encode())
            producer.flush()

        return topic, fill

    def count_topic(self, topic, reports):
        self.configure({topic: "decode: [combined]"}, reports)
        self.run_daemon()
        end = self.broker.watermarks(topic)[0][1]
        self.wait_for(lambda: self.nexts(f"kafka:{topic}").get(0), lambda found: found == end)
        self.stop()

    def backfill_compacted(self, keys, left, *patterns):
        """A new report lacks what compaction deleted of counted records, however often it is backfilled. The old one has it, so
        the new one must not take its place. Returns the names of the gaps in its books."""
        topic, fill = self.compacted_topic()
        fill(keys)
        self.count_topic(topic, SITE)
        self.compact(topic, len(keys), left, lambda: fill(["roll"]))
        fill(["last"])
        self.count_topic(topic, SITE + "  site_new: {measures: {hits: count, bytes: sum(bytes)}}\n")
        later = self.total(report="site_new", span=SPAN)
        self.assertEqual(len(keys) + later, self.total(span=SPAN))
        said, error = self.backfill(report="site_new", status=EX_NOINPUT), self.err
        for pattern in patterns:
            self.assertRegex(said, rf"(?m)^kafka:{topic}/0: offsets 0 to \d+: {pattern}$")
        self.tallyd("backfill", "-c", "tallyd.yaml", "site_new", "--take", "site", status=EX_NOINPUT)
        self.assertEqual(left + later, self.total(report="site_new", span=SPAN))
        self.tallyd("verify", "--store-only", "-c", "tallyd.yaml")
        self.tallyd("verify", "-c", "tallyd.yaml", status=3)
        books = self.sql("SELECT * FROM book ORDER BY source, part, report, entry")
        self.backfill(report="site_new", status=EX_NOINPUT)
        self.assertEqual(error, self.err)
        self.assertEqual(books, self.sql("SELECT * FROM book ORDER BY source, part, report, entry"))
        return [entry for entry, in self.sql("SELECT entry FROM book WHERE entry LIKE 'gap.%'")]

    def test_what_compaction_deleted_is_told_and_not_taken(self):
        keys = [str(number % 10) for number in range(200)]
        self.backfill_compacted(keys, 10, r"the topic is compacted, and does not hold 1\d\d of them any more")

    def test_compacted_in_more_places_than_the_books_should_name(self):
        keys = [key for number in range(250) for key in (str(number), "same")]
        gaps = self.backfill_compacted(keys, 251, r"the topic is compacted, and does not hold 2\d of them any more",
                                       r"2\d\d of them have no record, and are passed over: the topic is compacted in too many places")
        self.assertIn(len(gaps), (20, 21))

    def test_records_from_before_the_topic_was_counted(self):
        """`start: latest` left them out; they count in the report alone."""
        feed = Feed(self, 2)
        feed.send(1000, 3600)
        feed.flush()
        latest = {feed.topic: "decode: [combined], start: latest"}
        self.configure(latest, PAGES)
        self.run_daemon()
        begun = feed.lengths()
        feed.send(1000, 3600)
        self.wait_counted(feed)
        for beside in True, False:
            if not beside:
                self.stop()
            self.assertIn(WHOLE, self.backfill(report="pages" if beside else "site"))
            self.assertEqual({n: [0, count] for n, count in feed.lengths().items()}, self.spans(feed))
            self.check_pages(entry for log in feed.logs for entry in log)
        self.assertEqual(sum(len(log) - begun[n] for n, log in enumerate(feed.logs)), self.book(feed.source, "consumed"))
        self.verify()
        self.assertIn("has counted all", self.backfill("--dry-run"))
        self.run_daemon()
        feed.send(100, 60)
        self.wait_counted(feed)
        self.stop()
        self.check_pages(entry for log in feed.logs for entry in log)
        self.verify()

    def test_only_some_times(self):
        """By the events' own times, beside a daemon and without; then the rest."""
        feed = Feed(self, 2)
        feed.send(2000, 8 * 3600)
        self.count(SITE, feed)
        feed.send(1000, 3600)
        self.begin(PAGES, feed)
        self.wait_counted(feed)
        live = self.spans(feed)
        for beside, (begin, end) in (True, (60, 200)), (False, (150, 300)):
            if not beside:
                self.stop()
            minutes = [f"2026-01-05T{minute // 60:02}:{minute % 60:02}" for minute in (begin, end)]
            self.assertIn("has counted all of these times", self.backfill("--from", minutes[0], "--to", minutes[1]))
            self.assertEqual(live, self.spans(feed))
        self.check_pages(entry for n, log in enumerate(feed.logs) for at, entry in enumerate(log)
                         if at >= live[n][0] or (entry.minute is not None and 60 <= entry.minute < 300))
        self.verify()
        self.assertIn(WHOLE, self.backfill())
        self.run_daemon()
        self.check_all(feed)

    def test_another_topic_is_not_counted(self):
        kept, anew, gone = (Feed(self, 1) for _ in range(3))
        for feed in kept, anew, gone:
            feed.send(300, 3600)
        self.count(SITE, kept, anew, gone)
        self.count(PAGES, kept, anew, gone)
        old = kept.logs[0][:]
        anew.create_anew()
        anew.send(600, 3600)
        anew.flush()
        self.broker.delete_topic(gone.topic)
        said = self.backfill(status=EX_NOINPUT)
        self.assertIn(f"{anew.source}/0: offsets 0 to 300: no counted record is left", said)
        self.assertIn(f"{gone.source}/0: offsets 0 to 300: the topic is deleted", said)
        self.check_pages(old)
        self.configure([anew], PAGES)
        self.assertIn("no source of the configuration is this topic", self.backfill(status=EX_NOINPUT))

    def test_whoever_is_killed(self):
        """The command, or the daemon for which it waits, at a random failpoint, while records come."""
        feed = Feed(self, 3)
        feed.send(6000, 3600)
        self.count(SITE, feed)
        self.configure([feed], PAGES, flush="100ms, cells_max: 1024, series_max: 1024")
        for _ in range(ROUNDS):
            place = draw_death(self.dice, failpoints("store."), 6)
            feed.send(100, 60)
            if self.dice.random() < 0.5:
                self.tallyd("backfill", "-q", "-c", "tallyd.yaml", "pages", env=dying_at(place), status=None)
                self.assertIn(self.status, (EX_OK, -9), self.err)
                continue
            self.run_daemon(failpoint=place, consuming=False)
            with contextlib.suppress(AssertionError):
                self.wait_for(self.said, lambda said: "event=consuming " in said)
            self.tallyd("backfill", "-q", "-c", "tallyd.yaml", "pages", status=None)
            self.assertIn(self.status, (EX_OK, EX_TEMPFAIL, EX_NOINPUT, EX_UNAVAILABLE), self.err)
            self.kill()
        self.run_daemon()
        self.wait_counted(feed)
        self.assertIn(WHOLE, self.backfill())
        self.check_all(feed)


if __name__ == "__main__":
    main()
