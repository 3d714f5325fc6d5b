#include "ingest/reader.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdlib.h>

struct reader {
    struct input *in;
    size_t line_max;
    enum last_line last_line;
    int64_t offset; /* of the first byte not delivered */
    char *rest;     /* read, not delivered: the beginning of a line */
    size_t rest_len, rest_capacity;
    bool dropping; /* within a line that is too long, after its delivered part */
    bool ended;    /* the input said so */
    bool torn;     /* the last line delivered had no line feed: if one comes now, it is that line's */
    char tail[READER_TAIL_BYTES];
    size_t tail_len;
};

struct reader *reader_new(struct input *in, size_t line_max, enum last_line last_line)
{
    struct reader *rd = xcalloc(1, sizeof *rd);
    rd->in = in;
    rd->line_max = line_max;
    rd->last_line = last_line;
    rd->rest_capacity = READER_BLOCK_BYTES + line_max;
    rd->rest = xmalloc(rd->rest_capacity);
    return rd;
}

void reader_free(struct reader *rd)
{
    if (rd == NULL)
        return;
    free(rd->rest);
    free(rd);
}

void block_init(struct block *b, size_t line_max)
{
    /* A rest of line_max bytes, one read, and a line feed that the input did not have. */
    *b = (struct block){.capacity = line_max + READER_BLOCK_BYTES + 2};
    b->data = xmalloc(b->capacity);
}

void block_fini(struct block *b)
{
    free(b->data);
    *b = (struct block){0};
}

/* These bytes are behind us now. */
static void pass(struct reader *rd, const char *bytes, size_t len)
{
    rd->offset += (int64_t)len;
    if (len >= READER_TAIL_BYTES) {
        memcpy(rd->tail, bytes + len - READER_TAIL_BYTES, READER_TAIL_BYTES);
        rd->tail_len = READER_TAIL_BYTES;
        return;
    }
    size_t keep = READER_TAIL_BYTES - len < rd->tail_len ? READER_TAIL_BYTES - len : rd->tail_len;
    memmove(rd->tail, rd->tail + rd->tail_len - keep, keep);
    memcpy(rd->tail + keep, bytes, len);
    rd->tail_len = keep + len;
}

static void set_rest(struct reader *rd, const char *bytes, size_t len)
{
    ASSERT(len <= rd->rest_capacity);
    memmove(rd->rest, bytes, len);
    rd->rest_len = len;
}

bool reader_head(struct reader *rd, struct slice *head, struct err *e)
{
    ASSERT(rd->offset == 0);
    while (rd->rest_len < READER_TAIL_BYTES) {
        size_t got;
        if (!input_read(rd->in, rd->rest + rd->rest_len, READER_TAIL_BYTES - rd->rest_len, &got, e))
            return false;
        if (got == 0)
            break;
        rd->rest_len += got;
    }
    *head = slice_of(rd->rest, rd->rest_len);
    return true;
}

bool reader_skip(struct reader *rd, int64_t offset, struct err *e)
{
    ASSERT(offset >= rd->offset);
    size_t known = rd->rest_len;
    if ((int64_t)known > offset - rd->offset)
        known = (size_t)(offset - rd->offset);
    pass(rd, rd->rest, known);
    set_rest(rd, rd->rest + known, rd->rest_len - known);
    /* A file can jump; the tail before the offset is read all the same, to be compared. */
    if (offset - rd->offset > READER_TAIL_BYTES) {
        if (!input_skip(rd->in, offset - READER_TAIL_BYTES, e))
            return false;
        rd->offset = offset - READER_TAIL_BYTES;
        rd->tail_len = 0;
    }
    char buffer[16384];
    while (rd->offset < offset) {
        size_t want = sizeof buffer, got;
        if (offset - rd->offset < (int64_t)want)
            want = (size_t)(offset - rd->offset);
        if (!input_read(rd->in, buffer, want, &got, e))
            return false;
        if (got == 0)
            return err_set(e, EX_DATAERR, "it ends at byte %lld, before byte %lld", (long long)rd->offset,
                           (long long)offset);
        pass(rd, buffer, got);
    }
    rd->torn = rd->tail_len > 0 && rd->tail[rd->tail_len - 1] != '\n';
    return true;
}

/* The line feed (with or without carriage return) of a line that was delivered without it. */
static void pass_torn(struct reader *rd, struct block *b, size_t *filled)
{
    if (!rd->torn || *filled == 0 || (*filled == 1 && b->data[0] == '\r'))
        return;
    size_t feed = b->data[0] == '\r';
    rd->torn = false;
    if (b->data[feed] != '\n')
        return;
    pass(rd, b->data, feed + 1);
    *filled -= feed + 1;
    memmove(b->data, b->data + feed + 1, *filled);
}

/* Six quotes that are not escaped, the last one at the end: request, referrer and agent are whole. */
static bool is_complete(const char *line, size_t len)
{
    int quotes = 0;
    size_t last = 0;
    while (len > 0 && (line[len - 1] == '\r'))
        len--;
    for (size_t i = 0; i < len; i++) {
        if (line[i] == '\\')
            i++;
        else if (line[i] == '"')
            quotes++, last = i + 1;
    }
    return quotes == 6 && last == len;
}

static bool takes_last(const struct reader *rd, const char *line, size_t len)
{
    return !input_can_grow(rd->in) || rd->last_line == LAST_LINE_TAKE ||
           (rd->last_line == LAST_LINE_COMPLETE && is_complete(line, len));
}

/* Deliver the first `len` bytes as they stand; what follows in the block is kept. */
static void deliver(struct reader *rd, struct block *b, size_t len, size_t filled)
{
    set_rest(rd, b->data + len, filled - len);
    b->from = rd->offset;
    pass(rd, b->data, len);
    b->to = rd->offset;
    b->len = len;
}

/* The input has ended, or paused, within a line. */
static enum reader_result end_within_line(struct reader *rd, struct block *b, size_t filled)
{
    if (filled == 0 || !takes_last(rd, b->data, filled)) {
        set_rest(rd, b->data, filled);
        return READER_END;
    }
    deliver(rd, b, filled, filled);
    b->data[b->len++] = '\n';
    rd->torn = true;
    return READER_BLOCK;
}

/* The line that begins the block is too long: deliver what tells so, and pass the rest by. */
static enum reader_result deliver_too_long(struct reader *rd, struct block *b, size_t filled)
{
    deliver(rd, b, filled, filled);
    b->len = rd->line_max + 1;
    b->data[b->len++] = '\n';
    rd->dropping = true;
    return READER_BLOCK;
}

/* Pass by what is left of a line that was too long. True once its line feed was found. */
static bool drop(struct reader *rd, struct block *b, size_t *filled)
{
    char *newline = memchr(b->data, '\n', *filled);
    size_t gone = newline != NULL ? (size_t)(newline + 1 - b->data) : *filled;
    pass(rd, b->data, gone);
    memmove(b->data, b->data + gone, *filled - gone);
    *filled -= gone;
    rd->dropping = newline == NULL;
    return newline != NULL;
}

/* What was read last, after what was kept, makes a block - or not yet. */
static bool cut_block(struct reader *rd, struct block *b, size_t *filled, enum reader_result *result)
{
    if (rd->dropping && *filled > 0 && !drop(rd, b, filled) && !rd->ended)
        return false;
    pass_torn(rd, b, filled);
    char *newline = memrchr(b->data, '\n', *filled);
    if (newline != NULL) {
        deliver(rd, b, (size_t)(newline + 1 - b->data), *filled);
        *result = READER_BLOCK;
        return true;
    }
    if (rd->ended)
        *result = end_within_line(rd, b, *filled);
    return rd->ended;
}

enum reader_result reader_next(struct reader *rd, struct block *b, int wait_ms, struct err *e)
{
    size_t filled = rd->rest_len;
    memcpy(b->data, rd->rest, filled);
    b->len = 0;
    while (true) {
        size_t got;
        enum reader_result result;
        if (filled > rd->line_max)
            return deliver_too_long(rd, b, filled);
        if (!input_wait(rd->in, wait_ms)) {
            set_rest(rd, b->data, filled);
            return READER_WAIT;
        }
        if (!input_read(rd->in, b->data + filled, READER_BLOCK_BYTES, &got, e)) {
            set_rest(rd, b->data, filled);
            return READER_FAILED;
        }
        rd->ended = got == 0;
        filled += got;
        if (cut_block(rd, b, &filled, &result))
            return result;
    }
}

struct slice reader_tail(const struct reader *rd)
{
    return slice_of(rd->tail, rd->tail_len);
}

int64_t reader_offset(const struct reader *rd)
{
    return rd->offset;
}

size_t reader_left(const struct reader *rd)
{
    return rd->rest_len;
}
