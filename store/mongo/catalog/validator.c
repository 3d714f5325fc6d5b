/* Makes validators at start: each collection gets the one that the configuration asks for. One that tallyd
 * did not write is the operator's choice: it is logged, and left alone. Counting goes on if the server does
 * not support validators, or does not allow us to make one.
 *
 * The level is "moderate": a document that is already damaged does not stop counting.
 */
#include "store/mongo/catalog/validator.h"

#include "base/log.h"
#include "store/mongo/catalog/catalog.h"
#include "store/mongo/catalog/schema.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#define LEVEL "moderate"

static const char *const actions[] = {
    [VALIDATION_OFF] = "off", [VALIDATION_WARN] = "warn", [VALIDATION_ERROR] = "error"};

static bool see_collection(void *context, const bson_t *collection)
{
    bson_iter_t options;
    if (bson_iter_init_find(&options, collection, "options"))
        bson_append_iter(context, mongo_text_at(collection, "name"), -1, &options);
    return true;
}

bool mongo_list_options(struct mongo_store *m, const char *collection, bson_t *options, struct err *e)
{
    bson_t *command = BCON_NEW("listCollections", BCON_INT32(1), "cursor", "{", "batchSize",
                               BCON_INT32(MONGO_LIST_MAX), "}");
    if (collection != NULL)
        BCON_APPEND(command, "filter", "{", "name", BCON_UTF8(collection), "}");
    bson_init(options);
    return mongo_list(m->client, NULL, command, MONGO_BATCH, see_collection, options, e);
}

bool mongo_options_of(struct mongo_store *m, const char *collection, bool is_whole, bson_t *options,
                      struct err *e)
{
    if (is_whole)
        return true;
    bson_destroy(options);
    return mongo_list_options(m, collection, options, e);
}

/* The options of a collection; false: it does not exist. The name may have dots. */
static bool find_options(const bson_t *options, const char *collection, bson_t *found)
{
    bson_iter_t it;
    return bson_iter_init_find(&it, options, collection) && mongo_take_document(&it, found);
}

static bool is_wanted(const struct mongo_store *m, const struct mongo_collection *c, bool whole,
                      const bson_t *found)
{
    bson_t wanted;
    mongo_schema(m, c, whole, &wanted);
    bool is = bson_equal(&wanted, found);
    bson_destroy(&wanted);
    return is;
}

enum mongo_validator mongo_validator_state(const struct mongo_store *m, const struct mongo_collection *c,
                                           enum store_validation v, const bson_t *options)
{
    bson_t of, found;
    if (!find_options(options, c->name, &of))
        return v == VALIDATION_OFF ? VALIDATOR_IS_THERE : VALIDATOR_NO_COLLECTION;
    if (!mongo_find_document(&of, "validator", &found) || bson_empty(&found))
        return v == VALIDATION_OFF ? VALIDATOR_IS_THERE : VALIDATOR_DIFFERS;
    if (!mongo_schema_is_ours(&found))
        return VALIDATOR_FOREIGN;
    /* A schema that is not the whole is as much as this server supports. */
    bool is_same = v != VALIDATION_OFF && strcmp(mongo_text_at(&of, "validationAction"), actions[v]) == 0 &&
                   strcmp(mongo_text_at(&of, "validationLevel"), LEVEL) == 0 &&
                   (is_wanted(m, c, true, &found) || is_wanted(m, c, false, &found));
    return is_same ? VALIDATOR_IS_THERE : VALIDATOR_DIFFERS;
}

void mongo_validator_command(const struct mongo_store *m, const struct mongo_collection *c,
                             enum store_validation v, bool create, bool whole, bson_t *command)
{
    bson_t validator;
    if (!mongo_schema(m, c, whole, &validator) || v == VALIDATION_OFF)
        bson_reinit(&validator);
    bson_init(command);
    BSON_APPEND_UTF8(command, create ? "create" : "collMod", c->name);
    BSON_APPEND_DOCUMENT(command, "validator", &validator);
    BSON_APPEND_UTF8(command, "validationLevel", v == VALIDATION_OFF ? "off" : LEVEL);
    if (v != VALIDATION_OFF)
        BSON_APPEND_UTF8(command, "validationAction", actions[v]);
    bson_destroy(&validator);
}

/* Makes as much as the server supports: the whole schema, or only members with fixed names. */
static bool make(struct mongo_store *m, const struct mongo_collection *c, enum store_validation v,
                 bool create, struct err *e)
{
    bool good = false;
    for (int whole = 1; whole >= 0 && !good; whole--) {
        bson_t command;
        mongo_validator_command(m, c, v, create, whole, &command);
        good = mongo_run(m->client, NULL, &command, MONGO_NAMESPACE_EXISTS, e); /* another was quicker */
        if (!good && (e->retryable || e->code == EX_NOPERM))
            return false;
    }
    return good;
}

/* FerretDB makes a collection and drops its validator, so this reads it back. */
bool mongo_make_validator(struct mongo_store *m, const struct mongo_collection *c, enum store_validation v,
                          bool create, struct err *e)
{
    bson_t options;
    if (!create)
        return make(m, c, v, false, e);
    if (!make(m, c, v, true, e))
        return false;
    bool good = mongo_list_options(m, c->name, &options, e) &&
                (mongo_validator_state(m, c, v, &options) != VALIDATOR_DIFFERS || make(m, c, v, false, e));
    bson_destroy(&options);
    return good;
}

bool mongo_settle_validation(struct mongo_store *m, enum store_validation *v, const char **loses,
                             struct err *e)
{
    bson_t reply;
    bson_iter_t it;
    bool good = mongo_ask(m->client, BCON_NEW("buildInfo", BCON_INT32(1)), &reply, e);
    *loses = good && bson_has_field(&reply, "ferretdb") ? "FerretDB" : NULL;
    bson_destroy(&reply);
    if (good && *loses == NULL) {
        good = mongo_ask(m->client, BCON_NEW("hello", BCON_INT32(1)), &reply, e);
        *loses = mongo_find_member(&reply, "internal.documentdb_versions", &it) ? "DocumentDB" : NULL;
        bson_destroy(&reply);
    }
    if (*loses != NULL && *v == VALIDATION_ERROR)
        *v = VALIDATION_WARN;
    return good;
}

struct setting {
    struct mongo_store *m;
    enum store_validation validation;
    const char *loses; /* the server that loses updates where validators refuse; NULL: it does not */
    bson_t options;    /* those of all collections, at the begin */
    bool is_whole;     /* false: the server did not list them, so each is asked for */
    bool is_told;
};

static bool refuses(const bson_t *options, const char *collection)
{
    bson_t of, validator;
    return find_options(options, collection, &of) &&
           strcmp(mongo_text_at(&of, "validationAction"), actions[VALIDATION_ERROR]) == 0 &&
           mongo_find_document(&of, "validator", &validator) && !bson_empty(&validator);
}

/* Refuses a validator that stayed as it was, and under which the server loses updates. */
static bool check_loses(const struct setting *s, const struct mongo_collection *c, struct err *e)
{
    bson_t options;
    if (s->loses == NULL || !refuses(&s->options, c->name))
        return true;
    bool good = mongo_list_options(s->m, c->name, &options, e) &&
                (!refuses(&options, c->name) ||
                 err_set(e, EX_CONFIG,
                         "%s: collection %s has a validator that refuses documents, and %s loses updates "
                         "under such: set its validationAction to warn, by collMod",
                         mongo_client_name(s->m->client), c->name, s->loses));
    bson_destroy(&options);
    return good;
}

/* An unreachable server is an error. A refusal is not: it is logged once. */
static bool go_on_without(struct setting *s, const struct mongo_collection *c, const struct err *e)
{
    char quoted[LOG_QUOTE_BYTES];
    if (!e->retryable && !s->is_told)
        log_warn("validator_refused", "collection=%s error=%s next=\"counting without a validator\"", c->name,
                 log_quote(e->text, quoted));
    s->is_told |= !e->retryable;
    return !e->retryable;
}

static bool set(void *context, const struct mongo_collection *c, struct err *e)
{
    struct setting *s = context;
    if (!mongo_has_schema(c))
        return true;
    if (!mongo_options_of(s->m, c->name, s->is_whole, &s->options, e))
        return go_on_without(s, c, e);
    const enum mongo_validator state = mongo_validator_state(s->m, c, s->validation, &s->options);
    if (state == VALIDATOR_FOREIGN && s->validation != VALIDATION_OFF)
        log_warn("validator_differs", "collection=%s next=\"left alone\"", c->name);
    bool good = state == VALIDATOR_IS_THERE || state == VALIDATOR_FOREIGN ||
                mongo_make_validator(s->m, c, s->validation, state == VALIDATOR_NO_COLLECTION, e) ||
                go_on_without(s, c, e);
    return good && check_loses(s, c, e);
}

bool mongo_set_validators(struct mongo_store *m, enum store_validation validation, struct err *e)
{
    struct setting s = {.m = m, .validation = validation};
    if (!mongo_settle_validation(m, &s.validation, &s.loses, e))
        return false;
    if (s.validation != validation)
        log_warn("validation_warns",
                 "server=%s next=\"its validators only warn: it loses updates of several clients where they "
                 "refuse documents\"",
                 s.loses);
    s.is_whole = mongo_list_options(m, NULL, &s.options, e);
    bool good = (s.is_whole || !e->retryable) && mongo_each_collection(m, set, &s, e);
    bson_destroy(&s.options);
    return good;
}
