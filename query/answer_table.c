/* Writes an answer as a table for a person. */
#include "query/answer.h"

#include <stdio.h>
#include <string.h>

#define LABEL_CHARS_MAX 60 /* longer text of a dimension is cut: CSV and JSON have it whole */
#define BAR_CHARS       24
#define TIME_BYTES      48
#define ABSENT          "-"

/* Characters of UTF-8 text. */
static int chars_of(struct slice s)
{
    int chars = 0;
    for (size_t i = 0; i < s.len; i++)
        chars += ((unsigned char)s.ptr[i] & 0xC0) != 0x80;
    return chars;
}

static void put_label(struct slice s, int width, struct text *out)
{
    int chars = 0, limit = chars_of(s) > LABEL_CHARS_MAX ? LABEL_CHARS_MAX - 1 : LABEL_CHARS_MAX;
    size_t n = 0;
    for (; n < s.len; n++) {
        bool starts = ((unsigned char)s.ptr[n] & 0xC0) != 0x80;
        if (starts && chars == limit)
            break;
        chars += starts;
    }
    text_add(out, s.ptr, n);
    if (n < s.len) {
        text_puts(out, "…");
        chars++;
    }
    text_printf(out, "%*s", width - chars, "");
}

/* As much of the ISO form as the unit needs: "2015-05", "2015-05-17", "2015-05-17 10:05[:03]". */
static const char *short_time(const struct answer *a, enum step_unit unit, int64_t ms, char buf[TIME_BYTES])
{
    static const int lengths[STEP_UNIT_COUNT] = {19, 16, 16, 10, 10, 7, 4};
    char iso[ZONE_ISO_BYTES];
    zone_iso(a->zone, ms, iso);
    iso[10] = ' ';
    snprintf(buf, TIME_BYTES, "%.*s", lengths[unit], iso);
    return buf;
}

/* The time of a row. In a zone, steps up to an hour add its offset, since the clock may show a time twice. */
static const char *row_time(const struct answer *a, enum step_unit unit, int64_t ms, char buf[TIME_BYTES])
{
    char iso[ZONE_ISO_BYTES];
    size_t len = strlen(short_time(a, unit, ms, buf));
    if (a->zone != &zone_utc && unit <= STEP_HOUR)
        snprintf(buf + len, TIME_BYTES - len, "%s", zone_iso(a->zone, ms, iso) + CIVIL_ISO_BYTES - 2);
    return buf;
}

/* The unit in which the ends of the range are written. */
static enum step_unit unit_of(const struct answer *a)
{
    bool has_seconds =
        span_floor(SPAN_MINUTE, a->from_ms) != a->from_ms || span_floor(SPAN_MINUTE, a->to_ms) != a->to_ms;
    return has_seconds ? STEP_SECOND : STEP_MINUTE;
}

static size_t label_count(const struct answer *a)
{
    return a->of_series ? a->report->dimension_count : 1;
}

static const char *label_name(const struct answer *a, size_t column)
{
    return a->of_series ? a->report->dimensions[column].name : a->has_step ? "time" : "from";
}

/* The label is in `shown`. */
static struct slice label_of(const struct answer *a, size_t row, size_t column, struct text *shown)
{
    char buf[TIME_BYTES];
    text_clear(shown);
    if (a->of_series)
        text_show(shown, answer_dimension(a, row, column));
    else
        text_puts(shown, row_time(a, a->has_step ? a->step.unit : unit_of(a), answer_time(a, row), buf));
    return text_slice(shown);
}

static int label_width(const struct answer *a, size_t column)
{
    struct text shown = {0};
    int width = (int)strlen(label_name(a, column));
    for (size_t row = 0; row < a->row_count; row++) {
        int chars = chars_of(label_of(a, row, column, &shown));
        width = chars > width ? chars : width;
    }
    text_fini(&shown);
    return width < LABEL_CHARS_MAX ? width : LABEL_CHARS_MAX;
}

static int value_width(const struct answer *a, size_t figure)
{
    char number[NUMBER_BYTES];
    int width = (int)strlen(a->figures[figure].name);
    for (size_t row = 0; row < a->row_count; row++) {
        int digits = (int)strlen(answer_text(a, row, figure, ABSENT, number));
        width = digits > width ? digits : width;
    }
    return width;
}

/* The length of a row's bar, in units of the value; 0 if the value is absent or negative. */
static int128 length_of(const struct answer *a, size_t row)
{
    int128 value;
    return answer_value(a, row, 0, &value) && value > 0 ? value : 0;
}

static int128 greatest(const struct answer *a)
{
    int128 most = 0;
    for (size_t row = 0; row < a->row_count; row++)
        most = length_of(a, row) > most ? length_of(a, row) : most;
    return most;
}

static void put_bar(int128 value, int128 most, struct text *out)
{
    int chars = value > 0 ? (int)((double)value / (double)most * BAR_CHARS + 0.5) : 0;
    if (chars > 0)
        text_puts(out, "  ");
    while (chars-- > 0)
        text_putc(out, '#');
}

static void put_title(const struct answer *a, struct text *out)
{
    char from[TIME_BYTES], to[TIME_BYTES], name[STEP_NAME_BYTES];
    text_printf(out, "%s, %s to %s %s", a->report->name, short_time(a, unit_of(a), a->from_ms, from),
                short_time(a, unit_of(a), a->to_ms, to), a->zone->name);
    if (a->has_step)
        text_printf(out, ", by %s", step_name(&a->step, name));
    text_putc(out, '\n');
}

size_t answer_table(const struct answer *a, bool bars, size_t bytes_max, struct text *out)
{
    int label_widths[REPORT_DIMENSIONS_MAX], value_widths[ANSWER_FIGURES_MAX];
    char number[NUMBER_BYTES];
    struct text shown = {0};
    size_t row = 0;
    int128 most = bars ? greatest(a) : 0;
    put_title(a, out);
    for (size_t c = 0; c < label_count(a); c++) {
        label_widths[c] = label_width(a, c);
        put_label(slice_text(label_name(a, c)), label_widths[c] + 2, out);
    }
    for (size_t m = 0; m < a->figure_count; m++) {
        value_widths[m] = value_width(a, m);
        text_printf(out, "%s%*s", m > 0 ? "  " : "", value_widths[m], a->figures[m].name);
    }
    text_putc(out, '\n');
    for (; row < a->row_count && out->len <= bytes_max; row++) {
        for (size_t c = 0; c < label_count(a); c++)
            put_label(label_of(a, row, c, &shown), label_widths[c] + 2, out);
        for (size_t m = 0; m < a->figure_count; m++)
            text_printf(out, "%s%*s", m > 0 ? "  " : "", value_widths[m],
                        answer_text(a, row, m, ABSENT, number));
        if (bars)
            put_bar(length_of(a, row), most, out);
        text_putc(out, '\n');
    }
    text_fini(&shown);
    return out->len > bytes_max && row > 0 ? row - 1 : row;
}
