#include "aggregate/raw.h"

#include "base/civil.h"
#include "base/suggest.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>

#define KIB         ((int64_t)1 << 10)
#define TTL_MAX_MS  (24000 * (int64_t)DAY_MS) /* servers hold a TTL's seconds in 31 bits */
#define PERIODS_MAX 10000
#define MONDAY      (4 * (int64_t)DAY_MS) /* the first Monday of 1970 */

#define DURATIONS (&units_durations[1]) /* seconds or more */
#define SIZES     (&units_sizes[1])     /* KiB or more */

static const struct unit periods[] = {{"", 1}, {NULL, 0}};

/* By enum raw_growth. */
static const struct form {
    const char *words, *before; /* the form's words, and the text between them and the limit */
    const struct unit *units;   /* units of the limit; NULL: no limit */
    int64_t min, max;           /* range of the limit */
    bool is_optional;
} forms[] = {[RAW_FOREVER] = {"forever", "", NULL, 0, 0, true},
             [RAW_TTL] = {"ttl", " ", DURATIONS, SECOND_MS, TTL_MAX_MS, false},
             [RAW_CAPPED] = {"capped", " ", SIZES, 64 * KIB, INT64_MAX, false},
             [RAW_COLLECTION_PER_DAY] = {"collection per day", " keep ", periods, 1, PERIODS_MAX, true},
             [RAW_COLLECTION_PER_WEEK] = {"collection per week", " keep ", periods, 1, PERIODS_MAX, true},
             [RAW_COLLECTION_PER_MONTH] = {"collection per month", " keep ", periods, 1, PERIODS_MAX, true},
             [RAW_DATABASE_PER_MONTH] = {"database per month", " keep ", periods, 1, PERIODS_MAX, true}};

static bool refuse(struct slice found, const char *expected, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES];
    return err_set(e, EX_CONFIG, "found %s, expected %s", suggest_quote(found, quote), expected);
}

static struct slice skip(struct slice text, size_t n)
{
    return slice_of(text.ptr + n, text.len - n);
}

static bool take(struct slice *text, const char *words)
{
    size_t len = strlen(words);
    if (text->len < len || memcmp(text->ptr, words, len) != 0)
        return false;
    *text = skip(*text, len);
    return true;
}

/* ---- setting */

bool raw_set_kind(struct raw *r, struct slice text, struct err *e)
{
    if (!slice_is(text, "off") && !slice_is(text, "all"))
        return refuse(text, "all, off, or a list of fields such as [host, time, path]", e);
    r->kind = slice_is(text, "all") ? RAW_ALL : RAW_OFF;
    return true;
}

bool raw_add_field(struct raw *r, struct slice name, struct err *e)
{
    if (name.len == 0 || name.len >= FIELD_NAME_BYTES || slice_is(name, "v"))
        return refuse(name, "a field, such as host, time, path, status, response_size or user_agent", e);
    for (size_t i = 0; i < r->field_count; i++) {
        if (slice_is(name, r->fields[i].name))
            return refuse(name, "each field once", e);
    }
    if (r->field_count == RAW_FIELDS_MAX)
        return err_set(e, EX_CONFIG, "found one more, expected at most %d fields", RAW_FIELDS_MAX);
    struct raw_field *f = &r->fields[r->field_count++];
    memcpy(f->name, name.ptr, name.len);
    f->name[name.len] = '\0';
    r->kind = RAW_LIST;
    return true;
}

bool raw_set_w(struct raw *r, struct slice text, struct err *e)
{
    struct slice rest = text;
    int64_t w = RAW_W_MAJORITY;
    if (!slice_is(text, "majority") && (!units_take_digits(&rest, &w) || rest.len > 0 || w > RAW_W_MAX))
        return refuse(text, RAW_W_EXPECTED, e);
    r->w = w;
    return true;
}

static bool read_limit(const struct form *f, struct slice rest, int64_t *limit)
{
    *limit = 0;
    if (rest.len == 0)
        return f->is_optional;
    if (f->units == NULL || !take(&rest, f->before))
        return false;
    return units_parse(f->units, rest, limit) && *limit >= f->min && *limit <= f->max;
}

bool raw_set_growth(struct raw *r, struct slice text, struct err *e)
{
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        struct slice rest = text;
        int64_t limit;
        if (!take(&rest, forms[i].words))
            continue;
        if (!read_limit(&forms[i], rest, &limit))
            break;
        r->growth = (enum raw_growth)i;
        r->limit = limit;
        return true;
    }
    return refuse(text, RAW_GROWTH_EXPECTED, e);
}

/* Finds the source's field for the name of a document's member. */
static bool resolve(struct raw_field *f, const struct decode *d)
{
    struct slice name = slice_text(f->name);
    enum field found = slice_is(name, "response_size") ? FIELD_BYTES : FIELD_AGENT;
    bool is_metric = d->steps[d->step_count - 1].kind == STEP_METRIC; /* whose tags have names of their own */
    bool is_ours = !is_metric && (slice_is(name, "response_size") || slice_is(name, "user_agent"));
    f->id = RAW_TIME;
    if (slice_is(name, "time"))
        return true;
    if (!(is_ours && decode_provides(d, found)) &&
        !(decode_is_open(d) ? field_intern(name, &found) : field_parse(name, &found)))
        return false;
    f->id = (int)found;
    return decode_provides(d, found);
}

bool raw_finish(struct raw *r, const struct decode *d, struct err *e)
{
    r->is_of_lines = d->steps[d->step_count - 1].kind == STEP_LINE;
    for (int f = 0; f < FIELD_COUNT; f++)
        r->provided |= (uint64_t)decode_provides(d, (enum field)f) << f;
    for (size_t i = 0; i < r->field_count; i++) {
        if (!resolve(&r->fields[i], d))
            return refuse(slice_text(r->fields[i].name), "for raw a field that the source's events have", e);
    }
    if (r->kind == RAW_LIST && r->growth == RAW_TTL && !raw_has_field(r, RAW_TIME))
        return err_set(e, EX_CONFIG, "found raw without time, expected it with raw_growth: ttl");
    return true;
}

/* ---- printing */

void raw_print_kind(const struct raw *r, struct text *out)
{
    if (r->kind != RAW_LIST) {
        text_puts(out, r->kind == RAW_ALL ? "all" : "off");
        return;
    }
    for (size_t i = 0; i < r->field_count; i++)
        text_printf(out, "%s%s", i == 0 ? "[" : ", ", r->fields[i].name);
    text_putc(out, ']');
}

void raw_print_w(const struct raw *r, struct text *out)
{
    if (r->w == RAW_W_MAJORITY)
        text_puts(out, "majority");
    else
        text_printf(out, "%" PRId64, r->w);
}

void raw_print_growth(const struct raw *r, struct text *out)
{
    const struct form *f = &forms[r->growth];
    text_puts(out, f->words);
    if (r->limit == 0)
        return;
    const struct unit *u = units_of(f->units, r->limit);
    text_printf(out, "%s%" PRId64 "%s", f->before, r->limit / u->factor, u->name);
}

/* ---- asking */

bool raw_has_field(const struct raw *r, int id)
{
    if (r->kind == RAW_ALL)
        return id == RAW_TIME || (r->provided >> id & 1);
    for (size_t i = 0; i < r->field_count; i++) {
        if (r->fields[i].id == id)
            return true;
    }
    return false;
}

int64_t raw_period(const struct raw *r, int64_t at_ms)
{
    int64_t into_week = (at_ms - MONDAY) % (7 * (int64_t)DAY_MS);
    switch (r->growth) {
    case RAW_COLLECTION_PER_DAY:
        return span_floor(SPAN_DAY, at_ms);
    case RAW_COLLECTION_PER_WEEK:
        return into_week < 0 ? 0 : at_ms - into_week; /* the week in which 1970 began is short */
    case RAW_COLLECTION_PER_MONTH:
    case RAW_DATABASE_PER_MONTH:
        return span_floor(SPAN_MONTH, at_ms);
    default:
        return 0;
    }
}

int64_t raw_first_kept(const struct raw *r, int64_t newest_ms)
{
    if (!raw_has_periods(r) || r->limit == 0)
        return INT64_MIN;
    for (int64_t i = 1; i < r->limit && newest_ms > 0; i++)
        newest_ms = raw_period(r, newest_ms - 1);
    return newest_ms;
}
