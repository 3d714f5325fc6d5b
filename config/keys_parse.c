/* Parses a text into a member. */
#include "base/civil.h"
#include "base/mem.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "config/address.h"
#include "config/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static const char *const url_forms[] = {"sqlite:", "mongodb:", "mem:", NULL};
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

/* Shows the reference instead of the text, which may be a secret. */
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

/* Suggests a unit for 64MB, 64k, 5 or 10sec: the unit that begins alike. */
static const char *unit_hint(const struct key *k, struct slice text, char buf[SUGGEST_HINT_BYTES])
{
    size_t digits = count_digits(text);
    struct slice given = slice_of(text.ptr + digits, text.len - digits);
    buf[0] = '\0';
    if (k->type == KEY_INTEGER || digits == 0 || digits > 18)
        return buf;
    for (const struct unit *u = keys_units(k); u->name != NULL; u++) {
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
    return units_factor(keys_units(k), unit);
}

static bool parse_number(const struct key *k, struct slice text, struct slice reference, void *base,
                         struct err *e)
{
    char hint[SUGGEST_HINT_BYTES];
    size_t digits = count_digits(text);
    struct slice number = slice_of(text.ptr, digits);
    int64_t value, factor = unit_factor(k, slice_of(text.ptr + digits, text.len - digits));
    if (factor == 0)
        return refuse(k, shown_of(text, reference), reference.ptr == NULL ? unit_hint(k, text, hint) : "", e);
    if (!units_take_digits(&number, &value) || __builtin_mul_overflow(value, factor, &value) ||
        value < k->min || value > k->max)
        return refuse(k, shown_of(text, reference), "", e);
    put_number(k, base, value);
    return true;
}

static bool parse_choice(const struct key *k, struct slice text, struct slice reference, void *base,
                         struct err *e)
{
    const char *const *choices = keys_choices(k);
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

static bool is_good_string(enum key_type type, struct slice text)
{
    return keys_is_line(text) &&
           (type == KEY_TEXT || type == KEY_PATH || (type == KEY_URL && address_is_store(text)) ||
            (type == KEY_SECRET && is_secret(text)) || (type == KEY_LISTEN && address_is_listen(text)) ||
            (type == KEY_BROKERS && address_is_brokers(text)) ||
            (type == KEY_TOPIC && address_is_topic(text)));
}

/* A hint about the scheme, or about a file's path. */
static const char *url_hint(struct slice url, char hint[SUGGEST_HINT_BYTES])
{
    struct slice scheme = address_scheme(url);
    if (slice_is(scheme, "sqlite:") && url.len > scheme.len)
        return " (a PATH begins with neither `:` nor `file:`)";
    for (const char *const *form = url_forms; *form != NULL; form++) {
        if (slice_is(scheme, *form))
            return "";
    }
    return suggest_hint(scheme, url_forms, hint);
}

static bool parse_string(const struct key *k, struct slice text, struct slice reference, void *base,
                         struct err *e)
{
    char hint[SUGGEST_HINT_BYTES];
    if (!is_good_string(k->type, text)) {
        if (k->type == KEY_SECRET && reference.ptr == NULL)
            return refuse(k, slice_text("…"), "", e);
        if (k->type == KEY_URL && reference.ptr == NULL)
            return refuse(k, address_scheme(text), url_hint(text, hint), e);
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

static bool parse_preallocate(const struct key *k, struct slice text, struct slice reference, void *base,
                              struct err *e)
{
    char hint[SUGGEST_HINT_BYTES];
    int64_t one_in = slice_is(text, "auto") ? CONFIG_PREALLOCATE_AUTO : CONFIG_PREALLOCATE_OFF;
    bool is_word = one_in == CONFIG_PREALLOCATE_AUTO || slice_is(text, "off");
    struct slice chance = text.len > 2 ? slice_of(text.ptr + 2, text.len - 2) : (struct slice){0};
    bool is_chance = chance.len > 0 && memcmp(text.ptr, "1/", 2) == 0 &&
                     units_take_digits(&chance, &one_in) && chance.len == 0 && one_in > 0;
    if (!is_word && !is_chance)
        return refuse(k, shown_of(text, reference),
                      reference.ptr == NULL ? suggest_hint(text, preallocates, hint) : "", e);
    put_number(k, base, one_in);
    return true;
}

/* The index of the key's member in decode.metric[]. */
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

static bool parse_raw(const struct key *k, struct slice text, struct slice reference, void *base,
                      struct err *e)
{
    struct raw *r = &((struct config_source *)base)->raw;
    if (k->type == KEY_RAW_W ? raw_set_w(r, text, e) : raw_set_growth(r, text, e))
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
    case KEY_LAYOUT:
    case KEY_VALIDATION:
    case KEY_PREALLOCATE_AS:
    case KEY_WEEKDAY:
        return parse_choice(k, text, reference, base, e);
    case KEY_TEXT:
    case KEY_PATH:
    case KEY_URL:
    case KEY_SECRET:
    case KEY_LISTEN:
    case KEY_BROKERS:
    case KEY_TOPIC:
        return parse_string(k, text, reference, base, e);
    case KEY_START:
        return parse_start(k, text, reference, base, e);
    case KEY_PREALLOCATE:
        return parse_preallocate(k, text, reference, base, e);
    case KEY_TIME:
    case KEY_METRIC:
        return parse_decoding(k, text, reference, base, e);
    case KEY_RAW_W:
    case KEY_RAW_GROWTH:
        return parse_raw(k, text, reference, base, e);
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
    return false;
}
