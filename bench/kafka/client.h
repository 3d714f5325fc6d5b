/* client.h - what the programs beside this share: a librdkafka client from a table and a command line.
 *
 * Owner  : the caller of client_new() destroys what it returns.
 * Errors : whatever goes wrong is said on standard error and ends the process: these are measuring tools.
 */
#ifndef BENCH_KAFKA_CLIENT_H
#define BENCH_KAFKA_CLIENT_H

#include <librdkafka/rdkafka.h>

struct setting {
    const char *name, *value; /* NULL, NULL: the end */
};

/* `properties` are words PROPERTY=VALUE up to a NULL; they come after the settings and are changed. A
 * producer ends the process when a message cannot be delivered. */
rd_kafka_t *client_new(rd_kafka_type_t type, const char *address, const struct setting *settings,
                       char **properties);
void __attribute__((noreturn)) client_fail(const char *what, const char *why);
/* Gives a producer's messages to the library, which copies them; waits where its queue is full. Each message
 * names its partition. */
void client_send(rd_kafka_t *rk, rd_kafka_topic_t *rkt, rd_kafka_message_t *messages, int count);
/* Waits until all are delivered. */
void client_flush(rd_kafka_t *rk);

#endif
