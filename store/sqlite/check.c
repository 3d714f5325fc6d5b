/* Checks the whole file: SQLite's own structure by `PRAGMA quick_check`, and every row's body. */
#include "store/sqlite/internal.h"

#include <stdio.h>

struct check {
    struct sqlite_store *st;
    check_fn *problem;
    void *context;
};

/* The context of look(). */
struct look {
    const struct report *report;
    enum span span; /* resolution of the row's slots */
    struct sketch_work work;
    struct text packed;
};

/* If SQLite fails because the file is damaged, report that as a problem; the check itself succeeds. */
static bool tell_error(const struct check *c, const char *doing, struct err *e)
{
    sqlite_fail(c->st, e, doing);
    if (e->code == EX_DATAERR)
        c->problem(c->context, e->text);
    return e->code == EX_DATAERR;
}

static bool check_structure(const struct check *c, struct err *e)
{
    sqlite3_stmt *s;
    int rc;
    char line[512];
    if (sqlite3_prepare_v2(c->st->db, "PRAGMA quick_check", -1, &s, NULL) != SQLITE_OK)
        return tell_error(c, "checking the structure", e);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        if (strcmp(sqlite_text(s, 0), "ok") == 0)
            continue;
        snprintf(line, sizeof line, "%s: %s", c->st->path, sqlite_text(s, 0));
        c->problem(c->context, line);
    }
    bool good = rc == SQLITE_DONE || tell_error(c, "checking the structure", e);
    sqlite3_finalize(s);
    return good;
}

/* Decode the sketches of a slot, whose histograms must have the buckets of its resolution. */
static bool look(void *context, uint32_t series, uint32_t slot, const int64_t *values,
                 const struct slice *sketches)
{
    struct look *l = context;
    (void)series, (void)slot, (void)values;
    for (size_t i = 0; i < l->report->sketch_count; i++) {
        const struct measure *m = report_sketched(l->report, i);
        text_clear(&l->packed);
        if (!(m->kind == MEASURE_HISTOGRAM
                  ? sketch_widen(sketches[i], measure_schema(m, l->span), &l->work, &l->packed)
                  : sketch_join(SKETCH_DISTINCT, sketches[i], slice_of(NULL, 0), &l->work, &l->packed)) ||
            !slice_equal(text_slice(&l->packed), sketches[i]))
            return false;
    }
    return true;
}

static bool check_rows(const struct check *c, size_t report, enum level level, struct err *e)
{
    static const struct body_want all = {{UINT64_MAX, UINT64_MAX}, 0, BODY_SLOTS, UINT64_MAX};
    struct look l = {.report = &c->st->reports[report],
                     .span = level == LEVEL_FRESH ? SPAN_MINUTE : sqlite_span(level)};
    sqlite3_stmt *s = c->st->tables[report].levels[level].range;
    char line[512];
    int rc;
    sqlite3_bind_int64(s, 1, INT64_MIN);
    sqlite3_bind_int64(s, 2, INT64_MAX);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        struct slice body = slice_of(sqlite3_column_blob(s, 1), (size_t)sqlite3_column_bytes(s, 1));
        if (body_each(body, l.report, &all, look, &l, &c->st->body.loose))
            continue;
        snprintf(line, sizeof line, "%s: row %lld of report %s does not decode (%s)", c->st->path,
                 (long long)sqlite3_column_int64(s, 0), c->st->reports[report].name,
                 sqlite_level_names[level]);
        c->problem(c->context, line);
    }
    bool good = rc == SQLITE_DONE || tell_error(c, "checking rows", e);
    sqlite3_reset(s);
    sketch_work_fini(&l.work);
    text_fini(&l.packed);
    return good;
}

bool sqlite_check(struct store *base, check_fn *problem, void *context, struct err *e)
{
    const struct check c = {sqlite_of(base), problem, context};
    if (!check_structure(&c, e))
        return false;
    for (size_t r = 0; r < base->report_count; r++) {
        for (enum level level = LEVEL_FRESH; level < LEVEL_COUNT; level++) {
            if (!check_rows(&c, r, level, e))
                return false;
        }
        if (!sqlite_recent_check(c.st, r, problem, context, e)) {
            if (e->code != EX_DATAERR)
                return false;
            problem(context, e->text);
        }
    }
    return true;
}
