#include "daemon/topic/reread.h"

#include "daemon/topic/topic.h"

#include <string.h>
#include <time.h>

#define SCHEMA_POLL_MS 20 /* between two questions for a schema */

const struct config_source *reread_source(const struct config *c, const struct position *positions,
                                          size_t count, const char *stored, bool *is_newest)
{
    for (size_t i = 0; i < c->source_count; i++) {
        const struct config_source *s = &c->sources[i];
        int newest = 0;
        if (s->type != SOURCE_KAFKA || topic_incarnation(s->topic, stored) == 0)
            continue;
        for (size_t k = 0; k < count; k++) {
            int incarnation = topic_incarnation(s->topic, positions[k].range.source);
            newest = incarnation > newest ? incarnation : newest;
        }
        *is_newest = topic_incarnation(s->topic, stored) == newest;
        return s;
    }
    return NULL;
}

bool reread_await_schema(const struct config *c, struct chain *chain, const struct record *record,
                         struct err *e)
{
    struct registry_figures figures;
    for (int waited_ms = 0; !chain_knows_schema(chain, record); waited_ms += SCHEMA_POLL_MS) {
        if (waited_ms > REREAD_SILENCE_MS) {
            registry_note(&c->registry, &figures);
            return err_set(e, EX_TEMPFAIL, "a message's schema did not come for %d s: %s",
                           REREAD_SILENCE_MS / 1000, figures.why);
        }
        nanosleep(&(struct timespec){.tv_nsec = SCHEMA_POLL_MS * 1000000L}, NULL);
    }
    return true;
}
