#include "cli/first_lines.h"

#include "ingest/file/reader.h"

#include <stdlib.h>

#define WAIT_MS 1000

/* Hands over the lines of a block. */
static bool take_block(const struct block *b, size_t count, first_lines_fn *take, void *context,
                       size_t *number)
{
    const char *p = b->data, *end = p + b->len, *feed;
    for (; p < end && *number < count; p = feed + 1) {
        feed = memchr(p, '\n', (size_t)(end - p));
        ASSERT(feed != NULL);
        if (!take(context, slice_of(p, (size_t)(feed - p)), ++*number))
            return false;
    }
    return true;
}

bool first_lines(const char *path, size_t line_max, size_t count, first_lines_fn *take, void *context,
                 struct err *e)
{
    struct input *in = input_open(path, e);
    if (in == NULL)
        return false;
    struct reader *rd = reader_new(in, line_max, LAST_LINE_TAKE);
    struct block block;
    size_t number = 0;
    enum reader_result what = READER_BLOCK;
    bool good = true;
    block_init(&block, line_max);
    while (good && number < count && what != READER_END && what != READER_FAILED) {
        what = reader_next(rd, &block, WAIT_MS, e);
        if (what == READER_BLOCK)
            good = take_block(&block, count, take, context, &number);
    }
    block_fini(&block);
    reader_free(rd);
    input_close(in);
    return good && what != READER_FAILED;
}

bool first_lines_parse(const char *name, const char *value, size_t *lines, struct err *e)
{
    char *end;
    long n = strtol(value, &end, 10);
    *lines = n > 0 ? (size_t)n : 0;
    return (*end == '\0' && n >= 1 && n <= FIRST_LINES_MAX) ||
           err_set(e, EX_USAGE, "--%s takes a number from 1 to %d", name, FIRST_LINES_MAX);
}
