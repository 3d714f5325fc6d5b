/* Which file of a log is next? The writer opens it, and closes what was left. */
#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/file/follow_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_MS      250  /* between two attempts to open a file */
#define LOOK_BACK_MS 2000 /* between two looks for older files while a log is open */

/* Folders' times tell when to look at a log's files. But a file system's clock may be coarse, or another
 * host's: so look at them after this time anyway. */
#define LOOK_ANYWAY_MS (10 * 60 * 1000)

/* A folder that is listed during a rename may show neither name. So a file counts as lost only after this
 * time. */
#define LOST_MS 2000

/* ---- signs of change */

static struct folder_stamp take_stamp(const struct follow *fo, const struct followed *f)
{
    struct stat status;
    struct folder_stamp s = {0};
    char *folders[FAMILY_FOLDERS];
    family_folders(f->path, f->of->config->olddir, folders);
    for (size_t i = 0; i < FAMILY_FOLDERS; i++) {
        s.folder_ns[i] = folders[i] != NULL ? follow_folder_ns(fo, folders[i]) : 0;
        free(folders[i]);
    }
    if (stat(f->path, &status) == 0) {
        s.log_size = status.st_size;
        s.device = status.st_dev;
        s.inode = status.st_ino;
    }
    return s;
}

static bool has_same_folders(const struct folder_stamp *a, const struct folder_stamp *b)
{
    bool are_same = true;
    for (size_t i = 0; i < FAMILY_FOLDERS; i++)
        are_same = are_same && a->folder_ns[i] == b->folder_ns[i] && a->folder_ns[i] >= 0;
    return are_same;
}

static bool is_same_stamp(const struct folder_stamp *a, const struct folder_stamp *b)
{
    return has_same_folders(a, b) && a->log_size == b->log_size && a->device == b->device &&
           a->inode == b->inode;
}

/* ---- the survey */

bool follow_need_fresh(struct follow *fo, struct err *e)
{
    if (fo->is_known_fresh)
        return true;
    known_fini(&fo->known);
    fo->has_known = fo->is_known_fresh = known_read(&fo->known, fo->engine->options.store, e);
    return fo->has_known;
}

/* May a survey find something new? The signs of change are compared by `is_same`. */
static bool has_news(const struct follow *fo, const struct followed *f,
                     bool (*is_same)(const struct folder_stamp *, const struct folder_stamp *))
{
    struct folder_stamp now = take_stamp(fo, f);
    bool has_grown = f->before != NULL && input_raw_size(f->before) > f->before_size;
    bool is_due = follow_now_ms(fo) - f->looked_ms >= LOOK_ANYWAY_MS;
    return has_grown || is_due || !is_same(&now, &f->stamp);
}

/* Has another log a file open that the store knows, or will, by this name? */
static bool is_name_open(void *context, const char *source)
{
    const struct follow *fo = context;
    bool is = false;
    for (size_t i = 0; i < fo->count && !is; i++)
        is = fo->list[i]->source.reader != NULL && strcmp(fo->list[i]->source.range.source, source) == 0;
    return is;
}

/* A file that was handed over is waited for (follow_is_handed()). */
static bool is_read_elsewhere(void *context, const char *log, const char *source, dev_t device, ino_t inode)
{
    const struct follow *fo = context;
    bool is = false;
    for (size_t i = 0; i < fo->count && !is; i++) {
        const struct followed *f = fo->list[i];
        is = f->path != NULL && f->source.reader != NULL && strcmp(f->path, log) != 0 &&
             strcmp(f->source.range.source, source) == 0 && !input_is(f->source.in, device, inode);
    }
    return is;
}

static bool look(struct follow *fo, struct followed *f, struct survey_answer *a, struct err *e)
{
    if (f->begun_ns == 0)
        f->begun_ns = clock_wall_ms(fo->feed.shared->lanes.clock) * 1000000;
    const struct survey_log log = {.path = f->path,
                                   .olddir = f->of->config->olddir,
                                   .is_log = follow_has_log,
                                   .is_name_open = is_name_open,
                                   .is_read_elsewhere = is_read_elsewhere,
                                   .find_owner = follow_find_owner,
                                   .context = fo,
                                   .host = fo->host,
                                   .future_max_ms = fo->feed.shared->future_max_ms,
                                   .now_ns = clock_wall_ms(fo->feed.shared->lanes.clock) * 1000000,
                                   .begun_ns = f->begun_ns,
                                   .input = f->source.in,
                                   .held_fd = f->before != NULL ? input_held_fd(f->before) : -1,
                                   .is_held_next = f->before_came_next};
    f->stamp = take_stamp(fo, f);
    f->looked_ms = follow_now_ms(fo);
    if (f->before != NULL && input_raw_size(f->before) > f->before_size)
        survey_note_whole(&f->survey, f->before_source, false);
    if (f->before != NULL)
        f->before_size = input_raw_size(f->before);
    return (fo->has_known || follow_need_fresh(fo, e)) && survey_look(&f->survey, &log, &fo->known, a, e);
}

/* Look for what to do. Others may have counted a file meanwhile: read the store before anything is done. */
static bool look_surely(struct follow *fo, struct followed *f, struct survey_answer *a, struct err *e)
{
    if (!look(fo, f, a, e))
        return false;
    if (fo->is_known_fresh || (a->what == SURVEY_NOTHING && a->ending_count == 0))
        return true;
    survey_answer_fini(a);
    return follow_need_fresh(fo, e) && look(fo, f, a, e);
}

static void tell_lost(struct follow *fo, struct followed *f)
{
    char label[LOG_QUOTE_BYTES], why[LOG_QUOTE_BYTES];
    const struct survey_answer *a = &f->answer;
    log_error(
        "file_lost",
        "source=%s id=%s counted_to=%" PRId64 " error=%s unreadable=%zu%s%s next=\"counting goes on; if the "
        "file is found, import it: only what is missing is counted\"",
        log_quote(f->path, label), a->range.source, a->range.to,
        f->was_truncated ? "\"the log was truncated, and no copy of it is there: lines since may be lost\""
                         : "\"the file that was followed is not there any more: its later lines are lost\"",
        a->unreadable, a->unreadable > 0 ? " why=" : "",
        a->unreadable > 0 ? log_quote(a->why.text, why) : "");
    survey_note_end(&f->survey, a->range.source, RANGE_LOST);
    fo->lost++;
}

/* Other files came after a followed one, and went unseen. */
static void tell_gap(struct follow *fo, struct followed *f)
{
    char label[LOG_QUOTE_BYTES], file[LOG_QUOTE_BYTES];
    struct survey_answer *a = &f->answer;
    log_error(
        "file_lost",
        "source=%s after=%s before=%s error=\"files of this log may have been deleted before they were seen: "
        "their lines are lost\" next=\"counting goes on; keep more rotated files\"",
        log_quote(f->path, label), a->gap_after, log_quote(a->path, file));
    survey_note_end(&f->survey, a->gap_after, RANGE_LOST);
    for (size_t i = 0; i < a->ending_count; i++) {
        if (strcmp(a->endings[i].source, a->gap_after) == 0)
            a->endings[i].state = RANGE_LOST + fo->host * KNOWN_HOST;
    }
    fo->lost++;
}

/* Has a file been missing for a while? At first it may only be renamed. */
static bool has_lasted(const struct follow *fo, struct followed *f)
{
    int64_t now_ms = follow_now_ms(fo);
    if (f->missing_ms == 0)
        f->missing_ms = now_ms;
    return now_ms - f->missing_ms >= LOST_MS;
}

/* A file is not found: wait a little, then tell it. False: counting cannot go on. */
static bool miss(struct follow *fo, struct followed *f, struct err *e)
{
    if (!has_lasted(fo, f))
        return true;
    f->missing_ms = 0;
    if (f->answer.what == SURVEY_CHANGED && !f->was_truncated) {
        *e = f->answer.why;
        return false;
    }
    tell_lost(fo, f);
    f->look_ms = 0;
    return true;
}

static void warn_of_missing(struct followed *f)
{
    char label[LOG_QUOTE_BYTES];
    if (f->stamp.inode != 0 || f->is_listed || f->has_told_away)
        return;
    log_limited(LOG_LEVEL_WARN, "file_away", "source=%s next=\"waiting for it\"", log_quote(f->path, label));
    f->has_told_away = true;
}

/* Warn of files that are not counted. Those that are skipped are told once, until there are others. */
static void warn_of_uncounted(struct followed *f)
{
    char label[LOG_QUOTE_BYTES], why[LOG_QUOTE_BYTES];
    if (f->answer.unreadable > 0)
        log_limited(LOG_LEVEL_WARN, "file_unreadable",
                    "source=%s files=%zu error=%s next=\"lines in them are not counted\"",
                    log_quote(f->path, label), f->answer.unreadable, log_quote(f->answer.why.text, why));
    if (f->answer.skipped > 0 && f->answer.skipped != f->told_skipped)
        log_limited(LOG_LEVEL_WARN, "file_skipped",
                    "source=%s files=%zu error=%s next=\"lines in them are not counted\"",
                    log_quote(f->path, label), f->answer.skipped, log_quote(f->answer.skipped_why.text, why));
    f->told_skipped = f->answer.skipped;
}

/* A short file of another host has the same bytes. If it is this file, it is counted twice. */
static void warn_of_others(const struct followed *f)
{
    char label[LOG_QUOTE_BYTES];
    if (f->answer.others > 0)
        log_limited(LOG_LEVEL_WARN, "file_of_other_host",
                    "source=%s id=%s same_to=%" PRId64 " next=\"counting it as a file of its own; if this "
                    "host had another name, lines before same_to are counted twice\"",
                    log_quote(f->path, label), f->answer.range.source, f->answer.others);
}

/* ---- opening */

static void log_source(const struct followed *f)
{
    char label[LOG_QUOTE_BYTES], file[LOG_QUOTE_BYTES], what[LOG_QUOTE_BYTES];
    const struct range *r = &f->source.range;
    bool is_rotated = f->answer.what == SURVEY_ROTATED;
    log_info("source_opened", "source=%s id=%s from=%" PRId64 "%s%s", log_quote(r->label, label), r->source,
             r->to, is_rotated ? " file=" : "", is_rotated ? log_quote(f->answer.path, file) : "");
    if (f->source.note[0] != '\0')
        log_info("source_known", "source=%s note=%s", label, log_quote(f->source.note, what));
}

void followed_begin(struct follow *fo, struct followed *f)
{
    ASSERT(!f->is_in_batch && f->pending == 0);
    f->range = f->source.range;
    f->range.from = f->range.to = reader_offset(f->source.reader);
    f->head = f->answer.head;
    if (f->head.len > 0)
        source_set_head(&f->range, f->head);
    f->read_to = f->stored_to = f->range.to;
    f->has_caught_up = f->was_truncated = f->is_damaged = f->has_turned = f->has_told_away = false;
    f->has_seen_next = f->came_next = false;
    f->must_turn = false;
    f->was_found = true;
    f->consumed = 0;
    f->latest = (struct latest){0};
    f->opened_ms = follow_now_ms(fo);
    f->block_ms = f->renamed_ms = f->missing_ms = f->fate_ms = 0;
    f->look_ms = f->opened_ms + LOOK_BACK_MS;
    log_source(f);
    followed_set_state(fo, f, FOLLOWED_OPEN);
}

static struct source_options options_of(const struct follow *fo, const struct followed *f)
{
    return (struct source_options){.line_max = fo->feed.shared->line_max,
                                   .last_line = LAST_LINE_LEAVE,
                                   .heeds_directives = decode_heeds_directives(&f->of->config->decode),
                                   .stop = followed_is_stdin(f) ? fo->engine->options.service->stop : NULL};
}

/* Open standard input, or a pipe by its name. Standard input is a new source each time, since it may have
 * no byte yet. But a regular file (`tallyd run <FILE`) is recognised by its content, as is a named pipe. */
static bool open_stream(struct follow *fo, struct followed *f, struct err *e)
{
    struct stat status;
    struct source *src = &f->source;
    const struct source_options options = options_of(fo, f);
    bool is_file = fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
    if (!followed_is_stdin(f) || is_file)
        return source_open(src, followed_is_stdin(f) ? "-" : f->path, fo->engine->options.store, &options, e);
    src->in = input_open("-", e);
    if (src->in == NULL)
        return false;
    input_stop_by(src->in, options.stop);
    src->reader = reader_new(src->in, options.line_max, options.last_line);
    if (options.heeds_directives)
        reader_heed_directives(src->reader);
    snprintf(src->range.source, sizeof src->range.source, "stdin:%" PRId64,
             clock_wall_ms(fo->feed.shared->lanes.clock));
    snprintf(src->range.label, sizeof src->range.label, "standard input");
    return true;
}

/* Is the file that was opened another log's, too? Then `e` says so. */
static bool is_one_file(const struct follow *fo, const struct followed *f, struct err *e)
{
    for (size_t i = 0; i < fo->count; i++) {
        const struct followed *other = fo->list[i];
        if (other != f && other->source.in != NULL &&
            input_is(other->source.in, f->answer.device, f->answer.inode))
            return !err_set(e, EX_CONFIG, "%s and %s are one file: name it once", other->range.label,
                            f->path);
    }
    return false;
}

/* Does a new file still begin as the survey found it? Opening a known one has compared the bytes before its
 * position. */
static bool begins_as_found(const struct followed *f, const struct survey_answer *a)
{
    struct slice head;
    struct err ignored;
    return a->range.to > 0 ||
           (reader_head(f->source.reader, &head, &ignored) && identity_matches(a->head, head));
}

/* Open what the survey found. If another file has its place since, look again. */
static bool open_found(struct follow *fo, struct followed *f, struct err *e)
{
    struct survey_answer *a = &f->answer;
    const struct source_options options = options_of(fo, f);
    struct err raced;
    if (!source_open_at(&f->source, a->path, &a->range, &options, &raced))
        return true;
    if (!input_is(f->source.in, a->device, a->inode) || !begins_as_found(f, a)) {
        source_close(&f->source);
        return true;
    }
    if (follow_is_handed(fo, a)) { /* the import ends first */
        source_close(&f->source);
        return true;
    }
    if (is_one_file(fo, f, e)) {
        source_close(&f->source);
        return f->is_listed; /* a log that was renamed to another listed one is read there first */
    }
    memcpy(f->source.note, a->note, sizeof f->source.note);
    warn_of_uncounted(f);
    warn_of_others(f);
    if (a->has_gap)
        tell_gap(fo, f);
    followed_begin(fo, f);
    return true;
}

/* At the start a log that this user may not read is an error. Later it may be so between two rotations. */
static bool may_read(struct followed *f, struct err *e)
{
    int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOCTTY), why = errno;
    if (fd >= 0)
        close(fd);
    f->was_found = fd >= 0;
    return fd >= 0 || why != EACCES || err_set(e, EX_NOPERM, "cannot open %s: %s", f->path, strerror(why));
}

static bool open_log(struct follow *fo, struct followed *f, struct err *e)
{
    if (f->has_looked && f->answer.what == SURVEY_NOTHING && !has_news(fo, f, is_same_stamp)) {
        warn_of_missing(f);
        return true;
    }
    survey_answer_fini(&f->answer);
    if (!look_surely(fo, f, &f->answer, e))
        return false;
    f->has_looked = true;
    if (f->answer.what != SURVEY_LOST && f->answer.what != SURVEY_CHANGED && !f->answer.has_gap)
        f->missing_ms = 0;
    switch (f->answer.what) {
    case SURVEY_NOTHING:
        warn_of_missing(f);
        warn_of_uncounted(f);
        if (f->answer.ending_count > 0)
            followed_set_state(fo, f, FOLLOWED_ENDING);
        return f->was_found || may_read(f, e);
    case SURVEY_LOST:
    case SURVEY_CHANGED:
        return miss(fo, f, e);
    case SURVEY_ROTATED:
    case SURVEY_LOG:
        if (f->answer.has_gap && !has_lasted(fo, f))
            return true;
        return open_found(fo, f, e);
    }
    ASSERT(false);
    return false;
}

/* Is this failure one to wait for? A log may be missing, and its folder with it; one that was there once
 * may be closed for a while. If the store could not be read, nothing is known. */
static bool may_pass(const struct follow *fo, struct followed *f, const struct err *e)
{
    char quoted[LOG_QUOTE_BYTES];
    bool is_away = f->was_found ? e->code == EX_NOINPUT || e->code == EX_NOPERM
                                : e->code == EX_NOINPUT && access(f->path, F_OK) != 0;
    const char *event = is_away ? "file_away" : fo->has_known ? "file_unreadable" : "store_away";
    if ((is_away && !f->has_told_away) || (!is_away && e->retryable))
        log_limited(LOG_LEVEL_WARN, event, "error=%s next=\"waiting for it\"", log_quote(e->text, quoted));
    f->has_told_away |= is_away;
    return is_away || e->retryable;
}

bool followed_open(struct follow *fo, struct followed *f, struct err *e)
{
    struct stat status;
    f->look_ms = follow_now_ms(fo) + LOOK_MS;
    bool is_stream = followed_is_stdin(f) || (!f->is_listed && !f->was_found && stat(f->path, &status) == 0 &&
                                              !S_ISREG(status.st_mode));
    if (is_stream && !followed_is_stdin(f) && fo->count > 1)
        return err_set(e, EX_CONFIG, "%s is no file: beside other sources, pipe it into standard input",
                       f->path);
    bool good = is_stream ? open_stream(fo, f, e) : open_log(fo, f, e);
    if (good && is_stream) {
        if (f->source.is_empty)
            source_close(&f->source);
        else
            followed_begin(fo, f);
    }
    return good || may_pass(fo, f, e);
}

/* ---- closing */

static void tell_damaged(struct follow *fo, const struct followed *f)
{
    char file[LOG_QUOTE_BYTES], label[LOG_QUOTE_BYTES];
    log_error("file_lost",
              "source=%s id=%s counted_to=%" PRId64 " file=%s "
              "error=\"it is damaged, or cut off: its later lines are lost\" "
              "next=\"counting goes on; import a good copy: only what is missing is counted\"",
              log_quote(f->path, label), f->range.source, f->range.to, log_quote(f->answer.path, file));
    fo->lost++;
}

void followed_close(struct follow *fo, struct followed *f)
{
    char label[LOG_QUOTE_BYTES];
    size_t left = reader_left(f->source.reader);
    bool has_ended = !f->has_turned && !f->was_truncated;
    bool is_lost = f->is_damaged || (f->answer.has_gap && strcmp(f->answer.gap_after, f->range.source) == 0);
    if (f->is_damaged)
        tell_damaged(fo, f);
    else if (left > 0 && has_ended)
        log_warn("line_left",
                 "source=%s bytes=%zu reason=\"the last line is unfinished, and another file has replaced "
                 "this one\"",
                 log_quote(f->range.label, label), left);
    if (has_ended) {
        survey_note_end(&f->survey, f->range.source, is_lost ? RANGE_LOST : RANGE_ENDED);
        survey_note_whole(&f->survey, f->range.source, left == 0 && !is_lost);
        if (left > 0 || f->is_damaged)
            survey_note_done(&f->survey, &f->answer, input_raw_size(f->source.in));
    }
    f->look_ms = 0;
    if (f->answer.is_final || !has_ended) {
        source_close(&f->source);
    } else {
        input_close(f->before);
        f->before = source_leave(&f->source);
        f->before_came_next = f->came_next;
        snprintf(f->before_source, sizeof f->before_source, "%s", f->range.source);
        f->before_size = input_raw_size(f->before);
        f->before_ms = follow_now_ms(fo);
    }
    f->answer.what = SURVEY_NOTHING;
    f->has_looked = false;
    followed_set_state(fo, f, FOLLOWED_CLOSED);
}

bool followed_look_back(struct follow *fo, struct followed *f, struct err *e)
{
    struct survey_answer a = {0};
    bool must_look = has_news(fo, f, has_same_folders);
    f->look_ms = follow_now_ms(fo) + LOOK_BACK_MS;
    if (f->before != NULL && f->look_ms - f->before_ms > BEFORE_MS) {
        input_close(f->before);
        f->before = NULL;
    }
    if (!must_look)
        return true;
    bool good = look(fo, f, &a, e);
    bool is_at_path = input_is(f->source.in, f->stamp.device, f->stamp.inode); /* else it is left soon */
    if (good && a.what == SURVEY_ROTATED && is_at_path && !input_is(f->source.in, a.device, a.inode))
        f->must_turn = true;
    survey_answer_fini(&a);
    return good || may_pass(fo, f, e);
}

void followed_free(struct follow *fo, struct followed *f)
{
    if (f->handed != NULL)
        followed_give_back(fo, f);
    source_close(&f->source);
    input_close(f->before);
    survey_fini(&f->survey);
    survey_answer_fini(&f->answer);
    constants_fini(&f->constants);
    free(f->path);
    free(f);
}
