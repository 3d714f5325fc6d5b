/* mongo/doc/marks.h - how far a report has expired, as `reports` says and a handle knows:
 *
 *   reports   { _id: "pages", …, expired: { minute: ISODate(…), hour: … }, swept: { minute: … }, ttl: … }
 *
 * mongo/job/expire.c moves the marks.
 */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_KNOWN_MS 2000 /* after so long, all who read know what `reports` says of expiry */
/* As the database has them. */
bool mongo_marks(struct store *st, size_t report, struct marks *marks, struct err *e);
enum span mongo_goes_by(const struct report *r, enum span span);
/* All of them, into the handle. */
bool mongo_refresh_marks(struct mongo_store *m, struct err *e);
/* The handle knows them from now on. After one that moved back, sweeps begin anew. */
void mongo_know_marks(struct mongo_report *more, const struct marks *marks);
/* { $max: { "expired.minute": …, … } } of those of `marks` that are behind `before`, if any is. */
void mongo_append_dates(bson_t *update, const char *member, const struct marks *before,
                        const struct marks *marks);
/* Sends the same. */
bool mongo_put_dates(struct mongo_store *m, size_t report, const char *member, const struct marks *before,
                     const struct marks *marks, struct err *e);
