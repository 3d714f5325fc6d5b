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

/* The source to which this file belongs; NULL: none. *k: the fields that the name of its log sets; NULL: not
 * wanted. */
static const struct config_source *find_source(const struct config *c, const char *path, struct constants *k)
{
    if (strcmp(path, "-") != 0)
        return source_path_find(c, path, k);
    for (size_t i = 0; i < c->source_count; i++) {
        if (c->sources[i].type == SOURCE_STDIN)
            return &c->sources[i];
    }
    return NULL;
}

static const struct config_source *find_by_names(const struct config *c, const char *label, const char *path,
                                                 struct constants *k)
{
    const struct config_source *source = label != NULL ? find_source(c, label, k) : NULL;
    return source == NULL && path != NULL ? find_source(c, path, k) : source;
}

/* The source of files that no pattern matches: the first file source without a path, or else the first. */
static const struct config_source *other_file_source(const struct config *c)
{
    const struct config_source *first = NULL;
    for (size_t i = c->source_count; i > 0; i--) {
        const struct config_source *source = &c->sources[i - 1];
        if (source->type == SOURCE_FILE &&
            (first == NULL || source->path_count == 0 || first->path_count > 0))
            first = source;
    }
    return first;
}

static const struct config_source *choose_source(const struct config *c, const char *label, const char *path)
{
    const struct config_source *source = find_by_names(c, label, path, NULL);
    return source != NULL ? source : other_file_source(c);
}

void setup_constants(const struct config *c, const char *label, const char *path, struct constants *k)
{
    *k = (struct constants){0};
    (void)find_by_names(c, label, path, k);
}

const struct decode *setup_decode(const struct config *c, const char *label, const char *path)
{
    const struct config_source *source = choose_source(c, label, path);
    return source != NULL ? &source->decode : &c->any_line;
}

const struct config_source *setup_source(const struct config *c, const char *path)
{
    return choose_source(c, NULL, path);
}

bool setup_keeps_label(const struct config *c, const char *label, const char *path)
{
    return label != NULL && find_source(c, path, NULL) == NULL && find_source(c, label, NULL) != NULL;
}

const struct raw *setup_raw(const struct config *c, const char *label, const char *path)
{
    const struct config_source *source = choose_source(c, label, path);
    return source != NULL ? &source->raw : NULL;
}

/* All that a configuration says of it, as text. */
static void print_decode(const struct decode *d, struct text *out)
{
    decode_print_steps(d, out);
    text_printf(out, " %d %s", d->time_is_brokers, d->time_pointer);
    for (size_t i = 0; i < d->origin_count; i++) {
        text_printf(out, " %s=", field_name(d->origins[i].field));
        decode_print_origin(&d->origins[i], out);
    }
    for (size_t i = 0; i < METRIC_MEMBER_COUNT; i++)
        text_printf(out, " %s", d->metric[i]);
}

static bool decodes_alike(const struct decode *a, const struct decode *b)
{
    struct text one = {0}, other = {0};
    print_decode(a, &one);
    print_decode(b, &other);
    bool is = strcmp(one.ptr, other.ptr) == 0;
    text_fini(&one);
    text_fini(&other);
    return is;
}

bool setup_guess(const struct config *c, const char *label, const char *path,
                 const struct config_source **guess, struct err *e)
{
    size_t others = 0;
    *guess = NULL;
    if (find_by_names(c, label, path, NULL) != NULL)
        return true;
    const struct config_source *source = other_file_source(c);
    for (size_t i = 0; source != NULL && source->path_count > 0 && i < c->source_count; i++) {
        if (c->sources[i].type != SOURCE_FILE || &c->sources[i] == source)
            continue;
        others++;
        if (!decodes_alike(&source->decode, &c->sources[i].decode))
            return err_set(e, EX_USAGE,
                           "%s matches the path of no source, and their decodes differ: say --decode, as "
                           "`--decode auto`, or give it the name of a source's log",
                           path);
    }
    *guess = others > 0 ? source : NULL;
    return true;
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
