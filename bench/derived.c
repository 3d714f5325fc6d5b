/* derived.c - the cost of derived fields: decode the first N lines of FILE by [auto], and make FIELDS of
 * each. FIELDS are names with commas between them, or - for none, and =DATABASE of countries. Run it under
 * callgrind with N and 2N lines: the difference is what N lines cost on a warm memo. */
#include "base/mem.h"
#include "ingest/decode/chain.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LINE_BYTES  400 /* more than lines are long on average */
#define BLOCK_LINES 1000

static void fail(const struct err *e)
{
    fprintf(stderr, "%s\n", e->text);
    exit(e->code);
}

static void ask(struct derive *d, const char *names)
{
    struct err e;
    for (const char *end = names; strcmp(names, "-") != 0 && *end != '\0'; names = end + 1) {
        end = strchrnul(names, ',');
        if (!derive_ask(d, slice_of(names, (size_t)(end - names)), false, &e))
            fail(&e);
    }
    if (!derive_open(d, &e))
        fail(&e);
}

static char *read_start(const char *path, size_t lines, size_t *len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = xmalloc(lines * LINE_BYTES);
    *len = 0;
    for (ssize_t n; (n = read(fd, text + *len, lines * LINE_BYTES - *len)) > 0;)
        *len += (size_t)n;
    close(fd);
    return text;
}

int main(int argc, char **argv)
{
    struct derive settings = {0};
    struct decode d;
    struct event ev;
    struct reject why;
    struct err e;
    if (argc < 4) {
        fprintf(stderr, "usage: bench_derived FIELDS[=DATABASE] FILE LINES\n");
        return EX_USAGE;
    }
    char *database = strchr(argv[1], '=');
    if (database != NULL) {
        *database = '\0';
        settings.geo_path = xstrdup(database + 1);
    }
    size_t len, lines = 0, rejected = 0, wanted = strtoull(argv[3], NULL, 10);
    decode_init(&d);
    if (!decode_finish(&d, &e))
        fail(&e);
    ask(&settings, argv[1]);
    d.derive = &settings;
    char *text = read_start(argv[2], wanted, &len);
    struct chain *c = chain_new(&d, 1 << 20);
    struct decoder *decoder = chain_decoder(c);
    for (char *p = text, *end; lines < wanted; p = end + 1) {
        end = memchr(p, '\n', (size_t)(text + len - p));
        if (end == NULL)
            break;
        rejected += !decoder_decode(decoder, slice_of(p, (size_t)(end - p)), &ev, &why);
        if (++lines % BLOCK_LINES == 0)
            chain_flush(c);
    }
    printf("%zu lines, %zu rejected\n", lines, rejected);
    chain_free(c);
    derive_fini(&settings);
    free(text);
    return 0;
}
