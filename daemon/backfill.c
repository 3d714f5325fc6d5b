#include "daemon/backfill.h"

#include "base/check.h"
#include "daemon/setup.h"
#include "daemon/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define LIMITS_SHARE 8

struct shard_limits backfill_limits(const struct config *c)
{
    struct shard_limits limits = setup_pipeline(c, 1).shard;
    limits.cells_max /= LIMITS_SHARE;
    limits.series_max /= LIMITS_SHARE;
    limits.key_bytes_max /= LIMITS_SHARE;
    limits.sketch_bytes_max /= LIMITS_SHARE;
    limits.raw_bytes_max = 0;
    return limits;
}

int64_t backfill_left(const struct backfill_plan *plan, size_t position)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < plan->stretch_count; i++) {
        const struct backfill_stretch *s = &plan->stretches[i];
        bytes += s->position == position ? s->to - s->from : 0;
    }
    return bytes;
}

/* The file from its beginning, with a descriptor of its own. */
static struct input *open_file(const char *path, int fd, struct err *e)
{
    if (fd < 0)
        return input_open(path, e);
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own >= 0 && lseek(own, 0, SEEK_SET) == 0)
        return input_take(own, path, e);
    err_set(e, EX_NOINPUT, "cannot read %s from its beginning: %s", path, strerror(errno));
    if (own >= 0)
        close(own);
    return NULL;
}

/* Find the position of the file at the path. The file must be what was counted, up to the position. */
static bool find_position(const struct backfill *b, const char *path, int fd, struct backfilled *done,
                          struct err *e)
{
    struct source src;
    const struct source_options options = {.line_max = (size_t)b->config->limits.line_max,
                                           .last_line = LAST_LINE_LEAVE,
                                           .stop = b->stop,
                                           .in = open_file(path, fd, e)};
    if (options.in == NULL || !source_open(&src, path, b->store, &options, e))
        return false;
    for (size_t i = 0; src.is_known && !done->is_known && i < b->plan->position_count; i++) {
        const struct range *r = &b->plan->positions[i].range;
        done->is_known = strcmp(r->source, src.range.source) == 0 && r->partition[0] == '\0';
        done->position = i;
    }
    memcpy(done->source, src.range.source, sizeof done->source);
    source_close(&src);
    return true;
}

static bool count_stretch(struct backfill *b, struct reader *reader, struct backfill_stretch *s,
                          struct backfilled *done, struct err *e)
{
    struct range range = b->plan->positions[s->position].range;
    const struct pipeline_progress *p = pipeline_progress(b->pipeline);
    const struct backfill_filter filter = backfill_filter(b->plan, s);
    range.latest_ms = s->latest_ms;
    pipeline_set_filter(b->pipeline, &filter);
    reader_end_at(reader, s->to);
    if (!reader_skip(reader, s->from, e))
        return false;
    bool good = pipeline_run(b->pipeline, reader, &range, e);
    pipeline_set_filter(b->pipeline, NULL);
    done->bytes += p->stored - s->from;
    done->lines += p->books.entries[BOOK_CONSUMED];
    s->from = p->stored;
    if (good && s->from < s->to)
        good = atomic_load(b->stop)
                   ? err_set(e, EX_TEMPFAIL, "interrupted")
                   : err_set(e, EX_DATAERR, "it ends at byte %" PRId64 ", but was counted up to %" PRId64,
                             s->from, s->to);
    return good;
}

static bool count_file(struct backfill *b, const char *path, int fd, const struct decode *decode,
                       struct backfilled *done, struct err *e)
{
    struct input *in = open_file(path, fd, e);
    if (in == NULL)
        return false;
    input_stop_by(in, b->stop);
    struct reader *reader = reader_new(in, (size_t)b->config->limits.line_max, LAST_LINE_TAKE);
    if (decode_heeds_directives(decode))
        reader_heed_directives(reader);
    bool good = true;
    for (size_t i = 0; good && i < b->plan->stretch_count; i++) {
        struct backfill_stretch *s = &b->plan->stretches[i];
        if (s->position == done->position && s->from < s->to)
            good = count_stretch(b, reader, s, done, e) || err_prefix(e, "%s", path);
    }
    reader_free(reader);
    input_close(in);
    return good;
}

bool backfill_file(struct backfill *b, const char *path, int fd, struct backfilled *done, struct err *e)
{
    struct constants constants;
    *done = (struct backfilled){0};
    if (!find_position(b, path, fd, done, e))
        return false;
    if (!done->is_known || backfill_left(b->plan, done->position) == 0)
        return true;
    const struct decode *decode;
    const char *label = b->plan->positions[done->position].range.label;
    setup_constants(b->config, label, path, &constants);
    decode = b->decode != NULL ? b->decode : setup_decode(b->config, label, path);
    pipeline_set_decode(b->pipeline, decode, &constants, NULL);
    bool good = count_file(b, path, fd, decode, done, e);
    constants_fini(&constants);
    return good;
}
