/* otlp_attributes.h - finds the attributes of OTLP that the configuration asks for, and puts them into
 * events. otlp.c, otlp_log.c and otlp_metric.c call it.
 *
 * Names   : an attribute fills the field that has its name, in small letters and with _ for every other byte:
 *           `service.name` fills `service_name`. It also fills built-in fields by OpenTelemetry's semantic
 *           conventions (the table in otlp_attributes.c), and what asks for it as tag:service.name.
 * Places  : an attribute of the record comes before one of its scope, and that before one of the resource. In
 *           one list a field's own name comes first, then the rows of the table in their order; of two
 *           attributes with one name the last counts.
 * Values  : texts, numbers and booleans, also one alone in an array. Others are absent, as in JSON.
 * Owner   : texts are slices of the message, or of the arena.
 * Threads : names are read-only once complete.
 * Source  : https://opentelemetry.io/docs/specs/semconv/registry/attributes/
 */
#pragma once

#include "base/arena.h"
#include "ingest/decode/decode.h"
#include "ingest/reject.h"

/* Parts of a target and of a protocol, which are attributes of their own. */
enum otlp_part { OTLP_URL_PATH, OTLP_URL_QUERY, OTLP_PROTOCOL_NAME, OTLP_PROTOCOL_VERSION, OTLP_PARTS };

/* A slot is an enum field, or a part, or a tag that `fields` asks for. */
#define OTLP_SLOT_PARTS FIELD_MAX
#define OTLP_SLOT_TAGS  (OTLP_SLOT_PARTS + OTLP_PARTS)
#define OTLP_SLOTS      (OTLP_SLOT_TAGS + DECODE_FIELDS_MAX)
#define OTLP_SLOT_WORDS ((OTLP_SLOTS + 63) / 64)
#define OTLP_NAMES_MAX  255
#define OTLP_NAME_HEADS 256

struct otlp_name {
    const char *text;
    unsigned char len, slot, rank, next; /* `next`: another of the same hash; 0: none */
    bool is_exact, of_record;            /* `of_record`: attributes of scopes and resources do not count */
    bool of_logs;                        /* those of metrics neither */
};

struct otlp_names {
    struct otlp_name list[OTLP_NAMES_MAX + 1]; /* [0] is unused */
    size_t count, tag_count;
    unsigned char heads[OTLP_NAME_HEADS];
    char plain[256]; /* a byte as it is compared */
};

/* The attributes found in one place. */
struct otlp_values {
    uint64_t has[OTLP_SLOT_WORDS];
    struct slice text[OTLP_SLOTS];
    unsigned char rank[OTLP_SLOTS];
};

enum otlp_place { OTLP_OF_RESOURCE, OTLP_OF_SCOPE, OTLP_OF_LOG, OTLP_OF_METRIC };

/* Adds all fields that events of `d` may have; none if another step makes them. */
void otlp_names_init(struct otlp_names *n, const struct decode *d);
/* Also finds the attribute of exactly this name, which is borrowed; returns its number for otlp_tag(). */
size_t otlp_names_add_tag(struct otlp_names *n, const char *name);

static inline void otlp_values_clear(struct otlp_values *v)
{
    memset(v->has, 0, sizeof v->has);
}

/* Takes a message KeyValue. False: it is broken. */
bool otlp_take_attribute(const struct otlp_names *n, struct slice bytes, enum otlp_place place,
                         struct arena *memory, struct otlp_values *v);
/* The text of a message AnyValue; ptr NULL: it has none. False: it is broken. */
bool otlp_take_any(struct slice bytes, struct arena *memory, struct slice *text);
/* The members of a message AnyValue that is a list of keys and values, as attributes. */
bool otlp_take_members(const struct otlp_names *n, struct slice bytes, struct arena *memory,
                       struct otlp_values *v);

/* Puts the fields into the event; `places` begin with the one that comes first. Joins the parts in them.
 * Returns the reason why a text does not fit, and the text; REJECT_COUNT: all fit. */
enum reject_reason otlp_put_attributes(struct otlp_values *const places[], size_t count, struct arena *memory,
                                       struct event *ev, struct slice *text);
