#include "ingest/file/directive.h"

#define BYTE_ORDER_MARK "\xEF\xBB\xBF"

struct slice directive_trim(struct slice line)
{
    const struct slice mark = slice_text(BYTE_ORDER_MARK);
    if (line.len > 0 && slice_end(line)[-1] == '\r')
        line.len--;
    return slice_begins(line, mark) ? slice_of(line.ptr + mark.len, line.len - mark.len) : line;
}

/* A line that may be a directive has ended. */
static void end_line(struct directive *d)
{
    struct text line = d->line;
    if (slice_begins(directive_trim(text_slice(&line)), slice_text(DIRECTIVE_FIELDS))) {
        d->line = d->last;
        d->last = line;
    }
    text_clear(&d->line);
}

void directive_pass(struct directive *d, struct slice bytes)
{
    const char *p = bytes.ptr, *end = slice_end(bytes), *feed;
    for (; p < end; p = feed + 1) {
        if (d->state == DIRECTIVE_START)
            d->state = *p == '#' || *p == *BYTE_ORDER_MARK ? DIRECTIVE_WITHIN : DIRECTIVE_NONE;
        feed = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((feed != NULL ? feed : end) - p);
        if (d->state == DIRECTIVE_WITHIN)
            text_add(&d->line, p, len < d->max - d->line.len ? len : d->max - d->line.len);
        if (feed == NULL)
            return;
        if (d->state == DIRECTIVE_WITHIN)
            end_line(d);
        d->state = DIRECTIVE_START;
    }
}

void directive_fini(struct directive *d)
{
    text_fini(&d->last);
    text_fini(&d->line);
}
