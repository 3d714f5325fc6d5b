#include "store/mongo/admin/dump.h"

#include "base/clock.h"
#include "base/mem.h"
#include "store/backup.h"
#include "store/mongo/raw/place.h"
#include "store/mongo/wire/field.h"

#define XXH_INLINE_ALL
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define OPEN_FILES     16
#define BUFFER_BYTES   ((size_t)1 << 20)
#define DOCUMENT_MAX   ((uint32_t)48 << 20) /* the most that a server sends */
#define METADATA_BYTES ((size_t)16 << 20)

void mongo_dump_fini(struct mongo_dump *d)
{
    free(d->list);
    *d = (struct mongo_dump){0};
}

const struct mongo_dump_entry *mongo_dump_find(const struct mongo_dump *d, const char *database,
                                               const char *collection)
{
    for (size_t i = 0; i < d->count; i++) {
        if (strcmp(d->list[i].place.database, database) == 0 &&
            strcmp(d->list[i].place.collection, collection) == 0)
            return &d->list[i];
    }
    return NULL;
}

/* The path of a file of a collection, DIR/DATABASE/COLLECTION and `end`. */
static bool join(char path[BACKUP_PATH_BYTES], const struct mongo_dump *d, const struct mongo_place *place,
                 const char *end, struct err *e)
{
    int n = snprintf(path, BACKUP_PATH_BYTES, "%s/%s/%s%s", d->dir, place->database, place->collection, end);
    bool fits = n > 0 && n < BACKUP_PATH_BYTES && strchr(place->collection, '/') == NULL;
    return fits ||
           err_set(e, EX_CANTCREAT, "no file can have the name %.200s: it is too long, or has a /", path);
}

static bool fail_file(const char *what, const char *path, struct err *e)
{
    int error = errno;
    return err_set_retryable(e, EX_IOERR, "cannot %s %s: %s", what, path, strerror(error));
}

/* ---- writing */

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    (void)status, (void)kind, (void)at;
    return remove(path);
}

bool mongo_dump_delete(const char *dir, struct err *e)
{
    return nftw(dir, remove_one, OPEN_FILES, FTW_DEPTH | FTW_PHYS) == 0 || fail_file("delete", dir, e);
}

bool mongo_dump_make_directory(const char *dir, struct err *e)
{
    if (access(dir, F_OK) == 0 && !mongo_dump_delete(dir, e))
        return false;
    return mkdir(dir, 0750) == 0 || err_set(e, errno == EACCES || errno == EROFS ? EX_NOPERM : EX_CANTCREAT,
                                            "cannot create %s: %s", dir, strerror(errno));
}

bool mongo_dump_create(struct mongo_dump *d, const struct mongo_place *place, struct mongo_dump_file *f,
                       struct err *e)
{
    *f = (struct mongo_dump_file){.entry.place = *place};
    if (!join(f->path, d, place, ".bson", e))
        return false;
    char *name = strrchr(f->path, '/');
    *name = '\0';
    if (mkdir(f->path, 0750) != 0 && errno != EEXIST)
        return fail_file("create", f->path, e);
    *name = '/';
    f->file = fopen(f->path, "wbe");
    if (f->file == NULL)
        return fail_file("create", f->path, e);
    setvbuf(f->file, NULL, _IOFBF, BUFFER_BYTES);
    f->hash = XXH3_createState();
    ASSERT(f->hash != NULL && XXH3_64bits_reset(f->hash) == XXH_OK);
    return true;
}

bool mongo_dump_put(struct mongo_dump_file *f, const bson_t *document, struct err *e)
{
    const uint8_t *bytes = bson_get_data(document);
    XXH3_64bits_update(f->hash, bytes, document->len);
    f->entry.documents++;
    f->entry.bytes += document->len;
    return fwrite(bytes, 1, document->len, f->file) == document->len || fail_file("write", f->path, e);
}

bool mongo_dump_end(struct mongo_dump *d, struct mongo_dump_file *f, bool good, struct err *e)
{
    if (f->file == NULL)
        return good;
    if (good && (fflush(f->file) != 0 || fsync(fileno(f->file)) != 0))
        good = fail_file("write", f->path, e);
    if (fclose(f->file) != 0 && good)
        good = fail_file("write", f->path, e);
    f->file = NULL;
    f->entry.hash = XXH3_64bits_digest(f->hash);
    XXH3_freeState(f->hash);
    if (!good)
        return false;
    d->list = xgrow(d->list, &d->capacity, d->count + 1, sizeof *d->list);
    d->list[d->count++] = f->entry;
    return true;
}

static bool write_json(const char *path, const bson_t *document, struct err *e)
{
    char *json = bson_as_canonical_extended_json(document, NULL);
    FILE *file = fopen(path, "wbe");
    bool good = file != NULL && fputs(json, file) >= 0 && fputc('\n', file) != EOF && fflush(file) == 0 &&
                fsync(fileno(file)) == 0;
    if (!good)
        fail_file("write", path, e);
    if (file != NULL)
        fclose(file);
    bson_free(json);
    return good;
}

bool mongo_dump_put_metadata(const struct mongo_dump *d, const struct mongo_place *place,
                             const bson_t *metadata, struct err *e)
{
    char path[BACKUP_PATH_BYTES];
    return join(path, d, place, ".metadata.json", e) && write_json(path, metadata, e);
}

static void put_entry(const struct mongo_dump_entry *entry, bson_t *to)
{
    char hash[24];
    snprintf(hash, sizeof hash, "%016" PRIx64, entry->hash);
    BCON_APPEND(to, "database", BCON_UTF8(entry->place.database), "collection",
                BCON_UTF8(entry->place.collection), "documents", BCON_INT64((int64_t)entry->documents),
                "bytes", BCON_INT64((int64_t)entry->bytes), "xxh3", BCON_UTF8(hash));
}

/* File names are durable only when their directory is synced, too. */
static bool sync_directories(const struct mongo_dump *d, struct err *e)
{
    bool good = true;
    for (size_t i = 0; good && i < d->count; i++) {
        const char *database = d->list[i].place.database;
        char path[BACKUP_PATH_BYTES];
        bool is_first = i == 0 || strcmp(d->list[i - 1].place.database, database) != 0;
        snprintf(path, sizeof path, "%s/%s", d->dir, database); /* it fits: a file in it was made */
        good = !is_first || backup_sync(path, e);
    }
    return good && backup_sync(d->dir, e);
}

bool mongo_dump_put_names(const struct mongo_dump *d, int64_t taken_ms, struct err *e)
{
    char path[BACKUP_PATH_BYTES];
    bson_t names = BSON_INITIALIZER, files, one;
    BSON_APPEND_INT32(&names, "format", MONGO_DUMP_FORMAT);
    BSON_APPEND_UTF8(&names, "database", d->database);
    BSON_APPEND_DATE_TIME(&names, "taken", taken_ms);
    BSON_APPEND_ARRAY_BEGIN(&names, "files", &files);
    for (size_t i = 0; i < d->count; i++) {
        char room[MONGO_KEY_BYTES];
        bson_append_document_begin(&files, mongo_array_key(i, room), -1, &one);
        put_entry(&d->list[i], &one);
        bson_append_document_end(&files, &one);
    }
    bson_append_array_end(&names, &files);
    snprintf(path, sizeof path, "%s/" MONGO_DUMP_NAME, d->dir);
    bool good = write_json(path, &names, e) && sync_directories(d, e);
    bson_destroy(&names);
    return good;
}

/* ---- reading */

static bool read_json(const char *path, bson_t *document, struct err *e)
{
    bson_error_t error;
    char *json = xmalloc(METADATA_BYTES);
    FILE *file = fopen(path, "rbe");
    bson_init(document);
    size_t len = file != NULL ? fread(json, 1, METADATA_BYTES, file) : 0;
    bool good = file != NULL && !ferror(file);
    if (!good)
        err_set(e, errno == ENOENT ? EX_NOINPUT : EX_IOERR, "cannot read %s: %s", path, strerror(errno));
    if (file != NULL)
        fclose(file);
    if (good) {
        bson_destroy(document);
        good = bson_init_from_json(document, json, (ssize_t)len, &error);
        if (!good) {
            bson_init(document);
            err_set(e, EX_DATAERR, "%s is damaged: %s", path, error.message);
        }
    }
    free(json);
    return good;
}

static void take_entries(struct mongo_dump *d, const bson_t *names)
{
    bson_iter_t at;
    for (bool more = mongo_begin_members(names, "files", &at); more && bson_iter_next(&at);) {
        bson_t file = BSON_INITIALIZER;
        (void)mongo_take_document(&at, &file);
        struct mongo_dump_entry entry = {.documents = (uint64_t)mongo_number_at(&file, "documents", 0),
                                         .bytes = (uint64_t)mongo_number_at(&file, "bytes", 0),
                                         .hash = strtoull(mongo_text_at(&file, "xxh3"), NULL, 16)};
        struct mongo_place *place = &entry.place;
        snprintf(place->database, sizeof place->database, "%s", mongo_text_at(&file, "database"));
        snprintf(place->collection, sizeof place->collection, "%s", mongo_text_at(&file, "collection"));
        d->list = xgrow(d->list, &d->capacity, d->count + 1, sizeof *d->list);
        d->list[d->count++] = entry;
    }
}

bool mongo_dump_open(struct mongo_dump *d, const char *dir, struct err *e)
{
    char path[BACKUP_PATH_BYTES];
    bson_t names;
    *d = (struct mongo_dump){.dir = dir};
    int n = snprintf(path, sizeof path, "%s/" MONGO_DUMP_NAME, dir);
    if (n < 0 || n >= (int)sizeof path)
        return err_set(e, EX_NOINPUT, "%.200s: the path is too long", dir);
    bool good = read_json(path, &names, e);
    if (!good && e->code == EX_NOINPUT)
        err_set(e, EX_NOINPUT,
                "%s is no backup that `tallyd admin backup` ended: it has no " MONGO_DUMP_NAME
                "; what mongodump made, mongorestore puts back",
                dir);
    d->format = mongo_number_at(&names, "format", 0);
    if (good && (d->format < 1 || d->format > MONGO_DUMP_FORMAT))
        good = err_set(e, EX_DATAERR, "%s is of another version of tallyd: restore it by that", path);
    snprintf(d->database, sizeof d->database, "%s", mongo_text_at(&names, "database"));
    if (good)
        take_entries(d, &names);
    if (good && mongo_dump_find(d, d->database, MONGO_LEDGER) == NULL)
        good = err_set(e, EX_DATAERR, "%s is damaged: it names no ledger", path);
    bson_destroy(&names);
    return good;
}

struct reading {
    FILE *file;
    char path[BACKUP_PATH_BYTES];
    XXH3_state_t *hash;
    uint64_t documents, read, taken; /* `taken`: bytes of the documents */
};

static bool damaged(const struct reading *r, const char *why, struct err *e)
{
    return err_set(e, EX_DATAERR, "%s is damaged: %s; take another backup", r->path, why);
}

/* Reads the next bytes. It is asked for more only while a document is not whole. */
static ssize_t read_bytes(void *context, void *bytes, size_t room)
{
    struct reading *r = context;
    if (r->read - r->taken >= DOCUMENT_MAX)
        return -1;
    const size_t len = fread(bytes, 1, room, r->file);
    XXH3_64bits_update(r->hash, bytes, len);
    r->read += len;
    return (ssize_t)len;
}

static bool read_all(struct reading *r, mongo_dump_fn *fn, void *context, struct err *e)
{
    bson_reader_t *reader = bson_reader_new_from_handle(r, read_bytes, NULL);
    const bson_t *document;
    bool good = true, at_end = false;
    while (good && (document = bson_reader_read(reader, &at_end)) != NULL) {
        r->documents++;
        r->taken += document->len;
        good = bson_validate(document, BSON_VALIDATE_NONE, NULL) ? fn == NULL || fn(context, document, e)
                                                                 : damaged(r, "a document is no BSON", e);
    }
    bson_reader_destroy(reader);
    if (good && ferror(r->file))
        return fail_file("read", r->path, e);
    return good && (at_end || damaged(r, "a document of no length that can be", e));
}

bool mongo_dump_read(const struct mongo_dump *d, const struct mongo_dump_entry *entry, mongo_dump_fn *fn,
                     void *context, struct err *e)
{
    struct reading r = {.file = NULL};
    if (!join(r.path, d, &entry->place, ".bson", e))
        return false;
    r.file = fopen(r.path, "rbe");
    if (r.file == NULL)
        return err_set(e, EX_DATAERR, "cannot read %s: %s; take another backup", r.path, strerror(errno));
    setvbuf(r.file, NULL, _IOFBF, BUFFER_BYTES);
    r.hash = XXH3_createState();
    ASSERT(r.hash != NULL && XXH3_64bits_reset(r.hash) == XXH_OK);
    bool good = read_all(&r, fn, context, e);
    if (good && (r.documents != entry->documents || r.read != entry->bytes ||
                 XXH3_64bits_digest(r.hash) != entry->hash))
        good = damaged(&r, "it is not as " MONGO_DUMP_NAME " says (checksum)", e);
    XXH3_freeState(r.hash);
    fclose(r.file);
    return good;
}

bool mongo_dump_read_metadata(const struct mongo_dump *d, const struct mongo_dump_entry *entry,
                              bson_t *metadata, struct err *e)
{
    char path[BACKUP_PATH_BYTES];
    if (join(path, d, &entry->place, ".metadata.json", e) && access(path, F_OK) == 0)
        return read_json(path, metadata, e);
    bson_init(metadata);
    return true;
}
