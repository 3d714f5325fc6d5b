#include "store/prealloc.h"

#include "base/check.h"
#include "base/civil.h"

#define XXH_INLINE_ALL
#include <math.h>
#include <xxhash.h>

/* SLOTS: the share of the last period's hits in which moments lie; without such hits, of the period's time.
 * LATE_FROM, LATE_TO: the part of the period's time in which they lie if those hits do not come. The values
 * are from the simulation (bench/prealloc.c): greater ones are less even, or miss more. */
#define SLOTS     0.75
#define LATE_FROM 0.50
#define LATE_TO   0.90

/* A code has 4 bits of a number, and an exponent: 0 to 15, 16 to 31, 32, 34, …, 31 << 14. */
#define MANTISSA_BITS 4
#define MANTISSA      (1 << MANTISSA_BITS)
#define CODE_MAX      UINT8_MAX

/* The hits of a whole period are extrapolated from at least this part of it. */
#define SEEN_MIN 0.125

int64_t prealloc_hits(uint8_t code)
{
    int exponent = (code >> MANTISSA_BITS) - 1;
    return exponent < 0 ? code : (int64_t)((code & (MANTISSA - 1)) | MANTISSA) << exponent;
}

/* splitmix64 */
static uint64_t roll(struct prealloc *p)
{
    uint64_t z = p->dice += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* A number in [0, 1). */
static double fraction_of(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

static double chance(struct prealloc *p)
{
    return fraction_of(roll(p));
}

/* Round `hits` up or down to a code at random, so that the average is right. */
static uint8_t encode(struct prealloc *p, int64_t hits)
{
    uint8_t low = 0, high = CODE_MAX;
    if (hits >= prealloc_hits(CODE_MAX))
        return CODE_MAX;
    while (low + 1 < high) {
        uint8_t middle = (uint8_t)((low + high) / 2);
        if (prealloc_hits(middle) <= hits)
            low = middle;
        else
            high = middle;
    }
    int64_t rest = hits - prealloc_hits(low), step = prealloc_hits(high) - prealloc_hits(low);
    return rest > 0 && chance(p) * (double)step < (double)rest ? high : low;
}

void prealloc_init(struct prealloc *p, const struct prealloc_options *options, int64_t since_ms,
                   uint64_t seed)
{
    ASSERT(options->when != PREALLOC_CHANCE || options->one_in >= 1);
    *p = (struct prealloc){*options, since_ms, seed};
}

bool prealloc_turn(struct prealloc *p, struct prealloc_state *s, const struct prealloc_period *old,
                   bool follows)
{
    bool was_made = s->is_made && follows;
    double seen = 1;
    if (p->since_ms > old->from_ms && p->since_ms < old->to_ms)
        seen = (double)(old->to_ms - p->since_ms) / (double)(old->to_ms - old->from_ms);
    int64_t all = (int64_t)((double)prealloc_hits(s->now) / (seen > SEEN_MIN ? seen : SEEN_MIN));
    *s = (struct prealloc_state){.before = follows ? encode(p, all) : 0};
    return was_made;
}

void prealloc_count(struct prealloc *p, struct prealloc_state *s, int64_t hits)
{
    s->now = hits < prealloc_hits(CODE_MAX) ? encode(p, prealloc_hits(s->now) + hits) : CODE_MAX;
}

/* The share of the period that is over, or of the part of the period since the handle began. */
static double elapsed(const struct prealloc *p, const struct prealloc_period *period, int64_t at_ms)
{
    int64_t from_ms =
        p->since_ms > period->from_ms && p->since_ms < period->to_ms ? p->since_ms : period->from_ms;
    ASSERT(from_ms < period->to_ms);
    return (double)(at_ms - from_ms) / (double)(period->to_ms - from_ms);
}

static bool has_come(const struct prealloc *p, const struct prealloc_state *s, uint64_t series,
                     const struct prealloc_period *period, int64_t at_ms)
{
    double slot = fraction_of(XXH3_64bits_withSeed(&period->from_ms, sizeof period->from_ms, series));
    double time = elapsed(p, period, at_ms);
    int64_t now = prealloc_hits(s->now), before = prealloc_hits(s->before);
    if (now + before < PREALLOC_EVIDENCE)
        return false;
    if (before == 0)
        return time >= slot * SLOTS;
    return (double)now >= slot * SLOTS * (double)before || time >= LATE_FROM + slot * (LATE_TO - LATE_FROM);
}

bool prealloc_is_due(struct prealloc *p, struct prealloc_state *s, uint64_t series,
                     const struct prealloc_period *period, int64_t at_ms, int64_t hits)
{
    if (s->is_made || p->options.when == PREALLOC_OFF)
        return false;
    if (p->options.when == PREALLOC_AUTO)
        s->is_made = has_come(p, s, series, period, at_ms);
    else /* each hit has a chance: true unless all miss */
        s->is_made = chance(p) < -expm1((double)hits * log1p(-1 / (double)p->options.one_in));
    return s->is_made;
}

void prealloc_note_made(struct prealloc_pace *pace, struct prealloc_figures *f, int64_t now_ms, int64_t count)
{
    int64_t minute = now_ms / MINUTE_MS, day = now_ms / DAY_MS;
    bool is_first = pace->day == 0;
    f->made += count;
    if (day != pace->day)
        *pace = (struct prealloc_pace){
            .day = day, .first_minute = is_first ? minute : day * (DAY_MS / MINUTE_MS), .minute = minute};
    if (minute != pace->minute)
        pace->in_minute = 0;
    pace->minute = minute;
    pace->in_minute += count;
    pace->total += count;
    pace->most = pace->in_minute > pace->most ? pace->in_minute : pace->most;
    if (pace->total > 0)
        f->spike_milli = pace->most * 1000 * (minute - pace->first_minute + 1) / pace->total;
}
