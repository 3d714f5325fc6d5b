#include "query/recent.h"

#include "aggregate/bson_text.h"
#include "aggregate/dimension.h"
#include "base/mem.h"
#include "query/bound.h"
#include "query/match.h"

#include <inttypes.h>
#include <stdlib.h>

/* An event of the answer. */
struct hit {
    uint32_t series;
    int64_t at_ms;
    struct slice document; /* in `room` */
    char *room;            /* of RECENT_EVENT_BYTES; an event that falls out leaves it to the next */
};

struct recent_query {
    struct bound b;
    struct match match;
    struct query_stats *stats;
    struct hit hits[RECENT_MAX]; /* the newest first */
    size_t count;
    char *rooms; /* for a document each */
};

/* ---- finding */

static bool check(const struct recent_query *k, struct err *e)
{
    const struct query *q = k->b.query;
    const struct report *r = k->b.answer.report;
    if (q->has_step || q->top > 0 || q->measure.len > 0)
        return err_set(e, EX_USAGE, "newest shows events, not counts: leave out step, top and measure");
    if (r->newest == 0)
        return err_set(e, EX_USAGE,
                       "report %s keeps no newest events: with `newest: 50` in its configuration, as another "
                       "generation, it keeps 50 of each series and day",
                       r->name);
    if (q->newest > r->newest)
        return err_set(e, EX_USAGE,
                       "report %s keeps the newest %u events of each series and day: ask for at most %u",
                       r->name, r->newest, r->newest);
    return q->to_ms < 0 || span_floor(SPAN_DAY, q->to_ms) == q->to_ms ||
           err_set(e, EX_USAGE,
                   "to: newest events are kept by days of UTC: end with the start of such a day, or leave it "
                   "out");
}

/* Puts an event into its place. False: it is older than all, and there are enough. */
static bool take_event(struct recent_query *k, const struct hit *hit)
{
    const size_t limit = k->b.query->newest;
    size_t at = k->count;
    while (at > 0 && recent_compare(k->hits[at - 1].document, hit->document) < 0)
        at--;
    if (at == limit)
        return false;
    char *room = k->count < limit ? k->rooms + k->count * RECENT_EVENT_BYTES : k->hits[limit - 1].room;
    k->count += k->count < limit;
    memmove(&k->hits[at + 1], &k->hits[at], (k->count - at - 1) * sizeof *hit);
    memcpy(room, hit->document.ptr, hit->document.len);
    k->hits[at] = (struct hit){hit->series, hit->at_ms, slice_of(room, hit->document.len), room};
    return true;
}

static bool take_packed(void *context, uint32_t series, int64_t day_ms, size_t sketch, struct slice packed,
                        struct err *e)
{
    struct recent_query *k = context;
    struct hit hit = {.series = series};
    struct slice place;
    const uint32_t limit = recent_begin(&packed);
    uint32_t count = 0;
    bool good = limit > 0, goes_on = good;
    (void)day_ms, (void)sketch;
    while (goes_on && recent_next(&packed, &hit.document)) {
        good =
            ++count <= limit && recent_key(hit.document, &hit.at_ms, &place) && bson_is_whole(hit.document);
        goes_on = good && hit.at_ms >= k->b.query->from_ms && take_event(k, &hit);
    }
    return (good && (!goes_on || packed.len == 0)) ||
           err_set(e, EX_DATAERR,
                   "the store is damaged: the newest events of report %s do not decode; check it by `tallyd "
                   "verify --store-only`",
                   k->b.answer.report->name);
}

static bool scan_days(struct recent_query *k, int64_t from_ms, int64_t to_ms, struct err *e)
{
    const struct scan scan = {.report = k->b.report,
                              .resolution = SPAN_DAY,
                              .from_ms = from_ms,
                              .to_ms = to_ms,
                              .series = k->match.set,
                              .rows_max = k->b.query->limits.rows_max - k->stats->total.rows,
                              .sketch = take_packed};
    if (store_recent(k->b.store, &scan, k, &k->stats->total, e))
        return true;
    return e->code == EX_UNAVAILABLE && !e->retryable && k->stats->total.rows >= k->b.query->limits.rows_max
               ? err_set(e, EX_UNAVAILABLE,
                         "the answer takes more than %" PRIu64
                         " rows of the store (query.rows_max): give filters, or a later `from`",
                         k->b.query->limits.rows_max)
               : false;
}

/* Reads days backwards until there are enough events. Days without counts are skipped. */
static bool find(struct recent_query *k, struct err *e)
{
    const struct query *q = k->b.query;
    const int64_t kept_ms = span_floor(SPAN_DAY, k->b.watermarks.before_ms[SPAN_DAY]);
    int64_t end_ms = q->to_ms >= 0 ? q->to_ms : CIVIL_END_MS;
    int64_t first_ms = q->from_ms > kept_ms ? span_floor(SPAN_DAY, q->from_ms) : kept_ms;
    k->stats->every_series = k->match.set.kind == SERIES_ALL;
    k->stats->series_matched = k->match.count;
    if (!k->stats->every_series && k->match.count == 0)
        return true;
    for (int64_t days = 1; end_ms > first_ms && k->count < q->newest; days *= 2) {
        struct newest newest;
        if (!store_newest(k->b.store, k->b.report, end_ms, &newest, e))
            return false;
        if (newest.start_ms < 0)
            return true;
        const enum span span = newest.span > SPAN_DAY ? newest.span : SPAN_DAY;
        const int64_t to_ms = span_next(span, span_floor(span, newest.start_ms));
        end_ms = to_ms < end_ms ? to_ms : end_ms;
        const int64_t from_ms = end_ms - first_ms > days * DAY_MS ? end_ms - days * DAY_MS : first_ms;
        if (end_ms > from_ms && !scan_days(k, from_ms, end_ms, e))
            return false;
        end_ms = from_ms;
    }
    return true;
}

/* ---- the answer */

/* "2015-05-17T10:05:03.250Z", without a fraction if it is 0. */
static void add_time(const struct recent_query *k, int64_t ms, struct text *out)
{
    char iso[ZONE_ISO_BYTES];
    const char *zone = strchr(zone_iso(k->b.query->zone, ms, iso), 'T') + strlen("T10:05:03");
    text_add(out, iso, (size_t)(zone - iso));
    if (ms % SECOND_MS != 0)
        text_printf(out, ".%03d", (int)(ms % SECOND_MS));
    text_puts(out, zone);
}

/* Reads the members of an event behind its time: at first its place. */
static struct slice members_of(const struct hit *hit, struct slice *place)
{
    struct slice members = bson_members(hit->document);
    struct bson_member m;
    int64_t at_ms;
    bool good = recent_key(hit->document, &at_ms, place);
    for (int i = 0; i < 2; i++)
        good = bson_member_next(&members, &m) && good;
    ASSERT(good); /* take_packed() has seen it */
    return members;
}

static struct slice dimension_of(struct slice key, size_t dimension)
{
    struct slice rest = key, text = key;
    for (size_t d = 0; !slice_is(key, STORE_OTHER_KEY) && d <= dimension; d++)
        text = dimension_next(&rest);
    return text;
}

static void add_json(const struct recent_query *k, const struct hit *hit, struct slice key, struct text *out)
{
    const struct report *r = k->b.answer.report;
    struct slice place, members = members_of(hit, &place);
    struct bson_member m;
    text_puts(out, "{\"time\":\"");
    add_time(k, hit->at_ms, out);
    text_puts(out, "\",\"series\":{");
    for (size_t d = 0; d < r->dimension_count; d++) {
        text_puts(out, d > 0 ? "," : "");
        text_json(out, slice_text(r->dimensions[d].name));
        text_putc(out, ':');
        text_json(out, dimension_of(key, d));
    }
    text_puts(out, "},\"at\":");
    text_json(out, place);
    text_puts(out, ",\"event\":{");
    for (bool is_first = true; bson_member_next(&members, &m); is_first = false) {
        text_puts(out, is_first ? "" : ",");
        text_json(out, m.name);
        text_putc(out, ':');
        bson_member_json(&m, out);
    }
    text_puts(out, "}}");
}

/* Is it the name of one of the report's dimensions, whose text stands beside the event already? */
static bool is_of_series(const struct report *r, struct slice name)
{
    size_t d = 0;
    while (d < r->dimension_count && !slice_equal(slice_text(r->dimensions[d].name), name))
        d++;
    return d < r->dimension_count;
}

/* Adds name=value; a text in quotes unless it is one word of ASCII: others may have spaces of their own. */
static void add_pair(const struct bson_member *m, struct text *out)
{
    text_printf(out, " %.*s=", SLICE_ARGS(m->name));
    bool is_word = bson_member_is_text(m) && m->value.len > 0;
    for (size_t i = 0; is_word && i < m->value.len; i++) {
        const unsigned char byte = (unsigned char)m->value.ptr[i];
        is_word = byte > ' ' && byte < 0x7F && byte != '"' && byte != '=';
    }
    if (is_word)
        text_add(out, m->value.ptr, m->value.len);
    else
        bson_member_json(m, out);
}

static void add_line(const struct recent_query *k, const struct hit *hit, struct slice key, struct text *out)
{
    const struct report *r = k->b.answer.report;
    struct slice place, members = members_of(hit, &place);
    struct bson_member m;
    add_time(k, hit->at_ms, out);
    for (size_t d = 0; d < r->dimension_count; d++) {
        const struct bson_member pair = {2, slice_text(r->dimensions[d].name), dimension_of(key, d)};
        add_pair(&pair, out);
    }
    while (bson_member_next(&members, &m))
        if (slice_is(key, STORE_OTHER_KEY) || !is_of_series(r, m.name))
            add_pair(&m, out);
    text_putc(out, '\n');
}

/* The names of all fields of the events but for dimensions, each once, in order of first sight. */
static size_t list_columns(const struct recent_query *k, struct slice columns[FIELD_MAX + 1])
{
    size_t count = 0;
    for (size_t i = 0; i < k->count; i++) {
        struct slice place, members = members_of(&k->hits[i], &place);
        struct bson_member m;
        while (bson_member_next(&members, &m)) {
            size_t c = 0;
            while (c < count && !slice_equal(columns[c], m.name))
                c++;
            if (c == count && count <= FIELD_MAX && !is_of_series(k->b.answer.report, m.name))
                columns[count++] = m.name;
        }
    }
    return count;
}

static void add_cell(const struct recent_query *k, struct slice value, struct text *out)
{
    (k->b.query->format == QUERY_CSV_RAW ? text_csv : text_csv_cell)(out, value);
}

static void add_csv(const struct recent_query *k, const struct hit *hit, struct slice key,
                    const struct slice *columns, size_t count, struct text *out)
{
    struct slice place, members = members_of(hit, &place);
    struct text value = {0};
    add_time(k, hit->at_ms, out);
    for (size_t d = 0; d < k->b.answer.report->dimension_count; d++) {
        text_putc(out, ',');
        add_cell(k, dimension_of(key, d), out);
    }
    text_putc(out, ',');
    add_cell(k, place, out);
    for (size_t c = 0; c < count; c++) {
        struct slice rest = members;
        struct bson_member m;
        text_putc(out, ',');
        while (bson_member_next(&rest, &m)) {
            if (!slice_equal(m.name, columns[c]))
                continue;
            text_clear(&value);
            if (!bson_member_is_text(&m))
                bson_member_json(&m, &value);
            add_cell(k, bson_member_is_text(&m) ? m.value : text_slice(&value), out);
        }
    }
    text_putc(out, '\n');
    text_fini(&value);
}

static void add_head(const struct recent_query *k, const struct slice *columns, size_t count,
                     struct text *out)
{
    const struct report *r = k->b.answer.report;
    if (k->b.query->format == QUERY_JSON) {
        text_puts(out, "{\"report\":");
        text_json(out, slice_text(r->name));
        answer_notes(&k->b.answer, out);
        text_puts(out, ",\"newest\":[");
    } else if (k->b.query->format != QUERY_TABLE) {
        text_puts(out, "time");
        for (size_t d = 0; d < r->dimension_count; d++)
            text_printf(out, ",%s", r->dimensions[d].name);
        text_puts(out, ",at");
        for (size_t c = 0; c < count; c++)
            text_printf(out, ",%.*s", SLICE_ARGS(columns[c]));
        text_putc(out, '\n');
    }
}

static bool write_answer(const struct recent_query *k, struct text *out, struct err *e)
{
    struct slice columns[FIELD_MAX + 1];
    const enum query_format format = k->b.query->format;
    const size_t count = format == QUERY_CSV || format == QUERY_CSV_RAW ? list_columns(k, columns) : 0;
    struct text key = {0};
    bool good = true;
    add_head(k, columns, count, out);
    for (size_t i = 0; good && i < k->count; i++) {
        text_clear(&key);
        good = store_series_key(k->b.store, k->b.report, k->hits[i].series, &key, e);
        const struct slice series = key.len > 0 ? text_slice(&key) : slice_of("", 0);
        if (good && format == QUERY_TABLE)
            add_line(k, &k->hits[i], series, out);
        else if (good && format == QUERY_JSON)
            text_puts(out, i > 0 ? "," : ""), add_json(k, &k->hits[i], series, out);
        else if (good)
            add_csv(k, &k->hits[i], series, columns, count, out);
    }
    text_puts(out, good && format == QUERY_JSON ? "]}\n" : "");
    text_fini(&key);
    return good;
}

bool recent_run(struct store *st, const struct query *q, struct text *out, struct query_stats *stats,
                struct err *e)
{
    struct recent_query k = {.b = {.query = q, .store = st}, .stats = stats};
    const size_t before = out->len;
    *stats = (struct query_stats){0};
    if (!bound_fill(&k.b, e) || !check(&k, e))
        return false;
    stats->report = k.b.answer.report;
    if (!share_take(st->memory, q->newest * RECENT_EVENT_BYTES))
        return share_fail(st->memory, e);
    k.rooms = xmalloc(q->newest * RECENT_EVENT_BYTES);
    bool good =
        match_series(&k.match, st, k.b.report, &k.b.wanted, e) && find(&k, e) && write_answer(&k, out, e);
    if (!good)
        text_cut(out, before);
    match_fini(&k.match);
    free(k.rooms);
    return good && bound_check_bytes(q, out, before, e);
}
