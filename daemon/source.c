#include "daemon/source.h"

#include "base/check.h"
#include "ingest/file/family.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* How the path of a file is related to that under which a position was counted. */
enum kinship { NAME_OTHER, NAME_FAMILY, NAME_ROTATED, NAME_OWN };

/* How well a position fits a file that begins as its file. The first difference decides. */
struct fit {
    uint32_t len;  /* length of the identity that matches; 0: none does */
    bool is_whole; /* the file has as many first bytes as the store knows */
    enum kinship name;
};

/* The store's positions that may be this file. */
struct search {
    struct slice head;
    const char *path, *source_id;
    struct range match; /* the one that fits best; of two, the later one */
    struct fit fit;
    bool path_known; /* another content was counted under this path */
};

enum last_line source_last_line(const struct decode *d, bool takes)
{
    if (takes)
        return LAST_LINE_TAKE;
    return decode_ends_with_agent(d) ? LAST_LINE_COMPLETE : LAST_LINE_LEAVE;
}

bool source_head(const struct range *r, struct identity *head)
{
    const struct witness *w = &r->witnesses.at[0];
    if (r->partition[0] != '\0' || r->witnesses.count != 1 || w->offset < 1 ||
        w->offset > IDENTITY_PREFIX_BYTES_MAX)
        return false;
    *head = (struct identity){(uint32_t)w->offset, w->hash};
    return true;
}

void source_set_head(struct range *r, struct identity head)
{
    r->witnesses = (struct witnesses){.count = 1, .at = {{head.len, head.hash}}};
}

/* The identity to compare with `head`: of as many bytes as the store knows, or as there are. False: it is no
 * file's. */
static bool identity_of_range(const struct range *r, struct slice head, struct identity *id, bool *is_whole)
{
    bool has_head = source_head(r, id);
    *is_whole = !has_head || head.len >= id->len;
    return (has_head && *is_whole) || identity_parse(slice_text(r->source), id) || has_head;
}

/* How is the path related to that under which a file was counted? Logs with the same bytes are told apart by
 * it. A rotated file may be in another folder (`olddir`). */
static enum kinship compare_names(const char *path, const char *counted)
{
    const char *a = strrchr(path, '/'), *b = strrchr(counted, '/');
    if (strcmp(path, counted) == 0)
        return NAME_OWN;
    if (a == NULL || b == NULL || !family_has(slice_text(b + 1), slice_text(a + 1)))
        return NAME_OTHER;
    return slice_equal(slice_of(path, (size_t)(a - path)), slice_of(counted, (size_t)(b - counted)))
               ? NAME_ROTATED
               : NAME_FAMILY;
}

static bool fits_better(const struct fit *a, const struct fit *b)
{
    if (a->len != b->len)
        return a->len > b->len;
    return a->is_whole != b->is_whole ? a->is_whole : a->name >= b->name;
}

static bool look_at_position(void *context, const struct position *position)
{
    struct search *s = context;
    const struct range *r = &position->range;
    struct identity id;
    struct fit fit = {0};
    if (s->source_id != NULL) {
        if (strcmp(r->source, s->source_id) == 0) {
            s->match = *r;
            s->fit.len = 1;
        }
        return true;
    }
    if (!identity_of_range(r, s->head, &id, &fit.is_whole))
        return true;
    if (identity_matches(id, s->head)) {
        fit.len = id.len;
        fit.name = compare_names(s->path, r->label);
        if (fits_better(&fit, &s->fit)) {
            s->match = *r;
            s->fit = fit;
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
    if (s->fit.len > 0)
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
    if (s->fit.len > 0 && strcmp(s->match.label, s->path) != 0)
        snprintf(src->note, sizeof src->note, "was counted before as %.500s", s->match.label);
    else if (s->fit.len == 0 && s->path_known)
        snprintf(src->note, sizeof src->note, "has new content under an old name: counted as a new source");
}

/* Read the file as its name in the store says. */
static bool choose(struct source *src, const struct search *s, const struct source_options *options,
                   struct err *e)
{
    struct source_options chosen = *options;
    if (s->fit.len > 0)
        snprintf(src->label, sizeof src->label, "%s", s->match.label);
    if (options->choose == NULL)
        return true;
    if (!options->choose(options->context, s->fit.len > 0 ? src->label : NULL, &chosen, e))
        return false;
    reader_set_last_line(src->reader, chosen.last_line);
    if (chosen.heeds_directives)
        reader_heed_directives(src->reader);
    if (chosen.keeps_label && s->fit.len > 0)
        memcpy(src->range.label, src->label, sizeof src->range.label);
    return true;
}

static bool identify(struct source *src, struct search *s, struct store *positions,
                     const struct source_options *options, struct err *e)
{
    struct store *later = options->later_positions;
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
    return choose(src, s, options, e) && (s->fit.len == 0 || go_on(src, s, e));
}

static bool open_reader(struct source *src, const char *path, const struct source_options *options,
                        struct err *e)
{
    *src = (struct source){.in = options->in};
    if (src->in == NULL)
        src->in = input_open(path, e);
    if (src->in == NULL)
        return false;
    input_stop_by(src->in, options->stop);
    src->reader = reader_new(src->in, options->line_max, options->last_line);
    if (options->heeds_directives)
        reader_heed_directives(src->reader);
    return true;
}

bool source_open(struct source *src, const char *path, struct store *positions,
                 const struct source_options *options, struct err *e)
{
    char full[PATH_MAX], id[RANGE_SOURCE_BYTES];
    struct search search = {.path = strcmp(path, "-") != 0 && realpath(path, full) != NULL ? full : path};
    *src = (struct source){0};
    if (options->source_id != NULL) {
        int n = snprintf(id, sizeof id, "id:%s", options->source_id);
        if (n < 0 || (size_t)n >= sizeof id || options->source_id[0] == '\0')
            return err_set(e, EX_USAGE, "--source-id is %zu bytes long, expected 1 to %zu",
                           strlen(options->source_id), sizeof id - sizeof "id:");
        search.source_id = id;
    }
    if (!open_reader(src, path, options, e))
        return false;
    if (identify(src, &search, positions, options, e))
        return true;
    source_close(src);
    return false;
}

bool source_open_at(struct source *src, const char *path, const struct range *at,
                    const struct source_options *options, struct err *e)
{
    struct search search = {.path = path, .match = *at};
    if (!open_reader(src, path, options, e))
        return false;
    if (at->to > 0 && !go_on(src, &search, e)) {
        source_close(src);
        return false;
    }
    src->range = *at;
    return true;
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
