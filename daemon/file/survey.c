#include "daemon/file/survey.h"

#include "base/check.h"
#include "base/mem.h"
#include "daemon/source.h"
#include "ingest/file/family.h"
#include "ingest/file/input_unpack.h"
#include "ingest/file/reader.h"
#include "ingest/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Two rotated files that changed within this time may have been written in the other order than begun. */
#define CLOSE_NS (INT64_C(600) * 1000000000)

/* A file, and what it is. */
struct sighting {
    struct family_file file;  /* its path is owned */
    char *bytes;              /* its first bytes, as many as `head` says; owned */
    struct identity head;     /* length 0: it is empty, or cannot be read */
    struct known_file *known; /* NULL: never seen */
    struct known_file *alike; /* NULL, or a file of this log that begins as this one did, and is another */
    bool has_more;            /* it has bytes that were not counted */
};

struct look {
    struct survey *survey;
    const struct survey_log *log;
    const struct known *known;
    struct sighting *rotated; /* oldest first */
    size_t count, capacity;
    struct sighting at_path; /* the log itself; without a path if there is none */
    int64_t newest;          /* of the rotated ones, the newest known by its name; -1: none */
    size_t unreadable;       /* number of files that could not be read */
    struct err unreadable_why;
};

/* ---- which file is it? */

/* Is it another log, or the position of one? Its files may begin as this one's do. */
static bool is_another(const struct look *l, const char *path)
{
    return strcmp(path, l->log->path) != 0 && l->log->is_log(l->log->context, path);
}

/* Has the file the bytes before the position that were counted? *has_more: there are more behind it. */
static bool continues(const struct family_file *file, const struct known_file *f, struct reader *rd,
                      bool *has_more)
{
    struct err ignored;
    struct block block;
    uint32_t len;
    *has_more = false;
    if (file->is_packed && f->head.len == IDENTITY_PREFIX_BYTES_MAX &&
        input_unpack_has_size(file->path, f->range.to))
        return true; /* no need to unpack it */
    if ((!file->is_packed && file->size < f->range.to) || !reader_skip(rd, f->range.to, &ignored))
        return false;
    uint64_t hash = identity_tail(reader_tail(rd), &len);
    if (len != f->range.tail_len || hash != f->range.tail_hash)
        return false;
    block_init(&block, IDENTITY_TAIL_BYTES_MAX);
    *has_more =
        file->is_packed ? reader_next(rd, &block, -1, &ignored) != READER_END : file->size > f->range.to;
    block_fini(&block);
    return true;
}

/* Is the file this known one? It begins as that. */
static bool is_it(const struct look *l, struct sighting *s, const struct known_file *f, bool *has_more)
{
    struct err ignored;
    *has_more = false;
    if (s != &l->at_path && !s->file.is_packed && f->head.len == IDENTITY_PREFIX_BYTES_MAX &&
        s->file.size < f->range.to)
        return true; /* a copy that misses its end */
    struct input *in = input_open(s->file.path, &ignored);
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

static void compare(const struct look *l, struct sighting *s, struct known_file *f, struct slice head)
{
    bool has_more, is_own = strcmp(f->range.label, l->log->path) == 0;
    bool begins_so = begins_as(f->head, s->head, head);
    if (begins_so && !is_own && is_another(l, f->range.label))
        return;
    if (begins_so && is_it(l, s, f, &has_more)) {
        if (s->known != NULL && s->known->range.to > f->range.to)
            return;
        s->known = f;
        s->has_more = has_more;
    } else if (is_own && (begins_so || begins_as(f->first, s->head, head))) {
        s->alike = f;
    }
}

static bool is_done(const struct survey *s, const struct family_file *f)
{
    for (size_t i = 0; i < s->done_count; i++) {
        if (s->done[i].device == f->device && s->done[i].inode == f->inode && s->done[i].size == f->size)
            return true;
    }
    return false;
}

/* Read the first bytes of a file, unpacked. */
static struct slice read_head(struct look *l, const char *path, char buf[IDENTITY_PREFIX_BYTES_MAX])
{
    struct err e;
    size_t got = 1, len = 0;
    struct input *in = input_open(path, &e);
    bool good = in != NULL;
    while (good && got > 0 && len < IDENTITY_PREFIX_BYTES_MAX) {
        good = input_read(in, buf + len, IDENTITY_PREFIX_BYTES_MAX - len, &got, &e);
        len += good ? got : 0;
    }
    input_close(in);
    if (!good && e.code != EX_NOINPUT && l->unreadable++ == 0)
        l->unreadable_why = e;
    return slice_of(buf, len);
}

static void sight(struct look *l, struct sighting *s)
{
    char buf[IDENTITY_PREFIX_BYTES_MAX];
    struct slice head = s->file.size > 0 ? read_head(l, s->file.path, buf) : slice_of(buf, 0);
    if (head.len == 0)
        return;
    s->head = identity_of(head);
    s->bytes = memcpy(xmalloc(head.len), head.ptr, head.len);
    s->has_more = true;
    for (size_t i = 0; i < l->known->count; i++)
        compare(l, s, &l->known->files[i], head);
    s->has_more = s->has_more && !is_done(l->survey, &s->file);
}

/* ---- what is there? */

static bool is_other_log(const struct look *l, const struct family_file *f)
{
    return is_another(l, f->path) || (l->at_path.file.path != NULL && f->device == l->at_path.file.device &&
                                      f->inode == l->at_path.file.inode);
}

static void sight_log(struct look *l)
{
    struct stat status;
    if (stat(l->log->path, &status) != 0 || !S_ISREG(status.st_mode))
        return;
    l->at_path.file = (struct family_file){.path = xstrdup(l->log->path),
                                           .device = status.st_dev,
                                           .inode = status.st_ino,
                                           .size = status.st_size};
    sight(l, &l->at_path);
}

static void forget(struct sighting *s)
{
    free(s->file.path);
    free(s->bytes);
    *s = (struct sighting){0};
}

/* Do two files begin alike, as far as the shorter one goes? */
static bool begin_alike(const struct sighting *a, const struct sighting *b)
{
    size_t len = a->head.len < b->head.len ? a->head.len : b->head.len;
    return len > 0 && memcmp(a->bytes, b->bytes, len) == 0;
}

/* Two files that differ continue one known file: of that only a header was counted that many have. The one that
 * ends where it does is it, else the older one. */
static void resolve(struct sighting *older, struct sighting *newer)
{
    if (older->known == NULL || older->known != newer->known || begin_alike(older, newer))
        return;
    struct sighting *other = older->has_more && !newer->has_more ? older : newer;
    other->alike = other->known;
    other->known = NULL;
    other->has_more = true;
}

static void resolve_all(struct look *l)
{
    for (size_t i = 0; i < l->count; i++) {
        for (size_t n = i + 1; n < l->count; n++)
            resolve(&l->rotated[i], &l->rotated[n]);
        resolve(&l->rotated[i], &l->at_path);
    }
    l->newest = -1;
    for (size_t i = 0; i < l->count; i++)
        l->newest = l->rotated[i].known != NULL ? (int64_t)i : l->newest;
}

static void add_sighting(struct look *l, struct family_file *f)
{
    l->rotated = xgrow(l->rotated, &l->capacity, l->count + 1, sizeof *l->rotated);
    l->rotated[l->count] = (struct sighting){.file = *f};
    f->path = NULL;
    sight(l, &l->rotated[l->count]);
    l->count++;
}

/* The file that is held open, unless it is listed, perhaps packed. Without a name only its time says when it was
 * written. */
static void sight_held(struct look *l)
{
    char path[64];
    struct stat status;
    if (l->log->held_fd < 0 || fstat(l->log->held_fd, &status) != 0)
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", l->log->held_fd);
    struct family_file file = {.path = xstrdup(path),
                               .device = status.st_dev,
                               .inode = status.st_ino,
                               .size = status.st_size,
                               .changed_ns =
                                   status.st_mtim.tv_sec * INT64_C(1000000000) + status.st_mtim.tv_nsec};
    bool is_listed = is_other_log(l, &file);
    add_sighting(l, &file);
    struct sighting held = l->rotated[l->count - 1];
    size_t at = l->count - 1;
    for (size_t i = 0; i + 1 < l->count && !is_listed; i++)
        is_listed = begin_alike(&l->rotated[i], &held);
    while (at > 0 && l->rotated[at - 1].file.changed_ns > held.file.changed_ns) {
        l->rotated[at] = l->rotated[at - 1];
        at--;
    }
    l->rotated[at] = held;
    if (!is_listed)
        return;
    forget(&l->rotated[at]);
    memmove(l->rotated + at, l->rotated + at + 1, (l->count - 1 - at) * sizeof held);
    l->count--;
}

static bool sight_rotated(struct look *l, struct err *e)
{
    struct family family;
    if (!family_list(&family, l->log->path, l->log->olddir, e))
        return false;
    for (size_t i = 0; i < family.count; i++) {
        if (!is_other_log(l, &family.files[i]))
            add_sighting(l, &family.files[i]);
    }
    family_fini(&family);
    sight_held(l);
    resolve_all(l);
    return true;
}

/* ---- the file that was followed before */

static bool is_followed(const struct look *l, const struct known_file *f)
{
    return f->state == RANGE_FOLLOWED && strcmp(f->range.label, l->log->path) == 0 &&
           (f->host == 0 || f->host == l->log->host);
}

static bool is_sighted(const struct look *l, const struct known_file *f)
{
    bool is = l->at_path.known == f;
    for (size_t i = 0; i < l->count && !is; i++)
        is = l->rotated[i].known == f;
    return is;
}

/* What this process knows of its end; RANGE_UNCHANGED: nothing. */
static enum range_state end_of(const struct survey *s, const struct known_file *f)
{
    for (size_t i = 0; i < s->end_count; i++) {
        if (strcmp(s->ends[i].source, f->range.source) == 0)
            return s->ends[i].state;
    }
    return RANGE_UNCHANGED;
}

/* Put the last sighting before the others. */
static void make_oldest(struct look *l)
{
    struct sighting last = l->rotated[l->count - 1];
    memmove(l->rotated + 1, l->rotated, (l->count - 1) * sizeof *l->rotated);
    l->rotated[0] = last;
}

/* Look for it under any name. */
static bool find_anywhere(struct look *l, const struct known_file *f, struct err *e)
{
    struct family all;
    int64_t newest = l->newest;
    bool found = false;
    if (!family_list_all(&all, l->log->path, l->log->olddir, e))
        return false;
    for (size_t i = 0; i < all.count && !found; i++) {
        if (is_other_log(l, &all.files[i]))
            continue;
        add_sighting(l, &all.files[i]);
        found = l->rotated[l->count - 1].known == f;
        if (!found)
            forget(&l->rotated[--l->count]);
    }
    l->newest = newest;
    if (found) {
        make_oldest(l);
        l->newest += newest >= 0; /* else only times tell which ones came after it */
    }
    family_fini(&all);
    return true;
}

/* Find the followed files that are neither there nor known to have ended. *lost: one of them; NULL: none. */
static bool find_lost(struct look *l, struct known_file **lost, struct err *e)
{
    *lost = NULL;
    for (size_t i = 0; i < l->known->count; i++) {
        struct known_file *f = &l->known->files[i];
        if (!is_followed(l, f) || is_sighted(l, f) || end_of(l->survey, f) != RANGE_UNCHANGED)
            continue;
        if (!find_anywhere(l, f, e))
            return false;
        if (!is_sighted(l, f))
            *lost = f;
    }
    return true;
}

/* ---- what is next? */

/* The time at which the log was last counted, in ns, or up to an hour before; INT64_MAX: never. */
static int64_t last_counted_ns(const struct look *l)
{
    int64_t last_ms = -1;
    for (size_t i = 0; i < l->known->count; i++) {
        const struct range *r = &l->known->files[i].range;
        if (strcmp(r->label, l->log->path) == 0 && r->latest_ms > last_ms)
            last_ms = r->latest_ms;
    }
    return last_ms < 0 ? INT64_MAX : record_clock_since(last_ms, l->log->future_max_ms) * 1000000;
}

/* The newest change of a known rotated file; -1: none is known. */
static int64_t newest_known_ns(const struct look *l)
{
    int64_t newest_ns = -1;
    for (size_t i = 0; i < l->count; i++) {
        if (l->rotated[i].known != NULL && l->rotated[i].file.changed_ns > newest_ns)
            newest_ns = l->rotated[i].file.changed_ns;
    }
    return newest_ns;
}

/* Did the file come after those that were counted? Times tell, whichever way names are numbered. But a server may
 * write to a renamed file for a while; so names tell, too, where times are close. */
static bool is_since(const struct look *l, size_t i, int64_t known_ns)
{
    int64_t changed_ns = l->rotated[i].file.changed_ns;
    if (l->at_path.known != NULL)
        return false;
    if (known_ns < 0)
        return changed_ns >= last_counted_ns(l);
    return changed_ns > known_ns || ((int64_t)i > l->newest && changed_ns >= known_ns - CLOSE_NS);
}

/* The oldest rotated file that is to be read; NULL: none. */
static const struct sighting *next_rotated(const struct look *l)
{
    const struct sighting *next = NULL;
    int64_t known_ns = newest_known_ns(l);
    for (size_t i = 0; i < l->count; i++) {
        const struct sighting *s = &l->rotated[i];
        bool is_copy_of_log = s->known != NULL && s->known == l->at_path.known;
        if (s->has_more && !is_copy_of_log && (s->known != NULL || is_since(l, i, known_ns)) &&
            (next == NULL || s->file.changed_ns < next->file.changed_ns))
            next = s;
    }
    return next;
}

/* Is there a rotated file that is newer than this one? Then nobody writes to this one any more. */
static bool has_newer(const struct look *l, const struct sighting *s)
{
    bool has = false;
    for (size_t i = 0; i < l->count && !has; i++)
        has = l->rotated[i].file.changed_ns > s->file.changed_ns;
    return has;
}

/* A name that the store does not have yet. */
static void name_new(const struct look *l, const struct sighting *s, struct range *r)
{
    char id[IDENTITY_TEXT_BYTES];
    *r = (struct range){0};
    snprintf(r->source, sizeof r->source, "%s", identity_print(s->head, id));
    for (int n = 2; known_find(l->known, r->source) != NULL; n++)
        snprintf(r->source, sizeof r->source, "%s~%d", id, n);
}

static void add_ending(struct survey_answer *a, const struct known_file *f, enum range_state state,
                       int64_t host)
{
    a->endings = xrealloc(a->endings, (a->ending_count + 1) * sizeof *a->endings);
    a->endings[a->ending_count] = f->range;
    a->endings[a->ending_count++].state = (int64_t)state + host * KNOWN_HOST;
}

/* The followed files that end as the next one begins: all but the log itself, and files with more. Without a next
 * one: those that are gone. */
static void find_endings(const struct look *l, const struct sighting *next, struct survey_answer *a)
{
    for (size_t i = 0; i < l->known->count; i++) {
        const struct known_file *f = &l->known->files[i];
        enum range_state state = end_of(l->survey, f);
        bool has_more = false;
        if (!is_followed(l, f) || f == l->at_path.known || (next != NULL && f == next->known))
            continue;
        if (next == NULL && (state == RANGE_UNCHANGED || is_sighted(l, f)))
            continue; /* it shows where to look on */
        for (size_t n = 0; n < l->count; n++)
            has_more |= l->rotated[n].known == f && l->rotated[n].has_more;
        if (!has_more)
            add_ending(a, f, state != RANGE_UNCHANGED ? state : RANGE_ENDED, l->log->host);
    }
}

static void answer_file(const struct look *l, const struct sighting *s, struct survey_answer *a)
{
    snprintf(a->path, sizeof a->path, "%s", s->file.path);
    a->device = s->file.device;
    a->inode = s->file.inode;
    a->head = s->head;
    a->is_known = s->known != NULL;
    if (a->is_known)
        a->range = s->known->range;
    else
        name_new(l, s, &a->range);
    if (a->is_known && strcmp(a->range.label, l->log->path) != 0)
        snprintf(a->note, sizeof a->note, "was counted before as %.500s", a->range.label);
    snprintf(a->range.label, sizeof a->range.label, "%s", l->log->path);
    if (!a->is_known || s->known->state == RANGE_UNCHANGED)
        a->range.state = RANGE_FOLLOWED + l->log->host * KNOWN_HOST;
    find_endings(l, s, a);
}

/* Does the log begin as a file of it that is not found, and did not end? */
static bool is_changed(const struct look *l)
{
    const struct known_file *f = l->at_path.alike;
    return f != NULL && l->at_path.known == NULL &&
           (f->state == RANGE_UNCHANGED || f->state == RANGE_FOLLOWED) && !is_sighted(l, f) &&
           end_of(l->survey, f) == RANGE_UNCHANGED;
}

static void answer_lost(const struct look *l, const struct known_file *lost, struct survey_answer *a)
{
    a->range = lost->range;
    if (a->what == SURVEY_CHANGED)
        err_set(&a->why, EX_DATAERR,
                "%s begins as the file did of which %lld bytes were counted, but %s: it was truncated or "
                "changed, "
                "or another file has the same beginning. Move it away, or import it with --source-id NAME to "
                "count "
                "it as a new source",
                l->log->path, (long long)lost->range.to,
                l->at_path.file.size < lost->range.to ? "is shorter" : "has other bytes before that");
}

static bool decide(struct look *l, struct survey_answer *a, struct err *e)
{
    struct known_file *lost;
    const struct sighting *s;
    a->unreadable = l->unreadable;
    a->why = l->unreadable_why;
    if (!find_lost(l, &lost, e))
        return false;
    if (is_changed(l))
        lost = l->at_path.alike;
    if (lost != NULL) {
        a->what = is_changed(l) ? SURVEY_CHANGED : SURVEY_LOST;
        answer_lost(l, lost, a);
    } else if ((s = next_rotated(l)) != NULL) {
        a->what = SURVEY_ROTATED;
        a->is_final = s->file.is_packed || has_newer(l, s);
        answer_file(l, s, a);
    } else if (l->at_path.head.len > 0) {
        a->what = SURVEY_LOG;
        answer_file(l, &l->at_path, a);
    } else {
        find_endings(l, NULL, a);
    }
    return true;
}

static void forget_ends(struct survey *s, const struct known *k)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->end_count; i++) {
        const struct known_file *f = known_find(k, s->ends[i].source);
        if (f != NULL && f->state == RANGE_FOLLOWED)
            s->ends[kept++] = s->ends[i];
    }
    s->end_count = kept;
}

bool survey_look(struct survey *s, const struct survey_log *log, const struct known *k,
                 struct survey_answer *a, struct err *e)
{
    struct look l = {.survey = s, .log = log, .known = k};
    *a = (struct survey_answer){0};
    forget_ends(s, k);
    sight_log(&l);
    bool good = sight_rotated(&l, e) && decide(&l, a, e);
    for (size_t i = 0; i < l.count; i++)
        forget(&l.rotated[i]);
    forget(&l.at_path);
    free(l.rotated);
    return good;
}

void survey_note_done(struct survey *s, const struct survey_answer *a, int64_t size)
{
    s->done = xgrow(s->done, &s->done_capacity, s->done_count + 1, sizeof *s->done);
    s->done[s->done_count++] = (struct survey_done){a->device, a->inode, size};
}

void survey_note_end(struct survey *s, const char *source, enum range_state state)
{
    s->ends = xgrow(s->ends, &s->end_capacity, s->end_count + 1, sizeof *s->ends);
    struct survey_end *end = &s->ends[s->end_count++];
    snprintf(end->source, sizeof end->source, "%s", source);
    end->state = state;
}

void survey_answer_fini(struct survey_answer *a)
{
    free(a->endings);
    a->endings = NULL;
    a->ending_count = 0;
}

void survey_fini(struct survey *s)
{
    free(s->done);
    free(s->ends);
    *s = (struct survey){0};
}
