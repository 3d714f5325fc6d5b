/* rejects.h - the newest samples of records that were rejected, with the format that would fit each; and the
 * sources of which nothing can be parsed. The ingest threads of a daemon note samples, its writer notes
 * ranges; /api/v1/rejects, /metrics, /readyz and the log show them.
 *
 * Streak : records of one file or topic since the last one that was parsed. Nothing is wrong with a few bad
 *          lines among good ones. So a streak is due once it has REJECTS_STREAK_MIN records and is
 *          REJECTS_STREAK_MS old; or at once, if nothing of its source was parsed since the start. A record
 *          that is parsed ends it. Tombstones are no part of it.
 * Limits : REJECTS_EACH samples of a reason, each of at most REJECTS_LINE_BYTES of its line. An older sample
 *          gives way. Fits are only looked for in records of up to REJECTS_FIT_BYTES.
 * Cost   : some µs under the lock. A feed notes a reason at most once in a batch (feed_note_reject()).
 *          At most REJECTS_STREAKS_MAX streaks are known: a further one replaces the one without news for
 *          the longest time.
 * Threads: any.
 */
#pragma once

#include "aggregate/books.h"
#include "base/clock.h"
#include "ingest/decode/fit.h"
#include "ingest/record.h"

#include <pthread.h>

#define REJECTS_EACH       3
#define REJECTS_LINE_BYTES 1024
#define REJECTS_FIT_BYTES  8192

#define REJECTS_STREAK_MIN  10
#define REJECTS_STREAK_MS   60000
#define REJECTS_STREAKS_MAX 256

struct rejects_sample {
    struct reject why;
    int64_t at_ms;      /* wall-clock time at which it was rejected */
    struct text source; /* path of the file, "-" for standard input, or TOPIC/PARTITION */
    int64_t offset;     /* of its record: bytes in a file, or Kafka's offset */
    struct text line;   /* beginning of the line or element, as it came */
    bool is_cut;        /* the line or element is longer */
    struct text fits;   /* format that would read the record, as fit_print() has it; empty: none */
};

/* A source of the configuration. */
struct rejects_source {
    const char *name;           /* borrowed */
    int64_t consumed, rejected; /* records since the start */
};

struct rejects_streak {
    char *label;
    const struct decode *decode; /* borrowed */
    struct text sample;          /* one of its records; empty: there is none */
    enum reject_reason reason;   /* the most frequent one of its newest records */
    int64_t begun_ms, noted_ms;  /* monotonic times of its first and newest records */
    int64_t begun_wall_ms;
    int64_t records;
    size_t source; /* index of its source */
    bool is_told;
};

/* A range that was counted. */
struct rejects_range {
    size_t source;     /* index of its source */
    const char *label; /* path of the log, or the topic */
    const struct decode *decode;
    const struct books *books;
    int64_t records;     /* rejected since its last record that was parsed, without tombstones */
    struct slice sample; /* one of them; empty: there is none */
};

struct rejects {
    pthread_mutex_t lock;
    const struct clock *clock;
    struct fit *fit;
    struct rejects_sample list[REJECT_COUNT][REJECTS_EACH];
    uint64_t noted[REJECT_COUNT]; /* number of samples noted so far */
    struct rejects_source *sources;
    size_t source_count, source_capacity;
    struct rejects_streak streaks[REJECTS_STREAKS_MAX];
    size_t streak_count;
};

void rejects_init(struct rejects *rj, const struct clock *clock, size_t line_max);
void rejects_fini(struct rejects *rj);
/* Notes `bytes`, a line or element of the record `r`, that `decode` rejected. `r` names the file by its
 * topic, with RECORD_NO_PARTITION. Everything is copied. */
void rejects_note(struct rejects *rj, const struct decode *decode, const struct record *r, struct slice bytes,
                  struct reject why);
/* Adds a source; the first one has the index 0. */
void rejects_add_source(struct rejects *rj, const char *name);
void rejects_note_range(struct rejects *rj, const struct rejects_range *range);
/* Adds the fields of a log line about the next streak that is due and was not told yet; false: there is
 * none. */
bool rejects_tell(struct rejects *rj, struct text *fields);
/* Adds a line for each streak that was told and goes on. It has no path: /readyz is for anyone. */
void rejects_warn(struct rejects *rj, struct text *out);
/* Adds {"rejected":N,"reasons":[{"reason":"status","help":"…","records":N,"samples":[…]},…]}: reasons that
 * have records, samples newest first. `counts`: records rejected since the start, by reason. */
void rejects_write(struct rejects *rj, const int64_t counts[REJECT_COUNT], struct text *out);
