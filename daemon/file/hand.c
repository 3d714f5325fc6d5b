/* Files that `import` hands over: read once to their ends, as logs that are never rotated. */
#include "base/mem.h"
#include "daemon/file/follow_internal.h"

#include <stdlib.h>
#include <string.h>

/* The length of a source's name without the number of one that begins alike. */
static size_t stem(const char *source)
{
    return strcspn(source, "~");
}

static bool is_same_stem(const char *a, const char *b)
{
    return stem(a) == stem(b) && strncmp(a, b, stem(a)) == 0;
}

bool follow_is_handed(const struct follow *fo, const struct survey_answer *a)
{
    bool is = false;
    for (size_t i = 0; i < fo->count && !is; i++) {
        const struct followed *f = fo->list[i];
        is = f->handed != NULL && f->source.in != NULL &&
             (input_is(f->source.in, a->device, a->inode) ||
              is_same_stem(f->source.range.source, a->range.source));
    }
    return is;
}

/* Does no log have this file open? */
static bool is_free(const struct follow *fo, const struct handed *h, struct err *e)
{
    for (size_t i = 0; i < fo->count; i++) {
        const struct followed *other = fo->list[i];
        if (other->source.in != NULL && (input_is_same(other->source.in, h->source.in) ||
                                         is_same_stem(other->source.range.source, h->source.range.source)))
            return err_set(e, EX_UNAVAILABLE,
                           "the daemon follows %s, which is this file or begins as it does: its lines are "
                           "counted as they come",
                           other->source.range.label);
    }
    return true;
}

struct next {
    const struct range *range;
    int64_t to; /* the store's position; 0: it has none */
};

static bool look_at_position(void *context, const struct position *position)
{
    struct next *n = context;
    if (strcmp(position->range.source, n->range->source) == 0 &&
        strcmp(position->range.partition, n->range->partition) == 0)
        n->to = position->range.to;
    return true;
}

/* Is the store's position still the one that the desk has found? */
static bool is_unchanged(const struct follow *fo, const struct handed *h, bool *is, struct err *e)
{
    struct next n = {.range = &h->source.range};
    bool good = store_positions(fo->engine->options.store, look_at_position, &n, e);
    *is = n.to == h->source.range.to;
    return good;
}

static void add(struct follow *fo, struct handed *h)
{
    struct followed *f = xcalloc(1, sizeof *f);
    struct config_source *config = xcalloc(1, sizeof *config);
    config->decode = h->decode;
    f->of = xcalloc(1, sizeof *f->of);
    f->of->config = config;
    f->of->chain = chain_new(&h->decode, fo->feed.shared->line_max);
    f->handed = h;
    f->source = h->source;
    h->source = (struct source){.range = f->source.range};
    follow_add(fo, f);
    followed_begin(fo, f);
}

bool follow_take_handed(struct follow *fo, struct err *e)
{
    struct handed *h = desk_take(fo->desk);
    struct err why;
    bool is = true;
    if (h == NULL)
        return true;
    if (!is_unchanged(fo, h, &is, e)) {
        desk_give_back(fo->desk, h, e);
        return e->retryable;
    }
    if (is && is_free(fo, h, &why)) {
        add(fo, h);
        return true;
    }
    if (!is)
        err_set_retryable(&why, EX_TEMPFAIL, "more of it was counted meanwhile: try again");
    desk_give_back(fo->desk, h, &why);
    return true;
}

void followed_give_back(struct follow *fo, struct followed *f)
{
    struct handed *h = f->handed;
    struct err stopped;
    bool has_ended = followed_get_state(fo, f) == FOLLOWED_CLOSED;
    h->stored = f->stored_to;
    h->left = reader_left(f->source.reader);
    h->source = f->source;
    f->source = (struct source){0};
    if (!has_ended)
        err_set_retryable(
            &stopped, EX_TEMPFAIL,
            "the daemon has stopped: what was read is stored, run the same command again to resume");
    desk_give_back(fo->desk, h, !has_ended ? &stopped : f->failure);
    chain_free(f->of->chain);
    free((struct config_source *)f->of->config);
    free(f->of);
    free(f->failure);
    f->handed = NULL;
}
