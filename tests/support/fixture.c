#include "tests/support/fixture.h"

#include "base/check.h"
#include "base/civil.h"
#include "config/config_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void make(struct report *r, const char *name, const char *const *dimensions)
{
    struct err e;
    ASSERT(report_init(r, slice_text(name), 1, &e));
    for (; *dimensions != NULL; dimensions++)
        ASSERT(report_add_dimension(r, slice_text(*dimensions), &e));
    ASSERT(report_finish(r, &e));
    ASSERT(r->measure_count == 2);
}

void fixture_reports(struct report reports[FIXTURE_COUNT])
{
    make(&reports[FIXTURE_SITE], "site", (const char *const[]){NULL});
    make(&reports[FIXTURE_PAGES], "pages", (const char *const[]){"path", NULL});
    make(&reports[FIXTURE_CLIENTS], "clients", (const char *const[]){"host", "method", "status", NULL});
}

void fixture_lay_out(struct report reports[FIXTURE_COUNT], enum report_layout layout)
{
    struct err e;
    for (size_t i = 0; i < FIXTURE_COUNT; i++) {
        free(reports[i].definition);
        reports[i].definition = NULL;
        reports[i].layout = layout;
        ASSERT(report_finish(&reports[i], &e));
    }
}

void fixture_free(struct report reports[FIXTURE_COUNT])
{
    for (size_t i = 0; i < FIXTURE_COUNT; i++)
        report_fini(&reports[i]);
}

const struct decode *fixture_decode(void)
{
    static struct decode d;
    struct err e;
    if (d.step_count == 0) {
        decode_init(&d);
        ASSERT(decode_finish(&d, &e));
    }
    return &d;
}

struct config *fixture_config(const char *yaml)
{
    struct text problems = {0};
    struct config *c = config_parse(slice_text(yaml), "f.yaml", &problems);
    if (c == NULL)
        fail_msg("%s\n%s", yaml, problems.ptr);
    text_fini(&problems);
    return c;
}

const struct zone *fixture_zone(const char *name)
{
    struct err e;
    const struct zone *z = zone_find(slice_text(name), &e);
    if (z == NULL)
        fail_msg("%s", e.text);
    return z;
}

int64_t fixture_ms(const char *text)
{
    int64_t ms;
    ASSERT(civil_parse(slice_text(text), 0, &ms));
    return ms;
}
