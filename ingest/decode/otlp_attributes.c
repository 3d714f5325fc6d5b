#include "ingest/decode/otlp_attributes.h"

#include "base/check.h"
#include "base/protobuf.h"
#include "ingest/decode/chain_field.h"
#include "ingest/float_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <strings.h>

#define INT_TEXT_BYTES 24
#define HASHED_BYTES   8
#define BIT(f)         ((uint64_t)1 << FIELD_##f)

enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 };
enum {
    ANY_TEXT = 1,
    ANY_BOOL = 2,
    ANY_INT = 3,
    ANY_DOUBLE = 4,
    ANY_ARRAY = 5,
    ANY_MEMBERS = 6,
    ANY_BYTES = 7
};
enum { LIST_VALUES = 1 };

/* The built-in field, or the part, of an attribute. Rows of one field: the better one first. Names of before
 * version 1.21 of the conventions come last. Names are as compared. */
#define PART(part) (OTLP_SLOT_PARTS + OTLP_##part)
static const struct {
    const char *attribute;
    unsigned slot;
} conventions[] = {{"client_address", FIELD_HOST},
                   {"http_client_ip", FIELD_HOST},
                   {"network_peer_address", FIELD_HOST},
                   {"net_sock_peer_addr", FIELD_HOST},
                   {"net_peer_ip", FIELD_HOST},
                   {"server_address", FIELD_VHOST},
                   {"http_server_name", FIELD_VHOST},
                   {"net_host_name", FIELD_VHOST},
                   {"http_host", FIELD_VHOST},
                   {"server_port", FIELD_PORT},
                   {"net_host_port", FIELD_PORT},
                   {"user_name", FIELD_USER},
                   {"user_id", FIELD_USER},
                   {"enduser_id", FIELD_USER},
                   {"http_request_method", FIELD_METHOD},
                   {"http_method", FIELD_METHOD},
                   {"http_target", FIELD_TARGET},
                   {"url_full", FIELD_TARGET},
                   {"http_url", FIELD_TARGET},
                   {"url_path", PART(URL_PATH)},
                   {"url_query", PART(URL_QUERY)},
                   {"network_protocol_name", PART(PROTOCOL_NAME)},
                   {"network_protocol_version", PART(PROTOCOL_VERSION)},
                   {"http_flavor", PART(PROTOCOL_VERSION)},
                   {"http_response_status_code", FIELD_STATUS},
                   {"http_status_code", FIELD_STATUS},
                   {"http_response_body_size", FIELD_BYTES},
                   {"http_response_content_length", FIELD_BYTES},
                   {"http_request_header_referer", FIELD_REFERRER},
                   {"user_agent_original", FIELD_AGENT},
                   {"http_user_agent", FIELD_AGENT}};

/* The conventions of own fields, for those that are known. */
static const struct {
    const char *attribute, *field;
} own_conventions[] = {{"http_server_request_duration", "duration"},
                       {"http_request_body_size", "bytes_received"},
                       {"http_request_content_length", "bytes_received"}};

/* The last bytes tell names apart better than the first ones. */
static unsigned hash_of(const struct otlp_names *n, struct slice key)
{
    unsigned hash = 2166136261u + (unsigned)key.len;
    for (size_t i = key.len > HASHED_BYTES ? key.len - HASHED_BYTES : 0; i < key.len; i++)
        hash = (hash ^ (unsigned char)n->plain[(unsigned char)key.ptr[i]]) * 16777619u;
    return (hash ^ hash >> 15) % OTLP_NAME_HEADS;
}

static struct otlp_name *add_name(struct otlp_names *n, const char *text, unsigned slot, unsigned rank)
{
    ASSERT(n->count < OTLP_NAMES_MAX && slot < OTLP_SLOTS);
    unsigned char *head = &n->heads[hash_of(n, slice_text(text))];
    struct otlp_name *name = &n->list[++n->count];
    *name = (struct otlp_name){.text = text,
                               .len = (unsigned char)strlen(text),
                               .slot = (unsigned char)slot,
                               .rank = (unsigned char)rank,
                               .next = *head};
    *head = (unsigned char)n->count;
    return name;
}

static void init_plain(struct otlp_names *n)
{
    for (int c = 0; c < 256; c++) {
        bool is_upper = c >= 'A' && c <= 'Z', is_kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        n->plain[c] = (char)(is_upper ? c + 'a' - 'A' : is_kept ? c : '_');
    }
}

void otlp_names_init(struct otlp_names *n, const struct decode *d)
{
    *n = (struct otlp_names){.count = 0};
    init_plain(n);
    if (d->step_count > 1)
        return;
    for (int i = 0, count = field_count(); i < count; i++) {
        enum field f = (enum field)i;
        if (i >= FIELD_COUNT && decode_has_origin(d, f))
            continue;
        struct otlp_name *name = add_name(n, field_name(f), (unsigned)i, 0);
        name->of_logs = name->of_record = i < FIELD_COUNT && (DECODE_TAG_FIELDS >> i & 1) == 0;
    }
    for (size_t i = 0; i < COUNT_OF(conventions); i++) {
        struct otlp_name *name = add_name(n, conventions[i].attribute, conventions[i].slot, (unsigned)i + 1);
        name->of_record = true;
    }
    for (size_t i = 0; i < COUNT_OF(own_conventions); i++) {
        const enum field f = decode_own_field(d, own_conventions[i].field);
        if (f != FIELD_MAX)
            add_name(n, own_conventions[i].attribute, f, (unsigned)i + 1);
    }
}

size_t otlp_names_add_tag(struct otlp_names *n, const char *name)
{
    ASSERT(n->tag_count < DECODE_FIELDS_MAX);
    add_name(n, name, (unsigned)(OTLP_SLOT_TAGS + n->tag_count), 0)->is_exact = true;
    return n->tag_count++;
}

static bool is_named(const struct otlp_names *n, const struct otlp_name *name, struct slice key)
{
    if (name->len != key.len)
        return false;
    if (name->is_exact)
        return memcmp(name->text, key.ptr, key.len) == 0;
    for (size_t i = 0; i < key.len; i++) {
        if (name->text[i] != n->plain[(unsigned char)key.ptr[i]])
            return false;
    }
    return true;
}

static bool counts_in(const struct otlp_name *name, enum otlp_place place)
{
    return place == OTLP_OF_LOG || (place == OTLP_OF_METRIC ? !name->of_logs : !name->of_record);
}

static bool has(const struct otlp_values *v, unsigned slot)
{
    return (v->has[slot / 64] >> slot % 64 & 1) != 0;
}

static void set(struct otlp_values *v, unsigned slot, unsigned rank, struct slice text)
{
    v->has[slot / 64] |= (uint64_t)1 << slot % 64;
    v->text[slot] = text;
    v->rank[slot] = (unsigned char)rank;
}

static struct slice print_int(struct arena *memory, int64_t value)
{
    char *out = arena_add(memory, INT_TEXT_BYTES);
    return slice_of(out, (size_t)snprintf(out, INT_TEXT_BYTES, "%" PRId64, value));
}

/* The text of an AnyValue. *array: it is an array instead. */
static bool take_scalar(struct slice bytes, struct arena *memory, struct slice *text, struct slice *array)
{
    struct protobuf_field f;
    *text = *array = slice_of(NULL, 0);
    while (bytes.len > 0) {
        if (!protobuf_take(&bytes, &f))
            return false;
        if (f.number > ANY_BYTES)
            continue;
        *text = *array = slice_of(NULL, 0); /* of several values, the last one counts */
        if (protobuf_is(&f, ANY_TEXT, PROTOBUF_BYTES))
            *text = f.bytes;
        else if (protobuf_is(&f, ANY_BOOL, PROTOBUF_VARINT))
            *text = slice_text(f.varint != 0 ? "true" : "false");
        else if (protobuf_is(&f, ANY_INT, PROTOBUF_VARINT))
            *text = print_int(memory, (int64_t)f.varint);
        else if (protobuf_is(&f, ANY_DOUBLE, PROTOBUF_64_BITS))
            *text = isfinite(float_of_bits(protobuf_fixed(&f), false))
                        ? float_text_of(memory, protobuf_fixed(&f))
                        : slice_of(NULL, 0);
        else if (protobuf_is(&f, ANY_ARRAY, PROTOBUF_BYTES))
            *array = f.bytes;
        else if (f.number < ANY_MEMBERS || f.wire != PROTOBUF_BYTES)
            return false;
    }
    return true;
}

bool otlp_take_any(struct slice bytes, struct arena *memory, struct slice *text)
{
    struct slice array, only = {NULL, 0};
    struct protobuf_field f;
    size_t count = 0;
    if (!take_scalar(bytes, memory, text, &array))
        return false;
    while (array.len > 0) {
        if (!protobuf_take(&array, &f) || (f.number == LIST_VALUES && f.wire != PROTOBUF_BYTES))
            return false;
        count += f.number == LIST_VALUES;
        only = f.bytes;
    }
    return count != 1 || take_scalar(only, memory, text, &array);
}

bool otlp_take_attribute(const struct otlp_names *n, struct slice bytes, enum otlp_place place,
                         struct arena *memory, struct otlp_values *v)
{
    struct slice key = {"", 0}, value = {"", 0}, text = {NULL, 0};
    struct protobuf_field f;
    bool is_taken = false;
    while (bytes.len > 0) {
        if (!protobuf_take(&bytes, &f))
            return false;
        if (f.number <= KEY_VALUE_VALUE && f.wire != PROTOBUF_BYTES)
            return false;
        if (f.number == KEY_VALUE_KEY)
            key = f.bytes;
        else if (f.number == KEY_VALUE_VALUE)
            value = f.bytes;
    }
    for (size_t i = n->heads[hash_of(n, key)]; i != 0; i = n->list[i].next) {
        const struct otlp_name *name = &n->list[i];
        if (!is_named(n, name, key) || !counts_in(name, place))
            continue;
        if (!is_taken && !otlp_take_any(value, memory, &text))
            return false;
        is_taken = true;
        if (text.ptr != NULL && (!has(v, name->slot) || name->rank <= v->rank[name->slot]))
            set(v, name->slot, name->rank, text);
    }
    return true;
}

bool otlp_take_members(const struct otlp_names *n, struct slice bytes, struct arena *memory,
                       struct otlp_values *v)
{
    struct protobuf_field f, member;
    while (bytes.len > 0) {
        if (!protobuf_take(&bytes, &f))
            return false;
        if (!protobuf_is(&f, ANY_MEMBERS, PROTOBUF_BYTES))
            continue;
        while (f.bytes.len > 0) {
            if (!protobuf_take(&f.bytes, &member))
                return false;
            if (protobuf_is(&member, LIST_VALUES, PROTOBUF_BYTES) &&
                !otlp_take_attribute(n, member.bytes, OTLP_OF_LOG, memory, v))
                return false;
        }
    }
    return true;
}

/* Makes a target of its path and query, unless there is one. */
static void join_target(struct otlp_values *v, struct arena *memory)
{
    if (has(v, FIELD_TARGET) || !has(v, PART(URL_PATH)))
        return;
    struct slice path = v->text[PART(URL_PATH)];
    bool has_query = has(v, PART(URL_QUERY)) && v->text[PART(URL_QUERY)].len > 0;
    set(v, FIELD_TARGET, 0, has_query ? arena_join(memory, path, "?", v->text[PART(URL_QUERY)]) : path);
}

static bool is_http(struct slice name)
{
    return name.len == 4 && strncasecmp(name.ptr, "http", 4) == 0;
}

/* "HTTP/1.1" of "http" and "1.1" */
static void join_protocol(struct otlp_values *v, struct arena *memory)
{
    if (has(v, FIELD_PROTOCOL) || !has(v, PART(PROTOCOL_VERSION)))
        return;
    struct slice version = v->text[PART(PROTOCOL_VERSION)], name = slice_text("HTTP");
    if (has(v, PART(PROTOCOL_NAME)) && !is_http(v->text[PART(PROTOCOL_NAME)]))
        name = v->text[PART(PROTOCOL_NAME)];
    if (version.len > 0)
        set(v, FIELD_PROTOCOL, 0, arena_join(memory, name, "/", version));
}

enum reject_reason otlp_put_attributes(struct otlp_values *const places[], size_t count, struct arena *memory,
                                       struct event *ev, struct slice *text)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < count; i++) {
        join_target(places[i], memory);
        join_protocol(places[i], memory);
        bits |= places[i]->has[0];
    }
    for (; bits != 0; bits &= bits - 1) {
        unsigned slot = (unsigned)__builtin_ctzll(bits);
        size_t i = 0;
        while (!has(places[i], slot))
            i++;
        *text = places[i]->text[slot];
        enum reject_reason reason = chain_field_put(ev, (enum field)slot, *text, false);
        if (reason != REJECT_COUNT)
            return reason;
    }
    return REJECT_COUNT;
}
