/* mongo/doc/watermarks.h - the expiry watermarks of a report, in `reports` and in the handle. Readers,
 * writers and jobs ask for them; mongo/job/expire.c moves them.
 *
 *   reports   { _id: "pages", …, expired: { minute: ISODate(…), hour: … }, swept: { minute: … }, ttl: … }
 */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_KNOWN_MS 2000 /* after this time every reader knows what `reports` says of expiry */
/* The watermarks in the database, at most a second old. EX_TEMPFAIL: a reader's report was dropped, or is
 * being dropped: what it has read may be a part. */
bool mongo_watermarks(struct store *st, size_t report, struct watermarks *watermarks,
                      struct err *e) MUST_CHECK;
enum span mongo_goes_by(const struct report *r, enum span span);
/* Reads the watermarks of all reports into the handle. */
bool mongo_refresh_watermarks(struct mongo_store *m, struct err *e) MUST_CHECK;
/* Stores `watermarks` in the handle. If a watermark moved back, sweeps begin anew. */
void mongo_know_watermarks(struct mongo_store *m, size_t report, const struct watermarks *watermarks);
/* Adds { $max: { "expired.minute": …, … } } to an update: all watermarks of `watermarks` that are later than
 * in `before`; NULL: all that there are. */
void mongo_append_dates(bson_t *update, const char *member, const struct watermarks *before,
                        const struct watermarks *watermarks);
/* Updates the document of a report, and destroys the update. EX_DATAERR: it is not there any more. */
bool mongo_change_report(struct mongo_store *m, size_t report, bson_t *update, struct err *e) MUST_CHECK;
/* Sends the update of mongo_append_dates(). */
bool mongo_put_dates(struct mongo_store *m, size_t report, const char *member,
                     const struct watermarks *before, const struct watermarks *watermarks,
                     struct err *e) MUST_CHECK;
