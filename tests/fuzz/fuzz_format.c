/* Any bytes as a format, up to a line feed, and as lines of it; and as lines of other formats. Compiling ends
 * well or with an error; fields lie in the line or in memory, numbers within their limits; the compiled
 * combined format reads a line as the built-in one does. */
#include "base/check.h"
#include "base/civil.h"
#include "ingest/decode/clf.h"
#include "ingest/decode/format_run.h"
#include "ingest/scan.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

static const struct {
    enum format_server server;
    const char *text;
} formats[] = {
    {FORMAT_APACHE, "combined"}, /* first: it is compared with the built-in one */
    {FORMAT_APACHE, "%v:%p %h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\" %D"},
    {FORMAT_NGINX, "main"}, /* all are compared with what the ops alone read, without format_fast.c */
    {FORMAT_APACHE, "%v:%p %{X-Forwarded-For}i %l %u %t \"%r\" %>s %O \"%{Referer}i\" %D %{ms}T \"%f\""},
    {FORMAT_APACHE, "\"%{User-Agent}i\" %b %>s \"%r\" %t %v %u %l %h"},
    {FORMAT_APACHE, "%t %h %l %u \"%r\" %>s %b \"%{Referer}i\" \"%{X}i\" %{Y}i \"%{User-Agent}i\""},
    {FORMAT_APACHE, "%{%a %b %e %T %Y}t.%{usec_frac}t%{%z}t\t%U%q\t%{X}i\t%k"},
    {FORMAT_NGINX, "[$time_local] $msec $time_iso8601 $upstream_response_time $upstream_addr '$status'"},
    {FORMAT_NGINX, "escape=json {\"t\":\"$msec\",\"r\":\"$request\",\"a\":\"$http_user_agent\"}"},
    {FORMAT_NGINX, "escape=none '$msec \"$http_referer\" \"$http_user_agent\" $request_time'"},
};

static struct format compiled[COUNT_OF(formats)];
static struct format_run runs[COUNT_OF(formats)], op_runs[COUNT_OF(formats)];
static struct arena memory;
static struct clf combined;

static void check_event(const struct event *ev, const struct format *f)
{
    static volatile char sum; /* so that every byte is read, and must be there */
    ASSERT(ev->at_ms >= 0 && ev->at_ms < CIVIL_END_MS);
    ASSERT((ev->odd & ~ev->present) == 0 && (ev->literal & ~ev->odd) == 0);
    ASSERT((ev->present & ~f->fields) == 0);
    for (int i = 0; i < field_count(); i++) {
        enum field field = (enum field)i;
        if (!event_has(ev, field))
            continue;
        struct slice s = ev->field[field];
        for (size_t k = 0; k < s.len; k++)
            sum = (char)(sum ^ s.ptr[k]);
        ASSERT(event_is_odd(ev, field) == scan_has_odd(s.ptr, slice_end(s)));
        if (!field_is_number(field) || !event_has_number(ev, field))
            continue;
        int64_t max = field == FIELD_STATUS  ? 999
                      : field == FIELD_BYTES ? EVENT_NUMBER_MAX
                                             : EVENT_DECIMAL_MAX;
        ASSERT(ev->number[field] <= max && ev->number[field] >= -max);
    }
}

/* Another decoder reads the line alike. */
static void compare(struct decoder *d, struct slice line, bool good, const struct event *ev)
{
    struct event other;
    struct reject why;
    ASSERT(good == decoder_decode(d, line, &other, &why));
    if (!good)
        return;
    ASSERT(ev->at_ms == other.at_ms && ev->present == other.present && ev->odd == other.odd);
    for (int i = 0; i < field_count(); i++) {
        enum field field = (enum field)i;
        if (!event_has(ev, field))
            continue;
        ASSERT(slice_equal(ev->field[field], other.field[field]));
        ASSERT(!field_is_number(field) || !event_has_number(ev, field) ||
               ev->number[field] == other.number[field]);
    }
}

static void check_line(struct format_run *run, struct slice line)
{
    struct event ev;
    struct reject why = {REJECT_COUNT, 0};
    bool good = decoder_decode(&run->decoder, line, &ev, &why);
    if (good)
        check_event(&ev, run->format);
    else
        ASSERT(why.reason < REJECT_COUNT && why.column >= 1 && why.column <= line.len + 1);
    if (run >= runs && run < runs + COUNT_OF(formats))
        compare(&op_runs[run - runs].decoder, line, good, &ev);
    if (run == &runs[0])
        compare(&combined.decoder, line, good, &ev);
}

static void init(void)
{
    struct err e;
    arena_init(&memory, 65536);
    clf_init(&combined, CLF_COMBINED);
    for (size_t i = 0; i < COUNT_OF(formats); i++) {
        bool good = format_compile(&compiled[i], formats[i].server, slice_text(formats[i].text), &e);
        ASSERT(good);
        format_run_init(&runs[i], &compiled[i], &memory);
        format_run_init(&op_runs[i], &compiled[i], &memory);
        op_runs[i].fast.can_run = false;
    }
}

static bool compile(struct format *f, struct slice text)
{
    struct err e;
    enum format_server server = memchr(text.ptr, '$', text.len) != NULL ? FORMAT_NGINX : FORMAT_APACHE;
    if (format_compile(f, server, text, &e))
        return true;
    ASSERT(e.code == EX_CONFIG && e.text[0] != '\0');
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct format own;
    struct format_run own_run;
    const char *p = (const char *)data, *end = p + size;
    const char *feed = size > 0 ? memchr(p, '\n', size) : NULL;
    if (runs[0].format == NULL)
        init();
    bool has_own = feed != NULL && compile(&own, slice_of(p, (size_t)(feed - p)));
    if (has_own)
        format_run_init(&own_run, &own, &memory);
    while (p < end) {
        feed = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((feed != NULL ? feed : end) - p);
        char *line = malloc(len > 0 ? len : 1); /* of just its size, so that reading past it is seen */
        ASSERT(line != NULL);
        memcpy(line, p, len);
        for (size_t i = 0; i < COUNT_OF(formats); i++)
            check_line(&runs[i], slice_of(line, len));
        if (has_own)
            check_line(&own_run, slice_of(line, len));
        free(line);
        p = feed != NULL ? feed + 1 : end;
    }
    arena_reset(&memory);
    return 0;
}
