#include "daemon/file/survey.h"

#include "base/mem.h"
#include "daemon/file/survey_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Two rotated files that changed within this time may have been written in the other order than begun. */
#define CLOSE_NS (INT64_C(600) * 1000000000)

/* ---- the file that was followed before */

static bool is_sighted(const struct look *l, const struct known_file *f)
{
    bool is = l->at_path.known == f;
    for (size_t i = 0; i < l->count && !is; i++)
        is = l->rotated[i].known == f;
    return is;
}

/* Another host's file is this one's if it is here: a host may be renamed. */
static bool is_followed(const struct look *l, const struct known_file *f)
{
    return f->state == RANGE_FOLLOWED && strcmp(f->label, l->log->path) == 0 &&
           (f->host == 0 || f->host == l->log->host || is_sighted(l, f));
}

enum range_state survey_end_of(const struct survey *s, const struct known_file *f)
{
    for (size_t i = 0; i < s->end_count; i++) {
        if (strcmp(s->ends[i].source, f->source) == 0)
            return s->ends[i].state;
    }
    return RANGE_UNCHANGED;
}

bool survey_is_whole(const struct survey *s, const struct known_file *f)
{
    bool is = false;
    for (size_t i = 0; i < s->end_count && !is; i++)
        is = s->ends[i].is_whole && strcmp(s->ends[i].source, f->source) == 0;
    return is;
}

/* Look for a known file under any name. */
static bool find_anywhere(struct look *l, const struct known_file *f, struct err *e)
{
    struct family all;
    bool found = false;
    if (!family_list_all(&all, l->log->path, l->log->olddir, e))
        return false;
    for (size_t i = 0; i < all.count && !found; i++) {
        const struct family_file *file = &all.files[i];
        if (look_is_log(l, file) || (!file->is_packed && file->size < f->to))
            continue;
        look_add(l, &all.files[i]);
        const struct sighting *s = &l->rotated[l->count - 1];
        found = s->known == f && !look_is_of_other(l, s->file.path);
        l->rotated[l->count - 1].is_foreign = true;
        if (!found)
            sighting_fini(&l->rotated[--l->count]);
    }
    family_fini(&all);
    return true;
}

/* Is no file sighted of a number between two? */
static bool is_number_missing(const struct look *l, int64_t after, int64_t before)
{
    for (int64_t number = after + 1; number < before; number++) {
        bool is_there = false;
        for (size_t i = 0; i < l->count && !is_there; i++)
            is_there = l->rotated[i].file.number == number;
        if (!is_there)
            return true;
    }
    return false;
}

/* Is a number missing before the log, although a rotated file changed since `f` was counted? */
static bool is_gap_since(const struct look *l, const struct known_file *f)
{
    bool is = false;
    for (size_t i = 0; i < l->count; i++) {
        const struct sighting *s = &l->rotated[i];
        if (s->is_foreign)
            continue;
        if (s->file.number == 0)
            return false; /* numbers begin at 0 here */
        is = is || (s->file.number > 1 && s->file.changed_ns >= look_counted_ns(l, f) &&
                    is_number_missing(l, 0, s->file.number));
    }
    return is;
}

/* Is it only there under a name that rotation does not give? */
static bool is_only_foreign(const struct look *l, const struct known_file *f)
{
    bool is = l->at_path.known != f;
    for (size_t i = 0; i < l->count; i++)
        is = is && (l->rotated[i].known != f || l->rotated[i].is_foreign);
    return is;
}

/* Find the followed files that are neither there nor known to have ended. *lost: one of them; NULL: none. */
static bool find_lost(struct look *l, struct known_file **lost, struct err *e)
{
    *lost = NULL;
    for (size_t i = 0; i < l->known->count; i++) {
        struct known_file *f = &l->known->files[i];
        if (!is_followed(l, f) || is_sighted(l, f) || survey_end_of(l->survey, f) != RANGE_UNCHANGED)
            continue;
        if (!find_anywhere(l, f, e))
            return false;
        if (!is_sighted(l, f) || (is_only_foreign(l, f) && is_gap_since(l, f)))
            *lost = f;
    }
    return true;
}

/* ---- what is next? */

/* The time at which the log was last counted, in ns, or up to an hour before; INT64_MAX: never. */
static int64_t last_counted_ns(const struct look *l)
{
    const struct known_file *last = NULL;
    for (size_t i = 0; i < l->known->count; i++) {
        const struct known_file *f = &l->known->files[i];
        if (strcmp(f->label, l->log->path) == 0 && (last == NULL || f->latest_ms > last->latest_ms))
            last = f;
    }
    return last == NULL ? INT64_MAX : look_counted_ns(l, last);
}

/* The newest change of a known rotated file; -1: none is known. */
static int64_t newest_known_ns(const struct look *l)
{
    int64_t newest_ns = -1;
    for (size_t i = 0; i < l->count; i++) {
        if (l->rotated[i].known != NULL && !l->rotated[i].is_twin &&
            l->rotated[i].file.changed_ns > newest_ns)
            newest_ns = l->rotated[i].file.changed_ns;
    }
    return newest_ns;
}

/* Did the file come after this process had begun to look? The log may have been rotated again since. It is no
 * copy that is still written: a known file would have all of its first bytes. */
static bool came_since_begin(const struct look *l, const struct sighting *s)
{
    bool came = l->log->begun_ns > 0 && s->file.changed_ns > l->log->begun_ns && s->head.len > 0 &&
                !s->is_read && !s->is_foreign;
    for (size_t i = 0; came && i <= l->count; i++) {
        const struct sighting *other = i < l->count ? &l->rotated[i] : &l->at_path;
        came = other->known == NULL || other->head.len < s->head.len || !look_begin_alike(s, other);
    }
    return came;
}

/* Is the file newer than those that were counted? Times tell, since numbers may rise or fall. But a
 * server may write to a renamed file for a while: if times are close, names tell, too. */
static bool is_since(const struct look *l, size_t i, int64_t known_ns)
{
    int64_t changed_ns = l->rotated[i].file.changed_ns;
    if (came_since_begin(l, &l->rotated[i]))
        return true;
    if (l->at_path.known != NULL)
        return false;
    if (known_ns < 0)
        return changed_ns >= last_counted_ns(l);
    return changed_ns > known_ns || ((int64_t)i > l->newest && changed_ns >= known_ns - CLOSE_NS);
}

/* Has the rotated file something to count, by what is known of it and by its time? */
static bool is_due(const struct look *l, size_t i, int64_t known_ns)
{
    const struct sighting *s = &l->rotated[i];
    bool is_copy_of_log = s->known != NULL && s->known == l->at_path.known;
    return s->has_more && !is_copy_of_log && (s->known != NULL || is_since(l, i, known_ns));
}

/* The oldest rotated file that is to be read; NULL: none. */
static const struct sighting *next_rotated(const struct look *l)
{
    const struct sighting *next = NULL;
    int64_t known_ns = newest_known_ns(l);
    for (size_t i = 0; i < l->count; i++) {
        const struct sighting *s = &l->rotated[i];
        if (is_due(l, i, known_ns) && !s->is_spoiled &&
            (next == NULL || s->file.changed_ns < next->file.changed_ns))
            next = s;
    }
    return next;
}

/* Is the file history only if times can be trusted? The clock may have been ahead when the others were
 * counted: this one has a newer name, or the time of counting is still to come. */
static bool is_doubtful(const struct look *l, size_t i, int64_t known_ns)
{
    const struct sighting *s = &l->rotated[i];
    if (!s->has_more || s->known != NULL || l->at_path.known != NULL || is_since(l, i, known_ns))
        return false;
    if (known_ns < 0) {
        int64_t counted_ns = last_counted_ns(l);
        return counted_ns != INT64_MAX && counted_ns > l->log->now_ns;
    }
    return l->newest >= 0 && (int64_t)i > l->newest;
}

/* Note the rotated files that may have something to count, but are not read. */
static void find_skipped(const struct look *l, struct survey_answer *a)
{
    int64_t known_ns = newest_known_ns(l);
    for (size_t i = 0; i < l->count; i++) {
        const struct sighting *s = &l->rotated[i];
        bool is_spoiled = s->is_spoiled && is_due(l, i, known_ns);
        if ((!is_spoiled && !is_doubtful(l, i, known_ns)) || a->skipped++ > 0)
            continue;
        if (is_spoiled)
            err_set(&a->skipped_why, EX_DATAERR,
                    "%s begins as %s, which was counted, but has other bytes before that one's position: it "
                    "was changed, or is another file. If it is, import it with --source-id NAME",
                    s->file.path, s->alike->source);
        else
            err_set(&a->skipped_why, EX_DATAERR,
                    "%s was never seen, and is older than what was counted by its time, but not by its name, "
                    "or a clock was wrong. Import it, unless it is from before tallyd",
                    s->file.path);
    }
}

/* Is there a rotated file that is newer than this one? Then nobody writes to this one any more. */
static bool has_newer(const struct look *l, const struct sighting *s)
{
    bool has = false;
    for (size_t i = 0; i < l->count && !has; i++)
        has = l->rotated[i].file.changed_ns > s->file.changed_ns;
    return has;
}

/* A name that no file has yet, in the store or open. */
static void name_new(const struct look *l, const struct sighting *s, struct range *r)
{
    char id[IDENTITY_TEXT_BYTES];
    *r = (struct range){0};
    snprintf(r->source, sizeof r->source, "%s", identity_print(s->head, id));
    for (int n = 2;
         known_find(l->known, r->source) != NULL || l->log->is_name_open(l->log->context, r->source); n++)
        snprintf(r->source, sizeof r->source, "%s~%d", id, n);
}

static void add_ending(struct survey_answer *a, const struct known_file *f, enum range_state state,
                       int64_t host)
{
    a->endings = xrealloc(a->endings, (a->ending_count + 1) * sizeof *a->endings);
    known_range(f, &a->endings[a->ending_count]);
    a->endings[a->ending_count++].state = (int64_t)state + host * KNOWN_HOST;
}

/* The followed files that end as the next one begins: all but the log itself, and files with more.
 * Without a next one: those that are gone. Others show where to look on. */
static void find_endings(const struct look *l, bool has_next, struct survey_answer *a)
{
    for (size_t i = 0; i < l->known->count; i++) {
        const struct known_file *f = &l->known->files[i];
        enum range_state state = survey_end_of(l->survey, f);
        bool has_more = false;
        if (!is_followed(l, f) || f == l->at_path.known || (!has_next && is_sighted(l, f)))
            continue;
        for (size_t n = 0; n < l->count; n++)
            has_more |= l->rotated[n].known == f && l->rotated[n].has_more;
        if (!has_more)
            add_ending(a, f, state != RANGE_UNCHANGED ? state : RANGE_ENDED, l->log->host);
    }
}

/* ---- files that came and went while nobody looked */

/* Was the file seen in the log's place directly after the one that was read? */
static bool is_held_next(const struct look *l, const struct sighting *s)
{
    struct stat status;
    return l->log->is_held_next && l->log->held_fd >= 0 && fstat(l->log->held_fd, &status) == 0 &&
           status.st_dev == s->file.device && status.st_ino == s->file.inode;
}

/* Has a rotated file a name, and is not only held open? */
static bool has_name(const struct look *l, const struct known_file *f)
{
    bool has = false;
    for (size_t i = 0; i < l->count && !has; i++)
        has = l->rotated[i].known == f &&
              strncmp(l->rotated[i].file.path, SIGHTING_HELD, strlen(SIGHTING_HELD)) != 0;
    return has;
}

/* A followed file that was read to its end, and is gone; NULL: none. Others may have come and gone after it,
 * unless the next one was seen in the log's place. */
static const struct known_file *find_gone(const struct look *l, const struct sighting *next)
{
    if (next == &l->at_path || next->known != NULL || is_held_next(l, next))
        return NULL;
    for (size_t i = 0; i < l->known->count; i++) {
        const struct known_file *f = &l->known->files[i];
        if (is_followed(l, f) && !has_name(l, f) && survey_end_of(l->survey, f) == RANGE_ENDED)
            return f;
    }
    return NULL;
}

/* The log, if only a header of it was counted, and it may be another one that begins so. NULL: none. */
static const struct known_file *find_gap_behind_header(const struct look *l, const struct sighting *next)
{
    const struct known_file *f = next->known;
    bool may_be_other = next == &l->at_path && f != NULL && is_followed(l, f) && next->has_more &&
                        f->head.len < IDENTITY_PREFIX_BYTES_MAX &&
                        survey_end_of(l->survey, f) == RANGE_UNCHANGED;
    return may_be_other && is_gap_since(l, f) ? f : NULL;
}

/* The newest known file before the next one, if a number between theirs is missing. Files between them that
 * are there have nothing to count. */
static const struct known_file *find_gap(const struct look *l, const struct sighting *next)
{
    const struct sighting *before = NULL;
    int64_t number = next->file.number; /* the log has the number 0 */
    if (next->known != NULL || number < 0)
        return NULL;
    for (size_t i = 0; i < l->count; i++) {
        const struct sighting *s = &l->rotated[i];
        if (s->file.number == 0 && next == &l->at_path)
            return NULL; /* numbers begin at 0 here */
        if (s->file.number > number && s->known != NULL &&
            (before == NULL || s->file.number < before->file.number))
            before = s;
    }
    bool is_gap = before != NULL && is_number_missing(l, number, before->file.number) &&
                  is_followed(l, before->known) && survey_end_of(l->survey, before->known) != RANGE_LOST &&
                  (next == &l->at_path || before->file.changed_ns <= next->file.changed_ns);
    return is_gap ? before->known : NULL;
}

/* A followed file that the oldest one may be; but other files begin alike, and the followed one may have
 * been deleted. The oldest is deleted first, so this cannot be if an older file is there. But an empty one
 * that came since the followed one was counted proves nothing. NULL: none. */
static const struct known_file *find_unsure(const struct look *l)
{
    size_t oldest = 0;
    while (oldest < l->count && l->rotated[oldest].head.len == 0)
        oldest++;
    if (oldest == l->count)
        return NULL;
    const struct sighting *s = &l->rotated[oldest];
    if (s->known == NULL || !is_followed(l, s->known))
        return NULL;
    for (size_t i = 0; i < oldest; i++) {
        if (l->rotated[i].file.changed_ns < look_counted_ns(l, s->known))
            return NULL;
    }
    enum range_state end = survey_end_of(l->survey, s->known);
    bool is = (end == RANGE_UNCHANGED && s->is_unsure) || (end != RANGE_LOST && s->has_twin);
    return is ? s->known : NULL;
}

/* A followed file that was found only under a name that rotation does not give, perhaps as a copy. If the
 * next one is the oldest rotated file, others may have been deleted before it. NULL: none. */
static const struct known_file *find_misplaced(const struct look *l, const struct sighting *next)
{
    if (next != l->rotated || next->known != NULL)
        return NULL;
    for (size_t i = 0; i < l->count; i++) {
        const struct known_file *f = l->rotated[i].is_foreign ? l->rotated[i].known : NULL;
        if (f != NULL && is_followed(l, f) && survey_end_of(l->survey, f) == RANGE_UNCHANGED)
            return f;
    }
    return NULL;
}

static void answer_file(const struct look *l, const struct sighting *s, struct survey_answer *a)
{
    snprintf(a->path, sizeof a->path, "%s", s->file.path);
    a->device = s->file.device;
    a->inode = s->file.inode;
    a->head = s->head;
    a->is_known = s->known != NULL;
    if (a->is_known)
        known_range(s->known, &a->range);
    else
        name_new(l, s, &a->range);
    if (a->is_known && strcmp(a->range.label, l->log->path) != 0)
        snprintf(a->note, sizeof a->note, "was counted before as %.500s", a->range.label);
    snprintf(a->range.label, sizeof a->range.label, "%s", l->log->path);
    bool is_taken_over = a->is_known && s->known->state == RANGE_FOLLOWED && s->known->host != l->log->host;
    if (!a->is_known || s->known->state == RANGE_UNCHANGED || is_taken_over)
        a->range.state = RANGE_FOLLOWED + l->log->host * KNOWN_HOST;
    const struct known_file *gone = find_gone(l, s);
    gone = gone != NULL ? gone : find_gap(l, s);
    gone = gone != NULL ? gone : find_gap_behind_header(l, s);
    gone = gone != NULL ? gone : find_unsure(l);
    gone = gone != NULL ? gone : find_misplaced(l, s);
    a->has_gap = gone != NULL;
    if (a->has_gap)
        snprintf(a->gap_after, sizeof a->gap_after, "%s", gone->source);
    if (!a->is_known && s->others != NULL)
        a->others = s->others->to;
    find_endings(l, true, a);
}

/* Does the log begin as a file of it that is not found, and did not end? */
static bool is_changed(const struct look *l)
{
    const struct known_file *f = l->at_path.alike;
    return f != NULL && l->at_path.known == NULL &&
           (f->state == RANGE_UNCHANGED || f->state == RANGE_FOLLOWED) && !is_sighted(l, f) &&
           survey_end_of(l->survey, f) == RANGE_UNCHANGED;
}

static void answer_lost(const struct look *l, const struct known_file *lost, struct survey_answer *a)
{
    known_range(lost, &a->range);
    if (a->what == SURVEY_CHANGED)
        err_set(&a->why, EX_DATAERR,
                "%s begins as the file did of which %lld bytes were counted, but %s: it was truncated or "
                "changed, or another file has the same beginning. Move it away, or import it with "
                "--source-id NAME to count it as a new source",
                l->log->path, (long long)lost->to,
                l->at_path.file.size < lost->to ? "is shorter" : "has other bytes before that");
}

static bool decide(struct look *l, struct survey_answer *a, struct err *e)
{
    struct known_file *lost;
    const struct known_file *gone;
    const struct sighting *s;
    a->unreadable = l->unreadable;
    a->why = l->unreadable_why;
    find_skipped(l, a);
    if (!find_lost(l, &lost, e))
        return false;
    bool has_changed = is_changed(l);
    if (has_changed)
        lost = l->at_path.alike;
    if (lost != NULL) {
        a->what = has_changed ? SURVEY_CHANGED : SURVEY_LOST;
        answer_lost(l, lost, a);
    } else if ((s = next_rotated(l)) != NULL) {
        a->what = SURVEY_ROTATED;
        a->is_final = s->file.is_packed || has_newer(l, s);
        answer_file(l, s, a);
    } else if (l->at_path.head.len > 0) {
        a->what = SURVEY_LOG;
        answer_file(l, &l->at_path, a);
    } else if ((gone = find_gap(l, &l->at_path)) != NULL) {
        a->what = SURVEY_LOST; /* the log is empty, and may stay so */
        answer_lost(l, gone, a);
    } else {
        find_endings(l, false, a);
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
    bool good = look_sight(&l, e) && decide(&l, a, e);
    if (good && l.trouble.retryable) {
        survey_answer_fini(a);
        *e = l.trouble;
        good = false;
    }
    look_fini(&l);
    return good;
}

void survey_note_done(struct survey *s, const struct survey_answer *a, int64_t size)
{
    for (size_t i = 0; i < s->done_count; i++) {
        if (s->done[i].device == a->device && s->done[i].inode == a->inode) {
            s->done[i].size = size;
            return;
        }
    }
    s->done = xgrow(s->done, &s->done_capacity, s->done_count + 1, sizeof *s->done);
    s->done[s->done_count++] = (struct survey_done){a->device, a->inode, size};
}

void survey_note_end(struct survey *s, const char *source, enum range_state state)
{
    for (size_t i = 0; i < s->end_count; i++) {
        if (strcmp(s->ends[i].source, source) == 0) {
            s->ends[i].state = state;
            return;
        }
    }
    s->ends = xgrow(s->ends, &s->end_capacity, s->end_count + 1, sizeof *s->ends);
    struct survey_end *end = &s->ends[s->end_count++];
    *end = (struct survey_end){.state = state};
    snprintf(end->source, sizeof end->source, "%s", source);
}

void survey_note_whole(struct survey *s, const char *source, bool is_whole)
{
    for (size_t i = 0; i < s->end_count; i++) {
        if (strcmp(s->ends[i].source, source) == 0)
            s->ends[i].is_whole = is_whole;
    }
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
