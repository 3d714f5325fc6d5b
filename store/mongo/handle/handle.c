#include "store/mongo/handle/handle.h"

#include "base/check.h"
#include "base/mem.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>
#include <stdlib.h>

/* clang-format off */
const char mongo_slots[MONGO_SLOTS][MONGO_SLOT_BYTES] = {
    "w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8", "w9", "w10", "w11", "w12", "w13", "w14",
    "w15", "w16", "w17", "w18", "w19", "w20", "w21", "w22", "w23", "w24", "w25", "w26", "w27", "w28", "w29",
    "w30", "w31", "w32", "w33", "w34", "w35", "w36", "w37", "w38", "w39", "w40", "w41", "w42", "w43", "w44",
    "w45", "w46", "w47", "w48", "w49", "w50", "w51", "w52", "w53", "w54", "w55", "w56", "w57", "w58", "w59",
    "w60", "w61", "w62", "w63",
};
/* clang-format on */

size_t mongo_slot_number(const char *name)
{
    size_t number;
    return name[0] == 'w' && mongo_name_is_number(name + 1, MONGO_SLOTS, &number) ? number : MONGO_SLOTS;
}

const char *mongo_slot_path(const char *slot, const char *name, char buf[MONGO_SLOT_PATH_BYTES])
{
    snprintf(buf, MONGO_SLOT_PATH_BYTES, "writers.%.*s.%s", MONGO_SLOT_BYTES, slot, name);
    return buf;
}

/* ---- reports */

bson_t *mongo_report_members(const struct report *r)
{
    return BCON_NEW("name", BCON_UTF8(r->name), "generation", BCON_INT32(r->generation), "definition",
                    BCON_UTF8(r->definition), MONGO_DECIMAL, BCON_BOOL(true), "v", BCON_INT32(MONGO_SCHEMA));
}

void mongo_take_report(struct mongo_store *m, const struct report *r, const char *key, bool has_zeros,
                       bool is_decimal)
{
    size_t n = m->store.report_count++;
    m->reports = xrealloc(m->reports, (n + 1) * sizeof *m->reports);
    m->more = xrealloc(m->more, (n + 1) * sizeof *m->more);
    m->reports[n] = *r;
    m->store.reports = m->reports;
    mongo_report_init(&m->more[n], r, key, has_zeros, is_decimal);
}

bool mongo_add_report(struct mongo_store *m, const struct report *r, const char *key, bool has_zeros,
                      bool is_decimal, struct err *e)
{
    struct report own;
    if (!report_read(&own, slice_text(r->name), r->generation, slice_text(r->definition), e))
        return false;
    own.series_max = r->series_max;
    memcpy(own.keep_ms, r->keep_ms, sizeof own.keep_ms);
    mongo_take_report(m, &own, key, has_zeros, is_decimal);
    return true;
}

/* ---- connections */

bool mongo_take_limits(struct mongo_store *m, struct err *e)
{
    struct mongo_limits *limits = &m->limits;
    if (!mongo_client_limits(m->client, limits, e))
        return false;
    limits->updates = limits->updates < MONGO_CHUNK_UPDATES ? limits->updates : MONGO_CHUNK_UPDATES;
    limits->bytes = limits->bytes < MONGO_CHUNK_BYTES ? limits->bytes : MONGO_CHUNK_BYTES;
    return true;
}

bool mongo_connection(struct mongo_store *m, size_t i, struct mongo_client **client, struct err *e)
{
    ASSERT(i < m->connections);
    if (i > 0 && m->others[i - 1] == NULL)
        m->others[i - 1] = mongo_client_open(m->uri, true, 0, e);
    if (i > 0 && m->others[i - 1] == NULL)
        e->retryable = true; /* the first connection could be made, and a committed batch must be applied */
    *client = i > 0 ? m->others[i - 1] : m->client;
    return *client != NULL;
}

/* ---- the handle */

struct mongo_store *mongo_new(const char *uri, bool primary, int64_t wait_max_ms, struct err *e)
{
    struct mongo_client *client = mongo_client_open(uri, primary, wait_max_ms, e);
    if (client == NULL)
        return NULL;
    struct mongo_store *m = xcalloc(1, sizeof *m);
    m->store.is_shared = true;
    m->store.clock = &clock_system;
    m->client = client;
    m->uri = xstrdup(uri);
    m->connections = MONGO_CONNECTIONS_DEFAULT;
    m->writer.is_done = true;
    mongo_names_init(&m->writer.partition_names);
    m->reader.rows = xcalloc(MONGO_ROWS_MAX, REPORT_COLUMNS_MAX * sizeof *m->reader.rows);
    m->reader.row_is_there = xcalloc(MONGO_ROWS_MAX, 1);
    return m;
}

void mongo_partition_fini(struct mongo_partition *p)
{
    free(p->key);
    free(p->until);
    for (size_t i = 0; i < p->builds_count; i++)
        builds_fini(&p->builds[i]);
    free(p->builds);
}

static void free_partitions(struct mongo_store *m)
{
    for (size_t i = 0; i < m->writer.partition_count; i++)
        mongo_partition_fini(&m->writer.partitions[i]);
    free(m->writer.partitions);
    mongo_names_fini(&m->writer.partition_names);
}

static void free_raws(struct mongo_store *m)
{
    for (size_t i = 0; i < m->raw_count; i++)
        free(m->raws[i].ready);
    free(m->raws);
    free(m->store.raws);
}

static void free_sums(struct mongo_store *m, struct mongo_sums *sums)
{
    for (size_t r = 0; sums != NULL && r < m->store.report_count; r++) {
        free(sums[r].cells.data);
        index_fini(&sums[r].index);
    }
    free(sums);
}

static void free_longer(struct mongo_store *m)
{
    struct mongo_longer *l = &m->longer;
    free_sums(m, l->fresh);
    free_sums(m, l->sums);
    for (size_t i = 0; i < l->piece_capacity; i++)
        mongo_log_fini(&l->pieces[i]);
    free(l->pieces);
    free(l->unrolled);
}

void mongo_free(struct mongo_store *m)
{
    free_longer(m);
    for (size_t r = 0; r < m->store.report_count; r++) {
        mongo_report_fini(&m->more[r]);
        report_fini(&m->reports[r]);
    }
    free_partitions(m);
    mongo_client_close(m->client);
    for (size_t i = 0; i < MONGO_CONNECTIONS_MAX - 1; i++)
        mongo_client_close(m->others[i]);
    free_raws(m);
    free(m->uri);
    mongo_log_fini(&m->batch.log);
    mongo_log_fini(&m->batch.longer);
    free(m->batch.fine);
    bson_destroy(m->batch.commit_filter);
    bson_destroy(m->batch.commit_update);
    text_fini(&m->id);
    free(m->batch.ranges);
    free(m->batch.found.key);
    free(m->reports);
    free(m->more);
    free(m->sorting.items);
    free(m->sorting.scratch);
    free(m->sorting.documents);
    free(m->making.ahead);
    free(m->sorting.cells);
    free(m->reader.unrolled.list);
    free(m->reader.rows);
    free(m->reader.row_is_there);
    sketch_work_fini(&m->reader.sketches);
    text_fini(&m->reader.packed);
    sketch_work_fini(&m->sorting.sketches);
    for (size_t t = 0; t < MONGO_TARGETS; t++)
        free(m->sorting.written[t].starts);
    free(m->sorting.periods.starts);
    free(m->crowd.slots);
    free(m->crowd.steps.list);
    free(m->crowd.drawn.list);
    arena_fini(&m->crowd.memory);
    free(m);
}
