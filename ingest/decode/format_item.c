#include "ingest/decode/format_item.h"

#include "base/suggest.h"

#include <stdio.h>

#define HEADER_PREFIX "header_"

static bool refuse_many(struct err *e)
{
    return err_set(e, EX_CONFIG, "found more directives than %d, expected at most so many",
                   FORMAT_OPS_MAX - 1);
}

bool items_add_literal(struct items *items, const struct format_source *s, size_t from, size_t to,
                       struct err *e)
{
    struct item *last = items->count > 0 ? &items->list[items->count - 1] : NULL;
    for (size_t i = from; i < to; i++) {
        if ((unsigned char)s->bytes[i] < 0x20 && s->bytes[i] != '\t')
            return err_set(e, EX_CONFIG, "found a control byte in column %u, expected a format of one line",
                           s->columns[i]);
    }
    if (last != NULL && last->kind == ITEM_LITERAL && last->text.ptr + last->text.len == s->bytes + from) {
        last->text.len += to - from;
        return true;
    }
    if (items->count == ITEMS_MAX)
        return refuse_many(e);
    items->list[items->count++] = (struct item){
        .kind = ITEM_LITERAL, .text = slice_of(s->bytes + from, to - from), .column = s->columns[from]};
    return true;
}

struct item *items_add(struct items *items, const struct format_source *s, size_t from, size_t to,
                       const struct item_type *type, struct err *e)
{
    if (items->count == ITEMS_MAX) {
        refuse_many(e);
        return NULL;
    }
    struct item *it = &items->list[items->count++];
    *it = (struct item){.kind = type->kind,
                        .text = slice_of(s->bytes + from, to - from),
                        .column = s->columns[from],
                        .rank = type->rank,
                        .other = type->other,
                        .scale = type->scale};
    if (type->field != NULL)
        snprintf(it->field, sizeof it->field, "%s", type->field);
    return it;
}

bool item_set_name(struct item *it, const char *prefix, struct slice name, struct err *e)
{
    char whole[2 * FIELD_NAME_BYTES];
    char quote[SUGGEST_QUOTE_BYTES];
    enum field f;
    int len = snprintf(whole, sizeof whole, "%s%.*s", prefix, SLICE_ARGS(name));
    for (int i = 0; i < len && i < (int)sizeof whole; i++) {
        char c = whole[i];
        bool is_good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        whole[i] = (char)(is_good || c == '\0' ? c : c >= 'A' && c <= 'Z' ? c | 0x20 : '_');
    }
    bool is_ours = len < FIELD_NAME_BYTES && field_parse(slice_text(whole), &f) && f < FIELD_COUNT;
    len += is_ours ? (int)strlen(HEADER_PREFIX) : 0;
    if (len >= FIELD_NAME_BYTES || whole[0] < 'a' || whole[0] > 'z' ||
        memchr(name.ptr, '\0', name.len) != NULL)
        return err_set(e, EX_CONFIG,
                       "found %s in column %zu, expected a name that begins with a letter, at most %d bytes",
                       suggest_quote(it->text, quote), it->column, FIELD_NAME_BYTES - 1);
    size_t skip = is_ours ? strlen(HEADER_PREFIX) : 0;
    memcpy(it->field, HEADER_PREFIX, skip);
    memcpy(it->field + skip, whole, (size_t)len + 1 - skip);
    return true;
}

/* Does strftime()'s specification have only parts that can be read back? */
static bool is_readable(struct slice spec)
{
    for (size_t i = 0; i < spec.len; i++) {
        if ((unsigned char)spec.ptr[i] < 0x20)
            return false;
        if (spec.ptr[i] == '%' && (++i == spec.len || strchr("YymdeHMSbhaTFDRz%", spec.ptr[i]) == NULL))
            return false;
    }
    return spec.len > 0 && memchr(spec.ptr, '%', spec.len) != NULL;
}

bool item_set_time(struct item *it, struct slice spec, struct err *e)
{
    static const struct {
        const char *name;
        enum format_op_kind kind;
        int scale;
    } times[] = {{"sec", OP_TIME_EPOCH, 1000},
                 {"%s", OP_TIME_EPOCH, 1000},
                 {"msec", OP_TIME_EPOCH, 1},
                 {"usec", OP_TIME_EPOCH, -1000},
                 {"msec_frac", OP_TIME_FRACTION, 3},
                 {"usec_frac", OP_TIME_FRACTION, 6},
                 {"%d/%b/%Y:%H:%M:%S %z", OP_TIME_LOCAL, 0},
                 {"[%d/%b/%Y:%H:%M:%S %z]", OP_TIME_CLF, 0}};
    char quote[SUGGEST_QUOTE_BYTES];
    it->time = OP_TIME_SPEC;
    it->spec = spec;
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        if (slice_is(spec, times[i].name)) {
            it->time = times[i].kind;
            it->scale = times[i].scale;
            return true;
        }
    }
    return is_readable(spec) ||
           err_set(
               e, EX_CONFIG,
               "found the time %s in column %zu, expected sec, msec, usec, msec_frac, usec_frac, or parts "
               "of %%Y %%y %%m %%d %%e %%b %%a %%H %%M %%S %%T %%F %%D %%R %%z",
               suggest_quote(it->text, quote), it->column);
}
