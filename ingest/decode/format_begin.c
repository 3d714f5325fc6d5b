#include "ingest/decode/format_begin.h"

#include "base/check.h"
#include "ingest/decode/clf.h"
#include "ingest/decode/clf_fast.h"

void format_begin_note(struct format *f, struct slice rest)
{
    unsigned ops = 1, quotes = 0;
    bool is_only_time = true;
    for (size_t i = 0; i < rest.len; i++)
        quotes += rest.ptr[i] == '"';
    while (f->ops[ops - 1].field != FIELD_AGENT)
        ops++;
    for (size_t i = 0; i < f->op_count; i++)
        is_only_time &= f->ops[i].kind < OP_TIME_CLF || i < ops;
    if (!is_only_time || quotes > CLF_FAST_QUOTES_MAX)
        return;
    f->begin_ops = (uint8_t)ops;
    f->begin_quotes = (uint8_t)quotes;
}

void format_begin_init(struct format_begin *b, const struct format *f)
{
    *b = (struct format_begin){.format = f->begin_ops > 0 && clf_fast_can_run() ? f : NULL};
    clf_init(&b->clf, f->builtin);
}

const char *format_begin_take_usual(struct format_begin *b, struct format_clock *clock, struct slice line,
                                    struct event *ev)
{
    const struct format_op *op = &b->format->ops[b->format->begin_ops - 1];
    const char *p = clf_fast_begin(&b->clf, line, b->format->begin_quotes, ev);
    const char *literal = b->format->pool + op->literal;
    size_t k = 0, left = p != NULL ? (size_t)(slice_end(line) - p) : 0;
    while (k < op->literal_len && k < left && p[k] == literal[k]) /* mostly one to three bytes */
        k++;
    if (UNLIKELY(k < op->literal_len || left == 0)) {
        memcpy(b->clf.minutes, clock->minutes, sizeof b->clf.minutes); /* the ops read a new minute */
        return NULL;
    }
    clock->at_ms = ev->at_ms;
    return p + k;
}
