/* fixture.h - the reports that tests count into. */
#pragma once

#include "aggregate/report.h"
#include "base/zone.h"
#include "config/config.h"
#include "ingest/decode/decode.h"

enum {
    FIXTURE_SITE,    /* no dimensions */
    FIXTURE_PAGES,   /* dimension path */
    FIXTURE_CLIENTS, /* dimensions host, method, status */
    FIXTURE_COUNT
};

/* Measures are hits and bytes everywhere. */
void fixture_reports(struct report reports[FIXTURE_COUNT]);
/* Gives the reports another layout. */
void fixture_lay_out(struct report reports[FIXTURE_COUNT], enum report_layout layout);
void fixture_free(struct report reports[FIXTURE_COUNT]);

/* The decoding [auto]. */
const struct decode *fixture_decode(void);

/* Parses a configuration without errors, as "f.yaml". */
struct config *fixture_config(const char *yaml);

const struct zone *fixture_zone(const char *name);

/* "2015-05-17T10:05" in ms. */
int64_t fixture_ms(const char *text);
