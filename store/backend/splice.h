/* splice.h - has a report take the place of another one for a range of times: buckets of the range are its
 * own, those before and after are copied from the other one. `tallyd backfill NEW --take OLD --from --to`
 * calls it.
 *
 * Exact  : each bucket is of one of both reports, of the shortest resolution that both still keep. The report
 *          then has its own books, and `kept` entries for the rest (store/reader.h): the offsets of which it
 *          has only the other one's counts, and their times.
 * Errors : EX_CONFIG: both do not have the same dimensions, measures, layout and sample. EX_NOINPUT: one of
 *          them lacks what the other one counted. EX_DATAERR: an end of the range is within a bucket, or has
 *          expired. Others are those of store/splice.h.
 */
#pragma once

#include "store/backfill.h"
#include "store/forget.h"

struct store_splicing {
    struct store *from;          /* to read, opened after `to` */
    size_t by, report;           /* indexes in `from`: the report, and the one whose place it takes */
    struct store *to;            /* to write, with the first report alone */
    struct backfill_times times; /* the range that the report has by itself */
    bool drops_old;
    bool forced; /* whether the report may lack events of the range: their offsets stay uncounted */
};

bool store_splice(const struct store_splicing *s, struct store_replaced *done, struct err *e) MUST_CHECK;
