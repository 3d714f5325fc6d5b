/* builds.h - which builds of lists and databases made fields of events. Counts depend on them: each range
 * that is counted has them (aggregate/batch.h), and so have the books (store/builds.h). */
#pragma once

#include <stdint.h>

/* The settings derive.geo, derive.asn and derive.agents. */
enum build_kind { BUILD_GEO, BUILD_ASN, BUILD_AGENTS, BUILD_COUNT };

struct builds {
    /* A database's own time of its build, in seconds since 1970; or the hash of a list. 0: made no field. */
    int64_t of[BUILD_COUNT];
};
