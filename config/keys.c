#include "config/keys.h"

#include "aggregate/dimension.h"
#include "base/civil.h"

#include <inttypes.h>
#include <stdio.h>

#define KIB ((int64_t)1 << 10)
#define MIB ((int64_t)1 << 20)
#define GIB ((int64_t)1 << 30)
#define YES true
#define NO  false

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

static const char *const source_types[] = {
    [SOURCE_FILE] = "file", [SOURCE_STDIN] = "stdin", [SOURCE_KAFKA] = "kafka", NULL};
static const char *const log_levels[] = {[LOG_LEVEL_DEBUG] = "debug",
                                         [LOG_LEVEL_INFO] = "info",
                                         [LOG_LEVEL_WARN] = "warn",
                                         [LOG_LEVEL_ERROR] = "error",
                                         NULL};
static const char *const validations[] = {
    [VALIDATION_OFF] = "off", [VALIDATION_WARN] = "warn", [VALIDATION_ERROR] = "error", NULL};
static const char *const booleans[] = {"false", "true", NULL};
static const char *const preallocated[] = {"shell", "zeros", NULL};

const char *const *keys_choices(const struct key *k)
{
    switch (k->type) {
    case KEY_SOURCE_TYPE:
        return source_types;
    case KEY_LOG_LEVEL:
        return log_levels;
    case KEY_LAYOUT:
        return report_layout_names;
    case KEY_VALIDATION:
        return validations;
    case KEY_PREALLOCATE_AS:
        return preallocated;
    case KEY_WEEKDAY:
        return civil_weekdays;
    default:
        ASSERT(k->type == KEY_BOOLEAN);
        return booleans;
    }
}

const struct unit *keys_units(const struct key *k)
{
    return k->type == KEY_SIZE ? units_sizes : units_durations;
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

bool keys_may_be_file(const struct key *k)
{
    return k->type == KEY_URL || k->type == KEY_SECRET;
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
    if (strncmp(k->name, "raw_", 4) == 0)
        return source->raw.kind != RAW_OFF;
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

/* The number that put_number() of keys_parse.c wrote. */
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

static void add_number(const struct key *k, int64_t value, struct text *out)
{
    if (k->type == KEY_SIZE || k->type == KEY_DURATION) {
        const struct unit *u = units_of(keys_units(k), value);
        text_printf(out, "%" PRId64 "%s", value / u->factor, u->name);
    } else {
        text_printf(out, "%" PRId64, value);
    }
}

static void add_choices(const struct key *k, struct text *out)
{
    const char *const *choices = keys_choices(k);
    for (size_t i = 0; choices[i] != NULL; i++)
        text_printf(out, "%s%s", i == 0 ? "" : choices[i + 1] == NULL ? " or " : ", ", choices[i]);
}

static const char *range_of_list(enum key_type type)
{
    switch (type) {
    case KEY_DECODE:
        return "a list of steps, such as [json:/message, combined]";
    case KEY_FIELDS:
        return "names and origins, such as {userid: tag:userid, dc: header:dc, path: /request/uri}";
    case KEY_RAW:
        return "all, off, or a list of fields, such as [host, time, path, referrer, user_agent]";
    case KEY_PROPERTIES:
        return "names and values, such as {security.protocol: ssl}";
    case KEY_DIMENSIONS:
        return "a list of dimensions, such as [path, status]";
    case KEY_CONDITIONS:
        return "a list of conditions, such as [status<400]";
    default:
        ASSERT(type == KEY_MEASURES);
        return "names and measures, such as {hits: count, bytes: sum(bytes)}";
    }
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
    case KEY_LAYOUT:
    case KEY_VALIDATION:
    case KEY_PREALLOCATE_AS:
    case KEY_WEEKDAY:
        add_choices(k, out);
        return;
    case KEY_TEXT:
        text_puts(out, "a text of one line");
        return;
    case KEY_PATH:
        text_puts(out, "a path");
        return;
    case KEY_URL:
        text_puts(out, "sqlite:PATH, mongodb://HOST/DATABASE or mem:");
        return;
    case KEY_SECRET:
        text_printf(out, "%d to %d letters, digits and signs of -._~+/=", KEYS_SECRET_MIN, KEYS_SECRET_MAX);
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
    case KEY_PREALLOCATE:
        text_puts(out, "auto, off, or a chance such as 1/500000");
        return;
    case KEY_TIME:
        text_puts(out, "broker, or a JSON pointer such as /@timestamp");
        return;
    case KEY_METRIC:
        text_puts(out, "the name of a member");
        return;
    case KEY_RAW_W:
    case KEY_RAW_GROWTH:
        text_puts(out, k->type == KEY_RAW_W ? RAW_W_EXPECTED : RAW_GROWTH_EXPECTED);
        return;
    case KEY_DECODE:
    case KEY_FIELDS:
    case KEY_RAW:
    case KEY_PROPERTIES:
    case KEY_DIMENSIONS:
    case KEY_CONDITIONS:
    case KEY_MEASURES:
        text_puts(out, range_of_list(k->type));
        return;
    case KEY_KEEP:
        text_puts(out, "spans and durations, such as {minute: 48h, hour: 62d, day: forever}");
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

static void add_start(int64_t ms, struct text *out)
{
    char iso[CIVIL_ISO_BYTES];
    text_puts(out, ms == CONFIG_START_EARLIEST ? "earliest" : ms == CONFIG_START_LATEST ? "latest" : "");
    if (ms >= 0)
        text_printf(out, "%.19s.%03dZ", civil_iso(ms, iso), (int)(ms % SECOND_MS));
}

static void add_preallocate(int64_t one_in, struct text *out)
{
    if (one_in > 0)
        text_printf(out, "1/%" PRId64, one_in);
    else
        text_puts(out, one_in == CONFIG_PREALLOCATE_AUTO ? "auto" : "off");
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
    case KEY_LAYOUT:
    case KEY_VALIDATION:
    case KEY_PREALLOCATE_AS:
    case KEY_WEEKDAY:
        text_puts(out, keys_choices(k)[get_number(k, base)]);
        return;
    case KEY_TEXT:
    case KEY_PATH:
    case KEY_URL:
    case KEY_SECRET:
    case KEY_LISTEN:
    case KEY_BROKERS:
    case KEY_TOPIC:
        add_string(*(char *const *)(const void *)member, out);
        return;
    case KEY_START:
        add_start(get_number(k, base), out);
        return;
    case KEY_PREALLOCATE:
        add_preallocate(get_number(k, base), out);
        return;
    case KEY_TIME:
        d = (const struct decode *)(const void *)member;
        text_puts(out, d->time_is_brokers ? "broker" : d->time_pointer);
        return;
    case KEY_METRIC:
        text_puts(out, member);
        return;
    case KEY_RAW_W:
        raw_print_w((const struct raw *)(const void *)member, out);
        return;
    case KEY_RAW_GROWTH:
        raw_print_growth((const struct raw *)(const void *)member, out);
        return;
    case KEY_DECODE:
    case KEY_FIELDS:
    case KEY_RAW:
    case KEY_PROPERTIES:
    case KEY_DIMENSIONS:
    case KEY_CONDITIONS:
    case KEY_MEASURES:
    case KEY_KEEP:
        break;
    }
    ASSERT(!keys_is_list(k));
}
