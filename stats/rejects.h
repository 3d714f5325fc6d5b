/* rejects.h - the newest samples of records that were rejected, with the format that would fit each. The
 * ingest threads of a daemon note them; /api/v1/rejects shows them.
 *
 * Limits : REJECTS_EACH samples of a reason, each of at most REJECTS_LINE_BYTES of its line. An older sample
 *          gives way. Fits are only looked for in records of up to REJECTS_FIT_BYTES.
 * Cost   : some µs under the lock. A feed notes a reason at most once in a batch (feed_note_reject()).
 * Threads: any.
 */
#pragma once

#include "base/clock.h"
#include "ingest/decode/fit.h"
#include "ingest/record.h"

#include <pthread.h>

#define REJECTS_EACH       3
#define REJECTS_LINE_BYTES 1024
#define REJECTS_FIT_BYTES  8192

struct rejects_sample {
    struct reject why;
    int64_t at_ms;      /* wall-clock time at which it was rejected */
    struct text source; /* path of the file, "-" for standard input, or TOPIC/PARTITION */
    int64_t offset;     /* of its record: bytes in a file, or Kafka's offset */
    struct text line;   /* beginning of the line or element, as it came */
    bool is_cut;        /* the line or element is longer */
    struct text fits;   /* format that would read the record, as fit_print() has it; empty: none */
};

struct rejects {
    pthread_mutex_t lock;
    const struct clock *clock;
    struct fit *fit;
    struct rejects_sample list[REJECT_COUNT][REJECTS_EACH];
    uint64_t noted[REJECT_COUNT]; /* number of samples noted so far */
};

void rejects_init(struct rejects *rj, const struct clock *clock, size_t line_max);
void rejects_fini(struct rejects *rj);
/* Notes `bytes`, a line or element of the record `r`, that `decode` rejected. `r` names the file by its
 * topic, with RECORD_NO_PARTITION. Everything is copied. */
void rejects_note(struct rejects *rj, const struct decode *decode, const struct record *r, struct slice bytes,
                  struct reject why);
/* Adds {"rejected":N,"reasons":[{"reason":"status","help":"…","records":N,"samples":[…]},…]}: reasons that
 * have records, samples newest first. `counts`: records rejected since the start, by reason. */
void rejects_write(struct rejects *rj, const int64_t counts[REJECT_COUNT], struct text *out);
