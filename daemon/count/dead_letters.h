/* dead_letters.h - dead letters: records that cannot be counted go to a topic, to a file, or nowhere, as
 * configured.
 *
 *   topic  a message under the record's key. Its value is the whole record if decoders unwrap it, else the
 *          rejected line or element. The headers tallyd.reason, tallyd.column, tallyd.topic,
 *          tallyd.partition and tallyd.offset say why, and where it came from. If it came from a file,
 *          tallyd.topic is the path, and tallyd.partition is empty
 *   file   a line: TOPIC/PARTITION/OFFSET <tab> REASON <tab> COLUMN <tab> BYTES. A line feed becomes \n. If
 *          the record came from a file, the line begins with PATH:OFFSET
 *
 * If the topic refuses a dead letter as too large, its value is cut to 64 KiB, or else to nothing. The header
 * tallyd.bytes then gives its original length.
 *
 * Durable : dead_letter_queue_write() returns when they are on disk (file) or acknowledged by the brokers
 *           (topic). Only then is their batch applied. After a crash in between they are written again: the
 *           *count* of rejected records is exact, but a dead letter may repeat. A tombstone is not one.
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
