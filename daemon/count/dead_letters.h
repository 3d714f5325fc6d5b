/* dead_letters.h - dead letters: records that cannot be counted go to a topic, to a file, or nowhere, as
 * configured.
 *
 *   topic  the message as it came if decoders unwrap it, else each rejected line or element; under its key,
 *          with the headers tallyd.reason, tallyd.column, tallyd.topic, tallyd.partition, tallyd.offset; of a
 *          line of a file the topic is its path, and the partition is empty
 *   file   TOPIC/PARTITION/OFFSET <tab> REASON <tab> COLUMN <tab> BYTES, a line each; a line feed becomes \n;
 *          PATH:OFFSET of the line of a file
 *
 * If the topic refuses a dead letter as too large, its value is cut to DEAD_LETTER_CUT_BYTES, or else to
 * nothing.
 * The header tallyd.bytes then gives its original length.
 *
 * Durable : dead_letter_queue_write() returns when they are on disk (file) or acknowledged by the brokers
 *           (topic).
 *           Only then is their batch applied. After a crash in between they are written again: the *count* of
 *           rejected records is exact, but a dead letter may repeat. A tombstone is no dead letter.
 * Memory  : struct dead_letters holds the dead letters of one batch, in order. The ingest thread that fills
 *           it seals at DEAD_LETTERS_BYTES_MAX.
 * Threads : a struct dead_letters belongs to one thread at a time; struct dead_letter_queue belongs to the
 *           writer.
 */
#pragma once

#include "config/config.h"
#include "ingest/kafka/kafka.h"
#include "ingest/record.h"
#include "ingest/reject.h"

#define DEAD_LETTERS_BYTES_MAX ((size_t)16 << 20)

struct dead_letters {
    struct text bytes; /* all dead letters, one after the other */
    size_t count;
};

void dead_letters_add(struct dead_letters *l, const struct record *r, struct slice bytes, struct reject why);
void dead_letters_clear(struct dead_letters *l);
void dead_letters_fini(struct dead_letters *l);

struct dead_letter_queue;

/* *box is NULL if the configuration wants no dead letters. */
bool dead_letter_queue_open(struct dead_letter_queue **box, const struct config *c,
                            const struct kafka_options *options, struct err *e) MUST_CHECK;
void dead_letter_queue_close(struct dead_letter_queue *box);
bool dead_letter_queue_write(struct dead_letter_queue *box, const struct dead_letters *l,
                             struct err *e) MUST_CHECK;
