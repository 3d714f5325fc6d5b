/* Any bytes as lines of the W3C format, with names and without. Passed in pieces, the last #Fields: is that
 * of a naive split. */
#include "ingest/file/directive.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_decode.h"

#define PIECE 7

static const char *const steps[] = {"w3c",
                                    "w3c:date time c-ip cs-uri-stem cs-uri-query cs(User-Agent) time-taken"};

static struct slice naive_last(struct slice bytes)
{
    struct slice last = {NULL, 0};
    const char *p = bytes.ptr, *end = slice_end(bytes), *feed;
    for (; p < end && (feed = memchr(p, '\n', (size_t)(end - p))) != NULL; p = feed + 1) {
        struct slice line = slice_of(p, (size_t)(feed - p));
        if (slice_begins(directive_trim(line), slice_text(DIRECTIVE_FIELDS)))
            last = line;
    }
    return last;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice message = slice_of((const char *)data, size);
    fuzz_steps(steps, COUNT_OF(steps), COUNT_OF(steps), message);
    struct directive d = {.max = size + 1};
    for (size_t i = 0; i < size; i += PIECE)
        directive_pass(&d, slice_of(message.ptr + i, size - i < PIECE ? size - i : PIECE));
    ASSERT(slice_equal(text_slice(&d.last), naive_last(message)));
    directive_fini(&d);
    return 0;
}
