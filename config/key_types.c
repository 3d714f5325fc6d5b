/* The table of key types, and how each of them parses, prints and describes a value. */
#include "aggregate/keep.h"
#include "aggregate/sample.h"
#include "base/civil.h"
#include "base/mem.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "config/address.h"
#include "config/expand.h"
#include "config/keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define DIGITS(x)  #x
#define TEXT_OF(x) DIGITS(x)

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

static const char *const starts[] = {"earliest", "latest", NULL};
static const char *const preallocates[] = {"auto", "off", NULL};

/* Members are int64_t, bool, or 32 bits wide: enums, and numbers of struct report. */
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

/* The number that put_number() wrote. */
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

/* Every refusal: found, expected, and `hint` (or ""). */
static bool refuse(const struct key *k, struct slice shown, const char *hint, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES];
    struct text expected = {0};
    keys_expected(k, &expected);
    err_set(e, EX_CONFIG, "found %s, expected %s%s", suggest_quote(shown, quote), expected.ptr, hint);
    text_fini(&expected);
    return false;
}

static size_t count_digits(struct slice text)
{
    size_t n = 0;
    while (n < text.len && text.ptr[n] >= '0' && text.ptr[n] <= '9')
        n++;
    return n;
}

/* Suggests a unit for 64MB, 64k, 5 or 10sec: the unit that begins alike. */
static const char *unit_hint(const struct key *k, struct slice text, char buf[SUGGEST_HINT_BYTES])
{
    size_t digits = count_digits(text);
    struct slice given = slice_of(text.ptr + digits, text.len - digits);
    buf[0] = '\0';
    if (digits == 0 || digits > 18)
        return buf;
    for (const struct unit *u = keys_types[k->type].units; u != NULL && u->name != NULL; u++) {
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
    const struct unit *units = keys_types[k->type].units;
    if (unit.len == 0)
        return k->type == KEY_DURATION ? 0 : 1;
    return units == NULL ? 0 : units_factor(units, unit);
}

static bool parse_number(const struct key *k, struct slice text, void *base, struct err *e)
{
    char hint[SUGGEST_HINT_BYTES];
    size_t digits = count_digits(text);
    struct slice number = slice_of(text.ptr, digits);
    int64_t value, factor = unit_factor(k, slice_of(text.ptr + digits, text.len - digits));
    if (factor == 0)
        return refuse(k, text, unit_hint(k, text, hint), e);
    if (!units_take_digits(&number, &value) || __builtin_mul_overflow(value, factor, &value) ||
        value < k->min || value > k->max)
        return refuse(k, text, "", e);
    put_number(k, base, value);
    return true;
}

static void add_number(const struct key *k, int64_t value, struct text *out)
{
    static const struct unit ones[] = {{"", 1}, {NULL, 0}};
    const struct unit *units = keys_types[k->type].units;
    const struct unit *u = units_of(units != NULL ? units : ones, value);
    text_printf(out, "%" PRId64 "%s", value / u->factor, u->name);
}

static void print_number(const struct key *k, const void *base, struct text *out)
{
    add_number(k, get_number(k, base), out);
}

static bool parse_word(const struct key *k, struct slice text, void *base, struct err *e)
{
    const char *const *words = keys_types[k->type].words;
    char hint[SUGGEST_HINT_BYTES];
    int i = slice_find(text, words);
    if (i < 0)
        return refuse(k, text, suggest_hint(text, words, hint), e);
    put_number(k, base, i);
    return true;
}

static void print_word(const struct key *k, const void *base, struct text *out)
{
    text_puts(out, keys_types[k->type].words[get_number(k, base)]);
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

/* Is it a token that HTTP can carry (RFC 9110, token68)? */
static bool is_secret(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')) &&
            memchr("-._~+/=", c, 7) == NULL)
            return false;
    }
    return text.len >= KEYS_SECRET_MIN && text.len <= KEYS_SECRET_MAX;
}

static bool parse_string(const struct key *k, struct slice text, void *base, struct err *e)
{
    char hint[SUGGEST_HINT_BYTES];
    bool (*is_good)(struct slice) = keys_types[k->type].is_good;
    if (!keys_is_line(text) || !is_good(text)) {
        if (keys_is_secret(k))
            return refuse(k, slice_text("…"), "", e);
        if (k->type == KEY_URL)
            return refuse(k, address_scheme(text), address_store_hint(text, hint), e);
        return refuse(k, text, "", e);
    }
    char **member = (char **)(void *)((char *)base + k->offset);
    free(*member);
    *member = xstrndup(text.ptr, text.len);
    return true;
}

static void print_string(const struct key *k, const void *base, struct text *out)
{
    const char *string = *(char *const *)(const void *)((const char *)base + k->offset);
    text_puts(out, string != NULL ? string : "");
}

static bool parse_start(const struct key *k, struct slice text, void *base, struct err *e)
{
    char hint[SUGGEST_HINT_BYTES];
    int64_t ms = slice_is(text, "earliest") ? CONFIG_START_EARLIEST : CONFIG_START_LATEST;
    bool is_word = ms == CONFIG_START_EARLIEST || slice_is(text, "latest");
    if (!is_word && !(keys_is_line(text) && count_digits(text) == 4 && civil_parse(text, 0, &ms)))
        return refuse(k, text, suggest_hint(text, starts, hint), e);
    put_number(k, base, ms);
    return true;
}

static void print_start(const struct key *k, const void *base, struct text *out)
{
    int64_t ms = get_number(k, base);
    char iso[CIVIL_ISO_BYTES];
    text_puts(out, ms == CONFIG_START_EARLIEST ? "earliest" : ms == CONFIG_START_LATEST ? "latest" : "");
    if (ms >= 0)
        text_printf(out, "%.19s.%03dZ", civil_iso(ms, iso), (int)(ms % SECOND_MS));
}

static bool parse_preallocate(const struct key *k, struct slice text, void *base, struct err *e)
{
    char hint[SUGGEST_HINT_BYTES];
    int64_t one_in = slice_is(text, "auto") ? CONFIG_PREALLOCATE_AUTO : CONFIG_PREALLOCATE_OFF;
    bool is_word = one_in == CONFIG_PREALLOCATE_AUTO || slice_is(text, "off");
    struct slice chance = text.len > 2 ? slice_of(text.ptr + 2, text.len - 2) : (struct slice){0};
    bool is_chance = chance.len > 0 && memcmp(text.ptr, "1/", 2) == 0 &&
                     units_take_digits(&chance, &one_in) && chance.len == 0 && one_in > 0;
    if (!is_word && !is_chance)
        return refuse(k, text, suggest_hint(text, preallocates, hint), e);
    put_number(k, base, one_in);
    return true;
}

static void print_preallocate(const struct key *k, const void *base, struct text *out)
{
    int64_t one_in = get_number(k, base);
    if (one_in > 0)
        text_printf(out, "1/%" PRId64, one_in);
    else
        text_puts(out, one_in == CONFIG_PREALLOCATE_AUTO ? "auto" : "off");
}

static bool parse_sample(const struct key *k, struct slice text, void *base, struct err *e)
{
    uint32_t one_in;
    if (!sample_parse(text, &one_in))
        return refuse(k, text, "", e);
    put_number(k, base, one_in);
    return true;
}

static void print_sample(const struct key *k, const void *base, struct text *out)
{
    text_printf(out, "1/%" PRId64, get_number(k, base));
}

static bool parse_time(const struct key *k, struct slice text, void *base, struct err *e)
{
    (void)k;
    return decode_set_time(&((struct config_source *)base)->decode, text, e);
}

static void print_time(const struct key *k, const void *base, struct text *out)
{
    const struct decode *d = &((const struct config_source *)base)->decode;
    (void)k;
    text_puts(out, d->time_is_brokers ? "broker" : d->time_pointer);
}

static bool parse_metric(const struct key *k, struct slice text, void *base, struct err *e)
{
    size_t member = (k->offset - offsetof(struct config_source, decode.metric)) / k->bytes;
    return decode_set_metric(&((struct config_source *)base)->decode, (enum metric_member)member, text, e);
}

static void print_metric(const struct key *k, const void *base, struct text *out)
{
    text_puts(out, (const char *)base + k->offset);
}

static bool parse_raw_w(const struct key *k, struct slice text, void *base, struct err *e)
{
    (void)k;
    return raw_set_w(&((struct config_source *)base)->raw, text, e);
}

static void print_raw_w(const struct key *k, const void *base, struct text *out)
{
    (void)k;
    raw_print_w(&((const struct config_source *)base)->raw, out);
}

static bool parse_raw_growth(const struct key *k, struct slice text, void *base, struct err *e)
{
    (void)k;
    return raw_set_growth(&((struct config_source *)base)->raw, text, e);
}

static void print_raw_growth(const struct key *k, const void *base, struct text *out)
{
    (void)k;
    raw_print_growth(&((const struct config_source *)base)->raw, out);
}

static bool add_step(struct slice name, struct slice text, void *base, struct err *e)
{
    (void)name;
    return decode_add_step(&((struct config_source *)base)->decode, text, e);
}

static bool add_field(struct slice name, struct slice text, void *base, struct err *e)
{
    return decode_add_field(&((struct config_source *)base)->decode, name, text, e);
}

static void print_decoding(const struct key *k, const void *base, struct text *out)
{
    const struct decode *d = &((const struct config_source *)base)->decode;
    struct text piece = {0};
    text_putc(out, k->type == KEY_FIELDS ? '{' : '[');
    for (size_t i = 0; k->type == KEY_DECODE && i < d->step_count; i++) {
        text_puts(out, i == 0 ? "" : ", ");
        text_clear(&piece);
        struct slice text;
        const char *name = decode_named_step(d, i, &text);
        if (name == NULL) {
            decode_print_step(d, i, &piece);
            text = text_slice(&piece);
        }
        text_puts(out, name != NULL ? "{" : "");
        text_puts(out, name != NULL ? name : "");
        text_puts(out, name != NULL ? ": " : "");
        expand_quote(text, out);
        text_puts(out, name != NULL ? "}" : "");
    }
    for (size_t i = 0; k->type == KEY_FIELDS && i < d->origin_count; i++) {
        text_clear(&piece);
        decode_print_origin(&d->origins[i], &piece);
        text_printf(out, "%s%s: ", i == 0 ? "" : ", ", field_name(d->origins[i].field));
        expand_quote(text_slice(&piece), out);
    }
    text_putc(out, k->type == KEY_FIELDS ? '}' : ']');
    text_fini(&piece);
}

static bool set_raw(struct slice name, struct slice text, void *base, struct err *e)
{
    (void)name;
    return raw_set_kind(&((struct config_source *)base)->raw, text, e);
}

static bool add_raw(struct slice name, struct slice text, void *base, struct err *e)
{
    (void)name;
    return raw_add_field(&((struct config_source *)base)->raw, text, e);
}

static void print_raw(const struct key *k, const void *base, struct text *out)
{
    (void)k;
    raw_print_kind(&((const struct config_source *)base)->raw, out);
}

static void print_paths(const struct key *k, const void *base, struct text *out)
{
    (void)k;
    config_print_paths(NULL, base, NULL, out);
}

static void print_properties(const struct key *k, const void *base, struct text *out)
{
    (void)k;
    config_print_properties(base, NULL, false, out);
}

static void print_routes(const struct key *k, const void *base, struct text *out)
{
    const struct route_rules *rs = &((const struct config *)base)->derive.routes;
    (void)k;
    text_putc(out, '[');
    for (size_t i = 0; i < rs->count; i++) {
        text_puts(out, i == 0 ? "{match: " : ", {match: ");
        expand_quote(slice_text(rs->list[i].match), out);
        text_puts(out, ", replace: ");
        expand_quote(slice_text(rs->list[i].replace), out);
        text_putc(out, '}');
    }
    text_putc(out, ']');
}

static bool add_dimension(struct slice name, struct slice text, void *base, struct err *e)
{
    (void)name;
    return report_add_dimension(base, text, e);
}

static bool add_condition(struct slice name, struct slice text, void *base, struct err *e)
{
    struct condition c;
    (void)name;
    if (!condition_parse(&c, text, e))
        return false;
    struct slice field, operand;
    return condition_split(text, &field, &c.op, &operand) &&
           condition_check_texts(c.field, c.op, operand, e) && report_add_condition(base, text, e);
}

static bool add_measure(struct slice name, struct slice text, void *base, struct err *e)
{
    return report_add_measure(base, name, text, e);
}

static bool add_newest_field(struct slice name, struct slice text, void *base, struct err *e)
{
    (void)name;
    return report_add_newest_field(base, text, e);
}

static void print_pieces(const struct key *k, const void *base, struct text *out)
{
    const struct report *r = base;
    struct text condition = {0};
    text_putc(out, k->type == KEY_MEASURES ? '{' : '[');
    for (size_t i = 0; k->type == KEY_DIMENSIONS && i < r->dimension_count; i++) {
        text_puts(out, i == 0 ? "" : ", ");
        expand_quote(slice_text(r->dimensions[i].name), out);
    }
    for (size_t i = 0; k->type == KEY_NEWEST_FIELDS && i < r->newest_field_count; i++) {
        text_puts(out, i == 0 ? "" : ", ");
        expand_quote(slice_text(field_name(r->newest_fields[i])), out);
    }
    for (size_t i = 0; k->type == KEY_CONDITIONS && i < r->condition_count; i++) {
        text_puts(out, i == 0 ? "" : ", ");
        text_clear(&condition);
        condition_print(&r->conditions[i], &condition);
        expand_quote(text_slice(&condition), out);
    }
    for (size_t i = 0; k->type == KEY_MEASURES && i < r->measure_count; i++) {
        const struct measure *m = &r->measures[i];
        text_printf(out, "%s%s: ", i == 0 ? "" : ", ", m->name);
        if (strchr(m->expression, ',') != NULL)
            expand_quote(slice_text(m->expression), out);
        else
            text_puts(out, m->expression);
    }
    text_putc(out, k->type == KEY_MEASURES ? '}' : ']');
    text_fini(&condition);
}

static bool add_keep(struct slice name, struct slice text, void *base, struct err *e)
{
    return keep_set(base, name, text, e);
}

/* Prints nothing if every resolution is kept for ever; otherwise every resolution that the report counts. */
static void print_keep(const struct key *k, const void *base, struct text *out)
{
    const struct report *r = base;
    char keep[KEEP_BYTES];
    (void)k;
    text_putc(out, '{');
    for (int s = (int)report_cell(r); keep_is_limited(r) && s < SPAN_COUNT; s++)
        text_printf(out, "%s%s: %s", s == (int)report_cell(r) ? "" : ", ", span_name((enum span)s),
                    keep_text(r->keep_ms[s], keep));
    text_putc(out, '}');
}

#define NUMBER(type, its_units)                                                        \
    {                                                                                  \
        .name = type, .units = its_units, .parse = parse_number, .print = print_number \
    }
#define STRING(test, values)                                                                           \
    {                                                                                                  \
        .name = "text", .range = values, .is_good = test, .parse = parse_string, .print = print_string \
    }
#define FORM(function, values)                                                                \
    {                                                                                         \
        .name = "text", .range = values, .parse = parse_##function, .print = print_##function \
    }
#define WORD(choices, type)                                                      \
    {                                                                            \
        .name = type, .words = choices, .parse = parse_word, .print = print_word \
    }
#define PIECES(type, values, its_piece, kind, adds, adds_alone, prints)                             \
    {                                                                                               \
        .name = type, .range = values, .piece = its_piece, .piece_kind = PIECE_##kind, .add = adds, \
        .add_alone = adds_alone, .print = prints                                                    \
    }

/* In the order of enum key_type. */
const struct key_traits keys_types[] = {
    [KEY_SIZE] = NUMBER("size", units_sizes),
    [KEY_DURATION] = NUMBER("duration", units_durations),
    [KEY_INTEGER] = NUMBER("number", NULL),
    [KEY_TEXT] = STRING(keys_is_line, "a text of one line"),
    [KEY_PATH] = STRING(keys_is_line, "a path"),
    [KEY_URL] = STRING(address_is_store, "sqlite:PATH, mongodb://HOST/DATABASE or mem:"),
    [KEY_SECRET] = STRING(is_secret, TEXT_OF(KEYS_SECRET_MIN) " to " TEXT_OF(
                                         KEYS_SECRET_MAX) " letters, digits and signs of -._~+/="),
    [KEY_PASSWORD] = STRING(keys_is_line, "a text of one line"),
    [KEY_LISTEN] = STRING(address_is_listen, "ADDRESS:PORT, such as 127.0.0.1:8080 or [::1]:8080"),
    [KEY_BROKERS] =
        STRING(address_is_brokers, "HOST:PORT, such as 127.0.0.1:9092, several with commas between them"),
    [KEY_TOPIC] = STRING(address_is_topic, "a-z, A-Z, 0-9, ., _ and -, at most " TEXT_OF(KAFKA_TOPIC_MAX)),
    [KEY_START] = FORM(start, "earliest, latest or a time such as 2026-11-21T10:00:00Z"),
    [KEY_PREALLOCATE] = FORM(preallocate, "auto, off, or a chance such as 1/500000"),
    [KEY_SAMPLE] = FORM(sample, "1/1 to 1/" TEXT_OF(SAMPLE_MAX)),
    [KEY_TIME] = FORM(time, "broker, or a JSON pointer such as /@timestamp"),
    [KEY_METRIC] = FORM(metric, "the name of a member"),
    [KEY_RAW_W] = FORM(raw_w, RAW_W_EXPECTED),
    [KEY_RAW_GROWTH] = FORM(raw_growth, RAW_GROWTH_EXPECTED),
    [KEY_BOOLEAN] = WORD(booleans, "boolean"),
    [KEY_SOURCE_TYPE] = WORD(source_types, "word"),
    [KEY_LOG_LEVEL] = WORD(log_levels, "word"),
    [KEY_LAYOUT] = WORD(report_layout_names, "word"),
    [KEY_VALIDATION] = WORD(validations, "word"),
    [KEY_PREALLOCATE_AS] = WORD(preallocated, "word"),
    [KEY_WEEKDAY] = WORD(civil_weekdays, "word"),
    [KEY_DECODE] =
        PIECES("list", "a list of steps, such as [json:/message, combined] or [{csv: [time, host]}]",
               "a step of decoding", OTHER, add_step, add_step, print_decoding),
    [KEY_PATHS] = PIECES("list", "a path, or a list of paths", "a path", OTHER, NULL, NULL, print_paths),
    [KEY_FIELDS] = PIECES(
        "mapping", "names and origins, such as {userid: tag:userid, dc: header:dc, path: /request/uri}",
        "where the field comes from, such as /path or key", OTHER, add_field, NULL, print_decoding),
    [KEY_RAW] =
        PIECES("list", "all, off, or a list of fields, such as [host, time, path, referrer, user_agent]",
               "a field", OTHER, add_raw, set_raw, print_raw),
    [KEY_PROPERTIES] = PIECES("mapping", "names and values, such as {security.protocol: ssl}", NULL, OTHER,
                              NULL, NULL, print_properties),
    [KEY_ROUTES] = PIECES("list", "a list of rules, such as [{match: '^/shop/.*', replace: /shop}]", NULL,
                          OTHER, NULL, NULL, print_routes),
    [KEY_DIMENSIONS] = PIECES("list", "a list of dimensions, such as [path, status]", "a dimension",
                              DIMENSION, add_dimension, NULL, print_pieces),
    [KEY_CONDITIONS] = PIECES("list", "a list of conditions, such as [status<400]", "a condition", CONDITION,
                              add_condition, NULL, print_pieces),
    [KEY_MEASURES] =
        PIECES("mapping", "names and measures, such as {hits: count, bytes: sum(bytes)}",
               "a measure, such as count or sum(bytes)", MEASURE, add_measure, NULL, print_pieces),
    [KEY_NEWEST_FIELDS] = PIECES("list", "a list of fields, such as [host, request, status]", "a field",
                                 FIELD, add_newest_field, NULL, print_pieces),
    [KEY_KEEP] =
        PIECES("mapping", "resolutions and durations, such as {minute: 48h, hour: 62d, day: forever}",
               "a duration, such as 48h, or forever", OTHER, add_keep, NULL, print_keep),
};

bool keys_parse(const struct key *k, struct slice text, struct slice reference, void *base, struct err *e)
{
    if (keys_types[k->type].parse(k, text, base, e))
        return true;
    /* The text may be a secret. */
    return reference.ptr == NULL ? false : refuse(k, reference, "", e);
}

void keys_print(const struct key *k, const void *base, struct text *out)
{
    keys_types[k->type].print(k, base, out);
}

void keys_range(const struct key *k, struct text *out)
{
    const struct key_traits *type = &keys_types[k->type];
    if (type->range != NULL) {
        text_puts(out, type->range);
    } else if (type->words != NULL) {
        for (size_t i = 0; type->words[i] != NULL; i++)
            text_printf(out, "%s%s",
                        i == 0                       ? ""
                        : type->words[i + 1] == NULL ? " or "
                                                     : ", ",
                        type->words[i]);
    } else {
        add_number(k, k->min, out);
        text_puts(out, " to ");
        add_number(k, k->max, out);
    }
}

void keys_expected(const struct key *k, struct text *out)
{
    const struct key_traits *type = &keys_types[k->type];
    if (type->range == NULL && type->words == NULL)
        text_printf(out, "a %s from ", type->name);
    keys_range(k, out);
}
