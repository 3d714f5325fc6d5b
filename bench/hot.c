/* hot.c - the hot path alone: decode the first N lines of FILE and coalesce them into the two built-in
 * reports, sealing as an import does. Run it under callgrind with N and 2N lines: the difference is what N
 * lines cost. */
#include "aggregate/shard.h"
#include "base/mem.h"
#include "ingest/clf.h"

#include <stdio.h>
#include <stdlib.h>

#define SEAL_LINES 300000 /* about 64 MiB */

static void make_reports(struct report reports[2])
{
    struct err e;
    if (!report_init(&reports[0], slice_text("site"), 1, &e) || !report_finish(&reports[0], &e) ||
        !report_init(&reports[1], slice_text("pages"), 1, &e) ||
        !report_add_dimension(&reports[1], slice_text("path"), &e) || !report_finish(&reports[1], &e)) {
        fprintf(stderr, "%s\n", e.text);
        exit(e.code);
    }
}

/* The first `count` lines of the file, at once, so that reading is not part of the measure. */
static char *read_lines(const char *path, size_t count, size_t *len)
{
    FILE *f = fopen(path, "r");
    char *line = NULL, *all = NULL;
    size_t room = 0, capacity = 0;
    ssize_t n;
    if (f == NULL) {
        perror(path);
        exit(EX_NOINPUT);
    }
    *len = 0;
    for (; count > 0 && (n = getline(&line, &room, f)) > 0; count--) {
        all = xgrow(all, &capacity, *len + (size_t)n, 1);
        memcpy(all + *len, line, (size_t)n);
        *len += (size_t)n;
    }
    free(line);
    fclose(f);
    return all;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: bench_hot FILE LINES\n");
        return EX_USAGE;
    }
    static const struct shard_limits limits = {1 << 20, 1 << 20, (size_t)64 << 20, 512};
    struct report reports[2];
    struct clf clf;
    size_t len, lines = 0, rejected = 0;
    make_reports(reports);
    clf_init(&clf, CLF_AUTO);
    char *text = read_lines(argv[1], strtoull(argv[2], NULL, 10), &len);
    struct shard *sh = shard_new(0, reports, 2, &limits);
    for (char *p = text, *end; p < text + len; p = end + 1) {
        struct event ev;
        struct reject why;
        end = memchr(p, '\n', (size_t)(text + len - p));
        if (decoder_decode(&clf.decoder, slice_of(p, (size_t)(end - p)), &ev, &why))
            shard_add(sh, &ev);
        else
            rejected++;
        if (++lines % SEAL_LINES == 0)
            shard_give_back(sh, shard_seal(sh));
    }
    printf("%zu lines, %zu rejected, %zu bytes in the shard\n", lines, rejected, shard_bytes(sh));
    shard_free(sh);
    report_fini(&reports[0]);
    report_fini(&reports[1]);
    free(text);
    return 0;
}
