#include "store/mongo/ledger/peers.h"

#include "base/civil.h"
#include "base/clock.h"
#include "store/mongo/ledger/identity.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/ledger/slots.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WRITER_BYTES 320

/* ---- who a writer is */

static void add_topics(bson_t *who, const struct store_writer *w)
{
    char room[MONGO_KEY_BYTES];
    bson_t topics;
    BSON_APPEND_ARRAY_BEGIN(who, "topics", &topics);
    for (size_t i = 0; i < w->topic_count; i++)
        BSON_APPEND_UTF8(&topics, mongo_array_key(i, room), w->topics[i]);
    bson_append_array_end(who, &topics);
}

static void add_reports(bson_t *who, const struct mongo_store *m)
{
    char room[MONGO_KEY_BYTES];
    bson_t reports;
    BSON_APPEND_ARRAY_BEGIN(who, "reports", &reports);
    for (size_t i = 0; i < m->store.report_count; i++)
        BCON_APPEND(&reports, mongo_array_key(i, room), "{", "name", BCON_UTF8(m->reports[i].name),
                    "generation", BCON_INT32(m->reports[i].generation), "}");
    bson_append_array_end(who, &reports);
}

void mongo_read_host_name(char buf[MONGO_HOST_NAME_BYTES])
{
    memset(buf, 0, MONGO_HOST_NAME_BYTES);
    if (gethostname(buf, MONGO_HOST_NAME_BYTES - 1) != 0 || !bson_utf8_validate(buf, strlen(buf), false))
        buf[0] = '\0';
}

void mongo_add_who(const struct mongo_store *m, bson_t *set)
{
    char path[MONGO_SLOT_PATH_BYTES], host[MONGO_HOST_NAME_BYTES];
    bson_t who;
    BSON_APPEND_DOCUMENT_BEGIN(set, mongo_slot_path(m->writer.slot, "who", path), &who);
    mongo_read_host_name(host);
    if (host[0] != '\0')
        BSON_APPEND_UTF8(&who, "host", host);
    if (m->writer.who.group != NULL)
        BSON_APPEND_UTF8(&who, "group", m->writer.who.group);
    if (m->writer.who.instance != NULL)
        BSON_APPEND_UTF8(&who, "instance", m->writer.who.instance);
    if (m->writer.who.backfills)
        BSON_APPEND_BOOL(&who, "backfills", true);
    add_topics(&who, &m->writer.who);
    add_reports(&who, m);
    if (m->writer.since_ms > 0)
        BSON_APPEND_DATE_TIME(&who, "since", m->writer.since_ms);
    bson_append_document_end(set, &who);
}

/* ---- who another is */

/* A text in a slot, "who.group"; NULL: it has none. Valid as long as the ledger. */
static const char *text_of(const bson_t *ledger, const char *slot, const char *name)
{
    char path[MONGO_SLOT_PATH_BYTES];
    bson_iter_t it;
    bool is_text =
        mongo_find_member(ledger, mongo_slot_path(slot, name, path), &it) && BSON_ITER_HOLDS_UTF8(&it);
    return is_text ? bson_iter_utf8(&it, NULL) : NULL;
}

static bool is_same(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* "writer w3 (process 4711 on web-2, group tallyd, instance two, since 2026-11-23T07:01:02Z)", as far as its
 * slot says so. */
static const char *describe_writer(const bson_t *ledger, const char *slot, char buf[WRITER_BYTES])
{
    char since[CIVIL_ISO_BYTES];
    struct text t = {0};
    const char *host = text_of(ledger, slot, "who.host"), *group = text_of(ledger, slot, "who.group"),
               *instance = text_of(ledger, slot, "who.instance");
    int64_t since_ms = mongo_slot_at(ledger, slot, "who.since", 0);
    text_printf(&t, "writer %s (process %lld", slot, (long long)mongo_slot_at(ledger, slot, "pid", 0));
    if (host != NULL)
        text_printf(&t, " on %s", host);
    if (group != NULL)
        text_printf(&t, ", group %s", group);
    if (instance != NULL)
        text_printf(&t, ", instance %s", instance);
    if (since_ms > 0)
        text_printf(&t, ", since %s", civil_iso(since_ms, since));
    text_putc(&t, ')');
    snprintf(buf, WRITER_BYTES, "%s", t.ptr);
    text_fini(&t);
    return buf;
}

/* ---- who may begin, and go on */

bool mongo_admit(struct mongo_store *m, const bson_t *ledger, struct err *e)
{
    char since[MONGO_SLOT_PATH_BYTES];
    int64_t now_ms = clock_wall_ms(m->store.clock);
    for (int i = 0; i < MONGO_SLOTS; i++) {
        int64_t other_ms = mongo_slot_at(ledger, mongo_slots[i], "who.since", 0);
        now_ms = other_ms < now_ms ? now_ms : other_ms + 1;
    }
    bson_t filter = BSON_INITIALIZER;
    mongo_add_own(m, &filter);
    bson_t *update = BCON_NEW("$set", "{", mongo_slot_path(m->writer.slot, "who.since", since),
                              BCON_DATE_TIME(now_ms), "}");
    bool good = mongo_change(m->client, MONGO_LEDGER, &filter, update, false, NULL, e);
    if (good)
        m->writer.since_ms = now_ms; /* if it was not found, the next commit says so */
    return good;
}

/* This writer, with its reports, and another. */
struct pair {
    const struct mongo_store *m;
    const struct report *reports;
    size_t count;
    const bson_t *ledger;
    const char *slot; /* the other's slot */
};

/* A report that the other counts in another generation, *theirs; NULL: none. */
static const struct report *other_generation(const struct pair *p, int *theirs)
{
    char path[MONGO_SLOT_PATH_BYTES];
    bson_iter_t at, name, generation;
    if (!mongo_begin_members(p->ledger, mongo_slot_path(p->slot, "who.reports", path), &at))
        return NULL;
    while (bson_iter_next(&at)) {
        if (!mongo_find_in(&at, "name", &name) || !BSON_ITER_HOLDS_UTF8(&name) ||
            !mongo_find_in(&at, "generation", &generation))
            continue;
        *theirs = (int)bson_iter_as_int64(&generation);
        for (size_t i = 0; i < p->count; i++) {
            if (strcmp(p->reports[i].name, bson_iter_utf8(&name, NULL)) == 0 &&
                p->reports[i].generation != *theirs)
                return &p->reports[i];
        }
    }
    return NULL;
}

/* A topic that the other counts in another group; NULL: none. */
static const char *topic_of_two_groups(const struct pair *p)
{
    const struct store_writer *w = &p->m->writer.who;
    const char *group = text_of(p->ledger, p->slot, "who.group");
    char path[MONGO_SLOT_PATH_BYTES];
    bson_iter_t at;
    if (w->group == NULL || group == NULL || strcmp(w->group, group) == 0 ||
        !mongo_begin_members(p->ledger, mongo_slot_path(p->slot, "who.topics", path), &at))
        return NULL;
    while (bson_iter_next(&at)) {
        for (size_t i = 0; BSON_ITER_HOLDS_UTF8(&at) && i < w->topic_count; i++) {
            if (strcmp(w->topics[i], bson_iter_utf8(&at, NULL)) == 0)
                return w->topics[i];
        }
    }
    return NULL;
}

static bool backfills(const bson_t *ledger, const char *slot)
{
    return mongo_slot_at(ledger, slot, "who.backfills", 0) != 0;
}

static bool is_twin(const struct mongo_store *m, const bson_t *ledger, const char *slot)
{
    return is_same(m->writer.who.group, text_of(ledger, slot, "who.group")) &&
           is_same(m->writer.who.instance, text_of(ledger, slot, "who.instance"));
}

/* False: they must not count beside each other. The caller decides which one ends. */
static bool may_meet(const struct pair *p, int code, struct err *e)
{
    char other[WRITER_BYTES];
    int theirs;
    const char *database = mongo_client_name(p->m->client);
    const struct report *r = other_generation(p, &theirs);
    if (r != NULL)
        return err_set(
            e, code,
            "%s: generation %d of report \"%s\" is counted here, and generation %d by %s: each event would "
            "count in one of them only. Stop all daemons with the older one, then start all with the newer",
            database, r->generation, r->name, theirs, describe_writer(p->ledger, p->slot, other));
    if (p->m->writer.who.backfills && backfills(p->ledger, p->slot))
        return err_set(e, code, "%s: another backfill runs, by %s: wait until it has ended", database,
                       describe_writer(p->ledger, p->slot, other));
    const char *topic = topic_of_two_groups(p);
    return topic == NULL ||
           err_set(e, code,
                   "%s: topic %s is counted here as of group %s, and by %s: give them one "
                   "kafka.group: daemons of two groups would take a topic's partitions from each other",
                   database, topic, p->m->writer.who.group, describe_writer(p->ledger, p->slot, other));
}

bool mongo_may_begin(const struct mongo_store *m, const struct report *reports, size_t count,
                     const bson_t *ledger, struct err *e)
{
    for (int i = 0; i < MONGO_SLOTS; i++) {
        const struct pair p = {m, reports, count, ledger, mongo_slots[i]};
        if (strcmp(p.slot, m->writer.slot) != 0 && mongo_slot_is_others(m, ledger, p.slot) &&
            !may_meet(&p, EX_TEMPFAIL, e))
            return false;
    }
    return true;
}

static bool came_later(const struct mongo_store *m, const bson_t *ledger, const char *slot)
{
    return mongo_slot_at(ledger, slot, "who.since", 0) > m->writer.since_ms;
}

static bool refuse_twin(const struct mongo_store *m, const bson_t *ledger, const char *slot, struct err *e)
{
    char other[WRITER_BYTES];
    return err_set(
        e, EX_CONFIG,
        "%s: another tallyd has taken this one's place under the same kafka.instance, %s: give each its own",
        mongo_client_name(m->client), describe_writer(ledger, slot, other));
}

bool mongo_may_go_on(struct mongo_store *m, const bson_t *ledger, struct err *e)
{
    for (int i = 0; i < MONGO_SLOTS; i++) {
        const char *slot = mongo_slots[i];
        const struct pair p = {m, m->reports, m->store.report_count, ledger, slot};
        if (strcmp(slot, m->writer.slot) == 0 || !came_later(m, ledger, slot) ||
            !mongo_slot_is_others(m, ledger, slot))
            continue;
        if (is_twin(m, ledger, slot))
            return refuse_twin(m, ledger, slot, e);
        if (!may_meet(&p, EX_CONFIG, e))
            return false;
    }
    return true;
}

/* ---- generations in the database */

struct newer {
    const struct mongo_store *m;
    const struct report *report; /* NULL: no report has a newer one */
    int generation;
    char moved[MONGO_NAME_BYTES]; /* the name that a report of this writer has now; "": none has moved */
    int moved_to;                 /* and its generation */
};

/* Has a report of this writer taken another's place (mongo/job/replace.h)? Its key stays. */
static bool has_moved(const struct newer *n, const bson_t *document)
{
    const char *key = mongo_text_at(document, "_id");
    if (n->m->splicing.report[0] != '\0')
        return false; /* the key is that of the other report's next generation (mongo/job/splice.h) */
    for (size_t i = 0; i < n->m->store.report_count; i++) {
        const struct report *r = &n->m->reports[i];
        if (strcmp(key, n->m->more[i].key) == 0)
            return strcmp(mongo_text_at(document, "name"), r->name) != 0 ||
                   mongo_number_at(document, "generation", 0) != r->generation;
    }
    return false;
}

static bool see_generation(void *context, const bson_t *document)
{
    struct newer *n = context;
    bson_iter_t name, generation;
    if (has_moved(n, document)) {
        n->moved_to = (int)mongo_number_at(document, "generation", 0);
        snprintf(n->moved, sizeof n->moved, "%s", mongo_text_at(document, "name"));
        return false;
    }
    if (bson_has_field(document, MONGO_DROPPING) || !bson_iter_init_find(&name, document, "name") ||
        !BSON_ITER_HOLDS_UTF8(&name) || !bson_iter_init_find(&generation, document, "generation"))
        return true;
    int i = store_find_report(&n->m->store, slice_text(bson_iter_utf8(&name, NULL)));
    if (i < 0 || bson_iter_as_int64(&generation) <= n->m->reports[i].generation)
        return true;
    n->report = &n->m->reports[i];
    n->generation = (int)bson_iter_as_int64(&generation);
    return false;
}

bool mongo_check_generations(struct mongo_store *m, struct err *e)
{
    struct newer n = {.m = m};
    bson_t *options = BCON_NEW("projection", "{", "name", BCON_INT32(1), "generation", BCON_INT32(1),
                               MONGO_DROPPING, BCON_INT32(1), "}");
    bool good = mongo_look(m->client, MONGO_REPORTS, NULL, options, see_generation, &n, e);
    if (good && n.moved[0] != '\0')
        return err_set(
            e, EX_CONFIG,
            "%s: a report that is counted here has become generation %d of report \"%s\": start this "
            "daemon with the configuration of the others",
            mongo_client_name(m->client), n.moved_to, n.moved);
    if (!good || n.report == NULL)
        return good;
    return err_set(e, EX_CONFIG,
                   "%s: generation %d of report \"%s\" is in the database now, and generation %d is counted "
                   "here: start this daemon with the configuration of the others",
                   mongo_client_name(m->client), n.generation, n.report->name, n.report->generation);
}

bool mongo_meet(struct store *st, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    bson_t ledger;
    bool good =
        mongo_read_home(m, &ledger, e) && mongo_may_go_on(m, &ledger, e) && mongo_check_generations(m, e);
    bson_destroy(&ledger);
    return good;
}

/* ---- who has taken something over */

bool mongo_taken_over(const struct mongo_store *m, const bson_t *ledger, const char *what, const char *owner,
                      struct err *e)
{
    char other[WRITER_BYTES];
    const char *group = text_of(ledger, owner, "who.group"), *why = "which is configured to count it, too";
    if (is_twin(m, ledger, owner) && came_later(m, ledger, owner) && mongo_slot_is_others(m, ledger, owner))
        return refuse_twin(m, ledger, owner, e);
    if (backfills(ledger, owner))
        return err_set_retryable(e, EX_TEMPFAIL, "%s: a backfill took over %s: %s: again",
                                 mongo_client_name(m->client), what, describe_writer(ledger, owner, other));
    if (m->writer.who.group != NULL && group != NULL)
        why = strcmp(m->writer.who.group, group) == 0 ? "to which the group assigned it"
                                                      : "of another kafka.group: count a topic in one group";
    return err_set(e, EX_TEMPFAIL, "%s: another tallyd took over %s: %s, %s: start again",
                   mongo_client_name(m->client), what, describe_writer(ledger, owner, other), why);
}

bool mongo_lose_slot(struct mongo_store *m, const bson_t *ledger, struct err *e)
{
    char other[WRITER_BYTES];
    err_set(e, EX_TEMPFAIL,
            "%s: another tallyd took over slot %s, since this one sent no heartbeat for a minute: %s: start "
            "again",
            mongo_client_name(m->client), m->writer.slot, describe_writer(ledger, m->writer.slot, other));
    m->writer.slot[0] = '\0';
    if (m->batch.step == STEP_LOGGING)
        m->batch.step = STEP_NONE; /* the log has the lost slot's name */
    return false;
}

bool mongo_check_alone(struct mongo_store *m, struct err *e)
{
    bson_t ledger;
    bool good = mongo_read_home(m, &ledger, e);
    for (int i = 0; good && i < MONGO_SLOTS; i++) {
        const char *slot = mongo_slots[i];
        char writer[WRITER_BYTES];
        if (mongo_slot_is_others(m, &ledger, slot))
            good = err_set(e, EX_TEMPFAIL,
                           "%s: %s counts into it, or ended less than a minute ago: stop all that count "
                           "first",
                           mongo_client_name(m->client), describe_writer(&ledger, slot, writer));
    }
    bson_destroy(&ledger);
    return good;
}
