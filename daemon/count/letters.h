/* letters.h - what becomes of records that cannot be counted: a topic (dead letters), a file, or nothing.
 *
 *   topic  the message as it came (of several lines or elements, those that were rejected, one by one) under
 *          its key; headers tallyd.reason, tallyd.column, tallyd.topic, tallyd.partition, tallyd.offset
 *   file   TOPIC/PARTITION/OFFSET <tab> REASON <tab> COLUMN <tab> BYTES, a line each: a line feed in it is \n
 *   What is larger than the topic takes is cut (to LETTER_CUT_BYTES, or all of it); tallyd.bytes says how
 * long it was.
 *
 * Durable : letters_write() returns when they are on disk (file) or acknowledged by the brokers (topic); only
 *           then is their batch applied. After a crash in between they are written again: the *count* of
 *           rejected records is exact, a letter may repeat. A tombstone is no letter.
 * Memory  : struct letters holds those of one batch, in order; whoever fills it seals at LETTERS_BYTES_MAX.
 * Threads : a struct letters is one thread's at a time; struct letter_box is the writer's.
 */
#pragma once

#include "config/config.h"
#include "ingest/kafka/kafka.h"
#include "ingest/record.h"
#include "ingest/reject.h"

#define LETTERS_BYTES_MAX ((size_t)16 << 20)

struct letters {
    struct text bytes; /* of all, one after the other */
    size_t count;
};

void letters_add(struct letters *l, const struct record *r, struct slice bytes, struct reject why);
void letters_clear(struct letters *l);
void letters_fini(struct letters *l);

struct letter_box;

/* NULL in *box where the configuration wants none. */
bool letter_box_open(struct letter_box **box, const struct config *c, const struct kafka_options *options,
                     struct err *e) MUST_CHECK;
void letter_box_close(struct letter_box *box);
bool letter_box_write(struct letter_box *box, const struct letters *l, struct err *e) MUST_CHECK;
