#include "ingest/kafka/conf.h"

#include "base/suggest.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>

#if RD_KAFKA_VERSION < 0x02000000
#error "librdkafka 2.0 or newer is needed"
#endif

#define NAMES_MAX 400
#define WHY_BYTES 512

static const struct {
    const char *name;
    const char *allowed; /* the one value that is allowed, since it changes nothing; NULL: none */
    const char *why;
} own[] = {
    {"bootstrap.servers", NULL, "kafka.brokers says it"},
    {"metadata.broker.list", NULL, "kafka.brokers says it"},
    {"group.id", NULL, "kafka.group says it"},
    {"group.instance.id", NULL, "kafka.instance says it"},
    {"queued.max.messages.kbytes", NULL, "kafka.queue_size says it"},
    {"enable.auto.commit", NULL, "offsets are committed once their events are stored"},
    {"auto.commit.enable", NULL, "offsets are committed once their events are stored"},
    {"enable.auto.offset.store", NULL, "offsets are committed once their events are stored"},
    {"auto.offset.reset", NULL,
     "partitions begin where the store stands, and offsets that are lost must be noticed (sources.NAME.start "
     "is "
     "for a topic that is new to the store)"},
    {"isolation.level", "read_committed", "messages of aborted transactions must not be counted"},
    {"enable.partition.eof", NULL, "tallyd needs the ends of partitions to know its lag"},
};

/* "topic.acks" is "acks" to librdkafka. */
static const char *plain_name(const char *name)
{
    static const char prefix[] = "topic.";
    return strncmp(name, prefix, sizeof prefix - 1) == 0 ? name + sizeof prefix - 1 : name;
}

static bool check_own(const char *name, const char *value, struct err *e)
{
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (strcmp(plain_name(name), own[i].name) != 0 ||
            (own[i].allowed != NULL && strcmp(value, own[i].allowed) == 0))
            continue;
        return err_set(e, EX_CONFIG, "found a property that tallyd sets itself, expected it left out: %s",
                       own[i].why);
    }
    return true;
}

/* The names in the table that librdkafka prints, `name | * | …`. Unlike rd_kafka_conf_dump(), it also has
 * properties that are not set. The names stay in `page`, a NUL after each. */
static size_t list_names(char *page, const char *names[NAMES_MAX + 1])
{
    size_t count = 0;
    for (char *rest = page, *line; (line = strsep(&rest, "\n")) != NULL && count < NAMES_MAX;) {
        size_t len = strcspn(line, " |-");
        if (len == 0 || strchr(line, '|') == NULL || line[0] < 'a' || line[0] > 'z')
            continue;
        line[len] = '\0';
        names[count++] = line;
    }
    names[count] = NULL;
    return count;
}

static bool unknown_name(const char *name, struct err *e)
{
    const char *names[NAMES_MAX + 1];
    char quote[SUGGEST_QUOTE_BYTES], hint[SUGGEST_HINT_BYTES] = "";
    char *page = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&page, &bytes);
    if (file != NULL) {
        rd_kafka_conf_properties_show(file);
        fclose(file);
        if (list_names(page, names) > 0)
            suggest_hint(slice_text(name), names, hint);
    }
    free(page);
    return err_set(e, EX_CONFIG, "found %s, expected a property of librdkafka%s",
                   suggest_quote(slice_text(name), quote), hint);
}

bool kafka_conf_check(const char *name, const char *value, bool is_secret, struct err *e)
{
    char why[WHY_BYTES] = "";
    if (!check_own(name, value, e))
        return false;
    rd_kafka_conf_t *scratch = rd_kafka_conf_new();
    rd_kafka_conf_res_t result = rd_kafka_conf_set(scratch, name, value, why, sizeof why);
    rd_kafka_conf_destroy(scratch);
    if (result == RD_KAFKA_CONF_OK)
        return true;
    if (result == RD_KAFKA_CONF_UNKNOWN)
        return unknown_name(name, e);
    why[strcspn(why, "\n")] = '\0';
    return err_set(e, EX_CONFIG, "found a value that librdkafka does not take%s%s", is_secret ? "" : ": ",
                   is_secret ? "" : why);
}
