#include "store/mongo/send/together.h"

#include "base/check.h"
#include "store/mongo/wire/field.h"

#define XXH_INLINE_ALL
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define SUM_MAX    (INT64_C(1) << 62) /* two numbers below it do not overflow together */
#define ROW        "_row"             /* a field while the pipeline runs; no measure's name begins with _ */
#define PATH_BYTES 256

/* An update of the chunk, in the order in which updates go together. */
struct item {
    uint64_t shape;  /* hash of the update without its numbers; 0: no pipeline does what it does */
    uint64_t change; /* hash of the update */
    size_t index;    /* in the chunk */
};

struct writing {
    const struct mongo_chunk *chunk;
    bson_t *updates;
    bool pipelines;
    struct mongo_together *together;
};

static void begin_update(struct writing *w, bson_t *one)
{
    char room[MONGO_KEY_BYTES];
    bson_append_document_begin(w->updates, mongo_array_key(w->together->count++, room), -1, one);
}

static struct slice operand_bytes(const bson_iter_t *operator)
{
    ASSERT(BSON_ITER_HOLDS_DOCUMENT(operator));
    return mongo_bytes_of(operator);
}

static struct slice change_of(const struct mongo_chunk *c, size_t i)
{
    bson_t update;
    bson_iter_t it;
    mongo_chunk_update(c, i, &update);
    ASSERT(bson_iter_init_find(&it, &update, "u"));
    return operand_bytes(&it);
}

static void begin_change(struct slice change, bson_iter_t *operator)
{
    ASSERT(bson_iter_init_from_data(operator,(const uint8_t *) change.ptr, change.len));
}

/* ---- what goes together */

static bool hash_sums(const bson_iter_t *operator, uint64_t * hash)
{
    bson_iter_t at;
    size_t count = 0;
    ASSERT(bson_iter_recurse(operator, & at));
    while (bson_iter_next(&at)) {
        if (!BSON_ITER_HOLDS_INT64(&at) || bson_iter_int64(&at) < 0 || bson_iter_int64(&at) >= SUM_MAX ||
            bson_iter_key_len(&at) >= PATH_BYTES || ++count > TOGETHER_PATHS_MAX)
            return false;
        *hash = XXH3_64bits_withSeed(bson_iter_key(&at), bson_iter_key_len(&at) + 1, *hash);
    }
    return count > 0;
}

/* A pipeline takes numbers and dates as they are; a text might be an expression. */
static bool hash_set(const bson_iter_t *operator, uint64_t * hash)
{
    bson_iter_t at;
    struct slice bytes = operand_bytes(operator);
    ASSERT(bson_iter_recurse(operator, & at));
    while (bson_iter_next(&at)) {
        if (!BSON_ITER_HOLDS_INT64(&at) && !BSON_ITER_HOLDS_DATE_TIME(&at))
            return false;
    }
    *hash = XXH3_64bits_withSeed(bytes.ptr, bytes.len, *hash);
    return true;
}

static uint64_t shape_of(struct slice change)
{
    bson_iter_t operator;
    uint64_t hash = 0;
    bool adds = false, good = true;
    begin_change(change, &operator);
    while (good && bson_iter_next(&operator)) {
        const char *name = bson_iter_key(&operator);
        if (strcmp(name, "$inc") == 0)
            good = adds = hash_sums(&operator, & hash);
        else if (strcmp(name, "$set") == 0)
            good = hash_set(&operator, & hash);
        else
            good = strcmp(name, "$setOnInsert") == 0; /* an update of many inserts nothing */
    }
    return good && adds ? hash | 1 : 0;
}

static bool same_keys(const bson_iter_t *a, const bson_iter_t *b)
{
    bson_iter_t x, y;
    ASSERT(bson_iter_recurse(a, &x) && bson_iter_recurse(b, &y));
    while (bson_iter_next(&x)) {
        if (!bson_iter_next(&y) || strcmp(bson_iter_key(&x), bson_iter_key(&y)) != 0)
            return false;
    }
    return !bson_iter_next(&y);
}

/* Both have a shape, and it has the same hash. */
static bool same_shape(struct slice a, struct slice b)
{
    bson_iter_t x, y;
    begin_change(a, &x);
    begin_change(b, &y);
    while (bson_iter_next(&x)) {
        if (!bson_iter_next(&y) || strcmp(bson_iter_key(&x), bson_iter_key(&y)) != 0)
            return false;
        bool adds = strcmp(bson_iter_key(&x), "$inc") == 0;
        if (adds ? !same_keys(&x, &y) : !slice_equal(operand_bytes(&x), operand_bytes(&y)))
            return false;
    }
    return !bson_iter_next(&y);
}

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->shape != y->shape)
        return x->shape < y->shape ? -1 : 1;
    if (x->change != y->change)
        return x->change < y->change ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* The end of the run of updates that have the shape of the first one. */
static size_t end_of_shape(const struct mongo_chunk *c, const struct item *items, size_t from)
{
    size_t to = from + 1;
    struct slice change = change_of(c, items[from].index);
    while (to < c->count && items[to].shape == items[from].shape &&
           (items[to].shape == 0 || same_shape(change, change_of(c, items[to].index))))
        to++;
    return to;
}

/* The end of the run of updates, before `end`, that are alike to the first one. */
static size_t end_of_alike(const struct mongo_chunk *c, const struct item *items, size_t from, size_t end)
{
    size_t to = from + 1;
    struct slice change = change_of(c, items[from].index);
    while (to < end && items[to].change == items[from].change &&
           slice_equal(change, change_of(c, items[to].index)))
        to++;
    return to;
}

/* ---- updates of many documents */

/* Appends the guard, which all updates of a batch share. */
static void append_guard(const struct mongo_chunk *c, size_t i, bson_t *to)
{
    bson_t update;
    bson_iter_t it, member;
    mongo_chunk_update(c, i, &update);
    ASSERT(bson_iter_init_find(&it, &update, "f") && bson_iter_recurse(&it, &member));
    while (bson_iter_next(&member)) {
        if (strncmp(bson_iter_key(&member), "applied.", strlen("applied.")) == 0)
            bson_append_iter(to, NULL, -1, &member);
    }
}

/* Begins the filter of several documents. */
static void begin_filter(const struct mongo_chunk *c, const size_t *which, size_t n, bson_t *one, bson_t *q)
{
    struct mongo_ids ids;
    BSON_APPEND_DOCUMENT_BEGIN(one, "q", q);
    mongo_ids_begin(&ids, q);
    for (size_t i = 0; i < n; i++)
        mongo_ids_add(&ids, slice_text(c->ids[which[i]]));
    (void)mongo_ids_end(&ids);
    append_guard(c, which[0], q);
}

static void write_alike(struct writing *w, const size_t *which, size_t n)
{
    bson_t one, q;
    begin_update(w, &one);
    begin_filter(w->chunk, which, n, &one, &q);
    bson_append_document_end(&one, &q);
    mongo_chunk_append_change(w->chunk, which[0], &one);
    BSON_APPEND_BOOL(&one, "multi", true);
    bson_append_document_end(w->updates, &one);
    w->together->many++;
}

/* The sums of several documents. */
struct sums {
    size_t documents, paths, columns;
    const char *path[TOGETHER_PATHS_MAX];
    int64_t number[TOGETHER_DIFFER_MAX][TOGETHER_PATHS_MAX]; /* by document and path */
    size_t column[TOGETHER_PATHS_MAX];                       /* paths with equal numbers share a column */
    size_t first[TOGETHER_PATHS_MAX];                        /* a path of each column */
};

static void read_sums(const struct mongo_chunk *c, size_t i, struct sums *s)
{
    bson_iter_t operator, at;
    begin_change(change_of(c, i), &operator);
    ASSERT(bson_iter_find(&operator, "$inc") && bson_iter_recurse(&operator, & at));
    for (s->paths = 0; bson_iter_next(&at); s->paths++) {
        s->path[s->paths] = bson_iter_key(&at);
        s->number[s->documents][s->paths] = bson_iter_int64(&at);
    }
    s->documents++;
}

static bool is_column(const struct sums *s, size_t path, size_t column)
{
    for (size_t d = 0; d < s->documents; d++) {
        if (s->number[d][path] != s->number[d][s->first[column]])
            return false;
    }
    return true;
}

/* Most documents have the same number for a minute, its hour and its day. */
static void find_columns(struct sums *s)
{
    s->columns = 0;
    for (size_t p = 0; p < s->paths; p++) {
        size_t column = 0;
        while (column < s->columns && !is_column(s, p, column))
            column++;
        if (column == s->columns)
            s->first[s->columns++] = p;
        s->column[p] = column;
    }
}

/* Writes { ROW: the row of the document's `_id` }. */
static void write_row(const struct mongo_chunk *c, const size_t *which, const struct sums *s, bson_t *set)
{
    bson_t at, rows, row, find = BSON_INITIALIZER, list, ids = BSON_INITIALIZER;
    char room[MONGO_KEY_BYTES];
    BSON_APPEND_DOCUMENT_BEGIN(set, ROW, &at);
    BSON_APPEND_ARRAY_BEGIN(&at, "$arrayElemAt", &list);
    BSON_APPEND_ARRAY_BEGIN(&list, "0", &rows);
    for (size_t d = 0; d < s->documents; d++) {
        bson_append_array_begin(&rows, mongo_array_key(d, room), -1, &row);
        for (size_t column = 0; column < s->columns; column++)
            bson_append_int64(&row, mongo_array_key(column, room), -1, s->number[d][s->first[column]]);
        bson_append_array_end(&rows, &row);
    }
    bson_append_array_end(&list, &rows);
    for (size_t d = 0; d < s->documents; d++)
        bson_append_utf8(&ids, mongo_array_key(d, room), -1, c->ids[which[d]], -1);
    BCON_APPEND(&find, "$indexOfArray", "[", "{", "$literal", BCON_ARRAY(&ids), "}", "$_id", "]");
    BSON_APPEND_DOCUMENT(&list, "1", &find);
    bson_append_array_end(&at, &list);
    bson_append_document_end(set, &at);
    bson_destroy(&find);
    bson_destroy(&ids);
}

/* Writes what a sum that is not there counts as: 0 if $inc would make it, else a text, which cannot be added
 * to. `path` is "$" and the path. */
static void write_nothing(const char *path, bson_t *nothing)
{
    char parent[PATH_BYTES + 1];
    bson_t and = BSON_INITIALIZER;
    BCON_APPEND(&and, "0", "{", "$eq", "[", "{", "$type", BCON_UTF8(path), "}", BCON_UTF8("missing"), "]",
                "}");
    size_t n = 1;
    for (const char *dot = strchr(path, '.'); dot != NULL; dot = strchr(dot + 1, '.'), n++) {
        char room[MONGO_KEY_BYTES];
        snprintf(parent, sizeof parent, "%.*s", (int)(dot - path), path);
        BCON_APPEND(&and, mongo_array_key(n, room), "{", "$in", "[", "{", "$type", BCON_UTF8(parent), "}",
                    "[", BCON_UTF8("object"), BCON_UTF8("missing"), "]", "]", "}");
    }
    BCON_APPEND(nothing, "$cond", "[", "{", "$and", BCON_ARRAY(&and), "}", BCON_INT64(0),
                BCON_UTF8("no number"), "]");
    bson_destroy(&and);
}

static void write_sum(const struct sums *s, size_t i, bson_t *set)
{
    char path[PATH_BYTES + 1];
    bson_t nothing = BSON_INITIALIZER;
    snprintf(path, sizeof path, "$%s", s->path[i]);
    write_nothing(path, &nothing);
    BCON_APPEND(set, s->path[i], "{", "$add", "[", "{", "$ifNull", "[", BCON_UTF8(path),
                BCON_DOCUMENT(&nothing), "]", "}", "{", "$arrayElemAt", "[", BCON_UTF8("$" ROW),
                BCON_INT32((int32_t)s->column[i]), "]", "}", "]", "}");
    bson_destroy(&nothing);
}

/* Appends what the updates set, which is the same for all. */
static void append_set(const struct mongo_chunk *c, size_t i, bson_t *to)
{
    bson_iter_t operator;
    begin_change(change_of(c, i), &operator);
    if (bson_iter_find(&operator, "$set"))
        mongo_append_members(to, &operator);
}

static void refuse_array(bson_t *q, const char *path)
{
    BCON_APPEND(q, path, "{", "$not", "{", "$type", BCON_UTF8("array"), "}", "}");
}

/* Is it the beginning of a path before the i-th one, up to a dot? */
static bool is_refused(const struct sums *s, size_t i, const char *parent, size_t len)
{
    for (size_t k = 0; k < i; k++) {
        if (strncmp(s->path[k], parent, len) == 0 && s->path[k][len] == '.')
            return true;
    }
    return false;
}

/* Leaves out documents whose sums might overflow; and those with an array where members should be, in which
 * $set changes nothing, or each element: they go by themselves, and are refused. */
static void add_limits(const struct sums *s, bson_t *q)
{
    char parent[PATH_BYTES + 1];
    refuse_array(q, "applied");
    for (size_t i = 0; i < s->paths; i++) {
        BCON_APPEND(q, s->path[i], "{", "$not", "{", "$gte", BCON_INT64(SUM_MAX), "}", "}");
        for (const char *dot = strchr(s->path[i], '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
            const size_t len = (size_t)(dot - s->path[i]);
            snprintf(parent, sizeof parent, "%.*s", (int)len, s->path[i]);
            if (!is_refused(s, i, parent, len))
                refuse_array(q, parent);
        }
    }
}

static void write_pipeline(const struct mongo_chunk *c, const size_t *which, const struct sums *s,
                           bson_t *one)
{
    bson_t row = BSON_INITIALIZER, set = BSON_INITIALIZER;
    write_row(c, which, s, &row);
    for (size_t i = 0; i < s->paths; i++)
        write_sum(s, i, &set);
    append_set(c, which[0], &set);
    BSON_APPEND_UTF8(&set, ROW, "$$REMOVE");
    BCON_APPEND(one, "u", "[", "{", "$set", BCON_DOCUMENT(&row), "}", "{", "$set", BCON_DOCUMENT(&set), "}",
                "]");
    bson_destroy(&row);
    bson_destroy(&set);
}

static void write_differing(struct writing *w, const size_t *which, size_t n)
{
    struct sums s;
    bson_t one, q;
    s.documents = s.paths = 0;
    for (size_t i = 0; i < n; i++)
        read_sums(w->chunk, which[i], &s);
    find_columns(&s);
    begin_update(w, &one);
    begin_filter(w->chunk, which, n, &one, &q);
    add_limits(&s, &q);
    bson_append_document_end(&one, &q);
    write_pipeline(w->chunk, which, &s, &one);
    BSON_APPEND_BOOL(&one, "multi", true);
    bson_append_document_end(w->updates, &one);
    w->together->is_pipeline[w->together->count - 1] = true;
    w->together->many++;
    w->together->pipelines++;
}

/* ---- the chunk */

static void write_single(struct writing *w, size_t i)
{
    bson_t one;
    begin_update(w, &one);
    mongo_chunk_write_upsert(w->chunk, i, true, &one);
    bson_append_document_end(w->updates, &one);
}

/* Writes updates of one shape that are not alike: pipelines of about equal size, or each by itself. */
static void write_rest(struct writing *w, const size_t *rest, size_t n, bool pipelines)
{
    if (!pipelines || n < TOGETHER_DIFFER_MIN) {
        for (size_t i = 0; i < n; i++)
            write_single(w, rest[i]);
        return;
    }
    size_t parts = (n + TOGETHER_DIFFER_MAX - 1) / TOGETHER_DIFFER_MAX;
    for (size_t part = 0; part < parts; part++) {
        size_t from = n * part / parts;
        write_differing(w, rest + from, n * (part + 1) / parts - from);
    }
}

static void write_shape(struct writing *w, const struct item *items, size_t from, size_t end)
{
    size_t alike[MONGO_CHUNK_UPDATES], rest[MONGO_CHUNK_UPDATES], n = 0;
    const bool pipelines = w->pipelines && items[from].shape != 0;
    for (size_t to; from < end; from = to) {
        to = end_of_alike(w->chunk, items, from, end);
        bool together = to - from >= TOGETHER_ALIKE_MIN;
        size_t alikes = 0;
        for (size_t i = from; i < to; i++) {
            if (together)
                alike[alikes++] = items[i].index;
            else
                rest[n++] = items[i].index;
        }
        if (together)
            write_alike(w, alike, alikes);
    }
    write_rest(w, rest, n, pipelines);
}

void mongo_together_write(const struct mongo_chunk *c, bool pipelines, bson_t *command,
                          struct mongo_together *t)
{
    struct item items[MONGO_CHUNK_UPDATES];
    bson_t updates;
    struct writing w = {.chunk = c, .updates = &updates, .pipelines = pipelines, .together = t};
    memset(t, 0, sizeof *t);
    for (size_t i = 0; i < c->count; i++) {
        struct slice change = change_of(c, i);
        items[i] = (struct item){shape_of(change), XXH3_64bits(change.ptr, change.len), i};
    }
    qsort(items, c->count, sizeof *items, compare_items);
    mongo_chunk_begin_command(c, command, &updates);
    for (size_t from = 0, to; from < c->count; from = to) {
        to = end_of_shape(c, items, from);
        write_shape(&w, items, from, to);
    }
    bson_append_array_end(command, &updates);
}
