#include "cli/members.h"

#include "base/check.h"
#include "base/mem.h"
#include "ingest/decode/json.h"
#include "ingest/decode/json_paths.h"
#include "ingest/event.h"

#include <stdlib.h>

#define DEPTH_MAX 32 /* of JSON whose members are looked for */

/* The better one first. Nothing is to be said of a member that has the field's own name. */
static const struct name {
    const char *field, *pointer;
} names[] = {
    {"host", "/remote_addr"},
    {"host", "/client_ip"},
    {"host", "/clientip"},
    {"host", "/ip"},
    {"user", "/remote_user"},
    {"method", "/request_method"},
    {"target", "/request_uri"},
    {"target", "/uri"},
    {"target", "/url"},
    {"protocol", "/server_protocol"},
    {"bytes", "/body_bytes_sent"},
    {"bytes", "/bytes_sent"},
    {"referrer", "/http_referrer"},
    {"referrer", "/http_referer"},
    {"referrer", "/referer"},
    {"agent", "/http_user_agent"},
    {"agent", "/user_agent"},
    {"vhost", "/server_name"},
    {"vhost", "/http_host"},
    {"duration", "/duration"},
    {"duration", "/request_time"},
    {"upstream_duration", "/upstream_duration"},
    {"upstream_duration", "/upstream_response_time"},
};

#define NAMES COUNT_OF(names)

struct members {
    struct json_paths *paths;
    struct json_found found;
    size_t path[NAMES]; /* the number of each name's pointer */
    bool is_there[NAMES];
};

struct members *members_new(void)
{
    struct members *m = xcalloc(1, sizeof *m);
    m->paths = json_paths_new(DEPTH_MAX);
    for (size_t i = 0; i < NAMES; i++)
        m->path[i] = json_paths_add(m->paths, slice_text(names[i].pointer));
    return m;
}

void members_free(struct members *m)
{
    json_paths_free(m->paths);
    free(m);
}

void members_look(struct members *m, struct slice line)
{
    const char *end;
    if (json_read(m->paths, line, &m->found, &end) != JSON_OK)
        return;
    for (size_t i = 0; i < NAMES; i++) {
        const struct json_value *v = json_found_get(&m->found, m->path[i]);
        m->is_there[i] |= v != NULL && json_type_is_text(v->type);
    }
}

void members_print(const struct members *m, uint64_t present, struct text *out)
{
    const char *last = ""; /* the field that has its member */
    bool is_some = false;
    if ((present >> FIELD_PATH & 1) != 0)
        present |= (uint64_t)1 << FIELD_TARGET; /* which has nothing to add but a query */
    for (size_t i = 0; i < NAMES; i++) {
        const struct name *n = &names[i];
        enum field f;
        bool has = field_parse(slice_text(n->field), &f) && (present >> f & 1) != 0;
        if (has || !m->is_there[i] || strcmp(last, n->field) == 0)
            continue;
        last = n->field;
        if (strcmp(n->pointer + 1, n->field) == 0)
            continue;
        text_printf(out, "%s%s: %s", is_some ? ", " : "{", n->field, n->pointer);
        is_some = true;
    }
    text_puts(out, is_some ? "}" : "");
}
