#include "ingest/decode/format_fast.h"

#include "base/check.h"
#include "ingest/decimal.h"
#include "ingest/decode/clf_number.h"
#include "ingest/decode/clf_request.h"
#include "ingest/decode/format_scan.h"

#define PROTOCOL_BYTES 9 /* " HTTP/1.1" */

enum quick_kind {
    QUICK_NOTHING, /* format_run.c reads it */
    QUICK_LITERAL, /* no field */
    QUICK_DASH,    /* only "-", which is absent */
    QUICK_SERVER,  /* a name, a colon, a port */
    QUICK_WORD,    /* to a space; the last, to the line's end */
    QUICK_TEXT,    /* to a quote */
    QUICK_REQUEST, /* to a quote */
    QUICK_TIME,
    QUICK_USER,   /* a word, and a time behind a space */
    QUICK_NOBODY, /* "- - ", and a time */
    QUICK_STATUS,
    QUICK_BYTES,
    QUICK_NUMBERS /* a status, a space, and bytes */
};

/* ---- which ops are usual */

static bool is_space(const struct format *f, const struct format_op *op)
{
    return op->literal_len == 1 && f->pool[op->literal] == ' ';
}

static bool is_event_time(const struct format_op *op, const struct format_op *end)
{
    return op < end && op->kind == OP_TIME_CLF && op->is_time && op->literal_len <= sizeof op->first;
}

static enum quick_kind text_kind(const struct format_op *op)
{
    bool has_place = op->field != FORMAT_NO_FIELD && op->field != FIELD_LOGNAME && op->field != FIELD_USER &&
                     op->stop_at == 0;
    if (op->stop == '\0')
        return op->kind == OP_WORD && has_place ? QUICK_WORD : QUICK_NOTHING;
    if (!has_place || op->kind == OP_TARGET)
        return QUICK_DASH;
    if (op->kind == OP_WORD)
        return op->stop == ' ' ? QUICK_WORD : QUICK_DASH;
    if (op->stop != '"')
        return QUICK_DASH;
    return op->kind == OP_REQUEST ? QUICK_REQUEST : QUICK_TEXT;
}

/* The kind of the op, and how many ops it reads. */
static enum quick_kind quick_kind(const struct format *f, const struct format_op *op, unsigned *ops)
{
    const struct format_op *end = f->ops + f->op_count;
    *ops = 1;
    if (op->literal_len > sizeof op->first)
        return QUICK_NOTHING;
    switch ((enum format_op_kind)op->kind) {
    case OP_NOTHING:
        return QUICK_LITERAL;
    case OP_WORD:
        if (op->field == FIELD_LOGNAME && is_space(f, op) && end - op > 2 && op[1].kind == OP_USER &&
            op[1].field == FIELD_USER && is_space(f, op + 1) && is_event_time(op + 2, end)) {
            *ops = 3;
            return QUICK_NOBODY;
        }
        return text_kind(op);
    case OP_TEXT:
    case OP_REQUEST:
    case OP_TARGET:
        return text_kind(op);
    case OP_NAME:
        *ops = 2;
        return op->field == FIELD_VHOST && op[1].field == FIELD_PORT && is_space(f, op + 1) ? QUICK_SERVER
                                                                                            : QUICK_NOTHING;
    case OP_USER:
        *ops = 2;
        return op->field == FIELD_USER && is_space(f, op) && is_event_time(op + 1, end) ? QUICK_USER
                                                                                        : QUICK_NOTHING;
    case OP_TIME_CLF:
        return is_event_time(op, end) ? QUICK_TIME : QUICK_NOTHING;
    case OP_STATUS:
        if (op->field == FIELD_STATUS && is_space(f, op) && end - op > 1 && op[1].kind == OP_BYTES &&
            op[1].field == FIELD_BYTES && op[1].literal_len <= sizeof op->first) {
            *ops = 2;
            return QUICK_NUMBERS;
        }
        return op->field == FIELD_STATUS ? QUICK_STATUS : QUICK_NOTHING;
    case OP_BYTES:
        return op->field == FIELD_BYTES ? QUICK_BYTES : QUICK_NOTHING;
    default:
        return QUICK_NOTHING;
    }
}

void format_fast_init(struct format_fast *fast, const struct format *f)
{
    *fast = (struct format_fast){.can_run = scan_line_can_run()};
    for (size_t i = 0; i < f->op_count; i++) {
        const struct format_op *op = &f->ops[i];
        struct quick_op *quick = &fast->ops[i];
        unsigned ops;
        quick->kind = (uint8_t)quick_kind(f, op, &ops);
        if (quick->kind == QUICK_NOTHING)
            continue;
        quick->field = op->field;
        quick->is_own = op->field >= FIELD_COUNT;
        quick->bit = op->field != FORMAT_NO_FIELD ? (uint64_t)1 << op->field : 0;
        quick->step = ops * (uint32_t)sizeof *quick;
        op += ops - 1;
        quick->literal_len = (uint8_t)op->literal_len;
        quick->first = op->first;
        quick->mask = op->mask;
    }
}

/* ---- reading */

/* A line being read. Functions called take_… put the fields of an op and return the byte behind its literal,
 * or NULL: it is not usual. */
struct reading {
    const char *start, *end;
    struct scan_line scan;
    struct event *ev;
    uint64_t present, numeric;
    struct format_clock *clock;
};

static HOT void put(struct reading *r, unsigned f, const char *from, const char *to)
{
    r->ev->field[f] = slice_of(from, (size_t)(to - from));
}

/* Puts a text, unless it is absent. */
static HOT void put_text(struct reading *r, const struct quick_op *op, const char *from, const char *to)
{
    if (UNLIKELY(event_is_absent(from, to)))
        return;
    put(r, op->field, from, to);
    r->present |= op->bit;
    if (UNLIKELY(op->is_own) && *from <= '9' &&
        decimal_parse(slice_of(from, (size_t)(to - from)), &r->ev->number[op->field]) == DECIMAL_OK)
        r->numeric |= op->bit;
}

/* Does the literal fit at `p`, less than eight bytes before the line's end? */
static HOT bool end_fits(const char *end, const struct quick_op *op, const char *p)
{
    size_t left = (size_t)(end - p);
    if (left == 0 || left < op->literal_len)
        return op->literal_len == 0;
    uint64_t bytes = load64(end - sizeof op->first) >> (64 - 8 * left);
    return ((bytes ^ op->first) & op->mask) == 0;
}

static HOT const char *take_literal(const struct reading *r, const struct quick_op *op, const char *p)
{
    if (UNLIKELY(p > r->end - sizeof op->first))
        return end_fits(r->end, op, p) ? p + op->literal_len : NULL;
    return LIKELY(((load64(p) ^ op->first) & op->mask) == 0) ? p + op->literal_len : NULL;
}

static HOT const char *take_dash(struct reading *r, const struct quick_op *op, const char *p)
{
    return p < r->end && *p == '-' ? take_literal(r, op, p + 1) : NULL;
}

static HOT const char *take_word(struct reading *r, const struct quick_op *op, const char *p)
{
    const char *q = scan_line_word(&r->scan, p);
    if (UNLIKELY(q == NULL || q == p || *p == '"'))
        return NULL;
    const char *next = take_literal(r, op, q);
    if (LIKELY(next != NULL))
        put_text(r, op, p, q);
    return next;
}

/* Takes "www.example.org:443 ". */
static HOT const char *take_server(struct reading *r, const struct quick_op *op, const char *p)
{
    const char *colon = scan_line_colon(&r->scan, p);
    if (UNLIKELY(colon == NULL || colon - p < 2))
        return NULL;
    const char *port = colon + 1, *q = port;
    while (q < r->end && *q >= '0' && *q <= '9')
        q++;
    const char *next = q > port ? take_literal(r, op, q) : NULL;
    if (UNLIKELY(next == NULL))
        return NULL;
    put(r, FIELD_VHOST, p, colon);
    put(r, FIELD_PORT, port, q);
    r->present |= (uint64_t)1 << FIELD_VHOST | (uint64_t)1 << FIELD_PORT;
    return next;
}

static HOT const char *take_text(struct reading *r, const struct quick_op *op, const char *p)
{
    const char *q = scan_line_quote(&r->scan, p), *next = q != NULL ? take_literal(r, op, q) : NULL;
    if (LIKELY(next != NULL))
        put_text(r, op, p, q);
    return next;
}

/* Takes "GET /a?b HTTP/1.1" and the literal. */
static HOT const char *take_request(struct reading *r, const struct quick_op *op, const char *p)
{
    const char *q = scan_line_quote(&r->scan, p), *method = p + 3,
               *next = q != NULL ? take_literal(r, op, q) : NULL;
    if (UNLIKELY(next == NULL || q - p < PROTOCOL_BYTES + 3))
        return NULL;
    if (UNLIKELY(load32(p) != load32("GET "))) {
        for (method = p; *method >= 'A' && *method <= 'Z';)
            method++;
        if (method == p || *method != ' ')
            return NULL;
    }
    const char *target = method + 1, *end = q - PROTOCOL_BYTES;
    if (UNLIKELY((load64(end) | load64("\0\0\0\0\0\0\3")) != load64(" HTTP/3.") || q[-1] == ' ' ||
                 target >= end || *target != '/'))
        return NULL;
    put(r, FIELD_REQUEST, p, q);
    put(r, FIELD_METHOD, p, method);
    put(r, FIELD_TARGET, target, end);
    put(r, FIELD_PATH, target, scan_line_question(&r->scan, target, end));
    put(r, FIELD_PROTOCOL, end + 1, q);
    r->present |= (uint64_t)1 << FIELD_REQUEST | (uint64_t)1 << FIELD_METHOD | (uint64_t)1 << FIELD_TARGET |
                  (uint64_t)1 << FIELD_PATH | (uint64_t)1 << FIELD_PROTOCOL;
    return next;
}

static HOT const char *take_time(struct reading *r, const struct quick_op *op, const char *p)
{
    struct format_clock *k = r->clock;
    if (UNLIKELY(r->end - p < CLF_TIME_BYTES))
        return NULL;
    if (UNLIKELY(!scan_line_time(k->minutes, r->start, p, &k->at_ms)))
        return NULL;
    return take_literal(r, op, p + CLF_TIME_BYTES);
}

static HOT const char *take_user(struct reading *r, const struct quick_op *op, const char *p)
{
    const char *q = scan_line_word(&r->scan, p);
    if (UNLIKELY(q == NULL || q == p || (q - p == 2 && load16(p) == load16("\"\""))))
        return NULL;
    const char *next = take_time(r, op, q + 1);
    if (LIKELY(next != NULL) && !event_is_absent(p, q)) {
        put(r, FIELD_USER, p, q);
        r->present |= (uint64_t)1 << FIELD_USER;
    }
    return next;
}

static HOT const char *take_nobody(struct reading *r, const struct quick_op *op, const char *p)
{
    if (UNLIKELY(r->end - p < CLF_NOBODY_BYTES + CLF_TIME_BYTES) ||
        UNLIKELY(!scan_line_nobody(r->clock->minutes, p, &r->clock->at_ms)))
        return NULL;
    return take_literal(r, op, p + CLF_NOBODY_BYTES + CLF_TIME_BYTES);
}

static HOT const char *take_status(struct reading *r, const struct quick_op *op, const char *p)
{
    if (UNLIKELY(p == r->start || r->end - p < 3 || p[-1] != ' ' ||
                 !clf_number_status(p - 1, &r->ev->number[FIELD_STATUS])))
        return NULL;
    put(r, FIELD_STATUS, p, p + 3);
    r->present |= (uint64_t)1 << FIELD_STATUS;
    return take_literal(r, op, p + 3);
}

static HOT const char *take_bytes(struct reading *r, const struct quick_op *op, const char *p)
{
    unsigned digits = LIKELY(r->end - p >= 8) ? clf_number_digits(p, &r->ev->number[FIELD_BYTES]) : 0;
    if (UNLIKELY(digits == 0))
        return NULL;
    const char *next = take_literal(r, op, p + digits);
    if (LIKELY(next != NULL)) {
        put(r, FIELD_BYTES, p, p + digits);
        r->present |= (uint64_t)1 << FIELD_BYTES;
    }
    return next;
}

static HOT const char *take_numbers(struct reading *r, const struct quick_op *op, const char *p)
{
    int64_t status, size;
    if (UNLIKELY(p - r->start < 4 || r->end - p < 12))
        return NULL;
    size_t digits = scan_line_numbers(&r->scan, p, &status, &size);
    if (UNLIKELY(digits > 8))
        return NULL;
    const char *from = p + 4, *to = from + digits;
    bool has_size = LIKELY(digits > 0);
    if (UNLIKELY(!has_size && *to++ != '-'))
        return NULL;
    if (UNLIKELY(digits == 8) && to < r->end && *to >= '0' && *to <= '9') /* more digits follow */
        return NULL;
    const char *next = take_literal(r, op, to);
    if (UNLIKELY(next == NULL))
        return NULL;
    put(r, FIELD_STATUS, p, p + 3);
    put(r, FIELD_BYTES, from, to);
    r->ev->number[FIELD_STATUS] = status;
    r->ev->number[FIELD_BYTES] = size;
    r->present |= (uint64_t)1 << FIELD_STATUS | (uint64_t)has_size << FIELD_BYTES;
    return next;
}

static HOT const char *take_op(struct reading *r, const struct quick_op *op, const char *p)
{
    switch ((enum quick_kind)op->kind) {
    case QUICK_LITERAL:
        return take_literal(r, op, p);
    case QUICK_DASH:
        return take_dash(r, op, p);
    case QUICK_SERVER:
        return take_server(r, op, p);
    case QUICK_WORD:
        return take_word(r, op, p);
    case QUICK_TEXT:
        return take_text(r, op, p);
    case QUICK_REQUEST:
        return take_request(r, op, p);
    case QUICK_TIME:
        return take_time(r, op, p);
    case QUICK_USER:
        return take_user(r, op, p);
    case QUICK_NOBODY:
        return take_nobody(r, op, p);
    case QUICK_STATUS:
        return take_status(r, op, p);
    case QUICK_BYTES:
        return take_bytes(r, op, p);
    case QUICK_NUMBERS:
        return take_numbers(r, op, p);
    case QUICK_NOTHING:
        return NULL;
    }
    __builtin_unreachable(); /* else the compiler checks the range of the kind */
}

FAST_TARGET void format_fast_take(const struct format_fast *fast, struct format_clock *clock,
                                  struct format_place *at)
{
    if (UNLIKELY(at->end - at->start < SCAN_LINE_MIN || !fast->can_run))
        return;
    struct reading r = {.start = at->start,
                        .end = at->end,
                        .scan = scan_line_of(at->end),
                        .ev = at->ev,
                        .present = at->present,
                        .numeric = at->numeric,
                        .clock = clock};
    const struct quick_op *op = fast->ops + at->op;
    for (const char *p = at->p, *next;; p = next) {
        next = take_op(&r, op, p);
        if (UNLIKELY(next == NULL)) {
            at->p = p;
            break;
        }
        op = (const struct quick_op *)(const void *)((const char *)op + op->step);
    }
    at->op = (size_t)(op - fast->ops);
    at->present = r.present;
    at->numeric = r.numeric;
}
