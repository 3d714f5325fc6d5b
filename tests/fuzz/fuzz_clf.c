/* Any bytes as log lines, in every format: fields lie within their line, numbers within their limits, a
 * cached time changes nothing, nor do short cuts, and both scanners stop at the same bytes. */
#include "base/check.h"
#include "base/civil.h"
#include "ingest/decode/clf.h"
#include "ingest/scan.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

static void check_scans(const char *p, const char *end)
{
    if (end - p < SCAN_STEP)
        return;
    for (; p <= end; p++) {
        ASSERT(scan_word(p, end) == scan_word_bytes(p, end));
        ASSERT(scan_has_odd(p, end) == scan_has_odd_bytes(p, end));
        ASSERT(scan_quoted(p, end, '"') == scan_quoted_bytes(p, end, '"'));
        ASSERT(scan_quoted(p, end, '?') == scan_quoted_bytes(p, end, '?'));
    }
}

static void check_event(const struct event *ev, struct slice line)
{
    ASSERT(ev->at_ms >= 0 && ev->at_ms < CIVIL_END_MS);
    ASSERT((ev->odd & ~ev->present) == 0);
    for (int i = 0; i < FIELD_COUNT; i++) {
        enum field f = (enum field)i;
        if (!event_has(ev, f))
            continue;
        struct slice s = ev->field[f];
        ASSERT(s.ptr >= line.ptr && s.ptr + s.len <= line.ptr + line.len);
        ASSERT(event_is_odd(ev, f) == scan_has_odd(s.ptr, s.ptr + s.len));
    }
    if (event_has(ev, FIELD_BYTES))
        ASSERT(ev->number[FIELD_BYTES] >= 0 && ev->number[FIELD_BYTES] <= EVENT_NUMBER_MAX);
    if (event_has(ev, FIELD_STATUS))
        ASSERT(ev->number[FIELD_STATUS] >= 0 && ev->number[FIELD_STATUS] <= 999);
}

static bool same_event(const struct event *a, const struct event *b)
{
    bool same = a->at_ms == b->at_ms && a->present == b->present && a->odd == b->odd;
    for (int i = 0; i < FIELD_COUNT && same; i++) {
        enum field f = (enum field)i;
        same = !event_has(a, f) || (a->field[f].ptr == b->field[f].ptr && a->field[f].len == b->field[f].len);
    }
    return same;
}

/* With `kept`, which has seen the lines before, and with a decoder that has seen nothing and takes no short
 * cuts. */
static void check_line(struct clf *kept, struct slice line)
{
    struct clf fresh;
    struct event ev, other;
    struct reject why = {REJECT_COUNT, 0}, other_why = {REJECT_COUNT, 0};
    clf_init(&fresh, kept->format);
    fresh.decoder.decode = clf_decode_any;
    bool ok = decoder_decode(&kept->decoder, line, &ev, &why);
    ASSERT(ok == decoder_decode(&fresh.decoder, line, &other, &other_why));
    if (ok) {
        check_event(&ev, line);
        ASSERT(same_event(&ev, &other));
    } else {
        ASSERT(why.reason < REJECT_COUNT && why.column >= 1 && why.column <= line.len + 1);
        ASSERT(why.reason == other_why.reason && why.column == other_why.column);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct clf kept[CLF_FORMAT_COUNT];
    for (int i = 0; i < CLF_FORMAT_COUNT; i++)
        clf_init(&kept[i], (enum clf_format)i);
    const char *p = (const char *)data, *end = p + size;
    if (size <= 256)
        check_scans(p, end);
    while (p < end) {
        const char *feed = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((feed != NULL ? feed : end) - p);
        char *line = malloc(len > 0 ? len : 1); /* of just its size, so that reading past it is seen */
        ASSERT(line != NULL);
        memcpy(line, p, len);
        for (int i = 0; i < CLF_FORMAT_COUNT; i++)
            check_line(&kept[i], slice_of(line, len));
        free(line);
        p = feed != NULL ? feed + 1 : end;
    }
    return 0;
}
