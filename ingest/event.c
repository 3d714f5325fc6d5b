#include "ingest/event.h"

#include "base/check.h"

#include <pthread.h>
#include <string.h>

static const char *const names[FIELD_COUNT] = {
    [FIELD_VHOST] = "vhost",       [FIELD_PORT] = "port",     [FIELD_HOST] = "host",
    [FIELD_LOGNAME] = "logname",   [FIELD_USER] = "user",     [FIELD_REQUEST] = "request",
    [FIELD_METHOD] = "method",     [FIELD_TARGET] = "target", [FIELD_PATH] = "path",
    [FIELD_PROTOCOL] = "protocol", [FIELD_STATUS] = "status", [FIELD_BYTES] = "bytes",
    [FIELD_REFERRER] = "referrer", [FIELD_AGENT] = "agent",   [FIELD_NAME] = "name",
    [FIELD_VALUE] = "value",
};

/* Names are only added, so a thread that has read the count may read the names below it without the lock. */
static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;
static char own_names[FIELD_OWN_MAX][FIELD_NAME_BYTES];
static _Atomic int own_count;

int field_count(void)
{
    return FIELD_COUNT + own_count;
}

const char *field_name(enum field f)
{
    ASSERT((int)f >= 0 && (int)f < FIELD_COUNT + own_count);
    return f < FIELD_COUNT ? names[f] : own_names[f - FIELD_COUNT];
}

bool field_parse(struct slice name, enum field *f)
{
    int count = name.len > 0 ? FIELD_COUNT + own_count : 0;
    for (int i = 0; i < count; i++) {
        const char *known = i < FIELD_COUNT ? names[i] : own_names[i - FIELD_COUNT];
        if (known[0] == name.ptr[0] && slice_is(name, known)) { /* most differ in the first byte */
            *f = (enum field)i;
            return true;
        }
    }
    return false;
}

static bool is_parameter_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

size_t field_name_len(struct slice text)
{
    size_t prefix = strlen(FIELD_QUERY_PREFIX), n = prefix;
    if (slice_begins(text, slice_of(FIELD_QUERY_PREFIX, prefix))) {
        while (n < text.len && n + 1 < FIELD_NAME_BYTES && is_parameter_byte(text.ptr[n]))
            n++;
        return n > prefix ? n : 0;
    }
    for (n = 0; n < text.len && n + 1 < FIELD_NAME_BYTES && slice_is_name(slice_of(text.ptr, n + 1), n + 2);)
        n++;
    return n;
}

bool field_intern(struct slice name, enum field *f)
{
    if (field_parse(name, f))
        return true;
    if (name.len == 0 || field_name_len(name) != name.len)
        return false;
    pthread_mutex_lock(&own_lock);
    bool known = field_parse(name, f);
    if (!known && own_count < FIELD_OWN_MAX) {
        memcpy(own_names[own_count], name.ptr, name.len);
        *f = (enum field)(FIELD_COUNT + own_count++);
        known = true;
    }
    pthread_mutex_unlock(&own_lock);
    return known;
}

bool field_is_number(enum field f)
{
    return f == FIELD_STATUS || f == FIELD_BYTES || f >= FIELD_VALUE;
}

int64_t field_scale(enum field f)
{
    return f == FIELD_STATUS || f == FIELD_BYTES ? 1 : EVENT_SCALE;
}
