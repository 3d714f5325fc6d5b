#include "aggregate/filter.h"

#include "aggregate/number.h"
#include "base/pattern.h"
#include "base/suggest.h"
#include "ingest/decimal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The shortest alternatives have one byte each, and a | between them. */
#define ALTERNATIVES_MAX (CONDITION_TEXT_BYTES / 2)

static const char *const op_texts[] = {
    [OP_EQ] = "=", [OP_NE] = "!=", [OP_LT] = "<", [OP_LE] = "<=", [OP_GT] = ">", [OP_GE] = ">="};

static bool any_matches(const struct condition *c, struct slice text)
{
    return pattern_any(slice_of(c->text, c->text_len), text);
}

bool condition_holds(const struct condition *c, const struct event *ev)
{
    bool has = event_has(ev, c->field);
    switch (c->op) {
    case OP_EQ:
        return any_matches(c, has ? ev->field[c->field] : slice_text("-"));
    case OP_NE:
        return !any_matches(c, has ? ev->field[c->field] : slice_text("-"));
    case OP_LT:
        return event_has_number(ev, c->field) && ev->number[c->field] < c->number;
    case OP_LE:
        return event_has_number(ev, c->field) && ev->number[c->field] <= c->number;
    case OP_GT:
        return event_has_number(ev, c->field) && ev->number[c->field] > c->number;
    case OP_GE:
        return event_has_number(ev, c->field) && ev->number[c->field] >= c->number;
    }
    ASSERT(false);
    return false;
}

static int compare_slices(const void *a, const void *b)
{
    const struct slice *x = a, *y = b;
    return slice_compare(*x, *y);
}

bool condition_split(struct slice text, struct slice *name, enum condition_op *op, struct slice *operand)
{
    static const enum condition_op longest_first[] = {OP_NE, OP_LE, OP_GE, OP_EQ, OP_LT, OP_GT};
    for (size_t i = 0; i < text.len; i++) {
        for (size_t k = 0; k < COUNT_OF(longest_first); k++) {
            size_t n = strlen(op_texts[longest_first[k]]);
            if (text.len - i < n || memcmp(text.ptr + i, op_texts[longest_first[k]], n) != 0)
                continue;
            *name = slice_trim(slice_of(text.ptr, i));
            *op = longest_first[k];
            *operand = slice_trim(slice_of(text.ptr + i + n, text.len - i - n));
            return true;
        }
    }
    return false;
}

bool condition_number(struct slice text, int64_t *number)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == 'e' || text.ptr[i] == 'E' || (text.ptr[i] == '.' && text.len - i - 1 > 6))
            return false;
    }
    return decimal_parse(text, number) == DECIMAL_OK;
}

static bool parse_number(struct condition *c, struct slice operand, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES];
    if (!field_is_number(c->field))
        return err_set(
            e, EX_CONFIG,
            "found %s after %s, but %s is a text: expected status, bytes, value or a number of your own "
            "before %s, or = and a text after it",
            suggest_quote(operand, quote), op_texts[c->op], field_name(c->field), op_texts[c->op]);
    if (field_scale(c->field) == 1)
        return decimal_integer(operand, EVENT_NUMBER_MAX, &c->number) ||
               err_set(e, EX_CONFIG, "found %s after %s, expected a number from 0 to %" PRId64,
                       suggest_quote(operand, quote), op_texts[c->op], EVENT_NUMBER_MAX);
    return condition_number(operand, &c->number) ||
           err_set(
               e, EX_CONFIG,
               "found %s after %s, expected a number such as -95.5, with at most 6 digits after the point, "
               "up to %" PRId64,
               suggest_quote(operand, quote), op_texts[c->op], EVENT_DECIMAL_MAX / EVENT_SCALE);
}

/* Copies `from` with every run of stars replaced by one star, which matches the same. */
static struct slice collapse_stars(struct slice from, char *to)
{
    size_t len = 0;
    for (size_t i = 0; i < from.len; i++) {
        if (i == 0 || from.ptr[i] != '*' || from.ptr[i - 1] != '*')
            to[len++] = from.ptr[i];
    }
    return slice_of(to, len);
}

static bool check_text(enum condition_op op, struct slice operand, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES];
    if (operand.len == 0)
        return err_set(e, EX_CONFIG, "found nothing after %s, expected a text (- stands for absent)",
                       op_texts[op]);
    if (operand.len >= CONDITION_TEXT_BYTES)
        return err_set(e, EX_CONFIG, "found a text of %zu bytes after %s, expected at most %d", operand.len,
                       op_texts[op], CONDITION_TEXT_BYTES - 1);
    for (size_t i = 0; i < operand.len; i++) {
        if ((unsigned char)operand.ptr[i] < 0x20 || operand.ptr[i] == 0x7f)
            return err_set(e, EX_CONFIG, "found %s, expected a text without control characters",
                           suggest_quote(operand, quote));
    }
    return true;
}

static bool parse_text(struct condition *c, struct slice operand, struct err *e)
{
    if (!check_text(c->op, operand, e))
        return false;
    char collapsed[CONDITION_TEXT_BYTES], quote[SUGGEST_QUOTE_BYTES];
    struct slice parts[ALTERNATIVES_MAX], rest = collapse_stars(operand, collapsed);
    size_t count = 0;
    bool more = true;
    while (more) {
        more = memchr(rest.ptr, '|', rest.len) != NULL;
        parts[count] = slice_trim(slice_cut(&rest, '|'));
        if (parts[count++].len == 0)
            return err_set(e, EX_CONFIG, "found %s, expected a text on each side of |",
                           suggest_quote(operand, quote));
    }
    qsort(parts, count, sizeof *parts, compare_slices);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && slice_equal(parts[i], parts[i - 1]))
            continue;
        if (i > 0)
            c->text[c->text_len++] = '|';
        memcpy(c->text + c->text_len, parts[i].ptr, parts[i].len);
        c->text_len += parts[i].len;
    }
    return true;
}

static bool unknown_field(struct slice name, struct err *e)
{
    const char *names[FIELD_MAX + 1] = {NULL};
    char quote[SUGGEST_QUOTE_BYTES], hint[SUGGEST_HINT_BYTES];
    if (slice_is(name, "status_class"))
        return err_set(e, EX_CONFIG, "found \"status_class\", expected a field: write status=4* for 4xx");
    if (slice_is(name, "referrer_host"))
        return err_set(e, EX_CONFIG,
                       "found \"referrer_host\", expected a field: write referrer=*://example.com*");
    for (int f = 0, count = field_count(); f < count; f++)
        names[f] = field_name((enum field)f);
    return err_set(e, EX_CONFIG, "found %s, expected a field%s", suggest_quote(name, quote),
                   suggest_hint(name, names, hint));
}

bool condition_parse(struct condition *c, struct slice text, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES];
    struct condition parsed = {0};
    struct slice name, operand;
    if (!condition_split(text, &name, &parsed.op, &operand))
        return err_set(e, EX_CONFIG,
                       "found %s, expected a field, one of = != < <= > >=, and a value (status<400)",
                       suggest_quote(text, quote));
    if (!field_parse(name, &parsed.field))
        return unknown_field(name, e);
    bool good = parsed.op == OP_EQ || parsed.op == OP_NE ? parse_text(&parsed, operand, e)
                                                         : parse_number(&parsed, operand, e);
    if (good)
        *c = parsed;
    return good;
}

/* Is it a text that a status or size can have, or a pattern of such texts? JSON may have sizes as 1e6. */
static bool may_be_integer(struct slice text)
{
    int64_t number;
    size_t i = 0;
    while (i < text.len && ((text.ptr[i] >= '0' && text.ptr[i] <= '9') || text.ptr[i] == '*'))
        i++;
    return i == text.len || slice_is(text, "-") || decimal_parse(text, &number) == DECIMAL_OK;
}

/* ` (did you mean "5*"?)` for 5xx, "200|304" for 200,304; "" for other texts. */
static const char *integer_hint(struct slice text, char hint[SUGGEST_HINT_BYTES])
{
    char meant[SUGGEST_TEXT_MAX];
    size_t len = 0;
    hint[0] = '\0';
    if (text.len > sizeof meant)
        return hint;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        c = c == 'x' || c == 'X' ? '*' : c == ',' ? '|' : c;
        if ((c < '0' || c > '9') && c != '*' && c != '|')
            return hint;
        if (c != '*' || len == 0 || meant[len - 1] != '*')
            meant[len++] = c;
    }
    snprintf(hint, SUGGEST_HINT_BYTES, " (did you mean \"%.*s\"?)", (int)len, meant);
    return hint;
}

static bool has_only(struct slice text, const char *bytes)
{
    size_t i = 0;
    while (i < text.len && text.ptr[i] != '\0' && strchr(bytes, text.ptr[i]) != NULL)
        i++;
    return i == text.len;
}

/* 10.0.0.0/8, 2001:db8::/32 */
static bool is_network(struct slice text)
{
    struct slice length = text, address = slice_cut(&length, '/');
    return length.len > 0 && has_only(length, "0123456789") && address.len > 0 &&
           has_only(address, "0123456789abcdefABCDEF.:");
}

/* Refuse an alternative that continues what stands before it, the operator or a bar, to another operator. */
static bool check_begin(const char *before, struct slice text, struct err *e)
{
    if (text.len == 0 || !has_only(slice_of(text.ptr, 1), "=<>~^"))
        return true;
    const char first = text.ptr[0];
    if (strcmp(before, "=") == 0 && (first == '<' || first == '>'))
        return err_set(e, EX_CONFIG, "found =%c, expected %c=", first, first);
    return err_set(e, EX_CONFIG, "found %s%c, expected %s and a text, in which * stands for any part", before,
                   first, before);
}

static bool check_alternative(enum field f, enum condition_op op, struct slice text, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES], hint[SUGGEST_HINT_BYTES];
    if ((f == FIELD_STATUS || f == FIELD_BYTES) && !may_be_integer(text))
        return err_set(e, EX_CONFIG, "found %s after %s, expected digits, with * for any, or - for absent%s",
                       suggest_quote(text, quote), op_texts[op], integer_hint(text, hint));
    if (f == FIELD_HOST && is_network(text))
        return err_set(e, EX_CONFIG, "found %s after %s, expected an address or name, such as 192.0.2.*",
                       suggest_quote(text, quote), op_texts[op]);
    return true;
}

bool condition_check_texts(enum field f, enum condition_op op, struct slice operand, struct err *e)
{
    const char *before = op_texts[op];
    struct slice rest = operand;
    if (op != OP_EQ && op != OP_NE)
        return true;
    while (rest.len > 0) {
        struct slice text = slice_trim(slice_cut(&rest, '|'));
        if (!check_begin(before, text, e) || !check_alternative(f, op, text, e))
            return false;
        before = "|";
    }
    return true;
}

void condition_print(const struct condition *c, struct text *out)
{
    char buf[NUMBER_BYTES];
    text_printf(out, "%s%s", field_name(c->field), op_texts[c->op]);
    if (c->op == OP_EQ || c->op == OP_NE)
        text_add(out, c->text, c->text_len);
    else
        text_puts(out, number_text((int128)c->number * (EVENT_SCALE / field_scale(c->field)), buf));
}
