#include "tests/support/rotating.h"

#include "base/check.h"
#include "daemon/source.h"
#include "ingest/file/family.h"
#include "ingest/record.h"
#include "store/backend/backend.h"
#include "store/writer.h"
#include "tests/support/batcher.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_log(void *context, const char *path)
{
    struct rotating *k = context;
    return strcmp(path, k->path) == 0 || strcmp(path, k->other_log) == 0 || strcmp(path, k->blog) == 0;
}

static bool is_name_open(void *context, const char *source)
{
    struct rotating *k = context;
    return strcmp(source, k->open_name) == 0;
}

static bool is_read_elsewhere(void *context, const char *log, const char *source, dev_t device, ino_t inode)
{
    struct rotating *k = context;
    ASSERT(strcmp(log, k->path) == 0);
    (void)device;
    return inode != 0 && strcmp(source, k->read_name) == 0;
}

static bool find_owner(void *context, const char *path, struct survey_owner *owner)
{
    struct rotating *k = context;
    const char *const logs[] = {k->path, k->other_log, k->blog};
    for (size_t i = 0; i < 2 * COUNT_OF(logs); i++) { /* first the logs themselves */
        const char *log = logs[i % COUNT_OF(logs)];
        *owner = (struct survey_owner){log, NULL};
        if (i < COUNT_OF(logs) ? strcmp(path, log) == 0 : family_holds(log, NULL, path))
            return true;
    }
    return false;
}

void rotating_begin(struct rotating *k)
{
    struct err e;
    *k = (struct rotating){0};
    scratch_make(&k->scratch);
    fixture_reports(k->reports);
    k->store = store_open("mem:", STORE_WRITE, k->reports, FIXTURE_COUNT, &e);
    snprintf(k->path, sizeof k->path, "%s", scratch_path(&k->scratch, LOG));
    snprintf(k->other_log, sizeof k->other_log, "%s", scratch_path(&k->scratch, "access.log.7"));
    snprintf(k->blog, sizeof k->blog, "%s", scratch_path(&k->scratch, "blog.log"));
    k->log = (struct survey_log){.path = k->path,
                                 .is_log = is_log,
                                 .is_name_open = is_name_open,
                                 .is_read_elsewhere = is_read_elsewhere,
                                 .find_owner = find_owner,
                                 .context = k,
                                 .host = HOST,
                                 .future_max_ms = FUTURE_MAX_MS,
                                 .now_ns = NOW_MS * 1000000,
                                 .held_fd = -1};
}

void rotating_end(struct rotating *k)
{
    survey_answer_fini(&k->answer);
    survey_fini(&k->survey);
    known_fini(&k->known);
    store_close(k->store);
    fixture_free(k->reports);
    text_fini(&k->said);
    scratch_remove(&k->scratch);
}

/* ---- files */

static void write_lines(struct text *t, char content, int lines)
{
    for (int i = 0; i < lines; i++) {
        bool is_shared = (content >= 'p' && content <= 't' && i < HEADER_LINES) ||
                         (content >= 'P' && content <= 'T' && i < PREFIX_LINES);
        text_printf(t, "%c%06d %041d\n", is_shared ? '#' : content, i, 0);
    }
}

void rotating_set_age(const char *path, int age_min)
{
    const struct timespec at = {.tv_sec = NOW_MS / 1000 - age_min * 60};
    const struct timespec times[2] = {at, at};
    ASSERT(utimensat(AT_FDCWD, path, times, 0) == 0);
}

void rotating_put(struct rotating *k, struct place p)
{
    struct text t = {0};
    char path[512];
    snprintf(path, sizeof path, "%s", scratch_path(&k->scratch, p.name));
    write_lines(&t, p.content, p.lines);
    if (strstr(p.name, ".gz") != NULL)
        scratch_write_gzip(path, slice_of(t.ptr, t.len));
    else
        scratch_write(path, slice_of(t.ptr, t.len));
    rotating_set_age(path, p.age_min);
    text_fini(&t);
}

/* ---- what the store knows */

struct identity rotating_identity(char content, int lines)
{
    struct text t = {0};
    write_lines(&t, content, lines);
    struct identity id = identity_of(slice_of(t.ptr, t.len));
    text_fini(&t);
    return id;
}

void rotating_apply(struct rotating *k, struct counted c)
{
    struct err e;
    char id[IDENTITY_TEXT_BYTES];
    struct text t = {0};
    struct batcher *b = batcher_new(k->reports, FIXTURE_COUNT, 1);
    int seen = c.seen > 0 ? c.seen : c.lines;
    write_lines(&t, c.content, c.lines);
    const struct batch *batch =
        batcher_seal(b, identity_print(rotating_identity(c.content, seen), id), 0, (int64_t)t.len);
    struct range *r = batcher_range(b);
    snprintf(r->label, sizeof r->label, "%s", c.label != NULL ? scratch_path(&k->scratch, c.label) : k->path);
    r->tail_hash = identity_tail(slice_of(t.ptr, t.len), &r->tail_len);
    r->state = c.state != RANGE_UNCHANGED ? (int64_t)c.state + c.host * KNOWN_HOST : 0;
    r->latest_ms = record_clock_latest(NOW_MS - c.age_min * MINUTE_MS, FUTURE_MAX_MS);
    if (c.state != RANGE_UNCHANGED)
        source_set_head(r, identity_of(slice_of(t.ptr, t.len)));
    ASSERT(store_apply(k->store, batch, &e));
    if (c.noted != RANGE_UNCHANGED)
        survey_note_end(&k->survey, r->source, c.noted);
    survey_note_whole(&k->survey, r->source, c.whole);
    batcher_free(b);
    text_fini(&t);
}

void rotating_forget(struct rotating *k)
{
    struct err e;
    store_close(k->store);
    k->store = store_open("mem:", STORE_WRITE, k->reports, FIXTURE_COUNT, &e);
}

/* ---- answers */

static void say_letter(struct rotating *k, const struct counted *known, const char *source)
{
    char id[IDENTITY_TEXT_BYTES];
    for (; known->content != '\0'; known++) {
        int seen = known->seen > 0 ? known->seen : known->lines;
        if (strcmp(identity_print(rotating_identity(known->content, seen), id), source) == 0)
            text_printf(&k->said, " %c", known->content);
    }
}

static void say_file(struct rotating *k)
{
    const struct survey_answer *a = &k->answer;
    if (a->what == SURVEY_ROTATED)
        text_printf(&k->said, " %s",
                    strncmp(a->path, "/proc/", 6) == 0 ? "held" : a->path + strlen(k->scratch.dir) + 1);
    if (a->is_known)
        text_printf(&k->said, " from %d", (int)(a->range.to / LINE_BYTES));
    else
        text_printf(&k->said, " new");
    ASSERT(strcmp(a->range.label, k->path) == 0);
}

const char *rotating_ask(struct rotating *k, const struct counted *known)
{
    static const char *const words[] = {"nothing", "rotated", "log", "lost", "changed"};
    struct err e;
    const struct survey_answer *a = &k->answer;
    known_fini(&k->known);
    survey_answer_fini(&k->answer);
    text_clear(&k->said);
    ASSERT(known_read(&k->known, k->store, &e));
    ASSERT(survey_look(&k->survey, &k->log, &k->known, &k->answer, &e));
    text_puts(&k->said, words[a->what]);
    if (a->what == SURVEY_ROTATED || a->what == SURVEY_LOG)
        say_file(k);
    else if (a->what != SURVEY_NOTHING)
        say_letter(k, known, a->range.source);
    if (a->has_gap)
        text_puts(&k->said, ", gap");
    if (a->others > 0)
        text_printf(&k->said, ", another host's to %d", (int)(a->others / LINE_BYTES));
    if (a->skipped > 0)
        text_puts(&k->said, ", skipped");
    for (size_t i = 0; i < a->ending_count; i++) {
        ASSERT(a->endings[i].state / KNOWN_HOST == HOST);
        ASSERT(a->endings[i].from == a->endings[i].to);
        text_puts(&k->said, a->endings[i].state % KNOWN_HOST == RANGE_LOST ? ", lost" : ", ended");
        say_letter(k, known, a->endings[i].source);
    }
    return k->said.ptr;
}

static void lay_out(struct rotating *k, const struct rotating_row *row)
{
    ASSERT(mkdir(scratch_path(&k->scratch, "old"), 0700) == 0);
    k->log.olddir = row->olddir;
    for (const struct place *p = row->files; p->name != NULL; p++)
        rotating_put(k, *p);
    for (const struct counted *c = row->known; c->content != '\0'; c++)
        rotating_apply(k, *c);
}

size_t rotating_check(const struct rotating_row *rows, size_t count)
{
    struct rotating k;
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        rotating_begin(&k);
        lay_out(&k, &rows[i]);
        const char *answer = rotating_ask(&k, rows[i].known);
        if (strcmp(answer, rows[i].answer) != 0) {
            fprintf(stderr, "%s:\n  \"%s\" instead of \"%s\"\n", rows[i].rule, answer, rows[i].answer);
            wrong++;
        }
        rotating_end(&k);
    }
    return wrong;
}
