/* Which files of a log are there, and which known file is each? */
#include "base/clock.h"
#include "base/mem.h"
#include "daemon/file/survey_internal.h"
#include "ingest/file/input_unpack.h"
#include "ingest/file/reader.h"
#include "ingest/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Other logs whose rotated files one look lists at most. A file that may be a further one's is a new one. */
#define FAMILIES_MAX 64

/* ---- which file is it? */

/* Is it the path of another log? That log's files may begin as this one's do. */
static bool is_another(const struct look *l, const char *path)
{
    return strcmp(path, l->log->path) != 0 && l->log->is_log(l->log->context, path);
}

/* Does the file have the bytes that were counted? *has_more: it has others behind them. */
static bool continues(const struct family_file *file, const struct known_file *f, struct reader *rd,
                      bool *has_more)
{
    struct err ignored;
    struct block block;
    uint32_t len;
    *has_more = false;
    if (file->is_packed && f->head.len == IDENTITY_PREFIX_BYTES_MAX &&
        input_unpack_has_size(file->path, f->to))
        return true; /* no need to unpack it */
    if ((!file->is_packed && file->size < f->to) || !reader_skip(rd, f->to, &ignored))
        return false;
    uint64_t hash = identity_tail(reader_tail(rd), &len);
    if (len != f->tail_len || hash != f->tail_hash)
        return false;
    block_init(&block, IDENTITY_TAIL_BYTES_MAX);
    *has_more =
        file->is_packed ? reader_next(rd, &block, -1, &ignored) != READER_END : reader_peek(rd, 1).len > 0;
    block_fini(&block);
    return true;
}

/* Open a file to compare it. If it may be opened later, the look fails: it must not pass for another file. */
static struct input *open_file(struct look *l, const char *path, struct err *e)
{
    struct input *in = input_open(path, e);
    if (in == NULL && e->retryable)
        l->trouble = *e;
    return in;
}

/* Is it this known file? Pre: it begins as that. */
static bool is_it(struct look *l, const struct sighting *s, const struct known_file *f, bool *has_more)
{
    struct err ignored;
    *has_more = false;
    struct input *in = open_file(l, s->file.path, &ignored);
    if (in == NULL)
        return false;
    struct reader *rd = reader_new(in, IDENTITY_TAIL_BYTES_MAX, LAST_LINE_TAKE);
    bool is = continues(&s->file, f, rd, has_more);
    reader_free(rd);
    input_close(in);
    return is;
}

static bool begins_as(struct identity id, struct identity whole, struct slice head)
{
    return id.len > 0 && (id.len == whole.len ? id.hash == whole.hash : identity_matches(id, head));
}

/* Is the known file at this path? */
static bool is_at(struct look *l, const char *path, const struct known_file *f)
{
    struct family_file file = {0};
    struct stat status;
    struct slice head;
    struct err ignored;
    bool has_more, is = false;
    struct input *in = open_file(l, path, &ignored);
    if (in == NULL)
        return false;
    struct reader *rd = reader_new(in, IDENTITY_TAIL_BYTES_MAX, LAST_LINE_TAKE);
    if (stat(path, &status) == 0 && reader_head(rd, &head, &ignored)) {
        file.path = (char *)path;
        file.size = status.st_size;
        file.is_packed = !input_can_grow(in);
        is = identity_matches(f->head, head) && continues(&file, f, rd, &has_more);
    }
    reader_free(rd);
    input_close(in);
    return is;
}

/* ---- whose is it? */

/* The log of which the path is, or one of whose rotated files it is by its name, unless that is this log. */
static bool find_other(const struct look *l, const char *path, struct survey_owner *owner)
{
    return strcmp(path, l->log->path) != 0 &&
           (is_another(l, path) || !family_holds(l->log->path, l->log->olddir, path)) &&
           l->log->find_owner(l->log->context, path, owner) && strcmp(owner->path, l->log->path) != 0;
}

bool look_is_of_other(const struct look *l, const char *path)
{
    struct survey_owner owner;
    return find_other(l, path, &owner);
}

/* Has another log a known file still, under any name? Not if it is the file that was sighted here: names of
 * two logs may overlap. */
static bool has_it(struct look *l, const struct survey_owner *other, const struct sighting *s,
                   const struct known_file *f)
{
    struct family family;
    struct err e;
    if (is_at(l, f->label, f))
        return true;
    if (l->families++ >= FAMILIES_MAX)
        return true;
    if (!family_list(&family, other->path, other->olddir, &e)) {
        l->trouble = e.retryable ? e : l->trouble;
        return false;
    }
    bool has = false;
    for (size_t i = family.count; i > 0 && !has; i--) {
        const struct family_file *file = &family.files[i - 1];
        bool is_this = file->device == s->file.device && file->inode == s->file.inode;
        has = !is_this && (file->is_packed || file->size >= f->to) && is_at(l, file->path, f);
    }
    family_fini(&family);
    return has;
}

/* It begins as a known file, and is not it: perhaps a copy that misses its end. */
static void note_alike(const struct look *l, struct sighting *s, struct known_file *f)
{
    s->alike = f;
    s->is_spoiled = true;
    if (s != &l->at_path && !s->file.is_packed && s->file.size < f->to &&
        (s->cut_of == NULL || s->cut_of->to < f->to))
        s->cut_of = f;
}

/* Does another host follow it? */
static bool is_others(const struct look *l, const struct known_file *f)
{
    return f->state == RANGE_FOLLOWED && f->host != 0 && f->host != l->log->host;
}

/* One source has one reader. */
static bool is_read_elsewhere(const struct look *l, const struct sighting *s, const struct known_file *f)
{
    return l->log->is_read_elsewhere(l->log->context, l->log->path, f->source, s->file.device, s->file.inode);
}

/* Another host's file is this one only if the store knows its whole head: then this host had another name, or
 * both hosts see one file. A short head may be a header that many files share. */
static void compare(struct look *l, struct sighting *s, struct known_file *f, struct slice head)
{
    bool has_more, is_own = strcmp(f->label, l->log->path) == 0;
    bool begins_so = begins_as(f->head, s->head, head);
    if (begins_so && (look_is_of_other(l, f->label) || is_read_elsewhere(l, s, f)))
        return;
    bool is = begins_so && is_it(l, s, f, &has_more);
    if (is_others(l, f) && (!is || f->head.len < IDENTITY_PREFIX_BYTES_MAX)) {
        s->others = is ? f : s->others;
        return;
    }
    if (is) {
        if (has_more && f->head.len < IDENTITY_PREFIX_BYTES_MAX && survey_is_whole(l->survey, f))
            return; /* it only begins alike */
        if (s->known != NULL && s->known->to > f->to)
            return;
        s->known = f;
        s->has_more = has_more;
    } else if (begins_so && f->head.len == IDENTITY_PREFIX_BYTES_MAX) {
        note_alike(l, s, f);
    } else if (is_own && (begins_so || (s->head.len < f->head.len && begins_as(f->first, s->head, head)))) {
        s->alike = f;
    }
}

/* Was the file moved here from another log? Pre: it is none of this log's known files. */
static void compare_other(struct look *l, struct sighting *s, struct known_file *f, struct slice head)
{
    struct survey_owner other;
    bool has_more;
    if (!begins_as(f->head, s->head, head) || !find_other(l, f->label, &other) || is_others(l, f) ||
        is_read_elsewhere(l, s, f) || (s->known != NULL && s->known->to > f->to))
        return;
    if (!is_it(l, s, f, &has_more) || has_it(l, &other, s, f))
        return;
    s->known = f;
    s->has_more = has_more;
}

static bool is_done(const struct survey *s, const struct family_file *f)
{
    for (size_t i = 0; i < s->done_count; i++) {
        if (s->done[i].device == f->device && s->done[i].inode == f->inode && s->done[i].size == f->size)
            return true;
    }
    return false;
}

/* Read the first bytes of a file, unpacked. Its name need not say that it is packed. */
static struct slice read_head(struct look *l, struct family_file *file, char buf[IDENTITY_PREFIX_BYTES_MAX])
{
    struct err e;
    size_t got = 1, len = 0;
    struct input *in = open_file(l, file->path, &e);
    bool good = in != NULL;
    while (good && got > 0 && len < IDENTITY_PREFIX_BYTES_MAX) {
        good = input_read(in, buf + len, IDENTITY_PREFIX_BYTES_MAX - len, &got, &e);
        len += good ? got : 0;
    }
    file->is_packed = file->is_packed || (good && !input_can_grow(in));
    input_close(in);
    if (!good && e.code != EX_NOINPUT && !e.retryable && l->unreadable++ == 0)
        l->unreadable_why = e;
    return slice_of(buf, len);
}

static void sight(struct look *l, struct sighting *s)
{
    char buf[IDENTITY_PREFIX_BYTES_MAX];
    struct slice head = s->file.size > 0 ? read_head(l, &s->file, buf) : slice_of(NULL, 0);
    if (head.len == 0)
        return;
    s->head = identity_of(head);
    s->bytes = memcpy(xmalloc(head.len), head.ptr, head.len);
    s->has_more = true;
    for (size_t i = 0; i < l->known->count; i++)
        compare(l, s, &l->known->files[i], head);
    bool is_own = s->known != NULL || s->cut_of != NULL;
    for (size_t i = 0; i < l->known->count && !is_own; i++)
        compare_other(l, s, &l->known->files[i], head);
    if (s->known == NULL && s->cut_of != NULL) {
        s->known = s->cut_of;
        s->has_more = false;
    }
    if (s->known != NULL && s->known->head.len == IDENTITY_PREFIX_BYTES_MAX)
        s->is_spoiled = false; /* it is another known file, which only begins alike */
    bool was_read = is_done(l->survey, &s->file);
    s->has_more = s->has_more && !was_read;
    s->is_read =
        was_read || (l->log->input != NULL && input_is(l->log->input, s->file.device, s->file.inode));
}

/* ---- is the file in the log's place the next one? */

bool survey_came_next(const char *path, const char *olddir, const struct input *in, struct identity head)
{
    char buf[IDENTITY_PREFIX_BYTES_MAX];
    struct look l = {0};
    struct family family;
    struct err ignored;
    if (!family_list(&family, path, olddir, &ignored))
        return false;
    bool is_listed = false;
    for (size_t i = 0; i < family.count && !is_listed; i++)
        is_listed = input_is(in, family.files[i].device, family.files[i].inode);
    struct family_file *newest = family.count > 0 ? &family.files[family.count - 1] : NULL;
    bool is_newest = newest != NULL && newest->number <= 1 &&
                     (input_is(in, newest->device, newest->inode) ||
                      (newest->is_packed && identity_matches(head, read_head(&l, newest, buf))));
    bool is_elsewhere = !is_listed && input_has_name(in);
    family_fini(&family);
    return newest == NULL || is_newest || is_elsewhere;
}

/* ---- what is there? */

bool look_is_log(const struct look *l, const struct family_file *f)
{
    return is_another(l, f->path) || (l->at_path.file.path != NULL && f->device == l->at_path.file.device &&
                                      f->inode == l->at_path.file.inode);
}

static bool sight_log(struct look *l, struct err *e)
{
    struct stat status;
    bool is_there;
    if (!family_look(l->log->path, &status, &is_there, e))
        return false;
    if (!is_there)
        return true;
    l->at_path.file = (struct family_file){.path = xstrdup(l->log->path),
                                           .device = status.st_dev,
                                           .inode = status.st_ino,
                                           .size = status.st_size,
                                           .changed_ns = clock_ns(status.st_mtim)};
    sight(l, &l->at_path);
    return true;
}

void sighting_fini(struct sighting *s)
{
    free(s->file.path);
    free(s->bytes);
    *s = (struct sighting){0};
}

bool look_begin_alike(const struct sighting *a, const struct sighting *b)
{
    size_t len = a->head.len < b->head.len ? a->head.len : b->head.len;
    return len > 0 && memcmp(a->bytes, b->bytes, len) == 0;
}

int64_t look_counted_ns(const struct look *l, const struct known_file *f)
{
    return record_clock_since(f->latest_ms, l->log->future_max_ms) * 1000000;
}

/* Has it ended, in the store or in this process? */
static bool is_ended(const struct look *l, const struct known_file *f)
{
    return f->state == RANGE_ENDED || survey_end_of(l->survey, f) == RANGE_ENDED;
}

/* Two different files may continue one known file, if only a header was counted that both have. The one that
 * ends at the position is the known file, unless both changed since: then, and else, the older one is. */
static void resolve(const struct look *l, struct sighting *older, struct sighting *newer)
{
    bool is_longer = older->has_more && !newer->has_more && newer->head.len < IDENTITY_PREFIX_BYTES_MAX;
    if (older->known == NULL || older->known != newer->known ||
        (look_begin_alike(older, newer) && !is_longer))
        return;
    int64_t counted_ns = look_counted_ns(l, older->known);
    bool may_be_new = older->file.changed_ns >= counted_ns && newer->file.changed_ns >= counted_ns &&
                      !newer->is_read && !is_ended(l, older->known);
    bool ends_there = older->has_more && !newer->has_more && !may_be_new;
    struct sighting *other = ends_there ? older : newer;
    struct sighting *it = ends_there ? newer : older;
    it->is_unsure = !it->is_read;
    other->known = NULL;
    other->has_more = true;
}

/* If an ended file is there under another name, the log is a new file, although it has the same bytes until
 * now. */
static void resolve_log(struct look *l)
{
    const struct known_file *f = l->at_path.known;
    for (size_t i = 0; f != NULL && is_ended(l, f) && i < l->count; i++) {
        if (l->rotated[i].known != f)
            continue;
        l->at_path.known = NULL;
        return;
    }
}

/* Does an older file have the same bytes, and may both have come since they were counted? Then nothing tells
 * which one was counted, nor that files between were there before. */
static void mark_twin(struct look *l, size_t newer)
{
    struct sighting *s = &l->rotated[newer];
    for (size_t i = 0; i < newer && s->known != NULL; i++) {
        struct sighting *older = &l->rotated[i];
        if (older->known != s->known || older->has_more || s->known->head.len == IDENTITY_PREFIX_BYTES_MAX ||
            older->file.changed_ns < look_counted_ns(l, s->known))
            continue;
        s->is_twin = true;
        older->has_twin = !older->is_read;
    }
}

static void resolve_all(struct look *l)
{
    resolve_log(l);
    for (size_t i = 0; i < l->count; i++) {
        for (size_t n = i + 1; n < l->count; n++)
            resolve(l, &l->rotated[i], &l->rotated[n]);
        resolve(l, &l->rotated[i], &l->at_path);
    }
    l->newest = -1;
    for (size_t i = 0; i < l->count; i++) {
        mark_twin(l, i);
        l->newest = l->rotated[i].known != NULL && !l->rotated[i].is_twin ? (int64_t)i : l->newest;
    }
}

void look_add(struct look *l, struct family_file *f)
{
    l->rotated = xgrow(l->rotated, &l->capacity, l->count + 1, sizeof *l->rotated);
    l->rotated[l->count] = (struct sighting){.file = *f};
    f->path = NULL;
    sight(l, &l->rotated[l->count]);
    l->count++;
}

/* Add the file that is held open, unless it is listed, perhaps packed. It has no name, so its time is its
 * place in the order. */
static void sight_held(struct look *l)
{
    char path[64];
    struct stat status;
    if (l->log->held_fd < 0 || fstat(l->log->held_fd, &status) != 0)
        return;
    snprintf(path, sizeof path, SIGHTING_HELD "%d", l->log->held_fd);
    struct family_file file = {.path = xstrdup(path),
                               .device = status.st_dev,
                               .inode = status.st_ino,
                               .size = status.st_size,
                               .number = -1,
                               .changed_ns = clock_ns(status.st_mtim)};
    bool is_listed = look_is_log(l, &file);
    look_add(l, &file);
    size_t at = l->count - 1;
    struct sighting held = l->rotated[at];
    for (size_t i = 0; i < at && !is_listed; i++)
        is_listed = look_begin_alike(&l->rotated[i], &held);
    if (is_listed) {
        sighting_fini(&l->rotated[--l->count]);
        return;
    }
    for (; at > 0 && l->rotated[at - 1].file.changed_ns > held.file.changed_ns; at--)
        l->rotated[at] = l->rotated[at - 1];
    l->rotated[at] = held;
}

bool look_sight(struct look *l, struct err *e)
{
    struct family family;
    if (!sight_log(l, e) || !family_list(&family, l->log->path, l->log->olddir, e))
        return false;
    for (size_t i = 0; i < family.count; i++) {
        if (!look_is_log(l, &family.files[i]))
            look_add(l, &family.files[i]);
    }
    family_fini(&family);
    sight_held(l);
    resolve_all(l);
    return true;
}

void look_fini(struct look *l)
{
    for (size_t i = 0; i < l->count; i++)
        sighting_fini(&l->rotated[i]);
    sighting_fini(&l->at_path);
    free(l->rotated);
}
