/* sketch.c - counts numbers and texts as a shard does, for judges that know neither: they make the numbers
 * and texts themselves, or read them somewhere, and compare the answers.
 *
 *   bench_sketch 'histogram(duration)' 'p50(m)' … <NUMBERS   int64 in units of the field; a line a figure
 *   bench_sketch 'distinct(host)' FIRST TRIALS SIZE…         a line a trial: the counts of SIZE texts each
 *   bench_sketch ranks <TEXTS                                a line a rank; an empty line seals a part
 *
 * A figure is printed in millionths. The texts of a trial are 16 hex digits: 6 of its number, 10 of the
 * text's. Each sealed part is packed and merged, as stores and queries do it. */
#include "aggregate/shard.h"
#include "base/mem.h"
#include "query/figure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEAL_EVENTS  300000 /* about as an import does */
#define TEXT_BYTES   16
#define LINE_BYTES   4096
#define MEMORY_BYTES ((size_t)64 << 10)

struct counter {
    struct report report;
    enum field field;
    struct shard *shard;
    struct event events[SHARD_EVENTS_MAX];
    char texts[SHARD_EVENTS_MAX][LINE_BYTES];
    size_t pending, unsealed;
    int64_t columns[MEASURE_COLUMNS_MAX]; /* of all that was sealed */
    union sketch sketch;
    struct arena memory;
    struct text packed;
};

static void check(bool good, const struct err *e)
{
    if (good)
        return;
    fprintf(stderr, "bench_sketch: %s\n", e->text);
    exit(e->code);
}

static void counter_init(struct counter *c, const char *expression)
{
    static const struct shard_limits limits = {1 << 20, 1 << 20, (size_t)64 << 20, LINE_BYTES,
                                               NULL,    0,       (size_t)1 << 30};
    const char *open = strchr(expression, '(');
    struct slice name = slice_text(open != NULL ? open + 1 : expression);
    struct err e = {.code = EX_USAGE, .text = "expected histogram(FIELD) or distinct(FIELD)"};
    check(name.len > 1 && field_intern(slice_of(name.ptr, name.len - 1), &c->field), &e);
    check(report_init(&c->report, slice_text("all"), 1, &e) &&
              report_add_measure(&c->report, slice_text("m"), slice_text(expression), &e) &&
              report_finish(&c->report, &e),
          &e);
    c->shard = shard_new(0, &c->report, 1, &limits);
    arena_init(&c->memory, MEMORY_BYTES);
    for (size_t i = 0; i < SHARD_EVENTS_MAX; i++) {
        c->events[i].present = c->events[i].numeric = (uint64_t)1 << c->field;
        c->events[i].field[c->field] = slice_of(c->texts[i], 0);
    }
}

static void counter_fini(struct counter *c)
{
    shard_free(c->shard);
    report_fini(&c->report);
    arena_fini(&c->memory);
    text_fini(&c->packed);
}

static void counter_seal(struct counter *c)
{
    struct err e = {.code = EX_SOFTWARE, .text = "a sketch does not merge with what was packed"};
    shard_add(c->shard, c->events, c->pending);
    struct part *part = shard_seal(c->shard);
    for (size_t i = 0; i < part->reports[0].cells.count; i++) {
        struct cell *cell = cells_at(&part->reports[0].cells, i);
        const enum sketch_kind kind = measure_sketch_kind(&c->report.measures[0]);
        text_clear(&c->packed);
        sketch_pack(kind, report_sketch(&c->report, cell, 0), &c->packed);
        check(sketch_merge(kind, &c->sketch, &c->memory, text_slice(&c->packed)), &e);
        report_merge(&c->report, c->columns, cell->value);
    }
    shard_give_back(c->shard, part);
    c->pending = c->unsealed = 0;
}

/* Counts the event that is pending next. */
static void counter_put(struct counter *c)
{
    if (++c->pending == SHARD_EVENTS_MAX) {
        shard_add(c->shard, c->events, c->pending);
        c->pending = 0;
    }
    if (++c->unsealed == SEAL_EVENTS)
        counter_seal(c);
}

static void counter_forget(struct counter *c)
{
    memset(&c->sketch, 0, sizeof c->sketch);
    memset(c->columns, 0, sizeof c->columns);
    arena_reset(&c->memory);
}

static int128 counter_value(struct counter *c, const char *name)
{
    struct figure f;
    struct err e = {.code = EX_DATAERR, .text = "there are no numbers"};
    int128 value = 0;
    check(figure_parse(&f, &c->report, slice_text(name), &e) &&
              figure_value(&f, &c->report.measures[0], SPAN_MINUTE, c->columns, &c->sketch, &value),
          &e);
    return value;
}

static void count_numbers(struct counter *c, char **figures)
{
    static int64_t numbers[1 << 13];
    for (size_t n; (n = fread(numbers, sizeof *numbers, COUNT_OF(numbers), stdin)) > 0;) {
        for (size_t i = 0; i < n; i++) {
            c->events[c->pending].number[c->field] = numbers[i];
            counter_put(c);
        }
    }
    counter_seal(c);
    for (; *figures != NULL; figures++)
        printf("%lld\n", (long long)counter_value(c, *figures));
}

static void put_text(struct counter *c, uint64_t number)
{
    static const char digits[] = "0123456789abcdef";
    char *text = c->texts[c->pending];
    for (int i = 0; i < TEXT_BYTES; i++)
        text[i] = digits[number >> (60 - 4 * i) & 15];
    c->events[c->pending].field[c->field].len = TEXT_BYTES;
    counter_put(c);
}

static void count_trials(struct counter *c, uint64_t first, uint64_t trials, char **sizes)
{
    for (uint64_t trial = first; trial < first + trials; trial++) {
        uint64_t text = 0;
        for (char **size = sizes; *size != NULL; size++) {
            for (const uint64_t end = strtoull(*size, NULL, 10); text < end; text++)
                put_text(c, trial << 40 | text);
            counter_seal(c);
            printf("%s%lld", size == sizes ? "" : " ", (long long)(counter_value(c, "m") / EVENT_SCALE));
        }
        printf("\n");
        counter_forget(c);
    }
}

static void print_ranks(struct counter *c)
{
    static char line[LINE_BYTES];
    uint8_t ranks[DISTINCT_REGISTERS];
    while (fgets(line, sizeof line, stdin) != NULL) {
        const size_t len = strcspn(line, "\n");
        if (len == 0) {
            counter_seal(c);
            continue;
        }
        memcpy(c->texts[c->pending], line, len);
        c->events[c->pending].field[c->field].len = len;
        counter_put(c);
    }
    counter_seal(c);
    distinct_ranks(&c->sketch.distinct, ranks);
    for (size_t i = 0; i < DISTINCT_REGISTERS; i++)
        printf("%d\n", ranks[i]);
}

int main(int argc, char **argv)
{
    static struct counter c;
    if (argc == 2 && strcmp(argv[1], "ranks") == 0) {
        counter_init(&c, "distinct(host)");
        print_ranks(&c);
    } else if (argc > 2 && strncmp(argv[1], "histogram(", 10) == 0) {
        counter_init(&c, argv[1]);
        count_numbers(&c, argv + 2);
    } else if (argc > 4 && strncmp(argv[1], "distinct(", 9) == 0) {
        counter_init(&c, argv[1]);
        count_trials(&c, strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10), argv + 4);
    } else {
        fprintf(stderr, "usage: bench_sketch 'histogram(FIELD)' FIGURE… <NUMBERS\n"
                        "       bench_sketch 'distinct(FIELD)' FIRST TRIALS SIZE…\n"
                        "       bench_sketch ranks <TEXTS\n");
        return EX_USAGE;
    }
    counter_fini(&c);
    return 0;
}
