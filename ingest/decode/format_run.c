#include "ingest/decode/format_run.h"

#include "base/check.h"
#include "base/load.h"
#include "ingest/decimal.h"
#include "ingest/decode/clf_number.h"
#include "ingest/decode/clf_request.h"
#include "ingest/decode/format_value.h"
#include "ingest/scan.h"

#define COLD __attribute__((noinline, cold))

/* A line being read. Functions called take_… put the field of an op at `p` and return the byte behind it, or
 * NULL with the reject written. */
struct reading {
    struct format_place at;
    struct format_run *run;
    const struct format *f;
    struct reject *why;
    uint64_t odd; /* the event's bits, until the line is known to be good */
};

/* Has the line SCAN_STEP bytes? */
static inline bool is_long(const struct reading *r)
{
    return r->at.end - r->at.start >= SCAN_STEP;
}

static COLD const char *refuse(const struct reading *r, enum reject_reason reason, const char *at)
{
    *r->why = (struct reject){reason, (size_t)(at - r->at.start) + 1};
    return NULL;
}

/* ---- fields */

static inline void put(struct reading *r, int f, const char *from, const char *to, bool odd)
{
    r->at.ev->field[f] = slice_of(from, (size_t)(to - from));
    r->at.present |= (uint64_t)1 << f;
    r->odd |= (uint64_t)odd << f;
}

static inline void put_number(struct reading *r, int f, struct slice text, int64_t value)
{
    put(r, f, text.ptr, slice_end(text), false);
    r->at.ev->number[f] = value;
    r->at.numeric |= (uint64_t)1 << f;
}

/* Puts a text. An own field has a number if its text is one. */
static inline void put_any(struct reading *r, int f, const char *from, const char *to, bool odd)
{
    put(r, f, from, to, odd);
    if (f >= FIELD_COUNT && *from <= '9' &&
        decimal_parse(slice_of(from, (size_t)(to - from)), &r->at.ev->number[f]) == DECIMAL_OK)
        r->at.numeric |= (uint64_t)1 << f;
}

static void put_target(struct reading *r, const char *from, const char *to, bool odd)
{
    struct slice path = clf_request_path(from, to);
    put(r, FIELD_TARGET, from, to, odd && scan_has_odd(from, to));
    put(r, FIELD_PATH, path.ptr, slice_end(path), odd && scan_has_odd(path.ptr, slice_end(path)));
}

static void put_request(struct reading *r, const char *from, const char *to, bool odd)
{
    struct clf_request http;
    put(r, FIELD_REQUEST, from, to, odd);
    if (from == to || !clf_request_split(from, to, &http))
        return;
    put(r, FIELD_METHOD, from, http.target - 1, false);
    put_target(r, http.target, http.target_end, odd);
    if (http.target_end < to)
        put(r, FIELD_PROTOCOL, http.target_end + 1, to, odd && scan_has_odd(http.target_end + 1, to));
}

/* Is it the field of a text that Apache writes as "" if it is empty, quotes and all? */
static bool is_empty_user(const struct format_op *op, const char *from, const char *to)
{
    return op->field == FIELD_USER && to - from == 2 && memcmp(from, "\"\"", 2) == 0;
}

/* Puts a text, unless it is absent. False: the reject is written. */
static inline bool put_text(struct reading *r, const struct format_op *op, const char *from, const char *to,
                            bool odd)
{
    if (op->field == FORMAT_NO_FIELD || event_is_absent(from, to) || is_empty_user(op, from, to))
        return true;
    if (UNLIKELY(odd && r->f->escape == ESCAPE_JSON)) {
        if (memchr(from, '\\', (size_t)(to - from)) != NULL &&
            !format_value_undo_json(r->run->memory, &from, &to))
            return refuse(r, op->reason, from) != NULL;
        odd = scan_has_odd(from, to);
    }
    if (op->kind == OP_REQUEST)
        put_request(r, from, to, odd);
    else if (op->kind == OP_TARGET)
        put_target(r, from, to, odd);
    else
        put_any(r, op->field, from, to, odd);
    return true;
}

/* ---- literals */

/* The reason if the text behind op `i` does not fit: it leads to the next field. */
static COLD const char *refuse_literal(const struct reading *r, size_t i, const char *p)
{
    const struct format_op *op = &r->f->ops[i];
    const char *literal = r->f->pool + op->literal;
    size_t k = 0;
    while (k + 1 < op->literal_len && p + k < r->at.end && p[k] == literal[k])
        k++;
    bool leads = op->kind != OP_NOTHING && i + 1 < r->f->op_count;
    return refuse(r, (enum reject_reason)op[leads ? 1 : 0].reason, p + k);
}

/* Takes the literal behind op `i`. */
static inline const char *take_literal(const struct reading *r, size_t i, const char *p)
{
    const struct format_op *op = &r->f->ops[i];
    const char *literal = r->f->pool + op->literal;
    size_t len = op->literal_len;
    if (UNLIKELY((size_t)(r->at.end - p) < len))
        return refuse_literal(r, i, p);
    for (size_t k = 0; k < len; k++) { /* mostly one to three bytes */
        if (UNLIKELY(p[k] != literal[k]))
            return refuse_literal(r, i, p);
    }
    return p + len;
}

/* ---- texts */

/* The first quote that is not escaped, or the end. */
static inline const char *find_quote(const struct reading *r, const char *p, bool *odd)
{
    for (;;) {
        p = is_long(r) ? scan_quoted(p, r->at.end, '"') : scan_quoted_bytes(p, r->at.end, '"');
        if (LIKELY(p == r->at.end || *p == '"'))
            return p;
        *odd |= scan_is_odd(*p);
        p += *p == '\\' && r->at.end - p >= 2 && r->f->escape != ESCAPE_NONE ? 2 : 1;
    }
}

/* May the text of op `i` lack its closing quote? */
static bool may_be_cut(const struct reading *r, size_t i)
{
    const struct format_op *op = &r->f->ops[i];
    return i + 1 == r->f->op_count && op->kind == OP_TEXT && op->literal_len == 1 && op->stop == '"' &&
           r->f->escape == ESCAPE_LOG;
}

static inline const char *take_text(struct reading *r, size_t i, const char *p)
{
    const struct format_op *op = &r->f->ops[i];
    bool odd = false;
    const char *q;
    if (r->at.end - p > 2 && is_empty_user(op, p, p + 2) && p[2] == op->stop)
        return take_literal(r, i, p + 2);
    if (LIKELY(op->stop == '"')) {
        q = find_quote(r, p, &odd);
    } else if (op->stop != '\0') {
        q = format_value_find(p, r->at.end, op->stop, r->f->escape != ESCAPE_NONE, &odd);
    } else {
        odd = scan_has_odd(p, r->at.end);
        return put_text(r, op, p, r->at.end, odd) ? r->at.end : NULL;
    }
    if (UNLIKELY(q == r->at.end)) {
        if (may_be_cut(r, i))
            return put_text(r, op, p, q, odd) ? q : NULL;
        return op->stop == '"' && p > r->at.start && p[-1] == '"' ? refuse(r, REJECT_UNTERMINATED, p - 1)
                                                                  : refuse(r, op->reason, q);
    }
    if (UNLIKELY(op->stop_at > 0)) {
        if (q - p < op->stop_at)
            return refuse(r, op->reason, p);
        q -= op->stop_at;
        odd = odd && scan_has_odd(p, q);
    }
    return put_text(r, op, p, q, odd) ? take_literal(r, i, q) : NULL;
}

static inline const char *take_word(struct reading *r, size_t i, const char *p)
{
    const struct format_op *op = &r->f->ops[i];
    const char *q = p;
    bool odd = false;
    if (LIKELY(is_long(r) && op->stop == ' ')) {
        while ((q = scan_word(q, r->at.end)) < r->at.end && *q != ' ')
            odd |= scan_is_odd(*q++);
    } else {
        for (; q < r->at.end && *q != ' ' && *q != op->stop; q++)
            odd |= scan_is_odd(*q);
    }
    if (UNLIKELY(q == p ? op->field < FIELD_COUNT : *p == '"' && op->reason == REJECT_HOST)) /* see clf.h */
        return refuse(r, op->reason, p);
    return put_text(r, op, p, q, odd) ? take_literal(r, i, q) : NULL;
}

/* Takes a name before ":port", and the colon. */
static const char *take_name(struct reading *r, size_t i, const char *p)
{
    const struct format_op *op = &r->f->ops[i];
    const char *q = p, *colon = NULL;
    for (; q < r->at.end && *q != ' ' && *q != '"'; q++) {
        if (*q == ':')
            colon = q;
    }
    if (colon == NULL || colon == p)
        return refuse(r, op->reason, colon == p ? p : q);
    return put_text(r, op, p, colon, scan_has_odd(p, colon)) ? take_literal(r, i, colon) : NULL;
}

/* Takes words, of which a space follows a comma at most. */
static const char *take_list(struct reading *r, size_t i, const char *p)
{
    const char *q = p;
    while (q < r->at.end && *q != '"' && (*q != ' ' || (q > p && q[-1] == ',')))
        q++;
    return put_text(r, &r->f->ops[i], p, q, scan_has_odd(p, q)) ? take_literal(r, i, q) : NULL;
}

/* ---- numbers */

static inline const char *take_status(struct reading *r, size_t i, const char *p)
{
    const struct format_op *op = &r->f->ops[i];
    if (LIKELY(r->at.end - p >= 3 && format_value_is_digit(p[0]) && format_value_is_digit(p[1]) &&
               format_value_is_digit(p[2]))) {
        if (op->field != FORMAT_NO_FIELD) {
            int64_t value = (p[0] - '0') * 100 + (p[1] - '0') * 10 + (p[2] - '0');
            put_number(r, op->field, slice_of(p, 3), op->field < FIELD_COUNT ? value : value * EVENT_SCALE);
        }
        p += 3;
    } else if (p < r->at.end && *p == '-') {
        p++;
    } else {
        while (p < r->at.end && format_value_is_digit(*p))
            p++;
        return refuse(r, op->reason, p);
    }
    return take_literal(r, i, p);
}

static inline const char *take_bytes(struct reading *r, size_t i, const char *p)
{
    const struct format_op *op = &r->f->ops[i];
    const char *from = p;
    int64_t value = 0;
    unsigned digits = r->at.end - p >= 8 ? clf_number_digits(p, &value) : 0;
    p += digits;
    for (value = digits > 0 ? value : 0; p < r->at.end && format_value_is_digit(*p); p++) {
        value = value * 10 + (*p - '0');
        if (value > EVENT_NUMBER_MAX)
            return refuse(r, op->reason, p);
    }
    if (LIKELY(p > from)) {
        if (op->field != FORMAT_NO_FIELD)
            put_number(r, op->field, slice_of(from, (size_t)(p - from)),
                       op->field < FIELD_COUNT ? value : value * EVENT_SCALE);
    } else if (p < r->at.end && *p == '-') {
        p++;
    } else {
        return refuse(r, op->reason, p);
    }
    return take_literal(r, i, p);
}

static const char *take_number(struct reading *r, size_t i, const char *p)
{
    const struct format_op *op = &r->f->ops[i];
    const char *q = format_value_number_end(p, r->at.end);
    struct slice text = slice_of(p, (size_t)(q - p));
    int64_t value;
    if (op->field == FIELD_PORT) { /* just a text */
        if (q == p)
            return refuse(r, op->reason, p);
        return put_text(r, op, p, q, false) ? take_literal(r, i, q) : NULL;
    }
    bool is_empty = text.len == 0 && op->literal_len > 0 && r->f->pool[op->literal] == '"';
    if (!is_empty && !slice_is(text, "-")) {
        if (!format_value_parse(text, op->scale, &value))
            return refuse(r, op->reason, p);
        if (op->field != FORMAT_NO_FIELD)
            put_number(r, op->field,
                       op->scale == EVENT_SCALE ? text : format_value_print(r->run->memory, value), value);
    }
    return take_literal(r, i, q);
}

static const char *take_sum(struct reading *r, size_t i, const char *p)
{
    const struct format_op *op = &r->f->ops[i];
    struct format_sum sum;
    if (!format_value_add_up(&p, r->at.end, &sum))
        return refuse(r, op->reason, p);
    if (sum.count > 0 && op->field != FORMAT_NO_FIELD)
        put_number(r, op->field, sum.count == 1 ? sum.last : format_value_print(r->run->memory, sum.value),
                   sum.value);
    return take_literal(r, i, p);
}

static const char *take_last(struct reading *r, size_t i, const char *p)
{
    const char *from, *last = p, *last_end = p;
    do {
        from = p;
        while (p < r->at.end && (unsigned char)*p > ' ' && *p != ',' && *p != '"')
            p++;
        if (p - from != 1 || *from != '-') {
            last = from;
            last_end = p;
        }
    } while (format_value_skip_separator(&p, r->at.end));
    return put_text(r, &r->f->ops[i], last, last_end, scan_has_odd(last, last_end)) ? take_literal(r, i, p)
                                                                                    : NULL;
}

/* ---- times */

static inline const char *take_time(struct reading *r, size_t i, const char *p)
{
    const struct format_op *op = &r->f->ops[i];
    struct format_clock *k = &r->run->clock;
    if (LIKELY(op->kind == OP_TIME_CLF && op->is_time && r->at.end - p >= CLF_TIME_BYTES &&
               clf_time_cached(k->minutes, p, &k->at_ms)))
        return take_literal(r, i, p + CLF_TIME_BYTES);
    enum reject_reason reason;
    const char *at, *next = format_clock_take(k, r->f, op, p, r->at.end, &reason, &at);
    return next != NULL ? take_literal(r, i, next) : refuse(r, reason, at);
}

/* Takes a user, and the time behind it: the user ends at the first place at which both literals fit. */
static inline const char *take_user(struct reading *r, size_t i, const char *p)
{
    const struct format_op *op = &r->f->ops[i];
    const char *literal = r->f->pool + op->literal;
    struct reject first = {REJECT_COUNT, 0};
    for (const char *q = p; (q = memchr(q, literal[0], (size_t)(r->at.end - q))) != NULL; q++) {
        if (q == p || (size_t)(r->at.end - q) < op->literal_len || memcmp(q, literal, op->literal_len) != 0)
            continue;
        const char *next = take_time(r, i + 1, q + op->literal_len);
        if (next != NULL)
            return put_text(r, op, p, q, scan_has_odd(p, q)) ? next : NULL;
        if (first.reason == REJECT_COUNT)
            first = *r->why;
    }
    if (first.reason == REJECT_COUNT)
        return refuse(r, op->reason, p);
    *r->why = first;
    return NULL;
}

/* ---- lines */

/* Takes any op. */
static const char *take_any(struct reading *r, size_t *i, const char *p)
{
    switch ((enum format_op_kind)r->f->ops[*i].kind) {
    case OP_NOTHING:
        return take_literal(r, *i, p);
    case OP_WORD:
        return take_word(r, *i, p);
    case OP_TEXT:
    case OP_REQUEST:
    case OP_TARGET:
        return take_text(r, *i, p);
    case OP_USER:
        return take_user(r, (*i)++, p);
    case OP_STATUS:
        return take_status(r, *i, p);
    case OP_BYTES:
        return take_bytes(r, *i, p);
    case OP_NUMBER:
        return take_number(r, *i, p);
    case OP_SUM:
        return take_sum(r, *i, p);
    case OP_LAST:
        return take_last(r, *i, p);
    case OP_LIST:
        return take_list(r, *i, p);
    case OP_NAME:
        return take_name(r, *i, p);
    default:
        return take_time(r, *i, p);
    }
}

static bool take_end(const struct reading *r, const char *p)
{
    const struct format_clock *k = &r->run->clock;
    while (p < r->at.end && *p == ' ')
        p++;
    if (UNLIKELY(p != r->at.end))
        return refuse(r, REJECT_TRAILING, p) != NULL;
    if (LIKELY(!r->run->has_parts)) {
        r->at.ev->at_ms = k->at_ms;
        return true;
    }
    return format_clock_finish(k, r->f, &r->at.ev->at_ms) ||
           refuse(r, REJECT_TIME_RANGE, k->start != NULL ? k->start : p) != NULL;
}

/* Reads what the fast path left of a line. */
static __attribute__((noinline)) bool decode_rest(struct format_run *run, const struct format_place *at,
                                                  struct reject *why)
{
    struct reading r = {*at, run, run->format, why, 0};
    struct event *ev = at->ev;
    if (at->op == 0 && at->end - at->p >= 3 && memcmp(at->p, "\xEF\xBB\xBF", 3) == 0)
        r.at.p += 3;
    if (r.at.p == at->end && at->op == 0)
        return refuse(&r, REJECT_EMPTY, r.at.p) != NULL;
    if (run->has_parts)
        format_clock_reset(&run->clock);
    while (r.at.op < r.f->op_count) {
        if ((r.at.p = take_any(&r, &r.at.op, r.at.p)) == NULL)
            return false;
        r.at.op++;
        format_fast_take(&run->fast, &run->clock, &r.at);
    }
    ev->present = r.at.present;
    ev->odd = r.odd;
    ev->literal = r.f->escape == ESCAPE_LOG ? 0 : r.odd;
    ev->numeric = r.at.numeric;
    return take_end(&r, r.at.p);
}

static bool decode(struct decoder *d, struct slice line, struct event *ev, struct reject *why)
{
    struct format_run *run = (struct format_run *)(void *)d;
    const char *end = slice_end(line);
    end -= line.len > 0 && end[-1] == '\r';
    struct format_place at = {0, line.ptr, line.ptr, end, ev, 0, 0};
    format_fast_take(&run->fast, &run->clock, &at);
    if (UNLIKELY(at.p != end || at.op < run->format->op_count))
        return decode_rest(run, &at, why);
    ev->at_ms = run->clock.at_ms;
    ev->present = at.present;
    ev->odd = 0;
    ev->numeric = at.numeric;
    return true;
}

void format_run_init(struct format_run *run, const struct format *format, struct arena *memory)
{
    *run = (struct format_run){.decoder = {decode}, .format = format, .memory = memory};
    format_clock_init(&run->clock);
    format_fast_init(&run->fast, format);
    for (size_t i = 0; i < format->op_count; i++)
        run->has_parts |= format->ops[i].kind == OP_TIME_SPEC || format->ops[i].kind == OP_TIME_FRACTION;
}
