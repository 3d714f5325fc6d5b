#include "daemon/setup.h"

#include "config/source_path.h"

#include <unistd.h>

#define THREADS_DEFAULT_MAX 8

static size_t thread_count(const struct config *c, size_t threads)
{
    if (threads == 0)
        threads = (size_t)c->import.threads;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (threads == 0)
        threads = processors < 1                     ? 1
                  : processors > THREADS_DEFAULT_MAX ? THREADS_DEFAULT_MAX
                                                     : (size_t)processors;
    return threads;
}

static bool has_raw(const struct config *c)
{
    bool has = false;
    for (size_t i = 0; i < c->source_count && !has; i++)
        has = c->sources[i].raw.kind != RAW_OFF;
    return has;
}

struct pipeline_options setup_pipeline(const struct config *c, size_t threads)
{
    return (struct pipeline_options){
        .threads = thread_count(c, threads),
        .line_max = (size_t)c->limits.line_max,
        .stripe_ms = c->aggregate.batch_ms,
        .stripe_bytes = c->aggregate.batch_bytes,
        .future_max_ms = c->limits.future_max_ms,
        .shard = {.cells_max = (size_t)c->aggregate.cells_max,
                  .series_max = (size_t)c->aggregate.series_max,
                  .key_bytes_max = (size_t)c->aggregate.key_bytes_max,
                  .sketch_bytes_max = (size_t)c->aggregate.sketch_bytes_max,
                  .dimension_bytes_max = (size_t)c->limits.dimension_bytes_max,
                  .raw_bytes_max = has_raw(c) ? (size_t)c->aggregate.raw_bytes_max : 0},
        .clock = &clock_system,
    };
}

struct store_options setup_store(const struct config *c)
{
    struct store_options options = {.validation = c->store.validation,
                                    .connections = (size_t)c->store.connections,
                                    .rollup_delay_ms = c->store.rollup_delay_ms,
                                    .without_indexes = !c->store.indexes,
                                    .with_unsafe_writes = c->store.unsafe_write_concern,
                                    .ttl = c->store.ttl,
                                    .weeks = c->jobs.weeks,
                                    .week_start = c->query.week_start};
    for (size_t i = 0; i < c->source_count; i++) {
        if (c->sources[i].raw.kind == RAW_OFF)
            continue;
        options.raws[i] = &c->sources[i].raw;
        options.raw_count = i + 1;
    }
    return options;
}

struct store_writer setup_writer(const struct config *c)
{
    struct store_writer writer = {.group = c->kafka.group, .instance = c->kafka.instance};
    for (size_t i = 0; i < c->source_count; i++) {
        if (c->sources[i].type == SOURCE_KAFKA)
            writer.topics[writer.topic_count++] = c->sources[i].topic;
    }
    return writer;
}

struct prealloc_options setup_prealloc(const struct config *c)
{
    int64_t one_in = c->store.preallocate;
    return (struct prealloc_options){.when = one_in == CONFIG_PREALLOCATE_OFF    ? PREALLOC_OFF
                                             : one_in == CONFIG_PREALLOCATE_AUTO ? PREALLOC_AUTO
                                                                                 : PREALLOC_CHANCE,
                                     .one_in = one_in,
                                     .zeros = c->store.preallocate_zeros};
}

struct kafka_options setup_kafka(const struct config *c)
{
    return (struct kafka_options){
        .brokers = c->kafka.brokers,
        .group = c->kafka.group,
        .properties = c->kafka.properties,
        .property_count = c->kafka.property_count,
        .queue_bytes = c->kafka.queue_bytes,
    };
}

/* The source to which this file belongs; NULL: none. *k: the fields that its name sets; NULL: not wanted. */
static const struct config_source *find_source(const struct config *c, const char *path, struct constants *k)
{
    bool is_stdin = strcmp(path, "-") == 0;
    for (size_t i = 0; i < c->source_count; i++) {
        const struct config_source *source = &c->sources[i];
        if (is_stdin ? source->type == SOURCE_STDIN : source_path_match(source, path, k))
            return source;
    }
    return NULL;
}

static const struct config_source *first_file_source(const struct config *c)
{
    for (size_t i = 0; i < c->source_count; i++) {
        if (c->sources[i].type == SOURCE_FILE)
            return &c->sources[i];
    }
    return NULL;
}

static const struct config_source *choose_source(const struct config *c, const char *path,
                                                 const char *other_path)
{
    const struct config_source *source = path != NULL ? find_source(c, path, NULL) : NULL;
    if (source == NULL && other_path != NULL)
        source = find_source(c, other_path, NULL);
    return source != NULL ? source : first_file_source(c);
}

void setup_constants(const struct config *c, const char *path, const char *other_path, struct constants *k)
{
    *k = (struct constants){0};
    if (find_source(c, path, k) == NULL && other_path != NULL)
        (void)find_source(c, other_path, k);
}

const struct decode *setup_decode(const struct config *c, const char *path, const char *other_path)
{
    const struct config_source *source = choose_source(c, path, other_path);
    return source != NULL ? &source->decode : &c->any_line;
}

const struct config_source *setup_source(const struct config *c, const char *path)
{
    return choose_source(c, path, NULL);
}

const struct raw *setup_raw(const struct config *c, const char *path)
{
    const struct config_source *source = choose_source(c, path, NULL);
    return source != NULL ? &source->raw : NULL;
}

bool setup_has_topics(const struct config *c)
{
    bool has = false;
    for (size_t i = 0; i < c->source_count && !has; i++)
        has = c->sources[i].type == SOURCE_KAFKA;
    return has;
}

bool setup_is_followed(const struct config *c, const struct config_source *source)
{
    return source->type == SOURCE_STDIN ||
           (source->type == SOURCE_FILE && (source->path_count > 0 || c->source_count == 1));
}

size_t setup_count_files(const struct config *c)
{
    size_t count = 0;
    for (size_t i = 0; i < c->source_count; i++)
        count += setup_is_followed(c, &c->sources[i]);
    return count;
}

bool setup_parse_source(const char *text, const char *time, struct decode *d, struct err *e)
{
    decode_init(d);
    for (const char *comma = text; comma != NULL; text = comma + 1) {
        comma = decode_takes_rest(text) ? NULL : strchr(text, ',');
        size_t len = comma != NULL ? (size_t)(comma - text) : strlen(text);
        if (!decode_add_step(d, slice_of(text, len), e))
            return false;
        if (comma == NULL)
            break;
    }
    if ((time[0] != '\0' && !decode_set_time(d, slice_text(time), e)) || !decode_finish(d, e))
        return false;
    return (!decode_needs_schema(d) && d->steps[0].kind != STEP_REMOTE_WRITE) ||
           err_set(e, EX_USAGE,
                   "found %s, expected it in the configuration of a topic: a line is no message of it",
                   decode_binary_name(d));
}

bool setup_parse_decode(const char *text, struct decode *d, struct err *e)
{
    return setup_parse_source(text, "", d, e);
}
