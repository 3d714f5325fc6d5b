#include "base/suggest.h"
#include "base/text.h"
#include "ingest/decode/format_item.h"

#include <stdio.h>

/* A format while it is compiled. */
struct compiler {
    struct format *f;
    struct items *items;
    struct err *e;
    /* The item, since the last separator that no text holds, whose text would move the fields behind it if it
     * had a space: then the line has one word too many, and is rejected. So the fields up to the next such
     * separator must be words. NULL: there is none. */
    const struct item *loose;
};

/* ---- which bytes a value may hold */

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool may_hold(enum item_kind kind, enum format_escape escape, char c)
{
    switch (kind) {
    case ITEM_ADDRESS:
        return is_letter_or_digit(c) || (c != '\0' && strchr("._:-[]%/", c) != NULL) ||
               (unsigned char)c >= 0x80;
    case ITEM_STATUS:
    case ITEM_BYTES:
    case ITEM_NUMBER:
        return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+';
    case ITEM_SUM:
        return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == ',';
    case ITEM_WORD:
    case ITEM_LAST:
        return (unsigned char)c > ' ' && c != '"';
    default:
        return c != '"' && (escape == ESCAPE_NONE || (unsigned char)c >= ' ');
    }
}

/* The index of the first byte of `literal` that the value before it can't hold; its length: there is none. */
static size_t find_stop(enum item_kind kind, enum format_escape escape, struct slice literal)
{
    size_t i = 0;
    while (i < literal.len && may_hold(kind, escape, literal.ptr[i]))
        i++;
    return i;
}

/* ---- errors */

static bool refuse(const struct compiler *c, const struct item *it, const char *expected)
{
    char quote[SUGGEST_QUOTE_BYTES];
    return err_set(c->e, EX_CONFIG, "found %s in column %zu, expected %s", suggest_quote(it->text, quote),
                   it->column, expected);
}

static bool refuse_separator(const struct compiler *c, const struct item *it, const struct item *next)
{
    char quote[SUGGEST_QUOTE_BYTES], field[SUGGEST_QUOTE_BYTES];
    return err_set(
        c->e, EX_CONFIG,
        "found %s in column %zu, which may stand in %s before it, expected double quotes around that",
        suggest_quote(next->text, quote), next->column, suggest_quote(it->text, field));
}

static bool refuse_neighbours(const struct compiler *c, const struct item *it, const struct item *next)
{
    char quote[SUGGEST_QUOTE_BYTES], field[SUGGEST_QUOTE_BYTES];
    return err_set(c->e, EX_CONFIG,
                   "found %s in column %zu with nothing between it and %s, expected a separator",
                   suggest_quote(next->text, quote), next->column, suggest_quote(it->text, field));
}

static bool refuse_loose(const struct compiler *c, const struct item *it)
{
    char quote[SUGGEST_QUOTE_BYTES], field[SUGGEST_QUOTE_BYTES];
    return err_set(
        c->e, EX_CONFIG,
        "found %s in column %zu, which can't be told from a space in %s, expected double quotes around it",
        suggest_quote(it->text, quote), it->column, suggest_quote(c->loose->text, field));
}

/* ---- items that make one field */

static void remove_items(struct items *items, size_t at, size_t count)
{
    items->count -= count;
    memmove(&items->list[at], &items->list[at + count], (items->count - at) * sizeof *items->list);
}

static bool is_literal(const struct items *items, size_t i, const char *text)
{
    return i < items->count && items->list[i].kind == ITEM_LITERAL && slice_is(items->list[i].text, text);
}

static bool has_field(const struct items *items, size_t i, const char *field)
{
    return i < items->count && items->list[i].kind != ITEM_LITERAL &&
           strcmp(items->list[i].field, field) == 0;
}

/* The slice from the start of item `a` to the end of item `b`. */
static struct slice span(const struct items *items, size_t a, size_t b)
{
    const char *from = items->list[a].text.ptr;
    return slice_of(from, (size_t)(slice_end(items->list[b].text) - from));
}

/* %U%q is the target, as the client asked for it. */
static void join_targets(struct items *items)
{
    for (size_t i = 0; i + 1 < items->count; i++) {
        struct item *it = &items->list[i];
        bool is_path = has_field(items, i, "path") && it->kind == ITEM_PATH;
        if (!is_path || !has_field(items, i + 1, "query") || items->list[i + 1].text.ptr[0] != '%')
            continue;
        it->text = span(items, i, i + 1);
        it->kind = ITEM_TARGET;
        strcpy(it->field, "target");
        it->other = NULL;
        remove_items(items, i + 1, 1);
    }
}

/* "%m %U %H" in quotes is the request. */
static void join_requests(struct items *items)
{
    for (size_t i = 0; i + 5 < items->count; i++) {
        if (!has_field(items, i, "method") || !is_literal(items, i + 1, " ") ||
            !(has_field(items, i + 2, "target") || has_field(items, i + 2, "path")) ||
            !is_literal(items, i + 3, " ") || !has_field(items, i + 4, "protocol") ||
            items->list[i + 5].kind != ITEM_LITERAL || items->list[i + 5].text.ptr[0] != '"')
            continue;
        struct item *it = &items->list[i];
        it->text = span(items, i, i + 4);
        it->kind = ITEM_REQUEST;
        strcpy(it->field, "request");
        remove_items(items, i + 1, 4);
    }
}

/* [$time_local] is a time with brackets. */
static void join_brackets(struct items *items)
{
    for (size_t i = 1; i + 1 < items->count; i++) {
        struct item *it = &items->list[i], *before = it - 1, *behind = it + 1;
        if (it->kind != ITEM_TIME || it->time != OP_TIME_LOCAL || before->kind != ITEM_LITERAL ||
            behind->kind != ITEM_LITERAL || slice_end(before->text)[-1] != '[' || behind->text.ptr[0] != ']')
            continue;
        it->time = OP_TIME_CLF;
        before->text.len--;
        behind->text.ptr++;
        behind->text.len--;
        behind->column++;
        if (behind->text.len == 0)
            remove_items(items, i + 1, 1);
        if (before->text.len == 0)
            remove_items(items, i - 1, 1);
    }
}

/* ---- names */

static bool is_part_of_request(const struct item *it)
{
    static const char *const parts[] = {"method", "target", "path", "protocol"};
    bool is = false;
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        is |= strcmp(it->field, parts[i]) == 0;
    return is;
}

static void rename_item(struct item *it)
{
    snprintf(it->field, sizeof it->field, "%s", it->other != NULL ? it->other : "");
    it->other = NULL;
}

/* Is the field of `it` better taken from another item? */
static bool is_outranked(const struct items *items, const struct item *it)
{
    for (size_t k = 0; k < items->count; k++) {
        const struct item *by = &items->list[k];
        if (by == it || by->kind == ITEM_LITERAL)
            continue;
        if (by->kind == ITEM_REQUEST && is_part_of_request(it))
            return true;
        if (by->kind == ITEM_TARGET && it->kind != ITEM_TARGET && strcmp(it->field, "path") == 0)
            return true;
        if (strcmp(by->field, it->field) == 0 && (by->rank > it->rank || (by->rank == it->rank && by < it)))
            return true;
    }
    return false;
}

/* Gives each field to one item. */
static void settle_names(struct items *items)
{
    for (size_t i = 0; i < items->count; i++) {
        struct item *it = &items->list[i];
        if (it->kind == ITEM_LITERAL || it->field[0] == '\0' || !is_outranked(items, it))
            continue;
        rename_item(it);
    }
}

static bool intern_name(const struct compiler *c, const struct item *it, uint8_t *field)
{
    enum field f;
    *field = FORMAT_NO_FIELD;
    if (it->field[0] == '\0')
        return true;
    if (!field_intern(slice_text(it->field), &f))
        return refuse(c, it, "at most 48 fields that are not built in");
    *field = (uint8_t)f;
    return true;
}

/* ---- ops */

static struct format_op *add_op(struct compiler *c, enum format_op_kind kind)
{
    struct format *f = c->f;
    if (f->op_count == FORMAT_OPS_MAX) {
        err_set(c->e, EX_CONFIG, "found more directives than %d, expected at most so many",
                FORMAT_OPS_MAX - 1);
        return NULL;
    }
    struct format_op *op = &f->ops[f->op_count++];
    *op = (struct format_op){.kind = (uint8_t)kind, .field = FORMAT_NO_FIELD, .reason = REJECT_FORMAT};
    return op;
}

static uint16_t add_to_pool(struct format *f, struct slice s)
{
    size_t at = f->pool_len;
    ASSERT(s.len <= sizeof f->pool - at); /* each byte of the format gets there at most once */
    if (s.len > 0)
        memcpy(f->pool + at, s.ptr, s.len);
    f->pool_len += s.len;
    return (uint16_t)at;
}

static void set_stop(struct format_op *op, struct slice literal, size_t stop_at)
{
    op->stop = literal.len > 0 ? literal.ptr[stop_at] : '\0';
    op->stop_at = (uint16_t)stop_at;
}

static enum format_op_kind text_kind(enum item_kind kind)
{
    return kind == ITEM_REQUEST ? OP_REQUEST : kind == ITEM_TARGET ? OP_TARGET : OP_TEXT;
}

/* Does a time follow the literal behind item `i`, and behind that something that ends it for sure? */
static bool ends_before_time(const struct compiler *c, size_t i)
{
    const struct items *items = c->items;
    if (c->loose != NULL || i + 3 >= items->count || items->list[i + 1].kind != ITEM_LITERAL ||
        items->list[i + 2].kind != ITEM_TIME || items->list[i + 3].kind != ITEM_LITERAL)
        return false;
    struct slice behind = items->list[i + 3].text;
    return items->list[i + 2].time <= OP_TIME_ISO && items->list[i + 2].time >= OP_TIME_CLF &&
           find_stop(ITEM_TEXT, items->escape, behind) < behind.len;
}

/* A text without a separator that it can't hold. */
static bool set_loose_text(struct compiler *c, size_t i, struct format_op *op, struct slice literal)
{
    const struct item *it = &c->items->list[i];
    if (it->kind == ITEM_USER && ends_before_time(c, i)) {
        op->kind = OP_USER;
        return true;
    }
    bool is_word =
        it->kind == ITEM_PATH || it->kind == ITEM_TARGET || it->kind == ITEM_USER || it->kind == ITEM_LIST;
    if (!is_word || literal.ptr[0] != ' ' || c->items->escape == ESCAPE_NONE)
        return refuse_separator(c, it, it + 1);
    if (it->kind == ITEM_LIST && c->loose != NULL)
        return refuse_loose(c, it);
    op->kind = (uint8_t)(it->kind == ITEM_LIST ? OP_LIST : it->kind == ITEM_TARGET ? OP_TARGET : OP_WORD);
    set_stop(op, literal, 0);
    c->loose = it;
    return true;
}

static bool set_text(struct compiler *c, size_t i, struct format_op *op, struct slice literal)
{
    const struct item *it = &c->items->list[i];
    size_t stop = find_stop(it->kind, c->items->escape, literal);
    op->kind = (uint8_t)text_kind(it->kind);
    if (literal.len == 0 && c->loose != NULL)
        return refuse_loose(c, it);
    if (literal.len > 0 && stop == literal.len)
        return set_loose_text(c, i, op, literal);
    set_stop(op, literal, stop);
    return true;
}

static bool set_number(struct compiler *c, const struct item *it, struct format_op *op, struct slice literal)
{
    static const enum format_op_kind kinds[] = {[ITEM_STATUS] = OP_STATUS,
                                                [ITEM_BYTES] = OP_BYTES,
                                                [ITEM_NUMBER] = OP_NUMBER,
                                                [ITEM_SUM] = OP_SUM,
                                                [ITEM_LAST] = OP_LAST};
    bool is_list = it->kind == ITEM_SUM || it->kind == ITEM_LAST;
    op->kind = (uint8_t)kinds[it->kind];
    op->scale = it->scale;
    ASSERT(op->kind != OP_NUMBER || op->scale > 0);
    if (literal.len > 0 && (may_hold(it->kind, c->items->escape, literal.ptr[0]) ||
                            (is_list && slice_begins(literal, slice_text(" :")))))
        return refuse_separator(c, it, it + 1);
    if (is_list && c->loose != NULL && (literal.len == 0 || literal.ptr[0] == ' '))
        return refuse_loose(c, it);
    return true;
}

static bool set_word(struct compiler *c, size_t i, struct format_op *op, struct slice literal)
{
    const struct items *items = c->items;
    const struct item *it = &items->list[i];
    size_t stop = find_stop(it->kind, items->escape, literal);
    op->kind = OP_WORD;
    if (is_literal(items, i + 1, ":") && i + 2 < items->count && items->list[i + 2].kind == ITEM_NUMBER) {
        op->kind = OP_NAME;
        return true;
    }
    if (literal.len > 0 && stop == literal.len)
        return refuse_separator(c, it, it + 1);
    set_stop(op, literal, stop);
    if (literal.len > 0 && (stop > 0 || literal.ptr[0] == '"'))
        op->kind = OP_TEXT;
    return true;
}

static bool set_time(struct compiler *c, const struct item *it, struct format_op *op, struct slice literal)
{
    op->kind = (uint8_t)it->time;
    op->scale = it->scale;
    op->reason = REJECT_TIME;
    if (it->time == OP_TIME_SPEC) {
        op->spec = add_to_pool(c->f, it->spec);
        op->spec_len = (uint16_t)it->spec.len;
    }
    bool is_digit = literal.len > 0 && literal.ptr[0] >= '0' && literal.ptr[0] <= '9';
    return it->time != OP_TIME_EPOCH || !is_digit || refuse_separator(c, it, it + 1);
}

static bool is_fixed_in_width(const struct item *it)
{
    return it->kind == ITEM_TIME && it->time != OP_TIME_EPOCH;
}

static bool set_op(struct compiler *c, size_t i, struct format_op *op, struct slice literal)
{
    const struct item *it = &c->items->list[i];
    switch (it->kind) {
    case ITEM_STATUS:
    case ITEM_BYTES:
    case ITEM_NUMBER:
    case ITEM_SUM:
    case ITEM_LAST:
        return set_number(c, it, op, literal);
    case ITEM_WORD:
    case ITEM_ADDRESS:
        return set_word(c, i, op, literal);
    case ITEM_TIME:
        return set_time(c, it, op, literal);
    default:
        return set_text(c, i, op, literal);
    }
}

static void set_reason(struct format_op *op)
{
    static const uint8_t reasons[FIELD_COUNT] = {
        [FIELD_HOST] = REJECT_HOST,     [FIELD_VHOST] = REJECT_HOST,        [FIELD_LOGNAME] = REJECT_IDENTITY,
        [FIELD_USER] = REJECT_IDENTITY, [FIELD_REQUEST] = REJECT_REQUEST,   [FIELD_STATUS] = REJECT_STATUS,
        [FIELD_BYTES] = REJECT_BYTES,   [FIELD_REFERRER] = REJECT_REFERRER, [FIELD_AGENT] = REJECT_AGENT};
    if (op->kind == OP_STATUS || op->kind == OP_BYTES)
        op->reason = op->kind == OP_STATUS ? REJECT_STATUS : REJECT_BYTES;
    else if (op->kind == OP_NUMBER || op->kind == OP_SUM)
        op->reason = REJECT_NUMBER;
    else if (op->field < FIELD_COUNT && reasons[op->field] != 0)
        op->reason = reasons[op->field];
}

static void add_fields(struct format *f, const struct format_op *op)
{
    static const uint64_t of_target = (uint64_t)1 << FIELD_TARGET | (uint64_t)1 << FIELD_PATH;
    static const uint64_t of_request = (uint64_t)1 << FIELD_METHOD | (uint64_t)1 << FIELD_PROTOCOL;
    if (op->field != FORMAT_NO_FIELD)
        f->fields |= (uint64_t)1 << op->field;
    if (op->kind == OP_REQUEST || op->kind == OP_TARGET)
        f->fields |= of_target | (op->kind == OP_REQUEST ? of_request : 0);
}

/* Prepares what format_fast.c compares. */
static void set_first(struct format_op *op, struct slice literal)
{
    char first[sizeof op->first] = {0}, mask[sizeof op->mask] = {0};
    size_t len = literal.len < sizeof first ? literal.len : sizeof first;
    memcpy(first, literal.ptr, len);
    memset(mask, 0xFF, len);
    memcpy(&op->first, first, sizeof first);
    memcpy(&op->mask, mask, sizeof mask);
}

/* Adds the op of item *i and of the literal behind it; *i moves to the last of them. */
static bool add_item(struct compiler *c, size_t *i)
{
    const struct item *it = &c->items->list[*i], *next = *i + 1 < c->items->count ? it + 1 : NULL;
    struct slice literal = {"", 0};
    struct format_op *op = add_op(c, OP_NOTHING);
    if (op == NULL)
        return false;
    if (it->kind == ITEM_LITERAL) {
        literal = it->text;
    } else {
        if (next != NULL && next->kind == ITEM_LITERAL)
            literal = next->text;
        else if (next != NULL && !is_fixed_in_width(it))
            return refuse_neighbours(c, it, next);
        if (!intern_name(c, it, &op->field) || !set_op(c, *i, op, literal))
            return false;
        set_reason(op);
        add_fields(c->f, op);
        *i += literal.len > 0;
    }
    op->literal = add_to_pool(c->f, literal);
    op->literal_len = (uint16_t)literal.len;
    set_first(op, literal);
    if (find_stop(ITEM_TEXT, c->items->escape, literal) < literal.len)
        c->loose = NULL;
    return true;
}

/* ---- the time */

/* How well the op tells the time; 0: it does not. */
static int time_rank(const struct format_op *op)
{
    switch (op->kind) {
    case OP_TIME_EPOCH:
        return op->scale == 1000 ? 2 : 3;
    case OP_TIME_CLF:
    case OP_TIME_LOCAL:
    case OP_TIME_ISO:
        return 1;
    default:
        return 0;
    }
}

/* Do the specifications together have a date and a minute? */
static bool is_whole_time(const struct format *f)
{
    static const char *const needed[] = {"YyFD", "mbhFD", "deFD", "HTR", "MTR"};
    bool whole = true;
    for (size_t n = 0; n < COUNT_OF(needed); n++) {
        bool has = false;
        for (size_t i = 0; i < f->op_count; i++) {
            const struct format_op *op = &f->ops[i];
            for (size_t k = 0; op->kind == OP_TIME_SPEC && k + 1 < op->spec_len; k++) {
                if (f->pool[op->spec + k] == '%' && strchr(needed[n], f->pool[op->spec + ++k]) != NULL)
                    has = true;
            }
        }
        whole &= has;
    }
    return whole;
}

/* Marks the op that is the event's time: of several, the finest and first. */
static void choose_time(struct format *f)
{
    struct format_op *best = NULL;
    for (size_t i = 0; i < f->op_count; i++) {
        struct format_op *op = &f->ops[i];
        if (time_rank(op) > (best != NULL ? time_rank(best) : 0))
            best = op;
    }
    f->is_assembled = best == NULL && is_whole_time(f);
    f->has_time = best != NULL || f->is_assembled;
    if (best != NULL)
        best->is_time = true;
    for (size_t i = 0; i < f->op_count; i++) {
        struct format_op *op = &f->ops[i];
        op->is_time |= op->kind == OP_TIME_FRACTION && (best == NULL || time_rank(best) < 3);
    }
}

/* ---- the built-in formats */

/* Finds the built-in format that reads the same lines to the same fields. */
static void find_builtin(struct format *f)
{
#define COMMON   " [time] \"request\" status bytes"
#define COMBINED COMMON " \"referrer\" \"agent\""
    static const struct {
        const char *shape;
        enum clf_format format;
    } shapes[] = {{"host logname user" COMMON, CLF_COMMON},
                  {"host logname user" COMBINED, CLF_COMBINED},
                  {"host - user" COMBINED, CLF_COMBINED}, /* nginx */
                  {"vhost:port host logname user" COMBINED, CLF_VHOST_COMBINED}};
    struct text shape = {0};
    for (size_t i = 0; i < f->op_count; i++) {
        const struct format_op *op = &f->ops[i];
        text_puts(&shape, op->kind == OP_TIME_CLF        ? "[time]"
                          : op->field == FORMAT_NO_FIELD ? ""
                                                         : field_name((enum field)op->field));
        text_add(&shape, f->pool + op->literal, op->literal_len);
    }
    for (size_t i = 0; i < COUNT_OF(shapes) && f->escape == ESCAPE_LOG; i++) {
        if (!slice_is(text_slice(&shape), shapes[i].shape))
            continue;
        f->is_builtin = true;
        f->builtin = shapes[i].format;
    }
    text_fini(&shape);
}

bool format_compile(struct format *f, enum format_server server, struct slice text, struct err *e)
{
    struct format_source source;
    struct items items;
    struct compiler c = {.f = f, .items = &items, .e = e};
    *f = (struct format){.server = server};
    if (!format_source_read(&source, server, text, e))
        return false;
    if (!(server == FORMAT_APACHE ? format_apache_split : format_nginx_split)(&source, &items, e))
        return false;
    f->escape = source.escape;
    memcpy(f->text, text.ptr, text.len);
    f->text_len = text.len;
    join_targets(&items);
    join_requests(&items);
    join_brackets(&items);
    settle_names(&items);
    for (size_t i = 0; i < items.count; i++) {
        if (!add_item(&c, &i))
            return false;
    }
    choose_time(f);
    find_builtin(f);
    return true;
}
