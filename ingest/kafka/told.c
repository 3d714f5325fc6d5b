/* The callbacks for librdkafka's log, errors and statistics; misleading texts are reworded. */
#include "base/log.h"
#include "ingest/kafka/internal.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* True: a broker of this configuration has answered this process, so its security.protocol is right. */
static atomic_bool has_answered;

void kafka_note_answer(void)
{
    atomic_store(&has_answered, true);
}

/* The library guesses a wrong security.protocol whenever a broker closes a connection before it has answered.
 * A broker that restarts does that, too. */
const char *kafka_reword(const char *text, char buf[KAFKA_TOLD_BYTES])
{
    static const char *const guesses[] = {"Disconnected while requesting ApiVersion: might be",
                                          "Disconnected: verify that security.protocol"};
    for (size_t i = 0; i < COUNT_OF(guesses); i++) {
        const char *guess = strstr(text, guesses[i]);
        if (guess == NULL)
            continue;
        const char *after = strstr(guess, " (after ");
        snprintf(buf, KAFKA_TOLD_BYTES, "%.*sthe broker closed the connection before it said anything: %s%s",
                 (int)(guess - text), text,
                 atomic_load(&has_answered)
                     ? "it is starting or stopping"
                     : "it is starting or stopping, or this listener wants TLS or SASL (kafka.properties: "
                       "security.protocol)",
                 after != NULL ? after : "");
        return buf;
    }
    return text;
}

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
    char quoted[LOG_QUOTE_BYTES], told[KAFKA_TOLD_BYTES];
    (void)rk;
    /* The library's levels are syslog's. It recovers from most of its errors by itself, so they are
     * warnings. */
    enum log_level as = level <= 4 ? LOG_LEVEL_WARN : level <= 6 ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG;
    log_limited(as, "kafka", "facility=%s text=%s", facility, log_quote(kafka_reword(text, told), quoted));
}

static void on_error(rd_kafka_t *rk, int error, const char *reason, void *context)
{
    char quoted[LOG_QUOTE_BYTES], told[KAFKA_TOLD_BYTES];
    (void)rk, (void)context;
    log_limited(LOG_LEVEL_WARN, "kafka_error", "code=%s text=%s",
                rd_kafka_err2name((rd_kafka_resp_err_t)error), log_quote(kafka_reword(reason, told), quoted));
}

void kafka_tell_by_log(rd_kafka_conf_t *conf)
{
    rd_kafka_conf_set_log_cb(conf, on_log);
    rd_kafka_conf_set_error_cb(conf, on_error);
}

/* ---- statistics: the library writes this JSON in one form, so it needs no parser */

struct piece {
    const char *ptr, *end;
};

/* The text behind the last or first `name` in a piece; NULL: it is not there. */
static const char *find(struct piece in, const char *name, bool last)
{
    const char *found = NULL;
    size_t len = strlen(name);
    for (const char *p = in.ptr; (p = memmem(p, (size_t)(in.end - p), name, len)) != NULL;) {
        found = p += len;
        if (!last)
            break;
    }
    return found;
}

static int64_t number_of(struct piece in, const char *name)
{
    const char *at = find(in, name, false);
    return at != NULL ? strtoll(at, NULL, 10) : -1;
}

void kafka_read_statistics(const char *json, int64_t *queued_bytes, kafka_stand_fn *fn, void *context)
{
    static const char partition[] = "\"partition\":";
    const char *end = json + strlen(json), *before = json;
    struct slice topic = {0};
    *queued_bytes = 0;
    for (const char *p = strstr(json, partition), *next; p != NULL; p = next) {
        next = strstr(p + sizeof partition - 1, partition);
        const struct piece of = {p, next != NULL ? next : end}, head = {before, p};
        const char *name = find(head, "\"topic\":\"", true);
        if (name != NULL)
            topic = slice_of(name, strcspn(name, "\""));
        before = p;
        int64_t bytes = number_of(of, "\"fetchq_size\":");
        *queued_bytes += bytes > 0 ? bytes : 0;
        struct kafka_stand stand = {.topic = topic,
                                    .partition = (int32_t)number_of(of, partition),
                                    .next = number_of(of, "\"next_offset\":"),
                                    .stable = number_of(of, "\"ls_offset\":"),
                                    .end = number_of(of, "\"hi_offset\":")};
        if (fn != NULL && stand.partition >= 0 && stand.stable >= 0 && stand.end >= 0)
            fn(context, &stand);
    }
}

static int on_statistics(rd_kafka_t *rk, char *json, size_t len, void *context)
{
    struct kafka *k = context;
    int64_t bytes;
    (void)rk, (void)len;
    kafka_read_statistics(json, &bytes, k->on_stand, k->context);
    k->queued_bytes = bytes;
    return 0;
}

static void on_trouble(rd_kafka_t *rk, int error, const char *reason, void *context)
{
    struct kafka *k = context;
    atomic_fetch_add(&k->troubles, 1);
    on_error(rk, error, reason, context);
}

void kafka_tell_consumer(rd_kafka_conf_t *conf)
{
    rd_kafka_conf_set_stats_cb(conf, on_statistics);
    rd_kafka_conf_set_error_cb(conf, on_trouble);
}
