#include "config/keys.h"

#include "aggregate/dimension.h"
#include "base/civil.h"
#include "base/mem.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "config/address.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define KIB       ((int64_t)1 << 10)
#define MIB       ((int64_t)1 << 20)
#define GIB       ((int64_t)1 << 30)
#define SECOND_MS 1000
#define YES       true
#define NO        false

#define MEMBER_BYTES(type, member) sizeof(((struct type *)NULL)->member)

#define SECTION(name, help)
#define KEY(owner, section, name, member, type, unit, min, max, standard, reload, help) \
    {KEY_OF_##owner,                                                                    \
     #section,                                                                          \
     #name,                                                                             \
     KEY_##type,                                                                        \
     offsetof(struct owner, member),                                                    \
     MEMBER_BYTES(owner, member),                                                       \
     unit,                                                                              \
     min,                                                                               \
     max,                                                                               \
     standard,                                                                          \
     reload,                                                                            \
     help},
const struct key keys_table[] = {
#include "config/keys.def"
    {.name = NULL}};
#undef SECTION
#undef KEY

#define KEY(owner, section, name, member, type, unit, min, max, standard, reload, help)
#define SECTION(name, help) {#name, help},
const struct key_section keys_sections[] = {
#include "config/keys.def"
    {NULL, NULL}};
#undef SECTION

#define SECTION(name, help) #name,
const char *const keys_section_names[] = {
#include "config/keys.def"
    NULL};
#undef SECTION
#undef KEY

struct unit {
    const char *name;
    int64_t factor;
};

static const struct unit size_units[] = {{"B", 1}, {"KiB", KIB}, {"MiB", MIB}, {"GiB", GIB}, {NULL, 0}};
static const struct unit duration_units[] = {{"ms", 1},      {"s", SECOND_MS}, {"m", MINUTE_MS},
                                             {"h", HOUR_MS}, {"d", DAY_MS},    {NULL, 0}};

static const char *const source_types[] = {
    [SOURCE_FILE] = "file", [SOURCE_STDIN] = "stdin", [SOURCE_KAFKA] = "kafka", NULL};
static const char *const log_levels[] = {[LOG_LEVEL_DEBUG] = "debug",
                                         [LOG_LEVEL_INFO] = "info",
                                         [LOG_LEVEL_WARN] = "warn",
                                         [LOG_LEVEL_ERROR] = "error",
                                         NULL};
static const char *const booleans[] = {"false", "true", NULL};
static const char *const url_forms[] = {"sqlite:", "mem:", NULL};

static const char *const starts[] = {"earliest", "latest", NULL};

/* The words that a key takes, each at the index that stands for it; NULL at the end. */
static const char *const *choices_of(const struct key *k)
{
    return k->type == KEY_SOURCE_TYPE ? source_types : k->type == KEY_LOG_LEVEL ? log_levels : booleans;
}

const struct key *keys_find(const char *section, struct slice name)
{
    for (const struct key *k = keys_table; k->name != NULL; k++) {
        if (strcmp(k->section, section) == 0 && slice_is(name, k->name))
            return k;
    }
    return NULL;
}

bool keys_is_section(struct slice name)
{
    for (const struct key_section *section = keys_sections; section->name != NULL; section++) {
        if (slice_is(name, section->name))
            return true;
    }
    return false;
}

bool keys_is_list(const struct key *k)
{
    return k->type >= KEY_DECODE;
}

bool keys_is_text(const struct key *k)
{
    return k->type >= KEY_TEXT && k->type < KEY_SOURCE_TYPE;
}

bool keys_belongs(const struct key *k, const struct config_source *source)
{
    const struct decode *d = &source->decode;
    if (k->type == KEY_PATH)
        return source->type == SOURCE_FILE;
    if (k->type == KEY_TOPIC || k->type == KEY_START)
        return source->type == SOURCE_KAFKA;
    return k->type != KEY_METRIC || (d->step_count > 0 && d->steps[d->step_count - 1].kind == STEP_METRIC);
}

void keys_set_defaults(enum key_owner owner, void *base)
{
    struct err e = {0};
    for (const struct key *k = keys_table; k->name != NULL; k++) {
        if (k->owner != owner || keys_is_list(k) || k->standard == NULL)
            continue;
        bool good = keys_parse(k, slice_text(k->standard), (struct slice){0}, base, &e);
        ASSERT(good);
    }
}

/* Members are int64_t, bool, or 32 bits wide where they are enums or belong to struct report. */
static void put_number(const struct key *k, void *base, int64_t value)
{
    char *member = (char *)base + k->offset;
    uint32_t narrow = (uint32_t)value;
    bool truth = value != 0;
    ASSERT(k->bytes == sizeof value || value == narrow);
    if (k->bytes == sizeof value)
        memcpy(member, &value, sizeof value);
    else if (k->bytes == sizeof narrow)
        memcpy(member, &narrow, sizeof narrow);
    else
        memcpy(member, &truth, sizeof truth);
}

static int64_t get_number(const struct key *k, const void *base)
{
    const char *member = (const char *)base + k->offset;
    int64_t value = 0;
    uint32_t narrow = 0;
    if (k->bytes == sizeof value) {
        memcpy(&value, member, sizeof value);
        return value;
    }
    if (k->bytes == sizeof narrow) {
        memcpy(&narrow, member, sizeof narrow);
        return narrow;
    }
    ASSERT(k->bytes == sizeof(bool));
    return *(const bool *)member;
}

static void add_quantity(const struct unit *units, int64_t value, struct text *out)
{
    const struct unit *best = units;
    for (const struct unit *u = units; u->name != NULL; u++) {
        if (value != 0 && value % u->factor == 0)
            best = u;
    }
    text_printf(out, "%" PRId64 "%s", value / best->factor, best->name);
}

static void add_number(const struct key *k, int64_t value, struct text *out)
{
    if (k->type == KEY_SIZE)
        add_quantity(size_units, value, out);
    else if (k->type == KEY_DURATION)
        add_quantity(duration_units, value, out);
    else
        text_printf(out, "%" PRId64, value);
}

static void add_choices(const struct key *k, struct text *out)
{
    const char *const *choices = choices_of(k);
    for (size_t i = 0; choices[i] != NULL; i++)
        text_printf(out, "%s%s", i == 0 ? "" : choices[i + 1] == NULL ? " or " : ", ", choices[i]);
}

void keys_range(const struct key *k, struct text *out)
{
    switch (k->type) {
    case KEY_SIZE:
    case KEY_DURATION:
    case KEY_INTEGER:
        add_number(k, k->min, out);
        text_puts(out, " to ");
        add_number(k, k->max, out);
        return;
    case KEY_BOOLEAN:
    case KEY_SOURCE_TYPE:
    case KEY_LOG_LEVEL:
        add_choices(k, out);
        return;
    case KEY_TEXT:
        text_puts(out, "a text of one line");
        return;
    case KEY_PATH:
        text_puts(out, "a path");
        return;
    case KEY_URL:
        text_puts(out, "sqlite:PATH or mem:");
        return;
    case KEY_LISTEN:
        text_puts(out, "ADDRESS:PORT, such as 127.0.0.1:8080 or [::1]:8080");
        return;
    case KEY_BROKERS:
        text_puts(out, "HOST:PORT, such as 127.0.0.1:9092, several with commas between them");
        return;
    case KEY_TOPIC:
        text_printf(out, "a-z, A-Z, 0-9, ., _ and -, at most %d", KAFKA_TOPIC_MAX);
        return;
    case KEY_START:
        text_puts(out, "earliest, latest or a time such as 2026-11-21T10:00:00Z");
        return;
    case KEY_TIME:
        text_puts(out, "broker, or a JSON pointer such as /@timestamp");
        return;
    case KEY_METRIC:
        text_puts(out, "the name of a member");
        return;
    case KEY_DECODE:
        text_puts(out, "a list of steps, such as [json:/message, combined]");
        return;
    case KEY_FIELDS:
        text_puts(out, "names and origins, such as {userid: tag:userid, dc: header:dc, path: /request/uri}");
        return;
    case KEY_PROPERTIES:
        text_puts(out, "names and values, such as {security.protocol: ssl}");
        return;
    case KEY_DIMENSIONS:
        text_puts(out, "a list of dimensions, such as [path, status]");
        return;
    case KEY_CONDITIONS:
        text_puts(out, "a list of conditions, such as [status<400]");
        return;
    case KEY_MEASURES:
        text_puts(out, "names and measures, such as {hits: count, bytes: sum(bytes)}");
        return;
    }
}

void keys_expected(const struct key *k, struct text *out)
{
    if (k->type == KEY_SIZE)
        text_puts(out, "a size from ");
    else if (k->type == KEY_DURATION)
        text_puts(out, "a duration from ");
    else if (k->type == KEY_INTEGER)
        text_puts(out, "a number from ");
    keys_range(k, out);
}

/* What every refusal says: found, expected, and `hint` in words (or ""). */
static bool refuse(const struct key *k, struct slice shown, const char *hint, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES];
    struct text expected = {0};
    keys_expected(k, &expected);
    err_set(e, EX_CONFIG, "found %s, expected %s%s", suggest_quote(shown, quote), expected.ptr, hint);
    text_fini(&expected);
    return false;
}

/* What came from elsewhere may be a secret. */
static struct slice shown_of(struct slice text, struct slice reference)
{
    return reference.ptr == NULL ? text : reference;
}

static size_t count_digits(struct slice text)
{
    size_t n = 0;
    while (n < text.len && text.ptr[n] >= '0' && text.ptr[n] <= '9')
        n++;
    return n;
}

static bool parse_digits(struct slice digits, int64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < digits.len; i++) {
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, digits.ptr[i] - '0', value))
            return false;
    }
    return digits.len > 0;
}

/* What was meant by 64MB, 64k, 5 or 10sec: the unit that begins like it. */
static const char *unit_hint(const struct key *k, struct slice text, char buf[SUGGEST_HINT_BYTES])
{
    size_t digits = count_digits(text);
    struct slice given = slice_of(text.ptr + digits, text.len - digits);
    buf[0] = '\0';
    if (k->type == KEY_INTEGER || digits == 0 || digits > 18)
        return buf;
    for (const struct unit *u = k->type == KEY_SIZE ? size_units : duration_units; u->name != NULL; u++) {
        size_t begins = k->type == KEY_SIZE ? 1 : strlen(u->name);
        bool bare = given.len == 0 && strcmp(u->name, "s") == 0;
        bool like = given.len >= begins && strncasecmp(given.ptr, u->name, begins) == 0;
        if (!bare && !like)
            continue;
        snprintf(buf, SUGGEST_HINT_BYTES, " (did you mean \"%.*s%s\"?)", (int)digits, text.ptr, u->name);
        return buf;
    }
    return buf;
}

static int64_t unit_factor(const struct key *k, struct slice unit)
{
    if (unit.len == 0)
        return k->type == KEY_DURATION ? 0 : 1;
    if (k->type == KEY_INTEGER)
        return 0;
    for (const struct unit *u = k->type == KEY_SIZE ? size_units : duration_units; u->name != NULL; u++) {
        if (slice_is(unit, u->name))
            return u->factor;
    }
    return 0;
}

static bool parse_number(const struct key *k, struct slice text, struct slice reference, void *base,
                         struct err *e)
{
    char hint[SUGGEST_HINT_BYTES];
    size_t digits = count_digits(text);
    int64_t value, factor = unit_factor(k, slice_of(text.ptr + digits, text.len - digits));
    if (factor == 0)
        return refuse(k, shown_of(text, reference), reference.ptr == NULL ? unit_hint(k, text, hint) : "", e);
    if (!parse_digits(slice_of(text.ptr, digits), &value) || __builtin_mul_overflow(value, factor, &value) ||
        value < k->min || value > k->max)
        return refuse(k, shown_of(text, reference), "", e);
    put_number(k, base, value);
    return true;
}

static bool parse_choice(const struct key *k, struct slice text, struct slice reference, void *base,
                         struct err *e)
{
    const char *const *choices = choices_of(k);
    char hint[SUGGEST_HINT_BYTES];
    for (size_t i = 0; choices[i] != NULL; i++) {
        if (!slice_is(text, choices[i]))
            continue;
        put_number(k, base, (int64_t)i);
        return true;
    }
    return refuse(k, shown_of(text, reference),
                  reference.ptr == NULL ? suggest_hint(text, choices, hint) : "", e);
}

bool keys_is_line(struct slice text)
{
    const unsigned char *p = (const unsigned char *)text.ptr, *end = p + text.len;
    while (p < end) {
        size_t n = utf8_len(p, end);
        if (n == 0 || *p < 0x20 || *p == 0x7f)
            return false;
        p += n;
    }
    return text.len > 0;
}

static bool is_good_string(enum key_type type, struct slice text)
{
    return keys_is_line(text) &&
           (type == KEY_TEXT || type == KEY_PATH || (type == KEY_URL && address_is_store(text)) ||
            (type == KEY_LISTEN && address_is_listen(text)) ||
            (type == KEY_BROKERS && address_is_brokers(text)) ||
            (type == KEY_TOPIC && address_is_topic(text)));
}

static bool parse_string(const struct key *k, struct slice text, struct slice reference, void *base,
                         struct err *e)
{
    char hint[SUGGEST_HINT_BYTES];
    if (!is_good_string(k->type, text)) {
        if (k->type == KEY_URL && reference.ptr == NULL)
            return refuse(k, address_scheme(text), suggest_hint(address_scheme(text), url_forms, hint), e);
        return refuse(k, shown_of(text, reference), "", e);
    }
    char **member = (char **)(void *)((char *)base + k->offset);
    free(*member);
    *member = xstrndup(text.ptr, text.len);
    return true;
}

static bool parse_start(const struct key *k, struct slice text, struct slice reference, void *base,
                        struct err *e)
{
    char hint[SUGGEST_HINT_BYTES];
    int64_t ms = slice_is(text, "earliest") ? CONFIG_START_EARLIEST : CONFIG_START_LATEST;
    bool is_word = ms == CONFIG_START_EARLIEST || slice_is(text, "latest");
    if (!is_word && !(keys_is_line(text) && count_digits(text) == 4 && civil_parse(text, 0, &ms)))
        return refuse(k, shown_of(text, reference),
                      reference.ptr == NULL ? suggest_hint(text, starts, hint) : "", e);
    put_number(k, base, ms);
    return true;
}

/* Which of decode.metric[] is the key's member? */
static enum metric_member metric_of(const struct key *k)
{
    return (enum metric_member)((k->offset - offsetof(struct config_source, decode.metric)) / k->bytes);
}

static bool parse_decoding(const struct key *k, struct slice text, struct slice reference, void *base,
                           struct err *e)
{
    struct decode *d = &((struct config_source *)base)->decode;
    if (k->type == KEY_TIME ? decode_set_time(d, text, e) : decode_set_metric(d, metric_of(k), text, e))
        return true;
    return reference.ptr == NULL ? false : refuse(k, reference, "", e);
}

bool keys_parse(const struct key *k, struct slice text, struct slice reference, void *base, struct err *e)
{
    switch (k->type) {
    case KEY_SIZE:
    case KEY_DURATION:
    case KEY_INTEGER:
        return parse_number(k, text, reference, base, e);
    case KEY_BOOLEAN:
    case KEY_SOURCE_TYPE:
    case KEY_LOG_LEVEL:
        return parse_choice(k, text, reference, base, e);
    case KEY_TEXT:
    case KEY_PATH:
    case KEY_URL:
    case KEY_LISTEN:
    case KEY_BROKERS:
    case KEY_TOPIC:
        return parse_string(k, text, reference, base, e);
    case KEY_START:
        return parse_start(k, text, reference, base, e);
    case KEY_TIME:
    case KEY_METRIC:
        return parse_decoding(k, text, reference, base, e);
    case KEY_DECODE:
    case KEY_FIELDS:
    case KEY_PROPERTIES:
    case KEY_DIMENSIONS:
    case KEY_CONDITIONS:
    case KEY_MEASURES:
        break;
    }
    ASSERT(!keys_is_list(k));
    return false;
}

static void add_start(int64_t ms, struct text *out)
{
    char iso[CIVIL_ISO_BYTES];
    text_puts(out, ms == CONFIG_START_EARLIEST ? "earliest" : ms == CONFIG_START_LATEST ? "latest" : "");
    if (ms >= 0)
        text_printf(out, "%.19s.%03dZ", civil_iso(ms, iso), (int)(ms % SECOND_MS));
}

static void add_string(const char *string, struct text *out)
{
    text_puts(out, string != NULL ? string : "");
}

void keys_print(const struct key *k, const void *base, struct text *out)
{
    const char *member = (const char *)base + k->offset;
    const struct decode *d;
    switch (k->type) {
    case KEY_SIZE:
    case KEY_DURATION:
    case KEY_INTEGER:
        add_number(k, get_number(k, base), out);
        return;
    case KEY_BOOLEAN:
    case KEY_SOURCE_TYPE:
    case KEY_LOG_LEVEL:
        text_puts(out, choices_of(k)[get_number(k, base)]);
        return;
    case KEY_TEXT:
    case KEY_PATH:
    case KEY_URL:
    case KEY_LISTEN:
    case KEY_BROKERS:
    case KEY_TOPIC:
        add_string(*(char *const *)(const void *)member, out);
        return;
    case KEY_START:
        add_start(get_number(k, base), out);
        return;
    case KEY_TIME:
        d = (const struct decode *)(const void *)member;
        text_puts(out, d->time_is_brokers ? "broker" : d->time_pointer);
        return;
    case KEY_METRIC:
        text_puts(out, member);
        return;
    case KEY_DECODE:
    case KEY_FIELDS:
    case KEY_PROPERTIES:
    case KEY_DIMENSIONS:
    case KEY_CONDITIONS:
    case KEY_MEASURES:
        break;
    }
    ASSERT(!keys_is_list(k));
}
