#include "daemon/setup.h"

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

struct pipeline_options setup_pipeline(const struct config *c, size_t threads)
{
    return (struct pipeline_options){
        .threads = thread_count(c, threads),
        .line_max = (size_t)c->limits.line_max,
        .limits = {.stripe_ms = c->aggregate.batch_ms,
                   .line_max = (size_t)c->limits.line_max,
                   .future_max_ms = c->limits.future_max_ms},
        .stripe_bytes = c->aggregate.batch_bytes,
        .shard = {.cells_max = (size_t)c->aggregate.cells_max,
                  .series_max = (size_t)c->aggregate.series_max,
                  .key_bytes_max = (size_t)c->aggregate.key_bytes_max,
                  .dimension_bytes_max = (size_t)c->limits.dimension_bytes_max},
        .rejects_fd = -1,
        .clock = &clock_system,
    };
}

enum clf_format setup_format(const struct config *c)
{
    return c->source_count > 0 ? c->sources[0].format : CLF_AUTO;
}
