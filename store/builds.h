/* builds.h - entries of the books that say which lists and databases made fields of a partition's events, as
 * the counts depend on them (ingest/derive/builds.h). Stores write them in the transaction of the counts.
 *
 *   geo.FROM.SECONDS, asn.FROM.SECONDS   from FROM up to the entry's value, fields were made by the
 *   agents.FROM.HASH                     database that was built then, or by the list with that hash
 *
 * Of     : a source itself: its ranges, as they were counted. A report: ranges that it was backfilled with.
 * Extent : a range that continues a stretch of the same build lengthens it. So a restart begins no entry.
 * Silent : offsets of no entry: no field was made by such a list or database, or by a tallyd that did not
 *          note it.
 * Owner  : the caller frees a list by builds_fini().
 */
#pragma once

#include "store/writer.h"

/* The offsets [from, to), whose fields this build made. */
struct build_stretch {
    enum build_kind kind;
    int64_t build; /* as in struct builds */
    int64_t from, to;
};

struct build_stretches {
    struct build_stretch *list;
    size_t count, capacity;
};

void builds_fini(struct build_stretches *all);
/* Does the entry say this? Pre: *s is read only if so. */
bool build_read(const char *entry, int64_t value, struct build_stretch *s);
/* The entry's name. */
const char *build_entry(const struct build_stretch *s, char buf[STORE_ENTRY_BYTES]);
/* "geo", "asn" or "agents"; and the build for people: an instant, or 16 digits. */
const char *build_name(enum build_kind kind);
void build_print(const struct build_stretch *s, struct text *out);

/* Adds the stretch, in place of one of the same name. */
void builds_put(struct build_stretches *all, const struct build_stretch *s);
/* The stretch that counting the range adds or lengthens. False: nothing of this kind made fields in it. */
bool builds_after(const struct build_stretches *all, const struct range *r, enum build_kind kind,
                  struct build_stretch *s);
/* Drops all from the offset on, since it was taken out again. */
void builds_cut(struct build_stretches *all, int64_t to);
