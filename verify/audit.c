#include "verify/audit.h"

#include "daemon/count/account.h"

#include <inttypes.h>
#include <time.h>

#define QUIET_TRIES 100 /* attempts to find a moment without a batch under way */
#define QUIET_MS    50
#define AGAIN_MAX   4
#define AGAIN_MS    1100 /* a reader's watermarks and version stamps may be a second old */

void audit_init(struct audit *a, struct store *store, FILE *out)
{
    *a = (struct audit){.store = store, .out = out, .cells_max = AUDIT_CELLS_MAX};
}

void audit_fini(struct audit *a)
{
    text_fini(&a->said);
}

struct text *audit_find(struct audit *a)
{
    a->found++;
    return a->found_last++ < AUDIT_PRINTED_MAX ? &a->said : NULL;
}

void audit_next(struct audit *a)
{
    if (a->found_last > AUDIT_PRINTED_MAX)
        text_printf(&a->said, "… and %" PRIu64 " more like these\n", a->found_last - AUDIT_PRINTED_MAX);
    a->found_last = 0;
}

static void rest(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

static bool add_position(void *context, const struct position *p)
{
    uint64_t *sum = context;
    *sum = *sum * 31 + (uint64_t)p->range.to + 1;
    return true;
}

/* All positions, as one number. On a server, at a moment without a batch under way. */
static bool take_moment(struct audit *a, uint64_t *moment, struct err *e)
{
    *moment = 0;
    if (!a->store->is_shared)
        return true;
    for (int tries = 0; !store_hold(a->store, e); tries++) {
        if (!e->retryable || tries == QUIET_TRIES)
            return false;
        rest(QUIET_MS);
    }
    return store_positions(a->store, add_position, moment, e);
}

static void begin_step(struct audit *a)
{
    a->found = a->found_last = 0;
    text_clear(&a->said);
}

static void end_step(struct audit *a)
{
    audit_next(a);
    if (a->said.len > 0)
        fputs(a->said.ptr, a->out);
    a->differences += a->found;
}

/* *settled: nothing was found, or the differences are of one moment. */
typedef bool step_fn(struct audit *a, size_t report, struct err *e);

static bool try_step(struct audit *a, step_fn *step, size_t report, bool *settled, struct err *e)
{
    uint64_t before, after;
    begin_step(a);
    *settled = false;
    if (!take_moment(a, &before, e))
        return false;
    if (!step(a, report, e))
        return e->retryable; /* buckets are expiring just now: try again */
    *settled = a->found == 0 || !a->store->is_shared;
    if (*settled)
        return true;
    if (!take_moment(a, &after, e))
        return false;
    *settled = before == after;
    return true;
}

static bool take_step(struct audit *a, step_fn *step, size_t report, const char *what, struct err *e)
{
    bool settled = false;
    for (int tries = 0; !settled && tries <= AGAIN_MAX; tries++) {
        if (tries > 0)
            rest(AGAIN_MS);
        if (!try_step(a, step, report, &settled, e))
            return false;
        settled = settled && (a->found == 0 || tries > 0 || !a->store->is_shared);
    }
    if (settled) {
        end_step(a);
        return true;
    }
    fprintf(a->out, "not judged: %s, since daemons kept writing it: run it again when less is counted\n",
            what);
    a->unjudged++;
    return true;
}

/* Do a step; damage ends the step, not the audit. */
static bool take_or_tell(struct audit *a, step_fn *step, size_t report, const char *what, struct err *e)
{
    if (take_step(a, step, report, what, e))
        return true;
    if (e->code != EX_DATAERR)
        return false;
    fprintf(a->out, "%s: %s\n", what, e->text);
    a->differences++;
    return true;
}

static void take_problem(void *context, const char *problem)
{
    struct text *said = audit_find(context);
    if (said != NULL)
        text_printf(said, "%s\n", problem);
}

/* Print which resolutions were compared, and from when on. */
static bool say_report(struct audit *a, size_t report, struct err *e)
{
    const struct report *r = &a->store->reports[report];
    struct watermarks watermarks;
    if (!store_watermarks(a->store, report, &watermarks, e))
        return false;
    fprintf(a->out, "%s:", r->name);
    for (enum span s = report_cell(r); s < SPAN_COUNT; s++) {
        char iso[CIVIL_ISO_BYTES];
        int64_t from_ms = watermarks.before_ms[s];
        fprintf(a->out, "%s %ss%s%s", s > report_cell(r) ? "," : "", span_name(s),
                from_ms > 0 ? " from " : "", from_ms > 0 ? civil_iso(from_ms, iso) : "");
    }
    fprintf(a->out, "%s\n",
            audit_count(r) < 0 ? "; no measure is a count, so the books cannot be compared" : "");
    return true;
}

bool audit_store(struct audit *a, struct err *e)
{
    begin_step(a);
    bool good = store_check(a->store, take_problem, a, e);
    end_step(a);
    good = good && take_or_tell(a, audit_books, 0, "the books", e);
    for (size_t r = 0; good && r < a->store->report_count; r++) {
        char what[REPORT_NAME_BYTES + 16];
        snprintf(what, sizeof what, "report %s", a->store->reports[r].name);
        good = take_or_tell(a, audit_totals, r, what, e) && take_or_tell(a, audit_spans, r, what, e) &&
               take_or_tell(a, audit_recent, r, what, e) && say_report(a, r, e);
    }
    if (good)
        fprintf(a->out, "not checked: earlier generations of reports%s\n",
                a->store->is_shared ? ", rankings, weeks, raw events" : "");
    return good;
}
