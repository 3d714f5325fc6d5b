/* letters.h - dead letters: records that cannot be counted go to a topic, to a file, or nowhere, as
 * configured.
 *
 *   topic  the message as it came if decoders unwrap it, else each rejected line or element; under its key,
 *          with the headers tallyd.reason, tallyd.column, tallyd.topic, tallyd.partition, tallyd.offset; of a
 *          line of a file the topic is its path, and the partition is empty
 *   file   TOPIC/PARTITION/OFFSET <tab> REASON <tab> COLUMN <tab> BYTES, a line each; a line feed becomes \n;
 *          PATH:OFFSET of the line of a file
 *
 * If the topic refuses a dead letter as too large, its value is cut to LETTER_CUT_BYTES, or else to nothing.
 * The header tallyd.bytes then gives its original length.
 *
 * Durable : letter_box_write() returns when they are on disk (file) or acknowledged by the brokers (topic).
 *           Only then is their batch applied. After a crash in between they are written again: the *count* of
 *           rejected records is exact, but a dead letter may repeat. A tombstone is no dead letter.
 * Memory  : struct letters holds the dead letters of one batch, in order. The ingest thread that fills it
 *           seals at LETTERS_BYTES_MAX.
 * Threads : a struct letters belongs to one thread at a time; struct letter_box belongs to the writer.
 */
#pragma once

#include "config/config.h"
#include "ingest/kafka/kafka.h"
#include "ingest/record.h"
#include "ingest/reject.h"

#define LETTERS_BYTES_MAX ((size_t)16 << 20)

struct letters {
    struct text bytes; /* all dead letters, one after the other */
    size_t count;
};

void letters_add(struct letters *l, const struct record *r, struct slice bytes, struct reject why);
void letters_clear(struct letters *l);
void letters_fini(struct letters *l);

struct letter_box;

/* *box is NULL if the configuration wants no dead letters. */
bool letter_box_open(struct letter_box **box, const struct config *c, const struct kafka_options *options,
                     struct err *e) MUST_CHECK;
void letter_box_close(struct letter_box *box);
bool letter_box_write(struct letter_box *box, const struct letters *l, struct err *e) MUST_CHECK;
