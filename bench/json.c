/* json.c - what one event costs that is no line: decodes the same message, or that of a file, until it made N
 * events. Run it under callgrind with N and 2N: the difference is what N events cost. */
#include "base/text.h"
#include "ingest/decode/chain.h"

#include <stdio.h>
#include <stdlib.h>

/* 300 bytes each, as producers write them. */
static const char log_event[] =
    "{\"@timestamp\":\"2026-11-21T10:00:00.123Z\",\"host\":\"203.0.113.77\",\"method\":\"GET\",\"request\":"
    "\"GET /catalogue/item/4711?colour=red HTTP/1.1\",\"status\":200,\"bytes\":48213,\"referrer\":"
    "\"https://www.example.com/catalogue/\",\"agent\":\"Mozilla/5.0 (X11; Linux x86_64) Firefox/115.0\","
    "\"user\":null,\"level\":\"info\"}";
static const char metric_event[] =
    "{\"name\":\"session.duration\",\"ts\":\"2026-11-21T10:00:00.123Z\",\"value\":95.25,\"unit\":\"seconds\","
    "\"producer\":{\"host\":\"app-17.fra.example.com\",\"pid\":20417,\"version\":\"4.11.2\"},\"tags\":{"
    "\"userid\":"
    "\"rick\",\"region\":\"eu-central-1\",\"device\":\"phone\",\"plan\":\"premium\",\"experiment\":\"b17-"
    "checkout\","
    "\"release\":\"2026-11\"}}";

static const char line[] =
    "203.0.113.77 - - [21/Nov/2026:10:00:00 +0000] \"GET /catalogue/item/4711?colour=red HTTP/1.1\" 200 "
    "48213 "
    "\"https://www.example.com/catalogue/\" \"Mozilla/5.0 (X11; Linux x86_64) Gecko Firefox/115.0\"";

static struct slice read_file(const char *path)
{
    static char bytes[1 << 20];
    FILE *file = fopen(path, "rb");
    size_t len = file != NULL ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file != NULL)
        fclose(file);
    return slice_of(bytes, len);
}

int main(int argc, char **argv)
{
    struct err e;
    struct decode d;
    enum field f;
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: bench_json json|metric|combined|otlp|remote_write EVENTS [FILE]\n");
        return EX_USAGE;
    }
    decode_init(&d);
    if (!decode_add_step(&d, slice_text(argv[1]), &e) || !decode_finish(&d, &e)) {
        fprintf(stderr, "%s\n", e.text);
        return e.code;
    }
    field_intern(slice_text("userid"), &f);
    field_intern(slice_text("region"), &f);
    field_intern(slice_text("service_name"), &f);
    struct chain *c = chain_new(&d, 65536);
    const char *text = argv[1][0] == 'j' ? log_event : argv[1][0] == 'm' ? metric_event : line;
    struct record r = {.value = argc == 4 ? read_file(argv[3]) : slice_text(text), .timestamp_ms = -1};
    size_t events = 0;
    for (size_t wanted = strtoull(argv[2], NULL, 10); events < wanted;) {
        struct event ev;
        struct reject why;
        struct slice bytes;
        chain_start(c, &r);
        size_t before = events;
        while (chain_next(c, &ev, &why, &bytes) == CHAIN_EVENT)
            events++;
        chain_flush(c);
        if (events == before) {
            fprintf(stderr, "the message makes no event\n");
            return EX_DATAERR;
        }
    }
    printf("%zu events of %zu bytes\n", events, r.value.len);
    chain_free(c);
    return 0;
}
