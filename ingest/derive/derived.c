#include "ingest/derive/derived.h"

#include "base/check.h"
#include "base/mem.h"
#include "ingest/decimal.h"
#include "ingest/derive/hide.h"
#include "ingest/derive/host_id.h"
#include "ingest/derive/host_net.h"
#include "ingest/derive/memo.h"
#include "ingest/derive/query_field.h"
#include "ingest/derive/route.h"
#include "ingest/scan.h"

#include <stdlib.h>

#define GROUPS_MAX 3

/* The fields that are made of one field's text. */
struct group {
    enum field from;
    size_t count;
    struct derive_field fields[MEMO_VALUES_MAX];
    uint64_t from_bit; /* of `from` */
    uint64_t bits;     /* bit per enum field of `fields` */
    uint64_t day_bit;  /* from_bit if a field depends on the day, else 0 */
    bool hides;        /* are addresses hidden behind it? */
    struct memo memo;
};

/* Fields of the time, and the range of instants with one hour of one day. */
struct times {
    size_t count;
    struct derive_field fields[2];
    int64_t from_ms, to_ms;
    int hour;
    enum weekday day;
};

struct derived {
    const struct derive *settings;
    struct derive_data *data; /* held */
    struct arena *memory;
    struct group groups[GROUPS_MAX]; /* that of the host first */
    size_t group_count;
    struct pcre_run *route_run; /* NULL: no rules need it */
    struct pcre_run *agent_run; /* NULL: no field of the agent needs it */
    struct times times;
    uint64_t made; /* bit per enum field that the last event got */
    struct derive_field queries[FIELD_OWN_MAX];
    size_t query_count;
};

static struct group *begin_group(struct derived *dv, enum field from)
{
    ASSERT(dv->group_count < GROUPS_MAX);
    struct group *g = &dv->groups[dv->group_count++];
    g->from = from;
    g->from_bit = (uint64_t)1 << from;
    memo_init(&g->memo);
    return g;
}

/* Adds a field to those that are made of `from`. */
static void add_to_group(struct derived *dv, enum field from, const struct derive_field *f)
{
    struct group *g = dv->groups;
    while (g < dv->groups + dv->group_count && g->from != from)
        g++;
    if (g == dv->groups + dv->group_count)
        g = begin_group(dv, from);
    ASSERT(g->count < MEMO_VALUES_MAX);
    g->fields[g->count++] = *f;
    g->bits |= (uint64_t)1 << f->field;
    if (f->kind == DERIVE_HOST_ID)
        g->day_bit = g->from_bit;
}

/* The field whose text decides one of this kind; FIELD_COUNT: a time or the target decides. */
static enum field decided_by(enum derive_kind kind)
{
    switch (kind) {
    case DERIVE_HOST_ID:
    case DERIVE_HOST_NET:
    case DERIVE_COUNTRY:
    case DERIVE_CITY:
    case DERIVE_ASN:
        return FIELD_HOST;
    case DERIVE_ROUTE:
        return FIELD_PATH;
    case DERIVE_FAMILY:
    case DERIVE_OS:
    case DERIVE_BOT:
        return FIELD_AGENT;
    case DERIVE_QUERY:
    case DERIVE_HOUR:
    case DERIVE_DAY:
    case DERIVE_COUNT:
        break;
    }
    return FIELD_COUNT;
}

static void add_field(struct derived *dv, const struct derive_field *f)
{
    enum field from = decided_by(f->kind);
    if (from != FIELD_COUNT)
        add_to_group(dv, from, f);
    else if (f->kind == DERIVE_QUERY)
        dv->queries[dv->query_count++] = *f;
    else
        dv->times.fields[dv->times.count++] = *f;
    if (f->kind == DERIVE_ROUTE && dv->settings->routes.count > 0)
        dv->route_run = pcre_run_new(ROUTE_GROUPS);
    if (from == FIELD_AGENT && dv->agent_run == NULL)
        dv->agent_run = pcre_run_new(AGENT_GROUPS);
}

size_t derived_bytes_max(const struct derive *d)
{
    uint64_t from = d->anonymise ? (uint64_t)1 << FIELD_HOST : 0;
    for (size_t i = 0; i < d->field_count; i++)
        from |= (uint64_t)1 << decided_by(d->fields[i].kind);
    from &= ~((uint64_t)1 << FIELD_COUNT);
    return (size_t)__builtin_popcountll(from) * MEMO_TOTAL_MAX;
}

struct derived *derived_new(const struct derive *d, uint64_t own, struct arena *memory)
{
    bool is_wanted = d != NULL && d->anonymise;
    for (size_t i = 0; d != NULL && i < d->field_count; i++)
        is_wanted |= (own >> d->fields[i].field & 1) == 0;
    if (!is_wanted)
        return NULL;
    struct derived *dv = xcalloc(1, sizeof *dv);
    dv->settings = d;
    dv->data = derive_hold(d);
    dv->memory = memory;
    if (d->anonymise)
        begin_group(dv, FIELD_HOST)->hides = true;
    for (size_t i = 0; i < d->field_count; i++) {
        if ((own >> d->fields[i].field & 1) == 0)
            add_field(dv, &d->fields[i]);
    }
    return dv;
}

void derived_free(struct derived *dv)
{
    if (dv == NULL)
        return;
    for (size_t i = 0; i < dv->group_count; i++)
        memo_fini(&dv->groups[i].memo);
    pcre_run_free(dv->route_run);
    pcre_run_free(dv->agent_run);
    derive_release(dv->data);
    free(dv);
}

void derived_set_data(struct derived *dv, struct derive_data *data)
{
    if (dv == NULL || dv->data == data)
        return;
    for (size_t i = 0; i < dv->group_count; i++) {
        memo_fini(&dv->groups[i].memo);
        memo_init(&dv->groups[i].memo);
    }
    derive_share(data);
    derive_release(dv->data);
    dv->data = data;
}

struct builds derived_builds(const struct derived *dv)
{
    struct builds b = {0};
    for (size_t g = 0; dv != NULL && g < dv->group_count; g++) {
        for (size_t i = 0; i < dv->groups[g].count; i++) {
            enum derive_kind kind = dv->groups[g].fields[i].kind;
            if (kind == DERIVE_COUNTRY || kind == DERIVE_CITY)
                b.of[BUILD_GEO] = geo_built(dv->data->geo);
            else if (kind == DERIVE_ASN)
                b.of[BUILD_ASN] = geo_built(dv->data->asn);
            else if (kind == DERIVE_FAMILY || kind == DERIVE_OS || kind == DERIVE_BOT)
                b.of[BUILD_AGENTS] = (int64_t)agents_hash(dv->data->agents);
        }
    }
    return b;
}

void derived_flush(struct derived *dv)
{
    for (size_t i = 0; i < dv->group_count; i++)
        memo_flush(&dv->groups[i].memo);
}

/* ---- fields of a text */

static struct slice make_value(struct derived *dv, enum derive_kind kind, struct slice text, int64_t day,
                               struct arena *memory)
{
    char net[HOST_NET_BYTES];
    size_t len;
    char *id;
    switch (kind) {
    case DERIVE_HOST_ID:
        id = arena_add(memory, HOST_ID_BYTES);
        host_id(slice_text(dv->settings->key), day, text, id);
        return slice_of(id, HOST_ID_BYTES);
    case DERIVE_HOST_NET:
        len = host_net(text, net);
        return len > 0 ? arena_copy(memory, slice_of(net, len)) : (struct slice){NULL, 0};
    case DERIVE_ROUTE:
        return route_make(&dv->settings->routes, dv->route_run, text, memory);
    case DERIVE_COUNTRY:
        return geo_find(dv->data->geo, GEO_COUNTRY, text, memory);
    case DERIVE_CITY:
        return geo_find(dv->data->geo, GEO_CITY, text, memory);
    case DERIVE_ASN:
        return geo_find(dv->data->asn, GEO_ASN, text, memory);
    case DERIVE_FAMILY:
        return agents_find(dv->data->agents, AGENTS_FAMILY, dv->agent_run, text, memory);
    case DERIVE_OS:
        return agents_find(dv->data->agents, AGENTS_OS, dv->agent_run, text, memory);
    case DERIVE_BOT:
        return slice_text(agents_is_bot(dv->data->agents, dv->agent_run, text, memory) ? "yes" : "no");
    default:
        ASSERT(false);
        return (struct slice){NULL, 0};
    }
}

static __attribute__((noinline, cold)) struct memo_entry *make_entry(struct derived *dv, struct group *g,
                                                                     struct slice text, uint64_t number)
{
    struct memo_entry *entry = memo_add(&g->memo, text, number);
    for (size_t i = 0; i < g->count; i++) {
        struct slice value =
            make_value(dv, g->fields[i].kind, entry->key, (int64_t)(number >> 1), &g->memo.memory);
        uint64_t bit = (uint64_t)1 << g->fields[i].field;
        entry->values[i] = value;
        entry->present |= value.ptr != NULL ? bit : 0;
        entry->odd |= value.ptr != NULL && scan_has_odd(value.ptr, slice_end(value)) ? bit : 0;
    }
    return entry;
}

/* Are backslashes in the text escapes of the log? */
static inline bool is_escaped(const struct event *ev, enum field f)
{
    return event_is_odd(ev, f) && (ev->literal >> f & 1) == 0;
}

/* The settings and the text decide the fields of a group, and this number: the day, and the lowest bit says
 * whether the text has escapes. */
static __attribute__((noinline)) uint64_t group_number(const struct group *g, const struct event *ev)
{
    return (g->day_bit != 0 ? (uint64_t)(ev->at_ms / DAY_MS) << 1 : 0) | is_escaped(ev, g->from);
}

/* Notes which of the fields are odd. */
static __attribute__((noinline, cold)) void put_odd(struct event *ev, uint64_t wanted, uint64_t odd,
                                                    bool escaped)
{
    ev->odd = (ev->odd & ~wanted) | odd;
    ev->literal = escaped ? ev->literal & ~wanted : ev->literal | wanted;
}

/* Fields that the event has by itself stay. */
static inline void group_put(struct derived *dv, struct group *g, struct event *ev)
{
    uint64_t number = 0, wanted = g->bits & ~ev->present;
    if (wanted == 0 || (ev->present & g->from_bit) == 0)
        return;
    if (UNLIKELY(((ev->odd | g->day_bit) & g->from_bit) != 0))
        number = group_number(g, ev);
    struct slice text = ev->field[g->from];
    const struct memo_entry *entry = memo_find(&g->memo, text, number);
    if (UNLIKELY(entry == NULL))
        entry = make_entry(dv, g, text, number);
    size_t i = 0;
    do {
        enum field f = g->fields[i].field;
        if (LIKELY((wanted >> f & 1) != 0))
            ev->field[f] = entry->values[i];
    } while (++i < g->count);
    if (UNLIKELY(((ev->odd | entry->odd) & wanted) != 0))
        put_odd(ev, wanted, entry->odd & wanted, (number & 1) != 0);
    ev->present |= entry->present & wanted;
    ev->numeric &= ~wanted;
}

/* ---- fields of the time */

static void times_find(struct times *t, const struct zone *z, int64_t at_ms)
{
    const struct zone_stretch *s = zone_stretch_at(z, at_ms);
    /* Early in 1970 the local time is before it. */
    int64_t local_ms = at_ms + s->offset_ms, local_hour_ms = span_floor(SPAN_HOUR, local_ms);
    int64_t hour_ms = at_ms - (local_ms - local_hour_ms);
    t->from_ms = s->from_ms > hour_ms ? s->from_ms : hour_ms;
    t->to_ms = s->to_ms < hour_ms + HOUR_MS ? s->to_ms : hour_ms + HOUR_MS;
    t->hour = (int)((local_hour_ms - span_floor(SPAN_DAY, local_ms)) / HOUR_MS);
    t->day = (enum weekday)((local_ms - civil_week_floor(WEEKDAY_MONDAY, local_ms)) / DAY_MS);
}

static __attribute__((noinline)) void times_put(struct times *t, const struct zone *z, struct event *ev)
{
    static const char hours[24][3] = {"00", "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11",
                                      "12", "13", "14", "15", "16", "17", "18", "19", "20", "21", "22", "23"};
    if (UNLIKELY(ev->at_ms < t->from_ms || ev->at_ms >= t->to_ms))
        times_find(t, z, ev->at_ms);
    for (size_t i = 0; i < t->count; i++) {
        enum field f = t->fields[i].field;
        uint64_t bit = (uint64_t)1 << f;
        bool is_hour = t->fields[i].kind == DERIVE_HOUR;
        if ((ev->present & bit) != 0)
            continue;
        ev->field[f] = is_hour ? slice_of(hours[t->hour], 2) : slice_text(civil_weekdays[t->day]);
        ev->number[f] = t->hour * (int64_t)EVENT_SCALE;
        ev->present |= bit;
        ev->odd &= ~bit;
        ev->numeric = is_hour ? ev->numeric | bit : ev->numeric & ~bit;
    }
}

/* ---- fields of the query */

static void query_put(const struct derive_field *d, struct arena *memory, struct event *ev)
{
    enum field f = d->field;
    uint64_t bit = (uint64_t)1 << f;
    struct slice value, target = ev->field[FIELD_TARGET];
    bool escaped = is_escaped(ev, FIELD_TARGET);
    if ((ev->present & bit) != 0 || !query_field(target, d->parameter, escaped, memory, &value))
        return;
    bool is_odd = scan_has_odd(value.ptr, slice_end(value));
    bool is_number = !is_odd && decimal_parse(value, &ev->number[f]) == DECIMAL_OK;
    ev->field[f] = value;
    ev->present |= bit;
    ev->odd = is_odd ? ev->odd | bit : ev->odd & ~bit;
    ev->literal = escaped ? ev->literal & ~bit : ev->literal | bit;
    ev->numeric = is_number ? ev->numeric | bit : ev->numeric & ~bit;
}

static __attribute__((noinline)) void queries_put(const struct derived *dv, struct event *ev)
{
    for (size_t i = 0; event_has(ev, FIELD_TARGET) && i < dv->query_count; i++)
        query_put(&dv->queries[i], dv->memory, ev);
}

/* ---- addresses */

#define BIT(f) ((uint64_t)1 << FIELD_##f)

/* Fields that cannot have an address, or are numbers. */
#define WITHOUT_ADDRESS (BIT(HOST) | BIT(PORT) | BIT(METHOD) | BIT(STATUS) | BIT(BYTES) | BIT(VALUE))

/* Puts the network into the place of the host, and hides addresses in all other texts but those of `made`. */
static __attribute__((noinline)) void hide(struct derived *dv, uint64_t made, struct event *ev)
{
    char net[HOST_NET_BYTES];
    size_t len = event_has(ev, FIELD_HOST) ? host_net(ev->field[FIELD_HOST], net) : 0;
    ev->present &= ~BIT(HOST);
    ev->odd &= ~BIT(HOST);
    for (uint64_t left = ev->present & ~made & ~WITHOUT_ADDRESS; left != 0; left &= left - 1) {
        enum field f = (enum field)__builtin_ctzll(left);
        ev->field[f] = hide_addresses(ev->field[f], dv->memory, NULL);
    }
    if (len == 0)
        return;
    ev->field[FIELD_HOST] = arena_copy(dv->memory, slice_of(net, len));
    ev->present |= BIT(HOST);
}

void derived_put(struct derived *dv, struct event *ev)
{
    uint64_t own = ev->present;
    for (size_t i = 0; i < dv->group_count; i++) {
        group_put(dv, &dv->groups[i], ev);
        if (UNLIKELY(dv->groups[i].hides))
            hide(dv, ev->present & ~own, ev);
    }
    if (dv->times.count > 0)
        times_put(&dv->times, dv->settings->zone, ev);
    if (dv->query_count > 0)
        queries_put(dv, ev);
    dv->made = ev->present & ~own;
}

const char *derived_from(const struct derived *dv, enum field f)
{
    return dv != NULL && (dv->made >> f & 1) != 0 ? derive_source(dv->settings, f) : NULL;
}
