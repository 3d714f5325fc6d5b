#include "daemon/count/dead_letters.h"

#include "base/check.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "daemon/count/rejects_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define DEAD_LETTER_HEADERS   6
/* Bytes left of a dead letter that is larger than its topic allows. */
#define DEAD_LETTER_CUT_BYTES ((size_t)64 << 10)
#define DEAD_LETTER_NUMBER    24

struct dead_letter_queue {
    struct kafka_producer *producer; /* NULL: dead letters go to the file */
    struct rejects_file file;        /* open if `producer` is NULL */
    struct text lines;               /* lines for the file, before they are written */
};

/* Header of a dead letter, before its bytes: topic, key, value. */
struct dead_letter {
    struct reject why;
    int32_t partition;
    int64_t offset;
    size_t topic_len, key_len, value_len;
    bool has_key;
};

void dead_letters_add(struct dead_letters *l, const struct record *r, struct slice bytes, struct reject why)
{
    struct dead_letter letter = {.why = why,
                                 .partition = r->partition,
                                 .offset = r->offset,
                                 .topic_len = r->topic.len,
                                 .key_len = r->key.len,
                                 .value_len = bytes.len,
                                 .has_key = r->key.ptr != NULL};
    text_add(&l->bytes, (const char *)&letter, sizeof letter);
    text_add(&l->bytes, r->topic.ptr, r->topic.len);
    if (r->key.len > 0)
        text_add(&l->bytes, r->key.ptr, r->key.len);
    if (bytes.len > 0)
        text_add(&l->bytes, bytes.ptr, bytes.len);
    l->count++;
}

void dead_letters_clear(struct dead_letters *l)
{
    text_clear(&l->bytes);
    l->count = 0;
}

void dead_letters_fini(struct dead_letters *l)
{
    text_fini(&l->bytes);
}

/* Read the dead letter at *at, and find its bytes; *at moves behind it. */
static struct dead_letter take_dead_letter(const struct dead_letters *l, size_t *at, struct slice *topic,
                                           struct slice *key, struct slice *value)
{
    struct dead_letter letter;
    const char *p = l->bytes.ptr + *at;
    memcpy(&letter, p, sizeof letter);
    p += sizeof letter;
    *topic = slice_of(p, letter.topic_len);
    *key = slice_of(letter.has_key ? p + letter.topic_len : NULL, letter.key_len);
    *value = slice_of(p + letter.topic_len + letter.key_len, letter.value_len);
    *at += sizeof letter + letter.topic_len + letter.key_len + letter.value_len;
    return letter;
}

bool dead_letter_queue_open(struct dead_letter_queue **box, const struct config *c,
                            const struct kafka_options *options, struct err *e)
{
    *box = NULL;
    if (c->rejects.topic == NULL && c->rejects.file == NULL)
        return true;
    struct dead_letter_queue *b = xcalloc(1, sizeof *b);
    b->file.fd = -1;
    bool good = true;
    if (c->rejects.topic != NULL) {
        b->producer = kafka_producer_open(options, c->rejects.topic, e);
        good = b->producer != NULL;
    } else {
        good = rejects_file_open(&b->file, c->rejects.file, e);
    }
    if (!good) {
        dead_letter_queue_close(b);
        return false;
    }
    *box = b;
    return true;
}

void dead_letter_queue_close(struct dead_letter_queue *box)
{
    if (box == NULL)
        return;
    kafka_producer_close(box->producer);
    rejects_file_close(&box->file);
    text_fini(&box->lines);
    free(box);
}

static bool produce(struct dead_letter_queue *box, const struct dead_letter *letter, struct slice topic,
                    struct slice key, struct slice value, size_t value_max, struct err *e)
{
    char column[DEAD_LETTER_NUMBER], partition[DEAD_LETTER_NUMBER], offset[DEAD_LETTER_NUMBER],
        bytes[DEAD_LETTER_NUMBER];
    bool is_cut = value.len > value_max;
    snprintf(column, sizeof column, "%zu", letter->why.column);
    partition[0] = '\0';
    if (letter->partition != RECORD_NO_PARTITION)
        snprintf(partition, sizeof partition, "%d", letter->partition);
    snprintf(offset, sizeof offset, "%" PRId64, letter->offset);
    snprintf(bytes, sizeof bytes, "%zu", value.len);
    const struct kafka_header headers[DEAD_LETTER_HEADERS] = {
        {"tallyd.reason", slice_text(reject_name(letter->why.reason))},
        {"tallyd.column", slice_text(column)},
        {"tallyd.topic", topic},
        {"tallyd.partition", slice_text(partition)},
        {"tallyd.offset", slice_text(offset)},
        {"tallyd.bytes", slice_text(bytes)}, /* must be the last: only cut letters have it */
    };
    if (is_cut)
        value.len = value_max;
    return kafka_produce(box->producer, key, value, headers, DEAD_LETTER_HEADERS - !is_cut, e);
}

static void add_line(struct text *lines, const struct dead_letter *letter, struct slice topic,
                     struct slice value)
{
    text_add(lines, topic.ptr, topic.len);
    if (letter->partition != RECORD_NO_PARTITION)
        text_printf(lines, "/%d/", letter->partition);
    else
        text_putc(lines, ':');
    text_printf(lines, "%" PRId64 "\t%s\t%zu\t", letter->offset, reject_name(letter->why.reason),
                letter->why.column);
    while (value.len > 0) {
        const char *feed = memchr(value.ptr, '\n', value.len);
        size_t len = feed != NULL ? (size_t)(feed - value.ptr) : value.len;
        text_add(lines, value.ptr, len);
        if (feed != NULL)
            text_puts(lines, "\\n");
        value = slice_of(value.ptr + len + (feed != NULL), value.len - len - (feed != NULL));
    }
    text_putc(lines, '\n');
}

static bool write_topic(struct dead_letter_queue *box, const struct dead_letters *l, size_t value_max,
                        struct err *e)
{
    struct slice topic, key, value;
    for (size_t at = 0; at < l->bytes.len;) {
        struct dead_letter letter = take_dead_letter(l, &at, &topic, &key, &value);
        if (!produce(box, &letter, topic, key, value, value_max, e))
            return false;
    }
    return kafka_flush(box->producer, e);
}

static bool write_lines(struct dead_letter_queue *box, const struct dead_letters *l, struct err *e)
{
    struct slice topic, key, value;
    text_clear(&box->lines);
    for (size_t at = 0; at < l->bytes.len;) {
        struct dead_letter letter = take_dead_letter(l, &at, &topic, &key, &value);
        add_line(&box->lines, &letter, topic, value);
    }
    return rejects_file_append(&box->file, text_slice(&box->lines), e);
}

bool dead_letter_queue_write(struct dead_letter_queue *box, const struct dead_letters *l, struct err *e)
{
    if (box == NULL || l->count == 0)
        return true;
    failpoint(FAILPOINT_REJECTS_BEFORE);
    bool good = box->producer == NULL ? write_lines(box, l, e) : write_topic(box, l, SIZE_MAX, e);
    /* A dead letter that is too large for its topic must not stop the counting. */
    if (!good && box->producer != NULL && kafka_was_too_large(box->producer))
        good = write_topic(box, l, DEAD_LETTER_CUT_BYTES, e) ||
               (kafka_was_too_large(box->producer) && write_topic(box, l, 0, e));
    if (good)
        failpoint(FAILPOINT_REJECTS_AFTER);
    return good;
}
