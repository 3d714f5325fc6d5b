/* mongo.h - the MongoDB store: counts as documents that anybody can read, exactly once (docs/LEDGER.md).
 * mongo_open() returns a handle for store.h. Opening fails if the URI, the server or a report does not fit.
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
 *                  applied: { rollup: 17 }, … }   set from months that are over: mongo/job/roll.h
 *   pages.week   { _id: "20101004/%2Fapache_pb.gif", metadata, weekly: 2, daily: { "6": 2 }, bytes: …, … }
 *                  optional; set from months, if the week is over. `_id` has the week's first day
 *   pages.hour   { _id: "2010101013/%2Fapache_pb.gif", metadata, hourly: 2, minute: { "37": 2 }, bytes, … }
 *   pages.minute { _id: "201010101337/…", metadata, minute: 2, second: { "0": 1, "59": 1 }, bytes, … }
 *                pages.hour and pages.minute exist if the report's `layout` has them: mongo/handle/kind.h
 *   pages.latency.day   { _id: "20101010/%2Fapache_pb.gif", metadata, hourly: { "13": { units:
 *                4.318, count: 17, zero: 2, buckets: { "-64": 11, "17": 4 } } }, applied, … }
 *                a histogram; also by hour, month and year: mongo/handle/kind.h, mongo/doc/sketch.h
 *   pages.visitors.day  { _id: "20101010/…", metadata, daily: { count: 17, entries: { "03ab5f1": 2 } }, … }
 *                a distinct count; also by minute, hour and month; of many texts with registers
 *   pages.latency.week, pages.visitors.week   optional, as pages.week: mongo/job/merge.h
 *   pages.newest.day    { _id: "20101010/…", metadata, daily: { events: [ { time: ISODate(…), at:
 *                "kafka:access/0/0000000000000004711", host: …, … }, … ] }, applied, … }
 *                the newest events, the newest first, if the report keeps some: aggregate/recent.h
 *   pages.top    { _id: "day/20101010", metadata: { date }, written, ranked, measures: { hits: { total, top:
 *                [ { metadata: { path }, value }, … ] }, latency: { total, p99: { top: [ { metadata,
 *                value, count }, … ] }, … } }, … }   the largest series: mongo/doc/top.h
 *   pages.series { _id: "%2Fapache_pb.gif", metadata: { path } }    every series once
 *   reports      { _id: "pages", name, generation, definition, decimal: true }     generation 2 has _id
 *                  "pages~2", or that of a report which took the place of generation 1 (mongo/job/replace.h);
 *                  dropping: true while it is dropped (mongo/job/drop.h)
 *   ledger       { _id: "ledger", partitions, writers, … }   owners and epochs; slots of writers
 *                { _id: "w3", inc, seq, partitions, … }      a seat for each slot: mongo/ledger/seat.h
 *   past         { _id: "file:4096:9f…/", source, label, next, epoch, … }   files that have ended:
 *                mongo/writer/past.h
 *   batches      the logs of batches that are being applied
 *   raw.access   { _id: "kafka:access/0/0000000000000004711", host, time, path, … }     mongo/raw/raw.h
 *   jobs         { _id: "rollup/pages", written: {…}, rolled: {…}, fence, owner, until, … }
 *                { _id: "weeks/pages", start: "monday", … }     both: mongo/doc/version_stamps.h
 *                { _id: "top/pages", fence, owner, until, … }   mongo/job/lease.h
 *   books        { _id: "kafka:access/0", entries: { consumed, parsed, rejected: {…} },
 *                  reports: { pages: { parsed, counted, filtered, since, until } } }
 *
 * Dates   : metadata.date is the start of a document's period, for every kind. A TTL index made by
 *           others would leave holes; tallyd's own TTL index is store.ttl.
 * Counts  : the first count of a report has its plain place; every other measure is a sub-document of that
 *           shape. A number is an int64 in the field's unit, or a Decimal128 if the field has fractions
 *           (mongo/doc/decimal.h); a mean { units, count }, with the sum as units; a last { t, o, v }.
 * Older   : a report that a version of format 3 or before began has no `decimal`, nor decimals: a sum with
 *           fractions is { units, micros }, a mean { units, micros, count }; min, max and v are millionths.
 *           It stays so until it is dropped; readers tell by the type of a number.
 * Prealloc: with store_options.prealloc (prealloc.h), a writer makes the next documents of a series before it
 *           counts anything in them. Their `applied` is empty, and readers skip them. If they hold zeros,
 *           `reports` says so (`zeros`), and a time bucket whose count is 0 does not exist. A handle that was
 *           opened before `zeros` was first set shows these zeros.
 * `_id`   : a time, and the dimensions with / and % percent-encoded. Behind 900 bytes it is cut and ends with
 *           a hash. It serves to find and to sort documents; `metadata` says what they count. The series
 *           `other` is "/%other", with metadata.other and null dimensions. A field whose name is taken gets
 *           an underscore: daily_.
 * Speed   : a writer applies a batch over several connections, with a thread for each while it applies.
 * Expiry  : expiry watermarks are in `reports` (expired.SPAN). A document is deleted when every resolution
 *           that is read from it has expired. A shorter resolution is removed before that by $unset:
 *           minutes in layout `day`, days in months. tallyd deletes some documents at a time, by `_id`. With
 *           store.ttl the server deletes whole documents by a TTL index, which knows no watermarks; so
 *           readers go by the clock, too: mongo/job/ttl.h. Versions that know no watermarks, or no `ttl`,
 *           show zeros for expired buckets.
 * Promise : that of store.h, except for readers: a batch becomes visible one document after the other.
 * Writers : several, each with its own slot. A partition belongs to the writer that claimed it last. Each
 *           writer applies `series_max` to the series that it knows: together they may exceed it.
 * Checks  : at start the server gets a schema of the documents (mongo/catalog/catalog.h). It logs or refuses
 *           damage by others, as `validation` says.
 * Limits  : the ledger and each seat are one document of at most 16 MB: some ten thousand partitions and
 *           followed files.
 */
#pragma once

#include "store/mongo/handle/limits.h"
#include "store/store.h"

/* `options`: but for their clock, used for STORE_WRITE only. */
struct store *mongo_open(const char *uri, enum store_mode mode, const struct store_options *options,
                         const struct report *reports, size_t report_count, struct err *e) MUST_CHECK;
bool mongo_is_url(const char *url);
/* EX_CONFIG: it cannot be a writer's store. The server is not asked. */
bool mongo_check_url(const char *url, bool with_unsafe_writes, struct err *e) MUST_CHECK;

/* Bytes of a writer's series names, with KEY_BYTES for each key. Beside them a writer sorts the cells of a
 * batch and packs its log. That takes at most MONGO_BATCH_FACTOR times the memory that the cells take in the
 * shards. */
#define MONGO_BATCH_FACTOR 2

size_t mongo_bytes_max(const struct report *reports, size_t report_count);
