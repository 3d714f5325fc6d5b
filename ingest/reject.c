#include "ingest/reject.h"

#include "base/check.h"

#define REJECT_ROW(id, name, help) {name, help},
static const struct {
    const char *name, *help;
} rows[REJECT_COUNT] = {REJECT_TABLE(REJECT_ROW)};
#undef REJECT_ROW

const char *reject_name(enum reject_reason reason)
{
    ASSERT((unsigned)reason < REJECT_COUNT);
    return rows[reason].name;
}

const char *reject_help(enum reject_reason reason)
{
    ASSERT((unsigned)reason < REJECT_COUNT);
    return rows[reason].help;
}
