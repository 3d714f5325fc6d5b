/* mongo.h - the store in MongoDB: counts as documents that anybody can read, exact by docs/LEDGER.md.
 *
 *   mongodb://HOST/DATABASE?…     as libmongoc takes it; see mongo/wire/client.h
 *
 *   pages.day    { _id: "20101010/%2Fapache_pb.gif",
 *                  metadata: { date: ISODate("2010-10-10"), path: "/apache_pb.gif" },
 *                  daily: 2, hourly: { "13": 2 }, minute: { "13": { "37": 2 } },
 *                  bytes: { daily: 4652, hourly: …, minute: … },
 *                  applied: { w0: 42 }, modified: ISODate(…), v: 1 }
 *   pages.month  { _id: "201010/%2Fapache_pb.gif", metadata, total: 2, daily: { "10": 2 }, bytes: …, … }
 *   pages.year   { _id: "2010/%2Fapache_pb.gif", metadata, total: { "10": 2 }, bytes: …,
 *                  applied: { rollup: 17 }, … } of months that are over: mongo/job/roll.h
 *   pages.week   { _id: "20101004/%2Fapache_pb.gif", metadata, weekly: 2, daily: { "6": 2 }, bytes: …, … }
 *                  of weeks that are over, from their first day on, where they are wanted
 *   pages.hour   { _id: "2010101013/%2Fapache_pb.gif", metadata, hourly: 2, minute: { "37": 2 }, bytes, … }
 *   pages.minute { _id: "201010101337/…", metadata, minute: 2, second: { "0": 1, "59": 1 }, bytes, … }
 *                these two where the report's `layout` has them: mongo/handle/kind.h
 *   pages.top    { _id: "day/20101010", metadata: { date }, written, ranked, measures: { hits: { total, top:
 *                [ { metadata: { path }, value }, … ] } }, … }   the largest series: mongo/doc/top.h
 *   pages.series { _id: "%2Fapache_pb.gif", metadata: { path } }    every series once
 *   reports      { _id: "pages", name, generation, definition }     of a second generation "pages~2"
 *   ledger       one document: partitions with next, owner and epoch; slots of writers
 *   batches      the logs of batches that are being applied
 *   raw.access   { _id: "kafka:access/0/0000000000000004711", host, time, path, … }     mongo/raw/raw.h
 *   jobs         { _id: "rollup/pages", written: {…}, rolled: {…}, fence, owner, until, … }
 *                { _id: "weeks/pages", start: "monday", … }     both: mongo/doc/stamps.h
 *                { _id: "top/pages", fence, owner, until, … }   mongo/job/lease.h
 *   books        { _id: "kafka:access/0", entries: { consumed, parsed, rejected: {…} },
 *                  reports: { pages: { parsed, counted, filtered, since, until } } }
 *
 * Dates   : metadata.date is the start of what a document counts, whatever it counts. A TTL index that others
 *           make would leave holes; tallyd's own is store.ttl.
 * Counts  : the first count of a report has its plain place; every other measure is a sub-document of that
 *           shape. A number is int64; of fractions { units, micros }; a mean { units, count }; a last
 *           { t, o, v }; min and max are in the field's unit (millionths, where it has fractions).
 * Ahead   : with store_options.prealloc (prealloc.h), the next documents of a series are made before anything
 *           is counted in them: `applied` is empty then. A reader takes them for nothing. Where they hold
 *           zeros, `reports` says so (`zeros`), and a slot whose count is 0 is none; handles that were
 *           opened before that was first so see these zeros.
 * `_id`   : a time, and the dimensions with / and % percent-encoded, cut at 900 bytes with a hash: to find
 *           documents and to sort them. What they are of is in `metadata`. The series `other` is "/%other",
 *           with metadata.other; its dimensions are null. Names that are taken get an underscore: daily_.
 * Speed   : a batch is carried out over several connections, by as many threads while that lasts.
 * Expiry  : marks are in `reports` (expired.SPAN). A document goes when no span that is read from it is kept;
 *           a shorter span before that, by $unset: of layout `day` the minutes, of months the days. By tallyd
 *           itself, some documents at a time by `_id`; with store.ttl the server ends whole documents by a
 *           TTL index, which knows no marks, so that readers go by the clock, too: mongo/job/ttl.h. Versions
 *           that know no marks, or no `ttl`, show zeros for what is gone.
 * Promise : that of store.h, but for readers: a batch becomes visible one document after the other.
 * Writers : several, each with a slot of its own; a partition belongs to whoever claimed it last. Each
 *           applies `series_max` to the series that it knows: together they may exceed it.
 * Checks  : the server is told at start what documents look like (mongo/catalog/catalog.h); what others
 *           damage is in its log, or refused, as `validation` says.
 * Limits  : the ledger is one document of at most 16 MB: some ten thousand files or partitions.
 */
#pragma once

#include "store/mongo/handle/limits.h"
#include "store/store.h"

/* `options`: of a writer. */
struct store *mongo_open(const char *uri, enum store_mode mode, const struct store_options *options,
                         const struct report *reports, size_t report_count, struct err *e);
bool mongo_is_url(const char *url);
/* EX_CONFIG: it cannot be a writer's store, as far as can be told without asking the server. */
bool mongo_check_url(const char *url, bool with_unsafe_writes, struct err *e);

/* A writer's names of series, of KEY_BYTES each; beside them it sorts the cells of a batch and packs its log,
 * which takes no more than MONGO_BATCH_FACTOR times what the shards have of them. */
#define MONGO_BATCH_FACTOR 2

size_t mongo_bytes_max(const struct report *reports, size_t report_count);
