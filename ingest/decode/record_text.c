#include "ingest/decode/record_text.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>

#define INT_TEXT_BYTES 32

static struct slice print_partition(const struct record *r, struct arena *memory)
{
    char *buf = arena_add(memory, INT_TEXT_BYTES);
    return slice_of(buf, (size_t)snprintf(buf, INT_TEXT_BYTES, "%" PRId32, r->partition));
}

/* Prints seconds, like other times that are numbers. */
static struct slice print_timestamp(const struct record *r, struct arena *memory)
{
    const int64_t ms = r->timestamp_ms;
    char *buf = arena_add(memory, INT_TEXT_BYTES);
    int len = snprintf(buf, INT_TEXT_BYTES, "%" PRId64 ".%03d", ms / 1000, (int)(ms % 1000));
    return slice_of(buf, (size_t)len);
}

struct slice record_text(const struct record *r, const struct origin *o, struct arena *memory)
{
    const struct slice none = {NULL, 0};
    struct slice found;
    switch (o->kind) {
    case ORIGIN_KEY:
        return r->key;
    case ORIGIN_TOPIC:
        return r->topic;
    case ORIGIN_PARTITION:
        return print_partition(r, memory);
    case ORIGIN_TIMESTAMP:
        return r->timestamp_ms >= 0 ? print_timestamp(r, memory) : none;
    default:
        ASSERT(o->kind == ORIGIN_HEADER);
        return r->header != NULL && r->header(r, o->text, &found) ? found : none;
    }
}
