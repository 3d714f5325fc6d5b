#include "ingest/event.h"

#include "base/check.h"

static const char *const names[FIELD_COUNT] = {
    [FIELD_VHOST] = "vhost",       [FIELD_PORT] = "port",     [FIELD_HOST] = "host",
    [FIELD_LOGNAME] = "logname",   [FIELD_USER] = "user",     [FIELD_REQUEST] = "request",
    [FIELD_METHOD] = "method",     [FIELD_TARGET] = "target", [FIELD_PATH] = "path",
    [FIELD_PROTOCOL] = "protocol", [FIELD_STATUS] = "status", [FIELD_BYTES] = "bytes",
    [FIELD_REFERRER] = "referrer", [FIELD_AGENT] = "agent",
};

const char *field_name(enum field f)
{
    ASSERT((unsigned)f < FIELD_COUNT);
    return names[f];
}

bool field_parse(struct slice name, enum field *f)
{
    for (int i = 0; i < FIELD_COUNT; i++) {
        if (slice_is(name, names[i])) {
            *f = (enum field)i;
            return true;
        }
    }
    return false;
}
