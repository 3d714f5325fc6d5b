/* hot.c - the hot path alone: decode the first N lines of FILE and coalesce them into the two built-in
 * reports, sealing as an import does. Run it under callgrind with N and 2N lines: the difference is what N
 * lines cost. With a LogFormat of Apache (or `combined`) it decodes by that, compiled, in place of [auto].
 * Measures are added to the report of pages, as m1=histogram(bytes) or m2=distinct(host); newest=50 has it
 * keep its newest events. */
#include "aggregate/shard.h"
#include "base/clock.h"
#include "base/mem.h"
#include "ingest/decode/clf.h"
#include "ingest/decode/format_run.h"
#include "ingest/record.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SEAL_LINES 300000 /* about 64 MiB */

static void make_reports(struct report reports[2], char *const *measures)
{
    struct err e;
    bool good = true;
    if (!report_init(&reports[0], slice_text("site"), 1, &e) || !report_finish(&reports[0], &e) ||
        !report_init(&reports[1], slice_text("pages"), 1, &e) ||
        !report_add_dimension(&reports[1], slice_text("path"), &e) ||
        !report_add_measure(&reports[1], slice_text("hits"), slice_text("count"), &e) ||
        !report_add_measure(&reports[1], slice_text("bytes"), slice_text("sum(bytes)"), &e))
        good = false;
    for (const char *equals; good && *measures != NULL && (equals = strchr(*measures, '=')) != NULL;
         measures++) {
        if (strncmp(*measures, "newest=", strlen("newest=")) == 0)
            reports[1].newest = (uint32_t)strtoul(equals + 1, NULL, 10);
        else
            good = report_add_measure(&reports[1], slice_of(*measures, (size_t)(equals - *measures)),
                                      slice_text(equals + 1), &e);
    }
    if (!good || !report_finish(&reports[1], &e)) {
        fprintf(stderr, "%s\n", e.text);
        exit(e.code);
    }
}

#define LINE_BYTES 400 /* more than lines are long on average: so much is read, at once, not measured */

static char *read_start(const char *path, size_t lines, size_t *len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = xmalloc(lines * LINE_BYTES);
    if (fd < 0) {
        perror(path);
        exit(EX_NOINPUT);
    }
    *len = 0;
    for (ssize_t n; (n = read(fd, text + *len, lines * LINE_BYTES - *len)) > 0;)
        *len += (size_t)n;
    close(fd);
    return text;
}

/* The decoder of a format, which is compiled even if it is built in. */
static struct decoder *compiled_decoder(const char *text)
{
    static struct format format;
    static struct format_run run;
    static struct arena memory;
    struct err e;
    if (!format_compile(&format, FORMAT_APACHE, slice_text(text), &e)) {
        fprintf(stderr, "%s\n", e.text);
        exit(e.code);
    }
    arena_init(&memory, 1 << 20);
    format_run_init(&run, &format, &memory);
    return &run.decoder;
}

int main(int argc, char **argv)
{
    static const struct shard_limits limits = {1 << 20, 1 << 20, (size_t)64 << 20, 512,
                                               NULL,    0,       (size_t)1 << 30};
    char *const *words = argv + 1;
    const char *format = argc > 3 && strchr(argv[3], '=') == NULL ? *words++ : NULL;
    if (argc < 3 || words[1] == NULL) {
        fprintf(stderr, "usage: bench_hot [FORMAT] FILE LINES [NAME=MEASURE…]\n");
        return EX_USAGE;
    }
    struct report reports[2];
    struct clf clf;
    struct event events[SHARD_EVENTS_MAX];
    size_t pending = 0;
    size_t len, lines = 0, rejected = 0, wanted = strtoull(words[1], NULL, 10);
    make_reports(reports, words + 2);
    clf_init(&clf, CLF_AUTO);
    struct decoder *decoder = format != NULL ? compiled_decoder(format) : &clf.decoder;
    char *text = read_start(words[0], wanted, &len);
    struct shard *sh = shard_new(0, reports, 2, &limits);
    shard_set_source(sh, &(struct range){.source = "file:4096:0123456789abcdef"}, NULL);
    int64_t start_ms = clock_mono_ms(&clock_system);
    for (char *p = text, *end; lines < wanted; p = end + 1) {
        struct reject why;
        end = memchr(p, '\n', (size_t)(text + len - p));
        if (end == NULL)
            break;
        if (decoder_decode(decoder, slice_of(p, (size_t)(end - p)), &events[pending], &why))
            pending++;
        else
            rejected++;
        events[pending > 0 ? pending - 1 : 0].order = (int64_t)lines << RECORD_ELEMENT_BITS;
        if (pending == SHARD_EVENTS_MAX) {
            shard_add(sh, events, pending);
            pending = 0;
        }
        if (++lines % SEAL_LINES == 0)
            shard_give_back(sh, shard_seal(sh));
    }
    shard_add(sh, events, pending);
    int64_t took_ms = clock_mono_ms(&clock_system) - start_ms;
    printf("%zu lines, %zu rejected, %lld ms, %zu bytes in the shard\n", lines, rejected, (long long)took_ms,
           shard_bytes(sh));
    shard_free(sh);
    report_fini(&reports[0]);
    report_fini(&reports[1]);
    free(text);
    return 0;
}
