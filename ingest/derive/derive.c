#include "ingest/derive/derive.h"

#include "base/check.h"
#include "base/mem.h"
#include "ingest/derive/host_id.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#define UTC "UTC"

static const struct {
    const char *name, *source;
} kinds[DERIVE_COUNT] = {[DERIVE_QUERY] = {FIELD_QUERY_PREFIX, "target"},
                         [DERIVE_HOUR] = {"hour_of_day", "time"},
                         [DERIVE_DAY] = {"day_of_week", "time"},
                         [DERIVE_HOST_NET] = {"host_net", "host"},
                         [DERIVE_HOST_ID] = {"host_id", "host"},
                         [DERIVE_ROUTE] = {"route", "path"},
                         [DERIVE_COUNTRY] = {"country", "host"},
                         [DERIVE_CITY] = {"city", "host"},
                         [DERIVE_ASN] = {"asn", "host"},
                         [DERIVE_FAMILY] = {"agent_family", "agent"},
                         [DERIVE_OS] = {"agent_os", "agent"},
                         [DERIVE_BOT] = {"bot", "agent"}};

/* Guards the pointers to all struct derive_data, and their holders. */
static pthread_mutex_t data_lock = PTHREAD_MUTEX_INITIALIZER;

struct derive_data *derive_hold(const struct derive *d)
{
    pthread_mutex_lock(&data_lock);
    struct derive_data *data = d != NULL ? d->data : NULL;
    if (data != NULL)
        data->holders++;
    pthread_mutex_unlock(&data_lock);
    return data;
}

void derive_share(struct derive_data *data)
{
    if (data == NULL)
        return;
    pthread_mutex_lock(&data_lock);
    data->holders++;
    pthread_mutex_unlock(&data_lock);
}

void derive_release(struct derive_data *data)
{
    if (data == NULL)
        return;
    pthread_mutex_lock(&data_lock);
    bool is_last = --data->holders == 0;
    pthread_mutex_unlock(&data_lock);
    if (!is_last)
        return;
    geo_close(data->geo);
    geo_close(data->asn);
    agents_free(data->agents);
    free(data);
}

static struct derive_data *data_new(void)
{
    struct derive_data *data = xcalloc(1, sizeof *data);
    data->holders = 1; /* the settings */
    return data;
}

void derive_fini(struct derive *d)
{
    free(d->timezone);
    free(d->key);
    free(d->agents_path);
    free(d->geo_path);
    free(d->asn_path);
    derive_release(d->data);
    route_fini(&d->routes);
    *d = (struct derive){0};
}

static bool parse_kind(struct slice name, enum derive_kind *kind)
{
    *kind = DERIVE_QUERY;
    if (slice_begins(name, slice_text(kinds[DERIVE_QUERY].name)))
        return true;
    for (*kind = DERIVE_QUERY + 1; *kind < DERIVE_COUNT; ++*kind) {
        if (slice_is(name, kinds[*kind].name))
            return true;
    }
    return false;
}

bool derive_is_name(struct slice name)
{
    enum derive_kind kind;
    return parse_kind(name, &kind);
}

static const struct derive_field *find(const struct derive *d, enum field f)
{
    for (size_t i = 0; i < d->field_count; i++) {
        if (d->fields[i].field == f)
            return &d->fields[i];
    }
    return NULL;
}

bool derive_has(const struct derive *d, enum field f)
{
    return find(d, f) != NULL;
}

const char *derive_source(const struct derive *d, enum field f)
{
    const struct derive_field *asked = find(d, f);
    return asked != NULL ? kinds[asked->kind].source : NULL;
}

bool derive_ask(struct derive *d, struct slice name, bool is_optional, struct err *e)
{
    struct derive_field asked = {.is_optional = is_optional, .parameter = {"", 0}};
    bool is_name = parse_kind(name, &asked.kind);
    ASSERT(is_name);
    if (!field_intern(name, &asked.field))
        return err_set(e, EX_CONFIG,
                       "found one more field \"%.*s\", expected at most %d of your own, shorter than %d",
                       SLICE_ARGS(name), FIELD_OWN_MAX, FIELD_NAME_BYTES);
    if (asked.kind == DERIVE_QUERY)
        asked.parameter = slice_text(field_name(asked.field) + strlen(FIELD_QUERY_PREFIX));
    if (!derive_has(d, asked.field))
        d->fields[d->field_count++] = asked;
    return true;
}

static bool needs_zone(enum derive_kind kind)
{
    return kind == DERIVE_HOUR || kind == DERIVE_DAY;
}

static bool open_zone(struct derive *d, struct err *e)
{
    if (d->zone == NULL)
        d->zone = d->timezone == NULL ? &zone_utc : zone_find(slice_text(d->timezone), e);
    if (d->zone != NULL)
        return true;
    e->code = e->code == EX_USAGE ? EX_CONFIG : e->code;
    return err_prefix(e, "derive.timezone");
}

static bool open_agents(const struct derive *d, struct derive_data *data, struct err *e)
{
    if (data->agents == NULL)
        data->agents = agents_load(d->agents_path != NULL ? d->agents_path : AGENTS_PATH, e);
    return data->agents != NULL || err_prefix(e, "derive.agents");
}

static bool open_geo(struct geo **g, const char *path, enum geo_value value, const char *key, struct err *e)
{
    if (path == NULL)
        return err_set(e, EX_CONFIG,
                       "a report uses country, city or asn, which need a database: set %s to the "
                       "path of an .mmdb file",
                       key);
    if (*g == NULL)
        *g = geo_open(path, e);
    return (*g != NULL && geo_has(*g, value, e)) || err_prefix(e, "%s", key);
}

static bool open_field(struct derive *d, struct derive_data *data, enum derive_kind kind, struct err *e)
{
    switch (kind) {
    case DERIVE_HOUR:
    case DERIVE_DAY:
        return open_zone(d, e);
    case DERIVE_HOST_ID:
        return d->key != NULL ? host_id_open(e) || err_prefix(e, "host_id")
                              : err_set(e, EX_CONFIG,
                                        "host_id needs a secret: set derive.key, as "
                                        "key: file:/etc/tallyd/host.key");
    case DERIVE_COUNTRY:
        return open_geo(&data->geo, d->geo_path, GEO_COUNTRY, "derive.geo", e);
    case DERIVE_CITY:
        return open_geo(&data->geo, d->geo_path, GEO_CITY, "derive.geo", e);
    case DERIVE_ASN:
        return open_geo(&data->asn, d->asn_path, GEO_ASN, "derive.asn", e);
    case DERIVE_FAMILY:
    case DERIVE_OS:
    case DERIVE_BOT:
        return open_agents(d, data, e);
    case DERIVE_QUERY:
    case DERIVE_HOST_NET:
    case DERIVE_ROUTE:
    case DERIVE_COUNT:
        break;
    }
    return true;
}

bool derive_open(struct derive *d, struct err *e)
{
    size_t kept = 0;
    if (d->data == NULL)
        d->data = data_new();
    for (size_t i = 0; i < d->field_count; i++) {
        bool good = open_field(d, d->data, d->fields[i].kind, e);
        if (!good && !d->fields[i].is_optional)
            return false;
        if (good)
            d->fields[kept++] = d->fields[i];
    }
    d->field_count = kept;
    return true;
}

static void print_database(const struct geo *g, const char *prefix, const char *key, const char *path,
                           struct text *out)
{
    if (g == NULL)
        return;
    text_printf(out, "%s%s: ", prefix, key);
    geo_print(g, out);
    text_printf(out, " (%s)\n", path);
}

static void print_data(const struct derive *d, const struct derive_data *data, const char *prefix,
                       struct text *out)
{
    print_database(data->geo, prefix, "derive.geo", d->geo_path, out);
    print_database(data->asn, prefix, "derive.asn", d->asn_path, out);
    if (data->agents != NULL)
        text_printf(out, "%sderive.agents: %zu expressions, hash %016" PRIx64 " (%s)\n", prefix,
                    agents_count(data->agents), agents_hash(data->agents),
                    d->agents_path != NULL ? d->agents_path : AGENTS_PATH);
}

void derive_print(const struct derive *d, const char *prefix, struct text *out)
{
    if (d->data != NULL)
        print_data(d, d->data, prefix, out);
}

struct builds derive_builds(const struct derive *d)
{
    struct builds b = {0};
    struct derive_data *data = derive_hold(d);
    if (data != NULL && data->geo != NULL)
        b.of[BUILD_GEO] = geo_built(data->geo);
    if (data != NULL && data->asn != NULL)
        b.of[BUILD_ASN] = geo_built(data->asn);
    if (data != NULL && data->agents != NULL)
        b.of[BUILD_AGENTS] = (int64_t)agents_hash(data->agents);
    derive_release(data);
    return b;
}

bool derive_reload(struct derive *d, bool *is_new, struct err *e)
{
    struct derive_data *next = data_new(), *old = d->data;
    struct text before = {0}, after = {0};
    bool good = true;
    *is_new = false;
    for (size_t i = 0; good && old != NULL && i < d->field_count; i++)
        good = open_field(d, next, d->fields[i].kind, e);
    if (good && old != NULL) {
        print_data(d, old, "", &before);
        print_data(d, next, "", &after);
        *is_new = !slice_equal(text_slice(&before), text_slice(&after));
    }
    text_fini(&before);
    text_fini(&after);
    if (good && old != NULL) { /* files of one build may differ */
        pthread_mutex_lock(&data_lock);
        d->data = next;
        pthread_mutex_unlock(&data_lock);
        next = old;
    }
    derive_release(next);
    return good;
}

void derive_given(const struct derive *d, enum field f, struct text *out)
{
    const struct derive_field *asked = find(d, f);
    if (f == FIELD_HOST && d->anonymise)
        text_printf(out, "%s anonymise\n", field_name(f));
    for (size_t i = 0; asked != NULL && asked->kind == DERIVE_ROUTE && i < d->routes.count; i++) {
        text_printf(out, "%s ", field_name(f));
        text_json(out, slice_text(d->routes.list[i].match));
        text_putc(out, ' ');
        text_json(out, slice_text(d->routes.list[i].replace));
        text_putc(out, '\n');
    }
    struct err ignored; /* derive_open() says it */
    if (asked != NULL && asked->kind == DERIVE_HOST_ID && d->key != NULL && host_id_open(&ignored)) {
        char fingerprint[HOST_ID_BYTES];
        host_id_fingerprint(slice_text(d->key), fingerprint);
        text_printf(out, "%s" DERIVE_GIVEN_KEY "%.*s\n", field_name(f), HOST_ID_BYTES, fingerprint);
    }
    if (asked != NULL && needs_zone(asked->kind) && d->timezone != NULL && strcmp(d->timezone, UTC) != 0)
        text_printf(out, "%s %s\n", field_name(f), d->timezone);
}
