/* Which logs are there? The writer lists the files of each source's patterns at the start, when a folder
 * changes, and now and then. */
#include "base/log.h"
#include "base/mem.h"
#include "config/source_path.h"
#include "daemon/file/follow_internal.h"
#include "daemon/setup.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#define LIST_MS 1000 /* between two looks at the folders */

/* A folder's time is that of its file system, which may be coarse or another host's. */
#define LIST_MAX_MS 60000

/* A server may write to a renamed file for a while, and a copy takes its time. Later a file that looks
 * rotated does not grow. At most SUSPECTS_MAX are watched. */
#define SUSPECT_MS   120000
#define SUSPECTS_MAX 256

/* Changes of a folder within this time may have one time: that of its file system may be as coarse. */
#define INSTANT_MS 2000

static struct followed *find(const struct follow *fo, const char *path)
{
    uint64_t hash = index_hash_text(path);
    size_t at = hash;
    uint32_t number;
    while ((number = index_next(&fo->by_path, hash, &at)) != 0) {
        struct followed *f = fo->list[number - 1];
        if (f->path != NULL && strcmp(f->path, path) == 0)
            return f;
    }
    return NULL;
}

bool follow_has_log(void *context, const char *path)
{
    return find(context, path) != NULL;
}

bool follow_find_owner(void *context, const char *path, struct survey_owner *owner)
{
    const struct follow *fo = context;
    const struct followed *log = find(fo, path);
    for (size_t i = 0; i < fo->count && log == NULL; i++) {
        const struct followed *f = fo->list[i];
        log = f->path != NULL && family_holds(f->path, f->of->config->olddir, path) ? f : NULL;
    }
    if (log != NULL)
        *owner = (struct survey_owner){log->path, log->of->config->olddir};
    for (size_t i = 0; i < fo->source_count && log == NULL; i++) { /* a log that is not there now */
        if (!source_path_match(fo->sources[i].config, path, NULL))
            continue;
        *owner = (struct survey_owner){path, fo->sources[i].config->olddir};
        return true;
    }
    return log != NULL;
}

/* Standard input is in the index, too, since its elements are numbered as the list's. */
static void index_log(struct follow *fo, const struct followed *f)
{
    (void)index_add(&fo->by_path, f->path != NULL ? index_hash_text(f->path) : 0);
}

/* The path with its folder's links resolved. A link at its end stays: it may lead elsewhere later. */
static char *absolute_path(const char *path)
{
    char full[PATH_MAX], *folders[FAMILY_FOLDERS];
    const char *slash = strrchr(path, '/');
    struct text whole = {0};
    family_folders(path, NULL, folders);
    const char *folder = realpath(folders[0], full) != NULL ? full : folders[0];
    text_printf(&whole, "%s%s%s", folder, strcmp(folder, "/") == 0 ? "" : "/",
                slash != NULL ? slash + 1 : path);
    free(folders[0]);
    return whole.ptr;
}

/* ---- adding and removing */

void follow_add(struct follow *fo, struct followed *f)
{
    pthread_mutex_lock(&fo->feed.lane.lanes->lock);
    fo->list = xgrow(fo->list, &fo->capacity, fo->count + 1, sizeof(struct followed *));
    fo->list[fo->count++] = f;
    fo->version++;
    pthread_mutex_unlock(&fo->feed.lane.lanes->lock);
    index_log(fo, f);
}

/* Add a log, or standard input if `path` is NULL. It takes over `path`. */
static void add_log(struct follow *fo, struct follow_source *of, char *path, bool is_listed)
{
    struct followed *f = xcalloc(1, sizeof *f);
    f->of = of;
    f->path = path;
    f->is_listed = is_listed;
    f->was_found = is_listed && of->has_begun; /* one that appears later, and may not be read, ends nothing */
    if (path != NULL)
        (void)source_path_match(of->config, path, &f->constants);
    follow_add(fo, f);
}

static void remove_log(struct follow *fo, size_t i)
{
    char label[LOG_QUOTE_BYTES];
    struct followed *f = fo->list[i];
    if (f->handed == NULL)
        log_info("source_removed", "source=%s", log_quote(f->path, label));
    pthread_mutex_lock(&fo->feed.lane.lanes->lock);
    fo->list[i] = fo->list[--fo->count];
    f->removed_in = ++fo->version;
    pthread_mutex_unlock(&fo->feed.lane.lanes->lock);
    f->next_removed = fo->removed;
    fo->removed = f;
    index_clear(&fo->by_path);
    for (i = 0; i < fo->count; i++)
        index_log(fo, fo->list[i]);
}

/* Is a listed log not there any more, and its last file read to its end, and not written to any more? */
static bool is_gone(struct follow *fo, const struct followed *f)
{
    struct stat status;
    if (f->handed != NULL)
        return followed_get_state(fo, f) == FOLLOWED_CLOSED;
    bool is_watched = f->before != NULL && follow_now_ms(fo) - f->before_ms < BEFORE_MS;
    return f->is_listed && followed_get_state(fo, f) == FOLLOWED_CLOSED && f->has_looked && !is_watched &&
           f->answer.what == SURVEY_NOTHING && f->answer.ending_count == 0 &&
           (stat(f->path, &status) != 0 || !S_ISREG(status.st_mode));
}

void follow_remove_gone(struct follow *fo)
{
    for (size_t i = fo->count; i > 0; i--) {
        if (is_gone(fo, fo->list[i - 1]))
            remove_log(fo, i - 1);
    }
    pthread_mutex_lock(&fo->feed.lane.lanes->lock);
    uint64_t seen = fo->seen_version;
    pthread_mutex_unlock(&fo->feed.lane.lanes->lock);
    for (struct followed **at = &fo->removed; *at != NULL;) {
        struct followed *f = *at;
        if (f->removed_in > seen) { /* the thread may still have it in its list */
            at = &f->next_removed;
            continue;
        }
        *at = f->next_removed;
        followed_free(fo, f);
    }
}

/* ---- files that look rotated, and are written to */

static struct suspect *find_suspect(struct follow_source *of, const char *path)
{
    for (size_t i = 0; i < of->suspect_count; i++) {
        if (strcmp(of->suspects[i].path, path) == 0)
            return &of->suspects[i];
    }
    if (of->suspect_count == SUSPECTS_MAX)
        return NULL;
    of->suspects = xgrow(of->suspects, &of->suspect_capacity, of->suspect_count + 1, sizeof *of->suspects);
    struct suspect *s = &of->suspects[of->suspect_count++];
    *s = (struct suspect){.path = xstrdup(path)};
    return s;
}

/* A file that a pattern matches is taken for a rotated one by its name. If it is written to long after, it
 * may be a log of its own. Rotation may put another file under its name. */
static void watch_rotated(struct follow *fo, struct follow_source *of, const char *path)
{
    char file[LOG_QUOTE_BYTES], source[LOG_QUOTE_BYTES];
    struct stat status;
    struct suspect *s = find_suspect(of, path);
    int64_t now_ms = follow_now_ms(fo);
    if (s == NULL || stat(path, &status) != 0)
        return;
    if (s->inode != status.st_ino || s->device != status.st_dev || status.st_size < s->size) {
        s->inode = status.st_ino;
        s->device = status.st_dev;
        s->size = status.st_size;
        s->seen_ms = now_ms;
    }
    if (status.st_size == s->size || now_ms - s->seen_ms < SUSPECT_MS || s->is_told)
        return;
    s->is_told = true;
    log_warn(
        "looks_rotated",
        "file=%s source=%s error=\"it is written to, but its name is that of another log's rotated file: it "
        "is not followed as a log of its own\" next=\"give it another name, or name it by its whole path, "
        "too\"",
        log_quote(path, file), log_quote(of->config->name, source));
}

void follow_free_suspects(struct follow_source *of)
{
    for (size_t i = 0; i < of->suspect_count; i++)
        free(of->suspects[i].path);
    free(of->suspects);
}

/* ---- listing */

/* Is it a rotated file of a log that is listed beside it, or followed? */
static bool is_rotated(const struct follow *fo, const struct listing *l, const char *listed, const char *path)
{
    bool is = false;
    for (size_t i = 0; i < l->file_count && !is; i++)
        is = family_holds(l->files[i], NULL, listed);
    for (size_t i = 0; i < fo->count && !is; i++)
        is = fo->list[i]->path != NULL && family_holds(fo->list[i]->path, NULL, path);
    return is;
}

/* A pattern that matches nothing may be misspelt. Or its server is not here: so this is no warning. */
static void tell_unmatched(const struct follow_source *of)
{
    char source[LOG_QUOTE_BYTES], path[LOG_QUOTE_BYTES];
    struct slice captures[PATTERN_CAPTURES_MAX];
    for (size_t i = 0; i < of->config->path_count; i++) {
        const struct pattern *p = of->config->paths[i];
        bool is_matched = p->plain != NULL; /* it is no pattern */
        for (size_t n = 0; n < of->listing.file_count && !is_matched; n++)
            is_matched = pattern_match(p, slice_text(of->listing.files[n]), captures);
        if (!is_matched)
            log_info("no_file_matches", "source=%s path=%s next=\"waiting for one\"",
                     log_quote(of->config->name, source), log_quote(p->text, path));
    }
}

static void take_files(struct follow *fo, struct follow_source *of, const struct listing *l)
{
    for (size_t i = 0; i < l->file_count; i++) {
        char *path = absolute_path(l->files[i]);
        bool is_followed = find(fo, path) != NULL;
        if (!is_followed && !is_rotated(fo, l, l->files[i], path)) {
            add_log(fo, of, path, true);
            continue;
        }
        if (!is_followed)
            watch_rotated(fo, of, path);
        free(path);
    }
}

int64_t follow_folder_ns(const struct follow *fo, const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return 0;
    int64_t now_ms = clock_wall_ms(fo->feed.shared->lanes.clock), at_ns = clock_ns(status.st_mtim);
    int64_t age_ms = now_ms - at_ns / 1000000;
    return age_ms >= 0 && age_ms < INSTANT_MS ? -1 : at_ns;
}

/* The times of the folders in which files may appear; 0: list them anyway. */
static uint64_t stamp_of(const struct follow *fo, const struct listing *l)
{
    uint64_t stamp = 1;
    for (size_t i = 0; i < l->folder_count; i++) {
        int64_t at_ns = follow_folder_ns(fo, l->folders[i]);
        if (at_ns < 0)
            return 0;
        stamp = stamp * 31 + (uint64_t)at_ns;
    }
    return stamp;
}

static bool list_source(struct follow *fo, struct follow_source *of, struct err *e)
{
    char quoted[LOG_QUOTE_BYTES];
    uint64_t stamp = stamp_of(fo, &of->listing);
    int64_t now_ms = follow_now_ms(fo);
    if (stamp != 0 && stamp == of->stamp && now_ms - of->listed_ms < LIST_MAX_MS)
        return true;
    listing_fini(&of->listing);
    of->listing = (struct listing){0};
    for (size_t i = 0; i < of->config->path_count; i++) {
        const struct pattern *p = of->config->paths[i];
        if (p->plain == NULL && !listing_add(&of->listing, p, e))
            return false;
    }
    if (of->listing.unread[0] != '\0')
        log_limited(LOG_LEVEL_WARN, "folder_unreadable", "error=%s next=\"its files are not followed\"",
                    log_quote(of->listing.unread, quoted));
    of->stamp = stamp_of(fo, &of->listing);
    of->listed_ms = now_ms;
    if (!of->has_begun)
        tell_unmatched(of);
    take_files(fo, of, &of->listing);
    return true;
}

/* Files that were followed when the daemon ended, and are not there any more: they are looked for. */
static bool add_missed(struct follow *fo, struct follow_source *of, struct err *e)
{
    if (!follow_need_fresh(fo, e))
        return false;
    for (size_t i = 0; i < fo->known.count; i++) {
        const struct known_file *k = &fo->known.files[i];
        if (k->state == RANGE_FOLLOWED && (k->host == 0 || k->host == fo->host) &&
            find(fo, k->label) == NULL && source_path_match(of->config, k->label, NULL))
            add_log(fo, of, xstrdup(k->label), true);
    }
    return true;
}

bool follow_find(struct follow *fo, struct err *e)
{
    if (follow_now_ms(fo) < fo->find_ms)
        return true;
    fo->find_ms = follow_now_ms(fo) + LIST_MS;
    for (size_t i = 0; i < fo->source_count; i++) {
        struct follow_source *of = &fo->sources[i];
        if (!of->has_globs)
            continue;
        if (!list_source(fo, of, e) || (!of->has_begun && !add_missed(fo, of, e)))
            return e->retryable;
        of->has_begun = true;
    }
    return true;
}

void follow_find_plain(struct follow *fo)
{
    for (size_t i = 0; i < fo->source_count; i++) {
        struct follow_source *of = &fo->sources[i];
        if (of->config->path_count == 0)
            add_log(fo, of, NULL, false);
        for (size_t p = 0; p < of->config->path_count; p++) {
            const char *plain = of->config->paths[p]->plain;
            of->has_globs |= plain == NULL;
            if (plain != NULL) /* "-" is standard input */
                add_log(fo, of, strcmp(plain, "-") != 0 ? absolute_path(plain) : NULL, false);
        }
    }
}
