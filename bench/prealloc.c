/* prealloc.c - what store/prealloc.h would make of some days of traffic, minute by minute.
 *
 *   bench_prealloc WEIGHTS HITS [SHAPE]     HITS a day, of series by the WEIGHTS in that file, one a line,
 *                                           or of N of Zipf's law as zipf:N; SHAPE has the 24 weights of
 *                                           the hours, or is missing: all alike
 *
 * Prints  : of each way, `minute WAY MINUTE COUNT` for the last day, `day WAY SPIKE`, and
 *           `decade WAY POWER SERIES HIT COVERED MADE UNUSED` of the series with 10^POWER hits a day and
 *           more, and `busy WAY 0 …` of those with 50 and more.
 * Ways    : auto; chance, 1 in 500,000; midnight: all that had a hit on the day before, when the day begins.
 * Exact   : the two days that are judged follow two that are not. The seed is fixed.
 */
#include "store/prealloc.h"
#include "base/civil.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAYS        4
#define JUDGED_DAYS 2 /* the last; from the others it is learnt how much there is */
#define DAY_MINUTES 1440
#define FIRST_DAY   INT64_C(20000) /* since 1970 */
#define DECADES     12             /* from 10^-3 on */
#define DECADE_0    3
#define BUSY_HITS   50 /* a day: of those it is promised that nearly all are there */

enum way { WAY_AUTO, WAY_CHANCE, WAY_MIDNIGHT, WAYS };
static const char *const way_names[WAYS] = {"auto", "chance", "midnight"};

struct decade {
    int64_t series, hit, covered, made, unused;
};

struct series {
    struct prealloc_state state[WAYS];
    uint8_t was_made; /* a bit for each way: today's document */
    bool is_hit, was_hit;
    uint8_t decade;
};

struct simulation {
    size_t count;
    double *weights; /* a day's hits */
    double hours[24];
    double *odds; /* the alias method's */
    uint32_t *alias;
    struct series *series;
    struct prealloc ways[WAYS];
    uint64_t dice;
    int64_t minutes[WAYS][DAY_MINUTES];
    double spike[WAYS];
    struct decade decades[WAYS][DECADES], busy[WAYS];
};

static uint64_t roll(struct simulation *s)
{
    uint64_t z = s->dice += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static double fraction(struct simulation *s)
{
    return (double)(roll(s) >> 11) * 0x1p-53;
}

/* ---- the traffic */

static size_t read_numbers(const char *path, double **numbers)
{
    size_t count = 0, capacity = 0;
    double number;
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        perror(path);
        exit(EX_NOINPUT);
    }
    while (fscanf(file, "%lf", &number) == 1) {
        *numbers = xgrow(*numbers, &capacity, count + 1, sizeof **numbers);
        (*numbers)[count++] = number;
    }
    fclose(file);
    return count;
}

static void zipf(struct simulation *s, const char *count)
{
    s->count = (size_t)strtoull(count, NULL, 10);
    s->weights = xcalloc(s->count, sizeof *s->weights);
    for (size_t i = 0; i < s->count; i++)
        s->weights[i] = 1 / (double)(i + 1);
}

static void scale(double *numbers, size_t count, double sum)
{
    double before = 0;
    for (size_t i = 0; i < count; i++)
        before += numbers[i];
    for (size_t i = 0; i < count; i++)
        numbers[i] *= sum / before;
}

static void take_hours(struct simulation *s, const char *path)
{
    double *read = NULL;
    for (size_t hour = 0; hour < 24; hour++)
        s->hours[hour] = 1;
    if (path != NULL && read_numbers(path, &read) == 24)
        memcpy(s->hours, read, sizeof s->hours);
    free(read);
    scale(s->hours, 24, 24);
}

/* Walker's: each column holds a share of its own series, and of one other. */
static void make_alias(struct simulation *s)
{
    uint32_t *few = xcalloc(s->count, sizeof *few), *many = xcalloc(s->count, sizeof *many);
    size_t few_count = 0, many_count = 0;
    s->odds = xcalloc(s->count, sizeof *s->odds);
    s->alias = xcalloc(s->count, sizeof *s->alias);
    memcpy(s->odds, s->weights, s->count * sizeof *s->odds);
    scale(s->odds, s->count, (double)s->count);
    for (size_t i = 0; i < s->count; i++)
        *(s->odds[i] < 1 ? &few[few_count++] : &many[many_count++]) = (uint32_t)i;
    while (few_count > 0 && many_count > 0) {
        uint32_t small = few[--few_count], large = many[--many_count];
        s->alias[small] = large;
        s->odds[large] -= 1 - s->odds[small];
        *(s->odds[large] < 1 ? &few[few_count++] : &many[many_count++]) = large;
    }
    while (many_count > 0)
        s->odds[many[--many_count]] = 1;
    while (few_count > 0)
        s->odds[few[--few_count]] = 1;
    free(few);
    free(many);
}

static size_t draw(struct simulation *s)
{
    size_t i = (size_t)(fraction(s) * (double)s->count);
    return fraction(s) < s->odds[i] ? i : s->alias[i];
}

/* ---- days */

static void add(struct decade *d, const struct series *one, bool was_made)
{
    d->series++;
    d->hit += one->is_hit;
    d->made += was_made;
    d->covered += was_made && one->is_hit;
    d->unused += was_made && !one->is_hit;
}

/* Documents that yesterday made, and that today were hit or not. */
static void judge(struct simulation *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct series *one = &s->series[i];
        for (int way = 0; way < WAYS; way++) {
            bool was_made = one->was_made >> way & 1;
            add(&s->decades[way][one->decade], one, was_made);
            if (s->weights[i] >= BUSY_HITS)
                add(&s->busy[way], one, was_made);
        }
    }
}

static void begin_day(struct simulation *s, const struct prealloc_period *yesterday)
{
    for (size_t i = 0; i < s->count; i++) {
        struct series *one = &s->series[i];
        one->was_made = 0;
        one->was_hit = one->is_hit;
        for (int way = 0; way < WAYS; way++) {
            struct prealloc_state *state = &one->state[way];
            bool was_made =
                way == WAY_MIDNIGHT ? one->was_hit : prealloc_turn(&s->ways[way], state, yesterday, true);
            one->was_made |= (uint8_t)(was_made << way);
            s->minutes[WAY_MIDNIGHT][0] += way == WAY_MIDNIGHT && was_made;
        }
        one->is_hit = false;
    }
}

static void hit(struct simulation *s, const struct prealloc_period *day, int minute)
{
    size_t i = draw(s);
    struct series *one = &s->series[i];
    one->is_hit = true;
    for (int way = 0; way < WAY_MIDNIGHT; way++) {
        prealloc_count(&s->ways[way], &one->state[way], 1);
        s->minutes[way][minute] +=
            prealloc_is_due(&s->ways[way], &one->state[way], i * UINT64_C(0x9E3779B97F4A7C15), day,
                            day->from_ms + minute * MINUTE_MS, 1);
    }
}

static double spike_of(const int64_t *minutes)
{
    int64_t most = 0, all = 0;
    for (int i = 0; i < DAY_MINUTES; i++) {
        most = minutes[i] > most ? minutes[i] : most;
        all += minutes[i];
    }
    return all > 0 ? (double)most * DAY_MINUTES / (double)all : 0;
}

static void run_day(struct simulation *s, int number, double hits)
{
    const struct prealloc_period day = {(FIRST_DAY + number) * DAY_MS, (FIRST_DAY + number + 1) * DAY_MS},
                                 yesterday = {day.from_ms - DAY_MS, day.from_ms};
    memset(s->minutes, 0, sizeof s->minutes);
    begin_day(s, &yesterday);
    for (int minute = 0; minute < DAY_MINUTES; minute++) {
        double due = hits / DAY_MINUTES * s->hours[minute / 60] + fraction(s);
        for (int64_t n = (int64_t)due; n > 0; n--)
            hit(s, &day, minute);
    }
    if (number < DAYS - JUDGED_DAYS)
        return;
    judge(s);
    for (int way = 0; way < WAYS; way++)
        s->spike[way] = fmax(s->spike[way], spike_of(s->minutes[way]));
}

static void print_decade(const char *what, const char *way, int power, const struct decade *d)
{
    if (d->series > 0)
        printf("%s %s %d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", what, way, power,
               d->series, d->hit, d->covered, d->made, d->unused);
}

static void print(const struct simulation *s)
{
    for (int way = 0; way < WAYS; way++) {
        printf("day %s %.2f\n", way_names[way], s->spike[way]);
        for (int minute = 0; minute < DAY_MINUTES; minute++)
            printf("minute %s %d %" PRId64 "\n", way_names[way], minute, s->minutes[way][minute]);
        for (int i = 0; i < DECADES; i++)
            print_decade("decade", way_names[way], i - DECADE_0, &s->decades[way][i]);
        print_decade("busy", way_names[way], 0, &s->busy[way]);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: %s WEIGHTS|zipf:N HITS [SHAPE]\n", argv[0]);
        return EX_USAGE;
    }
    struct simulation *s = xcalloc(1, sizeof *s);
    double hits = strtod(argv[2], NULL);
    s->dice = 1;
    if (strncmp(argv[1], "zipf:", 5) == 0)
        zipf(s, argv[1] + 5);
    else
        s->count = read_numbers(argv[1], &s->weights);
    scale(s->weights, s->count, hits);
    take_hours(s, argc > 3 ? argv[3] : NULL);
    make_alias(s);
    s->series = xcalloc(s->count, sizeof *s->series);
    for (size_t i = 0; i < s->count; i++) {
        int power = (int)floor(log10(s->weights[i])) + DECADE_0;
        s->series[i].decade = (uint8_t)(power < 0 ? 0 : power >= DECADES ? DECADES - 1 : power);
    }
    prealloc_init(&s->ways[WAY_AUTO], &(struct prealloc_options){.when = PREALLOC_AUTO}, 0, 1);
    prealloc_init(&s->ways[WAY_CHANCE], &(struct prealloc_options){PREALLOC_CHANCE, 500000, false}, 0, 2);
    for (int day = 0; day < DAYS; day++)
        run_day(s, day, hits);
    print(s);
    free(s->weights);
    free(s->odds);
    free(s->alias);
    free(s->series);
    free(s);
    return 0;
}
