/* Any bytes as a ReadRequest: it is refused, or its texts lie within the bytes and its limits hold. */
#include "base/check.h"
#include "prom/remote_message.h"
#include "tests/fuzz/fuzz.h"

static void check_within(struct slice text, const uint8_t *data, size_t size)
{
    const char *begin = (const char *)data;
    ASSERT(text.len == 0 || (text.ptr >= begin && text.len <= size - (size_t)(text.ptr - begin)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct remote_request rq;
    struct err e = {0};
    if (!remote_parse(slice_of((const char *)data, size), &rq, &e)) {
        ASSERT(e.text[0] != '\0');
        return 0;
    }
    size_t matchers = 0;
    ASSERT(rq.query_count > 0 && rq.query_count <= REMOTE_QUERIES_MAX);
    ASSERT(rq.matcher_count <= REMOTE_MATCHERS_MAX);
    for (size_t i = 0; i < rq.query_count; i++) {
        const struct selector *s = &rq.queries[i].selector;
        ASSERT(s->matchers == &rq.matchers[matchers]);
        matchers += s->matcher_count;
    }
    ASSERT(matchers == rq.matcher_count);
    for (size_t i = 0; i < rq.matcher_count; i++) {
        check_within(rq.matchers[i].name, data, size);
        check_within(rq.matchers[i].value, data, size);
        ASSERT(rq.matchers[i].kind <= MATCHER_NOT_REGEX);
    }
    return 0;
}
