#include "config/config.h"
#include "config/keys.h"

static const char intro[] =
    "# Configuration\n"
    "\n"
    "One YAML file, given with `-c FILE`. Everything has a default: without a file there is one source\n"
    "`access`, the reports `site` (by nothing) and `pages` (by path), and the store `sqlite:tallyd.db` in "
    "the\n"
    "working directory. [examples/tallyd.yaml](examples/tallyd.yaml) is a file to start from,\n"
    "[examples/kafka.yaml](examples/kafka.yaml) one for Kafka,\n"
    "[examples/monitoring.yaml](examples/monitoring.yaml) one for samples of servers, by the minute for two\n"
    "days and by the hour for two months.\n"
    "\n"
    "    tallyd check -c FILE           says everything that is wrong with it: file, line, column, what was\n"
    "                                   found, what is expected; the exit status is then 78\n"
    "    tallyd check -c FILE --print   shows what is in effect, defaults and all\n"
    "\n"
    "This page is generated (`make docs`); its source is `config/keys.def`.\n"
    "\n"
    "## Values\n"
    "\n"
    "| type | is written |\n"
    "|---|---|\n"
    "| size | `512B`, `64KiB`, `64MiB`, `1GiB`; a number alone counts bytes |\n"
    "| duration | `500ms`, `1s`, `5m`, `2h`, `1d` |\n"
    "| number | digits |\n"
    "| text | in quotes where YAML wants them |\n"
    "| boolean | `true` or `false` |\n"
    "\n"
    "`${NAME}` inside a value is taken from the environment, and it is an error if it is not set there; "
    "write\n"
    "`$${` for the text `${`. `store.url`, `http.token` and the values of `kafka.properties` may also be "
    "`file:PATH`: "
    "then\n"
    "they are what that file (of at most 4 KiB) holds, as in `file:${CREDENTIALS_DIRECTORY}/kafka`. What "
    "came\n"
    "from there is never shown, neither by `--print` nor in errors. How events are decoded (`decode`, "
    "`fields`)\n"
    "and the definition of a report (`by`, `where`, `measures`, `keep`) take neither: what is counted must "
    "not "
    "change\n"
    "with the environment.\n"
    "\n"
    "YAML's anchors, aliases and tags are refused, as are keys that do not exist or come twice. A file has "
    "at\n"
    "most 1 MiB. A section that is left out is as in the built-in configuration.\n"
    "\n"
    "The column *reload* says which keys a running daemon takes between two batches, once SIGHUP has it "
    "read\n"
    "the file again; any other change waits for a restart, and the log names it.\n";

static const char sources_text[] =
    "\n"
    "`tallyd run` counts one file or standard input, or any number of topics of one cluster.\n"
    "\n"
    "**Steps** of `decode` (at most 4, the last of which makes events; one alone needs no brackets):\n"
    "\n"
    "| step | takes |\n"
    "|---|---|\n"
    "| `auto`, `common`, `combined`, `vhost_combined` | a line as Apache httpd and nginx write it |\n"
    "| `json` | a JSON object, or an array of them: a log event, its fields by name or by path |\n"
    "| `metric` | `{\"name\": …, \"ts\": …, \"value\": …, \"tags\": {…}}`, or an array of them |\n"
    "| `syslog` | a line of RFC 3164 or RFC 5424; the next step gets its message |\n"
    "| `json:/POINTER` | a JSON object; the next step gets the text at the pointer (RFC 6901) |\n"
    "\n"
    "**Fields** (`fields: {NAME: ORIGIN}`): a name that reports may then use, and where it comes from. "
    "`json` and\n"
    "`metric` need none for a member of the top level or a tag: they look for every name that a report "
    "uses.\n"
    "\n"
    "| origin | is |\n"
    "|---|---|\n"
    "| `/POINTER` | what the innermost JSON has there |\n"
    "| `tag:NAME` | a tag of a metric event |\n"
    "| `key`, `header:NAME` | of the message of Kafka |\n"
    "| `topic`, `partition`, `timestamp` | where the message stands, and its time in seconds |\n"
    "\n"
    "**Time**: `broker` is the timestamp of the message, a pointer is for `json`, which by default looks at\n"
    "`/@timestamp`, `/timestamp`, `/time` and `/ts`: RFC 3339, or seconds or milliseconds since 1970.\n"
    "\n"
    "**Raw events** need MongoDB: with `raw: all`, or a list as `raw: [host, time, path, referrer, "
    "user_agent]`, each\n"
    "parsed event is also stored as it is, whether or not a report counts it, in the collection "
    "`raw.SOURCE`:\n"
    "\n"
    "    { _id: \"kafka:access/3/0000000000000004711\", host: \"127.0.0.1\", logname: null, user: "
    "\"frank\",\n"
    "      time: ISODate(\"2000-10-10T20:55:36Z\"), request: \"GET /apache_pb.gif HTTP/1.0\", path: "
    "\"/apache_pb.gif\",\n"
    "      status: 200, response_size: NumberLong(2326), referrer: \"http://www.example.com/start.html\",\n"
    "      user_agent: \"Mozilla/4.08 [en] (Win98; I ;Nav)\", v: 1 }\n"
    "\n"
    "`_id` is source, partition and offset, so an event that is read again after a crash is there once. "
    "Other "
    "fields\n"
    "that an event has (`vhost`, `value`, a source's own) come under their names, numbers as numbers where "
    "these are written as\n"
    "they are read back: `-17` and `0.25` are, `007`, `1.10` and `1e5` stay texts. It is "
    "there before it is\n"
    "counted; what the server refuses for good (by a validator, or a unique index of yours) is "
    "counted all\n"
    "the same, as is an event whose `_id` another one has: a broker that lost records gives their offsets "
    "again. "
    "How\n"
    "many there were is in `tallyd_raw_refused_total`. The log has the `_id` and reason of the "
    "first five of a\n"
    "minute, and how many of a batch it does not show. With `raw_w: 0` nothing is waited for, and "
    "what "
    "a\n"
    "server or a broken connection loses is not known.\n"
    "\n"
    "| `raw_growth` | documents go |\n"
    "|---|---|\n"
    "| `forever` | never |\n"
    "| `ttl 7d` | so long after their `time`, by the server, which looks every minute or so |\n"
    "| `capped 1GiB` | when the collection is full, in order of arrival; such a one cannot be sharded |\n"
    "| `collection per day keep 30` | a whole collection at a time, `raw.SOURCE.20101010`; without `keep` "
    "never. Also "
    "`per week`, named by their Mondays, and `per month`, `raw.SOURCE.201010` |\n"
    "| `database per month keep 12` | a whole database at a time, `DATABASE_raw_SOURCE_201010`, which gives "
    "back the disk |\n"
    "\n"
    "Periods are those of the events' own time, in UTC. The newest counts for `keep`, too, but not one that "
    "is\n"
    "yet to come; nor, until the daemon has run for 15 minutes, one that does not follow on another: by then "
    "a\n"
    "clock that was ahead is set. An event of a period that is dropped is not stored, and in\n"
    "`tallyd_raw_expired_total`. What a server cannot\n"
    "do is an error at start. Other growth than before begins with the next documents, and changes nothing "
    "of what is\n"
    "there: periods stay, and a TTL index (`tallyd_time`) or a cap goes on ending documents until somebody "
    "drops the index, or\n"
    "moves the collection. Move or drop collections while tallyd is stopped: it makes them, and their "
    "indexes, once.\n";

static const char store_text[] =
    "\n"
    "**Ended by the server**: with `ttl: true`, MongoDB ends documents by an index on their date "
    "(`tallyd_ttl`), all of which\n"
    "reports need not keep: hours, days, months, with `layout: minute` also minutes, and years. Shorter "
    "slots within "
    "documents that\n"
    "stay, and rankings, tallyd takes out as ever. A document goes an hour after its slots are refused, so "
    "the clocks "
    "of the\n"
    "server, of tallyd and of whoever asks may differ by that. What the server has left 15 minutes later, "
    "tallyd deletes, "
    "and the log says\n"
    "`ttl_left`. The server goes by its own clock alone, whatever the newest events are: keep it right.\n"
    "It goes on while no tallyd runs. With another `keep`, or `ttl: false`, the next "
    "start changes or "
    "drops the indexes;\n"
    "of several daemons the one that starts last decides. Charts never have a hole by that: for 10 minutes, "
    "what the "
    "index of before would\n"
    "have ended is refused. Stop versions that know no `ttl` before, and drop the index by hand where a "
    "report is not\n"
    "configured any more. Not with SQLite, and not for what is kept longer than 68 years. An index more "
    "costs "
    "at each count: FerretDB, in an\n"
    "import with `layout: hour`, a third more where it has no other (`indexes: false`), else an eighth.\n";

static const char kafka_text[] =
    "\n"
    "Properties are checked by librdkafka. Those that decide what is counted are tallyd's own and refused:\n"
    "where partitions begin and what is committed is the store's affair, and messages of aborted "
    "transactions\n"
    "are never counted. Secrets belong in files or the environment, as\n"
    "`sasl.password: \"file:${CREDENTIALS_DIRECTORY}/kafka\"`.\n";

static const char reports_text[] =
    "\n"
    "A report is known by its name and `generation`. Once something was counted under them, other `by`,\n"
    "`where`, `measures` or `layout` are refused until `generation` is raised.\n"
    "\n"
    "**Layout**: how long a time the finest documents of a series have, in MongoDB. Those of longer spans "
    "come\n"
    "beside them, down to what they hold. `tallyd query` answers from any of them by minutes, hours, days,\n"
    "weeks, months and years.\n"
    "\n"
    "| layout | documents, and what they hold |\n"
    "|---|---|\n"
    "| `day` | days by hour and minute; months by day: the fewest documents |\n"
    "| `hour` | hours by minute; days by hour; months by day: smaller ones, such as gauges of many machines "
    "|\n"
    "| `minute` | minutes by second; hours by minute; days by hour; months by day: one more document a "
    "minute "
    "and series, for charts and queries by second. It needs MongoDB |\n"
    "\n"
    "**Keep**: `second` (of `layout: minute`), `minute`, `hour`, `day` and `month`, each with a duration "
    "(`s`, "
    "`m`, `h`, `d`)\n"
    "or `forever`; a longer span at least as long as a shorter one. Slots are let go by whole periods of the "
    "next "
    "longer\n"
    "span (minutes by hours of UTC, hours by days, days by months, months by years), so they stay up to one "
    "such "
    "period\n"
    "longer. A question that needs what is gone is answered from longer slots where its rows are made of "
    "whole "
    "ones, else\n"
    "refused with what to ask instead. Events that come later count in the spans that are left; the books\n"
    "say of how many (`late.minute`, and so on; in /metrics `tallyd_events_expired_total`). Where no span "
    "is\n"
    "left they are `late` in the books.\n"
    "\n"
    "Expiry goes by the computer's clock as long as counted events confirm it: while the clock is within "
    "the\n"
    "newest hour (in MongoDB with `layout: day`, the newest day) that has events. Otherwise expiry goes by "
    "the\n"
    "start of that hour, so a clock that is ahead deletes nothing too early, and one daemon of several with "
    "a\n"
    "wrong clock does no harm. The newest hour is ignored while the hour before it has no events: a few "
    "wrong\n"
    "events confirm no wrong clock. Of topics, expiry is also never later than the newest timestamp of the\n"
    "records read (most telling with `message.timestamp.type=LogAppendTime`). While no events come, nothing "
    "expires; `tallyd job run expire --now` "
    "goes by\n"
    "the clock alone. If the clock is more than a day ahead of the newest events, the log says "
    "`clock_ahead`.\n"
    "If clock and events together leapt by more than a day since the last expiry, nothing expires for 15\n"
    "minutes after the daemon began, or after the clock was put forward under it; in that time the clock may "
    "be\n"
    "set; the log says `clock_leaps`. An import does not wait. What expires is logged as `expiring`, with "
    "from,\n"
    "to and why, and what was deleted as `expired`. If everything up to a time that no event has reached "
    "has\n"
    "expired, as a wrong clock left it, slots are counted again behind the newest events, in MongoDB from "
    "the\n"
    "next period of documents on; the log says `watermark_restored`, or `watermark_ahead`. `keep` may be "
    "changed at any start,\n"
    "without a new generation; what is gone is gone, and of earlier generations of a report nothing goes.\n"
    "In MongoDB the minutes of `layout: day` go by days, since they are in one document, and of several\n"
    "daemons the one with the shortest time decides for all.\n"
    "\n"
    "**Dimensions** (at most 8). `path` is without its query string, `target` with it; `path:2` is the first "
    "two\n"
    "segments (`/a/b` of `/a/b/c.html`), up to `path:9`; `status_class` is `2xx`; `referrer_host` is\n"
    "`example.com` of `http://example.com/x`. Where a field is absent its value is `-`. Beside these, any\n"
    "field of a source's `fields`, tag or member may be one.\n"
    "\n";

static const char conditions_text[] =
    "\n"
    "**Conditions** (at most 16) are FIELD OPERATOR VALUE: any field above, `status_class` and\n"
    "`referrer_host` excepted, and `bytes`.\n"
    "\n"
    "| condition | holds where |\n"
    "|---|---|\n"
    "| `status<400` | the number is smaller; also `<=`, `>`, `>=`; for `status` and `bytes` |\n"
    "| `method=GET\\|POST` | the text is one of these |\n"
    "| `path=*.html` | the text matches: `*` stands for any run of bytes, even none |\n"
    "| `agent!=*bot*` | the text does not match |\n"
    "| `user!=-` | there is a user: `-` stands for absent |\n"
    "| `status=4*` | the status is of the class 4xx |\n"
    "\n"
    "**Measures** (at most 8), where FIELD is `status`, `bytes` (the size of the response), `value` (of a "
    "metric) "
    "or a field of\nyour own:\n\n"
    "| measure | is |\n|---|---|\n"
    "| `count` | how many events |\n"
    "| `sum(FIELD)` | what their numbers add up to |\n"
    "| `min(FIELD)`, `max(FIELD)` | the least and the greatest of them |\n"
    "| `last(FIELD)` | that of the event which is the last by its own time: a gauge |\n"
    "| `mean(FIELD)` | the sum divided by how many events have the number, to 6 digits |\n\n"
    "All are exact at every step of a query and over any set of series. An event without the number is "
    "passed over;\nwhere no event has it, min, max, last and mean are absent. `value` and own fields are "
    "decimal "
    "fractions with 6\ndigits after the point; their sums stay at ±9.2 × 10^18.\n";

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
