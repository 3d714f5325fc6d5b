#include "daemon/source.h"

#include "base/check.h"
#include "ingest/file/identity.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The store's positions that may be this file. */
struct search {
    struct slice head;
    const char *path, *source_id;
    const char *const *others; /* NULL, or as in struct source_options */
    struct range match;        /* the longest identity that matches */
    uint32_t match_len;        /* length of that identity; 0: none matches yet */
    bool path_known;           /* another content was counted under this path */
};

/* Does the file at a path begin as this identity says? */
static bool begins_so(const char *path, struct identity id)
{
    char head[IDENTITY_PREFIX_BYTES_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, head, sizeof head) : -1;
    if (fd >= 0)
        close(fd);
    return n > 0 && identity_matches(id, slice_of(head, (size_t)n));
}

/* Is it the position of another source, whose file begins as this one does? The first bytes of a young log
 * may be those of another: two virtual hosts log the same request. */
static bool is_of_another(const struct search *s, const struct range *r, struct identity id)
{
    char full[PATH_MAX];
    bool is = false;
    if (s->others == NULL || id.len == IDENTITY_PREFIX_BYTES_MAX || strcmp(r->label, s->path) == 0)
        return false;
    for (const char *const *other = s->others; *other != NULL && !is; other++)
        is = realpath(*other, full) != NULL && strcmp(full, r->label) == 0 && begins_so(full, id);
    return is;
}

static bool look_at_position(void *context, const struct position *position)
{
    struct search *s = context;
    const struct range *r = &position->range;
    struct identity id;
    if (s->source_id != NULL) {
        if (strcmp(r->source, s->source_id) == 0) {
            s->match = *r;
            s->match_len = 1;
        }
        return true;
    }
    if (!identity_parse(slice_text(r->source), &id))
        return true;
    if (identity_matches(id, s->head) && !is_of_another(s, r, id)) {
        if (id.len >= s->match_len) {
            s->match = *r;
            s->match_len = id.len;
        }
    } else if (strcmp(r->label, s->path) == 0) {
        s->path_known = true;
    }
    return true;
}

static void name_range(struct range *r, const struct search *s)
{
    char id[IDENTITY_TEXT_BYTES];
    *r = (struct range){0};
    snprintf(r->label, sizeof r->label, "%s", s->path);
    if (s->match_len > 0)
        memcpy(r->source, s->match.source, sizeof r->source);
    else if (s->source_id != NULL)
        snprintf(r->source, sizeof r->source, "%s", s->source_id);
    else
        snprintf(r->source, sizeof r->source, "%s", identity_print(identity_of(s->head), id));
}

/* Skip to the position, and check that the text before it is unchanged. */
static bool go_on(struct source *src, const struct search *s, struct err *e)
{
    uint32_t len;
    if (!reader_skip(src->reader, s->match.to, e)) {
        if (e->code != EX_DATAERR)
            return err_prefix(e, "%s", s->path);
        return err_set(e, EX_DATAERR,
                       "%s is shorter than the %lld bytes that were counted of it: it was truncated, or "
                       "another file has the same beginning. --source-id NAME counts it as a new source",
                       s->path, (long long)s->match.to);
    }
    uint64_t hash = identity_tail(reader_tail(src->reader), &len);
    if (len != s->match.tail_len || hash != s->match.tail_hash)
        return err_set(e, EX_DATAERR,
                       "%s has changed before byte %lld since it was counted, or another file has the same "
                       "beginning. --source-id NAME counts it as a new source",
                       s->path, (long long)s->match.to);
    src->range.to = s->match.to;
    src->is_known = true;
    return true;
}

static void write_note(struct source *src, const struct search *s)
{
    if (s->match_len > 0 && strcmp(s->match.label, s->path) != 0)
        snprintf(src->note, sizeof src->note, "was counted before as %.500s", s->match.label);
    else if (s->match_len == 0 && s->path_known)
        snprintf(src->note, sizeof src->note, "has new content under an old name: counted as a new source");
}

static bool identify(struct source *src, struct search *s, struct store *positions, struct store *later,
                     struct err *e)
{
    if (!reader_head(src->reader, &s->head, e))
        return false;
    if (s->head.len == 0) {
        src->is_empty = true;
        return true;
    }
    if ((positions != NULL && !store_positions(positions, look_at_position, s, e)) ||
        (later != NULL && !store_positions(later, look_at_position, s, e)))
        return false;
    name_range(&src->range, s);
    write_note(src, s);
    return s->match_len == 0 || go_on(src, s, e);
}

bool source_open(struct source *src, const char *path, struct store *positions,
                 const struct source_options *options, struct err *e)
{
    char full[PATH_MAX], id[RANGE_SOURCE_BYTES];
    *src = (struct source){0};
    struct search search = {.others = options->others,
                            .path = strcmp(path, "-") != 0 && realpath(path, full) != NULL ? full : path};
    if (options->source_id != NULL) {
        int n = snprintf(id, sizeof id, "id:%s", options->source_id);
        if (n < 0 || (size_t)n >= sizeof id || options->source_id[0] == '\0')
            return err_set(e, EX_USAGE, "--source-id is %zu bytes long, expected 1 to %zu",
                           strlen(options->source_id), sizeof id - sizeof "id:");
        search.source_id = id;
    }
    src->in = options->before != NULL ? input_open_next(options->before, e) : input_open(path, e);
    if (src->in == NULL)
        return false;
    input_stop_by(src->in, options->stop);
    src->reader = reader_new(src->in, options->line_max, options->last_line);
    if (identify(src, &search, positions, options->later_positions, e))
        return true;
    source_close(src);
    return false;
}

struct input *source_leave(struct source *src)
{
    struct input *in = src->in;
    reader_free(src->reader);
    src->reader = NULL;
    src->in = NULL;
    return in;
}

void source_close(struct source *src)
{
    input_close(source_leave(src));
}
