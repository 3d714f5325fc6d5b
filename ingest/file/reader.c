#include "ingest/file/reader.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdlib.h>

/* A position: an offset, and the last bytes before it. */
struct place {
    int64_t offset;
    char tail[READER_TAIL_BYTES];
    size_t tail_len;
};

/* Bytes that reader_peek() has read ahead. */
struct peeked {
    char *data;
    size_t len, capacity;
    size_t taken; /* bytes that were read a second time */
    bool failed;  /* the input failed behind the bytes, with `error` */
    struct err error;
};

struct reader {
    struct input *in;
    size_t line_max;
    struct peeked peeked;
    int64_t read_to; /* offset behind the last byte that was read */
    int64_t end;     /* offset at which the input is taken to end */
    enum last_line last_line;
    struct place place; /* position of the first byte not delivered */
    char *rest;         /* bytes read but not delivered: a line's beginning; after reader_head(), any bytes */
    size_t rest_len, rest_capacity;
    bool dropping;      /* within a line that is too long: `rest` has its first line_max + 1 bytes */
    struct place ahead; /* when dropping: position behind the bytes of the line that were read */
    bool ended;         /* the last read reached the input's end */
    bool heeds_directives;
    struct directive directive;
    bool torn; /* the last line delivered lacked its line feed: a line feed now is that line's */
};

struct reader *reader_new(struct input *in, size_t line_max, enum last_line last_line)
{
    struct reader *rd = xcalloc(1, sizeof *rd);
    rd->in = in;
    rd->line_max = line_max;
    rd->last_line = last_line;
    rd->end = INT64_MAX;
    rd->rest_capacity = READER_BLOCK_BYTES + line_max;
    rd->rest = xmalloc(rd->rest_capacity);
    return rd;
}

void reader_free(struct reader *rd)
{
    if (rd == NULL)
        return;
    free(rd->peeked.data);
    free(rd->rest);
    directive_fini(&rd->directive);
    free(rd);
}

void reader_heed_directives(struct reader *rd)
{
    ASSERT(rd->place.offset == 0);
    rd->heeds_directives = true;
    rd->directive.max = rd->line_max + 1;
}

void reader_set_last_line(struct reader *rd, enum last_line last_line)
{
    ASSERT(rd->place.offset == 0);
    rd->last_line = last_line;
}

void block_init(struct block *b, size_t line_max)
{
    /* A rest of line_max + 1 bytes, one read, and a line feed that the input lacked. */
    *b = (struct block){.capacity = line_max + READER_BLOCK_BYTES + 2};
    b->data = xmalloc(b->capacity);
}

void block_fini(struct block *b)
{
    free(b->data);
    text_fini(&b->directive);
    *b = (struct block){0};
}

static void pass(struct place *at, const char *bytes, size_t len)
{
    at->offset += (int64_t)len;
    if (len >= READER_TAIL_BYTES) {
        memcpy(at->tail, bytes + len - READER_TAIL_BYTES, READER_TAIL_BYTES);
        at->tail_len = READER_TAIL_BYTES;
        return;
    }
    size_t keep = READER_TAIL_BYTES - len < at->tail_len ? READER_TAIL_BYTES - len : at->tail_len;
    memmove(at->tail, at->tail + at->tail_len - keep, keep);
    memcpy(at->tail + keep, bytes, len);
    at->tail_len = keep + len;
}

/* Passes bytes that are delivered or skipped. */
static void pass_on(struct reader *rd, const char *bytes, size_t len)
{
    pass(&rd->place, bytes, len);
    if (rd->heeds_directives)
        directive_pass(&rd->directive, slice_of(bytes, len));
}

/* The line that was passed last is taken to end. */
static void end_torn(struct reader *rd)
{
    rd->torn = true;
    if (rd->heeds_directives)
        directive_pass(&rd->directive, slice_text("\n"));
}

static void set_rest(struct reader *rd, const char *bytes, size_t len)
{
    ASSERT(len <= rd->rest_capacity);
    memmove(rd->rest, bytes, len);
    rd->rest_len = len;
}

static bool has_peeked(const struct reader *rd)
{
    return rd->peeked.taken < rd->peeked.len || rd->peeked.failed;
}

/* Reads the next bytes: those that were peeked at, then those of the input. */
static bool read_next(struct reader *rd, char *to, size_t capacity, size_t *got, struct err *e)
{
    struct peeked *p = &rd->peeked;
    size_t left = p->len - p->taken;
    if (rd->end - rd->read_to < (int64_t)capacity)
        capacity = (size_t)(rd->end - rd->read_to);
    *got = 0;
    if (capacity == 0)
        return true;
    if (left > 0) {
        *got = left < capacity ? left : capacity;
        memcpy(to, p->data + p->taken, *got);
        p->taken += *got;
    } else if (p->failed) {
        p->failed = false; /* the next call tries again */
        *e = p->error;
        return false;
    } else if (!input_read(rd->in, to, capacity, got, e)) {
        return false;
    }
    rd->read_to += (int64_t)*got;
    return true;
}

struct slice reader_peek(struct reader *rd, size_t len)
{
    struct peeked *p = &rd->peeked;
    ASSERT(p->taken == 0 && !rd->dropping);
    size_t capacity = len > rd->rest_len ? len : rd->rest_len;
    p->data = xgrow(p->data, &p->capacity, capacity, 1);
    if (rd->rest_len > 0) {
        ASSERT(p->len == 0);
        memcpy(p->data, rd->rest, rd->rest_len);
        p->len = rd->rest_len;
        rd->read_to -= (int64_t)rd->rest_len;
        rd->rest_len = 0;
    }
    for (size_t got = 1; p->len < len && got > 0 && !p->failed; p->len += got) {
        p->failed = !input_read(rd->in, p->data + p->len, len - p->len, &got, &p->error);
        got = p->failed ? 0 : got;
    }
    return slice_of(p->data, p->len);
}

void reader_end_at(struct reader *rd, int64_t offset)
{
    ASSERT(offset >= rd->read_to);
    rd->end = offset;
}

bool reader_head(struct reader *rd, struct slice *head, struct err *e)
{
    ASSERT(rd->place.offset == 0);
    while (rd->rest_len < READER_TAIL_BYTES) {
        size_t got;
        if (!read_next(rd, rd->rest + rd->rest_len, READER_TAIL_BYTES - rd->rest_len, &got, e))
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
    struct place *at = &rd->place;
    ASSERT(offset >= at->offset && offset <= rd->end && !has_peeked(rd));
    size_t known = rd->rest_len;
    if ((int64_t)known > offset - at->offset)
        known = (size_t)(offset - at->offset);
    pass_on(rd, rd->rest, known);
    set_rest(rd, rd->rest + known, rd->rest_len - known);
    /* A file can seek; but the tail before the offset is read, to be compared. */
    if (offset - at->offset > READER_TAIL_BYTES && !rd->heeds_directives) {
        if (!input_skip(rd->in, offset - READER_TAIL_BYTES, e))
            return false;
        at->offset = rd->read_to = offset - READER_TAIL_BYTES;
        at->tail_len = 0;
    }
    char buffer[16384];
    while (at->offset < offset) {
        size_t want = sizeof buffer, got;
        if (offset - at->offset < (int64_t)want)
            want = (size_t)(offset - at->offset);
        if (!read_next(rd, buffer, want, &got, e))
            return false;
        if (got == 0)
            return err_set(e, EX_DATAERR, "it ends at byte %lld, before byte %lld", (long long)at->offset,
                           (long long)offset);
        pass_on(rd, buffer, got);
    }
    rd->torn = false;
    if (at->tail_len > 0 && at->tail[at->tail_len - 1] != '\n')
        end_torn(rd);
    return true;
}

/* Is it a '\r' that may begin the line feed of a line that was delivered without it? */
static bool is_half_feed(const struct reader *rd, const char *bytes, size_t len)
{
    return rd->torn && len == 1 && bytes[0] == '\r';
}

/* Passes the line feed (with or without carriage return) of a line that was delivered without it. */
static void pass_torn(struct reader *rd, struct block *b, size_t *filled)
{
    if (!rd->torn || *filled == 0 || is_half_feed(rd, b->data, *filled))
        return;
    size_t feed = b->data[0] == '\r';
    rd->torn = false;
    if (b->data[feed] != '\n')
        return;
    pass_on(rd, b->data, feed + 1);
    *filled -= feed + 1;
    memmove(b->data, b->data + feed + 1, *filled);
}

/* Does the line have six unescaped quotes, the last at its end? Then request, referrer and agent are
 * whole. */
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

/* Is a last line without line feed delivered? LAST_LINE_COMPLETE cannot check a line that is too long. */
static bool takes_last(const struct reader *rd, const char *line, size_t len)
{
    return !input_is_regular(rd->in) || rd->last_line == LAST_LINE_TAKE ||
           (rd->last_line == LAST_LINE_COMPLETE && !rd->dropping && is_complete(line, len));
}

/* Gives the block the directive that holds before it. */
static void begin_block(const struct reader *rd, struct block *b)
{
    b->from = rd->place.offset;
    text_clear(&b->directive);
    text_add(&b->directive, rd->directive.last.ptr, rd->directive.last.len);
}

/* Delivers the first `len` bytes; keeps the others as the rest. */
static void deliver(struct reader *rd, struct block *b, size_t len, size_t filled)
{
    set_rest(rd, b->data + len, filled - len);
    begin_block(rd, b);
    pass_on(rd, b->data, len);
    b->to = rd->place.offset;
    b->len = len;
}

/* The line that fills the block is too long: keeps line_max + 1 bytes, and only counts further bytes. */
static void begin_dropping(struct reader *rd, const struct block *b, size_t *filled)
{
    rd->dropping = true;
    rd->ahead = rd->place;
    pass(&rd->ahead, b->data, *filled);
    *filled = rd->line_max + 1;
}

/* A line that is too long has ended: delivers its beginning as the whole line. */
static void deliver_dropped(struct reader *rd, struct block *b, const char *next, size_t next_len)
{
    set_rest(rd, next, next_len);
    begin_block(rd, b);
    rd->place = rd->ahead;
    b->to = rd->place.offset;
    b->len = rd->line_max + 1;
    b->data[b->len++] = '\n';
    if (rd->heeds_directives)
        directive_pass(&rd->directive, slice_of(b->data, b->len));
    rd->dropping = false;
}

/* Skips the bytes read behind the first line_max + 1 bytes of a line that is too long. True: *result is
 * set. */
static bool drop(struct reader *rd, struct block *b, size_t *filled, enum reader_result *result)
{
    char *more = b->data + rd->line_max + 1;
    size_t len = *filled - (rd->line_max + 1);
    char *newline = memchr(more, '\n', len);
    size_t gone = newline != NULL ? (size_t)(newline + 1 - more) : len;
    pass(&rd->ahead, more, gone);
    *filled -= len;
    if (newline == NULL && !rd->ended)
        return false;
    if (newline == NULL && !takes_last(rd, b->data, *filled)) {
        set_rest(rd, b->data, *filled);
        *result = READER_END;
        return true;
    }
    deliver_dropped(rd, b, more + gone, len - gone);
    rd->torn = newline == NULL;
    *result = READER_BLOCK;
    return true;
}

/* The input has ended, perhaps for now, within a line. */
static enum reader_result end_within_line(struct reader *rd, struct block *b, size_t filled)
{
    if (filled == 0 || is_half_feed(rd, b->data, filled) || !takes_last(rd, b->data, filled)) {
        set_rest(rd, b->data, filled);
        return READER_END;
    }
    deliver(rd, b, filled, filled);
    b->data[b->len++] = '\n';
    end_torn(rd);
    return READER_BLOCK;
}

/* Makes a block of the rest and the bytes read behind it. False: not yet, more bytes are needed. */
static bool cut_block(struct reader *rd, struct block *b, size_t *filled, enum reader_result *result)
{
    if (rd->dropping)
        return drop(rd, b, filled, result);
    pass_torn(rd, b, filled);
    char *newline = memrchr(b->data, '\n', *filled);
    if (newline != NULL) {
        deliver(rd, b, (size_t)(newline + 1 - b->data), *filled);
        *result = READER_BLOCK;
        return true;
    }
    if (rd->ended) {
        *result = end_within_line(rd, b, *filled);
        return true;
    }
    if (*filled > rd->line_max)
        begin_dropping(rd, b, filled);
    return false;
}

enum reader_result reader_next(struct reader *rd, struct block *b, int wait_ms, struct err *e)
{
    enum reader_result result;
    size_t filled = rd->rest_len;
    memcpy(b->data, rd->rest, filled);
    b->len = 0;
    rd->ended = false;
    while (!cut_block(rd, b, &filled, &result)) {
        size_t got;
        if (!has_peeked(rd) && !input_wait(rd->in, wait_ms)) {
            set_rest(rd, b->data, filled);
            return READER_WAIT;
        }
        if (!read_next(rd, b->data + filled, READER_BLOCK_BYTES, &got, e)) {
            set_rest(rd, b->data, filled);
            return READER_FAILED;
        }
        rd->ended = got == 0;
        filled += got;
    }
    return result;
}

struct slice reader_tail(const struct reader *rd)
{
    return slice_of(rd->place.tail, rd->place.tail_len);
}

struct slice reader_directive(const struct reader *rd)
{
    return text_slice(&rd->directive.last);
}

int64_t reader_offset(const struct reader *rd)
{
    return rd->place.offset;
}

int64_t reader_raw_offset(const struct reader *rd)
{
    return input_raw_position(rd->in);
}

enum input_fate reader_fate(const struct reader *rd)
{
    return input_fate(rd->in);
}

size_t reader_left(const struct reader *rd)
{
    return rd->dropping ? (size_t)(rd->ahead.offset - rd->place.offset) : rd->rest_len;
}
