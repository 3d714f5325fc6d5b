#include "config/config.h"
#include "config/keys.h"

static const char intro[] =
    "# Configuration\n"
    "\n"
    "One YAML file, given with `-c FILE`. Everything has a default: without a file there is one source\n"
    "`access`, the reports `site` (no dimensions) and `pages` (by path), and the store `sqlite:tallyd.db` in "
    "the\n"
    "working directory. [examples/tallyd.yaml](examples/tallyd.yaml) is a file to start from,\n"
    "[examples/kafka.yaml](examples/kafka.yaml) one for Kafka,\n"
    "[examples/monitoring.yaml](examples/monitoring.yaml) one for samples of servers, by the minute for two\n"
    "days and by the hour for two months.\n"
    "\n"
    "    tallyd check -c FILE           lists every mistake in it: file, line, column, what was found, and\n"
    "                                   what is expected; the exit status is then 78\n"
    "    tallyd check -c FILE --print   shows what is in effect, with all defaults\n"
    "\n"
    "This page is generated (`make docs`); its source is `config/keys.def`.\n"
    "\n"
    "## Values\n"
    "\n"
    "| type | is written as |\n"
    "|---|---|\n"
    "| size | `512B`, `64KiB`, `64MiB`, `1GiB`; a number alone counts bytes |\n"
    "| duration | `500ms`, `1s`, `5m`, `2h`, `1d` |\n"
    "| number | digits |\n"
    "| text | quoted if YAML requires it |\n"
    "| boolean | `true` or `false` |\n"
    "\n"
    "`${NAME}` inside a value is replaced from the environment; a variable that is not set is an error. "
    "Write\n"
    "`$${` for the text `${`. `store.url`, `http.token` and the values of `kafka.properties` may also be\n"
    "`file:PATH`: then the value is the content of that file (at most 4 KiB), as in\n"
    "`file:${CREDENTIALS_DIRECTORY}/kafka`. tallyd never shows such a value, neither by `--print` nor in "
    "errors.\n"
    "How events are decoded (`decode`, `fields`) and the definition of a report (`by`, `where`, `measures`,\n"
    "`keep`) take neither: what is counted must not change with the environment.\n"
    "\n"
    "tallyd refuses YAML's anchors, aliases and tags, unknown keys, and keys that come twice. A file has at "
    "most\n"
    "1 MiB. If a section is left out, the built-in configuration's section applies.\n"
    "\n"
    "The column *reload* says which keys a running daemon takes over between two batches, once SIGHUP made "
    "it read\n"
    "the file again. Any other change needs a restart, and the log names it.\n";

static const char sources_text[] =
    "\n"
    "`tallyd run` counts any number of files, standard input, and topics of one cluster, each from its own "
    "position.\n"
    "\n"
    "**Steps** of `decode` (at most 4; the last one makes events; a single step needs no brackets):\n"
    "\n"
    "| step | input |\n"
    "|---|---|\n"
    "| `auto`, `common`, `combined`, `vhost_combined` | a line as Apache httpd and nginx write it |\n"
    "| `json` | a JSON object, or an array of them: a log event, its fields by name or by path |\n"
    "| `metric` | `{\"name\": …, \"ts\": …, \"value\": …, \"tags\": {…}}`, or an array of them |\n"
    "| `syslog` | a line of RFC 3164 or RFC 5424; the next step gets its message |\n"
    "| `json:/POINTER` | a JSON object; the next step gets the text at the pointer (RFC 6901) |\n"
    "\n"
    "**Fields** (`fields: {NAME: ORIGIN}`): a name that reports may use, and where its value comes from. "
    "`json`\n"
    "and `metric` find members of the top level and tags without this, if a report uses their names.\n"
    "\n"
    "| origin | value |\n"
    "|---|---|\n"
    "| `/POINTER` | the value at this pointer in the innermost JSON |\n"
    "| `tag:NAME` | a tag of a metric event |\n"
    "| `key`, `header:NAME` | the key or a header of the Kafka message |\n"
    "| `topic`, `partition`, `timestamp` | the message's topic, partition, or timestamp in seconds |\n"
    "\n"
    "**Time**: `broker` takes the timestamp of the message. A pointer is for `json`, which by default looks "
    "at\n"
    "`/@timestamp`, `/timestamp`, `/time` and `/ts`: RFC 3339, or seconds or milliseconds since 1970.\n"
    "\n"
    "**Raw events** need MongoDB. With `raw: all`, or a list as `raw: [host, time, path, referrer, "
    "user_agent]`,\n"
    "tallyd also stores each parsed event in the collection `raw.SOURCE`, whether or not a report counts "
    "it:\n"
    "\n"
    "    { _id: \"kafka:access/3/0000000000000004711\", host: \"127.0.0.1\", logname: null, user: "
    "\"frank\",\n"
    "      time: ISODate(\"2000-10-10T20:55:36Z\"), request: \"GET /apache_pb.gif HTTP/1.0\", path: "
    "\"/apache_pb.gif\",\n"
    "      status: 200, response_size: NumberLong(2326), referrer: \"http://www.example.com/start.html\",\n"
    "      user_agent: \"Mozilla/4.08 [en] (Win98; I ;Nav)\", v: 1 }\n"
    "\n"
    "`_id` is source, partition and offset, so an event that is read again after a crash is stored once. "
    "Other\n"
    "fields of an event (`vhost`, `value`, a source's own) are stored under their names. A number is stored "
    "as a\n"
    "number if it reads back as it was written: `-17` and `0.25` do, `007`, `1.10` and `1e5` stay texts. An "
    "event\n"
    "is stored before it is counted. An event that the server refuses for good (by a validator, or a unique "
    "index\n"
    "of yours) is counted all the same. So is an event whose `_id` another event has: a broker that lost "
    "records\n"
    "assigns their offsets again. `tallyd_raw_refused_total` counts both. The log shows the `_id` and the "
    "reason\n"
    "of the first five in a minute, and how many of a batch it does not show. With `raw_w: 0` tallyd waits "
    "for no\n"
    "acknowledgement, and cannot know what a server or a broken connection loses.\n"
    "\n"
    "| `raw_growth` | documents are deleted |\n"
    "|---|---|\n"
    "| `forever` | never |\n"
    "| `ttl 7d` | this long after their `time`, by the server, which looks about every minute |\n"
    "| `capped 1GiB` | in order of arrival, once the collection is full; it cannot be sharded |\n"
    "| `collection per day keep 30` | with their whole collection, `raw.SOURCE.20101010`; without `keep` "
    "never. Also `per week`, named by their Mondays, and `per month`, `raw.SOURCE.201010` |\n"
    "| `database per month keep 12` | with their whole database, `DATABASE_raw_SOURCE_201010`, which gives "
    "the disk space back |\n"
    "\n"
    "Periods follow the events' own time, in UTC. `keep` counts the newest period, too, but none that is in "
    "the\n"
    "future. Until the daemon has run for 15 minutes, `keep` does not count a period that does not follow "
    "another\n"
    "one: that gives the operator time to set a clock that is ahead. An event of a dropped period is not "
    "stored,\n"
    "and `tallyd_raw_expired_total` counts it. Growth that the server cannot provide is an error at start. "
    "A\n"
    "changed `raw_growth` applies to new documents and changes nothing that is there. Old periods stay. A "
    "TTL\n"
    "index (`tallyd_time`) or a cap keeps deleting documents until the operator drops the index, or moves "
    "the\n"
    "collection. Stop tallyd before you move or drop collections: it creates them, and their indexes, only "
    "once.\n";

static const char store_text[] =
    "\n"
    "**Expiry by the server**: with `ttl: true`, MongoDB expires documents by an index on their date\n"
    "(`tallyd_ttl`): those of hours, days and months, with `layout: minute` also of minutes, and those of "
    "years.\n"
    "tallyd itself still deletes shorter time buckets within documents that stay, and rankings. The server\n"
    "deletes a document an hour after queries refuse its buckets, so the clocks of the server, of tallyd and "
    "of\n"
    "clients may differ by that. 15 minutes later tallyd deletes documents that the server has left, and "
    "logs\n"
    "`ttl_left`. The server goes by its own clock alone, whatever the newest events are: keep it right. It "
    "also\n"
    "deletes while no tallyd runs.\n"
    "\n"
    "With another `keep`, or `ttl: false`, the next start changes or drops the indexes; of several daemons "
    "the\n"
    "one that starts last decides. Charts never get a hole by that: for 10 minutes, queries refuse what the\n"
    "previous index would have deleted. Before you set `ttl`, stop versions that do not know it. If you "
    "remove a\n"
    "report from the configuration, drop its index by hand. `ttl` does not work with SQLite, nor if a "
    "report\n"
    "keeps anything longer than 68 years. The index makes counting dearer: an import with `layout: hour` "
    "into\n"
    "FerretDB took a third longer without other indexes (`indexes: false`), else an eighth.\n";

static const char kafka_text[] =
    "\n"
    "librdkafka checks the properties. tallyd refuses those that decide what is counted, since it sets them\n"
    "itself: the store decides where partitions begin and what is committed, and messages of aborted "
    "transactions\n"
    "are never counted. Keep secrets in files or the environment, as\n"
    "`sasl.password: \"file:${CREDENTIALS_DIRECTORY}/kafka\"`.\n";

static const char reports_text[] =
    "\n"
    "Its name and its `generation` identify a report. Once it has counted something, tallyd refuses other "
    "`by`,\n"
    "`where`, `measures` or `layout` until `generation` is raised.\n"
    "\n"
    "**Layout**: the time that the finest documents of a series cover, in MongoDB. Documents of longer\n"
    "resolutions are written beside them. `tallyd query` answers by minutes, hours, days, weeks, months and "
    "years\n"
    "from any layout.\n"
    "\n"
    "| layout | documents, and what they contain |\n"
    "|---|---|\n"
    "| `day` | days by hour and minute; months by day: the fewest documents |\n"
    "| `hour` | hours by minute; days by hour; months by day: smaller documents, such as for gauges of many "
    "machines |\n"
    "| `minute` | minutes by second; hours by minute; days by hour; months by day: one more document for "
    "each minute and series, for charts and queries by second. It needs MongoDB |\n"
    "\n"
    "**Keep**: `second` (of `layout: minute`), `minute`, `hour`, `day` and `month`, each with a duration "
    "(`s`,\n"
    "`m`, `h`, `d`) or `forever`. A longer resolution is kept at least as long as a shorter one. Time "
    "buckets\n"
    "expire by whole periods of the next longer resolution (minutes by hours of UTC, hours by days, days by\n"
    "months, months by years), so they stay up to one such period longer. A query that needs expired buckets "
    "is\n"
    "answered from longer ones, if its rows consist of whole ones. Otherwise the query is refused, and the "
    "error\n"
    "says what to query instead. Late events count in the resolutions that have not expired. The books count "
    "them\n"
    "by resolution (`late.minute`, and so on; in /metrics `tallyd_events_expired_total`). An event that is "
    "too old\n"
    "for every resolution is `late` in the books.\n"
    "\n"
    "Expiry goes by the computer's clock as long as counted events confirm it: while the clock is within "
    "the\n"
    "newest hour (in MongoDB with `layout: day`, the newest day) that has events. Otherwise expiry goes by "
    "the\n"
    "start of that hour. So a clock that is ahead deletes nothing too early, and one daemon of several with "
    "a\n"
    "wrong clock does no harm. Expiry ignores the newest hour while the hour before it has no events: a few "
    "wrong\n"
    "events confirm no wrong clock. If all sources are topics, expiry is also never later than the newest\n"
    "timestamp of the records read (most reliable with `message.timestamp.type=LogAppendTime`). While no\n"
    "events come, nothing expires; `tallyd job run expire --now` goes by the clock alone.\n"
    "\n"
    "If the clock is more than a day ahead of the newest events, the log says `clock_ahead`. If clock and "
    "events\n"
    "together jumped by more than a day since the last expiry, the log says `clock_leaps`. Then nothing "
    "expires\n"
    "until 15 minutes after the daemon started, or after its clock was set forward. The operator can correct "
    "the\n"
    "clock in that time. An import does not wait. The log says what expires in `expiring`, with from, to and "
    "the\n"
    "reason, and how much was deleted in `expired`. A wrong clock may have moved an expiry watermark ahead "
    "of all\n"
    "events. Then time buckets behind the newest events are counted again, in MongoDB from the next period "
    "of\n"
    "documents on, and the log says `watermark_restored` or `watermark_ahead`.\n"
    "\n"
    "`keep` may be changed at any start, without a new generation. Expired buckets do not come back, and "
    "earlier\n"
    "generations of a report do not expire. In MongoDB the minutes of `layout: day` expire by days, since "
    "one\n"
    "document holds them. If several daemons have different `keep`, the shortest decides for all.\n"
    "\n"
    "**Dimensions** (at most 8). `path` is without its query string, `target` with it. `path:2` is the first "
    "two\n"
    "segments (`/a/b` of `/a/b/c.html`), up to `path:9`. `status_class` is `2xx`. `referrer_host` is\n"
    "`example.com` of `http://example.com/x`. If a field is absent its value is `-`. Any field of a "
    "source's\n"
    "`fields`, tag or member may be a dimension, too.\n"
    "\n";

static const char conditions_text[] =
    "\n"
    "**Conditions** (at most 16) are FIELD OPERATOR VALUE. FIELD is any field above except `status_class` "
    "and\n"
    "`referrer_host`, or `bytes`.\n"
    "\n"
    "| condition | is true if |\n"
    "|---|---|\n"
    "| `status<400` | the number is smaller; also `<=`, `>`, `>=`; for `status` and `bytes` |\n"
    "| `method=GET\\|POST` | the text is one of these |\n"
    "| `path=*.html` | the text matches: `*` stands for any run of bytes, even none |\n"
    "| `agent!=*bot*` | the text does not match |\n"
    "| `user!=-` | there is a user: `-` stands for absent |\n"
    "| `status=4*` | the status is of the class 4xx |\n"
    "\n"
    "**Measures** (at most 8). FIELD is `status`, `bytes` (the size of the response), `value` (of a metric) "
    "or a\n"
    "field of your own:\n"
    "\n"
    "| measure | meaning |\n"
    "|---|---|\n"
    "| `count` | the number of events |\n"
    "| `sum(FIELD)` | the sum of their numbers |\n"
    "| `min(FIELD)`, `max(FIELD)` | the smallest and the largest number |\n"
    "| `last(FIELD)` | the number of the event with the latest time: a gauge |\n"
    "| `mean(FIELD)` | the sum divided by the number of events with FIELD, to 6 digits |\n"
    "\n"
    "All are exact at every step of a query and over any set of series. Measures skip events without the "
    "number.\n"
    "If no event has it, min, max, last and mean are absent. `value` and own fields are decimal fractions "
    "with 6\n"
    "digits after the point; their sums saturate at ±9.2 × 10^18.\n";

static void add_row(const struct key *k, struct text *out)
{
    text_printf(out, "| `%s` | %s | %s | ", k->name, keys_types[k->type].name, k->unit);
    if (keys_is_list(k))
        text_printf(out, "at most %d", (int)k->max);
    else
        keys_range(k, out);
    text_puts(out, " | ");
    if (k->standard != NULL)
        text_printf(out, "`%s`", k->standard);
    text_printf(out, " | %s | %s |\n", k->reload ? "yes" : "no", k->help);
}

static void add_dimensions(struct text *out)
{
    for (const char *const *name = report_dimension_names; *name != NULL; name++)
        text_printf(out, "%s`%s`", name == report_dimension_names ? "" : ", ", *name);
    text_puts(out, ".\n");
}

void config_document(struct text *out)
{
    text_puts(out, intro);
    for (const struct key_section *s = keys_sections; s->name != NULL; s++) {
        text_printf(out, "\n## %s\n\n%s\n\n", s->name, s->help);
        text_puts(
            out,
            "| key | type | unit | range | default | reload | meaning |\n|---|---|---|---|---|---|---|\n");
        for (const struct key *k = keys_table; k->name != NULL; k++) {
            if (strcmp(k->section, s->name) == 0)
                add_row(k, out);
        }
        if (strcmp(s->name, "sources") == 0)
            text_puts(out, sources_text);
        if (strcmp(s->name, "kafka") == 0)
            text_puts(out, kafka_text);
        if (strcmp(s->name, "store") == 0)
            text_puts(out, store_text);
        if (strcmp(s->name, "reports") != 0)
            continue;
        text_puts(out, reports_text);
        add_dimensions(out);
        text_puts(out, conditions_text);
    }
}
